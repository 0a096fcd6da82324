//! Requests of clients: each arrives at random and fetches one or more flows from servers, all at once.
//!
//! The request itself takes no time: its flows start when it arrives. It is complete when the last of them is.

use super::{Reader, SIZES, START, Workload, WorkloadForm, at};
use crate::schema::{Fallback, Form, Key, Kind, MAX_DURATION, ScenarioError, Section, Shape};
use crate::workload::Demand;
use crate::workload::ends::{check, check_host};
use crate::workload::streams::stream;
use crate::workload::{SizeDistribution, WorkloadError};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use sparelane_sim::{FlowSource, FlowSpec};
use sparelane_sim::{Network, NodeId};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

/// The form in a scenario.
pub static FORM: WorkloadForm = Form {
    name: "requests",
    summary: "clients that send requests at random times, each for one or more flows from servers",
    source: "RTCP section V-A",
    keys: &[
        Key::new(
            "load",
            Kind::Share { max: 2.0 },
            Fallback::Required,
            "payload as a share of the rate towards each client",
        ),
        Key::new("sizes", SIZES, Fallback::Required, "sizes of the flows"),
        Key::new(
            "clients",
            Kind::Special("a list of hosts, as in [\"h1\"]", &Shape::List(&Shape::Of(Kind::Node))),
            Fallback::Nothing("the first host"),
            "hosts that send requests",
        ),
        Key::new(
            "servers",
            Kind::Special("a list of hosts, as in [\"h2\", \"h3\"]", &Shape::List(&Shape::Of(Kind::Node))),
            Fallback::Nothing("all hosts except the client"),
            "hosts that answer; a request draws among them, none twice before all have been drawn",
        ),
        Key::new(
            "fan_out",
            Kind::Special(
                "a list such as [{ flows = 1, share = 0.5 }, { flows = 8, share = 0.5 }]",
                &Shape::List(&Shape::Table("fan_out")),
            ),
            Fallback::Nothing("one flow"),
            "number of flows that a request fetches at once, with the share of such requests",
        ),
        START,
        Key::new(
            "end",
            Kind::Time { min: Dur::from_ps(1), max: MAX_DURATION },
            Fallback::Nothing("the end of the run"),
            "no request arrives at this time or later",
        ),
    ],
    read: &read,
};

fn read(reader: &Reader<'_>) -> Result<Arc<dyn Workload>, ScenarioError> {
    let section = reader.section;
    let (start, end) = reader.period()?;
    let load = section.need("load")?;
    if load.share()? == 0.0 {
        return Err(load.error("no requests; allowed: a number above 0, up to 2"));
    }
    let first = reader.context.network.hosts().into_iter().take(1).collect();
    Ok(Arc::new(RequestsSpec {
        clients: reader.hosts("clients")?.unwrap_or(first),
        servers: reader.hosts("servers")?.unwrap_or_default(),
        load: load.share()?,
        sizes: reader.sizes(&section.need("sizes")?)?,
        fan_out: fan_out(section)?,
        start: at(start),
        end: at(end),
        scheme: reader.scheme,
        number: reader.number,
    }))
}

/// The keys of one entry of `fan_out`.
pub static FAN_OUT: &[Key] = &[
    Key::new("flows", Kind::Whole { min: 1, max: 1_000_000 }, Fallback::Required, "number of flows of a request"),
    Key::new("share", Kind::Share { max: 1.0 }, Fallback::Required, "share of such requests; all shares add up to 1"),
];

/// Returns the fan-out that a workload gives, or one flow for every request.
fn fan_out(section: &Section<'_>) -> Result<Vec<FanOut>, ScenarioError> {
    let Some(list) = section.given("fan_out") else { return Ok(vec![FanOut { flows: 1, share: 1.0 }]) };
    let mut fan_out = Vec::new();
    for field in list.list(list.kind())? {
        let entry = field.section(&[FAN_OUT])?;
        fan_out.push(FanOut { flows: entry.need("flows")?.whole()? as u32, share: entry.need("share")?.share()? });
    }
    if fan_out.is_empty() {
        return Err(list.error("no entry; allowed: one or more"));
    }
    Ok(fan_out)
}

/// The maximum load.
const MAX_LOAD: f64 = 2.0;
/// Maximum deviation of the shares of a fan-out from a sum of one.
const SUM_TOLERANCE: f64 = 1e-6;

