//! Strict priority over one shared buffer, by default with push-out.
//!
//! The lowest class number leaves first. A packet that does not fit pushes out the newest packets of the lowest waiting
//! class, if that class is lower than its own; otherwise it is dropped itself. This is the router of the RC3 papers
//! ("priority dropping and priority scheduling", NSDI 2014 section 5.1).
//!
//! Without push-out, a packet that does not fit is dropped, whatever its class: priority scheduling over a drop-tail
//! buffer.
//!
//! With a marking threshold, an ECN-capable packet is marked if it finds at least that much in the buffer, in all
//! classes together. Packets pushed out for it do not count.
//!
//! Data layout: one ring per class and a bitmap of non-empty classes, so that the class to serve and the class to push
//! out are each one bit-scan instruction.

use crate::records::CLASSES;
use crate::routing::network::{Limit, Room};
use crate::wire::link::LinkSpec;
use crate::wire::packet::{Flags, Packet};
use sparelane_core::Ring;

/// A priority queue.
#[derive(Clone, Debug)]
pub(crate) struct PriorityQueue {
    classes: [Ring<Packet>; CLASSES],
    /// Bit `c` is set while class `c` has a packet.
    occupied: u8,
    backlog_bytes: u64,
    backlog_packets: u64,
    limit_bytes: u64,
    limit_packets: u64,
    /// Free bytes that a packet needs, whatever its size.
    least_bytes: u64,
    /// Up to this backlog a packet certainly fits and needs no mark.
    plain_bytes: u64,
    push_out: bool,
    mark_at: Option<Limit>,
    marked: u64,
}

impl PriorityQueue {
    /// The queue of a link with this discipline.
    pub(crate) fn of(spec: &LinkSpec) -> PriorityQueue {
        PriorityQueue::new(spec.room(), spec.queue.push_out, spec.queue.mark_at)
    }

    fn new(room: Room, push_out: bool, mark_at: Option<Limit>) -> PriorityQueue {
        let (limit_bytes, limit_packets) = match room.limit {
            Limit::Bytes(bytes) => (bytes, u64::MAX),
            Limit::Packets(packets) => (u64::MAX, packets),
        };
        PriorityQueue {
            classes: std::array::from_fn(|_| Ring::with_capacity(4)),
            occupied: 0,
            backlog_bytes: 0,
            backlog_packets: 0,
            limit_bytes,
            limit_packets,
            least_bytes: room.least_bytes,
            plain_bytes: if mark_at.is_some() { 0 } else { limit_bytes.saturating_sub(room.least_bytes) },
            push_out,
            mark_at,
            marked: 0,
        }
    }

    fn fits(&self, packet: &Packet) -> bool {
        self.backlog_bytes + packet.wire_bytes().max(self.least_bytes) <= self.limit_bytes
            && self.backlog_packets < self.limit_packets
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, packet: &Packet, dropped: &mut Vec<Packet>) {
        if !self.put_if_plain(packet) {
            self.enqueue_slow(*packet, dropped);
        }
    }

    /// Adds a packet that certainly fits and needs no mark. Returns false and changes nothing otherwise.
    #[inline(always)]
    pub(crate) fn put_if_plain(&mut self, packet: &Packet) -> bool {
        let is_plain =
            self.backlog_bytes + packet.wire_bytes() <= self.plain_bytes && self.backlog_packets < self.limit_packets;
        if is_plain {
            self.put(packet);
        }
        is_plain
    }

    /// Handles a packet that may not fit or may need a mark.
    #[cold]
    #[inline(never)]
    fn enqueue_slow(&mut self, mut packet: Packet, dropped: &mut Vec<Packet>) {
        if !self.fits(&packet) && !self.make_room(&packet, dropped) {
            dropped.push(packet);
            return;
        }
        let marks = self.mark_at.is_some_and(|mark_at| mark_at.is_reached(self.backlog_bytes, self.backlog_packets));
        if marks && packet.flags().is_ecn_capable() {
            packet.set(Flags::CE);
            self.marked += 1;
        }
        self.put(&packet);
    }

