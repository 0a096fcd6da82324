//! FIFO links that follow a trace.
//!
//! As on other FIFO links, a packet's departure is known on arrival, so the packet goes straight onto the wire. The trace
//! gives the end of each transmission, and the backlog is counted exactly for each packet that waits.

use super::Link;
use super::Waiting;
use super::cursor::Cursor;
use crate::wire::packet::Packet;
use crate::wire::trace::{Follower, Trace};
use sparelane_core::{Rate, Time};
use std::sync::Arc;

/// The transmitter, and the border between packets whose transmission has begun and those that wait.
#[derive(Debug)]
pub(super) struct Traced {
    follower: Follower,
    cursor: Cursor,
}

impl Traced {
    pub(super) fn new(trace: &Arc<Trace>) -> Traced {
        Traced { follower: Follower::new(trace), cursor: Cursor::default() }
    }

    /// The highest rate; `None` if packets can leave at once.
    pub(super) fn peak(&self) -> Option<Rate> {
        self.follower.peak()
    }
}

impl Link {
    /// Puts a packet on the wire, or drops it if it must wait and does not fit.
    #[inline(never)]
    pub(super) fn send_traced(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        let start = self.busy_until.max(now);
        let has_waited = start > now;
        let mut marked = Packet::default();
        let mut packet = packet;
        let mut waiting_bytes = 0;
        if has_waited {
            let backlog = self.waiting_traced(now);
            let Some(admitted) = self.admit(backlog, packet, &mut marked, dropped) else { return false };
            (packet, waiting_bytes) = (admitted, backlog.0);
        }
        let peak_bytes = waiting_bytes + packet.wire_bytes();
        if peak_bytes > self.counts.peak_backlog_bytes {
            self.counts.peak_backlog_bytes = peak_bytes;
        }
        let Waiting::Traced(traced) = &mut self.queue else { return false };
        let end = traced.follower.end(start, has_waited, packet.wire_bytes(), self.min_time);
        self.put_on_wire(packet, end)
    }

    /// Bytes and packets that wait at `now`. A transmission begins when the one before it ends.
    pub(super) fn waiting_traced(&mut self, now: Time) -> (u64, u64) {
        let (wire, sent_until) = (&self.wire, now + self.delay);
        let Waiting::Traced(traced) = &mut self.queue else { return (0, 0) };
        let has_begun = |place: u64, _: &Packet| place == wire.head() || wire.at(place - 1).at <= sent_until;
        traced.cursor.look(wire, self.accepted_bytes, has_begun)
    }

    /// The end of the transmission under way at the last count of the backlog. `None` on links without a trace.
    pub(super) fn end_of_current(&self) -> Option<Time> {
        let Waiting::Traced(traced) = &self.queue else { return None };
        let place = traced.cursor.place.checked_sub(1).filter(|&place| place >= self.wire.head())?;
        Some(self.end_of_transmission(&self.wire.at(place)))
    }
}
