/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * RAPID's estimator: smooths the send and receive gaps of a p-stream by BASS, and estimates the available bandwidth.
 *
 * The algorithms are those of crates/cc/src/algos/rapid/{bass,estimator}.rs. Gaps are whole nanoseconds here and
 * picoseconds there. Averages are truncated to a nanosecond, and shares to 2^-16.
 *
 * The functions are global, so the kernel verifies each of them once and independently. All variables that a loop
 * changes are in memory. The verifier does not track values there, so it need not follow every path through all
 * iterations.
 */
#ifndef SPARELANE_ESTIMATOR_H
#define SPARELANE_ESTIMATOR_H

#include "fixed.h"

/* Room for the samples of one p-stream, and for those carried over from the previous one. */
enum { GAPS = 128, MOST_CARRIED = 64, GAP_BITS = 32, MOST_PASSES = 3 };

/* The longest gap; longer ones are stored as this value. */
#define LONGEST_GAP_NS 0xffffffffULL

struct estimator {
	/* Gaps as measured, gaps after BASS, and the probed rates. */
	u32 sent_ns[GAPS];
	u32 received_ns[GAPS];
	u32 smooth_sent_ns[GAPS];
	u32 smooth_received_ns[GAPS];
	u64 rate_bps[GAPS];
	u8 is_spike[GAPS];
	/* The end of the event that begins at this gap, or zero; and the averages of the event. */
	u8 stop[GAPS];
	u32 mean_sent_ns[GAPS];
	u32 mean_received_ns[GAPS];
	/*
	 * The number of gaps, the number of those that were carried over, and the start of an incomplete event at the
	 * end.
	 */
	u32 count;
	u32 carried;
	u32 end;
	/* Variables of the current pass. */
	u32 spikes;
	u32 threshold_ns;
	u32 is_in_event;
	u32 start;
	u32 reached;
	u64 sum_sent_ns;
	u64 sum_received_ns;
	s64 growth;
	s64 most;
	u64 waited;
	u64 highest_bps;
	u64 lowest_bps;
};

/* The settings, kept next to the estimator, because functions that are verified independently cannot read others. */
struct estimator_settings {
	u64 bass_passes;
	u64 spike_factor_q16;
	u64 spike_floor_ns;
	u64 excursion_share_q16;
	u64 excursion_persistence_q16;
	u64 excursion_samples;
};

/*
 * Reads a bound from memory. In a register it would have a known value on each path, and the verifier would follow
 * each.
 */
#define FRESH(place) (*(volatile __typeof__(place) *)&(place))

/* Returns an index that the verifier knows to be within the arrays. */
static ALWAYS_INLINE u32 bounded(u32 index)
{
	return index & (GAPS - 1);
}

/* Counts the receive gaps that are shorter than `candidate`. */
NOT_INLINE u32 count_below(struct estimator *e, u32 candidate)
{
	if (!e)
		return 0;
	e->spikes = 0;
	LOOP (u32 at = 0; at < GAPS; at++) {
		if (at >= FRESH(e->end))
			break;
		e->spikes += e->smooth_received_ns[at] < candidate;
	}
	return e->spikes;
}

/*
 * Computes the threshold from the median of the receive gaps. The median is found bit by bit: it is the largest number
 * with at most half of the gaps below it.
 */
static ALWAYS_INLINE void find_threshold(struct estimator *e, const struct estimator_settings *settings)
{
	u64 threshold;

	e->reached = 0;
	LOOP (u32 bit = 0; bit < GAP_BITS; bit++) {
		u32 candidate = e->reached | (1U << (GAP_BITS - 1 - bit));

		if (count_below(e, candidate) <= e->end / 2)
			e->reached = candidate;
	}
	threshold = scaled_q16(e->reached, settings->spike_factor_q16);
	if (threshold < settings->spike_floor_ns)
		threshold = settings->spike_floor_ns;
	e->threshold_ns = threshold > LONGEST_GAP_NS ? (u32)LONGEST_GAP_NS : (u32)threshold;
}

