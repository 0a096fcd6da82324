//! One direction of a cable: the output queue, the transmitter and the wire.
//!
//! A link makes one event per packet: its arrival at the far end.
//!
//! On a FIFO link, a packet's departure is known on arrival (`max(busy_until, now)`), so the packet goes straight onto
//! the wire with its arrival time. Admission is decided by time: the backlog is at most what the transmitter sends
//! until it is free. Only near the limit is the exact backlog counted, by a cursor that follows the packet in
//! transmission.
//!
//! Any other discipline is committed lazily. Packets wait in a [`PriorityQueue`] or an [`ActiveQueue`]. Whenever the
//! link is touched at time t, every transmission that began by t is replayed, in order, with the choice that the
//! discipline had then. This is exact: a waiting packet implies one in transmission, so the oldest packet on the wire
//! is always the link's next event, and the end of a transmission needs no event. A delivery postpones the replay while
//! another packet is on the wire.
//!
//! An active queue is asked for a packet at each instant at which the transmitter became free, even if it then turns
//! out to be empty, because some laws keep state about that. Drops during a replay are collected when the link is
//! touched: see `settle`.
//!
//! Invariants:
//!
//! - `wire` is sorted by arrival time, and `busy_until` is the end of the last transmission that was committed to it.
//! - While `waits` is false, nothing is in the queue, and every packet that arrived is on the wire, delivered or
//!   dropped.
//! - `slow_path_from` is zero whenever a packet must not take the fast path.

mod change;
mod controlled;
mod cursor;
mod deferring;
mod fused;
mod ingress;
mod spec;
mod traced;

pub(crate) use self::controlled::Turn;
#[cfg(feature = "oracle")]
pub(crate) use self::ingress::Faults;
pub(crate) use self::ingress::PlannedDrop;
pub(crate) use self::spec::{LinkCounts, LinkSpec};

use self::controlled::Controlled;
use self::cursor::Cursor;
use self::ingress::Ingress;
use self::traced::Traced;
use crate::config::Discipline;
use crate::records::CLASSES;
use crate::routing::network::{Limit, Room};
use crate::wire::memory::SwitchSpec;
use crate::wire::packet::{Flags, Packet};
use crate::wire::qdisc::{self, ActiveQueue, PriorityQueue};
use crate::wire::trace::Follower;
use sparelane_core::rate::ByteTime;
use sparelane_core::{Dur, Rate, Ring, Time, prefetch};

/// A link.
///
/// Fields that every packet touches come first, in two cache lines: a departure touches only the first, an arrival
/// both. All that is rare (faults, counters, queues) is behind a pointer or on later lines. The fast path has two
/// branches that always go the same way on an uncongested FIFO link: class 0, and a wait below `slow_path_from`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Link {
    /// Packets on the wire or committed to it, in order of arrival.
    wire: Ring<Packet>,
    /// The end of the last committed transmission.
    busy_until: Time,
    /// The time of the requested wake-up; [`Time::NEVER`] without one.
    wake: Time,
    /// A packet that would wait less than this goes straight onto the wire. On a FIFO link such a packet certainly
    /// fits, needs no mark and sets no new peak. With a queue, nothing waits and the transmitter is idle.
    slow_path_from: Dur,
    /// True while packets wait in a queue, or the transmitter still has to ask an active queue for a packet.
    waits: bool,
    /// Packets of class 1 and below are dropped on arrival.
    bars_low_priority: bool,
    /// Packets go onto the next link's wire as well, at once: see `engine/tandems.rs`. This wire then makes no events,
    /// and packets that have arrived at its far end may still be in the ring.
    pub(crate) is_fused: bool,
    /// The queue may mark packets: `mark_at` has a threshold.
    may_mark: bool,
    /// Packets are taken off the wire in bulk, and make no events: see `deferring.rs`.
    pub(crate) defers: bool,
    byte_time: ByteTime,
    delay: Dur,
    /// Bytes ever put onto the wire.
    accepted_bytes: u64,
    exact_check: ExactCheck,
    queue: Waiting,
    ingress: Option<Box<Ingress>>,
    /// The value of `slow_path_from` while nothing waits.
    slow_path_when_empty: Dur,
    /// The least time that a packet occupies the transmitter. Unless it is zero, every packet takes the slow path.
    min_time: Dur,
    rate: Rate,
    room: Room,
    mark_at: Option<Limit>,
    /// Packets leave in order, and the outcome of each is known on arrival.
    can_fuse: bool,
    /// In addition, a packet that waits less than the largest packet takes is neither dropped nor marked.
    can_follow: bool,
    /// The link may change while packets wait.
    changes: bool,
    /// The transmitter of a link that follows a trace, if its queue is an active one.
    follower: Option<Box<Follower>>,
    /// Arrivals at the far end while the link was fused, which were no events.
    fused_arrivals: u64,
    counts: Box<LinkCounts>,
}

