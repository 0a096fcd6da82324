//! RTCP, "Regulated TCP": a counter per flow and an estimate of congestion double or halve the window.
//!
//! Source: "Regulated TCP" (the RTCP paper), sections II to IV; equation numbers are the paper's.
//!
//! The counter H grows at the target rate gamma and falls with what is delivered (eq. 1), so that it holds how far the
//! flow lags behind its target. With the utility w log(1 + x) the target is w / H - 1 (eq. 6 and 10), which drives H
//! towards the weight w. Each acknowledgment compares H with the congestion that the flow meets, Q + delta D: the queue of
//! its own interface and the queueing delay of its path, smoothed by eq. (8). Where H < alpha (Q + delta D) the window is
//! halved, otherwise doubled (eq. 9). A flow of larger weight has a larger H, and so gives way later.
//!
//! Needs the queue of the interface (as the paper's simulations have it); with `backlog = false` Q is absent, as on the
//! paper's testbed.
//!
//! What the paper leaves open, and the reading that is taken here, each in one place:
//! - Units (`RtcpConfig`): H and w in bytes, Q in kilobytes, D in milliseconds, alpha in bytes per kilobyte, delta in
//!   kilobytes per millisecond: the testbed's delta of 125 is then exactly its 1 Gb/s, and the simulations' 10^4 eight times
//!   their 10 Gb/s. Rates are shares of the line rate: x = 1 and gamma = 1 there.
//! - maxRate is the line rate, in bytes as TCP counts them: payload.
//! - Between updates gamma holds; an update comes with every acknowledgment, H first.
//! - D is the last round-trip time of a data segment over the least one. The handshake does not count, since its packets
//!   are short: at 10 Gb/s their round trip is faster by about as much as the delay that halves a window.
//! - The window is kept between `min_window` and `max_window`. The paper names no x_max; doubling per acknowledgment does
//!   without end wherever the congestion is not felt for a round trip, so a bound must be, and every result depends on it.
//! - A loss halves the window, which then holds until it is repaired; a timeout leaves one segment: TCP's own rules,
//!   which the paper "leaves unchanged".
//! - A flow's weight is that of its class of traffic, or by its size (`classify`), or `weight`.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Needs, Phase};
use crate::param::{DefaultValue, Kind, Param, Unit, Values};
use crate::registry::{Blueprint, BuildError, Controller};
use crate::window::INITIAL_WINDOW;
use sparelane_core::{Dur, Rate, Time};

