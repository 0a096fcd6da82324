//! Random edits of scenarios: the parser returns a scenario or an error, and never panics.

use sparelane_core::{Domain, Stream};
use sparelane_scenario::{Scenario, Source};
use std::path::Path;

/// Fragments that are valid somewhere, and wrong in most other places.
const PIECES: [&str; 24] = [
    "0",
    "-1",
    "0.5",
    "\"0s\"",
    "\"1ps\"",
    "\"9999999s\"",
    "\"0B\"",
    "\"1bdp\"",
    "\"3packets\"",
    "\"100%\"",
    "true",
    "[]",
    "{}",
    "[1, 2]",
    "[[\"r0\", \"r1\"]]",
    "\"\"",
    "\"h1\"",
    "nan",
    "inf",
    "1e300",
    "18446744073709551616",
    "2020-01-01",
    "{ kind = \"cdf\" }",
    "\"cubic\"",
];

#[test]
fn no_edit_of_a_scenario_makes_the_parser_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let source = Source { file: "x.toml".to_owned(), folder: folder.clone() };
    let mut stream = Stream::new(1, Domain::Test, 0);
    let mut good = 0;
    for name in ["rc3-internet2", "chain-cross-traffic", "rc3-example-66"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("a scenario");
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        for _ in 0..400 {
            let mut edited: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
            let at = stream.below(lines.len() as u64) as usize;
            let piece = PIECES[stream.below(PIECES.len() as u64) as usize];
            match (stream.below(3), edited[at].split_once(" = ")) {
                (0, _) => drop(edited.remove(at)),
                (1, Some((key, _))) => edited[at] = format!("{key} = {piece}"),
                _ => {
                    let other = edited[stream.below(lines.len() as u64) as usize].clone();
                    edited.insert(at, other);
                }
            }
            match Scenario::parse(&edited.join("\n"), &source, &[]) {
                Ok(scenario) => good += usize::from(scenario.build().is_ok()),
                Err(error) => assert!(error.to_string().starts_with("x.toml"), "{error}"),
            }
        }
    }
    assert!(good > 100, "only {good} edits were harmless: the test no longer reaches the later checks");
}
