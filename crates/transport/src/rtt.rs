//! Round-trip time estimation and the retransmission timeout (RFC 6298).

use crate::config::RtoConfig;
use sparelane_core::Dur;

/// The least timeout of the first data after a SYN was lost (RFC 6298 rule 5.7).
const AFTER_LOST_SYN: Dur = Dur::from_secs(3);

/// The estimator of one connection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RttEstimator {
    backoff: u32,
    srtt: Dur,
    rttvar: Dur,
    min_rtt: Dur,
    config: RtoConfig,
}

impl RttEstimator {
    /// An estimator without samples.
    pub fn new(config: RtoConfig) -> RttEstimator {
        RttEstimator { config, srtt: Dur::ZERO, rttvar: Dur::ZERO, min_rtt: Dur::MAX, backoff: 0 }
    }

    /// Takes a sample (RFC 6298 section 2, alpha 1/8 and beta 1/4). It ends the backoff (section 5).
    /// Returns the retransmission timeout then.
    #[inline]
    pub fn sample(&mut self, rtt: Dur) -> Dur {
        if self.min_rtt == Dur::MAX {
            (self.srtt, self.rttvar) = (rtt, rtt / 2);
        } else {
            let error = self.srtt.abs_diff(rtt);
            self.rttvar = Dur::from_ps(self.rttvar.as_ps() - self.rttvar.as_ps() / 4 + error.as_ps() / 4);
            self.srtt = Dur::from_ps(self.srtt.as_ps() - self.srtt.as_ps() / 8 + rtt.as_ps() / 8);
        }
        self.min_rtt = self.min_rtt.min(rtt);
        self.backoff = 0;
        self.sampled().min(self.config.max)
    }

    /// The timeout that the samples ask for.
    #[inline]
    fn sampled(&self) -> Dur {
        (self.srtt + (self.rttvar * 4).max(self.config.variance_min)).max(self.config.min)
    }

    /// The smoothed round-trip time, once there is a sample.
    #[inline]
    pub fn srtt(&self) -> Option<Dur> {
        (self.min_rtt != Dur::MAX).then_some(self.srtt)
    }

    /// The smallest sample, once there is one.
    #[inline]
    pub fn min_rtt(&self) -> Option<Dur> {
        (self.min_rtt != Dur::MAX).then_some(self.min_rtt)
    }

    /// The retransmission timeout, backed off.
    #[inline]
    pub fn rto(&self) -> Dur {
        let unsampled = self.min_rtt == Dur::MAX;
        self.back_off(if unsampled { self.config.initial.max(self.config.min) } else { self.sampled() })
    }

    /// The timeout of the SYN, backed off.
    pub fn syn_timeout(&self) -> Dur {
        self.back_off(self.config.syn)
    }

    #[inline]
    fn back_off(&self, timeout: Dur) -> Dur {
        if self.backoff == 0 { timeout } else { timeout.saturating_mul(1 << self.backoff) }.min(self.config.max)
    }

    /// A timer fired: the next one waits twice as long (RFC 6298 rule 5.5).
    pub fn timed_out(&mut self) {
        self.backoff = (self.backoff + 1).min(31);
    }

    /// What was outstanding is acknowledged, by an answer to the copy that was sent last.
    #[inline]
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The connection is open, after so many timeouts of the SYN (RFC 6298 rule 5.7).
    pub fn opened(&mut self, syn_timeouts: u32) {
        self.backoff = 0;
        if syn_timeouts > 0 {
            self.config.initial = self.config.initial.max(AFTER_LOST_SYN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator(min: Dur, variance_min: Dur) -> RttEstimator {
        RttEstimator::new(RtoConfig { min, variance_min, ..RtoConfig::default() })
    }

    #[test]
    fn the_first_sample_gives_three_round_trips() {
        let mut rtt = estimator(Dur::ZERO, Dur::ZERO);
        assert_eq!(rtt.rto(), Dur::from_secs(1));
        rtt.sample(Dur::from_ms(100));
        assert_eq!(rtt.rto(), Dur::from_ms(300));
    }

    /// RFC 6298 section 2.3, by hand: the variance is 3/4 of 50 ms and 1/4 of 100, the mean 7/8 of 100 ms and 1/8 of 200.
    #[test]
    fn the_second_sample_moves_the_mean_by_an_eighth_and_the_variance_by_a_quarter() {
        let mut rtt = estimator(Dur::ZERO, Dur::ZERO);
        rtt.sample(Dur::from_ms(100));
        assert_eq!(rtt.sample(Dur::from_ms(200)), Dur::from_us(112_500 + 4 * 62_500));
        assert_eq!(rtt.srtt(), Some(Dur::from_us(112_500)));
        // Shorter by as much, and counted as much.
        let mut rtt = estimator(Dur::ZERO, Dur::ZERO);
        rtt.sample(Dur::from_ms(100));
        assert_eq!(rtt.sample(Dur::ZERO), Dur::from_us(87_500 + 4 * 62_500));
    }

    #[test]
    fn steady_samples_bring_the_timeout_down_to_its_floors() {
        let mut floored = estimator(Dur::from_ms(200), Dur::ZERO);
        let mut varied = estimator(Dur::ZERO, Dur::from_ms(200));
        for _ in 0..200 {
            floored.sample(Dur::from_ms(50));
            varied.sample(Dur::from_ms(50));
        }
        assert_eq!(floored.rto(), Dur::from_ms(200));
        assert_eq!(varied.rto(), Dur::from_ms(250));
    }

    #[test]
    fn every_timeout_doubles_the_next_until_the_ceiling() {
        let mut rtt = estimator(Dur::from_ms(200), Dur::ZERO);
        rtt.sample(Dur::from_ms(10));
        rtt.timed_out();
        assert_eq!(rtt.rto(), Dur::from_ms(400));
        for _ in 0..100 {
            rtt.timed_out();
        }
        assert_eq!(rtt.rto(), Dur::from_secs(60));
        rtt.sample(Dur::from_ms(10));
        assert_eq!(rtt.rto(), Dur::from_ms(200));
    }
}
