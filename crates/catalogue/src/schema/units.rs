//! Numbers with units, read exactly: `"0.1ms"` and `"1e-4s"` are 100,000,000 ps, without a float on the way.

use super::error::did_you_mean;
use sparelane_core::maths::mul_div;
use sparelane_core::{Dur, Rate};
use std::fmt;
use thiserror::Error;

/// A decimal number of zero or more, exact: `digits / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u64,
    scale: u32,
}

/// How large a queue or a flow is, before the scenario's bandwidth-delay product is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Packets, or segments.
    Packets(u64),
    /// A multiple of the scenario's bandwidth-delay product.
    Bdp(Decimal),
}

/// What a text with a unit fails on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnitError {
    /// A number alone.
    #[error("{0} needs a unit, as in \"{example}\"; allowed: {allowed}", example = .0.example, allowed = .0.allowed())]
    Missing(&'static Measure),
    /// A number with a unit that is not one of this measure.
    #[error("unknown unit \"{unit}\" for {measure}, as in \"{example}\"; allowed: {allowed}{hint}",
        example = .measure.example, allowed = .measure.allowed(), hint = did_you_mean(.unit, .measure.names()))]
    Unknown {
        /// What was expected.
        measure: &'static Measure,
        /// The unit that was given.
        unit: String,
    },
    /// No number in front.
    #[error("not {0}, as in \"{example}\"; allowed: {allowed}", example = .0.example, allowed = .0.allowed())]
    NotANumber(&'static Measure),
    /// Below zero.
    #[error("{0} cannot be negative; allowed: 0 or more")]
    Negative(&'static Measure),
    /// Finer than the measure's smallest step.
    #[error("not a whole number of {0}")]
    Fraction(&'static str),
    /// More than 64 bits hold.
    #[error("too large for {0}; allowed: up to {most}", most = .0.most())]
    TooLarge(&'static Measure),
}

/// A kind of quantity: its units, each with its size in the smallest one.
#[derive(Debug, PartialEq, Eq)]
pub struct Measure {
    what: &'static str,
    example: &'static str,
    step: &'static str,
    units: &'static [(&'static str, u64)],
}

/// Spans of time, in picoseconds.
pub static TIME: Measure = Measure {
    what: "a time",
    example: "40ms",
    step: "picoseconds",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
    ],
};

/// Data rates, in bits per second.
pub static RATE: Measure = Measure {
    what: "a rate",
    example: "100Mbps",
    step: "bits per second",
    units: &[
        ("bps", 1),
        ("kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
        ("b/s", 1),
        ("kb/s", 1_000),
        ("Mb/s", 1_000_000),
        ("Gb/s", 1_000_000_000),
        ("Tb/s", 1_000_000_000_000),
    ],
};

const BYTES: [(&str, u64); 8] = [
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

const AMOUNTS: [(&str, u64); 10] = {
    let [b, kb, upper_kb, mb, gb, kib, mib, gib] = BYTES;
    [b, kb, upper_kb, mb, gb, kib, mib, gib, ("packets", 0), ("bdp", 0)]
};

/// Amounts of data, in bytes.
pub static SIZE: Measure = Measure { what: "a size", example: "5MB", step: "bytes", units: &BYTES };

/// Amounts of data in bytes, packets, or bandwidth-delay products. The last two are here for their names;
/// [`amount`] reads them.
pub static AMOUNT: Measure = Measure { what: "a size", example: "5MB", step: "bytes", units: &AMOUNTS };

impl Measure {
    /// The names of the units.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.units.iter().map(|(name, _)| *name)
    }

    /// The most that 64 bits hold, in the largest unit.
    fn most(&self) -> String {
        let largest = self.units.iter().max_by_key(|(_, size)| size);
        largest.map(|(name, size)| format!("{}{name}", u64::MAX / size)).unwrap_or_default()
    }

    fn allowed(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// What is allowed, for the messages of other files: `a time such as "40ms" (units: ps, ns, ...)`.
    pub fn examples(&self) -> String {
        format!("{} such as \"{}\" (units: {})", self.what, self.example, self.allowed())
    }

    /// Reads `text` as a whole number of this measure's smallest unit.
    ///
    /// # Errors
    /// Says what is missing, unknown, or out of range.
    pub fn parse(&'static self, text: &str) -> Result<u64, UnitError> {
        let (number, unit) = self.split(text)?;
        // The sign for micro, in both of its characters, is a u here.
        let ascii = unit.replace(['\u{b5}', '\u{3bc}'], "u");
        match self.units.iter().find(|(name, _)| *name == ascii) {
            Some((_, size)) => number.times(*size, self),
            None => Err(UnitError::Unknown { measure: self, unit: unit.to_owned() }),
        }
    }

    /// The number in front, and the unit behind it.
    fn split<'t>(&'static self, text: &'t str) -> Result<(Decimal, &'t str), UnitError> {
        let text = text.trim();
        if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            return Err(UnitError::Negative(self));
        }
        let end = number_length(text);
        let number = Decimal::parse(&text[..end]).ok_or(UnitError::NotANumber(self))?;
        match text[end..].trim_start() {
            "" => Err(UnitError::Missing(self)),
            unit => Ok((number, unit)),
        }
    }
}

