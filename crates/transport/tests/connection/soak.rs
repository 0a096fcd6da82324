//! Random tests: for any loss, delay and marking of packets, all data arrives, and invariants hold after every event.

use crate::wire::*;
use sparelane_cc::Blueprint;
use sparelane_cc::Registry;
use sparelane_cc::{CongestionControl, Kind, Value, Values, build};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_transport::{DelayedAck, Ecn, FlightSize, SackBlock, TransportConfig};
use std::collections::BTreeSet;

const SCRIPTS: u64 = 200;

/// A random connection: its settings, its path and its application.
struct Scenario {
    config: TransportConfig,
    one_way: Dur,
    /// The loss rate in packets per thousand.
    lost: u64,
    /// The rate of late packets per thousand.
    late: u64,
    /// The rate of marked data packets per thousand.
    marked: u64,
    /// The writes of the application: time and bytes.
    writes: Vec<(Time, u64)>,
    busy: Dur,
}

impl Scenario {
    /// Draws a connection. Odd seeds use Linux's timers and timestamps.
    fn draw(seed: u64, rng: &mut Stream, sack: bool) -> Scenario {
        let is_linux = seed % 2 == 1;
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let config = TransportConfig {
            mss_bytes: MSS,
            sack,
            limited_transmit: pick(&[0, 1]) == 1,
            flight_size: [FlightSize::Clipped, FlightSize::Window, FlightSize::Pipe, FlightSize::Outstanding]
                [pick(&[0, 1, 2, 3]) as usize],
            prr: pick(&[0, 1]) == 1,
            rack_tlp: pick(&[0, 0, 1]) == 1,
            detect_lost_retransmissions: pick(&[0, 0, 1]) == 1,
            adaptive_reordering: pick(&[0, 0, 1]) == 1,
            timestamps: pick(&[0, 1]) == 1,
            delayed_ack: (pick(&[0, 1, 2]) == 0).then(|| DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) }),
            sack_survives_timeout: pick(&[0, 1]) == 1,
            undo_spurious: pick(&[0, 1]) == 1,
            receive_window_bytes: Some(pick(&[u64::from(u32::MAX) * MSS, 7 * MSS, 40 * MSS])),
            send_buffer_bytes: Some(pick(&[u64::from(u32::MAX) * MSS, 5 * MSS, 60 * MSS])),
            rack_timer_delay: if is_linux { Dur::from_ms(2) } else { Dur::ZERO },
            resent_rtt_tick: is_linux.then_some(Dur::from_ms(1)),
            ecn: [Ecn::Off, Ecn::Classic, Ecn::Dctcp][pick(&[0, 1, 2]) as usize],
            ..TransportConfig::default()
        };
        let mut writes: Vec<_> = (0..pick(&[1, 1, 2, 3]))
            .map(|_| (at_ms(pick(&[0, 0, 150, 333, 2000, 60_000])), 1 + pick(&[1, 999, 30_000, 90_500, 300_000])))
            .collect();
        writes.sort();
        Scenario {
            config,
            one_way: Dur::from_us(pick(&[20, 1_000, 10_000, 50_000])),
            lost: pick(&[0, 5, 20, 100, 250]),
            late: pick(&[0, 0, 10, 100]),
            marked: pick(&[0, 30]),
            writes,
            busy: Dur::from_us(pick(&[0, 10, 700])),
        }
    }

    /// Returns a script that draws the fate of each packet.
    fn script(&self, mut rng: Stream) -> Script {
        let (lost, late, one_way) = (self.lost, self.late, self.one_way);
        let marked = if self.config.ecn == Ecn::Off { 0 } else { self.marked };
        Box::new(move |sent| {
            let [a, b, c] = [rng.below(1000), rng.below(1000), rng.below(1000)];
            match sent.item {
                _ if a < lost => Fate::Lost,
                _ if b < late => Fate::Late(Dur::from_ps(rng.below(3 * one_way.as_ps()))),
                Item::Data(_) if c < marked => Fate::Marked,
                _ => Fate::Arrive,
            }
        })
    }
}

/// The segments that the receiver has reported to the sender.
#[derive(Default)]
struct Reported {
    cumulative: u64,
    reported: BTreeSet<u64>,
    /// All segments below have been reported, even if the reports were discarded later.
    complete: u64,
}

impl Reported {
    /// Records an acknowledgment. In low classes its cumulative part counts as a SACK block, or not at all without
    /// SACK.
    fn record(&mut self, class: u8, cumulative: u64, blocks: &[SackBlock], sack: bool) {
        if class == 0 {
            self.cumulative = self.cumulative.max(cumulative);
        } else if sack {
            self.reported.extend(self.cumulative..cumulative);
        }
        self.reported.extend(blocks.iter().flat_map(|block| block.start..block.end));
        while self.holds(self.complete) {
            self.complete += 1;
        }
    }

