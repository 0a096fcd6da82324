//! Compares the engine with a second, deliberately simple one: random scenarios yield the same records in both, to the
//! picosecond.

mod domains;
mod live;
mod tandem;

use sparelane_catalogue::queue::{
    CeThreshold, CellsSpec, CoDelSpec, CobaltSpec, DualPi2Spec, FairSpec, FqCoDelSpec, FqPieSpec, PieSpec, Ramp,
    RedSpec, Scheduler,
};
use sparelane_catalogue::topology::Dumbbell;
use sparelane_catalogue::workload::{
    ArrivalRate, Classed, Destinations, LoadOn, Merge, Paced, Poisson, PoissonSpec, Pooled, SizeDistribution, Surge,
    TrafficClasses, WebUsers, WebUsersSpec,
};
use sparelane_cc::{Registry, RestartRule, Value, Values};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use sparelane_sim::effects::{BurstLoss, Distribution, Effects, Jitter, Policer, Reordering};
use sparelane_sim::observe::{
    Delays, DelaysSpec, Flows, Observer, PacketLog, PacketLogSpec, Probe, Series, SeriesSpec,
};
use sparelane_sim::oracle::{Engine, Trial, try_run};
use sparelane_sim::trace::Trace;
use sparelane_sim::{
    AggregateSpec, Cable, Change, ConstantSpec, CrossTraffic, Discipline, Drop, FlowSource, FullInterface, HostAt,
    HostSpec, Interrupts, Limit, Loss, Machine, MarkRamp, Network, NodeId, NodeKind, PacketTable, Pattern, PauseSpec,
    PfcSpec, QueueAt, QueueSpec, RcpSpec, Records, RoomNeeded, Routing, RunConfig, Scheme, ScriptedChange, Stalls,
    SwitchSpec, TelemetryKind, Threads, TimestampAt, TokenBucket, Writes,
};
use sparelane_transport::{DelayedAck, Ecn, TransportConfig};

/// A random network: a ring of routers with chords, and hosts.
fn network(rng: &mut Stream) -> Network {
    if rng.below(4) == 0 {
        let bottleneck_rate = Rate::from_mbps(20 + rng.below(100));
        let spec = Dumbbell {
            pairs: 3,
            access_rate: Rate::from_mbps(100),
            access_delay: Dur::from_us(rng.below(2) * 100),
            bottleneck_rate,
            bottleneck_delay: Dur::from_us(rng.below(5_000)),
        };
        return spec.build().expect("a dumbbell");
    }
    let mut network = Network::default();
    let routers = 3 + rng.below(5) as u32;
    for router in 0..routers {
        network.add(format!("r{router}"), NodeKind::Router);
    }
    let connect = |network: &mut Network, a: u32, b: u32, rng: &mut Stream| {
        let rate = Rate::from_mbps([10, 20, 100, 333][rng.below(4) as usize]);
        let delay = Dur::from_us([0, 10, 10, 1_000][rng.below(4) as usize]);
        let number = network.cables.len();
        let cable = network.connect(NodeId(a), NodeId(b), rate, delay);
        cable.rates[1] = Rate::from_mbps(rate.as_bps() / 1_000_000 / (1 + rng.below(3)));
        // Losses of data only on every second cable, and in one direction only on every third.
        let probability = [0.0, 0.0, 0.0, 0.01][rng.below(4) as usize];
        let loss = Loss { probability, data_only: number.is_multiple_of(2) };
        cable.loss = [loss, if number.is_multiple_of(3) { Loss::NONE } else { loss }];
        if rng.below(2) == 0 {
            cable.limit = Some(if rng.below(2) == 0 {
                Limit::Bytes(6_000 + rng.below(60_000))
            } else {
                Limit::Packets(3 + rng.below(40))
            });
        }
    };
    for router in 0..routers {
        connect(&mut network, router, (router + 1) % routers, rng);
    }
    connect(&mut network, 0, routers / 2, rng);
    for host in 0..routers * 2 {
        let id = network.add(format!("h{host}"), NodeKind::Host);
        connect(&mut network, id.0, host % routers, rng);
    }
    network
}

