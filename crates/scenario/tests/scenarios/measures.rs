//! Measurements on request, and classes of traffic: from the scenario to the columns.

use sparelane_scenario::{Column, Data, Results, Scenario, Source, Table, delay_columns, flow_columns};
use std::path::PathBuf;

/// Five hosts on a switch of 1 Gb/s and 1 us, followed by the given workloads and tables.
fn run(rest: &str) -> Results {
    let text = format!(
        "duration = \"40ms\"\n[topology]\nkind = \"star\"\ndelay = \"1us\"\n[queue]\nlimit = \"300KB\"\n{rest}"
    );
    let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
    let scenario = Scenario::parse(&text, &source, &[]).unwrap_or_else(|error| panic!("{error}"));
    let records = scenario.simulate().expect("a run").run().expect("lawful physics");
    Results::new(&scenario, records)
}

fn column<'t>(table: &'t Table, name: &str) -> &'t Column {
    &table.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no column {name}")).1
}

fn optional<T: Clone>(values: &[T], valid: &Option<Vec<bool>>) -> Vec<Option<T>> {
    let is_valid = |row: usize| valid.as_ref().is_none_or(|valid| valid[row]);
    values.iter().enumerate().map(|(row, value)| is_valid(row).then(|| value.clone())).collect()
}

fn numbers(table: &Table, name: &str) -> Vec<Option<f64>> {
    let column = column(table, name);
    let values = match &column.data {
        Data::F64(values) => values.clone(),
        Data::U64(values) => values.iter().map(|&value| value as f64).collect(),
        other => panic!("{name} is {other:?}"),
    };
    optional(&values, &column.valid)
}

fn texts(table: &Table, name: &str) -> Vec<Option<String>> {
    let column = column(table, name);
    let Data::Text { codes, dictionary } = &column.data else { panic!("{name} is not text") };
    let texts = optional(codes, &column.valid).into_iter();
    texts.map(|code| code.map(|code| dictionary[code as usize].clone())).collect()
}

const TCP: &str = "[scheme.tcp]\ncontroller = \"newreno\"\n";

fn bulk(keys: &str) -> String {
    format!("[[workload]]\nkind = \"bulk\"\n{keys}\n")
}

/// 1500 bytes take 12 us on each of two links, and 1 us on each wire.
#[test]
fn a_single_packet_takes_the_time_of_its_links() {
    let workload = bulk("scheme = \"tcp\"\npairs = [[\"h1\", \"h2\"]]\nsize = \"1packets\"");
    let results = run(&format!("[measure]\ndelays = true\n{TCP}{workload}"));
    let (flows, delays) = (flow_columns(&results), delay_columns(&results));
    for name in ["mean_delay_s", "max_delay_s"] {
        let delay = numbers(&flows, name)[0].expect("a delay");
        assert!((delay - 26e-6).abs() < 1.1e-9, "{name}: {delay}");
    }
    assert_eq!((numbers(&delays, "packets"), texts(&delays, "traffic_class")), (vec![Some(1.0)], vec![None]));
    let bin = numbers(&delays, "delay_s")[0].expect("a bin");
    assert!((bin / 26e-6 - 1.0).abs() < 0.01, "{bin}");
    assert_eq!(numbers(&flows, "measured_bytes"), [Some(1460.0)]);
}

/// A window of 100 packets over one link waits in the queue of its own host: the delay is 100 packets minus those
/// elsewhere.
#[test]
fn a_full_window_waits_for_itself() {
    let scheme = "[scheme.full]\ncontroller = \"constant\"\nwindow = 100\n";
    let workload = bulk("pairs = [[\"h1\", \"h2\"]]");
    let results =
        run(&format!("[nic]\nlimit = \"1000packets\"\n[measure]\ndelays = true\nfrom = \"5ms\"\n{scheme}{workload}"));
    let flows = flow_columns(&results);
    // An acknowledgment releases the next packet: 99 others precede it, or at most one fewer per link.
    for name in ["mean_delay_s", "max_delay_s"] {
        let delay = numbers(&flows, name)[0].expect("a delay");
        assert!((97.0 * 12e-6..101.0 * 12e-6).contains(&delay), "{name}: {delay}");
    }
    // 35 ms of 1 Gb/s in segments of 1460 bytes, 12 us each.
    let measured = numbers(&flows, "measured_bytes")[0].expect("bytes");
    let expected = 35e-3 / 12e-6 * 1460.0;
    assert!((measured - expected).abs() <= 2.0 * 1460.0, "{measured}, not {expected}");
    let packets: f64 = numbers(&delay_columns(&results), "packets").into_iter().flatten().sum();
    assert!((packets - 35e-3 / 12e-6 + 100.0).abs() <= 3.0, "{packets} packets were sent from 5 ms on and arrived");
}

