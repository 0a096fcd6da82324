//! FIFO and strict priority as active queues, for links whose transmitter follows a trace.
//!
//! On other links the engine implements both itself, with shortcuts that need a constant rate. A FIFO queue of a link with
//! a trace is an active one only if the link also has RCP's meter: see `wire/link/traced.rs`.

use crate::config::Discipline;
use crate::routing::network::{Limit, Room};
use crate::wire::link::LinkSpec;
use crate::wire::packet::Packet;
use crate::wire::qdisc::active::{ActiveLaw, Buffer, Fates};
use crate::wire::qdisc::priority::PriorityQueue;
use sparelane_core::Time;

/// The law of a link with a FIFO or a priority queue; `None` for active queues.
pub(crate) fn law_of(spec: &LinkSpec) -> Option<Box<dyn ActiveLaw>> {
    match spec.queue.discipline {
        Discipline::Fifo => {
            let (room, mark_at) = (spec.room(), spec.queue.mark_at);
            Some(Box::new(Fifo { buffer: Buffer::default(), room, mark_at }))
        }
        Discipline::Priority => Some(Box::new(ByClass { at_once: None, queue: PriorityQueue::of(spec) })),
        Discipline::Active(_) => None,
    }
}

/// A tail-drop queue.
#[derive(Debug)]
struct Fifo {
    buffer: Buffer,
    room: Room,
    mark_at: Option<Limit>,
}

impl ActiveLaw for Fifo {
    fn enqueue(&mut self, now: Time, packet: Packet, idle_since: Option<Time>, fates: &mut Fates) {
        let mut packet = packet;
        // A packet that finds the transmitter idle does not wait.
        if idle_since.is_none() {
            let (bytes, packets) = self.backlog();
            if !self.room.has_room(bytes, packets, packet.wire_bytes()) {
                return fates.drop(packet);
            }
            if self.mark_at.is_some_and(|mark_at| mark_at.is_reached(bytes, packets)) {
                fates.mark(&mut packet);
            }
        }
        self.buffer.push(now, packet);
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Option<Packet> {
        self.buffer.pop()
    }

    fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }
}

/// Strict priority.
#[derive(Debug)]
struct ByClass {
    /// A packet that found the transmitter idle.
    at_once: Option<Packet>,
    queue: PriorityQueue,
}

impl ActiveLaw for ByClass {
    fn enqueue(&mut self, _now: Time, packet: Packet, idle_since: Option<Time>, fates: &mut Fates) {
        if idle_since.is_some() {
            self.at_once = Some(packet);
            return;
        }
        let mut dropped = Vec::new();
        self.queue.enqueue(&packet, &mut dropped);
        dropped.into_iter().for_each(|victim| fates.drop(victim));
        fates.marked = self.queue.marked();
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Option<Packet> {
        self.at_once.take().or_else(|| self.queue.dequeue())
    }

    fn backlog(&self) -> (u64, u64) {
        let at_once = self.at_once.as_ref();
        let (bytes, packets) = (self.queue.backlog_bytes(), self.queue.backlog_packets());
        (bytes + at_once.map_or(0, Packet::wire_bytes), packets + u64::from(at_once.is_some()))
    }

    fn push_out(&mut self, class: u8) -> Option<Packet> {
        self.queue.push_out(class)
    }
}
