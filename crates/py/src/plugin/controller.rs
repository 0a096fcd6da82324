//! Controllers written in Python, behind the contract that all controllers keep.

use super::base::{Base, checked_pace, checked_window};
use super::fault;
use super::news::{AckNews, CongestionNews};
use super::params::{self, Declared, stays};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySet, PyType};
use sparelane_cc::registry::BuildError;
use sparelane_cc::{
    Ack, Blueprint, Congestion, CongestionControl, Controller, Cx, Limits, Needs, Param, Registry, Values,
};
use sparelane_core::Rate;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A class of controllers that is registered under a name. It stays: scenarios may use it as long as the process lives.
#[pyclass(frozen, module = "sparelane._native")]
pub struct ControllerKind(pub Controller);

/// What all controllers of a class have in common.
struct Class {
    name: &'static str,
    class: Py<PyType>,
    params: &'static [Param],
    needs: Needs,
    /// Whether it has a `limits` of its own.
    has_limits: bool,
    /// Attributes that time series record.
    traced: Vec<&'static str>,
    /// Names of attributes that have been checked and may be assigned.
    known: Py<PySet>,
    /// Set once the first object has been checked.
    is_tried: AtomicBool,
}

#[pymethods]
impl ControllerKind {
    #[new]
    fn new(
        class: &Bound<'_, PyType>,
        name: String,
        summary: String,
        source: String,
        params: Vec<Declared<'_>>,
        needs: Vec<String>,
        traced: Vec<String>,
    ) -> PyResult<ControllerKind> {
        let base = class.py().get_type::<Base>();
        let is_own = |method: &str| Ok::<_, PyErr>(!class.getattr(method)?.is(base.getattr(method)?));
        if !class.is_subclass(&base)? {
            return Err(PyTypeError::new_err("a controller is a class that inherits from sparelane.Controller"));
        }
        let (name, params) = (stays(name), params::params(params)?);
        let shared: &'static Class = Box::leak(Box::new(Class {
            name,
            class: class.clone().unbind(),
            params,
            needs: needs_of(&needs)?,
            has_limits: is_own("limits")?,
            traced: traced.into_iter().map(stays).collect(),
            known: PySet::empty(class.py())?.unbind(),
            is_tried: AtomicBool::new(false),
        }));
        let make = Box::leak(Box::new(move |values: &Values, plan: &Blueprint<'_>| {
            match Python::attach(|py| Law::new(py, shared, values, plan)) {
                Ok(law) => Ok(Box::new(law) as Box<dyn CongestionControl>),
                Err(error) => {
                    let refusal = BuildError::Refused(error.to_string());
                    fault::keep(shared.whose(), None, error);
                    Err(refusal)
                }
            }
        }));
        let kind = Controller { name, summary: stays(summary), source: stays(source), params, make };
        // Names and parameters are checked against what is built in at once, where the class is.
        let tried = Registry::clone(&Registry::built_in()).with(kind);
        tried.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(ControllerKind(kind))
    }
}

/// What the words of a class ask for.
fn needs_of(words: &[String]) -> PyResult<Needs> {
    let mut needs = Needs::default();
    for word in words {
        match word.as_str() {
            "delivery_rate" => needs.segments = true,
            "one_way_delay" => needs.one_way_delay = true,
            "exact_marks" => needs.exact_marks = true,
            other => {
                let allowed = "allowed: delivery_rate, one_way_delay, exact_marks";
                return Err(PyValueError::new_err(format!("needs has \"{other}\"; {allowed}")));
            }
        }
    }
    Ok(needs)
}

/// The module that judges names of attributes.
const JUDGE: &str = "sparelane.plugins.attributes";

impl Class {
    fn whose(&self) -> String {
        format!("controller \"{}\"", self.name)
    }

