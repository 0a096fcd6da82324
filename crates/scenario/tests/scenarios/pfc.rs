//! Priority-based flow control (`link.pfc`): pauses of classes in place of drops, and DCQCN above them.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::PathBuf;

/// Eight hosts that send to the first of nine at once, with windows of 100 packets and queues of 30 packets.
fn incast(tables: &str) -> String {
    format!(
        r#"
duration = "100ms"
[topology]
kind = "star"
hosts = 9
rate = "1Gbps"
delay = "1us"
[queue]
limit = "30packets"
kind = "priority"
[nic]
full = "wait"
limit = "1000packets"
kind = "priority"
[transport]
ecn = "dctcp"
min_rto = "10ms"
[scheme.x]
controller = "constant"
window = 100
[[workload]]
kind = "bulk"
scheme = "x"
pairs = "incast"
size = "500kB"
{tables}
"#
    )
}

const PFC: &str = "[[link]]\nselect = \"all\"\npfc = { xoff = \"15kB\" }\n";

fn parse(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/inputs");
    let source = Source { file: "x.toml".to_owned(), folder };
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::parse(text, &source, &overrides).map_err(|error| error.to_string())
}

fn run(text: &str, overrides: &[&str]) -> Records {
    parse(text, overrides).expect("a scenario").simulate().expect("a run").run().expect("the laws hold")
}

fn dropped(records: &Records) -> u64 {
    records.links.dropped_packets.iter().flatten().sum()
}

#[test]
fn a_lossless_class_has_no_drops_and_keeps_the_throughput() {
    let (plain, lossless) = (run(&incast(""), &[]), run(&incast(PFC), &[]));
    assert!(dropped(&plain) > 500);
    assert_eq!(dropped(&lossless), 0);
    assert!(lossless.links.pause_frames.iter().sum::<u64>() > 50);
    let last = |records: &Records| records.flows.finish_ps.iter().copied().max().expect("flows");
    // 4 MB of payload with headers take 32.9 ms at 1 Gb/s.
    assert!((32_800_000_000..33_500_000_000).contains(&last(&lossless)), "{}", last(&lossless));
    assert!(last(&plain) > last(&lossless) + 5_000_000_000);
    // Pauses take turns among the hosts, and the receiver is never paused.
    let paused = |from: u32| {
        let rows = (0..lossless.links.from.len()).filter(|&row| lossless.links.from[row] == from);
        rows.map(|row| lossless.links.paused_ps[row]).sum::<u64>()
    };
    let hosts: Vec<_> = (0..10).map(paused).filter(|&ps| ps > 1_000_000_000).collect();
    assert_eq!(hosts.len(), 8, "{hosts:?}");
}

/// A count never exceeds XOFF plus the computed headroom, so less headroom drops packets, and a warning says so.
#[test]
fn too_little_headroom_is_a_warning_and_drops_packets() {
    let short = incast(&PFC.replace("\"15kB\"", "\"15kB\", headroom = \"1kB\""));
    let scenario = parse(&short, &[]).expect("a scenario");
    let warnings: Vec<_> = scenario.warnings().iter().filter(|warning| warning.contains("lacks headroom")).collect();
    // Two packets, and those that begin while the frame waits for a packet and travels: 12.5 us and 2 us at 1 Gb/s.
    assert_eq!(
        warnings,
        [&"link.0.pfc lacks headroom: after a class of the cable between \"switch\" and \"h9\" has reached xoff, up to \
           4814B may arrive, and it drops packets after 1000B"
            .to_owned()]
    );
    assert!(dropped(&run(&short, &[])) > 0);
    let enough = parse(&incast(PFC), &[]).expect("a scenario");
    assert!(!enough.warnings().iter().any(|warning| warning.contains("headroom")));
}

/// Class 0 is paused for long, but a class that shares the senders' cables is not.
#[test]
fn a_pause_stops_its_own_class_alone() {
    let other = "[scheme.low]\ncontroller = \"constant\"\nwindow = 4\nclass = 3\n[[workload]]\nkind = \"bulk\"\n\
                 scheme = \"low\"\npairs = [[\"h2\", \"h9\"]]\nsize = \"100kB\"\nstart = \"5ms\"\n";
    let finish = |tables: &str| {
        let records = run(&incast(&format!("{tables}{other}")), &[]);
        records.flows.finish_ps[8] - records.flows.start_ps[8]
    };
    let by_class = finish(PFC);
    let all = finish("[[link]]\nselect = \"all\"\npause = { xoff = \"10packets\", xon = \"5packets\" }\n");
    // In the low class, the host sends whenever its cable is free: during the pauses of class 0.
    assert!(by_class * 3 < all, "{by_class} {all}");
}

