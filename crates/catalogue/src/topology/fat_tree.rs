//! The fat tree of k-port switches (Al-Fares, Loukissas, Vahdat; SIGCOMM 2008): every host can send at its full rate to
//! any other if flows are spread over the equal-cost paths.
//!
//! There are k pods, each with k/2 edge and k/2 aggregation routers in a full bipartite mesh, and k/2 hosts per edge
//! router. (k/2)^2 core routers connect to one aggregation router of every pod.

use super::{TopologyForm, built};
use crate::schema::{Fallback, Field, Form, Key, Kind};
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::simulation::MAX_CABLES;
use sparelane_sim::{Network, NodeId, NodeKind};

/// The form in a scenario.
pub static FORM: TopologyForm = Form {
    name: "fat-tree",
    summary: "k pods of edge routers edgeP-I and aggregation routers aggP-I under core routers core0, core1, ...; host \
              hN is at edge router N / (k/2), counted through the pods; routing = \"ecmp\" spreads flows over the \
              cores",
    source: "Al-Fares et al., SIGCOMM 2008",
    keys: &[
        Key::new(
            "k",
            Kind::Whole { min: 2, max: FatTree::MAX_K as u64 },
            Fallback::Value("4"),
            "ports of each router, even: k pods, k^2/4 core routers, k^3/4 hosts",
        ),
        Key::new("rate", Kind::Rate, Fallback::Value("100Gbps"), "rate of the cables between routers"),
        Key::new("host_rate", Kind::Rate, Fallback::Nothing("same as rate"), "rate of each host's cable"),
        Key::new("delay", Kind::DELAY, Fallback::Value("1us"), "propagation delay of every cable, one way"),
    ],
    read: |section, _| {
        let k = section.need("k")?;
        let ports = k.whole()? as u32;
        if !ports.is_multiple_of(2) {
            return Err(k.error(format!("odd; allowed: an even number from 2 to {}", FatTree::MAX_K)));
        }
        let rate = section.need("rate")?.rate()?;
        let host_rate = section.maybe("host_rate", Field::rate)?.unwrap_or(rate);
        built(section, FatTree { k: ports, rate, host_rate, delay: section.need("delay")?.time()? }.build())
    },
};

/// The settings of a fat tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    /// Number of ports of each router, even: k pods and k^3 / 4 hosts.
    pub k: u32,
    /// Rate of the cables between routers.
    pub rate: Rate,
    /// Rate of the cable of each host.
    pub host_rate: Rate,
    /// Propagation delay of every cable, one way.
    pub delay: Dur,
}

impl FatTree {
    /// The largest k that the engine supports: a tree has 3 k^3 / 4 cables.
    pub const MAX_K: u32 = largest_k();

    /// Builds the network. Nodes come in this order: core routers `core0`, `core1`, ...; aggregation routers `agg0-0`
    /// (pod, position in the pod), `agg0-1`, ...; edge routers `edge0-0`, ...; hosts `h0`, `h1`, .... Host number i is
    /// at edge router number i / (k/2), counted through the pods. Core router number i connects to aggregation router i
    /// / (k/2) of every pod.
    ///
    /// # Errors
    /// Fails if k is odd, zero or above [`MAX_K`](Self::MAX_K), or a rate or delay is out of bounds.
    pub fn build(&self) -> Result<Network, TopologyError> {
        let (k, half) = (self.k, self.k / 2);
        if k == 0 || !k.is_multiple_of(2) || k > Self::MAX_K {
            return Err(TopologyError::new(format!("k is {k}; allowed: an even number from 2 to {}", Self::MAX_K)));
        }
        let rate = bounds::rate(None, "the rate", self.rate)?;
        let host_rate = bounds::rate(None, "the host rate", self.host_rate)?;
        let delay = bounds::delay(None, "the delay", self.delay)?;

        let mut network = Network::default();
        let cores: Vec<_> = (0..half * half).map(|i| network.add(format!("core{i}"), NodeKind::Router)).collect();
        let [aggregation, edge] = ["agg", "edge"].map(|layer| pods(&mut network, layer, k));
        // Each core router has one link per pod, to the aggregation router of its group.
        for (number, &core) in cores.iter().enumerate() {
            for pod in &aggregation {
                network.connect(core, pod[number / half as usize], rate, delay);
            }
        }
        for (upper, lower) in aggregation.iter().zip(&edge) {
            for &from in upper {
                for &to in lower {
                    network.connect(from, to, rate, delay);
                }
            }
        }
        // Each edge router has as many hosts as aggregation routers above it: full bisection bandwidth.
        let ports = edge.iter().flatten().flat_map(|&router| std::iter::repeat_n(router, half as usize));
        for (number, router) in ports.enumerate() {
            let host = network.add(format!("h{number}"), NodeKind::Host);
            network.connect(router, host, host_rate, delay);
        }
        Ok(network)
    }
}

