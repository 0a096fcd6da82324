//! The division of a network into domains that can be simulated side by side.
//!
//! Packets that cross from one domain to another arrive one delay later at least. So domains can run independently for
//! as long as the least delay of the cables between them, the lookahead. A good division has three properties, the most
//! important first: the domains have equal shares of the work, the lookahead is long, and few packets cross.
//!
//! Cables that must not be cut are contracted first. The longest lookahead that leaves equal shares possible follows
//! from a binary search over the delays: all cables with a shorter delay are contracted as well (`contraction`). The
//! remaining graph is partitioned by the multilevel scheme of Karypis and Kumar (SIAM Journal on Scientific Computing
//! 20(1), 1998): it is bisected recursively. Each time, it is coarsened (`coarsen`), cut by greedy growing, and refined by
//! the method of Fiduccia and Mattheyses (DAC 1982) while it becomes finer again (`bisect`). Nodes between any domains
//! move at the end (`refine`).
//!
//! The module is our own because no library in Rust fits: `metis` and `kaminpar` build C or C++ code, `coupe` needs a
//! thread pool and linear algebra, and the refinement of `metis-rs` takes quadratic time.

mod bisect;
mod coarsen;
mod contraction;
mod graph;
mod refine;

use self::bisect::bisected;
use self::contraction::Contraction;
use self::graph::Graph;
use self::refine::Refinement;
use crate::routing::network::Network;
use sparelane_core::Dur;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A division of a network into domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The domain of each node, by the node's index.
    pub domain_of: Vec<u16>,
    /// The number of domains. They are numbered from 0 in the order of their first nodes.
    pub domains: usize,
    /// The least delay of the cables between domains; [`Dur::MAX`] if there are none.
    pub lookahead: Dur,
}

/// A domain may exceed the mean work by this share if that lengthens the lookahead.
const IMBALANCE: f64 = 0.10;

/// The shares by which domains may exceed the mean work in the search for the fewest packets that cross.
const SLACKS: [f64; 2] = [0.03, IMBALANCE];

/// The assumed cost of a packet that crosses, as a share of the work of a packet on a cable.
const CROSSING: f64 = 0.2;

/// The weights of groups of nodes that move together at first, as the number of such groups in a domain.
const GROUPS_PER_DOMAIN: [u64; 2] = [1, 4];

/// Divides `network` into at most `domains` domains.
///
/// A host is always in the domain of its router. Cables without delay, and those for which `is_fixed` returns true for
/// their index, have both ends in one domain. There are fewer domains than requested if the network cannot be cut into
/// that many.
///
/// The work of a node is estimated by the rates at which its cables can carry packets away, and the packets that cross
/// by the rates of the cables between domains. Cables near hosts count more, because traffic is often local. The same
/// network is always divided in the same way.
pub fn partition(network: &Network, domains: usize, is_fixed: impl Fn(usize) -> bool) -> Partition {
    let contraction = Contraction::of(network, is_fixed);
    let domains = domains.min(contraction.pieces()).min(usize::from(u16::MAX));
    if domains < 2 {
        return Partition { domain_of: vec![0; network.nodes.len()], domains: 1, lookahead: Dur::MAX };
    }
    let (groups, graph) = contraction.with_longest_lookahead(domains, |weights| {
        let mean = mean_of(weights, domains);
        (heaviest(&evenly(weights, domains), weights, domains), with_share(mean, IMBALANCE))
    });
    let labels = divided(&graph, domains);
    // Nodes without work join the first group.
    let domain_of_group = |&group: &u32| *labels.get(group as usize).unwrap_or(&labels[0]) as u16;
    numbered(network, groups.iter().map(domain_of_group).collect())
}

