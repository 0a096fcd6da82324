//! What a flow is asked to do, and where such requests come from.

use crate::network::NodeId;
use sparelane_core::Time;

/// One transfer from a source to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// When the source sends its SYN.
    pub start: Time,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host.
    pub dst: NodeId,
    /// Payload bytes, at least one; `None` sends without end.
    pub size_bytes: Option<u64>,
    /// Index into the run's schemes.
    pub scheme: u16,
}

/// A stream of flows, in order of their start. It is read as time goes on, so that memory does not
/// grow with the length of a run.
pub trait FlowSource: Send {
    /// The next flow, whose start is no earlier than that of the one before; `None` at the end.
    fn next_flow(&mut self) -> Option<FlowSpec>;
}
