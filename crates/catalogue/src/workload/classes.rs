//! Traffic classes of flows, by size or for a workload as a whole.

use crate::schema::{Fallback, Field, Key, Kind, MAX_FLOW_BYTES, ScenarioError, Section, Shape};
use crate::workload::Demand;
use crate::workload::{Workload, WorkloadError};
use sparelane_cc::{Kind as Declared, Param, Values};
use sparelane_core::Dur;
use sparelane_core::Time;
use sparelane_sim::{FlowSource, FlowSpec};
use sparelane_sim::{Network, Scheme};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Classes by flow size. Each is given by its index in the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficClasses {
    /// Upper bounds in bytes (exclusive) and classes, by rising bounds.
    pub below: Vec<(u64, u16)>,
    /// The class of all other flows, including unlimited ones.
    pub rest: u16,
}

impl TrafficClasses {
    /// Returns the class of a flow of `size_bytes`, or of an unlimited flow.
    pub fn of(&self, size_bytes: Option<u64>) -> u16 {
        let size = size_bytes.unwrap_or(u64::MAX);
        self.below.iter().find(|(bound, _)| size < *bound).map_or(self.rest, |&(_, class)| class)
    }

    /// Iterates over all classes.
    pub fn all(&self) -> impl Iterator<Item = u16> {
        self.below.iter().map(|&(_, class)| class).chain([self.rest])
    }
}

/// The flows of a source with their traffic classes.
pub struct Classed {
    source: Box<dyn FlowSource>,
    classes: TrafficClasses,
}

impl Classed {
    /// Assigns `classes` to the flows of `source`.
    pub fn new(source: Box<dyn FlowSource>, classes: TrafficClasses) -> Classed {
        Classed { source, classes }
    }

    fn classed(&self, flow: FlowSpec) -> FlowSpec {
        FlowSpec { traffic_class: Some(self.classes.of(flow.size_bytes)), ..flow }
    }
}

impl FlowSource for Classed {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        self.source.next_flow().map(|flow| self.classed(flow))
    }

    fn is_open_loop(&self) -> bool {
        self.source.is_open_loop()
    }

    fn starting_together(&self) -> usize {
        self.source.starting_together()
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Vec<FlowSpec> {
        let flows = self.source.follow(waiter, now);
        flows.into_iter().map(|flow| self.classed(flow)).collect()
    }
}

impl fmt::Debug for Classed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classed").field("classes", &self.classes).finish_non_exhaustive()
    }
}

/// A workload whose flows get traffic classes.
#[derive(Clone, Debug)]
pub(super) struct ClassedWorkload(pub(super) Arc<dyn Workload>, pub(super) TrafficClasses);

impl Workload for ClassedWorkload {
    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(Classed::new(self.0.flows(network, seed)?, self.1.clone())))
    }

    fn demand(&self, network: &Network, duration: Dur) -> Demand {
        self.0.demand(network, duration)
    }
}

/// Maximum number of traffic classes of one run.
const MAX_CLASSES: usize = 1000;

/// The keys of an entry of `traffic_classes`.
pub static TRAFFIC_CLASSES: &[Key] = &[
    Key::new("name", Kind::Text, Fallback::Required, "name of the class"),
    Key::new(
        "below",
        Kind::Size { min: 1, max: MAX_FLOW_BYTES },
        Fallback::Nothing("all other flows, for the last class"),
        "flows of fewer bytes that are in no earlier class are in this one",
    ),
];

/// Reads the traffic classes of a workload.
pub struct ClassReader<'a> {
    /// The classes of the run; those of the workload are added.
    pub names: &'a mut Vec<String>,
    /// The schemes of the run.
    pub schemes: &'a [Scheme],
    /// The schemes that the workload uses.
    pub used: BTreeSet<u16>,
}