/// How much of the front of `text` is a number: digits and points, and a power of ten, such as `e-5`, if one follows.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let plain = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    if plain == 0 || !text[plain..].starts_with(['e', 'E']) {
        return plain;
    }
    let sign = usize::from(text[plain + 1..].starts_with(['+', '-']));
    match digits(plain + 1 + sign) {
        0 => plain,
        exponent => plain + 1 + sign + exponent,
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl Decimal {
    /// One.
    pub const ONE: Decimal = Decimal { digits: 1, scale: 0 };

    /// Reads digits with at most one point, and a power of ten if one follows; nothing else, and no more digits than 64 bits
    /// hold.
    fn parse(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, power.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() || fraction.contains('.') || (fraction.is_empty() && mantissa.contains('.')) {
            return None;
        }
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) {
            return None;
        }
        // As few digits as the number needs: those that count, and how far behind the point the last one is.
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_end_matches('0');
        let places = i64::try_from(fraction.len()).ok()? - i64::try_from(digits.len() - significant.len()).ok()?;
        let scale = places - i64::from(exponent);
        if significant.trim_start_matches('0').is_empty() {
            return Some(Decimal { digits: 0, scale: 0 });
        }
        let significant: u64 = significant.parse().ok()?;
        match u32::try_from(scale) {
            Ok(scale) if scale <= 18 => Some(Decimal { digits: significant, scale }),
            Ok(_) => None,
            Err(_) => {
                let zeros = 10_u64.checked_pow(u32::try_from(-scale).ok()?)?;
                Some(Decimal { digits: significant.checked_mul(zeros)?, scale: 0 })
            }
        }
    }

    /// `self * size`, which must be whole.
    fn times(self, size: u64, measure: &'static Measure) -> Result<u64, UnitError> {
        let product = u128::from(self.digits) * u128::from(size);
        let divisor = 10u128.pow(self.scale);
        if product % divisor != 0 {
            return Err(UnitError::Fraction(measure.step));
        }
        u64::try_from(product / divisor).map_err(|_| UnitError::TooLarge(measure))
    }

    /// `self * value`, rounded down.
    pub fn of(self, value: u64) -> u64 {
        mul_div(value, self.digits, 10u64.pow(self.scale))
    }

    /// The float nearest to this number divided by `10^shift`.
    fn nearest(self, shift: u32) -> f64 {
        // The digits and a power of ten, read as one decimal literal, round only once.
        format!("{}e-{}", self.digits, self.scale + shift).parse().unwrap_or(f64::NAN)
    }
}

/// Reads a span of time, as in `"40ms"`.
///
/// # Errors
/// Says what is missing, unknown, or out of range.
pub fn time(text: &str) -> Result<Dur, UnitError> {
    TIME.parse(text).map(Dur::from_ps)
}

/// Reads a data rate in bits, as in `"1.5Mb/s"`.
///
/// # Errors
/// Says what is missing, unknown, or out of range.
pub fn rate(text: &str) -> Result<Rate, UnitError> {
    RATE.parse(text).map(Rate::from_bps)
}

