//! Static shortest paths between routers, by propagation delay.
//!
//! If several next hops lie on a shortest path, one of three rules applies: the lowest node number, the first cable,
//! or, for flows that are spread, a hash of the flow. The first rule reproduces the capacities of the RC3 paper's
//! Internet-2 network exactly; the second reproduces the link loads of the authors' simulations.

use crate::routing::network::{Network, NodeId};
use sparelane_core::{Domain, Dur, Stream};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::OnceLock;

/// One cable on a path, and the node from which it is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The direction of the cable: twice its index in [`Network::cables`], and one more from its end b to its end a.
    link: u32,
    /// The end at which the packet enters.
    pub from: NodeId,
}

impl Hop {
    /// The index in [`Network::cables`].
    pub const fn cable(&self) -> usize {
        self.link as usize / 2
    }

    /// The number of the directed link.
    pub(crate) const fn link(&self) -> u32 {
        self.link
    }
}

/// The distance to a destination: delay, then hops. Counting hops prevents loops over cables without delay.
type Distance = (Dur, u32);

/// The distance to unreachable routers.
const UNREACHABLE: Distance = (Dur::MAX, u32::MAX);

/// A cable as seen from one of its ends.
#[derive(Clone, Copy, Debug)]
struct Exit {
    /// The number of the directed link.
    link: u32,
    /// The router at the other end, as an index among routers, and its kind.
    to: u32,
    kind: u32,
    delay: Dur,
}

/// The shortest paths between routers. Hosts take no part: they never forward.
///
/// Routers are of one kind if cables of the same delays lead to the same neighbours. They are then equally far from all
/// others. In a fat tree, these are the edge routers of a pod, and the core routers that have the same neighbours; in a
/// spine-leaf network, all leaves and all spines. Distances are computed between kinds, when a path to a router of that
/// kind is first requested, and cached: 16 bytes per kind. Next hops follow from them. Where routers of a kind have the
/// same consecutive exits as next hops, or only the one to the destination, these are cached, too: 6 bytes per kind.
#[derive(Clone, Debug)]
pub struct RouterPaths {
    /// The index among the routers of each node; [`NO_ROUTER`] for a host.
    places: Vec<u32>,
    /// The nodes that are routers, in order.
    nodes: Vec<NodeId>,
    /// The cables between routers, by the router they leave from, in order of the one they lead to and then by number.
    exits: Vec<Vec<Exit>>,
    /// The kind of each router.
    kinds: Vec<u32>,
    /// The number of each router among those of its kind.
    ranks: Vec<u32>,
    /// The number of routers of each kind.
    sizes: Vec<u32>,
    /// The cables from a router of each kind, one to each kind of neighbours: that of the least delay.
    exits_of_kinds: Vec<Vec<Exit>>,
    /// The first router of each kind.
    first_of_kinds: Vec<u32>,
    /// No two cables connect the same routers, so that routers of one kind have the same exits in the same order.
    is_simple: bool,
    /// The ways to a router of each kind, once computed.
    towards: Vec<OnceLock<Towards>>,
}

/// The ways to routers of one kind, from each kind.
#[derive(Clone, Debug)]
struct Towards {
    distances: Box<[Distance]>,
    next_hops: Box<[NextHops]>,
}

/// The exits on shortest paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextHops {
    /// They must be searched for.
    Unknown,
    /// `count` exits from `first` on.
    Among { first: u16, count: u16 },
    /// The cable to the destination. The exits from `first` on lead to the routers of its kind, in order.
    Direct { first: u16 },
}

/// The distances to one router.
#[derive(Clone, Copy, Debug)]
struct Distances<'a> {
    to: u32,
    /// The distances of other routers, by kind.
    of_kinds: &'a [Distance],
    next_hops: &'a [NextHops],
}

impl Distances<'_> {
    /// The distance from the router with index `place`, which is of this kind.
    fn from(self, place: u32, kind: u32) -> Distance {
        if place == self.to { (Dur::ZERO, 0) } else { self.of_kinds[kind as usize] }
    }
}

