//! The messages of a tunnel on the control stream, in the format of [`control`](crate::control).
//!
//! The dialing site numbers the connections from 0.
//!
//! | kind | from | fields |
//! |---|---|---|
//! | 32, open | dialing site | connection (4), flow of its bytes (4), port (2) and host of the target |
//! | 33, opened | serving site | connection, flow of its bytes (4) |
//! | 34, refused | serving site | connection, reason |
//! | 35, reset | either | connection, reason; ends both directions at once |

use super::Target;
use crate::control::{Coded, Fields, put_reason, put_text};
use crate::peer_text::PeerText;
use bytes::BufMut;
use std::ops::RangeInclusive;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An application has connected to a port of the dialing site.
    Open {
        /// The connection.
        connection: u32,
        /// The flow of the bytes to the target.
        flow: u32,
        /// The target.
        target: Target,
    },
    /// The target has accepted the connection.
    Opened {
        /// The connection.
        connection: u32,
        /// The flow of the bytes from the target.
        flow: u32,
    },
    /// The target could not be connected to.
    Refused {
        /// The connection.
        connection: u32,
        /// The reason.
        reason: PeerText,
    },
    /// The connection is broken.
    Reset {
        /// The connection.
        connection: u32,
        /// The reason.
        reason: PeerText,
    },
}

impl Coded for Message {
    const KINDS: RangeInclusive<u8> = 32..=35;

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Message::Open { connection, flow, target } => {
                out.put_u8(32);
                out.put_u32(*connection);
                out.put_u32(*flow);
                out.put_u16(target.port);
                put_text(out, &target.host);
            }
            Message::Opened { connection, flow } => {
                out.put_u8(33);
                out.put_u32(*connection);
                out.put_u32(*flow);
            }
            Message::Refused { connection, reason } | Message::Reset { connection, reason } => {
                out.put_u8(if matches!(self, Message::Refused { .. }) { 34 } else { 35 });
                out.put_u32(*connection);
                put_reason(out, reason);
            }
        }
    }

    fn read(kind: u8, fields: &mut Fields<'_>) -> Option<Message> {
        let connection = fields.u32()?;
        Some(match kind {
            32 => {
                let (flow, port) = (fields.u32()?, fields.u16()?);
                Message::Open { connection, flow, target: Target::new(&fields.text()?, port)? }
            }
            33 => Message::Opened { connection, flow: fields.u32()? },
            34 => Message::Refused { connection, reason: fields.reason()? },
            _ => Message::Reset { connection, reason: fields.reason()? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Inbox, MessageError};

    #[test]
    fn messages_survive_encoding_and_decoding() {
        let target = "Example.org:22".parse::<Target>().expect("a target");
        let all = [
            Message::Open { connection: 1, flow: 2, target },
            Message::Opened { connection: 1, flow: 7 },
            Message::Refused { connection: 1, reason: "no".into() },
            Message::Reset { connection: 1, reason: "näher".into() },
        ];
        let mut inbox = Inbox::default();
        for message in &all {
            inbox.push(&message.encode());
            assert_eq!(inbox.pop().as_ref(), Ok(&Some(message.clone())));
        }
        let hex = all[0].encode().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex, "0000001820000000010000000200160".to_owned() + "00b6578616d706c652e6f7267");
    }

    #[test]
    fn a_message_with_an_invalid_target_is_invalid() {
        for host in ["", "a b", "a\nb", "a/b", "ü", &"a".repeat(256)] {
            let target = Target { host: host.to_owned(), port: 1 };
            let mut inbox = Inbox::default();
            inbox.push(&Message::Open { connection: 1, flow: 2, target }.encode());
            assert_eq!(inbox.pop::<Message>(), Err(MessageError::Form(32)), "{host}");
        }
        let mut inbox = Inbox::default();
        inbox.push(&[0, 0, 0, 1, 9]);
        assert_eq!(
            inbox.pop::<Message>(),
            Err(MessageError::Kind(9)),
            "the end of a transfer is no message of a tunnel"
        );
    }
}
