//! The settings of queues that decide by time, by chance or by cells: RED, CoDel, FQ-CoDel, PIE, cells.

use crate::error::ScenarioError;
use crate::field::{Field, Section};
use crate::keys::{Fallback, Key, Kind};
use crate::queues::read_amount;
use sparelane_core::Dur;
use sparelane_sim::{CellsSpec, CoDelSpec, Discipline, FqCoDelSpec, Limit, PieSpec, RedSpec};

const RED: &[&str] = &["red"];
const CODEL: &[&str] = &["codel", "fq-codel"];
const PIE: &[&str] = &["pie"];
const GAIN: Kind = Kind::Positive { max: 1e9 };
const CELL: Kind = Kind::Size { min: 1, max: 1 << 20 };
const PROBABILITY: Kind = Kind::Positive { max: 1.0 };

const fn key(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key::new(name, kind, Fallback::Nothing(default), meaning)
}

/// The keys of queues of these kinds, in `[queue]`, `[[queue_at]]` and `[nic]`. In `[[queue_at]]`, what a table does not say
/// is as in `[queue]`, where the kinds are the same.
pub static ACTIVE_QUEUE: &[Key] = &[
    key("min", Kind::Limit, "required with red", "red: the average queue from which on packets are dropped early"),
    key("max", Kind::Limit, "required with red", "red: the average queue at which max_probability is reached"),
    key("max_probability", PROBABILITY, "0.1", "red: the share of packets dropped early just below max")
        .from("Floyd, \"RED: Discussions of Setting Parameters\", 1997"),
    key("weight", PROBABILITY, "0.002", "red: weight of each arrival in the average").from("ToN 1(4), 1993"),
    key(
        "gentle",
        Kind::Flag,
        "true",
        "red: whether the probability rises to 1 between max and twice as much, or at once",
    )
    .from("Floyd, \"Recommendation on using the gentle variant of RED\", 2000"),
    key(
        "ecn",
        Kind::Flag,
        "true with fq-codel, else false",
        "red, codel, fq-codel, pie: mark ECN-capable packets instead of dropping them early",
    )
    .from("RFC 8290; Linux"),
    key("target", Kind::SPAN, "5ms; with pie 15ms", "codel, fq-codel, pie: the delay that a queue may keep")
        .from("RFC 8289, RFC 8033"),
    key("interval", Kind::SPAN, "100ms", "codel, fq-codel: for how long the delay may be above the target")
        .from("RFC 8289"),
    key("flows", Kind::Whole { min: 1, max: 65_536 }, "1024", "fq-codel: how many queues share the link")
        .from("RFC 8290"),
    key(
        "quantum",
        Kind::Size { min: 1, max: 1 << 30 },
        "the largest packet of the run",
        "fq-codel: what a queue sends before it is the next one's turn",
    )
    .from("RFC 8290"),
    key("update_interval", Kind::SPAN, "15ms", "pie: the time between updates of the probability").from("RFC 8033"),
    key("alpha", GAIN, "0.125", "pie: weight of the delay's distance from the target, per second").from("RFC 8033"),
    key("beta", GAIN, "1.25", "pie: weight of the delay's trend, per second").from("RFC 8033"),
    key("max_burst", Kind::MOMENT, "150ms", "pie: how long a burst passes undisturbed").from("RFC 8033"),
    key(
        "mark_ecn_threshold",
        Kind::Share { max: 1.0 },
        "0.1",
        "pie: the probability from which on ECN-capable packets are dropped, too",
    )
    .from("RFC 8033"),
    key(
        "cell",
        CELL,
        "required with cells",
        "cells: the size of a cell of the switch's memory; a packet occupies whole ones, and a limit in bytes is of these",
    ),
];

/// The kinds of queue that have the key of this name.
fn kinds_with(name: &str) -> &'static [&'static str] {
    match name {
        "min" | "max" | "max_probability" | "weight" | "gentle" => RED,
        "interval" => CODEL,
        "flows" | "quantum" => &["fq-codel"],
        "ecn" => &["red", "codel", "fq-codel", "pie"],
        "target" => &["codel", "fq-codel", "pie"],
        "cell" => &["cells"],
        _ => PIE,
    }
}

