//! PCC Vivace: climbs the gradient of a utility of rate, growth of the round-trip time, and loss.
//!
//! Source: Dong, Meng, Zarchy, Arslan, Gilad, Godfrey, Schapira, "PCC Vivace: Online-Learning Congestion Control", NSDI
//! 2018, sections 3 to 5.
//!
//! The controller needs events of single segments and a timer. In an interval of a round-trip time at rate x (Mb/s)
//! whose round-trip times grow by dRTT/dT and that loses the share L, the utility is u = x^0.9 - 900 x dRTT/dT - 11.35
//! x L. The rate doubles until the utility falls. The law then tries r (1 + epsilon) and r (1 - epsilon), in random
//! order. The gradient is the difference of the utilities over that of the rates, and r moves by theta times m times
//! the gradient. The confidence amplifier m depends on the number of moves in one direction: the number itself up to 3,
//! and twice the number minus 3 beyond. A move is at most a share omega of r; omega starts at 5 % and grows by 10 %
//! with each further move that would exceed it ("dynamic change boundary").
//!
//! Differences: a rate is evaluated before the next doubling, and kept until then. A growth of the round-trip time of
//! less than 1 % counts as zero (the paper's noise filter); the paper's second filter, which repeats a trial if a
//! higher rate seems to lose less, is left out. x is the requested rate, because counted packets over time round too
//! coarsely. An interval has at least ten packets. The rate is at most that of the interface and at least two packets
//! per round trip, where round trips count as at least 100 ms. Trials beyond these limits are made at them, and the
//! rate moves from the mean of the rates tried. An interval in which the application had too little data is void. There
//! is no window; losses are repaired at the pace.
//!
//! With short queues the law loses many packets. Over an interval of ten packets the growth of the round-trip time
//! reflects a queue that varies by a packet, and outweighs loss. Four flows at 10 Mb/s and 4 ms with a queue of three
//! packets lose 34 to 53 % with FQ-CoDel and 27 to 35 % with FIFO; with `latency = 0` (Vivace-Loss) 16 to 20 %. On a
//! short path the law fills a long queue when it starts, and the rate then changes by at most a share per two round
//! trips of that queue.

use crate::contract::Cx;
use crate::monitor::Outcome;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::trials::{Trial, TrialController, TrialLaw};
use sparelane_core::Rate;

const PAPER: &str = "Dong et al., NSDI 2018";

const EXPONENT: Param = Param {
    name: "exponent",
    kind: Kind::Number { min: 0.01, max: 0.999, unit: Unit::One },
    default: DefaultValue::Number(0.9),
    meaning: "power of the rate in the utility",
    source: PAPER,
};

const LATENCY: Param = Param {
    name: "latency",
    kind: Kind::Number { min: 0.0, max: 1e6, unit: Unit::One },
    default: DefaultValue::Number(900.0),
    meaning: "weight of the growth of the round-trip time in the utility; 0 is Vivace-Loss",
    source: PAPER,
};

const LOSS: Param = Param {
    name: "loss",
    kind: Kind::Number { min: 0.0, max: 1e6, unit: Unit::One },
    default: DefaultValue::Number(11.35),
    meaning: "weight of losses in the utility",
    source: PAPER,
};

const EPSILON: Param = Param {
    name: "epsilon",
    kind: Kind::Number { min: 0.001, max: 0.5, unit: Unit::One },
    default: DefaultValue::Number(0.05),
    meaning: "relative difference of trials from the rate",
    source: PAPER,
};

const THETA: Param = Param {
    name: "theta",
    kind: Kind::Number { min: 0.001, max: 1000.0, unit: Unit::One },
    default: DefaultValue::Number(1.0),
    meaning: "move in Mb/s for a gradient of one",
    source: PAPER,
};

const OMEGA: Param = Param {
    name: "omega",
    kind: Kind::Number { min: 0.001, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.05),
    meaning: "maximum first move, as a share of the rate",
    source: PAPER,
};

const OMEGA_STEP: Param = Param {
    name: "omega_step",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.1),
    meaning: "growth of that share with each further move that would exceed it",
    source: PAPER,
};

