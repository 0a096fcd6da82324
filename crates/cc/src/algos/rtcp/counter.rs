//! The counter H of RTCP and its target rate gamma.
//!
//! Eq. (1) lets H grow at gamma and fall at x. Delivered bytes are subtracted at their acknowledgment. Two rules give
//! gamma, with w for the weight, U for the rate at which x = 1, and M for maxRate of eq. (10).
//!
//! # Printed
//! Each acknowledgment computes gamma by eq. (10), and gamma stays constant until the next one:
//! - M if H = 0;
//! - half of its last value if H >= w;
//! - U (w / H - 1) otherwise. M does not limit this case: with H = w / 4, gamma is three times U.
//!
//! H can exceed w. A pause at a large gamma leaves a large H, and the flow then ignores congestion until deliveries
//! have used it up. H counts whole bytes: less than one byte is an empty counter, so that gamma is less than w times U.
//!
//! # Coupled
//! Eq. (6) makes gamma a function of H at every instant, so eqs. (1) and (6) are solved together. M limits gamma, and H
//! never exceeds w. With v = 1 - H / w, the missing share, the solution between acknowledgments is:
//! - If w / H - 1 >= M / U, that is v >= v_M = M / (M + U), H grows linearly at M.
//! - Otherwise dH/dt = U (w / H - 1) becomes (1 / v - 1) dv = -U / w dt, so ln v - v falls by U / w per second. The
//!   new v is the root of s - e^s = c with s = ln v < 0. The left side is concave and increasing, so Newton's method
//!   approaches the root from below without overshoot after its first step. It squares the error in each step.
//!
//! This rule has no counterpart of "gamma / 2 if H >= w": H reaches w only after a long pause, and gamma is then 0.

use sparelane_core::{Dur, Rate};

/// The remaining error of v at which Newton's method stops.
const PRECISION: f64 = 1e-12;

/// The rule that gives the target rate gamma.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Eq. (10) as printed, computed at each acknowledgment.
    Printed,
    /// Eqs. (1) and (6), solved together.
    Coupled,
}

/// H of eq. (1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    rule: Target,
    bytes: f64,
    /// Gamma of the latest acknowledgment in bytes per second. Only the printed rule uses it.
    printed_bytes_s: f64,
    weight_bytes: f64,
    /// U: the rate at which x = 1, in bytes per second.
    unit_bytes_s: f64,
    /// M: the largest target in bytes per second.
    max_bytes_s: f64,
}

impl Counter {
    /// Creates an empty counter.
    pub fn new(rule: Target, weight_bytes: f64, unit: Rate, max: Rate) -> Counter {
        let bytes_s = |rate: Rate| rate.as_bps() as f64 / 8.0;
        let (unit_bytes_s, max_bytes_s) = (bytes_s(unit), bytes_s(max));
        Counter { rule, bytes: 0.0, printed_bytes_s: max_bytes_s, weight_bytes, unit_bytes_s, max_bytes_s }
    }

    /// Sets the weight. H stays, but never exceeds the weight of the coupled rule.
    pub fn set_weight(&mut self, weight_bytes: f64) {
        self.weight_bytes = weight_bytes;
        if self.rule == Target::Coupled {
            self.bytes = self.bytes.min(weight_bytes);
        }
    }

    /// Returns H in bytes.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Returns gamma in bytes per second.
    pub fn target_bytes_s(&self) -> f64 {
        match self.rule {
            Target::Printed => self.printed_bytes_s,
            Target::Coupled if self.bytes == 0.0 => self.max_bytes_s,
            Target::Coupled => self.unlimited_bytes_s().clamp(0.0, self.max_bytes_s),
        }
    }

    /// Returns gamma of eq. (6) in bytes per second; negative if H exceeds the weight.
    fn unlimited_bytes_s(&self) -> f64 {
        self.unit_bytes_s * (self.weight_bytes / self.bytes - 1.0)
    }

    /// Takes an acknowledgment of `delivered_bytes`, `time` after the previous one.
    pub fn update(&mut self, time: Dur, delivered_bytes: u64) {
        match self.rule {
            Target::Printed => self.bytes += self.printed_bytes_s * time.as_secs_f64(),
            Target::Coupled => self.pass(time),
        }
        self.bytes = (self.bytes - delivered_bytes as f64).max(0.0);
        if self.rule == Target::Printed {
            self.set_printed_target();
        }
    }

