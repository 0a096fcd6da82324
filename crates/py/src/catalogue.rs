//! The catalogue of names that scenarios can use, as dictionaries.

use crate::plugin::PyCatalogue;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sparelane_scenario::aliases::{self as other_names, Alias};
use sparelane_scenario::{Catalogue, Document, Entry, Parameter};

/// Returns all kinds of controllers, queues, topologies and workloads, with their parameters, as dictionaries.
///
/// Lists the entries of `catalogue`, or the built-in ones.
#[pyfunction]
#[pyo3(signature = (catalogue=None))]
pub fn catalogue<'py>(py: Python<'py>, catalogue: Option<&PyCatalogue>) -> PyResult<Bound<'py, PyList>> {
    let entries = sparelane_scenario::catalogue(&catalogue.map_or_else(Catalogue::built_in, |own| own.0.clone()));
    let entries = entries.iter().map(|entry| to_dict(py, entry)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, entries)
}

/// Returns the JSON Schema of scenarios, or of sweeps, as text.
///
/// It allows the entries of `catalogue`, or the built-in ones.
#[pyfunction]
#[pyo3(signature = (catalogue=None, is_sweep=false))]
pub fn json_schema(catalogue: Option<&PyCatalogue>, is_sweep: bool) -> String {
    let catalogue = catalogue.map_or_else(Catalogue::built_in, |own| own.0.clone());
    let document = if is_sweep { Document::Sweep } else { Document::Scenario };
    sparelane_scenario::json_schema(&catalogue, document).to_string()
}

/// Returns the aliases of `word`, or all of them, including names of things that are not built in.
#[pyfunction]
#[pyo3(signature = (word=None))]
pub fn aliases<'py>(py: Python<'py>, word: Option<&str>) -> PyResult<Bound<'py, PyList>> {
    let one = |alias: &Alias| {
        let out = PyDict::new(py);
        out.set_item("words", alias.words.to_vec())?;
        out.set_item("names", alias.names.to_vec())?;
        out.set_item("keys", alias.keys.to_vec())?;
        out.set_item("remark", alias.remark)?;
        out.set_item("is_here", alias.is_here)?;
        Ok(out)
    };
    let found: Vec<&Alias> = match word {
        Some(word) => other_names::of(word).collect(),
        None => other_names::ALIASES.iter().collect(),
    };
    PyList::new(py, found.into_iter().map(one).collect::<PyResult<Vec<_>>>()?)
}

/// Returns a name in lower case, without hyphens, underscores, spaces and periods, and without `tcp` at either end.
#[pyfunction]
pub fn normalized(name: &str) -> String {
    other_names::normalized(name)
}

/// Returns advice for a word that is an alias or a misspelling of a name in `allowed`, or `None`.
///
/// The advice begins with `; `, so that it can follow an error message.
#[pyfunction]
pub fn name_advice(word: &str, allowed: Vec<String>) -> Option<String> {
    other_names::advice(word, allowed.iter().map(String::as_str))
}

fn to_dict<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyDict>> {
    let Entry { kind, name, summary, source, forms: _, params } = entry;
    let params = params.iter().map(|param| parameter(py, param)).collect::<PyResult<Vec<_>>>()?;
    let out = PyDict::new(py);
    out.set_item("kind", kind)?;
    out.set_item("name", name)?;
    out.set_item("summary", summary)?;
    out.set_item("source", source)?;
    out.set_item("params", params)?;
    Ok(out)
}

fn parameter<'py>(py: Python<'py>, param: &Parameter) -> PyResult<Bound<'py, PyDict>> {
    let Parameter { name, default, allowed, meaning, source, takes, .. } = param;
    let out = PyDict::new(py);
    for (key, value) in
        [("name", *name), ("default", default), ("allowed", allowed), ("meaning", *meaning), ("source", *source)]
    {
        out.set_item(key, value)?;
    }
    out.set_item("takes", *takes)?;
    Ok(out)
}
