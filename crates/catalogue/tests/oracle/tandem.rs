//! Compares links in tandem with the plain engine: chains of routers whose flows start one after another. Each new flow
//! may invalidate the assumptions made for the earlier ones.

use super::*;
use sparelane_sim::FlowSpec;
use std::collections::VecDeque;

/// Flows that are known in advance.
struct Planned(VecDeque<FlowSpec>);

impl FlowSource for Planned {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        self.0.pop_front()
    }
}

/// Routers in a row with two hosts at each.
fn chain(rng: &mut Stream) -> Network {
    let mut network = Network::default();
    let routers = 2 + rng.below(4) as u32;
    for router in 0..routers {
        network.add(format!("r{router}"), NodeKind::Router);
    }
    let delay = |rng: &mut Stream| Dur::from_us([0, 10, 3_000][rng.below(3) as usize]);
    let rate = |rng: &mut Stream| Rate::from_mbps([10, 10, 20, 100][rng.below(4) as usize]);
    for router in 1..routers {
        let (rate, delay) = (rate(rng), delay(rng));
        let cable = network.connect(NodeId(router - 1), NodeId(router), rate, delay);
        if rng.below(8) == 0 {
            cable.loss = [Loss { probability: 0.01, data_only: false }; 2];
        }
        if rng.below(6) == 0 {
            cable.limit = Some(Limit::Packets(2 + rng.below(60)));
        }
    }
    for host in 0..2 * routers {
        let id = network.add(format!("h{host}"), NodeKind::Host);
        let (rate, delay) = (rate(rng), delay(rng));
        network.connect(id, NodeId(host / 2), rate, delay);
    }
    network
}

/// A few flows from the first routers to the last, followed by some between random hosts.
fn flows(network: &Network, rng: &mut Stream) -> Planned {
    let hosts = network.hosts();
    let mut start = Time::ZERO;
    let (steady, other) = (1 + rng.below(4), rng.below(7));
    let flow = |at: u64| {
        start += Dur::from_us(rng.below(2) * rng.below(120_000));
        let from = rng.below(hosts.len() as u64);
        let (src, dst) = if at < steady {
            (at % 2, hosts.len() as u64 - 1 - rng.below(2))
        } else {
            (from, (from + 1 + rng.below(hosts.len() as u64 - 1)) % hosts.len() as u64)
        };
        let size_bytes = (rng.below(3) != 0).then(|| 1 + rng.below(400_000));
        FlowSpec::new(start, hosts[src as usize], hosts[dst as usize], size_bytes, rng.below(7) as u16)
    };
    Planned((0..steady + other).map(flow).collect())
}

pub fn scenario(seed: u64) -> RunConfig {
    let mut rng = Stream::new(seed, Domain::Test, 40);
    let network = chain(&mut rng);
    let plain = |rng: &mut Stream, bytes| QueueSpec {
        discipline: Discipline::Fifo,
        limit: Limit::Bytes(bytes + rng.below(60_000)),
        mark_at: [None, None, Some(Limit::Bytes(9_000)), Some(Limit::Packets(3))][rng.below(4) as usize],
        mark_ramp: None,
        bars_low_priority: rng.below(9) == 0,
        push_out: false,
        room: RoomNeeded::Packet,
        rcp: None,
        telemetry: TelemetryKind::Port,
    };
    let cable = &network.cables[rng.below(network.cables.len() as u64) as usize];
    let (a, b) = (cable.a, cable.b);
    let probes = match rng.below(4) {
        0 => network
            .cables
            .iter()
            .flat_map(|cable| [Probe::Queue(cable.a, cable.b), Probe::Queue(cable.b, cable.a)])
            .collect(),
        _ => vec![Probe::Flow(0), Probe::Link(a, b), Probe::Link(b, a)],
    };
    let queues_at = if rng.below(3) == 0 { queues_at(&network, &mut rng) } else { Vec::new() };
    let cross_traffic = if rng.below(3) == 0 { cross_traffic(&network, &mut rng) } else { Vec::new() };
    let drop = Drop { from: a, to: b, flow: 1, segments: vec![3], copies: 1 };
    RunConfig {
        flows: Box::new(flows(&network, &mut rng)),
        cross_traffic,
        drops: if rng.below(4) == 0 { vec![drop] } else { Vec::new() },
        observers: vec![Box::new(Series::new(SeriesSpec { interval: Dur::from_ms(7), probes }))],
        threads: Threads::One,
        machine: Machine::default(),
        domains: None,
        router_queue: plain(&mut rng, 3_100),
        nic_queue: plain(&mut rng, 100_000),
        switch: None,
        queues_at,
        hosts_at: hosts_at(&network, &mut rng),
        stop: Time::from_ns(50_000_000 + rng.below(1_000_000_000)),
        network,
        ..super::scenario(seed)
    }
}

