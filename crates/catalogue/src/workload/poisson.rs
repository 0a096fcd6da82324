//! Flows that arrive at random: a Poisson process at each source host, sizes from a distribution, destinations uniform.
//!
//! Each host draws from streams of its own, so that its flows are the same whichever other hosts take part. Load is
//! counted in payload bytes; headers and retransmissions come on top.

use super::{Reader, SIZES, START, Workload, WorkloadForm, at};
use crate::schema::{Fallback, Form, Key, Kind, MAX_DURATION, ScenarioError, Shape};
use crate::workload::Demand;
use crate::workload::core_load::{Matrix, core_loads};
use crate::workload::ends::check_host;
use crate::workload::receivers::{Access, Destinations, Receivers};
use crate::workload::repeated::Repeated;
use crate::workload::streams::stream;
use crate::workload::{SizeDistribution, WorkloadError};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_sim::Routing;
use sparelane_sim::{FlowSource, FlowSpec};
use sparelane_sim::{Network, NodeId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;

/// What a scenario can say of it.
pub static FORM: WorkloadForm = Form {
    name: "poisson",
    summary: "flows that arrive at random at every source, to random destinations",
    source: "sparelane",
    keys: &[
        Key::new(
            "load",
            Kind::Share { max: 2.0 },
            Fallback::Nothing("as flows_per_second says"),
            "expected payload as a share of the links' rates; or give flows_per_second",
        ),
        Key::new(
            "load_on",
            Kind::Choice(&["access", "mean-core", "busiest-core"]),
            Fallback::Value("access"),
            "whose share load is: each source's own cable (of its slower direction), the mean of the links between \
             routers, or the busiest; rates and paths as they are in the run, and flows that are spread in even parts",
        ),
        Key::new(
            "flows_per_second",
            Kind::Positive { max: 1e9 },
            Fallback::Nothing("as load says"),
            "flows that each source starts per second",
        ),
        Key::new("sizes", SIZES, Fallback::Required, "how large the flows are"),
        Key::new(
            "sources",
            Kind::Special("a list of hosts, as in [\"h10\", \"h11\"]", &Shape::List(&Shape::Of(Kind::Node))),
            Fallback::Nothing("all hosts"),
            "the hosts that send",
        ),
        Key::new(
            "destinations",
            Kind::Choice(&["another-router", "any"]),
            Fallback::Value("another-router"),
            "to whom: hosts behind another router, or any other host; each as likely",
        ),
        START,
        Key::new(
            "end",
            Kind::Time { min: Dur::from_ps(1), max: MAX_DURATION },
            Fallback::Nothing("the end of the run"),
            "no flow starts at this time or later",
        ),
    ],
    read: &read,
};

fn read(reader: &Reader<'_>) -> Result<Arc<dyn Workload>, ScenarioError> {
    let (section, network) = (reader.section, reader.context.network);
    let (start, end) = reader.period()?;
    let sources = reader.hosts("sources")?.unwrap_or_else(|| network.hosts());
    let destinations = match section.need("destinations")?.choice()? {
        "any" => Destinations::AnyOther,
        _ => Destinations::BehindAnotherRouter,
    };
    Ok(Arc::new(PoissonSpec {
        sources,
        destinations,
        rate: arrival_rate(reader)?,
        routing: reader.context.routing,
        sizes: reader.sizes(&section.need("sizes")?)?,
        start: at(start),
        end: at(end),
        scheme: reader.scheme,
        number: reader.number,
    }))
}

fn arrival_rate(reader: &Reader<'_>) -> Result<ArrivalRate, ScenarioError> {
    let section = reader.section;
    let Some(rate) = section.given("flows_per_second") else {
        let missing = || section.missing_of("load", "a share of the links, as in load = 0.3, or flows_per_second");
        let field = section.given("load").ok_or_else(missing)?;
        let load = field.share()?;
        if load == 0.0 {
            return Err(field.error("no flows at all; allowed: a number above 0, up to 2"));
        }
        return Ok(ArrivalRate::Load(
            load,
            match section.need("load_on")?.choice()? {
                "mean-core" => LoadOn::MeanCore,
                "busiest-core" => LoadOn::BusiestCore,
                _ => LoadOn::Access,
            },
        ));
    };
    match section.given("load").or_else(|| section.given("load_on")) {
        Some(field) => Err(field.error("flows_per_second is given too; allowed: one of the two")),
        None => Ok(ArrivalRate::FlowsPerSecond(rate.positive()?)),
    }
}

/// The highest load that makes sense to ask for: twice what the links carry.
const MAX_LOAD: f64 = 2.0;
/// The most flows per second of one host.
const MAX_FLOWS_PER_SECOND: f64 = 1e9;

/// On which links a load is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOn {
    /// On each source's own cable, of the rate of its slower direction: under uniform traffic a host receives as much as
    /// it sends.
    Access,
    /// On the links between routers: the mean over all of them, each direction on its own.
    MeanCore,
    /// On the direction of a link between routers that is loaded most.
    BusiestCore,
}

