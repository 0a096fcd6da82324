//! A reference engine for tests, as plain as possible: one heap of events, one event for the end of every transmission
//! and one for every arrival, explicit queues.
//!
//! It compiles only with the feature `oracle`, which the tests of this crate and of those above it enable. [`try_run`]
//! runs a configuration in either engine and returns the records, so that tests can compare them on random scenarios.

use crate::config::{Change, Discipline, RunConfig};
use crate::engine::fabric::{
    AT_HOST, AT_INTERFACE, Ahead, Alarm, AnnouncedEvent, CalendarFabric, Event, Fabric, TreeFabric,
};
use crate::physics::PhysicsViolation;
use crate::records::{CLASSES, Records};
use crate::routing::network::{Limit, NodeId};
use crate::routing::routes::Routes;
use crate::wire::effects::Draws;
use crate::wire::link::{Faults, LinkCounts, LinkSpec, PlannedDrop};
use crate::wire::packet::{Flags, Packet};
use crate::wire::pause::{FRAME_BYTES, PauseSpec, is_down_to};
use crate::wire::qdisc::{ActiveQueue, PriorityQueue};
use crate::wire::rcp_meter::RcpMeter;
use crate::wire::telemetry::Stamper;
use crate::wire::trace::Follower;
use crate::world::World;
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Events, in their order within one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    TransmissionEnds(u32),
    /// Arrival at the far end of a link, then wake-up of its transmitter, ordered by link.
    Arrives(u32),
    Wakes(u32),
    /// A packet arrives at the far end of a link that was sent before the delay fell.
    ArrivesLate(u32),
    /// A packet may leave the stage at the far end of a link.
    Leaves(u32),
    /// The queue of a link with PAUSE releases links, or repeats a frame.
    Turn(u32),
    /// A pause of the link may be over.
    Resumes(u32),
    Alarm(u8),
}

impl Kind {
    fn rank(self) -> (u8, u32, u8) {
        match self {
            Kind::TransmissionEnds(link) => (0, link, 0),
            Kind::Arrives(link) => (1, link, 0),
            Kind::Turn(link) => (1, link, 1),
            Kind::Wakes(link) => (1, link, 2),
            Kind::Resumes(link) => (0, link, 0),
            Kind::ArrivesLate(link) => (2, link, 0),
            Kind::Leaves(link) => (2, link, 1),
            Kind::Alarm(alarm) => (3, u32::from(alarm), 0),
        }
    }
}

/// A waiting packet, and the link for which it is counted.
type Counted = (Packet, Option<u32>);

enum Waiting {
    Fifo(VecDeque<Packet>),
    Priority(Box<PriorityQueue>),
    Active(Box<ActiveQueue>),
    /// A queue for each class, and the links for which packets are counted.
    Classes(Box<[VecDeque<Counted>; CLASSES]>),
}

impl Waiting {
    fn of(spec: &LinkSpec, seed: u64, number: u64) -> Waiting {
        match &spec.queue.discipline {
            _ if spec.has_class_queues => Waiting::Classes(Box::default()),
            Discipline::Fifo => Waiting::Fifo(VecDeque::new()),
            Discipline::Priority => Waiting::Priority(Box::new(PriorityQueue::of(spec))),
            Discipline::Active(law) => Waiting::Active(Box::new(ActiveQueue::new(&**law, spec, seed, number))),
        }
    }
}

/// A packet in the stage at the far end of a link.
struct Staged {
    /// When it leaves; in which order among equal times; and the arrival that it follows, if it is held back.
    at: Time,
    order: u64,
    follows: Option<u64>,
    /// Its number in the order of sending. A copy has the number of its original.
    number: u64,
    packet: Packet,
}

struct Port {
    draws: Option<Draws>,
    staged: Vec<Staged>,
    /// Packets that were sent before the delay fell, each with its time of arrival and its number, in the order of sending.
    late: Vec<(Time, u64, Packet)>,
    /// The last number given, that of the packet that was staged last, and the highest of those that left.
    numbers: [u64; 3],
    /// Arrivals at the stage, orders given so far, and the latest time of a packet that is not held back.
    stage_counts: [u64; 2],
    latest: Time,
    spec: LinkSpec,
    waiting: Waiting,
    in_transmission: Option<Packet>,
    free_at: Time,
    /// Packets on the wire, each with its time of arrival.
    wire: VecDeque<(Time, Packet)>,
    follower: Option<Follower>,
    faults: Faults,
    meter: Option<RcpMeter>,
    stamper: Option<Stamper>,
    wake: Time,
    counts: LinkCounts,
    /// PAUSE: the end of the current pause; the frame that waits; the frame in transmission.
    paused_until: Time,
    frame: Option<u16>,
    in_frame: Option<u16>,
    /// The links that the queue holds, with their XON, and the number of queues that hold the other end of the cable.
    holds: Vec<(u32, Limit)>,
    holders: u32,
    repeat_at: Time,
    silent_from: Time,
    /// Priority-based flow control: the paused classes, the time since which there is one, and a host that waits.
    paused_classes: u8,
    classes_paused_from: Time,
    host_waits: bool,
    /// The count of packets that came over this link, by class, and the classes that are paused for it.
    counted: [u64; CLASSES],
    pausing: u8,
    marking: Stream,
}

