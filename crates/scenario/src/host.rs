//! `[host]`: processing costs, interrupts, clocks and timers of hosts. `[[host_at]]`: hosts that differ from the
//! others.

use crate::transport::{TICK, granularity};
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::nodes;
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_catalogue::schema::{Field, Section};
use sparelane_core::Dur;
use sparelane_sim::{HostAt, HostSpec, Interrupts, Network, Stalls, TimestampAt};
use std::collections::BTreeSet;

const UP_TO_AN_HOUR: Kind = Kind::Time { min: Dur::ZERO, max: Dur::from_secs(3600) };
const UP_TO_A_SECOND: Kind = Kind::Time { min: Dur::ZERO, max: Dur::from_secs(1) };

/// The keys of `[host]`.
pub static HOST: &[Key] = &[
    Key::new(
        "receive_cost",
        UP_TO_A_SECOND,
        Fallback::Value("0s"),
        "processing time per received chunk of data (or segment, without receive_batch), and per other packet that \
         an interrupt delivers",
    ),
    Key::new(
        "interrupt_after",
        UP_TO_A_SECOND,
        Fallback::Value("0s"),
        "the longest time that received packets wait at an interface for an interrupt; 0s interrupts for every packet",
    ),
    Key::new(
        "interrupt_packets",
        Kind::Whole { min: 1, max: u32::MAX as u64 },
        Fallback::Nothing("any number"),
        "the number of waiting packets that raises an interrupt",
    ),
    Key::new(
        "ring",
        Kind::Whole { min: 1, max: u32::MAX as u64 },
        Fallback::Nothing("any number"),
        "the size of an interface's ring in packets, with interrupt_after; packets beyond it are lost",
    ),
    Key::new(
        "stall_every",
        UP_TO_AN_HOUR,
        Fallback::Value("0s"),
        "mean time between stalls of a host, in which it answers no interrupt: exponential; with interrupt_after; 0s disables stalls",
    ),
    Key::new(
        "stall_length",
        UP_TO_A_SECOND,
        Fallback::Value("0s"),
        "mean length of a stall: exponential; with stall_every",
    ),
    Key::new(
        "timestamp_at",
        Kind::Choice(&["arrival", "acknowledgment"]),
        Fallback::Value("arrival"),
        "the receive timestamp of data, for controllers that use receive times or one-way delays: the time at \
         which the processor has taken it, or at which the acknowledgment leaves",
    ),
    Key::new(
        "timestamp_clock",
        TICK,
        Fallback::Value("exact"),
        "tick of the clock for send and receive timestamps, which rounds down",
    ),
    Key::new(
        "ack_cost",
        UP_TO_A_SECOND,
        Fallback::Value("0s"),
        "mean processing time of an acknowledgment before it leaves: exponential, one after another",
    ),
    Key::new(
        "timer_error",
        UP_TO_A_SECOND,
        Fallback::Value("0s"),
        "mean lateness of the timers of paced segments: exponential; segments due by then leave back to back",
    ),
    Key::new(
        "send_cost",
        UP_TO_A_SECOND,
        Fallback::Value("0s"),
        "processing time per sent packet; the next packet waits in the queue of the interface",
    ),
];

/// The key of `[[host_at]]` that selects hosts; the keys of `[host]` are added.
pub static HOST_AT: &[Key] = &[Key::new(
    "hosts",
    Kind::Special("a list of hosts, as in [\"left0\", \"right0\"]", &Shape::List(&Shape::Of(Kind::Node))),
    Fallback::Required,
    "the hosts that differ from [host]; the last table that names a host wins",
)];

/// Reads `[host]`.
pub fn read(field: Field<'_>) -> Result<HostSpec, ScenarioError> {
    read_keys(&field.section(&[HOST])?, HostSpec::default())
}