/// How often flows arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrivalRate {
    /// As often as it takes for an expected payload load, a share of the links' rates. For a load on the core, sources
    /// send in proportion to the slower direction of their own cables, over static shortest paths.
    Load(f64, LoadOn),
    /// At each source, this many flows per second.
    FlowsPerSecond(f64),
}

/// What a [`Poisson`] workload is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonSpec {
    /// The hosts that start flows, each once. All hosts: [`Network::hosts`].
    pub sources: Vec<NodeId>,
    /// To whom they send.
    pub destinations: Destinations,
    /// How often.
    pub rate: ArrivalRate,
    /// The paths of the run, on which a load of the core depends.
    pub routing: Routing,
    /// How much.
    pub sizes: SizeDistribution,
    /// When the processes begin; the first flow comes after one random gap.
    pub start: Time,
    /// When they end: no flow starts at this time or later.
    pub end: Time,
    /// The flows' scheme, by its index in the run.
    pub scheme: u16,
    /// The workload's number in its run. Workloads with different numbers draw independently; with the same number
    /// and seed they draw alike.
    pub number: u32,
}

/// Flows of independent Poisson processes, in order of start; at the same instant, in the order of the hosts.
#[derive(Clone, Debug)]
pub struct Poisson {
    sources: Vec<Source>,
    /// The next start of each source that has one, and the source's place.
    next: BinaryHeap<Reverse<(Time, usize)>>,
    receivers: Receivers,
    sizes: SizeDistribution,
    end: Time,
    scheme: u16,
}

/// One host's process.
#[derive(Clone, Debug)]
struct Source {
    host: NodeId,
    access: Access,
    /// Places among the receivers to which it does not send.
    excluded: Range<usize>,
    flows_per_second: f64,
    arrivals: Stream,
    sizes: Stream,
}

impl Poisson {
    /// The workload that `spec` describes in `network`, under `seed`.
    ///
    /// # Errors
    /// No sources; a source that is no host, has no cable, comes twice or has nobody to send to; a load that is not
    /// above 0 or above 2, or not defined; a rate out of bounds; an end that is not after the start.
    pub fn new(network: &Network, spec: PoissonSpec, seed: u64) -> Result<Poisson, WorkloadError> {
        if spec.end <= spec.start {
            let message = format!("the workload ends at {}; allowed: after its start at {}", spec.end, spec.start);
            return Err(WorkloadError::new(message));
        }
        let receivers = Receivers::of(network);
        let mut sources = sources(network, &spec, &receivers, seed)?;
        set_rates(&mut sources, network, &spec, &receivers)?;
        let mut next = BinaryHeap::with_capacity(sources.len());
        for (place, source) in sources.iter_mut().enumerate() {
            next.push(Reverse((source.after(spec.start), place)));
        }
        Ok(Poisson { sources, next, receivers, sizes: spec.sizes, end: spec.end, scheme: spec.scheme })
    }

    /// The expected number of flows per second, over all sources.
    pub fn flows_per_second(&self) -> f64 {
        self.sources.iter().map(|source| source.flows_per_second).sum()
    }
}

impl FlowSource for Poisson {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let Reverse((start, place)) = self.next.pop()?;
        if start >= self.end {
            // The earliest is too late, so all are.
            self.next.clear();
            return None;
        }
        let source = &mut self.sources[place];
        let dst = self.receivers.draw(&source.excluded, &mut source.arrivals);
        let size_bytes = Some(self.sizes.draw(&mut source.sizes));
        self.next.push(Reverse((source.after(start), place)));
        Some(FlowSpec::new(start, source.host, dst, size_bytes, self.scheme))
    }
}

impl Source {
    /// The start of the flow that follows one at `time`: an exponential gap later.
    fn after(&mut self, time: Time) -> Time {
        let gap_seconds = -libm::log(self.arrivals.unit_above_zero()) / self.flows_per_second;
        time.saturating_add(Dur::from_secs_f64(gap_seconds))
    }
}

