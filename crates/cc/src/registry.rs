//! Every controller by name, with its parameters: what a scenario may ask for.

use crate::algos::constant::Constant;
use crate::algos::cubic::{Cubic, CubicConfig};
use crate::algos::newreno::NewReno;
use crate::algos::rc3::{DEFAULT_LEVELS, Feed, MAX_LEVELS, Rc3};
use crate::algos::rcp::Rcp;
use crate::contract::CongestionControl;
use crate::param::{DefaultValue, Kind, Param, ParamError, UNBOUNDED, Unit, Values};
use crate::window::{WindowConfig, Windowed};
use thiserror::Error;

/// One entry of the catalogue.
#[derive(Debug)]
pub struct Controller {
    /// The name that a scenario uses.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Where the law is defined.
    pub source: &'static str,
    /// What can be set, besides the parameters of a controller inside.
    pub params: &'static [Param],
    make: fn(&Values, Blueprint<'_>) -> Built,
}

/// A new controller, or why there is none.
pub type Built = Result<Box<dyn CongestionControl>, BuildError>;

/// What a controller is built for.
#[derive(Clone, Copy, Debug)]
pub struct Blueprint<'a> {
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// The values for a controller inside, where there is one.
    pub inner: &'a Values,
}

/// Why a controller cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    /// No such controller.
    #[error("there is no controller \"{name}\"")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// A controller that wraps others was asked to wrap itself.
    #[error("\"{outer}\" cannot contain \"{inner}\"")]
    Nested {
        /// The wrapper.
        outer: &'static str,
        /// What it was given.
        inner: String,
    },
    /// A parameter is out of its range.
    #[error(transparent)]
    Param(#[from] ParamError),
}

