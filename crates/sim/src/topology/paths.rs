//! Static shortest paths between routers, by propagation delay.
//!
//! Where several next hops lie on a shortest path, the one with the lowest node number is taken, or the one whose cable
//! is the first, or, for flows that are to be spread, one by the flow's hash. With the first rule the capacities of the RC3
//! paper's Internet-2 network come out exactly, see [`balanced_rates`]; with the second its link loads are those of the
//! authors' simulations.
//!
//! [`balanced_rates`]: crate::topology::balanced_rates

use crate::network::{Network, NodeId, NodeKind};
use sparelane_core::{Domain, Dur, Stream};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One cable on a path, and the node from which it is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index in [`Network::cables`].
    pub cable: usize,
    /// The end at which the packet enters.
    pub from: NodeId,
}

/// The distance to a destination: delay, then hops, so that cables without delay cannot make a loop.
type Distance = (Dur, u32);

/// A cable as seen from one of its ends.
#[derive(Clone, Copy)]
struct Exit {
    cable: usize,
    to: NodeId,
    delay: Dur,
}

/// Next hops between all pairs of routers. Hosts take no part: they never forward.
#[derive(Clone, Debug)]
pub struct RouterPaths {
    /// For each destination node, for each node: the cables on shortest paths and the nodes they lead to, by node
    /// number and then by cable. Empty for hosts.
    next: Vec<Vec<NextHops>>,
}

type NextHops = Vec<(usize, NodeId)>;

impl RouterPaths {
    /// The paths in `network`.
    pub fn of(network: &Network) -> RouterPaths {
        let exits = router_exits(network);
        let towards = |to: usize| match network.nodes[to].kind {
            NodeKind::Router => next_hops(&exits, &distances(&exits, NodeId(to as u32))),
            NodeKind::Host => Vec::new(),
        };
        RouterPaths { next: (0..network.nodes.len()).map(towards).collect() }
    }

    /// The hops from router `from` to router `to`: none where they are the same, `None` where no path exists or
    /// where one of them is no router.
    pub fn between(&self, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
        self.walk(from, to, |_, choices| choices.first())
    }

    /// As [`between`](Self::between), but of several next hops the one whose cable has the lowest number is taken, at each
    /// router by itself. The hops from `to` to `from` may be others.
    pub fn by_first_cable(&self, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
        self.walk(from, to, |_, choices| choices.iter().min())
    }

    /// As [`between`](Self::between), for a flow that is spread over all shortest paths: at each router its `hash` picks
    /// one of the next hops.
    pub fn spread(&self, from: NodeId, to: NodeId, hash: u64) -> Option<Vec<Hop>> {
        self.walk(from, to, |at, choices| {
            let pick = Stream::new(hash, Domain::Paths, u64::from(at.0)).below(choices.len().max(1) as u64);
            choices.get(pick as usize)
        })
    }

    /// The shares of many spread flows from `from` to `to` that take each hop: at every router they divide evenly among the
    /// next hops. `None` as with [`between`](Self::between).
    pub fn shares(&self, from: NodeId, to: NodeId) -> Option<Vec<(Hop, f64)>> {
        let next = self.next.get(to.index()).filter(|next| !next.is_empty())?;
        next.get(from.index()).filter(|hops| from == to || !hops.is_empty())?;
        // A router divides what it has when all of it has come: when every router that leads to it has divided its own.
        let mut to_come = vec![0_usize; next.len()];
        let mut reached = vec![false; next.len()];
        let mut found = vec![from];
        reached[from.index()] = true;
        while let Some(at) = found.pop() {
            for &(_, onward) in &next[at.index()] {
                to_come[onward.index()] += 1;
                if !std::mem::replace(&mut reached[onward.index()], true) {
                    found.push(onward);
                }
            }
        }
        let mut arrived = vec![0.0; next.len()];
        arrived[from.index()] = 1.0;
        let mut shares = Vec::with_capacity(8);
        let mut complete = vec![from];
        while let Some(at) = complete.pop() {
            let choices = &next[at.index()];
            let each = arrived[at.index()] / choices.len() as f64;
            for &(cable, onward) in choices {
                shares.push((Hop { cable, from: at }, each));
                arrived[onward.index()] += each;
                to_come[onward.index()] -= 1;
                if to_come[onward.index()] == 0 {
                    complete.push(onward);
                }
            }
        }
        Some(shares)
    }

