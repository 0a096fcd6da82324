//! The trial of one scenario: the properties that every run must have.

use super::draw::{Drawn, Form, draw};
use sparelane_core::{Domain, Dur, Stream};
use sparelane_scenario::{Scenario, ScenarioError, Source, digest};
use sparelane_sim::{Division, Records, RunConfig, Simulation, Threads};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The number of events after which a run is cut short.
const MAX_EVENTS: u64 = 200_000;
/// The number of events after which a run that should show the end of flows is cut short.
const MAX_EVENTS_TO_END: u64 = 2_000_000;
/// The extra time to show that flows end, in seconds: several of the longest retransmission timeouts.
const EXTRA_TIME_S: u64 = 300;
/// The extra time after which a flow without progress is stuck, in seconds. It has 300 of the longest retransmission
/// timeouts. If ten links lose a fifth of the packets each, a flow loses that many copies in a row with a probability
/// of 1e-15; it loses those of five minutes once in a few thousand times.
const PATIENCE_S: u64 = 20_000;

/// The most windows of a run on several threads, which wait for each other at the end of each.
const MAX_MEETINGS: u64 = 10_000;

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The parser refused the scenario, for this reason.
    Refused(String),
    /// All properties hold.
    Held(Seen),
    /// A panic, a violated invariant, two different results or a stuck flow.
    Failed(String),
}

/// The measurements of a run with all properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Packets times links.
    pub packet_hops: u64,
    /// Flows that started.
    pub flows: u64,
    /// Flows that ended within the drawn duration.
    pub finished_flows: u64,
    /// True if the run was cut short.
    pub cut: bool,
    /// True if a longer run was needed to see that flows end.
    pub longer: bool,
    /// True if flows were slow until the end of the longer run: they made progress, or plain TCP did no better.
    pub slow: bool,
    /// Domains and threads of the run in random domains: one if the scenario needs that, zero if it was cut short.
    pub domains: usize,
    pub threads: usize,
}

/// Draws scenario number `index` under `seed`, and tries it.
pub fn trial(seed: u64, index: u64) -> (Drawn, Outcome) {
    let drawn = draw(seed, index);
    let outcome = catch_unwind(AssertUnwindSafe(|| judge(&drawn, &mut Stream::new(seed, Domain::Test, index))));
    (drawn, outcome.unwrap_or_else(|_| Outcome::Failed("a panic".to_owned())))
}

/// Runs a scenario. Also returns true if it was cut short.
struct Run {
    records: Records,
    cut: bool,
}

fn run(drawn: &Drawn, form: Form, max_events: u64) -> Result<Run, Outcome> {
    finish(parse(drawn, form)?.simulate().map_err(|error| refused(&error))?, max_events)
}

fn parse(drawn: &Drawn, form: Form) -> Result<Scenario, Outcome> {
    let source = Source { file: "drawn.toml".to_owned(), folder: scratch() };
    Scenario::parse(&drawn.text(form), &source, &[]).map_err(|error| refused(&error))
}

fn finish(mut simulation: Simulation, max_events: u64) -> Result<Run, Outcome> {
    let broken = |error: &dyn Error| Outcome::Failed(format!("a broken law: {error}"));
    let progress = simulation.advance(max_events).map_err(|error| broken(&error))?;
    let records = simulation.finish().map_err(|error| broken(&error))?;
    Ok(Run { records, cut: !progress.finished })
}

fn refused(error: &ScenarioError) -> Outcome {
    Outcome::Refused(error.to_string())
}

