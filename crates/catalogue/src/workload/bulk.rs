//! A fixed number of flows between given hosts or all hosts, started together, in sequence or at random.

use super::{Reader, SIZES, START, Workload, WorkloadForm, at, host_pair};
use crate::schema::{Fallback, Field, Form, Key, Kind, ScenarioError, Shape, document::Item};
use crate::workload::Demand;
use crate::workload::streams::stream;
use crate::workload::{SizeDistribution, WorkloadError, ends};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_sim::{FlowSource, FlowSpec};
use sparelane_sim::{Network, NodeId};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of flows of one bulk workload.
const MAX_BULK_FLOWS: u64 = 10_000_000;

/// The patterns of pairs, by name.
const PATTERNS: &[&str] = &["halves", "all", "permutation", "random", "next", "incast"];

/// The form in a scenario.
pub static FORM: WorkloadForm = Form {
    name: "bulk",
    summary: "a given number of flows between given hosts",
    source: "sparelane",
    keys: &[
        Key::new(
            "flows",
            Kind::Whole { min: 1, max: MAX_BULK_FLOWS },
            Fallback::Nothing("one for each pair"),
            "number of flows; each takes the next pair, and the first again after the last",
        ),
        Key::new(
            "pairs",
            Kind::Special(
                "a list such as [[\"left0\", \"right0\"]], or one of halves, all, permutation, random, next, incast",
                &Shape::Either(&[Shape::Of(Kind::Choice(PATTERNS)), Shape::List(&Shape::Pair(&Shape::Of(Kind::Node)))]),
            ),
            Fallback::Value("halves"),
            "pairs of sender and receiver: the first half of the hosts to the second in order, every host to every \
             other, every host to one other at random, with each receiving once (permutation) or not (random), every \
             host to the next one, or all others to the first host",
        ),
        Key::new("size", Kind::Volume, Fallback::Value("unlimited"), "size of each flow"),
        Key::new("sizes", SIZES, Fallback::Nothing("given by size"), "sizes from a distribution, instead of size"),
        START,
        Key::new(
            "spread",
            Kind::MOMENT,
            Fallback::Value("0s"),
            "each flow starts at a random time within this span after start",
        ),
        Key::new("gap", Kind::MOMENT, Fallback::Nothing("no gap"), "time from the start of one flow to the next"),
    ],
    read: &read,
};

fn read(reader: &Reader<'_>) -> Result<Arc<dyn Workload>, ScenarioError> {
    let section = reader.section;
    let (pairs, count) = pairs(reader, &section.need("pairs")?)?;
    let flows = match section.given("flows") {
        Some(field) => field.whole()?,
        None if count <= MAX_BULK_FLOWS => count,
        None => {
            return Err(section.need("pairs")?.error(format!("{count} pairs; allowed: at most {MAX_BULK_FLOWS}")));
        }
    };
    let sizes = match (section.given("sizes"), section.given("size")) {
        (Some(_), Some(size)) => return Err(size.error("sizes is also given; allowed: one of the two")),
        (Some(sizes), None) => Some(reader.sizes(&sizes)?),
        (None, _) => reader.size(&section.need("size")?)?,
    };
    let (first, spread) = (at(section.need("start")?.time()?), section.need("spread")?.time()?);
    let starts = match section.given("gap") {
        Some(gap) if section.given("spread").is_some() => {
            return Err(gap.error("spread is also given; allowed: one of the two"));
        }
        Some(gap) => Starts::Every { first, gap: gap.time()? },
        None => Starts::Spread { first, spread },
    };
    Ok(Arc::new(BulkSpec { flows: flows as u32, pairs, sizes, starts, scheme: reader.scheme, number: reader.number }))
}

