//! The results of a run, as plain columns: one vector per column, and vectors of equal length within a table.
//!
//! Columns convert to data frames without copying row by row, and the digest of a run covers all of them.

use crate::flow::FlowSpec;
use crate::routing::network::NodeId;
use crate::wire::link::LinkCounts;
use sparelane_core::{Dur, Rate, Time};

/// The number of priority classes.
pub const CLASSES: usize = 8;

/// One row per flow, in order of start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    /// The flow's number, in order of start, from 0.
    pub id: Vec<u32>,
    /// Index of the sending node.
    pub src: Vec<u32>,
    /// Index of the receiving node.
    pub dst: Vec<u32>,
    /// Index of the scheme.
    pub scheme: Vec<u16>,
    /// Payload bytes; `u64::MAX` for a flow without end.
    pub size_bytes: Vec<u64>,
    /// Send time of the SYN, or of the first write on a connection that was open already, picoseconds.
    pub start_ps: Vec<u64>,
    /// Time at which the receiver held the last byte, picoseconds; `u64::MAX` if it never did.
    pub finish_ps: Vec<u64>,
    /// The least completion time that the flow's path allows: handshake (of a new connection), propagation and the
    /// serialization of every byte at the slowest link, picoseconds; `u64::MAX` for a flow without end.
    pub ideal_ps: Vec<u64>,
    /// Time from the flow's start until the receiver held the whole first write in order, picoseconds; `u64::MAX` if it
    /// never did or the flow was written at once. Empty if no flow of the run is written in pieces.
    pub first_write_ps: Vec<u64>,
    /// Payload bytes that the receiver holds in sequence.
    pub delivered_bytes: Vec<u64>,
    /// Data packets sent, by class on the wire.
    pub sent_packets: [Vec<u64>; CLASSES],
    /// Data packets, of any class, that were sent and then dropped by a queue or lost on a wire.
    pub lost_packets: Vec<u64>,
    /// Retransmitted segments, without those that RC3's tail had sent first.
    pub retransmissions: Vec<u64>,
    /// Retransmission timeouts, SYN timeouts included.
    pub timeouts: Vec<u64>,
    /// The smoothed round-trip time at the end of the flow or of the run, picoseconds; `u64::MAX` without a sample.
    pub srtt_ps: Vec<u64>,
    /// The least sample of the round-trip time, picoseconds; `u64::MAX` without a sample.
    pub min_rtt_ps: Vec<u64>,
    /// Index of the class of traffic; `u16::MAX` for none. Empty if no flow of the run has one.
    pub traffic_class: Vec<u16>,
    /// Number of the request that the flow is part of; `u64::MAX` for none. Empty if no flow of the run is part of one.
    pub request: Vec<u64>,
    /// Number of the flow that opened the connection, which is the flow itself unless connections are reused. Empty if
    /// no flow of the run takes its connection from a pool.
    pub connection: Vec<u32>,
    /// Payload bytes that the receiver got since the warm-up ended, each counted once. Empty if nothing is measured.
    pub measured_bytes: Vec<u64>,
    /// Data packets whose one-way delay was measured. Empty if delays are not measured.
    pub delay_packets: Vec<u64>,
    /// The sum of these delays, nanoseconds.
    pub delay_sum_ns: Vec<u64>,
    /// The largest of these delays, nanoseconds.
    pub delay_max_ns: Vec<u64>,
}

/// The number of rows from which memory is reserved for the rows to come.
const MANY_ROWS: usize = 1_024;

/// Sets the values of a row in the columns of classes, which are only as long as they need to be for values other than
/// zero: most runs use one class. A column that grows gets memory for `rows` rows.
fn set_by_class(columns: &mut [Vec<u64>; CLASSES], row: usize, values: &[u64; CLASSES], rows: usize) {
    for (column, &value) in columns.iter_mut().zip(values).filter(|&(_, &value)| value != 0) {
        if column.len() <= row {
            column.reserve(rows.saturating_sub(column.len()));
            column.resize(row + 1, 0);
        }
        column[row] = value;
    }
}

/// Lengthens the columns of classes to `rows` rows.
fn complete_by_class(columns: &mut [Vec<u64>; CLASSES], rows: usize) {
    for column in columns {
        if column.is_empty() {
            // Memory that is zero from the start takes no time until it is read.
            *column = vec![0; rows];
        } else {
            column.resize(rows, 0);
        }
    }
}

