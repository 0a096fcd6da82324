//! The event engine: links, the packets on them, and the order of events.
//!
//! [`Fabric`] is the hosts' view of the network, and [`LinkFabric`] implements it with one event per packet and link. A
//! second, plain implementation (`engine/oracle.rs`) checks it in tests.
//!
//! Order of events: by time; then links by number (an arrival before a wake-up); then alarms in the order of [`Alarm`].
//! Within one link and instant, a transmission begins before a packet arrives at the queue. This order is total and
//! independent of how events are scheduled, so a run is reproducible to the bit.
//!
//! Hosts learn of a drop before the next alarm at the latest. Until then it changes nothing for them: a sender reacts
//! only to acknowledgments and timers.
//!
//! Routes are lists of links in one flat table, ended by a sentinel. A packet carries its position in that table, which
//! advances at every hop. The top two bits of an entry mark links that need more than the plain path; plain links,
//! hosts and all special cases separate by one comparison.

use crate::config::Change;
use crate::engine::calendar::Calendar;
use crate::engine::event_queue::EventQueue;
use crate::engine::event_tree::EventTree;
use crate::engine::exits::{BEHIND_BORDER, Exit, Exits, Parcel};
use crate::engine::pfc::Pfc;
use crate::engine::stages::Stage;
use crate::engine::tandems::Tandems;
use crate::records::CLASSES;
use crate::routing::network::NodeId;
use crate::wire::link::{Link, LinkCounts, LinkSpec, PlannedDrop, Turn};
use crate::wire::memory::SharedMemory;
use crate::wire::packet::{NO_BLOCKS, Packet};

use sparelane_core::{Dur, Rate, Time, prefetch, prefetch_start};
use std::collections::{BTreeMap, BTreeSet};

/// End of a route: the packet is at its host.
pub(crate) const AT_HOST: u32 = u32::MAX;
/// Position beyond every route: the packet is lost on the wire.
const LOST: u32 = AT_HOST - 1;
/// End of a route at a host whose interface coalesces interrupts.
pub(crate) const AT_INTERFACE: u32 = AT_HOST - 2;
/// End of the part of a route that is in one domain: the packet has left the transmitter of a link that leads to another
/// domain. The entries behind this one are those of [`Exits::entries`].
pub(crate) const AT_BORDER: u32 = AT_HOST - 3;
/// Flag of a route entry whose link needs `divert`: its queue shares memory with others, or the link before it is
/// watched. Entries from this value on are not plain links.
const SHARED: u32 = 1 << 31;
/// Flag of a route entry whose link is fused with the next one: see `engine/tandems.rs`.
const FUSED: u32 = 3 << 30;
/// Mask of a route entry's link number.
const NUMBER: u32 = (1 << 30) - 1;

/// Events that are not packets. Each kind has at most one pending event; ties are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// Links change.
    Change,
    /// The earliest timer of any flow.
    Timer,
    /// The next flow starts.
    FlowStart,
    /// Time series are sampled.
    Sample,
    /// The run is over.
    Stop,
    /// The caller of the run wants to inspect it.
    Pause,
}

impl Alarm {
    pub(crate) const ALL: [Alarm; 6] =
        [Alarm::Change, Alarm::Timer, Alarm::FlowStart, Alarm::Sample, Alarm::Stop, Alarm::Pause];
}

/// An event that concerns hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A packet is at its host.
    Delivered(Packet),
    /// A packet is at the interface of its host and waits for an interrupt.
    AtInterface(Packet),
    /// A link for which a host requested a wake-up may be idle, or may have room.
    Idle(u32),
    /// A stage let a packet out or doubles one, or a packet arrived over a link that a host waits for or that has a queue
    /// to replay: see `Fabric::take_announced`. The packet is not part of the event, so that other events stay in
    /// registers.
    Announced,
    /// An alarm went off.
    Alarm(Alarm),
}

/// The outcome of an event of a link for hosts.
enum LinkTurn {
    /// The event does not concern hosts.
    Done,
    /// A link for which a host requested a wake-up may be idle, or may have room.
    Idle,
    /// There is an event that `take_announced` returns.
    Announced,
}

/// An event at the far end of a link, which [`Event::Announced`] announces. It is not a packet that continues on its route.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnnouncedEvent {
    /// A packet is at its host.
    Delivered(Packet),
    /// A packet is at the interface of its host and waits for an interrupt.
    AtInterface(Packet),
    /// A packet that crossed this link is to arrive twice: the caller adds the copy (`Fabric::add_copy`).
    Doubled(u32, Packet),
}

/// The distance of an event for which something is prefetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// Some events ahead: prefetch what can be addressed at once.
    Far,
    /// Fewer events ahead: prefetch what is found through that.
    Near,
    /// The event is one of the next.
    Next,
}

/// The end of the part of a route that is in one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartEnd {
    /// A host, with the entry that ends the route there.
    Host(u32),
    /// Another domain, with the position of the route and the flow field of its packets there.
    Border { next: u32, flow: u32 },
}

/// A packet that left a watched link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// The time of arrival at the far end.
    pub(crate) at: Time,
    pub(crate) link: u32,
    pub(crate) packet: Packet,
}

