//! What the sender of one flow does, as qlog: JSON text sequences of events, with the names that QUIC's drafts give them
//! (draft-ietf-quic-qlog-main-schema-04, draft-ietf-quic-qlog-quic-events-03).
//!
//! TCP has no packet numbers, so transmissions are numbered in the order in which they leave. A packet counts as lost when its
//! segment is sent again.

use super::super::{FlowView, Flows, Interest, Kind, Observer, Opened, PacketEvent, Step};
use super::{Outcome, Sink};
use crate::records::Records;
use sparelane_core::Time;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

/// What stands before each record of a JSON text sequence (RFC 7464).
const RECORD: char = '\u{1e}';

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// The number of its last transmission, and how large that was.
    number: u64,
    wire_bytes: u32,
}

/// The log of one flow.
pub struct Qlog {
    flow: u32,
    sink: Sink,
    sent: u64,
    received: u64,
    outstanding: BTreeMap<u32, Outstanding>,
    /// The last value of each metric, as it was written.
    metrics: BTreeMap<&'static str, f64>,
    now: Time,
}

impl Qlog {
    /// A log that goes to `out`, of `most` events.
    pub fn new(flow: u32, most: u64, out: Box<dyn Write + Send>, outcome: Outcome) -> Qlog {
        let sink = Sink::new(out, outcome, most);
        let (outstanding, metrics) = (BTreeMap::new(), BTreeMap::new());
        Qlog { flow, sink, sent: 0, received: 0, outstanding, metrics, now: Time::ZERO }
    }

    fn event(&mut self, name: &str, data: &str) {
        let time_ms = self.now.as_ps() as f64 / 1e9;
        let record = format!("{RECORD}{{\"time\":{time_ms},\"name\":\"{name}\",\"data\":{{{data}}}}}\n");
        self.sink.put_one(record.as_bytes());
    }

    fn sent(&mut self, segment: u32, is_retransmission: bool, packet: &PacketEvent) {
        if is_retransmission && let Some(lost) = self.outstanding.get(&segment).copied() {
            let Outstanding { number, wire_bytes } = lost;
            let header = header(number);
            self.event("recovery:packet_lost", &format!("{header},\"raw\":{{\"length\":{wire_bytes}}}"));
        }
        let (number, wire_bytes) = (self.sent, packet.wire_bytes);
        self.sent += 1;
        self.outstanding.insert(segment, Outstanding { number, wire_bytes });
        let header = header(number);
        let frames = format!("\"frames\":[{{\"frame_type\":\"stream\",\"stream_id\":0,\"length\":{wire_bytes}}}]");
        self.event("transport:packet_sent", &format!("{header},\"raw\":{{\"length\":{wire_bytes}}},{frames}"));
    }

    fn acknowledged(&mut self, cumulative: u32, trigger: u32, packet: &PacketEvent) {
        let number = self.received;
        self.received += 1;
        let caused_by = self.outstanding.get(&trigger).map(|outstanding| outstanding.number);
        let frames = caused_by.map_or(String::new(), |sent| {
            format!(",\"frames\":[{{\"frame_type\":\"ack\",\"acked_ranges\":[[{sent},{sent}]]}}]")
        });
        let (header, length) = (header(number), packet.wire_bytes);
        self.event("transport:packet_received", &format!("{header},\"raw\":{{\"length\":{length}}}{frames}"));
        // Numbers wrap around after four billion segments; what lies behind is then half of the range away.
        let is_behind = |segment: u32| cumulative.wrapping_sub(segment).wrapping_sub(1) < u32::MAX / 2;
        while let Some(entry) = self.outstanding.first_entry().filter(|entry| is_behind(*entry.key())) {
            entry.remove();
        }
    }
}

fn header(number: u64) -> String {
    format!("\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}}")
}

impl Observer for Qlog {
    fn interest(&self) -> Interest {
        Interest { packets: Flows::One(self.flow), ..Interest::default() }
    }

    fn on_open(&mut self, flow: &Opened) {
        if flow.flow == self.flow {
            let head = format!(
                "{RECORD}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"flow {}\",\"trace\":{{\
                 \"vantage_point\":{{\"name\":\"sparelane\",\"type\":\"client\"}},\"common_fields\":{{\"time_format\":\
                 \"relative\",\"reference_time\":0,\"group_id\":\"{}\",\"protocol_type\":[\"TCP\"]}}}}}}\n",
                self.flow, self.flow
            );
            self.sink.put_head(head.as_bytes());
        }
    }

    fn on_packet(&mut self, packet: &PacketEvent) {
        self.now = packet.now;
        match (packet.kind, packet.step) {
            (Kind::Data { segment, is_retransmission, .. }, Step::Sent { .. }) => {
                self.sent(segment, is_retransmission, packet);
            }
            (Kind::Acknowledgment { cumulative, trigger, .. }, Step::Received { .. }) => {
                self.acknowledged(cumulative, trigger, packet);
            }
            _ => {}
        }
    }

    fn on_acknowledged(&mut self, flow: &FlowView<'_>) {
        let mut changed = String::new();
        let metrics = &mut self.metrics;
        flow.trace(&mut |name, value| {
            let (name, value) = match name {
                "cwnd_bytes" => ("congestion_window", value),
                "in_flight_bytes" => ("bytes_in_flight", value),
                "srtt_s" => ("smoothed_rtt", value * 1e3),
                "ssthresh_bytes" if value < 1e15 => ("ssthresh", value),
                _ => return,
            };
            if metrics.insert(name, value) != Some(value) {
                let comma = if changed.is_empty() { "" } else { "," };
                // Writing into a text does not fail.
                let _ = write!(changed, "{comma}\"{name}\":{value}");
            }
        });
        if !changed.is_empty() {
            self.event("recovery:metrics_updated", &changed);
        }
    }

    fn finish(self: Box<Self>, _records: &mut Records) {
        self.sink.finish();
    }
}
