//! A network without hosts, offered the packets of a run at the same times, treats each as the run's network did.

use super::{changes, scenario};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_sim::recorded::{Recording, record};
use sparelane_sim::{Fate, LiveNetwork, Routing, RunConfig};

/// A random scenario with the routes of a network without hosts, and without drops by segment number. Links change in
/// every second one, a picosecond after a round time, so that no packet is sent at that instant.
fn config(seed: u64) -> RunConfig {
    let config = scenario(seed);
    let routing = if config.routing == Routing::FirstCable { Routing::FirstCable } else { Routing::SinglePath };
    let mut changes = if seed.is_multiple_of(2) { changes(&config.network, seed) } else { Vec::new() };
    changes.iter_mut().for_each(|change| change.at += Dur::from_ps(1));
    RunConfig { routing, drops: Vec::new(), changes, ..config }
}

/// Offers the sent packets. Between packets, the time is advanced at random.
fn replay(seed: u64, recording: &Recording) -> (Recording, u64) {
    let mut rng = Stream::new(seed, Domain::Test, 99);
    let config = config(seed);
    let mut network = LiveNetwork::new(&config).expect("a network");
    let mut changes = config.changes.into_iter().peekable();
    let mut again = Recording::default();
    let mut drain = |network: &mut LiveNetwork| {
        while let Some(fate) = network.poll_fate() {
            match fate {
                Fate::Delivered { at, tag, is_marked } => {
                    again.delivered.push((at, recording.sent[tag as usize].identity, is_marked));
                }
                Fate::Dropped { tag } => again.dropped.push(recording.sent[tag as usize].identity),
            }
        }
    };
    let mut now = Time::ZERO;
    for sent in &recording.sent {
        while let Some(change) = changes.next_if(|change| change.at <= sent.at) {
            now = change.at;
            network.change(now, change.cable, change.from, change.change);
        }
        if rng.below(3) == 0 && now < sent.at {
            network.handle_time(now + Dur::from_ps(rng.below((sent.at - now).as_ps())));
        }
        now = sent.at;
        network.handle_packet(now, &sent.offered);
        if rng.below(5) == 0 {
            drain(&mut network);
        }
    }
    for change in changes.take_while(|change| change.at <= recording.ended) {
        network.change(change.at, change.cable, change.from, change.change);
    }
    again.links = network.link_table(recording.ended);
    drain(&mut network);
    (again, network.held_packets())
}

#[test]
fn the_same_packets_at_the_same_times_are_dropped_marked_and_delivered_alike() {
    let (mut marked, mut dropped) = (0, 0);
    for seed in 0..60 {
        let recording = record(config(seed)).expect("physics holds");
        let (mut again, held) = replay(seed, &recording);
        let mut first = recording;
        assert_eq!(first.sent.len() as u64, (again.delivered.len() + again.dropped.len()) as u64 + held, "seed {seed}");
        // A run may end in the middle of an instant.
        first.delivered.retain(|delivered| delivered.0 < first.ended);
        again.delivered.retain(|delivered| delivered.0 < first.ended);
        for all in [&mut first, &mut again] {
            all.delivered.sort_unstable();
            all.dropped.sort_unstable();
        }
        assert!(first.delivered == again.delivered, "seed {seed}: other packets are delivered");
        assert!(first.dropped == again.dropped, "seed {seed}: other packets are dropped");
        assert_eq!(first.links.marked_packets, again.links.marked_packets, "seed {seed}");
        assert_eq!(first.links.dropped_packets, again.links.dropped_packets, "seed {seed}");
        assert_eq!(first.links.lost_packets, again.links.lost_packets, "seed {seed}");
        marked += first.links.marked_packets.iter().sum::<u64>();
        dropped += first.dropped.len();
    }
    assert!(marked > 1_000 && dropped > 1_000, "{marked} marked, {dropped} dropped: too few to tell");
}
