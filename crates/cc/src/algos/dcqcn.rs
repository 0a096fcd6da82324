//! DCQCN: a rate that follows congestion notifications, for lossless datacentres.
//!
//! Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, sections 3 and 5.
//!
//! DCQCN needs switches that mark by the length of the queue, receivers that echo every mark (`ecn = "dctcp"`), and in
//! general links without drops (`pfc`). A receiver that gets marked packets sends a congestion notification (CNP), at
//! most one in `cnp_interval`. A CNP stores the rate as target, cuts it by alpha / 2, and moves alpha towards one by `g`
//! (equation 1). Without a CNP for `alpha_timer`, alpha falls by the factor 1 - g (equation 2). The rate grows by steps: one for
//! each `byte_counter` of sent bytes, and one for each `increase_timer`. The first `fast_recovery` steps of either kind move the
//! rate halfway to the target (fast recovery, equation 3). Further steps raise the target by `r_ai` first (additive increase,
//! equation 4), or by `r_hai` times the count of such steps, once both kinds have had more than `fast_recovery` (hyper increase).
//!
//! Differences from the paper:
//!
//! - Receivers acknowledge each segment and echo each mark. The interval between CNPs is kept where they act, at the sender.
//!   CNPs therefore take no link time, and act as late as acknowledgments arrive.
//! - Bytes are counted as they are acknowledged, not as they are sent.
//! - The connection begins with the handshake of the transport. Lost segments are repaired by SACK at the same rate, and a
//!   retransmission timeout leaves one segment in flight until an acknowledgment arrives. There is no other window.
//! - Alpha begins at one, and its timer runs from the first CNP on. A flow starts at the line rate.
//! - A rate is at least `min_rate`, which the paper leaves open.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Needs};
use crate::pace::{MAX_WINDOW_SEGMENTS, PacketSize};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use sparelane_core::{Dur, Rate, Time};

const PAPER: &str = "Zhu et al., SIGCOMM 2015";

/// The longest time that a parameter may have.
const LONGEST: Dur = Dur::from_secs(100);
const SPAN: Kind = Kind::Span { min: Dur::from_us(1), max: LONGEST };
const RATE: Kind = Kind::Rate { min: Rate::from_bps(1), max: Rate::from_gbps(1000) };

const G: Param = Param {
    name: "g",
    kind: Kind::Number { min: 0.0001, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(1.0 / 256.0),
    meaning: "weight of the newest notification in alpha",
    source: PAPER,
};

const CNP_INTERVAL: Param = Param {
    name: "cnp_interval",
    kind: SPAN,
    default: DefaultValue::Span(Dur::from_us(50)),
    meaning: "least time between two congestion notifications of a flow",
    source: PAPER,
};

const ALPHA_TIMER: Param = Param {
    name: "alpha_timer",
    kind: SPAN,
    default: DefaultValue::Span(Dur::from_us(55)),
    meaning: "time without notification after which alpha falls",
    source: PAPER,
};

const INCREASE_TIMER: Param = Param {
    name: "increase_timer",
    kind: SPAN,
    default: DefaultValue::Span(Dur::from_us(55)),
    meaning: "time between two steps of increase",
    source: PAPER,
};

const BYTE_COUNTER: Param = Param {
    name: "byte_counter",
    kind: Kind::Size { min: 1, max: 1_000_000_000_000 },
    default: DefaultValue::Size(10_000_000),
    meaning: "bytes between two steps of increase",
    source: PAPER,
};

const FAST_RECOVERY: Param = Param {
    name: "fast_recovery",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::One },
    default: DefaultValue::Whole(5),
    meaning: "number of steps of fast recovery; F in the paper",
    source: PAPER,
};

const R_AI: Param = Param {
    name: "r_ai",
    kind: RATE,
    default: DefaultValue::Rate(Some(Rate::from_mbps(40))),
    meaning: "step of additive increase",
    source: PAPER,
};

const R_HAI: Param = Param {
    name: "r_hai",
    kind: RATE,
    default: DefaultValue::Rate(Some(Rate::from_mbps(400))),
    meaning: "step of hyper increase",
    source: "sparelane: ten steps of additive increase; the paper gives no value",
};

