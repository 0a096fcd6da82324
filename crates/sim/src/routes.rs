//! The path of each flow, as the links it crosses.

use crate::config::Routing;
use crate::network::{Network, NodeId, NodeKind};
use crate::topology::{Hop, RouterPaths};
use sparelane_core::{Domain, Streams};

/// The directed links of a network: cable `c` is link `2c` from its end a to b, and `2c + 1` back.
pub(crate) fn link_of(network: &Network, cable: usize, from: NodeId) -> u32 {
    2 * cable as u32 + u32::from(network.cables[cable].a != from)
}

/// Paths between hosts.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    routers: RouterPaths,
    /// For each host, its cable and what is at the other end.
    attachment: Vec<Option<(usize, NodeId)>>,
    routing: Routing,
    /// Where flows are spread.
    picks: Streams,
}

/// The hops of `single-path` routing between two routers: both ways take the path from the lower-numbered one.
pub(crate) fn single_path(network: &Network, paths: &RouterPaths, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
    if from <= to {
        return paths.between(from, to);
    }
    let mut back = paths.between(to, from)?;
    back.reverse();
    for hop in &mut back {
        let cable = &network.cables[hop.cable];
        hop.from = if hop.from == cable.a { cable.b } else { cable.a };
    }
    Some(back)
}

impl Routes {
    /// The paths under `routing`; `seed`, the run's, decides where flows are spread.
    pub(crate) fn of(network: &Network, routing: Routing, seed: u64) -> Routes {
        let mut attachment = vec![None; network.nodes.len()];
        for (index, cable) in network.cables.iter().enumerate().rev() {
            for (end, other) in [(cable.a, cable.b), (cable.b, cable.a)] {
                if network.nodes[end.index()].kind == NodeKind::Host {
                    attachment[end.index()] = Some((index, other));
                }
            }
        }
        Routes { routers: RouterPaths::of(network), attachment, routing, picks: Streams::new(seed, Domain::Paths) }
    }

    /// The links from host `src` to host `dst` for flow number `flow`; `None` where no path exists.
    pub(crate) fn links(&self, network: &Network, src: NodeId, dst: NodeId, flow: u64) -> Option<Vec<u32>> {
        let (up, first) = self.attachment[src.index()]?;
        let (down, last) = self.attachment[dst.index()]?;
        let mut links = Vec::with_capacity(10);
        links.push(link_of(network, up, src));
        if first == dst {
            return Some(links);
        }
        let hops = match self.routing {
            Routing::SinglePath => single_path(network, &self.routers, first, last)?,
            Routing::FirstCable => self.routers.by_first_cable(first, last)?,
            Routing::PerFlowEcmp => {
                let number = flow ^ (u64::from(src.0) << 32);
                self.routers.spread(first, last, self.picks.of(number).next_u64())?
            }
        };
        links.extend(hops.iter().map(|hop| link_of(network, hop.cable, hop.from)));
        links.push(link_of(network, down, last));
        Some(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Cable;
    use crate::topology::{FatTree, Internet2};
    use sparelane_core::{Dur, Rate};

    #[test]
    fn the_way_back_crosses_the_same_cables() {
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

    /// The loads that the RC3 authors' own ns-3 gives on these routes, as multiples of the load that the capacities were made
    /// for: uniform traffic between routers, of which every pair has one part.
    #[test]
    fn the_first_cables_load_internet2_as_in_the_authors_simulations() {
        let network = Internet2::default().build().expect("the default network");
        let routes = Routes::of(&network, Routing::FirstCable, 1);
        let mut crossing = vec![0_u32; 2 * network.cables.len()];
        for src in 0..10 {
            for dst in (0..10).filter(|&dst| dst != src) {
                // One host at each router stands for all ten.
                let links = routes.links(&network, NodeId(10 + src), NodeId(10 + dst), 0).expect("a path");
                links.iter().for_each(|&link| crossing[link as usize] += 1);
            }
        }
        let (hosts_bps, others) = (10e9, 9.0);
        let load = |from: u32, to: u32| {
            let joins = |cable: &Cable| [cable.a, cable.b] == [NodeId(from.min(to)), NodeId(from.max(to))];
            let cable = network.cables.iter().position(joins).expect("a cable");
            let link = link_of(&network, cable, NodeId(from)) as usize;
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
    fn the_seed_decides_where_flows_are_spread() {
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
}
