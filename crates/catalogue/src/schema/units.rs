//! Numbers with units: `"0.1ms"` and `"1e-4s"` are 100,000,000 ps, computed without floats.
//!
//! A number is rounded to the nearest whole picosecond, bit per second, byte or packet if that changes it by at most
//! 0.2 %: scripts print 0.1 s + 0.2 s as `0.30000000000000004s`. Coarser rounding is an error, so that nothing silently
//! becomes zero.

use super::foreign_units;
use super::number::{NumberError, StepError};
use sparelane_core::{Dur, Rate};
use std::fmt;
use thiserror::Error;

pub use super::number::Decimal;

/// The size of a queue or a flow, before the scenario's bandwidth-delay product is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Packets, or segments.
    Packets(u64),
    /// A multiple of the scenario's bandwidth-delay product.
    Bdp(Decimal),
}

/// The error for a text that should have a unit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnitError {
    /// The number has no unit.
    #[error("{0} needs a unit, as in \"{example}\"; allowed: {allowed}", example = .0.example, allowed = .0.allowed())]
    Missing(&'static Measure),
    /// The unit does not belong to this measure.
    #[error("unknown unit \"{unit}\" for {measure}{hint}; allowed: {allowed}", allowed = .measure.allowed())]
    Unknown {
        /// The expected measure.
        measure: &'static Measure,
        /// The given unit.
        unit: String,
        /// The text to write instead, such as `: write "10Mbps"`, or an example.
        hint: String,
    },
    /// The text does not begin with a number.
    #[error("not {0}, as in \"{example}\"; allowed: {allowed}", example = .0.example, allowed = .0.allowed())]
    NotANumber(&'static Measure),
    /// The number has a comma, an apostrophe or a space between digits, or a point without a digit on one side.
    #[error("not a number with a decimal point and nothing between its digits: write {0}")]
    Separated(String),
    /// The number is negative.
    #[error("{0} cannot be negative; allowed: 0 or more")]
    Negative(&'static Measure),
    /// The number is finer than the measure's smallest step.
    #[error("not a whole number of {0}, nor within 0.2 % of one")]
    Fraction(&'static str),
    /// The number does not fit 64 bits.
    #[error("too large for {0}; allowed: up to {most}", most = .0.most())]
    TooLarge(&'static Measure),
}

/// A kind of quantity with its units. Each unit has its size in the smallest one.
#[derive(Debug, PartialEq, Eq)]
pub struct Measure {
    what: &'static str,
    example: &'static str,
    step: &'static str,
    units: &'static [(&'static str, u64)],
}

/// Times, in picoseconds.
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

/// Amounts of data in bytes, packets, or bandwidth-delay products. Only the names of the last two are used here;
/// [`amount`] reads their values.
pub static AMOUNT: Measure = Measure { what: "a size", example: "5MB", step: "bytes", units: &AMOUNTS };

impl Measure {
    /// Returns the names of the units.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.units.iter().map(|(name, _)| *name)
    }

    /// Returns the largest value that 64 bits hold, in the largest unit.
    fn most(&self) -> String {
        let largest = self.units.iter().max_by_key(|(_, size)| size);
        largest.map(|(name, size)| format!("{}{name}", u64::MAX / size)).unwrap_or_default()
    }

    fn allowed(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    /// Returns the allowed form for messages about other files: `a time such as "40ms" (units: ps, ns, ...)`.
    pub fn examples(&self) -> String {
        format!("{} such as \"{}\" (units: {})", self.what, self.example, self.allowed())
    }

    /// Parses `text` as a whole number of this measure's smallest unit.
    ///
    /// # Errors
    /// States which part is missing, unknown or out of range.
    pub fn parse(&'static self, text: &str) -> Result<u64, UnitError> {
        let (number, unit) = self.split(text)?;
        // Both code points of the micro sign count as u.
        let ascii = unit.replace(['\u{b5}', '\u{3bc}'], "u");
        match self.units.iter().find(|(name, _)| *name == ascii) {
            Some((_, size)) => number.steps(*size).map_err(|error| self.refused(error)),
            None => {
                let hint = foreign_units::hint(self, number, unit, text.trim());
                let hint = hint.map_or_else(|| format!(", as in \"{}\"", self.example), |hint| format!(": {hint}"));
                Err(UnitError::Unknown { measure: self, unit: unit.to_owned(), hint })
            }
        }
    }

    fn refused(&'static self, error: StepError) -> UnitError {
        match error {
            StepError::TooFine => UnitError::Fraction(self.step),
            StepError::TooLarge => UnitError::TooLarge(self),
        }
    }

    /// Returns the number at the start and the unit after it.
    fn split<'t>(&'static self, text: &'t str) -> Result<(Decimal, &'t str), UnitError> {
        let text = text.trim();
        if text.strip_prefix(['-', '\u{2212}']).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            return Err(UnitError::Negative(self));
        }
        if let Some(numbers) = without_separators(text) {
            return Err(UnitError::Separated(numbers));
        }
        let end = number_length(text);
        let number = Decimal::parse(&text[..end]).map_err(|error| match error {
            NumberError::Malformed => UnitError::NotANumber(self),
            NumberError::TooLarge => UnitError::TooLarge(self),
        })?;
        match text[end..].trim_start() {
            "" => Err(UnitError::Missing(self)),
            unit => Ok((number, unit)),
        }
    }
}

