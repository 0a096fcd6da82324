//! The path of each flow, as the links it crosses.

use crate::config::Routing;
use crate::network::{Network, NodeId, NodeKind};
use crate::topology::RouterPaths;

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
}

impl Routes {
    pub(crate) fn of(network: &Network, routing: Routing) -> Routes {
        let mut attachment = vec![None; network.nodes.len()];
        for (index, cable) in network.cables.iter().enumerate().rev() {
            for (end, other) in [(cable.a, cable.b), (cable.b, cable.a)] {
                if network.nodes[end.index()].kind == NodeKind::Host {
                    attachment[end.index()] = Some((index, other));
                }
            }
        }
        Routes { routers: RouterPaths::of(network), attachment, routing }
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
            Routing::PerFlowEcmp => self.routers.spread(first, last, flow ^ (u64::from(src.0) << 32))?,
            Routing::SinglePath if first <= last => self.routers.between(first, last)?,
            Routing::SinglePath => {
                let mut back = self.routers.between(last, first)?;
                back.reverse();
                for hop in &mut back {
                    let cable = &network.cables[hop.cable];
                    hop.from = if hop.from == cable.a { cable.b } else { cable.a };
                }
                back
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
    use crate::topology::Internet2;

    #[test]
    fn the_way_back_crosses_the_same_cables() {
        let network = Internet2::default().build().expect("the default network");
        let routes = Routes::of(&network, Routing::SinglePath);
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
}
