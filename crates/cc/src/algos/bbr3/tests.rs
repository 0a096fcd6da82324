//! Tests of BBRv3's rules, one by one.

use super::config::*;
use super::*;
use crate::contract::{Delivery, traced};
use sparelane_core::{Domain, Stream};

const MSS: u64 = 1000;
const RTT: Dur = Dur::from_ms(100);

/// The bandwidth at which a round trip carries this number of segments.
fn rate(segments: u64) -> Rate {
    Rate::of(segments * MSS, RTT)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Dur::from_ms(ms)
}

fn config() -> Bbr3Config {
    let none = crate::Values::default();
    Bbr3Config {
        initial_window_segments: none.whole(&INITIAL_WINDOW),
        loss_threshold: none.number(&LOSS_THRESHOLD),
        beta: none.number(&BETA),
        headroom: none.number(&HEADROOM),
        probe_rtt_interval: none.span(&PROBE_RTT_INTERVAL),
        probe_rtt_time: none.span(&PROBE_RTT_TIME),
        full_loss_count: none.whole(&FULL_LOSS_COUNT),
        quantum_segments: none.whole(&QUANTUM),
    }
}

/// Returns a flow in STARTUP with a bandwidth of 100 segments per round trip of 100 ms.
fn starting() -> Bbr3 {
    let mut bbr = Bbr3::new(config(), PacketSize::of(MSS), true);
    bbr.max_bw.update(0, rate(100));
    bbr.bw = rate(100);
    (bbr.min_rtt, bbr.probe_rtt_min) = (Some(RTT), Some(RTT));
    bbr
}

/// Returns a flow that cruises at 100 segments per round trip of 100 ms, with a window of twice that.
fn cruising() -> Bbr3 {
    let mut bbr = starting();
    (bbr.full_bw_reached, bbr.state, bbr.cwnd_bytes) = (true, State::Cruise, 200 * MSS);
    (bbr.probe_ended, bbr.probe_wait) = (at(1000), Dur::from_secs(1000));
    bbr
}

/// Returns the flow in UP, at the start of its second round trip.
fn probing() -> Bbr3 {
    let mut bbr = cruising();
    bbr.start_refill();
    bbr.start_up(rate(100));
    bbr.ack_phase = AckPhase::ProbeFeedback;
    bbr
}

