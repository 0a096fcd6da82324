//! Two nodes and the network between them in one process, in virtual time.
//!
//! A run depends on its settings and its seed only. Each direction has one link behind a queue, which serves classes by
//! strict priority or in order of arrival, followed by a delay. Datagrams are lost, duplicated and reordered at random.
//! The caller takes events and acts on the nodes:
//!
//! ```
//! use sparelane_net::virt::{Path, Virtual};
//! use sparelane_net::node::{NodeConfig, NodeEvent};
//! use sparelane_core::{Dur, Time};
//!
//! let mut net = Virtual::new(Path::default(), NodeConfig::default(), 1)?;
//! net.connect()?;
//! let mut received = 0;
//! while let Some((node, event)) = net.next_event(Time::ZERO + Dur::from_secs(10)) {
//!     match (node, event) {
//!         (0, NodeEvent::Opened { association, .. }) => {
//!             let now = net.now();
//!             let flow = net.node(0).open_flow(now, association, None)?;
//!             net.node(0).write(flow, vec![7; 100_000].into());
//!             net.node(0).finish(flow);
//!         }
//!         (1, NodeEvent::Readable(flow)) => while let Some(bytes) = net.node(1).read(flow) {
//!             received += bytes.len();
//!         },
//!         (0, NodeEvent::Sent(_)) => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!(received, 100_000);
//! # Ok::<(), sparelane_net::node::NodeError>(())
//! ```

mod colocated;

pub use colocated::{Colocated, Either};

use crate::carrier::{Arrival, AssociationId, Carrier, DEFAULT_DSCP, Datagram, Obstacle, Unreachable};
use crate::flow::MAX_CLASSES;
use crate::identity::{Identity, Trusted};
use crate::node::{Node, NodeConfig, NodeError, NodeEvent};
use crate::quic::{Quic, QuicConfig};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

/// Header bytes of a datagram: Ethernet, IPv4 and UDP.
pub const DATAGRAM_HEADER_BYTES: u64 = ETHERNET_HEADER_BYTES + 20 + 8;

/// The part of Ethernet.
const ETHERNET_HEADER_BYTES: u64 = 14;

/// The port of the listening node.
const PORT: u16 = 7777;

/// Properties of the network, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// The rate of the link.
    pub rate: Rate,
    /// The delay after the link.
    pub delay: Dur,
    /// The length of the queue, in packets; with priorities, of the queue of each class.
    pub queue_packets: usize,
    /// Serves classes by strict priority, class 0 first; otherwise in order of arrival.
    pub priorities: bool,
    /// The probability that a packet is lost after the link.
    pub loss: f64,
    /// The probability that a packet is delayed after the link by up to `reordered_by`, so that later ones overtake it.
    pub reordered: f64,
    /// The maximum of that extra delay.
    pub reordered_by: Dur,
    /// The probability that a packet is duplicated.
    pub duplicated: f64,
    /// The lateness of the hosts' timers.
    pub lateness: Dur,
    /// The treatment of code points.
    pub marks: Marks,
    /// The largest IP packet that the path carries, bytes; larger ones are dropped silently.
    pub mtu_bytes: usize,
}

/// What a network does with code points before its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Keeps them.
    Kept,
    /// Sets all to 0.
    Cleared,
    /// Clears the upper three bits, the former IP precedence (RFC 9435).
    WithoutPrecedence,
}

impl Marks {
    fn pass(self, dscp: u8) -> u8 {
        match self {
            Marks::Kept => dscp,
            Marks::Cleared => 0,
            Marks::WithoutPrecedence => dscp & 7,
        }
    }
}

impl Default for Path {
    fn default() -> Path {
        Path {
            rate: Rate::from_mbps(100),
            delay: Dur::from_ms(20),
            queue_packets: 350,
            priorities: true,
            loss: 0.0,
            reordered: 0.0,
            reordered_by: Dur::from_ms(2),
            duplicated: 0.0,
            lateness: Dur::ZERO,
            marks: Marks::Kept,
            mtu_bytes: 9000,
        }
    }
}

#[derive(Debug)]
struct Packet {
    /// The class that the network derives from the code point.
    class: u8,
    dscp: u8,
    ecn: u8,
    bytes: Vec<u8>,
}

