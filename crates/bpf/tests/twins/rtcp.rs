//! RTCP: windows agree to the byte, the counter to 0.01 byte, and congestion to 0.0001 kB plus 0.01 %.
//!
//! The program rounds H and S to 2^-16, and the distance of H from the weight to a share of 2^-32.

use super::{Twin, constants};
use sparelane_cc::contract::{Ack, Congestion, CongestionControl, Cx, Phase};
use sparelane_cc::param::{Value, Values};
use sparelane_cc::registry::{Blueprint, build};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};

const MSS: u64 = 1000;
const LINE: Rate = Rate::from_gbps(1);

/// Settings as users write them: pairs of key and text.
type Settings<'a> = &'a [(&'a str, &'a str)];

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An acknowledgment of this number of segments arrives; time and round trip are in microseconds.
    Ack { at: u64, rtt: u64, segments: u64 },
    /// A loss is detected.
    Loss,
    /// The loss is repaired.
    Repaired,
    /// The retransmission timer expires.
    Timeout,
}

/// The state of a connection, as both implementations report it.
#[derive(Clone, Copy, Debug)]
struct State {
    cwnd_bytes: u64,
    counter_bytes: f64,
    congestion_kb: f64,
    delay_us: f64,
}

fn script(events: &[Event]) -> String {
    let mut script = format!("open 0 {MSS}\n");
    for event in events {
        script += &match event {
            Event::Ack { at, rtt, segments } => format!("ack {at} {rtt} {segments}\n"),
            Event::Loss => "state 3\n".to_owned(),
            Event::Repaired => "state 0\n".to_owned(),
            Event::Timeout => "state 4\n".to_owned(),
        };
    }
    script
}

fn kernel(settings: &[(&str, &str)], events: &[Event]) -> Vec<State> {
    let answers = Twin::compiled("rtcp").answers(&constants("rtcp", settings, LINE), &script(events));
    let state = |row: &Vec<u64>| State {
        cwnd_bytes: row[0],
        counter_bytes: row[1] as f64 / 65_536.0,
        congestion_kb: row[2] as f64 / 65_536.0,
        delay_us: row[3] as f64,
    };
    answers[1..].iter().map(state).collect()
}