/// The network between hosts, as the world sees it.
pub(crate) trait Fabric {
    /// True if the links are those of one of several domains.
    const IS_DOMAIN: bool = false;
    /// Returns a network at rest. Arrivals after `stop` need not be simulated.
    fn new(links: &[LinkSpec], seed: u64, stop: Time) -> Self;
    /// Writes the links of a route from position `at` on, and its end: [`AT_HOST`] or [`AT_INTERFACE`]. The table grows
    /// as needed. Packets use the route from `now` on.
    fn set_route(&mut self, now: Time, at: u32, links: &[u32], last: u32);
    /// Sends `packet`, from a host, along its route.
    fn send(&mut self, now: Time, packet: Packet);
    /// Sets an alarm, or clears it with [`Time::NEVER`].
    fn arm(&mut self, alarm: Alarm, at: Time);
    /// Returns the next event, or `None` if nothing is pending.
    /// For prefetching, calls `expect` with packets that will be delivered soon. It returns the position of the route on
    /// which the host answers, if that is known.
    fn next(&mut self, expect: impl Fn(Ahead, &Packet) -> Option<u32>) -> Option<(Time, Event)>;
    /// The first link of the route at `at`.
    fn first_link(&self, at: u32) -> u32;
    /// Returns true if the transmitter of `link` is free at `now` and nothing waits for it.
    fn is_idle(&mut self, now: Time, link: u32) -> bool;
    /// The time at which `link` will have sent everything in its queue, or `None` if its order of sending is not yet
    /// certain.
    fn free_at(&self, link: u32) -> Option<Time>;
    /// Requests [`Event::Idle`] for the time at which `link` is idle, `now` or later.
    fn wake_when_idle(&mut self, now: Time, link: u32);
    /// Returns true if a packet of `bytes` that arrived at `link` now would be admitted.
    fn has_room(&mut self, now: Time, link: u32, bytes: u64) -> bool;
    /// Requests [`Event::Idle`] for a time at which there may be room for `bytes`. Call it only if `has_room` is false.
    fn wake_when_room(&mut self, now: Time, link: u32, bytes: u64);
    /// Changes `link`, whose spec says that it changes. `spec` has the new rate and delay; random losses are drawn with
    /// `seed`.
    fn change(&mut self, now: Time, link: u32, change: Change, spec: &LinkSpec, seed: u64);
    /// Takes the event that [`Event::Announced`] announced.
    fn take_announced(&mut self) -> Option<AnnouncedEvent>;
    /// Adds the second copy of a packet that crossed `link`.
    fn add_copy(&mut self, now: Time, link: u32, packet: Packet);
    /// Adds scripted drops to `link`.
    fn plan_drop(&mut self, link: u32, planned: PlannedDrop);
    /// Discards the scripted drops of `link` for the flow in this slot, which is over: they are not meant for the
    /// slot's next flow.
    fn forget_drops(&mut self, link: u32, flow: u32);
    /// A hint for prefetching: the index of the SACK blocks of the packet that the same link delivers next.
    fn expected_blocks(&self) -> u32 {
        NO_BLOCKS
    }
    /// Records packets that cross `link` on routes set from now on, except where the route ends behind it.
    fn watch_crossings(&mut self, link: u32) {
        let _ = link;
    }
    /// Takes the recorded crossings since the last call, in order.
    fn take_crossings(&mut self) -> Vec<Crossing> {
        Vec::new()
    }
    /// Collects drops until `now` of queues that drop without being touched.
    fn settle(&mut self, now: Time);
    /// Returns true if a packet was dropped or lost and not taken yet.
    fn has_dropped(&self) -> bool;
    /// Takes one dropped or lost packet, if any.
    fn take_dropped(&mut self) -> Option<Packet>;
    /// Bytes that wait for `link`, without the packet in transmission.
    fn backlog_bytes(&mut self, now: Time, link: u32) -> u64;
    /// Ends the run at `now`, so that all links count what they hold at that time.
    fn end(&mut self, now: Time);
    /// The rate that `link` allows each of its RCP flows, if it computes one.
    fn explicit_rate(&self, now: Time, link: u32) -> Option<Rate>;
    /// The counters of `link` at `now`.
    fn counts(&mut self, now: Time, link: u32) -> LinkCounts;
    /// Packets in the queue or on the wire of `link`.
    fn held_packets(&self, link: u32) -> u64;
    /// Packets in the stage at the far end of `link`.
    fn staged_packets(&self, link: u32) -> u64;
    /// The number of handled events.
    fn events(&self) -> u64;
}

/// The engine of a network with few links.
pub(crate) type TreeFabric<const N: usize> = LinkFabric<EventTree<N>>;

/// The engine of a network with many links.
pub(crate) type CalendarFabric = LinkFabric<Calendar>;

/// The engine.
#[derive(Debug)]
pub(crate) struct LinkFabric<Q> {
    links: Vec<Link>,
    routes: Vec<u32>,
    events: Q,
    alarms: [Time; Alarm::ALL.len()],
    /// The stages of links that have one. Their leaves follow those of the links, and alarms follow them.
    stages: Vec<Stage>,
    first_alarm: usize,
    /// The announced event.
    announced: Option<AnnouncedEvent>,
    /// Memory of the links whose queues share it, and the links of each router with shared memory.
    memories: BTreeMap<u32, SharedMemory>,
    sharers: BTreeMap<NodeId, Vec<u32>>,
    tandems: Tandems,
    /// Links whose queues may drop packets while nothing arrives at them.
    self_dropping: Vec<u32>,
    dropped: Vec<Packet>,
    /// The links to other domains, and the packets that have left by them.
    exits: Exits,
    /// Links with packets that are going to leave for other domains without events.
    deferring: Vec<u32>,
    /// Links whose crossings are recorded, and the crossings since the last call of `take_crossings`.
    watched: BTreeSet<u32>,
    crossings: Vec<Crossing>,
    /// The link of the last delivery at a host, for `expected_blocks`.
    delivered_by: u32,
    /// Some link has PAUSE.
    has_pause: bool,
    /// The state of priority-based flow control, if some router has it.
    pfc: Option<Box<Pfc>>,
    /// Events that are not arrivals of packets.
    other_events: u64,
    /// The end of the run.
    stop: Time,
    /// Packets that were put on a second link too early and had to be retracted.
    #[cfg(feature = "oracle")]
    pub(crate) retracted: u64,
}

