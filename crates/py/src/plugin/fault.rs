//! What goes wrong in somebody's Python code while the simulator runs: callbacks into it have no way to fail, so the error is
//! kept until the simulator is next left.
//!
//! A simulation runs in one thread at a time, so each thread keeps its own.

use pyo3::prelude::*;
use std::cell::{Cell, RefCell};

thread_local! {
    static HAS_FAILED: Cell<bool> = const { Cell::new(false) };
    static FAULT: RefCell<Option<Fault>> = const { RefCell::new(None) };
}

/// An error of somebody's Python code.
pub struct Fault {
    /// Whose: `controller "my-law"`.
    whose: String,
    /// The simulated time, if it is running.
    at_s: Option<f64>,
    error: PyErr,
}

/// Whether something has gone wrong in this thread: no callback runs until that is told.
#[inline]
pub fn has_failed() -> bool {
    HAS_FAILED.get()
}

/// Keeps an error, unless there is an earlier one.
pub fn keep(whose: String, at_s: Option<f64>, error: PyErr) {
    FAULT.with_borrow_mut(|slot| {
        slot.get_or_insert(Fault { whose, at_s, error });
    });
    HAS_FAILED.set(true);
}

/// The error that this thread keeps, if there is one.
pub fn take() -> Option<Fault> {
    HAS_FAILED.set(false);
    FAULT.with_borrow_mut(Option::take)
}

impl Fault {
    /// The exception to raise: a `PluginError` caused by the error, or Ctrl-C as it is. A plugin that ends the program
    /// (`SystemExit`) would end it without a word, so that is an error, too.
    pub fn raised(self, py: Python<'_>) -> PyErr {
        if self.error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) {
            return self.error;
        }
        // The value by itself has no traceback before Python 3.12.
        let (whose, at_s, error) = (self.whose, self.at_s, self.error.into_value(py));
        let made = py
            .import("sparelane.plugins.failure")
            .and_then(|module| module.call_method1("failure", (whose, at_s, error)));
        made.map_or_else(|failure| failure, PyErr::from_value)
    }
}

/// Raises what this thread keeps, if anything.
pub fn check(py: Python<'_>) -> PyResult<()> {
    take().map_or(Ok(()), |fault| Err(fault.raised(py)))
}
