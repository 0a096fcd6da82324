//! Priority classes from end to end: the order of service, by scheme and by queue.

use sparelane_core::Rate;
use sparelane_scenario::{Results, Scenario, Source, flow_columns};
use sparelane_sim::{Discipline, Limit, NodeId, NodeKind, QueueAt, Records, Simulation};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A bottleneck of 10 Mb/s and 20 ms that a class-1 flow fills, and a short flow that starts later.
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

/// Drops at the bottleneck, by class.
fn bottleneck_drops(records: &Records) -> Vec<u64> {
    let links = &records.links;
    let core = links.rate_bps.iter().position(|&bps| bps == 10_000_000).expect("the bottleneck");
    links.dropped_packets.iter().map(|column| column[core]).collect()
}

#[test]
fn one_fifo_router_among_priority_routers_lets_lower_classes_delay_others() {
    let all_priority = completion_ps(&run(CRITICAL, &[]), 1);
    let west = |setting: &str| run(CRITICAL, &["queue_at.routers=[\"west\"]", setting]);
    let fifo = completion_ps(&west("queue_at.kind=fifo"), 1);
    assert!(fifo > all_priority * 3 / 2, "{fifo} behind a FIFO queue, {all_priority} without");
    assert_eq!(completion_ps(&west("queue_at.kind=priority"), 1), all_priority);
}

#[test]
fn without_push_out_a_full_buffer_drops_the_highest_class_too() {
    // Twenty flows one by one, none of which fills the buffer alone.
    let class_0 = |settings: &[&str]| {
        let short = ["queue.limit=20KB", "workload.1.size=15KB", "workload.1.flows=20", "workload.1.gap=100ms"];
        bottleneck_drops(&run(CRITICAL, &[&short, settings].concat()))[0]
    };
    assert_eq!(class_0(&[]), 0);
    assert!(class_0(&["queue.push_out=false"]) > 0);
    assert!(class_0(&["queue_at.share=1", "queue_at.push_out=false"]) > 0);
}

/// RC3 over a border that refuses low-priority packets.
#[test]
fn nothing_below_class_0_passes_a_dropping_border_and_flows_still_finish() {
    let rc3 = ["scheme.critical.controller=rc3", "workload.0.start=4.9s", "workload.1.start=0s"];
    let border = ["queue_at.routers=[\"west\"]", "queue_at.low_priority=drop"];
    let records = run(CRITICAL, &[&rc3[..], &border].concat());
    let links = &records.links;
    let core = links.rate_bps.iter().position(|&bps| bps == 10_000_000).expect("the bottleneck");
    let sent: u64 = (1..3).map(|class| records.flows.sent_packets[class][0]).sum();
    assert!(sent > 0, "RC3 tries");
    for class in 1..3 {
        assert_eq!(links.dropped_packets[class][core], links.arrived_packets[class][core], "class {class}");
    }
    let dropped_by_others =
        |class: usize| links.dropped_packets[class].iter().sum::<u64>() - links.dropped_packets[class][core];
    assert_eq!((1..8).map(dropped_by_others).sum::<u64>(), 0);
    let barred = completion_ps(&records, 0);
    let open = completion_ps(&run(CRITICAL, &rc3), 0);
    let tcp = completion_ps(&run(CRITICAL, &["workload.0.start=4.9s", "workload.1.start=0s"]), 0);
    assert!(open < barred && barred <= tcp + tcp / 4, "{open} without a border, {barred} with it, {tcp} by TCP");
}

/// RC3's Internet-2: ten routers.
const SHARED: &str = r#"
duration = "1s"
topology = { kind = "internet2", hosts_per_router = 2 }
scheme = { rc3 = { controller = "rc3" } }
workload = { kind = "bulk", size = "1MB" }
"#;

fn differing(overrides: &[&str]) -> Vec<QueueAt> {
    scenario(SHARED, overrides).build().expect("a run").queues_at
}

#[test]
fn a_share_of_the_routers_has_all_their_queues_and_follows_the_seed() {
    let network = scenario(SHARED, &[]).build().expect("a run").network;
    let fifo = ["queue_at.share=0.2", "queue_at.kind=fifo"];
    let queues = differing(&fifo);
    let routers: BTreeSet<_> = queues.iter().map(|at| at.from).collect();
    assert_eq!(routers.len(), 2);
    let ends = network.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    assert_eq!(queues.len(), ends.filter(|end| routers.contains(end)).count());
    assert!(queues.iter().all(|at| at.queue.discipline == Discipline::Fifo));
    assert_eq!(differing(&fifo), queues);
    let of_seed = |seed: u64| differing(&[fifo[0], fifo[1], &format!("seed={seed}")]);
    assert_eq!(of_seed(1), queues);
    assert!((2..6).any(|seed| of_seed(seed) != queues), "every seed draws the same");
    assert_eq!(differing(&["queue_at.share=0", "queue_at.kind=fifo"]), []);
}

#[test]
fn a_share_of_the_queues_draws_them_one_by_one() {
    let network = scenario(SHARED, &[]).build().expect("a run").network;
    let router = |id: NodeId| network.nodes[id.index()].kind == NodeKind::Router;
    let all = network.cables.iter().flat_map(|cable| [cable.a, cable.b]).filter(|&end| router(end)).count();
    let queues = differing(&["queue_at.share=50%", "queue_at.of=queues", "queue_at.push_out=false"]);
    assert_eq!(queues.len(), (all as f64 / 2.0).round() as usize);
    let places: BTreeSet<_> = queues.iter().map(|at| (at.cable, at.from)).collect();
    assert_eq!(places.len(), queues.len());
    assert!(queues.iter().all(|at| router(at.from) && !at.queue.push_out));
    let part = |from: NodeId| {
        let own = network.cables.iter().flat_map(|cable| [cable.a, cable.b]).filter(|&end| end == from).count();
        let drawn = places.iter().filter(|(_, other)| *other == from).count();
        0 < drawn && drawn < own
    };
    assert!(queues.iter().any(|at| part(at.from)), "whole routers only");
}

#[test]
fn of_several_tables_the_last_decides_with_the_rest_from_queue() {
    let text = CRITICAL.replace(
        "[scheme.bulk]",
        "[[queue_at]]\nrouters = [\"west\", \"east\"]\nlow_priority = \"drop\"\nlimit = \"7packets\"\n\
         [[queue_at]]\nrouters = [\"west\"]\nkind = \"fifo\"\n\
         [[link]]\nselect = \"core\"\nlimit = \"50KB\"\n[scheme.bulk]",
    );
    let run = scenario(&text, &[]).build().expect("a run");
    let core = run.network.cables.iter().position(|cable| cable.rates[0] == Rate::from_mbps(10)).expect("the core");
    let last = |router: &str| {
        let from = run.network.find(router).expect("a router");
        run.queues_at.iter().rev().find(|at| (at.cable, at.from) == (core, from)).expect("it differs").queue.clone()
    };
    assert_eq!((last("west").discipline, last("west").bars_low_priority), (Discipline::Fifo, false));
    assert_eq!((last("west").limit, last("east").limit), (Limit::Bytes(50_000), Limit::Packets(7)));
    assert!(last("east").bars_low_priority);
    let records = Simulation::new(run).expect("a simulation").run().expect("lawful physics");
    assert_eq!(
        records.flows.delivered_bytes,
        [0, 100_000],
        "west lets the handshake of class 1 through, east does not"
    );
    assert_eq!(bottleneck_drops(&records)[1], 0);
}
