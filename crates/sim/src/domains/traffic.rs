//! The traffic that a run is going to have on each link, estimated from its first flows, by which the network is divided.
//!
//! A flow with an end counts with its size, and one without end with its share of the links: all of these flows share them
//! by max-min fairness, as if their controllers were equally good. A flow that competes with ten others costs a tenth of
//! the work of one that is alone.

use crate::config::RunConfig;
use crate::flow::{FlowSource, FlowSpec, NoFlows};
use crate::routing::network::{Network, NodeKind};
use crate::routing::routes::Routes;
use sparelane_core::{Dur, Rate, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The number of flows that the estimate uses.
const FLOWS: usize = 4_096;

/// The work of a packet at its host, in packet-hops.
const WORK_AT_HOST: u64 = 3;

/// A source of which some flows have been read ahead.
struct Ahead {
    read: VecDeque<FlowSpec>,
    rest: Box<dyn FlowSource>,
}

impl FlowSource for Ahead {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        self.read.pop_front().or_else(|| self.rest.next_flow())
    }

    fn is_open_loop(&self) -> bool {
        true
    }
}

/// A flow with its links there and back.
struct Routed {
    spec: FlowSpec,
    links: [Vec<u32>; 2],
}

/// The network of `config`, whose flows are an open loop, with the packets that its first flows send over each cable in
/// place of the rates. Without flows, it is the network itself.
pub(crate) fn loaded_network(config: &mut RunConfig, routes: &Routes) -> Network {
    let mut rest = std::mem::replace(&mut config.flows, Box::new(NoFlows));
    let read: VecDeque<_> = std::iter::from_fn(|| rest.next_flow()).take(FLOWS).collect();
    let mut network = config.network.clone();
    let links = |from, to, number| routes.links(&network, from, to, number).unwrap_or_default();
    let routed = read.iter().zip(0..).map(|(&spec, number)| {
        let links = [(spec.src, spec.dst), (spec.dst, spec.src)].map(|(from, to)| links(from, to, number));
        Routed { spec, links }
    });
    let routed: Vec<Routed> = routed.collect();
    // The flows that were read are a sample of those of the run, unless they are all.
    let sampled = read.back().filter(|_| read.len() == FLOWS).map_or(config.stop, |last| last.start);
    let bytes = bytes_of(&network, &routed, sampled, config.stop);
    config.flows = Box::new(Ahead { read, rest });

    let mut packets = vec![0_u64; 2 * network.cables.len()];
    for (flow, bytes) in routed.iter().zip(bytes) {
        let mss_bytes = config.schemes[usize::from(flow.spec.scheme)].transport.mss_bytes;
        for &link in flow.links.iter().flatten() {
            let sum = &mut packets[link as usize];
            // A sample of a few picoseconds can stand for more than a number holds.
            *sum = sum.saturating_add(bytes.div_ceil(mss_bytes));
        }
    }
    if packets.iter().all(|&packets| packets == 0) {
        return network;
    }
    for (cable, packets) in network.cables.iter_mut().zip(packets.chunks_exact(2)) {
        let is_of_host = [cable.a, cable.b].iter().any(|node| network.nodes[node.index()].kind == NodeKind::Host);
        let work = if is_of_host { 1 + WORK_AT_HOST } else { 1 };
        cable.rates = [packets[0], packets[1]].map(|packets| Rate::from_bps(packets.saturating_mul(work)));
    }
    network
}

/// The bytes that each of `flows`, which start before `sampled`, sends until `stop`. Those of a flow with an end stand for
/// flows like it that start later.
fn bytes_of(network: &Network, flows: &[Routed], sampled: Time, stop: Time) -> Vec<u64> {
    let rates: Vec<Rate> = network.cables.iter().flat_map(|cable| cable.rates).collect();
    let endless = flows.iter().filter(|flow| flow.spec.size_bytes.is_none());
    let mut shares = fair_shares(&rates, &endless.map(|flow| flow.links[0].as_slice()).collect::<Vec<_>>()).into_iter();
    let scale = if sampled > Time::ZERO { stop.as_ps() as f64 / sampled.as_ps() as f64 } else { 1.0 };
    let bytes = flows.iter().map(|flow| {
        let rest = Dur::from_ps(stop.as_ps().saturating_sub(flow.spec.start.as_ps()));
        match flow.spec.size_bytes {
            None => shares.next().unwrap_or(Rate::from_bps(0)).bytes_in(rest),
            Some(size) => {
                let slowest = flow.links[0].iter().map(|&link| rates[link as usize]).min();
                let most = slowest.map_or(0, |rate| rate.bytes_in(rest));
                (size.min(most) as f64 * scale) as u64
            }
        }
    });
    bytes.collect()
}

