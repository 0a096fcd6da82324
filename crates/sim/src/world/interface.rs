//! Senders and their interface: who waits for it to be idle, and who for room in its queue.
//!
//! Where senders wait for room (`RunConfig::nic_full`), none is asked for a packet while the queue of its interface has no
//! room for a full one, or others are before it. They take turns, in the order in which they began to wait.
//! Who finds no room may be told of it as of congestion. Acknowledgments do not wait: what does not fit is dropped.

use super::World;
use crate::config::FullInterface;
use crate::engine::fabric::Fabric;
use crate::hosts::pull::{Puller, Pullers};
use sparelane_transport::Transmit;
use std::collections::{BTreeMap, VecDeque};

/// The flows that wait for their interface.
pub(super) struct Waiting {
    /// For it to be idle.
    pub(super) pullers: Pullers,
    /// For room in its queue, where senders wait for that.
    pub(super) queueing: Option<Box<Queueing>>,
}

/// The flows that wait for room, by uplink.
#[derive(Clone, Debug)]
pub(super) struct Queueing {
    uplinks: BTreeMap<u32, VecDeque<Puller>>,
    /// The flow whose turn it is.
    turn: Option<u32>,
    /// Whether they are told of congestion.
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
    /// What a flow that minds its interface sends next: nothing where it has to wait for room. Those that send from the tail
    /// are told whether the interface is idle.
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

    /// The interface before `uplink` may have room: those who wait send, in turn.
    pub(super) fn take_turns(&mut self, uplink: u32) {
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
    /// A flow with a tail left to send waits for its interface.
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

    /// The interface before `uplink` may be idle: those who wait send, one segment at a time.
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

    /// One segment goes, or one chunk.
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
