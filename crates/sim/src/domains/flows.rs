//! Flows as all domains together see them: their numbers and rows, their places in domains, and their ends.

use super::fabric::DomainFabric;
use super::planning::{Batch, Outline};
use crate::engine::event_queue::EventQueue;
use crate::flow::{FlowSource, FlowSpec};
use crate::records::{Outcome, Records};
use crate::world::World;
use crate::world::domain::{Instant, LostPassing, PASSING};
use sparelane_core::{Time, prefetch};
use std::collections::VecDeque;

/// The number of flows that are planned together, unless more start at the same time. All domains stop for it.
const PLANNED_TOGETHER: usize = 1_024;

/// The largest number of flows: packets that pass through a domain carry the number of their flow.
const MOST_FLOWS: u32 = PASSING - 1;

/// A flow whose packets pass through several domains.
#[derive(Debug)]
struct Crossing {
    /// The domain and slot of its sender, and those of its receiver.
    ends: [(u16, u32); 2],
    /// The parts of its routes, each with its domain, position and number of entries.
    parts: Box<[(u16, u32, u32)]>,
    /// Packets, and data packets among them, that were lost where the flow has no end.
    lost_packets: u32,
    lost_data: u64,
    /// The last of these losses.
    last_loss: Option<Instant>,
}

impl Crossing {
    fn of(outline: &Outline) -> Crossing {
        let (ends, parts) = (outline.places(), outline.positions().collect());
        Crossing { ends, parts, lost_packets: 0, lost_data: 0, last_loss: None }
    }

    /// True if one entry holds both ends.
    fn is_in_one_domain(&self) -> bool {
        self.ends[0] == self.ends[1]
    }

    /// The domains and slots of its entries.
    fn entries(&self) -> &[(u16, u32)] {
        if self.is_in_one_domain() { &self.ends[..1] } else { &self.ends }
    }
}

/// The flows of a run.
pub(super) struct Flows {
    source: Box<dyn FlowSource>,
    /// The next flow of the source, which is not planned yet.
    upcoming: Option<FlowSpec>,
    /// The number of planned flows, which is the number of the next.
    planned: u32,
    /// Planned flows that have no row yet.
    without_row: VecDeque<FlowSpec>,
    /// The open flows whose packets pass through several domains, by number. All other planned flows have `None`.
    crossing: Vec<Option<Box<Crossing>>>,
    /// The numbers of those whose sender is done.
    done: Vec<u32>,
    /// The instants at which flows ended that are not counted in `open` yet.
    ended: Vec<Instant>,
    open: u64,
    records: Records,
}

type Worlds<'a, 'b, Q> = &'a mut [&'b mut World<DomainFabric<Q>>];

impl Flows {
    pub(super) fn new(mut source: Box<dyn FlowSource>) -> Flows {
        let upcoming = source.next_flow();
        Flows {
            source,
            upcoming,
            planned: 0,
            without_row: VecDeque::new(),
            crossing: Vec::new(),
            done: Vec::new(),
            ended: Vec::new(),
            open: 0,
            records: Records::default(),
        }
    }

    /// The start of the first flow that is not planned yet.
    pub(super) fn horizon(&self) -> Time {
        self.upcoming.map_or(Time::NEVER, |spec| spec.start)
    }

    /// Takes the flows that start next from the source. They start before the new horizon.
    ///
    /// # Panics
    /// If a flow is not plain, or if there are more than `MOST_FLOWS`.
    pub(super) fn draw(&mut self) -> Batch {
        let mut specs: Vec<FlowSpec> = Vec::with_capacity(PLANNED_TOGETHER);
        while let Some(spec) = self.upcoming {
            if specs.len() >= PLANNED_TOGETHER && specs.last().is_some_and(|last| spec.start > last.start) {
                break;
            }
            let is_plain = spec.waiter.is_none() && spec.pool.is_none() && spec.writes.is_none();
            assert!(is_plain, "a source that is not an open loop of plain flows runs in one domain");
            specs.push(spec);
            self.upcoming = self.source.next_flow();
        }
        let first = self.planned;
        self.planned += specs.len() as u32;
        assert!(self.planned <= MOST_FLOWS, "more than {MOST_FLOWS} flows in several domains");
        Batch::new(first, specs)
    }

    /// Adds the flows of a batch, whose slots and positions are allotted.
    pub(super) fn add(&mut self, batch: &Batch) {
        self.without_row.extend(batch.specs());
        let crossing = |outline: &Outline| outline.crosses().then(|| Box::new(Crossing::of(outline)));
        self.crossing.extend(batch.outlines().map(crossing));
    }

    /// Ends the flows that are over, given that everything before `reached` has happened, and adds the rows of those that
    /// have started.
    pub(super) fn settle<Q: EventQueue>(&mut self, worlds: Worlds<'_, '_, Q>, reached: Time) {
        let mut outcomes = Vec::new();
        for world in worlds.iter_mut() {
            let (ended, done, lost) = world.take_reports();
            self.done.extend(done);
            self.ended.extend(ended.iter().map(|ended| ended.at));
            outcomes.extend(ended.into_iter().map(|ended| ended.outcome));
            lost.into_iter().for_each(|lost| self.lose(lost));
        }
        let done = std::mem::take(&mut self.done);
        for (place, &id) in done.iter().enumerate() {
            self.expect(&done[place..], worlds);
            let Some(crossing) = &self.crossing[id as usize] else { continue };
            if in_network(crossing, worlds) != 0 {
                self.done.push(id);
                continue;
            }
            outcomes.push(outcome(crossing, worlds));
            let ends = crossing.ends.map(|(domain, slot)| worlds[usize::from(domain)].end_in(slot).last());
            let last = ends.into_iter().chain([crossing.last_loss]).flatten().max();
            self.ended.extend(last);
            free(crossing, worlds);
            self.crossing[id as usize] = None;
        }
        self.add_rows(reached);
        outcomes.iter().for_each(|outcome| self.close(outcome));
    }

