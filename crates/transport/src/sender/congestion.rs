//! Congestion without loss: marks (RFC 3168), and a full interface of the host's own.
//!
//! Both are answered as a loss is, once a window of data whatever tells of it (RFC 3168 section 6.1.2), and not while losses
//! are repaired. Of an interface Linux thinks so: `tcp_transmit_skb` enters CWR where the queue refuses a segment, which stays
//! in the send buffer. Linux also sets the CWR flag then; we do not, for there is no echo that it would answer.

use super::Sender;
use crate::config::{Ecn, FlightSize};
use sparelane_cc::{Congestion, Phase};
use sparelane_core::Time;

impl Sender {
    /// Whether congestion that shows now needs an answer of its own.
    pub(super) fn heeds_congestion(&self) -> bool {
        self.phase == Phase::Open && self.repair.answered_at.is_none_or(|at| self.una > at)
    }

    /// What the controller is told was in flight when it is to reduce its window, bytes, where `outstanding` segments count as
    /// sent and not acknowledged in sequence.
    pub(super) fn flight_for_cut(&self, outstanding: u32) -> u64 {
        let segments = match self.config.flight_size {
            FlightSize::Clipped => outstanding.min(self.cwnd_segments),
            FlightSize::Window => return self.limits.cwnd_bytes,
            FlightSize::Pipe => self.pipe(),
            FlightSize::Outstanding => outstanding,
        };
        u64::from(segments) * self.mss_bytes
    }

    /// The window is to be reduced though there is nothing to repair.
    pub(super) fn report_mark(&mut self, now: Time) {
        let flight_bytes = self.flight_for_cut(self.flight());
        self.report(now, Congestion::Marked { flight_bytes });
    }

    /// The window is cut: the congestion that anything met that was sent until now needs no other answer.
    ///
    /// The next new segment carries the CWR flag, whatever the reason for the cut (RFC 3168 section 6.1.2). RFC 8257 section 3.3
    /// keeps that rule for DCTCP, whose own receivers ignore the flag.
    pub(super) fn note_answer(&mut self) {
        self.repair.answered_at = Some(self.nxt);
        self.window_reduced = self.config.ecn != Ecn::Off;
    }

    /// The queue of the host's interface has no room for a packet. If a new segment of class 0 would go now, the controller is
    /// told of congestion; the segment stays where it is.
    #[cold]
    #[inline(never)]
    pub fn handle_full_interface(&mut self, now: Time) {
        if self.heeds_congestion() && self.may_send_new(now) {
            self.repair.answered_at = Some(self.nxt);
            self.report_mark(now);
        }
    }
}