fn scheme(name: &str, rng: &mut Stream) -> Scheme {
    let mut window = Values::default();
    window.set("initial_window", Value::Whole(1 + rng.below(10)));
    let mut rc3 = Values::default();
    rc3.set("levels", Value::List(vec![2, 5 + rng.below(20)]));
    rc3.set("feed", Value::Word(["push", "pull"][rng.below(2) as usize].to_owned()));
    let inner = ["newreno", "cubic", "rcp"][rng.below(3) as usize];
    rc3.set("inner", Value::Word(inner.to_owned()));
    let mut pace = Values::default();
    pace.set("window", Value::Whole(20));
    pace.set("pace", Value::Rate(Some(Rate::from_mbps(3))));
    let mut start = Values::default();
    start.set("initial_rate", Value::Rate(Some(Rate::from_mbps(1 + rng.below(3)))));
    let mut rate = Values::default();
    rate.set("desired_rate", Value::Rate((rng.below(2) == 0).then_some(Rate::from_mbps(4))));
    let (values, inner) = match name {
        "rc3" if inner == "rcp" => (rc3, rate),
        "rc3" => (rc3, window),
        "rcp" => (rate, Values::default()),
        "constant" => (pace, Values::default()),
        "rapid" => (start, Values::default()),
        _ => (window, Values::default()),
    };
    let delayed_ack = (rng.below(3) == 0).then_some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(5) });
    let transport = TransportConfig {
        sack: rng.below(4) != 0,
        limited_transmit: rng.below(2) == 0,
        delayed_ack,
        sack_survives_timeout: rng.below(2) == 0,
        cached_ssthresh: rng.below(2) == 0,
        undo_spurious: rng.below(2) == 0,
        ecn: if name == "dctcp" {
            [Ecn::Dctcp, Ecn::L4s, Ecn::Accurate][rng.below(3) as usize]
        } else {
            [Ecn::Off, Ecn::Classic, Ecn::Dctcp, Ecn::L4s, Ecn::Accurate][rng.below(5) as usize]
        },
        send_buffer_bytes: (rng.below(4) == 0).then_some(30_000),
        receive_window_bytes: (rng.below(4) == 0).then_some(40_000),
        read_rate: (rng.below(6) == 0).then(|| Rate::from_bps(100_000 << rng.below(12))),
        send_batch: [1, 1, 3, 20][rng.below(4) as usize],
        receive_batch: [1, 1, 2, 20][rng.below(4) as usize],
        receive_batch_timeout: Dur::from_us(1 + rng.below(3_000)),
        restart_after_idle: [None, Some(RestartRule::Rfc5681), Some(RestartRule::Linux)][rng.below(3) as usize],
        ..TransportConfig::default()
    };
    let registry = Registry::built_in();
    Scheme {
        name: name.to_owned(),
        controller: *registry.find(name).expect("a built-in controller"),
        registry,
        values,
        inner,
        transport: transport.into(),
        class: rng.below(3) as u8,
    }
}

fn discipline(rng: &mut Stream) -> Discipline {
    let ecn = rng.below(2) == 0;
    let ce_threshold = (rng.below(3) == 0)
        .then(|| CeThreshold { above: Dur::from_us(1 + rng.below(3_000)), only_ect_1: rng.below(2) == 0 });
    let codel = CoDelSpec { target: Dur::from_us(1 + rng.below(3_000)), interval: Dur::from_ms(4), ecn, ce_threshold };
    let [min, max] =
        [[Limit::Bytes(2_000), Limit::Bytes(9_000)], [Limit::Packets(2), Limit::Packets(7)]][rng.below(2) as usize];
    let pie = PieSpec {
        target: Dur::from_us(1 + rng.below(1_000)),
        update_interval: Dur::from_us(1 + rng.below(3_000)),
        alpha: 20.0,
        beta: 100.0,
        max_burst: Dur::from_ms(rng.below(5)),
        ecn,
        mark_ecn_threshold: 0.1,
    };
    let fair =
        FairSpec { flows: 1 + rng.below(20) as u32, quantum: (rng.below(2) == 0).then_some(300 + rng.below(3_000)) };
    match rng.below(12) {
        0 | 1 => Discipline::Fifo,
        2 | 3 => Discipline::Priority,
        4 => Discipline::of(RedSpec { min, max, max_probability: 0.2, weight: 0.1, gentle: rng.below(2) == 0, ecn }),
        5 => Discipline::of(codel),
        6 => Discipline::of(FqCoDelSpec { codel, fair }),
        7 => Discipline::of(CellsSpec { cell_bytes: 1 + rng.below(700) }),
        8 => Discipline::of(DualPi2Spec {
            target: Dur::from_us(1 + rng.below(2_000)),
            t_update: Dur::from_us(100 + rng.below(3_000)),
            alpha: 20.0,
            beta: 100.0,
            ramp: Ramp { min_th: Dur::from_us(1 + rng.below(500)), range: Dur::from_us(rng.below(500)) },
            th_len: rng.below(3),
            scheduler: [
                Scheduler::Weighted { classic_weight: 0.1 },
                Scheduler::TimeShifted { t_shift: Dur::from_us(rng.below(5_000)) },
            ][rng.below(2) as usize],
            lower_bands: rng.below(2) == 0,
            ..DualPi2Spec::default()
        }),
        9 => Discipline::of(FqPieSpec { pie, fair }),
        10 => Discipline::of(CobaltSpec { target: codel.target, interval: codel.interval }),
        _ => Discipline::of(pie),
    }
}

fn queue(rng: &mut Stream) -> QueueSpec {
    let discipline = discipline(rng);
    let mark_at = [None, None, Some(Limit::Bytes(4_000)), Some(Limit::Packets(3))][rng.below(4) as usize];
    let rcp = (rng.below(2) == 0).then(|| RcpSpec {
        gamma: [1.0, 0.95][rng.below(2) as usize],
        interval: Dur::from_us([500, 10_000][rng.below(2) as usize]),
        initial_rtt: Dur::from_ms([1, 200][rng.below(2) as usize]),
        ..RcpSpec::default()
    });
    QueueSpec {
        discipline,
        limit: Limit::Bytes(5_000 + rng.below(100_000)),
        mark_at,
        mark_ramp: None,
        bars_low_priority: rng.below(6) == 0,
        push_out: rng.below(3) != 0,
        room: [RoomNeeded::Packet, RoomNeeded::FullPacket][rng.below(2) as usize],
        rcp,
        telemetry: TelemetryKind::Port,
    }
}

