//! The path of each flow, as a list of links.

use crate::config::Routing;
use crate::routing::network::{Network, NodeId, NodeKind};
use crate::routing::paths::{Hop, RouterPaths};
use sparelane_core::{Domain, Streams};

/// The largest number of paths over which the packets of a flow are sprayed, in each direction.
pub const MAX_SPRAYED_PATHS: usize = 256;

/// Numbers the directed links of a network: cable `c` is link `2c` from its end a to b, and `2c + 1` from b to a.
pub(crate) fn link_of(network: &Network, cable: usize, from: NodeId) -> u32 {
    2 * cable as u32 + u32::from(network.cables[cable].a != from)
}

/// Paths between hosts.
#[derive(Clone, Debug)]
pub struct Routes {
    routers: RouterPaths,
    /// The link from each host, and the node at its other end.
    attachment: Vec<Option<(u32, NodeId)>>,
    routing: Routing,
    /// Random picks of next hops for spread flows.
    picks: Streams,
}

impl Routes {
    /// The paths under `routing`. The run's `seed` decides the paths of spread flows.
    pub fn of(network: &Network, routing: Routing, seed: u64) -> Routes {
        let mut attachment = vec![None; network.nodes.len()];
        for (index, cable) in network.cables.iter().enumerate().rev() {
            let link = 2 * index as u32;
            for (end, other, link) in [(cable.a, cable.b, link), (cable.b, cable.a, link + 1)] {
                if network.nodes[end.index()].kind == NodeKind::Host {
                    attachment[end.index()] = Some((link, other));
                }
            }
        }
        Routes { routers: RouterPaths::of(network), attachment, routing, picks: Streams::new(seed, Domain::Paths) }
    }

    /// The links from host `src` to host `dst` for flow number `flow`; `None` if there is no path.
    pub fn links(&self, network: &Network, src: NodeId, dst: NodeId, flow: u64) -> Option<Vec<u32>> {
        let (up, first) = self.attachment[src.index()]?;
        let (down, last) = self.attachment[dst.index()]?;
        let mut links = Vec::with_capacity(10);
        links.push(up);
        if first == dst {
            return Some(links);
        }
        let hops = match self.routing {
            Routing::SinglePath => self.routers.both_ways(network, first, last)?,
            Routing::FirstCable => self.routers.by_first_cable(first, last)?,
            Routing::PerFlowEcmp | Routing::Spray | Routing::SprayRoundRobin => {
                let number = flow ^ (u64::from(src.0) << 32);
                self.routers.spread(first, last, self.picks.of(number).next_u64())?
            }
        };
        links.extend(hops.iter().map(Hop::link));
        links.push(down ^ 1);
        Some(links)
    }

    /// Returns true if the packets of a flow take its paths in turn.
    pub(crate) fn takes_turns(&self) -> bool {
        self.routing == Routing::SprayRoundRobin
    }

    /// The paths from host `src` to host `dst` over which flow number `flow` is sprayed, with the share of each, if there
    /// are several. If there are too many, the flow draws some of them.
    pub(crate) fn sprayed(&self, src: NodeId, dst: NodeId, flow: u64) -> Vec<(Vec<u32>, f64)> {
        if !self.routing.is_spray() {
            return Vec::new();
        }
        let (Some((up, first)), Some((down, last))) = (self.attachment[src.index()], self.attachment[dst.index()])
        else {
            return Vec::new();
        };
        if first == dst {
            return Vec::new();
        }
        let all = self.routers.all(first, last, MAX_SPRAYED_PATHS).unwrap_or_else(|| {
            // A path may be drawn twice, so that its share is that of all paths.
            let hash = self.picks.of(flow ^ (u64::from(src.0) << 32)).next_u64();
            let draw = |number: usize| self.routers.spread(first, last, hash.wrapping_add(number as u64));
            (0..MAX_SPRAYED_PATHS).filter_map(draw).map(|hops| (hops, 1.0 / MAX_SPRAYED_PATHS as f64)).collect()
        });
        if all.len() < 2 {
            return Vec::new();
        }
        let links = |(hops, share): (Vec<Hop>, f64)| {
            let between = hops.iter().map(Hop::link);
            (std::iter::once(up).chain(between).chain([down ^ 1]).collect(), share)
        };
        all.into_iter().map(links).collect()
    }
}
