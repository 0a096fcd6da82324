//! One scenario put to the test: what must hold of every run.

use crate::draw::{Drawn, Form, draw};
use sparelane_scenario::{Scenario, Source, digest};
use sparelane_sim::Records;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Events after which a run is cut short.
const MAX_EVENTS: u64 = 200_000;
/// Events after which a run that is to show whether flows end is cut short.
const MAX_EVENTS_TO_END: u64 = 2_000_000;
/// How much longer a run goes on to show that flows end, seconds: several of the longest retransmission timeouts.
const PATIENCE_S: u64 = 300;

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The parser refused the scenario, for this reason.
    Refused(String),
    /// All held; and what was seen.
    Held(Seen),
    /// A panic, a broken law, two results or a stuck flow.
    Failed(String),
}

/// What a run that kept all laws came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Packets times links.
    pub packet_hops: u64,
    /// Flows that started.
    pub flows: u64,
    /// Flows that ended in the time that was drawn.
    pub finished_flows: u64,
    /// Whether the run was cut short.
    pub cut: bool,
    /// Whether a longer run was needed to see that flows end.
    pub longer: bool,
    /// Whether flows were slow to the end of the longer run: they did move, or plain TCP did no better.
    pub slow: bool,
}

/// Scenario number `index` under `seed`, and how it fared.
pub fn trial(seed: u64, index: u64) -> (Drawn, Outcome) {
    let drawn = draw(seed, index);
    let outcome = catch_unwind(AssertUnwindSafe(|| judge(&drawn)));
    (drawn, outcome.unwrap_or_else(|_| Outcome::Failed("a panic".to_owned())))
}

/// A run, and whether it was cut short.
struct Run {
    records: Records,
    cut: bool,
}

fn run(drawn: &Drawn, form: Form, max_events: u64) -> Result<Run, Outcome> {
    let text = drawn.text(form);
    let refused = |error: &dyn ToString| Outcome::Refused(error.to_string());
    let scenario =
        Scenario::parse(&text, &Source::at(Path::new("drawn.toml")), &[]).map_err(|error| refused(&error))?;
    let mut simulation = scenario.simulate().map_err(|error| refused(&error))?;
    let broken = |error: &dyn ToString| Outcome::Failed(format!("a broken law: {}", error.to_string()));
    let progress = simulation.advance(max_events).map_err(|error| broken(&error))?;
    let records = simulation.finish().map_err(|error| broken(&error))?;
    Ok(Run { records, cut: !progress.finished })
}

fn judge(drawn: &Drawn) -> Outcome {
    judged(drawn).unwrap_or_else(|outcome| outcome)
}

fn judged(drawn: &Drawn) -> Result<Outcome, Outcome> {
    let once = run(drawn, Form::AsDrawn, MAX_EVENTS)?;
    let twice = run(drawn, Form::AsDrawn, MAX_EVENTS)?;
    if digest(&once.records) != digest(&twice.records) {
        return Ok(Outcome::Failed("two runs, two digests".to_owned()));
    }
    let totals = once.records.totals;
    let mut seen = Seen {
        packet_hops: totals.packet_hops,
        flows: totals.flows,
        finished_flows: totals.finished_flows,
        cut: once.cut,
        ..Seen::default()
    };
    if once.cut || !drawn.ends || totals.flows == totals.finished_flows {
        return Ok(Outcome::Held(seen));
    }
    seen.longer = true;
    let half = run(drawn, Form::Longer(PATIENCE_S), MAX_EVENTS_TO_END)?;
    if half.records.totals.flows == half.records.totals.finished_flows {
        return Ok(Outcome::Held(seen));
    }
    seen.slow = true;
    let whole = run(drawn, Form::Longer(2 * PATIENCE_S), MAX_EVENTS_TO_END)?;
    if half.cut || whole.cut {
        return Ok(Outcome::Held(Seen { cut: true, ..seen }));
    }
    let stuck = stuck_flow(&half.records, &whole.records);
    let Some(flow) = stuck else { return Ok(Outcome::Held(seen)) };
    let plain = run(drawn, Form::Plain(PATIENCE_S), MAX_EVENTS_TO_END)?;
    if plain.records.totals.flows == plain.records.totals.finished_flows {
        return Ok(Outcome::Failed(format!("flow {flow} is stuck, and with plain TCP it is not")));
    }
    Ok(Outcome::Held(seen))
}

/// A flow that has not ended, and to which not a byte was delivered in the second half of the longer run.
fn stuck_flow(half: &Records, whole: &Records) -> Option<u32> {
    let (flows, before) = (&whole.flows, &half.flows);
    (0..flows.id.len()).find_map(|row| {
        let earlier = before.id.iter().position(|id| *id == flows.id[row])?;
        let same = before.delivered_bytes[earlier] == flows.delivered_bytes[row];
        (same && flows.delivered_bytes[row] < flows.size_bytes[row]).then_some(flows.id[row])
    })
}
