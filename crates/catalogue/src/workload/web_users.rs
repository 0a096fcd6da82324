//! Users of the web in a closed loop: a user's next request waits until the last object has arrived.
//!
//! A user at a client requests a page from its server: a base object, then the embedded objects one after another, with
//! a short pause before each, and a long pause after the page. Each object is a separate flow from server to client, as
//! with HTTP/1.0 without parallel connections. Pages and pauses follow SURGE (`surge.rs`).
//!
//! The request itself is not sent: the flow opens at the server at the time of the request. All users are present from
//! the start, each in a random state, so that they are not in step and the load is steady.

use super::{BodyAndTail, Reader, Workload, WorkloadForm, at, host_pair};
use crate::schema::{
    Fallback, Field, Form, Key, Kind, MAX_DURATION, MAX_FLOW_BYTES, ScenarioError, Shape, volume::max_flow_bytes,
};
use crate::workload::Demand;
use crate::workload::ends::check;
use crate::workload::streams::stream;
use crate::workload::surge::Behaviour;
use crate::workload::{Surge, WorkloadError};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_sim::{FlowSource, FlowSpec};
use sparelane_sim::{Network, NodeId};
use std::collections::VecDeque;
use std::sync::Arc;

const HOSTS: Kind = Kind::Special("a list of hosts, as in [\"h1\", \"h2\"]", &Shape::List(&Shape::Of(Kind::Node)));
const ALPHA: Kind = Kind::Positive { max: 100.0 };

/// Creates the key of a SURGE parameter.
const fn surge(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key::new(name, kind, Fallback::Value(default), meaning).from("SIGMETRICS 1998 (SURGE), unverified")
}

/// The form in a scenario.
pub static FORM: WorkloadForm = Form {
    name: "web-users",
    summary: "users who request the next object of a page when the last has arrived, and pause between pages; each \
              object is a separate flow, as with HTTP/1.0",
    source: "Barford and Crovella, SIGMETRICS 1998 (SURGE)",
    keys: &[
        Key::new(
            "pairs",
            Kind::Special(
                "a list such as [[\"server1\", \"client1\"]]",
                &Shape::List(&Shape::Pair(&Shape::Of(Kind::Node))),
            ),
            Fallback::Nothing("given by servers and clients"),
            "pairs of a server and the client whose users it serves",
        ),
        Key::new("servers", HOSTS, Fallback::Nothing("given by pairs"), "instead of pairs: the server of each client"),
        Key::new("clients", HOSTS, Fallback::Nothing("given by pairs"), "instead of pairs: as many clients as servers"),
        Key::new(
            "users",
            Kind::Whole { min: 1, max: MAX_WEB_USERS },
            Fallback::Required,
            "number of users at the client of each pair; each is in a random state when the workload starts",
        ),
        Key::new(
            "largest_file",
            Kind::Size { min: 1, max: MAX_FLOW_BYTES },
            Fallback::Required,
            "larger draws are cut to this size; the load depends on it, because the tail's mean barely exists",
        ),
        surge(
            "body_mu",
            Kind::Positive { max: 34.0 },
            "9.357",
            "mean of the logarithm of most files' bytes (log-normal)",
        ),
        surge("body_sigma", Kind::Positive { max: 10.0 }, "1.318", "standard deviation of that logarithm"),
        surge("tail_share", Kind::Share { max: 1.0 }, "0.07", "share of the files in the tail (Pareto)"),
        surge("tail_from", Kind::Size { min: 1, max: MAX_FLOW_BYTES }, "133000B", "smallest file in the tail"),
        surge("tail_alpha", ALPHA, "1.1", "exponent of the tail"),
        surge(
            "embedded_least",
            Kind::Positive { max: 1e6 },
            "1.0",
            "minimum number of embedded objects in a page (Pareto)",
        ),
        surge("embedded_alpha", ALPHA, "2.43", "exponent of that number, above 1; numbers are rounded at random"),
        surge("active_off_scale", Kind::MOMENT, "382ms", "scale of the pause between objects of a page (Weibull)"),
        surge("active_off_shape", ALPHA, "1.46", "shape of that pause"),
        surge("inactive_off_least", Kind::MOMENT, "1s", "minimum pause after a page (Pareto)"),
        surge("inactive_off_alpha", ALPHA, "1.5", "exponent of that pause, above 1"),
        Key::new("start", Kind::MOMENT, Fallback::Value("0s"), "time from which users are present"),
        Key::new(
            "end",
            Kind::Time { min: Dur::from_ps(1), max: MAX_DURATION },
            Fallback::Nothing("the end of the run"),
            "no user requests an object at this time or later",
        ),
    ],
    read: &read,
};

