//! Packet spraying: each packet of a flow takes one of several shortest paths, at random or in turn.
//!
//! The choice does not depend on the state of the network. The sending host therefore draws the whole path of a packet,
//! with the same probabilities as if each router drew the next hop. The routes of a direction follow each other in the
//! fabric's table. Packets of the handshake take the first one.
//!
//! In turn means systematic sampling. As many packets as there are paths form a cycle, and the unit interval has a part
//! for each of them. The packets take the parts in an order that the flow draws once. Each cycle draws one offset within
//! the parts. Paths of equal shares therefore come up once in each cycle, and others as often as their share on average.

use super::World;
use crate::engine::fabric::Fabric;
use crate::flow::FlowSpec;
use crate::wire::packet::Packet;
use sparelane_core::{Domain, Dur, Stream};
use sparelane_transport::TransportConfig;
use std::sync::Arc;

/// The paths of a new flow in both directions, with the share of each: one path for each direction, or several for
/// sprayed packets.
pub(super) type Paths = [Vec<(Vec<u32>, f64)>; 2];

/// The state of a flow whose packets are sprayed.
#[derive(Debug)]
pub(super) struct Spray {
    stream: Stream,
    ways: [Way; 2],
}

/// The paths of one direction.
#[derive(Debug)]
struct Way {
    /// The sums of the shares.
    sums: Vec<f64>,
    /// The place of each route behind the first one. Paths of equal delay may have different numbers of links.
    places: Vec<u32>,
    /// The turns of the paths; `None` if each packet draws its path.
    turns: Option<Turns>,
}

/// The state of the cycles of one direction.
#[derive(Debug)]
struct Turns {
    /// The parts of the unit interval in the order in which packets take them.
    order: Vec<u32>,
    /// The number of packets of the current cycle that have left.
    next: usize,
    /// The offset of the current cycle, as a share of a part.
    offset: f64,
}

impl Turns {
    /// Draws the order of `parts`.
    fn new(parts: usize, stream: &mut Stream) -> Turns {
        let mut order: Vec<u32> = (0..parts as u32).collect();
        for last in (1..parts).rev() {
            order.swap(last, stream.below(last as u64 + 1) as usize);
        }
        Turns { order, next: 0, offset: 0.0 }
    }

    /// Returns the next point of the unit interval.
    fn point(&mut self, stream: &mut Stream) -> f64 {
        if self.next == 0 {
            self.offset = stream.unit();
        }
        let part = self.order[self.next];
        self.next = (self.next + 1) % self.order.len();
        (f64::from(part) + self.offset) / self.order.len() as f64
    }
}

impl Spray {
    fn new(paths: &Paths, in_turn: bool, seed: u64, id: u32) -> Spray {
        let mut stream = Stream::new(seed, Domain::Spraying, u64::from(id));
        let mut way = |paths: &Vec<(Vec<u32>, f64)>| {
            let (mut sum, mut place) = (0.0, 0);
            let turns = in_turn.then(|| Turns::new(paths.len(), &mut stream));
            let mut way = Way { sums: Vec::new(), places: Vec::new(), turns };
            for (links, share) in paths {
                sum += share;
                way.sums.push(sum);
                way.places.push(place);
                place += links.len() as u32 + 1;
            }
            way
        };
        let ways = [way(&paths[0]), way(&paths[1])];
        Spray { stream, ways }
    }

    /// Chooses the path of a packet towards the receiver, or back.
    pub(super) fn place(&mut self, packet: &mut Packet, goes_back: bool) {
        let Way { sums, places, turns } = &mut self.ways[usize::from(goes_back)];
        let point = match turns {
            None => self.stream.unit(),
            Some(turns) => turns.point(&mut self.stream),
        };
        // Rounding may leave the last sum below one.
        let path = sums.partition_point(|&sum| sum <= point).min(sums.len() - 1);
        packet.advance_route(places[path]);
    }
}

impl<F: Fabric> World<F> {
    /// The paths of a new flow whose packets are sprayed; `None` if each direction has one path, that of `single`.
    pub(super) fn sprayed_paths(&self, spec: &FlowSpec, single: &[Vec<u32>; 2], connection: u32) -> Option<Paths> {
        let several = |from, to| self.layout.routes.sprayed(from, to, u64::from(connection));
        let mut both = [several(spec.src, spec.dst), several(spec.dst, spec.src)];
        if both.iter().all(Vec::is_empty) {
            return None;
        }
        for (several, single) in both.iter_mut().zip(single) {
            if several.is_empty() {
                several.push((single.clone(), 1.0));
            }
        }
        Some(both)
    }

    /// Sets the routes of a sprayed flow, and returns the positions of the first ones, there and back.
    pub(super) fn set_sprayed_routes(&mut self, spec: &FlowSpec, paths: &Paths, is_followed: bool) -> [u32; 2] {
        let ends = self.route_ends(spec, is_followed);
        [0, 1].map(|way: usize| {
            let first = self.layout.positions.take(entries(&paths[way]) as usize);
            let mut at = first;
            for (links, _) in &paths[way] {
                self.fabric.set_route(self.now, at, links, ends[way]);
                at += links.len() as u32 + 1;
            }
            first
        })
    }

