//! The declared settings of the wire, as dictionaries.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sparelane_cc::{DefaultValue, Kind, Value};
use sparelane_net::service::{SETTINGS, Setting};

/// Returns the settings of the wire, in the order of help texts, as dictionaries.
#[pyfunction]
pub fn wire_settings(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, SETTINGS.iter().map(|setting| to_dict(py, setting)).collect::<PyResult<Vec<_>>>()?)
}

fn to_dict<'py>(py: Python<'py>, setting: &Setting) -> PyResult<Bound<'py, PyDict>> {
    let Setting { param, unset, option, commands, .. } = setting;
    let out = PyDict::new(py);
    out.set_item("name", param.name)?;
    out.set_item("option", option)?;
    out.set_item("commands", commands.to_vec())?;
    out.set_item("meaning", param.meaning)?;
    out.set_item("unset", unset)?;
    out.set_item("allowed", param.kind.to_string().trim_end())?;
    let unit = |unit: &dyn std::fmt::Display| unit.to_string();
    let (kind, unit, choices) = match param.kind {
        Kind::Whole { min, max, unit: of } => {
            out.set_item("bounds", (min, max))?;
            ("whole", unit(&of), &[][..])
        }
        Kind::Number { min, max, unit: of } => {
            out.set_item("bounds", (min, max))?;
            ("number", unit(&of), &[][..])
        }
        Kind::Flag => ("flag", String::new(), &[][..]),
        Kind::Choice(words) => ("choice", String::new(), words),
        Kind::Rate { .. } => ("rate", "rate".to_owned(), &[][..]),
        Kind::Size { .. } => ("size", "size".to_owned(), &[][..]),
        _ => ("numbers", "list".to_owned(), &[][..]),
    };
    out.set_item("kind", kind)?;
    out.set_item("unit", unit)?;
    out.set_item("choices", choices.to_vec())?;
    out.set_item("default", default(py, setting)?)?;
    Ok(out)
}

/// The default as an object of Python: a number, a truth value, a text or a tuple; `None` if it is no fixed value.
fn default<'py>(py: Python<'py>, setting: &Setting) -> PyResult<Option<Bound<'py, PyAny>>> {
    if setting.unset.is_some() {
        return Ok(None);
    }
    Ok(Some(match setting.param.default {
        DefaultValue::Whole(number) => number.into_pyobject(py)?.into_any(),
        DefaultValue::Number(number) => number.into_pyobject(py)?.into_any(),
        DefaultValue::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        DefaultValue::List(list) => pyo3::types::PyTuple::new(py, list)?.into_any(),
        DefaultValue::Size(bytes) => size_text(bytes).into_pyobject(py)?.into_any(),
        DefaultValue::Word(word) => word.into_pyobject(py)?.into_any(),
        other => Value::from(other).to_string().into_pyobject(py)?.into_any(),
    }))
}

/// Formats a size with the largest unit that divides it, as users write sizes.
fn size_text(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1000)];
    let unit = units.iter().find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor));
    unit.map_or_else(|| format!("{bytes}B"), |(name, factor)| format!("{}{name}", bytes / factor))
}
