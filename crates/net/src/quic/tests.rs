//! The carrier against unbound and attackers: each address gets one answer per attempt, and nothing more.

use super::admission::MAX_HALF_OPEN;
use super::*;
use crate::node::{CODE_VIOLATION, NodeConfig, NodeEvent};
use crate::virt::{Path, Virtual, address_of};
use std::net::Ipv4Addr;

fn keys<const COUNT: usize>() -> [Identity; COUNT] {
    std::array::from_fn(|_| Identity::generate().expect("a key"))
}

fn trust(peers: &[&Identity]) -> Trusted {
    peers.iter().map(|peer| peer.fingerprint()).collect()
}

fn after(ms: u64) -> Time {
    Time::ZERO + Dur::from_ms(ms)
}

fn quic(own: &Identity, peers: &[&Identity], listens: bool) -> Quic {
    let config = QuicConfig { listens, ..QuicConfig::new(own.clone(), trust(peers)) };
    Quic::new(config, Instant::now()).expect("settings that fit")
}

/// Passes the datagrams of `from` that satisfy `passes` to `to`, with `address` as their source.
fn carry(from: &mut Quic, to: &mut Quic, address: SocketAddr, now: Time, passes: impl Fn(&Datagram) -> bool) -> usize {
    let mut carried = 0;
    while let Some(datagram) = from.poll_transmit(now) {
        let received_ns = now.as_ps() / 1000;
        let arrival = Arrival { from: address, dscp: DSCP[usize::from(datagram.class)], ecn: 0, received_ns };
        for bytes in datagram.segments().filter(|_| passes(&datagram)) {
            to.handle_datagram(now, arrival, bytes);
            carried += 1;
        }
    }
    carried
}

const DSCP: [u8; 4] = crate::carrier::DEFAULT_DSCP;

/// Recognises the long header of a Retry (RFC 9000 section 17.2.5).
fn is_retry(datagram: &Datagram) -> bool {
    datagram.bytes.first().is_some_and(|byte| byte & 0xf0 == 0xf0)
}

#[test]
fn an_unvalidated_address_gets_one_retry_per_packet_and_no_state_is_kept() {
    let [one, two] = keys();
    let (mut client, mut server) = (quic(&one, &[&two], false), quic(&two, &[&one], true));
    client.connect(after(0), address_of(1)).expect("room");
    let mut tries = vec![];
    while let Some(datagram) = client.poll_transmit(after(0)) {
        tries.extend(datagram.segments().map(<[u8]>::to_vec));
    }
    assert_eq!(tries.len(), 8, "one connection per class, which begins with two packets");
    let noise = [vec![0; 1200], vec![0xff; 1200], vec![0x40; 60], vec![]];
    for turn in 0..200_u16 {
        let from = SocketAddr::from((Ipv4Addr::new(192, 0, 2, turn as u8), 1000 + turn));
        let arrival = Arrival { from, dscp: 0, ecn: 0, received_ns: 0 };
        let bytes = &tries[usize::from(turn) % tries.len()];
        server.handle_datagram(after(turn.into()), arrival, bytes);
        let answer = server.poll_transmit(after(turn.into())).expect("a Retry");
        assert!(is_retry(&answer) && answer.to == from && answer.bytes.len() < bytes.len() / 3, "{answer:?}");
        for bytes in &noise {
            server.handle_datagram(after(turn.into()), arrival, bytes);
        }
        // Version negotiation and stateless resets (RFC 9000 sections 6 and 10.3) are smaller than their cause and need
        // no state.
        while let Some(more) = server.poll_transmit(after(turn.into())) {
            assert!(!is_retry(&more) && more.bytes.len() < 1200, "{} bytes", more.bytes.len());
        }
    }
    assert!(server.channels.is_empty() && server.associations.is_empty() && server.unbound.is_empty());
    assert_eq!((server.poll_event(), server.next_timer()), (None, Time::NEVER));
}

/// Returns the reason for which the server refused this client.
fn refusal(server: &mut Quic, client: &Identity, listening: &Identity) -> CloseReason {
    let address = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 7), 1000));
    let mut client = quic(client, &[listening], false);
    client.connect(after(0), address_of(1)).expect("room");
    for _ in 0..8 {
        carry(&mut client, server, address, after(0), |datagram| datagram.class == 0);
        carry(server, &mut client, address_of(1), after(0), |datagram| datagram.to == address);
    }
    let closed = std::iter::from_fn(|| client.poll_event()).find_map(|event| match event {
        CarrierEvent::Closed { reason, .. } => Some(reason),
        _ => None,
    });
    closed.expect("the server refuses")
}

