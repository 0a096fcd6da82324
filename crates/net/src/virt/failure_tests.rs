//! The time until a node notices that its peer or its path has failed.

use super::*;
use crate::carrier::CloseReason;
use crate::node::FlowId;
use bytes::Bytes;
use std::net::IpAddr;

fn connected() -> (Virtual, AssociationId) {
    connected_between([address_of(0), address_of(1)])
}

fn connected_between(addresses: [SocketAddr; 2]) -> (Virtual, AssociationId) {
    let mut net = Virtual::new(Path::default(), NodeConfig::default(), 1).expect("settings that fit");
    net.set_addresses(addresses);
    let association = net.connect().expect("a peer");
    let mut opened = [false; 2];
    while opened != [true; 2] {
        match net.next_event(Time::ZERO + Dur::from_secs(5)) {
            Some((at, NodeEvent::Opened { .. })) => opened[at] = true,
            Some((_, NodeEvent::Closed { reason, .. })) => panic!("{reason}"),
            Some(_) => {}
            None => panic!("{opened:?} after five seconds"),
        }
    }
    // The lower classes open, too.
    let until = net.now() + Dur::from_secs(1);
    while net.next_event(until).is_some() {}
    (net, association)
}

fn send(net: &mut Virtual, association: AssociationId, bytes: usize) -> FlowId {
    let now = net.now();
    let flow = net.node(0).open_flow(now, association, None).expect("a flow");
    net.node(0).write(flow, Bytes::from(vec![7; bytes]));
    flow
}

/// Reads everything until `limit` has passed. Returns the ends of associations, with their nodes and
/// times.
fn endings(net: &mut Virtual, limit: Dur) -> Vec<(usize, CloseReason, Dur)> {
    let (began, mut endings) = (net.now(), vec![]);
    while let Some((at, event)) = net.next_event(began + limit) {
        match event {
            NodeEvent::Readable(flow) => while net.node(at).read(flow).is_some() {},
            NodeEvent::Closed { reason, .. } => endings.push((at, reason, net.now() - began)),
            _ => {}
        }
    }
    endings
}

/// The round trip takes 40 ms, and the queue of the path holds up to 100 ms.
#[test]
fn a_restarted_peer_ends_its_old_association_within_a_round_trip() {
    for bytes in [1_000, 5_000_000] {
        let (mut net, association) = connected();
        send(&mut net, association, bytes);
        if bytes > 1_000 {
            assert_eq!(endings(&mut net, Dur::from_ms(200)), []);
        }
        net.restart(1, 99).expect("settings that fit");
        let endings = endings(&mut net, Dur::from_secs(60));
        let [(0, CloseReason::Restarted, took)] = endings[..] else { panic!("{endings:?}") };
        assert!(took < Dur::from_ms(200), "{took} with {bytes} bytes");
        // A new association opens.
        net.connect().expect("room");
        let until = net.now() + Dur::from_secs(1);
        let mut opened = std::iter::from_fn(|| net.next_event(until));
        assert!(opened.any(|(at, event)| at == 0 && matches!(event, NodeEvent::Opened { .. })));
    }
}

#[test]
fn an_idle_node_learns_of_a_restart_by_a_ping() {
    let (mut net, association) = connected();
    net.restart(1, 99).expect("settings that fit");
    net.node(0).ping(association);
    let endings = endings(&mut net, Dur::from_secs(60));
    let [(0, CloseReason::Restarted, took)] = endings[..] else { panic!("{endings:?}") };
    assert!(took < Dur::from_ms(100), "{took}");
}

/// The peer gets a new key while it runs, and is restarted with that key later.
#[test]
fn a_peer_with_a_new_key_ends_its_later_associations_after_a_restart() {
    let [client, old, new] = std::array::from_fn(|_| Identity::generate().expect("a key"));
    let trusted = |peers: &[&Identity]| peers.iter().map(|peer| peer.fingerprint()).collect::<Trusted>();
    let of_client = QuicConfig::new(client.clone(), trusted(&[&old, &new]));
    let of_server = QuicConfig { listens: true, ..QuicConfig::new(old, trusted(&[&client])) };
    let mut net = Virtual::with_carriers(Path::default(), NodeConfig::default(), of_client, of_server, 1)
        .expect("settings that fit");
    net.node(1).carrier_mut().set_identity(new.clone()).expect("a key");
    let association = net.connect().expect("room");
    assert_eq!(endings(&mut net, Dur::from_secs(1)), []);
    assert_eq!(net.node(0).peer(association), Some(new.fingerprint()));
    net.restart(1, 99).expect("settings that fit");
    net.node(0).ping(association);
    let endings = endings(&mut net, Dur::from_secs(60));
    let [(0, CloseReason::Restarted, took)] = endings[..] else { panic!("{endings:?}") };
    assert!(took < Dur::from_ms(100), "{took}");
}

