//! Networks from maps: GraphML and GML, including the files of the Internet Topology Zoo (topology-zoo.org), and
//! SNDlib's XML.
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
//! Parallel edges become one cable with the highest rate and the lowest delay in the file, and the first queue and
//! loss. An edge stands for both directions, whatever the file says. An edge from a node to itself is left out with a
//! warning.

mod component;
mod gml;
mod graphml;
mod sndlib;

use crate::schema::{Warnings, units};
use crate::topology::names::Names;
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Cable, Limit, Loss, Network, NodeId, NodeKind};
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

/// All parallel edges between two nodes, with the values that the file gives.
struct Bundle {
    ends: [NodeId; 2],
    rate: Option<Rate>,
    delay: Option<Dur>,
    limit: Option<Limit>,
    loss: Option<f64>,
}

/// A file format of maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// GraphML.
    GraphMl,
    /// The Graph Modelling Language.
    Gml,
    /// SNDlib's XML.
    SndLib,
}

impl Format {
    /// Returns the format of files with this extension, in lower case.
    pub fn of(extension: &str) -> Option<Format> {
        match extension {
            "graphml" => Some(Format::GraphMl),
            "gml" => Some(Format::Gml),
            "xml" => Some(Format::SndLib),
            _ => None,
        }
    }
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
    data: Data<'a>,
}

/// The data of one element, by the lower-case names of their keys.
struct Data<'a> {
    /// The element's line, counted from 1.
    line: usize,
    values: BTreeMap<String, (usize, &'a str)>,
}

impl<'a> Data<'a> {
    /// Returns the value called `name`, if it exists and is not empty.
    fn text(&self, name: &str) -> Option<&'a str> {
        self.values.get(name).map(|&(_, text)| text)
    }

    /// Returns the value called `name`, parsed by `parse`, whose error states what is allowed.
    fn parsed<T>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, TopologyError> {
        let Some(&(line, text)) = self.values.get(name) else { return Ok(None) };
        let refuse = |allowed| TopologyError::at(line, format!("`{name}` is `{text}`; allowed: {allowed}"));
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

/// Builds the network that `text` describes, with nodes and cables in the order of the file. `warnings` collects what
/// is left out.
///
/// # Errors
/// Fails if the file is not well-formed, an edge leads to an unknown node, a value is not allowed, or a host has no
/// edge.
pub fn parse(
    text: &str,
    format: Format,
    defaults: &MapDefaults,
    component: Component,
    warnings: &Warnings,
) -> Result<Network, TopologyError> {
    let xml = || {
        roxmltree::Document::parse(text).map_err(|error| {
            TopologyError::at(error.pos().row as usize, format!("this is not well-formed XML: {error}"))
        })
    };
    match format {
        Format::GraphMl => network_of(&graphml::read(&xml()?)?, defaults, component, warnings),
        Format::SndLib => network_of(&sndlib::read(&xml()?, warnings)?, defaults, component, warnings),
        Format::Gml => network_of(&gml::read(text)?, defaults, component, warnings),
    }
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
    for bundle in bundles(graph, warnings)? {
        let [a, b] = bundle.ends;
        let rate = bundle.rate.unwrap_or(default_rate);
        let delay = bundle.delay.unwrap_or(default_delay);
        network.cables.push(Cable {
            traces: [None, None],
            effects: [None, None],
            a,
            b,
            rates: [rate; 2],
            delay,
            limit: bundle.limit,
            loss: [Loss::of_any(bundle.loss.unwrap_or(0.0)); 2],
            pause: None,
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

/// Returns the positions of nodes by their ids.
fn positions<'a>(graph: &Graph<'a>) -> Result<BTreeMap<&'a str, usize>, TopologyError> {
    let mut positions = BTreeMap::new();
    for (position, node) in graph.nodes.iter().enumerate() {
        if positions.insert(node.id, position).is_some() {
            let message = format!("node id `{}` is given twice; allowed: each id once", node.id);
            return Err(TopologyError::at(node.data.line, message));
        }
    }
    Ok(positions)
}

/// Merges parallel edges, in the order of the first of each.
fn bundles(graph: &Graph<'_>, warnings: &Warnings) -> Result<Vec<Bundle>, TopologyError> {
    let ids = positions(graph)?;
    let places: Vec<_> = graph.nodes.iter().map(|node| place(&node.data)).collect::<Result<_, _>>()?;
    let mut bundles: Vec<Bundle> = Vec::new();
    let mut positions = BTreeMap::new();
    let mut loops = Vec::new();
    for edge in &graph.edges {
        let end = |name: &str, id: &str| {
            ids.get(id).copied().ok_or_else(|| {
                let message = format!("the edge's {name} is `{id}`; allowed: the id of a node");
                TopologyError::at(edge.data.line, message)
            })
        };
        let (a, b) = (end("source", edge.ends[0])?, end("target", edge.ends[1])?);
        if a == b {
            loops.push(edge.data.line.to_string());
            continue;
        }
        // A stated delay takes precedence over the distance.
        let fibre = places[a].zip(places[b]).map(|(a, b)| fibre_delay(a, b));
        let rate = edge_rate(&edge.data)?;
        let delay = edge_delay(&edge.data)?.or(fibre);
        let limit = edge.data.parsed("queue", units::size_of)?.map(Limit::Bytes);
        let loss = edge.data.parsed("loss", |text| number(text, 0.0, 1.0))?;
        // Parallel edges meet under the same pair of ends, in either direction.
        let position = *positions.entry((a.min(b), a.max(b))).or_insert(bundles.len());
        match bundles.get_mut(position) {
            None => bundles.push(Bundle { ends: [a, b].map(|end| NodeId(end as u32)), rate, delay, limit, loss }),
            Some(bundle) => {
                bundle.rate = bundle.rate.max(rate);
                bundle.delay = bundle.delay.into_iter().chain(delay).min();
                bundle.limit = bundle.limit.or(limit);
                bundle.loss = bundle.loss.or(loss);
            }
        }
    }
    if !loops.is_empty() {
        let (count, lines) = (loops.len(), loops.join(", "));
        warnings.add(format!("edges from a node to itself are left out of the map: {count} (line {lines})"));
    }
    Ok(bundles)
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
