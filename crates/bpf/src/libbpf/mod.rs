//! Programs in the kernel, by libbpf: loading them, finding them, and their maps.
//!
//! The rest of the crate knows nothing of libbpf; `without_libbpf.rs` stands in for this module where it is not built.

mod found;
mod kernel;
mod objects;

pub use found::{Samples, choosers, controllers, detach};
pub use kernel::Kernel;
pub use objects::{Held, choose, register};

use libbpf_rs::{Error, ErrorKind, PrintLevel, set_print};
use std::cell::Cell;
use std::io;
use std::sync::Once;

/// What the table of a program's operations is called in the kernel, before the program's name (`CONTROLLER` in
/// `programs/kernel.h`).
const TABLE_PREFIX: &str = "sl_";

/// The only key of a map that is one value.
const ONLY_KEY: [u8; 4] = [0; 4];

thread_local! {
    /// What libbpf has said in this thread since somebody last asked.
    static SAID: Cell<String> = const { Cell::new(String::new()) };
}

/// What libbpf has said in this thread since the last call. From the first call on it writes nothing to the terminal.
fn said() -> String {
    fn keep(_: PrintLevel, words: String) {
        SAID.set(SAID.take() + &words);
    }
    static SET: Once = Once::new();
    SET.call_once(|| {
        set_print(Some((PrintLevel::Warn, keep)));
    });
    SAID.take()
}

/// What the system answered to libbpf.
fn answer(error: &Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    // The outer ones say which function of libbpf failed.
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    io::Error::new(kind, innermost.to_string())
}
