//! Collective operations of distributed training: all-reduce and all-to-all.
//!
//! In an all-reduce, each host begins with a buffer of `size` and ends with the sum of all buffers.
//!
//! - Ring (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009):
//!   buffers are cut into as many chunks as there are hosts. In each of 2 (n - 1) steps, every host sends a chunk to the
//!   next host. A host begins a step once it has received the chunk of the step before, and the next host has received
//!   the one that it sent. Chunks differ by at most one byte.
//! - Tree: the parent of host i is host (i - 1) / 2, rounded down. A host sends its buffer to its parent once it has those
//!   of its children. The sum then returns the same way. Buffers are not cut into pieces.
//!
//! In an all-to-all, every host sends `size` to each other host, beginning with the next one. All of these flows start at
//! once.
//!
//! Rounds are repeated one after the other. The flows of a round are one request, whose completion time is that of the
//! round. Sums take no time.

use super::graph::FlowGraph;
use super::{FlowList, Reader, START, Workload, WorkloadError, WorkloadForm, at};
use crate::schema::volume::{Volume, volume};
use crate::schema::{Fallback, Form, Key, Kind, ScenarioError, Shape};
use crate::workload::{Demand, UNDECIDED, ends};
use sparelane_core::{Dur, Time};
use sparelane_sim::{FlowSource, FlowSpec, Network, NodeId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The largest number of flows of a workload.
const MAX_FLOWS: u64 = 10_000_000;

const HOSTS: Key = Key::new(
    "hosts",
    Kind::Special("a list of hosts, as in [\"h1\", \"h2\"]", &Shape::List(&Shape::Of(Kind::Node))),
    Fallback::Nothing("all hosts"),
    "hosts that take part, in this order",
);
const REPEAT: Key = Key::new(
    "repeat",
    Kind::Whole { min: 1, max: 1_000_000 },
    Fallback::Value("1"),
    "number of rounds; each starts when the one before is complete",
);
const COMPUTE: Key =
    Key::new("compute", Kind::MOMENT, Fallback::Value("0s"), "time from the end of a round to the start of the next");

/// The form of an all-reduce in a scenario.
pub static ALL_REDUCE: WorkloadForm = Form {
    name: "all-reduce",
    summary: "rounds of the collective operation that adds up a buffer of each host; a round is a request",
    source: "Patarasuk and Yuan, JPDC 2009 (ring)",
    keys: &[
        Key::new("size", Kind::Volume, Fallback::Required, "size of the buffer of each host"),
        Key::new(
            "algorithm",
            Kind::Choice(&["ring", "tree"]),
            Fallback::Value("ring"),
            "order of the transfers: chunks along a ring, or whole buffers up and down a binary tree",
        ),
        HOSTS,
        REPEAT,
        COMPUTE,
        START,
    ],
    read: &|reader| {
        let shape = match reader.section.need("algorithm")?.choice()? {
            "tree" => Shaped::Tree,
            _ => Shaped::Ring,
        };
        read(reader, shape)
    },
};

/// The form of an all-to-all in a scenario.
pub static ALL_TO_ALL: WorkloadForm = Form {
    name: "all-to-all",
    summary: "rounds in which every host sends to every other host at once; a round is a request",
    source: "sparelane",
    keys: &[
        Key::new("size", Kind::Volume, Fallback::Required, "size of the flow between each two hosts"),
        HOSTS,
        REPEAT,
        COMPUTE,
        START,
    ],
    read: &|reader| read(reader, Shaped::AllToAll),
};

fn read(reader: &Reader<'_>, shape: Shaped) -> Result<Arc<dyn Workload>, ScenarioError> {
    let section = reader.section;
    let size = section.need("size")?;
    let Volume::Bytes(size_bytes) = volume(&size, reader.mss_bytes(), reader.context.bdp_bytes)? else {
        return Err(size.refuse("an unlimited size"));
    };
    let hosts = reader.hosts("hosts")?.unwrap_or_else(|| reader.context.network.hosts());
    let place = section.given("hosts").unwrap_or_else(|| section.whole_table().clone());
    if hosts.len() < 2 {
        return Err(place.error(format!("hosts: {}; allowed: two or more", hosts.len())));
    }
    if hosts.iter().collect::<BTreeSet<_>>().len() < hosts.len() {
        return Err(place.error("a host is listed twice; allowed: each host once"));
    }
    if matches!(shape, Shaped::Ring) && size_bytes < hosts.len() as u64 {
        return Err(
            size.error(format!("less than a byte for each of {} hosts; allowed: as many bytes as hosts", hosts.len()))
        );
    }
    let spec = Collective {
        shape,
        hosts,
        size_bytes,
        rounds: section.need("repeat")?.whole()?,
        compute: section.need("compute")?.time()?,
        start: at(section.need("start")?.time()?),
        scheme: reader.scheme,
    };
    let flows = spec.flows_per_round().saturating_mul(spec.rounds);
    if flows > MAX_FLOWS {
        let place = section.given("repeat").unwrap_or(place);
        return Err(place.error(format!("{flows} flows in all rounds; allowed: at most {MAX_FLOWS}")));
    }
    Ok(Arc::new(spec))
}

/// The transfers of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shaped {
    Ring,
    Tree,
    AllToAll,
}