/// The index of a node that is not a router.
const NO_ROUTER: u32 = u32::MAX;

impl RouterPaths {
    /// The paths in `network`.
    pub fn of(network: &Network) -> RouterPaths {
        let nodes = network.routers();
        let mut places = vec![NO_ROUTER; network.nodes.len()];
        for (place, node) in (0..).zip(&nodes) {
            places[node.index()] = place;
        }
        let mut exits = vec![Vec::new(); nodes.len()];
        for (cable, ends) in network.cables.iter().enumerate() {
            let (a, b, delay) = (places[ends.a.index()], places[ends.b.index()], ends.delay);
            if a != NO_ROUTER && b != NO_ROUTER {
                let link = 2 * cable as u32;
                exits[a as usize].push(Exit { link, to: b, kind: 0, delay });
                exits[b as usize].push(Exit { link: link + 1, to: a, kind: 0, delay });
            }
        }
        exits.iter_mut().for_each(|exits| exits.sort_by_key(|exit| (exit.to, exit.link)));
        let kinds = kinds(&exits);
        exits.iter_mut().flatten().for_each(|exit| exit.kind = kinds[exit.to as usize]);
        let (mut exits_of_kinds, mut first_of_kinds) = (Vec::new(), Vec::new());
        for ((place, exits), &kind) in (0..).zip(&exits).zip(&kinds) {
            if kind as usize == exits_of_kinds.len() {
                exits_of_kinds.push(one_to_each_kind(exits, kind));
                first_of_kinds.push(place);
            }
        }
        let is_to_another = |(place, exits): (u32, &Vec<Exit>)| {
            exits.windows(2).all(|pair| pair[0].to != pair[1].to) && exits.iter().all(|exit| exit.to != place)
        };
        let is_simple = (0..).zip(&exits).all(is_to_another);
        let towards = vec![OnceLock::new(); exits_of_kinds.len()];
        let mut sizes = vec![0; exits_of_kinds.len()];
        let rank = |&kind: &u32| {
            sizes[kind as usize] += 1;
            sizes[kind as usize] - 1
        };
        let ranks = kinds.iter().map(rank).collect();
        RouterPaths { places, nodes, exits, kinds, ranks, sizes, exits_of_kinds, first_of_kinds, is_simple, towards }
    }

    /// The hops from router `from` to router `to`: empty if they are the same, `None` if there is no path or one of
    /// them is not a router.
    pub fn between(&self, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
        self.walk(from, to, |_, mut choices| choices.next())
    }

    /// The path of [`between`](Self::between) from the lower-numbered router, used in both directions.
    pub fn both_ways(&self, network: &Network, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
        if from <= to {
            return self.between(from, to);
        }
        let mut back = self.between(to, from)?;
        back.reverse();
        for hop in &mut back {
            let cable = &network.cables[hop.cable()];
            hop.from = if hop.from == cable.a { cable.b } else { cable.a };
            hop.link ^= 1;
        }
        Some(back)
    }

    /// Like [`between`](Self::between), but among several next hops each router takes the one whose cable has the
    /// lowest number. The hops from `to` to `from` may differ.
    pub fn by_first_cable(&self, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
        self.walk(from, to, |_, choices| choices.min_by_key(|exit| exit.link))
    }

