//! Recursive bisection: the coarsest graph by greedy growing from several nodes, and each finer one by the method of
//! Fiduccia and Mattheyses (DAC 1982).

use super::coarsen::coarsened;
use super::graph::Graph;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of nodes from which a side is grown, if the graph has few edges.
const STARTS: usize = 16;

/// The number of edges that all starts together may visit per pass.
const EFFORT: usize = 60_000;

/// The passes of refinement per start.
const PASSES: usize = 8;

/// Labels the nodes of `graph` with the numbers of `domains`. Sides exceed their share of the weight by at most `slack`
/// in all, if possible. Groups of nodes that weigh `limit` at most move together at first.
pub(super) fn bisected(graph: &Graph, domains: usize, slack: f64, limit: u64) -> Vec<u32> {
    let mut labels = vec![0; graph.len()];
    let depth = domains.next_power_of_two().trailing_zeros().max(1);
    let all: Vec<u32> = (0..graph.len() as u32).collect();
    let mut open = vec![(all, 0, domains)];
    while let Some((nodes, first, domains)) = open.pop() {
        if domains == 1 || nodes.is_empty() {
            nodes.iter().for_each(|&node| labels[node as usize] = first as u32);
            continue;
        }
        let part = graph.induced(&nodes);
        let fewer = domains / 2;
        let side = sides(&part, [domains - fewer, fewer], slack / f64::from(depth), limit);
        let nodes_of = |which| nodes.iter().zip(&side).filter(move |&(_, &is)| is == which).map(|(&node, _)| node);
        open.push((nodes_of(false).collect(), first, domains - fewer));
        open.push((nodes_of(true).collect(), first + domains - fewer, fewer));
    }
    labels
}

/// The quality of a bisection; the least is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    /// The weight above the limits of the sides.
    excess: u64,
    /// The weight of the edges between the sides.
    cut: u64,
    /// The distance of the weights from their targets.
    uneven: u64,
}

/// A graph with two sides.
struct Bisection<'a> {
    graph: &'a Graph,
    /// The side of each node.
    side: Vec<bool>,
    /// The weight of each side, its target and its limit.
    weights: [u64; 2],
    targets: [u64; 2],
    limits: [u64; 2],
    heaviest: u64,
    cut: u64,
    /// The decrease of the cut if a node changes sides.
    gains: Vec<i64>,
    /// Nodes that have changed sides in this pass, or cannot.
    locked: Vec<bool>,
    /// The nodes of each side by gain. Entries with another gain than the node's are outdated.
    heaps: [BinaryHeap<(i64, Reverse<u32>)>; 2],
}

/// The sides of the nodes of `graph`, with weights in the proportion of `shares`.
fn sides(graph: &Graph, shares: [usize; 2], slack: f64, limit: u64) -> Vec<bool> {
    let levels = coarsened(graph, limit);
    let coarsest = levels.last().map_or(graph, |level| &level.graph);
    let starts = (EFFORT / coarsest.ends().max(1)).clamp(2, STARTS).min(coarsest.len());
    let grown = (0..starts).map(|number| {
        let mut bisection = Bisection::all_on_one(coarsest, shares, slack);
        bisection.grow(number * coarsest.len() / starts);
        bisection.refine();
        (bisection.cost(), bisection.side)
    });
    let mut side = grown.min_by_key(|&(cost, _)| cost).map(|(_, side)| side).unwrap_or_default();
    for number in (0..levels.len()).rev() {
        let finer = if number == 0 { graph } else { &levels[number - 1].graph };
        let mut bisection = Bisection::all_on_one(finer, shares, slack);
        let groups = levels[number].groups.iter().enumerate();
        groups.filter(|&(_, &group)| side[group as usize]).for_each(|(node, _)| bisection.flip(node));
        bisection.refine();
        side = bisection.side;
    }
    side
}

