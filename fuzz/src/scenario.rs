//! Any text as a scenario: it is refused with words, or what it says is the same when it is written and read again.

use sparelane_scenario::{Scenario, Source};
use std::path::Path;

/// Texts beyond this are only more of the same.
const MOST_BYTES: usize = 20_000;

/// Parses the bytes.
///
/// # Panics
/// The parser panics, refuses without a word, or cannot read what it wrote.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(MOST_BYTES)]) else { return };
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
