//! A capture of packets in pcapng, like one of `tcpdump` at a host or at ports of the network.

use super::super::{Flows, Interest, Kind, Observer, Opened, PacketEvent, SackRanges, Step};
use super::frame::{ACK, CWR, ECE, Ends, Frame, PSH_ACK, SYN, sequence_of};
use super::{Outcome, Sink, pcapng};
use crate::records::Records;
use crate::routing::network::NodeId;
use std::collections::BTreeMap;
use std::io::Write;

/// The place of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The interface of the sending host of one connection, by the number of its first flow, for that connection alone.
    Flow(u32),
    /// Ports, each from one node towards the next and with a name, for all flows that leave them.
    Ports(Vec<(NodeId, NodeId, String)>),
}

/// A capture.
pub struct Capture {
    place: Place,
    sink: Sink,
    snap_bytes: u32,
    /// The ends of the open connections, by the number of their first flow.
    ends: BTreeMap<u32, Ends>,
    written: u16,
}

impl Capture {
    /// A capture to `out` of the first `snap_bytes` of each packet, and of at most `most` packets.
    pub fn new(place: Place, snap_bytes: u32, most: u64, out: Box<dyn Write + Send>, outcome: Outcome) -> Capture {
        let mut sink = Sink::new(out, outcome, most);
        sink.put_head(&pcapng::section());
        match &place {
            Place::Flow(flow) => sink.put_head(&pcapng::interface(&format!("flow {flow}"), snap_bytes)),
            Place::Ports(ports) => {
                ports.iter().for_each(|(_, _, name)| sink.put_head(&pcapng::interface(name, snap_bytes)));
            }
        }
        Capture { place, sink, snap_bytes, ends: BTreeMap::new(), written: 0 }
    }

    /// The index of the capture's interface that a packet passes at this step, if it passes one.
    fn interface(&self, packet: &PacketEvent, ends: &Ends) -> Option<u32> {
        let goes_back = goes_back(packet.kind);
        match (&self.place, packet.step) {
            (Place::Flow(_), Step::Sent { .. }) => (!goes_back).then_some(0),
            (Place::Flow(_), Step::Received { .. }) => goes_back.then_some(0),
            (Place::Ports(ports), step) => {
                let (from, to) = match (step, packet.kind) {
                    (Step::Crossed { from, to }, _) => (Some(from), to),
                    // A port towards the packet's own host: the host has only this cable.
                    (Step::Arrived { .. }, _) => (None, ends.dst),
                    (Step::Received { .. }, Kind::Data { .. }) => return None,
                    (Step::Received { .. }, _) => (None, if goes_back { ends.src } else { ends.dst }),
                    _ => return None,
                };
                let is_it = |port: &(NodeId, NodeId, String)| port.1 == to && from.is_none_or(|from| port.0 == from);
                ports.iter().position(is_it).map(|place| place as u32)
            }
            _ => None,
        }
    }
}

/// Returns true if a packet travels from a flow's receiver to its sender.
fn goes_back(kind: Kind) -> bool {
    matches!(kind, Kind::Acknowledgment { .. } | Kind::Handshake { is_answer: true })
}

/// Builds the frame of a packet.
fn frame<'a>(packet: &PacketEvent, ends: &'a Ends, id: u16) -> Frame<'a> {
    // Accurate ECN uses all three flags as a number; classic ECN sets single ones.
    let accurate = packet.accurate_ecn;
    let answer = |bit: u8| if packet.has_ecn_answer && accurate.is_none() { bit } else { 0 };
    let ecn_flags = accurate.map_or(0, |fields| fields.flags);
    let header_bytes = ends.header_bytes as u32;
    let none = SackRanges::default();
    let capable = if ends.uses_ecn && accurate.is_none() { ECE | CWR } else { 0 };
    let (sequence, acknowledgment, flags, sack, payload_bytes) = match packet.kind {
        Kind::Data { offset_bytes, .. } => {
            let payload_bytes = packet.wire_bytes.saturating_sub(header_bytes);
            (sequence_of(offset_bytes), 1, PSH_ACK | answer(CWR), none, payload_bytes as usize)
        }
        Kind::Acknowledgment { acknowledged_bytes, sack, .. } => {
            (1, sequence_of(acknowledged_bytes), ACK | answer(ECE), sack, 0)
        }
        Kind::Handshake { is_answer: false } => (0, 0, SYN | capable, none, 0),
        Kind::Handshake { is_answer: true } => (0, 1, SYN | ACK | (capable & ECE), none, 0),
    };
    // Packets of the handshake and pure acknowledgments are not ECN-capable (RFC 3168 section 6.1).
    let ecn = match packet.kind {
        Kind::Data { .. } if packet.is_marked => 3,
        Kind::Data { .. } if packet.is_l4s => 1,
        Kind::Data { .. } if packet.is_ecn_capable => 2,
        _ => 0,
    };
    let goes_back = goes_back(packet.kind);
    let option = accurate.and_then(|fields| fields.option);
    let class = packet.class;
    Frame { ends, goes_back, sequence, acknowledgment, flags, ecn_flags, option, sack, payload_bytes, class, ecn, id }
}

impl Observer for Capture {
    fn interest(&self) -> Interest {
        match &self.place {
            Place::Flow(flow) => Interest { packets: Flows::One(*flow), ..Interest::default() },
            Place::Ports(ports) => {
                let ports = ports.iter().map(|&(from, to, _)| (from, to)).collect();
                Interest { packets: Flows::All, ports, ..Interest::default() }
            }
        }
    }

    fn on_open(&mut self, flow: &Opened) {
        let Opened { flow, connection, src, dst, mss_bytes, header_bytes, uses_ecn, .. } = *flow;
        if flow != connection || matches!(self.place, Place::Flow(other) if other != flow) {
            return;
        }
        self.ends.insert(flow, Ends { flow, src, dst, mss_bytes, header_bytes, uses_ecn });
    }

    fn on_packet(&mut self, packet: &PacketEvent) {
        let Some(ends) = self.ends.get(&packet.connection) else { return };
        let Some(interface) = self.interface(packet, ends) else { return };
        let (length, bytes) = frame(packet, ends, self.written).bytes(self.snap_bytes);
        self.written = self.written.wrapping_add(1);
        self.sink.put_one(&pcapng::packet(interface, packet.now, &bytes, length));
    }

    fn finish(self: Box<Self>, _records: &mut Records) {
        self.sink.finish();
    }
}
