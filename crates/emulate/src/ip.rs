//! Reads the fields of IPv4 packets that queues use, and sets the congestion mark (RFC 791, RFC 2474, RFC 3168).

use std::net::Ipv4Addr;

/// The fields of a packet that queues use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The source address.
    pub from: Ipv4Addr,
    /// The destination address.
    pub to: Ipv4Addr,
    /// The length in bytes, including the header.
    pub bytes: u16,
    /// The differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// True if the packet can be marked: its ECN field is ECT(0), ECT(1) or CE.
    pub is_ecn_capable: bool,
    /// True if its ECN field is ECT(1) or CE, by which coupled dual queues classify it.
    pub is_l4s: bool,
    /// A hash of addresses, protocol and ports; for fragments, of addresses and protocol only.
    pub flow: u32,
    /// False only for TCP segments without payload.
    pub is_data: bool,
}

/// The size of the smallest header, and the offsets of its fields, in bytes.
const HEADER_BYTES: usize = 20;
const TOS: usize = 1;
const LENGTH: usize = 2;
const FRAGMENT: usize = 6;
const PROTOCOL: usize = 9;
const CHECKSUM: usize = 10;
const ADDRESSES: usize = 12;

/// The bits of the fragment field that are set in fragments: "more fragments" and the offset.
const IS_FRAGMENT: u16 = 0x3fff;
/// The bits of the ECN field, and its value CE (congestion experienced).
const ECN: u8 = 3;
const CONGESTION_EXPERIENCED: u8 = 3;
/// The bit of the ECN field that is set in ECT(1) and CE.
const ECT_1: u8 = 1;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// The offset of the byte whose upper four bits are the length of a TCP header in 32-bit words.
const TCP_LENGTH: usize = 12;

fn u16_at(packet: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]))
}

fn address(packet: &[u8], at: usize) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
    Some(octets.into())
}

/// Parses the header of an IPv4 packet. Returns `None` if it is not IPv4 or is truncated.
pub fn read(packet: &[u8]) -> Option<Header> {
    let first = *packet.first()?;
    let header_bytes = usize::from(first & 15) * 4;
    let bytes = u16_at(packet, LENGTH)?;
    let is_whole = (HEADER_BYTES..=usize::from(bytes)).contains(&header_bytes) && usize::from(bytes) <= packet.len();
    if first >> 4 != 4 || !is_whole {
        return None;
    }
    let packet = &packet[..usize::from(bytes)];
    let (tos, protocol) = (packet[TOS], packet[PROTOCOL]);
    let is_fragment = u16_at(packet, FRAGMENT)? & IS_FRAGMENT != 0;
    let has_ports = matches!(protocol, TCP | UDP) && !is_fragment;
    let ports = if has_ports { packet.get(header_bytes..header_bytes + 4).unwrap_or_default() } else { &[] };
    let parts = [&packet[ADDRESSES..HEADER_BYTES], &[protocol], ports];
    Some(Header {
        from: address(packet, ADDRESSES)?,
        to: address(packet, ADDRESSES + 4)?,
        bytes,
        dscp: tos >> 2,
        is_ecn_capable: tos & ECN != 0,
        is_l4s: tos & ECT_1 != 0,
        flow: hash(parts.into_iter().flatten().copied()),
        is_data: protocol != TCP || is_fragment || has_payload(&packet[header_bytes..]),
    })
}

fn has_payload(segment: &[u8]) -> bool {
    segment.get(TCP_LENGTH).is_none_or(|length| usize::from(length >> 4) * 4 < segment.len())
}

/// The 32-bit FNV-1a hash.
fn hash(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Sets the ECN field of a packet to "congestion experienced" and updates its checksum (RFC 1624, equation 3).
///
/// # Panics
/// If the packet is shorter than a header, which [`read`] rejects.
pub fn mark(packet: &mut [u8]) {
    let before = u16::from_be_bytes([packet[0], packet[TOS]]);
    packet[TOS] |= CONGESTION_EXPERIENCED;
    let after = u16::from_be_bytes([packet[0], packet[TOS]]);
    let checksum = u16::from_be_bytes([packet[CHECKSUM], packet[CHECKSUM + 1]]);
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = ((folded & 0xffff) + (folded >> 16)) as u16;
    packet[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!folded).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the checksum of a header whose checksum field is zero (RFC 1071).
    fn checksum(header: &[u8]) -> u16 {
        let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        !(((folded & 0xffff) + (folded >> 16)) as u16)
    }

    /// Returns a TCP segment with `payload` bytes of payload.
    fn segment(tos: u8, identification: u16, payload: usize) -> Vec<u8> {
        let mut packet = vec![0; 40 + payload];
        packet[0] = 0x45;
        packet[1] = tos;
        packet[2..4].copy_from_slice(&(40 + payload as u16).to_be_bytes());
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        packet[8] = 64;
        packet[9] = TCP;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..24].copy_from_slice(&[1, 2, 3, 4]);
        packet[32] = 5 << 4;
        let sum = checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn the_fields_of_a_header_are_read() {
        let header = read(&segment(19 << 2 | 2, 7, 100)).expect("a packet");
        assert_eq!((header.from, header.to), (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!((header.bytes, header.dscp, header.is_ecn_capable, header.is_data), (140, 19, true, true));
        let plain = read(&segment(0, 7, 0)).expect("a packet");
        assert!(!plain.is_ecn_capable && !plain.is_data);
        assert_eq!(plain.flow, header.flow);
        let fields = [0, 1, 2, 3].map(|ecn| read(&segment(ecn, 7, 0)).expect("a packet"));
        assert_eq!(fields.map(|header| header.is_ecn_capable), [false, true, true, true]);
        assert_eq!(fields.map(|header| header.is_l4s), [false, true, false, true]);
    }

    #[test]
    fn a_mark_sets_the_ecn_field_and_updates_the_checksum() {
        for identification in [0, 1, 0x7fff, 0xfffe, 0xffff] {
            for tos in [1, 2, 3, 3 << 2 | 1, 0xfe] {
                let mut packet = segment(tos, identification, 10);
                mark(&mut packet);
                assert_eq!(packet[TOS], tos | 3);
                let zeroed: Vec<_> = (0..20).map(|at| if (10..12).contains(&at) { 0 } else { packet[at] }).collect();
                let expected = checksum(&zeroed);
                assert_eq!(u16_at(&packet, CHECKSUM), Some(expected), "code point {tos}, number {identification}");
            }
        }
    }

    #[test]
    fn flows_differ_by_ports_but_fragments_of_one_packet_belong_to_one_flow() {
        let (first, mut other) = (segment(0, 1, 50), segment(0, 1, 50));
        other[23] = 99;
        assert_ne!(read(&first).map(|header| header.flow), read(&other).map(|header| header.flow));
        let (mut head, mut rest) = (first.clone(), other);
        head[6] = 0x20;
        rest[7] = 9;
        assert_eq!(read(&head).map(|header| header.flow), read(&rest).map(|header| header.flow));
    }

    #[test]
    fn truncated_and_other_packets_are_rejected() {
        let whole = segment(0, 1, 20);
        assert_eq!((0..whole.len()).filter_map(|bytes| read(&whole[..bytes])).count(), 0);
        let with = |at: usize, byte: u8| {
            let mut packet = whole.clone();
            packet[at] = byte;
            read(&packet)
        };
        assert_eq!(with(0, 0x65), None);
        assert_eq!(with(0, 0x44), None);
        assert_eq!(with(3, 19), None);
        assert!(with(0, 0x46).is_some());
    }
}
