//! The path from a scenario file through a run to columns and a digest.

use sparelane_scenario::{
    Column, Data, Results, Scenario, Source, Table, drop_columns, flow_columns, link_columns, series_columns,
};
use std::path::Path;

fn run(name: &str, overrides: &[&str]) -> Results {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::load(&folder.join(format!("{name}.toml")), &overrides).expect("a scenario");
    let records = scenario.simulate().expect("a run").run().expect("lawful physics");
    Results::new(&scenario, records)
}

fn names(table: &Table) -> Vec<&str> {
    table.iter().map(|(name, _)| name.as_str()).collect()
}

fn column<'t>(table: &'t Table, name: &str) -> &'t Column {
    &table.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no column {name}")).1
}

fn whole(table: &Table, name: &str) -> Vec<u64> {
    match &column(table, name).data {
        Data::U64(values) => values.clone(),
        Data::U32(values) => values.iter().map(|&value| u64::from(value)).collect(),
        other => panic!("{name} is {other:?}"),
    }
}

fn texts(table: &Table, name: &str) -> Vec<String> {
    let Data::Text { codes, dictionary } = &column(table, name).data else { panic!("{name} is not text") };
    codes.iter().map(|&code| dictionary[code as usize].clone()).collect()
}

fn rows(table: &Table) -> usize {
    let length = |column: &Column| match &column.data {
        Data::U32(values) => values.len(),
        Data::U64(values) => values.len(),
        Data::F64(values) => values.len(),
        Data::Flags(values) => values.len(),
        Data::Text { codes, .. } => codes.len(),
    };
    let lengths: Vec<_> = table.iter().map(|(_, column)| length(column)).collect();
    assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{lengths:?}");
    lengths[0]
}

#[test]
fn flows_become_named_columns_up_to_the_highest_class_used() {
    let results = run("two-flows-priority", &["scheme.rc3.levels=[40]"]);
    let flows = flow_columns(&results);
    let expected = "id scheme traffic_class connection request src dst size_bytes start_s finish_s completion_s ideal_s first_write_s delivered_bytes sent_packets_0 \
                    sent_packets_1 sent_packets_2 lost_packets retransmissions timeouts srtt_s min_rtt_s measured_bytes mean_delay_s max_delay_s";
    assert_eq!(names(&flows).join(" "), expected);
    assert_eq!((texts(&flows, "scheme"), rows(&flows)), (vec!["rc3".to_owned(), "tcp".to_owned()], 2));
    assert_eq!((texts(&flows, "src")[1].as_str(), texts(&flows, "dst")[1].as_str()), ("left1", "right1"));
    assert_eq!((whole(&flows, "size_bytes"), whole(&flows, "delivered_bytes")), (vec![500_000; 2], vec![500_000; 2]));
    let tcp_alone = flow_columns(&run("rc3-example-7", &["workload.scheme=tcp"]));
    assert!(names(&tcp_alone).contains(&"sent_packets_0") && !names(&tcp_alone).contains(&"sent_packets_1"));
}

#[test]
fn what_never_ends_has_no_size_and_no_completion() {
    let flows = flow_columns(&run("dumbbell-cubic", &["duration=1s"]));
    for name in ["size_bytes", "finish_s", "completion_s", "ideal_s"] {
        assert_eq!(column(&flows, name).valid, Some(vec![false; 2]), "{name}");
    }
    assert_eq!(column(&flows, "start_s").valid, None);
}

#[test]
fn links_drops_and_series_refer_to_nodes_and_probes_by_name() {
    let results = run("rc3-example-66", &[]);
    let links = link_columns(&results);
    assert_eq!(rows(&links), 4);
    let drops = drop_columns(&results);
    let lossy: Vec<_> = (0..rows(&drops)).filter(|&row| whole(&drops, "dropped_packets")[row] > 0).collect();
    assert_eq!(lossy.len(), 1);
    let place = ["from", "to"].map(|name| texts(&drops, name)[lossy[0]].clone());
    assert_eq!((place.join(" "), whole(&drops, "class")[lossy[0]]), ("r0 h2".to_owned(), 2));
    assert!(whole(&drops, "arrived_packets").iter().all(|&count| count > 0));
    let series = series_columns(&results);
    assert!(rows(&series) > 0 && texts(&series, "probe").iter().all(|name| name == "flow 0"));
    assert!(texts(&series, "quantity").iter().any(|name| name == "cwnd_bytes"));
}

#[test]
fn the_same_seed_gives_the_same_digest_and_another_does_not() {
    let overrides = ["duration=100ms", "topology.hosts_per_router=2", "seed=5"];
    let base = run("rc3-internet2", &overrides);
    assert_eq!(run("rc3-internet2", &overrides).digest, base.digest);
    let mut other = overrides;
    other[2] = "seed=6";
    let other = run("rc3-internet2", &other);
    assert_ne!(other.digest, base.digest);
    assert_eq!((other.seed, base.seed), (6, 5));
}

