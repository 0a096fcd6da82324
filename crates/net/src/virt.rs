//! Two nodes and the network between them in one process, in virtual time: what a run does depends on its settings and its seed,
//! and on nothing else.
//!
//! In each direction there is one link behind a queue, which serves classes by strict priority or all in one line, and then a
//! delay. It loses, repeats and holds back datagrams at random. Whoever drives it takes events and acts on the nodes:
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

mod both;

pub use both::{Both, Either};

use crate::carrier::{Arrival, AssociationId, Carrier, DEFAULT_DSCP, Datagram};
use crate::flow::MAX_CLASSES;
use crate::identity::{Identity, Trusted};
use crate::node::{Node, NodeConfig, NodeError, NodeEvent};
use crate::quic::{Quic, QuicConfig};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

/// Bytes of Ethernet, IPv4 and UDP before a datagram's payload.
pub const DATAGRAM_HEADER_BYTES: u64 = ETHERNET_HEADER_BYTES + 20 + 8;

/// Of these, those of Ethernet.
const ETHERNET_HEADER_BYTES: u64 = 14;

/// The port of the node that listens.
const PORT: u16 = 7777;

/// One direction of the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// The rate of the link.
    pub rate: Rate,
    /// The delay behind it.
    pub delay: Dur,
    /// So many packets of a class wait at most; of all together, where there are no priorities.
    pub queue_packets: usize,
    /// Class 0 goes first, then 1, and so on; otherwise all are in one line.
    pub priorities: bool,
    /// This share of packets is lost behind the link.
    pub loss: f64,
    /// This share is held back behind the link, for up to `held_for`, so that later ones overtake it.
    pub held: f64,
    /// How long at most.
    pub held_for: Dur,
    /// This share comes twice.
    pub repeated: f64,
    /// Timers of the hosts fire so much late.
    pub lateness: Dur,
    /// What happens to code points.
    pub marks: Marks,
    /// The largest IP packet that the path carries, bytes; what is larger is lost without a word.
    pub mtu_bytes: usize,
}

/// What a network does with code points before its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Nothing.
    Kept,
    /// All become 0.
    Cleared,
    /// The upper three bits become 0, which were IP's precedence once (RFC 9435).
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
            held: 0.0,
            held_for: Dur::from_ms(2),
            repeated: 0.0,
            lateness: Dur::ZERO,
            marks: Marks::Kept,
            mtu_bytes: 9000,
        }
    }
}

#[derive(Debug)]
struct Packet {
    /// That of its code point, as the network sees it.
    class: u8,
    dscp: u8,
    ecn: u8,
    bytes: Vec<u8>,
}

/// What a direction has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayCounts {
    /// Datagrams that crossed the link, by class.
    pub carried: [u64; MAX_CLASSES],
    /// Those for which there was no room, by class.
    pub dropped: [u64; MAX_CLASSES],
    /// Those that were lost behind the link.
    pub lost: u64,
}

#[derive(Debug, Default)]
struct Way {
    queues: [VecDeque<Packet>; MAX_CLASSES],
    free_at: Time,
    counts: WayCounts,
}

/// What can be at either end of a network: it has no socket and no clock.
pub trait Endpoint {
    /// What can happen there.
    type Event;

    /// A UDP datagram came in.
    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]);

    /// Time has passed.
    fn handle_timer(&mut self, now: Time);

    /// When [`handle_timer`](Self::handle_timer) wants to be called.
    fn next_timer(&self) -> Time;

    /// What has happened, oldest first.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Whether [`poll_event`](Self::poll_event) has something to give.
    fn has_events(&self) -> bool;

    /// The next datagrams to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram>;
}

impl<C: Carrier> Endpoint for Node<C> {
    type Event = NodeEvent;

    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        Node::handle_datagram(self, now, arrival, bytes);
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

/// Two nodes, or other ends, and their network. Node 0 connects, node 1 listens.
#[derive(Debug)]
pub struct Virtual<E = Node<Quic>> {
    nodes: [E; 2],
    path: Path,
    addresses: [SocketAddr; 2],
    ways: [Way; 2],
    /// What is under way, by time and order of departure: the node at which it arrives, and the packet.
    flying: BTreeMap<(Time, u64), (usize, Packet)>,
    departures: u64,
    now: Time,
    rng: Stream,
    digest: blake3::Hasher,
}

impl Virtual<Node<Quic>> {
    /// Two nodes with new keys that trust each other, both with these settings.
    ///
    /// # Errors
    /// The settings contradict themselves.
    pub fn new(path: Path, config: NodeConfig, seed: u64) -> Result<Virtual, NodeError> {
        let keys = || Identity::generate().map_err(|error| crate::carrier::CarrierError::Keys(error.to_string()));
        let (client, server) = (keys()?, keys()?);
        let trusted = |peer: &Identity| Trusted::from_iter([peer.fingerprint()]);
        let of_client = QuicConfig::new(client.clone(), trusted(&server));
        let of_server = QuicConfig { listens: true, ..QuicConfig::new(server, trusted(&client)) };
        Virtual::with_carriers(path, config, of_client, of_server, seed)
    }

