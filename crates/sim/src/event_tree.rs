//! The event queue: a winner tree over a fixed set of sources, each of which has at most one event.
//!
//! A link's source is the arrival of its oldest packet; there is one source for timers, one for the
//! start of flows, one for samples. Hence a few hundred leaves however many packets are under way.
//! A key packs the time since a base above the leaf's number, so that one comparison orders events by
//! time and then by source. When time nears what a key can hold, the base moves on.

use sparelane_core::Time;

/// Later than every event.
const NEVER: u64 = u64::MAX;

/// A tree of a size known when compiled: no bounds checks, loops unrolled. `N` is twice the leaves.
#[derive(Clone, Debug)]
struct Sized<const N: usize> {
    nodes: Box<[u64; N]>,
}

impl<const N: usize> Sized<N> {
    const LEVELS: u32 = (N / 2).ilog2();

    fn new() -> Sized<N> {
        let nodes = vec![NEVER; N].into_boxed_slice();
        match nodes.try_into() {
            Ok(nodes) => Sized { nodes },
            Err(_) => unreachable!("the slice has N items"),
        }
    }

    #[inline(always)]
    fn set(&mut self, leaf: usize, key: u64) {
        let nodes = &mut *self.nodes;
        let mut at = N / 2 + (leaf & (N / 2 - 1));
        let mut winner = key;
        nodes[at] = key;
        for _ in 0..Self::LEVELS {
            winner = winner.min(nodes[at ^ 1]);
            at >>= 1;
            nodes[at] = winner;
        }
    }

    /// Sets a leaf to an earlier key than it had.
    #[inline(always)]
    fn lower(&mut self, leaf: usize, key: u64) {
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

    #[inline(always)]
    fn winner(&self) -> u64 {
        self.nodes[1]
    }
}

#[derive(Clone, Debug)]
enum Tree {
    Of64(Sized<128>),
    Of256(Sized<512>),
    Of1024(Sized<2048>),
    Of4096(Sized<8192>),
    Of65536(Sized<131_072>),
}

macro_rules! each {
    ($tree:expr, $sized:ident => $body:expr) => {
        match $tree {
            Tree::Of64($sized) => $body,
            Tree::Of256($sized) => $body,
            Tree::Of1024($sized) => $body,
            Tree::Of4096($sized) => $body,
            Tree::Of65536($sized) => $body,
        }
    };
}

/// The most sources that a tree can hold.
pub(crate) const MAX_LEAVES: usize = 65_536;

/// The event queue.
#[derive(Clone, Debug)]
pub(crate) struct EventTree {
    tree: Tree,
    /// Bits of a key that hold the leaf.
    leaf_bits: u32,
    /// The time of key zero.
    base: Time,
    /// Keys from here on call for a new base.
    rebase_from: u64,
}

impl EventTree {
    /// A tree of `leaves` sources, none of which has an event.
    pub(crate) fn new(leaves: usize) -> EventTree {
        EventTree::with_time_bits(leaves, u64::BITS)
    }

    /// As `new`, with keys that hold at most `time_bits` bits of time.
    fn with_time_bits(leaves: usize, time_bits: u32) -> EventTree {
        assert!(leaves <= MAX_LEAVES, "{leaves} event sources; at most {MAX_LEAVES}");
        let (tree, leaf_bits) = match leaves {
            0..=64 => (Tree::Of64(Sized::new()), 6),
            65..=256 => (Tree::Of256(Sized::new()), 8),
            257..=1024 => (Tree::Of1024(Sized::new()), 10),
            1025..=4096 => (Tree::Of4096(Sized::new()), 12),
            _ => (Tree::Of65536(Sized::new()), 16),
        };
        let time_bits = time_bits.min(u64::BITS - leaf_bits);
        EventTree { tree, leaf_bits, base: Time::ZERO, rebase_from: 1 << (time_bits - 1 + leaf_bits) }
    }

    /// The key of an event of `leaf` at `at`. Events too far ahead share a key beyond all others until
    /// the base moves.
    #[inline(always)]
    fn key(&self, leaf: usize, at: Time) -> u64 {
        let ahead = at.as_ps() - self.base.as_ps();
        // Twice `rebase_from` is the end of what keys of this width can say.
        let span = (self.rebase_from >> self.leaf_bits) * 2 - 1;
        (ahead.min(span) << self.leaf_bits) | leaf as u64
    }

    /// The next event of `leaf` is at `at`; [`Time::NEVER`] for none.
    #[inline(always)]
    pub(crate) fn set(&mut self, leaf: usize, at: Time) {
        let key = if at == Time::NEVER { NEVER } else { self.key(leaf, at) };
        each!(&mut self.tree, tree => tree.set(leaf, key));
    }

    /// `leaf`, which had no event or a later one, has its next event at `at`.
    #[inline(always)]
    pub(crate) fn lower(&mut self, leaf: usize, at: Time) {
        let key = self.key(leaf, at);
        each!(&mut self.tree, tree => tree.lower(leaf, key));
    }

    /// The source and time of the earliest event. `time_of` tells the next event of any leaf; it is
    /// asked only when the base moves.
    #[inline(always)]
    pub(crate) fn next(&mut self, leaves: usize, time_of: impl Fn(usize) -> Time) -> Option<(usize, Time)> {
        let mut winner = each!(&self.tree, tree => tree.winner());
        if winner >= self.rebase_from {
            if winner == NEVER {
                return None;
            }
            winner = self.rebase(leaves, time_of);
        }
        let leaf = winner & ((1 << self.leaf_bits) - 1);
        Some((leaf as usize, Time::from_ps((winner >> self.leaf_bits) + self.base.as_ps())))
    }

    #[cold]
    #[inline(never)]
    fn rebase(&mut self, leaves: usize, time_of: impl Fn(usize) -> Time) -> u64 {
        self.base = (0..leaves).map(&time_of).min().unwrap_or(Time::ZERO);
        for leaf in 0..leaves {
            self.set(leaf, time_of(leaf));
        }
        each!(&self.tree, tree => tree.winner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    /// Against a plain scan, for every size of tree, with keys so narrow that the base moves often.
    #[test]
    fn the_earliest_event_wins_and_ties_go_to_the_lower_leaf() {
        let mut rng = Stream::new(5, Domain::Test, 0);
        for leaves in [1, 3, 64, 65, 300, 1025, 5000] {
            for time_bits in [8, 20, 64] {
                let mut times = vec![Time::NEVER; leaves];
                let mut tree = EventTree::with_time_bits(leaves, time_bits);
                let mut now = Time::ZERO;
                for _ in 0..2_000 {
                    let leaf = rng.below(leaves as u64) as usize;
                    let at = Time::from_ps(now.as_ps() + rng.below(300));
                    if at < times[leaf] && rng.below(2) == 0 {
                        tree.lower(leaf, at);
                        times[leaf] = at;
                    } else if rng.below(4) == 0 {
                        tree.set(leaf, at);
                        times[leaf] = at;
                    }
                    let expected = times.iter().copied().zip(0..).min().filter(|(at, _)| *at != Time::NEVER);
                    let found = tree.next(leaves, |leaf| times[leaf]);
                    assert_eq!(found, expected.map(|(at, leaf): (Time, usize)| (leaf, at)));
                    if let Some((leaf, at)) = found {
                        now = at;
                        times[leaf] = Time::NEVER;
                        tree.set(leaf, Time::NEVER);
                    }
                }
            }
        }
    }
}
