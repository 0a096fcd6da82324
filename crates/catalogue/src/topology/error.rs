//! Errors in a network's description, as one sentence for its author.

use thiserror::Error;

/// The error for a network that cannot be built: its place, what was found, and what is allowed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{message}", place(.line))]
pub struct TopologyError {
    /// The line of the file, counted from 1; `None` if the network does not come from a file, or the error has no line.
    pub line: Option<usize>,
    /// Description of the mistake and of what is allowed.
    pub message: String,
}

impl TopologyError {
    /// Creates an error without a line.
    pub fn new(message: impl Into<String>) -> TopologyError {
        TopologyError { line: None, message: message.into() }
    }

    /// Creates an error on `line`, counted from 1.
    pub fn at(line: usize, message: impl Into<String>) -> TopologyError {
        TopologyError { line: Some(line), message: message.into() }
    }
}

/// Returns the beginning of an error message: `line 3: `, or nothing.
pub(crate) fn place(line: &Option<usize>) -> String {
    line.map(|line| format!("line {line}: ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_begins_with_its_line_if_it_has_one() {
        assert_eq!(TopologyError::at(3, "the rate is 0").to_string(), "line 3: the rate is 0");
        assert_eq!(TopologyError::new("no routers").to_string(), "no routers");
    }
}
