//! TCP-LP: low priority by backing off before the queue is full.
//!
//! Source: Kuzmanovic and Knightly, "TCP-LP: Low-Priority Service via End-Point Congestion Control", IEEE/ACM ToN
//! 14(4), 2006; details that the paper leaves open as in Linux (tcp_lp.c).
//!
//! TCP-LP needs one-way delays. The flow follows NewReno, and every acknowledgment updates a smoothed one-way delay
//! (gain 1/8) and the range of delays. Early congestion means a smoothed delay that exceeds the minimum by 15 % of the
//! range. It halves the window. The flow then does not grow for an inference time of three round trips, and a second
//! early congestion in that time leaves one segment. The slow-start threshold stays, and slow start restores the
//! window. The end of the range is not the largest delay but the largest before it. After early congestion the range
//! restarts, from the smoothed delay to twice that.
//!
//! The parameter `like` selects one of three variants. In Linux early congestion begins *at* the threshold, so that the
//! first sample, a range of zero, halves the first window and sets the range; slow start also waits for the inference
//! time. The variant `exact` has these rules with equal clocks of resolution `tick`. In ns-3 (TcpLp) and in the paper
//! early congestion begins beyond the threshold, and in ns-3 slow start does not wait. ns-3 counts milliseconds
//! (`tick = "1ms"`). Delays are in whole ticks, and samples of zero ticks are ignored, as in both.
//!
//! The variant `linux` is that of Linux 6.12 with its clocks ([`linux::Clocks`]): milliseconds, an offset that each
//! connection draws for its timestamps, and a running estimate of the receiver's clock rate. It computes in 32 bits,
//! which overflow. The resulting delay has little to do with the path: most connections behave as NewReno's, and some
//! back off without any cause.
//!
//! Differences: windows are in bytes, not in whole segments as in Linux. Timestamps are those of the arrival that
//! caused an acknowledgment, not of the acknowledgment's departure. Clocks of the variants `exact` and `ns-3` are equal
//! except for `clock_offset`. The new range depends on that offset: a sender whose receiver was started at another time
//! gets a range that no queue can fill, and behaves as NewReno after its first halving. The paper's flow, unlike that
//! of Linux and this one, resumes growth by a segment per round trip after the inference time.

mod linux;

use super::newreno::NewReno;
use crate::contract::{Ack, Congestion, Cx, Needs};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};
use linux::Clocks;
use sparelane_core::{Dur, Time};

const THRESHOLD: Param = Param {
    name: "threshold",
    kind: Kind::Whole { min: 0, max: 100, unit: Unit::Named("% of the range of delays") },
    default: DefaultValue::Whole(15),
    meaning: "early congestion begins when the one-way delay exceeds the minimum by this",
    source: "Kuzmanovic and Knightly (delta); Linux",
};

const LIKE: Param = Param {
    name: "like",
    kind: Kind::Choice(&["exact", "linux", "ns-3"]),
    default: DefaultValue::Word("exact"),
    meaning: "rules and clocks: Linux's rules with exact clocks (exact) or its own (linux), or ns-3's",
    source: "Linux tcp_lp.c; ns-3 tcp-lp.cc",
};

const TICK: Param = Param {
    name: "tick",
    kind: Kind::Span { min: Dur::from_ns(1), max: Dur::from_secs(1) },
    default: DefaultValue::Span(Dur::from_ns(1)),
    meaning: "resolution of the clocks that measure delays",
    source: "sparelane; 1 ms in ns-3; not used with like = \"linux\"",
};

const CLOCK_OFFSET: Param = Param {
    name: "clock_offset",
    kind: Kind::Span { min: Dur::from_ps(0), max: Dur::from_secs(1_000_000) },
    default: DefaultValue::Span(Dur::from_ps(0)),
    meaning: "offset of the receiver's clock, which adds to every delay",
    source: "sparelane; not used with like = \"linux\"",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "lp",
    summary: "low priority: backs off when one-way delays rise",
    source: "Kuzmanovic and Knightly, IEEE/ACM ToN 2006",
    params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, THRESHOLD, LIKE, TICK, CLOCK_OFFSET],
    wire: None,
    make: &|values, plan| {
        let like = match values.word(&LIKE) {
            "ns-3" => Like::Ns3,
            "linux" => Like::Linux,
            _ => Like::Exact,
        };
        // Linux brings its own clocks; these two parameters are then unused.
        let (tick, clock_offset) = match like {
            Like::Linux => (Dur::from_ns(1), Dur::ZERO),
            _ => (values.span(&TICK), values.span(&CLOCK_OFFSET)),
        };
        let law = TcpLp::new(LpConfig { threshold_percent: values.whole(&THRESHOLD), like, tick, clock_offset });
        Ok(windowed(law, values, plan))
    },
};

