//! `[measure]`: the warm-up, and measurements other than completion times of flows.

use crate::rcp_rates;
use crate::schemes::Schemes;
use sparelane_catalogue::schema::Field;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::{Fallback, Key, Kind};
use sparelane_core::{Dur, Time};
use sparelane_sim::observe::DelaysSpec;

/// The keys of `[measure]`.
pub static MEASURE: &[Key] = &[
    Key::new(
        "delays",
        Kind::Flag,
        Fallback::Value("false"),
        "the one-way delay of every data packet, from its host's interface to the receiving host: the table \
         delays, and mean_delay_s and max_delay_s of flows",
    ),
    Key::new(
        "from",
        Kind::MOMENT,
        Fallback::Value("0s"),
        "end of the warm-up: packets sent earlier do not count for delays, nor bytes received earlier for measured_bytes of flows",
    ),
];

/// Reads `[measure]`, of a run of `duration`.
pub fn read(field: Field<'_>, schemes: &Schemes, duration: Dur) -> Result<DelaysSpec, ScenarioError> {
    let section = field.section(&[MEASURE])?;
    let (delays, from) = (section.need("delays")?, section.need("from")?);
    let spec = DelaysSpec { from: Time::ZERO + from.time()?, delays: delays.flag()? };
    if from.time()? >= duration {
        return Err(from.error(format!("the run ends at {duration}; allowed: a time before its end")));
    }
    match schemes.all.iter().find(|scheme| rcp_rates::wants_rate(scheme)) {
        Some(scheme) if spec.delays => Err(delays.error(format!(
            "packets of scheme \"{}\" carry a rate header in the field of the send time; allowed: false, or other schemes",
            scheme.name
        ))),
        _ => Ok(spec),
    }
}