/// Reads an amount of data in bytes, as in `"64KiB"`.
///
/// # Errors
/// Says what is missing, unknown, or out of range.
pub fn size(text: &str) -> Result<u64, UnitError> {
    SIZE.parse(text)
}

/// Reads bytes (`"5MB"`), packets (`"100packets"`) or bandwidth-delay products (`"1bdp"`).
///
/// # Errors
/// Says what is missing, unknown, or out of range.
pub fn amount(text: &str) -> Result<Amount, UnitError> {
    match AMOUNT.split(text)? {
        (number, "packets" | "packet") if number.scale == 0 => Ok(Amount::Packets(number.digits)),
        (_, "packets" | "packet") => Err(UnitError::Fraction("packets")),
        (number, "bdp") => Ok(Amount::Bdp(number)),
        _ => AMOUNT.parse(text).map(Amount::Bytes),
    }
}

/// As [`rate`], for files other than scenarios: the error says what is allowed, as in `a rate such as "10Gbps"`.
pub fn rate_of(text: &str) -> Result<Rate, String> {
    rate(text).map_err(|_| RATE.examples())
}

/// As [`rate_of`], for [`time`].
pub fn time_of(text: &str) -> Result<Dur, String> {
    time(text).map_err(|_| TIME.examples())
}

/// As [`rate_of`], for [`size`].
pub fn size_of(text: &str) -> Result<u64, String> {
    size(text).map_err(|_| SIZE.examples())
}

