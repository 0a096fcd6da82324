//! Time series for plots: an observer that samples flows, links and schemes at equal distances in time.
//!
//! The table `[sample]` of a scenario does the same, but its series are a part of the results and their digest. These
//! series are not, so the page can plot any scenario and still show its digest.

use crate::columns::{Columns, Data};
use sparelane_core::{Dur, Time};
use sparelane_scenario::{Json, results};
use sparelane_sim::observe::{FlowView, Interest, Observer, Opened, View};
use sparelane_sim::{Network, NodeId, NodeKind};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of flows that are sampled by default.
pub const DEFAULT_FLOWS: u32 = 16;
/// The largest number of links that are sampled by default.
const DEFAULT_LINKS: usize = 32;
/// The allowed numbers of samples.
pub const SAMPLES: (u32, u32) = (2, 20_000);

/// The series to record.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The time between samples.
    pub interval: Dur,
    /// The flows, by their number in order of start.
    pub flows: Vec<u32>,
    /// The links: twice the index of the cable, plus 1 for the direction from its second end.
    pub links: Vec<u32>,
}

impl Spec {
    /// Series of `samples` samples in `duration`. Without flows or links, the default ones are sampled.
    pub fn new(network: &Network, duration: Dur, samples: u32, flows: Vec<u32>, links: Vec<u32>) -> Spec {
        let gaps = u64::from(samples.clamp(SAMPLES.0, SAMPLES.1) - 1);
        let interval = Dur::from_ps((duration.as_ps() / gaps).max(1));
        let flows = if flows.is_empty() { (0..DEFAULT_FLOWS).collect() } else { flows };
        let links = if links.is_empty() { default_links(network) } else { links };
        let count = 2 * network.cables.len() as u32;
        Spec { interval, flows, links: links.into_iter().filter(|&link| link < count).collect() }
    }
}

/// The ends of a link.
pub fn ends(network: &Network, link: u32) -> (NodeId, NodeId) {
    let cable = &network.cables[link as usize / 2];
    if link.is_multiple_of(2) { (cable.a, cable.b) } else { (cable.b, cable.a) }
}

/// Links between routers, then those from routers to hosts.
fn default_links(network: &Network) -> Vec<u32> {
    let is_router = |node: NodeId| network.nodes[node.index()].kind == NodeKind::Router;
    let all = || 0..2 * network.cables.len() as u32;
    let from_routers = |to_router: bool| {
        all().filter(move |&link| {
            let (from, to) = ends(network, link);
            is_router(from) && is_router(to) == to_router
        })
    };
    from_routers(true).chain(from_routers(false)).take(DEFAULT_LINKS).collect()
}

/// The series so far. The observer belongs to the simulation, so both share it.
#[derive(Clone, Debug)]
pub struct Series(Arc<Mutex<Samples>>);

/// Samples of one flow.
#[derive(Clone, Debug, Default)]
struct OfFlow {
    scheme: u16,
    /// Payload at the previous sample.
    before: u64,
    /// Payload at its end, once the flow has closed.
    at_end: Option<u64>,
    has_opened: bool,
    quantities: BTreeMap<&'static str, Vec<f64>>,
}

/// Samples of one link.
#[derive(Clone, Debug)]
struct OfLink {
    link: u32,
    from: NodeId,
    to: NodeId,
    rate_bps: f64,
    sent_before: u64,
    offered_before: u64,
    backlog: Vec<f64>,
    utilization: Vec<f64>,
}

/// Samples of one scheme.
#[derive(Clone, Debug, Default)]
struct OfScheme {
    /// Payload of closed flows.
    closed: u64,
    before: u64,
    throughput: Vec<f64>,
    open: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Samples {
    interval: Dur,
    times: Vec<Time>,
    flows: BTreeMap<u32, OfFlow>,
    links: Vec<OfLink>,
    schemes: Vec<OfScheme>,
    /// The scheme of each flow, by number.
    scheme_of: Vec<u16>,
}

impl Series {
    /// Series without samples yet. `schemes` is the number of schemes.
    pub fn new(spec: &Spec, network: &Network, schemes: usize) -> Series {
        let links = spec.links.iter().map(|&link| {
            let (from, to) = ends(network, link);
            let rate_bps = network.cables[link as usize / 2].rate_from(from).as_bps() as f64;
            let (backlog, utilization) = (Vec::new(), Vec::new());
            OfLink { link, from, to, rate_bps, sent_before: 0, offered_before: 0, backlog, utilization }
        });
        Series(Arc::new(Mutex::new(Samples {
            interval: spec.interval,
            times: Vec::new(),
            flows: spec.flows.iter().map(|&flow| (flow, OfFlow::default())).collect(),
            links: links.collect(),
            schemes: vec![OfScheme::default(); schemes],
            scheme_of: Vec::new(),
        })))
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        // A panic elsewhere ends the run anyway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The series as JSON: `Series` of the protocol.
    pub fn to_json(&self, network: &Network, schemes: &[String], columns: &mut Columns) -> Json {
        let samples = self.samples();
        let name = |id: NodeId| &network.nodes[id.index()].name;
        let opened = samples.flows.iter().filter(|(_, flow)| flow.has_opened);
        let flows = opened.map(|(&number, flow)| {
            let quantities = flow.quantities.iter();
            let quantities = quantities.map(|(name, values)| ((*name).to_owned(), columns.numbers(values.clone())));
            Json::object([
                ("flow", Json::whole(number)),
                ("scheme", Json::text(&schemes[usize::from(flow.scheme)])),
                ("quantities", Json::Object(quantities.collect())),
            ])
        });
        let flows = Json::List(flows.collect());
        let links = samples.links.iter().map(|link| {
            Json::object([
                ("link", Json::whole(link.link)),
                ("name", Json::text(format!("{}->{}", name(link.from), name(link.to)))),
                ("backlogBytes", columns.numbers(link.backlog.clone())),
                ("utilization", columns.numbers(link.utilization.clone())),
            ])
        });
        let links = Json::List(links.collect());
        let schemes = samples.schemes.iter().zip(schemes).map(|(scheme, name)| {
            Json::object([
                ("scheme", Json::text(name)),
                ("throughputBps", columns.numbers(scheme.throughput.clone())),
                ("openFlows", columns.numbers(scheme.open.clone())),
            ])
        });
        let schemes = Json::List(schemes.collect());
        let times = samples.times.iter().map(|time| time.as_secs_f64()).collect();
        let times = columns.put(Data::F64(times));
        Json::object([("timeS", times), ("flows", flows), ("links", links), ("schemes", schemes)])
    }
}

impl Samples {
    /// The scheme of a flow.
    fn scheme_of(&self, flow: u32) -> usize {
        self.scheme_of.get(flow as usize).map_or(0, |&scheme| usize::from(scheme))
    }

