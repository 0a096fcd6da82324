//! How loaded the links between routers are when hosts offer given rates.

use crate::network::{Network, NodeId, NodeKind};
use crate::topology::RouterPaths;
use crate::workload::WorkloadError;
use std::collections::BTreeMap;

/// Offered payload, in bits per second, from the hosts at one router to those at another.
pub(super) type Matrix = BTreeMap<(NodeId, NodeId), f64>;

/// The expected load of each direction of each cable between routers, as a share of its rate, with traffic on static
/// shortest paths. Both ways between two routers take the path from the lower-numbered to the higher, as single-path
/// routing has it.
///
/// # Errors
/// No cable between routers, or traffic between routers that no path joins.
pub(super) fn core_loads(network: &Network, matrix: &Matrix) -> Result<Vec<f64>, WorkloadError> {
    let paths = RouterPaths::of(network);
    let mut offered_bps = vec![[0.0; 2]; network.cables.len()];
    for (&(from, to), bps) in matrix {
        let (low, high) = (from.min(to), from.max(to));
        let hops = paths.between(low, high).ok_or_else(|| {
            let name = |id: NodeId| &network.nodes[id.index()].name;
            let (from, to) = (name(from), name(to));
            WorkloadError::new(format!(
                "no path of routers leads from `{from}` to `{to}`, so no load on the core is defined"
            ))
        })?;
        for hop in hops {
            let along_cable = (hop.from == network.cables[hop.cable].a) == (from == low);
            offered_bps[hop.cable][usize::from(!along_cable)] += bps;
        }
    }
    let router = |id: NodeId| network.nodes[id.index()].kind == NodeKind::Router;
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

    #[test]
    fn both_ways_between_two_routers_take_the_same_cables() {
        // A ring of six: the lowest next hop from 0 towards 5 is 1, and from 5 towards 0 it is 2, on the other side.
        let mut network = Network::default();
        let nodes = [0, 1, 2, 3, 4, 5].map(|i| network.add(format!("r{i}"), NodeKind::Router));
        for (a, b) in [(0, 1), (1, 4), (4, 5), (0, 3), (3, 2), (2, 5)] {
            network.connect(nodes[a], nodes[b], Rate::from_mbps(100), Dur::from_ms(1));
        }
        let there = core_loads(&network, &Matrix::from([((nodes[0], nodes[5]), 1e6)])).unwrap();
        let back = core_loads(&network, &Matrix::from([((nodes[5], nodes[0]), 1e6)])).unwrap();
        let swapped: Vec<_> = back.chunks(2).flat_map(|both| [both[1], both[0]]).collect();
        assert_eq!(there, swapped);
        assert_eq!(there.iter().filter(|&&load| load > 0.0).count(), 3);
    }

    #[test]
    fn each_direction_carries_what_its_paths_bring() {
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
        assert_eq!(core_loads(&network, &matrix).unwrap(), [0.3, 0.0, 0.1, 0.05]);
    }
}
