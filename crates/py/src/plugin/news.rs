//! What a controller in Python is told: of an acknowledgment, and of congestion.
//!
//! Each is an object with plain fields, made anew for every call: its fields cost only where they are read, and it can be kept.

use pyo3::prelude::*;
use sparelane_cc::{Ack, Congestion, Cx, Phase};
use sparelane_core::Dur;

/// One acknowledgment of data, after loss detection has run on it.
#[pyclass(frozen, get_all, name = "Ack", module = "sparelane._native")]
pub struct AckNews {
    /// The simulated time, seconds.
    pub now_s: f64,
    /// Bytes newly acknowledged in sequence.
    pub acked_bytes: u64,
    /// Bytes newly known to have arrived, in sequence or by SACK.
    pub delivered_bytes: u64,
    /// Bytes still in flight.
    pub in_flight_bytes: u64,
    /// The round-trip time of the segment that caused the acknowledgment, seconds; `None` where that is ambiguous.
    pub rtt_s: Option<f64>,
    /// The smoothed round-trip time (RFC 6298), seconds, once there is a sample.
    pub srtt_s: Option<f64>,
    /// The least round-trip time of the connection, seconds, once there is a sample.
    pub min_rtt_s: Option<f64>,
    /// The rate of delivery, bits of payload per second, for controllers that need it.
    pub delivery_rate_bps: Option<f64>,
    /// How long the segment was under way, seconds, for controllers that need it.
    pub one_way_delay_s: Option<f64>,
    /// Whether the window, and not a lack of data, was what last stopped the sender.
    pub cwnd_limited: bool,
    /// Whether a loss is being repaired: the window was cut for it already.
    pub in_recovery: bool,
    /// Whether a timeout is being repaired.
    pub after_timeout: bool,
    /// Whether the receiver echoes a congestion mark (ECN).
    pub ecn_echo: bool,
}

fn seconds(span: Option<Dur>) -> Option<f64> {
    span.map(Dur::as_secs_f64)
}

impl AckNews {
    #[inline]
    pub fn of(ack: &Ack, cx: &Cx<'_>) -> AckNews {
        let rate = ack.delivery.and_then(|delivery| delivery.rate(cx.min_rtt));
        AckNews {
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
impl AckNews {
    fn __repr__(&self) -> String {
        let rtt = self.rtt_s.map_or("None".to_owned(), |rtt| rtt.to_string());
        format!(
            "Ack(now_s={}, acked_bytes={}, rtt_s={rtt}, in_flight_bytes={})",
            self.now_s, self.acked_bytes, self.in_flight_bytes
        )
    }
}

/// News of congestion, once per episode.
#[pyclass(frozen, get_all, name = "Congestion", module = "sparelane._native")]
pub struct CongestionNews {
    /// The simulated time, seconds.
    pub now_s: f64,
    /// `loss`, `timeout`, `mark`, `lost-syn`, or `spurious`: the last loss or timeout was mistaken.
    pub kind: &'static str,
    /// Sent and not cumulatively acknowledged, bytes; zero for `lost-syn` and `spurious`.
    pub flight_bytes: u64,
    /// Of a timeout: whether it is a repetition for the same data.
    pub is_repeated: bool,
    /// The smoothed round-trip time (RFC 6298), seconds, once there is a sample.
    pub srtt_s: Option<f64>,
    /// The least round-trip time of the connection, seconds, once there is a sample.
    pub min_rtt_s: Option<f64>,
}

impl CongestionNews {
    pub fn of(event: Congestion, cx: &Cx<'_>) -> CongestionNews {
        let (kind, flight_bytes) = match event {
            Congestion::Loss { flight_bytes } => ("loss", flight_bytes),
            Congestion::Timeout { flight_bytes, .. } => ("timeout", flight_bytes),
            Congestion::Marked { flight_bytes } => ("mark", flight_bytes),
            Congestion::LostSyn => ("lost-syn", 0),
            Congestion::Spurious => ("spurious", 0),
        };
        CongestionNews {
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
impl CongestionNews {
    fn __repr__(&self) -> String {
        format!("Congestion(now_s={}, kind='{}', flight_bytes={})", self.now_s, self.kind, self.flight_bytes)
    }
}
