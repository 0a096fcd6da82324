//! Queues that decide by time, by chance or by cells: what they have in common.
//!
//! Such a queue is told when packets come and when the transmitter asks for one, also where it then finds nothing: some
//! keep state about that. It may drop packets at either moment.

use super::{Cells, CoDel, FqCoDel, Pie, Red};
use crate::config::Discipline;
use crate::link::LinkSpec;
use crate::network::Limit;
use crate::packet::{Flags, Packet};
use sparelane_core::Time;
use std::collections::VecDeque;

/// What became of packets besides being sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates {
    /// Dropped, and not yet taken from here.
    pub(crate) dropped: Vec<Packet>,
    /// How many were ever marked.
    pub(crate) marked: u64,
}

impl Fates {
    pub(crate) fn drop(&mut self, packet: Packet) {
        self.dropped.push(packet);
    }

    /// Marks `packet`, if it is ECN-capable.
    pub(crate) fn mark(&mut self, packet: &mut Packet) -> bool {
        let capable = packet.flags().has(Flags::ECN_CAPABLE);
        if capable {
            packet.set(Flags::MARKED);
            self.marked += 1;
        }
        capable
    }
}

/// Packets that wait in order, each with the time at which it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl Buffer {
    pub(crate) fn push(&mut self, now: Time, mut packet: Packet) {
        packet.at = now;
        self.bytes += packet.wire_bytes();
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.wire_bytes();
        Some(packet)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Whether `packet` fits beside what waits.
    pub(crate) fn has_room_for(&self, packet: &Packet, limit: Limit) -> bool {
        limit.has_room(self.bytes, self.packets(), packet.wire_bytes())
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Red(Red),
    CoDel(CoDel),
    FqCoDel(FqCoDel),
    Pie(Pie),
    Cells(Cells),
}

/// A queue that decides by time, by chance or by cells.
#[derive(Clone, Debug)]
pub(crate) struct ActiveQueue {
    kind: Kind,
    pub(crate) fates: Fates,
}

impl ActiveQueue {
    /// The queue of link `number`, if its discipline is such a one.
    pub(crate) fn new(spec: &LinkSpec, seed: u64, number: u64) -> Option<ActiveQueue> {
        let kind = match spec.queue.discipline {
            Discipline::Fifo | Discipline::Priority => return None,
            Discipline::Red(red) => Kind::Red(Red::new(red, spec.limit, spec.rate, seed, number)),
            Discipline::CoDel(codel) => Kind::CoDel(CoDel::new(codel, spec.limit, spec.largest_bytes)),
            Discipline::FqCoDel(fq) => Kind::FqCoDel(FqCoDel::new(fq, spec.limit, spec.largest_bytes, seed, number)),
            Discipline::Pie(pie) => Kind::Pie(Pie::new(pie, spec.limit, spec.largest_bytes, seed, number)),
            Discipline::Cells(cells) => Kind::Cells(Cells::new(cells, spec.limit)),
        };
        Some(ActiveQueue { kind, fates: Fates::default() })
    }

    /// Takes a packet, or drops it. `idle_since` is when the transmitter became idle, if it is.
    pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, idle_since: Option<Time>) {
        match &mut self.kind {
            Kind::Red(queue) => queue.enqueue(now, packet, idle_since, &mut self.fates),
            Kind::CoDel(queue) => queue.enqueue(now, packet, &mut self.fates),
            Kind::FqCoDel(queue) => queue.enqueue(now, packet, &mut self.fates),
            Kind::Pie(queue) => queue.enqueue(now, packet, &mut self.fates),
            Kind::Cells(queue) => queue.enqueue(now, packet, idle_since.is_some(), &mut self.fates),
        }
    }

    /// The transmitter is free at `now`: the packet that leaves, if any.
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<Packet> {
        match &mut self.kind {
            Kind::Red(queue) => queue.dequeue(),
            Kind::CoDel(queue) => queue.dequeue(now, &mut self.fates),
            Kind::FqCoDel(queue) => queue.dequeue(now, &mut self.fates),
            Kind::Pie(queue) => queue.dequeue(now),
            Kind::Cells(queue) => queue.dequeue(),
        }
    }

    /// Bytes and packets that wait.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        match &self.kind {
            Kind::Red(queue) => queue.backlog(),
            Kind::CoDel(queue) => queue.backlog(),
            Kind::FqCoDel(queue) => queue.backlog(),
            Kind::Pie(queue) => queue.backlog(),
            Kind::Cells(queue) => queue.backlog(),
        }
    }
}

/// Packets for the tests of single disciplines.
#[cfg(test)]
pub(crate) mod packets {
    use crate::packet::{Fields, Flags, NO_BLOCKS, Packet};

    /// Data of 1000 bytes on the wire.
    pub(crate) fn data(flow: u32, seq: u32, ecn: bool) -> Packet {
        let flags = Flags::DATA.with_if(ecn, Flags::ECN_CAPABLE);
        let (trigger, route, class) = (0, 0, 0);
        Packet::new(Fields { flow, seq, trigger, route, blocks: NO_BLOCKS, wire_bytes: 1000, flags, class })
    }

    /// The sequence numbers of `packets`.
    pub(crate) fn numbers<'p>(packets: impl IntoIterator<Item = &'p Packet>) -> Vec<u32> {
        packets.into_iter().map(Packet::seq).collect()
    }
}
