//! Plans of flows that start soon, which several threads make together.
//!
//! Flows are planned in batches. First, threads outline flows: any thread finds the links of a flow, and the parts of its
//! routes in each domain. Then each domain allots slots and positions in its own tables. Finally each domain enters the
//! flows and routes that it has a part of, whose entries name positions and slots of other domains. All domains treat the
//! flows of a batch in the order of their numbers.

use super::Domain;
use super::fabric::DomainFabric;
use super::sides::Sides;
use crate::engine::event_queue::EventQueue;
use crate::engine::exits::BEHIND_BORDER;
use crate::engine::fabric::PartEnd;
use crate::flow::FlowSpec;
use crate::routing::network::Network;
use crate::routing::routes::Routes;
use crate::world::domain::{Ends, PASSING, Planned};
use crate::world::{Paths, World, paths_of};
use sparelane_core::Time;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The number of flows that one thread outlines before it looks for more.
const OUTLINED_TOGETHER: usize = 32;

/// Flows that are planned together, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The number of the first.
    first: u32,
    specs: Vec<FlowSpec>,
    /// The outlines of each `OUTLINED_TOGETHER` flows.
    outlines: Vec<OnceLock<Vec<Outline>>>,
    /// The number of entries of `outlines` that threads have begun.
    begun: AtomicUsize,
}

/// A flow that is being planned.
#[derive(Debug)]
pub(super) struct Outline {
    pub(super) id: u32,
    spec: FlowSpec,
    paths: Arc<Paths>,
    /// The sender and the receiver. If both are in one domain, they share the slot of the sender.
    ends: [End; 2],
    /// The parts of the routes there and back, in the order of the links.
    parts: [Vec<Part>; 2],
}

/// The domain of an end of a flow, and its slot there once it is allotted.
#[derive(Debug)]
struct End {
    domain: u16,
    slot: AtomicU32,
}

/// The part of a route in one domain.
#[derive(Debug)]
struct Part {
    domain: u16,
    /// The places of its links on the route.
    links: Range<usize>,
    /// True if the route ends here, at a host.
    is_last: bool,
    /// Its position once it is allotted.
    at: AtomicU32,
}

impl Part {
    /// The number of entries in the table of routes: the links, the end, and those behind the end at a border.
    fn entries(&self) -> u32 {
        let behind = if self.is_last { 0 } else { BEHIND_BORDER };
        (self.links.len() + 1 + behind) as u32
    }
}

impl Batch {
    /// A batch of flows, of which the first has the number `first`.
    pub(super) fn new(first: u32, specs: Vec<FlowSpec>) -> Batch {
        let chunks = specs.len().div_ceil(OUTLINED_TOGETHER);
        let outlines = (0..chunks).map(|_| OnceLock::new()).collect();
        Batch { first, specs, outlines, begun: AtomicUsize::new(0) }
    }

    /// The flows, in the order of their numbers.
    pub(super) fn specs(&self) -> &[FlowSpec] {
        &self.specs
    }

    /// The outlines, in the order of the flows' numbers, once all threads have returned from `outline`.
    pub(super) fn outlines(&self) -> impl Iterator<Item = &Outline> {
        self.outlines.iter().flat_map(|chunk| chunk.get().map_or(&[][..], Vec::as_slice))
    }

    /// Outlines flows that no other thread has begun with, until none is left.
    pub(super) fn outline(&self, network: &Network, routes: &Routes, sides: &Sides) {
        loop {
            // The number alone decides who outlines which flows; `OnceLock` orders the accesses to the outlines.
            let chunk = self.begun.fetch_add(1, Ordering::Relaxed);
            let Some(outlines) = self.outlines.get(chunk) else { return };
            let ids = (self.first..).zip(&self.specs).skip(chunk * OUTLINED_TOGETHER).take(OUTLINED_TOGETHER);
            let made = ids.map(|(id, spec)| Outline::of(network, routes, sides, spec, id)).collect();
            let is_first = outlines.set(made).is_ok();
            debug_assert!(is_first, "two threads outlined the same flows");
        }
    }

    /// Allots slots and positions of `domain` to the flows that have a part in it.
    pub(super) fn allot<Q: EventQueue>(&self, domain: u16, world: &mut World<DomainFabric<Q>>) {
        for outline in self.outlines() {
            // The barrier before `enter` orders the writes of this domain before the reads of others.
            for end in outline.own_ends().iter().filter(|end| end.domain == domain) {
                end.slot.store(world.take_slot(), Ordering::Relaxed);
            }
            for part in outline.parts.iter().flatten().filter(|part| part.domain == domain) {
                part.at.store(world.layout.positions.take(part.entries() as usize), Ordering::Relaxed);
            }
        }
    }

