//! The network as a graph, shortest paths in it, and the route of each flow.

pub mod network;
pub(crate) mod paths;
pub(crate) mod routes;
