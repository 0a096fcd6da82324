//! The counter H of RTCP, and how it follows its target between acknowledgments.
//!
//! Eq. (1) lets H grow at gamma and fall at x, and eq. (6) makes gamma a function of H, so both are solved together.
//! Delivered bytes are subtracted at their acknowledgment. In between, let w be the weight, U the rate at which x = 1,
//! M the largest target (maxRate of eq. 10), and v = 1 - H / w the missing share.
//!
//! - If w / H - 1 >= M / U, that is v >= v_M = M / (M + U), H grows linearly at M.
//! - Otherwise dH/dt = U (w / H - 1) becomes (1 / v - 1) dv = -U / w dt, so ln v - v falls by U / w per second. The
//!   new v is the root of s - e^s = c with s = ln v < 0. The left side is concave and increasing, so Newton's method
//!   approaches the root from below without overshoot after its first step. It squares the error in each step.
//!
//! H approaches w from below and never exceeds it. Eq. (10) has a case "gamma / 2 if H >= w", which softens the zero
//! of eq. (6) for counters that an update has carried too far. It is not needed here: at w itself, after a long pause,
//! gamma is 0.

use sparelane_core::{Dur, Rate};

/// The remaining error of v at which Newton's method stops.
const PRECISION: f64 = 1e-12;

/// H of eq. (1), between 0 and the weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    bytes: f64,
    weight_bytes: f64,
    /// U: the rate at which x = 1, in bytes per second.
    unit_bytes_s: f64,
    /// M: the largest target in bytes per second.
    max_bytes_s: f64,
}

impl Counter {
    /// Creates an empty counter.
    pub fn new(weight_bytes: f64, unit: Rate, max: Rate) -> Counter {
        let bytes_s = |rate: Rate| rate.as_bps() as f64 / 8.0;
        Counter { bytes: 0.0, weight_bytes, unit_bytes_s: bytes_s(unit), max_bytes_s: bytes_s(max) }
    }

    /// Returns H in bytes.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Returns gamma of eqs. (6) and (10) in bytes per second.
    pub fn target_bytes_s(&self) -> f64 {
        if self.bytes == 0.0 {
            return self.max_bytes_s;
        }
        (self.unit_bytes_s * (self.weight_bytes / self.bytes - 1.0)).clamp(0.0, self.max_bytes_s)
    }

    /// Advances H by a time without deliveries.
    pub fn pass(&mut self, time: Dur) {
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

    /// Subtracts delivered bytes.
    pub fn deliver(&mut self, bytes: u64) {
        self.bytes = (self.bytes - bytes as f64).max(0.0);
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
        Counter { bytes, ..Counter::new(WEIGHT, LINE, LINE) }
    }

    fn after(mut counter: Counter, time: Dur) -> f64 {
        counter.pass(time);
        counter.bytes()
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
        let faster = Counter::new(WEIGHT, Rate::from_mbps(100), LINE);
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
        (0..1000).for_each(|_| pieces.pass(Dur::from_ns(300)));
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
        full.pass(Dur::from_secs(1));
        full.deliver(10_000);
        assert_eq!(full.bytes(), 14_000.0);
        full.deliver(1_000_000);
        assert_eq!((full.bytes(), full.target_bytes_s()), (0.0, 125e6));
    }
}
