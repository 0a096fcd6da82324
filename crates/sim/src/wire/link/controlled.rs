//! Links with PAUSE (see `wire/pause.rs`): transmitters that may be paused, and queues that pause other links. Links with
//! RCP's meter are such links without pauses, because the rate that a packet gets is not known before it departs. The same
//! holds for links that write telemetry.
//!
//! Packets wait in a queue, and the link is committed lazily, as with the other queues. In addition, waiting packets do
//! not imply a packet on the wire, so the link requests events of its own: a *turn*. A turn is due when a transmission
//! may begin and nothing is on the wire, at each beginning of a transmission while the queue holds other links, and when
//! a frame must be repeated. An armed turn always fires; one that is no longer needed does nothing.
//!
//! With priority-based flow control, each class has a queue of its own. The highest class that is not paused is sent
//! first. The queue's limit and its threshold for marks then hold for each class. While the router pauses any class of
//! any port, each beginning of a transmission is a turn.

use super::{Link, LinkCounts, LinkSpec, Waiting};
use crate::config::{Discipline, MarkRamp};
use crate::records::CLASSES;
use crate::routing::network::{Limit, Room};
use crate::wire::packet::{Flags, Packet};
use crate::wire::pause::{FRAME_BYTES, PauseSpec, is_down_to};
use crate::wire::qdisc::PriorityQueue;
use crate::wire::telemetry::Stamper;
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use std::collections::VecDeque;

/// The state of a link with PAUSE, RCP's meter or telemetry.
#[derive(Debug)]
pub(super) struct Controlled {
    held: Held,
    /// The end of the current or last pause of this transmitter.
    paused_until: Time,
    /// The time from which on that pause kept the transmitter silent, and the sum of earlier silences.
    silent_from: Time,
    silence: Dur,
    /// The quanta of the frame that waits for the transmitter, and the time since which it waits.
    frame: Option<(u16, Time)>,
    /// Frames that this link began to transmit, and those that it carried to the far end.
    frames_sent: u64,
    frames_carried: u64,
    /// Frames that arrived for this transmitter.
    frames_received: u64,
    /// The wake-up that a host requested.
    host_wake: Time,
    /// The time of a transmission after which holds are to be checked.
    check_at: Time,
    /// The links that this queue holds, with their XON.
    holds: Vec<(u32, Limit)>,
    /// The pauses that this end orders, if the cable has PAUSE.
    pausing: Option<Pausing>,
    /// The pauses of classes.
    by_class: ByClass,
    /// The writer of telemetry, if the port has one.
    stamper: Option<Box<Stamper>>,
}

/// The state of a transmitter whose classes may be paused.
#[derive(Debug, Default)]
struct ByClass {
    /// The paused classes, one bit each, and the time since which there is one.
    paused: u8,
    paused_from: Time,
    /// The latest time at which the idle transmitter got something to send: a packet, or the end of a pause.
    ready_from: Time,
    /// A host waits until some class is no longer paused.
    host_waits: bool,
    /// Each beginning of a transmission is a turn.
    is_watched: bool,
    /// Counted packets that began transmission, or were dropped: the link, the class and the bytes.
    departed: Vec<Departure>,
}

/// A counted packet that no longer waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// The link for which it was counted.
    pub(crate) from: u32,
    pub(crate) class: u8,
    pub(crate) bytes: u64,
}

/// The pauses that one end of a cable orders.
#[derive(Debug)]
struct Pausing {
    spec: PauseSpec,
    /// The time of the next frame while the pause lasts.
    repeat_at: Time,
    /// The number of queues that hold the other end.
    holders: u32,
}

#[derive(Debug)]
enum Held {
    Fifo {
        packets: VecDeque<Packet>,
        bytes: u64,
        room: Room,
        mark_at: Option<Limit>,
        marked: u64,
    },
    ByClass(Box<PriorityQueue>),
    /// A queue for each class, with the bytes in it.
    Classes(Box<Classes>),
}