/// The place where packets wait for the transmitter.
#[derive(Debug)]
enum Waiting {
    /// Packets are on the wire already, in order of arrival.
    InOrder(Cursor),
    /// The same on a link that follows a trace.
    Traced(Box<Traced>),
    /// Packets wait in a queue that sends the lowest class number first.
    ByClass(Box<PriorityQueue>),
    /// Packets wait in an active queue, which decides by time or by chance.
    Active(Box<ActiveQueue>),
    /// Packets wait in a queue of a link with PAUSE, RCP's meter or telemetry.
    Controlled(Box<Controlled>),
}

/// The thresholds from which a packet on a FIFO link needs the exact backlog.
#[derive(Clone, Copy, Debug)]
struct ExactCheck {
    /// The fewest packets on the wire, including waiting ones, at which one more may not fit or may need a mark. Zero
    /// if every packet that waits needs the slow path.
    from_packets: u64,
    /// The longest wait of any packet so far, from which the largest backlog follows.
    peak_wait: Dur,
    /// The shortest wait at which a packet may not fit or may need a mark.
    from_wait: Dur,
}

/// The size of the smallest packet, which converts a limit in packets to a lower bound in time.
const SMALLEST_PACKET_BYTES: u64 = 40;

/// The shortest wait above zero.
const ANY_WAIT: Dur = Dur::from_ps(1);

impl Waiting {
    fn new(spec: &LinkSpec, seed: u64, number: u64) -> Waiting {
        if let Some(trace) = &spec.trace {
            if spec.queue.discipline == Discipline::Fifo && !spec.is_controlled {
                return Waiting::Traced(Box::new(Traced::new(trace)));
            }
            if let Some(law) = qdisc::law_of(spec) {
                return Waiting::Active(Box::new(ActiveQueue::of(law)));
            }
        }
        match &spec.queue.discipline {
            Discipline::Fifo | Discipline::Priority if spec.is_controlled => {
                Waiting::Controlled(Box::new(Controlled::new(spec, seed, number)))
            }
            Discipline::Fifo => Waiting::InOrder(Cursor::default()),
            Discipline::Priority => Waiting::ByClass(Box::new(PriorityQueue::of(spec))),
            Discipline::Active(law) => Waiting::Active(Box::new(ActiveQueue::new(&**law, spec, seed, number))),
        }
    }
}

/// The shortest wait at which a packet on such a link may not fit or may need a mark. It errs on the early side: a
/// waiting packet is counted from the first byte of its transmission to the last.
fn exact_check_wait(spec: &LinkSpec) -> Dur {
    let rate = spec.rate;
    let surely_fits = match spec.limit {
        Limit::Bytes(bytes) => rate.time_for(bytes).saturating_sub(rate.time_for(spec.largest_bytes) + ANY_WAIT),
        Limit::Packets(packets) => rate.time_for(packets.saturating_sub(1).saturating_mul(SMALLEST_PACKET_BYTES)),
    };
    let surely_unmarked = spec.queue.mark_at.map_or(Dur::MAX, |mark_at| match mark_at {
        // Half of the threshold leaves a margin for the packet in transmission, which a backlog does not include.
        Limit::Bytes(bytes) => rate.time_for(bytes) / 2,
        Limit::Packets(packets) => rate.time_for(packets.saturating_mul(SMALLEST_PACKET_BYTES)) / 2,
    });
    surely_fits.min(surely_unmarked).max(ANY_WAIT)
}

impl Link {
    /// The cache lines, from the start of a link, that every packet touches.
    pub(crate) const HOT_LINES: usize = 2;