const ALPHA: Param = Param {
    name: "alpha",
    kind: Kind::Number { min: 1e-6, max: 1e12, unit: Unit::Named("bytes/KB") },
    default: DefaultValue::Number(500.0),
    meaning: "how much congestion weighs against utility: a larger one keeps queues shorter",
    source: "RTCP section V-B2; the unit is our reading",
};
const DELTA: Param = Param {
    name: "delta",
    kind: Kind::Number { min: 0.0, max: 1e12, unit: Unit::Named("KB/ms") },
    default: DefaultValue::Number(10_000.0),
    meaning: "how much queueing delay on the path weighs against the queue of the interface",
    source: "RTCP section V-B1 (simulations; the testbed has 125); the unit is our reading",
};
const SMOOTHING: Param = Param {
    name: "smoothing",
    kind: Kind::Number { min: 0.0, max: 0.999_999, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "weight of the past in the estimate of congestion (g)",
    source: "RTCP eq. (8)",
};
const WEIGHT: Param = Param {
    name: "weight",
    kind: Kind::Number { min: 1e-6, max: 1e15, unit: Unit::Named("bytes") },
    default: DefaultValue::Number(24_000.0),
    meaning: "weight of flows of no class",
    source: "RTCP section V-A1, urgent flows; the simulations name none",
};
const WEIGHTS: Param = Param {
    name: "weights",
    kind: Kind::Weights,
    default: DefaultValue::Weights(&[(URGENT, 24_000.0), (HIGH_VOLUME, 12_000.0)]),
    meaning: "weight of flows, bytes, by their class of traffic",
    source: "RTCP section V-A1",
};
const CLASSIFY: Param = Param {
    name: "classify",
    kind: Kind::Choice(&["no", "by-size"]),
    default: DefaultValue::Word("no"),
    meaning: "whether flows of no class are urgent or high-volume by their size",
    source: "RTCP section V-A1",
};
const URGENT_BELOW: Param = Param {
    name: "urgent_below",
    kind: Kind::Size { min: 0, max: u64::MAX },
    default: DefaultValue::Size(30_000),
    meaning: "flows of fewer bytes are urgent, where sizes classify",
    source: "RTCP section V-A1",
};
const MIN_WINDOW: Param = Param {
    name: "min_window",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(1),
    meaning: "least window",
    source: "sparelane: the paper names none",
};
const MAX_WINDOW: Param = Param {
    name: "max_window",
    kind: Kind::Bound { min: 1, unit: Unit::Segments },
    default: DefaultValue::Whole(44),
    meaning: "largest window",
    source: "sparelane: 64 KB; the paper names none",
};
const MAX_RATE: Param = Param {
    name: "max_rate",
    kind: Kind::OptionalRate,
    default: DefaultValue::Rate(None),
    meaning: "the target rate of an empty counter, and the rate that counts as x = 1; none takes the line rate",
    source: "RTCP eq. (10); its value is our reading",
};
const BACKLOG: Param = Param {
    name: "backlog",
    kind: Kind::Flag,
    default: DefaultValue::Flag(true),
    meaning: "whether the queue of the interface counts as congestion (the simulations' form; the testbed's has the delay alone)",
    source: "RTCP section IV-A",
};

/// The classes of traffic that the paper's experiments tell apart.
const URGENT: &str = "urgent";
const HIGH_VOLUME: &str = "high-volume";

/// What the catalogue says of it.
pub const CONTROLLER: Controller = Controller {
    name: "rtcp",
    summary: "a counter against congestion doubles or halves the window; weights by class of traffic",
    source: "Regulated TCP (RTCP), eqs. (6) to (10)",
    params: &[
        INITIAL_WINDOW,
        ALPHA,
        DELTA,
        SMOOTHING,
        WEIGHT,
        WEIGHTS,
        CLASSIFY,
        URGENT_BELOW,
        MIN_WINDOW,
        MAX_WINDOW,
        MAX_RATE,
        BACKLOG,
    ],
    make: |values, plan| Ok(Box::new(Rtcp::new(config(values, plan)?))),
};

fn config(values: &Values, plan: &Blueprint<'_>) -> Result<RtcpConfig, BuildError> {
    let mss_bytes = plan.mss_bytes;
    let min_window_bytes = values.whole(&MIN_WINDOW).saturating_mul(mss_bytes);
    let max_window_bytes = values.whole(&MAX_WINDOW).saturating_mul(mss_bytes).max(min_window_bytes);
    let initial = values.whole(&INITIAL_WINDOW).saturating_mul(mss_bytes);
    Ok(RtcpConfig {
        alpha: values.number(&ALPHA),
        delta: values.number(&DELTA),
        g: values.number(&SMOOTHING),
        weight_bytes: weight(values, plan)?,
        initial_window_bytes: initial.clamp(min_window_bytes, max_window_bytes),
        min_window_bytes,
        max_window_bytes,
        max_rate: values.rate(&MAX_RATE).unwrap_or(plan.line_rate),
        backlog: values.flag(&BACKLOG),
    })
}

/// The weight of a connection, bytes.
fn weight(values: &Values, plan: &Blueprint<'_>) -> Result<f64, BuildError> {
    let weights = values.weights(&WEIGHTS);
    let of = |class: &str| {
        let found = weights.iter().find(|(name, _)| name == class);
        found.map(|&(_, weight)| weight).ok_or_else(|| BuildError::NoWeight { class: class.to_owned() })
    };
    if let Some(class) = plan.traffic_class {
        return of(class);
    }
    if values.word(&CLASSIFY) == "no" {
        return Ok(values.number(&WEIGHT));
    }
    // Both are wanted, whatever this flow's size: a scheme is refused before a run, not in the middle.
    let (urgent, high_volume) = (of(URGENT)?, of(HIGH_VOLUME)?);
    let is_urgent = plan.flow_bytes.is_some_and(|bytes| bytes < values.size(&URGENT_BELOW));
    Ok(if is_urgent { urgent } else { high_volume })
}

/// What is set about one connection, in the units of the paper as they are read here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtcpConfig {
    /// Bytes of counter per kilobyte of congestion.
    pub alpha: f64,
    /// Kilobytes of congestion per millisecond of queueing delay.
    pub delta: f64,
    /// Weight of the past in the estimate of congestion, 0 to 1.
    pub g: f64,
    /// The weight, bytes.
    pub weight_bytes: f64,
    /// The first window.
    pub initial_window_bytes: u64,
    /// The least window.
    pub min_window_bytes: u64,
    /// The largest window.
    pub max_window_bytes: u64,
    /// The rate that counts as 1.
    pub max_rate: Rate,
    /// Whether the queue of the interface counts.
    pub backlog: bool,
}

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct Rtcp {
    config: RtcpConfig,
    /// H: how far the flow lags behind its target, bytes, never below zero.
    counter_bytes: f64,
    /// The target rate, as a share of `max_rate`.
    gamma: f64,
    /// S of eq. (8): smoothed congestion, kilobytes.
    congestion_kb: f64,
    /// D: queueing delay of the last round trip, milliseconds.
    delay_ms: f64,
    /// The least round-trip time of a data segment.
    base_rtt: Dur,
    /// When the counter was last brought up to date; none before the connection is open.
    updated: Option<Time>,
    cwnd_bytes: u64,
}

