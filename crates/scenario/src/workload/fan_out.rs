//! `fan_out = [..]`: how many flows a request fetches.

use crate::error::ScenarioError;
use crate::field::Section;
use crate::keys::{Fallback, Key, Kind};
use sparelane_sim::workload::FanOut;

/// The keys of one entry of `fan_out`.
pub static FAN_OUT: &[Key] = &[
    Key::new("flows", Kind::Whole { min: 1, max: 1_000_000 }, Fallback::Required, "flows of one request"),
    Key::new("share", Kind::Share { max: 1.0 }, Fallback::Required, "share of such requests; all add up to 1"),
];

/// What a workload gives, or one flow for every request.
pub fn read(section: &Section<'_>) -> Result<Vec<FanOut>, ScenarioError> {
    let Some(list) = section.given("fan_out") else { return Ok(vec![FanOut { flows: 1, share: 1.0 }]) };
    let mut fan_out = Vec::new();
    for field in list.list(list.kind())? {
        let entry = field.section(&[FAN_OUT])?;
        fan_out.push(FanOut { flows: entry.need("flows")?.whole()? as u32, share: entry.need("share")?.share()? });
    }
    Ok(fan_out)
}
