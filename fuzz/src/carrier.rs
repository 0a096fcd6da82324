//! Fuzzes a listening QUIC carrier with three peers: a lawful one, a trusted one that sends arbitrary bytes as its hello
//! and control data, and a stranger. The network drops, duplicates, changes, replays and invents datagrams, which covers
//! Retry, tokens, handshakes and hellos.
//!
//! The keys of a TLS session are random, so an input repeats only approximately.

use super::input::Bytes as Input;
use sparelane_core::{Dur, Time};
use sparelane_net::carrier::{Arrival, AssociationId, Carrier, CarrierEvent, DEFAULT_DSCP, Datagram};
use sparelane_net::identity::{Fingerprint, Identity, Trusted};
use sparelane_net::quic::plain::{PlainController, PlainStream};
use sparelane_net::quic::{Quic, QuicConfig};
use sparelane_net::virt::Endpoint;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::time::Instant;

/// The largest number of rounds per run.
const MAX_ROUNDS: usize = 60;

/// The limit of associations of the listening side.
const MAX_ASSOCIATIONS: usize = 4;

/// The number of recorded datagrams that may be replayed.
const MAX_RECORDED: usize = 64;

/// The content of the frames of the lawful peer.
const LAWFUL: u8 = 0x55;

/// The keys of the listening side, the lawful peer, the trusted hostile one and the stranger.
fn keys() -> &'static [Identity; 4] {
    static KEYS: OnceLock<[Identity; 4]> = OnceLock::new();
    KEYS.get_or_init(|| std::array::from_fn(|_| Identity::generate().expect("a key")))
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 1000 + u16::from(host)))
}

fn trusting(peers: &[&Identity]) -> Trusted {
    peers.iter().map(|peer| peer.fingerprint()).collect()
}

/// A peer of the listening side.
enum Peer {
    Lawful(Box<Quic>),
    /// A plain QUIC connection that sends chosen bytes on its stream.
    Stream(Box<PlainStream>),
}

impl Peer {
    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        match self {
            Peer::Lawful(quic) => quic.handle_datagram(now, arrival, bytes),
            Peer::Stream(stream) => stream.handle_datagram(now, arrival, bytes),
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        match self {
            Peer::Lawful(quic) => {
                if quic.next_timer() <= now {
                    quic.handle_timer(now);
                }
                quic.poll_transmit(now)
            }
            Peer::Stream(stream) => {
                if stream.next_timer() <= now {
                    stream.handle_timer(now);
                }
                stream.poll_transmit(now)
            }
        }
    }
}

/// The listening side and what it has reported.
struct Listening {
    quic: Quic,
    /// The key of each association.
    peers: BTreeMap<AssociationId, Fingerprint>,
    /// The number of associations so far.
    opened: usize,
}

impl Listening {
    /// Checks the events: no peer gets what it has no right to.
    fn check_events(&mut self) {
        let [_, lawful, hostile, _] = keys();
        while let Some(event) = self.quic.poll_event() {
            match event {
                CarrierEvent::Opened { association, peer, .. } => {
                    assert!([lawful, hostile].map(Identity::fingerprint).contains(&peer), "a stranger is in");
                    self.peers.insert(association, peer);
                    self.opened += 1;
                }
                CarrierEvent::Class { association, class, .. } => {
                    let is_lawful = self.peers.get(&association) == Some(&lawful.fingerprint());
                    assert!(class == 0 || is_lawful, "a class {class} without its proof");
                }
                CarrierEvent::Frame { association, bytes, .. } => {
                    let is_lawful = self.peers.get(&association) == Some(&lawful.fingerprint());
                    assert!(is_lawful && bytes.iter().all(|&byte| byte == LAWFUL), "a forged frame");
                }
                CarrierEvent::Control { association } => while self.quic.read_control(association).is_some() {},
                CarrierEvent::Closed { association, .. } => drop(self.peers.remove(&association)),
            }
        }
        assert!(self.quic.association_count() <= MAX_ASSOCIATIONS);
    }
}