#[derive(Debug)]
struct Classes {
    queues: [(VecDeque<Packet>, u64); CLASSES],
    room: Room,
    mark_at: Option<Limit>,
    mark_ramp: Option<(MarkRamp, Stream)>,
    marked: u64,
}

impl Classes {
    fn new(spec: &LinkSpec, seed: u64, number: u64) -> Classes {
        Classes {
            queues: Default::default(),
            room: spec.room(),
            mark_at: spec.queue.mark_at,
            mark_ramp: spec.queue.mark_ramp.map(|ramp| (ramp, Stream::new(seed, Domain::Marking, number))),
            marked: 0,
        }
    }

    fn enqueue(&mut self, packet: &Packet, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let (packets, bytes) = &mut self.queues[usize::from(packet.class()) & (CLASSES - 1)];
        let waiting = packets.len() as u64;
        // Routers with priority-based flow control admit counted packets by their count.
        if packet.counted_for().is_none() && !self.room.has_room(*bytes, waiting, packet.wire_bytes()) {
            dropped.push(*packet);
            return Some(*packet);
        }
        let mut packet = *packet;
        let is_reached = self.mark_at.is_some_and(|mark_at| mark_at.is_reached(*bytes, waiting));
        let is_marked = match &mut self.mark_ramp {
            Some((ramp, stream)) => ramp.marks(*bytes, stream),
            None => is_reached,
        };
        if is_marked && packet.flags().is_ecn_capable() {
            packet.set(Flags::CE);
            self.marked += 1;
        }
        *bytes += packet.wire_bytes();
        packets.push_back(packet);
        None
    }

    /// The highest class with packets, apart from `paused` ones.
    fn next(&self, paused: u8) -> Option<usize> {
        (0..CLASSES).find(|&class| paused >> class & 1 == 0 && !self.queues[class].0.is_empty())
    }

    fn dequeue(&mut self, paused: u8) -> Option<Packet> {
        let (packets, bytes) = &mut self.queues[self.next(paused)?];
        let packet = packets.pop_front()?;
        *bytes -= packet.wire_bytes();
        Some(packet)
    }
}

impl Controlled {
    pub(super) fn new(spec: &LinkSpec, seed: u64, number: u64) -> Controlled {
        let held = match &spec.queue.discipline {
            _ if spec.has_class_queues => Held::Classes(Box::new(Classes::new(spec, seed, number))),
            Discipline::Priority => Held::ByClass(Box::new(PriorityQueue::of(spec))),
            _ => Held::Fifo {
                packets: VecDeque::new(),
                bytes: 0,
                room: spec.room(),
                mark_at: spec.queue.mark_at,
                marked: 0,
            },
        };
        let pausing = spec.pauses.map(|spec| Pausing { spec, repeat_at: Time::NEVER, holders: 0 });
        Controlled {
            held,
            paused_until: Time::ZERO,
            silent_from: Time::ZERO,
            silence: Dur::ZERO,
            frame: None,
            frames_sent: 0,
            frames_carried: 0,
            frames_received: 0,
            host_wake: Time::NEVER,
            check_at: Time::NEVER,
            holds: Vec::new(),
            pausing,
            by_class: ByClass::default(),
            stamper: spec.telemetry.clone().map(Box::new),
        }
    }

    /// Bytes that wait in the highest `count` classes.
    fn bytes_in_classes(&self, count: usize) -> u64 {
        let bytes = |packet: &Packet| if usize::from(packet.class()) < count { packet.wire_bytes() } else { 0 };
        match &self.held {
            _ if count >= CLASSES => self.backlog().0,
            Held::Fifo { packets, .. } => packets.iter().map(bytes).sum(),
            Held::ByClass(queue) => queue.bytes_in_classes(count),
            Held::Classes(classes) => classes.queues[..count].iter().map(|(_, bytes)| bytes).sum(),
        }
    }

    /// Writes telemetry into a packet whose transmission begins at `start`, and counts it.
    pub(super) fn stamp(&mut self, start: Time, packet: &Packet, rate: Rate) {
        if let Some(mut stamper) = self.stamper.take() {
            stamper.stamp(start, packet, rate, |count| self.bytes_in_classes(count));
            self.stamper = Some(stamper);
        }
    }

