//! Names of transferred files. They come from another host. None may lead out of the folder, resemble another name, or
//! exceed the limits of file systems.

use crate::peer_text::is_invisible;
use thiserror::Error;

/// The maximum number of parts.
pub const MAX_PARTS: usize = 64;

/// The maximum length of a part, bytes.
pub const MAX_PART_BYTES: usize = 230;

/// The maximum length of a name, bytes.
pub const MAX_NAME_BYTES: usize = 4000;

/// The prefix and suffix of the name of an incomplete file.
const PARTIAL: (&str, &str) = (".", ".sparelane-part");

/// A name that is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the name {name:?} is refused: {reason}")]
pub struct NameError {
    /// The name, or its beginning.
    pub name: String,
    /// The reason.
    pub reason: &'static str,
}

/// A relative name that stays inside its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Vec<String>);

impl Name {
    /// Creates a name from its parts, outermost first.
    ///
    /// # Errors
    /// It has no part or too many, or a part is not allowed.
    pub fn new(parts: Vec<String>) -> Result<Name, NameError> {
        let bytes: usize = parts.iter().map(|part| part.len() + 1).sum();
        let reason = if parts.is_empty() {
            Some("it has no part")
        } else if parts.len() > MAX_PARTS {
            Some("it has more than 64 parts")
        } else if bytes > MAX_NAME_BYTES {
            Some("it is longer than 4000 bytes")
        } else {
            parts.iter().find_map(|part| fault(part))
        };
        match reason {
            None => Ok(Name(parts)),
            Some(reason) => Err(NameError { name: parts.join("/").chars().take(100).collect(), reason }),
        }
    }

    /// The size in bytes, with a separator after each part.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|part| part.len() + 1).sum()
    }

    /// The parts, outermost first.
    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// The folders of the name, and its last part.
    pub fn split(&self) -> (&[String], &str) {
        match self.0.split_last() {
            Some((last, folders)) => (folders, last),
            None => (&[], ""),
        }
    }

    /// Returns the name of the file whose incomplete file is `partial` in the folder `parts`; `None` if
    /// that is no incomplete file.
    pub(super) fn of_partial(parts: &[String], partial: &str) -> Option<Name> {
        let last = partial.strip_prefix(PARTIAL.0)?.strip_suffix(PARTIAL.1)?;
        Name::new(parts.iter().cloned().chain([last.to_owned()]).collect()).ok()
    }

    /// The last part of the incomplete file.
    pub fn partial(&self) -> String {
        format!("{}{}{}", PARTIAL.0, self.split().1, PARTIAL.1)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

/// Returns the reason for which a part is not allowed.
fn fault(part: &str) -> Option<&'static str> {
    if part.is_empty() {
        return Some("a part is empty");
    }
    if part.len() > MAX_PART_BYTES {
        return Some("a part is longer than 230 bytes");
    }
    if part.chars().all(|c| is_dot(c) || c == ' ') {
        return Some("a part has only dots and spaces");
    }
    if part.chars().any(is_separator) {
        return Some("a part has a separator, or a character that looks like one");
    }
    if part.chars().any(char::is_control) {
        return Some("a part has a control character");
    }
    if part.chars().any(is_invisible) {
        return Some("a part has an invisible character, or one that changes the direction of text");
    }
    if part.ends_with([' ', '.']) || part.starts_with(' ') {
        return Some("a part begins with a space, or ends with a space or a dot");
    }
    if is_device(part) {
        return Some("a part is the name of a device");
    }
    if part.starts_with(PARTIAL.0) && part.to_ascii_lowercase().ends_with(PARTIAL.1) {
        return Some("a part is reserved for incomplete files");
    }
    None
}

fn is_dot(c: char) -> bool {
    matches!(c, '.' | '\u{2024}' | '\u{2025}' | '\u{2026}' | '\u{fe52}' | '\u{ff0e}' | '\u{ff61}' | '\u{3002}')
}