    fn lose(&mut self, lost: LostPassing) {
        let Some(crossing) = &mut self.crossing[lost.flow as usize] else { return };
        crossing.lost_packets = crossing.lost_packets.wrapping_add(1);
        crossing.lost_data += u64::from(lost.is_data);
        crossing.last_loss = crossing.last_loss.max(Some(lost.at));
    }

    /// Prefetches for flows some places on in `ids`. The ends of a flow take some twenty cache lines, which are in no cache.
    fn expect<Q: EventQueue>(&self, ids: &[u32], worlds: &[&mut World<DomainFabric<Q>>]) {
        let crossing_after = |places: usize| self.crossing[*ids.get(places)? as usize].as_deref();
        if let Some(crossing) = crossing_after(8) {
            prefetch(crossing);
        }
        if let Some(crossing) = crossing_after(4) {
            let entries = crossing.entries().iter();
            entries.for_each(|&(domain, slot)| worlds[usize::from(domain)].end_in(slot).prefetch());
        }
    }

    /// Adds the rows of flows that started before `reached`, and keeps the largest number of open flows: at the same time,
    /// flows end before others start, except for those that end by what the start of others causes.
    fn add_rows(&mut self, reached: Time) {
        self.ended.sort_unstable();
        let mut ended = std::mem::take(&mut self.ended).into_iter().peekable();
        while let Some(spec) = self.without_row.front().copied().filter(|spec| spec.start < reached) {
            self.without_row.pop_front();
            let start = Instant { at: spec.start, after_starts: false };
            while ended.next_if(|&end| end <= start).is_some() {
                self.open -= 1;
            }
            let id = self.records.flows.id.len() as u32;
            self.records.flows.open(&spec, id, spec.start, u64::MAX);
            self.open += 1;
            let totals = &mut self.records.totals;
            totals.flows += 1;
            totals.peak_open_flows = totals.peak_open_flows.max(self.open);
        }
        self.open -= ended.count() as u64;
    }

    fn close(&mut self, outcome: &Outcome) {
        let (flows, row) = (&mut self.records.flows, outcome.row as usize);
        flows.close(outcome);
        if flows.size_bytes[row] != u64::MAX {
            flows.ideal_ps[row] = outcome.ideal.as_ps();
        }
        self.records.totals.finished_flows += u64::from(outcome.finish != Time::NEVER);
    }

    /// Writes the rows of open flows, after `settle`. Returns the packets of flows in the network.
    pub(super) fn finish<Q: EventQueue>(&mut self, worlds: Worlds<'_, '_, Q>) -> u64 {
        let mut packets = 0;
        let mut outcomes = Vec::new();
        for world in worlds.iter() {
            packets += world.finish_inner_flows(&mut outcomes);
        }
        for crossing in self.started_crossing() {
            packets += u64::from(in_network(crossing, worlds));
            outcomes.push(outcome(crossing, worlds));
        }
        outcomes.iter().for_each(|outcome| self.close(outcome));
        packets
    }

    pub(super) fn into_records(self) -> Records {
        self.records
    }

    /// The ends of the open flow with this number, if its packets pass through several domains, after `settle`.
    pub(super) fn crossing(&self, id: u32) -> Option<[(u16, u32); 2]> {
        let has_started = (id as usize) < self.records.flows.id.len();
        self.crossing.get(id as usize).filter(|_| has_started)?.as_ref().map(|crossing| crossing.ends)
    }

    /// Passes the ends of each open flow whose packets pass through several domains to `see`, after `settle`.
    pub(super) fn for_each_crossing(&self, mut see: impl FnMut([(u16, u32); 2])) {
        self.started_crossing().for_each(|crossing| see(crossing.ends));
    }

    /// The open flows that have started and whose packets pass through several domains, after `settle`.
    fn started_crossing(&self) -> impl Iterator<Item = &Crossing> {
        self.crossing[..self.records.flows.id.len()].iter().flatten().map(Box::as_ref)
    }
}

/// Frees the slots and the routes of a flow.
fn free<Q: EventQueue>(crossing: &Crossing, worlds: Worlds<'_, '_, Q>) {
    for &(domain, slot) in crossing.entries() {
        worlds[usize::from(domain)].free_slot(slot);
    }
    for &(domain, at, entries) in &crossing.parts {
        worlds[usize::from(domain)].layout.positions.give_back(at, entries as usize);
    }
}

/// Packets of a flow in the network.
fn in_network<Q: EventQueue>(crossing: &Crossing, worlds: &[&mut World<DomainFabric<Q>>]) -> u32 {
    let entries = crossing.entries().iter();
    let at_ends = entries.map(|&(domain, slot)| worlds[usize::from(domain)].end_in(slot).in_network());
    at_ends.fold(0, u32::wrapping_add).wrapping_sub(crossing.lost_packets)
}

/// The results of a flow, from both of its ends.
fn outcome<Q: EventQueue>(crossing: &Crossing, worlds: &[&mut World<DomainFabric<Q>>]) -> Outcome {
    let [sender, receiver] = crossing.ends.map(|(domain, slot)| worlds[usize::from(domain)].end_in(slot).outcome());
    let lost_at_receiver = if crossing.is_in_one_domain() { 0 } else { receiver.lost };
    Outcome {
        finish: receiver.finish,
        delivered_bytes: receiver.delivered_bytes,
        lost: sender.lost + lost_at_receiver + crossing.lost_data,
        ..sender
    }
}
