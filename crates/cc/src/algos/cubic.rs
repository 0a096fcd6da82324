//! CUBIC: the window is a cubic function of the time since the last cut, independent of the round-trip time.
//!
//! Source: RFC 9438. Inside the law windows are in segments, as in the RFC. Cube roots come from `libm`, not from the
//! platform, so that results are reproducible on any machine. HyStart++ is an option of slow start (`slow_start`).
//!
//! Settings for other versions:
//!
//! - Linux 2.6.32 (tcp_cubic.c 2.3): `initial_window = 3` (2 for segments beyond 1460 bytes), `hystart = true`,
//!   `hystart_divisor = 16`, `hystart_least_rise = "2ms"`. Slow start counts acknowledgments, which is the default
//!   `slow_start_limit = 1`. Later Linux multiplies by the average number of segments per acknowledgment, which amounts
//!   to counting bytes: leave `growth_limit` unbounded.
//! - Red Hat's 2.6.32 has later changes: `hystart_least_rise = "4ms"` and `growth_before_loss = 0.05`, as Linux has
//!   since 2.6.39.
//! - `reno_estimate = "linux"` replaces eq. (4) by Linux's estimate. It counts acknowledgments and keeps the slope 3 (1
//!   - beta) / (1 + beta) beyond the window before the cut.
//! - Linux 6.12: `like = "linux"`, with its HyStart unless `hystart = false` (`cubic/linux.rs`). It has its own
//!   constants in place of the parameters from `c` to `reno_estimate`.
//!
//! Remaining differences of Linux 2.6.32 from RFC 9438 and from this law: the window reaches Reno's estimate within a
//! round trip, not at once. The cubic looks ahead by the minimum round-trip time instead of the smoothed one, without
//! the bound of 1.5 cwnd, and at most 32 times per second. Below the window, the cubic lets it grow by a hundredth of a
//! segment per round trip. Pauses of the application count as time. beta is 717/1024 and C is 410/1024; windows are
//! whole segments and time is in ticks.

mod linux;

use crate::contract::{Ack, Congestion, Cx};
use crate::hystart::{HYSTART, HYSTART_DIVISOR, HYSTART_LEAST_RISE, HyStart, HyStartConfig};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};
use crate::wire::{WireDefaults, WireValue};
use linux::LinuxCubic;
use sparelane_core::{Dur, Time};

const C: Param = Param {
    name: "c",
    kind: Kind::Number { min: 0.001, max: 1000.0, unit: Unit::One },
    default: DefaultValue::Number(0.4),
    meaning: "aggressiveness, segments per second cubed",
    source: "RFC 9438 section 5",
};

const BETA: Param = Param {
    name: "beta",
    kind: Kind::Number { min: 0.1, max: 0.95, unit: Unit::One },
    default: DefaultValue::Number(0.7),
    meaning: "share of the window kept after a loss",
    source: "RFC 9438 section 4.6",
};

const BETA_ECN: Param = Param {
    name: "beta_ecn",
    kind: Kind::Number { min: 0.1, max: 0.95, unit: Unit::One },
    default: DefaultValue::Number(0.7),
    meaning: "share of the window kept after an ECN mark, by default as beta; 0.85 with Alternative Backoff (ABE)",
    source: "RFC 8511 section 3",
};

const FAST_CONVERGENCE: Param = Param {
    name: "fast_convergence",
    kind: Kind::Flag,
    default: DefaultValue::Flag(true),
    meaning: "release bandwidth faster when the saturation point falls",
    source: "RFC 9438 section 4.7",
};

const GROWTH_BEFORE_LOSS: Param = Param {
    name: "growth_before_loss",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.0),
    meaning: "minimum growth per round trip, as a share of the window, before the first loss and after timeouts",
    source: "none in RFC 9438; 0.05 in Linux since 2.6.39",
};

const RENO_ESTIMATE: Param = Param {
    name: "reno_estimate",
    kind: Kind::Choice(&["rfc", "linux"]),
    default: DefaultValue::Word("rfc"),
    meaning: "whether the estimate of Reno's window counts segments (rfc) or acknowledgments (linux)",
    source: "RFC 9438 section 4.3; Linux",
};

const LIKE: Param = Param {
    name: "like",
    kind: Kind::Choice(&["rfc", "linux"]),
    default: DefaultValue::Word("rfc"),
    meaning: "rfc is the law of RFC 9438 with the other parameters; linux is that of Linux 6.12 with its HyStart",
    source: "RFC 9438; Linux tcp_cubic.c",
};

