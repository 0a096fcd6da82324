//! `[packets]`: a log of the data packets of one flow.

use crate::rcp_rates;
use crate::schemes::Schemes;
use sparelane_catalogue::schema::Field;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::{Fallback, Key, Kind};
use sparelane_core::{Dur, Time};
use sparelane_sim::observe::PacketLogSpec;

/// The most rows of the log.
const MAX_ROWS: u64 = 1_000_000;

/// The keys of `[packets]`.
pub static PACKETS: &[Key] = &[
    Key::new(
        "flow",
        Kind::Whole { min: 0, max: u32::MAX as u64 },
        Fallback::Value("0"),
        "the flow, by its number in order of start",
    ),
    Key::new("from", Kind::MOMENT, Fallback::Value("0s"), "packets sent before this time are left out"),
    Key::new(
        "count",
        Kind::Whole { min: 1, max: MAX_ROWS },
        Fallback::Value("10000"),
        "the most packets; later ones are left out",
    ),
];

/// Reads `[packets]`, of a run of `duration`.
pub fn read(field: Field<'_>, schemes: &Schemes, duration: Dur) -> Result<PacketLogSpec, ScenarioError> {
    let section = field.section(&[PACKETS])?;
    let from = section.need("from")?;
    if from.time()? >= duration {
        return Err(from.error(format!("the run ends at {duration}; allowed: a time before its end")));
    }
    if let Some(scheme) = schemes.all.iter().find(|scheme| rcp_rates::wants_rate(scheme)) {
        return Err(section.whole_table().error(format!(
            "packets of scheme \"{}\" carry a rate header in the field of the send time; allowed: other schemes",
            scheme.name
        )));
    }
    let (flow, count) = (section.need("flow")?.whole()?, section.need("count")?.whole()?);
    Ok(PacketLogSpec { flow: flow as u32, from: Time::ZERO + from.time()?, count: count as u32 })
}
