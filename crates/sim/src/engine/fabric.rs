//! The event engine: links, the packets on them, and whose turn it is.
//!
//! [`Fabric`] is what the hosts see of the network. [`LinkFabric`] is the engine, one event per
//! packet and link. The tests hold a second, plain implementation against it.
//!
//! Order of events: time; then links by number (an arrival before a wake-up); then alarms in the order
//! of [`Alarm`]. Within one link and instant, a transmission begins before an arrival at the queue.
//!
//! What is dropped is known to the hosts before the next alarm at the latest: until then, it changes nothing for them.

use crate::engine::event_tree::EventTree;
use crate::engine::tandems::Tandems;
use crate::routing::network::NodeId;
use crate::wire::link::{Link, LinkCounts, LinkSpec, PlannedDrop};
use crate::wire::memory::SharedMemory;
use crate::wire::packet::{NO_BLOCKS, Packet};
use sparelane_core::{Rate, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The end of a route: the packet is at its host.
pub(crate) const AT_HOST: u32 = u32::MAX;
/// Beyond every route: the packet is lost on the wire.
const LOST: u32 = AT_HOST - 1;
/// The end of a route at a host whose interface coalesces interrupts.
pub(crate) const AT_INTERFACE: u32 = AT_HOST - 2;
/// In a route, added to a link whose queue shares its memory with others. All that is no plain link comes from here on.
const SHARED: u32 = 1 << 31;
/// In a route, added to a link that hands on.
const HANDS_ON: u32 = 3 << 30;
/// In a route, what is the number of the link.
const NUMBER: u32 = (1 << 30) - 1;

/// Events that are not packets. Each kind has at most one pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// The earliest timer of any flow.
    Timer,
    /// The next flow starts.
    FlowStart,
    /// Time series are sampled.
    Sample,
    /// The run is over.
    Stop,
    /// Whoever drives the run wants to look.
    Pause,
}

impl Alarm {
    pub(crate) const ALL: [Alarm; 5] = [Alarm::Timer, Alarm::FlowStart, Alarm::Sample, Alarm::Stop, Alarm::Pause];
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A packet is at its host.
    Delivered(Packet),
    /// A packet is at the interface of its host, and waits for an interrupt.
    AtInterface(Packet),
    /// A link that somebody waits for may have nothing to send, or room.
    Idle(u32),
    /// An alarm went off.
    Alarm(Alarm),
}

/// A packet that left a link that is watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// When it was at the far end.
    pub(crate) at: Time,
    pub(crate) link: u32,
    pub(crate) packet: Packet,
}

/// The network between hosts.
pub(crate) trait Fabric {
    /// A network at rest. What arrives after `stop` is of no interest.
    fn new(links: &[LinkSpec], seed: u64, stop: Time) -> Self;
    /// Sets the links of the route that starts at position `at`, which grows the table as needed, and its end: [`AT_HOST`] or
    /// [`AT_INTERFACE`]. Packets take it from `now` on.
    fn set_route(&mut self, now: Time, at: u32, links: &[u32], last: u32);
    /// A host sends `packet` along its route.
    fn send(&mut self, now: Time, packet: Packet);
    /// Sets an alarm, or clears it with [`Time::NEVER`].
    fn arm(&mut self, alarm: Alarm, at: Time);
    /// The next event; none if nothing is to happen any more.
    fn next(&mut self) -> Option<(Time, Event)>;
    /// The first link of the route at `at`.
    fn first_link(&self, at: u32) -> u32;
    fn is_idle(&mut self, now: Time, link: u32) -> bool;
    /// When `link` is done with everything that has come to it; none where the order in which it sends is not certain.
    fn free_at(&self, link: u32) -> Option<Time>;
    /// Asks for [`Event::Idle`] when `link` has nothing in transmission, at the earliest at `now`.
    fn wake_when_idle(&mut self, now: Time, link: u32);
    /// Whether a packet of `bytes` that came to `link` now would find room.
    fn has_room(&mut self, now: Time, link: u32, bytes: u64) -> bool;
    /// Asks for [`Event::Idle`] when there may be room for `bytes`, where there is none.
    fn wake_when_room(&mut self, now: Time, link: u32, bytes: u64);
    fn plan_drop(&mut self, link: u32, planned: PlannedDrop);
    /// The flow in this slot is over: what was planned for it on `link` is not for the next one there.
    fn forget_drops(&mut self, link: u32, flow: u32);
    /// Where the SACK blocks may be of the packet that is delivered next on the same link: a hint, to have them at hand.
    fn expected_blocks(&self) -> u32 {
        NO_BLOCKS
    }
    /// From now on, what crosses `link` on routes that are set later is kept, unless the link ends at the packet's host.
    fn watch_crossings(&mut self, link: u32) {
        let _ = link;
    }
    /// What crossed such links since the last call, in order.
    fn take_crossings(&mut self) -> Vec<Crossing> {
        Vec::new()
    }
    /// Notices what was dropped by `now` while nobody looked.
    fn settle(&mut self, now: Time);
    /// Packets that vanished since the last call.
    fn take_dropped(&mut self) -> Option<Packet>;
    /// Bytes that wait for `link`.
    fn backlog_bytes(&mut self, now: Time, link: u32) -> u64;
    /// The run ends at `now`: links hold what they hold then.
    fn end(&mut self, now: Time);
    /// The rate that `link` allows each of its RCP flows, if it computes one.
    fn explicit_rate(&self, now: Time, link: u32) -> Option<Rate>;
    fn counts(&mut self, now: Time, link: u32) -> LinkCounts;
    /// Packets that came to `link` and are still there or on the wire.
    fn held_packets(&self, link: u32) -> u64;
    /// Events handled until the end: a count over all links.
    fn events(&self) -> u64;
}

