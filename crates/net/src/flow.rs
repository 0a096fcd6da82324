//! One byte stream from one node to the other.
//!
//! The transport's sender and receiver handle segment numbers only. A flow adds the payload, the priority class in
//! which each segment is sent, the pace of RC3's tail, and the frames of the wire.

mod monitor;
mod receive;
mod send;
mod tail;

pub use monitor::{Log, Monitor};
pub use receive::{MAX_WINDOW_BYTES, ReceiveFlow, Refused};
pub(crate) use send::{Gap, MAX_LATENESS};
pub use send::{SendFlow, SendFlowCounts};
pub use tail::{TailConfig, TailPace};

use crate::carrier::AssociationId;

/// A flow of one association. Each direction numbers its own flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    /// The association.
    pub association: AssociationId,
    /// The number, from 0.
    pub flow: u32,
}

/// The maximum number of priority classes: class 0, and the lower ones for the tail.
pub const MAX_CLASSES: usize = 8;

/// The priority classes of an association, and which of them are usable now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    count: u8,
    open: [bool; MAX_CLASSES],
}

impl Classes {
    /// Creates `count` classes, numbered from 0, none of which is usable yet.
    ///
    /// # Panics
    /// `count` is zero or more than [`MAX_CLASSES`].
    pub fn new(count: u8) -> Classes {
        assert!((1..=MAX_CLASSES).contains(&usize::from(count)), "{count} classes");
        Classes { count, open: [false; MAX_CLASSES] }
    }

    /// Returns true if `class` is usable now.
    pub fn is_open(&self, class: u8) -> bool {
        self.open.get(usize::from(class)).is_some_and(|&open| open)
    }

    /// Marks `class` as usable or not. Ignored for a class that does not exist.
    pub fn set_open(&mut self, class: u8, open: bool) {
        if class < self.count {
            self.open[usize::from(class)] = open;
        }
    }

    /// The number of classes.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Returns the class in which a segment that a controller assigns to `class` is sent. If `class` itself is not
    /// usable, this is the next usable one of higher priority, or else of lower priority. Returns `None` for tail
    /// segments if only class 0 is usable.
    pub fn place(&self, class: u8) -> Option<u8> {
        if class == 0 {
            return Some(0);
        }
        let wanted = class.min(self.count - 1);
        let higher = (1..=wanted).rev().find(|&class| self.is_open(class));
        higher.or_else(|| (wanted + 1..self.count).find(|&class| self.is_open(class)))
    }
}

/// Header bytes of a full segment on the wire: IPv4 and UDP; QUIC's short header, packet number and tag; the DATAGRAM
/// frame's header and this crate's own.
pub const WIRE_HEADER_BYTES: u64 = 20 + 8 + 1 + 8 + 4 + 16 + 3 + 10;

#[cfg(test)]
mod tests;
