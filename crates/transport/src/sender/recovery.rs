//! Loss recovery: RFC 6675 with SACK, RFC 6582 without SACK, go-back-N, the retransmission timeout of RFC 6298, and the
//! undo of RFC 4015.

use super::prr::Prr;
use super::retransmission_times::RetransmissionTimes;
use super::{Sender, SenderCounts, State, context};
use crate::accurate_ecn::MarkFeedback;
use crate::scoreboard::DUP_THRESH;
use crate::segment::AckSegment;
use sparelane_cc::{Congestion, Cx, Phase};
use sparelane_core::{Seq, Time};
use std::collections::VecDeque;

/// The state of loss recovery.
#[derive(Debug)]
#[repr(C)]
pub(super) struct RecoveryState {
    /// Recovery ends when all segments below are acknowledged (RecoveryPoint).
    pub(super) recover: Seq,
    pub(super) dup_acks: u32,
    /// The number of later arrivals after which a segment is lost (DupThresh).
    pub(super) dup_thresh: u32,
    /// NewReno's inflation of the window, in segments (RFC 6582).
    pub(super) inflation: i64,
    /// The number of partial acknowledgments. NewReno restarts the timer only at the first one (RFC 6582 section 3.2).
    pub(super) partial_acks: u32,
    /// The rescue retransmission of this recovery was sent (RescueRxt of RFC 6675).
    pub(super) rescue_sent: bool,
    /// This recovery reduced the window. It does not if a mark or a full interface had already reduced it.
    pub(super) reduced_window: bool,
    /// Proportional rate reduction is in progress.
    has_prr: bool,
    /// `None` before the first retransmission, timeout or reduction of the window, without accurate ECN.
    repairs: Option<Box<Repairs>>,
}

/// The part of the recovery state that a connection needs only once it has lost a packet or reduced its window.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// `una` at the last expiration of the retransmission timer.
    una_at_timeout: Seq,
    /// The time at which go-back-N last went back.
    went_back_at: Time,
    /// `nxt` at the last reduction of the window. The window is reduced again only after data beyond it is
    /// acknowledged.
    pub(super) reduced_at: Option<Seq>,
    /// The state of proportional rate reduction, while it is in progress.
    prr: Prr,
    pub(super) retransmission_times: RetransmissionTimes,
    /// Retransmissions to be checked for loss, in sending order, each with `nxt` at its transmission.
    tracked_retransmissions: VecDeque<(Seq, Seq)>,
    /// The number of retransmissions before this recovery.
    resent_before: u64,
    pub(super) counts: SenderCounts,
    /// The counters of marks, on connections that have agreed to accurate ECN.
    pub(super) marks: Option<Box<MarkFeedback>>,
}

impl Repairs {
    #[cold]
    #[inline(never)]
    fn create() -> Box<Repairs> {
        Box::default()
    }
}

impl Default for RecoveryState {
    fn default() -> RecoveryState {
        RecoveryState {
            recover: 0,
            dup_acks: 0,
            dup_thresh: DUP_THRESH,
            inflation: 0,
            partial_acks: 0,
            rescue_sent: false,
            reduced_window: false,
            has_prr: false,
            repairs: None,
        }
    }
}

impl RecoveryState {
    #[inline(always)]
    pub(super) fn repairs(&self) -> Option<&Repairs> {
        self.repairs.as_deref()
    }

    #[inline(always)]
    pub(super) fn repairs_mut(&mut self) -> &mut Repairs {
        self.repairs.get_or_insert_with(Repairs::create)
    }

    /// Returns the time of the last retransmission of `seq`, if it was retransmitted.
    #[inline(never)]
    pub(super) fn retransmitted_at(&self, seq: Seq) -> Option<Time> {
        self.repairs.as_ref()?.retransmission_times.last_of(seq)
    }

    /// Returns the state of proportional rate reduction, if it is in progress.
    #[inline(always)]
    pub(super) fn prr(&self) -> Option<&Prr> {
        if self.has_prr { self.repairs.as_ref().map(|repairs| &repairs.prr) } else { None }
    }

    #[inline(always)]
    pub(super) fn prr_mut(&mut self) -> Option<&mut Prr> {
        if self.has_prr { self.repairs.as_mut().map(|repairs| &mut repairs.prr) } else { None }
    }

    /// Starts proportional rate reduction with `prr`, or ends it.
    pub(super) fn set_prr(&mut self, prr: Option<Prr>) {
        self.has_prr = prr.is_some();
        if let Some(prr) = prr {
            self.repairs_mut().prr = prr;
        }
    }

    /// Returns `nxt` at the last reduction of the window, if there was one.
    pub(super) fn reduced_at(&self) -> Option<Seq> {
        self.repairs.as_ref()?.reduced_at
    }

