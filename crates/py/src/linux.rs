//! Controllers inside the Linux kernel.

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

/// What was looked at of the kernel: what, whether it is well, how it is, what mends it, whether it is needed.
#[pyfunction]
pub fn linux_examine() -> Vec<(&'static str, bool, String, String, bool)> {
    let findings = sparelane_bpf::doctor::examine().into_iter();
    findings.map(|one| (one.what, one.is_well, one.is, one.remedy, one.is_needed)).collect()
}

/// A setting: its name, default, what is allowed, and what it means.
type Setting = (&'static str, String, String, &'static str);

/// The programs: name, summary, settings.
#[pyfunction]
pub fn linux_programs() -> Vec<(&'static str, &'static str, Vec<Setting>)> {
    let settings = |params: Vec<sparelane_cc::Param>| {
        let words =
            |param: sparelane_cc::Param| (param.name, param.default.to_string(), param.kind.to_string(), param.meaning);
        params.into_iter().map(words).collect()
    };
    PROGRAMS.iter().map(|program| (program.name, program.summary, settings((program.params)()))).collect()
}

/// The constants of a program with these settings, for an interface of that rate, in 64-bit numbers as it holds them.
#[pyfunction]
pub fn linux_constants(program: &str, settings: Vec<(String, String)>, line_rate_bps: u64) -> PyResult<Vec<u64>> {
    let program = find(program).map_err(failed)?;
    let prepared = program.prepared(&settings, Rate::from_bps(line_rate_bps)).map_err(failed)?;
    Ok(prepared.constants.into_iter().map(|(_, number)| number).collect())
}

/// What is asked for.
#[derive(FromPyObject)]
pub struct Asked {
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

/// A controller that this process has loaded; removed with it, unless it is left.
#[pyclass(name = "Holding", unsendable)]
pub struct PyHolding(Option<Registration>);

#[pymethods]
impl PyHolding {
    #[new]
    fn new(asked: Asked) -> PyResult<PyHolding> {
        let Asked { program, name, settings, routes, interfaces, cgroups, is_default, is_pinned } = asked;
        let request = Request { program, name, settings, routes, interfaces, cgroups, is_default, is_pinned };
        Ok(PyHolding(Some(load::load(&request).map_err(failed)?)))
    }

    /// Leaves a pinned controller to itself.
    fn leave(&mut self) {
        if let Some(holding) = self.0.take() {
            holding.keep();
        }
    }

    /// What is worth a word about what an earlier one of that name had left.
    fn remarks(&self) -> Vec<String> {
        self.0.as_ref().map(|holding| holding.warnings().to_vec()).unwrap_or_default()
    }

    /// Whether it is loaded still: another process may have unloaded it.
    fn is_registered(&self) -> bool {
        self.0.as_ref().is_some_and(Registration::is_registered)
    }

    /// Removes the controller; returns what is worth a word.
    fn unload(&mut self) -> PyResult<Vec<String>> {
        self.0.take().map_or(Ok(Vec::new()), |holding| holding.unload().map_err(failed))
    }
}

/// Removes a controller, whoever of ours has loaded it; returns what is worth a word.
#[pyfunction]
pub fn linux_unload(name: &str) -> PyResult<Vec<String>> {
    loaded::unload(name).map_err(failed)
}

/// What one operation has cost: its name, nanoseconds in all, calls.
type Cost = (String, u64, u64);

/// A controller in the kernel: name, program, whether pinned, process, what was changed, whether registered, costs.
type Row = (String, Option<&'static str>, bool, Option<u32>, Vec<String>, bool, Vec<Cost>);

/// What is loaded.
#[pyfunction]
pub fn linux_loaded() -> PyResult<Vec<Row>> {
    let rows = loaded::all().map_err(failed)?.into_iter().map(|one| {
        let cost = one.cost.into_iter().map(|cost| (cost.operation, cost.run_time_ns, cost.calls)).collect();
        (one.name, one.program, one.is_pinned, one.process, one.changed, one.is_registered, cost)
    });
    Ok(rows.collect())
}

/// A sample: time, connection, port, remote port, remote address, event, window, round trip, quantities.
type Told = (u64, u32, u16, u16, String, &'static str, u32, Option<u32>, Vec<(&'static str, f64)>);

/// Somebody who watches a controller.
#[pyclass(name = "Watch", unsendable)]
pub struct PyWatch(Watch);

#[pymethods]
impl PyWatch {
    #[new]
    fn new(name: &str) -> PyResult<PyWatch> {
        Ok(PyWatch(Watch::start(name).map_err(failed)?))
    }

    /// What was told since the last call, at most so many samples.
    fn poll(&self, most: usize) -> PyResult<Vec<Told>> {
        let told = self.0.poll(most).map_err(failed)?.into_iter().map(|one| {
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
        Ok(told.collect())
    }
}
