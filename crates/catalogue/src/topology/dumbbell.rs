//! The dumbbell: pairs of hosts across one bottleneck, as in most papers on congestion control.

use super::{ACCESS_DELAY, ACCESS_RATE, COUNT, TopologyForm, built};
use crate::schema::{Fallback, Form, Key, Kind};
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Network, NodeKind};

/// The form in a scenario.
pub static FORM: TopologyForm = Form {
    name: "dumbbell",
    summary: "hosts left0, left1, ... and right0, right1, ... on two routers, west and east",
    source: "sparelane",
    keys: &[
        Key::new("pairs", COUNT, Fallback::Value("1"), "hosts on each side"),
        ACCESS_RATE,
        ACCESS_DELAY,
        Key::new("bottleneck_rate", Kind::Rate, Fallback::Value("100Mbps"), "rate of the cable between the routers"),
        Key::new(
            "bottleneck_delay",
            Kind::DELAY,
            Fallback::Value("18ms"),
            "propagation delay of the cable between the routers, one way",
        ),
    ],
    read: |section, _| {
        let (rate, delay) = (|name| section.need(name)?.rate(), |name| section.need(name)?.time());
        let spec = Dumbbell {
            pairs: section.need("pairs")?.whole()? as u32,
            access_rate: rate("access_rate")?,
            access_delay: delay("access_delay")?,
            bottleneck_rate: rate("bottleneck_rate")?,
            bottleneck_delay: delay("bottleneck_delay")?,
        };
        built(section, spec.build())
    },
};

/// A dumbbell: hosts `left0`, `left1`, ... at router `west`, hosts `right0`, `right1`, ... at router `east`, and the
/// bottleneck between the routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dumbbell {
    /// Hosts on each side.
    pub pairs: u32,
    /// Rate of the cable of each host.
    pub access_rate: Rate,
    /// Propagation delay of the cable of each host, one way.
    pub access_delay: Dur,
    /// Rate of the cable between the routers.
    pub bottleneck_rate: Rate,
    /// Propagation delay of the cable between the routers, one way.
    pub bottleneck_delay: Dur,
}

impl Dumbbell {
    /// Builds the network, with nodes in the order `left0`.., `right0`.., `west`, `east`.
    ///
    /// # Errors
    /// Fails without pairs, with more nodes than allowed, or with a rate or delay out of bounds.
    pub fn build(&self) -> Result<Network, TopologyError> {
        let pairs = bounds::at_least("the number of pairs", self.pairs, 1)?;
        bounds::nodes(2 * u64::from(pairs) + 2)?;
        let rate = bounds::rate(None, "the access rate", self.access_rate)?;
        let delay = bounds::delay(None, "the access delay", self.access_delay)?;
        let bottleneck_rate = bounds::rate(None, "the bottleneck rate", self.bottleneck_rate)?;
        let bottleneck_delay = bounds::delay(None, "the bottleneck delay", self.bottleneck_delay)?;

        let mut network = Network::default();
        let left: Vec<_> = (0..pairs).map(|i| network.add(format!("left{i}"), NodeKind::Host)).collect();
        let right: Vec<_> = (0..pairs).map(|i| network.add(format!("right{i}"), NodeKind::Host)).collect();
        let west = network.add("west", NodeKind::Router);
        let east = network.add("east", NodeKind::Router);
        for host in left {
            network.connect(host, west, rate, delay);
        }
        for host in right {
            network.connect(east, host, rate, delay);
        }
        network.connect(west, east, bottleneck_rate, bottleneck_delay);
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Dumbbell = Dumbbell {
        pairs: 2,
        access_rate: Rate::from_gbps(10),
        access_delay: Dur::from_ms(1),
        bottleneck_rate: Rate::from_gbps(1),
        bottleneck_delay: Dur::from_ms(18),
    };

    #[test]
    fn each_side_is_attached_to_its_router_and_one_cable_joins_the_routers() {
        let network = TWO.build().unwrap();
        let names: Vec<_> = network.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["left0", "left1", "right0", "right1", "west", "east"]);
        assert_eq!(network.cables.len(), 5);
        let router = |name: &str| network.attachment(network.find(name).unwrap());
        assert_eq!(router("left1"), network.find("west"));
        assert_eq!(router("right0"), network.find("east"));
        let bottleneck = &network.cables[4];
        assert_eq!((bottleneck.rates, bottleneck.delay), ([Rate::from_gbps(1); 2], Dur::from_ms(18)));
    }

    #[test]
    fn a_dumbbell_without_hosts_or_rate_is_refused() {
        let error = Dumbbell { pairs: 0, ..TWO }.build().unwrap_err().to_string();
        assert_eq!(error, "the number of pairs is 0; allowed: 1 or more");
        let error = Dumbbell { bottleneck_rate: Rate::from_bps(0), ..TWO }.build().unwrap_err().to_string();
        assert!(error.starts_with("the bottleneck rate is 0 b/s; allowed: 1000"), "{error}");
    }
}