/// That the table has no key of another kind of queue.
pub fn check_keys(section: &Section<'_>, kind: &str) -> Result<(), ScenarioError> {
    for key in ACTIVE_QUEUE {
        let kinds = kinds_with(key.name);
        if let (Some(field), false) = (section.given(key.name), kinds.contains(&kind)) {
            let allowed = kinds.iter().map(|kind| format!("\"{kind}\"")).collect::<Vec<_>>().join(", ");
            return Err(field.error(format!("a {kind} queue has no such setting; allowed: with kind = {allowed}")));
        }
    }
    Ok(())
}

/// The discipline of this kind; where the table is silent, `usual` holds if it is of the same kind.
pub fn read(section: &Section<'_>, kind: &str, usual: &Discipline, bdp: u64) -> Result<Discipline, ScenarioError> {
    Ok(match (kind, *usual) {
        ("red", Discipline::Red(usual)) => Discipline::Red(read_red(section, Some(usual), bdp)?),
        ("red", _) => Discipline::Red(read_red(section, None, bdp)?),
        ("codel", Discipline::CoDel(usual)) => Discipline::CoDel(read_codel(section, usual)?),
        ("codel", _) => Discipline::CoDel(read_codel(section, CoDelSpec::default())?),
        ("fq-codel", Discipline::FqCoDel(usual)) => Discipline::FqCoDel(read_fq_codel(section, usual)?),
        ("fq-codel", _) => Discipline::FqCoDel(read_fq_codel(section, FqCoDelSpec::default())?),
        ("pie", Discipline::Pie(usual)) => Discipline::Pie(read_pie(section, usual)?),
        ("pie", _) => Discipline::Pie(read_pie(section, PieSpec::default())?),
        ("cells", usual) => Discipline::Cells(match (section.maybe("cell", Field::size)?, usual) {
            (Some(cell_bytes), _) => CellsSpec { cell_bytes },
            (None, Discipline::Cells(usual)) => usual,
            (None, _) => return Err(section.missing("cell")),
        }),
        ("priority", _) => Discipline::Priority,
        _ => Discipline::Fifo,
    })
}

/// The word for a discipline.
pub fn kind_of(discipline: &Discipline) -> &'static str {
    match discipline {
        Discipline::Fifo => "fifo",
        Discipline::Priority => "priority",
        Discipline::Red(_) => "red",
        Discipline::CoDel(_) => "codel",
        Discipline::FqCoDel(_) => "fq-codel",
        Discipline::Pie(_) => "pie",
        Discipline::Cells(_) => "cells",
    }
}

fn read_red(section: &Section<'_>, usual: Option<RedSpec>, bdp: u64) -> Result<RedSpec, ScenarioError> {
    let threshold = |name, usual: Option<Limit>| match (section.given(name), usual) {
        (Some(field), _) => match read_amount(&field, bdp)? {
            Limit::Bytes(0) | Limit::Packets(0) => {
                Err(field.error("nothing; allowed: 1B or more, or 1packets or more"))
            }
            amount => Ok(amount),
        },
        (None, Some(usual)) => Ok(usual),
        (None, None) => Err(section.missing(name)),
    };
    let (min, max) = (threshold("min", usual.map(|red| red.min))?, threshold("max", usual.map(|red| red.max))?);
    let blame = |message: String| {
        section.given("max").or(section.given("min")).unwrap_or_else(|| section.whole_table().clone()).error(message)
    };
    match (min, max) {
        (Limit::Bytes(min), Limit::Bytes(max)) | (Limit::Packets(min), Limit::Packets(max)) if min < max => {}
        (Limit::Bytes(min), Limit::Bytes(max)) => {
            return Err(blame(format!("min is {min}B, and max {max}B; allowed: max above min")));
        }
        (Limit::Packets(min), Limit::Packets(max)) => {
            return Err(blame(format!("min is {min}packets, and max {max}packets; allowed: max above min")));
        }
        _ => {
            return Err(blame(
                "min and max have different units; allowed: both in bytes, or both in packets".to_owned(),
            ));
        }
    }
    Ok(RedSpec {
        min,
        max,
        max_probability: section
            .maybe("max_probability", Field::positive)?
            .unwrap_or(usual.map_or(0.1, |red| red.max_probability)),
        weight: section.maybe("weight", Field::positive)?.unwrap_or(usual.map_or(0.002, |red| red.weight)),
        gentle: section.maybe("gentle", Field::flag)?.unwrap_or(usual.is_none_or(|red| red.gentle)),
        ecn: section.maybe("ecn", Field::flag)?.unwrap_or(usual.is_some_and(|red| red.ecn)),
    })
}

