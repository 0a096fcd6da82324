//! What a host tells a Prometheus server: its totals and what it holds now, as text in the exposition format 0.0.4.
//!
//! There is one line a number, and one for each class where classes differ: the text is short however many flows there are.

use crate::host::Host;
use std::fmt::Write as _;

/// The text for this host, now.
pub fn exposition(host: &Host) -> String {
    let mut text = Text::default();
    let node = host.node();
    let (totals, classes) = (node.totals(), usize::from(node.config().classes));
    let held: u64 = node.receiving_flows().map(|flow| flow.held_bytes()).sum();
    text.gauge("associations", "Associations that are open.", node.associations() as f64);
    text.gauge("sending_flows", "Flows that are sent now.", node.sending_flows().count() as f64);
    text.gauge("receiving_flows", "Flows that are received now.", node.receiving_flows().count() as f64);
    text.gauge("held_bytes", "Bytes that are held out of order, or not read.", held as f64);
    let buffered: u64 = node.sending_flows().map(|flow| flow.buffered_bytes()).sum();
    text.gauge("buffered_bytes", "Bytes that are written and not acknowledged.", buffered as f64);
    let cwnd: u64 = node.sending_flows().map(|flow| flow.sender().controller().limits().cwnd_bytes).sum();
    text.gauge("cwnd_bytes", "The windows of all flows that are sent.", cwnd as f64);
    let in_flight: u64 = node.sending_flows().map(|flow| flow.sender().in_flight_bytes()).sum();
    text.gauge("in_flight_bytes", "Bytes of class 0 in flight.", in_flight as f64);
    if let Some(srtt) = node.sending_flows().filter_map(|flow| flow.sender().srtt()).max() {
        text.gauge("srtt_seconds", "The largest smoothed round-trip time of a flow.", srtt.as_secs_f64());
    }
    if let Some(gaps) = node.gap_accuracy() {
        let help = "By how much gaps between segments differ from those that were set:";
        text.gauge("gap_error_median_seconds", &format!("{help} the median."), gaps.median_error.as_secs_f64());
        text.gauge("gap_error_p99_seconds", &format!("{help} 99th percentile."), gaps.p99_error.as_secs_f64());
    }
    text.counter("sent_flows_total", "Flows that were begun.", totals.flows[0]);
    text.counter("received_flows_total", "Flows of peers that were begun.", totals.flows[1]);
    text.counter("acknowledged_bytes_total", "Bytes that peers have in sequence.", totals.acknowledged_bytes);
    text.counter("delivered_bytes_total", "Bytes that were received in sequence and read.", totals.delivered_bytes);
    text.counter("retransmissions_total", "Segments of class 0 that were sent again.", totals.retransmissions);
    text.counter("timeouts_total", "Retransmission timeouts.", totals.timeouts);
    text.counter("refused_acknowledgments_total", "Acknowledgments that could not be true.", totals.refused_acks);
    text.counter("undecoded_frames_total", "Frames that were none.", node.undecoded());
    text.classes("sent_segments_total", "Segments that were sent.", &totals.sent[..classes]);
    text.classes("received_segments_total", "Segments that were taken.", &totals.received[..classes]);
    let socket = host.socket().counts();
    text.counter("socket_sends_total", "System calls that sent.", socket.sends);
    text.counter("socket_receives_total", "System calls that received.", socket.receives);
    text.counter("socket_refused_datagrams_total", "Datagrams that the kernel refused.", socket.lost);
    text.0
}

#[derive(Default)]
struct Text(String);

// Writing into a text does not fail.
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
