//! Slow-start thresholds that flows leave to later flows between the same hosts (`transport.cached_ssthresh`).

use sparelane_scenario::{Scenario, Source};
use std::path::PathBuf;

/// The completion times of all flows, in picoseconds. Flow 0 starts in congestion avoidance with a threshold of 5
/// segments and a window of 10. Flows 1 to 4 of 300 segments follow after its end: from the same host to the same
/// host, to another host, from another host, and back. Routers drop RC3's tail, so only its head delivers.
fn completions(cached: bool, later: &str) -> Vec<u64> {
    let text = format!(
        r#"
duration = "20s"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck_rate = "100Mbps"
bottleneck_delay = "20ms"
[queue]
low_priority = "drop"
[transport]
cached_ssthresh = {cached}
[scheme.first]
controller = "newreno"
initial_ssthresh = 5
[scheme.later]
{later}
[[workload]]
kind = "bulk"
scheme = "first"
pairs = [["left0", "right0"]]
size = "8packets"
[[workload]]
kind = "bulk"
scheme = "later"
pairs = [["left0", "right0"], ["left0", "right1"], ["left1", "right0"], ["right0", "left0"]]
start = "1s"
gap = "4s"
size = "300packets"
"#
    );
    let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
    let scenario = Scenario::parse(&text, &source, &[]).unwrap_or_else(|error| panic!("{error}"));
    let records = scenario.simulate().expect("a run").run().expect("lawful physics");
    let flows = records.flows;
    flows.finish_ps.iter().zip(&flows.start_ps).map(|(finish, start)| finish - start).collect()
}

const NEWRENO: &str = "controller = \"newreno\"";

#[test]
fn only_flows_between_the_same_hosts_in_the_same_direction_start_with_the_threshold() {
    let [cached, not_cached] = [true, false].map(|cached| completions(cached, NEWRENO));
    let bounded = completions(false, &format!("{NEWRENO}\ninitial_ssthresh = 5"));
    assert!(bounded[1] > not_cached[1]);
    assert_eq!(cached[1], bounded[1]);
    assert_eq!(cached[2..], not_cached[2..]);
}

#[test]
fn the_controller_inside_rc3_and_a_validated_window_start_with_the_threshold() {
    for (scheme, bounded) in [
        (
            "controller = \"rc3\"\ninner = { controller = \"newreno\" }",
            "controller = \"rc3\"\ninner = { controller = \"newreno\", initial_ssthresh = 5 }",
        ),
        (
            "controller = \"rc3\"\ntail_rate = \"delivered\"\ninner = { controller = \"newreno\" }",
            "controller = \"rc3\"\ntail_rate = \"delivered\"\ninner = { controller = \"newreno\", initial_ssthresh = 5 }",
        ),
        (
            "controller = \"newreno\"\nwindow_validation = \"rfc7661\"",
            "controller = \"newreno\"\nwindow_validation = \"rfc7661\"\ninitial_ssthresh = 5",
        ),
    ] {
        let [cached, not_cached] = [true, false].map(|cached| completions(cached, scheme));
        assert_ne!(cached[1], not_cached[1], "{scheme}");
        assert_eq!(cached[1], completions(false, bounded)[1], "{scheme}");
    }
}

#[test]
fn a_controller_without_a_threshold_neither_leaves_nor_uses_one() {
    let constant = "controller = \"constant\"\nwindow = 50";
    assert_eq!(completions(true, constant), completions(false, constant));
}

/// Flow 1 in turn ends in congestion avoidance, with a larger window, and raises the threshold.
#[test]
fn each_flow_updates_the_threshold_that_it_started_with() {
    let twice = |cached: bool| {
        let text = format!(
            r#"
duration = "40s"
[topology]
kind = "dumbbell"
pairs = 1
access_rate = "1Gbps"
bottleneck_rate = "1Gbps"
bottleneck_delay = "20ms"
[queue]
limit = "5000packets"
[nic]
limit = "5000packets"
[transport]
cached_ssthresh = {cached}
[scheme.x]
controller = "newreno"
[[drop]]
from = "left0"
to = "west"
flow = 0
segments = [100]
[[workload]]
kind = "bulk"
gap = "10s"
flows = 3
size = "8000packets"
"#
        );
        let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
        let scenario = Scenario::parse(&text, &source, &[]).unwrap_or_else(|error| panic!("{error}"));
        let records = scenario.simulate().expect("a run").run().expect("lawful physics");
        let flows = records.flows;
        let times = flows.finish_ps.iter().zip(&flows.start_ps).map(|(finish, start)| finish - start);
        times.collect::<Vec<_>>()
    };
    let (cached, plain) = (twice(true), twice(false));
    assert_eq!(cached[0], plain[0]);
    assert!(cached[1] > plain[1], "{cached:?} {plain:?}");
    assert!(cached[2] < cached[1], "{cached:?}");
}
