//! The digest of a run: one short text that covers all results. Two runs with the same digest went the same way.

use sparelane_sim::{CrossTable, DelayTable, FlowTable, LinkTable, PacketTable, Records, SeriesTable, Totals};

/// The digest of `records` in hexadecimal: BLAKE3 over every column of every table and over the totals. The number of
/// events is left out, because it depends on the engine and not on the run.
///
/// Numbers enter as 64 bits in little-endian order, each column after its name and length, so that the digest does not
/// depend on the machine.
pub fn digest(records: &Records) -> String {
    let mut hash = Hash(blake3::Hasher::new());
    // The patterns have no `..`, so that a new column does not compile until it is added here.
    let Records { flows, links, cross_traffic, series, delays, packets, totals } = records;
    hash.flows(flows);
    hash.links(links);
    hash.cross_traffic(cross_traffic);
    hash.series(series);
    hash.delays(delays);
    hash.packets(packets);
    let Totals { events: _, packet_hops, flows, finished_flows, end_ps, peak_open_flows } = *totals;
    hash.numbers("totals", [packet_hops, flows, finished_flows, end_ps, peak_open_flows].into_iter());
    hash.0.finalize().to_hex().to_string()
}

struct Hash(blake3::Hasher);

impl Hash {
    fn number(&mut self, value: u64) {
        self.0.update(&value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn numbers(&mut self, name: &str, values: impl ExactSizeIterator<Item = u64>) {
        self.text(name);
        self.number(values.len() as u64);
        // The hash is several times as fast with many bytes at once.
        let mut bytes = [0; 8 * 1_024];
        let mut filled = 0;
        for value in values {
            bytes[filled..filled + 8].copy_from_slice(&value.to_le_bytes());
            filled += 8;
            if filled == bytes.len() {
                self.0.update(&bytes);
                filled = 0;
            }
        }
        self.0.update(&bytes[..filled]);
    }

    fn wide(&mut self, name: &str, column: &[u64]) {
        self.numbers(name, column.iter().copied());
    }

    fn narrow<T: Copy + Into<u64>>(&mut self, name: &str, column: &[T]) {
        self.numbers(name, column.iter().map(|&value| value.into()));
    }

    fn by_class(&mut self, name: &str, columns: &[Vec<u64>]) {
        columns.iter().for_each(|column| self.wide(name, column));
    }

    fn flows(&mut self, table: &FlowTable) {
        let FlowTable {
            id,
            src,
            dst,
            scheme,
            size_bytes,
            start_ps,
            finish_ps,
            ideal_ps,
            first_write_ps,
            delivered_bytes,
            sent_packets,
            lost_packets,
            retransmissions,
            timeouts,
            // These follow from columns that are in the digest. They were added after digests had been stored.
            srtt_ps: _,
            min_rtt_ps: _,
            traffic_class,
            request,
            connection,
            measured_bytes,
            delay_packets,
            delay_sum_ns,
            delay_max_ns,
        } = table;
        self.narrow("flow id", id);
        self.narrow("flow src", src);
        self.narrow("flow dst", dst);
        self.narrow("flow scheme", scheme);
        self.wide("flow size", size_bytes);
        self.wide("flow start", start_ps);
        self.wide("flow finish", finish_ps);
        self.wide("flow ideal", ideal_ps);
        self.wide("flow delivered", delivered_bytes);
        self.by_class("flow sent", sent_packets);
        self.wide("flow lost", lost_packets);
        self.wide("flow retransmissions", retransmissions);
        self.wide("flow timeouts", timeouts);
        // Optional columns enter under their own names, so that a run without them keeps its digest.
        if !traffic_class.is_empty() {
            self.narrow("flow class", traffic_class);
        }
        if !connection.is_empty() {
            self.narrow("flow connection", connection);
        }
        for (name, column) in [
            ("flow first write", first_write_ps),
            ("flow request", request),
            ("flow measured", measured_bytes),
            ("flow delay packets", delay_packets),
            ("flow delay sum", delay_sum_ns),
            ("flow delay max", delay_max_ns),
        ] {
            if !column.is_empty() {
                self.wide(name, column);
            }
        }
    }

    fn links(&mut self, table: &LinkTable) {
        let LinkTable {
            from,
            to,
            rate_bps,
            sent_packets,
            sent_bytes,
            arrived_packets,
            dropped_packets,
            lost_packets,
            marked_packets,
            peak_backlog_bytes,
            pause_frames,
            paused_ps,
            duplicated_packets,
            reordered_packets,
        } = table;
        self.narrow("link from", from);
        self.narrow("link to", to);
        self.wide("link rate", rate_bps);
        self.wide("link sent", sent_packets);
        self.wide("link bytes", sent_bytes);
        self.by_class("link arrived", arrived_packets);
        self.by_class("link dropped", dropped_packets);
        self.wide("link lost", lost_packets);
        self.wide("link marked", marked_packets);
        self.wide("link peak", peak_backlog_bytes);
        // Only runs with pauses have these.
        if pause_frames.iter().any(|&frames| frames > 0) {
            self.wide("link pause frames", pause_frames);
            self.wide("link paused", paused_ps);
        }
        for (name, column) in [("link duplicated", duplicated_packets), ("link reordered", reordered_packets)] {
            if column.iter().any(|&packets| packets > 0) {
                self.wide(name, column);
            }
        }
    }

    fn cross_traffic(&mut self, table: &CrossTable) {
        let CrossTable { from, to, kind, packet_bytes, offered_packets, delivered_packets, dropped_packets } = table;
        if from.is_empty() {
            return;
        }
        self.narrow("cross from", from);
        self.narrow("cross to", to);
        self.text("cross kind");
        kind.iter().for_each(|name| self.text(name));
        self.narrow("cross size", packet_bytes);
        self.wide("cross offered", offered_packets);
        self.wide("cross delivered", delivered_packets);
        self.wide("cross dropped", dropped_packets);
    }

    fn delays(&mut self, table: &DelayTable) {
        let DelayTable { scheme, traffic_class, delay_ns, packets } = table;
        if packets.is_empty() {
            return;
        }
        self.narrow("delay scheme", scheme);
        self.narrow("delay class", traffic_class);
        self.wide("delay", delay_ns);
        self.wide("delay packets", packets);
    }

    fn packets(&mut self, table: &PacketTable) {
        let PacketTable { segment, is_retransmission, due_ps, sent_ps, departed_ps, arrived_ps, stamped_ps } = table;
        if segment.is_empty() {
            return;
        }
        self.narrow("packet segment", segment);
        self.narrow("packet again", is_retransmission);
        self.wide("packet due", due_ps);
        self.wide("packet sent", sent_ps);
        self.wide("packet departed", departed_ps);
        self.wide("packet arrived", arrived_ps);
        self.wide("packet stamped", stamped_ps);
    }

    fn series(&mut self, table: &SeriesTable) {
        let SeriesTable { time_ps, probe, quantity, value } = table;
        self.wide("series time", time_ps);
        self.narrow("series probe", probe);
        self.text("series quantity");
        quantity.iter().for_each(|name| self.text(name));
        self.numbers("series value", value.iter().map(|value| value.to_bits()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_flow() -> Records {
        let mut records = Records::default();
        records.flows.id.push(0);
        records.flows.size_bytes.push(1460);
        records.flows.sent_packets[1].push(3);
        records.series.quantity.push("cwnd_bytes");
        records.series.value.push(0.5);
        records
    }

    /// Pinned: a change of the encoding would make stored digests incomparable.
    #[test]
    fn the_digest_of_given_records_never_changes() {
        assert_eq!(digest(&one_flow()), "ef95e0bf6b8b91fe68c33a6d0a3360d2a65ce2719e74e590c5a823c07b728f49");
    }

    #[test]
    fn every_result_counts_and_the_number_of_events_does_not() {
        let base = digest(&one_flow());
        let mut other = one_flow();
        other.totals.events = 99;
        assert_eq!(digest(&other), base);
        let changes: [fn(&mut Records); 14] = [
            |records| records.flows.size_bytes[0] += 1,
            |records| records.flows.sent_packets.swap(1, 2),
            |records| records.links.marked_packets.push(0),
            |records| records.links.pause_frames.push(1),
            |records| records.links.duplicated_packets.push(1),
            |records| records.links.reordered_packets.push(1),
            |records| records.series.value[0] = -0.5,
            |records| records.totals.finished_flows = 1,
            |records| records.flows.traffic_class.push(0),
            |records| records.flows.request.push(0),
            |records| records.flows.connection.push(0),
            |records| records.delays.packets.push(1),
            |records| records.cross_traffic.from.push(0),
            |records| records.packets.segment.push(0),
        ];
        for change in changes {
            let mut other = one_flow();
            change(&mut other);
            assert_ne!(digest(&other), base);
        }
    }
}
