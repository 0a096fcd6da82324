//! Simulated time: instants and durations in whole picoseconds.
//!
//! A byte at 100 Gb/s lasts 80 ps, so picoseconds keep every serialization time of today's links
//! exact; 64 bits of them last 213 days.

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
    /// Later than any event: "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// The instant `ns` nanoseconds after the start.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * PS_PER_NS)
    }

    /// Picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// The time since `earlier`, or zero where `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, or [`Time::NEVER`] where that would overflow.
    pub const fn saturating_add(self, span: Dur) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Dur {
    /// No time at all.
    pub const ZERO: Dur = Dur(0);
    /// The longest span: stands for "unbounded".
    pub const MAX: Dur = Dur(u64::MAX);

    /// `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Dur {
        Dur(ps)
    }

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Dur {
        Dur(ns * PS_PER_NS)
    }

    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Dur {
        Dur(us * PS_PER_US)
    }

    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Dur {
        Dur(ms * PS_PER_MS)
    }

    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Dur {
        Dur(s * PS_PER_S)
    }

    /// The nearest whole number of picoseconds to `seconds`; negative and not-a-number become zero.
    pub fn from_secs_f64(seconds: f64) -> Dur {
        Dur((seconds * PS_PER_S as f64 + 0.5) as u64)
    }

    /// Whole picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds, for laws that need a float and for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// This span times `factor`, to the nearest picosecond; negative and not-a-number become zero.
    pub fn scaled(self, factor: f64) -> Dur {
        Dur((self.0 as f64 * factor + 0.5) as u64)
    }

    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Dur) -> Dur {
        Dur(self.0.saturating_sub(other.0))
    }

    /// `self * factor`, or [`Dur::MAX`] where that would overflow.
    pub const fn saturating_mul(self, factor: u64) -> Dur {
        Dur(self.0.saturating_mul(factor))
    }

    /// The distance between two spans.
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
    /// The span from `earlier` to `self`; time runs forward, so a negative span is a broken law.
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
    /// The largest unit that leaves a whole number before the point, as in `44ms` or `1.5us`.
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
