//! Scenarios as text: tables, keys and quantities; decoding of text files; recognition of other tools' formats.

use crate::errors::scenario_error;
use crate::json::to_python;
use pyo3::prelude::*;
use sparelane_scenario::formats::{self, Purpose};
use sparelane_scenario::{ScenarioError, capture, hosts_needed, open_capture, overrides, units};
use std::path::PathBuf;

/// Returns the tables of a scenario or sweep as written, with overrides of the form `key=value`, as a dictionary. Keys
/// and values are not checked.
///
/// Raises `ScenarioError` if the text is not valid TOML or an override is not valid.
#[pyfunction]
#[pyo3(signature = (text, source_name, overrides=None))]
pub fn tables<'py>(
    py: Python<'py>,
    text: &str,
    source_name: &str,
    overrides: Option<Vec<String>>,
) -> PyResult<Bound<'py, PyAny>> {
    let tables = sparelane_scenario::tables(text, source_name, &overrides.unwrap_or_default());
    to_python(py, &tables.map_err(|error| scenario_error(py, &error))?)
}

/// Returns the parts of a dotted key, such as `queue.limit`; `None` if the text is not a key.
#[pyfunction]
pub fn key_path(key: &str) -> Option<Vec<String>> {
    overrides::split(key)
}

/// Parses a quantity of a scenario in the unit of results: `"10Mbps"` is 1e7 and `"bit/s"`. `None` for other text.
#[pyfunction]
pub fn quantity(text: &str) -> Option<(f64, &'static str)> {
    units::quantity(text)
}

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
    formats::recognized(text, Purpose::Scenario, None)
}

/// Returns what a text is, for a file whose purpose is not known: its purpose (`scenario`, `topology`, `flows`,
/// `sizes` or `trace`), the name of its format, and the number of hosts that a list of flows needs if its hosts have numbers by
/// position. `None` if the format is unknown.
#[pyfunction]
pub fn identified(text: &str, extension: &str) -> Option<(&'static str, &'static str, Option<u64>)> {
    let (purpose, format) = formats::identify(text, extension)?;
    let hosts = formats::detect(text, purpose, extension).and_then(|format| hosts_needed(text, format));
    let purpose = match purpose {
        Purpose::Scenario => "scenario",
        Purpose::Topology => "topology",
        Purpose::Flows => "flows",
        Purpose::Sizes => "sizes",
        Purpose::Trace => "trace",
    };
    Some((purpose, format, hosts))
}

/// Returns the number of hosts that the flows of a packet capture need, or `None` if the file is not a capture.
///
/// Raises `ScenarioError` if the capture is damaged.
#[pyfunction]
pub fn capture_hosts(py: Python<'_>, path: PathBuf) -> PyResult<Option<usize>> {
    let Some(content) = open_capture(&path) else { return Ok(None) };
    let hosts = py.detach(|| capture::hosts_needed(content));
    let name = path.display().to_string();
    hosts.map(Some).map_err(|error| scenario_error(py, &ScenarioError::in_file(name, None, error.message)))
}
