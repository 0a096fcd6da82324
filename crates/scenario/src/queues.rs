//! `[queue]` and `[nic]`: the output queues of routers and of hosts.

use crate::error::ScenarioError;
use crate::field::{Field, Section};
use crate::keys::{Fallback, Key, Kind};
use crate::rcp;
use crate::schemes::Schemes;
use crate::units::Amount;
use sparelane_sim::{Discipline, Limit, Network, Node, NodeKind, QueueSpec};

/// The ways in which a queue orders packets: name, summary, source.
pub static DISCIPLINES: &[(&str, &str, &str)] = &[
    ("fifo", "first in, first out; what does not fit is dropped; can mark (ECN)", "sparelane"),
    (
        "priority",
        "strict priority over one shared buffer; the newest packets of the lowest class make room for higher classes",
        "NSDI 2014 section 5; the authors' code",
    ),
];

const KIND: Key = Key::new(
    "kind",
    Kind::Choice(&["fifo", "priority"]),
    Fallback::Nothing("priority where a scheme sends at low priority, else fifo"),
    "the order of service",
);
const MARK_AT: Key = Key::new(
    "mark_at",
    Kind::Size { min: 1, max: 1 << 50 },
    Fallback::Nothing("never"),
    "mark ECN-capable packets that arrive when so much is queued; fifo only",
);

const AS_IN_QUEUE: Fallback = Fallback::Nothing("as in [queue]");
const LOW_PRIORITY: Key = Key::new(
    "low_priority",
    Kind::Choice(&["carry", "drop"]),
    AS_IN_QUEUE,
    "what becomes of packets below class 0: they are carried, or dropped as they come, as at the border of a network \
     that does not let them in",
);
const PUSH_OUT: Key = Key::new(
    "push_out",
    Kind::Flag,
    AS_IN_QUEUE,
    "whether packets of lower classes make room for a packet that does not fit, or it is dropped itself; priority only",
);
const RCP: Key = Key::new(
    "rcp",
    Kind::Special("a table, possibly empty"),
    Fallback::Nothing("no rate"),
    "compute the rate that RCP allows each flow",
);

const HOLDS: &str = "what a queue holds besides the packet in transmission; 1bdp is the rate of the slowest cable \
                     times the mean base round-trip time between hosts behind different routers";

/// The keys of `[queue]`.
pub static ROUTER_QUEUE: &[Key] = &[
    KIND,
    Key::new("limit", Kind::Limit, Fallback::Value("1bdp"), HOLDS),
    MARK_AT,
    Key { default: Fallback::Value("carry"), ..LOW_PRIORITY },
    Key { default: Fallback::Value("true"), ..PUSH_OUT },
    RCP,
];

/// The keys of `[queue]` that `[[queue_at]]` has too.
pub static QUEUE_KEYS: &[Key] = &[
    Key { default: AS_IN_QUEUE, ..KIND },
    Key::new("limit", Kind::Limit, Fallback::Nothing("as in [[link]] or else in [queue]"), HOLDS),
    Key { default: AS_IN_QUEUE, ..MARK_AT },
    LOW_PRIORITY,
    PUSH_OUT,
];

/// The keys of `[nic]`.
pub static NIC_QUEUE: &[Key] = &[
    KIND,
    Key::new("limit", Kind::Limit, Fallback::Value("2.048GB"), HOLDS).from("the RC3 authors' code"),
    MARK_AT,
    RCP,
];

/// The two defaults of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queues {
    /// Output queues of routers.
    pub router: QueueSpec,
    /// Output queues of hosts.
    pub nic: QueueSpec,
}

impl Queues {
    /// Reads `[queue]` and `[nic]`.
    pub fn read(queue: Field<'_>, nic: Field<'_>, schemes: &Schemes, bdp: u64) -> Result<Queues, ScenarioError> {
        let nic = nic.section(&[NIC_QUEUE])?;
        let router = read_queue(&queue.section(&[ROUTER_QUEUE])?, schemes, bdp)?;
        let queues = Queues { router, nic: read_queue(&nic, schemes, bdp)? };
        if let (Discipline::Fifo, Some(scheme)) = (queues.nic.discipline, schemes.with_low_priority()) {
            let message = format!(
                "scheme \"{scheme}\" sends at low priority, which its own host must hold back; allowed: priority"
            );
            return Err(nic.given("kind").unwrap_or_else(|| nic.whole_table().clone()).error(message));
        }
        Ok(queues)
    }

