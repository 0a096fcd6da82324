//! Priority classes end to end: who waits for whom, by scheme and by queue.

use sparelane_core::Rate;
use sparelane_scenario::{Results, Scenario, Source, flow_columns};
use sparelane_sim::{Records, Simulation};
use std::path::PathBuf;

/// A bottleneck of 10 Mb/s and 20 ms that a class-1 flow keeps full, and a short flow that starts later.
const CRITICAL: &str = r#"
duration = "5s"
topology = { kind = "dumbbell", pairs = 2, bottleneck_rate = "10Mbps", bottleneck_delay = "20ms" }
queue = { limit = "100KB" }
[scheme.bulk]
controller = "newreno"
class = 1
[scheme.critical]
controller = "newreno"
class = 0
[[workload]]
kind = "bulk"
scheme = "bulk"
pairs = [["left0", "right0"]]
[[workload]]
kind = "bulk"
scheme = "critical"
pairs = [["left1", "right1"]]
size = "100KB"
start = "2s"
"#;

fn scenario(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    let source = Source { file: "x.toml".to_owned(), folder: PathBuf::from(".") };
    Scenario::parse(text, &source, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str, overrides: &[&str]) -> Records {
    let run = scenario(text, overrides).build().expect("a run");
    Simulation::new(run).expect("a simulation").run().expect("lawful physics")
}

fn completion_ps(records: &Records, flow: usize) -> u64 {
    assert_ne!(records.flows.finish_ps[flow], u64::MAX, "flow {flow} did not finish");
    records.flows.finish_ps[flow] - records.flows.start_ps[flow]
}

#[test]
fn a_flow_of_a_higher_class_sees_no_queue_of_a_lower_one() {
    let beside = completion_ps(&run(CRITICAL, &[]), 1);
    let alone = completion_ps(&run(CRITICAL, &["workload.0.start=4.9s"]), 0);
    // At each hop, a packet may have to wait for the one in transmission; the flow takes a few round trips.
    let one_packet = Rate::from_mbps(10).time_for(1500).as_ps();
    assert!(alone <= beside && beside < alone + 20 * one_packet, "alone {alone}, beside {beside}");
    let equal = completion_ps(&run(CRITICAL, &["scheme.critical.class=1"]), 1);
    assert!(equal > beside * 3 / 2, "as equals {equal}, above {beside}");
}

#[test]
fn packets_are_counted_by_the_class_on_the_wire() {
    let scenario =
        scenario(CRITICAL, &["scheme.bulk.class=4", "scheme.critical.class=2", "scheme.critical.controller=rc3"]);
    let results = Results::new(&scenario, scenario.simulate().expect("a run").run().expect("lawful physics"));
    let names: Vec<_> = flow_columns(&results).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"sent_packets_4".to_owned()), "{names:?}");
    let sent = |flow: usize| results.records.flows.sent_packets.each_ref().map(|column| column[flow] > 0);
    assert_eq!(sent(0), [false, false, false, false, true, false, false, false]);
    assert_eq!(sent(1), [false, false, true, true, true, false, false, false]);
    let links = &results.records.links;
    assert!(
        links.arrived_packets[0].iter().all(|&count| count == 0),
        "handshakes and acknowledgments have a class too"
    );
}

#[test]
fn equal_classes_compete_whatever_their_number() {
    let times = |class: &str| {
        let records =
            run(CRITICAL, &[&format!("scheme.bulk.class={class}"), &format!("scheme.critical.class={class}")]);
        (records.flows.finish_ps.clone(), records.flows.delivered_bytes.clone())
    };
    assert_eq!(times("1"), times("6"));
}
