//! Routers in a row with hosts at each, the "parking lot" of multi-bottleneck studies.

use super::{ACCESS_DELAY, ACCESS_RATE, COUNT, TopologyForm, built};
use crate::schema::{Fallback, Form, Key, Kind, ScenarioError};
use crate::topology::{TopologyError, attach_hosts, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Network, NodeKind};

/// The form in a scenario.
pub static FORM: TopologyForm = Form {
    name: "chain",
    summary: "routers r0, r1, ... in a row with hosts at each; host number routers + i is at router i mod routers",
    source: "sparelane",
    keys: &[
        Key::new("routers", COUNT, Fallback::Value("3"), "number of routers"),
        Key::new("hosts_per_router", COUNT, Fallback::Value("1"), "hosts at each router"),
        Key::new("link_rate", Kind::Rate, Fallback::Value("100Mbps"), "rate of the cables between routers"),
        Key::new(
            "link_delay",
            Kind::DELAY,
            Fallback::Value("10ms"),
            "propagation delay of the cables between routers, one way",
        ),
        ACCESS_RATE,
        ACCESS_DELAY,
    ],
    read: |section, _| {
        let count = |name| Ok::<_, ScenarioError>(section.need(name)?.whole()? as u32);
        let spec = Chain {
            routers: count("routers")?,
            hosts_per_router: count("hosts_per_router")?,
            link_rate: section.need("link_rate")?.rate()?,
            link_delay: section.need("link_delay")?.time()?,
            access_rate: section.need("access_rate")?.rate()?,
            access_delay: section.need("access_delay")?.time()?,
        };
        built(section, spec.build())
    },
};

/// Routers `r0`, `r1`, ... in a row, and the same number of hosts at each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Number of routers.
    pub routers: u32,
    /// Hosts at each router.
    pub hosts_per_router: u32,
    /// Rate of the cables between routers.
    pub link_rate: Rate,
    /// Propagation delay of the cables between routers, one way.
    pub link_delay: Dur,
    /// Rate of the cable of each host.
    pub access_rate: Rate,
    /// Propagation delay of the cable of each host, one way.
    pub access_delay: Dur,
}

impl Chain {
    /// Builds the network: the routers first, then hosts as [`attach_hosts`] numbers and names them.
    ///
    /// # Errors
    /// Fails without routers or hosts, with more nodes than allowed, or with a rate or delay out of bounds.
    pub fn build(&self) -> Result<Network, TopologyError> {
        let routers = bounds::at_least("the number of routers", self.routers, 1)?;
        bounds::nodes(u64::from(routers) * (1 + u64::from(self.hosts_per_router)))?;
        let rate = bounds::rate(None, "the link rate", self.link_rate)?;
        let delay = bounds::delay(None, "the link delay", self.link_delay)?;

        let mut network = Network::default();
        let row: Vec<_> = (0..routers).map(|i| network.add(format!("r{i}"), NodeKind::Router)).collect();
        for neighbours in row.windows(2) {
            network.connect(neighbours[0], neighbours[1], rate, delay);
        }
        attach_hosts(&mut network, self.hosts_per_router, self.access_rate, self.access_delay)?;
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::NodeId;

    const THREE: Chain = Chain {
        routers: 3,
        hosts_per_router: 2,
        link_rate: Rate::from_mbps(100),
        link_delay: Dur::from_ms(10),
        access_rate: Rate::from_gbps(1),
        access_delay: Dur::from_ms(1),
    };

    #[test]
    fn routers_form_a_row_with_the_same_hosts_at_each() {
        let network = THREE.build().unwrap();
        assert_eq!((network.nodes.len(), network.cables.len()), (9, 8));
        let row: Vec<_> = network.cables[..2].iter().map(|cable| (cable.a, cable.b)).collect();
        assert_eq!(row, [(NodeId(0), NodeId(1)), (NodeId(1), NodeId(2))]);
        for host in network.hosts() {
            assert_eq!(network.attachment(host), Some(NodeId((host.0 - 3) % 3)));
        }
    }

    #[test]
    fn a_chain_without_routers_or_hosts_is_refused() {
        assert!(Chain { routers: 0, ..THREE }.build().is_err());
        assert!(Chain { hosts_per_router: 0, ..THREE }.build().is_err());
        assert!(Chain { routers: u32::MAX, hosts_per_router: u32::MAX, ..THREE }.build().is_err());
    }
}