/// A collective operation.
#[derive(Clone, Debug)]
struct Collective {
    shape: Shaped,
    hosts: Vec<NodeId>,
    size_bytes: u64,
    rounds: u64,
    compute: Dur,
    start: Time,
    scheme: u16,
}

impl Collective {
    fn flows_per_round(&self) -> u64 {
        let hosts = self.hosts.len() as u64;
        match self.shape {
            Shaped::Ring => 2 * hosts * (hosts - 1),
            Shaped::Tree => 2 * (hosts - 1),
            Shaped::AllToAll => hosts * (hosts - 1),
        }
    }

    fn graph(&self) -> FlowGraph {
        let mut graph = FlowGraph::default();
        let mut before = Vec::new();
        for round in 0..self.rounds {
            let start = match round {
                0 => self.start,
                _ => Time::ZERO + self.compute,
            };
            let last = Round { spec: self, graph: &mut graph, number: round as u32, start, before }.add();
            before = vec![graph.add_barrier(last)];
        }
        graph
    }
}

/// A round that is being added to a graph.
struct Round<'a> {
    spec: &'a Collective,
    graph: &'a mut FlowGraph,
    number: u32,
    /// The start of the flows that wait for no other flow of the round.
    start: Time,
    /// The barrier that such flows wait for.
    before: Vec<u32>,
}

impl Round<'_> {
    /// Adds its flows. Returns all that the next round must wait for.
    fn add(mut self) -> Vec<u32> {
        match self.spec.shape {
            Shaped::Ring => self.add_ring(),
            Shaped::Tree => self.add_tree(),
            Shaped::AllToAll => self.add_all_to_all(),
        }
    }

    /// Adds a flow between the hosts at two places. It starts after the flows `after`, or with the round.
    fn flow(&mut self, from: usize, to: usize, bytes: u64, after: Vec<u32>) -> u32 {
        let (start, after) = if after.is_empty() { (self.start, self.before.clone()) } else { (Time::ZERO, after) };
        let flow = FlowSpec::new(start, self.spec.hosts[from], self.spec.hosts[to], Some(bytes), self.spec.scheme);
        self.graph.add_flow(FlowSpec { request: Some(self.number), ..flow }, after)
    }

    fn add_ring(&mut self) -> Vec<u32> {
        let hosts = self.spec.hosts.len();
        let chunk_bytes = |chunk: usize| {
            let (least, longer) = (self.spec.size_bytes / hosts as u64, self.spec.size_bytes % hosts as u64);
            least + u64::from((chunk as u64) < longer)
        };
        let chunks: Vec<_> = (0..hosts).map(chunk_bytes).collect();
        let mut sent: Vec<u32> = Vec::new();
        for step in 0..2 * (hosts - 1) {
            let flows = (0..hosts).map(|host| {
                let previous = (host + hosts - 1) % hosts;
                let after = if step == 0 { Vec::new() } else { vec![sent[previous], sent[host]] };
                // In step s, host h sends the chunk that it has just added up, number h - s.
                let chunk = (host + 2 * hosts - step) % hosts;
                self.flow(host, (host + 1) % hosts, chunks[chunk], after)
            });
            sent = flows.collect();
        }
        sent
    }

    fn add_tree(&mut self) -> Vec<u32> {
        let (hosts, bytes) = (self.spec.hosts.len(), self.spec.size_bytes);
        let children = |host: usize| [2 * host + 1, 2 * host + 2].into_iter().filter(move |&child| child < hosts);
        let mut up = vec![0; hosts];
        for host in (1..hosts).rev() {
            let after = children(host).map(|child| up[child]).collect();
            up[host] = self.flow(host, (host - 1) / 2, bytes, after);
        }
        let (mut down, mut last) = (vec![0; hosts], Vec::new());
        for host in 1..hosts {
            let parent = (host - 1) / 2;
            let after = if parent == 0 { children(0).map(|child| up[child]).collect() } else { vec![down[parent]] };
            down[host] = self.flow(parent, host, bytes, after);
            last.push(down[host]);
        }
        last
    }

    fn add_all_to_all(&mut self) -> Vec<u32> {
        let (hosts, bytes) = (self.spec.hosts.len(), self.spec.size_bytes);
        let pairs = (1..hosts).flat_map(|step| (0..hosts).map(move |host| (host, (host + step) % hosts)));
        pairs.map(|(from, to)| self.flow(from, to, bytes, Vec::new())).collect()
    }
}

