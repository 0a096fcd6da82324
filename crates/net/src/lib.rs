//! The transport on a real network: the same sender, receiver and controllers that the simulator drives, in encrypted datagrams
//! between two hosts that know each other's keys.
//!
//! No module but `udp` and those above it touches a socket or a clock: time comes in as an argument, as everywhere below.

pub mod carrier;
pub mod control;
pub mod disk;
pub mod flow;
pub mod frame;
#[cfg(target_os = "linux")]
pub mod host;
pub mod identity;
#[cfg(target_os = "linux")]
pub mod metrics;
pub mod node;
pub mod probe;
pub mod quic;
pub mod route;
#[cfg(test)]
mod scratch;
#[cfg(target_os = "linux")]
pub mod service;
pub mod telemetry;
pub mod transfer;
pub mod tunnel;
#[cfg(target_os = "linux")]
pub mod udp;
pub mod virt;