/// The max-min fair rates of flows over these links, by progressive filling (Bertsekas and Gallager, Data Networks,
/// section 6.5.2): the link with the least rate for each of its flows decides theirs, and the others share what is left.
fn fair_shares(rates: &[Rate], flows: &[&[u32]]) -> Vec<Rate> {
    let mut left: Vec<u64> = rates.iter().map(|rate| rate.as_bps()).collect();
    let mut flows_on = vec![Vec::new(); rates.len()];
    for (flow, links) in flows.iter().enumerate() {
        links.iter().for_each(|&link| flows_on[link as usize].push(flow));
    }
    let mut without_share: Vec<u64> = flows_on.iter().map(|flows| flows.len() as u64).collect();
    let used = (0..rates.len()).filter(|&link| without_share[link] > 0);
    let mut tightest: BinaryHeap<_> = used.map(|link| Reverse((left[link] / without_share[link], link))).collect();
    let mut shares = vec![None; flows.len()];
    while let Some(Reverse((share, link))) = tightest.pop() {
        if without_share[link] == 0 {
            continue;
        }
        // What a link has left for each flow only grows, so an entry can be outdated but not too large.
        let now = left[link] / without_share[link];
        if now > share {
            tightest.push(Reverse((now, link)));
            continue;
        }
        for &flow in &flows_on[link] {
            if shares[flow].is_none() {
                shares[flow] = Some(Rate::from_bps(share));
                for &other in flows[flow] {
                    left[other as usize] -= share;
                    without_share[other as usize] -= 1;
                }
            }
        }
    }
    shares.into_iter().map(|share| share.unwrap_or(Rate::from_bps(0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::network::NodeId;
    use sparelane_core::{Domain, Streams};
    /// Ten flows, one each millisecond.
    struct Ten(u64);

    impl FlowSource for Ten {
        fn next_flow(&mut self) -> Option<FlowSpec> {
            self.0 += 1;
            let start = Time::ZERO + Dur::from_ms(self.0);
            (self.0 <= 10).then(|| FlowSpec::new(start, NodeId(0), NodeId(1), Some(self.0), 0))
        }
    }

    #[test]
    fn flows_that_were_read_ahead_come_first_and_in_order() {
        let mut rest: Box<dyn FlowSource> = Box::new(Ten(0));
        let read: VecDeque<_> = (0..4).filter_map(|_| rest.next_flow()).collect();
        let mut ahead = Ahead { read, rest };
        let sizes: Vec<_> = std::iter::from_fn(|| ahead.next_flow()).filter_map(|flow| flow.size_bytes).collect();
        assert_eq!(sizes, (1..=10).collect::<Vec<_>>());
    }

    #[test]
    fn flows_share_links_fairly() {
        let rates = [10_000, 3_000, 6_000].map(Rate::from_bps);
        // The second link is shared by two flows, the first by them and another, the third by one of them and another.
        let shares = fair_shares(&rates, &[&[0, 1], &[0, 1, 2], &[0], &[2], &[]]);
        assert_eq!(shares, [1_500, 1_500, 7_000, 4_500, 0].map(Rate::from_bps));
    }

    #[test]
    fn no_link_is_overloaded_and_every_flow_has_a_full_link() {
        let mut rng = Streams::new(1, Domain::Paths).of(0);
        for _ in 0..100 {
            let rates: Vec<Rate> =
                (0..1 + rng.below(12)).map(|_| Rate::from_bps(1_000 + rng.below(1_000_000))).collect();
            let links = (0..rng.below(40)).map(|_| (0..rates.len() as u32).filter(|_| rng.below(3) == 0).collect());
            let flows: Vec<Vec<u32>> = links.collect();
            let flows: Vec<&[u32]> = flows.iter().map(Vec::as_slice).collect();
            let shares = fair_shares(&rates, &flows);
            let on = |link: u32| flows.iter().zip(&shares).filter(move |(links, _)| links.contains(&link));
            let full = |link: u32| {
                let sum: u64 = on(link).map(|(_, share)| share.as_bps()).sum();
                assert!(sum <= rates[link as usize].as_bps());
                // Shares are rounded down to bits per second.
                sum + 100 >= rates[link as usize].as_bps()
            };
            for (links, share) in flows.iter().zip(&shares).filter(|(links, _)| !links.is_empty()) {
                // A flow cannot get more, unless others with no more than its share get less.
                let is_limit = |&&link: &&u32| full(link) && on(link).all(|(_, other)| other <= share);
                assert!(links.iter().find(is_limit).is_some(), "{links:?} {share:?}");
            }
        }
    }
}