const GRADIENT_FILTER: Param = Param {
    name: "gradient_filter",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.01),
    meaning: "growth of the round-trip time, in seconds per second, that counts as zero",
    source: PAPER,
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "pcc-vivace",
    summary: "PCC of 2018: climbs the gradient of a utility of rate, delay and loss",
    source: PAPER,
    params: &[EXPONENT, LATENCY, LOSS, EPSILON, THETA, OMEGA, OMEGA_STEP, GRADIENT_FILTER],
    wire: None,
    make: &|values, plan| {
        let config = VivaceConfig {
            exponent: values.number(&EXPONENT),
            latency: values.number(&LATENCY),
            loss: values.number(&LOSS),
            epsilon: values.number(&EPSILON),
            theta: values.number(&THETA),
            omega: values.number(&OMEGA),
            omega_step: values.number(&OMEGA_STEP),
            gradient_filter: values.number(&GRADIENT_FILTER),
        };
        Ok(Box::new(TrialController::new(Vivace::new(config), plan.packets(), plan.line_rate)))
    },
};

const BPS_PER_MBPS: f64 = 1e6;

/// The constants of the law, as declared.
#[derive(Clone, Copy, Debug)]
pub struct VivaceConfig {
    /// Power of the rate in the utility.
    pub exponent: f64,
    /// Weight of the growth of the round-trip time.
    pub latency: f64,
    /// Weight of losses.
    pub loss: f64,
    /// Relative difference of trials from the rate.
    pub epsilon: f64,
    /// Move in Mb/s for a gradient of one.
    pub theta: f64,
    /// Maximum first move, as a share of the rate.
    pub omega: f64,
    /// Growth of that share per further move.
    pub omega_step: f64,
    /// Growth of the round-trip time that counts as zero.
    pub gradient_filter: f64,
}

impl VivaceConfig {
    /// Returns eq. (1), with the noise filter of section 5.
    fn utility<P>(&self, outcome: &Outcome<P>) -> f64 {
        let x = outcome.rate.as_bps() as f64 / BPS_PER_MBPS;
        let growth = outcome.rtt_gradient;
        let growth = if growth.abs() < self.gradient_filter { 0.0 } else { growth };
        libm::pow(x, self.exponent) - self.latency * x * growth - self.loss * x * outcome.loss
    }
}

/// The purpose of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Doubling.
    Start,
    /// The first or second of a pair of trials.
    Side(usize),
    /// Waiting for an outcome.
    Wait,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Starting {
        /// The previous rate and its utility.
        before: Option<(Rate, f64)>,
    },
    Learning {
        higher_first: bool,
        /// The rate in Mb/s and the utility of the first trial, if it was valid.
        first: Option<(f64, f64)>,
    },
}

/// The Vivace trial law.
#[derive(Clone, Debug)]
pub struct Vivace {
    config: VivaceConfig,
    state: State,
    /// The rate around which trials are made.
    base: Rate,
    /// The rate tried last.
    rate: Rate,
    /// Number of moves in one direction, negative for downward moves.
    streak: i32,
    /// Number of moves in a row that would have exceeded omega.
    exceeded: u32,
}

impl Vivace {
    /// Creates the law in its initial state.
    pub fn new(config: VivaceConfig) -> Vivace {
        let none = Rate::default();
        Vivace { config, state: State::Starting { before: None }, base: none, rate: none, streak: 0, exceeded: 0 }
    }

    fn attempt(&mut self, purpose: Purpose, rate: Rate) -> Trial<Purpose> {
        self.rate = rate;
        Trial { purpose, rate, round_trips: 1.0 }
    }

    fn attempt_side(&mut self, n: usize, higher_first: bool) -> Trial<Purpose> {
        let is_higher = higher_first == (n == 0);
        let epsilon = self.config.epsilon;
        self.attempt(Purpose::Side(n), self.base.scaled(if is_higher { 1.0 + epsilon } else { 1.0 - epsilon }))
    }

    fn explore(&mut self, base: Rate, cx: &mut Cx<'_>) -> Trial<Purpose> {
        let higher_first = cx.rng.below(2) == 0;
        self.base = base;
        self.state = State::Learning { higher_first, first: None };
        self.attempt_side(0, higher_first)
    }

