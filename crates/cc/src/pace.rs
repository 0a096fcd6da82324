//! What rate-based controllers share: the rate of payload and the rate on the wire, and a window that never binds.

use sparelane_core::Rate;

/// Bytes of IP and TCP header, which a pace covers.
pub const HEADER_BYTES: u64 = 40;

/// A window that no connection fills, segments.
pub const MAX_WINDOW_SEGMENTS: u64 = 1 << 32;

/// The pace of full segments, headers included, that brings `payload` of a payload of `mss_bytes` each.
pub fn on_the_wire(payload: Rate, mss_bytes: u64) -> Rate {
    payload.scaled((mss_bytes + HEADER_BYTES) as f64 / mss_bytes as f64)
}
