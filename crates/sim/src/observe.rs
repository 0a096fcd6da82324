//! Who looks into a run, and what there is to see.
//!
//! An [`Observer`] says once what it wants to hear of ([`Interest`]), and is then told: when flows open and close, what becomes
//! of packets, and, at the instants that it names, of everything that a [`View`] shows. What nobody asks for costs nothing: the
//! packets of flows that nobody watches take the short ways. Time series, delays and the log of packets are observers like any
//! other. An observer changes nothing: runs with and without it have the same flows, to the picosecond.
//!
//! Between two steps of a run ([`Simulation::advance_to`](crate::Simulation::advance_to)) the same [`View`] is there for whoever
//! drives the run, who can also reach the controller of a flow.

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
use sparelane_transport::MAX_SACK_BLOCKS;
use std::collections::BTreeSet;

/// Which flows somebody wants to hear of.
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
    /// Whether the flow of this number is among them.
    pub fn has(self, flow: u32) -> bool {
        match self {
            Flows::None => false,
            Flows::One(one) => one == flow,
            Flows::All => true,
        }
    }
}

/// What an observer wants to hear of. Asked once, before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// When it wants [`Observer::on_sample`] for the first time.
    pub first_sample: Option<Time>,
    /// Whose packets it follows through every [`Step`]. Such packets take longer ways through the simulator, which lead to the
    /// same results. No flow may ask the routers for a rate: its packets have no room for the time at which they were sent.
    pub packets: Flows,
    /// Whether it hears of [`Step::Received`] of the data packets of all flows; with the same restriction.
    pub receipts: bool,
    /// Output queues, from one node towards the next, whose backlog it looks at.
    pub queues: Vec<(NodeId, NodeId)>,
    /// Ports, from one node towards the next, of which it hears what leaves ([`Step::Crossed`]), of the flows that it follows.
    pub ports: Vec<(NodeId, NodeId)>,
}

/// A flow that has just opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its number, in order of start.
    pub flow: u32,
    /// When its source sends its SYN.
    pub start: Time,
    /// Its scheme, by its index in the run's.
    pub scheme: u16,
    /// Its class of traffic, by its index in the run's, if it has one.
    pub traffic_class: Option<u16>,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host.
    pub dst: NodeId,
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// Bytes of header of each packet.
    pub header_bytes: u64,
    /// Whether its ends understand marks of congestion.
    pub uses_ecn: bool,
}

/// Bytes that a receiver reports beyond what it has in sequence (RFC 2018): ranges of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRanges {
    ranges: [(u64, u64); MAX_SACK_BLOCKS],
    count: u8,
}

impl SackRanges {
    /// These ranges, each with its first byte and one past its last; as many as an acknowledgment has room for.
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

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload.
    Data {
        /// The low 32 bits of the segment's number.
        segment: u32,
        /// Whether the segment had been sent before.
        is_retransmission: bool,
        /// Bytes of the stream that come before it.
        offset_bytes: u64,
    },
    /// What a receiver says of what it has.
    Acknowledgment {
        /// The low 32 bits of the number of the first segment that the receiver misses.
        cumulative: u32,
        /// The low 32 bits of the number of the segment that caused it.
        trigger: u32,
        /// Bytes of the stream that it acknowledges in sequence.
        acknowledged_bytes: u64,
        /// What it reports beyond.
        sack: SackRanges,
    },
    /// SYN or SYN-ACK.
    Handshake {
        /// Whether it is the receiver's answer.
        is_answer: bool,
    },
}

/// How far a packet has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was handed to the interface of its host.
    Sent {
        /// When it was due, if something paced it.
        due: Option<Time>,
        /// When its last bit leaves the interface, where that is known: the queue there is a FIFO, and did not drop it.
        departs: Option<Time>,
        /// When the segment that caused it arrived, as it says: acknowledgments for controllers that need receive times.
        stamp: Option<Time>,
    },
    /// Its last bit is at the interface of the receiving host (data packets only).
    Arrived {
        /// When it was sent, whole nanoseconds.
        sent: Time,
    },
    /// The transport of the receiving host has it.
    Received {
        /// How long it was under way, whole nanoseconds; less by 4.29 s where that was longer. Zero for what is not data.
        delay: Dur,
    },
    /// Its last bit left the port from one node towards the next, as [`Interest::ports`] asks. This is told some time after
    /// it happened, in order for each port; of a port towards the packet's own host it is not told.
    Crossed {
        /// The port's node.
        from: NodeId,
        /// The next one.
        to: NodeId,
    },
    /// A queue dropped it, or a wire lost it; this is known some time after it happened.
    Dropped,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// When.
    pub now: Time,
    /// Its flow, by number.
    pub flow: u32,
    /// What it is.
    pub kind: Kind,
    /// Its size on the wire, bytes.
    pub wire_bytes: u32,
    /// Its priority class on the wire.
    pub class: u8,
    /// Whether it carries a mark of congestion.
    pub is_marked: bool,
    /// Whether its ends understand such marks.
    pub is_ecn_capable: bool,
    /// Data: the window was reduced (CWR). Acknowledgment: the receiver echoes a mark (ECE).
    pub has_ecn_answer: bool,
    /// How far it has come.
    pub step: Step,
}

