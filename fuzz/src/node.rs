//! Two nodes with a tunnel between them, on a carrier that drops, repeats, swaps, changes and invents frames and messages: the
//! whole of what a peer can say once it is trusted.

use super::input::Bytes as Input;
use bytes::Bytes;
use sparelane_core::{Dur, Time};
use sparelane_net::carrier::{Arrival, AssociationId, Carrier, CarrierError, CarrierEvent, CloseReason, Datagram};
use sparelane_net::flow::ReceiveFlow;
use sparelane_net::identity::Fingerprint;
use sparelane_net::node::{ControllerChoice, FlowId, Node, NodeConfig, NodeEvent};
use sparelane_net::tunnel::{Link, LinkConfig, LinkEvent, Taken};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

const ASSOCIATION: AssociationId = AssociationId(1);
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7777);

/// Bytes that a node may hold of all flows, out of order or not read.
const HELD_BYTES: u64 = 100_000;

/// Turns of one conversation.
const MOST_TURNS: usize = 400;

const CONTROLLERS: [&str; 4] = ["rc3", "cubic", "bbr", "rapid"];

/// A carrier whose other end is whoever runs this.
#[derive(Debug, Default)]
struct Puppet {
    events: VecDeque<CarrierEvent>,
    sent: VecDeque<(u8, Vec<u8>)>,
    said: VecDeque<u8>,
    heard: VecDeque<Bytes>,
    is_closed: bool,
}

impl Carrier for Puppet {
    fn connect(&mut self, _: Time, _: SocketAddr) -> Result<AssociationId, CarrierError> {
        Ok(ASSOCIATION)
    }

    fn handle_datagram(&mut self, _: Time, _: Arrival, _: &[u8]) {}

    fn handle_timer(&mut self, _: Time) {}

    fn next_timer(&self) -> Time {
        Time::NEVER
    }

    fn poll_event(&mut self) -> Option<CarrierEvent> {
        self.events.pop_front()
    }

    fn max_frame_bytes(&self, _: AssociationId) -> Option<usize> {
        Some(1000)
    }

    fn round_trip(&self, _: AssociationId) -> Option<Dur> {
        Some(Dur::from_ms(10))
    }

    fn latest_dscp(&self, _: AssociationId, _: u8) -> Option<u8> {
        None
    }

    fn overhead_bytes(&self) -> usize {
        50
    }

    fn send(&mut self, _: Time, _: AssociationId, class: u8, frames: &mut dyn Iterator<Item = Vec<u8>>) {
        self.sent.extend(frames.map(|frame| (class, frame)));
    }

    fn write_control(&mut self, _: AssociationId, bytes: &[u8]) -> usize {
        self.said.extend(bytes);
        bytes.len()
    }

    fn read_control(&mut self, _: AssociationId) -> Option<Bytes> {
        self.heard.pop_front()
    }

    fn close(&mut self, _: Time, association: AssociationId, _: u32, _: &str) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.events.push_back(CarrierEvent::Closed { association, reason: CloseReason::Here });
        }
    }

    fn poll_transmit(&mut self, _: Time) -> Option<Datagram> {
        None
    }
}

struct Site {
    node: Node<Puppet>,
    link: Link,
}

impl Site {
    fn new(config: &NodeConfig, serves: bool) -> Site {
        let mut carrier = Puppet::default();
        let association = ASSOCIATION;
        carrier.events.push_back(CarrierEvent::Opened { association, peer: Fingerprint::of(b"peer"), address: PEER });
        for class in 0..config.classes {
            carrier.events.push_back(CarrierEvent::Class { association, class, open: true });
        }
        let node = Node::new(carrier, config.clone()).expect("settings that fit");
        let of_link = LinkConfig { max_connections: 8, buffer_bytes: 50_000 };
        let link = if serves { Link::serving(ASSOCIATION, of_link) } else { Link::dialing(ASSOCIATION, of_link) };
        Site { node, link }
    }

    /// Takes in what came, and does what is due. Returns whether the association lives.
    fn turn(&mut self, now: Time) -> bool {
        let arrival = Arrival { from: PEER, dscp: 0, ecn: 0, received_ns: now.as_ps() / 1000 };
        self.node.handle_datagram(now, arrival, &[]);
        if self.node.next_timer() <= now {
            self.node.handle_timer(now);
        }
        while let Some(event) = self.node.poll_event() {
            if self.link.handle_event(now, &mut self.node, &event).is_err() {
                return false;
            }
            if let NodeEvent::Incoming(flow) = event {
                assert!(self.node.receiving(flow).is_some() || flow.association == ASSOCIATION);
            }
        }
        while let Some(event) = self.link.poll_event() {
            if let LinkEvent::Connect { connection, .. } = event
                && self.link.handle_connected(now, &mut self.node, connection).is_err()
            {
                return false;
            }
        }
        // A carrier that has nothing to transmit has the flows send into itself.
        assert!(self.node.poll_transmit(now).is_none());
        let held = (0..64).filter_map(|flow| self.node.receiving(FlowId { association: ASSOCIATION, flow }));
        assert!(held.map(ReceiveFlow::held_bytes).sum::<u64>() <= 2 * HELD_BYTES);
        assert!(self.link.len() <= 9);
        true
    }

