//! Queue disciplines: which packet leaves an output queue next, and which is dropped.
//!
//! A plain FIFO has no file here: on a FIFO link the departure of a packet is known when it arrives,
//! so it never waits in a queue at all (see `wire/link.rs`). Every other discipline keeps its packets in a
//! [`Queue`] until the link takes them; those that decide by time or by chance are an [`ActiveQueue`].

mod active;
mod priority;

pub use crate::wire::packet::Packet;
pub(crate) use active::ActiveQueue;
pub use active::{ActiveLaw, ActiveSpec, Buffer, Fates, Place};
pub(crate) use priority::Priority;

use crate::config::{Discipline, QueueSpec};
use crate::routing::network::Room;

/// The packets that wait for a link, without the one in transmission.
#[derive(Clone, Debug)]
pub(crate) enum Queue {
    /// Strict priority, with push-out or without.
    Priority(Priority),
}

impl Queue {
    /// The queue of a discipline that needs such a one.
    pub(crate) fn new(spec: &QueueSpec, room: Room) -> Option<Queue> {
        match spec.discipline {
            Discipline::Fifo | Discipline::Active(_) => None,
            Discipline::Priority => Some(Queue::Priority(Priority::new(room, spec.push_out, spec.mark_at))),
        }
    }

    /// Takes a packet; those that have to go instead, possibly itself, are added to `dropped`.
    #[inline]
    pub(crate) fn enqueue(&mut self, packet: &Packet, dropped: &mut Vec<Packet>) {
        match self {
            Queue::Priority(queue) => queue.enqueue(packet, dropped),
        }
    }

    /// Gives up the packet that makes room for one of `class`, if one may.
    pub(crate) fn push_out(&mut self, class: u8) -> Option<Packet> {
        match self {
            Queue::Priority(queue) => queue.push_out(class),
        }
    }

    /// Gives the packet that leaves next.
    #[inline]
    pub(crate) fn dequeue(&mut self) -> Option<Packet> {
        match self {
            Queue::Priority(queue) => queue.dequeue(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Queue::Priority(queue) => queue.is_empty(),
        }
    }

    /// Bytes that wait.
    #[inline]
    pub(crate) fn backlog_bytes(&self) -> u64 {
        match self {
            Queue::Priority(queue) => queue.backlog_bytes(),
        }
    }

    /// Packets that it marked.
    pub(crate) fn marked(&self) -> u64 {
        match self {
            Queue::Priority(queue) => queue.marked(),
        }
    }

    /// Packets that wait.
    pub(crate) fn backlog_packets(&self) -> u64 {
        match self {
            Queue::Priority(queue) => queue.backlog_packets(),
        }
    }
}
