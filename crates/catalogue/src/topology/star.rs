//! The star: hosts on one switch, as in testbeds.

use super::{TopologyForm, built};
use crate::schema::{Fallback, Form, Key, Kind};
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Network, NodeKind};

/// The form in a scenario.
pub static FORM: TopologyForm = Form {
    name: "star",
    summary: "hosts h1, h2, ... on one router, switch",
    source: "sparelane",
    keys: &[
        Key::new("hosts", Kind::Whole { min: 2, max: 1_000_000 }, Fallback::Value("5"), "number of hosts"),
        Key::new("rate", Kind::Rate, Fallback::Value("1Gbps"), "rate of each host's cable"),
        Key::new("delay", Kind::DELAY, Fallback::Value("50us"), "propagation delay of each host's cable, one way")
            .from("the round trip of 200 us of the RTCP paper's testbed, section V-A"),
    ],
    read: |section, _| {
        let (hosts, rate) = (section.need("hosts")?.whole()? as u32, section.need("rate")?.rate()?);
        built(section, Star { hosts, rate, delay: section.need("delay")?.time()? }.build())
    },
};

/// The settings of a star: hosts `h1`, `h2`, ... on the router `switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Star {
    /// Number of hosts.
    pub hosts: u32,
    /// Rate of the cable of each host.
    pub rate: Rate,
    /// Propagation delay of the cable of each host, one way.
    pub delay: Dur,
}

impl Star {
    /// Builds the network: the switch, then the hosts in order.
    ///
    /// # Errors
    /// Fails with fewer than two hosts, with more nodes or cables than allowed, or with a rate or delay out of bounds.
    pub fn build(&self) -> Result<Network, TopologyError> {
        let hosts = bounds::at_least("the number of hosts", self.hosts, 2)?;
        bounds::nodes(u64::from(hosts) + 1)?;
        bounds::cables(u64::from(hosts))?;
        let rate = bounds::rate(None, "the rate", self.rate)?;
        let delay = bounds::delay(None, "the delay", self.delay)?;

        let mut network = Network::default();
        let switch = network.add("switch", NodeKind::Router);
        for number in 1..=hosts {
            let host = network.add(format!("h{number}"), NodeKind::Host);
            network.connect(switch, host, rate, delay);
        }
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::NodeId;

    const FIVE: Star = Star { hosts: 5, rate: Rate::from_gbps(1), delay: Dur::from_us(25) };

    #[test]
    fn every_host_has_one_cable_to_the_switch() {
        let network = FIVE.build().unwrap();
        let names: Vec<_> = network.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["switch", "h1", "h2", "h3", "h4", "h5"]);
        let ends: Vec<_> = network.cables.iter().map(|cable| (cable.a.0, cable.b.0)).collect();
        assert_eq!(ends, [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]);
        assert!(network.hosts().iter().all(|&host| network.attachment(host) == Some(NodeId(0))));
        let [first, ..] = network.cables.as_slice() else { panic!("no cables") };
        assert_eq!((first.rates, first.delay), ([Rate::from_gbps(1); 2], Dur::from_us(25)));
    }

    #[test]
    fn one_host_alone_or_more_than_fit_are_refused() {
        for (hosts, expected) in [
            (0, "the number of hosts is 0; allowed: 2 or more"),
            (1, "the number of hosts is 1; allowed: 2 or more"),
            (3_000_000, "the network has 3000000 cables; allowed: at most 2097149"),
            (u32::MAX, "the network has 4294967296 nodes; allowed: at most 4000000"),
        ] {
            assert_eq!(Star { hosts, ..FIVE }.build().unwrap_err().to_string(), expected);
        }
        assert!(Star { rate: Rate::from_bps(1), ..FIVE }.build().is_err());
        assert!(Star { delay: Dur::MAX, ..FIVE }.build().is_err());
    }
}
