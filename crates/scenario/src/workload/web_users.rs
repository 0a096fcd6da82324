//! `kind = "web-users"`: users who fetch pages in a closed loop.

use super::{Reader, Workload, at, host_pair};
use crate::error::ScenarioError;
use crate::field::Field;
use crate::keys::{Fallback, Key, Kind, MAX_DURATION, MAX_FLOW_BYTES, Variant};
use crate::volume::max_flow_bytes;
use sparelane_core::Dur;
use sparelane_sim::NodeId;
use sparelane_sim::workload::{BodyAndTail, MAX_WEB_USERS, Surge, WebUsersSpec};

const HOSTS: Kind = Kind::Special("a list of hosts, as in [\"h1\", \"h2\"]");
const ALPHA: Kind = Kind::Positive { max: 100.0 };

/// A number of SURGE's.
const fn surge(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key::new(name, kind, Fallback::Value(default), meaning).from("SIGMETRICS 1998 (SURGE), unverified")
}

/// This form of `[[workload]]`.
pub const WEB_USERS: Variant = Variant {
    name: "web-users",
    summary: "users who ask for the next object of a page when they have the last, and pause between pages; each object is a \
              flow of its own, as with HTTP/1.0",
    source: "Barford and Crovella, SIGMETRICS 1998 (SURGE)",
    keys: &[
        Key::new(
            "pairs",
            Kind::Special("a list such as [[\"server1\", \"client1\"]]"),
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
};

impl Reader<'_> {
    pub(super) fn web_users(&self) -> Result<Workload, ScenarioError> {
        let section = self.section;
        let (start, end) = self.period()?;
        let pairs = self.served()?;
        let users = section.need("users")?;
        let users_per_pair = users.whole()?;
        if users_per_pair.saturating_mul(pairs.len() as u64) > MAX_WEB_USERS {
            let message = format!("for each of {} pairs; allowed: {MAX_WEB_USERS} in all", pairs.len());
            return Err(users.error(message));
        }
        Ok(Workload::WebUsers(WebUsersSpec {
            pairs,
            users_per_pair: users_per_pair as u32,
            surge: self.surge()?,
            start: at(start),
            end: at(end),
            scheme: self.scheme,
            number: self.number,
        }))
    }

    /// Who serves whom.
    fn served(&self) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
        let section = self.section;
        let (servers, clients) = (section.given("servers"), section.given("clients"));
        let Some(list) = section.given("pairs") else {
            let missing =
                || section.missing_of("pairs", "a list such as [[\"server1\", \"client1\"]], or servers and clients");
            let (Some(servers), Some(clients)) = (self.hosts("servers")?, self.hosts("clients")?) else {
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
        let pairs = list.list(Kind::Special("a server and its client, as in [\"server1\", \"client1\"]"))?;
        let pairs: Vec<_> =
            pairs.iter().map(|field| host_pair(field, self.context.network)).collect::<Result<_, _>>()?;
        if pairs.is_empty() { Err(list.error("no pair; allowed: at least one")) } else { Ok(pairs) }
    }

    fn surge(&self) -> Result<Surge, ScenarioError> {
        let section = self.section;
        let positive = |name: &str| section.need(name)?.positive();
        let tail_from_bytes = section.need("tail_from")?.size()?;
        let largest = section.need("largest_file")?;
        let (largest_bytes, most) = (largest.size()?, max_flow_bytes(self.mss_bytes()));
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