impl ClassReader<'_> {
    /// Returns the classes that a workload gives, if any.
    pub fn read(mut self, section: &Section<'_>) -> Result<Option<TrafficClasses>, ScenarioError> {
        let one = section.given("traffic_class");
        match (section.given("traffic_classes"), one) {
            (None, None) => Ok(None),
            (None, Some(one)) => Ok(Some(TrafficClasses { below: Vec::new(), rest: self.class(&one)? })),
            (Some(list), None) => self.by_size(&list).map(Some),
            (Some(list), Some(_)) => Err(list.error("traffic_class is also given; allowed: one of the two")),
        }
    }

    fn by_size(&mut self, list: &Field<'_>) -> Result<TrafficClasses, ScenarioError> {
        let tables = list.list(Kind::Special(
            "a table such as { name = \"urgent\", below = \"30KB\" }",
            &Shape::Table("traffic_classes"),
        ))?;
        let mut below: Vec<(u64, u16)> = Vec::new();
        for (place, table) in tables.iter().enumerate() {
            let section = table.clone().section(&[TRAFFIC_CLASSES])?;
            let name = section.need("name")?;
            let class = self.class(&name)?;
            if below.iter().any(|&(_, other)| other == class) {
                return Err(name.error("listed twice; allowed: each class once"));
            }
            // Only the last class may be unbounded, and bounds must rise: each flow then has one class.
            match section.given("below") {
                None if place + 1 == tables.len() => return Ok(TrafficClasses { below, rest: class }),
                None => return Err(section.missing_of("below", "a size; only the last class has none")),
                Some(field) if place + 1 == tables.len() => {
                    return Err(field.error("the last class has all other flows; allowed: no bound"));
                }
                Some(field) => {
                    let bound = field.size()?;
                    let least = below.last().map_or(0, |&(bytes, _)| bytes);
                    if bound <= least {
                        return Err(
                            field.error(format!("the class before goes up to {least}B; allowed: more than that"))
                        );
                    }
                    below.push((bound, class));
                }
            }
        }
        Err(list.error("no class; allowed: one or more"))
    }

    /// Returns the class that `field` names. Every scheme with weights must have a weight for it.
    fn class(&mut self, field: &Field<'_>) -> Result<u16, ScenarioError> {
        let name = field.text()?;
        if name.is_empty() {
            return Err(field.error("no name; allowed: text that is not empty"));
        }
        for &used in &self.used {
            let scheme = &self.schemes[usize::from(used)];
            if let Some(others) = weights(scheme).into_iter().find(|weights| weights.iter().all(|other| other != name))
            {
                let (scheme, others) = (&scheme.name, others.join(", "));
                return Err(
                    field.error(format!("scheme \"{scheme}\" has no weight for class \"{name}\"; allowed: {others}"))
                );
            }
        }
        let known = self.names.iter().position(|other| other == name);
        let class = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        if class >= MAX_CLASSES {
            return Err(field.error(format!("more than {MAX_CLASSES} classes; allowed: up to {MAX_CLASSES} in all")));
        }
        Ok(class as u16)
    }
}

/// Returns the classes with weights, for each parameter of that kind of the scheme's controller and of the controller
/// inside it.
fn weights(scheme: &Scheme) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut collect = |params: &[Param], values: &Values| {
        let weights = params.iter().filter(|param| param.kind == Declared::Weights);
        let names = weights.map(|param| values.weights(param).into_iter().map(|(name, _)| name).collect::<Vec<_>>());
        all.extend(names.filter(|names| !names.is_empty()));
        params.iter().find(|param| param.kind == Declared::Controller).map(|param| values.word(param).to_owned())
    };
    let inner = collect(scheme.controller.params, &scheme.values);
    if let Some(inside) = inner.and_then(|name| scheme.registry.find(&name)) {
        collect(inside.params, &scheme.inner);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_in_the_first_class_whose_bound_it_is_below() {
        let classes = TrafficClasses { below: vec![(30_000, 4), (100_000, 2)], rest: 7 };
        for (size, class) in [(1, 4), (29_999, 4), (30_000, 2), (99_999, 2), (100_000, 7)] {
            assert_eq!(classes.of(Some(size)), class, "{size}");
        }
        assert_eq!(classes.of(None), 7);
        assert_eq!(classes.all().collect::<Vec<_>>(), [4, 2, 7]);
    }
}