    /// Checks the attributes of an object after `__init__`. Each name is checked once, for the first object that has it.
    fn accept_made(&self, object: &Bound<'_, Base>, attributes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let py = object.py();
        let names = self.unknown(py, attributes)?;
        if self.is_tried.load(Ordering::Relaxed) && names.is_empty() {
            return Ok(());
        }
        py.import(JUDGE)?.call_method1("check_made", (object, names.clone(), self.traced.clone()))?;
        names.into_iter().try_for_each(|name| self.known.bind(py).add(name))?;
        self.is_tried.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Checks attributes that were assigned after `__init__`.
    ///
    /// # Errors
    /// One of them is not known: it is probably mistyped, since a controller declares its attributes.
    fn check_late(&self, object: &Bound<'_, Base>, attributes: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = object.py();
        match self.unknown(py, Some(attributes))?.into_iter().next() {
            Some(name) => py.import(JUDGE)?.call_method1("refuse_late", (object, name)).map(drop),
            None => Ok(()),
        }
    }

    /// Names of attributes that have not been checked.
    fn unknown<'py>(
        &self,
        py: Python<'py>,
        attributes: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let known = self.known.bind(py);
        let mut names = Vec::new();
        for (name, _) in attributes.into_iter().flatten() {
            if !known.contains(&name)? {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// One controller of one connection.
struct Law {
    class: &'static Class,
    object: Py<Base>,
    /// Its methods, looked up once.
    on_ack: Py<PyAny>,
    on_congestion: Py<PyAny>,
    own_limits: Option<Py<PyAny>>,
    /// Its attributes; `None` for a class with `__slots__`, for which Python itself refuses unknown ones.
    attributes: Option<Py<PyDict>>,
    /// The number of its attributes after the last call.
    attribute_count: usize,
    limits: Limits,
    mss_bytes: u64,
}

impl Law {
    /// An object of the class, with its parameters as attributes before `__init__` runs.
    fn new(py: Python<'_>, class: &'static Class, values: &Values, plan: &Blueprint<'_>) -> PyResult<Law> {
        let bound = class.class.bind(py);
        let object = bound.call_method1(intern!(py, "__new__"), (bound,))?.cast_into::<Base>().map_err(PyErr::from)?;
        object.get().connect(plan);
        params::for_each(class.params, values, |name, value| object.setattr(name, value))?;
        object.call_method0(intern!(py, "__init__"))?;
        let attributes = object.getattr_opt(intern!(py, "__dict__"))?;
        let attributes = attributes.map(|attributes| attributes.cast_into::<PyDict>()).transpose()?;
        class.accept_made(&object, attributes.as_ref())?;
        let method = |name: &str| object.getattr(name).map(Bound::unbind);
        let mut law = Law {
            class,
            on_ack: method("on_ack")?,
            on_congestion: method("on_congestion")?,
            own_limits: if class.has_limits { Some(method("limits")?) } else { None },
            limits: object.get().limits(),
            object: object.clone().unbind(),
            attribute_count: attributes.as_ref().map_or(0, |attributes| attributes.len()),
            attributes: attributes.map(Bound::unbind),
            mss_bytes: plan.mss_bytes,
        };
        law.limits = law.read_limits(py)?;
        Ok(law)
    }

    /// What the controller allows now.
    fn read_limits(&self, py: Python<'_>) -> PyResult<Limits> {
        let Some(method) = &self.own_limits else { return Ok(self.object.get().limits()) };
        let said = method.call0(py)?.into_bound(py);
        let (cwnd_bytes, pace): (f64, Option<f64>) = said.extract().map_err(|_| no_limits(&said))?;
        let cwnd_bytes = (checked_window(cwnd_bytes, self.mss_bytes)? as u64).max(self.mss_bytes);
        let pacing = pace.map(checked_pace).transpose()?.map(|bps| Rate::from_bps(bps as u64));
        Ok(Limits { cwnd_bytes, pacing })
    }

    /// Takes over what the controller allows after news.
    fn follow(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Some(attributes) = &self.attributes {
            let attributes = attributes.bind(py);
            // The count alone is compared on the fast path; it changes only if an attribute is new.
            if attributes.len() != self.attribute_count {
                self.class.check_late(self.object.bind(py), attributes)?;
                self.attribute_count = attributes.len();
            }
        }
        let limits = self.read_limits(py)?;
        if limits.pacing.is_some() != self.limits.pacing.is_some() {
            let had = if self.limits.pacing.is_some() { "had a pace" } else { "had none" };
            let message =
                format!("pacing_bps: the connection {had} when it began; allowed: a pace from __init__ on, or never");
            return Err(PyValueError::new_err(message));
        }
        self.limits = limits;
        Ok(())
    }

    /// Tells the controller something, unless Python code of this run has failed.
    #[inline]
    fn tell(&mut self, cx: &Cx<'_>, news: impl FnOnce(&Law, Python<'_>) -> PyResult<Py<PyAny>>) {
        if fault::has_failed() {
            return;
        }
        let told = Python::attach(|py| {
            news(self, py)?;
            self.follow(py)
        });
        if let Err(error) = told {
            fault::keep(self.class.whose(), Some(cx.now.as_secs_f64()), error);
        }
    }
}

/// The error where `limits` returned something else than limits.
fn no_limits(said: &Bound<'_, PyAny>) -> PyErr {
    let told = said.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
    let message = format!(
        "limits() returned {told}; allowed: a window in bytes and a pace in bits per second, or None for no pace"
    );
    PyValueError::new_err(message)
}

/// The value of a traced attribute; NaN, which becomes null, for `None`.
fn traced_value(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if value.is_none() {
        return Ok(f64::NAN);
    }
    value.extract().map_err(|_| {
        PyTypeError::new_err(format!("the traced attribute {name} is {}; allowed: a number or None", told(value)))
    })
}

/// A value and its type, for messages.
pub fn told(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
    let kind = value.get_type().name().map_or_else(|_| "unknown type".to_owned(), |name| name.to_string());
    format!("{text} ({kind})")
}

impl fmt::Debug for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Law").field("name", &self.class.name).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl CongestionControl for Law {
    fn needs(&self) -> Needs {
        self.class.needs
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.object.get().set_seed(cx.rng.next_u64());
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.tell(cx, |law, py| law.on_ack.call1(py, (AckNews::of(ack, cx),)));
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        self.tell(cx, |law, py| law.on_congestion.call1(py, (CongestionNews::of(event, cx),)));
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.limits.cwnd_bytes as f64);
        if self.class.traced.is_empty() || fault::has_failed() {
            return;
        }
        Python::attach(|py| {
            for name in &self.class.traced {
                match self.object.bind(py).getattr(*name).and_then(|value| traced_value(name, &value)) {
                    Ok(value) => put(name, value),
                    Err(error) => fault::keep(self.class.whose(), None, error),
                }
            }
        });
    }
}
