//! How much one flow carries.

use crate::error::ScenarioError;
use crate::field::Field;
use crate::keys::MAX_FLOW_BYTES;
use crate::units::Amount;

/// How much one flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// Payload bytes, at least one.
    Bytes(u64),
    /// Without end.
    Unlimited,
}

/// The volume that `field` asks for: packets are full segments of `mss_bytes`, and `"1bdp"` is `bdp` bytes.
pub fn volume(field: &Field<'_>, mss_bytes: u64, bdp: u64) -> Result<Volume, ScenarioError> {
    if field.is_text("unlimited") {
        return Ok(Volume::Unlimited);
    }
    let bytes = match field.amount()? {
        Amount::Bytes(bytes) => bytes,
        Amount::Packets(segments) => segments.saturating_mul(mss_bytes),
        Amount::Bdp(products) => products.of(bdp),
    };
    if (1..=MAX_FLOW_BYTES).contains(&bytes) {
        return Ok(Volume::Bytes(bytes));
    }
    Err(field.error(format!("{bytes} bytes; allowed: 1 to {MAX_FLOW_BYTES}")))
}