/// Queues that differ: some cables get one of their own, and some twice.
fn queues_at(network: &Network, rng: &mut Stream) -> Vec<QueueAt> {
    let count = network.cables.len() as u64;
    let at = |_| {
        let cable = rng.below(count) as usize;
        let Cable { a, b, .. } = network.cables[cable];
        QueueAt { cable, from: if rng.below(2) == 0 { a } else { b }, queue: queue(rng) }
    };
    (0..count / 2).map(at).collect()
}

/// Users at two clients, with pauses of some milliseconds.
fn users(network: &Network, seed: u64) -> Box<dyn FlowSource> {
    let (mut rng, hosts) = (Stream::new(seed, Domain::Test, 30), network.hosts());
    let surge = Surge {
        active_off_scale: Dur::from_us(rng.below(2) * 3_000),
        inactive_off_least: Dur::from_us(1 + rng.below(20_000)),
        ..Surge::published(150_000)
    };
    let spec = WebUsersSpec {
        pairs: vec![(hosts[0], hosts[3]), (hosts[4], hosts[1])],
        users_per_pair: 1 + rng.below(5) as u32,
        surge,
        start: Time::from_ns(rng.below(100_000_000)),
        end: Time::ZERO + Dur::from_ms(500),
        scheme: rng.below(7) as u16,
        number: 7,
    };
    Box::new(WebUsers::new(network, spec, seed).expect("a workload"))
}

/// Changes of random cables during the first half second, some of them at the same instant.
fn changes(network: &Network, seed: u64) -> Vec<ScriptedChange> {
    let mut rng = Stream::new(seed, Domain::Test, 40);
    let mut at = Time::ZERO;
    let change = |_| {
        at += Dur::from_us([0, 0, 500, 1_000, 7_303][rng.below(5) as usize] * rng.below(8));
        let cable = rng.below(network.cables.len() as u64) as usize;
        let Cable { a, b, .. } = network.cables[cable];
        let probability = [0.0, 0.02, 1.0][rng.below(3) as usize];
        let change = match rng.below(6) {
            0 | 1 => Change::Rate(Rate::from_bps([150_000, 3_000_001, 20_000_000, 500_000_000][rng.below(4) as usize])),
            2 | 3 => {
                let delay = Dur::from_us([0, 10, 1_000, 9_000][rng.below(4) as usize]);
                Change::Delay { delay, reorders: rng.below(2) == 0 }
            }
            4 => Change::Loss(Loss { probability, data_only: rng.below(2) == 0 }),
            _ => Change::Down(rng.below(3) == 0),
        };
        ScriptedChange { at, cable, from: if rng.below(2) == 0 { a } else { b }, change }
    };
    (0..60).map(change).collect()
}

/// Up to four sources of cross traffic that last as long as flows arrive.
fn cross_traffic(network: &Network, rng: &mut Stream) -> Vec<CrossTraffic> {
    let (hosts, sources) = (network.hosts(), rng.below(5));
    let source = |_| {
        let from = rng.below(hosts.len() as u64) as usize;
        let to = (from + 1 + rng.below(hosts.len() as u64 - 1) as usize) % hosts.len();
        let rate = Rate::from_bps(100_000 + rng.below(4_000_000));
        let packet_bytes = 40 + rng.below(3_000) as u16;
        let jitter = [0.0, 0.5][rng.below(2) as usize];
        let constant = Pattern::Constant(ConstantSpec { burst: 1 + rng.below(9) as u32, jitter });
        let peak = Rate::from_mbps(5 + rng.below(100));
        let aggregate = AggregateSpec { peak, min_bytes: 3_040, max_bytes: 3_040 + rng.below(90_000), shape: 1.2 };
        CrossTraffic {
            from: hosts[from],
            to: hosts[to],
            rate,
            packet_bytes,
            class: rng.below(3) as u8,
            pattern: if rng.below(2) == 0 { constant } else { Pattern::Aggregate(aggregate) },
            bucket: (rng.below(2) == 0)
                .then(|| TokenBucket { rate: rate.scaled(1.1), depth_bytes: 3_040 + rng.below(9_000) }),
            start: Time::from_ns(rng.below(2) * rng.below(100_000_000)),
            stop: Time::from_ns(400_000_000),
        }
    };
    (0..sources).map(source).collect()
}

/// A random host; half of them without noise.
fn host(rng: &mut Stream) -> HostSpec {
    let receive_cost = Dur::from_us([0, 0, 5, 200][rng.below(4) as usize]);
    if rng.below(2) == 0 {
        return HostSpec { receive_cost, ..HostSpec::default() };
    }
    let us = |rng: &mut Stream, most: u64| Dur::from_us(rng.below(2) * (1 + rng.below(most)));
    HostSpec {
        receive_cost,
        interrupts: (rng.below(2) == 0).then(|| Interrupts {
            packets: [1, 2, 16, u32::MAX][rng.below(4) as usize],
            after: Dur::from_us(rng.below(500)),
            ring: [16, 64, u32::MAX][rng.below(3) as usize],
            stalls: (rng.below(2) == 0).then(|| Stalls {
                every: Dur::from_us(1 + rng.below(50_000)),
                length: Dur::from_us(1 + rng.below(2_000)),
            }),
        }),
        timestamp_at: [TimestampAt::Arrival, TimestampAt::Acknowledgment][rng.below(2) as usize],
        timestamp_clock: [None, Some(Dur::from_us(1)), Some(Dur::from_ms(1))][rng.below(3) as usize],
        ack_cost: us(rng, 300),
        timer_error: us(rng, 2_000),
        send_cost: us(rng, 300),
    }
}

