//! From a scenario's text to its results.

use crate::errors::{Cancelled, physics_error, scenario_error};
use crate::plugin::{PyCatalogue, fault};
use crate::results::Results;
use crate::traces::{self, Asked, Traced};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_core::Time;
use sparelane_scenario::{Catalogue, Scenario, ScenarioError, Size, Source, results};
use sparelane_sim::Simulation;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the simulator keeps to itself before it looks for signals and reports progress.
const SLICE: Duration = Duration::from_millis(50);

/// Events of the first slice; later ones follow the speed that is observed.
const FIRST_SLICE_EVENTS: u64 = 100_000;

/// A scenario that is read and built, and has not run yet.
#[pyclass(frozen, module = "sparelane._native")]
pub struct Prepared(Mutex<Option<Box<Built>>>);

struct Built {
    scenario: Scenario,
    simulation: Simulation,
    stop: Time,
    traced: Vec<Traced>,
}

/// Reads a scenario and builds its network and flows, in a thread of its own, so that signals are heard meanwhile; `waiting` is
/// told for how many seconds that has lasted. With a `catalogue`, which has Python code in it, all happens in this thread.
#[pyfunction]
#[pyo3(signature = (text, source_name, base_dir, overrides, seed=None, waiting=None, catalogue=None, traces=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn prepare(
    py: Python<'_>,
    text: String,
    source_name: String,
    base_dir: PathBuf,
    overrides: Vec<String>,
    seed: Option<u64>,
    waiting: Option<Bound<'_, PyAny>>,
    catalogue: Option<&PyCatalogue>,
    traces: Option<Vec<Asked>>,
) -> PyResult<Prepared> {
    let traces = traces.unwrap_or_default();
    let source = Source { file: source_name, folder: base_dir };
    let job = move |catalogue: &Catalogue| build(catalogue, &text, &source, &overrides, seed, &traces);
    Ok(Prepared(Mutex::new(Some(aside(py, waiting, catalogue, job)?))))
}

/// The size of the run that [`prepare`] would build with the same arguments: a dictionary of `nodes`, `cables`, `flows`,
/// `open_flows`, `bytes` and `warnings`. Nothing is built but the network.
#[pyfunction]
#[pyo3(signature = (text, source_name, base_dir, overrides, seed=None, waiting=None, catalogue=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn size<'py>(
    py: Python<'py>,
    text: String,
    source_name: String,
    base_dir: PathBuf,
    overrides: Vec<String>,
    seed: Option<u64>,
    waiting: Option<Bound<'py, PyAny>>,
    catalogue: Option<&PyCatalogue>,
) -> PyResult<Bound<'py, PyDict>> {
    let source = Source { file: source_name, folder: base_dir };
    let job = move |catalogue: &Catalogue| {
        let scenario = Scenario::parse_with(catalogue, &text, &source, &with_seed(&overrides, seed))?;
        Ok((Size::of(&scenario), scenario.warnings().to_vec()))
    };
    let (size, warnings) = aside(py, waiting, catalogue, job)?;
    let out = PyDict::new(py);
    out.set_item("nodes", size.nodes)?;
    out.set_item("cables", size.cables)?;
    out.set_item("flows", size.flows)?;
    out.set_item("open_flows", size.open_flows)?;
    out.set_item("bytes", size.bytes())?;
    out.set_item("warnings", warnings)?;
    Ok(out)
}

