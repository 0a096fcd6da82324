//! Telemetry of a node: time series with the simulator's columns, a qlog, and totals.
//!
//! Time series have one row for each probe, quantity and sample. A probe is a flow that is sent (`flow 1.0`:
//! association and flow), a flow that is received (`flow 1.0 received`) or an association with all its flows
//! (`association 1`). Rows are kept until they are taken, up to [`MAX_ROWS`].

use crate::carrier::AssociationId;
use crate::flow::{FlowId, MAX_CLASSES, ReceiveFlow, SendFlow};
use sparelane_core::{Dur, Time};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

/// The maximum number of rows that are kept; further rows are only counted.
pub const MAX_ROWS: usize = 1 << 20;

/// The minimum time between two samples.
pub const MIN_INTERVAL: Dur = Dur::from_us(100);

/// Names of the quantities that exist for each class.
const SENT: [&str; MAX_CLASSES] = [
    "sent_class_0_segments",
    "sent_class_1_segments",
    "sent_class_2_segments",
    "sent_class_3_segments",
    "sent_class_4_segments",
    "sent_class_5_segments",
    "sent_class_6_segments",
    "sent_class_7_segments",
];
const RECEIVED: [&str; MAX_CLASSES] = [
    "received_class_0_segments",
    "received_class_1_segments",
    "received_class_2_segments",
    "received_class_3_segments",
    "received_class_4_segments",
    "received_class_5_segments",
    "received_class_6_segments",
    "received_class_7_segments",
];
const IN_FLIGHT: [&str; MAX_CLASSES] = [
    "in_flight_bytes",
    "in_flight_class_1_bytes",
    "in_flight_class_2_bytes",
    "in_flight_class_3_bytes",
    "in_flight_class_4_bytes",
    "in_flight_class_5_bytes",
    "in_flight_class_6_bytes",
    "in_flight_class_7_bytes",
];
const LOST: [&str; MAX_CLASSES] = [
    "retransmissions",
    "lost_class_1_segments",
    "lost_class_2_segments",
    "lost_class_3_segments",
    "lost_class_4_segments",
    "lost_class_5_segments",
    "lost_class_6_segments",
    "lost_class_7_segments",
];

/// Totals over flows, including those that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of flows sent and received.
    pub flows: [u64; 2],
    /// Segments sent, by class.
    pub sent: [u64; MAX_CLASSES],
    /// Segments accepted, by class.
    pub received: [u64; MAX_CLASSES],
    /// Bytes that peers have acknowledged in sequence.
    pub acknowledged_bytes: u64,
    /// Bytes that were received and read.
    pub delivered_bytes: u64,
    /// Retransmissions of class 0.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Acknowledgments that were refused because they cannot be true.
    pub refused_acks: u64,
}

impl Totals {
    /// Adds a flow that this node sends.
    pub fn add_sending(&mut self, flow: &SendFlow) {
        let (own, sender) = flow.counts();
        add(&mut self.sent, &own.sent);
        self.flows[0] += 1;
        self.acknowledged_bytes += flow.acknowledged_bytes();
        self.retransmissions += sender.retransmissions;
        self.timeouts += sender.timeouts;
        self.refused_acks += own.refused_acks;
    }

    /// Adds a flow that this node receives.
    pub fn add_receiving(&mut self, flow: &ReceiveFlow) {
        add(&mut self.received, &flow.received());
        self.flows[1] += 1;
        self.delivered_bytes += flow.read_bytes();
    }

    /// Adds other totals.
    pub fn add(&mut self, other: &Totals) {
        add(&mut self.flows, &other.flows);
        add(&mut self.sent, &other.sent);
        add(&mut self.received, &other.received);
        self.acknowledged_bytes += other.acknowledged_bytes;
        self.delivered_bytes += other.delivered_bytes;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.refused_acks += other.refused_acks;
    }
}

fn add<const N: usize>(sums: &mut [u64; N], more: &[u64; N]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Rows of time series, as columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Picoseconds since the node was created.
    pub time_ps: Vec<u64>,
    /// The probe, as an index into `names`.
    pub probe: Vec<u32>,
    /// Names of probes.
    pub names: Vec<String>,
    /// The quantity, with its unit.
    pub quantity: Vec<&'static str>,
    /// The value.
    pub value: Vec<f64>,
    /// Number of rows lost because the limit was reached.
    pub missed: u64,
}

