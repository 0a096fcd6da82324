//! The transmission of segments: which segment is next, and whether window, pacing and controller permit it.

use super::batch::Tail;
use super::{Sender, State, context};
use crate::segment::{Segment, Transmit};
use sparelane_cc::contract::permit_by_window;
use sparelane_cc::{Cx, Offer, Permit, Phase, TailOffer, WhichEnd};
use sparelane_core::{Seq, Time};

impl Sender {
    /// Returns the next packet to send now, if any. `nic_idle` is set if the queue of the host's interface is empty.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time, nic_idle: bool) -> Option<Transmit> {
        if self.send_fast_path { self.poll_fast(now).map(Transmit::Data) } else { self.poll_slow(now, nic_idle) }
    }

    /// Returns the next packet to send now, without the fast path.
    #[inline(always)]
    pub(super) fn poll_slow(&mut self, now: Time, nic_idle: bool) -> Option<Transmit> {
        if self.state != State::Established {
            return self.poll_unopened(now);
        }
        if self.may_restart {
            self.restart_after_idle(now);
        }
        if self.advertised_window.is_some()
            && let Some(probe) = self.poll_window_probe()
        {
            return Some(probe);
        }
        let next = match self.scheduler {
            Some(_) => self.poll_scheduled(now, nic_idle),
            None => self.poll_established(now, nic_idle),
        };
        if next.is_none() && self.features.uses_tail {
            self.restart_stopped_timer(now);
        }
        next
    }

    /// Returns the next segment that TCP sends now on an open connection, before any scheduler.
    #[inline(never)]
    pub(super) fn poll_established(&mut self, now: Time, nic_idle: bool) -> Option<Transmit> {
        if let Some(segment) = self.next_of_low_chunk() {
            self.last_sent = now;
            return Some(Transmit::Data(segment));
        }
        // The candidate of the head, in class 0, and the candidate of the tail.
        let mut head = match self.phase {
            Phase::Open if self.features.rack_tlp => self.next_probe().or_else(|| self.next_new()),
            Phase::Open => self.next_new(),
            Phase::Recovery | Phase::Timeout => self.next_in_recovery(),
        };
        // A head without room for its chunk counts as limited by the window.
        let mut waits_for_window = false;
        if self.batch.is_some()
            && let Some(seq) = head
            && !self.has_room_for_chunk(seq)
        {
            (head, waits_for_window) = (None, true);
        }
        let tail = if self.features.uses_tail { self.next_tail() } else { None };
        // A sender without data is not limited by its window, which controllers and rate samples must know.
        if head.is_none() && tail.is_none() {
            self.cwnd_limited = waits_for_window;
            if !waits_for_window {
                self.mark_app_limited();
            }
            return None;
        }
        waits_for_window |= head.is_some();
        // The pacing and the controller choose between head, tail and waiting.
        let offer = self.offer(head, tail, nic_idle);
        let inside_chunk = self.batch.is_some() && head == Some(self.nxt) && self.is_in_begun_chunk(self.nxt);
        match (self.request_permit(now, offer, inside_chunk), head, tail) {
            (Permit::Send(plan), Some(seq), _) if plan.end == WhichEnd::Head => {
                Some(Transmit::Data(self.send_head(now, seq, plan.class)))
            }
            (Permit::Send(plan), _, Some(tail)) if plan.end == WhichEnd::Tail => {
                self.cwnd_limited = waits_for_window;
                self.last_sent = now;
                self.buffer.sent_from_tail(tail.first);
                self.board.mark_sent_from_tail(tail.first);
                if let Some(batch) = &mut self.batch {
                    batch.begin_low(tail, plan.class);
                }
                Some(Transmit::Data(self.segment(tail.first, plan.class)))
            }
            (Permit::NotBefore(at), ..) => {
                debug_assert!(at > now, "at {now} a controller sets a departure time of {at}");
                let late_until = self.late_until(now);
                self.timers.pace_at = match &mut self.pacing.late {
                    Some(late) => late_until.unwrap_or_else(|| late.set(at)),
                    None => at,
                };
                None
            }
            _ => {
                self.cwnd_limited = waits_for_window;
                None
            }
        }
    }

    /// Returns whether window and pacing permit a new class-0 segment now.
    pub(super) fn may_send_new(&mut self, now: Time) -> bool {
        if self.state != State::Established {
            return false;
        }
        let Some(seq) = self.next_new() else { return false };
        if !self.has_room_for_chunk(seq) {
            return false;
        }
        let offer = self.offer(Some(seq), None, false);
        matches!(self.request_permit(now, offer, self.is_in_begun_chunk(seq)), Permit::Send(_))
    }

    /// Describes the candidate segments to the controller.
    #[inline(always)]
    fn offer(&self, head: Option<Seq>, tail: Option<Tail>, nic_idle: bool) -> Offer {
        Offer {
            head_bytes: head.map(|_| self.mss_bytes),
            head_is_resent: head.is_some_and(|seq| seq < self.nxt),
            tail: tail.map(|tail| TailOffer { sent_in_write: tail.sent_in_write }),
            in_flight_bytes: self.counted_segments() * self.mss_bytes,
            allowance_bytes: self.allowance_segments() * self.mss_bytes,
            nic_idle,
        }
    }

    /// Requests a permit from pacing, except inside a chunk, and then from the window or the controller that owns the
    /// send clock.
    #[inline(always)]
    fn request_permit(&mut self, now: Time, offer: Offer, inside_chunk: bool) -> Permit {
        if self.pacing.may_delay_head {
            self.permit_by_pacing(now, offer, inside_chunk)
        } else {
            self.permit_by_controller(now, &offer)
        }
    }

    #[inline(always)]
    fn permit_by_controller(&mut self, now: Time, offer: &Offer) -> Permit {
        if self.features.owns_send_clock {
            self.cc.poll_send(offer, &mut context!(self, now))
        } else {
            permit_by_window(self.limits, offer)
        }
    }

    #[inline(never)]
    fn permit_by_pacing(&mut self, now: Time, mut offer: Offer, inside_chunk: bool) -> Permit {
        let late_until = self.late_until(now);
        let early = late_until.is_some() || (self.limits.pacing.is_some() && now < self.pacing.paced_until);
        let paced = early && offer.head_bytes.is_some() && !inside_chunk;
        // Pacing delays only the head. The tail may still be sent.
        if paced {
            offer.head_bytes = None;
        }
        let permit = self.permit_by_controller(now, &offer);
        if paced && permit == Permit::Blocked {
            Permit::NotBefore(late_until.unwrap_or(self.pacing.paced_until))
        } else {
            permit
        }
    }

    /// Returns the class of the next segment from the tail on an idle interface, if there is such a segment.
    pub fn tail_class(&self) -> Option<u8> {
        if !self.features.uses_tail || self.state != State::Established {
            return None;
        }
        if let Some(class) = self.class_of_low_chunk() {
            return Some(class);
        }
        let Tail { sent_in_write, .. } = self.next_tail()?;
        self.cc.tail_class(&TailOffer { sent_in_write })
    }

    /// Returns the next segment or chunk from the tail, if it is inside the receive window.
    #[inline(always)]
    fn next_tail(&self) -> Option<Tail> {
        let (last, sent_in_write) = self.buffer.next_tail(self.nxt)?;
        if last - self.una >= Seq::from(self.receive_window_segments) {
            return None;
        }
        Some(self.tail_ending_with(last, sent_in_write))
    }

    /// Returns the SYN or the reset, if one is due.
    fn poll_unopened(&mut self, now: Time) -> Option<Transmit> {
        match self.state {
            State::SendSyn => {}
            State::Ended(_) => return self.poll_ended(),
            State::SynSent | State::Established => return None,
        }
        // The user timeout starts with the first SYN, so it can only shorten the timer of later ones.
        self.state = State::SynSent;
        self.lifecycle.opened_at = now;
        let user_timeout_deadline =
            if self.lifecycle.syn_timeouts > 0 { self.user_timeout_deadline() } else { Time::NEVER };
        self.timers.rto_deadline = (now + self.rtt.syn_timeout()).min(user_timeout_deadline);
        Some(Transmit::Syn)
    }

    /// Returns the number of segments that count against the window.
    pub(super) fn counted_segments(&self) -> u64 {
        let counts_pipe = match self.phase {
            // RACK counts the pipe, as in Linux: each reported arrival makes room for a segment, without limited
            // transmit.
            Phase::Open => self.features.rack_tlp,
            Phase::Recovery => {
                if let Some(allowed) = self.prr_allowance() {
                    return u64::from(self.cwnd_segments.saturating_sub(allowed));
                }
                self.features.sack || self.features.goes_back
            }
            Phase::Timeout => true,
        };
        let counted = u64::from(if counts_pipe { self.pipe() } else { self.flight() });
        counted + self.recovery.inflation.min(0).unsigned_abs()
    }

    /// Returns the number of segments by which the head may exceed the window: all for a forced retransmission,
    /// otherwise those of PRR, NewReno's inflation or limited transmit.
    pub(super) fn allowance_segments(&self) -> u64 {
        if self.retransmit_head || (self.features.rack_tlp && self.probe_is_due()) {
            return u64::from(u32::MAX);
        }
        if self.phase != Phase::Open {
            if let Some(allowed) = self.prr_allowance() {
                return u64::from(allowed.saturating_sub(self.cwnd_segments));
            }
            return self.recovery.inflation.max(0).unsigned_abs();
        }
        if !self.features.limited_transmit || self.features.rack_tlp {
            return 0;
        }
        u64::from(self.recovery.dup_acks.max(self.board.arrived_out_of_order()).min(self.recovery.dup_thresh - 1))
    }

    /// Restarts the retransmission timer if it stopped when the receiver had everything, more data was written since,
    /// and nothing may be sent now because acknowledgments are missing.
    fn restart_stopped_timer(&mut self, now: Time) {
        if self.timers.rto_deadline == Time::NEVER && self.outstanding() > 0 && !self.is_done() {
            self.timers.rto_deadline = now + self.rtt.rto();
        }
    }

    /// Returns the next new segment, after skipping those that the receiver already holds.
    pub(super) fn next_new(&mut self) -> Option<Seq> {
        if self.features.uses_tail && self.board.sacked() > 0 {
            while self.nxt < self.buffer.end() && self.board.is_sacked(self.nxt) {
                self.board.mark_skipped(self.nxt);
                self.nxt += 1;
            }
            if self.flight() == 0 {
                self.advance_without_ack(self.nxt);
            }
        }
        let may = self.nxt < self.buffer.end() && self.outstanding() < self.receive_window_segments;
        (may && !(self.features.nagle && self.waits_for_more())).then_some(self.nxt)
    }

    /// Returns whether the next segment waits for more data by the Nagle algorithm (RFC 896, RFC 1122 section 4.2.3.4):
    /// it is short, and other data is unacknowledged.
    fn waits_for_more(&self) -> bool {
        let is_last = self.nxt + 1 == self.buffer.end() && !self.buffer.is_closed();
        is_last && self.outstanding() > 0 && u64::from(self.buffer.payload_bytes(self.nxt)) < self.mss_bytes
    }

    #[inline(always)]
    pub(super) fn segment(&self, seq: Seq, class: u8) -> Segment {
        let payload_bytes = self.buffer.payload_bytes(seq);
        Segment { seq, payload_bytes, class, retransmission: false, window_reduced: false }
    }

    /// Sends `seq` in class 0 as a new segment or a retransmission.
    fn send_head(&mut self, now: Time, seq: Seq, class: u8) -> Segment {
        let mut segment = self.segment(seq, class);
        self.retransmit_head = false;
        self.last_sent = now;
        if let Some(rate) = self.limits.pacing {
            let wire_bytes = u64::from(segment.payload_bytes) + self.config.header_bytes;
            let from = self.paced_from(now);
            self.pacing.paced_until = from + rate.time_for(wire_bytes);
            // Segments of a chunk are sent together, so later ones are due now.
            self.pacing.last_due = from.min(now);
        }
        // A segment below `nxt` is a retransmission.
        if seq == self.nxt {
            if let Some(batch) = &mut self.batch {
                batch.sent(seq);
            }
            self.note_send_time(now, seq);
            self.nxt += 1;
            // RFC 3168 section 6.1.2: the first new segment after the reduction carries CWR.
            segment.window_reduced = std::mem::take(&mut self.window_reduced);
        } else {
            segment.retransmission = true;
            self.note_retransmission(now, seq);
        }
        if self.timers.rto_deadline == Time::NEVER {
            self.timers.rto_deadline = now + self.rtt.rto();
        }
        if self.phase == Phase::Recovery {
            self.note_sent_in_prr();
        }
        if self.features.rack_tlp {
            self.note_transmission(now, seq, segment.retransmission);
            self.refresh();
        }
        if self.features.needs_segments {
            self.note_sent(now, seq, segment.retransmission);
        }
        segment
    }

    /// Records a retransmission. A probe or a rescue retransmission does not advance HighRxt.
    #[inline(never)]
    fn note_retransmission(&mut self, now: Time, seq: Seq) {
        let repairs = self.recovery.repairs_mut();
        repairs.retransmission_times.note(self.una, seq, now);
        repairs.counts.retransmissions += 1;
        self.track_retransmission(seq);
        if self.features.rack_tlp && self.probe_is_due() {
            self.board.mark_rescued(seq);
        } else if self.board.awaits_retransmission() || self.board.next_by_rule_3() == Some(seq) {
            self.board.mark_retransmitted(seq);
        } else {
            self.recovery.rescue_sent = true;
            self.board.mark_rescued(seq);
        }
    }

    /// Records the time of a first transmission.
    #[inline(always)]
    pub(super) fn note_send_time(&mut self, now: Time, seq: Seq) {
        self.sent_at.set(self.una, seq, now);
    }
}