    fn holds(&self, seq: u64) -> bool {
        seq < self.cumulative || self.reported.contains(&seq)
    }
}

fn run_random(seed: u64, sack: bool, cc: Box<dyn CongestionControl>, fast_paths: bool) -> Wire {
    let mut rng = Stream::new(seed, Domain::Test, 0);
    let scenario = Scenario::draw(seed, &mut rng, sack);
    run_checked(&scenario, rng, cc, fast_paths)
}

/// Runs the connection and checks the invariants after every event.
fn run_checked(scenario: &Scenario, rng: Stream, cc: Box<dyn CongestionControl>, fast_paths: bool) -> Wire {
    let sack = scenario.config.sack;
    // A segment that waits in a scheduler below TCP departs even if it was acknowledged meanwhile.
    let (is_tail_user, is_scheduled) = (cc.uses_tail(), cc.schedules_departures());
    let mut wire = Wire::new(scenario.config, cc, scenario.script(rng));
    (wire.one_way, wire.busy, wire.fast_paths) = (scenario.one_way, scenario.busy, fast_paths);
    let mut known = Reported::default();
    let (mut seen, mut timeouts, mut most_before) = (0, 0, 0);
    let mut tail = BTreeSet::new();
    let mut writes = scenario.writes.iter().peekable();
    let written: u64 = scenario.writes.iter().map(|(_, bytes)| bytes).sum();
    loop {
        let next_write = writes.peek().map_or(Time::NEVER, |(at, _)| *at);
        if !wire.step(next_write) {
            let Some(&(at, bytes)) = writes.next() else { panic!("stuck at {}: {:?}", wire.now, wire.sender) };
            wire.now = at;
            wire.write_bytes(bytes);
        }
        if wire.sender.counts().timeouts > timeouts {
            timeouts = wire.sender.counts().timeouts;
            if !scenario.config.sack_survives_timeout {
                known.reported.clear();
            }
        }
        if let Some((ack, blocks)) = wire.last_ack.take() {
            known.record(ack.class, ack.cumulative, &blocks, sack);
        }
        let limits = wire.sender.controller().limits();
        for sent in &wire.sent[seen..] {
            let Item::Data(segment) = sent.item else { continue };
            assert!(is_scheduled || !known.holds(segment.seq), "the receiver holds {} already", segment.seq);
            if segment.class > 0 {
                assert!(is_tail_user && tail.insert(segment.seq), "{} is sent twice from the tail", segment.seq);
            } else if sack && !segment.retransmission && !scenario.config.undo_spurious {
                // After an undo, both originals and retransmissions are in flight. With PRR the pipe exceeds the window
                // at first, but never its previous value.
                let in_flight = wire.sender.in_flight_bytes();
                let most = if scenario.config.prr { limits.cwnd_bytes.max(most_before) } else { limits.cwnd_bytes };
                assert!(in_flight <= most + 2 * MSS, "{in_flight} in flight, {most_before} before, under {limits:?}");
            }
            let window = scenario.config.receive_window_bytes.map_or(u64::MAX, |bytes| bytes / MSS);
            assert!(segment.seq < known.complete + window, "{} beyond the window", segment.seq);
        }
        seen = wire.sent.len();
        most_before = wire.sender.in_flight_bytes().max(most_before);
        if scenario.late == 0 && timeouts == 0 && sack {
            let in_flight = wire.class0_in_flight(|seq| !known.holds(seq));
            let pipe = wire.sender.in_flight_bytes() / MSS;
            assert!(pipe >= in_flight, "{in_flight} class-0 segments are in flight, and the pipe is {pipe}");
        }
        if writes.peek().is_none() && wire.sender.is_done() {
            break;
        }
        assert!(wire.now < at_ms(100_000_000), "the transfer does not end: {:?}", wire.sender);
    }
    assert_eq!(wire.receiver.held_bytes(), written);
    // Packets that are still in flight must not start a timer.
    wire.run_until(wire.now + Dur::from_secs(1000));
    assert_eq!(wire.sender.next_timer(), Time::NEVER);
    wire
}

/// Builds a controller, or RC3 around it if `inside` is set.
fn built(name: &str, inside: bool, feed: &str) -> Box<dyn CongestionControl> {
    let (none, mut values) = (Values::default(), Values::default());
    let outer = if inside { "rc3" } else { name };
    if inside {
        values.set("inner", Value::Word(name.to_owned()));
        values.set("feed", Value::Word(feed.to_owned()));
    }
    build(outer, &values, &Blueprint::of_any(MSS, &none)).unwrap_or_else(|error| panic!("{outer}: {error}"))
}

