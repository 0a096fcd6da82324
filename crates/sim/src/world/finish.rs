//! The end of flows and of the run: writes their rows and checks the physical invariants.

use super::World;
use crate::engine::fabric::Fabric;
use crate::physics::PhysicsViolation;
use crate::records::{LinkColumns, Records};
use crate::routing::network::Limit;
use crate::wire::link::LinkSpec;
use sparelane_core::{Dur, Time};

/// Picoseconds per second.
const PS_PER_S: u128 = 1_000_000_000_000;

impl<F: Fabric> World<F> {
    /// Writes the row of the flow that a connection carries, or carried last.
    pub(super) fn record(&mut self, slot: u32) {
        self.report_close(slot);
        let flow = &self.flows[slot as usize];
        let row = flow.row() as usize;
        let flows = &mut self.records.flows;
        flows.finish_ps[row] = flow.span.finish.as_ps();
        if let Some(application) = &flow.application
            && application.first_held != Time::NEVER
        {
            flows.first_write_ps[row] = (application.first_held - flow.span.start).as_ps();
        }
        flows.delivered_bytes[row] = flow.held_bytes();
        for (class, sent) in flow.wire.sent.iter().enumerate() {
            flows.sent_packets[class][row] = *sent;
        }
        flows.lost_packets[row] = flow.lost;
        let counts = flow.counts();
        flows.retransmissions[row] = counts.retransmissions;
        flows.timeouts[row] = counts.timeouts;
        flows.srtt_ps[row] = flow.sender.srtt().map_or(u64::MAX, Dur::as_ps);
        flows.min_rtt_ps[row] = flow.sender.min_rtt().map_or(u64::MAX, Dur::as_ps);
        self.records.totals.finished_flows += u64::from(flow.span.finish != Time::NEVER);
    }

    /// Ends the run: writes the rows of open flows and of links, and checks the invariants.
    pub(crate) fn finish(mut self) -> Result<Records, PhysicsViolation> {
        self.end_links();
        for slot in 0..self.flows.len() as u32 {
            if self.flows[slot as usize].open {
                self.record(slot);
            }
        }
        let of_flows: u64 =
            self.flows.iter().filter(|flow| flow.open).map(|flow| u64::from(flow.wire.in_network)).sum();
        let in_network = of_flows + self.finish_cross_traffic();
        let mut held_by_links = 0;
        let mut packet_hops = 0;
        let columns = LinkColumns {
            pause: self.layout.network.has_pause(),
            stages: self.layout.links.iter().any(LinkSpec::has_stage),
        };
        for link in 0..self.layout.links.len() {
            held_by_links += self.finish_link(link, columns)?;
            packet_hops += self.records.links.sent_packets[link];
        }
        let went = self.tally.delivered + self.tally.dropped;
        // Two independent counts of packets in flight: by their flows, and by the links and hosts that hold them.
        for held in [in_network, held_by_links + self.held_by_hosts()] {
            if self.tally.injected != went + held {
                let place = "in the network".to_owned();
                return Err(PhysicsViolation::NotConserved { place, came: self.tally.injected, went, held });
            }
        }
        self.records.totals.events = self.fabric.events();
        self.records.totals.packet_hops = packet_hops;
        self.records.totals.end_ps = self.now.as_ps();
        self.observers.finish(&mut self.records);
        Ok(self.records)
    }

    /// Stops all links at the current time, and handles their last drops.
    pub(crate) fn end_links(&mut self) {
        self.fabric.end(self.now);
        while let Some(packet) = self.fabric.take_dropped() {
            self.handle_loss(packet);
        }
    }

    /// Writes the row of a link, with the optional `columns`, and checks its invariants. Returns the packets that it and its
    /// stage hold.
    fn finish_link(&mut self, link: usize, columns: LinkColumns) -> Result<u64, PhysicsViolation> {
        let (now, spec) = (self.now, &self.layout.links[link]);
        let counts = self.fabric.counts(now, link as u32);
        let held = self.fabric.held_packets(link as u32);
        let came: u64 = counts.arrived.iter().sum();
        let went = counts.delivered_packets + counts.dropped.iter().sum::<u64>();
        if came != went + held {
            return Err(PhysicsViolation::NotConserved { place: format!("at link {link}"), came, went, held });
        }
        let largest = spec.largest_bytes;
        // One packet may have ended its transmission within the last instant.
        // A paused transmitter sends nothing but PAUSE frames, which are not counted.
        let silent_bytes = if spec.changes { 0 } else { spec.rate.bytes_in(counts.silence) };
        let bits = self.changes.capacity(link as u32, spec, now) / PS_PER_S;
        let allowed = ((bits / 8) as u64).saturating_sub(silent_bytes) + largest;
        if counts.delivered_bytes > allowed {
            let bytes = counts.delivered_bytes;
            return Err(PhysicsViolation::FasterThanItsRate { link, bytes, allowed, now });
        }
        let limit = match spec.limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(packets) => packets.saturating_mul(largest),
        };
        // The limit does not include the packet in transmission, and a packet is admitted while one still fits.
        if counts.peak_backlog_bytes > limit.saturating_add(2 * largest) {
            return Err(PhysicsViolation::QueueOverLimit { link, held: counts.peak_backlog_bytes, limit });
        }
        let cable = &self.layout.network.cables[link / 2];
        let (from, to) = if link.is_multiple_of(2) { (cable.a, cable.b) } else { (cable.b, cable.a) };
        let rate = self.changes.mean_rate(link as u32, spec, now);
        self.records.links.add([from, to], rate, &counts, columns);
        Ok(held + self.fabric.staged_packets(link as u32))
    }
}