    /// Sections 4.2 and 4.3: returns the change of the rate in Mb/s.
    fn step_mbps(&mut self, gradient: f64) -> f64 {
        let direction = if gradient > 0.0 { 1 } else { -1 };
        if self.streak.signum() != direction {
            (self.streak, self.exceeded) = (0, 0);
        }
        self.streak = self.streak.saturating_add(direction);
        let moves = f64::from(self.streak.unsigned_abs());
        let amplifier = if moves <= 3.0 { moves } else { 2.0 * moves - 3.0 };
        let wanted = self.config.theta * amplifier * gradient;
        let base = self.base.as_bps() as f64 / BPS_PER_MBPS;
        let bound = (self.config.omega + f64::from(self.exceeded) * self.config.omega_step) * base;
        if wanted.abs() > bound {
            self.exceeded = self.exceeded.saturating_add(1);
            return bound.copysign(wanted);
        }
        // Keep the smallest boundary that leaves room for this move.
        let over = (wanted.abs() / base.max(f64::MIN_POSITIVE) - self.config.omega) / self.config.omega_step;
        self.exceeded = if over > 0.0 { (libm::ceil(over) as u32).min(self.exceeded) } else { 0 };
        wanted
    }

    fn learn_start(&mut self, outcome: &Outcome<Purpose>, utility: f64, cx: &mut Cx<'_>) -> Option<Trial<Purpose>> {
        let State::Starting { before } = self.state else { return None };
        if !outcome.is_valid {
            return Some(self.attempt(Purpose::Start, outcome.rate));
        }
        match before {
            Some((rate, better)) if utility <= better => Some(self.explore(rate, cx)),
            _ => {
                self.state = State::Starting { before: Some((outcome.rate, utility)) };
                Some(self.attempt(Purpose::Start, Rate::from_bps(outcome.rate.as_bps().saturating_mul(2))))
            }
        }
    }

    fn learn_side(&mut self, n: usize, outcome: &Outcome<Purpose>, cx: &mut Cx<'_>) -> Option<Trial<Purpose>> {
        let x = outcome.rate.as_bps() as f64 / BPS_PER_MBPS;
        let found = outcome.is_valid.then(|| (x, self.config.utility(outcome)));
        let State::Learning { first, .. } = &mut self.state else { return None };
        if n == 0 {
            *first = found;
            return None;
        }
        let base = match (*first, found) {
            (Some((x1, u1)), Some((x2, u2))) => {
                // Both trials are within the limits. If both were made at a limit, the next pair lies around it and one
                // of them differs.
                let step = if x1 == x2 { 0.0 } else { self.step_mbps((u1 - u2) / (x1 - x2)) };
                Rate::from_bps((((x1 + x2) / 2.0 + step) * BPS_PER_MBPS) as u64)
            }
            _ => self.base,
        };
        Some(self.explore(base, cx))
    }
}

impl TrialLaw for Vivace {
    type Purpose = Purpose;

    fn begin(&mut self, first: Rate, cx: &mut Cx<'_>) -> Trial<Purpose> {
        match self.state {
            State::Starting { .. } => self.attempt(Purpose::Start, self.rate.max(first)),
            State::Learning { .. } => self.explore(self.base, cx),
        }
    }

    fn after(&mut self, last: Purpose, _cx: &mut Cx<'_>) -> Trial<Purpose> {
        match (self.state, last) {
            (State::Learning { higher_first, .. }, Purpose::Side(0)) => self.attempt_side(1, higher_first),
            (State::Learning { .. }, _) => self.attempt(Purpose::Wait, self.base),
            (State::Starting { .. }, _) => self.attempt(Purpose::Wait, self.rate),
        }
    }

