//! What waits on a FIFO link, whose packets are on the wire as soon as they come: counted only where the queue is long.

use crate::wire::packet::Packet;
use sparelane_core::Ring;

/// The border between packets whose transmission has begun and those that wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    /// The first packet on the wire whose transmission may not have begun at the last look.
    pub(super) place: u64,
    /// Bytes from there on at the last look, and the bytes that had come onto the wire by then.
    waiting_bytes: u64,
    accepted_bytes: u64,
}

impl Cursor {
    /// Bytes and packets that wait, where `accepted_bytes` ever came onto the wire and `has_begun` says of a packet whether its
    /// transmission has begun.
    pub(super) fn look(
        &mut self,
        wire: &Ring<Packet>,
        accepted_bytes: u64,
        has_begun: impl Fn(&Packet) -> bool,
    ) -> (u64, u64) {
        if self.place < wire.head() {
            // Packets that were delivered since the last look: count what is left anew.
            self.place = wire.head();
            self.waiting_bytes = (wire.head()..wire.tail()).map(|at| wire.at(at).wire_bytes()).sum();
        } else {
            self.waiting_bytes += accepted_bytes - self.accepted_bytes;
        }
        self.accepted_bytes = accepted_bytes;
        while self.place < wire.tail() {
            let packet = wire.at(self.place);
            if !has_begun(&packet) {
                break;
            }
            self.waiting_bytes -= packet.wire_bytes();
            self.place += 1;
        }
        (self.waiting_bytes, wire.tail() - self.place)
    }
}
