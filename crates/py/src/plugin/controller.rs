//! Controllers written in Python, adapted to the contract of all controllers.

use super::base::{ControllerBase, checked_pace, checked_window};
use super::events::{PyAck, PyCongestion};
use super::fault;
use super::params::{self, Declared, leaked};
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

/// A class of controllers that is registered under a name.
///
/// It is never freed, because scenarios can use it until the process ends.
#[pyclass(frozen, module = "sparelane._native")]
pub struct ControllerKind(pub Controller);

/// The common data of all controllers of a class.
struct Class {
    name: &'static str,
    class: Py<PyType>,
    params: &'static [Param],
    needs: Needs,
    /// True if the class overrides `limits`.
    has_limits: bool,
    /// Names of the attributes that time series record.
    traced: Vec<&'static str>,
    /// Names of attributes that were checked and can be assigned.
    known: Py<PySet>,
    /// True once the first object has been checked.
    is_tried: AtomicBool,
}

#[pymethods]
impl ControllerKind {
    /// Registers a class. Raises `TypeError` if it is not a controller, and `ValueError` if a name or parameter is
    /// invalid.
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
        let base = class.py().get_type::<ControllerBase>();
        let is_own = |method: &str| Ok::<_, PyErr>(!class.getattr(method)?.is(base.getattr(method)?));
        if !class.is_subclass(&base)? {
            return Err(PyTypeError::new_err("a controller is a class that inherits from sparelane.Controller"));
        }
        let (name, params) = (leaked(name), params::params(params)?);
        let shared: &'static Class = Box::leak(Box::new(Class {
            name,
            class: class.clone().unbind(),
            params,
            needs: needs_of(&needs)?,
            has_limits: is_own("limits")?,
            traced: traced.into_iter().map(leaked).collect(),
            known: PySet::empty(class.py())?.unbind(),
            is_tried: AtomicBool::new(false),
        }));
        let make = Box::leak(Box::new(move |values: &Values, plan: &Blueprint<'_>| {
            match Python::attach(|py| PluginController::new(py, shared, values, plan)) {
                Ok(controller) => Ok(Box::new(controller) as Box<dyn CongestionControl>),
                Err(error) => {
                    let refusal = BuildError::Refused(error.to_string());
                    fault::store(shared.description(), None, error);
                    Err(refusal)
                }
            }
        }));
        let kind = Controller { name, summary: leaked(summary), source: leaked(source), params, wire: None, make };
        // Conflicts with built-in names are reported here, where the class is defined, and not by the first scenario.
        let tried = Registry::clone(&Registry::built_in()).with(kind);
        tried.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(ControllerKind(kind))
    }
}

