//! `[[link]]`: settings of selected cables, which override those of the topology.

use crate::effects::{self, EFFECTS};
use crate::queues::read_limit;
use crate::schemes::Schemes;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::nodes;
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_catalogue::schema::{Field, Section, Source};
use sparelane_catalogue::trace;
use sparelane_sim::{Loss, Network, NodeId, NodeKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The ends whose directions a key applies to.
pub const SENDING_END: Kind = Kind::Special(
    "with between, one of the two nodes; with select = \"access\", \"hosts\" or \"routers\"",
    &Shape::Of(Kind::Text),
);

/// The key that names one cable; see [`selected`].
pub const BETWEEN: Key = Key::new(
    "between",
    Kind::Special("the two nodes that a cable joins, as in [\"r0\", \"r1\"]", &Shape::Pair(&Shape::Of(Kind::Node))),
    Fallback::Nothing("as select says"),
    "the cable to change",
);

/// The key that names several cables; see [`selected`].
pub const SELECT: Key = Key::new(
    "select",
    Kind::Choice(&["core", "access", "all"]),
    Fallback::Nothing("as between says"),
    "the cables to change: those between routers, those of hosts, or all",
);

/// The keys of `[[link]]`.
pub static LINK: &[&[Key]] = &[WIRE, EFFECTS];

/// The keys of `[[link]]` without those of effects.
static WIRE: &[Key] = &[
    BETWEEN,
    SELECT,
    Key::new("rate", Kind::Rate, Fallback::Nothing("as in the topology"), "rate of each direction"),
    Key::new(
        "rate_from",
        SENDING_END,
        Fallback::Nothing("both directions"),
        "the sending ends whose direction gets the rate; the other direction stays as it was",
    ),
    Key::new(
        "trace",
        Kind::Path,
        Fallback::Nothing("a constant rate"),
        "file of the service over time: milliseconds at which 1500 bytes can leave, or CSV of times and rates",
    )
    .from("Mahimahi (Netravali et al., USENIX ATC 2015)"),
    Key::new(
        "trace_from",
        SENDING_END,
        Fallback::Nothing("both directions"),
        "the sending ends whose direction follows the trace; the other direction keeps its rate",
    ),
    Key::new("delay", Kind::DELAY, Fallback::Nothing("as in the topology"), "propagation delay, one way"),
    Key::new("limit", Kind::Limit, Fallback::Nothing("as in [queue] or [nic]"), "output queue of each direction"),
    Key::new(
        "loss",
        Kind::Share { max: 1.0 },
        Fallback::Nothing("as in the topology, mostly 0"),
        "probability that a packet is lost on the wire, each direction",
    ),
    Key::new(
        "loss_from",
        SENDING_END,
        Fallback::Nothing("both directions"),
        "the sending ends whose direction gets the loss; the other direction stays as it was",
    ),
    Key::new("loss_of", Kind::Choice(&["all", "data"]), Fallback::Value("all"), "which packets are lost"),
    Key::new(
        "pause",
        Kind::Special("a table such as { xoff = \"300packets\", xon = \"200packets\" }", &Shape::Table("pause")),
        Fallback::Nothing("no flow control"),
        "PAUSE: a router at either end pauses the other end while one of its output queues is long",
    )
    .from("IEEE 802.3x"),
    Key::new(
        "pfc",
        Kind::Special("a table such as { xoff = \"100kB\" }", &Shape::Table("pfc")),
        Fallback::Nothing("no flow control"),
        "priority-based flow control: a router at either end pauses a class while many bytes wait that came over the link",
    )
    .from("IEEE 802.1Qbb"),
];

/// Applies rates, traces, delays and losses. This comes first, because the meaning of `"1bdp"` depends on them.
pub fn apply_wires(fields: &[Field<'_>], source: &Source, network: &mut Network) -> Result<(), ScenarioError> {
    for field in fields {
        let section = field.clone().section(LINK)?;
        let cables = selected(&section, network)?;
        let (rate, delay) = (section.maybe("rate", Field::rate)?, section.maybe("delay", Field::time)?);
        let loss = read_loss(&section, &["loss_from", "loss_of"])?;
        let trace = section.maybe("trace", |field| trace::read(field, source))?;
        effects::apply(&section, &cables, network)?;
        let given = |key| section.given(key).is_some();
        let is_given = ["rate", "trace", "delay", "limit", "loss", "pause", "pfc"].into_iter().any(given);
        if !is_given && !effects::are_given(&section) {
            return Err(field.error(format!(
                "changes nothing; allowed: rate, trace, delay, limit, loss, pause, pfc, {}",
                effects::DETAILS.map(|(key, _)| key).join(", ")
            )));
        }
        if let (Some(_), Some(field)) = (&trace, section.given("rate")) {
            return Err(field.error("a trace is also given; allowed: one of the two"));
        }
        let trace_from = section.maybe("trace_from", |field| directions(field, &section, &cables, network))?;
        if let (Some(_), None) = (&trace_from, &trace) {
            let field = section.need("trace_from")?;
            return Err(field.error("without trace; allowed: together with trace"));
        }
        let rate_from = section.maybe("rate_from", |field| directions(field, &section, &cables, network))?;
        if let (Some(_), None) = (&rate_from, rate) {
            let field = section.need("rate_from")?;
            return Err(field.error("without rate; allowed: together with rate"));
        }
        let loss_from = section.maybe("loss_from", |field| directions(field, &section, &cables, network))?;
        for (place, &index) in cables.iter().enumerate() {
            let cable = &mut network.cables[index];
            if let Some(trace) = &trace {
                let only = trace_from.as_ref().map(|directions| directions[place]);
                for way in (0..2).filter(|&way| only.is_none_or(|only| only == way)) {
                    (cable.rates[way], cable.traces[way]) = (trace.mean(), Some(Arc::clone(trace)));
                }
            }
            if let Some(rate) = rate {
                let only = rate_from.as_ref().map(|directions| directions[place]);
                if (0..2).any(|way| only.is_none_or(|only| only == way) && cable.traces[way].is_some()) {
                    let message = "a table above gives this link a trace; allowed: one of the two";
                    return Err(section.need("rate")?.error(message));
                }
                set(&mut cable.rates, rate, rate_from.as_ref().map(|directions| directions[place]));
            }
            if let Some(loss) = loss {
                set(&mut cable.loss, loss, loss_from.as_ref().map(|directions| directions[place]));
            }
            cable.delay = delay.unwrap_or(cable.delay);
        }
    }
    Ok(())
}

/// The loss that a table sets, if it sets one. `details` are the keys that need a loss.
pub fn read_loss(section: &Section<'_>, details: &[&str]) -> Result<Option<Loss>, ScenarioError> {
    let Some(probability) = section.maybe("loss", Field::share)? else {
        return match details.iter().find_map(|key| section.given(key)) {
            Some(field) => Err(field.error("without loss; allowed: together with loss")),
            None => Ok(None),
        };
    };
    Ok(Some(Loss { probability, data_only: section.need("loss_of")?.choice()? == "data" }))
}

/// Sets one direction of a cable, or both for `None`.
fn set<T: Copy>(both: &mut [T; 2], value: T, direction: Option<usize>) {
    match direction {
        Some(direction) => both[direction] = value,
        None => *both = [value; 2],
    }
}

/// The direction of each of `cables` in which the end that `field` names sends.
pub fn directions(
    field: &Field<'_>,
    section: &Section<'_>,
    cables: &[usize],
    network: &Network,
) -> Result<Vec<usize>, ScenarioError> {
    let ends = cables.iter().map(|&index| &network.cables[index]);
    if section.given("between").is_some() {
        let from = nodes::node(field, network)?;
        let names = || ends.clone().flat_map(|cable| [cable.a, cable.b]).map(|end| &*network.nodes[end.index()].name);
        return match ends.clone().next() {
            Some(cable) if [cable.a, cable.b].contains(&from) => Ok(vec![cable.direction_from(from)]),
            _ => Err(field.error(format!("no end of this cable; allowed: {}", nodes::listed(names())))),
        };
    }
    let wanted = match field.text()? {
        "hosts" => NodeKind::Host,
        "routers" => NodeKind::Router,
        _ => return Err(field.error("select names several cables; allowed: hosts, routers")),
    };
    let kind = |end: NodeId| network.nodes[end.index()].kind;
    ends.map(|cable| match [kind(cable.a), kind(cable.b)] {
        [a, b] if a != b => Ok(cable.direction_from(if a == wanted { cable.a } else { cable.b })),
        _ => {
            Err(field
                .error("some of these cables do not connect a host to a router; allowed: with select = \"access\""))
        }
    })
    .collect()
}

/// Applies queue limits, once the bandwidth-delay product and packet sizes are known. Returns, for each cable, the
/// index among `fields` of the override that sets its limit.
pub fn apply_limits(
    fields: &[Field<'_>],
    network: &mut Network,
    schemes: &Schemes,
    bdp: u64,
) -> Result<Vec<Option<usize>>, ScenarioError> {
    let mut origins = vec![None; network.cables.len()];
    for (place, field) in fields.iter().enumerate() {
        let section = field.clone().section(LINK)?;
        let Some(limit) = section.maybe("limit", |field| read_limit(field, schemes, bdp))? else { continue };
        for index in selected(&section, network)? {
            network.cables[index].limit = Some(limit);
            origins[index] = Some(place);
        }
    }
    Ok(origins)
}

/// The rates, delays, losses, effects and PAUSE among `fields` that later overrides replace for each of their cables and directions:
/// the index of the override, and the key.
pub fn overridden(fields: &[Field<'_>], network: &Network) -> Result<Vec<(usize, &'static str)>, ScenarioError> {
    let mut found = Vec::new();
    for (key, from) in [
        ("rate", Some("rate_from")),
        ("trace", Some("trace_from")),
        ("loss", Some("loss_from")),
        ("delay", None),
        ("pause", None),
        ("pfc", None),
    ]
    .into_iter()
    .chain(effects::DETAILS.map(|(key, _)| (key, Some("effects_from"))))
    {
        let mut last = BTreeMap::new();
        let mut given = BTreeSet::new();
        for (place, field) in fields.iter().enumerate() {
            let section = field.clone().section(LINK)?;
            // A trace replaces the rate.
            let is_replaced = key == "rate" && section.given("trace").is_some();
            if section.given(key).is_none() && !is_replaced {
                continue;
            }
            if !is_replaced {
                given.insert(place);
            }
            let from = if is_replaced { Some("trace_from") } else { from };
            let cables = selected(&section, network)?;
            let only = match from {
                Some(from) => section.maybe(from, |field| directions(field, &section, &cables, network))?,
                None => None,
            };
            for (number, &cable) in cables.iter().enumerate() {
                let own = only.as_ref().map_or([true; 2], |only| [only[number] == 0, only[number] == 1]);
                last.extend([0, 1].into_iter().filter(|&way| own[way]).map(|way| ((cable, way), place)));
            }
        }
        let deciding: BTreeSet<usize> = last.into_values().collect();
        found.extend(given.difference(&deciding).map(|&place| (place, key)));
    }
    Ok(found)
}

/// The cables that an override selects, at least one.
pub fn selected(section: &Section<'_>, network: &Network) -> Result<Vec<usize>, ScenarioError> {
    match (section.given("between"), section.given("select")) {
        (Some(between), None) => {
            let [from, to] = nodes::pair(&between)?;
            Ok(vec![nodes::cable(&from, &to, network)?.0])
        }
        (None, Some(select)) => {
            let word = select.choice()?;
            let hosts = |index: &usize| {
                let cable = &network.cables[*index];
                [cable.a, cable.b].iter().any(|end| network.nodes[end.index()].kind == NodeKind::Host)
            };
            let chosen = |index: &usize| word == "all" || (word == "access") == hosts(index);
            let cables: Vec<_> = (0..network.cables.len()).filter(chosen).collect();
            if cables.is_empty() { Err(select.error("there is no such cable in this topology")) } else { Ok(cables) }
        }
        (Some(_), Some(select)) => Err(select.error("between is also given; allowed: one of the two")),
        (None, None) => Err(section.whole_table().error("names no cable; allowed: between or select")),
    }
}
