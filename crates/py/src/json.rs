//! Values of JSON as Python's.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_scenario::Json;

/// The value in Python's own types: objects are dictionaries.
pub fn to_python<'py>(py: Python<'py>, value: &Json) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Json::Null => Ok(py.None().into_bound(py)),
        Json::Flag(flag) => flag.into_bound_py_any(py),
        Json::Number(number) => number.into_bound_py_any(py),
        Json::Whole(number) => number.into_bound_py_any(py),
        Json::Text(text) => text.into_bound_py_any(py),
        Json::List(list) => {
            list.iter().map(|one| to_python(py, one)).collect::<PyResult<Vec<_>>>()?.into_bound_py_any(py)
        }
        Json::Object(entries) => {
            let out = PyDict::new(py);
            for (key, value) in entries {
                out.set_item(key, to_python(py, value)?)?;
            }
            Ok(out.into_any())
        }
    }
}