    /// An application does something with a connection.
    fn act(&mut self, now: Time, input: &mut Input<'_>, dials: bool) {
        let connection = u32::from(input.byte() % 4);
        match input.byte() % 8 {
            0 if dials => {
                if let Ok(target) = "host:1".parse() {
                    // What is refused at a limit is refused.
                    let _ = self.link.open(now, &mut self.node, target);
                }
            }
            1 | 2 => {
                let room = self.link.room(&self.node, connection).min(u64::from(input.byte()) * 100);
                self.link.handle_bytes(&mut self.node, connection, vec![7; room as usize].into());
            }
            3 if input.byte() < 32 => self.link.handle_end(&mut self.node, connection),
            4 if input.byte() < 4 => {
                let _ = self.link.handle_broken(&mut self.node, connection, "broken");
            }
            _ => while let Taken::Bytes(_) = self.link.take(&mut self.node, connection) {},
        }
    }
}

/// What becomes of a frame on its way.
fn changed(input: &mut Input<'_>, class: u8, mut frame: Vec<u8>) -> Vec<(u8, Vec<u8>)> {
    match input.byte() {
        0..=15 => vec![],
        16..=31 => vec![(class, frame.clone()), (class, frame)],
        32..=63 => {
            let at = usize::from(input.byte()) % frame.len().max(1);
            if let Some(byte) = frame.get_mut(at.min(40)) {
                *byte ^= input.byte();
            }
            vec![(class, frame)]
        }
        64..=71 => {
            frame.truncate(usize::from(input.byte()));
            vec![(class, frame)]
        }
        72..=79 => vec![(input.byte() % 8, frame)],
        80..=87 => {
            let noise = (0..input.byte() % 64).map(|_| input.byte()).collect();
            vec![(class, frame), (class, noise)]
        }
        _ => vec![(class, frame)],
    }
}

/// Runs one conversation; returns how many frames crossed before it ended.
///
/// # Panics
/// A node panics, holds too much, or has more connections than its limit.
pub fn check(bytes: &[u8]) -> usize {
    let mut input = Input(bytes);
    let config = NodeConfig {
        controller: ControllerChoice::named(CONTROLLERS[usize::from(input.byte() % 4)]),
        classes: 1 + input.byte() % 4,
        window_bytes: 20_000 + u64::from(input.byte()) * 200,
        held_bytes: HELD_BYTES,
        max_flows: 16,
        ..NodeConfig::default()
    };
    let mut sites = [Site::new(&config, false), Site::new(&config, true)];
    let (mut now, mut crossed) = (Time::ZERO, 0);
    for _ in 0..MOST_TURNS {
        now += Dur::from_us(1 + (input.scaled() >> 46));
        for at in 0..2 {
            if !sites[at].turn(now) {
                return crossed;
            }
            sites[at].act(now, &mut input, at == 0);
            for _ in 0..sites[at].node.carrier().sent.len().min(64) {
                let Some((class, frame)) = sites[at].node.carrier_mut().sent.pop_front() else { break };
                let other = sites[1 - at].node.carrier_mut();
                crossed += 1;
                for (class, frame) in changed(&mut input, class, frame) {
                    let (association, marked) = (ASSOCIATION, input.byte() < 8);
                    let (received_ns, bytes) = (now.as_ps() / 1000, frame.into());
                    other.events.push_back(CarrierEvent::Frame { association, class, marked, received_ns, bytes });
                }
            }
            let mut said: Vec<u8> = sites[at].node.carrier_mut().said.drain(..).collect();
            if !said.is_empty() {
                if input.byte() < 2 {
                    let place = usize::from(input.byte()) % said.len();
                    said[place] = input.byte();
                }
                let other = sites[1 - at].node.carrier_mut();
                other.heard.push_back(said.into());
                other.events.push_back(CarrierEvent::Control { association: ASSOCIATION });
            }
        }
        if input.is_over() {
            break;
        }
    }
    crossed
}
