//! `[host]`: what hosts take their time for.

use crate::error::ScenarioError;
use crate::field::Field;
use crate::keys::{Fallback, Key, Kind};
use sparelane_core::Dur;
use sparelane_sim::HostSpec;

/// The keys of `[host]`.
pub static HOST: &[Key] = &[Key::new(
    "receive_cost",
    Kind::Time { min: Dur::ZERO, max: Dur::from_secs(1) },
    Fallback::Value("0s"),
    "how long a host's processor is busy with each received chunk of data (or segment, without receive_batch)",
)];

/// Reads `[host]`.
pub fn read(field: Field<'_>) -> Result<HostSpec, ScenarioError> {
    let section = field.section(&[HOST])?;
    Ok(HostSpec { receive_cost: section.need("receive_cost")?.time()? })
}
