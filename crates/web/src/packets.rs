//! Packets for an animation: an observer that records each packet of a window of time with its way through the network.
//!
//! The events of a packet carry no identity. A packet is therefore recognised by its connection, its kind and its number
//! within the connection; of several such packets, an event belongs to the earliest one that can have it. Copies of the
//! same segment can be confused only if both are in the network at the same time and both were sent again.

use crate::columns::{Columns, Data};
use crate::series::ends;
use sparelane_core::Time;
use sparelane_scenario::Json;
use sparelane_sim::observe::{Flows, Interest, Kind, Observer, Opened, PacketEvent, Step};
use sparelane_sim::{Network, NodeId, Records};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest number of cables of a network whose packets can be recorded.
pub const MOST_CABLES: usize = 256;
/// The largest number of packets of a record.
pub const MOST_PACKETS: u32 = 200_000;

/// The packets to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The window in which a packet must be sent.
    pub from: Time,
    /// The end of the window.
    pub to: Time,
    /// The largest number of packets.
    pub most: u32,
    /// The only connection that is recorded, by the number of its first flow.
    pub flow: Option<u32>,
}

// The kinds of packets, as in the protocol.
const DATA: u8 = 0;
const ACKNOWLEDGMENT: u8 = 1;
const SYN: u8 = 2;
const SYN_ACK: u8 = 3;
// The fates of packets, as in the protocol.
const ARRIVED: u8 = 0;
const DROPPED: u8 = 1;
const UNKNOWN: u8 = 2;

/// The identity of a packet, as far as its events show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    connection: u32,
    kind: u8,
    /// For data, the segment; for acknowledgments, the first missing segment and the trigger.
    number: (u32, u32),
    is_retransmission: bool,
}

impl Key {
    fn of(packet: &PacketEvent) -> Key {
        let (kind, number, is_retransmission) = match packet.kind {
            Kind::Data { segment, is_retransmission, .. } => (DATA, (segment, 0), is_retransmission),
            Kind::Acknowledgment { cumulative, trigger, .. } => (ACKNOWLEDGMENT, (cumulative, trigger), false),
            Kind::Handshake { is_answer: false } => (SYN, (0, 0), false),
            Kind::Handshake { is_answer: true } => (SYN_ACK, (0, 0), false),
        };
        Key { connection: packet.connection, kind, number, is_retransmission }
    }
}

/// One recorded packet.
#[derive(Clone, Debug)]
struct Packet {
    flow: u32,
    connection: u32,
    kind: u8,
    class: u8,
    segment: u32,
    offset: u64,
    bytes: u32,
    is_retransmission: bool,
    is_marked: bool,
    sent: Time,
    end: Time,
    fate: u8,
    /// The links that it left, and the time at which its last bit left each.
    hops: Vec<(u32, Time)>,
}

/// A packet in the network. Packets outside the window have no record, but must not be confused with recorded ones.
#[derive(Clone, Copy, Debug)]
struct Travelling {
    sent: Time,
    record: Option<usize>,
    /// The node at which it was last seen.
    at: Option<NodeId>,
}

/// The packets so far. The observer belongs to the simulation, so both share it.
#[derive(Clone, Debug)]
pub struct Packets(Arc<Mutex<Log>>);

#[derive(Clone, Debug)]
struct Log {
    spec: Spec,
    /// The link between two nodes.
    links: HashMap<(NodeId, NodeId), u32>,
    travelling: HashMap<Key, VecDeque<Travelling>>,
    packets: Vec<Packet>,
    /// Packets that their interface dropped: their drop is reported before they are sent.
    dropped_at_once: HashMap<Key, Time>,
    /// The hosts of each connection.
    hosts: HashMap<u32, (NodeId, NodeId)>,
    is_cut: bool,
    /// The time at which the record was full.
    full_at: Option<Time>,
}