fn with_cx_at<T>(now: Time, call: impl FnOnce(&mut Cx<'_>) -> T) -> T {
    let mut rng = Stream::new(1, Domain::Test, 0);
    let rtt = Some(RTT);
    call(&mut Cx { now, mss_bytes: MSS, srtt: rtt, min_rtt: rtt, rng: &mut rng })
}

fn with_cx<T>(call: impl FnOnce(&mut Cx<'_>) -> T) -> T {
    with_cx_at(at(1000), call)
}

fn lost_segment(segment: Seq, in_flight: u64, lost: u64) -> Lost {
    Lost {
        segment,
        bytes: MSS,
        sent_at: Time::ZERO,
        in_flight_bytes: in_flight * MSS,
        lost_bytes: lost * MSS,
        app_limited: false,
    }
}

fn lost(in_flight: u64, lost: u64) -> Lost {
    lost_segment(0, in_flight, lost)
}

/// One acknowledgment of a segment at a time, with its rate sample.
struct Acks {
    now_ms: u64,
    in_flight: u64,
    lost: u64,
    phase: Phase,
    app_limited: bool,
    rtt: Dur,
}

/// Acknowledgments at 1 s, with 200 segments in flight and no losses.
const ACKS: Acks =
    Acks { now_ms: 1000, in_flight: 200, lost: 0, phase: Phase::Open, app_limited: false, rtt: Dur::from_ms(100) };

impl Acks {
    /// Acknowledges a segment whose sample has this bandwidth, in segments per round trip. `begins_round` chooses
    /// whether the segment was sent in the present round trip or an earlier one.
    fn give(&self, bbr: &mut Bbr3, segments: u64, begins_round: bool) {
        let prior_delivered_bytes = bbr.rounds.delivered_bytes;
        // The round trip ends with this segment, or with a later one.
        bbr.rounds.delivered_bytes += if begins_round { 0 } else { MSS };
        bbr.rounds.begin();
        bbr.rounds.delivered_bytes = prior_delivered_bytes;
        let delivery = Delivery {
            sent_at: Time::ZERO,
            prior_delivered_bytes,
            total_delivered_bytes: prior_delivered_bytes + MSS,
            lost_bytes: self.lost * MSS,
            in_flight_bytes: self.in_flight * MSS,
            // The volume of the sample is one segment; its interval gives the bandwidth.
            interval: rate(segments).time_for(MSS),
            app_limited: self.app_limited,
        };
        let ack = Ack {
            rtt: Some(self.rtt),
            in_flight_bytes: self.in_flight * MSS,
            phase: self.phase,
            delivery: Some(delivery),
            ..Ack::in_sequence(MSS)
        };
        let mut rng = Stream::new(1, Domain::Test, 0);
        // The sample is shorter than the round trip, so no minimum filters it out.
        let mut cx = Cx { now: at(self.now_ms), mss_bytes: MSS, srtt: Some(RTT), min_rtt: None, rng: &mut rng };
        bbr.on_ack(&ack, &mut cx);
    }

    /// Acknowledges the first segment of a round trip.
    fn begin_round(&self, bbr: &mut Bbr3, segments: u64) {
        self.give(bbr, segments, true);
    }
}

#[test]
fn each_state_has_the_gains_of_the_draft() {
    let gains = [
        (State::Startup, 2.77, 2.0),
        (State::Drain, 0.5, 2.0),
        (State::Down, 0.9, 2.0),
        (State::Cruise, 1.0, 2.0),
        (State::Refill, 1.0, 2.0),
        (State::Up, 1.25, 2.25),
        (State::ProbeRtt, 1.0, 0.5),
    ];
    let mut bbr = cruising();
    for (state, pacing, cwnd) in gains {
        bbr.state = state;
        assert_eq!((bbr.pacing_gain(), bbr.cwnd_gain()), (pacing, cwnd), "{state:?}");
        assert_eq!((traced(&bbr, "pacing_gain"), traced(&bbr, "cwnd_gain")), (pacing, cwnd));
    }
}

/// Losses can fill the pipe before the first sample of the bandwidth. A pace of zero times the gain would never end.
#[test]
fn the_pace_stays_as_it_is_without_a_bandwidth() {
    let mut bbr = cruising();
    with_cx(|cx| bbr.set_pace(1.0, cx));
    let before = bbr.pacer.pace;
    bbr.bw = Rate::from_bps(0);
    with_cx(|cx| bbr.set_pace(0.5, cx));
    assert_eq!(bbr.pacer.pace, before);
}

/// The pace is 1 % below gain times bandwidth and includes headers of 40 bytes. It only rises before the pipe is full.
#[test]
fn the_pace_is_one_per_cent_below_the_gain_times_the_bandwidth() {
    let mut bbr = cruising();
    with_cx(|cx| bbr.set_pace(1.0, cx));
    let cruise = rate(100).scaled(1.04 * 0.99);
    assert!(bbr.pacer.pace.as_bps().abs_diff(cruise.as_bps()) <= 1, "{:?}", bbr.pacer.pace);
    bbr.full_bw_reached = false;
    with_cx(|cx| bbr.set_pace(0.5, cx));
    assert!(bbr.pacer.pace.as_bps().abs_diff(cruise.as_bps()) <= 1, "{:?}", bbr.pacer.pace);
}

#[test]
fn startup_ends_in_the_third_round_trip_without_a_quarter_more_bandwidth() {
    let mut bbr = starting();
    for (segments, state) in [
        (100, State::Startup),
        (125, State::Startup),
        (156, State::Startup),
        (156, State::Startup),
        (156, State::Drain),
    ] {
        ACKS.begin_round(&mut bbr, segments);
        assert_eq!(bbr.state, state, "{segments}");
    }
    assert!(bbr.full_bw_now && bbr.full_bw_reached);
}

#[test]
fn rounds_that_the_application_limits_never_end_startup_nor_a_probe() {
    let limited = Acks { app_limited: true, ..ACKS };
    for mut bbr in [starting(), probing()] {
        let state = bbr.state;
        for _ in 0..1000 {
            limited.begin_round(&mut bbr, 50);
        }
        assert_eq!(bbr.state, state);
    }
}

/// Reports the loss of these segments at 1 s, and then the end of the loss round in `phase`.
fn startup_with_losses(mut bbr: Bbr3, segments: &[Seq], acks: Acks) -> Bbr3 {
    for &segment in segments {
        with_cx(|cx| bbr.on_lost(&lost_segment(segment, 200, 1), cx));
    }
    acks.begin_round(&mut bbr, 100);
    bbr
}

#[test]
fn losses_end_startup_in_recovery_above_two_per_cent_and_in_six_ranges() {
    const SIX: [Seq; 8] = [10, 11, 12, 20, 30, 40, 50, 60];
    const FIVE: [Seq; 6] = [10, 11, 20, 30, 40, 50];
    // The eight losses of this acknowledgment add to those that the sample has.
    let acks = || Acks { phase: Phase::Recovery, lost: 0, app_limited: true, ..ACKS };
    let ended = startup_with_losses(starting(), &SIX, acks());
    assert_eq!((ended.state, ended.full_bw_now, ended.full_bw_reached), (State::Drain, true, true));
    // The bound is the bandwidth-delay product, which exceeds the volume of the sample.
    assert_eq!(ended.inflight_longterm, Some(100 * MSS));
    assert_eq!(ended.undo.state, Some(State::Startup));

    let in_state = |segments: &[Seq], acks| startup_with_losses(starting(), segments, acks).state;
    assert_eq!(in_state(&FIVE, acks()), State::Startup, "five ranges");
    assert_eq!(in_state(&SIX, Acks { phase: Phase::Open, ..acks() }), State::Startup, "not in recovery");
    assert_eq!(in_state(&SIX, Acks { phase: Phase::Timeout, ..acks() }), State::Startup, "after a timeout");
    assert_eq!(in_state(&SIX, Acks { in_flight: 400, ..acks() }), State::Startup, "8 of 400 segments are exactly 2 %");
    assert_eq!(in_state(&SIX, Acks { in_flight: 399, ..acks() }), State::Drain, "above 2 %");
}

#[test]
fn without_sack_one_loss_in_recovery_ends_startup_and_any_loss_ends_a_probe() {
    let without = |mut bbr: Bbr3| {
        bbr.sack = false;
        bbr
    };
    let recovery = Acks { phase: Phase::Recovery, ..ACKS };
    assert_eq!(startup_with_losses(without(starting()), &[10], recovery).state, State::Drain);
    assert_eq!(startup_with_losses(without(starting()), &[10], ACKS).state, State::Startup);
    let mut bbr = without(probing());
    with_cx(|cx| bbr.on_lost(&lost(1000, 1), cx));
    assert_eq!(bbr.state, State::Down);
}

#[test]
fn drain_ends_at_one_bandwidth_delay_product_or_after_three_round_trips() {
    let draining = || {
        let mut bbr = cruising();
        (bbr.state, bbr.round, bbr.drain_start_round) = (State::Drain, 7, 7);
        bbr
    };
    // Without a queue, and without a bound that needs headroom, DOWN is over at once.
    for (in_flight, state) in [(101, State::Drain), (100, State::Cruise)] {
        let mut bbr = draining();
        Acks { in_flight, ..ACKS }.give(&mut bbr, 100, false);
        assert_eq!(bbr.state, state, "{in_flight}");
    }
    let mut bbr = draining();
    for state in [State::Drain, State::Drain, State::Drain, State::Down] {
        ACKS.begin_round(&mut bbr, 100);
        assert_eq!(bbr.state, state, "round {}", bbr.round);
    }
}

#[test]
fn a_probe_that_loses_more_than_two_per_cent_bounds_the_volume_in_flight_and_ends() {
    let mut bbr = probing();
    with_cx(|cx| bbr.on_lost(&lost(150, 3), cx));
    assert_eq!((bbr.inflight_longterm, bbr.state), (None, State::Up), "3 of 150 segments are exactly 2 %");
    with_cx(|cx| bbr.on_lost(&lost(151, 4), cx));
    // Before the loss 150 segments were in flight and 3 of them lost, exactly 2 %: the threshold is crossed there.
    assert_eq!((bbr.inflight_longterm, bbr.state), (Some(150 * MSS), State::Down));
    assert!(bbr.prev_probe_too_high);
    with_cx(|cx| bbr.on_lost(&lost(20, 9), cx));
    assert_eq!(bbr.inflight_longterm, Some(150 * MSS), "at most one reduction per probe");
}

#[test]
fn losses_end_a_probe_that_the_application_limits_but_set_no_bound() {
    let mut bbr = probing();
    with_cx(|cx| bbr.on_lost(&Lost { app_limited: true, ..lost(20, 9) }, cx));
    assert_eq!((bbr.inflight_longterm, bbr.state), (None, State::Down));
}

#[test]
fn the_bound_of_a_probe_is_no_less_than_seven_tenths_of_the_target() {
    let mut bbr = probing();
    with_cx(|cx| bbr.on_lost(&lost(20, 9), cx));
    assert_eq!(bbr.inflight_longterm, Some(70 * MSS));
    assert_eq!(bbr.inflight_with_headroom(), Some(59_500));
}

#[test]
fn a_probe_ends_in_the_third_round_trip_of_a_plateau_unless_the_bound_limits_it() {
    let mut bbr = probing();
    for state in [State::Up, State::Up, State::Down] {
        ACKS.begin_round(&mut bbr, 110);
        assert_eq!(bbr.state, state);
    }
    assert!(!bbr.prev_probe_too_high);
    let mut bound = probing();
    (bound.inflight_longterm, bound.cwnd_bytes) = (Some(150 * MSS), 150 * MSS);
    let full = Acks { in_flight: 150, ..ACKS };
    for _ in 0..10 {
        bound.window_full_until_bytes = u64::MAX;
        full.begin_round(&mut bound, 110);
        full.give(&mut bound, 110, false);
        assert_eq!(bound.state, State::Up);
    }
}

#[test]
fn the_window_counts_as_used_up_for_a_round_trip_after_a_segment_filled_it() {
    let mut bbr = probing();
    (bbr.inflight_longterm, bbr.cwnd_bytes) = (Some(150 * MSS), 150 * MSS);
    let send = |bbr: &mut Bbr3, in_flight| {
        let in_flight_bytes = in_flight * MSS;
        let sent = Sent { segment: 0, bytes: MSS, in_flight_bytes, is_retransmission: false, app_limited: false };
        with_cx(|cx| bbr.on_sent(&sent, cx));
    };
    let slope = bbr.up_bytes_per_segment;
    send(&mut bbr, 149);
    bbr.rounds.deliver(MSS);
    bbr.raise_longterm(slope);
    assert_eq!(bbr.inflight_longterm, Some(150 * MSS), "149 of 150 segments");
    send(&mut bbr, 150);
    bbr.raise_longterm(slope);
    assert_eq!(bbr.inflight_longterm, Some(151 * MSS));
    bbr.cwnd_bytes += MSS;
    bbr.rounds.deliver(151 * MSS);
    bbr.raise_longterm(slope);
    assert_eq!(bbr.inflight_longterm, Some(151 * MSS), "a round trip later");
}

/// The probe after one with too much loss ends at once when the bound is in flight. If it loses nothing for a round
/// trip, the flow probes again without delay, and then stays in UP at the bound.
#[test]
fn the_probe_after_excess_loss_is_precautionary() {
    let mut bbr = probing();
    with_cx(|cx| bbr.on_lost(&lost(151, 4), cx));
    bbr.start_refill();
    bbr.start_up(rate(100));
    Acks { in_flight: 149, ..ACKS }.give(&mut bbr, 100, false);
    assert_eq!(bbr.state, State::Up);
    Acks { in_flight: 150, ..ACKS }.give(&mut bbr, 100, false);
    assert_eq!((bbr.state, bbr.prev_probe_precautionary, bbr.prev_probe_too_high), (State::Down, true, false));
    let mut lossy = bbr.clone();
    ACKS.begin_round(&mut bbr, 100);
    assert_eq!((bbr.state, bbr.prev_probe_precautionary), (State::Refill, false));
    ACKS.begin_round(&mut bbr, 100);
    assert_eq!(bbr.state, State::Up);
    ACKS.give(&mut bbr, 100, false);
    assert_eq!(bbr.state, State::Up);
    // Losses in the round trip after the precautionary probe: no second probe.
    with_cx(|cx| lossy.on_lost(&lost(151, 9), cx));
    ACKS.begin_round(&mut lossy, 100);
    assert_eq!(lossy.state, State::Down);
}

#[test]
fn a_loss_while_cruising_lowers_the_short_term_bounds_to_the_delivered_volume_or_seven_tenths() {
    for (delivered, bw, inflight) in [(90, 90, 140), (20, 70, 140), (160, 160, 160)] {
        let mut bbr = cruising();
        with_cx(|cx| bbr.on_lost(&lost(100, 1), cx));
        (bbr.bw_latest, bbr.inflight_latest) = (rate(delivered), delivered * MSS);
        bbr.adapt_shortterm();
        assert_eq!(bbr.bw_shortterm, Some(rate(bw)), "{delivered}");
        assert_eq!(bbr.inflight_shortterm, Some(inflight * MSS), "{delivered}");
        bbr.start_refill();
        assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (None, None));
    }
}

#[test]
fn a_loss_while_accelerating_lowers_no_short_term_bound() {
    for (state, adapts) in [
        (State::Startup, false),
        (State::Drain, true),
        (State::Down, true),
        (State::Cruise, true),
        (State::Refill, false),
        (State::Up, false),
        (State::ProbeRtt, true),
    ] {
        let mut bbr = cruising();
        (bbr.state, bbr.loss_in_round) = (state, true);
        bbr.adapt_shortterm();
        assert_eq!((bbr.bw_shortterm.is_some(), bbr.inflight_shortterm.is_some()), (adapts, adapts), "{state:?}");
    }
}

/// The bound rises by 1, 2 and 4 segments in the first three round trips that fill the window.
#[test]
fn a_probe_raises_the_bound_by_twice_as_much_every_round_trip() {
    let mut bbr = cruising();
    (bbr.inflight_longterm, bbr.cwnd_bytes) = (Some(128 * MSS), 128 * MSS);
    bbr.start_up(rate(100));
    bbr.window_full_until_bytes = u64::MAX;
    let mut bounds = Vec::new();
    for _ in 0..3 {
        let segments = bbr.cwnd_bytes / MSS;
        for n in 1..=segments {
            bbr.rounds.starts = n == segments;
            bbr.cwnd_bytes = bbr.inflight_longterm.expect("a bound");
            bbr.raise_longterm(MSS);
        }
        bounds.push(bbr.inflight_longterm.expect("a bound") / MSS);
    }
    assert_eq!(bounds, [129, 131, 135]);
}

#[test]
fn probes_are_two_to_three_seconds_apart_or_63_round_trips_or_as_many_as_segments_in_flight() {
    let mut bbr = cruising();
    with_cx(|cx| bbr.start_down(cx));
    bbr.rounds_since_probe = 62;
    let at = |ms| bbr.probe_ended + Dur::from_ms(ms);
    assert!(!bbr.is_time_to_probe(at(2000)) && bbr.is_time_to_probe(at(3001)));
    let mut after_rounds = bbr.clone();
    after_rounds.rounds_since_probe = 63;
    assert!(after_rounds.is_time_to_probe(at(0)));
    after_rounds.cwnd_bytes = 20 * MSS;
    after_rounds.rounds_since_probe = 19;
    assert!(!after_rounds.is_time_to_probe(at(0)));
    after_rounds.rounds_since_probe = 20;
    assert!(after_rounds.is_time_to_probe(at(0)));
}

/// DOWN ends at the bandwidth-delay product and the headroom, or directly in REFILL when it is time for a probe.
#[test]
fn down_ends_without_a_queue_and_with_headroom_or_at_the_time_of_the_next_probe() {
    for (in_flight, longterm, state) in [
        (101, None, State::Down),
        (100, None, State::Cruise),
        (100, Some(110), State::Down),
        (93, Some(110), State::Cruise),
    ] {
        let mut bbr = cruising();
        with_cx(|cx| bbr.start_down(cx));
        bbr.inflight_longterm = longterm.map(|segments: u64| segments * MSS);
        Acks { in_flight, ..ACKS }.give(&mut bbr, 100, false);
        assert_eq!(bbr.state, state, "{in_flight} {longterm:?}");
    }
    let mut late = cruising();
    with_cx(|cx| late.start_down(cx));
    Acks { now_ms: 4001, ..ACKS }.give(&mut late, 100, false);
    assert_eq!(late.state, State::Refill);
    // A round trip later the flow goes UP.
    Acks { now_ms: 4101, ..ACKS }.begin_round(&mut late, 100);
    assert_eq!((late.state, late.bw_probe_samples), (State::Up, true));
}

/// A sample below the maximum counts only if the application did not limit it. The maximum is that of two cycles.
#[test]
fn the_bandwidth_is_the_largest_sample_of_two_cycles() {
    let mut bbr = cruising();
    let limited = Acks { app_limited: true, ..ACKS };
    limited.give(&mut bbr, 50, false);
    assert_eq!(bbr.max_bw(), rate(100));
    limited.give(&mut bbr, 120, false);
    assert_eq!(bbr.max_bw(), rate(120));
    for (cycle, segments, largest) in [(1, 50, 120), (2, 40, 50), (3, 30, 40)] {
        // The filter advances with the first round trip after a probe.
        bbr.ack_phase = AckPhase::ProbeStopping;
        ACKS.begin_round(&mut bbr, segments);
        ACKS.give(&mut bbr, segments, false);
        assert_eq!((bbr.cycle, bbr.max_bw()), (cycle, rate(largest)));
    }
    // An application-limited round does not advance it.
    bbr.ack_phase = AckPhase::ProbeStopping;
    limited.begin_round(&mut bbr, 20);
    assert_eq!(bbr.cycle, 3);
}

#[test]
fn the_window_is_bounded_in_each_state_as_the_draft_says() {
    // A long-term bound of 120 segments: 85 % of it while cruising and in PROBE_RTT, where 50 segments are half of the
    // bandwidth-delay product. STARTUP and DRAIN have none.
    for (state, window) in [
        (State::Startup, 200),
        (State::Drain, 200),
        (State::Down, 120),
        (State::Cruise, 102),
        (State::Refill, 120),
        (State::Up, 120),
        (State::ProbeRtt, 50),
    ] {
        let mut bbr = cruising();
        (bbr.state, bbr.inflight_longterm) = (state, Some(120 * MSS));
        bbr.set_cwnd(&Ack::in_sequence(0));
        assert_eq!(bbr.cwnd_bytes / MSS, window, "{state:?}");
        // The short-term bound applies in all states, but four segments remain.
        bbr.inflight_shortterm = Some(30 * MSS);
        bbr.set_cwnd(&Ack::in_sequence(0));
        assert_eq!(bbr.cwnd_bytes / MSS, 30, "{state:?}");
        bbr.inflight_shortterm = Some(MSS);
        bbr.set_cwnd(&Ack::in_sequence(0));
        assert_eq!(bbr.cwnd_bytes / MSS, 4, "{state:?}");
    }
}

/// The window follows its target by the acknowledged bytes. Before the pipe is full it only grows.
#[test]
fn the_window_grows_by_the_acknowledged_bytes_and_falls_at_once() {
    let mut bbr = cruising();
    bbr.cwnd_bytes = 150 * MSS;
    bbr.set_cwnd(&Ack::in_sequence(3 * MSS));
    assert_eq!(bbr.cwnd_bytes, 153 * MSS);
    bbr.cwnd_bytes = 300 * MSS;
    bbr.set_cwnd(&Ack::in_sequence(MSS));
    assert_eq!(bbr.cwnd_bytes, 200 * MSS);
    let mut startup = starting();
    startup.rounds.delivered_bytes = 100 * MSS;
    for (cwnd, next) in [(100, 101), (300, 300)] {
        startup.cwnd_bytes = cwnd * MSS;
        startup.set_cwnd(&Ack::in_sequence(MSS));
        assert_eq!(startup.cwnd_bytes, next * MSS);
    }
    // Until the initial window is delivered, the model is not trusted.
    startup.rounds.delivered_bytes = 9 * MSS;
    startup.set_cwnd(&Ack::in_sequence(MSS));
    assert_eq!(startup.cwnd_bytes, 301 * MSS);
}

/// 100 segments per 100 ms arrive in bundles of 20 every 20 ms: 19 of them, and no time, precede the last one.
#[test]
fn the_window_allows_for_aggregated_acknowledgments_in_every_state() {
    let mut bbr = cruising();
    for ms in (1000..1100).step_by(20) {
        (0..20).for_each(|_| bbr.update_aggregation(MSS, at(ms)));
    }
    assert_eq!(bbr.aggregation.excess_bytes(), 20 * MSS);
    for (state, most) in [
        (State::Startup, 220),
        (State::Drain, 220),
        (State::Down, 220),
        (State::Cruise, 220),
        (State::Refill, 220),
        (State::Up, 247),
        (State::ProbeRtt, 70),
    ] {
        bbr.state = state;
        assert_eq!(bbr.max_inflight() / MSS, most, "{state:?}");
    }
}

#[test]
fn the_largest_aggregation_counts_for_ten_round_trips_and_in_startup_for_one() {
    for (full, rounds) in [(true, 10), (false, 1)] {
        let mut bbr = cruising();
        bbr.full_bw_reached = full;
        (0..50).for_each(|_| bbr.update_aggregation(MSS, at(1000)));
        assert_eq!(bbr.aggregation.excess_bytes(), 50 * MSS);
        for round in 1..=10 {
            (bbr.round, bbr.rounds.starts) = (bbr.round + 1, true);
            bbr.update_aggregation(MSS, at(10_000));
            let largest = if round < rounds { 50 } else { 1 };
            assert_eq!(bbr.aggregation.excess_bytes() / MSS, largest, "{round} of {rounds}");
            // The interval starts anew, so that the next acknowledgment is again one segment in excess.
            bbr.aggregation.restart(at(1000));
        }
    }
}

#[test]
fn acknowledgments_at_the_rate_of_the_path_or_after_idle_are_no_aggregation() {
    let mut bbr = cruising();
    for ms in 1000..2000 {
        bbr.update_aggregation(MSS, at(ms));
    }
    assert!(bbr.aggregation.excess_bytes() <= 2 * MSS, "{:?}", bbr.aggregation);
    // A window is the most that can be in excess.
    (0..500).for_each(|_| bbr.update_aggregation(MSS, at(2000)));
    assert_eq!(bbr.aggregation.excess_bytes(), 200 * MSS);
    let mut idle = cruising();
    (0..50).for_each(|_| idle.update_aggregation(MSS, at(1000)));
    let sent = Sent { segment: 0, bytes: MSS, in_flight_bytes: MSS, is_retransmission: false, app_limited: true };
    with_cx_at(at(1010), |cx| idle.on_sent(&sent, cx));
    idle.rounds.starts = true;
    idle.full_bw_reached = false;
    idle.update_aggregation(MSS, at(1020));
    assert_eq!(idle.aggregation.excess_bytes(), MSS);
}

#[test]
fn the_minimum_window_exceeds_the_allowance_for_single_segments_but_not_for_chunks() {
    let mut bbr = cruising();
    (bbr.bw, bbr.max_bw) = (rate(1), WindowedExtreme::max(1));
    assert_eq!(bbr.send_quantum_bytes(), MSS);
    assert_eq!(bbr.inflight(rate(1), 1.0), 4 * MSS);
    bbr.state = State::Up;
    assert_eq!(bbr.inflight(rate(1), 1.0), 6 * MSS, "two more in UP");
    bbr.state = State::Cruise;
    bbr.config.quantum_segments = 40;
    // Two segments at least; the volume of a millisecond; 40 segments or 64 KiB at most.
    for (mbps, quantum) in [(1, 2 * MSS), (80, 10 * MSS), (8000, 40 * MSS)] {
        bbr.pacer.pace = Rate::from_mbps(mbps);
        assert_eq!(bbr.send_quantum_bytes(), quantum);
        assert_eq!(bbr.inflight(rate(1), 1.0), 3 * quantum);
    }
    bbr.config.quantum_segments = 1000;
    assert_eq!(bbr.send_quantum_bytes(), 65_536);
}

/// PROBE_RTT begins five seconds after the last minimum, halves the volume in flight, and lasts for 200 ms and a round
/// trip from then on.
#[test]
fn probe_rtt_halves_the_volume_in_flight_for_200_ms_and_a_round_trip() {
    for full in [true, false] {
        let mut bbr = cruising();
        (bbr.full_bw_reached, bbr.probe_rtt_min_at) = (full, at(1000));
        if !full {
            bbr.state = State::Startup;
        }
        let longer = Acks { rtt: Dur::from_ms(101), ..ACKS };
        Acks { now_ms: 6000, ..longer }.give(&mut bbr, 100, false);
        assert_ne!(bbr.state, State::ProbeRtt);
        Acks { now_ms: 6001, ..longer }.give(&mut bbr, 100, false);
        assert_eq!((bbr.state, bbr.cwnd_bytes), (State::ProbeRtt, 50 * MSS));
        // Enough is still in flight: the time has not begun.
        Acks { now_ms: 6500, ..longer }.begin_round(&mut bbr, 100);
        Acks { now_ms: 6600, in_flight: 50, ..longer }.give(&mut bbr, 100, false);
        Acks { now_ms: 6800, in_flight: 50, ..longer }.begin_round(&mut bbr, 100);
        assert_eq!(bbr.state, State::ProbeRtt, "200 ms are not over");
        Acks { now_ms: 6801, in_flight: 50, ..longer }.give(&mut bbr, 100, false);
        assert_eq!(bbr.state, if full { State::Cruise } else { State::Startup });
        assert_eq!((bbr.cwnd_bytes >= 200 * MSS, bbr.probe_rtt_min_at), (true, at(6801)));
    }
}

#[test]
fn an_idle_period_takes_the_place_of_probe_rtt_and_restarts_at_the_bandwidth() {
    let mut bbr = cruising();
    bbr.probe_rtt_min_at = at(1000);
    bbr.state = State::Down;
    with_cx(|cx| bbr.set_pace(bbr.pacing_gain(), cx));
    let sent = Sent { segment: 0, bytes: MSS, in_flight_bytes: MSS, is_retransmission: false, app_limited: true };
    with_cx_at(at(8000), |cx| bbr.on_sent(&sent, cx));
    assert!(bbr.idle_restart);
    assert!(bbr.pacer.pace.as_bps().abs_diff(rate(100).scaled(1.04 * 0.99).as_bps()) <= 1);
    Acks { now_ms: 8100, rtt: Dur::from_ms(101), in_flight: 0, ..ACKS }.give(&mut bbr, 100, false);
    assert_eq!((bbr.state, bbr.idle_restart), (State::Cruise, false));
    // The round trip after the idle period is the new minimum of the interval.
    assert_eq!((bbr.probe_rtt_min, bbr.min_rtt), (Some(Dur::from_ms(101)), Some(RTT)));
}

/// The bounds that a spurious recovery lowered return, and so does the state that its losses ended.
#[test]
fn a_spurious_recovery_returns_to_the_state_and_the_bounds_before_it() {
    let mut bbr = probing();
    bbr.inflight_longterm = Some(180 * MSS);
    for n in 0..3 {
        // The probe ends at the first loss. Later losses of the episode change nothing.
        with_cx_at(at(1000 + n), |cx| bbr.on_lost(&lost_segment(10 * n, 20, 9), cx));
        if n == 0 {
            with_cx(|cx| bbr.on_congestion(Congestion::Loss { flight_bytes: 0 }, cx));
        }
    }
    assert_eq!((bbr.state, bbr.inflight_longterm), (State::Down, Some(70 * MSS)));
    bbr.loss_in_round = true;
    bbr.adapt_shortterm();
    assert!(bbr.bw_shortterm.is_some());
    with_cx(|cx| bbr.on_congestion(Congestion::Spurious, cx));
    assert_eq!((bbr.state, bbr.inflight_longterm), (State::Refill, Some(180 * MSS)));
    assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm, bbr.loss_in_round), (None, None, false));
    assert_eq!(bbr.undo.state, None);

    const SIX: [Seq; 8] = [10, 11, 12, 20, 30, 40, 50, 60];
    let mut startup = startup_with_losses(starting(), &SIX, Acks { phase: Phase::Recovery, ..ACKS });
    assert_eq!(startup.state, State::Drain);
    with_cx(|cx| startup.on_congestion(Congestion::Spurious, cx));
    assert_eq!((startup.state, startup.full_bw_reached, startup.full_bw_now), (State::Startup, false, false));
    assert_eq!(startup.inflight_longterm, None);
}

