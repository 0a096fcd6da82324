//! A constant window, and a constant pace: cross traffic, and a yardstick for tests.
//!
//! It reacts to nothing. The pace is kept packet by packet: a segment goes no earlier than the gap of
//! the one before it.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Offer, Permit, permit_by_window};
use sparelane_core::{Rate, Time};

/// Header bytes that a paced segment takes on the wire besides its payload.
const HEADER_BYTES: u64 = 40;

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    cwnd_bytes: u64,
    pacing: Option<Rate>,
    next: Time,
}

impl Constant {
    /// A window of `cwnd_bytes`, paced at `pacing` if given.
    pub fn new(cwnd_bytes: u64, pacing: Option<Rate>) -> Constant {
        Constant { cwnd_bytes, pacing, next: Time::ZERO }
    }
}

impl CongestionControl for Constant {
    fn on_ack(&mut self, _ack: &Ack, _cx: &mut Cx<'_>) {}

    fn on_congestion(&mut self, _event: Congestion, _cx: &mut Cx<'_>) {}

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.cwnd_bytes, pacing: self.pacing }
    }

    fn poll_send(&mut self, offer: &Offer, cx: &mut Cx<'_>) -> Permit {
        let permit = permit_by_window(self.limits(), offer);
        let (Permit::Send(_), Some(rate), Some(bytes)) = (permit, self.pacing, offer.head_bytes) else {
            return permit;
        };
        if cx.now < self.next {
            return Permit::NotBefore(self.next);
        }
        self.next = self.next.max(cx.now) + rate.time_for(bytes + HEADER_BYTES);
        permit
    }
}
