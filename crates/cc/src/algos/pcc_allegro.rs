//! PCC Allegro: tries rates, scores each by a utility, and moves towards the higher score.
//!
//! Source: Dong, Li, Zarchy, Godfrey, Schapira, "PCC: Re-architecting Congestion Control for Consistent High
//! Performance", NSDI 2015, sections 2.2 and 3.
//!
//! The controller needs events of single segments and a timer. Time is divided into monitor intervals of ten packets or
//! 1.7 to 2.2 round-trip times, whichever is longer. In an interval at rate x that loses the share L, the throughput is
//! T = x (1 - L) and the utility u = T sigmoid(L - 0.05) - x L, with sigmoid(y) = 1 / (1 + e^(alpha y)). The rate
//! doubles until the utility falls. Randomized trials follow: two pairs of intervals, each at rates above and below by
//! epsilon, in random order. If both pairs prefer the same side, the rate moves there in growing steps until the
//! utility falls; otherwise epsilon grows.
//!
//! Differences: a rate is evaluated before the next doubling or step, and kept until then; the paper does not say which
//! rate is sent meanwhile. x is the requested rate, not counted packets over time, whose rounding would exceed epsilon.
//! The rate is at most that of the interface and at least two packets per round trip, where round trips count as at
//! least 100 ms. An interval in which the application had too little data is void. There is no window; losses are
//! repaired at the pace.
//!
//! Random loss near the tolerance makes the climb slow, although the rate at which it ends is the path's. The paper
//! reports 95 % of the achievable throughput up to the tolerance of 5 %, without the time that this takes. At a loss of
//! 4 %, an interval of 500 packets counts its losses with a standard deviation of 0.9 %. By the slope of the sigmoid,
//! this changes the utility by a fifth, but trials differ by 1 to 5 % only. So doubling ends early, and most moves are
//! random, with a small drift upwards. On 100 Mb/s and 30 ms, three runs had 8 to 21 Mb/s after 100 s, needed 340 to
//! 500 s for 90 Mb/s, and stayed there. At 2 %, the same path is full at once.

use crate::contract::Cx;
use crate::monitor::Outcome;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::trials::{Trial, TrialController, TrialLaw};
use sparelane_core::Rate;

const PAPER: &str = "Dong et al., NSDI 2015, section 3";

const EPSILON_MIN: Param = Param {
    name: "epsilon_min",
    kind: Kind::Number { min: 0.001, max: 0.5, unit: Unit::One },
    default: DefaultValue::Number(0.01),
    meaning: "relative difference of the first trials, and unit of the steps that follow",
    source: PAPER,
};

const EPSILON_MAX: Param = Param {
    name: "epsilon_max",
    kind: Kind::Number { min: 0.001, max: 0.5, unit: Unit::One },
    default: DefaultValue::Number(0.05),
    meaning: "maximum relative difference of trials",
    source: PAPER,
};

const LOSS_TOLERANCE: Param = Param {
    name: "loss_tolerance",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.05),
    meaning: "share of losses at which the utility collapses",
    source: "Dong et al., NSDI 2015, section 2.2",
};

const STEEPNESS: Param = Param {
    name: "steepness",
    kind: Kind::Number { min: 1.0, max: 100_000.0, unit: Unit::One },
    default: DefaultValue::Number(100.0),
    meaning: "alpha of the sigmoid",
    source: "Dong et al., NSDI 2015, section 2.2 (at least 2.2 (n - 1) for n senders, and 100)",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "pcc-allegro",
    summary: "PCC of 2015: tries rates and moves towards more throughput with less loss",
    source: "Dong et al., NSDI 2015",
    params: &[EPSILON_MIN, EPSILON_MAX, LOSS_TOLERANCE, STEEPNESS],
    wire: None,
    make: &|values, plan| {
        let epsilon_min = values.number(&EPSILON_MIN);
        let config = AllegroConfig {
            epsilon_min,
            epsilon_max: values.number(&EPSILON_MAX).max(epsilon_min),
            loss_tolerance: values.number(&LOSS_TOLERANCE),
            steepness: values.number(&STEEPNESS),
        };
        Ok(Box::new(TrialController::new(Allegro::new(config), plan.packets(), plan.line_rate)))
    },
};

/// The range of an interval's duration in round-trip times.
const ROUND_TRIPS: (f64, f64) = (1.7, 2.2);