impl Workload for Collective {
    fn flows(&self, network: &Network, _seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        for &host in &self.hosts {
            ends::check_host(network, "a host", host).map_err(WorkloadError::new)?;
        }
        Ok(Box::new(FlowList::of_graph(self.graph())))
    }

    fn demand(&self, _network: &Network, _duration: Dur) -> Demand {
        let (hosts, flows) = (self.hosts.len() as f64, self.flows_per_round() as f64);
        let at_once = if self.shape == Shaped::AllToAll { flows } else { hosts };
        Demand { flows: flows * self.rounds as f64, at_once }
    }

    fn schemes(&self) -> Vec<u16> {
        if self.scheme == UNDECIDED { Vec::new() } else { vec![self.scheme] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(shape: Shaped, hosts: u32) -> Collective {
        Collective {
            shape,
            hosts: (0..hosts).map(NodeId).collect(),
            size_bytes: 1003,
            rounds: 1,
            compute: Dur::from_ns(40),
            start: Time::from_ns(5),
            scheme: 0,
        }
    }

    /// Returns the flows, each with the time of its completion if every flow takes 100 ns.
    fn run(spec: &Collective) -> Vec<(FlowSpec, u64)> {
        let mut list = FlowList::of_graph(spec.graph());
        let mut open: Vec<_> = std::iter::from_fn(|| list.next_flow()).collect();
        let mut done = Vec::new();
        while let Some(place) = (0..open.len()).min_by_key(|&place| (open[place].start, place)) {
            let flow = open.remove(place);
            let end = flow.start + Dur::from_ns(100);
            open.extend(flow.waiter.into_iter().flat_map(|waiter| list.follow(waiter, end)));
            done.push((flow, end.as_ps() / 1000));
        }
        done
    }

    #[test]
    fn a_ring_sends_every_chunk_through_all_hosts_twice() {
        let flows = run(&spec(Shaped::Ring, 4));
        assert_eq!(flows.len(), 24);
        // 2 (n - 1) steps, one after the other.
        assert_eq!(flows.last().unwrap().1, 5 + 6 * 100);
        for host in 0..4 {
            let sent: u64 =
                flows.iter().filter(|(flow, _)| flow.src.0 == host).filter_map(|(flow, _)| flow.size_bytes).sum();
            // All chunks twice, but two of them once only: 2 (n - 1) / n of the buffer.
            assert!((2 * 1003 * 3 / 4 - 2..=2 * 1003 * 3 / 4 + 2).contains(&sent), "{sent}");
            assert!(flows.iter().all(|(flow, _)| flow.dst.0 == (flow.src.0 + 1) % 4 && flow.request == Some(0)));
        }
        let in_step =
            |step: usize| flows.iter().skip(4 * step).take(4).filter_map(|(flow, _)| flow.size_bytes).sum::<u64>();
        assert_eq!([in_step(0), in_step(3)], [1003, 1003]);
    }

    #[test]
    fn a_tree_adds_up_and_returns_the_sum() {
        let flows = run(&spec(Shaped::Tree, 7));
        let pairs: BTreeSet<_> = flows.iter().map(|(flow, end)| (flow.src.0, flow.dst.0, *end)).collect();
        let expected = [
            (3, 1, 105),
            (4, 1, 105),
            (5, 2, 105),
            (6, 2, 105),
            (1, 0, 205),
            (2, 0, 205),
            (0, 1, 305),
            (0, 2, 305),
            (1, 3, 405),
            (1, 4, 405),
            (2, 5, 405),
            (2, 6, 405),
        ];
        assert_eq!(pairs, BTreeSet::from(expected));
        assert!(flows.iter().all(|(flow, _)| flow.size_bytes == Some(1003)));
    }

    #[test]
    fn rounds_follow_each_other_after_the_time_for_computing() {
        let flows = run(&Collective { rounds: 3, ..spec(Shaped::AllToAll, 3) });
        let starts: Vec<_> = flows.iter().map(|(flow, _)| (flow.request, flow.start.as_ps() / 1000)).collect();
        let expected = [(Some(0), 5), (Some(1), 145), (Some(2), 285)].into_iter().flat_map(|round| [round; 6]);
        assert_eq!(starts, expected.collect::<Vec<_>>());
        let pairs: BTreeSet<_> = flows.iter().map(|(flow, _)| (flow.src, flow.dst)).collect();
        assert_eq!(pairs.len(), 6);
        assert!(pairs.iter().all(|(src, dst)| src != dst));
    }
}
