//! The network as a graph, shortest paths in it, and the routes of flows.

pub mod network;
pub mod partition;
pub(crate) mod paths;
pub(crate) mod routes;
