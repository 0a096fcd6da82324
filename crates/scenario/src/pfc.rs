//! `pfc` of `[[link]]`: priority-based flow control (IEEE 802.1Qbb).
//!
//! After a class of a cable has reached XOFF, packets arrive until the other end has stopped, as with PAUSE. The headroom
//! has room for them. By default, it is computed from the rates and the delay of the cable. A warning names a table whose
//! headroom is smaller.
//!
//! Pauses that wait for each other in a circle can last for ever. A warning names such a circle of cables, if the routes
//! of the run form one.

use crate::links::{LINK, selected};
use crate::warnings::Facts;
use sparelane_catalogue::queue::kind_of;
use sparelane_catalogue::schema::{Fallback, Field, Key, Kind, ScenarioError, Shape, Warnings};
use sparelane_sim::{Cable, FullInterface, Hop, Network, NodeId, NodeKind, PfcSpec, RouterPaths, Routing, Scheme};
use std::collections::{BTreeMap, BTreeSet};

/// The size of a frame, bytes.
const FRAME_BYTES: u64 = 64;

/// The most pairs of routers whose paths are searched for circles.
const MOST_PAIRS: usize = 100_000;

/// The number of classes.
const CLASSES: u64 = 8;

const SIZE: Kind = Kind::Size { min: 0, max: 1_000_000_000_000 };

/// The keys of `pfc = { .. }`.
pub static PFC: &[Key] = &[
    Key::new(
        "xoff",
        Kind::Size { min: 1, max: 1_000_000_000_000 },
        Fallback::Required,
        "waiting bytes of a class that came over the cable, from which on the class is paused there",
    ),
    Key::new(
        "xon",
        SIZE,
        Fallback::Nothing("two full packets below xoff"),
        "bytes down to which a pause lasts; below xoff",
    ),
    Key::new(
        "headroom",
        SIZE,
        Fallback::Nothing("computed from the rates and the delay of the cable"),
        "room of each class above xoff, for packets that arrive until the other end has stopped; more are dropped",
    ),
    Key::new(
        "classes",
        Kind::Special(
            "a list of classes, as in [0, 1]",
            &Shape::List(&Shape::Of(Kind::Whole { min: 0, max: CLASSES - 1 })),
        ),
        Fallback::Nothing("all classes"),
        "classes without drops; the queue's limit holds for the others",
    ),
];

