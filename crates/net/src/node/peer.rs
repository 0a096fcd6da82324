//! A peer of a node, with the flows to and from it.

use super::budget::Held;
use super::config::NodeConfig;
use super::path::{PathState, Unmarked};
use crate::flow::{Classes, MAX_CLASSES, ReceiveFlow, SendFlow};
use crate::identity::Fingerprint;
use crate::telemetry::Totals;
use bytes::Bytes;
use sparelane_core::Time;
use sparelane_transport::TransportConfig;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// The maximum distance between the number of a new flow and the lowest one that has not ended.
const MAX_AHEAD: u32 = 10_000;

/// The maximum number of ended flows beyond the lowest open one that are remembered individually.
const MAX_ENDED: usize = 4096;

/// A peer with its flows.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) fingerprint: Fingerprint,
    /// The peer's address when the association opened.
    pub(super) address: SocketAddr,
    pub(super) transport: TransportConfig,
    pub(super) max_frame_bytes: usize,
    pub(super) classes: Classes,
    pub(super) path: PathState,
    /// True if this node has initiated the association.
    pub(super) initiated: bool,
    /// True if the tail's rate is still to be measured.
    pub(super) needs_train: bool,
    /// Classes whose connection is open.
    pub(super) open: [bool; MAX_CLASSES],
    pub(super) sending: BTreeMap<u32, SendFlow>,
    pub(super) receiving: BTreeMap<u32, ReceiveFlow>,
    /// Payload bytes in memory of all flows of the peer.
    pub(super) held: Held,
    pub(super) next_flow: u32,
    /// Fully received flows whose sender knows that, and which are not read yet.
    pub(super) confirmed_done: BTreeSet<u32>,
    pub(super) ended_flows: EndedFlows,
    /// Received flows with pending acknowledgments.
    pub(super) to_flush: BTreeSet<u32>,
    /// Other frames to send in class 0.
    pub(super) frames_out: Vec<Vec<u8>>,
    pub(super) control_out: VecDeque<Bytes>,
    /// The time of the next timer of all flows.
    pub(super) timer: Time,
    pub(super) violations: u32,
    /// Totals over the flows that have ended.
    pub(super) ended: Totals,
}

impl Peer {
    pub(super) fn new(
        held: Held,
        address: SocketAddr,
        transport: TransportConfig,
        max_frame_bytes: usize,
        classes: u8,
        dscp: &[u8],
        initiated: bool,
    ) -> Peer {
        Peer {
            fingerprint: held.peer(),
            address,
            transport,
            max_frame_bytes,
            classes: Classes::new(classes),
            path: PathState::new(dscp, max_frame_bytes),
            initiated,
            needs_train: false,
            open: [false; MAX_CLASSES],
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            held,
            next_flow: 0,
            confirmed_done: BTreeSet::new(),
            ended_flows: EndedFlows::default(),
            to_flush: BTreeSet::new(),
            frames_out: Vec::new(),
            control_out: VecDeque::new(),
            timer: Time::NEVER,
            violations: 0,
            ended: Totals::default(),
        }
    }

    /// Opens for flows those classes that are connected and whose marks the path keeps.
    pub(super) fn allow(&mut self, unmarked: Unmarked) {
        for class in 0..MAX_CLASSES as u8 {
            let open = self.open[usize::from(class)] && self.path.allows(class, unmarked);
            self.classes.set_open(class, open);
        }
    }

    /// The time of the next timer of all flows and of the path.
    pub(super) fn next_timer(&self) -> Time {
        let flows = self.sending.values().map(|flow| flow.next_timer(&self.classes)).min();
        flows.unwrap_or(Time::NEVER).min(self.path.next_timer())
    }

    /// Removes a flow to the peer that has ended.
    pub(super) fn end(&mut self, flow: u32) {
        if let Some(flow) = self.sending.remove(&flow) {
            self.ended.add_sending(&flow);
        }
    }

    /// Totals over all flows, including those that have ended.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.ended;
        self.sending.values().for_each(|flow| totals.add_sending(flow));
        self.receiving.values().for_each(|flow| totals.add_receiving(flow));
        totals
    }

    /// Returns true if the peer may open one more flow, given the limits of its association and its key. At a limit, the
    /// oldest flow of the association that is read to its end is removed: its sender's confirmation was lost.
    pub(super) fn has_room(&mut self, config: &NodeConfig) -> bool {
        if self.receiving.len() < config.max_flows && self.held.has_room_for_flow(config) {
            return true;
        }
        let read = self.receiving.iter().find(|(_, flow)| flow.is_read()).map(|(&id, _)| id);
        read.map(|flow| self.forget(flow)).is_some()
    }

    /// Removes a flow from the peer that has ended.
    pub(super) fn forget(&mut self, flow: u32) {
        if let Some(flow) = self.receiving.remove(&flow) {
            self.held.free(flow.held_bytes());
            self.held.free_flows(1);
            self.ended.add_receiving(&flow);
        }
        self.confirmed_done.remove(&flow);
        self.to_flush.remove(&flow);
        self.ended_flows.insert(flow);
    }
}

/// The ended flows of a peer. Flow numbers rise, so that all but a few are below a floor.
#[derive(Debug, Default)]
pub(super) struct EndedFlows {
    floor: u32,
    above: BTreeSet<u32>,
}

impl EndedFlows {
    fn insert(&mut self, flow: u32) {
        self.above.insert(flow);
        while self.above.remove(&self.floor) {
            self.floor += 1;
        }
        if self.above.len() > MAX_ENDED {
            // Flows below the new floor that have not arrived by now are given up.
            self.floor = self.above.pop_first().map_or(self.floor, |first| first + 1);
        }
    }

    /// Returns true if `flow` can be the number of a new flow.
    pub(super) fn may_open(&self, flow: u32) -> bool {
        flow >= self.floor && flow - self.floor < MAX_AHEAD && !self.above.contains(&flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_flows_do_not_reopen_and_take_bounded_memory() {
        let mut ended_flows = EndedFlows::default();
        for flow in [2, 0, 1, 5] {
            assert!(ended_flows.may_open(flow));
            ended_flows.insert(flow);
            assert!(!ended_flows.may_open(flow));
        }
        assert_eq!((ended_flows.floor, ended_flows.above.len()), (3, 1));
        assert!(ended_flows.may_open(3) && !ended_flows.may_open(3 + MAX_AHEAD));
        for flow in (7..60_000).step_by(2) {
            ended_flows.insert(flow);
        }
        assert!(
            ended_flows.above.len() <= MAX_ENDED && !ended_flows.may_open(8),
            "gaps do not make the set grow without bound"
        );
    }
}
