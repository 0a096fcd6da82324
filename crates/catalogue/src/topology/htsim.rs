//! The `.topo` format of htsim: the tiers of a leaf-spine network or of a fat tree with pods.
//!
//! A header gives the number of hosts (`Nodes`), of tiers (`Tiers`, 2 or 3), and of hosts in a pod (`Podsize`). A block
//! for each tier follows, with one setting on each line, whose words are in any case:
//!
//! | setting | meaning |
//! |---|---|
//! | `Tier` | 0 for switches at the hosts, 1 above them, 2 for the core |
//! | `Downlink_speed_Gbps`, `Downlink_Latency_ns` | rate and delay of the links towards the hosts, in both directions |
//! | `Radix_Down`, `Radix_Up` | number of links of a switch towards the hosts, and away from them |
//! | `Bundle` | number of parallel links to each switch below |
//! | `Oversubscribed` | rate towards the hosts over rate away from them; implied by the others, and checked |
//! | `Switch_Latency_ns` | time that a packet spends in a switch |
//! | `Queue_Down`, `Queue_Up` | sizes of output queues in bytes; otherwise those of the scenario |
//!
//! Source: the reader and the examples in `sim/datacenter` of the repository of htsim (Broadcom/csg-htsim).
//!
//! Differences: half of a switch's latency is added to the delay of each of its links, which gives each path the same
//! delay. A link has one queue size for both directions, so the two sizes must be equal if both are given. Queues of
//! hosts' interfaces are those of the scenario.

use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Limit, Network, NodeId, NodeKind};
use std::collections::BTreeMap;

/// The settings of a tier.
const SETTINGS: [&str; 9] = [
    "downlink_speed_gbps",
    "downlink_latency_ns",
    "radix_down",
    "radix_up",
    "bundle",
    "oversubscribed",
    "switch_latency_ns",
    "queue_down",
    "queue_up",
];
const HEADER: [&str; 3] = ["nodes", "tiers", "podsize"];
/// The names of switches by tier.
const SWITCHES: [&str; 3] = ["tor", "agg", "core"];
/// The maximum of every number in the file, which keeps products of three below the overflow.
const MAX_NUMBER: u64 = 1_000_000;
/// The maximum size of a queue in bytes: a terabyte.
const MAX_QUEUE_BYTES: u64 = 1_000_000_000_000;

/// Numbers by their lower-case names, each with its line.
#[derive(Default)]
struct Numbers(BTreeMap<&'static str, (usize, u64)>);

impl Numbers {
    fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).map(|&(_, number)| number)
    }

    /// Returns a number that the file must give, at least one.
    fn need(&self, name: &str, of: &str) -> Result<u64, TopologyError> {
        match self.0.get(name) {
            Some(&(line, 0)) => Err(TopologyError::at(line, format!("{name} of {of} is 0; allowed: 1 or more"))),
            Some(&(_, number)) => Ok(number),
            None => Err(TopologyError::new(format!("{name} of {of} is missing"))),
        }
    }
}

/// The links below the switches of a tier.
struct Downlinks {
    rate: Rate,
    delay: Dur,
    limit: Option<Limit>,
    /// Number of parallel links between two switches.
    bundle: u64,
}

/// Builds the network that `text` describes: first the hosts, `h0`, `h1`, ..., and then the switches of each tier,
/// `tor0`, `agg0` and `core0`.
///
/// # Errors
/// Fails on an unknown or repeated word, a number that is missing or out of bounds, and numbers that do not fit together.
pub fn parse(text: &str) -> Result<Network, TopologyError> {
    let (header, tiers) = read(text)?;
    let [hosts, count, pod] = HEADER.map(|name| header.need(name, "the header"));
    let (hosts, count, pod) = (hosts?, count?, pod?);
    if !(2..=3).contains(&count) {
        return Err(TopologyError::new(format!("the network has {count} tiers; allowed: 2 or 3")));
    }
    bounds::nodes(hosts)?;
    let tier = |number: usize| -> Result<&Numbers, TopologyError> {
        tiers
            .get(&number)
            .ok_or_else(|| TopologyError::new(format!("`Tier {number}` is missing; the header announces it")))
    };
    let top = count as usize - 1;
    let down = |number: usize| tier(number)?.need("radix_down", &format!("tier {number}"));
    let up = |number: usize| tier(number)?.need("radix_up", &format!("tier {number}"));
    let links = (0..=top).map(|number| downlinks(&tiers, number, top)).collect::<Result<Vec<_>, _>>()?;

    let pods = divided("podsize", pod, "nodes", hosts)?;
    let tors = divided("radix_down of tier 0", down(0)?, "podsize", pod)?;
    let aggs = divided("bundle of tier 1", links[1].bundle, "radix_up of tier 0", up(0)?)?;
    equal(
        "radix_down of tier 1",
        down(1)?,
        "the switches of tier 0 in a pod, times the bundle",
        tors * links[1].bundle,
    )?;
    if links[0].bundle != 1 {
        return Err(TopologyError::new("bundle of tier 0 is above 1; allowed: 1, because a host has one link"));
    }
    if top == 1 && pods > 1 {
        let message = format!("the network has 2 tiers and {pods} pods; allowed: one pod, because no tier joins pods");
        return Err(TopologyError::new(message));
    }
    let cores = match top {
        2 => {
            let of_each = divided("bundle of tier 2", links[2].bundle, "radix_up of tier 1", up(1)?)?;
            equal("radix_down of tier 2", down(2)?, "the pods, times the bundle", pods * links[2].bundle)?;
            of_each * aggs
        }
        _ => 0,
    };
    for number in 0..top {
        check_oversubscription(tier(number)?, tier(number + 1)?, number)?;
    }
    bounds::nodes(hosts + pods * (tors + aggs) + cores)?;
    bounds::cables(hosts + pods * tors * aggs * links[1].bundle + pods * cores * links.get(2).map_or(0, |l| l.bundle))?;
    Ok(build([hosts, pods, tors, aggs, cores], &links))
}

