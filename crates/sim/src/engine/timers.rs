//! Timers of flows: a heap with one live entry per timer.
//!
//! A timer that moves later, as a retransmission timer does with every acknowledgment, is not touched:
//! its entry fires early, finds that it is not due, and is entered anew. Only a timer that moves
//! earlier gets a new entry, and the old one is recognized as stale when it fires.

use sparelane_core::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Whose timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Sender,
    Receiver,
    /// The application, which writes more.
    Application,
    /// A chunk that waits for more segments.
    Offload,
    // From here on, timers are no flow's.
    /// The processor of a host, which stands in the place of flow and slot; so for the next two.
    Processor,
    /// What waits for an interrupt.
    Interface,
    /// An acknowledgment that leaves late.
    Departure,
    /// A source of cross traffic, which stands in the place of flow (beyond all flows) and slot.
    Datagrams,
}

/// One entry; ties go by flow number (or host), then side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) at: Time,
    pub(crate) flow: u32,
    pub(crate) side: Side,
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

    /// When the earliest entry fires.
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
