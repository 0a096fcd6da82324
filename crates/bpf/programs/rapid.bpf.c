// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * TCP RAPID: every packet has its own gap, with which it probes the available bandwidth. The average rate follows the
 * estimates.
 *
 * Source: Yin, Kaur, Smith, "TCP Rapid: From Theory to Practice", INFOCOM 2017. The algorithms, the defaults, and the
 * choices where the paper is ambiguous are those of crates/cc/src/algos/rapid.rs and its parts. Tests compare both.
 *
 * Differences in the kernel:
 * - TCP does the pacing (SK_PACING_NEEDED) and calls `min_tso_segs` before each paced packet. The gap after that packet
 *   is set there, as the rate at which the packet would take this time. Interfaces must send packets one by one
 *   (gso_max_segs 1).
 * - TCP sends the first ten segments of a connection without pacing. P-streams begin after them.
 * - Times come from TCP timestamps in microseconds (a feature of routes, since Linux 6.7). An acknowledgment contains
 *   the time at which the packet left (TSecr) and the time at which the acknowledgment was made (TSval), so only the
 *   probed rates have to be stored. The paper's receiver records arrivals instead. Without them, this program is its
 *   variant V3 (Table II): the receiver's processing delays count as queueing. Send gaps are the actual ones, while
 *   the reference uses the intended ones: the kernel shortens a gap by up to half to make up for lateness.
 * - While a segment is missing, acknowledgments do not identify single packets. P-streams with packets that were sent
 *   before the repair are skipped. A retransmission takes a gap, but is not part of a p-stream.
 */
#include "kernel.h"
#include "fixed.h"
#include "watch.h"
#include "estimator.h"

enum { RATES = 16, RUNS = 1024, RUNS_PER_ACK = 128, UNPACED_SEGMENTS = 10 };

CONSTANT struct {
	/* The packets of a p-stream, the packets at each rate, and the ratio of each rate to the average. */
	u64 packets;
	u64 packets_per_rate;
	u64 multiples_q16[RATES];
	u64 tau_us;
	u64 eta_q16;
	u64 gamma;
	u64 window;
	u64 initial_bps;
	u64 lowest_bps;
	u64 highest_bps;
	u64 starts_after_timeout;
	u64 most_lateness_ns;
	struct estimator_settings estimator;
} settings = {};

/* Consecutive packets that probe one rate, from the sequence number `first` to that of the next run. */
struct run {
	u64 rate_bps;
	/* The sum of all gaps of the p-stream, if one begins with this run. */
	u64 duration_ns;
	u32 first;
	u8 begins_stream;
	u8 is_broken;
};

/* The state of a connection. */
struct rapid {
	/* The rate adaptor: R_avg, and the estimates since its last update. */
	u64 rate_bps;
	u64 sum_bps;
	u64 count;
	u64 duration_ns;
	u64 rate_before_timeout_bps;
	/* The next packet to leave: its sequence number, its index in its p-stream, and the rate that it probes. */
	u32 pending;
	u32 index;
	u64 probed_bps;
	u64 next_gap_ns;
	/* The number of runs that were begun, and of those that acknowledgments have reached. */
	u32 begun;
	u32 entered;
	/*
	 * The first runs of two p-streams: that of the next packet to leave, and that of the last acknowledged packet.
	 */
	u32 stream;
	u32 acked_stream;
	u32 acked;
	/* P-streams with a packet before this sequence number are skipped. */
	u32 broken_before;
	u32 last_sent_us;
	u32 last_received_us;
	u8 has_pending;
	u8 has_last;
	u8 has_broken;
	u8 in_loss;
	u8 in_stream;
	u8 has_microseconds;
	u32 connection;
	u64 estimate_bps;
	u64 judged;
	u64 skipped;
	u64 departed_ns;
	struct estimator_settings estimator_settings;
	struct estimator estimator;
	struct run runs[RUNS];
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct rapid);
} states SEC(".maps");

/* The number of connections whose route lacks microsecond time stamps. They keep their initial rate. */
u64 without_microseconds = 0;

/* Compares sequence numbers, which wrap around. */
static ALWAYS_INLINE int is_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

static ALWAYS_INLINE struct run *run_of(struct rapid *rapid, u32 number)
{
	return &rapid->runs[number & (RUNS - 1)];
}

