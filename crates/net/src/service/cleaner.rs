//! Removes old incomplete files while a receiver runs.

use crate::transfer::folder::Folder;
use crate::transfer::partials::{LeftFile, clean};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The interval between two removals.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Removes old incomplete files of a folder now and every hour. A thread does it, since a folder may
/// have many files.
#[derive(Debug)]
pub(super) struct Cleaner {
    min_age: Duration,
    next: Instant,
    running: Option<JoinHandle<Vec<LeftFile>>>,
}

impl Cleaner {
    /// Creates a cleaner that removes files that have not changed for `min_age`.
    pub(super) fn new(min_age: Duration) -> Cleaner {
        Cleaner { min_age, next: Instant::now(), running: None }
    }

    /// Starts the removal if it is due, and returns the files that were removed since the last call.
    pub(super) fn poll(&mut self, folder: &Arc<Folder>) -> Vec<LeftFile> {
        if self.running.as_ref().is_some_and(JoinHandle::is_finished) {
            // A thread that has panicked has removed nothing that can be reported.
            return self.running.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        }
        if self.running.is_none() && Instant::now() >= self.next {
            self.next = Instant::now() + INTERVAL;
            let (folder, min_age) = (Arc::clone(folder), self.min_age);
            let clean = move || clean(&folder, min_age).unwrap_or_default();
            // Without a thread, the files stay for another hour.
            self.running = thread::Builder::new().name("cleaner".to_owned()).spawn(clean).ok();
        }
        vec![]
    }
}
