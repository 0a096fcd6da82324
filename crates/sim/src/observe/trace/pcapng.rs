//! The file format pcapng (draft-ietf-opsawg-pcapng): a section, one interface per port, and one block per packet.

use sparelane_core::Time;

/// Packets begin with their IP header (LINKTYPE_RAW).
const LINKTYPE_RAW: u16 = 101;
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Options: the end of the list, a comment, the interface's name, and its time resolution.
const END_OF_OPTIONS: u16 = 0;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
/// The time resolution: nanoseconds, as a power of ten.
const NANOSECONDS: u8 = 9;

/// A block: its type, its length, its body padded to whole words, and its length again.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = (12 + body.len() + padding) as u32;
    let mut bytes = Vec::with_capacity(length as usize);
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes.resize(bytes.len() + padding, 0);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&(value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The section header, which begins a file.
pub(super) fn section() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&BYTE_ORDER.to_le_bytes());
    body.extend_from_slice(&1u16.to_le_bytes());
    body.extend_from_slice(&0u16.to_le_bytes());
    // The length of the section is not known yet.
    body.extend_from_slice(&u64::MAX.to_le_bytes());
    option(&mut body, USER_APPLICATION, b"sparelane");
    option(&mut body, END_OF_OPTIONS, &[]);
    block(SECTION, &body)
}

/// An interface that keeps at most `snap_bytes` of a packet. Interfaces are numbered from 0 in order of appearance.
pub(super) fn interface(name: &str, snap_bytes: u32) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
    body.extend_from_slice(&0u16.to_le_bytes());
    body.extend_from_slice(&snap_bytes.to_le_bytes());
    option(&mut body, INTERFACE_NAME, name.as_bytes());
    option(&mut body, TIME_RESOLUTION, &[NANOSECONDS]);
    option(&mut body, END_OF_OPTIONS, &[]);
    block(INTERFACE, &body)
}

/// A packet of `whole_bytes` bytes, of which `bytes` are kept.
pub(super) fn packet(interface: u32, at: Time, bytes: &[u8], whole_bytes: u32) -> Vec<u8> {
    let at_ns = at.as_ps() / 1000;
    let mut body = Vec::with_capacity(20 + bytes.len());
    for word in [interface, (at_ns >> 32) as u32, at_ns as u32, bytes.len() as u32, whole_bytes] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body.extend_from_slice(bytes);
    block(PACKET, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_length_at_both_ends_and_whole_words() {
        for body in [&b""[..], b"a", b"abcd", b"abcde"] {
            let bytes = block(7, body);
            assert_eq!(bytes.len() % 4, 0);
            let length = (bytes.len() as u32).to_le_bytes();
            assert_eq!((&bytes[4..8], &bytes[bytes.len() - 4..]), (&length[..], &length[..]));
        }
    }
}