/// Like Linux, ends slow start with HyStart.
const WIRE: WireDefaults =
    WireDefaults { values: &[WireValue::new(HYSTART.name, DefaultValue::Flag(true))], ..WireDefaults::NONE };

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "cubic",
    summary: "a cubic of the time since the last loss",
    source: "RFC 9438",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        SLOW_START,
        WINDOW_VALIDATION,
        C,
        BETA,
        BETA_ECN,
        FAST_CONVERGENCE,
        GROWTH_BEFORE_LOSS,
        RENO_ESTIMATE,
        HYSTART,
        HYSTART_DIVISOR,
        HYSTART_LEAST_RISE,
        LIKE,
    ],
    wire: Some(WIRE),
    make: &|values, plan| {
        if values.word(&LIKE) == "linux" {
            let has_hystart = values.given(HYSTART.name).is_none() || values.flag(&HYSTART);
            let law = LinuxCubic::new(has_hystart.then(|| HyStartConfig::of_linux_6_12(values)));
            return Ok(windowed(law, values, plan));
        }
        let config = CubicConfig {
            c: values.number(&C),
            beta: values.number(&BETA),
            beta_ecn: values.number(if values.given(BETA_ECN.name).is_some() { &BETA_ECN } else { &BETA }),
            fast_convergence: values.flag(&FAST_CONVERGENCE),
            growth_before_loss: values.number(&GROWTH_BEFORE_LOSS),
            counts_acks: values.word(&RENO_ESTIMATE) == "linux",
            hystart: HyStartConfig::of(values),
        };
        Ok(windowed(Cubic::new(config), values, plan))
    },
};

/// The constants of the law.
#[derive(Clone, Copy, Debug)]
pub struct CubicConfig {
    /// C of eq. (1), segments per second cubed.
    pub c: f64,
    /// Multiplicative decrease factor.
    pub beta: f64,
    /// Multiplicative decrease factor after ECN marks (RFC 8511).
    pub beta_ecn: f64,
    /// Release bandwidth faster when the saturation point falls (section 4.7).
    pub fast_convergence: bool,
    /// Minimum growth per round trip while no saturation point is known, as a share of the window.
    pub growth_before_loss: f64,
    /// True if the estimate of Reno's window counts acknowledgments, as in Linux.
    pub counts_acks: bool,
    /// HyStart, if it ends slow start.
    pub hystart: Option<HyStartConfig>,
}

#[cfg(test)]
impl CubicConfig {
    /// The constants of RFC 9438.
    pub(crate) const RFC_9438: CubicConfig = CubicConfig {
        c: 0.4,
        beta: 0.7,
        beta_ecn: 0.7,
        fast_convergence: true,
        growth_before_loss: 0.0,
        counts_acks: false,
        hystart: None,
    };
}

/// The state since the last cut.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Seconds until the cubic reaches `w_max` (eq. 2).
    k: f64,
    /// The plateau of the cubic, segments.
    w_max: f64,
    /// The window that Reno would have, segments (eq. 4).
    w_est: f64,
    /// The time of the last growth.
    grown: Time,
    /// Growth of less than a byte, carried over to the next acknowledgment.
    fraction: f64,
}

/// The CUBIC window law.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: CubicConfig,
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    before_cut: Option<(f64, f64, Option<Epoch>)>,
    hystart: Option<Box<HyStart>>,
}

impl Cubic {
    /// Creates a law with these constants.
    pub fn new(config: CubicConfig) -> Cubic {
        let hystart = config.hystart.map(|hystart| Box::new(HyStart::new(hystart)));
        Cubic { config, w_max: 0.0, cwnd_prior: 0.0, epoch: None, before_cut: None, hystart }
    }

    fn start_epoch(&self, cwnd: f64, now: Time) -> Epoch {
        // Without an earlier cut (ssthresh given), or after a timeout, the epoch starts at its own plateau.
        let w_max = self.w_max.max(cwnd);
        let k = libm::cbrt((w_max - cwnd) / self.config.c);
        Epoch { start: now, k, w_max, w_est: cwnd, grown: now, fraction: 0.0 }
    }
}

impl WindowLaw for Cubic {
    #[inline]
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if let Some(hystart) = &mut self.hystart {
            hystart.observe(window, ack, ack.rtt, cx);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let CubicConfig { c, beta, counts_acks, .. } = self.config;
        let mss = cx.mss_bytes as f64;
        let cwnd = window.cwnd as f64 / mss;
        let acked = ack.acked_bytes as f64 / mss;
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.start_epoch(cwnd, cx.now),
        };
        // Section 5.8: time during which the application, rather than the window, was the limit does not count.
        let pause = (cx.now - epoch.grown).saturating_sub(cx.srtt.unwrap_or(Dur::MAX));
        epoch.start += pause;
        epoch.grown = cx.now;
        let Epoch { k, w_max, .. } = epoch;
        let cubic = |t: f64| {
            let offset = t - k;
            c * offset * offset * offset + w_max
        };
        let t = (cx.now - epoch.start).as_secs_f64();
        let rtt = cx.srtt.unwrap_or_default().as_secs_f64();

