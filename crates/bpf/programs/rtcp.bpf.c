// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * RTCP, "Regulated TCP": a counter per flow and an estimate of congestion double or halve the window.
 *
 * Source: "Regulated TCP" (the RTCP paper), eqs. (1) and (6) to (10). Units, readings and closed forms are those of
 * crates/cc/src/algos/rtcp.rs, which this program is tested against: H and w in bytes, D in milliseconds, alpha in bytes
 * per kilobyte, delta in kilobytes per millisecond.
 *
 * Where it differs from there:
 * - All numbers are integers: bytes and kilobytes in Q16, shares in Q32.
 * - Congestion is the rise of the round trip alone, as in the paper's own Linux module (section IV-A): `interface = "delay"`.
 * - The kernel counts windows in segments: the window is kept in bytes, and its whole segments are what TCP gets.
 * - A flow's size is what its application has written so far, since the kernel knows no more: a flow is urgent until that
 *   passes `urgent_below`.
 */
#include "kernel.h"
#include "fixed.h"
#include "watch.h"

enum { WEIGHTS = 16, BY_NOTHING = 0, BY_SIZE = 1, BY_PRIORITY = 2, BY_PORT = 3, BY_CGROUP = 4 };

/* A weight w, and what follows from it. */
struct weight {
	/* The priority, port or cgroup that has it. */
	u64 of;
	u64 bytes_q16;
	/* H grows in a straight line up to here: w U / (U + M). */
	u64 straight_q16;
	/* U / w: by how much ln v - v falls in a microsecond. */
	u64 fall_us_q48;
	/* After so long without deliveries H is w, whatever it was. */
	u64 horizon_us;
};

CONSTANT struct {
	u64 alpha_q16;
	u64 delta_us_q16;
	u64 past_q16;
	/* M, the largest target, and the largest rate, bytes in a microsecond. */
	u64 max_rate_q16;
	u64 x_max_q16;
	u64 initial_window;
	u64 min_window;
	u64 classify;
	u64 urgent_below;
	/* The first is that of flows of no class; where sizes classify, of large flows, and the second of small ones. */
	u64 weight_count;
	struct weight weights[WEIGHTS];
} settings = {};

/* One connection; it fits into icsk_ca_priv. */
struct rtcp {
	/* H, S of eq. (8), and when H was brought up to date. */
	u64 counter_q16;
	u64 congestion_kb_q16;
	u64 updated_us;
	u64 cwnd_bytes;
	u32 base_rtt_us;
	u32 delay_us;
	u32 connection;
	u8 is_open;
	u8 state;
};

/* v after ln v - v has fallen by `fall`: Newton's method on L + e^-L = goal with L = -ln v, which is convex and rising. */
static ALWAYS_INLINE u64 still_missing_q32(u64 missing_q32, u64 fall_q32)
{
	u64 l = minus_ln_q32(missing_q32), v = missing_q32;
	u64 goal = l + v + fall_q32;

	/* The first step passes the root; all others come back towards it from above. */
	l += (fall_q32 << 20) / (((ONE_Q32 - v) >> 12) + 1);
	LOOP (int step = 0; step < 8; step++) {
		u64 excess, back;

		v = exp_minus_q32(l);
		excess = l + v > goal ? l + v - goal : 0;
		if (excess > ONE_Q32 << 8) {
			/* Far beyond the root v is nothing, and the goal itself is as good as the root. */
			l = goal;
			continue;
		}
		back = (excess << 20) / (((ONE_Q32 - v) >> 12) + 1);
		if (back < 2)
			break;
		l -= back;
	}
	return v < missing_q32 ? v : missing_q32;
}

