//! A carrier that is controlled by the fuzzer, and the delivery of frames between two of them.

use super::input::Bytes as Input;
use bytes::Bytes;
use sparelane_core::{Dur, Time};
use sparelane_net::carrier::{Arrival, AssociationId, Carrier, CarrierError, CarrierEvent, CloseReason, Datagram};
use sparelane_net::identity::Fingerprint;
use sparelane_net::node::{Node, NodeConfig};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

pub const ASSOCIATION: AssociationId = AssociationId(1);
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7777);

/// A carrier that queues frames and messages instead of sending them.
#[derive(Debug, Default)]
pub struct FuzzCarrier {
    pub events: VecDeque<CarrierEvent>,
    pub sent: VecDeque<(u8, Vec<u8>)>,
    pub sent_control: VecDeque<u8>,
    pub received_control: VecDeque<Bytes>,
    pub is_closed: bool,
}

impl Carrier for FuzzCarrier {
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
        self.sent_control.extend(bytes);
        bytes.len()
    }

    fn read_control(&mut self, _: AssociationId) -> Option<Bytes> {
        self.received_control.pop_front()
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

/// Returns a node with an open association and all of its classes open.
///
/// # Panics
/// If the settings are invalid.
pub fn opened(config: &NodeConfig) -> Node<FuzzCarrier> {
    let mut carrier = FuzzCarrier::default();
    let association = ASSOCIATION;
    carrier.events.push_back(CarrierEvent::Opened { association, peer: Fingerprint::of(b"peer"), address: PEER });
    for class in 0..config.classes {
        carrier.events.push_back(CarrierEvent::Class { association, class, open: true });
    }
    Node::new(carrier, config.clone()).expect("valid settings")
}

/// Processes the queued events and the timers of a node.
pub fn turn(node: &mut Node<FuzzCarrier>, now: Time) {
    let arrival = Arrival { from: PEER, dscp: 0, ecn: 0, received_ns: now.as_ps() / 1000 };
    node.handle_datagram(now, arrival, &[]);
    if node.next_timer() <= now {
        node.handle_timer(now);
    }
}

/// Delivers the frames and messages that one node has sent to the other, with random changes. Returns the number of
/// frames.
pub fn deliver(input: &mut Input<'_>, now: Time, from: &mut FuzzCarrier, to: &mut FuzzCarrier) -> usize {
    let mut delivered = 0;
    for _ in 0..from.sent.len().min(64) {
        let Some((class, frame)) = from.sent.pop_front() else { break };
        delivered += 1;
        for (class, frame) in changed(input, class, frame) {
            let (association, marked) = (ASSOCIATION, input.byte() < 8);
            let (received_ns, bytes) = (now.as_ps() / 1000, frame.into());
            to.events.push_back(CarrierEvent::Frame { association, class, marked, received_ns, bytes });
        }
    }
    let mut control: Vec<u8> = from.sent_control.drain(..).collect();
    if !control.is_empty() {
        if input.byte() < 2 {
            let place = usize::from(input.byte()) % control.len();
            control[place] = input.byte();
        }
        to.received_control.push_back(control.into());
        to.events.push_back(CarrierEvent::Control { association: ASSOCIATION });
    }
    delivered
}

/// Returns the frames that arrive for one frame sent: none, the same, a changed or additional ones.
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
