//! The handling of received frames.

use super::peer::Peer;
use super::{IP_UDP_BYTES, MAX_VIOLATIONS, Node, NodeConfig, NodeEvent, sampling};
use crate::carrier::{AssociationId, Carrier};
use crate::flow::{FlowId, ReceiveFlow};
use crate::frame::{Data, Entry, Frame, FrameError, TrainReport};
use crate::telemetry::Telemetry;
use bytes::Bytes;
use sparelane_core::{Dur, Time};
use std::collections::{BTreeSet, VecDeque};
use thiserror::Error;

/// The close code for a peer whose data takes memory that others need.
pub const CODE_MEMORY: u32 = 8;

/// The close code for a peer that has violated the protocol too often.
pub const CODE_VIOLATION: u32 = 2;

/// A frame as it arrived.
#[derive(Debug)]
pub(super) struct ReceivedFrame {
    /// The class of its channel.
    pub class: u8,
    /// True if the network marked the datagram (ECN).
    pub marked: bool,
    /// The receive time, nanoseconds.
    pub received_ns: u64,
    /// The encoded frame.
    pub bytes: Bytes,
}

/// Something that no honest peer sends.
#[derive(Debug, Error)]
enum Violation {
    #[error(transparent)]
    Frame(FrameError),
    #[error("{0}")]
    Data(String),
    #[error("an acknowledgment {0}")]
    Acknowledgment(String),
    #[error("an acknowledgment of flow {0}, which was never opened")]
    NoFlow(u32),
    #[error("flow {0} is reported as done, but has not arrived completely")]
    NotDone(u32),
}

impl<C: Carrier> Node<C> {
    /// Handles a frame from a peer.
    pub(super) fn handle_frame(&mut self, now: Time, association: AssociationId, received: &ReceivedFrame) {
        let Some(peer) = self.peers.get_mut(&association) else { return };
        self.busy.insert(association);
        let frame = match Frame::decode(&received.bytes) {
            Ok(frame) => frame,
            Err(error) => {
                self.undecoded += 1;
                return self.note_violation(now, association, &Violation::Frame(error));
            }
        };
        let flow = frame.flow();
        // The handler borrows the peer, so the carrier and the count of violations stay outside.
        let mut handler = FrameHandler {
            now,
            association,
            class: received.class,
            peer,
            config: &self.config,
            telemetry: self.telemetry.as_deref_mut(),
            events: &mut self.events,
            readable: &mut self.readable,
            acknowledged: &mut self.acknowledged,
        };
        let result = match frame {
            Frame::Data(data) => match handler.data(data, received) {
                // A dropped segment leaves no trace, like one that the network lost.
                Some(result) => result,
                None => return self.free_memory(now),
            },
            Frame::Acks { edge, entries, .. } => handler.acknowledgments(flow, edge, &entries),
            Frame::Done { .. } => handler.done(flow),
            Frame::Probe { .. } => handler.probe(flow),
            Frame::Reset { .. } => handler.reset(flow),
            Frame::Train { number, last, bytes } => {
                handler.peer.path.handle_train(number, received.class, last, bytes, received.received_ns);
                Ok(())
            }
            Frame::Echo { number, bytes } => {
                let dscp = self.carrier.latest_dscp(association, received.class).unwrap_or(0);
                handler.peer.path.handle_echo(number, bytes, dscp);
                Ok(())
            }
            Frame::TrainReport { number, seen } => {
                handler.train_report(number, seen, self.carrier.overhead_bytes() as u64 + IP_UDP_BYTES)
            }
            Frame::Echoed { number, dscp, .. } => handler.echo_answer(number, dscp),
        };
        // The frame may have caused qlog records of either direction.
        if let Some(telemetry) = self.telemetry.as_deref_mut() {
            sampling::write_log(telemetry, peer, flow);
        }
        if let Err(violation) = result {
            self.note_violation(now, association, &violation);
        }
    }

    /// After a segment was dropped for lack of memory: if memory is short for all, ends the association that holds the
    /// most without any of it being read.
    fn free_memory(&mut self, now: Time) {
        const INTERVAL: Dur = Dur::from_secs(1);
        // Two keys alone leave an eighth of it.
        let is_short = self.budget.bytes() > self.config.memory_bytes / 8 * 3;
        if !is_short || now.saturating_since(self.searched) < INTERVAL {
            return;
        }
        self.searched = now;
        let stale = self.peers.iter().filter(|(_, peer)| peer.held.is_stale(now));
        let Some((&association, peer)) = stale.max_by_key(|(_, peer)| peer.held.bytes()) else { return };
        let reason = format!("{} bytes of this peer were not read, and memory is short", peer.held.bytes());
        self.carrier.close(now, association, CODE_MEMORY, &reason);
    }

    /// Counts a violation, and ends the association after too many. A single one may be an error of the network.
    fn note_violation(&mut self, now: Time, association: AssociationId, violation: &Violation) {
        let Some(peer) = self.peers.get_mut(&association) else { return };
        peer.violations += 1;
        if peer.violations >= MAX_VIOLATIONS {
            let reason = format!("{MAX_VIOLATIONS} frames were wrong; the last: {violation}");
            self.carrier.close(now, association, CODE_VIOLATION, &reason);
        }
    }
}

