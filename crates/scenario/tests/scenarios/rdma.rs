//! Connections without a handshake (`transport.mode = "rdma"`), with go-back-N or selective repair.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::PathBuf;

/// Eight hosts that send to the first of nine at once, over a queue of 30 packets.
const INCAST: &str = r#"
duration = "1s"
[topology]
kind = "star"
hosts = 9
rate = "1Gbps"
delay = "5us"
[queue]
limit = "30packets"
[transport]
mode = "rdma"
initial_rto = "5ms"
min_rto = "5ms"
[scheme.x]
controller = "constant"
window = 20
[[workload]]
kind = "bulk"
scheme = "x"
pairs = "incast"
size = "500kB"
"#;

fn parse(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    let source = Source { file: "x.toml".to_owned(), folder: PathBuf::from(".") };
    Scenario::parse(text, &source, &overrides).map_err(|error| error.to_string())
}

fn run(overrides: &[&str]) -> Records {
    parse(INCAST, overrides).expect("a scenario").simulate().expect("a run").run().expect("the laws hold")
}

#[test]
fn the_first_packet_leaves_without_a_handshake() {
    let one = ["workload.0.pairs=[[\"h2\",\"h1\"]]", "workload.0.size=1460B"];
    let completion = |mode: &str| {
        let records = run(&[&one[..], &[&format!("transport.mode={mode}")]].concat());
        assert_eq!(records.flows.finish_ps[0] - records.flows.start_ps[0], records.flows.ideal_ps[0]);
        records.flows.ideal_ps[0]
    };
    // 1500 bytes take 12 us on each of two cables, and each cable has 5 us. Packets of the handshake have 40 bytes.
    let (data_ps, handshake_ps) = (34_000_000, 2 * 2 * (5_000_000 + 320_000));
    assert_eq!(completion("rdma"), data_ps);
    assert_eq!(completion("tcp"), data_ps + handshake_ps);
}

#[test]
fn go_back_n_repeats_more_than_selective_repair_and_nothing_on_lossless_links() {
    let resent = |overrides: &[&str]| {
        let records = run(overrides);
        assert_eq!(records.totals.finished_flows, 8, "{overrides:?}");
        records.flows.retransmissions.iter().sum::<u64>()
    };
    let (back, selective) = (resent(&[]), resent(&["transport.rdma_recovery=selective"]));
    assert!(back > 2 * selective && selective > 50, "{back} {selective}");
    assert_eq!(resent(&["link={select=\"all\", pfc={xoff=\"15kB\"}}", "nic.full=wait"]), 0);
}

#[test]
fn settings_that_need_a_handshake_or_order_are_refused_and_sprayed_packets_are_a_warning() {
    for (overrides, expected) in [
        (&["transport.ecn=accurate", "queue.mark_at=5packets"][..], "is negotiated in a handshake"),
        (&["scheme.x={controller=\"rcp\"}", "queue.rcp={}"][..], "gets its first rate in a handshake"),
        (&["scheme.x={controller=\"rc3\"}"][..], "a receiver with go-back-N drops these segments"),
    ] {
        let message = parse(INCAST, overrides).expect_err("a mistake");
        assert!(message.contains(expected), "{message}");
    }
    parse(INCAST, &["scheme.x={controller=\"rc3\"}", "transport.rdma_recovery=selective"]).expect("in any order");
    let spray = ["routing=spray", "topology={kind=\"spine-leaf\", leaves=3, spines=2, servers=2}"];
    let scenario = parse(INCAST, &spray).expect("a scenario");
    let warns = |text: &str| scenario.warnings().iter().any(|warning| warning.contains(text));
    assert!(warns("drop overtaken packets") && !warns("three later arrivals"), "{:?}", scenario.warnings());
    let idle = parse(INCAST, &["transport.prr=true", "transport.syn_timeout=3s"]).expect("a scenario");
    let reasons = ["losses are repaired by go-back-N", "connections of mode = \"rdma\" have no handshake"];
    assert!(reasons.iter().all(|reason| idle.warnings().iter().any(|warning| warning.contains(reason))));
}
