//! Metrics of a host for Prometheus, in the text exposition format 0.0.4.
//!
//! There is one line for each number, or one for each class; the size does not depend on the number of flows.

use crate::host::Host;
use std::fmt::Write as _;

/// Returns the metrics of a host.
pub fn exposition(host: &Host) -> String {
    let mut text = Text::default();
    let node = host.node();
    let (totals, classes) = (node.totals(), usize::from(node.config().classes));
    // Gauges: the current state.
    text.gauge("associations", "Open associations.", node.associations() as f64);
    text.gauge("sending_flows", "Flows being sent.", node.sending_flows().count() as f64);
    text.gauge("receiving_flows", "Flows being received.", node.receiving_flows().count() as f64);
    text.gauge("held_bytes", "Received bytes in memory, out of order or unread.", node.held_bytes() as f64);
    let buffered: u64 = node.sending_flows().map(|flow| flow.buffered_bytes()).sum();
    text.gauge("buffered_bytes", "Bytes written and not yet acknowledged.", buffered as f64);
    let cwnd: u64 = node.sending_flows().map(|flow| flow.sender().controller().limits().cwnd_bytes).sum();
    text.gauge("cwnd_bytes", "Sum of the congestion windows of all flows being sent.", cwnd as f64);
    let in_flight: u64 = node.sending_flows().map(|flow| flow.sender().in_flight_bytes()).sum();
    text.gauge("in_flight_bytes", "Bytes of class 0 in flight.", in_flight as f64);
    // Without flows there is no round-trip time, and no line.
    if let Some(srtt) = node.sending_flows().filter_map(|flow| flow.sender().srtt()).max() {
        text.gauge("srtt_seconds", "Largest smoothed round-trip time of a flow.", srtt.as_secs_f64());
    }
    if let Some(gaps) = node.gap_accuracy() {
        let help = "Difference between measured and scheduled gaps of segments,";
        text.gauge("gap_error_median_seconds", &format!("{help} median."), gaps.median_error.as_secs_f64());
        text.gauge("gap_error_p99_seconds", &format!("{help} 99th percentile."), gaps.p99_error.as_secs_f64());
    }
    // Counters: totals since the start, including flows that have ended.
    text.counter("sent_flows_total", "Flows sent since the start.", totals.flows[0]);
    text.counter("received_flows_total", "Flows received since the start.", totals.flows[1]);
    text.counter(
        "acknowledged_bytes_total",
        "Bytes that peers have acknowledged in sequence.",
        totals.acknowledged_bytes,
    );
    text.counter("delivered_bytes_total", "Bytes received in sequence and read.", totals.delivered_bytes);
    text.counter("retransmissions_total", "Retransmissions of class 0.", totals.retransmissions);
    text.counter("timeouts_total", "Retransmission timeouts.", totals.timeouts);
    text.counter(
        "refused_acknowledgments_total",
        "Acknowledgments refused because they cannot be true.",
        totals.refused_acks,
    );
    text.counter("undecoded_frames_total", "Frames that failed to decode.", node.undecoded());
    text.classes("sent_segments_total", "Segments sent.", &totals.sent[..classes]);
    text.classes("received_segments_total", "Segments accepted.", &totals.received[..classes]);
    let socket = host.socket().counts();
    text.counter("socket_sends_total", "System calls that sent datagrams.", socket.sends);
    text.counter("socket_receives_total", "System calls that received datagrams.", socket.receives);
    text.counter("socket_refused_datagrams_total", "Datagrams that the kernel refused to send.", socket.lost);
    text.0
}

#[derive(Default)]
struct Text(String);

// Writing into a string cannot fail.
impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP sparelane_{name} {help}\n# TYPE sparelane_{name} {kind}\n");
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, "gauge", help);
        let _ = writeln!(self.0, "sparelane_{name} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        let _ = writeln!(self.0, "sparelane_{name} {value}");
    }

    fn classes(&mut self, name: &str, help: &str, values: &[u64]) {
        self.head(name, "counter", help);
        for (class, value) in values.iter().enumerate() {
            let _ = writeln!(self.0, "sparelane_{name}{{class=\"{class}\"}} {value}");
        }
    }
}
