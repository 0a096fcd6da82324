//! Errors of plugins while the simulator runs.
//!
//! Callbacks from the simulator into Python cannot return errors. The first error is therefore stored, no further
//! Python code runs, and the error is raised when the simulator returns. A simulation runs in one thread at a time, so
//! the error is stored per thread.

use pyo3::prelude::*;
use std::cell::{Cell, RefCell};

thread_local! {
    static HAS_FAILED: Cell<bool> = const { Cell::new(false) };
    static FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// An error of a plugin.
pub struct Fault {
    /// The plugin, such as `controller "my-law"`.
    plugin: String,
    /// The simulated time in seconds, if the simulation was running.
    at_s: Option<f64>,
    error: PyErr,
}

/// Returns whether an error is stored in this thread. Callbacks then run no Python code.
#[inline]
pub fn has_failed() -> bool {
    HAS_FAILED.get()
}

/// Stores an error, unless an earlier one is stored.
pub fn store(plugin: String, at_s: Option<f64>, error: PyErr) {
    FAULT.with_borrow_mut(|slot| {
        slot.get_or_insert(Fault { plugin, at_s, error });
    });
    HAS_FAILED.set(true);
}

/// Removes and returns the stored error of this thread, if any.
pub fn take() -> Option<Fault> {
    HAS_FAILED.set(false);
    FAULT.with_borrow_mut(Option::take)
}

impl Fault {
    /// Returns the exception to raise: a `PluginError` with the error as its cause, or `KeyboardInterrupt` unchanged.
    ///
    /// `SystemExit` is wrapped, too, because it would end the program without a message.
    pub fn into_exception(self, py: Python<'_>) -> PyErr {
        if self.error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) {
            return self.error;
        }
        // `into_value` attaches the traceback, which the value alone lacks before Python 3.12.
        let (plugin, at_s, error) = (self.plugin, self.at_s, self.error.into_value(py));
        let made = py
            .import("sparelane.plugins.failure")
            .and_then(|module| module.call_method1("failure", (plugin, at_s, error)));
        made.map_or_else(|failure| failure, PyErr::from_value)
    }
}

/// Raises the stored error of this thread, if any.
pub fn check(py: Python<'_>) -> PyResult<()> {
    take().map_or(Ok(()), |fault| Err(fault.into_exception(py)))
}