    /// Enters the flows that have a part in `domain`, after `allot` in all domains. Everything before `now` has happened.
    pub(super) fn enter<Q: EventQueue>(&self, number: u16, now: Time, domain: &mut Domain<Q>) {
        for outline in self.outlines() {
            outline.enter(number, now, &mut domain.world);
            domain.accounts.open(outline);
        }
    }
}

impl Outline {
    fn of(network: &Network, routes: &Routes, sides: &Sides, spec: &FlowSpec, id: u32) -> Outline {
        let paths = paths_of(network, routes, spec, id);
        let parts = [0, 1].map(|way: usize| parts_of(&paths[way], sides));
        let ends = [0, 1].map(|way: usize| End { domain: sides.domains(paths[way][0])[0], slot: AtomicU32::new(0) });
        Outline { id, spec: *spec, paths: Arc::new(paths), ends, parts }
    }

    /// True if packets of the flow pass through several domains.
    pub(super) fn crosses(&self) -> bool {
        self.parts.iter().any(|parts| parts.len() > 1)
    }

    fn is_in_one_domain(&self) -> bool {
        self.ends[0].domain == self.ends[1].domain
    }

    /// The ends that have a slot of their own.
    fn own_ends(&self) -> &[End] {
        if self.is_in_one_domain() { &self.ends[..1] } else { &self.ends }
    }

    /// The domains and slots of the sender and the receiver, after `allot`.
    pub(super) fn places(&self) -> [(u16, u32); 2] {
        let slot = |place: usize| self.ends[place].slot.load(Ordering::Relaxed);
        let receiver = if self.is_in_one_domain() { 0 } else { 1 };
        [(self.ends[0].domain, slot(0)), (self.ends[1].domain, slot(receiver))]
    }

    /// The domain, position and number of entries of each part of its routes, after `allot`.
    pub(super) fn positions(&self) -> impl Iterator<Item = (u16, u32, u32)> {
        let parts = self.parts.iter().flatten();
        parts.map(|part| (part.domain, part.at.load(Ordering::Relaxed), part.entries()))
    }

    /// Enters the parts of the flow that are in `domain`.
    fn enter<Q: EventQueue>(&self, domain: u16, now: Time, world: &mut World<DomainFabric<Q>>) {
        let places = self.places();
        for (way, parts) in self.parts.iter().enumerate() {
            let links = &self.paths[way];
            let (to, (_, slot)) = ([self.spec.dst, self.spec.src][way], places[1 - way]);
            for (place, part) in parts.iter().enumerate().filter(|(_, part)| part.domain == domain) {
                let end = match parts.get(place + 1) {
                    None => PartEnd::Host(world.end_at(to)),
                    Some(next) => PartEnd::Border {
                        next: next.at.load(Ordering::Relaxed),
                        flow: if next.is_last { slot } else { PASSING + self.id },
                    },
                };
                let entry = part.links.start.checked_sub(1).map(|before| links[before]);
                world.fabric.set_part(now, part.at.load(Ordering::Relaxed), entry, &links[part.links.clone()], end);
            }
        }
        let ends = match self.ends.each_ref().map(|end| end.domain == domain) {
            [true, true] => Ends::Both,
            [true, false] => Ends::Sender,
            [false, true] => Ends::Receiver,
            [false, false] => return,
        };
        world.plan(Planned {
            id: self.id,
            spec: self.spec,
            slot: places[usize::from(ends == Ends::Receiver)].1,
            positions: self.parts.each_ref().map(|parts| parts[0].at.load(Ordering::Relaxed)),
            paths: Arc::clone(&self.paths),
            ends,
            crosses: self.crosses(),
        });
    }
}

/// The parts of a route over `links`.
fn parts_of(links: &[u32], sides: &Sides) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (place, &link) in links.iter().enumerate() {
        let domain = sides.domains(link)[0];
        match parts.last_mut() {
            Some(part) if part.domain == domain => part.links.end = place + 1,
            _ => parts.push(Part { domain, links: place..place + 1, is_last: false, at: AtomicU32::new(0) }),
        }
    }
    if let Some(last) = parts.last_mut() {
        last.is_last = true;
    }
    parts
}