    /// Two nodes with these carriers, of which the second listens.
    ///
    /// # Errors
    /// The settings contradict themselves.
    pub fn with_carriers(
        path: Path,
        config: NodeConfig,
        client: QuicConfig,
        server: QuicConfig,
        seed: u64,
    ) -> Result<Virtual, NodeError> {
        // Only differences of this instant matter.
        let epoch = Instant::now();
        let node = |carrier: QuicConfig, side: u64| {
            let carrier = QuicConfig { classes: config.classes, seed: Some(seed << 1 | side), ..carrier };
            Node::new(Quic::new(carrier, epoch)?, config.clone())
        };
        Ok(Virtual::between([node(client, 0)?, node(server, 1)?], path, seed))
    }

    /// Node 0 begins an association with node 1.
    ///
    /// # Errors
    /// The carrier refuses.
    pub fn connect(&mut self) -> Result<AssociationId, NodeError> {
        let now = self.now;
        self.nodes[0].connect(now, self.addresses[1])
    }
}

impl<E: Endpoint> Virtual<E> {
    /// The network between these two ends.
    pub fn between(nodes: [E; 2], path: Path, seed: u64) -> Virtual<E> {
        Virtual {
            nodes,
            path,
            addresses: [address_of(0), address_of(1)],
            ways: Default::default(),
            flying: BTreeMap::new(),
            departures: 0,
            now: Time::ZERO,
            rng: Stream::new(seed, Domain::Loss, 0),
            digest: blake3::Hasher::new(),
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// One of the two nodes.
    pub fn node(&mut self, at: usize) -> &mut E {
        &mut self.nodes[at]
    }

    /// The path, to be changed on the way.
    pub fn path_mut(&mut self) -> &mut Path {
        &mut self.path
    }

    /// Node 0 has another address from now on, as behind an address translation that has forgotten it; what is sent to the old one
    /// is lost.
    pub fn move_client(&mut self) {
        let port = self.addresses[0].port();
        self.addresses[0].set_port(port + 1);
    }

    /// What the direction from node `from` has done.
    pub fn counts(&self, from: usize) -> WayCounts {
        self.ways[from].counts
    }

    /// A digest of all datagrams until now: their times, directions, classes and sizes.
    pub fn digest(&self) -> String {
        self.digest.finalize().to_hex().to_string()
    }

    /// The next event of a node, or `None` where none comes until `limit`.
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
            let link = |way: &Way| if way.is_empty() { Time::NEVER } else { way.free_at };
            let links = self.ways.iter().map(link).min().unwrap_or(Time::NEVER);
            let lateness = self.path.lateness;
            let timers = self.nodes.iter().map(|node| node.next_timer().saturating_add(lateness)).min();
            let arrival = self.flying.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let next = arrival.min(links).min(timers.unwrap_or(Time::NEVER).max(self.now + Dur::from_ns(1)));
            if next > limit {
                self.now = limit;
                return None;
            }
            self.now = next;
            self.receive();
        }
    }

    /// Takes what the nodes have to send to the queues, and from these to the links. Returns whether a node has something to say.
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
                    self.ways[from].enqueue(packet, &self.path);
                }
            }
            self.serve(from);
        }
        // What the nodes have noticed while sending comes first.
        for at in 0..2 {
            if self.nodes[at].has_events() {
                return true;
            }
        }
        false
    }

    /// Begins the transmissions that begin now or would have begun.
    fn serve(&mut self, from: usize) {
        let Path { rate, delay, loss, held, held_for, repeated, .. } = self.path;
        while self.ways[from].free_at <= self.now
            && let Some(packet) = self.ways[from].dequeue()
        {
            let wire_bytes = packet.bytes.len() as u64 + DATAGRAM_HEADER_BYTES;
            let way = &mut self.ways[from];
            way.free_at = self.now + rate.time_for(wire_bytes);
            let departed = way.free_at;
            self.digest.update(&departed.as_ps().to_be_bytes());
            self.digest.update(&[from as u8, packet.class]);
            self.digest.update(&wire_bytes.to_be_bytes());
            // Each packet takes the same number of draws, so that a change of one share leaves the others' fates.
            let [is_lost, is_held, is_repeated] = [loss, held, repeated].map(|share| self.rng.unit() < share);
            let extra = held_for.scaled(self.rng.unit());
            let way = &mut self.ways[from];
            if is_lost || wire_bytes - ETHERNET_HEADER_BYTES > self.path.mtu_bytes as u64 {
                way.counts.lost += 1;
                continue;
            }
            let arrives = departed + delay + if is_held { extra } else { Dur::ZERO };
            if is_repeated {
                let copy = Packet { bytes: packet.bytes.clone(), ..packet };
                self.flying.insert((arrives + extra, self.departures), (1 - from, copy));
                self.departures += 1;
            }
            self.flying.insert((arrives, self.departures), (1 - from, packet));
            self.departures += 1;
        }
    }

    /// What arrives now, and timers that fire.
    fn receive(&mut self) {
        let now = self.now;
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= now) {
            let (at, packet) = entry.remove();
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

impl Way {
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

/// Where a node is.
pub fn address_of(node: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1 + node as u8), if node == 1 { PORT } else { 1000 }))
}

#[cfg(test)]
mod path_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod watch_tests;
