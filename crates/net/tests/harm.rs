//! What a transfer does to a flow beside it, in virtual time. The flow is a plain stream of QUIC in class 0.

use bytes::Bytes;
use sparelane_core::{Dur, Rate, Time};
use sparelane_net::identity::{Identity, Trusted};
use sparelane_net::node::{ControllerChoice, Node, NodeConfig, NodeEvent};
use sparelane_net::quic::plain::{PlainController, PlainEvent, PlainStream};
use sparelane_net::quic::{Quic, QuicConfig};
use sparelane_net::virt::{Both, Either, Marks, Path, Virtual, address_of};
use std::io::{Write, stdout};
use std::time::Instant;

const LIMIT: Time = Time::from_ps(600 * 1_000_000_000_000);

/// When the transfer begins, which has no end.
const BEGINS: Time = Time::from_ps(2 * 1_000_000_000_000);

/// Which of two ends are at the client, and which at the server.
fn pair(seed: u64, classes: u8) -> [QuicConfig; 2] {
    let (client, server) = (Identity::generate().expect("a key"), Identity::generate().expect("a key"));
    let trust = |peer: &Identity| Trusted::from_iter([peer.fingerprint()]);
    let of_client = QuicConfig { seed: Some(2 * seed), classes, ..QuicConfig::new(client.clone(), trust(&server)) };
    let of_server =
        QuicConfig { seed: Some(2 * seed + 1), classes, listens: true, ..QuicConfig::new(server, trust(&client)) };
    [of_client, of_server]
}

/// What a stream of so many bytes takes beside a transfer under this controller, and how long its packets are on their way at the
/// 99th percentile.
fn beside(path: Path, stream: PlainController, controller: &str, inner: &str, bytes: usize, seed: u64) -> (Dur, Dur) {
    let choice = ControllerChoice::named(controller);
    let controller = if inner.is_empty() { choice } else { choice.around(inner) };
    let config = NodeConfig { controller, ..NodeConfig::default() };
    let epoch = Instant::now();
    let streams = pair(seed, 1).map(|quic| PlainStream::new(&quic, stream, epoch).expect("settings that fit"));
    let nodes = pair(seed + 1000, config.classes).map(|quic| {
        let carrier = Quic::new(quic, epoch).expect("settings that fit");
        Node::new(carrier, config.clone()).expect("settings that fit")
    });
    let ([one, two], [sends, receives]) = (streams, nodes);
    let mut net = Virtual::between([Both::new(one, sends), Both::new(two, receives)], path, seed);
    net.node(0).first().send(Time::ZERO, address_of(1), Bytes::from(vec![7; bytes])).expect("a peer");
    let association = net.node(0).second().connect(Time::ZERO, address_of(1)).expect("a peer");
    let (mut opened, mut flow) = (Time::ZERO, None);
    loop {
        let limit = if flow.is_none() { BEGINS } else { LIMIT };
        match net.next_event(limit) {
            None if flow.is_none() => {
                let begun = net.node(0).second().open_flow(BEGINS, association, None).expect("a flow");
                net.node(0).second().write(begun, vec![7; 100_000_000].into());
                flow = Some(begun);
            }
            None => panic!("the stream does not end"),
            Some((0, Either::First(PlainEvent::Connected))) => opened = net.now(),
            Some((1, Either::First(PlainEvent::Received { .. }))) => {
                let mut delays = net.node(1).delays().to_vec();
                delays.sort_unstable();
                return (net.now() - opened, delays[delays.len() * 99 / 100]);
            }
            Some((1, Either::Second(NodeEvent::Readable(flow)))) => while net.node(1).second().read(flow).is_some() {},
            Some(_) => {}
        }
    }
}

const PATH: Path = Path {
    rate: Rate::from_mbps(20),
    delay: Dur::from_ms(20),
    queue_packets: 70,
    priorities: true,
    loss: 0.0,
    held: 0.0,
    held_for: Dur::ZERO,
    repeated: 0.0,
    lateness: Dur::ZERO,
    marks: Marks::Kept,
    mtu_bytes: 9000,
};

/// How much longer the stream takes beside RC3 than beside the same controller without a tail, as a share; and by how much its
/// packets are longer on their way, at the 99th percentile, in milliseconds.
fn what_the_tail_adds(stream: PlainController, inner: &str, bytes: usize, seed: u64) -> (f64, f64) {
    let (without, delay_without) = beside(PATH, stream, inner, "", bytes, seed);
    let (with, delay_with) = beside(PATH, stream, "rc3", inner, bytes, seed);
    let more_ms = (delay_with.as_secs_f64() - delay_without.as_secs_f64()) * 1e3;
    (with.as_secs_f64() / without.as_secs_f64() - 1.0, more_ms)
}

/// The mean and half the width of its interval of 95 %, by the normal distribution.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, 1.96 * (variance / count).sqrt())
}

/// On a path with priorities, where the controllers differ: how two equal ones share a path is chance (below).
#[test]
fn the_tail_costs_a_flow_beside_it_at_most_a_hundredth_and_a_millisecond() {
    for (stream, inner) in [(PlainController::Bbr, "cubic"), (PlainController::Cubic, "bbr")] {
        let added: Vec<_> = (1..=2).map(|seed| what_the_tail_adds(stream, inner, 12_000_000, seed)).collect();
        let (time, _) = mean(&added.iter().map(|(time, _)| *time).collect::<Vec<_>>());
        assert!(time < 0.01, "{stream:?} beside {inner}: {added:?}");
        assert!(added.iter().all(|(_, delay_ms)| *delay_ms < 1.0), "{stream:?} beside {inner}: {added:?}");
    }
}

/// How two flows of one controller share a path is chance, which takes many runs. To be run in release, with `--ignored --nocapture`.
#[test]
#[ignore = "minutes"]
fn the_tail_costs_by_many_seeds() {
    for (stream, inner, seeds) in [
        (PlainController::Cubic, "cubic", 300),
        (PlainController::Cubic, "bbr", 30),
        (PlainController::Bbr, "cubic", 30),
        (PlainController::Bbr, "bbr", 30),
    ] {
        let added: Vec<_> = (1..=seeds).map(|seed| what_the_tail_adds(stream, inner, 20_000_000, seed)).collect();
        let (time, interval) = mean(&added.iter().map(|(time, _)| 100.0 * time).collect::<Vec<_>>());
        let most_ms = added.iter().map(|(_, delay_ms)| *delay_ms).fold(f64::MIN, f64::max);
        let says =
            format!("{stream:?} beside {inner}: {time:+.2} +- {interval:.2} % of its time, {most_ms:+.2} ms at most");
        writeln!(stdout(), "{says}").expect("standard output");
        assert!(time - interval < 1.0 && most_ms < 1.0);
    }
}