/// Somebody who looks into a run. All that an observer does not care for has a default that does nothing.
pub trait Observer: Send {
    /// What it wants to hear of.
    fn interest(&self) -> Interest;

    /// A flow has opened.
    fn on_open(&mut self, flow: &Opened) {
        let _ = flow;
    }

    /// A flow is over, or the run is, and it was still open.
    fn on_close(&mut self, flow: &FlowView<'_>) {
        let _ = flow;
    }

    /// A packet has come a step further.
    fn on_packet(&mut self, packet: &PacketEvent) {
        let _ = packet;
    }

    /// The sender of a flow that it follows has taken an acknowledgment.
    fn on_acknowledged(&mut self, flow: &FlowView<'_>) {
        let _ = flow;
    }

    /// The instant has come that it asked for. Returns the next one; `Time::NEVER` for none.
    fn on_sample(&mut self, view: &mut View<'_>) -> Time {
        let _ = view;
        Time::NEVER
    }

    /// The run is over: what it saw goes to the records, if it has a place there.
    fn finish(self: Box<Self>, records: &mut Records) {
        let _ = records;
    }
}

/// Looks at queues between the steps of a run, and at nothing else.
#[derive(Clone, Debug, Default)]
pub struct QueuesInView {
    /// From one node towards the next.
    pub queues: Vec<(NodeId, NodeId)>,
}

impl Observer for QueuesInView {
    fn interest(&self) -> Interest {
        Interest { queues: self.queues.clone(), ..Interest::default() }
    }
}

/// All observers of a run.
#[derive(Default)]
pub(crate) struct Observers {
    seats: Vec<Seat>,
    /// Whether anybody hears of receipts of all flows.
    pub(crate) hear_receipts: bool,
    /// Queues that somebody looks at.
    pub(crate) queues: BTreeSet<(NodeId, NodeId)>,
    /// Ports that somebody hears of.
    pub(crate) ports: BTreeSet<(NodeId, NodeId)>,
}

struct Seat {
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
            all.hear_receipts |= receipts;
            all.queues.extend(queues);
            all.ports.extend(ports);
            let next_sample = first_sample.unwrap_or(Time::NEVER);
            all.seats.push(Seat { observer, packets, receipts, next_sample });
        }
        all
    }

    /// Whether somebody follows the packets of a flow step by step.
    pub(crate) fn follow(&self, flow: u32) -> bool {
        self.seats.iter().any(|seat| seat.packets.has(flow))
    }

    /// When somebody next wants a sample.
    pub(crate) fn next_sample(&self) -> Time {
        self.seats.iter().map(|seat| seat.next_sample).min().unwrap_or(Time::NEVER)
    }

    pub(crate) fn open(&mut self, flow: &Opened) {
        self.seats.iter_mut().for_each(|seat| seat.observer.on_open(flow));
    }

    pub(crate) fn close(&mut self, flow: &FlowView<'_>) {
        self.seats.iter_mut().for_each(|seat| seat.observer.on_close(flow));
    }

    /// Tells those who follow the flow, and where a data packet is received, those who hear of all receipts.
    pub(crate) fn tell(&mut self, packet: &PacketEvent) {
        let is_receipt = matches!((packet.kind, packet.step), (Kind::Data { .. }, Step::Received { .. }));
        for seat in &mut self.seats {
            if seat.packets.has(packet.flow) || (seat.receipts && is_receipt) {
                seat.observer.on_packet(packet);
            }
        }
    }

    pub(crate) fn acknowledged(&mut self, flow: &FlowView<'_>) {
        let following = self.seats.iter_mut().filter(|seat| seat.packets.has(flow.id));
        following.for_each(|seat| seat.observer.on_acknowledged(flow));
    }

    /// The samples that are due.
    pub(crate) fn sample(&mut self, view: &mut View<'_>) {
        let now = view.now();
        for seat in self.seats.iter_mut().filter(|seat| seat.next_sample <= now) {
            seat.next_sample = seat.observer.on_sample(view);
        }
    }

    pub(crate) fn finish(self, records: &mut Records) {
        self.seats.into_iter().for_each(|seat| seat.observer.finish(records));
    }
}
