//! One open flow: both ends of its connection, and its state in the network. A connection may carry several flows, one
//! after another.

use super::domain::Instant;
use super::kept::Kept;
use super::spray::Spray;
use super::{latest_instant, nanoseconds};
use crate::engine::fabric::{Ahead, Fabric};
use crate::hosts::Offload;
use crate::hosts::application::Application;
use crate::hosts::reader::Reader;
use crate::physics::PhysicsViolation;
use crate::records::CLASSES;
use crate::routing::network::NodeId;
use crate::wire::packet::{Fields, Flags, NO_BLOCKS, Packet, Template};
use crate::wire::rate_header::decode_rate;
use crate::wire::sack_slab::BlockSlab;
use crate::wire::telemetry::EntryNumber;
use sparelane_cc::Needs;
use sparelane_core::{Dur, Seq, Time, prefetch_start};
use sparelane_transport::{AckSegment, EcnFlags, Extras, Receiver, Segment, Sender};
use std::mem::offset_of;

/// One open flow. Fields that every packet touches come first, so that a plain packet touches few cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub(super) wire: OnWire,
    pub(super) traits: PathTraits,
    /// The number of segments of the connection that completes the flow, or its first write; `Seq::MAX` for a flow
    /// without end that is written at once.
    pub(super) segments: Seq,
    pub(super) entries: Entries,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    /// The number of the flow that opened the connection, in order of start, which identifies the connection. The row
    /// in the results is [`Flow::row`].
    pub(crate) id: u32,
    pub(crate) open: bool,
    /// The sending and the receiving host.
    pub(super) hosts: [NodeId; 2],
    pub(super) span: Span,
    pub(super) echoes: Echoes,
    pub(super) at_interface: AtInterface,
    /// Receive offload, interrupts and processor of the receiving host, if any of them applies.
    pub(super) offload: Option<Box<Offload>>,
    /// The application, if the flow is written in pieces.
    pub(super) application: Option<Box<Application>>,
    /// The application at the receiver, if it reads slowly.
    pub(super) reader: Option<Box<Reader>>,
    /// The waiter of this flow, in the numbering of its source.
    pub(super) waiter: Option<u64>,
    /// Data packets that were dropped or lost.
    pub(super) lost: u64,
    /// The paths of its packets, if they are sprayed.
    pub(super) spray: Option<Box<Spray>>,
    /// The state of a flow whose packets cross domains.
    pub(super) border: Option<Box<Border>>,
    /// The connection's pool, and the state before its current flow, if the connection is kept for further flows. All
    /// other fields but `id` then belong to the connection or to its current flow.
    pub(super) kept: Option<Box<Kept>>,
}

/// The packets of a flow: templates, routes and counts.
#[derive(Debug)]
#[repr(C)]
pub(super) struct OnWire {
    /// Packets in queues, on wires and in hosts.
    pub(super) in_network: u32,
    /// Positions of its routes in the fabric's table.
    pub(super) forward: u32,
    pub(super) reverse: u32,
    /// The class on the wire of the transport's class 0.
    pub(super) base_class: u8,
    /// Header bytes of each packet.
    pub(super) header_bytes: u8,
    /// Templates of first transmissions and of acknowledgments: class 0, with nothing to report.
    pub(super) data: Template,
    pub(super) ack: Template,
    /// Data packets sent, by class on the wire.
    pub(super) sent: [u64; CLASSES],
    /// The number of entries of its two routes, or of all routes of each direction of a sprayed flow.
    pub(super) route_entries: [u32; 2],
}

