//! Warnings about a valid scenario, for its author.

use std::cell::RefCell;

/// Warnings, one sentence each, in order of discovery.
#[derive(Debug, Default)]
pub struct Warnings(RefCell<Vec<String>>);

impl Warnings {
    /// Creates an empty list.
    pub const fn new() -> Warnings {
        Warnings(RefCell::new(Vec::new()))
    }

    /// Adds a warning unless the list already contains it.
    pub fn add(&self, warning: impl Into<String>) {
        let (warning, mut list) = (warning.into(), self.0.borrow_mut());
        if !list.contains(&warning) {
            list.push(warning);
        }
    }

    /// Returns all warnings.
    pub fn list(&self) -> Vec<String> {
        self.0.borrow().clone()
    }
}
