//! Parsing a scenario, building its simulation, and running it.

use crate::errors::{Cancelled, physics_error, scenario_error};
use crate::json::to_python;
use crate::plugin::{PyCatalogue, fault};
use crate::results::Results;
use crate::traces::{self, TraceFile, TraceRequest};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_core::Time;
use sparelane_scenario::{Catalogue, Exported, Scenario, ScenarioError, Size, Source, results, whole_nanoseconds};
use sparelane_sim::{Division, FlowSpec, Machine, Simulation, Threads};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The time for which the simulator runs before it checks for signals and reports progress.
const SLICE: Duration = Duration::from_millis(50);

/// The number of events of the first slice. The sizes of later slices follow from the measured speed.
const FIRST_SLICE_EVENTS: u64 = 100_000;

/// The message for a second run.
const HAS_RUN: &str = "this scenario has run already";

/// A scenario that is parsed and built, but has not run yet. It can run once.
#[pyclass(frozen, module = "sparelane._native")]
pub struct Prepared(Mutex<Option<Box<Built>>>);

struct Built {
    scenario: Scenario,
    simulation: Simulation,
    stop: Time,
    traced: Vec<TraceFile>,
}

/// Parses a scenario and builds its network and flows.
///
/// The work is done in another thread, so that signals are handled meanwhile. `waiting` is called with the seconds that
/// have passed. With a `catalogue`, which can contain Python code, the work is done in this thread. Raises
/// `ScenarioError`. Without `threads`, the scenario decides, and otherwise the size of the run.
#[pyfunction]
#[pyo3(signature = (text, source_name, base_dir, overrides, seed=None, waiting=None, catalogue=None, traces=None, threads=None))]
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
    traces: Option<Vec<TraceRequest>>,
    threads: Option<usize>,
) -> PyResult<Prepared> {
    let traces = traces.unwrap_or_default();
    let source = Source { file: source_name, folder: base_dir };
    let job =
        move |catalogue: &Catalogue| build(catalogue, &text, &source, &with_seed(&overrides, seed), &traces, threads);
    Ok(Prepared(Mutex::new(Some(run_in_thread(py, waiting, catalogue, job)?))))
}

/// Returns the size of the run that `prepare` would build with the same arguments, but builds only the network.
///
/// The result is a dictionary with `nodes`, `cables`, `flows`, `open_flows`, `bytes` (an estimate of memory) and
/// `warnings`. Raises `ScenarioError`.
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
    let (size, warnings) = run_in_thread(py, waiting, catalogue, job)?;
    let out = PyDict::new(py);
    out.set_item("nodes", size.nodes)?;
    out.set_item("cables", size.cables)?;
    out.set_item("flows", size.flows)?;
    out.set_item("open_flows", size.open_flows)?;
    out.set_item("bytes", size.bytes())?;
    out.set_item("warnings", warnings)?;
    Ok(out)
}

/// Runs `job` in another thread, so that signals are handled meanwhile.
///
/// `waiting` is called with the seconds that have passed. If it raises an exception, the wait ends. With a `catalogue`,
/// which can contain Python code, the job runs in this thread.
fn run_in_thread<T: Send + 'static>(
    py: Python<'_>,
    waiting: Option<Bound<'_, PyAny>>,
    catalogue: Option<&PyCatalogue>,
    job: impl FnOnce(&Catalogue) -> Result<T, ScenarioError> + Send + 'static,
) -> PyResult<T> {
    if let Some(own) = catalogue {
        // Signals can interrupt a plugin's Python code only in this thread, which is usually the main thread.
        let done = py.detach(|| job(&own.0));
        fault::check(py)?;
        py.check_signals()?;
        return done.map_err(|error| scenario_error(py, &error));
    }
    let (sender, mut receiver) = mpsc::channel();
    // Ctrl-C ends the wait below. The thread continues until it is done or the process exits.
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
    traces: &[TraceRequest],
    threads: Option<usize>,
) -> Result<Box<Built>, ScenarioError> {
    let scenario = Scenario::parse_with(catalogue, text, source, overrides)?;
    let mut config = scenario.build()?;
    config.machine = machine();
    config.threads = threads.or(scenario.threads()).map_or(Threads::Auto, Threads::Exactly);
    let (observers, traced) = traces::observers(traces, &scenario)?;
    config.observers.extend(observers);
    let stop = config.stop;
    let simulation =
        Simulation::new(config).map_err(|error| ScenarioError::in_file(&source.file, None, error.to_string()))?;
    Ok(Box::new(Built { scenario, simulation, stop, traced }))
}

/// Returns the machine that runs take place on.
fn machine() -> Machine {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    Machine { cores: thread::available_parallelism().map_or(1, usize::from), clock: Some(|| BEGAN.elapsed()) }
}

/// Returns the overrides with the seed added. It is an override because it can also decide the network.
fn with_seed(overrides: &[String], seed: Option<u64>) -> Vec<String> {
    overrides.iter().cloned().chain(seed.map(|seed| format!("seed={seed}"))).collect()
}

