//! A controller's defaults on a real network.
//!
//! Real hosts have late timers, receive acknowledgments in batches, and cannot see the queue of their interface. Some
//! parameters therefore need other defaults than in the simulator. Each controller declares them in
//! [`Controller::wire`](crate::Controller), so that the transport for real networks names no controller.

use crate::param::{DefaultValue, Values};
use sparelane_core::Dur;

/// The differences of a controller on a real network.
#[derive(Clone, Copy, Debug)]
pub struct WireDefaults {
    /// Defaults that replace those of the parameters.
    pub values: &'static [WireValue],
    /// Adjusts the values of a new flow to the round-trip time of the handshake.
    pub adjust: Option<fn(&mut Values, Dur)>,
    /// True if the controller depends on the line rate; users are warned if that rate is only assumed.
    pub needs_line_rate: bool,
    /// A limit on the paths for which the controller is designed.
    pub path_limit: Option<PathLimit>,
}

impl WireDefaults {
    /// No differences; the base for declarations.
    pub const NONE: WireDefaults = WireDefaults { values: &[], adjust: None, needs_line_rate: false, path_limit: None };
}

/// The default of one parameter on a real network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WireValue {
    /// The parameter's name.
    pub param: &'static str,
    /// The default on a real network.
    pub value: DefaultValue,
    /// The reason for which no other value can be set; `None` if users can change the value.
    pub fixed: Option<&'static str>,
}

impl WireValue {
    /// Creates a default that users can change.
    pub const fn new(param: &'static str, value: DefaultValue) -> WireValue {
        WireValue { param, value, fixed: None }
    }
}

/// A limit beyond which a controller needs the rate of the path in place of the line rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLimit {
    /// The longest round-trip time for which the controller is designed.
    pub round_trip: Dur,
    /// The behaviour beyond the limit: the start of a sentence that continues with "of", the line rate and the
    /// round-trip time.
    pub reason: &'static str,
}
