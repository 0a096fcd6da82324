//! Errors in scenarios, as shown to users.

use crate::aliases;
use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

/// The first error found in a scenario: its place and its cause.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file with the error, or [`ScenarioError::OVERRIDE`].
    pub file: String,
    /// The line of the error, counted from 1, if it has one.
    pub line: Option<u32>,
    /// The key as a dotted path, in the form that `--set` takes; empty if the file as a whole is wrong.
    pub key: String,
    /// The given value, as a scenario would write it.
    pub value: Option<String>,
    /// The cause, and the allowed values.
    pub message: String,
}

impl ScenarioError {
    /// The `file` of an error on the command line.
    pub const OVERRIDE: &'static str = "--set";

    /// Creates an error in a file other than the scenario, such as a topology.
    pub fn in_file(file: impl Into<String>, line: Option<u32>, message: impl Into<String>) -> ScenarioError {
        ScenarioError { file: file.into(), line, key: String::new(), value: None, message: message.into() }
    }
}

impl fmt::Display for ScenarioError {
    /// Writes `FILE:LINE: KEY = VALUE: MESSAGE`, or `--set KEY = VALUE: MESSAGE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(if self.file == ScenarioError::OVERRIDE { " " } else { ": " })?;
        if !self.key.is_empty() {
            f.write_str(&self.key)?;
            if let Some(value) = &self.value {
                write!(f, " = {}", shortened(value))?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

/// The maximum number of characters of a value that a message repeats.
const MOST_REPEATED: usize = 200;

/// Returns `value`, or its beginning and its length if it is long.
fn shortened(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(MOST_REPEATED) {
        None => Cow::Borrowed(value),
        Some((end, _)) => Cow::Owned(format!("{}... ({} characters)", &value[..end], value.chars().count())),
    }
}

/// Returns a hint for a word that is not in `allowed`: the precise name if the word is an alias, otherwise a similar
/// name, otherwise nothing.
pub fn name_hint<'a>(given: &str, allowed: impl Iterator<Item = &'a str> + Clone) -> String {
    aliases::advice(given, allowed.clone()).unwrap_or_else(|| did_you_mean(given, allowed))
}

/// Returns `; did you mean "..."?` if one of `allowed` is similar to `given`, otherwise nothing.
pub fn did_you_mean<'a>(given: &str, allowed: impl Iterator<Item = &'a str>) -> String {
    let lower = given.to_lowercase();
    // A third of the letters may differ, at least one.
    let reach = ((given.chars().count() + 1) / 3).max(1);
    let distance = |name: &str| strsim::osa_distance(&lower, &name.to_lowercase());
    let nearest = |name: &&str| (distance(name), !name.starts_with(given));
    match allowed.min_by_key(nearest) {
        Some(name) if distance(name) <= reach => format!("; did you mean \"{name}\"?"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_name_is_suggested_and_a_distant_one_is_not() {
        let names = || ["newreno", "cubic", "rc3"].into_iter();
        assert_eq!(did_you_mean("NewReno", names()), "; did you mean \"newreno\"?");
        assert_eq!(did_you_mean("cubci", names()), "; did you mean \"cubic\"?");
        assert_eq!(did_you_mean("vegas", names()), "");
    }

    #[test]
    fn a_long_value_is_repeated_in_part() {
        let mut error = ScenarioError::in_file("a.toml", None, "unknown");
        (error.key, error.value) = ("seed".to_owned(), Some("\u{e9}".repeat(5_000_000)));
        let text = error.to_string();
        assert!(text.len() < 600 && text.ends_with("... (5000000 characters): unknown"), "{}", text.len());
    }

    #[test]
    fn the_place_comes_before_the_message() {
        let mut error = ScenarioError::in_file("net.topo", Some(3), "no such node");
        assert_eq!(error.to_string(), "net.topo:3: no such node");
        (error.key, error.value) = ("link.0.loss".to_owned(), Some("2".to_owned()));
        assert_eq!(error.to_string(), "net.topo:3: link.0.loss = 2: no such node");
        (error.file, error.line) = (ScenarioError::OVERRIDE.to_owned(), None);
        assert_eq!(error.to_string(), "--set link.0.loss = 2: no such node");
    }
}
