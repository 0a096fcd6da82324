//! The packet simulator.

pub mod config;
pub mod fault;
pub mod flow;
pub mod network;
pub mod records;
pub mod topology;
pub mod workload;

pub use config::{Discipline, Probe, QueueSpec, RunConfig, Sampling, Scheme};
pub use fault::Drop;
pub use flow::{FlowSource, FlowSpec};
pub use network::{Cable, Limit, Network, Node, NodeId, NodeKind};
pub use records::{CLASSES, FlowTable, LinkTable, Records, SeriesTable, Totals};
