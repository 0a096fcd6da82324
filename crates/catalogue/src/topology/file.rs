//! A network from a file: a `.topo` text, a topology of the simulators HPCC or htsim, or a map.

use super::map::{self, Component, MapOptions};
use super::{
    ACCESS_DELAY, ACCESS_RATE, COUNT, Context, MapDefaults, TopologyError, TopologyForm, attach_hosts, balanced_rates,
    hpcc, htsim, neutral,
};
use crate::schema::{Fallback, Field, FileFormat, Form, Input, Key, Kind, Purpose, ScenarioError, Section};
use sparelane_sim::{Network, NodeKind};

/// The form in a scenario.
pub static FORM: TopologyForm = Form {
    name: "file",
    summary: "a .topo text, a topology of HPCC or htsim, or a map: GraphML, GML, SNDlib's XML, BRITE, Inet or \
              Rocketfuel; the keys other than path are for maps",
    source: "sparelane; graphml.graphdrawing.org; topology-zoo.org; sndlib.put.poznan.pl; the simulators of HPCC and \
             htsim",
    keys: &[
        Key::new(
            "path",
            Kind::Path,
            Fallback::Required,
            "file of a network; its content decides its format, and its ending otherwise",
        ),
        Key::new("hosts_per_router", COUNT, Fallback::Value("1"), "hosts at each router of a graph without hosts"),
        ACCESS_RATE,
        ACCESS_DELAY,
        Key::new("default_rate", Kind::Rate, Fallback::Value("10Gbps"), "rate of edges without one in the file"),
        Key::new("default_delay", Kind::DELAY, Fallback::Value("5ms"), "delay of edges without one in the file"),
        Key::new(
            "component",
            Kind::Choice(&["all", "largest"]),
            Fallback::Value("all"),
            "all of a map, which must be connected, or its largest connected component",
        ),
        Key::new(
            "capacity",
            Kind::Choice(&["given", "internet2-rule"]),
            Fallback::Value("given"),
            "core rates as given, or such that every link is as loaded as the hosts' cables",
        )
        .from("the rule: derived from the RC3 authors' Internet2 file"),
        Key::new(
            "capacity_unit",
            Kind::Rate,
            Fallback::Nothing("1Mbps, with a warning"),
            "rate of a link of capacity 1 in SNDlib's XML, which does not name the unit",
        ),
    ],
    read: from_file,
};

/// The keys that only maps accept.
const MAP_KEYS: [&str; 8] = [
    "hosts_per_router",
    "access_rate",
    "access_delay",
    "default_rate",
    "default_delay",
    "capacity",
    "component",
    CAPACITY_UNIT,
];
const CAPACITY_UNIT: &str = "capacity_unit";

/// The formats in messages.
const ALLOWED: &str = ".topo, .graphml, .gml, SNDlib's .xml, or a topology of HPCC, htsim, BRITE, Inet or Rocketfuel";

/// Number of these keys, from the start, that concern hosts missing from the graph.
const HOST_KEYS: usize = 3;

fn from_file(section: &Section<'_>, context: &Context<'_>) -> Result<Network, ScenarioError> {
    let path = section.need("path")?;
    let input = context.source.read(&path, Purpose::Topology)?;
    // A file that is complete by itself accepts no further keys.
    let complete = |network: Result<Network, TopologyError>| match MAP_KEYS.iter().find_map(|name| section.given(name))
    {
        Some(field) => Err(field.error(format!("only for maps; {} is complete", input.name))),
        None => network.map_err(|error| in_file(&input, error)),
    };
    let network = match input.format {
        Some(FileFormat::Topo) => complete(neutral::parse(&input.text))?,
        Some(FileFormat::HpccTopology) => complete(hpcc::parse(&input.text))?,
        Some(FileFormat::HtsimTopo) => complete(htsim::parse(&input.text))?,
        Some(format) => from_map(section, &input, format, context)?,
        None => return Err(input.unknown_kind(&path, ALLOWED)),
    };
    if network.hosts().len() < 2 {
        return Err(input.error(None, "a network needs two hosts or more"));
    }
    Ok(network)
}

fn from_map(
    section: &Section<'_>,
    input: &Input,
    format: FileFormat,
    context: &Context<'_>,
) -> Result<Network, ScenarioError> {
    let defaults =
        MapDefaults { rate: section.need("default_rate")?.rate()?, delay: section.need("default_delay")?.time()? };
    let component = if section.need("component")?.choice()? == "largest" { Component::Largest } else { Component::All };
    let unit = section.given(CAPACITY_UNIT);
    if let Some(field) = unit.as_ref().filter(|_| format != FileFormat::SndLib) {
        return Err(field.error(format!("only for SNDlib's XML; {} has another format", input.name)));
    }
    let capacity_unit = unit.as_ref().map(Field::rate).transpose()?;
    // Both files of Rocketfuel look alike; only their names, weights.intra and latencies.intra, tell them apart.
    let has_latencies = input.name.to_lowercase().contains("latenc");
    let options = MapOptions { defaults, component, capacity_unit, has_latencies };
    let network = map::parse(&input.text, format, &options, context.warnings).map_err(|error| in_file(input, error))?;
    let Some(mut network) = network else { return Err(input.unknown_kind(&section.need("path")?, ALLOWED)) };
    let per_router = section.need("hosts_per_router")?.whole()? as u32;
    let access_rate = section.need("access_rate")?.rate()?;
    let access_delay = section.need("access_delay")?.time()?;
    // A map of routers alone gets hosts; a map with hosts must not be changed.
    let has_hosts = network.nodes.iter().any(|node| node.kind == NodeKind::Host);
    if !has_hosts {
        attach_hosts(&mut network, per_router, access_rate, access_delay).map_err(|error| in_file(input, error))?;
    } else if let Some(field) = MAP_KEYS[..HOST_KEYS].iter().find_map(|name| section.given(name)) {
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
