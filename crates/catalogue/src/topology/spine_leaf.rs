//! The spine-leaf network of datacentres: every leaf switch is connected to every spine switch, and servers to the
//! leaves.
//!
//! Servers at different leaves have one equal-cost path per spine; flows use one each if routing spreads them.

use super::{COUNT, TopologyForm, built};
use crate::schema::{Fallback, Form, Key, Kind, ScenarioError};
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Network, NodeKind};

/// The form in a scenario.
pub static FORM: TopologyForm = Form {
    name: "spine-leaf",
    summary: "leaf switches leaf1, leaf2, ..., each joined to all spine switches spine1, spine2, ...; server J of leaf \
              I is leafI_hJ; routing = \"ecmp\" spreads flows over the spines",
    source: "the RTCP paper, section V-B and Fig. 3(b)",
    keys: &[
        Key::new("spines", COUNT, Fallback::Value("3"), "number of spine switches"),
        Key::new("leaves", COUNT, Fallback::Value("8"), "number of leaf switches"),
        Key::new("servers", COUNT, Fallback::Value("12"), "servers at each leaf"),
        Key::new("server_rate", Kind::Rate, Fallback::Value("10Gbps"), "rate of each server's cable"),
        Key::new("spine_rate", Kind::Rate, Fallback::Value("40Gbps"), "rate of each cable from a leaf to a spine"),
        Key::new("delay", Kind::DELAY, Fallback::Value("1us"), "propagation delay of every cable, one way"),
        Key::new("over_subscription", Kind::Positive { max: 1e6 }, Fallback::Value("1.0"), "divisor of spine_rate"),
    ],
    read: |section, _| {
        let count = |name| Ok::<_, ScenarioError>(section.need(name)?.whole()? as u32);
        let spec = SpineLeaf {
            spines: count("spines")?,
            leaves: count("leaves")?,
            servers: count("servers")?,
            server_rate: section.need("server_rate")?.rate()?,
            spine_rate: section.need("spine_rate")?.rate()?,
            over_subscription: section.need("over_subscription")?.positive()?,
            delay: section.need("delay")?.time()?,
        };
        built(section, spec.build())
    },
};

/// The settings of a spine-leaf network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpineLeaf {
    /// Number of spine switches.
    pub spines: u32,
    /// Number of leaf switches.
    pub leaves: u32,
    /// Servers at each leaf.
    pub servers: u32,
    /// Rate of the cable of each server.
    pub server_rate: Rate,
    /// Rate of each cable between a leaf and a spine, before division by `over_subscription`.
    pub spine_rate: Rate,
    /// Divisor of the rate between leaves and spines, above 0.
    pub over_subscription: f64,
    /// Propagation delay of every cable, one way.
    pub delay: Dur,
}

impl SpineLeaf {
    /// Builds the network; everything is counted from 1. Nodes come in this order: `spine1`, `spine2`, ...; `leaf1`,
    /// `leaf2`, ...; the servers `leaf1_h1`, `leaf1_h2`, ... of the first leaf, those of the second, and so on. Cables
    /// between leaves and spines precede those of servers.
    ///
    /// # Errors
    /// Fails without spines or leaves, with fewer than two servers, with more nodes or cables than allowed, with a rate
    /// or delay out of bounds, or with an over-subscription of zero or less.
    pub fn build(&self) -> Result<Network, TopologyError> {
        let spines = bounds::at_least("the number of spines", self.spines, 1)?;
        let leaves = bounds::at_least("the number of leaves", self.leaves, 1)?;
        let servers = bounds::at_least("the number of servers at each leaf", self.servers, 1)?;
        let [wide, deep, each] = [spines, leaves, servers].map(u64::from);
        if deep * each < 2 {
            return Err(TopologyError::new("the network has one server; allowed: two or more"));
        }
        // Check sizes before building: a large network would exhaust memory first.
        bounds::nodes(wide + deep + deep * each)?;
        bounds::cables(deep * (wide + each))?;
        let server_rate = bounds::rate(None, "the rate of servers", self.server_rate)?;
        let uplink_rate = self.uplink_rate()?;
        let delay = bounds::delay(None, "the delay", self.delay)?;

        let mut network = Network::default();
        let spines: Vec<_> = (1..=spines).map(|i| network.add(format!("spine{i}"), NodeKind::Router)).collect();
        let leaves: Vec<_> = (1..=leaves).map(|i| network.add(format!("leaf{i}"), NodeKind::Router)).collect();
        for &leaf in &leaves {
            for &spine in &spines {
                network.connect(leaf, spine, uplink_rate, delay);
            }
        }
        for (leaf, number) in leaves.into_iter().zip(1..) {
            for place in 1..=servers {
                let server = network.add(format!("leaf{number}_h{place}"), NodeKind::Host);
                network.connect(leaf, server, server_rate, delay);
            }
        }
        Ok(network)
    }

