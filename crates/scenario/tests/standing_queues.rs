//! Controllers end to end on a small dumbbell: each fills the link, and keeps the queue that its law aims at.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::Path;

const MS: u64 = 1_000_000_000;

/// One bottleneck of 100 Mb/s and one flow per pair of hosts, with a base round-trip time of 10 ms: 83 packets of 1500 bytes.
fn run(pairs: u32, seconds: u32, settings: &str) -> Records {
    let text = format!(
        "duration = \"{seconds}s\"\n[topology]\nkind = \"dumbbell\"\npairs = {pairs}\naccess_rate = \"1Gbps\"\n\
         access_delay = \"1ms\"\nbottleneck_rate = \"100Mbps\"\nbottleneck_delay = \"3ms\"\n{settings}\n[workload]\n\
         kind = \"bulk\"\nscheme = \"it\"\nsize = \"unlimited\"\n[sample]\ninterval = \"1ms\"\n\
         queues = [[\"west\", \"east\"]]\nflows = [0]\n"
    );
    let scenario =
        Scenario::parse(&text, &Source::at(Path::new("x.toml")), &[]).unwrap_or_else(|error| panic!("{error}"));
    scenario.simulate().expect("a run").run().expect("lawful physics")
}

/// What the bottleneck's queue holds, in packets of 1500 bytes, at each sample from `from_ms` on.
fn queue(records: &Records, from_ms: u64) -> Vec<f64> {
    let series = &records.series;
    let of = |&row: &usize| series.quantity[row] == "backlog_bytes" && series.time_ps[row] >= from_ms * MS;
    let held: Vec<_> = (0..series.time_ps.len()).filter(of).map(|row| series.value[row] / 1500.0).collect();
    assert!(held.len() > 100, "{} samples", held.len());
    held
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn least_and_most(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, 0.0), |(least, most), &value| (value.min(least), value.max(most)))
}

/// The payload that arrived, as a share of what the bottleneck could carry in the whole run.
fn utilisation(records: &Records, seconds: u32) -> f64 {
    let delivered: u64 = records.flows.delivered_bytes.iter().sum();
    delivered as f64 / (100e6 / 8.0 * f64::from(seconds) * 1460.0 / 1500.0)
}

/// SIGCOMM 2010 section 3.3: with N flows the queue swings between K + N packets, 22, and sqrt(N (BDP + K) / 2) below that,
/// 10. That is what flows in step do.
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

/// The same marks, echoed until the window is cut and answered by halving it, leave the queue empty at times.
#[test]
fn newreno_empties_the_queue_that_dctcp_keeps() {
    let text = "[queue]\nmark_at = \"30kB\"\nlimit = \"150kB\"\n[transport]\necn = \"classic\"\n\
                [scheme.it]\ncontroller = \"newreno\"";
    let (least, most) = least_and_most(&queue(&run(2, 6, text), 2_000));
    assert!(least == 0.0 && most <= 23.0, "from {least} to {most} packets");
}
