// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Chooses the controller of the connections of a cgroup: when they are opened, and where others open them.
 */
#include "kernel.h"

/* The operation is the first member of what the kernel hands over (include/uapi/linux/bpf.h). */
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
	/* Where the controller is gone, the connection keeps the one that it has. */
	bpf_setsockopt(context, IPPROTO_TCP, TCP_CONGESTION, name, NAME_BYTES);
	return 1;
}