impl FlowTable {
    /// Reserves memory for the rows that are expected until `stop`, if the next row at `now` needs more memory. A column that
    /// doubles is copied, and its memory is written twice.
    pub(crate) fn reserve_until(&mut self, now: Time, stop: Time) {
        let rows = self.id.len();
        if rows == self.id.capacity() && rows >= MANY_ROWS && now > Time::ZERO {
            let expected = rows as f64 * (stop.as_ps() as f64 / now.as_ps() as f64) * 1.05;
            self.reserve((expected as usize).clamp(rows + rows / 4, 4 * rows) - rows);
        }
    }

    /// Lengthens columns that have values for some flows only. This follows the last [`FlowTable::close`].
    pub(crate) fn complete(&mut self) {
        complete_by_class(&mut self.sent_packets, self.id.len());
    }

    /// Reserves memory for `rows` rows in the columns that every run has.
    pub(crate) fn reserve(&mut self, rows: usize) {
        [&mut self.id, &mut self.src, &mut self.dst].into_iter().for_each(|column| column.reserve_exact(rows));
        self.scheme.reserve_exact(rows);
        let wide = [
            &mut self.size_bytes,
            &mut self.start_ps,
            &mut self.finish_ps,
            &mut self.ideal_ps,
            &mut self.delivered_bytes,
            &mut self.lost_packets,
            &mut self.retransmissions,
            &mut self.timeouts,
            &mut self.srtt_ps,
            &mut self.min_rtt_ps,
        ];
        wide.into_iter().for_each(|column| column.reserve_exact(rows));
    }

    /// Adds the row of a flow that starts on a connection. Results start at their values for "not yet".
    pub(crate) fn open(&mut self, spec: &FlowSpec, connection: u32, start: Time, ideal_ps: u64) {
        let row = self.id.len();
        self.id.push(self.id.len() as u32);
        self.src.push(spec.src.0);
        self.dst.push(spec.dst.0);
        self.scheme.push(spec.scheme);
        self.size_bytes.push(spec.size_bytes.unwrap_or(u64::MAX));
        self.start_ps.push(start.as_ps());
        self.finish_ps.push(Time::NEVER.as_ps());
        self.ideal_ps.push(ideal_ps);
        self.delivered_bytes.push(0);
        self.lost_packets.push(0);
        self.retransmissions.push(0);
        self.timeouts.push(0);
        self.srtt_ps.push(u64::MAX);
        self.min_rtt_ps.push(u64::MAX);
        if spec.writes.is_some() || !self.first_write_ps.is_empty() {
            self.first_write_ps.resize(self.id.len(), u64::MAX);
        }
        if spec.traffic_class.is_some() || !self.traffic_class.is_empty() {
            self.traffic_class.resize(self.id.len(), u16::MAX);
            self.traffic_class[row] = spec.traffic_class.unwrap_or(u16::MAX);
        }
        if spec.request.is_some() || !self.request.is_empty() {
            self.request.resize(self.id.len(), u64::MAX);
            self.request[row] = spec.request.map_or(u64::MAX, u64::from);
        }
        if spec.pool.is_some() || !self.connection.is_empty() {
            // Flows before the first from a pool have connections of their own.
            self.connection.extend(self.connection.len() as u32..row as u32);
            self.connection.push(connection);
        }
    }
}

/// The results of a flow, which complete its row once the flow or the run is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// The row.
    pub(crate) row: u32,
    pub(crate) finish: Time,
    /// The least completion time.
    pub(crate) ideal: Dur,
    /// The time until the receiver held the first write, if it did and the flow is written in pieces.
    pub(crate) first_write: Option<Dur>,
    pub(crate) delivered_bytes: u64,
    pub(crate) sent: [u64; CLASSES],
    pub(crate) lost: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) srtt: Option<Dur>,
    pub(crate) min_rtt: Option<Dur>,
}

impl FlowTable {
    /// Completes the row of a flow.
    pub(crate) fn close(&mut self, outcome: &Outcome) {
        let row = outcome.row as usize;
        self.finish_ps[row] = outcome.finish.as_ps();
        if let Some(first_write) = outcome.first_write {
            self.first_write_ps[row] = first_write.as_ps();
        }
        self.delivered_bytes[row] = outcome.delivered_bytes;
        set_by_class(&mut self.sent_packets, row, &outcome.sent, self.id.capacity());
        self.lost_packets[row] = outcome.lost;
        self.retransmissions[row] = outcome.retransmissions;
        self.timeouts[row] = outcome.timeouts;
        self.srtt_ps[row] = outcome.srtt.map_or(u64::MAX, Dur::as_ps);
        self.min_rtt_ps[row] = outcome.min_rtt.map_or(u64::MAX, Dur::as_ps);
    }
}