fn read(reader: &Reader<'_>) -> Result<Arc<dyn Workload>, ScenarioError> {
    let section = reader.section;
    let (start, end) = reader.period()?;
    let pairs = server_client_pairs(reader)?;
    let users = section.need("users")?;
    let users_per_pair = users.whole()?;
    if users_per_pair.saturating_mul(pairs.len() as u64) > MAX_WEB_USERS {
        let message = format!("for each of {} pairs; allowed: {MAX_WEB_USERS} in all", pairs.len());
        return Err(users.error(message));
    }
    Ok(Arc::new(WebUsersSpec {
        pairs,
        users_per_pair: users_per_pair as u32,
        surge: behaviour(reader)?,
        start: at(start),
        end: at(end),
        scheme: reader.scheme,
        number: reader.number,
    }))
}

/// Returns the pairs of server and client.
fn server_client_pairs(reader: &Reader<'_>) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
    let section = reader.section;
    let (servers, clients) = (section.given("servers"), section.given("clients"));
    let Some(list) = section.given("pairs") else {
        let missing =
            || section.missing_of("pairs", "a list such as [[\"server1\", \"client1\"]], or servers and clients");
        let (Some(servers), Some(clients)) = (reader.hosts("servers")?, reader.hosts("clients")?) else {
            return Err(match servers.or(clients) {
                Some(field) => field.error("the counterpart is missing; allowed: servers and clients, or pairs"),
                None => missing(),
            });
        };
        return zip(&section.need("clients")?, &servers, &clients);
    };
    if let Some(field) = servers.or(clients) {
        return Err(field.error("pairs is also given; allowed: pairs, or servers and clients"));
    }
    let pairs = list.list(Kind::Special(
        "a server and its client, as in [\"server1\", \"client1\"]",
        &Shape::Pair(&Shape::Of(Kind::Node)),
    ))?;
    let pairs: Vec<_> = pairs.iter().map(|field| host_pair(field, reader.context.network)).collect::<Result<_, _>>()?;
    if pairs.is_empty() { Err(list.error("no pair; allowed: at least one")) } else { Ok(pairs) }
}

fn behaviour(reader: &Reader<'_>) -> Result<Surge, ScenarioError> {
    let section = reader.section;
    let positive = |name: &str| section.need(name)?.positive();
    let tail_from_bytes = section.need("tail_from")?.size()?;
    let largest = section.need("largest_file")?;
    let (largest_bytes, most) = (largest.size()?, max_flow_bytes(reader.mss_bytes()));
    if largest_bytes < tail_from_bytes {
        return Err(largest.error(format!("below tail_from; allowed: {tail_from_bytes}B or more")));
    }
    if largest_bytes > most {
        return Err(largest.error(format!("too many segments; allowed: up to {most}B")));
    }
    Ok(Surge {
        files: BodyAndTail {
            body_mu: positive("body_mu")?,
            body_sigma: positive("body_sigma")?,
            tail_share: section.need("tail_share")?.share()?,
            tail_from_bytes,
            tail_alpha: positive("tail_alpha")?,
            largest_bytes,
        },
        embedded_least: positive("embedded_least")?,
        embedded_alpha: with_a_mean(&section.need("embedded_alpha")?)?,
        active_off_scale: section.need("active_off_scale")?.time()?,
        active_off_shape: positive("active_off_shape")?,
        inactive_off_least: section.need("inactive_off_least")?.time()?,
        inactive_off_alpha: with_a_mean(&section.need("inactive_off_alpha")?)?,
    })
}

/// Pairs servers with clients.
fn zip(field: &Field<'_>, servers: &[NodeId], clients: &[NodeId]) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
    if servers.len() != clients.len() {
        return Err(field.error(format!(
            "{} clients for {} servers; allowed: equal numbers",
            clients.len(),
            servers.len()
        )));
    }
    if servers.is_empty() {
        return Err(field.error("no client; allowed: at least one"));
    }
    let pairs = servers.iter().copied().zip(clients.iter().copied());
    match pairs.clone().position(|(server, client)| server == client) {
        Some(place) => Err(field.list(Kind::Node)?[place].error("its own server; allowed: two different hosts")),
        None => Ok(pairs.collect()),
    }
}

/// Reads the exponent of a Pareto distribution with a mean.
fn with_a_mean(field: &Field<'_>) -> Result<f64, ScenarioError> {
    match field.positive()? {
        alpha if alpha > 1.0 => Ok(alpha),
        _ => Err(field.error("such a Pareto has no mean; allowed: a number above 1, up to 100")),
    }
}

