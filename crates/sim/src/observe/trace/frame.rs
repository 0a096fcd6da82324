//! A packet of the simulator as an IPv4 packet with a TCP segment. Addresses and ports are made up; everything else is
//! as simulated.

use super::super::SackRanges;
use crate::routing::network::NodeId;
use sparelane_transport::{AccEcnOption, EcnFlags};
use std::net::Ipv4Addr;

/// TCP flags (RFC 9293 section 3.1, RFC 3168).
pub(super) const SYN: u8 = 0x02;
pub(super) const PSH_ACK: u8 = 0x18;
pub(super) const ACK: u8 = 0x10;
pub(super) const ECE: u8 = 0x40;
pub(super) const CWR: u8 = 0x80;

const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
const MOST_OPTIONS: usize = 40;
/// TCP options (RFC 9293, 2018, 7323).
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
/// The largest window scale: the windows of the simulator's receivers may exceed what TCP can express.
const SCALE: u8 = 14;
const WINDOW: u16 = u16::MAX;
const TTL: u8 = 64;
const TCP: u8 = 6;
/// The port of all receivers.
const SERVICE: u16 = 5001;
/// The first port of senders.
const EPHEMERAL: u32 = 10_000;

/// The ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) flow: u32,
    pub(super) src: NodeId,
    pub(super) dst: NodeId,
    pub(super) mss_bytes: u64,
    pub(super) header_bytes: u64,
    pub(super) uses_ecn: bool,
}

/// The address of a host: 10.0.0.1 for the first node of the network, and so on.
pub(super) fn address(node: NodeId) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0001u32.wrapping_add(node.0 & 0x00ff_ffff))
}

/// The port of a flow's sender. Ports repeat after 50,000 flows.
pub(super) fn port(flow: u32) -> u16 {
    (EPHEMERAL + flow % 50_000) as u16
}

/// The DSCP of a class: best effort for class 0, then code points for low priority and similar ones: 3, 11, 19.
pub(super) fn dscp(class: u8) -> u8 {
    (class * 8).saturating_sub(5).min(63)
}

/// The fields of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) ends: &'a Ends,
    /// True from the receiver to the sender.
    pub(super) goes_back: bool,
    pub(super) sequence: u32,
    pub(super) acknowledgment: u32,
    pub(super) flags: u8,
    /// The flags AE, CWR and ECE of accurate ECN as a number of three bits (RFC 9768).
    pub(super) ecn_flags: EcnFlags,
    /// The AccECN option.
    pub(super) option: Option<AccEcnOption>,
    pub(super) sack: SackRanges,
    pub(super) payload_bytes: usize,
    pub(super) class: u8,
    /// The ECN field of IP (RFC 3168): 2 for ECN-capable packets, 3 for marked ones.
    pub(super) ecn: u8,
    /// The number of the packet in the trace.
    pub(super) id: u16,
}

