//! Distributions of flow sizes written in Python: a function that gives samples, which are drawn from with equal chances.
//!
//! All samples are read where a scenario is parsed, and checked there; a run itself calls no Python. Since the distribution is known,
//! so is its mean: a load is what it says.

use super::fault;
use super::params::{self, Declared, stays};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_catalogue::schema::{Form, Key, ScenarioError, Section};
use sparelane_catalogue::workload::{ReadSizes, SizeContext, SizeDistribution, SizeForm};
use sparelane_cc::{Param, Values};
use std::collections::BTreeMap;

/// The most samples.
const MAX_SAMPLES: usize = 10_000_000;

/// The largest sample: a float holds every whole number below.
const MAX_BYTES: f64 = 1e15;

/// A function that is registered as a distribution of sizes.
#[pyclass(frozen, module = "sparelane._native")]
pub struct SizesKind(pub &'static SizeForm);

#[pymethods]
impl SizesKind {
    #[new]
    fn new(
        function: Py<PyAny>,
        name: String,
        summary: String,
        source: String,
        declared: Vec<Declared<'_>>,
    ) -> PyResult<SizesKind> {
        let (name, params) = (stays(name), params::params(declared)?);
        let read: &'static ReadSizes = Box::leak(Box::new(move |section: &Section<'_>, context: &SizeContext<'_>| {
            let values = values_of(section, params)?;
            let samples = Python::attach(|py| samples(py, &function, params, &values, context.seed));
            samples.and_then(distribution).map_err(|error| {
                let refusal = section.whole_table().error(error.to_string());
                fault::keep(format!("sizes \"{name}\""), None, error);
                refusal
            })
        }));
        let keys: Vec<Key> = params.iter().map(Key::declared).collect();
        let form = Form { name, summary: stays(summary), source: stays(source), keys: keys.leak(), read };
        Ok(SizesKind(Box::leak(Box::new(form))))
    }
}

/// What a table gives for these parameters.
pub fn values_of(section: &Section<'_>, params: &'static [Param]) -> Result<Values, ScenarioError> {
    let mut values = Values::default();
    for param in params {
        if let Some(field) = section.given(param.name) {
            values.set(param.name, field.declared(param)?);
        }
    }
    Ok(values)
}

/// The parameters as named arguments.
pub fn arguments<'py>(py: Python<'py>, params: &'static [Param], values: &Values) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    params::for_each(params, values, |name, value| named.set_item(name, value))?;
    Ok(named)
}

/// A generator of Python's for draws under a seed.
pub fn random(py: Python<'_>, seed: u64) -> PyResult<Bound<'_, PyAny>> {
    py.import("random")?.call_method1("Random", (seed,))
}

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
    let listed = listed.map_err(|_| PyTypeError::new_err(format!("{given} is no list; allowed: sizes in bytes")))?;
    for (number, sample) in listed.enumerate() {
        if number >= MAX_SAMPLES {
            return Err(PyValueError::new_err(format!("more than {MAX_SAMPLES} samples; allowed: as many at most")));
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

/// Every sample as likely.
fn distribution(counts: BTreeMap<u64, u64>) -> PyResult<SizeDistribution> {
    let total: u64 = counts.values().sum();
    let points: Vec<_> = counts.iter().map(|(&bytes, &count)| (bytes, count as f64 / total as f64)).collect();
    SizeDistribution::points(&points).map_err(|error| PyValueError::new_err(error.message))
}
