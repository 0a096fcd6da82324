//! The size of a flow.

use super::error::ScenarioError;
use super::field::Field;
use super::units::Amount;
use sparelane_sim::MAX_FLOW_SEGMENTS;

/// The size of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// Payload bytes, at least one.
    Bytes(u64),
    /// An unlimited flow.
    Unlimited,
}

/// Reads the flow size that `field` gives. Packets are full segments of `mss_bytes`, and `"1bdp"` is `bdp` bytes.
pub fn volume(field: &Field<'_>, mss_bytes: u64, bdp: u64) -> Result<Volume, ScenarioError> {
    if field.is_text("unlimited") {
        return Ok(Volume::Unlimited);
    }
    let bytes = match field.amount()? {
        Amount::Bytes(bytes) => bytes,
        Amount::Packets(segments) => segments.saturating_mul(mss_bytes),
        Amount::Bdp(products) => products.of(bdp),
    };
    let max = max_flow_bytes(mss_bytes);
    if (1..=max).contains(&bytes) {
        return Ok(Volume::Bytes(bytes));
    }
    Err(field.error(format!(
        "{bytes} bytes; allowed: 1 to {max}, because segments of {mss_bytes} bytes have 32-bit numbers"
    )))
}

/// Returns the size of the largest flow in segments of `mss_bytes`.
pub fn max_flow_bytes(mss_bytes: u64) -> u64 {
    MAX_FLOW_SEGMENTS * mss_bytes
}
