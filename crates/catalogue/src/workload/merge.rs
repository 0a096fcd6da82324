//! Merges several sources of flows.
//!
//! A source may wait for others: its flows start once every flow of those sources is complete. Its times then count from
//! that instant.

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
    /// The progress of each source, if some source waits for others.
    order: Option<Vec<Progress>>,
}

/// The progress of a source among others that it waits for, or that wait for it.
#[derive(Debug, Default)]
struct Progress {
    /// The number of sources that must be complete before this one starts.
    missing: usize,
    /// The sources that wait for this one.
    waiting: Vec<usize>,
    /// The number of its flows that are open or scheduled.
    open: u64,
}

impl Merge {
    /// Merges `sources`. Each must be sorted by start.
    pub fn new(mut sources: Vec<Box<dyn FlowSource>>) -> Merge {
        let heads = sources.iter_mut().map(|source| source.next_flow()).collect();
        let last_requests = vec![None; sources.len()];
        Merge { sources, heads, last_requests, requests: 0, order: None }
    }

    /// Merges `sources`, each of which waits for those that `after` lists for it. Each source that is waited for must have
    /// an end, and there must be no cycle.
    pub fn in_order(mut sources: Vec<Box<dyn FlowSource>>, after: &[Vec<usize>]) -> Merge {
        if after.iter().all(Vec::is_empty) {
            return Merge::new(sources);
        }
        let mut order: Vec<_> = sources.iter().map(|_| Progress::default()).collect();
        for (source, earlier) in after.iter().enumerate() {
            order[source].missing = earlier.len();
            earlier.iter().for_each(|&other| order[other].waiting.push(source));
        }
        let heads = sources.iter_mut().zip(&order);
        let heads = heads.map(|(source, own)| if own.missing == 0 { source.next_flow() } else { None }).collect();
        let last_requests = vec![None; sources.len()];
        Merge { sources, heads, last_requests, requests: 0, order: Some(order) }
    }

    /// Returns the merged number of a source's `waiter`. If sources wait for each other, each flow has a waiter: number 0
    /// of its source stands for a flow without a waiter of its own.
    fn waiter_of(&self, source: usize, waiter: Option<u64>) -> Option<u64> {
        let merged = |waiter| waiter * self.sources.len() as u64 + source as u64;
        match self.order {
            Some(_) => Some(merged(waiter.map_or(0, |waiter| waiter + 1))),
            None => waiter.map(merged),
        }
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

    /// Adds a flow of a source to the merged flows.
    fn merged(&mut self, source: usize, flow: FlowSpec) -> FlowSpec {
        if let Some(order) = &mut self.order {
            order[source].open += 1;
        }
        let request = flow.request.map(|request| self.renumber(source, request));
        FlowSpec { request, waiter: self.waiter_of(source, flow.waiter), ..flow }
    }

    /// Counts a flow of `source` that completed at `now`. Adds the flows of the sources that waited for the last flow of
    /// this one.
    fn complete(&mut self, source: usize, now: Time, flows: &mut Vec<FlowSpec>) {
        let Some(order) = &mut self.order else { return };
        order[source].open -= 1;
        if order[source].open > 0 || self.heads[source].is_some() {
            return;
        }
        for other in std::mem::take(&mut order[source].waiting) {
            let Some(order) = &mut self.order else { return };
            order[other].missing -= 1;
            if order[other].missing > 0 {
                continue;
            }
            while let Some(flow) = self.sources[other].next_flow() {
                let start = now.saturating_add(flow.start - Time::ZERO);
                let flow = self.merged(other, FlowSpec { start, ..flow });
                flows.push(flow);
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
        Some(self.merged(source, flow))
    }

    fn is_open_loop(&self) -> bool {
        self.order.is_none() && self.sources.iter().all(|source| source.is_open_loop())
    }

    fn starting_together(&self) -> usize {
        // Sources may start at different times, so the largest is certain to be needed and the sum is not.
        // The head of each has been taken from it.
        let heads = self.heads.iter().map(|head| usize::from(head.is_some()));
        self.sources.iter().zip(heads).map(|(source, head)| source.starting_together() + head).max().unwrap_or(0)
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Vec<FlowSpec> {
        let sources = self.sources.len() as u64;
        let (source, waiter) = ((waiter % sources) as usize, waiter / sources);
        let own = match self.order {
            Some(_) => waiter.checked_sub(1),
            None => Some(waiter),
        };
        let flows = own.map_or_else(Vec::new, |waiter| self.sources[source].follow(waiter, now));
        let mut flows: Vec<_> = flows.into_iter().map(|flow| self.merged(source, flow)).collect();
        self.complete(source, now, &mut flows);
        flows
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

        fn follow(&mut self, waiter: u64, now: Time) -> Vec<FlowSpec> {
            let flow = FlowSpec::new(now, NodeId(0), NodeId(1), Some(100 * waiter), 0);
            vec![FlowSpec { waiter: Some(waiter), ..flow }]
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
            let follows = merge.follow(flow.waiter.expect("a waiter"), Time::from_ns(5))[0];
            assert_eq!((follows.waiter, follows.start), (flow.waiter, Time::from_ns(5)));
            sizes.push((flow.start.as_ps() / 1000, follows.size_bytes.expect("a size") / 100));
        }
        let same: Vec<_> = sizes.iter().map(|&(start, _)| (start, start)).collect();
        assert_eq!(sizes, same);
    }

    #[test]
    fn a_source_starts_when_the_sources_that_it_waits_for_are_complete() {
        let fixed = |starts: Vec<u64>, scheme| Box::new(Fixed(starts.into_iter(), scheme)) as Box<dyn FlowSource>;
        let sources = vec![fixed(vec![2, 5], 2), fixed(vec![1, 4], 0), fixed(vec![3], 1)];
        let mut merge = Merge::in_order(sources, &[vec![1, 2], vec![], vec![]]);
        assert!(!merge.is_open_loop());
        let flows: Vec<_> = std::iter::from_fn(|| merge.next_flow()).collect();
        assert_eq!(flows.iter().map(|flow| flow.scheme).collect::<Vec<_>>(), [0, 1, 0]);
        let waiters: Vec<_> = flows.iter().map(|flow| flow.waiter.expect("a waiter")).collect();
        assert!(merge.follow(waiters[0], Time::from_ns(10)).is_empty());
        assert!(merge.follow(waiters[2], Time::from_ns(20)).is_empty());
        let last = merge.follow(waiters[1], Time::from_ns(100));
        let starts: Vec<_> = last.iter().map(|flow| (flow.scheme, flow.start)).collect();
        assert_eq!(starts, [(2, Time::from_ns(102)), (2, Time::from_ns(105))]);
        assert!(last.iter().all(|flow| merge.follow(flow.waiter.expect("a waiter"), Time::from_ns(200)).is_empty()));
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
