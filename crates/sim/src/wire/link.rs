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

mod hand_on;

use crate::config::{Discipline, QueueSpec, RoomNeeded};
use crate::records::CLASSES;
use crate::routing::network::{Limit, Loss, Room};
use crate::wire::loss::RandomLoss;
use crate::wire::memory::{SharedMemory, SwitchSpec};
use crate::wire::packet::{Flags, Packet};
use crate::wire::qdisc::{ActiveQueue, Queue};
use crate::wire::rcp_meter::RcpMeter;
use sparelane_core::rate::ByteTime;
use sparelane_core::{Dur, Rate, Ring, Time};
use std::sync::Arc;

/// What a link is made of.
#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    pub(crate) rate: Rate,
    pub(crate) delay: Dur,
    pub(crate) queue: Arc<QueueSpec>,
    pub(crate) limit: Limit,
    pub(crate) loss: Loss,
    /// The least time that a packet takes: what sending costs the processor of a host.
    pub(crate) least: Dur,
    /// The memory that the queue shares with others, if it does.
    pub(crate) memory: Option<SharedMemory>,
    /// Somebody looks at the queue between packets, or picks packets to drop.
    pub(crate) is_watched: bool,
    /// The largest packet that any flow sends.
    pub(crate) largest_bytes: u64,
}

impl LinkSpec {
    /// What the queue has room for.
    pub(crate) fn room(&self) -> Room {
        let least_bytes = match self.queue.room {
            RoomNeeded::Packet => 0,
            RoomNeeded::FullPacket => self.largest_bytes,
        };
        Room { limit: self.limit, least_bytes }
    }

    /// How long `packet` is in transmission.
    #[cfg(feature = "oracle")]
    pub(crate) fn time_of(&self, packet: &Packet) -> Dur {
        self.rate.byte_time().of(packet.wire_bytes()).max(self.least)
    }
}

/// Chosen segments of one flow, to be dropped as they come.
#[derive(Clone, Debug)]
pub(crate) struct PlannedDrop {
    pub(crate) flow: u32,
    /// Segment and how many transmissions of it are still to be dropped.
    pub(crate) segments: Vec<(u32, u32)>,
}

impl PlannedDrop {
    /// Whether `packet` is to be dropped now.
    pub(crate) fn takes(&mut self, packet: &Packet) -> bool {
        let hit = self.segments.iter_mut().find(|(segment, copies)| *segment == packet.seq() && *copies > 0);
        match hit {
            Some((_, copies)) if packet.flow() == self.flow && packet.flags().kind() == Flags::DATA => {
                *copies -= 1;
                true
            }
            _ => false,
        }
    }
}

/// What a link counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkCounts {
    pub(crate) arrived: [u64; CLASSES],
    pub(crate) dropped: [u64; CLASSES],
    pub(crate) lost: u64,
    pub(crate) marked: u64,
    pub(crate) delivered_packets: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) peak_backlog_bytes: u64,
}

/// What makes packets vanish besides a full queue.
#[derive(Clone, Debug)]
pub(crate) struct Hazards {
    random: Option<RandomLoss>,
    pub(crate) planned: Vec<PlannedDrop>,
}

impl Hazards {
    pub(crate) fn new(loss: Loss, seed: u64, link: u64) -> Hazards {
        Hazards { random: RandomLoss::new(loss, seed, link), planned: Vec::new() }
    }

    fn none() -> Hazards {
        Hazards { random: None, planned: Vec::new() }
    }

    /// Forgets what was planned for the flow in this slot.
    pub(crate) fn forget(&mut self, flow: u32) {
        self.planned.retain(|planned| planned.flow != flow);
    }

    /// Decides the fate of a packet that comes to the link: dropped at once, lost on the wire, or neither.
    pub(crate) fn drops(&mut self, packet: &mut Packet) -> bool {
        if self.planned.iter_mut().any(|planned| planned.takes(packet)) {
            return true;
        }
        if self.random.as_mut().is_some_and(|random| random.takes(packet)) {
            packet.lose_on_wire();
        }
        false
    }
}

/// What a packet meets at the door of a link, before its queue. A link with an active queue has one in any case: every packet
/// then comes by the careful way.
#[derive(Clone, Debug)]
struct Door {
    hazards: Hazards,
    meter: Option<RcpMeter>,
}

impl Door {
    /// The door of a link, if it has anything.
    fn new(spec: &LinkSpec, seed: u64, number: u64) -> Option<Door> {
        let hazards = Hazards::new(spec.loss, seed, number);
        let meter = spec.queue.rcp.map(|rcp| RcpMeter::new(rcp, spec.rate));
        let guards = spec.queue.discipline.active().is_some();
        (hazards.random.is_some() || meter.is_some() || guards).then_some(Door { hazards, meter })
    }

