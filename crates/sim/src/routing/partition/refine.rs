//! Refinement of a division into any number of domains: nodes move to other domains if that helps.

use super::graph::Graph;

/// The largest number of times that all nodes are visited.
const PASSES: usize = 10;

/// A division that is refined.
pub(super) struct Refinement<'a> {
    graph: &'a Graph,
    labels: &'a mut [u32],
    /// The weight and the number of nodes of each domain.
    weights: Vec<u64>,
    counts: Vec<u32>,
    /// The largest weight of a domain.
    bound: u64,
    /// The weight of the edges from a node to each domain, and the domains to which there are any.
    edges_to: Vec<u64>,
    touched: Vec<u32>,
}

impl<'a> Refinement<'a> {
    /// The division by `labels`, in which no domain shall weigh more than `bound`.
    pub(super) fn of(graph: &'a Graph, labels: &'a mut [u32], domains: usize, bound: u64) -> Refinement<'a> {
        let (mut weights, mut counts) = (vec![0; domains], vec![0; domains]);
        for (&label, weight) in labels.iter().zip(&graph.weights) {
            weights[label as usize] += weight;
            counts[label as usize] += 1;
        }
        Refinement { graph, labels, weights, counts, bound, edges_to: vec![0; domains], touched: Vec::new() }
    }

    /// Refines the division.
    pub(super) fn run(mut self) {
        self.fill();
        for _ in 0..PASSES {
            let moves = (0..self.graph.len()).filter(|&node| self.visit(node)).count();
            if moves == 0 {
                break;
            }
        }
    }

    /// Gives each empty domain a node of the heaviest domain that has several.
    fn fill(&mut self) {
        for empty in 0..self.counts.len() {
            if self.counts[empty] > 0 {
                continue;
            }
            let several = (0..self.counts.len()).filter(|&domain| self.counts[domain] > 1);
            let Some(from) = several.max_by_key(|&domain| self.weights[domain]) else { break };
            let half = self.weights[from] / 2;
            let nodes = (0..self.graph.len()).filter(|&node| self.labels[node] as usize == from);
            if let Some(node) = nodes.min_by_key(|&node| self.graph.weights[node].abs_diff(half)) {
                self.shift(node, empty);
            }
        }
    }

    fn shift(&mut self, node: usize, to: usize) {
        let (from, weight) = (self.labels[node] as usize, self.graph.weights[node]);
        self.labels[node] = to as u32;
        self.weights[from] -= weight;
        self.weights[to] += weight;
        self.counts[from] -= 1;
        self.counts[to] += 1;
    }

    /// Moves `node` to the domain that reduces the cut most. Returns false if it stays.
    fn visit(&mut self, node: usize) -> bool {
        let from = self.labels[node];
        if self.counts[from as usize] < 2 {
            return false;
        }
        for &(other, weight) in self.graph.edges(node) {
            let domain = self.labels[other as usize];
            if self.edges_to[domain as usize] == 0 {
                self.touched.push(domain);
            }
            self.edges_to[domain as usize] += weight;
        }
        let target = self.target(node, from);
        self.touched.drain(..).for_each(|domain| self.edges_to[domain as usize] = 0);
        if let Some(to) = target {
            self.shift(node, to);
        }
        target.is_some()
    }

    /// The domain to which `node` should move from domain `from`.
    fn target(&self, node: usize, from: u32) -> Option<usize> {
        let (own, weight) = (self.edges_to[from as usize], self.graph.weights[node]);
        let here = self.weights[from as usize];
        let is_over = here > self.bound;
        // Among domains with the same number of edges to the node, the lightest is best.
        let better = |&to: &usize| {
            let there = self.weights[to] + weight;
            let reduces = self.edges_to[to] > own && there <= self.bound;
            // The larger of the two weights falls, and the cut does not grow unless the domain must become lighter.
            let evens = there < here && (self.edges_to[to] == own || is_over);
            to != from as usize && (reduces || evens)
        };
        let rank = |&to: &usize| (self.edges_to[to], std::cmp::Reverse((self.weights[to], to)));
        if is_over || own == 0 {
            (0..self.weights.len()).filter(better).max_by_key(rank)
        } else {
            self.touched.iter().map(|&domain| domain as usize).filter(better).max_by_key(rank)
        }
    }
}
