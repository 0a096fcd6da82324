//! Open-loop cross traffic: datagrams that hosts send at times of their own. They are neither acknowledged nor
//! retransmitted.
//!
//! A [`Pattern`] determines the send times, a [`TokenBucket`] may delay packets, and a [`Source`] runs both. All
//! packets of a source have the same size. A source stores no packets: it is asked for the next ones once the last ones
//! have been sent.

mod aggregate;
mod bucket;
mod constant;

use crate::records::{CLASSES, CrossTable};
use crate::routing::network::NodeId;
use crate::wire::packet::{DATAGRAMS, Fields, Flags, NO_BLOCKS, Packet};
use aggregate::Aggregate;
use bucket::Shaped;
use constant::Constant;
use sparelane_core::{Domain, Rate, Stream, Time};
use std::fmt::Debug;

pub use aggregate::AggregateSpec;
pub use bucket::TokenBucket;
pub use constant::ConstantSpec;

/// The traffic from one host to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossTraffic {
    /// The host that sends.
    pub from: NodeId,
    /// The receiving host, a different one.
    pub to: NodeId,
    /// The mean rate on the wire, headers included.
    pub rate: Rate,
    /// The size of every packet on the wire, headers included.
    pub packet_bytes: u16,
    /// The priority class on the wire.
    pub class: u8,
    /// The pattern of send times.
    pub pattern: Pattern,
    /// The shaper, if there is one.
    pub bucket: Option<TokenBucket>,
    /// The start: no packet is sent earlier.
    pub start: Time,
    /// The end: no packet is sent at this time or later.
    pub stop: Time,
}

/// The pattern of send times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// At a constant rate: see `constant.rs`.
    Constant(ConstantSpec),
    /// Many short transfers: see `aggregate.rs`.
    Aggregate(AggregateSpec),
}

impl Pattern {
    /// The name in scenarios and results.
    pub fn name(&self) -> &'static str {
        match self {
            Pattern::Constant(_) => "constant",
            Pattern::Aggregate(_) => "aggregate",
        }
    }
}

/// Packets that are sent at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Burst {
    at: Time,
    packets: u32,
}

/// An endless sequence of bursts in order of time.
trait Process: Debug + Send {
    fn next(&mut self) -> Burst;
}

/// A source in a run, with its counters.
#[derive(Debug)]
pub(crate) struct Source {
    spec: CrossTraffic,
    process: Box<dyn Process>,
    upcoming: Burst,
    packet: Packet,
    offered: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    /// Copies that links made of its packets.
    pub(crate) doubled: u64,
}

impl Source {
    /// The receiving host.
    pub(crate) fn destination(&self) -> NodeId {
        self.spec.to
    }

    /// Source number `index`, whose route starts at `route` in the fabric's table.
    pub(crate) fn new(spec: CrossTraffic, index: u32, route: u32, seed: u64) -> Source {
        assert!(usize::from(spec.class) < CLASSES, "class {} of cross traffic", spec.class);
        let stream = Stream::new(seed, Domain::CrossTraffic, u64::from(index));
        let mut process: Box<dyn Process> = match spec.pattern {
            Pattern::Constant(pattern) => Box::new(Constant::new(&spec, pattern, stream)),
            Pattern::Aggregate(pattern) => Box::new(Aggregate::new(&spec, pattern, stream)),
        };
        if let Some(bucket) = spec.bucket {
            process = Box::new(Shaped::new(process, bucket, spec.packet_bytes));
        }
        let packet = Packet::new(Fields {
            flow: DATAGRAMS | index,
            seq: 0,
            trigger: 0,
            route,
            blocks: NO_BLOCKS,
            wire_bytes: spec.packet_bytes,
            flags: Flags::DATA,
            class: spec.class,
        });
        let upcoming = process.next();
        Source { spec, process, upcoming, packet, offered: 0, delivered: 0, dropped: 0, doubled: 0 }
    }

    /// The time of its next packets; [`Time::NEVER`] at the end.
    pub(crate) fn next_time(&self) -> Time {
        if self.upcoming.at < self.spec.stop { self.upcoming.at } else { Time::NEVER }
    }

    /// Takes the packets of its next time: their number, and the packet to copy.
    pub(crate) fn send(&mut self) -> (u32, Packet) {
        let packets = self.upcoming.packets;
        self.offered += u64::from(packets);
        self.upcoming = self.process.next();
        (packets, self.packet)
    }

    /// Its packets in queues and on wires.
    pub(crate) fn in_network(&self) -> u64 {
        self.offered + self.doubled - self.delivered - self.dropped
    }

    /// Writes its row.
    pub(crate) fn record(&self, table: &mut CrossTable) {
        table.from.push(self.spec.from.0);
        table.to.push(self.spec.to.0);
        table.kind.push(self.spec.pattern.name());
        table.packet_bytes.push(self.spec.packet_bytes);
        table.offered_packets.push(self.offered);
        table.delivered_packets.push(self.delivered);
        table.dropped_packets.push(self.dropped);
    }
}

#[cfg(test)]
mod tests;
