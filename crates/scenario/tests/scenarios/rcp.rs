//! RCP from end to end: routers compute rates, and hosts obey them on the wire.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::Path;

const MS: u64 = 1_000_000_000;
const FAIR_BPS: f64 = 20e6;

fn run(overrides: &[&str]) -> Records {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/rcp-dumbbell.toml");
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::load(&path, &overrides).unwrap_or_else(|error| panic!("{error}"));
    scenario.simulate().expect("a run").run().expect("lawful physics")
}

/// The samples of `quantity` at one probe, with their time in picoseconds.
fn series(records: &Records, probe: u32, quantity: &str) -> Vec<(u64, f64)> {
    let series = &records.series;
    let of = |&row: &usize| series.probe[row] == probe && series.quantity[row] == quantity;
    (0..series.time_ps.len()).filter(of).map(|row| (series.time_ps[row], series.value[row])).collect()
}

fn between(series: &[(u64, f64)], from_ps: u64, to_ps: u64) -> Vec<f64> {
    let values: Vec<_> =
        series.iter().filter(|(at, _)| (from_ps..to_ps).contains(at)).map(|(_, value)| *value).collect();
    assert!(values.len() > 10, "{} samples from {from_ps} to {to_ps}", values.len());
    values
}

/// The average round-trip time starts at 200 ms and falls to 40 ms as slowly as in ns-2, which takes two and a half
/// seconds.
#[test]
fn long_flows_converge_to_equal_shares_without_a_queue() {
    let records = run(&["duration=8s"]);
    let router = series(&records, 6, "rcp_rate_bps");
    for rate in between(&router, 3_000 * MS, 8_000 * MS) {
        assert!((rate / FAIR_BPS - 1.0).abs() < 0.01, "{rate}");
    }
    for flow in 0..5 {
        for rate in between(&series(&records, flow, "rate_bps"), 3_000 * MS, 8_000 * MS) {
            assert!((rate / FAIR_BPS - 1.0).abs() < 0.01, "flow {flow}: {rate}");
        }
    }
    let backlog = between(&series(&records, 6, "backlog_bytes"), 3_000 * MS, 8_000 * MS);
    assert!(backlog.iter().all(|&bytes| bytes <= 10.0 * 1500.0), "{backlog:?}");
    assert_eq!(records.flows.retransmissions.iter().sum::<u64>(), 0);
    // The goodput equals the allowed rate: from 2 s on within 3 % of the fair rate, for 6/8 of 8 s.
    for &bytes in &records.flows.delivered_bytes[..5] {
        let least = FAIR_BPS / 8.0 * 6.0 * 1460.0 / 1500.0 * 0.98;
        assert!((least..FAIR_BPS / 8.0 * 8.0).contains(&(bytes as f64)), "{bytes} bytes, least {least}");
    }
}

/// 60 packets of 1500 bytes at 20 Mb/s take 36 ms; the handshake and half a round trip for the last one take 60 ms. The
/// rest of the bound allows for a queue while there are six flows. TCP needs three round trips more.
#[test]
fn a_short_flow_has_its_fair_rate_in_its_first_round_trip() {
    let rates = |records: &Records| series(records, 5, "rate_bps");
    let records = run(&["duration=9s"]);
    let (at, rate) = rates(&records)[0];
    assert!(at <= 8_050 * MS && (rate / FAIR_BPS - 1.0).abs() < 0.01, "{rate} at {at}");
    let took = |records: &Records| records.flows.finish_ps[5] - records.flows.start_ps[5];
    let rcp = took(&records);
    assert!((95 * MS..110 * MS).contains(&rcp), "{rcp}");
    let tcp = run(&["duration=9s", "workload.1.scheme=tcp"]);
    assert!(rates(&tcp).is_empty());
    assert!(took(&tcp) > 140 * MS, "{}", took(&tcp));
}

/// Alone from the start: the rate is still 5 Mb/s when the SYN arrives after 1 ms. That is a packet of 1500 bytes every
/// 2.4 ms; the interface alone would send one every 12 us.
#[test]
fn the_first_packets_are_spaced_by_the_rate_that_the_handshake_brought() {
    let only_flow = "workload=[{kind=\"bulk\", scheme=\"rcp\", pairs=[[\"left0\", \"right0\"]], size=\"20packets\"}]";
    let records =
        run(&["duration=80ms", only_flow, "sample={interval=\"10us\", flows=[0], queues=[[\"west\", \"east\"]]}"]);
    assert_eq!(series(&records, 0, "rate_bps")[0].1, 5e6);
    let in_flight = series(&records, 0, "in_flight_bytes");
    let sent: Vec<u64> = in_flight.windows(2).filter(|pair| pair[1].1 > pair[0].1).map(|pair| pair[1].0).collect();
    // The first acknowledgment arrives after 40 ms; two samples of 10 us are the error of a gap.
    assert!(sent.len() >= 16, "{sent:?}");
    for pair in sent[..16].windows(2) {
        assert!((pair[1] - pair[0]).abs_diff(2_400_000_000) <= 20_000_000, "{sent:?}");
    }
}

