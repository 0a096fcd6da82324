//! When segments that are outstanding were sent again.

use sparelane_core::{Seq, Time};
use std::collections::VecDeque;

/// The time of the last retransmission of each outstanding class-0 segment that was sent again.
///
/// Losses are few and are repaired in ascending order, so this is a list by segment number: a new entry nearly always goes to
/// its end, and a connection without loss has none.
#[derive(Debug, Default)]
pub(super) struct Resends {
    /// Segment numbers, ascending, and when each was last sent again.
    times: VecDeque<(Seq, Time)>,
}

impl Resends {
    /// Segment `seq` is sent again at `at`, where everything below `una` is acknowledged.
    pub(super) fn note(&mut self, una: Seq, seq: Seq, at: Time) {
        self.forget_below(una);
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

    /// Everything below `una` is acknowledged.
    fn forget_below(&mut self, una: Seq) {
        while self.times.front().is_some_and(|&(first, _)| first < una) {
            self.times.pop_front();
        }
    }

    /// When segment `seq` was last sent again, if it was.
    pub(super) fn last_of(&self, seq: Seq) -> Option<Time> {
        // Answers come in order, too.
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
        let mut resends = Resends::default();
        for (seq, at) in [(5, 1), (9, 2), (7, 3), (5, 4)] {
            resends.note(0, seq, ms(at));
        }
        let found: Vec<_> = (4..10).map(|seq| resends.last_of(seq)).collect();
        assert_eq!(found, [None, Some(ms(4)), None, Some(ms(3)), None, Some(ms(2))]);
    }

    #[test]
    fn what_is_acknowledged_is_forgotten() {
        let mut resends = Resends::default();
        for seq in 0..1000 {
            resends.note(seq, seq, ms(seq));
        }
        assert_eq!((resends.last_of(998), resends.last_of(999)), (None, Some(ms(999))));
        assert_eq!(resends.times.len(), 1);
        resends.note(999, 1000, ms(1000));
        assert_eq!(resends.last_of(999), Some(ms(999)), "the first that is not acknowledged is kept");
    }
}