    /// Applies eq. (10).
    fn set_printed_target(&mut self) {
        if self.bytes < 1.0 {
            self.bytes = 0.0;
            self.printed_bytes_s = self.max_bytes_s;
        } else if self.bytes >= self.weight_bytes {
            self.printed_bytes_s /= 2.0;
        } else {
            self.printed_bytes_s = self.unlimited_bytes_s();
        }
    }

    /// Advances H by a time without deliveries, by the coupled rule.
    fn pass(&mut self, time: Dur) {
        let mut left_s = time.as_secs_f64();
        let straight_to = self.weight_bytes * self.unit_bytes_s / (self.unit_bytes_s + self.max_bytes_s);
        // Linear growth at M comes first, as long as gamma is capped.
        if self.bytes < straight_to {
            let needed_s = (straight_to - self.bytes) / self.max_bytes_s;
            if left_s <= needed_s {
                self.bytes += self.max_bytes_s * left_s;
                return;
            }
            self.bytes = straight_to;
            left_s -= needed_s;
        }
        let missing = 1.0 - self.bytes / self.weight_bytes;
        if missing > 0.0 {
            self.bytes =
                self.weight_bytes * (1.0 - still_missing(missing, left_s * self.unit_bytes_s / self.weight_bytes));
        }
    }
}