/// The variant of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Like {
    /// Linux's rules, with clocks that are equal except for an offset.
    Exact,
    /// Linux's rules and clocks.
    Linux,
    /// The rules of ns-3.
    Ns3,
}

/// The constants of the law.
#[derive(Clone, Copy, Debug)]
pub struct LpConfig {
    /// Threshold of early congestion, in percent of the range of delays.
    pub threshold_percent: u64,
    /// The variant of the rules.
    pub like: Like,
    /// Resolution of the clocks.
    pub tick: Dur,
    /// Offset of the receiver's clock from the sender's.
    pub clock_offset: Dur,
}

/// The range of one-way delays, in ticks of the clocks.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: u64,
    /// The end of the range. A new maximum takes effect only with the second delay that large.
    most: u64,
    /// The largest delay.
    reserved: u64,
}

impl Range {
    fn of(delay: u64) -> Range {
        Range { least: delay, most: delay, reserved: delay }
    }

    fn update(&mut self, delay: u64) {
        self.least = self.least.min(delay);
        if delay > self.reserved {
            self.most = self.reserved;
            self.reserved = delay;
        } else {
            self.most = self.most.max(delay);
        }
    }
}

/// The smoothed delay, multiplied by eight, and the range.
#[derive(Clone, Copy, Debug)]
struct Delays {
    smoothed_by_8: u64,
    range: Range,
}

/// The TCP-LP window law.
#[derive(Clone, Debug)]
pub struct TcpLp {
    config: LpConfig,
    delays: Option<Delays>,
    /// Linux's clocks, for the variant that uses them.
    clocks: Option<Box<Clocks>>,
    inference: Dur,
    last_drop: Option<Time>,
    /// True until the inference time is over: no growth.
    is_inferring: bool,
    newreno: NewReno,
}

impl TcpLp {
    /// Creates a law with these constants.
    pub fn new(config: LpConfig) -> TcpLp {
        TcpLp {
            config,
            delays: None,
            clocks: None,
            inference: Dur::from_ps(0),
            last_drop: None,
            is_inferring: false,
            newreno: NewReno::default(),
        }
    }

    /// Returns `delay` as two clocks show it, in ticks: the difference of two readings.
    fn ticks(&self, delay: Dur, ack: &Ack, now: Time) -> u64 {
        let tick = self.config.tick.as_ps();
        let sent = ack.rtt.map_or(0, |rtt| now.as_ps().saturating_sub(rtt.as_ps()));
        (sent + delay.as_ps()) / tick - sent / tick + self.config.clock_offset.as_ps() / tick
    }

    fn sample(&mut self, delay: u64) {
        if delay == 0 {
            return;
        }
        match &mut self.delays {
            None => self.delays = Some(Delays { smoothed_by_8: delay * 8, range: Range::of(delay) }),
            Some(Delays { smoothed_by_8, range }) => {
                range.update(delay);
                *smoothed_by_8 = *smoothed_by_8 - *smoothed_by_8 / 8 + delay;
            }
        }
    }

    /// Processes the delay of an acknowledgment. Returns true if it shows early congestion.
    fn observe_delay(&mut self, ack: &Ack, now: Time) -> bool {
        if let Some(delay) = ack.one_way_delay {
            let delay = self.ticks(delay, ack, now);
            self.sample(delay);
        }
        if let Some(rtt) = ack.rtt {
            self.inference = rtt.saturating_mul(3);
        }
        self.is_inferring = self.last_drop.is_some_and(|at| now - at < self.inference);
        self.indicates_congestion()
    }

    /// Same as [`observe_delay`](Self::observe_delay), with Linux's clocks.
    fn observe_delay_as_linux(&mut self, ack: &Ack, cx: &mut Cx<'_>) -> bool {
        let clocks = self.clocks.get_or_insert_with(|| Box::new(Clocks::drawn(cx.rng)));
        // The round-trip time of a retransmission is in whole ticks, and so is the send time derived from it.
        if let (Some(delay), Some(rtt)) = (ack.one_way_delay, ack.rtt.or(ack.resent_rtt)) {
            let sent = Time::from_ps(cx.now.as_ps().saturating_sub(rtt.as_ps()));
            clocks.observe(sent, sent + delay);
            if let whole @ 1.. = linux::ticks(cx.now).wrapping_sub(linux::ticks(sent)) {
                self.inference = linux::TICK * u64::from(whole) * 3;
            }
        }
        let ticks = |at: Time| at.as_ps() / linux::TICK.as_ps();
        self.is_inferring = self.last_drop.is_some_and(|at| linux::TICK * (ticks(cx.now) - ticks(at)) < self.inference);
        clocks.indicate_congestion(self.config.threshold_percent as u32)
    }

