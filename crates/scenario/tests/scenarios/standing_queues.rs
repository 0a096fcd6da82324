//! Controllers from end to end on a small dumbbell: each fills the link, and keeps the queue that its design aims at.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::Path;

const MS: u64 = 1_000_000_000;

/// One bottleneck of 100 Mb/s and one flow per pair of hosts, with a base round-trip time of 10 ms: 83 packets of 1500 bytes.
fn run(pairs: u32, seconds: u32, settings: &str) -> Records {
    run_with(pairs, seconds, settings, "")
}

/// The same, with further keys of the workload.
fn run_with(pairs: u32, seconds: u32, settings: &str, workload: &str) -> Records {
    let text = format!(
        "duration = \"{seconds}s\"\n[topology]\nkind = \"dumbbell\"\npairs = {pairs}\naccess_rate = \"1Gbps\"\n\
         access_delay = \"1ms\"\nbottleneck_rate = \"100Mbps\"\nbottleneck_delay = \"3ms\"\n{settings}\n[workload]\n\
         kind = \"bulk\"\nscheme = \"it\"\nsize = \"unlimited\"\n{workload}[sample]\ninterval = \"1ms\"\n\
         flows = [0, 1]\nqueues = [[\"west\", \"east\"]]\n"
    );
    let scenario =
        Scenario::parse(&text, &Source::at(Path::new("x.toml")), &[]).unwrap_or_else(|error| panic!("{error}"));
    scenario.simulate().expect("a run").run().expect("lawful physics")
}

/// The samples of `quantity` at one probe, from `from_ms` on: the flows 0 and 1, then the bottleneck's queue.
fn series(records: &Records, probe: u32, quantity: &str, from_ms: u64) -> Vec<f64> {
    let series = &records.series;
    let of = |&row: &usize| {
        series.probe[row] == probe && series.quantity[row] == quantity && series.time_ps[row] >= from_ms * MS
    };
    let values: Vec<_> = (0..series.time_ps.len()).filter(of).map(|row| series.value[row]).collect();
    assert!(values.len() > 100, "{} samples", values.len());
    values
}

/// The queue of the bottleneck, in packets of 1500 bytes.
fn queue(records: &Records, from_ms: u64) -> Vec<f64> {
    series(records, 2, "backlog_bytes", from_ms).iter().map(|bytes| bytes / 1500.0).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn least_and_most(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, 0.0), |(least, most), &value| (value.min(least), value.max(most)))
}

/// The goodput as a share of the bottleneck's capacity over the whole run.
fn utilisation(records: &Records, seconds: u32) -> f64 {
    let delivered: u64 = records.flows.delivered_bytes.iter().sum();
    delivered as f64 / (100e6 / 8.0 * f64::from(seconds) * 1460.0 / 1500.0)
}

/// SIGCOMM 2010 section 3.3: with N flows in step, the queue swings between K + N packets, 22, and sqrt(N (BDP + K) /
/// 2) below that, 10.
#[test]
fn dctcp_keeps_the_queue_just_below_the_threshold_of_marking() {
    for delayed_ack in [false, true] {
        let records = run(
            2,
            6,
            &format!(
                "[queue]\nmark_at = \"30kB\"\nlimit = \"150kB\"\n[transport]\necn = \"dctcp\"\n\
                 delayed_ack = {delayed_ack}\n[scheme.it]\ncontroller = \"dctcp\""
            ),
        );
        let held = queue(&records, 2_000);
        let (least, most) = least_and_most(&held);
        assert!(least >= 11.0 && most <= 23.0, "from {least} to {most} packets");
        assert!((15.0..20.0).contains(&mean(&held)), "{} packets on average", mean(&held));
        assert!(utilisation(&records, 6) > 0.98, "{}", utilisation(&records, 6));
        assert_eq!(records.flows.retransmissions, [0, 0]);
    }
}

/// SIGCOMM 2010 Fig. 1: about 20 packets with DCTCP; TCP fills the whole buffer of 700 kB (467 packets).
#[test]
fn the_shipped_scenario_shows_a_short_queue_of_dctcp_and_a_long_one_of_tcp() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/dctcp-two-flows.toml");
    let held = |overrides: &[String]| {
        let scenario = Scenario::load(&path, overrides).unwrap_or_else(|error| panic!("{error}"));
        queue(&scenario.simulate().expect("a run").run().expect("lawful physics"), 500)
    };
    let (dctcp, tcp) = (held(&["duration=1s".to_owned()]), held(&["workload.scheme=tcp".to_owned()]));
    let (least, most) = least_and_most(&dctcp);
    assert!(least >= 15.0 && most <= 23.0, "from {least} to {most} packets");
    assert!(mean(&tcp) > 300.0 && least_and_most(&tcp).1 > 440.0, "{} packets on average", mean(&tcp));
}

