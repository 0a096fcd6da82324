//! Errors in a workload's description, as one sentence for its author.

use crate::topology::place;
use thiserror::Error;

/// The error for an invalid workload: its place, what was found, and what is allowed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{message}", place(.line))]
pub struct WorkloadError {
    /// The line of the file, counted from 1; `None` if the workload does not come from a file.
    pub line: Option<usize>,
    /// Description of the mistake and of what is allowed.
    pub message: String,
}

impl WorkloadError {
    /// Creates an error without a line.
    pub fn new(message: impl Into<String>) -> WorkloadError {
        WorkloadError { line: None, message: message.into() }
    }

    /// Creates an error on `line`, counted from 1.
    pub fn at(line: usize, message: impl Into<String>) -> WorkloadError {
        WorkloadError { line: Some(line), message: message.into() }
    }
}
