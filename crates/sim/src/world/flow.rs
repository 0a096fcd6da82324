//! One open flow: both ends of its connection, and what the network knows of it.

use super::{latest_instant, nanoseconds};
use crate::engine::fabric::Fabric;
use crate::hosts::Offload;
use crate::hosts::application::Application;
use crate::physics::PhysicsViolation;
use crate::records::CLASSES;
use crate::wire::packet::{Fields, Flags, Template, NO_BLOCKS, Packet};
use crate::wire::rate_header::decode_rate;
use crate::wire::sack_slab::BlockSlab;
use sparelane_cc::Needs;
use sparelane_core::{Dur, Seq, Time};
use sparelane_transport::{AckSegment, Extras, Receiver, Segment, Sender};

/// One open flow. What every packet touches comes first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub(super) wire: OnWire,
    pub(super) ways: Ways,
    /// Segments that make it complete, or its first write; `Seq::MAX` for a flow without end that is written at once.
    pub(super) segments: Seq,
    pub(super) entries: Entries,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    /// Its number, in order of start; also its row in the results.
    pub(crate) id: u32,
    pub(crate) open: bool,
    pub(super) span: Span,
    pub(super) echoes: Echoes,
    pub(super) at_interface: AtInterface,
    /// What its packets pass before they are with the receiver, if anything.
    pub(super) offload: Option<Box<Offload>>,
    /// Who writes it, where it is written in pieces.
    pub(super) application: Option<Box<Application>>,
    /// Who waits for it, as its source says.
    pub(super) waiter: Option<u64>,
    /// Data packets that were dropped or lost.
    pub(super) lost: u64,
}

/// A flow's packets: what they look like, where they go, and how many there were.
#[derive(Debug)]
#[repr(C)]
pub(super) struct OnWire {
    /// Its packets in queues and on wires.
    pub(super) in_network: u32,
    /// Where its routes start in the fabric's table.
    pub(super) forward: u32,
    pub(super) reverse: u32,
    /// What the network adds to the classes that both ends know: class 0 of the transport is this one on the wire.
    pub(super) base_class: u8,
    /// Bytes of header on each of its packets.
    pub(super) header_bytes: u8,
    /// Its data packets that are sent for the first time, and its acknowledgments: class 0, with nothing to report.
    pub(super) data: Template,
    pub(super) ack: Template,
    /// Data packets, by class on the wire.
    pub(super) sent: [u64; CLASSES],
    /// How many links its routes have, there and back.
    pub(super) route_lengths: [u32; 2],
}

/// Which of its packets may take the short ways, and what makes others take the long ones.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Ways {
    /// Whether plain data packets are with the receiver as they arrive, and it answers with plain acknowledgments.
    pub(super) receives_plainly: bool,
    /// Whether its sender hears more than usual: a rate, a time, or what waits at its interface.
    pub(super) reads_extras: bool,
    /// Whether it has to know whether its interface is idle, or has room.
    pub(super) waits_for_interface: bool,
    /// Whether it asks for a rate, or is followed.
    pub(super) sends_by_slow_path: bool,
    /// Whether its acknowledgments echo anything, leave late, or are followed.
    pub(super) acks_carry_extras: bool,
    /// Whether its data packets carry the time at which they were sent: delays are echoed or measured.
    pub(super) stamps: bool,
    /// Whether its packets towards the receiver carry a rate header.
    pub(super) requests_rate: bool,
    /// Whether observers follow its packets.
    pub(super) is_followed: bool,
}

/// The earliest live entries of its two ends in the timers.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Entries {
    pub(super) sender: Time,
    pub(super) receiver: Time,
}

/// When it started and was complete, and the least time between that its path allows.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) start: Time,
    pub(super) finish: Time,
    pub(super) ideal: Dur,
}

/// What its acknowledgments say besides the usual.
#[derive(Debug)]
pub(super) struct Echoes {
    /// What they say of the time at which their triggers arrived.
    pub(super) kind: Echo,
    /// What the next one echoes of that, nanoseconds, where `offload` does not say.
    pub(super) ns: u32,
    /// What the next ones echo of a rate header; zero before there was one.
    pub(super) rate: u32,
    /// The most by which they leave late.
    pub(super) ack_cost: Dur,
}

/// What it has to do with the interface of its sender.
#[derive(Debug)]
pub(super) struct AtInterface {
    /// Whether it sends from the tail of its buffer while the interface is idle.
    pub(super) uses_tail: bool,
    /// Whether its controller reads what waits in the queue.
    pub(super) reads_backlog: bool,
    /// Whether it waits for room in the queue.
    pub(super) queueing: bool,
    /// Whether it waits for the interface to be idle.
    pub(super) pulling: bool,
}

/// What the acknowledgments of a flow say of the time at which their triggers arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Echo {
    Nothing,
    /// How long they were under way.
    Delay,
    ReceiveTime,
}

