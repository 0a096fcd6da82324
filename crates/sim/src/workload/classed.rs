//! Flows of another source, in classes of traffic.

use crate::flow::{FlowSource, FlowSpec};
use std::fmt;

/// One class of traffic, among those of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficClass {
    /// Index into the run's classes.
    pub index: u8,
    /// Flows of fewer payload bytes belong here, if no class before takes them; `None` takes all.
    pub below_bytes: Option<u64>,
}

impl TrafficClass {
    fn takes(&self, size_bytes: Option<u64>) -> bool {
        self.below_bytes.is_none_or(|below| size_bytes.is_some_and(|bytes| bytes < below))
    }
}

/// The flows of a source, each in the first class that takes it.
pub struct Classed {
    source: Box<dyn FlowSource>,
    classes: Vec<TrafficClass>,
}

impl Classed {
    /// The flows of `source` in `classes`.
    pub fn new(source: Box<dyn FlowSource>, classes: Vec<TrafficClass>) -> Classed {
        Classed { source, classes }
    }
}

impl FlowSource for Classed {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let flow = self.source.next_flow()?;
        let class = self.classes.iter().find(|class| class.takes(flow.size_bytes));
        Some(FlowSpec { traffic_class: class.map(|class| class.index), ..flow })
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
    use crate::network::NodeId;
    use sparelane_core::Time;

    struct Sizes(Vec<Option<u64>>);

    impl FlowSource for Sizes {
        fn next_flow(&mut self) -> Option<FlowSpec> {
            self.0.pop().map(|size_bytes| FlowSpec::new(Time::ZERO, NodeId(0), NodeId(1), size_bytes, 0))
        }
    }

    #[test]
    fn a_flow_belongs_to_the_first_class_that_takes_its_size() {
        let sizes = Sizes(vec![None, Some(30_000), Some(29_999), Some(9)]);
        let class = |index, below_bytes| TrafficClass { index, below_bytes };
        let mut flows = Classed::new(Box::new(sizes), vec![class(3, Some(10)), class(1, Some(30_000)), class(2, None)]);
        let found: Vec<_> = std::iter::from_fn(|| flows.next_flow()).map(|flow| flow.traffic_class).collect();
        assert_eq!(found, [Some(3), Some(1), Some(2), Some(2)]);
    }
}
