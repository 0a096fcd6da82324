//! Warnings about periods and times beyond the end of the run.

use super::Facts;
use crate::changes;
use crate::emulate::EMULATE;
use crate::sampling::SAMPLE;
use sparelane_catalogue::schema::{Field, Kind, ScenarioError, Warnings};
use sparelane_core::{Dur, Time};
use std::collections::BTreeSet;

pub(super) fn check(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let end = facts.duration;
    let field = facts.root.need("workload")?;
    let tables = field.tables()?;
    let mut awaited = BTreeSet::new();
    for table in &tables {
        if let Ok(after) = table.entry("after", Kind::Text) {
            awaited.extend(
                after
                    .list(Kind::Text)?
                    .iter()
                    .map(|name| name.text().map(str::to_owned))
                    .collect::<Result<Vec<_>, _>>()?,
            );
        }
    }
    for (table, found) in tables.into_iter().zip(facts.workloads) {
        if let Ok(name) = table.entry("name", Kind::Text)
            && !awaited.contains(name.text()?)
        {
            warnings.add(name.without_effect("no workload is after it"));
        }
        let repeat = table.entry("repeat", Kind::Whole { min: 1, max: u64::MAX }).and_then(|field| field.whole());
        if repeat.unwrap_or(1) < 2
            && let Ok(compute) = table.entry("compute", Kind::MOMENT)
        {
            warnings.add(compute.without_effect("there is one round"));
        }
        match found.first_start.map(|start| start - Time::ZERO) {
            None => warnings.add(format!("{} has no flows", table.path)),
            Some(start) if start >= end => warnings.add(format!(
                "{} starts no flow: its first one would start at {start}, and the run ends at {end}",
                table.path
            )),
            Some(_) => {}
        }
        if found.is_single
            && let Ok(gap) = table.entry("gap", Kind::MOMENT)
        {
            warnings.add(gap.without_effect("there is one flow"));
        }
        beyond(&table, "end", end, warnings);
    }
    let field = facts.root.need("cross_traffic")?;
    for table in field.tables()? {
        if moment(&table, "start").is_some_and(|start| start >= end) {
            warnings.add(format!("{} sends nothing: it starts after the run, which ends at {end}", table.path));
        }
        beyond(&table, "stop", end, warnings);
    }
    let emulate = facts.root.need("emulate")?.section(&[EMULATE])?;
    let changes = [facts.root.need("change")?, emulate.need("change")?];
    changes::check(&changes, facts.network, warnings)?;
    for field in changes {
        for table in field.tables()? {
            if moment(&table, "at").is_some_and(|at| at >= end) {
                warnings.add(table.without_effect(&format!("the run ends at {end}")));
            }
        }
    }
    if let Some(table) = facts.root.given("sample") {
        let section = table.section(&[SAMPLE])?;
        let interval = section.need("interval")?.time()?;
        if interval >= end {
            warnings.add(format!(
                "sample.interval = {interval} is not shorter than the run, {end}: no series has a second sample"
            ));
        }
    }
    Ok(())
}

/// Warns about the end of a period that is after the end of the run.
fn beyond(table: &Field<'_>, key: &str, end: Dur, warnings: &Warnings) {
    if moment(table, key).is_some_and(|moment| moment > end)
        && let Ok(field) = table.entry(key, Kind::MOMENT)
    {
        warnings.add(field.without_effect(&format!("the run ends at {end}")));
    }
}

/// The time that a key gives, if the key is there.
fn moment(table: &Field<'_>, key: &str) -> Option<Dur> {
    table.entry(key, Kind::MOMENT).ok()?.time().ok()
}