#[test]
fn all_data_arrives_and_the_invariants_hold_for_every_controller() {
    for controller in
        Registry::built_in().all().iter().filter(|one| one.params.iter().all(|param| param.kind != Kind::Controller))
    {
        // A scheduler below TCP has a single queue, so RC3's tail cannot use it.
        let is_scheduled = built(controller.name, false, "push").schedules_departures();
        for (inside, sack) in [(false, true), (false, false), (true, true), (true, false)] {
            if inside && is_scheduled {
                continue;
            }
            for seed in 0..SCRIPTS {
                let feed = if seed % 2 == 0 { "pull" } else { "push" };
                let name = controller.name;
                let result = std::panic::catch_unwind(|| run_random(seed, sack, built(name, inside, feed), true));
                assert!(result.is_ok(), "seed {seed}, {name}, inside rc3: {inside}, sack: {sack}");
            }
        }
    }
}

/// With per-segment state, lost retransmissions are detected by the order of transmission. An arrival that overtook an
/// earlier copy must not count against a later one.
#[test]
fn a_retransmission_in_flight_is_never_marked_lost() {
    for name in ["bbr", "bbr3", "pcc-vivace", "newreno"] {
        for seed in 0..SCRIPTS {
            let mut rng = Stream::new(seed, Domain::Test, 1);
            let mut scenario = Scenario::draw(0, &mut rng, true);
            (scenario.lost, scenario.late) = (250, 0);
            (scenario.config.rack_tlp, scenario.config.detect_lost_retransmissions) = (false, true);
            let result = std::panic::catch_unwind(|| run_checked(&scenario, rng, built(name, false, "push"), true));
            assert!(result.is_ok(), "seed {seed}, {name}");
        }
    }
}

#[test]
fn fast_and_slow_paths_have_the_same_effect() {
    let mut fast_path_counts = [0; 3];
    for seed in 0..SCRIPTS {
        for (name, sack) in [("newreno", true), ("newreno", false), ("cubic", true), ("dctcp", true)] {
            let [short, long] =
                [true, false].map(|fast_paths| run_random(seed, sack, built(name, false, "push"), fast_paths));
            assert_eq!(short.sent, long.sent, "seed {seed}, {name}, sack: {sack}");
            assert_eq!(short.windows, long.windows, "seed {seed}, {name}, sack: {sack}");
            assert_eq!(long.fast_path_counts, [0; 3]);
            fast_path_counts = [0, 1, 2].map(|end| fast_path_counts[end] + short.fast_path_counts[end]);
        }
    }
    assert!(
        fast_path_counts.iter().zip([20_000, 20_000, 500]).all(|(&times, least)| times > least),
        "data, cumulative and selective acknowledgments used the fast paths {fast_path_counts:?} times"
    );
}

/// Few drawn connections use the fast path for SACK blocks, because they have other features or short recoveries. These do.
#[test]
fn both_paths_have_the_same_effect_in_long_recoveries() {
    let mut times = 0;
    for seed in 0..SCRIPTS / 4 {
        for name in ["newreno", "cubic", "dctcp"] {
            let mut rng = Stream::new(seed, Domain::Test, 1);
            let mut scenario = Scenario::draw(seed, &mut rng, true);
            let config = &mut scenario.config;
            (config.prr, config.rack_tlp, config.adaptive_reordering) = (false, false, false);
            config.detect_lost_retransmissions = seed % 8 == 0;
            let unlimited = Some(u64::from(u32::MAX) * MSS);
            (config.receive_window_bytes, config.send_buffer_bytes) = (unlimited, unlimited);
            (scenario.lost, scenario.late) = ([3, 10, 30][seed as usize % 3], [0, 0, 5][seed as usize / 3 % 3]);
            scenario.one_way = Dur::from_ms(10);
            scenario.writes = vec![(Time::ZERO, 600_000), (at_ms(40), 300_000)];
            let run = |fast_paths| run_checked(&scenario, rng.clone(), built(name, false, "push"), fast_paths);
            let [short, long] = [true, false].map(run);
            assert_eq!(short.sent, long.sent, "seed {seed}, {name}");
            assert_eq!(short.windows, long.windows, "seed {seed}, {name}");
            times += short.fast_path_counts[2];
        }
    }
    assert!(times > 10_000, "acknowledgments used the fast path for SACK blocks {times} times");
}
