//! The networks that replace those of the RC3 paper's robustness experiments (NSDI 2014, section 5.1.2).
//!
//! The expected numbers were computed independently: the number of router pairs whose static shortest path uses each
//! link.

use sparelane_catalogue::topology::pairs_per_cable;
use sparelane_scenario::Scenario;
use sparelane_sim::Network;
use std::path::Path;

struct Expected {
    scenario: &'static str,
    routers: u64,
    links: usize,
    /// Two neighbours, and the number of router pairs routed over their cable.
    pairs: &'static [(&'static str, &'static str, u64)],
    /// The sum over all cables, which is the number of core hops of all router pairs.
    all_pairs: u64,
    /// The same sum, weighted by each cable's position in the file, so that no two cables can be confused.
    weighed_pairs: u64,
}

const EXPECTED: [Expected; 4] = [
    Expected {
        scenario: "rc3-telstra",
        routers: 57,
        links: 59,
        pairs: &[
            ("Adelaide, Australia", "Melbourne, Australia", 702),
            ("Canberra, Australia", "Sydney, Australia", 104),
            ("Darwin, Australia", "Perth, Australia", 7),
        ],
        all_pairs: 5310,
        weighed_pairs: 146212,
    },
    Expected {
        scenario: "rc3-redclara",
        routers: 13,
        links: 17,
        pairs: &[("US", "MX", 21), ("PN", "BR", 18), ("CL", "BR", 2)],
        all_pairs: 188,
        weighed_pairs: 1572,
    },
    Expected {
        scenario: "rc3-esnet",
        routers: 68,
        links: 79,
        pairs: &[("Salt Lake", "SEA", 605), ("CHI-SL", "CERN", 59), ("DOE-A", "SNLA", 4)],
        all_pairs: 9848,
        weighed_pairs: 372826,
    },
    Expected {
        scenario: "rc3-abilene",
        routers: 11,
        links: 14,
        pairs: &[("Kansas City", "Indianapolis", 16), ("Chicago", "Indianapolis", 13), ("Atlanta", "Indianapolis", 3)],
        all_pairs: 133,
        weighed_pairs: 1070,
    },
];

fn network(expected: &Expected, hosts_per_router: u32) -> Network {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let overrides = [format!("topology.hosts_per_router={hosts_per_router}")];
    let scenario = Scenario::load(&folder.join(format!("{}.toml", expected.scenario)), &overrides);
    scenario.unwrap_or_else(|error| panic!("{error}")).build().expect("a run").network
}

#[test]
fn the_paths_lead_as_many_router_pairs_over_each_link_as_were_counted() {
    for expected in &EXPECTED {
        let name = expected.scenario;
        let network = network(expected, 10);
        assert_eq!(network.nodes.len(), 11 * expected.routers as usize, "{name}");
        let pairs = pairs_per_cable(&network).expect("connected");
        let (core, access) = pairs.split_at(expected.links);
        assert_eq!(access, vec![0; 10 * expected.routers as usize], "{name}");
        assert_eq!(core.iter().sum::<u64>(), expected.all_pairs, "{name}");
        assert_eq!((1..).zip(core).map(|(place, pairs)| place * pairs).sum::<u64>(), expected.weighed_pairs, "{name}");
        for &(a, b, count) in expected.pairs {
            assert_eq!(pairs[cable(&network, a, b)], count, "{name}: {a} to {b}");
        }
    }
}

#[test]
fn capacities_follow_the_pairs_and_the_hosts() {
    for expected in &EXPECTED {
        for hosts_per_router in [2, 10] {
            let network = network(expected, hosts_per_router);
            for &(a, b, count) in expected.pairs {
                let full_gbps = count as f64 * f64::from(hosts_per_router) / (expected.routers - 1) as f64;
                let gbps = network.cables[cable(&network, a, b)].slowest().as_bps() as f64 / 1e9;
                assert!((gbps - full_gbps).abs() < 2e-9, "{}: {a} to {b}: {gbps} Gb/s", expected.scenario);
            }
        }
    }
}

/// The mean base round trip of the paper's Internet-2: 24, 44, 64 and 84 ms for 16, 17, 9 and 3 of 45 router pairs.
#[test]
fn the_mean_round_trip_is_that_of_internet2() {
    for expected in &EXPECTED {
        let router_pairs = expected.routers * (expected.routers - 1) / 2;
        let mean_hops = expected.all_pairs as f64 / router_pairs as f64;
        let core_ms = network(expected, 2).cables[0].delay.as_secs_f64() * 1e3;
        let mean_ms = 2.0 * (mean_hops * core_ms + 2.0);
        assert!((mean_ms - 43.6).abs() < 0.02, "{}: {mean_ms} ms", expected.scenario);
    }
}

fn cable(network: &Network, a: &str, b: &str) -> usize {
    let ends = [a, b].map(|name| network.find(name).unwrap_or_else(|| panic!("no router {name}")));
    let found = network.cables.iter().position(|cable| [cable.a, cable.b] == ends);
    found.unwrap_or_else(|| panic!("no cable from {a} to {b}"))
}
