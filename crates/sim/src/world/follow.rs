//! Closed-loop workloads: flows that start because another one completed.

use super::World;
use crate::engine::fabric::{Alarm, Fabric};
use crate::flow::{FlowSource, FlowSpec};
use sparelane_core::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A flow that is going to start. The number of the flow that it follows from, and its place among the flows that do,
/// order flows that start at the same time.
#[derive(Debug)]
struct Follower {
    spec: FlowSpec,
    after: u32,
    place: u32,
}

impl Follower {
    fn key(&self) -> (Time, u32, u32) {
        (self.spec.start, self.after, self.place)
    }
}

impl PartialEq for Follower {
    fn eq(&self, other: &Follower) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Follower {}

impl PartialOrd for Follower {
    fn partial_cmp(&self, other: &Follower) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Follower {
    fn cmp(&self, other: &Follower) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Following flows that have not started yet.
#[derive(Debug, Default)]
pub(super) struct Followers(BinaryHeap<Reverse<Follower>>);

impl Followers {
    /// The start of the next one.
    pub(super) fn next_start(&self) -> Time {
        self.0.peek().map_or(Time::NEVER, |Reverse(next)| next.spec.start)
    }

    /// Takes the next one.
    pub(super) fn take(&mut self) -> Option<FlowSpec> {
        self.0.pop().map(|Reverse(next)| next.spec)
    }
}

/// The flows that are going to start, from the stream and from completed flows.
pub(super) struct Arrivals {
    pub(super) source: Box<dyn FlowSource>,
    /// The next flow of the stream, read ahead.
    pub(super) upcoming: Option<FlowSpec>,
    pub(super) followers: Followers,
}

impl Arrivals {
    /// The start of the next flow.
    pub(super) fn next_start(&self) -> Time {
        self.upcoming.map_or(Time::NEVER, |spec| spec.start).min(self.followers.next_start())
    }
}

impl<F: Fabric> World<F> {
    /// Calls the source for the flow in `slot`, which is complete, and schedules the flows that follow.
    #[cold]
    #[inline(never)]
    pub(super) fn follow(&mut self, slot: u32, waiter: u64) {
        let after = self.flows[slot as usize].row();
        let specs = self.arrivals.source.follow(waiter, self.now);
        if specs.is_empty() {
            return;
        }
        for (spec, place) in specs.into_iter().zip(0..) {
            debug_assert!(spec.start >= self.now, "a flow that follows starts at {}, before {}", spec.start, self.now);
            self.arrivals.followers.0.push(Reverse(Follower { spec, after, place }));
        }
        self.fabric.arm(Alarm::FlowStart, self.arrivals.next_start());
    }
}