    /// Checks every queue that does not follow `[queue]` or `[nic]` against the largest packet and the thresholds of
    /// marking. `blame` gives the field that a cable's limit comes from.
    pub fn check<'d>(
        &self,
        network: &Network,
        schemes: &Schemes,
        blame: impl Fn(usize) -> Field<'d>,
    ) -> Result<(), ScenarioError> {
        for (index, cable) in network.cables.iter().enumerate() {
            let Some(limit) = cable.limit else { continue };
            let [a, b] = [cable.a, cable.b].map(|end| &network.nodes[end.index()]);
            let queue = format!("the queue between \"{}\" and \"{}\"", a.name, b.name);
            if let Some(message) = too_small(limit, schemes) {
                return Err(blame(index).error(format!("{queue} is {message}")));
            }
            let held = most_bytes(limit, schemes);
            let spec = |node: &Node| if node.kind == NodeKind::Host { &self.nic } else { &self.router };
            if [a, b].into_iter().any(|node| spec(node).mark_at_bytes.is_some_and(|mark| mark > held)) {
                return Err(
                    blame(index).error(format!("{queue} holds {held}B, less than mark_at, and would never mark"))
                );
            }
        }
        Ok(())
    }
}

fn read_queue(section: &Section<'_>, schemes: &Schemes, bdp: u64) -> Result<QueueSpec, ScenarioError> {
    let by_schemes = if schemes.with_low_priority().is_some() { Discipline::Priority } else { Discipline::Fifo };
    let usual = QueueSpec {
        discipline: by_schemes,
        limit: read_limit(&section.need("limit")?, schemes, bdp)?,
        mark_at_bytes: None,
        bars_low_priority: false,
        push_out: true,
        rcp: section.maybe("rcp", rcp::read)?,
    };
    read_differing(section, &usual, schemes, bdp)
}

/// What a table says of a queue; where it is silent, `usual` holds.
pub fn read_differing(
    section: &Section<'_>,
    usual: &QueueSpec,
    schemes: &Schemes,
    bdp: u64,
) -> Result<QueueSpec, ScenarioError> {
    let discipline = match section.maybe("kind", Field::choice)? {
        Some("priority") => Discipline::Priority,
        Some(_) => Discipline::Fifo,
        None => usual.discipline,
    };
    let limit = section.maybe("limit", |field| read_limit(field, schemes, bdp))?.unwrap_or(usual.limit);
    let mark_at_bytes = section.maybe("mark_at", Field::size)?;
    if let (Some(mark), Some(field)) = (mark_at_bytes, section.given("mark_at")) {
        if discipline == Discipline::Priority {
            return Err(field.error("a priority queue does not mark; allowed: kind = \"fifo\""));
        }
        if mark > most_bytes(limit, schemes) {
            let held = most_bytes(limit, schemes);
            return Err(field.error(format!("above the queue's limit, and would never mark; allowed: up to {held}B")));
        }
    }
    let low_priority = section.maybe("low_priority", Field::choice)?;
    let push_out = section.maybe("push_out", Field::flag)?;
    if let (Discipline::Fifo, Some(field)) = (discipline, section.given("push_out")) {
        return Err(field.error("a FIFO queue knows no classes; allowed: kind = \"priority\""));
    }
    Ok(QueueSpec {
        discipline,
        limit,
        mark_at_bytes: mark_at_bytes.or(usual.mark_at_bytes).filter(|_| discipline == Discipline::Fifo),
        bars_low_priority: low_priority.map_or(usual.bars_low_priority, |word| word == "drop"),
        push_out: push_out.unwrap_or(usual.push_out),
        rcp: usual.rcp,
    })
}

/// The limit that `field` asks for, which must hold a packet.
pub fn read_limit(field: &Field<'_>, schemes: &Schemes, bdp: u64) -> Result<Limit, ScenarioError> {
    let limit = match field.amount()? {
        Amount::Bytes(bytes) => Limit::Bytes(bytes),
        Amount::Packets(packets) => Limit::Packets(packets),
        Amount::Bdp(products) => Limit::Bytes(products.of(bdp)),
    };
    match too_small(limit, schemes) {
        Some(message) => Err(field.error(message)),
        None => Ok(limit),
    }
}

fn too_small(limit: Limit, schemes: &Schemes) -> Option<String> {
    let packet = schemes.largest_packet_bytes();
    match limit {
        Limit::Bytes(bytes) if bytes < packet => {
            Some(format!("{bytes}B, smaller than one packet; allowed: {packet}B or more"))
        }
        Limit::Packets(0) => Some("0 packets; allowed: 1packets or more".to_owned()),
        _ => None,
    }
}

/// Whether a queue that is to mark holds enough for that.
pub fn check_mark(queue: &QueueSpec, schemes: &Schemes) -> bool {
    queue.mark_at_bytes.is_none_or(|mark| mark <= most_bytes(queue.limit, schemes))
}

/// The most bytes that a queue of this limit can hold.
pub fn most_bytes(limit: Limit, schemes: &Schemes) -> u64 {
    match limit {
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => packets.saturating_mul(schemes.largest_packet_bytes()),
    }
}