        // Section 4.3: beyond the window before the cut, the estimate grows at Reno's slope.
        let is_as_reno = epoch.w_est >= self.cwnd_prior && !counts_acks;
        let alpha = if is_as_reno { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        let counted = if counts_acks { acked.min(1.0) } else { acked };
        epoch.w_est += alpha * counted / cwnd;

        // In the Reno-friendly region the window is the estimate; elsewhere it follows the cubic.
        let mut growth = if cubic(t) < epoch.w_est {
            (epoch.w_est - cwnd).max(0.0)
        } else {
            // Sections 4.4 and 4.5: aim at the cubic's value one round-trip time ahead.
            let target = cubic(t + rtt).clamp(cwnd, 1.5 * cwnd);
            (target - cwnd) / cwnd * acked
        };
        if self.config.growth_before_loss > 0.0 && self.w_max == 0.0 {
            growth = growth.max(self.config.growth_before_loss * acked);
        }
        // At a large window an acknowledgment adds less than a byte.
        let bytes = growth * mss + epoch.fraction;
        window.cwnd += bytes as u64;
        epoch.fraction = bytes.fract();
        self.epoch = Some(epoch);
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        let cwnd = window.cwnd as f64 / cx.mss_bytes as f64;
        self.before_cut = Some((self.w_max, self.cwnd_prior, self.epoch));
        let falling = self.config.fast_convergence && cwnd < self.w_max;
        self.w_max = match event {
            // Section 4.8: the next epoch starts at its own plateau.
            Congestion::Timeout { .. } => 0.0,
            _ if falling => cwnd * (1.0 + self.config.beta) / 2.0,
            _ => cwnd,
        };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        if let (Some(hystart), Congestion::Timeout { .. }) = (&mut self.hystart, event) {
            hystart.restart();
        }
        let kept = match event {
            Congestion::Marked { by_ecn: true, .. } => self.config.beta_ecn,
            _ => self.config.beta,
        };
        (window.cwnd as f64 * kept) as u64
    }

