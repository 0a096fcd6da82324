//! Holds many associations between two nodes of this process, and prints the memory that an idle one takes, both ends together:
//! `cargo run --release -p sparelane-net --example associations -- [COUNT]`. Fails where one takes more than 300 kB, or is not open.

use sparelane_core::{Dur, Time};
use sparelane_net::node::{NodeConfig, NodeEvent};
use sparelane_net::virt::{Path, Virtual};
use std::error::Error;
use std::io::Write;

/// The most that an idle association may take, both ends together, kilobytes.
const MOST_KB: f64 = 300.0;

/// What is resident of this process, kilobytes.
fn resident_kb() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let mut net = Virtual::new(Path::default(), NodeConfig::default(), 1)?;
    let before = resident_kb()?;
    let (mut begun, mut opened, mut closed) = (0, [0, 0], 0);
    loop {
        // Few at a time: who has not said yet what it is for is limited.
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
    if closed > 0 || opened != [count, count] || each > MOST_KB {
        return Err(format!("{count} are to be open at both ends, with {MOST_KB} kB each at most").into());
    }
    Ok(())
}
