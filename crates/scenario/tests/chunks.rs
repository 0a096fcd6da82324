//! Every controller with segmentation offload, alone on a link: none stalls where chunks are large and its window or its pace is
//! small.

use sparelane_cc::Registry;
use sparelane_scenario::{Scenario, Source};
use std::path::Path;

/// Not alone on a link by their nature: a constant window, controllers that need routers or receivers which help, or weights. And NV,
/// whose author warns of chunks: segments of one chunk have different delays, which it takes for a queue.
const OTHERS: [&str; 7] = ["constant", "dctcp", "rcp", "rapid", "rtcp", "rc3", "nv"];

/// Give way on a path of 20 ms whatever chunks are: TIMELY to delays beyond a data centre's, TCP-LP to its own queue.
const GIVE_WAY: [&str; 2] = ["timely", "lp"];

/// The share of a link of `mbps`, 20 ms long and with a queue as long, that the only flow used.
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

/// Two segments and 44 (64 kB) at once, against segment by segment: at 10 Mb/s a chunk of 44 is more than the path holds, and
/// at 1 Gb/s a fortieth of it.
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
