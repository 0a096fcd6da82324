//! `[[change]]`: links whose rate, delay or loss changes during the run, or that go down and up again.

use crate::links::{BETWEEN, SELECT, SENDING_END, directions, read_loss, selected};
use sparelane_catalogue::schema::{Fallback, Key, Kind};
use sparelane_catalogue::schema::{Field, ScenarioError, Section, Warnings};
use sparelane_core::Time;
use sparelane_sim::{Change, Network, ScriptedChange};
use std::collections::BTreeMap;

/// The most changes of single directions.
const MAX_CHANGES: usize = 1_000_000;

/// The keys of `[[change]]`.
pub static CHANGE: &[Key] = &[
    Key::new("at", Kind::MOMENT, Fallback::Required, "when, from the start of the run; not before the table above"),
    BETWEEN,
    SELECT,
    Key::new("from", SENDING_END, Fallback::Nothing("both directions"), "the sending ends of the directions to change"),
    Key::new("rate", Kind::Rate, Fallback::Nothing("as before"), "rate from then on"),
    Key::new("delay", Kind::DELAY, Fallback::Nothing("as before"), "propagation delay, one way, from then on"),
    Key::new(
        "reorder",
        Kind::Flag,
        Fallback::Value("false"),
        "true: packets sent after a decrease of the delay may overtake those sent before",
    ),
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

/// Reads the tables of `field`, which must be in order of time. Adds one change for each direction and quantity.
pub fn read(field: &Field<'_>, network: &Network, changes: &mut Vec<ScriptedChange>) -> Result<(), ScenarioError> {
    let mut latest = Time::ZERO;
    for table in field.tables()? {
        let section = table.section(&[CHANGE])?;
        let at = section.need("at")?;
        let time = Time::ZERO + at.time()?;
        if time < latest {
            return Err(at.error(format!("earlier than the table above, {latest}; allowed: tables in order of time")));
        }
        latest = time;
        let mut quantities = Vec::new();
        quantities.extend(section.maybe("rate", Field::rate)?.map(Change::Rate));
        quantities.extend(read_delay(&section)?);
        quantities.extend(read_loss(&section, &["loss_of"])?.map(Change::Loss));
        quantities.extend(section.maybe("down", Field::flag)?.map(Change::Down));
        if quantities.is_empty() {
            return Err(section.whole_table().error("changes nothing; allowed: rate, delay, loss, down"));
        }
        for (cable, way) in directions_of(&section, network)? {
            if network.cables[cable].traces[way].is_some()
                && let Some(field) = section.given("rate")
            {
                return Err(field.error("this link follows a trace; allowed: changes of delay, loss, down"));
            }
            let from = [network.cables[cable].a, network.cables[cable].b][way];
            changes.extend(quantities.iter().map(|&change| ScriptedChange { at: time, cable, from, change }));
        }
        if changes.len() > MAX_CHANGES {
            return Err(field.error(format!("{} changes of links; allowed: {MAX_CHANGES}", changes.len())));
        }
    }
    Ok(())
}

/// The directions that a table changes, each by its cable and its place there.
fn directions_of(section: &Section<'_>, network: &Network) -> Result<Vec<(usize, usize)>, ScenarioError> {
    let cables = selected(section, network)?;
    let only = section.maybe("from", |field| directions(field, section, &cables, network))?;
    let ways = |place: usize| only.as_ref().map_or(0..2, |only| only[place]..only[place] + 1);
    Ok(cables.iter().enumerate().flat_map(|(place, &cable)| ways(place).map(move |way| (cable, way))).collect())
}

/// Warns about tables of both lists in `fields` that are to reorder packets, but lower no delay.
pub fn check(fields: &[Field<'_>], network: &Network, warnings: &Warnings) -> Result<(), ScenarioError> {
    let mut tables = Vec::new();
    for table in fields.iter().map(Field::tables).collect::<Result<Vec<_>, _>>()?.concat() {
        let section = table.section(&[CHANGE])?;
        tables.push((section.need("at")?.time()?, section));
    }
    tables.sort_by_key(|(at, _)| *at);
    let mut delays = BTreeMap::new();
    for (_, section) in tables {
        let Some(delay) = section.maybe("delay", Field::time)? else { continue };
        let mut falls = false;
        for (cable, way) in directions_of(&section, network)? {
            let before = delays.insert((cable, way), delay).unwrap_or(network.cables[cable].delay);
            falls |= delay < before;
        }
        let reorder = section.need("reorder")?;
        if !falls && reorder.flag()? {
            warnings.add(reorder.without_effect("the delay does not fall"));
        }
    }
    Ok(())
}

/// The change of the delay, if the table has one.
fn read_delay(section: &Section<'_>) -> Result<Option<Change>, ScenarioError> {
    let Some(delay) = section.maybe("delay", Field::time)? else {
        return match section.given("reorder") {
            Some(field) => Err(field.error("without delay; allowed: together with delay")),
            None => Ok(None),
        };
    };
    Ok(Some(Change::Delay { delay, reorders: section.need("reorder")?.flag()? }))
}

#[cfg(test)]
mod tests {
    use crate::{Scenario, Source};
    use sparelane_core::{Dur, Rate, Time};
    use sparelane_sim::{Change, Loss};

    fn parse(tables: &str) -> Result<Scenario, String> {
        let text = format!(
            "duration = \"5s\"\n[topology]\nkind = \"dumbbell\"\n[scheme.tcp]\ncontroller = \"cubic\"\n[workload]\nkind = \
             \"bulk\"\nsize = \"1MB\"\n{tables}"
        );
        let source = Source { file: "s.toml".to_owned(), folder: ".".into() };
        Scenario::parse(&text, &source, &[]).map_err(|error| error.to_string())
    }

    /// The changes with the names of the sending ends.
    fn described(scenario: &Scenario) -> Vec<(Time, &str, Change)> {
        let network = scenario.network();
        let name = |change: &sparelane_sim::ScriptedChange| network.nodes[change.from.index()].name.as_str();
        scenario.changes().iter().map(|change| (change.at, name(change), change.change)).collect()
    }

    #[test]
    fn every_direction_and_quantity_is_a_change_of_its_own() {
        for name in ["change", "emulate.change"] {
            let scenario = parse(&format!(
                "[[{name}]]\nat = \"1s\"\nbetween = [\"east\", \"west\"]\nloss = \"1%\"\nloss_of = \"data\"\ndown = true\n\
                 [[{name}]]\nat = \"2s\"\nbetween = [\"west\", \"east\"]\nfrom = \"east\"\nrate = \"5Mbps\"\n"
            ));
            let loss = Change::Loss(Loss { probability: 0.01, data_only: true });
            let (first, second) = (Time::ZERO + Dur::from_secs(1), Time::ZERO + Dur::from_secs(2));
            assert_eq!(
                described(&scenario.expect("a scenario")),
                [
                    (first, "west", loss),
                    (first, "west", Change::Down(true)),
                    (first, "east", loss),
                    (first, "east", Change::Down(true)),
                    (second, "east", Change::Rate(Rate::from_mbps(5))),
                ]
            );
        }
    }

    #[test]
    fn select_names_several_cables_and_from_their_sending_ends() {
        let scenario = parse("[[change]]\nat = \"1s\"\nselect = \"access\"\nfrom = \"routers\"\ndelay = \"5ms\"\n");
        let scenario = scenario.expect("a scenario");
        let ends: Vec<_> = described(&scenario).into_iter().map(|(_, name, _)| name).collect();
        assert_eq!(ends, ["west", "east"]);
    }

    #[test]
    fn both_lists_of_changes_apply_in_order_of_time() {
        let table = |name, at| {
            format!("[[{name}]]\nat = \"{at}\"\nbetween = [\"west\", \"east\"]\nfrom = \"west\"\ndown = true\n")
        };
        let scenario = parse(&format!("{}{}", table("emulate.change", "1s"), table("change", "500ms")));
        let scenario = scenario.expect("a scenario");
        let times: Vec<_> = described(&scenario).into_iter().map(|(at, ..)| at - Time::ZERO).collect();
        assert_eq!(times, [Dur::from_ms(500), Dur::from_secs(1)]);
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        let refused = |keys: &str| parse(&format!("[[change]]\nat = \"1s\"\n{keys}")).expect_err("a mistake");
        let between = "between = [\"west\", \"east\"]\n";
        for (keys, message) in [
            (between.to_owned(), "changes nothing; allowed: rate, delay, loss, down"),
            ("down = true".to_owned(), "names no cable; allowed: between or select"),
            (format!("{between}select = \"core\"\ndown = true"), "between is also given; allowed: one of the two"),
            (format!("{between}from = \"left0\"\ndown = true"), "no end of this cable; allowed: west, east"),
            (format!("{between}loss_of = \"data\""), "without loss; allowed: together with loss"),
            (format!("{between}rate = \"1Mbps\"\nreorder = true"), "without delay; allowed: together with delay"),
            (format!("{between}reorder = false"), "change.0.reorder = false: without delay"),
            ("between = [\"left0\", \"east\"]\ndown = true".to_owned(), "no cable leads there from \"left0\""),
            (format!("{between}rate = \"0bps\""), "change.0.rate = \"0bps\""),
            (format!("{between}delay = \"-1ms\""), "change.0.delay = \"-1ms\""),
            (
                format!("{between}down = true\n[[change]]\nat = \"999ms\"\n{between}down = false"),
                "change.1.at = \"999ms\": earlier than the table above, 1s; allowed: tables in order of time",
            ),
        ] {
            assert!(refused(&keys).contains(message), "{}", refused(&keys));
        }
    }
}
