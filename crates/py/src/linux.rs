//! Controllers inside the Linux kernel, for Python.

use crate::errors::LinuxError;
use pyo3::prelude::*;
use sparelane_bpf::load::{self, Registration, Request};
use sparelane_bpf::loaded;
use sparelane_bpf::programs::{PROGRAMS, find};
use sparelane_bpf::telemetry::{Event, Watch};
use sparelane_core::Rate;
use std::fmt::Display;

fn failed(error: impl Display) -> PyErr {
    LinuxError::new_err(error.to_string())
}

/// Checks the kernel. Returns tuples of check, whether it passed, state, remedy, and whether it is required.
#[pyfunction]
pub fn linux_examine() -> Vec<(&'static str, bool, String, String, bool)> {
    let findings = sparelane_bpf::doctor::examine().into_iter();
    findings.map(|one| (one.what, one.is_well, one.is, one.remedy, one.is_needed)).collect()
}

/// A setting: name, default, allowed values, and meaning.
type Setting = (&'static str, String, String, &'static str);

/// Returns the programs as tuples of name, summary and settings.
///
/// A setting is a tuple of name, default, allowed values, and meaning.
#[pyfunction]
pub fn linux_programs() -> Vec<(&'static str, &'static str, Vec<Setting>)> {
    let settings = |params: Vec<sparelane_cc::Param>| {
        let setting =
            |param: sparelane_cc::Param| (param.name, param.default.to_string(), param.kind.to_string(), param.meaning);
        params.into_iter().map(setting).collect()
    };
    PROGRAMS.iter().map(|program| (program.name, program.summary, settings((program.params)()))).collect()
}

/// Returns the constants of a program with these settings, as the 64-bit numbers of its memory.
///
/// `settings` are pairs of key and text. Raises `LinuxError` if one of them is not allowed.
#[pyfunction]
pub fn linux_constants(program: &str, settings: Vec<(String, String)>, line_rate_bps: u64) -> PyResult<Vec<u64>> {
    let program = find(program).map_err(failed)?;
    let prepared = program.prepared(&settings, Rate::from_bps(line_rate_bps)).map_err(failed)?;
    Ok(prepared.constants.into_iter().map(|(_, number)| number).collect())
}

/// A controller to load.
#[derive(FromPyObject)]
pub struct LoadRequest {
    #[pyo3(item)]
    program: String,
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    settings: Vec<(String, String)>,
    #[pyo3(item)]
    routes: Vec<String>,
    #[pyo3(item)]
    interfaces: Vec<String>,
    #[pyo3(item)]
    cgroups: Vec<String>,
    #[pyo3(item)]
    is_default: bool,
    #[pyo3(item)]
    is_pinned: bool,
}

/// A controller that this process has loaded. Deleting the object unloads the controller.
#[pyclass(name = "LoadedController", unsendable)]
pub struct PyLoadedController(Option<Registration>);

#[pymethods]
impl PyLoadedController {
    /// Loads a controller. Raises `LinuxError`.
    #[new]
    fn new(request: LoadRequest) -> PyResult<PyLoadedController> {
        let LoadRequest { program, name, settings, routes, interfaces, cgroups, is_default, is_pinned } = request;
        let request = Request { program, name, settings, routes, interfaces, cgroups, is_default, is_pinned };
        Ok(PyLoadedController(Some(load::load(&request).map_err(failed)?)))
    }

    /// Keeps a pinned controller loaded when this object is deleted.
    fn keep(&mut self) {
        if let Some(registration) = self.0.take() {
            registration.keep();
        }
    }

    /// Returns warnings about changes of an earlier controller of this name that could not be undone.
    fn warnings(&self) -> Vec<String> {
        self.0.as_ref().map(|registration| registration.warnings().to_vec()).unwrap_or_default()
    }

    /// Returns whether the controller is still loaded; another process may have unloaded it.
    fn is_registered(&self) -> bool {
        self.0.as_ref().is_some_and(Registration::is_registered)
    }

    /// Unloads the controller and undoes its changes. Returns warnings. Raises `LinuxError`.
    fn unload(&mut self) -> PyResult<Vec<String>> {
        self.0.take().map_or(Ok(Vec::new()), |registration| registration.unload().map_err(failed))
    }
}

/// Unloads a controller that any process has loaded with this package, and undoes its changes. Returns warnings.
///
/// Raises `LinuxError` if it is not loaded, was not loaded by this package, or cannot be unloaded.
#[pyfunction]
pub fn linux_unload(name: &str) -> PyResult<Vec<String>> {
    loaded::unload(name).map_err(failed)
}

/// The cost of one operation: name, total nanoseconds, and number of calls.
type Cost = (String, u64, u64);

/// A controller in the kernel: name, program, whether it is pinned, process ID, changed objects, whether it is
/// registered, and costs.
type Row = (String, Option<&'static str>, bool, Option<u32>, Vec<String>, bool, Vec<Cost>);

/// Returns the controllers that BPF programs have registered.
///
/// Each is a tuple of name, program, whether it is pinned, process ID, changed objects, whether it is registered, and a
/// list of operations with nanoseconds and calls. Raises `LinuxError`.
#[pyfunction]
pub fn linux_loaded() -> PyResult<Vec<Row>> {
    let rows = loaded::all().map_err(failed)?.into_iter().map(|one| {
        let cost = one.cost.into_iter().map(|cost| (cost.operation, cost.run_time_ns, cost.calls)).collect();
        (one.name, one.program, one.is_pinned, one.process, one.changed, one.is_registered, cost)
    });
    Ok(rows.collect())
}

/// A sample: time in nanoseconds, connection, local port, remote port, remote address, event, window in segments, round
/// trip in microseconds, and pairs of quantity and value.
type Sample = (u64, u32, u16, u16, String, &'static str, u32, Option<u32>, Vec<(&'static str, f64)>);

/// A watcher of a controller. The controller records samples as long as they are fetched at least every five seconds.
#[pyclass(name = "Watch", unsendable)]
pub struct PyWatch(Watch);

#[pymethods]
impl PyWatch {
    /// Starts to watch a controller. Raises `LinuxError` if it is not loaded.
    #[new]
    fn new(name: &str) -> PyResult<PyWatch> {
        Ok(PyWatch(Watch::start(name).map_err(failed)?))
    }

    /// Returns the samples since the last call, at most `most`.
    fn poll(&self, most: usize) -> PyResult<Vec<Sample>> {
        let samples = self.0.poll(most).map_err(failed)?.into_iter().map(|one| {
            let event = match one.event {
                Event::Acknowledgment => "acknowledgment",
                Event::Departure => "departure",
                Event::Congestion => "congestion",
                Event::End => "end",
            };
            let remote = one.remote.to_string();
            let (local_port, remote_port) = (one.local_port, one.remote_port);
            (
                one.time_ns,
                one.connection,
                local_port,
                remote_port,
                remote,
                event,
                one.cwnd_segments,
                one.rtt_us,
                one.values,
            )
        });
        Ok(samples.collect())
    }
}
