//! Networks from maps: GraphML and GML, including the files of the Internet Topology Zoo (topology-zoo.org), SNDlib's
//! XML, the output of BRITE and Inet, and weights of Rocketfuel.
//!
//! Each format's reader returns a graph with named data. This module interprets the data. Names are those of keys, in
//! any case:
//!
//! | on | name | meaning |
//! |---|---|---|
//! | node | `kind`, else `type` | `host` or `router`; a `type` of other meaning, as in the Zoo, is passed over |
//! | node | `label` | the node's name, else its id; a name given twice gets a number |
//! | node | `Latitude`, `Longitude` | degrees |
//! | edge | `rate`, else `LinkSpeedRaw` | with unit; or in b/s without unit, as in the Zoo |
//! | edge | `delay` | one way, with unit |
//! | edge | `queue` | of each direction, in bytes with unit |
//! | edge | `loss` | probability, 0 to 1 |
//!
//! Unknown values are treated as missing: a coordinate or raw speed that is empty, `nan`, `none`, `null`, `unknown` or
//! `?`, and a raw speed of zero. A node without kind is a router, so that a graph without hosts consists of routers. An
//! edge without delay between two nodes with coordinates gets that of fibre along the great circle, at 200 km/ms.
//! Remaining gaps are filled from [`MapDefaults`].
//!
//! All edges between two nodes become one cable, each direction of which has the values of its edges (`bundles.rs`).
//! An edge from a node to itself is left out with a warning.

mod bundles;
mod component;
mod generated;
mod gml;
mod graphml;
mod sndlib;

use crate::schema::{FileFormat, Warnings, units};
use crate::topology::names::Names;
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Cable, Loss, Network, NodeKind};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The mean radius of the Earth.
const EARTH_RADIUS_KM: f64 = 6371.0;
/// Light in fibre: two thirds of its speed in vacuum.
const FIBRE_KM_PER_SECOND: f64 = 200_000.0;

/// The values of edges for which the file gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapDefaults {
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Dur,
}

/// A location on Earth, in radians.
#[derive(Clone, Copy)]
struct Place {
    latitude: f64,
    longitude: f64,
}

/// The part of a map that becomes the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The whole map.
    All,
    /// The connected component with the most nodes.
    Largest,
}

/// A graph as a file declares it.
struct Graph<'a> {
    /// The nodes, in the file's order.
    nodes: Vec<DeclaredNode<'a>>,
    /// The edges, in the file's order.
    edges: Vec<DeclaredEdge<'a>>,
}

/// A node as declared.
struct DeclaredNode<'a> {
    /// The node's id in the file.
    id: &'a str,
    data: Data<'a>,
}

/// An edge as declared.
struct DeclaredEdge<'a> {
    /// The ids of the two ends.
    ends: [&'a str; 2],
    /// True if the edge leads only from the first end to the second.
    is_directed: bool,
    data: Data<'a>,
}

/// The data of one element, by the lower-case names of their keys.
struct Data<'a> {
    /// The element's line, counted from 1.
    line: usize,
    values: BTreeMap<String, (usize, Cow<'a, str>)>,
}

impl<'a> Data<'a> {
    /// Returns the value called `name`, if it exists and is not empty.
    fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|(_, text)| text.as_ref())
    }

    /// Returns the value called `name`, parsed by `parse`, whose error states what is allowed.
    fn parsed<T>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, TopologyError> {
        let Some((line, text)) = self.values.get(name) else { return Ok(None) };
        let refuse = |allowed| TopologyError::at(*line, format!("`{name}` is `{text}`; allowed: {allowed}"));
        parse(text).map(Some).map_err(refuse)
    }

    /// Same as [`Data::parsed`], but words for unknown values count as missing.
    fn known<T>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, TopologyError> {
        let is_unknown = |text: &str| UNKNOWN.iter().any(|word| text.eq_ignore_ascii_case(word));
        if self.text(name).is_some_and(is_unknown) { Ok(None) } else { self.parsed(name, parse) }
    }
}

/// Words for an unknown value.
const UNKNOWN: [&str; 5] = ["nan", "none", "null", "unknown", "?"];

/// Returns the line of an XML element, counted from 1.
fn line(element: roxmltree::Node<'_, '_>) -> usize {
    element.document().text_pos_at(element.range().start).row as usize
}

/// How a map is read.
#[derive(Clone, Copy, Debug)]
pub struct MapOptions {
    /// The values of edges for which the file gives none.
    pub defaults: MapDefaults,
    /// The part of the map that is taken.
    pub component: Component,
    /// The rate of a link of SNDlib with capacity 1; `None` assumes 1 Mb/s, with a warning.
    pub capacity_unit: Option<Rate>,
    /// True if the numbers in a file of Rocketfuel are latencies in milliseconds, and not weights.
    pub has_latencies: bool,
}

/// Builds the network that `text` describes, with nodes and cables in the order of the file. `warnings` collects what
/// is left out. Returns `None` if `format` is not a format of maps.
///
/// # Errors
/// Fails if the file is not well-formed, an edge leads to an unknown node, a value is not allowed, or a host has no
/// edge.
pub fn parse(
    text: &str,
    format: FileFormat,
    options: &MapOptions,
    warnings: &Warnings,
) -> Result<Option<Network>, TopologyError> {
    let xml = || {
        roxmltree::Document::parse(text).map_err(|error| {
            TopologyError::at(error.pos().row as usize, format!("this is not well-formed XML: {error}"))
        })
    };
    let network = |graph: Graph<'_>| network_of(&graph, &options.defaults, options.component, warnings);
    match format {
        FileFormat::GraphMl => network(graphml::read(&xml()?)?),
        FileFormat::SndLib => network(sndlib::read(&xml()?, options.capacity_unit, warnings)?),
        FileFormat::Gml => network(gml::read(text)?),
        FileFormat::Brite => network(generated::brite(text)?),
        FileFormat::Inet => network(generated::inet(text, warnings)?),
        FileFormat::Rocketfuel => network(generated::rocketfuel(text, options.has_latencies, warnings)?),
        _ => return Ok(None),
    }
    .map(Some)
}