/// Totals of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounts {
    /// Datagrams that crossed the link, by class.
    pub carried: [u64; MAX_CLASSES],
    /// Datagrams that found the queue full, by class.
    pub dropped: [u64; MAX_CLASSES],
    /// Datagrams lost after the link.
    pub lost: u64,
}

#[derive(Debug, Default)]
struct Direction {
    queues: [VecDeque<Packet>; MAX_CLASSES],
    free_at: Time,
    counts: DirectionCounts,
}

/// An end of a network, without socket or clock.
pub trait Endpoint {
    /// Its events.
    type Event;

    /// Handles a received UDP datagram.
    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]);

    /// Handles a report that packets do not reach their destination.
    fn handle_unreachable(&mut self, _: Time, _: Unreachable) {}

    /// Handles expired timers.
    fn handle_timer(&mut self, now: Time);

    /// Returns the time at which [`handle_timer`](Self::handle_timer) should be called next.
    fn next_timer(&self) -> Time;

    /// Returns the next event, oldest first.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Returns true if [`poll_event`](Self::poll_event) has an event.
    fn has_events(&self) -> bool;

    /// Returns the next datagrams to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram>;
}

impl<C: Carrier> Endpoint for Node<C> {
    type Event = NodeEvent;

    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        Node::handle_datagram(self, now, arrival, bytes);
    }

    fn handle_unreachable(&mut self, now: Time, report: Unreachable) {
        Node::handle_unreachable(self, now, report);
    }

    fn handle_timer(&mut self, now: Time) {
        Node::handle_timer(self, now);
    }

    fn next_timer(&self) -> Time {
        Node::next_timer(self)
    }

    fn poll_event(&mut self) -> Option<NodeEvent> {
        Node::poll_event(self)
    }

    fn has_events(&self) -> bool {
        Node::has_events(self)
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        Node::poll_transmit(self, now)
    }
}

/// Two ends, usually nodes, and their network. Node 0 connects, node 1 listens.
#[derive(Debug)]
pub struct Virtual<E = Node<Quic>> {
    nodes: [E; 2],
    path: Path,
    addresses: [SocketAddr; 2],
    directions: [Direction; 2],
    /// Packets after the link, by arrival time and order of departure, with the receiving node.
    in_flight: BTreeMap<(Time, u64), (usize, Packet)>,
    departures: u64,
    /// Directions, by their first node, in which all packets are lost.
    blocked: [bool; 2],
    /// The obstacle between the network and each node. Senders of packets receive reports on it.
    obstacles: [Option<Obstacle>; 2],
    /// Reports on their way, in order of arrival, with the receiving node.
    reports: VecDeque<(Time, usize, Unreachable)>,
    now: Time,
    rng: Stream,
    digest: blake3::Hasher,
}

impl Virtual<Node<Quic>> {
    /// Creates two nodes with new keys that trust each other and share a configuration.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(path: Path, config: NodeConfig, seed: u64) -> Result<Virtual, NodeError> {
        let keys = || Identity::generate().map_err(|error| crate::carrier::CarrierError::Keys(error.to_string()));
        let (client, server) = (keys()?, keys()?);
        let trusted = |peer: &Identity| Trusted::from_iter([peer.fingerprint()]);
        let of_client = QuicConfig::new(client.clone(), trusted(&server));
        let of_server = QuicConfig { listens: true, ..QuicConfig::new(server, trusted(&client)) };
        Virtual::with_carriers(path, config, of_client, of_server, seed)
    }

    /// Creates two nodes with these carriers; the second one listens.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn with_carriers(
        path: Path,
        config: NodeConfig,
        client: QuicConfig,
        server: QuicConfig,
        seed: u64,
    ) -> Result<Virtual, NodeError> {
        // Only differences from this instant matter, so that runs stay reproducible.
        let epoch = Instant::now();
        let node = |carrier: QuicConfig, side: u64| {
            let local = carrier.listens.then(|| address_of(side as usize));
            let carrier = QuicConfig { classes: config.classes, seed: Some(seed << 1 | side), local, ..carrier };
            Node::new(Quic::new(carrier, epoch)?, config.clone())
        };
        Ok(Virtual::between([node(client, 0)?, node(server, 1)?], path, seed))
    }

    /// Kills a node and starts it again with the same configuration. Its associations and flows
    /// end without a message to their peers. `seed` determines its connection IDs.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn restart(&mut self, at: usize, seed: u64) -> Result<(), NodeError> {
        let old = &self.nodes[at];
        let carrier = old.carrier().restarted(seed)?;
        let node = Node::new(carrier, old.config().clone())?;
        self.replace(at, node);
        Ok(())
    }

    /// Starts an association from node 0 to node 1.
    ///
    /// # Errors
    /// The carrier refuses.
    pub fn connect(&mut self) -> Result<AssociationId, NodeError> {
        let now = self.now;
        self.nodes[0].connect(now, self.addresses[1])
    }
}