impl<Q: EventQueue> LinkFabric<Q> {
    /// The largest number of links and stages.
    pub(crate) const LINKS: usize = Q::SOURCES - Alarm::ALL.len();

    /// Returns a network at rest. Random numbers are drawn for each link by its number in `numbers`.
    pub(crate) fn of(links: &[LinkSpec], numbers: &[u32], seed: u64, stop: Time) -> LinkFabric<Q> {
        let stages: Vec<_> = links.iter().zip(0..).filter_map(|(spec, number)| Stage::of(spec, seed, number)).collect();
        let leaves = links.len() + stages.len();
        assert!(leaves <= Self::LINKS, "{leaves} links and stages; this fabric has room for {}", Self::LINKS);
        let memories = (0..).zip(links).filter_map(|(number, spec)| Some((number, spec.memory?)));
        let memories: BTreeMap<u32, SharedMemory> = memories.collect();
        let mut sharers: BTreeMap<_, Vec<_>> = BTreeMap::new();
        memories.iter().for_each(|(&link, memory)| sharers.entry(memory.router).or_default().push(link));
        let pfc = Pfc::of(links).map(Box::new);
        let links: Vec<_> =
            links.iter().zip(numbers).map(|(spec, &number)| Link::new(spec, seed, u64::from(number))).collect();
        LinkFabric {
            tandems: Tandems::new(links.len()),
            self_dropping: (0..)
                .zip(&links)
                .filter(|(_, link)| link.drops_untouched())
                .map(|(number, _)| number)
                .collect(),
            has_pause: links.iter().any(|link| link.pauses().is_some()),
            pfc,
            links,
            stages,
            first_alarm: leaves,
            announced: None,
            memories,
            sharers,
            routes: Vec::new(),
            events: Q::new(leaves, Alarm::ALL.len()),
            alarms: [Time::NEVER; Alarm::ALL.len()],
            dropped: Vec::new(),
            exits: Exits::none(),
            deferring: Vec::new(),
            watched: BTreeSet::new(),
            crossings: Vec::new(),
            delivered_by: 0,
            other_events: 0,
            stop,
            #[cfg(feature = "oracle")]
            retracted: 0,
        }
    }

    /// The time of the next event of a leaf.
    #[cold]
    fn time_of(links: &[Link], stages: &[Stage], alarms: &[Time], leaf: usize) -> Time {
        match links.get(leaf) {
            // Packets of a fused link stay on its wire until the ring is cleared, and make no events.
            Some(link) if link.is_fused || link.defers => Time::NEVER,
            Some(link) => link.next_event(),
            None => match stages.get(leaf - links.len()) {
                Some(stage) => stage.next_event(),
                None => alarms.get(leaf - links.len() - stages.len()).copied().unwrap_or(Time::NEVER),
            },
        }
    }

    /// Arrivals that needed no event (complete only once the run has ended), and retracted packets.
    #[cfg(feature = "oracle")]
    pub(crate) fn tandem_counts(&self) -> (u64, u64) {
        (self.links.iter().map(Link::fused_arrivals).sum(), self.retracted)
    }

    /// Takes a route into account for the choice of fused links.
    fn learn(&mut self, now: Time, links: &[u32]) {
        for link in self.tandems.learn(&mut self.links, links) {
            if self.links[link as usize].is_fused {
                self.split(now, link);
            }
        }
    }

    /// Writes a route that has been learned.
    fn write_route(&mut self, at: u32, links: &[u32], last: u32) {
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
        if self.has_pause {
            for place in 1..links.len() {
                if self.links[(links[place - 1] ^ 1) as usize].pauses().is_some() {
                    self.routes[start + place] |= SHARED;
                }
            }
        }
        if let Some(pfc) = &self.pfc {
            // Packets from other routers and from hosts that such a router sends pass `pass_by_class`.
            for entry in self.routes[start..end].iter_mut().skip(1).filter(|entry| **entry < SHARED) {
                if pfc.router_of(*entry).is_some() {
                    *entry |= SHARED;
                }
            }
        }
        // Flags are set last: the table holds plain numbers while memories and watched links are looked up.
        for link in self.routes[start..end].iter_mut().filter(|link| **link < SHARED) {
            if self.tandems.is_special(*link) {
                *link |= FUSED;
            }
        }
        self.routes[end] = last;
    }

    /// Sets the part of a route that is in this domain: the link `entry` by which packets come from another domain, unless
    /// they come from a host here, then `links`, and then `end`.
    pub(crate) fn set_part(&mut self, now: Time, at: u32, entry: Option<u32>, links: &[u32], end: PartEnd) {
        let learned: Vec<u32> = entry.into_iter().chain(links.iter().copied()).collect();
        self.learn(now, &learned);
        match end {
            PartEnd::Host(last) => self.write_route(at, links, last),
            PartEnd::Border { next, flow } => {
                self.write_route(at, links, AT_BORDER);
                let behind = at as usize + links.len() + 1;
                if self.routes.len() < behind + BEHIND_BORDER {
                    self.routes.resize(behind + BEHIND_BORDER, AT_HOST);
                }
                let Some(&last) = links.last() else { unreachable!("a part of a route that leaves has a link") };
                self.routes[behind..behind + BEHIND_BORDER].copy_from_slice(&self.exits.entries(last, next, flow));
            }
        }
    }