/// Returns the pairs that `field` gives, and their number.
fn pairs(reader: &Reader<'_>, field: &Field<'_>) -> Result<(Pairs, u64), ScenarioError> {
    let network = reader.context.network;
    let hosts = network.hosts();
    if matches!(field.item(), Item::List(_)) {
        let pairs = field.list(Kind::Special(
            "a pair of hosts, as in [\"left0\", \"right0\"]",
            &Shape::Pair(&Shape::Of(Kind::Node)),
        ))?;
        let pairs = pairs.iter().map(|field| host_pair(field, network)).collect::<Result<Vec<_>, _>>()?;
        let count = pairs.len() as u64;
        return Ok((Pairs::Given(pairs), count));
    }
    let host_count = hosts.len() as u64;
    match field.word(PATTERNS.iter().copied())? {
        "random" => Ok((Pairs::Random, host_count)),
        "next" => Ok((Pairs::Next, host_count)),
        "incast" => Ok((Pairs::Incast, host_count.saturating_sub(1))),
        "all" => Ok((Pairs::All, hosts.len() as u64 * (hosts.len() as u64).saturating_sub(1))),
        "permutation" => Ok((Pairs::Permutation, hosts.len() as u64)),
        _ => {
            let half = hosts.len() / 2;
            let (first, second) = (&hosts[..half], &hosts[hosts.len() - half..]);
            Ok((Pairs::Given(first.iter().copied().zip(second.iter().copied()).collect()), half as u64))
        }
    }
}

/// The pairs of sender and receiver. Each flow takes the next pair, and the first again after the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// These sources and destinations.
    Given(Vec<(NodeId, NodeId)>),
    /// Every host to every other: the first host to each, then the second, and so on.
    All,
    /// Every host to one other such that each also receives once: one random cycle through all hosts.
    Permutation,
    /// Every host to one other at random; several may choose the same receiver.
    Random,
    /// Every host to the next one, the last to the first.
    Next,
    /// Every other host to the first one.
    Incast,
}

/// The starts of the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// All at once.
    At(Time),
    /// One after the other at a fixed gap.
    Every {
        /// Start of the first flow.
        first: Time,
        /// Time from one start to the next.
        gap: Dur,
    },
    /// Each at a random time, uniform in [first, first + spread).
    Spread {
        /// The earliest start.
        first: Time,
        /// Length of the interval; zero starts all at `first`.
        spread: Dur,
    },
}

/// The description of a [`Bulk`] workload.
#[derive(Clone, Debug, PartialEq)]
pub struct BulkSpec {
    /// Number of flows, at least one.
    pub flows: u32,
    /// The pairs of sender and receiver.
    pub pairs: Pairs,
    /// The sizes of the flows; `None` means unlimited flows.
    pub sizes: Option<SizeDistribution>,
    /// The starts of the flows.
    pub starts: Starts,
    /// The flows' scheme, by its index in the run.
    pub scheme: u16,
    /// The workload's number in its run; see [`PoissonSpec::number`](crate::workload::PoissonSpec::number).
    pub number: u32,
}

/// The flows of a [`BulkSpec`], in order of start and then of their number.
#[derive(Clone, Debug)]
pub struct Bulk(Flows);

#[derive(Clone, Debug)]
enum Flows {
    /// Flows that start in the order of their numbers, and are made as they start: a list of millions takes much memory.
    Made(Box<Making>),
    Listed(std::vec::IntoIter<FlowSpec>),
}

/// The flows that are still to be made.
#[derive(Clone, Debug)]
struct Making {
    numbers: Range<u32>,
    pairing: Pairing,
    sizes: Option<SizeDistribution>,
    starts: Starts,
    scheme: u16,
    sizing: Stream,
    starting: Stream,
}

impl Making {
    /// Makes the flow `number`, after all flows before it.
    fn flow(&mut self, number: u32) -> Result<FlowSpec, WorkloadError> {
        let (src, dst) = self.pairing.pair(number);
        let start = start(self.starts, number, &mut self.starting)?;
        let size_bytes = self.sizes.as_ref().map(|sizes| sizes.draw(&mut self.sizing));
        Ok(FlowSpec::new(start, src, dst, size_bytes, self.scheme))
    }
}

/// The objects of a bulk workload that have streams of their own.
const PAIRING: u32 = 0;
const STARTING: u32 = 1;