/// Returns v after ln v - v has fallen by `fall`.
fn still_missing(missing: f64, fall: f64) -> f64 {
    let start = libm::log(missing);
    let goal = start - missing - fall;
    let (mut s, mut v) = (start, missing);
    // Ten steps suffice from any start; the bound guards against rounding.
    for _ in 0..20 {
        let step = (s - v - goal) / (1.0 - v);
        s -= step;
        v = libm::exp(s);
        if step.abs() < PRECISION {
            break;
        }
    }
    v.clamp(0.0, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Rate = Rate::from_gbps(1);
    const WEIGHT: f64 = 24_000.0;

    fn counter(bytes: f64) -> Counter {
        Counter { bytes, ..Counter::new(Target::Coupled, WEIGHT, LINE, LINE) }
    }

    fn after(mut counter: Counter, time: Dur) -> f64 {
        counter.update(time, 0);
        counter.bytes()
    }

    /// Returns a counter under the printed rule, after an acknowledgment that left it at `bytes`.
    fn printed(bytes: f64) -> Counter {
        let mut counter = Counter { bytes, ..Counter::new(Target::Printed, WEIGHT, LINE, LINE) };
        counter.update(Dur::ZERO, 0);
        counter
    }

    /// Returns gamma as a multiple of the line rate.
    fn gamma(counter: Counter) -> f64 {
        counter.target_bytes_s() / 125e6
    }

    /// Integrates eqs. (1) and (6) in many small steps, to check the closed form.
    fn by_small_steps(mut counter: Counter, time: Dur) -> f64 {
        let steps = 200_000;
        for _ in 0..steps {
            counter.bytes += counter.target_bytes_s() * time.as_secs_f64() / f64::from(steps);
        }
        counter.bytes
    }

    #[test]
    fn the_counter_gains_at_the_largest_target_until_the_weight_is_near() {
        // 125 bytes/us up to w / 2.
        assert_eq!(after(counter(0.0), Dur::from_us(50)), 6_250.0);
        assert!((after(counter(0.0), Dur::from_us(96)) - 12_000.0).abs() < 1e-6);
        assert_eq!(counter(0.0).target_bytes_s(), 125e6);
        assert_eq!(counter(16_000.0).target_bytes_s(), 62.5e6);
    }

    #[test]
    fn the_closed_form_equals_many_small_steps() {
        let faster = Counter::new(Target::Coupled, WEIGHT, Rate::from_mbps(100), LINE);
        for from in [counter(0.0), counter(11_000.0), counter(12_000.0), counter(20_000.0), faster] {
            for us in [1, 40, 150, 400, 2_000] {
                let (exact, close) = (after(from, Dur::from_us(us)), by_small_steps(from, Dur::from_us(us)));
                assert!((exact / close - 1.0).abs() < 2e-5, "{from:?} after {us} us: {exact}, {close}");
            }
        }
    }

    #[test]
    fn splitting_an_interval_changes_nothing() {
        let mut pieces = counter(3_000.0);
        (0..1000).for_each(|_| pieces.update(Dur::from_ns(300), 0));
        assert!((pieces.bytes() - after(counter(3_000.0), Dur::from_us(300))).abs() < 1e-6, "{pieces:?}");
    }

    #[test]
    fn a_pause_of_any_length_leaves_at_most_the_weight() {
        for from in [0.0, 12_000.0, 23_999.999, WEIGHT] {
            let mut last = from;
            for time in [Dur::from_us(1), Dur::from_ms(1), Dur::from_secs(1), Dur::from_secs(100_000)] {
                let now = after(counter(from), time);
                assert!(now.is_finite() && now >= last && now <= WEIGHT, "{from} after {time:?}: {now}");
                last = now;
            }
            assert_eq!(last, WEIGHT);
        }
        assert_eq!(counter(WEIGHT).target_bytes_s(), 0.0);
    }

    #[test]
    fn a_full_counter_follows_deliveries_at_once() {
        let mut full = counter(0.0);
        full.update(Dur::from_secs(1), 10_000);
        assert_eq!(full.bytes(), 14_000.0);
        full.update(Dur::ZERO, 1_000_000);
        assert_eq!((full.bytes(), full.target_bytes_s()), (0.0, 125e6));
    }

    /// Eq. (10): w / H - 1 = 24,000 / 6,000 - 1. maxRate is the target of an empty counter only.
    #[test]
    fn the_printed_target_is_three_unit_rates_at_a_quarter_of_the_weight() {
        assert_eq!(gamma(printed(6_000.0)), 3.0);
        assert_eq!(gamma(printed(0.0)), 1.0);
        assert_eq!(gamma(printed(12_000.0)), 1.0);
        // Solved with eq. (1) at every instant, gamma is limited by maxRate.
        assert_eq!(gamma(counter(6_000.0)), 1.0);
    }

    /// Eq. (10), second case: half of gamma at H = w, instead of the zero of eq. (6).
    #[test]
    fn the_printed_target_is_halved_at_each_acknowledgment_while_the_counter_is_at_least_the_weight() {
        let mut at_weight = printed(6_000.0);
        // 18,000 bytes at 3 * 125 bytes/us take 48 us.
        at_weight.update(Dur::from_us(48), 0);
        assert_eq!((at_weight.bytes(), gamma(at_weight)), (24_000.0, 1.5));
        at_weight.update(Dur::ZERO, 0);
        assert_eq!(gamma(at_weight), 0.75);
        at_weight.update(Dur::ZERO, 12_000);
        assert_eq!(gamma(at_weight), 1.0, "below the weight, gamma depends on H alone again");
        assert_eq!(gamma(counter(WEIGHT)), 0.0);
    }

    /// Eq. (1): 50 us at the 125 bytes/us of an empty counter, less 1,000 delivered bytes.
    #[test]
    fn fifty_microseconds_and_one_segment_leave_5250_bytes_by_either_rule() {
        for mut counter in [counter(0.0), printed(0.0)] {
            counter.update(Dur::from_us(50), 1_000);
            assert_eq!(counter.bytes(), 5_250.0);
        }
    }

    #[test]
    fn the_printed_target_is_constant_between_acknowledgments() {
        let mut counter = printed(6_000.0);
        counter.update(Dur::from_us(100), 0);
        assert_eq!(counter.bytes(), 6_000.0 + 3.0 * 12_500.0, "H exceeds the weight");
        counter.update(Dur::ZERO, 43_499);
        assert_eq!((counter.bytes(), gamma(counter)), (1.0, 23_999.0));
    }

    #[test]
    fn less_than_one_byte_is_an_empty_counter_by_the_printed_rule() {
        let counter = printed(0.5);
        assert_eq!((counter.bytes(), gamma(counter)), (0.0, 1.0));
    }
}
