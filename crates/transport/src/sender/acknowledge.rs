//! The processing of acknowledgments.
//!
//! An acknowledgment first gives a round-trip time sample and updates the scoreboard and the receive window. Loss
//! detection and ECN follow. The controller gets the result last, because it depends on the new state.

use super::sack_report::SackReports;
use super::{Sender, State, context};
use crate::accurate_ecn::{AccurateEcho, Marks};
use crate::acknowledgment::{AckError, Acknowledgment, Checked, Extras, SentState};
use crate::config::Ecn;
use crate::segment::{AckSegment, SackBlock};
use sparelane_cc::{Ack, Cx, Hop, Phase, Received, Telemetry};
use sparelane_core::{Dur, Seq, Time};

/// The round-trip time sample if both timestamps have the same tick.
const BELOW_ONE_TICK: Dur = Dur::from_us(1);

/// Returns the time from `then` to `now`, in whole ticks if `tick` is given.
#[inline(always)]
fn round_trip(now: Time, then: Time, tick: Option<Dur>) -> Dur {
    match tick {
        None => now - then,
        Some(tick) => whole_ticks(now, then, tick),
    }
}

/// Returns the difference of two timestamps that count whole ticks; less than a tick counts as 1 us.
#[inline(never)]
pub(super) fn whole_ticks(now: Time, then: Time, tick: Dur) -> Dur {
    let ticks = now.as_ps() / tick.as_ps() - then.as_ps() / tick.as_ps();
    if ticks == 0 { BELOW_ONE_TICK.min(tick) } else { tick * ticks }
}

impl Sender {
    /// Processes an acknowledgment.
    ///
    /// # Errors
    /// Returns an [`AckError`] if the acknowledgment contradicts the data sent. The sender's state then stays
    /// unchanged.
    pub fn handle_ack(&mut self, now: Time, ack: &Acknowledgment<'_>) -> Result<(), AckError> {
        let AckSegment { cumulative, trigger, .. } = ack.segment;
        let is_plain = *ack == Acknowledgment::of(AckSegment::plain(cumulative, trigger), &[]);
        if is_plain && self.fits_32_bits(cumulative) && self.handle_ack_fast(now, cumulative as u32, trigger as u32) {
            return Ok(());
        }
        let checked = Checked::of(ack, self.sent_state())?;
        if !self.take_next_sack(now, checked.get()) {
            self.process_ack(now, checked);
        }
        Ok(())
    }

    /// Returns the time of the first transmission of the outstanding segment `seq`.
    #[inline(always)]
    pub(super) fn send_time(&self, seq: Seq) -> Time {
        self.sent_at.get(seq)
    }

    /// Processes an acknowledgment as [`handle_ack`](Self::handle_ack) does, without the attempt to use a fast path.
    ///
    /// # Errors
    /// As [`handle_ack`](Self::handle_ack).
    pub fn handle_ack_slow(&mut self, now: Time, ack: &Acknowledgment<'_>) -> Result<(), AckError> {
        let checked = Checked::of(ack, self.sent_state())?;
        self.process_ack(now, checked);
        Ok(())
    }

    /// Processes an acknowledgment as [`handle_ack`](Self::handle_ack) does, without validation. Use it for a
    /// [`Receiver`](crate::Receiver) in the same process, as in a simulation. Debug builds validate the acknowledgment.
    pub fn handle_trusted_ack(&mut self, now: Time, ack: &Acknowledgment<'_>) {
        debug_assert_eq!(
            Checked::of(ack, self.sent_state()).err(),
            None,
            "a trusted receiver sent an invalid acknowledgment: {ack:?}"
        );
        if !self.take_next_sack(now, ack) {
            self.process_ack(now, Checked::unchecked(ack));
        }
    }

    /// Processes a valid acknowledgment with nothing but SACK blocks, if the fast path for these can.
    #[inline(always)]
    fn take_next_sack(&mut self, now: Time, ack: &Acknowledgment<'_>) -> bool {
        ack.extras.is_none() && self.handle_sack_fast(now, &ack.segment, ack.blocks)
    }