/* Sets R_avg within its bounds, and drops the estimates gathered for the next update. */
static ALWAYS_INLINE void set_rate(struct rapid *rapid, u64 rate_bps)
{
	if (rate_bps < settings.lowest_bps)
		rate_bps = settings.lowest_bps;
	if (rate_bps > settings.highest_bps)
		rate_bps = settings.highest_bps;
	rapid->rate_bps = rate_bps;
	rapid->sum_bps = 0;
	rapid->count = 0;
	rapid->duration_ns = 0;
}

/* Updates R_avg with the estimate of a p-stream that lasted `duration_ns` (the rate adaptor). */
static ALWAYS_INLINE void adapt(struct rapid *rapid, u64 estimate_bps, u64 duration_ns)
{
	u64 mean_bps, gain_q16, tau_us = settings.tau_us ? settings.tau_us : 1;

	rapid->sum_bps += estimate_bps;
	rapid->count += 1;
	rapid->duration_ns += duration_ns;
	if (rapid->count < settings.gamma && rapid->duration_ns < tau_us * 1000)
		return;
	mean_bps = rapid->sum_bps / (rapid->count ? rapid->count : 1);
	if (mean_bps >= rapid->rate_bps) {
		gain_q16 = (duration_ns << 16) / (tau_us * 1000);
		if (gain_q16 >> 31)
			gain_q16 = (1ULL << 31) - 1;
		set_rate(rapid, rapid->rate_bps + scaled_q16(mean_bps - rapid->rate_bps, gain_q16));
	} else {
		u64 eta_q16 = settings.eta_q16 ? settings.eta_q16 : 1 << 16;

		set_rate(rapid, rapid->rate_bps - ((rapid->rate_bps - mean_bps) << 16) / eta_q16);
	}
}

/* Returns the rate that packet `index` of a p-stream probes. */
static ALWAYS_INLINE u64 rate_at(struct rapid *rapid, u32 index)
{
	u64 per_rate = settings.packets_per_rate ? settings.packets_per_rate : 1;

	return scaled_q16(rapid->rate_bps, settings.multiples_q16[(index / per_rate) & (RATES - 1)]);
}

/* Returns the transmission time of a packet at a rate, in nanoseconds. */
static ALWAYS_INLINE u64 gap_ns(u64 wire_bytes, u64 rate_bps)
{
	return wire_bytes * 8 * 1000000000 / (rate_bps ? rate_bps : 1);
}

static ALWAYS_INLINE void report(struct sock *sk, struct rapid *rapid, u32 event, long rtt_us, u64 kept_ns)
{
	u64 values[SAMPLE_VALUES] = { rapid->rate_bps, rapid->estimate_bps, rapid->next_gap_ns,
				      rapid->judged, rapid->skipped, kept_ns };

	tell(sk, rapid->connection, event, rtt_us, values);
}

static ALWAYS_INLINE struct rapid *state_of(struct sock *sk)
{
	return bpf_sk_storage_get(&states, sk, 0, 0);
}