const INITIAL_WINDOW: Param = Param {
    name: "initial_window",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(10),
    meaning: "congestion window of a new connection",
    source: "RFC 6928",
};
const INITIAL_SSTHRESH: Param = Param {
    name: "initial_ssthresh",
    kind: Kind::Bound { min: 2, unit: Unit::Segments },
    default: DefaultValue::Whole(UNBOUNDED),
    meaning: "slow-start threshold of a new connection",
    source: "RFC 5681 section 3.1",
};
const SLOW_START_LIMIT: Param = Param {
    name: "slow_start_limit",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(1),
    meaning: "most that one acknowledgment adds to the window in slow start; 2 is byte counting",
    source: "RFC 5681 section 3.1; RFC 3465 for 2",
};
const GROWTH_LIMIT: Param = Param {
    name: "growth_limit",
    kind: Kind::Bound { min: 1, unit: Unit::Segments },
    default: DefaultValue::Whole(UNBOUNDED),
    meaning: "segments that one acknowledgment counts for at most, in slow start (beside slow_start_limit) and after",
    source: "none by default; 2 in the Linux of NSDI 2014 section 5.2",
};
const C: Param = Param {
    name: "c",
    kind: Kind::Number { min: 0.001, max: 1000.0, unit: Unit::One },
    default: DefaultValue::Number(0.4),
    meaning: "aggressiveness, segments per second cubed",
    source: "RFC 9438 section 5",
};
const BETA: Param = Param {
    name: "beta",
    kind: Kind::Number { min: 0.1, max: 0.95, unit: Unit::One },
    default: DefaultValue::Number(0.7),
    meaning: "what is left of the window after a loss",
    source: "RFC 9438 section 4.6",
};
const FAST_CONVERGENCE: Param = Param {
    name: "fast_convergence",
    kind: Kind::Flag,
    default: DefaultValue::Flag(true),
    meaning: "release bandwidth faster when the saturation point falls",
    source: "RFC 9438 section 4.7",
};
const WINDOW: Param = Param {
    name: "window",
    kind: Kind::Whole { min: 1, max: 100_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(10),
    meaning: "congestion window",
    source: "sparelane",
};
const PACE: Param = Param {
    name: "pace",
    kind: Kind::OptionalRate,
    default: DefaultValue::Rate(None),
    meaning: "rate of segments on the wire, headers included",
    source: "sparelane",
};
const DESIRED_RATE: Param = Param {
    name: "desired_rate",
    kind: Kind::OptionalRate,
    default: DefaultValue::Rate(None),
    meaning: "rate to ask the routers for, headers included; none asks for the rate of the host's interface",
    source: "the RC3 authors' code",
};
const INNER: Param = Param {
    name: "inner",
    kind: Kind::Controller,
    default: DefaultValue::Word("newreno"),
    meaning: "the controller of normal priority",
    source: "NSDI 2014 section 5.1",
};
const LEVELS: Param = Param {
    name: "levels",
    kind: Kind::Increasing { max_len: MAX_LEVELS },
    default: DefaultValue::List(&DEFAULT_LEVELS),
    meaning: "cumulative segments from the tail that go at priorities 1, 2, ...; the rest goes one lower",
    source: "NSDI 2014 section 2.1; cumulative as in the authors' code",
};
const FEED: Param = Param {
    name: "feed",
    kind: Kind::Choice(&["pull", "push"]),
    default: DefaultValue::Word("pull"),
    meaning: "hand low-priority segments to the interface when it is idle (pull) or all at once (push)",
    source: "pull: sparelane; push: the authors' code",
};

/// Every controller, in the order in which people meet them.
pub const CONTROLLERS: &[Controller] = &[
    Controller {
        name: "newreno",
        summary: "one segment more per round trip, half at a loss",
        source: "RFC 5681, RFC 6582",
        params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT],
        make: |values, plan| Ok(Box::new(Windowed::new(NewReno::default(), window_config(values), plan.mss_bytes))),
    },
    Controller {
        name: "cubic",
        summary: "a cubic of the time since the last loss",
        source: "RFC 9438",
        params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, C, BETA, FAST_CONVERGENCE],
        make: |values, plan| {
            let config = CubicConfig {
                c: values.number(&C),
                beta: values.number(&BETA),
                fast_convergence: values.flag(&FAST_CONVERGENCE),
            };
            Ok(Box::new(Windowed::new(Cubic::new(config), window_config(values), plan.mss_bytes)))
        },
    },
    Controller {
        name: "constant",
        summary: "a window and a pace that never change: cross traffic",
        source: "sparelane",
        params: &[WINDOW, PACE],
        make: |values, plan| Ok(Box::new(Constant::new(values.whole(&WINDOW) * plan.mss_bytes, values.rate(&PACE)))),
    },
    Controller {
        name: "rcp",
        summary: "the rate that the routers allow, paced; needs [queue.rcp]",
        source: "Dukkipati et al., IWQoS 2005; NSDI 2014 section 5.1.4",
        params: &[DESIRED_RATE],
        make: |values, plan| Ok(Box::new(Rcp::new(values.rate(&DESIRED_RATE), plan.mss_bytes))),
    },
    Controller {
        name: "rc3",
        summary: "any controller, plus the tail of the buffer at lower priorities",
        source: "Mittal et al., NSDI 2014 section 2; HotNets 2013",
        params: &[INNER, LEVELS, FEED],
        make: |values, plan| {
            let name = values.word(&INNER);
            if name == "rc3" {
                return Err(BuildError::Nested { outer: "rc3", inner: name });
            }
            let inner = build(&name, plan.inner, &Values::default(), plan.mss_bytes)?;
            let feed = if values.word(&FEED) == "push" { Feed::Push } else { Feed::Pull };
            Ok(Box::new(Rc3::new(inner, values.list(&LEVELS), feed)))
        },
    },
];

fn window_config(values: &Values) -> WindowConfig {
    WindowConfig {
        initial_window: values.whole(&INITIAL_WINDOW),
        initial_ssthresh: values.whole(&INITIAL_SSTHRESH),
        slow_start_limit: values.whole(&SLOW_START_LIMIT),
        growth_limit: values.whole(&GROWTH_LIMIT),
    }
}

/// The controller called `name`.
pub fn find(name: &str) -> Option<&'static Controller> {
    CONTROLLERS.iter().find(|controller| controller.name == name)
}

/// A new controller for one connection.
///
/// `values` belong to the controller itself; `inner` to the one it contains, if it contains one.
///
/// # Errors
/// The name is unknown, a wrapper would contain itself, or a value is outside its range.
pub fn build(name: &str, values: &Values, inner: &Values, mss_bytes: u64) -> Built {
    let controller = find(name).ok_or_else(|| BuildError::Unknown { name: name.to_owned() })?;
    for param in controller.params {
        if let Some(value) = values.given(param.name) {
            param.check(value)?;
        }
    }
    (controller.make)(values, Blueprint { mss_bytes, inner })
}
