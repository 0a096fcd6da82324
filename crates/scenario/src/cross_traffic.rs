//! `[[cross_traffic]]`: open-loop datagrams.

use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::nodes;
use sparelane_catalogue::schema::{Fallback, Form, Key, Kind, MAX_DURATION, MAX_FLOW_BYTES, Shape};
use sparelane_catalogue::schema::{Field, Section};
use sparelane_core::{Dur, Rate, Time};
use sparelane_sim::{AggregateSpec, CLASSES, ConstantSpec, CrossTraffic, Network, NodeId, Pattern, TokenBucket};

/// The most sources of one run.
const MAX_SOURCES: usize = 1_000_000;
/// The most packets in one burst.
const MAX_BURST: u64 = 1_000_000;
/// The size of a packet on the wire: at least its headers.
const PACKET: Kind = Kind::Size { min: 40, max: u16::MAX as u64 };
const BYTES: Kind = Kind::Size { min: 1, max: MAX_FLOW_BYTES };
const HOSTS: Kind = Kind::Special("a list of hosts, as in [\"h1\", \"h2\"]", &Shape::List(&Shape::Of(Kind::Node)));

/// The keys of every kind of cross traffic.
pub static CROSS_TRAFFIC: &[Key] = &[
    Key::new("from", HOSTS, Fallback::Required, "the hosts that send; each to the host at the same place in to"),
    Key::new("to", HOSTS, Fallback::Required, "the hosts that receive; as many as in from"),
    Key::new("rate", Kind::Rate, Fallback::Required, "the mean rate of each source on the wire, headers included"),
    Key::new("packet", PACKET, Fallback::Value("1500B"), "the size of every packet on the wire, headers included"),
    Key::new(
        "class",
        Kind::Whole { min: 0, max: CLASSES as u64 - 1 },
        Fallback::Value("0"),
        "priority class of the packets, 0 the highest",
    ),
    Key::new(
        "bucket",
        Kind::Special("a table such as { rate = \"300Mbps\", depth = \"30kB\" }", &Shape::Table("bucket")),
        Fallback::Nothing("none"),
        "a token bucket at each source, which delays packets and drops none",
    ),
    Key::new("start", Kind::MOMENT, Fallback::Value("0s"), "nothing is sent before this time"),
    Key::new(
        "stop",
        Kind::Time { min: Dur::from_ps(1), max: MAX_DURATION },
        Fallback::Nothing("the end of the run"),
        "nothing is sent at this time or later",
    ),
];

/// The properties of the senders of a pattern.
pub struct Sender {
    packet_bytes: u64,
    /// The slowest interface of the sending hosts, with the host's name.
    slowest: Option<(String, Rate)>,
}