    fn open() -> Door {
        Door { hazards: Hazards::none(), meter: None }
    }
}

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
    /// Packets wait in `queue`, or the transmitter is going to ask `active` for one.
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
    fifo: Fifo,
    queue: Option<Box<Queue>>,
    active: Option<Box<ActiveQueue>>,
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

/// What a FIFO link knows of its queue: looked at only when it is long.
#[derive(Clone, Copy, Debug)]
struct Fifo {
    /// The fewest packets on the wire, those that wait among them, at which one more may not fit, or may be marked. Zero
    /// where every packet that waits needs a closer look.
    doubtful_packets: u64,
    /// The longest that any packet waited for the transmitter.
    peak_wait: Dur,
    /// The shortest wait at which a packet may not fit, or may be marked.
    doubtful_from: Dur,
    /// The first packet on the wire whose transmission may not have begun at the last look.
    cursor: u64,
    /// Bytes from the cursor on at the last look, and the bytes that had come onto the wire by then.
    waiting_bytes: u64,
    accepted_bytes: u64,
}

/// The smallest packet, by which a limit in packets becomes a time.
const SMALLEST_PACKET_BYTES: u64 = 40;

/// The shortest wait there is.
const ANY_WAIT: Dur = Dur::from_ps(1);

impl Link {
    pub(crate) fn new(spec: &LinkSpec, seed: u64, number: u64) -> Link {
        let LinkSpec { rate, delay, limit, .. } = *spec;
        let surely_fits = match limit {
            Limit::Bytes(bytes) => rate.time_for(bytes).saturating_sub(rate.time_for(spec.largest_bytes) + ANY_WAIT),
            Limit::Packets(packets) => rate.time_for(packets.saturating_sub(1).saturating_mul(SMALLEST_PACKET_BYTES)),
        };
        let surely_unmarked = spec.queue.mark_at.map_or(Dur::MAX, |mark_at| match mark_at {
            Limit::Bytes(bytes) => rate.time_for(bytes) / 2,
            Limit::Packets(packets) => rate.time_for(packets.saturating_mul(SMALLEST_PACKET_BYTES)) / 2,
        });
        let packets_in = |limit: Limit| match limit {
            Limit::Bytes(bytes) => bytes / spec.largest_bytes.max(1),
            Limit::Packets(packets) => packets,
        };
        let door = Door::new(spec, seed, number).map(Box::new);
        let is_plain = spec.queue.discipline == Discipline::Fifo && spec.least.is_zero() && door.is_none();
        let doubtful_packets = spec.queue.mark_at.map_or(u64::MAX, packets_in).min(packets_in(limit));
        let doubtful_from = surely_fits.min(surely_unmarked).max(ANY_WAIT);
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
            queue: Queue::new(&spec.queue, spec.room()).map(Box::new),
            active: ActiveQueue::new(spec, seed, number).map(Box::new),
            door,
            fifo: Fifo {
                doubtful_packets: if is_plain { doubtful_packets } else { 0 },
                peak_wait: Dur::ZERO,
                doubtful_from,
                cursor: 0,
                waiting_bytes: 0,
                accepted_bytes: 0,
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
            Some(queue) => !queue.is_empty(),
            None => self.waits && self.active.is_some(),
        };
        self.closer_look_when_empty = match self.queue {
            _ if self.door.is_some() || !self.least.is_zero() => Dur::ZERO,
            Some(_) => ANY_WAIT,
            None => self.fifo.doubtful_from.min(self.fifo.peak_wait + ANY_WAIT),
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
        self.door.get_or_insert_with(|| Box::new(Door::open())).hazards.planned.push(planned);
        self.fifo.doubtful_packets = 0;
        self.set_closer_look();
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
        self.wire.len() >= self.fifo.doubtful_packets || wait > self.fifo.peak_wait
    }

    #[inline(never)]
    fn send_by_long_way(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        if self.door.is_some() {
            return self.send_through_door(now, *packet, dropped);
        }
        if self.queue.is_some() { self.send_queued(now, packet, dropped) } else { self.send_fifo(now, packet, dropped) }
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
            match self.queue.as_mut().and_then(|queue| queue.push_out(packet.class())) {
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
        if self.queue.is_some() {
            self.send_queued(now, &packet, dropped)
        } else if self.active.is_some() {
            self.send_active(now, packet, dropped)
        } else {
            self.send_fifo(now, &packet, dropped)
        }
    }

    /// A queue that decides by time or by chance sees every packet, also where the transmitter is idle.
    #[cold]
    #[inline(never)]
    fn send_active(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        self.commit(now);
        let is_idle = self.busy <= now;
        let (was_empty, tail) = (self.wire.is_empty(), self.wire.tail());
        let Some(active) = &mut self.active else { return false };
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
        let Some(active) = &mut self.active else { return };
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
        if let Some(active) = &mut self.active {
            dropped.append(&mut active.fates.dropped);
        }
    }

    /// Whether packets may be dropped while nobody touches the link.
    pub(crate) fn drops_by_itself(&self) -> bool {
        self.active.is_some()
    }

    /// FIFO: a packet that may not fit, may be marked, or waits longer than any before it.
    #[inline(always)]
    fn send_fifo(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        let start = self.busy.max(now);
        let wait = start - now;
        let marked: Packet;
        let mut packet = packet;
        if wait >= self.fifo.doubtful_from {
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
        if wait > self.fifo.peak_wait {
            self.fifo.peak_wait = wait;
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
        let Some(queue) = &mut self.queue else { return false };
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
            let Some(packet) = self.queue.as_mut().and_then(|queue| queue.dequeue()) else {
                return self.end_commit(now);
            };
            self.transmit_checked(self.busy, &packet);
        }
    }

    /// Nothing waits in the queue any more; or the queue is an active one.
    #[inline(never)]
    fn end_commit(&mut self, now: Time) {
        if self.active.is_none() {
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

    /// When a FIFO link has sent everything that has come to it.
    pub(crate) fn free_at(&self) -> Option<Time> {
        (self.queue.is_none() && self.active.is_none()).then_some(self.busy)
    }

    /// Asks for an event when the transmitter is free, at the earliest at `now`.
    pub(crate) fn wake_when_idle(&mut self, now: Time) {
        self.commit(now);
        self.wake = self.wake.min(self.busy.max(now));
    }

    /// Whether a packet of `bytes` that came now would find room.
    pub(crate) fn has_room(&mut self, now: Time, bytes: u64) -> bool {
        let in_order = self.queue.is_none() && self.active.is_none();
        if in_order && self.busy.saturating_since(now) < self.fifo.doubtful_from {
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
        if self.queue.is_none() && self.active.is_none() {
            for place in self.fifo.cursor..self.wire.tail() {
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
        if let Some(queue) = &self.queue {
            return (queue.backlog_bytes(), queue.backlog_packets());
        }
        if let Some(active) = &self.active {
            return active.backlog();
        }
        self.waiting_in_order(now)
    }

    /// What waits on a FIFO link.
    fn waiting_in_order(&mut self, now: Time) -> (u64, u64) {
        let wire = &self.wire;
        let fifo = &mut self.fifo;
        if fifo.cursor < wire.head() {
            // Packets that were delivered since the last look: count what is left anew.
            fifo.cursor = wire.head();
            fifo.waiting_bytes = (wire.head()..wire.tail()).map(|at| wire.at(at).wire_bytes()).sum();
        } else {
            fifo.waiting_bytes += self.accepted_bytes - fifo.accepted_bytes;
        }
        fifo.accepted_bytes = self.accepted_bytes;
        // Transmissions that began have left the queue.
        while fifo.cursor < wire.tail() {
            let packet = wire.at(fifo.cursor);
            if packet.at > now + self.delay + self.byte_time.of(packet.wire_bytes()).max(self.least) {
                break;
            }
            fifo.waiting_bytes -= packet.wire_bytes();
            fifo.cursor += 1;
        }
        (fifo.waiting_bytes, wire.tail() - fifo.cursor)
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
        match (&self.queue, &self.active) {
            (Some(queue), _) => counts.marked = queue.marked(),
            (_, Some(active)) => counts.marked = active.fates.marked,
            _ if self.least.is_zero() => counts.peak_backlog_bytes = self.rate.bytes_in(self.fifo.peak_wait),
            _ => {}
        }
        counts
    }

    /// Packets that came and neither were dropped nor have arrived at the far end.
    pub(crate) fn held_packets(&self) -> u64 {
        self.wire.len() + self.queued_packets()
    }

    /// Packets that wait in a queue, and not already on the wire.
    fn queued_packets(&self) -> u64 {
        let in_active = self.active.as_ref().map_or(0, |active| active.backlog().1);
        self.queue.as_ref().map_or(in_active, |queue| queue.backlog_packets())
    }
}