impl Bisection<'_> {
    /// The bisection whose second side has no nodes.
    fn all_on_one(graph: &Graph, shares: [usize; 2], slack: f64) -> Bisection<'_> {
        let total: u64 = graph.weights.iter().sum();
        let second = (u128::from(total) * shares[1] as u128 / (shares[0] + shares[1]) as u128) as u64;
        let targets = [total - second, second];
        let inside = |node| -(graph.edges(node).iter().map(|&(_, weight)| weight as i64).sum::<i64>());
        Bisection {
            graph,
            side: vec![false; graph.len()],
            weights: [total, 0],
            targets,
            limits: targets.map(|target| target + (target as f64 * slack) as u64),
            heaviest: graph.weights.iter().copied().max().unwrap_or(0),
            cut: 0,
            gains: (0..graph.len()).map(inside).collect(),
            locked: vec![false; graph.len()],
            heaps: [BinaryHeap::new(), BinaryHeap::new()],
        }
    }

    /// Grows the second side from `start` up to its target, by the node that increases the cut least.
    fn grow(&mut self, start: usize) {
        let target = self.targets[1];
        let mut rest = 0..self.graph.len();
        let mut next = Some(start);
        while let Some(node) = next.filter(|_| self.weights[1] < target) {
            let more = self.weights[1] + self.graph.weights[node];
            // The last node is added only if this brings the side nearer to its target.
            if self.weights[1] > 0 && more.saturating_sub(target) > target - self.weights[1] {
                break;
            }
            self.flip(node);
            // Where a connected part ends, the next one begins.
            next = self.pop(false).or_else(|| rest.find(|&node| !self.side[node]));
        }
    }

    /// Improves the bisection until a pass changes nothing.
    fn refine(&mut self) {
        for _ in 0..PASSES {
            if !self.pass() {
                break;
            }
        }
    }

    fn cost(&self) -> Cost {
        let excess = |side: usize| self.weights[side].saturating_sub(self.limits[side]);
        let uneven = self.weights[1].abs_diff(self.targets[1]);
        Cost { excess: excess(0) + excess(1), cut: self.cut, uneven }
    }

    /// Moves `node` to the other side, and puts its neighbours into the heaps of their sides.
    fn flip(&mut self, node: usize) {
        let (graph, to) = (self.graph, !self.side[node]);
        self.side[node] = to;
        self.weights[usize::from(to)] += graph.weights[node];
        self.weights[usize::from(!to)] -= graph.weights[node];
        self.cut = self.cut.wrapping_add_signed(-self.gains[node]);
        self.gains[node] = -self.gains[node];
        for &(other, weight) in graph.edges(node) {
            let (place, change) = (other as usize, 2 * weight as i64);
            self.gains[place] += if self.side[place] == to { -change } else { change };
            if !self.locked[place] {
                self.heaps[usize::from(self.side[place])].push((self.gains[place], Reverse(other)));
            }
        }
    }

    /// Takes the node of the largest gain from a side.
    fn pop(&mut self, side: bool) -> Option<usize> {
        while let Some((gain, Reverse(node))) = self.heaps[usize::from(side)].pop() {
            let node = node as usize;
            if gain == self.gains[node] && side == self.side[node] && !self.locked[node] {
                return Some(node);
            }
        }
        None
    }

    /// Moves each node once at most, the most useful first, and returns to the best bisection on the way. Returns false
    /// if that was the first one.
    fn pass(&mut self) -> bool {
        self.locked.fill(false);
        self.heaps.iter_mut().for_each(BinaryHeap::clear);
        for node in 0..self.graph.len() {
            self.heaps[usize::from(self.side[node])].push((self.gains[node], Reverse(node as u32)));
        }
        let patience = 30 + self.graph.len() / 8;
        let (mut best, mut kept) = (self.cost(), 0);
        let mut moved: Vec<usize> = Vec::new();
        while moved.len() < kept + patience {
            let Some(node) = self.next() else { break };
            self.locked[node] = true;
            self.flip(node);
            moved.push(node);
            let cost = self.cost();
            if cost < best {
                (best, kept) = (cost, moved.len());
            }
        }
        moved.drain(kept..).rev().for_each(|node| self.flip(node));
        kept > 0
    }

    /// The next node to move: from a side above its limit, and otherwise that with the larger gain.
    fn next(&mut self) -> Option<usize> {
        let is_over = |side: usize| self.weights[side] > self.limits[side];
        let may_give = [is_over(0) || !is_over(1), is_over(1) || !is_over(0)];
        let tops = [false, true].map(|from| may_give[usize::from(from)].then(|| self.movable(from)).flatten());
        let gain = |top: Option<usize>| top.map(|node| self.gains[node]);
        // With equal gains, the side that is further above its target gives.
        let surplus = |side: usize| self.weights[side] as i64 - self.targets[side] as i64;
        let chosen = usize::from((gain(tops[1]), surplus(1)) > (gain(tops[0]), surplus(0)));
        if let Some(node) = tops[1 - chosen] {
            self.heaps[1 - chosen].push((self.gains[node], Reverse(node as u32)));
        }
        tops[chosen]
    }

    /// Takes the node of the largest gain that the other side has room for. A side may exceed its limit by one node on
    /// the way.
    fn movable(&mut self, from: bool) -> Option<usize> {
        let other = usize::from(!from);
        while let Some(node) = self.pop(from) {
            if self.weights[other] + self.graph.weights[node] <= self.limits[other] + self.heaviest {
                return Some(node);
            }
            self.locked[node] = true;
        }
        None
    }
}
