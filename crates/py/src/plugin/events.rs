//! The events that a controller in Python receives: acknowledgments and congestion.
//!
//! Each call gets a new object with plain fields, so a controller can keep it. A field is converted to Python only when
//! it is read.

use pyo3::prelude::*;
use sparelane_cc::{Ack, Congestion, Cx, Phase};
use sparelane_core::Dur;

/// One acknowledgment of data, after loss detection has run on it.
#[pyclass(frozen, get_all, name = "Ack", module = "sparelane._native")]
pub struct PyAck {
    /// The simulated time in seconds.
    pub now_s: f64,
    /// Bytes newly acknowledged in sequence.
    pub acked_bytes: u64,
    /// Bytes newly reported as received, in sequence or by SACK.
    pub delivered_bytes: u64,
    /// Bytes still in flight.
    pub in_flight_bytes: u64,
    /// The round-trip time in seconds of the segment that caused the acknowledgment; `None` if it is ambiguous.
    pub rtt_s: Option<f64>,
    /// The smoothed round-trip time in seconds (RFC 6298); `None` before the first sample.
    pub srtt_s: Option<f64>,
    /// The smallest round-trip time of the connection in seconds; `None` before the first sample.
    pub min_rtt_s: Option<f64>,
    /// The delivery rate in bits of payload per second, for controllers that need `delivery_rate`; otherwise `None`.
    pub delivery_rate_bps: Option<f64>,
    /// The one-way delay of the segment in seconds, for controllers that need `one_way_delay`; otherwise `None`.
    pub one_way_delay_s: Option<f64>,
    /// True if the window limited the sender, as opposed to a lack of data.
    pub cwnd_limited: bool,
    /// True while a loss is repaired for which the window was already cut.
    pub in_recovery: bool,
    /// True while a timeout is repaired.
    pub after_timeout: bool,
    /// True if the receiver echoes a congestion mark (ECN).
    pub ecn_echo: bool,
}

fn seconds(span: Option<Dur>) -> Option<f64> {
    span.map(Dur::as_secs_f64)
}

impl PyAck {
    #[inline]
    pub fn of(ack: &Ack, cx: &Cx<'_>) -> PyAck {
        let rate = ack.delivery.and_then(|delivery| delivery.rate(cx.min_rtt));
        PyAck {
            now_s: cx.now.as_secs_f64(),
            acked_bytes: ack.acked_bytes,
            delivered_bytes: ack.delivered_bytes,
            in_flight_bytes: ack.in_flight_bytes,
            rtt_s: seconds(ack.rtt),
            srtt_s: seconds(cx.srtt),
            min_rtt_s: seconds(cx.min_rtt),
            delivery_rate_bps: rate.map(|rate| rate.as_bps() as f64),
            one_way_delay_s: seconds(ack.one_way_delay),
            cwnd_limited: ack.cwnd_limited,
            in_recovery: ack.phase == Phase::Recovery,
            after_timeout: ack.phase == Phase::Timeout,
            ecn_echo: ack.ecn_echo,
        }
    }
}

#[pymethods]
impl PyAck {
    fn __repr__(&self) -> String {
        let rtt = self.rtt_s.map_or("None".to_owned(), |rtt| rtt.to_string());
        format!(
            "Ack(now_s={}, acked_bytes={}, rtt_s={rtt}, in_flight_bytes={})",
            self.now_s, self.acked_bytes, self.in_flight_bytes
        )
    }
}

/// An event of congestion, reported once per episode.
#[pyclass(frozen, get_all, name = "Congestion", module = "sparelane._native")]
pub struct PyCongestion {
    /// The simulated time in seconds.
    pub now_s: f64,
    /// The kind: `loss`, `timeout`, `mark`, `lost-syn`, or `spurious` if the last loss or timeout proved to be
    /// mistaken.
    pub kind: &'static str,
    /// Bytes that were sent and not cumulatively acknowledged; zero for `lost-syn` and `spurious`.
    pub flight_bytes: u64,
    /// True for a repeated timeout of the same data; false for other kinds.
    pub is_repeated: bool,
    /// The smoothed round-trip time in seconds (RFC 6298); `None` before the first sample.
    pub srtt_s: Option<f64>,
    /// The smallest round-trip time of the connection in seconds; `None` before the first sample.
    pub min_rtt_s: Option<f64>,
}

impl PyCongestion {
    pub fn of(event: Congestion, cx: &Cx<'_>) -> PyCongestion {
        let (kind, flight_bytes) = match event {
            Congestion::Loss { flight_bytes } => ("loss", flight_bytes),
            Congestion::Timeout { flight_bytes, .. } => ("timeout", flight_bytes),
            Congestion::Marked { flight_bytes, .. } => ("mark", flight_bytes),
            Congestion::LostSyn => ("lost-syn", 0),
            Congestion::Spurious => ("spurious", 0),
        };
        PyCongestion {
            now_s: cx.now.as_secs_f64(),
            kind,
            flight_bytes,
            is_repeated: matches!(event, Congestion::Timeout { first: false, .. }),
            srtt_s: seconds(cx.srtt),
            min_rtt_s: seconds(cx.min_rtt),
        }
    }
}

#[pymethods]
impl PyCongestion {
    fn __repr__(&self) -> String {
        format!("Congestion(now_s={}, kind='{}', flight_bytes={})", self.now_s, self.kind, self.flight_bytes)
    }
}
