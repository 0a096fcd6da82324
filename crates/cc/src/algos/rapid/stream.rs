//! The p-stream generator: computes the gap before each packet (section II).

use sparelane_core::{Dur, Rate};

/// The shape of a p-stream: a number of rates, each `spread` times the previous one, with a number of packets at each.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Each rate relative to the stream's average, rising. A stream lasts as long as its packets take at the average
    /// rate, so the average is the harmonic mean of the rates.
    multiples: Vec<f64>,
    per_rate: u32,
}

impl Shape {
    /// Creates a shape of `rates` (N_r) rates that rise by the factor `spread` (s), with `per_rate` (N_p) packets
    /// each.
    pub fn new(rates: u32, per_rate: u32, spread: f64) -> Shape {
        let powers: Vec<f64> = (0..rates).map(|index| libm::pow(spread, f64::from(index))).collect();
        let lowest = powers.iter().map(|power| 1.0 / power).sum::<f64>() / f64::from(rates);
        Shape { multiples: powers.iter().map(|power| power * lowest).collect(), per_rate }
    }

    /// Returns the number of packets in one stream (N).
    pub fn packets(&self) -> u32 {
        self.multiples.len() as u32 * self.per_rate
    }

    /// Returns the rate that packet `index` of a stream probes, given the stream's average rate.
    pub fn rate(&self, index: u32, average: Rate) -> Rate {
        average.scaled(self.multiples[(index / self.per_rate) as usize])
    }

    /// Returns the gap before a packet of `wire_bytes` that probes `rate`: g_s = P / R.
    pub fn gap(wire_bytes: u64, rate: Rate) -> Dur {
        rate.time_for(wire_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fig. 2a, with the spread from the authors' logs: 2^(1/5).
    #[test]
    fn four_rates_are_spread_about_their_harmonic_mean() {
        let shape = Shape::new(4, 16, libm::pow(2.0, 0.2));
        assert_eq!(shape.packets(), 64);
        let average = Rate::from_gbps(1);
        let rates = [0, 15, 16, 32, 48, 63].map(|index| shape.rate(index, average).as_bps() / 100_000);
        assert_eq!(rates, [8220, 8220, 9442, 10846, 12459, 12459]);
    }

    #[test]
    fn a_stream_lasts_as_long_as_its_packets_at_the_average_rate() {
        let shape = Shape::new(4, 16, 1.2);
        let average = Rate::from_gbps(10);
        let gaps = (0..64).map(|index| Shape::gap(9000, shape.rate(index, average)).as_ps());
        let total: u64 = gaps.sum();
        let expected = average.time_for(64 * 9000).as_ps();
        assert!(total.abs_diff(expected) <= 64, "{total} ps, and at the average {expected} ps");
    }
}
