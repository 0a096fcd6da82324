//! The congestion-controller contract, and the controllers.
//!
//! A transport reports events to a controller: bytes acknowledged, losses, timeouts. The controller answers with a
//! congestion window, a pacing rate and, if it owns the send clock, the next segment to send. It never sees a socket, a
//! packet or a clock, so that the same code runs in the simulator and on a real network.
//!
//! To add a controller, write one file in [`algos`] that exports its [`Controller`], and add it to the list in
//! `built_in.rs`. A controller in another crate is added to a [`Registry`](registry::Registry) value instead.

pub mod algos;
mod bbr_family;
mod built_in;
pub mod contract;
pub mod delay;
pub mod filter;
pub mod hystart;
pub mod hystart_plus_plus;
pub mod increase;
pub mod monitor;
pub mod pace;
pub mod param;
pub mod registry;
pub mod round;
pub mod trials;
pub mod window;
pub mod wire;

pub use contract::{
    Ack, Congestion, CongestionControl, Cx, Delivery, Departure, Hop, Limits, Lost, Needs, Offer, PathFacts, Permit,
    Phase, Plan, Received, Restart, RestartRule, Sent, TELEMETRY_BYTES, TailOffer, Telemetry, WhichEnd,
};
pub use param::{DefaultValue, Kind, Param, ParamError, Reads, UNBOUNDED, Unit, Value, Values};
pub use registry::{Blueprint, BuildError, Built, Controller, Registry, build};
pub use wire::{PathLimit, WireDefaults, WireValue};
