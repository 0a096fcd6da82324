//! How values with units are read from files: by whoever owns the unit parser.

use sparelane_core::{Dur, Rate};

/// Reads values such as `10Gbps`, `5ms` and `64kB`. Each error says what is allowed, as in
/// `a rate such as "10Gbps"`.
pub trait UnitParser {
    /// A data rate.
    fn rate(&self, text: &str) -> Result<Rate, String>;
    /// A span of time.
    fn time(&self, text: &str) -> Result<Dur, String>;
    /// A number of bytes.
    fn bytes(&self, text: &str) -> Result<u64, String>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Knows `Gbps`, `ms` and `kB`: enough for tests.
    pub(crate) struct PlainUnits;

    fn number(text: &str, unit: &str) -> Result<u64, String> {
        let allowed = || format!("a number with unit, such as \"5{unit}\"");
        text.strip_suffix(unit).and_then(|digits| digits.parse().ok()).ok_or_else(allowed)
    }

    impl UnitParser for PlainUnits {
        fn rate(&self, text: &str) -> Result<Rate, String> {
            number(text, "Gbps").map(Rate::from_gbps)
        }

        fn time(&self, text: &str) -> Result<Dur, String> {
            number(text, "ms").map(Dur::from_ms)
        }

        fn bytes(&self, text: &str) -> Result<u64, String> {
            number(text, "kB").map(|thousands| thousands * 1000)
        }
    }
}