/* Ends the current event before the gap `stop`, and stores its averages. */
static ALWAYS_INLINE void end_event(struct estimator *e, u32 stop)
{
	u32 start = bounded(e->start), count = stop - start;

	if (count == 0)
		count = 1;
	e->stop[start] = (u8)stop;
	e->mean_sent_ns[start] = (u32)(e->sum_sent_ns / count);
	e->mean_received_ns[start] = (u32)(e->sum_received_ns / count);
	e->is_in_event = 0;
}

/* Marks the gaps that begin an event, and returns their number. */
NOT_INLINE u32 mark_spikes(struct estimator *e, u32 pass)
{
	if (!e)
		return 0;
	e->spikes = 0;
	LOOP (u32 at = 0; at < GAPS; at++) {
		u32 is_spike = 0;

		if (at >= FRESH(e->end))
			break;
		if (at > 0) {
			u32 before = e->smooth_received_ns[bounded(at - 1)], now = e->smooth_received_ns[at];

			is_spike = now > before && now - before > e->threshold_ns;
		} else {
			/* Gaps are carried over only if they belong to an incomplete event. */
			is_spike = pass == 0 && e->carried > 0;
		}
		e->is_spike[at] = (u8)is_spike;
		e->stop[at] = 0;
		e->spikes += is_spike;
	}
	return e->spikes;
}

/* Finds the end and the averages of each event. */
NOT_INLINE int find_events(struct estimator *e)
{
	if (!e)
		return 0;
	e->is_in_event = 0;
	LOOP (u32 at = 0; at < GAPS; at++) {
		u32 next = bounded(at + 1);

		if (at >= FRESH(e->end))
			break;
		if (e->is_spike[at]) {
			if (e->is_in_event)
				end_event(e, at);
			e->is_in_event = 1;
			e->start = at;
			e->sum_sent_ns = 0;
			e->sum_received_ns = 0;
		}
		if (!e->is_in_event)
			continue;
		e->sum_sent_ns += e->smooth_sent_ns[at];
		e->sum_received_ns += e->smooth_received_ns[at];
		/*
		 * The packets that the spike delayed have not caught up yet, or the next gap is a dip of the same
		 * event.
		 */
		if (e->sum_received_ns > e->sum_sent_ns)
			continue;
		if (at + 1 < FRESH(e->end) && !e->is_spike[next] &&
		    2 * (u64)e->smooth_received_ns[next] <= e->smooth_sent_ns[next])
			continue;
		end_event(e, at + 1);
	}
	return 0;
}

/* Replaces the gaps of each event with its averages. */
NOT_INLINE int smooth_events(struct estimator *e)
{
	if (!e)
		return 0;
	e->reached = 0;
	LOOP (u32 at = 0; at < GAPS; at++) {
		u32 start;

		if (at >= FRESH(e->end))
			break;
		if (e->stop[at]) {
			e->start = at;
			e->reached = e->stop[at];
		}
		if (at >= FRESH(e->reached))
			continue;
		start = bounded(e->start);
		e->smooth_sent_ns[at] = e->mean_sent_ns[start];
		e->smooth_received_ns[at] = e->mean_received_ns[start];
	}
	return 0;
}

/* One pass of BASS over the first `end` gaps. Returns whether there was a spike. */
NOT_INLINE int bass_pass(struct estimator *e, const struct estimator_settings *settings, u32 pass)
{
	if (!e || !settings)
		return 0;
	find_threshold(e, settings);
	if (mark_spikes(e, pass) == 0)
		return 0;
	find_events(e);
	/*
	 * An incomplete event at the end is left to the next p-stream. In later passes such an event consists of
	 * averages and stays.
	 */
	if (e->is_in_event && pass == 0)
		e->end = e->start;
	smooth_events(e);
	return 1;
}

/*
 * Finds the excursion that lasts to the end, and sets `start` to its first gap, or to `end` if there is no excursion.
 */
