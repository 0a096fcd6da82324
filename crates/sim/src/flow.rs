//! What a flow is asked to do, and where such requests come from.

use crate::routing::network::NodeId;
use sparelane_core::{Dur, Time};

/// The most segments of one flow that ends: their numbers have 32 bits, and the last number stands for no end.
pub const MAX_FLOW_SEGMENTS: u64 = u32::MAX as u64 - 1;

/// One transfer from a source to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// When the source sends its SYN.
    pub start: Time,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host.
    pub dst: NodeId,
    /// Payload bytes, at least one and at most [`MAX_FLOW_SEGMENTS`] segments; `None` sends without end.
    pub size_bytes: Option<u64>,
    /// Index into the run's schemes.
    pub scheme: u16,
    /// How the application writes; `None` writes everything at the start.
    pub writes: Option<Writes>,
    /// The class of traffic, by its index in the run's, if it has one.
    pub traffic_class: Option<u16>,
    /// The request that it is part of, if it is. Its source counts them from 0 and gives all flows of one together; a run
    /// numbers them in order of start.
    pub request: Option<u32>,
    /// Who waits for it, by a number of its source's own: the source hears when it is complete ([`FlowSource::follow`]).
    pub waiter: Option<u64>,
}

impl FlowSpec {
    /// A flow that is written at once, of no class of traffic and no request.
    pub const fn new(start: Time, src: NodeId, dst: NodeId, size_bytes: Option<u64>, scheme: u16) -> FlowSpec {
        FlowSpec { start, src, dst, size_bytes, scheme, writes: None, traffic_class: None, request: None, waiter: None }
    }
}

/// An application that paces its transfer, as players of videos do (NSDI 2014 section 5.1.2): a first write at the
/// flow's start, and then one so often until everything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes {
    /// Payload bytes of the first write, at least one.
    pub first_bytes: u64,
    /// Payload bytes of every other write, at least one; the last has what is left.
    pub then_bytes: u64,
    /// The time from one write to the next, not zero.
    pub every: Dur,
}

/// A stream of flows, in order of their start. It is read as time goes on, so that memory does not
/// grow with the length of a run.
pub trait FlowSource: Send {
    /// The next flow, whose start is no earlier than that of the one before; `None` at the end.
    fn next_flow(&mut self) -> Option<FlowSpec>;

    /// The flow that `waiter` waited for is complete at `now`. Gives the flow that follows from it, whose start is no earlier
    /// than that; `None` where nothing does.
    ///
    /// What follows is beside the stream of [`next_flow`](FlowSource::next_flow), which may have been read beyond its start.
    fn follow(&mut self, waiter: u64, now: Time) -> Option<FlowSpec> {
        let _ = (waiter, now);
        None
    }
}
