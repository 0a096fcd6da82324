//! `[sample]`: time series of flows, queues and cables.

use sparelane_catalogue::schema::Field;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::nodes;
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_core::Dur;
use sparelane_sim::observe::{Probe, SeriesSpec};
use sparelane_sim::{Network, NodeId};

/// The most samples per probe.
const MAX_SAMPLES: u64 = 10_000_000;

/// A flow's number.
const NUMBER: Kind = Kind::Whole { min: 0, max: u32::MAX as u64 };

/// The keys of `[sample]`.
pub static SAMPLE: &[Key] = &[
    Key::new("interval", Kind::SPAN, Fallback::Value("10ms"), "the time between samples"),
    Key::new(
        "flows",
        Kind::Special("a list of flow numbers, as in [0, 1]", &Shape::List(&Shape::Of(NUMBER))),
        Fallback::Value("[]"),
        "flows, by their number in order of start: window, in flight, round-trip time, and what the controller traces",
    ),
    Key::new(
        "queues",
        Kind::Special(
            "a list of pairs of nodes, as in [[\"r0\", \"r1\"]]",
            &Shape::List(&Shape::Pair(&Shape::Of(Kind::Node))),
        ),
        Fallback::Value("[]"),
        "output queues, from one node towards the next: bytes queued",
    ),
    Key::new(
        "links",
        Kind::Special(
            "a list of pairs of nodes, as in [[\"r0\", \"r1\"]]",
            &Shape::List(&Shape::Pair(&Shape::Of(Kind::Node))),
        ),
        Fallback::Value("[]"),
        "cables, from one node towards the next: bytes that reached the far end since the previous sample, and those that \
         a link with a trace or a changing rate could have sent",
    ),
];

/// Reads `[sample]`.
pub fn read(field: Field<'_>, network: &Network, duration: Dur) -> Result<SeriesSpec, ScenarioError> {
    let section = field.section(&[SAMPLE])?;
    let interval_field = section.need("interval")?;
    let interval = interval_field.time()?;
    if duration.as_ps() / interval.as_ps() > MAX_SAMPLES {
        return Err(interval_field.error(format!(
            "more than {MAX_SAMPLES} samples in {duration}; allowed: {} or longer",
            Dur::from_ps(duration.as_ps() / MAX_SAMPLES + 1)
        )));
    }
    let mut probes = Vec::new();
    for flow in section.need("flows")?.list(NUMBER)? {
        probes.push(Probe::Flow(flow.whole()? as u32));
    }
    for key in ["queues", "links"] {
        for ends in section
            .need(key)?
            .list(Kind::Special("a pair of nodes, as in [\"r0\", \"r1\"]", &Shape::Pair(&Shape::Of(Kind::Node))))?
        {
            let [from, to] = nodes::pair(&ends)?;
            let (_, from, to) = nodes::cable(&from, &to, network)?;
            probes.push(if key == "links" { Probe::Link(from, to) } else { Probe::Queue(from, to) });
        }
    }
    if probes.is_empty() {
        return Err(section.whole_table().error("nothing to sample; allowed: flows, queues, links"));
    }
    Ok(SeriesSpec { interval, probes })
}

/// The name of a probe in tables: `flow 0`, or `r0->r1`.
pub fn probe_name(probe: &Probe, network: &Network) -> String {
    match probe {
        Probe::Flow(id) => format!("flow {id}"),
        Probe::Queue(from, to) | Probe::Link(from, to) => {
            let name = |id: &NodeId| network.nodes[id.index()].name.as_str();
            format!("{}->{}", name(from), name(to))
        }
    }
}
