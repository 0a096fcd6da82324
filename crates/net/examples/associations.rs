//! Holds many associations between two nodes of this process, and prints the memory of an idle one, both ends together.
//!
//! Usage: `cargo run --release -p sparelane-net --example associations -- [COUNT]`. Fails if an association takes more
//! than 300 kB or is not open.

use sparelane_core::{Dur, Time};
use sparelane_net::identity::{Identity, Trusted};
use sparelane_net::node::{NodeConfig, NodeEvent};
use sparelane_net::quic::QuicConfig;
use sparelane_net::virt::{Path, Virtual};
use std::error::Error;
use std::io::Write;

/// The maximum memory of an idle association, both ends together, kilobytes.
const MAX_KB: f64 = 300.0;

/// The resident memory of this process, kilobytes.
fn resident_kb() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let (one, two) = (Identity::generate()?, Identity::generate()?);
    let client = QuicConfig::new(one.clone(), Trusted::from_iter([two.fingerprint()]));
    // One key opens all associations, so its limits are lifted.
    let server = QuicConfig {
        listens: true,
        max_associations_per_peer: usize::MAX,
        max_new_per_second: u32::MAX,
        ..QuicConfig::new(two, Trusted::from_iter([one.fingerprint()]))
    };
    let mut net = Virtual::with_carriers(Path::default(), NodeConfig::default(), client, server, 1)?;
    let before = resident_kb()?;
    let (mut begun, mut opened, mut closed) = (0, [0, 0], 0);
    loop {
        // Open few at a time, since the number of connections without a hello is limited.
        while begun < count && begun < opened[1] + 20 {
            net.connect()?;
            begun += 1;
        }
        match net.next_event(Time::ZERO + Dur::from_secs(600)) {
            Some((at, NodeEvent::Opened { .. })) => opened[at] += 1,
            Some((at, NodeEvent::Closed { reason, .. })) => {
                closed += 1;
                writeln!(std::io::stdout(), "closed at node {at} after {}: {reason}", net.now())?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let each = (resident_kb()? - before) as f64 / opened[1].max(1) as f64;
    let seconds = net.now().as_secs_f64();
    writeln!(
        std::io::stdout(),
        "{} open and {closed} closed after {seconds:.0} s; {each:.0} kB each, both ends",
        opened[1]
    )?;
    if closed > 0 || opened != [count, count] || each > MAX_KB {
        return Err(format!("{count} should be open at both ends, with at most {MAX_KB} kB each").into());
    }
    Ok(())
}
