//! Merges several sources of flows.

use sparelane_core::Time;
use sparelane_sim::{FlowSource, FlowSpec};
use std::fmt;

/// The flows of several sources in order of start; simultaneous ones in the order of the sources.
///
/// Each source numbers its requests from 0. The merged requests are renumbered in the order in which they start.
pub struct Merge {
    sources: Vec<Box<dyn FlowSource>>,
    /// The next flow of each source.
    heads: Vec<Option<FlowSpec>>,
    /// The last request of each source: its number in the source and in the merged sequence.
    last_requests: Vec<Option<(u32, u32)>>,
    requests: u32,
}

impl Merge {
    /// Merges `sources`. Each must be sorted by start.
    pub fn new(mut sources: Vec<Box<dyn FlowSource>>) -> Merge {
        let heads = sources.iter_mut().map(|source| source.next_flow()).collect();
        let last_requests = vec![None; sources.len()];
        Merge { sources, heads, last_requests, requests: 0 }
    }

    /// Returns the merged number of a source's `waiter`.
    fn waiter_of(&self, source: usize, waiter: u64) -> u64 {
        waiter * self.sources.len() as u64 + source as u64
    }

    /// Returns the merged number of a source's `request`, all of whose flows are consecutive.
    fn renumber(&mut self, source: usize, request: u32) -> u32 {
        match self.last_requests[source] {
            Some((there, here)) if there == request => here,
            _ => {
                let here = self.requests;
                self.requests += 1;
                self.last_requests[source] = Some((request, here));
                here
            }
        }
    }
}

impl FlowSource for Merge {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let waiting = |(source, head): (usize, &Option<FlowSpec>)| head.map(|flow| (flow.start, source));
        let (_, source) = self.heads.iter().enumerate().filter_map(waiting).min()?;
        let onward = self.sources[source].next_flow();
        let flow = std::mem::replace(&mut self.heads[source], onward)?;
        let request = flow.request.map(|request| self.renumber(source, request));
        Some(FlowSpec { request, waiter: flow.waiter.map(|waiter| self.waiter_of(source, waiter)), ..flow })
    }

    fn is_open_loop(&self) -> bool {
        self.sources.iter().all(|source| source.is_open_loop())
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Option<FlowSpec> {
        let sources = self.sources.len() as u64;
        let source = (waiter % sources) as usize;
        let flow = self.sources[source].follow(waiter / sources, now)?;
        let request = flow.request.map(|request| self.renumber(source, request));
        Some(FlowSpec { request, waiter: flow.waiter.map(|waiter| self.waiter_of(source, waiter)), ..flow })
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
    use sparelane_sim::NodeId;

    struct Fixed(std::vec::IntoIter<u64>, u16);

    impl FlowSource for Fixed {
        fn next_flow(&mut self) -> Option<FlowSpec> {
            let start = Time::from_ns(self.0.next()?);
            Some(FlowSpec::new(start, NodeId(0), NodeId(1), Some(1), self.1))
        }
    }

    /// Requests that start at these times, with the given number of flows each.
    struct RequestList(Vec<(u64, u32)>, u32);

    impl FlowSource for RequestList {
        fn next_flow(&mut self) -> Option<FlowSpec> {
            let (start, left) = self.0.first_mut()?;
            let flow = FlowSpec::new(Time::from_ns(*start), NodeId(0), NodeId(1), Some(1), 0);
            let request = Some(self.1);
            *left -= 1;
            if *left == 0 {
                self.0.remove(0);
                self.1 += 1;
            }
            Some(FlowSpec { request, ..flow })
        }
    }

    #[test]
    fn requests_of_several_sources_are_renumbered() {
        let sources: Vec<Box<dyn FlowSource>> = vec![
            Box::new(RequestList(vec![(1, 2), (5, 1), (9, 1)], 0)),
            Box::new(Fixed(vec![2].into_iter(), 0)),
            Box::new(RequestList(vec![(1, 1), (5, 3)], 0)),
        ];
        let mut merge = Merge::new(sources);
        let requests: Vec<_> = std::iter::from_fn(|| merge.next_flow()).map(|flow| flow.request).collect();
        let expected = [Some(0), Some(0), Some(1), None, Some(2), Some(3), Some(3), Some(3), Some(4)];
        assert_eq!(requests, expected);
    }

    /// A source whose flows all have a waiter, with one follow-up each.
    struct Awaited(u64);

    impl FlowSource for Awaited {
        fn next_flow(&mut self) -> Option<FlowSpec> {
            self.0 += 1;
            let flow = FlowSpec::new(Time::from_ns(self.0), NodeId(0), NodeId(1), Some(1), 0);
            Some(FlowSpec { waiter: Some(self.0), ..flow })
        }

        fn follow(&mut self, waiter: u64, now: Time) -> Option<FlowSpec> {
            let flow = FlowSpec::new(now, NodeId(0), NodeId(1), Some(100 * waiter), 0);
            Some(FlowSpec { waiter: Some(waiter), ..flow })
        }
    }

    /// Independent of the depth of nesting.
    #[test]
    fn a_follow_up_comes_from_the_source_of_its_flow() {
        let inner: Vec<Box<dyn FlowSource>> = vec![Box::new(Awaited(7)), Box::new(Awaited(4))];
        let mut merge = Merge::new(vec![Box::new(Merge::new(inner)), Box::new(Awaited(90))]);
        let mut sizes = Vec::new();
        for _ in 0..9 {
            let flow = merge.next_flow().expect("a flow");
            let follows = merge.follow(flow.waiter.expect("a waiter"), Time::from_ns(5)).expect("a flow");
            assert_eq!((follows.waiter, follows.start), (flow.waiter, Time::from_ns(5)));
            sizes.push((flow.start.as_ps() / 1000, follows.size_bytes.expect("a size") / 100));
        }
        let same: Vec<_> = sizes.iter().map(|&(start, _)| (start, start)).collect();
        assert_eq!(sizes, same);
    }

    #[test]
    fn flows_are_ordered_by_start_and_then_by_source() {
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
