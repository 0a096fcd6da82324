//! `[[queue_at]]`: routers, or single output queues of routers, whose queues differ from `[queue]`.

use crate::queues::{QUEUE_KEYS, Queues, check_mark, most_bytes, read_differing};
use crate::schemes::Schemes;
use sparelane_catalogue::queue::Queues as Kinds;
use sparelane_catalogue::schema::nodes;
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_catalogue::schema::{Field, Section};
use sparelane_catalogue::schema::{ScenarioError, did_you_mean};
use sparelane_core::{Domain, Stream};
use sparelane_sim::{Limit, Network, NodeId, NodeKind, QueueAt, QueueSpec};
use std::collections::BTreeSet;

/// The keys of `[[queue_at]]` that select queues; the keys of `[queue]` are added.
pub static QUEUE_AT: &[Key] = &[
    Key::new(
        "routers",
        Kind::Special("a list of routers, as in [\"r1\", \"r4\"]", &Shape::List(&Shape::Of(Kind::Node))),
        Fallback::Nothing("as share says"),
        "the routers whose output queues differ; the last table that selects a queue wins",
    ),
    Key::new(
        "between",
        Kind::Special("the two nodes that a cable joins, as in [\"r0\", \"r1\"]", &Shape::Pair(&Shape::Of(Kind::Node))),
        Fallback::Nothing("as routers says"),
        "the cable whose output queues differ: those of the routers at its ends",
    ),
    Key::new(
        "from",
        Kind::Node,
        Fallback::Nothing("both ends"),
        "the router that sends: its queue on this cable alone",
    ),
    Key::new(
        "share",
        Kind::Share { max: 1.0 },
        Fallback::Nothing("as routers says"),
        "the share of queues, drawn with the seed and rounded to a whole number; a larger share contains a smaller one",
    ),
    Key::new(
        "of",
        Kind::Choice(&["routers", "queues"]),
        Fallback::Value("routers"),
        "the set that share refers to: routers, each with all its output queues, or single output queues of all routers",
    ),
];

/// Output queues that differ.
#[derive(Clone, Debug)]
pub struct Differing {
    place: Place,
    /// The index among the tables, which selects the random stream of a share.
    number: u64,
    queue: QueueSpec,
    /// True if the table sets the limit; otherwise a cable's limit takes precedence.
    limits: bool,
}

#[derive(Clone, Debug)]
enum Place {
    Ports(Vec<(usize, NodeId)>),
    Routers(BTreeSet<NodeId>),
    ShareOfRouters(f64),
    ShareOfQueues(f64),
}

