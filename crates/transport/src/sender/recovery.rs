//! Loss recovery: RFC 6675 with SACK, RFC 6582 without, RFC 6298's timeout, RFC 4015's undo.

use super::blocks::Blocks;
use super::{Sender, State, context};
use crate::scoreboard::DUP_THRESH;
use crate::segment::AckSegment;
use sparelane_cc::{Congestion, Cx, Phase};
use sparelane_core::{Seq, Time};

impl Sender {
    /// Whether `ack` shows that the first outstanding segment was resent in vain: its original arrived.
    pub(super) fn is_needless_resend(&self, ack: &AckSegment) -> bool {
        self.phase != Phase::Open
            && ack.cumulative > self.una
            && ack.trigger == self.una
            && !ack.trigger_retransmitted
            && self.board.is_resent(self.una)
    }

    pub(super) fn undo_losses(&mut self, now: Time) {
        self.board.undo_losses();
        if let Some(books) = &mut self.deliveries {
            books.tell_again_from(self.una);
        }
        self.leave_recovery();
        self.recover = 0;
        self.answered_at = Some(self.una);
        if self.cut {
            self.report(now, Congestion::Spurious);
        }
    }

    fn leave_recovery(&mut self) {
        self.phase = Phase::Open;
        self.inflation = 0;
        self.partial_acks = 0;
        self.rescue_sent = false;
        self.reduction = None;
    }

    /// Loss detection, and the ends of recovery.
    ///
    /// The acknowledgment covers `acked` segments in sequence, and delivers `delivered`.
    pub(super) fn detect_losses(&mut self, now: Time, ack: &AckSegment, acked: u32, delivered: u32) {
        if self.phase != Phase::Open && self.una >= self.recover {
            self.leave_recovery();
            self.note_recovery_without_reordering();
            let resent_bytes = (self.counts.retransmissions - self.resent_before) * self.mss_bytes;
            self.cc.on_repaired(resent_bytes, &mut context!(self, now));
            self.refresh();
        }
        if !self.sack {
            self.detect_losses_without_sack(now, ack, acked);
            return;
        }
        let found = if self.detects_by_time {
            self.detect_losses_by_time(now)
        } else {
            self.detect_losses_by_order(now);
            self.board.head_is_lost()
        };
        if found && self.phase == Phase::Open {
            self.enter_recovery(now, delivered);
        }
    }

    /// RFC 6675's IsLost.
    fn detect_losses_by_order(&mut self, now: Time) {
        if self.deliveries.is_some() {
            self.detect_lost_resends(now);
        }
        if self.board.arrived_out_of_order() > 0 {
            match self.dup_thresh {
                DUP_THRESH => _ = self.board.detect_losses(),
                more => _ = self.board.detect_losses_overtaken_by(more),
            }
            self.tell_losses(now);
        }
    }

    /// RFC 6582: three duplicate acknowledgments, then one retransmission for each partial one, which
    /// deflates the window by what it acknowledged, less one segment.
    fn detect_losses_without_sack(&mut self, now: Time, ack: &AckSegment, acked: u32) {
        if acked > 0 {
            if self.phase == Phase::Recovery {
                self.inflation += 1 - i64::from(acked);
                self.partial_acks += 1;
                self.resend_first();
                self.tell_losses(now);
            }
            return;
        }
        // RC3: what lies below was overtaken by the bump and says nothing of the head.
        if ack.cumulative < self.una || self.flight() == 0 || (self.uses_tail && ack.trigger < self.una) {
            return;
        }
        self.dup_acks += 1;
        if self.phase == Phase::Recovery {
            self.inflation += 1;
        } else if self.phase == Phase::Open && self.dup_acks >= DUP_THRESH && self.is_past_recovery() {
            self.enter_recovery(now, 0);
            self.inflation = i64::from(DUP_THRESH);
        }
    }

    /// Whether the acknowledgments cover more than the last episode: until then, duplicates may stem from what it
    /// resent in vain (RFC 6582 section 3.2, step 1).
    fn is_past_recovery(&self) -> bool {
        self.recover == 0 || self.una > self.recover
    }

