//! Acknowledgments that echo rates or times, or that leave their host late.

use super::flow::{Echo, Flow};
use super::{World, latest_instant, nanoseconds};
use crate::engine::fabric::Fabric;
use crate::engine::timers::TimerOwner;
use crate::routing::network::NodeId;
use crate::wire::packet::{Flags, Packet};
use sparelane_core::Time;

impl<F: Fabric> World<F> {
    /// Sends an acknowledgment of a flow that `acks_carry_extras`.
    #[inline(never)]
    pub(super) fn send_ack_with_extras(&mut self, slot: u32, mut packet: Packet) {
        let flow = &mut self.flows[slot as usize];
        if let Some(spray) = &mut flow.spray {
            spray.place(&mut packet, true);
        }
        if let Some(reader) = &mut flow.reader {
            reader.note_advertised();
            packet.set_blocks(self.blocks.with_window(packet.blocks(), flow.receiver.window_segments() as u32));
            self.await_reader(slot);
        }
        let flow = &mut self.flows[slot as usize];
        if flow.traits.requests_accurate_ecn
            && let Some(echo) = flow.receiver.accurate_echo()
        {
            packet.set_blocks(self.blocks.with_accurate(packet.blocks(), echo));
        }
        let flow = &mut self.flows[slot as usize];
        let host = flow.hosts[1];
        let leaves = match flow.echoes.ack_cost {
            most if most.is_zero() => self.now,
            most => self.hosts.departures.draw(self.now, host, most),
        };
        let telemetry = std::mem::take(&mut flow.echoes.telemetry);
        if telemetry > 0 {
            packet.set_blocks(self.blocks.with_telemetry(packet.blocks(), telemetry));
        }
        if flow.echoes.rate > 0 {
            packet.set_blocks(self.blocks.with_rate(packet.blocks(), flow.echoes.rate));
            packet.set(Flags::RATE_HEADER);
        }
        if flow.echoes.kind != Echo::Nothing {
            let echo_ns = flow.echo_ns_at(leaves);
            packet.set_blocks(self.blocks.with_echo(packet.blocks(), echo_ns));
            packet.set(Flags::STAMPED);
        }
        if flow.traits.is_followed {
            let stamp =
                (flow.echoes.kind == Echo::ReceiveTime).then(|| latest_instant(leaves, flow.echo_ns_at(leaves)));
            self.report_acknowledgment(packet, leaves, stamp);
        }
        // An acknowledgment must not overtake earlier ones that still wait at the host.
        if leaves == self.now && self.hosts.departures.next(host).is_none() {
            return self.inject(packet);
        }
        self.tally.injected += 1;
        if self.hosts.departures.put(host, leaves, packet) {
            self.set_host_timer(host, TimerOwner::Departure, leaves);
        }
    }

    /// Sends the acknowledgments of `host` that are due.
    pub(super) fn send_due_acks(&mut self, host: NodeId) {
        while let Some(packet) = self.hosts.departures.take(self.now, host) {
            self.fabric.send(self.now, packet);
        }
        if let Some(at) = self.hosts.departures.next(host) {
            self.set_host_timer(host, TimerOwner::Departure, at);
        }
    }
}

impl Flow {
    /// The echo of an acknowledgment that leaves at `leaves`, nanoseconds.
    fn echo_ns_at(&self, leaves: Time) -> u32 {
        match (&self.offload, self.echoes.kind) {
            (None, Echo::HostDelay) => nanoseconds(leaves).wrapping_sub(self.echoes.ns),
            (Some(offload), Echo::HostDelay) => (leaves.saturating_since(offload.stamps.sent).as_ps() / 1000) as u32,
            (None, _) => self.echoes.ns,
            (Some(offload), Echo::ReceiveTime) => nanoseconds(offload.stamps.receive_time(leaves)),
            (Some(offload), _) => (offload.stamps.delay(leaves).as_ps() / 1000) as u32,
        }
    }
}