#[test]
fn a_spurious_timeout_restores_the_window_and_the_probe() {
    let mut bbr = probing();
    let sent = |in_flight| Sent {
        segment: 0,
        bytes: MSS,
        in_flight_bytes: in_flight * MSS,
        is_retransmission: false,
        app_limited: false,
    };
    with_cx(|cx| bbr.on_sent(&sent(5), cx));
    for n in 0..3 {
        with_cx(|cx| bbr.on_lost(&lost_segment(n, 20, n + 1), cx));
    }
    with_cx(|cx| bbr.on_congestion(Congestion::Timeout { flight_bytes: 5 * MSS, first: true }, cx));
    // Two segments remain in flight, and one may be sent.
    assert_eq!((bbr.cwnd_bytes, bbr.state, bbr.undo.state), (3 * MSS, State::Down, Some(State::Up)));
    with_cx(|cx| bbr.on_congestion(Congestion::Spurious, cx));
    assert_eq!((bbr.cwnd_bytes, bbr.state, bbr.inflight_longterm), (200 * MSS, State::Refill, None));
}

#[test]
fn the_end_of_recovery_restores_the_window() {
    let mut bbr = cruising();
    with_cx(|cx| bbr.on_congestion(Congestion::Timeout { flight_bytes: 5 * MSS, first: true }, cx));
    assert_eq!(bbr.cwnd_bytes, MSS);
    bbr.set_cwnd(&Ack { phase: Phase::Timeout, ..Ack::in_sequence(MSS) });
    assert_eq!(bbr.cwnd_bytes, 4 * MSS, "the minimum window");
    bbr.set_cwnd(&Ack::in_sequence(MSS));
    assert_eq!(bbr.cwnd_bytes, 200 * MSS);
}

