//! Flows that reuse connections, as clients that keep connections to their servers do.

use super::{Workload, WorkloadError};
use crate::schema::{Fallback, Key, Kind};
use crate::workload::Demand;
use sparelane_core::{Dur, Time};
use sparelane_sim::{FlowSource, FlowSpec, Network};
use std::fmt;
use std::sync::Arc;

/// The key of a workload.
pub(super) const CONNECTIONS: Key = Key::new(
    "connections",
    Kind::Choice(&["new", "reused"]),
    Fallback::Value("new"),
    "each flow opens a connection (new), or takes an idle one of this workload between its hosts and with its scheme, \
     the one opened first, and opens one only if none is idle (reused); a reused connection keeps its window",
);

/// The flows of a source, which share a pool of connections.
pub struct Pooled {
    source: Box<dyn FlowSource>,
    pool: u32,
}

impl Pooled {
    /// Lets the flows of `source` take their connections from `pool`.
    pub fn new(source: Box<dyn FlowSource>, pool: u32) -> Pooled {
        Pooled { source, pool }
    }
}

impl FlowSource for Pooled {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        self.source.next_flow().map(|flow| FlowSpec { pool: Some(self.pool), ..flow })
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Vec<FlowSpec> {
        let flows = self.source.follow(waiter, now);
        flows.into_iter().map(|flow| FlowSpec { pool: Some(self.pool), ..flow }).collect()
    }
}

impl fmt::Debug for Pooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pooled").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// A workload whose flows reuse connections; its number is that of their pool.
#[derive(Clone, Debug)]
pub(super) struct PooledWorkload(pub(super) Arc<dyn Workload>, pub(super) u32);

impl Workload for PooledWorkload {
    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(Pooled::new(self.0.flows(network, seed)?, self.1)))
    }

    fn demand(&self, network: &Network, duration: Dur) -> Demand {
        self.0.demand(network, duration)
    }
}
