//! Swift: a window that holds the delay of the fabric and that of the hosts at a target each, for datacentres.
//!
//! Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020,
//! Algorithm 1 and section 3.
//!
//! Swift needs the time that a segment and its acknowledgment spend inside the two hosts. The rest of the round-trip
//! time is the delay of the fabric. Each of the two delays has a target and moves a window of its own, and the smaller
//! window applies (section 3.3). Below the target, a window grows by `ai` segments per round trip. Above it, the window
//! shrinks by `beta` (delay - target) / delay, at most by `max_mdf`, and at most once per round trip (section 3.2).
//!
//! The target of the fabric grows with the path and with the number of flows (section 3.5). It is `base_target`, plus
//! `per_hop` for each router, plus a part that falls with 1 / sqrt(window) from `flow_scaling_range` at a window of
//! `flow_scaling_min` to zero at `flow_scaling_max`. A small window shows that many flows share the bottleneck, whose
//! queue then varies more.
//!
//! A window below one segment sends a segment every RTT / window (section 3.4), down to a window of 0.001. From one
//! segment on, segments are not paced.
//!
//! Losses shrink the windows by `max_mdf`, at most once per round trip (section 3.6). So does each of the first
//! timeouts in a row; from `timeouts_until_minimum` on, the window is the smallest possible (Algorithm 1).
//!
//! Differences from the paper:
//!
//! - The paper gives no values but the minimum window. Each parameter states its source: the paper, htsim, or
//!   ourselves. htsim calls its own values guesses.
//! - The paper filters the delay inside hosts by a moving average, whose weight it does not give (section 3.3). Here
//!   each delay counts as it is.
//! - The paper holds the window that does not limit the flow below a ceiling, which it does not give (section 3.3).
//!   Here each window grows on its own.
//! - The paper repairs losses by its own rules. Here the transport repairs them.
//! - A segment that waits for its pace departs by the newest window: each acknowledgment moves its departure. In the
//!   paper, the pacer keeps the time that it was given.
//! - A loss shrinks both windows. The paper does not separate them there.
//! - A real network does not report the time inside hosts. There the whole round-trip time counts as the fabric's.
//! - Two segments are at most `max_pause` apart. Otherwise a flow whose target is below the delay of its empty path
//!   would stop for minutes on long paths. On paths of up to 1 ms, the default has no effect.
//! - "Not paced" is a pace at the line rate, because a controller here paces always or never.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Needs, PathFacts};
use crate::pace::PacketSize;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::window::INITIAL_WINDOW;
use sparelane_core::{Dur, Rate, Time};

const PAPER: &str = "Kumar et al., SIGCOMM 2020";

/// The source of values that the paper does not give.
const HTSIM: &str = "htsim; the paper gives no value";

/// The longest time that a parameter may have.
const LONGEST: Dur = Dur::from_secs(100);

const FIRST_WINDOW: Param = Param {
    default: DefaultValue::Whole(1),
    source: "sparelane: so that incasts do not begin with a burst; the paper gives no value",
    ..INITIAL_WINDOW
};

const BASE_TARGET: Param = Param {
    name: "base_target",
    kind: Kind::Span { min: Dur::from_ns(100), max: LONGEST },
    default: DefaultValue::Span(Dur::from_us(20)),
    meaning: "target delay of the fabric without routers and for large windows; above the delay of an empty path",
    source: HTSIM,
};

const PER_HOP: Param = Param {
    name: "per_hop",
    kind: Kind::Span { min: Dur::ZERO, max: LONGEST },
    default: DefaultValue::Span(Dur::from_us(3)),
    meaning: "target delay that each router on the path adds",
    source: "htsim (base target / 6.55); the paper gives no value",
};

const FLOW_SCALING_RANGE: Param = Param {
    name: "flow_scaling_range",
    kind: Kind::Span { min: Dur::ZERO, max: LONGEST },
    default: DefaultValue::Span(Dur::from_us(100)),
    meaning: "largest part of the target that flow scaling adds; 0s disables it",
    source: "htsim (5 base targets); the paper gives no value",
};