impl Port {
    fn is_paused(&self, now: Time) -> bool {
        self.paused_until > now
    }

    fn is_busy(&self) -> bool {
        self.in_transmission.is_some() || self.in_frame.is_some()
    }

    fn backlog(&self) -> (u64, u64) {
        match &self.waiting {
            Waiting::Fifo(packets) => (packets.iter().map(Packet::wire_bytes).sum(), packets.len() as u64),
            Waiting::Priority(queue) => (queue.backlog_bytes(), queue.backlog_packets()),
            Waiting::Active(active) => active.backlog(),
            Waiting::Classes(classes) => {
                let packets = || classes.iter().flatten();
                (packets().map(|(packet, _)| packet.wire_bytes()).sum(), packets().count() as u64)
            }
        }
    }

    fn bytes_in_classes(&self, count: usize) -> u64 {
        let bytes = |packet: &Packet| if usize::from(packet.class()) < count { packet.wire_bytes() } else { 0 };
        match &self.waiting {
            Waiting::Fifo(packets) => packets.iter().map(bytes).sum(),
            Waiting::Priority(queue) => queue.bytes_in_classes(count),
            Waiting::Active(_) => 0,
            Waiting::Classes(classes) => classes.iter().flatten().map(|(packet, _)| bytes(packet)).sum(),
        }
    }

    fn is_class_paused(&self, class: usize) -> bool {
        self.paused_classes >> class & 1 == 1
    }

    /// Returns true if packets wait, all in paused classes.
    fn is_stuck(&self) -> bool {
        let Waiting::Classes(classes) = &self.waiting else { return false };
        let waits = |class: &usize| !classes[*class].is_empty();
        let mut waiting = (0..CLASSES).filter(waits).peekable();
        waiting.peek().is_some() && waiting.all(|class| self.is_class_paused(class))
    }
}

type Key = (Time, (u8, u32, u8), u64);

pub(crate) struct TwoEventFabric {
    ports: Vec<Port>,
    routes: Vec<u32>,
    heap: BinaryHeap<Reverse<(Key, u64)>>,
    kinds: BTreeMap<u64, Kind>,
    serial: u64,
    alarms: [Time; Alarm::ALL.len()],
    dropped: Vec<Packet>,
    announced: Option<AnnouncedEvent>,
    /// The transmission that begins is that of a packet that did not wait.
    is_direct: bool,
    events: u64,
}

impl TwoEventFabric {
    fn push(&mut self, at: Time, kind: Kind) {
        self.serial += 1;
        self.kinds.insert(self.serial, kind);
        self.heap.push(Reverse(((at, kind.rank(), self.serial), self.serial)));
    }

    fn wake_at(&mut self, at: Time, link: u32) {
        let port = &mut self.ports[link as usize];
        if at < port.wake {
            port.wake = at;
            self.push(at, Kind::Wakes(link));
        }
    }

    /// Begins the next transmission. `has_waited` is true for packets that arrived before `now`.
    fn start_transmission(&mut self, now: Time, link: u32, has_waited: bool) {
        let port = &mut self.ports[link as usize];
        if port.faults.is_down {
            // A link that is down carries no frame.
            port.frame = None;
        }
        if let Some(quanta) = port.frame.take() {
            port.in_frame = Some(quanta);
            port.free_at = now + port.spec.rate.byte_time().of(FRAME_BYTES);
            let at = port.free_at;
            return self.push(at, Kind::TransmissionEnds(link));
        }
        if port.is_paused(now) {
            let at = port.paused_until;
            return self.push(at, Kind::Resumes(link));
        }
        let paused_classes = port.paused_classes;
        let mut counted = None;
        let next = match &mut port.waiting {
            Waiting::Classes(classes) => {
                let free = (0..CLASSES).find(|&class| paused_classes >> class & 1 == 0 && !classes[class].is_empty());
                free.and_then(|class| classes[class].pop_front()).map(|(packet, from)| {
                    counted = from;
                    packet
                })
            }
            Waiting::Fifo(packets) => packets.pop_front(),
            Waiting::Priority(queue) => queue.dequeue(),
            Waiting::Active(active) => active.dequeue(now),
        };
        self.take_victims(link);
        if let (Some(from), Some(packet)) = (counted, &next) {
            self.ports[from as usize].counted[usize::from(packet.class())] -= packet.wire_bytes();
        }
        if let Some(mut packet) = next {
            let router = self.ports[link as usize].spec.pfc_router;
            let is_watched =
                router.is_some() && self.entries(router).into_iter().any(|from| self.ports[from as usize].pausing != 0);
            let port = &mut self.ports[link as usize];
            if let Some(meter) = &mut port.meter {
                meter.handle_departure(now, &mut packet);
            }
            if let Some(mut stamper) = port.stamper.take() {
                stamper.stamp(now, &packet, port.spec.rate, |classes| port.bytes_in_classes(classes));
                port.stamper = Some(stamper);
            }
            port.in_transmission = Some(packet);
            port.free_at = match &mut port.follower {
                Some(follower) => follower.end(now, has_waited, packet.wire_bytes(), port.spec.min_time),
                None => now + port.spec.time_of(&packet),
            };
            let (at, has_holds) = (port.free_at, !port.holds.is_empty());
            self.push(at, Kind::TransmissionEnds(link));
            if has_holds || is_watched && !self.is_direct {
                self.push(now, Kind::Turn(link));
            }
        }
    }

