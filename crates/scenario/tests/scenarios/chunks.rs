//! Every controller with segmentation offload, alone on a link. None may stall if chunks are large and its window or
//! pace is small.

use sparelane_cc::Registry;
use sparelane_scenario::{Scenario, Source};
use std::path::Path;

/// Controllers that cannot be tested alone: a constant window, and those that need routers, receivers or weights.
/// TCP-NV is among them because its author warns of chunks: segments of one chunk have different delays, which it takes
/// for a queue.
const OTHERS: [&str; 9] = ["constant", "dctcp", "dcqcn", "hpcc", "rcp", "rapid", "rtcp", "rc3", "nv"];

/// Controllers that back off on a path of 20 ms with any chunk size: TIMELY and Swift from delays above those of a data
/// centre, TCP-LP from its own queue.
const GIVE_WAY: [&str; 3] = ["timely", "swift", "lp"];

/// The utilization of a link of `mbps` by a single flow. The path has a delay of 20 ms and a queue of the same length.
fn link_use(controller: &str, mbps: u64, send_batch: u32, duration_ms: u64) -> f64 {
    let text = format!(
        r#"duration = "{duration_ms}ms"
[topology]
kind = "dumbbell"
pairs = 1
access_rate = "10Gbps"
access_delay = "0s"
bottleneck_rate = "{mbps}Mbps"
bottleneck_delay = "10ms"
[queue]
kind = "fifo"
limit = "1bdp"
[transport]
send_batch = {send_batch}
[scheme.it]
controller = "{controller}"
[[workload]]
kind = "bulk"
size = "unlimited"
"#
    );
    let scenario = Scenario::parse(&text, &Source::at(Path::new("x.toml")), &[]).unwrap_or_else(|e| panic!("{e}"));
    let records = scenario.simulate().expect("a run").run().expect("lawful physics");
    let capacity_bits = mbps as f64 * 1e3 * duration_ms as f64 * 1460.0 / 1500.0;
    records.flows.delivered_bytes[0] as f64 * 8.0 / capacity_bits
}

/// Compares two and 44 segments (64 kB) per chunk with single segments. At 10 Mb/s a chunk of 44 is more than the path
/// holds; at 1 Gb/s it is a fortieth of it.
#[test]
fn no_controller_stalls_with_chunks() {
    for (mbps, duration_ms) in [(10, 20_000), (100, 8000), (1000, 1500)] {
        for controller in
            Registry::built_in().all().iter().map(|controller| controller.name).filter(|name| !OTHERS.contains(name))
        {
            let [single, pairs, large] = [1, 2, 44].map(|batch| link_use(controller, mbps, batch, duration_ms));
            let uses = format!("{controller} at {mbps} Mb/s uses {single:.3}, {pairs:.3} and {large:.3} of the link");
            assert!(pairs.min(large) >= 0.8 * single, "{uses}");
            let least = if mbps == 1000 || GIVE_WAY.contains(&controller) { 0.0 } else { 0.6 };
            assert!(single.min(pairs).min(large) >= least, "{uses}");
        }
    }
}
