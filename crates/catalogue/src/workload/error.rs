//! What is wrong with a workload's description, as one sentence for its author.

use crate::topology::place;
use thiserror::Error;

/// A workload that cannot be made: where the mistake is, what was found, and what is allowed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{message}", place(.line))]
pub struct WorkloadError {
    /// The line of the file, from 1; `None` where the workload does not come from a file.
    pub line: Option<usize>,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl WorkloadError {
    /// A mistake without a line.
    pub fn new(message: impl Into<String>) -> WorkloadError {
        WorkloadError { line: None, message: message.into() }
    }

    /// A mistake on `line`, counted from 1.
    pub fn at(line: usize, message: impl Into<String>) -> WorkloadError {
        WorkloadError { line: Some(line), message: message.into() }
    }
}
