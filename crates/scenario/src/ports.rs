//! Ports by name, for traces: `west:east` is the port of "west" towards "east", and `west` stands for all ports of
//! "west".

use crate::scenario::Scenario;
use sparelane_catalogue::schema::did_you_mean;
use sparelane_catalogue::schema::nodes::listed;
use sparelane_sim::{Network, NodeId};

/// A port: its node, the next node, and its name.
pub type Port = (NodeId, NodeId, String);

impl Scenario {
    /// The ports that `text` names, in the order of the network's cables.
    ///
    /// # Errors
    /// A message that names the unknown node or port, and the allowed ones.
    pub fn ports(&self, text: &str) -> Result<Vec<Port>, String> {
        let network = self.network();
        let (near, far) = match text.split_once(':') {
            Some((near, far)) => (near, Some(far)),
            None => (text, None),
        };
        let from = node(network, near)?;
        let neighbours: Vec<NodeId> = network
            .cables
            .iter()
            .filter_map(|cable| match from {
                end if end == cable.a => Some(cable.b),
                end if end == cable.b => Some(cable.a),
                _ => None,
            })
            .collect();
        let name = |id: &NodeId| network.nodes[id.index()].name.as_str();
        let port = |to: &NodeId| (from, *to, format!("{near}:{}", name(to)));
        let Some(far) = far else { return Ok(neighbours.iter().map(port).collect()) };
        if let Some(to) = neighbours.iter().find(|id| name(id) == far) {
            return Ok(vec![port(to)]);
        }
        let names = || neighbours.iter().map(name);
        let allowed = listed(names());
        Err(format!("\"{near}\" has no port towards \"{far}\"; allowed: {allowed}{}", did_you_mean(far, names())))
    }
}

fn node(network: &Network, name: &str) -> Result<NodeId, String> {
    network.find(name).ok_or_else(|| {
        let names = || network.nodes.iter().map(|node| node.name.as_str());
        format!("there is no node \"{name}\"; allowed: {}{}", listed(names()), did_you_mean(name, names()))
    })
}