/// Separators between digits in other languages' notations.
const SEPARATORS: [char; 7] = [',', '_', '\'', '\u{2019}', ' ', '\u{a0}', '\u{202f}'];

/// Returns the text to write, in quotes, for a number with separators such as `1,5Mbps` or `10 000B`. If the number has
/// two meanings, both are given. Returns `None` for a number without separators.
fn without_separators(text: &str) -> Option<String> {
    if let Some(fraction) = text.strip_prefix('.').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Some(format!("\"0.{fraction}\""));
    }
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || SEPARATORS.contains(&c);
    let (number, unit) = text.split_at(text.find(|c: char| !is_part(c)).unwrap_or(text.len()));
    let spaces = number.len() - number.trim_end().len();
    let (number, unit) = (number.trim_end(), &text[text.len() - unit.len() - spaces..]);
    let groups: Vec<&str> = number.split(SEPARATORS).collect();
    let [first, .., last] = groups[..] else { return None };
    if first.is_empty() || last.is_empty() {
        return None;
    }
    let joined = format!("\"{}{unit}\"", groups.concat());
    let is_comma = groups.len() == 2 && number.contains(',') && !number.contains('.');
    let pointed = format!("\"{}{unit}\"", number.replace(',', "."));
    Some(match last.len() {
        3 if is_comma => format!("{joined} or {pointed}"),
        _ if is_comma => pointed,
        _ => joined,
    })
}

/// Returns the length of the number at the start of `text`: digits and points, and a power of ten such as `e-5` if one
/// follows.
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

/// Parses a time, as in `"40ms"`.
///
/// # Errors
/// States which part is missing, unknown or out of range.
pub fn time(text: &str) -> Result<Dur, UnitError> {
    TIME.parse(text).map(Dur::from_ps)
}

/// Parses a data rate in bits, as in `"1.5Mb/s"`.
///
/// # Errors
/// States which part is missing, unknown or out of range.
pub fn rate(text: &str) -> Result<Rate, UnitError> {
    RATE.parse(text).map(Rate::from_bps)
}

/// Parses an amount of data in bytes, as in `"64KiB"`.
///
/// # Errors
/// States which part is missing, unknown or out of range.
pub fn size(text: &str) -> Result<u64, UnitError> {
    SIZE.parse(text)
}

/// Parses bytes (`"5MB"`), packets (`"100packets"`) or bandwidth-delay products (`"1bdp"`).
///
/// # Errors
/// States which part is missing, unknown or out of range.
pub fn amount(text: &str) -> Result<Amount, UnitError> {
    match AMOUNT.split(text)? {
        (number, "packets" | "packet") => match number.steps(1) {
            Ok(packets) => Ok(Amount::Packets(packets)),
            Err(StepError::TooFine) => Err(UnitError::Fraction("packets")),
            Err(StepError::TooLarge) => Err(UnitError::TooLarge(&AMOUNT)),
        },
        (number, "bdp") => Ok(Amount::Bdp(number)),
        _ => AMOUNT.parse(text).map(Amount::Bytes),
    }
}

