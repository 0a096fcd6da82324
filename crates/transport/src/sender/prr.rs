//! Proportional rate reduction (PRR, RFC 9937): the transmission rate during recovery.
//!
//! RFC 6675 sends nothing until the pipe has drained to the reduced window, and then one packet per arrival. The result
//! is a pause of half a round trip. PRR distributes the reduction over the round trip: each arrival releases the ratio
//! of the new to the old window, retransmissions first. If losses have reduced the pipe below the new window, PRR
//! refills it no faster than slow start.
//!
//! The controller sets the new window and may change it with each acknowledgment. PRR does not apply to controllers
//! that pace, and needs SACK.

use super::Sender;

/// The counters of one recovery in segments, with RFC 9937's names in parentheses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prr {
    /// Segments in flight at the start of recovery (RecoverFS).
    flight: u32,
    /// Segments delivered since then (prr_delivered).
    delivered: u32,
    /// Segments sent since then, including retransmissions (prr_out).
    sent: u32,
    /// Segments that may be sent now (sndcnt).
    allowed: u32,
}

impl Prr {
    /// Starts a recovery with `flight` segments in flight.
    pub(super) fn new(flight: u32) -> Prr {
        Prr { flight: flight.max(1), delivered: 0, sent: 0, allowed: 0 }
    }

    /// Updates the allowance after an acknowledgment (RFC 9937 section 6.2).
    ///
    /// The acknowledgment delivers `delivered` segments and leaves `pipe` in flight; the new window is `window`
    /// segments. `is_safe` (SafeACK) is set if the acknowledgment is cumulative and reports no further loss.
    pub(super) fn update(&mut self, delivered: u32, pipe: u32, window: u32, is_safe: bool) {
        self.delivered += delivered;
        self.allowed = if pipe > window {
            let share = (u64::from(self.delivered) * u64::from(window)).div_ceil(u64::from(self.flight));
            // A window that grows during recovery does not release segments for earlier deliveries.
            (share.saturating_sub(u64::from(self.sent)) as u32).min(self.allowed + delivered)
        } else {
            let conserved = self.delivered.saturating_sub(self.sent).max(delivered);
            (conserved + u32::from(is_safe)).min(window - pipe)
        };
        if self.sent == 0 {
            // RFC 9937: force a fast retransmit upon entering recovery.
            self.allowed = self.allowed.max(1);
        }
    }

    /// Counts a segment that was sent.
    fn note_sent(&mut self) {
        self.sent += 1;
        self.allowed = self.allowed.saturating_sub(1);
    }
}

impl Sender {
    /// Starts PRR, if enabled, after an acknowledgment that delivers `delivered` segments.
    pub(super) fn begin_prr(&mut self, delivered: u32) {
        let applies = self.config.prr && self.features.sack && self.limits.pacing.is_none();
        let flight = (self.flight() + delivered).saturating_sub(self.board.arrived_out_of_order());
        self.recovery.set_prr(applies.then(|| Prr::new(flight)));
        if applies {
            self.retransmit_head = false;
        }
    }

    /// Updates PRR after the controller has processed an acknowledgment. `progresses` is set if the acknowledgment is
    /// cumulative.
    #[inline(never)]
    pub(super) fn update_prr(&mut self, delivered: u32, progresses: bool) {
        let is_safe = !self.board.take_new_losses() && progresses;
        let (pipe, window) = (self.pipe(), self.cwnd_segments);
        if let Some(prr) = self.recovery.prr_mut() {
            prr.update(delivered, pipe, window, is_safe);
        }
    }

    /// Returns the number of segments that PRR allows now, or `None` if PRR is not in progress.
    pub(super) fn prr_allowance(&self) -> Option<u32> {
        self.recovery.prr().map(|prr| prr.allowed)
    }

    /// Counts a class-0 segment that was sent.
    pub(super) fn note_sent_in_prr(&mut self) {
        if let Some(prr) = self.recovery.prr_mut() {
            prr.note_sent();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9937 section 6.2, computed by hand: 100 segments in flight, one lost, and a new window of 70. Each arrival
    /// releases 0.7 segments, so 70 are in flight after a round trip.
    #[test]
    fn the_flight_falls_to_the_window_over_a_round_trip() {
        let mut prr = Prr::new(100);
        let (mut pipe, mut sent) = (100 - 1, 0);
        for arrived in 1..=99_u32 {
            pipe -= 1;
            prr.update(1, pipe, 70, false);
            while prr.allowed > 0 {
                prr.note_sent();
                (pipe, sent) = (pipe + 1, sent + 1);
            }
            if arrived < 95 {
                assert_eq!(sent, (u64::from(arrived) * 70).div_ceil(100) as u32, "after {arrived} arrivals");
            }
        }
        assert_eq!(pipe, 70);
    }

    /// Losses have reduced the pipe below the window: each arrival is replaced, plus one segment if the acknowledgment
    /// is safe.
    #[test]
    fn below_the_window_the_pipe_is_conserved_and_grows_if_that_is_safe() {
        let mut prr = Prr::new(20);
        prr.update(1, 4, 10, false);
        assert_eq!(prr.allowed, 1);
        prr.note_sent();
        prr.update(1, 4, 10, true);
        assert_eq!(prr.allowed, 2, "one for the arrival and one for growth");
        prr.note_sent();
        prr.note_sent();
        prr.update(2, 9, 10, true);
        assert_eq!(prr.allowed, 1, "never beyond the window");
    }

    #[test]
    fn the_first_retransmission_is_sent_even_if_the_window_is_full() {
        let mut prr = Prr::new(10);
        prr.update(0, 9, 1, false);
        assert_eq!(prr.allowed, 1);
        prr.note_sent();
        prr.update(0, 9, 1, false);
        assert_eq!(prr.allowed, 0);
    }
}