/// The constants of the law, as declared.
#[derive(Clone, Copy, Debug)]
pub struct AllegroConfig {
    /// Relative difference of the first trials, and unit of the steps.
    pub epsilon_min: f64,
    /// Maximum relative difference of trials.
    pub epsilon_max: f64,
    /// Share of losses at which the utility collapses.
    pub loss_tolerance: f64,
    /// Alpha of the sigmoid.
    pub steepness: f64,
}

impl AllegroConfig {
    /// Section 2.2: returns the utility of an outcome, in bits per second.
    fn utility<P>(&self, outcome: &Outcome<P>) -> f64 {
        let (x, loss) = (outcome.rate.as_bps() as f64, outcome.loss);
        let sigmoid = 1.0 / (1.0 + libm::exp(self.steepness * (loss - self.loss_tolerance)));
        x * (1.0 - loss) * sigmoid - x * loss
    }
}

/// The purpose of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Doubling.
    Start,
    /// One of four trials on either side of a rate.
    Side(usize),
    /// A step in the direction that the trials preferred.
    Step,
    /// Waiting for an outcome.
    Wait,
}

/// The state of the law (section 3.2).
#[derive(Clone, Copy, Debug)]
enum State {
    Starting {
        /// The previous rate and its utility.
        before: Option<(Rate, f64)>,
    },
    Deciding {
        epsilon: f64,
        /// True for each pair of trials that begins with the higher rate.
        higher_first: [bool; 2],
        utilities: [f64; 4],
        is_void: bool,
    },
    Moving {
        /// 1 or -1.
        direction: f64,
        steps: u32,
        /// The previous rate and its utility.
        before: (Rate, f64),
    },
}

/// The Allegro trial law.
#[derive(Clone, Debug)]
pub struct Allegro {
    config: AllegroConfig,
    state: State,
    /// The rate around which trials are made.
    base: Rate,
    /// The rate tried last.
    rate: Rate,
}

impl Allegro {
    /// Creates the law in its initial state.
    pub fn new(config: AllegroConfig) -> Allegro {
        let none = Rate::default();
        Allegro { config, state: State::Starting { before: None }, base: none, rate: none }
    }

    fn attempt(&mut self, purpose: Purpose, rate: Rate, cx: &mut Cx<'_>) -> Trial<Purpose> {
        self.rate = rate;
        let (least, most) = ROUND_TRIPS;
        Trial { purpose, rate, round_trips: least + (most - least) * cx.rng.unit() }
    }

    fn attempt_side(&mut self, n: usize, epsilon: f64, higher_first: [bool; 2], cx: &mut Cx<'_>) -> Trial<Purpose> {
        let is_higher = higher_first[n / 2] == n.is_multiple_of(2);
        let rate = self.base.scaled(if is_higher { 1.0 + epsilon } else { 1.0 - epsilon });
        self.attempt(Purpose::Side(n), rate, cx)
    }

    fn decide(&mut self, base: Rate, epsilon: f64, cx: &mut Cx<'_>) -> Trial<Purpose> {
        let higher_first = [cx.rng.below(2) == 0, cx.rng.below(2) == 0];
        self.base = base;
        self.state = State::Deciding { epsilon, higher_first, utilities: [0.0; 4], is_void: false };
        self.attempt_side(0, epsilon, higher_first, cx)
    }

    /// Moves by r(n) = r(n - 1) (1 + n epsilon_min direction).
    fn step(&mut self, direction: f64, steps: u32, before: (Rate, f64), cx: &mut Cx<'_>) -> Trial<Purpose> {
        let factor = 1.0 + f64::from(steps) * self.config.epsilon_min * direction;
        self.state = State::Moving { direction, steps, before };
        self.attempt(Purpose::Step, before.0.scaled(factor.max(0.5)), cx)
    }

    fn learn_start(&mut self, outcome: &Outcome<Purpose>, utility: f64, cx: &mut Cx<'_>) -> Option<Trial<Purpose>> {
        let State::Starting { before } = self.state else { return None };
        if !outcome.is_valid {
            return Some(self.attempt(Purpose::Start, outcome.rate, cx));
        }
        match before {
            Some((rate, better)) if utility <= better => Some(self.decide(rate, self.config.epsilon_min, cx)),
            _ => {
                self.state = State::Starting { before: Some((outcome.rate, utility)) };
                let doubled = Rate::from_bps(outcome.rate.as_bps().saturating_mul(2));
                Some(self.attempt(Purpose::Start, doubled, cx))
            }
        }
    }

