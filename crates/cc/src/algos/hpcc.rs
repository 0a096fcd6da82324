//! HPCC: a window that follows the bytes in flight on each link, as routers report them.
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, sections 3 and 4, algorithm 1.
//!
//! HPCC needs routers that write in-band telemetry into data packets, which receivers return. Each output port writes its
//! rate B, its backlog, the bytes that it has sent, and the time. From two reports of a port, the sender computes the rate
//! txRate and the utilisation u = min(qlen) / (B T) + txRate / B, where T is the base round-trip time. The port with the
//! highest u counts. Its u moves the average U with the weight of the time between the reports, at most T. The window
//! follows from a reference window Wc:
//!
//! ```text
//! U >= eta, or max_stage steps in a row:  W = Wc / (U / eta) + W_AI
//! otherwise:                              W = Wc + W_AI
//! ```
//!
//! Every acknowledgment sets W. Once per round trip, Wc becomes W. The pace is W / T. A flow starts with the window
//! B T of its interface, W_init, which also bounds W. W_AI is W_init (1 - eta) / N.
//!
//! Differences from the paper:
//!
//! - Reports are compared with the last report of the same port, not with the last report at the same place of the path.
//!   Both are the same unless packets of a flow take several paths.
//! - T is the base round-trip time of the flow's own path, unless `base_rtt` sets one for all flows, as in the paper.
//! - Loss does not change the window. After a retransmission timeout, one segment is in flight until an acknowledgment
//!   arrives.
//! - The window is rounded up to whole segments. The pace carries the fraction, also below one segment.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Hop, Limits, Needs, PathFacts, Telemetry};
use crate::pace::{HEADER_BYTES, PacketSize};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use sparelane_core::{Dur, Rate, Seq};

const PAPER: &str = "Li et al., SIGCOMM 2019";

const ETA: Param = Param {
    name: "eta",
    kind: Kind::Number { min: 0.01, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.95),
    meaning: "target utilisation of links",
    source: PAPER,
};

const MAX_STAGE: Param = Param {
    name: "max_stage",
    kind: Kind::Whole { min: 0, max: 1_000_000, unit: Unit::One },
    default: DefaultValue::Whole(5),
    meaning: "steps of additive increase in a row, before one that adapts to the utilisation",
    source: PAPER,
};

const FLOWS: Param = Param {
    name: "flows",
    kind: Kind::Whole { min: 1, max: 1_000_000_000, unit: Unit::One },
    default: DefaultValue::Whole(100),
    meaning: "number of flows whose additive increase together stays below 1 - eta; N in the paper",
    source: "Li et al., SIGCOMM 2019: 80 bytes at 100 Gb/s and 13 us",
};

const BASE_RTT: Param = Param {
    name: "base_rtt",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(100) },
    default: DefaultValue::Span(Dur::ZERO),
    meaning: "base round-trip time T; zero takes that of the flow's path",
    source: "sparelane; the paper sets one for the whole network",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "hpcc",
    summary: "a window by the utilisation of each link, for lossless datacentres; needs telemetry of routers",
    source: PAPER,
    params: &[ETA, MAX_STAGE, FLOWS, BASE_RTT],
    wire: None,
    make: &|values, plan| {
        let config = HpccConfig {
            eta: values.number(&ETA),
            max_stage: values.whole(&MAX_STAGE),
            flows: values.whole(&FLOWS),
            base_rtt: Some(values.span(&BASE_RTT)).filter(|rtt| !rtt.is_zero()),
            line_rate: plan.line_rate,
        };
        Ok(Box::new(Hpcc::new(config, plan.packets())))
    },
};

/// The base round-trip time of a connection before the first sample, if neither the settings nor the network give one.
const UNKNOWN_RTT: Dur = Dur::from_us(10);

/// The constants of the law, as declared, and the line rate.
#[derive(Clone, Copy, Debug)]
pub struct HpccConfig {
    /// Target utilisation.
    pub eta: f64,
    /// Steps of additive increase in a row.
    pub max_stage: u64,
    /// Number of flows whose additive increase fits into 1 - eta.
    pub flows: u64,
    /// Base round-trip time, if it is set.
    pub base_rtt: Option<Dur>,
    /// The rate of the sender's interface.
    pub line_rate: Rate,
}

