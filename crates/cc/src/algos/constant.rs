//! A constant window and a constant pace. For cross traffic, and as a reference in tests.
//!
//! The controller reacts to nothing.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use sparelane_core::Rate;

const WINDOW: Param = Param {
    name: "window",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
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

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "constant",
    summary: "constant window and pace, for cross traffic",
    source: "sparelane",
    params: &[WINDOW, PACE],
    wire: None,
    make: &|values, plan| Ok(Box::new(Constant::new(values.whole(&WINDOW) * plan.mss_bytes, values.rate(&PACE)))),
};

/// The constant controller.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    limits: Limits,
}

impl Constant {
    /// Creates a controller with a window of `cwnd_bytes`, paced at `pacing` if given.
    pub fn new(cwnd_bytes: u64, pacing: Option<Rate>) -> Constant {
        Constant { limits: Limits { cwnd_bytes, pacing } }
    }
}

impl CongestionControl for Constant {
    fn on_ack(&mut self, _ack: &Ack, _cx: &mut Cx<'_>) {}

    fn on_congestion(&mut self, _event: Congestion, _cx: &mut Cx<'_>) {}

    fn reacts_to_marks(&self) -> bool {
        false
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn paces(&self) -> bool {
        self.limits.pacing.is_some()
    }
}