/// Reads one `[[host_at]]` table. Keys that it does not give are as in `usual`.
pub fn read_at(field: &Field<'_>, usual: HostSpec, network: &Network) -> Result<Vec<HostAt>, ScenarioError> {
    let section = field.clone().section(&[HOST_AT, HOST])?;
    let list = section.need("hosts")?;
    let mut hosts = BTreeSet::new();
    for element in list.list(Kind::Node)? {
        if !hosts.insert(nodes::host(&element, network)?) {
            return Err(element.error("listed twice; allowed: each host once"));
        }
    }
    if hosts.is_empty() {
        return Err(list.error("no host; allowed: at least one"));
    }
    if HOST.iter().all(|key| section.given(key.name).is_none()) {
        let allowed = HOST.iter().map(|key| key.name).collect::<Vec<_>>().join(", ");
        return Err(field.error(format!("changes nothing; allowed: {allowed}")));
    }
    let spec = read_keys(&section, usual)?;
    Ok(hosts.into_iter().map(|host| HostAt { host, spec }).collect())
}

fn read_keys(section: &Section<'_>, usual: HostSpec) -> Result<HostSpec, ScenarioError> {
    let time = |name: &str, usual: Dur| section.maybe(name, Field::time).map(|given| given.unwrap_or(usual));
    let timestamp_at = section.maybe("timestamp_at", Field::choice)?.map(|word| match word {
        "acknowledgment" => TimestampAt::Acknowledgment,
        _ => TimestampAt::Arrival,
    });
    Ok(HostSpec {
        receive_cost: time("receive_cost", usual.receive_cost)?,
        interrupts: interrupts(section, usual.interrupts)?,
        timestamp_at: timestamp_at.unwrap_or(usual.timestamp_at),
        timestamp_clock: section.maybe("timestamp_clock", granularity)?.unwrap_or(usual.timestamp_clock),
        ack_cost: time("ack_cost", usual.ack_cost)?,
        timer_error: time("timer_error", usual.timer_error)?,
        send_cost: time("send_cost", usual.send_cost)?,
    })
}

fn interrupts(section: &Section<'_>, usual: Option<Interrupts>) -> Result<Option<Interrupts>, ScenarioError> {
    let usual_after = usual.map_or(Dur::ZERO, |usual| usual.after);
    let after = section.maybe("interrupt_after", Field::time)?.unwrap_or(usual_after);
    let packets = section.maybe("interrupt_packets", Field::whole)?;
    let ring = section.maybe("ring", Field::whole)?.map(|packets| packets as u32);
    let stalls = stalls(section, usual.and_then(|usual| usual.stalls))?;
    if after.is_zero() {
        let given = ["interrupt_packets", "ring", "stall_every"].into_iter().find_map(|name| section.given(name));
        return match given {
            Some(field) => {
                Err(field.error("without interrupt_after; allowed: together with an interrupt_after above 0s"))
            }
            None => Ok(None),
        };
    }
    let packets = packets.map_or(usual.map_or(u32::MAX, |usual| usual.packets), |packets| packets as u32);
    let ring = ring.unwrap_or(usual.map_or(u32::MAX, |usual| usual.ring));
    if let Some(field) = section.given("ring").filter(|_| ring < packets && packets != u32::MAX) {
        return Err(field.error(format!("fewer than wait for an interrupt; allowed: at least {packets}")));
    }
    Ok(Some(Interrupts { packets, after, ring, stalls }))
}

fn stalls(section: &Section<'_>, usual: Option<Stalls>) -> Result<Option<Stalls>, ScenarioError> {
    let mean = |name: &str, usual: Option<Dur>| {
        section.maybe(name, Field::time).map(|given| given.or(usual).unwrap_or_default())
    };
    let every = mean("stall_every", usual.map(|usual| usual.every))?;
    let length = mean("stall_length", usual.map(|usual| usual.length))?;
    match (every.is_zero(), length.is_zero()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some(Stalls { every, length })),
        _ => {
            let field = section.need(if every.is_zero() { "stall_length" } else { "stall_every" })?;
            Err(field.error("without the other; allowed: stall_every and stall_length together"))
        }
    }
}