fn network_of(
    graph: &Graph<'_>,
    defaults: &MapDefaults,
    component: Component,
    warnings: &Warnings,
) -> Result<Network, TopologyError> {
    let default_rate = bounds::rate(None, "the default rate", defaults.rate)?;
    let default_delay = bounds::delay(None, "the default delay", defaults.delay)?;
    bounds::nodes(graph.nodes.len() as u64)?;
    let mut network = Network::default();
    let mut names = Names::default();
    for node in &graph.nodes {
        let wanted = node.data.text("label").unwrap_or(node.id);
        network.add(names.claim(wanted), kind(&node.data)?);
    }
    for bundle in bundles::of(graph, warnings)? {
        let [a, b] = bundle.ends;
        let delays = bundle.ways.map(|way| way.delay.unwrap_or(default_delay));
        network.cables.push(Cable {
            traces: [None, None],
            effects: [None, None],
            a,
            b,
            rates: bundle.ways.map(|way| way.rate.unwrap_or(default_rate)),
            delay: delays[0].max(delays[1]),
            limit: bundle.limit,
            loss: bundle.ways.map(|way| Loss::of_any(way.loss.unwrap_or(0.0))),
            pause: None,
            pfc: None,
        });
    }
    // In the largest component every host has an edge; in the whole map this must be checked.
    if component == Component::Largest {
        let (all, gone) = (network.nodes.len(), component::keep_largest(&mut network));
        if gone > 0 {
            warnings.add(format!("the map is not connected: its largest part has {} of {all} nodes", all - gone));
        }
    } else {
        check_hosts_have_edges(graph, &network)?;
    }
    Ok(network)
}

fn check_hosts_have_edges(graph: &Graph<'_>, network: &Network) -> Result<(), TopologyError> {
    let linked: BTreeSet<_> = network.cables.iter().flat_map(|cable| [cable.a, cable.b]).collect();
    match network.hosts().into_iter().find(|host| !linked.contains(host)) {
        None => Ok(()),
        Some(host) => {
            let node = &graph.nodes[host.index()];
            Err(TopologyError::at(node.data.line, format!("host `{}` has no edge; a host needs one", node.id)))
        }
    }
}

fn kind(data: &Data<'_>) -> Result<NodeKind, TopologyError> {
    let known = |text: &str| match text.to_ascii_lowercase().as_str() {
        "host" => Ok(NodeKind::Host),
        "router" => Ok(NodeKind::Router),
        _ => Err("host or router".to_owned()),
    };
    match data.parsed("kind", known)? {
        Some(kind) => Ok(kind),
        None => Ok(data.text("type").and_then(|text| known(text).ok()).unwrap_or(NodeKind::Router)),
    }
}

fn place(data: &Data<'_>) -> Result<Option<Place>, TopologyError> {
    let latitude = data.known("latitude", |text| number(text, -90.0, 90.0))?;
    let longitude = data.known("longitude", |text| number(text, -180.0, 180.0))?;
    let place = |(latitude, longitude): (f64, f64)| Place {
        latitude: latitude.to_radians(),
        longitude: longitude.to_radians(),
    };
    Ok(latitude.zip(longitude).map(place))
}

fn edge_rate(data: &Data<'_>) -> Result<Option<Rate>, TopologyError> {
    let with_unit = data.parsed("rate", units::rate_of)?;
    let raw = || data.known("linkspeedraw", |text| number(text, 0.0, 1e18).map(|bps| Rate::from_bps(bps as u64)));
    let rate = if with_unit.is_some() { with_unit } else { raw()?.filter(|&rate| rate > Rate::default()) };
    rate.map(|rate| bounds::rate(Some(data.line), "the rate of the edge", rate)).transpose()
}

fn edge_delay(data: &Data<'_>) -> Result<Option<Dur>, TopologyError> {
    let delay = data.parsed("delay", units::time_of)?;
    delay.map(|delay| bounds::delay(Some(data.line), "the delay of the edge", delay)).transpose()
}

/// Parses a number from `low` to `high`.
fn number(text: &str, low: f64, high: f64) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (low..=high).contains(value));
    value.ok_or_else(|| format!("a number from {low} to {high}"))
}

/// Returns the delay of fibre along the great circle, by the haversine formula.
fn fibre_delay(a: Place, b: Place) -> Dur {
    let square = |x: f64| x * x;
    let half_chord_squared = square(libm::sin((b.latitude - a.latitude) / 2.0))
        + libm::cos(a.latitude) * libm::cos(b.latitude) * square(libm::sin((b.longitude - a.longitude) / 2.0));
    let distance_km = 2.0 * EARTH_RADIUS_KM * libm::asin(libm::sqrt(half_chord_squared.min(1.0)));
    Dur::from_secs_f64(distance_km / FIBRE_KM_PER_SECOND)
}

#[cfg(test)]
mod tests;
