//! Users of the web, in a closed loop: what a user asks for next waits until the last object is there.
//!
//! A user sits at a client and asks its server for a page: a base object, then the embedded ones, one after another, with
//! a short pause before each, and a long pause after the page. Each object is a flow of its own from server to client, as
//! with HTTP/1.0 without parallel connections. Pages and pauses are SURGE's (`surge.rs`).
//!
//! The request itself is not sent: the flow opens at the server when the user asks. Users are there from the start on, each at
//! a random moment of its life, so that they are not in step and the load is what it stays.

use crate::flow::{FlowSource, FlowSpec};
use crate::network::{Network, NodeId};
use crate::workload::ends::check;
use crate::workload::streams::stream;
use crate::workload::surge::Habits;
use crate::workload::{Surge, WorkloadError};
use sparelane_core::{Domain, Stream, Time};
use std::collections::VecDeque;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NodeKind;
    use sparelane_core::{Dur, Rate};

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
