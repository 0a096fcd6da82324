//! A node: the flows of all associations on top of a carrier, without socket or clock.
//!
//! The driver passes received datagrams to [`handle_datagram`](Node::handle_datagram), sends those of
//! [`poll_transmit`](Node::poll_transmit), and calls [`handle_timer`](Node::handle_timer) at
//! [`next_timer`](Node::next_timer). Events come from [`poll_event`](Node::poll_event). Applications open, write,
//! finish and read flows.

mod budget;
mod config;
mod controller;
mod frames;
mod gaps;
pub mod path;
mod peer;
mod sampling;
pub mod settings;
mod warnings;
mod weights;

pub use crate::flow::FlowId;
pub use config::{FlowKind, NodeConfig};
pub use controller::ControllerChoice;
pub(crate) use controller::parse_value;
pub use frames::{CODE_MEMORY, CODE_VIOLATION};
pub use gaps::GapAccuracy;
pub use settings::ChoiceError;

use crate::carrier::{Arrival, AssociationId, Carrier, CarrierError, CarrierEvent, CloseReason, Datagram, Unreachable};
use crate::flow::{MAX_CLASSES, ReceiveFlow, SendFlow};
use crate::identity::Fingerprint;
use crate::telemetry::{Telemetry, Totals};
use budget::Budget;
use bytes::Bytes;
use controller::FlowFacts;
use frames::ReceivedFrame;
use gaps::GapMeter;
use path::{PathState, Unmarked};
use peer::Peer;
use sparelane_cc::BuildError;
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use thiserror::Error;

/// The number of violations after which a peer is disconnected.
const MAX_VIOLATIONS: u32 = 100;

/// Header bytes of IPv4 and UDP.
const IP_UDP_BYTES: u64 = 28;

/// The number of frames of a class that are passed to the carrier together.
const FRAMES_AT_ONCE: usize = 64;

/// An event of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeEvent {
    /// An association has opened.
    Opened {
        /// The association.
        association: AssociationId,
        /// The peer's key.
        peer: Fingerprint,
        /// The peer's address.
        address: SocketAddr,
    },
    /// The peer has started a new flow.
    Incoming(FlowId),
    /// A flow from the peer has more to read.
    Readable(FlowId),
    /// More data of a sent flow is acknowledged.
    Acknowledged(FlowId),
    /// A finished flow is acknowledged in full, which ends it.
    Sent(FlowId),
    /// A sent flow has failed; unacknowledged data is lost.
    SendFailed(FlowId),
    /// A flow from the peer has failed; missing data will not arrive.
    ReceiveFailed(FlowId),
    /// The control stream may have more to read.
    Control(AssociationId),
    /// More is known about the path: see [`Node::path`].
    Path(AssociationId),
    /// An association has ended with all of its flows.
    Closed {
        /// The association.
        association: AssociationId,
        /// The reason.
        reason: CloseReason,
    },
}

/// A request that a node cannot carry out.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NodeError {
    /// The association does not exist, or is not open.
    #[error("the association is not open")]
    NotOpen,
    /// The limit of flows is reached.
    #[error("there are {0} flows already, which is the limit")]
    TooManyFlows(usize),
    /// The controller cannot be built.
    #[error(transparent)]
    Controller(#[from] BuildError),
    /// The carrier reports an error.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    /// Too much control data waits for the peer.
    #[error("too many bytes of control wait for the peer, which does not read them")]
    ControlFull,
}

/// A node with its associations and flows.
#[derive(Debug)]
pub struct Node<C> {
    carrier: C,
    config: NodeConfig,
    peers: BTreeMap<AssociationId, Peer>,
    /// The memory of received data.
    budget: Budget,
    /// The time of the latest search for an association to end for its memory.
    searched: Time,
    /// Associations by the time of their next timer.
    timers: BTreeSet<(Time, AssociationId)>,
    /// Associations that may have something to send.
    busy: BTreeSet<AssociationId>,
    readable: BTreeSet<FlowId>,
    acknowledged: BTreeSet<FlowId>,
    events: VecDeque<NodeEvent>,
    /// Associations that this node has initiated and that are not open yet.
    initiated: BTreeSet<AssociationId>,
    /// The lowest class that a tail uses, if the controller sends one.
    tail_class: Option<u8>,
    /// Frames that failed to decode.
    undecoded: u64,
    /// Totals over ended associations.
    closed: Totals,
    /// The accuracy of the gaps that controllers set.
    gaps: GapMeter,
    /// Telemetry, if enabled.
    telemetry: Option<Box<Telemetry>>,
}

