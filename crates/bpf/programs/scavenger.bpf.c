// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * A scavenger: LEDBAT++, which uses only the capacity that others leave, and marks its packets as lower effort.
 *
 * Source: draft-irtf-iccrg-ledbat-plus-plus-01. The window law is that of crates/cc/src/algos/ledbat_plus_plus.rs, with
 * which tests compare this program. Lower effort (LE) is DSCP 1 (RFC 8622). Windows are in bytes and changes of the
 * window in segments, both in Q16.
 */
#include "kernel.h"
#include "watch.h"

/* LEAST_GAIN is the largest divisor of the gain. The next slowdown comes after 9 times the duration of the last one. */
enum { MOST_MINUTES = 16, MOST_SAMPLES = 16, LEAST_WINDOW = 2, LEAST_GAIN = 16, BETWEEN_SLOWDOWNS = 9 };
enum { SOL_IP = 0, SOL_SOCKET = 1, SOL_IPV6 = 41, IP_TOS = 1, SO_PRIORITY = 12, IPV6_TCLASS = 67 };

#define MINUTE_US 60000000ULL

CONSTANT struct {
	u64 target_us;
	u64 decrease_q16;
	u64 initial_window;
	u64 initial_ssthresh;
	/* The numbers of minutes and samples in the delay filters. */
	u64 history;
	u64 filter;
	/* Whether to mark sockets, with which traffic-class byte and SO_PRIORITY. */
	u64 marks;
	u64 traffic_class;
	u64 priority;
} settings = {};

/* Stages: initial slow start, congestion avoidance, slowdown, and slow start after a slowdown. */
enum { START = 0, AVOID = 1, SLOW = 2, RETURN = 3 };

/* The state of a connection. */
struct scavenger {
	u64 cwnd_q16;
	u64 ssthresh_bytes;
	u64 cwnd_before_q16;
	u64 ssthresh_before_bytes;
	/* The start of the last slowdown, and the end of the current stage. */
	u64 since_us;
	u64 until_us;
	u64 minute;
	/* The change of the window per round trip in segments, and whether it is a decrease. */
	u64 change_q16;
	u32 minima_us[MOST_MINUTES];
	u32 samples_us[MOST_SAMPLES];
	u32 minutes;
	u32 count;
	u32 queuing_us;
	u32 base_us;
	u32 gain;
	u32 acked;
	u32 connection;
	u8 stage;
	u8 shrinks;
	u8 state;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct scavenger);
} states SEC(".maps");

static ALWAYS_INLINE struct scavenger *state_of(struct sock *sk)
{
	return bpf_sk_storage_get(&states, sk, 0, 0);
}

static ALWAYS_INLINE u64 mss_of(struct sock *sk)
{
	u32 mss = tcp_of(sk)->mss_cache;

	return mss ? mss : 1;
}

/* Sets TCP's window in whole segments, at least one. */
static ALWAYS_INLINE void set_window(struct sock *sk, struct scavenger *it)
{
	u64 segments = (it->cwnd_q16 >> 16) / mss_of(sk);

	tcp_of(sk)->snd_cwnd = segments ? (u32)segments : 1;
	tcp_of(sk)->snd_ssthresh = (u32)(it->ssthresh_bytes / mss_of(sk));
}

static ALWAYS_INLINE void report(struct sock *sk, struct scavenger *it, u32 event, long rtt_us)
{
	u64 values[SAMPLE_VALUES] = { it->cwnd_q16 >> 16, it->ssthresh_bytes, it->queuing_us, it->base_us, it->gain, it->stage };

	tell(sk, it->connection, event, rtt_us, values);
}

/*
 * Adds a sample of the round trip. The queuing delay is the minimum of the last samples less the minimum of the last
 * minutes (RFC 6817 section 2.4.2).
 */
static ALWAYS_INLINE void measure(struct scavenger *it, u64 now_us, u32 rtt_us)
{
	u64 minute = now_us / MINUTE_US, history = settings.history ? settings.history : 1;
	u64 filter = settings.filter ? settings.filter : 1;
	u32 base = ~0U, current = ~0U;

	if (it->minutes == 0 || minute != it->minute) {
		it->minima_us[(it->minutes % history) & (MOST_MINUTES - 1)] = rtt_us;
		it->minutes += 1;
		it->minute = minute;
	} else {
		u32 *least = &it->minima_us[((it->minutes - 1) % history) & (MOST_MINUTES - 1)];

		if (rtt_us < *least)
			*least = rtt_us;
	}
	it->samples_us[(it->count % filter) & (MOST_SAMPLES - 1)] = rtt_us;
	it->count += 1;
	LOOP (u32 at = 0; at < MOST_MINUTES; at++) {
		if (at < it->minutes && at < history && it->minima_us[at] < base)
			base = it->minima_us[at];
	}
	LOOP (u32 at = 0; at < MOST_SAMPLES; at++) {
		if (at < it->count && at < filter && it->samples_us[at] < current)
			current = it->samples_us[at];
	}
	it->base_us = base;
	it->queuing_us = current > base ? current - base : 0;
}

