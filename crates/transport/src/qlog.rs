//! qlog traces of a flow.
//!
//! A trace is a JSON text sequence of events with the names of draft-ietf-quic-qlog-main-schema-04 and
//! draft-ietf-quic-qlog-quic-events-03. The simulator and the wire transport write the same format.
//!
//! TCP has no packet numbers, so transmissions are numbered in sending order. A packet is reported lost when its
//! segment is retransmitted.

use sparelane_core::Time;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The separator before each record of a JSON text sequence (RFC 7464).
const RECORD: char = '\u{1e}';

/// Returns the first record of a file. `title`, `group` and `protocol` must not contain quotes or backslashes;
/// `vantage` is `client` or `server`.
pub fn head(title: &str, vantage: &str, group: &str, protocol: &str) -> String {
    format!(
        "{RECORD}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"{title}\",\"trace\":{{\
         \"vantage_point\":{{\"name\":\"sparelane\",\"type\":\"{vantage}\"}},\"common_fields\":{{\"time_format\":\
         \"relative\",\"reference_time\":0,\"group_id\":\"{group}\",\"protocol_type\":[\"{protocol}\"]}}}}}}\n"
    )
}

/// A callback that takes the name and the value of a metric.
pub type Put<'a> = &'a mut dyn FnMut(&'static str, f64);

/// The position of a segment in its stream, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The stream offset in bytes.
    pub offset_bytes: u64,
    /// The payload in bytes.
    pub payload_bytes: u32,
    /// The size with headers in bytes.
    pub wire_bytes: u32,
}

/// The last transmission of an unacknowledged segment.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// The packet number and the size of the transmission.
    number: u64,
    wire_bytes: u32,
}

/// The event writer of one flow. Each event is passed to `put` as one text record.
#[derive(Debug, Default)]
pub struct Events {
    /// JSON text after each event's data: the group of the flow, if several flows share a file.
    group: String,
    stream: u32,
    sent: u64,
    received: u64,
    outstanding: BTreeMap<u32, Outstanding>,
    /// The last value written of each metric.
    metrics: BTreeMap<&'static str, f64>,
}

impl Events {
    /// Creates the writer of the only flow of a file.
    pub fn new() -> Events {
        Events::default()
    }

    /// Creates the writer of one of several flows in a file. `group` must not contain quotes or backslashes; `stream`
    /// is the number of the flow.
    pub fn grouped(group: &str, stream: u32) -> Events {
        Events { group: format!(",\"group_id\":\"{group}\""), stream, ..Events::default() }
    }

    /// Writes one event with the JSON members `data`.
    fn event(&self, now: Time, name: &str, data: &str, put: &mut dyn FnMut(&str)) {
        let time_ms = now.as_ps() as f64 / 1e9;
        let group = &self.group;
        put(&format!("{RECORD}{{\"time\":{time_ms},\"name\":\"{name}\",\"data\":{{{data}}}{group}}}\n"));
    }

    /// Records the transmission of a segment, and the loss of its previous transmission if it is a retransmission.
    pub fn on_sent(
        &mut self,
        now: Time,
        segment: u32,
        is_retransmission: bool,
        extent: Extent,
        put: &mut dyn FnMut(&str),
    ) {
        if is_retransmission && let Some(lost) = self.outstanding.get(&segment).copied() {
            let Outstanding { number, wire_bytes } = lost;
            let data = format!("{},\"raw\":{{\"length\":{wire_bytes}}}", header(number));
            self.event(now, "recovery:packet_lost", &data, put);
        }
        let (number, wire_bytes) = (self.sent, extent.wire_bytes);
        self.sent += 1;
        self.outstanding.insert(segment, Outstanding { number, wire_bytes });
        let (header, frame) = (header(number), stream_frame(self.stream, extent));
        let data = format!("{header},\"raw\":{{\"length\":{wire_bytes}}},\"frames\":[{frame}]");
        self.event(now, "transport:packet_sent", &data, put);
    }

    /// Records an acknowledgment of `wire_bytes` that acknowledges all segments before `cumulative` and was triggered
    /// by `trigger`.
    pub fn on_acknowledged(
        &mut self,
        now: Time,
        cumulative: u32,
        trigger: u32,
        wire_bytes: u32,
        put: &mut dyn FnMut(&str),
    ) {
        let number = self.received;
        self.received += 1;
        let caused_by = self.outstanding.get(&trigger).map(|outstanding| outstanding.number);
        let frames = caused_by.map_or(String::new(), |sent| {
            format!(",\"frames\":[{{\"frame_type\":\"ack\",\"acked_ranges\":[[{sent},{sent}]]}}]")
        });
        let data = format!("{},\"raw\":{{\"length\":{wire_bytes}}}{frames}", header(number));
        self.event(now, "transport:packet_received", &data, put);
        // Sequence numbers wrap at 2^32: acknowledged ones are less than half of the range behind.
        let is_behind = |segment: u32| cumulative.wrapping_sub(segment).wrapping_sub(1) < u32::MAX / 2;
        while let Some(entry) = self.outstanding.first_entry().filter(|entry| is_behind(*entry.key())) {
            entry.remove();
        }
    }

    /// Records the arrival of a segment at the receiver.
    pub fn on_received(&mut self, now: Time, extent: Extent, put: &mut dyn FnMut(&str)) {
        let (number, wire_bytes) = (self.received, extent.wire_bytes);
        self.received += 1;
        let (header, frame) = (header(number), stream_frame(self.stream, extent));
        let data = format!("{header},\"raw\":{{\"length\":{wire_bytes}}},\"frames\":[{frame}]");
        self.event(now, "transport:packet_received", &data, put);
    }

