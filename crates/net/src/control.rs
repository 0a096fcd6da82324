//! Messages on a control stream: their frame and the cursor that reads them, whatever they say.
//!
//! A message is its length (4 bytes, without these), its kind (1) and its fields; integers are in network byte order, texts have
//! their length in bytes before them (2). The first message of a site that listens, of kind 0, says in one byte what it serves.

use bytes::{BufMut, Bytes};
use std::ops::RangeInclusive;
use thiserror::Error;

/// The largest message, bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// The longest reason, bytes.
const MAX_REASON_BYTES: usize = 500;

/// Why bytes are no message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MessageError {
    /// Too long.
    #[error("a message of {0} bytes; at most {MAX_MESSAGE_BYTES} are allowed")]
    Size(usize),
    /// No such kind.
    #[error("there is no message of kind {0} here")]
    Kind(u8),
    /// Fields are missing, too many, or no text.
    #[error("a message of kind {0} that is cut off, too long, or not in UTF-8")]
    Form(u8),
}

/// The kind of the message that says what a site serves.
const SERVES: u8 = 0;

/// What a site serves that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// It receives files.
    Files,
    /// It connects to targets.
    Tunnel,
}

impl Service {
    /// What a site says first that serves this.
    pub fn greeting(self) -> Bytes {
        let service = match self {
            Service::Files => 1,
            Service::Tunnel => 2,
        };
        vec![0, 0, 0, 2, SERVES, service].into()
    }
}

/// A set of messages that two sides of one service exchange.
pub trait Coded: Sized {
    /// The kinds that there are.
    const KINDS: RangeInclusive<u8>;

    /// The message of this kind, one of [`KINDS`](Self::KINDS), with these fields; `None` where they are wrong.
    fn read(kind: u8, fields: &mut Fields<'_>) -> Option<Self>;

    /// Appends kind and fields.
    fn write(&self, out: &mut Vec<u8>);

    /// Its bytes, length and all.
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

/// Appends a reason, which is cut between characters where it is too long.
pub(crate) fn put_reason(out: &mut Vec<u8>, reason: &str) {
    let end = (0..=reason.len().min(MAX_REASON_BYTES)).rfind(|&at| reason.is_char_boundary(at));
    put_text(out, &reason[..end.unwrap_or(0)]);
}

/// A cursor that never reads past the end.
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

/// Messages out of a stream of bytes.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    peer_serves: Option<Service>,
}

impl Inbox {
    /// More bytes came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// What the peer serves, as far as it has said so.
    pub fn peer_serves(&self) -> Option<Service> {
        self.peer_serves
    }

    /// The next message, if all of it is here.
    ///
    /// # Errors
    /// It is none; nothing behind it can be read.
    pub fn pop<M: Coded>(&mut self) -> Result<Option<M>, MessageError> {
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
            return self.pop();
        }
        let message = decode(&self.bytes[4..4 + length]);
        self.bytes.drain(..4 + length);
        message.map(Some)
    }
}
