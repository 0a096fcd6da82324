//! Networks from GraphML, among them the files of the Internet Topology Zoo (topology-zoo.org).
//!
//! Data are known by the name of their key, in any case:
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
//! A node without kind is a router: a graph without hosts is one of routers only. An edge without delay whose
//! ends both have coordinates gets that of fibre along the great circle, at 200 km/ms. What is still unknown is taken
//! from [`GraphmlDefaults`]. Parallel edges become one cable, with the highest rate and the least delay that the file
//! gives for them, and the first queue and loss. An edge stands for both directions, whatever the file says.

mod document;

use crate::schema::units;
use crate::topology::names::Names;
use crate::topology::{TopologyError, bounds};
use document::{Data, Document};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Cable, Limit, Loss, Network, NodeId, NodeKind};
use std::collections::{BTreeMap, BTreeSet};

/// The mean radius of the Earth.
const EARTH_RADIUS_KM: f64 = 6371.0;
/// Light in fibre: two thirds of its speed in vacuum.
const FIBRE_KM_PER_SECOND: f64 = 200_000.0;

/// What an edge gets where the file is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphmlDefaults {
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Dur,
}

/// A place on Earth, in radians.
#[derive(Clone, Copy)]
struct Place {
    latitude: f64,
    longitude: f64,
}

/// All parallel edges between two nodes, as far as the file tells.
struct Bundle {
    ends: [NodeId; 2],
    rate: Option<Rate>,
    delay: Option<Dur>,
    limit: Option<Limit>,
    loss: Option<f64>,
}

/// The network that `text` describes. Nodes and cables are in the order of the file.
///
/// # Errors
/// No well-formed GraphML; an edge to an unknown node or to its own start; a value that is not allowed; a host without
/// edge.
pub fn parse(text: &str, defaults: &GraphmlDefaults) -> Result<Network, TopologyError> {
    let tree = roxmltree::Document::parse(text).map_err(|error| {
        TopologyError::at(error.pos().row as usize, format!("this is not well-formed XML: {error}"))
    })?;
    let default_rate = bounds::rate(None, "the default rate", defaults.rate)?;
    let default_delay = bounds::delay(None, "the default delay", defaults.delay)?;
    let document = Document::read(&tree)?;
    bounds::nodes(document.nodes.len() as u64)?;
    let mut network = Network::default();
    let mut names = Names::default();
    for node in &document.nodes {
        let wanted = node.data.text("label").unwrap_or(node.id);
        network.add(names.claim(wanted), kind(&node.data)?);
    }
    for bundle in bundles(&document)? {
        let [a, b] = bundle.ends;
        let rate = bundle.rate.unwrap_or(default_rate);
        let delay = bundle.delay.unwrap_or(default_delay);
        network.cables.push(Cable {
            a,
            b,
            rates: [rate; 2],
            delay,
            limit: bundle.limit,
            loss: [Loss::of_any(bundle.loss.unwrap_or(0.0)); 2],
        });
    }
    check_hosts_have_edges(&document, &network)?;
    Ok(network)
}

/// The edges, parallel ones merged, in the order of the first of each.
fn bundles(document: &Document<'_>) -> Result<Vec<Bundle>, TopologyError> {
    let places: Vec<_> = document.nodes.iter().map(|node| place(&node.data)).collect::<Result<_, _>>()?;
    let mut bundles: Vec<Bundle> = Vec::new();
    let mut positions = BTreeMap::new();
    for edge in &document.edges {
        let [a, b] = edge.ends;
        let fibre = places[a].zip(places[b]).map(|(a, b)| fibre_delay(a, b));
        let rate = edge_rate(&edge.data)?;
        let delay = edge_delay(&edge.data)?.or(fibre);
        let limit = edge.data.parsed("queue", units::size_of)?.map(Limit::Bytes);
        let loss = edge.data.parsed("loss", |text| number(text, 0.0, 1.0))?;
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
    Ok(bundles)
}

fn check_hosts_have_edges(document: &Document<'_>, network: &Network) -> Result<(), TopologyError> {
    let linked: BTreeSet<_> = network.cables.iter().flat_map(|cable| [cable.a, cable.b]).collect();
    match network.hosts().into_iter().find(|host| !linked.contains(host)) {
        None => Ok(()),
        Some(host) => {
            let node = &document.nodes[host.index()];
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
    let latitude = data.parsed("latitude", |text| number(text, -90.0, 90.0))?;
    let longitude = data.parsed("longitude", |text| number(text, -180.0, 180.0))?;
    let place = |(latitude, longitude): (f64, f64)| Place {
        latitude: latitude.to_radians(),
        longitude: longitude.to_radians(),
    };
    Ok(latitude.zip(longitude).map(place))
}

fn edge_rate(data: &Data<'_>) -> Result<Option<Rate>, TopologyError> {
    let with_unit = data.parsed("rate", units::rate_of)?;
    let raw = || data.parsed("linkspeedraw", |text| number(text, 0.0, 1e18).map(|bps| Rate::from_bps(bps as u64)));
    let rate = if with_unit.is_some() { with_unit } else { raw()? };
    rate.map(|rate| bounds::rate(Some(data.line), "the rate of the edge", rate)).transpose()
}

fn edge_delay(data: &Data<'_>) -> Result<Option<Dur>, TopologyError> {
    let delay = data.parsed("delay", units::time_of)?;
    delay.map(|delay| bounds::delay(Some(data.line), "the delay of the edge", delay)).transpose()
}

/// A number from `low` to `high`.
fn number(text: &str, low: f64, high: f64) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (low..=high).contains(value));
    value.ok_or_else(|| format!("a number from {low} to {high}"))
}

/// The delay of fibre along the great circle, by the haversine formula.
fn fibre_delay(a: Place, b: Place) -> Dur {
    let square = |x: f64| x * x;
    let half_chord_squared = square(libm::sin((b.latitude - a.latitude) / 2.0))
        + libm::cos(a.latitude) * libm::cos(b.latitude) * square(libm::sin((b.longitude - a.longitude) / 2.0));
    let distance_km = 2.0 * EARTH_RADIUS_KM * libm::asin(libm::sqrt(half_chord_squared.min(1.0)));
    Dur::from_secs_f64(distance_km / FIBRE_KM_PER_SECOND)
}

#[cfg(test)]
mod tests;