/// The HPCC controller.
#[derive(Clone, Debug)]
pub struct Hpcc {
    config: HpccConfig,
    packet: PacketSize,
    /// T, seconds.
    base_rtt_s: f64,
    /// True if T comes from the settings or from the network.
    is_base_known: bool,
    /// W, Wc and W_init, bytes on the wire.
    window: f64,
    reference: f64,
    initial: f64,
    /// U.
    utilisation: f64,
    /// The steps of additive increase since the last one that adapted.
    stage: u64,
    /// The acknowledgment of a segment from this one on updates the reference window.
    update_from: Seq,
    /// The last report of each port.
    reports: Vec<Hop>,
    /// One segment is in flight since a retransmission timeout.
    is_stopped: bool,
}

impl Hpcc {
    /// Creates a controller for a connection with these packet sizes.
    pub fn new(config: HpccConfig, packet: PacketSize) -> Hpcc {
        let mut hpcc = Hpcc {
            config,
            packet,
            base_rtt_s: 0.0,
            is_base_known: config.base_rtt.is_some(),
            window: 0.0,
            reference: 0.0,
            initial: 0.0,
            utilisation: 1.0,
            stage: 0,
            update_from: 0,
            reports: Vec::new(),
            is_stopped: false,
        };
        hpcc.start(config.base_rtt.unwrap_or(UNKNOWN_RTT));
        hpcc
    }

    /// Sets T, and the windows to W_init.
    fn start(&mut self, base_rtt: Dur) {
        self.base_rtt_s = base_rtt.as_secs_f64().max(1e-9);
        let one_packet = self.packet.wire_bytes() as f64;
        let line_bps = self.config.line_rate.as_bps() as f64;
        self.initial = (line_bps * base_rtt.as_ps() as f64 / 8e12).max(one_packet);
        (self.window, self.reference) = (self.initial, self.initial);
    }

    /// W_AI.
    fn increase_bytes(&self) -> f64 {
        self.initial * (1.0 - self.config.eta) / self.config.flows as f64
    }

    /// Updates U from the reports of one packet (MeasureInflight). Returns false if no port has an earlier report.
    fn measure(&mut self, hops: &[Hop]) -> bool {
        let mut highest: Option<(f64, f64)> = None;
        for hop in hops {
            let Some(last) = self.reports.iter_mut().find(|last| last.port == hop.port) else {
                self.reports.push(*hop);
                continue;
            };
            // A packet that others have overtaken brings no news.
            if hop.at <= last.at {
                continue;
            }
            let passed_s = (hop.at - last.at).as_secs_f64();
            let rate = (hop.rate.as_bps() as f64 / 8.0).max(1.0);
            let sent_rate = hop.sent_bytes.saturating_sub(last.sent_bytes) as f64 / passed_s;
            let queue = hop.queue_bytes.min(last.queue_bytes) as f64;
            let u = queue / (rate * self.base_rtt_s) + sent_rate / rate;
            if highest.is_none_or(|(most, _)| u > most) {
                highest = Some((u, passed_s));
            }
            *last = *hop;
        }
        let Some((u, passed_s)) = highest else { return false };
        let weight = passed_s.min(self.base_rtt_s) / self.base_rtt_s;
        self.utilisation = (1.0 - weight) * self.utilisation + weight * u;
        true
    }

    /// Sets W (ComputeWind), and the reference window if `updates` is true.
    fn compute(&mut self, updates: bool) {
        let (eta, utilisation) = (self.config.eta, self.utilisation.max(1e-9));
        let adapts = utilisation >= eta || self.stage >= self.config.max_stage;
        let kept = if adapts { self.reference / (utilisation / eta) } else { self.reference };
        self.window = (kept + self.increase_bytes()).clamp(1.0, self.initial);
        if updates {
            self.reference = self.window;
            self.stage = if adapts { 0 } else { self.stage + 1 };
        }
    }
}