/// A number of flows per request and its frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FanOut {
    /// Number of flows of a request, at least one.
    pub flows: u32,
    /// The share of such requests.
    pub share: f64,
}

/// The description of a [`Requests`] workload.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestsSpec {
    /// The hosts that send requests.
    pub clients: Vec<NodeId>,
    /// The hosts that answer; empty means all hosts except the client.
    pub servers: Vec<NodeId>,
    /// The requested payload as a share of the rate towards each client.
    pub load: f64,
    /// The sizes of the flows.
    pub sizes: SizeDistribution,
    /// The numbers of flows per request; the shares add up to one.
    pub fan_out: Vec<FanOut>,
    /// The start of the processes. The first request comes after one random gap.
    pub start: Time,
    /// No request arrives at this time or later.
    pub end: Time,
    /// The flows' scheme, by its index in the run.
    pub scheme: u16,
    /// The workload's number in its run; see [`PoissonSpec::number`](crate::workload::PoissonSpec::number).
    pub number: u32,
}

/// The flows of all requests, in order of start.
#[derive(Clone, Debug)]
pub struct Requests {
    clients: Vec<Client>,
    /// The next request of each client, with the client's position.
    next: BinaryHeap<Reverse<(Time, usize)>>,
    /// The remaining flows of the latest request.
    waiting: VecDeque<FlowSpec>,
    fan_out: Vec<FanOut>,
    sizes: SizeDistribution,
    end: Time,
    scheme: u16,
    request: u32,
}

/// One client's process.
#[derive(Clone, Debug)]
struct Client {
    host: NodeId,
    servers: Vec<NodeId>,
    requests_per_second: f64,
    arrivals: Stream,
    sizes: Stream,
}

impl Requests {
    /// Creates the workload that `spec` describes in `network`, under `seed`.
    ///
    /// # Errors
    /// Fails without clients; if a client or server is not a host, or a client has no servers; with a load that is not
    /// above 0, or above 2; with a fan-out without flows or whose shares do not add up to one; or with an end not after
    /// the start.
    pub fn new(network: &Network, spec: RequestsSpec, seed: u64) -> Result<Requests, WorkloadError> {
        if spec.end <= spec.start {
            let message = format!("the workload ends at {}; allowed: after its start at {}", spec.end, spec.start);
            return Err(WorkloadError::new(message));
        }
        if !(spec.load > 0.0 && spec.load <= MAX_LOAD) {
            return Err(WorkloadError::new(format!("the load is {}; allowed: above 0, up to {MAX_LOAD}", spec.load)));
        }
        let flows_per_request = mean_flows(&spec.fan_out)?;
        if spec.clients.is_empty() {
            return Err(WorkloadError::new("the list of clients is empty; allowed: one host or more"));
        }
        each_once("a client", &spec.clients)?;
        each_once("a server", &spec.servers)?;
        // A load is a share of the client's downlink: more bytes per request mean fewer requests.
        let bytes_per_request = flows_per_request * spec.sizes.mean_bytes();
        let mut clients = Vec::new();
        for &host in &spec.clients {
            let servers = servers_of(network, host, &spec.servers)?;
            let downlink = rate_towards(network, host)?;
            // Streams are keyed by the client, so that its requests do not depend on the other clients.
            clients.push(Client {
                host,
                servers,
                requests_per_second: spec.load * downlink.as_bps() as f64 / 8.0 / bytes_per_request,
                arrivals: stream(seed, Domain::Arrivals, spec.number, host.0),
                sizes: stream(seed, Domain::Sizes, spec.number, host.0),
            });
        }
        let mut next = BinaryHeap::with_capacity(clients.len());
        for (place, client) in clients.iter_mut().enumerate() {
            next.push(Reverse((client.after(spec.start), place)));
        }
        Ok(Requests {
            clients,
            next,
            waiting: VecDeque::new(),
            fan_out: spec.fan_out,
            sizes: spec.sizes,
            end: spec.end,
            scheme: spec.scheme,
            request: 0,
        })
    }