/// Reads a share: `"30%"`, or a plain number as text.
pub fn share(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(percent) => Decimal::parse(percent.trim_end()).map(|number| number.nearest(2)),
        None => Decimal::parse(text).map(|number| number.nearest(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_can_be_written_with_its_own_sign() {
        assert_eq!([TIME.parse("100\u{b5}s"), TIME.parse("100\u{3bc}s")], [Ok(100_000_000), Ok(100_000_000)]);
    }

    #[test]
    fn decimal_fractions_of_a_unit_are_exact() {
        assert_eq!(time("0.1ms"), Ok(Dur::from_us(100)));
        assert_eq!(time("10 us"), Ok(Dur::from_us(10)));
        assert_eq!(time("1.5min"), Ok(Dur::from_secs(90)));
        assert_eq!(time("0.000000000001s"), Ok(Dur::from_ps(1)));
        assert_eq!(rate("1.5Mb/s"), Ok(Rate::from_bps(1_500_000)));
        assert_eq!(rate("2.223Gbps"), Ok(Rate::from_mbps(2223)));
        assert_eq!(size("2.048GB"), Ok(2_048_000_000));
        assert_eq!((size("64KiB"), size("1460B"), size("1.5KiB")), (Ok(65_536), Ok(1460), Ok(1536)));
    }

    #[test]
    fn a_power_of_ten_may_stand_between_number_and_unit() {
        assert_eq!(time("5e-05s"), Ok(Dur::from_us(50)));
        assert_eq!((time("1.25e1ms"), time("1E+3us")), (Ok(Dur::from_us(12_500)), Ok(Dur::from_ms(1))));
        assert_eq!((time("1200e-2s"), time("1e-12 s")), (Ok(Dur::from_secs(12)), Ok(Dur::from_ps(1))));
        assert_eq!((time("0e-99s"), time("0e99s")), (Ok(Dur::from_ps(0)), Ok(Dur::from_ps(0))));
        assert_eq!(rate("1e9bps"), Ok(Rate::from_gbps(1)));
        assert_eq!((size("1.5e6B"), amount("1e2packets")), (Ok(1_500_000), Ok(Amount::Packets(100))));
        let Ok(Amount::Bdp(half)) = amount("5e-1bdp") else { panic!("half a product") };
        assert_eq!((half.of(1001), share("3e1%"), share("1e-8")), (500, Some(0.3), Some(1e-8)));
    }

    #[test]
    fn a_power_of_ten_that_is_none_or_too_large_is_refused() {
        let not_a_time = "not a time, as in \"40ms\"";
        let unknown = |unit: &str| format!("unknown unit \"{unit}\" for a time");
        for (text, message) in [
            ("e5s", not_a_time.to_owned()),
            ("1.e5s", not_a_time.to_owned()),
            ("1e99s", not_a_time.to_owned()),
            ("1e-99s", not_a_time.to_owned()),
            ("5e99999999999s", not_a_time.to_owned()),
            ("5es", unknown("es")),
            ("5e-s", unknown("e-s")),
            ("5e--5s", unknown("e--5s")),
            ("5e5.5s", unknown(".5s")),
            ("1e-13s", "not a whole number of picoseconds".to_owned()),
            ("1e9s", "too large for a time; allowed: up to 307445min".to_owned()),
            ("-5e-5s", "a time cannot be negative".to_owned()),
            ("5e-5", "a time needs a unit".to_owned()),
        ] {
            let error = time(text).expect_err(text).to_string();
            assert!(error.starts_with(&message), "{text}: {error}");
        }
        assert_eq!((share("e5"), share("5e"), share("5e+%"), share("1e99")), (None, None, None, None));
    }

    #[test]
    fn amounts_count_bytes_packets_or_products() {
        assert_eq!(amount("90KB"), Ok(Amount::Bytes(90_000)));
        assert_eq!(amount("100packets"), Ok(Amount::Packets(100)));
        assert_eq!(amount("1 packet"), Ok(Amount::Packets(1)));
        let Ok(Amount::Bdp(half)) = amount("0.5bdp") else { panic!("half a product") };
        assert_eq!((half.of(1001), Decimal::ONE.of(7)), (500, 7));
    }

    #[test]
    fn a_percentage_is_the_float_nearest_to_its_decimal_value() {
        assert_eq!((share("30%"), share("0.01%"), share("0.3")), (Some(0.3), Some(0.0001), Some(0.3)));
        assert_eq!((share("30 %"), share("-3%"), share("x")), (Some(0.3), None, None));
    }

    #[test]
    fn every_mistake_says_what_is_wrong_and_what_is_allowed() {
        let times = "ps, ns, us, ms, s, min";
        let rates = "bps, kbps, Mbps, Gbps, Tbps, b/s, kb/s, Mb/s, Gb/s, Tb/s";
        let sizes = "B, kB, KB, MB, GB, KiB, MiB, GiB";
        let cases = [
            (time("40").map(|_| ()), format!("a time needs a unit, as in \"40ms\"; allowed: {times}")),
            (time("ms").map(|_| ()), format!("not a time, as in \"40ms\"; allowed: {times}")),
            (time("1.2.3s").map(|_| ()), format!("not a time, as in \"40ms\"; allowed: {times}")),
            (
                time("5mS").map(|_| ()),
                format!("unknown unit \"mS\" for a time, as in \"40ms\"; allowed: {times}; did you mean \"ms\"?"),
            ),
            (time("-5ms").map(|_| ()), "a time cannot be negative; allowed: 0 or more".to_owned()),
            (time("0.5ps").map(|_| ()), "not a whole number of picoseconds".to_owned()),
            (time("99999999s").map(|_| ()), "too large for a time; allowed: up to 307445min".to_owned()),
            (rate("99999999Tbps").map(|_| ()), "too large for a rate; allowed: up to 18446744Tb/s".to_owned()),
            (size("99999999999GB").map(|_| ()), "too large for a size; allowed: up to 17179869183GiB".to_owned()),
            (
                rate("1mbps").map(|_| ()),
                format!(
                    "unknown unit \"mbps\" for a rate, as in \"100Mbps\"; allowed: {rates}; did you mean \"Mbps\"?"
                ),
            ),
            (rate("1.5bps").map(|_| ()), "not a whole number of bits per second".to_owned()),
            (
                size("5M").map(|_| ()),
                format!("unknown unit \"M\" for a size, as in \"5MB\"; allowed: {sizes}; did you mean \"MB\"?"),
            ),
            (amount("1.5packets").map(|_| ()), "not a whole number of packets".to_owned()),
            (amount("7").map(|_| ()), format!("a size needs a unit, as in \"5MB\"; allowed: {sizes}, packets, bdp")),
        ];
        for (outcome, message) in cases {
            assert_eq!(outcome.expect_err("a mistake").to_string(), message);
        }
    }
}
