//! CDG: backs off with a probability that rises with the gradient of round-trip times, and reacts less to losses
//! without one.
//!
//! Source: Hayes and Armitage, "Revisiting TCP Congestion Control Using Delay Gradients", IFIP Networking 2011;
//! constants and details that the paper leaves open as in Linux (tcp_cdg.c).
//!
//! **Gradients.** Per round, the gradient is the minimum round-trip time minus that of the previous round, and likewise
//! for the maximum. Sums of the last 8 gradients count: that of the minima, or that of the maxima if the first is not
//! positive. A positive sum of x seconds multiplies the window by 0.7071 with probability 1 - exp(-42 x); while only n
//! gradients of 8 are known, their sum counts 8 / n times. The flow then holds for a round trip, whose gradient does
//! not count. Backing off is useless against flows that fill queues: after five times without a falling sum (by 32 us)
//! there are no more until one falls. Otherwise the window is NewReno's.
//!
//! **Losses.** A shadow window remembers what backoffs gave away. It grows with the window and is not cut by a backoff.
//! A loss halves it, and the window falls to it if it exceeds half the window, so that nothing is lost twice. With
//! `use_tolerance`, off as in Linux, a loss without a full queue does not count as congestion. The queue counts as full
//! after the minimum rose and the maximum did not.
//!
//! **Slow start** also ends by HyStart, in Linux's version for CDG: at any window, with trains of 3 ms, and with no
//! limits on the eighth of the minimum round-trip time, except that trains and round-trip times up to 125 us do not
//! count.
//!
//! Where Linux differs from the paper, this law follows Linux: sums instead of averages (42 is 1000 / (3 * 8), with G =
//! 3 ms and 8 gradients), HyStart, the tolerance and the switches, and a shadow window of at most 2 cwnd. Differences
//! from Linux: times are exact, not in whole microseconds. The window falls at once, as the volume in flight drains,
//! not along the acknowledgments (PRR). There is no backoff while a loss or a timeout is repaired. HyStart uses eight
//! samples of a round, not all so far, and its train begins with the acknowledgment that ends a round, not with the
//! next.
//!
//! `like = "linux"` adopts all of this from Linux except the microseconds. The window falls over a round trip, in whole
//! segments, and grows by whole segments. HyStart's delay is the minimum of a round so far, and its train begins one
//! acknowledgment later. Packets sent while the window falls still see the old queue, so that the round after a backoff
//! shows how it drained. If the window falls at once, the round of the backoff has already shown this, and the sums do
//! not fall: backoffs are more frequent, at smaller windows.
//!
//! With `like = "linux"` the handshake's round-trip time is also the first sample. It is shorter than those of full
//! packets. The sum of the minima is therefore positive from the first round on and counts instead of that of the
//! maxima. Slow start, in which only the maxima rise, then almost never ends by a backoff.

mod gradients;
mod reduction;

use super::newreno::NewReno;
use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::hystart::{HYSTART, HyStart, HyStartConfig, Version};
use crate::increase::Increase;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::round::Round;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};
use gradients::{Gradients, Queue};
use reduction::Proportional;
use sparelane_core::Dur;

const WINDOW: Param = Param {
    name: "window",
    kind: Kind::Whole { min: 1, max: 256, unit: Unit::Named("gradients") },
    default: DefaultValue::Whole(8),
    meaning: "number of gradients in a sum",
    source: "Linux; a of the paper",
};