#[test]
fn what_is_not_asked_for_is_null() {
    let workload = bulk("scheme = \"tcp\"\nsize = \"1packets\"");
    let plain = run(&format!("{TCP}{workload}"));
    let flows = flow_columns(&plain);
    for name in ["mean_delay_s", "max_delay_s", "measured_bytes"] {
        assert_eq!(numbers(&flows, name), [None, None], "{name}");
    }
    assert_eq!(texts(&flows, "traffic_class"), [None, None]);
    assert_eq!(numbers(&delay_columns(&plain), "packets"), []);
    let bytes = flow_columns(&run(&format!("[measure]\n{TCP}{workload}")));
    assert_eq!((numbers(&bytes, "measured_bytes")[0], numbers(&bytes, "mean_delay_s")[0]), (Some(1460.0), None));
}

#[test]
fn measuring_changes_no_flow() {
    for controller in ["newreno", "ledbat", "rtcp"] {
        let scheme = format!("[scheme.one]\ncontroller = \"{controller}\"\n");
        let workload = bulk("pairs = [[\"h1\", \"h5\"], [\"h2\", \"h5\"]]\nsize = \"140kB\"");
        let finish = |measure: &str| run(&format!("{measure}{scheme}{workload}")).records.flows.finish_ps;
        let plain = finish("");
        assert!(plain.iter().all(|&ps| ps < u64::MAX), "{controller}: {plain:?}");
        assert_eq!(finish("[measure]\ndelays = true\nfrom = \"1ms\"\n"), plain, "{controller}");
    }
}

#[test]
fn flows_are_in_the_class_of_their_workload_or_size() {
    let by_size = "traffic_classes = [{ name = \"urgent\", below = \"30KB\" }, { name = \"high-volume\" }]";
    let workloads = [
        bulk(&format!("pairs = [[\"h1\", \"h2\"]]\nsize = \"29999B\"\n{by_size}")),
        bulk(&format!("pairs = [[\"h1\", \"h2\"]]\nsize = \"30kB\"\n{by_size}\nstart = \"1ms\"")),
        bulk(&format!("pairs = [[\"h3\", \"h4\"]]\n{by_size}\nstart = \"2ms\"")),
        bulk("pairs = [[\"h1\", \"h2\"]]\nsize = \"1kB\"\ntraffic_class = \"third\"\nstart = \"3ms\""),
        bulk("pairs = [[\"h1\", \"h2\"]]\nsize = \"1kB\"\nstart = \"4ms\""),
    ];
    let results = run(&format!("[measure]\ndelays = true\n{TCP}{}", workloads.concat()));
    let class = |name: &str| Some(name.to_owned());
    let expected = [class("urgent"), class("high-volume"), class("high-volume"), class("third"), None];
    assert_eq!(texts(&flow_columns(&results), "traffic_class"), expected);
    let delays = delay_columns(&results);
    let mut classes = texts(&delays, "traffic_class");
    classes.dedup();
    assert_eq!(classes, [class("urgent"), class("high-volume"), class("third"), None]);
    // 29,999 bytes are 21 segments.
    let rows = texts(&delays, "traffic_class").into_iter().zip(numbers(&delays, "packets"));
    let urgent: f64 = rows.filter(|(name, _)| *name == class("urgent")).filter_map(|(_, packets)| packets).sum();
    assert_eq!(urgent, 21.0);
}

/// RTCP's weights depend on the class: of two flows on one link, the heavier gets more.
#[test]
fn a_controller_is_given_the_class_of_its_flow() {
    let flow = |class: &str, src: &str| bulk(&format!("pairs = [[\"{src}\", \"h5\"]]\ntraffic_class = \"{class}\""));
    let scheme = "[scheme.rtcp]\ncontroller = \"rtcp\"\ndelta = 125\nweights = { light = 6000, heavy = 24000 }\n";
    let workloads = [flow("light", "h1"), flow("heavy", "h2")].concat();
    let results = run(&format!("[measure]\nfrom = \"5ms\"\n{scheme}{workloads}"));
    let bytes = numbers(&flow_columns(&results), "measured_bytes");
    let (light, heavy) = (bytes[0].expect("bytes"), bytes[1].expect("bytes"));
    assert!(heavy > 1.3 * light, "{heavy} and {light}");
}
