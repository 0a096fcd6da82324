//! Decoding of text files, and recognition of other tools' formats.

use crate::errors::scenario_error;
use pyo3::prelude::*;
use sparelane_scenario::ScenarioError;
use sparelane_scenario::formats::{self, Purpose};

/// Decodes the content of a file in UTF-8, without its byte-order mark.
///
/// `name` is the name of the file in error messages. Raises `ScenarioError` if the content is not UTF-8; the message
/// names the format if it is known.
#[pyfunction]
pub fn decoded(py: Python<'_>, content: Vec<u8>, name: &str) -> PyResult<String> {
    formats::decoded(content)
        .map_err(|error| scenario_error(py, &ScenarioError::in_file(name, error.line, error.message)))
}

/// Returns the format of a text that is not a scenario, with advice to the user, or `None` if the format is unknown.
#[pyfunction]
pub fn recognized(text: &str) -> Option<String> {
    formats::recognized(text, Purpose::Scenario, "")
}
