//! A run in several domains, however they are cut and on however many threads, has the records of a run in one.

use super::{poisson, scenario};
use sparelane_catalogue::workload::{Classed, Merge, TrafficClasses};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_sim::{Discipline, FlowSource, Loss, NodeId, Records, Routing, RunConfig, Simulation, Threads};
use std::sync::Arc;

/// A random scenario that is suited to several domains.
fn suited(seed: u64) -> RunConfig {
    let config = scenario(seed);
    let flows = |scheme: u16| -> Box<dyn FlowSource> {
        let source = poisson(&config.network, scheme, seed);
        let classes = TrafficClasses { below: vec![(5_000, 0)], rest: 1 };
        if scheme.is_multiple_of(2) { source } else { Box::new(Classed::new(source, classes)) }
    };
    let flows = Box::new(Merge::new((0..7).map(flows).collect()));
    let mut config = RunConfig { flows, observers: Vec::new(), cross_traffic: Vec::new(), drops: Vec::new(), ..config };
    // Cables without delay, and those that lose packets at random, cannot be cut, so half of the scenarios have none.
    if seed.is_multiple_of(2) {
        for cable in &mut config.network.cables {
            (cable.delay, cable.loss) = (cable.delay.max(Dur::from_us(500)), [Loss::NONE; 2]);
        }
    }
    let hosts = config.hosts_at.iter_mut().map(|at| &mut at.spec);
    hosts.chain([&mut config.host]).for_each(|host| host.receive_cost = Dur::ZERO);
    if config.routing.is_spray() {
        config.routing = Routing::PerFlowEcmp;
    }
    // RAPID's segments wait in the host, so CUBIC takes its place.
    let cubic = config.schemes.iter().find(|scheme| scheme.name == "cubic").expect("a scheme").clone();
    for scheme in &mut config.schemes {
        if scheme.name == "rapid" {
            *scheme = cubic.clone();
        }
        let transport = Arc::make_mut(&mut scheme.transport);
        (transport.cached_ssthresh, transport.receive_batch, transport.read_rate) = (false, 1, None);
    }
    let others = config.queues_at.iter_mut().map(|at| &mut at.queue);
    for queue in others.chain([&mut config.router_queue, &mut config.nic_queue]) {
        if queue.discipline.active().is_some_and(|law| law.tells_flows_apart()) {
            queue.discipline = Discipline::Fifo;
        }
    }
    config
}

/// A random domain for each node, from a few.
fn labels(config: &RunConfig, rng: &mut Stream) -> Vec<u16> {
    let domains = 2 + rng.below(6);
    config.network.nodes.iter().map(|_| rng.below(domains) as u16).collect()
}

/// Records without the number of events, which depends on the engine.
fn comparable(mut records: Records) -> Records {
    records.totals.events = 0;
    records
}

#[test]
fn random_divisions_of_random_scenarios_give_the_same_records() {
    let (mut divided, mut finished, mut lost) = (0, 0, 0);
    for seed in 0..80 {
        let mut rng = Stream::new(seed, Domain::Test, 77);
        let whole = Simulation::new(suited(seed)).expect("a run").run().expect("the laws hold");
        let config = suited(seed);
        let domains = Some(labels(&config, &mut rng));
        let threads = Threads::Exactly(1 + usize::from(seed.is_multiple_of(10)));
        let parts = Simulation::new(RunConfig { domains, threads, ..config }).expect("a run");
        let division = parts.division();
        divided += u32::from(division.domains > 1);
        let parts = parts.run().expect("the laws hold");
        finished += parts.totals.finished_flows;
        lost += parts.flows.lost_packets.iter().sum::<u64>();
        assert_eq!(whole.totals.end_ps, parts.totals.end_ps, "seed {seed}: {division:?}");
        assert_eq!(whole.links, parts.links, "seed {seed}: {division:?}");
        assert_eq!(whole.flows, parts.flows, "seed {seed}: {division:?}");
        assert_eq!(comparable(whole), comparable(parts), "seed {seed}: {division:?}");
    }
    assert!(divided > 40, "{divided} runs in several domains");
    assert!(finished > 2_000 && lost > 2_000, "{finished} flows finished, {lost} packets were lost");
}

/// The view of a run between two slices.
#[derive(Debug, PartialEq)]
struct Seen {
    now: Time,
    /// The number, the held bytes, the end and the bytes in flight of each open flow.
    flows: Vec<(u32, u64, Time, u64)>,
    sent_bytes: Vec<Option<u64>>,
}

fn seen(simulation: &mut Simulation, ends: &[(NodeId, NodeId)]) -> Seen {
    let mut view = simulation.view();
    let mut flows = Vec::new();
    view.for_each_open_flow(&mut |flow| {
        flows.push((flow.id, flow.held_bytes, flow.finish, flow.sender.in_flight_bytes()));
    });
    flows.sort_unstable();
    for &(id, held_bytes, ..) in &flows {
        assert_eq!(view.flow(id).map(|flow| flow.held_bytes), Some(held_bytes), "flow {id}");
    }
    Seen { now: view.now(), flows, sent_bytes: ends.iter().map(|&(from, to)| view.sent_bytes(from, to)).collect() }
}

#[test]
fn views_between_slices_and_steering_are_those_of_a_run_in_one_domain() {
    let (mut divided, mut open) = (0, 0);
    for seed in (0..20).step_by(2) {
        let config = suited(seed);
        let ends: Vec<_> =
            config.network.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]).collect();
        let domains = Some(labels(&config, &mut Stream::new(seed, Domain::Test, 78)));
        let mut whole = Simulation::new(suited(seed)).expect("a run");
        let mut parts = Simulation::new(RunConfig { domains, ..config }).expect("a run");
        divided += u32::from(parts.division().domains > 1);
        for step in 1..=20 {
            let until = Time::ZERO + Dur::from_ms(step * 31);
            let progress = [&mut whole, &mut parts].map(|run| run.advance_to(until).expect("the laws hold"));
            assert_eq!(progress[0], progress[1], "seed {seed}, step {step}");
            let [in_whole, in_parts] = [&mut whole, &mut parts].map(|run| seen(run, &ends));
            assert_eq!(in_whole, in_parts, "seed {seed}, step {step}");
            open += in_whole.flows.len();
            // Steering lets the sender send what it may, which is nothing more.
            for id in (0..40).step_by(7) {
                let [in_whole, in_parts] = [&mut whole, &mut parts].map(|run| run.steer(id, &mut |_| {}));
                assert_eq!(in_whole, in_parts, "seed {seed}, step {step}, flow {id}");
            }
        }
        let [whole, parts] = [whole, parts].map(|run| comparable(run.finish().expect("the laws hold")));
        assert_eq!(whole, parts, "seed {seed}");
    }
    assert!(divided > 5 && open > 500, "{divided} runs in several domains, {open} open flows");
}
