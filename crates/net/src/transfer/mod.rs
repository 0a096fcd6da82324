//! Files and folders, from one host to another.
//!
//! The sender offers items on the control stream; the receiver says which it wants, and how much of each an earlier attempt has
//! left. Each file comes in a flow of its own, and both sides take its BLAKE3 on the way, by [`chunks`]; a file gets its name when
//! all of it is there, on the disk, and right. What has its name already is compared, and not sent where it is the same. What is
//! done on the disk is handed to a desk (see [`disk`](crate::disk)), whose thread does it. Neither side waits for ever for the other
//! (see [`patience`]).

pub mod black_hole;
pub mod chunks;
pub mod folder;
pub mod message;
pub mod name;
pub mod patience;
mod reading;
mod receive;
mod send;
mod source;
mod writing;

pub use receive::{Busy, ReceiveTransfer, Received};
pub use send::{Outcome, SendTransfer};
pub use source::{Collected, MAX_ITEMS, Source, SourceError, collect};

use crate::carrier::CloseReason;
use crate::control::MessageError;
use crate::node::NodeError;
use sparelane_core::Dur;
use thiserror::Error;

/// The code with which an association is closed whose transfer is complete.
pub const CODE_DONE: u32 = 0;

/// The code with which a peer is cut off that breaks the rules of a transfer.
pub const CODE_RULES: u32 = 3;

/// The code with which an association is closed by a sender that goes on at once in another one.
pub const CODE_AGAIN: u32 = 5;

/// The code with which an association is closed by somebody who stops before all is sent.
pub const CODE_STOPPED: u32 = 4;

/// The code with which a peer is cut off that is there and does nothing.
pub const CODE_STALLED: u32 = 6;

/// Why a transfer ends before it is complete.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TransferError {
    /// The association is over.
    #[error(transparent)]
    Closed(CloseReason),
    /// Nothing of a file gets through, although the association lives.
    #[error(
        "nothing of the file gets through, while the peer is there: does the path carry UDP payloads of full size?"
    )]
    Stuck,
    /// The peer is there, and does nothing.
    #[error("nothing of the transfer has moved for {} s, while the peer was there (--stall-timeout)", .0.as_secs_f64())]
    Stalled(Dur),
    /// What the peer says is no message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The peer breaks the rules.
    #[error("the peer {0}")]
    Peer(&'static str),
    /// The node refuses.
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl TransferError {
    /// The code with which the peer is told of it.
    pub fn code(&self) -> u32 {
        if matches!(self, TransferError::Stalled(_)) { CODE_STALLED } else { CODE_RULES }
    }
}

#[cfg(test)]
mod tests;
