//! A node: carrier and flows together, still without sockets and clock.
//!
//! Whoever drives it hands datagrams in and takes datagrams out ([`handle_datagram`](Node::handle_datagram),
//! [`poll_transmit`](Node::poll_transmit)), calls [`handle_timer`](Node::handle_timer) at [`next_timer`](Node::next_timer), and takes
//! what has happened from [`poll_event`](Node::poll_event). Applications open, write, finish and read flows.

pub mod choice;
mod config;
mod gaps;
pub mod path;
mod peer;
mod remarks;
mod watched;
mod weights;

pub use choice::ChoiceError;
pub use config::{ControllerChoice, FlowKind, NodeConfig};
pub(crate) use gaps::Gap;
pub use gaps::GapAccuracy;

use crate::carrier::{Arrival, AssociationId, Carrier, CarrierError, CarrierEvent, CloseReason, Datagram};
use crate::flow::{MAX_CLASSES, ReceiveFlow, SendFlow};
use crate::frame::{Frame, FrameError};
use crate::identity::Fingerprint;
use crate::telemetry::{Telemetry, Totals};
use bytes::Bytes;
use config::FlowFacts;
use gaps::Gaps;
use path::{PathState, Unmarked};
use peer::Peer;
use sparelane_cc::BuildError;
use sparelane_core::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use thiserror::Error;

/// A peer whose frames were wrong so often is cut off.
const MOST_VIOLATIONS: u32 = 100;

/// Headers of IPv4 and UDP.
const IP_UDP_BYTES: u64 = 28;

/// What a peer is told that is cut off.
pub const CODE_VIOLATION: u32 = 2;

/// So many frames of a class are handed to the carrier together.
const FRAMES_AT_ONCE: usize = 64;

/// The most bytes of control that wait for the peer.
pub const MAX_CONTROL_BYTES: usize = 4 << 20;

/// A flow of one association. Flows that are sent and those that are received have numbers of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    /// The association.
    pub association: AssociationId,
    /// The number, from 0.
    pub flow: u32,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// An association is open.
    Opened {
        /// The association.
        association: AssociationId,
        /// The peer's key.
        peer: Fingerprint,
        /// Its address.
        address: SocketAddr,
    },
    /// The peer sends a new flow.
    Incoming(FlowId),
    /// A flow of the peer has more to read.
    Readable(FlowId),
    /// More of a flow that this node sends is acknowledged.
    Acknowledged(FlowId),
    /// All of a finished flow that this node sends is acknowledged; it is over.
    Sent(FlowId),
    /// A flow that this node sends ends without what is not acknowledged.
    SendFailed(FlowId),
    /// A flow of the peer ends without what is missing.
    ReceiveFailed(FlowId),
    /// There may be more to read from the control stream.
    Control(AssociationId),
    /// More is known of the path: see [`Node::path`].
    Path(AssociationId),
    /// An association is over, with all of its flows.
    Closed {
        /// The association.
        association: AssociationId,
        /// Why.
        reason: CloseReason,
    },
}

/// What a node is asked that it cannot do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NodeError {
    /// There is no such association, or it is not open.
    #[error("the association is not open")]
    NotOpen,
    /// The limit of flows is reached.
    #[error("there are {0} flows already, which is the limit")]
    TooManyFlows(usize),
    /// The controller cannot be made.
    #[error(transparent)]
    Controller(#[from] BuildError),
    /// The carrier refuses.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    /// More control than the peer takes.
    #[error("more than {MAX_CONTROL_BYTES} bytes of control wait for the peer")]
    ControlFull,
}

/// A node.
#[derive(Debug)]
pub struct Node<C> {
    carrier: C,
    config: NodeConfig,
    peers: BTreeMap<AssociationId, Peer>,
    /// Associations by when their flows want time.
    timers: BTreeSet<(Time, AssociationId)>,
    /// Associations that may have something to send.
    busy: BTreeSet<AssociationId>,
    readable: BTreeSet<FlowId>,
    acknowledged: BTreeSet<FlowId>,
    events: VecDeque<NodeEvent>,
    /// Associations that this node has begun and that are not open.
    begun: BTreeSet<AssociationId>,
    /// The lowest class that a tail uses, if flows have one.
    tail_class: Option<u8>,
    /// Frames that were none.
    undecoded: u64,
    /// Sums over associations that are over.
    closed: Totals,
    /// How exact the gaps are that controllers set.
    gaps: Gaps,
    /// For whoever wants to know more.
    telemetry: Option<Box<Telemetry>>,
}