impl CongestionControl for Hpcc {
    fn needs(&self) -> Needs {
        Needs { telemetry: true, ..Needs::default() }
    }

    fn repaces(&self) -> bool {
        true
    }

    fn on_path(&mut self, path: PathFacts) {
        if self.config.base_rtt.is_none() {
            self.is_base_known = true;
            self.start(path.base_rtt);
        }
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        if let (false, Some(rtt)) = (self.is_base_known, cx.min_rtt) {
            self.start(rtt);
        }
    }

    fn on_telemetry(&mut self, telemetry: &Telemetry<'_>, _cx: &mut Cx<'_>) {
        let is_measured = self.measure(telemetry.hops);
        let updates = telemetry.segment >= self.update_from;
        if is_measured {
            self.compute(updates);
        }
        if updates {
            self.update_from = telemetry.next;
        }
    }

    fn on_ack(&mut self, _ack: &Ack, _cx: &mut Cx<'_>) {
        self.is_stopped = false;
    }

    fn on_congestion(&mut self, event: Congestion, _cx: &mut Cx<'_>) {
        self.is_stopped |= matches!(event, Congestion::Timeout { .. });
    }

    fn reacts_to_marks(&self) -> bool {
        false
    }

    fn limits(&self) -> Limits {
        let mss_bytes = self.packet.mss_bytes;
        let segments = (self.window / self.packet.wire_bytes() as f64).ceil().max(1.0) as u64;
        let cwnd_bytes = if self.is_stopped { mss_bytes } else { segments * mss_bytes };
        // Pacing counts 40 bytes of header for each segment.
        let scale = (mss_bytes + HEADER_BYTES) as f64 / self.packet.wire_bytes() as f64;
        let pace = Rate::from_bps((self.window * 8.0 / self.base_rtt_s * scale).max(1.0) as u64);
        Limits { cwnd_bytes, pacing: Some(pace) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.limits().cwnd_bytes as f64);
        put("window_bytes", self.window);
        put("reference_bytes", self.reference);
        put("utilisation", self.utilisation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::traced;
    use sparelane_core::{Domain, Stream, Time};

    /// 10 Gb/s for 10 us are 12,500 bytes.
    const T: Dur = Dur::from_us(10);
    const W_INIT: f64 = 12_500.0;

    fn hpcc() -> Hpcc {
        let config =
            HpccConfig { eta: 0.95, max_stage: 5, flows: 100, base_rtt: Some(T), line_rate: Rate::from_gbps(10) };
        Hpcc::new(config, PacketSize { mss_bytes: 1000, header_bytes: 82 })
    }

    fn hop(port: u32, us: u64, queue_bytes: u64, sent_bytes: u64) -> Hop {
        Hop { port, rate: Rate::from_gbps(10), at: Time::ZERO + Dur::from_us(us), queue_bytes, sent_bytes }
    }

    fn report(hpcc: &mut Hpcc, segment: Seq, next: Seq, hops: &[Hop]) {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let cx = &mut Cx { now: Time::ZERO, mss_bytes: 1000, srtt: None, min_rtt: None, rng: &mut rng };
        hpcc.on_telemetry(&Telemetry { segment, next, hops }, cx);
    }

    fn window(hpcc: &Hpcc) -> f64 {
        traced(hpcc, "window_bytes")
    }

    #[track_caller]
    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6 * expected, "{value}, expected {expected}");
    }

    #[test]
    fn a_flow_starts_with_the_window_and_the_pace_of_its_interface() {
        let limits = hpcc().limits();
        // 12,500 bytes are 11.6 packets of 1082 bytes. The pace counts 1040 bytes for each of them.
        assert_eq!(limits.cwnd_bytes, 12_000);
        assert_eq!(limits.pacing, Some(Rate::from_bps((10e9 * 1040.0 / 1082.0) as u64)));
    }

