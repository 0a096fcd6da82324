//! TCP ports, carried between two sites over an association.
//!
//! The site that dials listens at ports of its own; each connection there becomes one *connection* of the tunnel, to a target that
//! the other site serves. It has a flow in each direction, with congestion control, order and a window of its own, so that no
//! connection waits for another. What an application writes at once is one write of the flow, for which RC3 counts its priorities
//! anew. The end of a flow is a half-close; the flows' windows are the backpressure to the sockets. The site that serves connects
//! to the targets that it lists, and to nothing else.

#[cfg(target_os = "linux")]
pub mod host;
mod link;
pub mod message;
#[cfg(target_os = "linux")]
mod socket;

pub use link::{Link, LinkConfig, LinkEvent, MOST_CONNECTIONS, Taken};

use crate::carrier::CloseReason;
use crate::control::MessageError;
use crate::node::NodeError;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The longest name of a host, bytes.
pub const MAX_HOST_BYTES: usize = 255;

/// A TCP port that is reached through a tunnel, as both sites name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// A name or an address, in small letters; an IPv6 address without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A text that is no target.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("\"{text}\" is no target: HOST:PORT is one, with a port from 1 to 65535")]
pub struct NoTarget {
    text: String,
}

impl FromStr for Target {
    type Err = NoTarget;

    fn from_str(text: &str) -> Result<Target, NoTarget> {
        let wrong = || NoTarget { text: text.chars().take(300).collect() };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Target::new(bare, port.parse().map_err(|_| wrong())?).ok_or_else(wrong)
    }
}

impl Target {
    /// The target of this name and port, if these can be.
    pub fn new(host: &str, port: u16) -> Option<Target> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
        let is_right = !host.is_empty() && host.len() <= MAX_HOST_BYTES && host.chars().all(is_name) && port > 0;
        is_right.then(|| Target { host: host.to_ascii_lowercase(), port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Why a tunnel over one association ends.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TunnelError {
    /// The association is over.
    #[error(transparent)]
    Closed(CloseReason),
    /// What the peer says is no message.
    #[error("{0}; is the peer a tunnel?")]
    Message(#[from] MessageError),
    /// The peer breaks the rules.
    #[error("the peer {0}")]
    Peer(&'static str),
    /// The node refuses.
    #[error(transparent)]
    Node(#[from] NodeError),
}

#[cfg(test)]
mod tests;