/// A public key is no secret. A peer that presents it without the private key must not bring it into the log, from which
/// an operator may trust it, and must not learn whether it is trusted.
#[test]
fn a_stranger_is_reported_after_its_proof_and_all_strangers_get_one_answer() {
    let [trusted, known, stranger, listening] = keys();
    let mut server = quic(&listening, &[&trusted], true);
    let unproven = [stranger.pretending_to_be(&trusted), stranger.pretending_to_be(&known)];
    for liar in &unproven {
        assert_eq!(refusal(&mut server, liar, &listening), CloseReason::NotTrusted(liar.fingerprint()));
        assert_eq!(server.take_refused_peer(), None, "the key is not proven");
    }
    assert_eq!(refusal(&mut server, &stranger, &listening), CloseReason::NotTrusted(stranger.fingerprint()));
    assert_eq!(server.take_refused_peer(), Some(stranger.fingerprint()));
    assert_eq!((server.take_refused_peer(), server.association_count()), (None, 0));
}

/// A datagram on its way: arrival time, true if it goes to the server, source, class and bytes.
type Travelling = (Time, bool, SocketAddr, u8, Vec<u8>);

/// Returns the time until a trusted peer has all its classes, 50 ms from the server, that begins after two seconds of a
/// flood with 1,000 handshakes a second. Each answers the Retry, which validates its address, and then nothing.
fn admission_under_flood(flooding: impl Fn(u32) -> SocketAddr, lawful: SocketAddr) -> Option<Dur> {
    let [one, two, stranger] = keys();
    let mut server = quic(&two, &[&one], true);
    let mut client = quic(&one, &[&two], false);
    let (begins, mut travelling) = (after(2_000), VecDeque::<Travelling>::new());
    let mut classes = 0;
    for ms in 0..6_000 {
        let now = after(ms);
        let config = QuicConfig { classes: 1, ..QuicConfig::new(stranger.clone(), trust(&[&two])) };
        let mut attacker = Quic::new(config, Instant::now()).expect("settings that fit");
        let from = flooding(ms as u32);
        attacker.connect(now, address_of(1)).expect("room");
        carry(&mut attacker, &mut server, from, now, |_| true);
        let mut from_server = vec![];
        let mut collect = |server: &mut Quic| {
            while let Some(datagram) = server.poll_transmit(now) {
                from_server.push(datagram);
            }
        };
        collect(&mut server);
        for datagram in from_server.iter().filter(|datagram| datagram.to == from && is_retry(datagram)) {
            let arrival = Arrival { from: address_of(1), dscp: 0, ecn: 0, received_ns: 0 };
            attacker.handle_datagram(now, arrival, &datagram.bytes);
        }
        carry(&mut attacker, &mut server, from, now, |_| true);
        let mut from_server = std::mem::take(&mut from_server);
        while let Some(datagram) = server.poll_transmit(now) {
            from_server.push(datagram);
        }
        if now == begins {
            client.connect(now, address_of(1)).expect("room");
        }
        let sent = from_server.into_iter().filter(|datagram| datagram.to == lawful).map(|datagram| (false, datagram));
        let replies = std::iter::from_fn(|| client.poll_transmit(now)).map(|datagram| (true, datagram));
        for (to_server, datagram) in sent.chain(replies).collect::<Vec<_>>() {
            for bytes in datagram.segments() {
                travelling.push_back((now + Dur::from_ms(50), to_server, lawful, datagram.class, bytes.to_vec()));
            }
        }
        while travelling.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, to_server, from, class, bytes)) = travelling.pop_front() else { break };
            let (to, from) = if to_server { (&mut server, from) } else { (&mut client, address_of(1)) };
            to.handle_datagram(now, Arrival { from, dscp: DSCP[usize::from(class)], ecn: 0, received_ns: 0 }, &bytes);
        }
        server.handle_timer(now);
        client.handle_timer(now);
        let opened = |event: &CarrierEvent| matches!(event, CarrierEvent::Class { open: true, .. });
        classes += std::iter::from_fn(|| server.poll_event()).filter(opened).count();
        if classes == 4 {
            return Some(now - begins);
        }
        // Memory stays bounded: half-open and closing handshakes, and those of the trusted peer.
        assert!(server.half_open.len() <= MAX_HALF_OPEN && server.channels.len() <= MAX_HALF_OPEN + MAX_CLOSING + 8);
    }
    None
}

