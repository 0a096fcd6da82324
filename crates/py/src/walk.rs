//! A transfer in rounds of one round-trip time each, as in the worked examples of papers.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_cc::{Blueprint, Controller, Registry, Value, Values};
use sparelane_transport::TransportConfig;
use sparelane_transport::rounds::{self, Round, Walk};

const INITIAL_WINDOW: &str = "initial_window";

/// Returns the segments that a transfer under a controller sends in each round; segments count from 0.
///
/// `initial_window` is in segments. It is set on the controller or, if that wraps another one, on the inner controller.
/// `capacity` is the number of segments that the path carries per round, and `drops` are the segments whose first
/// transmission is lost. Raises `ValueError` if the controller does not exist.
#[pyfunction]
pub fn walk<'py>(
    py: Python<'py>,
    controller: &str,
    initial_window: u64,
    segments: u32,
    capacity: usize,
    drops: Vec<u64>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let config = TransportConfig::default();
    let mut window = Values::default();
    window.set(INITIAL_WINDOW, Value::Whole(initial_window));
    let has_window = |found: &Controller| found.params.iter().any(|param| param.name == INITIAL_WINDOW);
    let registry = Registry::built_in();
    let (own, inner) = match registry.find(controller) {
        Some(found) if has_window(found) => (window, Values::default()),
        _ => (Values::default(), window),
    };
    let cc = registry
        .build(controller, &own, &Blueprint::of_any(config.mss_bytes, &inner))
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let rounds = rounds::walk(&Walk { segments, capacity, drops }, config, cc);
    rounds.into_iter().map(|round| to_dict(py, round)).collect()
}

fn to_dict(py: Python<'_>, round: Round) -> PyResult<Bound<'_, PyDict>> {
    let Round { normal, low, dropped } = round;
    let out = PyDict::new(py);
    out.set_item("normal", normal)?;
    out.set_item("low", low)?;
    out.set_item("dropped", dropped)?;
    Ok(out)
}