const MIN_RATE: Param = Param {
    name: "min_rate",
    kind: RATE,
    default: DefaultValue::Rate(Some(Rate::from_mbps(10))),
    meaning: "minimum rate, at most the line rate",
    source: "sparelane",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "dcqcn",
    summary: "a rate cut by congestion notifications, for lossless datacentres; needs marks and ecn = \"dctcp\"",
    source: PAPER,
    params: &[G, CNP_INTERVAL, ALPHA_TIMER, INCREASE_TIMER, BYTE_COUNTER, FAST_RECOVERY, R_AI, R_HAI, MIN_RATE],
    wire: None,
    make: &|values, plan| {
        let config = DcqcnConfig {
            g: values.number(&G),
            cnp_interval: values.span(&CNP_INTERVAL),
            alpha_timer: values.span(&ALPHA_TIMER),
            increase_timer: values.span(&INCREASE_TIMER),
            byte_counter: values.size(&BYTE_COUNTER),
            fast_recovery: values.whole(&FAST_RECOVERY),
            r_ai: values.some_rate(&R_AI),
            r_hai: values.some_rate(&R_HAI),
            min_rate: values.some_rate(&MIN_RATE),
            line_rate: plan.line_rate,
        };
        Ok(Box::new(Dcqcn::new(config, plan.packets())))
    },
};

/// The constants of the law, as declared, and the line rate.
#[derive(Clone, Copy, Debug)]
pub struct DcqcnConfig {
    /// Weight of the newest notification in alpha.
    pub g: f64,
    /// Least time between two notifications.
    pub cnp_interval: Dur,
    /// Time without notification after which alpha falls.
    pub alpha_timer: Dur,
    /// Time between two steps of increase.
    pub increase_timer: Dur,
    /// Bytes between two steps of increase.
    pub byte_counter: u64,
    /// Number of steps of fast recovery.
    pub fast_recovery: u64,
    /// Step of additive increase.
    pub r_ai: Rate,
    /// Step of hyper increase.
    pub r_hai: Rate,
    /// Minimum rate.
    pub min_rate: Rate,
    /// The rate of the sender's interface.
    pub line_rate: Rate,
}

/// The DCQCN controller.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    config: DcqcnConfig,
    /// The current rate and the target rate, bits per second: R_C and R_T.
    rate_bps: f64,
    target_bps: f64,
    alpha: f64,
    last_cnp: Option<Time>,
    /// The times of the next fall of alpha and of the next step of the timer. Both timers run from the first
    /// notification on.
    alpha_due: Time,
    increase_due: Time,
    /// Bytes since the last step of the byte counter.
    counted_bytes: u64,
    /// Steps of the byte counter and of the timer since the last notification.
    byte_steps: u64,
    timer_steps: u64,
    packet: PacketSize,
    cwnd_bytes: u64,
}

impl Dcqcn {
    /// Creates a controller for a connection with these packet sizes.
    pub fn new(config: DcqcnConfig, packet: PacketSize) -> Dcqcn {
        let line_bps = config.line_rate.as_bps().max(1) as f64;
        Dcqcn {
            config,
            rate_bps: line_bps,
            target_bps: line_bps,
            alpha: 1.0,
            last_cnp: None,
            alpha_due: Time::NEVER,
            increase_due: Time::NEVER,
            counted_bytes: 0,
            byte_steps: 0,
            timer_steps: 0,
            packet,
            cwnd_bytes: MAX_WINDOW_SEGMENTS * packet.mss_bytes,
        }
    }

    fn bounded(&self, bps: f64) -> f64 {
        let most = self.config.line_rate.as_bps().max(1) as f64;
        bps.clamp((self.config.min_rate.as_bps() as f64).min(most), most)
    }

    /// Equation 1: cuts the rate.
    fn notify(&mut self, now: Time) {
        self.last_cnp = Some(now);
        self.target_bps = self.rate_bps;
        self.rate_bps = self.bounded(self.rate_bps * (1.0 - self.alpha / 2.0));
        self.alpha = (1.0 - self.config.g) * self.alpha + self.config.g;
        (self.counted_bytes, self.byte_steps, self.timer_steps) = (0, 0, 0);
        self.alpha_due = now + self.config.alpha_timer;
        self.increase_due = now + self.config.increase_timer;
    }

