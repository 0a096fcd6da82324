//! The contract between an active queue, which decides by time, by chance or by cells, and its link.
//!
//! An active queue is called when packets arrive and when the transmitter asks for one, even if it then finds the queue
//! empty, because some laws keep state about that. It may drop packets at either moment. The laws themselves live in
//! crates above this one: a law is a type with its settings ([`ActiveSpec`]), which makes one queue ([`ActiveLaw`]) for
//! each link that uses it.

use crate::routing::network::Limit;
use crate::wire::link::LinkSpec;
use crate::wire::packet::{Flags, Packet};
use sparelane_core::{Rate, Time};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Debug;

/// The properties of the link that a queue is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The capacity of the queue.
    pub limit: Limit,
    /// The rate of the transmitter.
    pub rate: Rate,
    /// The largest packet that any flow of the run sends, bytes.
    pub largest_bytes: u64,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the link. With the seed, it selects the queue's own random stream.
    pub link: u64,
}

/// An active queue management law with its settings.
pub trait ActiveSpec: Any + Debug + Send + Sync {
    /// The name in a scenario.
    fn kind(&self) -> &'static str;

    /// A queue under this law.
    fn make(&self, place: &Place) -> Box<dyn ActiveLaw>;

    /// The smallest limit in bytes that has room for a packet of `packet_bytes`.
    fn least_limit_bytes(&self, packet_bytes: u64) -> u64 {
        packet_bytes
    }

    /// Returns true if the law treats packets of different classes differently.
    fn separates_classes(&self) -> bool {
        true
    }

    /// Returns true if the law tells packets of different flows apart.
    fn tells_flows_apart(&self) -> bool {
        false
    }

    /// Returns true if the law ever marks ECN-capable packets.
    fn marks(&self) -> bool {
        true
    }

    /// Returns true if `other` is the same law with the same settings.
    fn equals(&self, other: &dyn ActiveSpec) -> bool;
}

/// One queue under an active queue management law.
pub trait ActiveLaw: Debug + Send {
    /// Takes a packet, or drops it. `idle_since` is the time at which the transmitter became idle, if it is idle.
    fn enqueue(&mut self, now: Time, packet: Packet, idle_since: Option<Time>, fates: &mut Fates);

    /// Returns the packet that leaves at `now`, when the transmitter is free, if there is one.
    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet>;

    /// Waiting bytes and packets.
    fn backlog(&self) -> (u64, u64);

    /// Removes the newest packet of the lowest class, if that class is below `class`, to make room in a memory that
    /// several queues share. Laws that do not distinguish classes need not implement it.
    fn push_out(&mut self, class: u8) -> Option<Packet> {
        let _ = class;
        None
    }

    /// Called when the rate of the transmitter changes. Laws that do not depend on the rate need not implement it.
    fn handle_rate(&mut self, rate: Rate) {
        let _ = rate;
    }
}

/// The packets that a queue dropped or marked.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// Dropped packets that the link has not collected yet.
    pub(crate) dropped: Vec<Packet>,
    /// The number of packets ever marked.
    pub(crate) marked: u64,
}

impl Fates {
    /// Drops `packet`.
    pub fn drop(&mut self, packet: Packet) {
        self.dropped.push(packet);
    }

    /// Marks `packet` with congestion experienced, if it is ECN-capable. Returns true if it is.
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        let capable = packet.flags().is_ecn_capable();
        if capable {
            packet.set(Flags::CE);
            self.marked += 1;
        }
        capable
    }

    /// Dropped packets that the link has not collected yet.
    pub fn dropped(&self) -> &[Packet] {
        &self.dropped
    }

    /// The number of packets ever marked.
    pub fn marked(&self) -> u64 {
        self.marked
    }
}

/// A FIFO buffer of packets, each with its arrival time.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl Buffer {
    /// Appends `packet`, which arrived at `now`.
    pub fn push(&mut self, now: Time, mut packet: Packet) {
        packet.at = now;
        self.bytes += packet.wire_bytes();
        self.packets.push_back(packet);
    }

    /// Takes the oldest packet.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.wire_bytes();
        Some(packet)
    }

    /// Takes the newest packet.
    pub fn pop_newest(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_back()?;
        self.bytes -= packet.wire_bytes();
        Some(packet)
    }

    /// The oldest packet.
    pub fn oldest(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Bytes in the buffer.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets in the buffer.
    pub fn packets(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Returns true if `packet` fits within `limit`, in addition to the packets in the buffer.
    pub fn has_room_for(&self, packet: &Packet, limit: Limit) -> bool {
        limit.has_room(self.bytes, self.packets(), packet.wire_bytes())
    }
}

/// An active queue at its link, with its drops and marks.
#[derive(Debug)]
pub(crate) struct ActiveQueue {
    law: Box<dyn ActiveLaw>,
    pub(crate) fates: Fates,
}

impl ActiveQueue {
    /// A queue under `law` for link `number`.
    pub(crate) fn new(law: &dyn ActiveSpec, spec: &LinkSpec, seed: u64, number: u64) -> ActiveQueue {
        let place = Place { limit: spec.limit, rate: spec.rate, largest_bytes: spec.largest_bytes, seed, link: number };
        ActiveQueue { law: law.make(&place), fates: Fates::default() }
    }

    /// A queue under the law of a link whose transmitter follows a trace.
    pub(crate) fn of(law: Box<dyn ActiveLaw>) -> ActiveQueue {
        ActiveQueue { law, fates: Fates::default() }
    }

    pub(crate) fn push_out(&mut self, class: u8) -> Option<Packet> {
        self.law.push_out(class)
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

/// Packets for tests of single laws, here and in other crates.
impl Packet {
    /// A data packet of `wire_bytes` of flow `flow`, with this sequence number, ECN-capable or not.
    pub fn example(flow: u32, seq: u32, wire_bytes: u16, ecn: bool) -> Packet {
        use crate::wire::packet::{Fields, NO_BLOCKS};
        let flags = Flags::DATA.with_if(ecn, Flags::ECT_0);
        let (trigger, route, class) = (0, 0, 0);
        Packet::new(Fields { flow, seq, trigger, route, blocks: NO_BLOCKS, wire_bytes, flags, class })
    }

    /// The same packet, with ECT(1) in its ECN field.
    pub fn as_l4s(mut self) -> Packet {
        self.clear(Flags::CE);
        self.set(Flags::ECT_1);
        self
    }

    /// The same packet in a class lower by `classes`.
    pub fn lowered(mut self, classes: u8) -> Packet {
        self.lower(classes);
        self
    }

    /// The same packet, travelling from the receiver.
    pub fn going_back(mut self) -> Packet {
        self.set(Flags::ACK);
        self
    }

    /// The time at which the packet arrived at its queue.
    pub fn came_at(&self) -> Time {
        self.at
    }

    /// Returns true if the ECN field is ECT(1) or CE (RFC 9332 section 2.3).
    pub fn is_l4s(&self) -> bool {
        self.flags().is_l4s()
    }

    /// Returns true if the packet is ECN-capable: its ECN field is ECT(0), ECT(1) or CE.
    pub fn is_ecn_capable(&self) -> bool {
        self.flags().is_ecn_capable()
    }

    /// Returns true if the packet carries a congestion mark.
    pub fn is_marked(&self) -> bool {
        self.flags().is_marked()
    }
}