/// Adds one layer of routers: k/2 in each of k pods.
fn pods(network: &mut Network, layer: &str, k: u32) -> Vec<Vec<NodeId>> {
    let mut pod = |pod| (0..k / 2).map(|i| network.add(format!("{layer}{pod}-{i}"), NodeKind::Router)).collect();
    (0..k).map(&mut pod).collect()
}

const fn largest_k() -> u32 {
    let mut k = 2;
    while 3 * (k as usize + 2).pow(3) / 4 <= MAX_CABLES {
        k += 2;
    }
    k
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::Routes;
    use sparelane_sim::Routing;

    use std::collections::BTreeMap;

    fn tree(k: u32) -> FatTree {
        FatTree { k, rate: Rate::from_gbps(100), host_rate: Rate::from_gbps(25), delay: Dur::from_us(1) }
    }

    #[test]
    fn k_determines_the_numbers_of_routers_hosts_and_cables() {
        for k in [2, 4, 6, 8] {
            let network = tree(k).build().unwrap();
            let (hosts, routers) = (k.pow(3) / 4, 5 * k * k / 4);
            assert_eq!(network.hosts().len(), hosts as usize);
            assert_eq!(network.nodes.len(), (hosts + routers) as usize);
            assert_eq!(network.cables.len(), 3 * hosts as usize);
            let mut ports = vec![0; network.nodes.len()];
            network.cables.iter().for_each(|cable| [cable.a, cable.b].iter().for_each(|end| ports[end.index()] += 1));
            let expected = |node: usize| if node < routers as usize { k } else { 1 };
            assert!(ports.iter().enumerate().all(|(node, &count)| count == expected(node)), "{ports:?}");
        }
    }

    #[test]
    fn names_contain_the_layer_the_pod_and_the_position() {
        let network = tree(4).build().unwrap();
        let names: Vec<_> = network.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names[..6], ["core0", "core1", "core2", "core3", "agg0-0", "agg0-1"]);
        assert_eq!(
            (names[11], names[12], names[19], names[20], names[35]),
            ("agg3-1", "edge0-0", "edge3-1", "h0", "h15")
        );
        assert_eq!(network.attachment(network.find("h7").unwrap()), network.find("edge1-1"));
        let joined = |a: &str, b: &str| {
            let (a, b) = (network.find(a).unwrap(), network.find(b).unwrap());
            network.cables.iter().any(|cable| (cable.a, cable.b) == (a, b))
        };
        assert!(joined("core1", "agg2-0") && joined("core2", "agg2-1") && !joined("core1", "agg2-1"));
        assert!(joined("agg1-0", "edge1-1") && !joined("agg1-0", "edge2-1"));
        let rates: Vec<_> = [0, 47].map(|cable: usize| network.cables[cable].rates[0]).to_vec();
        assert_eq!(rates, [Rate::from_gbps(100), Rate::from_gbps(25)]);
    }

    #[test]
    fn hosts_are_two_four_or_six_links_apart_whatever_the_routing() {
        let network = tree(4).build().unwrap();
        let hosts = network.hosts();
        for routing in [Routing::SinglePath, Routing::FirstCable, Routing::PerFlowEcmp, Routing::Spray] {
            let routes = Routes::of(&network, routing, 1);
            for (i, &src) in hosts.iter().enumerate() {
                for (j, &dst) in hosts.iter().enumerate().filter(|&(j, _)| j != i) {
                    let links = routes.links(&network, src, dst, 7).expect("a path").len();
                    let expected = if i / 2 == j / 2 {
                        2
                    } else if i / 4 == j / 4 {
                        4
                    } else {
                        6
                    };
                    assert_eq!(links, expected, "h{i} to h{j}");
                }
            }
        }
    }

    #[test]
    fn flows_between_pods_are_spread_evenly_over_all_cores() {
        let network = tree(4).build().unwrap();
        let routes = Routes::of(&network, Routing::PerFlowEcmp, 1);
        let (src, dst) = (network.find("h0").unwrap(), network.find("h15").unwrap());
        let mut flows_by_core = BTreeMap::new();
        for flow in 0..2000 {
            let links = routes.links(&network, src, dst, flow).expect("a path");
            let core = network.cables[links[2] as usize / 2].a;
            *flows_by_core.entry(core).or_insert(0) += 1;
        }
        assert_eq!(flows_by_core.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3].map(NodeId));
        assert!(flows_by_core.values().all(|count| (430..570).contains(count)), "{flows_by_core:?}");
    }

    #[test]
    fn an_odd_zero_or_too_large_k_is_refused() {
        for k in [0, 1, 5, FatTree::MAX_K + 2, u32::MAX] {
            let error = tree(k).build().unwrap_err().to_string();
            assert_eq!(error, format!("k is {k}; allowed: an even number from 2 to {}", FatTree::MAX_K));
        }
        assert!(tree(FatTree::MAX_K).build().unwrap().cables.len() <= MAX_CABLES);
        assert!(3 * (FatTree::MAX_K as usize + 2).pow(3) / 4 > MAX_CABLES);
        assert!(FatTree { delay: Dur::MAX, ..tree(4) }.build().is_err());
    }
}
