//! PAUSE on cables (`link.pause`): pauses in place of drops.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::PathBuf;

/// Two constant windows of 60 packets over 50 Mb/s, with queues of 30 packets in routers and of 1000 in hosts.
fn scenario(tables: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let text = format!(
        r#"
duration = "2s"
[topology]
kind = "dumbbell"
pairs = 2
access_rate = "100Mbps"
access_delay = "10us"
bottleneck_rate = "50Mbps"
bottleneck_delay = "1ms"
[queue]
limit = "30packets"
[nic]
limit = "1000packets"
[scheme.x]
controller = "constant"
window = 60
[workload]
kind = "bulk"
{tables}
"#
    );
    let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::parse(&text, &source, &overrides).map_err(|error| error.to_string())
}

fn run(tables: &str) -> Records {
    let scenario = scenario(tables, &[]).expect("a scenario");
    scenario.simulate().expect("a run").run().expect("lawful physics")
}

/// PAUSE with an XOFF of this many packets on the cables of hosts.
fn access(xoff: u64) -> String {
    format!("[link]\nselect = \"access\"\npause = {{ xoff = \"{xoff}packets\", xon = \"10packets\" }}")
}

fn dropped(records: &Records) -> u64 {
    records.links.dropped_packets.iter().flatten().sum()
}

fn lacks_headroom(scenario: &Scenario) -> Vec<&String> {
    scenario.warnings().iter().filter(|warning| warning.contains("lacks headroom")).collect()
}

#[test]
fn pauses_with_headroom_replace_all_drops_and_keep_the_throughput() {
    let (plain, paused) = (run(""), run(&access(20)));
    assert!(dropped(&plain) > 100 && plain.links.pause_frames.is_empty());
    assert_eq!(dropped(&paused), 0);
    assert!(paused.links.pause_frames.iter().sum::<u64>() > 100);
    let sum = |records: &Records| records.flows.delivered_bytes.iter().sum::<u64>();
    assert!(sum(&paused) >= sum(&plain));
    // 50 Mb/s for 2 s, minus the start.
    assert!(sum(&paused) > 11_900_000, "{} bytes", sum(&paused));
}

#[test]
fn the_transmitters_of_hosts_are_silent_for_half_of_the_time() {
    let links = run(&access(20)).links;
    // Two hosts of 100 Mb/s share 50 Mb/s. Windows end some of their silence.
    let silent: Vec<_> = links.paused_ps.iter().filter(|&&ps| ps > 0).collect();
    assert_eq!(silent.len(), 2);
    assert!(silent.iter().all(|&&ps| (500_000_000_000..1_600_000_000_000).contains(&ps)), "{silent:?} ps");
    assert!(links.paused_ps.iter().zip(&links.pause_frames).all(|(&ps, &frames)| (ps > 0) == (frames > 0)));
}

#[test]
fn a_warning_names_the_queue_exactly_if_packets_can_be_dropped() {
    // A frame waits for 120 us at most, takes 5 us, and travels 10 us, as do packets on the wire: 1800 bytes and three
    // packets of each of two hosts.
    for xoff in 20..=24 {
        let given = scenario(&access(xoff), &[]).expect("a scenario");
        assert!(lacks_headroom(&given).is_empty(), "{:?}", given.warnings());
        assert_eq!(dropped(&run(&access(xoff))), 0, "xoff = {xoff}");
    }
    for xoff in [28, 29, 30] {
        let given = scenario(&access(xoff), &[]).expect("a scenario");
        let room = 30 - xoff;
        let warning = format!(
            "link.pause lacks headroom: after the queue of \"west\" towards \"east\" has reached xoff, up to 6 packets \
             may arrive, and it drops packets after {room} packets"
        );
        assert_eq!(lacks_headroom(&given), [&warning]);
        assert_eq!(given.emulation_warnings(), [warning]);
    }
    assert!(dropped(&run(&access(30))) > 0);
}

#[test]
fn without_headroom_packets_that_are_on_their_way_are_dropped() {
    let late = access(29).replace("pause", "delay = \"5ms\"\npause");
    assert_eq!(lacks_headroom(&scenario(&late, &[]).expect("a scenario")).len(), 1);
    assert!(dropped(&run(&late)) > 0);
}

#[test]
fn a_paused_router_passes_the_pause_on_to_hosts() {
    // The core cable is paused by the queue towards a slow host, and then the queue in front of the core pauses hosts.
    let tables = "[[link]]\nselect = \"all\"\npause = { xoff = \"10packets\", xon = \"5packets\" }\n\
                  [[link]]\nselect = \"core\"\ndelay = \"10us\"\nrate = \"100Mbps\"\n\
                  [[link]]\nbetween = [\"east\", \"right0\"]\nrate = \"10Mbps\"";
    let records = run(tables);
    let links = &records.links;
    let paused = links.from.iter().zip(&links.paused_ps).filter(|(_, ps)| **ps > 0).map(|(&from, _)| from);
    // Both hosts on the left and the router "west" were silent; so a slow receiver stops the other pair, too.
    assert_eq!(paused.count(), 3);
    assert_eq!(dropped(&records), 0);
    let delivered = &records.flows.delivered_bytes;
    assert!(delivered.iter().all(|&bytes| bytes < 2_700_000), "{delivered:?} bytes in 2 s");
}

#[test]
fn settings_that_pause_cannot_have_are_refused() {
    let access = "[link]\nselect = \"access\"";
    for (keys, overrides, message) in [
        (
            "xoff = \"10packets\", xon = \"10packets\"",
            &[][..],
            "x.toml:21: link.pause.xon = \"10packets\": not below xoff; allowed: less than xoff",
        ),
        (
            "xoff = \"10packets\", xon = \"3kB\"",
            &[],
            "x.toml:21: link.pause.xon = \"3kB\": xoff has another unit; allowed: both in bytes or in packets",
        ),
        (
            "xoff = \"31packets\", xon = \"3packets\"",
            &[],
            "x.toml:21: link.pause: no queue that could order a pause holds as much as xoff; allowed: up to a queue's \
             limit",
        ),
        (
            "xoff = \"10packets\", xon = \"3packets\", quanta = 19",
            &[],
            "x.toml:21: link.pause.quanta = 19: repeated frames would take more than a tenth of the cable; allowed: \
             from 20",
        ),
        (
            "xoff = \"10packets\", xon = \"3packets\"",
            &["queue.kind=codel"],
            "x.toml:21: link.pause: the queue of \"west\" towards \"left0\" is codel, which decides by time or by chance \
             and cannot be paused or order a pause; allowed: fifo or priority at both ends of the cable and at all \
             ports of its routers",
        ),
        (
            "xoff = \"10packets\", xon = \"3packets\"",
            &["nic.kind=codel"],
            "x.toml:21: link.pause: the queue of \"left0\" towards \"west\" is codel, which decides by time or by chance \
             and cannot be paused or order a pause; allowed: fifo or priority at both ends of the cable and at all \
             ports of its routers",
        ),
    ] {
        let error = scenario(&format!("{access}\npause = {{ {keys} }}"), overrides).expect_err("a mistake");
        assert_eq!(error, message);
    }
}

#[test]
fn the_engine_refuses_active_queues_with_pause() {
    let given = scenario(&access(20), &[]).expect("a scenario");
    let active = scenario("", &["queue.kind=codel"]).expect("a scenario");
    let mut config = given.build().expect("a run");
    config.router_queue = active.build().expect("a run").router_queue;
    let error = sparelane_sim::Simulation::new(config).expect_err("an active queue");
    assert!(error.to_string().contains("which excludes PAUSE"), "{error}");
}
