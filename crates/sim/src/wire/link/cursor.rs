//! The backlog of a FIFO link, whose packets are on the wire as soon as they arrive. It is counted only while the queue
//! is long.
//!
//! A cursor remembers the first packet whose transmission may not have begun. Both ends of the backlog only move
//! forward, so each packet is visited once per count and the cost per packet is constant.

use crate::wire::packet::Packet;
use sparelane_core::Ring;

/// The border between packets whose transmission has begun and packets that wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    /// The first packet on the wire whose transmission had not begun at the last count.
    pub(super) place: u64,
    /// Bytes from there on, and bytes ever put onto the wire, at the last count.
    waiting_bytes: u64,
    accepted_bytes: u64,
}

impl Cursor {
    /// Counts the bytes and packets that wait. `accepted_bytes` is the number of bytes ever put onto the wire, and
    /// `has_begun` returns true for a packet, at this place on the wire, whose transmission has begun.
    pub(super) fn look(
        &mut self,
        wire: &Ring<Packet>,
        accepted_bytes: u64,
        has_begun: impl Fn(u64, &Packet) -> bool,
    ) -> (u64, u64) {
        if self.place < wire.head() {
            // The packet at the cursor was delivered since the last count: count again from the oldest one.
            self.place = wire.head();
            self.waiting_bytes = (wire.head()..wire.tail()).map(|at| wire.at(at).wire_bytes()).sum();
        } else {
            self.waiting_bytes += accepted_bytes - self.accepted_bytes;
        }
        self.accepted_bytes = accepted_bytes;
        while self.place < wire.tail() {
            let packet = wire.at(self.place);
            if !has_begun(self.place, &packet) {
                break;
            }
            self.waiting_bytes -= packet.wire_bytes();
            self.place += 1;
        }
        (self.waiting_bytes, wire.tail() - self.place)
    }
}