    /// Returns the heap memory in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.repairs.as_ref().map_or(0, |repairs| {
            let tracked = repairs.tracked_retransmissions.capacity() * size_of::<(Seq, Seq)>();
            size_of::<Repairs>() + repairs.retransmission_times.list_bytes() + tracked
        })
    }
}

impl Sender {
    /// Returns whether `ack` shows that the retransmission of the oldest outstanding segment was spurious, because the
    /// original copy triggered it (Eifel detection, RFC 3522).
    ///
    /// A delayed acknowledgment has the last of its segments as trigger, but echoes the timestamp of the first one (RFC
    /// 7323 section 4.2). It is not marked as triggered by a retransmission if all its segments are first
    /// transmissions. It acknowledges segments in order, so its trigger is its last segment. Segments below `recover`
    /// were sent before the retransmission.
    pub(super) fn is_spurious_retransmission(&self, ack: &AckSegment) -> bool {
        let is_delayed = || ack.cumulative == ack.trigger + 1 && ack.trigger < self.recovery.recover;
        self.phase != Phase::Open
            && ack.cumulative > self.una
            && !ack.trigger_retransmitted
            && (ack.trigger == self.una || is_delayed())
            && self.board.is_resent(self.una)
    }

    /// Leaves recovery and undoes the reduction of the window after a spurious retransmission (Eifel response, RFC
    /// 4015).
    pub(super) fn undo_losses(&mut self, now: Time) {
        self.board.undo_losses();
        // Losses reported so far were mistaken and may be reported again.
        if let Some(tracker) = &mut self.delivery_tracker {
            tracker.report_again_from(self.una);
        }
        self.leave_recovery();
        self.recovery.recover = 0;
        self.recovery.repairs_mut().reduced_at = Some(self.una);
        if self.recovery.reduced_window {
            self.report_congestion(now, Congestion::Spurious);
        }
    }

    fn leave_recovery(&mut self) {
        self.phase = Phase::Open;
        self.recovery.inflation = 0;
        self.recovery.partial_acks = 0;
        self.recovery.rescue_sent = false;
        self.recovery.set_prr(None);
    }

    /// Detects losses after an acknowledgment, and enters or leaves recovery.
    ///
    /// The acknowledgment cumulatively acknowledges `acked` segments and newly reports `delivered` segments.
    pub(super) fn detect_losses(&mut self, now: Time, ack: &AckSegment, acked: u32, delivered: u32) {
        if self.phase != Phase::Open && self.una >= self.recovery.recover {
            self.leave_recovery();
            self.note_recovery_end();
            let resent =
                self.recovery.repairs().map_or(0, |repairs| repairs.counts.retransmissions - repairs.resent_before);
            let resent_bytes = resent * self.mss_bytes;
            self.cc.on_repaired(resent_bytes, &mut context!(self, now));
            self.refresh();
        }
        if self.features.goes_back {
            return self.detect_losses_by_refusal(now, ack);
        }
        if !self.features.sack {
            self.detect_losses_without_sack(now, ack, acked);
            return;
        }
        let found = if self.features.rack_tlp {
            self.detect_losses_by_time(now)
        } else {
            self.detect_losses_by_order(now);
            self.board.head_is_lost()
        };
        if found && self.phase == Phase::Open {
            self.enter_recovery(now, delivered);
        }
    }

    /// Detects losses by RFC 6675's IsLost.
    fn detect_losses_by_order(&mut self, now: Time) {
        if self.delivery_tracker.is_some() {
            self.detect_lost_retransmissions_by_order(now);
        }
        if self.board.arrived_out_of_order() > 0 {
            if self.recovery.repairs().is_some_and(|repairs| !repairs.tracked_retransmissions.is_empty()) {
                self.detect_lost_retransmissions_by_fack(now);
            }
            match self.recovery.dup_thresh {
                DUP_THRESH => _ = self.board.detect_losses(),
                more => _ = self.board.detect_losses_with_threshold(more),
            }
            self.report_losses(now);
        }
    }

    /// Starts to track the retransmission of `seq` for
    /// [`detect_lost_retransmissions`](crate::TransportConfig::detect_lost_retransmissions). RACK and the delivery rate
    /// state detect its loss by themselves.
    pub(super) fn track_retransmission(&mut self, seq: Seq) {
        if self.features.tracks_retransmissions {
            self.recovery.repairs_mut().tracked_retransmissions.push_back((seq, self.nxt));
        }
    }

    /// Marks retransmissions lost if a new segment that was sent after them has arrived, as Linux did before RACK
    /// (`tcp_mark_lost_retrans`).
    #[cold]
    fn detect_lost_retransmissions_by_fack(&mut self, now: Time) {
        let Some(highest) = self.board.highest_arrival() else { return };
        while let Some(&(seq, new)) =
            self.recovery.repairs().and_then(|repairs| repairs.tracked_retransmissions.front())
            && new < highest
        {
            self.recovery.repairs_mut().tracked_retransmissions.pop_front();
            if seq >= self.una && self.board.is_resent(seq) && self.board.is_lost(seq) {
                self.mark_retransmission_lost(now, seq);
            }
        }
    }

