//! Flows that reuse connections: `connections = "reused"` of a workload.

use crate::run;
use sparelane_sim::Records;

/// 10 Mb/s with a round trip of 20 ms. A packet of 1500 bytes takes 1.2 ms, one of 40 bytes 32 us.
const PATH: &str = r#"
duration = "20s"
[topology]
kind = "star"
hosts = 3
rate = "10Mbps"
delay = "5ms"
[scheme.tcp]
controller = "newreno"
"#;

/// Ten segments to h1, once a second.
fn bursts(size: &str, rest: &str) -> String {
    format!(
        "{PATH}\n[[workload]]\nkind = \"bulk\"\npairs = [[\"h2\", \"h1\"]]\nflows = 4\ngap = \"1s\"\nsize = \"{size}\"\n{rest}\n"
    )
}

fn completion_us(records: &Records) -> Vec<u64> {
    let ends = records.flows.finish_ps.iter().zip(&records.flows.start_ps);
    ends.map(|(finish, start)| (finish - start) / 1_000_000).collect()
}

#[test]
fn a_flow_on_an_open_connection_needs_no_handshake() {
    let [new, reused] = ["new", "reused"].map(|word| run(&bursts("10packets", &format!("connections = \"{word}\""))));
    // Two links each way: a packet of 40 bytes takes 10.064 ms, and ten of 1500 bytes take 10 ms and eleven times 1.2.
    let (handshake, data) = (2 * 10_064, 10_000 + 11 * 1_200);
    assert_eq!(completion_us(&new), [handshake + data; 4]);
    assert_eq!(completion_us(&reused), [handshake + data, data, data, data]);
    for records in [&new, &reused] {
        assert_eq!(records.flows.ideal_ps.iter().map(|ps| ps / 1_000_000).collect::<Vec<_>>(), completion_us(records));
    }
    assert!(new.flows.connection.is_empty());
    assert_eq!(reused.flows.connection, [0; 4]);
}

/// A scripted drop names a flow and its own segments. It is repaired as on a connection of its own.
#[test]
fn each_flow_has_its_own_bytes_packets_and_losses() {
    let [new, reused] = ["new", "reused"].map(|word| {
        let drop = "[[drop]]\nfrom = \"h2\"\nto = \"switch\"\nflow = 2\nsegments = [3]\n";
        run(&bursts("14600B", &format!("connections = \"{word}\"\n{drop}")))
    });
    let flows = &reused.flows;
    assert_eq!((flows.connection.as_slice(), &flows.delivered_bytes), (&[0; 4][..], &vec![14_600; 4]));
    assert_eq!((&flows.sent_packets[0], &flows.lost_packets), (&new.flows.sent_packets[0], &vec![0, 0, 1, 0]));
    assert_eq!((flows.sent_packets[0][1], flows.sent_packets[0][2] > 10), (10, true));
    assert_eq!((&flows.retransmissions, &flows.timeouts), (&new.flows.retransmissions, &vec![0; 4]));
    let totals = reused.totals;
    assert_eq!((totals.flows, totals.finished_flows, totals.peak_open_flows), (4, 4, 1));
}

/// The window of a connection grows from flow to flow, unless it restarts after idleness.
#[test]
fn the_window_is_kept_between_flows() {
    // The first flow leaves a window above 40 segments, so that each later one is sent at once.
    let completion = |restart: &str| {
        let text = bursts("40packets", "connections = \"reused\"");
        completion_us(&run(&format!("{text}[transport]\nrestart_after_idle = \"{restart}\"\n")))
    };
    let (kept, restarted) = (completion("no"), completion("rfc5681"));
    assert_eq!(kept[1..], [10_000 + 41 * 1_200; 3]);
    // Ten segments take 12 ms, and the first acknowledgment 21 ms: the link waits for each of the first two.
    assert!(restarted[1..].iter().all(|&us| us > kept[1] + 5_000), "{restarted:?} {kept:?}");
}