    /// Figure 7: a step of increase.
    fn increase(&mut self) {
        let fast = self.config.fast_recovery;
        let (most, least) = (self.byte_steps.max(self.timer_steps), self.byte_steps.min(self.timer_steps));
        if least > fast {
            self.target_bps += self.config.r_hai.as_bps() as f64 * (least - fast) as f64;
        } else if most > fast {
            self.target_bps += self.config.r_ai.as_bps() as f64;
        }
        self.target_bps = self.bounded(self.target_bps);
        self.rate_bps = self.bounded((self.target_bps + self.rate_bps) / 2.0);
    }
}

impl CongestionControl for Dcqcn {
    fn needs(&self) -> Needs {
        Needs { exact_marks: true, timer: true, ..Needs::default() }
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.cwnd_bytes = MAX_WINDOW_SEGMENTS * cx.mss_bytes;
        if ack.ecn_echo && self.last_cnp.is_none_or(|last| cx.now >= last + self.config.cnp_interval) {
            self.notify(cx.now);
        }
        // Before the first notification, the flow is at the line rate.
        if self.last_cnp.is_some() {
            self.counted_bytes += ack.delivered_bytes;
            while self.counted_bytes >= self.config.byte_counter {
                self.counted_bytes -= self.config.byte_counter;
                self.byte_steps += 1;
                self.increase();
            }
        }
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        if let Congestion::Timeout { .. } = event {
            self.cwnd_bytes = cx.mss_bytes;
        }
    }

    fn next_timer(&self) -> Time {
        self.alpha_due.min(self.increase_due)
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.alpha_due {
            self.alpha *= 1.0 - self.config.g;
            self.alpha_due = cx.now + self.config.alpha_timer;
        }
        if cx.now >= self.increase_due {
            self.timer_steps += 1;
            self.increase();
            self.increase_due = cx.now + self.config.increase_timer;
        }
        // At the line rate with a small alpha, nothing changes any more until the next notification.
        let line_bps = self.config.line_rate.as_bps() as f64;
        if self.rate_bps > line_bps * (1.0 - ALPHA_AT_REST) && self.alpha < ALPHA_AT_REST {
            self.rate_bps = line_bps;
            (self.alpha_due, self.increase_due) = (Time::NEVER, Time::NEVER);
            self.alpha = 0.0;
        }
    }

    fn limits(&self) -> Limits {
        // Pacing counts 40 bytes of header for each segment.
        let scale = (self.packet.mss_bytes + crate::pace::HEADER_BYTES) as f64 / self.packet.wire_bytes() as f64;
        let pace = Rate::from_bps((self.rate_bps * scale).max(1.0) as u64);
        Limits { cwnd_bytes: self.cwnd_bytes, pacing: Some(pace) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", self.rate_bps);
        put("target_bps", self.target_bps);
        put("alpha", self.alpha);
    }
}

/// The value of alpha below which the timers of a flow at the line rate stop.
const ALPHA_AT_REST: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::traced;
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;
    const LINE_BPS: f64 = 40e9;

