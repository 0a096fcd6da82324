//! A network from a file: a `.topo` text or a GraphML file.

use super::{
    ACCESS_DELAY, ACCESS_RATE, COUNT, GraphmlDefaults, TopologyError, TopologyForm, attach_hosts, balanced_rates,
    graphml, neutral,
};
use crate::schema::{Fallback, Form, Input, Key, Kind, ScenarioError, Section, Source};
use sparelane_sim::{Network, NodeKind};

/// What a scenario can say of it.
pub static FORM: TopologyForm = Form {
    name: "file",
    summary: "a .topo text or a GraphML file; the keys other than path are for GraphML",
    source: "sparelane; graphml.graphdrawing.org; topology-zoo.org",
    keys: &[
        Key::new("path", Kind::Path, Fallback::Required, "the file, ending in .topo or .graphml"),
        Key::new("hosts_per_router", COUNT, Fallback::Value("1"), "hosts at each router of a graph without hosts"),
        ACCESS_RATE,
        ACCESS_DELAY,
        Key::new("default_rate", Kind::Rate, Fallback::Value("10Gbps"), "rate of edges for which the file gives none"),
        Key::new("default_delay", Kind::DELAY, Fallback::Value("5ms"), "delay of edges for which the file gives none"),
        Key::new(
            "capacity",
            Kind::Choice(&["given", "internet2-rule"]),
            Fallback::Value("given"),
            "core rates as given, or such that every link is loaded as much as the hosts' cables",
        )
        .from("the rule: derived from the RC3 authors' Internet2 file"),
    ],
    read: |section, context| from_file(section, context.source),
};

/// The keys that only GraphML takes.
const GRAPHML_KEYS: [&str; 6] =
    ["hosts_per_router", "access_rate", "access_delay", "default_rate", "default_delay", "capacity"];

/// How many of them, the first, are about hosts that the graph lacks.
const HOST_KEYS: usize = 3;

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
    let mut network = graphml::parse(&input.text, &defaults).map_err(|error| in_file(input, error))?;
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