    /// Returns true if the memory that a queue shares with others, if any, has room for `packet`. May push out packets
    /// for it.
    fn memory_admits(&mut self, link: u32, packet: &Packet, victims: &mut Vec<Packet>) -> bool {
        let Some(memory) = self.ports[link as usize].spec.memory else { return true };
        loop {
            let shares = |port: &&Port| port.spec.memory.is_some_and(|other| other.router == memory.router);
            let all_bytes: u64 = self.ports.iter().filter(shares).map(|port| port.backlog().0).sum();
            let port = &mut self.ports[link as usize];
            let own_bytes = port.backlog().0;
            if memory.spec.admits(own_bytes, all_bytes - own_bytes, packet.wire_bytes()) {
                return true;
            }
            let victim = match &mut port.waiting {
                Waiting::Priority(queue) => queue.push_out(packet.class()),
                Waiting::Active(queue) => queue.push_out(packet.class()),
                _ => None,
            };
            let Some(victim) = victim else { return false };
            victims.push(victim);
        }
    }

    /// The links into a router that have thresholds of priority-based flow control.
    fn entries(&self, router: Option<NodeId>) -> Vec<u32> {
        let of_router = |link: &u32| {
            let back = &self.ports[*link as usize].spec;
            back.pfc.is_some() && back.pfc_router == router
        };
        (0..self.ports.len() as u32).filter(of_router).map(|back| back ^ 1).collect()
    }

    /// Queues a PAUSE frame on `link`, in place of one that waits.
    fn send_frame(&mut self, now: Time, link: u32, quanta: u16) {
        let rate = self.ports[(link ^ 1) as usize].spec.rate;
        let port = &mut self.ports[link as usize];
        port.frame = Some(quanta);
        let Some(spec) = port.spec.pauses else {
            if !port.is_busy() {
                self.start_transmission(now, link, false);
            }
            return;
        };
        port.repeat_at = if quanta == 0 { Time::NEVER } else { now + PauseSpec::length(rate, spec.quanta) / 2 };
        let repeat_at = port.repeat_at;
        let is_busy = port.is_busy();
        if repeat_at != Time::NEVER {
            self.push(repeat_at, Kind::Turn(link));
        }
        if !is_busy {
            self.start_transmission(now, link, false);
        }
    }

    /// Counts a queue that begins or ends to hold the far end of the cable of `back`.
    fn count_hold(&mut self, now: Time, back: u32, begins: bool) {
        let port = &mut self.ports[back as usize];
        port.holders = if begins { port.holders + 1 } else { port.holders - 1 };
        let (holders, quanta) = (port.holders, port.spec.pauses.map_or(0, |spec| spec.quanta));
        match (begins, holders) {
            (true, 1) => self.send_frame(now, back, quanta),
            (false, 0) => self.send_frame(now, back, 0),
            _ => {}
        }
    }

    fn take_turn(&mut self, now: Time, link: u32) {
        let router = self.ports[link as usize].spec.pfc_router;
        for from in self.entries(router).into_iter().filter(|_| router.is_some()) {
            let Some(spec) = self.ports[(from ^ 1) as usize].spec.pfc else { continue };
            let port = &mut self.ports[from as usize];
            let is_over = |class: &usize| port.pausing >> class & 1 == 1 && port.counted[*class] <= spec.xon_bytes;
            let over: u8 = (0..CLASSES).filter(is_over).map(|class| 1 << class).sum();
            if over != 0 {
                port.pausing &= !over;
                let classes = u16::from(port.pausing);
                self.send_frame(now, from ^ 1, classes);
            }
        }
        let port = &mut self.ports[link as usize];
        let (bytes, packets) = port.backlog();
        let (over, kept) = port.holds.iter().partition(|(_, xon)| is_down_to(*xon, bytes, packets));
        let _: &Vec<(u32, Limit)> = &over;
        port.holds = kept;
        for (held, _) in over {
            self.count_hold(now, held ^ 1, false);
        }
        let port = &mut self.ports[link as usize];
        if port.repeat_at <= now {
            let quanta = port.spec.pauses.map_or(0, |spec| spec.quanta);
            self.send_frame(now, link, quanta);
        }
    }