impl Frame<'_> {
    fn options(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if self.flags & SYN != 0 {
            options.extend_from_slice(&[MSS, 4]);
            options.extend_from_slice(&(self.ends.mss_bytes.min(u64::from(u16::MAX)) as u16).to_be_bytes());
            options.extend_from_slice(&[SACK_PERMITTED, 2, WINDOW_SCALE, 3, SCALE, NOP]);
        }
        let ranges = self.sack.all();
        if !ranges.is_empty() {
            options.extend_from_slice(&[NOP, NOP, SACK, (2 + 8 * ranges.len()) as u8]);
            for &(start, end) in ranges {
                options.extend_from_slice(&sequence_of(start).to_be_bytes());
                options.extend_from_slice(&sequence_of(end).to_be_bytes());
            }
        }
        if let Some(option) = self.option {
            options.push(NOP);
            options.extend_from_slice(&option.to_bytes());
        }
        let simulated = (self.ends.header_bytes as usize).saturating_sub(IP_HEADER + TCP_HEADER);
        let length = options.len().max(simulated).next_multiple_of(4).min(MOST_OPTIONS);
        options.resize(length, NOP);
        options
    }

    /// Returns the length of the whole frame, and its first `snap_bytes` bytes. The payload is zeros.
    pub(super) fn bytes(&self, snap_bytes: u32) -> (u32, Vec<u8>) {
        let options = self.options();
        let tcp_length = TCP_HEADER + options.len();
        let length = IP_HEADER + tcp_length + self.payload_bytes;
        let (from, to) = (address(self.ends.src), address(self.ends.dst));
        let (near, far) = (port(self.ends.flow), SERVICE);
        let (from, to, near, far) = if self.goes_back { (to, from, far, near) } else { (from, to, near, far) };
        let mut bytes = Vec::with_capacity(length.min(snap_bytes as usize));
        bytes.extend_from_slice(&[0x45, dscp(self.class) << 2 | self.ecn]);
        bytes.extend_from_slice(&(length as u16).to_be_bytes());
        bytes.extend_from_slice(&self.id.to_be_bytes());
        bytes.extend_from_slice(&[0x40, 0, TTL, TCP, 0, 0]);
        bytes.extend_from_slice(&from.octets());
        bytes.extend_from_slice(&to.octets());
        let sum = checksum(0, &bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        let tcp = bytes.len();
        bytes.extend_from_slice(&near.to_be_bytes());
        bytes.extend_from_slice(&far.to_be_bytes());
        bytes.extend_from_slice(&self.sequence.to_be_bytes());
        bytes.extend_from_slice(&self.acknowledgment.to_be_bytes());
        // AE is the last bit before the flags of RFC 3168; CWR and ECE are the first two of those.
        let accurate_flag = self.ecn_flags >> 2;
        let flags = self.flags | (self.ecn_flags & 0b11) << 6;
        bytes.extend_from_slice(&[((tcp_length / 4) << 4) as u8 | accurate_flag, flags]);
        bytes.extend_from_slice(&WINDOW.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&options);
        // A payload of zeros adds only its length to the checksum.
        let pseudo = add(add(0, &bytes[12..20]), &[0, TCP]) + (tcp_length + self.payload_bytes) as u32;
        let sum = checksum(pseudo, &bytes[tcp..]);
        bytes[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
        bytes.resize(length.min(snap_bytes as usize), 0);
        (length as u32, bytes)
    }
}

/// The sequence number of a byte of the stream. The SYN has 0.
pub(super) fn sequence_of(offset_bytes: u64) -> u32 {
    (offset_bytes + 1) as u32
}

fn add(sum: u32, bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .fold(sum, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or_default()])))
}

/// The Internet checksum (RFC 1071) of `bytes`, continued from `sum`.
fn checksum(sum: u32, bytes: &[u8]) -> u16 {
    let mut sum = add(sum, bytes);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_transport::CounterOrder;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // The example of RFC 1071 section 3, whose sum is ddf2.
        assert_eq!(checksum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn a_frame_is_as_long_as_it_says_and_sums_up_to_nothing() {
        let ends = Ends { flow: 3, src: NodeId(0), dst: NodeId(7), mss_bytes: 1460, header_bytes: 40, uses_ecn: false };
        let sack = SackRanges::new([(2920, 5840)]);
        let frame = Frame {
            ends: &ends,
            goes_back: true,
            sequence: 1,
            acknowledgment: sequence_of(1460),
            flags: ACK | ECE,
            ecn_flags: 0,
            option: None,
            sack,
            payload_bytes: 0,
            class: 1,
            ecn: 0,
            id: 9,
        };
        let (length, bytes) = frame.bytes(u32::MAX);
        assert_eq!((length as usize, length), (bytes.len(), 52));
        assert_eq!(bytes[1] >> 2, 3);
        assert_eq!(checksum(0, &bytes[..20]), 0);
        let pseudo = add(0, &bytes[12..20]) + u32::from(TCP) + 32;
        assert_eq!(checksum(pseudo, &bytes[20..]), 0);
        assert_eq!(bytes[40..44], [NOP, NOP, SACK, 10]);
        assert_eq!(bytes[44..48], 2921u32.to_be_bytes());
        let option = AccEcnOption { order: CounterOrder::Ect1First, ect0_bytes: 1, ce_bytes: 1460, ect1_bytes: 2921 };
        let accurate = Frame { flags: ACK, ecn_flags: 0b110, option: Some(option), ..frame };
        let (length, bytes) = accurate.bytes(u32::MAX);
        assert_eq!((length as usize, length), (bytes.len(), 64));
        assert_eq!(bytes[32..34], [11 << 4 | 1, ACK | CWR]);
        assert_eq!(bytes[52..64], [NOP, 174, 11, 0, 11, 105, 0, 5, 180, 0, 0, 1]);
        let (length, snapped) = Frame { payload_bytes: 1460, sack: SackRanges::default(), ..frame }.bytes(64);
        assert_eq!((length, snapped.len()), (1500, 64));
    }
}
