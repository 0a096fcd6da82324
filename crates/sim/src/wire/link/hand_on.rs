//! What a link does in tandem with others: see `engine/tandems.rs`.

use super::Link;
use crate::records::CLASSES;
use crate::wire::packet::Packet;
use sparelane_core::{Dur, Time};

impl Link {
    /// Whether packets that come over `first`, and no other way, need no events there.
    pub(crate) fn can_follow(&self, first: &Link) -> bool {
        first.can_hand_on && self.can_follow && self.rate >= first.rate
    }

    /// When the packet that came last arrives at the far end.
    #[inline(always)]
    pub(crate) fn last_arrival(&self) -> Time {
        self.busy + self.delay
    }

    /// As `send`, where the link hands on: gives the packet as it will arrive at the far end, if it does.
    #[inline(always)]
    pub(crate) fn send_and_tell(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.make_room_on_wire(now);
        let came = self.wire.tail();
        self.send(now, packet, dropped);
        if self.wire.tail() == came {
            return None;
        }
        let packet = packet.onward(self.last_arrival());
        Some(if self.mark_at.is_some() { packet.with(self.wire.newest_slot().flags()) } else { packet })
    }

    /// Nothing takes packets off a wire that makes no events: they go when its ring would have to grow.
    #[inline(always)]
    pub(crate) fn make_room_on_wire(&mut self, now: Time) {
        if self.wire.is_full() {
            self.clear(now);
        }
    }

    /// Takes what has arrived by `now` off the wire.
    #[cold]
    #[inline(never)]
    pub(super) fn clear(&mut self, now: Time) {
        self.wire.pop_while(|packet| packet.at <= now);
    }

    /// `packet` will come, when it has arrived, over the one link that leads here. Returns whether the link's next event may
    /// have changed.
    #[inline(always)]
    pub(crate) fn follow(&mut self, packet: &Packet) -> bool {
        let start = self.busy.max(packet.at);
        let wait = start - packet.at;
        if wait > self.closer_look.peak_wait {
            self.note_peak(wait);
        }
        if packet.class() != 0 {
            self.count_class(packet.class());
        }
        self.transmit(start, packet)
    }

    #[cold]
    #[inline(never)]
    fn note_peak(&mut self, wait: Dur) {
        self.closer_look.peak_wait = wait;
        self.set_closer_look();
    }

    #[cold]
    #[inline(never)]
    fn count_class(&mut self, class: u8) {
        self.counts.arrived[usize::from(class) & (CLASSES - 1)] += 1;
    }

    /// Makes events again, and gives what is on the wire at `now`, the newest first.
    pub(crate) fn part(&mut self, now: Time) -> impl Iterator<Item = Packet> {
        self.hands_on = false;
        self.clear(now);
        self.handed_on = self.wire.head();
        (self.wire.head()..self.wire.tail()).rev().map(|at| self.wire.at(at))
    }

    /// Undoes that the newest packet came, which was handed on to this link and, at `now`, has not reached it yet.
    pub(crate) fn take_back(&mut self, now: Time) -> Option<Packet> {
        let packet = self.wire.pop_newest()?;
        self.accepted_bytes -= packet.wire_bytes();
        if packet.class() != 0 {
            self.counts.arrived[usize::from(packet.class()) & (CLASSES - 1)] -= 1;
        }
        self.busy = match self.wire.len() {
            0 => self.busy.min(now),
            _ => Time::ZERO + (self.wire.newest_slot().at - (Time::ZERO + self.delay)),
        };
        Some(packet)
    }

    /// Arrivals at the far end that were events, of a link that hands nothing on any more.
    pub(crate) fn events(&self) -> u64 {
        self.wire.head() - self.handed_on
    }

    #[cfg(feature = "oracle")]
    pub(crate) fn handed_on(&self) -> u64 {
        self.handed_on
    }
}
