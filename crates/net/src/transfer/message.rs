//! The messages of a transfer on the control stream, in the format of [`control`](crate::control).
//!
//! The sender numbers the items.
//!
//! | kind | from | fields |
//! |---|---|---|
//! | 1, offer | sender | item (4), kind (1), size (8), permissions (4), time in ns (8), number of parts (1), parts |
//! | 2, accept | receiver | item, existing bytes (8), number of their chunks (2), digest of each (32) |
//! | 3, refuse | receiver | item, reason |
//! | 4, begin | sender | item, flow (4), offset of its first byte (8), repeated chunks (2), number of each (2) |
//! | 5, whole | sender | item, BLAKE3 digest of the whole file (32) |
//! | 6, abort | sender | item, reason |
//! | 7, stored | receiver | item |
//! | 8, failed | receiver | item, reason |
//! | 9, end | sender | none; no more items follow |
//! | 10, exists | receiver | item |
//! | 11, checked | both | item, bytes of existing data hashed so far (8) |
//! | 12, ended | sender | item, size (8), BLAKE3 digest of the whole stream (32) |
//!
//! The kinds of items are 0 for a file, 1 for a folder, 2 for the time of a folder whose content is complete, 3 for a
//! file that counts as stored if one of its name, size and modification time exists, 4 for data that the receiver
//! discards, as a load on the path, and 5 for a stream: a file whose size is unknown until *ended*, and 0 in the offer.
//! [`chunks`](super::chunks) describes chunks and digests. Repeated chunks lie before the flow's first byte and are
//! sent after the last byte of the file. *exists* reports a file of the same name and size; the sender answers with
//! *whole*.

use super::chunks::{Digest, MAX_CHUNKS};
use crate::control::{Coded, Fields, put_reason, put_text};
use crate::peer_text::PeerText;
use bytes::BufMut;
use std::ops::RangeInclusive;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// The modification time of a folder, sent after all of its content.
    FolderTime,
    /// A file that counts as stored if one of its name, size and modification time exists.
    DatedFile,
    /// Data that the receiver discards.
    Discard,
    /// A file whose size is unknown until its end. It is sent from its beginning to its end, or not at
    /// all.
    Stream,
}

impl Kind {
    /// Returns true for files.
    pub fn is_file(self) -> bool {
        matches!(self, Kind::File | Kind::DatedFile | Kind::Stream)
    }
}

/// An offered item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its number.
    pub item: u32,
    /// Its kind.
    pub kind: Kind,
    /// The size of a file in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// The modification time, nanoseconds since 1970.
    pub modified_ns: i64,
    /// The parts of its name, outermost first.
    pub name: Vec<String>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Offers an item.
    Offer(Offer),
    /// Accepts an item.
    Accept {
        /// The item.
        item: u32,
        /// The bytes that exist already.
        have: u64,
        /// The digest of each chunk of these bytes.
        chunks: Vec<Digest>,
    },
    /// Refuses an item.
    Refuse {
        /// The item.
        item: u32,
        /// The reason.
        reason: PeerText,
    },
    /// Announces the flow of an item.
    Begin {
        /// The item.
        item: u32,
        /// The flow.
        flow: u32,
        /// The offset of the flow's first byte.
        from: u64,
        /// The chunks before that offset that are sent again after the end of the file, in order.
        again: Vec<u16>,
    },
    /// Gives the digest of an item that is completely sent.
    Whole {
        /// The item.
        item: u32,
        /// The digest of the whole file.
        digest: Digest,
    },
    /// Gives up an item that cannot be sent.
    Abort {
        /// The item.
        item: u32,
        /// The reason.
        reason: PeerText,
    },
    /// Confirms that the item is stored under its name.
    Stored {
        /// The item.
        item: u32,
    },
    /// Reports that the item could not be stored.
    Failed {
        /// The item.
        item: u32,
        /// The reason.
        reason: PeerText,
    },
    /// Announces that no more items follow.
    End,
    /// Reports that a file of this name and size exists, and asks for the digest of the offered one.
    Exists {
        /// The item.
        item: u32,
    },
    /// Reports progress in hashing existing data.
    Checked {
        /// The item.
        item: u32,
        /// The bytes hashed so far.
        bytes: u64,
    },
    /// Gives the size and the digest of a stream that is completely sent.
    Ended {
        /// The item.
        item: u32,
        /// The size in bytes.
        size: u64,
        /// The digest of the whole stream.
        digest: Digest,
    },
}