fn hosts_at(network: &Network, rng: &mut Stream) -> Vec<HostAt> {
    let hosts = network.hosts();
    let differing = hosts.into_iter().filter(|_| rng.below(3) == 0).collect::<Vec<_>>();
    differing.into_iter().map(|id| HostAt { host: id, spec: host(rng) }).collect()
}

fn log(rng: &mut Stream) -> Option<PacketLogSpec> {
    (rng.below(8) != 0).then(|| PacketLogSpec {
        flow: rng.below(60) as u32,
        from: Time::from_ns(rng.below(2) * rng.below(200_000_000)),
        count: 1 + rng.below(400) as u32,
    })
}

/// Time series, delays, and the packet log of a flow.
fn observers(rng: &mut Stream, probes: Vec<Probe>, seed: u64) -> Vec<Box<dyn Observer>> {
    let series = Series::new(SeriesSpec { interval: Dur::from_ms(7), probes });
    let delays = (rng.below(3) != 0)
        .then(|| DelaysSpec { from: Time::from_ns(rng.below(300_000_000)), delays: rng.below(4) != 0 });
    let log = log(&mut Stream::new(seed, Domain::Test, 3));
    let delays = delays.map(|spec| Box::new(Delays::new(spec)) as Box<dyn Observer>);
    let log = log.map(|spec| Box::new(PacketLog::new(spec)) as Box<dyn Observer>);
    let series: Box<dyn Observer> = Box::new(series);
    [Some(series), delays, log].into_iter().flatten().collect()
}

/// Flows of 400 ms at a tenth of the rate of the interfaces.
fn poisson(network: &Network, scheme: u16, seed: u64) -> Box<dyn FlowSource> {
    let spec = PoissonSpec {
        sources: network.hosts(),
        destinations: Destinations::AnyOther,
        rate: ArrivalRate::Load(0.1, LoadOn::Access),
        routing: Routing::default(),
        sizes: SizeDistribution::points(&[(100, 0.4), (9_000, 0.4), (120_000, 0.2)]).expect("sizes"),
        start: Time::ZERO,
        end: Time::ZERO + Dur::from_ms(400),
        scheme,
        number: u32::from(scheme),
    };
    Box::new(Poisson::new(network, spec, seed).expect("a workload"))
}

/// A random scenario; the same seed yields the same one.
fn scenario(seed: u64) -> RunConfig {
    let mut rng = Stream::new(seed, Domain::Test, 1);
    let network = network(&mut rng);
    let echoed = ["ledbat", "rapid"][(seed % 2) as usize];
    let schemes: Vec<Scheme> = ["newreno", "cubic", "rc3", "constant", "rcp", "dctcp", echoed]
        .iter()
        .map(|name| scheme(name, &mut rng))
        .collect();
    let flows = |scheme: u16| -> Box<dyn FlowSource> {
        let source: Box<dyn FlowSource> = match scheme {
            7 => users(&network, seed),
            _ => poisson(&network, scheme, seed),
        };
        let mut rng = Stream::new(seed, Domain::Test, 10 + u64::from(scheme));
        let classes = TrafficClasses { below: vec![(5_000, 0)], rest: 1 };
        let source = if rng.below(2) == 0 { source } else { Box::new(Classed::new(source, classes)) };
        let source = if rng.below(3) != 0 {
            source
        } else {
            let every = Dur::from_us(1 + rng.below(20_000));
            let writes = Writes { first_bytes: 1 + rng.below(10_000), then_bytes: 500 + rng.below(5_000), every };
            Box::new(Paced::new(source, writes))
        };
        if rng.below(2) == 0 { source } else { Box::new(Pooled::new(source, u32::from(scheme))) }
    };
    let cable = &network.cables[rng.below(network.cables.len() as u64) as usize];
    let drop = Drop { from: cable.a, to: cable.b, flow: rng.below(20) as u32, segments: vec![0, 3, 4], copies: 2 };
    let probes = vec![
        Probe::Flow(3),
        Probe::Queue(cable.a, cable.b),
        Probe::Link(cable.a, cable.b),
        Probe::Link(cable.b, cable.a),
    ];
    RunConfig {
        flows: Box::new(Merge::new((0..8).map(flows).collect())),
        cross_traffic: cross_traffic(&network, &mut Stream::new(seed, Domain::Test, 2)),
        drops: vec![drop],
        changes: Vec::new(),
        routing: [
            Routing::SinglePath,
            Routing::PerFlowEcmp,
            Routing::FirstCable,
            Routing::Spray,
            Routing::SprayRoundRobin,
        ][rng.below(5) as usize],
        router_queue: queue(&mut rng),
        nic_queue: queue(&mut rng),
        nic_full: [FullInterface::Wait, FullInterface::Cut, FullInterface::Drop][rng.below(3) as usize],
        switch: (rng.below(2) == 0).then(|| SwitchSpec {
            memory_bytes: 3_000 + rng.below(40_000),
            share: [0.25, 1.0, 8.0][rng.below(3) as usize],
        }),
        queues_at: queues_at(&network, &mut rng),
        host: host(&mut rng),
        hosts_at: hosts_at(&network, &mut rng),
        schemes,
        network,
        stop: Time::ZERO + Dur::from_secs(if rng.below(2) == 0 { 10 } else { 1 }),
        seed,
        traffic_classes: vec!["small".to_owned(), "large".to_owned()],
        observers: observers(&mut rng, probes, seed),
        threads: Threads::One,
        machine: Machine::default(),
        domains: None,
    }
}

