//! Fuzzes the parsers of files named by scenarios: graphs, `.topo` files and lists of flows.

use sparelane_catalogue::schema::Warnings;
use sparelane_catalogue::topology::map::{self, Component, Format};
use sparelane_catalogue::topology::{MapDefaults, TopologyError, neutral};
use sparelane_catalogue::workload::FlowList;
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Network, NodeKind};

const MAX_BYTES: usize = 20_000;
const MAX_FLOW_BYTES: u64 = 1_000_000_000;

/// Parses the input; the first byte selects the format.
///
/// # Panics
/// If a parser panics, returns an empty error message, or returns a cable without both ends.
pub fn check(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(&rest[..rest.len().min(MAX_BYTES)]) else { return };
    match kind % 6 {
        0 => network(parse_map(text, Format::GraphMl)),
        1 => network(neutral::parse(text)),
        2 => list(FlowList::from_neutral(text, &two_hosts(), 0, MAX_FLOW_BYTES)),
        4 => network(parse_map(text, Format::Gml)),
        5 => network(parse_map(text, Format::SndLib)),
        _ => list(FlowList::from_csv(text, &two_hosts(), &[("tcp".to_owned(), MAX_FLOW_BYTES)], 0)),
    }
}

fn network<E: ToString>(parsed: Result<Network, E>) {
    match parsed {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(network) => {
            let is_there = |node: sparelane_sim::NodeId| node.index() < network.nodes.len();
            assert!(network.cables.iter().all(|cable| is_there(cable.a) && is_there(cable.b)));
        }
    }
}

fn list<E: ToString>(parsed: Result<FlowList, E>) {
    match parsed {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(list) => assert_eq!(list.len(), list.schemes().count()),
    }
}

/// Parses a map: all components if the length of the text is even, otherwise the largest one.
fn parse_map(text: &str, format: Format) -> Result<Network, TopologyError> {
    let defaults = MapDefaults { rate: Rate::from_mbps(100), delay: Dur::from_ms(1) };
    let component = if text.len().is_multiple_of(2) { Component::All } else { Component::Largest };
    map::parse(text, format, &defaults, component, &Warnings::default())
}

/// Returns a network of two hosts at one router, for lists of flows.
fn two_hosts() -> Network {
    let mut network = Network::default();
    let router = network.add("r".to_owned(), NodeKind::Router);
    for name in ["a", "b"] {
        let host = network.add(name.to_owned(), NodeKind::Host);
        network.connect(host, router, Rate::from_mbps(100), Dur::from_ms(1));
    }
    network
}