impl Bulk {
    /// Creates the workload that `spec` describes in `network`, under `seed`.
    ///
    /// # Errors
    /// Fails without flows or pairs, if a pair is not two different hosts, with fewer than two hosts, or if a start
    /// exceeds the range of time.
    pub fn new(network: &Network, spec: BulkSpec, seed: u64) -> Result<Bulk, WorkloadError> {
        if spec.flows == 0 {
            return Err(WorkloadError::new("the number of flows is 0; allowed: 1 or more"));
        }
        let own_stream = |domain, object| stream(seed, domain, spec.number, object);
        let pairing = Pairing::new(network, &spec.pairs, &mut own_stream(Domain::Arrivals, PAIRING))?;
        let mut starting = own_stream(Domain::Arrivals, STARTING);
        let sizing = own_stream(Domain::Sizes, 0);
        let is_random = matches!(spec.starts, Starts::Spread { spread, .. } if spread > Dur::ZERO);
        // The last flow starts last, so the others start in time if it does. Otherwise the error names the first that does
        // not.
        if !is_random && start(spec.starts, spec.flows - 1, &mut starting).is_err() {
            (0..spec.flows).try_for_each(|number| start(spec.starts, number, &mut starting).map(drop))?;
        }
        let BulkSpec { flows, sizes, starts, scheme, .. } = spec;
        let mut making = Making { numbers: 0..flows, pairing, sizes, starts, scheme, sizing, starting };
        Ok(Bulk(if is_random {
            let flows: Result<Vec<_>, _> = (0..flows).map(|number| making.flow(number)).collect();
            let mut flows = flows?;
            flows.sort_by_key(|flow| flow.start);
            Flows::Listed(flows.into_iter())
        } else {
            Flows::Made(Box::new(making))
        }))
    }
}

impl FlowSource for Bulk {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        match &mut self.0 {
            Flows::Made(making) => {
                let number = making.numbers.next()?;
                let Ok(flow) = making.flow(number) else {
                    unreachable!("the last flow was checked, which starts last")
                };
                Some(flow)
            }
            Flows::Listed(flows) => flows.next(),
        }
    }

    fn is_open_loop(&self) -> bool {
        true
    }

    fn starting_together(&self) -> usize {
        match &self.0 {
            Flows::Made(making) => match making.starts {
                Starts::Every { gap, .. } if gap > Dur::ZERO => making.numbers.len().min(1),
                _ => making.numbers.len(),
            },
            Flows::Listed(flows) => flows.len().min(1),
        }
    }
}

/// The pairs, as a list or computed.
#[derive(Clone, Debug)]
enum Pairing {
    Listed(Vec<(NodeId, NodeId)>),
    All(Vec<NodeId>),
}

impl Pairing {
    fn new(network: &Network, pairs: &Pairs, stream: &mut Stream) -> Result<Pairing, WorkloadError> {
        if let Pairs::Given(list) = pairs {
            for (index, &(src, dst)) in list.iter().enumerate() {
                let refuse = |message| WorkloadError::new(format!("pair {}: {message}", index + 1));
                ends::check(network, src, dst).map_err(refuse)?;
            }
            if list.is_empty() {
                return Err(WorkloadError::new("the list of pairs is empty; allowed: one pair or more"));
            }
            return Ok(Pairing::Listed(list.clone()));
        }
        let hosts = network.hosts();
        if hosts.len() < 2 {
            let message = format!("the number of hosts is {}; allowed: 2 or more", hosts.len());
            return Err(WorkloadError::new(message));
        }
        Ok(match pairs {
            Pairs::Permutation => Pairing::Listed(random_cycle(&hosts, stream)),
            Pairs::Random => Pairing::Listed(random_receivers(&hosts, stream)),
            Pairs::Next => Pairing::Listed(hosts.iter().copied().zip(hosts.iter().copied().cycle().skip(1)).collect()),
            Pairs::Incast => Pairing::Listed(hosts[1..].iter().map(|&host| (host, hosts[0])).collect()),
            _ => Pairing::All(hosts),
        })
    }

