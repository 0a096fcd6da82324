//! `writes = { .. }`: applications that write their flows in pieces.

use crate::error::ScenarioError;
use crate::field::{Field, Section};
use crate::keys::{Fallback, Key, Kind, MAX_DURATION};
use crate::volume::{Volume, volume};
use sparelane_core::Dur;
use sparelane_sim::Writes;

const PIECE: Kind =
    Kind::Special("bytes (\"9MB\"), full segments (\"9packets\") or bandwidth-delay products (\"1bdp\")");

/// The keys of `writes`.
pub static WRITES: &[Key] = &[
    Key::new("first", PIECE, Fallback::Required, "what is written at the flow's start"),
    Key::new("then", PIECE, Fallback::Required, "what every later write adds; the last one what is left"),
    Key::new(
        "every",
        Kind::Time { min: Dur::from_us(1), max: MAX_DURATION },
        Fallback::Required,
        "the time from one write to the next",
    ),
];

/// Reads `writes`, for segments of `mss_bytes` and a bandwidth-delay product of `bdp` bytes.
pub fn read(field: &Field<'_>, mss_bytes: u64, bdp: u64) -> Result<Writes, ScenarioError> {
    let section = field.clone().section(&[WRITES])?;
    let bytes = |name: &str| piece(&section, name, mss_bytes, bdp);
    Ok(Writes { first_bytes: bytes("first")?, then_bytes: bytes("then")?, every: section.need("every")?.time()? })
}

fn piece(section: &Section<'_>, name: &str, mss_bytes: u64, bdp: u64) -> Result<u64, ScenarioError> {
    let field = section.need(name)?;
    match volume(&field, mss_bytes, bdp)? {
        Volume::Bytes(bytes) => Ok(bytes),
        Volume::Unlimited => Err(field.refuse("a write has an end")),
    }
}
