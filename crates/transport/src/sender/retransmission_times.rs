//! The retransmission times of outstanding segments.

use sparelane_core::{Seq, Time};
use std::collections::VecDeque;

/// The time of the last retransmission of each outstanding class-0 segment that was retransmitted.
///
/// Losses are few and are repaired in ascending order. A sorted list therefore suffices: a new entry is nearly always
/// appended, and a connection without loss allocates nothing.
#[derive(Debug, Default)]
pub(super) struct RetransmissionTimes {
    /// Sequence numbers in ascending order, with the time of the last retransmission.
    times: VecDeque<(Seq, Time)>,
}

impl RetransmissionTimes {
    /// Records the retransmission of `seq` at time `at`, and drops the entries below `una`.
    pub(super) fn note(&mut self, una: Seq, seq: Seq, at: Time) {
        self.clear_below(una);
        if self.times.back().is_none_or(|&(last, _)| last < seq) {
            self.times.push_back((seq, at));
            return;
        }
        match self.times.binary_search_by_key(&seq, |&(noted, _)| noted) {
            Ok(place) => self.times[place].1 = at,
            Err(place) => self.times.insert(place, (seq, at)),
        }
    }

    pub(super) fn list_bytes(&self) -> usize {
        self.times.capacity() * size_of::<(Seq, Time)>()
    }

    /// Drops the entries below `una`.
    fn clear_below(&mut self, una: Seq) {
        while self.times.front().is_some_and(|&(first, _)| first < una) {
            self.times.pop_front();
        }
    }

    /// Returns the time of the last retransmission of `seq`, if it was retransmitted.
    pub(super) fn last_of(&self, seq: Seq) -> Option<Time> {
        // Retransmissions are mostly acknowledged in order, so the first entry usually matches.
        let &(first, at) = self.times.front()?;
        if first == seq {
            return Some(at);
        }
        let place = self.times.binary_search_by_key(&seq, |&(noted, _)| noted).ok()?;
        Some(self.times[place].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::Dur;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    #[test]
    fn the_last_retransmission_of_a_segment_counts() {
        let mut times = RetransmissionTimes::default();
        for (seq, at) in [(5, 1), (9, 2), (7, 3), (5, 4)] {
            times.note(0, seq, ms(at));
        }
        let found: Vec<_> = (4..10).map(|seq| times.last_of(seq)).collect();
        assert_eq!(found, [None, Some(ms(4)), None, Some(ms(3)), None, Some(ms(2))]);
    }

    #[test]
    fn entries_of_acknowledged_segments_are_dropped() {
        let mut times = RetransmissionTimes::default();
        for seq in 0..1000 {
            times.note(seq, seq, ms(seq));
        }
        assert_eq!((times.last_of(998), times.last_of(999)), (None, Some(ms(999))));
        assert_eq!(times.times.len(), 1);
        times.note(999, 1000, ms(1000));
        assert_eq!(times.last_of(999), Some(ms(999)), "the oldest unacknowledged segment is kept");
    }
}
