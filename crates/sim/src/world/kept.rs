//! Connections that flows take from a pool: each carries one flow after another, and keeps its state between them.

use super::World;
use super::flow::{Flow, Span};
use super::start::Writing;
use crate::engine::fabric::Fabric;
use crate::flow::FlowSpec;
use crate::routing::network::NodeId;
use sparelane_core::{Dur, Time};
use sparelane_transport::SenderCounts;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Identifies the connections that may serve a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pool {
    number: u32,
    src: NodeId,
    dst: NodeId,
    scheme: u16,
}

impl Pool {
    /// The pool that a flow names, if it names one.
    fn of(spec: &FlowSpec) -> Option<Pool> {
        let FlowSpec { src, dst, scheme, .. } = *spec;
        spec.pool.map(|number| Pool { number, src, dst, scheme })
    }
}

/// The part of a connection's state that only connections of a pool have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pool: Pool,
    /// The number of the current or last flow, and its row in the results.
    row: u32,
    /// Payload bytes that the receiver held before this flow.
    held_before_bytes: u64,
    /// The sender's counters before this flow.
    counts_before: SenderCounts,
}

impl Kept {
    /// The state of a connection that is opened for flow `row`.
    pub(super) fn of(spec: &FlowSpec, row: u32) -> Option<Box<Kept>> {
        let pool = Pool::of(spec)?;
        Some(Box::new(Kept { pool, row, held_before_bytes: 0, counts_before: SenderCounts::default() }))
    }
}

/// The idle connections of each pool by their number, which is that of their first flow, with their slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Pools(BTreeMap<Pool, BinaryHeap<Reverse<(u32, u32)>>>);

impl Pools {
    /// Takes the connection that was opened first.
    fn take(&mut self, pool: Pool) -> Option<u32> {
        self.0.get_mut(&pool)?.pop().map(|Reverse((_, slot))| slot)
    }

    fn put(&mut self, pool: Pool, connection: u32, slot: u32) {
        self.0.entry(pool).or_default().push(Reverse((connection, slot)));
    }
}

impl Flow {
    /// The number of the flow that the connection carries, or carried last. It differs from the connection's own
    /// number, `id`, if the connection was reused.
    pub(super) fn row(&self) -> u32 {
        self.kept.as_ref().map_or(self.id, |kept| kept.row)
    }

    /// Payload bytes of the flow that the receiver holds in sequence.
    pub(super) fn held_bytes(&self) -> u64 {
        self.receiver.held_bytes() - self.kept.as_ref().map_or(0, |kept| kept.held_before_bytes)
    }

    /// The sender's counters since the flow started.
    pub(super) fn counts(&self) -> SenderCounts {
        let now = self.sender.counts();
        let before = self.kept.as_ref().map_or(SenderCounts::default(), |kept| kept.counts_before);
        SenderCounts {
            retransmissions: now.retransmissions - before.retransmissions,
            timeouts: now.timeouts - before.timeouts,
        }
    }
}

impl<F: Fabric> World<F> {
    /// Takes an idle connection for a flow. Returns its slot, or `None` if the flow needs a new connection.
    pub(super) fn take_idle(&mut self, spec: &FlowSpec) -> Option<u32> {
        self.pools.take(Pool::of(spec)?)
    }

    /// Returns the connection in `slot` to its pool, if it has one, because its flow is complete.
    pub(super) fn give_back(&mut self, slot: u32) {
        let flow = &self.flows[slot as usize];
        if let Some(kept) = &flow.kept {
            self.pools.put(kept.pool, flow.id, slot);
        }
    }

    /// Starts a flow on the open connection in `slot`, whose earlier flows are complete.
    pub(super) fn start_on_open_connection(&mut self, spec: FlowSpec, slot: u32) {
        // Until now, packets and counters belonged to the last flow.
        self.record(slot);
        let row = self.records.flows.id.len() as u32;
        let flow = &self.flows[slot as usize];
        let (connection, last_row, first_segment) = (flow.id, flow.row(), flow.receiver.next_expected());
        self.forget_drops(last_row, slot);
        self.plan_drops(row, slot, first_segment as u32);
        let paths = self.paths(&spec, connection);
        let there = &paths[0];
        let scheme = &self.settings.schemes[usize::from(spec.scheme)];
        let transport = Arc::clone(&scheme.transport);
        let plan = self.settings.blueprint(&spec, self.line_rate(there));
        let sender = &mut self.flows[slot as usize].sender;
        sender.steer(&mut |cc| cc.on_next_flow(&scheme.values, &plan));
        let mut writing = Writing::begin(&spec, sender);
        let (segments, mut ideal) = self.bounds(&spec, &mut writing, there, Dur::ZERO, &transport);
        if let Some(several) = self.sprayed_paths(&spec, &paths, connection) {
            let at_once = |bytes| self.ideal_of_spray(&several[0], bytes, &transport);
            ideal = spec.size_bytes.map(|bytes| if spec.writes.is_none() { at_once(bytes) } else { Dur::ZERO });
            if let Some(application) = &mut writing.application {
                application.first_least = Dur::ZERO;
            }
        }
        let flow = &mut self.flows[slot as usize];
        let (held_before_bytes, counts_before) = (flow.receiver.held_bytes(), flow.sender.counts());
        if let Some(kept) = &mut flow.kept {
            **kept = Kept { row, held_before_bytes, counts_before, ..**kept };
        }
        flow.segments = segments.saturating_add(first_segment);
        flow.span = Span { start: self.now, finish: Time::NEVER, ideal: ideal.unwrap_or_default() };
        flow.application = writing.application;
        flow.waiter = spec.waiter;
        flow.wire.sent = Default::default();
        flow.lost = 0;
        self.record_start(row, connection, &spec, ideal);
        self.await_next_write(slot, writing.next_write);
        self.send_allowed(slot);
    }
}
