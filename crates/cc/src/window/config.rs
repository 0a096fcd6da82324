//! The parameters that every window controller declares.

use crate::param::{DefaultValue, Kind, Param, UNBOUNDED, Unit, Values};

/// [`WindowConfig::initial_window`].
pub const INITIAL_WINDOW: Param = Param {
    name: "initial_window",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(10),
    meaning: "congestion window of a new connection",
    source: "RFC 6928",
};

/// [`WindowConfig::initial_ssthresh`].
pub const INITIAL_SSTHRESH: Param = Param {
    name: "initial_ssthresh",
    kind: Kind::Bound { min: 2, unit: Unit::Segments },
    default: DefaultValue::Whole(UNBOUNDED),
    meaning: "slow-start threshold of a new connection",
    source: "RFC 5681 section 3.1",
};

/// [`WindowConfig::slow_start_limit`].
pub const SLOW_START_LIMIT: Param = Param {
    name: "slow_start_limit",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(1),
    meaning: "most that one acknowledgment adds to the window in slow start; 2 is byte counting",
    source: "RFC 5681 section 3.1; RFC 3465 for 2",
};

/// [`WindowConfig::growth_limit`].
pub const GROWTH_LIMIT: Param = Param {
    name: "growth_limit",
    kind: Kind::Bound { min: 1, unit: Unit::Segments },
    default: DefaultValue::Whole(UNBOUNDED),
    meaning: "segments that one acknowledgment counts for at most, in slow start (beside slow_start_limit) and after; \
              1 counts acknowledgments",
    source: "none by default (RFC 5681 section 3.1); 1 in ns-3; 2 in the Linux of NSDI 2014 section 5.2",
};

/// [`WindowConfig::slow_start`].
pub const SLOW_START: Param = Param {
    name: "slow_start",
    kind: Kind::Choice(&["standard", "hystart++"]),
    default: DefaultValue::Word("standard"),
    meaning: "whether the first slow start goes on until a loss, or slows down where delay rises",
    source: "RFC 5681 section 3.1; RFC 9406 (HyStart++)",
};

/// [`WindowConfig::validation`].
pub const WINDOW_VALIDATION: Param = Param {
    name: "window_validation",
    kind: Kind::Choice(&["none", "rfc7661"]),
    default: DefaultValue::Word("none"),
    meaning: "whether a window that the application does not fill is kept for five minutes, does not grow meanwhile, and counts \
              at congestion as what was in use; without, it grows where it was what last stopped the sender",
    source: "RFC 7661",
};

/// How the first slow start of a connection ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// With a loss, a mark, or at the threshold.
    #[default]
    Standard,
    /// As RFC 9406 says, too.
    HyStartPlusPlus,
}

/// What every window controller lets a scenario set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Window of a new connection, segments.
    pub initial_window: u64,
    /// Slow-start threshold of a new connection, segments, or [`UNBOUNDED`](crate::param::UNBOUNDED).
    pub initial_ssthresh: u64,
    /// In slow start one acknowledgment grows the window by at most this many segments:
    /// RFC 5681 says 1, RFC 3465's byte counting 2.
    pub slow_start_limit: u64,
    /// Whatever one acknowledgment covers, it counts as at most this many segments, in slow start and after, or
    /// [`UNBOUNDED`](crate::param::UNBOUNDED).
    pub growth_limit: u64,
    /// How the first slow start ends.
    pub slow_start: SlowStart,
    /// Whether windows are validated as RFC 7661 says.
    pub validation: bool,
}

impl Default for WindowConfig {
    fn default() -> WindowConfig {
        WindowConfig::of(&Values::default())
    }
}

impl WindowConfig {
    /// The configuration in the values of a controller that declares these parameters.
    pub fn of(values: &Values) -> WindowConfig {
        WindowConfig {
            initial_window: values.whole(&INITIAL_WINDOW),
            initial_ssthresh: values.whole(&INITIAL_SSTHRESH),
            slow_start_limit: values.whole(&SLOW_START_LIMIT),
            growth_limit: values.whole(&GROWTH_LIMIT),
            slow_start: match values.word(&SLOW_START) {
                "hystart++" => SlowStart::HyStartPlusPlus,
                _ => SlowStart::Standard,
            },
            validation: values.word(&WINDOW_VALIDATION) == "rfc7661",
        }
    }
}
