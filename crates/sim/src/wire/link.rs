//! One direction of a cable: the output queue, the transmitter and the wire.
//!
//! A link makes one event per packet: its arrival at the far end.
//!
//! On a FIFO link a packet's departure is known when it comes (`max(busy, now)`), so it goes straight
//! onto the wire with its arrival time. Whether it fits is decided by time: what waits is at most
//! what the transmitter does until it is free. Only near the limit is the exact occupancy counted,
//! by a cursor that follows the packet in transmission.
//!
//! Any other discipline is committed lazily: packets wait in a [`Queue`], and whenever the link is
//! touched at time t, every transmission that began by t is replayed, in order, with the choice that
//! the discipline had then. A packet that waits implies one in transmission, so the oldest packet on
//! the wire is always the link's next event, and no event for the end of a transmission is needed. A
//! delivery leaves the replay to a later one for as long as there is another packet on the wire.
//!
//! So are queues that decide by time or by chance; each is asked for a packet at the instant at which the transmitter was
//! free, in vain too. What they drop then is noticed when the link is touched: see `settle`.

mod change;
mod cursor;
mod door;
mod hand_on;
mod spec;

#[cfg(feature = "oracle")]
pub(crate) use self::door::Hazards;
pub(crate) use self::door::PlannedDrop;
pub(crate) use self::spec::{LinkCounts, LinkSpec};

use self::cursor::Cursor;
use self::door::Door;
use crate::config::Discipline;
use crate::records::CLASSES;
use crate::routing::network::{Limit, Room};
use crate::wire::memory::SwitchSpec;
use crate::wire::packet::{Flags, Packet};
use crate::wire::qdisc::{ActiveQueue, Queue};
use sparelane_core::rate::ByteTime;
use sparelane_core::{Dur, Rate, Ring, Time};

/// The link. What every packet touches comes first, in two cache lines: the first serves those that
/// leave, both those that come.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Link {
    /// On the wire or committed to it, in order of arrival.
    wire: Ring<Packet>,
    /// When the transmitter is free.
    busy: Time,
    /// When to tell that the transmitter is idle, if somebody asked.
    wake: Time,
    /// A packet that would wait less than this for the transmitter simply goes onto the wire. FIFO: it
    /// surely fits, needs no mark, and makes no new peak. Queue: nothing waits, and the transmitter is idle.
    closer_look_from: Dur,
    /// Packets wait in a queue, or the transmitter is going to ask an active one for a packet.
    waits: bool,
    /// Packets below class 0 are dropped as they come.
    bars_low_priority: bool,
    /// What goes onto the wire goes to the next link as well, at once: see `engine/tandems.rs`. Then the wire makes no events, and
    /// what has arrived at its far end may still be on it.
    pub(crate) hands_on: bool,
    byte_time: ByteTime,
    delay: Dur,
    /// Bytes that ever came onto the wire.
    accepted_bytes: u64,
    closer_look: CloserLook,
    queue: Waiting,
    door: Option<Box<Door>>,
    /// What `closer_look_from` is while nothing waits.
    closer_look_when_empty: Dur,
    /// The least time that a packet takes. Where it is not zero, every packet comes by the careful way.
    least: Dur,
    rate: Rate,
    room: Room,
    mark_at: Option<Limit>,
    /// Packets leave as they come, and what happens to each is known then.
    can_hand_on: bool,
    /// As well, and a packet that waits for less than one of the largest size is neither dropped nor marked.
    can_follow: bool,
    /// Arrivals while it handed on.
    handed_on: u64,
    counts: Box<LinkCounts>,
}

/// Where packets wait for the transmitter.
#[derive(Debug)]
enum Waiting {
    /// On the wire already, in the order in which they came.
    InOrder(Cursor),
    /// In a queue that sends the highest priority first.
    ByClass(Box<Queue>),
    /// In a queue that decides by time or by chance.
    Active(Box<ActiveQueue>),
}

/// From where on a packet on a FIFO link needs a closer look.
#[derive(Clone, Copy, Debug)]
struct CloserLook {
    /// The fewest packets on the wire, those that wait among them, at which one more may not fit, or may be marked. Zero
    /// where every packet that waits needs a closer look.
    doubtful_packets: u64,
    /// The longest that any packet waited for the transmitter.
    peak_wait: Dur,
    /// The shortest wait at which a packet may not fit, or may be marked.
    doubtful_from: Dur,
}

