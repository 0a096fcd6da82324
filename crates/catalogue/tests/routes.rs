//! Routes through ready-made networks.

use sparelane_catalogue::topology::{FatTree, Internet2};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Cable, NodeId, Routes, Routing};

#[test]
fn the_return_path_crosses_the_same_cables() {
    let network = Internet2::default().build().expect("the default network");
    let routes = Routes::of(&network, Routing::SinglePath, 1);
    for src in network.hosts() {
        for dst in network.hosts().into_iter().filter(|&dst| dst != src) {
            let there = routes.links(&network, src, dst, 0).expect("a path");
            let mut back = routes.links(&network, dst, src, 0).expect("a path");
            back.reverse();
            assert!(there.iter().zip(&back).all(|(a, b)| a ^ 1 == *b), "{there:?} {back:?}");
            assert!((2..=6).contains(&there.len()));
        }
    }
}

/// The loads in the RC3 authors' own ns-3 on these routes, as multiples of the load for which the capacities were made.
/// Traffic between routers is uniform, with one part per pair.
#[test]
fn the_first_cables_load_internet2_as_in_the_authors_simulations() {
    let network = Internet2::default().build().expect("the default network");
    let routes = Routes::of(&network, Routing::FirstCable, 1);
    let mut crossing = vec![0_u32; 2 * network.cables.len()];
    for src in 0..10 {
        for dst in (0..10).filter(|&dst| dst != src) {
            // One host at each router represents all ten.
            let links = routes.links(&network, NodeId(10 + src), NodeId(10 + dst), 0).expect("a path");
            links.iter().for_each(|&link| crossing[link as usize] += 1);
        }
    }
    let (hosts_bps, others) = (10e9, 9.0);
    let load = |from: u32, to: u32| {
        let joins = |cable: &Cable| [cable.a, cable.b] == [NodeId(from.min(to)), NodeId(from.max(to))];
        let cable = network.cables.iter().position(joins).expect("a cable");
        let link = 2 * cable + usize::from(network.cables[cable].a != NodeId(from));
        f64::from(crossing[link]) * hosts_bps / others / network.cables[cable].rates[0].as_bps() as f64
    };
    let listed = [
        (8, 7, 5.0),
        (4, 5, 3.0),
        (5, 4, 2.0),
        (6, 5, 2.0),
        (9, 8, 2.0),
        (5, 6, 1.5),
        (5, 1, 1.4),
        (1, 2, 1.333),
        (6, 3, 0.333),
    ];
    for (from, to, times) in listed {
        assert!((load(from, to) / times - 1.0).abs() < 0.002, "{from} to {to}: {}", load(from, to));
    }
    let core: Vec<_> =
        network.cables[..16].iter().flat_map(|cable| [(cable.a.0, cable.b.0), (cable.b.0, cable.a.0)]).collect();
    let most = core.iter().map(|&(from, to)| load(from, to)).fold(0.0, f64::max);
    let least = core.iter().map(|&(from, to)| load(from, to)).fold(f64::MAX, f64::min);
    assert!((most - 5.0).abs() < 0.01 && (least - 0.333).abs() < 0.001, "{least} to {most}");
    let above = core.iter().filter(|&&(from, to)| load(from, to) > 1.25).count();
    assert_eq!(above, 8, "directions with over 1.25 of their share");
}

#[test]
fn the_seed_determines_the_spreading_of_flows() {
    let network = FatTree { k: 4, rate: Rate::from_gbps(1), host_rate: Rate::from_gbps(1), delay: Dur::from_us(1) };
    let network = network.build().expect("a tree");
    let hosts = network.hosts();
    let paths = |seed| {
        let routes = Routes::of(&network, Routing::PerFlowEcmp, seed);
        (0..64).map(|flow| routes.links(&network, hosts[0], hosts[15], flow).expect("a path")).collect::<Vec<_>>()
    };
    assert_eq!(paths(1), paths(1));
    let same = paths(1).iter().zip(&paths(2)).filter(|(one, other)| one == other).count();
    assert!((4..=32).contains(&same), "of 64 flows over four paths, {same} keep theirs under another seed");
}
