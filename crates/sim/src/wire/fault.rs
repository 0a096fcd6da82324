//! Scripted drops, which replay a paper's walk-through or a corner case.

use crate::routing::network::NodeId;

/// Drops chosen data segments of one flow as they enter the queue of one cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drop {
    /// The node whose output queue drops.
    pub from: NodeId,
    /// The node that the cable leads to.
    pub to: NodeId,
    /// The flow's number, in order of start, from 0.
    pub flow: u32,
    /// Segment numbers, from 0.
    pub segments: Vec<u32>,
    /// The number of transmissions of each of these segments to drop.
    pub copies: u32,
}