    /// Detects losses by duplicate acknowledgments (RFC 6582). The third one starts recovery. Each partial
    /// acknowledgment retransmits one segment and deflates the window by the segments acknowledged, less one.
    fn detect_losses_without_sack(&mut self, now: Time, ack: &AckSegment, acked: u32) {
        if acked > 0 {
            if self.phase == Phase::Recovery {
                self.recovery.inflation += 1 - i64::from(acked);
                self.recovery.partial_acks += 1;
                self.retransmit_first();
                self.report_losses(now);
            }
            return;
        }
        // RC3: acknowledgments of segments below the ACK bump are no duplicates, nor are updates of the advertised
        // window (RFC 5681 section 2).
        if ack.cumulative < self.una || self.flight() == 0 {
            return;
        }
        if ack.trigger < self.una && (self.features.uses_tail || self.advertised_window.is_some()) {
            return;
        }
        self.recovery.dup_acks += 1;
        if self.phase == Phase::Recovery {
            self.recovery.inflation += 1;
        } else if self.phase == Phase::Open && self.recovery.dup_acks >= DUP_THRESH && self.is_past_recovery() {
            self.enter_recovery(now, 0);
            self.recovery.inflation = i64::from(DUP_THRESH);
        }
    }

    /// Goes back if the receiver has dropped a segment and names the oldest outstanding one as expected (go-back-N).
    fn detect_losses_by_refusal(&mut self, now: Time, ack: &AckSegment) {
        if ack.cumulative != self.una || ack.trigger <= ack.cumulative || self.flight() == 0 {
            return;
        }
        // Segments that were sent before still arrive, and the receiver drops them. Only a later one shows another loss.
        if self.phase != Phase::Open {
            let is_later = ack.trigger_retransmitted || ack.trigger >= self.recovery.recover;
            let since = self.recovery.repairs().map_or(Time::ZERO, |repairs| repairs.went_back_at);
            let is_back = self.rtt.min_rtt().is_none_or(|min_rtt| now.saturating_since(since) >= min_rtt);
            if !is_later || !is_back {
                return;
            }
        }
        self.go_back(now);
    }

    /// Repeats everything from the oldest outstanding segment on.
    #[cold]
    #[inline(never)]
    fn go_back(&mut self, now: Time) {
        let flight_bytes = self.flight_size_bytes(self.flight());
        self.board.time_out(self.nxt, true);
        if let Some(tracker) = &mut self.delivery_tracker {
            tracker.report_again_from(self.una);
        }
        self.report_losses(now);
        self.leave_recovery();
        self.phase = Phase::Recovery;
        self.recovery.recover = self.nxt;
        self.recovery.reduced_window = self.recovery.reduced_at().is_none_or(|at| self.una >= at);
        let repairs = self.recovery.repairs_mut();
        (repairs.resent_before, repairs.went_back_at) = (repairs.counts.retransmissions, now);
        self.retransmit_head = self.board.awaits_retransmission();
        self.timers.rto_deadline = now + self.rtt.rto();
        if self.recovery.reduced_window {
            self.note_reduction();
            self.report_congestion(now, Congestion::Loss { flight_bytes });
        }
    }

    /// Returns whether data beyond the last recovery is acknowledged. Earlier duplicate acknowledgments may stem from
    /// its unnecessary retransmissions (RFC 6582 section 3.2, step 1).
    fn is_past_recovery(&self) -> bool {
        self.recovery.recover == 0 || self.una > self.recovery.recover
    }

    /// Enters recovery after an acknowledgment that newly reports `delivered` segments.
    pub(super) fn enter_recovery(&mut self, now: Time, delivered: u32) {
        // RFC 5681 section 3.2: FlightSize excludes segments sent by limited transmit.
        let beyond_window = self.flight().saturating_sub(self.cwnd_segments);
        let limited_transmit = u64::from(beyond_window).min(self.allowance_segments()) as u32;
        let flight_bytes = self.flight_size_bytes(self.flight() - limited_transmit);
        self.phase = Phase::Recovery;
        self.recovery.recover = self.nxt;
        self.recovery.reduced_window = self.recovery.reduced_at().is_none_or(|at| self.una >= at);
        let repairs = self.recovery.repairs_mut();
        repairs.resent_before = repairs.counts.retransmissions;
        // RACK has marked the losses. Otherwise the oldest segment is lost by definition.
        if self.features.rack_tlp {
            self.cancel_probe();
            self.retransmit_head = self.board.awaits_retransmission();
        } else {
            self.retransmit_first();
            self.report_losses(now);
        }
        self.begin_prr(delivered);
        if self.recovery.reduced_window {
            self.note_reduction();
            self.report_congestion(now, Congestion::Loss { flight_bytes });
        }
    }

