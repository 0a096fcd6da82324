//! What a scenario can name besides controllers: topologies, workloads and laws of active queue management, each kind in a file
//! of its own with its keys, its documentation and what builds it; and the formats of their files.
//!
//! A kind is a [`Form`](schema::Form): a line in the list of its room ([`topology::TOPOLOGIES`], [`workload::WORKLOADS`],
//! [`queue::QUEUES`]) adds it to what scenarios, the command line and the documentation know. A crate outside adds its own to a
//! [`Catalogue`], without a line here.

pub mod aliases;
mod catalogue;
pub mod queue;
pub mod schema;
pub mod topology;
pub mod workload;

pub use self::catalogue::{Catalogue, NameTaken};