impl Packets {
    /// A record without packets yet.
    pub fn new(spec: Spec, network: &Network) -> Packets {
        let links = (0..2 * network.cables.len() as u32).rev().map(|link| (ends(network, link), link));
        Packets(Arc::new(Mutex::new(Log {
            spec: Spec { most: spec.most.min(MOST_PACKETS), ..spec },
            links: links.collect(),
            travelling: HashMap::new(),
            packets: Vec::new(),
            dropped_at_once: HashMap::new(),
            hosts: HashMap::new(),
            is_cut: false,
            full_at: None,
        })))
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // A panic elsewhere ends the run anyway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The packets as JSON: `Packets` of the protocol. `end` is the end of the run.
    pub fn to_json(&self, network: &Network, end: Time, columns: &mut Columns) -> Json {
        let mut log = self.log();
        log.packets.sort_by_key(|packet| packet.sent);
        let hops = Hops::of(&log, network);
        let packets = &log.packets;
        let seconds = |time: Time| if time == Time::NEVER { f64::NAN } else { time.as_secs_f64() };
        let numbers = |field: fn(&Packet) -> u32| Data::U32(packets.iter().map(field).collect());
        let small = |field: fn(&Packet) -> u8| Data::U8(packets.iter().map(field).collect());
        let times =
            |field: fn(&Packet) -> Time| Data::F64(packets.iter().map(|packet| seconds(field(packet))).collect());
        let fields = [
            ("flow", numbers(|packet| packet.flow)),
            ("kind", small(|packet| packet.kind)),
            ("class", small(|packet| packet.class)),
            ("segment", numbers(|packet| packet.segment)),
            ("offset", Data::F64(packets.iter().map(|packet| packet.offset as f64).collect())),
            ("bytes", numbers(|packet| packet.bytes)),
            ("isRetransmission", small(|packet| u8::from(packet.is_retransmission))),
            ("isMarked", small(|packet| u8::from(packet.is_marked))),
            ("sentS", times(|packet| packet.sent)),
            ("endS", times(|packet| packet.end)),
            ("fate", small(|packet| packet.fate)),
            ("firstHop", Data::U32(hops.first)),
            ("hopLink", Data::U32(hops.link)),
            ("hopEnterS", Data::F64(hops.enter_s)),
            ("hopStartS", Data::F64(hops.start_s)),
            ("hopLeaveS", Data::F64(hops.leave_s)),
        ];
        let to = log.full_at.unwrap_or(log.spec.to.min(end));
        let head = Json::object([
            ("count", Json::whole(packets.len() as u64)),
            ("isCut", Json::Flag(log.is_cut)),
            ("fromS", Json::Number(log.spec.from.as_secs_f64())),
            ("toS", Json::Number(to.as_secs_f64())),
        ]);
        fields.into_iter().fold(head, |json, (name, data)| json.with(name, columns.put(data)))
    }
}

impl Log {
    fn sent(&mut self, packet: &PacketEvent) {
        let Spec { from, to, most, .. } = self.spec;
        let key = Key::of(packet);
        let dropped = self.dropped_at_once.remove(&key).filter(|&at| at == packet.now);
        let is_inside = (from..=to).contains(&packet.now);
        let has_room = self.packets.len() < most as usize;
        if is_inside && !has_room {
            self.is_cut = true;
            self.full_at = self.full_at.or(Some(packet.now));
        }
        let record = (is_inside && has_room).then_some(self.packets.len());
        if record.is_some() {
            let (segment, offset) = match packet.kind {
                Kind::Data { segment, offset_bytes, .. } => (segment, offset_bytes),
                Kind::Acknowledgment { cumulative, acknowledged_bytes, .. } => (cumulative, acknowledged_bytes),
                Kind::Handshake { .. } => (0, 0),
            };
            self.packets.push(Packet {
                flow: packet.flow,
                connection: packet.connection,
                kind: key.kind,
                class: packet.class,
                segment,
                offset,
                bytes: packet.wire_bytes,
                is_retransmission: key.is_retransmission,
                is_marked: packet.is_marked,
                sent: packet.now,
                end: dropped.unwrap_or(Time::NEVER),
                fate: if dropped.is_some() { DROPPED } else { UNKNOWN },
                hops: Vec::new(),
            });
        }
        if dropped.is_none() {
            let travelling = Travelling { sent: packet.now, record, at: None };
            self.travelling.entry(key).or_default().push_back(travelling);
        }
    }

    /// The packet left the queue from one node towards the next.
    fn crossed(&mut self, packet: &PacketEvent, from: NodeId, to: NodeId) {
        let Some(&link) = self.links.get(&(from, to)) else { return };
        let Some(packets) = self.travelling.get_mut(&Key::of(packet)) else { return };
        let is_it = |one: &&mut Travelling| one.sent <= packet.now && one.at.is_none_or(|at| at == from);
        // The furthest one is first, since packets do not overtake their copies.
        let Some(one) = packets.iter_mut().find(is_it) else { return };
        one.at = Some(to);
        if let Some(record) = one.record {
            self.packets[record].hops.push((link, packet.now));
            self.packets[record].is_marked |= packet.is_marked;
        }
    }

