//! `[[drop]]`: scripted drops.

use sparelane_catalogue::schema::Field;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::nodes;
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_sim::{Drop, Network};

/// The number of a segment or of a flow.
const NUMBER: Kind = Kind::Whole { min: 0, max: u32::MAX as u64 };

/// The keys of `[[drop]]`.
pub static DROP: &[Key] = &[
    Key::new("from", Kind::Node, Fallback::Required, "the node whose output queue drops"),
    Key::new("to", Kind::Node, Fallback::Required, "the node that the cable leads to"),
    Key::new("flow", NUMBER, Fallback::Value("0"), "the flow, by its number in order of start, from 0"),
    Key::new(
        "segments",
        Kind::Special("a list of whole numbers, as in [20, 21]", &Shape::List(&Shape::Of(NUMBER))),
        Fallback::Required,
        "the data segments to drop, from 0",
    ),
    Key::new(
        "copies",
        Kind::Whole { min: 1, max: u32::MAX as u64 },
        Fallback::Value("1"),
        "the number of transmissions of each segment to drop",
    ),
];

/// Reads one `[[drop]]` table.
pub fn read(field: Field<'_>, network: &Network) -> Result<Drop, ScenarioError> {
    let section = field.section(&[DROP])?;
    let (_, from, to) = nodes::cable(&section.need("from")?, &section.need("to")?, network)?;
    let list = section.need("segments")?;
    let segments = list
        .list(NUMBER)?
        .iter()
        .map(|field| field.whole().map(|number| number as u32))
        .collect::<Result<Vec<_>, _>>()?;
    if segments.is_empty() {
        return Err(list.error("no segment to drop; allowed: at least one"));
    }
    let flow = section.need("flow")?.whole()? as u32;
    Ok(Drop { from, to, flow, segments, copies: section.need("copies")?.whole()? as u32 })
}
