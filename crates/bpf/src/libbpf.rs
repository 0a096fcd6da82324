//! The interface to libbpf: loading programs, finding loaded ones, and reading their maps.
//!
//! No other module of the crate uses libbpf. `without_libbpf.rs` replaces this module in builds without it.

mod found;
mod kernel;
mod objects;

pub use found::{Samples, choosers, controllers, detach};
pub use kernel::Kernel;
pub use objects::{OwnedLink, choose, register};

use libbpf_rs::{Error, ErrorKind, PrintLevel, set_print};
use std::cell::Cell;
use std::io;
use std::sync::Once;

/// The prefix of the name of a program's table of operations in the kernel (`CONTROLLER` in `programs/kernel.h`).
const TABLE_PREFIX: &str = "sl_";

/// The only key of a map with a single value.
const ONLY_KEY: [u8; 4] = [0; 4];

thread_local! {
    /// The messages of libbpf in this thread since the last call of `take_log`.
    static LOG: Cell<String> = const { Cell::new(String::new()) };
}

/// Returns the messages of libbpf in this thread since the last call, and clears them.
///
/// The first call stops libbpf from writing to the terminal.
fn take_log() -> String {
    fn keep(_: PrintLevel, message: String) {
        LOG.set(LOG.take() + &message);
    }
    static SET: Once = Once::new();
    SET.call_once(|| {
        set_print(Some((PrintLevel::Warn, keep)));
    });
    LOG.take()
}

/// Returns the system's error behind an error of libbpf.
fn io_error(error: &Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    // The outer errors only name functions of libbpf.
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    io::Error::new(kind, innermost.to_string())
}