    pub(super) fn backlog(&self) -> (u64, u64) {
        match &self.held {
            Held::Fifo { packets, bytes, .. } => (*bytes, packets.len() as u64),
            Held::ByClass(queue) => (queue.backlog_bytes(), queue.backlog_packets()),
            Held::Classes(classes) => {
                let add = |(bytes, packets): (u64, u64), queue: &(VecDeque<Packet>, u64)| {
                    (bytes + queue.1, packets + queue.0.len() as u64)
                };
                classes.queues.iter().fold((0, 0), add)
            }
        }
    }

    /// Returns true if some packet waits whose class is not paused.
    fn can_send(&self) -> bool {
        match &self.held {
            Held::Classes(classes) => classes.next(self.by_class.paused).is_some(),
            _ => self.backlog().1 > 0,
        }
    }

    fn marked(&self) -> u64 {
        match &self.held {
            Held::Fifo { marked, .. } => *marked,
            Held::ByClass(queue) => queue.marked(),
            Held::Classes(classes) => classes.marked,
        }
    }

    pub(super) fn frames_on_wire(&self) -> u64 {
        self.frames_sent - self.frames_carried
    }

    /// Removes the frames from the counters of packets, and adds those of PAUSE.
    pub(super) fn count(&self, now: Time, counts: &mut LinkCounts) {
        counts.marked = self.marked();
        counts.delivered_packets -= self.frames_carried;
        counts.delivered_bytes -= self.frames_carried * FRAME_BYTES;
        counts.arrived[0] -= self.frames_sent;
        counts.pause_frames = self.frames_received;
        counts.silence = self.silence(now);
    }

    pub(super) fn push_out(&mut self, class: u8) -> Option<Packet> {
        match &mut self.held {
            Held::Fifo { .. } | Held::Classes(_) => None,
            Held::ByClass(queue) => queue.push_out(class),
        }
    }

    /// The time for which pauses kept the transmitter silent until `now`.
    fn silence(&self, now: Time) -> Dur {
        let since = if self.by_class.paused == 0 { now } else { self.by_class.paused_from };
        self.silence + self.paused_until.min(now).saturating_since(self.silent_from) + now.saturating_since(since)
    }

    fn enqueue(&mut self, packet: &Packet, dropped: &mut Vec<Packet>) {
        match &mut self.held {
            Held::ByClass(queue) => queue.enqueue(packet, dropped),
            Held::Classes(classes) => {
                if let Some(refused) = classes.enqueue(packet, dropped) {
                    self.by_class.note(&refused);
                }
            }
            Held::Fifo { packets, bytes, room, mark_at, marked } => {
                let waiting = packets.len() as u64;
                if !room.has_room(*bytes, waiting, packet.wire_bytes()) {
                    return dropped.push(*packet);
                }
                let mut packet = *packet;
                let is_reached = mark_at.is_some_and(|mark_at| mark_at.is_reached(*bytes, waiting));
                if is_reached && packet.flags().is_ecn_capable() {
                    packet.set(Flags::CE);
                    *marked += 1;
                }
                *bytes += packet.wire_bytes();
                packets.push_back(packet);
            }
        }
    }

    fn dequeue(&mut self) -> Option<Packet> {
        match &mut self.held {
            Held::ByClass(queue) => queue.dequeue(),
            Held::Classes(classes) => {
                let packet = classes.dequeue(self.by_class.paused)?;
                self.by_class.note(&packet);
                Some(packet)
            }
            Held::Fifo { packets, bytes, .. } => {
                let packet = packets.pop_front()?;
                *bytes -= packet.wire_bytes();
                Some(packet)
            }
        }
    }
}

impl ByClass {
    /// Notes that a packet no longer waits, if it is counted.
    fn note(&mut self, packet: &Packet) {
        if let Some(from) = packet.counted_for() {
            self.departed.push(Departure { from, class: packet.class(), bytes: packet.wire_bytes() });
        }
    }