fn simulator(settings: &[(&'static str, Value)], events: &[Event]) -> Vec<State> {
    let mut values = Values::default();
    values.set("interface", Value::Word("delay".to_owned()));
    // The program does not know how many segments one acknowledgment covers.
    values.set("min_window", Value::Whole(1));
    settings.iter().for_each(|(name, value)| values.set(name, value.clone()));
    let inner = Values::default();
    let plan = Blueprint { line_rate: LINE, ..Blueprint::of_any(MSS, &inner) };
    let mut rtcp = build("rtcp", &values, &plan).expect("a controller");
    let mut rng = Stream::new(1, Domain::Test, 0);
    let (mut now, mut phase) = (Time::ZERO, Phase::Open);
    let mut with = |rtcp: &mut dyn CongestionControl, now, call: &dyn Fn(&mut dyn CongestionControl, &mut Cx<'_>)| {
        call(rtcp, &mut Cx { now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng });
    };
    // The program is initialized at time zero, too (`open 0`).
    with(&mut *rtcp, now, &|rtcp, cx| rtcp.on_established(None, cx));
    let mut states = Vec::new();
    for event in events {
        match *event {
            Event::Ack { at, rtt, segments } => {
                now = Time::ZERO + Dur::from_us(at);
                let ack = Ack { rtt: Some(Dur::from_us(rtt)), phase, ..Ack::in_sequence(segments * MSS) };
                with(&mut *rtcp, now, &|rtcp, cx| rtcp.on_ack(&ack, cx));
            }
            Event::Loss => {
                phase = Phase::Recovery;
                let flight_bytes = 10 * MSS;
                with(&mut *rtcp, now, &|rtcp, cx| rtcp.on_congestion(Congestion::Loss { flight_bytes }, cx));
            }
            Event::Repaired => phase = Phase::Open,
            Event::Timeout => {
                phase = Phase::Timeout;
                let timeout = Congestion::Timeout { flight_bytes: MSS, first: true };
                with(&mut *rtcp, now, &|rtcp, cx| rtcp.on_congestion(timeout, cx));
            }
        }
        // The state is compared after every event, so a failure names the first difference.
        let traced = |wanted: &str| {
            let mut found = f64::NAN;
            rtcp.trace(&mut |name, value| {
                if name == wanted {
                    found = value;
                }
            });
            found
        };
        states.push(State {
            cwnd_bytes: rtcp.limits().cwnd_bytes,
            counter_bytes: traced("counter_bytes"),
            congestion_kb: traced("congestion_kb"),
            delay_us: traced("delay_ms") * 1e3,
        });
    }
    states
}

fn assert_equal(kernel: &[State], simulator: &[State], events: &[Event]) {
    assert_eq!((kernel.len(), simulator.len()), (events.len(), events.len()));
    for (at, (one, other)) in kernel.iter().zip(simulator).enumerate() {
        let is_equal = one.cwnd_bytes == other.cwnd_bytes
            && (one.counter_bytes - other.counter_bytes).abs() < 0.01
            && (one.congestion_kb - other.congestion_kb).abs() < 1e-4 * (1.0 + other.congestion_kb)
            && (one.delay_us - other.delay_us).abs() < 1e-6;
        assert!(is_equal, "event {at}, {:?}:\nkernel    {one:?}\nsimulator {other:?}", events[at]);
    }
}

/// The simulator's smallest window is one segment; the program's default is two.
const ONE: (&str, &str) = ("min_window", "1");

fn ack(at: u64, rtt: u64) -> Event {
    Event::Ack { at, rtt, segments: 1 }
}

#[test]
fn windows_and_counters_agree_in_the_scripts_of_the_simulators_tests() {
    let mut settled: Vec<Event> = (1..2_000).map(|at| ack(200 + 16 * at, 200)).collect();
    assert_equal(&kernel(&[ONE], &settled), &simulator(&[], &settled), &settled);
    // A timeout, a long silence, and a delay that shrinks.
    settled.extend([Event::Timeout, ack(1_032_200, 200), ack(3_600_000_000, 1200), ack(3_600_000_016, 200)]);
    settled.extend((1..100).map(|at| ack(3_600_000_016 + 16 * at, 200)));
    assert_equal(&kernel(&[ONE], &settled), &simulator(&[], &settled), &settled);
}

#[test]
fn doubling_halving_and_their_bounds_agree() {
    let grown = [ack(150, 100), ack(150, 620), ack(150, 100), ack(150, 100)];
    let set = [ONE, ("delta", "125"), ("initial_window", "8"), ("x_max", "100")];
    let also = [("delta", Value::Number(125.0)), ("initial_window", Value::Whole(8)), ("x_max", Value::Number(100.0))];
    let states = kernel(&set, &grown);
    assert_equal(&states, &simulator(&also, &grown), &grown);
    assert_eq!(states.iter().map(|state| state.cwnd_bytes / MSS).collect::<Vec<_>>(), [16, 8, 16, 32]);
    let bounded: Vec<Event> =
        (0..20).map(|at| ack(1000 + at, 200)).chain((20..40).map(|at| ack(1000 + at, 900_000))).collect();
    let set = [("min_window", "2"), ("x_max", "1.6")];
    let also = [("min_window", Value::Whole(2)), ("x_max", Value::Number(1.6))];
    let states = kernel(&set, &bounded);
    assert_equal(&states, &simulator(&also, &bounded), &bounded);
    assert_eq!((states[19].cwnd_bytes, states[39].cwnd_bytes), (40 * MSS, 2 * MSS));
}

#[test]
fn a_loss_halves_and_holds_and_a_timeout_leaves_one_segment() {
    let events = [Event::Loss, ack(2, 200), Event::Repaired, ack(300, 200), Event::Timeout, ack(500, 200)];
    let states = kernel(&[ONE], &events);
    assert_equal(&states, &simulator(&[], &events), &events);
    assert_eq!((states[1].cwnd_bytes, states[4].cwnd_bytes), (5 * MSS, MSS));
}

/// Random round trips, pauses and losses, with weights and rates over their whole range.
#[test]
fn random_histories_agree_for_ten_thousand_events() {
    let settings: [(Settings<'_>, &[(&'static str, Value)]); 4] = [
        (&[ONE], &[]),
        (
            &[ONE, ("weight", "1000000"), ("alpha", "15")],
            &[("weight", Value::Number(1e6)), ("alpha", Value::Number(15.0))],
        ),
        (
            &[ONE, ("unit_rate", "10Mbps"), ("delta", "125")],
            &[("unit_rate", Value::Rate(Some(Rate::from_mbps(10)))), ("delta", Value::Number(125.0))],
        ),
        (
            &[ONE, ("max_rate", "100Mbps"), ("weight", "3000"), ("smoothing", "0.25")],
            &[
                ("max_rate", Value::Rate(Some(Rate::from_mbps(100)))),
                ("weight", Value::Number(3000.0)),
                ("smoothing", Value::Number(0.25)),
            ],
        ),
    ];
    for (seed, (set, also)) in settings.into_iter().enumerate() {
        let mut random = Stream::new(seed as u64, Domain::Test, 7);
        let (mut at, mut events, mut in_loss) = (0, Vec::new(), false);
        for _ in 0..2_500 {
            // Mostly continuous traffic, sometimes a short pause, rarely a long one.
            at += match random.below(20) {
                0 => random.below(2_000_000),
                1..=4 => random.below(500),
                _ => random.below(30),
            };
            let rtt = 200 + if random.below(10) == 0 { random.below(5_000) } else { random.below(8) };
            events.push(Event::Ack { at, rtt, segments: 1 + random.below(3) });
            // Losses begin rarely and are repaired soon.
            match random.below(200) {
                0 if !in_loss => events.push(Event::Loss),
                1 if !in_loss => events.push(Event::Timeout),
                2..=20 if in_loss => events.push(Event::Repaired),
                _ => continue,
            }
            in_loss = !matches!(events.last(), Some(Event::Repaired));
        }
        assert_equal(&kernel(set, &events), &simulator(also, &events), &events);
    }
}

