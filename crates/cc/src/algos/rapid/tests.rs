use super::*;
use crate::param::{Value, Values};
use crate::registry::{Blueprint, build};
use sparelane_core::{Domain, Stream};

const MSS: u64 = 8948;
const RTT: Dur = Dur::from_ms(30);

/// A sender over an ideal path: packets leave when they are due, a queue with `available` serves them, and acknowledgments return.
struct Path {
    rapid: Box<dyn CongestionControl>,
    rng: Stream,
    now: Time,
    sent: u32,
    /// When the queue is done with what it has.
    free_at: Time,
    /// Acknowledgments under way: when they arrive, and what they say.
    acks: std::collections::VecDeque<(Time, u32, Time)>,
    departures: Vec<Time>,
}

impl Path {
    fn new(settings: &[(&'static str, Value)]) -> Path {
        let mut values = Values::default();
        settings.iter().for_each(|(name, value)| values.set(name, value.clone()));
        let none = Values::default();
        let rapid = build("rapid", &values, &Blueprint::of_any(MSS, &none)).expect("a controller");
        let mut path = Path {
            rapid,
            rng: Stream::new(1, Domain::Test, 0),
            now: Time::ZERO,
            sent: 0,
            free_at: Time::ZERO,
            acks: Default::default(),
            departures: Vec::new(),
        };
        path.with(|rapid, cx| rapid.on_established(None, cx));
        path
    }

    fn with<T>(&mut self, call: impl FnOnce(&mut dyn CongestionControl, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: Some(RTT), min_rtt: Some(RTT), rng: &mut self.rng };
        call(&mut *self.rapid, &mut cx)
    }

    fn offer(&self, head_is_resent: bool) -> Offer {
        Offer {
            head_bytes: Some(MSS),
            head_is_resent,
            tail: None,
            in_flight_bytes: self.acks.len() as u64 * MSS,
            allowance_bytes: 0,
            nic_idle: true,
        }
    }

    /// Runs until `until`, with `available` bandwidth.
    fn run(&mut self, until: Time, available: Rate) {
        let wire_bytes = MSS + HEADER_BYTES;
        while self.now < until {
            let offer = self.offer(false);
            let due = match self.with(|rapid, cx| rapid.poll_send(&offer, cx)) {
                Permit::Send(_) => {
                    let segment = self.sent;
                    let sent = Sent {
                        segment,
                        bytes: MSS,
                        in_flight_bytes: offer.in_flight_bytes + MSS,
                        is_retransmission: false,
                        app_limited: false,
                    };
                    self.with(|rapid, cx| rapid.on_sent(&sent, cx));
                    self.departures.push(self.now);
                    self.sent += 1;
                    self.free_at = self.free_at.max(self.now) + available.time_for(wire_bytes);
                    self.acks.push_back((self.free_at + RTT, segment, self.free_at));
                    continue;
                }
                Permit::NotBefore(at) => at,
                Permit::Blocked => Time::NEVER,
            };
            let ack_at = self.acks.front().map_or(Time::NEVER, |&(at, ..)| at);
            self.now = due.min(ack_at);
            if ack_at <= due
                && let Some((_, segment, at)) = self.acks.pop_front()
            {
                let received = Some(crate::contract::Received { segment, at });
                self.with(|rapid, cx| rapid.on_ack(&Ack { received, ..Ack::in_sequence(MSS) }, cx));
            }
        }
    }

    fn traced(&self, wanted: &str) -> f64 {
        let mut found = f64::NAN;
        self.rapid.trace(&mut |name, value| {
            if name == wanted {
                found = value;
            }
        });
        found
    }

    /// R_avg.
    fn gbps(&self) -> f64 {
        self.traced("rate_bps") / 1e9
    }
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Dur::from_ms(ms)
}

#[test]
fn the_rate_finds_the_available_bandwidth_in_a_few_round_trips_and_stays() {
    let mut path = Path::new(&[]);
    path.run(ms(400), Rate::from_gbps(5));
    assert!((path.gbps() - 5.0).abs() < 0.6, "{} Gb/s after 0.4 s", path.gbps());
    for step in 1..=20 {
        path.run(ms(400 + 100 * step), Rate::from_gbps(5));
        assert!((path.gbps() - 5.0).abs() < 0.6, "{} Gb/s", path.gbps());
    }
}

#[test]
fn the_rate_follows_the_bandwidth_down_and_up() {
    let mut path = Path::new(&[]);
    path.run(ms(1000), Rate::from_gbps(8));
    path.run(ms(2000), Rate::from_gbps(6));
    assert!((path.gbps() - 6.0).abs() < 0.7, "{} Gb/s of 6", path.gbps());
    path.run(ms(3000), Rate::from_gbps(8));
    assert!((path.gbps() - 8.0).abs() < 1.0, "{} Gb/s of 8", path.gbps());
}

/// Section II: 64 packets at four rates, each probed by the gap before its packets.
#[test]
fn packets_leave_with_exactly_the_gaps_of_their_p_stream() {
    let mut path = Path::new(&[]);
    path.run(ms(1500), Rate::from_gbps(5));
    let from = path.departures.len();
    path.run(ms(1501), Rate::from_gbps(5));
    let gaps: Vec<u64> = path.departures[from..].windows(2).map(|pair| (pair[1] - pair[0]).as_ps()).collect();
    let mut runs: Vec<(u64, usize)> = Vec::new();
    for gap in gaps {
        match runs.last_mut() {
            Some((last, count)) if *last == gap => *count += 1,
            _ => runs.push((gap, 1)),
        }
    }
    // The first run may have begun, and the last may go on.
    for pair in runs[1..runs.len() - 1].windows(2) {
        let [(before, count), (after, _)] = pair else { continue };
        assert_eq!(*count, 16, "{runs:?}");
        let step = *before as f64 / *after as f64;
        assert!((step - 1.1487).abs() < 1e-4 || step < 1.0, "{step} between gaps of {before} and {after} ps");
    }
}

#[test]
fn a_loss_cuts_the_rate_and_what_was_sent_before_does_not_raise_it_again() {
    let mut path = Path::new(&[("loss_cut", Value::Number(0.5))]);
    path.run(ms(1000), Rate::from_gbps(8));
    let before = path.gbps();
    path.with(|rapid, cx| rapid.on_congestion(Congestion::Loss { flight_bytes: 100 * MSS }, cx));
    assert!((path.gbps() - before / 2.0).abs() < 1e-6);
    let at = path.now;
    path.run(at + Dur::from_ms(29), Rate::from_gbps(8));
    assert!((path.gbps() - before / 2.0).abs() < 1e-6, "{} Gb/s within a round trip", path.gbps());
    path.run(at + Dur::from_ms(500), Rate::from_gbps(8));
    assert!(path.gbps() > 0.85 * before, "{} Gb/s half a second later", path.gbps());
}

/// One new packet for ten acknowledgments, and retransmissions at once.
#[test]
fn while_losses_are_repaired_next_to_nothing_new_is_sent() {
    let mut path = Path::new(&[]);
    path.run(ms(1000), Rate::from_gbps(8));
    path.with(|rapid, cx| rapid.on_congestion(Congestion::Loss { flight_bytes: 100 * MSS }, cx));
    let mut sends = |head_is_resent| {
        let offer = path.offer(head_is_resent);
        path.now += Dur::from_ms(1);
        let permit = path.with(|rapid, cx| rapid.poll_send(&offer, cx));
        if let Permit::Send(_) = permit {
            let sent = Sent {
                segment: path.sent,
                bytes: MSS,
                in_flight_bytes: MSS,
                is_retransmission: head_is_resent,
                app_limited: false,
            };
            path.with(|rapid, cx| rapid.on_sent(&sent, cx));
            path.sent += u32::from(!head_is_resent);
        }
        let ack = Ack { phase: Phase::Recovery, ..Ack::in_sequence(0) };
        path.with(|rapid, cx| rapid.on_ack(&ack, cx));
        permit != Permit::Blocked
    };
    assert!(sends(true));
    let new = (0..99).filter(|_| sends(false)).count();
    assert!((9..=10).contains(&new), "{new} new packets with 100 acknowledgments");
}

#[test]
fn a_timeout_starts_anew() {
    let mut path = Path::new(&[]);
    path.run(ms(1000), Rate::from_gbps(8));
    path.with(|rapid, cx| rapid.on_congestion(Congestion::Timeout { flight_bytes: 100 * MSS, first: true }, cx));
    let start = 10.0 * 8.0 * (MSS + HEADER_BYTES) as f64 / 0.03 / 1e9;
    assert!((path.gbps() - start).abs() < 1e-6, "{} Gb/s", path.gbps());
}

#[test]
fn the_window_bounds_what_is_in_flight() {
    let mut path = Path::new(&[("window", Value::Whole(100))]);
    path.run(ms(2000), Rate::from_gbps(5));
    let most = 100.0 * 8.0 * MSS as f64 / 0.03;
    let sent = f64::from(path.sent) * 8.0 * MSS as f64 / 2.0;
    assert!(sent < 1.02 * most, "{sent} b/s through a window of {most} b/s");
    assert!(path.acks.len() <= 100);
}

#[test]
fn mistakes_are_refused_by_name() {
    let refused = |name: &'static str, value: Value| {
        let mut values = Values::default();
        values.set(name, value);
        let none = Values::default();
        build("rapid", &values, &Blueprint::of_any(MSS, &none)).expect_err("a mistake").to_string()
    };
    assert_eq!(refused("rates", Value::Whole(1)), "`rates` is 1; allowed: a whole number from 2 to 64 rates");
    assert_eq!(refused("spread", Value::Number(1.0)), "`spread` is 1; allowed: a number from 1.001 to 8 ");
    assert_eq!(refused("eta", Value::Number(0.5)), "`eta` is 0.5; allowed: a number from 1 to 1000 updates");
    assert_eq!(refused("gamma", Value::Whole(0)), "`gamma` is 0; allowed: a whole number from 1 to 1000 p-streams");
    assert_eq!(
        refused("initial_rate", Value::Rate(Some(Rate::from_gbps(11)))),
        "`initial_rate` is 11 Gb/s; allowed: at most 10 Gb/s, the rate of the interface"
    );
}