/// Maximum number of users of one workload.
pub const MAX_WEB_USERS: u64 = 10_000_000;

/// The description of a [`WebUsers`] workload.
#[derive(Clone, Debug, PartialEq)]
pub struct WebUsersSpec {
    /// The pairs of server and client.
    pub pairs: Vec<(NodeId, NodeId)>,
    /// Number of users at the client of each pair.
    pub users_per_pair: u32,
    /// The behaviour of users.
    pub surge: Surge,
    /// The time from which users are present.
    pub start: Time,
    /// No user requests an object at this time or later.
    pub end: Time,
    /// The flows' scheme, by its index in the run.
    pub scheme: u16,
    /// The workload's number in its run; see [`PoissonSpec::number`](crate::workload::PoissonSpec::number).
    pub number: u32,
}

/// The users and their requests.
#[derive(Clone, Debug)]
pub struct WebUsers {
    users: Vec<User>,
    /// The first request of each user, in order of time.
    first: VecDeque<(Time, u32)>,
    pairs: Vec<(NodeId, NodeId)>,
    behaviour: Behaviour,
    end: Time,
    scheme: u16,
}

/// One user.
#[derive(Clone, Debug)]
struct User {
    pauses: Stream,
    sizes: Stream,
    pair: u32,
    /// Number of embedded objects of the page after the current one.
    left: u32,
}

impl WebUsers {
    /// Creates the workload that `spec` describes in `network`, under `seed`.
    ///
    /// # Errors
    /// Fails without pairs; if a pair cannot be joined by a flow; without users or with too many; if a SURGE parameter
    /// is out of bounds; or if the end is not after the start.
    pub fn new(network: &Network, spec: WebUsersSpec, seed: u64) -> Result<WebUsers, WorkloadError> {
        if spec.end <= spec.start {
            let message = format!("the workload ends at {}; allowed: after its start at {}", spec.end, spec.start);
            return Err(WorkloadError::new(message));
        }
        for &(server, client) in &spec.pairs {
            check(network, server, client).map_err(WorkloadError::new)?;
        }
        let count = spec.pairs.len() as u64 * u64::from(spec.users_per_pair);
        if !(1..=MAX_WEB_USERS).contains(&count) {
            return Err(WorkloadError::new(format!("{count} users; allowed: 1 to {MAX_WEB_USERS} in all")));
        }
        let behaviour = Behaviour::new(spec.surge)?;
        let user = |number: u32| User {
            pauses: stream(seed, Domain::Arrivals, spec.number, number),
            sizes: stream(seed, Domain::Sizes, spec.number, number),
            pair: number / spec.users_per_pair,
            left: 0,
        };
        let mut users: Vec<_> = (0..count as u32).map(user).collect();
        let mut first = Vec::with_capacity(users.len());
        for (user, number) in users.iter_mut().zip(0..) {
            // A random state at the start puts users out of step, as in the steady state.
            let (pause, left) = behaviour.at_random(&mut user.pauses);
            user.left = left;
            first.push((spec.start.saturating_add(pause), number));
        }
        first.retain(|&(start, _)| start < spec.end);
        first.sort_unstable();
        Ok(WebUsers { users, first: first.into(), pairs: spec.pairs, behaviour, end: spec.end, scheme: spec.scheme })
    }

    /// Returns the object that user `number` requests at `start`.
    fn object(&mut self, number: u32, start: Time) -> FlowSpec {
        let user = &mut self.users[number as usize];
        let (server, client) = self.pairs[user.pair as usize];
        let size_bytes = self.behaviour.size_bytes(&mut user.sizes);
        let flow = FlowSpec::new(start, server, client, Some(size_bytes), self.scheme);
        FlowSpec { waiter: Some(u64::from(number)), ..flow }
    }
}

impl FlowSource for WebUsers {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let (start, number) = self.first.pop_front()?;
        Some(self.object(number, start))
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Vec<FlowSpec> {
        let user = &mut self.users[waiter as usize];
        let pause = if user.left > 0 {
            user.left -= 1;
            self.behaviour.active_off(&mut user.pauses)
        } else {
            let pause = self.behaviour.inactive_off(&mut user.pauses);
            user.left = self.behaviour.embedded(&mut user.pauses);
            pause
        };
        let start = now.saturating_add(pause);
        (start < self.end).then(|| self.object(waiter as u32, start)).into_iter().collect()
    }
}

