//! Traces of packets, as other programs read them: pcapng of what passes one place, and qlog of what a sender does.
//!
//! A trace is an observer that writes as the run goes on. Where the bytes go is the caller's business; what goes wrong with writing
//! is kept in an [`Outcome`], since a run does not end for it.

mod capture;
mod frame;
mod pcapng;
mod qlog;

pub use self::capture::{Capture, Place};
pub use self::qlog::Qlog;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// What became of a trace, shared with whoever asked for it.
#[derive(Clone, Debug, Default)]
pub struct Outcome(Arc<Mutex<Written>>);

#[derive(Debug, Default)]
struct Written {
    packets: u64,
    error: Option<io::Error>,
}

impl Outcome {
    /// Packets or events that were written.
    pub fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).packets
    }

    /// What went wrong with writing, if anything; nothing was written after it.
    pub fn take_error(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).error.take()
    }
}

/// Where a trace goes, until writing fails or enough is written.
struct Sink {
    out: Option<Box<dyn Write + Send>>,
    outcome: Outcome,
    left: u64,
}

impl Sink {
    fn new(out: Box<dyn Write + Send>, outcome: Outcome, most: u64) -> Sink {
        Sink { out: Some(out), outcome, left: most }
    }

    /// Writes what is no packet and no event.
    fn put_head(&mut self, bytes: &[u8]) {
        self.put(bytes, false);
    }

    /// Writes a packet or an event, if there is room for one more.
    fn put_one(&mut self, bytes: &[u8]) {
        if self.left > 0 {
            self.left -= 1;
            self.put(bytes, true);
        }
    }

    fn put(&mut self, bytes: &[u8], counts: bool) {
        let Some(out) = &mut self.out else { return };
        let result = out.write_all(bytes);
        self.note(result, counts);
    }

    fn note(&mut self, result: io::Result<()>, counts: bool) {
        let mut written = self.outcome.0.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(()) => written.packets += u64::from(counts),
            Err(error) => {
                written.error.get_or_insert(error);
                self.out = None;
            }
        }
    }

    fn finish(mut self) {
        if let Some(mut out) = self.out.take() {
            let result = out.flush();
            self.note(result, false);
        }
    }
}
