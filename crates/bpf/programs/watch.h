/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Telemetry of a program: one sample for each acknowledgment and, in programs that control gaps, for each departure.
 * Without a watcher, the cost is one load and one branch.
 */
#ifndef SPARELANE_WATCH_H
#define SPARELANE_WATCH_H

#include "kernel.h"

enum { AF_INET = 2, SAMPLE_VALUES = 6, SAMPLES_KEPT = 65536 };

/* The event of a sample. */
enum { ON_ACKNOWLEDGMENT = 0, ON_DEPARTURE = 1, ON_CONGESTION = 2, ON_END = 3 };

/* The loader reads samples in this layout (`telemetry.rs`). */
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
	/* Quantities of the controller; the loader knows their names. */
	u64 values[SAMPLE_VALUES];
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_QUEUE);
	MAP_NUMBER(max_entries, SAMPLES_KEPT);
	MAP_TYPE(value, struct sample);
} samples SEC(".maps");

/*
 * The end of the watchers' lease on the monotonic clock, in nanoseconds; 0 without a watcher. Watchers renew it when
 * they fetch samples, so it expires if they are killed. It is the only variable in its section, which becomes a map of
 * its own.
 */
u64 watchers SEC(".data.watch") = 0;

/* The numbers of connections and of recorded samples. A watcher that counts its samples notices lost ones. */
u64 connections = 0;
u64 samples_told = 0;

/* Returns the number of a new connection, from 1. */
static ALWAYS_INLINE u32 next_connection(void)
{
	return (u32)__sync_fetch_and_add(&connections, 1) + 1;
}

/* Records a sample, unless the lease has expired. */
static ALWAYS_INLINE void tell(struct sock *sk, u32 connection, u32 event, long rtt_us, const u64 *values)
{
	struct sample sample = {};

	sample.time_ns = bpf_ktime_get_ns();
	if (sample.time_ns > watchers) {
		/* Callers check for zero first, and no longer call this function. */
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
	/* If the queue is full, this replaces the oldest sample. */
	bpf_map_push_elem(&samples, &sample, BPF_EXIST);
}

#endif
