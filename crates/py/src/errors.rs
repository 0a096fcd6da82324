//! Errors of Rust as Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use sparelane_sim::PhysicsViolation;

create_exception!(
    sparelane._native,
    ScenarioError,
    PyValueError,
    "A scenario is invalid. Describes its first mistake, with the attributes `file`, `line` (or None) and `key`."
);
create_exception!(
    sparelane._native,
    PhysicsError,
    PyRuntimeError,
    "A simulation violated a conservation law or a limit, which is a defect of the simulator."
);
create_exception!(
    sparelane._native,
    Cancelled,
    PyRuntimeError,
    "A progress callback has stopped the simulation by returning false."
);
create_exception!(
    sparelane._native,
    WireError,
    PyRuntimeError,
    "A key, an address, a file, a setting or the peer is invalid, or a transfer failed."
);
create_exception!(
    sparelane._native,
    LinuxError,
    PyRuntimeError,
    "A controller could not be loaded into the kernel, found there, or removed."
);
create_exception!(
    sparelane._native,
    EmulationError,
    PyRuntimeError,
    "A scenario cannot be emulated on this machine, or an emulation failed."
);

/// The file name of a scenario that was given as a dictionary. Its line numbers refer to a generated text that the
/// caller never sees, so they are removed from errors.
const DICTIONARY: &str = "<dict>";

/// Returns the exception for a mistake in a scenario, with `file`, `line` and `key` as attributes.
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

/// Returns the exception for a violated law of physics.
pub fn physics_error(violation: &PhysicsViolation) -> PyErr {
    PhysicsError::new_err(violation.to_string())
}
