//! Classes of traffic: what a flow is for, by its size or for a workload as a whole.

use crate::flow::{FlowSource, FlowSpec};
use sparelane_core::Time;
use std::fmt;

/// Classes by size, each by its index in the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficClasses {
    /// Classes of flows of fewer bytes than given, by rising bounds.
    pub below: Vec<(u64, u16)>,
    /// The class of all others, flows without end among them.
    pub rest: u16,
}

impl TrafficClasses {
    /// The class of a flow of so many bytes, or without end.
    pub fn of(&self, size_bytes: Option<u64>) -> u16 {
        let size = size_bytes.unwrap_or(u64::MAX);
        self.below.iter().find(|(bound, _)| size < *bound).map_or(self.rest, |&(_, class)| class)
    }

    /// Every class.
    pub fn all(&self) -> impl Iterator<Item = u16> {
        self.below.iter().map(|&(_, class)| class).chain([self.rest])
    }
}

/// The flows of a source, each in its class.
pub struct Classed {
    source: Box<dyn FlowSource>,
    classes: TrafficClasses,
}

impl Classed {
    /// The flows of `source` in `classes`.
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

    fn follow(&mut self, waiter: u64, now: Time) -> Option<FlowSpec> {
        self.source.follow(waiter, now).map(|flow| self.classed(flow))
    }
}

impl fmt::Debug for Classed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classed").field("classes", &self.classes).finish_non_exhaustive()
    }
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
