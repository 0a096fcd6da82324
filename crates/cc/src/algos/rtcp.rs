//! RTCP, "Regulated TCP": doubles or halves the window by comparing a per-flow counter with measured congestion.
//!
//! Source: "Regulated TCP" (the RTCP paper), sections II to IV. Equation numbers below are the paper's.
//!
//! The counter H grows at the target rate gamma and falls by the bytes delivered (eq. 1), so it measures how far the
//! flow lags behind its target. With the utility w log(1 + x), the target is w / H - 1 (eq. 6), which drives H towards
//! the weight w (`counter.rs`). Each acknowledgment compares H with the congestion estimate Q + delta D: the queue at
//! the sender's own interface plus the queueing delay of the path, smoothed by eq. (8). The window is halved if H <
//! alpha (Q + delta D), and doubled otherwise (eq. 9). A flow with a larger weight has a larger H and therefore yields
//! later.
//!
//! The paper leaves several points open. This implementation reads them as follows:
//! - **Units** (`RtcpConfig`): H and w are in bytes, Q in kilobytes, D in milliseconds, alpha in bytes per kilobyte,
//!   and delta in kilobytes per millisecond. The testbed's delta of 125 then equals its 1 Gb/s exactly, and the
//!   simulations' 10^4 is eight times their 10 Gb/s. `alpha_unit` and `delta_unit` scale them. Rates are multiples of
//!   `unit_rate`, at which x and gamma are 1.
//! - **maxRate** of eq. (10) is the line rate, counted in payload bytes as TCP counts them. No target exceeds it with
//!   `counter = "coupled"`. With `counter = "printed"` it is the target of an empty counter only.
//! - **H and gamma**, `counter = "coupled"`: both change together between acknowledgments, following eqs. (1) and (6).
//!   With `counter = "printed"`, each acknowledgment computes gamma by eq. (10), and gamma is constant until the next
//!   one. An acknowledgment first subtracts the delivered bytes from H, then computes gamma and compares.
//! - **x** of eq. (1), the actual rate, is that of the delivered bytes. With `actual_rate = "window"` it is the window
//!   over the minimum round-trip time, the projection of eq. (9).
//! - **Q and D** are added by eq. (7). So Q is the backlog at the flow's own interface, and D is the rise of the
//!   round-trip time without the wait at that interface (`interface.rs`). `interface = "twice"` takes the whole rise
//!   as D in addition to Q, a possible reading of section IV-A. `interface = "delay"` has no Q, as on the paper's
//!   testbed, where the interface shows up in the round-trip time only.
//! - **Eq. (9) at each acknowledgment** is the paper's rule (section IV-C). All acknowledgments of a round trip see the
//!   same congestion, so the window alternates between its bounds. Weights then have less effect on shares than in
//!   section II. `adjust_per = "round-trip"` spreads a doubling or halving over the acknowledgments of a window.
//! - **Precision of D**: D is exact, from timestamps in packet headers (section III-B), relative to the smallest
//!   sample seen. The handshake is excluded because its packets are short: at 10 Gb/s their round trip is shorter by
//!   about the delay that halves a window.
//! - **x_max** of eqs. (4) and (7), "the maximum rate defined by the internal dam rate" (section III-A), is the
//!   highest rate at which a flow may hand packets to its interface: `x_max` times the line rate. Eq. (9) "projects" x
//!   to a window, and a rate is a window over the minimum round-trip time. So x_max bounds the window at x_max times
//!   the line's bandwidth-delay product, or at the initial window before the first round-trip sample. Without this
//!   bound, doubling on every acknowledgment never stops while congestion takes a round trip to be noticed, so every
//!   result depends on x_max.
//! - **Coarse clocks** may report a round trip that is shorter than the segment's wait at its own interface. Such a
//!   sample carries no information about the path. The path's round-trip time is taken to be at least one segment's
//!   transmission time, so the bound from x_max stays positive.
//! - **Delayed acknowledgments**: if the receiver acknowledges several segments at once, a smaller window waits for
//!   the receiver's timer. That wait would count as congestion and pin the window there. So the minimum window is that
//!   number of segments, but at most the initial window. Setting `min_window` overrides it.
//! - **Losses** follow TCP's own rules, which the paper "leaves unchanged": a loss halves the window, which then stays
//!   constant until the loss is repaired. A timeout leaves one segment.
//! - **Weight**: a flow's weight comes from its traffic class, from its size (`classify`), or from `weight`. On a
//!   connection that several flows use, the weight changes with each of them, and the rest of the state stays.