    /// Queues the flows of the next request, if it arrives in time.
    fn queue_request(&mut self) -> Option<()> {
        let Reverse((start, place)) = self.next.pop()?;
        // Starts are in order: once one is too late, all later ones are.
        if start >= self.end {
            self.next.clear();
            return None;
            // Servers repeat only after all of them have been drawn.
        }
        let client = &mut self.clients[place];
        let flows = client.draw_flows(&self.fan_out);
        client.shuffle(flows);
        for flow in 0..flows as usize {
            let server = client.servers[flow % client.servers.len()];
            let size_bytes = Some(self.sizes.draw(&mut client.sizes));
            let flow = FlowSpec::new(start, server, client.host, size_bytes, self.scheme);
            self.waiting.push_back(FlowSpec { request: Some(self.request), ..flow });
        }
        self.request += 1;
        self.next.push(Reverse((client.after(start), place)));
        Some(())
    }
}

impl Requests {
    /// Returns the expected number of flows per second over all clients.
    pub fn flows_per_second(&self) -> f64 {
        let requests: f64 = self.clients.iter().map(|client| client.requests_per_second).sum();
        requests * mean_flows(&self.fan_out).unwrap_or(1.0)
    }
}

impl FlowSource for Requests {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        if self.waiting.is_empty() {
            self.queue_request()?;
        }
        self.waiting.pop_front()
    }
}

impl Client {
    /// Returns the time an exponential gap after `time`.
    fn after(&mut self, time: Time) -> Time {
        let gap_seconds = -libm::log(self.arrivals.unit_above_zero()) / self.requests_per_second;
        time.saturating_add(Dur::from_secs_f64(gap_seconds))
    }

    fn draw_flows(&mut self, fan_out: &[FanOut]) -> u32 {
        let mut draw = self.arrivals.unit();
        for one in fan_out {
            if draw < one.share {
                return one.flows;
            }
            draw -= one.share;
        }
        fan_out.last().map_or(1, |last| last.flows)
    }

    /// Draws the first `wanted` servers: all are equally likely, none twice before all have been drawn.
    fn shuffle(&mut self, wanted: u32) {
        let servers = self.servers.len();
        for place in 0..(wanted as usize).min(servers - 1) {
            let other = place + self.arrivals.below((servers - place) as u64) as usize;
            self.servers.swap(place, other);
        }
    }
}

/// Returns the expected number of flows of a request.
fn mean_flows(fan_out: &[FanOut]) -> Result<f64, WorkloadError> {
    for one in fan_out {
        if one.flows == 0 || !(one.share > 0.0 && one.share <= 1.0) {
            let message = format!("{} flows with share {}; allowed: 1 or more, shares above 0", one.flows, one.share);
            return Err(WorkloadError::new(message));
        }
    }
    let sum: f64 = fan_out.iter().map(|one| one.share).sum();
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        return Err(WorkloadError::new(format!("the shares of the fan-out add up to {sum}; allowed: 1")));
    }
    Ok(fan_out.iter().map(|one| f64::from(one.flows) * one.share).sum())
}

fn each_once(what: &str, hosts: &[NodeId]) -> Result<(), WorkloadError> {
    if hosts.iter().collect::<BTreeSet<_>>().len() == hosts.len() {
        return Ok(());
    }
    Err(WorkloadError::new(format!("{what} is listed twice; allowed: each host once")))
}

/// Returns the servers that may answer `client`.
fn servers_of(network: &Network, client: NodeId, servers: &[NodeId]) -> Result<Vec<NodeId>, WorkloadError> {
    check_host(network, "the client", client).map_err(WorkloadError::new)?;
    if servers.is_empty() {
        let others: Vec<_> = network.hosts().into_iter().filter(|&host| host != client).collect();
        return if others.is_empty() {
            Err(WorkloadError::new("there is no server; allowed: two hosts or more"))
        } else {
            Ok(others)
        };
    }
    for &server in servers {
        check(network, server, client).map_err(WorkloadError::new)?;
    }
    Ok(servers.to_vec())
}

/// Returns the rate of `host`'s cable towards it.
fn rate_towards(network: &Network, host: NodeId) -> Result<Rate, WorkloadError> {
    let cable = network.cables.iter().find(|cable| cable.a == host || cable.b == host);
    let cable = cable.ok_or_else(|| WorkloadError::new("a client without a cable; allowed: hosts with one"))?;
    Ok(cable.rate_from(if cable.a == host { cable.b } else { cable.a }))
}