/// Applies `pfc`. `largest_bytes` is the size of the largest packet.
pub fn apply(fields: &[Field<'_>], network: &mut Network, largest_bytes: u64) -> Result<(), ScenarioError> {
    for field in fields {
        let section = field.clone().section(LINK)?;
        let Some(table) = section.given("pfc") else { continue };
        let keys = table.section(&[PFC])?;
        let xoff = keys.need("xoff")?;
        let xoff_bytes = xoff.size()?;
        let xon_bytes = keys.maybe("xon", Field::size)?.unwrap_or(xoff_bytes.saturating_sub(2 * largest_bytes));
        if xon_bytes >= xoff_bytes {
            return Err(keys.given("xon").unwrap_or(xoff).error("xon is not below xoff; allowed: less than xoff"));
        }
        let headroom = keys.maybe("headroom", Field::size)?;
        let classes = match keys.given("classes") {
            None => u8::MAX,
            Some(field) => {
                let kind = Kind::Whole { min: 0, max: CLASSES - 1 };
                let classes = field.list(kind)?.iter().map(Field::whole).collect::<Result<BTreeSet<_>, _>>()?;
                if classes.is_empty() {
                    return Err(field.error("no class; allowed: one or more"));
                }
                classes.iter().map(|class| 1 << class).sum()
            }
        };
        for index in selected(&section, network)? {
            let cable = &mut network.cables[index];
            let headroom_bytes = headroom.unwrap_or_else(|| needed_bytes(cable, largest_bytes));
            cable.pfc = Some(PfcSpec { classes, xoff_bytes, xon_bytes, headroom_bytes });
        }
    }
    Ok(())
}

/// The most bytes that may arrive over a cable after a class has reached XOFF, in either direction.
fn needed_bytes(cable: &Cable, largest_bytes: u64) -> u64 {
    let of = |(sends, answers): (NodeId, NodeId)| {
        let (rate, back) = (cable.rate_from(sends), cable.rate_from(answers));
        // The frame waits for a packet in transmission. A packet that has begun when it arrives is sent to its end. The
        // packet with which the count reaches XOFF may exceed it.
        rate.bytes_in(back.time_for(largest_bytes + FRAME_BYTES) + cable.delay + cable.delay) + 2 * largest_bytes
    };
    of((cable.a, cable.b)).max(of((cable.b, cable.a)))
}

/// Checks that nothing contradicts priority-based flow control.
pub(crate) fn check(facts: &Facts<'_>) -> Result<(), ScenarioError> {
    let network = facts.network;
    if !network.has_pfc() {
        let queue = facts.root.need("queue")?;
        return match queue.entry("mark_ramp", Kind::TABLE) {
            Ok(ramp) => Err(ramp.error("no link has pfc; allowed: together with pfc of [[link]], or mark_at")),
            Err(_) => Ok(()),
        };
    }
    let field = facts.root.need("link")?;
    let tables = field.tables()?;
    for table in &tables {
        if let Ok(pause) = table.entry("pause", Kind::TABLE) {
            return Err(pause.error("other links have pfc; allowed: one of the two kinds of flow control"));
        }
    }
    let Some(table) = tables.iter().find(|table| table.entry("pfc", Kind::TABLE).is_ok()) else { return Ok(()) };
    let pfc = table.entry("pfc", Kind::TABLE)?;
    if let Some(switch) = facts.root.given("switch") {
        return Err(switch.error(
            "links have pfc, whose packets wait in the room of the cable that they came over; \
                                 allowed: one of the two",
        ));
    }
    for (index, (cable, affected)) in network.cables.iter().zip(network.queues_with_pause()).enumerate() {
        for (from, to, _) in
            [(cable.a, cable.b, affected[0]), (cable.b, cable.a, affected[1])].into_iter().filter(|ends| ends.2)
        {
            let name = |node: NodeId| network.nodes[node.index()].name.as_str();
            let queue = facts.output_queue(index, from);
            if queue.discipline.active().is_some() {
                return Err(pfc.error(format!(
                    "the queue of \"{}\" towards \"{}\" is {}, which decides by time or by chance and cannot be paused; \
                     allowed: fifo or priority at the cables with pfc and at all ports of their routers",
                    name(from),
                    name(to),
                    kind_of(&queue.discipline)
                )));
            }
            if cable.traces[cable.direction_from(from)].is_some() {
                return Err(pfc.error(format!(
                    "the link from \"{}\" to \"{}\" follows a trace, so it cannot be paused; allowed: links without a \
                     trace",
                    name(from),
                    name(to)
                )));
            }
        }
    }
    for change in facts.root.need("change")?.tables()? {
        if let Ok(down) = change.entry("down", Kind::Flag) {
            return Err(down.error("links have pfc, whose frames would be lost; allowed: links without pfc"));
        }
    }
    Ok(())
}

/// Adds a warning for each table whose headroom is too small, and one for a circle of pauses.
pub(crate) fn warn(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let network = facts.network;
    if !network.has_pfc() {
        return Ok(());
    }
    let largest_bytes = facts.largest_packet_bytes();
    let field = facts.root.need("link")?;
    for table in field.tables()? {
        let section = table.section(LINK)?;
        let Some(headroom) = section.given("pfc") else { continue };
        let headroom = headroom.path.clone();
        let cables = selected(&section, network)?;
        let short = cables.iter().map(|&index| &network.cables[index]).filter_map(|cable| {
            let (room, needed) = (cable.pfc?.headroom_bytes, needed_bytes(cable, largest_bytes));
            (room < needed).then_some((needed - room, needed, room, cable))
        });
        if let Some((_, needed, room, cable)) = short.max_by_key(|&(missing, ..)| missing) {
            let [a, b] = [cable.a, cable.b].map(|end| &network.nodes[end.index()].name);
            warnings.add(format!(
                "{headroom} lacks headroom: after a class of the cable between \"{a}\" and \"{b}\" has reached xoff, up to \
                 {needed}B may arrive, and it drops packets after {room}B"
            ));
        }
    }
    let paces = |scheme: &Scheme| scheme.any_controller().is_ok_and(|cc| cc.paces());
    if facts.queues.nic_full == FullInterface::Drop && facts.schemes.all.iter().any(paces) {
        let nic = facts.root.need("nic")?;
        warnings.add(format!(
            "{}.full = \"drop\" may drop packets at hosts: a paced sender continues while pfc pauses its interface; \
             \"wait\" lets it wait for room",
            nic.path
        ));
    }
    if let Some(circle) = circle(network, facts.routing) {
        let names: Vec<_> = circle.iter().map(|node| network.nodes[node.index()].name.as_str()).collect();
        warnings.add(format!(
            "pauses may wait for each other for ever (a deadlock): packets wait in a circle of cables, {}",
            names.join(" -> ")
        ));
    }
    Ok(())
}

/// The routers of a circle of cables, each of which may wait for the next one, if there is one. The first router is
/// repeated at the end.
fn circle(network: &Network, routing: Routing) -> Option<Vec<NodeId>> {
    let is_router = |node: NodeId| network.nodes[node.index()].kind == NodeKind::Router;
    let ends = network.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]);
    let edges: BTreeSet<_> = ends.filter(|&(host, router)| !is_router(host) && is_router(router)).collect();
    let edges: BTreeSet<NodeId> = edges.into_iter().map(|(_, router)| router).collect();
    if edges.len() * edges.len() > MOST_PAIRS {
        return None;
    }
    let paths = RouterPaths::of(network);
    let far_end = |hop: &Hop| {
        let cable = &network.cables[hop.cable()];
        if cable.a == hop.from { cable.b } else { cable.a }
    };
    // A cable waits for another if a path takes one after the other.
    let mut waits: BTreeMap<(usize, NodeId), BTreeSet<(usize, NodeId)>> = BTreeMap::new();
    for (&from, &to) in edges.iter().flat_map(|from| edges.iter().map(move |to| (from, to))) {
        let hops: Vec<Hop> = match routing {
            Routing::SinglePath => paths.both_ways(network, from, to).unwrap_or_default(),
            Routing::FirstCable => paths.by_first_cable(from, to).unwrap_or_default(),
            Routing::PerFlowEcmp | Routing::Spray | Routing::SprayRoundRobin => {
                paths.shares(from, to).unwrap_or_default().into_iter().map(|(hop, _)| hop).collect()
            }
        };
        let hops = hops.iter().filter(|hop| network.cables[hop.cable()].pfc.is_some());
        for first in hops.clone() {
            let next = hops.clone().filter(|hop| hop.from == far_end(first) && hop.cable() != first.cable());
            waits.entry((first.cable(), first.from)).or_default().extend(next.map(|hop| (hop.cable(), hop.from)));
        }
    }
    let links: Vec<_> = waits.keys().copied().collect();
    let place = |link: &(usize, NodeId)| links.binary_search(link).ok().map(|place| place as u32);
    let lists: Vec<Vec<u32>> = waits.values().map(|next| next.iter().filter_map(place).collect()).collect();
    let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
    let cycle = sparelane_catalogue::workload::find_cycle(&lists)?;
    let mut nodes: Vec<_> = cycle.iter().map(|&place| links[place as usize].1).collect();
    nodes.push(nodes[0]);
    Some(nodes)
}