/// Two flows of one host request more than its interface carries. With a rate there, too, they share it without a
/// queue.
#[test]
fn an_interface_that_computes_a_rate_is_shared_as_a_router_is() {
    let text = |nic: &str| {
        format!(
            "duration = \"4s\"\n[topology]\nkind = \"dumbbell\"\npairs = 2\naccess_rate = \"20Mbps\"\n\
             bottleneck_rate = \"100Mbps\"\n[queue.rcp]\n{nic}[scheme.rcp]\ncontroller = \"rcp\"\n[workload]\n\
             kind = \"bulk\"\nscheme = \"rcp\"\npairs = [[\"left0\", \"right0\"], [\"left0\", \"right1\"]]\n\
             size = \"unlimited\"\n[sample]\ninterval = \"10ms\"\nqueues = [[\"left0\", \"west\"]]\n"
        )
    };
    let backlog = |nic: &str| {
        let scenario = Scenario::parse(&text(nic), &Source::at(Path::new("x.toml")), &[]).expect("a scenario");
        let records = scenario.simulate().expect("a run").run().expect("lawful physics");
        let late = between(&series(&records, 0, "backlog_bytes"), 3_000 * MS, 4_000 * MS);
        late.into_iter().fold(0.0, f64::max)
    };
    assert!(backlog("[nic.rcp]\n") <= 10.0 * 1500.0);
    assert!(backlog("") > 100.0 * 1500.0);
}

/// Twenty flows join one on a link of 200 Mb/s. Each learns the whole rate of the link from its SYN, and sends at it for
/// a round trip of 55 ms, until the first acknowledgment brings a lower one: 20 * 200 Mb/s * 55 ms = 27.5 MB. If routers
/// wrote the rate on arrival, the lower rate would wait behind this queue, which would grow to 269 MB.
#[test]
fn flows_that_join_at_the_line_rate_leave_the_queue_of_one_round_trip() {
    let joined = |n: u32| format!("[\"left{n}\", \"right{n}\"]");
    let pairs: Vec<_> = (1..21).map(joined).collect();
    let workload = format!(
        "workload=[{{kind=\"bulk\", scheme=\"rcp\", pairs=[[\"left0\", \"right0\"]]}}, \
         {{kind=\"bulk\", scheme=\"rcp\", start=\"2s\", flows=20, pairs=[{}]}}]",
        pairs.join(", ")
    );
    let records = run(&[
        "duration=5s",
        "topology={kind=\"dumbbell\", pairs=21, access_rate=\"200Mbps\", access_delay=\"100us\", \
         bottleneck_rate=\"200Mbps\", bottleneck_delay=\"27300us\"}",
        "queue={limit=\"400MB\", rcp={}}",
        &workload,
        "sample={interval=\"5ms\", queues=[[\"west\", \"east\"]]}",
    ]);
    let backlog = series(&records, 0, "backlog_bytes");
    let most = between(&backlog, 0, 5_000 * MS).into_iter().fold(0.0, f64::max);
    assert!((most / 27.5e6 - 1.0).abs() < 0.1, "{most} bytes");
    let last = between(&backlog, 4_900 * MS, 5_000 * MS);
    assert!(last.iter().all(|&bytes| bytes < 0.05 * 27.5e6), "{last:?}");
}

/// The queue counts packets by another way if it writes rates. Without RCP's flows, nothing may change.
#[test]
fn a_router_that_computes_rates_changes_nothing_for_flows_that_do_not_ask() {
    let of_tcp = |queue: &str| {
        let records = run(&[
            "duration=2s",
            "scheme={tcp={controller=\"newreno\"}}",
            "workload.0.scheme=tcp",
            "workload.1.scheme=tcp",
            queue,
            "sample={flows=[0]}",
        ]);
        sparelane_scenario::digest(&records)
    };
    assert_eq!(of_tcp("queue={limit=\"1bdp\", rcp={}}"), of_tcp("queue={limit=\"1bdp\"}"));
}
