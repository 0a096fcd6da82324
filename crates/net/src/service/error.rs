//! Errors of senders, receivers, probes and tunnels on sockets.

use crate::attempts::ConnectError;
use crate::host::HostError;
use crate::probe::ProbeError;
use crate::transfer::TransferError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// An error of a service on sockets.
#[derive(Debug, Error)]
pub enum WireError {
    /// The host cannot be created, or its socket failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The transfer ended early.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The path cannot be measured.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The peer cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The peer has no address.
    #[error("the peer has no address")]
    NoAddress,
    /// The disk thread cannot be started.
    #[error("a thread for the disk: {0}")]
    Disk(io::Error),
    /// The qlog file cannot be created.
    #[error("{}: {error}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The folder cannot be used.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}
