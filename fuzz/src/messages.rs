//! Fuzzes the decoders of everything that a peer says after its key is checked: frames, the messages of transfers and
//! tunnels, names of files, reasons and targets.

use bytes::Bytes;
use sparelane_net::control::{Coded, Inbox};
use sparelane_net::frame::Frame;
use sparelane_net::peer_text::PeerText;
use sparelane_net::transfer::message::Message as TransferMessage;
use sparelane_net::transfer::name::{MAX_NAME_BYTES, MAX_PART_BYTES, MAX_PARTS, Name};
use sparelane_net::tunnel::message::Message as TunnelMessage;
use sparelane_net::tunnel::{MAX_HOST_BYTES, Target};
use std::fmt::Debug;
use std::path::{Component, Path};

/// Longer inputs are truncated, because they find nothing new.
const MAX_BYTES: usize = 40_000;

/// Decodes the input in a form that its first byte selects. Returns the number of messages or frames.
///
/// # Panics
/// If a decoder panics, if a decoded value changes when it is encoded and decoded again, or if a name, reason or target
/// is dangerous.
pub fn check(bytes: &[u8]) -> usize {
    let Some((&kind, rest)) = bytes.split_first() else { return 0 };
    let rest = &rest[..rest.len().min(MAX_BYTES)];
    match kind % 4 {
        0 => frame(rest),
        1 => messages(rest, |message| match message {
            TransferMessage::Offer(offer) => name(offer.name.clone()),
            TransferMessage::Refuse { reason, .. }
            | TransferMessage::Abort { reason, .. }
            | TransferMessage::Failed { reason, .. } => harmless(reason.as_str()),
            _ => {}
        }),
        2 => messages(rest, |message| match message {
            TunnelMessage::Open { target, .. } => {
                assert!(target.port > 0 && !target.host.is_empty() && target.host.len() <= MAX_HOST_BYTES);
                assert_eq!(target.to_string().parse::<Target>().as_ref().ok(), Some(target));
            }
            TunnelMessage::Refused { reason, .. } | TunnelMessage::Reset { reason, .. } => harmless(reason.as_str()),
            TunnelMessage::Opened { .. } => {}
        }),
        _ => text(rest),
    }
}

fn frame(bytes: &[u8]) -> usize {
    let Ok(decoded) = Frame::decode(&Bytes::copy_from_slice(bytes)) else { return 0 };
    let again = Frame::decode(&decoded.encode().into());
    assert_eq!(again.as_ref(), Ok(&decoded));
    1
}

/// Reads all messages of a stream that arrives in pieces of changing size.
fn messages<M: Coded + PartialEq + Debug>(stream: &[u8], judge: impl Fn(&M)) -> usize {
    let (mut inbox, mut rest, mut count) = (Inbox::default(), stream, 0);
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.len().min(1 + usize::from(rest[0])));
        inbox.push(piece);
        rest = later;
        loop {
            match inbox.pop::<M>() {
                Ok(Some(message)) => {
                    count += 1;
                    judge(&message);
                    // Long reasons are cut when they are encoded, but only once.
                    let cut = decoded_again(&message);
                    assert_eq!(decoded_again(&cut), cut);
                }
                Ok(None) => break,
                // The rest of the stream cannot be read.
                Err(error) => {
                    harmless(&error.to_string());
                    return count;
                }
            }
        }
    }
    count
}

fn decoded_again<M: Coded + Debug>(message: &M) -> M {
    let mut inbox = Inbox::default();
    inbox.push(&message.encode());
    inbox.pop().expect("an own message").expect("a complete message")
}

/// Checks that an accepted name stays inside of its folder, and that the error of another one is harmless.
fn name(parts: Vec<String>) {
    match Name::new(parts) {
        Ok(name) => {
            assert!((1..=MAX_PARTS).contains(&name.parts().len()) && name.to_string().len() <= MAX_NAME_BYTES);
            for part in name.parts() {
                let mut components = Path::new(part).components();
                let (first, second) = (components.next(), components.next());
                assert!(matches!(first, Some(Component::Normal(same)) if same == part.as_str()), "{part:?}");
                assert!(second.is_none() && part.len() <= MAX_PART_BYTES, "{part:?}");
                harmless(part);
            }
            harmless(&name.to_string());
            assert!(Name::new(vec![name.partial()]).is_err(), "{name}");
        }
        Err(error) => harmless(&error.to_string()),
    }
}

/// Checks a text as a reason, as the parts of a name, and as a target.
fn text(bytes: &[u8]) -> usize {
    let reason = PeerText::of_bytes(bytes);
    harmless(reason.as_str());
    let Ok(text) = std::str::from_utf8(bytes) else { return 1 };
    // Escaping again changes nothing, except that it cuts the text, which the escapes have made longer.
    assert!(reason.as_str().starts_with(PeerText::from(reason.as_str()).as_str()));
    name(text.split('/').map(str::to_owned).collect());
    if let Ok(target) = text.parse::<Target>() {
        assert_eq!(target.to_string().parse::<Target>().as_ref(), Ok(&target));
    }
    1
}

/// Checks that a text can be printed.
fn harmless(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(!text.contains(['\u{202e}', '\u{2066}', '\u{2028}', '\u{200b}', '\u{feff}']), "{text:?}");
}