    fn is_paused(&self, class: u8) -> bool {
        self.paused >> class & 1 == 1
    }
}

impl Link {
    fn control(&self) -> Option<&Controlled> {
        match &self.queue {
            Waiting::Controlled(control) => Some(control),
            _ => None,
        }
    }

    fn control_mut(&mut self) -> Option<&mut Controlled> {
        match &mut self.queue {
            Waiting::Controlled(control) => Some(control),
            _ => None,
        }
    }

    /// Returns the thresholds at which this end of the cable pauses the other end, if it does.
    pub(crate) fn pauses(&self) -> Option<PauseSpec> {
        self.control()?.pausing.as_ref().map(|pausing| pausing.spec)
    }

    /// Passes a packet to the queue.
    #[cold]
    #[inline(never)]
    pub(super) fn send_controlled(&mut self, now: Time, packet: &Packet, dropped: &mut Vec<Packet>) -> bool {
        self.commit(now);
        let is_free = self.busy_until <= now;
        let is_idle = is_free && !self.waits;
        let before = dropped.len();
        let Some(control) = self.control_mut() else { return false };
        if is_idle && !control.by_class.is_paused(packet.class()) {
            control.by_class.note(packet);
            return self.transmit_metered(now, *packet);
        }
        if is_free {
            control.by_class.ready_from = now;
        }
        control.enqueue(packet, dropped);
        let (bytes, _) = control.backlog();
        self.counts.peak_backlog_bytes = self.counts.peak_backlog_bytes.max(bytes);
        self.count_dropped(&dropped[before..]);
        // A packet of a class that is not paused may find the transmitter free although others wait.
        if is_free {
            self.commit_controlled(now);
        } else {
            self.rearm(now);
        }
        true
    }

    /// Passes a packet to a port of a router with priority-based flow control. `from` is the link for which the packet is
    /// counted.
    pub(crate) fn send_by_class(&mut self, now: Time, packet: &Packet, from: Option<u32>, dropped: &mut Vec<Packet>) {
        let mut packet = from.map_or(*packet, |link| packet.counted(link));
        if !packet.is_in_class_0() {
            self.counts.arrived[usize::from(packet.class()) & (CLASSES - 1)] += 1;
        }
        let is_barred = !packet.is_in_class_0() && self.bars_low_priority;
        if is_barred {
            self.drop(packet, dropped);
        }
        if is_barred || !self.passes_ingress(now, &mut packet, dropped) {
            if let Some(control) = self.control_mut() {
                control.by_class.note(&packet);
            }
            return;
        }
        self.send_controlled(now, &packet, dropped);
    }

    /// Drops a packet that exceeds the headroom of the port that it came by.
    pub(crate) fn refuse(&mut self, packet: Packet, dropped: &mut Vec<Packet>) {
        if !packet.is_in_class_0() {
            self.counts.arrived[usize::from(packet.class()) & (CLASSES - 1)] += 1;
        }
        self.drop(packet, dropped);
    }

    /// Takes the counted packets that no longer wait at `now`.
    pub(crate) fn take_departures(&mut self, now: Time) -> Vec<Departure> {
        self.commit(now);
        self.control_mut().map(|control| std::mem::take(&mut control.by_class.departed)).unwrap_or_default()
    }

    /// Lets each beginning of a transmission be a turn, or no longer.
    pub(crate) fn watch_departures(&mut self, now: Time, is_watched: bool) {
        self.commit(now);
        if let Some(control) = self.control_mut() {
            control.by_class.is_watched = is_watched;
        }
        self.rearm(now);
    }

    /// Applies a frame that pauses these classes and no others. The end of a pause wakes a waiting host.
    pub(crate) fn pause_classes(&mut self, now: Time, classes: u8) {
        self.commit(now);
        let is_free = self.busy_until <= now;
        let Some(control) = self.control_mut() else { return };
        control.frames_received += 1;
        let by_class = &mut control.by_class;
        match (by_class.paused, classes) {
            (0, 1..) => by_class.paused_from = now,
            (1.., 0) => control.silence += now.saturating_since(by_class.paused_from),
            _ => {}
        }
        if is_free {
            by_class.ready_from = now;
        }
        let ends = by_class.paused & !classes != 0;
        by_class.paused = classes;
        if ends && std::mem::take(&mut by_class.host_waits) {
            control.host_wake = now;
        }
        self.commit_controlled(now);
    }

