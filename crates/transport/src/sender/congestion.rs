//! Congestion without loss: ECN marks (RFC 3168) and a full queue of the host's own interface.
//!
//! Both reduce the window as a loss does, at most once per window of data (RFC 3168 section 6.1.2) and not during
//! recovery. For a full interface Linux does the same: `tcp_transmit_skb` enters CWR if the queue rejects a segment,
//! and the segment stays in the send buffer. Unlike Linux, the sender does not set the CWR flag in this case, because
//! there is no ECE to answer.

use super::Sender;
use crate::config::{Ecn, FlightSize};
use sparelane_cc::{Congestion, Phase};
use sparelane_core::Time;

impl Sender {
    /// Returns whether a congestion signal reduces the window now: outside of recovery, and once per window of data.
    pub(super) fn may_reduce_window(&self) -> bool {
        self.phase == Phase::Open && self.recovery.reduced_at().is_none_or(|at| self.una > at)
    }

    /// Returns FlightSize in bytes, from which the controller computes a reduced window. `outstanding` is the number of
    /// segments sent and not cumulatively acknowledged.
    pub(super) fn flight_size_bytes(&self, outstanding: u32) -> u64 {
        let segments = match self.config.flight_size {
            FlightSize::Clipped => outstanding.min(self.cwnd_segments),
            FlightSize::Window => return self.limits.cwnd_bytes,
            FlightSize::Pipe => self.pipe(),
            FlightSize::Outstanding => outstanding,
        };
        u64::from(segments) * self.mss_bytes
    }

    /// Reports congestion without loss to the controller. `by_ecn` is true if the receiver echoed a mark.
    pub(super) fn report_mark(&mut self, now: Time, by_ecn: bool) {
        let flight_bytes = self.flight_size_bytes(self.flight());
        self.report_congestion(now, Congestion::Marked { flight_bytes, by_ecn });
    }

    /// Records a reduction of the window. Congestion signals for data sent before it cause no further reduction.
    ///
    /// The next new segment carries CWR, whatever the reason for the reduction (RFC 3168 section 6.1.2). RFC 8257
    /// section 3.3 keeps that rule for DCTCP, although DCTCP receivers ignore the flag.
    pub(super) fn note_reduction(&mut self) {
        self.recovery.repairs_mut().reduced_at = Some(self.nxt);
        // Accurate ECN uses the flag for its counter (RFC 9768 section 3.2.2).
        self.window_reduced = !matches!(self.features.ecn, Ecn::Off | Ecn::Accurate);
    }

    /// Handles a full queue of the host's interface. If a new class-0 segment could be sent now, congestion is reported
    /// to the controller; the segment stays in the send buffer.
    #[cold]
    #[inline(never)]
    pub fn handle_full_interface(&mut self, now: Time) {
        if self.may_reduce_window() && self.may_send_new(now) {
            self.recovery.repairs_mut().reduced_at = Some(self.nxt);
            self.report_mark(now, false);
        }
    }
}
