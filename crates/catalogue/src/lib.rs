//! The kinds that a scenario can name besides controllers: topologies, workloads and queues, and the formats of their
//! files.
//!
//! A kind is a [`Form`](schema::Form) in a file of its own, with its keys, its documentation and its builder. One line
//! in the list of its module ([`topology::TOPOLOGIES`], [`workload::WORKLOADS`], [`queue::QUEUES`]) makes it known to
//! scenarios, the command line and the documentation. Another crate adds its own kinds to a [`Catalogue`] value
//! instead.

pub mod aliases;
mod catalogue;
pub mod queue;
pub mod schema;
pub mod topology;
pub mod trace;
pub mod workload;

pub use self::catalogue::{Catalogue, NameTaken};
