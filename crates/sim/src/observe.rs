//! Observers of a run, and the events and state that they can see.
//!
//! An [`Observer`] declares once which events it needs ([`Interest`]). It is then called when flows open and close,
//! when followed packets are sent, arrive or are dropped, and, at times of its choice, with a [`View`] of flows,
//! controllers, queues and links. Observers cost nothing unless enabled: the packets of flows that no observer follows
//! take the fast paths. Time series, delays and the log of packets are ordinary observers. An observer never changes
//! the run: with and without it, flows are equal to the picosecond.
//!
//! Between two steps of a run ([`Simulation::advance_to`](crate::Simulation::advance_to)), the caller gets the same
//! [`View`], and can access the controller of a flow.

mod delays;
mod log;
mod series;
pub mod trace;
mod view;

pub use self::delays::{Delays, DelaysSpec};
pub use self::log::{PacketLog, PacketLogSpec};
pub use self::series::{Probe, Series, SeriesSpec};
pub(crate) use self::view::Inside;
pub use self::view::{FlowView, View};

use crate::records::Records;
use crate::routing::network::NodeId;
use sparelane_core::{Dur, Time};
use sparelane_transport::{AccEcnOption, EcnFlags, MAX_SACK_BLOCKS};
use std::collections::BTreeSet;

/// A set of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flows {
    /// None.
    #[default]
    None,
    /// One, by its number in order of start.
    One(u32),
    /// All.
    All,
}

impl Flows {
    /// Returns true if the flow with this number is in the set.
    pub fn has(self, flow: u32) -> bool {
        match self {
            Flows::None => false,
            Flows::One(one) => one == flow,
            Flows::All => true,
        }
    }
}

/// The events that an observer needs. Queried once, before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// The time of the first call of [`Observer::on_sample`].
    pub first_sample: Option<Time>,
    /// The connections, by the number of their first flow, whose packets the observer follows through every [`Step`].
    /// Such packets take slower paths through the simulator, with the same results. No such flow may use RCP: its rate
    /// header occupies the field of the send time.
    pub packets: Flows,
    /// True if it needs [`Step::Received`] for the data packets of all flows, with the same restriction.
    pub receipts: bool,
    /// Output queues whose backlog it reads, each from one node towards the next.
    pub queues: Vec<(NodeId, NodeId)>,
    /// Ports, each from one node towards the next, that report every followed packet that leaves them
    /// ([`Step::Crossed`]).
    pub ports: Vec<(NodeId, NodeId)>,
}

/// A flow that has just opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its number, in order of start.
    pub flow: u32,
    /// The number of the flow that opened its connection: `flow`, unless it takes a connection that is open already.
    pub connection: u32,
    /// Send time of its SYN, or of its first write on a connection that was open already.
    pub start: Time,
    /// The scheme, as an index into the run's schemes.
    pub scheme: u16,
    /// The class of traffic, as an index into the run's classes, if it has one.
    pub traffic_class: Option<u16>,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host.
    pub dst: NodeId,
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// Bytes of header of each packet.
    pub header_bytes: u64,
    /// True if both ends support ECN.
    pub uses_ecn: bool,
}

/// Byte ranges that a receiver reports beyond the data that it has in sequence (RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRanges {
    ranges: [(u64, u64); MAX_SACK_BLOCKS],
    count: u8,
}

impl SackRanges {
    /// Collects ranges, each from its first byte to one past its last, up to the number that an acknowledgment can
    /// carry.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> SackRanges {
        let mut all = SackRanges::default();
        for (place, range) in all.ranges.iter_mut().zip(ranges) {
            *place = range;
            all.count += 1;
        }
        all
    }

    /// The ranges, the most recent first.
    pub fn all(&self) -> &[(u64, u64)] {
        &self.ranges[..usize::from(self.count)]
    }
}

