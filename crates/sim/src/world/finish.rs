//! The end of flows and of the run: writes their rows and checks the physical invariants.

use super::World;
use super::changes::Changes;
use super::flow::Flow;
use super::layout::Layout;
use crate::engine::fabric::Fabric;
use crate::physics::{PhysicsViolation, check_conserved};
use crate::records::CLASSES;
use crate::records::{LinkColumns, LinkRows, Outcome, Records};
use crate::routing::network::Limit;
use crate::wire::link::{LinkCounts, LinkSpec};
use crate::wire::pause::PfcSpec;
use sparelane_core::Time;

/// Picoseconds per second.
const PS_PER_S: u128 = 1_000_000_000_000;

impl<F: Fabric> World<F> {
    /// Writes the row of the flow that a connection carries, or carried last.
    pub(super) fn record(&mut self, slot: u32) {
        self.report_close(slot);
        let outcome = self.flows[slot as usize].outcome();
        self.records.flows.close(&outcome);
        self.records.totals.finished_flows += u64::from(outcome.finish != Time::NEVER);
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
        let columns = self.layout.link_columns();
        let mut rows = LinkRows::for_links(self.layout.links.len());
        for link in 0..self.layout.links.len() as u32 {
            let counts = self.fabric.counts(self.now, link);
            let held = self.fabric.held_packets(link);
            self.layout.add_link(&mut rows, &self.changes, self.now, (link, &counts, held), columns)?;
            held_by_links += held + self.fabric.staged_packets(link);
            packet_hops += counts.delivered_packets;
        }
        let went = self.tally.delivered + self.tally.dropped;
        // Two independent counts of packets in flight: by their flows, and by the links and hosts that hold them.
        for held in [in_network, held_by_links + self.held_by_hosts()] {
            check_conserved("in the network", self.tally.injected, went, held)?;
        }
        self.records.flows.complete();
        self.records.links = rows.into_table();
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
}

impl Layout {
    /// The optional columns of links in this network.
    pub(crate) fn link_columns(&self) -> LinkColumns {
        LinkColumns { pause: self.network.has_pause(), stages: self.links.iter().any(LinkSpec::has_stage) }
    }

    /// Writes the row of a link, with the optional `columns`, and checks its invariants. At the end of the run, the link
    /// holds `held` packets.
    pub(crate) fn add_link(
        &self,
        rows: &mut LinkRows,
        changes: &Changes,
        now: Time,
        (link, counts, held): (u32, &LinkCounts, u64),
        columns: LinkColumns,
    ) -> Result<(), PhysicsViolation> {
        let (number, spec) = (link as usize, &self.links[link as usize]);
        let came: u64 = counts.arrived.iter().sum();
        let went = counts.delivered_packets + counts.dropped.iter().sum::<u64>();
        if came != went + held {
            return Err(PhysicsViolation::NotConserved { place: format!("at link {link}"), came, went, held });
        }
        let largest = spec.largest_bytes;
        // One packet may have ended its transmission within the last instant.
        // A paused transmitter sends nothing but PAUSE frames, which are not counted, unless classes are paused alone.
        let silent_bytes = if spec.changes || spec.has_class_queues { 0 } else { spec.rate.bytes_in(counts.silence) };
        let bits = changes.capacity(link, spec, now) / PS_PER_S;
        let allowed = ((bits / 8) as u64).saturating_sub(silent_bytes) + largest;
        if counts.delivered_bytes > allowed {
            let bytes = counts.delivered_bytes;
            return Err(PhysicsViolation::FasterThanItsRate { link: number, bytes, allowed, now });
        }
        let limit = match spec.limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(packets) => packets.saturating_mul(largest),
        };
        let limit = if spec.has_class_queues { self.room_by_class(spec, limit) } else { limit };
        // The limit does not include the packet in transmission, and a packet is admitted while one still fits.
        if counts.peak_backlog_bytes > limit.saturating_add(2 * largest) {
            return Err(PhysicsViolation::QueueOverLimit { link: number, held: counts.peak_backlog_bytes, limit });
        }
        let cable = &self.network.cables[number / 2];
        let (from, to) = if number.is_multiple_of(2) { (cable.a, cable.b) } else { (cable.b, cable.a) };
        rows.add([from, to], changes.mean_rate(link, spec, now), counts, columns);
        Ok(())
    }

    /// The most bytes that a link with a queue for each class may hold: the limit for each class, and the room of the
    /// lossless classes of each cable into its router.
    fn room_by_class(&self, spec: &LinkSpec, limit: u64) -> u64 {
        let of_router = |other: &&LinkSpec| spec.pfc_router.is_some() && other.pfc_router == spec.pfc_router;
        let room = |pfc: PfcSpec| u64::from(pfc.classes.count_ones()) * (pfc.xoff_bytes + pfc.headroom_bytes);
        let lossless: u64 = self.links.iter().filter(of_router).filter_map(|other| other.pfc).map(room).sum();
        limit.saturating_mul(CLASSES as u64).saturating_add(lossless)
    }
}

impl Flow {
    /// The results of the flow so far.
    pub(crate) fn outcome(&self) -> Outcome {
        let counts = self.counts();
        let application = self.application.as_ref().filter(|application| application.first_held != Time::NEVER);
        Outcome {
            row: self.row(),
            finish: self.span.finish,
            ideal: self.span.ideal,
            first_write: application.map(|application| application.first_held - self.span.start),
            delivered_bytes: self.held_bytes(),
            sent: self.wire.sent,
            lost: self.lost,
            retransmissions: counts.retransmissions,
            timeouts: counts.timeouts,
            srtt: self.sender.srtt(),
            min_rtt: self.sender.min_rtt(),
        }
    }
}