const BACKOFF_BETA: Param = Param {
    name: "backoff_beta",
    kind: Kind::Number { min: 0.01, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(724.0 / 1024.0),
    meaning: "share of the window kept after a backoff",
    source: "Linux: 0.7071 in whole 1024ths; 0.7 in the paper",
};

const BACKOFF_FACTOR: Param = Param {
    name: "backoff_factor",
    kind: Kind::Number { min: 0.0, max: 1_000_000.0, unit: Unit::Named("per second") },
    default: DefaultValue::Number(42.0),
    meaning: "a sum of x seconds triggers a backoff with probability 1 - exp(-factor x)",
    source: "Linux; 1 / (G a) of the paper, with G = 3 ms",
};

const USE_SHADOW: Param = Param {
    name: "use_shadow",
    kind: Kind::Flag,
    default: DefaultValue::Flag(true),
    meaning: "a loss leaves at least half of the shadow window, which backoffs do not reduce",
    source: "Linux; the paper's shadow window",
};

const USE_INEFF: Param = Param {
    name: "use_ineff",
    kind: Kind::Whole { min: 0, max: 1_000_000, unit: Unit::Named("backoffs") },
    default: DefaultValue::Whole(5),
    meaning: "number of backoffs without effect after which there are no more; 0 is no limit",
    source: "Linux; the paper's ineffectual backoffs",
};

const USE_TOLERANCE: Param = Param {
    name: "use_tolerance",
    kind: Kind::Flag,
    default: DefaultValue::Flag(false),
    meaning: "a loss without a full queue does not cut the window",
    source: "Linux; on in the paper",
};

const LIKE: Param = Param {
    name: "like",
    kind: Kind::Choice(&["data", "linux"]),
    default: DefaultValue::Word("data"),
    meaning: "with data, rounds begin with the first data and a backoff takes effect at once; with linux, the \
               handshake's round-trip time counts, too, and the window falls over a round trip in whole segments",
    source: "Linux tcp_cdg.c",
};

const CDG_HYSTART: Param = Param { default: DefaultValue::Flag(true), source: "Linux; not in the paper", ..HYSTART };

/// CDG's constants of HyStart.
const CDG_HYSTART_CONFIG: HyStartConfig = HyStartConfig {
    low_window: 0,
    ack_delta: Dur::from_ms(3),
    divisor: 8,
    least_rise: Dur::ZERO,
    most_rise: Dur::MAX,
    floor: Dur::from_us(125),
    version: Version::Classic,
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "cdg",
    summary: "backs off at random when round-trip times rise",
    source: "Hayes and Armitage, IFIP Networking 2011",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        WINDOW,
        BACKOFF_BETA,
        BACKOFF_FACTOR,
        USE_SHADOW,
        USE_INEFF,
        USE_TOLERANCE,
        CDG_HYSTART,
        LIKE,
    ],
    wire: None,
    make: &|values, plan| {
        let config = CdgConfig {
            window: values.whole(&WINDOW) as usize,
            backoff_beta: values.number(&BACKOFF_BETA),
            backoff_factor: values.number(&BACKOFF_FACTOR),
            use_shadow: values.flag(&USE_SHADOW),
            use_ineff: values.whole(&USE_INEFF),
            use_tolerance: values.flag(&USE_TOLERANCE),
            hystart: values.flag(&CDG_HYSTART),
            like_linux: values.word(&LIKE) == "linux",
        };
        Ok(windowed(Cdg::new(config), values, plan))
    },
};

/// The constants of the law.
#[derive(Clone, Copy, Debug)]
pub struct CdgConfig {
    /// Number of gradients in a sum.
    pub window: usize,
    /// Share of the window kept after a backoff.
    pub backoff_beta: f64,
    /// Factor of a sum of gradients in the exponent, per second.
    pub backoff_factor: f64,
    /// True if a loss leaves at least half of the shadow window, which backoffs do not reduce.
    pub use_shadow: bool,
    /// Number of backoffs without effect after which there are no more, or 0.
    pub use_ineff: u64,
    /// True if a loss without a full queue does not cut the window.
    pub use_tolerance: bool,
    /// True if HyStart may end slow start.
    pub hystart: bool,
    /// True for Linux's rules: the handshake's round-trip time counts, windows are whole segments, and a fall takes a
    /// round trip.
    pub like_linux: bool,
}

/// A reduction of the window in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduction {
    None,
    /// A mark was handled; its round trip begins with the next acknowledgment.
    Begun,
    /// A round trip without growth.
    RoundTrip,
    /// Fast recovery.
    Recovery,
}

/// The CDG window law.
#[derive(Clone, Debug)]
pub struct Cdg {
    config: CdgConfig,
    hystart: Option<HyStart>,
    newreno: NewReno,
    /// Growth in whole segments, if the law is Linux's.
    increase: Increase,
    round: Round,
    gradients: Gradients,
    reduction: Reduction,
    /// The fall of the window in the round trip of a backoff, if the law is Linux's.
    falling: Option<Proportional>,
    backoffs: u64,
    shadow_bytes: u64,
}

