//! Tandem links: two consecutive links that need one event together.
//!
//! Suppose that every packet on a link came over one other link that is no faster. Then at most one packet of the
//! largest size ever waits at the second link: it drops and marks nothing, and sends in the order of the first.
//! Everything about the second hop is then known when a packet arrives at the first link. Such a first link is *fused*
//! with the second: a packet goes onto both wires at once, and the first wire makes no events. Results do not change,
//! because the second link depends on when packets arrive, not on when their arrival is computed.
//!
//! The routes of the flows so far decide which links are fused. A later route may bring packets to a second link
//! another way, or lead from a first link elsewhere. The first link is then *split* from the second for good: packets
//! that it passed on but that are still on its own wire are retracted, and arrive at the next link by events.

use crate::wire::link::Link;

/// The origin of the packets that arrive at a link, according to the routes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Unknown,
    /// All arrive over this link.
    Link(u32),
    /// Some come from a host, or they come over several links.
    Several,
}

/// The state of a link, according to the routes so far.
#[derive(Clone, Copy, Debug)]
struct LinkState {
    origin: Origin,
    /// The link is split for good: it makes events, whatever routes follow.
    is_split: bool,
    /// Packets on new routes do not just enter the queue of the link: it is fused, or packets leave it in bulk.
    is_special: bool,
}

/// The origin of packets at each link, and the links that must not be fused.
#[derive(Clone, Debug)]
pub(crate) struct Tandems {
    states: Vec<LinkState>,
}

impl Tandems {
    pub(crate) fn new(links: usize) -> Tandems {
        let state = LinkState { origin: Origin::Unknown, is_split: false, is_special: false };
        Tandems { states: vec![state; links] }
    }

    /// Leaves `link` as it is: it is neither fused nor split.
    pub(crate) fn exclude(&mut self, link: u32, is_special: bool) {
        let state = &mut self.states[link as usize];
        (state.is_split, state.is_special) = (true, is_special);
    }

    /// Returns true if `link` is fused, or was excluded as special. A route is written after it was learned, so this is in
    /// the cache then, unlike the link.
    pub(crate) fn is_special(&self, link: u32) -> bool {
        self.states[link as usize].is_special
    }

    /// Adds a route. Fuses those of its links that allow it, and returns the links that must be split.
    pub(crate) fn learn(&mut self, links: &mut [Link], route: &[u32]) -> Vec<u32> {
        let mut to_split = Vec::new();
        let mut from = Origin::Several;
        for (at, &link) in route.iter().enumerate() {
            let state = self.states[link as usize];
            if state.origin != Origin::Several {
                self.add_origin(from, link, &mut to_split);
            }
            if !state.is_split {
                // The first link belongs to a host, which may query it at any time: it is never fused.
                let next = route.get(at + 1).filter(|_| at > 0);
                self.add_exit(links, link, next, &mut to_split);
            }
            from = Origin::Link(link);
        }
        to_split
    }

    /// Notes that packets arrive at `link` from `from`.
    fn add_origin(&mut self, from: Origin, link: u32, to_split: &mut Vec<u32>) {
        match self.states[link as usize].origin {
            Origin::Unknown => self.states[link as usize].origin = from,
            Origin::Link(first) if from != Origin::Link(first) => {
                self.states[link as usize].origin = Origin::Several;
                self.split(first, to_split);
            }
            _ => {}
        }
    }

    /// Notes that packets leave `link` for `next`, or for a host.
    fn add_exit(&mut self, links: &mut [Link], link: u32, next: Option<&u32>, to_split: &mut Vec<u32>) {
        let can_fuse = |&next: &u32| {
            let only = match self.states[next as usize].origin {
                Origin::Unknown => true,
                origin => origin == Origin::Link(link),
            };
            only && links[next as usize].can_follow(&links[link as usize])
        };
        if next.is_some_and(can_fuse) {
            links[link as usize].is_fused = true;
            self.states[link as usize].is_special = true;
        } else {
            self.split(link, to_split);
        }
    }

    fn split(&mut self, link: u32, to_split: &mut Vec<u32>) {
        let state = &mut self.states[link as usize];
        if !std::mem::replace(&mut state.is_split, true) {
            state.is_special = false;
            to_split.push(link);
        }
    }
}
