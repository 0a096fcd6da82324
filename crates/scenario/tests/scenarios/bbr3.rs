//! BBRv3 from end to end: the example test cases of draft-ietf-ccwg-bbr-06, appendix "BBR Example Test Cases", and
//! paths with loss, shallow buffers, other flows and changing delays.
//!
//! Expected numbers follow from the draft's constants and from the path. Times are in milliseconds, volumes in segments
//! of 1500 bytes on the wire, and bandwidths in b/s of payload, 1460 of 1500 bytes.

use super::run;
use sparelane_sim::Records;
use std::collections::BTreeMap;

/// Payload bytes of a segment, and their share of the bytes on the wire.
const MSS: f64 = 1460.0;
const PAYLOAD: f64 = 1460.0 / 1500.0;

/// The phase of the flow, as its gains and bounds show it. CRUISE and REFILL have the same gains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Down,
    CruiseOrRefill,
    Up,
    ProbeRtt,
}

use Phase::{CruiseOrRefill, Down, Drain, ProbeRtt, Startup, Up};

/// The traced values of the flow at one time.
struct Sample {
    ms: f64,
    values: BTreeMap<&'static str, f64>,
}

impl Sample {
    fn get(&self, quantity: &str) -> f64 {
        self.maybe(quantity).unwrap_or_else(|| panic!("no {quantity} at {} ms", self.ms))
    }

    /// A bound that is infinite is not traced.
    fn maybe(&self, quantity: &str) -> Option<f64> {
        self.values.get(quantity).copied()
    }

    fn segments(&self, quantity: &str) -> f64 {
        self.get(quantity) / MSS
    }

    fn phase(&self) -> Phase {
        match (self.get("pacing_gain"), self.get("cwnd_gain")) {
            (2.77, 2.0) => Startup,
            (0.5, 2.0) => Drain,
            (0.9, 2.0) => Down,
            (1.0, 2.0) => CruiseOrRefill,
            (1.25, 2.25) => Up,
            (1.0, 0.5) => ProbeRtt,
            gains => panic!("no state has gains of {gains:?}"),
        }
    }
}

/// A period in one phase: its first sample, and the first sample after it.
struct Stay<'a> {
    phase: Phase,
    samples: &'a [Sample],
    next: Option<&'a Sample>,
}

impl Stay<'_> {
    fn start_ms(&self) -> f64 {
        self.samples[0].ms
    }

    /// The duration; up to the end of the run if the phase does not end.
    fn ms(&self) -> f64 {
        self.next.unwrap_or_else(|| self.samples.last().expect("a sample")).ms - self.start_ms()
    }

    fn last(&self) -> &Sample {
        self.samples.last().expect("a sample")
    }
}

/// The path and the application of a run.
#[derive(Clone, Copy)]
struct Path<'a> {
    controller: &'a str,
    mbps: f64,
    /// The two-way propagation delay.
    rtt_ms: f64,
    queue: &'a str,
    /// Further keys of the workload.
    workload: &'a str,
    /// Further tables.
    more: &'a str,
    seconds: f64,
    /// The interval of samples, microseconds.
    sample_us: u64,
}

/// 20 Mb/s and 40 ms, which hold 66.7 segments, with a queue of ten times that.
const WAN: Path<'static> = Path {
    controller: "bbr3",
    mbps: 20.0,
    rtt_ms: 40.0,
    queue: "10bdp",
    workload: "size = \"unlimited\"",
    more: "",
    seconds: 10.0,
    sample_us: 1000,
};
const WAN_BPS: f64 = 20e6 * PAYLOAD;
const WAN_BDP: f64 = 20e6 * 0.04 / 8.0 / 1500.0;

struct Seen {
    samples: Vec<Sample>,
    records: Records,
    seconds: f64,
}

