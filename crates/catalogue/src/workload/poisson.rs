//! Random arrivals: a Poisson process at each source host, sizes from a distribution, and uniform destinations.
//!
//! Each host draws from its own streams, so that its flows do not depend on which other hosts take part. Load counts
//! payload bytes; headers and retransmissions are additional.

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

/// The form in a scenario.
pub static FORM: WorkloadForm = Form {
    name: "poisson",
    summary: "flows that arrive at random at every source, to random destinations",
    source: "sparelane",
    keys: &[
        Key::new(
            "load",
            Kind::Share { max: 2.0 },
            Fallback::Nothing("given by flows_per_second"),
            "expected payload as a share of the links' rates; or give flows_per_second",
        ),
        Key::new(
            "load_on",
            Kind::Choice(&["access", "mean-core", "busiest-core"]),
            Fallback::Value("access"),
            "links that load refers to: each source's own cable (its slower direction), the mean of the links between \
             routers, or the busiest one; with the rates and paths of the run, and spread flows in equal parts",
        ),
        Key::new(
            "flows_per_second",
            Kind::Positive { max: 1e9 },
            Fallback::Nothing("given by load"),
            "number of flows that each source starts per second",
        ),
        Key::new("sizes", SIZES, Fallback::Required, "sizes of the flows"),
        Key::new(
            "sources",
            Kind::Special("a list of hosts, as in [\"h10\", \"h11\"]", &Shape::List(&Shape::Of(Kind::Node))),
            Fallback::Nothing("all hosts"),
            "hosts that send",
        ),
        Key::new(
            "destinations",
            Kind::Choice(&["another-router", "any"]),
            Fallback::Value("another-router"),
            "receivers: hosts behind another router, or any other host; all equally likely",
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
            return Err(field.error("no flows; allowed: a number above 0, up to 2"));
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
        Some(field) => Err(field.error("flows_per_second is also given; allowed: one of the two")),
        None => Ok(ArrivalRate::FlowsPerSecond(rate.positive()?)),
    }
}

/// The maximum load: twice the capacity of the links.
const MAX_LOAD: f64 = 2.0;
/// Maximum number of flows per second of one host.
const MAX_FLOWS_PER_SECOND: f64 = 1e9;

/// The links that a load refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOn {
    /// Each source's own cable, at the rate of its slower direction: under uniform traffic a host receives as much as
    /// it sends.
    Access,
    /// The links between routers: the mean over all of them, each direction separately.
    MeanCore,
    /// The busiest direction of a link between routers.
    BusiestCore,
}

/// The rate at which flows arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrivalRate {
    /// The rate that yields an expected payload load, as a share of the links' rates. For a load on the core, sources
    /// send in proportion to the slower direction of their own cables, over static shortest paths.
    Load(f64, LoadOn),
    /// The number of flows per second at each source.
    FlowsPerSecond(f64),
}

/// The description of a [`Poisson`] workload.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonSpec {
    /// The hosts that start flows, each listed once. For all hosts use [`Network::hosts`].
    pub sources: Vec<NodeId>,
    /// The receivers.
    pub destinations: Destinations,
    /// The arrival rate.
    pub rate: ArrivalRate,
    /// The routing of the run, on which a load of the core depends.
    pub routing: Routing,
    /// The sizes of the flows.
    pub sizes: SizeDistribution,
    /// The start of the processes. The first flow comes after one random gap.
    pub start: Time,
    /// The end of the processes: no flow starts at this time or later.
    pub end: Time,
    /// The flows' scheme, by its index in the run.
    pub scheme: u16,
    /// The workload's number in its run. Workloads with different numbers draw independently; with the same number and
    /// seed they draw the same values.
    pub number: u32,
}

/// Flows of independent Poisson processes in order of start; simultaneous ones in the order of the hosts.
#[derive(Clone, Debug)]
pub struct Poisson {
    sources: Vec<Source>,
    /// The next start of each source that has one, with the source's position.
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
    /// Positions of the receivers to which it does not send.
    excluded: Range<usize>,
    flows_per_second: f64,
    arrivals: Stream,
    sizes: Stream,
}

impl Poisson {
    /// Creates the workload that `spec` describes in `network`, under `seed`.
    ///
    /// # Errors
    /// Fails without sources; if a source is not a host, has no cable, is listed twice or has no receiver; with a load
    /// that is not above 0, above 2 or undefined; with a rate out of bounds; or with an end not after the start.
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

    /// Returns the expected number of flows per second over all sources.
    pub fn flows_per_second(&self) -> f64 {
        self.sources.iter().map(|source| source.flows_per_second).sum()
    }
}

impl FlowSource for Poisson {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let Reverse((start, place)) = self.next.pop()?;
        if start >= self.end {
            // The earliest start is too late, so all are.
            self.next.clear();
            return None;
        }
        let source = &mut self.sources[place];
        let dst = self.receivers.draw(&source.excluded, &mut source.arrivals);
        let size_bytes = Some(self.sizes.draw(&mut source.sizes));
        self.next.push(Reverse((source.after(start), place)));
        Some(FlowSpec::new(start, source.host, dst, size_bytes, self.scheme))
    }

    fn is_open_loop(&self) -> bool {
        true
    }
}

impl Source {
    /// Returns the start of the flow that follows one at `time`, an exponential gap later.
    fn after(&mut self, time: Time) -> Time {
        let gap_seconds = -libm::log(self.arrivals.unit_above_zero()) / self.flows_per_second;
        time.saturating_add(Dur::from_secs_f64(gap_seconds))
    }
}

/// Creates the sources in the order of the hosts, without their rates.
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
    // Positions among all hosts key the streams, so that a host's flows do not depend on the other sources.
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
            return Err(WorkloadError::new(format!("source `{name}` has no receiver; needed: {needed}")));
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
    // A load on the core is converted to the load on the access links that causes it.
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
    // Without traffic on the core, the conversion divides by zero.
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

/// Returns the loads of the core if each source sends at its full access rate.
fn loads_at_full_access(
    sources: &[Source],
    network: &Network,
    spec: &PoissonSpec,
    receivers: &Receivers,
) -> Result<Vec<f64>, WorkloadError> {
    // Equal terms are counted, not added one by one: a million hosts have 10^12 pairs.
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
            // Each sender has a term for each receiver at `to`.
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
