//! `traffic_class` and `traffic_classes`: which class of traffic flows belong to.

use crate::error::ScenarioError;
use crate::field::{Field, Section};
use crate::keys::{Fallback, Key, Kind};
use crate::schemes::Schemes;
use sparelane_cc::registry::Blueprint;
use sparelane_sim::workload::TrafficClass;

/// The most classes of traffic of a scenario.
const MAX_CLASSES: usize = 256;

/// The keys of one of `traffic_classes`.
pub static TRAFFIC_CLASS: &[Key] = &[
    Key::new("name", Kind::Text, Fallback::Required, "the name of the class"),
    Key::new(
        "below",
        Kind::Size { min: 1, max: u64::MAX },
        Fallback::Nothing("all flows that are left"),
        "flows of fewer payload bytes are of this class",
    ),
];

/// The classes that a workload asks for; empty if it asks for none. `names` are those of the scenario so far.
pub fn read(
    section: &Section<'_>,
    schemes: &[u16],
    all: &Schemes,
    names: &mut Vec<String>,
) -> Result<Vec<TrafficClass>, ScenarioError> {
    let mut classes = Vec::new();
    match (section.given("traffic_class"), section.given("traffic_classes")) {
        (Some(_), Some(field)) => return Err(field.error("traffic_class is given too; allowed: one of the two")),
        (Some(field), None) => {
            let index = index(&field, schemes, all, names)?;
            classes.push(TrafficClass { index, below_bytes: None });
        }
        (None, Some(list)) => {
            let fields = list.list(list.kind())?;
            if fields.is_empty() {
                return Err(list.refuse("no class"));
            }
            for (at, field) in fields.iter().enumerate() {
                let class = read_one(field, schemes, all, names)?;
                check_order(field, &classes, class, at + 1 == fields.len())?;
                classes.push(class);
            }
        }
        (None, None) => {}
    }
    Ok(classes)
}

fn read_one(
    field: &Field<'_>,
    schemes: &[u16],
    all: &Schemes,
    names: &mut Vec<String>,
) -> Result<TrafficClass, ScenarioError> {
    let section = field.clone().section(&[TRAFFIC_CLASS])?;
    let index = index(&section.need("name")?, schemes, all, names)?;
    Ok(TrafficClass { index, below_bytes: section.maybe("below", Field::size)? })
}

/// Sizes rise from class to class, and the last takes what is left.
fn check_order(
    field: &Field<'_>,
    before: &[TrafficClass],
    class: TrafficClass,
    is_last: bool,
) -> Result<(), ScenarioError> {
    if is_last != class.below_bytes.is_none() {
        return Err(field.error("not in order; allowed: below in every class but the last, which takes what is left"));
    }
    let smaller = before.last().and_then(|last| last.below_bytes);
    match (smaller, class.below_bytes) {
        (Some(smaller), Some(below)) if below <= smaller => {
            Err(field.error(format!("below is {below}B; allowed: more than that of the class before, {smaller}B")))
        }
        _ => Ok(()),
    }
}

/// The number of the class that `field` names, which every scheme of the workload must know what to do with.
fn index(field: &Field<'_>, schemes: &[u16], all: &Schemes, names: &mut Vec<String>) -> Result<u8, ScenarioError> {
    let name = field.text()?;
    for &scheme in schemes {
        let scheme = &all.all[usize::from(scheme)];
        let any = Blueprint::of_any(scheme.transport.mss_bytes, &scheme.inner);
        let built = scheme.controller_for(Blueprint { traffic_class: Some(name), ..any });
        built.map_err(|error| field.error(format!("scheme \"{}\": {error}", scheme.name)))?;
    }
    if let Some(known) = names.iter().position(|known| known == name) {
        return Ok(known as u8);
    }
    if names.len() == MAX_CLASSES {
        return Err(field.error(format!("more than {MAX_CLASSES} classes of traffic")));
    }
    names.push(name.to_owned());
    Ok((names.len() - 1) as u8)
}
