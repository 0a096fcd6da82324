//! Merges the edges between two nodes into one cable.
//!
//! An undirected edge gives its values to both directions, a directed one to its own. A direction without an edge has
//! the values of the other one. A cable has one delay and one queue size, so both directions have the longer delay and
//! the first queue size. Of parallel edges, the highest rate, the lowest delay and the first loss count. Warnings report
//! all edges whose values are not used as they are.

use super::{Graph, edge_delay, edge_rate, fibre_delay, number, place};
use crate::schema::{Warnings, units};
use crate::topology::TopologyError;
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Limit, NodeId};
use std::collections::BTreeMap;

/// Maximum number of lines that a warning lists.
const LISTED: usize = 5;

/// The values that edges give to one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) rate: Option<Rate>,
    pub(super) delay: Option<Dur>,
    pub(super) loss: Option<f64>,
}

impl Way {
    fn merged(self, other: Way) -> Way {
        Way {
            rate: self.rate.max(other.rate),
            delay: self.delay.into_iter().chain(other.delay).min(),
            loss: self.loss.or(other.loss),
        }
    }
}

/// All edges between two nodes.
pub(super) struct Bundle {
    pub(super) ends: [NodeId; 2],
    /// Each direction: from the first end to the second, and back.
    pub(super) ways: [Way; 2],
    pub(super) limit: Option<Limit>,
}

/// A bundle while its edges are read.
struct Growing {
    ends: [usize; 2],
    ways: [Option<Way>; 2],
    limit: Option<Limit>,
    /// The line of its first edge.
    line: usize,
}

/// Lines of edges by the reason why their values are not used as they are.
#[derive(Default)]
struct Remarks {
    loops: Vec<usize>,
    parallel: Vec<usize>,
    one_way: Vec<usize>,
    delays: Vec<usize>,
}

/// Returns the bundles of `graph`, in the order of the first edge of each.
pub(super) fn of(graph: &Graph<'_>, warnings: &Warnings) -> Result<Vec<Bundle>, TopologyError> {
    let ids = ids(graph)?;
    let places: Vec<_> = graph.nodes.iter().map(|node| place(&node.data)).collect::<Result<_, _>>()?;
    let mut bundles: Vec<Growing> = Vec::new();
    let mut positions = BTreeMap::new();
    let mut remarks = Remarks::default();
    for edge in &graph.edges {
        let line = edge.data.line;
        let end = |name: &str, id: &str| {
            ids.get(id).copied().ok_or_else(|| {
                TopologyError::at(line, format!("the edge's {name} is `{id}`; allowed: the id of a node"))
            })
        };
        let (a, b) = (end("source", edge.ends[0])?, end("target", edge.ends[1])?);
        if a == b {
            remarks.loops.push(line);
            continue;
        }
        // A stated delay takes precedence over the distance.
        let fibre = places[a].zip(places[b]).map(|(a, b)| fibre_delay(a, b));
        let way = Way {
            rate: edge_rate(&edge.data)?,
            delay: edge_delay(&edge.data)?.or(fibre),
            loss: edge.data.parsed("loss", |text| number(text, 0.0, 1.0))?,
        };
        let limit = edge.data.parsed("queue", units::size_of)?.map(Limit::Bytes);
        // Edges between two nodes meet under the same pair of ends, in either direction.
        let position = *positions.entry((a.min(b), a.max(b))).or_insert(bundles.len());
        if position == bundles.len() {
            bundles.push(Growing { ends: [a, b], ways: [None; 2], limit, line });
        }
        let bundle = &mut bundles[position];
        let own = usize::from(bundle.ends[0] != a);
        let covered = if edge.is_directed { &mut bundle.ways[own..=own] } else { &mut bundle.ways[..] };
        if covered.iter().any(Option::is_some) {
            remarks.parallel.push(line);
        }
        covered.iter_mut().for_each(|old| *old = Some(old.map_or(way, |old| old.merged(way))));
        bundle.limit = bundle.limit.or(limit);
    }
    let bundles = bundles.into_iter().map(|bundle| finished(bundle, &mut remarks)).collect();
    remarks.warn(warnings);
    Ok(bundles)
}

/// Fills the direction that no edge covers.
fn finished(bundle: Growing, remarks: &mut Remarks) -> Bundle {
    let empty = Way { rate: None, delay: None, loss: None };
    let ways = match bundle.ways {
        [Some(there), Some(back)] => {
            if there.delay != back.delay {
                remarks.delays.push(bundle.line);
            }
            [there, back]
        }
        ways => {
            remarks.one_way.push(bundle.line);
            [ways[0].or(ways[1]).unwrap_or(empty); 2]
        }
    };
    Bundle { ends: bundle.ends.map(|end| NodeId(end as u32)), ways, limit: bundle.limit }
}

/// Returns the positions of nodes by their ids.
fn ids<'g>(graph: &'g Graph<'_>) -> Result<BTreeMap<&'g str, usize>, TopologyError> {
    let mut ids = BTreeMap::new();
    for (position, node) in graph.nodes.iter().enumerate() {
        if ids.insert(node.id, position).is_some() {
            let message = format!("node id `{}` is given twice; allowed: each id once", node.id);
            return Err(TopologyError::at(node.data.line, message));
        }
    }
    Ok(ids)
}

impl Remarks {
    fn warn(&self, warnings: &Warnings) {
        for (lines, what, then) in [
            (&self.loops, "edges from a node to itself are left out of the map", ""),
            (
                &self.parallel,
                "parallel edges of the map are merged",
                "; the merged link has the highest rate and the least delay of them",
            ),
            (
                &self.one_way,
                "directed edges of the map have no edge back",
                "; both directions have the values of the one given",
            ),
            (&self.delays, "the two directions of edges of the map differ in delay", "; both have the longer one"),
        ] {
            if !lines.is_empty() {
                let listed: Vec<_> = lines.iter().take(LISTED).map(usize::to_string).collect();
                let more = if lines.len() > LISTED { ", ..." } else { "" };
                warnings.add(format!("{what}: {} (line {}{more}){then}", lines.len(), listed.join(", ")));
            }
        }
    }
}
