//! Cross traffic from end to end: it takes its rate, and does not react to losses.

use sparelane_scenario::{Results, Scenario, Source, cross_traffic_columns};
use sparelane_sim::Records;

const NETWORK: &str = r#"duration = "2s"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck_rate = "100Mbps"
bottleneck_delay = "1ms"
[queue]
limit = "50packets"
[scheme.tcp]
controller = "cubic"
[workload]
kind = "bulk"
pairs = [["left0", "right0"]]
"#;

fn parse(more: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::parse(&format!("{NETWORK}{more}"), &Source::at("t.toml".as_ref()), &overrides);
    scenario.unwrap_or_else(|error| panic!("{error}"))
}

fn run(more: &str, overrides: &[&str]) -> Records {
    parse(more, overrides).simulate().expect("a run").run().expect("lawful physics")
}

const CONSTANT: &str = r#"
[[cross_traffic]]
kind = "constant"
from = ["left1"]
to = ["right1"]
rate = "60Mbps"
"#;

/// 60 Mb/s for 2 s are 10,000 packets. The last ones are in flight at the end: 3.1 ms of delays, and the queue.
#[test]
fn a_constant_rate_arrives_and_leaves_the_rest_to_others() {
    let alone = run("", &[]);
    let records = run(CONSTANT, &[]);
    let cross = &records.cross_traffic;
    assert!(cross.offered_packets[0].abs_diff(10_000) <= 1, "{cross:?}");
    let gone = cross.delivered_packets[0] + cross.dropped_packets[0];
    assert!(gone <= cross.offered_packets[0] && gone + 70 > cross.offered_packets[0], "{cross:?}");
    let [alone, beside] = [&alone, &records].map(|records| records.flows.delivered_bytes[0] as f64 * 8.0 / 2.0);
    assert!(alone > 85e6 && (28e6..40e6).contains(&beside), "{alone} b/s alone, {beside} b/s beside");
    assert_eq!((records.totals.flows, records.flows.id.len()), (1, 1));
}

/// The queue drops packets beyond the capacity of the cable, and counts them like any others. No source reduces its
/// rate.
#[test]
fn packets_that_do_not_fit_are_dropped_and_no_source_slows_down() {
    let records = run(CONSTANT, &["cross_traffic.rate=200Mbps", "workload.size=1packets"]);
    let cross = &records.cross_traffic;
    let share = cross.dropped_packets[0] as f64 / cross.offered_packets[0] as f64;
    assert!((share - 0.5).abs() < 0.01, "{share}");
    let dropped: u64 = records.links.dropped_packets.iter().flatten().sum();
    assert_eq!(dropped, cross.dropped_packets[0] + records.flows.lost_packets[0]);
}

#[test]
fn a_source_sends_from_its_start_to_its_stop_in_its_class() {
    let times =
        ["cross_traffic.start=500ms", "cross_traffic.stop=1s", "cross_traffic.class=2", "cross_traffic.burst=5"];
    let records = run(CONSTANT, &times);
    assert!(records.cross_traffic.offered_packets[0].abs_diff(2_500) <= 5);
    let arrived: u64 = records.links.arrived_packets[2].iter().sum();
    assert!((7_000..7_501).contains(&arrived), "{arrived} arrivals in class 2 at three links");
}

#[test]
fn columns_have_packets_and_bytes_of_every_source() {
    let two =
        CONSTANT.replace("[\"left1\"]", "[\"left1\", \"right0\"]").replace("[\"right1\"]", "[\"right1\", \"left1\"]");
    let scenario = parse(&two, &["cross_traffic.packet=500B"]);
    let results = Results::new(&scenario, scenario.simulate().expect("a run").run().expect("lawful physics"));
    let names: Vec<_> = cross_traffic_columns(&results).into_iter().map(|(name, _)| name).collect();
    let expected = ["from", "to", "kind", "offered_packets", "offered_bytes", "delivered_packets", "delivered_bytes"];
    assert_eq!(names[..7], expected);
    assert_eq!(results.records.cross_traffic.packet_bytes, [500, 500]);
    // Each source has its own random numbers.
    assert_ne!(results.records.cross_traffic.from[0], results.records.cross_traffic.from[1]);
    assert!(results.records.cross_traffic.offered_packets.iter().all(|packets| packets.abs_diff(30_000) <= 1));
}

/// The bytes between two samples: the cable is full, and the sum of all samples is everything that it carried.
#[test]
fn samples_of_a_cable_add_up_to_the_sent_bytes() {
    let sample = "[sample]\ninterval = \"1ms\"\nlinks = [[\"west\", \"east\"]]\n";
    let records = run(&format!("{CONSTANT}{sample}"), &["cross_traffic.rate=200Mbps"]);
    let values = &records.series.value;
    assert_eq!((values.len(), values[0]), (2001, 0.0));
    assert!(records.series.quantity.iter().all(|name| *name == "sent_bytes"));
    let full = values[100..].iter().filter(|&&bytes| (bytes - 12_500.0).abs() <= 1500.0).count();
    assert_eq!(full, values.len() - 100);
    let west_east = (0..records.links.from.len()).find(|&row| records.links.rate_bps[row] == 100_000_000);
    let sent = records.links.sent_bytes[west_east.expect("the bottleneck")];
    assert_eq!(values.iter().sum::<f64>(), sent as f64);
}

#[test]
fn without_cross_traffic_nothing_changes_and_with_it_the_seed_decides() {
    let digest = |text: &str, overrides: &[&str]| sparelane_scenario::digest(&run(text, overrides));
    let aggregate = r#"
[[cross_traffic]]
kind = "aggregate"
from = ["left1"]
to = ["right1"]
rate = "60Mbps"
peak = "90Mbps"
smallest = "4kB"
largest = "1MB"
bucket = { rate = "80Mbps", depth = "20kB" }
"#;
    assert_eq!(digest(aggregate, &[]), digest(aggregate, &[]));
    assert_ne!(digest(aggregate, &[]), digest(aggregate, &["seed=2"]));
    let late = ["cross_traffic.start=2s"];
    let (mut with, without) = (run(aggregate, &late), run("", &[]));
    assert_eq!(with.cross_traffic.offered_packets, [0]);
    with.cross_traffic = without.cross_traffic.clone();
    with.totals.events = without.totals.events;
    assert_eq!(with, without);
}