/// The smallest packet, by which a limit in packets becomes a time.
const SMALLEST_PACKET_BYTES: u64 = 40;

/// The shortest wait there is.
const ANY_WAIT: Dur = Dur::from_ps(1);

impl Waiting {
    fn new(spec: &LinkSpec, seed: u64, number: u64) -> Waiting {
        if let Some(queue) = Queue::new(&spec.queue, spec.room()) {
            return Waiting::ByClass(Box::new(queue));
        }
        match ActiveQueue::new(spec, seed, number) {
            Some(active) => Waiting::Active(Box::new(active)),
            None => Waiting::InOrder(Cursor::default()),
        }
    }
}

/// The shortest wait at which a packet on such a link may not fit, or may be marked.
fn doubtful_from(spec: &LinkSpec) -> Dur {
    let rate = spec.rate;
    let surely_fits = match spec.limit {
        Limit::Bytes(bytes) => rate.time_for(bytes).saturating_sub(rate.time_for(spec.largest_bytes) + ANY_WAIT),
        Limit::Packets(packets) => rate.time_for(packets.saturating_sub(1).saturating_mul(SMALLEST_PACKET_BYTES)),
    };
    let surely_unmarked = spec.queue.mark_at.map_or(Dur::MAX, |mark_at| match mark_at {
        Limit::Bytes(bytes) => rate.time_for(bytes) / 2,
        Limit::Packets(packets) => rate.time_for(packets.saturating_mul(SMALLEST_PACKET_BYTES)) / 2,
    });
    surely_fits.min(surely_unmarked).max(ANY_WAIT)
}

impl Link {
    pub(crate) fn new(spec: &LinkSpec, seed: u64, number: u64) -> Link {
        let LinkSpec { rate, delay, limit, .. } = *spec;
        let packets_in = |limit: Limit| match limit {
            Limit::Bytes(bytes) => bytes / spec.largest_bytes.max(1),
            Limit::Packets(packets) => packets,
        };
        let door = Door::new(spec, seed, number).map(Box::new);
        let is_plain = spec.queue.discipline == Discipline::Fifo && spec.least.is_zero() && door.is_none();
        let doubtful_packets = spec.queue.mark_at.map_or(u64::MAX, packets_in).min(packets_in(limit));
        let doubtful_from = doubtful_from(spec);
        let can_hand_on = is_plain && spec.memory.is_none() && !spec.is_watched;
        let one_fits = doubtful_from > rate.time_for(spec.largest_bytes);
        let mut link = Link {
            wire: Ring::with_capacity(4),
            busy: Time::ZERO,
            byte_time: rate.byte_time(),
            delay,
            wake: Time::NEVER,
            closer_look_from: Dur::ZERO,
            closer_look_when_empty: Dur::ZERO,
            accepted_bytes: 0,
            waits: false,
            bars_low_priority: spec.queue.bars_low_priority,
            hands_on: false,
            queue: Waiting::new(spec, seed, number),
            door,
            closer_look: CloserLook {
                doubtful_packets: if is_plain { doubtful_packets } else { 0 },
                peak_wait: Dur::ZERO,
                doubtful_from,
            },
            least: spec.least,
            rate,
            room: spec.room(),
            mark_at: spec.queue.mark_at,
            can_hand_on,
            can_follow: can_hand_on && one_fits && !spec.queue.bars_low_priority,
            handed_on: 0,
            counts: Box::default(),
        };
        link.set_closer_look();
        link
    }

    /// Decides from what wait on a packet needs a closer look.
    fn set_closer_look(&mut self) {
        let waits = match &self.queue {
            Waiting::InOrder(_) => false,
            Waiting::ByClass(queue) => !queue.is_empty(),
            Waiting::Active(_) => self.waits,
        };
        self.closer_look_when_empty = match self.queue {
            _ if self.door.is_some() || !self.least.is_zero() => Dur::ZERO,
            Waiting::ByClass(_) => ANY_WAIT,
            _ => self.closer_look.doubtful_from.min(self.closer_look.peak_wait + ANY_WAIT),
        };
        self.note_waits(waits);
    }

    /// Whether packets wait has changed, or may have.
    #[inline(always)]
    fn note_waits(&mut self, waits: bool) {
        self.waits = waits;
        self.closer_look_from = if waits { Dur::ZERO } else { self.closer_look_when_empty };
    }

