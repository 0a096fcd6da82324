//! What rate-based controllers share: the rate of payload and the rate on the wire.

use sparelane_core::Rate;

/// Bytes of IP and TCP header, which a pace covers.
pub const HEADER_BYTES: u64 = 40;

/// The pace of full segments, headers included, that brings `payload` of a payload of `mss_bytes` each.
pub fn on_the_wire(payload: Rate, mss_bytes: u64) -> Rate {
    payload.scaled((mss_bytes + HEADER_BYTES) as f64 / mss_bytes as f64)
}
