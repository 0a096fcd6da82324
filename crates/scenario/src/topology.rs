//! `[topology]`: a ready-made network, or one from a file.

use crate::error::ScenarioError;
use crate::field::{Field, Section};
use crate::files::{Input, Source};
use crate::keys::{Fallback, Key, Kind, Variant};
use crate::units;
use sparelane_core::{Dur, Rate};
use sparelane_sim::topology::{
    Chain, DrawnRates, Dumbbell, FatTree, GraphmlDefaults, Internet2, SpineLeaf, Star, TopologyError, UnitParser,
    attach_hosts, balanced_rates, graphml, neutral,
};
use sparelane_sim::{Network, NodeKind};

const COUNT: Kind = Kind::Whole { min: 1, max: 1_000_000 };
const ACCESS_RATE: Key = Key::new("access_rate", Kind::Rate, Fallback::Value("1Gbps"), "rate of each host's cable");
const ACCESS_DELAY: Key =
    Key::new("access_delay", Kind::DELAY, Fallback::Value("1ms"), "propagation delay of each host's cable, one way");

/// Every form of `[topology]`.
pub static TOPOLOGIES: &[Variant] = &[
    Variant {
        name: "dumbbell",
        summary: "hosts left0, left1, ... and right0, right1, ... on two routers, west and east",
        source: "sparelane",
        keys: &[
            Key::new("pairs", COUNT, Fallback::Value("1"), "hosts on each side"),
            ACCESS_RATE,
            ACCESS_DELAY,
            Key::new(
                "bottleneck_rate",
                Kind::Rate,
                Fallback::Value("100Mbps"),
                "rate of the cable between the routers",
            ),
            Key::new("bottleneck_delay", Kind::DELAY, Fallback::Value("18ms"), "its propagation delay, one way"),
        ],
    },
    Variant {
        name: "chain",
        summary: "routers r0, r1, ... in a row with hosts at each; host number routers + i is at router i mod routers",
        source: "sparelane",
        keys: &[
            Key::new("routers", COUNT, Fallback::Value("3"), "routers in the row"),
            Key::new("hosts_per_router", COUNT, Fallback::Value("1"), "hosts at each router"),
            Key::new("link_rate", Kind::Rate, Fallback::Value("100Mbps"), "rate of the cables between routers"),
            Key::new("link_delay", Kind::DELAY, Fallback::Value("10ms"), "their propagation delay, one way"),
            ACCESS_RATE,
            ACCESS_DELAY,
        ],
    },
    Variant {
        name: "fat-tree",
        summary: "k pods of edge routers edgeP-I and aggregation routers aggP-I under core routers core0, core1, ...; host hN \
                  is at edge router N / (k/2), counted through the pods; routing = \"ecmp\" spreads flows over the cores",
        source: "Al-Fares et al., SIGCOMM 2008",
        keys: &[
            Key::new(
                "k",
                Kind::Whole { min: 2, max: FatTree::MAX_K as u64 },
                Fallback::Value("4"),
                "ports of each router, even: k pods, k^2/4 core routers, k^3/4 hosts",
            ),
            Key::new("rate", Kind::Rate, Fallback::Value("100Gbps"), "rate of the cables between routers"),
            Key::new("host_rate", Kind::Rate, Fallback::Nothing("as rate"), "rate of each host's cable"),
            Key::new("delay", Kind::DELAY, Fallback::Value("1us"), "propagation delay of every cable, one way"),
        ],
    },
    Variant {
        name: "spine-leaf",
        summary: "leaf switches leaf1, leaf2, ..., each joined to all spine switches spine1, spine2, ...; server J of leaf I is \
                  leafI_hJ; routing = \"ecmp\" spreads flows over the spines",
        source: "the RTCP paper, section V-B and Fig. 3(b)",
        keys: &[
            Key::new("spines", COUNT, Fallback::Value("3"), "spine switches"),
            Key::new("leaves", COUNT, Fallback::Value("8"), "leaf switches"),
            Key::new("servers", COUNT, Fallback::Value("12"), "servers at each leaf"),
            Key::new("server_rate", Kind::Rate, Fallback::Value("10Gbps"), "rate of each server's cable"),
            Key::new("spine_rate", Kind::Rate, Fallback::Value("40Gbps"), "rate of each cable from a leaf to a spine"),
            Key::new("delay", Kind::DELAY, Fallback::Value("1us"), "propagation delay of every cable, one way"),
            Key::new(
                "over_subscription",
                Kind::Positive { max: 1e6 },
                Fallback::Value("1.0"),
                "what spine_rate is divided by",
            ),
        ],
    },
    Variant {
        name: "star",
        summary: "hosts h1, h2, ... on one router, switch",
        source: "sparelane",
        keys: &[
            Key::new("hosts", Kind::Whole { min: 2, max: 1_000_000 }, Fallback::Value("5"), "hosts"),
            Key::new("rate", Kind::Rate, Fallback::Value("1Gbps"), "rate of each host's cable"),
            Key::new("delay", Kind::DELAY, Fallback::Value("50us"), "propagation delay of each host's cable, one way")
                .from("the round trip of 200 us of the RTCP paper's testbed, section V-A"),
        ],
    },
    Variant {
        name: "internet2",
        summary: "the RC3 paper's ten routers r0 to r9; host h10+i is at router i mod 10",
        source: "NSDI 2014 section 5; the authors' topology file",
        keys: &[
            Key::new(
                "hosts_per_router",
                COUNT,
                Fallback::Value("10"),
                "hosts at each router; core rates scale with it",
            ),
            Key::new(
                "access_rate",
                Kind::Rate,
                Fallback::Value("1Gbps"),
                "rate of each host's cable; core rates scale with it",
            ),
            ACCESS_DELAY,
            Key::new(
                "core_delay",
                Kind::DELAY,
                Fallback::Value("10ms"),
                "propagation delay of each core cable, one way",
            ),
            Key::new(
                "core_rate_min",
                Kind::Rate,
                Fallback::Nothing("the paper's rates"),
                "each core cable's rate is drawn with the seed, uniformly from here to core_rate_max",
            )
            .from("NSDI 2014 section 5.1.2, link heterogeneity: from 500 Mb/s to 2 Gb/s"),
            Key::new(
                "core_rate_max",
                Kind::Rate,
                Fallback::Nothing("the paper's rates"),
                "the highest rate that is drawn; given with core_rate_min or not at all",
            ),
        ],
    },
    Variant {
        name: "file",
        summary: "a .topo text or a GraphML file; the keys other than path are for GraphML",
        source: "sparelane; graphml.graphdrawing.org; topology-zoo.org",
        keys: &[
            Key::new("path", Kind::Path, Fallback::Required, "the file, ending in .topo or .graphml"),
            Key::new("hosts_per_router", COUNT, Fallback::Value("1"), "hosts at each router of a graph without hosts"),
            ACCESS_RATE,
            ACCESS_DELAY,
            Key::new(
                "default_rate",
                Kind::Rate,
                Fallback::Value("10Gbps"),
                "rate of edges for which the file gives none",
            ),
            Key::new(
                "default_delay",
                Kind::DELAY,
                Fallback::Value("5ms"),
                "delay of edges for which the file gives none",
            ),
            Key::new(
                "capacity",
                Kind::Choice(&["given", "internet2-rule"]),
                Fallback::Value("given"),
                "core rates as given, or such that every link is loaded as much as the hosts' cables",
            )
            .from("the rule: derived from the RC3 authors' Internet2 file"),
        ],
    },
];

