//! Random conversations: whatever is lost, late or marked, everything arrives, and certain laws hold at every step.

use crate::wire::*;
use sparelane_cc::Blueprint;
use sparelane_cc::Registry;
use sparelane_cc::{CongestionControl, Kind, Value, Values, build};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_transport::{DelayedAck, Ecn, FlightSize, SackBlock, TransportConfig};
use std::collections::BTreeSet;

const SCRIPTS: u64 = 200;

/// What can happen to a connection, drawn from a seed.
struct Story {
    config: TransportConfig,
    one_way: Dur,
    /// Of a thousand packets, so many are lost.
    lost: u64,
    /// Of a thousand packets, so many are late.
    late: u64,
    marked: u64,
    /// When the application writes, and how many bytes.
    writes: Vec<(Time, u64)>,
    busy: Dur,
}

impl Story {
    /// Those of odd seeds have the timers and timestamps of Linux.
    fn draw(seed: u64, rng: &mut Stream, sack: bool) -> Story {
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
        Story {
            config,
            one_way: Dur::from_us(pick(&[20, 1_000, 10_000, 50_000])),
            lost: pick(&[0, 5, 20, 100, 250]),
            late: pick(&[0, 0, 10, 100]),
            marked: pick(&[0, 30]),
            writes,
            busy: Dur::from_us(pick(&[0, 10, 700])),
        }
    }

