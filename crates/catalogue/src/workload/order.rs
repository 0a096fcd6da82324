//! The order of workloads: a workload with `after` starts once all flows of the workloads that it names are complete.

use super::list::in_circle;
use super::{Found, graph};
use crate::schema::{Fallback, Field, Key, Kind, ScenarioError, Shape, did_you_mean};
use std::collections::BTreeMap;

/// The name that other workloads refer to.
pub(super) const NAME: Key =
    Key::new("name", Kind::Text, Fallback::Nothing("no name"), "name by which after of another workload refers to it");

/// The workloads that come before.
pub(super) const AFTER: Key = Key::new(
    "after",
    Kind::Special("a list of names of workloads, as in [\"load\"]", &Shape::List(&Shape::Of(Kind::Text))),
    Fallback::Nothing("none"),
    "workloads, by name, whose flows must all be complete before this one starts; its times count from that instant",
);

/// Reads `name` and `after` of `tables`, whose workloads are `found`. Returns for each workload the places of those that
/// it waits for.
///
/// # Errors
/// Fails if a name is given twice or is unknown, if a workload waits for one that does not end or has no flows, and if
/// workloads wait for each other in a circle.
pub fn read_order(tables: &[Field<'_>], found: &[Found]) -> Result<Vec<Vec<usize>>, ScenarioError> {
    let mut by_name = BTreeMap::new();
    for (place, table) in tables.iter().enumerate() {
        if let Some(field) = given(table, NAME) {
            let name = field.text()?.to_owned();
            if name.is_empty() {
                return Err(field.error("no letter; allowed: a name"));
            }
            if by_name.insert(name, place).is_some() {
                return Err(field.error("another workload has this name; allowed: each name once"));
            }
        }
    }
    let mut after = Vec::new();
    for table in tables {
        let mut places = Vec::new();
        if let Some(field) = given(table, AFTER) {
            for name in field.list(Kind::Text)? {
                let place = find(&name, &by_name, found)?;
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        after.push(places);
    }
    let numbers: Vec<Vec<u32>> =
        after.iter().map(|places: &Vec<usize>| places.iter().map(|&place| place as u32).collect()).collect();
    let lists: Vec<_> = numbers.iter().map(Vec::as_slice).collect();
    if let Some(cycle) = graph::cycle(&lists) {
        let name_of = |place: u32| by_name.iter().find(|(_, other)| **other == place as usize);
        let names = cycle.iter().map(|&place| name_of(place).map_or("", |(name, _)| name.as_str()));
        let field = given(&tables[cycle[0] as usize], AFTER);
        let field = field.unwrap_or_else(|| tables[cycle[0] as usize].clone());
        return Err(field.error(in_circle(names)));
    }
    Ok(after)
}

/// Returns a key of a workload's table, if the table has it.
fn given<'t>(table: &'t Field<'_>, key: Key) -> Option<Field<'t>> {
    table.entry(key.name, key.kind).ok()
}

/// Returns the place of the workload that `name` names, which must be one that others may wait for.
fn find(name: &Field<'_>, by_name: &BTreeMap<String, usize>, found: &[Found]) -> Result<usize, ScenarioError> {
    let text = name.text()?;
    let Some(&place) = by_name.get(text) else {
        let names: Vec<_> = by_name.keys().map(String::as_str).collect();
        let allowed = if names.is_empty() { "none, as no workload has a name".to_owned() } else { names.join(", ") };
        let hint = did_you_mean(text, names.iter().copied());
        return Err(name.error(format!("no such workload; allowed: {allowed}{hint}")));
    };
    let workload = &found[place];
    if !workload.ends {
        return Err(name.error("a workload without end; allowed: one whose flows have sizes, other than web-users"));
    }
    if workload.first_start.is_none() {
        return Err(name.error("a workload without flows; allowed: one with flows"));
    }
    Ok(place)
}