    /// Like [`between`](Self::between), for a flow that is spread over all shortest paths: at each router, `hash` picks
    /// one of the next hops.
    pub fn spread(&self, from: NodeId, to: NodeId, hash: u64) -> Option<Vec<Hop>> {
        let pick = |at: NodeId, count: usize| match count {
            0 | 1 => 0,
            count => Stream::new(hash, Domain::Paths, u64::from(at.0)).below(count as u64) as usize,
        };
        let (mut at, last, distances) = (self.place(from)?, self.place(to)?, self.distances(to)?);
        let mut hops = Vec::with_capacity(8);
        let mut found = Vec::new();
        while at != last {
            let (node, exits) = (self.nodes[at as usize], &self.exits[at as usize]);
            let exit = match distances.next_hops[self.kinds[at as usize] as usize] {
                NextHops::Among { first, count } => exits.get(usize::from(first) + pick(node, usize::from(count)))?,
                NextHops::Direct { first } => exits.get(usize::from(first) + self.ranks[last as usize] as usize)?,
                NextHops::Unknown => {
                    found.clear();
                    found.extend(self.choices(at, distances));
                    found.get(pick(node, found.len())).copied()?
                }
            };
            hops.push(Hop { link: exit.link, from: node });
            at = exit.to;
        }
        Some(hops)
    }

    /// All shortest paths from `from` to `to`, with the share of packets that takes each if every router divides them
    /// evenly. `None` if there are more than `most`, and under the conditions of [`between`](Self::between).
    pub(crate) fn all(&self, from: NodeId, to: NodeId, most: usize) -> Option<Vec<(Vec<Hop>, f64)>> {
        let (first, last, distances) = (self.place(from)?, self.place(to)?, self.distances(to)?);
        let (mut open, mut complete) = (vec![(first, Vec::new(), 1.0)], Vec::new());
        while let Some((at, hops, share)) = open.pop() {
            if at == last {
                complete.push((hops, share));
            } else {
                let choices = self.choices(at, distances);
                let each = share / choices.clone().count() as f64;
                for exit in choices {
                    let hop = Hop { link: exit.link, from: self.nodes[at as usize] };
                    let longer = hops.iter().copied().chain([hop]).collect();
                    open.push((exit.to, longer, each));
                }
            }
            if open.len() + complete.len() > most {
                return None;
            }
        }
        Some(complete)
    }

    /// The share of many spread flows from `from` to `to` that takes each hop: at every router, flows divide evenly
    /// among the next hops. `None` under the conditions of [`between`](Self::between).
    pub fn shares(&self, from: NodeId, to: NodeId) -> Option<Vec<(Hop, f64)>> {
        let (first, distances) = (self.place(from)?, self.distances(to)?);
        if self.distance(first, distances) == UNREACHABLE {
            return None;
        }
        // A router divides its share once all of it has arrived, that is, after every router that leads to it.
        let mut to_come = vec![0_usize; self.nodes.len()];
        let mut reached = vec![false; self.nodes.len()];
        let mut found = vec![first];
        reached[first as usize] = true;
        while let Some(at) = found.pop() {
            for exit in self.choices(at, distances) {
                to_come[exit.to as usize] += 1;
                if !std::mem::replace(&mut reached[exit.to as usize], true) {
                    found.push(exit.to);
                }
            }
        }
        let mut arrived = vec![0.0; self.nodes.len()];
        arrived[first as usize] = 1.0;
        let mut shares = Vec::with_capacity(8);
        let mut complete = vec![first];
        while let Some(at) = complete.pop() {
            let choices = self.choices(at, distances);
            let each = arrived[at as usize] / choices.clone().count() as f64;
            for exit in choices {
                shares.push((Hop { link: exit.link, from: self.nodes[at as usize] }, each));
                arrived[exit.to as usize] += each;
                to_come[exit.to as usize] -= 1;
                if to_come[exit.to as usize] == 0 {
                    complete.push(exit.to);
                }
            }
        }
        Some(shares)
    }

    fn walk<'a>(
        &'a self,
        from: NodeId,
        to: NodeId,
        choose: impl Fn(NodeId, Choices<'a>) -> Option<&'a Exit>,
    ) -> Option<Vec<Hop>> {
        let (mut at, last, distances) = (self.place(from)?, self.place(to)?, self.distances(to)?);
        let mut hops = Vec::with_capacity(8);
        while at != last {
            let node = self.nodes[at as usize];
            let exit = choose(node, self.choices(at, distances))?;
            hops.push(Hop { link: exit.link, from: node });
            at = exit.to;
        }
        Some(hops)
    }

