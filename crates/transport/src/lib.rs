//! TCP without sockets.
pub mod config;
pub use config::{DelayedAck, HEADER_BYTES, RtoConfig, TransportConfig};