/* H after a time without deliveries: eqs. (1) and (6) at once. */
static ALWAYS_INLINE u64 counter_after_q16(u64 counter_q16, const volatile struct weight *weight, u64 time_us)
{
	u64 left_us = time_us, part_us_q16 = 0, missing_q32, fall_q32;
	u64 all_q16 = weight->bytes_q16, straight_q16 = weight->straight_q16;

	if (counter_q16 >= all_q16)
		return counter_q16;
	if (time_us >= weight->horizon_us)
		return all_q16;
	if (counter_q16 < straight_q16) {
		u64 rate = settings.max_rate_q16, gain = rate * time_us, needed = straight_q16 - counter_q16;

		if (gain <= needed)
			return counter_q16 + gain;
		gain -= needed;
		left_us = gain / rate;
		part_us_q16 = (gain % rate << 16) / rate;
		counter_q16 = straight_q16;
	}
	missing_q32 = ONE_Q32 - (counter_q16 << 16) / (all_q16 >> 16);
	fall_q32 = (left_us * weight->fall_us_q48 + part_us_q16 * (weight->fall_us_q48 >> 16)) >> 16;
	missing_q32 = still_missing_q32(missing_q32, fall_q32);
	return all_q16 - ((missing_q32 * (all_q16 >> 16)) >> 16);
}

static ALWAYS_INLINE const volatile struct weight *weight_of(struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	u64 is = 0;

	switch (settings.classify) {
	case BY_SIZE:
		is = tp->bytes_acked + (u32)(tp->write_seq - tp->snd_una);
		return &settings.weights[is < settings.urgent_below ? 1 : 0];
	case BY_PRIORITY:
		is = sk->sk_priority;
		break;
	case BY_CGROUP:
		is = cgroup_of(sk);
		break;
	case BY_PORT:
		break;
	default:
		return &settings.weights[0];
	}
	LOOP (u32 at = 1; at < WEIGHTS; at++) {
		if (at >= settings.weight_count)
			break;
		if (settings.classify == BY_PORT) {
			u64 port = settings.weights[at].of;

			if (port == sk->__sk_common.skc_num || port == __builtin_bswap16(sk->__sk_common.skc_dport))
				return &settings.weights[at];
		} else if (settings.weights[at].of == is) {
			return &settings.weights[at];
		}
	}
	return &settings.weights[0];
}

static ALWAYS_INLINE void set_window(struct sock *sk, struct rtcp *rtcp, u64 cwnd_bytes)
{
	struct tcp_sock *tp = tcp_of(sk);
	u64 mss = tp->mss_cache ? tp->mss_cache : 1;
	u64 least = settings.min_window * mss, most = settings.initial_window * mss, segments;

	if (rtcp->base_rtt_us != ~0U)
		most = (settings.x_max_q16 * rtcp->base_rtt_us) >> 16;
	if (cwnd_bytes > most)
		cwnd_bytes = most;
	if (cwnd_bytes < least)
		cwnd_bytes = least;
	rtcp->cwnd_bytes = cwnd_bytes;
	segments = cwnd_bytes / mss;
	if (segments > tp->snd_cwnd_clamp)
		segments = tp->snd_cwnd_clamp;
	tp->snd_cwnd = (u32)segments;
}

static ALWAYS_INLINE void report(struct sock *sk, struct rtcp *rtcp, u32 event, long rtt_us)
{
	u64 values[SAMPLE_VALUES] = { rtcp->counter_q16, rtcp->congestion_kb_q16, rtcp->delay_us, rtcp->base_rtt_us,
				      rtcp->cwnd_bytes, weight_of(sk)->bytes_q16 };

	tell(sk, rtcp->connection, event, rtt_us, values);
}

OPERATION1(void, rtcp_init, init, struct sock *, sk)
{
	struct rtcp *rtcp = private_of(sk);
	struct tcp_sock *tp = tcp_of(sk);
	u64 first = settings.initial_window > settings.min_window ? settings.initial_window : settings.min_window;

	rtcp->counter_q16 = 0;
	rtcp->congestion_kb_q16 = 0;
	rtcp->updated_us = tp->tcp_mstamp;
	rtcp->base_rtt_us = ~0U;
	rtcp->delay_us = 0;
	rtcp->connection = next_connection();
	rtcp->is_open = 1;
	rtcp->state = TCP_CA_Open;
	set_window(sk, rtcp, first * tp->mss_cache);
}

