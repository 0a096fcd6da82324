//! `[queue]` and `[nic]`: the output queues of routers and of hosts.

use crate::rcp_rates;
use crate::schemes::Schemes;
use sparelane_catalogue::queue::{self, Queues as Kinds};
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_catalogue::schema::{Field, Section};
use sparelane_cc::Value;
use sparelane_sim::{
    Discipline, FullInterface, Limit, MarkRamp, Network, Node, NodeKind, QueueSpec, RoomNeeded, TelemetryKind,
};

const KIND: Key = Key::new(
    "kind",
    Kind::Special("the name of a kind of queue, such as fifo, priority, red or codel", &Shape::Entry("queue")),
    Fallback::Nothing("priority where a scheme sends at low priority, else fifo"),
    "the order of service",
);
const MARK_AT: Key = Key::new(
    "mark_at",
    Kind::Limit,
    Fallback::Nothing("never"),
    "mark ECN-capable packets that find this backlog or more, in all classes together; fifo and priority only",
);

const MARK_RAMP: Key = Key::new(
    "mark_ramp",
    Kind::Special("a table such as { from = \"5kB\", to = \"200kB\", probability = 0.01 }", &Shape::Table("mark_ramp")),
    Fallback::Nothing("never"),
    "mark ECN-capable packets with a probability that rises with the backlog of their class; routers with pfc only",
)
.from("DCQCN, SIGCOMM 2015");

/// The keys of `mark_ramp = { .. }`.
pub static RAMP: &[Key] = &[
    Key::new("from", RAMP_SIZE, Fallback::Required, "backlog up to which no packet is marked; K_min"),
    Key::new("to", RAMP_SIZE, Fallback::Required, "backlog above which every packet is marked; K_max"),
    Key::new("probability", Kind::Share { max: 1.0 }, Fallback::Required, "probability of a mark at K_max; P_max"),
];
const RAMP_SIZE: Kind = Kind::Size { min: 0, max: 1_000_000_000_000 };

/// Reads `mark_ramp = { .. }`.
fn read_ramp(field: &Field<'_>) -> Result<MarkRamp, ScenarioError> {
    let section = field.clone().section(&[RAMP])?;
    let (from_bytes, to) = (section.need("from")?.size()?, section.need("to")?);
    let to_bytes = to.size()?;
    if to_bytes < from_bytes {
        return Err(to.error("less than from; allowed: from or more"));
    }
    Ok(MarkRamp { from_bytes, to_bytes, probability: section.need("probability")?.share()? })
}

const AS_IN_QUEUE: Fallback = Fallback::Nothing("as in [queue]");
const LOW_PRIORITY: Key = Key::new(
    "low_priority",
    Kind::Choice(&["carry", "drop"]),
    AS_IN_QUEUE,
    "the treatment of packets below class 0: carried, or dropped on arrival, as at the border of a network that \
     refuses them",
);
const PUSH_OUT: Key = Key::new(
    "push_out",
    Kind::Flag,
    AS_IN_QUEUE,
    "whether packets of lower classes make room for a packet that does not fit, or it is dropped itself; priority only",
);
const ROOM: Key = Key::new(
    "room",
    Kind::Choice(&["packet", "full-packet"]),
    AS_IN_QUEUE,
    "the free space that a packet needs under a limit in bytes: its own size, or the size of the largest packet of \
     the run, as in devices of ns-3; fifo and priority only",
);
const TELEMETRY: Key = Key::new(
    "telemetry",
    Kind::Choice(&["port", "class", "off"]),
    AS_IN_QUEUE,
    "the records that a router writes into packets of hpcc: about packets of all classes (port), about those of the \
     packet's class and of higher ones (class), or none; fifo and priority only",
)
.from("HPCC, SIGCOMM 2019");
const RCP: Key = Key::new(
    "rcp",
    Kind::Special("a table, possibly empty", &Shape::Table("queue.rcp")),
    Fallback::Nothing("no rate"),
    "compute the rate that RCP allows each flow",
);

const HOLDS: &str = "the size of a queue, without the packet in transmission; 1bdp is the rate of the slowest \
                     cable times the mean base round-trip time between hosts behind different routers";

/// The keys of `[queue]`.
pub static ROUTER_QUEUE: &[Key] = &[
    KIND,
    Key::new("limit", Kind::Limit, Fallback::Value("1bdp"), HOLDS),
    MARK_AT,
    MARK_RAMP,
    Key { default: Fallback::Value("carry"), ..LOW_PRIORITY },
    Key { default: Fallback::Value("true"), ..PUSH_OUT },
    Key { default: Fallback::Value("packet"), ..ROOM },
    Key { default: Fallback::Value("port"), ..TELEMETRY },
    RCP,
];

