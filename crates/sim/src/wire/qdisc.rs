//! Queue disciplines: which packet leaves an output queue next, and which is dropped.
//!
//! A plain FIFO has no file here: on a FIFO link the departure of a packet is known when it arrives, so the packet
//! never waits in a queue at all (see `wire/link.rs`). Strict priority is a `PriorityQueue`. Laws that decide by time
//! or by chance implement [`ActiveLaw`], and an `ActiveQueue` connects one to its link.

mod active;
mod plain;
mod priority;

pub use crate::wire::packet::Packet;
pub(crate) use active::ActiveQueue;
pub use active::{ActiveLaw, ActiveSpec, Buffer, Fates, Place};
pub(crate) use plain::law_of;
pub(crate) use priority::PriorityQueue;
