//! Any text as one of the files that a scenario names: a graph, a `.topo`, a list of flows.

use sparelane_catalogue::schema::Warnings;
use sparelane_catalogue::topology::map::{self, Component, Format};
use sparelane_catalogue::topology::{MapDefaults, TopologyError, neutral};
use sparelane_catalogue::workload::FlowList;
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Network, NodeKind};

const MOST_BYTES: usize = 20_000;
const MOST_FLOW_BYTES: u64 = 1_000_000_000;

/// Parses the bytes after the first, which says as what.
///
/// # Panics
/// A parser panics, refuses without a word, or gives a cable that has no ends.
pub fn check(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(&rest[..rest.len().min(MOST_BYTES)]) else { return };
    match kind % 6 {
        0 => network(drawn(text, Format::GraphMl)),
        1 => network(neutral::parse(text)),
        2 => list(FlowList::from_neutral(text, &two_hosts(), 0, MOST_FLOW_BYTES)),
        4 => network(drawn(text, Format::Gml)),
        5 => network(drawn(text, Format::SndLib)),
        _ => list(FlowList::from_csv(text, &two_hosts(), &[("tcp".to_owned(), MOST_FLOW_BYTES)], 0)),
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

/// All of a map where its length is even, else its largest part.
fn drawn(text: &str, format: Format) -> Result<Network, TopologyError> {
    let defaults = MapDefaults { rate: Rate::from_mbps(100), delay: Dur::from_ms(1) };
    let component = if text.len().is_multiple_of(2) { Component::All } else { Component::Largest };
    map::parse(text, format, &defaults, component, &Warnings::default())
}

/// Two hosts at one router, for lists of flows.
fn two_hosts() -> Network {
    let mut network = Network::default();
    let router = network.add("r".to_owned(), NodeKind::Router);
    for name in ["a", "b"] {
        let host = network.add(name.to_owned(), NodeKind::Host);
        network.connect(host, router, Rate::from_mbps(100), Dur::from_ms(1));
    }
    network
}
