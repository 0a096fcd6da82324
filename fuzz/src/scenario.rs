//! Fuzzes the scenario parser. A scenario is either rejected with a message, or equal after it is written and parsed
//! again.

use sparelane_scenario::{Scenario, Source};
use std::path::Path;

/// Longer inputs are truncated, because they find nothing new.
const MAX_BYTES: usize = 20_000;

/// Parses the input as a scenario.
///
/// # Panics
/// If the parser panics, returns an error without the file name, or rejects its own canonical output.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(MAX_BYTES)]) else { return };
    let source = Source::at(Path::new("fuzz.toml"));
    match Scenario::parse(text, &source, &[]) {
        Err(error) => assert!(error.to_string().starts_with("fuzz.toml"), "{error}"),
        Ok(scenario) => {
            let canonical = scenario.canonical();
            let again = Scenario::parse(&canonical, &source, &[]);
            assert_eq!(again.map(|again| again.canonical()).as_ref(), Ok(&canonical));
        }
    }
}