    fn walk<'a>(
        &'a self,
        from: NodeId,
        to: NodeId,
        choose: impl Fn(NodeId, &'a NextHops) -> Option<&'a (usize, NodeId)>,
    ) -> Option<Vec<Hop>> {
        let next = self.next.get(to.index()).filter(|next| !next.is_empty())?;
        let mut hops = Vec::with_capacity(8);
        let mut at = from;
        while at != to {
            let &(cable, onward) = choose(at, next.get(at.index())?)?;
            hops.push(Hop { cable, from: at });
            at = onward;
        }
        Some(hops)
    }
}

/// The routers of `network`, in order.
pub(super) fn routers(network: &Network) -> Vec<NodeId> {
    let all = (0..network.nodes.len() as u32).map(NodeId);
    all.filter(|id| network.nodes[id.index()].kind == NodeKind::Router).collect()
}

/// `a + b`, or the longest span.
fn longer(a: Dur, b: Dur) -> Dur {
    Dur::from_ps(a.as_ps().saturating_add(b.as_ps()))
}

/// The cables between routers, by the node they leave from.
fn router_exits(network: &Network) -> Vec<Vec<Exit>> {
    let router = |id: NodeId| network.nodes[id.index()].kind == NodeKind::Router;
    let mut exits = vec![Vec::new(); network.nodes.len()];
    for (cable, ends) in network.cables.iter().enumerate() {
        if router(ends.a) && router(ends.b) {
            exits[ends.a.index()].push(Exit { cable, to: ends.b, delay: ends.delay });
            exits[ends.b.index()].push(Exit { cable, to: ends.a, delay: ends.delay });
        }
    }
    exits
}

/// Dijkstra's algorithm from `to`; cables are alike in both directions.
fn distances(exits: &[Vec<Exit>], to: NodeId) -> Vec<Option<Distance>> {
    let mut distance: Vec<Option<Distance>> = vec![None; exits.len()];
    let mut open = BinaryHeap::from([Reverse(((Dur::ZERO, 0), to))]);
    while let Some(Reverse((here, node))) = open.pop() {
        if distance[node.index()].is_some() {
            continue;
        }
        distance[node.index()] = Some(here);
        for exit in exits[node.index()].iter().filter(|exit| distance[exit.to.index()].is_none()) {
            open.push(Reverse(((longer(here.0, exit.delay), here.1 + 1), exit.to)));
        }
    }
    distance
}

