//! The path of each flow, as a list of links.

use crate::config::Routing;
use crate::routing::network::{Network, NodeId, NodeKind};
use crate::routing::paths::RouterPaths;
use sparelane_core::{Domain, Streams};

/// Numbers the directed links of a network: cable `c` is link `2c` from its end a to b, and `2c + 1` from b to a.
pub(crate) fn link_of(network: &Network, cable: usize, from: NodeId) -> u32 {
    2 * cable as u32 + u32::from(network.cables[cable].a != from)
}

/// Paths between hosts.
#[derive(Clone, Debug)]
pub struct Routes {
    routers: RouterPaths,
    /// The cable of each host and the node at its other end.
    attachment: Vec<Option<(usize, NodeId)>>,
    routing: Routing,
    /// Random picks of next hops for spread flows.
    picks: Streams,
}

impl Routes {
    /// The paths under `routing`. The run's `seed` decides the paths of spread flows.
    pub fn of(network: &Network, routing: Routing, seed: u64) -> Routes {
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

    /// The links from host `src` to host `dst` for flow number `flow`; `None` if there is no path.
    pub fn links(&self, network: &Network, src: NodeId, dst: NodeId, flow: u64) -> Option<Vec<u32>> {
        let (up, first) = self.attachment[src.index()]?;
        let (down, last) = self.attachment[dst.index()]?;
        let mut links = Vec::with_capacity(10);
        links.push(link_of(network, up, src));
        if first == dst {
            return Some(links);
        }
        let hops = match self.routing {
            Routing::SinglePath => self.routers.both_ways(network, first, last)?,
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