#[test]
fn losses_that_the_acknowledgment_reveals_belong_to_its_sample() {
    let mut bbr = cruising();
    with_cx(|cx| bbr.on_lost(&lost(200, 1), cx));
    let delivery = Delivery {
        sent_at: at(900),
        prior_delivered_bytes: 0,
        total_delivered_bytes: 0,
        lost_bytes: 2 * MSS,
        in_flight_bytes: 200 * MSS,
        interval: RTT,
        app_limited: false,
    };
    let ack = Ack { delivery: Some(delivery), ..Ack::in_sequence(MSS) };
    assert_eq!(with_cx(|cx| bbr.take_sample(&ack, cx)).lost_bytes, 3 * MSS);
    // At the next one they are already counted.
    assert_eq!(with_cx(|cx| bbr.take_sample(&ack, cx)).lost_bytes, 2 * MSS);
}

#[test]
fn the_bound_is_the_volume_at_which_the_losses_crossed_two_per_cent() {
    // Of 39 segments before the loss, none was lost: the first 0.78 / 0.98 of the lost one reach 2 %. Of 150 segments
    // before the fifth loss, four were lost, which is above 2 % already: 2 % were crossed 1 / 0.98 segments earlier.
    for (in_flight, losses, bound) in [(40, 1, 39_795), (151, 5, 148_979)] {
        let mut bbr = probing();
        bbr.cwnd_bytes = 40 * MSS;
        with_cx(|cx| bbr.on_lost(&lost(in_flight, losses), cx));
        assert_eq!(bbr.inflight_longterm, Some(bound), "{losses} of {in_flight}");
    }
}