    /// Lets packets leave for `domains` other domains by the links that have an exit. `specs` and `numbers` are those of all
    /// links. At a link whose departures are known then, packets leave as they arrive there.
    pub(crate) fn set_exits(
        &mut self,
        mut exits: Vec<Option<Exit>>,
        domains: usize,
        specs: &[LinkSpec],
        numbers: &[u32],
        seed: u64,
    ) {
        for (place, exit) in exits.iter_mut().enumerate() {
            let Some(exit) = exit else { continue };
            let link = &mut self.links[place];
            if link.fuse_for_good() {
                // Packets leave with the time of their arrival.
                exit.delay = Dur::ZERO;
            } else {
                // The wire is in the other domain. Without it, packets leave in bulk, or by events at the end of their
                // transmission.
                let spec = &specs[place];
                let without_wire =
                    LinkSpec { delay: Dur::ZERO, mean_delay: Dur::ZERO, is_watched: true, ..spec.clone() };
                *link = Link::new(&without_wire, seed, u64::from(numbers[place]));
                link.defer(spec.memory.is_some());
            }
            self.tandems.exclude(place as u32, link.is_fused || link.defers);
        }
        self.exits = Exits::new(exits, domains);
    }

    /// True if the wire of `link`, which leaves this domain, is in the other domain.
    pub(crate) fn is_without_wire(&self, link: u32) -> bool {
        self.exits.by(link).is_some_and(|exit| !exit.delay.is_zero())
    }

    /// Lets the packets leave that do so by `until` without events. All events up to `until` must have been handled. Returns
    /// the first arrival in another domain since the last call.
    pub(crate) fn let_leave(&mut self, until: Time) -> Time {
        let (links, routes, exits) = (&mut self.links, &self.routes, &mut self.exits);
        self.deferring.retain(|&number| {
            let link = &mut links[number as usize];
            link.take_begun(until, |packet| exits.depart(number, packet, routes));
            link.is_occupied()
        });
        exits.take_earliest()
    }

    /// The packets that have left for each domain, in order for each link.
    pub(crate) fn parcels(&mut self) -> &mut [Parcel] {
        self.exits.parcels()
    }

    /// Adds a packet that comes from another domain over `link`, with its time of arrival here.
    pub(crate) fn accept(&mut self, link: u32, packet: Packet) {
        if self.links[link as usize].accept(packet) {
            self.events.lower(link as usize, packet.at);
        }
    }

    /// Prefetches for a packet that will be added on `link` some places ahead: first the link, and then its ring.
    #[inline(always)]
    pub(crate) fn expect_on(&self, link: u32, ahead: Ahead) {
        let Some(link) = self.links.get(link as usize) else { return };
        match ahead {
            Ahead::Far => prefetch(link),
            Ahead::Near | Ahead::Next => prefetch(link.free_slot()),
        }
    }

    /// Packets and bytes that come from another domain over `link` and have not arrived.
    pub(crate) fn on_wire(&self, link: u32) -> (u64, u64) {
        self.links[link as usize].on_wire()
    }

    /// A lower bound for the time of the next event, and of the next departure for another domain.
    pub(crate) fn next_time(&self) -> Time {
        let departures = self.deferring.iter().map(|&link| self.links[link as usize].next_beginning());
        departures.fold(self.events.earliest(), Time::min)
    }

    /// Repeats the frame that pauses `link`, if it is paused. The length of a pause is a number of bits, so a change of
    /// the rate changes the time after which a frame must be repeated.
    pub(crate) fn repeat_pause(&mut self, now: Time, link: u32) {
        let (link, back) = (link as usize, (link ^ 1) as usize);
        if let Some(quanta) = self.links[back].ordered_pause() {
            let rate = self.links[link].rate();
            self.links[back].send_frame(now, quanta, rate);
            self.refresh(back);
        }
    }

    /// Passes a packet to the queue of link `to`.
    #[inline(always)]
    fn enter(&mut self, now: Time, to: u32, packet: &Packet) {
        let link = &mut self.links[to as usize];
        if link.send(now, packet, &mut self.dropped) {
            let next = link.next_event();
            self.events.lower(to as usize, next);
        }
    }

    /// Passes a packet to a fused link and, once on its wire, to the next links as well, as far as they are fused.
    /// Stops where the packet would arrive after the end of the run.
    #[inline(always)]
    fn enter_fused(&mut self, now: Time, onward: u32, packet: &Packet) {
        let from = onward & NUMBER;
        let first = &mut self.links[from as usize];
        if !first.is_fused {
            if first.defers {
                return self.enter_deferring(now, from, packet.in_words());
            }
            // The link was split after this route was written.
            return self.enter(now, from, packet);
        }
        let Some(mut packet) = first.send_fused(now, packet, &mut self.dropped) else { return };
        while packet.at <= self.stop {
            let onward = self.routes[packet.route() as usize];
            if onward == AT_BORDER {
                return self.exits.depart(from, packet, &self.routes);
            }
            let to = onward & NUMBER;
            let link = &mut self.links[to as usize];
            let is_next = link.accept_early(&packet);
            if onward < SHARED || !link.is_fused {
                if is_next {
                    let next = link.next_event();
                    self.events.lower(to as usize, next);
                }
                return;
            }
            link.make_room_on_wire(now);
            packet = packet.onward(link.last_arrival());
        }
    }

