//! Fuzzes the parser of overrides, `key=value`, on a valid scenario.

use sparelane_scenario::{Scenario, Source};
use std::path::Path;

/// A scenario with most tables.
const TEXT: &str = r#"
duration = "1s"
[topology]
kind = "dumbbell"
pairs = 2
[queue]
limit = "100packets"
[[link]]
select = "all"
loss = 0.01
[transport]
delayed_ack = { every = 2, timeout = "40ms" }
[scheme.tcp]
controller = "cubic"
[scheme.two]
controller = "rc3"
inner = { controller = "newreno", initial_window = 4 }
[[workload]]
kind = "bulk"
pairs = [["left0", "right0"]]
scheme = "tcp"
[[workload]]
kind = "poisson"
load = 0.1
sizes = { kind = "rc3" }
scheme = "two"
"#;

/// Applies one override per line of the text.
///
/// # Panics
/// If the parser panics, returns an empty error message, or rejects its own canonical output.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(&bytes[..bytes.len().min(2_000)]) else { return };
    let overrides: Vec<String> = text.lines().take(8).map(str::to_owned).collect();
    let source = Source::at(Path::new("fuzz.toml"));
    match Scenario::parse(TEXT, &source, &overrides) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(scenario) => {
            let canonical = scenario.canonical();
            let again = Scenario::parse(&canonical, &source, &[]);
            assert_eq!(again.map(|again| again.canonical()).as_ref(), Ok(&canonical));
        }
    }
}
