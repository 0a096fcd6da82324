//! Loss recovery: RFC 6675 with SACK, RFC 6582 without, RFC 6298's timeout, RFC 4015's undo.

use super::blocks::Blocks;
use super::reduction::Reduction;
use super::resends::Resends;
use super::{Sender, State, context};
use crate::scoreboard::DUP_THRESH;
use crate::segment::AckSegment;
use sparelane_cc::{Congestion, Cx, Phase};
use sparelane_core::{Seq, Time};
use std::collections::VecDeque;

/// Where the repair of losses stands.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Repair {
    /// An episode of recovery ends when everything below is acknowledged.
    pub(super) recover: Seq,
    pub(super) dup_acks: u32,
    /// So many arrivals behind a segment show that it is lost.
    pub(super) dup_thresh: u32,
    /// NewReno's inflation of the window, segments (RFC 6582).
    pub(super) inflation: i64,
    /// NewReno rearms the timer on the first partial acknowledgment only (RFC 6582 section 3.2).
    pub(super) partial_acks: u32,
    /// This episode's rescue retransmission was sent (RFC 6675's RescueRxt).
    pub(super) rescue_sent: bool,
    /// This episode cut the window; it does not where a mark or a full interface had done so.
    pub(super) cut: bool,
    /// What was not acknowledged first when the retransmission timer last fired.
    pub(super) una_at_timeout: Seq,
    /// What was new when congestion was last answered: it is answered again once more than that is acknowledged.
    pub(super) answered_at: Option<Seq>,
    /// The reduction of the window that is under way, where it is to be in proportion to what arrives.
    pub(super) reduction: Option<Reduction>,
    pub(super) resends: Resends,
    /// Retransmissions whose loss is looked for, in the order in which they were sent, and what was new then.
    watched: VecDeque<(Seq, Seq)>,
    /// Retransmissions before this episode.
    resent_before: u64,
}

