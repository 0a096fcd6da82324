//! Bit-exact sums of a term that is added many times.
//!
//! The load that all hosts offer to a link is a sum with a term for each pair of hosts. Results depend on its last bit,
//! and a million hosts have 10^12 pairs. While a sum stays between two powers of two, each further addition of a term
//! raises it by the same step: the term rounded to the spacing of numbers in that range. One multiplication therefore
//! replaces all of these additions.

/// A term and the number of times it is added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Repeated {
    /// The term, 0 or more.
    pub(super) term: f64,
    /// The number of additions.
    pub(super) times: u64,
}

impl Repeated {
    /// Returns the result of adding the term to `sum`, which is 0 or more, one time after the other.
    pub(super) fn added_to(self, mut sum: f64) -> f64 {
        let mut left = self.times;
        while left > 0 {
            let before = sum;
            sum += self.term;
            left -= 1;
            if sum == before {
                return sum;
            }
            // A tie is rounded to even. Only the first addition in a range can start from an odd number.
            let limit = next_power_of_two(sum);
            let step = (sum + self.term) - sum;
            if limit == next_power_of_two(before) && step > 0.0 && sum + step < limit {
                // All of these numbers are multiples of the spacing below `limit`, so the arithmetic is exact.
                let steps = (((limit - sum) / step) as u64).saturating_sub(1).min(left);
                sum += steps as f64 * step;
                left -= steps;
            }
        }
        sum
    }
}

/// Returns the smallest power of two above `value`, which is finite and positive.
fn next_power_of_two(value: f64) -> f64 {
    const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
    f64::from_bits(((value.to_bits() >> MANTISSA) + 1) << MANTISSA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    fn one_by_one(sum: f64, term: f64, times: u64) -> f64 {
        (0..times).fold(sum, |sum, _| sum + term)
    }

    #[test]
    fn the_sum_is_that_of_single_additions_to_the_bit() {
        let mut stream = Stream::new(1, Domain::Test, 0);
        for round in 0..2_000 {
            let scale = 2.0_f64.powi(stream.below(120) as i32 - 60);
            let term = match round % 4 {
                0 => 1e9 / (1 + stream.below(1000)) as f64,
                1 => scale * stream.unit_above_zero(),
                // Few bits, so that ties occur.
                2 => scale * (1 + stream.below(64)) as f64,
                _ => scale * (f64::EPSILON / 2.0) * (1 + stream.below(8)) as f64,
            };
            let sum = match round % 3 {
                0 => 0.0,
                1 => scale * (1.0 + f64::EPSILON * stream.below(4) as f64),
                _ => 1e9 * stream.unit_above_zero(),
            };
            let times = stream.below(3_000);
            let expected = one_by_one(sum, term, times);
            assert_eq!(
                Repeated { term, times }.added_to(sum).to_bits(),
                expected.to_bits(),
                "{sum:e} + {times} x {term:e}"
            );
        }
    }

    #[test]
    fn a_term_that_is_lost_in_the_sum_changes_nothing_however_often() {
        assert_eq!(Repeated { term: 1.0, times: u64::MAX }.added_to(1e300), 1e300);
        assert_eq!(Repeated { term: 0.0, times: u64::MAX }.added_to(3.0), 3.0);
        // Half a spacing: the odd number rounds up once, and the even one stays.
        let odd = 1.0 + f64::EPSILON;
        assert_eq!(Repeated { term: f64::EPSILON / 2.0, times: 1 << 60 }.added_to(odd), 1.0 + 2.0 * f64::EPSILON);
    }

    #[test]
    fn the_pairs_of_a_million_hosts_take_a_few_steps() {
        let sum = Repeated { term: 1e9 / 3.0, times: 1_000_000_000_000 }.added_to(0.0);
        assert!((sum / (1e21 / 3.0) - 1.0).abs() < 1e-4, "{sum:e}");
        assert_eq!(Repeated { term: 2.5e8, times: 1 << 20 }.added_to(0.0), 2.5e8 * f64::from(1 << 20));
    }
}
