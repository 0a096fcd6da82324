//! Web users: a closed loop, alone and together with other flows.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::{Path, PathBuf};

/// The records of a run, and the names of its nodes.
fn run(text: &str) -> (Records, Vec<String>) {
    let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
    let scenario = Scenario::parse(text, &source, &[]).unwrap_or_else(|error| panic!("{error}"));
    let simulation = scenario.simulate().unwrap_or_else(|error| panic!("{error}"));
    (simulation.run().expect("the laws hold"), scenario.node_names())
}

/// A path of 10 Mb/s, on which objects take some time. Pauses are short.
const SLOW: &str = r#"
duration = "20s"
[topology]
kind = "dumbbell"
pairs = 3
access_rate = "100Mbps"
bottleneck_rate = "10Mbps"
bottleneck_delay = "5ms"
[scheme.tcp]
controller = "newreno"
[[workload]]
kind = "web-users"
pairs = [["left0", "right0"], ["left1", "right1"]]
users = 1
largest_file = "1MB"
active_off_scale = "10ms"
inactive_off_least = "20ms"
"#;

/// With one user per client, the objects of a client never overlap. Only pauses separate them.
#[test]
fn a_user_has_one_object_at_a_time_also_next_to_other_workloads() {
    let beside = "[[workload]]\nkind = \"bulk\"\npairs = [[\"left2\", \"right2\"]]\n\
                  [[workload]]\nkind = \"poisson\"\nload = 0.1\nsources = [\"left2\"]\nsizes = { kind = \"rc3\" }\n";
    for text in [SLOW.to_owned(), format!("{SLOW}{beside}")] {
        let (records, names) = run(&text);
        let flows = &records.flows;
        assert!(flows.start_ps.is_sorted());
        for [server, client] in [["left0", "right0"], ["left1", "right1"]] {
            let own: Vec<_> = (0..flows.id.len()).filter(|&row| names[flows.src[row] as usize] == server).collect();
            assert!(own.len() > 50, "{server}: {} objects", own.len());
            assert!(own.iter().all(|&row| names[flows.dst[row] as usize] == client));
            for two in own.windows(2) {
                let (complete, next) = (flows.finish_ps[two[0]], flows.start_ps[two[1]]);
                assert!(complete < next, "{server}: {complete} ps, {next} ps");
            }
            // A pause in a page is 9 ms on average, and 60 ms after it; the longest of all may be seconds.
            let mut pauses: Vec<_> =
                own.windows(2).map(|two| flows.start_ps[two[1]] - flows.finish_ps[two[0]]).collect();
            pauses.sort_unstable();
            assert!(pauses[pauses.len() / 4] < 15_000_000_000, "{server}: {} ps", pauses[pauses.len() / 4]);
        }
    }
}

#[test]
fn users_on_a_congested_path_ask_for_less() {
    let asked = |rate: &str| {
        let text = SLOW.replace("users = 1", "users = 30").replace("10Mbps", rate);
        run(&text).0.totals.flows
    };
    let (narrow, wide) = (asked("10Mbps"), asked("100Mbps"));
    assert!(narrow * 2 < wide, "{narrow} and {wide} objects");
}

/// Objects may be of several schemes and classes, and written in pieces: the user waits for the last byte.
#[test]
fn objects_may_be_of_a_mix_and_written_in_pieces() {
    let text = SLOW.replace("[[workload]]", "[scheme.cubic]\ncontroller = \"cubic\"\n[[workload]]").replace(
        "users = 1",
        "users = 1\nmix = { tcp = 0.5, cubic = 0.5 }\ntraffic_classes = [{ name = \"small\", below = \"20KB\" }, \
         { name = \"large\" }]\nwrites = { first = \"10KB\", then = \"10KB\", every = \"20ms\" }",
    );
    let flows = run(&text).0.flows;
    let count = |scheme: u16| flows.scheme.iter().filter(|&&given| given == scheme).count();
    assert!(count(0) > 20 && count(1) > 20, "{} and {}", count(0), count(1));
    for (row, &size) in flows.size_bytes.iter().enumerate() {
        assert_eq!(flows.traffic_class[row], u16::from(size >= 20_000));
    }
    for client in [flows.dst[0], flows.dst[1]] {
        let own: Vec<_> = (0..flows.id.len()).filter(|&row| flows.dst[row] == client).collect();
        assert!(own.windows(2).all(|two| flows.finish_ps[two[0]] < flows.start_ps[two[1]]));
    }
}

/// The cross traffic of the RAPID paper: its throughput in Table VI without RAPID, and the median of SURGE's files.
/// That is the median of the body, corrected for the tail: 0.93 Phi((ln x - 9.357) / 1.318) = 1/2 at x = 13,115 bytes.
#[test]
fn the_web_users_of_the_rapid_scenario_come_near_the_papers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/rapid-web.toml");
    let overrides = ["duration=4s", "seed=3"].map(str::to_owned);
    let scenario = Scenario::load(&path, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let simulation = scenario.simulate().unwrap_or_else(|error| panic!("{error}"));
    let records = simulation.run().expect("the laws hold");
    let flows = &records.flows;
    let gbps = flows.delivered_bytes.iter().sum::<u64>() as f64 * 8.0 / 4e9;
    assert!((gbps / 2.42 - 1.0).abs() < 0.15, "{gbps} Gb/s");
    let mut sizes = flows.size_bytes.clone();
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2] as f64;
    assert!((median / 13_115.0 - 1.0).abs() < 0.05, "{median} bytes");
    let finished = (0..flows.id.len()).filter(|&row| flows.finish_ps[row] != u64::MAX);
    let mut took_ms: Vec<_> = finished.map(|row| (flows.finish_ps[row] - flows.start_ps[row]) as f64 / 1e9).collect();
    took_ms.sort_unstable_by(f64::total_cmp);
    for (share, paper_ms) in [(0.05, 0.42), (0.1, 0.54), (0.5, 1.31), (0.9, 4.01), (0.95, 5.92)] {
        let ms = took_ms[(share * took_ms.len() as f64) as usize];
        assert!((ms / paper_ms - 1.0).abs() < 0.25, "{share}: {ms} ms, not {paper_ms}");
    }
}
