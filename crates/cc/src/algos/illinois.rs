//! TCP-Illinois: losses decide when to cut the window; delays decide how fast it grows and how deep it is cut.
//!
//! Source: Liu, Basar, Srikant, "TCP-Illinois: A Loss- and Delay-Based Congestion Control Algorithm for High-Speed
//! Networks", Performance Evaluation 65, 2008; details that it leaves open as in Linux 2.6.32 (tcp_illinois.c).
//!
//! Once per window of data the law takes the mean round-trip time of that window. The mean queueing delay da is that
//! mean less the minimum RTT, and its maximum dm is the maximum RTT less the minimum. Every acknowledged segment adds
//! alpha / cwnd segments; a loss takes beta cwnd away. Up to d1 = dm/100 alpha is 10; from there it falls as k1 / (k2 +
//! da), to 0.3 at dm. After da has been above d1, alpha returns to 10 only with the fifth window below it. Beta is 1/8
//! up to d2 = dm/10, 1/2 from d3 = 8 dm/10 on, and linear in between. A window below 15 segments has NewReno's alpha =
//! 1 and beta = 1/2. So has the window after a timeout, which resets the count of good windows but keeps both extremes
//! of the round-trip time.
//!
//! Differences: Linux 2.6.32 counts alpha in 1/128 (0.3 is 0.297) and beta in 1/64, rounded down, and grows by whole
//! segments without keeping the remainder. This law uses fractions. Linux limits round-trip times to 3.3 s. Current
//! Linux has the same law; `like = "linux"` rounds as it does. In the paper dm is the largest *mean* delay of a window;
//! in Linux, and here, that of a single packet. Losses cut the window, not the volume in flight.
//!
//! ns-3 (TcpIllinois) cuts the volume in flight. It takes delays in whole milliseconds, which makes da and dm zero on
//! short paths. It compares `WinThresh` in segments with the window in bytes, so that no window is below it, and it
//! counts good windows from the start, before the first bad one. Its delays are those of the smoothed round-trip time,
//! and it accumulates alpha in whole numbers, so that a window with alpha below 1 does not grow (3.44).

use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::param::{DefaultValue, Kind, Param, ParamError, Unit};
use crate::registry::{BuildError, Controller};
use crate::round::Round;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};
use sparelane_core::Dur;

const ALPHA_MIN: Param = Param {
    name: "alpha_min",
    kind: Kind::Number { min: 0.001, max: 1000.0, unit: Unit::Segments },
    default: DefaultValue::Number(0.3),
    meaning: "growth per round trip at the largest delay",
    source: "Linux; Liu et al. 2008",
};

const ALPHA_MAX: Param = Param {
    name: "alpha_max",
    kind: Kind::Number { min: 0.001, max: 1000.0, unit: Unit::Segments },
    default: DefaultValue::Number(10.0),
    meaning: "growth per round trip without delay; at least alpha_min",
    source: "Linux; Liu et al. 2008",
};

const BETA_MIN: Param = Param {
    name: "beta_min",
    kind: Kind::Number { min: 0.01, max: 0.9, unit: Unit::One },
    default: DefaultValue::Number(0.125),
    meaning: "share of the window lost at a loss with little delay",
    source: "Linux; Liu et al. 2008",
};

