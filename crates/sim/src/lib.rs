//! The packet simulator: links, queues, hosts and routes under one event engine.
//!
//! A [`RunConfig`] becomes a [`Simulation`], which runs in slices and ends in [`Records`].

mod application;
mod blocks;
pub mod config;
pub mod cross;
mod event_tree;
mod fabric;
pub mod fault;
pub mod flow;
mod host;
mod link;
mod loss;
mod memory;
pub mod network;
pub mod observe;
#[cfg(feature = "oracle")]
pub mod oracle;
mod packet;
mod paths;
pub mod physics;
mod pull;
pub mod qdisc;
mod rate_header;
mod rcp;
pub mod records;
mod routes;
pub mod simulation;
mod tandem;
mod timers;
mod world;

pub use config::{Discipline, FullInterface, QueueAt, QueueSpec, RcpSpec, RoomNeeded, Routing, RunConfig, Scheme};
pub use cross::{AggregateSpec, ConstantSpec, CrossTraffic, Pattern, TokenBucket};
pub use fault::Drop;
pub use flow::{FlowSource, FlowSpec, MAX_FLOW_SEGMENTS, Writes};
pub use host::{HostAt, HostSpec, Interrupts, Stalls, TimestampAt};
pub use memory::SwitchSpec;
pub use network::{Cable, Limit, Loss, Network, Node, NodeId, NodeKind};
pub use paths::{Hop, RouterPaths};
pub use physics::PhysicsViolation;
pub use records::{CLASSES, CrossTable, DelayTable, FlowTable, LinkTable, PacketTable, Records, SeriesTable, Totals};
pub use routes::Routes;
pub use simulation::{BuildError, MAX_PACKET_BYTES, Progress, Simulation};