fn read_codel(section: &Section<'_>, usual: CoDelSpec) -> Result<CoDelSpec, ScenarioError> {
    let codel = CoDelSpec {
        target: section.maybe("target", Field::time)?.unwrap_or(usual.target),
        interval: section.maybe("interval", Field::time)?.unwrap_or(usual.interval),
        ecn: section.maybe("ecn", Field::flag)?.unwrap_or(usual.ecn),
    };
    if codel.interval < codel.target {
        let field = section.given("interval").or(section.given("target"));
        let (interval, target) = (codel.interval, codel.target);
        let message =
            format!("interval is {interval}, and target {target}; allowed: an interval of the target or more");
        return Err(field.unwrap_or_else(|| section.whole_table().clone()).error(message));
    }
    Ok(codel)
}

fn read_fq_codel(section: &Section<'_>, usual: FqCoDelSpec) -> Result<FqCoDelSpec, ScenarioError> {
    Ok(FqCoDelSpec {
        codel: read_codel(section, usual.codel)?,
        flows: section.maybe("flows", Field::whole)?.map_or(usual.flows, |flows| flows as u32),
        quantum: section.maybe("quantum", Field::size)?.or(usual.quantum),
    })
}

fn read_pie(section: &Section<'_>, usual: PieSpec) -> Result<PieSpec, ScenarioError> {
    let span = |name, usual: Dur| Ok(section.maybe(name, Field::time)?.unwrap_or(usual));
    Ok(PieSpec {
        target: span("target", usual.target)?,
        update_interval: span("update_interval", usual.update_interval)?,
        alpha: section.maybe("alpha", Field::positive)?.unwrap_or(usual.alpha),
        beta: section.maybe("beta", Field::positive)?.unwrap_or(usual.beta),
        max_burst: span("max_burst", usual.max_burst)?,
        ecn: section.maybe("ecn", Field::flag)?.unwrap_or(usual.ecn),
        mark_ecn_threshold: section.maybe("mark_ecn_threshold", Field::share)?.unwrap_or(usual.mark_ecn_threshold),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    fn queue(text: &str) -> Result<Discipline, ScenarioError> {
        let document = Document::parse(text, "t.toml").expect("valid TOML");
        let section = Field::root(&document).section(&[ACTIVE_QUEUE]).expect("known keys");
        ["red", "codel", "fq-codel", "pie"].iter().find(|kind| check_keys(&section, kind).is_ok()).map_or_else(
            || Err(section.whole_table().error("of no kind")),
            |kind| read(&section, kind, &Discipline::Fifo, 0),
        )
    }

    /// Every default that the tables document is what silence means.
    #[test]
    fn the_documented_defaults_are_the_simulators_own() {
        let text = |kind: &str, keys: &[&str]| {
            let key = |name: &&str| ACTIVE_QUEUE.iter().find(|key| key.name == *name).map(|key| key.default);
            let line = |name| match key(name) {
                Some(Fallback::Nothing(value)) if kind == "number" => format!("{name} = {value}\n"),
                Some(Fallback::Nothing(value)) => format!("{name} = \"{value}\"\n"),
                other => panic!("{name}: {other:?}"),
            };
            keys.iter().map(line).collect::<String>()
        };
        let numbers =
            text("number", &["alpha", "beta", "mark_ecn_threshold"]) + &text("time", &["update_interval", "max_burst"]);
        assert_eq!(queue(&numbers), Ok(Discipline::Pie(PieSpec::default())));
        let flows = text("number", &["flows"]) + &text("time", &["interval"]) + "target = \"5ms\"";
        assert_eq!(queue(&flows), Ok(Discipline::FqCoDel(FqCoDelSpec::default())));
        let thresholds = "min = \"5packets\"\nmax = \"15packets\"\n";
        let red = text("number", &["max_probability", "weight", "gentle"]);
        assert_eq!(queue(&(thresholds.to_owned() + &red)), queue(thresholds));
        assert_eq!(queue("interval = \"100ms\""), Ok(Discipline::CoDel(CoDelSpec::default())));
    }
}