    /// Applies a frame that arrived over `from` to the other direction.
    fn pause(&mut self, now: Time, from: u32, quanta: u16) {
        let link = from ^ 1;
        let port = &mut self.ports[link as usize];
        port.counts.pause_frames += 1;
        if port.spec.has_class_queues {
            let classes = quanta as u8;
            if port.paused_classes == 0 {
                port.classes_paused_from = now;
            } else if classes == 0 {
                port.counts.silence += now.saturating_since(port.classes_paused_from);
            }
            let ends = port.paused_classes & !classes != 0;
            port.paused_classes = classes;
            let (is_busy, wakes) = (port.is_busy(), ends && std::mem::take(&mut port.host_waits));
            if wakes {
                self.wake_at(now, link);
            }
            if !is_busy {
                self.start_transmission(now, link, false);
            }
            return;
        }
        port.counts.silence += port.paused_until.min(now).saturating_since(port.silent_from);
        port.paused_until = now + PauseSpec::length(port.spec.rate, quanta);
        port.silent_from = if port.is_busy() { port.free_at.max(now) } else { now };
        let (wake, is_busy) = (port.wake, port.is_busy());
        if quanta == 0 && wake != Time::NEVER {
            self.wake_at(now, link);
        }
        if !is_busy {
            self.start_transmission(now, link, false);
        }
    }

    /// Lets the queue of `to` hold `from`, over which a packet just arrived.
    fn hold(&mut self, now: Time, from: u32, to: u32) {
        let Some(spec) = self.ports[(from ^ 1) as usize].spec.pauses else { return };
        let port = &mut self.ports[to as usize];
        let (bytes, packets) = port.backlog();
        if spec.xoff.is_reached(bytes, packets) && port.holds.iter().all(|&(held, _)| held != from) {
            port.holds.push((from, spec.xon));
            self.count_hold(now, from ^ 1, true);
        }
    }

    /// Sets the rate and the delay of a link. What is left of the packet in transmission takes as many times longer as
    /// the whole packet does. Packets on the wire arrive no later than one that leaves the transmitter now, unless the
    /// change `reorders` packets.
    fn retune(&mut self, now: Time, link: u32, spec: &LinkSpec, reorders: bool) {
        let port = &mut self.ports[link as usize];
        let in_transmission = port.in_transmission.or(port.in_frame.map(Packet::pause));
        let before = in_transmission.map(|packet| port.spec.time_of(&packet));
        (port.spec.rate, port.spec.delay) = (spec.rate, spec.delay);
        let mut due = Vec::new();
        if let (Some(packet), Some(before)) = (in_transmission, before) {
            let (left, whole) = ((port.free_at - now).as_ps(), port.spec.time_of(&packet).as_ps());
            let left = (u128::from(left) * u128::from(whole)).div_ceil(u128::from(before.as_ps()));
            port.free_at = now + Dur::from_ps(left as u64);
            due.push((port.free_at, Kind::TransmissionEnds(link)));
        }
        let limit = now + spec.delay;
        let is_late = |(at, packet): &(Time, Packet)| *at > limit && packet.pause_quanta().is_none();
        if reorders {
            let (late, others): (Vec<_>, Vec<_>) = port.wire.drain(..).partition(is_late);
            port.wire.extend(others);
            port.counts.delivered_packets += late.len() as u64;
            port.counts.delivered_bytes += late.iter().map(|(_, packet)| packet.wire_bytes()).sum::<u64>();
            due.extend(late.iter().map(|(at, _)| (*at, Kind::ArrivesLate(link))));
            for (at, packet) in late {
                port.numbers[0] += 1;
                port.late.push((at, port.numbers[0], packet));
            }
        }
        for (at, _) in port.wire.iter_mut().filter(|(at, _)| *at > limit) {
            *at = limit;
            due.push((limit, Kind::Arrives(link)));
        }
        if let Waiting::Active(active) = &mut port.waiting {
            active.handle_rate(spec.rate);
        }
        if let Some(meter) = &mut port.meter {
            meter.handle_rate(now, spec.rate);
        }
        let is_awaited = port.wake != Time::NEVER;
        due.into_iter().for_each(|(at, kind)| self.push(at, kind));
        if is_awaited {
            self.wake_at(now, link);
        }
    }

    /// Counts and collects the drops of an active queue.
    fn take_victims(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        let Waiting::Active(active) = &mut port.waiting else { return };
        for victim in active.fates.dropped.drain(..) {
            port.counts.dropped[usize::from(victim.class()) & (CLASSES - 1)] += 1;
            self.dropped.push(victim);
        }
    }

    /// Adds a packet with this number to the stage of `link`.
    fn add_to_stage(&mut self, now: Time, link: u32, number: u64, packet: Packet) {
        let port = &mut self.ports[link as usize];
        port.numbers[1] = number;
        let Some(draws) = &mut port.draws else { return };
        let may_overtake = draws.effects.jitter.is_some_and(|jitter| jitter.reorders);
        let undisturbed = now + draws.extra();
        let at = if may_overtake { undisturbed } else { undisturbed.max(port.latest) };
        let [arrivals, orders] = port.stage_counts;
        let mut times = vec![at];
        match draws.is_held() {
            Some(held) => {
                let follows = Some(arrivals + held.distance);
                times = vec![at + held.within];
                port.staged.push(Staged { at: at + held.within, order: orders, follows, number, packet });
            }
            None => {
                port.latest = port.latest.max(at);
                port.staged.push(Staged { at, order: orders, follows: None, number, packet });
            }
        }
        // The packet that waited for this one leaves right behind it.
        for other in port.staged.iter_mut().filter(|other| other.follows == Some(arrivals) && other.at > at) {
            (other.at, other.order) = (at, orders + 1);
            times.push(at);
        }
        port.stage_counts = [arrivals + 1, orders + 2];
        times.into_iter().for_each(|at| self.push(at, Kind::Leaves(link)));
    }