const BETA_MAX: Param = Param {
    name: "beta_max",
    kind: Kind::Number { min: 0.01, max: 0.9, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "share of the window lost at a loss with much delay; at least beta_min",
    source: "Linux; Liu et al. 2008",
};

const WIN_THRESH: Param = Param {
    name: "win_thresh",
    kind: Kind::Whole { min: 0, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(15),
    meaning: "a smaller window follows NewReno",
    source: "Linux (module parameter win_thresh)",
};

const THETA: Param = Param {
    name: "theta",
    kind: Kind::Whole { min: 0, max: 250, unit: Unit::One },
    default: DefaultValue::Whole(5),
    meaning: "windows of data without delay until alpha returns to alpha_max",
    source: "Linux (module parameter theta)",
};

const LIKE: Param = Param {
    name: "like",
    kind: Kind::Choice(&["exact", "linux"]),
    default: DefaultValue::Word("exact"),
    meaning: "exact uses fractions for growth and cuts; linux uses whole segments, alpha in 1/128 and beta in 1/64",
    source: "Linux tcp_illinois.c",
};

/// Linux counts alpha and beta in these parts of one.
const ALPHA_PARTS: f64 = 128.0;
const BETA_PARTS: f64 = 64.0;

/// Rounds `number` down to a multiple of 1 / `parts`.
fn in_parts(number: f64, parts: f64) -> f64 {
    (number * parts) as u64 as f64 / parts
}

/// Returns alpha in whole parts from delays in whole microseconds, each division rounded down.
fn linux_alpha(mean: f64, max: f64, alpha: [f64; 2]) -> f64 {
    let [least, largest] = alpha.map(|alpha| ((alpha * ALPHA_PARTS) as u64).max(1));
    let [mean, max] = [mean, max].map(|delay| (delay * 1e6) as u64);
    let parts = max * largest / (max + mean * (largest - least) / least).max(1);
    parts as f64 / ALPHA_PARTS
}

/// NewReno's growth and cut.
const ALPHA_BASE: f64 = 1.0;
const BETA_BASE: f64 = 0.5;

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "illinois",
    summary: "losses cut the window, delays set the depth of the cut and the growth",
    source: "Liu, Basar, Srikant, Performance Evaluation 2008; Linux 2.6.32",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        SLOW_START,
        WINDOW_VALIDATION,
        ALPHA_MIN,
        ALPHA_MAX,
        BETA_MIN,
        BETA_MAX,
        WIN_THRESH,
        THETA,
        LIKE,
    ],
    wire: None,
    make: &|values, plan| {
        let config = IllinoisConfig {
            alpha: [&ALPHA_MIN, &ALPHA_MAX].map(|param| values.number(param)),
            beta: [&BETA_MIN, &BETA_MAX].map(|param| values.number(param)),
            win_thresh: values.whole(&WIN_THRESH),
            theta: values.whole(&THETA),
            like_linux: values.word(&LIKE) == "linux",
        };
        in_order(&ALPHA_MIN, &ALPHA_MAX, config.alpha)?;
        in_order(&BETA_MIN, &BETA_MAX, config.beta)?;
        Ok(windowed(Illinois::new(config), values, plan))
    },
};

/// Rejects a minimum above the maximum.
fn in_order(min: &Param, max: &Param, [least, largest]: [f64; 2]) -> Result<(), BuildError> {
    if least <= largest {
        return Ok(());
    }
    let allowed = format!("{least} or more, which is {}", min.name);
    Err(BuildError::Param(ParamError { name: max.name, given: largest.to_string(), allowed }))
}

/// The constants of the law.
#[derive(Clone, Copy, Debug)]
pub struct IllinoisConfig {
    /// Minimum and maximum growth per round trip, segments.
    pub alpha: [f64; 2],
    /// Minimum and maximum share of the window lost at a loss.
    pub beta: [f64; 2],
    /// A smaller window follows NewReno, segments.
    pub win_thresh: u64,
    /// Windows of data without delay until alpha returns to its maximum.
    pub theta: u64,
    /// True to round as Linux does.
    pub like_linux: bool,
}

/// The Illinois window law.
#[derive(Clone, Debug)]
pub struct Illinois {
    config: IllinoisConfig,
    /// Growth per round trip, segments.
    alpha: f64,
    /// Share of the window lost at a loss.
    beta: f64,
    base_rtt: Dur,
    max_rtt: Dur,
    round: Round,
    /// True if the window of data is complete and not yet evaluated.
    is_due: bool,
    /// Sum of the round-trip times of this window of data. `rtt_count` is their number.
    rtt_sum: Dur,
    rtt_count: u64,
    /// True if there has been delay since alpha was last at its maximum.
    was_above: bool,
    good_windows: u64,
    /// Growth of less than a byte, carried over to the next acknowledgment.
    fraction: f64,
    /// Segments acknowledged since the window last grew, if it grows by whole segments.
    counted: u64,
}

