//! Flows as all domains together see them: their numbers, their rows, and how many are open.

use super::accounts::{Letters, state_of};
use super::planning::Batch;
use super::{Domain, worlds};
use crate::engine::event_queue::EventQueue;
use crate::flow::{FlowSource, FlowSpec};
use crate::records::{Outcome, Records};
use crate::world::domain::{Instant, PASSING};
use sparelane_core::Time;
use std::collections::VecDeque;

/// The number of flows that are planned together, unless more start at the same time. All domains stop for it.
const PLANNED_TOGETHER: usize = 1_024;

/// The largest number of flows: packets that pass through a domain carry the number of their flow.
const MOST_FLOWS: u32 = PASSING - 1;

/// The flows of a run.
pub(super) struct Flows {
    source: Box<dyn FlowSource>,
    /// The next flow of the source, which has no number yet.
    upcoming: Option<FlowSpec>,
    /// The flows that are planned next, if they were drawn ahead.
    drawn: Option<Batch>,
    /// The number of flows that were drawn, which is the number of the next.
    numbered: u32,
    /// Planned flows that have no row yet.
    without_row: VecDeque<FlowSpec>,
    /// The domain and the slot of the sender of each planned flow, by number.
    homes: Vec<(u16, u32)>,
    /// The instants at which flows ended that are not counted in `open` yet.
    ended: Vec<Instant>,
    open: u64,
    /// The end of the run.
    stop: Time,
    records: Records,
}

impl Flows {
    /// The flows of `source` in a run until `stop`.
    pub(super) fn new(mut source: Box<dyn FlowSource>, stop: Time) -> Flows {
        let mut records = Records::default();
        records.flows.reserve(source.starting_together());
        let upcoming = source.next_flow();
        Flows {
            source,
            upcoming,
            drawn: None,
            numbered: 0,
            without_row: VecDeque::new(),
            homes: Vec::new(),
            ended: Vec::new(),
            open: 0,
            stop,
            records,
        }
    }

    /// The start of the first flow that is not planned yet.
    pub(super) fn horizon(&self) -> Time {
        let drawn = self.drawn.as_ref().and_then(|batch| batch.specs().first());
        drawn.or(self.upcoming.as_ref()).map_or(Time::NEVER, |spec| spec.start)
    }

    /// The flows that are planned next. They start before the new horizon.
    pub(super) fn next_batch(&mut self) -> Batch {
        self.drawn.take().unwrap_or_else(|| self.draw())
    }

    /// Draws the flows that are planned after the next planning, while other threads have work.
    pub(super) fn draw_ahead(&mut self) {
        if self.upcoming.is_some() {
            self.drawn = Some(self.draw());
        }
    }

    /// Takes the flows that start next from the source.
    ///
    /// # Panics
    /// If a flow is not plain, or if there are more than `MOST_FLOWS`.
    fn draw(&mut self) -> Batch {
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
        let first = self.numbered;
        self.numbered += specs.len() as u32;
        assert!(self.numbered <= MOST_FLOWS, "more than {MOST_FLOWS} flows in several domains");
        Batch::new(first, specs)
    }

    /// Adds the flows of a batch, whose slots are allotted.
    pub(super) fn add(&mut self, batch: &Batch) {
        self.without_row.extend(batch.specs());
        self.homes.extend(batch.outlines().map(|outline| outline.places()[0]));
    }

    /// Sends losses of packets to the domains that keep the accounts of their flows.
    pub(super) fn address(&self, letters: &Letters) {
        letters.address(|flow| self.homes[flow as usize]);
    }

    /// Adds the rows of flows that started before `reached`, and completes those of flows that the domains have ended.
    pub(super) fn keep(&mut self, letters: &Letters, reached: Time) {
        let mut ended = letters.ended();
        self.ended.extend(ended.iter().flat_map(|ended| ended.iter()).map(|ended| ended.at));
        self.add_rows(reached);
        let outcomes = ended.iter_mut().flat_map(|ended| ended.drain(..)).map(|ended| ended.outcome);
        outcomes.for_each(|outcome| self.close(&outcome));
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
            self.records.flows.reserve_until(spec.start, self.stop);
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

    /// Writes the rows of open flows, once the domains have settled. Returns the packets of flows in the network.
    pub(super) fn finish<Q: EventQueue>(&mut self, domains: &mut [Domain<Q>]) -> u64 {
        let mut outcomes = Vec::new();
        let inner: u64 = worlds(domains).iter().map(|world| world.finish_inner_flows(&mut outcomes)).sum();
        let end = |(domain, slot): (u16, u32)| domains[usize::from(domain)].world.end_in(slot);
        let crossing = domains.iter().flat_map(|domain| domain.accounts.all());
        let mut packets = 0;
        for crossing in crossing.filter(|crossing| self.has_started(crossing.id)) {
            let (in_network, outcome) = state_of(crossing, end);
            packets += u64::from(in_network);
            outcomes.push(outcome);
        }
        outcomes.iter().for_each(|outcome| self.close(outcome));
        inner + packets
    }

    pub(super) fn into_records(self) -> Records {
        self.records
    }

    /// True if a planned flow has started, once the domains have settled.
    pub(super) fn has_started(&self, id: u32) -> bool {
        (id as usize) < self.records.flows.id.len()
    }

    /// The domain and the slot of the sender of a flow that has started.
    pub(super) fn home(&self, id: u32) -> Option<(u16, u32)> {
        self.homes.get(id as usize).copied().filter(|_| self.has_started(id))
    }
}
