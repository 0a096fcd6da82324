//! Helpers of rate-based controllers: the ratio of payload to wire bytes, and a window that never binds.

use sparelane_core::Rate;

/// Default bytes of IP and TCP headers.
pub const HEADER_BYTES: u64 = 40;

/// The packet sizes of a connection. Pacing rates include headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSize {
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// Header bytes on every packet.
    pub header_bytes: u64,
}

impl PacketSize {
    /// Segments of `mss_bytes` behind 40 bytes of IP and TCP headers.
    pub const fn of(mss_bytes: u64) -> PacketSize {
        PacketSize { mss_bytes, header_bytes: HEADER_BYTES }
    }

    /// Returns the size of a full segment with its header.
    pub const fn wire_bytes(self) -> u64 {
        self.mss_bytes + self.header_bytes
    }

    /// Returns the wire rate, headers included, at which full segments carry the given payload rate.
    pub fn on_the_wire(self, payload: Rate) -> Rate {
        payload.scaled(self.wire_bytes() as f64 / self.mss_bytes as f64)
    }
}

/// A window that no connection fills, segments.
pub const MAX_WINDOW_SEGMENTS: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_covers_the_headers_of_the_packets() {
        let packets = PacketSize { mss_bytes: 1000, header_bytes: 100 };
        assert_eq!(packets.on_the_wire(Rate::from_mbps(10)), Rate::from_mbps(11));
        assert_eq!(PacketSize::of(1000).on_the_wire(Rate::from_mbps(10)), Rate::from_bps(10_400_000));
    }
}