    /// The propagation delay from router `from` to router `to`; `None` under the conditions of
    /// [`between`](Self::between).
    pub fn delay(&self, from: NodeId, to: NodeId) -> Option<Dur> {
        let place = self.place(from)?;
        let distance = self.distance(place, self.distances(to)?);
        (distance != UNREACHABLE).then_some(distance.0)
    }

    fn place(&self, node: NodeId) -> Option<u32> {
        self.places.get(node.index()).copied().filter(|&place| place != NO_ROUTER)
    }

    /// The distances to router `to`.
    fn distances(&self, to: NodeId) -> Option<Distances<'_>> {
        let to = self.place(to)?;
        let kind = self.kinds[to as usize];
        let towards = self.towards[kind as usize].get_or_init(|| {
            let distances = distances(&self.exits_of_kinds, kind);
            let next_hops = self.next_hops(kind, &distances);
            Towards { distances, next_hops }
        });
        Some(Distances { to, of_kinds: &towards.distances, next_hops: &towards.next_hops })
    }

    /// The exits on shortest paths to a router of kind `to`, for each kind. They are unknown if they are not consecutive,
    /// and for neighbours of the destination that have further ways to it.
    fn next_hops(&self, to: u32, of_kinds: &[Distance]) -> Box<[NextHops]> {
        let of_kind = |(&router, &here): (&u32, &Distance)| {
            let exits = &self.exits[router as usize];
            if !self.is_simple {
                return NextHops::Unknown;
            }
            let leads = |exit: &Exit| is_on_shortest_path(here, exit.delay, of_kinds[exit.kind as usize]);
            if let Some(first) = exits.iter().position(|exit| exit.kind == to) {
                // Neighbours of one router of a kind are neighbours of all. Another one is as far as `of_kinds` says.
                let size = self.sizes[to as usize] as usize;
                let is_in_order = exits[first..].iter().take(size).filter(|exit| exit.kind == to).count() == size;
                let is_only = is_in_order && (here.0, here.1) == (exits[first].delay, 1) && !exits.iter().any(leads);
                return match u16::try_from(first) {
                    Ok(first) if is_only => NextHops::Direct { first },
                    _ => NextHops::Unknown,
                };
            }
            let first = exits.iter().position(leads).unwrap_or(0);
            let count = exits[first..].iter().take_while(|exit| leads(exit)).count();
            let is_all = count > 0 && !exits[first + count..].iter().any(leads);
            match (u16::try_from(first), u16::try_from(count)) {
                (Ok(first), Ok(count)) if is_all => NextHops::Among { first, count },
                _ => NextHops::Unknown,
            }
        };
        self.first_of_kinds.iter().zip(of_kinds).map(of_kind).collect()
    }

    fn distance(&self, place: u32, distances: Distances<'_>) -> Distance {
        distances.from(place, self.kinds[place as usize])
    }

    /// The exits of router `at` that are on a shortest path to the destination of `distances`.
    fn choices<'a>(&'a self, at: u32, distances: Distances<'a>) -> Choices<'a> {
        Choices { exits: self.exits[at as usize].iter(), here: self.distance(at, distances), distances }
    }
}

/// The exits on shortest paths, ordered by the router they lead to, then by cable.
#[derive(Clone)]
struct Choices<'a> {
    exits: std::slice::Iter<'a, Exit>,
    here: Distance,
    distances: Distances<'a>,
}

impl<'a> Iterator for Choices<'a> {
    type Item = &'a Exit;

    fn next(&mut self) -> Option<&'a Exit> {
        let (here, distances) = (self.here, self.distances);
        self.exits.find(|exit| is_on_shortest_path(here, exit.delay, distances.from(exit.to, exit.kind)))
    }
}