/// Separators of any system and characters that resemble them. A colon marks a drive or a stream.
fn is_separator(c: char) -> bool {
    const LIKE_SLASHES: [char; 11] = [
        '/', '\\', ':', '\u{2044}', '\u{2215}', '\u{2216}', '\u{29f5}', '\u{29f8}', '\u{fe68}', '\u{ff0f}', '\u{ff3c}',
    ];
    LIKE_SLASHES.contains(&c) || c == '\u{ff1a}'
}

/// Device names of Windows, with any extension.
fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_ascii_uppercase();
    let numbered = |stem: &str| {
        let digit = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
        digit.is_some_and(|digit| {
            matches!(digit, "¹" | "²" | "³") || (digit.len() == 1 && digit.as_bytes()[0].is_ascii_digit())
        })
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$" | "CLOCK$") || numbered(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> Vec<String> {
        name.split('|').map(str::to_owned).collect()
    }

    #[test]
    fn ordinary_names_of_all_scripts_are_allowed() {
        for name in [
            "file",
            "a|b|c.txt",
            ".hidden",
            "..hidden",
            "two  spaces",
            "naïve.txt",
            "文件",
            "файл",
            "δ.tar.gz",
            "a-b_c~1",
            "con1",
            "common",
            "nulls",
            "🙂",
            "x.sparelane-part",
            "-rf",
            "$HOME",
            "`id`",
            "%2e%2e%2f",
            "~",
            "*",
        ] {
            assert!(Name::new(parts(name)).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_that_escape_or_resemble_others_are_refused() {
        let mut hostile: Vec<Vec<String>> = [
            "",
            "a|",
            "|a",
            "a||b",
            ".",
            "..",
            "...",
            "a|..|b",
            "..|..|etc|passwd",
            "/etc/passwd",
            "a/b",
            "../a",
            "a\\b",
            "..\\a",
            "C:",
            "C:\\a",
            "a:stream",
            "\\\\host\\share",
            "a\0b",
            "a\nb",
            "a\tb",
            "\u{7f}",
            "\u{85}",
            "\u{1b}[2J",
            " a",
            "a ",
            "a.",
            ". .",
            "\u{ff0e}\u{ff0e}",
            "\u{2025}",
            "\u{2024}\u{2024}",
            "a\u{2215}b",
            "a\u{ff0f}b",
            "\u{ff0f}etc",
            "a\u{2044}b",
            "a\u{ff3c}b",
            "a\u{29f5}b",
            "txt.\u{202e}exe",
            "a\u{200b}",
            "\u{feff}a",
            "a\u{2066}b",
            "a\u{ad}b",
            "a\u{e0041}",
            "a\u{2028}b",
            "\u{3164}",
            "CON",
            "con",
            "nul.txt",
            "Aux",
            "COM1",
            "lpt9.log",
            "com¹",
            "CLOCK$",
            ".x.sparelane-part",
            ".X.SPARELANE-PART",
            "a\u{fffd}b",
        ]
        .map(parts)
        .into();
        hostile.push(vec![]);
        hostile.push(vec!["a".to_owned(); MAX_PARTS + 1]);
        hostile.push(vec!["a".repeat(MAX_PART_BYTES + 1)]);
        hostile.push(vec!["ü".repeat(200); 11]);
        assert!(hostile.len() >= 40, "{}", hostile.len());
        for name in hostile {
            assert!(Name::new(name.clone()).is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_incomplete_file_has_a_reserved_name() {
        let name = Name::new(parts("a|b")).expect("a name");
        assert_eq!((name.partial(), name.to_string()), (".b.sparelane-part".to_owned(), "a/b".to_owned()));
        assert!(Name::new(vec![name.partial()]).is_err());
        let longest = Name::new(vec!["a".repeat(MAX_PART_BYTES)]).expect("a name");
        assert!(longest.partial().len() <= 255, "file systems take 255 bytes");
    }
}
