//! A constant window, and a constant pace: cross traffic, and a yardstick for tests.
//!
//! It reacts to nothing.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits};
use sparelane_core::Rate;

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    limits: Limits,
}

impl Constant {
    /// A window of `cwnd_bytes`, paced at `pacing` if given.
    pub fn new(cwnd_bytes: u64, pacing: Option<Rate>) -> Constant {
        Constant { limits: Limits { cwnd_bytes, pacing } }
    }
}

impl CongestionControl for Constant {
    fn on_ack(&mut self, _ack: &Ack, _cx: &mut Cx<'_>) {}

    fn on_congestion(&mut self, _event: Congestion, _cx: &mut Cx<'_>) {}

    fn limits(&self) -> Limits {
        self.limits
    }
}