/// Adds the nodes and cables: each switch to all switches of the tier above in its pod, and switch number i of a pod to
/// the cores i, i + n, i + 2n, ..., with n such switches in a pod.
fn build([hosts, pods, tors, aggs, cores]: [u64; 5], links: &[Downlinks]) -> Network {
    let mut network = Network::default();
    let mut added = |name: &str, kind, count: u64| -> Vec<NodeId> {
        (0..count).map(|number| network.add(format!("{name}{number}"), kind)).collect()
    };
    let host = added("h", NodeKind::Host, hosts);
    let [tor, agg, core] = [pods * tors, pods * aggs, cores];
    let [tor, agg, core] =
        [(0, tor), (1, agg), (2, core)].map(|(tier, count)| added(SWITCHES[tier], NodeKind::Router, count));
    let mut join = |a: NodeId, b: NodeId, links: &Downlinks| {
        for _ in 0..links.bundle {
            network.connect(a, b, links.rate, links.delay).limit = links.limit;
        }
    };
    let per_tor = hosts as usize / tor.len();
    for (place, &host) in host.iter().enumerate() {
        join(host, tor[place / per_tor], &links[0]);
    }
    let (tors, aggs) = (tors as usize, aggs as usize);
    for (place, &tor) in tor.iter().enumerate() {
        let pod = place / tors;
        agg[pod * aggs..(pod + 1) * aggs].iter().for_each(|&agg| join(tor, agg, &links[1]));
    }
    for (place, &agg) in agg.iter().enumerate() {
        core.iter().skip(place % aggs).step_by(aggs).for_each(|&core| join(agg, core, &links[2]));
    }
    network
}

/// Reads the header and the settings of each tier.
fn read(text: &str) -> Result<(Numbers, BTreeMap<usize, Numbers>), TopologyError> {
    let mut header = Numbers::default();
    let mut tiers: BTreeMap<usize, Numbers> = BTreeMap::new();
    let mut current = None;
    for (line, content) in (1..).zip(text.lines()) {
        let words: Vec<_> = content.split_whitespace().collect();
        let &[word, value] = &words[..] else {
            if words.first().is_none_or(|word| word.starts_with('#')) {
                continue;
            }
            return Err(TopologyError::at(line, format!("{} words; allowed: a setting and its number", words.len())));
        };
        if word.starts_with('#') {
            continue;
        }
        let lower = word.to_ascii_lowercase();
        let max = if lower.starts_with("queue") { MAX_QUEUE_BYTES } else { MAX_NUMBER };
        let number = value.parse().ok().filter(|number| *number <= max).ok_or_else(|| {
            TopologyError::at(line, format!("{word} is `{value}`; allowed: a whole number from 0 to {max}"))
        })?;
        if lower == "tier" {
            let is_new = number <= 2 && tiers.insert(number as usize, Numbers::default()).is_none();
            current = Some(number as usize).filter(|_| is_new);
            if current.is_none() {
                return Err(TopologyError::at(line, format!("Tier {number}; allowed: 0, 1 and 2, each once")));
            }
            continue;
        }
        let (names, numbers) = match current.and_then(|tier| tiers.get_mut(&tier)) {
            Some(numbers) => (&SETTINGS[..], numbers),
            None => (&HEADER[..], &mut header),
        };
        let Some(name) = names.iter().find(|name| **name == lower) else {
            let message = format!("`{word}` is not known here; allowed: {}, tier", names.join(", "));
            return Err(TopologyError::at(line, message));
        };
        if numbers.0.insert(name, (line, number)).is_some() {
            return Err(TopologyError::at(line, format!("{word} is given twice; allowed: once in each block")));
        }
    }
    Ok((header, tiers))
}