    /// Adds packets to drop.
    pub(crate) fn plan_drop(&mut self, planned: PlannedDrop) {
        self.opened_door().hazards.planned.push(planned);
    }

    /// Forgets what was planned for the flow in this slot.
    pub(crate) fn forget_drops(&mut self, flow: u32) {
        if let Some(Door { hazards, .. }) = self.door.as_deref_mut() {
            hazards.forget(flow);
        }
    }

    /// When this link next wants attention: an arrival at the far end, or its transmitter idle.
    #[inline(always)]
    pub(crate) fn next_event(&self) -> Time {
        self.next_arrival().min(self.wake)
    }

    #[inline(always)]
    fn next_arrival(&self) -> Time {
        self.wire.front().map_or(Time::NEVER, |packet| packet.at)
    }

    /// A packet comes to the output queue. Returns whether the link's next event may have changed.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        if packet.class() != 0 {
            self.counts.arrived[usize::from(packet.class()) & (CLASSES - 1)] += 1;
            if self.bars_low_priority {
                self.drop(*packet, dropped);
                return false;
            }
        }
        let start = self.busy.max(now);
        let wait = start - now;
        if wait >= self.closer_look_from && self.needs_care(wait) {
            return self.send_by_long_way(now, packet, dropped);
        }
        self.transmit(start, packet)
    }

    /// Whether a packet that waits long enough for a closer look needs one: not so on a plain FIFO link that holds few packets.
    #[inline(always)]
    fn needs_care(&self, wait: Dur) -> bool {
        self.wire.len() >= self.closer_look.doubtful_packets || wait > self.closer_look.peak_wait
    }

    #[inline(never)]
    fn send_by_long_way(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        if self.door.is_some() {
            return self.send_through_door(now, *packet, dropped);
        }
        match self.queue {
            Waiting::ByClass(_) => self.send_queued(now, packet, dropped),
            _ => self.send_fifo(now, packet, dropped),
        }
    }

    #[inline(never)]
    fn send_through_door(&mut self, now: Time, mut packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        self.passes_door(now, &mut packet, dropped) && self.send_onward(now, packet, dropped)
    }

    /// A packet comes to a queue that shares its memory with others, which hold `others_bytes` now.
    pub(crate) fn send_shared(
        &mut self,
        now: Time,
        mut packet: Packet,
        (memory, others_bytes): (&SwitchSpec, u64),
        dropped: &mut Vec<Packet>,
    ) -> bool {
        if packet.class() != 0 {
            self.counts.arrived[usize::from(packet.class()) & (CLASSES - 1)] += 1;
            if self.bars_low_priority {
                self.drop(packet, dropped);
                return false;
            }
        }
        if !self.passes_door(now, &mut packet, dropped) {
            return false;
        }
        loop {
            let (own_bytes, _) = self.waiting(now);
            if self.busy <= now || memory.admits(own_bytes, others_bytes, packet.wire_bytes()) {
                return self.send_onward(now, packet, dropped);
            }
            let victim = match &mut self.queue {
                Waiting::ByClass(queue) => queue.push_out(packet.class()),
                _ => None,
            };
            match victim {
                Some(victim) => self.drop(victim, dropped),
                None => {
                    self.drop(packet, dropped);
                    return false;
                }
            }
        }
    }

    /// Whether the packet comes through the door.
    fn passes_door(&mut self, now: Time, packet: &mut Packet, dropped: &mut Vec<Packet>) -> bool {
        let is_metered = self.door.as_ref().is_some_and(|door| door.meter.is_some());
        let waiting_bytes = if is_metered { self.waiting(now).0 } else { 0 };
        if let Some(door) = &mut self.door {
            if let Some(meter) = &mut door.meter {
                meter.pass(now, packet, waiting_bytes);
            }
            if door.hazards.drops(packet) {
                self.drop(*packet, dropped);
                return false;
            }
        }
        true
    }

    /// The queue itself, where the packet did not come by the short way.
    fn send_onward(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        match self.queue {
            Waiting::InOrder(_) => self.send_fifo(now, &packet, dropped),
            Waiting::ByClass(_) => self.send_queued(now, &packet, dropped),
            Waiting::Active(_) => self.send_active(now, packet, dropped),
        }
    }

    /// A queue that decides by time or by chance sees every packet, also where the transmitter is idle.
    #[cold]
    #[inline(never)]
    fn send_active(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        self.commit(now);
        let is_idle = self.busy <= now;
        let (was_empty, tail) = (self.wire.is_empty(), self.wire.tail());
        let Waiting::Active(active) = &mut self.queue else { return false };
        let before = active.fates.dropped.len();
        active.enqueue(now, packet, is_idle.then_some(self.busy));
        let victims = &active.fates.dropped[before..];
        victims.iter().for_each(|victim| self.counts.dropped[usize::from(victim.class()) & (CLASSES - 1)] += 1);
        self.counts.peak_backlog_bytes = self.counts.peak_backlog_bytes.max(active.backlog().0);
        self.waits = true;
        if is_idle {
            self.ask_active(now);
        }
        self.hand_over_drops(dropped);
        was_empty && self.wire.tail() > tail
    }

    /// Asks the active queue, at the instant at which the transmitter is free, for the packet to send.
    fn ask_active(&mut self, free_at: Time) {
        let Waiting::Active(active) = &mut self.queue else { return };
        let before = active.fates.dropped.len();
        let packet = active.dequeue(free_at);
        let victims = &active.fates.dropped[before..];
        victims.iter().for_each(|victim| self.counts.dropped[usize::from(victim.class()) & (CLASSES - 1)] += 1);
        match packet {
            Some(packet) => {
                self.transmit_checked(free_at, &packet);
            }
            None => self.waits = false,
        }
    }

    /// Replays what the active queue did until `now`, and hands over what it dropped.
    pub(crate) fn settle(&mut self, now: Time, dropped: &mut Vec<Packet>) {
        self.commit(now);
        self.hand_over_drops(dropped);
    }

    fn hand_over_drops(&mut self, dropped: &mut Vec<Packet>) {
        if let Waiting::Active(active) = &mut self.queue {
            dropped.append(&mut active.fates.dropped);
        }
    }

    /// Whether packets may be dropped while nobody touches the link.
    pub(crate) fn drops_by_itself(&self) -> bool {
        matches!(self.queue, Waiting::Active(_))
    }

    /// FIFO: a packet that may not fit, may be marked, or waits longer than any before it.
    #[inline(always)]
    fn send_fifo(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        let start = self.busy.max(now);
        let wait = start - now;
        let marked: Packet;
        let mut packet = packet;
        if wait >= self.closer_look.doubtful_from {
            let (bytes, packets) = self.waiting_in_order(now);
            if !self.room.has_room(bytes, packets, packet.wire_bytes()) {
                self.drop(*packet, dropped);
                return false;
            }
            let marks = self.mark_at.is_some_and(|mark_at| mark_at.is_reached(bytes, packets));
            if marks && packet.flags().has(Flags::ECN_CAPABLE) {
                marked = packet.with(Flags::MARKED);
                packet = &marked;
                self.counts.marked += 1;
            }
        }
        if wait > self.closer_look.peak_wait {
            self.closer_look.peak_wait = wait;
            self.set_closer_look();
        }
        if !self.least.is_zero() && wait > Dur::ZERO {
            self.note_backlog(now, packet.wire_bytes());
        }
        self.transmit_checked(start, packet)
    }

    /// Where packets take longer than their bytes, the longest wait does not tell the longest queue.
    #[cold]
    #[inline(never)]
    fn note_backlog(&mut self, now: Time, more_bytes: u64) {
        let (waiting_bytes, _) = self.waiting_in_order(now);
        self.counts.peak_backlog_bytes = self.counts.peak_backlog_bytes.max(waiting_bytes + more_bytes);
    }

    /// How long a packet of `bytes` is in transmission.
    #[inline(always)]
    fn time_of(&self, bytes: u64) -> Dur {
        self.byte_time.of(bytes).max(self.least)
    }

    /// As [`Link::transmit`], on any link.
    #[inline(always)]
    fn transmit_checked(&mut self, start: Time, packet: &Packet) -> bool {
        self.put_on_wire(packet, start + self.time_of(packet.wire_bytes()))
    }

    /// Puts a packet on the wire, its transmission beginning at `start`, where none takes longer than its bytes.
    #[inline(always)]
    fn transmit(&mut self, start: Time, packet: &Packet) -> bool {
        self.put_on_wire(packet, start + self.byte_time.of(packet.wire_bytes()))
    }

    /// Puts a packet on the wire, its transmission ending at `end`. Its route moves on by a link. Returns whether the packet
    /// is the next to arrive.
    #[inline(always)]
    fn put_on_wire(&mut self, packet: &Packet, end: Time) -> bool {
        let was_empty = self.wire.is_empty();
        self.busy = end;
        self.accepted_bytes += packet.wire_bytes();
        let slot = self.wire.push_slot();
        *slot = packet.onward(self.busy + self.delay);
        was_empty
    }

    #[inline(always)]
    fn send_queued(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        self.commit(now);
        let Waiting::ByClass(queue) = &mut self.queue else { return false };
        if self.busy <= now {
            return self.transmit_checked(now, packet);
        }
        let before = dropped.len();
        queue.enqueue(packet, dropped);
        if queue.backlog_bytes() > self.counts.peak_backlog_bytes {
            self.counts.peak_backlog_bytes = queue.backlog_bytes();
        }
        let waits = !queue.is_empty();
        self.note_waits(waits);
        if dropped.len() > before {
            self.count_dropped(&dropped[before..]);
        }
        false
    }

    /// Replays every transmission that began by `now`.
    #[inline(always)]
    fn commit(&mut self, now: Time) {
        if self.waits && self.busy <= now {
            self.commit_waiting(now);
        }
    }

    #[inline(never)]
    fn commit_waiting(&mut self, now: Time) {
        while self.busy <= now {
            let Waiting::ByClass(queue) = &mut self.queue else { return self.end_commit(now) };
            let Some(packet) = queue.dequeue() else { return self.end_commit(now) };
            self.transmit_checked(self.busy, &packet);
        }
    }

    /// Nothing waits in the queue any more; or the queue is an active one.
    #[inline(never)]
    fn end_commit(&mut self, now: Time) {
        if !self.drops_by_itself() {
            return self.note_waits(false);
        }
        while self.waits && self.busy <= now {
            self.ask_active(self.busy);
        }
        self.set_closer_look();
    }

    /// The oldest packet arrives at the far end. The wire must not be empty. What comes next is to be asked then.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, now: Time) -> Packet {
        let packet = *self.wire.pop_in_place();
        debug_assert!(packet.at == now, "a packet due at {} arrives at {now}", packet.at);
        packet
    }

    /// The link's next event after a delivery at `now`.
    #[inline(always)]
    pub(crate) fn next_after(&mut self, now: Time) -> Time {
        if self.wire.is_empty() {
            self.commit(now);
            return self.next_event();
        }
        self.wire.oldest_slot().at.min(self.wake)
    }

    /// The packet that comes after the one just delivered; any packet, where there is none.
    #[inline(always)]
    pub(crate) fn following(&self) -> &Packet {
        self.wire.oldest_slot()
    }

    /// Whether the transmitter has nothing to do at `now`.
    #[inline(always)]
    pub(crate) fn is_idle(&mut self, now: Time) -> bool {
        self.commit(now);
        self.busy <= now
    }

    /// Whether what waits is on the wire already.
    fn is_in_order(&self) -> bool {
        matches!(self.queue, Waiting::InOrder(_))
    }

    /// When a FIFO link has sent everything that has come to it.
    pub(crate) fn free_at(&self) -> Option<Time> {
        self.is_in_order().then_some(self.busy)
    }

    /// Asks for an event when the transmitter is free, at the earliest at `now`.
    pub(crate) fn wake_when_idle(&mut self, now: Time) {
        self.commit(now);
        self.wake = self.wake.min(self.busy.max(now));
    }

    /// Whether a packet of `bytes` that came now would find room.
    pub(crate) fn has_room(&mut self, now: Time, bytes: u64) -> bool {
        if self.is_in_order() && self.busy.saturating_since(now) < self.closer_look.doubtful_from {
            return true;
        }
        let (waiting_bytes, packets) = self.waiting(now);
        self.busy <= now || self.room.has_room(waiting_bytes, packets, bytes)
    }

    /// Asks for an event when there may be room for `bytes`, where there is none: when so much of a FIFO queue is gone, or
    /// when the next packet leaves any other.
    pub(crate) fn wake_when_room(&mut self, now: Time, bytes: u64) {
        let (mut waiting_bytes, mut packets) = self.waiting(now);
        let mut at = self.busy;
        if let Waiting::InOrder(cursor) = &self.queue {
            for place in cursor.place..self.wire.tail() {
                let packet = self.wire.at(place);
                let ends = self.delay + self.time_of(packet.wire_bytes());
                at = Time::from_ps((packet.at - Time::ZERO).saturating_sub(ends).as_ps());
                waiting_bytes -= packet.wire_bytes();
                packets -= 1;
                if self.room.has_room(waiting_bytes, packets, bytes) {
                    break;
                }
            }
        }
        self.wake = self.wake.min(at.max(now));
    }

    /// The wake-up that was asked for, if it comes before the next arrival.
    #[inline(always)]
    pub(crate) fn wakes(&mut self) -> bool {
        self.wake != Time::NEVER && self.takes_wake()
    }

    #[inline(never)]
    fn takes_wake(&mut self) -> bool {
        if self.next_arrival() <= self.wake {
            return false;
        }
        self.wake = Time::NEVER;
        true
    }

    #[cold]
    #[inline(never)]
    fn count_dropped(&mut self, victims: &[Packet]) {
        for victim in victims {
            self.counts.dropped[usize::from(victim.class()) & (CLASSES - 1)] += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn drop(&mut self, packet: Packet, dropped: &mut Vec<Packet>) {
        self.counts.dropped[usize::from(packet.class()) & (CLASSES - 1)] += 1;
        dropped.push(packet);
    }

    /// A packet that crossed the wire is lost at its end.
    #[cold]
    #[inline(never)]
    pub(crate) fn lose(&mut self, packet: Packet, dropped: &mut Vec<Packet>) {
        self.counts.lost += 1;
        dropped.push(packet);
    }

    /// Bytes and packets that wait at `now`, without the packet in transmission.
    pub(crate) fn waiting(&mut self, now: Time) -> (u64, u64) {
        self.commit(now);
        match &self.queue {
            Waiting::InOrder(_) => self.waiting_in_order(now),
            Waiting::ByClass(queue) => (queue.backlog_bytes(), queue.backlog_packets()),
            Waiting::Active(active) => active.backlog(),
        }
    }

    /// What waits on a FIFO link.
    fn waiting_in_order(&mut self, now: Time) -> (u64, u64) {
        let (delay, byte_time, least) = (self.delay, self.byte_time, self.least);
        let Waiting::InOrder(cursor) = &mut self.queue else { return (0, 0) };
        cursor.look(&self.wire, self.accepted_bytes, |packet| {
            packet.at <= now + delay + byte_time.of(packet.wire_bytes()).max(least)
        })
    }

    /// The rate that this link allows each of its RCP flows, if it computes one.
    pub(crate) fn explicit_rate(&self, now: Time) -> Option<Rate> {
        Some(self.door.as_ref()?.meter.as_ref()?.rate_at(now))
    }

    /// What this link counted until `now`.
    pub(crate) fn counts(&mut self, now: Time) -> LinkCounts {
        self.commit(now);
        if self.hands_on {
            self.clear(now);
        }
        let wire = &self.wire;
        let on_wire: u64 = (wire.head()..wire.tail()).map(|at| wire.at(at).wire_bytes()).sum();
        let mut counts = *self.counts;
        counts.delivered_packets = wire.head();
        counts.delivered_bytes = self.accepted_bytes - on_wire;
        // Arrivals of class 0 are not counted one by one: they are all that came less the others.
        let came = wire.tail() + self.queued_packets() + counts.dropped.iter().sum::<u64>();
        counts.arrived[0] = came - counts.arrived[1..].iter().sum::<u64>();
        match &self.queue {
            Waiting::ByClass(queue) => counts.marked = queue.marked(),
            Waiting::Active(active) => counts.marked = active.fates.marked,
            Waiting::InOrder(_) if self.least.is_zero() => {
                let peak = self.rate.bytes_in(self.closer_look.peak_wait);
                counts.peak_backlog_bytes = counts.peak_backlog_bytes.max(peak);
            }
            Waiting::InOrder(_) => {}
        }
        counts
    }

    /// Packets that came and neither were dropped nor have arrived at the far end.
    pub(crate) fn held_packets(&self) -> u64 {
        self.wire.len() + self.queued_packets()
    }

    /// Packets that wait in a queue, and not already on the wire.
    fn queued_packets(&self) -> u64 {
        match &self.queue {
            Waiting::InOrder(_) => 0,
            Waiting::ByClass(queue) => queue.backlog_packets(),
            Waiting::Active(active) => active.backlog().1,
        }
    }
}
