//! The links of one domain, under the numbers that they have in the whole network.
//!
//! A link belongs to the domain of its sending node. If it leads to another domain, packets leave for that domain as soon as
//! their departure is certain: as they arrive at a FIFO queue, when the window ends at a priority queue, and otherwise as they
//! leave the transmitter. The other domain has the wire, as a link without a queue. Links keep their order among each other, on which the order of simultaneous
//! events depends.

use crate::config::{Change, QueueSpec};
use crate::engine::event_queue::EventQueue;
use crate::engine::fabric::{Ahead, Alarm, Event, Fabric, LinkFabric, PartEnd, StageEvent};
use crate::routing::network::Limit;
use crate::wire::link::{LinkCounts, LinkSpec, PlannedDrop};
use crate::wire::packet::Packet;
use sparelane_core::{Dur, Rate, Time};

/// The number of a link that the domain does not have.
const ABSENT: u32 = u32::MAX;

/// The other side of a link to another domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    /// The other domain.
    pub(crate) domain: u16,
    /// The number of the link in the whole network.
    pub(crate) link: u32,
    /// The time from the one that packets have when they leave until their arrival: the delay of the wire, or zero if they
    /// leave with the time of their arrival.
    pub(crate) delay: Dur,
}

/// The links of a domain.
#[derive(Debug)]
pub(crate) struct DomainFabric<Q> {
    links: LinkFabric<Q>,
    /// The place of each link of the network among those of this domain, or [`ABSENT`].
    places: Vec<u32>,
    /// The number of each link of this domain.
    numbers: Vec<u32>,
    /// The other sides of links that leave the domain, by place.
    exits: Vec<Option<Exit>>,
}

impl<Q: EventQueue> DomainFabric<Q> {
    /// The largest number of links.
    pub(crate) const LINKS: usize = LinkFabric::<Q>::LINKS;

    /// The links of `domain`, where `sides` gives the domains of the sending and the receiving node of each link.
    pub(crate) fn of(domain: u16, links: &[LinkSpec], sides: &[[u16; 2]], seed: u64, stop: Time) -> DomainFabric<Q> {
        let mut places = vec![ABSENT; links.len()];
        let (mut numbers, mut specs, mut exits) = (Vec::new(), Vec::new(), Vec::new());
        for ((spec, &[from, to]), number) in links.iter().zip(sides).zip(0..) {
            if from != domain && to != domain {
                continue;
            }
            places[number as usize] = numbers.len() as u32;
            numbers.push(number);
            let leaves = from == domain && to != domain;
            exits.push(leaves.then_some(Exit { domain: to, link: number, delay: spec.delay }));
            specs.push(if from == domain { spec.clone() } else { wire_of(spec) });
        }
        let mut links = LinkFabric::of(&specs, &numbers, seed, stop);
        for (place, exit) in (0..).zip(&mut exits) {
            if let Some(exit) = exit
                && links.make_exit(place, &specs[place as usize], seed, exit.link)
            {
                exit.delay = Dur::ZERO;
            }
        }
        DomainFabric { links, places, numbers, exits }
    }

    fn place(&self, link: u32) -> u32 {
        self.places[link as usize]
    }

    /// Sets the part of a route that is in this domain; see [`LinkFabric::set_part`].
    pub(crate) fn set_part(&mut self, now: Time, at: u32, entry: Option<u32>, links: &[u32], end: PartEnd) {
        let places: Vec<u32> = links.iter().map(|&link| self.place(link)).collect();
        let entry = entry.map(|link| self.place(link));
        self.links.set_part(now, at, entry, &places, end);
    }

    /// Passes the packets that have left for other domains by `until` to `put`, in order for each link. They have their route
    /// and flow there, and the time of their arrival.
    pub(crate) fn take_departed(&mut self, until: Time, mut put: impl FnMut(Exit, Packet)) {
        let exits = &self.exits;
        self.links.take_departed(until, |place, mut packet| {
            let Some(exit) = exits[place as usize] else { unreachable!("a packet left by a link that stays") };
            packet.at += exit.delay;
            put(exit, packet);
        });
    }

    /// True if the wire of `link`, which leaves this domain, is in the other domain.
    pub(crate) fn is_without_wire(&self, link: u32) -> bool {
        self.exits[self.place(link) as usize].is_some_and(|exit| !exit.delay.is_zero())
    }

    /// Adds a packet that comes from another domain over `link`, with its time of arrival.
    pub(crate) fn accept(&mut self, link: u32, packet: Packet) {
        self.links.accept(self.place(link), packet);
    }