    /// Returns the pair of flow `number`.
    fn pair(&self, number: u32) -> (NodeId, NodeId) {
        let number = number as usize;
        match self {
            Pairing::Listed(list) => list[number % list.len()],
            Pairing::All(hosts) => {
                let others = hosts.len() - 1;
                let (src, other) = (number / others % hosts.len(), number % others);
                (hosts[src], hosts[if other < src { other } else { other + 1 }])
            }
        }
    }
}

/// Sattolo's shuffle: every cycle through all hosts is equally likely, and no host sends to itself.
fn random_cycle(hosts: &[NodeId], stream: &mut Stream) -> Vec<(NodeId, NodeId)> {
    let mut targets = hosts.to_vec();
    for last in (1..targets.len()).rev() {
        targets.swap(last, stream.below(last as u64) as usize);
    }
    hosts.iter().copied().zip(targets).collect()
}

/// Returns for each host any other one, all equally likely.
fn random_receivers(hosts: &[NodeId], stream: &mut Stream) -> Vec<(NodeId, NodeId)> {
    let draw = |(place, &host): (usize, &NodeId)| {
        let other = stream.below(hosts.len() as u64 - 1) as usize;
        (host, hosts[if other < place { other } else { other + 1 }])
    };
    hosts.iter().enumerate().map(draw).collect()
}

fn start(starts: Starts, number: u32, stream: &mut Stream) -> Result<Time, WorkloadError> {
    let time = match starts {
        Starts::At(time) => time,
        Starts::Every { first, gap } => first.saturating_add(gap.saturating_mul(u64::from(number))),
        Starts::Spread { first, spread } if spread == Dur::ZERO => first,
        Starts::Spread { first, spread } => first.saturating_add(Dur::from_ps(stream.below(spread.as_ps()))),
    };
    if time == Time::NEVER {
        return Err(WorkloadError::new(format!("flow {number} starts too late; allowed: within 213 days")));
    }
    Ok(time)
}

