//! Tests of Poisson workloads.

use super::*;
use crate::topology::{Dumbbell, Internet2};
use crate::workload::rc3_flow_sizes;
use sparelane_core::Rate;

fn internet2() -> Network {
    Internet2::default().build().unwrap()
}

/// Returns 30 % load on the access links of Internet-2, as in the RC3 paper, for `seconds`.
fn paper(network: &Network, seconds: u64) -> PoissonSpec {
    PoissonSpec {
        sources: network.hosts(),
        destinations: Destinations::BehindAnotherRouter,
        rate: ArrivalRate::Load(0.3, LoadOn::Access),
        routing: Routing::SinglePath,
        sizes: rc3_flow_sizes(),
        start: Time::ZERO,
        end: Time::ZERO + Dur::from_secs(seconds),
        scheme: 3,
        number: 0,
    }
}

fn flows(network: &Network, spec: PoissonSpec, seed: u64) -> Vec<FlowSpec> {
    let mut source = Poisson::new(network, spec, seed).unwrap();
    std::iter::from_fn(|| source.next_flow()).collect()
}

#[test]
fn the_paper_load_is_the_published_arrival_rate() {
    let network = internet2();
    let poisson = Poisson::new(&network, paper(&network, 1), 1).unwrap();
    assert!((poisson.flows_per_second() / 100.0 - 139.23).abs() < 0.01, "{}", poisson.flows_per_second());
}

#[test]
fn measured_load_equals_the_requested_load_to_one_percent() {
    let network = internet2();
    let seconds = 150;
    let mut source = Poisson::new(&network, paper(&network, seconds), 1).unwrap();
    let mut bytes = 0.0;
    while let Some(flow) = source.next_flow() {
        bytes += flow.size_bytes.unwrap() as f64;
    }
    let load = bytes * 8.0 / (seconds as f64 * 100.0 * 1e9);
    assert!((load / 0.3 - 1.0).abs() < 0.01, "{load}");
}

#[test]
fn each_host_sends_in_proportion_to_its_own_access_link() {
    let mut network = internet2();
    for cable in network.cables.iter_mut().filter(|cable| cable.b == NodeId(42)) {
        cable.rates = [Rate::from_gbps(4); 2];
    }
    let flows = flows(&network, paper(&network, 20), 1);
    let share = flows.iter().filter(|flow| flow.src == NodeId(42)).count() as f64 / flows.len() as f64;
    assert!((share / (4.0 / 103.0) - 1.0).abs() < 0.05, "{share}");
}

/// Traffic that leaves one host arrives at another: a load refers to the direction that fills first.
#[test]
fn a_load_on_access_is_a_share_of_the_slower_direction() {
    let even = Poisson::new(&internet2(), paper(&internet2(), 1), 1).unwrap().flows_per_second();
    for faster in [0, 1] {
        let mut network = internet2();
        for cable in &mut network.cables[16..] {
            cable.rates[faster] = Rate::from_gbps(8);
        }
        assert_eq!(Poisson::new(&network, paper(&network, 1), 1).unwrap().flows_per_second(), even);
    }
}

#[test]
fn flows_start_in_order_within_the_span_and_end_behind_another_router() {
    let network = internet2();
    let (start, end) = (Time::ZERO + Dur::from_secs(2), Time::ZERO + Dur::from_secs(3));
    let flows = flows(&network, PoissonSpec { start, end, ..paper(&network, 1) }, 7);
    assert!(flows.len() > 13_000);
    assert!(flows.iter().all(|flow| start <= flow.start && flow.start < end && flow.scheme == 3));
    assert!(flows.iter().all(|flow| flow.src.0 % 10 != flow.dst.0 % 10 && flow.src.0 >= 10 && flow.dst.0 >= 10));
    assert!(flows.windows(2).all(|pair| pair[0].start <= pair[1].start));
}

#[test]
fn the_same_seed_and_number_give_the_same_flows_and_others_do_not() {
    let network = internet2();
    let with = |seed, number| flows(&network, PoissonSpec { number, ..paper(&network, 1) }, seed);
    assert_eq!(with(1, 0), with(1, 0));
    assert_ne!(with(1, 0), with(2, 0));
    assert_ne!(with(1, 0), with(1, 1));
}