    /// Requests the immediate retransmission of the oldest outstanding segment, unless its retransmission is in flight.
    fn retransmit_first(&mut self) {
        self.board.mark_head_lost();
        self.retransmit_head = self.board.awaits_retransmission() && !self.board.is_resent(self.una);
    }

    /// Handles all timers that expired by `now`. Call it at [`next_timer`](Self::next_timer).
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
        if self.advertised_window.is_some() {
            self.handle_persist_timer(now);
        }
        if now < self.timers.rto_deadline {
            return;
        }
        if self.has_all_reported() {
            self.timers.rto_deadline = Time::NEVER;
            return;
        }
        // Segments that wait in a scheduler below TCP cannot be lost, even if the sender was polled late.
        if self.scheduler.as_ref().is_some_and(|scheduler| !scheduler.is_empty()) {
            self.timers.rto_deadline = now + self.rtt.rto();
            return;
        }
        // The user timeout takes precedence over a retransmission.
        let waited = if self.state == State::Established { self.rtt.rto() } else { self.rtt.syn_timeout() };
        let is_first = if self.state == State::Established {
            self.phase != Phase::Timeout
                || self.una > self.recovery.repairs().map_or(0, |repairs| repairs.una_at_timeout)
        } else {
            self.lifecycle.syn_timeouts == 0
        };
        if self.check_user_timeout(now, is_first, waited) {
            return;
        }
        self.recovery.repairs_mut().counts.timeouts += 1;
        self.rtt.timed_out();
        // The SYN is sent again by the next poll.
        if self.state != State::Established {
            self.lifecycle.syn_timeouts += 1;
            self.state = State::SendSyn;
            self.timers.rto_deadline = Time::NEVER;
            return;
        }
        let flight_bytes = self.flight_size_bytes(self.flight());
        // The receiver may have reneged (RFC 2018 section 8), so SACK information is discarded if configured.
        let forget = !self.config.sack_survives_timeout;
        if forget {
            self.last_reports = None;
        }
        // All unreported segments are lost (RFC 6675 section 5.1), except for recent ones with RACK.
        self.board.time_out(self.nxt, forget);
        self.reset_dup_thresh();
        self.recovery.repairs_mut().tracked_retransmissions.clear();
        if self.features.rack_tlp {
            self.cancel_probe();
            self.restore_recent_in_flight(now);
        }
        if let Some(tracker) = &mut self.delivery_tracker {
            tracker.report_again_from(self.una);
        }
        self.report_losses(now);
        self.advance_over_sacked();
        self.leave_recovery();
        self.phase = Phase::Timeout;
        self.recovery.recover = self.nxt;
        let una = self.una;
        let repairs = self.recovery.repairs_mut();
        (repairs.resent_before, repairs.una_at_timeout) = (repairs.counts.retransmissions, una);
        self.recovery.dup_acks = 0;
        self.recovery.reduced_window = true;
        self.retransmit_head = self.board.awaits_retransmission();
        self.note_reduction();
        self.report_congestion(now, Congestion::Timeout { flight_bytes, first: is_first });
        // The timer restarts with backoff, but not beyond the user timeout.
        let user_timeout_deadline = self.user_timeout_deadline();
        self.timers.rto_deadline =
            if self.flight() == 0 { Time::NEVER } else { (now + self.rtt.rto()).min(user_timeout_deadline) };
    }

    /// Advances `una` over reported segments. In RC3, their class-0 copies may be lost although the receiver holds the
    /// copies from the tail, so no cumulative acknowledgment follows.
    fn advance_over_sacked(&mut self) {
        let mut to = self.una;
        while to < self.nxt && self.board.is_sacked(to) {
            to += 1;
        }
        if to > self.una {
            self.advance_without_ack(to);
        }
    }

    /// Returns the next segment in recovery (NextSeg of RFC 6675): a lost one, then a new one, then one that may be
    /// lost.
    pub(super) fn next_in_recovery(&mut self) -> Option<Seq> {
        if let Some(seq) = self.board.next_lost() {
            return Some(seq);
        }
        if let Some(seq) = self.next_new() {
            return Some(seq);
        }
        if self.phase != Phase::Recovery || !self.features.sack || self.features.rack_tlp {
            return None;
        }
        if let Some(seq) = self.board.next_by_rule_3() {
            return Some(seq);
        }
        // Rule 4: one rescue retransmission per recovery, of the highest segment outstanding.
        if self.recovery.rescue_sent {
            return None;
        }
        self.board.highest_outstanding(self.nxt)
    }
}
