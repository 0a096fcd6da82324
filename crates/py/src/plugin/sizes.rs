//! Distributions of flow sizes written in Python: functions that return samples, from which sizes are drawn with equal
//! probability.
//!
//! All samples are read and validated when the scenario is parsed. The run itself calls no Python code. The mean of the
//! distribution is therefore known exactly, so that a workload offers the load that its scenario states.

use super::fault;
use super::params::{self, Declared, leaked};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_catalogue::schema::{Form, Key, ScenarioError, Section};
use sparelane_catalogue::workload::{ReadSizes, SizeContext, SizeDistribution, SizeForm};
use sparelane_cc::{Param, Values};
use std::collections::BTreeMap;

/// The largest number of samples.
const MAX_SAMPLES: usize = 10_000_000;

/// The largest sample in bytes. A float represents every integer below it exactly.
const MAX_BYTES: f64 = 1e15;

/// A function that is registered as a distribution of sizes.
#[pyclass(frozen, module = "sparelane._native")]
pub struct SizesKind(pub &'static SizeForm);

#[pymethods]
impl SizesKind {
    /// Registers a function. Raises `ValueError` if a parameter is invalid.
    #[new]
    fn new(
        function: Py<PyAny>,
        name: String,
        summary: String,
        source: String,
        declared: Vec<Declared<'_>>,
    ) -> PyResult<SizesKind> {
        let (name, params) = (leaked(name), params::params(declared)?);
        let read: &'static ReadSizes = Box::leak(Box::new(move |section: &Section<'_>, context: &SizeContext<'_>| {
            let values = values_of(section, params)?;
            let samples = Python::attach(|py| samples(py, &function, params, &values, context.seed));
            samples.and_then(distribution).map_err(|error| {
                let refusal = section.whole_table().error(error.to_string());
                fault::store(format!("sizes \"{name}\""), None, error);
                refusal
            })
        }));
        let keys: Vec<Key> = params.iter().map(Key::declared).collect();
        let form = Form { name, summary: leaked(summary), source: leaked(source), keys: keys.leak(), read };
        Ok(SizesKind(Box::leak(Box::new(form))))
    }
}

/// Returns the values that a table of a scenario sets for these parameters.
pub fn values_of(section: &Section<'_>, params: &'static [Param]) -> Result<Values, ScenarioError> {
    let mut values = Values::default();
    for param in params {
        if let Some(field) = section.given(param.name) {
            values.set(param.name, field.declared(param)?);
        }
    }
    Ok(values)
}

/// Returns all parameters with their values as keyword arguments.
pub fn arguments<'py>(py: Python<'py>, params: &'static [Param], values: &Values) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    params::for_each(params, values, |name, value| named.set_item(name, value))?;
    Ok(named)
}

/// Returns a `random.Random` with this seed.
pub fn random(py: Python<'_>, seed: u64) -> PyResult<Bound<'_, PyAny>> {
    py.import("random")?.call_method1("Random", (seed,))
}

/// Calls the function, and returns the number of samples of each size in bytes.
fn samples(
    py: Python<'_>,
    function: &Py<PyAny>,
    params: &'static [Param],
    values: &Values,
    seed: u64,
) -> PyResult<BTreeMap<u64, u64>> {
    let given = function.bind(py).call((random(py, seed)?,), Some(&arguments(py, params, values)?))?;
    let mut counts = BTreeMap::new();
    let listed = given.try_iter();
    let listed = listed.map_err(|_| {
        PyTypeError::new_err(format!("{given} is not iterable; allowed: an iterable of sizes in bytes"))
    })?;
    for (number, sample) in listed.enumerate() {
        if number >= MAX_SAMPLES {
            return Err(PyValueError::new_err(format!("more than {MAX_SAMPLES} samples; allowed: at most that many")));
        }
        let sample = sample?;
        let bytes: f64 = sample
            .extract()
            .map_err(|_| PyTypeError::new_err(format!("sample {number} is {sample}; allowed: a number of bytes")))?;
        if !(1.0..=MAX_BYTES).contains(&bytes) {
            let message = format!("sample {number} is {bytes} bytes; allowed: 1 to {MAX_BYTES:e}");
            return Err(PyValueError::new_err(message));
        }
        *counts.entry(bytes as u64).or_default() += 1;
    }
    Ok(counts)
}

/// Returns the distribution in which every sample has the same probability.
fn distribution(counts: BTreeMap<u64, u64>) -> PyResult<SizeDistribution> {
    let total: u64 = counts.values().sum();
    let points: Vec<_> = counts.iter().map(|(&bytes, &count)| (bytes, count as f64 / total as f64)).collect();
    SizeDistribution::points(&points).map_err(|error| PyValueError::new_err(error.message))
}