/// The keys that only GraphML takes.
const GRAPHML_KEYS: [&str; 6] =
    ["hosts_per_router", "access_rate", "access_delay", "default_rate", "default_delay", "capacity"];

/// How many of them, the first, are about hosts that the graph lacks.
const HOST_KEYS: usize = 3;

/// The network that `field` describes, under `seed`.
pub fn read(field: Field<'_>, source: &Source, seed: u64) -> Result<Network, ScenarioError> {
    let (kind, section) = field.variant(&[], TOPOLOGIES)?;
    let count = |name: &str| section.need(name)?.whole().map(|count| count as u32);
    let rate = |name: &str| section.need(name)?.rate();
    let delay = |name: &str| section.need(name)?.time();
    let built = match kind {
        "dumbbell" => Dumbbell {
            pairs: count("pairs")?,
            access_rate: rate("access_rate")?,
            access_delay: delay("access_delay")?,
            bottleneck_rate: rate("bottleneck_rate")?,
            bottleneck_delay: delay("bottleneck_delay")?,
        }
        .build(),
        "chain" => Chain {
            routers: count("routers")?,
            hosts_per_router: count("hosts_per_router")?,
            link_rate: rate("link_rate")?,
            link_delay: delay("link_delay")?,
            access_rate: rate("access_rate")?,
            access_delay: delay("access_delay")?,
        }
        .build(),
        "fat-tree" => {
            let k = section.need("k")?;
            let ports = k.whole()? as u32;
            if !ports.is_multiple_of(2) {
                return Err(k.error(format!("odd; allowed: an even number from 2 to {}", FatTree::MAX_K)));
            }
            let rate = rate("rate")?;
            let host_rate = section.maybe("host_rate", Field::rate)?.unwrap_or(rate);
            FatTree { k: ports, rate, host_rate, delay: delay("delay")? }.build()
        }
        "spine-leaf" => SpineLeaf {
            spines: count("spines")?,
            leaves: count("leaves")?,
            servers: count("servers")?,
            server_rate: rate("server_rate")?,
            spine_rate: rate("spine_rate")?,
            over_subscription: section.need("over_subscription")?.positive()?,
            delay: delay("delay")?,
        }
        .build(),
        "star" => Star { hosts: count("hosts")?, rate: rate("rate")?, delay: delay("delay")? }.build(),
        "internet2" => Internet2 {
            hosts_per_router: count("hosts_per_router")?,
            access_rate: rate("access_rate")?,
            access_delay: delay("access_delay")?,
            core_delay: delay("core_delay")?,
            drawn_core_rates: drawn_core_rates(&section, seed)?,
        }
        .build(),
        _ => return from_file(&section, source),
    };
    built.map_err(|error| section.whole_table().error(error.to_string()))
}

