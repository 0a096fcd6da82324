//! The rate of this host's line to a peer, and its source.
//!
//! Some controllers need the line rate: RAPID never sends faster, and RTCP's window is limited to one round trip at
//! that rate.

use sparelane_core::Rate;
use std::fmt;

/// The line rate that is assumed if it is neither set nor reported by an interface.
pub const ASSUMED_LINE_RATE: Rate = Rate::from_gbps(1);

/// The source of the line rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineSource {
    /// The user has set it.
    Set,
    /// The kernel reports it for this interface.
    Interface(String),
    /// It is not known: [`ASSUMED_LINE_RATE`] is used.
    Assumed,
}

impl fmt::Display for LineSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineSource::Set => f.write_str("set"),
            LineSource::Interface(name) => write!(f, "interface {name}"),
            LineSource::Assumed => f.write_str("assumed"),
        }
    }
}