impl Path<'_> {
    fn text(&self, flows: usize) -> String {
        let Path { controller, mbps, rtt_ms, queue, workload, more, seconds, sample_us } = *self;
        let pairs: Vec<_> = (0..flows).map(|n| [format!("left{n}"), format!("right{n}")]).collect();
        // The two access links take 10 % of the delay.
        let (access_us, bottleneck_us) = (rtt_ms * 25.0, rtt_ms * 450.0);
        format!(
            "duration = \"{seconds}s\"\n[topology]\nkind = \"dumbbell\"\npairs = {flows}\naccess_rate = \"10Gbps\"\n\
             access_delay = \"{access_us}us\"\nbottleneck_rate = \"{mbps}Mbps\"\nbottleneck_delay = \"{bottleneck_us}us\"\n\
             [queue]\nlimit = \"{queue}\"\n[scheme.it]\ncontroller = \"{controller}\"\n\
             [sample]\ninterval = \"{sample_us}us\"\nflows = [0]\n\
             [[workload]]\nkind = \"bulk\"\nscheme = \"it\"\npairs = {pairs:?}\n{workload}\n{more}\n"
        )
    }

    fn run(&self) -> Seen {
        self.run_flows(1)
    }

    fn run_flows(&self, flows: usize) -> Seen {
        let records = run(&self.text(flows));
        let series = &records.series;
        let mut samples: Vec<Sample> = Vec::new();
        for row in 0..series.time_ps.len() {
            let ms = series.time_ps[row] as f64 / 1e9;
            if samples.last().is_none_or(|last| last.ms < ms) {
                samples.push(Sample { ms, values: BTreeMap::new() });
            }
            samples.last_mut().expect("a sample").values.insert(series.quantity[row], series.value[row]);
        }
        // Before the handshake there is no flow.
        samples.retain(|sample| sample.maybe("pacing_gain").is_some());
        Seen { samples, records, seconds: self.seconds }
    }

    /// The payload rate between two times, from two runs that agree until the earlier one.
    fn bps_between(&self, from_s: f64, to_s: f64) -> f64 {
        let delivered = |seconds| run(&Path { seconds, ..*self }.text(1)).flows.delivered_bytes[0] as f64;
        (delivered(to_s) - delivered(from_s)) * 8.0 / (to_s - from_s)
    }
}

impl Seen {
    fn stays(&self) -> Vec<Stay<'_>> {
        let mut stays: Vec<Stay<'_>> = Vec::new();
        let mut from = 0;
        for to in 1..=self.samples.len() {
            let phase = self.samples[from].phase();
            if to == self.samples.len() || self.samples[to].phase() != phase {
                stays.push(Stay { phase, samples: &self.samples[from..to], next: self.samples.get(to) });
                from = to;
            }
        }
        stays
    }

    fn phases(&self) -> Vec<Phase> {
        self.stays().iter().map(|stay| stay.phase).collect()
    }

    /// The first stay in `phase` that begins at `from_ms` or later.
    fn first(&self, phase: Phase, from_ms: f64) -> Stay<'_> {
        let is_it = |stay: &Stay<'_>| stay.phase == phase && stay.start_ms() >= from_ms;
        self.stays().into_iter().find(is_it).unwrap_or_else(|| panic!("no {phase:?} after {from_ms} ms"))
    }

    fn from(&self, ms: f64) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.ms >= ms)
    }

    /// The sample at `ms`.
    fn at(&self, ms: f64) -> &Sample {
        self.from(ms).next().expect("a sample")
    }

    fn bps(&self) -> f64 {
        self.records.flows.delivered_bytes[0] as f64 * 8.0 / self.seconds
    }

    /// The share of transmitted segments that were lost.
    fn loss(&self) -> f64 {
        let sent: u64 = self.records.flows.sent_packets.iter().map(|class| class[0]).sum();
        self.records.flows.lost_packets[0] as f64 / sent as f64
    }

    fn retransmissions(&self) -> u64 {
        self.records.flows.retransmissions[0]
    }
}

/// A change of the bottleneck, towards the receiver.
fn change(at_ms: f64, what: &str) -> String {
    format!("[[change]]\nat = \"{}us\"\nbetween = [\"west\", \"east\"]\n{what}\n", (at_ms * 1000.0) as u64)
}

/// The handshake, three doublings of ten segments to fill 67, and a round trip to measure them take five round trips, or
/// six if the pace lags. Three more show the plateau: two bandwidth-delay products in flight, rounded up, and three
/// segments on the access links make them up to 82 ms long. DRAIN follows.
#[test]
fn startup_ends_on_a_bandwidth_plateau() {
    let seen = Path { seconds: 2.0, ..WAN }.run();
    let startup = seen.first(Startup, 0.0);
    let end = startup.next.expect("an end");
    assert!((5.0 * 40.0 + 3.0 * 40.0..6.0 * 41.0 + 3.0 * 83.0).contains(&end.ms), "{}", end.ms);
    let max_bw = startup.last().get("max_bandwidth_bps");
    assert!((0.98..=1.0).contains(&(max_bw / WAN_BPS)), "{max_bw}");
    assert_eq!(seen.phases()[..2], [Startup, Drain]);
    assert_eq!(seen.retransmissions(), 0);
}

