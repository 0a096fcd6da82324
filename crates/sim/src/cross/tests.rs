//! Properties of the processes, tested without a network.

use super::*;
use sparelane_core::Dur;

const RATE: Rate = Rate::from_mbps(250);

fn traffic(pattern: Pattern) -> CrossTraffic {
    CrossTraffic {
        from: NodeId(0),
        to: NodeId(1),
        rate: RATE,
        packet_bytes: 1500,
        class: 0,
        pattern,
        bucket: None,
        start: Time::from_ns(7_000),
        stop: Time::NEVER,
    }
}

fn constant(burst: u32, jitter: f64) -> CrossTraffic {
    traffic(Pattern::Constant(ConstantSpec { burst, jitter }))
}

fn aggregate(max_bytes: u64, shape: f64) -> CrossTraffic {
    traffic(Pattern::Aggregate(AggregateSpec { peak: Rate::from_mbps(100), min_bytes: 1_500, max_bytes, shape }))
}

/// The send times of the packets of `traffic` before `stop`.
fn sent(traffic: CrossTraffic, stop: Time) -> Vec<Time> {
    let mut source = Source::new(CrossTraffic { stop, ..traffic }, 3, 0, 11);
    let mut times = Vec::new();
    while source.next_time() != Time::NEVER {
        let at = source.next_time();
        let (packets, packet) = source.send();
        assert_eq!((packet.wire_bytes(), packet.flow()), (1500, DATAGRAMS | 3));
        times.extend((0..packets).map(|_| at));
    }
    assert!(times.is_sorted());
    times
}

fn seconds(s: u64) -> Time {
    Time::ZERO + Dur::from_secs(s)
}

/// The rate of `packets` in `s` seconds, as a share of the configured one.
fn share(packets: usize, s: u64) -> f64 {
    packets as f64 * 1500.0 * 8.0 / (RATE.as_bps() as f64 * s as f64)
}

#[test]
fn a_constant_rate_sends_its_bursts_at_regular_intervals() {
    let times = sent(constant(4, 0.0), seconds(1));
    let interval = RATE.time_for(4 * 1500);
    assert!(times[0] >= Time::from_ns(7_000) && times[0] < Time::from_ns(7_000) + interval);
    assert!(times.chunks(4).all(|burst| burst.iter().all(|&at| at == burst[0])));
    assert!(times.chunks(4).zip(times.chunks(4).skip(1)).all(|(one, next)| next[0] == one[0] + interval));
}

#[test]
fn jitter_moves_each_interval_within_its_bounds_and_keeps_the_mean() {
    let times = sent(constant(1, 0.5), seconds(4));
    let gaps: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_ps() as f64 / 48e6).collect();
    assert!(gaps.iter().all(|gap| (0.499..1.501).contains(gap)));
    assert!(gaps.iter().any(|gap| *gap < 0.52) && gaps.iter().any(|gap| *gap > 1.48));
    assert!((share(times.len(), 4) - 1.0).abs() < 0.005, "{}", share(times.len(), 4));
}

/// The mean of the drawn sizes equals the mean that sets the arrival rate.
#[test]
fn an_aggregate_has_the_mean_rate_that_was_asked_for() {
    for (max_bytes, shape) in [(1_500, 1.2), (40_000, 0.5), (200_000, 1.0), (200_000, 1.2), (200_000, 3.0)] {
        let times = sent(aggregate(max_bytes, shape), seconds(60));
        let share = share(times.len(), 60);
        assert!((share - 1.0).abs() < 0.02, "{max_bytes}, {shape}: {share}");
    }
}

/// Transfers take a second: without a history, the first tenth of a second would be nearly empty.
#[test]
fn an_aggregate_is_at_its_mean_from_the_start() {
    let spec = AggregateSpec { peak: Rate::from_mbps(1), min_bytes: 125_000, max_bytes: 125_000, shape: 1.0 };
    let times = sent(traffic(Pattern::Aggregate(spec)), Time::from_ns(100_000_000));
    let share = 10.0 * share(times.len(), 1);
    assert!((share - 1.0).abs() < 0.25, "{share}");
}

#[test]
fn packets_of_one_transfer_are_sent_at_its_peak_rate() {
    let spec = AggregateSpec { peak: Rate::from_mbps(100), min_bytes: 150_000, max_bytes: 150_000, shape: 1.0 };
    let rare = CrossTraffic { rate: Rate::from_bps(100_000), ..traffic(Pattern::Aggregate(spec)) };
    let times = sent(rare, seconds(100));
    let within = times.windows(2).filter(|pair| pair[1] - pair[0] == Dur::from_us(120)).count();
    assert!(times.len() >= 400 && within >= times.len() * 95 / 100, "{within} of {}", times.len());
}

/// In any span, the bytes that leave are at most the depth plus the rate times the span.
#[test]
fn a_bucket_lets_no_more_pass_than_its_depth_and_rate() {
    let bucket = TokenBucket { rate: Rate::from_mbps(300), depth_bytes: 6_000 };
    let plain = sent(aggregate(400_000, 1.2), seconds(5));
    let shaped = sent(CrossTraffic { bucket: Some(bucket), ..aggregate(400_000, 1.2) }, seconds(5));
    assert!(plain.iter().zip(&shaped).all(|(came, left)| left >= came));
    let late = plain.iter().zip(&shaped).filter(|(came, left)| left > came).count();
    assert!(late > plain.len() / 10 && late < plain.len(), "{late} of {}", plain.len());
    for packets in [1, 2, 5, 20, 300] {
        for pair in shaped.windows(packets + 1) {
            let bytes = 1500 * (packets as u64 + 1);
            let allowed = bucket.depth_bytes + bucket.rate.bytes_in(pair[packets] - pair[0]);
            assert!(bytes <= allowed + 1, "{bytes} bytes, {allowed} allowed");
        }
    }
}

#[test]
fn a_bucket_passes_conforming_packets_at_once() {
    let plain = sent(constant(4, 0.0), seconds(1));
    let bucket = TokenBucket { rate: RATE, depth_bytes: 6_000 };
    assert_eq!(sent(CrossTraffic { bucket: Some(bucket), ..constant(4, 0.0) }, seconds(1)), plain);
}
