//! The operations of fused links: see `engine/tandems.rs`.

use super::{Link, Waiting};
use crate::records::CLASSES;
use crate::wire::packet::Packet;
use sparelane_core::{Dur, Rate, Time};

impl Link {
    /// Returns true if this link can be fused to `first`, given that all its packets come from there.
    pub(crate) fn can_follow(&self, first: &Link) -> bool {
        first.can_fuse && self.can_follow && first.highest_rate().is_some_and(|highest| self.rate >= highest)
    }

    /// Fuses the link with whatever follows, for good, if the departure of its packets is known on arrival. No link can then
    /// be fused with it.
    pub(crate) fn fuse_for_good(&mut self) -> bool {
        self.is_fused = self.can_fuse;
        self.can_follow = false;
        self.is_fused
    }

    /// The highest rate that the link ever has; `None` if packets can leave at once.
    fn highest_rate(&self) -> Option<Rate> {
        match &self.queue {
            Waiting::Traced(traced) => traced.peak(),
            _ => Some(self.rate),
        }
    }

    /// The arrival time of the newest packet at the far end.
    #[inline(always)]
    pub(crate) fn last_arrival(&self) -> Time {
        self.busy_until + self.delay
    }

    /// Like `send`, on a fused link: returns the packet as it will arrive at the far end, unless it was dropped.
    #[inline(always)]
    pub(crate) fn send_fused(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.make_room_on_wire(now);
        let start = self.busy_until.max(now);
        let wait = start - now;
        // As in `send`, such a packet is neither dropped nor marked.
        if packet.is_in_class_0() && !self.takes_slow_path(wait) {
            self.transmit(start, packet);
            return Some(packet.onward(self.last_arrival()));
        }
        self.send_fused_slow(now, packet.in_words(), dropped)
    }

    /// Like `send_fused`, for a packet that may be dropped or marked, or is counted.
    #[inline(never)]
    fn send_fused_slow(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let came = self.wire.tail();
        self.send(now, &packet, dropped);
        if self.wire.tail() == came {
            return None;
        }
        let packet = packet.onward(self.last_arrival());
        // The queue may have marked the packet; its copy on the wire has the flags.
        Some(if self.may_mark { packet.with(self.wire.newest_slot().flags()) } else { packet })
    }

    /// Clears arrived packets if the ring is full. No event takes packets off the wire of a fused link.
    #[inline(always)]
    pub(crate) fn make_room_on_wire(&mut self, now: Time) {
        if self.wire.is_full() {
            self.clear_arrived(now);
        }
    }

    /// Takes packets that arrived by `now` off the wire.
    #[cold]
    #[inline(never)]
    pub(super) fn clear_arrived(&mut self, now: Time) {
        self.wire.pop_while(|packet| packet.at <= now);
    }

    /// Accepts a packet ahead of time: at `packet.at` it will arrive over the one link that leads here. Returns true if
    /// the link's next event may have changed.
    #[inline(always)]
    pub(crate) fn accept_early(&mut self, packet: &Packet) -> bool {
        let start = self.busy_until.max(packet.at);
        let wait = start - packet.at;
        if wait > self.exact_check.peak_wait {
            self.note_peak(wait);
        }
        if !packet.is_in_class_0() {
            self.count_class(packet.class());
        }
        self.transmit(start, packet)
    }

    #[cold]
    #[inline(never)]
    fn note_peak(&mut self, wait: Dur) {
        self.exact_check.peak_wait = wait;
        self.update_slow_path();
    }

    #[cold]
    #[inline(never)]
    fn count_class(&mut self, class: u8) {
        self.counts.arrived[usize::from(class) & (CLASSES - 1)] += 1;
    }

    /// Makes the link raise events again. Returns the packets on the wire at `now`, newest first.
    pub(crate) fn split(&mut self, now: Time) -> impl Iterator<Item = Packet> {
        self.is_fused = false;
        self.clear_arrived(now);
        self.fused_arrivals = self.wire.head();
        (self.wire.head()..self.wire.tail()).rev().map(|at| self.wire.at(at))
    }

    /// Retracts the newest packet, which was passed on ahead of time and has not arrived here by `now`.
    pub(crate) fn retract(&mut self, now: Time) -> Option<Packet> {
        let packet = self.wire.pop_newest()?;
        self.accepted_bytes -= packet.wire_bytes();
        if !packet.is_in_class_0() {
            self.counts.arrived[usize::from(packet.class()) & (CLASSES - 1)] -= 1;
        }
        // The transmitter is free again when the packet before the retracted one has left it.
        self.busy_until = match self.wire.len() {
            0 => self.busy_until.min(now),
            _ => Time::ZERO + (self.wire.newest_slot().at - (Time::ZERO + self.delay)),
        };
        Some(packet)
    }

    /// Arrivals at the far end that were events. The link must not be fused any more.
    pub(crate) fn events(&self) -> u64 {
        if self.defers { 0 } else { self.wire.head() - self.fused_arrivals }
    }

    #[cfg(feature = "oracle")]
    pub(crate) fn fused_arrivals(&self) -> u64 {
        self.fused_arrivals
    }
}