#[test]
fn a_hosts_flows_do_not_depend_on_the_other_sources() {
    let network = internet2();
    let all = flows(&network, paper(&network, 2), 1);
    let absent = NodeId(33);
    let sources = network.hosts().into_iter().filter(|&host| host != absent).collect();
    let fewer = flows(&network, PoissonSpec { sources, ..paper(&network, 2) }, 1);
    let others: Vec<_> = all.into_iter().filter(|flow| flow.src != absent).collect();
    assert_eq!(fewer, others);
}

#[test]
fn a_longer_workload_begins_with_the_shorter_one() {
    let network = internet2();
    let short = flows(&network, paper(&network, 1), 1);
    assert_eq!(flows(&network, paper(&network, 2), 1)[..short.len()], short);
}

#[test]
fn on_the_balanced_core_all_definitions_of_load_agree() {
    let network = internet2();
    let rate = |on| {
        let spec = PoissonSpec { rate: ArrivalRate::Load(0.3, on), ..paper(&network, 1) };
        Poisson::new(&network, spec, 1).unwrap().flows_per_second()
    };
    for on in [LoadOn::MeanCore, LoadOn::BusiestCore] {
        // The printed capacities are rounded up to a Mb/s, which is at most 0.04 % above the rule's.
        assert!((rate(on) / rate(LoadOn::Access) - 1.0).abs() < 5e-4, "{on:?}");
    }
}

/// The maximum load of a core link of Internet-2 is five times that of the hosts' links.
#[test]
fn the_busiest_core_link_is_that_of_the_runs_routing() {
    let network = internet2();
    let rate = |routing| {
        let spec = PoissonSpec { rate: ArrivalRate::Load(0.3, LoadOn::BusiestCore), routing, ..paper(&network, 1) };
        Poisson::new(&network, spec, 1).unwrap().flows_per_second()
    };
    assert!((rate(Routing::SinglePath) / rate(Routing::FirstCable) / 5.0 - 1.0).abs() < 1e-3);
}

#[test]
fn load_on_the_core_of_a_dumbbell_is_load_on_its_bottleneck() {
    let network = Dumbbell {
        pairs: 4,
        access_rate: Rate::from_gbps(10),
        access_delay: Dur::from_ms(1),
        bottleneck_rate: Rate::from_gbps(1),
        bottleneck_delay: Dur::from_ms(18),
    }
    .build()
    .unwrap();
    let left: Vec<_> = network.hosts()[..4].to_vec();
    let sizes = SizeDistribution::fixed(12_500).unwrap();
    let spec = |on| PoissonSpec {
        sources: left.clone(),
        rate: ArrivalRate::Load(0.5, on),
        sizes: sizes.clone(),
        ..paper(&network, 1)
    };
    let rate = |on| Poisson::new(&network, spec(on), 1).unwrap().flows_per_second();
    // 0.5 Gb/s in flows of 0.1 Mb from left to right; the reverse direction is idle, so the mean over both is half of
    // that.
    assert!((rate(LoadOn::BusiestCore) - 5_000.0).abs() < 1e-6);
    assert!((rate(LoadOn::MeanCore) - 10_000.0).abs() < 1e-6);
}

#[test]
fn explicit_rates_hold_per_source() {
    let network = internet2();
    let spec = PoissonSpec { rate: ArrivalRate::FlowsPerSecond(50.0), ..paper(&network, 20) };
    let count = flows(&network, spec, 1).len() as f64;
    assert!((count / (50.0 * 100.0 * 20.0) - 1.0).abs() < 0.02, "{count}");
}