/* Advances from stage to stage (section 4.4). */
static ALWAYS_INLINE void advance(struct scavenger *it, u64 now_us, u64 two_round_trips_us, u64 mss)
{
	u64 cwnd = it->cwnd_q16 >> 16, least = LEAST_WINDOW * mss;

	if (it->stage == START && 4 * (u64)it->queuing_us > 3 * settings.target_us) {
		if (cwnd < it->ssthresh_bytes)
			it->ssthresh_bytes = cwnd;
		it->stage = AVOID;
		it->until_us = now_us + two_round_trips_us;
	} else if (it->stage == START && cwnd >= it->ssthresh_bytes) {
		it->stage = AVOID;
		it->until_us = now_us + two_round_trips_us;
	} else if (it->stage == AVOID && now_us >= it->until_us) {
		it->ssthresh_bytes = cwnd > least ? cwnd : least;
		if (cwnd > least)
			it->cwnd_q16 = (least << 16) | (it->cwnd_q16 & 0xffff);
		it->stage = SLOW;
		it->since_us = now_us;
		it->until_us = now_us + two_round_trips_us;
	} else if (it->stage == SLOW && now_us >= it->until_us) {
		it->stage = RETURN;
	} else if (it->stage == RETURN && cwnd >= it->ssthresh_bytes) {
		it->stage = AVOID;
		it->until_us = now_us + (now_us - it->since_us) * BETWEEN_SLOWDOWNS;
	}
}

/* Computes the change of the window per round trip (sections 4.2 and 4.3). */
static ALWAYS_INLINE void compute_change(struct scavenger *it, u64 mss)
{
	u64 target = settings.target_us ? settings.target_us : 1, base = it->base_us ? it->base_us : 1;
	u64 gain = (2 * target + base - 1) / base, segments_q16, excess_q16, less_q16;

	if (gain < 1)
		gain = 1;
	if (gain > LEAST_GAIN)
		gain = LEAST_GAIN;
	it->gain = (u32)gain;
	it->shrinks = 0;
	it->change_q16 = it->stage == AVOID ? (1 << 16) / gain : 0;
	if (it->stage != AVOID || it->queuing_us <= target)
		return;
	segments_q16 = it->cwnd_q16 / mss;
	excess_q16 = ((it->queuing_us - target) << 16) / target;
	if (excess_q16 > 1 << 20)
		excess_q16 = 1 << 20;
	less_q16 = (segments_q16 >> 8) * excess_q16 >> 8;
	if (less_q16 >> 39)
		less_q16 = 1ULL << 39;
	less_q16 = less_q16 * settings.decrease_q16 >> 16;
	if (less_q16 <= it->change_q16) {
		it->change_q16 -= less_q16;
		return;
	}
	less_q16 -= it->change_q16;
	if (less_q16 > segments_q16 / 2)
		less_q16 = segments_q16 / 2;
	it->change_q16 = less_q16;
	it->shrinks = 1;
}

/* Adds to the window, but keeps it above its minimum. */
static ALWAYS_INLINE void add(struct scavenger *it, u64 bytes_q16, u64 mss)
{
	u64 least_q16 = LEAST_WINDOW * mss << 16;

	it->cwnd_q16 += bytes_q16;
	if (it->cwnd_q16 < least_q16)
		it->cwnd_q16 = least_q16 | (it->cwnd_q16 & 0xffff);
}

/* Applies the share of the change per round trip that the acknowledged bytes are of the window. */
static ALWAYS_INLINE void change(struct scavenger *it, u64 acked_bytes, u64 mss)
{
	u64 cwnd = it->cwnd_q16 >> 16, bytes_q16, least_q16 = LEAST_WINDOW * mss << 16;

	if (cwnd == 0)
		cwnd = 1;
	if (acked_bytes > cwnd)
		acked_bytes = cwnd;
	/* Large products are divided first, to stay within 64 bits; small ones last, to keep precision. */
	if (it->change_q16 * mss >> 38)
		bytes_q16 = it->change_q16 * mss / cwnd * acked_bytes;
	else
		bytes_q16 = it->change_q16 * mss * acked_bytes / cwnd;
	if (!it->shrinks)
		add(it, bytes_q16, mss);
	else if (it->cwnd_q16 > least_q16 + bytes_q16)
		it->cwnd_q16 -= bytes_q16;
	else
		it->cwnd_q16 = least_q16;
}

static ALWAYS_INLINE void set_option(struct sock *sk, int level, int name, u64 value)
{
	int given = (int)value;

	bpf_setsockopt(sk, level, name, &given, sizeof given);
}

