//! What the author of a scenario should know, though it is no mistake.

use std::cell::RefCell;

/// Sentences, in the order in which they came up.
#[derive(Debug, Default)]
pub struct Notices(RefCell<Vec<String>>);

impl Notices {
    /// One more.
    pub fn add(&self, notice: impl Into<String>) {
        self.0.borrow_mut().push(notice.into());
    }

    /// All of them.
    pub fn into_list(self) -> Vec<String> {
        self.0.into_inner()
    }
}
