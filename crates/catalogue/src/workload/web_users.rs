//! Users of the web, in a closed loop: what a user asks for next waits until the last object is there.
//!
//! A user sits at a client and asks its server for a page: a base object, then the embedded ones, one after another, with
//! a short pause before each, and a long pause after the page. Each object is a flow of its own from server to client, as
//! with HTTP/1.0 without parallel connections. Pages and pauses are SURGE's (`surge.rs`).
//!
//! The request itself is not sent: the flow opens at the server when the user asks. Users are there from the start on, each at
//! a random moment of its life, so that they are not in step and the load is what it stays.

use super::{BodyAndTail, Reader, Workload, WorkloadForm, at, host_pair};
use crate::schema::{
    Fallback, Field, Form, Key, Kind, MAX_DURATION, MAX_FLOW_BYTES, ScenarioError, Shape, volume::max_flow_bytes,
};
use crate::workload::Demand;
use crate::workload::ends::check;
use crate::workload::streams::stream;
use crate::workload::surge::Habits;
use crate::workload::{Surge, WorkloadError};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_sim::{FlowSource, FlowSpec};
use sparelane_sim::{Network, NodeId};
use std::collections::VecDeque;
use std::sync::Arc;

const HOSTS: Kind = Kind::Special("a list of hosts, as in [\"h1\", \"h2\"]", &Shape::List(&Shape::Of(Kind::Node)));
const ALPHA: Kind = Kind::Positive { max: 100.0 };

/// A number of SURGE's.
const fn surge(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key::new(name, kind, Fallback::Value(default), meaning).from("SIGMETRICS 1998 (SURGE), unverified")
}

/// What a scenario can say of it.
pub static FORM: WorkloadForm = Form {
    name: "web-users",
    summary: "users who ask for the next object of a page when they have the last, and pause between pages; each object is a \
              flow of its own, as with HTTP/1.0",
    source: "Barford and Crovella, SIGMETRICS 1998 (SURGE)",
    keys: &[
        Key::new(
            "pairs",
            Kind::Special(
                "a list such as [[\"server1\", \"client1\"]]",
                &Shape::List(&Shape::Pair(&Shape::Of(Kind::Node))),
            ),
            Fallback::Nothing("as servers and clients say"),
            "servers, each with the client whose users it serves",
        ),
        Key::new("servers", HOSTS, Fallback::Nothing("as pairs says"), "in place of pairs: the server of each client"),
        Key::new("clients", HOSTS, Fallback::Nothing("as pairs says"), "in place of pairs: as many as servers"),
        Key::new(
            "users",
            Kind::Whole { min: 1, max: MAX_WEB_USERS },
            Fallback::Required,
            "how many are at the client of each pair, each at a random moment of its life when the workload starts",
        ),
        Key::new(
            "largest_file",
            Kind::Size { min: 1, max: MAX_FLOW_BYTES },
            Fallback::Required,
            "what is drawn larger is cut down to this; the load depends on it, as the tail has hardly a mean",
        ),
        surge(
            "body_mu",
            Kind::Positive { max: 34.0 },
            "9.357",
            "mean of the logarithm of most files' bytes (log-normal)",
        ),
        surge("body_sigma", Kind::Positive { max: 10.0 }, "1.318", "its standard deviation"),
        surge("tail_share", Kind::Share { max: 1.0 }, "0.07", "the share of the files in the tail (Pareto)"),
        surge("tail_from", Kind::Size { min: 1, max: MAX_FLOW_BYTES }, "133000B", "the smallest of these"),
        surge("tail_alpha", ALPHA, "1.1", "the tail's exponent"),
        surge(
            "embedded_least",
            Kind::Positive { max: 1e6 },
            "1.0",
            "least number of embedded objects in a page (Pareto)",
        ),
        surge("embedded_alpha", ALPHA, "2.43", "its exponent, above 1; numbers are rounded at random"),
        surge("active_off_scale", Kind::MOMENT, "382ms", "scale of the pause between objects of a page (Weibull)"),
        surge("active_off_shape", ALPHA, "1.46", "its shape"),
        surge("inactive_off_least", Kind::MOMENT, "1s", "the shortest pause after a page (Pareto)"),
        surge("inactive_off_alpha", ALPHA, "1.5", "its exponent, above 1"),
        Key::new("start", Kind::MOMENT, Fallback::Value("0s"), "from when on users are there"),
        Key::new(
            "end",
            Kind::Time { min: Dur::from_ps(1), max: MAX_DURATION },
            Fallback::Nothing("the end of the run"),
            "no user asks for an object at this time or later",
        ),
    ],
    read: &read,
};