    /// Records the metrics that `trace` reports under the names of the flow's time series. Metrics without a qlog name
    /// and unchanged values are omitted.
    pub fn on_metrics(&mut self, now: Time, trace: &mut dyn FnMut(Put<'_>), put: &mut dyn FnMut(&str)) {
        let mut changed = String::new();
        let metrics = &mut self.metrics;
        trace(&mut |name, value| {
            let (name, value) = match name {
                "cwnd_bytes" => ("congestion_window", value),
                "in_flight_bytes" => ("bytes_in_flight", value),
                "srtt_s" => ("smoothed_rtt", value * 1e3),
                "ssthresh_bytes" if value < 1e15 => ("ssthresh", value),
                _ => return,
            };
            if metrics.insert(name, value) != Some(value) {
                let comma = if changed.is_empty() { "" } else { "," };
                // Writing to a `String` cannot fail.
                let _ = write!(changed, "{comma}\"{name}\":{value}");
            }
        });
        if !changed.is_empty() {
            self.event(now, "recovery:metrics_updated", &changed, put);
        }
    }
}

fn header(number: u64) -> String {
    format!("\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}}")
}

fn stream_frame(stream: u32, Extent { offset_bytes, payload_bytes, .. }: Extent) -> String {
    format!("{{\"frame_type\":\"stream\",\"stream_id\":{stream},\"offset\":{offset_bytes},\"length\":{payload_bytes}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(act: impl FnOnce(&mut Events, &mut dyn FnMut(&str))) -> Vec<String> {
        let mut records = vec![];
        act(&mut Events::grouped("1.0", 7), &mut |text| records.push(text.to_owned()));
        records
    }

    #[test]
    fn a_file_starts_with_its_header_record() {
        let text = head("a run", "client", "f", "TCP");
        assert_eq!(
            text,
            "\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"a run\",\"trace\":{\"vantage_point\":\
             {\"name\":\"sparelane\",\"type\":\"client\"},\"common_fields\":{\"time_format\":\"relative\",\
             \"reference_time\":0,\"group_id\":\"f\",\"protocol_type\":[\"TCP\"]}}}\n"
        );
    }

    #[test]
    fn received_packets_are_numbered_from_zero() {
        let records = records(|events, put| {
            let extent = Extent { offset_bytes: 2760, payload_bytes: 1380, wire_bytes: 1400 };
            events.on_received(Time::from_ns(1_500_000), extent, put);
            events.on_acknowledged(Time::from_ns(2_000_000), 1, 0, 52, put);
        });
        assert_eq!(
            records[0],
            "\u{1e}{\"time\":1.5,\"name\":\"transport:packet_received\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\
             \"packet_number\":0},\"raw\":{\"length\":1400},\"frames\":[{\"frame_type\":\"stream\",\"stream_id\":7,\
             \"offset\":2760,\"length\":1380}]},\"group_id\":\"1.0\"}\n"
        );
        // The trigger is not outstanding, so there is no acknowledged range.
        assert!(records[1].contains("\"packet_number\":1},\"raw\":{\"length\":52}}"), "{}", records[1]);
    }

    #[test]
    fn a_retransmission_reports_the_previous_copy_lost() {
        let records = records(|events, put| {
            events.on_sent(Time::ZERO, 3, false, Extent::default(), put);
            events.on_sent(Time::ZERO, 3, true, Extent::default(), put);
            events.on_acknowledged(Time::ZERO, 4, 3, 50, put);
        });
        assert_eq!(records.len(), 4);
        assert!(records[1].contains("recovery:packet_lost") && records[1].contains("\"packet_number\":0}"));
        assert!(records[2].contains("\"packet_number\":1}") && records[2].contains("\"stream_id\":7"));
        assert!(records[3].contains("\"acked_ranges\":[[1,1]]"), "{}", records[3]);
        assert!(records.iter().all(|record| record.ends_with("\"group_id\":\"1.0\"}\n")));
    }

    #[test]
    fn acknowledged_segments_are_dropped_across_a_wrap_of_sequence_numbers() {
        let mut events = Events::new();
        for segment in [u32::MAX - 1, u32::MAX, 0, 1] {
            events.on_sent(Time::ZERO, segment, false, Extent::default(), &mut |_| {});
        }
        events.on_acknowledged(Time::ZERO, 1, 0, 50, &mut |_| {});
        assert!(!events.outstanding.contains_key(&0) && events.outstanding.contains_key(&1));
    }

    #[test]
    fn a_metric_is_written_once_until_it_changes() {
        let records = records(|events, put| {
            for cwnd in [10.0, 10.0, 20.0] {
                events.on_metrics(Time::ZERO, &mut |put| put("cwnd_bytes", cwnd), put);
            }
        });
        assert_eq!(records.len(), 2);
        assert!(records[1].contains("{\"congestion_window\":20}"), "{}", records[1]);
    }

    #[test]
    fn metrics_have_the_names_and_units_of_qlog_and_an_infinite_ssthresh_is_omitted() {
        let written = |ssthresh| {
            let metrics = [
                ("cwnd_bytes", 14_600.0),
                ("in_flight_bytes", 2920.0),
                ("srtt_s", 0.04),
                ("ssthresh_bytes", ssthresh),
                ("rate_bps", 1e6),
            ];
            let mut trace = |put: Put<'_>| metrics.iter().for_each(|&(name, value)| put(name, value));
            let all = records(|events, put| events.on_metrics(Time::ZERO, &mut trace, put));
            all.concat().split("\"data\":").nth(1).expect("one record").split('}').next().expect("its end").to_owned()
        };
        let others = "{\"congestion_window\":14600,\"bytes_in_flight\":2920,\"smoothed_rtt\":40";
        assert_eq!(written(7300.0), format!("{others},\"ssthresh\":7300"));
        assert_eq!(written(u64::MAX as f64), others);
    }
}
