//! Pacing, observed on the wire.

use crate::wire::*;
use sparelane_cc::Blueprint;
use sparelane_cc::{Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Value, Values, build};
use sparelane_core::{Dur, Rate, Time};
use sparelane_transport::{HEADER_BYTES, TransportConfig};
use std::sync::{Arc, Mutex};

fn paced(window: u64, rate: Rate) -> Box<dyn CongestionControl> {
    let mut values = Values::default();
    values.set("window", Value::Whole(window));
    values.set("pace", Value::Rate(Some(rate)));
    build("constant", &values, &Blueprint::of_any(MSS, &Values::default())).expect("a pace")
}

fn gaps(wire: &Wire) -> Vec<Dur> {
    let data: Vec<_> = wire.sent.iter().filter(|sent| matches!(sent.item, Item::Data(_))).collect();
    data.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
}

#[test]
fn the_pacing_rate_includes_headers() {
    let rate = Rate::from_mbps(8);
    for header_bytes in [HEADER_BYTES, 66] {
        let config = TransportConfig { header_bytes, ..with_sack() };
        let mut wire = Wire::new(config, paced(10_000, rate), lose(&[]));
        wire.write_bytes(49 * MSS + 500);
        wire.run();
        assert_eq!(gaps(&wire), [rate.time_for(MSS + header_bytes); 49]);
    }
}

#[test]
fn a_short_segment_makes_a_short_gap() {
    let rate = Rate::from_mbps(8);
    let mut wire = Wire::new(with_sack(), paced(10_000, rate), lose(&[]));
    wire.write_bytes(500);
    wire.write(1);
    wire.run();
    assert_eq!(gaps(&wire), [rate.time_for(500 + HEADER_BYTES)]);
}

#[test]
fn retransmissions_are_paced() {
    let rate = Rate::from_mbps(8);
    let wire = Wire::transfer(with_sack(), paced(10_000, rate), 300, lose(&[20, 21, 30]));
    assert_eq!(wire.resent().len(), 3);
    assert!(gaps(&wire).iter().all(|&gap| gap >= rate.time_for(MSS + HEADER_BYTES)), "{:?}", gaps(&wire));
    assert_eq!(wire.sender.counts().timeouts, 0);
}

#[test]
fn an_idle_period_allows_no_burst() {
    let rate = Rate::from_mbps(8);
    let mut wire = Wire::new(with_sack(), paced(10_000, rate), lose(&[]));
    wire.write(5);
    wire.run();
    wire.run_until(at_ms(5000));
    wire.write(20);
    wire.run();
    assert!(gaps(&wire).iter().all(|&gap| gap >= rate.time_for(MSS + HEADER_BYTES)), "{:?}", gaps(&wire));
}

#[test]
fn the_window_limits_a_paced_sender() {
    let wire = Wire::transfer(with_sack(), paced(3, Rate::from_gbps(1)), 30, lose(&[]));
    assert!(wire.rounds().iter().all(|&sent| sent == 3), "{:?}", wire.rounds());
}

/// The first segments are paced at the rate echoed by the SYN-ACK, and later ones at the rate echoed by
/// acknowledgments.
#[test]
fn the_explicit_rate_paces_from_the_first_segment_on() {
    let (first, then) = (Rate::from_mbps(2), Rate::from_mbps(4));
    let mut wire = Wire::new(with_sack(), controller("rcp", &[]), lose(&[]));
    wire.explicit_rate = Some(first);
    wire.write(200);
    wire.run_until(at_ms(150));
    wire.explicit_rate = Some(then);
    wire.run();
    let is_early = |sent: &&Sent| matches!(sent.item, Item::Data(_)) && sent.at <= at_ms(200);
    let early = wire.sent.iter().filter(is_early).count();
    let [slow, fast] = [first, then].map(|rate| rate.time_for(MSS + HEADER_BYTES));
    assert!((23..=25).contains(&early), "{early} segments in a round trip of 100 ms at 2 Mb/s");
    let gaps = gaps(&wire);
    assert_eq!(gaps[..early - 2], vec![slow; early - 2]);
    assert_eq!(gaps[early + 1..], vec![fast; 199 - early - 1]);
}

#[test]
fn losses_do_not_change_the_explicit_rate() {
    let rate = Rate::from_mbps(4);
    let mut wire = Wire::new(with_sack(), controller("rcp", &[]), lose(&[20, 21, 30]));
    wire.explicit_rate = Some(rate);
    wire.write(200);
    wire.run();
    assert_eq!((wire.resent().len(), wire.sender.counts().timeouts), (3, 0));
    // The window holds a round trip of the pace, so that the second segment after a hole may wait for the third report.
    let pace = rate.time_for(MSS + HEADER_BYTES);
    let (on_pace, late): (Vec<Dur>, Vec<Dur>) = gaps(&wire).into_iter().partition(|&gap| gap == pace);
    assert!(late.len() <= 1 && late.iter().all(|&gap| gap > pace && gap < pace * 3), "{late:?}");
    assert_eq!(on_pace.len() + late.len(), 202);
}

