//! Comparison with a plain stream of QUIC on the same path, in virtual time: the benefit of the tail.

use bytes::Bytes;
use sparelane_core::{Dur, Time};
use sparelane_net::identity::{Identity, Trusted};
use sparelane_net::node::{ControllerChoice, NodeConfig, NodeEvent};
use sparelane_net::quic::QuicConfig;
use sparelane_net::quic::plain::{PlainController, PlainEvent, PlainStream};
use sparelane_net::virt::{Path, Virtual, address_of};
use std::time::Instant;

const LIMIT: Time = Time::from_ps(600_000_000_000_000);

/// Returns the time from the opening of a flow to the last byte read.
fn ours(path: Path, controller: &ControllerChoice, bytes: usize, seed: u64) -> Dur {
    let config = NodeConfig { controller: controller.clone(), ..NodeConfig::default() };
    let mut net = Virtual::new(path, config, seed).expect("settings that fit");
    let association = net.connect().expect("a peer");
    let mut is_open = false;
    while let Some((node, event)) = net.next_event(if is_open { net.now() + Dur::from_ms(200) } else { LIMIT }) {
        is_open |= node == 0 && matches!(event, NodeEvent::Opened { .. });
    }
    let began = net.now();
    let flow = net.node(0).open_flow(began, association, Some(bytes as u64)).expect("a flow");
    net.node(0).write(flow, vec![7; bytes].into());
    net.node(0).finish(flow);
    while let Some((node, event)) = net.next_event(LIMIT) {
        if let (1, NodeEvent::Readable(flow)) = (node, event) {
            while net.node(1).read(flow).is_some() {}
            if net.node(1).is_read(flow) {
                return net.now() - began;
            }
        }
    }
    panic!("the transfer does not end");
}

/// Returns the time from the connection to the last byte read.
fn stream(path: Path, controller: PlainController, bytes: usize, seed: u64) -> Dur {
    let (one, two) = (Identity::generate().expect("a key"), Identity::generate().expect("a key"));
    let trust = |peer: &Identity| Trusted::from_iter([peer.fingerprint()]);
    let client = QuicConfig { seed: Some(2 * seed), ..QuicConfig::new(one.clone(), trust(&two)) };
    let server = QuicConfig { seed: Some(2 * seed + 1), listens: true, ..QuicConfig::new(two, trust(&one)) };
    let epoch = Instant::now();
    let ends = [client, server].map(|config| PlainStream::new(&config, controller, epoch).expect("settings that fit"));
    let mut net = Virtual::between(ends, path, seed);
    net.node(0).send(Time::ZERO, address_of(1), Bytes::from(vec![7; bytes])).expect("a peer");
    let mut opened = Time::ZERO;
    while let Some((node, event)) = net.next_event(LIMIT) {
        match (node, event) {
            (0, PlainEvent::Connected) => opened = net.now(),
            (1, PlainEvent::Received { bytes: received }) => {
                assert_eq!(received, bytes as u64);
                return net.now() - opened;
            }
            _ => {}
        }
    }
    panic!("the stream does not end");
}

fn median(times: impl Iterator<Item = Dur>) -> f64 {
    let mut times: Vec<f64> = times.map(Dur::as_secs_f64).collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
fn without_loss_the_tail_halves_a_short_transfer_and_saves_the_slow_start_of_a_long_one() {
    let rc3 = ControllerChoice::named("rc3");
    for (bytes, most) in [(1_700_000, 0.55), (20_000_000, 0.95)] {
        let ours = ours(Path::default(), &rc3, bytes, 1).as_secs_f64();
        let stream = stream(Path::default(), PlainController::Cubic, bytes, 1).as_secs_f64();
        assert!(ours <= most * stream, "{bytes} bytes: {ours} and {stream} s");
    }
}

#[test]
fn under_loss_the_tail_compensates_for_the_small_window_of_cubic() {
    let rc3 = ControllerChoice::named("rc3");
    let path = Path { loss: 0.01, ..Path::default() };
    for (bytes, most, seeds) in [(1_700_000, 0.15, 5), (20_000_000, 0.25, 3)] {
        let ours = median((1..=seeds).map(|seed| ours(path, &rc3, bytes, seed)));
        let stream = median((1..=seeds).map(|seed| stream(path, PlainController::Cubic, bytes, seed)));
        assert!(ours <= most * stream, "{bytes} bytes: {ours} and {stream} s");
    }
}

#[test]
fn with_bbr_inside_the_tail_costs_nothing() {
    let (bbr, around) = (ControllerChoice::named("bbr"), ControllerChoice::named("rc3").around("bbr"));
    for (bytes, loss, seeds) in [(1_700_000, 0.0, 1), (20_000_000, 0.0, 1), (1_700_000, 0.01, 5), (20_000_000, 0.01, 3)]
    {
        let path = Path { loss, ..Path::default() };
        let [bbr, around] =
            [&bbr, &around].map(|choice| median((1..=seeds).map(|seed| ours(path, choice, bytes, seed))));
        let stream = median((1..=seeds).map(|seed| stream(path, PlainController::Bbr, bytes, seed)));
        assert!(around <= bbr && around <= stream, "{bytes} bytes, loss {loss}: {around}, {bbr} and {stream} s");
    }
}