fn run(engine: Engine, seed: u64) -> Records {
    run_of(engine, scenario(seed))
}

fn run_of(engine: Engine, config: RunConfig) -> Records {
    let seed = config.seed;
    let trial = try_run(engine, config, Time::NEVER).expect("the laws hold");
    assert_eq!(trial.blocks_left, 0, "seed {seed}: SACK blocks without a packet");
    trial.records
}

#[test]
fn random_scenarios_give_the_same_records_in_both_engines() {
    let (mut finished, mut measured, mut crossed, mut stopped, mut reused) = (0, 0, 0, 0, 0);
    let mut logged = [0; 4];
    for seed in 0..60 {
        let fast = run(Engine::Fast, seed);
        let plain = run(Engine::Plain, seed);
        assert_eq!(fast.totals, plain.totals, "seed {seed}");
        assert_eq!(fast.flows, plain.flows, "seed {seed}");
        assert_eq!(fast.links, plain.links, "seed {seed}");
        assert_eq!(fast.cross_traffic, plain.cross_traffic, "seed {seed}");
        assert_eq!(fast.series, plain.series, "seed {seed}");
        assert_eq!(fast.delays, plain.delays, "seed {seed}");
        assert_eq!(fast.packets, plain.packets, "seed {seed}");
        check_log(&fast.packets, &mut logged, seed);
        measured += check_measures(&fast, seed);
        finished += fast.totals.finished_flows;
        reused += fast.flows.connection.iter().zip(&fast.flows.id).filter(|(connection, id)| connection != id).count();
        crossed += fast.cross_traffic.delivered_packets.iter().sum::<u64>();
        stopped += fast.cross_traffic.dropped_packets.iter().sum::<u64>();
    }
    assert!(crossed > 1_000 && stopped > 100, "of cross traffic, {crossed} packets came and {stopped} did not");
    assert!(reused > 1_000, "only {reused} flows on open connections");
    assert!(finished > 1_000, "only {finished} flows finished");
    assert!(measured > 10_000, "only {measured} packets measured");
    let [rows, resent, due, stamped] = logged;
    assert!(rows > 500 && resent > 10 && due > 50 && stamped > 20, "of packets logged: {logged:?}");
}

#[test]
fn random_scenarios_with_changing_links_give_the_same_records_in_both_engines() {
    let (mut finished, mut delivered, mut differing, mut reordered) = (0, 0, 0, 0);
    for seed in 500..530 {
        let config = |is_changing: bool| {
            let config = if seed % 3 == 0 { tandem::scenario(seed) } else { scenario(seed) };
            let changes = if is_changing { changes(&config.network, seed) } else { Vec::new() };
            RunConfig { changes, ..config }
        };
        let [fast, plain] = [Engine::Fast, Engine::Plain].map(|engine| run_of(engine, config(true)));
        assert_eq!(fast.links, plain.links, "seed {seed}");
        assert_eq!(fast.flows, plain.flows, "seed {seed}");
        assert_eq!(fast, plain, "seed {seed}");
        differing += u64::from(fast.flows != run_of(Engine::Fast, config(false)).flows);
        finished += fast.totals.finished_flows;
        delivered += fast.links.sent_packets.iter().sum::<u64>();
        reordered += fast.links.reordered_packets.iter().sum::<u64>();
    }
    assert!(finished > 200 && delivered > 20_000, "{finished} flows finished, {delivered} packets crossed a link");
    assert!(reordered > 50, "{reordered} packets were overtaken");
    assert!(differing > 25, "changes had effects in {differing} of 30 scenarios");
}

/// Gives each direction of some cables a random trace of either kind.
fn with_traces(network: &mut Network, seed: u64) {
    let mut rng = Stream::new(seed, Domain::Test, 41);
    for way in network.cables.iter_mut().flat_map(|cable| cable.rates.iter_mut().zip(&mut cable.traces)) {
        let trace = match rng.below(6) {
            0 | 1 => {
                let mut times: Vec<_> = (0..1 + rng.below(40)).map(|_| Dur::from_ms(rng.below(12))).collect();
                times.push(Dur::from_ms(12));
                times.sort_unstable();
                Trace::opportunities(times)
            }
            2 => {
                let steps = 1 + rng.below(5);
                let rate = |rng: &mut Stream| Rate::from_bps([0, 1_000_000, 33_333_333][rng.below(3) as usize]);
                let mut steps: Vec<_> = (0..steps).map(|step| (Dur::from_us(step * 700), rate(&mut rng))).collect();
                steps.push((Dur::from_us(steps.len() as u64 * 700), Rate::from_mbps(50)));
                Trace::rates(steps.clone(), Dur::from_us(steps.len() as u64 * 700))
            }
            _ => continue,
        };
        let trace = trace.expect("a trace");
        (*way.0, *way.1) = (trace.mean(), Some(trace.into()));
    }
}

