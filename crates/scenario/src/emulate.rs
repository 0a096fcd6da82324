//! `[emulate]`: the keys that `sparelane emulate` needs in addition to those of a simulation.
//!
//! A simulation warns that they have no effect, except for `[[emulate.change]]`, the former name of `[[change]]`.

use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_catalogue::schema::{Field, ScenarioError};
use sparelane_core::Dur;
use sparelane_sim::CLASSES;
use std::collections::BTreeSet;

const CODE_POINT: Kind = Kind::Whole { min: 0, max: 63 };

/// The keys of `[emulate]`.
pub static EMULATE: &[Key] = &[
    Key::new(
        "classes",
        Kind::Special(
            "a list of DSCP code points, 0 to 63, each once, at most 8",
            &Shape::List(&Shape::Of(CODE_POINT)),
        ),
        Fallback::Value("[0, 3, 11, 19]"),
        "the code point of each priority class, from class 0 on; packets with other code points are in class 0",
    ),
    Key::new(
        "delay_error",
        Kind::SPAN,
        Fallback::Value("1ms"),
        "the largest delay error of packets, at the 99th percentile; the run does not start if the machine exceeds it in a test",
    ),
    Key::new(
        "change",
        Kind::Special("a list of tables, as [[change]]", &Shape::Tables("change")),
        Fallback::Value("[]"),
        "the same as [[change]]",
    ),
];

/// The settings of an emulation.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulateSpec {
    /// The code point of each priority class, from class 0 on.
    pub code_points: Vec<u8>,
    /// The largest delay error of packets that is accepted, at the 99th percentile.
    pub delay_error: Dur,
}

/// Reads `[emulate]`, except for changes of links.
pub fn read(field: Field<'_>) -> Result<EmulateSpec, ScenarioError> {
    let section = field.section(&[EMULATE])?;
    let classes = section.need("classes")?;
    let listed = classes.list(CODE_POINT)?;
    let code_points = listed.iter().map(|field| Ok(field.whole()? as u8)).collect::<Result<Vec<_>, ScenarioError>>()?;
    if code_points.is_empty() || code_points.len() > CLASSES {
        return Err(classes.error(format!("{} classes; allowed: 1 to {CLASSES}", code_points.len())));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = code_points.iter().find(|&&code_point| !seen.insert(code_point)) {
        return Err(classes.error(format!("{twice} is listed twice; allowed: each code point once")));
    }
    Ok(EmulateSpec { code_points, delay_error: section.need("delay_error")?.time()? })
}

#[cfg(test)]
mod tests {
    use crate::{Scenario, Source};
    use sparelane_core::Dur;

    fn parse(table: &str) -> Result<Scenario, String> {
        let text = format!(
            "duration = \"1s\"\n[topology]\nkind = \"dumbbell\"\n[scheme.tcp]\ncontroller = \"cubic\"\n[workload]\nkind = \
             \"bulk\"\nsize = \"1MB\"\n{table}"
        );
        let source = Source { file: "s.toml".to_owned(), folder: ".".into() };
        Scenario::parse(&text, &source, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn silence_means_the_classes_of_the_wire_and_no_changes() {
        let scenario = parse("").expect("a scenario");
        let spec = scenario.emulate();
        assert_eq!((&spec.code_points[..], spec.delay_error), (&[0, 3, 11, 19][..], Dur::from_ms(1)));
        assert!(scenario.changes().is_empty());
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let refused = |table: &str| parse(table).expect_err("a mistake");
        assert!(refused("[emulate]\nclasses = [0, 3, 3]").contains("3 is listed twice"));
        assert!(refused("[emulate]\nclasses = []").contains("0 classes; allowed: 1 to 8"));
        assert!(refused("[emulate]\nclasses = [64]").contains("out of range"));
    }
}
