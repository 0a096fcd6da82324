//! Effects of a link on its packets, beyond rate, delay and independent loss: bursts of loss, corruption, a policer,
//! jitter, reordering and duplicates.
//!
//! Loss, corruption and the policer are decided as a packet arrives at the queue. Delays and duplicates are decided as
//! it arrives at the far end, where packets that are held back wait in a stage (`engine/stages.rs`). Each effect draws
//! from a stream of its own for each link, one or two numbers for each packet. The n-th packet of a link therefore has
//! the same fate under every scheme.

use crate::routing::network::Loss;
use crate::wire::loss::RandomLoss;
use crate::wire::packet::Packet;
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use std::sync::Arc;

/// The effects of one direction of a cable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Bursts of loss.
    pub burst_loss: Option<BurstLoss>,
    /// The probability that a packet is corrupted, and therefore lost at the far end.
    pub corruption: f64,
    /// The policer in front of the queue.
    pub policer: Option<Policer>,
    /// Variation of the delay.
    pub jitter: Option<Jitter>,
    /// Packets that later ones overtake.
    pub reordering: Option<Reordering>,
    /// The probability that a packet arrives twice.
    pub duplication: f64,
}

/// The loss model of Gilbert and Elliott: a link is good or bad, and loses packets with a probability that depends on
/// its state. Each packet finds the state that the packets before it left.
///
/// Source: E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", 1963; names as in Linux netem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLoss {
    /// `p`: the probability that the link turns bad after a packet.
    pub to_bad: f64,
    /// `r`: the probability that the link turns good again after a packet.
    pub to_good: f64,
    /// `1-h`: the probability of loss while the link is bad.
    pub loss_in_bad: f64,
    /// `1-k`: the probability of loss while the link is good.
    pub loss_in_good: f64,
}

/// A policer: a token bucket that drops packets for which it has too few tokens. The bucket is full at the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policer {
    /// The rate at which the bucket fills.
    pub rate: Rate,
    /// The size of the bucket, bytes on the wire.
    pub burst_bytes: u64,
}

/// Random variation of a link's delay, with mean zero. The sum of delay and variation is never below zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// The size of the variation; [`Distribution`] gives its meaning.
    pub spread: Dur,
    /// The distribution.
    pub distribution: Distribution,
    /// The correlation of the normal variables behind the delays of consecutive packets, 0 to 1.
    pub correlation: f64,
    /// If true, a packet with a shorter delay overtakes others. If false, it waits for the packets before it.
    pub reorders: bool,
}

/// The distribution of jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Uniform from minus to plus the spread.
    Uniform,
    /// Normal with the spread as its standard deviation, cut off at four of them.
    Normal,
    /// Pareto with shape 3, shifted to mean zero, with the spread as its standard deviation. The highest 0.01 % of its
    /// values are cut off.
    Pareto,
}

/// Single packets that are held back, so that later packets overtake them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// The probability that a packet is held back.
    pub probability: f64,
    /// The number of later packets that overtake it, at least one.
    pub distance: u64,
    /// The longest time for which it is held back, if fewer packets follow.
    pub within: Dur,
}

/// The shape of the Pareto distribution, the mean and the standard deviation of the distribution from 1 on.
const SHAPE: f64 = 3.0;
const PARETO_MEAN: f64 = SHAPE / (SHAPE - 1.0);
const PARETO_DEVIATION: f64 = 0.866_025_403_784_438_6;
/// The probability at which the tail of the Pareto distribution is cut off.
const TAIL: f64 = 1e-4;
/// The largest normal variable, in standard deviations.
const CUT: f64 = 4.0;

impl Effects {
    /// Returns true if packets pass a stage at the far end.
    pub fn has_stage(&self) -> bool {
        self.jitter.is_some() || self.reordering.is_some() || self.duplication > 0.0
    }

    /// The shortest delay that a packet can have on a link with this mean delay.
    pub fn shortest(&self, delay: Dur) -> Dur {
        delay.saturating_sub(self.jitter.map_or(Dur::ZERO, |jitter| jitter.spread.scaled(jitter.distribution.lead())))
    }
}

impl Distribution {
    /// The distance of the lowest value from the mean, in spreads.
    fn lead(self) -> f64 {
        match self {
            Distribution::Uniform => 1.0,
            Distribution::Normal => CUT,
            Distribution::Pareto => (PARETO_MEAN - 1.0) / PARETO_DEVIATION,
        }
    }

    /// The value that corresponds to a standard normal variable, in spreads.
    fn value(self, normal: f64) -> f64 {
        let above = 0.5 * libm::erfc(normal / std::f64::consts::SQRT_2);
        match self {
            Distribution::Uniform => 1.0 - 2.0 * above,
            Distribution::Normal => normal.clamp(-CUT, CUT),
            Distribution::Pareto => (libm::pow(above.max(TAIL), -1.0 / SHAPE) - PARETO_MEAN) / PARETO_DEVIATION,
        }
    }
}