/// A pattern of cross traffic, as the catalogue lists it.
pub type PatternForm = Form<fn(&Section<'_>, &Sender) -> Result<Pattern, ScenarioError>>;

/// The kinds of cross traffic.
pub static PATTERNS: &[PatternForm] = &[
    Form {
        name: "constant",
        summary: "packets at regular intervals; each source starts at a random time within the first one",
        source: "sparelane",
        keys: &[
            Key::new("burst", Kind::Whole { min: 1, max: MAX_BURST }, Fallback::Value("1"), "packets per burst"),
            Key::new(
                "jitter",
                Kind::Share { max: 1.0 },
                Fallback::Value("0.0"),
                "the largest deviation of an interval from the mean, as a share of it",
            ),
        ],
        read: |section, _| {
            let burst = section.need("burst")?.whole()? as u32;
            Ok(Pattern::Constant(ConstantSpec { burst, jitter: section.need("jitter")?.share()? }))
        },
    },
    Form {
        name: "aggregate",
        summary: "transfers that arrive at random (Poisson), with sizes of a bounded Pareto distribution, each at a peak rate of its own",
        source: "Willinger, Taqqu, Sherman and Wilson, SIGCOMM 1995",
        keys: &[
            Key::new("peak", Kind::Rate, Fallback::Required, "the rate of each transfer on the wire"),
            Key::new("smallest", BYTES, Fallback::Required, "the smallest transfer, on the wire: a packet or more"),
            Key::new("largest", BYTES, Fallback::Required, "the largest transfer, on the wire"),
            Key::new(
                "shape",
                Kind::Positive { max: 10.0 },
                Fallback::Value("1.2"),
                "the exponent of the tail of sizes; a smaller one puts more of the traffic into large transfers",
            ),
        ],
        read: |section, source| Ok(Pattern::Aggregate(aggregate(section, source)?)),
    },
];

/// The keys of `bucket`.
pub static BUCKET: &[Key] = &[
    Key::new("rate", Kind::Rate, Fallback::Required, "the rate at which it fills, on the wire"),
    Key::new("depth", BYTES, Fallback::Required, "its depth, on the wire: a packet or more"),
];

/// Reads one `[[cross_traffic]]` table of a run of `duration`.
pub fn read(field: &Field<'_>, network: &Network, duration: Dur) -> Result<Vec<CrossTraffic>, ScenarioError> {
    let (form, section) = field.clone().form(CROSS_TRAFFIC, &PATTERNS.iter().collect::<Vec<_>>())?;
    let pairs = pairs(&section, network)?;
    let rate_field = section.need("rate")?;
    let rate = rate_field.rate()?;
    let packet_bytes = section.need("packet")?.size()?;
    let slowest = slowest_interface(&pairs, network);
    if let Some((name, most)) = &slowest
        && rate > *most
    {
        return Err(rate_field.error(format!("the interface of host \"{name}\" has {most}; allowed: that or less")));
    }
    let pattern = (form.read)(&section, &Sender { packet_bytes, slowest })?;
    let bucket = section.maybe("bucket", |field| bucket(field, rate, packet_bytes))?;
    let (start, stop) = period(&section, duration)?;
    let class = section.need("class")?.whole()? as u8;
    let packet_bytes = packet_bytes as u16;
    let traffic = |(from, to)| CrossTraffic { from, to, rate, packet_bytes, class, pattern, bucket, start, stop };
    Ok(pairs.into_iter().map(traffic).collect())
}

/// Reads all `[[cross_traffic]]` tables.
pub fn read_all(field: &Field<'_>, network: &Network, duration: Dur) -> Result<Vec<CrossTraffic>, ScenarioError> {
    let tables = field.tables()?;
    let all = tables.iter().map(|table| read(table, network, duration)).collect::<Result<Vec<_>, _>>()?.concat();
    if all.len() > MAX_SOURCES {
        return Err(field.error(format!("{} sources; allowed: {MAX_SOURCES} in all", all.len())));
    }
    Ok(all)
}

/// The pairs of sending and receiving hosts.
fn pairs(section: &Section<'_>, network: &Network) -> Result<Vec<(NodeId, NodeId)>, ScenarioError> {
    let (from, to) = (section.need("from")?, section.need("to")?);
    let (sources, sinks) = (from.list(Kind::Node)?, to.list(Kind::Node)?);
    if sources.is_empty() {
        return Err(from.error("no host; allowed: at least one"));
    }
    if sources.len() != sinks.len() {
        let (froms, tos) = (sources.len(), sinks.len());
        return Err(
            to.error(format!("the lengths of from and to differ, {froms} and {tos}; allowed: as many hosts in each"))
        );
    }
    let pair = |(source, sink): (&Field<'_>, &Field<'_>)| {
        let pair = (nodes::host(source, network)?, nodes::host(sink, network)?);
        if pair.0 == pair.1 { Err(sink.error("sends to itself; allowed: another host")) } else { Ok(pair) }
    };
    sources.iter().zip(&sinks).map(pair).collect()
}

/// The slowest interface of the sending hosts, with the host's name.
fn slowest_interface(pairs: &[(NodeId, NodeId)], network: &Network) -> Option<(String, Rate)> {
    let rate = |host: NodeId| {
        network.cables.iter().find(|cable| [cable.a, cable.b].contains(&host)).map(|cable| cable.rate_from(host))
    };
    let rates = pairs.iter().filter_map(|&(from, _)| Some((network.nodes[from.index()].name.clone(), rate(from)?)));
    rates.min_by_key(|&(_, rate)| rate)
}

fn aggregate(section: &Section<'_>, sender: &Sender) -> Result<AggregateSpec, ScenarioError> {
    let packet_bytes = sender.packet_bytes;
    let (peak, smallest, largest) = (section.need("peak")?, section.need("smallest")?, section.need("largest")?);
    let spec = AggregateSpec {
        peak: peak.rate()?,
        min_bytes: smallest.size()?,
        max_bytes: largest.size()?,
        shape: section.need("shape")?.positive()?,
    };
    if let Some((name, most)) = &sender.slowest
        && spec.peak > *most
    {
        return Err(peak.error(format!("the interface of host \"{name}\" has {most}; allowed: that or less")));
    }
    if spec.min_bytes < packet_bytes {
        return Err(smallest.error(format!("less than a packet; allowed: {packet_bytes}B or more")));
    }
    if spec.max_bytes < spec.min_bytes {
        return Err(largest.error(format!("less than smallest; allowed: {}B or more", spec.min_bytes)));
    }
    Ok(spec)
}

fn bucket(field: &Field<'_>, mean: Rate, packet_bytes: u64) -> Result<TokenBucket, ScenarioError> {
    let section = field.clone().section(&[BUCKET])?;
    let (rate, depth) = (section.need("rate")?, section.need("depth")?);
    let bucket = TokenBucket { rate: rate.rate()?, depth_bytes: depth.size()? };
    if bucket.rate < mean {
        return Err(rate.error(format!("below the mean rate of the source, {mean}; allowed: that or more")));
    }
    if bucket.depth_bytes < packet_bytes {
        return Err(depth.error(format!("less than a packet; allowed: {packet_bytes}B or more")));
    }
    Ok(bucket)
}

/// The time in which packets are sent: its start and its end.
fn period(section: &Section<'_>, duration: Dur) -> Result<(Time, Time), ScenarioError> {
    let start = section.need("start")?.time()?;
    let Some(field) = section.given("stop") else { return Ok((Time::ZERO + start, Time::ZERO + duration)) };
    let stop = field.time()?;
    if stop <= start {
        return Err(field.error(format!("not after start, {start}; allowed: a later time")));
    }
    Ok((Time::ZERO + start, Time::ZERO + stop))
}
