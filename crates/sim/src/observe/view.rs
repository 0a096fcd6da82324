//! The state of a run at an instant, as observers see it.

use crate::routing::network::NodeId;
use crate::wire::link::LinkCounts;
use sparelane_cc::CongestionControl;
use sparelane_core::{Rate, Time};
use sparelane_transport::{Receiver, Sender};
use std::fmt;

/// An open flow, both ends.
#[derive(Clone, Copy, Debug)]
pub struct FlowView<'a> {
    /// Its number, in order of start. For a connection that waits for its next flow, the number of the last one.
    pub id: u32,
    /// The number of the flow that opened its connection: `id`, unless connections are reused.
    pub connection: u32,
    /// Send time of its SYN, or of its first write on a connection that was open already.
    pub start: Time,
    /// Time at which its receiver held the last byte; `Time::NEVER` if it does not yet.
    pub finish: Time,
    /// Payload bytes of the flow that its receiver holds in sequence.
    pub held_bytes: u64,
    /// The sending end.
    pub sender: &'a Sender,
    /// The receiving end.
    pub receiver: &'a Receiver,
}

impl FlowView<'_> {
    /// Passes to `put` the values that the flow's controller traces, and those of its two ends: bytes in flight, bytes
    /// held by the receiver since the connection opened, and the smoothed round-trip time once there is one.
    pub fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let controller: &dyn CongestionControl = self.sender.controller();
        controller.trace(put);
        put("in_flight_bytes", self.sender.in_flight_bytes() as f64);
        put("held_bytes", self.receiver.held_bytes() as f64);
        if let Some(srtt) = self.sender.srtt() {
            put("srtt_s", srtt.as_secs_f64());
        }
    }
}

/// The part of a world that is visible to observers.
pub(crate) trait Inside {
    fn now(&self) -> Time;
    fn open_flow(&self, id: u32) -> Option<FlowView<'_>>;
    fn for_each_open_flow(&self, see: &mut dyn FnMut(FlowView<'_>));
    fn link(&self, from: NodeId, to: NodeId) -> Option<u32>;
    fn is_in_view(&self, from: NodeId, to: NodeId) -> bool;
    fn backlog_bytes(&mut self, link: u32) -> u64;
    fn explicit_rate(&self, link: u32) -> Option<Rate>;
    fn counts(&mut self, link: u32) -> LinkCounts;
    fn offered_bytes(&self, link: u32) -> Option<u64>;
}

/// A run at one instant: everything that was due until then has happened.
pub struct View<'a>(pub(crate) &'a mut dyn Inside);

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl View<'_> {
    /// The current time.
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// The flow with this number, while it is open. The number of the flow that opened a connection stands for the
    /// connection, with whatever flow it carries.
    pub fn flow(&self, id: u32) -> Option<FlowView<'_>> {
        self.0.open_flow(id)
    }

    /// Passes every open flow to `see`, in no particular order. A connection that waits for its next flow is open.
    pub fn for_each_open_flow(&self, see: &mut dyn FnMut(FlowView<'_>)) {
        self.0.for_each_open_flow(see);
    }

    /// Bytes that wait in the output queue from one node towards the next. `None` without such a cable, and if no
    /// observer declared the queue before the run ([`Interest::queues`](super::Interest)): the state of other queues
    /// may be ahead of time.
    pub fn backlog_bytes(&mut self, from: NodeId, to: NodeId) -> Option<u64> {
        if !self.0.is_in_view(from, to) {
            return None;
        }
        let link = self.0.link(from, to)?;
        Some(self.0.backlog_bytes(link))
    }

    /// The rate that the output queue from one node towards the next allows each flow, if it computes one.
    pub fn explicit_rate(&self, from: NodeId, to: NodeId) -> Option<Rate> {
        self.0.explicit_rate(self.0.link(from, to)?)
    }

    /// Bytes that have reached the far end of the cable from one node to another since the run began, if there is such
    /// a cable.
    pub fn sent_bytes(&mut self, from: NodeId, to: NodeId) -> Option<u64> {
        let link = self.0.link(from, to)?;
        Some(self.0.counts(link).delivered_bytes)
    }

    /// Bytes that the cable from one node to another could have sent since the run began. `None` without such a cable,
    /// and if its rate neither changes nor follows a trace. A cable that is down keeps its rate, and loses what it
    /// sends.
    pub fn offered_bytes(&self, from: NodeId, to: NodeId) -> Option<u64> {
        self.0.offered_bytes(self.0.link(from, to)?)
    }
}