    /// Passes the telemetry that segment `trigger` collected to the controller, before the acknowledgment that returns it.
    pub fn handle_telemetry(&mut self, now: Time, trigger: Seq, hops: &[Hop]) {
        let telemetry = Telemetry { segment: trigger, next: self.nxt, hops };
        self.cc.on_telemetry(&telemetry, &mut context!(self, now));
    }

    /// Returns the state against which an acknowledgment is validated.
    fn sent_state(&self) -> SentState<'_> {
        // Segments that wait in a scheduler below TCP have not been sent.
        let departed = self.scheduler.as_ref().map(|scheduler| scheduler.departed_end());
        SentState {
            is_open: self.state == State::Established,
            sent: departed.unwrap_or_else(|| self.sent_end()),
            sends_in_low_classes: self.features.uses_tail,
            next: departed.unwrap_or(self.nxt),
            board: &self.board,
        }
    }

    /// Processes a validated acknowledgment on the slow path.
    #[inline(never)]
    fn process_ack(&mut self, now: Time, checked: Checked<'_>) {
        let given = checked.get();
        let (ack, blocks) = (&given.segment, given.blocks);
        // RC3: low classes only update the scoreboard and, if requested, inform the controller.
        if ack.class > 0 {
            if self.features.low_acks_only_sack {
                self.handle_low_priority_ack(ack, blocks);
            } else {
                self.report_low_priority_ack(now, ack, blocks);
            }
            return;
        }
        let extras = given.extras.unwrap_or(&Extras::NONE);
        let received_at = extras.received_at.filter(|_| !ack.trigger_retransmitted);
        // Eifel detection needs the state before the acknowledgment is applied.
        let spurious = self.features.undo_spurious && self.is_spurious_retransmission(ack);
        let is_old = ack.cumulative < self.una;
        let flight_before = self.flight();
        let missing_before = self.missing();
        // Karn's algorithm: only first transmissions give an ordinary sample.
        let (rtt, resent_rtt) = if ack.trigger_retransmitted {
            (None, self.sample_retransmission(now, ack))
        } else {
            (self.sample_rtt(now, ack, self.config.rtt_granularity), None)
        };
        // RACK and delivery rate samples use the state at the time of sending, so they come before the scoreboard
        // update.
        if self.features.tracks_arrivals {
            self.note_arrival(now, ack, rtt);
        }
        if ack.cumulative > self.una {
            self.advance(now, ack.cumulative);
        }
        if self.features.sack {
            self.process_sack(ack, blocks);
        }
        if let Some(segments) = extras.window_segments {
            self.update_advertised_window(now, ack.cumulative, segments);
        }
        if self.advertised_window.is_some() {
            self.update_receive_window(now);
            self.restart_user_timeout(now);
        }
        // Class-0 segments that are newly covered by the cumulative acknowledgment, and those newly known to have
        // arrived.
        let acked = flight_before - self.flight();
        let delivered = missing_before - self.missing();
        let delivered_bytes = u64::from(delivered) * self.mss_bytes;
        let delivery =
            if self.features.needs_segments { self.sample_delivery_rate(now, delivered_bytes) } else { None };
        if spurious {
            self.undo_losses(now);
        } else {
            self.detect_losses(now, ack, acked, delivered);
        }
        let marks = self.new_marks(ack, extras, is_old, delivered);
        let ecn_echo = ack.ecn_echo || marks.segments > 0;
        // RFC 3168 section 6.1.2: react to ECE at most once per window.
        if ecn_echo && self.features.ecn != Ecn::Off && self.may_reduce_window() {
            self.note_reduction();
            self.report_mark(now, true);
        }
        let input = Ack {
            acked_bytes: u64::from(acked) * self.mss_bytes,
            delivered_bytes,
            rtt,
            resent_rtt,
            in_flight_bytes: self.in_flight_bytes(),
            cwnd_limited: self.cwnd_limited,
            phase: self.phase,
            ecn_echo,
            marked_segments: marks.segments,
            marked_bytes: marks.bytes,
            explicit_rate: extras.explicit_rate,
            delivery,
            one_way_delay: extras.one_way_delay,
            received: received_at.map(|at| Received { segment: ack.trigger, at }),
            host_delay: extras.host_delay,
            nic_backlog_bytes: extras.nic_backlog_bytes,
        };
        // A pure window-based controller returns its window directly, which saves two calls.
        if self.features.is_window_only {
            self.limits.cwnd_bytes = self.cc.window_after(&input, &mut context!(self, now));
            self.update_fast_paths();
        } else {
            self.cc.on_ack(&input, &mut context!(self, now));
            if self.features.rack_tlp {
                self.end_probe(now, ack);
                self.schedule_probe(now);
            }
            self.refresh();
        }
        // PRR needs the controller's new window.
        if self.phase == Phase::Recovery && self.recovery.prr().is_some() {
            self.update_prr(delivered, acked > 0);
        }
    }

    /// Returns the marks that `ack` reports for the first time, among `delivered` segments that it newly acknowledges.
    #[inline(always)]
    fn new_marks(&mut self, ack: &AckSegment, extras: &Extras, is_old: bool, delivered: u32) -> Marks {
        if let Some(echo) = &extras.accurate_ecn {
            return self.read_counters(echo, is_old, delivered);
        }
        if ack.ecn_echo && self.features.ecn.is_exact() {
            let segments = u64::from(delivered);
            return Marks { segments, bytes: segments * self.mss_bytes };
        }
        Marks::default()
    }

    /// Reads the counters of accurate ECN. Those of an acknowledgment that was overtaken are ignored.
    #[inline(never)]
    fn read_counters(&mut self, echo: &AccurateEcho, is_old: bool, delivered: u32) -> Marks {
        match &mut self.recovery.repairs_mut().marks {
            Some(feedback) if !is_old => feedback.update(echo, u64::from(delivered), self.mss_bytes),
            _ => Marks::default(),
        }
    }

    /// Adds the round-trip time sample of `ack`, which was triggered by a first transmission, and returns it.
    #[inline(always)]
    fn sample_rtt(&mut self, now: Time, ack: &AckSegment, tick: Option<Dur>) -> Option<Dur> {
        let outstanding = ack.trigger.wrapping_sub(self.una) < self.nxt - self.una;
        if !outstanding {
            return None;
        }
        let rtt = round_trip(now, self.send_time(ack.trigger), tick);
        self.rtt.sample(rtt);
        Some(rtt)
    }

    /// Handles an acknowledgment triggered by a retransmission: adds a sample for the timer, if timestamps identify the
    /// copy, and ends the timer's backoff on progress. Returns the sample for the controller, if it gets one.
    #[cold]
    #[inline(never)]
    fn sample_retransmission(&mut self, now: Time, ack: &AckSegment) -> Option<Dur> {
        if !self.config.timestamps {
            return None;
        }
        let is_progress = ack.cumulative > self.una;
        let sent_at = self.retransmission_time(now, ack.trigger);
        // Linux reads the timestamp echo only from cumulative acknowledgments, with the resolution of its clock.
        let for_controller = match self.config.resent_rtt_tick {
            None => {
                if let Some(at) = sent_at {
                    self.rtt.sample(round_trip(now, at, self.config.rtt_granularity));
                }
                None
            }
            Some(tick) => {
                let sample = sent_at.filter(|_| is_progress).map(|at| whole_ticks(now, at, tick).max(tick));
                if let Some(rtt) = sample {
                    self.rtt.sample(rtt);
                }
                sample
            }
        };
        // Timestamps identify the copy, so Karn's algorithm need not keep the backoff after progress.
        if is_progress {
            self.rtt.end_backoff();
        }
        for_controller
    }

    /// Returns the time of the last retransmission of the outstanding segment `seq`. Returns `None` if less than the
    /// minimum round-trip time has passed since, because an earlier copy must have triggered the acknowledgment (RFC
    /// 8985 section 6.2).
    pub(super) fn retransmission_time(&self, now: Time, seq: Seq) -> Option<Time> {
        let outstanding = seq.wrapping_sub(self.una) < self.nxt - self.una;
        let at = self.recovery.retransmitted_at(seq).filter(|_| outstanding)?;
        self.rtt.min_rtt().is_none_or(|min_rtt| now.saturating_since(at) >= min_rtt).then_some(at)
    }

    /// Updates RACK, reordering and delivery rate state for the segment that triggered `ack`, before `ack` is applied.
    fn note_arrival(&mut self, now: Time, ack: &AckSegment, rtt: Option<Dur>) {
        if self.features.rack_tlp {
            self.note_rack_arrival(now, ack, rtt);
        }
        self.note_reordering(ack);
        if self.features.needs_segments {
            self.capture_trigger(ack.trigger, ack.trigger_retransmitted);
        }
    }

    /// Returns one past the last segment sent, from the head or the tail.
    pub(super) fn sent_end(&self) -> Seq {
        if self.features.uses_tail { self.buffer.end() } else { self.nxt }
    }

    /// Handles the acknowledgment of a low-priority segment in RC3, which only updates the scoreboard.
    fn handle_low_priority_ack(&mut self, ack: &AckSegment, blocks: &[SackBlock]) {
        if ack.cumulative > self.una {
            self.board.sack(SackBlock { start: self.una, end: ack.cumulative }, self.nxt, false);
        }
        self.update_scoreboard(blocks, false);
    }

    /// Handles the acknowledgment of a low-priority segment without SACK, or for a controller that needs deliveries
    /// from the tail.
    #[inline(never)]
    fn report_low_priority_ack(&mut self, now: Time, ack: &AckSegment, blocks: &[SackBlock]) {
        let before = self.board.sacked();
        if self.features.sack {
            self.handle_low_priority_ack(ack, blocks);
        }
        if self.features.needs_tail {
            let segments = (self.board.sacked() - before).max(1);
            self.cc.on_tail_delivered(segments, &mut context!(self, now));
        }
    }

    /// Advances the cumulative acknowledgment to `to`.
    fn advance(&mut self, now: Time, to: Seq) {
        self.board.advance(to);
        self.una = to;
        self.recovery.dup_acks = 0;
        if to > self.nxt {
            self.nxt = to; // RC3's ACK bump: the receiver already holds these new segments.
        }
        self.retransmit_head = false;
        self.buffer.acknowledge(to);
        // RFC 6298 rules 5.2 and 5.3; RFC 6582 restarts the timer only at the first partial acknowledgment.
        if self.flight() == 0 {
            self.timers.rto_deadline = Time::NEVER;
        } else if self.recovery.partial_acks == 0 || to >= self.recovery.recover {
            self.timers.rto_deadline = now + self.rtt.rto();
        }
    }

    /// Advances to `to` without a cumulative acknowledgment. In RC3 all segments below `to` were reported, and no
    /// class-0 segment is in flight that would trigger a cumulative acknowledgment.
    pub(super) fn advance_without_ack(&mut self, to: Seq) {
        self.board.advance(to);
        self.una = to;
        self.buffer.acknowledge(to);
    }

    /// Processes the SACK blocks of an acknowledgment in class 0.
    fn process_sack(&mut self, ack: &AckSegment, blocks: &[SackBlock]) {
        self.update_scoreboard(blocks, true);
        if self.features.uses_tail && ack.trigger >= self.una && ack.trigger < self.nxt {
            self.board.mark_arrived(ack.trigger);
        }
    }

    /// Applies the new parts of `blocks` to the scoreboard. Class 0 and the low classes are compared with separate
    /// previous acknowledgments, because a class-0 report adds information to a report in a low class.
    fn update_scoreboard(&mut self, blocks: &[SackBlock], in_class0: bool) {
        if blocks.is_empty() {
            return;
        }
        let (board, nxt) = (&mut self.board, self.nxt);
        let reports = self.last_reports.get_or_insert_with(SackReports::create);
        let last = if in_class0 || !self.features.uses_tail { &mut reports.class0 } else { &mut reports.low };
        // Common case: one block grew, and all others are unchanged.
        if let Some(new_part) = last.update_if_first_grew(blocks) {
            board.sack(new_part, nxt, in_class0);
            return;
        }
        for (at, &block) in blocks.iter().enumerate() {
            if let Some(new_part) = last.new_part_of(at, block) {
                board.sack(new_part, nxt, in_class0);
            }
        }
        last.replace(blocks);
    }
}
