//! Senders send: what their windows allow, by a short way where packets are plain.

use super::World;
use super::flow::control_packet;
use crate::engine::fabric::Fabric;
use crate::wire::packet::{Flags, Packet};
use sparelane_transport::Transmit;

impl<F: Fabric> World<F> {
    /// Lets a sender send what it may.
    #[inline(never)]
    pub(super) fn send_allowed(&mut self, slot: u32) {
        self.send_allowed_inline(slot);
    }

    #[inline(always)]
    pub(super) fn send_allowed_inline(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.ways.waits_for_interface || flow.ways.sends_by_slow_path || !flow.sender.sends_plainly() {
            return self.send_allowed_by_long_way(slot);
        }
        while let Some(segment) = flow.sender.poll_plainly(self.now) {
            self.tally.injected += 1;
            self.fabric.send(self.now, flow.data_packet(slot, segment, self.now));
        }
        self.watch_sender(slot);
    }

    #[inline(never)]
    fn send_allowed_by_long_way(&mut self, slot: u32) {
        loop {
            let flow = &mut self.flows[slot as usize];
            let next = if flow.ways.waits_for_interface {
                self.poll_if_interface_allows(slot)
            } else {
                flow.sender.poll_transmit(self.now, false)
            };
            let Some(transmit) = next else { break };
            self.transmit(slot, transmit);
        }
        self.watch_sender(slot);
        if self.flows[slot as usize].ways.waits_for_interface {
            self.await_idle(slot);
        }
    }

    #[inline(always)]
    pub(super) fn transmit(&mut self, slot: u32, transmit: Transmit) {
        let flow = &mut self.flows[slot as usize];
        let packet = match transmit {
            Transmit::Syn => {
                flow.wire.in_network += 1;
                control_packet(slot, flow.wire.forward, Flags::SYN, flow)
            }
            Transmit::Data(segment) => flow.data_packet(slot, segment, self.now),
            // Windows are not advertised here, and nobody resets a connection.
            Transmit::Probe | Transmit::Reset => return,
        };
        if flow.ways.sends_by_slow_path {
            return self.send_by_long_way(packet);
        }
        self.inject(packet);
    }

    /// Sends a packet of a flow that asks for a rate, or whose packets are followed: not both.
    #[inline(never)]
    fn send_by_long_way(&mut self, mut packet: Packet) {
        let flow = &self.flows[packet.flow() as usize];
        if flow.ways.is_followed {
            return self.send_followed(packet);
        }
        self.request_rate(&mut packet);
        self.inject(packet);
    }

    /// Fills the rate header of a packet towards the receiver. A host asks for no more than its interface carries.
    fn request_rate(&self, packet: &mut Packet) {
        let sender = &self.flows[packet.flow() as usize].sender;
        let interface = self.layout.links[self.fabric.first_link(packet.route()) as usize].rate;
        let rate = sender.desired_rate().unwrap_or(interface);
        packet.request_rate(rate.min(interface), sender.srtt());
    }
}