    /// Draws the fate of every packet.
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

/// What the sender has been told that the receiver holds.
#[derive(Default)]
struct Known {
    cumulative: u64,
    reported: BTreeSet<u64>,
    /// All below has at some time been known to have arrived.
    complete: u64,
}

impl Known {
    /// What low priority says is a report like SACK's, and nothing without SACK.
    fn hear(&mut self, class: u8, cumulative: u64, blocks: &[SackBlock], sack: bool) {
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

fn converse(seed: u64, sack: bool, cc: Box<dyn CongestionControl>, shortens: bool) -> Wire {
    let mut rng = Stream::new(seed, Domain::Test, 0);
    let story = Story::draw(seed, &mut rng, sack);
    tell(&story, rng, cc, shortens)
}

/// The conversation, with what holds at every step of it.
fn tell(story: &Story, rng: Stream, cc: Box<dyn CongestionControl>, shortens: bool) -> Wire {
    let sack = story.config.sack;
    // What waits in a scheduler below TCP leaves even where an acknowledgment has come meanwhile.
    let (is_tail_user, is_scheduled) = (cc.uses_tail(), cc.schedules_departures());
    let mut wire = Wire::new(story.config, cc, story.script(rng));
    (wire.one_way, wire.busy, wire.shortens) = (story.one_way, story.busy, shortens);
    let mut known = Known::default();
    let (mut seen, mut timeouts, mut most_before) = (0, 0, 0);
    let mut tail = BTreeSet::new();
    let mut writes = story.writes.iter().peekable();
    let written: u64 = story.writes.iter().map(|(_, bytes)| bytes).sum();
    loop {
        let next_write = writes.peek().map_or(Time::NEVER, |(at, _)| *at);
        if !wire.step(next_write) {
            let Some(&(at, bytes)) = writes.next() else { panic!("stuck at {}: {:?}", wire.now, wire.sender) };
            wire.now = at;
            wire.write_bytes(bytes);
        }
        if wire.sender.counts().timeouts > timeouts {
            timeouts = wire.sender.counts().timeouts;
            if !story.config.sack_survives_timeout {
                known.reported.clear();
            }
        }
        if let Some((ack, blocks)) = wire.heard.take() {
            known.hear(ack.class, ack.cumulative, &blocks, sack);
        }
        let limits = wire.sender.controller().limits();
        for sent in &wire.sent[seen..] {
            let Item::Data(segment) = sent.item else { continue };
            assert!(is_scheduled || !known.holds(segment.seq), "sends {} to one who has it", segment.seq);
            if segment.class > 0 {
                assert!(is_tail_user && tail.insert(segment.seq), "{} from the tail again", segment.seq);
            } else if sack && !segment.retransmission && !story.config.undo_spurious {
                // After an undo, originals and retransmissions are in flight together. A reduction in proportion leaves more
                // than the window in flight at first, but never more than there was.
                let in_flight = wire.sender.in_flight_bytes();
                let most = if story.config.prr { limits.cwnd_bytes.max(most_before) } else { limits.cwnd_bytes };
                assert!(in_flight <= most + 2 * MSS, "{in_flight} in flight, {most_before} before, under {limits:?}");
            }
            let window = story.config.receive_window_bytes.map_or(u64::MAX, |bytes| bytes / MSS);
            assert!(segment.seq < known.complete + window, "{} beyond the window", segment.seq);
        }
        seen = wire.sent.len();
        most_before = wire.sender.in_flight_bytes().max(most_before);
        if story.late == 0 && timeouts == 0 && sack {
            let truth = wire.class0_on_the_way(|seq| !known.holds(seq));
            let pipe = wire.sender.in_flight_bytes() / MSS;
            assert!(pipe >= truth, "{truth} segments of class 0 are on the way, and the pipe counts {pipe}");
        }
        if writes.peek().is_none() && wire.sender.is_done() {
            break;
        }
        assert!(wire.now < at_ms(100_000_000), "no end in sight: {:?}", wire.sender);
    }
    assert_eq!(wire.receiver.held_bytes(), written);
    // What is still on its way finds a sender at rest.
    wire.run_until(wire.now + Dur::from_secs(1000));
    assert_eq!(wire.sender.next_timer(), Time::NEVER);
    wire
}

/// A controller that stands alone, or rc3 around it.
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
fn whatever_happens_everything_arrives_and_no_law_is_broken() {
    for controller in
        Registry::built_in().all().iter().filter(|one| one.params.iter().all(|param| param.kind != Kind::Controller))
    {
        // A scheduler below TCP has one queue, and no room for the tail.
        let is_scheduled = built(controller.name, false, "push").schedules_departures();
        for (inside, sack) in [(false, true), (false, false), (true, true), (true, false)] {
            if inside && is_scheduled {
                continue;
            }
            for seed in 0..SCRIPTS {
                let feed = if seed % 2 == 0 { "pull" } else { "push" };
                let name = controller.name;
                let told = std::panic::catch_unwind(|| converse(seed, sack, built(name, inside, feed), true));
                assert!(told.is_ok(), "seed {seed}, {name}, inside rc3: {inside}, sack: {sack}");
            }
        }
    }
}

/// Where a controller hears of single segments, lost retransmissions are found by the order of what was sent; what overtook an
/// earlier copy must not count against a later one.
#[test]
fn a_retransmission_on_its_way_is_never_taken_for_lost() {
    for name in ["bbr", "bbr3", "pcc-vivace", "newreno"] {
        for seed in 0..SCRIPTS {
            let mut rng = Stream::new(seed, Domain::Test, 1);
            let mut story = Story::draw(0, &mut rng, true);
            (story.lost, story.late) = (250, 0);
            (story.config.rack_tlp, story.config.detect_lost_retransmissions) = (false, true);
            let told = std::panic::catch_unwind(|| tell(&story, rng, built(name, false, "push"), true));
            assert!(told.is_ok(), "seed {seed}, {name}");
        }
    }
}

#[test]
fn the_short_ways_lead_to_the_same() {
    let mut shortened = [0; 2];
    for seed in 0..SCRIPTS {
        for (name, sack) in [("newreno", true), ("newreno", false), ("cubic", true), ("dctcp", true)] {
            let [short, long] =
                [true, false].map(|shortens| converse(seed, sack, built(name, false, "push"), shortens));
            assert_eq!(short.sent, long.sent, "seed {seed}, {name}, sack: {sack}");
            assert_eq!(short.windows, long.windows, "seed {seed}, {name}, sack: {sack}");
            assert_eq!(long.shortened, [0, 0]);
            shortened = [0, 1].map(|end| shortened[end] + short.shortened[end]);
        }
    }
    assert!(
        shortened.iter().all(|&times| times > 20_000),
        "data and acknowledgments went the short way {shortened:?} times"
    );
}
