//! Proportional rate reduction (RFC 9937): how much goes out while the losses of an episode are repaired.
//!
//! RFC 6675 lets nothing go until half of the flight has drained, and then a packet for each that arrives: half a round trip of
//! silence, and then a burst at the path's rate on top of a full queue. Proportional rate reduction spreads the cut over the
//! round trip: for each segment that arrives it sends the share that the new window is of the old one, retransmissions first, and
//! where losses have taken the flight below the new window, it fills the flight up again by slow start at most.
//!
//! The new window is the controller's, whatever it says with each acknowledgment; controllers that pace keep to their own rule.
//! Needs SACK: without, recovery stays NewReno's (RFC 6582).

use super::Sender;

/// The counts of one episode, in segments. The names of RFC 9937 stand behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reduction {
    /// What was in flight when the episode began (RecoverFS).
    flight: u32,
    /// Delivered since (prr_delivered).
    delivered: u32,
    /// Sent since, for the first time or again (prr_out).
    sent: u32,
    /// May be sent now (sndcnt).
    allowed: u32,
}

impl Reduction {
    /// An episode that begins with `flight` segments in flight.
    pub(super) fn new(flight: u32) -> Reduction {
        Reduction { flight: flight.max(1), delivered: 0, sent: 0, allowed: 0 }
    }

    /// RFC 9937 section 6.2, for an acknowledgment that delivers `delivered` segments and leaves `pipe` in flight, where the new
    /// window has `window` segments. It `is_safe` where the acknowledgment moves on in sequence and shows no further loss.
    pub(super) fn count(&mut self, delivered: u32, pipe: u32, window: u32, is_safe: bool) {
        self.delivered += delivered;
        self.allowed = if pipe > window {
            let share = (u64::from(self.delivered) * u64::from(window)).div_ceil(u64::from(self.flight));
            // A window that moves during the episode does not release what it would have released earlier.
            (share.saturating_sub(u64::from(self.sent)) as u32).min(self.allowed + delivered)
        } else {
            let conserved = self.delivered.saturating_sub(self.sent).max(delivered);
            (conserved + u32::from(is_safe)).min(window - pipe)
        };
        if self.sent == 0 {
            // The first retransmission goes at once.
            self.allowed = self.allowed.max(1);
        }
    }

    fn note_sent(&mut self) {
        self.sent += 1;
        self.allowed = self.allowed.saturating_sub(1);
    }
}

impl Sender {
    /// An episode begins with an acknowledgment that delivers `delivered` segments.
    pub(super) fn begin_reduction(&mut self, delivered: u32) {
        let applies = self.config.prr && self.kind.sack && self.limits.pacing.is_none();
        let flight = (self.flight() + delivered).saturating_sub(self.board.arrived_out_of_order());
        self.repair.reduction = applies.then(|| Reduction::new(flight));
        if applies {
            self.resend_head = false;
        }
    }

    /// After the controller has heard of an acknowledgment: counts what that delivered. It `progresses` where it moves on in
    /// sequence.
    #[inline(never)]
    pub(super) fn continue_reduction(&mut self, delivered: u32, progresses: bool) {
        let is_safe = !self.board.take_news_of_losses() && progresses;
        let (pipe, window) = (self.pipe(), self.cwnd_segments);
        if let Some(reduction) = &mut self.repair.reduction {
            reduction.count(delivered, pipe, window, is_safe);
        }
    }

    /// What the reduction lets go now, in segments, where one is under way.
    pub(super) fn reduction_allows(&self) -> Option<u32> {
        self.repair.reduction.map(|reduction| reduction.allowed)
    }

    /// A segment of class 0 was sent.
    pub(super) fn note_sent_in_reduction(&mut self) {
        if let Some(reduction) = &mut self.repair.reduction {
            reduction.note_sent();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9937 section 6.2 by hand: 100 segments in flight, one lost, a window of 70 % of them. Each arrival lets 0.7 segments
    /// go, so that 70 are in flight after a round trip.
    #[test]
    fn the_flight_falls_to_the_window_over_a_round_trip() {
        let mut reduction = Reduction::new(100);
        let (mut pipe, mut sent) = (100 - 1, 0);
        for arrived in 1..=99_u32 {
            pipe -= 1;
            reduction.count(1, pipe, 70, false);
            while reduction.allowed > 0 {
                reduction.note_sent();
                (pipe, sent) = (pipe + 1, sent + 1);
            }
            if arrived < 95 {
                assert_eq!(sent, (u64::from(arrived) * 70).div_ceil(100) as u32, "after {arrived} arrivals");
            }
        }
        assert_eq!(pipe, 70);
    }

    /// Losses have taken more than the reduction would: what arrives is replaced, and one more where that is safe.
    #[test]
    fn below_the_window_the_flight_is_conserved_and_grows_where_that_is_safe() {
        let mut reduction = Reduction::new(20);
        reduction.count(1, 4, 10, false);
        assert_eq!(reduction.allowed, 1);
        reduction.note_sent();
        reduction.count(1, 4, 10, true);
        assert_eq!(reduction.allowed, 2, "one for the arrival, and one to grow by");
        reduction.note_sent();
        reduction.note_sent();
        reduction.count(2, 9, 10, true);
        assert_eq!(reduction.allowed, 1, "never beyond the window");
    }

    #[test]
    fn the_first_retransmission_goes_whatever_the_window_says() {
        let mut reduction = Reduction::new(10);
        reduction.count(0, 9, 1, false);
        assert_eq!(reduction.allowed, 1);
        reduction.note_sent();
        reduction.count(0, 9, 1, false);
        assert_eq!(reduction.allowed, 0);
    }
}