/// The bounds of core rates that are drawn, both or none.
fn drawn_core_rates(section: &Section<'_>, seed: u64) -> Result<Option<DrawnRates>, ScenarioError> {
    let bounds = (section.given("core_rate_min"), section.given("core_rate_max"));
    let (lowest, highest) = match &bounds {
        (None, None) => return Ok(None),
        (Some(lowest), Some(highest)) => (lowest, highest),
        (Some(one), None) => return Err(one.error("core_rate_max is not given; allowed: both or none")),
        (None, Some(one)) => return Err(one.error("core_rate_min is not given; allowed: both or none")),
    };
    let (min, max) = (lowest.rate()?, highest.rate()?);
    if min > max {
        return Err(highest.error(format!("below core_rate_min, {min}; allowed: that or more")));
    }
    Ok(Some(DrawnRates { min, max, seed }))
}

fn from_file(section: &Section<'_>, source: &Source) -> Result<Network, ScenarioError> {
    let path = section.need("path")?;
    let input = source.read(&path)?;
    let network = match input.extension.as_str() {
        "topo" => {
            if let Some(field) = GRAPHML_KEYS.iter().find_map(|name| section.given(name)) {
                return Err(field.error("only for GraphML files; a .topo file says everything itself"));
            }
            neutral::parse(&input.text).map_err(|error| in_file(&input, error))?
        }
        "graphml" => from_graphml(section, &input)?,
        _ => return Err(path.error("unknown kind of file; allowed: .topo, .graphml")),
    };
    if network.hosts().len() < 2 {
        return Err(input.error(None, "a network needs two hosts or more"));
    }
    Ok(network)
}

fn from_graphml(section: &Section<'_>, input: &Input) -> Result<Network, ScenarioError> {
    let defaults =
        GraphmlDefaults { rate: section.need("default_rate")?.rate()?, delay: section.need("default_delay")?.time()? };
    let mut network = graphml::parse(&input.text, &defaults, &Units).map_err(|error| in_file(input, error))?;
    let per_router = section.need("hosts_per_router")?.whole()? as u32;
    let access_rate = section.need("access_rate")?.rate()?;
    let access_delay = section.need("access_delay")?.time()?;
    let has_hosts = network.nodes.iter().any(|node| node.kind == NodeKind::Host);
    if !has_hosts {
        attach_hosts(&mut network, per_router, access_rate, access_delay).map_err(|error| in_file(input, error))?;
    } else if let Some(field) = GRAPHML_KEYS[..HOST_KEYS].iter().find_map(|name| section.given(name)) {
        return Err(field.error(format!("only for graphs without hosts; {} has some", input.name)));
    }
    let capacity = section.need("capacity")?;
    if capacity.choice()? == "internet2-rule" {
        if has_hosts {
            return Err(capacity.error(format!("only for graphs without hosts; {} has some", input.name)));
        }
        let rates = balanced_rates(&network, per_router, access_rate).map_err(|error| in_file(input, error))?;
        network.cables.iter_mut().zip(rates).for_each(|(cable, rates)| cable.rates = rates);
    }
    Ok(network)
}

fn in_file(input: &Input, error: TopologyError) -> ScenarioError {
    input.error(error.line, error.message)
}

/// The units of scenarios, for files that carry units.
#[derive(Clone, Copy, Debug)]
pub struct Units;

impl UnitParser for Units {
    fn rate(&self, text: &str) -> Result<Rate, String> {
        units::rate(text).map_err(|_| units::RATE.examples())
    }

    fn time(&self, text: &str) -> Result<Dur, String> {
        units::time(text).map_err(|_| units::TIME.examples())
    }

    fn bytes(&self, text: &str) -> Result<u64, String> {
        units::size(text).map_err(|_| units::SIZE.examples())
    }
}
