//! Emulations for Python, which creates the namespaces and devices and starts the programs.

use crate::errors::{EmulationError, scenario_error};
use crate::results::to_dict;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_core::Dur;
use sparelane_emulate::bridge::Bridge;
use sparelane_emulate::exchange::Exchange;
use sparelane_emulate::handover::Handover;
use sparelane_emulate::plan::{Plan, PlanError};
use sparelane_emulate::self_test;
use sparelane_scenario::{Scenario, Source, columns_of_drops, columns_of_links};
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

fn failed(error: impl Display) -> PyErr {
    EmulationError::new_err(error.to_string())
}

/// An emulation of a scenario. It gets its devices after it is created, and then runs.
#[pyclass(frozen, name = "Emulation", module = "sparelane._native")]
pub struct PyEmulation {
    scenario: Scenario,
    plan: Mutex<Plan>,
    handover: Mutex<Option<Handover>>,
    devices: Mutex<Vec<OwnedFd>>,
    exchange: Mutex<Option<Exchange>>,
    stop: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[pymethods]
impl PyEmulation {
    /// Parses a scenario. Raises `ScenarioError`, or `EmulationError` if no machine can emulate it.
    #[new]
    #[pyo3(signature = (text, source_name, base_dir, overrides, seed=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        source_name: String,
        base_dir: PathBuf,
        overrides: Vec<String>,
        seed: Option<u64>,
    ) -> PyResult<PyEmulation> {
        let source = Source { file: source_name, folder: base_dir };
        let seed = seed.map(|seed| format!("seed={seed}"));
        let overrides: Vec<_> = overrides.into_iter().chain(seed).collect();
        let scenario = Scenario::parse(text, &source, &overrides).map_err(|error| scenario_error(py, &error))?;
        let plan = Plan::new(&scenario).map_err(|error| match error {
            PlanError::Scenario(error) => scenario_error(py, &error),
            other => failed(format!("{}: {other}", source.file)),
        })?;
        Ok(PyEmulation {
            scenario,
            plan: Mutex::new(plan),
            handover: Mutex::new(None),
            devices: Mutex::new(Vec::new()),
            exchange: Mutex::new(None),
            stop: AtomicBool::new(false),
        })
    }

    /// Names and addresses of the hosts, in the order of their devices.
    #[getter]
    fn hosts(&self) -> Vec<(String, String)> {
        let plan = locked(&self.plan);
        plan.hosts.iter().map(|host| (host.name.clone(), host.address.to_string())).collect()
    }

    /// The MTU of devices in bytes.
    #[getter]
    fn mtu_bytes(&self) -> u64 {
        locked(&self.plan).mtu_bytes
    }

    /// Warnings about the scenario.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.scenario.emulation_warnings().to_vec()
    }

    /// The highest rate at which one host can send to another, in bits per second.
    #[getter]
    fn asked_bps(&self) -> u64 {
        locked(&self.plan).max_host_rate.as_bps()
    }

    /// Opens a socket over which devices are sent, and returns its descriptor. The caller must close it.
    fn handover(&self) -> PyResult<i32> {
        let (handover, other) = Handover::new().map_err(failed)?;
        *locked(&self.handover) = Some(handover);
        Ok(other)
    }

    /// Receives the device of the next host. Raises `EmulationError` if none was sent.
    fn take_device(&self) -> PyResult<()> {
        let handover = locked(&self.handover);
        let handover = handover.as_ref().ok_or_else(|| failed("there is no socket for devices"))?;
        locked(&self.devices).push(handover.receive().map_err(failed)?);
        Ok(())
    }

    /// Measures the packet rate and delay error of this machine, in this thread.
    ///
    /// `near` and `far` are the namespaces of the first two hosts. Returns a dictionary with `packets_per_s`,
    /// `rate_bps`, `delay_error_median_s`, `delay_error_p99_s`, `asked_bps`, `allowed_delay_error_s`, and `refusal`:
    /// the reason why the machine is too slow for the scenario, or `None`. Raises `EmulationError` if the test fails.
    fn self_test<'py>(&self, py: Python<'py>, near: PathBuf, far: PathBuf) -> PyResult<Bound<'py, PyDict>> {
        let plan = Plan::for_test(&self.scenario).map_err(failed)?;
        let devices = std::mem::take(&mut *locked(&self.devices));
        let tested = py.detach(move || self_test::run(&plan, devices, [near, far]));
        let (performance, devices) = tested.map_err(|error| failed(format!("the self-test failed: {error}")))?;
        *locked(&self.devices) = devices;
        let (out, plan) = (PyDict::new(py), locked(&self.plan));
        out.set_item("packets_per_s", performance.packets_per_s)?;
        out.set_item("rate_bps", performance.rate.as_bps())?;
        out.set_item("delay_error_median_s", performance.median.as_secs_f64())?;
        out.set_item("delay_error_p99_s", performance.p99.as_secs_f64())?;
        out.set_item("asked_bps", plan.max_host_rate.as_bps())?;
        out.set_item("allowed_delay_error_s", plan.delay_error.as_secs_f64())?;
        out.set_item("refusal", performance.refusal(&plan))?;
        Ok(out)
    }

    /// Forwards packets in this thread until another thread calls `stop`.
    ///
    /// `ready` is called when the network's time starts. Raises `EmulationError` if a device fails.
    fn run(&self, py: Python<'_>, ready: &Bound<'_, PyAny>) -> PyResult<()> {
        let devices = std::mem::take(&mut *locked(&self.devices));
        let bridge = Bridge::new(&locked(&self.plan)).map_err(failed)?;
        let exchange = Exchange::new(bridge, devices).map_err(failed)?;
        ready.call0()?;
        py.detach(|| locked(&self.exchange).insert(exchange).run(&self.stop))
            .map_err(|error| failed(format!("a device of a host is gone: {error}")))
    }

    /// Ends `run`. If it is not running, the next call of it ends at once.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns two tables after the run: one row per link, and one row per link and class.
    ///
    /// Raises `EmulationError` if nothing has run.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let mut exchange = locked(&self.exchange);
        let exchange = exchange.as_mut().ok_or_else(|| failed("nothing has run"))?;
        let (links, nodes) = (exchange.link_table(), self.scenario.node_names());
        Ok((to_dict(py, columns_of_links(&links, &nodes))?, to_dict(py, columns_of_drops(&links, &nodes))?))
    }

    /// Returns counts of packets and statistics of their lateness in seconds after the run.
    ///
    /// Raises `EmulationError` if nothing has run.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let exchange = locked(&self.exchange);
        let exchange = exchange.as_ref().ok_or_else(|| failed("nothing has run"))?;
        let (counts, late) = (exchange.counts(), exchange.lateness());
        let out = PyDict::new(py);
        for (name, count) in [
            ("packets_from_hosts", counts.from_hosts),
            ("packets_to_hosts", counts.to_hosts),
            ("dropped_packets", counts.dropped),
            ("foreign_packets", counts.foreign),
            ("overflowed_packets", counts.overflowed),
            ("refused_packets", exchange.refused()),
        ] {
            out.set_item(name, count)?;
        }
        let seconds = [late.percentile(0.5), late.percentile(0.99), late.max()].map(Dur::as_secs_f64);
        for (name, seconds) in ["late_median_s", "late_p99_s", "late_max_s"].into_iter().zip(seconds) {
            out.set_item(name, seconds)?;
        }
        out.set_item("busy_s", exchange.busy().as_secs_f64())?;
        out.set_item("duration_s", exchange.now().as_secs_f64())?;
        Ok(out)
    }
}