/// Handles one frame of a peer.
struct FrameHandler<'a> {
    now: Time,
    association: AssociationId,
    class: u8,
    peer: &'a mut Peer,
    config: &'a NodeConfig,
    telemetry: Option<&'a mut Telemetry>,
    events: &'a mut VecDeque<NodeEvent>,
    readable: &'a mut BTreeSet<FlowId>,
    acknowledged: &'a mut BTreeSet<FlowId>,
}

impl FrameHandler<'_> {
    fn id(&self, flow: u32) -> FlowId {
        FlowId { association: self.association, flow }
    }

    /// Handles a segment. Returns `None` if it is dropped for lack of memory, as if the network had lost it.
    fn data(&mut self, data: Data, received: &ReceivedFrame) -> Option<Result<(), Violation>> {
        let flow = data.flow;
        if !self.peer.receiving.contains_key(&flow) {
            self.open(flow)?;
        }
        let id = self.id(flow);
        let peer = &mut *self.peer;
        let receiving = peer.receiving.get_mut(&flow)?;
        if !peer.held.has_room(receiving.cost_bytes(&data), receiving.expects(&data), self.config) {
            return None;
        }
        let held_before = receiving.held_bytes();
        let result = receiving.handle_data(self.now, self.class, data, received.marked, received.received_ns);
        peer.held.add(self.now, receiving.held_bytes() - held_before);
        peer.to_flush.insert(flow);
        if receiving.has_unread() {
            self.readable.insert(id);
        }
        Some(result.map_err(|error| Violation::Data(error.to_string())))
    }

    /// Opens a new flow of the peer. Returns `None` if it has ended already, or there are too many.
    fn open(&mut self, flow: u32) -> Option<()> {
        if !self.peer.ended_flows.may_open(flow) || !self.peer.has_room(self.config) {
            return None;
        }
        self.peer.held.add_flow();
        let mut receiving = ReceiveFlow::new(flow, &self.peer.transport);
        if let Some(telemetry) = &self.telemetry {
            sampling::begin_receiving(telemetry, self.association, flow, &mut receiving);
        }
        self.peer.receiving.insert(flow, receiving);
        self.events.push_back(NodeEvent::Incoming(self.id(flow)));
        Some(())
    }

    fn acknowledgments(&mut self, flow: u32, edge: u32, entries: &[Entry]) -> Result<(), Violation> {
        let id = self.id(flow);
        let peer = &mut *self.peer;
        let Some(sending) = peer.sending.get_mut(&flow) else {
            if flow >= peer.next_flow {
                return Err(Violation::NoFlow(flow));
            }
            // The receiver has missed the confirmation that the flow is done.
            peer.frames_out.push(Frame::Done { flow }.encode());
            return Ok(());
        };
        let result = sending.handle_acks(self.now, self.class, edge, entries);
        self.acknowledged.insert(id);
        if sending.is_done() {
            let telemetry = self.telemetry.as_deref_mut();
            sampling::end_sending(telemetry, self.now, self.association, flow, &mut peer.sending);
            peer.end(flow);
            peer.frames_out.push(Frame::Done { flow }.encode());
            self.events.push_back(NodeEvent::Sent(id));
        }
        result.map_err(|error| Violation::Acknowledgment(error.to_string()))
    }

    /// Handles the sender's confirmation that a flow is acknowledged in full.
    fn done(&mut self, flow: u32) -> Result<(), Violation> {
        match self.peer.receiving.get(&flow) {
            Some(receiving) if receiving.is_read() => self.peer.forget(flow),
            // The flow is removed once it is read.
            Some(receiving) if receiving.has_all() => {
                self.peer.confirmed_done.insert(flow);
            }
            Some(_) => return Err(Violation::NotDone(flow)),
            None => {}
        }
        Ok(())
    }

    fn probe(&mut self, flow: u32) -> Result<(), Violation> {
        if let Some(receiving) = self.peer.receiving.get_mut(&flow) {
            receiving.handle_probe();
            self.peer.to_flush.insert(flow);
        }
        Ok(())
    }

    fn reset(&mut self, flow: u32) -> Result<(), Violation> {
        if self.peer.receiving.contains_key(&flow) {
            self.peer.forget(flow);
            self.events.push_back(NodeEvent::ReceiveFailed(self.id(flow)));
        }
        Ok(())
    }

    /// Handles the peer's report on a train. If it gives the tail's rate, all flows use it from now on.
    fn train_report(&mut self, number: u32, seen: TrainReport, overhead_bytes: u64) -> Result<(), Violation> {
        let tail = &self.config.tail;
        if self.peer.path.handle_train_report(number, seen, overhead_bytes) && tail.measured {
            let rate = self.peer.path.tail_rate().unwrap_or(tail.rate).min(tail.cap);
            self.peer.sending.values_mut().for_each(|flow| flow.set_tail_rate(rate));
        }
        self.events.push_back(NodeEvent::Path(self.association));
        Ok(())
    }

    /// Handles an answer to an echo, which shows if the path keeps the mark of a class.
    fn echo_answer(&mut self, number: u32, dscp: u8) -> Result<(), Violation> {
        if self.peer.path.handle_echoed(self.now, number, dscp) {
            self.peer.allow(self.config.unmarked);
            self.events.push_back(NodeEvent::Path(self.association));
        }
        Ok(())
    }
}
