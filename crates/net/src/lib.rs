//! The transport on a real network.
//!
//! It runs the sender, receiver and controllers of the simulator over encrypted UDP datagrams between two hosts that
//! know each other's keys. File transfers, tunnels and path measurements are built on it.
//!
//! Only `udp` and the modules above it (`host`, `service`, `tunnel::host`, `probe::host`) use sockets and clocks. All
//! others take the time as an argument.

pub mod attempts;
pub mod carrier;
pub mod control;
pub mod disk;
pub mod flow;
pub mod frame;
#[cfg(target_os = "linux")]
pub mod host;
pub mod identity;
mod limiter;
pub mod line;
#[cfg(target_os = "linux")]
pub mod metrics;
pub mod node;
pub mod peer_text;
pub mod probe;
pub mod quic;
#[cfg(target_os = "linux")]
mod route;
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