mod counter;
mod interface;

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Needs, Phase};
use crate::param::{DefaultValue, Kind, Param, Unit, Value, Values};
use crate::registry::{Blueprint, BuildError, Controller};
use crate::window::INITIAL_WINDOW;
use crate::wire::{PathLimit, WireDefaults, WireValue};
use counter::Counter;
use interface::OwnQueue;
use sparelane_core::{Dur, Rate, Time};

pub use counter::Target;

const ALPHA: Param = Param {
    name: "alpha",
    kind: Kind::Number { min: 0.0, max: 1e12, unit: Unit::Named("bytes/KB") },
    default: DefaultValue::Number(500.0),
    meaning: "weight of congestion relative to utility: a larger value keeps queues shorter",
    source: "RTCP section V-B2; the unit is sparelane's reading",
};
const DELTA: Param = Param {
    name: "delta",
    kind: Kind::Number { min: 0.0, max: 1e12, unit: Unit::Named("KB/ms") },
    default: DefaultValue::Number(10_000.0),
    meaning: "weight of queueing delay on the path relative to the queue at the interface",
    source: "RTCP section V-B1 (simulations; the testbed has 125); the unit is sparelane's reading",
};
const ALPHA_UNIT: Param = Param {
    name: "alpha_unit",
    kind: Kind::Number { min: 1e-9, max: 1e9, unit: Unit::One },
    default: DefaultValue::Number(1.0),
    meaning: "bytes per KB that an alpha of 1 stands for",
    source: "sparelane: the paper gives alpha without a unit",
};
const DELTA_UNIT: Param = Param {
    name: "delta_unit",
    kind: Kind::Number { min: 1e-9, max: 1e9, unit: Unit::One },
    default: DefaultValue::Number(1.0),
    meaning: "KB per ms that a delta of 1 stands for",
    source: "sparelane: the paper gives delta without a unit",
};
const SMOOTHING: Param = Param {
    name: "smoothing",
    kind: Kind::Number { min: 0.0, max: 0.999_999, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "weight of the old value in the smoothed congestion estimate (g)",
    source: "RTCP eq. (8)",
};
const WEIGHT: Param = Param {
    name: "weight",
    kind: Kind::Number { min: 1e-6, max: 1e15, unit: Unit::Named("bytes") },
    default: DefaultValue::Number(24_000.0),
    meaning: "weight of flows without a traffic class",
    source: "RTCP section V-A1, urgent flows; not stated for the simulations",
};
const WEIGHTS: Param = Param {
    name: "weights",
    kind: Kind::Weights,
    default: DefaultValue::Weights(&[(URGENT, 24_000.0), (HIGH_VOLUME, 12_000.0)]),
    meaning: "weight of flows in bytes, by traffic class",
    source: "RTCP section V-A1",
};
const CLASSIFY: Param = Param {
    name: "classify",
    kind: Kind::Choice(&["no", "by-size"]),
    default: DefaultValue::Word("no"),
    meaning: "whether the flow size decides if a flow without a class is urgent or high-volume",
    source: "RTCP section V-A1",
};
const URGENT_BELOW: Param = Param {
    name: "urgent_below",
    kind: Kind::Size { min: 0, max: u64::MAX },
    default: DefaultValue::Size(30_000),
    meaning: "flows smaller than this are urgent if classify = by-size",
    source: "RTCP section V-A1",
};
const MIN_WINDOW: Param = Param {
    name: "min_window",
    kind: Kind::Whole { min: 0, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(0),
    meaning: "minimum window; 0 uses the number of segments that the receiver acknowledges at once, at least one",
    source: "sparelane: the paper states none",
};
const X_MAX: Param = Param {
    name: "x_max",
    kind: Kind::Number { min: 1e-3, max: 1e9, unit: Unit::Named("line rates") },
    default: DefaultValue::Number(2.0),
    meaning: "maximum rate of a flow: limits the window to this many bandwidth-delay products of line rate and \
               minimum round-trip time",
    source: "RTCP eqs. (4) and (7), section III-A; the value is a fit",
};
const MAX_RATE: Param = Param {
    name: "max_rate",
    kind: Kind::OptionalRate,
    default: DefaultValue::Rate(None),
    meaning: "maximum target rate, which an empty counter has; none means the line rate",
    source: "RTCP eq. (10); the value is sparelane's reading",
};
const UNIT_RATE: Param = Param {
    name: "unit_rate",
    kind: Kind::OptionalRate,
    default: DefaultValue::Rate(None),
    meaning: "rate at which x = 1; none means max_rate",
    source: "sparelane: the paper gives rates in log(1 + x) without a unit",
};
const COUNTER: Param = Param {
    name: "counter",
    kind: Kind::Choice(&["coupled", "printed"]),
    default: DefaultValue::Word("coupled"),
    meaning: "target rate: solved with the counter at every instant and at most max_rate (coupled), or computed by \
               eq. (10) at each acknowledgment, without a limit (printed)",
    source: "RTCP eqs. (1), (6) and (10)",
};
const ACTUAL_RATE: Param = Param {
    name: "actual_rate",
    kind: Kind::Choice(&["delivered", "window"]),
    default: DefaultValue::Word("delivered"),
    meaning: "x by which the counter falls: the rate of delivered bytes, or the window over the minimum round-trip time",
    source: "RTCP eqs. (1) and (9)",
};
const ADJUST_PER: Param = Param {
    name: "adjust_per",
    kind: Kind::Choice(&["acknowledgment", "round-trip"]),
    default: DefaultValue::Word("acknowledgment"),
    meaning: "what doubles or halves the window: each acknowledgment, or those of a whole window together",
    source: "RTCP eq. (9), section IV-C: each acknowledgment; round-trip is sparelane's",
};
const INTERFACE: Param = Param {
    name: "interface",
    kind: Kind::Choice(&["apart", "twice", "delay"]),
    default: DefaultValue::Word("apart"),
    meaning: "whether the wait at the sender's own interface counts in Q only (apart), in Q and D (twice), or in D \
               only, without Q (delay)",
    source: "RTCP section IV-A: delay on the testbed, Q in the simulations",
};

/// The traffic classes of the paper's experiments.
const URGENT: &str = "urgent";
const HIGH_VOLUME: &str = "high-volume";

/// RTCP is designed for datacentres. Longer paths need other values than the paper's simulations.
const WIRE: WireDefaults = WireDefaults {
    values: &[
        // The wait at the host's own interface counts as delay, as on the paper's testbed.
        WireValue {
            param: INTERFACE.name,
            value: DefaultValue::Word("delay"),
            fixed: Some("the wait at this host's own interface is not known on the wire"),
        },
        // The window doubles until congestion shows a round trip later; what exceeds the path would be lost.
        WireValue::new(X_MAX.name, DefaultValue::Number(1.0)),
        // A flow starts with this window, and repairs losses at one window per round trip.
        WireValue::new(MIN_WINDOW.name, DefaultValue::Whole(10)),
    ],
    adjust: Some(adjust_delta),
    needs_line_rate: true,
    path_limit: Some(PathLimit {
        round_trip: Dur::from_ms(5),
        reason: "RTCP is meant for datacentres: its window doubles until it holds one round trip at the line rate",
    }),
};

/// The delta of the paper's testbed in KB/ms, used for round trips below half a millisecond. It corresponds to the
/// smallest delay that can be distinguished from the hosts' own.
const TESTBED_DELTA: f64 = 125.0;

/// Sets delta, unless it is given, so that a queueing delay of half the round-trip time halves the window of a flow at
/// its target rate: there H is half the weight (eq. 6). With the delta of the simulations, the transmission time of one
/// packet would count as congestion.
fn adjust_delta(values: &mut Values, round_trip: Dur) {
    if values.given(DELTA.name).is_some() {
        return;
    }
    let (weight, alpha) = (values.number(&WEIGHT), values.number(&ALPHA) * values.number(&ALPHA_UNIT));
    let half_ms = round_trip.as_secs_f64() * 1e3 / 2.0;
    let delta = (weight / 2.0 / (alpha * half_ms).max(1e-9)).min(TESTBED_DELTA);
    values.set(DELTA.name, Value::Number(delta / values.number(&DELTA_UNIT)));
}

/// The entry in the registry.
pub const CONTROLLER: Controller = Controller {
    name: "rtcp",
    summary: "doubles or halves the window by comparing a counter with congestion; weights by traffic class",
    source: "Regulated TCP (RTCP), eqs. (6) to (10)",
    params: &[
        INITIAL_WINDOW,
        ALPHA,
        ALPHA_UNIT,
        DELTA,
        DELTA_UNIT,
        SMOOTHING,
        WEIGHT,
        WEIGHTS,
        CLASSIFY,
        URGENT_BELOW,
        MIN_WINDOW,
        X_MAX,
        MAX_RATE,
        UNIT_RATE,
        COUNTER,
        ACTUAL_RATE,
        ADJUST_PER,
        INTERFACE,
    ],
    wire: Some(WIRE),
    make: &|values, plan| Ok(Box::new(Rtcp::new(config(values, plan)?))),
};

fn config(values: &Values, plan: &Blueprint<'_>) -> Result<RtcpConfig, BuildError> {
    let mss_bytes = plan.mss_bytes;
    let min_window = values.whole(&MIN_WINDOW);
    let min_window_bytes = min_window.max(1).saturating_mul(mss_bytes);
    let initial = values.whole(&INITIAL_WINDOW).saturating_mul(mss_bytes);
    let max_rate = values.rate(&MAX_RATE).unwrap_or(plan.line_rate);
    Ok(RtcpConfig {
        alpha: values.number(&ALPHA) * values.number(&ALPHA_UNIT),
        delta: values.number(&DELTA) * values.number(&DELTA_UNIT),
        g: values.number(&SMOOTHING),
        weight_bytes: weight(values, plan)?,
        initial_window_bytes: initial.max(min_window_bytes),
        min_window_bytes,
        heeds_receiver: min_window == 0,
        x_max: plan.line_rate.scaled(values.number(&X_MAX)),
        max_rate,
        unit_rate: values.rate(&UNIT_RATE).unwrap_or(max_rate),
        line_rate: plan.line_rate,
        target: match values.word(&COUNTER) {
            "printed" => Target::Printed,
            _ => Target::Coupled,
        },
        falls_by_window: values.word(&ACTUAL_RATE) == "window",
        adjusts_per_round_trip: values.word(&ADJUST_PER) == "round-trip",
        interface: match values.word(&INTERFACE) {
            "twice" => Interface::Twice,
            "delay" => Interface::Delay,
            _ => Interface::Apart,
        },
    })
}

/// Returns the weight of a connection in bytes: by class, by size, or the configured default.
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
    // Both weights must exist, whatever the size of this flow, so that a bad configuration fails before the run.
    let (urgent, high_volume) = (of(URGENT)?, of(HIGH_VOLUME)?);
    let is_urgent = plan.flow_bytes.is_some_and(|bytes| bytes < values.size(&URGENT_BELOW));
    Ok(if is_urgent { urgent } else { high_volume })
}

/// The configuration of one connection, in the units given in the module documentation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RtcpConfig {
    /// alpha: bytes of counter per kilobyte of congestion.
    pub alpha: f64,
    /// delta: kilobytes of congestion per millisecond of queueing delay.
    pub delta: f64,
    /// g of eq. (8): the weight of the old value in the congestion estimate, 0 to 1.
    pub g: f64,
    /// w: the weight in bytes.
    pub weight_bytes: f64,
    /// The initial window.
    pub initial_window_bytes: u64,
    /// The minimum window.
    pub min_window_bytes: u64,
    /// True if the minimum window also follows the number of segments that the receiver acknowledges at once.
    pub heeds_receiver: bool,
    /// The maximum rate of the flow.
    pub x_max: Rate,
    /// maxRate of eq. (10): the maximum target rate.
    pub max_rate: Rate,
    /// The rate at which x = 1.
    pub unit_rate: Rate,
    /// The rate of the sender's interface.
    pub line_rate: Rate,
    /// The rule that gives the target rate.
    pub target: Target,
    /// True if the counter falls by the window over the minimum round-trip time, instead of by delivered bytes.
    pub falls_by_window: bool,
    /// True if the acknowledgments of a whole window double or halve it, instead of each one.
    pub adjusts_per_round_trip: bool,
    /// The role of the wait at the sender's own interface in the congestion estimate.
    pub interface: Interface,
}