    /// Replays every transmission that began by `now`, frames first.
    pub(super) fn commit_controlled(&mut self, now: Time) {
        loop {
            let busy_until = self.busy_until;
            let Some(control) = self.control_mut() else { return };
            if busy_until <= now
                && let Some((quanta, queued_at)) = control.frame.take()
            {
                // A link that is down carries no frame. The pause is repeated while it lasts.
                if self.ingress.as_ref().is_none_or(|ingress| !ingress.faults.is_down) {
                    self.transmit_frame(busy_until.max(queued_at), quanta);
                }
                continue;
            }
            let start = busy_until.max(control.paused_until).max(control.by_class.ready_from);
            if start > now {
                break;
            }
            let Some(packet) = control.dequeue() else { break };
            if !control.holds.is_empty() || control.by_class.is_watched {
                control.check_at = control.check_at.min(now);
            }
            self.transmit_metered(start, packet);
        }
        self.rearm(now);
    }

    fn transmit_frame(&mut self, start: Time, quanta: u16) {
        if let Some(control) = self.control_mut() {
            control.frames_sent += 1;
        }
        let end = start + self.byte_time.of(FRAME_BYTES);
        self.put_on_wire(&Packet::pause(quanta), end);
    }

    /// Sets the next turn, and notes whether anything waits or the transmitter is paused.
    fn rearm(&mut self, now: Time) {
        let (busy_until, wire_is_empty) = (self.busy_until, self.wire.is_empty());
        let Some(control) = self.control_mut() else { return };
        let has_packets = control.backlog().1 > 0;
        let begins = match (&control.frame, control.can_send()) {
            (Some(_), _) => busy_until,
            (None, true) => busy_until.max(control.paused_until),
            (None, false) => Time::NEVER,
        };
        let each_is_turn = !control.holds.is_empty() || control.by_class.is_watched;
        let turn = if wire_is_empty || each_is_turn { begins } else { Time::NEVER };
        let repeat_at = control.pausing.as_ref().map_or(Time::NEVER, |pausing| pausing.repeat_at);
        let wake = turn.min(repeat_at).min(control.check_at).min(control.host_wake);
        let waits = has_packets || control.frame.is_some() || control.paused_until > now;
        self.wake = self.wake.min(wake);
        self.set_waits(waits);
    }

    /// Sets the next turn after a change of the rate or the delay. A waiting host is woken, because its time has changed.
    pub(super) fn rearm_after_change(&mut self, now: Time) {
        let Some(control) = self.control_mut() else { return };
        if control.host_wake != Time::NEVER {
            control.host_wake = now;
        }
        self.rearm(now);
    }

    /// Requests an event for a host at `at`.
    pub(super) fn wake_host_at(&mut self, now: Time, at: Time) {
        let Some(control) = self.control_mut() else { return };
        if control.backlog().1 > 0 && !control.can_send() {
            // The end of the pause is not known yet.
            control.by_class.host_waits = true;
        } else {
            control.host_wake = control.host_wake.min(at);
        }
        self.rearm(now);
    }

    /// The earliest time at which the transmitter may begin with another packet, `now` or later.
    pub(super) fn may_begin_at(&self, now: Time) -> Time {
        let paused_until = self.control().map_or(Time::ZERO, |control| control.paused_until);
        self.busy_until.max(paused_until).max(now)
    }

