//! How exact the gaps are that a controller set between segments: by the times at which a host handed their datagrams to the
//! kernel, beside those at which they were due.

use super::FlowId;
use sparelane_core::{Dur, Time};
use std::collections::VecDeque;

/// So many segments wait at most for whoever says that they have left; where nobody does, the oldest are forgotten.
const MOST_WAITING: usize = 256;

/// A power of two is divided into so many steps.
const STEPS: u64 = 8;

/// How exact the gaps of a host were, so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapAccuracy {
    /// Gaps that were measured.
    pub gaps: u64,
    /// The median of the gaps that were set.
    pub median_gap: Dur,
    /// By how much gaps were longer or shorter than that: the median, and the 99th percentile.
    pub median_error: Dur,
    /// See above.
    pub p99_error: Dur,
}

/// A segment that a flow has let go.
#[derive(Clone, Copy, Debug)]
struct Departing {
    flow: FlowId,
    due: Time,
    payload_bytes: u32,
}

/// A gap: how long it was to be, and how long it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub set: Dur,
    pub was: Dur,
}

impl Gap {
    /// By how much it was longer, picoseconds; negative where it was shorter.
    pub fn error_ps(self) -> i64 {
        self.was.as_ps() as i64 - self.set.as_ps() as i64
    }
}

/// The books of a node.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    departing: VecDeque<Departing>,
    set: Spread,
    errors: Spread,
}

impl Gaps {
    /// A segment of `flow` was due then, and is on its way to the carrier.
    pub fn expect(&mut self, flow: FlowId, due: Time, payload_bytes: u32) {
        if self.departing.len() >= MOST_WAITING {
            self.departing.pop_front();
        }
        self.departing.push_back(Departing { flow, due, payload_bytes });
    }

    /// A datagram of class 0 with so many bytes has left; returns whose segment was in it, and when that was due. Those that are
    /// shorter than the segment have acknowledgments and the like.
    pub fn leave(&mut self, datagram_bytes: usize) -> Option<(FlowId, Time)> {
        let first = self.departing.front().filter(|first| datagram_bytes > first.payload_bytes as usize)?;
        let (flow, due) = (first.flow, first.due);
        self.departing.pop_front();
        Some((flow, due))
    }

    /// A gap was so long.
    pub fn note(&mut self, gap: Gap) {
        self.set.note(gap.set);
        self.errors.note(Dur::from_ps(gap.error_ps().unsigned_abs()));
    }

    /// How exact they were.
    pub fn accuracy(&self) -> Option<GapAccuracy> {
        Some(GapAccuracy {
            gaps: self.set.total,
            median_gap: self.set.quantile(0.5)?,
            median_error: self.errors.quantile(0.5)?,
            p99_error: self.errors.quantile(0.99)?,
        })
    }
}

/// A distribution of times in bounded memory, exact to an eighth.
#[derive(Debug, Default)]
struct Spread {
    counts: Vec<u64>,
    total: u64,
}

impl Spread {
    fn note(&mut self, time: Dur) {
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
        Some(Dur::from_ns(begin_of(step)))
    }
}

/// The step that has this many nanoseconds: the first ones have one each, and from then on a power of two has [`STEPS`].
fn step_of(ns: u64) -> usize {
    let power = ns.checked_ilog2().unwrap_or(0);
    let shift = power.saturating_sub(STEPS.ilog2());
    (u64::from(shift) * STEPS + (ns >> shift)) as usize
}

/// The least nanoseconds of a step.
fn begin_of(step: usize) -> u64 {
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
    fn steps_are_in_order_and_within_an_eighth() {
        let mut last = 0;
        for ns in (0..5_000).chain([1 << 20, 123_456_789, u64::MAX / 2]) {
            let (step, begin) = (step_of(ns), begin_of(step_of(ns)));
            assert!(step >= last && begin <= ns && ns - begin <= ns / 8, "{ns}: step {step} from {begin}");
            assert_eq!(step_of(begin), step);
            last = step;
        }
    }

    #[test]
    fn a_gap_that_is_too_short_counts_as_one_that_is_too_long() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.accuracy(), None);
        for was_us in [90, 110, 100, 100, 150] {
            gaps.note(Gap { set: Dur::from_us(100), was: Dur::from_us(was_us) });
        }
        let accuracy = gaps.accuracy().expect("gaps were measured");
        assert_eq!(accuracy.gaps, 5);
        let within = |time: Dur, us: u64| (us * 875_000..=us * 1_000_000).contains(&time.as_ps());
        assert!(within(accuracy.median_gap, 100), "{accuracy:?}");
        assert!(within(accuracy.median_error, 10) && within(accuracy.p99_error, 50), "{accuracy:?}");
    }

    #[test]
    fn a_datagram_that_is_too_short_for_the_segment_is_not_taken_for_it() {
        let mut gaps = Gaps::default();
        let flow = FlowId { association: AssociationId(1), flow: 0 };
        gaps.expect(flow, Time::ZERO, 1400);
        assert_eq!(gaps.leave(60), None);
        assert_eq!(gaps.leave(1452), Some((flow, Time::ZERO)));
        assert_eq!(gaps.leave(1452), None);
    }

    #[test]
    fn where_nobody_says_what_has_left_the_books_are_bounded() {
        let mut gaps = Gaps::default();
        for number in 0..10 * MOST_WAITING as u32 {
            gaps.expect(FlowId { association: AssociationId(1), flow: number }, Time::ZERO, 1);
        }
        assert_eq!(gaps.departing.len(), MOST_WAITING);
    }
}