#[test]
fn size_priority_or_port_decide_the_weight_of_a_flow() {
    let weighed = |settings: &[(&str, &str)], script: &str| -> Vec<u64> {
        let answers = Twin::compiled("rtcp").answers(&constants("rtcp", settings, LINE), script);
        answers.iter().map(|row| row[5]).collect()
    };
    assert_eq!(weighed(&[], "open 0 1000\n"), [24_000]);
    let by_size = weighed(&[("classify", "by-size")], "wrote 29999\nwrote 30000\n");
    assert_eq!(by_size, [24_000, 12_000]);
    let set = [("classify", "by-priority"), ("weight.6", "50000"), ("weight.1", "100")];
    assert_eq!(weighed(&set, "priority 6\npriority 1\npriority 0\n"), [50_000, 100, 24_000]);
    let set = [("classify", "by-port"), ("weight.443", "7000"), ("weight", "9000")];
    assert_eq!(weighed(&set, "port 443\nport 80\n"), [7_000, 9_000]);
}

/// A watcher that was killed cannot end its lease.
#[test]
fn samples_are_recorded_until_the_lease_expires() {
    let events =
        ["clock 900", "ack 100 30 1", "watch 1000", "ack 200 30 1", "clock 1001", "ack 300 30 1", "ack 400 30 1"];
    let script = format!("open 0 {MSS}\n{}\n", events.join("\n"));
    let answers = Twin::compiled("rtcp").answers(&constants("rtcp", &[], LINE), &script);
    let recorded: Vec<[u64; 2]> = answers.iter().map(|row| [row[6], row[7]]).collect();
    assert_eq!(recorded[2], [0, 0], "without a lease");
    assert_eq!(recorded[4], [1, 1000], "during the lease");
    assert_eq!(recorded[6..], [[1, 0], [1, 0]], "after the lease");
}
