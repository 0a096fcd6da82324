// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The program with the table of its operations, for the build as a BPF object.
 */
#include "scavenger.bpf.c"

CONTROLLER(scavenger) = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = scavenger_init,
	.release = scavenger_release,
	.cong_control = scavenger_acknowledged,
	.set_state = scavenger_state,
	.ssthresh = scavenger_ssthresh,
	.undo_cwnd = scavenger_undo,
};
