//! Nodes and cables by name.

use super::error::{ScenarioError, did_you_mean};
use super::field::Field;
use super::keys::Kind;
use sparelane_sim::{Network, NodeId, NodeKind};

/// Maximum number of names that a message lists.
const LISTED: usize = 8;

/// Returns the node that `field` names.
pub fn node(field: &Field<'_>, network: &Network) -> Result<NodeId, ScenarioError> {
    let name = field.text()?;
    network.find(name).ok_or_else(|| {
        let names = || network.nodes.iter().map(|node| node.name.as_str());
        field.error(format!("no such node; allowed: {}{}", listed(names()), did_you_mean(name, names())))
    })
}

/// The host that `field` names.
pub fn host(field: &Field<'_>, network: &Network) -> Result<NodeId, ScenarioError> {
    let id = node(field, network)?;
    if network.nodes[id.index()].kind == NodeKind::Host {
        return Ok(id);
    }
    let hosts = network.hosts();
    let names = hosts.iter().map(|host| network.nodes[host.index()].name.as_str());
    Err(field.error(format!("a router; allowed: the hosts {}", listed(names))))
}

/// Returns the two elements of a list.
pub fn pair<'f>(field: &'f Field<'_>) -> Result<[Field<'f>; 2], ScenarioError> {
    let elements = field.list(Kind::Node)?;
    <[Field<'f>; 2]>::try_from(elements).map_err(|_| field.error("not a list of two nodes, as in [\"r0\", \"r1\"]"))
}

/// Returns the index of the cable that joins the two named nodes, and these nodes.
pub fn cable(from: &Field<'_>, to: &Field<'_>, network: &Network) -> Result<(usize, NodeId, NodeId), ScenarioError> {
    let ends = (node(from, network)?, node(to, network)?);
    let joins = |a, b| (a, b) == ends || (b, a) == ends;
    if let Some(index) = network.cables.iter().position(|cable| joins(cable.a, cable.b)) {
        return Ok((index, ends.0, ends.1));
    }
    let neighbours = network.cables.iter().filter_map(|cable| match ends.0 {
        end if end == cable.a => Some(cable.b),
        end if end == cable.b => Some(cable.a),
        _ => None,
    });
    let names = neighbours.map(|id| network.nodes[id.index()].name.as_str());
    let near = &network.nodes[ends.0.index()].name;
    Err(to.error(format!("no cable leads there from \"{near}\"; allowed: {}", listed(names))))
}

/// Returns the first few of `names` as text.
pub fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    let shown = names[..names.len().min(LISTED)].join(", ");
    if names.len() > LISTED { format!("{shown}, ... ({} in all)", names.len()) } else { shown }
}