#[test]
fn segments_of_probe_rtt_count_as_limited_by_the_application() {
    for (sent_ms, bound) in [(1499, Some(70 * MSS)), (1500, None)] {
        let mut bbr = probing();
        (bbr.state, bbr.probe_rtt_began) = (State::ProbeRtt, at(1500));
        with_cx_at(at(1600), |cx| bbr.on_lost(&Lost { sent_at: at(sent_ms), ..lost(20, 9) }, cx));
        assert_eq!(bbr.inflight_longterm, bound, "sent at {sent_ms} ms");
    }
}

#[test]
fn losses_end_startup_only_at_the_end_of_the_loss_round() {
    let mut bbr = starting();
    for segment in [10, 20, 30, 40, 50, 60] {
        with_cx(|cx| bbr.on_lost(&lost_segment(segment, 200, 1), cx));
    }
    bbr.loss_round_ends_at_bytes = 2 * MSS;
    let acks = Acks { phase: Phase::Recovery, lost: 10, ..ACKS };
    for state in [State::Startup, State::Startup, State::Drain] {
        acks.begin_round(&mut bbr, 100);
        assert_eq!(bbr.state, state);
    }
}

#[test]
fn a_loss_round_ends_with_a_segment_that_was_sent_after_it_began() {
    let mut bbr = cruising();
    let mut is_end = |prior: u64, total: u64| {
        let delivery = Delivery {
            sent_at: at(900),
            prior_delivered_bytes: prior * MSS,
            total_delivered_bytes: total * MSS,
            lost_bytes: 0,
            in_flight_bytes: 200 * MSS,
            interval: RTT,
            app_limited: false,
        };
        bbr.rounds.delivered_bytes = total * MSS;
        with_cx(|cx| bbr.take_sample(&Ack { delivery: Some(delivery), ..Ack::in_sequence(MSS) }, cx));
        bbr.loss_round_start
    };
    assert_eq!([is_end(10, 20), is_end(19, 25), is_end(20, 30)], [true, false, true]);
}