    pub(crate) fn new(spec: &LinkSpec, seed: u64, number: u64) -> Link {
        let LinkSpec { rate, delay, limit, .. } = *spec;
        let packets_in = |limit: Limit| match limit {
            Limit::Bytes(bytes) => bytes / spec.largest_bytes.max(1),
            Limit::Packets(packets) => packets,
        };
        let queue = Waiting::new(spec, seed, number);
        let (is_in_order, is_active) = (matches!(queue, Waiting::InOrder(_)), matches!(queue, Waiting::Active(_)));
        let ingress = Ingress::new(spec, is_active, seed, number).map(Box::new);
        // Only a plain FIFO link can skip the exact check of its limit.
        let is_undisturbed = spec.min_time.is_zero() && ingress.is_none();
        let is_plain = is_in_order && is_undisturbed;
        let from_packets = spec.queue.mark_at.map_or(u64::MAX, packets_in).min(packets_in(limit));
        let from_wait = exact_check_wait(spec);
        // A fused link makes no events, but a shared memory and observers need them.
        let departs_in_order = is_in_order || matches!(queue, Waiting::Traced(_));
        let is_unseen = spec.memory.is_none() && !spec.is_watched && !spec.changes;
        let can_fuse = departs_in_order && is_undisturbed && is_unseen;
        let one_fits = from_wait > rate.time_for(spec.largest_bytes);
        let mut link = Link {
            wire: Ring::with_capacity(4),
            busy_until: Time::ZERO,
            byte_time: rate.byte_time(),
            delay,
            wake: Time::NEVER,
            slow_path_from: Dur::ZERO,
            slow_path_when_empty: Dur::ZERO,
            accepted_bytes: 0,
            waits: false,
            bars_low_priority: spec.queue.bars_low_priority,
            is_fused: false,
            may_mark: spec.queue.mark_at.is_some(),
            defers: false,
            queue,
            ingress,
            exact_check: ExactCheck {
                from_packets: if is_plain { from_packets } else { 0 },
                peak_wait: Dur::ZERO,
                from_wait,
            },
            min_time: spec.min_time,
            rate,
            room: spec.room(),
            mark_at: spec.queue.mark_at,
            can_fuse,
            changes: spec.changes,
            follower: spec.trace.as_ref().filter(|_| is_active).map(|trace| Box::new(Follower::new(trace))),
            can_follow: can_fuse && is_in_order && one_fits && !spec.queue.bars_low_priority,
            fused_arrivals: 0,
            counts: Box::default(),
        };
        link.update_slow_path();
        link
    }

    /// Recomputes the threshold of the slow path after a change of the queue, the peak or the ingress.
    fn update_slow_path(&mut self) {
        let waits = match &self.queue {
            Waiting::InOrder(_) | Waiting::Traced(_) => false,
            Waiting::ByClass(queue) => !queue.is_empty(),
            Waiting::Active(_) | Waiting::Controlled(_) => self.waits,
        };
        self.slow_path_when_empty = match self.queue {
            Waiting::Controlled(_) | Waiting::Traced(_) => Dur::ZERO,
            _ if self.ingress.is_some() || !self.min_time.is_zero() => Dur::ZERO,
            Waiting::ByClass(_) => ANY_WAIT,
            _ => self.exact_check.from_wait.min(self.exact_check.peak_wait + ANY_WAIT),
        };
        self.set_waits(waits);
    }

    /// Notes whether packets wait. Sets the threshold to zero while they do, so that the fast path needs a single
    /// comparison.
    #[inline(always)]
    fn set_waits(&mut self, waits: bool) {
        self.waits = waits;
        self.slow_path_from = if waits { Dur::ZERO } else { self.slow_path_when_empty };
    }

    /// Adds scripted drops.
    pub(crate) fn plan_drop(&mut self, planned: PlannedDrop) {
        self.ingress_mut().faults.planned.push(planned);
    }

    /// Discards the scripted drops of the flow in this slot.
    pub(crate) fn forget_drops(&mut self, flow: u32) {
        if let Some(Ingress { faults, .. }) = self.ingress.as_deref_mut() {
            faults.forget(flow);
        }
    }

    /// The time of the link's next event: an arrival at the far end, or a wake-up.
    #[inline(always)]
    pub(crate) fn next_event(&self) -> Time {
        self.next_arrival().min(self.wake)
    }

    #[inline(always)]
    fn next_arrival(&self) -> Time {
        self.wire.front().map_or(Time::NEVER, |packet| packet.at)
    }

