//! Results of a run as NumPy arrays, one per column.

use numpy::{IntoPyArray, PyArray1};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_scenario::columns::{Column, Data, Table};
use sparelane_scenario::results::{
    self, cross_traffic_columns, delay_columns, drop_columns, flow_columns, link_columns, packet_columns,
    series_columns,
};
use std::path::PathBuf;

/// All results of a run.
#[pyclass(frozen, module = "sparelane._native")]
pub struct Results {
    /// The records of the simulator.
    pub results: results::Results,
    /// The files of traces: path, number of packets or events, and the error that ended it, if any.
    pub traced: Vec<(PathBuf, u64, Option<PyErr>)>,
    /// True if the run was stopped before its end.
    pub is_interrupted: bool,
}

#[pymethods]
impl Results {
    /// The digest of all results, in hexadecimal digits.
    #[getter]
    fn digest(&self) -> &str {
        &self.results.digest
    }

    /// The seed of all random draws.
    #[getter]
    fn seed(&self) -> u64 {
        self.results.seed
    }

    /// Warnings about the scenario.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.results.warnings.clone()
    }

    /// The version of the simulator.
    #[getter]
    fn version(&self) -> &str {
        &self.results.version
    }

    /// The scenario as it ran, as TOML.
    #[getter]
    fn scenario(&self) -> &str {
        &self.results.scenario
    }

    /// The files of traces: path, number of packets or events, and the error that ended it, if any.
    #[getter]
    fn traces(&self, py: Python<'_>) -> Vec<(PathBuf, u64, Option<Py<PyAny>>)> {
        let error = |error: &PyErr| error.value(py).clone().into_any().unbind();
        self.traced.iter().map(|(path, count, failed)| (path.clone(), *count, failed.as_ref().map(error))).collect()
    }

    /// True if the run was stopped before its end.
    #[getter]
    fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Totals of the run.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = &self.results.records.totals;
        let out = PyDict::new(py);
        out.set_item("events", totals.events)?;
        out.set_item("packet_hops", totals.packet_hops)?;
        out.set_item("flows", totals.flows)?;
        out.set_item("finished_flows", totals.finished_flows)?;
        out.set_item("end_s", totals.end_ps as f64 / 1e12)?;
        out.set_item("peak_open_flows", totals.peak_open_flows)?;
        Ok(out)
    }

    /// One row per flow, in order of start.
    fn flows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, flow_columns(&self.results))
    }

    /// One row per direction of a cable.
    fn links<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, link_columns(&self.results))
    }

    /// One row per direction of a cable and priority class.
    fn drops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, drop_columns(&self.results))
    }

    /// One row per source of cross traffic.
    fn cross_traffic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, cross_traffic_columns(&self.results))
    }

    /// One row per scheme, class of traffic and bin of one-way delays of packets.
    fn delays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, delay_columns(&self.results))
    }

    /// One row per data packet of the logged flow, in order of sending.
    fn packets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, packet_columns(&self.results))
    }

    /// One row per sample of one quantity.
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        to_dict(py, series_columns(&self.results))
    }
}

/// Converts a table to a dictionary of columns.
pub(crate) fn to_dict(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for (name, column) in table {
        out.set_item(name, to_python(py, column)?)?;
    }
    Ok(out)
}

/// Converts a column to NumPy arrays: values; values with a mask of valid ones if some are missing; or, for texts,
/// codes with their dictionary, and a mask if some are missing.
fn to_python(py: Python<'_>, column: Column) -> PyResult<Bound<'_, PyAny>> {
    let values = match column.data {
        Data::U32(values) => values.into_pyarray(py).into_any(),
        Data::U64(values) => values.into_pyarray(py).into_any(),
        Data::F64(values) => values.into_pyarray(py).into_any(),
        Data::Flags(values) => values.into_pyarray(py).into_any(),
        Data::Text { codes, dictionary } => {
            let codes = codes.into_pyarray(py);
            return match column.valid {
                Some(valid) => (codes, dictionary, PyArray1::from_vec(py, valid)).into_bound_py_any(py),
                None => (codes, dictionary).into_bound_py_any(py),
            };
        }
    };
    match column.valid {
        Some(valid) => (values, PyArray1::from_vec(py, valid)).into_bound_py_any(py),
        None => Ok(values),
    }
}