/// Returns the links below tier `number`.
fn downlinks(tiers: &BTreeMap<usize, Numbers>, number: usize, top: usize) -> Result<Downlinks, TopologyError> {
    let of = format!("tier {number}");
    let missing = || TopologyError::new(format!("`Tier {number}` is missing; the header announces it"));
    let settings = tiers.get(&number).ok_or_else(missing)?;
    let rate = Rate::from_gbps(settings.need("downlink_speed_gbps", &of)?);
    // A path crosses two links for each switch, so each link takes half of the latency of its switches.
    let latency_ns = |number: usize| tiers.get(&number).and_then(|tier| tier.get("switch_latency_ns")).unwrap_or(0);
    let below = number.checked_sub(1);
    let switch_ps = (latency_ns(number) + below.map_or(0, latency_ns)) * 1000 / 2;
    let delay = Dur::from_ns(settings.need("downlink_latency_ns", &of)?) + Dur::from_ps(switch_ps);
    // The queue away from the hosts is in the switch below; that of a host belongs to its interface.
    let up = below.and_then(|below| tiers.get(&below)).and_then(|tier| tier.get("queue_up"));
    let limit = match (settings.get("queue_down"), up) {
        (Some(down), Some(up)) if down != up => {
            return Err(TopologyError::new(format!(
                "queue_down of tier {number} is {down} bytes and queue_up of the tier below {up}; allowed: equal sizes, \
                 because a link has one"
            )));
        }
        (down, up) => down.or(up),
    };
    if number == top && settings.get("radix_up").is_some() {
        return Err(TopologyError::new(format!("radix_up of tier {number}; allowed: none, because no tier is above")));
    }
    let bundle = if settings.get("bundle").is_some() { settings.need("bundle", &of)? } else { 1 };
    Ok(Downlinks {
        rate: bounds::rate(None, "the rate", rate)?,
        delay: bounds::delay(None, "the delay", delay)?,
        limit: limit.map(Limit::Bytes),
        bundle,
    })
}

fn check_oversubscription(tier: &Numbers, above: &Numbers, number: usize) -> Result<(), TopologyError> {
    let Some(stated) = tier.get("oversubscribed") else { return Ok(()) };
    let product = |radix: &Numbers, name: &str, rate: &Numbers| {
        radix.get(name).unwrap_or(0) * rate.get("downlink_speed_gbps").unwrap_or(0)
    };
    let (down, up) = (product(tier, "radix_down", tier), product(tier, "radix_up", above));
    if down == stated * up {
        return Ok(());
    }
    Err(TopologyError::new(format!(
        "oversubscribed of tier {number} is {stated}, but its switches have {down} Gb/s towards the hosts and {up} Gb/s \
         away from them"
    )))
}

/// Returns the number of times that `part` is in `whole`.
fn divided(what: &str, part: u64, of: &str, whole: u64) -> Result<u64, TopologyError> {
    if whole.is_multiple_of(part) {
        return Ok(whole / part);
    }
    Err(TopologyError::new(format!("{what} is {part}, which does not divide {of}, {whole}")))
}