impl Coded for Message {
    const KINDS: RangeInclusive<u8> = 1..=12;

    // The numbers of kinds and the order of fields are the protocol; `read` takes the fields in the same order.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Message::Offer(offer) => {
                out.put_u8(1);
                out.put_u32(offer.item);
                out.put_u8(match offer.kind {
                    Kind::File => 0,
                    Kind::Folder => 1,
                    Kind::FolderTime => 2,
                    Kind::DatedFile => 3,
                    Kind::Discard => 4,
                    Kind::Stream => 5,
                });
                out.put_u64(offer.size);
                out.put_u32(offer.mode);
                out.put_i64(offer.modified_ns);
                out.put_u8(offer.name.len() as u8);
                offer.name.iter().for_each(|part| put_text(out, part));
            }
            Message::Accept { item, have, chunks } => {
                out.put_u8(2);
                out.put_u32(*item);
                out.put_u64(*have);
                out.put_u16(chunks.len() as u16);
                chunks.iter().for_each(|digest| out.put_slice(digest));
            }
            Message::Begin { item, flow, from, again } => {
                out.put_u8(4);
                out.put_u32(*item);
                out.put_u32(*flow);
                out.put_u64(*from);
                out.put_u16(again.len() as u16);
                again.iter().for_each(|chunk| out.put_u16(*chunk));
            }
            Message::Whole { item, digest } => {
                out.put_u8(5);
                out.put_u32(*item);
                out.put_slice(digest);
            }
            Message::Stored { item } => {
                out.put_u8(7);
                out.put_u32(*item);
            }
            Message::Refuse { item, reason } | Message::Abort { item, reason } | Message::Failed { item, reason } => {
                out.put_u8(match self {
                    Message::Refuse { .. } => 3,
                    Message::Abort { .. } => 6,
                    _ => 8,
                });
                out.put_u32(*item);
                put_reason(out, reason);
            }
            Message::End => out.put_u8(9),
            Message::Exists { item } => {
                out.put_u8(10);
                out.put_u32(*item);
            }
            Message::Checked { item, bytes } => {
                out.put_u8(11);
                out.put_u32(*item);
                out.put_u64(*bytes);
            }
            Message::Ended { item, size, digest } => {
                out.put_u8(12);
                out.put_u32(*item);
                out.put_u64(*size);
                out.put_slice(digest);
            }
        }
    }

    fn read(kind: u8, fields: &mut Fields<'_>) -> Option<Message> {
        if kind == 9 {
            return Some(Message::End);
        }
        let item = fields.u32()?;
        Some(match kind {
            1 => {
                let kind = match fields.take::<1>()? {
                    [0] => Kind::File,
                    [1] => Kind::Folder,
                    [2] => Kind::FolderTime,
                    [3] => Kind::DatedFile,
                    [4] => Kind::Discard,
                    [5] => Kind::Stream,
                    _ => return None,
                };
                let (size, mode) = (fields.u64()?, fields.u32()?);
                let modified_ns = i64::from_be_bytes(fields.take()?);
                let [parts] = fields.take()?;
                let name = (0..parts).map(|_| fields.text()).collect::<Option<_>>()?;
                Message::Offer(Offer { item, kind, size, mode, modified_ns, name })
            }
            2 => {
                let (have, count) = (fields.u64()?, usize::from(fields.u16()?));
                let chunks = (0..count.min(MAX_CHUNKS)).map(|_| fields.take()).collect::<Option<_>>()?;
                Message::Accept { item, have, chunks }
            }
            3 => Message::Refuse { item, reason: fields.reason()? },
            4 => {
                let (flow, from, count) = (fields.u32()?, fields.u64()?, usize::from(fields.u16()?));
                let again = (0..count.min(MAX_CHUNKS)).map(|_| fields.u16()).collect::<Option<_>>()?;
                Message::Begin { item, flow, from, again }
            }
            5 => Message::Whole { item, digest: fields.take()? },
            6 => Message::Abort { item, reason: fields.reason()? },
            7 => Message::Stored { item },
            10 => Message::Exists { item },
            11 => Message::Checked { item, bytes: fields.u64()? },
            12 => Message::Ended { item, size: fields.u64()?, digest: fields.take()? },
            _ => Message::Failed { item, reason: fields.reason()? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Inbox, MessageError};
    use sparelane_core::{Domain, Stream};

    fn all() -> Vec<Message> {
        let (item, digest, reason) = (0x0102_0304, [9; 32], PeerText::from("naïve"));
        let name = vec!["a".to_owned(), "b ü".to_owned()];
        vec![
            Message::Offer(Offer { item, kind: Kind::File, size: 1 << 40, mode: 0o644, modified_ns: -5, name }),
            Message::Offer(Offer { item, kind: Kind::Discard, size: 5, mode: 0, modified_ns: 0, name: vec![] }),
            Message::Accept { item, have: 77, chunks: vec![digest, [8; 32]] },
            Message::Refuse { item, reason: reason.clone() },
            Message::Begin { item, flow: 8, from: 99, again: vec![0, 256] },
            Message::Whole { item, digest },
            Message::Abort { item, reason: reason.clone() },
            Message::Stored { item },
            Message::Failed { item, reason },
            Message::End,
            Message::Exists { item },
            Message::Checked { item, bytes: 1 << 33 },
            Message::Offer(Offer { item, kind: Kind::Stream, size: 0, mode: 0o600, modified_ns: 7, name: vec![] }),
            Message::Ended { item, size: 1 << 34, digest },
        ]
    }

    #[test]
    fn messages_survive_encoding_and_fragmentation() {
        for step in [1, 3, 1000] {
            let (mut inbox, mut out) = (Inbox::default(), vec![]);
            let bytes: Vec<u8> = all().iter().flat_map(|message| message.encode().to_vec()).collect();
            for piece in bytes.chunks(step) {
                inbox.push(piece);
                while let Some(message) = inbox.pop::<Message>().expect("messages") {
                    out.push(message);
                }
            }
            assert_eq!(out, all());
        }
    }

    #[test]
    fn messages_are_encoded_as_documented() {
        let hex = |message: &Message| message.encode().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(&Message::Begin { item: 1, flow: 2, from: 3, again: vec![4] }),
            "00000015040000000100000002".to_owned() + "0000000000000003" + "00010004"
        );
        assert_eq!(
            hex(&Message::Accept { item: 1, have: 2, chunks: vec![[0xab; 32]] }),
            "0000002f0200000001".to_owned() + "0000000000000002" + "0001" + &"ab".repeat(32)
        );
        let name = vec!["a".to_owned()];
        assert_eq!(
            hex(&Message::Offer(Offer { item: 1, kind: Kind::FolderTime, size: 0, mode: 0o755, modified_ns: 5, name })),
            "0000001e010000000102".to_owned() + "0000000000000000" + "000001ed" + "0000000000000005" + "01000161"
        );
        assert_eq!(hex(&Message::Exists { item: 1 }), "000000050a00000001");
        assert_eq!(hex(&Message::Checked { item: 1, bytes: 2 }), "0000000d0b000000010000000000000002");
        assert_eq!(
            hex(&Message::Ended { item: 1, size: 2, digest: [0xcd; 32] }),
            "0000002d0c00000001".to_owned() + "0000000000000002" + &"cd".repeat(32)
        );
        assert_eq!(
            hex(&Message::Refuse { item: 1, reason: "no".into() }),
            "000000090300000001".to_owned() + "00026e6f"
        );
        assert_eq!(hex(&Message::End), "0000000109");
    }

    #[test]
    fn mutated_messages_never_panic_or_grow_the_inbox() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut taken = 0;
        for _ in 0..20_000 {
            let mut bytes = all()[rng.below(all().len() as u64) as usize].encode().to_vec();
            for _ in 0..rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            let mut inbox = Inbox::default();
            inbox.push(&bytes);
            taken += usize::from(matches!(inbox.pop::<Message>(), Ok(Some(_))));
        }
        assert!(taken > 5_000, "{taken}");
        let mut inbox = Inbox::default();
        inbox.push(&[0xff; 4]);
        assert_eq!(inbox.pop::<Message>(), Err(MessageError::Size(u32::MAX as usize)));
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let message = Message::Abort { item: 1, reason: "ü".repeat(1000).into() };
        let mut inbox = Inbox::default();
        inbox.push(&message.encode());
        assert_eq!(inbox.pop(), Ok(Some(Message::Abort { item: 1, reason: "ü".repeat(250).into() })));
    }
}