/// An application that writes 20 segments every 20 ms, at 12 Mb/s of the path's 100, for 40 segments per round trip.
const LIMITED: Path<'static> = Path {
    mbps: 100.0,
    workload: "size = \"1GB\"\nwrites = { first = \"29200B\", then = \"29200B\", every = \"20ms\" }",
    seconds: 3.0,
    ..WAN
};

/// Every sample is application-limited, so there is no plateau. From 2 s on, a third of the packets is lost: 13 per
/// round trip, in some nine ranges, which exceeds 2 % and six ranges. The loss is detected a round trip later, and
/// judged a round trip after that.
#[test]
fn startup_of_a_limited_application_ends_on_loss_and_on_nothing_else() {
    let lossy = change(2000.0, "loss = 0.33");
    let seen = Path { more: &lossy, ..LIMITED }.run();
    let startup = seen.first(Startup, 0.0);
    let end = startup.next.expect("an end");
    assert!((2000.0 + 2.0 * 40.0..2000.0 + 8.0 * 40.0).contains(&end.ms), "{}", end.ms);
    assert_ne!(end.maybe("inflight_longterm_bytes"), None, "the loss sets the bound");
    let phases = seen.phases();
    assert!(phases[1] == Drain || phases[1] == Down || phases[1] == CruiseOrRefill, "{phases:?}");
    assert!(!phases[1..].contains(&Startup), "{phases:?}");
    assert_eq!(LIMITED.run().phases(), [Startup], "without loss");
}

/// With two bandwidth-delay products in flight at its start, one of them has to go. DRAIN sends at half of the
/// bandwidth, so that takes two round trips without a queue: 80 ms.
#[test]
fn drain_ends_when_the_queue_is_empty() {
    let seen = Path { seconds: 2.0, ..WAN }.run();
    let drain = seen.first(Drain, 0.0);
    assert!((0.8 * 80.0..1.2 * 80.0).contains(&drain.ms()), "{}", drain.ms());
    let in_flight = |sample: &Sample| sample.segments("in_flight_bytes");
    let target = WAN_BDP.ceil();
    assert!(drain.samples[..drain.samples.len() - 1].iter().all(|sample| in_flight(sample) > target - 1.0));
    // Samples are 1 ms apart, in which some two segments arrive.
    assert!(in_flight(drain.next.expect("an end")) <= target + 2.0);
}

/// The bandwidth halves when DRAIN begins. DRAIN sends at half of the old bandwidth, so the volume in flight stays. (At
/// the draft's 10 %, DRAIN would still empty the queue in 2.5 round trips.) DRAIN ends in the fourth round trip.
#[test]
fn drain_ends_after_three_round_trips_with_a_queue() {
    let start = Path { seconds: 2.0, ..WAN }.run().first(Drain, 0.0).start_ms();
    let halved = change(start, "rate = \"10Mbps\"");
    let seen = Path { seconds: 3.0, more: &halved, ..WAN }.run();
    let drain = seen.first(Drain, 0.0);
    let end = drain.next.expect("an end");
    assert!(end.segments("in_flight_bytes") > 1.3 * WAN_BDP, "{}", end.segments("in_flight_bytes"));
    assert_eq!(end.phase(), Down);
    // Round trips have at least the delay of the first segment, 80 ms behind a full window, and at most twice that.
    assert!((3.0 * 80.0..4.0 * 160.0).contains(&drain.ms()), "{}", drain.ms());
}

/// UP sends a quarter too fast and sees no more bandwidth in three round trips, which the growing queue makes up to
/// 1.75 times as long. Nothing is lost.
#[test]
fn a_probe_ends_on_a_bandwidth_plateau() {
    let seen = WAN.run();
    let up = seen.first(Up, 0.0);
    assert!((3.0 * 40.0..3.0 * 70.0).contains(&up.ms()), "{}", up.ms());
    assert_eq!(up.next.expect("an end").phase(), Down);
    assert_eq!(seen.retransmissions(), 0);
}

/// DOWN sends at 0.9 of the bandwidth until the queue of the probe is empty.
#[test]
fn down_ends_when_the_queue_is_empty() {
    let seen = WAN.run();
    let down = seen.first(Down, seen.first(Up, 0.0).start_ms());
    let excess = down.samples[0].segments("in_flight_bytes") - WAN_BDP.ceil();
    // A tenth of the bandwidth and the margin of 1 % of the pace: 0.109 bandwidth-delay products per round trip.
    let expected_ms = excess / (0.109 * WAN_BDP) * 40.0;
    assert!((0.8 * expected_ms..1.2 * expected_ms).contains(&down.ms()), "{} {expected_ms}", down.ms());
    let end = down.next.expect("an end");
    assert_eq!(end.phase(), CruiseOrRefill);
    assert!(end.segments("in_flight_bytes") <= WAN_BDP.ceil() + 2.0);
}