impl Workload for WebUsersSpec {
    fn ends(&self) -> bool {
        false
    }

    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(WebUsers::new(network, self.clone(), seed)?))
    }

    fn demand(&self, _network: &Network, duration: Dur) -> Demand {
        // A user requests an object about every second or two, and waits for it.
        let users = self.pairs.len() as f64 * f64::from(self.users_per_pair);
        Demand { at_once: users, ..Demand::of_rate(users, (self.start, self.end), duration) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Dur, Rate};
    use sparelane_sim::NodeKind;

    fn pairs(count: u32) -> (Network, Vec<(NodeId, NodeId)>) {
        let mut network = Network::default();
        let switch = network.add("switch", NodeKind::Router);
        let mut host = |name: String| {
            let id = network.add(name, NodeKind::Host);
            network.connect(id, switch, Rate::from_gbps(1), Dur::from_us(1));
            id
        };
        let pairs = (0..count).map(|pair| (host(format!("server{pair}")), host(format!("client{pair}")))).collect();
        (network, pairs)
    }

    fn spec(pairs: Vec<(NodeId, NodeId)>) -> WebUsersSpec {
        WebUsersSpec {
            pairs,
            users_per_pair: 50,
            surge: Surge::published(1_000_000),
            start: Time::ZERO + Dur::from_secs(1),
            end: Time::ZERO + Dur::from_secs(60),
            scheme: 0,
            number: 0,
        }
    }

    /// Returns flows that each take the time `takes`, in order of start.
    fn flows(source: &mut WebUsers, takes: Dur) -> Vec<FlowSpec> {
        let mut flows: Vec<_> = std::iter::from_fn(|| source.next_flow()).collect();
        assert!(flows.is_sorted_by_key(|flow| flow.start));
        let mut place = 0;
        while let Some(&flow) = flows.get(place) {
            flows.extend(flow.waiter.into_iter().flat_map(|waiter| source.follow(waiter, flow.start + takes)));
            place += 1;
        }
        flows
    }

    #[test]
    fn a_user_requests_one_object_at_a_time_and_only_between_start_and_end() {
        let (network, pairs) = pairs(2);
        let takes = Dur::from_secs(2);
        let spec = spec(pairs.clone());
        let flows = flows(&mut WebUsers::new(&network, spec.clone(), 1).unwrap(), takes);
        assert!(flows.len() > 500, "{}", flows.len());
        let mut last = vec![None; 100];
        for flow in &flows {
            assert!(spec.start <= flow.start && flow.start < spec.end);
            let user = flow.waiter.unwrap() as usize;
            assert_eq!((flow.src, flow.dst), pairs[user / 50]);
            let before = last[user].replace(flow.start);
            assert!(before.is_none_or(|before| flow.start >= before + takes), "user {user}");
        }
    }

    #[test]
    fn a_slower_network_reduces_requests() {
        let (network, pairs) = pairs(2);
        let count =
            |takes| flows(&mut WebUsers::new(&network, spec(pairs.clone()), 1).unwrap(), Dur::from_ms(takes)).len();
        let (fast, slow) = (count(1), count(4_000));
        assert!(slow * 2 < fast, "{slow} and {fast}");
    }

    #[test]
    fn a_user_does_not_depend_on_the_delays_of_others() {
        let (network, pairs) = pairs(1);
        let [mut alone, mut beside] = [1, 2].map(|users_per_pair| {
            let spec = WebUsersSpec { users_per_pair, ..spec(pairs.clone()) };
            WebUsers::new(&network, spec, 4).unwrap()
        });
        let _ = beside.follow(1, Time::from_ns(5));
        let now = Time::ZERO + Dur::from_secs(2);
        for _ in 0..10 {
            assert_eq!(alone.follow(0, now), beside.follow(0, now));
        }
    }

    #[test]
    fn invalid_workloads_are_refused() {
        let (network, pairs) = pairs(1);
        let good = spec(pairs);
        let refuse = |spec: WebUsersSpec| WebUsers::new(&network, spec, 1).unwrap_err().to_string();
        let backwards = WebUsersSpec { end: good.start, ..good.clone() };
        assert_eq!(refuse(backwards), "the workload ends at 1s; allowed: after its start at 1s");
        let none = WebUsersSpec { users_per_pair: 0, ..good.clone() };
        assert_eq!(refuse(none), "0 users; allowed: 1 to 10000000 in all");
        let itself = WebUsersSpec { pairs: vec![(good.pairs[0].0, good.pairs[0].0)], ..good };
        assert_eq!(refuse(itself), "src and dst are both `server0`; allowed: two different hosts");
    }
}