    /// Takes the packet that leaves the stage of `link` now, if there is one.
    fn take_of_stage(&mut self, now: Time, link: u32) -> Option<Packet> {
        let Port { staged, numbers, counts, .. } = &mut self.ports[link as usize];
        let due = (0..staged.len()).filter(|&place| staged[place].at <= now);
        let next = due.min_by_key(|&place| (staged[place].at, staged[place].order))?;
        let Staged { number, packet, .. } = staged.remove(next);
        counts.reordered += u64::from(number < numbers[2]);
        numbers[2] = numbers[2].max(number);
        Some(packet)
    }

    /// Handles a packet at the far end of `link`, with its number if it has one.
    fn arrive(&mut self, now: Time, link: u32, number: Option<u64>, packet: Packet) -> Option<Event> {
        let port = &mut self.ports[link as usize];
        if packet.is_lost_on_wire() {
            port.counts.lost += 1;
            self.dropped.push(packet);
            return None;
        }
        let Some(draws) = &mut port.draws else { return self.pass_on(now, link, packet) };
        let is_doubled = draws.is_doubled();
        let number = number.unwrap_or_else(|| {
            port.numbers[0] += 1;
            port.numbers[0]
        });
        self.add_to_stage(now, link, number, packet);
        self.announced = is_doubled.then_some(AnnouncedEvent::Doubled(link, packet));
        is_doubled.then_some(Event::Announced)
    }

    /// Lets a packet that crossed `link` continue on its route. Returns the event if it is at its host.
    fn pass_on(&mut self, now: Time, link: u32, packet: Packet) -> Option<Event> {
        match self.routes[packet.route() as usize] {
            AT_HOST => return Some(Event::Delivered(packet)),
            AT_INTERFACE => return Some(Event::AtInterface(packet)),
            onward if self.ports[onward as usize].spec.pfc_router.is_some() => {
                self.enter_counted(now, link, onward, packet)
            }
            onward => {
                self.enter(now, onward, packet, None);
                self.hold(now, link, onward);
            }
        }
        None
    }

    /// Passes a packet to a port of a router with priority-based flow control.
    fn enter_counted(&mut self, now: Time, from: u32, link: u32, packet: Packet) {
        let (class, bytes) = (usize::from(packet.class()), packet.wire_bytes());
        let Some(spec) = self.ports[(from ^ 1) as usize].spec.pfc.filter(|spec| spec.is_lossless(packet.class()))
        else {
            return self.enter(now, link, packet, None);
        };
        let entry = &self.ports[from as usize];
        if entry.counted[class] + bytes > spec.xoff_bytes + spec.headroom_bytes {
            let counts = &mut self.ports[link as usize].counts;
            counts.arrived[class] += 1;
            counts.dropped[class] += 1;
            return self.dropped.push(packet.onward(packet.at));
        }
        self.enter(now, link, packet, Some(from));
        let entry = &mut self.ports[from as usize];
        if entry.counted[class] >= spec.xoff_bytes && entry.pausing >> class & 1 == 0 {
            entry.pausing |= 1 << class;
            let classes = u16::from(entry.pausing);
            self.send_frame(now, from ^ 1, classes);
        }
    }