/// Handshake, then one packet of 1500 bytes; packets of the handshake have 40. The core link has 5556 Mb/s and 10 ms.
#[test]
fn one_packet_takes_the_rate_of_each_direction() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let overrides = [
        "link=[{ select = \"access\", rate = \"100Mbps\", rate_from = \"routers\" }]",
        "workload={ kind = \"bulk\", scheme = \"tcp\", pairs = [[\"h10\", \"h11\"]], size = \"1packets\" }",
    ];
    let scenario =
        Scenario::load(&folder.join("rc3-internet2.toml"), &overrides.map(str::to_owned)).expect("a scenario");
    let records = scenario.simulate().expect("a run").run().expect("lawful physics");
    let completion_us = records.flows.finish_ps[0] as f64 / 1e6;
    let crossing_us = |wire_bytes: f64| 12_000.0 + wire_bytes * 8.0 * (1.0 / 1000.0 + 1.0 / 5556.0 + 1.0 / 100.0);
    let expected_us = 2.0 * crossing_us(40.0) + crossing_us(1500.0);
    assert!((completion_us - expected_us).abs() < 0.001, "{completion_us}, not {expected_us}");
    assert_eq!(records.flows.ideal_ps[0], records.flows.finish_ps[0]);
}

/// NSDI 2014 section 2.2. The receiver has all packets in the third round trip after the handshake; with TCP, which
/// also loses two, in the fifth or later. Packets 13 to 20 are sent twice: see the scenario.
#[test]
fn rc3_needs_three_round_trips_for_66_packets() {
    let round_trip_ps = 50_000_000_000;
    let finish =
        |scheme: &str| run("rc3-example-66", &[&format!("workload.scheme={scheme}")]).records.flows.finish_ps[0];
    assert!((3 * round_trip_ps..4 * round_trip_ps).contains(&finish("rc3")));
    assert!(finish("tcp") > 5 * round_trip_ps);
    let flows = flow_columns(&run("rc3-example-66", &[]));
    let sent = ["sent_packets_0", "sent_packets_1", "sent_packets_2"].map(|name| whole(&flows, name)[0]);
    assert_eq!(sent, [4 + 8 + 8 + 2, 40, 22]);
}

/// One flow of RC3 or TCP over 1 Gb/s and 40 ms, whose application writes in pieces.
fn paced(scheme: &str, size: &str) -> Table {
    let text = format!(
        r#"duration = "10s"
[topology]
kind = "dumbbell"
pairs = 1
bottleneck_rate = "1Gbps"
[queue]
kind = "priority"
[nic]
kind = "priority"
[scheme.tcp]
controller = "newreno"
[scheme.rc3]
controller = "rc3"
[workload]
kind = "bulk"
scheme = "{scheme}"
size = "{size}"
writes = {{ first = "1.5MB", then = "64KB", every = "100ms" }}
"#
    );
    let source = Source { file: "x.toml".to_owned(), folder: Path::new(".").to_owned() };
    let scenario = Scenario::parse(&text, &source, &[]).expect("a scenario");
    let records = scenario.simulate().expect("a run").run().expect("lawful physics");
    flow_columns(&Results::new(&scenario, records))
}

fn seconds(table: &Table, name: &str) -> Option<f64> {
    let column = column(table, name);
    let Data::F64(values) = &column.data else { panic!("{name} is {:?}", column.data) };
    column.valid.as_ref().is_none_or(|valid| valid[0]).then_some(values[0])
}

/// NSDI 2014 section 5.1.2, application pacing: RC3 delivers the first write earlier, but not the whole flow, which
/// waits for the application.
#[test]
fn a_paced_flow_tells_when_its_first_write_was_there_and_ends_after_its_last() {
    // 1.5 MB, and 20 writes of 64 kB: the last at 2 s.
    let [tcp, rc3] = ["tcp", "rc3"].map(|scheme| paced(scheme, "2.78MB"));
    let [tcp_first, rc3_first] = [&tcp, &rc3].map(|table| seconds(table, "first_write_s").expect("a first write"));
    assert!((0.2..0.5).contains(&tcp_first), "{tcp_first}");
    assert!((0.07..0.1).contains(&rc3_first), "{rc3_first}");
    for table in [&tcp, &rc3] {
        let (took, ideal) = (seconds(table, "completion_s").expect("an end"), seconds(table, "ideal_s").expect("one"));
        assert!(2.02 < ideal && ideal < took && took < 2.04, "{ideal} {took}");
        assert_eq!((whole(table, "delivered_bytes"), whole(table, "timeouts")), (vec![2_780_000], vec![0]));
    }
    // A later write counts as a new flow: the second one meets a full window, and its 44 segments are sent from the
    // tail, 40 at priority 1 and 4 at priority 2. Of the first write's 1028, all but the window of 10 were sent from
    // the tail.
    assert!(whole(&rc3, "sent_packets_1")[0] > 40 + 40, "{rc3:?}");
    assert_eq!([whole(&rc3, "sent_packets_2"), whole(&rc3, "sent_packets_3")], [[400 + 4], [578]]);
}

