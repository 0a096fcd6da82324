//! Data rates, and the time that bytes take at a rate.

use crate::time::Dur;
use std::fmt;

/// A data rate in whole bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// Fractional bits of [`ByteTime`].
const FRACTION_BITS: u32 = 14;

impl Rate {
    /// Creates a rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }

    /// Creates a rate of `mbps` megabits (10^6 bits) per second.
    pub const fn from_mbps(mbps: u64) -> Rate {
        Rate(mbps * 1_000_000)
    }

    /// Creates a rate of `gbps` gigabits (10^9 bits) per second.
    pub const fn from_gbps(gbps: u64) -> Rate {
        Rate(gbps * 1_000_000_000)
    }

    /// Returns the rate in bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Returns the time that `bytes` take at this rate, to the nearest picosecond; [`Dur::MAX`] at rate zero.
    pub fn time_for(self, bytes: u64) -> Dur {
        if self.0 == 0 {
            return Dur::MAX;
        }
        let ps = (u128::from(bytes) * 8_000_000_000_000 + u128::from(self.0 / 2)) / u128::from(self.0);
        Dur::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Returns the rate at which `bytes` pass in `span`, rounded down and saturating. A span of zero counts as a
    /// picosecond.
    pub fn of(bytes: u64, span: Dur) -> Rate {
        let bps = u128::from(bytes) * 8_000_000_000_000 / u128::from(span.as_ps().max(1));
        Rate(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    /// Returns this rate times `factor`, to the nearest bit per second; negative results and NaN become zero.
    pub fn scaled(self, factor: f64) -> Rate {
        Rate((self.0 as f64 * factor + 0.5) as u64)
    }

    /// Returns the whole bytes that pass at this rate in `span`.
    pub fn bytes_in(self, span: Dur) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.as_ps()) / 8_000_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns this rate as a precomputed time per byte, for the hot path.
    ///
    /// # Panics
    /// If the rate is below 1 kb/s.
    pub fn byte_time(self) -> ByteTime {
        assert!(self.0 >= 1_000, "a link needs at least 1 kb/s, not {self}");
        let scaled = (8_000_000_000_000u128 << FRACTION_BITS) / u128::from(self.0);
        ByteTime(scaled as u64)
    }
}

/// The time of one byte on a link, in fixed point. It is exact if the rate divides 8 * 10^12; otherwise it is too small
/// by less than 2^-14 ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteTime(u64);

impl ByteTime {
    /// Returns the time of `bytes` bytes, rounded down to a picosecond. `bytes` is a packet's size, at most 65,535.
    #[inline(always)]
    pub fn of(self, bytes: u64) -> Dur {
        Dur::from_ps((bytes * self.0) >> FRACTION_BITS)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            bps if bps >= 1_000_000_000 => (1e9, "Gb/s"),
            bps if bps >= 1_000_000 => (1e6, "Mb/s"),
            bps if bps >= 1_000 => (1e3, "kb/s"),
            _ => (1.0, "b/s"),
        };
        write!(f, "{} {}", self.0 as f64 / unit, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_at_a_round_rate_is_exact() {
        assert_eq!(Rate::from_gbps(100).byte_time().of(1), Dur::from_ps(80));
        assert_eq!(Rate::from_gbps(1).byte_time().of(1500), Dur::from_us(12));
        assert_eq!(Rate::from_bps(1_000).byte_time().of(65_535), Dur::from_ms(65_535 * 8));
    }

    #[test]
    fn fixed_point_stays_within_a_picosecond_of_the_exact_time() {
        for mbps in [1112, 2223, 3334, 14445, 39_999] {
            let rate = Rate::from_mbps(mbps);
            for bytes in [1, 40, 552, 1500, 9000] {
                let error = rate.time_for(bytes).abs_diff(rate.byte_time().of(bytes));
                assert!(error <= Dur::from_ps(1), "{rate}, {bytes} B: {error}");
            }
        }
    }

    #[test]
    fn bytes_and_time_invert_each_other() {
        let rate = Rate::from_mbps(800);
        assert_eq!(rate.bytes_in(rate.time_for(12_345)), 12_345);
        assert_eq!(Rate::from_bps(0).time_for(1), Dur::MAX);
        assert_eq!(Rate::of(12_345, rate.time_for(12_345)), rate);
        assert_eq!(Rate::of(u64::MAX, Dur::from_ps(1)), Rate::from_bps(u64::MAX));
        assert_eq!((rate.scaled(0.25), rate.scaled(f64::NAN)), (Rate::from_mbps(200), Rate::from_bps(0)));
    }
}