impl Cdg {
    /// Creates a law with these constants.
    pub fn new(config: CdgConfig) -> Cdg {
        let version = if config.like_linux { Version::Cdg } else { Version::Classic };
        let hystart = HyStartConfig { version, ..CDG_HYSTART_CONFIG };
        Cdg {
            config,
            hystart: config.hystart.then(|| HyStart::new(hystart)),
            newreno: NewReno::default(),
            increase: Increase::default(),
            round: Round::default(),
            gradients: Gradients::over(config.window),
            reduction: Reduction::None,
            falling: None,
            backoffs: 0,
            shadow_bytes: 0,
        }
    }

    /// Returns true if a sum of gradients triggers a backoff.
    fn backs_off(&mut self, sum_ps: i64, cx: &mut Cx<'_>) -> bool {
        let x = Dur::from_ps(sum_ps.unsigned_abs()).as_secs_f64() * self.config.backoff_factor;
        if sum_ps <= 0 || cx.rng.unit() < libm::exp(-x) {
            return false;
        }
        self.backoffs += 1;
        self.config.use_ineff == 0 || self.backoffs <= self.config.use_ineff
    }

    fn back_off(&mut self, window: &mut Window, ack: &Ack, mss_bytes: u64) {
        self.shadow_bytes = self.shadow_bytes.max(window.cwnd);
        if self.config.like_linux {
            let before = window.cwnd / mss_bytes;
            let left = ((before as f64 * self.config.backoff_beta) as u64).max(2);
            window.ssthresh = left * mss_bytes;
            self.increase.forget();
            self.falling = Some(Proportional::new(before, left, ack, mss_bytes));
        } else {
            let left = (window.cwnd as f64 * self.config.backoff_beta) as u64;
            window.ssthresh = left.max(2 * mss_bytes);
            window.cwnd = window.cwnd.min(window.ssthresh);
        }
        self.reduction = Reduction::RoundTrip;
        self.round.restart(ack);
    }

    /// Continues a reduction of the window. Its round has no gradient.
    fn reduce(&mut self, window: &mut Window, ack: &Ack, mss_bytes: u64) {
        // Fast recovery takes over: the fall of a backoff ends at its target.
        if ack.phase == Phase::Recovery {
            self.reduction = Reduction::Recovery;
            self.end_fall(window);
            return;
        }
        match self.reduction {
            Reduction::Begun => {
                self.reduction = Reduction::RoundTrip;
                self.round.restart(ack);
                return;
            }
            Reduction::RoundTrip if !self.round.is_over(ack) => {
                if let Some(falling) = &mut self.falling {
                    window.cwnd = falling.window(ack, mss_bytes).max(1) * mss_bytes;
                }
                return;
            }
            _ => {}
        }
        self.end_fall(window);
        self.reduction = Reduction::None;
        self.round.restart(ack);
        self.gradients.skip_round();
    }

    /// Ends the fall of the window at its target.
    fn end_fall(&mut self, window: &mut Window) {
        if self.falling.take().is_some() {
            window.cwnd = window.ssthresh;
        }
    }

    /// Ends a round. Returns true if the flow backs off.
    fn ends_round(&mut self, ack: &Ack, cx: &mut Cx<'_>) -> bool {
        let Some(sum) = self.gradients.end_round() else { return false };
        if self.gradients.is_falling() {
            self.backoffs = 0;
        }
        ack.phase == Phase::Open && self.backs_off(sum, cx)
    }
}

