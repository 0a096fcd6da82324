//! `pause` of `[[link]]`: PAUSE on cables (IEEE 802.3x).
//!
//! After a queue has reached XOFF, packets arrive until the other end of the cable has stopped: those that begin while
//! the frame waits for the packet before it and travels, and those on the wire. Each cable into the router may bring
//! that much. A warning names a queue with less room, because it drops packets in spite of PAUSE.

use crate::links::{LINK, selected};
use crate::queues::most_bytes;
use crate::warnings::Facts;
use sparelane_catalogue::queue::kind_of;
use sparelane_catalogue::schema::{Fallback, Field, Key, Kind, ScenarioError, Warnings};
use sparelane_sim::{Limit, Network, NodeId, NodeKind, PauseSpec, QueueSpec};
use std::collections::{BTreeMap, BTreeSet};

/// The size of a PAUSE frame, bytes.
const FRAME_BYTES: u64 = 64;

/// The keys of `pause = { .. }`.
pub static PAUSE: &[Key] = &[
    Key::new("xoff", Kind::Limit, Fallback::Required, "backlog of an output queue from which on it pauses the cable"),
    Key::new("xon", Kind::Limit, Fallback::Required, "backlog down to which the pause ends; below xoff"),
    Key::new(
        "quanta",
        Kind::Whole { min: 1, max: u16::MAX as u64 },
        Fallback::Value("65535"),
        "pause time of a frame in times of 512 bits; frames are repeated after half of it",
    )
    .from("IEEE 802.3x"),
];

/// Applies `pause`, once the bandwidth-delay product is known. Returns, for each cable, the index among `fields` of the
/// override that sets its PAUSE.
pub fn apply(fields: &[Field<'_>], network: &mut Network, bdp: u64) -> Result<Vec<Option<usize>>, ScenarioError> {
    let mut origins = vec![None; network.cables.len()];
    for (place, field) in fields.iter().enumerate() {
        let section = field.clone().section(LINK)?;
        let Some(pause) = section.maybe("pause", |field| read(field, bdp))? else { continue };
        for index in selected(&section, network)? {
            network.cables[index].pause = Some(pause);
            origins[index] = Some(place);
        }
    }
    Ok(origins)
}

/// Reads `pause = { .. }`.
fn read(field: &Field<'_>, bdp: u64) -> Result<PauseSpec, ScenarioError> {
    let section = field.clone().section(&[PAUSE])?;
    let [xoff, xon] = ["xoff", "xon"].map(|key| section.need(key).and_then(|field| field.limit(bdp)));
    let (xoff, xon) = (xoff?, xon?);
    let is_below = match (xon, xoff) {
        (Limit::Bytes(xon), Limit::Bytes(xoff)) | (Limit::Packets(xon), Limit::Packets(xoff)) => xon < xoff,
        _ => return Err(section.need("xon")?.error("xoff has another unit; allowed: both in bytes or in packets")),
    };
    if !is_below {
        return Err(section.need("xon")?.error("not below xoff; allowed: less than xoff"));
    }
    Ok(PauseSpec { xoff, xon, quanta: section.need("quanta")?.whole()? as u16 })
}

/// Checks the kind of each queue that pauses a cable or is paused, that some queue can reach each XOFF, and that frames
/// do not fill the cable.
pub(crate) fn check(facts: &Facts<'_>) -> Result<(), ScenarioError> {
    if facts.pauses.iter().all(Option::is_none) {
        return Ok(());
    }
    let field = facts.root.need("link")?;
    let tables = field.tables()?;
    let found = Findings::of(facts);
    for (place, table) in tables.iter().enumerate().filter(|(place, _)| facts.pauses.contains(&Some(*place))) {
        let section = table.clone().section(LINK)?;
        let pause = section.need("pause")?;
        let affected = affected_queues(facts, place);
        let is_active =
            |&(cable, from): &(usize, NodeId)| facts.output_queue(cable, from).discipline.active().is_some();
        if let Some(&(cable, from)) = affected.iter().find(|queue| is_active(queue)) {
            let kind = kind_of(&facts.output_queue(cable, from).discipline);
            let [from, to] = facts.names([from, facts.far_end(cable, from)]);
            return Err(pause.error(format!(
                "the queue of \"{from}\" towards \"{to}\" is {kind}, which decides by time or by chance and cannot be \
                 paused or order a pause; allowed: fifo or priority at both ends of the cable and at all ports of \
                 its routers"
            )));
        }
        let follows = |&(cable, from): &(usize, NodeId)| {
            let cable = &facts.network.cables[cable];
            cable.traces[cable.direction_from(from)].is_some()
        };
        if let Some(&(cable, from)) = affected.iter().find(|queue| follows(queue)) {
            let [from, to] = facts.names([from, facts.far_end(cable, from)]);
            return Err(pause.error(format!(
                "the link from \"{from}\" to \"{to}\" follows a trace, so it cannot be paused or order a pause; allowed: \
                 links without a trace at the ends of the cable and at all ports of its routers"
            )));
        }
        if !found.used.contains(&place) {
            let message = "no queue that could order a pause holds as much as xoff; allowed: up to a queue's limit";
            return Err(pause.error(message));
        }
        let least = facts.least_quanta(place);
        let keys = pause.clone().section(&[PAUSE])?;
        let quanta = keys.need("quanta")?;
        if quanta.whole()? < least {
            let message = format!("repeated frames would take more than a tenth of the cable; allowed: from {least}");
            return Err(quanta.error(message));
        }
    }
    Ok(())
}

/// Adds a warning for each table with `pause` that leaves a queue without headroom.
pub(crate) fn warn(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    if facts.pauses.iter().all(Option::is_none) {
        return Ok(());
    }
    let field = facts.root.need("link")?;
    let tables = field.tables()?;
    for (place, Shortage { from, to, comes, room, .. }) in Findings::of(facts).shortages {
        let [from, to] = facts.names([from, to]);
        warnings.add(format!(
            "{}.pause lacks headroom: after the queue of \"{from}\" towards \"{to}\" has reached xoff, up to {comes} may \
             arrive, and it drops packets after {room}",
            tables[place].path
        ));
    }
    Ok(())
}

/// The output queues that PAUSE of a table affects: their cables, and the nodes that send.
fn affected_queues(facts: &Facts<'_>, table: usize) -> Vec<(usize, NodeId)> {
    let cables = &facts.network.cables;
    let own = || (0..cables.len()).filter(|&cable| facts.pauses[cable] == Some(table));
    let ends: BTreeSet<_> = own().flat_map(|cable| [cables[cable].a, cables[cable].b]).collect();
    let own: BTreeSet<_> = own().collect();
    let is_router = |end: &NodeId| facts.network.nodes[end.index()].kind == NodeKind::Router;
    let queues = (0..cables.len()).flat_map(|cable| [(cable, cables[cable].a), (cable, cables[cable].b)]);
    queues.filter(|(cable, from)| own.contains(cable) || ends.contains(from) && is_router(from)).collect()
}

/// A number of packets of the largest size, and a number of bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    packets: u64,
    bytes: u64,
}