/// The role of the wait at the sender's own interface in the congestion estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// The wait counts in Q only.
    Apart,
    /// The wait counts in both Q and D.
    Twice,
    /// The wait counts in D only; there is no Q.
    Delay,
}

/// The RTCP controller of one connection.
#[derive(Clone, Debug)]
pub struct Rtcp {
    config: RtcpConfig,
    /// H: how far the flow lags behind its target.
    counter: Counter,
    /// S of eq. (8): smoothed congestion in kilobytes.
    congestion_kb: f64,
    /// D: queueing delay of the latest round trip in milliseconds.
    delay_ms: f64,
    /// The minimum round-trip time of data segments; excludes the wait at the own interface in mode `Apart`.
    base_rtt: Dur,
    /// The waits of segments at the own interface, used in mode `Apart`.
    own_queue: OwnQueue,
    /// The bytes acknowledged by the latest acknowledgment in sequence.
    answered_bytes: u64,
    /// The minimum window, including what `learn_ack_ratio` found.
    least_bytes: u64,
    /// The time of the counter's latest update; `None` before the connection is established.
    updated: Option<Time>,
    cwnd_bytes: u64,
}

impl Rtcp {
    /// Creates the state of a new connection.
    pub fn new(config: RtcpConfig) -> Rtcp {
        Rtcp {
            config,
            counter: Counter::new(config.target, config.weight_bytes, config.unit_rate, config.max_rate),
            congestion_kb: 0.0,
            delay_ms: 0.0,
            base_rtt: Dur::MAX,
            own_queue: OwnQueue::new(config.line_rate),
            answered_bytes: 0,
            least_bytes: config.min_window_bytes,
            updated: None,
            cwnd_bytes: config.initial_window_bytes,
        }
    }