fn equal(what: &str, given: u64, other: &str, expected: u64) -> Result<(), TopologyError> {
    if given == expected {
        return Ok(());
    }
    Err(TopologyError::new(format!("{what} is {given}; allowed: {expected}: {other}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF_SPINE: &str = "# two leaves\nNodes 4\nTiers 2\nPodsize 4\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down \
                              2\nRadix_Up 2\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 50\nRadix_Down \
                              2\nDownlink_Latency_ns 2000\n";
    /// Two pods of two leaves, and four cores with two parallel links to each switch below.
    const FAT_TREE: &str = "nodes 8\ntiers 3\npodsize 4\ntier 0\noversubscribed 1\ndownlink_speed_gbps \
                            200\nradix_down 2\nradix_up 2\ndownlink_latency_ns 1000\nswitch_latency_ns 500\ntier \
                            1\ndownlink_speed_gbps 200\nradix_down 2\nradix_up 4\ndownlink_latency_ns \
                            1000\nswitch_latency_ns 300\nqueue_down 80000\ntier 2\ndownlink_speed_gbps \
                            100\nradix_down 4\ndownlink_latency_ns 1000\nbundle 2\n";

    fn cables(network: &Network) -> Vec<String> {
        let name = |id: NodeId| &network.nodes[id.index()].name;
        network.cables.iter().map(|cable| format!("{}-{}", name(cable.a), name(cable.b))).collect()
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn two_tiers_are_a_leaf_spine_network_with_the_hosts_first() {
        let network = parse(LEAF_SPINE).unwrap();
        assert_eq!(network.hosts(), [0, 1, 2, 3].map(NodeId));
        assert_eq!(
            cables(&network),
            ["h0-tor0", "h1-tor0", "h2-tor1", "h3-tor1", "tor0-agg0", "tor0-agg1", "tor1-agg0", "tor1-agg1"]
        );
        assert_eq!((network.cables[0].rates, network.cables[0].delay), ([Rate::from_gbps(100); 2], Dur::from_us(1)));
        assert_eq!((network.cables[4].rates, network.cables[4].delay), ([Rate::from_gbps(50); 2], Dur::from_us(2)));
        assert_eq!(network.cables[4].limit, None);
    }

    #[test]
    fn three_tiers_have_pods_bundles_and_the_latency_of_switches() {
        let network = parse(FAT_TREE).unwrap();
        assert_eq!((network.hosts().len(), network.routers().len()), (8, 4 + 4 + 4));
        let cables = cables(&network);
        assert_eq!(cables.len(), 8 + 8 + 16);
        assert_eq!(cables[8..12], ["tor0-agg0", "tor0-agg1", "tor1-agg0", "tor1-agg1"]);
        assert_eq!(
            cables[16..22],
            ["agg0-core0", "agg0-core0", "agg0-core2", "agg0-core2", "agg1-core1", "agg1-core1"]
        );
        let delays = [0, 8, 16].map(|cable| network.cables[cable].delay);
        assert_eq!(delays, [1000 + 250, 1000 + 250 + 150, 1000 + 150].map(Dur::from_ns));
        assert_eq!((network.cables[8].limit, network.cables[16].limit), (Some(Limit::Bytes(80_000)), None));
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        for (text, from, to, expected) in [
            (LEAF_SPINE, "Nodes 4", "Nodes 0", "line 2: nodes of the header is 0; allowed: 1 or more"),
            (LEAF_SPINE, "Nodes 4", "Nodes -4", "line 2: Nodes is `-4`; allowed: a whole number from 0 to 1000000"),
            (LEAF_SPINE, "Nodes 4", "Nodes 4 4", "line 2: 3 words; allowed: a setting and its number"),
            (LEAF_SPINE, "Nodes 4", "Hosts 4", "line 2: `Hosts` is not known here; allowed: nodes, tiers, podsize"),
            (LEAF_SPINE, "Nodes 4\n", "", "nodes of the header is missing"),
            (LEAF_SPINE, "Nodes 4", "Nodes 6", "podsize is 4, which does not divide nodes, 6"),
            (LEAF_SPINE, "Nodes 4", "Nodes 8", "the network has 2 tiers and 2 pods; allowed: one pod"),
            (LEAF_SPINE, "Tiers 2", "Tiers 4", "the network has 4 tiers; allowed: 2 or 3"),
            (LEAF_SPINE, "Tiers 2", "Tiers 3", "`Tier 2` is missing; the header announces it"),
            (LEAF_SPINE, "Tier 1", "Tier 0", "line 11: Tier 0; allowed: 0, 1 and 2, each once"),
            (LEAF_SPINE, "Radix_Up 2", "Radix_Up 2\nRadix_up 2", "line 10: Radix_up is given twice"),
            (LEAF_SPINE, "Radix_Up 2\n", "", "radix_up of tier 0 is missing"),
            (LEAF_SPINE, "Radix_Up 2", "Radix_Up 2\nOversubscribed 4", "oversubscribed of tier 0 is 4, but its"),
            (LEAF_SPINE, "Podsize 4", "Podsize 4\nTier 3", "line 5: Tier 3; allowed: 0, 1 and 2"),
            (FAT_TREE, "radix_down 4", "radix_down 2", "radix_down of tier 2 is 2; allowed: 4: the pods, times the"),
            (FAT_TREE, "radix_up 2", "radix_up 2\nqueue_up 1", "queue_down of tier 1 is 80000 bytes and queue_up"),
            (FAT_TREE, "bundle 2", "bundle 3", "bundle of tier 2 is 3, which does not divide radix_up of tier 1, 4"),
        ] {
            assert!(text.contains(from), "{from}");
            let found = error(&text.replacen(from, to, 1));
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
    }
}
