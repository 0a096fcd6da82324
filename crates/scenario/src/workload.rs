//! `[[workload]]`: where flows come from.

mod classes;
mod fan_out;
mod mix;
mod tables;
mod web_users;
mod writes;

use crate::error::{ScenarioError, did_you_mean};
use crate::field::{Field, Section};
use crate::files::Source;
use crate::keys::Kind;
use crate::nodes;
use crate::schemes::Schemes;
use crate::sizes;
use crate::topology::Units;
use crate::volume::{Volume, max_flow_bytes, volume};
use sparelane_core::{Dur, Time};
use sparelane_sim::workload::{
    ArrivalRate, Bulk, BulkSpec, Classed, Destinations, FlowList, LoadOn, Mix, Mixed, Paced, Pairs, Poisson,
    PoissonSpec, Requests, RequestsSpec, SizeDistribution, Starts, TrafficClasses, UNDECIDED, WebUsers, WebUsersSpec,
    WorkloadError,
};
use sparelane_sim::{FlowSource, Network, NodeId, Routing, Writes};
use std::collections::BTreeSet;

pub use classes::TRAFFIC_CLASSES;
pub use fan_out::FAN_OUT;
use tables::MAX_BULK_FLOWS;
pub use tables::{WORKLOAD, WORKLOADS};
pub use writes::WRITES;

/// What a workload is read against.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Where other files are.
    pub source: &'a Source,
    /// The network.
    pub network: &'a Network,
    /// Which of equal paths flows take.
    pub routing: Routing,
    /// The schemes.
    pub schemes: &'a Schemes,
    /// The bandwidth-delay product, bytes.
    pub bdp_bytes: u64,
    /// The length of the run.
    pub duration: Dur,
    /// The seed, with which the workload is tried out.
    pub seed: u64,
}

/// A workload, understood and checked.
#[derive(Clone, Debug)]
pub enum Workload {
    /// Random arrivals.
    Poisson(PoissonSpec),
    /// A given number of flows.
    Bulk(BulkSpec),
    /// Flows of a file.
    List(FlowList),
    /// Requests of clients.
    Requests(RequestsSpec),
    /// Users in a closed loop.
    WebUsers(WebUsersSpec),
    /// The flows of another workload, of several schemes; and the workload's number.
    Mixed(Box<Workload>, Mix, u32),
    /// Another workload, whose applications write in pieces.
    Paced(Box<Workload>, Writes),
    /// Another workload, whose flows are of classes of traffic.
    Classed(Box<Workload>, TrafficClasses),
}

impl Workload {
    /// The flows, under `seed`.
    pub fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(match self {
            Workload::Poisson(spec) => Box::new(Poisson::new(network, spec.clone(), seed)?),
            Workload::Bulk(spec) => Box::new(Bulk::new(network, spec.clone(), seed)?),
            Workload::Requests(spec) => Box::new(Requests::new(network, spec.clone(), seed)?),
            Workload::WebUsers(spec) => Box::new(WebUsers::new(network, spec.clone(), seed)?),
            Workload::List(list) => Box::new(list.clone()),
            Workload::Mixed(inner, mix, number) => {
                Box::new(Mixed::new(inner.flows(network, seed)?, network, mix, seed, *number)?)
            }
            Workload::Paced(inner, writes) => Box::new(Paced::new(inner.flows(network, seed)?, *writes)),
            Workload::Classed(inner, classes) => Box::new(Classed::new(inner.flows(network, seed)?, classes.clone())),
        })
    }

    /// Reads workload number `number`; `classes` are those of the run, which grow by this workload's.
    pub fn read(
        field: &Field<'_>,
        number: u32,
        context: Context<'_>,
        classes: &mut Vec<String>,
    ) -> Result<Workload, ScenarioError> {
        let (kind, section) = field.clone().variant(WORKLOAD, WORKLOADS)?;
        let mix = mix::read(&section, context.schemes)?;
        let (scheme, first_scheme) = match &mix {
            Some(mix) => (UNDECIDED, mix.shares[0].0),
            None => {
                let only = scheme(&section, context.schemes)?;
                (only, only)
            }
        };
        let reader = Reader { section: &section, context, number, scheme, first_scheme };
        let workload = match kind {
            "poisson" => reader.poisson()?,
            "bulk" => reader.bulk()?,
            "requests" => reader.requests()?,
            "web-users" => reader.web_users()?,
            _ => reader.list()?,
        };
        let writes = section.maybe("writes", |field| writes::read(field, reader.mss_bytes(), context.bdp_bytes))?;
        let mut used: BTreeSet<_> = match &mix {
            Some(mix) => mix.shares.iter().map(|&(scheme, _)| scheme).collect(),
            None => [scheme].into(),
        };
        if let Workload::List(list) = &workload {
            used.extend(list.schemes().filter(|&scheme| scheme != UNDECIDED));
        }
        let classes = classes::Reader { names: classes, schemes: context.schemes, used }.read(&section)?;
        let workload = match classes {
            Some(classes) => Workload::Classed(Box::new(workload), classes),
            None => workload,
        };
        let workload = match writes {
            Some(writes) => Workload::Paced(Box::new(workload), writes),
            None => workload,
        };
        let tried = workload.flows(context.network, context.seed);
        tried.map_err(|error| section.whole_table().error(error.message))?;
        let (Some(mix), Some(field)) = (mix, section.given("mix")) else { return Ok(workload) };
        let workload = Workload::Mixed(Box::new(workload), mix, number);
        let tried = workload.flows(context.network, context.seed);
        tried.map_err(|error| field.error(error.message))?;
        Ok(workload)
    }
}

