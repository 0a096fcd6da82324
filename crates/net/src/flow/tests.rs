//! Both ends of a flow on a path that loses, delays and duplicates packets.

use super::*;
use crate::frame::Frame;
use bytes::Bytes;
use sparelane_cc::{Blueprint, Registry, Values};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_transport::TransportConfig;
use std::collections::BTreeMap;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn all_open() -> Classes {
    let mut classes = Classes::new(4);
    (0..4).for_each(|class| classes.set_open(class, true));
    classes
}

struct Case {
    controller: &'static str,
    window_bytes: u64,
    loss: f64,
    seed: u64,
    /// The interval at which the reader takes one piece; `None` reads everything at once.
    reads_every: Option<Dur>,
}

impl Default for Case {
    fn default() -> Case {
        Case { controller: "cubic", window_bytes: 1 << 20, loss: 0.0, seed: 1, reads_every: None }
    }
}

struct Outcome {
    read: Vec<u8>,
    took: Time,
    max_memory: usize,
    low: u64,
    sender: SendFlow,
}

/// Carries `writes` over a path with a one-way delay of 10 to 11 ms.
fn carry(case: &Case, writes: &[Vec<u8>]) -> Outcome {
    let config = TransportConfig {
        mss_bytes: 1000,
        receive_window_bytes: Some(case.window_bytes),
        undo_spurious: true,
        ..TransportConfig::default()
    };
    let values = Values::default();
    let registry = Registry::built_in();
    let plan = Blueprint { registry: &registry, ..Blueprint::of_any(1000, &values) };
    let cc = registry.build(case.controller, &values, &plan).expect("a controller");
    let mut sender = SendFlow::new(3, config, cc, TailConfig::default(), Time::ZERO, None, 1);
    let mut receiver = ReceiveFlow::new(3, &config);
    let mut rng = Stream::new(case.seed, Domain::Test, 0);
    writes.iter().for_each(|write| sender.write(Bytes::copy_from_slice(write)));
    sender.finish();
    let mut path: BTreeMap<(Time, u64), (bool, u8, Vec<u8>)> = BTreeMap::new();
    let (mut now, mut order, mut read, mut reads_at, mut max_memory) = (Time::ZERO, 0, vec![], Time::ZERO, 0);
    let classes = all_open();
    // Each round sends what is due, moves time to the next arrival or timer, and delivers.
    while !(sender.is_done() && receiver.is_read()) {
        let mut out = vec![];
        sender.advance(now, &classes, &mut |class, frame| out.push((true, class, frame)));
        if now >= reads_at {
            reads_at = case.reads_every.map_or(now, |every| now + every);
            while let Some(bytes) = receiver.read() {
                read.extend_from_slice(&bytes);
                if case.reads_every.is_some() {
                    break;
                }
            }
        }
        receiver.flush(200, &mut |class, frame| out.push((false, class, frame)));
        for packet in out {
            let copies = 1 + u64::from(rng.unit() < case.loss / 10.0);
            for _ in 0..copies {
                if rng.unit() >= case.loss {
                    order += 1;
                    path.insert((now + Dur::from_us(10_000 + rng.below(1000)), order), packet.clone());
                }
            }
        }
        max_memory = max_memory.max(receiver.memory_bytes());
        let read_at = if case.reads_every.is_some() { reads_at } else { Time::NEVER };
        let next = path.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        now = next.min(sender.next_timer(&classes)).min(read_at).max(now);
        assert!(now < Time::ZERO + Dur::from_secs(10_000), "the flow does not end");
        while let Some(entry) = path.first_entry().filter(|entry| entry.key().0 <= now) {
            let (forth, class, bytes) = entry.remove();
            match Frame::decode(&bytes.into()).expect("a frame") {
                Frame::Data(data) if forth => receiver.handle_data(now, class, data, false, 0).expect("honest data"),
                Frame::Probe { .. } if forth => receiver.handle_probe(),
                Frame::Acks { edge, entries, .. } => {
                    sender.handle_acks(now, class, edge, &entries).expect("honest acknowledgments");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let low = receiver.received()[1..].iter().sum();
    Outcome { read, took: now, max_memory, low, sender }
}

#[test]
fn written_bytes_are_read_despite_losses_and_duplicates() {
    let all = content(300_001);
    for seed in 0..30 {
        let controller = ["cubic", "rc3", "bbr", "rapid", "ledbat"][seed as usize % 5];
        let mut rng = Stream::new(seed, Domain::Test, 1);
        let mut writes = vec![];
        let mut rest = &all[..];
        while !rest.is_empty() {
            let (write, after) = rest.split_at(rest.len().min(1 + rng.below(60_000) as usize));
            writes.push(write.to_vec());
            rest = after;
        }
        let outcome = carry(&Case { controller, loss: 0.03, seed, ..Case::default() }, &writes);
        assert!(outcome.read == all, "seed {seed}, {controller}");
        assert_eq!((outcome.sender.buffered_bytes(), outcome.sender.counts().0.refused_acks), (0, 0), "{controller}");
    }
}

#[test]
fn an_empty_flow_ends() {
    let outcome = carry(&Case::default(), &[]);
    assert!(outcome.read.is_empty() && outcome.took < Time::ZERO + Dur::from_ms(30), "{}", outcome.took);
}

#[test]
fn the_tail_delivers_most_of_a_short_flow_in_the_first_round_trip() {
    let outcome = carry(&Case { controller: "rc3", ..Case::default() }, &[content(200_000)]);
    let plain = carry(&Case::default(), &[content(200_000)]);
    assert!(outcome.low > 100 && plain.low == 0, "{} and {}", outcome.low, plain.low);
    assert!(outcome.took - Time::ZERO < (plain.took - Time::ZERO).scaled(0.6), "{} and {}", outcome.took, plain.took);
}

#[test]
fn a_slow_reader_slows_the_sender_and_memory_stays_within_the_window() {
    for loss in [0.0, 0.02] {
        let case = Case { window_bytes: 50_000, reads_every: Some(Dur::from_ms(5)), loss, ..Case::default() };
        let outcome = carry(&case, &[content(1_000_000)]);
        assert!(outcome.read == content(1_000_000));
        assert!(outcome.max_memory < 80_000, "{}", outcome.max_memory);
        let took = outcome.took.as_secs_f64();
        assert!((5.0..6.5).contains(&took), "one segment per 5 ms takes 5 s, not {took}");
    }
}

#[test]
fn small_and_distant_segments_count_with_all_their_memory() {
    let config =
        TransportConfig { mss_bytes: 1000, receive_window_bytes: Some(20_000_000), ..TransportConfig::default() };
    let mut receiver = ReceiveFlow::new(1, &config);
    let data = |segment: u32| {
        let (flow, resent, window_reduced, last, timed) = (1, false, false, false, false);
        crate::frame::Data { flow, segment, resent, window_reduced, last, timed, payload: Bytes::from_static(b"x") }
    };
    let mut held = 0;
    // The last segment of the window, then others, then all that were missing.
    for segment in [19_999, 5, 1, 19_000].into_iter().chain(0..19_999) {
        let most = receiver.cost_bytes(&data(segment));
        assert_eq!(receiver.handle_data(Time::ZERO, 0, data(segment), false, 0), Ok(()));
        let added = receiver.held_bytes() - held;
        assert!(added <= most, "{added} bytes for segment {segment}, not {most}");
        held = receiver.held_bytes();
        assert!(held >= 20_000 * 32, "one byte at the end of the window needs slots for all of it: {held}");
    }
    assert!(held >= 20_000 * (32 + 128), "{held}");
    assert!(receiver.cost_bytes(&data(30_000)) < 200, "it is beyond the window");
    while receiver.read().is_some() {}
    assert!(receiver.held_bytes() < 100_000, "read segments and their slots are freed: {}", receiver.held_bytes());
}

#[test]
fn contradictory_segments_are_refused() {
    let config = TransportConfig { mss_bytes: 1000, receive_window_bytes: Some(100_000), ..TransportConfig::default() };
    let mut receiver = ReceiveFlow::new(1, &config);
    let mut take = |segment: u32, last: bool| {
        let payload = Bytes::from_static(b"x");
        let (flow, resent, window_reduced, timed) = (1, false, false, false);
        let data = crate::frame::Data { flow, segment, resent, window_reduced, last, timed, payload };
        receiver.handle_data(Time::ZERO, 0, data, false, 0)
    };
    assert_eq!(take(5, false), Ok(()));
    assert_eq!(take(3, true), Err(Refused::AnotherLast { segment: 3, last: 5 }));
    assert_eq!(take(8, true), Ok(()));
    assert_eq!(take(9, false), Err(Refused::BehindTheLast { segment: 9, last: 8 }));
    assert_eq!(take(7, true), Err(Refused::AnotherLast { segment: 7, last: 8 }));
    assert_eq!(take(u32::MAX, false), Ok(()), "below the first segment: ignored");
    assert!(!receiver.has_all() && receiver.received()[0] <= 3 && receiver.memory_bytes() < 10_000);
}

#[test]
fn acknowledgments_of_unsent_segments_are_refused() {
    let values = Values::default();
    let cc = sparelane_cc::build("cubic", &values, &Blueprint::of_any(1000, &values)).expect("a controller");
    let config = TransportConfig { mss_bytes: 1000, ..TransportConfig::default() };
    let mut sender = SendFlow::new(1, config, cc, TailConfig::default(), Time::ZERO, None, 1);
    sender.write(Bytes::from(content(50_000)));
    let mut sent = 0;
    sender.advance(Time::ZERO, &all_open(), &mut |_, _| sent += 1);
    assert_eq!(sent, 10);
    let entry = |trigger: u32, run| crate::frame::Entry { cumulative: trigger + 1, trigger, run, ..Default::default() };
    let later = Time::ZERO + Dur::from_ms(10);
    assert!(sender.handle_acks(later, 0, 1000, &[entry(10, 0)]).is_err());
    assert!(sender.handle_acks(later, 0, 1000, &[entry(0, 65_535)]).is_err(), "a run beyond the last segment sent");
    assert!(sender.handle_acks(later, 2, 1000, &[entry(0, 0)]).is_err(), "nothing was sent in class 2");
    assert_eq!(sender.counts().0.refused_acks, 3);
    assert_eq!(sender.acknowledged_bytes(), 10_000, "the entries before the refused ones count");
}
