//! One peer of a node: the flows to and from it.

use super::path::{PathState, Unmarked};
use crate::flow::{Classes, MAX_CLASSES, ReceiveFlow, SendFlow};
use crate::identity::Fingerprint;
use crate::telemetry::Totals;
use bytes::Bytes;
use sparelane_core::Time;
use sparelane_transport::TransportConfig;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// The furthest that the number of a new flow may lie beyond those that came before.
const MOST_AHEAD: u32 = 10_000;

/// The most ended flows beyond the first that has not ended which are remembered one by one.
const MOST_GONE: usize = 4096;

/// A peer with its flows.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) fingerprint: Fingerprint,
    /// Where it was when the association opened.
    pub(super) address: SocketAddr,
    pub(super) transport: TransportConfig,
    pub(super) max_frame_bytes: usize,
    pub(super) classes: Classes,
    pub(super) path: PathState,
    /// This node has begun the association.
    pub(super) is_ours: bool,
    /// The tail's rate is to be measured.
    pub(super) wants_train: bool,
    /// Classes whose connections are there.
    pub(super) open: [bool; MAX_CLASSES],
    pub(super) sending: BTreeMap<u32, SendFlow>,
    pub(super) receiving: BTreeMap<u32, ReceiveFlow>,
    /// What is held of these.
    pub(super) held_bytes: u64,
    pub(super) next_flow: u32,
    /// Flows of the peer whose sender knows that all has arrived, and which are not read yet.
    pub(super) told_done: BTreeSet<u32>,
    pub(super) gone: Gone,
    /// Received flows with acknowledgments to send.
    pub(super) to_flush: BTreeSet<u32>,
    /// Frames besides, in class 0.
    pub(super) to_say: Vec<Vec<u8>>,
    pub(super) control_out: VecDeque<Bytes>,
    /// When the flows want time.
    pub(super) timer: Time,
    pub(super) violations: u32,
    /// Sums over flows that are over.
    pub(super) ended: Totals,
}

impl Peer {
    pub(super) fn new(
        fingerprint: Fingerprint,
        address: SocketAddr,
        transport: TransportConfig,
        max_frame_bytes: usize,
        classes: u8,
        dscp: &[u8],
        is_ours: bool,
    ) -> Peer {
        Peer {
            fingerprint,
            address,
            transport,
            max_frame_bytes,
            classes: Classes::new(classes),
            path: PathState::new(dscp, max_frame_bytes),
            is_ours,
            wants_train: false,
            open: [false; MAX_CLASSES],
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            held_bytes: 0,
            next_flow: 0,
            told_done: BTreeSet::new(),
            gone: Gone::default(),
            to_flush: BTreeSet::new(),
            to_say: Vec::new(),
            control_out: VecDeque::new(),
            timer: Time::NEVER,
            violations: 0,
            ended: Totals::default(),
        }
    }

    /// Flows use the classes that are there and whose marks the path keeps.
    pub(super) fn allow(&mut self, unmarked: Unmarked) {
        for class in 0..MAX_CLASSES as u8 {
            let open = self.open[usize::from(class)] && self.path.allows(class, unmarked);
            self.classes.set_open(class, open);
        }
    }

    /// When the flows want time next.
    pub(super) fn next_timer(&self) -> Time {
        let flows = self.sending.values().map(|flow| flow.next_timer(&self.classes)).min();
        flows.unwrap_or(Time::NEVER).min(self.path.next_timer())
    }

    /// A flow to the peer is over.
    pub(super) fn end(&mut self, flow: u32) {
        if let Some(flow) = self.sending.remove(&flow) {
            self.ended.add_sending(&flow);
        }
    }

    /// Sums over all flows, those that are over among them.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.ended;
        self.sending.values().for_each(|flow| totals.add_sending(flow));
        self.receiving.values().for_each(|flow| totals.add_receiving(flow));
        totals
    }

    /// Whether there is room for one more flow of the peer where `most` are allowed. Where there is not, the oldest goes that is
    /// read to its end: its sender was told of that, and the frame that says that it knows was lost.
    pub(super) fn has_room(&mut self, most: usize) -> bool {
        if self.receiving.len() < most {
            return true;
        }
        let read = self.receiving.iter().find(|(_, flow)| flow.is_read()).map(|(&id, _)| id);
        read.map(|flow| self.forget(flow)).is_some()
    }

    /// A flow of the peer has ended and is read.
    pub(super) fn forget(&mut self, flow: u32) {
        if let Some(flow) = self.receiving.remove(&flow) {
            self.held_bytes -= flow.held_bytes();
            self.ended.add_receiving(&flow);
        }
        self.told_done.remove(&flow);
        self.to_flush.remove(&flow);
        self.gone.insert(flow);
    }
}

/// The flows of a peer that have ended. Numbers rise, so that all but a few are below a floor.
#[derive(Debug, Default)]
pub(super) struct Gone {
    floor: u32,
    above: BTreeSet<u32>,
}

impl Gone {
    fn insert(&mut self, flow: u32) {
        self.above.insert(flow);
        while self.above.remove(&self.floor) {
            self.floor += 1;
        }
        if self.above.len() > MOST_GONE {
            // Whatever did not come until now is given up.
            self.floor = self.above.pop_first().map_or(self.floor, |first| first + 1);
        }
    }

    /// Whether `flow` can be a new one.
    pub(super) fn may_open(&self, flow: u32) -> bool {
        flow >= self.floor && flow - self.floor < MOST_AHEAD && !self.above.contains(&flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_flows_do_not_open_again_and_take_bounded_memory() {
        let mut gone = Gone::default();
        for flow in [2, 0, 1, 5] {
            assert!(gone.may_open(flow));
            gone.insert(flow);
            assert!(!gone.may_open(flow));
        }
        assert_eq!((gone.floor, gone.above.len()), (3, 1));
        assert!(gone.may_open(3) && !gone.may_open(3 + MOST_AHEAD));
        for flow in (7..60_000).step_by(2) {
            gone.insert(flow);
        }
        assert!(gone.above.len() <= MOST_GONE && !gone.may_open(8), "odd ones alone do not grow without end");
    }
}