impl<C: Carrier> Node<C> {
    /// A node on this carrier.
    ///
    /// # Errors
    /// The controller cannot be made.
    pub fn new(carrier: C, config: NodeConfig) -> Result<Node<C>, NodeError> {
        // A mistake in the controller's settings shows now, and not with the first flow.
        let controller = config.controller.build(&config.registry, 1400, &FlowFacts::default(), config.line_rate)?;
        let tail_class = (config.classes > 1 && controller.uses_tail()).then_some(config.classes - 1);
        Ok(Node {
            carrier,
            config,
            peers: BTreeMap::new(),
            timers: BTreeSet::new(),
            busy: BTreeSet::new(),
            readable: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            events: VecDeque::new(),
            begun: BTreeSet::new(),
            tail_class,
            undecoded: 0,
            closed: Totals::default(),
            gaps: Gaps::default(),
            telemetry: None,
        })
    }

    /// The carrier.
    pub fn carrier(&self) -> &C {
        &self.carrier
    }

    /// The carrier, to be set.
    pub fn carrier_mut(&mut self) -> &mut C {
        &mut self.carrier
    }

    /// What is set.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Frames of all peers that were none.
    pub fn undecoded(&self) -> u64 {
        self.undecoded
    }

    /// Begins an association.
    ///
    /// # Errors
    /// The carrier refuses.
    pub fn connect(&mut self, now: Time, to: SocketAddr) -> Result<AssociationId, NodeError> {
        let association = self.carrier.connect(now, to)?;
        self.begun.insert(association);
        Ok(association)
    }

    /// Ends an association, with a reason for the peer.
    pub fn close(&mut self, now: Time, association: AssociationId, code: u32, reason: &str) {
        self.carrier.close(now, association, code, reason);
        self.take_events(now);
    }

    /// Opens a flow to the peer, of which so much is known, for controllers that go by that.
    ///
    /// # Errors
    /// The association is not open, or has too many flows.
    pub fn open_flow(
        &mut self,
        now: Time,
        association: AssociationId,
        kind: impl Into<FlowKind>,
    ) -> Result<FlowId, NodeError> {
        let (config, kind) = (&self.config, kind.into());
        let peer = self.peers.get_mut(&association).ok_or(NodeError::NotOpen)?;
        if peer.sending.len() >= config.max_flows {
            return Err(NodeError::TooManyFlows(config.max_flows));
        }
        let flow = peer.next_flow;
        peer.path.forget_train();
        peer.transport.mss_bytes = config.mss_bytes(peer.path.frame_bytes());
        let mut tail = config.tail;
        tail.begins_low |= config.unmarked == Unmarked::Scavenger && peer.path.is_unmarked();
        tail.rate = peer.path.tail_rate().filter(|_| tail.measured).unwrap_or(tail.rate).min(tail.cap);
        let round_trip = self.carrier.round_trip(association);
        let ports = [kind.port, Some(peer.address.port()), config.port].into_iter().flatten().collect();
        let facts = FlowFacts { bytes: kind.bytes, ports, round_trip };
        let cc = config.controller.build(&config.registry, peer.transport.mss_bytes, &facts, config.line_rate)?;
        let seed = config.seed ^ association.0 << 32;
        let mut sending = SendFlow::new(flow, peer.transport, cc, tail, now, round_trip, seed);
        sending.set_chunk_time(config.chunk_time);
        if let Some(telemetry) = &self.telemetry {
            watched::begin_sending(telemetry, association, flow, &mut sending);
        }
        peer.sending.insert(flow, sending);
        peer.next_flow += 1;
        Ok(FlowId { association, flow })
    }

    /// Writes to a flow; whoever writes much keeps an eye on [`SendFlow::buffered_bytes`]. Nothing happens where the flow is over.
    pub fn write(&mut self, id: FlowId, bytes: Bytes) {
        if let Some(flow) = self.sending_mut(id) {
            flow.write(bytes);
            self.busy.insert(id.association);
        }
    }

    /// Ends a flow with what is written.
    pub fn finish(&mut self, id: FlowId) {
        if let Some(flow) = self.sending_mut(id) {
            flow.finish();
            self.busy.insert(id.association);
        }
    }

