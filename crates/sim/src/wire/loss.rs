//! Random loss on a wire: each packet is lost with the same probability, independently of others.
//!
//! The distance to the next loss is drawn, not the fate of each packet: the number of packets between losses is
//! geometrically distributed. A packet costs one decrement, however small the probability.

use crate::routing::network::Loss;
use crate::wire::packet::{Flags, Packet};
use sparelane_core::{Domain, Stream};

/// The random losses of one direction of a cable, in order.
#[derive(Clone, Debug)]
pub(crate) struct RandomLoss {
    /// Packets that pass before the next loss.
    passing: u64,
    /// The natural logarithm of the probability that a packet passes.
    log_pass: f64,
    data_only: bool,
    rng: Stream,
}

impl RandomLoss {
    /// The losses on link number `link`, or `None` if nothing is ever lost.
    pub(crate) fn new(loss: Loss, seed: u64, link: u64) -> Option<RandomLoss> {
        RandomLoss::of(loss, Stream::new(seed, Domain::Loss, link))
    }

    /// Losses that are drawn from `rng`, or `None` if nothing is ever lost.
    pub(crate) fn of(loss: Loss, rng: Stream) -> Option<RandomLoss> {
        let Loss { probability, data_only } = loss;
        (probability > 0.0).then(|| {
            let mut random = RandomLoss { passing: 0, log_pass: libm::log1p(-probability), data_only, rng };
            random.draw();
            random
        })
    }

    /// Changes the loss from now on, with draws from the same stream.
    pub(crate) fn change(&mut self, loss: Loss) {
        self.data_only = loss.data_only;
        self.log_pass = libm::log1p(-loss.probability);
        if loss.probability > 0.0 {
            self.draw();
        } else {
            self.passing = u64::MAX;
        }
    }

    /// Returns true if this packet is lost.
    #[inline]
    pub(crate) fn takes(&mut self, packet: &Packet) -> bool {
        if self.data_only && packet.flags().kind() != Flags::DATA {
            return false;
        }
        if self.passing > 0 {
            self.passing -= 1;
            return false;
        }
        self.draw();
        true
    }

    /// Draws a distance by inversion: at least k packets pass with probability (1 - p)^k, so k is the whole part of ln
    /// U / ln(1 - p), with U uniform in (0, 1].
    #[cold]
    fn draw(&mut self) {
        self.passing = (libm::log(self.rng.unit_above_zero()) / self.log_pass) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::packet::{Fields, NO_BLOCKS};

    fn packet(flags: Flags) -> Packet {
        Packet::new(Fields {
            flow: 0,
            seq: 0,
            trigger: 0,
            route: 0,
            blocks: NO_BLOCKS,
            wire_bytes: 40,
            flags,
            class: 0,
        })
    }

    fn losses(probability: f64, data_only: bool) -> Option<RandomLoss> {
        RandomLoss::new(Loss { probability, data_only }, 1, 7)
    }

    /// The first `count` distances between losses.
    fn distances(probability: f64, count: usize) -> Vec<u64> {
        let mut losses = losses(probability, false).expect("losses");
        let next = |losses: &mut RandomLoss| {
            losses.draw();
            losses.passing
        };
        (0..count).map(|_| next(&mut losses)).collect()
    }

    /// Mean (1 - p) / p and variance (1 - p) / p^2, each within five standard errors; the geometric's fourth central
    /// moment is at most 9.2 variances squared at these probabilities.
    #[test]
    fn distances_are_geometric() {
        for probability in [0.1, 1e-3, 1e-8] {
            let count = 200_000;
            let distances = distances(probability, count);
            let n = count as f64;
            let mean = distances.iter().map(|&distance| distance as f64).sum::<f64>() / n;
            let variance = distances.iter().map(|&distance| (distance as f64 - mean).powi(2)).sum::<f64>() / n;
            let (expected, spread) = ((1.0 - probability) / probability, (1.0 - probability) / probability.powi(2));
            assert!((mean - expected).abs() < 5.0 * (spread / n).sqrt(), "{probability}: mean {mean}");
            assert!((variance / spread - 1.0).abs() < 5.0 * (8.2 / n).sqrt(), "{probability}: variance {variance}");
        }
    }

    /// Each distance has its own probability: at one in ten, a tenth of them is 0, and nine hundredths are 1.
    #[test]
    fn every_distance_is_as_likely_as_it_should_be() {
        let distances = distances(0.1, 200_000);
        for distance in [0, 1, 5, 20] {
            let share = distances.iter().filter(|&&drawn| drawn == distance).count() as f64 / 200_000.0;
            let expected = 0.1 * 0.9_f64.powi(distance as i32);
            assert!((share - expected).abs() < 5.0 * (expected / 200_000.0).sqrt(), "{distance}: {share}");
        }
    }

    #[test]
    fn as_many_packets_pass_as_were_drawn() {
        let mut losses = losses(0.01, false).expect("losses");
        for _ in 0..1_000 {
            let passing = losses.passing;
            assert!((0..passing).all(|_| !losses.takes(&packet(Flags::ACK))));
            assert!(losses.takes(&packet(Flags::ACK)));
        }
    }

    #[test]
    fn nothing_is_lost_at_zero_and_everything_at_one() {
        assert!(losses(0.0, false).is_none());
        let mut all = losses(1.0, false).expect("losses");
        assert!((0..10_000).all(|_| all.takes(&packet(Flags::DATA))));
    }

    #[test]
    fn where_only_data_is_lost_nothing_else_is_or_counts() {
        let mut losses = losses(0.01, true).expect("losses");
        let passing = losses.passing;
        for flags in [Flags::ACK, Flags::SYN, Flags::SYN_ACK] {
            assert!((0..10_000).all(|_| !losses.takes(&packet(flags))));
        }
        assert_eq!(losses.passing, passing);
        let resent = Flags::DATA.with_if(true, Flags::RETRANSMISSION);
        assert!((0..passing).all(|_| !losses.takes(&packet(resent))));
        assert!(losses.takes(&packet(resent)));
    }
}