    #[inline(always)]
    fn put(&mut self, packet: &Packet) {
        let class = usize::from(packet.class()) & (CLASSES - 1);
        self.backlog_bytes += packet.wire_bytes();
        self.backlog_packets += 1;
        self.occupied |= 1 << class;
        *self.classes[class].push_slot() = *packet;
    }

    /// Pushes out packets of lower classes until `packet` fits. Returns false if it cannot.
    fn make_room(&mut self, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        while !self.fits(packet) {
            match self.push_out(packet.class()) {
                Some(victim) => dropped.push(victim),
                None => return false,
            }
        }
        true
    }

    /// Removes the newest packet of the lowest class, if that class is below `class`.
    pub(crate) fn push_out(&mut self, class: u8) -> Option<Packet> {
        let lowest = (u8::BITS - 1).wrapping_sub(self.occupied.leading_zeros()) as usize;
        if !self.push_out || self.occupied == 0 || lowest <= usize::from(class) {
            return None;
        }
        let victim = self.classes[lowest].pop_newest()?;
        self.account_departure(lowest, self.classes[lowest].is_empty(), &victim);
        Some(victim)
    }

    #[inline]
    pub(crate) fn dequeue(&mut self) -> Option<Packet> {
        if self.occupied == 0 {
            return None;
        }
        let highest = self.occupied.trailing_zeros() as usize & (CLASSES - 1);
        let waiting = &mut self.classes[highest];
        let packet = *waiting.pop_in_place();
        let is_empty = waiting.rewind_if_empty();
        self.account_departure(highest, is_empty, &packet);
        Some(packet)
    }

    /// Updates the counts after `packet` left its class, which is now empty or not.
    #[inline(always)]
    fn account_departure(&mut self, class: usize, is_empty: bool, packet: &Packet) {
        self.backlog_bytes -= packet.wire_bytes();
        self.backlog_packets -= 1;
        self.occupied &= !(u8::from(is_empty) << class);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    #[inline]
    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes
    }

    /// Bytes that wait in the highest `count` classes.
    pub(crate) fn bytes_in_classes(&self, count: usize) -> u64 {
        let bytes_of = |ring: &Ring<Packet>| (ring.head()..ring.tail()).map(|at| ring.at(at).wire_bytes()).sum::<u64>();
        self.classes[..count].iter().map(bytes_of).sum()
    }

    pub(crate) fn backlog_packets(&self) -> u64 {
        self.backlog_packets
    }