    /// Applies eq. (1) to the time since the last update, and updates the target.
    fn count(&mut self, delivered_bytes: u64, now: Time) {
        let passed = now - self.updated.replace(now).unwrap_or(now);
        let fall_bytes = if self.config.falls_by_window && self.base_rtt != Dur::MAX {
            (self.cwnd_bytes as f64 * (passed.as_secs_f64() / self.base_rtt.as_secs_f64())) as u64
        } else {
            delivered_bytes
        };
        self.counter.update(passed, fall_bytes);
    }

    /// Updates S of eq. (8): S = g S + (1 - g) N with N = Q + delta D (eq. 7).
    fn estimate(&mut self, ack: &Ack, cx: &Cx<'_>) {
        let is_apart = self.config.interface == Interface::Apart;
        if let Some(rtt) = ack.rtt {
            let own_wait = if is_apart { self.own_queue.wait_of(cx.now, rtt, cx.mss_bytes) } else { Dur::ZERO };
            // A wait longer than the round trip comes from a coarse clock: the sample says nothing about the path.
            if own_wait < rtt {
                let path_rtt = rtt.saturating_sub(own_wait);
                self.base_rtt = self.base_rtt.min(path_rtt.max(self.config.line_rate.time_for(cx.mss_bytes)));
                self.delay_ms = path_rtt.saturating_sub(self.base_rtt).as_secs_f64() * 1e3;
            }
        }
        if is_apart {
            self.own_queue.record(cx.now, ack.nic_backlog_bytes);
        }
        let queue_kb = ack.nic_backlog_bytes as f64 / 1e3;
        let now_kb = queue_kb + self.config.delta * self.delay_ms;
        self.congestion_kb = self.config.g * self.congestion_kb + (1.0 - self.config.g) * now_kb;
    }