    fn uplink_rate(&self) -> Result<Rate, TopologyError> {
        let divisor = self.over_subscription;
        if !(divisor > 0.0 && divisor.is_finite()) {
            return Err(TopologyError::new(format!("the over-subscription is {divisor}; allowed: above 0")));
        }
        let spine_rate = bounds::rate(None, "the rate of spines", self.spine_rate)?;
        let divided = Rate::from_bps((spine_rate.as_bps() as f64 / divisor + 0.5) as u64);
        bounds::rate(None, "the rate of spines over the over-subscription", divided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::NodeId;
    use sparelane_sim::Routes;
    use sparelane_sim::Routing;

    use std::collections::BTreeMap;

    /// The network of the RTCP paper's simulations, section V-B.
    const PAPER: SpineLeaf = SpineLeaf {
        spines: 3,
        leaves: 8,
        servers: 12,
        server_rate: Rate::from_gbps(10),
        spine_rate: Rate::from_gbps(40),
        over_subscription: 1.0,
        delay: Dur::from_us(1),
    };

    #[test]
    fn every_leaf_has_a_cable_to_every_spine_and_its_own_servers() {
        let network = PAPER.build().unwrap();
        assert_eq!((network.nodes.len(), network.hosts().len(), network.cables.len()), (107, 96, 24 + 96));
        let id = |name: &str| network.find(name).unwrap();
        for leaf in 1..=8 {
            let ups = (1..=3).map(|spine| (id(&format!("leaf{leaf}")), id(&format!("spine{spine}"))));
            for ends in ups {
                let cables: Vec<_> = network.cables.iter().filter(|cable| (cable.a, cable.b) == ends).collect();
                assert_eq!((cables.len(), cables[0].rates), (1, [Rate::from_gbps(40); 2]));
            }
            for server in 1..=12 {
                let server = id(&format!("leaf{leaf}_h{server}"));
                assert_eq!(network.attachment(server), Some(id(&format!("leaf{leaf}"))));
            }
        }
        assert!(network.cables[24..].iter().all(|cable| cable.rates == [Rate::from_gbps(10); 2]));
        assert!(network.cables.iter().all(|cable| cable.delay == Dur::from_us(1)));
    }

    #[test]
    fn an_over_subscription_divides_the_rates_to_the_spines_alone() {
        let network = SpineLeaf { over_subscription: 1.5, ..PAPER }.build().unwrap();
        assert!(network.cables[..24].iter().all(|cable| cable.slowest() == Rate::from_bps(26_666_666_667)));
        assert!(network.cables[24..].iter().all(|cable| cable.slowest() == Rate::from_gbps(10)));
    }

    #[test]
    fn flows_between_leaves_are_spread_evenly_over_all_spines_and_local_flows_use_none() {
        let network = PAPER.build().unwrap();
        let routes = Routes::of(&network, Routing::PerFlowEcmp, 1);
        let id = |name: &str| network.find(name).unwrap();
        let mut flows_by_spine = BTreeMap::new();
        for flow in 0..3000 {
            let links = routes.links(&network, id("leaf1_h1"), id("leaf8_h12"), flow).unwrap();
            assert_eq!(links.len(), 4);
            *flows_by_spine.entry(network.cables[links[1] as usize / 2].b).or_insert(0) += 1;
        }
        assert_eq!(flows_by_spine.keys().copied().collect::<Vec<_>>(), [0, 1, 2].map(NodeId));
        assert!(flows_by_spine.values().all(|count| (900..1100).contains(count)), "{flows_by_spine:?}");
        assert_eq!(routes.links(&network, id("leaf1_h1"), id("leaf1_h2"), 0).unwrap().len(), 2);
    }

    #[test]
    fn an_invalid_network_is_refused_by_name() {
        let huge = SpineLeaf { spines: 300_000, leaves: 300_000, ..PAPER };
        for (spec, expected) in [
            (SpineLeaf { spines: 0, ..PAPER }, "the number of spines is 0; allowed: 1 or more"),
            (SpineLeaf { leaves: 0, ..PAPER }, "the number of leaves is 0; allowed: 1 or more"),
            (SpineLeaf { servers: 0, ..PAPER }, "the number of servers at each leaf is 0; allowed: 1 or more"),
            (SpineLeaf { leaves: 1, servers: 1, ..PAPER }, "the network has one server; allowed: two or more"),
            (SpineLeaf { over_subscription: 0.0, ..PAPER }, "the over-subscription is 0; allowed: above 0"),
            (SpineLeaf { over_subscription: -2.0, ..PAPER }, "the over-subscription is -2; allowed: above 0"),
            (SpineLeaf { over_subscription: f64::NAN, ..PAPER }, "the over-subscription is NaN; allowed: above 0"),
            (
                SpineLeaf { over_subscription: 1e9, ..PAPER },
                "the rate of spines over the over-subscription is 40 b/s; allowed: 1000 to 100000000000000 b/s",
            ),
            (huge, "the network has 4200000 nodes; allowed: at most 4000000"),
            (SpineLeaf { servers: 1, ..huge }, "the network has 90000300000 cables; allowed: at most 2097149"),
        ] {
            assert_eq!(spec.build().unwrap_err().to_string(), expected);
        }
        assert!(SpineLeaf { delay: Dur::MAX, ..PAPER }.build().is_err());
    }
}
