//! Simulated time: instants and durations in whole picoseconds.
//!
//! A byte at 100 Gb/s takes 80 ps, so picoseconds represent every serialization time of current links exactly. 64 bits
//! of them last 213 days.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

/// An instant: picoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dur(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const NEVER: Time = Time(u64::MAX);

    /// Creates the instant `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Creates the instant `ns` nanoseconds after the start.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * PS_PER_NS)
    }

    /// Returns the picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the start, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }

    /// Returns `self + span`, or [`Time::NEVER`] on overflow.
    pub const fn saturating_add(self, span: Dur) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Dur {
    /// A duration of zero.
    pub const ZERO: Dur = Dur(0);
    /// The longest duration; stands for "unbounded".
    pub const MAX: Dur = Dur(u64::MAX);

    /// Creates a duration of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Dur {
        Dur(ps)
    }

    /// Creates a duration of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Dur {
        Dur(ns * PS_PER_NS)
    }

    /// Creates a duration of `us` microseconds.
    pub const fn from_us(us: u64) -> Dur {
        Dur(us * PS_PER_US)
    }

    /// Creates a duration of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Dur {
        Dur(ms * PS_PER_MS)
    }

    /// Creates a duration of `s` seconds.
    pub const fn from_secs(s: u64) -> Dur {
        Dur(s * PS_PER_S)
    }

    /// Returns `seconds` rounded to whole picoseconds; negative values and NaN become zero.
    pub fn from_secs_f64(seconds: f64) -> Dur {
        Dur((seconds * PS_PER_S as f64 + 0.5) as u64)
    }

    /// Returns the whole picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the seconds, for control laws and reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Returns true if the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns this duration times `factor`, to the nearest picosecond; negative results and NaN become zero.
    pub fn scaled(self, factor: f64) -> Dur {
        Dur((self.0 as f64 * factor + 0.5) as u64)
    }

    /// Returns `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Dur) -> Dur {
        Dur(self.0.saturating_sub(other.0))
    }

    /// Returns `self * factor`, or [`Dur::MAX`] on overflow.
    pub const fn saturating_mul(self, factor: u64) -> Dur {
        Dur(self.0.saturating_mul(factor))
    }

    /// Returns the absolute difference of two durations.
    pub const fn abs_diff(self, other: Dur) -> Dur {
        Dur(self.0.abs_diff(other.0))
    }
}

impl Add<Dur> for Time {
    type Output = Time;
    fn add(self, span: Dur) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign<Dur> for Time {
    fn add_assign(&mut self, span: Dur) {
        self.0 += span.0;
    }
}

impl Sub<Time> for Time {
    type Output = Dur;
    /// Returns the time from `earlier` to `self`. Simulated time only moves forward, so debug builds assert the order.
    fn sub(self, earlier: Time) -> Dur {
        debug_assert!(self >= earlier, "time ran backwards: {earlier} to {self}");
        Dur(self.0.wrapping_sub(earlier.0))
    }
}

impl Add for Dur {
    type Output = Dur;
    fn add(self, other: Dur) -> Dur {
        Dur(self.0 + other.0)
    }
}

impl AddAssign for Dur {
    fn add_assign(&mut self, other: Dur) {
        self.0 += other.0;
    }
}

impl Mul<u64> for Dur {
    type Output = Dur;
    fn mul(self, factor: u64) -> Dur {
        Dur(self.0 * factor)
    }
}

impl Div<u64> for Dur {
    type Output = Dur;
    fn div(self, divisor: u64) -> Dur {
        Dur(self.0 / divisor)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER { f.write_str("never") } else { Dur(self.0).fmt(f) }
    }
}

impl fmt::Display for Dur {
    /// Writes the duration in the largest unit with a value of at least one, as in `44ms` or `1.5us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0 => return f.write_str("0s"),
            ps if ps >= PS_PER_S => (PS_PER_S, "s"),
            ps if ps >= PS_PER_MS => (PS_PER_MS, "ms"),
            ps if ps >= PS_PER_US => (PS_PER_US, "us"),
            ps if ps >= PS_PER_NS => (PS_PER_NS, "ns"),
            _ => (1, "ps"),
        };
        write!(f, "{}{}", self.0 as f64 / unit as f64, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_print_in_the_largest_fitting_unit() {
        assert_eq!(Dur::from_ms(44).to_string(), "44ms");
        assert_eq!(Dur::from_ns(1_500).to_string(), "1.5us");
        assert_eq!(Dur::ZERO.to_string(), "0s");
        assert_eq!(Time::NEVER.to_string(), "never");
    }

    #[test]
    fn seconds_round_to_the_nearest_picosecond() {
        assert_eq!(Dur::from_secs_f64(0.2), Dur::from_ms(200));
        assert_eq!(Dur::from_secs_f64(-1.0), Dur::ZERO);
    }

    #[test]
    fn instants_and_spans_add_up() {
        let start = Time::from_ns(7);
        assert_eq!((start + Dur::from_us(3)) - start, Dur::from_us(3));
        assert_eq!(start.saturating_since(Time::from_ns(9)), Dur::ZERO);
        assert_eq!(Time::NEVER.saturating_add(Dur::from_secs(1)), Time::NEVER);
    }
}