#[test]
fn random_scenarios_with_traces_give_the_same_records_in_both_engines() {
    let (mut finished, mut delivered) = (0, 0);
    for seed in 600..625 {
        let config = || {
            let mut config = if seed % 3 == 0 { tandem::scenario(seed) } else { scenario(seed) };
            with_traces(&mut config.network, seed);
            let changes = changes(&config.network, seed).into_iter().filter(|_| seed % 2 == 0);
            let changes = changes.filter(|change| !matches!(change.change, Change::Rate(_))).collect();
            // Parameters of some controllers are bounded by the rate of the interface.
            config
                .schemes
                .iter_mut()
                .filter(|scheme| scheme.name == "rapid")
                .for_each(|scheme| scheme.values = Values::default());
            RunConfig { changes, ..config }
        };
        let [fast, plain] = [Engine::Fast, Engine::Plain].map(|engine| run_of(engine, config()));
        assert_eq!(fast.links, plain.links, "seed {seed}");
        assert_eq!(fast.flows, plain.flows, "seed {seed}");
        assert_eq!(fast, plain, "seed {seed}");
        finished += fast.totals.finished_flows;
        delivered += fast.links.sent_packets.iter().sum::<u64>();
    }
    assert!(finished > 200 && delivered > 20_000, "{finished} flows finished, {delivered} packets crossed a link");
}

/// Gives each direction of some cables random effects.
fn with_effects(network: &mut Network, seed: u64) {
    let mut rng = Stream::new(seed, Domain::Test, 42);
    for way in network.cables.iter_mut().flat_map(|cable| &mut cable.effects) {
        if rng.below(2) == 0 {
            continue;
        }
        let share = |rng: &mut Stream| [0.0, 0.03, 0.3][rng.below(3) as usize];
        let distribution = [Distribution::Uniform, Distribution::Normal, Distribution::Pareto][rng.below(3) as usize];
        let jitter = Jitter {
            spread: Dur::from_us(1 + rng.below(4_000)),
            distribution,
            correlation: [0.0, 0.5][rng.below(2) as usize],
            reorders: rng.below(2) == 0,
        };
        let reordering = Reordering {
            probability: share(&mut rng),
            distance: 1 + rng.below(5),
            within: Dur::from_us([0, 100, 20_000][rng.below(3) as usize]),
        };
        let to_bad = share(&mut rng) / 10.0;
        let burst = BurstLoss { to_bad, to_good: 0.3, loss_in_bad: 0.8, loss_in_good: 0.001 };
        let policer = Policer { rate: Rate::from_mbps(1 + rng.below(20)), burst_bytes: 3_000 + rng.below(90_000) };
        let effects = Effects {
            burst_loss: (rng.below(3) == 0).then_some(burst),
            corruption: share(&mut rng) / 30.0,
            policer: (rng.below(4) == 0).then_some(policer),
            jitter: (rng.below(3) != 0).then_some(jitter),
            reordering: (rng.below(2) == 0).then_some(reordering),
            duplication: share(&mut rng) / 3.0,
        };
        *way = Some(effects.into());
    }
}

#[test]
fn random_scenarios_with_effects_of_links_give_the_same_records_in_both_engines() {
    let (mut finished, mut delivered, mut paused, mut doubled, mut reordered) = (0, 0, 0, 0, 0);
    for seed in 800..830 {
        let config = || {
            let mut config = if seed % 5 == 0 { tandem::scenario(seed) } else { scenario(seed) };
            with_effects(&mut config.network, seed);
            match seed % 3 {
                0 => RunConfig { changes: changes(&config.network, seed), ..config },
                1 => with_pause(config, &mut Stream::new(seed, Domain::Test, 3)),
                _ => config,
            }
        };
        let [fast, plain] = [Engine::Fast, Engine::Plain].map(|engine| run_of(engine, config()));
        assert_eq!(fast.links, plain.links, "seed {seed}");
        assert_eq!(fast.flows, plain.flows, "seed {seed}");
        assert_eq!(fast, plain, "seed {seed}");
        finished += fast.totals.finished_flows;
        delivered += fast.links.sent_packets.iter().sum::<u64>();
        paused += fast.links.pause_frames.iter().sum::<u64>();
        doubled += fast.links.duplicated_packets.iter().sum::<u64>();
        reordered += fast.links.reordered_packets.iter().sum::<u64>();
    }
    assert!(doubled > 1_000 && reordered > 1_000, "{doubled} packets were doubled, {reordered} were overtaken");
    assert!(finished > 200 && delivered > 20_000, "{finished} flows finished, {delivered} packets crossed a link");
    assert!(paused > 100, "{paused} PAUSE frames");
}

/// Checks that times of logged packets are in order. Adds up rows, retransmissions, packets with a due time, and
/// stamped packets.
fn check_log(packets: &PacketTable, sums: &mut [usize; 4], seed: u64) {
    let count = |column: &[u64]| column.iter().filter(|&&ps| ps != u64::MAX).count();
    for row in 0..packets.segment.len() {
        let times = [&packets.due_ps, &packets.sent_ps, &packets.departed_ps, &packets.arrived_ps];
        let known: Vec<u64> = times.iter().map(|column| column[row]).filter(|&ps| ps != u64::MAX).collect();
        assert!(known.is_sorted(), "seed {seed}, row {row}: {known:?}");
        let (arrived, stamped) = (packets.arrived_ps[row], packets.stamped_ps[row]);
        // Clocks tick at least once per millisecond.
        assert!(stamped == u64::MAX || stamped + 1_000_000_000 > arrived, "seed {seed}, row {row}");
    }
    sums[0] += packets.segment.len();
    sums[1] += packets.is_retransmission.iter().filter(|&&again| again).count();
    sums[2] += count(&packets.due_ps);
    sums[3] += count(&packets.stamped_ps);
}

