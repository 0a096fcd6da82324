//! Checks that every shipped scenario parses, builds, and has a title.

use sparelane_scenario::Scenario;
use sparelane_sim::RunConfig;
use std::path::{Path, PathBuf};

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = std::fs::read_dir(folder).expect("the folder of scenarios");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    paths.sort();
    paths
}

fn load(path: &Path, overrides: &[&str]) -> Scenario {
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::load(path, &overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn named(name: &str, overrides: &[&str]) -> Scenario {
    let path = shipped().into_iter().find(|path| path.ends_with(format!("{name}.toml")));
    load(&path.expect("a shipped scenario"), overrides)
}

#[test]
fn every_shipped_scenario_parses_and_builds() {
    let paths = shipped();
    assert!(paths.len() >= 6, "{paths:?}");
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(text.starts_with("# "), "{} does not open with what it shows", path.display());
        let scenario = load(&path, &[]);
        assert!(!scenario.title.is_empty(), "{} has no title", path.display());
        let mut run = scenario.build().expect("a run");
        assert!(run.flows.next_flow().is_some(), "{} has no flows", path.display());
    }
}

#[test]
fn a_canonical_scenario_builds_the_same_run() {
    for path in shipped() {
        let scenario = load(&path, &["seed=7"]);
        let source = sparelane_scenario::Source::at(&path);
        let again = Scenario::parse(&scenario.canonical(), &source, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.canonical(), scenario.canonical());
        let (mut first, mut second) = (scenario.build().expect("a run"), again.build().expect("a run"));
        assert_eq!(first.network, second.network);
        assert_eq!(first.schemes, second.schemes);
        assert_eq!((&first.router_queue, &first.nic_queue), (&second.router_queue, &second.nic_queue));
        assert_eq!(first.queues_at, second.queues_at);
        assert_eq!((first.host, &first.hosts_at), (second.host, &second.hosts_at));
        let interests = |run: &RunConfig| run.observers.iter().map(|who| who.interest()).collect::<Vec<_>>();
        assert_eq!(interests(&first), interests(&second));
        assert_eq!(first.drops, second.drops);
        assert_eq!((first.stop, first.seed, first.routing), (second.stop, second.seed, second.routing));
        for _ in 0..1000 {
            assert_eq!(first.flows.next_flow(), second.flows.next_flow());
        }
    }
}

#[test]
fn schemes_of_the_rc3_baseline_see_the_same_flows() {
    let [mut tcp, mut rc3] = ["tcp", "rc3"]
        .map(|scheme| named("rc3-internet2", &[&format!("workload.scheme={scheme}")]).build().expect("a run"));
    for _ in 0..10_000 {
        let (Some(one), Some(other)) = (tcp.flows.next_flow(), rc3.flows.next_flow()) else {
            panic!("ten thousand flows")
        };
        assert_eq!(
            (one.start, one.src, one.dst, one.size_bytes),
            (other.start, other.src, other.dst, other.size_bytes)
        );
        assert_ne!(one.scheme, other.scheme);
    }
}

/// The first acknowledgment must return while the 50th packet is on the wire: 49 to 50 packets after the start.
#[test]
fn fifty_packets_fill_one_round_trip_of_the_66_packet_example() {
    let scenario = named("rc3-example-66", &[]);
    let run = scenario.build().expect("a run");
    let wire =
        |bytes: u64| run.network.cables.iter().fold(0, |sum, cable| sum + cable.slowest().time_for(bytes).as_ps());
    let there_and_back = run.network.cables.iter().fold(0, |sum, cable| sum + 2 * cable.delay.as_ps());
    let round_trip = there_and_back + wire(1500) + wire(40);
    let packet = run.network.cables[0].slowest().time_for(1500).as_ps();
    assert!((49 * packet..50 * packet).contains(&round_trip), "{round_trip} ps, {packet} ps a packet");
}