impl Illinois {
    /// Creates a law with these constants.
    pub fn new(mut config: IllinoisConfig) -> Illinois {
        if config.like_linux {
            config.alpha = config.alpha.map(|alpha| in_parts(alpha, ALPHA_PARTS));
            config.beta = config.beta.map(|beta| in_parts(beta, BETA_PARTS));
        }
        Illinois {
            config,
            alpha: config.alpha[1],
            beta: BETA_BASE,
            base_rtt: Dur::MAX,
            max_rtt: Dur::default(),
            round: Round::default(),
            is_due: false,
            rtt_sum: Dur::default(),
            rtt_count: 0,
            was_above: false,
            good_windows: 0,
            fraction: 0.0,
            counted: 0,
        }
    }

    /// Evaluates a complete window of data of `segments` segments.
    fn judge(&mut self, segments: u64) {
        if segments < self.config.win_thresh {
            (self.alpha, self.beta) = (ALPHA_BASE, BETA_BASE);
        } else if self.rtt_count > 0 {
            let mean = (self.rtt_sum / self.rtt_count).saturating_sub(self.base_rtt).as_secs_f64();
            let max = self.max_rtt.saturating_sub(self.base_rtt).as_secs_f64();
            self.alpha = self.alpha_at(mean, max);
            self.beta = self.beta_at(mean, max);
            if self.config.like_linux {
                self.beta = in_parts(self.beta, BETA_PARTS);
            }
        }
    }

    /// Returns the growth per round trip at a queueing delay of `mean`, out of a maximum of `max`.
    fn alpha_at(&mut self, mean: f64, max: f64) -> f64 {
        let [least, largest] = self.config.alpha;
        let d1 = max / 100.0;
        // After delay, `theta` windows in a row must be free of it before growth is full again.
        if mean <= d1 {
            if !self.was_above {
                return largest;
            }
            self.good_windows += 1;
            if self.good_windows < self.config.theta {
                return self.alpha;
            }
            (self.good_windows, self.was_above) = (0, false);
            return largest;
        }
        self.was_above = true;
        let (mean, max) = (mean - d1, max - d1);
        if self.config.like_linux {
            return linux_alpha(mean, max, self.config.alpha);
        }
        max * largest / (max + mean * (largest - least) / least)
    }

    /// Returns the share lost at a loss with a queueing delay of `mean`, out of a maximum of `max`.
    fn beta_at(&self, mean: f64, max: f64) -> f64 {
        let [least, largest] = self.config.beta;
        let (d2, d3) = (max / 10.0, 0.8 * max);
        if mean <= d2 {
            least
        } else if mean >= d3 {
            largest
        } else {
            least + (largest - least) * (mean - d2) / (d3 - d2)
        }
    }

    /// Grows as Linux does: by a segment once alpha times the acknowledged segments make a window. The remainder is
    /// dropped.
    fn grow_by_segments(&mut self, window: &mut Window, acked: u64, mss_bytes: u64) {
        self.counted += acked;
        let segments = window.cwnd / mss_bytes;
        let grown = (self.counted as f64 * self.alpha) as u64 / segments;
        if grown > 0 {
            window.cwnd += grown * mss_bytes;
            self.counted = 0;
        }
    }

    fn forget_samples(&mut self) {
        (self.rtt_sum, self.rtt_count) = (Dur::default(), 0);
    }
}

