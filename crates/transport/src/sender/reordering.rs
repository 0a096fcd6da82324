//! Adaptation of loss detection to the reordering observed on the path, if enabled.
//!
//! With RFC 6675, DupThresh adapts. When a segment arrives that was not retransmitted and that `n` later segments have
//! overtaken, DupThresh rises to `n + 1`, as in Linux (`tcp_check_sack_reordering`). Limited transmit then sends a new
//! segment for each of these arrivals (RFC 4653). A timeout resets DupThresh.
//!
//! With RACK, the reordering window adapts. When both copies of a segment arrive, its retransmission was spurious. The
//! window then grows by a quarter of the minimum round-trip time, at most once per round trip and up to the smoothed
//! round-trip time. After 16 recoveries without a spurious retransmission it is reset (RFC 8985 section 6.2, step 4).
//! RFC 8985 detects spurious retransmissions by DSACK; here each acknowledgment identifies the copy that triggered it.

use super::Sender;
use crate::scoreboard::DUP_THRESH;
use crate::segment::AckSegment;
use sparelane_core::Seq;

/// The largest DupThresh, as in Linux (`tcp_max_reordering`).
const MAX_DUP_THRESH: u32 = 300;

/// The number of recoveries without a spurious retransmission after which the reordering window is reset (RFC 8985
/// section 6.2, step 4).
const PERSISTENCE: u32 = 16;

/// The reordering state of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    /// The reordering window in quarters of the minimum round-trip time (RACK.reo_wnd_mult).
    reo_wnd_mult: u32,
    /// The window does not grow again until all segments below are acknowledged (RACK.dsack_round).
    round_end: Option<Seq>,
    /// The number of recoveries until the window is reset (RACK.reo_wnd_persist).
    reo_wnd_persist: u32,
}

impl Default for Reordering {
    fn default() -> Reordering {
        Reordering { reo_wnd_mult: 1, round_end: None, reo_wnd_persist: PERSISTENCE }
    }
}

impl Sender {
    /// Returns the reordering window in quarters of the minimum round-trip time.
    pub(super) fn reo_wnd_mult(&self) -> u32 {
        self.reordering.as_ref().map_or(1, |seen| seen.reo_wnd_mult)
    }

    /// Detects reordering from the segment that triggered `ack`, before `ack` is applied.
    #[cold]
    pub(super) fn note_reordering(&mut self, ack: &AckSegment) {
        let is_outstanding = ack.trigger >= self.una && ack.trigger < self.nxt;
        let is_new = is_outstanding && !self.board.is_gone(ack.trigger);
        let overtaken = if is_new && !ack.trigger_retransmitted { self.board.arrivals_above(ack.trigger) } else { 0 };
        // The answer to a window probe names the last segment that arrived as a first transmission.
        let is_known_copy = || ack.trigger_retransmitted || self.recovery.retransmitted_at(ack.trigger).is_some();
        let had_it = if is_outstanding { !is_new } else { ack.trigger < self.una && ack.cumulative == self.una };
        let is_second_copy = had_it && is_known_copy();
        let (una, nxt) = (self.una, self.nxt);
        let Some(seen) = &mut self.reordering else { return };
        if overtaken > 0 {
            self.recovery.dup_thresh = self.recovery.dup_thresh.max((overtaken + 1).min(MAX_DUP_THRESH));
        }
        if seen.round_end.is_some_and(|end| una >= end) {
            seen.round_end = None;
        }
        if is_second_copy && seen.round_end.is_none() {
            seen.round_end = Some(nxt);
            seen.reo_wnd_mult += 1;
            seen.reo_wnd_persist = PERSISTENCE;
        }
    }

    /// Counts the end of a recovery without a spurious retransmission.
    pub(super) fn note_recovery_end(&mut self) {
        let Some(seen) = &mut self.reordering else { return };
        if seen.round_end.is_none() {
            seen.reo_wnd_persist = seen.reo_wnd_persist.saturating_sub(1);
            if seen.reo_wnd_persist == 0 {
                seen.reo_wnd_mult = 1;
            }
        }
    }

    /// Resets DupThresh after a timeout.
    pub(super) fn reset_dup_thresh(&mut self) {
        self.recovery.dup_thresh = DUP_THRESH;
    }
}