impl Workload for RequestsSpec {
    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(Requests::new(network, self.clone(), seed)?))
    }

    fn demand(&self, network: &Network, duration: Dur) -> Demand {
        let rate = Requests::new(network, self.clone(), 0).map_or(0.0, |requests| requests.flows_per_second());
        Demand::of_rate(rate, (self.start, self.end), duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::NodeKind;

    fn star(hosts: u32) -> Network {
        let mut network = Network::default();
        let switch = network.add("switch", NodeKind::Router);
        for number in 1..=hosts {
            let host = network.add(format!("h{number}"), NodeKind::Host);
            network.connect(host, switch, Rate::from_gbps(1), Dur::from_us(1));
        }
        network
    }

    fn spec(network: &Network) -> RequestsSpec {
        let fan_out = [(1, 0.5), (2, 0.3), (8, 0.2)].map(|(flows, share)| FanOut { flows, share }).to_vec();
        RequestsSpec {
            clients: vec![network.hosts()[0]],
            servers: Vec::new(),
            load: 0.8,
            sizes: SizeDistribution::fixed(100_000).expect("a size"),
            fan_out,
            start: Time::ZERO,
            end: Time::ZERO + Dur::from_secs(100),
            scheme: 0,
            number: 0,
        }
    }

    fn flows(network: &Network, spec: RequestsSpec) -> Vec<FlowSpec> {
        let mut requests = Requests::new(network, spec, 3).expect("a workload");
        std::iter::from_fn(|| requests.next_flow()).collect()
    }

    #[test]
    fn the_client_gets_the_load_and_requests_fan_out_with_their_shares() {
        let network = star(5);
        let flows = flows(&network, spec(&network));
        let bytes: u64 = flows.iter().filter_map(|flow| flow.size_bytes).sum();
        let load = bytes as f64 * 8.0 / 1e9 / 100.0;
        assert!((load - 0.8).abs() < 0.02, "{load}");
        let requests = flows.last().and_then(|flow| flow.request).expect("a request") + 1;
        let mut sizes = vec![0u32; requests as usize];
        flows.iter().for_each(|flow| sizes[flow.request.expect("a request") as usize] += 1);
        let share = |wanted| sizes.iter().filter(|&&size| size == wanted).count() as f64 / f64::from(requests);
        for (wanted, expected) in [(1, 0.5), (2, 0.3), (8, 0.2)] {
            assert!((share(wanted) - expected).abs() < 0.03, "{wanted}: {}", share(wanted));
        }
        assert!(flows.windows(2).all(|pair| pair[0].start <= pair[1].start));
        assert!(flows.iter().all(|flow| flow.dst == network.hosts()[0] && flow.src != flow.dst));
    }

    #[test]
    fn the_flows_of_a_request_come_from_different_servers_as_far_as_possible() {
        let network = star(5);
        let flows = flows(&network, spec(&network));
        for request in 0..100 {
            let mut servers: Vec<_> = flows.iter().filter(|f| f.request == Some(request)).map(|f| f.src).collect();
            let count = servers.len();
            servers.sort_unstable();
            servers.dedup();
            assert_eq!(servers.len(), count.min(4), "request {request}");
        }
    }

    #[test]
    fn an_invalid_workload_is_refused() {
        let network = star(5);
        let message = |spec| Requests::new(&network, spec, 1).expect_err("a mistake").message;
        let good = spec(&network);
        let half = vec![FanOut { flows: 1, share: 0.5 }];
        assert_eq!(
            message(RequestsSpec { fan_out: half, ..good.clone() }),
            "the shares of the fan-out add up to 0.5; allowed: 1"
        );
        assert_eq!(message(RequestsSpec { load: 0.0, ..good.clone() }), "the load is 0; allowed: above 0, up to 2");
        let twice = vec![network.hosts()[1]; 2];
        let expected = "a server is listed twice; allowed: each host once";
        assert_eq!(message(RequestsSpec { servers: twice.clone(), ..good.clone() }), expected);
        let expected = "a client is listed twice; allowed: each host once";
        assert_eq!(message(RequestsSpec { clients: twice, ..good.clone() }), expected);
        let own = vec![network.hosts()[0]];
        assert_eq!(
            message(RequestsSpec { servers: own, ..good.clone() }),
            "src and dst are both `h1`; allowed: two different hosts"
        );
        assert_eq!(
            message(RequestsSpec { clients: vec![NodeId(0)], ..good }),
            "the client is router `switch`; allowed: a host"
        );
    }
}