OPERATION1(void, rapid_init, init, struct sock *, sk)
{
	struct rapid *rapid = bpf_sk_storage_get(&states, sk, 0, 1);
	struct tcp_sock *tp = tcp_of(sk);

	if (!rapid)
		return;
	rapid->connection = next_connection();
	rapid->acked = tp->snd_una;
	rapid->has_microseconds = (u8)BIT_FIELD(tp, tcp_usec_ts);
	if (!rapid->has_microseconds)
		__sync_fetch_and_add(&without_microseconds, 1);
	rapid->estimator_settings.bass_passes = settings.estimator.bass_passes;
	rapid->estimator_settings.spike_factor_q16 = settings.estimator.spike_factor_q16;
	rapid->estimator_settings.spike_floor_ns = settings.estimator.spike_floor_ns;
	rapid->estimator_settings.excursion_share_q16 = settings.estimator.excursion_share_q16;
	rapid->estimator_settings.excursion_persistence_q16 = settings.estimator.excursion_persistence_q16;
	rapid->estimator_settings.excursion_samples = settings.estimator.excursion_samples;
	set_rate(rapid, settings.initial_bps);
	rapid->rate_before_timeout_bps = rapid->rate_bps;
	tp->snd_cwnd = (u32)settings.window;
	sk->sk_pacing_rate = rapid->rate_bps / 8;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* Begins a run, and with `begins_stream` a p-stream, with the packet `first`. */
static ALWAYS_INLINE void begin_run(struct rapid *rapid, u32 first, u64 rate_bps, u8 begins_stream)
{
	struct run *run;

	if (rapid->begun - rapid->acked_stream >= RUNS) {
		/* All runs are in use. The p-streams in flight are skipped. */
		rapid->broken_before = first + 1;
		rapid->has_broken = 1;
		return;
	}
	run = run_of(rapid, rapid->begun);
	run->rate_bps = rate_bps;
	run->duration_ns = 0;
	run->first = first;
	run->begins_stream = begins_stream;
	run->is_broken = 0;
	if (begins_stream)
		rapid->stream = rapid->begun;
	rapid->begun += 1;
}

/* Called before each paced packet: sets the gap after it. */
OPERATION1(u32, rapid_departs, min_tso_segs, struct sock *, sk)
{
	struct rapid *rapid = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);
	u64 mss = tp->mss_cache, now_ns = tp->tcp_clock_cache, due_ns = tp->tcp_wstamp_ns;
	u64 wire_bytes = mss + 40, next_bps;
	u64 departs_ns = now_ns > due_ns ? now_ns : due_ns;
	u32 next, is_late;

	if (!rapid || tp->data_segs_out < UNPACED_SEGMENTS)
		return 1;
	is_late = now_ns > due_ns && now_ns - due_ns > settings.most_lateness_ns;
	if (!rapid->has_pending || tp->snd_nxt != rapid->pending) {
		/*
		 * The pending packet has left, so this call is about another one. A repeated call for it changes
		 * nothing.
		 */
		struct run *last;
		u8 begins_stream = 0;

		rapid->index += 1;
		if (!rapid->has_pending || rapid->index >= settings.packets) {
			begins_stream = 1;
		} else if (is_late) {
			/* The packet missed its gap, so its p-stream is unusable. */
			run_of(rapid, rapid->stream)->is_broken = 1;
			begins_stream = 1;
		}
		if (begins_stream) {
			rapid->index = 0;
			if (!rapid->has_pending || is_late)
				rapid->probed_bps = rate_at(rapid, 0);
		}
		rapid->has_pending = 1;
		rapid->pending = tp->snd_nxt;
		last = run_of(rapid, rapid->begun - 1);
		if (begins_stream || last->rate_bps != rapid->probed_bps)
			begin_run(rapid, rapid->pending, rapid->probed_bps, begins_stream);
		run_of(rapid, rapid->stream)->duration_ns += gap_ns(wire_bytes, rapid->probed_bps);
		next = rapid->index + 1 < settings.packets ? rapid->index + 1 : 0;
		next_bps = rate_at(rapid, next);
		if (watchers)
			report(sk, rapid, ON_DEPARTURE, 0, rapid->departed_ns ? departs_ns - rapid->departed_ns : 0);
		rapid->departed_ns = departs_ns;
		rapid->next_gap_ns = gap_ns(wire_bytes, next_bps);
		rapid->probed_bps = next_bps;
	}
	/* The kernel computes the gap from the payload alone. At this rate, it equals the gap of the whole packet. */
	if (rapid->next_gap_ns)
		sk->sk_pacing_rate = mss * 1000000000 / rapid->next_gap_ns;
	return 1;
}

/* Evaluates or skips the p-stream that begins with run `number` and is now complete. */
static ALWAYS_INLINE void judge(struct rapid *rapid, u32 number)
{
	struct run *run = run_of(rapid, number);
	u64 estimate;

	if (run->is_broken || (rapid->has_broken && is_before(run->first, rapid->broken_before))) {
		rapid->skipped += 1;
		forget(&rapid->estimator);
		return;
	}
	estimate = estimate_bps(&rapid->estimator, &rapid->estimator_settings);
	if (estimate) {
		rapid->judged += 1;
		rapid->estimate_bps = estimate;
		adapt(rapid, estimate, run->duration_ns);
	}
}

