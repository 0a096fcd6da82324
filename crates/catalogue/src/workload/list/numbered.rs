//! Hosts by the numbers that other simulators give them.

use sparelane_sim::{Network, NodeId};
use std::collections::BTreeMap;

/// Finds hosts by number. A number is the name of a node if the network has such a node, as a network of the same
/// simulator has. Otherwise it is a position among the hosts, counted from 0.
pub(super) struct NumberedHosts<'a> {
    names: BTreeMap<&'a str, NodeId>,
    hosts: Vec<NodeId>,
}

impl<'a> NumberedHosts<'a> {
    pub(super) fn of(network: &'a Network) -> NumberedHosts<'a> {
        let names = network.nodes.iter().zip(0..).map(|(node, id)| (node.name.as_str(), NodeId(id)));
        NumberedHosts { names: names.collect(), hosts: network.hosts() }
    }

    /// Returns the node with this name.
    pub(super) fn named(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// Returns the host at this position.
    pub(super) fn at(&self, position: usize) -> Option<NodeId> {
        self.hosts.get(position).copied()
    }

    /// Returns the node with this number. `field` names it in the error.
    pub(super) fn find(&self, field: &str, text: &str) -> Result<NodeId, String> {
        let by_position = || text.parse().ok().and_then(|position| self.at(position));
        self.named(text).or_else(by_position).ok_or_else(|| {
            format!("{field} is `{text}`; allowed: the name of a host, or its position, below {}", self.hosts.len())
        })
    }
}