    fn sample_flows(&mut self, view: &View<'_>, seconds: f64) {
        let place = self.times.len() - 1;
        for (&number, flow) in &mut self.flows {
            let open = view.flow(number).filter(|open| open.id == number);
            let held = open.map(|open| open.held_bytes).or(flow.at_end.take());
            let mut put = |name: &'static str, value: f64| {
                let values = flow.quantities.entry(name).or_default();
                values.resize(place, f64::NAN);
                values.push(value);
            };
            if let Some(open) = open {
                open.trace(&mut |name, value| {
                    // The bytes of the connection are not those of the flow.
                    if name != "held_bytes" {
                        put(name, results::bounded(value).unwrap_or(f64::NAN));
                    }
                });
            }
            if let Some(held) = held {
                put("throughput_bps", if seconds > 0.0 { 8.0 * (held - flow.before) as f64 / seconds } else { 0.0 });
                flow.before = held;
            }
        }
    }

    fn sample_links(&mut self, view: &mut View<'_>, seconds: f64) {
        for link in &mut self.links {
            let backlog = view.backlog_bytes(link.from, link.to);
            link.backlog.push(backlog.map_or(f64::NAN, |bytes| bytes as f64));
            let sent = view.sent_bytes(link.from, link.to).unwrap_or(link.sent_before);
            let offered = view.offered_bytes(link.from, link.to);
            let capacity = match offered {
                Some(offered) => (offered - link.offered_before) as f64,
                None => link.rate_bps / 8.0 * seconds,
            };
            let used = if capacity > 0.0 { ((sent - link.sent_before) as f64 / capacity).min(1.0) } else { 0.0 };
            link.utilization.push(used);
            (link.sent_before, link.offered_before) = (sent, offered.unwrap_or(0));
        }
    }

    fn sample_schemes(&mut self, view: &View<'_>, seconds: f64) {
        let mut delivered: Vec<u64> = self.schemes.iter().map(|scheme| scheme.closed).collect();
        let mut open = vec![0.0; self.schemes.len()];
        view.for_each_open_flow(&mut |flow| {
            let scheme = self.scheme_of(flow.id);
            delivered[scheme] += flow.held_bytes;
            // A connection that waits for its next flow is open, but its last flow is over.
            open[scheme] += f64::from(u8::from(flow.finish == Time::NEVER));
        });
        for ((scheme, delivered), open) in self.schemes.iter_mut().zip(delivered).zip(open) {
            let grown = delivered.saturating_sub(scheme.before);
            scheme.throughput.push(if seconds > 0.0 { 8.0 * grown as f64 / seconds } else { 0.0 });
            scheme.open.push(open);
            scheme.before = delivered;
        }
    }
}

impl Observer for Series {
    fn interest(&self) -> Interest {
        let queues = self.samples().links.iter().map(|link| (link.from, link.to)).collect();
        Interest { first_sample: Some(Time::ZERO), queues, ..Interest::default() }
    }

    fn on_open(&mut self, flow: &Opened) {
        let mut samples = self.samples();
        let place = flow.flow as usize;
        let known = samples.scheme_of.len().max(place + 1);
        samples.scheme_of.resize(known, 0);
        samples.scheme_of[place] = flow.scheme;
        if let Some(sampled) = samples.flows.get_mut(&flow.flow) {
            (sampled.scheme, sampled.has_opened) = (flow.scheme, true);
        }
    }

    fn on_close(&mut self, flow: &FlowView<'_>) {
        let mut samples = self.samples();
        let scheme = samples.scheme_of(flow.id);
        samples.schemes[scheme].closed += flow.held_bytes;
        if let Some(sampled) = samples.flows.get_mut(&flow.id) {
            sampled.at_end = Some(flow.held_bytes);
        }
    }

    fn on_sample(&mut self, view: &mut View<'_>) -> Time {
        let mut samples = self.samples();
        let now = view.now();
        let seconds = samples.times.last().map_or(0.0, |&last| now.saturating_since(last).as_secs_f64());
        samples.times.push(now);
        samples.sample_flows(view, seconds);
        samples.sample_links(view, seconds);
        samples.sample_schemes(view, seconds);
        now + samples.interval
    }

    fn finish(self: Box<Self>, _records: &mut sparelane_sim::Records) {
        let mut samples = self.samples();
        let count = samples.times.len();
        let columns = samples.flows.values_mut().flat_map(|flow| flow.quantities.values_mut());
        columns.for_each(|values| values.resize(count, f64::NAN));
    }
}
