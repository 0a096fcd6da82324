//! The event queue: a winner tree over a fixed set of sources, each of which has at most one event.
//!
//! A link's source is the arrival of its oldest packet; there is one source for timers, one for the
//! start of flows, one for samples. Hence a few hundred leaves however many packets are under way.
//! A key packs the time since a base above the leaf's number, so that one comparison orders events by
//! time and then by source. When time nears what a key can hold, the base moves on.

use sparelane_core::{Dur, Time};
use std::hint::select_unpredictable;

/// The event queue, with `N / 2` leaves: a size known when compiled needs no bounds checks, and its
/// loops unroll. `N` is a power of two.
#[derive(Clone, Debug)]
pub(crate) struct EventTree<const N: usize> {
    nodes: Box<[u64; N]>,
    /// The time of key zero.
    base: Time,
    /// Keys from here on call for a new base.
    rebase_from: u64,
}

impl<const N: usize> EventTree<N> {
    const LEVELS: u32 = (N / 2).ilog2();
    /// The sources that fit.
    pub(crate) const LEAVES: usize = N / 2;

    /// A tree of sources none of which has an event.
    pub(crate) fn new() -> EventTree<N> {
        EventTree::with_time_bits(u64::BITS - Self::LEVELS)
    }

    /// As `new`, with keys that hold `time_bits` bits of time.
    fn with_time_bits(time_bits: u32) -> EventTree<N> {
        let Ok(nodes) = vec![u64::MAX; N].into_boxed_slice().try_into() else { unreachable!("N nodes are N nodes") };
        EventTree { nodes, base: Time::ZERO, rebase_from: 1 << (time_bits - 1 + Self::LEVELS) }
    }

    /// The key of an event of `leaf` at `at`. Events too far ahead, and those that never come, have a
    /// key time beyond all others until the base moves.
    #[inline(always)]
    fn key(&self, leaf: usize, at: Time) -> u64 {
        let ahead = at.as_ps() - self.base.as_ps();
        (ahead.min(u64::MAX >> Self::LEVELS) << Self::LEVELS) | leaf as u64
    }

    /// The next event of `leaf` is at `at`; [`Time::NEVER`] for none.
    #[inline(always)]
    pub(crate) fn set(&mut self, leaf: usize, at: Time) {
        let mut winner = self.key(leaf, at);
        let nodes = &mut *self.nodes;
        let mut at = N / 2 + (leaf & (N / 2 - 1));
        nodes[at] = winner;
        for _ in 0..Self::LEVELS {
            // Which of two wins is a coin toss: a mispredicted branch would cost more than the whole level.
            let rival = nodes[at ^ 1];
            winner = select_unpredictable(rival < winner, rival, winner);
            at >>= 1;
            nodes[at] = winner;
        }
    }

    /// `leaf`, which had no event or a later one, has its next event at `at`.
    #[inline(always)]
    pub(crate) fn lower(&mut self, leaf: usize, at: Time) {
        let key = self.key(leaf, at);
        let nodes = &mut *self.nodes;
        let mut at = N / 2 + (leaf & (N / 2 - 1));
        nodes[at] = key;
        for _ in 0..Self::LEVELS {
            at >>= 1;
            if nodes[at] <= key {
                return;
            }
            nodes[at] = key;
        }
    }

    /// The source and time of the earliest event. `time_of` tells the next event of any leaf; it is asked only when the
    /// base moves.
    #[inline(always)]
    pub(crate) fn next(&mut self, time_of: impl Fn(usize) -> Time) -> Option<(usize, Time)> {
        let mut winner = self.nodes[1];
        if winner >= self.rebase_from {
            winner = self.rebase(time_of)?;
        }
        let at = Time::from_ps((winner >> Self::LEVELS) + self.base.as_ps());
        Some((winner as usize & (N / 2 - 1), at))
    }

    /// The time of the earliest event, or an earlier one where that is beyond what a key can hold.
    pub(crate) fn earliest(&self) -> Time {
        self.base.saturating_add(Dur::from_ps(self.nodes[1] >> Self::LEVELS))
    }

    #[cold]
    #[inline(never)]
    fn rebase(&mut self, time_of: impl Fn(usize) -> Time) -> Option<u64> {
        let earliest = (0..N / 2).map(&time_of).min().filter(|&at| at != Time::NEVER)?;
        self.base = earliest;
        for leaf in 0..N / 2 {
            self.set(leaf, time_of(leaf));
        }
        Some(self.nodes[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    /// Against a plain scan, with keys so narrow that the base moves often, and events too far for any key.
    fn agrees_with_a_scan<const N: usize>(time_bits: u32) {
        let mut rng = Stream::new(5, Domain::Test, N as u64);
        let mut times = vec![Time::NEVER; N / 2];
        let mut tree = EventTree::<N>::with_time_bits(time_bits);
        let mut now = Time::ZERO;
        for _ in 0..3_000 {
            let leaf = rng.below(N as u64 / 2) as usize;
            let ahead = if rng.below(50) == 0 { rng.below(1 << 57) } else { rng.below(300) };
            let at = Time::from_ps(now.as_ps().saturating_add(ahead));
            if at < times[leaf] && rng.below(2) == 0 {
                tree.lower(leaf, at);
                times[leaf] = at;
            } else if rng.below(4) == 0 {
                tree.set(leaf, at);
                times[leaf] = at;
            }
            let expected = times.iter().copied().zip(0..).min().filter(|(at, _)| *at != Time::NEVER);
            let found = tree.next(|leaf| times[leaf]);
            assert_eq!(found, expected.map(|(at, leaf): (Time, usize)| (leaf, at)));
            if let Some((leaf, at)) = found {
                now = at;
                times[leaf] = Time::NEVER;
                tree.set(leaf, Time::NEVER);
            }
        }
    }

    #[test]
    fn the_earliest_event_wins_and_ties_go_to_the_lower_leaf() {
        agrees_with_a_scan::<4>(62);
        agrees_with_a_scan::<128>(12);
        agrees_with_a_scan::<512>(56);
        agrees_with_a_scan::<2048>(20);
    }
}
