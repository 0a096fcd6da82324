//! Packets at their hosts: reactions to data, acknowledgments and handshakes.
//!
//! Plain packets (class 0, in sequence, nothing to report) take a fast path, on which one comparison with the flow's
//! template replaces tests of every field. The functions on that path are inlined into the event loop; all others are
//! kept out of line, so that the loop stays small in the instruction cache.

use super::flow::{Border, Echo, control_packet};
use super::{World, nanoseconds};
use crate::engine::fabric::Fabric;
use crate::physics::PhysicsViolation;
use crate::wire::packet::{Flags, NO_BLOCKS, Packet};
use crate::wire::rate_header::decode_rate;
use sparelane_core::{Time, widen};
use sparelane_transport::{AckSegment, Acknowledgment, EcnFlags, Segment};

impl<F: Fabric> World<F> {
    /// Delivers a packet that its host's interface held back.
    #[inline(never)]
    pub(super) fn deliver_late(&mut self, packet: Packet) -> Result<(), PhysicsViolation> {
        self.deliver(packet)
    }

    /// Delivers a packet to its host. The flow of a plain packet is looked up once.
    #[inline(always)]
    pub(super) fn deliver(&mut self, packet: Packet) -> Result<(), PhysicsViolation> {
        self.tally.delivered += 1;
        let (now, slot, kind) = (self.now, packet.flow(), packet.flags().kind());
        let Some(flow) = self.flows.get_mut(slot as usize) else { return self.deliver_datagram(packet) };
        flow.wire.in_network -= 1;
        let crosses = F::IS_DOMAIN && Border::crosses(&flow.wire);
        let is_plain = match kind {
            Flags::DATA => match flow.answer_plainly(slot, &packet) {
                // The flow is not over: its acknowledgment is in the network.
                Some(ack) => {
                    self.tally.injected += 1;
                    self.fabric.send(now, ack);
                    true
                }
                None => false,
            },
            Flags::ACK if flow.take_plain_ack(now, &packet) => {
                if flow.sends_plainly() {
                    self.tally.injected += flow.send_plainly(slot, now, &mut self.fabric);
                    if flow.wire.in_network == 0 || flow.has_earlier_timer() {
                        self.end_turn(slot);
                    }
                } else {
                    self.send_allowed_slow(slot);
                    self.close_if_over(slot);
                }
                true
            }
            _ => false,
        };
        if !is_plain {
            self.deliver_any(packet)?;
        }
        if crosses {
            self.note_at_border(slot, kind);
        }
        Ok(())
    }

    /// Watches the timer of a sender that has sent, and closes its flow if it is over.
    #[inline(never)]
    fn end_turn(&mut self, slot: u32) {
        self.watch_sender(slot);
        self.close_if_over(slot);
    }