    /// Prefetches for a packet that will come from another domain over `link`.
    #[inline(always)]
    pub(crate) fn expect_on(&self, link: u32, ahead: Ahead) {
        self.links.expect_on(self.place(link), ahead);
    }

    /// Packets and bytes that come from another domain over `link` and have not arrived.
    pub(crate) fn on_wire(&self, link: u32) -> (u64, u64) {
        self.links.on_wire(self.place(link))
    }

    /// A lower bound for the time of the next event.
    pub(crate) fn next_time(&self) -> Time {
        self.links.next_time()
    }
}

/// The wire of a link from another domain, as a link without a queue.
fn wire_of(spec: &LinkSpec) -> LinkSpec {
    let queue = QueueSpec::fifo(Limit::Bytes(u64::MAX));
    LinkSpec { is_watched: true, ..LinkSpec::plain(spec.rate, Dur::ZERO, queue, spec.largest_bytes) }
}

impl<Q: EventQueue> Fabric for DomainFabric<Q> {
    const IS_DOMAIN: bool = true;

    fn new(links: &[LinkSpec], seed: u64, stop: Time) -> DomainFabric<Q> {
        DomainFabric::of(0, links, &vec![[0, 0]; links.len()], seed, stop)
    }

    fn set_route(&mut self, now: Time, at: u32, links: &[u32], last: u32) {
        self.set_part(now, at, None, links, PartEnd::Host(last));
    }

    #[inline(always)]
    fn send(&mut self, now: Time, packet: Packet) {
        self.links.send(now, packet);
    }

    fn arm(&mut self, alarm: Alarm, at: Time) {
        self.links.arm(alarm, at);
    }

    #[inline(always)]
    fn next(&mut self, expect: impl Fn(Ahead, &Packet) -> Option<u32>) -> Option<(Time, Event)> {
        let (now, event) = self.links.next(expect)?;
        Some(match event {
            Event::Idle(place) => (now, Event::Idle(self.numbers[place as usize])),
            event => (now, event),
        })
    }

    fn first_link(&self, at: u32) -> u32 {
        self.numbers[self.links.first_link(at) as usize]
    }

    fn is_idle(&mut self, now: Time, link: u32) -> bool {
        self.links.is_idle(now, self.place(link))
    }

    fn free_at(&self, link: u32) -> Option<Time> {
        self.links.free_at(self.place(link))
    }

    fn wake_when_idle(&mut self, now: Time, link: u32) {
        self.links.wake_when_idle(now, self.place(link));
    }

    fn has_room(&mut self, now: Time, link: u32, bytes: u64) -> bool {
        self.links.has_room(now, self.place(link), bytes)
    }

    fn wake_when_room(&mut self, now: Time, link: u32, bytes: u64) {
        self.links.wake_when_room(now, self.place(link), bytes);
    }

    fn change(&mut self, now: Time, link: u32, change: Change, spec: &LinkSpec, seed: u64) {
        self.links.change(now, self.place(link), change, spec, seed);
    }

    fn take_stage_event(&mut self) -> Option<StageEvent> {
        self.links.take_stage_event()
    }

    fn add_copy(&mut self, now: Time, link: u32, packet: Packet) {
        self.links.add_copy(now, self.place(link), packet);
    }

    fn plan_drop(&mut self, link: u32, planned: PlannedDrop) {
        self.links.plan_drop(self.place(link), planned);
    }

    fn forget_drops(&mut self, link: u32, flow: u32) {
        self.links.forget_drops(self.place(link), flow);
    }

    #[inline(always)]
    fn expected_blocks(&self) -> u32 {
        self.links.expected_blocks()
    }

    fn settle(&mut self, now: Time) {
        self.links.settle(now);
    }

    #[inline(always)]
    fn take_dropped(&mut self) -> Option<Packet> {
        self.links.take_dropped()
    }

    fn backlog_bytes(&mut self, now: Time, link: u32) -> u64 {
        self.links.backlog_bytes(now, self.place(link))
    }

    fn end(&mut self, now: Time) {
        self.links.end(now);
    }

    fn explicit_rate(&self, now: Time, link: u32) -> Option<Rate> {
        self.links.explicit_rate(now, self.place(link))
    }

    fn counts(&mut self, now: Time, link: u32) -> LinkCounts {
        self.links.counts(now, self.place(link))
    }

    fn held_packets(&self, link: u32) -> u64 {
        self.links.held_packets(self.place(link))
    }

    fn staged_packets(&self, link: u32) -> u64 {
        self.links.staged_packets(self.place(link))
    }

    fn events(&self) -> u64 {
        self.links.events()
    }
}
