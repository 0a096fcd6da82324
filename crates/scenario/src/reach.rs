//! Distances between hosts: reachability, and the scenario's bandwidth-delay product.

use sparelane_core::Dur;
use sparelane_sim::RouterPaths;
use sparelane_sim::{Network, NodeId, NodeKind};
use std::collections::{BTreeMap, BTreeSet};

/// The bandwidth-delay product that `"1bdp"` stands for, in bytes: the rate of the slowest cable (in its slower
/// direction) times the mean base round-trip time, rounded down.
///
/// The base round-trip time of two hosts is twice the propagation delay of the shortest path between them, without
/// transmission times. The mean is over all pairs of hosts behind different routers or, if there is no such pair, over
/// all pairs of hosts.
pub fn bdp_bytes(network: &Network, distances: &Distances) -> u64 {
    let slowest = network.cables.iter().map(|cable| cable.slowest()).min().unwrap_or_default();
    slowest.bytes_in(distances.mean_base_rtt())
}

/// Hosts attached to the same node with the same delay.
type Group = (NodeId, Dur);

/// One-way propagation delays between the hosts of a network in which all hosts reach each other.
#[derive(Clone, Debug)]
pub struct Distances {
    /// The number of pairs of hosts and the sum of their delays in picoseconds, behind different nodes and behind the
    /// same node.
    apart: (u64, u128),
    together: (u64, u128),
}

impl Distances {
    /// The delays in `network`, or two hosts without a path between them.
    pub fn of(network: &Network) -> Result<Distances, (NodeId, NodeId)> {
        let groups = groups(network);
        let paths = RouterPaths::of(network);
        let mut distances = Distances { apart: (0, 0), together: (0, 0) };
        for (&(from, near), sources) in &groups {
            for (&(to, far), sinks) in &groups {
                let pairs = if (from, near) == (to, far) {
                    sources.len() * (sources.len() - 1)
                } else {
                    sources.len() * sinks.len()
                } as u64;
                if pairs == 0 {
                    continue;
                }
                let direct = (sources.as_slice() == [to] && sinks.as_slice() == [from]).then_some(near);
                let delay = direct.or_else(|| Some(near + paths.delay(from, to)? + far));
                let delay = delay.ok_or((sources[0], sinks[sinks.len() - 1]))?;
                let sum = if from == to { &mut distances.together } else { &mut distances.apart };
                sum.0 += pairs;
                sum.1 += u128::from(pairs) * u128::from(delay.as_ps());
            }
        }
        Ok(distances)
    }

    /// The mean base round-trip time, rounded down to a picosecond.
    pub fn mean_base_rtt(&self) -> Dur {
        let (pairs, sum) = if self.apart.0 > 0 { self.apart } else { self.together };
        let mean = (2 * sum).checked_div(u128::from(pairs)).unwrap_or(0);
        Dur::from_ps(u64::try_from(mean).unwrap_or(u64::MAX))
    }
}

/// The hosts by the node at the other end of their first cable, and by its delay. A host without cable forms a group of
/// its own.
fn groups(network: &Network) -> BTreeMap<Group, Vec<NodeId>> {
    let mut first: Vec<Option<Group>> = vec![None; network.nodes.len()];
    for cable in &network.cables {
        for (end, other) in [(cable.a, cable.b), (cable.b, cable.a)] {
            first[end.index()].get_or_insert((other, cable.delay));
        }
    }
    let mut groups: BTreeMap<Group, Vec<NodeId>> = BTreeMap::new();
    for host in network.hosts() {
        let group = first[host.index()].unwrap_or((host, Dur::ZERO));
        groups.entry(group).or_default().push(host);
    }
    groups
}

/// The number of routers with hosts.
pub fn access_routers(network: &Network) -> usize {
    let nodes: BTreeSet<NodeId> = groups(network).into_keys().map(|(at, _)| at).collect();
    nodes.into_iter().filter(|node| network.nodes[node.index()].kind == NodeKind::Router).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_catalogue::topology::{Dumbbell, Internet2};
    use sparelane_core::Rate;

    #[test]
    fn the_product_is_the_slowest_rate_times_the_mean_base_rtt_between_routers() {
        let dumbbell = Dumbbell {
            pairs: 3,
            access_rate: Rate::from_gbps(1),
            access_delay: Dur::from_ms(1),
            bottleneck_rate: Rate::from_mbps(100),
            bottleneck_delay: Dur::from_ms(18),
        };
        let network = dumbbell.build().expect("a dumbbell");
        let distances = Distances::of(&network).expect("connected");
        assert_eq!(distances.mean_base_rtt(), Dur::from_ms(40));
        assert_eq!(bdp_bytes(&network, &distances), 500_000);
    }

    /// The mean base RTT of the RC3 paper's topology: of 45 router pairs, 16, 17, 9 and 3 are at 24, 44, 64 and 84 ms.
    #[test]
    fn the_internet2_network_has_a_mean_rtt_of_43_6_ms() {
        let network = Internet2::default().build().expect("a network");
        let mean = Distances::of(&network).expect("connected").mean_base_rtt();
        assert_eq!(mean, Dur::from_us((16 * 24 + 17 * 44 + 9 * 64 + 3 * 84) * 1000) / 45);
    }

    #[test]
    fn hosts_behind_one_router_or_on_one_cable_count_if_no_others_exist() {
        let mut network = Network::default();
        let [a, b] = ["a", "b"].map(|name| network.add(name, NodeKind::Host));
        network.connect(a, b, Rate::from_mbps(8), Dur::from_ms(5));
        let distances = Distances::of(&network).expect("connected");
        assert_eq!(bdp_bytes(&network, &distances), 10_000);

        let mut network = Network::default();
        let router = network.add("r", NodeKind::Router);
        for (name, ms) in [("a", 1), ("b", 1), ("c", 4)] {
            let host = network.add(name, NodeKind::Host);
            network.connect(host, router, Rate::from_mbps(8), Dur::from_ms(ms));
        }
        let distances = Distances::of(&network).expect("connected");
        assert_eq!(distances.mean_base_rtt(), Dur::from_ms(2 * (2 + 5 + 5)) / 3);
    }

    #[test]
    fn two_hosts_without_a_path_are_named() {
        let mut network = Network::default();
        let nodes = ["a", "b", "c", "d"].map(|name| network.add(name, NodeKind::Host));
        network.connect(nodes[0], nodes[1], Rate::from_mbps(8), Dur::from_ms(5));
        network.connect(nodes[2], nodes[3], Rate::from_mbps(8), Dur::from_ms(5));
        assert!(Distances::of(&network).is_err());
        let mut lonely = Network::default();
        let router = lonely.add("r", NodeKind::Router);
        let host = lonely.add("a", NodeKind::Host);
        lonely.connect(host, router, Rate::from_mbps(8), Dur::ZERO);
        let other = lonely.add("b", NodeKind::Host);
        assert_eq!(Distances::of(&lonely).map(|_| ()), Err((host, other)));
    }
}
