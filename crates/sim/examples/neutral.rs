//! Runs a neutral workload and prints its totals: the engine alone, for profilers.
//!
//! `cargo run --release -p sparelane-sim --example neutral -- WORKLOAD DURATION_NS SSTHRESH_SEGMENTS [CONTROLLER]`,
//! where WORKLOAD.topo and WORKLOAD.flows exist.

use sparelane_cc::{Value, Values};
use sparelane_core::{Dur, Time};
use sparelane_sim::workload::FlowList;
use sparelane_sim::{Discipline, Limit, QueueSpec, Routing, RunConfig, Scheme, Simulation, topology};
use sparelane_transport::{RtoConfig, TransportConfig};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, duration_ns, ssthresh, rest @ ..] = arguments.as_slice() else {
        return Err("usage: neutral WORKLOAD DURATION_NS SSTHRESH_SEGMENTS [CONTROLLER]".into());
    };
    let network = topology::neutral::parse(&std::fs::read_to_string(format!("{base}.topo"))?)?;
    let flows = FlowList::from_neutral(&std::fs::read_to_string(format!("{base}.flows"))?, &network, 0)?;
    let controller = rest.first().map_or("newreno", String::as_str);
    let mut values = Values::default();
    values.set("initial_window", Value::Whole(4));
    values.set("initial_ssthresh", Value::Whole(ssthresh.parse()?));
    let (own, inner) = if controller == "rc3" { (Values::default(), values) } else { (values, Values::default()) };
    let discipline = if controller == "rc3" { Discipline::Priority } else { Discipline::Fifo };
    let queue = QueueSpec { discipline, limit: Limit::Bytes(5_000_000), mark_at_bytes: None };
    let rto = RtoConfig { syn: Dur::from_secs(1), ..RtoConfig::default() };
    let config = RunConfig {
        network,
        routing: Routing::PerFlowEcmp,
        router_queue: queue,
        nic_queue: queue,
        schemes: vec![Scheme {
            name: controller.to_owned(),
            controller: controller.to_owned(),
            values: own,
            inner,
            transport: TransportConfig { rto, ..TransportConfig::default() },
        }],
        flows: Box::new(flows),
        drops: Vec::new(),
        stop: Time::from_ns(duration_ns.parse()?),
        seed: 1,
        sampling: None,
    };
    let simulation = Simulation::new(config)?;
    let start = Instant::now();
    let records = simulation.run()?;
    let seconds = start.elapsed().as_secs_f64();
    let totals = records.totals;
    let lost: u64 = records.flows.lost_packets.iter().sum();
    let resent: u64 = records.flows.retransmissions.iter().sum();
    let timeouts: u64 = records.flows.timeouts.iter().sum();
    eprintln!(
        "{totals:?}\nlost {lost} resent {resent} timeouts {timeouts}\n{seconds:.3} s, {:.1} M packet-hops/s",
        totals.packet_hops as f64 / seconds / 1e6
    );
    Ok(())
}