impl<C: Carrier> Node<C> {
    /// Creates a node on a carrier.
    ///
    /// # Errors
    /// The controller cannot be built.
    pub fn new(carrier: C, config: NodeConfig) -> Result<Node<C>, NodeError> {
        // Build a controller now, so that invalid values are reported before the first flow.
        let controller = config.controller.build(&config.registry, 1400, &FlowFacts::default(), config.line_rate)?;
        let tail_class = (config.classes > 1 && controller.uses_tail()).then_some(config.classes - 1);
        Ok(Node {
            carrier,
            config,
            peers: BTreeMap::new(),
            budget: Budget::default(),
            searched: Time::ZERO,
            timers: BTreeSet::new(),
            busy: BTreeSet::new(),
            readable: BTreeSet::new(),
            acknowledged: BTreeSet::new(),
            events: VecDeque::new(),
            initiated: BTreeSet::new(),
            tail_class,
            undecoded: 0,
            closed: Totals::default(),
            gaps: GapMeter::default(),
            telemetry: None,
        })
    }

    /// The carrier.
    pub fn carrier(&self) -> &C {
        &self.carrier
    }

    /// The carrier, for changes.
    pub fn carrier_mut(&mut self) -> &mut C {
        &mut self.carrier
    }

    /// The configuration.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The bytes of received data in memory, out of order or unread.
    pub fn held_bytes(&self) -> u64 {
        self.budget.bytes()
    }

    /// Holds memory for another key until the result is dropped.
    #[cfg(test)]
    pub(crate) fn occupy(&mut self, bytes: u64) -> impl Sized + use<C> {
        let mut held = self.budget.open(Fingerprint::of(b"another key"));
        held.add(Time::ZERO, bytes);
        held
    }

    /// The number of frames that failed to decode.
    pub fn undecoded(&self) -> u64 {
        self.undecoded
    }

    /// Starts an association with the peer at `to`.
    ///
    /// # Errors
    /// The carrier refuses.
    pub fn connect(&mut self, now: Time, to: SocketAddr) -> Result<AssociationId, NodeError> {
        let association = self.carrier.connect(now, to)?;
        self.initiated.insert(association);
        Ok(association)
    }

    /// Ends an association, with a code and a message for the peer.
    pub fn close(&mut self, now: Time, association: AssociationId, code: u32, reason: &str) {
        self.carrier.close(now, association, code, reason);
        self.take_events(now);
    }