/// Parses the names in a class's `needs`.
fn needs_of(names: &[String]) -> PyResult<Needs> {
    let mut needs = Needs::default();
    for name in names {
        match name.as_str() {
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

/// The Python module that checks names of attributes.
const ATTRIBUTES: &str = "sparelane.plugins.attributes";

impl Class {
    /// Describes the controller in messages.
    fn description(&self) -> String {
        format!("controller \"{}\"", self.name)
    }

    /// Checks the attributes of an object after `__init__`. Each name is checked once, for the first object that has
    /// it.
    fn check_initial(
        &self,
        object: &Bound<'_, ControllerBase>,
        attributes: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let py = object.py();
        let names = self.unknown(py, attributes)?;
        if self.is_tried.load(Ordering::Relaxed) && names.is_empty() {
            return Ok(());
        }
        py.import(ATTRIBUTES)?.call_method1("check_made", (object, names.clone(), self.traced.clone()))?;
        names.into_iter().try_for_each(|name| self.known.bind(py).add(name))?;
        self.is_tried.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Checks attributes that were assigned after `__init__`.
    ///
    /// # Errors
    /// One of them was not assigned in `__init__`, so it is probably mistyped.
    fn check_late(&self, object: &Bound<'_, ControllerBase>, attributes: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = object.py();
        match self.unknown(py, Some(attributes))?.into_iter().next() {
            Some(name) => py.import(ATTRIBUTES)?.call_method1("refuse_late", (object, name)).map(drop),
            None => Ok(()),
        }
    }

    /// Returns the names of attributes that were not checked.
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

/// The controller of one connection: an object of a Python class.
struct PluginController {
    class: &'static Class,
    object: Py<ControllerBase>,
    // Methods are looked up once, because attribute access is slow.
    /// The bound method `on_ack`.
    on_ack: Py<PyAny>,
    /// The bound method `on_congestion`.
    on_congestion: Py<PyAny>,
    /// The bound method `limits`, if the class overrides it.
    own_limits: Option<Py<PyAny>>,
    /// The object's `__dict__`; `None` for a class with `__slots__`, for which Python itself refuses unknown names.
    attributes: Option<Py<PyDict>>,
    /// The number of attributes after the last call.
    attribute_count: usize,
    limits: Limits,
    mss_bytes: u64,
}

impl PluginController {
    /// Creates an object of the class. Its parameters are attributes before `__init__` runs.
    fn new(py: Python<'_>, class: &'static Class, values: &Values, plan: &Blueprint<'_>) -> PyResult<PluginController> {
        let bound = class.class.bind(py);
        let object =
            bound.call_method1(intern!(py, "__new__"), (bound,))?.cast_into::<ControllerBase>().map_err(PyErr::from)?;
        object.get().connect(plan);
        params::for_each(class.params, values, |name, value| object.setattr(name, value))?;
        object.call_method0(intern!(py, "__init__"))?;
        let attributes = object.getattr_opt(intern!(py, "__dict__"))?;
        let attributes = attributes.map(|attributes| attributes.cast_into::<PyDict>()).transpose()?;
        class.check_initial(&object, attributes.as_ref())?;
        let method = |name: &str| object.getattr(name).map(Bound::unbind);
        let mut controller = PluginController {
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
        controller.limits = controller.read_limits(py)?;
        Ok(controller)
    }

    /// Reads the current window and pace.
    fn read_limits(&self, py: Python<'_>) -> PyResult<Limits> {
        let Some(method) = &self.own_limits else { return Ok(self.object.get().limits()) };
        let returned = method.call0(py)?.into_bound(py);
        let (cwnd_bytes, pace): (f64, Option<f64>) = returned.extract().map_err(|_| invalid_limits(&returned))?;
        let cwnd_bytes = (checked_window(cwnd_bytes, self.mss_bytes)? as u64).max(self.mss_bytes);
        let pacing = pace.map(checked_pace).transpose()?.map(|bps| Rate::from_bps(bps as u64));
        Ok(Limits { cwnd_bytes, pacing })
    }

    /// Checks new attributes and updates the limits after an event.
    fn update(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Some(attributes) = &self.attributes {
            let attributes = attributes.bind(py);
            // The fast path compares only the count, which changes if and only if an attribute is new.
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

    /// Calls a method of the controller, unless a plugin of this run has failed.
    #[inline]
    fn notify(&mut self, cx: &Cx<'_>, call: impl FnOnce(&PluginController, Python<'_>) -> PyResult<Py<PyAny>>) {
        if fault::has_failed() {
            return;
        }
        let outcome = Python::attach(|py| {
            call(self, py)?;
            self.update(py)
        });
        if let Err(error) = outcome {
            fault::store(self.class.description(), Some(cx.now.as_secs_f64()), error);
        }
    }
}

/// Returns the error for an invalid return value of `limits`.
fn invalid_limits(returned: &Bound<'_, PyAny>) -> PyErr {
    let text = returned.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
    let message = format!(
        "limits() returned {text}; allowed: a window in bytes and a pace in bits per second, or None for no pace"
    );
    PyValueError::new_err(message)
}

/// Converts the value of a traced attribute. `None` becomes NaN, which is null in tables.
fn traced_value(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    if value.is_none() {
        return Ok(f64::NAN);
    }
    value.extract().map_err(|_| {
        PyTypeError::new_err(format!("the traced attribute {name} is {}; allowed: a number or None", describe(value)))
    })
}

/// Describes a value and its type, for error messages.
pub fn describe(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
    let kind = value.get_type().name().map_or_else(|_| "unknown type".to_owned(), |name| name.to_string());
    format!("{text} ({kind})")
}

impl fmt::Debug for PluginController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginController")
            .field("name", &self.class.name)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl CongestionControl for PluginController {
    fn needs_one_thread(&self) -> bool {
        true
    }

    fn needs(&self) -> Needs {
        self.class.needs
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.object.get().set_seed(cx.rng.next_u64());
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.notify(cx, |own, py| own.on_ack.call1(py, (PyAck::of(ack, cx),)));
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        self.notify(cx, |own, py| own.on_congestion.call1(py, (PyCongestion::of(event, cx),)));
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
                    Err(error) => fault::store(self.class.description(), None, error),
                }
            }
        });
    }
}
