//! What can go wrong, as Python's exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use sparelane_sim::PhysicsViolation;

create_exception!(
    sparelane._native,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run: the first mistake in it, with `file`, `line` (or None) and `key`."
);
create_exception!(
    sparelane._native,
    PhysicsError,
    PyRuntimeError,
    "A simulation that broke a law of its own: a defect of the simulator."
);
create_exception!(sparelane._native, Cancelled, PyRuntimeError, "A progress callback returned false.");
create_exception!(
    sparelane._native,
    WireError,
    PyRuntimeError,
    "Files could not be sent or received: a key, an address, a file, or the peer is wrong."
);
create_exception!(
    sparelane._native,
    LinuxError,
    PyRuntimeError,
    "A controller could not be loaded into the kernel, found in it or removed from it."
);
create_exception!(
    sparelane._native,
    EmulationError,
    PyRuntimeError,
    "A scenario that cannot be emulated here, or an emulation that had to end."
);

/// The name of a scenario that was given as a dictionary. Its lines are those of a text that the caller never saw.
const DICTIONARY: &str = "<dict>";

/// A mistake in a scenario, with its place as attributes.
pub fn scenario_error(py: Python<'_>, error: &sparelane_scenario::ScenarioError) -> PyErr {
    let mut error = error.clone();
    if error.file == DICTIONARY {
        error.line = None;
    }
    let raised = ScenarioError::new_err(error.to_string());
    let value = raised.value(py);
    let attributes =
        value.setattr("file", &error.file).and(value.setattr("line", error.line)).and(value.setattr("key", &error.key));
    attributes.map_or_else(|failure| failure, |()| raised)
}

/// A broken law.
pub fn physics_error(violation: &PhysicsViolation) -> PyErr {
    PhysicsError::new_err(violation.to_string())
}
