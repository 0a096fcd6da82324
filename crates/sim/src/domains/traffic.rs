//! The traffic that a run is going to have on each link, estimated from its first flows, by which the network is divided.

use crate::config::RunConfig;
use crate::flow::{FlowSource, FlowSpec, NoFlows};
use crate::routing::network::{Network, NodeKind};
use crate::routing::routes::Routes;
use sparelane_core::Rate;
use std::collections::VecDeque;

/// The number of flows that the estimate uses.
const FLOWS: usize = 4_096;

/// The packets of a flow without end, and the most that count of any other: the run may end before it does.
const MOST_PACKETS: u64 = 10_000;

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

/// The network of `config`, whose flows are an open loop, with the packets that its first flows send over each cable in
/// place of the rates. Without flows, it is the network itself.
pub(crate) fn loaded_network(config: &mut RunConfig, routes: &Routes) -> Network {
    let mut rest = std::mem::replace(&mut config.flows, Box::new(NoFlows));
    let flows = std::iter::from_fn(|| rest.next_flow()).take(FLOWS);
    let read: VecDeque<_> = flows.collect();
    let mut network = config.network.clone();
    let mut packets = vec![0_u64; 2 * network.cables.len()];
    for (flow, number) in read.iter().zip(0..) {
        let mss_bytes = config.schemes[usize::from(flow.scheme)].transport.mss_bytes;
        let size = flow.size_bytes.map_or(MOST_PACKETS, |bytes| bytes.div_ceil(mss_bytes).min(MOST_PACKETS));
        for (from, to) in [(flow.src, flow.dst), (flow.dst, flow.src)] {
            let links = routes.links(&network, from, to, number).unwrap_or_default();
            links.iter().for_each(|&link| packets[link as usize] += size);
        }
    }
    config.flows = Box::new(Ahead { read, rest });
    if packets.iter().all(|&packets| packets == 0) {
        return network;
    }
    for (cable, packets) in network.cables.iter_mut().zip(packets.chunks_exact(2)) {
        let is_of_host = [cable.a, cable.b].iter().any(|node| network.nodes[node.index()].kind == NodeKind::Host);
        let work = if is_of_host { 1 + WORK_AT_HOST } else { 1 };
        cable.rates = [packets[0], packets[1]].map(|packets| Rate::from_bps(packets * work));
    }
    network
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::network::NodeId;
    use sparelane_core::{Dur, Time};

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
}