/// A site with the same key at another address must not be able to end the associations of this one.
#[test]
fn a_host_with_the_same_key_at_another_address_cannot_reset_an_association() {
    let (mut net, association) = connected();
    let carrier = net.node(1).carrier().moved("10.0.0.9:7777".parse().expect("an address")).expect("settings that fit");
    let node = Node::new(carrier, NodeConfig::default()).expect("settings that fit");
    let _old = net.replace(1, node);
    net.node(0).ping(association);
    let endings = endings(&mut net, Dur::from_secs(60));
    let [(0, CloseReason::IdleTimeout, _)] = endings[..] else { panic!("{endings:?}") };
}

#[test]
fn a_retry_stays_valid_if_the_peer_restarts_before_its_answer() {
    let mut net = Virtual::new(Path::default(), NodeConfig::default(), 1).expect("settings that fit");
    net.connect().expect("a peer");
    // The first packets arrive after 20 ms, and the answers to the Retry after 60 ms.
    assert_eq!(net.next_event(Time::ZERO + Dur::from_ms(40)), None);
    net.restart(1, 99).expect("settings that fit");
    let opened = net.next_event(Time::ZERO + Dur::from_ms(200));
    assert!(matches!(opened, Some((_, NodeEvent::Opened { .. }))), "{opened:?}");
}

/// Packets of one direction are lost from some time on.
#[test]
fn both_sides_of_a_half_blocked_path_end_together() {
    for from in [0, 1] {
        let (mut net, association) = connected();
        send(&mut net, association, 20_000_000);
        assert_eq!(endings(&mut net, Dur::from_ms(500)), []);
        net.set_blocked(from, true);
        let endings = endings(&mut net, Dur::from_secs(100));
        let [(first, ref reason, took), (_, ref other, later)] = endings[..] else { panic!("{endings:?}") };
        // The side that hears nothing gives up, and its message reaches the other.
        assert_eq!((first, reason), (1 - from, &CloseReason::IdleTimeout), "{endings:?}");
        assert!(took <= Dur::from_secs(31) && later < took + Dur::from_ms(100), "{endings:?}");
        assert!(matches!(other, CloseReason::Peer { .. }), "{endings:?}");
    }
}

#[test]
fn a_handshake_ends_at_once_if_the_peer_is_unreachable() {
    for obstacle in [Obstacle::PortClosed, Obstacle::Host, Obstacle::Network, Obstacle::Forbidden] {
        let mut net = Virtual::new(Path::default(), NodeConfig::default(), 1).expect("settings that fit");
        net.set_obstacle(1, Some(obstacle));
        net.connect().expect("room");
        let endings = endings(&mut net, Dur::from_secs(60));
        let [(0, CloseReason::Unreachable(ref report), took)] = endings[..] else { panic!("{endings:?}") };
        assert_eq!((report.obstacle, report.to), (obstacle, address_of(1)));
        assert!(took < Dur::from_ms(50), "{took}");
    }
}

/// Everybody can forge such reports.
#[test]
fn no_report_ends_an_association_or_a_handshake_with_an_answer() {
    let report = |to: SocketAddr| Unreachable { to, obstacle: Obstacle::PortClosed, reporter: Some(to.ip()) };
    let (mut net, association) = connected();
    net.report(0, report(address_of(1)));
    net.report(1, report(address_of(0)));
    send(&mut net, association, 100_000);
    assert_eq!(endings(&mut net, Dur::from_secs(60)), []);
    // The first answer arrives after 40 ms. A report about another host changes nothing.
    let mut net = Virtual::new(Path::default(), NodeConfig::default(), 1).expect("settings that fit");
    net.connect().expect("a peer");
    net.report(0, report("10.0.0.2:7778".parse().expect("an address")));
    assert_eq!(net.next_event(Time::ZERO + Dur::from_ms(45)), None);
    net.report(0, report(address_of(1)));
    let opened = net.next_event(Time::ZERO + Dur::from_ms(200));
    assert!(matches!(opened, Some((_, NodeEvent::Opened { .. }))), "{opened:?}");
}

#[test]
fn link_local_addresses_work_and_keep_their_interface() {
    let addresses = ["[fe80::1%3]:1000", "[fe80::2%3]:7777"].map(|text| text.parse().expect("an address"));
    let (mut net, association) = connected_between(addresses);
    send(&mut net, association, 100_000);
    assert_eq!(endings(&mut net, Dur::from_secs(2)), []);
    net.restart(1, 99).expect("settings that fit");
    send(&mut net, association, 1_000);
    assert!(matches!(endings(&mut net, Dur::from_secs(2))[..], [(0, CloseReason::Restarted, _)]));
    net.set_obstacle(1, Some(Obstacle::PortClosed));
    net.connect().expect("room");
    let endings = endings(&mut net, Dur::from_secs(2));
    let [(0, CloseReason::Unreachable(ref report), _)] = endings[..] else { panic!("{endings:?}") };
    assert_eq!((report.to, report.to.ip()), (addresses[1], IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, 2])));
}