    /// Passes a packet to a link. A packet that waits is counted for the link `from`.
    fn enter(&mut self, now: Time, link: u32, packet: Packet, from: Option<u32>) {
        let mut packet = packet.onward(packet.at);
        let port = &mut self.ports[link as usize];
        port.counts.arrived[usize::from(packet.class())] += 1;
        if packet.class() > 0 && port.spec.queue.bars_low_priority {
            port.counts.dropped[usize::from(packet.class())] += 1;
            self.dropped.push(packet);
            return;
        }
        // The meter and planned drops see every packet, in this order, as in the engine.
        let mut victims = Vec::new();
        let (bytes, _) = port.backlog();
        if let Some(meter) = &mut port.meter {
            meter.handle_arrival(now, &packet, bytes);
        }
        let planned = port.faults.drops(now, &mut packet);
        // An idle link transmits the packet at once, so neither the memory nor the queue's limit applies.
        let idle = !port.is_busy() && !port.is_paused(now) && !port.is_class_paused(usize::from(packet.class()));
        let refused = !planned && !idle && !self.memory_admits(link, &packet, &mut victims);
        let (mut counted_bytes, has_others) = (0, self.ports[link as usize].backlog().1 > 0);
        let port = &mut self.ports[link as usize];
        let (bytes, packets) = port.backlog();
        if planned || refused {
            victims.push(packet);
        } else {
            match &mut port.waiting {
                Waiting::Classes(classes) => {
                    let own = &mut classes[usize::from(packet.class())];
                    let (bytes, packets) = (own.iter().map(|(packet, _)| packet.wire_bytes()).sum(), own.len() as u64);
                    if !idle && from.is_none() && !port.spec.room().has_room(bytes, packets, packet.wire_bytes()) {
                        victims.push(packet);
                    } else {
                        let is_reached = |mark_at: Limit| mark_at.is_reached(bytes, packets);
                        let is_marked = !idle
                            && match port.spec.queue.mark_ramp {
                                Some(ramp) => ramp.marks(bytes, &mut port.marking),
                                None => port.spec.queue.mark_at.is_some_and(is_reached),
                            };
                        if is_marked && packet.flags().is_ecn_capable() {
                            packet.set(Flags::CE);
                            port.counts.marked += 1;
                        }
                        own.push_back((packet, from));
                        counted_bytes = packet.wire_bytes();
                    }
                }
                Waiting::Priority(queue) if !idle => queue.enqueue(&packet, &mut victims),
                Waiting::Priority(queue) => queue.enqueue(&packet, &mut Vec::new()),
                Waiting::Active(active) => active.enqueue(now, packet, idle.then_some(port.free_at)),
                Waiting::Fifo(waiting) => {
                    let fits = port.spec.room().has_room(bytes, packets, packet.wire_bytes());
                    if !idle && !fits {
                        victims.push(packet);
                    } else {
                        let mark = port.spec.queue.mark_at.is_some_and(|mark_at| mark_at.is_reached(bytes, packets));
                        if mark && !idle && packet.flags().is_ecn_capable() {
                            packet.set(Flags::CE);
                            port.counts.marked += 1;
                        }
                        waiting.push_back(packet);
                    }
                }
            }
        }
        for victim in victims {
            port.counts.dropped[usize::from(victim.class()) & (CLASSES - 1)] += 1;
            self.dropped.push(victim);
        }
        self.take_victims(link);
        if let Some(from) = from {
            self.ports[from as usize].counted[usize::from(packet.class())] += counted_bytes;
        }
        if idle {
            self.is_direct = !has_others;
            self.start_transmission(now, link, false);
            self.is_direct = false;
        }
    }
}

impl Fabric for TwoEventFabric {
    fn new(links: &[LinkSpec], seed: u64, _stop: Time) -> TwoEventFabric {
        let port = |(spec, number): (&LinkSpec, u64)| Port {
            draws: spec.draws(seed, number as u32),
            staged: Vec::new(),
            late: Vec::new(),
            numbers: [0; 3],
            stage_counts: [0; 2],
            latest: Time::ZERO,
            spec: spec.clone(),
            waiting: Waiting::of(spec, seed, number),
            in_transmission: None,
            free_at: Time::ZERO,
            wire: VecDeque::new(),
            follower: spec.trace.as_ref().map(Follower::new),
            faults: Faults::new(spec, seed, number),
            meter: spec.queue.rcp.map(|rcp| RcpMeter::new(rcp, spec.rate)),
            stamper: spec.telemetry.clone(),
            wake: Time::NEVER,
            counts: LinkCounts::default(),
            paused_until: Time::ZERO,
            frame: None,
            in_frame: None,
            holds: Vec::new(),
            holders: 0,
            repeat_at: Time::NEVER,
            silent_from: Time::ZERO,
            paused_classes: 0,
            classes_paused_from: Time::ZERO,
            host_waits: false,
            counted: [0; CLASSES],
            pausing: 0,
            marking: Stream::new(seed, Domain::Marking, number),
        };
        TwoEventFabric {
            ports: links.iter().zip(0..).map(port).collect(),
            routes: Vec::new(),
            heap: BinaryHeap::new(),
            kinds: BTreeMap::new(),
            serial: 0,
            alarms: [Time::NEVER; Alarm::ALL.len()],
            dropped: Vec::new(),
            announced: None,
            is_direct: false,
            events: 0,
        }
    }

    fn set_route(&mut self, _now: Time, at: u32, links: &[u32], last: u32) {
        let end = at as usize + links.len();
        self.routes.resize(self.routes.len().max(end + 1), AT_HOST);
        self.routes[at as usize..end].copy_from_slice(links);
        self.routes[end] = last;
    }

    fn send(&mut self, now: Time, packet: Packet) {
        self.enter(now, self.routes[packet.route() as usize], packet, None);
    }

    fn arm(&mut self, alarm: Alarm, at: Time) {
        self.alarms[alarm as usize] = at;
        if at != Time::NEVER {
            self.push(at, Kind::Alarm(alarm as u8));
        }
    }

