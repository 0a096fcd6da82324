//! Flows that start when others are complete.
//!
//! A graph has flows and barriers as its nodes. A flow without predecessors starts at its time. Any other flow starts
//! once all of its predecessors are complete; its start counts from that instant. A barrier is complete as soon as all of
//! its predecessors are. It joins many flows to many others with few edges.

use sparelane_core::Time;
use sparelane_sim::FlowSpec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Flows and the order in which they start.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowGraph {
    nodes: Vec<Option<FlowSpec>>,
    predecessors: Vec<Vec<u32>>,
}

impl FlowGraph {
    /// Adds a flow that starts once the nodes `after` are complete. Returns its number.
    pub(super) fn add_flow(&mut self, flow: FlowSpec, after: Vec<u32>) -> u32 {
        self.add(Some(flow), after)
    }

    /// Adds a barrier after these nodes. Returns its number.
    pub(super) fn add_barrier(&mut self, after: Vec<u32>) -> u32 {
        self.add(None, after)
    }

    fn add(&mut self, node: Option<FlowSpec>, after: Vec<u32>) -> u32 {
        self.nodes.push(node);
        self.predecessors.push(after);
        self.nodes.len() as u32 - 1
    }

    /// Returns the numbers of the nodes of a cycle, each of which waits for the next one, if there is a cycle.
    pub(super) fn cycle(&self) -> Option<Vec<u32>> {
        let lists: Vec<_> = self.predecessors.iter().map(Vec::as_slice).collect();
        cycle(&lists)
    }

    /// Returns the flows that start by themselves, in order of start, and the others. There must be no cycle.
    pub(super) fn split(self) -> (Vec<FlowSpec>, Dependents) {
        let mut successors = vec![Vec::new(); self.nodes.len()];
        for (node, earlier) in (0..).zip(&self.predecessors) {
            earlier.iter().for_each(|&other| successors[other as usize].push(node));
        }
        let missing: Vec<_> = self.predecessors.iter().map(|earlier| earlier.len() as u32).collect();
        // Only flows that others wait for have a waiter.
        let named = (0..).zip(self.nodes).map(|(node, flow): (u32, _)| {
            let waiter = (!successors[node as usize].is_empty()).then_some(u64::from(node));
            flow.map(|flow| FlowSpec { waiter, ..flow })
        });
        let nodes: Vec<Option<FlowSpec>> = named.collect();
        let is_root = |(flow, missing): (&Option<FlowSpec>, &u32)| flow.filter(|_| *missing == 0);
        let mut roots: Vec<_> = nodes.iter().zip(&missing).filter_map(is_root).collect();
        roots.sort_by_key(|flow| flow.start);
        (roots, Dependents { nodes: nodes.into(), successors: successors.into(), missing })
    }
}

/// Returns the numbers of a cycle, each of which waits for the next one. `after` are the predecessors of each number.
pub fn cycle(after: &[&[u32]]) -> Option<Vec<u32>> {
    // A depth-first search without recursion: 1 for a number on the path, 2 for one that is done.
    let mut state = vec![0u8; after.len()];
    for root in 0..after.len() {
        let mut path = vec![(root as u32, 0)];
        while let Some((node, next)) = path.last_mut() {
            let here = *node as usize;
            if *next == 0 && state[here] == 2 {
                path.pop();
                continue;
            }
            state[here] = 1;
            match after[here].get(*next) {
                None => {
                    state[here] = 2;
                    path.pop();
                }
                Some(&other) => {
                    *next += 1;
                    if state[other as usize] == 1 {
                        let on_path = path.iter().map(|&(node, _)| node);
                        return Some(on_path.skip_while(|&node| node != other).collect());
                    }
                    path.push((other, 0));
                }
            }
        }
    }
    None
}

/// The flows that start when others are complete.
#[derive(Clone, Debug)]
pub(super) struct Dependents {
    nodes: Arc<[Option<FlowSpec>]>,
    successors: Arc<[Vec<u32>]>,
    /// The number of predecessors of each node that are not complete.
    missing: Vec<u32>,
}

impl Dependents {
    /// Returns true if no flow waits for another.
    pub(super) fn is_empty(&self) -> bool {
        self.successors.iter().all(Vec::is_empty)
    }

    /// The flows, also those that start by themselves.
    pub(super) fn flows(&self) -> impl Iterator<Item = &FlowSpec> {
        self.nodes.iter().flatten()
    }

    /// Returns the flows that start because `node` was complete at `now`.
    pub(super) fn follow(&mut self, node: u64, now: Time) -> Vec<FlowSpec> {
        let mut flows = Vec::new();
        let mut complete = VecDeque::from([node as usize]);
        while let Some(node) = complete.pop_front() {
            for &next in &self.successors[node] {
                let next = next as usize;
                self.missing[next] -= 1;
                if self.missing[next] > 0 {
                    continue;
                }
                match self.nodes[next] {
                    Some(flow) => {
                        let start = now.saturating_add(flow.start - Time::ZERO);
                        flows.push(FlowSpec { start, ..flow });
                    }
                    None => complete.push_back(next),
                }
            }
        }
        flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::NodeId;

    fn flow(start_ns: u64, size: u64) -> FlowSpec {
        FlowSpec::new(Time::from_ns(start_ns), NodeId(0), NodeId(1), Some(size), 0)
    }

    #[test]
    fn a_flow_starts_after_the_last_of_its_predecessors_and_its_delay() {
        let mut graph = FlowGraph::default();
        let [a, b] = [graph.add_flow(flow(9, 1), vec![]), graph.add_flow(flow(4, 2), vec![])];
        graph.add_flow(flow(7, 3), vec![a, b]);
        let (roots, mut rest) = graph.split();
        assert_eq!(roots.iter().map(|flow| flow.size_bytes.unwrap()).collect::<Vec<_>>(), [2, 1]);
        assert!(rest.follow(roots[0].waiter.unwrap(), Time::from_ns(100)).is_empty());
        let last = rest.follow(roots[1].waiter.unwrap(), Time::from_ns(200));
        assert_eq!((last.len(), last[0].start, last[0].waiter), (1, Time::from_ns(207), None));
    }

    #[test]
    fn barriers_pass_completion_on_at_once() {
        let mut graph = FlowGraph::default();
        let first: Vec<_> = (1..=3).map(|size| graph.add_flow(flow(0, size), vec![])).collect();
        let barrier = graph.add_barrier(first);
        let barrier = graph.add_barrier(vec![barrier]);
        for size in 4..=5 {
            graph.add_flow(flow(1, size), vec![barrier]);
        }
        assert_eq!(graph.cycle(), None);
        let (roots, mut rest) = graph.split();
        let starts: Vec<_> =
            roots.iter().map(|flow| rest.follow(flow.waiter.unwrap(), Time::from_ns(50)).len()).collect();
        assert_eq!(starts, [0, 0, 2]);
    }

    #[test]
    fn a_cycle_is_found_wherever_the_search_begins() {
        let lists: [&[u32]; 5] = [&[1], &[2, 4], &[3], &[1], &[]];
        assert_eq!(cycle(&lists), Some(vec![1, 2, 3]));
        assert_eq!(cycle(&[&[0]]), Some(vec![0]));
        assert_eq!(cycle(&[&[1, 2], &[2], &[]]), None);
        assert_eq!(cycle(&[]), None);
    }
}
