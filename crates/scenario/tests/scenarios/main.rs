//! Tests of whole scenarios: how they are parsed, refused and run, and what their results say.
//!
//! They share one program, since linking one for each file takes longer than the tests.

mod accurate_ecn;
mod bbr3;
mod cached_ssthresh;
mod chunks;
mod collectives;
mod cross_traffic;
mod dual_queue;
mod edits;
mod explore;
mod forms;
mod fuzz;
mod hpcc;
mod measures;
mod mistakes;
mod networks;
mod noisy_hosts;
mod observe;
mod own_kinds;
mod packets;
mod pause;
mod pfc;
mod presets;
mod priorities;
mod queues;
mod rapid;
mod rate_based;
mod rcp;
mod rdma;
mod reuse;
mod runs;
mod shipped;
mod slow_reader;
mod spray;
mod standing_queues;
mod web;

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::PathBuf;

/// Runs the scenario with this text.
fn run(text: &str) -> Records {
    let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
    let scenario = Scenario::parse(text, &source, &[]).unwrap_or_else(|error| panic!("{error}"));
    let simulation = scenario.simulate().unwrap_or_else(|error| panic!("{error}"));
    simulation.run().expect("the laws hold")
}
