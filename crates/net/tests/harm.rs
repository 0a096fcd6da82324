//! The effect of a transfer on a competing flow, in virtual time. The flow is a plain stream of QUIC in class 0.

use bytes::Bytes;
use sparelane_core::{Dur, Rate, Time};
use sparelane_net::identity::{Identity, Trusted};
use sparelane_net::node::{ControllerChoice, Node, NodeConfig, NodeEvent};
use sparelane_net::quic::plain::{PlainController, PlainEvent, PlainStream};
use sparelane_net::quic::{Quic, QuicConfig};
use sparelane_net::virt::{Colocated, Either, Marks, Path, Virtual, address_of};
use std::io::{Write, stdout};
use std::time::Instant;

const LIMIT: Time = Time::from_ps(600 * 1_000_000_000_000);

/// The start of the transfer, which does not end.
const BEGINS: Time = Time::from_ps(2 * 1_000_000_000_000);

/// Configurations of a client and a server.
fn pair(seed: u64, classes: u8) -> [QuicConfig; 2] {
    let (client, server) = (Identity::generate().expect("a key"), Identity::generate().expect("a key"));
    let trust = |peer: &Identity| Trusted::from_iter([peer.fingerprint()]);
    let of_client = QuicConfig { seed: Some(2 * seed), classes, ..QuicConfig::new(client.clone(), trust(&server)) };
    let of_server =
        QuicConfig { seed: Some(2 * seed + 1), classes, listens: true, ..QuicConfig::new(server, trust(&client)) };
    [of_client, of_server]
}

/// Runs a stream of `bytes` in competition with a transfer under this controller. Returns its duration, and the 99th
/// percentile of its packets' delay.
fn compete(path: Path, stream: PlainController, controller: &str, inner: &str, bytes: usize, seed: u64) -> (Dur, Dur) {
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
    let mut net = Virtual::between([Colocated::new(one, sends), Colocated::new(two, receives)], path, seed);
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
    reordered: 0.0,
    reordered_by: Dur::ZERO,
    duplicated: 0.0,
    lateness: Dur::ZERO,
    marks: Marks::Kept,
    mtu_bytes: 9000,
};

/// Returns the effect of RC3's tail on the stream, compared with the same controller without a tail: the relative
/// increase of its duration, and the increase of its 99th percentile of delay in milliseconds.
fn cost_of_the_tail(stream: PlainController, inner: &str, bytes: usize, seed: u64) -> (f64, f64) {
    let (without, delay_without) = compete(PATH, stream, inner, "", bytes, seed);
    let (with, delay_with) = compete(PATH, stream, "rc3", inner, bytes, seed);
    let more_ms = (delay_with.as_secs_f64() - delay_without.as_secs_f64()) * 1e3;
    (with.as_secs_f64() / without.as_secs_f64() - 1.0, more_ms)
}

/// The mean, and half the width of its 95 % interval, assuming a normal distribution.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, 1.96 * (variance / count).sqrt())
}

/// On a path with priorities, and with different controllers: two equal ones share a path by chance (see below).
#[test]
fn the_tail_costs_a_competing_flow_at_most_one_percent_and_a_millisecond() {
    for (stream, inner) in [(PlainController::Bbr, "cubic"), (PlainController::Cubic, "bbr")] {
        let added: Vec<_> = (1..=2).map(|seed| cost_of_the_tail(stream, inner, 12_000_000, seed)).collect();
        let (time, _) = mean(&added.iter().map(|(time, _)| *time).collect::<Vec<_>>());
        assert!(time < 0.01, "{stream:?} with {inner}: {added:?}");
        assert!(added.iter().all(|(_, delay_ms)| *delay_ms < 1.0), "{stream:?} with {inner}: {added:?}");
    }
}

/// Two flows of one controller share a path by chance, which needs many runs. Run it in release with `--ignored
/// --nocapture`.
#[test]
#[ignore = "minutes"]
fn the_cost_of_the_tail_over_many_seeds() {
    for (stream, inner, seeds) in [
        (PlainController::Cubic, "cubic", 300),
        (PlainController::Cubic, "bbr", 30),
        (PlainController::Bbr, "cubic", 30),
        (PlainController::Bbr, "bbr", 30),
    ] {
        let added: Vec<_> = (1..=seeds).map(|seed| cost_of_the_tail(stream, inner, 20_000_000, seed)).collect();
        let (time, interval) = mean(&added.iter().map(|(time, _)| 100.0 * time).collect::<Vec<_>>());
        let most_ms = added.iter().map(|(_, delay_ms)| *delay_ms).fold(f64::MIN, f64::max);
        let line =
            format!("{stream:?} with {inner}: {time:+.2} +- {interval:.2} % of its time, {most_ms:+.2} ms at most");
        writeln!(stdout(), "{line}").expect("standard output");
        assert!(time - interval < 1.0 && most_ms < 1.0);
    }
}