/// DCQCN gets marks by the ramp, and its hosts wait for room at their interfaces while these are paused.
#[test]
fn dcqcn_completes_an_incast_without_drops() {
    let text = incast(PFC)
        .replace("limit = \"30packets\"\n", "limit = \"30packets\"\nmark_ramp = RAMP\n")
        .replace("RAMP", "{ from = \"5kB\", to = \"20kB\", probability = 0.1 }")
        .replace("size = \"500kB\"", "size = \"4MB\"")
        .replace("100ms", "1s");
    let dcqcn = run(&text, &["scheme.x={controller=\"dcqcn\"}"]);
    assert_eq!((dropped(&dcqcn), dcqcn.totals.finished_flows), (0, 8));
    assert!(dcqcn.links.marked_packets.iter().sum::<u64>() > 100);
    // The default step of 40 Mb/s is 4 % of this line rate, so eight flows overshoot at once. In proportion to the rate,
    // as at 40 Gb/s, the step is 1 Mb/s, and the hosts are hardly paused.
    let step = run(&text, &["scheme.x={controller=\"dcqcn\", r_ai=\"1Mbps\", r_hai=\"10Mbps\"}"]);
    let frames = |records: &Records| records.links.pause_frames.iter().sum::<u64>();
    assert!(frames(&step) * 20 < frames(&dcqcn), "{} {}", frames(&step), frames(&dcqcn));
}

#[test]
fn pauses_that_may_wait_for_each_other_in_a_circle_are_a_warning() {
    let warnings = |topology: &str| {
        let text = format!(
            "duration = \"1ms\"\n[topology]\n{topology}\n[queue]\nlimit = \"100kB\"\n[[link]]\nselect = \"all\"\n\
             pfc = {{ xoff = \"20kB\" }}\n[scheme.x]\ncontroller = \"newreno\"\n[workload]\nkind = \"bulk\"\n\
             pairs = \"next\"\nsize = \"1kB\"\n"
        );
        let scenario = parse(&text, &[]).expect("a scenario");
        scenario.warnings().iter().filter(|warning| warning.contains("deadlock")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        warnings("kind = \"file\"\npath = \"ring.topo\""),
        [
            "pauses may wait for each other for ever (a deadlock): packets wait in a circle of cables, r0 -> r1 -> r2 -> r3 \
          -> r4 -> r0"
        ]
    );
    assert!(warnings("kind = \"spine-leaf\"\nleaves = 3\nspines = 2\nservers = 2").is_empty());
}

#[test]
fn settings_that_contradict_lossless_classes_are_refused() {
    let refuse = |text: &str| match parse(text, &[]) {
        Err(message) => message.split_once(": ").map(|(_, rest)| rest.to_owned()).expect("a place"),
        Ok(_) => panic!("{text}"),
    };
    let pfc = |keys: &str| incast(&format!("[[link]]\nselect = \"all\"\npfc = {{ {keys} }}\n"));
    let switch = format!("{PFC}[switch]\nmemory = \"1MB\"\n");
    let both = format!("{PFC}[[link]]\nselect = \"all\"\npause = {{ xoff = \"9packets\", xon = \"4packets\" }}\n");
    for (text, expected) in [
        (pfc("xoff = \"9kB\", xon = \"9kB\""), "xon is not below xoff; allowed: less than xoff"),
        (pfc("xoff = \"9kB\", classes = []"), "no class; allowed: one or more"),
        (pfc("xon = \"9kB\""), "missing; allowed: a size from 1B"),
        (incast(&both), "other links have pfc; allowed: one of the two kinds of flow control"),
        (incast(&switch), "allowed: one of the two"),
        (incast(PFC).replacen("kind = \"priority\"", "kind = \"codel\"", 1), "cannot be paused"),
        (
            incast("").replacen("limit", "mark_ramp = { from = \"1kB\", to = \"2kB\", probability = 0.5 }\nlimit", 1),
            "no link has pfc; allowed: together with pfc of [[link]], or mark_at",
        ),
    ] {
        let message = refuse(&text);
        assert!(message.contains(expected), "{message}");
    }
}
