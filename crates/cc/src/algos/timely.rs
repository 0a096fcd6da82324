//! TIMELY: a rate that follows the gradient of the round-trip time, for datacentres.
//!
//! Source: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, Algorithm 1 and
//! section 4.
//!
//! TIMELY needs round-trip times precise enough to show queues of tens of microseconds. Data is divided into segments
//! of 16 KB, each of many packets. When a segment has been acknowledged (a "completion event"), its round-trip time
//! moves the rate. Below `t_low` the rate grows by `delta`; above `t_high` it shrinks by `beta (1 - t_high / RTT)`. In
//! between, it grows by `delta` while the filtered gradient is at most zero, and by five times that from the fifth such
//! event in a row on ("hyperactive increase"); with a positive gradient it shrinks by `beta` times the gradient. The
//! gradient is the filtered difference of successive round-trip times over `min_rtt`.
//!
//! Differences from the paper:
//!
//! - The paper's network interface sends a segment in one burst and paces segments. This controller paces packets,
//!   which section 5 of the paper also tries.
//! - A segment's round-trip time is that of the packet whose acknowledgment completes it, minus the packet's time at
//!   the line rate, as the paper subtracts that of its burst.
//! - The paper's network is lossless. Here losses are repaired at the same rate, and a retransmission timeout leaves
//!   one segment in flight until an acknowledgment arrives. There is no other window. Buffers should hold more than
//!   `t_high`; in smaller ones only the gradient limits the rate.
//! - The paper starts a flow at the line rate divided by the number of active flows at its host plus one. A controller
//!   does not see the other flows and starts at the share `start` of the line rate; the default assumes one other flow.
//! - The paper's code and text give the weight of the gradient's filter differently; `alpha` is the weight of the
//!   history.
//! - A rate is at most the line rate and at least `min_rate`, which the paper leaves open.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits};
use crate::pace::PacketSize;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use sparelane_core::{Dur, Rate};

const PAPER: &str = "Mittal et al., SIGCOMM 2015";

/// The longest time that a parameter may have.
const LONGEST: Dur = Dur::from_secs(100);

const ALPHA: Param = Param {
    name: "alpha",
    kind: Kind::Number { min: 0.0, max: 0.999, unit: Unit::One },
    default: DefaultValue::Number(0.875),
    meaning: "weight of the history in the filter of the differences of round-trip times",
    source: PAPER,
};

const BETA: Param = Param {
    name: "beta",
    kind: Kind::Number { min: 0.01, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.8),
    meaning: "factor of multiplicative decrease",
    source: PAPER,
};

const T_LOW: Param = Param {
    name: "t_low",
    kind: Kind::Span { min: Dur::ZERO, max: LONGEST },
    default: DefaultValue::Span(Dur::from_us(50)),
    meaning: "round-trip time below which the rate grows whatever the gradient",
    source: PAPER,
};

const T_HIGH: Param = Param {
    name: "t_high",
    kind: Kind::Span { min: Dur::from_us(1), max: LONGEST },
    default: DefaultValue::Span(Dur::from_us(500)),
    meaning: "round-trip time above which the rate shrinks whatever the gradient",
    source: PAPER,
};

const MIN_RTT: Param = Param {
    name: "min_rtt",
    kind: Kind::Span { min: Dur::from_ns(100), max: LONGEST },
    default: DefaultValue::Span(Dur::from_us(20)),
    meaning: "round-trip time without queues, to which gradients are relative",
    source: PAPER,
};

const DELTA: Param = Param {
    name: "delta",
    kind: Kind::Rate { min: Rate::from_bps(1), max: Rate::from_gbps(1000) },
    default: DefaultValue::Rate(Some(Rate::from_mbps(10))),
    meaning: "additive increase of the rate",
    source: PAPER,
};

const HAI_AFTER: Param = Param {
    name: "hai_after",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::One },
    default: DefaultValue::Whole(5),
    meaning: "completions in a row without positive gradient until hyperactive increase by five times delta",
    source: PAPER,
};

const SEGMENT: Param = Param {
    name: "segment",
    kind: Kind::Size { min: 1, max: 1_000_000_000 },
    default: DefaultValue::Size(16_000),
    meaning: "payload of one completion event; 1B counts every acknowledgment",
    source: "Mittal et al., SIGCOMM 2015 (16 KB)",
};