    /// Passes a packet to the queue of a link whose packets leave for another domain without events.
    #[inline(never)]
    fn enter_deferring(&mut self, now: Time, to: u32, packet: Packet) {
        let link = &mut self.links[to as usize];
        let was_occupied = link.is_occupied();
        link.send(now, &packet, &mut self.dropped);
        if !was_occupied && link.is_occupied() {
            self.deferring.push(to);
        }
    }

    /// Prefetches for coming events, in stages: each stage reads what the one before it has prefetched.
    #[inline(always)]
    fn look_ahead(&self, expect: impl Fn(Ahead, &Packet) -> Option<u32>) {
        if !Q::LOOKS_AHEAD {
            return;
        }
        let link_after = |events| self.events.ahead(events).and_then(|source| self.links.get(source));
        if let Some(link) = link_after(18) {
            prefetch(link);
        }
        if let Some(link) = link_after(14) {
            link.prefetch_packets();
        }
        if let Some(link) = link_after(10) {
            prefetch(self.entry_at(link.following().route()));
        }
        if let Some(link) = link_after(7) {
            let packet = link.following();
            match self.link_at(packet.route()) {
                Some(next) => prefetch_start(next, Link::HOT_LINES),
                None => _ = expect(Ahead::Far, packet),
            }
        }
        if let Some(link) = link_after(4) {
            let packet = link.following();
            match self.link_at(packet.route()) {
                Some(next) => prefetch(next.free_slot()),
                None => {
                    if let Some(answer) = expect(Ahead::Near, packet) {
                        prefetch(self.entry_at(answer));
                    }
                }
            }
        }
        if let Some(link) = link_after(1)
            && let packet = link.following()
            && self.link_at(packet.route()).is_none()
            && let Some(answer) = expect(Ahead::Next, packet)
            && let Some(first) = self.link_at(answer)
        {
            prefetch_start(first, Link::HOT_LINES);
        }
    }

    /// The address of the entry at a position of the table of routes, or an invalid address, for prefetching.
    #[inline(always)]
    fn entry_at(&self, route: u32) -> *const u32 {
        self.routes.as_ptr().wrapping_add(route as usize)
    }

    /// The link at a position of the table of routes.
    #[inline(always)]
    fn link_at(&self, route: u32) -> Option<&Link> {
        let entry = self.routes.get(route as usize).copied().unwrap_or(LOST);
        self.links.get((entry & NUMBER) as usize)
    }

    /// Splits `link` from the next one: it makes events from `now` on. Packets that it passed on and that have not
    /// arrived there yet are retracted. Route entries keep the flag; `enter_fused` therefore checks the link itself.
    #[cold]
    fn split(&mut self, now: Time, link: u32) {
        let stop = self.stop;
        let fused_arrivals: Vec<_> = self.links[link as usize].split(now).filter(|packet| packet.at <= stop).collect();
        for packet in fused_arrivals {
            self.retract(now, packet.route());
        }
        let next = self.links[link as usize].next_event();
        self.events.set(link as usize, next);
    }

    /// Retracts the newest packet from the link at `route`, and from those that it was passed on to.
    #[cold]
    fn retract(&mut self, now: Time, route: u32) {
        if self.routes[route as usize] == AT_BORDER {
            // What has left for another domain stays there: it left by a link that is split at the end of the run alone.
            return;
        }
        let at = (self.routes[route as usize] & NUMBER) as usize;
        let link = &mut self.links[at];
        let Some(packet) = link.retract(now) else { return };
        #[cfg(feature = "oracle")]
        {
            self.retracted += 1;
        }
        if !link.is_fused {
            let next = link.next_event();
            self.events.set(at, next);
        } else if packet.at <= self.stop {
            self.retract(now, packet.route());
        }
    }

    /// Handles the rare cases at the far end of link `from`: the packet is lost there, its next queue shares memory
    /// with others, its crossing is recorded, or it passes a stage. Returns true if the stage has an event for the caller.
    #[cold]
    #[inline(never)]
    fn divert(&mut self, now: Time, from: usize, onward: u32, packet: Packet) -> bool {
        if let Some(packet) = packet.unstaged() {
            return self.enter_stage(now, from, None, packet);
        }
        if let Some(quanta) = packet.pause_quanta() {
            self.apply_pause(now, from, quanta);
            return false;
        }
        if self.watched.contains(&(from as u32)) {
            self.crossings.push(Crossing { at: now, link: from as u32, packet });
        }
        self.pass_on(now, from, onward, packet);
        false
    }

    /// Passes a packet from the far end of link `from` to link `onward`, which may be a shared one.
    fn pass_on(&mut self, now: Time, from: usize, onward: u32, packet: Packet) {
        let to = onward & !SHARED;
        if !packet.is_lost_on_wire() && self.pfc.as_ref().is_some_and(|pfc| pfc.router_of(to).is_some()) {
            return self.pass_by_class(now, from as u32, to, &packet);
        }
        match self.memories.get(&to) {
            Some(memory) if !packet.is_lost_on_wire() => {
                // Thresholds depend on the other queues of the router, so these are brought up to `now` first.
                let others = self.sharers[&memory.router].iter().filter(|&&link| link != to);
                let others_bytes = others.map(|&link| self.links[link as usize].waiting(now).0).sum();
                let link = &mut self.links[to as usize];
                if link.send_shared(now, packet, (&memory.spec, others_bytes), &mut self.dropped) {
                    let next = link.next_event();
                    self.events.lower(to as usize, next);
                }
            }
            None if !packet.is_lost_on_wire() => self.enter_fused(now, to, &packet),
            _ => return self.links[from].lose(packet, &mut self.dropped),
        }
        if self.has_pause
            && let Some(spec) = self.links[from ^ 1].pauses()
            && self.links[to as usize].hold(now, from as u32, &spec)
        {
            self.refresh(to as usize);
            let rate = self.links[from].rate();
            self.links[from ^ 1].count_hold(now, true, rate);
            self.refresh(from ^ 1);
        }
    }

