//! Puts hosts at the routers of a graph that has none.

use crate::network::{Network, NodeId, NodeKind};
use crate::topology::names::Names;
use crate::topology::paths::routers;
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};

/// The cable of each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCable {
    /// Rate from the host.
    pub up: Rate,
    /// Rate towards the host.
    pub down: Rate,
    /// Propagation delay, one way.
    pub delay: Dur,
}

impl HostCable {
    /// A cable of the same rate in both directions.
    pub const fn even(rate: Rate, delay: Dur) -> HostCable {
        HostCable { up: rate, down: rate, delay }
    }
}

/// Attaches `per_router` hosts to each router by a `cable` each, and returns the new hosts.
///
/// Hosts are numbered in rounds, one per router and round: with routers 0 to 9 alone, host `10 + i` is at
/// router `i mod 10`. A host is called `h` and its number.
///
/// # Errors
/// No routers, no hosts per router, more nodes than allowed, or a rate or delay out of bounds.
pub fn attach_hosts(network: &mut Network, per_router: u32, cable: HostCable) -> Result<Vec<NodeId>, TopologyError> {
    let up = bounds::rate(None, "the access rate", cable.up)?;
    let down = bounds::rate(None, "the access rate towards hosts", cable.down)?;
    let delay = bounds::delay(None, "the access delay", cable.delay)?;
    let per_router = bounds::at_least("the number of hosts per router", per_router, 1)?;
    let routers = routers(network);
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
            network.connect(router, host, down, delay).rates = [down, up];
            hosts.push(host);
        }
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CABLE: HostCable = HostCable { up: Rate::from_gbps(1), down: Rate::from_mbps(100), delay: Dur::from_ms(1) };

    #[test]
    fn every_router_gets_the_same_number_of_hosts_in_rounds() {
        let mut network = Network::default();
        let first = network.add("h3", NodeKind::Router);
        let second = network.add("b", NodeKind::Router);
        let hosts = attach_hosts(&mut network, 2, CABLE).unwrap();
        assert_eq!(hosts, network.hosts());
        let at: Vec<_> = hosts.iter().map(|&host| network.attachment(host)).collect();
        assert_eq!(at, [first, second, first, second].map(Some));
        for (&host, cable) in hosts.iter().zip(&network.cables) {
            let router = network.attachment(host).unwrap();
            assert_eq!((cable.rate_from(host), cable.rate_from(router)), (CABLE.up, CABLE.down));
        }
        let names: Vec<_> = network.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["h3", "b", "h2", "h3-2", "h4", "h5"]);
    }

    #[test]
    fn nothing_is_attached_where_something_is_wrong() {
        let mut network = Network::default();
        assert!(attach_hosts(&mut network, 1, CABLE).is_err());
        network.add("a", NodeKind::Router);
        assert!(attach_hosts(&mut network, 0, CABLE).is_err());
        assert!(attach_hosts(&mut network, u32::MAX, CABLE).is_err());
        for wrong in [HostCable { up: Rate::from_bps(1), ..CABLE }, HostCable { down: Rate::from_bps(1), ..CABLE }] {
            assert!(attach_hosts(&mut network, 1, wrong).is_err());
        }
        assert_eq!(network.nodes.len(), 1);
    }
}