/// The kind of a packet, and its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Data {
        /// The low 32 bits of the segment's number.
        segment: u32,
        /// True if the segment had been sent before.
        is_retransmission: bool,
        /// The offset of its first byte in the stream.
        offset_bytes: u64,
    },
    /// The state of the receiver.
    Acknowledgment {
        /// The low 32 bits of the number of the first missing segment.
        cumulative: u32,
        /// The low 32 bits of the number of the segment that caused it.
        trigger: u32,
        /// Bytes of the stream that it acknowledges in sequence.
        acknowledged_bytes: u64,
        /// Ranges received beyond that.
        sack: SackRanges,
    },
    /// SYN or SYN-ACK.
    Handshake {
        /// True for the SYN-ACK.
        is_answer: bool,
    },
}

/// The progress of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was handed to the interface of its host.
    Sent {
        /// The time at which it was due, if it was paced.
        due: Option<Time>,
        /// The time at which its last bit leaves the interface. Known if the queue there is a FIFO and did not drop it.
        departs: Option<Time>,
        /// The arrival time of the segment that caused it, if the acknowledgment reports receive times.
        stamp: Option<Time>,
    },
    /// Its last bit reached the interface of the receiving host (data packets only).
    Arrived {
        /// Its send time, in whole nanoseconds.
        sent: Time,
    },
    /// The transport of the receiving host has it.
    Received {
        /// The one-way delay in whole nanoseconds, modulo 4.29 s; zero for packets other than data.
        delay: Dur,
    },
    /// Its last bit left the port from one node towards the next, one of [`Interest::ports`]. Reported with a delay, in
    /// order for each port. Ports towards the packet's own host do not report.
    Crossed {
        /// The port's node.
        from: NodeId,
        /// The next one.
        to: NodeId,
    },
    /// A queue dropped it, or a wire lost it. Reported with a delay.
    Dropped,
}

/// The TCP fields of a packet on a connection that requests accurate ECN (RFC 9768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccurateFields {
    /// The flags AE, CWR and ECE as a number of three bits: negotiation on the handshake, then ACE.
    pub flags: EcnFlags,
    /// The AccECN option, on acknowledgments that have one.
    pub option: Option<AccEcnOption>,
}

/// A step of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// The time of the step.
    pub now: Time,
    /// The flow that its connection carries at this time, by number. The last packets of a flow may count as those of
    /// the next one on the same connection.
    pub flow: u32,
    /// The number of the flow that opened the connection.
    pub connection: u32,
    /// Its kind.
    pub kind: Kind,
    /// Its size on the wire, bytes.
    pub wire_bytes: u32,
    /// Its priority class on the wire.
    pub class: u8,
    /// True if it carries a congestion mark.
    pub is_marked: bool,
    /// True if it can be marked.
    pub is_ecn_capable: bool,
    /// True if its ECN field is ECT(1) or CE.
    pub is_l4s: bool,
    /// Data: the window was reduced (CWR). Acknowledgment: the receiver echoes a mark (ECE).
    pub has_ecn_answer: bool,
    /// The TCP flags for ECN, on connections that request accurate ECN.
    pub accurate_ecn: Option<AccurateFields>,
    /// The step.
    pub step: Step,
}

/// An observer of a run. Methods that it does not need have empty defaults.
pub trait Observer: Send {
    /// Returns the events that it needs.
    fn interest(&self) -> Interest;

    /// Called when a flow opens, also on a connection that is open already.
    fn on_open(&mut self, flow: &Opened) {
        let _ = flow;
    }

    /// Called when a flow is over, and at the end of the run for flows still open. A flow on a connection that is kept
    /// for further flows is over when the next one starts.
    fn on_close(&mut self, flow: &FlowView<'_>) {
        let _ = flow;
    }

    /// Called when a followed packet has made a step.
    fn on_packet(&mut self, packet: &PacketEvent) {
        let _ = packet;
    }

    /// Called when the sender of a followed flow has processed an acknowledgment.
    fn on_acknowledged(&mut self, flow: &FlowView<'_>) {
        let _ = flow;
    }