    fn undo(&mut self) {
        if let Some((w_max, cwnd_prior, epoch)) = self.before_cut.take() {
            (self.w_max, self.cwnd_prior, self.epoch) = (w_max, cwnd_prior, epoch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::{Value, Values};
    use crate::registry::{Blueprint, build};
    use sparelane_core::{Domain, Dur, Stream};

    const MSS: u64 = 1000;
    const CONFIG: CubicConfig = CubicConfig::RFC_9438;

    fn at(now: Time, rng: &mut Stream) -> Cx<'_> {
        let rtt = Some(Dur::from_ms(100));
        Cx { now, mss_bytes: MSS, srtt: rtt, min_rtt: rtt, rng }
    }

    fn one_segment() -> Ack {
        Ack::in_sequence(MSS)
    }

    /// Returns a description of the controller built from `settings`.
    fn built(settings: &[(&'static str, Value)]) -> String {
        let mut values = Values::default();
        settings.iter().for_each(|(name, value)| values.set(name, value.clone()));
        let inner = Values::default();
        format!("{:?}", build("cubic", &values, &Blueprint::of_any(MSS, &inner)).expect("allowed"))
    }

    #[test]
    fn cubic_like_linux_has_hystart_unless_a_scenario_disables_it() {
        let like = ("like", Value::Word("linux".to_owned()));
        let has_hystart = |settings: &[_]| built(settings).contains("hystart: Some");
        assert!(has_hystart(std::slice::from_ref(&like)));
        assert!(has_hystart(&[like.clone(), ("hystart", Value::Flag(true))]));
        assert!(!has_hystart(&[like, ("hystart", Value::Flag(false))]));
        assert!(!has_hystart(&[]));
    }

    #[test]
    fn renos_estimate_counts_acknowledgments_only_with_the_linux_option() {
        let counts = |word: &str| built(&[("reno_estimate", Value::Word(word.to_owned()))]);
        assert!(counts("linux").contains("counts_acks: true"));
        assert!(counts("rfc").contains("counts_acks: false"));
    }

    /// RFC 8511 section 3: marks cut by their own factor, by default that of losses.
    #[test]
    fn a_mark_cuts_by_its_own_factor() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let marked = Congestion::Marked { flight_bytes: 0, by_ecn: true };
        let refused = Congestion::Marked { flight_bytes: 0, by_ecn: false };
        let loss = Congestion::Loss { flight_bytes: 0 };
        let mut kept = |event| {
            let window = Window { cwnd: 1000 * MSS, ssthresh: 0 };
            let mut law = Cubic::new(CubicConfig { beta_ecn: 0.85, ..CONFIG });
            law.cut(&window, 0, event, &mut at(Time::ZERO, &mut rng)) / MSS
        };
        assert_eq!([marked, refused, loss].map(&mut kept), [850, 700, 700]);
        assert!(built(&[("beta", Value::Number(0.5))]).contains("beta_ecn: 0.5"));
        assert!(built(&[("beta", Value::Number(0.5)), ("beta_ecn", Value::Number(0.7))]).contains("beta_ecn: 0.7"));
    }

    /// Eq. (2): from 700 of 1000 segments the plateau is K = cbrt(300 / 0.4) = 9.0856 s away.
    #[test]
    fn the_window_returns_to_its_maximum_after_k_seconds() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut law = Cubic::new(CONFIG);
        let mut window = Window { cwnd: 1000 * MSS, ssthresh: 0 };
        let cut = law.cut(&window, 0, Congestion::Loss { flight_bytes: 0 }, &mut at(Time::ZERO, &mut rng));
        assert_eq!(cut, 700 * MSS);
        window.cwnd = cut;
        let mut now = Time::ZERO;
        while now < Time::ZERO + Dur::from_ms(9_086) {
            law.grow(&mut window, &one_segment(), &mut at(now, &mut rng));
            now += Dur::from_us(100);
        }
        let segments = window.cwnd as f64 / MSS as f64;
        assert!((segments - 1000.0).abs() < 2.0, "{segments} segments after K seconds");
    }

    #[test]
    fn a_falling_saturation_point_releases_bandwidth_faster() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut law = Cubic::new(CONFIG);
        let loss = Congestion::Loss { flight_bytes: 0 };
        law.cut(&Window { cwnd: 1000 * MSS, ssthresh: 0 }, 0, loss, &mut at(Time::ZERO, &mut rng));
        law.cut(&Window { cwnd: 800 * MSS, ssthresh: 0 }, 0, loss, &mut at(Time::ZERO, &mut rng));
        assert!((law.w_max - 800.0 * 0.85).abs() < 1e-9);
        law.undo();
        assert!((law.w_max - 1000.0).abs() < 1e-9);
    }

    /// Eq. (1) at the plateau of 100,000 segments, where an acknowledgment adds a hundredth of a byte.
    #[test]
    fn a_large_window_follows_the_cubic() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut law = Cubic::new(CONFIG);
        let start = 100_000;
        let mut window = Window { cwnd: start * MSS, ssthresh: 0 };
        let mut now = Time::ZERO;
        let rounds = 60;
        for _ in 0..rounds {
            // One round of 100 ms, in acknowledgments of ten segments each.
            for _ in 0..window.cwnd / MSS / 10 {
                law.grow(&mut window, &Ack { acked_bytes: 10 * MSS, ..one_segment() }, &mut at(now, &mut rng));
                now += Dur::from_ps(Dur::from_ms(100).as_ps() * 10 * MSS / window.cwnd);
            }
        }
        let grown = window.cwnd as f64 / MSS as f64 - start as f64;
        let t = 0.1 * f64::from(rounds);
        let cubic = 0.4 * t * t * t;
        assert!((grown - cubic).abs() < 0.05 * cubic, "{grown} segments, and the cubic {cubic}");
    }