    /// Adds a packet to the stage at the far end of link `from`, with its number there if it has one. Returns true if the
    /// packet is doubled.
    fn enter_stage(&mut self, now: Time, from: usize, number: Option<u64>, packet: Packet) -> bool {
        // As without a stage, the crossing is recorded unless the route ends behind the link.
        if self.watched.contains(&(from as u32)) && self.routes[packet.route() as usize] < AT_INTERFACE {
            self.crossings.push(Crossing { at: now, link: from as u32, packet });
        }
        let Some(place) = self.stage_of(from as u32) else { return false };
        let stage = &mut self.stages[place];
        let is_doubled = stage.is_doubled();
        let number = number.unwrap_or_else(|| stage.next_number());
        stage.add(now, number, packet);
        self.refresh_stage(place);
        self.announced = is_doubled.then_some(AnnouncedEvent::Doubled(from as u32, packet));
        is_doubled
    }

    /// The place of the stage of `link`, if it has one. Stages are in the order of links.
    fn stage_of(&self, link: u32) -> Option<usize> {
        self.stages.binary_search_by_key(&link, |stage| stage.link).ok()
    }

    /// Updates the next event of a stage.
    fn refresh_stage(&mut self, place: usize) {
        self.events.set(self.links.len() + place, self.stages[place].next_event());
    }

    /// Lets the packet of a stage that is due continue on its route, or lets one that was sent before the delay fell
    /// arrive. Returns true if the stage has an event for the caller.
    #[cold]
    #[inline(never)]
    fn leave_stage(&mut self, now: Time, place: usize) -> bool {
        let stage = &mut self.stages[place];
        let (late, from) = (stage.take_late(now), stage.link as usize);
        let due = if late.is_none() { stage.take() } else { None };
        self.refresh_stage(place);
        self.other_events += 1;
        if let Some((number, packet)) = late {
            return match packet.unstaged() {
                Some(packet) => self.enter_stage(now, from, Some(number), packet),
                None => self.divert(now, from, LOST, packet),
            };
        }
        let Some(packet) = due else { return false };
        self.announced = match self.routes[packet.route() as usize] {
            AT_HOST => Some(AnnouncedEvent::Delivered(packet)),
            AT_INTERFACE => Some(AnnouncedEvent::AtInterface(packet)),
            onward => {
                match onward >= FUSED {
                    true => self.enter_fused(now, onward, &packet),
                    false => self.pass_on(now, from, onward, packet),
                }
                None
            }
        };
        self.announced.is_some()
    }

    /// Handles a packet that arrives at the far end of link `from`. Returns an event if it concerns a host.
    #[inline(always)]
    fn arrive(&mut self, now: Time, from: usize, packet: Packet) -> Option<Event> {
        // A lost packet has a position beyond the table: the bounds check, needed anyway, recognizes it.
        let onward = self.routes.get(packet.route() as usize).copied().unwrap_or(LOST);
        // One comparison sends plain hops, the most frequent case, past all others.
        if onward < SHARED {
            self.enter(now, onward, &packet);
            return None;
        }
        if onward == AT_HOST {
            self.delivered_by = from as u32;
            return Some(Event::Delivered(packet));
        }
        if (FUSED..AT_BORDER).contains(&onward) {
            self.enter_fused(now, onward, &packet);
            return None;
        }
        if onward == AT_INTERFACE {
            return Some(Event::AtInterface(packet));
        }
        if onward == AT_BORDER {
            self.leave(from as u32, packet.in_words());
            return None;
        }
        self.divert(now, from, onward, packet.in_words()).then_some(Event::Announced)
    }

    /// Lets a packet leave for another domain by an event, which few links need.
    #[cold]
    #[inline(never)]
    fn leave(&mut self, from: u32, packet: Packet) {
        self.exits.depart(from, packet, &self.routes);
    }

    /// Handles the event of a link for which a wake-up is requested, or whose queue is to be replayed once its wire is
    /// empty.
    #[inline(never)]
    fn next_of_link(&mut self, now: Time, leaf: usize) -> LinkTurn {
        let link = &mut self.links[leaf];
        // An arrival at the same time precedes the wake-up, so `wakes` is false for it.
        if link.wakes() {
            let next = link.next_event();
            self.events.set(leaf, next);
            self.other_events += 1;
            return if self.take_turn(now, leaf) { LinkTurn::Idle } else { LinkTurn::Done };
        }
        let packet = *link.deliver(now);
        let next = link.next_after(now);
        self.events.set(leaf, next);
        match self.arrive(now, leaf, packet) {
            None => return LinkTurn::Done,
            // A packet in the result would be in memory in `next`, for all events.
            Some(Event::Delivered(packet)) => self.announced = Some(AnnouncedEvent::Delivered(packet)),
            Some(Event::AtInterface(packet)) => self.announced = Some(AnnouncedEvent::AtInterface(packet)),
            Some(_) => {}
        }
        LinkTurn::Announced
    }

    /// Updates the next event of a link with PAUSE.
    #[cold]
    fn refresh(&mut self, link: usize) {
        let next = self.links[link].next_event();
        self.events.set(link, next);
    }