/// The bandwidth falls by 15 % when DOWN begins, below its pace of 0.9 * 0.99, so that the volume in flight stays. (At
/// the draft's 10 %, the margin of the pace empties the queue slowly.) After two to three seconds the flow refills the
/// pipe for a round trip and probes, without cruising.
#[test]
fn down_ends_at_the_time_of_the_next_probe() {
    let start = WAN.run().first(Down, 1000.0).start_ms();
    let reduced = change(start, "rate = \"17Mbps\"");
    // PROBE_RTT would come first.
    let seen = Path { controller: "bbr3\"\nprobe_rtt_interval = \"60min", more: &reduced, ..WAN }.run();
    let down = seen.first(Down, 1000.0);
    assert!((2000.0..=3000.0 + 100.0).contains(&down.ms()), "{}", down.ms());
    let refill = seen.first(CruiseOrRefill, down.start_ms());
    assert_eq!(refill.start_ms(), down.next.expect("an end").ms);
    assert_eq!(refill.next.expect("an end").phase(), Up);
    let round_trip_ms = refill.samples[0].get("srtt_s") * 1000.0;
    assert!((0.9..1.1).contains(&(refill.ms() / round_trip_ms)), "{} {round_trip_ms}", refill.ms());
}

/// The application writes 1 MB, which ends STARTUP, and then 12 Mb/s of the path's 20.
const LIMITED_LATER: Path<'static> = Path {
    controller: "bbr3\"\nprobe_rtt_interval = \"60min",
    workload: "size = \"1GB\"\nwrites = { first = \"2MB\", then = \"29200B\", every = \"20ms\" }",
    seconds: 20.0,
    ..WAN
};

/// UP has no end without a plateau or a loss. The samples of the application are below the bandwidth, so `max_bw` stays.
#[test]
fn a_probe_of_a_limited_application_has_no_end_and_forgets_no_bandwidth() {
    let seen = LIMITED_LATER.run();
    let last = seen.stays().pop().expect("a phase");
    assert_eq!(last.phase, Up);
    assert!(last.start_ms() < 8000.0, "{}", last.start_ms());
    for sample in seen.from(2000.0) {
        let max_bw = sample.get("max_bandwidth_bps");
        assert!((0.98..=1.01).contains(&(max_bw / WAN_BPS)), "{max_bw} at {}", sample.ms);
    }
}

/// From 15 s on, a third of the packets is lost, above 2 %. UP ends within two round trips of the loss. The draft's
/// pseudocode sets no bound in an application-limited probe (HandleInflightTooHigh).
#[test]
fn a_probe_of_a_limited_application_ends_on_loss() {
    let lossy = change(15_000.0, "loss = 0.33");
    let seen = Path { more: &lossy, ..LIMITED_LATER }.run();
    let end = seen.from(15_000.0).find(|sample| sample.phase() != Up).expect("an end");
    assert!((15_040.0..15_120.0).contains(&end.ms), "{}", end.ms);
    assert_eq!((end.phase() == Up, end.maybe("inflight_longterm_bytes")), (false, None));
}

/// PROBE_RTT every five seconds: half of the bandwidth-delay product for 200 ms and at most two round trips more. It
/// costs 2 % of the throughput, and the pace another 1 %.
#[test]
fn probe_rtt_halves_the_volume_in_flight_every_five_seconds() {
    let seen = Path { seconds: 31.0, ..WAN }.run();
    let probes: Vec<_> = seen.stays().into_iter().filter(|stay| stay.phase == ProbeRtt).collect();
    assert_eq!(probes.len(), 5);
    for probe in &probes {
        assert!((200.0..200.0 + 2.0 * 40.0).contains(&probe.ms()), "{}", probe.ms());
        assert!((0.45..0.55).contains(&(probe.last().segments("in_flight_bytes") / WAN_BDP)));
        assert_eq!(probe.next.expect("an end").phase(), CruiseOrRefill);
    }
    let starts: Vec<f64> = probes.iter().map(Stay::start_ms).collect();
    // The interval counts from the end of the last one.
    assert!(starts.windows(2).all(|pair| (5200.0..5300.0).contains(&(pair[1] - pair[0]))), "{starts:?}");
    let share = WAN.bps_between(5.0, 25.0) / WAN_BPS;
    assert!((0.95..0.99).contains(&share), "{share}");
}

