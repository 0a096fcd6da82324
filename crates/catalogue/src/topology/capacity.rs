//! The capacity rule of the RC3 paper's topologies: every link is as loaded as the access links.
//!
//! Under uniform traffic to hosts behind other routers, each router sends `fan-out x access rate / (routers - 1)` to
//! each other router at full load. A link's capacity is that times the number of unordered router pairs whose static
//! shortest path uses it (ties: lowest node number first). Source: derived from the authors' Internet-2 file. The rule
//! yields all 16 capacities; rounded up to a Mb/s they are those in the file.
//!
//! If a host's cable is slower towards the host, the rule uses the rate from the host: the core is then that of the
//! network with symmetric cables.
//!
//! Choices of this implementation: the path of a pair is that from the lower-numbered router to the higher. A link that
//! no path uses gets the capacity of one pair, because the rule would leave it with none.

use crate::topology::{TopologyError, bounds};
use sparelane_core::Rate;
use sparelane_sim::RouterPaths;
use sparelane_sim::{Network, NodeId, NodeKind};

/// Returns, for each cable, the number of unordered router pairs whose shortest path uses it; zero for cables of hosts.
///
/// # Errors
/// Fails if no path joins two routers.
pub fn pairs_per_cable(network: &Network) -> Result<Vec<u64>, TopologyError> {
    let paths = RouterPaths::of(network);
    let routers = network.routers();
    let mut pairs = vec![0; network.cables.len()];
    for (position, &low) in routers.iter().enumerate() {
        for &high in &routers[position + 1..] {
            for hop in paths.between(low, high).ok_or_else(|| no_path(network, low, high))? {
                pairs[hop.cable()] += 1;
            }
        }
    }
    Ok(pairs)
}

/// Returns the rates of each cable under the rule, rounded up to a bit per second, with `fan_out` hosts per router that
/// send at `access_rate`. Cables of hosts keep their rates.
///
/// # Errors
/// Fails with fewer than two routers, two routers that no path joins, no fan-out, or a rate out of bounds.
pub fn balanced_rates(network: &Network, fan_out: u32, access_rate: Rate) -> Result<Vec<[Rate; 2]>, TopologyError> {
    let routers = network.routers().len() as u128;
    if routers < 2 {
        return Err(TopologyError::new(format!(
            "the network has {routers} routers; the capacity rule needs 2 or more"
        )));
    }
    let fan_out = bounds::at_least("the number of hosts per router", fan_out, 1)?;
    let access_rate = bounds::rate(None, "the access rate", access_rate)?;
    let router_bps = u128::from(fan_out) * u128::from(access_rate.as_bps());
    let balanced = |(cable, &pairs): (usize, &u64)| {
        let ends = &network.cables[cable];
        if [ends.a, ends.b].iter().any(|end| network.nodes[end.index()].kind == NodeKind::Host) {
            return Ok(ends.rates);
        }
        let bps = (u128::from(pairs.max(1)) * router_bps).div_ceil(routers - 1);
        let rate = bounds::rate(None, "a balanced rate", Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)))?;
        Ok([rate; 2])
    };
    pairs_per_cable(network)?.iter().enumerate().map(balanced).collect()
}

fn no_path(network: &Network, from: NodeId, to: NodeId) -> TopologyError {
    let name = |id: NodeId| &network.nodes[id.index()].name;
    TopologyError::new(format!(
        "no path of routers leads from `{}` to `{}`; every router must reach every other",
        name(from),
        name(to)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Internet2;
    use sparelane_core::Dur;

    #[test]
    fn the_rule_gives_all_sixteen_internet2_capacities() {
        let network = Internet2::default().build().unwrap();
        let pairs = pairs_per_cable(&network).unwrap();
        assert_eq!(pairs[..16], [5, 7, 13, 3, 3, 5, 1, 3, 5, 4, 9, 13, 1, 8, 2, 7]);
        let rates = balanced_rates(&network, 10, Rate::from_gbps(1)).unwrap();
        let in_file: Vec<_> = network.cables.iter().map(|cable| cable.slowest()).collect();
        let rounded: Vec<_> =
            rates.iter().map(|[rate, _]| Rate::from_mbps(rate.as_bps().div_ceil(1_000_000))).collect();
        assert_eq!(rounded, in_file);
    }

    #[test]
    fn a_link_that_no_path_uses_gets_one_pairs_share() {
        let mut network = Network::default();
        let nodes = ["a", "b", "c"].map(|name| network.add(name, NodeKind::Router));
        for (a, b, ms) in [(0, 1, 1), (1, 2, 1), (0, 2, 9)] {
            network.connect(nodes[a], nodes[b], Rate::from_gbps(1), Dur::from_ms(ms));
        }
        let rates = balanced_rates(&network, 2, Rate::from_mbps(100)).unwrap();
        assert_eq!(rates, [200, 200, 100].map(|mbps| [Rate::from_mbps(mbps); 2]));
    }

    #[test]
    fn a_network_in_two_parts_is_refused_by_name() {
        let mut network = Network::default();
        network.add("seattle", NodeKind::Router);
        assert!(balanced_rates(&network, 10, Rate::from_gbps(1)).is_err());
        network.add("boston", NodeKind::Router);
        let error = balanced_rates(&network, 10, Rate::from_gbps(1)).unwrap_err().to_string();
        assert!(error.contains("from `seattle` to `boston`"), "{error}");
    }
}