/// Returns the run until the first event at or after `until`.
fn run_until(engine: Engine, seed: u64, until: Time) -> Trial {
    try_run(engine, scenario(seed), until).expect("the laws hold")
}

#[test]
fn links_in_tandem_change_nothing() {
    let (mut fused_arrivals, mut retracted, mut hops) = (0, 0, 0);
    for seed in 0..150 {
        let fast = run_until(Engine::Fast, seed, Time::NEVER);
        let plain = run_until(Engine::Plain, seed, Time::NEVER);
        assert_eq!(fast.records, plain.records, "seed {seed}");
        hops += fast.records.totals.packet_hops;
        retracted += fast.retracted;
        fused_arrivals += fast.fused_arrivals;
    }
    assert!(fused_arrivals > hops / 20, "of {hops} hops, {fused_arrivals} were no events");
    assert!(retracted > 100, "only {retracted} packets were retracted");
}

/// Every cable between routers follows a series of rates, which are below those of most other cables.
fn with_rates(mut config: RunConfig, seed: u64) -> RunConfig {
    let mut rng = Stream::new(seed, Domain::Test, 42);
    let routers: Vec<_> = config.network.nodes.iter().map(|node| node.kind == NodeKind::Router).collect();
    for cable in &mut config.network.cables {
        if routers[cable.a.index()] && routers[cable.b.index()] {
            let step = |number: u64| {
                (Dur::from_ms(3 * number), Rate::from_bps([0, 2_000_000, 9_333_333][rng.below(3) as usize]))
            };
            let mut steps: Vec<_> = (0..4).map(step).collect();
            steps.push((Dur::from_ms(12), Rate::from_mbps(7)));
            let trace = Trace::rates(steps, Dur::from_ms(15)).expect("a trace");
            cable.rates = [trace.mean(); 2];
            cable.traces = [Some(trace.into()), None];
        }
    }
    config
        .schemes
        .iter_mut()
        .filter(|scheme| scheme.name == "rapid")
        .for_each(|scheme| scheme.values = Values::default());
    RunConfig { queues_at: Vec::new(), ..config }
}

#[test]
fn links_in_tandem_behind_traces_change_nothing() {
    let (mut fused_arrivals, mut hops) = (0, 0);
    for seed in 0..60 {
        let [fast, plain] = [Engine::Fast, Engine::Plain]
            .map(|engine| try_run(engine, with_rates(scenario(seed), seed), Time::NEVER).expect("the laws hold"));
        assert_eq!(fast.records, plain.records, "seed {seed}");
        hops += fast.records.totals.packet_hops;
        fused_arrivals += fast.fused_arrivals;
    }
    assert!(fused_arrivals > hops / 20, "of {hops} hops, {fused_arrivals} were no events");
}

#[test]
fn a_run_that_ends_early_has_the_records_of_that_time() {
    let mut compared = 0;
    for seed in 0..60 {
        for ms in [5, 40, 300] {
            let until = Time::ZERO + Dur::from_ms(ms);
            let fast = run_until(Engine::Fast, seed, until);
            let plain = run_until(Engine::Plain, seed, until);
            // One engine may wake a host without effect where the other does not, and stop there.
            if fast.ended == plain.ended {
                assert_eq!(fast.records, plain.records, "seed {seed}, {ms} ms");
                compared += 1;
            }
        }
    }
    assert!(compared > 150, "only {compared} runs ended at the same time");
}

/// Flows that end, followed by the same flows again after `later`.
fn twice(flows: Planned, later: Dur) -> Planned {
    let first: Vec<_> = flows.0.into_iter().map(|flow| FlowSpec { size_bytes: Some(20_000), ..flow }).collect();
    let second = first.iter().map(|flow| FlowSpec { start: flow.start + later, size_bytes: Some(400_000), ..*flow });
    Planned(first.iter().copied().chain(second).collect())
}

/// Keys of the event queue hold times of up to 2^57 ps relative to a base, which then moves.
#[test]
fn runs_of_more_than_a_day_are_the_same_in_both_engines() {
    let late = Dur::from_ps((1 << 57) - 100_000_000_000);
    let config = |seed: u64| {
        let mut rng = Stream::new(seed, Domain::Test, 41);
        let mut config = scenario(seed);
        config.observers.clear();
        config.cross_traffic.clear();
        config.drops.clear();
        config.hosts_at.clear();
        config.host = HostSpec::default();
        config.flows = Box::new(twice(flows(&config.network, &mut rng), late));
        config.stop = Time::ZERO + late + Dur::from_secs(1);
        config
    };
    let mut hops = 0;
    for seed in 0..60 {
        let fast = try_run(Engine::Fast, config(seed), Time::NEVER).expect("the laws hold");
        let plain = try_run(Engine::Plain, config(seed), Time::NEVER).expect("the laws hold");
        assert_eq!(fast.records, plain.records, "seed {seed}");
        hops += fast.records.totals.packet_hops;
    }
    assert!(hops > 10_000, "{hops} packet-hops");
}
