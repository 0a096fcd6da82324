//! The class that controllers in Python inherit from: what they know of their connection, and what they allow.

use super::controller::told;
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use sparelane_cc::{Blueprint, Limits};
use sparelane_core::Rate;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest window, segments: what is larger is sent within one event.
const MAX_WINDOW_SEGMENTS: f64 = 1e6;

/// The slowest and the fastest pace, bits per second, as those of links.
const PACES_BPS: (f64, f64) = (1e3, 1e14);

/// Segments of a new window, where a controller sets none (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// Payload of a full segment, where nobody says otherwise.
const USUAL_MSS_BYTES: u64 = 1460;

/// A number that is read and written without a lock.
struct Number(AtomicU64);

impl Number {
    fn new(value: f64) -> Number {
        Number(AtomicU64::new(value.to_bits()))
    }

    fn load(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn store(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
}

/// What a controller knows of its connection from the start.
struct Connection {
    mss_bytes: u64,
    flow_bytes: Option<u64>,
    traffic_class: Option<String>,
    line_rate_bps: f64,
}

/// The base of all controllers in Python.
#[pyclass(frozen, subclass, name = "Controller", module = "sparelane._native")]
pub struct Base {
    connection: OnceLock<Connection>,
    /// Bytes; NaN where nobody has set it.
    cwnd_bytes: Number,
    /// Bits per second; NaN for none.
    pacing_bps: Number,
    seed: AtomicU64,
}

impl Base {
    /// Tells the controller of its connection.
    pub fn connect(&self, plan: &Blueprint<'_>) {
        let _ = self.connection.set(Connection {
            mss_bytes: plan.mss_bytes,
            flow_bytes: plan.flow_bytes,
            traffic_class: plan.traffic_class.map(str::to_owned),
            line_rate_bps: plan.line_rate.as_bps() as f64,
        });
    }

    /// Gives the controller random draws of its own.
    pub fn set_seed(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
    }

    /// What the attributes allow.
    pub fn limits(&self) -> Limits {
        let mss_bytes = self.mss_bytes();
        let pace = self.pacing_bps.load();
        let pacing = (!pace.is_nan()).then(|| Rate::from_bps(pace as u64));
        Limits { cwnd_bytes: (self.cwnd_bytes() as u64).max(mss_bytes), pacing }
    }
}

/// A window that can be: see [`MAX_WINDOW_SEGMENTS`].
pub fn checked_window(bytes: f64, mss_bytes: u64) -> PyResult<f64> {
    let most = MAX_WINDOW_SEGMENTS * mss_bytes as f64;
    if (0.0..=most).contains(&bytes) {
        return Ok(bytes);
    }
    Err(PyValueError::new_err(format!("cwnd_bytes is {bytes}; allowed: bytes from 0 to {most}, a million segments")))
}

/// A pace that can be: see [`PACES_BPS`].
pub fn checked_pace(bps: f64) -> PyResult<f64> {
    let (least, most) = PACES_BPS;
    if (least..=most).contains(&bps) {
        return Ok(bps);
    }
    Err(PyValueError::new_err(format!(
        "pacing_bps is {bps}; allowed: bits per second from {least} to {most:e}, or None"
    )))
}

/// A number of Python's or NumPy's; `None` for anything else, true and false included.
fn number(value: &Bound<'_, PyAny>) -> Option<f64> {
    if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() }
}

#[pymethods]
impl Base {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, pyo3::types::PyTuple>, _named: Option<&Bound<'_, pyo3::types::PyDict>>) -> Base {
        let none = || Number::new(f64::NAN);
        Base { connection: OnceLock::new(), cwnd_bytes: none(), pacing_bps: none(), seed: AtomicU64::new(0) }
    }

    /// News of an acknowledgment.
    fn on_ack(&self, ack: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = ack;
        Err(PyNotImplementedError::new_err("a controller defines on_ack(self, ack)"))
    }

    /// News of congestion.
    fn on_congestion(&self, event: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = event;
        Err(PyNotImplementedError::new_err("a controller defines on_congestion(self, event)"))
    }

    /// The window, bytes, and the pace, bits per second or `None`: read after all news.
    #[pyo3(name = "limits")]
    fn own_limits(&self) -> (f64, Option<f64>) {
        (self.cwnd_bytes(), self.pacing_bps())
    }

    /// Bytes that may be in flight. Less than a segment counts as one.
    #[getter]
    fn cwnd_bytes(&self) -> f64 {
        let bytes = self.cwnd_bytes.load();
        if bytes.is_nan() { INITIAL_WINDOW * self.mss_bytes() as f64 } else { bytes }
    }

    #[setter]
    fn set_cwnd_bytes(&self, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = number(bytes).ok_or_else(|| {
            PyTypeError::new_err(format!("cwnd_bytes is {}; allowed: a number of bytes", told(bytes)))
        })?;
        self.cwnd_bytes.store(checked_window(bytes, self.mss_bytes())?);
        Ok(())
    }

    /// The pace of segments, bits per second with 40 bytes of header each; `None` sends as the window opens.
    #[getter]
    fn pacing_bps(&self) -> Option<f64> {
        Some(self.pacing_bps.load()).filter(|pace| !pace.is_nan())
    }

    #[setter]
    fn set_pacing_bps(&self, bps: &Bound<'_, PyAny>) -> PyResult<()> {
        if bps.is_none() {
            self.pacing_bps.store(f64::NAN);
            return Ok(());
        }
        let bps = number(bps).ok_or_else(|| {
            PyTypeError::new_err(format!("pacing_bps is {}; allowed: bits per second, or None", told(bps)))
        })?;
        self.pacing_bps.store(checked_pace(bps)?);
        Ok(())
    }

    /// Payload bytes of a full segment.
    #[getter]
    fn mss_bytes(&self) -> u64 {
        self.connection.get().map_or(USUAL_MSS_BYTES, |connection| connection.mss_bytes)
    }

    /// Payload bytes of the flow; `None` where it has no end.
    #[getter]
    fn flow_bytes(&self) -> Option<u64> {
        self.connection.get().and_then(|connection| connection.flow_bytes)
    }

    /// The class of traffic that the flow belongs to, if its workload names one.
    #[getter]
    fn traffic_class(&self) -> Option<&str> {
        self.connection.get().and_then(|connection| connection.traffic_class.as_deref())
    }

    /// The rate of the sender's interface, bits per second.
    #[getter]
    fn line_rate_bps(&self) -> f64 {
        self.connection.get().map_or(1e10, |connection| connection.line_rate_bps)
    }

    /// A number for the controller's own random draws, from the scenario's seed; drawn when the handshake is complete.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed.load(Ordering::Relaxed)
    }
}