/// Runs `job` in a thread of its own, so that signals are handled meanwhile. `waiting` is called with the seconds that have
/// passed; an exception of its ends the wait. With a `catalogue`, which has Python code in it, the job runs in this thread.
fn aside<T: Send + 'static>(
    py: Python<'_>,
    waiting: Option<Bound<'_, PyAny>>,
    catalogue: Option<&PyCatalogue>,
    job: impl FnOnce(&Catalogue) -> Result<T, ScenarioError> + Send + 'static,
) -> PyResult<T> {
    if let Some(own) = catalogue {
        // Python code of a plugin may run meanwhile: in this thread signals interrupt it.
        let done = py.detach(|| job(&own.0));
        fault::check(py)?;
        py.check_signals()?;
        return done.map_err(|error| scenario_error(py, &error));
    }
    let (sender, mut receiver) = mpsc::channel();
    // Ctrl-C ends the wait below, not this thread, which then ends by itself or with the process.
    thread::spawn(move || {
        let _ = sender.send(job(&Catalogue::built_in()));
    });
    let began = Instant::now();
    loop {
        let answer;
        (receiver, answer) = py.detach(move || {
            let answer = receiver.recv_timeout(SLICE);
            (receiver, answer)
        });
        match answer {
            Ok(done) => return done.map_err(|error| scenario_error(py, &error)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the scenario could not be built: a defect of the simulator"));
            }
        }
        if let Some(waiting) = &waiting {
            waiting.call1((began.elapsed().as_secs_f64(),))?;
        }
    }
}

fn build(
    catalogue: &Catalogue,
    text: &str,
    source: &Source,
    overrides: &[String],
    seed: Option<u64>,
    traces: &[Asked],
) -> Result<Box<Built>, ScenarioError> {
    let scenario = Scenario::parse_with(catalogue, text, source, &with_seed(overrides, seed))?;
    let mut config = scenario.build()?;
    let (observers, traced) = traces::observers(traces, &scenario)?;
    config.observers.extend(observers);
    let stop = config.stop;
    let simulation =
        Simulation::new(config).map_err(|error| ScenarioError::in_file(&source.file, None, error.to_string()))?;
    Ok(Box::new(Built { scenario, simulation, stop, traced }))
}

/// The overrides with the seed as one more: networks may be drawn with it.
fn with_seed(overrides: &[String], seed: Option<u64>) -> Vec<String> {
    overrides.iter().cloned().chain(seed.map(|seed| format!("seed={seed}"))).collect()
}

#[pymethods]
impl Prepared {
    /// Simulates, once only, without the interpreter; `progress` is told the share that is done, and may stop it. Where `keep` is
    /// set, a run that is stopped ends there, and its results are those until then.
    #[pyo3(signature = (progress=None, keep=false))]
    fn run(&self, py: Python<'_>, progress: Option<Bound<'_, PyAny>>, keep: bool) -> PyResult<Results> {
        let built = self.0.lock().ok().and_then(|mut slot| slot.take());
        let mut built = built.ok_or_else(|| PyRuntimeError::new_err("this scenario has run already"))?;
        fault::take();
        let (mut slice_events, mut is_interrupted) = (FIRST_SLICE_EVENTS, false);
        loop {
            let (advanced, took) = py.detach(|| {
                let began = Instant::now();
                (built.simulation.advance(slice_events), began.elapsed())
            });
            fault::check(py)?;
            let reached = advanced.map_err(|violation| physics_error(&violation))?;
            if reached.finished {
                break;
            }
            py.check_signals()?;
            if let Some(progress) = &progress {
                let share = reached.now.as_ps() as f64 / built.stop.as_ps() as f64;
                let answer = progress.call1((share,))?;
                if !answer.is_none() && !answer.is_truthy()? {
                    if !keep {
                        return Err(Cancelled::new_err("the simulation was cancelled"));
                    }
                    is_interrupted = true;
                    break;
                }
            }
            slice_events = next_slice(slice_events, took);
        }
        let Built { scenario, simulation, traced, .. } = *built;
        let finished = py.detach(|| simulation.finish().map(|records| results::Results::new(&scenario, records)));
        fault::check(py)?;
        let finished = finished.map(|results| Results { results, traced: traces::told(&traced), is_interrupted });
        finished.map_err(|violation| physics_error(&violation))
    }
}

/// As many events as fit a slice at the speed of the last one; at most twice as many as then.
fn next_slice(events: u64, took: Duration) -> u64 {
    let fitting = (events as f64 * SLICE.as_secs_f64() / took.as_secs_f64().max(1e-6)) as u64;
    fitting.clamp(1, 2 * events)
}
