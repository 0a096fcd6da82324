//! Measurements of a path, for Python.

use crate::wire::{Settings, address, failed, span};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_core::{Dur, Rate};
use sparelane_net::node::path::Mark;
use sparelane_net::node::settings;
use sparelane_net::probe::host::path_to;
use sparelane_net::probe::{Delays, ProbePlan, Served};

/// Measures rate, delays, MTU and the treatment of classes on the path to a receiver.
///
/// `to` returns the receiver's address; it is called after the settings are validated. The load lasts `load_s` seconds
/// and is at most `most_rate`. Raises `WireError`.
#[pyfunction]
pub fn measure_path<'py>(
    py: Python<'py>,
    settings: Settings,
    to: Bound<'py, PyAny>,
    load_s: f64,
    most_rate: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let config = settings.config()?;
    let load = Dur::from_ps((span(load_s)?.as_nanos() as u64).saturating_mul(1000));
    let most_rate = settings::rate(most_rate).filter(|rate| rate.as_bps() > 0);
    let most_rate =
        most_rate.ok_or_else(|| failed("cannot read the load's rate; allowed: a rate such as \"100Mbps\""))?;
    let to = address(&to.call0()?.extract::<String>()?)?;
    // The measurement holds no interpreter, so signals are checked in its callback.
    let mut signal = None;
    let mut goes_on = || {
        let checked = Python::attach(|py| py.check_signals());
        let goes_on = checked.is_ok();
        signal = checked.err();
        goes_on
    };
    let measured = py.detach(|| path_to(&config, to, ProbePlan { load, most_rate }, &mut goes_on));
    if let Some(signal) = signal {
        return Err(signal);
    }
    let (report, offload) = measured.map_err(failed)?;
    let out = PyDict::new(py);
    let bps = |rate: Option<Rate>| rate.map(|rate| rate.as_bps());
    out.set_item("rate_bps", bps(report.rate))?;
    out.set_item("load_bps", bps(report.load.map(|load| load.0)))?;
    out.set_item("arrived_bps", bps(report.load.map(|load| load.1)))?;
    out.set_item("tail_bps", bps(report.tail_rate))?;
    out.set_item("mtu_bytes", report.mtu_bytes)?;
    out.set_item("gso", offload.sends)?;
    out.set_item("gro", offload.receives)?;
    let mut classes = vec![];
    for (class, &mark) in report.marks.iter().enumerate() {
        let row = PyDict::new(py);
        row.set_item("class", class)?;
        row.set_item("dscp", config.udp.dscp.get(class))?;
        row.set_item("mark", mark_name(mark))?;
        row.set_item("arrives_as", if let Mark::Changed(dscp) = mark { Some(dscp) } else { None })?;
        row.set_item("served", served_name(report.served[class]))?;
        row.set_item("idle", delays(py, report.idle.get(class))?)?;
        row.set_item("loaded", delays(py, report.loaded.get(class))?)?;
        classes.push(row);
    }
    out.set_item("classes", classes)?;
    Ok(out)
}

/// Returns the name of the treatment of a code point on the path.
pub fn mark_name(mark: Mark) -> &'static str {
    match mark {
        Mark::Unknown => "unknown",
        Mark::Kept => "kept",
        Mark::Changed(_) => "changed",
    }
}

fn served_name(served: Served) -> &'static str {
    match served {
        Served::Unknown => "unknown",
        Served::First => "first",
        Served::Worse => "worse",
        Served::Alike => "alike",
    }
}

fn delays<'py>(py: Python<'py>, delays: Option<&Delays>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(delays) = delays else { return Ok(None) };
    let out = PyDict::new(py);
    out.set_item("sent", delays.sent)?;
    out.set_item("loss", delays.loss())?;
    for (name, share) in [("min_s", 0.0), ("median_s", 0.5), ("p90_s", 0.9), ("p99_s", 0.99)] {
        out.set_item(name, delays.percentile(share).map(Dur::as_secs_f64))?;
    }
    Ok(Some(out))
}