/// A queue that may drop packets although it pauses the cables that lead to it.
struct Shortage {
    from: NodeId,
    to: NodeId,
    comes: String,
    room: String,
    missing_bytes: u64,
}

/// The findings about each `[[link]]` table with `pause`.
#[derive(Default)]
struct Findings {
    /// Tables whose XOFF some queue can reach.
    used: BTreeSet<usize>,
    /// The queue with the least headroom.
    shortages: BTreeMap<usize, Shortage>,
}

impl Findings {
    fn of(facts: &Facts<'_>) -> Findings {
        let network = facts.network;
        let mut ports: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
        for (index, cable) in network.cables.iter().enumerate() {
            let is_router = |end: &NodeId| network.nodes[end.index()].kind == NodeKind::Router;
            for end in [cable.a, cable.b].into_iter().filter(is_router) {
                ports.entry(end).or_default().push(index);
            }
        }
        let mut found = Findings::default();
        for (&router, cables) in &ports {
            let mut paused: Vec<_> = cables.iter().filter_map(|&cable| facts.paused(cable, router)).collect();
            paused.sort_by_key(|paused| paused.xoff_bytes);
            // A router with thousands of equal ports has one answer for all of them.
            let mut known = BTreeSet::new();
            for &cable in cables {
                let own = facts.paused(cable, router).map(|own| (own.table, own.comes.bytes));
                let limit = facts.limit_at(cable, router);
                if known.insert((limit_key(limit), own)) {
                    found.add_queue(facts, (cable, router), limit, &paused);
                }
            }
        }
        found
    }

    /// Adds the findings about the queue of `router` towards a cable. `paused` are the router's cables with PAUSE.
    fn add_queue(&mut self, facts: &Facts<'_>, (cable, router): (usize, NodeId), limit: Limit, paused: &[Paused]) {
        let limit_bytes = most_bytes(limit, facts.schemes);
        // No packet leaves over the cable that it came from.
        let others = paused.iter().filter(|paused| paused.cable != cable);
        let reaching: Vec<_> = others.filter(|paused| paused.is_reached_in(limit, limit_bytes)).collect();
        self.used.extend(reaching.iter().map(|paused| paused.table));
        // The highest threshold leaves the least room.
        let Some(highest) = reaching.last() else { return };
        let comes = reaching.iter().fold(Load::default(), |sum, paused| Load {
            packets: sum.packets + paused.comes.packets,
            bytes: sum.bytes + paused.comes.bytes,
        });
        let (comes, room, missing_bytes) = match (limit, highest.spec.xoff) {
            (Limit::Packets(limit), Limit::Packets(xoff)) => {
                let missing = comes.packets.saturating_sub(limit - xoff);
                let words = |packets: u64| format!("{packets} packets");
                (words(comes.packets), words(limit - xoff), missing * facts.largest_packet_bytes())
            }
            _ => {
                let room = limit_bytes - highest.xoff_bytes;
                (format!("{}B", comes.bytes), format!("{room}B"), comes.bytes.saturating_sub(room))
            }
        };
        let worst = self.shortages.get(&highest.table).map_or(0, |worst| worst.missing_bytes);
        if missing_bytes > worst {
            let to = facts.far_end(cable, router);
            self.shortages.insert(highest.table, Shortage { from: router, to, comes, room, missing_bytes });
        }
    }
}

