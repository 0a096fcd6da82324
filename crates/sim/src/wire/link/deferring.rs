//! Links with a priority queue whose packets are taken in bulk: exits to another domain.
//!
//! The choice of a priority queue is known up to the time of the last arrival at it, whenever that is computed. So a link
//! whose packets are needed only at the end of a window makes no events: its transmissions are replayed then.

use super::{Link, Waiting};
use crate::wire::packet::Packet;
use sparelane_core::Time;

impl Link {
    /// Lets packets be taken in bulk, if that changes nothing: the queue decides by class alone, and shares no memory.
    pub(crate) fn defer(&mut self, shares_memory: bool) {
        self.defers = matches!(self.queue, Waiting::ByClass(_)) && self.ingress.is_none() && !shares_memory;
    }

    /// Returns true if packets wait or can be taken.
    #[inline(always)]
    pub(crate) fn is_occupied(&self) -> bool {
        self.waits || !self.wire.is_empty()
    }

    /// Passes all packets whose transmission begins by `until` to `take`, in order.
    pub(crate) fn take_begun(&mut self, until: Time, mut take: impl FnMut(Packet)) {
        self.commit(until);
        while !self.wire.is_empty() {
            take(*self.wire.pop_in_place());
        }
    }

    /// The time at which the next waiting packet begins its transmission, once all that began before are committed.
    pub(crate) fn next_beginning(&self) -> Time {
        if self.waits { self.busy_until } else { Time::NEVER }
    }
}
