/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * What a program tells whoever watches: one sample for each acknowledgment, and for each departure where gaps are its affair.
 * While nobody watches, that costs one load and one branch.
 */
#ifndef SPARELANE_WATCH_H
#define SPARELANE_WATCH_H

#include "kernel.h"

enum { AF_INET = 2, SAMPLE_VALUES = 6, SAMPLES_KEPT = 65536 };

/* What a sample is of. */
enum { ON_ACKNOWLEDGMENT = 0, ON_DEPARTURE = 1, ON_CONGESTION = 2, ON_END = 3 };

/* Samples are read by this layout (`telemetry.rs`). */
struct sample {
	u64 time_ns;
	u32 connection;
	u16 local_port;
	u16 remote_port;
	u32 remote[4];
	u32 is_ipv6;
	u32 event;
	u32 cwnd_segments;
	u32 rtt_us;
	/* Of the controller's own choice; the loader knows their names. */
	u64 values[SAMPLE_VALUES];
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_QUEUE);
	MAP_NUMBER(max_entries, SAMPLES_KEPT);
	MAP_TYPE(value, struct sample);
} samples SEC(".maps");

/*
 * Until when the watchers are told, by the monotonic clock; 0 where nobody watches. They renew it as often as they fetch samples,
 * so that one who was killed is not told for ever. It has a map of its own, which nothing else is in.
 */
u64 watchers SEC(".data.watch") = 0;

/* Connections so far, and samples, so that gaps in the row of samples show. */
u64 connections = 0;
u64 samples_told = 0;

static ALWAYS_INLINE u32 next_connection(void)
{
	return (u32)__sync_fetch_and_add(&connections, 1) + 1;
}

static ALWAYS_INLINE void tell(struct sock *sk, u32 connection, u32 event, long rtt_us, const u64 *values)
{
	struct sample sample = {};

	sample.time_ns = bpf_ktime_get_ns();
	if (sample.time_ns > watchers) {
		/* From here on that costs one load and one branch again. */
		watchers = 0;
		return;
	}
	sample.connection = connection;
	sample.local_port = sk->__sk_common.skc_num;
	sample.remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	if (sk->__sk_common.skc_family == AF_INET) {
		sample.remote[0] = sk->__sk_common.skc_daddr;
	} else {
		sample.is_ipv6 = 1;
		for (int word = 0; word < 4; word++)
			sample.remote[word] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[word];
	}
	sample.event = event;
	sample.cwnd_segments = tcp_of(sk)->snd_cwnd;
	sample.rtt_us = rtt_us > 0 ? (u32)rtt_us : 0;
	for (int value = 0; value < SAMPLE_VALUES; value++)
		sample.values[value] = values[value];
	__sync_fetch_and_add(&samples_told, 1);
	/* Where nobody has fetched them, the oldest give way. */
	bpf_map_push_elem(&samples, &sample, BPF_EXIST);
}

#endif
