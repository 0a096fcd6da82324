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
//! the wire is always the link's next event, and no event for the end of a transmission is needed.

use crate::config::QueueSpec;
use crate::network::Limit;
use crate::packet::{Flags, Packet};
use crate::qdisc::Queue;
use crate::records::CLASSES;
use sparelane_core::rate::ByteTime;
use sparelane_core::{Domain, Dur, Rate, Ring, Stream, Time};

/// What a link is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkSpec {
    pub(crate) rate: Rate,
    pub(crate) delay: Dur,
    pub(crate) queue: QueueSpec,
    pub(crate) limit: Limit,
    pub(crate) loss: f64,
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
        let hit = self.segments.iter_mut().find(|(segment, copies)| *segment == packet.seq && *copies > 0);
        match hit {
            Some((_, copies)) if packet.flow == self.flow && packet.flags.kind() == Flags::DATA => {
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
    /// A draw below this loses the packet; zero for a wire without loss.
    threshold: u64,
    rng: Stream,
    pub(crate) planned: Vec<PlannedDrop>,
}

impl Hazards {
    pub(crate) fn new(loss: f64, seed: u64, link: u64) -> Option<Hazards> {
        (loss > 0.0).then(|| Hazards {
            threshold: (loss * 2f64.powi(64)) as u64,
            rng: Stream::new(seed, Domain::Loss, link),
            planned: Vec::new(),
        })
    }

    pub(crate) fn none() -> Hazards {
        Hazards { threshold: 0, rng: Stream::new(0, Domain::Loss, 0), planned: Vec::new() }
    }

    /// Decides the fate of a packet that comes to the link: dropped at once, lost on the wire, or neither.
    pub(crate) fn strike(&mut self, packet: &mut Packet) -> bool {
        if self.planned.iter_mut().any(|planned| planned.takes(packet)) {
            return true;
        }
        if self.threshold > 0 && self.rng.next_u64() < self.threshold {
            packet.flags = packet.flags.with(Flags::DOOMED);
        }
        false
    }
}

/// The link.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// On the wire or committed to it, in order of arrival.
    wire: Ring<Packet>,
    /// When the transmitter is free.
    busy: Time,
    rate: Rate,
    byte_time: ByteTime,
    delay: Dur,
    /// FIFO: a packet that is through within this time fits without looking.
    surely_fits: Dur,
    /// FIFO: a packet that waits no longer than this is not marked.
    surely_unmarked: Dur,
    queue: Option<Queue>,
    hazards: Option<Box<Hazards>>,
    /// When to tell that the transmitter is idle, if somebody asked.
    wake: Time,
    /// FIFO: bytes that ever came onto the wire, and of those, bytes before `cursor`.
    accepted_bytes: u64,
    started_bytes: u64,
    /// FIFO: the first packet on the wire whose transmission may not have begun.
    cursor: u32,
    /// FIFO: the longest that any packet took from its coming to the end of its transmission.
    peak_backlog: Dur,
    limit: Limit,
    mark_at_bytes: u64,
    counts: LinkCounts,
}

/// The smallest packet, by which a limit in packets becomes a time.
const SMALLEST_PACKET_BYTES: u64 = 40;

impl Link {
    pub(crate) fn new(spec: LinkSpec, seed: u64, number: u64) -> Link {
        let byte_time = spec.rate.byte_time();
        let surely_fits = match spec.limit {
            Limit::Bytes(bytes) => spec.rate.time_for(bytes).saturating_sub(Dur::from_ps(1)),
            Limit::Packets(packets) => spec.rate.time_for(packets.saturating_mul(SMALLEST_PACKET_BYTES)),
        };
        let surely_unmarked = spec.queue.mark_at_bytes.map_or(Dur::MAX, |bytes| spec.rate.time_for(bytes) / 2);
        Link {
            wire: Ring::with_capacity(16),
            busy: Time::ZERO,
            rate: spec.rate,
            byte_time,
            delay: spec.delay,
            surely_fits,
            surely_unmarked,
            queue: Queue::new(spec.queue, spec.limit),
            hazards: Hazards::new(spec.loss, seed, number).map(Box::new),
            wake: Time::NEVER,
            accepted_bytes: 0,
            started_bytes: 0,
            cursor: 0,
            peak_backlog: Dur::ZERO,
            limit: spec.limit,
            mark_at_bytes: spec.queue.mark_at_bytes.unwrap_or(u64::MAX),
            counts: LinkCounts::default(),
        }
    }