    /// Learns how many segments the receiver acknowledges at once. Requires two such acknowledgments in a row, because
    /// a single one may cover a lost acknowledgment.
    fn learn_ack_ratio(&mut self, ack: &Ack) {
        if self.config.heeds_receiver && ack.phase == Phase::Open && ack.acked_bytes == ack.delivered_bytes {
            let both = ack.acked_bytes.min(self.answered_bytes);
            self.answered_bytes = ack.acked_bytes;
            self.least_bytes = self.least_bytes.max(both.min(self.config.initial_window_bytes));
        }
    }

    /// Returns the window that corresponds to x_max.
    fn max_window_bytes(&self) -> u64 {
        if self.base_rtt == Dur::MAX {
            self.config.initial_window_bytes
        } else {
            self.config.x_max.bytes_in(self.base_rtt)
        }
    }

    fn set_window(&mut self, cwnd_bytes: u64) {
        self.cwnd_bytes = cwnd_bytes.min(self.max_window_bytes()).max(self.least_bytes);
    }
}

impl CongestionControl for Rtcp {
    fn needs(&self) -> Needs {
        Needs { nic_backlog: self.config.interface != Interface::Delay, ..Needs::default() }
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.updated = Some(cx.now);
        self.own_queue.record(cx.now, 0);
    }