    /// Delivers a packet that is not plain, and that is no longer counted as in the network.
    #[inline(always)]
    fn deliver_any(&mut self, packet: Packet) -> Result<(), PhysicsViolation> {
        // Only the last packet in flight can end a flow: this test spares the others three loads.
        let is_alone = self.flows[packet.flow() as usize].wire.in_network == 0;
        let kind = packet.flags().kind();
        if kind == Flags::DATA {
            self.deliver_data(packet)?;
        } else if kind == Flags::ACK {
            self.deliver_ack(packet);
        } else {
            self.deliver_handshake(packet);
        }
        if is_alone {
            self.close_if_over(packet.flow());
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn deliver_handshake(&mut self, packet: Packet) {
        if self.flows[packet.flow() as usize].traits.is_followed {
            self.report_answer(packet);
        }
        match packet.flags().kind() {
            Flags::SYN => self.send_syn_ack(packet),
            _ => self.deliver_syn_ack(packet),
        }
    }

    fn deliver_syn_ack(&mut self, packet: Packet) {
        let flow = &mut self.flows[packet.flow() as usize];
        let explicit_rate = packet.flags().has(Flags::RATE_HEADER).then(|| decode_rate(packet.trigger()));
        if flow.traits.requests_accurate_ecn {
            flow.agree_on_ecn(packet.seq() as EcnFlags);
        }
        flow.sender.handle_syn_ack(self.now, explicit_rate);
        self.send_allowed(packet.flow());
    }

    #[inline(always)]
    fn deliver_data(&mut self, packet: Packet) -> Result<(), PhysicsViolation> {
        let slot = packet.flow();
        let flow = &mut self.flows[slot as usize];
        let payload_bytes = flow.payload_bytes(&packet);
        if flow.traits.stamps
            && flow.is_plain_data(&packet)
            && flow.receiver.handle_data_fast(packet.seq(), payload_bytes)
        {
            self.handle_send_time(packet);
            return self.acknowledge_plainly(slot, packet.seq());
        }
        self.deliver_any_data(packet, payload_bytes)
    }

    /// Handles the send time that a data packet carries.
    #[inline(never)]
    fn handle_send_time(&mut self, packet: Packet) {
        let flow = &mut self.flows[packet.flow() as usize];
        let now_ns = self.now.as_ps() / 1000;
        let delay_ns = (now_ns as u32).wrapping_sub(packet.blocks());
        flow.echoes.ns = match flow.echoes.kind {
            Echo::ReceiveTime => now_ns as u32,
            Echo::HostDelay => nanoseconds(packet.at),
            Echo::Delay | Echo::Nothing => delay_ns,
        };
        if self.observers.wants_receipts || flow.traits.is_followed {
            self.report_receipt(&packet, delay_ns);
        }
    }

    #[inline(always)]
    fn deliver_any_data(&mut self, packet: Packet, payload_bytes: u32) -> Result<(), PhysicsViolation> {
        let slot = packet.flow();
        if packet.flags().has(Flags::STAMPED) {
            self.handle_send_time(packet);
        }
        let flow = &mut self.flows[slot as usize];
        if packet.flags().has(Flags::RATE_HEADER) {
            flow.echoes.rate = packet.trigger();
        }
        if flow.traits.collects_telemetry && packet.telemetry() > 0 {
            // An acknowledgment returns the telemetry of the last packet that it covers.
            let before = std::mem::replace(&mut flow.echoes.telemetry, packet.telemetry());
            self.layout.telemetry.release(before);
        }
        let segment = Segment {
            seq: widen(packet.seq(), flow.receiver.next_expected()),
            payload_bytes,
            class: packet.class() - flow.wire.base_class,
            retransmission: packet.flags().has(Flags::RETRANSMISSION),
            window_reduced: packet.flags().has(Flags::ECN_ANSWER),
        };
        let marked = packet.flags().is_marked();
        if flow.traits.takes_time {
            return self.take_in(packet, segment, marked);
        }
        let ack = flow.receiver.handle_data(self.now, segment, marked);
        self.answer(slot, ack)
    }

    /// Acknowledges segment `trigger`, which arrived in sequence, with nothing else to report.
    #[inline(always)]
    fn acknowledge_plainly(&mut self, slot: u32, trigger: u32) -> Result<(), PhysicsViolation> {
        let flow = &mut self.flows[slot as usize];
        let cumulative = flow.receiver.next_expected();
        // The receiver may now hold the whole flow, or its first write.
        if cumulative >= flow.segments && flow.span.finish == Time::NEVER {
            return self.reach(slot, Some(AckSegment::plain(cumulative, widen(trigger, cumulative))));
        }
        let packet = flow.plain_ack(slot, cumulative as u32, trigger);
        self.inject(packet);
        Ok(())
    }

    /// Sends the acknowledgment for received data, if one is due.
    #[inline(always)]
    pub(super) fn answer(&mut self, slot: u32, ack: Option<AckSegment>) -> Result<(), PhysicsViolation> {
        let flow = &mut self.flows[slot as usize];
        if flow.receiver.next_expected() >= flow.segments && flow.span.finish == Time::NEVER {
            return self.reach(slot, ack);
        }
        self.acknowledge(slot, ack);
        Ok(())
    }

    #[inline(always)]
    fn acknowledge(&mut self, slot: u32, ack: Option<AckSegment>) {
        match ack {
            Some(ack) => self.send_ack(slot, ack),
            None => self.watch_receiver(slot),
        }
    }

    /// Like `answer`, once the receiver holds all of the flow or of its first write.
    #[cold]
    #[inline(never)]
    fn reach(&mut self, slot: u32, ack: Option<AckSegment>) -> Result<(), PhysicsViolation> {
        let flow = &mut self.flows[slot as usize];
        flow.reach(self.now)?;
        if flow.span.finish != Time::NEVER {
            let waiter = flow.waiter;
            self.give_back(slot);
            waiter.into_iter().for_each(|waiter| self.follow(slot, waiter));
        }
        self.acknowledge(slot, ack);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn send_ack(&mut self, slot: u32, ack: AckSegment) {
        let flow = &mut self.flows[slot as usize];
        let packet = flow.ack_packet(slot, ack, &mut self.blocks);
        if flow.traits.acks_carry_extras {
            return self.send_ack_with_extras(slot, packet);
        }
        self.inject(packet);
    }

    #[inline(always)]
    fn deliver_ack(&mut self, packet: Packet) {
        let slot = packet.flow();
        let traits = &self.flows[slot as usize].traits;
        if traits.reads_extras && traits.is_followed {
            self.report_answer(packet);
            self.deliver_any_ack(packet);
            return self.report_acknowledged(slot);
        }
        self.deliver_any_ack(packet);
    }

    #[inline(always)]
    fn deliver_any_ack(&mut self, packet: Packet) {
        let flow = &mut self.flows[packet.flow() as usize];
        let acknowledged = flow.sender.acknowledged();
        let segment = AckSegment {
            cumulative: widen(packet.seq(), acknowledged),
            trigger: widen(packet.trigger(), acknowledged),
            trigger_retransmitted: packet.flags().has(Flags::RETRANSMISSION),
            class: packet.class() - flow.wire.base_class,
            ecn_echo: packet.flags().has(Flags::ECN_ANSWER),
        };
        let mut ack = Acknowledgment::of(segment, self.blocks.at(packet.blocks()));
        let extras;
        if flow.traits.reads_extras {
            extras = flow.extras(&self.blocks, &mut self.fabric, self.now, packet);
            ack.extras = Some(&extras);
        }
        if flow.traits.collects_telemetry {
            self.layout.telemetry.take(self.blocks.telemetry_at(packet.blocks()), &mut self.hops);
            if segment.class == 0 && !self.hops.is_empty() {
                flow.sender.handle_telemetry(self.now, segment.trigger, &self.hops);
            }
        }
        flow.sender.handle_trusted_ack(self.now, &ack);
        // Prefetch the blocks of the acknowledgment behind this one while the sender works.
        if packet.blocks() != NO_BLOCKS {
            self.blocks.release(packet.blocks());
            self.blocks.expect(self.fabric.expected_blocks());
        }
        // RC3's low-priority acknowledgments only mark received data; they allow no class-0 packet.
        if segment.class == 0 {
            self.send_allowed(packet.flow());
        }
    }

    fn send_syn_ack(&mut self, syn: Packet) {
        let flow = &mut self.flows[syn.flow() as usize];
        flow.wire.in_network += 1;
        let ecn_flags =
            if flow.traits.requests_accurate_ecn { flow.receiver.handle_syn(syn.seq() as EcnFlags) } else { 0 };
        let mut packet = control_packet(syn.flow(), flow.wire.reverse, Flags::SYN_ACK, ecn_flags, flow);
        if syn.flags().has(Flags::RATE_HEADER) {
            packet.set(Flags::RATE_HEADER);
            packet.set_trigger(syn.trigger());
        }
        if flow.traits.is_followed {
            return self.send_followed(packet);
        }
        self.inject(packet);
    }
}
