//! Queues that decide by time, by chance or by cells: the contract between such a queue and its link.
//!
//! An active queue is told when packets come and when the transmitter asks for one, also where it then finds nothing: some
//! keep state about that. It may drop packets at either moment. The laws themselves are above this crate, in the catalogue, or in
//! a crate of somebody else: a law is a type with its settings ([`ActiveSpec`]), which makes one queue ([`ActiveLaw`]) for each
//! link that has it.

use crate::routing::network::Limit;
use crate::wire::link::LinkSpec;
use crate::wire::packet::{Flags, Packet};
use sparelane_core::{Rate, Time};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Debug;

/// Where a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// What the queue may hold.
    pub limit: Limit,
    /// The rate of the transmitter.
    pub rate: Rate,
    /// The largest packet that any flow of the run sends, bytes.
    pub largest_bytes: u64,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the link: with the seed, it makes random draws of a queue's own.
    pub link: u64,
}

/// A law of active queue management with its settings.
pub trait ActiveSpec: Any + Debug + Send + Sync {
    /// What a scenario calls it.
    fn kind(&self) -> &'static str;

    /// A queue under this law.
    fn make(&self, place: &Place) -> Box<dyn ActiveLaw>;

    /// The least limit in bytes that has room for a packet of so many.
    fn least_limit_bytes(&self, packet_bytes: u64) -> u64 {
        packet_bytes
    }

    /// Returns true if it treats packets of one class differently from those of another.
    fn separates_classes(&self) -> bool {
        true
    }

    /// Returns true if it ever marks ECN-capable packets.
    fn marks(&self) -> bool {
        true
    }

    /// Whether `other` is the same law with the same settings.
    fn equals(&self, other: &dyn ActiveSpec) -> bool;
}

/// One queue under a law of active queue management.
pub trait ActiveLaw: Debug + Send {
    /// Takes a packet, or drops it. `idle_since` is when the transmitter became idle, if it is.
    fn enqueue(&mut self, now: Time, packet: Packet, idle_since: Option<Time>, fates: &mut Fates);

    /// The transmitter is free at `now`: the packet that leaves, if any.
    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet>;

    /// Bytes and packets that wait.
    fn backlog(&self) -> (u64, u64);

    /// From now on the transmitter has another rate. Laws that know nothing of rates need not listen.
    fn handle_rate(&mut self, rate: Rate) {
        let _ = rate;
    }
}

/// What became of packets besides being sent.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// Dropped, and not yet taken from here.
    pub(crate) dropped: Vec<Packet>,
    /// How many were ever marked.
    pub(crate) marked: u64,
}

impl Fates {
    /// Drops `packet`.
    pub fn drop(&mut self, packet: Packet) {
        self.dropped.push(packet);
    }

    /// Marks `packet` with congestion experienced, if it is ECN-capable; returns whether it is.
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        let capable = packet.flags().has(Flags::ECN_CAPABLE);
        if capable {
            packet.set(Flags::MARKED);
            self.marked += 1;
        }
        capable
    }

    /// What was dropped and not yet taken from here.
    pub fn dropped(&self) -> &[Packet] {
        &self.dropped
    }

    /// How many were ever marked.
    pub fn marked(&self) -> u64 {
        self.marked
    }
}

/// Packets that wait in order, each with the time at which it came.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl Buffer {
    /// Adds `packet` at the tail, which came at `now`.
    pub fn push(&mut self, now: Time, mut packet: Packet) {
        packet.at = now;
        self.bytes += packet.wire_bytes();
        self.packets.push_back(packet);
    }

    /// Takes the packet at the head.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.wire_bytes();
        Some(packet)
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets that wait.
    pub fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Whether `packet` fits beside what waits.
    pub fn has_room_for(&self, packet: &Packet, limit: Limit) -> bool {
        limit.has_room(self.bytes, self.packets(), packet.wire_bytes())
    }
}

/// An active queue at its link, and what became of its packets.
#[derive(Debug)]
pub(crate) struct ActiveQueue {
    law: Box<dyn ActiveLaw>,
    pub(crate) fates: Fates,
}

impl ActiveQueue {
    /// The queue of link `number`, if its discipline is such a one.
    pub(crate) fn new(spec: &LinkSpec, seed: u64, number: u64) -> Option<ActiveQueue> {
        let law = spec.queue.discipline.active()?;
        let place = Place { limit: spec.limit, rate: spec.rate, largest_bytes: spec.largest_bytes, seed, link: number };
        Some(ActiveQueue { law: law.make(&place), fates: Fates::default() })
    }

    pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, idle_since: Option<Time>) {
        self.law.enqueue(now, packet, idle_since, &mut self.fates);
    }

    pub(crate) fn dequeue(&mut self, now: Time) -> Option<Packet> {
        self.law.dequeue(now, &mut self.fates)
    }

    pub(crate) fn backlog(&self) -> (u64, u64) {
        self.law.backlog()
    }

    pub(crate) fn handle_rate(&mut self, rate: Rate) {
        self.law.handle_rate(rate);
    }
}

/// Packets for the tests of single laws, here and in other crates.
impl Packet {
    /// Data of `wire_bytes`, of flow `flow` and with this sequence number, ECN-capable or not.
    pub fn example(flow: u32, seq: u32, wire_bytes: u16, ecn: bool) -> Packet {
        use crate::wire::packet::{Fields, NO_BLOCKS};
        let flags = Flags::DATA.with_if(ecn, Flags::ECN_CAPABLE);
        let (trigger, route, class) = (0, 0, 0);
        Packet::new(Fields { flow, seq, trigger, route, blocks: NO_BLOCKS, wire_bytes, flags, class })
    }

    /// The same packet in a class that is lower by `classes`.
    pub fn lowered(mut self, classes: u8) -> Packet {
        self.lower(classes);
        self
    }

    /// The same packet on its way from the receiver.
    pub fn going_back(mut self) -> Packet {
        self.set(Flags::ACK);
        self
    }

    /// When it came to the queue that it waits in.
    pub fn came_at(&self) -> Time {
        self.at
    }

    /// Whether it carries a mark of congestion.
    pub fn is_marked(&self) -> bool {
        self.flags().has(Flags::MARKED)
    }
}