fn read(reader: &Reader<'_>) -> Result<Arc<dyn Workload>, ScenarioError> {
    let section = reader.section;
    let (start, end) = reader.period()?;
    let pairs = served(reader)?;
    let users = section.need("users")?;
    let users_per_pair = users.whole()?;
    if users_per_pair.saturating_mul(pairs.len() as u64) > MAX_WEB_USERS {
        let message = format!("for each of {} pairs; allowed: {MAX_WEB_USERS} in all", pairs.len());
        return Err(users.error(message));
    }
    Ok(Arc::new(WebUsersSpec {
        pairs,
        users_per_pair: users_per_pair as u32,
        surge: habits(reader)?,
        start: at(start),
        end: at(end),
        scheme: reader.scheme,
        number: reader.number,
    }))
}

/// Who serves whom.
fn served(reader: &Reader<'_>) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
    let section = reader.section;
    let (servers, clients) = (section.given("servers"), section.given("clients"));
    let Some(list) = section.given("pairs") else {
        let missing =
            || section.missing_of("pairs", "a list such as [[\"server1\", \"client1\"]], or servers and clients");
        let (Some(servers), Some(clients)) = (reader.hosts("servers")?, reader.hosts("clients")?) else {
            return Err(match servers.or(clients) {
                Some(field) => field.error("the other end is missing; allowed: servers and clients, or pairs"),
                None => missing(),
            });
        };
        return zip(&section.need("clients")?, &servers, &clients);
    };
    if let Some(field) = servers.or(clients) {
        return Err(field.error("pairs is given too; allowed: pairs, or servers and clients"));
    }
    let pairs = list.list(Kind::Special(
        "a server and its client, as in [\"server1\", \"client1\"]",
        &Shape::Pair(&Shape::Of(Kind::Node)),
    ))?;
    let pairs: Vec<_> = pairs.iter().map(|field| host_pair(field, reader.context.network)).collect::<Result<_, _>>()?;
    if pairs.is_empty() { Err(list.error("no pair; allowed: at least one")) } else { Ok(pairs) }
}

