//! The base class of controllers in Python: the properties of their connection, and their window and pace.

use super::controller::describe;
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use sparelane_cc::{Blueprint, Limits};
use sparelane_core::Rate;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest window in segments. A sender sends a whole window within one event, so a larger one would stall the run.
const MAX_WINDOW_SEGMENTS: f64 = 1e6;

/// The slowest and the fastest pace in bits per second, the same as for links.
const PACES_BPS: (f64, f64) = (1e3, 1e14);

/// The initial window in segments if a controller sets none (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// Payload bytes of a full segment before the controller is connected.
const DEFAULT_MSS_BYTES: u64 = 1460;

/// A floating-point number that is read and written without a lock.
struct AtomicNumber(AtomicU64);

impl AtomicNumber {
    fn new(value: f64) -> AtomicNumber {
        AtomicNumber(AtomicU64::new(value.to_bits()))
    }

    fn load(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn store(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
}

/// The properties of a connection that a controller can read from the start.
struct Connection {
    mss_bytes: u64,
    flow_bytes: Option<u64>,
    traffic_class: Option<String>,
    line_rate_bps: f64,
}

/// The base class of all controllers in Python. Subclasses define `on_ack` and `on_congestion`.
#[pyclass(frozen, subclass, name = "Controller", module = "sparelane._native")]
pub struct ControllerBase {
    connection: OnceLock<Connection>,
    /// The window in bytes; NaN until it is set.
    cwnd_bytes: AtomicNumber,
    /// The pace in bits per second; NaN without a pace.
    pacing_bps: AtomicNumber,
    seed: AtomicU64,
}

impl ControllerBase {
    /// Sets the properties of the connection.
    pub fn connect(&self, plan: &Blueprint<'_>) {
        let _ = self.connection.set(Connection {
            mss_bytes: plan.mss_bytes,
            flow_bytes: plan.flow_bytes,
            traffic_class: plan.traffic_class.map(str::to_owned),
            line_rate_bps: plan.line_rate.as_bps() as f64,
        });
    }

    /// Sets the seed of the controller's own random draws.
    pub fn set_seed(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
    }

    /// Returns the window and the pace that the attributes set.
    pub fn limits(&self) -> Limits {
        let mss_bytes = self.mss_bytes();
        let pace = self.pacing_bps.load();
        let pacing = (!pace.is_nan()).then(|| Rate::from_bps(pace as u64));
        Limits { cwnd_bytes: (self.cwnd_bytes() as u64).max(mss_bytes), pacing }
    }
}

/// Validates a window in bytes against [`MAX_WINDOW_SEGMENTS`].
pub fn checked_window(bytes: f64, mss_bytes: u64) -> PyResult<f64> {
    let most = MAX_WINDOW_SEGMENTS * mss_bytes as f64;
    if (0.0..=most).contains(&bytes) {
        return Ok(bytes);
    }
    Err(PyValueError::new_err(format!("cwnd_bytes is {bytes}; allowed: bytes from 0 to {most}, a million segments")))
}

/// Validates a pace in bits per second against [`PACES_BPS`].
pub fn checked_pace(bps: f64) -> PyResult<f64> {
    let (least, most) = PACES_BPS;
    if (least..=most).contains(&bps) {
        return Ok(bps);
    }
    Err(PyValueError::new_err(format!(
        "pacing_bps is {bps}; allowed: bits per second from {least} to {most:e}, or None"
    )))
}

/// Converts a number of Python or NumPy. Returns `None` for any other value, including booleans.
fn number(value: &Bound<'_, PyAny>) -> Option<f64> {
    if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() }
}

#[pymethods]
impl ControllerBase {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, pyo3::types::PyTuple>,
        _named: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> ControllerBase {
        let none = || AtomicNumber::new(f64::NAN);
        ControllerBase { connection: OnceLock::new(), cwnd_bytes: none(), pacing_bps: none(), seed: AtomicU64::new(0) }
    }

    /// Called after each acknowledgment. Subclasses must define it.
    fn on_ack(&self, ack: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = ack;
        Err(PyNotImplementedError::new_err("a controller defines on_ack(self, ack)"))
    }

    /// Called once per episode of congestion. Subclasses must define it.
    fn on_congestion(&self, event: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = event;
        Err(PyNotImplementedError::new_err("a controller defines on_congestion(self, event)"))
    }

    /// Returns the window in bytes, and the pace in bits per second or `None`. Called after each event.
    ///
    /// By default these are the attributes `cwnd_bytes` and `pacing_bps`.
    #[pyo3(name = "limits")]
    fn own_limits(&self) -> (f64, Option<f64>) {
        (self.cwnd_bytes(), self.pacing_bps())
    }

    /// The window: bytes that may be in flight. Less than a segment counts as one segment.
    #[getter]
    fn cwnd_bytes(&self) -> f64 {
        let bytes = self.cwnd_bytes.load();
        if bytes.is_nan() { INITIAL_WINDOW * self.mss_bytes() as f64 } else { bytes }
    }

    #[setter]
    fn set_cwnd_bytes(&self, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = number(bytes).ok_or_else(|| {
            PyTypeError::new_err(format!("cwnd_bytes is {}; allowed: a number of bytes", describe(bytes)))
        })?;
        self.cwnd_bytes.store(checked_window(bytes, self.mss_bytes())?);
        Ok(())
    }

    /// The pace in bits per second, which includes 40 bytes of header per segment; `None` sends whenever the window
    /// allows.
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
            PyTypeError::new_err(format!("pacing_bps is {}; allowed: bits per second, or None", describe(bps)))
        })?;
        self.pacing_bps.store(checked_pace(bps)?);
        Ok(())
    }

    /// Payload bytes of a full segment.
    #[getter]
    fn mss_bytes(&self) -> u64 {
        self.connection.get().map_or(DEFAULT_MSS_BYTES, |connection| connection.mss_bytes)
    }

    /// Payload bytes of the flow; `None` for a flow without end.
    #[getter]
    fn flow_bytes(&self) -> Option<u64> {
        self.connection.get().and_then(|connection| connection.flow_bytes)
    }

    /// The traffic class of the flow if its workload names one, otherwise `None`.
    #[getter]
    fn traffic_class(&self) -> Option<&str> {
        self.connection.get().and_then(|connection| connection.traffic_class.as_deref())
    }

    /// The rate of the sender's interface in bits per second.
    #[getter]
    fn line_rate_bps(&self) -> f64 {
        self.connection.get().map_or(1e10, |connection| connection.line_rate_bps)
    }

    /// A seed for the controller's own random draws, derived from the scenario's seed. Zero until the handshake is
    /// complete.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed.load(Ordering::Relaxed)
    }
}