/// Runs the peers and returns the number of associations that were opened.
///
/// # Panics
/// If a side panics, a stranger gets in, a class is bound without proof, a frame is forged, or there are too many
/// associations.
pub fn check(bytes: &[u8]) -> usize {
    let mut input = Input(bytes);
    let [own, lawful, hostile, stranger] = keys();
    let epoch = Instant::now();
    let config = QuicConfig {
        listens: true,
        classes: 2,
        max_associations: MAX_ASSOCIATIONS,
        retry: input.byte() % 4 > 0,
        seed: Some(1),
        ..QuicConfig::new(own.clone(), trusting(&[lawful, hostile]))
    };
    let of = |key: &Identity| QuicConfig { classes: 2, ..QuicConfig::new(key.clone(), trusting(&[own])) };
    let quic = Quic::new(config, epoch).expect("valid settings");
    let mut listening = Listening { quic, peers: BTreeMap::new(), opened: 0 };
    let mut client = Quic::new(of(lawful), epoch).expect("valid settings");
    let association = client.connect(Time::ZERO, address(100)).expect("room");
    // The first bytes are usually close to a hello.
    let mut said: Vec<u8> = (0..input.byte()).map(|_| input.byte()).collect();
    if let [version, class, ..] = &mut said[..]
        && input.byte() % 8 > 0
    {
        (*version, *class) = (1, *class % 3);
    }
    let mut peers = vec![Peer::Lawful(Box::new(client))];
    for key in [hostile, stranger] {
        let mut stream = PlainStream::new(&of(key), PlainController::Cubic, epoch).expect("valid settings");
        stream.send(Time::ZERO, address(100), said.clone().into()).expect("room");
        peers.push(Peer::Stream(Box::new(stream)));
    }
    // The rate of changes, low enough that many handshakes succeed.
    let rate = input.byte() % 64;
    let (mut now, mut recorded) = (Time::ZERO, Vec::new());
    for _ in 0..MAX_ROUNDS {
        now += Dur::from_us(1 + (input.scaled() >> 46));
        let mut travelling = vec![];
        for (peer, host) in peers.iter_mut().zip(1_u8..) {
            while let Some(datagram) = peer.poll_transmit(now) {
                travelling.extend(datagram.segments().map(|bytes| (host, datagram.class, bytes.to_vec())));
            }
        }
        for (host, class, bytes) in travelling {
            if recorded.len() < MAX_RECORDED {
                recorded.push(bytes.clone());
            }
            for (from, bytes) in changed(&mut input, rate, host, bytes, &recorded) {
                let dscp = DEFAULT_DSCP[usize::from(class) % DEFAULT_DSCP.len()];
                let arrival = Arrival { from: address(from), dscp, ecn: 0, received_ns: now.as_ps() / 1000 };
                listening.quic.handle_datagram(now, arrival, &bytes);
                listening.check_events();
            }
        }
        if listening.quic.next_timer() <= now {
            listening.quic.handle_timer(now);
        }
        let mut answers = vec![];
        while let Some(datagram) = listening.quic.poll_transmit(now) {
            let host = (1..=3).find(|&host| datagram.to == address(host));
            answers.extend(datagram.segments().filter_map(|bytes| Some((host?, datagram.class, bytes.to_vec()))));
        }
        listening.check_events();
        for (host, class, bytes) in answers {
            for (_, bytes) in changed(&mut input, rate, host, bytes, &recorded) {
                let dscp = DEFAULT_DSCP[usize::from(class) % DEFAULT_DSCP.len()];
                let arrival = Arrival { from: address(100), dscp, ecn: 0, received_ns: now.as_ps() / 1000 };
                peers[usize::from(host) - 1].handle_datagram(now, arrival, &bytes);
            }
        }
        if let Peer::Lawful(quic) = &mut peers[0] {
            while quic.poll_event().is_some() {}
            let frames = (0..input.byte() % 4).map(|_| vec![LAWFUL; 40]);
            quic.send(now, association, input.byte() % 2, &mut frames.into_iter());
            quic.write_control(association, &[1; 20]);
            if input.byte() < 2 {
                quic.close(now, association, 1, "over");
            }
        }
        if input.is_over() {
            break;
        }
    }
    listening.opened
}

/// Returns the datagrams that arrive for one that was sent, with the number of their source.
fn changed(input: &mut Input<'_>, rate: u8, host: u8, bytes: Vec<u8>, recorded: &[Vec<u8>]) -> Vec<(u8, Vec<u8>)> {
    if input.byte() >= rate {
        return vec![(host, bytes)];
    }
    let mut other = bytes.clone();
    let at = usize::from(input.byte()) | usize::from(input.byte() % 8) << 8;
    match input.byte() % 8 {
        0 => vec![],
        1 => vec![(host, bytes.clone()), (host, bytes)],
        2 => {
            if let Some(byte) = other.get_mut(at) {
                *byte ^= 1 << (input.byte() % 8);
            }
            vec![(host, other)]
        }
        3 => {
            other.truncate(at);
            vec![(host, other), (host, bytes)]
        }
        // From another address, as an attacker that is off the path does.
        4 => vec![(50 + input.byte() % 8, bytes.clone()), (host, bytes)],
        5 => {
            let old = recorded.get(at % recorded.len().max(1)).cloned().unwrap_or_default();
            vec![(1 + input.byte() % 3, old), (host, bytes)]
        }
        6 => {
            // The header, with its connection IDs and the token, is not encrypted.
            for byte in other.iter_mut().take(at % 200) {
                *byte = input.byte();
            }
            vec![(host, other), (host, bytes)]
        }
        _ => {
            let noise = (0..at).map(|_| input.byte()).collect();
            vec![(host, noise), (host, bytes)]
        }
    }
}
