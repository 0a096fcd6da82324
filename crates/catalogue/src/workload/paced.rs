//! Flows whose applications write in pieces.

use super::{Workload, WorkloadError};
use crate::schema::volume::{Volume, volume};
use crate::schema::{Fallback, Field, Key, Kind, MAX_DURATION, ScenarioError, Section, Shape};
use crate::workload::Demand;
use sparelane_core::Dur;
use sparelane_core::Time;
use sparelane_sim::Network;
use sparelane_sim::{FlowSource, FlowSpec, Writes};
use std::fmt;
use std::sync::Arc;

/// The flows of a source, written according to [`Writes`].
pub struct Paced {
    source: Box<dyn FlowSource>,
    writes: Writes,
}

impl Paced {
    /// Applies `writes` to the flows of `source`.
    pub fn new(source: Box<dyn FlowSource>, writes: Writes) -> Paced {
        Paced { source, writes }
    }
}

impl FlowSource for Paced {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        self.source.next_flow().map(|flow| FlowSpec { writes: Some(self.writes), ..flow })
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Vec<FlowSpec> {
        let flows = self.source.follow(waiter, now);
        flows.into_iter().map(|flow| FlowSpec { writes: Some(self.writes), ..flow }).collect()
    }
}

impl fmt::Debug for Paced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paced").field("writes", &self.writes).finish_non_exhaustive()
    }
}

/// A workload whose applications write in pieces.
#[derive(Clone, Debug)]
pub(super) struct PacedWorkload(pub(super) Arc<dyn Workload>, pub(super) Writes);

impl Workload for PacedWorkload {
    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(Paced::new(self.0.flows(network, seed)?, self.1)))
    }

    fn demand(&self, network: &Network, duration: Dur) -> Demand {
        self.0.demand(network, duration)
    }
}

const PIECE: Kind = Kind::Special(
    "bytes (\"9MB\"), full segments (\"9packets\") or bandwidth-delay products (\"1bdp\")",
    &Shape::Of(Kind::Limit),
);

/// The keys of `writes`.
pub static WRITES: &[Key] = &[
    Key::new("first", PIECE, Fallback::Required, "size of the write at the flow's start"),
    Key::new("then", PIECE, Fallback::Required, "size of every later write; the last one writes the rest"),
    Key::new(
        "every",
        Kind::Time { min: Dur::from_us(1), max: MAX_DURATION },
        Fallback::Required,
        "time from one write to the next",
    ),
];

/// Reads `writes` for segments of `mss_bytes` and a bandwidth-delay product of `bdp` bytes.
pub(super) fn read(field: &Field<'_>, mss_bytes: u64, bdp: u64) -> Result<Writes, ScenarioError> {
    let section = field.clone().section(&[WRITES])?;
    let bytes = |name: &str| piece(&section, name, mss_bytes, bdp);
    Ok(Writes { first_bytes: bytes("first")?, then_bytes: bytes("then")?, every: section.need("every")?.time()? })
}

fn piece(section: &Section<'_>, name: &str, mss_bytes: u64, bdp: u64) -> Result<u64, ScenarioError> {
    let field = section.need(name)?;
    match volume(&field, mss_bytes, bdp)? {
        Volume::Bytes(bytes) => Ok(bytes),
        Volume::Unlimited => Err(field.refuse("an unlimited write")),
    }
}