impl<E: Endpoint> Virtual<E> {
    /// Creates the network between two ends.
    pub fn between(nodes: [E; 2], path: Path, seed: u64) -> Virtual<E> {
        Virtual {
            nodes,
            path,
            addresses: [address_of(0), address_of(1)],
            directions: Default::default(),
            in_flight: BTreeMap::new(),
            departures: 0,
            blocked: [false; 2],
            obstacles: [None; 2],
            reports: VecDeque::new(),
            now: Time::ZERO,
            rng: Stream::new(seed, Domain::Loss, 0),
            digest: blake3::Hasher::new(),
        }
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// One of the two nodes.
    pub fn node(&mut self, at: usize) -> &mut E {
        &mut self.nodes[at]
    }

    /// The path, for changes during a run.
    pub fn path_mut(&mut self) -> &mut Path {
        &mut self.path
    }

    /// Changes the address of node 0, like an address translation that has lost its state. Packets to the old address
    /// are lost.
    pub fn move_client(&mut self) {
        let port = self.addresses[0].port();
        self.addresses[0].set_port(port + 1);
    }

    /// Replaces a node, like a process that is killed and started again. Returns the old one.
    pub fn replace(&mut self, at: usize, node: E) -> E {
        std::mem::replace(&mut self.nodes[at], node)
    }

    /// Sets the addresses of both nodes.
    pub fn set_addresses(&mut self, addresses: [SocketAddr; 2]) {
        self.addresses = addresses;
    }

    /// Loses all packets from node `from`, without a report, or lets them pass again.
    pub fn set_blocked(&mut self, from: usize, is_blocked: bool) {
        self.blocked[from] = is_blocked;
    }

    /// Reports each packet to node `at` to its sender instead of delivering it, or delivers packets
    /// again.
    pub fn set_obstacle(&mut self, at: usize, obstacle: Option<Obstacle>) {
        self.obstacles[at] = obstacle;
    }

    /// Delivers a report to a node now.
    pub fn report(&mut self, at: usize, report: Unreachable) {
        self.nodes[at].handle_unreachable(self.now, report);
    }

    /// The totals of the direction from node `from`.
    pub fn counts(&self, from: usize) -> DirectionCounts {
        self.directions[from].counts
    }

    /// A digest of all datagrams so far: their times, directions, classes and sizes.
    pub fn digest(&self) -> String {
        self.digest.finalize().to_hex().to_string()
    }

    /// Returns the next event and its node, or `None` after `limit`.
    pub fn next_event(&mut self, limit: Time) -> Option<(usize, E::Event)> {
        loop {
            for at in 0..2 {
                if let Some(event) = self.nodes[at].poll_event() {
                    return Some((at, event));
                }
            }
            if self.send() {
                continue;
            }
            let link = |direction: &Direction| if direction.is_empty() { Time::NEVER } else { direction.free_at };
            let links = self.directions.iter().map(link).min().unwrap_or(Time::NEVER);
            let lateness = self.path.lateness;
            let timers = self.nodes.iter().map(|node| node.next_timer().saturating_add(lateness)).min();
            let arrival = self.in_flight.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let report = self.reports.front().map_or(Time::NEVER, |(at, ..)| *at);
            let next =
                arrival.min(report).min(links).min(timers.unwrap_or(Time::NEVER).max(self.now + Dur::from_ns(1)));
            if next > limit {
                self.now = limit;
                return None;
            }
            self.now = next;
            self.receive();
        }
    }

    /// Moves datagrams from the nodes to the queues, and from the queues to the links. Returns true if a node has an
    /// event.
    fn send(&mut self) -> bool {
        for from in 0..2 {
            while let Some(datagram) = self.nodes[from].poll_transmit(self.now) {
                if datagram.to != self.addresses[1 - from] {
                    continue;
                }
                for bytes in datagram.segments() {
                    let sent = DEFAULT_DSCP.get(usize::from(datagram.class)).or(DEFAULT_DSCP.last());
                    let dscp = self.path.marks.pass(sent.copied().unwrap_or(0));
                    let class = DEFAULT_DSCP.iter().position(|&known| known == dscp).unwrap_or(0) as u8;
                    let packet = Packet { class, dscp, ecn: datagram.ecn, bytes: bytes.to_vec() };
                    self.directions[from].enqueue(packet, &self.path);
                }
            }
            self.transmit(from);
        }
        // Events that occurred while sending come first.
        for at in 0..2 {
            if self.nodes[at].has_events() {
                return true;
            }
        }
        false
    }

    /// Starts the transmissions that are due by now.
    fn transmit(&mut self, from: usize) {
        let Path { rate, delay, loss, reordered, reordered_by, duplicated, .. } = self.path;
        while self.directions[from].free_at <= self.now
            && let Some(packet) = self.directions[from].dequeue()
        {
            let wire_bytes = packet.bytes.len() as u64 + DATAGRAM_HEADER_BYTES;
            let direction = &mut self.directions[from];
            direction.free_at = self.now + rate.time_for(wire_bytes);
            let departed = direction.free_at;
            self.digest.update(&departed.as_ps().to_be_bytes());
            self.digest.update(&[from as u8, packet.class]);
            self.digest.update(&wire_bytes.to_be_bytes());
            // Each packet takes the same number of draws, so that a changed probability does not affect the others'
            // outcomes.
            let [is_lost, is_reordered, is_duplicated] =
                [loss, reordered, duplicated].map(|share| self.rng.unit() < share);
            let extra = reordered_by.scaled(self.rng.unit());
            let direction = &mut self.directions[from];
            if is_lost || self.blocked[from] || wire_bytes - ETHERNET_HEADER_BYTES > self.path.mtu_bytes as u64 {
                direction.counts.lost += 1;
                continue;
            }
            let arrives = departed + delay + if is_reordered { extra } else { Dur::ZERO };
            if is_duplicated {
                let copy = Packet { bytes: packet.bytes.clone(), ..packet };
                self.in_flight.insert((arrives + extra, self.departures), (1 - from, copy));
                self.departures += 1;
            }
            self.in_flight.insert((arrives, self.departures), (1 - from, packet));
            self.departures += 1;
        }
    }

    /// Delivers the packets that arrive now, and fires timers.
    fn receive(&mut self) {
        let now = self.now;
        while let Some(&(_, at, report)) = self.reports.front().filter(|(at, ..)| *at <= now) {
            self.reports.pop_front();
            self.nodes[at].handle_unreachable(now, report);
        }
        while let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= now) {
            let (at, packet) = entry.remove();
            if let Some(obstacle) = self.obstacles[at] {
                let (to, reporter) = (self.addresses[at], Some(self.addresses[at].ip()));
                self.reports.push_back((now + self.path.delay, 1 - at, Unreachable { to, obstacle, reporter }));
                continue;
            }
            let arrival = Arrival {
                from: self.addresses[1 - at],
                dscp: packet.dscp,
                ecn: packet.ecn,
                received_ns: now.as_ps() / 1000,
            };
            self.nodes[at].handle_datagram(now, arrival, &packet.bytes);
        }
        let lateness = self.path.lateness;
        for node in &mut self.nodes {
            if node.next_timer().saturating_add(lateness) <= now {
                node.handle_timer(now);
            }
        }
    }
}

impl Direction {
    fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    fn enqueue(&mut self, packet: Packet, path: &Path) {
        let class = usize::from(packet.class);
        let queue = &mut self.queues[if path.priorities { class } else { 0 }];
        if queue.len() >= path.queue_packets {
            self.counts.dropped[class] += 1;
        } else {
            queue.push_back(packet);
        }
    }

    fn dequeue(&mut self) -> Option<Packet> {
        let packet = self.queues.iter_mut().find_map(VecDeque::pop_front)?;
        self.counts.carried[usize::from(packet.class)] += 1;
        Some(packet)
    }
}

/// The address of a node.
pub fn address_of(node: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1 + node as u8), if node == 1 { PORT } else { 1000 }))
}

#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod path_tests;
#[cfg(test)]
pub(crate) mod random;
#[cfg(test)]
mod telemetry_tests;
#[cfg(test)]
mod tests;
