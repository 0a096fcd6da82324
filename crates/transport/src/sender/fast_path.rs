//! The fast paths of a sender, for connections without special features.
//!
//! With a window-based controller, no pacing, no losses and no reordering, an acknowledgment only advances the window,
//! and sending takes one comparison. In recovery, most acknowledgments only report the next segment in a SACK block.
//! [`Sender::handle_ack`] and [`Sender::poll_transmit`] use these paths automatically. A caller with millions of
//! connections, such as the simulator, calls them directly, with the low 32 bits of sequence numbers where there are no
//! SACK blocks, and calls the general path if they return `false` or `None`. Both paths have the same effect.

use super::{Sender, context};
use crate::segment::{AckSegment, SackBlock, Segment};
use sparelane_cc::{Ack, Cx, Phase};
use sparelane_core::{Seq, Time};

impl Sender {
    /// Returns whether the low 32 bits of `number` identify it among the outstanding segments.
    pub(super) fn fits_32_bits(&self, number: Seq) -> bool {
        number.wrapping_sub(self.una) <= Seq::from(u32::MAX)
    }

    /// Processes an [`AckSegment::plain`](crate::AckSegment::plain) given by the low 32 bits of its sequence numbers.
    ///
    /// Returns `false` and changes nothing if the general path is needed: if the acknowledgment is not cumulative, or
    /// if the connection has losses or features beyond the fast path.
    #[inline(always)]
    pub fn handle_ack_fast(&mut self, now: Time, cumulative: u32, trigger: u32) -> bool {
        let (outstanding, una) = (self.outstanding(), self.una as u32);
        let acked = cumulative.wrapping_sub(una);
        // The wrapping subtractions reject duplicates and values beyond the data sent with one comparison each.
        if !self.ack_fast_path || acked.wrapping_sub(1) >= outstanding || trigger.wrapping_sub(una) >= outstanding {
            return false;
        }
        let rtt = now - self.send_time(Seq::from(trigger));
        let rto = self.rtt.sample(rtt);
        let acked_bytes = u64::from(acked) * self.mss_bytes;
        self.una += Seq::from(acked);
        self.board.advance_clean(self.una);
        self.buffer.acknowledge(self.una);
        self.timers.rto_deadline = if self.nxt == self.una { Time::NEVER } else { now + rto };
        let input = Ack {
            acked_bytes,
            delivered_bytes: acked_bytes,
            rtt: Some(rtt),
            in_flight_bytes: u64::from(self.outstanding()) * self.mss_bytes,
            ..self.plain_input()
        };
        // A window-based controller never starts to pace, so only the window can change.
        self.limits.cwnd_bytes = self.cc.window_after(&input, &mut context!(self, now));
        self.update_send_limit();
        true
    }

    /// Processes an acknowledgment with valid SACK `blocks`, during recovery, of which only the first reports more than
    /// the acknowledgment before: one segment more at its end.
    ///
    /// Returns `false` and changes nothing if the general path is needed: if the acknowledgment is cumulative or reports
    /// anything else, or if the connection has features beyond the fast path.
    #[inline(always)]
    pub fn handle_sack_fast(&mut self, now: Time, ack: &AckSegment, blocks: &[SackBlock]) -> bool {
        let is_plain = *ack == AckSegment::plain(self.una, ack.trigger);
        self.sack_fast_path && is_plain && self.process_next_sack(now, ack.trigger, blocks)
    }

    /// Continues [`handle_sack_fast`](Self::handle_sack_fast) for an acknowledgment without flags that is not cumulative.
    #[inline(never)]
    fn process_next_sack(&mut self, now: Time, trigger: Seq, blocks: &[SackBlock]) -> bool {
        let is_outstanding = trigger.wrapping_sub(self.una) < Seq::from(self.outstanding());
        let Some(reports) = self.last_reports.as_deref_mut().filter(|_| is_outstanding) else { return false };
        if !reports.class0.grow_by_one(blocks) {
            return false;
        }
        let rtt = now - self.send_time(trigger);
        self.rtt.sample(rtt);
        let gone_before = self.board.gone();
        self.board.sack(SackBlock { start: blocks[0].end - 1, end: blocks[0].end }, self.nxt, true);
        let delivered = self.board.gone() - gone_before;
        self.board.detect_losses();
        let input = Ack {
            delivered_bytes: u64::from(delivered) * self.mss_bytes,
            rtt: Some(rtt),
            in_flight_bytes: u64::from(self.pipe()) * self.mss_bytes,
            phase: Phase::Recovery,
            ..self.plain_input()
        };
        self.limits.cwnd_bytes = self.cc.window_after(&input, &mut context!(self, now));
        // Only the pipe and the window can have changed.
        self.send_fast_path = false;
        self.update_send_limit();
        self.update_send_limit_in_recovery();
        true
    }