    /// Passes a packet to the output queue. Returns true if the link's next event may have changed.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        if !packet.is_in_class_0() {
            self.counts.arrived[usize::from(packet.class()) & (CLASSES - 1)] += 1;
            if self.bars_low_priority {
                self.drop(packet.in_words(), dropped);
                return false;
            }
        }
        // Class 0 is not counted here: `counts` derives it, which keeps the counters' cache line out of the fast path.
        let start = self.busy_until.max(now);
        let wait = start - now;
        if self.takes_slow_path(wait) {
            // A copy: the address of the packet itself would keep it in memory on the fast path.
            return self.send_slow(now, packet.in_words(), dropped);
        }
        self.transmit(start, packet)
    }

    /// Returns true unless a plain FIFO link holds few packets and the wait is no new peak: such a packet fits for
    /// certain.
    #[inline(always)]
    fn takes_slow_path(&self, wait: Dur) -> bool {
        let is_checked = wait >= self.slow_path_from;
        is_checked && (self.wire.len() >= self.exact_check.from_packets || wait > self.exact_check.peak_wait)
    }

    /// Out of line: inlined, it would push the fast path out of the instruction cache. It calls other functions only, so
    /// that it saves no registers.
    #[inline(never)]
    fn send_slow(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        if self.ingress.is_some() {
            return self.send_through_ingress(now, packet, dropped);
        }
        match self.queue {
            Waiting::ByClass(_) => self.send_queued(now, &packet, dropped),
            Waiting::Controlled(_) => self.send_controlled(now, &packet, dropped),
            Waiting::Traced(_) => self.send_traced(now, &packet, dropped),
            _ => self.send_fifo(now, &packet, dropped),
        }
    }

    #[inline(never)]
    fn send_through_ingress(&mut self, now: Time, mut packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        self.passes_ingress(now, &mut packet, dropped) && self.send_to_queue(now, packet, dropped)
    }

    /// Passes a packet to a queue that shares its memory with others, which hold `others_bytes` now.
    pub(crate) fn send_shared(
        &mut self,
        now: Time,
        mut packet: Packet,
        (memory, others_bytes): (&SwitchSpec, u64),
        dropped: &mut Vec<Packet>,
    ) -> bool {
        if !packet.is_in_class_0() {
            self.counts.arrived[usize::from(packet.class()) & (CLASSES - 1)] += 1;
            if self.bars_low_priority {
                self.drop(packet, dropped);
                return false;
            }
        }
        if !self.passes_ingress(now, &mut packet, dropped) {
            return false;
        }
        loop {
            // As in every queue, a packet that finds the transmitter idle does not wait and needs no memory.
            let (own_bytes, _) = self.waiting(now);
            let is_idle = self.busy_until <= now && !self.waits;
            if is_idle || memory.admits(own_bytes, others_bytes, packet.wire_bytes()) {
                return self.send_to_queue(now, packet, dropped);
            }
            let victim = match &mut self.queue {
                Waiting::ByClass(queue) => queue.push_out(packet.class()),
                Waiting::Controlled(control) => control.push_out(packet.class()),
                Waiting::Active(active) => active.push_out(packet.class()),
                Waiting::InOrder(_) | Waiting::Traced(_) => None,
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

    /// Counts an arriving packet in RCP's meter, and applies faults. Returns false if the packet was dropped.
    fn passes_ingress(&mut self, now: Time, packet: &mut Packet, dropped: &mut Vec<Packet>) -> bool {
        let is_metered = self.ingress.as_ref().is_some_and(|ingress| ingress.meter.is_some());
        let waiting_bytes = if is_metered { self.waiting(now).0 } else { 0 };
        if let Some(ingress) = &mut self.ingress {
            if let Some(meter) = &mut ingress.meter {
                meter.handle_arrival(now, packet, waiting_bytes);
            }
            if ingress.faults.drops(now, packet) {
                self.drop(*packet, dropped);
                return false;
            }
            if ingress.has_stage {
                packet.stage();
            }
        }
        true
    }

    /// Passes a packet to the queue, after all checks in front of it.
    fn send_to_queue(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        match self.queue {
            Waiting::InOrder(_) => self.send_fifo(now, &packet, dropped),
            Waiting::Traced(_) => self.send_traced(now, &packet, dropped),
            Waiting::ByClass(_) => self.send_queued(now, &packet, dropped),
            Waiting::Active(_) => self.send_active(now, packet, dropped),
            Waiting::Controlled(_) => self.send_controlled(now, &packet, dropped),
        }
    }

    /// An active queue sees every packet, even if the transmitter is idle.
    #[cold]
    #[inline(never)]
    fn send_active(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        self.commit(now);
        let is_idle = self.busy_until <= now;
        let (was_empty, tail) = (self.wire.is_empty(), self.wire.tail());
        let Waiting::Active(active) = &mut self.queue else { return false };
        let before = active.fates.dropped.len();
        active.enqueue(now, packet, is_idle.then_some(self.busy_until));
        let victims = &active.fates.dropped[before..];
        victims.iter().for_each(|victim| self.counts.dropped[usize::from(victim.class()) & (CLASSES - 1)] += 1);
        self.counts.peak_backlog_bytes = self.counts.peak_backlog_bytes.max(active.backlog().0);
        self.waits = true;
        if is_idle {
            self.dequeue_active(now, false);
        }
        self.collect_drops(dropped);
        was_empty && self.wire.tail() > tail
    }

    /// Asks the active queue for the packet to send, at the instant at which the transmitter became free. `has_waited` is
    /// false for a packet that arrived at this instant.
    fn dequeue_active(&mut self, free_at: Time, has_waited: bool) {
        let Waiting::Active(active) = &mut self.queue else { return };
        let before = active.fates.dropped.len();
        let packet = active.dequeue(free_at);
        let victims = &active.fates.dropped[before..];
        victims.iter().for_each(|victim| self.counts.dropped[usize::from(victim.class()) & (CLASSES - 1)] += 1);
        match packet {
            Some(mut packet) => {
                self.write_rate(free_at, &mut packet);
                match &mut self.follower {
                    Some(follower) => {
                        let end = follower.end(free_at, has_waited, packet.wire_bytes(), self.min_time);
                        self.put_on_wire(&packet, end);
                    }
                    None => _ = self.transmit_any(free_at, &packet),
                }
            }
            None => self.waits = false,
        }
    }

    /// Replays the decisions of an active queue until `now`, and collects its drops.
    pub(crate) fn settle(&mut self, now: Time, dropped: &mut Vec<Packet>) {
        self.commit(now);
        self.collect_drops(dropped);
    }

    fn collect_drops(&mut self, dropped: &mut Vec<Packet>) {
        if let Waiting::Active(active) = &mut self.queue {
            dropped.append(&mut active.fates.dropped);
        }
    }

    /// Returns true if packets may be dropped without the link being touched.
    pub(crate) fn drops_untouched(&self) -> bool {
        matches!(self.queue, Waiting::Active(_))
    }

    /// Handles a FIFO packet that may not fit, may need a mark, or waits longer than any before it.
    #[inline(never)]
    fn send_fifo(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        let start = self.busy_until.max(now);
        let wait = start - now;
        let mut marked = Packet::default();
        let mut packet = packet;
        if wait >= self.exact_check.from_wait {
            let backlog = self.waiting_in_order(now);
            let Some(admitted) = self.admit(backlog, packet, &mut marked, dropped) else { return false };
            packet = admitted;
        }
        if wait > self.exact_check.peak_wait {
            self.exact_check.peak_wait = wait;
            self.update_slow_path();
        }
        if !self.min_time.is_zero() && wait > Dur::ZERO {
            self.note_backlog(now, packet.wire_bytes());
        }
        self.transmit_any(start, packet)
    }

    /// Drops a packet that must wait and does not fit behind `backlog` (bytes, packets). Returns one that fits, in
    /// `marked` if it gets a mark.
    #[inline(always)]
    fn admit<'a>(
        &mut self,
        (bytes, packets): (u64, u64),
        packet: &'a Packet,
        marked: &'a mut Packet,
        dropped: &mut Vec<Packet>,
    ) -> Option<&'a Packet> {
        if !self.room.has_room(bytes, packets, packet.wire_bytes()) {
            self.drop(*packet, dropped);
            return None;
        }
        let marks = self.mark_at.is_some_and(|mark_at| mark_at.is_reached(bytes, packets));
        if !marks || !packet.flags().is_ecn_capable() {
            return Some(packet);
        }
        *marked = packet.with(Flags::CE);
        self.counts.marked += 1;
        Some(marked)
    }

    /// Updates the peak by the exact backlog: if packets occupy the transmitter for longer than their bytes take, the
    /// longest wait does not give the largest backlog.
    #[cold]
    #[inline(never)]
    fn note_backlog(&mut self, now: Time, more_bytes: u64) {
        let (waiting_bytes, _) = self.waiting_in_order(now);
        self.counts.peak_backlog_bytes = self.counts.peak_backlog_bytes.max(waiting_bytes + more_bytes);
    }

    /// The time for which a packet of `bytes` occupies the transmitter.
    #[inline(always)]
    fn time_of(&self, bytes: u64) -> Dur {
        self.byte_time.of(bytes).max(self.min_time)
    }

    /// Like [`Link::transmit`], on any link.
    #[inline(always)]
    fn transmit_any(&mut self, start: Time, packet: &Packet) -> bool {
        self.put_on_wire(packet, start + self.time_of(packet.wire_bytes()))
    }

    /// Like [`Link::transmit_any`], on a link that may have RCP's meter or write telemetry.
    fn transmit_metered(&mut self, start: Time, mut packet: Packet) -> bool {
        self.write_rate(start, &mut packet);
        let rate = self.rate;
        if let Waiting::Controlled(control) = &mut self.queue {
            control.stamp(start, &packet, rate);
        }
        self.transmit_any(start, &packet)
    }

    /// Lets RCP's meter, if there is one, write its rate into a packet whose transmission begins at `start`.
    fn write_rate(&mut self, start: Time, packet: &mut Packet) {
        if let Some(meter) = self.ingress.as_mut().and_then(|ingress| ingress.meter.as_mut()) {
            meter.handle_departure(start, packet);
        }
    }

    /// Puts a packet on the wire of a link without a least transmission time. The transmission begins at `start`.
    #[inline(always)]
    fn transmit(&mut self, start: Time, packet: &Packet) -> bool {
        self.put_on_wire(packet, start + self.byte_time.of(packet.wire_bytes()))
    }

    /// Puts a packet on the wire, with its transmission ending at `end`, and advances its route by one link. Returns
    /// true if the packet is the next to arrive.
    #[inline(always)]
    fn put_on_wire(&mut self, packet: &Packet, end: Time) -> bool {
        let was_empty = self.wire.is_empty();
        self.busy_until = end;
        self.accepted_bytes += packet.wire_bytes();
        // Written in place: building the packet elsewhere would copy its 32 bytes twice.
        let slot = self.wire.push_slot();
        *slot = packet.onward(self.busy_until + self.delay);
        was_empty
    }

    /// Handles a packet at a priority queue.
    #[inline(never)]
    fn send_queued(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        self.commit(now);
        // An idle transmitter implies an empty queue, after the commit.
        if self.busy_until <= now {
            return self.transmit_any(now, packet);
        }
        let Waiting::ByClass(queue) = &mut self.queue else { return false };
        if !queue.put_if_plain(packet) {
            self.send_queued_slow(packet, dropped);
            return false;
        }
        if queue.backlog_bytes() > self.counts.peak_backlog_bytes {
            self.counts.peak_backlog_bytes = queue.backlog_bytes();
        }
        self.set_waits(true);
        false
    }

    /// Handles a packet that may not fit into a priority queue or may need a mark.
    #[cold]
    #[inline(never)]
    fn send_queued_slow(&mut self, packet: &Packet, dropped: &mut Vec<Packet>) {
        let Waiting::ByClass(queue) = &mut self.queue else { return };
        let before = dropped.len();
        queue.enqueue(packet, dropped);
        self.counts.peak_backlog_bytes = self.counts.peak_backlog_bytes.max(queue.backlog_bytes());
        let waits = !queue.is_empty();
        self.set_waits(waits);
        self.count_dropped(&dropped[before..]);
    }

    /// Replays every transmission that began by `now`.
    #[inline(always)]
    fn commit(&mut self, now: Time) {
        if self.waits && self.busy_until <= now {
            self.commit_waiting(now);
        }
    }

    #[inline(never)]
    fn commit_waiting(&mut self, now: Time) {
        if let Waiting::Controlled(_) = self.queue {
            return self.commit_controlled(now);
        }
        while self.busy_until <= now {
            let Waiting::ByClass(queue) = &mut self.queue else { return self.end_commit(now) };
            let Some(packet) = queue.dequeue() else { return self.end_commit(now) };
            self.transmit_any(self.busy_until, &packet);
        }
    }

    /// Ends a replay: the priority queue is empty, or the queue is an active one, which is replayed here.
    #[inline(never)]
    fn end_commit(&mut self, now: Time) {
        if !self.drops_untouched() {
            return self.set_waits(false);
        }
        while self.waits && self.busy_until <= now {
            self.dequeue_active(self.busy_until, true);
        }
        self.update_slow_path();
    }

    /// The time of the link's next event after the arrival that is next. `None` if a host waits for the link, or if the
    /// queue is to be replayed first: `next_after` then gives the time.
    #[inline(always)]
    pub(crate) fn event_after_arrival(&self) -> Option<Time> {
        if self.wake != Time::NEVER {
            None
        } else if self.wire.has_one() {
            (!self.waits).then_some(Time::NEVER)
        } else {
            Some(self.wire.second_slot().at)
        }
    }

    /// Takes the oldest packet, which arrives at the far end, off the wire. The wire must not be empty. Call
    /// `next_after` next, unless `event_after_arrival` gave the time of the next event.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, now: Time) -> &Packet {
        let packet = self.wire.pop_in_place();
        debug_assert!(packet.at == now, "a packet due at {} arrives at {now}", packet.at);
        packet
    }

    /// Puts a packet on the wire that has left its transmitter, with its time of arrival. Returns true if it is the next to
    /// arrive.
    pub(crate) fn accept(&mut self, packet: Packet) -> bool {
        let was_empty = self.wire.is_empty();
        self.wire.push(packet);
        was_empty
    }

    /// Packets on the wire, and their bytes.
    pub(crate) fn on_wire(&self) -> (u64, u64) {
        let packets = (self.wire.head()..self.wire.tail()).map(|at| self.wire.at(at).wire_bytes());
        (self.wire.len(), packets.sum())
    }

    /// The link's next event after a delivery at `now`.
    #[inline(always)]
    // While another packet is on the wire, it is the next event, and the replay can wait.
    pub(crate) fn next_after(&mut self, now: Time) -> Time {
        if self.wire.is_empty() {
            self.commit(now);
            return self.next_event();
        }
        self.wire.oldest_slot().at.min(self.wake)
    }

    /// The packet that arrives after the one just delivered; any packet if the wire is empty.
    #[inline(always)]
    pub(crate) fn following(&self) -> &Packet {
        self.wire.oldest_slot()
    }

    /// Prefetches the next packet to arrive and the one behind it, which a delivery reads.
    #[inline(always)]
    pub(crate) fn prefetch_packets(&self) {
        prefetch(self.wire.oldest_slot());
        prefetch(self.wire.second_slot());
    }

    /// The slot for the next packet that enters, if the wire need not grow for it.
    #[inline(always)]
    pub(crate) fn free_slot(&self) -> &Packet {
        self.wire.next_slot()
    }

    /// Returns true if the transmitter has nothing to do at `now`.
    #[inline(always)]
    pub(crate) fn is_idle(&mut self, now: Time) -> bool {
        self.commit(now);
        self.busy_until <= now && !self.waits
    }

    /// Returns true for a FIFO link without a trace, whose waiting packets are on the wire already.
    fn is_in_order(&self) -> bool {
        matches!(self.queue, Waiting::InOrder(_))
    }

    /// The time at which a FIFO link has sent everything that arrived; `None` for other disciplines, and for links that
    /// may change before then.
    pub(crate) fn free_at(&self) -> Option<Time> {
        (self.is_in_order() && !self.changes).then_some(self.busy_until)
    }

    /// Requests an event for the time at which the transmitter is free, `now` or later.
    pub(crate) fn wake_when_idle(&mut self, now: Time) {
        self.commit(now);
        if let Waiting::Controlled(_) = self.queue {
            return self.wake_host_at(now, self.may_begin_at(now));
        }
        self.wake = self.wake.min(self.busy_until.max(now));
    }

    /// Returns true if a packet of `bytes` that arrived now would be admitted.
    pub(crate) fn has_room(&mut self, now: Time, bytes: u64) -> bool {
        if self.is_in_order() && self.busy_until.saturating_since(now) < self.exact_check.from_wait {
            return true;
        }
        let (waiting_bytes, packets) = self.waiting(now);
        (self.busy_until <= now && !self.waits) || self.room.has_room(waiting_bytes, packets, bytes)
    }

    /// Requests an event for a time at which there may be room for `bytes`, given that `has_room` is false. On a FIFO
    /// link, that is when enough packets have begun transmission; on any other, or with a trace, when the next packet leaves.
    pub(crate) fn wake_when_room(&mut self, now: Time, bytes: u64) {
        let (mut waiting_bytes, mut packets) = self.waiting(now);
        if let Waiting::Controlled(_) = self.queue {
            return self.wake_host_at(now, self.may_begin_at(now));
        }
        let mut at = self.end_of_current().unwrap_or(self.busy_until);
        if let Waiting::InOrder(cursor) = &self.queue {
            for place in cursor.place..self.wire.tail() {
                // Before the first waiting packet begins, it still counts: walk to the one whose departure makes room.
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

    /// Takes the requested wake-up, if it is due before the next arrival.
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

    /// Counts a packet that crossed the wire as lost at its far end.
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
            Waiting::Traced(_) => self.waiting_traced(now),
            Waiting::ByClass(queue) => (queue.backlog_bytes(), queue.backlog_packets()),
            Waiting::Active(active) => active.backlog(),
            Waiting::Controlled(control) => control.backlog(),
        }
    }

    /// The same on a FIFO link, by the cursor.
    fn waiting_in_order(&mut self, now: Time) -> (u64, u64) {
        let (delay, byte_time, min_time) = (self.delay, self.byte_time, self.min_time);
        let Waiting::InOrder(cursor) = &mut self.queue else { return (0, 0) };
        // The transmission of a packet has begun if less than its own time and the delay remain until its arrival.
        cursor.look(&self.wire, self.accepted_bytes, |_, packet| {
            packet.at <= now + delay + byte_time.of(packet.wire_bytes()).max(min_time)
        })
    }

    /// The rate that this link allows each of its RCP flows, if it computes one.
    pub(crate) fn explicit_rate(&self, now: Time) -> Option<Rate> {
        Some(self.ingress.as_ref()?.meter.as_ref()?.rate_at(now))
    }

    /// The counters of this link at `now`.
    pub(crate) fn counts(&mut self, now: Time) -> LinkCounts {
        self.commit(now);
        if self.is_fused {
            self.clear_arrived(now);
        }
        let wire = &self.wire;
        let mut counts = *self.counts;
        counts.delivered_packets = wire.head();
        counts.delivered_bytes = self.accepted_bytes - self.on_wire().1;
        // Class 0 is not counted on arrival: its packets are all arrivals minus those of other classes.
        let came = wire.tail() + self.queued_packets() + counts.dropped.iter().sum::<u64>();
        counts.arrived[0] = came - counts.arrived[1..].iter().sum::<u64>();
        match &self.queue {
            Waiting::ByClass(queue) => counts.marked = queue.marked(),
            Waiting::Active(active) => counts.marked = active.fates.marked,
            Waiting::InOrder(_) if self.min_time.is_zero() => {
                let peak = self.rate.bytes_in(self.exact_check.peak_wait);
                counts.peak_backlog_bytes = counts.peak_backlog_bytes.max(peak);
            }
            Waiting::InOrder(_) | Waiting::Traced(_) => {}
            Waiting::Controlled(control) => control.count(now, &mut counts),
        }
        counts
    }

    /// Packets that arrived at the queue and are neither dropped nor delivered.
    pub(crate) fn held_packets(&self) -> u64 {
        let frames = match &self.queue {
            Waiting::Controlled(control) => control.frames_on_wire(),
            _ => 0,
        };
        self.wire.len() + self.queued_packets() - frames
    }

    /// Packets that wait in a queue and are not on the wire yet.
    fn queued_packets(&self) -> u64 {
        match &self.queue {
            Waiting::InOrder(_) | Waiting::Traced(_) => 0,
            Waiting::ByClass(queue) => queue.backlog_packets(),
            Waiting::Active(active) => active.backlog().1,
            Waiting::Controlled(control) => control.backlog().1,
        }
    }
}
