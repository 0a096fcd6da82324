//! The event queue: a winner tree over a fixed set of sources, each with at most one pending event.
//!
//! A link is one source, whose event is the arrival of its oldest packet; each kind of alarm is another. A few hundred
//! leaves therefore suffice, however many packets are in flight. A key packs the time since a base above the leaf's
//! number, so one integer comparison orders events by time and then by source. When time nears the largest value that a
//! key can hold, the base moves.
//!
//! Data layout: nodes are 64-bit keys in one array of compile-time size, root at 1, children of `i` at `2i` and `2i +
//! 1`. A path from leaf to root touches a few cache lines that stay in the first-level cache, and loops over levels
//! unroll. The comparisons are conditional moves: their outcome is random, and one mispredicted branch costs more than
//! a level.

use sparelane_core::{Dur, Time};
use std::hint::select_unpredictable;

/// The event queue, with `N / 2` leaves. A size known at compile time needs no bounds checks. `N` is a power of two.
#[derive(Clone, Debug)]
pub(crate) struct EventTree<const N: usize> {
    nodes: Box<[u64; N]>,
    /// The time of key time zero.
    base: Time,
    /// Winners from this key on move the base.
    rebase_from: u64,
}

impl<const N: usize> EventTree<N> {
    const LEVELS: u32 = (N / 2).ilog2();
    /// The number of sources that fit.
    pub(crate) const LEAVES: usize = N / 2;

    /// Returns a tree in which no source has an event.
    pub(crate) fn new() -> EventTree<N> {
        EventTree::with_time_bits(u64::BITS - Self::LEVELS)
    }

    /// Like `new`, with keys that hold only `time_bits` bits of time, so that tests reach a rebase.
    fn with_time_bits(time_bits: u32) -> EventTree<N> {
        let Ok(nodes) = vec![u64::MAX; N].into_boxed_slice().try_into() else { unreachable!("N nodes are N nodes") };
        EventTree { nodes, base: Time::ZERO, rebase_from: 1 << (time_bits - 1 + Self::LEVELS) }
    }

    /// The key of an event of `leaf` at `at`. Events beyond the range of a key, and those that never happen, share the
    /// largest key time; they compare as later than all others until the base moves.
    #[inline(always)]
    fn key(&self, leaf: usize, at: Time) -> u64 {
        let ahead = at.as_ps() - self.base.as_ps();
        (ahead.min(u64::MAX >> Self::LEVELS) << Self::LEVELS) | leaf as u64
    }

    /// Sets the next event of `leaf` to `at`; [`Time::NEVER`] clears it.
    #[inline(always)]
    pub(crate) fn set(&mut self, leaf: usize, at: Time) {
        let mut winner = self.key(leaf, at);
        let nodes = &mut *self.nodes;
        let mut at = N / 2 + (leaf & (N / 2 - 1));
        nodes[at] = winner;
        for _ in 0..Self::LEVELS {
            // The winner is random: a mispredicted branch would cost more than the whole level.
            let rival = nodes[at ^ 1];
            winner = select_unpredictable(rival < winner, rival, winner);
            at >>= 1;
            nodes[at] = winner;
        }
    }

    /// Sets the next event of `leaf` to `at`, given that `leaf` had no event or a later one. The key can only win, so
    /// the walk stops at the first node that stays as it is.
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

    /// Returns the source and time of the earliest event. `time_of` gives the next event of any leaf and is called only
    /// when the base moves.
    #[inline(always)]
    pub(crate) fn next(&mut self, time_of: impl Fn(usize) -> Time) -> Option<(usize, Time)> {
        let mut winner = self.nodes[1];
        if winner >= self.rebase_from {
            winner = self.rebase(time_of)?;
        }
        let at = Time::from_ps((winner >> Self::LEVELS) + self.base.as_ps());
        Some((winner as usize & (N / 2 - 1), at))
    }

    /// A lower bound for the time of the earliest event: exact, unless that is beyond the range of a key.
    pub(crate) fn earliest(&self) -> Time {
        self.base.saturating_add(Dur::from_ps(self.nodes[1] >> Self::LEVELS))
    }

    #[cold]
    #[inline(never)]
    // Moves the base to the earliest event and computes all keys again.
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

    /// Compares with a plain scan. Keys are so narrow that the base moves often, and some events exceed any key.
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