    /// Returns the input of a controller for an acknowledgment that reports nothing.
    #[inline(always)]
    fn plain_input(&self) -> Ack {
        Ack {
            acked_bytes: 0,
            delivered_bytes: 0,
            rtt: None,
            resent_rtt: None,
            in_flight_bytes: 0,
            cwnd_limited: self.cwnd_limited,
            phase: Phase::Open,
            ecn_echo: false,
            marked_segments: 0,
            marked_bytes: 0,
            explicit_rate: None,
            delivery: None,
            one_way_delay: None,
            received: None,
            host_delay: None,
            nic_backlog_bytes: 0,
        }
    }

    /// Returns whether [`poll_fast`](Self::poll_fast) can replace [`poll_transmit`](Self::poll_transmit) until
    /// the next input.
    #[inline(always)]
    pub fn is_on_send_fast_path(&self) -> bool {
        self.send_fast_path
    }

    /// Returns the next new segment in class 0, if the window allows one. Only valid while
    /// [`is_on_send_fast_path`](Self::is_on_send_fast_path) returns `true`.
    #[inline(always)]
    pub fn poll_fast(&mut self, now: Time) -> Option<Segment> {
        if self.nxt < self.send_limit {
            let seq = self.nxt;
            self.note_send_time(now, seq);
            self.nxt += 1;
            if self.timers.rto_deadline == Time::NEVER {
                self.timers.rto_deadline = now + self.rtt.rto();
            }
            return Some(self.segment(seq, 0));
        }
        self.cwnd_limited = self.outstanding() >= self.cwnd_segments;
        None
    }

    /// Enables or disables the fast paths after a change of the window, the phase or the scoreboard.
    #[inline(always)]
    pub(super) fn update_fast_paths(&mut self) {
        let windowed = self.features.is_window_only && !self.window_reduced && !self.may_restart;
        let undisturbed = windowed && self.phase == Phase::Open && self.recovery.dup_acks == 0 && self.board.is_clean();
        self.ack_fast_path = undisturbed && self.features.exact_rtt;
        self.send_fast_path = undisturbed && self.features.sends_single_segments;
        self.update_send_limit();
        self.sack_fast_path = false;
        if self.phase == Phase::Recovery && windowed && self.features.sack && self.recovery.prr().is_none() {
            self.sack_fast_path =
                self.features.exact_rtt && !self.features.tracks_arrivals && !self.features.tracks_retransmissions;
            self.update_send_limit_in_recovery();
        }
    }

    /// Enables the send fast path in recovery, with SACK and without PRR, if no lost segment awaits retransmission: new
    /// segments are sent as the pipe drains.
    #[inline(always)]
    fn update_send_limit_in_recovery(&mut self) {
        if !self.features.sends_single_segments || self.retransmit_head {
            return;
        }
        // RFC 6675 section 5, step C: send while the pipe is below the window.
        let room = self.cwnd_segments.saturating_sub(self.pipe());
        let until = self.nxt + Seq::from(room);
        let window_end = self.una + Seq::from(self.receive_window_segments);
        // Near the end of the data or of the receive window, further rules of the general path apply.
        if !self.board.awaits_retransmission() && until < window_end.min(self.buffer.end()) {
            self.send_limit = until;
            self.send_fast_path = true;
        }
    }

    /// Updates the limit of the send fast path after a change of the window or the send buffer.
    #[inline(always)]
    pub(super) fn update_send_limit(&mut self) {
        let mss_bytes = self.mss_bytes;
        // The division is skipped while the window has the same number of whole segments.
        let above = self.limits.cwnd_bytes.wrapping_sub(u64::from(self.cwnd_segments) * mss_bytes);
        if above >= mss_bytes {
            // A window below one segment counts as one; the pace then limits the sender.
            self.cwnd_segments = u32::try_from((self.limits.cwnd_bytes / mss_bytes).max(1)).unwrap_or(u32::MAX);
        }
        let window = self.cwnd_segments.min(self.receive_window_segments);
        self.send_limit = (self.una + Seq::from(window)).min(self.buffer.end());
    }
}