OPERATION4(void, rtcp_acknowledged, cong_control, struct sock *, sk, u32, ack, int, flag, const struct rate_sample *, rs)
{
	struct rtcp *rtcp = private_of(sk);
	struct tcp_sock *tp = tcp_of(sk);
	u64 now_us = tp->tcp_mstamp, newly_kb_q16, counter_q16, delivered_q16;
	long rtt_us = rs->rtt_us;

	/* The handshake's round trip is of short packets: it does not count. */
	if (!rtcp->is_open || (flag & FLAG_SYN_ACKED))
		return;
	if (rtt_us > 0) {
		if (rtt_us < rtcp->base_rtt_us)
			rtcp->base_rtt_us = (u32)rtt_us;
		rtcp->delay_us = (u32)rtt_us - rtcp->base_rtt_us;
	}
	/* Eq. (8) with N = delta D. */
	newly_kb_q16 = rtcp->delay_us * settings.delta_us_q16;
	if (newly_kb_q16 > 1ULL << 46)
		newly_kb_q16 = 1ULL << 46;
	rtcp->congestion_kb_q16 =
		(settings.past_q16 * rtcp->congestion_kb_q16 + ((1 << 16) - settings.past_q16) * newly_kb_q16) >> 16;

	counter_q16 = counter_after_q16(rtcp->counter_q16, weight_of(sk), now_us - rtcp->updated_us);
	delivered_q16 = (u64)rs->acked_sacked * tp->mss_cache << 16;
	rtcp->counter_q16 = counter_q16 > delivered_q16 ? counter_q16 - delivered_q16 : 0;
	rtcp->updated_us = now_us;

	if (rtcp->state == TCP_CA_Recovery) {
		set_window(sk, rtcp, rtcp->cwnd_bytes);
	} else {
		/* Eq. (9): H < alpha S. Integers allow to divide instead, without overflow. */
		u64 alpha = settings.alpha_q16;
		int is_congested = alpha > 0 && rtcp->congestion_kb_q16 > (rtcp->counter_q16 << 16) / alpha;

		set_window(sk, rtcp, is_congested ? rtcp->cwnd_bytes / 2 : rtcp->cwnd_bytes * 2);
	}
	if (watchers)
		report(sk, rtcp, ON_ACKNOWLEDGMENT, rtt_us);
}

OPERATION2(void, rtcp_state, set_state, struct sock *, sk, u8, state)
{
	struct rtcp *rtcp = private_of(sk);
	u32 mss = tcp_of(sk)->mss_cache;

	if (!rtcp->is_open)
		return;
	/* One cut per episode: a mark that precedes a loss has cut already. */
	if (state == TCP_CA_Loss)
		set_window(sk, rtcp, rtcp->cwnd_bytes < mss ? rtcp->cwnd_bytes : mss);
	else if ((state == TCP_CA_Recovery || state == TCP_CA_CWR) && rtcp->state < TCP_CA_CWR)
		set_window(sk, rtcp, rtcp->cwnd_bytes / 2);
	rtcp->state = state;
	if (watchers && state >= TCP_CA_CWR)
		report(sk, rtcp, ON_CONGESTION, 0);
}

/* The window is cut in `rtcp_state`: these two leave everything as it is. */
OPERATION1(u32, rtcp_ssthresh, ssthresh, struct sock *, sk)
{
	return tcp_of(sk)->snd_ssthresh;
}

OPERATION1(u32, rtcp_undo, undo_cwnd, struct sock *, sk)
{
	return tcp_of(sk)->snd_cwnd;
}

OPERATION1(void, rtcp_release, release, struct sock *, sk)
{
	struct rtcp *rtcp = private_of(sk);

	if (watchers && rtcp->is_open)
		report(sk, rtcp, ON_END, 0);
	rtcp->is_open = 0;
}
