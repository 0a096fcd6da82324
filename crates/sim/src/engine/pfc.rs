//! The state of priority-based flow control: the waiting bytes of each class by the link that they came over.

use crate::records::CLASSES;
use crate::routing::network::NodeId;
use crate::wire::link::LinkSpec;
use crate::wire::pause::PfcSpec;
use std::collections::BTreeMap;

/// The routers with priority-based flow control.
#[derive(Debug)]
pub(crate) struct Pfc {
    /// The place of the router that sends over each link, among `routers`.
    router_of: Vec<Option<usize>>,
    pub(crate) routers: Vec<Router>,
    /// For each link into such a router, the count of packets that came over it, if its cable has thresholds.
    pub(crate) entries: Vec<Option<Entry>>,
}

/// The links of a router.
#[derive(Debug, Default)]
pub(crate) struct Router {
    /// The links by which it sends.
    pub(crate) ports: Vec<u32>,
    /// The links into it that have an entry.
    pub(crate) entries: Vec<u32>,
}

/// The waiting packets that came over one link.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) spec: PfcSpec,
    /// The waiting bytes, by class.
    pub(crate) bytes: [u64; CLASSES],
    /// The paused classes, one bit each.
    pub(crate) paused: u8,
}

impl Entry {
    /// Returns true if a packet may wait.
    pub(crate) fn has_room(&self, class: u8, bytes: u64) -> bool {
        self.bytes[usize::from(class)] + bytes <= self.spec.xoff_bytes + self.spec.headroom_bytes
    }
}

impl Pfc {
    /// The state of a network at rest; `None` without priority-based flow control.
    pub(crate) fn of(links: &[LinkSpec]) -> Option<Pfc> {
        let mut places: BTreeMap<NodeId, usize> = BTreeMap::new();
        let mut routers: Vec<Router> = Vec::new();
        let mut router_of = Vec::with_capacity(links.len());
        for (link, spec) in (0..).zip(links) {
            let place = spec.pfc_router.map(|router| {
                *places.entry(router).or_insert_with(|| {
                    routers.push(Router::default());
                    routers.len() - 1
                })
            });
            router_of.push(place);
            if let Some(place) = place {
                routers[place].ports.push(link);
                if spec.pfc.is_some() {
                    routers[place].entries.push(link ^ 1);
                }
            }
        }
        let entry = |link: usize| links.get(link ^ 1).and_then(|back| back.pfc);
        let entries =
            (0..links.len()).map(|link| entry(link).map(|spec| Entry { spec, bytes: [0; CLASSES], paused: 0 }));
        (!routers.is_empty()).then(|| Pfc { router_of, routers, entries: entries.collect() })
    }

    /// The place of the router that sends over `link`, if it has priority-based flow control.
    pub(crate) fn router_of(&self, link: u32) -> Option<usize> {
        self.router_of[link as usize]
    }

    /// The count of packets that came over a link, if it has thresholds.
    pub(crate) fn entry(&mut self, link: u32) -> Option<&mut Entry> {
        self.entries[link as usize].as_mut()
    }
}