impl WindowLaw for Cdg {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        // The first acknowledgment initializes the shadow window and, as in Linux, the gradients.
        if self.shadow_bytes == 0 {
            self.shadow_bytes = window.cwnd;
            if let Some(handshake) = cx.min_rtt.filter(|_| self.config.like_linux) {
                self.gradients.begin(handshake);
            }
        }
        self.gradients.sample(ack, cx.mss_bytes);
        if self.reduction != Reduction::None || ack.phase == Phase::Recovery {
            // A window that is not full neither grows nor justifies a larger shadow.
            self.reduce(window, ack, cx.mss_bytes);
            return;
        }
        if let Some(hystart) = &mut self.hystart {
            if !ack.cwnd_limited {
                hystart.break_train(cx.now);
            }
            hystart.observe(window, ack, self.gradients.least_rtt(), cx);
        }
        if self.round.is_over(ack) && self.ends_round(ack, cx) {
            self.back_off(window, ack, cx.mss_bytes);
        } else if !ack.cwnd_limited {
            self.shadow_bytes = self.shadow_bytes.min(window.cwnd);
        }
    }

    fn slow_start(&mut self, window: &mut Window, _ack: &Ack, counted_bytes: u64, _cx: &mut Cx<'_>) {
        if self.reduction == Reduction::None {
            let before = window.cwnd;
            window.cwnd = (window.cwnd + counted_bytes).min(window.ssthresh);
            self.shadow_bytes += window.cwnd - before;
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if self.reduction == Reduction::None {
            let before = window.cwnd;
            if self.config.like_linux {
                self.increase.grow(window, ack.acked_bytes, before, u64::MAX, cx.mss_bytes);
            } else {
                self.newreno.grow(window, ack, cx);
            }
            self.shadow_bytes += window.cwnd - before;
        }
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, event: Congestion, _cx: &mut Cx<'_>) -> u64 {
        if let (Some(hystart), Congestion::Timeout { .. }) = (&mut self.hystart, event) {
            hystart.restart();
        }
        if matches!(self.reduction, Reduction::Begun | Reduction::RoundTrip) {
            // The reduction in progress already reacts to this congestion.
            return window.ssthresh;
        }
        self.increase.forget();
        if let Congestion::Marked { .. } = event {
            self.reduction = Reduction::Begun;
        }
        if self.config.use_tolerance && self.gradients.queue() == Queue::NotFull {
            return window.cwnd;
        }
        self.shadow_bytes = (self.shadow_bytes / 2).min(window.cwnd);
        let half = window.cwnd / 2;
        if self.config.use_shadow { half.max(self.shadow_bytes) } else { half }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("shadow_bytes", self.shadow_bytes as f64);
        self.gradients.trace(put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{CongestionControl, traced};
    use crate::param::UNBOUNDED;
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1000;
    const LOSS: Congestion = Congestion::Loss { flight_bytes: 0 };
    const LINUX: CdgConfig = CdgConfig {
        window: 8,
        backoff_beta: 724.0 / 1024.0,
        backoff_factor: 42.0,
        use_shadow: true,
        use_ineff: 5,
        use_tolerance: false,
        hystart: true,
        like_linux: false,
    };
    /// A configuration that backs off at every rising sum.
    const SURE: CdgConfig = CdgConfig { backoff_factor: 1e6, ..LINUX };

    /// A flow of 100 segments beyond slow start, in rounds of three acknowledgments. They change only a window that is
    /// the limit.
    struct Flow {
        controller: Windowed<Cdg>,
        rng: Stream,
        cwnd_limited: bool,
        handshake: Option<Dur>,
    }

    impl Flow {
        fn new(config: CdgConfig, seed: u64) -> Flow {
            let mut flow = Flow::silent(config, seed);
            flow.acknowledges(100_000);
            flow
        }

        /// Returns a flow before its first acknowledgment.
        fn silent(config: CdgConfig, seed: u64) -> Flow {
            let window = WindowConfig {
                initial_window: 100,
                initial_ssthresh: 2,
                slow_start_limit: 1,
                growth_limit: UNBOUNDED,
                ..WindowConfig::default()
            };
            let rng = Stream::new(seed, Domain::Test, 0);
            let controller = Windowed::new(Cdg::new(config), window, MSS);
            Flow { controller, rng, cwnd_limited: false, handshake: None }
        }

        fn acknowledges(&mut self, rtt_us: u64) {
            let rtt = Some(Dur::from_us(rtt_us));
            let ack = Ack { rtt, cwnd_limited: self.cwnd_limited, in_flight_bytes: 2 * MSS, ..Ack::in_sequence(MSS) };
            let (min_rtt, rng) = (self.handshake, &mut self.rng);
            let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt, rng };
            self.controller.on_ack(&ack, &mut cx);
        }

        /// Returns the window in bytes after a round with these extremes.
        fn after_round(&mut self, least_us: u64, largest_us: u64) -> u64 {
            [least_us, largest_us, largest_us].into_iter().for_each(|rtt_us| self.acknowledges(rtt_us));
            self.window()
        }

        fn congest(&mut self, event: Congestion) -> u64 {
            let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
            self.controller.on_congestion(event, &mut cx);
            self.window()
        }

        fn window(&self) -> u64 {
            self.controller.limits().cwnd_bytes
        }

        fn ssthresh(&self) -> u64 {
            traced(&self.controller, "ssthresh_bytes") as u64
        }
    }

    /// A rise of 1 ms, times 8 as the only gradient: 1 - exp(-42 * 0.008) = 0.2854.
    #[test]
    fn a_rising_delay_backs_off_with_the_probability_of_its_exponential() {
        let flows = 10_000;
        let backs_off = |seed: &u64| {
            let mut flow = Flow::new(LINUX, *seed);
            let window = flow.after_round(101_000, 101_000);
            assert!([100_000, 70_703].contains(&window), "{window}");
            window == 70_703
        };
        let share = (0..flows).filter(backs_off).count() as f64 / flows as f64;
        assert!((share - 0.2854).abs() < 0.015, "{share}");
    }

    /// The handshake took 99 ms, and round trips of data range from 100 ms upwards. The millisecond of the minima
    /// counts, once.
    #[test]
    fn a_short_handshake_makes_the_least_round_trip_times_count() {
        let after_slow_start = |like_linux: bool| {
            let config = CdgConfig { backoff_factor: 42.0, like_linux, ..LINUX };
            let backoffs = |seed: &u64| {
                let mut flow = Flow::silent(config, *seed);
                flow.handshake = Some(Dur::from_ms(99));
                flow.acknowledges(100_000);
                flow.after_round(100_000, 120_000);
                // Of 100 segments.
                flow.ssthresh() / MSS == 70
            };
            (0..1000).filter(backoffs).count()
        };
        // 1 - exp(-42 * 8 * 0.001) = 0.285 of 1000, and 1 - exp(-42 * 8 * 0.020) = 0.999.
        assert!((235..335).contains(&after_slow_start(true)), "{}", after_slow_start(true));
        assert!(after_slow_start(false) > 990);
    }

    /// The windows of Linux 6.12 if every rise in delay triggers a backoff: 16 segments fall to 11 (`16 * 724 >> 10`)
    /// while those in flight arrive, grow to 12 with the eleventh of a round, and fall to 8.
    #[test]
    fn like_linux_a_backoff_takes_a_round_trip_and_leaves_whole_segments() {
        let config = WindowConfig {
            initial_window: 15,
            initial_ssthresh: 2,
            slow_start_limit: 1,
            growth_limit: UNBOUNDED,
            ..WindowConfig::default()
        };
        let mut controller = Windowed::new(Cdg::new(CdgConfig { like_linux: true, ..SURE }), config, MSS);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let (mut flight, mut windows) = (15, Vec::new());
        for arrival in 0..55 {
            let rtt = Some(Dur::from_us(100_000 + 1000 * arrival));
            let ack = Ack { rtt, in_flight_bytes: (flight - 1) * MSS, ..Ack::in_sequence(MSS) };
            let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: rtt, rng: &mut rng };
            controller.on_ack(&ack, &mut cx);
            let window = controller.limits().cwnd_bytes / MSS;
            flight = window.max(flight - 1);
            windows.push(window);
        }
        let until = |window: u64, from: usize, to: usize| windows[from..=to].iter().all(|&other| other == window);
        assert!(until(15, 0, 13) && until(16, 14, 15), "the first round has 15 segments: {windows:?}");
        assert_eq!(windows[16..27], [15, 15, 15, 14, 14, 14, 13, 13, 13, 12, 11], "{windows:?}");
        assert!(until(11, 27, 40) && until(12, 41, 42), "the 11th window of the reduction ends it: {windows:?}");
        assert_eq!(windows[54], 8, "{windows:?}");
    }

    /// The round after a backoff is compared with that of the backoff, not with the one before.
    #[test]
    fn a_backoff_takes_a_round_trip_without_gradient() {
        let mut flow = Flow::new(SURE, 1);
        flow.after_round(100_000, 100_000);
        assert_eq!(flow.after_round(101_000, 101_000), 70_703);
        assert_eq!(flow.after_round(150_000, 150_000), 70_703, "the round of the backoff");
        assert_eq!(flow.after_round(148_000, 148_000), 70_703, "gradients of 1 ms and -2 ms");
        assert_eq!(flow.after_round(149_500, 149_500), 49_989, "a gradient of 0.5 ms: 70,703 * 724 / 1024");
    }

    #[test]
    fn after_five_backoffs_without_effect_there_are_no_more_until_delays_fall() {
        let mut flow = Flow::new(SURE, 1);
        let mut rtt_us = 100_000_i64;
        let mut backoffs_in = |flow: &mut Flow, rounds: u32, rise_us: i64| {
            let mut window = flow.window();
            let mut backoffs = 0;
            for _ in 0..rounds {
                rtt_us += rise_us;
                let now = flow.after_round(rtt_us.unsigned_abs(), rtt_us.unsigned_abs());
                backoffs += u32::from(now < window);
                window = now;
            }
            backoffs
        };
        assert_eq!(backoffs_in(&mut flow, 40, 1000), 5);
        assert_eq!(backoffs_in(&mut flow, 10, -1000), 0);
        assert_eq!(backoffs_in(&mut flow, 40, 1000), 5);
    }

    /// A window of 100 segments backs off to 70.71: half of the shadow window is 50 segments and half of the window is
    /// 35.355, plus some growth.
    #[test]
    fn a_loss_after_a_backoff_leaves_half_of_the_window_before_both() {
        let backed_off = |use_shadow| {
            let mut flow = Flow::new(CdgConfig { use_shadow, ..SURE }, 1);
            flow.cwnd_limited = true;
            flow.after_round(100_000, 100_000);
            assert_eq!(flow.after_round(101_000, 101_000) / 100, 707);
            flow
        };
        let in_the_round_of_the_backoff = backed_off(true).congest(LOSS);
        assert_eq!(in_the_round_of_the_backoff / 100, 707);
        let a_round_later = |use_shadow| {
            let mut flow = backed_off(use_shadow);
            flow.after_round(101_000, 101_000);
            flow.congest(LOSS) / 100
        };
        assert_eq!((a_round_later(true), a_round_later(false)), (500, 353));
    }

    /// A queue is full when the minimum round-trip time rises and the maximum no longer can.
    #[test]
    fn with_tolerance_a_loss_counts_unless_delays_say_that_the_queue_is_not_full() {
        let after_loss = |use_tolerance, largest_us| {
            let mut flow = Flow::new(CdgConfig { window: 1, use_tolerance, backoff_factor: 0.0, ..LINUX }, 1);
            flow.after_round(100_000, 110_000);
            flow.after_round(101_000, largest_us);
            flow.congest(LOSS)
        };
        assert_eq!((after_loss(true, 110_031), after_loss(true, 110_032)), (50_000, 100_000));
        assert_eq!(after_loss(false, 110_032), 50_000);
    }

    /// At an acknowledgment per 10 us, half of 1 ms is a train of 50; half of 100 us would be 5, but 125 us are 13.
    #[test]
    fn slow_start_ends_by_a_train_of_half_a_round_trip_or_125_microseconds() {
        let ends_at = |rtt_us| {
            let config = WindowConfig {
                initial_window: 2,
                initial_ssthresh: UNBOUNDED,
                slow_start_limit: 1,
                growth_limit: UNBOUNDED,
                ..WindowConfig::default()
            };
            let mut controller = Windowed::new(Cdg::new(LINUX), config, MSS);
            let mut rng = Stream::new(1, Domain::Test, 0);
            for step in 0..200 {
                let now = Time::ZERO + Dur::from_us(10 * step);
                let mut cx = Cx { now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
                let rtt = Some(Dur::from_us(rtt_us));
                controller.on_ack(&Ack { rtt, in_flight_bytes: 999 * MSS, ..Ack::in_sequence(MSS) }, &mut cx);
            }
            // Two segments, one for the acknowledgment at the start, and one for each of the train except the last.
            traced(&controller, "ssthresh_bytes") as u64 / MSS - 2
        };
        assert_eq!((ends_at(1000), ends_at(100)), (50, 13));
    }
}
