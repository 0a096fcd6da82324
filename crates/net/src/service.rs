//! The file services that the commands call: a sender and a receiver, on sockets of this host.
//!
//! Both advance in steps of bounded duration, so that the caller can show progress between steps and stop them.

mod cleaner;
mod config;
mod error;
mod receiver;
mod sender;
mod settings;
mod stall_schedule;

pub use config::{Revocation, WireConfig};
pub use error::WireError;
pub use receiver::{FileReceiver, ReceiverEvent};
pub(crate) use sender::no_route;
pub use sender::{FileSender, Files, Progress};
pub use settings::{SETTINGS, Setting, Settings};

use std::time::Duration;

/// The time to send the last messages before a socket closes.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests;
