//! Noisy hosts from end to end, configured by scenarios.

use sparelane_scenario::Scenario;
use sparelane_sim::Records;
use std::path::Path;

/// The shipped scenario, with changes.
fn run(overrides: &[&str]) -> Records {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/noisy-hosts.toml");
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::load(&path, &overrides).unwrap_or_else(|error| panic!("{error}"));
    scenario.simulate().expect("a run").run().expect("lawful physics")
}

/// The mean wait of packets at the bottleneck of 1 Gb/s in the second half, microseconds.
fn queue_us(records: &Records) -> f64 {
    let series = &records.series;
    let of = |&row: &usize| series.quantity[row] == "backlog_bytes" && series.time_ps[row] >= 1_000_000_000_000;
    let bytes: Vec<_> = (0..series.time_ps.len()).filter(of).map(|row| series.value[row]).collect();
    assert!(bytes.len() > 900, "{} samples", bytes.len());
    bytes.iter().sum::<f64>() / bytes.len() as f64 * 8.0 / 1e3
}

/// A tick of 1 ms is five times LEDBAT's delay target, and a packet that crosses a tick seems to have waited for it.
#[test]
fn a_coarse_clock_shows_queues_that_are_not_there() {
    let [fine, coarse] = ["1us", "1ms"].map(|clock| run(&[&format!("host_at.0.timestamp_clock={clock}")]));
    let [fine_us, coarse_us] = [&fine, &coarse].map(queue_us);
    assert!((150.0..230.0).contains(&fine_us), "{fine_us} us with a fine clock");
    assert!(coarse_us < 20.0, "{coarse_us} us with a coarse clock");
    let [fine, coarse] = [fine, coarse].map(|records| records.flows.delivered_bytes[0] as f64 / 250e6);
    assert!(fine > 0.85 && coarse < 0.5, "{fine} and {coarse} of the bottleneck");
}

#[test]
fn the_noise_of_other_hosts_changes_nothing() {
    let settings = ["duration=300ms", "topology.pairs=2", "workload.flows=1"];
    let with = |more: &[&str]| run(&[&settings, more].concat());
    let (own, others, none) = (with(&[]), with(&["host_at.0.hosts=['left1', 'right1']"]), with(&["host_at=[]"]));
    assert_eq!(others, none);
    assert_ne!(own.flows, none.flows);
}

/// More than a gigabit of small packets: the processor limits the throughput.
#[test]
fn what_sending_costs_bounds_packets_per_second() {
    let records = run(&["duration=500ms", "host_at.0.send_cost=40us"]);
    let sent = records.flows.sent_packets[0][0];
    assert!(sent <= 12_500 && sent > 11_000, "{sent} packets in half a second");
    assert_eq!(records.flows.lost_packets, [0]);
}
