//! A log of packets from end to end: times of a paced flow, with and without noisy hosts.

use sparelane_scenario::{Data, Results, Scenario, Source, packet_columns};
use sparelane_sim::PacketTable;

/// Packets of 1000 bytes on the wire, one every 8 us, over two cables of 10 Gb/s and 10 us.
const PACED: &str = r#"
duration = "100ms"

[topology]
kind = "dumbbell"
pairs = 1
access_rate = "10Gbps"
access_delay = "5us"
bottleneck_rate = "10Gbps"
bottleneck_delay = "10us"

[transport]
mss = "960B"

[scheme.paced]
controller = "constant"
window = 1000
pace = "1Gbps"

[workload]
kind = "bulk"
scheme = "paced"
size = "2MB"

[packets]
from = "1ms"
count = 200
"#;

fn results(text: &str, overrides: &[&str]) -> Results {
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    let source = Source { file: "x.toml".to_owned(), folder: ".".into() };
    let scenario = Scenario::parse(text, &source, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let records = scenario.simulate().expect("a run").run().expect("lawful physics");
    Results::new(&scenario, records)
}

fn packets(overrides: &[&str]) -> PacketTable {
    results(PACED, overrides).records.packets
}

fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// The gaps between successive rows, picoseconds.
fn gaps(times_ps: &[u64]) -> Vec<u64> {
    times_ps.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn a_paced_flow_has_its_gaps_from_being_due_to_the_far_end() {
    let log = packets(&[]);
    assert_eq!(log.segment.len(), 200);
    assert!(log.sent_ps[0] >= 1_000_000_000 && log.sent_ps[0] < 1_008_000_000, "{}", log.sent_ps[0]);
    assert!(
        log.segment.windows(2).all(|pair| pair[1] == pair[0] + 1) && log.is_retransmission.iter().all(|&again| !again)
    );
    for times_ps in [&log.due_ps, &log.sent_ps, &log.departed_ps, &log.arrived_ps] {
        assert_eq!(gaps(times_ps), [8_000_000; 199]);
    }
    for row in 0..200 {
        // 0.8 us on each of three cables, and 20 us on the way.
        assert_eq!(log.departed_ps[row] - log.sent_ps[row], 800_000);
        assert_eq!(log.arrived_ps[row] - log.sent_ps[row], 22_400_000);
    }
    assert_eq!(log.stamped_ps, [u64::MAX; 200], "nobody asks for receive times");
}

#[test]
fn a_late_timer_shows_between_due_and_sent() {
    let log = packets(&["host.timer_error=2us"]);
    assert_eq!(gaps(&log.due_ps), [8_000_000; 199], "the pace holds");
    let late: Vec<f64> = log.due_ps.iter().zip(&log.sent_ps).map(|(due, sent)| us(sent - due)).collect();
    let mean_us = late.iter().sum::<f64>() / 200.0;
    assert!((1.5..2.5).contains(&mean_us), "{mean_us} us");
}

#[test]
fn a_lost_packet_has_no_arrival_and_its_retransmission_has_a_row() {
    let drop = r#"drop=[{from="west", to="east", flow=0, segments=[150]}]"#;
    let log = packets(&[
        drop,
        "scheme.paced={controller='newreno', initial_window=1000}",
        "packets.from=0s",
        "packets.count=1000000",
    ]);
    let rows: Vec<usize> = (0..log.segment.len()).filter(|&row| log.segment[row] == 150).collect();
    let [first, again] = rows[..] else { panic!("{rows:?}") };
    assert_eq!((log.is_retransmission[first], log.is_retransmission[again]), (false, true));
    assert_eq!(log.arrived_ps[first], u64::MAX);
    assert!(log.arrived_ps[again] > log.sent_ps[again] && log.arrived_ps[again] != u64::MAX);
    assert!(log.departed_ps[first] != u64::MAX, "it was lost later");
    assert_eq!(log.due_ps, vec![u64::MAX; log.segment.len()], "nothing paced it");
    assert_eq!(log.arrived_ps.iter().filter(|&&ps| ps == u64::MAX).count(), 1);
}

#[test]
fn timestamps_equal_those_in_acknowledgments_and_arrivals_are_before_interrupts() {
    let rapid = PACED.replace(
        "controller = \"constant\"\nwindow = 1000\npace = \"1Gbps\"",
        "controller = \"rapid\"\ninitial_rate = \"100Mbps\"",
    );
    let noise = ["host.interrupt_after=50us", "host.timestamp_clock=1us", "transport.delayed_ack=true"];
    let log = results(&rapid, &noise).records.packets;
    let rows = log.segment.len();
    assert!(rows == 200 && log.due_ps.iter().all(|&due| due != u64::MAX));
    let stamped: Vec<usize> = (0..rows).filter(|&row| log.stamped_ps[row] != u64::MAX).collect();
    assert!((90..=110).contains(&stamped.len()), "{} of {rows} stamped", stamped.len());
    let mut waited_us: f64 = 0.0;
    for &row in &stamped {
        assert_eq!(log.stamped_ps[row] % 1_000_000, 0);
        let after_us = us(log.stamped_ps[row] + 1_000_000 - log.arrived_ps[row]);
        assert!((0.0..51.1).contains(&after_us), "{after_us} us");
        waited_us = waited_us.max(after_us);
    }
    assert!(waited_us > 40.0, "{waited_us} us at most");
}

#[test]
fn the_table_has_a_row_for_each_packet_and_counts_in_the_digest() {
    let with = results(PACED, &[]);
    let table = packet_columns(&with);
    let names: Vec<&str> = table.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["segment", "is_retransmission", "due_s", "sent_s", "departed_s", "arrived_s", "stamped_s"];
    assert_eq!(names, expected);
    let Data::F64(sent) = &table[3].1.data else { panic!("{table:?}") };
    assert_eq!(sent.len(), 200);
    assert_ne!(with.digest, results(PACED, &["packets.count=199"]).digest);
    let without = PACED.split("[packets]").next().expect("a part");
    assert!(results(without, &[]).records.packets.segment.is_empty());
}