    fn ended(&mut self, packet: &PacketEvent, fate: u8) {
        let key = Key::of(packet);
        let found = self.travelling.get_mut(&key).and_then(|packets| {
            let place = packets.iter().position(|one| one.sent <= packet.now)?;
            packets.remove(place)
        });
        let Some(one) = found else {
            if fate == DROPPED {
                self.dropped_at_once.insert(key, packet.now);
            }
            return;
        };
        if self.travelling.get(&key).is_some_and(VecDeque::is_empty) {
            self.travelling.remove(&key);
        }
        let Some(record) = one.record else { return };
        let record = &mut self.packets[record];
        (record.end, record.fate) = (packet.now, fate);
        record.is_marked |= packet.is_marked;
    }
}

impl Observer for Packets {
    fn interest(&self) -> Interest {
        let log = self.log();
        let packets = log.spec.flow.map_or(Flows::All, Flows::One);
        Interest { packets, ports: log.links.keys().copied().collect(), ..Interest::default() }
    }

    fn on_open(&mut self, flow: &Opened) {
        self.log().hosts.entry(flow.connection).or_insert((flow.src, flow.dst));
    }

    fn on_packet(&mut self, packet: &PacketEvent) {
        let mut log = self.log();
        let is_data = matches!(packet.kind, Kind::Data { .. });
        match packet.step {
            Step::Sent { .. } => log.sent(packet),
            Step::Crossed { from, to } => log.crossed(packet, from, to),
            // Data ends at the interface, where its last bit arrives; other packets report their receipt alone.
            Step::Arrived { .. } => log.ended(packet, ARRIVED),
            Step::Received { .. } if !is_data => log.ended(packet, ARRIVED),
            Step::Received { .. } => {}
            Step::Dropped => log.ended(packet, DROPPED),
        }
    }

    fn finish(self: Box<Self>, _records: &mut Records) {}
}

/// The hops of all packets, one after the other.
#[derive(Debug, Default)]
struct Hops {
    first: Vec<u32>,
    link: Vec<u32>,
    enter_s: Vec<f64>,
    start_s: Vec<f64>,
    leave_s: Vec<f64>,
}

impl Hops {
    /// The hops of the packets in `log`. The last hop of a packet is not reported: its link leads to the packet's host,
    /// or to the place of the drop.
    fn of(log: &Log, network: &Network) -> Hops {
        let next = next_links(log, network);
        let mut hops = Hops::default();
        for packet in &log.packets {
            hops.first.push(hops.link.len() as u32);
            let mut enters = packet.sent;
            for &(link, leaves) in &packet.hops {
                hops.put(network, packet, link, enters, Some(leaves));
                enters = leaves + network.cables[link as usize / 2].delay;
            }
            let Some((source, destination)) = log
                .hosts
                .get(&packet.connection)
                .map(|&(src, dst)| if goes_back(packet.kind) { (dst, src) } else { (src, dst) })
            else {
                continue;
            };
            let at = packet.hops.last().map_or(source, |&(link, _)| ends(network, link).1);
            let direct = log.links.get(&(at, destination)).copied();
            let key = (packet.connection, goes_back(packet.kind), at);
            let Some(link) = direct.or_else(|| next.get(&key).copied()) else { continue };
            let delay = network.cables[link as usize / 2].delay;
            let has_left = packet.fate == ARRIVED && direct.is_some();
            let leaves = has_left.then(|| Time::ZERO + (packet.end - Time::ZERO).saturating_sub(delay));
            if packet.fate != UNKNOWN || packet.end == Time::NEVER {
                hops.put(network, packet, link, enters, leaves);
            }
        }
        hops.first.push(hops.link.len() as u32);
        hops
    }

    fn put(&mut self, network: &Network, packet: &Packet, link: u32, enters: Time, leaves: Option<Time>) {
        let cable = &network.cables[link as usize / 2];
        let serialisation = cable.rates[link as usize % 2].time_for(u64::from(packet.bytes));
        let start = |leaves: Time| (Time::ZERO + (leaves - Time::ZERO).saturating_sub(serialisation)).max(enters);
        let seconds = |time: Option<Time>| time.map_or(f64::NAN, |time| time.as_secs_f64());
        self.link.push(link);
        self.enter_s.push(enters.as_secs_f64());
        self.start_s.push(seconds(leaves.map(start)));
        self.leave_s.push(seconds(leaves));
    }
}

/// The next link from a node on the way of a connection's packets, for each direction, as other packets took it.
fn next_links(log: &Log, network: &Network) -> BTreeMap<(u32, bool, NodeId), u32> {
    let mut next = BTreeMap::new();
    for packet in &log.packets {
        for &(link, _) in &packet.hops {
            next.insert((packet.connection, goes_back(packet.kind), ends(network, link).0), link);
        }
    }
    next
}

/// Returns true if a packet travels from a flow's receiver to its sender.
fn goes_back(kind: u8) -> bool {
    kind == ACKNOWLEDGMENT || kind == SYN_ACK
}
