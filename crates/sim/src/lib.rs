//! The packet simulator: links, queues, hosts and routes under one event engine.
//!
//! A [`RunConfig`] becomes a [`Simulation`], which runs in slices and ends in [`Records`].
//!
//! | room | what is in it |
//! |---|---|
//! | `wire` | packets, output queues and their laws ([`qdisc`]), links, losses |
//! | `engine` | the order of events, timers, and a second engine for the tests |
//! | `hosts` | what hosts do with packets before TCP has them, and after |
//! | `routing` | networks, shortest paths, routes |
//! | `cross` | traffic that belongs to no flow |
//! | [`observe`] | whoever looks into a run |
//! | `live` | links and queues alone, for packets and a clock of somebody else |
//! | `world` | hosts and their flows on top of all that |

pub mod config;
pub mod cross;
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

pub use config::{Discipline, FullInterface, QueueAt, QueueSpec, RcpSpec, RoomNeeded, Routing, RunConfig, Scheme};
pub use cross::{AggregateSpec, ConstantSpec, CrossTraffic, Pattern, TokenBucket};
#[cfg(feature = "oracle")]
pub use engine::{oracle, recorded};
pub use flow::{FlowSource, FlowSpec, MAX_FLOW_SEGMENTS, Writes};
pub use hosts::{HostAt, HostSpec, Interrupts, Stalls, TimestampAt};
pub use live::{Change, Fate, LiveNetwork, Offered};
pub use physics::PhysicsViolation;
pub use records::{CLASSES, CrossTable, DelayTable, FlowTable, LinkTable, PacketTable, Records, SeriesTable, Totals};
pub use routing::network::{Cable, Limit, Loss, Network, Node, NodeId, NodeKind};
pub use routing::paths::{Hop, RouterPaths};
pub use routing::routes::Routes;
pub use simulation::{BuildError, MAX_PACKET_BYTES, Progress, Simulation};
pub use wire::fault::Drop;
pub use wire::memory::SwitchSpec;
pub use wire::qdisc;