/// The object of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Probe {
    Association(AssociationId),
    Sending(FlowId),
    Receiving(FlowId),
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Probe::Association(association) => write!(f, "association {}", association.0),
            Probe::Sending(FlowId { association, flow }) => write!(f, "flow {}.{flow}", association.0),
            Probe::Receiving(FlowId { association, flow }) => write!(f, "flow {}.{flow} received", association.0),
        }
    }
}

/// Configuration of telemetry.
#[derive(Default)]
pub struct TelemetryConfig {
    /// The time between samples of the time series; none without it.
    pub interval: Option<Dur>,
    /// The destination of a qlog of all flows, and its maximum number of events.
    pub log: Option<(Box<dyn Write + Send>, u64)>,
}

/// The telemetry of a node.
pub struct Telemetry {
    interval: Option<Dur>,
    next: Time,
    rows: Rows,
    probes: BTreeMap<Probe, u32>,
    classes: usize,
    log: Option<LogFile>,
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("interval", &self.interval).field("next", &self.next).finish_non_exhaustive()
    }
}

impl Telemetry {
    /// Creates the telemetry of a node with this number of classes. The first sample is due now.
    pub fn new(config: TelemetryConfig, now: Time, classes: u8) -> Telemetry {
        let TelemetryConfig { interval, log } = config;
        let interval = interval.map(|interval| interval.max(MIN_INTERVAL));
        Telemetry {
            interval,
            next: if interval.is_some() { now } else { Time::NEVER },
            rows: Rows::default(),
            probes: BTreeMap::new(),
            classes: usize::from(classes),
            log: log.map(|(out, most)| LogFile::new(out, most)),
        }
    }

    /// The time of the next sample.
    pub fn next_sample(&self) -> Time {
        self.next
    }

    /// Returns true if time series are enabled.
    pub(crate) fn samples(&self) -> bool {
        self.interval.is_some()
    }

    /// Returns true if there is a qlog that has not reached its limit.
    pub(crate) fn logs(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.out.is_some() && log.left > 0)
    }

    /// Schedules the sample after the current one. Missed samples are not repeated.
    pub(crate) fn note_sample(&mut self, now: Time) {
        if let Some(interval) = self.interval {
            let next = self.next + interval;
            self.next = if next > now { next } else { now + interval };
        }
    }

    /// Returns and removes the rows so far.
    pub fn take_rows(&mut self) -> Rows {
        self.probes.clear();
        std::mem::take(&mut self.rows)
    }

    /// Flushes the qlog. Returns, once, the error that ended it early.
    pub fn flush_log(&mut self) -> Option<io::Error> {
        self.log.as_mut().and_then(LogFile::flush)
    }

    /// Writes the qlog records that `take` appends.
    pub(crate) fn write_log(&mut self, take: impl FnOnce(&mut String)) {
        if let Some(log) = &mut self.log {
            take(&mut log.text);
            log.write();
        }
    }

    pub(crate) fn sample_sending(&mut self, now: Time, id: FlowId, flow: &SendFlow) {
        let classes = self.classes;
        let mut put = self.probe(now, Probe::Sending(id));
        flow.trace(&mut put);
        let (own, sender) = flow.counts();
        put("acknowledged_bytes", flow.acknowledged_bytes() as f64);
        put("buffered_bytes", flow.buffered_bytes() as f64);
        put("timeouts", sender.timeouts as f64);
        put(LOST[0], sender.retransmissions as f64);
        put(SENT[0], own.sent[0] as f64);
        for class in 1..classes {
            let (in_flight_bytes, lost) = flow.monitored_class(class);
            put(SENT[class], own.sent[class] as f64);
            put(IN_FLIGHT[class], in_flight_bytes as f64);
            put(LOST[class], lost as f64);
        }
        if let Some(gap) = flow.last_gap() {
            put("gap_s", gap.set.as_secs_f64());
            put("gap_error_s", gap.error_ps() as f64 * 1e-12);
        }
        if classes > 1 {
            put("tail_rate_bps", flow.tail().rate().as_bps() as f64);
        }
    }

    pub(crate) fn sample_receiving(&mut self, now: Time, id: FlowId, flow: &ReceiveFlow) {
        let classes = self.classes;
        let mut put = self.probe(now, Probe::Receiving(id));
        put("held_bytes", flow.held_bytes() as f64);
        put("delivered_bytes", flow.read_bytes() as f64);
        let received = flow.received();
        (0..classes).for_each(|class| put(RECEIVED[class], received[class] as f64));
    }

    pub(crate) fn sample_association(&mut self, now: Time, association: AssociationId, totals: &Totals) {
        let classes = self.classes;
        let mut put = self.probe(now, Probe::Association(association));
        put("acknowledged_bytes", totals.acknowledged_bytes as f64);
        put("delivered_bytes", totals.delivered_bytes as f64);
        put("timeouts", totals.timeouts as f64);
        put(LOST[0], totals.retransmissions as f64);
        for class in 0..classes {
            put(SENT[class], totals.sent[class] as f64);
            put(RECEIVED[class], totals.received[class] as f64);
        }
    }

    fn probe(&mut self, now: Time, probe: Probe) -> impl FnMut(&'static str, f64) {
        let rows = &mut self.rows;
        let index = *self.probes.entry(probe).or_insert_with(|| {
            rows.names.push(probe.to_string());
            rows.names.len() as u32 - 1
        });
        move |quantity, value| {
            if rows.value.len() >= MAX_ROWS {
                rows.missed += 1;
                return;
            }
            rows.time_ps.push(now.as_ps());
            rows.probe.push(index);
            rows.quantity.push(quantity);
            rows.value.push(value);
        }
    }
}