#[test]
fn a_trusted_peer_gets_in_during_a_flood_of_half_open_handshakes() {
    let lawful = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 2), 1000));
    let port = |at: u32| 1024 + (at % 60_000) as u16;
    let addresses: [(&str, &dyn Fn(u32) -> SocketAddr); 4] = [
        ("one address", &|at| SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), port(at)))),
        ("three addresses", &|at| SocketAddr::from((Ipv4Addr::new(192, 0, 2, 10 + (at % 3) as u8), port(at)))),
        ("an address each", &|at| SocketAddr::from((Ipv4Addr::from_bits(0x0a00_0000 + at), 1000))),
        ("the peer's own address", &|at| SocketAddr::from((Ipv4Addr::new(192, 0, 2, 2), port(at)))),
    ];
    for (what, flooding) in addresses {
        let took = admission_under_flood(flooding, lawful).unwrap_or(Dur::from_secs(3600));
        assert!(took < Dur::from_secs(2), "{took} with {what}");
    }
}

/// Opens an association of a new client with one class. Returns the client, and the reason if it was refused.
fn open_one(server: &mut Quic, own: &Identity, listening: &Identity, port: u16) -> (Quic, Option<CloseReason>) {
    let address = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), port));
    let config = QuicConfig { classes: 1, ..QuicConfig::new(own.clone(), trust(&[listening])) };
    let mut client = Quic::new(config, Instant::now()).expect("settings that fit");
    client.connect(after(0), address_of(1)).expect("room");
    for _ in 0..8 {
        carry(&mut client, server, address, after(0), |_| true);
        carry(server, &mut client, address_of(1), after(0), |datagram| datagram.to == address);
    }
    let closed = std::iter::from_fn(|| client.poll_event()).find_map(|event| match event {
        CarrierEvent::Closed { reason, .. } => Some(reason),
        _ => None,
    });
    (client, closed)
}

#[test]
fn the_associations_of_a_key_are_limited_and_shared_fairly_with_others() {
    let [greedy, second, third, listening] = keys();
    let config = QuicConfig {
        listens: true,
        max_associations: 6,
        max_associations_per_peer: 4,
        ..QuicConfig::new(listening.clone(), trust(&[&greedy, &second, &third]))
    };
    let mut server = Quic::new(config, Instant::now()).expect("settings that fit");
    let refused = |reason: &str| Some(CloseReason::Peer { code: 1, reason: reason.into() });
    let mut clients = vec![];
    let mut open = |server: &mut Quic, own: &Identity| {
        let (client, closed) = open_one(server, own, &listening, 1000 + clients.len() as u16);
        clients.push(client);
        closed
    };
    for _ in 0..4 {
        assert_eq!(open(&mut server, &greedy), None);
    }
    assert_eq!(open(&mut server, &greedy), refused("too many associations of this key"));
    assert_eq!((open(&mut server, &second), open(&mut server, &second)), (None, None));
    while server.poll_event().is_some() {}
    // All are in use: the newest one of the key with the most makes room.
    assert_eq!(open(&mut server, &third), None);
    let closed = std::iter::from_fn(|| server.poll_event()).find_map(|event| match event {
        CarrierEvent::Closed { association, .. } => Some(association),
        _ => None,
    });
    assert_eq!((closed, server.association_count()), (Some(AssociationId(4)), 6));
    assert_eq!(open(&mut server, &third), None, "3, 2 and 1: the first key still has the most");
    assert_eq!(open(&mut server, &third), refused("too many associations"), "all have two");
}