    /// A loss is found by an acknowledgment that delivers `delivered` segments: an episode begins.
    pub(super) fn enter_recovery(&mut self, now: Time, delivered: u32) {
        // RFC 5681 section 3.2: FlightSize leaves out what limited transmit sent.
        let beyond_window = self.flight().saturating_sub(self.cwnd_segments);
        let limited_transmit = u64::from(beyond_window).min(self.allowance_segments()) as u32;
        let flight_bytes = self.flight_for_cut(self.flight() - limited_transmit);
        self.phase = Phase::Recovery;
        self.recover = self.nxt;
        self.resent_before = self.counts.retransmissions;
        self.cut = self.answered_at.is_none_or(|at| self.una >= at);
        if self.detects_by_time {
            self.cancel_probe();
            self.resend_head = self.board.waiting_to_be_resent();
        } else {
            self.resend_first();
            self.tell_losses(now);
        }
        self.begin_reduction(delivered);
        if self.cut {
            self.note_answer();
            self.report(now, Congestion::Loss { flight_bytes });
        }
    }

    /// The first outstanding segment goes again at once, unless it is on its way again already.
    fn resend_first(&mut self) {
        self.board.mark_head_lost();
        self.resend_head = self.board.waiting_to_be_resent() && !self.board.is_resent(self.una);
    }

    /// Time has passed.
    pub fn handle_timer(&mut self, now: Time) {
        if now >= self.pace_at {
            self.pace_at = Time::NEVER;
        }
        if now >= self.controller_at {
            self.cc.on_timer(&mut context!(self, now));
            self.refresh();
        }
        if self.rack.as_ref().is_some_and(|rack| now >= rack.next_timer()) {
            self.handle_rack_timer(now);
        }
        if self.advertised.is_some() {
            self.handle_probe_timer(now);
        }
        if now < self.rto_deadline {
            return;
        }
        // What waits in a scheduler below TCP has not been lost, even if nobody asked for it in time.
        if self.scheduler.as_ref().is_some_and(|scheduler| !scheduler.is_empty()) {
            self.rto_deadline = now + self.rtt.rto();
            return;
        }
        let waited = if self.state == State::Established { self.rtt.rto() } else { self.rtt.syn_timeout() };
        let is_first = if self.state == State::Established {
            self.phase != Phase::Timeout || self.una > self.una_at_timeout
        } else {
            self.syn_timeouts == 0
        };
        if self.gives_up(now, is_first, waited) {
            return;
        }
        self.counts.timeouts += 1;
        self.rtt.timed_out();
        if self.state != State::Established {
            self.syn_timeouts += 1;
            self.state = State::SendSyn;
            self.rto_deadline = Time::NEVER;
            return;
        }
        let flight_bytes = self.flight_for_cut(self.flight());
        let forget = !self.config.sack_survives_timeout;
        if forget {
            self.last_blocks = Blocks::default();
            self.last_low_blocks = self.uses_tail.then(Box::default);
        }
        self.board.time_out(self.nxt, forget);
        self.forget_reordering();
        if self.detects_by_time {
            self.cancel_probe();
            self.keep_recent_in_flight(now);
        }
        if let Some(books) = &mut self.deliveries {
            books.tell_again_from(self.una);
        }
        self.tell_losses(now);
        self.pass_what_arrived();
        self.leave_recovery();
        self.phase = Phase::Timeout;
        self.recover = self.nxt;
        self.resent_before = self.counts.retransmissions;
        self.una_at_timeout = self.una;
        self.dup_acks = 0;
        self.cut = true;
        self.resend_head = self.board.waiting_to_be_resent();
        self.note_answer();
        self.report(now, Congestion::Timeout { flight_bytes, first: is_first });
        let patience_ends = self.patience_ends();
        self.rto_deadline = if self.flight() == 0 { Time::NEVER } else { (now + self.rtt.rto()).min(patience_ends) };
    }

    /// RC3: class-0 copies are lost that the tail had brought already, so that nothing acknowledges them.
    fn pass_what_arrived(&mut self) {
        let mut to = self.una;
        while to < self.nxt && self.board.is_sacked(to) {
            to += 1;
        }
        if to > self.una {
            self.pass(to);
        }
    }

    /// RFC 6675's NextSeg: what is lost, then what is new, then what is doubtful.
    pub(super) fn next_in_recovery(&mut self) -> Option<Seq> {
        if let Some(seq) = self.board.next_lost() {
            return Some(seq);
        }
        if let Some(seq) = self.next_new() {
            return Some(seq);
        }
        if self.phase != Phase::Recovery || !self.sack || self.detects_by_time {
            return None;
        }
        if let Some(seq) = self.board.next_doubtful() {
            return Some(seq);
        }
        // Rule 4: once an episode, the last segment outstanding, to elicit a report about the rest.
        if self.rescue_sent {
            return None;
        }
        self.board.highest_outstanding(self.nxt)
    }
}