/// Returns true if a cable of this delay leads closer to the destination, on a shortest path.
fn is_on_shortest_path(here: Distance, delay: Dur, there: Distance) -> bool {
    there < here && here != UNREACHABLE && longer(there.0, delay) == here.0
}

/// Adds two spans and saturates.
fn longer(a: Dur, b: Dur) -> Dur {
    Dur::from_ps(a.as_ps().saturating_add(b.as_ps()))
}

/// The kind of each router. Kinds are numbered in the order of their first routers.
fn kinds(exits: &[Vec<Exit>]) -> Vec<u32> {
    let mut known = HashMap::new();
    let kind_of = |(place, exits): (u32, &Vec<Exit>)| {
        // Of cables to the same neighbour, the one of the least delay counts. A cable back to the router never counts.
        let mut neighbours: Vec<_> = exits.iter().map(|exit| (exit.to, exit.delay)).collect();
        neighbours.retain(|&(to, _)| to != place);
        neighbours.sort_unstable();
        neighbours.dedup_by_key(|&mut (to, _)| to);
        let next = known.len() as u32;
        *known.entry(neighbours).or_insert(next)
    };
    (0..).zip(exits).map(kind_of).collect()
}

/// Of the exits of a router, those of least delay to each kind of router other than its `own`.
fn one_to_each_kind(exits: &[Exit], own: u32) -> Vec<Exit> {
    let mut exits = exits.to_vec();
    // Routers of one kind are no neighbours, so this is a cable back to the router itself.
    exits.retain(|exit| exit.kind != own);
    exits.sort_by_key(|exit| (exit.kind, exit.delay));
    exits.dedup_by_key(|exit| exit.kind);
    exits
}