/// The application writes 200 kB every 6 s, so that each write follows an idle period of more than 5 s.
#[test]
fn an_idle_period_takes_the_place_of_probe_rtt() {
    let workload = "size = \"1GB\"\nwrites = { first = \"2MB\", then = \"200KB\", every = \"6s\" }";
    let seen = Path { workload, seconds: 30.0, ..WAN }.run();
    assert!(!seen.phases().contains(&ProbeRtt), "{:?}", seen.phases());
    // After the idle period the pace is the bandwidth, less 1 %.
    let pace = seen.at(12_005.0).get("pace_bps") / 20e6;
    assert!((0.98..0.995).contains(&pace), "{pace}");
}

/// In a long STARTUP, PROBE_RTT returns to STARTUP.
#[test]
fn probe_rtt_in_startup_returns_to_startup() {
    let seen = Path { seconds: 7.0, ..LIMITED }.run();
    assert_eq!(seen.phases(), [Startup, ProbeRtt, Startup]);
    let probe = seen.first(ProbeRtt, 0.0);
    assert!((5000.0..5100.0).contains(&probe.start_ms()), "{}", probe.start_ms());
    assert!((200.0..300.0).contains(&probe.ms()), "{}", probe.ms());
}

/// A path of 100 Mb/s and 2 ms whose receiver releases its acknowledgments in bundles of 10 ms: 83 segments, while the
/// bandwidth-delay product is 17.
const BUNDLES: Path<'static> = Path {
    mbps: 100.0,
    rtt_ms: 2.0,
    queue: "500packets",
    more: "[transport]\nreceive_batch = 200\nreceive_batch_timeout = \"10ms\"\n",
    seconds: 4.0,
    ..WAN
};

/// STARTUP finds the bandwidth although 2 BDP are less than a bundle: the window exceeds 2 BDP by the aggregation.
#[test]
fn startup_finds_the_bandwidth_behind_aggregated_acknowledgments() {
    let seen = BUNDLES.run();
    let startup = seen.first(Startup, 0.0);
    let end = startup.last();
    let bdp = 100e6 * 0.002 / 8.0 / 1500.0;
    assert!(end.segments("cwnd_bytes") > 3.0 * bdp, "{}", end.segments("cwnd_bytes"));
    assert!((0.98..1.02).contains(&(end.get("max_bandwidth_bps") / (100e6 * PAYLOAD))));
    // The window doubles with each bundle: from 10 to 100 segments in four of them, then three rounds of plateau.
    assert!(startup.ms() < 10.0 * 12.0, "{}", startup.ms());
}

/// While cruising, `extra_acked` is one bundle, and the window is two bandwidth-delay products larger. The link is full
/// except in PROBE_RTT, which has 0.5 BDP and the bundle, and in probes.
#[test]
fn cruising_behind_aggregated_acknowledgments_fills_the_link() {
    let seen = BUNDLES.run();
    let bundle = 100e6 * 0.010 / 8.0 / 1500.0;
    let bdp = 100e6 * 0.002 / 8.0 / 1500.0;
    for sample in seen.from(1000.0).filter(|sample| sample.phase() == CruiseOrRefill) {
        let extra = sample.segments("extra_acked_bytes");
        assert!((0.95..1.1).contains(&(extra / bundle)), "{extra} at {}", sample.ms);
        let more = sample.segments("cwnd_bytes") - extra;
        assert!((2.0 * bdp - 1.0..2.0 * bdp + 3.0).contains(&more), "{more} at {}", sample.ms);
    }
    let share = BUNDLES.bps_between(1.0, 4.0) / (100e6 * PAYLOAD);
    assert!(share > 0.95, "{share}");
}

/// 1 Mb/s and 2 ms hold a sixth of a segment. The window is four segments at least: the rest is for the acknowledgment
/// that reveals aggregation, and two more in UP.
#[test]
fn a_path_of_less_than_a_segment_is_full_with_a_window_of_four() {
    let path = Path { mbps: 1.0, rtt_ms: 2.0, queue: "100packets", seconds: 10.0, ..WAN };
    let seen = path.run();
    for sample in seen.from(1000.0) {
        let (cwnd, pace) = (sample.segments("cwnd_bytes"), sample.get("pace_bps"));
        assert!((4.0..=8.0).contains(&cwnd), "{cwnd} at {}", sample.ms);
        let gain = sample.get("pacing_gain");
        assert!((0.97..1.01).contains(&(pace / gain / 1e6)), "{pace} at {}", sample.ms);
    }
    let share = seen.bps() / (1e6 * PAYLOAD);
    assert!(share > 0.95, "{share}");
}

