//! The simulator predicts transfers on the wire: the same path, controller and bytes in both.
//!
//! The wire is two nodes in virtual time, with all their frames, keys and acknowledgments; the simulator has only
//! segments. Both have their bottleneck at the sender's interface, because a simulated tail is sent at the rate of the
//! link. `benches/wire_prediction.py` compares the same scenario with network namespaces.

use sparelane_core::{Dur, Rate, Time};
use sparelane_net::node::{ControllerChoice, NodeConfig, NodeEvent};
use sparelane_net::virt::{Path, Virtual};
use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Simulation;
use std::io::Write;
use std::path::PathBuf;

const SCENARIO: &str = include_str!("prediction.toml");

/// The length of each class's queue, packets.
const QUEUE_PACKETS: usize = 5000;

struct Setting {
    scheme: &'static str,
    mbps: u64,
    one_way: Dur,
    bytes: usize,
}

/// Seconds in the simulator from the open connection to the last byte received.
fn simulated(setting: &Setting) -> f64 {
    let Setting { scheme, mbps, one_way, bytes } = setting;
    let source = Source { file: "prediction.toml".to_owned(), folder: PathBuf::from(".") };
    let overrides = [
        format!("topology.access_rate={mbps}Mbps"),
        format!("topology.access_delay={}us", one_way.as_ps() / 2_000_000),
        format!("queue.limit={QUEUE_PACKETS}packets"),
        format!("workload.scheme={scheme}"),
        format!("workload.size={bytes}B"),
    ];
    let scenario = Scenario::parse(SCENARIO, &source, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let records =
        Simulation::new(scenario.build().expect("a run")).expect("a simulation").run().expect("lawful physics");
    let took = records.flows.finish_ps[0] - records.flows.start_ps[0];
    // The handshake takes one round trip.
    Dur::from_ps(took).as_secs_f64() - 2.0 * one_way.as_secs_f64()
}

/// Seconds on the wire from the opening of the flow to the last byte read.
fn on_the_wire(setting: &Setting) -> f64 {
    let path = Path {
        rate: Rate::from_mbps(setting.mbps),
        delay: setting.one_way,
        queue_packets: QUEUE_PACKETS,
        ..Path::default()
    };
    let controller = match setting.scheme {
        "rc3-newreno" => ControllerChoice::named("rc3").around("newreno"),
        name => ControllerChoice::named(name),
    };
    let config = NodeConfig { controller, ..NodeConfig::default() };
    let mut net = Virtual::new(path, config, 1).expect("settings that fit");
    let association = net.connect().expect("a peer");
    // Wait for the discovery of the path.
    while net.next_event(Time::ZERO + Dur::from_secs(1)).is_some() {}
    let began = net.now();
    let flow = net.node(0).open_flow(began, association, Some(setting.bytes as u64)).expect("a flow");
    net.node(0).write(flow, vec![7; setting.bytes].into());
    net.node(0).finish(flow);
    while let Some((node, event)) = net.next_event(Time::ZERO + Dur::from_secs(200)) {
        if let (1, NodeEvent::Readable(flow)) = (node, event) {
            while net.node(1).read(flow).is_some() {}
            if net.node(1).is_read(flow) {
                return (net.now() - began).as_secs_f64();
            }
        }
    }
    panic!("the transfer does not end");
}

#[test]
fn the_simulator_predicts_the_wire_within_a_tenth() {
    let paths = [(100, 20, 1_700_000), (100, 20, 8_000_000), (50, 10, 3_000_000)];
    let mut wrong = vec![];
    for scheme in ["cubic", "newreno", "rc3", "rc3-newreno"] {
        for (mbps, one_way_ms, bytes) in paths {
            let setting = Setting { scheme, mbps, one_way: Dur::from_ms(one_way_ms), bytes };
            let (simulated, wire) = (simulated(&setting), on_the_wire(&setting));
            let line = format!(
                "{scheme:>12} {mbps:4} Mb/s {:3} ms {:5.1} MB: simulator {:7.1} ms, wire {:7.1} ms, {:+5.1} %",
                2 * one_way_ms,
                bytes as f64 / 1e6,
                simulated * 1e3,
                wire * 1e3,
                (wire / simulated - 1.0) * 100.0
            );
            // With `--nocapture`, print the benchmark's table.
            let _ = writeln!(std::io::stdout(), "{line}");
            if !(0.9..=1.1).contains(&(wire / simulated)) {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
