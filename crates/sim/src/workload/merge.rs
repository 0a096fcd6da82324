//! Several sources of flows as one.

use crate::flow::{FlowSource, FlowSpec};
use std::fmt;

/// Gives the flows of several sources in order of start; at the same instant, in the order of the sources.
pub struct Merge {
    sources: Vec<Box<dyn FlowSource>>,
    /// The next flow of each source.
    heads: Vec<Option<FlowSpec>>,
}

impl Merge {
    /// Merges `sources`. Each must keep the order of start by itself.
    pub fn new(mut sources: Vec<Box<dyn FlowSource>>) -> Merge {
        let heads = sources.iter_mut().map(|source| source.next_flow()).collect();
        Merge { sources, heads }
    }
}

impl FlowSource for Merge {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let waiting = |(source, head): (usize, &Option<FlowSpec>)| head.map(|flow| (flow.start, source));
        let (_, source) = self.heads.iter().enumerate().filter_map(waiting).min()?;
        let onward = self.sources[source].next_flow();
        std::mem::replace(&mut self.heads[source], onward)
    }
}

impl fmt::Debug for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merge").field("heads", &self.heads).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NodeId;
    use sparelane_core::Time;

    struct Fixed(std::vec::IntoIter<u64>, u16);

    impl FlowSource for Fixed {
        fn next_flow(&mut self) -> Option<FlowSpec> {
            let start = Time::from_ns(self.0.next()?);
            Some(FlowSpec::new(start, NodeId(0), NodeId(1), Some(1), self.1))
        }
    }

    #[test]
    fn flows_come_in_order_of_start_and_then_of_source() {
        let times = [vec![3, 5, 5], vec![], vec![1, 3, 5, 9]];
        let sources = times
            .into_iter()
            .zip(0..)
            .map(|(starts, scheme)| Box::new(Fixed(starts.into_iter(), scheme)) as Box<dyn FlowSource>);
        let mut merge = Merge::new(sources.collect());
        let order: Vec<_> =
            std::iter::from_fn(|| merge.next_flow()).map(|flow| (flow.start.as_ps() / 1000, flow.scheme)).collect();
        assert_eq!(order, [(1, 2), (3, 0), (3, 2), (5, 0), (5, 0), (5, 2), (9, 2)]);
        assert_eq!(merge.next_flow(), None);
        assert_eq!(Merge::new(Vec::new()).next_flow(), None);
    }
}