    /// Ends a flow at once.
    pub fn reset(&mut self, id: FlowId) {
        if let Some(flow) = self.sending_mut(id) {
            flow.reset();
            self.busy.insert(id.association);
        }
    }

    /// The next bytes of a flow of the peer, if they are here.
    pub fn read(&mut self, id: FlowId) -> Option<Bytes> {
        let peer = self.peers.get_mut(&id.association)?;
        let flow = peer.receiving.get_mut(&id.flow)?;
        let bytes = flow.read();
        peer.held_bytes -= bytes.as_ref().map_or(0, Bytes::len) as u64;
        if flow.is_read() && peer.told_done.contains(&id.flow) {
            peer.forget(id.flow);
        } else if bytes.is_some() {
            peer.to_flush.insert(id.flow);
            self.busy.insert(id.association);
        }
        bytes
    }

    /// Gives up a flow of the peer: what is held of it goes, and what still comes of it is thrown away.
    pub fn abandon(&mut self, id: FlowId) {
        if let Some(peer) = self.peers.get_mut(&id.association)
            && (peer.receiving.contains_key(&id.flow) || peer.gone.may_open(id.flow))
        {
            peer.forget(id.flow);
            self.readable.remove(&id);
        }
    }

    /// Whether a flow of the peer has come and been read to its end, or is over.
    pub fn is_read(&self, id: FlowId) -> bool {
        self.receiving(id).is_none_or(ReceiveFlow::is_read)
    }

    /// A flow that this node sends, while it is not over.
    pub fn sending(&self, id: FlowId) -> Option<&SendFlow> {
        self.peers.get(&id.association)?.sending.get(&id.flow)
    }

    fn sending_mut(&mut self, id: FlowId) -> Option<&mut SendFlow> {
        self.peers.get_mut(&id.association)?.sending.get_mut(&id.flow)
    }

    /// A flow of the peer, while it is not over.
    pub fn receiving(&self, id: FlowId) -> Option<&ReceiveFlow> {
        self.peers.get(&id.association)?.receiving.get(&id.flow)
    }

    /// Segments sent to a peer, by class.
    pub fn sent_segments(&self, association: AssociationId) -> [u64; MAX_CLASSES] {
        self.peers.get(&association).map_or([0; MAX_CLASSES], |peer| peer.totals().sent)
    }

    /// The peer's key.
    pub fn peer(&self, association: AssociationId) -> Option<Fingerprint> {
        self.peers.get(&association).map(|peer| peer.fingerprint)
    }

    /// What is known of the path to a peer.
    pub fn path(&self, association: AssociationId) -> Option<&PathState> {
        self.peers.get(&association).map(|peer| &peer.path)
    }

    /// What is known of the path to a peer, to take answers from.
    pub fn path_mut(&mut self, association: AssociationId) -> Option<&mut PathState> {
        self.peers.get_mut(&association).map(|peer| &mut peer.path)
    }

    /// Asks whether a frame of so many bytes arrives in a class; returns the number of the question. The answer comes with
    /// [`NodeEvent::Path`].
    ///
    /// # Errors
    /// The association is not open.
    pub fn echo(
        &mut self,
        now: Time,
        association: AssociationId,
        class: u8,
        frame_bytes: usize,
    ) -> Result<u32, NodeError> {
        let peer = self.peers.get_mut(&association).ok_or(NodeError::NotOpen)?;
        self.busy.insert(association);
        Ok(peer.path.echo(now, class, frame_bytes.min(peer.max_frame_bytes)))
    }

    /// Sends so many full frames at once in a class, of a new train or of one that is under way; returns its number. How it arrives
    /// comes with [`NodeEvent::Path`].
    ///
    /// # Errors
    /// The association is not open.
    pub fn send_train(
        &mut self,
        association: AssociationId,
        train: Option<u32>,
        class: u8,
        frames: u32,
        ends: bool,
    ) -> Result<u32, NodeError> {
        let peer = self.peers.get_mut(&association).ok_or(NodeError::NotOpen)?;
        self.busy.insert(association);
        Ok(peer.path.send_train(train, class, frames, peer.max_frame_bytes, ends))
    }

