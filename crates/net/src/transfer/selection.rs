//! Patterns that select the files of a transfer.
//!
//! A pattern is compared with a name as the receiver sees it, such as `tree/sub/file`. Without a slash
//! it matches any part of the name, so that `*.log` or `build` match at every depth. With a slash it
//! matches the beginning of the name: `tree/sub` matches this folder and everything in it. `*` stands
//! for any characters of a part, `?` for one, `[a-z]` and `[!a-z]` for one of a set, and `**` as a part
//! for any number of parts.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Files that are sent: those that match a pattern to include, or all without such a pattern, except
/// those that match a pattern to exclude.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Patterns of files to send; all without one.
    pub include: Vec<Pattern>,
    /// Patterns of files and folders to leave out.
    pub exclude: Vec<Pattern>,
}

impl Selection {
    /// Returns true if a file or folder, and everything below, is left out.
    pub(super) fn excludes(&self, parts: &[String]) -> bool {
        self.exclude.iter().any(|pattern| pattern.matches(parts))
    }

    /// Returns true if a file that is not excluded is sent.
    pub(super) fn includes(&self, parts: &[String]) -> bool {
        self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(parts))
    }
}

/// A pattern of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
    has_slash: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Any number of parts.
    Deep,
    One(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Run,
    Any,
    Char(char),
    Set { ranges: Vec<(char, char)>, is_negated: bool },
}

/// A text that is no pattern.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub struct PatternError {
    text: String,
    reason: &'static str,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pattern {:?} {}; allowed: names such as *.log, build or tree/sub/**", self.text, self.reason)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let failed = |reason| PatternError { text: text.chars().take(100).collect(), reason };
        // `build/` is the folder `build`, which is also how shells complete its name.
        let inner = text.strip_suffix('/').unwrap_or(text);
        let parts = inner.split('/').map(|part| match part {
            "" => Err(failed("has an empty part")),
            "." | ".." => Err(failed("has the part . or .., which no name has")),
            "**" => Ok(Part::Deep),
            part => Ok(Part::One(tokens(part).ok_or_else(|| failed("has a set of characters without end"))?)),
        });
        Ok(Pattern { parts: parts.collect::<Result<_, _>>()?, has_slash: inner.contains('/') })
    }
}

/// Parses one part of a pattern; `None` if a set of characters has no end.
fn tokens(part: &str) -> Option<Vec<Token>> {
    let mut out = vec![];
    let mut rest = part.chars();
    while let Some(next) = rest.next() {
        out.push(match next {
            '*' => Token::Run,
            '?' => Token::Any,
            '[' => {
                // A bracket right after the beginning belongs to the set.
                let text = rest.as_str();
                let is_negated = text.starts_with('!');
                let inner = text.strip_prefix('!').unwrap_or(text);
                let first = inner.chars().next()?.len_utf8();
                let length = first + inner[first..].find(']')?;
                let mut set = inner[..length].chars().peekable();
                let mut ranges = vec![];
                while let Some(low) = set.next() {
                    let mut ahead = set.clone();
                    match (ahead.next(), ahead.next()) {
                        (Some('-'), Some(high)) => {
                            ranges.push((low, high));
                            set = ahead;
                        }
                        _ => ranges.push((low, low)),
                    }
                }
                rest = inner[length + 1..].chars();
                Token::Set { ranges, is_negated }
            }
            other => Token::Char(other),
        });
    }
    Some(out)
}

impl Pattern {
    /// Returns true if the pattern matches a name or a folder above it.
    fn matches(&self, name: &[String]) -> bool {
        if self.has_slash {
            matches_parts(&self.parts, name)
        } else {
            (0..name.len()).any(|at| matches_parts(&self.parts, &name[at..]))
        }
    }
}

/// Returns true if the pattern matches the first parts of a name.
fn matches_parts(pattern: &[Part], name: &[String]) -> bool {
    match pattern.split_first() {
        None => true,
        Some((Part::Deep, rest)) => (0..=name.len()).any(|skipped| matches_parts(rest, &name[skipped..])),
        Some((Part::One(tokens), rest)) => {
            name.split_first().is_some_and(|(part, below)| matches_part(tokens, part) && matches_parts(rest, below))
        }
    }
}

/// Compares one part. On a mismatch, the last `*` takes one more character, so the time is at most the
/// product of both lengths.
fn matches_part(tokens: &[Token], part: &str) -> bool {
    let text: Vec<char> = part.chars().collect();
    let (mut at, mut token) = (0, 0);
    // The position after the last `*`, and the number of characters that it stands for.
    let mut run: Option<(usize, usize)> = None;
    while at < text.len() {
        let fits = match tokens.get(token) {
            Some(Token::Run) => {
                run = Some((token + 1, at));
                token += 1;
                continue;
            }
            Some(Token::Any) => true,
            Some(Token::Char(c)) => *c == text[at],
            Some(Token::Set { ranges, is_negated }) => {
                ranges.iter().any(|&(low, high)| low <= text[at] && text[at] <= high) != *is_negated
            }
            None => false,
        };
        match (fits, run) {
            (true, _) => (at, token) = (at + 1, token + 1),
            (false, Some((after, from))) => {
                run = Some((after, from + 1));
                (at, token) = (from + 1, after);
            }
            (false, None) => return false,
        }
    }
    tokens[token..].iter().all(|token| *token == Token::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        let name: Vec<String> = name.split('/').map(str::to_owned).collect();
        pattern.parse::<Pattern>().expect(pattern).matches(&name)
    }

    #[test]
    fn a_pattern_without_a_slash_matches_any_part_and_one_with_a_slash_the_beginning() {
        for (pattern, name) in [
            ("*.log", "a.log"),
            ("*.log", "tree/sub/a.log"),
            ("build", "tree/build/x"),
            ("build/", "tree/build"),
            ("tree/build", "tree/build/x"),
            ("tree/*/x", "tree/build/x"),
            ("tree/**/x", "tree/x"),
            ("tree/**/x", "tree/a/b/x"),
            ("tree/**", "tree/a/b"),
            ("**/b", "tree/a/b"),
            ("?b*[0-9]", "abcd7"),
            ("[!a-c]x", "dx"),
            ("[]]", "]"),
            ("[a-]", "-"),
            ("*a*b", "xaxbxb"),
            ("ü?", "üö"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.log", "a.logs"),
            ("tree/*", "other/tree/x"),
            ("tree/*/x", "tree/a/b/x"),
            ("build", "tree/builds"),
            ("[!a-c]x", "ax"),
            ("a?", "a"),
            ("*a*b", "xbxa"),
            ("A", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        // Many runs need no exponential time.
        assert!(!matches(&"*a".repeat(60), &"a".repeat(59)));
    }

    #[test]
    fn texts_that_are_no_patterns_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "has an empty part"),
            ("a//b", "has an empty part"),
            ("/a", "has an empty part"),
            ("../a", "has the part . or .., which no name has"),
            ("[a", "has a set of characters without end"),
            ("[]", "has a set of characters without end"),
            ("[!", "has a set of characters without end"),
        ] {
            let error = text.parse::<Pattern>().expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