    /// Called at the requested time. Returns the next one; `Time::NEVER` for none.
    fn on_sample(&mut self, view: &mut View<'_>) -> Time {
        let _ = view;
        Time::NEVER
    }

    /// Called at the end of the run. The observer may write its results to the records.
    fn finish(self: Box<Self>, records: &mut Records) {
        let _ = records;
    }
}

/// An observer that only makes queues readable between the steps of a run.
#[derive(Clone, Debug, Default)]
pub struct QueuesInView {
    /// Output queues, each from one node towards the next.
    pub queues: Vec<(NodeId, NodeId)>,
}

impl Observer for QueuesInView {
    fn interest(&self) -> Interest {
        Interest { queues: self.queues.clone(), ..Interest::default() }
    }
}

/// The observers of a run.
#[derive(Default)]
pub(crate) struct Observers {
    subscriptions: Vec<Subscription>,
    /// True if any observer needs receipts of all flows.
    pub(crate) wants_receipts: bool,
    /// Queues that any observer reads.
    pub(crate) queues: BTreeSet<(NodeId, NodeId)>,
    /// Ports that any observer watches.
    pub(crate) ports: BTreeSet<(NodeId, NodeId)>,
}

/// An observer with its interest.
struct Subscription {
    observer: Box<dyn Observer>,
    packets: Flows,
    receipts: bool,
    next_sample: Time,
}

impl Observers {
    pub(crate) fn new(observers: Vec<Box<dyn Observer>>) -> Observers {
        let mut all = Observers::default();
        for observer in observers {
            let Interest { first_sample, packets, receipts, queues, ports } = observer.interest();
            all.wants_receipts |= receipts;
            all.queues.extend(queues);
            all.ports.extend(ports);
            let next_sample = first_sample.unwrap_or(Time::NEVER);
            all.subscriptions.push(Subscription { observer, packets, receipts, next_sample });
        }
        all
    }

    /// Returns true if any observer follows the packets of a connection.
    pub(crate) fn follow(&self, flow: u32) -> bool {
        self.subscriptions.iter().any(|subscription| subscription.packets.has(flow))
    }

    /// The earliest time at which any observer wants a sample.
    pub(crate) fn next_sample(&self) -> Time {
        self.subscriptions.iter().map(|subscription| subscription.next_sample).min().unwrap_or(Time::NEVER)
    }

    pub(crate) fn open(&mut self, flow: &Opened) {
        self.subscriptions.iter_mut().for_each(|subscription| subscription.observer.on_open(flow));
    }

    pub(crate) fn close(&mut self, flow: &FlowView<'_>) {
        self.subscriptions.iter_mut().for_each(|subscription| subscription.observer.on_close(flow));
    }

    /// Reports a step to the observers that follow the flow and, for received data, to those that need all receipts.
    pub(crate) fn notify(&mut self, packet: &PacketEvent) {
        let is_receipt = matches!((packet.kind, packet.step), (Kind::Data { .. }, Step::Received { .. }));
        for subscription in &mut self.subscriptions {
            if subscription.packets.has(packet.connection) || (subscription.receipts && is_receipt) {
                subscription.observer.on_packet(packet);
            }
        }
    }

    pub(crate) fn acknowledged(&mut self, flow: &FlowView<'_>) {
        let following = self.subscriptions.iter_mut().filter(|subscription| subscription.packets.has(flow.connection));
        following.for_each(|subscription| subscription.observer.on_acknowledged(flow));
    }

    /// Takes the samples that are due.
    pub(crate) fn sample(&mut self, view: &mut View<'_>) {
        let now = view.now();
        for subscription in self.subscriptions.iter_mut().filter(|subscription| subscription.next_sample <= now) {
            subscription.next_sample = subscription.observer.on_sample(view);
        }
    }

    pub(crate) fn finish(self, records: &mut Records) {
        self.subscriptions.into_iter().for_each(|subscription| subscription.observer.finish(records));
    }
}
