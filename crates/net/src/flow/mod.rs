//! One stream of bytes, from one node to the other: what the transport's sender and receiver need around them to carry bytes.

mod receive;
mod send;
mod tail;
mod watch;

pub use receive::{MAX_WINDOW_BYTES, ReceiveFlow, Refused};
pub(crate) use send::MOST_LATENESS;
pub use send::{SendFlow, SendFlowCounts};
pub use tail::{TailConfig, TailPace};
pub use watch::{Log, Watch};

/// The most classes of priority: class 0, and those that the tail uses.
pub const MAX_CLASSES: usize = 8;

/// Which classes there are, and which of them can be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes {
    count: u8,
    open: [bool; MAX_CLASSES],
}

impl Classes {
    /// So many classes, from 0 on, none of which can be used yet.
    ///
    /// # Panics
    /// There are none, or more than [`MAX_CLASSES`].
    pub fn new(count: u8) -> Classes {
        assert!((1..=MAX_CLASSES).contains(&usize::from(count)), "{count} classes");
        Classes { count, open: [false; MAX_CLASSES] }
    }

    /// Whether `class` can be used now.
    pub fn is_open(&self, class: u8) -> bool {
        self.open.get(usize::from(class)).is_some_and(|&open| open)
    }

    /// From now on `class` can be used, or cannot.
    pub fn set_open(&mut self, class: u8, open: bool) {
        if class < self.count {
            self.open[usize::from(class)] = open;
        }
    }

    /// How many there are.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// The class in which goes what a controller means for `class`: a tail goes in the next higher one that can be used, where that
    /// one cannot, or in the next lower. Where only class 0 can be used, it has none.
    pub fn place(&self, class: u8) -> Option<u8> {
        if class == 0 {
            return Some(0);
        }
        let wanted = class.min(self.count - 1);
        let higher = (1..=wanted).rev().find(|&class| self.is_open(class));
        higher.or_else(|| (wanted + 1..self.count).find(|&class| self.is_open(class)))
    }
}

/// Bytes that a full segment has on the wire beside its payload: IPv4 and UDP, QUIC's short header, number and tag, and the
/// headers of the DATAGRAM frame and of ours.
pub const WIRE_HEADER_BYTES: u64 = 20 + 8 + 1 + 8 + 4 + 16 + 3 + 10;

#[cfg(test)]
mod tests;