/// The last 40 segments are lost. The timeout sends one segment, and its acknowledgment restores the rate.
#[test]
fn after_a_timeout_one_segment_requests_the_rate() {
    let rate = Rate::from_mbps(4);
    let last: Vec<u64> = (30..70).collect();
    let mut wire = Wire::new(with_sack(), controller("rcp", &[]), lose(&last));
    wire.explicit_rate = Some(rate);
    wire.write(70);
    wire.run();
    let resent = wire.resent();
    assert_eq!(wire.sender.counts().timeouts, 1);
    assert_eq!(resent.iter().filter(|(ms, _)| *ms < resent[0].0 + 100).count(), 1);
    assert!(resent[1..].windows(2).all(|pair| pair[1].0 - pair[0].0 <= 3), "{resent:?}");
}

/// The departure time of each segment, its payload in bytes and the pacing rate at that time.
type Departures = Arc<Mutex<Vec<(Time, u64, Rate)>>>;

/// A wrapper that records the pacing rate of a controller at each departure.
#[derive(Debug)]
struct PacingLog(Box<dyn CongestionControl>, Departures);

impl CongestionControl for PacingLog {
    fn needs(&self) -> Needs {
        Needs { segments: true, ..self.0.needs() }
    }

    fn on_established(&mut self, explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.0.on_established(explicit_rate, cx);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.0.on_ack(ack, cx);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        self.0.on_congestion(event, cx);
    }

    fn on_sent(&mut self, sent: &sparelane_cc::Sent, cx: &mut Cx<'_>) {
        let pace = self.0.limits().pacing.expect("a pace");
        self.1.lock().expect("one thread").push((cx.now, sent.bytes, pace));
        if self.0.needs().segments {
            self.0.on_sent(sent, cx);
        }
    }

    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        if self.0.needs().segments {
            self.0.on_lost(lost, cx);
        }
    }

    fn next_timer(&self) -> Time {
        self.0.next_timer()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        self.0.on_timer(cx);
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }
}

/// No gap between two segments is shorter than the pacing rate requires, and many gaps match it exactly. The other
/// segments wait for the window, which grows from round to round on a path without a bottleneck.
#[test]
fn segments_are_paced_at_the_rate_of_each_controller() {
    // TIMELY is designed for datacentres. At 100 ms it needs a larger T_low to raise its rate.
    let slowly = vec![("start", Value::Number(0.001)), ("t_low", Value::Span(Dur::from_secs(1)))];
    for (name, params) in
        [("bbr", vec![]), ("bbr3", vec![]), ("timely", slowly), ("pcc-allegro", vec![]), ("pcc-vivace", vec![])]
    {
        let mut values = Values::default();
        params.into_iter().for_each(|(param, value)| values.set(param, value));
        let controller = build(name, &values, &Blueprint::of_any(MSS, &Values::default())).expect("a controller");
        let departures = Departures::default();
        let logged = Box::new(PacingLog(controller, departures.clone()));
        let wire = Wire::transfer(with_sack(), logged, 3000, lose(&[1020, 1021, 1030]));
        let resent: Vec<u64> = wire.resent().iter().map(|(_, seq)| *seq).collect();
        assert!([1020, 1021, 1030].iter().all(|seq| resent.contains(seq)) && resent.len() <= 4, "{name}: {resent:?}");
        assert_eq!(wire.sender.counts().timeouts, 0, "{name}");
        let departures = departures.lock().expect("one thread");
        let due = |(at, bytes, pace): (Time, u64, Rate)| at + pace.time_for(bytes + HEADER_BYTES);
        let early = departures.windows(2).find(|pair| pair[1].0 < due(pair[0]));
        assert_eq!(early, None, "{name}");
        let exact = departures.windows(2).filter(|pair| pair[1].0 == due(pair[0])).count();
        assert!(exact > 1200, "{name}: {exact} of {}", departures.len());
        let paces: std::collections::BTreeSet<Rate> = departures.iter().map(|departure| departure.2).collect();
        assert!(paces.len() > 5, "{name}: {paces:?}");
    }
}

/// One millisecond at 26 Mb/s is three packets of 1040 bytes. At 8 Mb/s it is less than one, so the minimum of two
/// applies.
#[test]
fn a_paced_chunk_lasts_a_millisecond_but_has_at_least_two_segments() {
    for (mbps, expected) in [(26, 3), (8, 2)] {
        let rate = Rate::from_mbps(mbps);
        let config = TransportConfig { send_batch: 44, ..with_sack() };
        let wire = Wire::transfer(config, paced(10_000, rate), 300, lose(&[]));
        let gaps = gaps(&wire);
        for chunk in gaps.chunks(expected) {
            let (last, inside) = chunk.split_last().expect("a gap");
            assert!(inside.iter().all(|gap| gap.is_zero()), "{mbps} Mb/s: {chunk:?}");
            assert!(
                chunk.len() < expected || *last == rate.time_for(MSS + HEADER_BYTES) * expected as u64,
                "{chunk:?}"
            );
        }
    }
}