/// The keys of `[queue]` that `[[queue_at]]` has too.
pub static QUEUE_KEYS: &[Key] = &[
    Key { default: AS_IN_QUEUE, ..KIND },
    Key::new("limit", Kind::Limit, Fallback::Nothing("as in [[link]] or else in [queue]"), HOLDS),
    Key { default: AS_IN_QUEUE, ..MARK_AT },
    LOW_PRIORITY,
    PUSH_OUT,
    ROOM,
    TELEMETRY,
];

/// The keys of `[nic]`.
pub static NIC_QUEUE: &[Key] = &[
    Key::new(
        "full",
        Kind::Choice(&["drop", "wait", "cut"]),
        Fallback::Value("drop"),
        "if a full packet does not fit: the packet is dropped (drop), or the sender waits for room (wait), or it \
         waits and gets a congestion signal, like a mark, at most once per window (cut, as in Linux); \
         acknowledgments are always dropped",
    ),
    KIND,
    Key::new("limit", Kind::Limit, Fallback::Value("2.048GB"), HOLDS).from("the RC3 authors' code"),
    MARK_AT,
    Key { default: Fallback::Value("packet"), ..ROOM },
    RCP,
];

/// The default queues of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Queues {
    /// Output queues of routers.
    pub router: QueueSpec,
    /// Output queues of hosts.
    pub nic: QueueSpec,
    /// The response of senders to a full interface.
    pub nic_full: FullInterface,
    /// The settings of the discipline of routers, by their keys; sizes are in bytes.
    pub router_settings: Vec<(&'static str, Value)>,
}

impl Queues {
    /// Reads `[queue]` and `[nic]`.
    pub fn read(
        [router, nic]: [Field<'_>; 2],
        kinds: &Kinds,
        schemes: &Schemes,
        bdp: u64,
    ) -> Result<Queues, ScenarioError> {
        let nic = nic.section(&[NIC_QUEUE, &kinds.all_keys()])?;
        let section = router.section(&[ROUTER_QUEUE, &kinds.all_keys()])?;
        let router = read_queue(&section, kinds, schemes, bdp)?;
        let kind = queue::kind_of(&router.discipline);
        let router_settings = kinds.settings(&section, kind, bdp, schemes.largest_packet_bytes())?;
        let nic_full = match nic.need("full")?.choice()? {
            "wait" => FullInterface::Wait,
            "cut" => FullInterface::Cut,
            _ => FullInterface::Drop,
        };
        let queues = Queues { router, nic: read_queue(&nic, kinds, schemes, bdp)?, nic_full, router_settings };
        if let (Some(scheme), false) = (schemes.with_low_priority(), queues.nic.discipline == Discipline::Priority) {
            let message = format!(
                "scheme \"{scheme}\" sends at low priority, and its own host must delay these packets; allowed: priority"
            );
            return Err(nic.given("kind").unwrap_or_else(|| nic.whole_table().clone()).error(message));
        }
        Ok(queues)
    }

    /// Checks every queue that differs from `[queue]` and `[nic]`: its limit against the largest packet and the marking
    /// threshold. `blame` returns the field that sets a cable's limit.
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
            if ![a, b].into_iter().all(|node| check_mark(&QueueSpec { limit, ..spec(node).clone() }, schemes)) {
                return Err(
                    blame(index).error(format!("{queue} holds {held}B, less than mark_at, and would never mark"))
                );
            }
        }
        Ok(())
    }
}

fn read_queue(section: &Section<'_>, kinds: &Kinds, schemes: &Schemes, bdp: u64) -> Result<QueueSpec, ScenarioError> {
    let by_schemes = if schemes.with_low_priority().is_some() { Discipline::Priority } else { Discipline::Fifo };
    let usual = QueueSpec {
        discipline: by_schemes,
        limit: read_limit(&section.need("limit")?, schemes, bdp)?,
        mark_at: None,
        mark_ramp: section.maybe("mark_ramp", |field| read_ramp(field))?,
        bars_low_priority: false,
        push_out: true,
        room: RoomNeeded::Packet,
        rcp: section.maybe("rcp", rcp_rates::read)?,
        telemetry: TelemetryKind::Port,
    };
    read_differing(section, (&usual, None), kinds, schemes, bdp)
}

