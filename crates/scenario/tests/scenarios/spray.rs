//! Packet spraying: `routing = "spray"` and `"spray-round-robin"`.

use crate::run;
use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::PathBuf;

/// Two leaves with four spines between them, all at 1 Gb/s.
fn text(routing: &str, rest: &str) -> String {
    format!(
        "duration = \"200ms\"\nrouting = \"{routing}\"\n[topology]\nkind = \"spine-leaf\"\nleaves = 2\nspines = 4\n\
         servers = 4\nserver_rate = \"1Gbps\"\nspine_rate = \"1Gbps\"\n[queue]\nlimit = \"100packets\"\n\
         [transport]\nrack_tlp = true\nadaptive_reordering = true\nundo_spurious = true\n\
         [scheme.tcp]\ncontroller = \"newreno\"\n{rest}"
    )
}

/// The packets that left each link from one node to others whose names start alike.
fn carried(text: &str, records: &Records, from: &str, to: &str) -> Vec<u64> {
    let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
    let names = Scenario::parse(text, &source, &[]).expect("a scenario").node_names();
    let links = &records.links;
    let rows = (0..links.from.len())
        .filter(|&row| names[links.from[row] as usize] == from && names[links.to[row] as usize].starts_with(to));
    rows.map(|row| links.sent_packets[row]).collect()
}

const ONE_FLOW: &str = "[workload]\nkind = \"bulk\"\npairs = [[\"leaf1_h1\", \"leaf2_h1\"]]\nsize = \"10MB\"\n";

#[test]
fn packets_of_a_flow_take_all_paths_alike_in_both_directions() {
    let text = text("spray", ONE_FLOW);
    let records = run(&text);
    assert_eq!(records.totals.finished_flows, 1);
    for leaf in ["leaf1", "leaf2"] {
        let carried = carried(&text, &records, leaf, "spine");
        let (least, most, sum) =
            (carried.iter().min().expect("links"), carried.iter().max().expect("links"), carried.iter().sum::<u64>());
        assert_eq!(carried.len(), 4, "{carried:?}");
        // Binomial: 6,850 packets, a quarter each, with a standard deviation of 36.
        assert!(sum > 6_800 && most - least < 6 * 36, "{leaf}: {carried:?}");
    }
    assert_eq!(run(&text).flows, records.flows);
}

#[test]
fn packets_in_turn_take_each_path_equally_often() {
    let text = text("spray-round-robin", ONE_FLOW);
    let records = run(&text);
    assert_eq!(records.totals.finished_flows, 1);
    for leaf in ["leaf1", "leaf2"] {
        let carried = carried(&text, &records, leaf, "spine");
        let (least, most) = (carried.iter().min().expect("links"), carried.iter().max().expect("links"));
        // The handshake takes the first path, and the last cycle may be incomplete.
        assert!(carried.iter().sum::<u64>() > 6_800 && most - least <= 3, "{leaf}: {carried:?}");
    }
    // Several threads give the same result: such runs stay in one domain.
    let threads = format!("threads = 3\n{text}");
    assert_eq!((run(&text).flows, run(&threads).flows), (records.flows.clone(), records.flows));
}

/// Without spraying, both flows of a pair of leaves may share a spine. Sprayed, they fill the receivers' links.
#[test]
fn sprayed_flows_share_the_core_evenly() {
    let pairs: Vec<_> = (1..=4).map(|host| format!("[\"leaf1_h{host}\", \"leaf2_h{host}\"]")).collect();
    let rest = format!("[workload]\nkind = \"bulk\"\npairs = [{}]\nsize = \"5MB\"\n", pairs.join(", "));
    let last = |routing| run(&text(routing, &rest)).flows.finish_ps.iter().copied().max().expect("flows");
    let (spread, sprayed) = (last("ecmp"), last("spray"));
    // 5 MB take 41 ms on a free path, and twice that on a shared one.
    assert!(spread > 75_000_000_000, "{spread}");
    assert!(sprayed < 60_000_000_000, "{sprayed}");
}

#[test]
fn a_scheme_that_does_not_tolerate_reordering_is_a_warning() {
    let warnings = |overrides: &[&str]| {
        let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
        let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
        let scenario = Scenario::parse(&text("spray", ONE_FLOW), &source, &overrides).expect("a scenario");
        scenario.warnings().to_vec()
    };
    assert_eq!(warnings(&[]), [""; 0]);
    let (rack, adaptive) = ("transport.rack_tlp=false", "transport.adaptive_reordering=false");
    for (routing, shown) in [("routing=spray", "spray"), ("routing=spray-round-robin", "spray-round-robin")] {
        let warnings = warnings(&[rack, adaptive, routing]);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let expected = format!("routing = \"{shown}\" lets packets overtake each other, and scheme tcp ");
        assert!(warnings[0].starts_with(&expected), "{warnings:?}");
    }
}