/// The engine.
#[derive(Debug)]
pub(crate) struct LinkFabric<const N: usize> {
    links: Vec<Link>,
    routes: Vec<u32>,
    tree: EventTree<N>,
    alarms: [Time; Alarm::ALL.len()],
    /// Links whose queues share a memory, and those of each router.
    memories: BTreeMap<u32, SharedMemory>,
    sharers: BTreeMap<NodeId, Vec<u32>>,
    tandems: Tandems,
    /// Links that may drop packets while nobody touches them.
    dropping_by_themselves: Vec<u32>,
    dropped: Vec<Packet>,
    /// Links of which it is kept what crosses them, and what has.
    watched: BTreeSet<u32>,
    crossings: Vec<Crossing>,
    /// The link of the last delivery at a host.
    delivered_by: u32,
    /// Events that were not the arrival of a packet.
    other_events: u64,
    /// What arrives later is of no interest.
    stop: Time,
    /// Packets that were handed on too early, as it turned out.
    #[cfg(feature = "oracle")]
    pub(crate) taken_back: u64,
}

impl<const N: usize> LinkFabric<N> {
    /// The links that such a fabric can have.
    pub(crate) const LINKS: usize = EventTree::<N>::LEAVES - Alarm::ALL.len();

    /// The next event of a leaf of the tree.
    #[inline]
    fn time_of(links: &[Link], alarms: &[Time], leaf: usize) -> Time {
        match links.get(leaf) {
            // What a link hands on stays on its wire for a while, and is no event.
            Some(link) if link.hands_on => Time::NEVER,
            Some(link) => link.next_event(),
            None => alarms.get(leaf - links.len()).copied().unwrap_or(Time::NEVER),
        }
    }

    /// Arrivals that were no events, once the run has ended, and packets that were taken back.
    #[cfg(feature = "oracle")]
    pub(crate) fn tandem_counts(&self) -> (u64, u64) {
        (self.links.iter().map(Link::handed_on).sum(), self.taken_back)
    }

    /// When something happens next, at the earliest.
    pub(crate) fn next_time(&self) -> Time {
        self.tree.earliest()
    }

    /// Lets `change` alter a link, which must not hand on.
    pub(crate) fn change_link(&mut self, link: u32, change: impl FnOnce(&mut Link)) {
        let at = link as usize;
        debug_assert!(!self.links[at].hands_on, "link {link} hands on, and is changed");
        change(&mut self.links[at]);
        let next = self.links[at].next_event();
        self.tree.set(at, next);
    }

    /// A packet comes to the queue of link `to`.
    #[inline(always)]
    fn enter(&mut self, now: Time, to: u32, packet: &Packet) {
        let link = &mut self.links[to as usize];
        if link.send(now, packet, &mut self.dropped) {
            let next = link.next_event();
            self.tree.lower(to as usize, next);
        }
    }

    /// A packet comes to the queue of a link that hands on: once on its wire, it goes to the next one at once, and to those
    /// behind it that hand on as well; but not where it would come after the end of the run.
    #[inline(always)]
    fn hand_on(&mut self, now: Time, onward: u32, packet: &Packet) {
        let first = &mut self.links[(onward & NUMBER) as usize];
        if !first.hands_on {
            // It was parted since the route was set.
            return self.enter(now, onward & NUMBER, packet);
        }
        let Some(mut packet) = first.send_and_tell(now, packet, &mut self.dropped) else { return };
        while packet.at <= self.stop {
            let onward = self.routes[packet.route() as usize];
            let to = onward & NUMBER;
            let link = &mut self.links[to as usize];
            let is_next = link.follow(&packet);
            if onward < SHARED || !link.hands_on {
                if is_next {
                    let next = link.next_event();
                    self.tree.lower(to as usize, next);
                }
                return;
            }
            link.make_room_on_wire(now);
            packet = packet.onward(link.last_arrival());
        }
    }