/// The effects on packets that arrive at the queue of a link.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    burst: Option<(BurstLoss, Stream)>,
    is_bad: bool,
    corruption: Option<RandomLoss>,
    policer: Option<Policer>,
    /// The time at which the policer's bucket is full again.
    full_at: Time,
}

/// The outcome for a packet at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Passes,
    /// The policer dropped it.
    Dropped,
    /// It is lost on the wire.
    Lost,
}

impl Gate {
    /// The gate of link number `link`.
    pub(crate) fn new(effects: &Effects, seed: u64, link: u64) -> Gate {
        let corruption = Stream::new(seed, Domain::Corruption, link);
        Gate {
            burst: effects.burst_loss.map(|burst| (burst, Stream::new(seed, Domain::BurstLoss, link))),
            is_bad: false,
            corruption: RandomLoss::of(Loss::of_any(effects.corruption), corruption),
            policer: effects.policer,
            full_at: Time::ZERO,
        }
    }

    /// Decides about a packet that arrives at `now`. Every effect draws for every packet, whatever the others decide.
    pub(crate) fn pass(&mut self, now: Time, packet: &Packet) -> Passage {
        let is_corrupt = self.corruption.as_mut().is_some_and(|corruption| corruption.takes(packet));
        let is_lost = self.burst_takes();
        if !self.conforms(now, packet.wire_bytes()) {
            Passage::Dropped
        } else if is_corrupt || is_lost {
            Passage::Lost
        } else {
            Passage::Passes
        }
    }

    fn burst_takes(&mut self) -> bool {
        let Some((burst, rng)) = &mut self.burst else { return false };
        let (lost, turns) = (rng.unit(), rng.unit());
        let (loss, turning) = match self.is_bad {
            true => (burst.loss_in_bad, burst.to_good),
            false => (burst.loss_in_good, burst.to_bad),
        };
        self.is_bad ^= turns < turning;
        lost < loss
    }

    /// Takes the tokens of a packet, if there are enough. The state is a time instead of a number of tokens (the virtual
    /// scheduling algorithm of ITU-T I.371, annex A).
    fn conforms(&mut self, now: Time, bytes: u64) -> bool {
        let Some(Policer { rate, burst_bytes }) = self.policer else { return true };
        let full_at = self.full_at.max(now) + rate.time_for(bytes);
        let conforms = full_at <= now + rate.time_for(burst_bytes);
        if conforms {
            self.full_at = full_at;
        }
        conforms
    }
}

/// The random delays and duplicates of packets at the far end of a link.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    pub(crate) effects: Arc<Effects>,
    /// The mean delay of the link.
    delay: Dur,
    /// The normal variable of the last packet.
    normal: f64,
    has_begun: bool,
    jitter: Stream,
    reordering: Stream,
    duplication: Stream,
}

impl Draws {
    /// The draws on link number `link`, which has the mean delay `delay`.
    pub(crate) fn new(effects: &Arc<Effects>, delay: Dur, seed: u64, link: u64) -> Draws {
        Draws {
            effects: Arc::clone(effects),
            delay,
            normal: 0.0,
            has_begun: false,
            jitter: Stream::new(seed, Domain::Jitter, link),
            reordering: Stream::new(seed, Domain::Reordering, link),
            duplication: Stream::new(seed, Domain::Duplication, link),
        }
    }

    /// Changes the mean delay.
    pub(crate) fn set_delay(&mut self, delay: Dur) {
        self.delay = delay;
    }

    /// The time for which the next packet is delayed beyond the shortest delay.
    pub(crate) fn extra(&mut self) -> Dur {
        let Some(jitter) = self.effects.jitter else { return Dur::ZERO };
        // Box and Muller's transform: two uniform numbers give one normal one.
        let radius = libm::sqrt(-2.0 * libm::log(self.jitter.unit_above_zero()));
        let fresh = radius * libm::cos(std::f64::consts::TAU * self.jitter.unit());
        // Correlating normal variables keeps the distribution, whatever its shape (a Gaussian copula).
        let rho = if self.has_begun { jitter.correlation } else { 0.0 };
        self.normal = rho * self.normal + libm::sqrt(1.0 - rho * rho) * fresh;
        self.has_begun = true;
        let value = jitter.distribution.value(self.normal);
        let (size, earlier) = (jitter.spread.scaled(value.abs()), value < 0.0);
        let delay = if earlier { self.delay.saturating_sub(size) } else { self.delay + size };
        delay.saturating_sub(self.effects.shortest(self.delay))
    }

    /// Returns true if the next packet is held back.
    pub(crate) fn is_held(&mut self) -> Option<Reordering> {
        let reordering = self.effects.reordering?;
        (self.reordering.unit() < reordering.probability).then_some(reordering)
    }

