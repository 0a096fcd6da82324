//! Files of text, and formats of other tools.

use crate::errors::scenario_error;
use pyo3::prelude::*;
use sparelane_scenario::ScenarioError;
use sparelane_scenario::formats::{self, Purpose};

/// The text of a file's content in UTF-8, without a mark of byte order; `name` is what messages call the file.
///
/// Raises `ScenarioError` for anything else, which names the format if it is known.
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