/// Makes the lower classes of `liar` claim the association with this secret; returns the classes that the server has
/// bound.
fn claim_classes(server: &mut Quic, liar: &mut Quic, address: SocketAddr, secret: Secret) -> Vec<(AssociationId, u8)> {
    let id = liar.connect(after(0), address_of(1)).expect("room");
    let pump = |server: &mut Quic, liar: &mut Quic, now: Time, max_class: u8| {
        for _ in 0..6 {
            carry(liar, server, address, now, |datagram| datagram.class <= max_class);
            carry(server, liar, address_of(1), now, |datagram| datagram.to == address);
        }
    };
    pump(server, liar, after(0), 0);
    liar.associations.get_mut(&id).expect("it is open").secret = Some(secret);
    // Blocked datagrams are retransmitted.
    for ms in (0..10_000).step_by(500) {
        liar.handle_timer(after(ms));
        server.handle_timer(after(ms));
        pump(server, liar, after(ms), 3);
    }
    let events = std::iter::from_fn(|| server.poll_event());
    let bound = events.filter_map(|event| match event {
        CarrierEvent::Class { association, class, open: true } => Some((association, class)),
        _ => None,
    });
    bound.collect()
}

#[test]
fn a_lower_class_needs_the_secret_and_the_key_of_its_association() {
    let [one, two, listening] = keys();
    let [at_one, at_two] = [1, 2].map(|host| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 1000)));
    let mut server = quic(&listening, &[&one, &two], true);
    let mut honest = quic(&one, &[&listening], false);
    let first = honest.connect(after(0), address_of(1)).expect("room");
    for _ in 0..6 {
        carry(&mut honest, &mut server, at_one, after(0), |datagram| datagram.class == 0);
        carry(&mut server, &mut honest, address_of(1), after(0), |_| true);
    }
    let stolen = honest.associations[&first].secret.expect("it is open");
    while server.poll_event().is_some() {}
    // With the secret of another peer's association, and with that of an association elsewhere.
    let mut liar = quic(&two, &[&listening], false);
    let bound = claim_classes(&mut server, &mut liar, at_two, stolen);
    assert_eq!(bound, [(AssociationId(2), 0)], "its own class 0, and nothing else");
    let mut elsewhere = quic(&listening, &[&one], true);
    let mut other = quic(&one, &[&listening], false);
    let id = other.connect(after(0), address_of(1)).expect("room");
    for _ in 0..6 {
        carry(&mut other, &mut elsewhere, at_one, after(0), |datagram| datagram.class == 0);
        carry(&mut elsewhere, &mut other, address_of(1), after(0), |_| true);
    }
    let foreign = other.associations[&id].secret.expect("it is open");
    let mut same_key = quic(&one, &[&listening], false);
    let bound = claim_classes(&mut server, &mut same_key, at_one, foreign);
    assert_eq!(bound, [(AssociationId(3), 0)], "its own class 0, and nothing else");
    // The same steps with the right secret bind all classes.
    let mut honest_again = quic(&one, &[&listening], false);
    let bound = open_classes(&mut server, &mut honest_again, at_one);
    assert_eq!(bound.len(), 4, "{bound:?}");
}

fn open_classes(server: &mut Quic, client: &mut Quic, address: SocketAddr) -> Vec<(AssociationId, u8)> {
    client.connect(after(0), address_of(1)).expect("room");
    for _ in 0..8 {
        carry(client, server, address, after(0), |_| true);
        carry(server, client, address_of(1), after(0), |datagram| datagram.to == address);
    }
    let events = std::iter::from_fn(|| server.poll_event());
    let bound = events.filter_map(|event| match event {
        CarrierEvent::Class { association, class, open: true } => Some((association, class)),
        _ => None,
    });
    bound.collect()
}

#[test]
fn frames_before_the_hello_take_bounded_memory_and_are_reported_after_it() {
    let [own, listening] = keys();
    let address = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 1000));
    let mut server = quic(&listening, &[&own], true);
    let mut client = quic(&own, &[&listening], false);
    let id = client.connect(after(0), address_of(1)).expect("room");
    let pump = |server: &mut Quic, client: &mut Quic, max_class: u8| {
        for _ in 0..6 {
            carry(client, server, address, after(0), |datagram| datagram.class <= max_class);
            carry(server, client, address_of(1), after(0), |datagram| datagram.to == address);
        }
    };
    pump(&mut server, &mut client, 0);
    // Without the secret, the client sends no hello in class 1.
    let secret = client.associations.get_mut(&id).and_then(|association| association.secret.take());
    for ms in (0..10_000).step_by(500) {
        client.handle_timer(after(ms));
        server.handle_timer(after(ms));
        pump(&mut server, &mut client, 1);
    }
    while server.poll_event().is_some() {}
    for _ in 0..5_000 {
        client.send(after(10_000), id, 1, &mut std::iter::once(vec![7]));
        carry(&mut client, &mut server, address, after(10_000), |datagram| datagram.class == 1);
    }
    let most = EARLY_BYTES / (FRAME_BYTES + 1);
    assert_eq!((server.early_bytes, server.unbound.len()), (most * (FRAME_BYTES + 1), 1));
    client.associations.get_mut(&id).expect("it is open").secret = secret;
    client.send_hello(id, 1);
    carry(&mut client, &mut server, address, after(10_000), |datagram| datagram.class == 1);
    let frames = std::iter::from_fn(|| server.poll_event());
    let frames = frames.filter(|event| matches!(event, CarrierEvent::Frame { class: 1, .. })).count();
    assert_eq!((frames, server.early_bytes), (most, 0));
}

