//! Text from a peer that is safe to print.
//!
//! A peer chooses the reasons with which it refuses, aborts or closes. They reach terminals, logs and programs that read
//! JSON, where control characters forge lines or give commands to the terminal, and bidirectional ones reorder what a
//! person reads (Unicode Technical Report 36). [`PeerText`] escapes both. Messages are decoded into it, so that no
//! other code sees the original.

use std::fmt;

/// The maximum number of characters of a text; the rest is cut off.
const MAX_CHARS: usize = 500;

/// Text from a peer. Control characters and invisible ones are escaped, such as `\u{1b}`.
///
/// A backslash stays as it is, so escaping twice changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerText(String);

impl PeerText {
    /// Decodes UTF-8 and replaces invalid bytes.
    pub fn of_bytes(bytes: &[u8]) -> PeerText {
        PeerText::from(&*String::from_utf8_lossy(bytes))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for PeerText {
    fn from(text: &str) -> PeerText {
        let mut safe = String::with_capacity(text.len().min(MAX_CHARS));
        for c in text.chars().take(MAX_CHARS) {
            if c.is_control() || is_invisible(c) {
                safe.extend(c.escape_default());
            } else {
                safe.push(c);
            }
        }
        PeerText(safe)
    }
}

impl From<String> for PeerText {
    fn from(text: String) -> PeerText {
        PeerText::from(&*text)
    }
}

impl From<PeerText> for String {
    fn from(text: PeerText) -> String {
        text.0
    }
}

impl fmt::Display for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true for characters that are invisible, end a line or change the direction of text.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    #[test]
    fn control_and_bidirectional_characters_are_escaped() {
        let cases = [
            ("no space left", "no space left"),
            ("naïve 文件 🙂", "naïve 文件 🙂"),
            ("a\r\nsparelane: info: b", "a\\r\\nsparelane: info: b"),
            ("\u{7}\u{1b}]0;x\u{9b}", "\\u{7}\\u{1b}]0;x\\u{9b}"),
            ("txt.\u{202e}exe\u{2066}", "txt.\\u{202e}exe\\u{2066}"),
            ("\u{2028}\0\u{7f}", "\\u{2028}\\u{0}\\u{7f}"),
        ];
        for (text, safe) in cases {
            assert_eq!(PeerText::from(text).as_str(), safe);
            assert_eq!(PeerText::from(safe).as_str(), safe, "escaping twice changes nothing");
        }
        assert_eq!(PeerText::of_bytes(b"a\xff\x07").as_str(), "a\\u{fffd}\\u{7}");
        assert_eq!(PeerText::from(&*"ü".repeat(1000)).as_str(), "ü".repeat(MAX_CHARS));
    }

    #[test]
    fn no_random_text_keeps_such_a_character() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        for _ in 0..2_000 {
            let text: String = (0..40).filter_map(|_| char::from_u32(rng.below(0x3000) as u32)).collect();
            let safe = PeerText::from(&*text);
            assert!(!safe.as_str().chars().any(|c| c.is_control() || is_invisible(c)), "{text:?}");
        }
    }
}
