//! Round-trip time estimation and the retransmission timeout (RFC 6298).

use crate::config::RtoConfig;
use sparelane_core::Dur;

/// The minimum RTO of the first data after a lost SYN (RFC 6298 rule 5.7).
const AFTER_LOST_SYN: Dur = Dur::from_secs(3);

/// The round-trip time estimator of one connection.
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
    /// Creates an estimator without samples.
    pub fn new(config: RtoConfig) -> RttEstimator {
        RttEstimator { config, srtt: Dur::ZERO, rttvar: Dur::ZERO, min_rtt: Dur::MAX, backoff: 0 }
    }

    /// Adds a sample (RFC 6298 rules 2.2 and 2.3, alpha = 1/8 and beta = 1/4), which also ends the backoff (section 5).
    /// Returns the new RTO.
    #[inline]
    pub fn sample(&mut self, rtt: Dur) -> Dur {
        if self.min_rtt == Dur::MAX {
            // Rule 2.2: SRTT = R, RTTVAR = R/2.
            (self.srtt, self.rttvar) = (rtt, rtt / 2);
        } else {
            // Rule 2.3, RTTVAR before SRTT: RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|, SRTT = 7/8 SRTT + 1/8 R.
            let error = self.srtt.abs_diff(rtt);
            self.rttvar = Dur::from_ps(self.rttvar.as_ps() - self.rttvar.as_ps() / 4 + error.as_ps() / 4);
            self.srtt = Dur::from_ps(self.srtt.as_ps() - self.srtt.as_ps() / 8 + rtt.as_ps() / 8);
        }
        self.min_rtt = self.min_rtt.min(rtt);
        self.backoff = 0;
        self.sampled().min(self.config.max)
    }

    /// Computes the RTO from the samples, without backoff (RFC 6298 rules 2.3 and 2.4).
    #[inline]
    fn sampled(&self) -> Dur {
        (self.srtt + (self.rttvar * 4).max(self.config.variance_min)).max(self.config.min)
    }

    /// Returns the smoothed round-trip time, or `None` before the first sample.
    #[inline]
    pub fn srtt(&self) -> Option<Dur> {
        (self.min_rtt != Dur::MAX).then_some(self.srtt)
    }

    /// Returns the smallest sample, or `None` before the first sample.
    #[inline]
    pub fn min_rtt(&self) -> Option<Dur> {
        (self.min_rtt != Dur::MAX).then_some(self.min_rtt)
    }

    /// Returns the RTO, including backoff.
    #[inline]
    pub fn rto(&self) -> Dur {
        let unsampled = self.min_rtt == Dur::MAX;
        self.back_off(if unsampled { self.config.initial.max(self.config.min) } else { self.sampled() })
    }

    /// Returns the timeout of the SYN, including backoff.
    pub fn syn_timeout(&self) -> Dur {
        self.back_off(self.config.syn)
    }

    #[inline]
    fn back_off(&self, timeout: Dur) -> Dur {
        if self.backoff == 0 { timeout } else { timeout.saturating_mul(1 << self.backoff) }.min(self.config.max)
    }

    /// Doubles the next timeout after the timer expired (RFC 6298 rule 5.5).
    pub fn timed_out(&mut self) {
        self.backoff = (self.backoff + 1).min(31);
    }

    /// Returns true if the timer expired since the last progress.
    pub fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// Ends the backoff without a sample, after an acknowledgment of the last copy sent.
    #[inline]
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Resets the backoff when the connection opens, after `syn_timeouts` timeouts of the SYN. After a lost SYN the
    /// initial RTO is at least 3 s (RFC 6298 rule 5.7).
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

    /// RFC 6298 rule 2.3, computed by hand: RTTVAR = 3/4 · 50 ms + 1/4 · 100 ms and SRTT = 7/8 · 100 ms + 1/8 · 200 ms.
    #[test]
    fn the_second_sample_moves_the_mean_by_an_eighth_and_the_variance_by_a_quarter() {
        let mut rtt = estimator(Dur::ZERO, Dur::ZERO);
        rtt.sample(Dur::from_ms(100));
        assert_eq!(rtt.sample(Dur::from_ms(200)), Dur::from_us(112_500 + 4 * 62_500));
        assert_eq!(rtt.srtt(), Some(Dur::from_us(112_500)));
        // A sample that is shorter by the same amount has the same weight.
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