/// A flow that starts before the last one is complete opens another connection. Later ones take the older first.
#[test]
fn a_busy_connection_is_not_shared() {
    let list = |starts_ms: &[(u64, u64)]| {
        let tables = starts_ms.iter().map(|(ms, packets)| {
            format!("[[workload]]\nkind = \"bulk\"\npairs = [[\"h2\", \"h1\"]]\nstart = \"{ms}ms\"\nsize = \"{packets}packets\"\n")
        });
        tables.collect::<String>()
    };
    // One workload for each flow has pools of their own.
    let apart = run(&format!("{PATH}{}", list(&[(0, 1), (1000, 1)]).replace("size", "connections = \"reused\"\nsize")));
    assert_eq!(apart.flows.connection, [0, 1]);
    let together = run(&format!(
        "{PATH}[[workload]]\nkind = \"bulk\"\npairs = [[\"h2\", \"h1\"]]\nflows = 30\ngap = \"20ms\"\nsize = \"40packets\"\n\
         connections = \"reused\"\n"
    ));
    let flows = &together.flows;
    let (connections, finish, start) = (&flows.connection, &flows.finish_ps, &flows.start_ps);
    for flow in 0..30usize {
        let idle = |connection: u32| {
            let users = (0..flow).filter(|&other| connections[other] == connection);
            users.map(|other| finish[other]).max().is_some_and(|end| end <= start[flow])
        };
        let first_idle =
            (0..flow as u32).filter(|&other| connections[other as usize] == other).find(|&other| idle(other));
        assert_eq!(connections[flow], first_idle.unwrap_or(flow as u32), "flow {flow}");
    }
    assert!(connections.iter().enumerate().any(|(flow, &connection)| connection != flow as u32));
    assert!(connections.iter().skip(1).any(|&connection| connection != 0), "{connections:?}");
}

#[test]
fn pools_are_of_one_pair_of_hosts_and_one_scheme() {
    let records = run(&format!(
        "{PATH}[scheme.other]\ncontroller = \"cubic\"\n[[workload]]\nkind = \"bulk\"\npairs = [[\"h2\", \"h1\"], [\"h3\", \"h1\"], [\"h1\", \"h2\"]]\n\
         flows = 60\ngap = \"200ms\"\nsize = \"10packets\"\nmix = {{ tcp = 0.5, other = 0.5 }}\nconnections = \"reused\"\n"
    ));
    let flows = &records.flows;
    let key = |row: usize| (flows.src[row], flows.dst[row], flows.scheme[row]);
    for row in 0..60 {
        assert_eq!(key(row), key(flows.connection[row] as usize), "flow {row}");
    }
    let opened = (0..60).filter(|&row| flows.connection[row] == row as u32).count();
    assert_eq!(opened, 6, "one connection for each pair and scheme");
}

/// Web users wait for their objects, which arrive in pieces; a class of traffic changes from flow to flow.
#[test]
fn web_users_keep_their_connections() {
    let records = run(&format!(
        "{PATH}[[workload]]\nkind = \"web-users\"\npairs = [[\"h2\", \"h1\"]]\nusers = 3\nlargest_file = \"300KB\"\n\
         active_off_scale = \"10ms\"\ninactive_off_least = \"20ms\"\nconnections = \"reused\"\n\
         traffic_classes = [{{ name = \"small\", below = \"20KB\" }}, {{ name = \"large\" }}]\n\
         writes = {{ first = \"10KB\", then = \"10KB\", every = \"1ms\" }}\n"
    ));
    let flows = &records.flows;
    let opened = (0..flows.id.len()).filter(|&row| flows.connection[row] == row as u32).count();
    assert!(opened <= 3 && flows.id.len() > 100, "{opened} connections for {} objects", flows.id.len());
    for (row, &size) in flows.size_bytes.iter().enumerate() {
        assert_eq!(flows.traffic_class[row], u16::from(size >= 20_000));
        if flows.finish_ps[row] != u64::MAX {
            assert_eq!(flows.delivered_bytes[row], size);
        }
    }
}

/// Series and measurements follow a connection through its flows.
#[test]
fn observers_see_the_connection_and_its_flows() {
    let records = run(&format!(
        "{}[sample]\ninterval = \"10ms\"\nflows = [0, 2]\n[measure]\nfrom = \"1.5s\"\ndelays = true\n",
        bursts("10packets", "connections = \"reused\"")
    ));
    let held: Vec<Vec<_>> = [0u32, 1]
        .map(|probe| {
            let series = &records.series;
            let rows = (0..series.value.len())
                .filter(|&row| series.probe[row] == probe && series.quantity[row] == "held_bytes");
            rows.map(|row| (series.time_ps[row] / 1_000_000_000, series.value[row])).collect()
        })
        .to_vec();
    assert_eq!((held[0].first(), held[0].last()), (Some(&(0, 0.0)), Some(&(20_000, 58_400.0))), "the whole connection");
    assert_eq!(
        (held[1].first(), held[1].last()),
        (Some(&(2_000, 29_200.0)), Some(&(2_990, 43_800.0))),
        "its third flow"
    );
    assert_eq!(records.flows.measured_bytes, [0, 0, 14_600, 14_600]);
    assert_eq!(records.flows.delay_packets, [0, 0, 10, 10]);
}