/// The bandwidth rises from 10 to 100 Mb/s. The next probe is at most 3 s later. It raises the rate by 1.25 * 0.99 of a
/// sample, which covers one round trip and arrives after another: by 23.75 % in 1.5 round trips. The factor of nine takes
/// 15.5 round trips, after 1.5 for the first sample. That holds with a bound of the volume in flight, too: its growth
/// doubles in each round trip, so that 34 and 2^n segments exceed 333 segments after nine.
#[test]
fn ten_times_the_bandwidth_is_found_in_the_next_probe() {
    let more = change(10_000.0, "rate = \"100Mbps\"");
    for (queue, has_bound) in [("10bdp", false), ("20KB", true)] {
        let path = Path { mbps: 10.0, queue, more: &more, seconds: 15.0, ..WAN };
        let seen = path.run();
        assert_eq!(seen.at(9_999.0).maybe("inflight_longterm_bytes").is_some(), has_bound);
        let found = seen.from(10_000.0).find(|sample| sample.get("max_bandwidth_bps") > 0.9 * 100e6 * PAYLOAD);
        let found = found.unwrap_or_else(|| panic!("{queue}: never found"));
        let up = seen.from(10_000.0).find(|sample| sample.phase() == Up).expect("a probe");
        assert!(up.ms < 13_100.0, "{queue}: {}", up.ms);
        assert!(found.ms - up.ms < 18.0 * 40.0, "{queue}: {} {}", up.ms, found.ms);
    }
}

/// The bandwidth falls from 100 to 10 Mb/s, with a queue of 50 kB, so that a round trip takes up to 80 ms. Losses lower
/// `bw_shortterm` to 0.7 per round trip, in seven of them to less than a tenth; each loss round may take two round trips.
/// The filter forgets the old bandwidth after two probes. Each follows a wait of up to 3 s and takes up to six round
/// trips. PROBE_RTT may come once in between, for 200 ms and two round trips, and the wait begins anew.
#[test]
fn a_tenth_of_the_bandwidth_lowers_the_short_term_bound_and_then_the_maximum() {
    let less = change(6000.0, "rate = \"10Mbps\"");
    let path = Path { mbps: 100.0, queue: "50KB", more: &less, seconds: 20.0, ..WAN };
    let seen = path.run();
    let bounded = seen.from(6000.0).find(|sample| sample.maybe("bw_shortterm_bps").is_some_and(|bps| bps < 12e6));
    let bounded = bounded.expect("a bound").ms;
    assert!(bounded < 6000.0 + 2.0 * 7.0 * 80.0, "{bounded}");
    let forgotten = seen.from(6000.0).find(|sample| sample.get("max_bandwidth_bps") < 1.05 * 10e6 * PAYLOAD);
    let forgotten = forgotten.expect("the old bandwidth is forgotten").ms;
    assert!(forgotten < 6000.0 + 2.0 * (3000.0 + 6.0 * 80.0) + 3000.0 + 200.0 + 2.0 * 80.0, "{forgotten}");
}