impl Workload for BulkSpec {
    fn ends(&self) -> bool {
        self.sizes.is_some()
    }

    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(Bulk::new(network, self.clone(), seed)?))
    }

    fn demand(&self, _network: &Network, _duration: Dur) -> Demand {
        let flows = f64::from(self.flows);
        match self.starts {
            Starts::At(_) => Demand::spread_over(flows, Dur::ZERO),
            Starts::Spread { spread, .. } => Demand::spread_over(flows, spread),
            Starts::Every { gap, .. } => Demand::spread_over(flows, gap.saturating_mul(u64::from(self.flows))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Internet2;
    use std::collections::BTreeSet;

    fn internet2() -> Network {
        Internet2::default().build().unwrap()
    }

    const SPEC: BulkSpec = BulkSpec {
        flows: 100,
        pairs: Pairs::Permutation,
        sizes: None,
        starts: Starts::Spread { first: Time::from_ns(5), spread: Dur::from_ns(10) },
        scheme: 2,
        number: 0,
    };

    #[test]
    fn flows_that_start_together_are_counted() {
        let together = |starts, taken: usize| {
            let mut bulk = Bulk::new(&internet2(), BulkSpec { starts, ..SPEC }, 1).unwrap();
            (0..taken).for_each(|_| _ = bulk.next_flow());
            bulk.starting_together()
        };
        let first = Time::from_ns(5);
        assert_eq!([0, 1, 100].map(|taken| together(Starts::At(first), taken)), [100, 99, 0]);
        let every = |gap| Starts::Every { first, gap };
        assert_eq!([Dur::ZERO, Dur::from_ns(1)].map(|gap| together(every(gap), 1)), [99, 1]);
        assert_eq!([0, 100].map(|taken| together(SPEC.starts, taken)), [1, 0]);
    }

    fn flows(spec: BulkSpec, seed: u64) -> Vec<FlowSpec> {
        let mut bulk = Bulk::new(&internet2(), spec, seed).unwrap();
        std::iter::from_fn(|| bulk.next_flow()).collect()
    }

    #[test]
    fn in_a_permutation_every_host_sends_once_and_receives_once() {
        let flows = flows(SPEC, 1);
        let hosts: BTreeSet<_> = internet2().hosts().into_iter().collect();
        assert_eq!(flows.iter().map(|flow| flow.src).collect::<BTreeSet<_>>(), hosts);
        assert_eq!(flows.iter().map(|flow| flow.dst).collect::<BTreeSet<_>>(), hosts);
        assert!(flows.iter().all(|flow| flow.src != flow.dst && flow.size_bytes.is_none() && flow.scheme == 2));
    }

    #[test]
    fn random_starts_lie_in_their_interval_in_order() {
        let flows = flows(SPEC, 1);
        assert!(flows.windows(2).all(|pair| pair[0].start <= pair[1].start));
        assert!(flows.iter().all(|flow| (Time::from_ns(5)..Time::from_ns(15)).contains(&flow.start)));
        assert!(flows[0].start < flows[99].start);
    }

    #[test]
    fn the_same_seed_and_number_give_the_same_flows_and_others_do_not() {
        assert_eq!(flows(SPEC, 1), flows(SPEC, 1));
        assert_ne!(flows(SPEC, 1), flows(SPEC, 2));
        assert_ne!(flows(SPEC, 1), flows(BulkSpec { number: 1, ..SPEC }, 1));
    }

    #[test]
    fn all_pairs_come_in_order_and_repeat() {
        let spec = BulkSpec { flows: 100 * 99 + 1, pairs: Pairs::All, starts: Starts::At(Time::from_ns(1)), ..SPEC };
        let pairs: Vec<_> = flows(spec, 1).iter().map(|flow| (flow.src.0, flow.dst.0)).collect();
        assert_eq!(pairs[..2], [(10, 11), (10, 12)]);
        assert_eq!(pairs[99..101], [(11, 10), (11, 12)]);
        assert_eq!(pairs[..9900].iter().collect::<BTreeSet<_>>().len(), 9900);
        assert_eq!(pairs[9900], pairs[0]);
    }

    #[test]
    fn given_pairs_start_one_after_the_other_with_their_size() {
        let list = vec![(NodeId(10), NodeId(20)), (NodeId(30), NodeId(10))];
        let starts = Starts::Every { first: Time::from_ns(7), gap: Dur::from_ns(3) };
        let sizes = Some(SizeDistribution::fixed(99).unwrap());
        let flows = flows(BulkSpec { flows: 3, pairs: Pairs::Given(list.clone()), starts, sizes, ..SPEC }, 1);
        let seen: Vec<_> = flows.iter().map(|flow| (flow.start, (flow.src, flow.dst), flow.size_bytes)).collect();
        let expected = [(7, list[0]), (10, list[1]), (13, list[0])];
        assert_eq!(seen, expected.map(|(ns, pair)| (Time::from_ns(ns), pair, Some(99))));
    }

    #[test]
    fn each_error_states_the_allowed_values() {
        let given =
            |pairs: &[(u32, u32)]| Pairs::Given(pairs.iter().map(|&(src, dst)| (NodeId(src), NodeId(dst))).collect());
        let endless = Starts::Every { first: Time::ZERO, gap: Dur::MAX };
        for (spec, expected) in [
            (BulkSpec { flows: 0, ..SPEC }, "the number of flows is 0; allowed: 1 or more"),
            (BulkSpec { pairs: given(&[]), ..SPEC }, "the list of pairs is empty; allowed: one pair or more"),
            (BulkSpec { pairs: given(&[(10, 11), (12, 0)]), ..SPEC }, "pair 2: dst is router `r0`; allowed: a host"),
            (BulkSpec { starts: endless, ..SPEC }, "flow 1 starts too late; allowed: within 213 days"),
        ] {
            assert_eq!(Bulk::new(&internet2(), spec, 1).unwrap_err().to_string(), expected);
        }
        let nobody = Bulk::new(&Network::default(), SPEC, 1).unwrap_err().to_string();
        assert_eq!(nobody, "the number of hosts is 0; allowed: 2 or more");
    }
}
