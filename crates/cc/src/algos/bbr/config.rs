//! The parameters of BBRv1.

use super::Bbr;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::wire::{WireDefaults, WireValue};
use sparelane_core::Dur;

pub(super) const INITIAL_WINDOW: Param = Param {
    name: "initial_window",
    kind: Kind::Whole { min: 1, max: 10_000, unit: Unit::Segments },
    default: DefaultValue::Whole(10),
    meaning: "congestion window at the start",
    source: "RFC 6928",
};

pub(super) const STARTUP_GAIN: Param = Param {
    name: "startup_gain",
    kind: Kind::Number { min: 1.1, max: 10.0, unit: Unit::One },
    default: DefaultValue::Number(2.885),
    meaning: "gain of pace and window in STARTUP, 2 / ln 2; DRAIN paces by its inverse",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.2.1 (2.885 in Linux)",
};

pub(super) const CWND_GAIN: Param = Param {
    name: "cwnd_gain",
    kind: Kind::Number { min: 1.0, max: 10.0, unit: Unit::One },
    default: DefaultValue::Number(2.0),
    meaning: "window in PROBE_BW, in bandwidth-delay products",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.3",
};

pub(super) const BANDWIDTH_WINDOW: Param = Param {
    name: "bandwidth_window",
    kind: Kind::Whole { min: 1, max: 1000, unit: Unit::One },
    default: DefaultValue::Whole(10),
    meaning: "round trips for which a sample of the bandwidth counts",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00 section 4.1.1.3",
};

pub(super) const MIN_RTT_WINDOW: Param = Param {
    name: "min_rtt_window",
    kind: Kind::Span { min: Dur::from_ms(10), max: Dur::from_secs(3600) },
    default: DefaultValue::Span(Dur::from_secs(10)),
    meaning: "time for which the smallest round-trip time counts; PROBE_RTT follows",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00 section 4.1.2.1",
};

pub(super) const PROBE_RTT_TIME: Param = Param {
    name: "probe_rtt_time",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(10) },
    default: DefaultValue::Span(Dur::from_ms(200)),
    meaning: "time for which PROBE_RTT keeps four segments in flight, at least a round trip",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.5",
};

pub(super) const PACING_MARGIN: Param = Param {
    name: "pacing_margin",
    kind: Kind::Number { min: 0.0, max: 0.5, unit: Unit::One },
    default: DefaultValue::Number(0.01),
    meaning: "fraction by which the pace stays below gain times bandwidth",
    source: "Linux tcp_bbr.c (bbr_pacing_margin_percent)",
};

pub(super) const ACK_AGGREGATION: Param = Param {
    name: "ack_aggregation",
    kind: Kind::Flag,
    default: DefaultValue::Flag(false),
    meaning: "enlarge the window by the volume that aggregated acknowledgments hold back",
    source: "Linux tcp_bbr.c (bbr_update_ack_aggregation); not in the draft",
};

pub(super) const QUANTUM: Param = Param {
    name: "quantum",
    kind: Kind::Whole { min: 1, max: 1000, unit: Unit::Segments },
    default: DefaultValue::Whole(1),
    meaning: "largest chunk that the host sends at once, at most the volume paced in a millisecond; the window \
               allows for three",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.2 (64 kB)",
};

pub(super) const LIKE: Param = Param {
    name: "like",
    kind: Kind::Choice(&["draft", "linux"]),
    default: DefaultValue::Word("draft"),
    meaning: "allowance of the window: draft follows the keys here; linux is three chunks of up to 64 kB and \
               ack_aggregation",
    source: "Linux tcp_bbr.c (bbr_quantization_budget, bbr_tso_segs_goal)",
};

pub(super) const RTT_FLOOR: Param = Param {
    name: "rtt_floor",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(1) },
    default: DefaultValue::Span(Dur::ZERO),
    meaning: "lower limit of the round-trip time, for delays that a host adds at times and that the minimum of ten \
               seconds does not show",
    source: "sparelane",
};

/// Like Linux, allows for acknowledgments that arrive in batches and for segments that are sent in bursts.
const WIRE: WireDefaults = WireDefaults {
    values: &[
        WireValue::new(ACK_AGGREGATION.name, DefaultValue::Flag(true)),
        // 64 kB.
        WireValue::new(QUANTUM.name, DefaultValue::Whole(46)),
        // Acknowledgments and timers of real hosts are up to a millisecond late.
        WireValue::new(RTT_FLOOR.name, DefaultValue::Span(Dur::from_ms(1))),
    ],
    ..WireDefaults::NONE
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "bbr",
    summary: "BBRv1: paces at the bottleneck's bandwidth, at most two bandwidth-delay products in flight",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00; Linux tcp_bbr.c",
    params: &[
        INITIAL_WINDOW,
        STARTUP_GAIN,
        CWND_GAIN,
        BANDWIDTH_WINDOW,
        MIN_RTT_WINDOW,
        PROBE_RTT_TIME,
        PACING_MARGIN,
        ACK_AGGREGATION,
        QUANTUM,
        LIKE,
        RTT_FLOOR,
    ],
    wire: Some(WIRE),
    make: &|values, plan| {
        let is_kernel = values.word(&LIKE) == "linux";
        let config = BbrConfig {
            initial_window_segments: values.whole(&INITIAL_WINDOW),
            startup_gain: values.number(&STARTUP_GAIN),
            cwnd_gain: values.number(&CWND_GAIN),
            bandwidth_window_rounds: values.whole(&BANDWIDTH_WINDOW),
            min_rtt_window: values.span(&MIN_RTT_WINDOW),
            probe_rtt_time: values.span(&PROBE_RTT_TIME),
            pacing_margin: values.number(&PACING_MARGIN),
            ack_aggregation: is_kernel || values.flag(&ACK_AGGREGATION),
            quantum: if is_kernel { Quantum::Kernel } else { Quantum::Segments(values.whole(&QUANTUM)) },
            rtt_floor: values.span(&RTT_FLOOR),
        };
        Ok(Box::new(Bbr::new(config, plan.packets())))
    },
};

/// The chunk size that the window allows for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantum {
    /// A limit of this number of segments, and of the volume paced in a millisecond.
    Segments(u64),
    /// Chunks as Linux computes them.
    Kernel,
}

/// The constants of the law, as declared.
#[derive(Clone, Copy, Debug)]
pub struct BbrConfig {
    /// Initial window, segments.
    pub initial_window_segments: u64,
    /// Gain of pace and window in STARTUP.
    pub startup_gain: f64,
    /// Window in PROBE_BW, in bandwidth-delay products.
    pub cwnd_gain: f64,
    /// Length of the bandwidth filter, round trips.
    pub bandwidth_window_rounds: u64,
    /// Length of the filter of the round-trip time.
    pub min_rtt_window: Dur,
    /// Minimum duration of PROBE_RTT.
    pub probe_rtt_time: Dur,
    /// The fraction by which the pace stays below gain times bandwidth.
    pub pacing_margin: f64,
    /// True if the window allows for aggregated acknowledgments.
    pub ack_aggregation: bool,
    /// The chunk size that the window allows for.
    pub quantum: Quantum,
    /// The lower limit of the round-trip time.
    pub rtt_floor: Dur,
}