    /// Opens a flow to the peer. `kind` holds what is known about it, for controllers that depend on it.
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
        // This flow would distort a measurement that is still running.
        peer.path.forget_train();
        peer.transport.mss_bytes = config.mss_bytes(peer.path.frame_bytes());
        let mut tail = config.tail;
        // Without marks, the network cannot protect other traffic from the tail.
        tail.begins_low |= config.unmarked == Unmarked::Scavenger && peer.path.is_unmarked();
        // A measured rate replaces the configured one.
        tail.rate = peer.path.tail_rate().filter(|_| tail.measured).unwrap_or(tail.rate).min(tail.cap);
        let round_trip = self.carrier.round_trip(association);
        let ports = [kind.port, Some(peer.address.port()), config.port].into_iter().flatten().collect();
        let facts = FlowFacts { bytes: kind.bytes, ports, round_trip };
        let cc = config.controller.build(&config.registry, peer.transport.mss_bytes, &facts, config.line_rate)?;
        let seed = config.seed ^ association.0 << 32;
        let mut sending = SendFlow::new(flow, peer.transport, cc, tail, now, round_trip, seed);
        sending.set_chunk_time(config.chunk_time);
        if let Some(telemetry) = &self.telemetry {
            sampling::begin_sending(telemetry, association, flow, &mut sending);
        }
        peer.sending.insert(flow, sending);
        peer.next_flow += 1;
        Ok(FlowId { association, flow })
    }

    /// Writes to a flow; ignored if the flow has ended. [`SendFlow::buffered_bytes`] tells how much is unacknowledged.
    pub fn write(&mut self, id: FlowId, bytes: Bytes) {
        if let Some(flow) = self.sending_mut(id) {
            flow.write(bytes);
            self.busy.insert(id.association);
        }
    }

    /// Ends a flow after the bytes written so far.
    pub fn finish(&mut self, id: FlowId) {
        if let Some(flow) = self.sending_mut(id) {
            flow.finish();
            self.busy.insert(id.association);
        }
    }

    /// Ends a flow at once and discards unacknowledged bytes.
    pub fn reset(&mut self, id: FlowId) {
        if let Some(flow) = self.sending_mut(id) {
            flow.reset();
            self.busy.insert(id.association);
        }
    }

    /// Returns the next bytes of a flow from the peer, if any have arrived.
    pub fn read(&mut self, id: FlowId) -> Option<Bytes> {
        let peer = self.peers.get_mut(&id.association)?;
        let flow = peer.receiving.get_mut(&id.flow)?;
        let held_before = flow.held_bytes();
        let bytes = flow.read();
        let freed = held_before - flow.held_bytes();
        if freed > 0 {
            peer.held.read(freed);
        }
        if flow.is_read() && peer.confirmed_done.contains(&id.flow) {
            peer.forget(id.flow);
        } else if bytes.is_some() {
            peer.to_flush.insert(id.flow);
            self.busy.insert(id.association);
        }
        bytes
    }

    /// Abandons a flow from the peer: its data is discarded, now and on arrival.
    pub fn abandon(&mut self, id: FlowId) {
        if let Some(peer) = self.peers.get_mut(&id.association)
            && (peer.receiving.contains_key(&id.flow) || peer.ended_flows.may_open(id.flow))
        {
            peer.forget(id.flow);
            self.readable.remove(&id);
        }
    }

    /// Returns true if a flow from the peer was read to its end, or has ended otherwise.
    pub fn is_read(&self, id: FlowId) -> bool {
        self.receiving(id).is_none_or(ReceiveFlow::is_read)
    }

    /// A flow that this node sends, until it ends.
    pub fn sending(&self, id: FlowId) -> Option<&SendFlow> {
        self.peers.get(&id.association)?.sending.get(&id.flow)
    }

    fn sending_mut(&mut self, id: FlowId) -> Option<&mut SendFlow> {
        self.peers.get_mut(&id.association)?.sending.get_mut(&id.flow)
    }

    /// A flow from the peer, until it ends.
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

    /// The known properties of the path to a peer.
    pub fn path(&self, association: AssociationId) -> Option<&PathState> {
        self.peers.get(&association).map(|peer| &peer.path)
    }

    /// The properties of the path to a peer, to take echo answers from.
    pub fn path_mut(&mut self, association: AssociationId) -> Option<&mut PathState> {
        self.peers.get_mut(&association).map(|peer| &mut peer.path)
    }

    /// Asks the peer whether a frame of `frame_bytes` arrives in a class; returns the echo's number. The answer comes
    /// with [`NodeEvent::Path`].
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

    /// Sends `frames` full frames of a packet train at once, either of a new train or of `train`; returns the train's
    /// number. Reports on its arrival come with [`NodeEvent::Path`].
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
    /// The association is not open, or too much data waits.
    pub fn write_control(&mut self, association: AssociationId, bytes: Bytes) -> Result<(), NodeError> {
        let peer = self.peers.get_mut(&association).ok_or(NodeError::NotOpen)?;
        if !peer.held.has_room_for_control(bytes.len() as u64) {
            return Err(NodeError::ControlFull);
        }
        peer.held.add_control(bytes.len() as u64);
        peer.control_out.push_back(bytes);
        self.busy.insert(association);
        Ok(())
    }

    /// Returns the next bytes of the control stream, if any have arrived.
    pub fn read_control(&mut self, association: AssociationId) -> Option<Bytes> {
        self.carrier.read_control(association)
    }

    /// Handles a received UDP datagram.
    pub fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        self.carrier.handle_datagram(now, arrival, bytes);
        self.take_events(now);
    }

    /// Handles a report that packets do not reach their destination.
    pub fn handle_unreachable(&mut self, now: Time, report: Unreachable) {
        self.carrier.handle_unreachable(now, report);
        self.take_events(now);
    }

    /// The time since the latest datagram from the peer; `None` before the first one.
    pub fn silence(&self, now: Time, association: AssociationId) -> Option<Dur> {
        self.carrier.latest_arrival(association).map(|at| now.saturating_since(at))
    }

    /// Makes the peer send an answer, to learn whether it still knows the association.
    pub fn ping(&mut self, association: AssociationId) {
        self.carrier.ping(association);
    }

    /// Handles expired timers.
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

    /// Returns the time at which [`handle_timer`](Self::handle_timer) should be called next.
    pub fn next_timer(&self) -> Time {
        let next = self.timers.first().map_or(Time::NEVER, |(at, _)| *at).min(self.carrier.next_timer());
        self.telemetry.as_ref().map_or(next, |telemetry| telemetry.next_sample().min(next))
    }

    /// Returns the next event, oldest first.
    pub fn poll_event(&mut self) -> Option<NodeEvent> {
        if let Some(event) = self.events.pop_front() {
            if let NodeEvent::Closed { association, .. } = event {
                self.carrier.forget_control(association);
            }
            return Some(event);
        }
        if let Some(flow) = self.readable.pop_first() {
            return Some(NodeEvent::Readable(flow));
        }
        self.acknowledged.pop_first().map(NodeEvent::Acknowledged)
    }

    /// Returns true if [`poll_event`](Self::poll_event) has an event.
    pub fn has_events(&self) -> bool {
        !(self.events.is_empty() && self.readable.is_empty() && self.acknowledged.is_empty())
    }

    /// Returns the next datagrams to send.
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

    /// Passes to the carrier everything that one association has to send now.
    fn advance(&mut self, now: Time, association: AssociationId) {
        let Some(peer) = self.peers.get_mut(&association) else { return };
        // The train goes first, but not next to flows, which would distort it.
        if std::mem::take(&mut peer.needs_train)
            && peer.sending.is_empty()
            && let Some(class) = self.tail_class.filter(|_| self.config.tail.measured)
        {
            peer.path.measure_tail(class);
        }
        send_control(&mut self.carrier, association, peer);
        let Sent { has_more, failed } = send_frames(&mut self.carrier, &mut self.gaps, now, association, peer);
        // A failed flow leaves its last sample before it is removed.
        for flow in failed {
            sampling::end_sending(self.telemetry.as_deref_mut(), now, association, flow, &mut peer.sending);
            peer.end(flow);
            self.events.push_back(NodeEvent::SendFailed(FlowId { association, flow }));
        }
        if let Some(telemetry) = self.telemetry.as_deref_mut() {
            peer.sending.values_mut().for_each(|flow| telemetry.write_log(|text| flow.take_log(text)));
        }
        if has_more {
            self.busy.insert(association);
        }
        // Update the association's timer only if it has changed.
        let next = peer.next_timer();
        if next != peer.timer {
            self.timers.remove(&(peer.timer, association));
            peer.timer = next;
            if next != Time::NEVER {
                self.timers.insert((next, association));
            }
        }
    }

    /// Records that the host has passed a datagram to the kernel now, for the accuracy of gaps.
    pub fn note_left(&mut self, now: Time, class: u8, datagram_bytes: usize) {
        if class == 0
            && let Some((id, due)) = self.gaps.match_departure(datagram_bytes)
            && let Some(gap) = self.sending_mut(id).and_then(|flow| flow.note_left(now, due))
        {
            self.gaps.record(gap);
        }
    }

    /// The accuracy of the gaps between segments, for controllers that schedule departures (RAPID).
    pub fn gap_accuracy(&self) -> Option<GapAccuracy> {
        self.gaps.accuracy()
    }

    fn take_events(&mut self, now: Time) {
        while let Some(event) = self.carrier.poll_event() {
            match event {
                CarrierEvent::Opened { association, peer, address } => {
                    // Until probes find a smaller limit, full frames are used.
                    let bytes = self.carrier.max_frame_bytes(association).unwrap_or(1000);
                    let transport = self.config.transport(bytes);
                    let initiated = self.initiated.remove(&association);
                    let (classes, dscp) = (self.config.classes, &self.config.dscp);
                    let held = self.budget.open(peer);
                    let peer_state = Peer::new(held, address, transport, bytes, classes, dscp, initiated);
                    self.peers.insert(association, peer_state);
                    self.events.push_back(NodeEvent::Opened { association, peer, address });
                }
                CarrierEvent::Class { association, class, open } => {
                    // The code point of the handshake's answer shows if the path keeps the mark.
                    let returned = self.carrier.latest_dscp(association, class);
                    if let Some(peer) = self.peers.get_mut(&association) {
                        peer.path.set_open(now, class, open, returned);
                        peer.open[usize::from(class)] = open;
                        peer.allow(self.config.unmarked);
                        // Files are sent by the initiator, so only its tail is measured.
                        if open && peer.initiated && Some(class) == self.tail_class {
                            peer.needs_train = true;
                        }
                        self.busy.insert(association);
                    }
                }
                CarrierEvent::Frame { association, class, marked, received_ns, bytes } => {
                    self.handle_frame(now, association, &ReceivedFrame { class, marked, received_ns, bytes });
                }
                CarrierEvent::Control { association } => {
                    self.busy.insert(association);
                    self.events.push_back(NodeEvent::Control(association));
                }
                CarrierEvent::Closed { association, reason } => {
                    self.initiated.remove(&association);
                    // The totals of the flows are lost with the peer, so take them first.
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
}

/// Writes waiting control data to the carrier's stream.
fn send_control(carrier: &mut impl Carrier, association: AssociationId, peer: &mut Peer) {
    while let Some(first) = peer.control_out.front_mut() {
        // The stream's window may accept only a part.
        let taken = carrier.write_control(association, first);
        peer.held.free_control(taken as u64);
        if taken < first.len() {
            let _ = first.split_to(taken);
            return;
        }
        peer.control_out.pop_front();
    }
}

/// The result of [`send_frames`].
struct Sent {
    /// True if a flow has more to send at once.
    has_more: bool,
    /// Flows that have failed.
    failed: Vec<u32>,
}

/// Sends the frames of a peer that are due: those of the path, acknowledgments, and segments.
fn send_frames(
    carrier: &mut impl Carrier,
    gaps: &mut GapMeter,
    now: Time,
    association: AssociationId,
    peer: &mut Peer,
) -> Sent {
    let mut frames: [Vec<Vec<u8>>; MAX_CLASSES] = Default::default();
    frames[0].append(&mut peer.frames_out);
    let (round_trip, is_quiet) = (carrier.round_trip(association), peer.sending.is_empty());
    for (class, frame) in peer.path.poll(now, round_trip, carrier.overhead_bytes(), is_quiet) {
        // Send each by itself: some queues treat a batch as one packet.
        carrier.send(now, association, class, &mut std::iter::once(frame));
    }
    let mut emit = |class: u8, frame: Vec<u8>| {
        let frames = &mut frames[usize::from(class)];
        frames.push(frame);
        // Send a batch while it is in the processor's cache.
        if frames.len() >= FRAMES_AT_ONCE {
            carrier.send(now, association, class, &mut frames.drain(..));
        }
    };
    while let Some(flow) = peer.to_flush.pop_first() {
        if let Some(flow) = peer.receiving.get_mut(&flow) {
            flow.flush(peer.max_frame_bytes, &mut emit);
        }
    }
    let mut sent = Sent { has_more: false, failed: vec![] };
    for (&id, flow) in &mut peer.sending {
        sent.has_more |= flow.advance(now, &peer.classes, &mut emit);
        let flow_id = FlowId { association, flow: id };
        flow.take_departures().for_each(|(due, bytes)| gaps.expect(flow_id, due, bytes));
        if flow.failure().is_some() {
            sent.failed.push(id);
        }
    }
    for (class, frames) in frames.into_iter().enumerate().filter(|(_, frames)| !frames.is_empty()) {
        carrier.send(now, association, class as u8, &mut frames.into_iter());
    }
    sent
}
