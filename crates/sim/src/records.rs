//! What a run leaves behind: plain columns, one vector a column, all vectors of a table equally long.

/// The most priority classes that packets can have.
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
    /// When the SYN was sent, picoseconds.
    pub start_ps: Vec<u64>,
    /// When the receiver held the last byte, picoseconds; `u64::MAX` where it never did.
    pub finish_ps: Vec<u64>,
    /// The least completion time that the flow's path allows: handshake, propagation and the
    /// serialization of every byte at the slowest link, picoseconds; `u64::MAX` for a flow without end.
    pub ideal_ps: Vec<u64>,
    /// Payload bytes that the receiver holds in sequence.
    pub delivered_bytes: Vec<u64>,
    /// Data packets sent, by class.
    pub sent_packets: [Vec<u64>; CLASSES],
    /// Data packets of any class that were sent and then dropped by a queue or lost on a wire.
    pub lost_packets: Vec<u64>,
    /// Class-0 segments sent again.
    pub retransmissions: Vec<u64>,
    /// Retransmission timeouts, SYN timeouts included.
    pub timeouts: Vec<u64>,
}

/// One row per direction of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTable {
    /// Index of the node that sends.
    pub from: Vec<u32>,
    /// Index of the node that receives.
    pub to: Vec<u32>,
    /// Bits per second.
    pub rate_bps: Vec<u64>,
    /// Packets that began transmission before the run's end.
    pub sent_packets: Vec<u64>,
    /// Their bytes, headers included.
    pub sent_bytes: Vec<u64>,
    /// Packets that came to the queue, by class.
    pub arrived_packets: [Vec<u64>; CLASSES],
    /// Packets dropped by the queue, by class.
    pub dropped_packets: [Vec<u64>; CLASSES],
    /// Packets lost on the wire at random.
    pub lost_packets: Vec<u64>,
    /// Packets marked with congestion experienced.
    pub marked_packets: Vec<u64>,
    /// The most bytes ever queued or in transmission.
    pub peak_backlog_bytes: Vec<u64>,
}

/// Time series in long form: one row per probe, quantity and sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesTable {
    /// Sample time, picoseconds.
    pub time_ps: Vec<u64>,
    /// Index into the run's probes.
    pub probe: Vec<u32>,
    /// What was measured: `cwnd_bytes`, `in_flight_bytes`, `srtt_s`, `backlog_bytes`, or a name that a controller traces.
    pub quantity: Vec<&'static str>,
    /// The value.
    pub value: Vec<f64>,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events handled by the engine.
    pub events: u64,
    /// Packets, data or not, that crossed a link.
    pub packet_hops: u64,
    /// Flows that started.
    pub flows: u64,
    /// Flows whose receiver holds every byte.
    pub finished_flows: u64,
    /// The simulated time at the end, picoseconds.
    pub end_ps: u64,
    /// The most flows that were open at the same time.
    pub peak_open_flows: u64,
}

/// All results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// One row per flow.
    pub flows: FlowTable,
    /// One row per direction of a cable.
    pub links: LinkTable,
    /// Time series, if asked for.
    pub series: SeriesTable,
    /// Totals.
    pub totals: Totals,
}