    /// Applies a PAUSE frame that arrived over `link` to the other direction of the cable.
    #[cold]
    fn apply_pause(&mut self, now: Time, link: usize, quanta: u16) {
        self.links[link].count_frame();
        match self.pfc {
            Some(_) => self.links[link ^ 1].pause_classes(now, quanta as u8),
            None => self.links[link ^ 1].pause(now, quanta),
        }
        self.refresh(link ^ 1);
    }

    /// Takes a turn of a link with PAUSE. Returns true if a host waits for it.
    #[cold]
    #[inline(never)]
    fn take_turn(&mut self, now: Time, link: usize) -> bool {
        let Some(Turn { released, repeats, wakes_host, departs }) = self.links[link].turn(now) else { return true };
        for held in released {
            let back = (held ^ 1) as usize;
            let rate = self.links[held as usize].rate();
            self.links[back].count_hold(now, false, rate);
            self.refresh(back);
        }
        if let Some(quanta) = repeats {
            let rate = self.links[link ^ 1].rate();
            self.links[link].send_frame(now, quanta, rate);
        }
        self.refresh(link);
        if departs && let Some(router) = self.pfc.as_ref().and_then(|pfc| pfc.router_of(link as u32)) {
            self.resume_classes(now, router);
        }
        wakes_host
    }

    /// Passes a packet that came over link `from` to the port `to` of a router with priority-based flow control.
    #[cold]
    #[inline(never)]
    fn pass_by_class(&mut self, now: Time, from: u32, to: u32, packet: &Packet) {
        let Some(router) = self.pfc.as_ref().and_then(|pfc| pfc.router_of(to)) else { return };
        self.settle_ports(now, router);
        let (class, bytes) = (packet.class(), packet.wire_bytes());
        let Some(pfc) = &mut self.pfc else { return };
        let counted = pfc.entry(from).filter(|entry| entry.spec.is_lossless(class));
        let is_counted = match counted {
            Some(entry) if !entry.has_room(class, bytes) => {
                return self.links[to as usize].refuse(*packet, &mut self.dropped);
            }
            Some(entry) => {
                entry.bytes[usize::from(class)] += bytes;
                true
            }
            None => false,
        };
        self.links[to as usize].send_by_class(now, packet, is_counted.then_some(from), &mut self.dropped);
        self.refresh(to as usize);
        self.settle_ports(now, router);
        let Some(pfc) = &mut self.pfc else { return };
        let Some(entry) = pfc.entry(from).filter(|_| is_counted) else { return };
        if entry.bytes[usize::from(class)] >= entry.spec.xoff_bytes && entry.paused >> class & 1 == 0 {
            entry.paused |= 1 << class;
            let paused = entry.paused;
            self.send_class_frame(now, from, paused);
            self.watch_ports(now, router, true);
        }
    }

    /// Brings the ports of a router up to `now`, and counts the packets that no longer wait there.
    fn settle_ports(&mut self, now: Time, router: usize) {
        let Some(pfc) = &mut self.pfc else { return };
        for &port in &pfc.routers[router].ports {
            let before = self.links[port as usize].next_event();
            for departure in self.links[port as usize].take_departures(now) {
                if let Some(entry) = pfc.entries[departure.from as usize].as_mut() {
                    entry.bytes[usize::from(departure.class)] -= departure.bytes;
                }
            }
            let after = self.links[port as usize].next_event();
            if after != before {
                self.events.set(port as usize, after);
            }
        }
    }

    /// Ends the pauses of classes that have few waiting bytes again.
    fn resume_classes(&mut self, now: Time, router: usize) {
        self.settle_ports(now, router);
        let Some(pfc) = &mut self.pfc else { return };
        let mut frames = Vec::new();
        for &from in &pfc.routers[router].entries {
            let Some(entry) = pfc.entries[from as usize].as_mut().filter(|entry| entry.paused != 0) else { continue };
            let is_over = |class: &usize| entry.paused >> class & 1 == 1 && entry.bytes[*class] <= entry.spec.xon_bytes;
            let over: u8 = (0..CLASSES).filter(is_over).map(|class| 1 << class).sum();
            if over != 0 {
                entry.paused &= !over;
                frames.push((from, entry.paused));
            }
        }
        let is_any = |&from: &u32| pfc.entries[from as usize].as_ref().is_some_and(|entry| entry.paused != 0);
        let is_over = !frames.is_empty() && !pfc.routers[router].entries.iter().any(is_any);
        for (from, paused) in frames {
            self.send_class_frame(now, from, paused);
        }
        if is_over {
            self.watch_ports(now, router, false);
        }
    }

    /// Sends a frame that pauses these classes of the other end of link `from`.
    fn send_class_frame(&mut self, now: Time, from: u32, paused: u8) {
        let rate = self.links[from as usize].rate();
        self.links[(from ^ 1) as usize].send_frame(now, u16::from(paused), rate);
        self.refresh((from ^ 1) as usize);
    }

    /// Lets each beginning of a transmission of a router be an event, or no longer.
    fn watch_ports(&mut self, now: Time, router: usize, is_watched: bool) {
        let Some(pfc) = &self.pfc else { return };
        for &port in &pfc.routers[router].ports {
            let link = &mut self.links[port as usize];
            link.watch_departures(now, is_watched);
            self.events.set(port as usize, link.next_event());
        }
    }
}

impl<Q: EventQueue> Fabric for LinkFabric<Q> {
    fn new(links: &[LinkSpec], seed: u64, stop: Time) -> LinkFabric<Q> {
        let numbers: Vec<u32> = (0..links.len() as u32).collect();
        LinkFabric::of(links, &numbers, seed, stop)
    }