    /// Returns true if the smoothed delay shows early congestion, and then restarts the range.
    fn indicates_congestion(&mut self) -> bool {
        let Some(Delays { smoothed_by_8, range }) = &mut self.delays else { return false };
        let smoothed = *smoothed_by_8 / 8;
        let threshold = range.least + self.config.threshold_percent * (range.most - range.least) / 100;
        if smoothed < threshold || smoothed == threshold && self.config.like == Like::Ns3 {
            return false;
        }
        let twice = *smoothed_by_8 / 4;
        *range = Range { least: smoothed, most: twice, reserved: twice };
        true
    }
}

impl WindowLaw for TcpLp {
    fn needs(&self) -> Needs {
        Needs { one_way_delay: true, ..Needs::default() }
    }

    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if ack.acked_bytes == 0 {
            return;
        }
        let is_congested = if self.config.like == Like::Linux {
            self.observe_delay_as_linux(ack, cx)
        } else {
            self.observe_delay(ack, cx.now)
        };
        if is_congested {
            window.cwnd = if self.is_inferring { cx.mss_bytes } else { (window.cwnd / 2).max(cx.mss_bytes) };
            self.last_drop = Some(cx.now);
        }
    }

    fn slow_start(&mut self, window: &mut Window, _ack: &Ack, counted_bytes: u64, _cx: &mut Cx<'_>) {
        if self.is_inferring && self.config.like != Like::Ns3 {
            return;
        }
        window.cwnd = (window.cwnd + counted_bytes).min(window.ssthresh);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if !self.is_inferring {
            self.newreno.grow(window, ack, cx);
        }
    }

    fn cut(&mut self, window: &Window, flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.newreno.cut(window, flight_bytes, event, cx)
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let seconds = |ticks: u64| ticks as f64 * self.config.tick.as_secs_f64();
        put("delay_s", self.delays.map_or(0.0, |delays| seconds(delays.smoothed_by_8) / 8.0));
        put("least_delay_s", self.delays.map_or(0.0, |delays| seconds(delays.range.least)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::UNBOUNDED;
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;
    const EXACT: LpConfig =
        LpConfig { threshold_percent: 15, like: Like::Exact, tick: Dur::from_ns(1), clock_offset: Dur::from_ps(0) };
    const NS3: LpConfig = LpConfig { like: Like::Ns3, ..EXACT };

    /// A flow of 40 segments with round-trip times of 100 ms, so that the inference time is 300 ms.
    struct Flow {
        controller: Windowed<TcpLp>,
        now: Time,
        rng: Stream,
    }

    impl Flow {
        fn new(config: LpConfig, initial_ssthresh: u64) -> Flow {
            let window = WindowConfig {
                initial_window: 40,
                initial_ssthresh,
                slow_start_limit: 1,
                growth_limit: UNBOUNDED,
                ..WindowConfig::default()
            };
            let controller = Windowed::new(TcpLp::new(config), window, MSS);
            Flow { controller, now: Time::ZERO + Dur::from_secs(1), rng: Stream::new(1, Domain::Test, 0) }
        }

        /// Returns the window in whole segments after an acknowledgment `after_ms` later with this one-way delay.
        fn acknowledge(&mut self, after_ms: u64, delay_us: u64) -> u64 {
            self.now += Dur::from_ms(after_ms);
            let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
            let delay = Some(Dur::from_us(delay_us));
            let ack = Ack { one_way_delay: delay, rtt: Some(Dur::from_ms(100)), ..Ack::in_sequence(MSS) };
            self.controller.on_ack(&ack, &mut cx);
            self.controller.limits().cwnd_bytes / MSS
        }
    }

    /// The first delay of 10 ms sets a range from 10 to 20 ms with a threshold of 11.5 ms. Delays of 14 ms, smoothed by
    /// 1/8, are 10.500, 10.938, 11.320 and 11.655 ms: the fourth is beyond the threshold.
    #[test]
    fn early_congestion_halves_the_window_and_within_the_inference_time_leaves_one_segment() {
        let mut flow = Flow::new(EXACT, 2);
        assert_eq!(flow.acknowledge(0, 10_000), 20, "the first sample is at the threshold of an empty range");
        assert_eq!([0; 3].map(|_| flow.acknowledge(110, 14_000)), [20; 3]);
        assert_eq!(flow.acknowledge(0, 14_000), 10, "330 ms after the first sample");
        let mut flow = Flow::new(EXACT, 2);
        flow.acknowledge(0, 10_000);
        assert_eq!([0; 4].map(|_| flow.acknowledge(70, 14_000)), [20, 20, 20, 1], "280 ms after the first sample");
    }

    /// The second range is 11.655 to 23.311 ms with a threshold of 13.404 ms: 14 - 2.345 (7/8)^n ms exceeds it from n =
    /// 11 on.
    #[test]
    fn after_early_congestion_the_range_is_the_smoothed_delay_to_twice_that() {
        let mut flow = Flow::new(EXACT, 2);
        flow.acknowledge(0, 10_000);
        for _ in 0..4 {
            flow.acknowledge(110, 14_000);
        }
        // NewReno's growth turns 10 segments into 11 on the way.
        assert_eq!([0; 11].map(|_| flow.acknowledge(400, 14_000))[7..], [10, 11, 11, 5]);
    }

    /// The first sample is the range. The second, 14 ms, is only recorded, and 10.5 ms exceeds the range of 10 ms.
    #[test]
    fn ns3_waits_for_a_delay_beyond_the_first_one() {
        let mut flow = Flow::new(NS3, 2);
        assert_eq!(
            [flow.acknowledge(0, 10_000), flow.acknowledge(0, 10_000), flow.acknowledge(0, 14_000)],
            [40, 40, 20]
        );
    }

    #[test]
    fn the_largest_delay_ends_the_range_once_another_exceeds_it() {
        let mut range = Range::of(10);
        let mut after = |delay| {
            range.update(delay);
            (range.least, range.most)
        };
        assert_eq!([30, 20, 40, 25, 8].map(&mut after), [(10, 10), (10, 20), (10, 30), (10, 30), (8, 30)]);
    }

    #[test]
    fn nothing_grows_in_the_inference_time_but_slow_start_of_ns3() {
        // The acknowledgment that reveals congestion still counts.
        let after_a_halving = |config, delays_us: &[u64]| {
            let mut flow = Flow::new(config, UNBOUNDED);
            let halved = delays_us.iter().map(|&delay_us| flow.acknowledge(0, delay_us)).last();
            assert_eq!(halved, Some(21));
            [290, 9, 1].map(|ms| flow.acknowledge(ms, 10_000))
        };
        assert_eq!(after_a_halving(EXACT, &[10_000]), [21, 21, 22]);
        assert_eq!(after_a_halving(NS3, &[10_000, 14_000]), [22, 23, 24]);
    }

    /// A clock that is an hour ahead puts the second threshold nine minutes away.
    #[test]
    fn a_receiver_clock_that_is_ahead_hides_further_early_congestion() {
        let mut flow = Flow::new(LpConfig { clock_offset: Dur::from_secs(3600), ..EXACT }, 2);
        assert_eq!(flow.acknowledge(0, 10_000), 20);
        assert!((0..100).all(|_| flow.acknowledge(400, 4_000_000) >= 20));
    }

    #[test]
    fn in_linux_retransmissions_yield_delays_too() {
        let mut law = TcpLp::new(LpConfig { like: Like::Linux, ..EXACT });
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut inference_after = |resent_rtt| {
            let now = Time::ZERO + Dur::from_secs(1);
            let mut cx = Cx { now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
            let ack = Ack { one_way_delay: Some(Dur::from_ms(50)), resent_rtt, ..Ack::in_sequence(MSS) };
            law.observe_delay_as_linux(&ack, &mut cx);
            law.inference
        };
        assert_eq!(inference_after(None), Dur::ZERO);
        assert_eq!(inference_after(Some(Dur::from_ms(100))), Dur::from_ms(300));
    }

    /// 10.4 ms starting at 1000.7 ms are 11 readings of a clock of milliseconds; starting at 1000.0 ms, 10.
    #[test]
    fn coarse_clocks_show_the_difference_of_their_readings() {
        let law = TcpLp::new(LpConfig { tick: Dur::from_ms(1), ..EXACT });
        let ack = Ack { rtt: Some(Dur::from_ms(100)), ..Ack::in_sequence(MSS) };
        let ticks = |sent_us| {
            let now = Time::ZERO + Dur::from_us(sent_us) + Dur::from_ms(100);
            law.ticks(Dur::from_us(10_400), &ack, now)
        };
        assert_eq!((ticks(1_000_700), ticks(1_000_000)), (11, 10));
    }
}
