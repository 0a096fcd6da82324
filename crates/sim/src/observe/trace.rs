//! Packet traces in formats of other programs: pcapng of the packets that pass a place, and qlog of a sender's actions.
//!
//! A trace is an observer that writes during the run. The caller supplies the writer. Write errors are kept in an
//! [`Outcome`], because they do not end the run.

mod capture;
mod frame;
mod pcapng;
mod qlog;

pub use self::capture::{Capture, Place};
pub use self::qlog::Qlog;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The outcome of a trace, shared with the caller.
#[derive(Clone, Debug, Default)]
pub struct Outcome(Arc<Mutex<Written>>);

#[derive(Debug, Default)]
struct Written {
    packets: u64,
    error: Option<io::Error>,
}

impl Outcome {
    /// The number of packets or events written.
    pub fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).packets
    }

    /// Takes the error of the writer, if there was one. Nothing was written after it.
    pub fn take_error(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).error.take()
    }
}

/// The output of a trace, until writing fails or the limit is reached.
struct Sink {
    out: Option<Box<dyn Write + Send>>,
    outcome: Outcome,
    left: u64,
}

impl Sink {
    fn new(out: Box<dyn Write + Send>, outcome: Outcome, most: u64) -> Sink {
        Sink { out: Some(out), outcome, left: most }
    }

    /// Writes bytes that do not count as a packet or an event.
    fn put_head(&mut self, bytes: &[u8]) {
        self.put(bytes, false);
    }

    /// Writes a packet or an event, unless the limit is reached.
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