/// Parses a rate in a file other than a scenario, as [`rate`] does. The error states the allowed form, as in
/// `a rate such as "10Gbps"`, and the text to write instead of a unit of another tool.
pub fn rate_of(text: &str) -> Result<Rate, String> {
    rate(text).map_err(|error| allowed(&RATE, error))
}

/// Same as [`rate_of`], for [`time`].
pub fn time_of(text: &str) -> Result<Dur, String> {
    time(text).map_err(|error| allowed(&TIME, error))
}

/// Same as [`rate_of`], for [`size`].
pub fn size_of(text: &str) -> Result<u64, String> {
    size(text).map_err(|error| allowed(&SIZE, error))
}

fn allowed(measure: &Measure, error: UnitError) -> String {
    let examples = measure.examples();
    match error {
        UnitError::Unknown { hint, .. } if hint.starts_with(':') => format!("{examples}{hint}"),
        UnitError::Separated(numbers) => format!("{examples}: write {numbers}"),
        _ => examples,
    }
}

/// Parses any quantity of a scenario as a number in the unit of results: seconds (`s`), bits per second (`bit/s`),
/// bytes (`B`), `packets`, `bdp`, or no unit for plain numbers and shares. `"10Mbps"` is 1e7 `bit/s`, `"30%"` is 0.3.
/// Returns `None` for other text.
pub fn quantity(text: &str) -> Option<(f64, &'static str)> {
    if let Ok(span) = time(text) {
        return Some((span.as_secs_f64(), "s"));
    }
    if let Ok(rate) = rate(text) {
        return Some((rate.as_bps() as f64, "bit/s"));
    }
    match amount(text) {
        Ok(Amount::Bytes(bytes)) => Some((bytes as f64, "B")),
        Ok(Amount::Packets(packets)) => Some((packets as f64, "packets")),
        Ok(Amount::Bdp(products)) => Some((products.nearest(0), "bdp")),
        Err(_) => share(text).map(|share| (share, "")),
    }
}

