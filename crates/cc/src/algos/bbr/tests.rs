//! Tests of BBRv1's rules, driven one round trip at a time.

use super::config::*;
use super::*;
use sparelane_core::{Domain, Stream};

const MSS: u64 = 1000;
const RTT: Dur = Dur::from_ms(100);

/// A connection on a path of 100 ms, driven one round trip at a time.
struct Path {
    bbr: Bbr,
    now: Time,
    rng: Stream,
}

impl Path {
    fn new() -> Path {
        Path::with(Quantum::Segments(1))
    }

    fn with(quantum: Quantum) -> Path {
        let none = crate::Values::default();
        let config = BbrConfig {
            initial_window_segments: none.whole(&INITIAL_WINDOW),
            startup_gain: none.number(&STARTUP_GAIN),
            cwnd_gain: none.number(&CWND_GAIN),
            bandwidth_window_rounds: none.whole(&BANDWIDTH_WINDOW),
            min_rtt_window: none.span(&MIN_RTT_WINDOW),
            probe_rtt_time: none.span(&PROBE_RTT_TIME),
            pacing_margin: none.number(&PACING_MARGIN),
            ack_aggregation: none.flag(&ACK_AGGREGATION),
            quantum,
            rtt_floor: none.span(&RTT_FLOOR),
        };
        let mut path =
            Path { bbr: Bbr::new(config, PacketSize::of(MSS)), now: Time::ZERO, rng: Stream::new(1, Domain::Test, 0) };
        path.call(|bbr, cx| bbr.on_established(None, cx));
        path
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut Bbr, &mut Cx<'_>) -> T) -> T {
        let rtt = Some(RTT);
        let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: rtt, min_rtt: rtt, rng: &mut self.rng };
        call(&mut self.bbr, &mut cx)
    }

    /// Delivers one acknowledgment that ends a round trip in which `segments` segments were delivered.
    fn round(&mut self, segments: u64, in_flight_segments: u64, phase: Phase) {
        self.now += RTT;
        let prior = self.bbr.rounds.delivered_bytes;
        let bytes = segments * MSS;
        let delivery = Delivery {
            sent_at: Time::from_ps(self.now.as_ps() - RTT.as_ps()),
            prior_delivered_bytes: prior,
            total_delivered_bytes: prior + bytes,
            lost_bytes: 0,
            in_flight_bytes: bytes,
            interval: RTT,
            app_limited: false,
        };
        let (rtt, in_flight_bytes) = (Some(RTT), in_flight_segments * MSS);
        let ack = Ack { rtt, delivery: Some(delivery), phase, in_flight_bytes, ..Ack::in_sequence(bytes) };
        self.call(|bbr, cx| bbr.on_ack(&ack, cx));
    }
}

#[test]
fn the_first_pace_spreads_the_window_over_a_round_trip_at_the_gain_of_startup() {
    // 10 packets of 1040 bytes in 100 ms are 832 kb/s.
    let expected = 832_000.0 * 2.885 * 0.99;
    let found = Path::new().bbr.limits().pacing.expect("a pace").as_bps() as f64;
    assert!((found / expected - 1.0).abs() < 1e-6, "{found}, not {expected}");
}

#[test]
fn startup_ends_after_three_round_trips_of_less_than_a_quarter_of_growth() {
    let mut path = Path::new();
    for segments in [10, 20, 40, 49, 50, 61] {
        path.round(segments, 100, Phase::Open);
        assert_eq!(path.bbr.state, State::Startup, "{segments}");
    }
    // 50 is a quarter more than 40, 61 is not a quarter more than 50: one round trip without growth, then two more.
    path.round(61, 100, Phase::Open);
    assert_eq!(path.bbr.state, State::Startup);
    path.round(61, 100, Phase::Open);
    assert_eq!(path.bbr.state, State::Drain);
    let gain = path.bbr.pacing_gain();
    assert!((gain * 2.885 - 1.0).abs() < 1e-9);
    // The window allows for three segments above the product of 61.
    path.round(61, 65, Phase::Open);
    assert_eq!(path.bbr.state, State::Drain);
    path.round(61, 64, Phase::Open);
    assert_eq!(path.bbr.state, State::ProbeBw);
    assert_eq!(path.bbr.cwnd_bytes, (2 * 61 + 3 + if path.bbr.cycle_at == 0 { 2 } else { 0 }) * MSS);
}

#[test]
fn the_cycle_starts_at_any_phase_but_that_of_draining() {
    let mut path = Path::new();
    let mut seen = [0; 8];
    for _ in 0..800 {
        path.call(|bbr, cx| bbr.enter_probe_bw(cx));
        seen[path.bbr.cycle_at] += 1;
    }
    assert_eq!(seen[1], 0);
    assert!((0..8).all(|phase| phase == 1 || seen[phase] > 50), "{seen:?}");
}

