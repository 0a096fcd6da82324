//! Tunnels for TCP connections between two sites over one association.
//!
//! The dialing site listens at local ports. Each accepted connection becomes a *connection* of the tunnel to a target
//! of the serving site. It has one flow in each direction with its own congestion control, ordering and window, so that
//! connections do not block each other. Each chunk that an application writes is one write of the flow, for which RC3
//! assigns priorities from the start. The end of a flow is a half-close, and the flows' windows provide backpressure to
//! the sockets. The serving site connects to the targets on its list only.

#[cfg(target_os = "linux")]
pub mod host;
mod link;
pub mod message;
#[cfg(target_os = "linux")]
mod socket;

pub use link::{Delivery, Link, LinkConfig, LinkEvent, MAX_CONNECTIONS, Unanswered};

use crate::carrier::CloseReason;
use crate::control::MessageError;
use crate::node::NodeError;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The maximum length of a host name, bytes.
pub const MAX_HOST_BYTES: usize = 255;

/// A TCP port reachable through a tunnel, as both sites name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// A name or an address in lower case; an IPv6 address has no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A text that is not a target.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("\"{text}\" is not a target; allowed: HOST:PORT, with a port from 1 to 65535")]
pub struct TargetError {
    text: String,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        let wrong = || TargetError { text: text.chars().take(300).collect() };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Target::new(bare, port.parse().map_err(|_| wrong())?).ok_or_else(wrong)
    }
}

impl Target {
    /// Creates a target, if name and port are valid.
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

/// The reason for which the tunnel of one association ended.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TunnelError {
    /// The association ended.
    #[error(transparent)]
    Closed(CloseReason),
    /// The peer's message is invalid.
    #[error("{0}; is the peer a tunnel?")]
    Message(#[from] MessageError),
    /// The peer violates the rules.
    #[error("the peer {0}")]
    Peer(&'static str),
    /// The node reports an error.
    #[error(transparent)]
    Node(#[from] NodeError),
}

#[cfg(test)]
mod tests;
