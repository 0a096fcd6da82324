//! The load of the links between routers when hosts offer given rates.

use crate::workload::WorkloadError;
use sparelane_sim::Routing;
use sparelane_sim::{Hop, RouterPaths};
use sparelane_sim::{Network, NodeId, NodeKind};
use std::collections::BTreeMap;

/// Offered payload in bits per second, from the hosts at one router to those at another.
pub(super) type Matrix = BTreeMap<(NodeId, NodeId), f64>;

/// Returns the expected load of each direction of each cable between routers, as a share of its rate, with traffic on
/// the paths of `routing`. If flows are spread, each router divides them evenly among its equal-cost next hops.
///
/// # Errors
/// Fails without a cable between routers, or with traffic between routers that no path joins.
pub(super) fn core_loads(network: &Network, matrix: &Matrix, routing: Routing) -> Result<Vec<f64>, WorkloadError> {
    let paths = RouterPaths::of(network);
    let whole = |hops: Vec<Hop>| hops.into_iter().map(|hop| (hop, 1.0)).collect();
    let shares = |from, to| match routing {
        Routing::SinglePath => paths.both_ways(network, from, to).map(whole),
        Routing::FirstCable => paths.by_first_cable(from, to).map(whole),
        Routing::PerFlowEcmp | Routing::Spray | Routing::SprayRoundRobin => paths.shares(from, to),
    };
    let mut offered_bps = vec![[0.0; 2]; network.cables.len()];
    for (&(from, to), bps) in matrix {
        let hops: Vec<(Hop, f64)> = shares(from, to).ok_or_else(|| {
            let name = |id: NodeId| &network.nodes[id.index()].name;
            let (from, to) = (name(from), name(to));
            WorkloadError::new(format!(
                "no path of routers leads from `{from}` to `{to}`, so no load on the core is defined"
            ))
        })?;
        for (hop, share) in hops {
            offered_bps[hop.cable()][network.cables[hop.cable()].direction_from(hop.from)] += share * bps;
        }
    }
    let router = |id: NodeId| network.nodes[id.index()].kind == NodeKind::Router;
    // Both directions count separately, because their rates may differ.
    let core = network.cables.iter().zip(offered_bps).filter(|(cable, _)| router(cable.a) && router(cable.b));
    let loads: Vec<_> =
        core.flat_map(|(cable, both)| (0..2).map(move |way| both[way] / cable.rates[way].as_bps() as f64)).collect();
    if loads.is_empty() {
        return Err(WorkloadError::new("no cable joins two routers, so no load on the core is defined"));
    }
    Ok(loads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Chain;
    use sparelane_core::{Dur, Rate};

    /// A ring of six. From 0 towards 5 the lowest next hop is 1; from 5 towards 0 it is 2, on the other side.
    fn ring() -> (Network, [NodeId; 6]) {
        let mut network = Network::default();
        let nodes = [0, 1, 2, 3, 4, 5].map(|i| network.add(format!("r{i}"), NodeKind::Router));
        for (a, b) in [(0, 1), (1, 4), (4, 5), (0, 3), (3, 2), (2, 5)] {
            network.connect(nodes[a], nodes[b], Rate::from_mbps(100), Dur::from_ms(1));
        }
        (network, nodes)
    }

    #[test]
    fn each_routing_loads_the_cables_that_its_paths_take() {
        let (network, nodes) = ring();
        let both = Matrix::from([((nodes[0], nodes[5]), 8e6), ((nodes[5], nodes[0]), 8e6)]);
        // The first cable of 5 leads to 4, and that of 0 leads to 1.
        let first = core_loads(&network, &both, Routing::FirstCable).unwrap();
        assert_eq!(first, [0.08, 0.08, 0.08, 0.08, 0.08, 0.08, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let spread = core_loads(&network, &both, Routing::PerFlowEcmp).unwrap();
        assert_eq!(spread, [0.04; 12]);
    }

    #[test]
    fn both_ways_between_two_routers_take_the_same_cables() {
        let (network, nodes) = ring();
        let loads = |from: usize, to: usize| {
            core_loads(&network, &Matrix::from([((nodes[from], nodes[to]), 1e6)]), Routing::SinglePath).unwrap()
        };
        let (there, back) = (loads(0, 5), loads(5, 0));
        let swapped: Vec<_> = back.chunks(2).flat_map(|both| [both[1], both[0]]).collect();
        assert_eq!(there, swapped);
        assert_eq!(there.iter().filter(|&&load| load > 0.0).count(), 3);
    }

    #[test]
    fn each_direction_carries_the_traffic_of_its_paths() {
        let network = Chain {
            routers: 3,
            hosts_per_router: 1,
            link_rate: Rate::from_mbps(100),
            link_delay: Dur::from_ms(1),
            access_rate: Rate::from_mbps(100),
            access_delay: Dur::from_ms(1),
        }
        .build()
        .unwrap();
        let [a, b, c] = [0, 1, 2].map(NodeId);
        let matrix = Matrix::from([((a, c), 10e6), ((a, b), 20e6), ((c, b), 5e6), ((b, b), 70e6)]);
        assert_eq!(core_loads(&network, &matrix, Routing::SinglePath).unwrap(), [0.3, 0.0, 0.1, 0.05]);
    }
}