/// Gives random cables PAUSE. Active queues, which have none, become FIFO queues.
fn with_pause(mut config: RunConfig, rng: &mut Stream) -> RunConfig {
    let others = config.queues_at.iter_mut().map(|at| &mut at.queue);
    for queue in others.chain([&mut config.router_queue, &mut config.nic_queue]) {
        if queue.discipline.active().is_some() {
            queue.discipline = Discipline::Fifo;
        }
    }
    for cable in &mut config.network.cables {
        let packets = 1 + rng.below(8);
        let [xoff, xon] = match rng.below(2) {
            0 => [packets, rng.below(packets)].map(Limit::Packets),
            _ => [packets * 1_500, rng.below(packets) * 1_500].map(Limit::Bytes),
        };
        let quanta = [20, 200, 1_000, u16::MAX][rng.below(4) as usize];
        cable.pause = (rng.below(3) != 0).then_some(PauseSpec { xoff, xon, quanta });
    }
    config
}

/// Gives random cables priority-based flow control, and some routers a ramp of marks.
fn with_pfc(config: RunConfig, rng: &mut Stream) -> RunConfig {
    let mut config = with_pause(config, &mut rng.clone());
    config.switch = None;
    if rng.below(2) == 0 {
        config.router_queue.mark_ramp = Some(MarkRamp { from_bytes: 2_000, to_bytes: 9_000, probability: 0.5 });
    }
    for cable in &mut config.network.cables {
        let xoff_bytes = 1_500 * (1 + rng.below(8));
        let spec = PfcSpec {
            classes: [u8::MAX, 1, 0b110][rng.below(3) as usize],
            xoff_bytes,
            xon_bytes: rng.below(xoff_bytes),
            headroom_bytes: [1_000, 200_000, 2_000_000][rng.below(3) as usize],
        };
        (cable.pause, cable.pfc) = (None, (rng.below(4) != 0).then_some(spec));
    }
    config
}

#[test]
fn random_scenarios_with_priority_flow_control_give_the_same_records_in_both_engines() {
    let (mut frames, mut silent, mut marked) = (0, 0, 0);
    for seed in 720..740 {
        let config = || with_pfc(scenario(seed), &mut Stream::new(seed, Domain::Test, 3));
        let [fast, plain] = [Engine::Fast, Engine::Plain].map(|engine| run_of(engine, config()));
        assert_eq!(fast.links, plain.links, "seed {seed}");
        assert_eq!(fast.flows, plain.flows, "seed {seed}");
        assert_eq!(fast, plain, "seed {seed}");
        frames += fast.links.pause_frames.iter().sum::<u64>();
        silent += fast.links.paused_ps.iter().filter(|&&ps| ps > 0).count();
        marked += fast.links.marked_packets.iter().sum::<u64>();
    }
    assert!(frames > 500 && silent > 50 && marked > 50, "{frames} frames, {silent} paused links, {marked} marks");
}

/// Gives half of the schemes, and those inside RC3, HPCC as controller, and routers records of every kind.
fn with_telemetry(mut config: RunConfig, rng: &mut Stream) -> RunConfig {
    let hpcc = *Registry::built_in().find("hpcc").expect("a built-in controller");
    for (place, scheme) in config.schemes.iter_mut().enumerate() {
        if scheme.name == "rc3" {
            scheme.values.set("inner", Value::Word("hpcc".to_owned()));
            scheme.inner = Values::default();
        } else if place % 2 == 0 {
            (scheme.controller, scheme.values) = (hpcc, Values::default());
        }
    }
    let queues = config.queues_at.iter_mut().map(|at| &mut at.queue).chain([&mut config.router_queue]);
    for queue in queues {
        queue.telemetry = [TelemetryKind::Port, TelemetryKind::Class, TelemetryKind::Off][rng.below(3) as usize];
    }
    config
}

#[test]
fn random_scenarios_with_telemetry_give_the_same_records_in_both_engines() {
    let mut delivered = 0;
    for seed in 740..764 {
        let config = || {
            let mut rng = Stream::new(seed, Domain::Test, 3);
            let config = scenario(seed);
            let config = if seed % 2 == 0 { with_pfc(config, &mut rng) } else { config };
            with_telemetry(config, &mut rng)
        };
        let [fast, plain] = [Engine::Fast, Engine::Plain].map(|engine| run_of(engine, config()));
        assert_eq!(fast.links, plain.links, "seed {seed}");
        assert_eq!(fast.flows, plain.flows, "seed {seed}");
        assert_eq!(fast, plain, "seed {seed}");
        delivered += fast.flows.finish_ps.iter().filter(|&&ps| ps != u64::MAX).count();
    }
    assert!(delivered > 300, "{delivered} flows finished");
}