/// The sources in the order of the hosts, not yet knowing how often they send.
fn sources(
    network: &Network,
    spec: &PoissonSpec,
    receivers: &Receivers,
    seed: u64,
) -> Result<Vec<Source>, WorkloadError> {
    for &host in &spec.sources {
        check_host(network, "a source", host).map_err(WorkloadError::new)?;
    }
    let mut is_wanted = vec![false; network.nodes.len()];
    if spec.sources.iter().any(|host| std::mem::replace(&mut is_wanted[host.index()], true)) {
        return Err(WorkloadError::new("a source is listed twice; allowed: each host once"));
    }
    if spec.sources.is_empty() {
        return Err(WorkloadError::new("the workload has no sources; allowed: one host or more"));
    }
    let hosts = (0..).zip(network.hosts()).filter(|(_, host)| is_wanted[host.index()]);
    let source = |(position, host): (u32, NodeId)| {
        let name = &network.nodes[host.index()].name;
        let access = receivers
            .access(host)
            .ok_or_else(|| WorkloadError::new(format!("source `{name}` has no cable; allowed: hosts with one")))?;
        let excluded = receivers.excluded(host, access.router, spec.destinations);
        if receivers.eligible(&excluded) == 0 {
            let needed = match spec.destinations {
                Destinations::AnyOther => "another host",
                Destinations::BehindAnotherRouter => "a host at another router",
            };
            return Err(WorkloadError::new(format!("source `{name}` has nobody to send to; needed: {needed}")));
        }
        let [arrivals, sizes] =
            [Domain::Arrivals, Domain::Sizes].map(|domain| stream(seed, domain, spec.number, position));
        Ok(Source { host, access, excluded, flows_per_second: 0.0, arrivals, sizes })
    };
    hosts.map(source).collect()
}

fn set_rates(
    sources: &mut [Source],
    network: &Network,
    spec: &PoissonSpec,
    receivers: &Receivers,
) -> Result<(), WorkloadError> {
    let access_load = match spec.rate {
        ArrivalRate::FlowsPerSecond(flows_per_second) => {
            sources.iter_mut().for_each(|source| source.flows_per_second = flows_per_second);
            return check_rates(sources);
        }
        ArrivalRate::Load(load, _) if !(load > 0.0 && load <= MAX_LOAD) => {
            let message = format!("the load is {load}; allowed: above 0, at most {MAX_LOAD}, where 1 fills the links");
            return Err(WorkloadError::new(message));
        }
        ArrivalRate::Load(load, LoadOn::Access) => load,
        ArrivalRate::Load(load, LoadOn::MeanCore) => {
            let loads = loads_at_full_access(sources, network, spec, receivers)?;
            load / (loads.iter().sum::<f64>() / loads.len() as f64)
        }
        ArrivalRate::Load(load, LoadOn::BusiestCore) => {
            load / loads_at_full_access(sources, network, spec, receivers)?.into_iter().fold(0.0, f64::max)
        }
    };
    if !access_load.is_finite() {
        return Err(WorkloadError::new("no flow crosses a link between routers, so no load on the core is defined"));
    }
    let mean_bits = 8.0 * spec.sizes.mean_bytes();
    for source in sources.iter_mut() {
        source.flows_per_second = access_load * source.access.rate.as_bps() as f64 / mean_bits;
    }
    check_rates(sources)
}

fn check_rates(sources: &[Source]) -> Result<(), WorkloadError> {
    let allowed = |rate: f64| rate > 0.0 && rate <= MAX_FLOWS_PER_SECOND;
    match sources.iter().map(|source| source.flows_per_second).find(|&rate| !allowed(rate)) {
        None => Ok(()),
        Some(rate) => Err(WorkloadError::new(format!(
            "a source starts {rate} flows per second; allowed: above 0, at most {MAX_FLOWS_PER_SECOND}"
        ))),
    }
}

/// The loads of the core when each source sends at its full access rate.
fn loads_at_full_access(
    sources: &[Source],
    network: &Network,
    spec: &PoissonSpec,
    receivers: &Receivers,
) -> Result<Vec<f64>, WorkloadError> {
    let mut senders: BTreeMap<NodeId, Vec<Repeated>> = BTreeMap::new();
    for source in sources {
        let share_bps = source.access.rate.as_bps() as f64 / receivers.eligible(&source.excluded) as f64;
        let terms = senders.entry(source.access.router).or_default();
        match terms.last_mut().filter(|last| last.term == share_bps) {
            Some(last) => last.times += 1,
            None => terms.push(Repeated { term: share_bps, times: 1 }),
        }
    }
    let mut matrix = Matrix::new();
    for (&from, terms) in &senders {
        for (to, hosts) in receivers.at_routers() {
            // Each sender has a term for each host at `to` to which it sends.
            let each = match (spec.destinations, from == to) {
                (_, false) => hosts,
                (Destinations::AnyOther, true) => hosts - 1,
                (Destinations::BehindAnotherRouter, true) => 0,
            };
            if each > 0 {
                let add = |sum, one: &Repeated| Repeated { times: one.times * each, ..*one }.added_to(sum);
                matrix.insert((from, to), terms.iter().fold(0.0, add));
            }
        }
    }
    core_loads(network, &matrix, spec.routing)
}

impl Workload for PoissonSpec {
    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(Poisson::new(network, self.clone(), seed)?))
    }

    fn demand(&self, network: &Network, duration: Dur) -> Demand {
        let rate = Poisson::new(network, self.clone(), 0).map_or(0.0, |flows| flows.flows_per_second());
        Demand::of_rate(rate, (self.start, self.end), duration)
    }
}

#[cfg(test)]
mod tests;