/// Parses a share: `"30%"`, or a plain number as text.
pub fn share(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(percent) => Decimal::parse(percent.trim_end()).ok().map(|number| number.nearest(2)),
        None => Decimal::parse(text).ok().map(|number| number.nearest(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_a_number_in_the_unit_of_results() {
        for (text, expected) in [
            ("10Mbps", Some((1e7, "bit/s"))),
            ("18ms", Some((0.018, "s"))),
            ("2KiB", Some((2048.0, "B"))),
            ("1 packet", Some((1.0, "packets"))),
            ("0.5bdp", Some((0.5, "bdp"))),
            ("30%", Some((0.3, ""))),
            ("1e-3", Some((0.001, ""))),
            ("cubic", None),
            ("", None),
        ] {
            assert_eq!(quantity(text), expected, "{text}");
        }
    }

    #[test]
    fn micro_can_be_written_with_the_micro_sign() {
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
    fn a_malformed_or_too_large_power_of_ten_is_refused() {
        let not_a_time = "not a time, as in \"40ms\"";
        let unknown = |unit: &str| format!("unknown unit \"{unit}\" for a time");
        for (text, message) in [
            ("e5s", not_a_time.to_owned()),
            ("1.e5s", not_a_time.to_owned()),
            ("1e99s", "too large for a time".to_owned()),
            ("1e-99s", "not a whole number of picoseconds".to_owned()),
            ("5e99999999999s", "too large for a time".to_owned()),
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
    fn numbers_as_scripts_print_them_are_rounded_to_the_nearest_step() {
        assert_eq!(time("0.30000000000000004s"), Ok(Dur::from_ms(300)));
        assert_eq!(time("3.3333333333333335e-07s"), Ok(Dur::from_ps(333_333)));
        assert_eq!(time("0.1000000000000000055511151231257827021181583404541015625s"), Ok(Dur::from_ms(100)));
        assert_eq!(time("0.0020000000000000000001ms"), Ok(Dur::from_us(2)));
        assert_eq!(rate("99999999.99999999bps"), Ok(Rate::from_mbps(100)));
        assert_eq!(rate("33333333.333333332bps"), Ok(Rate::from_bps(33_333_333)));
        assert_eq!(size("300000.00000000006B"), Ok(300_000));
        assert_eq!(amount("29.999999999999996packets"), Ok(Amount::Packets(30)));
        assert_eq!(share("30.000000000000004%"), Some(0.300_000_000_000_000_04));
    }

    #[test]
    fn nothing_becomes_zero_or_differs_much_by_rounding() {
        for text in ["1e-13s", "0.4ps", "0.6ps", "1.5ps", "0.0001ns", "1e-400s"] {
            assert_eq!(time(text), Err(UnitError::Fraction("picoseconds")), "{text}");
        }
        assert_eq!(time("0.0s"), Ok(Dur::ZERO));
        assert_eq!(
            (rate("0.1bps"), size("0.9B")),
            (Err(UnitError::Fraction("bits per second")), Err(UnitError::Fraction("bytes")))
        );
        assert_eq!(
            (amount("100.5packets"), amount("1e-9packets")),
            (Err(UnitError::Fraction("packets")), Err(UnitError::Fraction("packets")))
        );
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
    fn every_error_states_the_mistake_and_the_allowed_values() {
        let times = "ps, ns, us, ms, s, min";
        let rates = "bps, kbps, Mbps, Gbps, Tbps, b/s, kb/s, Mb/s, Gb/s, Tb/s";
        let sizes = "B, kB, KB, MB, GB, KiB, MiB, GiB";
        let cases = [
            (time("40").map(|_| ()), format!("a time needs a unit, as in \"40ms\"; allowed: {times}")),
            (time("ms").map(|_| ()), format!("not a time, as in \"40ms\"; allowed: {times}")),
            (time("1.2.3s").map(|_| ()), format!("not a time, as in \"40ms\"; allowed: {times}")),
            (time("5mS").map(|_| ()), format!("unknown unit \"mS\" for a time: write \"5ms\"; allowed: {times}")),
            (time("-5ms").map(|_| ()), "a time cannot be negative; allowed: 0 or more".to_owned()),
            (time("0.5ps").map(|_| ()), "not a whole number of picoseconds, nor within 0.2 % of one".to_owned()),
            (time("99999999s").map(|_| ()), "too large for a time; allowed: up to 307445min".to_owned()),
            (rate("99999999Tbps").map(|_| ()), "too large for a rate; allowed: up to 18446744Tb/s".to_owned()),
            (size("99999999999GB").map(|_| ()), "too large for a size; allowed: up to 17179869183GiB".to_owned()),
            (
                rate("1mbps").map(|_| ()),
                format!(
                    "unknown unit \"mbps\" for a rate: it has two meanings: write \"1Mbps\" for bits per second, or \
                     \"8Mbps\" for bytes per second, as tc reads it; allowed: {rates}"
                ),
            ),
            (rate("1.5bps").map(|_| ()), "not a whole number of bits per second, nor within 0.2 % of one".to_owned()),
            (
                size("5M").map(|_| ()),
                format!(
                    "unknown unit \"M\" for a size: it has two meanings: write \"5MB\" for powers of 1000, or \"5MiB\" \
                     for powers of 1024; allowed: {sizes}"
                ),
            ),
            (amount("1.5packets").map(|_| ()), "not a whole number of packets, nor within 0.2 % of one".to_owned()),
            (amount("7").map(|_| ()), format!("a size needs a unit, as in \"5MB\"; allowed: {sizes}, packets, bdp")),
        ];
        for (outcome, message) in cases {
            assert_eq!(outcome.expect_err("a mistake").to_string(), message);
        }
    }
}