#[test]
fn random_scenarios_with_pause_give_the_same_records_in_both_engines() {
    let (mut frames, mut silent) = (0, 0);
    for seed in 700..712 {
        let config = || with_pause(scenario(seed), &mut Stream::new(seed, Domain::Test, 3));
        let [fast, plain] = [Engine::Fast, Engine::Plain].map(|engine| run_of(engine, config()));
        assert_eq!(fast.links, plain.links, "seed {seed}");
        assert_eq!(fast.flows, plain.flows, "seed {seed}");
        assert_eq!(fast, plain, "seed {seed}");
        frames += fast.links.pause_frames.iter().sum::<u64>();
        silent += fast.links.paused_ps.iter().filter(|&&ps| ps > 0).count();
    }
    assert!(frames > 300 && silent > 15, "{frames} frames, {silent} links were silent");
}

#[test]
fn a_log_of_packets_changes_nothing_else() {
    for seed in 400..420 {
        let mut with = run(Engine::Fast, seed);
        let mut config = scenario(seed);
        config.observers.retain(|observer| observer.interest().packets == Flows::None);
        let without = run_of(Engine::Fast, config);
        with.packets = PacketTable::default();
        assert_eq!(with, without, "seed {seed}");
    }
}

/// Every packet has its own interrupt, clocks tick as finely as packets can express, and sending costs less time than
/// any packet takes. The hosts take other code paths, with the same results.
#[test]
fn negligible_noise_changes_nothing() {
    let small = HostSpec {
        interrupts: Some(Interrupts { packets: 1, after: Dur::from_us(1), ring: u32::MAX, stalls: None }),
        timestamp_clock: Some(Dur::from_ns(1)),
        send_cost: Dur::from_ps(1),
        ..HostSpec::default()
    };
    for seed in 300..320 {
        let [none, small] = [HostSpec::default(), small]
            .map(|host| run_of(Engine::Fast, RunConfig { host, hosts_at: Vec::new(), ..scenario(seed) }));
        assert_eq!(none, small, "seed {seed}");
    }
}

/// Checks that the tables of one run agree. Returns the number of measured packets.
fn check_measures(records: &Records, seed: u64) -> u64 {
    let (flows, delays) = (&records.flows, &records.delays);
    let packets: u64 = flows.delay_packets.iter().sum();
    assert_eq!(packets, delays.packets.iter().sum(), "seed {seed}");
    // The last packets of a flow may count as those of the next one on the same connection.
    let mut in_flight = vec![0i64; flows.id.len()];
    for (row, &packets) in flows.delay_packets.iter().enumerate() {
        let sent: u64 = flows.sent_packets.iter().map(|column| column[row]).sum();
        in_flight[flows.connection.get(row).map_or(row, |&connection| connection as usize)] +=
            sent as i64 - (packets + flows.lost_packets[row]) as i64;
        let largest = flows.delay_max_ns[row];
        assert!(flows.delay_sum_ns[row] <= packets * largest, "seed {seed}, flow {row}");
    }
    assert!(in_flight.iter().all(|&packets| packets >= 0), "seed {seed}: {in_flight:?}");
    for (row, &bytes) in flows.measured_bytes.iter().enumerate() {
        assert!(bytes <= flows.delivered_bytes[row], "seed {seed}, flow {row}");
    }
    packets
}

/// Retransmission timers bring every flow to its end, whatever is lost.
#[test]
fn every_flow_finishes_given_time() {
    for seed in 100..140 {
        let mut config = scenario(seed);
        config.stop = Time::ZERO + Dur::from_secs(3_000);
        config.observers.clear();
        // Traffic that a border blocks entirely cannot finish.
        config.schemes.iter_mut().for_each(|scheme| scheme.class = 0);
        let totals = run_of(Engine::Fast, config).totals;
        assert!(totals.flows > 0 && totals.flows == totals.finished_flows, "seed {seed}: {totals:?}");
    }
}

/// Memory follows the number of concurrent flows: slots of finished flows are reused.
#[test]
fn a_longer_run_needs_no_more_slots() {
    let slots_and_flows = |seconds: u64| {
        let mut config = scenario(1);
        // Traffic that a border blocks entirely cannot finish.
        config.schemes.iter_mut().for_each(|scheme| scheme.class = 0);
        let spec = PoissonSpec {
            sources: config.network.hosts(),
            destinations: Destinations::AnyOther,
            rate: ArrivalRate::FlowsPerSecond(20.0),
            routing: Routing::default(),
            sizes: SizeDistribution::fixed(5_000).expect("a size"),
            start: Time::ZERO,
            end: Time::NEVER,
            scheme: 0,
            number: 0,
        };
        config.flows = Box::new(Poisson::new(&config.network, spec, 1).expect("a workload"));
        config.stop = Time::ZERO + Dur::from_secs(seconds);
        let trial = try_run(Engine::Fast, config, Time::NEVER).expect("the laws hold");
        (trial.slots, trial.records.flows.id.len())
    };
    let ((short_slots, short_flows), (long_slots, long_flows)) = (slots_and_flows(16), slots_and_flows(160));
    assert!(long_flows > 8 * short_flows && short_flows > 300, "{short_flows} and {long_flows} flows");
    assert!(long_slots < 2 * short_slots, "{short_slots} and {long_slots} slots");
}

#[test]
fn the_kind_of_the_event_queue_changes_nothing() {
    for seed in 200..230 {
        assert_eq!(run(Engine::Fast, seed), run(Engine::Calendar, seed));
    }
}
