//! The rate header of RCP, by which senders, routers and receivers exchange explicit rates.
//!
//! A packet towards the receiver (SYN, data) carries the rate that its sender requests, which routers lower, and its
//! sender's estimate of the round-trip time. Both travel in fields that such packets do not use otherwise, `trigger`
//! and `blocks`. The response to a SYN echoes the rate in `trigger`. An acknowledgment uses `trigger` itself, so it
//! echoes the rate in the entry of its SACK blocks.
//!
//! Rates are in kb/s (1000 bits per second), rounded down, from 1 kb/s to 4.29 Tb/s. Round-trip times are in units of
//! 100 ns, rounded up, up to 429 s; zero stands for "no estimate yet".

use crate::wire::packet::{Flags, Packet};
use sparelane_core::{Dur, Rate};

const RATE_UNIT_BPS: u64 = 1_000;
const RTT_UNIT: Dur = Dur::from_ns(100);

/// Encodes a rate, clamped to the range of the header.
fn encode_rate(rate: Rate) -> u32 {
    u32::try_from(rate.as_bps() / RATE_UNIT_BPS).unwrap_or(u32::MAX).max(1)
}

/// Decodes a rate.
pub(crate) fn decode_rate(units: u32) -> Rate {
    Rate::from_bps(u64::from(units) * RATE_UNIT_BPS)
}

impl Packet {
    /// Fills the header of a packet towards the receiver.
    pub(crate) fn request_rate(&mut self, rate: Rate, rtt: Option<Dur>) {
        self.set(Flags::RATE_HEADER);
        self.set_trigger(encode_rate(rate));
        let units = rtt.map_or(0, |rtt| rtt.as_ps().div_ceil(RTT_UNIT.as_ps()).max(1));
        self.set_blocks(u32::try_from(units).unwrap_or(u32::MAX));
    }

    /// Returns true if this packet requests a rate. A response carries a header, too, but routers ignore it.
    pub(crate) fn requests_rate(&self) -> bool {
        self.flags().has(Flags::RATE_HEADER) && matches!(self.flags().kind(), Flags::SYN | Flags::DATA)
    }

    /// The sender's estimate of the round-trip time, on a packet that requests a rate.
    pub(crate) fn rtt_estimate(&self) -> Option<Dur> {
        (self.blocks() > 0).then(|| RTT_UNIT * u64::from(self.blocks()))
    }

    /// Lowers the requested rate to `rate`, if it is higher.
    pub(crate) fn lower_rate(&mut self, rate: Rate) {
        self.set_trigger(self.trigger().min(encode_rate(rate)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::packet::{Fields, NO_BLOCKS};

    fn packet(flags: Flags) -> Packet {
        let (flow, seq, trigger, route, blocks, class) = (1, 2, 0, 3, NO_BLOCKS, 4);
        Packet::new(Fields { flow, seq, trigger, route, blocks, wire_bytes: 1500, flags, class })
    }

    #[test]
    fn routers_only_lower_the_requested_rate() {
        let mut packet = packet(Flags::DATA);
        assert!(!packet.requests_rate());
        packet.request_rate(Rate::from_bps(10_000_999), Some(Dur::from_us(40)));
        for (allowed_mbps, left_kbps) in [(20, 10_000), (7, 7_000), (8, 7_000)] {
            packet.lower_rate(Rate::from_mbps(allowed_mbps));
            assert_eq!(packet.trigger(), left_kbps);
        }
        assert!(packet.requests_rate());
        assert_eq!(
            (decode_rate(packet.trigger()), packet.rtt_estimate()),
            (Rate::from_mbps(7), Some(Dur::from_us(40)))
        );
        assert_eq!((packet.flow(), packet.seq(), packet.route(), packet.class()), (1, 2, 3, 4));
        assert_eq!((packet.wire_bytes(), packet.flags().kind()), (1500, Flags::DATA));
    }

    #[test]
    fn values_beyond_a_header_are_sent_as_its_bounds() {
        let mut syn = packet(Flags::SYN);
        syn.request_rate(Rate::from_bps(u64::MAX), None);
        assert_eq!((syn.trigger(), syn.rtt_estimate()), (u32::MAX, None));
        syn.request_rate(Rate::from_bps(1), Some(Dur::from_ps(1)));
        assert_eq!((syn.trigger(), syn.rtt_estimate()), (1, Some(RTT_UNIT)));
        syn.request_rate(Rate::from_bps(1), Some(Dur::MAX));
        assert_eq!(syn.rtt_estimate(), Some(RTT_UNIT * u64::from(u32::MAX)));
    }

    #[test]
    fn answers_ask_for_nothing() {
        for kind in [Flags::ACK, Flags::SYN_ACK] {
            assert!(!packet(kind.with_if(true, Flags::RATE_HEADER)).requests_rate());
        }
    }
}
