//! The scavenger: windows agree to two bytes plus 0.02 %, gains and stages exactly.
//!
//! The program rounds changes of the window to 2^-16 of a segment per round trip, such as a third or a seventh of one.

use super::{Twin, constants};
use sparelane_cc::contract::{Ack, Congestion, Cx, Phase};
use sparelane_cc::param::{Value, Values};
use sparelane_cc::registry::{Blueprint, build};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};

const MSS: u64 = 1000;

/// Acknowledgments of one segment each, as pairs of time and round trip in microseconds. A round trip of zero is a
/// loss.
type Events = Vec<(u64, u64)>;

fn kernel(settings: &[(&str, &str)], events: &Events) -> Vec<Vec<u64>> {
    let mut script = format!("open {MSS}\n");
    for &(at, rtt) in events {
        script += &if rtt == 0 { "state 3\nstate 0\n".to_owned() } else { format!("ack {at} {rtt} {rtt} 1\n") };
    }
    let settings = [settings, &[("mark", "no")]].concat();
    let answers = Twin::compiled("scavenger").answers(&constants("scavenger", &settings, Rate::from_gbps(1)), &script);
    let mut rows = answers.into_iter().skip(1);
    let mut kept = Vec::new();
    for &(_, rtt) in events {
        if rtt == 0 {
            rows.next();
        }
        kept.extend(rows.next());
    }
    kept
}

fn simulator(initial_window: u64, events: &Events) -> Vec<(u64, u64, bool)> {
    let (mut values, inner) = (Values::default(), Values::default());
    values.set("initial_window", Value::Whole(initial_window));
    let mut law = build("ledbat-plus-plus", &values, &Blueprint::of_any(MSS, &inner)).expect("a controller");
    let mut rng = Stream::new(1, Domain::Test, 0);
    let mut rows = Vec::new();
    for &(at, rtt) in events {
        let (now, span) = (Time::ZERO + Dur::from_us(at), Dur::from_us(rtt));
        let mut cx = Cx { now, mss_bytes: MSS, srtt: Some(span), min_rtt: Some(span), rng: &mut rng };
        if rtt == 0 {
            law.on_congestion(Congestion::Loss { flight_bytes: 0 }, &mut cx);
        } else {
            law.on_ack(&Ack { rtt: Some(span), phase: Phase::Open, ..Ack::in_sequence(MSS) }, &mut cx);
        }
        let mut found = (law.limits().cwnd_bytes, 0, false);
        law.trace(&mut |name, value| match name {
            "gain" => found.1 = (1.0 / value).round() as u64,
            "is_slowed_down" => found.2 = value == 1.0,
            _ => {}
        });
        rows.push(found);
    }
    rows
}

fn assert_equal(initial_window: u64, events: &Events) {
    let text = initial_window.to_string();
    let kernel = kernel(&[("initial_window", &text)], events);
    let simulator = simulator(initial_window, events);
    assert_eq!((kernel.len(), simulator.len()), (events.len(), events.len()));
    for (at, (one, other)) in kernel.iter().zip(&simulator).enumerate() {
        let is_equal = one[0].abs_diff(other.0) <= 2 + other.0 / 5000 && one[2] == other.1 && (one[3] == 2) == other.2;
        assert!(is_equal, "event {at}, {:?}: {one:?} in the program, {other:?} in the simulator", events[at]);
        assert_eq!(one[4], (one[0] / MSS).max(1), "whole segments");
    }
}

/// Returns acknowledgments spread evenly over round trips of these lengths, `segments` in each.
fn rounds(rtts_ms: &[u64], segments: u64) -> Events {
    let (mut at, mut events) = (0, Vec::new());
    for rtt_ms in rtts_ms {
        for _ in 0..segments {
            at += rtt_ms * 1000 / segments;
            events.push((at, rtt_ms * 1000));
        }
    }
    events
}

#[test]
fn slow_start_and_slowdowns_agree_with_the_simulator() {
    let mut rtts = vec![120; 3];
    rtts.extend([166, 180, 121, 121, 121, 125, 140, 186, 300, 121]);
    rtts.extend([121; 40]);
    assert_equal(48, &rounds(&rtts, 60));
}

#[test]
fn windows_agree_through_random_delays_and_losses() {
    for seed in 0..4 {
        let mut random = Stream::new(seed, Domain::Test, 11);
        let (mut at, mut events, mut queue_us) = (0, Vec::new(), 0);
        let base_us = [5_000, 30_000, 70_000, 119_000][seed as usize];
        for _ in 0..4_000 {
            at += 1 + random.below(3_000);
            queue_us = (queue_us + random.below(4_000)).saturating_sub(random.below(4_200)).min(150_000);
            events.push((at, base_us + queue_us));
            if random.below(700) == 0 {
                events.push((at, 0));
            }
        }
        assert_equal(2, &events);
    }
}

#[test]
fn sockets_are_marked_before_their_priority_is_lowered() {
    let settings = constants("scavenger", &[("priority", "2")], Rate::from_gbps(1));
    let lines = Twin::compiled("scavenger").lines(&settings, "open 1000\n");
    // IP_TOS of SOL_IP sets a priority of its own, so SO_PRIORITY of SOL_SOCKET must come later.
    assert_eq!(lines[..2], ["option 0 1 4", "option 1 12 2"]);
}
