//! Packets, output queues with their disciplines, and links.

pub mod effects;
pub mod fault;
pub(crate) mod link;
pub(crate) mod loss;
pub(crate) mod memory;
pub(crate) mod packet;
pub(crate) mod pause;
pub mod qdisc;
pub(crate) mod rate_header;
pub(crate) mod rcp_meter;
pub(crate) mod sack_slab;
pub mod telemetry;
pub mod trace;