#[test]
fn a_peer_is_disconnected_with_a_reason_after_a_hundred_wrong_frames() {
    let mut net = Virtual::new(Path::default(), NodeConfig::default(), 1).expect("settings that fit");
    let association = net.connect().expect("a peer");
    let (mut sent, mut closed) = (0, None);
    while let Some((at, event)) = net.next_event(after(10_000)) {
        let now = net.now();
        match (at, event) {
            (0, NodeEvent::Opened { .. }) => {
                let wrong = (0..99).map(|_| vec![0xee; 20]);
                net.node(0).carrier_mut().send(now, association, 0, &mut wrong.into_iter());
                sent = 99;
                // The answer proves that 99 violations did not end the association.
                net.node(0).echo(now, association, 0, 100).expect("an open association");
            }
            (0, NodeEvent::Path(_)) if sent == 99 => {
                assert_eq!(net.node(1).undecoded(), 99);
                net.node(0).carrier_mut().send(now, association, 0, &mut std::iter::once(vec![0xee; 20]));
                sent = 100;
            }
            (0, NodeEvent::Closed { reason, .. }) => closed = Some(reason),
            _ => {}
        }
    }
    let Some(CloseReason::Peer { code, reason }) = closed else { panic!("{closed:?} after {sent}") };
    assert_eq!((sent, code), (100, CODE_VIOLATION.into()));
    assert!(reason.as_str().starts_with("100 frames were wrong; the last: "), "{reason}");
}

#[test]
fn a_peer_of_another_version_has_an_error_of_its_own() {
    let [one, two] = keys();
    let quic = quic(&one, &[&two], false);
    let message = |alert: u8| {
        let error_code = quinn_proto::TransportErrorCode::crypto(alert);
        let close = quinn_proto::ConnectionClose { error_code, frame_type: None, reason: Bytes::new() };
        close_reason(ConnectionError::ConnectionClosed(close), &quic.settings, &quic.config).to_string()
    };
    // The alert no_application_protocol (RFC 7301), and two others.
    assert_eq!(message(120), "the connection failed: the peer speaks another version of this protocol");
    assert!(!message(80).contains("version"), "{}", message(80));
    assert_eq!(message(42), CloseReason::NotTrusted(one.fingerprint()).to_string());
}

/// Returns the time until a server with this idle timeout gives up a client whose own keep-alives are rare.
fn time_to_give_up(idle: Duration, path_ends: bool) -> Option<Dur> {
    let [one, two] = keys();
    let client = QuicConfig::new(one.clone(), trust(&[&two]));
    let server = QuicConfig { listens: true, idle_timeout: idle, ..QuicConfig::new(two, trust(&[&one])) };
    let mut net =
        Virtual::with_carriers(Path::default(), NodeConfig::default(), client, server, 1).expect("settings that fit");
    net.connect().expect("a peer");
    let mut limit = after(5_000);
    loop {
        match net.next_event(limit) {
            Some((1, NodeEvent::Closed { reason, .. })) => {
                assert_eq!(reason, CloseReason::IdleTimeout);
                return Some(net.now() - after(5_000));
            }
            Some(_) => {}
            None if limit == after(5_000) => {
                limit = after(120_000);
                if path_ends {
                    net.path_mut().loss = 1.0;
                }
            }
            None => return None,
        }
    }
}

#[test]
fn a_listening_side_ends_a_silent_association_after_its_own_timeout() {
    for seconds in [2, 3, 20] {
        let took = time_to_give_up(Duration::from_secs(seconds), true).expect("the server gives up");
        assert!(took <= Dur::from_secs(seconds), "{took}");
        assert_eq!(time_to_give_up(Duration::from_secs(seconds), false), None, "the peer answers pings");
    }
}
