//! Transfers of files and folders from one host to another.
//!
//! The sender offers items on the control stream. The receiver answers which items it accepts, and how much of each is
//! left from an earlier attempt. Each file is sent in its own flow, and both sides compute its BLAKE3 digest by
//! [`chunks`]. A file gets its name only when it is complete, correct and on the disk. An existing file of that name is
//! compared first, and is not sent again if it is equal. A thread runs all disk access (see [`disk`](crate::disk)).
//! Neither side waits for the other without limit (see [`stall`]).

pub mod black_hole;
pub mod chunks;
pub mod folder;
pub mod message;
pub mod name;
pub mod output;
pub mod partials;
mod pool;
mod reader;
mod receive;
pub mod selection;
mod send;
pub mod session;
mod source;
pub mod stall;
mod writer;

pub use receive::{ActiveNames, ReceiveTransfer, Received};
pub use send::{Compare, Outcome, SendTransfer};
pub use source::{Collected, Input, MAX_ITEMS, Source, SourceError, collect, collect_selected};

use crate::attempts::ConnectError;
use crate::carrier::CloseReason;
use crate::control::MessageError;
use crate::node::NodeError;
use sparelane_core::Dur;
use thiserror::Error;

/// The close code of a complete transfer.
pub const CODE_DONE: u32 = 0;

/// The close code for a peer that violates the rules of a transfer.
pub const CODE_RULES: u32 = 3;

/// The close code of a sender that continues at once in a new association.
pub const CODE_RECONNECT: u32 = 5;

/// The close code of a side that stops before the transfer is complete.
pub const CODE_STOPPED: u32 = 4;

/// The close code for a peer that is connected but makes no progress.
pub const CODE_STALLED: u32 = 6;

/// The close code of a transfer that another one of the same key has replaced.
pub const CODE_REPLACED: u32 = 10;

/// The reason for which a transfer ended early.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TransferError {
    /// The association ended.
    #[error(transparent)]
    Closed(CloseReason),
    /// The peer cannot be reached, or not again.
    #[error(transparent)]
    Connect(ConnectError),
    /// No data of a file is acknowledged, although the association is alive.
    #[error("{}", CloseReason::Stuck)]
    Stuck,
    /// The peer is connected but makes no progress.
    #[error(
        "the transfer has made no progress for {} s, although the peer is connected (--stall-timeout)",
        .0.as_secs_f64()
    )]
    Stalled(Dur),
    /// The peer is connected but has offered nothing.
    #[error("the peer has offered nothing for {} s", .0.as_secs_f64())]
    Idle(Dur),
    /// A part of a stream was sent, and the rest cannot be sent in another association.
    #[error("{0}; a stream cannot continue in another connection")]
    Stream(CloseReason),
    /// The peer's message is invalid.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The peer violates the rules.
    #[error("the peer {0}")]
    Peer(&'static str),
    /// The node reports an error.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl TransferError {
    /// The close code for this error.
    pub fn code(&self) -> u32 {
        if matches!(self, TransferError::Stalled(_) | TransferError::Idle(_)) { CODE_STALLED } else { CODE_RULES }
    }
}

#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