    /// Takes a turn. Returns the links that the queue releases, the frame to repeat, and whether a host is to be woken;
    /// `None` for a link without PAUSE.
    pub(crate) fn turn(&mut self, now: Time) -> Option<Turn> {
        self.commit(now);
        let control = self.control_mut()?;
        let mut released = Vec::new();
        let departs = control.check_at <= now;
        if departs {
            control.check_at = Time::NEVER;
            let (bytes, packets) = control.backlog();
            control.holds.retain(|&(link, xon)| {
                let is_over = is_down_to(xon, bytes, packets);
                if is_over {
                    released.push(link);
                }
                !is_over
            });
        }
        let repeats = match &mut control.pausing {
            Some(pausing) if pausing.repeat_at <= now => {
                pausing.repeat_at = Time::NEVER;
                Some(pausing.spec.quanta)
            }
            _ => None,
        };
        let wakes_host = control.host_wake <= now;
        if wakes_host {
            control.host_wake = Time::NEVER;
        }
        self.rearm(now);
        Some(Turn { released, repeats, wakes_host, departs })
    }

    /// Lets the queue hold `link`, whose packet just arrived, if its backlog has reached XOFF. Returns true if it did
    /// not hold the link before.
    pub(crate) fn hold(&mut self, now: Time, link: u32, spec: &PauseSpec) -> bool {
        self.commit(now);
        let Some(control) = self.control_mut() else { return false };
        let (bytes, packets) = control.backlog();
        if !spec.xoff.is_reached(bytes, packets) || control.holds.iter().any(|&(held, _)| held == link) {
            return false;
        }
        control.holds.push((link, spec.xon));
        self.rearm(now);
        true
    }

    /// Counts a queue that begins (`true`) or ends to hold the other end of the cable, which sends at `rate`. Sends a
    /// frame if it is the first or the last.
    pub(crate) fn count_hold(&mut self, now: Time, begins: bool, rate: Rate) {
        let Some(pausing) = self.control_mut().and_then(|control| control.pausing.as_mut()) else { return };
        let quanta = pausing.spec.quanta;
        if begins {
            pausing.holders += 1;
            if pausing.holders == 1 {
                self.send_frame(now, quanta, rate);
            }
        } else {
            pausing.holders -= 1;
            if pausing.holders == 0 {
                self.send_frame(now, 0, rate);
            }
        }
    }

    /// Queues a frame for the other end of the cable, which sends at `rate`, in place of a frame that still waits.
    pub(crate) fn send_frame(&mut self, now: Time, quanta: u16, rate: Rate) {
        self.commit(now);
        let Some(control) = self.control_mut() else { return };
        control.frame = Some((quanta, now));
        if let Some(pausing) = &mut control.pausing {
            let repeat_after = PauseSpec::length(rate, quanta) / 2;
            pausing.repeat_at = if quanta == 0 { Time::NEVER } else { now + repeat_after };
        }
        self.commit_controlled(now);
    }

    /// Counts a frame that this link carried.
    pub(crate) fn count_frame(&mut self) {
        if let Some(control) = self.control_mut() {
            control.frames_carried += 1;
        }
    }

    /// The rate of the transmitter.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// The quanta of the pause that this end of the cable orders now, if it does.
    pub(crate) fn ordered_pause(&self) -> Option<u16> {
        let pausing = self.control()?.pausing.as_ref()?;
        (pausing.holders > 0).then_some(pausing.spec.quanta)
    }

    /// Applies a frame that arrived from the other end. The end of a pause wakes a waiting host.
    pub(crate) fn pause(&mut self, now: Time, quanta: u16) {
        self.commit(now);
        let (busy_until, length) = (self.busy_until, PauseSpec::length(self.rate, quanta));
        let Some(control) = self.control_mut() else { return };
        control.frames_received += 1;
        control.silence = control.silence(now);
        control.silent_from = busy_until.max(now);
        control.paused_until = now + length;
        if quanta == 0 && control.host_wake != Time::NEVER {
            control.host_wake = now;
        }
        self.commit_controlled(now);
    }
}

/// The outcome of a turn.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The links whose hold ends.
    pub(crate) released: Vec<u32>,
    /// The quanta of a frame that is due again.
    pub(crate) repeats: Option<u16>,
    /// A host waits for this time.
    pub(crate) wakes_host: bool,
    /// A transmission began that is to be checked.
    pub(crate) departs: bool,
}