/// Reads one `[[queue_at]]` table. The limits of cables must be set.
pub fn read(
    field: &Field<'_>,
    number: u64,
    (queues, table): (&Queues, &Section<'_>),
    kinds: &Kinds,
    network: &Network,
    schemes: &Schemes,
    bdp: u64,
) -> Result<Differing, ScenarioError> {
    let section = field.clone().section(&[QUEUE_AT, QUEUE_KEYS, &kinds.all_keys()])?;
    let place = place(&section, network)?;
    let laws = kinds.all_keys();
    let keys = || QUEUE_KEYS.iter().chain(&laws);
    if keys().all(|key| section.given(key.name).is_none()) {
        let allowed = keys().map(|key| key.name).collect::<Vec<_>>().join(", ");
        return Err(field.error(format!("changes nothing; allowed: {allowed}")));
    }
    let queue = read_differing(&section, (&queues.router, Some(table)), kinds, schemes, bdp)?;
    let limits = section.given("limit").is_some();
    let differing = Differing { place, number, queue, limits };
    differing.check_marks(field, network, schemes)?;
    Ok(differing)
}

fn place(section: &Section<'_>, network: &Network) -> Result<Place, ScenarioError> {
    if let (None, Some(from)) = (section.given("between"), section.given("from")) {
        return Err(from.error("without between; allowed: together with between"));
    }
    if let Some(between) = section.given("between") {
        if let Some(other) = ["routers", "share", "of"].into_iter().find_map(|key| section.given(key)) {
            return Err(other.error("between is also given; allowed: one of the two"));
        }
        return ports(&between, section, network).map(Place::Ports);
    }
    match (section.given("routers"), section.given("share")) {
        (Some(_), Some(share)) => Err(share.error("routers is also given; allowed: one of the two")),
        (None, None) => Err(section.whole_table().error("names no queue; allowed: routers, between or share")),
        (Some(list), None) => match section.given("of") {
            Some(of) => Err(of.error("without share; allowed: together with share")),
            None => Ok(Place::Routers(routers(&list, network)?)),
        },
        (None, Some(share)) => {
            let (number, all) = (share.share()?, all_queues(network));
            let of = section.need("of")?;
            let (place, count) = match of.choice()? {
                "queues" => (Place::ShareOfQueues(number), all.len()),
                _ => (Place::ShareOfRouters(number), all_routers(network).len()),
            };
            if number > 0.0 && part(number, count) == 0 {
                return Err(share.error(format!("of {count}, this rounds to none; allowed: 0, or more")));
            }
            Ok(place)
        }
    }
}

/// The output queues of routers on the cable that `between` names.
fn ports(between: &Field<'_>, section: &Section<'_>, network: &Network) -> Result<Vec<(usize, NodeId)>, ScenarioError> {
    let [one, other] = nodes::pair(between)?;
    let (cable, ..) = nodes::cable(&one, &other, network)?;
    let is_router = |end: &NodeId| network.nodes[end.index()].kind == NodeKind::Router;
    let ends = [network.cables[cable].a, network.cables[cable].b];
    let routers: Vec<_> = ends.into_iter().filter(is_router).collect();
    let only = section.maybe("from", |field| nodes::node(field, network))?;
    if let Some(only) = only.filter(|only| !routers.contains(only)) {
        let names = routers.iter().map(|id| network.nodes[id.index()].name.as_str());
        let what = if ends.contains(&only) { "a host" } else { "no end of this cable" };
        return Err(section.need("from")?.error(format!("{what}; allowed: {}", nodes::listed(names))));
    }
    Ok(routers.into_iter().filter(|end| only.is_none_or(|only| only == *end)).map(|from| (cable, from)).collect())
}

fn routers(list: &Field<'_>, network: &Network) -> Result<BTreeSet<NodeId>, ScenarioError> {
    let mut routers = BTreeSet::new();
    for field in list.list(Kind::Node)? {
        let name = field.text()?;
        let all = all_routers(network);
        let names = || all.iter().map(|id| network.nodes[id.index()].name.as_str());
        let refuse = |what: &str, hint: String| {
            field.error(format!("{what}; allowed: the routers {}{hint}", nodes::listed(names())))
        };
        let id = match network.find(name) {
            None => return Err(refuse("no such router", did_you_mean(name, names()))),
            Some(id) if network.nodes[id.index()].kind == NodeKind::Host => {
                return Err(refuse("a host", String::new()));
            }
            Some(id) => id,
        };
        if !routers.insert(id) {
            return Err(field.error("listed twice; allowed: each router once"));
        }
    }
    if routers.is_empty() { Err(list.error("no router; allowed: at least one")) } else { Ok(routers) }
}

impl Differing {
    /// The queues that the table selects under `seed`.
    pub fn queues(&self, network: &Network, seed: u64) -> Vec<QueueAt> {
        let at = |(cable, from)| QueueAt { cable, from, queue: self.queue_of(network.cables[cable].limit) };
        self.places(network, seed).into_iter().map(at).collect()
    }

    /// The places that the table selects under `seed`: the index of a cable, and the router that sends.
    pub fn places(&self, network: &Network, seed: u64) -> Vec<(usize, NodeId)> {
        let mut stream = Stream::new(seed, Domain::Queues, self.number);
        match &self.place {
            Place::Ports(ports) => ports.clone(),
            Place::Routers(routers) => of_routers(routers, network),
            Place::ShareOfRouters(share) => {
                of_routers(&drawn(all_routers(network), *share, &mut stream).into_iter().collect(), network)
            }
            Place::ShareOfQueues(share) => drawn(all_queues(network), *share, &mut stream),
        }
    }

    /// The settings of the queues, except for limits that cables set.
    pub fn queue(&self) -> &QueueSpec {
        &self.queue
    }

    /// Returns true if the table selects any queue. A share of 0 selects none.
    pub fn names_any(&self) -> bool {
        !matches!(self.place, Place::ShareOfRouters(share) | Place::ShareOfQueues(share) if share <= 0.0)
    }

    /// Returns true if the table sets the limit.
    pub fn has_limit(&self) -> bool {
        self.limits
    }

    fn queue_of(&self, cables_limit: Option<Limit>) -> QueueSpec {
        let limit = if self.limits { self.queue.limit } else { cables_limit.unwrap_or(self.queue.limit) };
        QueueSpec { limit, ..self.queue.clone() }
    }

    /// Checks that no queue is too short to mark, whatever the random selection.
    fn check_marks(&self, field: &Field<'_>, network: &Network, schemes: &Schemes) -> Result<(), ScenarioError> {
        let candidates = match &self.place {
            Place::Ports(ports) => ports.clone(),
            Place::Routers(routers) => of_routers(routers, network),
            _ => all_queues(network),
        };
        for (cable, from) in candidates {
            let queue = self.queue_of(network.cables[cable].limit);
            if !check_mark(&queue, schemes) {
                let (near, held) = (&network.nodes[from.index()].name, most_bytes(queue.limit, schemes));
                let message =
                    format!("an output queue of \"{near}\" holds {held}B, less than mark_at, and would never mark");
                return Err(field.error(message));
            }
        }
        Ok(())
    }
}

fn all_routers(network: &Network) -> Vec<NodeId> {
    let ids = (0..network.nodes.len() as u32).map(NodeId);
    ids.filter(|id| network.nodes[id.index()].kind == NodeKind::Router).collect()
}

/// All output queues of routers: the index of a cable, and the router that sends.
fn all_queues(network: &Network) -> Vec<(usize, NodeId)> {
    of_routers(&all_routers(network).into_iter().collect(), network)
}

fn of_routers(routers: &BTreeSet<NodeId>, network: &Network) -> Vec<(usize, NodeId)> {
    let ends = network.cables.iter().enumerate().flat_map(|(cable, ends)| [(cable, ends.a), (cable, ends.b)]);
    ends.filter(|(_, from)| routers.contains(from)).collect()
}

/// The number of elements in a share of `count`.
fn part(share: f64, count: usize) -> usize {
    (share * count as f64).round() as usize
}

/// A random share of `all`: the start of a shuffle that does not depend on the share, so a larger share contains a
/// smaller one.
fn drawn<T>(mut all: Vec<T>, share: f64, stream: &mut Stream) -> Vec<T> {
    let count = part(share, all.len());
    for place in 0..count {
        let other = place as u64 + stream.below((all.len() - place) as u64);
        all.swap(place, other as usize);
    }
    all.truncate(count);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(share: f64, seed: u64) -> BTreeSet<u32> {
        drawn((0..50).collect(), share, &mut Stream::new(seed, Domain::Queues, 0)).into_iter().collect()
    }

    #[test]
    fn a_share_is_drawn_to_the_nearest_whole_number_and_grows_with_it() {
        let counts = [0.0, 0.011, 0.2, 0.5, 1.0].map(|share| draw(share, 3).len());
        assert_eq!(counts, [0, 1, 10, 25, 50]);
        assert!(draw(0.2, 3).is_subset(&draw(0.5, 3)));
        assert_eq!(draw(0.2, 3), draw(0.2, 3));
        assert_ne!(draw(0.2, 3), draw(0.2, 4));
    }

    #[test]
    fn every_element_is_as_likely() {
        let mut counts = [0_u32; 50];
        for seed in 0..5_000 {
            draw(0.2, seed).into_iter().for_each(|element| counts[element as usize] += 1);
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