/// Properties of a flow that decide which fast paths its packets may take. They never change.
#[derive(Debug)]
#[repr(C)]
pub(super) struct PathTraits {
    /// True if plain data packets reach the receiver as they arrive, and are acknowledged by plain packets.
    pub(super) receives_plainly: bool,
    /// True if its sender needs more from an acknowledgment than usual: a rate, a time, telemetry, or the backlog at its
    /// interface.
    pub(super) reads_extras: bool,
    /// True if sending depends on whether its interface is idle or has room.
    pub(super) waits_for_interface: bool,
    /// True if it requests a rate, collects telemetry, is sprayed or is followed.
    pub(super) sends_slow: bool,
    /// True if its acknowledgments echo something, leave late, or are sprayed or followed.
    pub(super) acks_carry_extras: bool,
    /// True if its data packets carry their send time, because delays are echoed or measured.
    pub(super) stamps: bool,
    /// True if its packets towards the receiver carry a rate header.
    pub(super) requests_rate: bool,
    /// True if observers follow its packets.
    pub(super) is_followed: bool,
    /// True if its receiver's application reads slowly, so that acknowledgments advertise a window.
    pub(super) reads_slowly: bool,
    /// True if data takes time at its receiver: in the host (`offload`), or until the application reads it. Also true
    /// if the receiver counts marks.
    pub(super) takes_time: bool,
    /// True if its SYN requests accurate ECN.
    pub(super) requests_accurate_ecn: bool,
    /// True if its data packets collect telemetry.
    pub(super) collects_telemetry: bool,
}

/// The earliest live entries of its two ends in the timer heap.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Entries {
    pub(super) sender: Time,
    pub(super) receiver: Time,
}

/// The times at which the flow started and was complete, and the least time between them that its path allows.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) start: Time,
    pub(super) finish: Time,
    pub(super) ideal: Dur,
}

/// The state of a flow whose packets cross domains. The end of such a flow is decided between domains, so it never ends
/// here by its count of packets in the network, which begins at [`Border::NONE_IN_NETWORK`].
#[derive(Debug)]
pub(super) struct Border {
    /// True if its sending end is in this domain.
    pub(super) sends: bool,
    /// True once the end of the sender was reported.
    pub(super) is_reported: bool,
    /// The last event that may have ended the flow: after all of it had arrived, a packet of it arrived here, or one was
    /// lost.
    pub(super) last: Instant,
}

impl Border {
    /// The count of packets in the network of a flow without any. Packets that leave this domain and never return count
    /// as there, and the count of the other end falls below this number.
    pub(super) const NONE_IN_NETWORK: u32 = 1 << 31;

    /// Returns true if the packets of a flow cross domains, by its count, which is in the cache when a packet arrives.
    #[inline(always)]
    pub(super) fn crosses(wire: &OnWire) -> bool {
        wire.in_network >= Border::NONE_IN_NETWORK / 2
    }
}

/// Values that acknowledgments echo, other than marks.
#[derive(Debug)]
pub(super) struct Echoes {
    /// The kind of time that they echo.
    pub(super) kind: Echo,
    /// The echo of the next acknowledgment, nanoseconds, unless `offload` computes it.
    pub(super) ns: u32,
    /// The rate that the next acknowledgments echo; zero before the first rate header.
    pub(super) rate: u32,
    /// The entry with the telemetry of the last data packet that is not acknowledged yet, or zero.
    pub(super) telemetry: EntryNumber,
    /// The upper bound of the random delay before an acknowledgment leaves.
    pub(super) ack_cost: Dur,
}

/// The flow's dependence on the interface of its sender.
#[derive(Debug)]
pub(super) struct AtInterface {
    /// True if it sends from the tail of its buffer while the interface is idle.
    pub(super) uses_tail: bool,
    /// True if its controller reads the backlog of the queue.
    pub(super) reads_backlog: bool,
    /// True while it waits for room in the queue.
    pub(super) queueing: bool,
    /// True while it waits for the interface to be idle.
    pub(super) pulling: bool,
}

/// The kind of time that a flow's acknowledgments echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Echo {
    Nothing,
    /// The one-way delay of the trigger.
    Delay,
    ReceiveTime,
    /// The time inside the receiving host, from the arrival of the trigger to the departure of the acknowledgment.
    HostDelay,
}

impl Echo {
    pub(super) fn of(needs: Needs) -> Echo {
        match (needs.one_way_delay, needs.receive_time, needs.host_delay) {
            (false, false, false) => Echo::Nothing,
            (true, false, false) => Echo::Delay,
            (false, true, false) => Echo::ReceiveTime,
            (false, false, true) => Echo::HostDelay,
            _ => unreachable!("no controller needs two of one-way delays, receive times and host delays"),
        }
    }
}