#[pymethods]
impl Prepared {
    /// Returns the scenario as plain data: see `sparelane_scenario::Scenario::describe`.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.with_scenario(|scenario| to_python(py, &scenario.describe()))
    }

    /// Returns the number of domains, of threads and of threads that were asked for, and the reason for a single domain if
    /// more threads were asked for.
    fn division(&self) -> PyResult<(usize, usize, usize, Option<String>)> {
        self.with_built(|built| {
            let Division { domains, threads, asked, unsuited, .. } = built.simulation.division();
            Ok((domains, threads, asked, unsuited.map(|reason| reason.to_string())))
        })
    }

    /// Returns the scenario as text that decides the run: see `sparelane_scenario::Scenario::resolved`.
    fn resolved(&self) -> PyResult<String> {
        self.with_scenario(|scenario| Ok(scenario.resolved()))
    }

    /// Returns the flows that start by the end of the run, in order of start, but at most the first `max_flows`: see
    /// `sparelane_scenario::Scenario::planned_flows`.
    fn flows<'py>(&self, py: Python<'py>, max_flows: usize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.with_scenario(|scenario| {
            let flows = scenario.planned_flows(max_flows);
            fault::check(py)?;
            let flows = flows.map_err(|error| scenario_error(py, &error))?;
            let names = [scenario.node_names(), scenario.scheme_names(), scenario.traffic_class_names()];
            flows.iter().map(|flow| flow_row(py, flow, &names)).collect()
        })
    }

    /// Returns the network as the text of a file, `.topo` or with `is_hpcc` that of HPCC's simulator.
    ///
    /// Raises `ScenarioError` if the format cannot state the network.
    fn network_file(&self, py: Python<'_>, is_hpcc: bool) -> PyResult<String> {
        self.with_scenario(|scenario| {
            scenario.network_file(exported(is_hpcc)).map_err(|error| scenario_error(py, &error))
        })
    }

    /// Returns the flows that start by the end of the run, but at most the first `max_flows`, as the text of a file:
    /// `.flows`, or with `is_hpcc` that of HPCC's simulator.
    ///
    /// Raises `ScenarioError` if the format cannot state a flow.
    fn flows_file(&self, py: Python<'_>, is_hpcc: bool, max_flows: usize) -> PyResult<String> {
        self.with_scenario(|scenario| {
            let text = scenario.flows_file(exported(is_hpcc), max_flows);
            fault::check(py)?;
            text.map_err(|error| scenario_error(py, &error))
        })
    }

    /// Runs the simulation without holding the interpreter.
    ///
    /// `progress` is called with the share of simulated time that is done, and stops the run by returning false. A
    /// stopped run raises `Cancelled`, or with `keep` returns the results until then. Raises `RuntimeError` if the
    /// scenario has run already, and `PhysicsError` for a defect of the simulator.
    #[pyo3(signature = (progress=None, keep=false))]
    fn run(&self, py: Python<'_>, progress: Option<Bound<'_, PyAny>>, keep: bool) -> PyResult<Results> {
        let built = self.0.lock().ok().and_then(|mut slot| slot.take());
        let mut built = built.ok_or_else(|| PyRuntimeError::new_err(HAS_RUN))?;
        // An error of an earlier run in this thread must not stop this one.
        fault::take();
        let (mut slice_events, mut is_interrupted) = (FIRST_SLICE_EVENTS, false);
        loop {
            let (advanced, took) = py.detach(|| {
                let began = Instant::now();
                (built.simulation.advance(slice_events), began.elapsed())
            });
            // A plugin's error comes first: it can also have caused a violation of physics.
            fault::check(py)?;
            let reached = advanced.map_err(|violation| physics_error(&violation))?;
            if reached.finished {
                break;
            }
            py.check_signals()?;
            if let Some(progress) = &progress {
                let share = reached.now.as_ps() as f64 / built.stop.as_ps() as f64;
                // A callback without a return value returns `None`, which continues.
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
        let finished = finished.map(|results| Results { results, traced: traces::outcomes(&traced), is_interrupted });
        finished.map_err(|violation| physics_error(&violation))
    }
}

impl Prepared {
    /// Calls `read` with the scenario, which must not have run yet.
    fn with_scenario<T>(&self, read: impl FnOnce(&Scenario) -> PyResult<T>) -> PyResult<T> {
        self.with_built(|built| read(&built.scenario))
    }

    /// Calls `read` with the run, which must not have taken place yet.
    fn with_built<T>(&self, read: impl FnOnce(&Built) -> PyResult<T>) -> PyResult<T> {
        let built = self.0.lock().map_err(|_| PyRuntimeError::new_err(HAS_RUN))?;
        read(built.as_ref().ok_or_else(|| PyRuntimeError::new_err(HAS_RUN))?)
    }
}

/// Returns the format of exported files.
fn exported(is_hpcc: bool) -> Exported {
    if is_hpcc { Exported::Hpcc } else { Exported::Own }
}

/// Returns a flow as a row, with the names of nodes, schemes and classes of traffic.
fn flow_row<'py>(
    py: Python<'py>,
    flow: &FlowSpec,
    [nodes, schemes, classes]: &[Vec<String>; 3],
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("scheme", &schemes[usize::from(flow.scheme)])?;
    row.set_item("src", &nodes[flow.src.index()])?;
    row.set_item("dst", &nodes[flow.dst.index()])?;
    row.set_item("size_bytes", flow.size_bytes)?;
    row.set_item("start_ns", whole_nanoseconds(flow.start.as_ps()))?;
    row.set_item("request", flow.request)?;
    row.set_item("traffic_class", flow.traffic_class.map(|class| &classes[usize::from(class)]))?;
    row.set_item("pool", flow.pool)?;
    Ok(row)
}

/// Returns the number of events that fit into a slice at the speed of the last one, but at most twice as many as
/// before.
fn next_slice(events: u64, took: Duration) -> u64 {
    let fitting = (events as f64 * SLICE.as_secs_f64() / took.as_secs_f64().max(1e-6)) as u64;
    fitting.clamp(1, 2 * events)
}