impl Rtcp {
    /// A new connection.
    pub fn new(config: RtcpConfig) -> Rtcp {
        Rtcp {
            config,
            counter_bytes: 0.0,
            gamma: 1.0,
            congestion_kb: 0.0,
            delay_ms: 0.0,
            base_rtt: Dur::MAX,
            updated: None,
            cwnd_bytes: config.initial_window_bytes,
        }
    }

    /// Eq. (1) for the time since the last update, then eq. (10).
    fn count(&mut self, delivered_bytes: u64, now: Time) {
        let passed_s = self.updated.map_or(0.0, |then| (now - then).as_secs_f64());
        self.updated = Some(now);
        let target_bytes = self.gamma * self.config.max_rate.as_bps() as f64 / 8.0 * passed_s;
        self.counter_bytes = (self.counter_bytes + target_bytes - delivered_bytes as f64).max(0.0);
        let weight = self.config.weight_bytes;
        self.gamma = if self.counter_bytes == 0.0 {
            1.0
        } else if self.counter_bytes >= weight {
            self.gamma / 2.0
        } else {
            (weight / self.counter_bytes - 1.0).min(1.0)
        };
    }

    /// Eq. (8): S = g S + (1 - g) N with N = Q + delta D.
    fn estimate(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.delay_ms = rtt.saturating_sub(self.base_rtt).as_secs_f64() * 1e3;
        }
        let queue_kb = ack.nic_backlog_bytes as f64 / 1e3;
        let now_kb = queue_kb + self.config.delta * self.delay_ms;
        self.congestion_kb = self.config.g * self.congestion_kb + (1.0 - self.config.g) * now_kb;
    }

    fn set_window(&mut self, cwnd_bytes: u64) {
        self.cwnd_bytes = cwnd_bytes.clamp(self.config.min_window_bytes, self.config.max_window_bytes);
    }
}

