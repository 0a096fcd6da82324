//! Settings as texts, as on a command line: units and errors.

use sparelane_cc::ParamError;
use sparelane_core::{Dur, Rate};
use thiserror::Error;

/// A setting of a controller or of the wire that is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ChoiceError {
    /// The controller does not exist.
    #[error("there is no controller \"{name}\"; there are {known}")]
    Controller {
        /// Its name.
        name: String,
        /// The names of all controllers.
        known: String,
    },
    /// The controller has no such parameter.
    #[error("controller \"{controller}\" has no parameter \"{key}\"; it has {known}")]
    Key {
        /// The controller.
        controller: String,
        /// The key.
        key: String,
        /// Its parameters.
        known: String,
    },
    /// The wire has no such setting.
    #[error("there is no setting \"{key}\"; there are {known}")]
    Setting {
        /// The key.
        key: String,
        /// The names of all settings.
        known: String,
    },
    /// The text is not a value of the parameter's kind.
    #[error("{key} = \"{text}\"; allowed: {allowed}")]
    Form {
        /// The key.
        key: String,
        /// The text.
        text: String,
        /// The allowed values.
        allowed: String,
    },
    /// The value is out of range.
    #[error(transparent)]
    Range(#[from] ParamError),
    /// The controller is no wrapper, so it has no inner controller.
    #[error("\"{key}\": controller \"{controller}\" has no controller inside")]
    NoInner {
        /// The key.
        key: String,
        /// The controller.
        controller: String,
    },
}

/// Parses a number with one of these units; returns it in the unit with factor 1.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let number: f64 = number.trim().parse().ok()?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = number * factor;
    (value.is_finite() && (0.0..1e19).contains(&value)).then_some(value.round() as u64)
}

/// Parses a time such as `20ms`.
pub fn span(text: &str) -> Option<Dur> {
    let units = [("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];
    scaled(text, &units).map(Dur::from_ps)
}

/// Parses a rate such as `100Mbps`.
pub fn rate(text: &str) -> Option<Rate> {
    let units = [("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)];
    scaled(text, &units).map(Rate::from_bps)
}

/// Parses a size such as `64KB`; returns bytes.
pub fn size(text: &str) -> Option<u64> {
    let units = [("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 1024.0), ("MiB", 1048576.0)];
    scaled(text, &units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(rate("2.5Gbps"), Some(Rate::from_bps(2_500_000_000)));
        assert_eq!(span("20ms"), Some(Dur::from_ms(20)));
        assert_eq!((size("64KB"), size("1MiB")), (Some(64_000), Some(1 << 20)));
        for wrong in ["", "5", "Mbps", "-5Mbps", "5 mbps", "1e400Gbps", "infbps"] {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }
}