    /// Adds packets to drop.
    pub(crate) fn plan_drop(&mut self, planned: PlannedDrop) {
        self.hazards.get_or_insert_with(|| Box::new(Hazards::none())).planned.push(planned);
    }

    /// When this link next wants attention: an arrival at the far end, or its transmitter idle.
    #[inline(always)]
    pub(crate) fn next_event(&self) -> Time {
        self.next_arrival().min(self.wake)
    }

    #[inline(always)]
    pub(crate) fn next_arrival(&self) -> Time {
        self.wire.front().map_or(Time::NEVER, |packet| packet.at)
    }

    /// A packet comes to the output queue. Returns whether the link's next event may have changed.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Time, mut packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        self.counts.arrived[usize::from(packet.class) & (CLASSES - 1)] += 1;
        if self.hazards.is_some() && self.strike(&mut packet) {
            self.drop(packet, dropped);
            return false;
        }
        if self.queue.is_some() {
            return self.send_queued(now, packet, dropped);
        }
        let start = self.busy.max(now);
        let wait = start - now;
        let through = wait + self.byte_time.of(u64::from(packet.wire_bytes));
        if through > self.surely_fits && !self.fits(now, &packet) {
            self.drop(packet, dropped);
            return false;
        }
        if wait >= self.surely_unmarked {
            self.mark(now, &mut packet);
        }
        self.peak_backlog = self.peak_backlog.max(through);
        self.transmit(start, packet)
    }

    /// Puts a packet on the wire, its transmission beginning at `start`.
    #[inline(always)]
    fn transmit(&mut self, start: Time, mut packet: Packet) -> bool {
        let was_empty = self.wire.is_empty();
        self.busy = start + self.byte_time.of(u64::from(packet.wire_bytes));
        self.accepted_bytes += u64::from(packet.wire_bytes);
        packet.at = self.busy + self.delay;
        self.wire.push(packet);
        was_empty
    }

    #[inline]
    fn send_queued(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> bool {
        self.commit(now);
        let Some(queue) = &mut self.queue else { return false };
        if queue.is_empty() && self.busy <= now {
            return self.transmit(now, packet);
        }
        let before = dropped.len();
        queue.enqueue(packet, dropped);
        self.counts.peak_backlog_bytes = self.counts.peak_backlog_bytes.max(queue.backlog_bytes());
        for victim in &dropped[before..] {
            self.counts.dropped[usize::from(victim.class) & (CLASSES - 1)] += 1;
        }
        false
    }

    /// Replays every transmission that began by `now`.
    #[inline]
    fn commit(&mut self, now: Time) {
        while self.busy <= now {
            let Some(packet) = self.queue.as_mut().and_then(Queue::dequeue) else { return };
            self.transmit(self.busy, packet);
        }
    }

    /// The oldest packet arrives at the far end.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, now: Time) -> Option<Packet> {
        let packet = self.wire.pop()?;
        debug_assert!(packet.at == now, "a packet due at {} arrives at {now}", packet.at);
        self.counts.delivered_packets += 1;
        self.counts.delivered_bytes += u64::from(packet.wire_bytes);
        if self.queue.is_some() {
            self.commit(now);
        }
        Some(packet)
    }

    /// Whether the transmitter has nothing to do at `now`.
    pub(crate) fn is_idle(&mut self, now: Time) -> bool {
        if self.queue.is_some() {
            self.commit(now);
        }
        self.busy <= now && self.queue.as_ref().is_none_or(Queue::is_empty)
    }

    /// Asks for an event when the transmitter is free, at the earliest at `now`.
    pub(crate) fn wake_when_idle(&mut self, now: Time) {
        self.wake = self.busy.max(now);
    }

    /// The wake-up that was asked for, if it comes before the next arrival.
    #[inline(always)]
    pub(crate) fn wakes(&mut self) -> bool {
        if self.wake == Time::NEVER || self.next_arrival() <= self.wake {
            return false;
        }
        self.wake = Time::NEVER;
        true
    }

    #[cold]
    #[inline(never)]
    fn strike(&mut self, packet: &mut Packet) -> bool {
        self.hazards.as_mut().is_some_and(|hazards| hazards.strike(packet))
    }

    #[cold]
    #[inline(never)]
    fn drop(&mut self, packet: Packet, dropped: &mut Vec<Packet>) {
        self.counts.dropped[usize::from(packet.class) & (CLASSES - 1)] += 1;
        dropped.push(packet);
    }

    /// A packet that crossed the wire is lost at its end.
    #[cold]
    #[inline(never)]
    pub(crate) fn lose(&mut self, packet: Packet, dropped: &mut Vec<Packet>) {
        self.counts.lost += 1;
        dropped.push(packet);
    }

    #[cold]
    #[inline(never)]
    fn mark(&mut self, now: Time, packet: &mut Packet) {
        if packet.flags.has(Flags::ECN_CAPABLE) && self.waiting(now).0 >= self.mark_at_bytes {
            packet.flags = packet.flags.with(Flags::MARKED);
            self.counts.marked += 1;
        }
    }

    /// FIFO: whether `packet` fits beside what waits at `now`. An idle link takes any packet.
    #[inline(never)]
    fn fits(&mut self, now: Time, packet: &Packet) -> bool {
        let (bytes, packets) = self.waiting(now);
        self.busy <= now
            || match self.limit {
                Limit::Bytes(limit) => bytes + u64::from(packet.wire_bytes) <= limit,
                Limit::Packets(limit) => packets < limit,
            }
    }

    /// Bytes and packets that wait at `now`, without the packet in transmission.
    pub(crate) fn waiting(&mut self, now: Time) -> (u64, u64) {
        if let Some(queue) = &self.queue
            && !queue.is_empty()
        {
            self.commit(now);
        }
        if let Some(queue) = &self.queue {
            return (queue.backlog_bytes(), queue.backlog_packets());
        }
        // Transmissions that began have left the queue; those that were delivered began, too.
        if self.wire.head().wrapping_sub(self.cursor) as i32 > 0 {
            self.cursor = self.wire.head();
            self.started_bytes = self.counts.delivered_bytes;
        }
        while self.cursor != self.wire.tail() {
            let packet = self.wire.at(self.cursor);
            let wire_bytes = u64::from(packet.wire_bytes);
            if packet.at > now + self.delay + self.byte_time.of(wire_bytes) {
                break;
            }
            self.started_bytes += wire_bytes;
            self.cursor = self.cursor.wrapping_add(1);
        }
        (self.accepted_bytes - self.started_bytes, u64::from(self.wire.tail().wrapping_sub(self.cursor)))
    }

    /// What this link counted until `now`, the peak included.
    pub(crate) fn counts(&mut self, now: Time) -> LinkCounts {
        if self.queue.is_some() {
            self.commit(now);
        } else {
            self.counts.peak_backlog_bytes = self.rate.bytes_in(self.peak_backlog);
        }
        self.counts
    }

    /// Packets that came and neither were dropped nor have arrived at the far end.
    pub(crate) fn held_packets(&self) -> u64 {
        u64::from(self.wire.len()) + self.queue.as_ref().map_or(0, Queue::backlog_packets)
    }
}
