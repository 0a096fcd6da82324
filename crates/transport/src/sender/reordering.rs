//! How much reordering a path shows, and what loss detection makes of it, where that is set.
//!
//! By order: a segment is lost where three later ones have arrived (RFC 6675's DupThresh). Where a segment arrives that many have
//! overtaken, and that was not sent again, the threshold rises to one more than those, as in Linux (`tcp_check_sack_reordering`), and
//! limited transmit sends a new segment for each of the arrivals that it now waits for, as RFC 4653 says. A timeout ends it.
//!
//! By time: where a retransmission proves needless, because both copies arrive, the margin for reordering grows by a quarter of the
//! least round-trip time, once a round trip, up to the smoothed round-trip time; sixteen recoveries without such a thing make it a
//! quarter again (RFC 8985 section 6.2, step 4). What RFC 8985 takes from DSACK is here told by the copy that every acknowledgment
//! names.

use super::Sender;
use crate::scoreboard::DUP_THRESH;
use crate::segment::AckSegment;
use sparelane_core::Seq;

/// The most that the threshold rises to, as in Linux (`tcp_max_reordering`).
const MOST_OVERTAKEN: u32 = 300;

/// Recoveries without a needless retransmission after which the margin is the least again (RFC 8985 section 6.2, step 4).
const PERSISTENCE: u32 = 16;

/// What one connection has shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    /// The margin by time, in quarters of the least round-trip time (RFC 8985's RACK.reo_wnd_mult).
    quarters: u32,
    /// The margin does not grow again until everything below is acknowledged (RACK.dsack_round).
    round_end: Option<Seq>,
    /// Recoveries until the margin is the least again (RACK.reo_wnd_persist).
    persist: u32,
}

impl Default for Reordering {
    fn default() -> Reordering {
        Reordering { quarters: 1, round_end: None, persist: PERSISTENCE }
    }
}

impl Sender {
    /// The margin by time, in quarters of the least round-trip time.
    pub(super) fn margin_quarters(&self) -> u32 {
        self.reordering.as_ref().map_or(1, |seen| seen.quarters)
    }

    /// Learns from the segment whose arrival causes `ack`, before that is handled.
    #[cold]
    pub(super) fn note_reordering(&mut self, ack: &AckSegment) {
        let is_outstanding = ack.trigger >= self.una && ack.trigger < self.nxt;
        let is_new = is_outstanding && !self.board.is_gone(ack.trigger);
        let overtaken = if is_new && !ack.trigger_retransmitted { self.board.arrivals_above(ack.trigger) } else { 0 };
        // What answers a probe of the window names the last segment that arrived, as one that came for the first time.
        let is_known_copy = ack.trigger_retransmitted || self.repair.resends.last_of(ack.trigger).is_some();
        let had_it = if is_outstanding { !is_new } else { ack.trigger < self.una && ack.cumulative == self.una };
        let is_second_copy = had_it && is_known_copy;
        let (una, nxt) = (self.una, self.nxt);
        let Some(seen) = &mut self.reordering else { return };
        if overtaken > 0 {
            self.repair.dup_thresh = self.repair.dup_thresh.max((overtaken + 1).min(MOST_OVERTAKEN));
        }
        if seen.round_end.is_some_and(|end| una >= end) {
            seen.round_end = None;
        }
        if is_second_copy && seen.round_end.is_none() {
            seen.round_end = Some(nxt);
            seen.quarters += 1;
            seen.persist = PERSISTENCE;
        }
    }

    /// An episode of recovery is over.
    pub(super) fn note_recovery_without_reordering(&mut self) {
        let Some(seen) = &mut self.reordering else { return };
        if seen.round_end.is_none() {
            seen.persist = seen.persist.saturating_sub(1);
            if seen.persist == 0 {
                seen.quarters = 1;
            }
        }
    }

    /// The retransmission timer fired: whatever was waited for did not come.
    pub(super) fn forget_reordering(&mut self) {
        self.repair.dup_thresh = DUP_THRESH;
    }
}