/// Divides `network` by the labels of its nodes, as far as that is possible: the ends of a cable that must not be cut get
/// the label of one of them.
pub(crate) fn labelled(network: &Network, labels: &[u16], is_fixed: impl Fn(usize) -> bool) -> Partition {
    let (groups, _) = Contraction::of(network, is_fixed).groups(Dur::ZERO);
    let mut label_of_group = BTreeMap::new();
    let nodes = groups.iter().zip(0..).map(|(&group, node): (&u32, usize)| {
        let label = labels.get(node).copied().unwrap_or(0);
        *label_of_group.entry(group).or_insert(label)
    });
    numbered(network, nodes.collect())
}

/// The partition with these labels of nodes.
fn numbered(network: &Network, mut labels: Vec<u16>) -> Partition {
    let mut numbers = vec![None; 1 + labels.iter().max().map_or(0, |&label| usize::from(label))];
    let mut domains = 0;
    for label in &mut labels {
        *label = *numbers[usize::from(*label)].get_or_insert_with(|| {
            domains += 1;
            domains as u16 - 1
        });
    }
    let is_cut = |&(a, b): &(usize, usize)| labels[a] != labels[b];
    let cables = network.cables.iter().filter(|cable| is_cut(&(cable.a.index(), cable.b.index())));
    let lookahead = cables.map(|cable| cable.delay).min().unwrap_or(Dur::MAX);
    Partition { domain_of: labels, domains, lookahead }
}

/// Labels the nodes of `graph`, of which there are at least as many as `domains`.
fn divided(graph: &Graph, domains: usize) -> Vec<u32> {
    let mean = mean_of(&graph.weights, domains);
    let even = evenly(&graph.weights, domains);
    let least = heaviest(&even, &graph.weights, domains);
    let accepted = least.max(with_share(mean, IMBALANCE));
    let refined = |mut labels: Vec<u32>, slack: f64| {
        Refinement::of(graph, &mut labels, domains, least.max(with_share(mean, slack))).run();
        let most = heaviest(&labels, &graph.weights, domains);
        // The cost of the packets that cross falls on all domains.
        let time = most + (graph.cut(&labels) as f64 * CROSSING / domains as f64) as u64;
        (most.max(accepted), time, labels)
    };
    // Large groups keep pods and sites whole; small ones leave more ways to balance the domains. More slack allows
    // fewer packets to cross. A few heavy nodes can defeat all of this: an even distribution without regard to the cut
    // is the last resort.
    let starts = SLACKS.iter().flat_map(|&slack| GROUPS_PER_DOMAIN.map(|groups| (slack, mean / groups)));
    let found = starts.map(|(slack, limit)| refined(bisected(graph, domains, slack, limit), slack));
    match found.min() {
        Some((most, _, labels)) if most <= accepted => labels,
        _ => refined(even, IMBALANCE).2,
    }
}

/// Distributes nodes with these weights over `domains`: the heaviest first, each to the lightest domain. Every domain
/// gets a node if there are enough.
fn evenly(weights: &[u64], domains: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..weights.len() as u32).collect();
    order.sort_by_key(|&node| Reverse(weights[node as usize]));
    let mut lightest: BinaryHeap<_> = (0..domains as u32).map(|domain| Reverse((0, domain))).collect();
    let mut labels = vec![0; weights.len()];
    for node in order {
        if let Some(mut top) = lightest.peek_mut() {
            let Reverse((weight, domain)) = *top;
            labels[node as usize] = domain;
            *top = Reverse((weight + weights[node as usize], domain));
        }
    }
    labels
}

/// The weight of the heaviest domain.
fn heaviest(labels: &[u32], weights: &[u64], domains: usize) -> u64 {
    let mut sums = vec![0; domains];
    labels.iter().zip(weights).for_each(|(&label, weight)| sums[label as usize] += weight);
    sums.into_iter().max().unwrap_or(0)
}

/// The mean weight of a domain.
fn mean_of(weights: &[u64], domains: usize) -> u64 {
    weights.iter().sum::<u64>().div_ceil(domains as u64)
}

/// A weight increased by a share of it.
fn with_share(weight: u64, share: f64) -> u64 {
    weight + (weight as f64 * share) as u64
}

#[cfg(test)]
mod tests;
