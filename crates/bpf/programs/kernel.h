/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The types and helpers of the kernel that the programs use.
 *
 * The types contain only the members that are read or written. libbpf adjusts the offset of each access to the running
 * kernel when it loads a program (CO-RE), so order and padding need not agree with the kernel's.
 *
 * With SPARELANE_TWIN the same programs are compiled for the host, and `twin.h` replaces the kernel.
 */
#ifndef SPARELANE_KERNEL_H
#define SPARELANE_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;

#ifdef SPARELANE_TWIN
#define RELOCATED
#else
#define RELOCATED __attribute__((preserve_access_index))
#endif

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
} RELOCATED;

struct sock_common {
	u32 skc_daddr;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
} RELOCATED;

struct kernfs_node {
	u64 id;
} RELOCATED;

struct cgroup {
	struct kernfs_node *kn;
} RELOCATED;

struct sock_cgroup_data {
	struct cgroup *cgroup;
} RELOCATED;

struct sock {
	struct sock_common __sk_common;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	u32 sk_priority;
	struct sock_cgroup_data sk_cgrp_data;
} RELOCATED;

struct inet_sock {
	struct sock sk;
} RELOCATED;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u64 icsk_ca_priv[13];
} RELOCATED;

struct tcp_options_received {
	u32 rcv_tsval;
	u32 rcv_tsecr;
} RELOCATED;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 sacked_out;
	u32 packets_out;
	u32 data_segs_out;
	u32 srtt_us;
	u32 snd_nxt;
	u32 snd_una;
	u32 write_seq;
	u32 max_packets_out;
	u64 bytes_acked;
	u64 tcp_wstamp_ns;
	u64 tcp_clock_cache;
	u64 tcp_mstamp;
	struct tcp_options_received rx_opt;
	u8 tcp_usec_ts : 1;
	u8 is_cwnd_limited : 1;
} RELOCATED;

struct rate_sample {
	long rtt_us;
	u32 acked_sacked;
} RELOCATED;

/* States of `set_state`, and a flag of `cong_control` (include/net/tcp.h, net/ipv4/tcp_input.c). */
enum { TCP_CA_Open = 0, TCP_CA_Disorder = 1, TCP_CA_CWR = 2, TCP_CA_Recovery = 3, TCP_CA_Loss = 4 };
#define FLAG_SYN_ACKED 0x10
/* sk_pacing_status (include/net/sock.h). */
enum { SK_PACING_NONE = 0, SK_PACING_NEEDED = 1 };

#ifdef SPARELANE_TWIN
#include "../twins/twin.h"
#else

/* Settings that the loader writes before it loads a program. The verifier treats them as constants. */
#define CONSTANT const volatile

#define SEC(name) __attribute__((section(name), used))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOT_INLINE __attribute__((noinline))

enum { BPF_MAP_TYPE_QUEUE = 22, BPF_MAP_TYPE_SK_STORAGE = 24, BPF_F_NO_PREALLOC = 1, BPF_EXIST = 2 };