impl Echo {
    pub(super) fn of(needs: Needs) -> Echo {
        match (needs.one_way_delay, needs.receive_time) {
            (false, false) => Echo::Nothing,
            (true, false) => Echo::Delay,
            (false, true) => Echo::ReceiveTime,
            (true, true) => unreachable!("no controller needs both delays and receive times"),
        }
    }
}

impl Flow {
    /// What acknowledgment `packet` says besides the usual, and what waits at the interface of the sender.
    #[inline(never)]
    pub(super) fn extras<F: Fabric>(&self, blocks: &BlockSlab, fabric: &mut F, now: Time, packet: Packet) -> Extras {
        let mut extras = Extras::default();
        if packet.flags().has(Flags::RATE_HEADER) {
            extras.explicit_rate = Some(decode_rate(blocks.rate_at(packet.blocks())));
        }
        if packet.flags().has(Flags::STAMPED) {
            let echo_ns = blocks.echo_at(packet.blocks());
            match self.echoes.kind {
                Echo::ReceiveTime => extras.received_at = Some(latest_instant(now, echo_ns)),
                _ => extras.one_way_delay = Some(Dur::from_ns(u64::from(echo_ns))),
            }
        }
        if self.at_interface.reads_backlog {
            let uplink = fabric.first_link(self.wire.forward);
            extras.nic_backlog_bytes = fabric.backlog_bytes(now, uplink);
        }
        extras
    }

    /// The receiver holds every byte in order; or, where the flow is written in pieces, the first write.
    pub(super) fn reach(&mut self, now: Time) -> Result<(), PhysicsViolation> {
        let (flow, took) = (self.id, now - self.span.start);
        let check = |least| {
            if took < least { Err(PhysicsViolation::FasterThanItsPath { flow, took, least }) } else { Ok(()) }
        };
        if let Some(application) = &mut self.application {
            if application.first_held == Time::NEVER {
                application.first_held = now;
                check(application.first_least)?;
            }
            if !application.is_complete(self.receiver.held_bytes()) {
                return Ok(());
            }
        }
        self.span.finish = now;
        check(self.span.ideal)
    }

    /// A data packet of this flow, which is in `slot`, on its way from now on.
    #[inline(always)]
    pub(super) fn data_packet(&mut self, slot: u32, segment: Segment, now: Time) -> Packet {
        let wire_bytes = segment.payload_bytes + u32::from(self.wire.header_bytes);
        let mut packet = Packet::of(self.wire.data, slot, segment.seq as u32, self.wire.forward, 0, wire_bytes);
        packet.lower(segment.class);
        if segment.retransmission || segment.window_reduced || self.ways.stamps {
            self.add_uncommon_fields(&mut packet, segment, now);
        }
        self.wire.in_network += 1;
        self.wire.sent[usize::from(packet.class()) & (CLASSES - 1)] += 1;
        packet
    }

    /// Adds to a data packet what is not in its form.
    pub(super) fn add_uncommon_fields(&self, packet: &mut Packet, segment: Segment, now: Time) {
        if segment.retransmission {
            // RFC 3168 section 6.1.5: what is sent again is not ECN-capable.
            packet.clear(Flags::ECN_CAPABLE);
            packet.set(Flags::RETRANSMISSION);
        }
        if segment.window_reduced {
            packet.set(Flags::ECN_ANSWER);
        }
        if self.ways.stamps {
            packet.set_blocks(nanoseconds(now));
        }
    }

    /// An acknowledgment of this flow, which is in `slot`, on its way from now on.
    #[inline(always)]
    pub(super) fn ack_packet(&mut self, slot: u32, ack: AckSegment, blocks: &mut BlockSlab) -> Packet {
        let mut packet = self.plain_ack(slot, ack.cumulative as u32, ack.trigger as u32);
        packet.set_blocks(blocks.store(self.receiver.sack_blocks()));
        if ack.trigger_retransmitted {
            packet.set(Flags::RETRANSMISSION);
        }
        if ack.ecn_echo {
            packet.set(Flags::ECN_ANSWER);
        }
        packet.lower(ack.class);
        packet
    }

    /// As `ack_packet`, with nothing else to report than these low bits of numbers.
    #[inline(always)]
    pub(super) fn plain_ack(&mut self, slot: u32, cumulative: u32, trigger: u32) -> Packet {
        self.wire.in_network += 1;
        Packet::of(self.wire.ack, slot, cumulative, self.wire.reverse, trigger, u32::from(self.wire.header_bytes))
    }

    /// The class on the wire of the segment that waits for the interface to be idle, if one does.
    pub(super) fn tail_class(&self) -> Option<u8> {
        self.sender.tail_class().map(|class| self.wire.base_class + class)
    }
}

/// A packet of the handshake.
pub(super) fn control_packet(slot: u32, route: u32, flags: Flags, flow: &Flow) -> Packet {
    let (wire_bytes, class) = (u16::from(flow.wire.header_bytes), flow.wire.base_class);
    Packet::new(Fields { flow: slot, seq: 0, trigger: 0, route, blocks: NO_BLOCKS, wire_bytes, flags, class })
}
