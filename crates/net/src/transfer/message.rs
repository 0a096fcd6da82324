//! What the two sides of a transfer say to each other on the control stream, in messages of [`control`](crate::control). Items are
//! numbered by the sender.
//!
//! | kind | from | fields |
//! |---|---|---|
//! | 1, offer | sender | item (4), what it is (1: 0 a file, 1 a folder, 2 the time of a folder of which nothing comes any more), size (8), rights (4), modification time in ns (8), parts of its name (1) and each part |
//! | 2, accept | receiver | item, bytes that are here already (8), how many chunks these are (2), and the digest of each (32), see [`chunks`](super::chunks) |
//! | 3, refuse | receiver | item, reason |
//! | 4, begin | sender | item, the flow that brings it (4), the byte with which that begins (8); how many chunks before that byte come again behind the file's last byte (2), and the number of each (2) |
//! | 5, whole | sender | item, BLAKE3 of all of it |
//! | 6, abort | sender | item, reason |
//! | 7, stored | receiver | item |
//! | 8, failed | receiver | item, reason |
//! | 9, end | sender | nothing: no more items |
//! | 10, there | receiver | item: a file of this name and size is here; what is the digest of all of it? Answered with *whole* |
//! | 11, checked | both | item, bytes of what is there already that were hashed until now (8) |

use super::chunks::{Digest, MOST_CHUNKS};
use crate::control::{Coded, Fields, put_reason, put_text};
use bytes::BufMut;
use std::ops::RangeInclusive;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// The time of a folder, set when nothing in it changes any more.
    FolderTime,
}

/// What is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its number.
    pub item: u32,
    /// What it is.
    pub kind: Kind,
    /// Bytes of a file.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// When it was modified, nanoseconds since 1970.
    pub modified_ns: i64,
    /// The parts of its name, outermost first.
    pub name: Vec<String>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// This is to be sent.
    Offer(Offer),
    /// It is wanted.
    Accept {
        /// The item.
        item: u32,
        /// Bytes that are here already.
        have: u64,
        /// The digest of each chunk of these.
        chunks: Vec<Digest>,
    },
    /// It is not wanted.
    Refuse {
        /// The item.
        item: u32,
        /// Why.
        reason: String,
    },
    /// It comes.
    Begin {
        /// The item.
        item: u32,
        /// The flow that brings it.
        flow: u32,
        /// With which byte that begins.
        from: u64,
        /// Chunks before that byte which come again behind the file's last byte, in order.
        again: Vec<u16>,
    },
    /// All of it is sent.
    Whole {
        /// The item.
        item: u32,
        /// The digest of all.
        digest: Digest,
    },
    /// It does not come after all.
    Abort {
        /// The item.
        item: u32,
        /// Why.
        reason: String,
    },
    /// It is there under its name.
    Stored {
        /// The item.
        item: u32,
    },
    /// It could not be stored.
    Failed {
        /// The item.
        item: u32,
        /// Why.
        reason: String,
    },
    /// Nothing more is offered.
    End,
    /// A file of this name and size is here: is it the same?
    There {
        /// The item.
        item: u32,
    },
    /// What is there already is being hashed, which takes its time.
    Checked {
        /// The item.
        item: u32,
        /// Bytes that were hashed.
        bytes: u64,
    },
}

impl Coded for Message {
    const KINDS: RangeInclusive<u8> = 1..=11;

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Message::Offer(offer) => {
                out.put_u8(1);
                out.put_u32(offer.item);
                out.put_u8(match offer.kind {
                    Kind::File => 0,
                    Kind::Folder => 1,
                    Kind::FolderTime => 2,
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
            Message::There { item } => {
                out.put_u8(10);
                out.put_u32(*item);
            }
            Message::Checked { item, bytes } => {
                out.put_u8(11);
                out.put_u32(*item);
                out.put_u64(*bytes);
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
                let chunks = (0..count.min(MOST_CHUNKS)).map(|_| fields.take()).collect::<Option<_>>()?;
                Message::Accept { item, have, chunks }
            }
            3 => Message::Refuse { item, reason: fields.text()? },
            4 => {
                let (flow, from, count) = (fields.u32()?, fields.u64()?, usize::from(fields.u16()?));
                let again = (0..count.min(MOST_CHUNKS)).map(|_| fields.u16()).collect::<Option<_>>()?;
                Message::Begin { item, flow, from, again }
            }
            5 => Message::Whole { item, digest: fields.take()? },
            6 => Message::Abort { item, reason: fields.text()? },
            7 => Message::Stored { item },
            10 => Message::There { item },
            11 => Message::Checked { item, bytes: fields.u64()? },
            _ => Message::Failed { item, reason: fields.text()? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Inbox, MessageError};
    use sparelane_core::{Domain, Stream};

    fn all() -> Vec<Message> {
        let (item, digest, reason) = (0x0102_0304, [9; 32], "naïve".to_owned());
        let name = vec!["a".to_owned(), "b ü".to_owned()];
        vec![
            Message::Offer(Offer { item, kind: Kind::File, size: 1 << 40, mode: 0o644, modified_ns: -5, name }),
            Message::Accept { item, have: 77, chunks: vec![digest, [8; 32]] },
            Message::Refuse { item, reason: reason.clone() },
            Message::Begin { item, flow: 8, from: 99, again: vec![0, 256] },
            Message::Whole { item, digest },
            Message::Abort { item, reason: reason.clone() },
            Message::Stored { item },
            Message::Failed { item, reason },
            Message::End,
            Message::There { item },
            Message::Checked { item, bytes: 1 << 33 },
        ]
    }

    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_cut() {
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
    fn messages_have_the_bytes_that_their_description_says() {
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
        assert_eq!(hex(&Message::There { item: 1 }), "000000050a00000001");
        assert_eq!(hex(&Message::Checked { item: 1, bytes: 2 }), "0000000d0b000000010000000000000002");
        assert_eq!(
            hex(&Message::Refuse { item: 1, reason: "no".to_owned() }),
            "000000090300000001".to_owned() + "00026e6f"
        );
        assert_eq!(hex(&Message::End), "0000000109");
    }

    #[test]
    fn no_bytes_make_the_inbox_panic_or_grow() {
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
        let message = Message::Abort { item: 1, reason: "ü".repeat(1000) };
        let mut inbox = Inbox::default();
        inbox.push(&message.encode());
        assert_eq!(inbox.pop(), Ok(Some(Message::Abort { item: 1, reason: "ü".repeat(250) })));
    }
}
