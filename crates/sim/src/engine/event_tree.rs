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

use super::event_queue::EventQueue;
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

impl<const N: usize> EventQueue for EventTree<N> {
    const LOOKS_AHEAD: bool = false;
    const SOURCES: usize = N / 2;

    fn new(first_alarm: usize, alarms: usize) -> EventTree<N> {
        let sources = first_alarm + alarms;
        assert!(sources <= N / 2, "{sources} sources; at most {}", N / 2);
        EventTree::with_time_bits(u64::BITS - Self::LEVELS)
    }

    #[inline(always)]
    fn set(&mut self, leaf: usize, at: Time) {
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

    /// The key can only win, so the walk stops at the first node that stays as it is.
    #[inline(always)]
    fn lower(&mut self, leaf: usize, at: Time) {
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

    /// `time_of` is called only when the base moves.
    #[inline(always)]
    fn next(&mut self, time_of: impl Fn(usize) -> Time) -> Option<(usize, Time)> {
        let mut winner = self.nodes[1];
        if winner >= self.rebase_from {
            winner = self.rebase(time_of)?;
        }
        let at = Time::from_ps((winner >> Self::LEVELS) + self.base.as_ps());
        Some((winner as usize & (N / 2 - 1), at))
    }

    /// The time is exact, unless it is beyond the range of a key.
    fn earliest(&self) -> Time {
        self.base.saturating_add(Dur::from_ps(self.nodes[1] >> Self::LEVELS))
    }

    #[inline(always)]
    fn ahead(&self, _places: usize) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event_queue::tests::agrees_with_a_sorted_set;

    /// Keys are so narrow that the base moves often, and some events exceed any key.
    fn is_exact<const N: usize>(time_bits: u32) {
        agrees_with_a_sorted_set(&mut EventTree::<N>::with_time_bits(time_bits), N / 2, 300, 3_000);
    }

    #[test]
    fn the_earliest_event_wins_and_ties_go_to_the_lower_leaf() {
        is_exact::<4>(62);
        is_exact::<128>(12);
        is_exact::<512>(56);
        is_exact::<2048>(20);
    }
}