    /// Section 4.8: after a timeout the first epoch has K = 0.
    #[test]
    fn after_a_timeout_the_window_does_not_aim_at_the_old_maximum() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let timeout = Congestion::Timeout { flight_bytes: 0, first: true };
        let mut law = Cubic::new(CONFIG);
        let mut window = Window { cwnd: 1000 * MSS, ssthresh: 0 };
        window.cwnd = law.cut(&window, 0, timeout, &mut at(Time::ZERO, &mut rng));
        assert_eq!(window.cwnd, 700 * MSS);
        law.grow(&mut window, &one_segment(), &mut at(Time::ZERO, &mut rng));
        let epoch = law.epoch.expect("an epoch");
        assert_eq!((epoch.k, epoch.w_max), (0.0, 700.0));
    }

    /// Section 5.8.
    #[test]
    fn a_pause_does_not_count_as_time_since_the_cut() {
        let grown_after = |pause: Dur| {
            let mut rng = Stream::new(1, Domain::Test, 0);
            let mut law = Cubic::new(CONFIG);
            let mut window = Window { cwnd: 100 * MSS, ssthresh: 0 };
            law.grow(&mut window, &one_segment(), &mut at(Time::ZERO, &mut rng));
            for _ in 0..100 {
                law.grow(&mut window, &one_segment(), &mut at(Time::ZERO + pause, &mut rng));
            }
            window.cwnd
        };
        assert_eq!(grown_after(Dur::from_secs(100)), grown_after(Dur::from_ms(100)));
    }

    /// Eq. (4) at a window of 20 segments, where the cubic hardly moves within the round trip of 100 ms: ten
    /// acknowledgments of two segments each.
    #[test]
    fn reno_is_estimated_by_segments_or_by_acknowledgments() {
        let grown = |counts_acks| {
            let mut rng = Stream::new(1, Domain::Test, 0);
            let mut law = Cubic::new(CubicConfig { counts_acks, ..CONFIG });
            law.cwnd_prior = 1000.0;
            let mut window = Window { cwnd: 20 * MSS, ssthresh: 0 };
            for _ in 0..10 {
                let ack = Ack { acked_bytes: 2 * MSS, ..one_segment() };
                law.grow(&mut window, &ack, &mut at(Time::ZERO, &mut rng));
            }
            window.cwnd as f64 / MSS as f64 - 20.0
        };
        let alpha = 3.0 * 0.3 / 1.7;
        assert!((grown(false) - alpha).abs() < 0.02, "{} segments", grown(false));
        assert!((grown(true) - alpha / 2.0).abs() < 0.01, "{} segments", grown(true));
    }

    /// After a slow start that ended at 1000 segments, growth is 5 % of the acknowledged volume. After a loss the cubic
    /// takes over: 0.1 s after the cut to 700 segments it aims, another 0.1 s ahead, at 1000 - 0.4 (9.0856 - 0.2)^3 =
    /// 719.4. A round of acknowledgments closes 1 - 1/e of that gap.
    #[test]
    fn before_the_first_loss_the_window_grows_by_a_twentieth_a_round_trip() {
        let mut law = Cubic::new(CubicConfig { growth_before_loss: 0.05, ..CONFIG });
        let after_round = |law: &mut Cubic, segments: u64| {
            let mut rng = Stream::new(1, Domain::Test, 0);
            let mut window = Window { cwnd: segments * MSS, ssthresh: 0 };
            law.grow(&mut window.clone(), &one_segment(), &mut at(Time::ZERO, &mut rng));
            for _ in 0..segments {
                law.grow(&mut window, &one_segment(), &mut at(Time::ZERO + Dur::from_ms(100), &mut rng));
            }
            window.cwnd / MSS
        };
        assert_eq!(after_round(&mut law, 1000), 1050);
        let loss = Congestion::Loss { flight_bytes: 0 };
        let mut rng = Stream::new(1, Domain::Test, 0);
        law.cut(&Window { cwnd: 1000 * MSS, ssthresh: 0 }, 0, loss, &mut at(Time::ZERO, &mut rng));
        assert_eq!(after_round(&mut law, 700), 712);
    }

    /// Acknowledgments are 1 ms apart, in rounds of 100, with round-trip times of 100 ms: 50 after the first of a round
    /// form a train of half a round trip. After a timeout the first round begins below 16 segments and is not checked.
    #[test]
    fn hystart_ends_slow_start_again_after_a_timeout() {
        let mut values = Values::default();
        values.set("hystart", Value::Flag(true));
        values.set("initial_window", Value::Whole(1000));
        let mut cubic = build("cubic", &values, &Blueprint::of_any(MSS, &Values::default())).expect("CUBIC");
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut now = Time::ZERO + Dur::from_secs(1);
        let mut window_after = |cubic: &mut Box<dyn CongestionControl>, acks: u64| {
            for _ in 0..acks {
                now += Dur::from_ms(1);
                let rtt = Some(Dur::from_ms(100));
                cubic.on_ack(&Ack { rtt, in_flight_bytes: 99 * MSS, ..one_segment() }, &mut at(now, &mut rng));
            }
            cubic.limits().cwnd_bytes / MSS
        };
        assert_eq!([50, 1, 1].map(|acks| window_after(&mut cubic, acks)), [1050, 1050, 1050]);
        let timeout = Congestion::Timeout { flight_bytes: 0, first: true };
        cubic.on_congestion(timeout, &mut at(Time::ZERO, &mut Stream::new(1, Domain::Test, 0)));
        assert_eq!([100, 50, 1, 1].map(|acks| window_after(&mut cubic, acks)), [101, 151, 151, 151]);
    }
}