    fn next(&mut self, _expect: impl Fn(Ahead, &Packet) -> Option<u32>) -> Option<(Time, Event)> {
        loop {
            let Reverse(((now, ..), serial)) = self.heap.pop()?;
            self.events += 1;
            match self.kinds.remove(&serial)? {
                // The packet is now on the wire, and the interface is free for the next one.
                Kind::TransmissionEnds(link) => {
                    let port = &mut self.ports[link as usize];
                    let arrival = now + port.spec.delay;
                    // A change of the rate leaves events behind, which are ignored.
                    if port.free_at != now {
                        continue;
                    }
                    let frame = port.in_frame.take().map(Packet::pause);
                    let Some(packet) = frame.or_else(|| port.in_transmission.take()) else { continue };
                    port.wire.push_back((arrival, packet));
                    self.push(arrival, Kind::Arrives(link));
                    self.start_transmission(now, link, true);
                }
                Kind::Arrives(link) => {
                    let port = &mut self.ports[link as usize];
                    // A change of the delay leaves events behind, too.
                    let Some(&(_, packet)) = port.wire.front().filter(|(at, _)| *at == now) else { continue };
                    port.wire.pop_front();
                    if let Some(quanta) = packet.pause_quanta() {
                        self.pause(now, link, quanta);
                        continue;
                    }
                    port.counts.delivered_packets += 1;
                    port.counts.delivered_bytes += packet.wire_bytes();
                    if let Some(event) = self.arrive(now, link, None, packet) {
                        return Some((now, event));
                    }
                }
                Kind::ArrivesLate(link) => {
                    let late = &mut self.ports[link as usize].late;
                    // A later change of the delay leaves events behind.
                    let due = (0..late.len()).filter(|&place| late[place].0 <= now);
                    let Some(next) = due.min_by_key(|&place| late[place].0) else { continue };
                    let (_, number, packet) = late.remove(next);
                    if let Some(event) = self.arrive(now, link, Some(number), packet) {
                        return Some((now, event));
                    }
                }
                Kind::Leaves(link) => {
                    let packet = self.take_of_stage(now, link);
                    if let Some(event) = packet.and_then(|packet| self.pass_on(now, link, packet)) {
                        return Some((now, event));
                    }
                }
                Kind::Turn(link) => self.take_turn(now, link),
                Kind::Resumes(link) => {
                    let port = &self.ports[link as usize];
                    if !port.is_busy() && !port.is_paused(now) {
                        self.start_transmission(now, link, false);
                    }
                }
                // Times of wake-ups and alarms may have changed since they were scheduled; old events are ignored.
                Kind::Wakes(link) => {
                    let port = &mut self.ports[link as usize];
                    if port.wake == now {
                        port.wake = Time::NEVER;
                        return Some((now, Event::Idle(link)));
                    }
                }
                Kind::Alarm(number) => {
                    let alarm = Alarm::ALL[usize::from(number)];
                    if self.alarms[alarm as usize] == now {
                        self.alarms[alarm as usize] = Time::NEVER;
                        return Some((now, Event::Alarm(alarm)));
                    }
                }
            }
        }
    }

    fn first_link(&self, at: u32) -> u32 {
        self.routes[at as usize]
    }

    fn is_idle(&mut self, now: Time, link: u32) -> bool {
        let port = &self.ports[link as usize];
        port.backlog().1 == 0 && (!port.is_busy() || port.free_at <= now) && !port.is_paused(now)
    }

    fn free_at(&self, link: u32) -> Option<Time> {
        let port = &self.ports[link as usize];
        let Waiting::Fifo(waiting) = &port.waiting else { return None };
        if port.spec.is_controlled || port.spec.changes || port.follower.is_some() {
            return None;
        }
        Some(waiting.iter().fold(port.free_at, |at, packet| at + port.spec.time_of(packet)))
    }

    fn wake_when_idle(&mut self, now: Time, link: u32) {
        let port = &mut self.ports[link as usize];
        if port.is_stuck() {
            port.host_waits = true;
            return;
        }
        let at = if port.is_busy() { port.free_at.max(now) } else { now };
        let at = at.max(port.paused_until);
        self.wake_at(at, link);
    }

    fn has_room(&mut self, now: Time, link: u32, bytes: u64) -> bool {
        let port = &self.ports[link as usize];
        let (waiting_bytes, packets) = port.backlog();
        let is_idle = !port.is_busy() && !port.is_paused(now) && !port.is_stuck();
        is_idle || port.spec.room().has_room(waiting_bytes, packets, bytes)
    }

    fn wake_when_room(&mut self, now: Time, link: u32, bytes: u64) {
        let port = &mut self.ports[link as usize];
        if port.is_stuck() {
            port.host_waits = true;
            return;
        }
        if port.spec.is_controlled {
            let at = if port.is_busy() { port.free_at.max(now) } else { now };
            let at = at.max(port.paused_until);
            return self.wake_at(at, link);
        }
        let (mut waiting_bytes, mut packets) = port.backlog();
        let mut at = port.free_at;
        // The departures on a link that follows a trace are not known in advance.
        if let (Waiting::Fifo(waiting), None) = (&port.waiting, &port.follower) {
            for packet in waiting {
                waiting_bytes -= packet.wire_bytes();
                packets -= 1;
                if port.spec.room().has_room(waiting_bytes, packets, bytes) {
                    break;
                }
                at += port.spec.time_of(packet);
            }
        }
        self.wake_at(at, link);
    }