const FLOW_SCALING_MIN: Param = Param {
    name: "flow_scaling_min",
    kind: Kind::Number { min: 0.0001, max: 1_000_000.0, unit: Unit::Segments },
    default: DefaultValue::Number(0.1),
    meaning: "window up to which flow scaling adds all of its range",
    source: HTSIM,
};

const FLOW_SCALING_MAX: Param = Param {
    name: "flow_scaling_max",
    kind: Kind::Number { min: 0.0002, max: 10_000_000.0, unit: Unit::Segments },
    default: DefaultValue::Number(100.0),
    meaning: "window from which on flow scaling adds nothing; above flow_scaling_min",
    source: HTSIM,
};

const HOST_TARGET: Param = Param {
    name: "host_target",
    kind: Kind::Span { min: Dur::from_ns(100), max: LONGEST },
    default: DefaultValue::Span(Dur::from_us(50)),
    meaning: "target of the delay inside the two hosts",
    source: "sparelane; the paper gives no value",
};

const AI: Param = Param {
    name: "ai",
    kind: Kind::Number { min: 0.0001, max: 1000.0, unit: Unit::Segments },
    default: DefaultValue::Number(1.0),
    meaning: "additive increase per round trip",
    source: HTSIM,
};

const BETA: Param = Param {
    name: "beta",
    kind: Kind::Number { min: 0.001, max: 10.0, unit: Unit::One },
    default: DefaultValue::Number(0.8),
    meaning: "factor of multiplicative decrease",
    source: HTSIM,
};

