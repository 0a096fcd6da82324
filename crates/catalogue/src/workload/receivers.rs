//! The receivers of a host under uniform traffic.

use sparelane_core::{Rate, Stream};
use sparelane_sim::{Network, NodeId, NodeKind};
use std::ops::Range;

/// The possible receivers of a host's flows, all equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// Every other host.
    AnyOther,
    /// The hosts at other routers, as in the RC3 paper.
    BehindAnotherRouter,
}

/// A host's first cable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The node at its other end.
    pub(super) router: NodeId,
    /// The rate of its slower direction.
    pub(super) rate: Rate,
}

/// All hosts with a cable, ordered by router, so that the hosts to which a host may not send form a range.
#[derive(Clone, Debug)]
pub(super) struct Receivers {
    /// The access cable by node; `None` for routers and for hosts without a cable.
    access: Vec<Option<Access>>,
    /// Pairs of router and host, sorted.
    ordered: Vec<(NodeId, NodeId)>,
}

impl Receivers {
    pub(super) fn of(network: &Network) -> Receivers {
        let mut access: Vec<Option<Access>> = vec![None; network.nodes.len()];
        for cable in &network.cables {
            for (host, router) in [(cable.a, cable.b), (cable.b, cable.a)] {
                if network.nodes[host.index()].kind == NodeKind::Host {
                    access[host.index()].get_or_insert(Access { router, rate: cable.slowest() });
                }
            }
        }
        let with_cable =
            (0..).map(NodeId).zip(&access).filter_map(|(host, access)| Some((access.as_ref()?.router, host)));
        let mut ordered: Vec<_> = with_cable.collect();
        ordered.sort_unstable();
        Receivers { access, ordered }
    }

    /// Returns the first cable of `host`, if it has one.
    pub(super) fn access(&self, host: NodeId) -> Option<Access> {
        self.access.get(host.index()).copied().flatten()
    }

    /// Returns the positions of the hosts to which `host`, at `router`, may not send.
    pub(super) fn excluded(&self, host: NodeId, router: NodeId, destinations: Destinations) -> Range<usize> {
        match destinations {
            Destinations::AnyOther => {
                let own = self.ordered.partition_point(|&at| at < (router, host));
                own..own + 1
            }
            Destinations::BehindAnotherRouter => {
                let from = self.ordered.partition_point(|&(at, _)| at < router);
                from..self.ordered.partition_point(|&(at, _)| at <= router)
            }
        }
    }

    /// Returns the number of hosts outside `excluded`.
    pub(super) fn eligible(&self, excluded: &Range<usize>) -> usize {
        self.ordered.len() - excluded.len()
    }

    /// Draws one of the hosts outside `excluded`; there must be one.
    pub(super) fn draw(&self, excluded: &Range<usize>, stream: &mut Stream) -> NodeId {
        let drawn = stream.below(self.eligible(excluded) as u64) as usize;
        let place = if drawn < excluded.start { drawn } else { drawn + excluded.len() };
        self.ordered[place].1
    }

    /// Returns the routers with hosts in order, each with the number of its hosts.
    pub(super) fn at_routers(&self) -> impl Iterator<Item = (NodeId, u64)> {
        self.ordered.chunk_by(|one, other| one.0 == other.0).map(|hosts| (hosts[0].0, hosts.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Internet2;
    use sparelane_core::Domain;
    use std::collections::BTreeMap;

    fn drawn(host: NodeId, destinations: Destinations) -> BTreeMap<NodeId, u32> {
        let receivers = Receivers::of(&Internet2::default().build().unwrap());
        let access = receivers.access(host).unwrap();
        let excluded = receivers.excluded(host, access.router, destinations);
        let mut stream = Stream::new(1, Domain::Test, 0);
        let mut counts = BTreeMap::new();
        for _ in 0..100_000 {
            *counts.entry(receivers.draw(&excluded, &mut stream)).or_insert(0) += 1;
        }
        counts
    }

    #[test]
    fn all_other_hosts_are_equally_likely() {
        let counts = drawn(NodeId(57), Destinations::AnyOther);
        assert_eq!(counts.len(), 99);
        assert!(!counts.contains_key(&NodeId(57)));
        assert!(counts.values().all(|&count| (850..1200).contains(&count)), "{counts:?}");
    }

    #[test]
    fn hosts_at_the_same_router_are_excluded_on_request() {
        let counts = drawn(NodeId(57), Destinations::BehindAnotherRouter);
        assert_eq!(counts.len(), 90);
        assert!(counts.keys().all(|host| host.0 % 10 != 7));
        assert!(counts.values().all(|&count| (950..1300).contains(&count)), "{counts:?}");
    }
}