/// Returns the utilisation of a 1 Gb/s bottleneck from 250 to 500 ms, with timers that are late by `lateness`.
fn share_of_the_bottleneck(name: &str, lateness: Dur, catch_up: Dur) -> f64 {
    let rate = Rate::from_gbps(1);
    let config = TransportConfig { pacing_catch_up: catch_up, ..with_sack() };
    let mut wire = Wire::new(config, controller(name, &[]), bottleneck(rate));
    wire.one_way = Dur::from_ms(2);
    wire.lateness = lateness;
    wire.write(100_000);
    let mut held = [0; 2];
    for (at, held) in [250, 500].into_iter().zip(&mut held) {
        wire.run_until(at_ms(at));
        *held = wire.receiver.held_bytes() / MSS;
    }
    (rate.time_for(MSS + HEADER_BYTES) * (held[1] - held[0])).as_secs_f64() / 0.25
}

/// With late timers a paced controller sends less, measures a lower delivery rate and lowers its pacing rate.
#[test]
fn with_catch_up_timers_late_by_60_us_do_not_slow_bbr() {
    let late = Dur::from_us(60);
    for name in ["bbr", "bbr3"] {
        let exact = share_of_the_bottleneck(name, Dur::ZERO, Dur::ZERO);
        let lost = share_of_the_bottleneck(name, late, Dur::ZERO);
        let found = share_of_the_bottleneck(name, late, Dur::from_us(200));
        assert!(exact > 0.85 && found > 0.95 * exact, "{name}: {found} with late timers, {exact} with exact ones");
        assert!(lost < exact / 5.0, "{name}: {lost}: late timers must matter without catch-up");
    }
}

/// A window of `share` of a segment, which becomes whole with the third acknowledgment.
#[derive(Debug)]
struct Fraction {
    share: f64,
    acks: u32,
    repaces: bool,
}

impl CongestionControl for Fraction {
    fn on_ack(&mut self, _ack: &Ack, _cx: &mut Cx<'_>) {
        self.acks += 1;
    }

    fn on_congestion(&mut self, _event: Congestion, _cx: &mut Cx<'_>) {}

    fn repaces(&self) -> bool {
        self.repaces
    }

    /// The round-trip time is 100 ms, so the pace is a segment every 100 ms / share.
    fn limits(&self) -> Limits {
        let cwnd = if self.acks < 3 { self.share } else { 1.0 };
        let pace = cwnd * (MSS + HEADER_BYTES) as f64 * 8.0 / 0.1;
        Limits { cwnd_bytes: (cwnd * MSS as f64) as u64, pacing: Some(Rate::from_bps(pace as u64)) }
    }
}

/// Returns the gaps between segments in milliseconds under a window of a quarter of a segment.
fn gaps_of_a_quarter(repaces: bool, config: TransportConfig, lost: &[u64]) -> (Vec<u64>, u64) {
    let mut wire = Wire::new(config, Box::new(Fraction { share: 0.25, acks: 0, repaces }), lose(lost));
    wire.write(6);
    wire.run();
    let ms = gaps(&wire).iter().map(|gap| (gap.as_secs_f64() * 1e3).round() as u64).collect();
    (ms, wire.sender.counts().timeouts)
}

#[test]
fn a_window_below_one_segment_sends_a_segment_in_several_round_trips() {
    let (gaps, timeouts) = gaps_of_a_quarter(false, with_sack(), &[]);
    // The fourth segment keeps the departure time that followed from the old pace.
    assert_eq!((gaps, timeouts), (vec![400, 400, 400, 100, 100], 0));
}

#[test]
fn a_controller_that_repaces_moves_the_departure_of_the_segment_that_waits() {
    let (gaps, timeouts) = gaps_of_a_quarter(true, with_sack(), &[]);
    // The third acknowledgment arrives 100 ms after its segment, and the new pace is a segment per 100 ms.
    assert_eq!((gaps, timeouts), (vec![400, 400, 100, 100, 100], 0));
}

/// The pace leaves more than a retransmission timeout between segments, which is no reason for a timeout.
#[test]
fn pauses_of_the_pace_cause_no_timeout_and_losses_are_repaired() {
    let short = TransportConfig {
        rto: sparelane_transport::RtoConfig { min: Dur::from_ms(1), ..with_sack().rto },
        ..with_sack()
    };
    let (_, timeouts) = gaps_of_a_quarter(false, short, &[]);
    assert_eq!(timeouts, 0);
    let (gaps, timeouts) = gaps_of_a_quarter(false, with_sack(), &[1]);
    assert_eq!((gaps.len(), timeouts), (6, 1), "one segment is sent twice");
}