impl CongestionControl for Rtcp {
    fn needs(&self) -> Needs {
        Needs { nic_backlog: self.config.backlog, ..Needs::default() }
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.updated = Some(cx.now);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.estimate(ack);
        self.count(ack.delivered_bytes, cx.now);
        if ack.phase == Phase::Recovery {
            return;
        }
        // Eq. (9).
        let is_congested = self.counter_bytes < self.config.alpha * self.congestion_kb;
        self.set_window(if is_congested { self.cwnd_bytes / 2 } else { self.cwnd_bytes.saturating_mul(2) });
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        match event {
            Congestion::Loss { .. } | Congestion::Marked { .. } => self.set_window(self.cwnd_bytes / 2),
            Congestion::Timeout { .. } | Congestion::LostSyn => self.set_window(self.cwnd_bytes.min(cx.mss_bytes)),
            Congestion::Spurious => {}
        }
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.cwnd_bytes, pacing: None }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.cwnd_bytes as f64);
        put("counter_bytes", self.counter_bytes);
        put("target_share", self.gamma);
        put("congestion_kb", self.congestion_kb);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Value;
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;
    const LINE: Rate = Rate::from_gbps(1);

    fn plan(values: &Values) -> Blueprint<'_> {
        Blueprint { line_rate: LINE, ..Blueprint::of_any(MSS, values) }
    }

    fn rtcp(set: &[(&'static str, Value)]) -> Rtcp {
        let mut values = Values::default();
        set.iter().for_each(|(name, value)| values.set(name, value.clone()));
        let inner = Values::default();
        let mut rtcp = Rtcp::new(config(&values, &plan(&inner)).expect("a configuration"));
        with_cx(0, |cx| rtcp.on_established(None, cx));
        rtcp
    }

    fn with_cx<T>(us: u64, call: impl FnOnce(&mut Cx<'_>) -> T) -> T {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let now = Time::ZERO + Dur::from_us(us);
        call(&mut Cx { now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng })
    }

    fn acknowledge(rtcp: &mut Rtcp, at_us: u64, rtt_us: u64, nic_backlog_bytes: u64) {
        let ack = Ack { rtt: Some(Dur::from_us(rtt_us)), nic_backlog_bytes, ..Ack::in_sequence(MSS) };
        with_cx(at_us, |cx| rtcp.on_ack(&ack, cx));
    }

    #[test]
    fn the_counter_gains_the_target_and_loses_what_arrives() {
        let mut rtcp = rtcp(&[]);
        // 100 us at the line rate of 125 bytes/us, less a segment; the target is then w / H - 1, at most 1.
        acknowledge(&mut rtcp, 100, 200, 0);
        assert_eq!((rtcp.counter_bytes, rtcp.gamma), (11_500.0, 1.0));
        acknowledge(&mut rtcp, 150, 200, 0);
        assert_eq!((rtcp.counter_bytes, rtcp.gamma), (16_750.0, 24_000.0 / 16_750.0 - 1.0));
        // Beyond the weight the target halves with every update; an empty counter asks for the whole line.
        acknowledge(&mut rtcp, 10_000, 200, 0);
        let held = rtcp.gamma;
        acknowledge(&mut rtcp, 10_001, 200, 0);
        assert!(rtcp.counter_bytes >= 24_000.0 && rtcp.gamma == held / 2.0);
        for _ in 0..1000 {
            acknowledge(&mut rtcp, 10_001, 200, 0);
        }
        assert_eq!((rtcp.counter_bytes, rtcp.gamma), (0.0, 1.0));
    }

    #[test]
    fn the_window_doubles_below_the_threshold_and_halves_above() {
        let delta = ("delta", Value::Number(125.0));
        let mut rtcp = rtcp(&[delta, ("initial_window", Value::Whole(8)), ("max_window", Value::Whole(100))]);
        acknowledge(&mut rtcp, 150, 200, 0);
        assert_eq!(rtcp.cwnd_bytes, 16 * MSS);
        // H = 150 us * 125 - 1000 + ... = 17,750 and more; alpha (Q + delta D) passes it at D = 284 us, smoothed by a half.
        acknowledge(&mut rtcp, 150, 200 + 560, 0);
        assert_eq!((rtcp.congestion_kb.round(), rtcp.cwnd_bytes), (35.0, 8 * MSS));
        // What waits in the interface counts as well, kilobyte by kilobyte.
        acknowledge(&mut rtcp, 150, 200, 17_500);
        assert_eq!(((4.0 * rtcp.congestion_kb).round(), rtcp.cwnd_bytes), (105.0, 16 * MSS));
        acknowledge(&mut rtcp, 150, 200, 48_000);
        assert_eq!(rtcp.cwnd_bytes, 8 * MSS);
    }

    #[test]
    fn the_window_stays_within_its_bounds() {
        let mut rtcp = rtcp(&[("min_window", Value::Whole(2))]);
        for at in 0..20 {
            acknowledge(&mut rtcp, 1000 + at, 200, 0);
        }
        assert_eq!(rtcp.cwnd_bytes, 44 * MSS);
        for at in 0..20 {
            acknowledge(&mut rtcp, 1020 + at, 9_000_000, 0);
        }
        assert_eq!(rtcp.cwnd_bytes, 2 * MSS);
    }

    #[test]
    fn an_equilibrium_counter_is_where_the_target_meets_the_rate() {
        // H = w / (1 + x): at half the line rate, 16,000 bytes.
        let mut rtcp = rtcp(&[("weight", Value::Number(24_000.0))]);
        for at in 1..20_000 {
            acknowledge(&mut rtcp, 16 * at, 200, 0);
        }
        assert!((rtcp.counter_bytes / 16_000.0 - 1.0).abs() < 0.05, "{}", rtcp.counter_bytes);
        assert!((rtcp.gamma - 0.5).abs() < 0.05, "{}", rtcp.gamma);
    }

    #[test]
    fn a_flow_weighs_what_its_class_or_its_size_says() {
        let inner = Values::default();
        let mut values = Values::default();
        let weigh = |values: &Values, class, bytes| {
            weight(values, &Blueprint { traffic_class: class, flow_bytes: bytes, ..plan(&inner) })
        };
        assert_eq!(weigh(&values, None, Some(100)), Ok(24_000.0));
        assert_eq!(weigh(&values, Some("high-volume"), Some(100)), Ok(12_000.0));
        values.set("classify", Value::Word("by-size".to_owned()));
        assert_eq!(weigh(&values, None, Some(29_999)), Ok(24_000.0));
        assert_eq!(weigh(&values, None, Some(30_000)), Ok(12_000.0));
        assert_eq!(weigh(&values, None, None), Ok(12_000.0));
        values.set("weights", Value::Weights(vec![("high-volume".to_owned(), 1.0)]));
        assert!(weigh(&values, None, None).is_err(), "no weight for the small flows to come");
        let error = weigh(&values, Some("bulk"), None).expect_err("no such class");
        assert_eq!(error.to_string(), "there is no weight for traffic class \"bulk\"");
    }

    #[test]
    fn a_loss_halves_and_holds_and_a_timeout_leaves_one_segment() {
        let mut rtcp = rtcp(&[]);
        with_cx(1, |cx| rtcp.on_congestion(Congestion::Loss { flight_bytes: 10 * MSS }, cx));
        let ack = Ack { phase: Phase::Recovery, ..Ack::in_sequence(MSS) };
        with_cx(2, |cx| rtcp.on_ack(&ack, cx));
        assert_eq!(rtcp.cwnd_bytes, 5 * MSS);
        with_cx(3, |cx| rtcp.on_congestion(Congestion::Timeout { flight_bytes: MSS, first: true }, cx));
        assert_eq!(rtcp.cwnd_bytes, MSS);
    }
}