    fn set_route(&mut self, now: Time, at: u32, links: &[u32], last: u32) {
        self.learn(now, links);
        self.write_route(at, links, last);
    }

    #[inline(always)]
    fn send(&mut self, now: Time, packet: Packet) {
        let link = self.routes[packet.route() as usize];
        self.enter(now, link, &packet);
    }

    fn arm(&mut self, alarm: Alarm, at: Time) {
        self.alarms[alarm as usize] = at;
        self.events.set(self.first_alarm + alarm as usize, at);
    }

    #[inline(always)]
    fn next(&mut self, expect: impl Fn(Ahead, &Packet) -> Option<u32>) -> Option<(Time, Event)> {
        loop {
            self.look_ahead(&expect);
            let (links, stages, alarms) = (&self.links, &self.stages, &self.alarms);
            // A calendar asks for each event, a tree hardly ever.
            let time_of = |leaf: usize| match links.get(leaf) {
                Some(link) if Q::LOOKS_AHEAD && !link.is_fused => link.next_event(),
                _ => Self::time_of(links, stages, alarms, leaf),
            };
            let (leaf, now) = self.events.next(time_of)?;
            let Some(link) = self.links.get_mut(leaf) else {
                // Leaves beyond the links are stages, and then alarms.
                if leaf < self.first_alarm {
                    if self.leave_stage(now, leaf - self.links.len()) {
                        return Some((now, Event::Announced));
                    }
                    continue;
                }
                self.other_events += 1;
                let alarm = Alarm::ALL[leaf - self.first_alarm];
                self.arm(alarm, Time::NEVER);
                // The handler of an alarm may act on drops; before an alarm, they change nothing.
                if !self.self_dropping.is_empty() {
                    self.settle(now);
                }
                return Some((now, Event::Alarm(alarm)));
            };
            if let Some(next) = link.event_after_arrival() {
                let packet = link.deliver(now);
                self.events.set(leaf, next);
                // The packet is read last: its words would otherwise be kept during the update of the event queue.
                let packet = packet.in_words();
                match self.arrive(now, leaf, packet) {
                    Some(event) => return Some((now, event)),
                    None => continue,
                }
            }
            match self.next_of_link(now, leaf) {
                LinkTurn::Idle => return Some((now, Event::Idle(leaf as u32))),
                LinkTurn::Announced => return Some((now, Event::Announced)),
                LinkTurn::Done => {}
            }
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
        self.events.set(at, next);
    }

    fn has_room(&mut self, now: Time, link: u32, bytes: u64) -> bool {
        self.links[link as usize].has_room(now, bytes)
    }

    fn wake_when_room(&mut self, now: Time, link: u32, bytes: u64) {
        let at = link as usize;
        self.links[at].wake_when_room(now, bytes);
        let next = self.links[at].next_event();
        self.events.set(at, next);
    }

    fn change(&mut self, now: Time, link: u32, change: Change, spec: &LinkSpec, seed: u64) {
        let at = link as usize;
        debug_assert!(!self.links[at].is_fused, "link {link} is fused, and cannot change");
        let overtaken = self.links[at].apply(now, change, spec, seed, u64::from(link));
        let next = self.links[at].next_event();
        self.events.set(at, next);
        match change {
            Change::Rate(_) => self.repeat_pause(now, link),
            Change::Delay { delay, reorders } => {
                if let Some(place) = self.stage_of(link) {
                    let stage = &mut self.stages[place];
                    stage.set_delay(delay);
                    if !reorders {
                        stage.hasten(now + spec.delay);
                    }
                    overtaken.into_iter().for_each(|packet| stage.add_late(packet));
                    self.refresh_stage(place);
                }
            }
            Change::Loss(_) | Change::Down(_) => {}
        }
    }

    fn take_announced(&mut self) -> Option<AnnouncedEvent> {
        self.announced.take()
    }

    fn add_copy(&mut self, now: Time, link: u32, packet: Packet) {
        if let Some(place) = self.stage_of(link) {
            self.stages[place].add_copy(now, packet);
            self.refresh_stage(place);
        }
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
        for &link in &self.self_dropping {
            self.links[link as usize].settle(now, &mut self.dropped);
        }
    }

    #[inline(always)]
    fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    fn take_dropped(&mut self) -> Option<Packet> {
        self.dropped.pop()
    }

    fn backlog_bytes(&mut self, now: Time, link: u32) -> u64 {
        self.links[link as usize].waiting(now).0
    }

    fn end(&mut self, now: Time) {
        for link in 0..self.links.len() as u32 {
            if self.links[link as usize].is_fused {
                self.split(now, link);
            }
        }
        self.settle(now);
    }

    fn explicit_rate(&self, now: Time, link: u32) -> Option<Rate> {
        self.links[link as usize].explicit_rate(now)
    }

    fn counts(&mut self, now: Time, link: u32) -> LinkCounts {
        let mut counts = self.links[link as usize].counts(now);
        if let Some(place) = self.stage_of(link) {
            (counts.duplicated, counts.reordered) = self.stages[place].counts();
        }
        counts
    }

    fn held_packets(&self, link: u32) -> u64 {
        self.links[link as usize].held_packets()
    }

    fn staged_packets(&self, link: u32) -> u64 {
        self.stage_of(link).map_or(0, |place| self.stages[place].packets())
    }

    fn events(&self) -> u64 {
        self.other_events + self.links.iter().map(Link::events).sum::<u64>()
    }
}
