//! Runs a scenario without Python, and prints its totals: the simulator alone, for profilers.
//!
//! `cargo run --release -p sparelane-scenario --example run -- FILE [KEY=VALUE ...]`

use sparelane_scenario::Scenario;
use sparelane_sim::{Division, Machine, RunConfig, Simulation, Threads};
use std::error::Error;
use std::path::Path;
use std::sync::LazyLock;
use std::thread;
use std::time::Instant;

/// The allocator of the Python module.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, overrides @ ..] = arguments.as_slice() else {
        return Err("usage: run FILE [KEY=VALUE ...]".into());
    };
    let scenario = Scenario::load(Path::new(file), overrides)?;
    let machine = Machine { cores: thread::available_parallelism()?.get(), clock: Some(|| BEGAN.elapsed()) };
    let threads = scenario.threads().map_or(Threads::Auto, Threads::Exactly);
    let simulation = Simulation::new(RunConfig { machine, threads, ..scenario.build()? })?;
    let Division { domains, threads, lookahead, unsuited, .. } = simulation.division();
    match unsuited {
        Some(reason) => eprintln!("one thread: {reason}"),
        None => eprintln!("{domains} domains, {threads} threads, {lookahead:?} between domains"),
    }
    let start = Instant::now();
    let records = simulation.run()?;
    let seconds = start.elapsed().as_secs_f64();
    let totals = records.totals;
    let million_hops = totals.packet_hops as f64 / 1e6;
    eprintln!("digest {}", sparelane_scenario::digest(&records));
    eprintln!("{totals:?}\n{seconds:.3} s, {:.1} M packet-hops/s", million_hops / seconds);
    Ok(())
}