/// A policer of 10 Mb/s with a bucket of 100 kB on a link of 100 Mb/s. In UP the rate rises until the bucket is empty.
/// Until the loss is noticed and DOWN has passed, up to two bandwidth-delay products are lost. The next probe is at least
/// 33 round trips later, one for each segment of that product, so at most 2 of 33 segments are lost. BBRv1 does not react
/// to the losses.
#[test]
fn a_policer_is_respected_between_probes() {
    let more = "[[link]]\nbetween = [\"west\", \"east\"]\neffects_from = \"west\"\n\
                policer = { rate = \"10Mbps\", burst = \"100kB\" }\n";
    let path = Path { mbps: 100.0, queue: "10MB", more, seconds: 60.0, sample_us: 10_000, ..WAN };
    let seen = path.run();
    let before = Path { seconds: 10.0, ..path }.run();
    let lost = seen.records.flows.lost_packets[0] - before.records.flows.lost_packets[0];
    let passed = (seen.records.flows.delivered_bytes[0] - before.records.flows.delivered_bytes[0]) as f64 / MSS;
    assert!((lost as f64) < 2.0 / 33.0 * passed, "{lost} of {passed}");
    assert!(passed * MSS * 8.0 / 50.0 > 0.9 * 10e6 * PAYLOAD, "{passed}");
    // A probe leaves a bandwidth of up to 1.7 times the policer's. Two loss rounds, of up to two round trips each, lower
    // it. The bound is then close to the policer's rate for the rest of the 33 round trips.
    let is_bound = |sample: &&Sample| sample.phase() == CruiseOrRefill && sample.maybe("bw_shortterm_bps").is_some();
    let bounds: Vec<f64> = seen.from(10_000.0).filter(is_bound).map(|sample| sample.get("bw_shortterm_bps")).collect();
    let near = bounds.iter().filter(|bps| **bps < 1.1 * 10e6 * PAYLOAD).count();
    assert!(!bounds.is_empty() && near as f64 > (1.0 - 4.0 / 33.0) * bounds.len() as f64, "{near} of {}", bounds.len());
    let first = Path { controller: "bbr", sample_us: 60_000_000, ..path };
    let records = run(&first.text(1));
    let sent: u64 = records.flows.sent_packets.iter().map(|class| class[0]).sum();
    let share = records.flows.lost_packets[0] as f64 / sent as f64;
    assert!(share > 1.5 * seen.loss(), "{share} {}", seen.loss());
}

/// Reordering makes TCP retransmit segments that arrived. With an undo, the bounds that these losses lowered return.
#[test]
fn a_spurious_recovery_costs_nothing() {
    let reorder = |undo: bool| {
        format!(
            "[transport]\nundo_spurious = {undo}\n[[link]]\nbetween = [\"west\", \"east\"]\neffects_from = \"west\"\n\
             reorder = 0.001\nreorder_distance = 6\n"
        )
    };
    let with = Path { more: &reorder(true), seconds: 30.0, ..WAN }.run();
    let without = Path { more: &reorder(false), seconds: 30.0, ..WAN }.run();
    // Some 50,000 segments, of which 50 are overtaken.
    assert!(with.retransmissions() > 20, "{}", with.retransmissions());
    let bound_share = |seen: &Seen| {
        let bound = seen.samples.iter().filter(|sample| sample.maybe("bw_shortterm_bps").is_some()).count();
        bound as f64 / seen.samples.len() as f64
    };
    assert!(bound_share(&with) < 0.02, "{}", bound_share(&with));
    assert!(bound_share(&without) > 0.3, "{}", bound_share(&without));
    assert!(with.bps() / WAN_BPS > 0.94, "{}", with.bps());
}

/// All packets are late by 500 ms from the middle of UP on, for 400 ms, so that the timer fires although nothing is
/// lost. The undo restores the window and starts the probe again with REFILL.
#[test]
fn a_spurious_timeout_returns_to_the_probe() {
    let up = WAN.run().first(Up, 0.0).start_ms() + 60.0;
    let late = change(up, "delay = \"500ms\"") + &change(up + 400.0, "delay = \"18ms\"");
    let more = format!("[transport]\nundo_spurious = true\n{late}");
    let seen = Path { more: &more, seconds: 6.0, ..WAN }.run();
    assert_eq!(seen.records.flows.timeouts, [1]);
    // The timeout ends UP; its undo leads to REFILL, of one round trip, and to UP.
    let after: Vec<_> = seen.stays().into_iter().filter(|stay| stay.start_ms() >= up).map(|stay| stay.phase).collect();
    assert_eq!(after[..3], [Down, CruiseOrRefill, Up], "{after:?}");
    let undone = seen.first(CruiseOrRefill, up);
    assert!(undone.ms() < 3.0 * 40.0, "{}", undone.ms());
    assert_eq!(undone.samples[0].maybe("inflight_longterm_bytes"), None);
    assert_eq!(undone.samples[0].maybe("bw_shortterm_bps"), None);
    assert!(undone.samples[0].segments("cwnd_bytes") > WAN_BDP, "{}", undone.samples[0].segments("cwnd_bytes"));
}