/* Advances to the last run that begins before `una`, and judges the p-streams that end on the way. */
static ALWAYS_INLINE void enter_runs(struct rapid *rapid, u32 una)
{
	LOOP (u32 turn = 0; turn < RUNS_PER_ACK; turn++) {
		struct run *run = run_of(rapid, rapid->entered);

		if (rapid->entered == rapid->begun || !is_before(run->first, una))
			break;
		if (run->begins_stream) {
			if (rapid->in_stream)
				judge(rapid, rapid->acked_stream);
			/* The packets before the first p-stream were not paced, so the gap to them is meaningless. */
			if (rapid->entered == 0)
				rapid->has_last = 0;
			rapid->in_stream = 1;
			rapid->acked_stream = rapid->entered;
		}
		rapid->entered += 1;
	}
}

OPERATION4(void, rapid_acknowledged, cong_control, struct sock *, sk, u32, ack, int, flag, const struct rate_sample *, rs)
{
	struct rapid *rapid = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);
	u32 sent_us = tp->rx_opt.rcv_tsecr, received_us = tp->rx_opt.rcv_tsval, una = tp->snd_una;

	if (!rapid)
		return;
	tp->snd_cwnd = (u32)settings.window;
	if (tp->sacked_out) {
		/* A segment is missing. No packet that was sent before its repair gives a sample. */
		rapid->broken_before = tp->snd_nxt;
		rapid->has_broken = 1;
	}
	if (una != rapid->acked && rapid->has_microseconds) {
		struct run *next;

		rapid->acked = una;
		enter_runs(rapid, una);
		if (rapid->has_last && rapid->in_stream)
			add_sample(&rapid->estimator, (u64)(u32)(sent_us - rapid->last_sent_us) * 1000,
				   (u64)(u32)(received_us - rapid->last_received_us) * 1000,
				   run_of(rapid, rapid->entered - 1)->rate_bps);
		rapid->last_sent_us = sent_us;
		rapid->last_received_us = received_us;
		rapid->has_last = 1;
		/* The last packet of a p-stream was acknowledged if the next one begins right after it. */
		next = run_of(rapid, rapid->entered);
		if (rapid->in_stream && rapid->entered != rapid->begun && next->begins_stream && next->first == una) {
			judge(rapid, rapid->acked_stream);
			rapid->in_stream = 0;
		}
	}
	if (watchers)
		report(sk, rapid, ON_ACKNOWLEDGMENT, rs->rtt_us, 0);
}

OPERATION2(void, rapid_state, set_state, struct sock *, sk, u8, state)
{
	struct rapid *rapid = state_of(sk);
	struct tcp_sock *tp = tcp_of(sk);

	if (!rapid)
		return;
	if (state == TCP_CA_Loss && !rapid->in_loss && settings.starts_after_timeout) {
		rapid->rate_before_timeout_bps = rapid->rate_bps;
		set_rate(rapid, settings.initial_bps);
		rapid->broken_before = tp->snd_nxt;
		rapid->has_broken = 1;
		forget(&rapid->estimator);
	}
	rapid->in_loss = state == TCP_CA_Loss;
	/* TCP reduces the window on losses. RAPID keeps it fixed. */
	tp->snd_cwnd = (u32)settings.window;
	if (watchers && state >= TCP_CA_CWR)
		report(sk, rapid, ON_CONGESTION, 0, 0);
}

OPERATION1(u32, rapid_ssthresh, ssthresh, struct sock *, sk)
{
	return 0x7fffffff;
}

/* The timeout was spurious: restores the rate from before it. */
OPERATION1(u32, rapid_undo, undo_cwnd, struct sock *, sk)
{
	struct rapid *rapid = state_of(sk);

	if (rapid && rapid->rate_before_timeout_bps > rapid->rate_bps)
		set_rate(rapid, rapid->rate_before_timeout_bps);
	return (u32)settings.window;
}

OPERATION1(void, rapid_release, release, struct sock *, sk)
{
	struct rapid *rapid = state_of(sk);

	if (!rapid)
		return;
	if (watchers)
		report(sk, rapid, ON_END, 0, 0);
	/* Turns pacing off again, because the connection may get another controller. */
	if (sk->sk_pacing_status == SK_PACING_NEEDED)
		sk->sk_pacing_status = SK_PACING_NONE;
	sk->sk_pacing_rate = ~0UL;
}