fn habits(reader: &Reader<'_>) -> Result<Surge, ScenarioError> {
    let section = reader.section;
    let positive = |name: &str| section.need(name)?.positive();
    let tail_from_bytes = section.need("tail_from")?.size()?;
    let largest = section.need("largest_file")?;
    let (largest_bytes, most) = (largest.size()?, max_flow_bytes(reader.mss_bytes()));
    if largest_bytes < tail_from_bytes {
        return Err(largest.error(format!("below tail_from; allowed: {tail_from_bytes}B or more")));
    }
    if largest_bytes > most {
        return Err(largest.error(format!("more segments than have numbers; allowed: up to {most}B")));
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

/// Servers and clients, side by side.
fn zip(field: &Field<'_>, servers: &[NodeId], clients: &[NodeId]) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
    if servers.len() != clients.len() {
        return Err(field.error(format!("{} clients for {} servers; allowed: as many", clients.len(), servers.len())));
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

/// The exponent of a Pareto that has a mean.
fn with_a_mean(field: &Field<'_>) -> Result<f64, ScenarioError> {
    match field.positive()? {
        alpha if alpha > 1.0 => Ok(alpha),
        _ => Err(field.error("such a Pareto has no mean; allowed: a number above 1, up to 100")),
    }
}

/// The most users of one workload.
pub const MAX_WEB_USERS: u64 = 10_000_000;

/// What a [`WebUsers`] workload is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct WebUsersSpec {
    /// Servers and their clients.
    pub pairs: Vec<(NodeId, NodeId)>,
    /// Users at the client of each pair.
    pub users_per_pair: u32,
    /// What users do.
    pub surge: Surge,
    /// From when on users are there.
    pub start: Time,
    /// No user asks for an object at this time or later.
    pub end: Time,
    /// The flows' scheme, by its index in the run.
    pub scheme: u16,
    /// The workload's number in its run; see [`PoissonSpec::number`](crate::workload::PoissonSpec::number).
    pub number: u32,
}

/// The users, and what they ask for.
#[derive(Clone, Debug)]
pub struct WebUsers {
    users: Vec<User>,
    /// When users ask for the first time, in order.
    first: VecDeque<(Time, u32)>,
    pairs: Vec<(NodeId, NodeId)>,
    habits: Habits,
    end: Time,
    scheme: u16,
}

/// One user.
#[derive(Clone, Debug)]
struct User {
    pauses: Stream,
    sizes: Stream,
    pair: u32,
    /// Embedded objects of the page that are left after the one asked for, or about to be.
    left: u32,
}

impl WebUsers {
    /// The workload that `spec` describes in `network`, under `seed`.
    ///
    /// # Errors
    /// No pairs, a pair of nodes that no flow can join, no users or too many, a number of SURGE's out of bounds, or an end that is
    /// not after the start.
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
        let habits = Habits::new(spec.surge)?;
        let user = |number: u32| User {
            pauses: stream(seed, Domain::Arrivals, spec.number, number),
            sizes: stream(seed, Domain::Sizes, spec.number, number),
            pair: number / spec.users_per_pair,
            left: 0,
        };
        let mut users: Vec<_> = (0..count as u32).map(user).collect();
        let mut first = Vec::with_capacity(users.len());
        for (user, number) in users.iter_mut().zip(0..) {
            let (pause, left) = habits.at_random(&mut user.pauses);
            user.left = left;
            first.push((spec.start.saturating_add(pause), number));
        }
        first.retain(|&(start, _)| start < spec.end);
        first.sort_unstable();
        Ok(WebUsers { users, first: first.into(), pairs: spec.pairs, habits, end: spec.end, scheme: spec.scheme })
    }

    /// The object that `number` asks for at `start`.
    fn object(&mut self, number: u32, start: Time) -> FlowSpec {
        let user = &mut self.users[number as usize];
        let (server, client) = self.pairs[user.pair as usize];
        let size_bytes = self.habits.size_bytes(&mut user.sizes);
        let flow = FlowSpec::new(start, server, client, Some(size_bytes), self.scheme);
        FlowSpec { waiter: Some(u64::from(number)), ..flow }
    }
}

impl FlowSource for WebUsers {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let (start, number) = self.first.pop_front()?;
        Some(self.object(number, start))
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Option<FlowSpec> {
        let user = &mut self.users[waiter as usize];
        let pause = if user.left > 0 {
            user.left -= 1;
            self.habits.active_off(&mut user.pauses)
        } else {
            let pause = self.habits.inactive_off(&mut user.pauses);
            user.left = self.habits.embedded(&mut user.pauses);
            pause
        };
        let start = now.saturating_add(pause);
        (start < self.end).then(|| self.object(waiter as u32, start))
    }
}

impl Workload for WebUsersSpec {
    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(WebUsers::new(network, self.clone(), seed)?))
    }

    fn demand(&self, _network: &Network, duration: Dur) -> Demand {
        // A user asks for an object every second or two, and waits for it.
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

    /// Flows that take so long each, in order of their start.
    fn flows(source: &mut WebUsers, takes: Dur) -> Vec<FlowSpec> {
        let mut flows: Vec<_> = std::iter::from_fn(|| source.next_flow()).collect();
        assert!(flows.is_sorted_by_key(|flow| flow.start));
        let mut place = 0;
        while let Some(&flow) = flows.get(place) {
            flows.extend(flow.waiter.and_then(|waiter| source.follow(waiter, flow.start + takes)));
            place += 1;
        }
        flows
    }

    #[test]
    fn a_user_asks_for_one_object_at_a_time_and_only_between_start_and_end() {
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
    fn a_slower_network_makes_users_ask_less() {
        let (network, pairs) = pairs(2);
        let count =
            |takes| flows(&mut WebUsers::new(&network, spec(pairs.clone()), 1).unwrap(), Dur::from_ms(takes)).len();
        let (fast, slow) = (count(1), count(4_000));
        assert!(slow * 2 < fast, "{slow} and {fast}");
    }

    #[test]
    fn what_one_user_does_does_not_depend_on_how_long_others_wait() {
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
    fn mistakes_are_told() {
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