/// A queue of a fifth of the bandwidth-delay product. Probes overflow it, which sets the bound to the volume in flight
/// at the loss, no less than 0.7 of the target, and ends the probe at once.
#[test]
fn a_loss_in_a_probe_lowers_the_bound_and_ends_the_probe() {
    let seen = Path { queue: "20KB", seconds: 30.0, ..WAN }.run();
    let mut lowered = 0;
    for up in seen.stays().iter().filter(|stay| stay.phase == Up && stay.start_ms() > 2000.0) {
        let (Some(end), Some(before)) = (up.next, up.last().maybe("inflight_longterm_bytes")) else { continue };
        let after = end.get("inflight_longterm_bytes");
        assert_eq!(end.phase(), Down);
        assert!(after >= 0.7 * (WAN_BDP - 1.0) * MSS, "{after}");
        // The path and its queue hold 80 segments.
        assert!(after / MSS <= 1.25 * 80.0, "{after}");
        lowered += u32::from(after < before);
    }
    assert!(lowered >= 3, "{lowered}");
    // Less than 2 % are lost, and the link stays full.
    assert!(seen.loss() < 0.02, "{}", seen.loss());
    assert!(seen.bps() / WAN_BPS > 0.9, "{}", seen.bps());
}

/// A flow alone needs no buffer beyond a few segments, and a deep one adds no delay: the mean queue of the probes and of
/// the first second stays below a fifth of a bandwidth-delay product.
#[test]
fn deep_buffers_stay_nearly_empty() {
    let seen = Path { queue: "20bdp", seconds: 30.0, ..WAN }.run();
    let srtt: Vec<f64> = seen.from(1000.0).map(|sample| sample.get("srtt_s")).collect();
    let mean = srtt.iter().sum::<f64>() / srtt.len() as f64;
    assert!((0.040..0.048).contains(&mean), "{mean}");
    assert_eq!(seen.retransmissions(), 0);
}

/// Four flows in a queue of one bandwidth-delay product share the link, and lose less than 2 %.
#[test]
fn four_flows_share_the_link() {
    let path = Path { queue: "1bdp", seconds: 20.0, sample_us: 1_000_000, ..WAN };
    let [before, after] = [20.0, 80.0].map(|seconds| run(&Path { seconds, ..path }.text(4)).flows);
    let delivered = |flow: usize| (after.delivered_bytes[flow] - before.delivered_bytes[flow]) as f64 * 8.0 / 60.0;
    let bps: Vec<f64> = (0..4).map(delivered).collect();
    let sum: f64 = bps.iter().sum();
    let jain = sum * sum / (4.0 * bps.iter().map(|bps| bps * bps).sum::<f64>());
    assert!(sum / WAN_BPS > 0.95, "{bps:?}");
    assert!(jain > 0.9, "{bps:?}");
    let sent: u64 = after.sent_packets.iter().flatten().sum();
    assert!(after.lost_packets.iter().sum::<u64>() as f64 / (sent as f64) < 0.02);
}

/// Random loss below the threshold of 2 % costs little; above it, every probe ends at once.
#[test]
fn random_loss_is_borne_below_two_per_cent_and_not_above() {
    let share = |loss: f64| {
        let more = format!("[[link]]\nbetween = [\"west\", \"east\"]\nloss = {loss}\n");
        Path { more: &more, seconds: 40.0, sample_us: 1_000_000, ..WAN }.bps_between(5.0, 40.0) / WAN_BPS
    };
    let shares = [0.001, 0.005, 0.05].map(share);
    assert!(shares[0] > 0.85 && shares[1] > 0.7 && shares[2] < 0.4, "{shares:?}");
}

/// The delay doubles from 40 to 80 ms. The filter of 10 s forgets the old minimum, which was measured in the last
/// PROBE_RTT or up to 5.3 s earlier, and the throughput recovers. When the delay falls back, the next segments show it,
/// with the queue that it leaves: half of what was in flight. The margin of the pace, 1 %, drains it in 100 round trips.
#[test]
fn the_propagation_delay_is_followed() {
    let more = change(10_000.0, "delay = \"38ms\"") + &change(40_000.0, "delay = \"18ms\"");
    let path = Path { more: &more, seconds: 45.0, sample_us: 5000, ..WAN };
    let seen = path.run();
    let min_rtt = |sample: &Sample| sample.get("min_rtt_s");
    let found = seen.from(10_000.0).find(|sample| min_rtt(sample) > 0.079).expect("the new delay");
    assert!((4_700.0..10_100.0).contains(&(found.ms - 10_000.0)), "{}", found.ms);
    let share = path.bps_between(21.0, 40.0) / WAN_BPS;
    assert!(share > 0.95, "{share}");
    assert!(min_rtt(seen.at(40_100.0)) < 0.062, "{}", min_rtt(seen.at(40_100.0)));
    assert!(min_rtt(seen.at(44_100.0)) < 0.041, "{}", min_rtt(seen.at(44_100.0)));
}