/// The qlog's output.
struct LogFile {
    out: Option<Box<dyn Write + Send>>,
    /// The number of events until the limit.
    left: u64,
    text: String,
    error: Option<io::Error>,
}

impl LogFile {
    fn new(mut out: Box<dyn Write + Send>, most: u64) -> LogFile {
        let head = sparelane_transport::qlog::head("flows of a node", "client", "node", "SPARELANE");
        let error = out.write_all(head.as_bytes()).err();
        LogFile { out: error.is_none().then_some(out), left: most, text: String::new(), error }
    }

    fn write(&mut self) {
        let mut text = self.text.as_str();
        // One event per line; keep whole lines up to the limit.
        let events = text.bytes().filter(|&byte| byte == b'\n').count() as u64;
        if events > self.left {
            let end = text.match_indices('\n').take(self.left as usize).last().map_or(0, |(at, _)| at + 1);
            text = &text[..end];
        }
        self.left -= events.min(self.left);
        if let Some(out) = &mut self.out
            && let Err(error) = out.write_all(text.as_bytes())
        {
            self.error.get_or_insert(error);
            self.out = None;
        }
        self.text.clear();
    }

    fn flush(&mut self) -> Option<io::Error> {
        if let Some(Err(error)) = self.out.as_mut().map(Write::flush) {
            self.error.get_or_insert(error);
            self.out = None;
        }
        self.error.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(usize);

    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("the disk is full"))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn rows_beyond_the_limit_are_counted_and_dropped() {
        let config = TelemetryConfig { interval: Some(Dur::from_ms(1)), log: None };
        let mut telemetry = Telemetry::new(config, Time::ZERO, 2);
        let mut put = telemetry.probe(Time::ZERO, Probe::Association(AssociationId(1)));
        (0..MAX_ROWS + 7).for_each(|_| put("timeouts", 0.0));
        drop(put);
        let rows = telemetry.take_rows();
        assert_eq!((rows.value.len(), rows.missed, rows.names), (MAX_ROWS, 7, vec!["association 1".to_owned()]));
        assert_eq!(telemetry.take_rows(), Rows::default());
    }

    #[test]
    fn a_failing_log_ends_and_reports_its_error_once() {
        let mut telemetry =
            Telemetry::new(TelemetryConfig { interval: None, log: Some((Box::new(Failing(2)), 10)) }, Time::ZERO, 1);
        assert!(telemetry.logs());
        telemetry.write_log(|text| text.push_str("one\n"));
        assert!(telemetry.logs());
        telemetry.write_log(|text| text.push_str("two\n"));
        assert!(!telemetry.logs());
        assert_eq!(telemetry.flush_log().map(|error| error.to_string()).as_deref(), Some("the disk is full"));
        assert!(telemetry.flush_log().is_none());
    }

    #[test]
    fn a_log_ends_at_its_limit_of_events() {
        let mut telemetry =
            Telemetry::new(TelemetryConfig { interval: None, log: Some((Box::new(Failing(9)), 3)) }, Time::ZERO, 1);
        telemetry.write_log(|text| text.push_str("one\ntwo\n"));
        telemetry.write_log(|text| text.push_str("three\nfour\n"));
        assert!(!telemetry.logs());
    }
}