    /// From `now` on, `link` makes events: what it handed on comes back, as far as it has not arrived. Routes go on calling it one
    /// that hands on; it is asked itself.
    #[cold]
    fn part(&mut self, now: Time, link: u32) {
        let stop = self.stop;
        let handed_on: Vec<_> = self.links[link as usize].part(now).filter(|packet| packet.at <= stop).collect();
        for packet in handed_on {
            self.take_back(now, packet.route());
        }
        let next = self.links[link as usize].next_event();
        self.tree.set(link as usize, next);
    }

    /// Undoes that the newest packet came to the link at `route`, and to those behind.
    #[cold]
    fn take_back(&mut self, now: Time, route: u32) {
        let at = (self.routes[route as usize] & NUMBER) as usize;
        let link = &mut self.links[at];
        let Some(packet) = link.take_back(now) else { return };
        #[cfg(feature = "oracle")]
        {
            self.taken_back += 1;
        }
        if !link.hands_on {
            let next = link.next_event();
            self.tree.set(at, next);
        } else if packet.at <= self.stop {
            self.take_back(now, packet.route());
        }
    }

    /// A packet at the far end of link `from` is lost there, or goes on to a queue that shares its memory with others, or somebody
    /// hears of it.
    #[cold]
    #[inline(never)]
    fn divert(&mut self, now: Time, from: usize, onward: u32, packet: Packet) {
        let to = onward & !SHARED;
        if self.watched.contains(&(from as u32)) {
            self.crossings.push(Crossing { at: now, link: from as u32, packet });
        }
        match self.memories.get(&to) {
            Some(memory) if !packet.is_lost_on_wire() => {
                let others = self.sharers[&memory.router].iter().filter(|&&link| link != to);
                let others_bytes = others.map(|&link| self.links[link as usize].waiting(now).0).sum();
                let link = &mut self.links[to as usize];
                if link.send_shared(now, packet, (&memory.spec, others_bytes), &mut self.dropped) {
                    let next = link.next_event();
                    self.tree.lower(to as usize, next);
                }
            }
            None if !packet.is_lost_on_wire() => self.hand_on(now, to, &packet),
            _ => self.links[from].lose(packet, &mut self.dropped),
        }
    }
}

impl<const N: usize> Fabric for LinkFabric<N> {
    fn new(links: &[LinkSpec], seed: u64, stop: Time) -> LinkFabric<N> {
        assert!(links.len() <= Self::LINKS, "{} links; this fabric has room for {}", links.len(), Self::LINKS);
        let memories = (0..).zip(links).filter_map(|(number, spec)| Some((number, spec.memory?)));
        let memories: BTreeMap<u32, SharedMemory> = memories.collect();
        let mut sharers: BTreeMap<_, Vec<_>> = BTreeMap::new();
        memories.iter().for_each(|(&link, memory)| sharers.entry(memory.router).or_default().push(link));
        let links: Vec<_> = links.iter().zip(0..).map(|(spec, number)| Link::new(spec, seed, number)).collect();
        LinkFabric {
            tandems: Tandems::new(links.len()),
            dropping_by_themselves: (0..)
                .zip(&links)
                .filter(|(_, link)| link.drops_by_itself())
                .map(|(number, _)| number)
                .collect(),
            links,
            memories,
            sharers,
            routes: Vec::new(),
            tree: EventTree::new(),
            alarms: [Time::NEVER; Alarm::ALL.len()],
            dropped: Vec::new(),
            watched: BTreeSet::new(),
            crossings: Vec::new(),
            delivered_by: 0,
            other_events: 0,
            stop,
            #[cfg(feature = "oracle")]
            taken_back: 0,
        }
    }

    fn set_route(&mut self, now: Time, at: u32, links: &[u32], last: u32) {
        for link in self.tandems.learn(&mut self.links, links) {
            if self.links[link as usize].hands_on {
                self.part(now, link);
            }
        }
        let (start, end) = (at as usize, at as usize + links.len());
        if self.routes.len() <= end {
            self.routes.resize(end + 1, AT_HOST);
        }
        self.routes[start..end].copy_from_slice(links);
        if !self.memories.is_empty() {
            let shared = self.routes[start..end].iter_mut().filter(|link| self.memories.contains_key(link));
            shared.for_each(|link| *link |= SHARED);
        }
        if !self.watched.is_empty() {
            for place in 1..links.len() {
                if self.watched.contains(&links[place - 1]) {
                    self.routes[start + place] |= SHARED;
                }
            }
        }
        for link in self.routes[start..end].iter_mut().filter(|link| **link < SHARED) {
            if self.links[*link as usize].hands_on {
                *link |= HANDS_ON;
            }
        }
        self.routes[end] = last;
    }