    /// Both reports find 6250 bytes, half of B T, and 12,500 bytes are sent in T: u = 0.5 + 1.
    #[test]
    fn the_window_falls_to_the_target_share_of_the_bytes_in_flight() {
        let mut hpcc = hpcc();
        report(&mut hpcc, 0, 10, &[hop(1, 0, 6250, 0)]);
        assert_eq!(window(&hpcc), W_INIT);
        report(&mut hpcc, 10, 20, &[hop(1, 10, 9000, 12_500)]);
        assert_near(traced(&hpcc, "utilisation"), 1.5);
        assert_near(window(&hpcc), W_INIT / (1.5 / 0.95) + 6.25);
    }

    /// A report after T / 4 has a quarter of the weight: U = 0.75 + 0.25 * 0.4.
    #[test]
    fn a_report_counts_with_the_time_since_the_last_one_and_the_busiest_port_counts() {
        let mut hpcc = hpcc();
        let later = |port, sent_bytes| Hop { at: Time::ZERO + T / 4, ..hop(port, 0, 0, sent_bytes) };
        report(&mut hpcc, 0, 10, &[hop(1, 0, 0, 0), hop(2, 0, 0, 0)]);
        report(&mut hpcc, 1, 10, &[later(1, 312), later(2, 1250)]);
        assert_near(traced(&hpcc, "utilisation"), 0.75 + 0.25 * 0.4);
    }

    #[test]
    fn the_reference_window_changes_once_per_round_trip() {
        let mut hpcc = hpcc();
        report(&mut hpcc, 0, 10, &[hop(1, 0, 12_500, 0)]);
        // Segment 9 was sent before the first acknowledgment, segment 10 after it.
        report(&mut hpcc, 9, 19, &[hop(1, 10, 12_500, 12_500)]);
        assert_near(window(&hpcc), W_INIT * 0.95 / 2.0 + 6.25);
        assert_eq!(traced(&hpcc, "reference_bytes"), W_INIT);
        report(&mut hpcc, 10, 20, &[hop(1, 20, 12_500, 25_000)]);
        assert_near(traced(&hpcc, "reference_bytes"), W_INIT * 0.95 / 2.0 + 6.25);
    }

    /// At a utilisation of a half, the window grows by W_AI five times, and then to 0.95 / 0.5 of its value.
    #[test]
    fn additive_steps_precede_one_that_adapts() {
        let mut hpcc = hpcc();
        (hpcc.window, hpcc.reference) = (1000.0, 1000.0);
        for round in 0..7 {
            report(&mut hpcc, round, round + 1, &[hop(1, 10 * round, 0, 6250 * round)]);
            let expected = if round == 6 { (1000.0 + 5.0 * 6.25) * 1.9 + 6.25 } else { 1000.0 + 6.25 * round as f64 };
            assert_near(window(&hpcc), expected);
        }
    }

    #[test]
    fn an_overtaken_report_is_no_news_and_a_new_port_needs_a_second_report() {
        let mut hpcc = hpcc();
        report(&mut hpcc, 0, 1, &[hop(1, 20, 0, 25_000)]);
        report(&mut hpcc, 1, 2, &[hop(1, 10, 50_000, 12_500), hop(2, 11, 50_000, 0)]);
        assert_eq!((window(&hpcc), traced(&hpcc, "utilisation")), (W_INIT, 1.0));
    }

    #[test]
    fn a_timeout_leaves_one_segment_until_an_acknowledgment() {
        let mut hpcc = hpcc();
        let mut rng = Stream::new(1, Domain::Test, 0);
        let cx = &mut Cx { now: Time::ZERO, mss_bytes: 1000, srtt: None, min_rtt: None, rng: &mut rng };
        hpcc.on_congestion(Congestion::Loss { flight_bytes: 9000 }, cx);
        assert_eq!(hpcc.limits().cwnd_bytes, 12_000);
        hpcc.on_congestion(Congestion::Timeout { flight_bytes: 9000, first: true }, cx);
        assert_eq!(hpcc.limits().cwnd_bytes, 1000);
        hpcc.on_ack(&Ack::in_sequence(1000), cx);
        assert_eq!(hpcc.limits().cwnd_bytes, 12_000);
    }
}