    fn on_next_flow(&mut self, values: &Values, plan: &Blueprint<'_>) {
        // The weights of all classes were checked when the connection was built.
        if let Ok(weight_bytes) = weight(values, plan) {
            self.config.weight_bytes = weight_bytes;
            self.counter.set_weight(weight_bytes);
        }
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.learn_ack_ratio(ack);
        self.estimate(ack, cx);
        self.count(ack.delivered_bytes, cx.now);
        if ack.phase == Phase::Recovery {
            return;
        }
        // Eq. (9).
        let is_congested = self.counter.bytes() < self.config.alpha * self.congestion_kb;
        let cwnd_bytes = self.cwnd_bytes;
        self.set_window(match (self.config.adjusts_per_round_trip, is_congested) {
            (false, true) => cwnd_bytes / 2,
            (false, false) => cwnd_bytes.saturating_mul(2),
            (true, true) => cwnd_bytes.saturating_sub(ack.delivered_bytes / 2),
            (true, false) => cwnd_bytes.saturating_add(ack.delivered_bytes),
        });
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
        put("counter_bytes", self.counter.bytes());
        put("target_share", self.counter.target_bytes_s() * 8.0 / self.config.max_rate.as_bps() as f64);
        put("congestion_kb", self.congestion_kb);
        put("delay_ms", self.delay_ms);
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

    /// Returns a flow that has run at half its line rate for a while.
    fn settled(set: &[(&'static str, Value)]) -> Rtcp {
        let mut rtcp = rtcp(set);
        for at in 1..2_000 {
            acknowledge(&mut rtcp, 200 + 16 * at, 200, 0);
        }
        rtcp
    }

    #[test]
    fn the_counter_grows_at_the_target_rate_and_falls_by_delivered_bytes() {
        let mut rtcp = rtcp(&[]);
        // In 96 us the line's 125 bytes/us fill the counter to w / 2 = 12,000 bytes; one segment is then delivered.
        acknowledge(&mut rtcp, 96, 50, 0);
        assert!((rtcp.counter.bytes() - 11_000.0).abs() < 1e-6);
        for _ in 0..1000 {
            acknowledge(&mut rtcp, 96, 50, 0);
        }
        assert_eq!((rtcp.counter.bytes(), rtcp.counter.target_bytes_s()), (0.0, 125e6));
    }

    #[test]
    fn a_timeout_of_a_second_does_not_wind_the_counter_up() {
        let mut rtcp = settled(&[]);
        with_cx(1_032_000, |cx| rtcp.on_congestion(Congestion::Timeout { flight_bytes: MSS, first: true }, cx));
        acknowledge(&mut rtcp, 1_032_200, 200, 0);
        assert_eq!((rtcp.counter.bytes(), rtcp.cwnd_bytes), (23_000.0, 2 * MSS));
    }

    #[test]
    fn an_idle_period_does_not_make_a_flow_ignore_congestion() {
        let delta = ("delta", Value::Number(125.0));
        let (mut busy, mut idle) = (settled(std::slice::from_ref(&delta)), settled(std::slice::from_ref(&delta)));
        // After an hour, a delay of 1 ms halves both windows at once. It is six times the delay that halves the busy
        // flow's.
        for (rtcp, at_us) in [(&mut busy, 33_000), (&mut idle, 3_600_000_000)] {
            let before = rtcp.cwnd_bytes;
            acknowledge(rtcp, at_us, 1200, 0);
            assert_eq!(rtcp.cwnd_bytes, before / 2);
        }
        // After a few round trips the growth during the idle period is gone.
        for at in 1..100 {
            acknowledge(&mut busy, 33_000 + 16 * at, 200, 0);
            acknowledge(&mut idle, 3_600_000_000 + 16 * at, 200, 0);
        }
        let (busy, idle) = (busy.counter.bytes(), idle.counter.bytes());
        assert!((busy / idle - 1.0).abs() < 0.02, "{busy} and {idle}");
    }

    #[test]
    fn the_window_doubles_below_the_threshold_and_halves_above() {
        let delta = ("delta", Value::Number(125.0));
        let mut rtcp = rtcp(&[delta, ("initial_window", Value::Whole(8)), ("x_max", Value::Number(100.0))]);
        acknowledge(&mut rtcp, 150, 100, 0);
        assert_eq!(rtcp.cwnd_bytes, 16 * MSS);
        // H is between 12,000 and 16,000 bytes. alpha (Q + delta D) exceeds that at D = 256 us at the latest, with a
        // smoothing of one half. The second segment of the first window waited 8 us for the first one.
        acknowledge(&mut rtcp, 150, 100 + 520, 0);
        assert_eq!((rtcp.congestion_kb.round(), rtcp.cwnd_bytes), (32.0, 8 * MSS));
        // The interface's backlog counts as well, one for one in kilobytes.
        acknowledge(&mut rtcp, 150, 100, 8_000);
        assert_eq!(((4.0 * rtcp.congestion_kb).round(), rtcp.cwnd_bytes), (80.0, 16 * MSS));
        acknowledge(&mut rtcp, 150, 100, 48_000);
        assert_eq!(rtcp.cwnd_bytes, 8 * MSS);
    }

    #[test]
    fn the_wait_at_the_own_interface_counts_once() {
        let of = |interface: &str| {
            let mut rtcp = rtcp(&[("interface", Value::Word(interface.to_owned()))]);
            let backlog_bytes = if rtcp.needs().nic_backlog { 50_000 } else { 0 };
            acknowledge(&mut rtcp, 200, 200, backlog_bytes);
            // The segment sent at 200 us waited for 400 us behind 50,000 bytes.
            acknowledge(&mut rtcp, 800, 600, backlog_bytes);
            ((rtcp.delay_ms * 1e3).round(), rtcp.congestion_kb.round())
        };
        // Q alone, smoothed, is 50 KB less a quarter; then Q with D = 0.4 ms; then D alone.
        assert_eq!(of("apart"), (0.0, 38.0));
        assert_eq!(of("twice"), (400.0, 2038.0));
        assert_eq!(of("delay"), (400.0, 2000.0));
    }

    /// Eq. (8) with g = 0.5: S = 0.5 * 0 + 0.5 * 10 = 5, then 0.5 * 5 + 0.5 * 20 = 12.5, then 0.5 * 12.5 = 6.25.
    #[test]
    fn congestion_is_smoothed_by_one_half() {
        let mut rtcp = rtcp(&[("delta", Value::Number(0.0))]);
        let smoothed = [10_000, 20_000, 0].map(|backlog_bytes| {
            acknowledge(&mut rtcp, 200, 200, backlog_bytes);
            rtcp.congestion_kb
        });
        assert_eq!(smoothed, [5.0, 12.5, 6.25]);
    }

    /// Eqs. (7) to (9): H = w - 1,000 after a long pause and one segment, and S = 0.5 * 125 D for the first delay D. The
    /// window is halved from D = (w - 1,000) / 31,250 ms on: 736 us for a weight of 24,000 and 352 us for 12,000.
    #[test]
    fn the_delay_that_halves_the_window_is_proportional_to_the_counter() {
        let halves = |weight: f64, delay_us: u64| {
            let mut rtcp = rtcp(&[
                ("weight", Value::Number(weight)),
                ("delta", Value::Number(125.0)),
                ("interface", Value::Word("delay".to_owned())),
            ]);
            acknowledge(&mut rtcp, 200, 200, 0);
            let before = rtcp.cwnd_bytes;
            acknowledge(&mut rtcp, 3_600_000_000, 200 + delay_us, 0);
            assert_eq!(rtcp.counter.bytes(), weight - 1_000.0);
            rtcp.cwnd_bytes < before
        };
        assert_eq!([735, 737].map(|delay_us| halves(24_000.0, delay_us)), [false, true]);
        assert_eq!([351, 353].map(|delay_us| halves(12_000.0, delay_us)), [false, true]);
    }

    /// Eq. (1) with x = 8 * 1,000 bytes / 100 us = 80 bytes/us, against a target of 125 bytes/us.
    #[test]
    fn the_counter_falls_by_the_window_if_so_configured() {
        let mut rtcp = rtcp(&[
            ("actual_rate", Value::Word("window".to_owned())),
            ("initial_window", Value::Whole(8)),
            ("x_max", Value::Number(0.64)),
        ]);
        acknowledge(&mut rtcp, 100, 100, 0);
        let before = rtcp.counter.bytes();
        acknowledge(&mut rtcp, 120, 100, 0);
        assert_eq!(rtcp.cwnd_bytes, 8 * MSS);
        assert!((rtcp.counter.bytes() - before - 20.0 * 45.0).abs() < 1e-6, "{}", rtcp.counter.bytes());
    }

    #[test]
    fn the_acknowledgments_of_a_round_trip_double_or_halve_the_window_together() {
        let mut rtcp = rtcp(&[
            ("adjust_per", Value::Word("round-trip".to_owned())),
            ("delta", Value::Number(125.0)),
            ("x_max", Value::Number(100.0)),
        ]);
        (0..10).for_each(|at| acknowledge(&mut rtcp, 300 + at, 200, 0));
        assert_eq!(rtcp.cwnd_bytes, 20 * MSS);
        (0..20).for_each(|at| acknowledge(&mut rtcp, 500 + at, 5_000, 0));
        assert_eq!(rtcp.cwnd_bytes, 10 * MSS);
    }

    /// Eq. (10): an empty counter has maxRate; after that, no limit applies.
    #[test]
    fn the_printed_counter_exceeds_max_rate_and_its_weight() {
        let printed = ("counter", Value::Word("printed".to_owned()));
        let mut rtcp = rtcp(std::slice::from_ref(&printed));
        // 56 us at 125 bytes/us, less one segment, are a quarter of the weight.
        acknowledge(&mut rtcp, 56, 50, 0);
        assert_eq!((rtcp.counter.bytes(), rtcp.counter.target_bytes_s()), (6_000.0, 375e6));
        acknowledge(&mut rtcp, 156, 50, 0);
        assert_eq!((rtcp.counter.bytes(), rtcp.counter.target_bytes_s()), (42_500.0, 187.5e6));
    }

    #[test]
    fn the_window_stays_between_the_minimum_and_x_max_times_the_bandwidth_delay_product() {
        let mut rtcp = rtcp(&[("min_window", Value::Whole(2)), ("x_max", Value::Number(1.6))]);
        for at in 0..20 {
            acknowledge(&mut rtcp, 1000 + at, 200, 0);
        }
        // 1.6 times 1 Gb/s over 200 us.
        assert_eq!(rtcp.cwnd_bytes, 40 * MSS);
        for at in 0..20 {
            acknowledge(&mut rtcp, 1020 + at, 9_000_000, 0);
        }
        assert_eq!(rtcp.cwnd_bytes, 2 * MSS);
    }

    #[test]
    fn a_round_trip_shorter_than_the_wait_from_a_coarse_clock_does_not_stop_a_flow() {
        let mut rtcp = rtcp(&[("x_max", Value::Number(4.0))]);
        // 50,000 bytes wait for 400 us at 1 Gb/s, but a clock of 1 ms shows 1 us.
        for at in 0..50 {
            acknowledge(&mut rtcp, 1_000 + 10 * at, 1, 50_000);
        }
        assert_eq!(rtcp.base_rtt, LINE.time_for(MSS), "the path takes at least a segment's transmission time");
        for at in 0..50 {
            acknowledge(&mut rtcp, 10_000 + 100 * at, 1, 0);
        }
        assert_eq!(rtcp.base_rtt, LINE.time_for(MSS));
        assert_eq!(rtcp.cwnd_bytes, 4 * MSS);
    }

    #[test]
    fn a_receiver_that_acknowledges_two_segments_at_once_does_not_hold_the_window_at_one() {
        let acknowledge_both = |rtcp: &mut Rtcp, at_us: u64, rtt_us: u64| {
            let ack = Ack { rtt: Some(Dur::from_us(rtt_us)), ..Ack::in_sequence(2 * MSS) };
            with_cx(at_us, |cx| rtcp.on_ack(&ack, cx));
        };
        let mut rtcp = rtcp(&[]);
        acknowledge_both(&mut rtcp, 1_000, 200);
        acknowledge(&mut rtcp, 1_010, 200, 0);
        acknowledge_both(&mut rtcp, 1_020, 200);
        (0..20).for_each(|at| acknowledge(&mut rtcp, 1_030 + at, 40_000, 0));
        assert_eq!(rtcp.cwnd_bytes, MSS, "a lost acknowledgment does not count as a delayed one");
        acknowledge_both(&mut rtcp, 50_000, 40_000);
        acknowledge_both(&mut rtcp, 50_010, 40_000);
        assert_eq!(rtcp.cwnd_bytes, 2 * MSS);
        (0..20).for_each(|at| acknowledge(&mut rtcp, 60_000 + at, 40_000, 0));
        assert_eq!(rtcp.cwnd_bytes, 2 * MSS);
        let mut to_the_letter = self::rtcp(&[("min_window", Value::Whole(1))]);
        (0..20).for_each(|at| acknowledge_both(&mut to_the_letter, 1_000 + at, if at == 0 { 200 } else { 40_000 }));
        assert_eq!(to_the_letter.cwnd_bytes, MSS);
    }

    #[test]
    fn the_counter_settles_at_the_value_whose_target_equals_the_rate() {
        // H = w / (1 + x) is 16,000 bytes at half the line rate. Just after an acknowledgment it is half a segment
        // lower.
        let rtcp = settled(&[]);
        assert!((rtcp.counter.bytes() / 15_500.0 - 1.0).abs() < 0.01, "{}", rtcp.counter.bytes());
        // With a unit rate of 250 Mb/s, half of 1 Gb/s is x = 2.
        let rtcp = settled(&[("unit_rate", Value::Rate(Some(Rate::from_mbps(250))))]);
        assert!((rtcp.counter.bytes() / 7_500.0 - 1.0).abs() < 0.02, "{}", rtcp.counter.bytes());
    }

    #[test]
    fn the_weight_follows_the_traffic_class_or_the_size() {
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
        assert!(weigh(&values, None, None).is_err(), "urgent flows have no weight");
        let error = weigh(&values, Some("bulk"), None).expect_err("no such class");
        assert_eq!(error.to_string(), "there is no weight for traffic class \"bulk\"");
    }

    #[test]
    fn a_loss_halves_the_window_until_repair_and_a_timeout_leaves_one_segment() {
        let mut rtcp = rtcp(&[]);
        with_cx(1, |cx| rtcp.on_congestion(Congestion::Loss { flight_bytes: 10 * MSS }, cx));
        let ack = Ack { phase: Phase::Recovery, ..Ack::in_sequence(MSS) };
        with_cx(2, |cx| rtcp.on_ack(&ack, cx));
        assert_eq!(rtcp.cwnd_bytes, 5 * MSS);
        with_cx(3, |cx| rtcp.on_congestion(Congestion::Timeout { flight_bytes: MSS, first: true }, cx));
        assert_eq!(rtcp.cwnd_bytes, MSS);
    }
}
