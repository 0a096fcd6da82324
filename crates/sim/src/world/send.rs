//! Senders: sends what windows and paces allow, with a fast path for plain packets.

use super::World;
use super::flow::control_packet;
use crate::engine::fabric::Fabric;
use crate::wire::packet::{Flags, Packet};
use sparelane_transport::Transmit;

impl<F: Fabric> World<F> {
    /// Lets a sender send what its controller allows. Out of line, for callers off the fast path.
    #[inline(never)]
    pub(super) fn send_allowed(&mut self, slot: u32) {
        let now = self.now;
        let flow = &mut self.flows[slot as usize];
        if !flow.sends_plainly() {
            return self.send_allowed_slow(slot);
        }
        self.tally.injected += flow.send_plainly(slot, now, &mut self.fabric);
        if flow.has_earlier_timer() {
            self.watch_sender(slot);
        }
    }

    #[inline(never)]
    pub(super) fn send_allowed_slow(&mut self, slot: u32) {
        loop {
            let flow = &mut self.flows[slot as usize];
            let next = if flow.traits.waits_for_interface {
                self.poll_if_interface_allows(slot)
            } else {
                flow.sender.poll_transmit(self.now, false)
            };
            let Some(transmit) = next else { break };
            self.transmit(slot, transmit);
        }
        self.watch_sender(slot);
        if self.flows[slot as usize].traits.waits_for_interface {
            self.await_idle(slot);
        }
    }

    #[inline(always)]
    pub(super) fn transmit(&mut self, slot: u32, transmit: Transmit) {
        let flow = &mut self.flows[slot as usize];
        let packet = match transmit {
            Transmit::Syn => {
                flow.wire.in_network += 1;
                let ecn_flags = if flow.traits.requests_accurate_ecn { flow.sender.syn_flags() } else { 0 };
                control_packet(slot, flow.wire.forward, Flags::SYN, ecn_flags, flow)
            }
            Transmit::Data(segment) => flow.data_packet(slot, segment, self.now),
            Transmit::Probe => flow.window_probe(slot, self.now),
            // The simulator resets no connection.
            Transmit::Reset => return,
        };
        if flow.traits.sends_slow {
            return self.send_slow(packet);
        }
        self.inject(packet);
    }

    /// Sends a packet of a flow whose packets are sprayed, collect telemetry, request a rate or are followed. Packets that
    /// request a rate are not followed.
    #[inline(never)]
    fn send_slow(&mut self, mut packet: Packet) {
        let flow = &mut self.flows[packet.flow() as usize];
        if let Some(spray) = &mut flow.spray
            && packet.flags().kind() == Flags::DATA
        {
            spray.place(&mut packet, false);
        }
        // Packets of low classes inform no controller.
        let is_head = packet.flags().kind() == Flags::DATA && packet.class() == flow.wire.base_class;
        if flow.traits.collects_telemetry && is_head {
            packet.set_trigger(self.layout.telemetry.open());
        }
        if flow.traits.is_followed {
            return self.send_followed(packet);
        }
        if flow.traits.requests_rate {
            self.request_rate(&mut packet);
        }
        self.inject(packet);
    }

    /// Fills the rate header of a packet towards the receiver. A host requests at most the rate of its interface.
    fn request_rate(&self, packet: &mut Packet) {
        let sender = &self.flows[packet.flow() as usize].sender;
        let interface = self.layout.links[self.fabric.first_link(packet.route()) as usize].rate;
        let rate = sender.desired_rate().unwrap_or(interface);
        packet.request_rate(rate.min(interface), sender.srtt());
    }
}
