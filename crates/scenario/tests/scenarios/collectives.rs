//! Workloads in which flows wait for others: `after`, lists with dependencies, all-reduce and all-to-all.

use crate::run;
use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::PathBuf;

/// 1 Gb/s with 1 us for each cable. A packet of 1500 bytes takes 12 us, one of 40 bytes 0.32 us.
const STAR: &str = r#"
duration = "1s"
[topology]
kind = "star"
hosts = 4
rate = "1Gbps"
delay = "1us"
[queue]
limit = "1MB"
[scheme.tcp]
controller = "newreno"
initial_window = 1000
"#;

fn completion_ps(records: &Records, request: u64) -> u64 {
    let own: Vec<_> = (0..records.flows.id.len()).filter(|&row| records.flows.request[row] == request).collect();
    let start = own.iter().map(|&row| records.flows.start_ps[row]).min().expect("a flow");
    own.iter().map(|&row| records.flows.finish_ps[row]).max().expect("a flow") - start
}

/// In a ring, all hosts send and receive in each step, so its time is the number of steps times that of a chunk.
#[test]
fn a_ring_takes_the_time_of_its_steps() {
    let workload = "[workload]\nkind = \"all-reduce\"\nsize = \"40packets\"\nrepeat = 3\ncompute = \"1ms\"\n";
    let records = run(&format!("{STAR}{workload}"));
    assert_eq!((records.flows.id.len(), records.totals.finished_flows), (3 * 24, 3 * 24));
    // The handshake crosses two links each way. A chunk of ten packets then takes eleven transmissions and two links.
    let (handshake, chunk) = (4 * 1_320_000, 11 * 12_000_000 + 2 * 1_000_000);
    for round in 0..3 {
        let took = completion_ps(&records, round);
        let least = 6 * (handshake + chunk);
        // Acknowledgments and handshakes wait for data packets at the same links.
        assert!((least..least + 6 * 4 * 12_000_000).contains(&took), "round {round}: {took} {least}");
    }
    let first_of = |round| records.flows.request.iter().position(|&request| request == round).expect("a flow");
    let last = records.flows.finish_ps[..first_of(1)].iter().max().expect("a flow");
    assert_eq!(records.flows.start_ps[first_of(1)], last + 1_000_000_000);
}

#[test]
fn a_tree_and_an_all_to_all_complete_and_repeat_bit_for_bit() {
    for workload in [
        "kind = \"all-reduce\"\nalgorithm = \"tree\"\nsize = \"100kB\"\nconnections = \"reused\"\nrepeat = 4\n",
        "kind = \"all-to-all\"\nsize = \"100kB\"\nrepeat = 4\nhosts = [\"h1\", \"h3\", \"h4\"]\n",
    ] {
        let text = format!("{STAR}[workload]\n{workload}");
        let records = run(&text);
        let rounds: Vec<_> = (0..4).map(|round| completion_ps(&records, round)).collect();
        assert_eq!(records.totals.finished_flows, 24, "{workload}");
        // At least 100 kB cross one link in each round, and twice two links in a tree.
        assert!(rounds.iter().all(|&ps| ps > 800_000_000), "{rounds:?}");
        assert_eq!(records.flows, run(&text).flows);
    }
}

/// The second and third workload wait for both flows of the first; their starts count from then.
#[test]
fn a_workload_waits_for_all_flows_of_those_that_it_names() {
    let bulk = |keys: &str| format!("[[workload]]\nkind = \"bulk\"\n{keys}\n");
    let text = [
        STAR.to_owned(),
        bulk("name = \"load\"\npairs = [[\"h1\", \"h2\"], [\"h3\", \"h2\"]]\nsize = \"100kB\"\ngap = \"3ms\""),
        bulk("after = [\"load\"]\npairs = [[\"h2\", \"h4\"]]\nsize = \"1kB\"\nstart = \"5ms\"\nname = \"then\""),
        bulk("after = [\"load\", \"then\"]\npairs = [[\"h4\", \"h1\"]]\nsize = \"1kB\"\nflows = 2\ngap = \"1ms\""),
    ];
    let flows = run(&text.concat()).flows;
    let load = flows.finish_ps[0].max(flows.finish_ps[1]);
    assert_eq!(flows.start_ps[2], load + 5_000_000_000);
    assert_eq!(flows.start_ps[3..], [flows.finish_ps[2], flows.finish_ps[2] + 1_000_000_000]);
}

#[test]
fn workloads_that_can_never_start_are_refused() {
    let refuse = |tables: &[&str]| {
        let tables: String = tables.iter().map(|keys| format!("[[workload]]\nkind = \"bulk\"\n{keys}\n")).collect();
        let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
        match Scenario::parse(&format!("{STAR}{tables}"), &source, &[]) {
            Err(error) => error.to_string().split_once(": ").map(|(_, rest)| rest.to_owned()).expect("a place"),
            Ok(_) => panic!("{tables}"),
        }
    };
    let sized = "size = \"1kB\"\n";
    let named = |name: &str, after: &str| format!("{sized}name = \"{name}\"\nafter = [{after}]");
    assert_eq!(
        refuse(&[&named("a", "\"c\""), &named("b", "\"a\""), &named("c", "\"b\"")]),
        "workload.0.after = [\"c\"]: after leads in a circle: `a` after `c` after `b` after `a`; allowed: nothing that waits \
         for itself"
    );
    assert_eq!(
        refuse(&[&named("a", "\"b\"")]),
        "workload.0.after.0 = \"b\": no such workload; allowed: a; did you mean \"a\"?"
    );
    assert_eq!(
        refuse(&["after = [\"b\"]"]),
        "workload.0.after.0 = \"b\": no such workload; allowed: none, as no workload has a name"
    );
    assert_eq!(
        refuse(&[&named("a", ""), &named("a", "")]),
        "workload.1.name = \"a\": another workload has this name; allowed: each name once"
    );
    assert_eq!(
        refuse(&["name = \"a\"", "after = [\"a\"]"]),
        "workload.1.after.0 = \"a\": a workload without end; allowed: one whose flows have sizes, other than web-users"
    );
}