/// Runs a scenario without observers in random domains on up to seven threads, and compares the records with those of a
/// run in one domain. Returns the division; a single domain if the scenario needs one.
fn divided(drawn: &Drawn, rng: &mut Stream) -> Result<Division, Outcome> {
    let form = Form::Longer(0);
    let most = 2 + rng.below(6);
    let nodes = parse(drawn, form)?.build().map_err(|error| refused(&error))?.network.nodes.len();
    let labels: Vec<_> = (0..nodes).map(|_| rng.below(most) as u16).collect();
    let threads = [2, 2, 3, 7][rng.below(4) as usize];
    let divide = |threads| {
        let config = parse(drawn, form)?.build().map_err(|error| refused(&error))?;
        let config = RunConfig { domains: Some(labels.clone()), threads: Threads::Exactly(threads), ..config };
        Simulation::new(config).map_err(|error| Outcome::Failed(format!("cannot be divided: {error}")))
    };
    let mut parts = divide(threads)?;
    let windows = Dur::from_us(drawn.duration_us).as_ps() / parts.division().lookahead.as_ps().max(1);
    if windows > MAX_MEETINGS {
        parts = divide(1)?;
    }
    let division = parts.division();
    if division.domains > 1 {
        let whole = run(drawn, form, u64::MAX)?;
        let parts = finish(parts, u64::MAX)?;
        if digest(&whole.records) != digest(&parts.records) {
            return Err(Outcome::Failed(format!("other records in domains: {division:?}")));
        }
    }
    Ok(division)
}

/// Tries a scenario. Its random division is drawn from `rng`.
pub fn judge(drawn: &Drawn, rng: &mut Stream) -> Outcome {
    if let Err(error) = write_traces(drawn, &scratch()) {
        return Outcome::Failed(format!("cannot write a trace to {}: {error}", scratch().display()));
    }
    let outcome = judged(drawn, rng).unwrap_or_else(|outcome| outcome);
    for (name, _) in &drawn.traces {
        let _ = std::fs::remove_file(scratch().join(name));
    }
    outcome
}

/// Writes the traces of a scenario to its folder.
pub fn write_traces(drawn: &Drawn, folder: &Path) -> std::io::Result<()> {
    if !drawn.traces.is_empty() {
        std::fs::create_dir_all(folder)?;
    }
    drawn.traces.iter().try_for_each(|(name, content)| std::fs::write(folder.join(name), content))
}

/// The folder of this process for traces of the scenario that runs.
fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("sparelane-explore-{}", std::process::id()))
}

fn judged(drawn: &Drawn, rng: &mut Stream) -> Result<Outcome, Outcome> {
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
    if !once.cut {
        let Division { domains, threads, .. } = divided(drawn, rng)?;
        (seen.domains, seen.threads) = (domains, threads);
    }
    if once.cut || !drawn.ends || totals.flows == totals.finished_flows {
        return Ok(Outcome::Held(seen));
    }
    seen.longer = true;
    let half = run(drawn, Form::Longer(EXTRA_TIME_S), MAX_EVENTS_TO_END)?;
    if half.records.totals.flows == half.records.totals.finished_flows {
        return Ok(Outcome::Held(seen));
    }
    seen.slow = true;
    let mut before = half;
    let mut stuck = None;
    for seconds in [2 * EXTRA_TIME_S, PATIENCE_S] {
        let after = run(drawn, Form::Longer(seconds), MAX_EVENTS_TO_END)?;
        if before.cut || after.cut {
            return Ok(Outcome::Held(Seen { cut: true, ..seen }));
        }
        stuck = stuck_flow(&before.records, &after.records);
        if stuck.is_none() {
            break;
        }
        before = after;
    }
    let Some(flow) = stuck else { return Ok(Outcome::Held(seen)) };
    let plain = run(drawn, Form::Plain(PATIENCE_S), MAX_EVENTS_TO_END)?;
    if plain.records.totals.flows == plain.records.totals.finished_flows {
        return Ok(Outcome::Failed(format!("flow {flow} is stuck, and with plain TCP it is not")));
    }
    Ok(Outcome::Held(seen))
}

/// A flow that has not ended in the longer of two runs, and got no byte after the end of the shorter one.
fn stuck_flow(shorter: &Records, longer: &Records) -> Option<u32> {
    let (flows, before) = (&longer.flows, &shorter.flows);
    (0..flows.id.len()).find_map(|row| {
        let earlier = before.id.iter().position(|id| *id == flows.id[row])?;
        let same = before.delivered_bytes[earlier] == flows.delivered_bytes[row];
        (same && flows.delivered_bytes[row] < flows.size_bytes[row]).then_some(flows.id[row])
    })
}