/// Reads a table about a queue. Keys that it does not give are as in `usual`. Settings of an active law come from
/// `table`, from which `usual` was read, if both are of the same kind.
pub fn read_differing(
    section: &Section<'_>,
    (usual, table): (&QueueSpec, Option<&Section<'_>>),
    kinds: &Kinds,
    schemes: &Schemes,
    bdp: u64,
) -> Result<QueueSpec, ScenarioError> {
    let usual_kind = queue::kind_of(&usual.discipline);
    let kind = section.given("kind");
    let kind = kind.as_ref().map(|field| field.word(kinds.names())).transpose()?.unwrap_or(usual_kind);
    // Parameters of another kind do not apply, so the table's are defaults only if the kind is the same.
    let discipline = match table.filter(|_| kind == usual_kind) {
        Some(table) => kinds.read(&section.or(table), kind, bdp)?,
        None => kinds.read(section, kind, bdp)?,
    };
    let limit = section.maybe("limit", |field| read_limit(field, schemes, bdp))?.unwrap_or(usual.limit);
    // A law that stores packets in cells needs more space for a packet than its bytes.
    if let (Some(law), Limit::Bytes(bytes)) = (discipline.active(), limit) {
        let least = law.least_limit_bytes(schemes.largest_packet_bytes());
        if bytes < least {
            let message = format!("{bytes}B, less than one packet occupies; allowed: {least}B or more");
            return Err(section.given("limit").unwrap_or_else(|| section.whole_table().clone()).error(message));
        }
    }
    // Keys that have no effect under this discipline are mistakes.
    let is_plain = matches!(discipline, Discipline::Fifo | Discipline::Priority);
    if let (Some(field), false) = (section.given("mark_at"), is_plain) {
        return Err(field.error(format!("a {kind} queue marks by its own law; allowed: with kind = fifo or priority")));
    }
    let mark_at = section.maybe("mark_at", |field| read_mark(field, limit, schemes, bdp))?;
    if let (Some(field), Some(_)) = (section.given("mark_at"), usual.mark_ramp) {
        return Err(field.error("mark_ramp is also given; allowed: one of the two"));
    }
    let low_priority = section.maybe("low_priority", Field::choice)?;
    let push_out = section.maybe("push_out", Field::flag)?;
    if let (Some(field), false) = (section.given("push_out"), discipline == Discipline::Priority) {
        return Err(field.error(format!("a {kind} queue does not separate classes; allowed: kind = \"priority\"")));
    }
    let room = section.maybe("room", Field::choice)?.map(|word| match word {
        "full-packet" => RoomNeeded::FullPacket,
        _ => RoomNeeded::Packet,
    });
    if let (Some(field), false) = (section.given("room"), is_plain) {
        return Err(field.error(format!("a {kind} queue admits by its own law; allowed: with kind = fifo or priority")));
    }
    let telemetry = section.maybe("telemetry", Field::choice)?.map(|word| match word {
        "off" => TelemetryKind::Off,
        "class" => TelemetryKind::Class,
        _ => TelemetryKind::Port,
    });
    if let (Some(field), false) = (section.given("telemetry"), is_plain || telemetry == Some(TelemetryKind::Off)) {
        return Err(field.error(format!("a {kind} queue writes no telemetry; allowed: with kind = fifo or priority")));
    }
    Ok(QueueSpec {
        discipline,
        limit,
        mark_at: mark_at.or(usual.mark_at).filter(|_| is_plain),
        mark_ramp: usual.mark_ramp.filter(|_| is_plain),
        bars_low_priority: low_priority.map_or(usual.bars_low_priority, |word| word == "drop"),
        push_out: push_out.unwrap_or(usual.push_out),
        room: room.unwrap_or(usual.room),
        rcp: usual.rcp,
        telemetry: telemetry.unwrap_or(usual.telemetry),
    })
}

/// Reads a marking threshold, for a queue of this limit.
fn read_mark(field: &Field<'_>, limit: Limit, schemes: &Schemes, bdp: u64) -> Result<Limit, ScenarioError> {
    let mark = field.limit(bdp)?;
    if matches!(mark, Limit::Bytes(0) | Limit::Packets(0)) {
        return Err(field.error("marks packets in an empty queue; allowed: 1B or more, or 1packets or more"));
    }
    if can_reach(mark, limit, schemes) {
        return Ok(mark);
    }
    let most = match (mark, limit) {
        (Limit::Packets(_), Limit::Packets(packets)) => format!("{packets}packets"),
        _ => format!("{}B", most_bytes(limit, schemes)),
    };
    Err(field.error(format!("above the queue's limit, and would never mark; allowed: up to {most}")))
}

/// Reads a limit, which must hold a packet.
pub fn read_limit(field: &Field<'_>, schemes: &Schemes, bdp: u64) -> Result<Limit, ScenarioError> {
    let limit = field.limit(bdp)?;
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

/// Returns true unless a queue marks but can never hold enough to do so.
pub fn check_mark(queue: &QueueSpec, schemes: &Schemes) -> bool {
    queue.mark_at.is_none_or(|mark| can_reach(mark, queue.limit, schemes))
}

/// Returns true if a queue of this limit can hold as much as `mark`. Different units are compared in full packets.
fn can_reach(mark: Limit, limit: Limit, schemes: &Schemes) -> bool {
    match (mark, limit) {
        (Limit::Packets(mark), Limit::Packets(limit)) => mark <= limit,
        _ => most_bytes(mark, schemes) <= most_bytes(limit, schemes),
    }
}

/// The most bytes that a queue of this limit can hold.
pub fn most_bytes(limit: Limit, schemes: &Schemes) -> u64 {
    match limit {
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => packets.saturating_mul(schemes.largest_packet_bytes()),
    }
}
