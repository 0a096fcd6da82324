//! Exact decimal numbers, as people and scripts write them.

/// Maximum number of significant digits that are kept. A double has 17, and 24 of them times any unit fit 128 bits.
const MOST_DIGITS: usize = 24;
/// The largest power of ten below 2^128.
const MOST_SCALE: u32 = 38;
/// Rounding to whole steps may change a number by one part in this many.
const COARSEST: u128 = 500;

/// A non-negative decimal number, `digits / 10^scale`. It is exact up to 24 significant digits and rounded beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u128,
    scale: u32,
}

/// The error for a text that is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberError {
    /// Contains something other than digits, a point and a power of ten.
    Malformed,
    /// Above 10^24.
    TooLarge,
}

/// The error for a number that is not a whole number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepError {
    /// The nearest whole number of steps differs by more than 0.2 %.
    TooFine,
    /// The number of steps does not fit 64 bits.
    TooLarge,
}

impl Decimal {
    /// One.
    pub const ONE: Decimal = Decimal { digits: 1, scale: 0 };

    /// Parses digits with at most one point, which has digits on both sides, and an optional power of ten.
    pub(super) fn parse(text: &str) -> Result<Decimal, NumberError> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, power_of_ten(power)?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return Err(NumberError::Malformed),
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
            return Err(NumberError::Malformed);
        }
        let all = format!("{whole}{fraction}");
        // Keep only the digits that the number needs: zeros at either end only move the point.
        let significant = all.trim_end_matches('0');
        let dropped = all.len() - significant.len();
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Ok(Decimal { digits: 0, scale: 0 });
        }
        let kept = &significant[..significant.len().min(MOST_DIGITS)];
        let rounds_up = significant.as_bytes().get(kept.len()).is_some_and(|digit| *digit >= b'5');
        let digits = kept.parse::<u128>().map_err(|_| NumberError::Malformed)? + u128::from(rounds_up);
        let places = |length: usize| i64::try_from(length).unwrap_or(i64::MAX / 4);
        let scale = places(fraction.len()) - places(dropped) - places(significant.len() - kept.len()) - exponent;
        match u32::try_from(scale) {
            Ok(scale) => Ok(Decimal { digits, scale }),
            Err(_) if scale > 0 => Ok(Decimal { digits, scale: u32::MAX }),
            Err(_) => {
                let zeros = u32::try_from(-scale).ok().and_then(|power| 10_u128.checked_pow(power));
                let digits = zeros.and_then(|zeros| digits.checked_mul(zeros));
                let most = 10_u128.pow(MOST_DIGITS as u32);
                let digits = digits.filter(|digits| *digits <= most).ok_or(NumberError::TooLarge)?;
                Ok(Decimal { digits, scale: 0 })
            }
        }
    }

    /// Returns `self * size`, rounded to a whole number of steps. Scripts print 0.1 s + 0.2 s as 0.30000000000000004s.
    pub(super) fn steps(self, size: u64) -> Result<u64, StepError> {
        if self.digits == 0 {
            return Ok(0);
        }
        // The product is below 10^24 * 10^14 and fits 128 bits.
        let product = self.digits * u128::from(size);
        let divisor = power(self.scale).ok_or(StepError::TooFine)?;
        let (below, rest) = (product / divisor, product % divisor);
        let (steps, off) = if rest >= divisor - rest { (below + 1, divisor - rest) } else { (below, rest) };
        if off > product / COARSEST {
            return Err(StepError::TooFine);
        }
        u64::try_from(steps).map_err(|_| StepError::TooLarge)
    }

    /// Returns `self * numerator / denominator`, rounded; `None` if an intermediate exceeds 128 bits or the result is
    /// below one.
    pub(super) fn ratio(self, numerator: u128, denominator: u128) -> Option<u128> {
        let divisor = power(self.scale)?.checked_mul(denominator)?;
        let product = self.digits.checked_mul(numerator)?;
        Some((product.checked_add(divisor / 2)?) / divisor).filter(|whole| *whole > 0)
    }

    /// Returns `self * value`, rounded down.
    pub fn of(self, value: u64) -> u64 {
        let Decimal { mut digits, mut scale } = self;
        // Twenty digits suffice here and leave room for the product.
        while scale > 0 && (digits > u128::from(u64::MAX) || scale > MOST_SCALE) {
            (digits, scale) = (digits / 10, scale - 1);
            if digits == 0 {
                return 0;
            }
        }
        let divisor = power(scale).unwrap_or(u128::MAX);
        let product = digits.checked_mul(u128::from(value));
        product.and_then(|product| u64::try_from(product / divisor).ok()).unwrap_or(u64::MAX)
    }

    /// Returns the float nearest to this number divided by `10^shift`.
    pub(super) fn nearest(self, shift: u32) -> f64 {
        // The digits and a power of ten, read as one decimal literal, round only once.
        format!("{}e-{}", self.digits, u64::from(self.scale) + u64::from(shift)).parse().unwrap_or(f64::NAN)
    }
}

/// Parses the power after the `e`: signed digits, clipped far beyond any quantity.
fn power_of_ten(text: &str) -> Result<i64, NumberError> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberError::Malformed);
    }
    Ok(sign * digits.parse::<i64>().unwrap_or(i64::MAX).min(1_000_000_000_000))
}

fn power(scale: u32) -> Option<u128> {
    if scale > MOST_SCALE { None } else { Some(10_u128.pow(scale)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_beyond_those_that_are_kept_round_the_last() {
        let long = Decimal::parse("0.1000000000000000055511151231257827021181583404541015625");
        assert_eq!(long, Ok(Decimal { digits: 100_000_000_000_000_005_551_115, scale: 24 }));
        assert_eq!(Decimal::parse("1.9999999999999999999999999").map(|it| it.steps(1)), Ok(Ok(2)));
    }

    #[test]
    fn malformed_and_too_large_numbers_are_distinguished() {
        for text in ["", ".5", "5.", "1.2.3", "1e", "1e+-3", "0x1", "\u{661}"] {
            assert_eq!(Decimal::parse(text), Err(NumberError::Malformed), "{text}");
        }
        for text in ["1e25", "1e99", "1e99999999999999999999", &"9".repeat(400)] {
            assert_eq!(Decimal::parse(text), Err(NumberError::TooLarge), "{text}");
        }
        assert_eq!(Decimal::parse("1e-99999999999999999999").map(|it| it.steps(1)), Ok(Err(StepError::TooFine)));
        assert_eq!(Decimal::parse("0e99"), Ok(Decimal { digits: 0, scale: 0 }));
    }

    #[test]
    fn a_multiple_is_rounded_down_whatever_the_digits() {
        let of = |text: &str, value| Decimal::parse(text).expect(text).of(value);
        assert_eq!((of("0.5", 1001), of("0.30000000000000004", 10), of("1e-30", u64::MAX)), (500, 3, 0));
        assert_eq!((of("0.333333333333333333333333", 9), of("1e20", u64::MAX), of("1e24", 1)), (2, u64::MAX, u64::MAX));
    }
}