    fn learn_side(
        &mut self,
        n: usize,
        outcome: &Outcome<Purpose>,
        utility: f64,
        cx: &mut Cx<'_>,
    ) -> Option<Trial<Purpose>> {
        let State::Deciding { epsilon, higher_first, utilities, is_void } = &mut self.state else { return None };
        utilities[n] = utility;
        *is_void |= !outcome.is_valid;
        if n < 3 {
            return None;
        }
        // The advantage of the higher rate in each pair.
        let gains = [0, 1].map(|pair| {
            let difference = utilities[2 * pair] - utilities[2 * pair + 1];
            if higher_first[pair] { difference } else { -difference }
        });
        let (epsilon, is_void) = (*epsilon, *is_void);
        let (base, epsilon_min) = (self.base, self.config.epsilon_min);
        let is_agreed = gains.iter().all(|&gain| gain > 0.0) || gains.iter().all(|&gain| gain < 0.0);
        Some(if is_void {
            self.decide(base, epsilon, cx)
        } else if is_agreed {
            let direction = if gains[0] > 0.0 { 1.0 } else { -1.0 };
            // The mean utility of the better trial of each pair.
            let sum: f64 = utilities.iter().sum();
            let better = (sum + gains[0].abs() + gains[1].abs()) / 4.0;
            self.step(direction, 1, (base.scaled(1.0 + direction * epsilon), better), cx)
        } else {
            self.decide(base, (epsilon + epsilon_min).min(self.config.epsilon_max), cx)
        })
    }
}

impl TrialLaw for Allegro {
    type Purpose = Purpose;

    fn begin(&mut self, least: Rate, cx: &mut Cx<'_>) -> Trial<Purpose> {
        let rate = self.rate.max(least);
        match self.state {
            State::Starting { .. } => self.attempt(Purpose::Start, rate, cx),
            State::Deciding { epsilon, .. } => self.decide(self.base, epsilon, cx),
            State::Moving { .. } => self.attempt(Purpose::Step, rate, cx),
        }
    }

    fn after(&mut self, last: Purpose, cx: &mut Cx<'_>) -> Trial<Purpose> {
        match (self.state, last) {
            (State::Deciding { epsilon, higher_first, .. }, Purpose::Side(n)) if n < 3 => {
                self.attempt_side(n + 1, epsilon, higher_first, cx)
            }
            (State::Deciding { .. }, _) => self.attempt(Purpose::Wait, self.base, cx),
            _ => self.attempt(Purpose::Wait, self.rate, cx),
        }
    }