OPERATION1(void, scavenger_init, init, struct sock *, sk)
{
	struct scavenger *it = bpf_sk_storage_get(&states, sk, 0, 1);
	struct tcp_sock *tp = tcp_of(sk);
	u64 mss = mss_of(sk);

	if (!it)
		return;
	it->connection = next_connection();
	it->cwnd_q16 = settings.initial_window * mss << 16;
	it->ssthresh_bytes = settings.initial_ssthresh > 1 << 24 ? 1ULL << 46 : settings.initial_ssthresh * mss;
	it->gain = LEAST_GAIN;
	it->acked = tp->snd_una;
	set_window(sk, it);
	if (!settings.marks)
		return;
	/* Setting the traffic class also sets a priority, so the priority is set after it. */
	if (sk->__sk_common.skc_family == AF_INET)
		set_option(sk, SOL_IP, IP_TOS, settings.traffic_class);
	else
		set_option(sk, SOL_IPV6, IPV6_TCLASS, settings.traffic_class);
	set_option(sk, SOL_SOCKET, SO_PRIORITY, settings.priority);
}

OPERATION4(void, scavenger_acknowledged, cong_control, struct sock *, sk, u32, ack, int, flag, const struct rate_sample *, rs)
{
	struct scavenger *it = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);
	u64 mss = mss_of(sk), now_us = tp->tcp_mstamp, acked, delivered;

	if (!it || (flag & FLAG_SYN_ACKED))
		return;
	acked = (u32)(tp->snd_una - it->acked);
	it->acked = tp->snd_una;
	delivered = (u64)rs->acked_sacked * mss;
	if (rs->rtt_us > 0)
		measure(it, now_us, (u32)rs->rtt_us);
	if (it->count == 0 || it->state == TCP_CA_Recovery)
		goto done;
	if (it->state != TCP_CA_Loss)
		advance(it, now_us, 2 * (u64)(tp->srtt_us >> 3), mss);
	compute_change(it, mss);
	if (it->shrinks) {
		change(it, acked, mss);
		if (it->ssthresh_bytes > it->cwnd_q16 >> 16)
			it->ssthresh_bytes = it->cwnd_q16 >> 16;
		if (it->ssthresh_bytes < LEAST_WINDOW * mss)
			it->ssthresh_bytes = LEAST_WINDOW * mss;
	}
	/* The window grows only if it limited the sender. */
	if (acked > 0 && (BIT_FIELD(tp, is_cwnd_limited) || tp->snd_cwnd < 2 * tp->max_packets_out)) {
		u64 counted = acked < delivered ? acked : delivered;

		if (it->cwnd_q16 >> 16 < it->ssthresh_bytes) {
			if (it->stage != SLOW) {
				add(it, ((counted < mss ? counted : mss) << 16) / (it->gain ? it->gain : 1), mss);
				if (it->cwnd_q16 >> 16 > it->ssthresh_bytes)
					it->cwnd_q16 = (it->ssthresh_bytes << 16) | (it->cwnd_q16 & 0xffff);
			}
		} else if (!it->shrinks && it->change_q16) {
			change(it, counted, mss);
		}
	}
done:
	set_window(sk, it);
	if (watchers)
		report(sk, it, ON_ACKNOWLEDGMENT, rs->rtt_us);
}

OPERATION2(void, scavenger_state, set_state, struct sock *, sk, u8, state)
{
	struct scavenger *it = state_of(sk);
	u64 mss = mss_of(sk), least = LEAST_WINDOW * mss, cwnd;

	if (!it)
		return;
	cwnd = it->cwnd_q16 >> 16;
	if (state == TCP_CA_Loss && it->state == TCP_CA_Loss) {
		it->cwnd_q16 = mss << 16;
	} else if (state == TCP_CA_Loss || (state >= TCP_CA_CWR && it->state < TCP_CA_CWR)) {
		it->cwnd_before_q16 = it->cwnd_q16;
		it->ssthresh_before_bytes = it->ssthresh_bytes;
		it->ssthresh_bytes = cwnd / 2 > least ? cwnd / 2 : least;
		if (state == TCP_CA_Loss)
			it->cwnd_q16 = mss << 16;
		else if (it->ssthresh_bytes < cwnd)
			it->cwnd_q16 = it->ssthresh_bytes << 16;
	}
	it->state = state;
	set_window(sk, it);
	if (watchers && state >= TCP_CA_CWR)
		report(sk, it, ON_CONGESTION, 0);
}

OPERATION1(u32, scavenger_ssthresh, ssthresh, struct sock *, sk)
{
	return tcp_of(sk)->snd_ssthresh;
}

/* The last reduction was spurious: restores window and threshold. */
OPERATION1(u32, scavenger_undo, undo_cwnd, struct sock *, sk)
{
	struct scavenger *it = state_of(sk);

	if (!it)
		return tcp_of(sk)->snd_cwnd;
	if (it->cwnd_before_q16 > it->cwnd_q16)
		it->cwnd_q16 = it->cwnd_before_q16;
	if (it->ssthresh_before_bytes > it->ssthresh_bytes)
		it->ssthresh_bytes = it->ssthresh_before_bytes;
	set_window(sk, it);
	return tcp_of(sk)->snd_cwnd;
}

OPERATION1(void, scavenger_release, release, struct sock *, sk)
{
	struct scavenger *it = state_of(sk);

	if (it && watchers)
		report(sk, it, ON_END, 0);
}