    fn change(&mut self, now: Time, link: u32, change: Change, spec: &LinkSpec, seed: u64) {
        let faults = &mut self.ports[link as usize].faults;
        match change {
            Change::Rate(_) => {
                self.retune(now, link, spec, false);
                let back = &self.ports[(link ^ 1) as usize];
                if let Some(spec) = back.spec.pauses.filter(|_| back.holders > 0) {
                    self.send_frame(now, link ^ 1, spec.quanta);
                }
            }
            Change::Delay { delay, reorders } => {
                self.retune(now, link, spec, reorders);
                let limit = if reorders { Time::NEVER } else { now + spec.delay };
                let late = self.ports[link as usize].late.iter_mut().filter(|(at, ..)| *at > limit);
                let hastened = late.map(|(at, ..)| *at = limit).count();
                (0..hastened).for_each(|_| self.push(limit, Kind::ArrivesLate(link)));
                self.ports[link as usize].draws.iter_mut().for_each(|draws| draws.set_delay(delay));
            }
            Change::Loss(loss) => faults.set_loss(loss, seed, u64::from(link)),
            Change::Down(is_down) => faults.is_down = is_down,
        }
    }

    fn take_announced(&mut self) -> Option<AnnouncedEvent> {
        self.announced.take()
    }

    fn add_copy(&mut self, now: Time, link: u32, packet: Packet) {
        let port = &mut self.ports[link as usize];
        port.counts.duplicated += 1;
        let number = port.numbers[1];
        self.add_to_stage(now, link, number, packet);
    }

    fn plan_drop(&mut self, link: u32, planned: PlannedDrop) {
        self.ports[link as usize].faults.planned.push(planned);
    }

    fn forget_drops(&mut self, link: u32, flow: u32) {
        self.ports[link as usize].faults.forget(flow);
    }

    fn settle(&mut self, _now: Time) {}

    fn end(&mut self, _now: Time) {}

    fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    fn take_dropped(&mut self) -> Option<Packet> {
        self.dropped.pop()
    }

    fn backlog_bytes(&mut self, _now: Time, link: u32) -> u64 {
        self.ports[link as usize].backlog().0
    }

    fn explicit_rate(&self, now: Time, link: u32) -> Option<Rate> {
        self.ports[link as usize].meter.as_ref().map(|meter| meter.rate_at(now))
    }

    fn counts(&mut self, now: Time, link: u32) -> LinkCounts {
        let port = &self.ports[link as usize];
        let mut counts = port.counts;
        counts.silence += port.paused_until.min(now).saturating_since(port.silent_from);
        if port.paused_classes != 0 {
            counts.silence += now.saturating_since(port.classes_paused_from);
        }
        match &port.waiting {
            Waiting::Fifo(_) | Waiting::Classes(_) => {}
            Waiting::Priority(queue) => counts.marked = queue.marked(),
            Waiting::Active(active) => counts.marked = active.fates.marked,
        }
        counts
    }

    fn held_packets(&self, link: u32) -> u64 {
        let port = &self.ports[link as usize];
        let packets = port.wire.iter().filter(|(_, packet)| packet.pause_quanta().is_none()).count() as u64;
        packets + port.backlog().1 + u64::from(port.in_transmission.is_some())
    }

    fn staged_packets(&self, link: u32) -> u64 {
        let port = &self.ports[link as usize];
        (port.staged.len() + port.late.len()) as u64
    }

    fn events(&self) -> u64 {
        self.events
    }
}

/// The engine that runs a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The reference engine.
    Plain,
    /// The event tree, for networks of up to some 250 links.
    Fast,
    /// The calendar, for networks of thousands of links.
    Calendar,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The records, without values that differ between engines by design: events, and the largest backlog of links.
    pub records: Records,
    /// The simulated time at the end.
    pub ended: Time,
    /// The number of flow slots ever in use.
    pub slots: usize,
    /// Entries in use in the slab of SACK blocks once no flow is open any more, which must be none. Zero while flows
    /// are open.
    pub blocks_left: usize,
    /// Arrivals at fused links, which were no events: see `engine/tandems.rs`.
    pub fused_arrivals: u64,
    /// Packets that were put on a second link too early and retracted.
    pub retracted: u64,
}

/// Runs `config` in `engine` until the first event at or after `until`.
///
/// # Errors
/// A physical invariant was violated.
pub fn try_run(engine: Engine, config: RunConfig, until: Time) -> Result<Trial, PhysicsViolation> {
    let routes = Routes::of(&config.network, config.routing, config.seed);
    match engine {
        Engine::Plain => trial(World::<TwoEventFabric>::new(config, routes), until, |_| (0, 0)),
        Engine::Fast => trial(World::<TreeFabric<512>>::new(config, routes), until, TreeFabric::tandem_counts),
        Engine::Calendar => trial(World::<CalendarFabric>::new(config, routes), until, CalendarFabric::tandem_counts),
    }
}

fn trial<F: Fabric>(
    mut world: World<F>,
    until: Time,
    tandem_counts: impl Fn(&F) -> (u64, u64),
) -> Result<Trial, PhysicsViolation> {
    while world.now < until && !world.advance(1)? {}
    let is_over = world.flows.iter().all(|flow| !flow.open);
    let blocks_left = if is_over { world.blocks_in_use() } else { 0 };
    let (ended, slots) = (world.now, world.flows.len());
    let (_, retracted) = tandem_counts(&world.fabric);
    world.end_links();
    let (fused_arrivals, _) = tandem_counts(&world.fabric);
    let mut records = world.finish()?;
    records.totals.events = 0;
    records.links.peak_backlog_bytes.clear();
    Ok(Trial { records, ended, slots, blocks_left, fused_arrivals, retracted })
}