/// One row per direction of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTable {
    /// Index of the node that sends.
    pub from: Vec<u32>,
    /// Index of the node that receives.
    pub to: Vec<u32>,
    /// Bits per second; the mean over the run if the link changes.
    pub rate_bps: Vec<u64>,
    /// Packets that arrived at the far end by the run's end, or were lost on the wire.
    pub sent_packets: Vec<u64>,
    /// Their bytes, headers included.
    pub sent_bytes: Vec<u64>,
    /// Packets that arrived at the queue, by class.
    pub arrived_packets: [Vec<u64>; CLASSES],
    /// Packets dropped by the queue, by class.
    pub dropped_packets: [Vec<u64>; CLASSES],
    /// Packets lost on the wire by random loss.
    pub lost_packets: Vec<u64>,
    /// Packets marked with congestion experienced.
    pub marked_packets: Vec<u64>,
    /// The largest backlog, bytes: what is queued and, on FIFO links, the unsent rest of the packet in transmission.
    pub peak_backlog_bytes: Vec<u64>,
    /// PAUSE frames that arrived for the transmitter, including those that end a pause. Frames do not count as packets.
    /// Empty if no cable has PAUSE.
    pub pause_frames: Vec<u64>,
    /// Time for which PAUSE kept the transmitter silent, picoseconds. Empty if no cable has PAUSE.
    pub paused_ps: Vec<u64>,
    /// Packets that the link delivered twice. Empty if no link of the run can duplicate or reorder packets.
    pub duplicated_packets: Vec<u64>,
    /// Packets that the link delivered after one that was sent later (RFC 4737 section 4). Empty if no link of the run can
    /// duplicate or reorder packets.
    pub reordered_packets: Vec<u64>,
}

/// The columns of links that not every run has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkColumns {
    /// Some cable has PAUSE.
    pub(crate) pause: bool,
    /// Some link has a stage at its far end.
    pub(crate) stages: bool,
}

/// The rows of a table of links while it is written.
#[derive(Debug)]
pub(crate) struct LinkRows(LinkTable);

impl LinkRows {
    /// No rows yet, with memory for `links` in the columns that every run has.
    pub(crate) fn for_links(links: usize) -> LinkRows {
        let mut table = LinkTable::default();
        table.from.reserve_exact(links);
        table.to.reserve_exact(links);
        let wide = [
            &mut table.rate_bps,
            &mut table.sent_packets,
            &mut table.sent_bytes,
            &mut table.lost_packets,
            &mut table.marked_packets,
            &mut table.peak_backlog_bytes,
        ];
        wide.into_iter().for_each(|column| column.reserve_exact(links));
        LinkRows(table)
    }

    /// The table of all rows.
    pub(crate) fn into_table(mut self) -> LinkTable {
        let rows = self.0.from.len();
        complete_by_class(&mut self.0.arrived_packets, rows);
        complete_by_class(&mut self.0.dropped_packets, rows);
        self.0
    }

    /// Adds the row of a link.
    pub(crate) fn add(&mut self, [from, to]: [NodeId; 2], rate: Rate, counts: &LinkCounts, columns: LinkColumns) {
        let table = &mut self.0;
        table.from.push(from.0);
        table.to.push(to.0);
        table.rate_bps.push(rate.as_bps());
        table.sent_packets.push(counts.delivered_packets);
        table.sent_bytes.push(counts.delivered_bytes);
        let (row, rows) = (table.from.len() - 1, table.from.capacity());
        set_by_class(&mut table.arrived_packets, row, &counts.arrived, rows);
        set_by_class(&mut table.dropped_packets, row, &counts.dropped, rows);
        table.lost_packets.push(counts.lost);
        table.marked_packets.push(counts.marked);
        table.peak_backlog_bytes.push(counts.peak_backlog_bytes);
        if columns.pause {
            table.pause_frames.push(counts.pause_frames);
            table.paused_ps.push(counts.silence.as_ps());
        }
        if columns.stages {
            table.duplicated_packets.push(counts.duplicated);
            table.reordered_packets.push(counts.reordered);
        }
    }
}

/// One row per source of cross traffic, in the order of the run's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossTable {
    /// Index of the sending node.
    pub from: Vec<u32>,
    /// Index of the receiving node.
    pub to: Vec<u32>,
    /// The name of its pattern.
    pub kind: Vec<&'static str>,
    /// The size of its packets on the wire, bytes.
    pub packet_bytes: Vec<u16>,
    /// Packets handed to the interface of the sending host.
    pub offered_packets: Vec<u64>,
    /// Packets that arrived at the receiving host.
    pub delivered_packets: Vec<u64>,
    /// Packets that were dropped by a queue or lost on a wire.
    pub dropped_packets: Vec<u64>,
}