    pub(crate) fn marked(&self) -> u64 {
        self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::packet::{Fields, Flags, NO_BLOCKS};

    fn packet(class: u8, seq: u32) -> Packet {
        let (flow, trigger, route) = (0, 0, 0);
        let flags = Flags::DATA;
        Packet::new(Fields { flow, seq, trigger, route, blocks: NO_BLOCKS, wire_bytes: 1000, flags, class })
    }

    fn drain(queue: &mut PriorityQueue) -> Vec<(u8, u32)> {
        std::iter::from_fn(|| queue.dequeue()).map(|packet| (packet.class(), packet.seq())).collect()
    }

    #[test]
    fn the_highest_priority_leaves_first_and_each_class_in_order() {
        let mut queue = PriorityQueue::new(Room::of(Limit::Packets(100)), true, None);
        let mut dropped = Vec::new();
        for (class, seq) in [(3, 0), (0, 1), (3, 2), (1, 3), (0, 4)] {
            queue.enqueue(&packet(class, seq), &mut dropped);
        }
        assert_eq!(drain(&mut queue), [(0, 1), (0, 4), (1, 3), (3, 0), (3, 2)]);
        assert!(dropped.is_empty() && queue.backlog_bytes() == 0);
    }

    #[test]
    fn the_newest_of_the_lowest_class_makes_room() {
        let mut queue = PriorityQueue::new(Room::of(Limit::Bytes(3_500)), true, None);
        let mut dropped = Vec::new();
        for (class, seq) in [(2, 0), (4, 1), (4, 2)] {
            queue.enqueue(&packet(class, seq), &mut dropped);
        }
        queue.enqueue(&packet(0, 3), &mut dropped);
        queue.enqueue(&packet(4, 4), &mut dropped);
        queue.enqueue(&packet(1, 5), &mut dropped);
        queue.enqueue(&packet(2, 6), &mut dropped);
        let victims: Vec<u32> = dropped.iter().map(|packet| packet.seq()).collect();
        assert_eq!(victims, [2, 4, 1, 6]);
        assert_eq!(drain(&mut queue), [(0, 3), (1, 5), (2, 0)]);
    }

    /// Each arrival finds one packet more, up to four; the fifth pushes out the last of class 4 and finds three.
    #[test]
    fn what_finds_the_threshold_or_more_is_marked_in_every_class() {
        for (mark_at, expected) in [
            (Limit::Bytes(2_000), [false, false, true, true, true]),
            (Limit::Packets(3), [false, false, false, true, true]),
            (Limit::Packets(4), [false; 5]),
        ] {
            let mut queue = PriorityQueue::new(Room::of(Limit::Packets(4)), true, Some(mark_at));
            let mut dropped = Vec::new();
            for (class, seq) in [(4, 0), (4, 1), (4, 2), (4, 3), (0, 4)] {
                let mut packet = packet(class, seq);
                packet.set(Flags::ECT_0);
                queue.enqueue(&packet, &mut dropped);
            }
            let mut packets: Vec<_> = std::iter::from_fn(|| queue.dequeue()).chain(dropped).collect();
            packets.sort_by_key(Packet::seq);
            let marked: Vec<_> = packets.iter().map(|packet| packet.flags().is_marked()).collect();
            assert_eq!(marked, expected, "{mark_at:?}");
            assert_eq!(queue.marked(), expected.iter().filter(|mark| **mark).count() as u64);
        }
    }

    #[test]
    fn packets_that_do_not_know_marks_carry_none() {
        let mut queue = PriorityQueue::new(Room::of(Limit::Packets(9)), true, Some(Limit::Packets(1)));
        (0..4).for_each(|seq| queue.enqueue(&packet(0, seq), &mut Vec::new()));
        assert!(std::iter::from_fn(|| queue.dequeue()).all(|packet| !packet.flags().is_marked()));
        assert_eq!(queue.marked(), 0);
    }

    #[test]
    fn without_push_out_the_arriving_packet_is_dropped_in_any_class() {
        let mut queue = PriorityQueue::new(Room::of(Limit::Packets(2)), false, None);
        let mut dropped = Vec::new();
        for (class, seq) in [(4, 0), (2, 1), (0, 2), (4, 3)] {
            queue.enqueue(&packet(class, seq), &mut dropped);
        }
        let victims: Vec<u32> = dropped.iter().map(|packet| packet.seq()).collect();
        assert_eq!((victims, drain(&mut queue)), (vec![2, 3], vec![(2, 1), (4, 0)]));
    }

    /// The first three leave 1000 bytes free: enough for the packet, but not for one of 1500.
    #[test]
    fn where_a_full_packet_needs_room_a_small_one_is_refused_without_it() {
        for (least_bytes, kept) in [(0, vec![(1, 3), (2, 0), (2, 1), (2, 2)]), (1_500, vec![(1, 3), (2, 0), (2, 1)])] {
            let mut queue = PriorityQueue::new(Room { limit: Limit::Bytes(4_000), least_bytes }, true, None);
            let mut dropped = Vec::new();
            for (class, seq) in [(2, 0), (2, 1), (2, 2), (1, 3)] {
                queue.enqueue(&packet(class, seq), &mut dropped);
            }
            assert_eq!(drain(&mut queue), kept, "{dropped:?}");
            assert_eq!(kept.len() + dropped.len(), 4);
        }
    }
}
