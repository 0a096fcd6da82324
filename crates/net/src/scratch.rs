//! Temporary folders for tests, removed when they go out of scope.

use std::path::{Path, PathBuf};

/// A new, empty folder.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates the folder; `name` must be unique among the tests.
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("sparelane-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Scratch(path)
    }

    /// The folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
