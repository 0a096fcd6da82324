//! Flows and flow sources: the transfers that a run performs.
//!
//! A [`FlowSource`] yields flows in order of their start. Closed-loop workloads also learn when a flow completes and
//! answer with the flow that follows it.
//!
//! A flow has a connection of its own unless it names a [pool](FlowSpec::pool). Then it takes the idle connection of
//! this pool that was opened first, among those with its hosts and its scheme. It opens one if none is idle. A
//! connection is idle from the time at which the receiver holds all of its last flow, as the client of a request sees
//! it. It keeps its window, its round-trip times and its route, and stays open until the end of the run.

use crate::routing::network::NodeId;
use sparelane_core::{Dur, Time};

/// The most segments of a flow with an end. Segment numbers have 32 bits, and the last number stands for a flow without
/// end.
pub const MAX_FLOW_SEGMENTS: u64 = u32::MAX as u64 - 1;

/// One transfer from a source to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// Send time of the SYN, or the time of the first write on a connection that is open already.
    pub start: Time,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host.
    pub dst: NodeId,
    /// Payload bytes, at least one and at most [`MAX_FLOW_SEGMENTS`] segments; `None` sends without end.
    pub size_bytes: Option<u64>,
    /// Index into the run's schemes.
    pub scheme: u16,
    /// The write pattern of the application; `None` writes everything at the start.
    pub writes: Option<Writes>,
    /// The class of traffic, as an index into the run's classes, if it has one.
    pub traffic_class: Option<u16>,
    /// The request that this flow is part of, if any. The source counts requests from 0 and yields all flows of one
    /// request together; the run renumbers them in order of start.
    pub request: Option<u32>,
    /// The pool of connections that the flow takes an idle connection from, and that its connection returns to. Pools
    /// are numbered by the source; `None` opens a connection for this flow alone.
    pub pool: Option<u32>,
    /// Identifies the user that waits for this flow, in a numbering of the source. The source is called when the flow
    /// completes ([`FlowSource::follow`]).
    pub waiter: Option<u64>,
}

impl FlowSpec {
    /// A flow that is written at once, on a connection of its own, without class of traffic, request or waiter.
    pub const fn new(start: Time, src: NodeId, dst: NodeId, size_bytes: Option<u64>, scheme: u16) -> FlowSpec {
        FlowSpec {
            start,
            src,
            dst,
            size_bytes,
            scheme,
            writes: None,
            traffic_class: None,
            request: None,
            pool: None,
            waiter: None,
        }
    }
}

/// The writes of an application that paces its transfer, as video players do (NSDI 2014 section 5.1.2): a first write
/// at the flow's start, then one per period until everything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writes {
    /// Payload bytes of the first write, at least one.
    pub first_bytes: u64,
    /// Payload bytes of every later write, at least one; the last write has the remainder.
    pub then_bytes: u64,
    /// The period between writes, not zero.
    pub every: Dur,
}

/// A source without flows.
pub(crate) struct NoFlows;

impl FlowSource for NoFlows {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        None
    }
}

/// A stream of flows, in order of their start. Flows are read just ahead of simulated time, so memory does not grow
/// with the length of a run.
pub trait FlowSource: Send {
    /// The next flow, whose start is no earlier than that of the one before; `None` at the end.
    fn next_flow(&mut self) -> Option<FlowSpec>;

    /// Returns true if no flow depends on the course of the run: none has a waiter, takes a connection from a pool, or is
    /// written in pieces. Then the flows may be read far ahead of simulated time.
    fn is_open_loop(&self) -> bool {
        false
    }

    /// The number of flows that start together next, as far as it is known without effort. Memory for them is reserved at
    /// once.
    fn starting_together(&self) -> usize {
        0
    }

    /// Called when the flow that `waiter` waited for completes at `now`. Returns the flows that follow from it, in order.
    /// Each starts no earlier than `now`.
    ///
    /// Following flows are separate from the stream of [`next_flow`](FlowSource::next_flow), which may already have
    /// been read beyond their start.
    fn follow(&mut self, waiter: u64, now: Time) -> Vec<FlowSpec> {
        let _ = (waiter, now);
        Vec::new()
    }
}
