//! Requests to the kernel about routes and interfaces, over a netlink socket (RFC 3549).

use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};
use nix::sys::socket::{recv, sendto, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// A request flag of include/uapi/linux/netlink.h: the kernel confirms the request (`NLM_F_ACK`).
pub const ACKNOWLEDGE: u16 = 4;
/// A request flag: an existing object is replaced (`NLM_F_REPLACE`).
pub const REPLACE: u16 = 0x100;
/// A request flag: all objects are listed (`NLM_F_DUMP`).
pub const DUMP: u16 = 0x300;
const REQUEST: u16 = 1;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const HEADER_BYTES: usize = 16;

/// Parses the attributes of a message into pairs of type and value. Parsing stops at the first malformed attribute.
pub fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let [a, b, c, d, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([a, b]));
        if length < 4 || length > bytes.len() {
            break;
        }
        // The two highest bits of a type are flags.
        found.push((u16::from_ne_bytes([c, d]) & 0x3fff, &bytes[4..length]));
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    found
}

/// Appends an attribute.
pub fn put_attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    // The next attribute starts at a multiple of four bytes.
    message.resize(message.len().next_multiple_of(4), 0);
}

/// Reads a 32-bit number in native byte order. Returns zero if there are not exactly four bytes.
pub fn read_u32(bytes: &[u8]) -> u32 {
    bytes.try_into().map(u32::from_ne_bytes).unwrap_or_default()
}

/// Sends a request and returns the bodies of all answers, without their netlink headers.
///
/// # Errors
/// The socket fails, an answer is malformed, or the kernel answers with an error.
pub fn request(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let protocol = SockProtocol::NetlinkRoute;
    let fd: OwnedFd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    message.extend_from_slice(&((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&(REQUEST | flags).to_ne_bytes());
    // The sequence number of the request, and port 0, which lets the kernel choose.
    message.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(body);
    sendto(fd.as_raw_fd(), &message, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let (mut answers, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    // A list can take several datagrams of several messages each, up to DONE. Other requests get one answer.
    loop {
        let length = recv(fd.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut rest = &buffer[..length];
        while rest.len() >= HEADER_BYTES {
            let length = read_u32(&rest[..4]) as usize;
            if length < HEADER_BYTES || length > rest.len() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let (body, answer) = (&rest[HEADER_BYTES..length], u16::from_ne_bytes([rest[4], rest[5]]));
            match answer {
                DONE => return Ok(answers),
                // An error code of zero is an acknowledgment.
                ERROR => {
                    let number = i32::from_ne_bytes(body[..4].try_into().unwrap_or_default());
                    return if number == 0 { Ok(answers) } else { Err(io::Error::from_raw_os_error(-number)) };
                }
                _ => answers.push(body.to_vec()),
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
    }
}
