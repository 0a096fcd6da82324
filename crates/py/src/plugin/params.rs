//! Parameters that plugins declare, converted to those of the catalogue.
//!
//! Declarations are never freed. There is one per registered class or function.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sparelane_cc::param::{DefaultValue, Kind, Unit};
use sparelane_cc::{Param, Value, Values};
use sparelane_core::{Dur, Rate};

/// Leaks a text, so that it lives until the process ends.
pub fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// A parameter as `sparelane.plugins.params` declares it.
#[derive(FromPyObject)]
pub struct Declared<'py> {
    #[pyo3(item)]
    name: String,
    /// `whole`, `number`, `flag`, `choice`, `time`, `rate` or `size`.
    #[pyo3(item)]
    kind: String,
    #[pyo3(item)]
    default: Bound<'py, PyAny>,
    #[pyo3(item)]
    min: f64,
    #[pyo3(item)]
    max: f64,
    #[pyo3(item)]
    choices: Vec<String>,
    #[pyo3(item)]
    unit: String,
    #[pyo3(item)]
    doc: String,
    #[pyo3(item)]
    source: String,
}

impl Declared<'_> {
    /// Converts the declaration. Times are in seconds, rates in bits per second, sizes in bytes.
    fn param(self) -> PyResult<Param> {
        let unit = if self.unit.is_empty() { Unit::One } else { Unit::Named(leaked(self.unit)) };
        let (min, max) = (self.min, self.max);
        let (kind, default) = match self.kind.as_str() {
            "flag" => (Kind::Flag, DefaultValue::Flag(self.default.extract()?)),
            "choice" => {
                let words: Vec<&'static str> = self.choices.into_iter().map(leaked).collect();
                (Kind::Choice(words.leak()), DefaultValue::Word(leaked(self.default.extract()?)))
            }
            "whole" => {
                (Kind::Whole { min: min as u64, max: max as u64, unit }, DefaultValue::Whole(self.default.extract()?))
            }
            "number" => (Kind::Number { min, max, unit }, DefaultValue::Number(self.default.extract()?)),
            "time" => {
                let span = |seconds: f64| Dur::from_ps((seconds * 1e12).round() as u64);
                (Kind::Span { min: span(min), max: span(max) }, DefaultValue::Span(span(self.default.extract()?)))
            }
            "rate" => {
                let rate = |bps: f64| Rate::from_bps(bps as u64);
                let default = DefaultValue::Rate(Some(rate(self.default.extract()?)));
                (Kind::Rate { min: rate(min), max: rate(max) }, default)
            }
            "size" => {
                let default = DefaultValue::Size(self.default.extract::<f64>()? as u64);
                (Kind::Size { min: min as u64, max: max as u64 }, default)
            }
            other => return Err(PyValueError::new_err(format!("there is no kind of parameter \"{other}\""))),
        };
        let (name, meaning, source) = (leaked(self.name), leaked(self.doc), leaked(self.source));
        // The default must satisfy the declared bounds, too.
        let param = Param { name, kind, default, meaning, source };
        param.check(&default.into()).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(param)
    }
}

/// Converts declarations, and checks that their names are unique. The result is leaked.
pub fn params(declared: Vec<Declared<'_>>) -> PyResult<&'static [Param]> {
    let params = declared.into_iter().map(Declared::param).collect::<PyResult<Vec<_>>>()?;
    if let Some(twice) = (1..params.len()).find(|&at| params[..at].iter().any(|other| other.name == params[at].name)) {
        return Err(PyValueError::new_err(format!("the parameter \"{}\" is declared twice", params[twice].name)));
    }
    Ok(params.leak())
}

/// Calls `put` with the name and value of each parameter. Times are in seconds, rates in bits per second, sizes in
/// bytes.
pub fn for_each(
    params: &'static [Param],
    values: &Values,
    mut put: impl FnMut(&'static str, PyValue) -> PyResult<()>,
) -> PyResult<()> {
    params.iter().try_for_each(|param| {
        let value = values.given(param.name).cloned().unwrap_or_else(|| param.default.into());
        put(param.name, PyValue::of(value))
    })
}

/// A value of a parameter in Python.
#[derive(IntoPyObject)]
pub enum PyValue {
    /// A boolean.
    Flag(bool),
    /// An integer: a count or bytes.
    Whole(u64),
    /// A float: a number, seconds, or bits per second.
    Number(f64),
    /// A text: one of several choices.
    Word(String),
}

impl PyValue {
    fn of(value: Value) -> PyValue {
        match value {
            Value::Flag(flag) => PyValue::Flag(flag),
            Value::Whole(number) | Value::Size(number) => PyValue::Whole(number),
            Value::Number(number) => PyValue::Number(number),
            Value::Span(span) => PyValue::Number(span.as_secs_f64()),
            Value::Rate(rate) => PyValue::Number(rate.unwrap_or_default().as_bps() as f64),
            Value::Word(word) => PyValue::Word(word),
            other => PyValue::Word(other.to_string()),
        }
    }
}
