//! Timers of flows and hosts: a heap with one live entry per timer.
//!
//! A retransmission timer moves to a later time with every acknowledgment. The heap is not touched then: the old entry
//! fires early, is found not to be due, and is pushed again. Only a timer that moves to an earlier time gets a new
//! entry, and the old one is recognized as stale when it fires.

use sparelane_core::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The owner of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerOwner {
    Sender,
    Receiver,
    /// The application, which writes the next part.
    Application,
    /// A received chunk that waits for more segments.
    Offload,
    /// The application at the receiver, which reads.
    Reader,
    /// The processor of a host. From here on, timers belong to no flow: the host's number replaces flow and slot.
    Processor,
    /// Packets that wait for an interrupt.
    Interface,
    /// An acknowledgment that leaves late.
    Departure,
    /// A source of cross traffic. Its number replaces flow (beyond all flows) and slot.
    Datagrams,
}

/// One entry. Ties are ordered by flow number (or host), then owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) at: Time,
    pub(crate) flow: u32,
    pub(crate) owner: TimerOwner,
    pub(crate) slot: u32,
}

/// The heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Timers {
    /// Adds an entry; returns whether it is now the earliest.
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        let earliest = entry.at < self.earliest();
        self.heap.push(Reverse(entry));
        earliest
    }

    /// The time at which the earliest entry fires.
    pub(crate) fn earliest(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse(entry)| entry.at)
    }

    /// Takes the earliest entry if it fires by `now`.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Entry> {
        if self.earliest() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}