/* Helpers of the kernel, which are called by their numbers (include/uapi/linux/bpf.h). */
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_setsockopt)(void *socket, int level, int name, void *value, int length) = (void *)49;
static long (*bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static void *(*bpf_sk_storage_get)(void *map, void *socket, void *value, u64 flags) = (void *)107;

/*
 * The operations of a controller that the programs implement. libbpf finds their places in the kernel's structure by
 * name. The controller's name comes first, because the loader writes it to the beginning (`src/libbpf/objects.rs`).
 */
struct tcp_congestion_ops {
	char name[16];
	u32 flags;
	void (*init)(u64 *given);
	void (*release)(u64 *given);
	void (*cong_control)(u64 *given);
	void (*set_state)(u64 *given);
	u32 (*ssthresh)(u64 *given);
	u32 (*undo_cwnd)(u64 *given);
	u32 (*min_tso_segs)(u64 *given);
};

/* Unprivileged processes can choose the controller (`net.ipv4.tcp_allowed_congestion_control`). */
enum { TCP_CONG_NON_RESTRICTED = 1 };

/*
 * The table of a program's operations, registered through a link. Its name identifies the program among the kernel's
 * maps. It is in a file of its own, because builds for the host and for User-Mode Linux compile the programs without
 * it.
 */
#define CONTROLLER(program) SEC(".struct_ops.link") struct tcp_congestion_ops sl_##program

/* A map is declared by the types of its members, which libbpf reads. */
#define MAP_NUMBER(name, number) int(*name)[number]
#define MAP_TYPE(name, kind) kind *name

/*
 * Defines an operation of tcp_congestion_ops. The kernel passes the arguments as an array of 64-bit numbers. The name
 * of the section says which operation it is.
 */
#define OPERATION1(kind, name, member, type1, a1)                                                                      \
	static ALWAYS_INLINE kind name##_with(type1 a1);                                                               \
	SEC("struct_ops/" #member) kind name(u64 *given)                                                               \
	{                                                                                                              \
		return name##_with((type1)given[0]);                                                                   \
	}                                                                                                              \
	static ALWAYS_INLINE kind name##_with(type1 a1)

#define OPERATION2(kind, name, member, type1, a1, type2, a2)                                                           \
	static ALWAYS_INLINE kind name##_with(type1 a1, type2 a2);                                                     \
	SEC("struct_ops/" #member) kind name(u64 *given)                                                               \
	{                                                                                                              \
		return name##_with((type1)given[0], (type2)given[1]);                                                  \
	}                                                                                                              \
	static ALWAYS_INLINE kind name##_with(type1 a1, type2 a2)

#define OPERATION4(kind, name, member, type1, a1, type2, a2, type3, a3, type4, a4)                                     \
	static ALWAYS_INLINE kind name##_with(type1 a1, type2 a2, type3 a3, type4 a4);                                 \
	SEC("struct_ops/" #member) kind name(u64 *given)                                                               \
	{                                                                                                              \
		return name##_with((type1)given[0], (type2)given[1], (type3)given[2], (type4)given[3]);                \
	}                                                                                                              \
	static ALWAYS_INLINE kind name##_with(type1 a1, type2 a2, type3 a3, type4 a4)

/* Reads a member that is a bit-field. libbpf sets its offset, size and shifts at load time. */
enum { FIELD_BYTE_OFFSET = 0, FIELD_BYTE_SIZE = 1, FIELD_LSHIFT_U64 = 4, FIELD_RSHIFT_U64 = 5 };
#define BIT_FIELD(object, member)                                                                                      \
	({                                                                                                             \
		const u8 *at = (const u8 *)(object) + __builtin_preserve_field_info((object)->member, FIELD_BYTE_OFFSET); \
		u64 found = 0;                                                                                         \
		/* The barrier stops the compiler from merging the loads into one with an offset of its own. */        \
		asm volatile("" : "=r"(at) : "0"(at));                                                                 \
		switch (__builtin_preserve_field_info((object)->member, FIELD_BYTE_SIZE)) {                            \
		case 1: found = *at; break;                                                                            \
		case 2: found = *(const u16 *)at; break;                                                               \
		case 4: found = *(const u32 *)at; break;                                                               \
		case 8: found = *(const u64 *)at; break;                                                               \
		}                                                                                                      \
		found <<= __builtin_preserve_field_info((object)->member, FIELD_LSHIFT_U64);                           \
		found >> __builtin_preserve_field_info((object)->member, FIELD_RSHIFT_U64);                            \
	})

/* The kernel allows these helpers only to programs under its own licence, which is one of the two above. */
char kernel_license[] SEC("license") = "GPL";

#endif

/* A loop that the compiler does not unroll, which would only make programs longer. */
#ifdef __clang__
#define LOOP _Pragma("clang loop unroll(disable)") for
#else
#define LOOP for
#endif

static ALWAYS_INLINE struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static ALWAYS_INLINE void *private_of(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* Returns the ID of a socket's cgroup. */
static ALWAYS_INLINE u64 cgroup_of(struct sock *sk)
{
	return sk->sk_cgrp_data.cgroup->kn->id;
}

#endif