    fn learn(&mut self, outcome: &Outcome<Purpose>, cx: &mut Cx<'_>) -> Option<Trial<Purpose>> {
        match outcome.purpose {
            Purpose::Start => {
                let utility = self.config.utility(outcome);
                self.learn_start(outcome, utility, cx)
            }
            Purpose::Side(n) => self.learn_side(n, outcome, cx),
            Purpose::Wait => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream, Time};

    fn law() -> Vivace {
        let mut law = Vivace::new(VivaceConfig {
            exponent: 0.9,
            latency: 900.0,
            loss: 11.35,
            epsilon: 0.05,
            theta: 1.0,
            omega: 0.05,
            omega_step: 0.1,
            gradient_filter: 0.01,
        });
        law.base = Rate::from_mbps(100);
        law
    }

    fn outcome_of(mbps: u64, rtt_gradient: f64, loss: f64) -> Outcome<Purpose> {
        let rate = Rate::from_mbps(mbps);
        Outcome { purpose: Purpose::Wait, rate, loss, rtt_gradient, is_valid: true }
    }

    #[test]
    fn the_utility_weighs_rate_delay_and_loss_and_ignores_small_changes_of_delay() {
        let utility = |outcome| law().config.utility(&outcome);
        assert!((utility(outcome_of(10, 0.009, 0.0)) - libm::pow(10.0, 0.9)).abs() < 1e-9);
        assert!((utility(outcome_of(10, 0.02, 0.0)) - (libm::pow(10.0, 0.9) - 180.0)).abs() < 1e-9);
        assert!((utility(outcome_of(10, 0.0, 0.1)) - (libm::pow(10.0, 0.9) - 11.35)).abs() < 1e-9);
    }

    /// A gradient of 0.6 is amplified by 1, 2, 3, 5, 7 and 9; after the direction turns, the factors start again.
    #[test]
    fn moves_in_one_direction_are_amplified_until_it_turns() {
        let mut law = law();
        let moves: Vec<f64> = [0.6; 6].into_iter().chain([-0.6; 2]).map(|gradient| law.step_mbps(gradient)).collect();
        for (found, factor) in moves.iter().zip([1.0, 2.0, 3.0, 5.0, 7.0, 9.0, -1.0, -2.0]) {
            // 5 % of 100 Mb/s is the first boundary; 0.6 * 9 = 5.4 exceeds it.
            let expected: f64 = 0.6 * factor;
            assert!((found - expected.min(5.0)).abs() < 1e-9, "{moves:?}");
        }
    }

    #[test]
    fn the_boundary_of_moves_grows_while_they_exceed_it_and_returns_with_the_turn() {
        let mut law = law();
        let moves: Vec<f64> = [1e4; 4].into_iter().chain([-1e4; 2]).map(|gradient| law.step_mbps(gradient)).collect();
        for (found, expected) in moves.iter().zip([5.0, 15.0, 25.0, 35.0, -5.0, -15.0]) {
            assert!((found - expected).abs() < 1e-9, "{moves:?}");
        }
    }

    #[test]
    fn a_pair_of_trials_moves_the_rate_towards_the_better_one() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: 960, srtt: None, min_rtt: None, rng: &mut rng };
        let mut law = law();
        let first = law.explore(Rate::from_mbps(100), &mut cx);
        let second = law.after(first.purpose, &mut cx);
        let mut rates = [first.rate, second.rate].map(Rate::as_bps);
        rates.sort_unstable();
        assert_eq!(rates, [95_000_000, 105_000_000]);
        let mut learn = |trial: Trial<Purpose>, loss| {
            let outcome = Outcome { purpose: trial.purpose, rate: trial.rate, ..outcome_of(100, 0.0, loss) };
            law.learn(&outcome, &mut cx)
        };
        assert!(learn(first, 0.0).is_none());
        assert!(learn(second, 0.0).is_some());
        // The slope of x^0.9 at 100 Mb/s is 0.9 * 100^-0.1 = 0.568.
        assert!((law.base.as_bps() as f64 / 1e6 - 100.568).abs() < 0.001, "{}", law.base);
    }

    /// The interface limits both trials to 100 Mb/s. The next pair is 100 and 95 Mb/s, and its gradient counts.
    #[test]
    fn a_rate_beyond_the_interface_recovers() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: 960, srtt: None, min_rtt: None, rng: &mut rng };
        let mut law = law();
        let line_rate = Rate::from_mbps(100);
        let mut pair = |law: &mut Vivace, base| {
            let first = law.explore(base, &mut cx);
            let second = law.after(first.purpose, &mut cx);
            for trial in [first, second] {
                let rate = trial.rate.min(line_rate);
                // 10 Mb/s pass.
                let loss = 1.0 - 10e6 / rate.as_bps() as f64;
                law.learn(&Outcome { purpose: trial.purpose, rate, ..outcome_of(100, 0.0, loss) }, &mut cx);
            }
            law.base
        };
        let next = pair(&mut law, Rate::from_mbps(120));
        assert_eq!(next, line_rate);
        assert!(pair(&mut law, next) < Rate::from_mbps(98));
    }
}