    /// Lets the packets of a new flow be sprayed over `paths`. Returns its least completion time, if it has an end.
    #[cold]
    pub(super) fn spray(&mut self, slot: u32, paths: &Paths, spec: &FlowSpec) -> Option<Dur> {
        let transport = Arc::clone(&self.settings.schemes[usize::from(spec.scheme)].transport);
        // Writes in pieces have bounds of their own, which do not know of several paths.
        let at_once = spec.size_bytes.filter(|_| spec.writes.is_none());
        let way = |paths| least_of(paths, |links| self.cross(links, transport.header_bytes));
        let handshake = if transport.handshake { way(&paths[0]) + way(&paths[1]) } else { Dur::ZERO };
        let data = |bytes| self.ideal_of_spray(&paths[0], bytes, &transport);
        let ideal = spec.size_bytes.map(|_| at_once.map_or(Dur::ZERO, |bytes| handshake + data(bytes)));
        let flow = &mut self.flows[slot as usize];
        flow.wire.route_entries = [entries(&paths[0]), entries(&paths[1])];
        flow.traits.sends_slow = true;
        flow.traits.acks_carry_extras = true;
        flow.traits.receives_plainly = false;
        flow.span.ideal = ideal.unwrap_or_default();
        if let Some(application) = &mut flow.application {
            application.first_least = Dur::ZERO;
        }
        let in_turn = self.layout.routes.takes_turns();
        flow.spray = Some(Box::new(Spray::new(paths, in_turn, self.settings.seed, flow.id)));
        ideal
    }

    /// The least completion time of data on an open connection whose packets are sprayed over `paths`: as on one path,
    /// but only links of all paths are a bottleneck.
    pub(super) fn ideal_of_spray(&self, paths: &[(Vec<u32>, f64)], bytes: u64, tcp: &TransportConfig) -> Dur {
        let full_segments = (bytes - 1) / tcp.mss_bytes;
        let last_bytes = bytes - full_segments * tcp.mss_bytes + tcp.header_bytes;
        let mut common = paths[0].0.clone();
        paths[1..].iter().for_each(|(links, _)| common.retain(|link| links.contains(link)));
        least_of(paths, |links| self.cross(links, last_bytes)) + self.queue(&common, tcp, full_segments)
    }
}

/// The number of entries of the routes of one direction.
fn entries(paths: &[(Vec<u32>, f64)]) -> u32 {
    paths.iter().map(|(links, _)| links.len() as u32 + 1).sum()
}

/// The least time over the paths.
fn least_of(paths: &[(Vec<u32>, f64)], time: impl Fn(&[u32]) -> Dur) -> Dur {
    paths.iter().map(|(links, _)| time(links)).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of times that each of the paths with these shares is taken by `packets` packets.
    fn taken(shares: &[f64], packets: usize, seed: u64) -> Vec<Vec<usize>> {
        let paths: Vec<_> = shares.iter().map(|&share| (vec![0, 1], share)).collect();
        let mut spray = Spray::new(&[paths.clone(), paths], true, seed, 0);
        let mut counts = vec![vec![0]; shares.len()];
        for number in 0..packets {
            if number > 0 && number % shares.len() == 0 {
                counts.iter_mut().for_each(|path| path.push(0));
            }
            let Spray { stream, ways } = &mut spray;
            let Way { sums, turns, .. } = &mut ways[0];
            let point = turns.as_mut().expect("turns").point(stream);
            *counts[sums.partition_point(|&sum| sum <= point)].last_mut().expect("a cycle") += 1;
        }
        counts
    }

    #[test]
    fn equal_paths_come_up_once_in_each_cycle() {
        for cycles in taken(&[0.25; 4], 400, 1) {
            assert_eq!(cycles, [1; 100]);
        }
    }

    #[test]
    fn unequal_paths_come_up_as_often_as_their_shares() {
        let shares = [0.5, 0.3, 0.15, 0.05];
        for (cycles, share) in taken(&shares, 40_000, 2).iter().zip(shares) {
            // In a cycle of four, a path comes up 4 times its share, rounded down or up.
            let expected = 4.0 * share;
            assert!(cycles.iter().all(|&found| (found as f64 - expected).abs() < 1.0), "{share}");
            let mean = cycles.iter().sum::<usize>() as f64 / cycles.len() as f64;
            // Rounding has a standard deviation of at most a half, so that of 10,000 cycles is at most 0.005.
            assert!((mean - expected).abs() < 0.02, "{share}: {mean}");
        }
    }

    #[test]
    fn flows_have_orders_of_their_own() {
        let order = |flow| {
            let paths = vec![(vec![0, 1], 0.125); 8];
            Spray::new(&[paths.clone(), paths], true, 1, flow).ways.map(|way| way.turns.expect("turns").order)
        };
        let [first, second] = [order(1), order(2)];
        assert_ne!(first, second);
        assert_ne!(first[0], first[1]);
        let mut sorted = first[0].clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>());
    }
}
