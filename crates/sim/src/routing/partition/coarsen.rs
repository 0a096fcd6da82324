//! Smaller graphs that resemble a large one: nodes that belong together become one.
//!
//! A node is joined with a neighbour only if their edge is heavy at both: more than three quarters of the heaviest one
//! there. Nodes whose heavy edges lead to the same neighbours are joined
//! first. In a fat tree these are the edge routers of a pod, whose aggregation routers then join them.

use super::graph::Graph;
use sparelane_core::{Domain, Streams};
use std::cmp::Reverse;

/// A graph of this size needs no coarsening.
const SMALL: usize = 120;

/// No group.
const NONE: u32 = u32::MAX;

/// A coarser graph.
pub(super) struct Level {
    /// The coarser graph.
    pub(super) graph: Graph,
    /// The node in this graph of each node of the next finer graph.
    pub(super) groups: Vec<u32>,
}

/// Coarser and coarser graphs, in which nodes weigh `limit` at most.
pub(super) fn coarsened(graph: &Graph, limit: u64) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    let mut unchanged = 0;
    for step in [alike, joined].iter().cycle() {
        let finer = levels.last().map_or(graph, |level| &level.graph);
        if finer.len() <= SMALL || unchanged == 2 {
            break;
        }
        let (groups, count) = step(finer, limit);
        if count + count / 20 >= finer.len() {
            unchanged += 1;
            continue;
        }
        unchanged = 0;
        let graph = finer.contracted(&groups, count);
        levels.push(Level { graph, groups });
    }
    levels
}

/// The weight above which an edge is heavy, for each node.
fn heavy(graph: &Graph) -> Vec<u64> {
    let heaviest = |node| graph.edges(node).iter().map(|&(_, weight)| weight).max().unwrap_or(0);
    (0..graph.len()).map(|node| heaviest(node) * 3 / 4).collect()
}

/// Groups nodes whose heavy edges lead to the same neighbours, up to a weight of `limit`.
fn alike(graph: &Graph, limit: u64) -> (Vec<u32>, usize) {
    // A sum of hashes represents a set of neighbours. Sets with equal sums by chance would only give a worse division.
    let hashes = Streams::new(0, Domain::Paths);
    let hashes: Vec<u64> = (0..graph.len() as u64).map(|node| hashes.of(node).next_u64()).collect();
    let heavy = heavy(graph);
    let set = |node: usize| {
        let heavy = graph.edges(node).iter().filter(|&&(_, weight)| weight > heavy[node]);
        heavy.fold(0_u64, |sum, &(to, _)| sum.wrapping_add(hashes[to as usize]))
    };
    let mut order: Vec<(u64, u32)> = (0..graph.len()).map(|node| (set(node), node as u32)).collect();
    order.sort_unstable();
    let mut groups = vec![NONE; graph.len()];
    let (mut count, mut weight) = (0, 0);
    for (place, &(set, node)) in order.iter().enumerate() {
        let own = graph.weights[node as usize];
        let is_new = place == 0 || order[place - 1].0 != set || graph.edges(node as usize).is_empty();
        if is_new || weight + own > limit {
            (count, weight) = (count + 1, 0);
        }
        groups[node as usize] = count - 1;
        weight += own;
    }
    (groups, count as usize)
}

/// Groups each node with the neighbour or group to which its heaviest edge leads, up to a weight of `limit`.
fn joined(graph: &Graph, limit: u64) -> (Vec<u32>, usize) {
    let heavy = heavy(graph);
    let mut groups = vec![NONE; graph.len()];
    let mut weights: Vec<u64> = Vec::new();
    let mut order: Vec<usize> = (0..graph.len()).collect();
    order.sort_by_key(|&node| Reverse(heavy[node]));
    for node in order {
        if groups[node] != NONE {
            continue;
        }
        let own = graph.weights[node];
        // Of edges with the same weight, the one to the lightest group: otherwise the first group would take all.
        let candidate = |&(to, weight): &(u32, u64)| {
            let other = match groups[to as usize] {
                NONE => graph.weights[to as usize],
                group => weights[group as usize],
            };
            let suits = weight > heavy[node].max(heavy[to as usize]) && own + other <= limit;
            suits.then_some((weight, Reverse((other, to))))
        };
        let Some((_, Reverse((_, to)))) = graph.edges(node).iter().filter_map(candidate).max() else { continue };
        if groups[to as usize] == NONE {
            groups[to as usize] = weights.len() as u32;
            weights.push(graph.weights[to as usize]);
        }
        groups[node] = groups[to as usize];
        weights[groups[node] as usize] += own;
    }
    let mut count = weights.len();
    for group in groups.iter_mut().filter(|group| **group == NONE) {
        *group = count as u32;
        count += 1;
    }
    (groups, count)
}
