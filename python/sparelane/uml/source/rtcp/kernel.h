/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The replacement of the header of this name for BPF, for building the program `rtcp` into the kernel. It has the
 * kernel's own types, and operations are plain functions.
 */
#ifndef SPARELANE_KERNEL_H
#define SPARELANE_KERNEL_H

#include <linux/tcp.h>
#include <net/tcp.h>

/* A flag of `cong_control` that the kernel does not export (net/ipv4/tcp_input.c). */
#define FLAG_SYN_ACKED 0x10

/* The settings are written once, when the kernel starts. */
#define CONSTANT static
#define ALWAYS_INLINE __always_inline
#define LOOP for

#define OPERATION1(kind, name, member, type1, a1) static kind name(type1 a1)
#define OPERATION2(kind, name, member, type1, a1, type2, a2) static kind name(type1 a1, type2 a2)
#define OPERATION4(kind, name, member, type1, a1, type2, a2, type3, a3, type4, a4) \
	static kind name(type1 a1, type2 a2, type3 a3, type4 a4)

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return tcp_sk(sk);
}

static __always_inline void *private_of(struct sock *sk)
{
	return inet_csk_ca(sk);
}

/* This kernel has no cgroups. */
static __always_inline u64 cgroup_of(struct sock *sk)
{
	return 0;
}

#endif