    fn with_cx<T>(now: Time, call: impl FnOnce(&mut Cx<'_>) -> T) -> T {
        let mut rng = Stream::new(1, Domain::Test, 0);
        call(&mut Cx { now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng })
    }

    fn controller() -> Dcqcn {
        let config = DcqcnConfig {
            g: 1.0 / 256.0,
            cnp_interval: Dur::from_us(50),
            alpha_timer: Dur::from_us(55),
            increase_timer: Dur::from_us(55),
            byte_counter: 10_000_000,
            fast_recovery: 5,
            r_ai: Rate::from_mbps(40),
            r_hai: Rate::from_mbps(400),
            min_rate: Rate::from_mbps(10),
            line_rate: Rate::from_gbps(40),
        };
        Dcqcn::new(config, PacketSize::of(MSS))
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    fn mark(dcqcn: &mut Dcqcn, us: u64) {
        let ack = Ack { ecn_echo: true, ..Ack::in_sequence(MSS) };
        with_cx(at(us), |cx| dcqcn.on_ack(&ack, cx));
    }

    /// Calls the timer when it is due, up to a time.
    fn run_timers(dcqcn: &mut Dcqcn, until: Time) {
        while dcqcn.next_timer() <= until {
            let due = dcqcn.next_timer();
            with_cx(due, |cx| dcqcn.on_timer(cx));
        }
    }

    #[test]
    fn a_notification_halves_the_first_time_and_marks_within_the_interval_count_once() {
        let mut dcqcn = controller();
        assert_eq!((traced(&dcqcn, "rate_bps"), dcqcn.next_timer()), (LINE_BPS, Time::NEVER));
        mark(&mut dcqcn, 100);
        assert_eq!((traced(&dcqcn, "rate_bps"), traced(&dcqcn, "target_bps")), (LINE_BPS / 2.0, LINE_BPS));
        mark(&mut dcqcn, 149);
        assert_eq!(traced(&dcqcn, "rate_bps"), LINE_BPS / 2.0);
        mark(&mut dcqcn, 150);
        assert_eq!((traced(&dcqcn, "rate_bps"), traced(&dcqcn, "target_bps")), (LINE_BPS / 4.0, LINE_BPS / 2.0));
    }

    #[test]
    fn alpha_falls_by_its_timer_and_rises_by_notifications() {
        let mut dcqcn = controller();
        mark(&mut dcqcn, 0);
        assert_eq!(traced(&dcqcn, "alpha"), 1.0);
        run_timers(&mut dcqcn, at(55 * 4));
        let expected = (255.0_f64 / 256.0).powi(4);
        assert!((traced(&dcqcn, "alpha") - expected).abs() < 1e-12);
        mark(&mut dcqcn, 300);
        let risen = expected * (255.0 / 256.0) + 1.0 / 256.0;
        assert!((traced(&dcqcn, "alpha") - risen).abs() < 1e-12);
    }

    /// Five steps halve the distance to the target, and further steps of the timer raise it by 40 Mb/s each.
    #[test]
    fn recovery_is_fast_first_and_then_additive() {
        let mut dcqcn = controller();
        mark(&mut dcqcn, 0);
        mark(&mut dcqcn, 50);
        run_timers(&mut dcqcn, at(50 + 55 * 5));
        let expected = 20e9 - 10e9 / 32.0;
        assert!((traced(&dcqcn, "rate_bps") - expected).abs() < 1.0, "{}", traced(&dcqcn, "rate_bps"));
        assert_eq!(traced(&dcqcn, "target_bps"), 20e9);
        run_timers(&mut dcqcn, at(50 + 55 * 7));
        assert_eq!(traced(&dcqcn, "target_bps"), 20e9 + 2.0 * 40e6);
    }

    /// With more than five steps of the timer and of the byte counter, the target rises by multiples of 400 Mb/s.
    #[test]
    fn increase_is_hyper_once_both_kinds_of_step_are_beyond_fast_recovery() {
        let mut dcqcn = controller();
        mark(&mut dcqcn, 0);
        mark(&mut dcqcn, 50);
        run_timers(&mut dcqcn, at(50 + 55 * 6));
        let target = traced(&dcqcn, "target_bps");
        let acks = |dcqcn: &mut Dcqcn, bytes| with_cx(at(400), |cx| dcqcn.on_ack(&Ack::in_sequence(bytes), cx));
        (0..5).for_each(|_| acks(&mut dcqcn, 10_000_000));
        assert_eq!(traced(&dcqcn, "target_bps"), target + 5.0 * 40e6);
        acks(&mut dcqcn, 10_000_000);
        assert_eq!(traced(&dcqcn, "target_bps"), target + 5.0 * 40e6 + 400e6);
    }

    #[test]
    fn the_rate_stays_between_its_bounds_and_the_timers_stop_at_the_line_rate() {
        let mut dcqcn = controller();
        (0..200).for_each(|number| mark(&mut dcqcn, 50 * number));
        assert_eq!(traced(&dcqcn, "rate_bps"), 10e6);
        run_timers(&mut dcqcn, Time::ZERO + Dur::from_secs(10));
        assert_eq!((traced(&dcqcn, "rate_bps"), dcqcn.next_timer()), (LINE_BPS, Time::NEVER));
        assert_eq!(dcqcn.limits().pacing, Some(Rate::from_gbps(40)));
    }
}
