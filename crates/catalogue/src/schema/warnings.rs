//! Warnings about a scenario: it is valid, but its author should know.

use std::cell::RefCell;

/// Warnings, one sentence each, in the order in which they were found.
#[derive(Debug, Default)]
pub struct Warnings(RefCell<Vec<String>>);

impl Warnings {
    /// No warning yet.
    pub const fn new() -> Warnings {
        Warnings(RefCell::new(Vec::new()))
    }

    /// Adds a warning, unless it is there already.
    pub fn add(&self, warning: impl Into<String>) {
        let (warning, mut list) = (warning.into(), self.0.borrow_mut());
        if !list.contains(&warning) {
            list.push(warning);
        }
    }

    /// All of them.
    pub fn list(&self) -> Vec<String> {
        self.0.borrow().clone()
    }
}
