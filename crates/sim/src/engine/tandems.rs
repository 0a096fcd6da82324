//! Links in tandem: what comes to the first goes to the second at the same event.
//!
//! Where every packet that comes to a link came over one other, which is no faster, the link never has more to do than one
//! packet of the largest size: none is dropped or marked there, and each leaves as the order of the first link has it. What
//! is known when a packet comes to the first link is then known of the second, too. Such a first link *hands on*: a packet
//! goes onto both wires at once, and the first makes no events. Nobody can tell: what the second link does depends on when
//! packets come to it, not on when that is worked out.
//!
//! Which links those are follows from the routes of the flows so far. A later one may bring packets to a second link another
//! way, or lead from the first to elsewhere. Then the first is *parted* from those behind it: what it handed on and is still
//! on its own wire is taken back, and comes to the next link by events, as everywhere.

use crate::wire::link::Link;

/// What comes to a link, as far as the routes so far say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Packets over this link.
    Link(u32),
    /// Packets of a host, or over several links.
    Several,
}

/// What the routes so far say of a link.
#[derive(Clone, Copy, Debug)]
struct Place {
    before: Before,
    /// It makes events, whatever routes come.
    alone: bool,
}

/// Which links have one link before them, and which may not hand on.
#[derive(Clone, Debug)]
pub(crate) struct Tandems {
    places: Vec<Place>,
}

impl Tandems {
    pub(crate) fn new(links: usize) -> Tandems {
        Tandems { places: vec![Place { before: Before::Nothing, alone: false }; links] }
    }

    /// Packets will come along `route`: of its links, those that can hand on do so from now on. Returns the links that must
    /// not any more.
    pub(crate) fn learn(&mut self, links: &mut [Link], route: &[u32]) -> Vec<u32> {
        let mut parted = Vec::new();
        let mut from = Before::Several;
        for (at, &link) in route.iter().enumerate() {
            let place = self.places[link as usize];
            if place.before != Before::Several {
                self.come(from, link, &mut parted);
            }
            if !place.alone {
                // A host may ask about its own link at any time.
                let next = route.get(at + 1).filter(|_| at > 0);
                self.go(links, link, next, &mut parted);
            }
            from = Before::Link(link);
        }
        parted
    }

    /// Packets will come to `link`.
    fn come(&mut self, from: Before, link: u32, parted: &mut Vec<u32>) {
        match self.places[link as usize].before {
            Before::Nothing => self.places[link as usize].before = from,
            Before::Link(first) if from != Before::Link(first) => {
                self.places[link as usize].before = Before::Several;
                self.part(first, parted);
            }
            _ => {}
        }
    }

    /// Packets will go from `link` to `next`, or to a host.
    fn go(&mut self, links: &mut [Link], link: u32, next: Option<&u32>, parted: &mut Vec<u32>) {
        let follows = |&next: &u32| {
            let only = match self.places[next as usize].before {
                Before::Nothing => true,
                before => before == Before::Link(link),
            };
            only && links[next as usize].can_follow(&links[link as usize])
        };
        if next.is_some_and(follows) {
            links[link as usize].hands_on = true;
        } else {
            self.part(link, parted);
        }
    }

    fn part(&mut self, link: u32, parted: &mut Vec<u32>) {
        if !std::mem::replace(&mut self.places[link as usize].alone, true) {
            parted.push(link);
        }
    }
}
