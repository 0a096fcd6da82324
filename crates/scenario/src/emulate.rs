//! `[emulate]`: the keys that `sparelane emulate` needs in addition to those of a simulation.
//!
//! A simulation refuses `[[emulate.change]]`, and warns that the other keys have no effect.

use sparelane_catalogue::schema::nodes;
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_catalogue::schema::{Field, ScenarioError};
use sparelane_core::{Dur, Time};
use sparelane_sim::{CLASSES, Change, Loss, Network, NodeId};
use std::collections::BTreeSet;

/// The most scripted changes.
const MAX_CHANGES: usize = 100_000;

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
        Kind::Special("a list of tables, as [[emulate.change]]", &Shape::Tables("emulate.change")),
        Fallback::Value("[]"),
        "cables that change",
    ),
];

/// The keys of `[[emulate.change]]`.
pub static CHANGE: &[Key] = &[
    Key::new("at", Kind::MOMENT, Fallback::Required, "when, from the start of the run"),
    Key::new(
        "between",
        Kind::Special("the two nodes that a cable joins, as in [\"r0\", \"r1\"]", &Shape::Pair(&Shape::Of(Kind::Node))),
        Fallback::Required,
        "the cable",
    ),
    Key::new("from", Kind::Node, Fallback::Nothing("both directions"), "the sending end of the direction to change"),
    Key::new("rate", Kind::Rate, Fallback::Nothing("as before"), "rate from then on"),
    Key::new("delay", Kind::DELAY, Fallback::Nothing("as before"), "propagation delay, one way, from then on"),
    Key::new(
        "loss",
        Kind::Share { max: 1.0 },
        Fallback::Nothing("as before"),
        "loss probability of packets that arrive from then on",
    ),
    Key::new("loss_of", Kind::Choice(&["all", "data"]), Fallback::Value("all"), "which packets are lost"),
    Key::new(
        "down",
        Kind::Flag,
        Fallback::Nothing("as before"),
        "true: every packet that arrives from then on is lost; false: the link works again",
    ),
];

/// A scripted change of one direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScriptedChange {
    /// The time of the change, from the start of the run.
    pub at: Time,
    /// The cable, as an index into the network's cables.
    pub cable: usize,
    /// The end that sends.
    pub from: NodeId,
    /// The change.
    pub change: Change,
}

/// The settings of an emulation.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulateSpec {
    /// The code point of each priority class, from class 0 on.
    pub code_points: Vec<u8>,
    /// The largest delay error of packets that is accepted, at the 99th percentile.
    pub delay_error: Dur,
    /// Scripted changes, in order of time.
    pub changes: Vec<ScriptedChange>,
}

/// Reads `[emulate]`.
pub fn read(field: Field<'_>, network: &Network) -> Result<EmulateSpec, ScenarioError> {
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
    let change = section.need("change")?;
    let tables = change.tables()?;
    if tables.len() > MAX_CHANGES {
        return Err(change.error(format!("{} changes; allowed: {MAX_CHANGES}", tables.len())));
    }
    let changes = tables.into_iter().map(|field| read_change(field, network));
    let mut changes = changes.collect::<Result<Vec<_>, _>>()?.concat();
    changes.sort_by_key(|change| change.at);
    Ok(EmulateSpec { code_points, delay_error: section.need("delay_error")?.time()?, changes })
}

/// The error for a simulation of a scenario whose cables change: ignoring the changes would give wrong results.
pub fn refusal(table: &Field<'_>, spec: &EmulateSpec) -> Option<ScenarioError> {
    let message = "a simulation cannot change cables yet; allowed: sparelane emulate, which changes them, or --set \
                   'emulate.change=[]', which simulates the cables without changes";
    let change = table.entry("change", EMULATE[2].kind).ok().filter(|_| !spec.changes.is_empty())?;
    Some(ScenarioError { value: None, ..change.error(message) })
}

