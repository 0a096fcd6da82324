// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * RTCP as one of the kernel's own controllers: the same source as the BPF program, with the kernel's types. The
 * constants come from the command line, as tcp_rtcp.settings=N,N,..., in the order of the program's `settings`.
 */
#include <linux/module.h>
#include "rtcp.bpf.c"

#define NUMBERS (sizeof(settings) / sizeof(u64))

static unsigned long long numbers[NUMBERS];
static unsigned int count;
module_param_array_named(settings, numbers, ullong, &count, 0444);
MODULE_PARM_DESC(settings, "the constants of the program, in their order");

static struct tcp_congestion_ops rtcp_operations __read_mostly = {
	.name		= "rtcp",
	.owner		= THIS_MODULE,
	.init		= rtcp_init,
	.release	= rtcp_release,
	.cong_control	= rtcp_acknowledged,
	.set_state	= rtcp_state,
	.ssthresh	= rtcp_ssthresh,
	.undo_cwnd	= rtcp_undo,
};

static int __init rtcp_register(void)
{
	BUILD_BUG_ON(sizeof(struct rtcp) > ICSK_CA_PRIV_SIZE);
	BUILD_BUG_ON(sizeof(settings) % sizeof(u64));
	/* Without constants, the controller is not registered. */
	if (!count)
		return 0;
	memcpy(&settings, numbers, sizeof(settings));
	return tcp_register_congestion_control(&rtcp_operations);
}
late_initcall(rtcp_register);

MODULE_DESCRIPTION("Regulated TCP");
MODULE_LICENSE("Dual BSD/GPL");