/// From each node: the exits on a shortest path, by the node they lead to, then by cable.
fn next_hops(exits: &[Vec<Exit>], distance: &[Option<Distance>]) -> Vec<NextHops> {
    let next = |node: usize| {
        let Some(here) = distance[node] else { return Vec::new() };
        let shortest = |exit: &&Exit| {
            distance[exit.to.index()].is_some_and(|there| there < here && longer(there.0, exit.delay) == here.0)
        };
        let mut hops: NextHops = exits[node].iter().filter(shortest).map(|exit| (exit.cable, exit.to)).collect();
        hops.sort_by_key(|&(cable, to)| (to, cable));
        hops
    };
    (0..exits.len()).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::Rate;

    /// Routers 0.. with cables (a, b, delay in ms).
    fn graph(count: u32, cables: &[(u32, u32, u64)]) -> Network {
        let mut network = Network::default();
        for i in 0..count {
            network.add(format!("r{i}"), NodeKind::Router);
        }
        for &(a, b, ms) in cables {
            network.connect(NodeId(a), NodeId(b), Rate::from_gbps(1), Dur::from_ms(ms));
        }
        network
    }

    fn cables(network: &Network, from: u32, to: u32) -> Option<Vec<usize>> {
        let hops = RouterPaths::of(network).between(NodeId(from), NodeId(to))?;
        Some(hops.iter().map(|hop| hop.cable).collect())
    }

    #[test]
    fn the_path_of_least_delay_wins_over_the_one_of_fewest_hops() {
        let network = graph(3, &[(0, 2, 5), (0, 1, 2), (1, 2, 2)]);
        assert_eq!(cables(&network, 0, 2), Some(vec![1, 2]));
        assert_eq!(cables(&network, 2, 0), Some(vec![2, 1]));
        assert_eq!(cables(&network, 1, 1), Some(vec![]));
    }

    #[test]
    fn ties_go_to_the_lowest_node_and_then_to_the_first_cable() {
        let network = graph(4, &[(0, 2, 1), (2, 3, 1), (0, 1, 1), (1, 3, 1), (0, 1, 1)]);
        assert_eq!(cables(&network, 0, 3), Some(vec![2, 3]));
        let more_hops_but_lower = graph(3, &[(0, 2, 2), (0, 1, 1), (1, 2, 1)]);
        assert_eq!(cables(&more_hops_but_lower, 0, 2), Some(vec![1, 2]));
    }

    #[test]
    fn ties_go_to_the_first_cable_of_each_router_where_that_is_the_rule() {
        // The first cable of router 0 leads over 2, and that of router 3 over 1.
        let network = graph(4, &[(0, 2, 1), (1, 3, 1), (0, 1, 1), (2, 3, 1)]);
        let paths = RouterPaths::of(&network);
        let cables = |from, to| {
            let hops = paths.by_first_cable(NodeId(from), NodeId(to)).expect("a path");
            hops.iter().map(|hop| hop.cable).collect::<Vec<_>>()
        };
        assert_eq!((cables(0, 3), cables(3, 0)), (vec![0, 3], vec![1, 2]));
        assert_eq!(paths.by_first_cable(NodeId(1), NodeId(1)), Some(vec![]));
    }

    #[test]
    fn the_shares_of_spread_flows_are_those_that_many_of_them_take() {
        // Two ways from 0 to 3, and a third over 2 and 4: to 5 they are as long.
        let network = graph(6, &[(0, 1, 1), (0, 2, 1), (1, 3, 1), (2, 3, 1), (2, 4, 1), (3, 5, 1), (4, 5, 1)]);
        let paths = RouterPaths::of(&network);
        let mut shares = vec![0.0; network.cables.len()];
        for (hop, share) in paths.shares(NodeId(0), NodeId(5)).expect("a path") {
            shares[hop.cable] += share;
        }
        assert_eq!(shares, [0.5, 0.5, 0.5, 0.25, 0.25, 0.75, 0.25]);
        let mut uses = vec![0.0; network.cables.len()];
        for hash in 0..4000 {
            let hops = paths.spread(NodeId(0), NodeId(5), hash).expect("a path");
            hops.iter().for_each(|hop| uses[hop.cable] += 1.0 / 4000.0);
        }
        assert!(uses.iter().zip(&shares).all(|(used, share): (&f64, &f64)| (used - share).abs() < 0.03), "{uses:?}");
        assert_eq!(paths.shares(NodeId(2), NodeId(2)), Some(vec![]));
        assert_eq!(RouterPaths::of(&graph(2, &[])).shares(NodeId(0), NodeId(1)), None);
    }

    #[test]
    fn a_spread_flow_keeps_its_path_and_many_flows_use_them_all() {
        let network = graph(4, &[(0, 1, 1), (1, 3, 1), (0, 2, 1), (2, 3, 1)]);
        let paths = RouterPaths::of(&network);
        let mut uses = [0; 4];
        for hash in 0..1000 {
            let hops = paths.spread(NodeId(0), NodeId(3), hash).expect("a path");
            assert_eq!(hops, paths.spread(NodeId(0), NodeId(3), hash).expect("a path"));
            hops.iter().for_each(|hop| uses[hop.cable] += 1);
        }
        assert!(uses.iter().all(|uses| (430..570).contains(uses)), "{uses:?}");
    }

    #[test]
    fn cables_without_delay_make_no_loop() {
        let network = graph(4, &[(0, 1, 0), (1, 2, 0), (0, 2, 0), (2, 3, 0)]);
        for from in 0..4 {
            for to in 0..4 {
                assert!(cables(&network, from, to).is_some_and(|path| path.len() <= 2), "{from} to {to}");
            }
        }
    }

    #[test]
    fn hosts_never_forward_and_the_unreachable_stays_so() {
        let mut network = graph(2, &[]);
        let host = network.add("h", NodeKind::Host);
        network.connect(NodeId(0), host, Rate::from_gbps(1), Dur::ZERO);
        network.connect(NodeId(1), host, Rate::from_gbps(1), Dur::ZERO);
        assert_eq!(cables(&network, 0, 1), None);
        assert_eq!(cables(&network, 0, host.0), None);
    }
}
