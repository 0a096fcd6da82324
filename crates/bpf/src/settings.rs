//! Settings of programs: parsing their text, and converting them to the integers of BPF programs.

use crate::error::BpfError;
use sparelane_cc::{Kind, Param, Value, Values};
use sparelane_core::{Dur, Rate};

/// Validated settings of a user.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Values of the declared parameters.
    pub values: Values,
    /// Pairs of class and weight in bytes, from the keys `weight.CLASS`.
    pub weights: Vec<(String, f64)>,
}

/// The prefix of keys that set the weight of one class of flows.
const WEIGHT_PREFIX: &str = "weight.";

impl Settings {
    /// Parses the settings of a program, given as pairs of key and text.
    ///
    /// Keys `weight.CLASS` are allowed if the program has the parameter `classify`.
    ///
    /// # Errors
    /// [`BpfError::Setting`] if a key does not exist or a value is not allowed.
    pub fn parse(program: &str, params: &[Param], given: &[(String, String)]) -> Result<Settings, BpfError> {
        let mut settings = Settings::default();
        let has_weights = params.iter().any(|param| param.name == "classify");
        for (key, text) in given {
            if let (true, Some(class)) = (has_weights, key.strip_prefix(WEIGHT_PREFIX)) {
                let weight = text.parse().ok().filter(|&weight: &f64| (1.0..=MAX_WEIGHT_BYTES).contains(&weight));
                let refused = || not_allowed(key, text, &format!("a weight from 1 to {MAX_WEIGHT_BYTES} bytes"));
                settings.weights.push((class.to_owned(), weight.ok_or_else(refused)?));
                continue;
            }
            let param = params.iter().find(|param| param.name == key).ok_or_else(|| {
                let names: Vec<&str> = params.iter().map(|param| param.name).collect();
                let more = if has_weights { ", weight.CLASS" } else { "" };
                BpfError::Setting(format!("{program} has no setting \"{key}\"; it has {}{more}", names.join(", ")))
            })?;
            let value = value(param, text).ok_or_else(|| not_allowed(key, text, &param.kind.to_string()))?;
            param.check(&value).map_err(|error| BpfError::Setting(error.to_string()))?;
            settings.values.set(param.name, value);
        }
        Ok(settings)
    }
}

/// The largest weight in bytes whose fixed-point numbers fit in 64 bits.
pub const MAX_WEIGHT_BYTES: f64 = 1_073_741_824.0;

fn not_allowed(key: &str, text: &str, allowed: &str) -> BpfError {
    BpfError::Setting(format!("{key} = \"{text}\"; allowed: {allowed}"))
}

/// Parses the value of a parameter. Returns `None` if the text is not of the parameter's kind.
fn value(param: &Param, text: &str) -> Option<Value> {
    match param.kind {
        Kind::Whole { .. } | Kind::Bound { .. } => text.parse().ok().map(Value::Whole),
        Kind::Number { .. } => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Number),
        Kind::Flag => text.parse().ok().map(Value::Flag),
        Kind::Choice(_) => Some(Value::Word(text.to_owned())),
        Kind::Span { .. } => number_with_unit(text, &TIMES).map(|ps| Value::Span(Dur::from_ps(ps))),
        Kind::OptionalRate if text == "none" => Some(Value::Rate(None)),
        Kind::OptionalRate | Kind::Rate { .. } => rate(text).map(|rate| Value::Rate(Some(rate))),
        Kind::Size { .. } => number_with_unit(text, &SIZES).map(Value::Size),
        Kind::Weights | Kind::Increasing { .. } | Kind::Numbers | Kind::Controller => None,
    }
}

/// Units of time, in picoseconds.
const TIMES: [(&str, f64); 4] = [("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];
/// Units of size, in bytes.
const SIZES: [(&str, f64); 4] = [("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9)];
/// Units of rate, in bits per second.
const RATES: [(&str, f64); 4] = [("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)];

/// Parses a rate such as `100Mbps`.
pub fn rate(text: &str) -> Option<Rate> {
    number_with_unit(text, &RATES).map(Rate::from_bps)
}

/// Parses a number with one of these units, and returns it in the unit of factor one.
fn number_with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let number: f64 = number.trim().parse().ok()?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = number * factor;
    // 1.8e19 is just below 2^64.
    (value.is_finite() && (0.0..=1.8e19).contains(&value)).then_some(value.round() as u64)
}

/// Converts a number to fixed point with `bits` fractional bits. Numbers that do not fit in 64 bits saturate.
pub fn fixed(number: f64, bits: i32) -> u64 {
    (number * libm::exp2(f64::from(bits))).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_cc::{DefaultValue, Unit};

    const TAU: Param = Param {
        name: "tau",
        kind: Kind::Span { min: Dur::from_us(1), max: Dur::from_secs(1) },
        default: DefaultValue::Span(Dur::from_ms(10)),
        meaning: "",
        source: "",
    };
    const COUNT: Param = Param {
        name: "count",
        kind: Kind::Whole { min: 1, max: 9, unit: Unit::Segments },
        default: DefaultValue::Whole(1),
        meaning: "",
        source: "",
    };

    fn refused(key: &str, text: &str) -> String {
        let given = [(key.to_owned(), text.to_owned())];
        Settings::parse("rapid", &[TAU, COUNT], &given).expect_err("a mistake").to_string()
    }

    #[test]
    fn texts_with_units_become_values() {
        let given = [("tau".to_owned(), "2.5ms".to_owned())];
        let settings = Settings::parse("rapid", &[TAU, COUNT], &given).expect("settings");
        assert_eq!((settings.values.span(&TAU), settings.values.whole(&COUNT)), (Dur::from_us(2500), 1));
        assert_eq!(rate("1.5Gbps"), Some(Rate::from_mbps(1500)));
    }

    #[test]
    fn mistakes_name_the_setting_the_value_and_the_allowed_values() {
        assert_eq!(refused("tua", "1ms"), "rapid has no setting \"tua\"; it has tau, count");
        assert_eq!(refused("tau", "1"), "tau = \"1\"; allowed: a time from 1us to 1s");
        assert_eq!(refused("count", "10"), "`count` is 10; allowed: a whole number from 1 to 9 segments");
    }

    #[test]
    fn fixed_point_rounds_to_the_nearest() {
        assert_eq!((fixed(1.5, 16), fixed(0.1, 16), fixed(0.0, 56)), (98_304, 6_554, 0));
    }
}