    /// Writes to the control stream.
    ///
    /// # Errors
    /// The association is not open, or too much waits.
    pub fn write_control(&mut self, association: AssociationId, bytes: Bytes) -> Result<(), NodeError> {
        let peer = self.peers.get_mut(&association).ok_or(NodeError::NotOpen)?;
        let waiting: usize = peer.control_out.iter().map(Bytes::len).sum();
        if waiting + bytes.len() > MAX_CONTROL_BYTES {
            return Err(NodeError::ControlFull);
        }
        peer.control_out.push_back(bytes);
        self.busy.insert(association);
        Ok(())
    }

    /// The next bytes of the control stream, if they are here.
    pub fn read_control(&mut self, association: AssociationId) -> Option<Bytes> {
        self.carrier.read_control(association)
    }

    /// A UDP datagram came in.
    pub fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        self.carrier.handle_datagram(now, arrival, bytes);
        self.take_events(now);
    }

    /// Time has passed.
    pub fn handle_timer(&mut self, now: Time) {
        self.carrier.handle_timer(now);
        self.take_events(now);
        if self.telemetry.as_ref().is_some_and(|telemetry| telemetry.next_sample() <= now) {
            self.sample(now);
        }
        while let Some(&(at, association)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, association));
            if let Some(peer) = self.peers.get_mut(&association) {
                peer.timer = Time::NEVER;
                self.busy.insert(association);
            }
        }
    }

    /// When [`handle_timer`](Self::handle_timer) wants to be called.
    pub fn next_timer(&self) -> Time {
        let next = self.timers.first().map_or(Time::NEVER, |(at, _)| *at).min(self.carrier.next_timer());
        self.telemetry.as_ref().map_or(next, |telemetry| telemetry.next_sample().min(next))
    }

    /// What has happened, oldest first.
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if let Some(flow) = self.readable.pop_first() {
            return Some(NodeEvent::Readable(flow));
        }
        self.acknowledged.pop_first().map(NodeEvent::Acknowledged)
    }

    /// Whether [`poll_event`](Self::poll_event) has something to give.
    pub fn has_events(&self) -> bool {
        !(self.events.is_empty() && self.readable.is_empty() && self.acknowledged.is_empty())
    }

    /// The next datagrams to send.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        loop {
            if let Some(datagram) = self.carrier.poll_transmit(now) {
                return Some(datagram);
            }
            self.take_events(now);
            let association = self.busy.pop_first()?;
            self.advance(now, association);
        }
    }

    /// Sends what the flows of one association have to send.
    fn advance(&mut self, now: Time, association: AssociationId) {
        let Some(peer) = self.peers.get_mut(&association) else { return };
        if std::mem::take(&mut peer.wants_train)
            && peer.sending.is_empty()
            && let Some(class) = self.tail_class.filter(|_| self.config.tail.measured)
        {
            peer.path.measure_tail(class);
        }
        while let Some(first) = peer.control_out.front_mut() {
            let taken = self.carrier.write_control(association, first);
            if taken < first.len() {
                let _ = first.split_to(taken);
                break;
            }
            peer.control_out.pop_front();
        }
        let mut frames: [Vec<Vec<u8>>; MAX_CLASSES] = Default::default();
        frames[0].append(&mut peer.to_say);
        let round_trip = self.carrier.round_trip(association);
        let is_quiet = peer.sending.is_empty();
        for (class, frame) in peer.path.poll(now, round_trip, self.carrier.overhead_bytes(), is_quiet) {
            // Each by itself: a batch would cross some queues as one.
            self.carrier.send(now, association, class, &mut std::iter::once(frame));
        }
        let carrier = &mut self.carrier;
        let mut emit = |class: u8, frame: Vec<u8>| {
            let frames = &mut frames[usize::from(class)];
            frames.push(frame);
            // A batch leaves while it is in the processor's cache.
            if frames.len() >= FRAMES_AT_ONCE {
                carrier.send(now, association, class, &mut frames.drain(..));
            }
        };
        while let Some(flow) = peer.to_flush.pop_first() {
            if let Some(flow) = peer.receiving.get_mut(&flow) {
                flow.flush(peer.max_frame_bytes, &mut emit);
            }
        }
        let (mut has_more, mut failed) = (false, vec![]);
        for (&id, flow) in &mut peer.sending {
            has_more |= flow.advance(now, &peer.classes, &mut emit);
            let flow_id = FlowId { association, flow: id };
            flow.take_departures().for_each(|(due, bytes)| self.gaps.expect(flow_id, due, bytes));
            if flow.failure().is_some() {
                failed.push(id);
            }
        }
        for flow in failed {
            watched::end_sending(self.telemetry.as_deref_mut(), now, association, flow, &mut peer.sending);
            peer.end(flow);
            self.events.push_back(NodeEvent::SendFailed(FlowId { association, flow }));
        }
        if let Some(telemetry) = self.telemetry.as_deref_mut() {
            peer.sending.values_mut().for_each(|flow| telemetry.write_log(|text| flow.take_log(text)));
        }
        if has_more {
            self.busy.insert(association);
        }
        let next = peer.next_timer();
        if next != peer.timer {
            self.timers.remove(&(peer.timer, association));
            peer.timer = next;
            if next != Time::NEVER {
                self.timers.insert((next, association));
            }
        }
        for (class, frames) in frames.into_iter().enumerate().filter(|(_, frames)| !frames.is_empty()) {
            self.carrier.send(now, association, class as u8, &mut frames.into_iter());
        }
    }

    /// The host has handed a datagram to the kernel, now: for the accuracy of gaps.
    pub fn note_left(&mut self, now: Time, class: u8, datagram_bytes: usize) {
        if class == 0
            && let Some((id, due)) = self.gaps.leave(datagram_bytes)
            && let Some(gap) = self.sending_mut(id).and_then(|flow| flow.note_left(now, due))
        {
            self.gaps.note(gap);
        }
    }

    /// How exact the gaps were so far that controllers set between segments, where one does (RAPID).
    pub fn gap_accuracy(&self) -> Option<GapAccuracy> {
        self.gaps.accuracy()
    }

    fn take_events(&mut self, now: Time) {
        while let Some(event) = self.carrier.poll_event() {
            match event {
                CarrierEvent::Opened { association, peer, address } => {
                    let bytes = self.carrier.max_frame_bytes(association).unwrap_or(1000);
                    let transport = self.config.transport(bytes);
                    let is_ours = self.begun.remove(&association);
                    let (classes, dscp) = (self.config.classes, &self.config.dscp);
                    let peer_state = Peer::new(peer, address, transport, bytes, classes, dscp, is_ours);
                    self.peers.insert(association, peer_state);
                    self.events.push_back(NodeEvent::Opened { association, peer, address });
                }
                CarrierEvent::Class { association, class, open } => {
                    let came_back = self.carrier.latest_dscp(association, class);
                    if let Some(peer) = self.peers.get_mut(&association) {
                        peer.path.set_open(now, class, open, came_back);
                        peer.open[usize::from(class)] = open;
                        peer.allow(self.config.unmarked);
                        if open && peer.is_ours && Some(class) == self.tail_class {
                            peer.wants_train = true;
                        }
                        self.busy.insert(association);
                    }
                }
                CarrierEvent::Frame { association, class, marked, received_ns, bytes } => {
                    self.handle_frame(now, association, class, marked, received_ns, &bytes);
                }
                CarrierEvent::Control { association } => {
                    self.busy.insert(association);
                    self.events.push_back(NodeEvent::Control(association));
                }
                CarrierEvent::Closed { association, reason } => {
                    self.begun.remove(&association);
                    self.sample_closing(now, association);
                    if let Some(peer) = self.peers.remove(&association) {
                        self.closed.add(&peer.totals());
                        self.timers.remove(&(peer.timer, association));
                    }
                    self.busy.remove(&association);
                    self.events.push_back(NodeEvent::Closed { association, reason });
                }
            }
        }
    }

    fn handle_frame(
        &mut self,
        now: Time,
        association: AssociationId,
        class: u8,
        marked: bool,
        received_ns: u64,
        bytes: &Bytes,
    ) {
        let Some(peer) = self.peers.get_mut(&association) else { return };
        self.busy.insert(association);
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(error) => {
                self.undecoded += 1;
                return self.note_violation(now, association, &Violation::Frame(error));
            }
        };
        let flow = frame.flow();
        let id = FlowId { association, flow };
        let mut violation = None;
        match frame {
            Frame::Data(data) => {
                if !peer.receiving.contains_key(&flow) {
                    if !peer.gone.may_open(flow) || !peer.has_room(self.config.max_flows) {
                        return;
                    }
                    let mut receiving = ReceiveFlow::new(flow, &peer.transport);
                    if let Some(telemetry) = &self.telemetry {
                        watched::begin_receiving(telemetry, association, flow, &mut receiving);
                    }
                    peer.receiving.insert(flow, receiving);
                    self.events.push_back(NodeEvent::Incoming(id));
                }
                let Some(receiving) = peer.receiving.get_mut(&flow) else { return };
                let limit = self.config.held_bytes * if receiving.expects(&data) { 2 } else { 1 };
                if peer.held_bytes + data.payload.len() as u64 > limit {
                    // As if the network had lost it.
                    return;
                }
                let held_before = receiving.held_bytes();
                if let Err(error) = receiving.handle_data(now, class, data, marked, received_ns) {
                    violation = Some(Violation::Data(error.to_string()));
                }
                peer.held_bytes += receiving.held_bytes() - held_before;
                peer.to_flush.insert(flow);
                if receiving.has_unread() {
                    self.readable.insert(id);
                }
            }
            Frame::Acks { edge, entries, .. } => match peer.sending.get_mut(&flow) {
                Some(sending) => {
                    if let Err(error) = sending.handle_acks(now, class, edge, &entries) {
                        violation = Some(Violation::Acknowledgment(error.to_string()));
                    }
                    self.acknowledged.insert(id);
                    if sending.is_done() {
                        watched::end_sending(self.telemetry.as_deref_mut(), now, association, flow, &mut peer.sending);
                        peer.end(flow);
                        peer.to_say.push(Frame::Done { flow }.encode());
                        self.events.push_back(NodeEvent::Sent(id));
                    }
                }
                // The receiver has not heard that the flow is over.
                None if flow < peer.next_flow => peer.to_say.push(Frame::Done { flow }.encode()),
                None => violation = Some(Violation::NoFlow(flow)),
            },
            Frame::Done { .. } => match peer.receiving.get(&flow) {
                Some(receiving) if receiving.is_read() => peer.forget(flow),
                Some(receiving) if receiving.has_all() => {
                    peer.told_done.insert(flow);
                }
                Some(_) => violation = Some(Violation::NotDone(flow)),
                None => {}
            },
            Frame::Probe { .. } => {
                if let Some(receiving) = peer.receiving.get_mut(&flow) {
                    receiving.handle_probe();
                    peer.to_flush.insert(flow);
                }
            }
            Frame::Train { number, last, bytes } => peer.path.handle_train(number, class, last, bytes, received_ns),
            Frame::Echo { number, bytes } => {
                let dscp = self.carrier.latest_dscp(association, class).unwrap_or(0);
                peer.path.handle_echo(number, bytes, dscp);
            }
            Frame::TrainSeen { number, seen } => {
                let overhead = self.carrier.overhead_bytes() as u64 + IP_UDP_BYTES;
                if peer.path.handle_train_seen(number, seen, overhead) && self.config.tail.measured {
                    let rate = peer.path.tail_rate().unwrap_or(self.config.tail.rate).min(self.config.tail.cap);
                    peer.sending.values_mut().for_each(|flow| flow.set_tail_rate(rate));
                }
                self.events.push_back(NodeEvent::Path(association));
            }
            Frame::Echoed { number, dscp, .. } => {
                if peer.path.handle_echoed(now, number, dscp) {
                    peer.allow(self.config.unmarked);
                    self.events.push_back(NodeEvent::Path(association));
                }
            }
            Frame::Reset { .. } => {
                if peer.receiving.contains_key(&flow) {
                    peer.forget(flow);
                    self.events.push_back(NodeEvent::ReceiveFailed(id));
                }
            }
        }
        if let Some(telemetry) = self.telemetry.as_deref_mut() {
            watched::write_log(telemetry, peer, flow);
        }
        if let Some(violation) = violation {
            self.note_violation(now, association, &violation);
        }
    }

    /// The peer did what no honest peer does. Once may be a mistake of the network's; many times is not.
    fn note_violation(&mut self, now: Time, association: AssociationId, violation: &Violation) {
        let Some(peer) = self.peers.get_mut(&association) else { return };
        peer.violations += 1;
        if peer.violations >= MOST_VIOLATIONS {
            let reason = format!("{MOST_VIOLATIONS} frames were wrong; the last: {violation}");
            self.carrier.close(now, association, CODE_VIOLATION, &reason);
        }
    }
}

/// What no honest peer does.
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
    #[error("flow {0} is done, and not all of it is here")]
    NotDone(u32),
}
