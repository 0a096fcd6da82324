//! Fuzzes the parsers of files named by scenarios: graphs, topologies and lists of flows of all formats, and captures.

use sparelane_catalogue::schema::{FileFormat, Warnings};
use sparelane_catalogue::topology::map::{self, Component, MapOptions};
use sparelane_catalogue::topology::{MapDefaults, TopologyError, hpcc, htsim, neutral};
use sparelane_catalogue::workload::{FlowList, list as lists};
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
    let rest = &rest[..rest.len().min(MAX_BYTES)];
    let (hosts, warnings) = (two_hosts(), Warnings::default());
    if kind % KINDS == CAPTURE {
        let capture = Box::new(std::io::Cursor::new(rest.to_vec()));
        return list(lists::capture::parse(capture, &hosts, 0, MAX_FLOW_BYTES, &warnings));
    }
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind % KINDS {
        0 => network(parse_map(text, FileFormat::GraphMl)),
        1 => written(neutral::parse(text)),
        2 => list(FlowList::from_neutral(text, &hosts, 0, MAX_FLOW_BYTES)),
        4 => network(parse_map(text, FileFormat::Gml)),
        5 => network(parse_map(text, FileFormat::SndLib)),
        6 => network(hpcc::parse(text)),
        7 => network(htsim::parse(text)),
        8 => list(lists::hpcc::parse(text, &hosts, 0, MAX_FLOW_BYTES)),
        9 => list(lists::htsim::parse(text, &hosts, 0, MAX_FLOW_BYTES, &warnings)),
        10 => network(parse_map(text, FileFormat::Brite)),
        11 => network(parse_map(text, FileFormat::Inet)),
        12 => network(parse_map(text, FileFormat::Rocketfuel)),
        _ => list(FlowList::from_csv(text, &hosts, &[("tcp".to_owned(), MAX_FLOW_BYTES)], 0)),
    }
}

/// Number of formats.
const KINDS: u8 = 14;
/// The format of packet captures, which are not text.
const CAPTURE: u8 = 13;

/// Checks that a network which is written and read again is the same.
fn written(parsed: Result<Network, TopologyError>) {
    if let Ok(found) = &parsed {
        assert_eq!(neutral::parse(&neutral::write(found)).as_ref(), Ok(found));
    }
    network(parsed);
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
fn parse_map(text: &str, format: FileFormat) -> Result<Network, TopologyError> {
    let defaults = MapDefaults { rate: Rate::from_mbps(100), delay: Dur::from_ms(1) };
    let is_even = text.len().is_multiple_of(2);
    let component = if is_even { Component::All } else { Component::Largest };
    let options = MapOptions { defaults, component, capacity_unit: None, has_latencies: is_even };
    map::parse(text, format, &options, &Warnings::default()).map(Option::unwrap_or_default)
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