/// Time series in long form: one row per probe, quantity and sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesTable {
    /// Sample time, picoseconds.
    pub time_ps: Vec<u64>,
    /// Index into the run's probes.
    pub probe: Vec<u32>,
    /// Name of the measured quantity: `cwnd_bytes`, `in_flight_bytes`, `srtt_s`, `backlog_bytes`, `sent_bytes` (arrived
    /// at the far end of a cable since the previous sample), `offered_bytes` (that a cable with a varying rate could
    /// have sent since then), or a name that a controller traces.
    pub quantity: Vec<&'static str>,
    /// The value.
    pub value: Vec<f64>,
}

/// One-way delays of data packets: a histogram for each scheme and class of traffic, one row per bin that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DelayTable {
    /// Index of the scheme.
    pub scheme: Vec<u16>,
    /// Index of the class of traffic; `u16::MAX` for none.
    pub traffic_class: Vec<u16>,
    /// The middle of the bin, nanoseconds; its ends are less than 1 % away.
    pub delay_ns: Vec<u64>,
    /// Packets in the bin.
    pub packets: Vec<u64>,
}

/// Data packets of one flow, in order of sending: one row per transmission. Times that are not known are `u64::MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketTable {
    /// The segment's number, from 0.
    pub segment: Vec<u32>,
    /// True if the segment had been sent before.
    pub is_retransmission: Vec<bool>,
    /// Time at which the packet was due, picoseconds, if a pace or the controller's clock set one.
    pub due_ps: Vec<u64>,
    /// Time at which the packet was handed to its host's interface, picoseconds.
    pub sent_ps: Vec<u64>,
    /// Time at which its last bit left that interface, picoseconds, if the queue there is a FIFO and did not drop it.
    pub departed_ps: Vec<u64>,
    /// Time at which its last bit reached the interface of the receiving host, picoseconds. Unknown if the packet was
    /// dropped or lost, was in flight at the end, or was in flight for 4.29 s or more.
    pub arrived_ps: Vec<u64>,
    /// Arrival time reported by the acknowledgment, picoseconds, if the packet caused one that reports receive times.
    pub stamped_ps: Vec<u64>,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events handled by the engine.
    pub events: u64,
    /// Packets of any kind that crossed a link.
    pub packet_hops: u64,
    /// Flows that started.
    pub flows: u64,
    /// Flows whose receiver holds every byte.
    pub finished_flows: u64,
    /// The simulated time at the end, picoseconds.
    pub end_ps: u64,
    /// The largest number of flows open at the same time. A connection that waits for its next flow counts as one.
    pub peak_open_flows: u64,
}

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// One row per flow.
    pub flows: FlowTable,
    /// One row per direction of a cable.
    pub links: LinkTable,
    /// Sources of cross traffic.
    pub cross_traffic: CrossTable,
    /// Time series, if sampled.
    pub series: SeriesTable,
    /// One-way delays, if measured.
    pub delays: DelayTable,
    /// Packets of the logged flow, if there is one.
    pub packets: PacketTable,
    /// Totals.
    pub totals: Totals,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_classes_have_all_rows_in_the_end() {
        let mut columns: [Vec<u64>; CLASSES] = Default::default();
        let value = |class: usize, value| std::array::from_fn(|other| if other == class { value } else { 0 });
        set_by_class(&mut columns, 4, &value(0, 7), 5);
        set_by_class(&mut columns, 1, &value(2, 3), 5);
        set_by_class(&mut columns, 2, &value(2, 9), 5);
        set_by_class(&mut columns, 3, &value(1, 0), 5);
        assert_eq!(columns[2], [0, 3, 9], "no longer than needed");
        complete_by_class(&mut columns, 5);
        assert_eq!((&columns[0], &columns[2]), (&vec![0, 0, 0, 0, 7], &vec![0, 3, 9, 0, 0]));
        for class in [1, 3, 4, 5, 6, 7] {
            assert_eq!(columns[class], [0; 5]);
        }
    }

    #[test]
    fn memory_is_reserved_for_the_flows_to_come() {
        let mut table = FlowTable::default();
        let stop = Time::ZERO + Dur::from_ms(100);
        let spec = FlowSpec::new(Time::ZERO, NodeId(0), NodeId(1), Some(1), 0);
        let mut capacities = Vec::new();
        // A thousand flows in each millisecond.
        for number in 0..100_000 {
            let now = Time::ZERO + Dur::from_us(number);
            table.reserve_until(now, stop);
            table.open(&spec, number as u32, now, 0);
            if capacities.last() != Some(&table.start_ps.capacity()) {
                capacities.push(table.start_ps.capacity());
            }
        }
        let last = table.start_ps.capacity();
        assert!((100_000..=106_000).contains(&last), "{last}");
        assert!(capacities.iter().filter(|&&rows| rows > MANY_ROWS).count() <= 4, "{capacities:?}");
    }
}