#[test]
fn a_paced_flow_without_end_has_a_first_write_and_no_completion() {
    let table = paced("rc3", "unlimited");
    assert!(seconds(&table, "first_write_s").is_some());
    assert_eq!((seconds(&table, "completion_s"), seconds(&table, "ideal_s")), (None, None));
    // 100 writes after the first; the last is written at the end of the run and does not arrive.
    assert_eq!(whole(&table, "delivered_bytes"), [1_500_000 + 99 * 64_000]);
}

#[test]
fn a_flow_written_at_once_has_no_first_write() {
    let table = flow_columns(&run("rc3-example-7", &[]));
    assert_eq!(seconds(&table, "first_write_s"), None);
}

/// The end of a flow discards its scripted drops: the next flow in its slot is a different one.
#[test]
fn a_drop_planned_for_one_flow_hits_no_other() {
    let text = r#"duration = "5s"
[topology]
kind = "dumbbell"
pairs = 1
[scheme.tcp]
controller = "newreno"
[[workload]]
kind = "bulk"
size = "5packets"
[[workload]]
kind = "bulk"
size = "50packets"
start = "1s"
[[drop]]
from = "west"
to = "east"
segments = [2, 20]
"#;
    let source = Source { file: "x.toml".to_owned(), folder: Path::new(".").to_owned() };
    let scenario = Scenario::parse(text, &source, &[]).expect("a scenario");
    let records = scenario.simulate().expect("a run").run().expect("lawful physics");
    let flows = flow_columns(&Results::new(&scenario, records));
    assert_eq!(whole(&flows, "lost_packets"), [1, 0]);
}

/// The time in milliseconds for 1000 packets over 10 Gb/s and 20 ms (NSDI 2014 section 5.2), with a processing time of
/// `cost` per received chunk, and growth by two segments per acknowledgment as in Linux.
fn offloaded(scheme: &str, send_batch: u32, receive_batch: u32, cost: &str) -> f64 {
    let text = format!(
        r#"duration = "10s"
[topology]
kind = "dumbbell"
pairs = 1
access_rate = "10Gbps"
access_delay = "0s"
bottleneck_rate = "10Gbps"
bottleneck_delay = "10ms"
[queue]
kind = "priority"
[nic]
kind = "priority"
limit = "1GB"
[host]
receive_cost = "{cost}"
[transport]
delayed_ack = {{ every = 2, timeout = "40ms" }}
send_batch = {send_batch}
receive_batch = {receive_batch}
[scheme.tcp]
controller = "newreno"
slow_start_limit = 2
growth_limit = 2
[scheme.rc3]
controller = "rc3"
feed = "push"
inner = {{ controller = "newreno", slow_start_limit = 2, growth_limit = 2 }}
[workload]
kind = "bulk"
scheme = "{scheme}"
size = "1000packets"
"#
    );
    let source = Source { file: "x.toml".to_owned(), folder: Path::new(".").to_owned() };
    let scenario = Scenario::parse(&text, &source, &[]).expect("a scenario");
    let records = scenario.simulate().expect("a run").run().expect("lawful physics");
    let flows = flow_columns(&Results::new(&scenario, records));
    1e3 * seconds(&flows, "completion_s").expect("an end")
}

/// The trends of Fig. 18: offload slows TCP down, whose window grows per acknowledgment. RC3 does not wait for
/// acknowledgments, and both offloads together relieve its receiver's processor.
#[test]
fn offload_slows_tcp_down_and_rc3_not() {
    // A segment takes 1.2 us on the wire, and its processing 2 us.
    let times = |scheme| [(1, 1), (44, 1), (1, 44), (44, 44)].map(|(tx, rx)| offloaded(scheme, tx, rx, "2us"));
    let [none, send, receive, both] = times("tcp");
    assert!(none < send && send < receive && receive <= both, "{none} {send} {receive} {both}");
    let [none, send, receive, both] = times("rc3");
    assert!((send - none).abs() < 0.01 * none && (receive - none).abs() < 0.01 * none, "{none} {send} {receive}");
    // Without the handshake of 20 ms.
    assert!(both - 20.0 < 0.95 * (none - 20.0), "{none} {both}");
}