#[test]
fn probe_rtt_keeps_the_largest_window_and_forgets_the_short_term_bounds() {
    let mut bbr = cruising();
    (bbr.prior_cwnd_bytes, bbr.bw_shortterm, bbr.inflight_shortterm) = (300 * MSS, Some(rate(50)), Some(60 * MSS));
    let longer = Acks { now_ms: 7000, rtt: Dur::from_ms(101), ..ACKS };
    longer.give(&mut bbr, 100, false);
    assert_eq!((bbr.state, bbr.prior_cwnd_bytes), (State::ProbeRtt, 300 * MSS));
    with_cx(|cx| bbr.end_probe_rtt(cx));
    assert_eq!((bbr.cwnd_bytes, bbr.bw_shortterm, bbr.inflight_shortterm), (300 * MSS, None, None));
}

#[test]
fn the_window_of_a_timeout_has_room_for_one_segment_beyond_those_in_flight() {
    let mut bbr = cruising();
    Acks { in_flight: 3, ..ACKS }.give(&mut bbr, 100, false);
    with_cx(|cx| bbr.on_congestion(Congestion::Timeout { flight_bytes: 5 * MSS, first: true }, cx));
    assert_eq!(bbr.cwnd_bytes, 4 * MSS);
    bbr.in_flight_bytes = 9 * MSS;
    with_cx(|cx| bbr.on_congestion(Congestion::Timeout { flight_bytes: 9 * MSS, first: false }, cx));
    assert_eq!(bbr.cwnd_bytes, 4 * MSS, "never raised");
}