#[test]
fn each_error_states_the_allowed_values() {
    let network = internet2();
    let good = paper(&network, 1);
    let error = |spec| Poisson::new(&network, spec, 1).unwrap_err().to_string();
    let with_load = |load| PoissonSpec { rate: ArrivalRate::Load(load, LoadOn::Access), ..good.clone() };
    for load in [0.0, -1.0, 30.0, f64::NAN] {
        assert_eq!(
            error(with_load(load)),
            format!("the load is {load}; allowed: above 0, at most 2, where 1 fills the links")
        );
    }
    let rate = ArrivalRate::FlowsPerSecond(f64::INFINITY);
    assert!(error(PoissonSpec { rate, ..good.clone() }).starts_with("a source starts inf flows per second; allowed"));
    let of = |sources| PoissonSpec { sources, ..good.clone() };
    assert_eq!(error(of(vec![])), "the workload has no sources; allowed: one host or more");
    assert_eq!(error(of(vec![NodeId(0)])), "a source is router `r0`; allowed: a host");
    assert_eq!(error(of(vec![NodeId(10); 2])), "a source is listed twice; allowed: each host once");
    assert_eq!(
        error(PoissonSpec { end: Time::ZERO, ..good.clone() }),
        "the workload ends at 0s; allowed: after its start at 0s"
    );
}

#[test]
fn hosts_without_a_partner_or_core_are_refused() {
    let mut network = Network::default();
    let router = network.add("r", sparelane_sim::NodeKind::Router);
    let error = |network: &Network, destinations, on| {
        let rate = ArrivalRate::Load(0.3, on);
        let spec = PoissonSpec { destinations, rate, ..paper(network, 1) };
        Poisson::new(network, spec, 1).unwrap_err().to_string()
    };
    crate::topology::attach_hosts(&mut network, 1, Rate::from_gbps(1), Dur::ZERO).unwrap();
    assert_eq!(
        error(&network, Destinations::AnyOther, LoadOn::Access),
        "source `h1` has no receiver; needed: another host"
    );
    crate::topology::attach_hosts(&mut network, 1, Rate::from_gbps(1), Dur::ZERO).unwrap();
    assert_eq!(
        error(&network, Destinations::BehindAnotherRouter, LoadOn::Access),
        "source `h1` has no receiver; needed: a host at another router"
    );
    assert_eq!(
        error(&network, Destinations::AnyOther, LoadOn::BusiestCore),
        "no cable joins two routers, so no load on the core is defined"
    );
    let far = network.add("far", sparelane_sim::NodeKind::Router);
    network.connect(router, far, Rate::from_gbps(1), Dur::ZERO);
    assert_eq!(
        error(&network, Destinations::AnyOther, LoadOn::MeanCore),
        "no flow crosses a link between routers, so no load on the core is defined"
    );
}

/// Returns the loads with a term for each pair of hosts, added one after the other.
fn loads_pair_by_pair(network: &Network, spec: &PoissonSpec) -> Vec<f64> {
    let receivers = Receivers::of(network);
    let mut matrix = Matrix::new();
    for source in sources(network, spec, &receivers, 1).unwrap() {
        let others: Vec<_> = (network.hosts().into_iter().filter(|&host| host != source.host))
            .filter_map(|host| receivers.access(host))
            .filter(|access| spec.destinations == Destinations::AnyOther || access.router != source.access.router)
            .collect();
        let share_bps = source.access.rate.as_bps() as f64 / others.len() as f64;
        for access in others {
            *matrix.entry((source.access.router, access.router)).or_insert(0.0) += share_bps;
        }
    }
    core_loads(network, &matrix, spec.routing).unwrap()
}

#[test]
fn loads_of_the_core_are_bit_equal_to_the_sum_over_all_pairs() {
    let mut network = internet2();
    for (number, cable) in network.cables.iter_mut().enumerate().filter(|(number, _)| number % 7 > 3) {
        cable.rates = [Rate::from_mbps(900 + number as u64); 2];
    }
    for destinations in [Destinations::AnyOther, Destinations::BehindAnotherRouter] {
        for sources in [network.hosts(), network.hosts().into_iter().step_by(3).collect()] {
            let spec = PoissonSpec { destinations, sources, ..paper(&network, 1) };
            let receivers = Receivers::of(&network);
            let found = super::sources(&network, &spec, &receivers, 1).unwrap();
            let loads = loads_at_full_access(&found, &network, &spec, &receivers).unwrap();
            assert_eq!(loads, loads_pair_by_pair(&network, &spec), "{destinations:?}");
        }
    }
}
