//! Messages on a control stream: framing, encoding and decoding.
//!
//! A message consists of its length (4 bytes, not counting themselves), its kind (1) and its fields. Integers are in
//! network byte order; a text has its length in bytes (2) before it. The first message of a listening site has kind 0
//! and one byte that identifies the service it offers.

use crate::peer_text::PeerText;
use bytes::{BufMut, Bytes};
use std::ops::RangeInclusive;
use thiserror::Error;

/// The maximum size of a message, bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// The memory that an inbox keeps for the next message, bytes.
const MAX_SPARE_BYTES: usize = 1 << 10;

/// The maximum size of a reason, bytes.
const MAX_REASON_BYTES: usize = 500;

/// Bytes that are not a valid message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MessageError {
    /// The message is too long.
    #[error("a message of {0} bytes; at most {MAX_MESSAGE_BYTES} are allowed")]
    Size(usize),
    /// The kind is not known.
    #[error("there is no message of kind {0} here")]
    Kind(u8),
    /// A field is missing or invalid, or bytes are left over.
    #[error("a message of kind {0} that is cut off, too long, or not in UTF-8")]
    Form(u8),
}

/// The kind of the message that announces a service.
const SERVES: u8 = 0;

/// The service of a listening site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Receiving files.
    Files,
    /// Connecting to targets.
    Tunnel,
}

impl Service {
    /// The first message of a site that offers this service.
    pub fn greeting(self) -> Bytes {
        let service = match self {
            Service::Files => 1,
            Service::Tunnel => 2,
        };
        vec![0, 0, 0, 2, SERVES, service].into()
    }
}

/// The set of messages of one service.
pub trait Coded: Sized {
    /// The kinds of these messages.
    const KINDS: RangeInclusive<u8>;

    /// Reads a message of `kind`, which is one of [`KINDS`](Self::KINDS). Returns `None` if its fields are invalid.
    fn read(kind: u8, fields: &mut Fields<'_>) -> Option<Self>;

    /// Appends kind and fields.
    fn write(&self, out: &mut Vec<u8>);

    /// Encodes the message, including its length.
    fn encode(&self) -> Bytes {
        let mut out = vec![0; 4];
        self.write(&mut out);
        let length = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&length.to_be_bytes());
        out.into()
    }
}

/// Appends a text with its length.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(usize::from(u16::MAX))];
    out.put_u16(bytes.len() as u16);
    out.put_slice(bytes);
}

/// Appends a reason, cut between characters if it is too long.
pub(crate) fn put_reason(out: &mut Vec<u8>, reason: &PeerText) {
    let reason = reason.as_str();
    let end = (0..=reason.len().min(MAX_REASON_BYTES)).rfind(|&at| reason.is_char_boundary(at));
    put_text(out, &reason[..end.unwrap_or(0)]);
}

/// A cursor over the fields of a message that never reads past the end.
#[derive(Debug)]
pub struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    /// A text for people.
    pub(crate) fn reason(&mut self) -> Option<PeerText> {
        Some(PeerText::from(self.text()?))
    }

    /// A text that the caller validates, such as a name.
    pub(crate) fn text(&mut self) -> Option<String> {
        let length = usize::from(self.u16()?);
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok().map(str::to_owned)
    }
}

fn decode<M: Coded>(bytes: &[u8]) -> Result<M, MessageError> {
    let Some((&kind, fields)) = bytes.split_first() else { return Err(MessageError::Kind(0)) };
    if !M::KINDS.contains(&kind) {
        return Err(MessageError::Kind(kind));
    }
    let mut fields = Fields(fields);
    let message = M::read(kind, &mut fields);
    message.filter(|_| fields.0.is_empty()).ok_or(MessageError::Form(kind))
}

/// Reassembles messages from a byte stream.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    peer_serves: Option<Service>,
}

impl Inbox {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The service that the peer has announced, if any.
    pub fn peer_serves(&self) -> Option<Service> {
        self.peer_serves
    }

    /// Returns the next message, if it is complete.
    ///
    /// # Errors
    /// The message is invalid; the rest of the stream cannot be read.
    pub fn pop<M: Coded>(&mut self) -> Result<Option<M>, MessageError> {
        let message = self.pop_complete();
        // Many messages that came at once must not leave their memory to an inbox that waits.
        if matches!(message, Ok(None)) && self.bytes.capacity() > MAX_MESSAGE_BYTES {
            self.bytes.shrink_to(MAX_SPARE_BYTES);
        }
        message
    }

    fn pop_complete<M: Coded>(&mut self) -> Result<Option<M>, MessageError> {
        let Some(length) = self.bytes.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_MESSAGE_BYTES {
            return Err(MessageError::Size(length));
        }
        if self.bytes.len() < 4 + length {
            return Ok(None);
        }
        if self.bytes.get(4) == Some(&SERVES) && length > 0 {
            self.peer_serves = match &self.bytes[5..4 + length] {
                [1] => Some(Service::Files),
                [2] => Some(Service::Tunnel),
                _ => return Err(MessageError::Form(SERVES)),
            };
            self.bytes.drain(..4 + length);
            return self.pop_complete();
        }
        let message = decode(&self.bytes[4..4 + length]);
        self.bytes.drain(..4 + length);
        message.map(Some)
    }
}