impl Default for Repair {
    fn default() -> Repair {
        Repair {
            recover: 0,
            dup_acks: 0,
            dup_thresh: DUP_THRESH,
            inflation: 0,
            partial_acks: 0,
            rescue_sent: false,
            cut: false,
            una_at_timeout: 0,
            answered_at: None,
            reduction: None,
            resends: Resends::default(),
            watched: VecDeque::new(),
            resent_before: 0,
        }
    }
}

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
        self.repair.recover = 0;
        self.repair.answered_at = Some(self.una);
        if self.repair.cut {
            self.report(now, Congestion::Spurious);
        }
    }

    fn leave_recovery(&mut self) {
        self.phase = Phase::Open;
        self.repair.inflation = 0;
        self.repair.partial_acks = 0;
        self.repair.rescue_sent = false;
        self.repair.reduction = None;
    }

    /// Loss detection, and the ends of recovery.
    ///
    /// The acknowledgment covers `acked` segments in sequence, and delivers `delivered`.
    pub(super) fn detect_losses(&mut self, now: Time, ack: &AckSegment, acked: u32, delivered: u32) {
        if self.phase != Phase::Open && self.una >= self.repair.recover {
            self.leave_recovery();
            self.note_recovery_without_reordering();
            let resent_bytes = (self.counts.retransmissions - self.repair.resent_before) * self.mss_bytes;
            self.cc.on_repaired(resent_bytes, &mut context!(self, now));
            self.refresh();
        }
        if !self.kind.sack {
            self.detect_losses_without_sack(now, ack, acked);
            return;
        }
        let found = if self.kind.detects_by_time {
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
            if !self.repair.watched.is_empty() {
                self.detect_overtaken_resends(now);
            }
            match self.repair.dup_thresh {
                DUP_THRESH => _ = self.board.detect_losses(),
                more => _ = self.board.detect_losses_overtaken_by(more),
            }
            self.tell_losses(now);
        }
    }

    /// Segment `seq` was sent again: its loss is looked for, where that is set, and where nothing else finds it: by time, or by the
    /// order of all that was sent, as for controllers that hear of single segments.
    pub(super) fn watch_resend(&mut self, seq: Seq) {
        let is_found_otherwise = self.kind.detects_by_time || self.deliveries.is_some();
        if self.config.detect_lost_retransmissions && !is_found_otherwise {
            self.repair.watched.push_back((seq, self.nxt));
        }
    }

    /// Finds retransmissions that were lost: something has arrived that was sent for the first time after them, as Linux before
    /// RACK takes them for lost (`tcp_mark_lost_retrans`).
    #[cold]
    fn detect_overtaken_resends(&mut self, now: Time) {
        let Some(highest) = self.board.highest_arrival() else { return };
        while let Some(&(seq, new)) = self.repair.watched.front()
            && new < highest
        {
            self.repair.watched.pop_front();
            if seq >= self.una && self.board.is_resent(seq) && self.board.is_lost(seq) {
                self.lose_resend(now, seq);
            }
        }
    }

    /// RFC 6582: three duplicate acknowledgments, then one retransmission for each partial one, which
    /// deflates the window by what it acknowledged, less one segment.
    fn detect_losses_without_sack(&mut self, now: Time, ack: &AckSegment, acked: u32) {
        if acked > 0 {
            if self.phase == Phase::Recovery {
                self.repair.inflation += 1 - i64::from(acked);
                self.repair.partial_acks += 1;
                self.resend_first();
                self.tell_losses(now);
            }
            return;
        }
        // RC3: what lies below was overtaken by the bump and says nothing of the head.
        if ack.cumulative < self.una || self.flight() == 0 || (self.kind.uses_tail && ack.trigger < self.una) {
            return;
        }
        self.repair.dup_acks += 1;
        if self.phase == Phase::Recovery {
            self.repair.inflation += 1;
        } else if self.phase == Phase::Open && self.repair.dup_acks >= DUP_THRESH && self.is_past_recovery() {
            self.enter_recovery(now, 0);
            self.repair.inflation = i64::from(DUP_THRESH);
        }
    }

    /// Whether the acknowledgments cover more than the last episode: until then, duplicates may stem from what it
    /// resent in vain (RFC 6582 section 3.2, step 1).
    fn is_past_recovery(&self) -> bool {
        self.repair.recover == 0 || self.una > self.repair.recover
    }

    /// A loss is found by an acknowledgment that delivers `delivered` segments: an episode begins.
    pub(super) fn enter_recovery(&mut self, now: Time, delivered: u32) {
        // RFC 5681 section 3.2: FlightSize leaves out what limited transmit sent.
        let beyond_window = self.flight().saturating_sub(self.cwnd_segments);
        let limited_transmit = u64::from(beyond_window).min(self.allowance_segments()) as u32;
        let flight_bytes = self.flight_for_cut(self.flight() - limited_transmit);
        self.phase = Phase::Recovery;
        self.repair.recover = self.nxt;
        self.repair.resent_before = self.counts.retransmissions;
        self.repair.cut = self.repair.answered_at.is_none_or(|at| self.una >= at);
        if self.kind.detects_by_time {
            self.cancel_probe();
            self.resend_head = self.board.waiting_to_be_resent();
        } else {
            self.resend_first();
            self.tell_losses(now);
        }
        self.begin_reduction(delivered);
        if self.repair.cut {
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
        if now >= self.timers.pace_at {
            self.timers.pace_at = Time::NEVER;
        }
        if now >= self.timers.controller_at {
            self.cc.on_timer(&mut context!(self, now));
            self.refresh();
        }
        if self.rack.as_ref().is_some_and(|rack| now >= rack.next_timer()) {
            self.handle_rack_timer(now);
        }
        if self.advertised.is_some() {
            self.handle_probe_timer(now);
        }
        if now < self.timers.rto_deadline {
            return;
        }
        // What waits in a scheduler below TCP has not been lost, even if nobody asked for it in time.
        if self.scheduler.as_ref().is_some_and(|scheduler| !scheduler.is_empty()) {
            self.timers.rto_deadline = now + self.rtt.rto();
            return;
        }
        let waited = if self.state == State::Established { self.rtt.rto() } else { self.rtt.syn_timeout() };
        let is_first = if self.state == State::Established {
            self.phase != Phase::Timeout || self.una > self.repair.una_at_timeout
        } else {
            self.life.syn_timeouts == 0
        };
        if self.gives_up(now, is_first, waited) {
            return;
        }
        self.counts.timeouts += 1;
        self.rtt.timed_out();
        if self.state != State::Established {
            self.life.syn_timeouts += 1;
            self.state = State::SendSyn;
            self.timers.rto_deadline = Time::NEVER;
            return;
        }
        let flight_bytes = self.flight_for_cut(self.flight());
        let forget = !self.config.sack_survives_timeout;
        if forget {
            self.last_blocks = Blocks::default();
            self.last_low_blocks = self.kind.uses_tail.then(Box::default);
        }
        self.board.time_out(self.nxt, forget);
        self.forget_reordering();
        self.repair.watched.clear();
        if self.kind.detects_by_time {
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
        self.repair.recover = self.nxt;
        self.repair.resent_before = self.counts.retransmissions;
        self.repair.una_at_timeout = self.una;
        self.repair.dup_acks = 0;
        self.repair.cut = true;
        self.resend_head = self.board.waiting_to_be_resent();
        self.note_answer();
        self.report(now, Congestion::Timeout { flight_bytes, first: is_first });
        let patience_ends = self.patience_ends();
        self.timers.rto_deadline =
            if self.flight() == 0 { Time::NEVER } else { (now + self.rtt.rto()).min(patience_ends) };
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
        if self.phase != Phase::Recovery || !self.kind.sack || self.kind.detects_by_time {
            return None;
        }
        if let Some(seq) = self.board.next_doubtful() {
            return Some(seq);
        }
        // Rule 4: once an episode, the last segment outstanding, to elicit a report about the rest.
        if self.repair.rescue_sent {
            return None;
        }
        self.board.highest_outstanding(self.nxt)
    }
}
