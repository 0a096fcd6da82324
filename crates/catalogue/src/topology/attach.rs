//! Attaches hosts to the routers of a graph without hosts.

use crate::topology::names::Names;
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Network, NodeId, NodeKind};

/// Attaches `per_router` hosts to each router and returns them. Each host has its own cable of `rate` in both
/// directions and `delay` one way.
///
/// Hosts are numbered in rounds, one per router and round: with only routers 0 to 9, host `10 + i` is at router
/// `i mod 10`. A host's name is `h` and its number.
///
/// # Errors
/// Fails without routers, without hosts per router, with more nodes than allowed, or with a rate or delay out of
/// bounds.
pub fn attach_hosts(
    network: &mut Network,
    per_router: u32,
    rate: Rate,
    delay: Dur,
) -> Result<Vec<NodeId>, TopologyError> {
    let rate = bounds::rate(None, "the access rate", rate)?;
    let delay = bounds::delay(None, "the access delay", delay)?;
    let per_router = bounds::at_least("the number of hosts per router", per_router, 1)?;
    let routers = network.routers();
    if routers.is_empty() {
        return Err(TopologyError::new("there is no router to attach hosts to; at least one is needed"));
    }
    bounds::nodes(network.nodes.len() as u64 + u64::from(per_router) * routers.len() as u64)?;
    let mut names = Names::of(network);
    let mut hosts = Vec::with_capacity(routers.len() * per_router as usize);
    for _ in 0..per_router {
        for &router in &routers {
            let name = names.claim(&format!("h{}", network.nodes.len()));
            let host = network.add(name, NodeKind::Host);
            network.connect(router, host, rate, delay);
            hosts.push(host);
        }
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_gbps(1);
    const DELAY: Dur = Dur::from_ms(1);

    #[test]
    fn every_router_gets_the_same_number_of_hosts_in_rounds() {
        let mut network = Network::default();
        let first = network.add("h3", NodeKind::Router);
        let second = network.add("b", NodeKind::Router);
        let hosts = attach_hosts(&mut network, 2, RATE, DELAY).unwrap();
        assert_eq!(hosts, network.hosts());
        let at: Vec<_> = hosts.iter().map(|&host| network.attachment(host)).collect();
        assert_eq!(at, [first, second, first, second].map(Some));
        for (&host, cable) in hosts.iter().zip(&network.cables) {
            assert_eq!((cable.b, cable.rates, cable.delay), (host, [RATE; 2], DELAY));
        }
        let names: Vec<_> = network.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["h3", "b", "h2", "h3-2", "h4", "h5"]);
    }

    #[test]
    fn an_invalid_argument_is_an_error() {
        let mut network = Network::default();
        assert!(attach_hosts(&mut network, 1, RATE, DELAY).is_err());
        network.add("a", NodeKind::Router);
        assert!(attach_hosts(&mut network, 0, RATE, DELAY).is_err());
        assert!(attach_hosts(&mut network, u32::MAX, RATE, DELAY).is_err());
        assert!(attach_hosts(&mut network, 1, Rate::from_bps(1), DELAY).is_err());
        assert!(attach_hosts(&mut network, 1, RATE, Dur::MAX).is_err());
        assert_eq!(network.nodes.len(), 1);
    }
}