#[test]
fn a_sample_of_the_bandwidth_counts_for_ten_round_trips() {
    let mut path = Path::new();
    path.round(50, 40, Phase::Open);
    for round in 1..=11 {
        path.round(40, 40, Phase::Open);
        let expected = if round <= 10 { 50 } else { 40 };
        assert_eq!(path.bbr.bandwidth(), Rate::of(expected * MSS, RTT), "after {round} round trips");
    }
}

#[test]
fn recovery_conserves_packets_for_a_round_trip_and_its_end_restores_the_window() {
    let mut path = Path::new();
    (0..8).for_each(|_| path.round(50, 40, Phase::Open));
    let before = path.bbr.cwnd_bytes;
    let pace = path.bbr.limits().pacing;
    path.call(|bbr, cx| bbr.on_congestion(Congestion::Loss { flight_bytes: before }, cx));
    let ack = Ack { phase: Phase::Recovery, in_flight_bytes: 30 * MSS, ..Ack::in_sequence(2 * MSS) };
    path.call(|bbr, cx| bbr.on_ack(&ack, cx));
    assert_eq!(path.bbr.cwnd_bytes, 32 * MSS);
    let ack = Ack { phase: Phase::Open, in_flight_bytes: 30 * MSS, ..Ack::in_sequence(MSS) };
    path.call(|bbr, cx| bbr.on_ack(&ack, cx));
    assert_eq!(path.bbr.cwnd_bytes, before);
    assert_eq!(path.bbr.bandwidth(), Rate::of(50 * MSS, RTT), "loss takes nothing from the bandwidth");
    assert!(pace.is_some());
}

#[test]
fn the_window_allows_for_three_chunks_of_the_quantum() {
    // A bandwidth of 50 segments of 1000 bytes in a round trip of 100 ms, which is 4 Mb/s.
    let product = 50;
    let room = |quantum: Quantum, pace: Rate| {
        let mut path = Path::with(quantum);
        path.round(product, 100, Phase::Open);
        path.bbr.pacer.pace = pace;
        path.bbr.inflight_bytes(1.0) / MSS - product
    };
    assert_eq!(room(Quantum::Segments(1), Rate::from_gbps(1)), 3);
    // The volume of a millisecond is 125 kB; the limit is 20 segments.
    assert_eq!(room(Quantum::Segments(20), Rate::from_gbps(1)), 60);
    // The limit is 65,215 bytes, which is 65 segments. 195 and 50 make an odd number, which is rounded up to even.
    assert_eq!(room(Quantum::Kernel, Rate::from_gbps(1)), 196);
    // 100 Mb/s is 12,207 bytes in 1/1024 s.
    assert_eq!(room(Quantum::Kernel, Rate::from_mbps(100)), 36);
    // The minimum is two segments, or one at a low pace.
    assert_eq!(room(Quantum::Kernel, Rate::from_mbps(4)), 6);
    assert_eq!(room(Quantum::Kernel, Rate::from_mbps(1)), 4);
}

/// 80 segments per round trip and chunks of two. In Linux probing for more ends at 1.25 * 80 + 6, rounded to an even
/// number, plus two. The departing chunk contributes two of these. Without `like = "linux"` all of them must be in
/// flight.
#[test]
fn like_linux_probing_counts_the_departing_chunk() {
    let is_over_with = |quantum, in_flight_segments: u64| {
        let mut path = Path::with(quantum);
        path.bbr.bandwidth.update(0, Rate::of(80 * MSS, RTT));
        (path.bbr.state, path.bbr.cycle_at) = (State::ProbeBw, 0);
        path.bbr.pacer.set(path.bbr.bandwidth(), 1.25);
        let target = path.bbr.inflight_bytes(1.25) / MSS;
        path.bbr.advance_cycle(in_flight_segments * MSS, Time::ZERO + RTT * 2);
        (target, path.bbr.cycle_at == 1)
    };
    assert_eq!([105, 106].map(|flight| is_over_with(Quantum::Kernel, flight)), [(108, false), (108, true)]);
    assert_eq!([104, 105].map(|flight| is_over_with(Quantum::Segments(1), flight)), [(105, false), (105, true)]);
}

/// In Linux, draining ends by the volume that will be left when the pace releases the next segment.
#[test]
fn like_linux_deliveries_before_the_next_departure_leave_the_network() {
    let mut path = Path::with(Quantum::Kernel);
    path.bbr.bandwidth.update(0, Rate::of(80 * MSS, RTT));
    path.bbr.state = State::Drain;
    let now = Time::ZERO + RTT;
    // A segment takes 1.25 ms at the pace.
    path.bbr.departs_at = now + Dur::from_us(2_600);
    assert_eq!(path.bbr.in_network_bytes(90 * MSS, now), 88 * MSS);
}