/// A limit as a key of a map.
fn limit_key(limit: Limit) -> (bool, u64) {
    match limit {
        Limit::Bytes(bytes) => (false, bytes),
        Limit::Packets(packets) => (true, packets),
    }
}

/// A cable with PAUSE that leads to a router.
struct Paused {
    cable: usize,
    /// The index of the `[[link]]` table that sets its PAUSE.
    table: usize,
    spec: PauseSpec,
    xoff_bytes: u64,
    /// The packets that may arrive after XOFF.
    comes: Load,
}

impl Paused {
    /// Returns true if a queue of this limit can hold as much as XOFF.
    fn is_reached_in(&self, limit: Limit, limit_bytes: u64) -> bool {
        match (self.spec.xoff, limit) {
            (Limit::Packets(xoff), Limit::Packets(limit)) => xoff <= limit,
            _ => self.xoff_bytes <= limit_bytes,
        }
    }
}

impl Facts<'_> {
    fn names(&self, ends: [NodeId; 2]) -> [&str; 2] {
        ends.map(|end| self.network.nodes[end.index()].name.as_str())
    }

    fn far_end(&self, cable: usize, near: NodeId) -> NodeId {
        let ends = &self.network.cables[cable];
        if ends.a == near { ends.b } else { ends.a }
    }

    /// The settings of the output queue of any node, except for its limit.
    pub(crate) fn output_queue(&self, cable: usize, from: NodeId) -> &QueueSpec {
        match self.network.nodes[from.index()].kind {
            NodeKind::Host => &self.queues.nic,
            NodeKind::Router => self.queue_at(cable, from),
        }
    }

    /// The fewest quanta with which repeated frames take at most a tenth of each cable of a table.
    fn least_quanta(&self, table: usize) -> u64 {
        let cables = self.network.cables.iter().zip(self.pauses).filter(|(_, place)| **place == Some(table));
        let directions = cables.flat_map(|(cable, _)| [(cable, cable.a), (cable, cable.b)]);
        let routers = directions.filter(|(_, end)| self.network.nodes[end.index()].kind == NodeKind::Router);
        let least = routers.map(|(cable, router)| {
            let back = cable.rate_from(router);
            let sender = if cable.a == router { cable.b } else { cable.a };
            // A frame has the size of a quantum, and is repeated after half of the quanta at the sender's rate.
            (2 * 10 * cable.rate_from(sender).as_bps()).div_ceil(back.as_bps().max(1))
        });
        least.max().unwrap_or(1)
    }

    /// The size of the largest packet of the run, bytes.
    pub(crate) fn largest_packet_bytes(&self) -> u64 {
        let datagrams = self.cross_traffic.iter().map(|traffic| u64::from(traffic.packet_bytes));
        datagrams.chain([self.schemes.largest_packet_bytes()]).max().unwrap_or(0)
    }

    /// The limit of the output queue of a router towards a cable.
    fn limit_at(&self, cable: usize, from: NodeId) -> Limit {
        let table = self.ports.decided.get(&(cable, from)).map(|&place| &self.differing[place]);
        let is_given = table.is_some_and(|table| table.has_limit());
        let queue = self.queue_at(cable, from).limit;
        self.network.cables[cable].limit.filter(|_| !is_given).unwrap_or(queue)
    }

    /// A cable of `router`, if it has PAUSE.
    fn paused(&self, cable: usize, router: NodeId) -> Option<Paused> {
        let (table, ends) = (self.pauses[cable]?, &self.network.cables[cable]);
        let spec = ends.pause?;
        let (rate, back) = (ends.rate_from(self.far_end(cable, router)), ends.rate_from(router));
        let largest = self.largest_packet_bytes();
        // The frame waits for a packet in transmission. A packet that has begun when it arrives is sent to its end.
        let begun = rate.bytes_in(back.time_for(largest + FRAME_BYTES) + ends.delay + ends.delay);
        // The packet with which the queue reaches XOFF may have come over another cable.
        let comes = Load { packets: begun.div_ceil(largest.max(1)) + 1, bytes: begun + 2 * largest };
        Some(Paused { cable, table, spec, xoff_bytes: most_bytes(spec.xoff, self.schemes), comes })
    }
}