const START: Param = Param {
    name: "start",
    kind: Kind::Number { min: 0.0001, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "initial rate as a share of the line rate",
    source: "sparelane: assumes one other flow at the host",
};

const MIN_RATE: Param = Param {
    name: "min_rate",
    kind: Kind::Rate { min: Rate::from_bps(1), max: Rate::from_gbps(1000) },
    default: DefaultValue::Rate(Some(Rate::from_mbps(10))),
    meaning: "minimum rate, at most the line rate",
    source: "sparelane: one additive increase",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "timely",
    summary: "a rate that follows the gradient of the round-trip time, for datacentres",
    source: PAPER,
    params: &[ALPHA, BETA, T_LOW, T_HIGH, MIN_RTT, DELTA, HAI_AFTER, SEGMENT, START, MIN_RATE],
    wire: None,
    make: &|values, plan| {
        let config = TimelyConfig {
            alpha: values.number(&ALPHA),
            beta: values.number(&BETA),
            t_low: values.span(&T_LOW),
            t_high: values.span(&T_HIGH),
            min_rtt: values.span(&MIN_RTT),
            delta: values.some_rate(&DELTA),
            hai_after: values.whole(&HAI_AFTER),
            segment_bytes: values.size(&SEGMENT),
            start: values.number(&START),
            min_rate: values.some_rate(&MIN_RATE),
            line_rate: plan.line_rate,
        };
        Ok(Box::new(Timely::new(config, plan.packets())))
    },
};

/// The factor of hyperactive increase.
const HAI_FACTOR: f64 = 5.0;

/// A window that never binds.
const WINDOW_SEGMENTS: u64 = 1 << 32;

/// The constants of the law, as declared, and the line rate.
#[derive(Clone, Copy, Debug)]
pub struct TimelyConfig {
    /// Weight of the history in the gradient's filter.
    pub alpha: f64,
    /// Factor of multiplicative decrease.
    pub beta: f64,
    /// The round-trip time below which the rate grows.
    pub t_low: Dur,
    /// The round-trip time above which the rate shrinks.
    pub t_high: Dur,
    /// The round-trip time to which gradients are relative.
    pub min_rtt: Dur,
    /// Additive increase of the rate.
    pub delta: Rate,
    /// Number of completions until hyperactive increase.
    pub hai_after: u64,
    /// Payload bytes of a completion event.
    pub segment_bytes: u64,
    /// Initial rate as a share of the line rate.
    pub start: f64,
    /// Minimum rate.
    pub min_rate: Rate,
    /// The rate of the sender's interface.
    pub line_rate: Rate,
}

/// The TIMELY controller.
#[derive(Clone, Debug)]
pub struct Timely {
    config: TimelyConfig,
    rate: Rate,
    /// Bytes of a full packet with its header.
    wire_bytes: u64,
    cwnd_bytes: u64,
    previous_rtt: Option<Dur>,
    /// The filtered difference of successive round-trip times, seconds.
    rtt_diff_s: f64,
    /// Number of completions in a row without positive gradient.
    without_gradient: u64,
    /// Bytes acknowledged since the last completion.
    acked_bytes: u64,
}

impl Timely {
    /// Creates a controller for a connection with these packet sizes.
    pub fn new(config: TimelyConfig, packets: PacketSize) -> Timely {
        let mut timely = Timely {
            config,
            rate: Rate::default(),
            wire_bytes: packets.wire_bytes(),
            cwnd_bytes: WINDOW_SEGMENTS * packets.mss_bytes,
            previous_rtt: None,
            rtt_diff_s: 0.0,
            without_gradient: 0,
            acked_bytes: 0,
        };
        timely.set_rate(config.line_rate.scaled(config.start));
        timely
    }

    fn set_rate(&mut self, rate: Rate) {
        let most = self.config.line_rate.max(Rate::from_bps(1));
        self.rate = rate.clamp(self.config.min_rate.min(most), most);
    }

    /// Algorithm 1: updates the rate at a completion event.
    fn complete(&mut self, rtt: Dur) {
        let TimelyConfig { alpha, beta, t_low, t_high, min_rtt, delta, hai_after, .. } = self.config;
        let difference_s = rtt.as_secs_f64() - self.previous_rtt.unwrap_or(rtt).as_secs_f64();
        self.previous_rtt = Some(rtt);
        self.rtt_diff_s = alpha * self.rtt_diff_s + (1.0 - alpha) * difference_s;
        let gradient = self.rtt_diff_s / min_rtt.as_secs_f64();
        let increased = |steps: f64| Rate::from_bps(self.rate.as_bps().saturating_add(delta.scaled(steps).as_bps()));
        let is_in_band = t_low <= rtt && rtt <= t_high;
        self.without_gradient = if is_in_band && gradient <= 0.0 { self.without_gradient + 1 } else { 0 };
        self.set_rate(if rtt < t_low {
            increased(1.0)
        } else if rtt > t_high {
            self.rate.scaled(1.0 - beta * (1.0 - t_high.as_secs_f64() / rtt.as_secs_f64()))
        } else if gradient <= 0.0 {
            increased(if self.without_gradient >= hai_after { HAI_FACTOR } else { 1.0 })
        } else {
            self.rate.scaled(1.0 - beta * gradient)
        });
    }
}

impl CongestionControl for Timely {
    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.cwnd_bytes = WINDOW_SEGMENTS * cx.mss_bytes;
        self.acked_bytes += ack.delivered_bytes;
        // A completion needs a round-trip time, which the acknowledgment of a retransmission does not have.
        if let Some(rtt) = ack.rtt
            && self.acked_bytes >= self.config.segment_bytes
        {
            self.acked_bytes = 0;
            self.complete(rtt.saturating_sub(self.config.line_rate.time_for(self.wire_bytes)));
        }
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        if let Congestion::Timeout { .. } = event {
            self.cwnd_bytes = cx.mss_bytes;
        }
    }

    fn reacts_to_marks(&self) -> bool {
        false
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.cwnd_bytes, pacing: Some(self.rate) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", self.rate.as_bps() as f64);
        put("gradient", self.rtt_diff_s / self.config.min_rtt.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Blueprint;
    use crate::{Values, build};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1000;

    fn config() -> TimelyConfig {
        TimelyConfig {
            alpha: 0.875,
            beta: 0.8,
            t_low: Dur::from_us(50),
            t_high: Dur::from_us(500),
            min_rtt: Dur::from_us(20),
            delta: Rate::from_mbps(10),
            hai_after: 5,
            segment_bytes: 16_000,
            start: 0.5,
            min_rate: Rate::from_mbps(10),
            line_rate: Rate::from_gbps(10),
        }
    }

    /// Returns the rate in Mb/s after completions with these round-trip times in microseconds.
    fn rates(rtts_us: &[u64]) -> Vec<f64> {
        let mut timely = Timely::new(config(), PacketSize::of(MSS));
        let rate_after = |rtt_us: &u64| {
            timely.complete(Dur::from_us(*rtt_us));
            timely.rate.as_bps() as f64 / 1e6
        };
        rtts_us.iter().map(rate_after).collect()
    }

    #[test]
    fn below_t_low_the_rate_grows_by_delta_even_as_delays_grow() {
        assert_eq!(rates(&[20, 30, 49]), [5010.0, 5020.0, 5030.0]);
    }

    #[test]
    fn above_t_high_the_rate_shrinks_even_as_delays_shrink() {
        // 1 - 0.8 (1 - 500/1000) = 0.6, then 1 - 0.8 (1 - 500/800) = 0.7.
        assert_eq!(rates(&[1000, 800]), [3000.0, 2100.0]);
    }

    #[test]
    fn in_between_the_filtered_gradient_decides() {
        // From 100 to 116 us: 0.125 * 16 = 2 us, a tenth of 20 us. Then it decays by 0.875 a completion.
        let found = rates(&[100, 116, 116]);
        let expected = [5010.0, 5010.0 * (1.0 - 0.08), 5010.0 * (1.0 - 0.08) * (1.0 - 0.07)];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
        }
    }

    #[test]
    fn the_fifth_completion_without_gradient_begins_hyperactive_increase_and_a_gradient_ends_it() {
        assert_eq!(rates(&[100; 6]), [5010.0, 5020.0, 5030.0, 5040.0, 5090.0, 5140.0]);
        // A growing delay, then falling ones: the count restarts.
        let found = rates(&[100, 100, 100, 100, 100, 101, 90, 80, 70, 60]);
        let grown: Vec<f64> = found.windows(2).map(|pair| (pair[1] - pair[0]).round()).collect();
        assert!(grown[4] < 0.0);
        assert_eq!(grown[5..], [10.0, 10.0, 10.0, 10.0]);
    }

    #[test]
    fn the_rate_stays_between_the_minimum_and_the_line_rate() {
        assert_eq!(rates(&[100, 499]).last(), Some(&10.0), "a gradient above 1 / beta");
        assert_eq!(rates(&[20; 600]).last(), Some(&10_000.0));
    }

    /// Delivers an acknowledgment of one packet with this round-trip time, at an interface that needs 0.832 us per
    /// packet.
    fn acknowledge(timely: &mut Timely, rtt: Option<Dur>) -> u64 {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        timely.on_ack(&Ack { rtt, ..Ack::in_sequence(MSS) }, &mut cx);
        timely.rate.as_bps() / 1_000_000
    }

    #[test]
    fn a_completion_is_counted_per_segment_not_per_packet() {
        let mut timely = Timely::new(config(), PacketSize::of(MSS));
        for packet in 1..=48 {
            // 50.8 us with the packet's own time: below T_low.
            let rate = acknowledge(&mut timely, Some(Dur::from_ns(50_800)));
            assert_eq!(rate, 5000 + packet / 16 * 10);
        }
        for _ in 0..20 {
            assert_eq!(acknowledge(&mut timely, None), 5030);
        }
        assert_eq!(acknowledge(&mut timely, Some(Dur::from_us(30))), 5040);
    }

    #[test]
    fn a_flow_starts_at_its_share_of_the_line_and_a_timeout_leaves_one_segment() {
        let mut timely =
            build("timely", &Values::default(), &Blueprint::of_any(MSS, &Values::default())).expect("timely");
        assert_eq!(timely.limits().pacing, Some(Rate::from_gbps(5)));
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        timely.on_congestion(Congestion::Timeout { flight_bytes: 9 * MSS, first: true }, &mut cx);
        assert_eq!(timely.limits().cwnd_bytes, MSS);
        timely.on_ack(&Ack::in_sequence(MSS), &mut cx);
        assert_eq!(timely.limits(), Limits { cwnd_bytes: WINDOW_SEGMENTS * MSS, pacing: Some(Rate::from_gbps(5)) });
    }
}