    /// Returns true if the next packet arrives twice.
    pub(crate) fn is_doubled(&mut self) -> bool {
        self.effects.duplication > 0.0 && self.duplication.unit() < self.effects.duplication
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(jitter: Jitter, delay: Dur) -> Draws {
        Draws::new(&Arc::new(Effects { jitter: Some(jitter), ..Effects::default() }), delay, 1, 3)
    }

    /// The mean and the standard deviation of the delays of many packets, and the correlation of neighbours,
    /// milliseconds.
    fn moments(jitter: Jitter, delay: Dur) -> (f64, f64, f64) {
        let mut draws = draws(jitter, delay);
        let shortest = draws.effects.shortest(delay).as_secs_f64();
        let delays: Vec<_> = (0..200_000).map(|_| (shortest + draws.extra().as_secs_f64()) * 1e3).collect();
        let n = delays.len() as f64;
        let mean = delays.iter().sum::<f64>() / n;
        let variance = delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / n;
        let neighbours = delays.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n;
        (mean, variance.sqrt(), neighbours / variance)
    }

    #[test]
    fn jitter_keeps_the_mean_delay_and_has_the_deviation_of_its_distribution() {
        let spread = Dur::from_ms(5);
        for (distribution, deviation) in [
            (Distribution::Uniform, 5.0 / 3.0_f64.sqrt()),
            (Distribution::Normal, 5.0),
            // Without the highest 0.01 % of its values, the deviation is 4 % smaller.
            (Distribution::Pareto, 4.8),
        ] {
            let jitter = Jitter { spread, distribution, correlation: 0.0, reorders: true };
            let (mean, found, correlation) = moments(jitter, Dur::from_ms(50));
            assert!((mean - 50.0).abs() < 0.06, "{distribution:?}: mean {mean}");
            assert!((found / deviation - 1.0).abs() < 0.05, "{distribution:?}: deviation {found}");
            assert!(correlation.abs() < 0.012, "{distribution:?}: correlation {correlation}");
        }
    }

    #[test]
    fn correlated_jitter_has_the_same_distribution() {
        for distribution in [Distribution::Uniform, Distribution::Normal] {
            let independent = Jitter { spread: Dur::from_ms(5), distribution, correlation: 0.0, reorders: true };
            let (_, expected, _) = moments(independent, Dur::from_ms(50));
            let correlated = Jitter { correlation: 0.75, ..independent };
            let (mean, deviation, correlation) = moments(correlated, Dur::from_ms(50));
            assert!((mean - 50.0).abs() < 0.15 && (deviation / expected - 1.0).abs() < 0.02, "{mean}, {deviation}");
            // The correlation of uniform variables is 6 / pi asin(rho / 2), a little lower.
            assert!((0.72..0.77).contains(&correlation), "{correlation}");
        }
    }

    #[test]
    fn delays_never_fall_below_zero() {
        let jitter =
            Jitter { spread: Dur::from_ms(5), distribution: Distribution::Uniform, correlation: 0.0, reorders: false };
        let mut draws = draws(jitter, Dur::from_ms(1));
        assert_eq!(draws.effects.shortest(Dur::from_ms(1)), Dur::ZERO);
        let delays: Vec<_> = (0..1_000).map(|_| draws.extra()).collect();
        assert!(delays.contains(&Dur::ZERO) && delays.iter().all(|delay| *delay <= Dur::from_ms(6)));
    }

    #[test]
    fn bursts_have_the_length_and_the_share_of_the_model() {
        let burst = BurstLoss { to_bad: 0.01, to_good: 0.25, loss_in_bad: 1.0, loss_in_good: 0.0 };
        let effects = Effects { burst_loss: Some(burst), ..Effects::default() };
        let mut gate = Gate::new(&effects, 1, 3);
        let packet = Packet::example(0, 0, 1500, false);
        let losses: Vec<_> = (0..400_000).map(|_| gate.pass(Time::ZERO, &packet) == Passage::Lost).collect();
        let lost = losses.iter().filter(|&&lost| lost).count() as f64;
        let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // The link is bad for p / (p + r) of all packets, and 1 / r packets at a time.
        assert!((lost / 400_000.0 / (0.01 / 0.26) - 1.0).abs() < 0.06, "{lost}");
        assert!((lost / bursts / 4.0 - 1.0).abs() < 0.06, "{}", lost / bursts);
    }

    #[test]
    fn a_policer_passes_its_burst_at_once_and_then_its_rate() {
        let policer = Policer { rate: Rate::from_mbps(12), burst_bytes: 15_000 };
        let effects = Effects { policer: Some(policer), ..Effects::default() };
        let mut gate = Gate::new(&effects, 1, 3);
        let packet = Packet::example(0, 0, 1500, false);
        // A packet every 100 us is 120 Mb/s, ten times the rate.
        let passed = |gate: &mut Gate, packets: u64, from: u64| {
            (0..packets)
                .filter(|&place| gate.pass(Time::from_ns((from + place) * 100_000), &packet) == Passage::Passes)
                .count()
        };
        assert_eq!(passed(&mut gate, 10, 0), 10);
        // From then on, one packet passes in each millisecond.
        assert_eq!(passed(&mut gate, 1_000, 10), 100);
        // After a pause, the bucket is full again, and no fuller.
        assert_eq!(passed(&mut gate, 10, 10_000), 10);
        assert!(passed(&mut gate, 10, 10_010) <= 2);
    }
}
