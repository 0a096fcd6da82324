//! The parameters of BBRv3.

use super::Bbr3;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use sparelane_core::Dur;

const DRAFT: &str = "draft-ietf-ccwg-bbr-06";

pub(super) const INITIAL_WINDOW: Param = Param {
    name: "initial_window",
    kind: Kind::Whole { min: 1, max: 10_000, unit: Unit::Segments },
    default: DefaultValue::Whole(10),
    meaning: "congestion window at the start",
    source: "RFC 6928",
};

pub(super) const LOSS_THRESHOLD: Param = Param {
    name: "loss_threshold",
    kind: Kind::Number { min: 0.0, max: 0.5, unit: Unit::One },
    default: DefaultValue::Number(0.02),
    meaning: "share of losses in a round trip above which too much is in flight",
    source: DRAFT,
};

pub(super) const BETA: Param = Param {
    name: "beta",
    kind: Kind::Number { min: 0.1, max: 0.99, unit: Unit::One },
    default: DefaultValue::Number(0.7),
    meaning: "minimum share of a bound that is kept after losses",
    source: DRAFT,
};

pub(super) const HEADROOM: Param = Param {
    name: "headroom",
    kind: Kind::Number { min: 0.0, max: 0.9, unit: Unit::One },
    default: DefaultValue::Number(0.15),
    meaning: "share of inflight_longterm left to other flows while cruising",
    source: DRAFT,
};

pub(super) const PROBE_RTT_INTERVAL: Param = Param {
    name: "probe_rtt_interval",
    kind: Kind::Span { min: Dur::from_ms(10), max: Dur::from_secs(3600) },
    default: DefaultValue::Span(Dur::from_secs(5)),
    meaning: "time without a lower round-trip time after which PROBE_RTT begins",
    source: DRAFT,
};

pub(super) const PROBE_RTT_TIME: Param = Param {
    name: "probe_rtt_time",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(10) },
    default: DefaultValue::Span(Dur::from_ms(200)),
    meaning: "time for which PROBE_RTT keeps half a bandwidth-delay product in flight, at least a round trip",
    source: DRAFT,
};

pub(super) const FULL_LOSS_COUNT: Param = Param {
    name: "full_loss_count",
    kind: Kind::Whole { min: 1, max: 1000, unit: Unit::One },
    default: DefaultValue::Whole(6),
    meaning: "number of separate ranges of lost segments in a round trip that end STARTUP",
    source: DRAFT,
};

pub(super) const QUANTUM: Param = Param {
    name: "quantum",
    kind: Kind::Whole { min: 1, max: 1000, unit: Unit::Segments },
    default: DefaultValue::Whole(1),
    meaning: "largest chunk that the host sends at once; above 1, chunks are the volume paced in a millisecond, and \
               at least two segments and at most 64 KiB; the window allows for three",
    source: "draft-ietf-ccwg-bbr-06 (64 KiB)",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "bbr3",
    summary: "BBRv3: BBR with bounds on the volume in flight learned from losses above 2 %",
    source: DRAFT,
    params: &[
        INITIAL_WINDOW,
        LOSS_THRESHOLD,
        BETA,
        HEADROOM,
        PROBE_RTT_INTERVAL,
        PROBE_RTT_TIME,
        FULL_LOSS_COUNT,
        QUANTUM,
    ],
    wire: None,
    make: &|values, plan| {
        let config = Bbr3Config {
            initial_window_segments: values.whole(&INITIAL_WINDOW),
            loss_threshold: values.number(&LOSS_THRESHOLD),
            beta: values.number(&BETA),
            headroom: values.number(&HEADROOM),
            probe_rtt_interval: values.span(&PROBE_RTT_INTERVAL),
            probe_rtt_time: values.span(&PROBE_RTT_TIME),
            full_loss_count: values.whole(&FULL_LOSS_COUNT),
            quantum_segments: values.whole(&QUANTUM),
        };
        Ok(Box::new(Bbr3::new(config, plan.packets(), plan.sack)))
    },
};

/// The constants of the law, as declared.
#[derive(Clone, Copy, Debug)]
pub struct Bbr3Config {
    /// Initial window, segments.
    pub initial_window_segments: u64,
    /// Share of losses above which too much is in flight.
    pub loss_threshold: f64,
    /// Minimum share of a bound that is kept after losses.
    pub beta: f64,
    /// Share of the long-term bound left to other flows.
    pub headroom: f64,
    /// Time between two PROBE_RTTs.
    pub probe_rtt_interval: Dur,
    /// Minimum duration of PROBE_RTT.
    pub probe_rtt_time: Dur,
    /// Number of ranges of lost segments in a round trip that end STARTUP.
    pub full_loss_count: u64,
    /// Largest number of segments that the host sends at once.
    pub quantum_segments: u64,
}