impl Flow {
    /// Prefetches what the delivery of `packet` to this flow touches. Returns the position of the route on which its
    /// host answers, if what is prefetched first is at hand.
    #[inline(always)]
    pub(super) fn prefetch(&self, ahead: Ahead, packet: &Packet) -> Option<u32> {
        let is_data = packet.flags().kind() == Flags::DATA;
        match ahead {
            Ahead::Far => {
                prefetch_start(self, offset_of!(Flow, receiver) / 64);
                if is_data {
                    self.receiver.prefetch()
                } else {
                    self.sender.prefetch()
                }
                return None;
            }
            Ahead::Near if !is_data => self.sender.prefetch_behind(packet.trigger()),
            Ahead::Near | Ahead::Next => {}
        }
        Some(if is_data { self.wire.reverse } else { self.wire.forward })
    }

    /// Collects the values that acknowledgment `packet` echoes, and the backlog at the interface of the sender.
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
                // The acknowledgment itself may have waited at its host.
                Echo::HostDelay => {
                    extras.host_delay = Some(Dur::from_ns(u64::from(echo_ns)) + now.saturating_since(packet.at));
                }
                _ => extras.one_way_delay = Some(Dur::from_ns(u64::from(echo_ns))),
            }
        }
        if self.traits.requests_accurate_ecn {
            extras.accurate_ecn = blocks.accurate_at(packet.blocks());
        }
        if self.traits.reads_slowly {
            extras.window_segments = Some(blocks.window_at(packet.blocks()));
        }
        if self.at_interface.reads_backlog {
            let uplink = fabric.first_link(self.wire.forward);
            extras.nic_backlog_bytes = fabric.backlog_bytes(now, uplink);
        }
        extras
    }

    /// Notes that the receiver holds every byte in order or, if the flow is written in pieces, its first write.
    pub(super) fn reach(&mut self, now: Time) -> Result<(), PhysicsViolation> {
        let (flow, took, held_bytes) = (self.row(), now - self.span.start, self.held_bytes());
        let check = |least| {
            if took < least { Err(PhysicsViolation::FasterThanItsPath { flow, took, least }) } else { Ok(()) }
        };
        if let Some(application) = &mut self.application {
            if application.first_held == Time::NEVER {
                application.first_held = now;
                check(application.first_least)?;
            }
            if !application.is_complete(held_bytes) {
                return Ok(());
            }
        }
        self.span.finish = now;
        check(self.span.ideal)
    }

    /// Builds a data packet of this flow, which is in `slot`, and counts it as in the network.
    #[inline(always)]
    pub(super) fn data_packet(&mut self, slot: u32, segment: Segment, now: Time) -> Packet {
        let wire_bytes = segment.payload_bytes + u32::from(self.wire.header_bytes);
        let mut packet = Packet::of(self.wire.data, slot, segment.seq as u32, self.wire.forward, 0, wire_bytes);
        packet.lower(segment.class);
        if segment.retransmission || segment.window_reduced || self.traits.stamps {
            self.add_uncommon_fields(&mut packet, segment, now);
        }
        self.wire.in_network += 1;
        self.wire.sent[usize::from(packet.class()) & (CLASSES - 1)] += 1;
        packet
    }

    /// Sets the fields of a data packet that its template does not cover.
    pub(super) fn add_uncommon_fields(&self, packet: &mut Packet, segment: Segment, now: Time) {
        if segment.retransmission {
            // RFC 3168 section 6.1.5: retransmissions are not ECN-capable.
            packet.clear(Flags::CE);
            packet.set(Flags::RETRANSMISSION);
        }
        if segment.window_reduced {
            packet.set(Flags::ECN_ANSWER);
        }
        if self.traits.stamps {
            packet.set_blocks(nanoseconds(now));
        }
    }

    /// The payload of a data packet, bytes.
    #[inline(always)]
    pub(super) fn payload_bytes(&self, packet: &Packet) -> u32 {
        packet.wire_bytes() as u32 - u32::from(self.wire.header_bytes)
    }

    /// Returns true if a data packet is plain, and the receiver gets plain packets as they arrive.
    #[inline(always)]
    pub(super) fn is_plain_data(&self, packet: &Packet) -> bool {
        self.traits.receives_plainly && packet.matches_except_blocks(self.wire.data)
    }

    /// Takes a plain data packet that arrived in sequence and before the last, and returns its acknowledgment. Returns
    /// `None` and changes nothing if the general path is needed.
    #[inline(always)]
    pub(super) fn answer_plainly(&mut self, slot: u32, packet: &Packet) -> Option<Packet> {
        let cumulative = self.receiver.next_expected() + 1;
        let is_plain = self.is_plain_data(packet) && !self.traits.stamps && cumulative < self.segments;
        let is_taken = is_plain && self.receiver.handle_data_fast(packet.seq(), self.payload_bytes(packet));
        is_taken.then(|| self.plain_ack(slot, cumulative as u32, packet.seq()))
    }

    /// Takes a plain acknowledgment. Returns false and changes nothing if the general path is needed.
    #[inline(always)]
    pub(super) fn take_plain_ack(&mut self, now: Time, packet: &Packet) -> bool {
        !self.traits.reads_extras
            && packet.matches(self.wire.ack)
            && self.sender.handle_ack_fast(now, packet.seq(), packet.trigger())
    }

    /// Returns true if the sender is on its fast path and nothing is added to its packets.
    #[inline(always)]
    pub(super) fn sends_plainly(&self) -> bool {
        !self.traits.waits_for_interface && !self.traits.sends_slow && self.sender.is_on_send_fast_path()
    }

    /// Sends the segments of a flow that `sends_plainly`, and returns their number.
    #[inline(always)]
    pub(super) fn send_plainly<F: Fabric>(&mut self, slot: u32, now: Time, fabric: &mut F) -> u64 {
        let mut sent = 0;
        while let Some(segment) = self.sender.poll_fast(now) {
            fabric.send(now, self.data_packet(slot, segment, now));
            sent += 1;
        }
        sent
    }

    /// Returns true if the sender's timer is earlier than its entry in the heap.
    #[inline(always)]
    pub(super) fn has_earlier_timer(&self) -> bool {
        self.sender.next_timer() < self.entries.sender
    }

    /// Builds a probe of a closed window: an empty segment below the window (RFC 9293 section 3.8.6.1), which the
    /// receiver answers.
    #[cold]
    #[inline(never)]
    pub(super) fn window_probe(&mut self, slot: u32, now: Time) -> Packet {
        let seq = self.sender.acknowledged().saturating_sub(1);
        let probe = Segment { seq, payload_bytes: 0, class: 0, retransmission: false, window_reduced: false };
        self.data_packet(slot, probe, now)
    }

    /// Builds an acknowledgment of this flow, which is in `slot`, and counts it as in the network.
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

    /// Like `ack_packet`, with nothing to report but the low bits of two segment numbers.
    #[inline(always)]
    pub(super) fn plain_ack(&mut self, slot: u32, cumulative: u32, trigger: u32) -> Packet {
        self.wire.in_network += 1;
        Packet::of(self.wire.ack, slot, cumulative, self.wire.reverse, trigger, u32::from(self.wire.header_bytes))
    }

    /// The class on the wire of the segment that waits for an idle interface, if there is one.
    pub(super) fn tail_class(&self) -> Option<u8> {
        self.sender.tail_class().map(|class| self.wire.base_class + class)
    }
}

/// Builds a packet of the handshake. Its sequence number has the flags AE, CWR and ECE of connections that request
/// accurate ECN.
pub(super) fn control_packet(slot: u32, route: u32, flags: Flags, ecn_flags: EcnFlags, flow: &Flow) -> Packet {
    let (wire_bytes, class) = (u16::from(flow.wire.header_bytes), flow.wire.base_class);
    let seq = u32::from(ecn_flags);
    Packet::new(Fields { flow: slot, seq, trigger: 0, route, blocks: NO_BLOCKS, wire_bytes, flags, class })
}
