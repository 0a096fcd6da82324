//! HPCC and the telemetry of routers: short queues in an incast, and hops without telemetry.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::PathBuf;

/// Sixteen hosts that send to the first of seventeen at once.
fn incast(tables: &str) -> String {
    format!(
        r#"
duration = "6ms"
[topology]
kind = "star"
hosts = 17
rate = "100Gbps"
delay = "5us"
[queue]
limit = "8MB"
[scheme.x]
controller = "hpcc"
[[workload]]
kind = "bulk"
scheme = "x"
pairs = "incast"
{tables}
"#
    )
}

fn parse(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    let source = Source { file: "x.toml".to_owned(), folder: PathBuf::from(".") };
    Scenario::parse(text, &source, &overrides).map_err(|error| error.to_string())
}

fn run(text: &str, overrides: &[&str]) -> Records {
    parse(text, overrides).expect("a scenario").simulate().expect("a run").run().expect("the laws hold")
}

/// The largest queue towards the receiver, in bytes.
fn peak(records: &Records) -> u64 {
    records.links.peak_backlog_bytes.iter().copied().max().expect("links")
}

/// The windows of the first round trip wait in the queue once. Then the queue keeps below a hundredth of them, and the
/// link is used to 95 % of its rate.
#[test]
fn an_incast_keeps_the_queue_short_and_the_link_in_use_with_fair_shares() {
    let records = run(&incast(""), &["measure.from=2ms", "sample={interval=\"10us\", queues=[[\"switch\",\"h1\"]]}"]);
    assert_eq!(records.links.dropped_packets.iter().flatten().sum::<u64>(), 0);
    let series = &records.series;
    let later = (0..series.value.len()).filter(|&row| series.time_ps[row] > 2_000_000_000);
    let backlog = later.map(|row| series.value[row]).fold(0.0, f64::max);
    assert!(backlog < 0.01 * peak(&records) as f64, "{backlog} of {}", peak(&records));
    let rates: Vec<f64> = records.flows.measured_bytes.iter().map(|&bytes| bytes as f64).collect();
    let total: f64 = rates.iter().sum();
    // Payload is 1460 of 1542 bytes.
    let use_of_link = total * 1542.0 / 1460.0 * 8.0 / 4e-3 / 100e9;
    assert!((0.93..0.96).contains(&use_of_link), "{use_of_link}");
    let jain = total * total / (16.0 * rates.iter().map(|rate| rate * rate).sum::<f64>());
    assert!(jain > 0.98, "{jain}");
}

#[test]
fn telemetry_costs_42_bytes_for_each_packet() {
    let overrides = ["workload.0.size=14600B", "scheme.y.controller=newreno"];
    let sent = |scheme: &str| {
        let records = run(&incast(""), &[&overrides[..], &[&format!("workload.0.scheme={scheme}")]].concat());
        records.links.sent_bytes.iter().sum::<u64>()
    };
    // The handshake and ten segments with their acknowledgments, on two cables each.
    assert_eq!(sent("x") - sent("y"), 16 * 22 * 2 * 42);
}

#[test]
fn hops_without_telemetry_are_a_warning_and_none_with_it_an_error() {
    let warnings = |tables: &str| {
        let text = incast(tables);
        let scenario = parse(&text, &[]).expect("a scenario");
        scenario.warnings().iter().filter(|text| text.contains("telemetry")).cloned().collect::<Vec<_>>()
    };
    assert!(warnings("").is_empty());
    let at = "[[queue_at]]\nbetween = [\"switch\", \"h1\"]\n";
    assert_eq!(
        warnings(&format!("{at}telemetry = \"off\"\n")),
        [
            "scheme x does not see the queue of \"switch\" towards \"h1\", which writes no telemetry, because its telemetry \
          is off"
        ]
    );
    assert_eq!(
        warnings(&format!("{at}kind = \"codel\"\n")),
        [
            "scheme x does not see the queue of \"switch\" towards \"h1\", which writes no telemetry, because its kind is \
          codel"
        ]
    );
    let refuse = |overrides: &[&str]| parse(&incast(""), overrides).expect_err("a mistake");
    for overrides in [&["queue.telemetry=off"][..], &["queue.kind=red", "queue.min=9kB", "queue.max=90kB"][..]] {
        let message = refuse(overrides);
        assert!(message.contains("no router writes any; allowed: telemetry = \"port\""), "{message}");
    }
    let message = refuse(&["queue.kind=codel", "queue.telemetry=class"]);
    assert!(message.contains("a codel queue writes no telemetry; allowed: with kind = fifo or priority"), "{message}");
    let message = refuse(&["transport.header=220B"]);
    assert!(message.contains("telemetry adds 42 bytes to each header, which makes 262 bytes"), "{message}");
    let idle = parse(&incast(""), &["scheme.x.controller=cubic", "queue.telemetry=class"]).expect("a scenario");
    assert!(idle.warnings().iter().any(|text| text.contains("no controller reads telemetry")), "{:?}", idle.warnings());
}

/// A queue that writes no telemetry looks idle, so HPCC keeps its first window, and the queue fills.
#[test]
fn a_hop_without_telemetry_fills() {
    let at = "[[queue_at]]\nbetween = [\"switch\", \"h1\"]\ntelemetry = \"off\"\n";
    let [seen, unseen] = ["", at].map(|tables| {
        let overrides = ["sample={interval=\"10us\", queues=[[\"switch\",\"h1\"]]}"];
        let records = run(&incast(tables), &overrides);
        *records.series.value.last().expect("samples")
    });
    assert!(unseen > 10.0 * seen.max(1500.0), "{seen} {unseen}");
}

/// The low-priority packets of RC3 do not slow HPCC down if the records count classes apart.
#[test]
fn records_of_a_class_do_not_count_lower_classes() {
    let other = "[scheme.low]\ncontroller = \"constant\"\nwindow = 400\nclass = 3\n[[workload]]\nkind = \"bulk\"\n\
                 scheme = \"low\"\npairs = [[\"h2\", \"h1\"]]\n";
    let text = incast(other);
    let share = |telemetry: &str| {
        let telemetry = format!("queue.telemetry={telemetry}");
        let records = run(&text, &["queue.kind=priority", "nic.kind=priority", "measure.from=2ms", &telemetry]);
        records.flows.measured_bytes[..16].iter().sum::<u64>() as f64 * 1542.0 / 1460.0 * 8.0 / 4e-3 / 100e9
    };
    let (by_port, by_class) = (share("port"), share("class"));
    assert!(by_class > 0.9 && by_port < 0.5 * by_class, "{by_port} {by_class}");
}
