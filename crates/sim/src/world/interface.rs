//! Senders that wait for their interface: to be idle, or to have room in its queue.
//!
//! With `RunConfig::nic_full` other than `Drop`, a sender is not polled while the queue of its interface has no room
//! for a full packet, or while other senders wait before it. They send in turn, in the order in which they began to
//! wait. A sender without room may get a congestion signal. Acknowledgments do not wait: what does not fit is dropped.

use super::World;
use crate::config::FullInterface;
use crate::engine::fabric::Fabric;
use crate::hosts::pull::{Puller, Pullers};
use sparelane_transport::Transmit;
use std::collections::{BTreeMap, VecDeque};

/// The flows that wait for their interface.
pub(super) struct Waiting {
    /// Flows that wait for an idle interface.
    pub(super) pullers: Pullers,
    /// Flows that wait for room, if senders do so in this run.
    pub(super) queueing: Option<Box<Queueing>>,
}

/// The flows that wait for room, by uplink.
#[derive(Clone, Debug)]
pub(super) struct Queueing {
    uplinks: BTreeMap<u32, VecDeque<Puller>>,
    /// The flow whose turn it is.
    turn: Option<u32>,
    /// True if waiting senders get a congestion signal.
    cuts: bool,
}

impl Queueing {
    pub(super) fn of(full: FullInterface) -> Option<Box<Queueing>> {
        let cuts = match full {
            FullInterface::Drop => return None,
            FullInterface::Wait => false,
            FullInterface::Cut => true,
        };
        Some(Box::new(Queueing { uplinks: BTreeMap::new(), turn: None, cuts }))
    }
}

impl<F: Fabric> World<F> {
    /// Polls a flow that depends on its interface. Returns nothing if it has to wait for room. A sender with a tail
    /// learns whether the interface is idle.
    #[inline(always)]
    pub(super) fn poll_if_interface_allows(&mut self, slot: u32) -> Option<Transmit> {
        let flow = &self.flows[slot as usize];
        let uplink = self.fabric.first_link(flow.wire.forward);
        if self.waiting.queueing.is_some() && !self.may_send(slot, uplink) {
            return None;
        }
        let flow = &mut self.flows[slot as usize];
        let idle = flow.at_interface.uses_tail && self.fabric.is_idle(self.now, uplink);
        flow.sender.poll_transmit(self.now, idle)
    }

    fn may_send(&mut self, slot: u32, uplink: u32) -> bool {
        let bytes = self.layout.links[uplink as usize].largest_bytes;
        let has_room = self.fabric.has_room(self.now, uplink, bytes);
        let Some(queueing) = &mut self.waiting.queueing else { return true };
        let others = queueing.uplinks.entry(uplink).or_default();
        if has_room && (others.is_empty() || queueing.turn == Some(slot)) {
            return true;
        }
        let flow = &mut self.flows[slot as usize];
        if !flow.at_interface.queueing {
            flow.at_interface.queueing = true;
            others.push_back(Puller { slot, flow: flow.id });
        }
        if !has_room {
            self.fabric.wake_when_room(self.now, uplink, bytes);
            if queueing.cuts {
                flow.sender.handle_full_interface(self.now);
            }
        }
        false
    }

    /// Lets waiting flows send, in turn, when the interface before `uplink` may have room.
    pub(super) fn send_in_turn(&mut self, uplink: u32) {
        let bytes = self.layout.links[uplink as usize].largest_bytes;
        while self.fabric.has_room(self.now, uplink, bytes) {
            let Some(queueing) = &mut self.waiting.queueing else { return };
            let Some(next) = queueing.uplinks.get_mut(&uplink).and_then(VecDeque::pop_front) else { return };
            let flow = &mut self.flows[next.slot as usize];
            if !flow.open || flow.id != next.flow {
                continue;
            }
            flow.at_interface.queueing = false;
            queueing.turn = Some(next.slot);
            self.send_allowed(next.slot);
            if let Some(queueing) = &mut self.waiting.queueing {
                queueing.turn = None;
            }
        }
        let waits = |queueing: &Queueing| queueing.uplinks.get(&uplink).is_some_and(|waiting| !waiting.is_empty());
        if self.waiting.queueing.as_deref().is_some_and(waits) {
            self.fabric.wake_when_room(self.now, uplink, bytes);
        }
    }
    /// Registers a flow with an unsent tail to wait for its interface.
    pub(super) fn await_idle(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.at_interface.pulling {
            return;
        }
        let Some(class) = flow.tail_class() else { return };
        flow.at_interface.pulling = true;
        let uplink = self.fabric.first_link(flow.wire.forward);
        if self.waiting.pullers.wait(uplink, class, Puller { slot, flow: flow.id }) {
            self.fabric.wake_when_idle(self.now, uplink);
        }
    }

    /// Lets waiting flows send, one segment at a time, when the interface before `uplink` may be idle.
    pub(super) fn pull(&mut self, uplink: u32) {
        while self.fabric.is_idle(self.now, uplink) {
            let Some((waited_in, puller)) = self.waiting.pullers.next(uplink) else { return };
            let flow = &mut self.flows[puller.slot as usize];
            if !flow.open || flow.id != puller.flow {
                continue;
            }
            flow.at_interface.pulling = false;
            if flow.tail_class() == Some(waited_in) {
                self.send_pulled(puller.slot);
            }
            self.await_idle(puller.slot);
        }
        if self.waiting.pullers.is_waiting(uplink) {
            self.fabric.wake_when_idle(self.now, uplink);
        }
    }

    /// Sends one segment, or one chunk.
    fn send_pulled(&mut self, slot: u32) {
        while let Some(transmit) = self.flows[slot as usize].sender.poll_transmit(self.now, true) {
            self.transmit(slot, transmit);
            if !self.flows[slot as usize].sender.is_inside_chunk() {
                break;
            }
        }
        self.watch_sender(slot);
    }
}
