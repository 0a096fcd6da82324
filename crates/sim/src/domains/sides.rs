//! The domains at both sides of each link, and the place of the link in them.

use std::sync::Arc;

/// The sides of one link.
#[derive(Clone, Copy, Debug)]
struct LinkSides {
    /// The domains of the sending and the receiving node.
    domains: [u16; 2],
    /// The place of the link among those of each of these domains.
    places: [u32; 2],
}

/// The sides of all links, which all domains share.
#[derive(Clone, Debug)]
pub(crate) struct Sides(Arc<[LinkSides]>);

impl Sides {
    /// The sides of links with these domains of their sending and receiving nodes. In each domain, links keep their order.
    pub(crate) fn of(links: impl IntoIterator<Item = [u16; 2]>) -> Sides {
        let mut counts: Vec<u32> = Vec::new();
        let mut next_place = |domain: u16| {
            let domain = usize::from(domain);
            if counts.len() <= domain {
                counts.resize(domain + 1, 0);
            }
            counts[domain] += 1;
            counts[domain] - 1
        };
        let sides = links.into_iter().map(|domains| {
            let [from, to] = domains;
            let sends = next_place(from);
            LinkSides { domains, places: [sends, if from == to { sends } else { next_place(to) }] }
        });
        Sides(sides.collect())
    }

    /// The number of links.
    pub(crate) fn links(&self) -> u32 {
        self.0.len() as u32
    }

    /// The domains of the sending and the receiving node of a link.
    #[inline(always)]
    pub(crate) fn domains(&self, link: u32) -> [u16; 2] {
        self.0[link as usize].domains
    }

    /// The domain of the sending node of a link.
    pub(crate) fn owner(&self, link: u32) -> usize {
        usize::from(self.domains(link)[0])
    }

    /// The place of a link in a domain at one of its sides.
    #[inline(always)]
    pub(crate) fn place(&self, link: u32, domain: u16) -> u32 {
        let LinkSides { domains, places } = self.0[link as usize];
        debug_assert!(domains.contains(&domain), "link {link} is not in domain {domain}");
        places[usize::from(domains[0] != domain)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_keep_their_order_in_each_domain() {
        let sides = Sides::of([[0, 0], [0, 1], [1, 0], [1, 1], [0, 0]]);
        let places = |domain, links: [u32; 4]| links.map(|link| sides.place(link, domain));
        assert_eq!(places(0, [0, 1, 2, 4]), [0, 1, 2, 3]);
        assert_eq!([1, 2, 3].map(|link| sides.place(link, 1)), [0, 1, 2]);
        assert_eq!((sides.links(), sides.owner(2), sides.domains(1)), (5, 1, [0, 1]));
    }
}