    #[inline(always)]
    fn send(&mut self, now: Time, packet: Packet) {
        let link = self.routes[packet.route() as usize];
        self.enter(now, link, &packet);
    }

    fn arm(&mut self, alarm: Alarm, at: Time) {
        self.alarms[alarm as usize] = at;
        self.tree.set(self.links.len() + alarm as usize, at);
    }

    #[inline(always)]
    fn next(&mut self) -> Option<(Time, Event)> {
        loop {
            let (links, alarms) = (&self.links, &self.alarms);
            let (leaf, now) = self.tree.next(|leaf| Self::time_of(links, alarms, leaf))?;
            let Some(link) = self.links.get_mut(leaf) else {
                self.other_events += 1;
                let alarm = Alarm::ALL[leaf - self.links.len()];
                self.arm(alarm, Time::NEVER);
                if !self.dropping_by_themselves.is_empty() {
                    self.settle(now);
                }
                return Some((now, Event::Alarm(alarm)));
            };
            if link.wakes() {
                let next = link.next_event();
                self.tree.set(leaf, next);
                self.other_events += 1;
                return Some((now, Event::Idle(leaf as u32)));
            }
            let packet = link.deliver(now);
            let next = link.next_after(now);
            self.tree.set(leaf, next);
            let onward = self.routes.get(packet.route() as usize).copied().unwrap_or(LOST);
            if onward >= SHARED {
                if onward != AT_HOST {
                    if onward == AT_INTERFACE {
                        return Some((now, Event::AtInterface(packet)));
                    }
                    if (HANDS_ON..AT_INTERFACE).contains(&onward) {
                        self.hand_on(now, onward, &packet);
                        continue;
                    }
                    self.divert(now, leaf, onward, packet);
                    continue;
                }
                self.delivered_by = leaf as u32;
                return Some((now, Event::Delivered(packet)));
            }
            self.enter(now, onward, &packet);
        }
    }

    fn first_link(&self, at: u32) -> u32 {
        self.routes[at as usize]
    }

    #[inline(always)]
    fn is_idle(&mut self, now: Time, link: u32) -> bool {
        self.links[link as usize].is_idle(now)
    }

    fn free_at(&self, link: u32) -> Option<Time> {
        self.links[link as usize].free_at()
    }

    fn wake_when_idle(&mut self, now: Time, link: u32) {
        let at = link as usize;
        self.links[at].wake_when_idle(now);
        let next = self.links[at].next_event();
        self.tree.set(at, next);
    }

    fn has_room(&mut self, now: Time, link: u32, bytes: u64) -> bool {
        self.links[link as usize].has_room(now, bytes)
    }

    fn wake_when_room(&mut self, now: Time, link: u32, bytes: u64) {
        let at = link as usize;
        self.links[at].wake_when_room(now, bytes);
        let next = self.links[at].next_event();
        self.tree.set(at, next);
    }

    fn plan_drop(&mut self, link: u32, planned: PlannedDrop) {
        self.links[link as usize].plan_drop(planned);
    }

    fn forget_drops(&mut self, link: u32, flow: u32) {
        self.links[link as usize].forget_drops(flow);
    }

    fn watch_crossings(&mut self, link: u32) {
        self.watched.insert(link);
    }

    fn take_crossings(&mut self) -> Vec<Crossing> {
        std::mem::take(&mut self.crossings)
    }

    #[inline(always)]
    fn expected_blocks(&self) -> u32 {
        self.links[self.delivered_by as usize].following().blocks()
    }

    #[cold]
    #[inline(never)]
    fn settle(&mut self, now: Time) {
        for &link in &self.dropping_by_themselves {
            self.links[link as usize].settle(now, &mut self.dropped);
        }
    }

    #[inline(always)]
    fn take_dropped(&mut self) -> Option<Packet> {
        self.dropped.pop()
    }

    fn backlog_bytes(&mut self, now: Time, link: u32) -> u64 {
        self.links[link as usize].waiting(now).0
    }

    fn end(&mut self, now: Time) {
        for link in 0..self.links.len() as u32 {
            if self.links[link as usize].hands_on {
                self.part(now, link);
            }
        }
        self.settle(now);
    }

    fn explicit_rate(&self, now: Time, link: u32) -> Option<Rate> {
        self.links[link as usize].explicit_rate(now)
    }

    fn counts(&mut self, now: Time, link: u32) -> LinkCounts {
        self.links[link as usize].counts(now)
    }

    fn held_packets(&self, link: u32) -> u64 {
        self.links[link as usize].held_packets()
    }

    fn events(&self) -> u64 {
        self.other_events + self.links.iter().map(Link::events).sum::<u64>()
    }
}