/// Dijkstra's algorithm from a router of kind `to`. A cable has the same delay in both directions. The distance of its
/// own kind is that of another router of this kind.
fn distances(exits: &[Vec<Exit>], to: u32) -> Box<[Distance]> {
    let mut distance = vec![UNREACHABLE; exits.len()];
    distance[to as usize] = (Dur::ZERO, 0);
    let mut open = BinaryHeap::from([Reverse((distance[to as usize], to))]);
    while let Some(Reverse((here, kind))) = open.pop() {
        if distance[kind as usize] < here {
            continue;
        }
        for exit in &exits[kind as usize] {
            let there = (longer(here.0, exit.delay), here.1 + 1);
            if there < distance[exit.kind as usize] {
                distance[exit.kind as usize] = there;
                open.push(Reverse((there, exit.kind)));
            }
        }
    }
    // All routers of one kind have the same neighbours.
    let over = |exit: &Exit| {
        let (delay, hops) = distance[exit.kind as usize];
        (longer(delay, exit.delay), hops + 1)
    };
    distance[to as usize] = exits[to as usize].iter().map(over).min().unwrap_or(UNREACHABLE);
    distance.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::network::NodeKind;
    use sparelane_core::Rate;

    /// A network of `count` routers with cables (a, b, delay in ms).
    fn graph(count: u32, cables: &[(u32, u32, u64)]) -> Network {
        let mut network = Network::default();
        for i in 0..count {
            network.add(format!("r{i}"), NodeKind::Router);
        }
        for &(a, b, ms) in cables {
            network.connect(NodeId(a), NodeId(b), Rate::from_gbps(1), Dur::from_ms(ms));
        }
        network
    }

    fn cables(network: &Network, from: u32, to: u32) -> Option<Vec<usize>> {
        let hops = RouterPaths::of(network).between(NodeId(from), NodeId(to))?;
        Some(hops.iter().map(Hop::cable).collect())
    }

    #[test]
    fn the_path_of_least_delay_wins_over_the_one_of_fewest_hops() {
        let network = graph(3, &[(0, 2, 5), (0, 1, 2), (1, 2, 2)]);
        assert_eq!(cables(&network, 0, 2), Some(vec![1, 2]));
        assert_eq!(cables(&network, 2, 0), Some(vec![2, 1]));
        assert_eq!(cables(&network, 1, 1), Some(vec![]));
    }

    #[test]
    fn ties_go_to_the_lowest_node_and_then_to_the_first_cable() {
        let network = graph(4, &[(0, 2, 1), (2, 3, 1), (0, 1, 1), (1, 3, 1), (0, 1, 1)]);
        assert_eq!(cables(&network, 0, 3), Some(vec![2, 3]));
        let more_hops_but_lower = graph(3, &[(0, 2, 2), (0, 1, 1), (1, 2, 1)]);
        assert_eq!(cables(&more_hops_but_lower, 0, 2), Some(vec![1, 2]));
    }

    #[test]
    fn the_first_cable_of_each_router_decides_ties_under_that_rule() {
        // The first cable of router 0 leads to 2, and that of router 3 to 1.
        let network = graph(4, &[(0, 2, 1), (1, 3, 1), (0, 1, 1), (2, 3, 1)]);
        let paths = RouterPaths::of(&network);
        let cables = |from, to| {
            let hops = paths.by_first_cable(NodeId(from), NodeId(to)).expect("a path");
            hops.iter().map(Hop::cable).collect::<Vec<_>>()
        };
        assert_eq!((cables(0, 3), cables(3, 0)), (vec![0, 3], vec![1, 2]));
        assert_eq!(paths.by_first_cable(NodeId(1), NodeId(1)), Some(vec![]));
    }

    #[test]
    fn the_shares_of_spread_flows_are_those_that_many_of_them_take() {
        // There are two paths from 0 to 3. To 5, a third over 2 and 4 is equally long.
        let network = graph(6, &[(0, 1, 1), (0, 2, 1), (1, 3, 1), (2, 3, 1), (2, 4, 1), (3, 5, 1), (4, 5, 1)]);
        let paths = RouterPaths::of(&network);
        let mut shares = vec![0.0; network.cables.len()];
        for (hop, share) in paths.shares(NodeId(0), NodeId(5)).expect("a path") {
            shares[hop.cable()] += share;
        }
        assert_eq!(shares, [0.5, 0.5, 0.5, 0.25, 0.25, 0.75, 0.25]);
        let mut uses = vec![0.0; network.cables.len()];
        for hash in 0..4000 {
            let hops = paths.spread(NodeId(0), NodeId(5), hash).expect("a path");
            hops.iter().for_each(|hop| uses[hop.cable()] += 1.0 / 4000.0);
        }
        assert!(uses.iter().zip(&shares).all(|(used, share): (&f64, &f64)| (used - share).abs() < 0.03), "{uses:?}");
        assert_eq!(paths.shares(NodeId(2), NodeId(2)), Some(vec![]));
        assert_eq!(RouterPaths::of(&graph(2, &[])).shares(NodeId(0), NodeId(1)), None);
    }

    #[test]
    fn a_spread_flow_keeps_its_path_and_many_flows_use_them_all() {
        let network = graph(4, &[(0, 1, 1), (1, 3, 1), (0, 2, 1), (2, 3, 1)]);
        let paths = RouterPaths::of(&network);
        let mut uses = [0; 4];
        for hash in 0..1000 {
            let hops = paths.spread(NodeId(0), NodeId(3), hash).expect("a path");
            assert_eq!(hops, paths.spread(NodeId(0), NodeId(3), hash).expect("a path"));
            hops.iter().for_each(|hop| uses[hop.cable()] += 1);
        }
        assert!(uses.iter().all(|uses| (430..570).contains(uses)), "{uses:?}");
    }

    #[test]
    fn cables_without_delay_make_no_loop() {
        let network = graph(4, &[(0, 1, 0), (1, 2, 0), (0, 2, 0), (2, 3, 0)]);
        for from in 0..4 {
            for to in 0..4 {
                assert!(cables(&network, from, to).is_some_and(|path| path.len() <= 2), "{from} to {to}");
            }
        }
    }

    /// The distances of all pairs by Floyd's algorithm, which knows no kinds.
    fn all_distances(network: &Network) -> Vec<Vec<Distance>> {
        let count = network.nodes.len();
        let mut all = vec![vec![UNREACHABLE; count]; count];
        (0..count).for_each(|at| all[at][at] = (Dur::ZERO, 0));
        for cable in &network.cables {
            let (a, b) = (cable.a.index(), cable.b.index());
            for (from, to) in [(a, b), (b, a)] {
                all[from][to] = all[from][to].min((cable.delay, 1));
            }
        }
        for over in 0..count {
            for from in 0..count {
                for to in 0..count {
                    let (there, on) = (all[from][over], all[over][to]);
                    if there != UNREACHABLE && on != UNREACHABLE {
                        all[from][to] = all[from][to].min((there.0 + on.0, there.1 + on.1));
                    }
                }
            }
        }
        all
    }

    #[test]
    fn distances_between_kinds_are_those_between_routers() {
        let mut rng = Stream::new(3, Domain::Test, 0);
        let (mut joined, mut known, mut spread, mut direct) = (0, 0, 0, 0);
        for _ in 0..300 {
            // Groups of routers that are joined completely, so that many routers are of one kind, and a few more cables.
            let count = 3 + rng.below(10) as u32;
            let groups = 1 + rng.below(4);
            let group: Vec<_> = (0..count).map(|_| rng.below(groups)).collect();
            let delays: Vec<_> = (0..groups * groups).map(|_| rng.below(4)).collect();
            let mut cables = Vec::new();
            for a in 0..count {
                for b in a + 1..count {
                    let (low, high) =
                        (group[a as usize].min(group[b as usize]), group[a as usize].max(group[b as usize]));
                    let delay = delays[(low * groups + high) as usize];
                    if low != high && delay > 0 {
                        cables.push((a, b, delay - 1));
                    }
                }
            }
            for _ in 0..rng.below(4) {
                cables.push((rng.below(count.into()) as u32, rng.below(count.into()) as u32, rng.below(3)));
            }
            let network = graph(count, &cables);
            let (paths, all) = (RouterPaths::of(&network), all_distances(&network));
            joined += paths.kinds.len() - paths.exits_of_kinds.len();
            for from in 0..count {
                for to in 0..count {
                    let distances = paths.distances(NodeId(to)).expect("a router");
                    assert_eq!(paths.distance(from, distances), all[from as usize][to as usize], "{cables:?}");
                    if from == to {
                        continue;
                    }
                    // Next hops that are cached are those that are found.
                    let (first, count) = match distances.next_hops[paths.kinds[from as usize] as usize] {
                        NextHops::Unknown => continue,
                        NextHops::Among { first, count } => (usize::from(first), usize::from(count)),
                        NextHops::Direct { first } => {
                            direct += 1;
                            (usize::from(first) + paths.ranks[to as usize] as usize, 1)
                        }
                    };
                    let cached = paths.exits[from as usize][first..first + count].iter().map(|exit| exit.link);
                    let found = paths.choices(from, distances).map(|exit| exit.link);
                    assert!(cached.eq(found), "{from} to {to}: {cables:?}");
                    known += 1;
                    spread += u32::from(count > 1);
                }
            }
        }
        assert!(joined > 500, "{joined} routers were of a kind with others");
        assert!(known > 3_000 && spread > 300, "{known} next hops were cached, {spread} of them several");
        assert!(direct > 1_000, "{direct} cables to the destination were cached");
    }

    #[test]
    fn hosts_never_forward_and_the_unreachable_stays_so() {
        let mut network = graph(2, &[]);
        let host = network.add("h", NodeKind::Host);
        network.connect(NodeId(0), host, Rate::from_gbps(1), Dur::ZERO);
        network.connect(NodeId(1), host, Rate::from_gbps(1), Dur::ZERO);
        assert_eq!(cables(&network, 0, 1), None);
        assert_eq!(cables(&network, 0, host.0), None);
    }
}
