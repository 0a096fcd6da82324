//! The rate adaptor: turns estimates into the average rate of the next p-streams (section II), separate from probing
//! (section IV-E).

use sparelane_core::{Dur, Rate};

/// The constants of the filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    /// tau: the time in which the rate converges to more bandwidth.
    pub tau: Dur,
    /// eta: the number of updates in which it converges to less.
    pub eta: f64,
    /// gamma: the number of p-streams per update.
    pub gamma: u32,
    /// True if l is the duration of all p-streams of an update instead of the last one.
    pub spans_all: bool,
}

/// The adaptor of one connection. Rates are on the wire, in bits per second.
#[derive(Clone, Debug)]
pub struct Adaptor {
    filter: Filter,
    lowest: f64,
    highest: f64,
    /// R_avg.
    rate: f64,
    /// The sum and number of estimates since the last update, and the total duration of their p-streams.
    sum: f64,
    count: u32,
    duration: Dur,
}

impl Adaptor {
    /// Creates an adaptor whose rate starts at `initial` and stays between `lowest` and `highest`.
    pub fn new(filter: Filter, initial: Rate, lowest: Rate, highest: Rate) -> Adaptor {
        let [rate, lowest, highest] = [initial, lowest, highest].map(|rate| rate.as_bps() as f64);
        Adaptor { filter, lowest, highest, rate: rate.clamp(lowest, highest), sum: 0.0, count: 0, duration: Dur::ZERO }
    }

    /// Returns R_avg.
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.rate as u64)
    }

    /// Sets R_avg within its bounds and discards the estimates since the last update.
    pub fn set(&mut self, rate: Rate) {
        self.update(rate.as_bps() as f64);
    }

    fn update(&mut self, rate: f64) {
        self.rate = rate.clamp(self.lowest, self.highest);
        (self.sum, self.count, self.duration) = (0.0, 0, Dur::ZERO);
    }

    /// Takes the estimate ABest of a p-stream that lasted `duration`. After gamma p-streams, or as soon as they have
    /// lasted tau, R_avg is updated with their mean. Upwards: R_avg + l / tau (ABest - R_avg). Downwards: R_avg -
    /// (R_avg - ABest) / eta. l is the duration of the last p-stream, "the just-acked p-stream", or of all of them
    /// (section II).
    pub fn take(&mut self, estimate: Rate, duration: Dur) {
        self.sum += estimate.as_bps() as f64;
        self.count += 1;
        self.duration += duration;
        if self.count < self.filter.gamma && self.duration < self.filter.tau {
            return;
        }
        let estimate = self.sum / f64::from(self.count);
        let gain = if estimate >= self.rate {
            let span = if self.filter.spans_all { self.duration } else { duration };
            span.as_secs_f64() / self.filter.tau.as_secs_f64()
        } else {
            1.0 / self.filter.eta
        };
        self.update(self.rate + gain * (estimate - self.rate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adaptor(gamma: u32) -> Adaptor {
        let filter = Filter { tau: Dur::from_ms(10), eta: 3.0, gamma, spans_all: false };
        Adaptor::new(filter, Rate::from_gbps(4), Rate::from_bps(100_000), Rate::from_gbps(10))
    }

    fn after(gamma: u32, estimates: &[u64]) -> u64 {
        let mut adaptor = adaptor(gamma);
        estimates.iter().for_each(|&gbps| adaptor.take(Rate::from_gbps(gbps), Dur::from_ms(1)));
        adaptor.rate().as_bps() / 1_000_000
    }

    #[test]
    fn the_rate_follows_upwards_by_time_and_downwards_by_updates() {
        assert_eq!(after(1, &[8]), 4_400, "a tenth of tau closes a tenth of the gap of 4");
        assert_eq!(after(1, &[1]), 3_000, "an update closes a third of the gap of 3");
    }

    #[test]
    fn gamma_streams_make_one_update_with_their_mean() {
        assert_eq!(after(3, &[8, 8]), 4_000);
        assert_eq!(after(3, &[6, 8, 10]), 4_400, "a tenth of the gap to the mean of 8");
        assert_eq!(after(3, &[1, 4, 1]), 3_333, "a third of the gap to the mean of 2");
    }

    /// Section II: "it takes about tau time units for R_avg to converge to an increased avail-bw", with one update per
    /// p-stream. With one update per gamma p-streams it takes gamma times as long.
    #[test]
    fn the_rate_converges_in_gamma_times_tau() {
        for gamma in [1, 3] {
            let mut adaptor = adaptor(gamma);
            (0..30 * gamma).for_each(|_| adaptor.take(Rate::from_gbps(8), Dur::from_ms(10) / 30));
            let left = (8e9 - adaptor.rate().as_bps() as f64) / 4e9;
            assert!((0.33..0.38).contains(&left), "{left} of the gap is left after gamma * tau, with gamma = {gamma}");
        }
    }

    #[test]
    fn with_the_duration_of_all_p_streams_the_rate_converges_in_tau_for_any_gamma() {
        for gamma in [1, 3] {
            let mut adaptor = adaptor(gamma);
            adaptor.filter.spans_all = true;
            (0..30).for_each(|_| adaptor.take(Rate::from_gbps(8), Dur::from_ms(10) / 30));
            let left = (8e9 - adaptor.rate().as_bps() as f64) / 4e9;
            assert!((0.33..0.38).contains(&left), "{left} of the gap is left after tau, with gamma = {gamma}");
        }
    }

    /// The gain has no bound, as printed.
    #[test]
    fn a_stream_of_at_least_tau_updates_the_rate_at_once() {
        let mut adaptor = adaptor(3);
        adaptor.take(Rate::from_gbps(5), Dur::from_ms(20));
        assert_eq!(adaptor.rate(), Rate::from_gbps(6), "4 + 2 * (5 - 4)");
    }

    #[test]
    fn the_rate_stays_within_its_bounds() {
        let mut adaptor = adaptor(1);
        adaptor.set(Rate::from_gbps(1000));
        assert_eq!(adaptor.rate(), Rate::from_gbps(10));
        adaptor.set(Rate::from_bps(1));
        assert_eq!(adaptor.rate(), Rate::from_bps(100_000));
    }
}
