//! Settings as texts, as on a command line: units, the settings of a node, and errors.

use super::path::Unmarked;
use crate::flow::{MAX_WINDOW_BYTES, TailConfig};
use sparelane_cc::ParamError;
use sparelane_core::{Dur, Rate};
use thiserror::Error;

/// A setting of a controller that is refused.
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
    /// The text is not a value of the parameter's kind.
    #[error("{key} = \"{text}\": allowed is {allowed}")]
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

/// A setting of the node that is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{what} \"{text}\": allowed is {allowed}")]
pub struct SettingError {
    what: &'static str,
    text: String,
    allowed: &'static str,
}

fn rate_of(what: &'static str, text: &str) -> Result<Rate, SettingError> {
    let rate = rate(text).filter(|&rate| rate >= Rate::from_mbps(1) && rate <= Rate::from_gbps(1000));
    let allowed = "a rate such as \"100Mbps\", from 1Mbps to 1000Gbps";
    rate.ok_or_else(|| SettingError { what, text: text.to_owned(), allowed })
}

/// Parses the line rate of this host.
///
/// # Errors
/// The text is not a rate from 1 Mb/s to 1 Tb/s.
pub fn line_rate(text: &str) -> Result<Rate, SettingError> {
    rate_of("the line's rate", text)
}

/// Parses the maximum rate of the tail, which is then not measured.
///
/// # Errors
/// The text is not a rate from 1 Mb/s to 1 Tb/s.
pub fn tail(text: &str) -> Result<TailConfig, SettingError> {
    let rate = rate_of("the tail's rate", text)?;
    Ok(TailConfig { rate, measured: false, ..TailConfig::default() })
}

/// Parses the maximum rate of a measured tail.
///
/// # Errors
/// The text is not a rate from 1 Mb/s to 1 Tb/s.
pub fn tail_cap(text: &str) -> Result<Rate, SettingError> {
    Ok(tail(text)?.rate)
}

/// Parses the policy for the tail on a path that does not keep marks.
///
/// # Errors
/// The text is not one of the policies.
pub fn unmarked(text: &str) -> Result<Unmarked, SettingError> {
    match text {
        "none" => Ok(Unmarked::NoTail),
        "scavenger" => Ok(Unmarked::Scavenger),
        "ignore" => Ok(Unmarked::Ignore),
        _ => Err(SettingError {
            what: "the tail of a path without marks",
            text: text.to_owned(),
            allowed: "none, scavenger or ignore",
        }),
    }
}

/// Parses the receive window of a flow; returns bytes.
///
/// # Errors
/// The text is not a size in the allowed range.
pub fn window(text: &str) -> Result<u64, SettingError> {
    let size = size(text).filter(|size| (20_000..=MAX_WINDOW_BYTES).contains(size));
    let allowed = "a size such as \"32MB\", from 20KB to 1073MB";
    size.ok_or_else(|| SettingError { what: "the window", text: text.to_owned(), allowed })
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