fn read_change(field: Field<'_>, network: &Network) -> Result<Vec<ScriptedChange>, ScenarioError> {
    let section = field.section(&[CHANGE])?;
    let at = Time::ZERO + section.need("at")?.time()?;
    let between = section.need("between")?;
    let [one, other] = nodes::pair(&between)?;
    let (cable, one, other) = nodes::cable(&one, &other, network)?;
    let from = section.maybe("from", |field| {
        let end = nodes::node(field, network)?;
        let names = || [one, other].into_iter().map(|end| &*network.nodes[end.index()].name);
        let is_end = end == one || end == other;
        is_end
            .then_some(end)
            .ok_or_else(|| field.error(format!("no end of this cable; allowed: {}", nodes::listed(names()))))
    })?;
    let mut changes = Vec::new();
    changes.extend(section.maybe("rate", Field::rate)?.map(Change::Rate));
    changes.extend(section.maybe("delay", Field::time)?.map(Change::Delay));
    match section.maybe("loss", Field::share)? {
        Some(probability) => {
            let data_only = section.need("loss_of")?.choice()? == "data";
            changes.push(Change::Loss(Loss { probability, data_only }));
        }
        None => {
            if let Some(field) = section.given("loss_of") {
                return Err(field.error("without loss; allowed: together with loss"));
            }
        }
    }
    changes.extend(section.maybe("down", Field::flag)?.map(Change::Down));
    if changes.is_empty() {
        return Err(section.whole_table().error("changes nothing; allowed: rate, delay, loss, down"));
    }
    let directions = from.map_or(vec![one, other], |from| vec![from]);
    let every = |from| changes.iter().map(move |&change| ScriptedChange { at, cable, from, change });
    Ok(directions.into_iter().flat_map(every).collect())
}

#[cfg(test)]
mod tests {
    use crate::{Scenario, Source};
    use sparelane_core::{Dur, Rate, Time};
    use sparelane_sim::{Change, Loss};

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
        let spec = parse("").expect("a scenario");
        let spec = spec.emulate();
        assert_eq!((&spec.code_points[..], spec.delay_error), (&[0, 3, 11, 19][..], Dur::from_ms(1)));
        assert!(spec.changes.is_empty());
    }

    #[test]
    fn changes_are_in_order_of_time_each_direction_by_itself() {
        let scenario = parse(
            "[[emulate.change]]\nat = \"2s\"\nbetween = [\"west\", \"east\"]\nfrom = \"east\"\nrate = \"5Mbps\"\n\
             [[emulate.change]]\nat = \"1s\"\nbetween = [\"east\", \"west\"]\nloss = \"1%\"\nloss_of = \"data\"\ndown = true\n",
        );
        let scenario = scenario.expect("a scenario");
        let network = scenario.network();
        let described = scenario
            .emulate()
            .changes
            .iter()
            .map(|change| (change.at, network.nodes[change.from.index()].name.as_str(), change.change));
        let loss = Change::Loss(Loss { probability: 0.01, data_only: true });
        let (first, second) = (Time::ZERO + Dur::from_secs(1), Time::ZERO + Dur::from_secs(2));
        assert_eq!(
            described.collect::<Vec<_>>(),
            [
                (first, "east", loss),
                (first, "east", Change::Down(true)),
                (first, "west", loss),
                (first, "west", Change::Down(true)),
                (second, "east", Change::Rate(Rate::from_mbps(5))),
            ]
        );
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let refused = |table: &str| parse(table).expect_err("a mistake");
        let change = "[[emulate.change]]\nat = \"1s\"\nbetween = [\"west\", \"east\"]\n";
        assert!(refused("[emulate]\nclasses = [0, 3, 3]").contains("3 is listed twice"));
        assert!(refused("[emulate]\nclasses = []").contains("0 classes; allowed: 1 to 8"));
        assert!(refused("[emulate]\nclasses = [64]").contains("out of range"));
        assert!(refused(change).contains("changes nothing; allowed: rate, delay, loss, down"));
        assert!(refused(&format!("{change}from = \"left0\"\ndown = true")).contains("no end of this cable"));
        assert!(refused(&format!("{change}loss_of = \"data\"")).contains("without loss; allowed: together with loss"));
        assert!(refused(&format!("{change}rate = \"0bps\"")).contains("rate"));
        assert!(
            refused("[[emulate.change]]\nat = \"1s\"\nbetween = [\"left0\", \"east\"]\ndown = true")
                .contains("between")
        );
    }
}
