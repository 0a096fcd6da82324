//! The packet simulator: links, queues, hosts and routes, driven by one event engine.
//!
//! A [`RunConfig`] becomes a [`Simulation`], which runs in slices and ends in [`Records`]. The crate reads no clock, no
//! file and no environment: a configuration and its seed determine every result to the bit.
//!
//! | module | contents |
//! |---|---|
//! | `wire` | packets, output queues and their disciplines ([`qdisc`]), links, random loss |
//! | `engine` | event queue, event order, timers; a reference engine for tests |
//! | `hosts` | processing at hosts between the wire and TCP: processors, offload, interrupts |
//! | `routing` | networks, shortest paths, routes |
//! | `cross` | cross traffic: open-loop datagrams that belong to no flow |
//! | [`observe`] | observers of a run: time series, delays, packet logs, traces |
//! | `live` | links and queues alone, for packets and a clock from outside (emulation) |
//! | `world` | hosts and their flows on top of the engine |

pub mod config;
pub mod cross;
#[cfg_attr(target_family = "wasm", expect(dead_code, reason = "WebAssembly has no threads"))]
mod domains;
mod engine;
pub mod flow;
mod hosts;
mod live;
pub mod observe;
pub mod physics;
pub mod records;
mod routing;
pub mod simulation;
mod wire;
mod world;

pub use config::{
    Change, Discipline, FullInterface, Machine, MarkRamp, QueueAt, QueueSpec, RcpSpec, RoomNeeded, Routing, RunConfig,
    Scheme, ScriptedChange, Threads,
};
pub use cross::{AggregateSpec, ConstantSpec, CrossTraffic, Pattern, TokenBucket};
pub use domains::Unsuited;
#[cfg(feature = "oracle")]
pub use engine::{oracle, recorded};
pub use flow::{FlowSource, FlowSpec, MAX_FLOW_SEGMENTS, Writes};
pub use hosts::{HostAt, HostSpec, Interrupts, Stalls, TimestampAt};
pub use live::{Fate, LiveNetwork, Offered};
pub use physics::PhysicsViolation;
pub use records::{CLASSES, CrossTable, DelayTable, FlowTable, LinkTable, PacketTable, Records, SeriesTable, Totals};
pub use routing::network::{Cable, Limit, Loss, Network, Node, NodeId, NodeKind};
pub use routing::partition;
pub use routing::paths::{Hop, RouterPaths};
pub use routing::routes::{MAX_SPRAYED_PATHS, Routes};
pub use simulation::{BuildError, Division, MAX_PACKET_BYTES, Progress, Simulation};
pub use wire::effects;
pub use wire::fault::Drop;
pub use wire::memory::SwitchSpec;
pub use wire::pause::{PauseSpec, PfcSpec};
pub use wire::qdisc;
pub use wire::telemetry::TelemetryKind;
pub use wire::trace;