NOT_INLINE int find_excursion(struct estimator *e, const struct estimator_settings *settings)
{
	u64 share;

	if (!e || !settings)
		return 0;
	share = (1 << 16) + settings->excursion_share_q16;
	e->growth = 0;
	e->most = 0;
	e->waited = 0;
	e->start = e->end;
	LOOP (u32 back = 0; back < GAPS; back++) {
		u32 at;

		if (back >= FRESH(e->end))
			break;
		at = bounded(FRESH(e->end) - 1 - back);
		e->growth += ((s64)e->smooth_received_ns[at] << 16) - (s64)(e->smooth_sent_ns[at] * share);
		if (e->growth > e->most && back + 1 >= settings->excursion_samples) {
			e->most = e->growth;
			e->start = at;
		}
	}
	LOOP (u32 at = 0; at < GAPS; at++) {
		if (at >= FRESH(e->end))
			break;
		if (at >= FRESH(e->start) &&
		    ((s64)e->smooth_received_ns[at] << 16) - (s64)(e->smooth_sent_ns[at] * share) > 0)
			e->waited += 1;
	}
	if (e->waited << 16 < settings->excursion_persistence_q16 * (e->end - e->start))
		e->start = e->end;
	return 0;
}

/* Keeps the gaps of an incomplete event for the next p-stream. */
NOT_INLINE int carry_over(struct estimator *e)
{
	u32 left, from;

	if (!e)
		return 0;
	left = e->count - e->end;
	from = e->end;
	if (left > MOST_CARRIED) {
		from += left - MOST_CARRIED;
		left = MOST_CARRIED;
	}
	e->start = from;
	e->carried = left;
	LOOP (u32 at = 0; at < MOST_CARRIED; at++) {
		u32 of = bounded(FRESH(e->start) + at);

		if (at >= FRESH(e->carried))
			break;
		e->sent_ns[at] = e->sent_ns[of];
		e->received_ns[at] = e->received_ns[of];
		e->rate_bps[at] = e->rate_bps[of];
	}
	e->count = e->carried;
	return 0;
}

/*
 * Estimates the available bandwidth (ABest) in bits per second from the samples since the last call; 0 for fewer than
 * two.
 */
NOT_INLINE u64 estimate_bps(struct estimator *e, const struct estimator_settings *settings)
{
	u64 estimate;

	if (!e || !settings)
		return 0;
	if (e->count > GAPS || e->count < e->carried + 2) {
		e->count = 0;
		e->carried = 0;
		return 0;
	}
	e->highest_bps = 0;
	e->lowest_bps = ~0ULL;
	LOOP (u32 at = 0; at < GAPS; at++) {
		if (at >= FRESH(e->count))
			break;
		e->smooth_sent_ns[at] = e->sent_ns[at];
		e->smooth_received_ns[at] = e->received_ns[at];
		if (at < FRESH(e->carried))
			continue;
		if (e->rate_bps[at] > e->highest_bps)
			e->highest_bps = e->rate_bps[at];
		if (e->rate_bps[at] < e->lowest_bps)
			e->lowest_bps = e->rate_bps[at];
	}
	e->end = e->count;
	LOOP (u32 pass = 0; pass < MOST_PASSES; pass++) {
		if (pass >= settings->bass_passes || !bass_pass(e, settings, pass))
			break;
	}
	find_excursion(e, settings);
	if (e->start == e->end)
		estimate = e->highest_bps;
	else if (e->start == 0)
		estimate = e->lowest_bps;
	else
		estimate = e->rate_bps[bounded(e->start - 1)];
	carry_over(e);
	return estimate;
}

/* Drops all samples, because the next p-stream does not continue the last one. */
static ALWAYS_INLINE void forget(struct estimator *e)
{
	e->count = 0;
	e->carried = 0;
}

/* Adds the gaps before one packet, and the rate that the packet probes. */
static ALWAYS_INLINE void add_sample(struct estimator *e, u64 sent_ns, u64 received_ns, u64 rate_bps)
{
	u32 at = e->count;

	if (at >= GAPS)
		return;
	at = bounded(at);
	e->sent_ns[at] = sent_ns > LONGEST_GAP_NS ? (u32)LONGEST_GAP_NS : (u32)sent_ns;
	e->received_ns[at] = received_ns > LONGEST_GAP_NS ? (u32)LONGEST_GAP_NS : (u32)received_ns;
	e->rate_bps[at] = rate_bps;
	e->count += 1;
}

#endif