/// RTCP compares its counter with the weight of the class, which belongs to the flow and not to the connection.
#[test]
fn rtcp_takes_the_weight_of_each_flow() {
    let completions = |weights: &str| {
        let text = bursts("10packets", "connections = \"reused\"")
            .replace("controller = \"newreno\"", &format!("controller = \"rtcp\"\nweights = {weights}\nmin_window = 1\nalpha = 1000\ndelta = 100"))
            .replace("size = \"10packets\"", "sizes = { kind = \"points\", bytes = [14600, 584000], probability = [0.5, 0.5] }\ntraffic_classes = [{ name = \"urgent\", below = \"30KB\" }, { name = \"high-volume\" }]")
            .replace("flows = 4\ngap = \"1s\"", "flows = 12\ngap = \"4s\"")
            .replace("20s", "60s");
        let records = run(&text);
        assert_eq!(records.flows.connection, [0; 12]);
        let large: Vec<_> = (0..12).map(|row| records.flows.size_bytes[row] > 30_000).collect();
        (large, completion_us(&records))
    };
    let (large, base) = completions("{ urgent = 24000, high-volume = 12000 }");
    let (_, heavier) = completions("{ urgent = 24000, high-volume = 24000 }");
    assert!(large.iter().skip(1).any(|&is_large| is_large != large[0]), "{large:?}");
    let changed = (1..12).filter(|&row| large[row] && heavier[row] != base[row]).count();
    assert!(changed > 0, "{base:?} {heavier:?}");
}

/// An RC3 flow on a kept connection, whose sender once had everything reported and then got more data that it may not send:
/// acknowledgments of what was reported are missing, and only its timer brings them.
const REPORTED_AND_THEN_WRITTEN: &str = r#"
duration = "2000s"
seed = 601068
routing = "single-path"
[topology]
kind = "spine-leaf"
spines = 3
leaves = 3
servers = 2
server_rate = "66521376bps"
spine_rate = "1395753bps"
delay = "1322854ps"
[queue]
kind = "priority"
limit = "240169B"
[nic]
kind = "priority"
[[link]]
select = "access"
loss = 0.001
loss_of = "data"
[transport]
preset = "ns-3"
rack_tlp = true
mss = "1206B"
header = "51B"
min_rto = "10817538100ps"
ecn = "l4s"
[[workload]]
kind = "bulk"
pairs = "next"
flows = 5
size = "1236573B"
scheme = "s0"
[[workload]]
kind = "bulk"
pairs = "random"
flows = 4
size = "374358B"
writes = { first = "53B", then = "2429B", every = "18478us" }
scheme = "s0"
connections = "reused"
[[workload]]
kind = "requests"
load = 0.12139332657103512
sizes = { kind = "points", bytes = [1, 1460, 30000], probability = [0.4, 0.4, 0.2] }
clients = ["leaf3_h1"]
servers = ["leaf1_h1"]
fan_out = [{ flows = 1, share = 1.0 }]
end = "57747us"
start = "16672us"
scheme = "s0"
[[drop]]
from = "leaf1"
to = "spine2"
flow = 1
segments = [16, 31, 32, 36, 39]
copies = 1
[[drop]]
from = "leaf2"
to = "spine3"
flow = 0
segments = [3, 6, 13, 23, 28]
copies = 2
[[change]]
at = "2469us"
between = ["leaf2", "leaf2_h2"]
loss = 0.06859926371089474
[[change]]
at = "12044us"
between = ["leaf1", "leaf1_h2"]
down = true
[[change]]
at = "12628us"
between = ["leaf1", "leaf1_h2"]
down = false
[[change]]
at = "17617us"
between = ["spine3", "leaf1"]
rate = "2978746bps"
delay = "879280238ps"
[[change]]
at = "26467us"
between = ["leaf3", "spine3"]
from = "leaf3"
loss = 0.07506207164860618

[scheme.s0]
controller = "rc3"
tail_rate = "unbounded"
tail_burst = 9515
inner = { controller = "veno", initial_window = 160 }
"#;

#[test]
fn rc3_sends_what_is_written_after_everything_was_reported() {
    let totals = run(REPORTED_AND_THEN_WRITTEN).totals;
    assert!(totals.flows > 8 && totals.finished_flows == totals.flows, "{totals:?}");
}