impl WindowLaw for Illinois {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.max_rtt = self.max_rtt.max(rtt);
            self.rtt_sum += rtt;
            self.rtt_count += 1;
        }
        self.is_due |= self.round.is_over(ack);
        // As in Linux, a window of data that ends in recovery continues until recovery is over.
        if self.is_due && ack.phase != Phase::Recovery {
            self.is_due = false;
            self.judge(window.cwnd / cx.mss_bytes);
            self.forget_samples();
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if self.config.like_linux {
            self.grow_by_segments(window, ack.acked_bytes / cx.mss_bytes, cx.mss_bytes);
            return;
        }
        let share = ack.acked_bytes as f64 / window.cwnd as f64;
        let bytes = self.alpha * share * cx.mss_bytes as f64 + self.fraction;
        window.cwnd += bytes as u64;
        self.fraction = bytes.fract();
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        let left = if self.config.like_linux {
            let segments = window.cwnd / cx.mss_bytes;
            self.counted = 0;
            (segments - (segments as f64 * self.beta) as u64) * cx.mss_bytes
        } else {
            (window.cwnd as f64 * (1.0 - self.beta)) as u64
        };
        if let Congestion::Timeout { .. } = event {
            (self.alpha, self.beta) = (ALPHA_BASE, BETA_BASE);
            (self.good_windows, self.was_above) = (0, false);
            self.forget_samples();
        }
        left
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("alpha_segments", self.alpha);
        put("beta", self.beta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::{Value, Values};
    use crate::registry::{Blueprint, build};
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 8948;
    const CONFIG: IllinoisConfig =
        IllinoisConfig { alpha: [0.3, 10.0], beta: [0.125, 0.5], win_thresh: 15, theta: 5, like_linux: false };

    fn with_context<T>(run: impl FnOnce(&mut Cx<'_>) -> T) -> T {
        let mut rng = Stream::new(1, Domain::Test, 0);
        run(&mut Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng })
    }

    /// Returns a law that has seen round-trip times from 100 ms to 200 ms: dm is 100 ms.
    fn law() -> Illinois {
        Illinois { base_rtt: Dur::from_ms(100), max_rtt: Dur::from_ms(200), ..Illinois::new(CONFIG) }
    }

    /// Evaluates a window of this size with this mean round-trip time.
    fn judge(law: &mut Illinois, segments: u64, mean_rtt_ms: u64) -> (f64, f64) {
        (law.rtt_sum, law.rtt_count) = (Dur::from_ms(2 * mean_rtt_ms), 2);
        law.judge(segments);
        (law.alpha, law.beta)
    }

    fn is_near(given: (f64, f64), expected: (f64, f64)) {
        let near = (given.0 - expected.0).abs() < 1e-6 && (given.1 - expected.1).abs() < 1e-6;
        assert!(near, "{given:?} and not {expected:?}");
    }

    /// At 50 ms: alpha = 99 * 10 / (99 + 49 * 9.7 / 0.3) and beta = 0.125 + 0.375 * 40 / 70.
    #[test]
    fn delay_lowers_the_growth_and_deepens_the_cut() {
        is_near(judge(&mut law(), 100, 100), (10.0, 0.125));
        is_near(judge(&mut law(), 100, 105), (990.0 / (99.0 + 4.0 * 9.7 / 0.3), 0.125));
        is_near(judge(&mut law(), 100, 150), (0.588_118_812, 0.339_285_714));
        is_near(judge(&mut law(), 100, 180), (990.0 / (99.0 + 79.0 * 9.7 / 0.3), 0.5));
        is_near(judge(&mut law(), 100, 200), (0.3, 0.5));
    }

    #[test]
    fn after_delay_the_fifth_good_window_restores_full_growth() {
        let mut law = law();
        judge(&mut law, 100, 200);
        for _ in 0..4 {
            is_near(judge(&mut law, 100, 101), (0.3, 0.125));
        }
        is_near(judge(&mut law, 100, 101), (10.0, 0.125));
        is_near(judge(&mut law, 100, 101), (10.0, 0.125));
    }

    #[test]
    fn a_window_below_fifteen_segments_is_newrenos() {
        let mut law = law();
        is_near(judge(&mut law, 14, 200), (1.0, 0.5));
        is_near(judge(&mut law, 15, 200), (0.3, 0.5));
    }

    /// 30,000 segments, where an acknowledgment at alpha = 0.3 adds 0.09 bytes.
    #[test]
    fn a_round_adds_alpha_segments_to_a_large_window() {
        for (alpha, bytes) in [(0.3, 2684), (10.0, 89_465)] {
            let mut law = Illinois { alpha, ..law() };
            let mut window = Window { cwnd: 30_000 * MSS, ssthresh: 0 };
            for _ in 0..30_000 {
                with_context(|cx| law.grow(&mut window, &Ack::in_sequence(MSS), cx));
            }
            let grown = window.cwnd - 30_000 * MSS;
            assert!(grown.abs_diff(bytes) <= 1, "alpha {alpha}: {grown} bytes");
        }
    }

    #[test]
    fn a_loss_takes_beta_and_a_timeout_resets_it() {
        let mut law = law();
        let window = Window { cwnd: 800 * MSS, ssthresh: 0 };
        is_near(judge(&mut law, 100, 101), (10.0, 0.125));
        let loss = Congestion::Loss { flight_bytes: 0 };
        assert_eq!(with_context(|cx| law.cut(&window, 0, loss, cx)), 700 * MSS);
        let timeout = Congestion::Timeout { flight_bytes: 0, first: true };
        assert_eq!(with_context(|cx| law.cut(&window, 0, timeout, cx)), 700 * MSS);
        is_near((law.alpha, law.beta), (1.0, 0.5));
        assert_eq!((law.base_rtt, law.max_rtt), (Dur::from_ms(100), Dur::from_ms(200)));
    }

    /// Windows of 20 segments: one at 100 ms, then one with half its packets at 100 ms and half at 200 ms. Its mean
    /// queueing delay is half the maximum, or slightly less because of the packet that begins the next window.
    #[test]
    fn every_window_of_data_is_judged_by_its_mean_delay() {
        let config = WindowConfig {
            initial_window: 20,
            initial_ssthresh: 2,
            slow_start_limit: 1,
            growth_limit: 1,
            ..WindowConfig::default()
        };
        let mut controller = Windowed::new(Illinois::new(CONFIG), config, MSS);
        let mut alphas = Vec::new();
        let mut acknowledge = |phase: Phase, rtt_ms: u64| {
            let rtt = Some(Dur::from_ms(rtt_ms));
            let ack = Ack { rtt, phase, in_flight_bytes: 19 * MSS, ..Ack::in_sequence(MSS) };
            with_context(|cx| controller.on_ack(&ack, cx));
            controller.trace(&mut |name, value| {
                if name == "alpha_segments" {
                    alphas.push(value);
                }
            });
        };
        acknowledge(Phase::Open, 100);
        (0..20).for_each(|_| acknowledge(Phase::Open, 100));
        (0..20).for_each(|at| acknowledge(Phase::Open, if at % 2 == 0 { 100 } else { 200 }));
        (0..20).for_each(|_| acknowledge(Phase::Recovery, 200));
        acknowledge(Phase::Open, 200);
        assert!(alphas[..40].iter().all(|&alpha| alpha == 10.0), "{alphas:?}");
        assert!((alphas[40] - 0.588_118_812).abs() < 1e-6, "{}", alphas[40]);
        assert_eq!(alphas[60], alphas[40], "not in recovery");
        assert!((alphas[61] - 0.3).abs() < 1e-6, "{}", alphas[61]);
    }

    #[test]
    fn bounds_in_the_wrong_order_are_refused() {
        let mut values = Values::default();
        values.set("beta_max", Value::Number(0.1));
        let error =
            build("illinois", &values, &Blueprint::of_any(MSS, &Values::default())).expect_err("below beta_min");
        assert_eq!(error.to_string(), "`beta_max` is 0.1; allowed: 0.125 or more, which is beta_min");
    }

    /// Linux 6.12 with 219 segments and beta = 29 / 64, from 0.459: 219 - (219 * 29 >> 6) = 120. At the largest delay
    /// alpha is 38 / 128, and a window of ten grows with the 34th segment (34 * 38 >> 7 = 10); exact alpha is 0.3.
    #[test]
    fn like_linux_cuts_and_growth_are_of_whole_segments() {
        let config = IllinoisConfig { like_linux: true, ..CONFIG };
        let mut law = Illinois { base_rtt: Dur::from_ms(100), max_rtt: Dur::from_ms(200), ..Illinois::new(config) };
        law.beta = in_parts(0.459, BETA_PARTS);
        let window = Window { cwnd: 219 * MSS, ssthresh: 0 };
        let left = with_context(|cx| law.cut(&window, 0, Congestion::Loss { flight_bytes: 0 }, cx));
        assert_eq!(left, 120 * MSS);
        is_near(judge(&mut law, 100, 200), (38.0 / 128.0, 0.5));
        let mut window = Window { cwnd: 10 * MSS, ssthresh: 0 };
        let grows = |window: &mut Window, law: &mut Illinois| {
            with_context(|cx| law.grow(window, &Ack::in_sequence(MSS), cx));
            window.cwnd / MSS
        };
        assert!((0..33).all(|_| grows(&mut window, &mut law) == 10));
        assert_eq!(grows(&mut window, &mut law), 11);
    }
}
