//! The largest connected component of a network.

use sparelane_sim::{Network, NodeId};

/// Keeps the component with the most nodes, among equals the one with the first node. Returns the number of nodes
/// removed.
pub(super) fn keep_largest(network: &mut Network) -> usize {
    let mut part = Parts::of(network.nodes.len());
    for cable in &network.cables {
        part.join(cable.a.index(), cable.b.index());
    }
    let roots: Vec<_> = (0..network.nodes.len()).map(|node| part.root(node)).collect();
    let mut sizes = vec![0_usize; roots.len()];
    roots.iter().for_each(|&root| sizes[root] += 1);
    let Some(&largest) = roots.iter().rev().max_by_key(|&&root| sizes[root]) else { return 0 };
    let mut places = vec![None; roots.len()];
    let kept = (0..roots.len()).filter(|&node| roots[node] == largest);
    kept.zip(0..).for_each(|(node, place)| places[node] = Some(NodeId(place)));
    let before = network.nodes.len();
    let mut node = 0..;
    network.nodes.retain(|_| node.next().is_some_and(|node| places[node].is_some()));
    network.cables.retain_mut(|cable| match (places[cable.a.index()], places[cable.b.index()]) {
        (Some(a), Some(b)) => {
            (cable.a, cable.b) = (a, b);
            true
        }
        _ => false,
    });
    before - network.nodes.len()
}

/// Disjoint sets of connected nodes, as trees that point to their root.
struct Parts(Vec<usize>);

impl Parts {
    fn of(nodes: usize) -> Parts {
        Parts((0..nodes).collect())
    }

    /// Returns the first node of the component of `node`.
    fn root(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Dur, Rate};
    use sparelane_sim::NodeKind;

    fn network(nodes: u32, cables: &[(u32, u32)]) -> Network {
        let mut network = Network::default();
        (0..nodes).for_each(|node| {
            network.add(node.to_string(), NodeKind::Router);
        });
        for &(a, b) in cables {
            network.connect(NodeId(a), NodeId(b), Rate::from_gbps(1), Dur::from_ms(1));
        }
        network
    }

    fn kept(nodes: u32, cables: &[(u32, u32)]) -> (Vec<String>, Vec<(u32, u32)>) {
        let mut network = network(nodes, cables);
        let gone = keep_largest(&mut network);
        assert_eq!(gone + network.nodes.len(), nodes as usize);
        let names = network.nodes.iter().map(|node| node.name.clone()).collect();
        (names, network.cables.iter().map(|cable| (cable.a.0, cable.b.0)).collect())
    }

    #[test]
    fn the_largest_component_stays_and_is_renumbered() {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(kept(6, &[(0, 1), (2, 5), (5, 4)]), (names(&["2", "4", "5"]), vec![(0, 2), (2, 1)]));
        assert_eq!(kept(4, &[(2, 3), (0, 1)]), (names(&["0", "1"]), vec![(0, 1)]));
        assert_eq!(kept(3, &[]), (names(&["0"]), vec![]));
        assert_eq!(kept(0, &[]), (names(&[]), vec![]));
    }
}
