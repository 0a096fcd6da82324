//! The log of packets: where the world writes into it.

use super::{World, latest_instant};
use crate::fabric::Fabric;
use crate::packet::{DATAGRAMS, Flags, Packet};
use crate::packets::Handed;
use sparelane_core::Time;

impl<F: Fabric> World<F> {
    /// Sends a data packet of the logged flow.
    #[cold]
    #[inline(never)]
    pub(super) fn send_logged(&mut self, packet: Packet) {
        let flow = &self.flows[packet.flow() as usize];
        let (due, uplink) = (flow.sender.last_due(), self.fabric.first_link(flow.forward));
        let before = self.fabric.free_at(uplink);
        self.inject(packet);
        // A packet that was dropped takes no time.
        let departs = self.fabric.free_at(uplink).filter(|&at| Some(at) != before);
        if let Some(log) = self.packet_log.as_mut().filter(|log| log.is_recording(self.now)) {
            let is_retransmission = packet.flags().has(Flags::RETRANSMISSION);
            log.sent(Handed { segment: packet.seq(), is_retransmission, due, at: self.now, departs });
        }
    }

    /// A packet is at the interface of its host.
    pub(super) fn log_arrival(&mut self, packet: &Packet) {
        let is_data = packet.flags().kind() == Flags::DATA && packet.flow() < DATAGRAMS;
        if let Some(log) = &mut self.packet_log
            && is_data
            && self.flows[packet.flow() as usize].is_logged
        {
            log.arrived(self.now, packet.seq(), latest_instant(self.now, packet.blocks()));
        }
    }

    /// An acknowledgment of a logged flow that leaves at `leaves` says of its trigger that it arrived at `echo_ns`.
    #[cold]
    #[inline(never)]
    pub(super) fn log_stamp(&mut self, ack: &Packet, leaves: Time, echo_ns: u32) {
        if let Some(log) = &mut self.packet_log {
            log.stamped(ack.trigger(), latest_instant(leaves, echo_ns));
        }
    }
}