/// The same marks, echoed until the window is halved, leave the queue empty at times.
#[test]
fn newreno_empties_the_queue_that_dctcp_keeps() {
    let text = "[queue]\nmark_at = \"30kB\"\nlimit = \"150kB\"\n[transport]\necn = \"classic\"\n\
                [scheme.it]\ncontroller = \"newreno\"";
    let (least, most) = least_and_most(&queue(&run(2, 6, text), 2_000));
    assert!(least == 0.0 && most <= 23.0, "from {least} to {most} packets");
}

/// This also holds for several flows, because BaseRTT is measured before there is a queue.
#[test]
fn vegas_keeps_two_to_four_packets_of_each_flow_in_the_queue() {
    for pairs in [1, 3] {
        let records = run(pairs, 6, "[scheme.it]\ncontroller = \"vegas\"");
        let held = queue(&records, 3_000);
        let (least, most) = least_and_most(&held);
        let flows = f64::from(pairs);
        assert!(least >= 2.0 * flows && most <= 4.0 * flows, "{pairs} flows: from {least} to {most} packets");
        assert!(utilisation(&records, 6) > 0.98, "{pairs} flows: {}", utilisation(&records, 6));
    }
}

/// Each flow keeps alpha packets in the queue, alone or with others, whatever its window.
#[test]
fn fast_keeps_alpha_packets_of_each_flow_in_the_queue() {
    for pairs in [1, 3] {
        let settings = "[queue]\nlimit = \"400packets\"\n[scheme.it]\ncontroller = \"fast\"\nalpha = 20.0";
        let records = run(pairs, 6, settings);
        let held = queue(&records, 3_000);
        let (least, most) = least_and_most(&held);
        let aim = 20.0 * f64::from(pairs);
        assert!(least >= aim - 2.0 && most <= aim + 2.0, "{pairs} flows: from {least} to {most} packets");
        assert!((mean(&held) - aim).abs() < 0.5, "{pairs} flows: {} packets on average", mean(&held));
        assert!(utilisation(&records, 6) > 0.98, "{pairs} flows: {}", utilisation(&records, 6));
    }
}

fn ledbat(name: &str, target_ms: u64) -> String {
    format!("[queue]\nlimit = \"1000packets\"\n[scheme.it]\ncontroller = \"{name}\"\ntarget = \"{target_ms}ms\"")
}

/// The queue as a share of the target, which is 8.33 packets of 1500 bytes for each millisecond at 100 Mb/s.
fn shares_of_target(records: &Records, from_ms: u64, target_ms: u64) -> Vec<f64> {
    queue(records, from_ms).iter().map(|packets| packets * 0.12 / target_ms as f64).collect()
}

/// Without slow start, a window of 167 segments or more takes that many round trips, up to 30 ms each.
#[test]
fn ledbat_holds_the_queue_at_its_target() {
    for target_ms in [10, 20] {
        let records = run(1, 15, &ledbat("ledbat", target_ms));
        let (least, most) = least_and_most(&shares_of_target(&records, 10_000, target_ms));
        assert!(least >= 0.9 && most <= 1.02, "{target_ms} ms: from {least} to {most} of the target");
        assert!(utilisation(&records, 15) > 0.95, "{}", utilisation(&records, 15));
    }
}

/// The queue is at the target except during slowdowns, when it is empty.
#[test]
fn ledbat_plus_plus_is_at_its_target_but_for_the_slowdowns() {
    for target_ms in [10, 20] {
        let records = run(1, 15, &ledbat("ledbat-plus-plus", target_ms));
        let held = shares_of_target(&records, 5_000, target_ms);
        let at_target = held.iter().filter(|share| (0.9..1.1).contains(*share)).count() as f64 / held.len() as f64;
        let empty = held.iter().filter(|share| **share < 0.01).count() as f64 / held.len() as f64;
        assert!(at_target > 0.85, "{target_ms} ms: {at_target} of the time");
        assert!((0.02..0.1).contains(&empty), "{target_ms} ms: empty {empty} of the time");
        assert!(utilisation(&records, 15) > 0.9, "{}", utilisation(&records, 15));
    }
}

/// With RFC 6817, a late flow attributes the queue of the first flow to the path and displaces it. Slowdowns let both
/// measure the empty path (section 4.4 of the draft of LEDBAT++).
#[test]
fn slowdowns_give_the_first_flow_a_share_next_to_a_later_one() {
    let first_to_second = |name| {
        let records = run_with(2, 60, &ledbat(name, 20), "gap = \"10s\"\n");
        let window = |flow| mean(&series(&records, flow, "cwnd_bytes", 40_000));
        window(0) / window(1)
    };
    let (ledbat, plus_plus) = (first_to_second("ledbat"), first_to_second("ledbat-plus-plus"));
    assert!(ledbat < 0.05, "{ledbat}");
    assert!((0.8..1.25).contains(&plus_plus), "{plus_plus}");
}
