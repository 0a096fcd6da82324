//! Tests of BBRv3's rules, one by one.

use super::config::*;
use super::*;
use sparelane_core::{Domain, Stream};

const MSS: u64 = 1000;
const RTT: Dur = Dur::from_ms(100);

/// Returns a flow that cruises at 100 segments per round trip of 100 ms, with a window of twice that.
fn cruising() -> Bbr3 {
    let none = crate::Values::default();
    let config = Bbr3Config {
        initial_window_segments: none.whole(&INITIAL_WINDOW),
        loss_threshold: none.number(&LOSS_THRESHOLD),
        beta: none.number(&BETA),
        headroom: none.number(&HEADROOM),
        probe_rtt_interval: none.span(&PROBE_RTT_INTERVAL),
        probe_rtt_time: none.span(&PROBE_RTT_TIME),
        full_loss_count: none.whole(&FULL_LOSS_COUNT),
    };
    let mut bbr = Bbr3::new(config, PacketSize::of(MSS));
    bbr.max_bw.update(0, Rate::of(100 * MSS, RTT));
    (bbr.min_rtt, bbr.probe_rtt_min) = (Some(RTT), Some(RTT));
    (bbr.full_bw_reached, bbr.state, bbr.cwnd_bytes) = (true, State::Cruise, 200 * MSS);
    bbr
}

fn with_cx<T>(call: impl FnOnce(&mut Cx<'_>) -> T) -> T {
    let mut rng = Stream::new(1, Domain::Test, 0);
    let rtt = Some(RTT);
    let now = Time::ZERO + Dur::from_secs(1);
    call(&mut Cx { now, mss_bytes: MSS, srtt: rtt, min_rtt: rtt, rng: &mut rng })
}

fn lost(in_flight: u64, lost: u64) -> Lost {
    Lost {
        segment: 0,
        bytes: MSS,
        sent_at: Time::ZERO,
        in_flight_bytes: in_flight * MSS,
        lost_bytes: lost * MSS,
        app_limited: false,
    }
}

#[test]
fn a_probe_that_loses_more_than_two_per_cent_bounds_the_volume_in_flight_and_ends() {
    let mut bbr = cruising();
    bbr.start_refill();
    bbr.start_up(Rate::of(100 * MSS, RTT));
    with_cx(|cx| bbr.on_lost(&lost(150, 3), cx));
    assert_eq!((bbr.inflight_longterm, bbr.state), (None, State::Up), "3 of 150 segments are exactly 2 %");
    with_cx(|cx| bbr.on_lost(&lost(151, 4), cx));
    // Before the loss 150 segments were in flight and 3 of them lost, exactly 2 %: the threshold is crossed there.
    assert_eq!((bbr.inflight_longterm, bbr.state), (Some(150 * MSS), State::Down));
    with_cx(|cx| bbr.on_lost(&lost(20, 9), cx));
    assert_eq!(bbr.inflight_longterm, Some(150 * MSS), "at most one reduction per probe");
}

#[test]
fn the_bound_of_a_probe_is_no_less_than_seven_tenths_of_the_target() {
    let mut bbr = cruising();
    bbr.start_up(Rate::of(100 * MSS, RTT));
    with_cx(|cx| bbr.on_lost(&lost(20, 9), cx));
    assert_eq!(bbr.inflight_longterm, Some(70 * MSS));
    assert_eq!(bbr.inflight_with_headroom(), Some(59_500));
}

#[test]
fn a_loss_while_cruising_lowers_the_short_term_bounds_to_the_delivered_volume_or_seven_tenths() {
    for (delivered, bw, inflight) in [(90, 90, 140), (20, 70, 140), (160, 160, 160)] {
        let mut bbr = cruising();
        with_cx(|cx| bbr.on_lost(&lost(100, 1), cx));
        (bbr.bw_latest, bbr.inflight_latest) = (Rate::of(delivered * MSS, RTT), delivered * MSS);
        bbr.adapt_shortterm();
        assert_eq!(bbr.bw_shortterm, Some(Rate::of(bw * MSS, RTT)), "{delivered}");
        assert_eq!(bbr.inflight_shortterm, Some(inflight * MSS), "{delivered}");
        bbr.start_refill();
        assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (None, None));
    }
}

/// The bound rises by 1, 2 and 4 segments in the first three round trips that fill the window.
#[test]
fn a_probe_raises_the_bound_by_twice_as_much_every_round_trip() {
    let mut bbr = cruising();
    (bbr.inflight_longterm, bbr.cwnd_bytes) = (Some(128 * MSS), 128 * MSS);
    bbr.start_up(Rate::of(100 * MSS, RTT));
    let mut bounds = Vec::new();
    for _ in 0..3 {
        let segments = bbr.cwnd_bytes / MSS;
        for n in 1..=segments {
            bbr.rounds.starts = n == segments;
            bbr.cwnd_bytes = bbr.inflight_longterm.expect("a bound");
            bbr.raise_longterm(&Ack::in_sequence(MSS));
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
