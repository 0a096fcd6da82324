// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Sets the controller of the connections of a cgroup: outgoing ones when they are opened, and incoming ones when they
 * are established.
 */
#include "kernel.h"

/* The context that the kernel passes; the operation is its first member (include/uapi/linux/bpf.h). */
struct bpf_sock_ops {
	u32 op;
};

enum { BPF_SOCK_OPS_TCP_CONNECT_CB = 3, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5 };
enum { IPPROTO_TCP = 6, TCP_CONGESTION = 13, NAME_BYTES = 16 };

CONSTANT struct {
	char name[NAME_BYTES];
} settings = {};

SEC("sockops") int choose(struct bpf_sock_ops *context)
{
	char name[NAME_BYTES];

	if (context->op != BPF_SOCK_OPS_TCP_CONNECT_CB && context->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	for (int at = 0; at < NAME_BYTES; at++)
		name[at] = settings.name[at];
	/* This fails if the controller is no longer registered; the connection then keeps its own. */
	bpf_setsockopt(context, IPPROTO_TCP, TCP_CONGESTION, name, NAME_BYTES);
	return 1;
}
