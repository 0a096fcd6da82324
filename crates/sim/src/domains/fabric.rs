//! The links of one domain, under the numbers that they have in the whole network.
//!
//! A link belongs to the domain of its sending node. If it leads to another domain, packets leave for that domain as soon as
//! their departure is certain: as they arrive at a FIFO queue, when the window ends at a priority queue, and otherwise as they
//! leave the transmitter. The other domain has the wire, as a link without a queue. Links keep their order among each other,
//! on which the order of simultaneous events depends.

use super::sides::Sides;
use crate::config::{Change, QueueSpec};
use crate::engine::event_queue::EventQueue;
use crate::engine::exits::{Exit, Parcel};
use crate::engine::fabric::{Ahead, Alarm, AnnouncedEvent, Event, Fabric, LinkFabric, PartEnd};
use crate::routing::network::Limit;
use crate::wire::link::{LinkCounts, LinkSpec, PlannedDrop};
use crate::wire::packet::Packet;
use sparelane_core::{Dur, Rate, Time};

/// The links of a domain.
#[derive(Debug)]
pub(crate) struct DomainFabric<Q> {
    domain: u16,
    links: LinkFabric<Q>,
    sides: Sides,
    /// The number of each link of this domain in the whole network.
    numbers: Vec<u32>,
}

impl<Q: EventQueue> DomainFabric<Q> {
    /// The largest number of links.
    pub(crate) const LINKS: usize = LinkFabric::<Q>::LINKS;

    /// The links of `domain`, which is one of `domains`.
    pub(crate) fn of(
        [domain, domains]: [u16; 2],
        links: &[LinkSpec],
        sides: &Sides,
        seed: u64,
        stop: Time,
    ) -> DomainFabric<Q> {
        let (mut numbers, mut specs, mut exits) = (Vec::new(), Vec::new(), Vec::new());
        for (spec, number) in links.iter().zip(0..) {
            let [from, to] = sides.domains(number);
            if from != domain && to != domain {
                continue;
            }
            numbers.push(number);
            let exit = || Exit { domain: to, place: sides.place(number, to), delay: spec.delay };
            exits.push((from == domain && to != domain).then(exit));
            specs.push(if from == domain { spec.clone() } else { wire_of(spec) });
        }
        let mut links = LinkFabric::of(&specs, &numbers, seed, stop);
        links.set_exits(exits, usize::from(domains), &specs, &numbers, seed);
        DomainFabric { domain, links, sides: sides.clone(), numbers }
    }

    fn place(&self, link: u32) -> u32 {
        self.sides.place(link, self.domain)
    }

    /// Sets the part of a route that is in this domain; see [`LinkFabric::set_part`].
    pub(crate) fn set_part(&mut self, now: Time, at: u32, entry: Option<u32>, links: &[u32], end: PartEnd) {
        let places: Vec<u32> = links.iter().map(|&link| self.place(link)).collect();
        let entry = entry.map(|link| self.place(link));
        self.links.set_part(now, at, entry, &places, end);
    }

    /// See [`LinkFabric::let_leave`].
    pub(crate) fn let_leave(&mut self, until: Time) -> Time {
        self.links.let_leave(until)
    }

    /// The packets that have left for each domain, in order for each link.
    pub(crate) fn parcels(&mut self) -> &mut [Parcel] {
        self.links.parcels()
    }

    /// True if the wire of `link`, which leaves this domain, is in the other domain.
    pub(crate) fn is_without_wire(&self, link: u32) -> bool {
        self.links.is_without_wire(self.place(link))
    }

    /// Adds a packet that comes from another domain over the link at `place`, with its time of arrival.
    #[inline(always)]
    pub(crate) fn accept(&mut self, place: u32, packet: Packet) {
        self.links.accept(place, packet);
    }

    /// Prefetches for a packet that will come from another domain over the link at `place`.
    #[inline(always)]
    pub(crate) fn expect_on(&self, place: u32, ahead: Ahead) {
        self.links.expect_on(place, ahead);
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
        DomainFabric::of([0, 1], links, &Sides::of(links.iter().map(|_| [0, 0])), seed, stop)
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

    fn take_announced(&mut self) -> Option<AnnouncedEvent> {
        self.links.take_announced()
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
    fn has_dropped(&self) -> bool {
        self.links.has_dropped()
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