const MAX_MDF: Param = Param {
    name: "max_mdf",
    kind: Kind::Number { min: 0.001, max: 0.999, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "largest decrease per round trip, as a share of the window",
    source: HTSIM,
};

const MIN_WINDOW: Param = Param {
    name: "min_window",
    kind: Kind::Number { min: 0.0001, max: 1_000_000.0, unit: Unit::Segments },
    default: DefaultValue::Number(0.001),
    meaning: "minimum window; below one segment, the pace limits the flow",
    source: "Kumar et al., SIGCOMM 2020, section 3.4",
};

const MAX_PAUSE: Param = Param {
    name: "max_pause",
    kind: Kind::Span { min: Dur::from_us(1), max: LONGEST },
    default: DefaultValue::Span(Dur::from_secs(1)),
    meaning: "longest time between two segments of a window below one segment",
    source: "sparelane: so that a target below the delay of an empty path does not stop a flow",
};

const TIMEOUTS_UNTIL_MINIMUM: Param = Param {
    name: "timeouts_until_minimum",
    kind: Kind::Whole { min: 1, max: 1000, unit: Unit::One },
    default: DefaultValue::Whole(5),
    meaning: "retransmission timeouts in a row after which the window is the minimum",
    source: "htsim (RETX_RESET_THRESHOLD); the paper gives no value",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "swift",
    summary: "holds fabric and host delays at targets; windows below one segment; for datacentres",
    source: PAPER,
    params: &[
        FIRST_WINDOW,
        BASE_TARGET,
        PER_HOP,
        FLOW_SCALING_RANGE,
        FLOW_SCALING_MIN,
        FLOW_SCALING_MAX,
        HOST_TARGET,
        AI,
        BETA,
        MAX_MDF,
        MIN_WINDOW,
        MAX_PAUSE,
        TIMEOUTS_UNTIL_MINIMUM,
    ],
    wire: None,
    make: &|values, plan| {
        let (scaling_min, scaling_max) = (values.number(&FLOW_SCALING_MIN), values.number(&FLOW_SCALING_MAX));
        if scaling_min >= scaling_max {
            let message = format!("flow_scaling_min is {scaling_min}; allowed: below flow_scaling_max ({scaling_max})");
            return Err(crate::registry::BuildError::Refused(message));
        }
        let config = SwiftConfig {
            initial_window: values.whole(&FIRST_WINDOW),
            base_target: values.span(&BASE_TARGET),
            per_hop: values.span(&PER_HOP),
            flow_scaling: FlowScaling::new(values.span(&FLOW_SCALING_RANGE), scaling_min, scaling_max),
            host_target: values.span(&HOST_TARGET),
            ai: values.number(&AI),
            beta: values.number(&BETA),
            max_mdf: values.number(&MAX_MDF),
            min_window: values.number(&MIN_WINDOW),
            max_pause: values.span(&MAX_PAUSE),
            timeouts_until_minimum: values.whole(&TIMEOUTS_UNTIL_MINIMUM),
            line_rate: plan.line_rate,
        };
        Ok(Box::new(Swift::new(config, plan.packets())))
    },
};

/// The largest window in segments. It keeps windows exact as whole bytes.
const MAX_WINDOW: f64 = 1e9;

/// Section 3.5: the part of the target that falls as the window grows.
#[derive(Clone, Copy, Debug)]
pub struct FlowScaling {
    range_s: f64,
    /// The paper's alpha and beta in seconds.
    alpha_s: f64,
    beta_s: f64,
}

impl FlowScaling {
    /// Creates a part of `range` at a window of `min` segments that falls to zero at `max`.
    pub fn new(range: Dur, min: f64, max: f64) -> FlowScaling {
        let range_s = range.as_secs_f64();
        let alpha_s = range_s / (1.0 / libm::sqrt(min) - 1.0 / libm::sqrt(max));
        FlowScaling { range_s, alpha_s, beta_s: -alpha_s / libm::sqrt(max) }
    }

    /// Returns the part of the target in seconds at a window of `cwnd` segments.
    fn at(&self, cwnd: f64) -> f64 {
        (self.alpha_s / libm::sqrt(cwnd) + self.beta_s).min(self.range_s).max(0.0)
    }
}

/// The constants of the law, and the line rate.
#[derive(Clone, Copy, Debug)]
pub struct SwiftConfig {
    /// Initial window in segments.
    pub initial_window: u64,
    /// The target of the fabric without routers and flow scaling.
    pub base_target: Dur,
    /// The part of the target that each router on the path adds.
    pub per_hop: Dur,
    /// Flow scaling of that target.
    pub flow_scaling: FlowScaling,
    /// The target of the delay inside the hosts.
    pub host_target: Dur,
    /// Additive increase in segments per round trip.
    pub ai: f64,
    /// Factor of multiplicative decrease.
    pub beta: f64,
    /// Largest decrease per round trip, as a share of the window.
    pub max_mdf: f64,
    /// Minimum window in segments.
    pub min_window: f64,
    /// Longest time between two segments of a window below one segment.
    pub max_pause: Dur,
    /// The number of timeouts in a row after which the window is the minimum.
    pub timeouts_until_minimum: u64,
    /// The rate of the sender's interface.
    pub line_rate: Rate,
}

/// One of the two windows of Swift.
#[derive(Clone, Copy, Debug)]
struct DelayWindow {
    /// The window in segments.
    cwnd: f64,
    last_decrease: Option<Time>,
}

impl DelayWindow {
    /// Returns true if the last decrease is at least a round trip ago.
    fn can_decrease(&self, now: Time, rtt: Dur) -> bool {
        self.last_decrease.is_none_or(|at| now.saturating_since(at) >= rtt)
    }

    /// Algorithm 1, on an acknowledgment of `acked` segments that saw this delay.
    fn on_ack(&mut self, config: &SwiftConfig, delay_s: f64, target_s: f64, acked: f64, now: Time, rtt: Dur) {
        let before = self.cwnd;
        if delay_s < target_s {
            self.cwnd += config.ai * acked / self.cwnd.max(1.0);
        } else if self.can_decrease(now, rtt) {
            let factor = 1.0 - config.beta * (delay_s - target_s) / delay_s;
            self.cwnd *= factor.max(1.0 - config.max_mdf);
            self.last_decrease = Some(now);
        }
        self.clamp(config);
        debug_assert!(self.cwnd.is_finite(), "a window of {} after {before}", self.cwnd);
    }

    /// Shrinks the window by the largest decrease, if a round trip has passed since the last decrease.
    fn on_loss(&mut self, config: &SwiftConfig, now: Time, rtt: Dur) {
        if self.can_decrease(now, rtt) {
            self.cwnd *= 1.0 - config.max_mdf;
            self.last_decrease = Some(now);
            self.clamp(config);
        }
    }

    fn clamp(&mut self, config: &SwiftConfig) {
        self.cwnd = self.cwnd.clamp(config.min_window, MAX_WINDOW);
    }
}

/// The Swift controller.
#[derive(Clone, Debug)]
pub struct Swift {
    config: SwiftConfig,
    packets: PacketSize,
    /// The windows that follow the delays of the fabric and of the hosts (the paper's fcwnd and ecwnd).
    fabric: DelayWindow,
    host: DelayWindow,
    timeouts: u64,
    /// The number of routers on the path.
    routers: u32,
    rtt: Option<Dur>,
}

impl Swift {
    /// Creates a controller for a connection with these packet sizes.
    pub fn new(config: SwiftConfig, packets: PacketSize) -> Swift {
        let window = DelayWindow { cwnd: (config.initial_window as f64).max(config.min_window), last_decrease: None };
        Swift { config, packets, fabric: window, host: window, timeouts: 0, routers: 0, rtt: None }
    }

    /// The window that applies, in segments.
    fn cwnd(&self) -> f64 {
        self.fabric.cwnd.min(self.host.cwnd)
    }

    /// The target delay of the fabric in seconds.
    fn fabric_target_s(&self) -> f64 {
        let base = self.config.base_target + self.config.per_hop * u64::from(self.routers);
        base.as_secs_f64() + self.config.flow_scaling.at(self.fabric.cwnd)
    }

    /// Applies the reaction to a loss.
    fn shrink(&mut self, cx: &Cx<'_>) {
        let rtt = cx.srtt.or(self.rtt).unwrap_or_default();
        self.fabric.on_loss(&self.config, cx.now, rtt);
        self.host.on_loss(&self.config, cx.now, rtt);
    }
}

impl CongestionControl for Swift {
    fn needs(&self) -> Needs {
        Needs { host_delay: true, ..Needs::default() }
    }

    fn repaces(&self) -> bool {
        true
    }

    fn reacts_to_marks(&self) -> bool {
        false
    }

    fn on_path(&mut self, path: PathFacts) {
        self.routers = path.routers;
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.rtt = cx.srtt;
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.rtt = cx.srtt.or(ack.rtt).or(self.rtt);
        if ack.delivered_bytes > 0 {
            self.timeouts = 0;
        }
        // A delay needs a round-trip time, which the acknowledgment of a retransmission does not have.
        let (Some(rtt), Some(smoothed)) = (ack.rtt, self.rtt) else { return };
        let acked = ack.delivered_bytes as f64 / self.packets.mss_bytes as f64;
        let target_s = self.fabric_target_s();
        let host_delay = ack.host_delay.unwrap_or_default().min(rtt);
        let fabric_s = rtt.saturating_sub(host_delay).as_secs_f64();
        self.fabric.on_ack(&self.config, fabric_s, target_s, acked, cx.now, smoothed);
        let host_target_s = self.config.host_target.as_secs_f64();
        self.host.on_ack(&self.config, host_delay.as_secs_f64(), host_target_s, acked, cx.now, smoothed);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        match event {
            Congestion::Loss { .. } => self.shrink(cx),
            Congestion::Timeout { .. } => {
                self.timeouts += 1;
                if self.timeouts >= self.config.timeouts_until_minimum {
                    let window = DelayWindow { cwnd: self.config.min_window, last_decrease: Some(cx.now) };
                    (self.fabric, self.host) = (window, window);
                } else {
                    self.shrink(cx);
                }
            }
            Congestion::LostSyn => {
                for window in [&mut self.fabric, &mut self.host] {
                    window.cwnd = window.cwnd.min(self.config.min_window.max(1.0));
                }
            }
            Congestion::Marked { .. } | Congestion::Spurious => {}
        }
    }

    fn limits(&self) -> Limits {
        let cwnd = self.cwnd();
        let line_rate = self.config.line_rate.max(Rate::from_bps(1));
        let rtt_s = self.rtt.unwrap_or_default().as_secs_f64();
        let pace = if cwnd < 1.0 && rtt_s > 0.0 {
            // One segment every RTT / cwnd.
            let pause_s = (rtt_s / cwnd).min(self.config.max_pause.as_secs_f64());
            let bps = self.packets.wire_bytes() as f64 * 8.0 / pause_s;
            Rate::from_bps((bps as u64).max(1)).min(line_rate)
        } else {
            line_rate
        };
        Limits { cwnd_bytes: ((cwnd * self.packets.mss_bytes as f64) as u64).max(1), pacing: Some(pace) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.cwnd() * self.packets.mss_bytes as f64);
        put("fabric_window", self.fabric.cwnd);
        put("host_window", self.host.cwnd);
        put("fabric_target_s", self.fabric_target_s());
        if let Some(pace) = self.limits().pacing {
            put("rate_bps", pace.as_bps() as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::{Value, Values};
    use crate::registry::{Blueprint, BuildError, build};
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;
    const RTT: Dur = Dur::from_us(30);

    fn config() -> SwiftConfig {
        SwiftConfig {
            initial_window: 10,
            base_target: Dur::from_us(50),
            per_hop: Dur::ZERO,
            flow_scaling: FlowScaling::new(Dur::ZERO, 0.1, 100.0),
            host_target: Dur::from_us(40),
            ai: 1.0,
            beta: 0.8,
            max_mdf: 0.5,
            min_window: 0.001,
            max_pause: Dur::from_secs(1),
            timeouts_until_minimum: 3,
            line_rate: Rate::from_gbps(10),
        }
    }

    struct Connection {
        swift: Swift,
        now: Time,
        rng: Stream,
    }

    impl Connection {
        fn new(change: impl FnOnce(&mut SwiftConfig)) -> Connection {
            let mut config = config();
            change(&mut config);
            let swift = Swift::new(config, PacketSize::of(MSS));
            Connection { swift, now: Time::ZERO, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn cx(&mut self, call: impl FnOnce(&mut Swift, &mut Cx<'_>)) {
            let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: Some(RTT), min_rtt: Some(RTT), rng: &mut self.rng };
            call(&mut self.swift, &mut cx);
        }

        /// Acknowledges one segment that took `fabric_us` in the fabric and `host_us` inside the hosts. Returns the
        /// window in segments.
        fn acknowledge(&mut self, fabric_us: u64, host_us: u64) -> f64 {
            let rtt = Some(Dur::from_us(fabric_us + host_us));
            let ack = Ack { rtt, host_delay: Some(Dur::from_us(host_us)), ..Ack::in_sequence(MSS) };
            self.cx(|swift, cx| swift.on_ack(&ack, cx));
            self.swift.cwnd()
        }

        fn timeout(&mut self) -> f64 {
            self.now += RTT;
            self.cx(|swift, cx| swift.on_congestion(Congestion::Timeout { flight_bytes: 0, first: true }, cx));
            self.swift.cwnd()
        }
    }

    #[test]
    fn below_the_target_a_window_of_segments_grows_by_ai_per_round_trip() {
        let mut connection = Connection::new(|_| {});
        let grown = (0..10).map(|_| connection.acknowledge(30, 0)).last();
        assert!(grown.is_some_and(|cwnd| (10.9..=11.0).contains(&cwnd)), "{grown:?}");
    }

    #[test]
    fn above_the_target_the_window_shrinks_in_proportion_once_per_round_trip() {
        let mut connection = Connection::new(|_| {});
        // 1 - 0.8 (62.5 - 50) / 62.5 = 0.84.
        let after = connection.acknowledge(62, 0);
        assert!((after - 10.0 * (1.0 - 0.8 * 12.0 / 62.0)).abs() < 1e-9, "{after}");
        connection.now += Dur::from_us(29);
        assert_eq!(connection.acknowledge(62, 0), after, "within the same round trip");
        connection.now += Dur::from_us(1);
        assert!(connection.acknowledge(62, 0) < after);
    }

    #[test]
    fn a_decrease_is_at_most_max_mdf() {
        assert_eq!(Connection::new(|_| {}).acknowledge(5000, 0), 5.0);
    }

    #[test]
    fn the_slower_of_fabric_and_hosts_decides() {
        let mut connection = Connection::new(|_| {});
        // 1 - 0.8 (80 - 40) / 80 = 0.6, while the fabric is below its target.
        assert!((connection.acknowledge(30, 80) - 6.0).abs() < 1e-9);
        assert!(connection.swift.fabric.cwnd > 10.0);
    }

    #[test]
    fn the_target_grows_with_the_routers_of_the_path() {
        let target_us = |routers| {
            let mut values = Values::default();
            values.set("flow_scaling_range", Value::Span(Dur::ZERO));
            let plan = Values::default();
            let mut swift = build("swift", &values, &Blueprint::of_any(MSS, &plan)).expect("swift");
            swift.on_path(PathFacts { routers, base_rtt: Dur::ZERO });
            crate::contract::traced(&*swift, "fabric_target_s") * 1e6
        };
        for (routers, expected) in [(0, 20.0), (1, 23.0), (5, 35.0)] {
            assert!((target_us(routers) - expected).abs() < 1e-9, "{routers}");
        }
    }

    /// The range is 90 us between windows of 0.25 and 4: alpha = 90 / (2 - 0.5) = 60 and beta = -30.
    #[test]
    fn flow_scaling_falls_with_the_square_root_of_the_window() {
        let scaling = FlowScaling::new(Dur::from_us(90), 0.25, 4.0);
        let us = [0.001, 0.25, 1.0, 4.0, 100.0].map(|cwnd| scaling.at(cwnd) * 1e6);
        for (found, expected) in us.iter().zip([90.0, 90.0, 30.0, 0.0, 0.0]) {
            assert!((found - expected).abs() < 1e-9, "{us:?}");
        }
    }

    #[test]
    fn a_window_below_one_segment_is_a_pace_of_a_segment_per_rtt_over_window() {
        let mut connection = Connection::new(|config| config.initial_window = 1);
        assert_eq!(connection.swift.limits().pacing, Some(Rate::from_gbps(10)));
        connection.acknowledge(5000, 0);
        // 0.5 segments of 1040 bytes in 30 us.
        let expected = (0.5 * 1040.0 * 8.0 / 30e-6) as u64;
        assert_eq!(connection.swift.limits(), Limits { cwnd_bytes: 500, pacing: Some(Rate::from_bps(expected)) });
        // From there on, each acknowledged segment adds ai.
        connection.now += RTT;
        assert_eq!(connection.acknowledge(30, 0), 1.5);
        assert_eq!(connection.swift.limits().pacing, Some(Rate::from_gbps(10)));
    }

    #[test]
    fn segments_are_at_most_max_pause_apart() {
        let mut connection = Connection::new(|config| config.max_pause = Dur::from_us(100));
        for _ in 0..20 {
            connection.acknowledge(5000, 0);
            connection.now += RTT;
        }
        assert_eq!(connection.swift.cwnd(), 0.001);
        assert_eq!(connection.swift.limits().pacing.map(|pace| pace.time_for(1040)), Some(Dur::from_us(100)));
    }

    #[test]
    fn losses_shrink_once_per_round_trip_and_repeated_timeouts_leave_the_minimum() {
        let mut connection = Connection::new(|_| {});
        connection.cx(|swift, cx| swift.on_congestion(Congestion::Loss { flight_bytes: 0 }, cx));
        connection.cx(|swift, cx| swift.on_congestion(Congestion::Loss { flight_bytes: 0 }, cx));
        assert_eq!(connection.swift.cwnd(), 5.0);
        assert_eq!([(); 3].map(|()| connection.timeout()), [2.5, 1.25, 0.001]);
        connection.acknowledge(30, 0);
        connection.now += RTT;
        assert!(connection.timeout() > 0.4, "an acknowledgment ends the count");
    }

    #[test]
    fn windows_of_flow_scaling_in_the_wrong_order_are_refused() {
        let mut values = Values::default();
        values.set("flow_scaling_min", Value::Number(200.0));
        let refused = build("swift", &values, &Blueprint::of_any(MSS, &Values::default())).err();
        let message = "flow_scaling_min is 200; allowed: below flow_scaling_max (100)".to_owned();
        assert_eq!(refused, Some(BuildError::Refused(message)));
    }
}