#[test]
fn a_volume_in_flight_without_excess_loss_raises_the_bound() {
    for (losses, bound) in [(3, 160), (4, 150)] {
        let mut bbr = cruising();
        bbr.inflight_longterm = Some(150 * MSS);
        // 3 of 160 segments are below 2 %, 4 are above.
        Acks { in_flight: 160, lost: losses, ..ACKS }.give(&mut bbr, 100, false);
        assert_eq!(bbr.inflight_longterm, Some(bound * MSS), "{losses}");
    }
}

#[test]
fn the_bound_of_startup_is_no_less_than_the_volume_delivered_in_a_round_trip() {
    let mut bbr = starting();
    bbr.inflight_latest = 150 * MSS;
    let ended = startup_with_losses(bbr, &[10, 20, 30, 40, 50, 60], Acks { phase: Phase::Recovery, ..ACKS });
    assert_eq!((ended.state, ended.inflight_longterm), (State::Drain, Some(150 * MSS)));
}

#[test]
fn the_minimum_of_ten_seconds_is_replaced_by_that_of_the_last_five() {
    let mut bbr = cruising();
    (bbr.min_rtt_at, bbr.probe_rtt_min_at) = (at(1000), at(1000));
    let sample = |bbr: &mut Bbr3, now_ms, rtt_ms| {
        let ack = Ack { rtt: Some(Dur::from_ms(rtt_ms)), ..Ack::in_sequence(MSS) };
        with_cx_at(at(now_ms), |cx| bbr.update_min_rtt(&ack, cx));
        (bbr.min_rtt.map(|rtt| rtt.as_ps() / 1_000_000_000), bbr.min_rtt_at)
    };
    assert_eq!(sample(&mut bbr, 6001, 110), (Some(100), at(1000)));
    assert_eq!(bbr.probe_rtt_min_at, at(6001));
    assert_eq!(sample(&mut bbr, 11_000, 120), (Some(100), at(1000)));
    assert_eq!(sample(&mut bbr, 11_001, 120), (Some(110), at(6001)));
    assert_eq!(sample(&mut bbr, 11_002, 90), (Some(90), at(11_002)));
}

