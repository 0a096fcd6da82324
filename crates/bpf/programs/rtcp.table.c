// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * The program with the table of its operations, for the build as a BPF object.
 */
#include "rtcp.bpf.c"

CONTROLLER(rtcp) = {
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = rtcp_init,
	.release = rtcp_release,
	.cong_control = rtcp_acknowledged,
	.set_state = rtcp_state,
	.ssthresh = rtcp_ssthresh,
	.undo_cwnd = rtcp_undo,
};
