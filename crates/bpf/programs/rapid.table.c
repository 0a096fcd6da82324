// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The program with the table of its operations, for the build as a BPF object.
 */
#include "rapid.bpf.c"

CONTROLLER(rapid) = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = rapid_init,
	.release = rapid_release,
	.cong_control = rapid_acknowledged,
	.set_state = rapid_state,
	.ssthresh = rapid_ssthresh,
	.undo_cwnd = rapid_undo,
	.min_tso_segs = rapid_departs,
};