struct Reader<'a> {
    section: &'a Section<'a>,
    context: Context<'a>,
    number: u32,
    scheme: u16,
    /// The scheme whose segments sizes are counted in: all of a mix have the same.
    first_scheme: u16,
}

impl Reader<'_> {
    /// The hosts that a key lists, if it is given.
    fn hosts(&self, key: &str) -> Result<Option<Vec<NodeId>>, ScenarioError> {
        let Some(list) = self.section.given(key) else { return Ok(None) };
        let hosts = list.list(Kind::Node)?;
        hosts.iter().map(|field| nodes::host(field, self.context.network)).collect::<Result<_, _>>().map(Some)
    }

    /// From when to when flows start.
    fn period(&self) -> Result<(Dur, Dur), ScenarioError> {
        let section = self.section;
        let start = section.need("start")?.time()?;
        let end = section.maybe("end", Field::time)?.unwrap_or(self.context.duration);
        if end > start {
            return Ok((start, end));
        }
        let field = section.given("end").or_else(|| section.given("start"));
        let field = field.unwrap_or_else(|| section.whole_table().clone());
        Err(field.error(format!("the workload runs from {start} to {end}; allowed: an end after the start")))
    }

    fn requests(&self) -> Result<Workload, ScenarioError> {
        let section = self.section;
        let (start, end) = self.period()?;
        let load = section.need("load")?;
        if load.share()? == 0.0 {
            return Err(load.error("no requests at all; allowed: a number above 0, up to 2"));
        }
        let first = self.context.network.hosts().into_iter().take(1).collect();
        Ok(Workload::Requests(RequestsSpec {
            clients: self.hosts("clients")?.unwrap_or(first),
            servers: self.hosts("servers")?.unwrap_or_default(),
            load: load.share()?,
            sizes: self.sizes(&section.need("sizes")?)?,
            fan_out: fan_out::read(section)?,
            start: at(start),
            end: at(end),
            scheme: self.scheme,
            number: self.number,
        }))
    }

    fn poisson(&self) -> Result<Workload, ScenarioError> {
        let (section, network) = (self.section, self.context.network);
        let (start, end) = self.period()?;
        let sources = self.hosts("sources")?.unwrap_or_else(|| network.hosts());
        let destinations = match section.need("destinations")?.choice()? {
            "any" => Destinations::AnyOther,
            _ => Destinations::BehindAnotherRouter,
        };
        Ok(Workload::Poisson(PoissonSpec {
            sources,
            destinations,
            rate: self.arrival_rate()?,
            routing: self.context.routing,
            sizes: self.sizes(&section.need("sizes")?)?,
            start: at(start),
            end: at(end),
            scheme: self.scheme,
            number: self.number,
        }))
    }

    fn arrival_rate(&self) -> Result<ArrivalRate, ScenarioError> {
        let section = self.section;
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

    fn bulk(&self) -> Result<Workload, ScenarioError> {
        let section = self.section;
        let (pairs, count) = self.pairs(&section.need("pairs")?)?;
        let flows = match section.given("flows") {
            Some(field) => field.whole()?,
            None if count <= MAX_BULK_FLOWS => count,
            None => {
                return Err(section.need("pairs")?.error(format!("{count} pairs; allowed: at most {MAX_BULK_FLOWS}")));
            }
        };
        let sizes = match (section.given("sizes"), section.given("size")) {
            (Some(_), Some(size)) => return Err(size.error("sizes is given too; allowed: one of the two")),
            (Some(sizes), None) => Some(self.sizes(&sizes)?),
            (None, _) => self.size(&section.need("size")?)?,
        };
        let (first, spread) = (at(section.need("start")?.time()?), section.need("spread")?.time()?);
        let starts = match section.given("gap") {
            Some(gap) if section.given("spread").is_some() => {
                return Err(gap.error("spread is given too; allowed: one of the two"));
            }
            Some(gap) => Starts::Every { first, gap: gap.time()? },
            None => Starts::Spread { first, spread },
        };
        Ok(Workload::Bulk(BulkSpec {
            flows: flows as u32,
            pairs,
            sizes,
            starts,
            scheme: self.scheme,
            number: self.number,
        }))
    }

    /// The pairs that `field` asks for, and how many there are.
    fn pairs(&self, field: &Field<'_>) -> Result<(Pairs, u64), ScenarioError> {
        let network = self.context.network;
        let hosts = network.hosts();
        if matches!(field.item(), crate::document::Item::List(_)) {
            let pairs = field.list(Kind::Special("a pair of hosts, as in [\"left0\", \"right0\"]"))?;
            let pairs = pairs.iter().map(|field| host_pair(field, network)).collect::<Result<Vec<_>, _>>()?;
            let count = pairs.len() as u64;
            return Ok((Pairs::Given(pairs), count));
        }
        let host_count = hosts.len() as u64;
        match field.word(["halves", "all", "permutation", "random", "next", "incast"].into_iter())? {
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

    fn list(&self) -> Result<Workload, ScenarioError> {
        let path = self.section.need("path")?;
        let input = self.context.source.read(&path)?;
        let network = self.context.network;
        let list = match input.extension.as_str() {
            "flows" => FlowList::from_neutral(&input.text, network, self.scheme, max_flow_bytes(self.mss_bytes())),
            "csv" => {
                let schemes = self.context.schemes.all.iter();
                let schemes = schemes.map(|scheme| (scheme.name.clone(), max_flow_bytes(scheme.transport.mss_bytes)));
                FlowList::from_csv(&input.text, network, &schemes.collect::<Vec<_>>(), self.scheme, &Units)
            }
            _ => return Err(path.error("unknown kind of file; allowed: .flows, .csv")),
        };
        list.map(Workload::List).map_err(|error| input.error(error.line, error.message))
    }

    fn sizes(&self, field: &Field<'_>) -> Result<SizeDistribution, ScenarioError> {
        sizes::read(field, self.context.source, self.mss_bytes(), self.context.bdp_bytes)
    }

    fn size(&self, field: &Field<'_>) -> Result<Option<SizeDistribution>, ScenarioError> {
        match volume(field, self.mss_bytes(), self.context.bdp_bytes)? {
            Volume::Unlimited => Ok(None),
            Volume::Bytes(bytes) => {
                SizeDistribution::fixed(bytes).map(Some).map_err(|error| field.error(error.message))
            }
        }
    }

    fn mss_bytes(&self) -> u64 {
        self.context.schemes.all[usize::from(self.first_scheme)].transport.mss_bytes
    }
}

/// The scheme of a workload: the one it names, or the only one there is.
fn scheme(section: &Section<'_>, schemes: &Schemes) -> Result<u16, ScenarioError> {
    let Some(field) = section.given("scheme") else {
        let allowed = || schemes.names().collect::<Vec<_>>().join(", ");
        return match schemes.all.len() {
            1 => Ok(0),
            _ => Err(section.missing_of("scheme", &allowed())),
        };
    };
    let name = field.text()?;
    schemes.find(name).ok_or_else(|| unknown_scheme(&field, name, schemes))
}

fn unknown_scheme(field: &Field<'_>, name: &str, schemes: &Schemes) -> ScenarioError {
    let allowed = schemes.names().collect::<Vec<_>>().join(", ");
    field.error(format!("no such scheme; allowed: {allowed}{}", did_you_mean(name, schemes.names())))
}

fn host_pair(field: &Field<'_>, network: &Network) -> Result<(NodeId, NodeId), ScenarioError> {
    let [src, dst] = nodes::pair(field)?;
    let pair = (nodes::host(&src, network)?, nodes::host(&dst, network)?);
    if pair.0 == pair.1 {
        return Err(field.error("a host cannot send to itself; allowed: two different hosts"));
    }
    Ok(pair)
}

fn at(span: Dur) -> Time {
    Time::ZERO + span
}