#[test]
fn each_probe_starts_with_the_slope_of_its_first_round_trip() {
    let mut bbr = probing();
    let slope = bbr.up_bytes_per_segment;
    assert_eq!(slope, 200 * MSS);
    (bbr.up_rounds, bbr.up_acked_bytes) = (5, 7);
    bbr.ack_phase = AckPhase::ProbeStopping;
    bbr.start_refill();
    assert_eq!((bbr.ack_phase, bbr.up_acked_bytes), (AckPhase::Refilling, 0));
    bbr.start_up(rate(100));
    assert_eq!(bbr.up_bytes_per_segment, slope);
}

#[test]
fn losses_that_arrive_a_round_trip_after_a_probe_set_no_bound() {
    for (entry, now_ms) in [(State::Down, 1000), (State::ProbeRtt, 7000)] {
        let mut bbr = probing();
        bbr.probe_rtt_min_at = at(1000);
        match entry {
            State::Down => with_cx(|cx| bbr.start_down(cx)),
            _ => Acks { now_ms, rtt: Dur::from_ms(101), ..ACKS }.give(&mut bbr, 100, false),
        }
        assert_eq!((bbr.state, bbr.ack_phase, bbr.bw_probe_samples), (entry, AckPhase::ProbeStopping, true));
        Acks { now_ms, ..ACKS }.begin_round(&mut bbr, 100);
        with_cx_at(at(now_ms), |cx| bbr.on_lost(&lost(20, 9), cx));
        assert_eq!(bbr.inflight_longterm, None, "{entry:?}");
    }
}

#[test]
fn the_latest_signals_are_the_largest_of_one_loss_round() {
    let mut bbr = cruising();
    bbr.loss_round_ends_at_bytes = 1 << 40;
    for segments in [80, 60] {
        ACKS.give(&mut bbr, segments, false);
    }
    assert_eq!((bbr.bw_latest, bbr.inflight_latest), (rate(80), MSS));
    // The round ends, and its losses lower the bounds, with this sample included. The next round starts from it.
    (bbr.loss_round_ends_at_bytes, bbr.loss_in_round) = (0, true);
    ACKS.give(&mut bbr, 50, false);
    assert_eq!((bbr.bw_shortterm, bbr.bw_latest, bbr.loss_in_round), (Some(rate(80)), rate(50), false));
}

#[test]
fn an_undo_in_probe_rtt_waits_for_its_end() {
    for (left, full) in [(State::Startup, false), (State::Up, true)] {
        let mut bbr = cruising();
        (bbr.state, bbr.undo.state) = (State::ProbeRtt, Some(left));
        with_cx(|cx| bbr.on_congestion(Congestion::Spurious, cx));
        assert_eq!((bbr.state, bbr.full_bw_reached), (State::ProbeRtt, full));
        with_cx(|cx| bbr.end_probe_rtt(cx));
        assert_eq!(bbr.state, if full { State::Cruise } else { State::Startup });
    }
}

#[test]
fn round_trips_count_towards_the_next_probe() {
    let mut bbr = cruising();
    let before = bbr.rounds_since_probe;
    ACKS.begin_round(&mut bbr, 100);
    ACKS.give(&mut bbr, 100, false);
    assert_eq!((bbr.rounds_since_probe - before, bbr.round), (1, 1));
}
