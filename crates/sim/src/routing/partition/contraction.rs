//! The parts of a network that stay together.

use super::graph::Graph;
use crate::routing::network::{Cable, Network, NodeKind};
use sparelane_core::Dur;

/// The weights of all nodes add up to less than two to this power, so that sums of edges and of nodes fit.
const WEIGHT_BITS: u32 = 52;

/// The weights of the directions of a cable.
fn weights_of(cable: &Cable, shift: u32) -> [u64; 2] {
    cable.rates.map(|rate| (rate.as_bps() >> shift).max(1))
}

/// Disjoint sets of nodes.
#[derive(Clone)]
struct Sets(Vec<u32>);

impl Sets {
    fn root(&mut self, mut node: u32) -> u32 {
        while self.0[node as usize] != node {
            let above = self.0[self.0[node as usize] as usize];
            self.0[node as usize] = above;
            node = above;
        }
        node
    }

    /// Joins the sets of two nodes and returns true if they were two.
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b) as usize] = a.min(b);
        a != b
    }
}

/// A network in which some nodes must stay together.
pub(super) struct Contraction<'a> {
    network: &'a Network,
    /// The nodes that must stay together.
    sets: Sets,
    /// Cables that join all further nodes that have a connection, in the order of their delays.
    tree: Vec<(Dur, u32, u32)>,
    /// The weight of each node.
    weights: Vec<u64>,
    /// Weights are rates in bits per second, shifted right by this number of bits.
    shift: u32,
}

impl Contraction<'_> {
    /// The contraction of all cables that must not be cut: those without delay, those of hosts, and the fixed ones.
    pub(super) fn of(network: &Network, is_fixed: impl Fn(usize) -> bool) -> Contraction<'_> {
        let is_host = |node: usize| network.nodes[node].kind == NodeKind::Host;
        let mut sets = Sets((0..network.nodes.len() as u32).collect());
        let mut others = Vec::new();
        for (number, cable) in network.cables.iter().enumerate() {
            if cable.delay.is_zero() || is_host(cable.a.index()) || is_host(cable.b.index()) || is_fixed(number) {
                sets.join(cable.a.0, cable.b.0);
            } else {
                others.push((cable.delay, cable.a.0, cable.b.0));
            }
        }
        // Of these, a shortest spanning forest (Kruskal 1956) suffices to know which nodes shorter cables join.
        others.sort_by_key(|&(delay, _, _)| delay);
        let mut joined = sets.clone();
        let tree = others.into_iter().filter(|&(_, a, b)| joined.join(a, b)).collect();

        let rates = network.cables.iter().flat_map(|cable| cable.rates).map(|rate| u128::from(rate.as_bps()));
        let shift = (u128::BITS - rates.sum::<u128>().leading_zeros()).saturating_sub(WEIGHT_BITS);
        let mut weights = vec![0; network.nodes.len()];
        for cable in &network.cables {
            let [there, back] = weights_of(cable, shift);
            weights[cable.a.index()] += there;
            weights[cable.b.index()] += back;
        }
        Contraction { network, sets, tree, weights, shift }
    }

    /// The number of pieces into which the network can be cut. A piece without work does not count.
    pub(super) fn pieces(&self) -> usize {
        let (_, weights) = self.groups(Dur::ZERO);
        weights.len()
    }

    /// The groups of nodes for the longest lookahead at which `domains` can share the work evenly, and the graph of
    /// those with work. Groups without work have the highest numbers. `balance` takes the weights of groups. It returns
    /// the least weight of the heaviest domain, and the largest weight that is acceptable.
    pub(super) fn with_longest_lookahead(
        &self,
        domains: usize,
        balance: impl Fn(&[u64]) -> (u64, u64),
    ) -> (Vec<u32>, Graph) {
        let (mut groups, mut weights) = self.groups(Dur::ZERO);
        let (best, accepted) = balance(&weights);
        let bound = best.max(accepted);
        let mut delays: Vec<Dur> = self.tree.iter().map(|&(delay, _, _)| delay).collect();
        delays.dedup();
        // The first delay contracts nothing. No delay from `above` on leaves the work evenly shared.
        let (mut below, mut above) = (0, delays.len());
        while above > below + 1 {
            let middle = below.midpoint(above);
            let (longer, its_weights) = self.groups(delays[middle]);
            if its_weights.len() >= domains && balance(&its_weights).0 <= bound {
                (groups, weights, below) = (longer, its_weights, middle);
            } else {
                above = middle;
            }
        }
        let graph = self.graph(&groups, weights);
        (groups, graph)
    }

    /// The group of each node if cables with a delay below `lookahead` are not cut, and the weights of the groups with
    /// work. Groups are numbered in the order of their first nodes, those without work last.
    pub(super) fn groups(&self, lookahead: Dur) -> (Vec<u32>, Vec<u64>) {
        let mut sets = self.sets.clone();
        for &(_, a, b) in self.tree.iter().take_while(|&&(delay, _, _)| delay < lookahead) {
            sets.join(a, b);
        }
        let roots: Vec<u32> = (0..self.weights.len() as u32).map(|node| sets.root(node)).collect();
        let mut sums = vec![0; roots.len()];
        roots.iter().zip(&self.weights).for_each(|(&root, weight)| sums[root as usize] += weight);
        let is_root = |&node: &usize| roots[node] as usize == node;
        let (with_work, without): (Vec<_>, Vec<_>) = (0..roots.len()).filter(is_root).partition(|&root| sums[root] > 0);
        let mut numbers = vec![0; roots.len()];
        (0_u32..).zip(with_work.iter().chain(&without)).for_each(|(number, &root)| numbers[root] = number);
        (roots.iter().map(|&root| numbers[root as usize]).collect(), with_work.iter().map(|&root| sums[root]).collect())
    }

    /// The graph of groups with these weights.
    fn graph(&self, groups: &[u32], weights: Vec<u64>) -> Graph {
        let ends = |cable: &Cable| {
            let weight = weights_of(cable, self.shift).into_iter().sum();
            (groups[cable.a.index()], groups[cable.b.index()], weight)
        };
        let between = |&(a, b, _): &(u32, u32, u64)| a != b && (a.max(b) as usize) < weights.len();
        let ends: Vec<_> = self.network.cables.iter().map(ends).filter(between).collect();
        let mut has_hosts = vec![false; weights.len()];
        for (&group, node) in groups.iter().zip(&self.network.nodes) {
            if let Some(has_host) = has_hosts.get_mut(group as usize) {
                *has_host |= node.kind == NodeKind::Host;
            }
        }
        let mut graph = Graph::of(weights, &ends);
        graph.favour_cuts_far_from(&has_hosts);
        graph
    }
}
