//! The accuracy of the gaps between segments, for controllers that schedule departures (RAPID).
//!
//! A host reports the time at which it handed each datagram to the kernel. The differences between these times are
//! compared with those between the due times.

use crate::flow::{FlowId, Gap};
use sparelane_core::{Dur, Time};
use std::collections::VecDeque;

/// The maximum number of segments whose departure is awaited. The oldest are forgotten if the host reports none.
const MAX_AWAITED: usize = 256;

/// The number of histogram steps per power of two.
const STEPS: u64 = 8;

/// The accuracy of a host's gaps so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapAccuracy {
    /// Number of measured gaps.
    pub gaps: u64,
    /// The median of the gaps that the controller set.
    pub median_gap: Dur,
    /// The median difference between a measured gap and the one set.
    pub median_error: Dur,
    /// The 99th percentile of that difference.
    pub p99_error: Dur,
}

/// A segment that has been passed to the carrier.
#[derive(Clone, Copy, Debug)]
struct Departing {
    flow: FlowId,
    due: Time,
    payload_bytes: u32,
}

/// Measures the gaps of all flows of a node.
#[derive(Debug, Default)]
pub(super) struct GapMeter {
    departing: VecDeque<Departing>,
    set: Histogram,
    errors: Histogram,
}

impl GapMeter {
    /// Records that a segment of `flow`, due at `due`, is on its way to the carrier.
    pub fn expect(&mut self, flow: FlowId, due: Time, payload_bytes: u32) {
        if self.departing.len() >= MAX_AWAITED {
            self.departing.pop_front();
        }
        self.departing.push_back(Departing { flow, due, payload_bytes });
    }

    /// Matches a datagram of class 0 that has left the host with the oldest awaited segment; returns its flow and its
    /// due time. A datagram shorter than the segment holds other frames, such as acknowledgments, and matches none.
    pub fn match_departure(&mut self, datagram_bytes: usize) -> Option<(FlowId, Time)> {
        let first = self.departing.front().filter(|first| datagram_bytes > first.payload_bytes as usize)?;
        let (flow, due) = (first.flow, first.due);
        self.departing.pop_front();
        Some((flow, due))
    }

    /// Records a measured gap.
    pub fn record(&mut self, gap: Gap) {
        self.set.record(gap.set);
        self.errors.record(Dur::from_ps(gap.error_ps().unsigned_abs()));
    }

    /// Returns the accuracy so far, or `None` without measured gaps.
    pub fn accuracy(&self) -> Option<GapAccuracy> {
        Some(GapAccuracy {
            gaps: self.set.total,
            median_gap: self.set.quantile(0.5)?,
            median_error: self.errors.quantile(0.5)?,
            p99_error: self.errors.quantile(0.99)?,
        })
    }
}

/// A histogram of times in bounded memory, exact to one eighth.
#[derive(Debug, Default)]
struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    fn record(&mut self, time: Dur) {
        let step = step_of(time.as_ps() / 1000);
        if self.counts.len() <= step {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.total += 1;
    }

    fn quantile(&self, share: f64) -> Option<Dur> {
        let wanted = (self.total as f64 * share).ceil().max(1.0) as u64;
        let mut sum = 0;
        let step = self.counts.iter().position(|count| {
            sum += count;
            sum >= wanted
        })?;
        Some(Dur::from_ns(lower_bound(step)))
    }
}

/// Returns the step for a time in nanoseconds. The first steps are one nanosecond wide; later on each power of two has
/// [`STEPS`] steps.
fn step_of(ns: u64) -> usize {
    let power = ns.checked_ilog2().unwrap_or(0);
    let shift = power.saturating_sub(STEPS.ilog2());
    (u64::from(shift) * STEPS + (ns >> shift)) as usize
}

/// Returns the lower bound of a step, nanoseconds.
fn lower_bound(step: usize) -> u64 {
    let step = step as u64;
    if step < 2 * STEPS {
        return step;
    }
    let shift = step / STEPS - 1;
    (step - shift * STEPS) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::AssociationId;

    #[test]
    fn steps_are_ordered_and_exact_to_an_eighth() {
        let mut last = 0;
        for ns in (0..5_000).chain([1 << 20, 123_456_789, u64::MAX / 2]) {
            let (step, begin) = (step_of(ns), lower_bound(step_of(ns)));
            assert!(step >= last && begin <= ns && ns - begin <= ns / 8, "{ns}: step {step} from {begin}");
            assert_eq!(step_of(begin), step);
            last = step;
        }
    }

    #[test]
    fn short_gaps_count_like_long_ones() {
        let mut gaps = GapMeter::default();
        assert_eq!(gaps.accuracy(), None);
        for measured_us in [90, 110, 100, 100, 150] {
            gaps.record(Gap { set: Dur::from_us(100), measured: Dur::from_us(measured_us) });
        }
        let accuracy = gaps.accuracy().expect("gaps were measured");
        assert_eq!(accuracy.gaps, 5);
        let within = |time: Dur, us: u64| (us * 875_000..=us * 1_000_000).contains(&time.as_ps());
        assert!(within(accuracy.median_gap, 100), "{accuracy:?}");
        assert!(within(accuracy.median_error, 10) && within(accuracy.p99_error, 50), "{accuracy:?}");
    }

    #[test]
    fn a_datagram_shorter_than_the_segment_does_not_match_it() {
        let mut gaps = GapMeter::default();
        let flow = FlowId { association: AssociationId(1), flow: 0 };
        gaps.expect(flow, Time::ZERO, 1400);
        assert_eq!(gaps.match_departure(60), None);
        assert_eq!(gaps.match_departure(1452), Some((flow, Time::ZERO)));
        assert_eq!(gaps.match_departure(1452), None);
    }

    #[test]
    fn unreported_departures_take_bounded_memory() {
        let mut gaps = GapMeter::default();
        for number in 0..10 * MAX_AWAITED as u32 {
            gaps.expect(FlowId { association: AssociationId(1), flow: number }, Time::ZERO, 1);
        }
        assert_eq!(gaps.departing.len(), MAX_AWAITED);
    }
}