    fn learn(&mut self, outcome: &Outcome<Purpose>, cx: &mut Cx<'_>) -> Option<Trial<Purpose>> {
        let utility = self.config.utility(outcome);
        match (self.state, outcome.purpose) {
            (_, Purpose::Start) => self.learn_start(outcome, utility, cx),
            (_, Purpose::Side(n)) => self.learn_side(n, outcome, utility, cx),
            (State::Moving { direction, steps, before }, Purpose::Step) => {
                Some(if outcome.is_valid && utility > before.1 {
                    self.step(direction, steps + 1, (outcome.rate, utility), cx)
                } else {
                    self.decide(before.0, self.config.epsilon_min, cx)
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream, Time};

    fn config() -> AllegroConfig {
        AllegroConfig { epsilon_min: 0.01, epsilon_max: 0.05, loss_tolerance: 0.05, steepness: 100.0 }
    }

    fn outcome_of(trial: Trial<Purpose>, loss: f64) -> Outcome<Purpose> {
        Outcome { purpose: trial.purpose, rate: trial.rate, loss, rtt_gradient: 0.0, is_valid: true }
    }

    fn with_cx<T>(call: impl FnOnce(&mut Cx<'_>) -> T) -> T {
        let mut rng = Stream::new(1, Domain::Test, 0);
        call(&mut Cx { now: Time::ZERO, mss_bytes: 960, srtt: None, min_rtt: None, rng: &mut rng })
    }

    /// Returns the share of losses at this rate on a link of `mbps` Mb/s.
    fn overload(rate: Rate, mbps: f64) -> f64 {
        (1.0 - mbps * 1e6 / rate.as_bps() as f64).max(0.0)
    }

    #[test]
    fn the_utility_is_the_throughput_up_to_five_per_cent_of_loss_and_negative_beyond() {
        let utility = |loss| {
            let outcome =
                outcome_of(Trial { purpose: Purpose::Wait, rate: Rate::from_mbps(10), round_trips: 1.0 }, loss);
            config().utility(&outcome) / 1e7
        };
        assert!((utility(0.0) - 0.9933).abs() < 1e-4);
        assert!((utility(0.05) - (0.95 / 2.0 - 0.05)).abs() < 1e-9);
        assert!((utility(0.1) + 0.0940).abs() < 1e-4);
    }

    /// The rate doubles from 1 to 32 Mb/s on a link of 20 Mb/s, returns to 16 Mb/s and rises from there.
    #[test]
    fn the_rate_doubles_until_the_utility_falls_and_trials_lead_to_the_link_s_rate() {
        with_cx(|cx| {
            let mut law = Allegro::new(config());
            let mut trial = law.begin(Rate::from_mbps(1), cx);
            let mut rates = Vec::new();
            for _ in 0..400 {
                rates.push(trial.rate.as_bps() as f64 / 1e6);
                let outcome = outcome_of(trial, overload(trial.rate, 20.0));
                let after = law.after(trial.purpose, cx);
                trial = law.learn(&outcome, cx).unwrap_or(after);
            }
            assert_eq!(rates[..6], [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
            assert!(rates[6..10].iter().all(|rate| (rate / 16.0 - 1.0).abs() < 0.011), "{:?}", &rates[6..10]);
            assert!(rates[200..].iter().all(|rate| (18.0..23.0).contains(rate)), "{:?}", &rates[200..]);
        });
    }

    /// The share of losses in `packets` packets that are lost at random with this probability.
    fn random_share(loss: f64, packets: u64, cx: &mut Cx<'_>) -> f64 {
        (0..packets).filter(|_| cx.rng.unit() < loss).count() as f64 / packets as f64
    }

    /// Intervals of 60 ms and packets of 1250 bytes on a link of 100 Mb/s, which loses at random.
    #[test]
    fn the_rate_reaches_the_link_s_in_spite_of_random_loss_below_the_tolerance() {
        for seed in 1..4 {
            let mut rng = Stream::new(seed, Domain::Test, 0);
            let mut mean_mbps = |loss, intervals: usize| {
                let cx = &mut Cx { now: Time::ZERO, mss_bytes: 1210, srtt: None, min_rtt: None, rng: &mut rng };
                let mut law = Allegro::new(config());
                let mut trial = law.begin(Rate::from_mbps(1), cx);
                let mut rates = Vec::new();
                for _ in 0..intervals {
                    rates.push(trial.rate.as_bps() as f64 / 1e6);
                    let packets = (trial.rate.as_bps() * 60 / 10_000_000).max(10);
                    let (random, full) = (random_share(loss, packets, cx), overload(trial.rate, 100.0));
                    let outcome = outcome_of(trial, full + random * (1.0 - full));
                    let after = law.after(trial.purpose, cx);
                    trial = law.learn(&outcome, cx).unwrap_or(after);
                }
                let last = &rates[intervals - 500..];
                last.iter().sum::<f64>() / last.len() as f64
            };
            let (little, much) = (mean_mbps(0.01, 1_000), mean_mbps(0.04, 16_000));
            assert!(little > 90.0 && much > 85.0, "{seed}: {little} and {much} Mb/s");
        }
    }

    #[test]
    fn trials_that_disagree_are_repeated_with_a_larger_difference() {
        with_cx(|cx| {
            let mut law = Allegro::new(config());
            let mut trial = law.decide(Rate::from_mbps(100), 0.01, cx);
            let mut seen = Vec::new();
            for round in 0..7 {
                for n in 0..4 {
                    assert_eq!(trial.purpose, Purpose::Side(n));
                    let difference = trial.rate.as_bps() as f64 / 1e8 - 1.0;
                    seen.push((difference.abs() * 100.0).round() as u32);
                    // The first pair prefers the higher rate, the second the lower one.
                    let is_better = (n < 2) == (difference > 0.0);
                    let outcome = outcome_of(trial, if is_better { 0.0 } else { 0.5 });
                    let after = law.after(trial.purpose, cx);
                    trial = law.learn(&outcome, cx).unwrap_or(after);
                }
                assert_eq!(seen[4 * round..], [1 + round.min(4) as u32; 4]);
            }
        });
    }
}
