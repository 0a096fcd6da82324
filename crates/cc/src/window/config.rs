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
    meaning: "maximum growth per acknowledgment in slow start; 2 is byte counting",
    source: "RFC 5681 section 3.1; RFC 3465 for 2",
};

/// [`WindowConfig::growth_limit`].
pub const GROWTH_LIMIT: Param = Param {
    name: "growth_limit",
    kind: Kind::Bound { min: 1, unit: Unit::Segments },
    default: DefaultValue::Whole(UNBOUNDED),
    meaning: "maximum number of segments that one acknowledgment counts for, in slow start (together with \
               slow_start_limit) and later; 1 counts acknowledgments",
    source: "none by default (RFC 5681 section 3.1); 1 in ns-3; 2 in the Linux of NSDI 2014 section 5.2",
};

/// [`WindowConfig::slow_start`].
pub const SLOW_START: Param = Param {
    name: "slow_start",
    kind: Kind::Choice(&["standard", "hystart++"]),
    default: DefaultValue::Word("standard"),
    meaning: "whether the first slow start continues until a loss, or slows down when delay rises",
    source: "RFC 5681 section 3.1; RFC 9406 (HyStart++)",
};

/// [`WindowConfig::validation`].
pub const WINDOW_VALIDATION: Param = Param {
    name: "window_validation",
    kind: Kind::Choice(&["none", "rfc7661"]),
    default: DefaultValue::Word("none"),
    meaning: "rfc7661 keeps a window that the application does not fill for five minutes without growth, and cuts \
               the volume in use at congestion; with none, a window grows if it was what last stopped the sender",
    source: "RFC 7661",
};

/// The rule that ends the first slow start of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// A loss, a mark or the threshold ends it.
    #[default]
    Standard,
    /// A rise in delay ends it, too (RFC 9406).
    HyStartPlusPlus,
}

/// The parameters that every window controller has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Window of a new connection, segments.
    pub initial_window: u64,
    /// Slow-start threshold of a new connection, segments, or [`UNBOUNDED`](crate::param::UNBOUNDED).
    pub initial_ssthresh: u64,
    /// Maximum growth per acknowledgment in slow start, segments: 1 in RFC 5681, 2 with the byte counting of RFC 3465.
    pub slow_start_limit: u64,
    /// Maximum number of segments that one acknowledgment counts for, in slow start and later, or
    /// [`UNBOUNDED`](crate::param::UNBOUNDED).
    pub growth_limit: u64,
    /// The rule that ends the first slow start.
    pub slow_start: SlowStart,
    /// True if windows are validated (RFC 7661).
    pub validation: bool,
}

impl Default for WindowConfig {
    fn default() -> WindowConfig {
        WindowConfig::of(&Values::default())
    }
}

impl WindowConfig {
    /// Returns the configuration in the values of a controller that declares these parameters.
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
