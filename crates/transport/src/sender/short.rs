//! The short ways of a sender: a few sums where nothing is out of the ordinary.
//!
//! While a window law without a pace has lost nothing and heard of nothing out of order, an acknowledgment moves the window on and
//! sending is a comparison. [`Sender::handle_ack`] and [`Sender::poll_transmit`] take these ways by themselves. Whoever drives millions
//! of connections, as the simulator does, asks for them first, with the low 32 bits of numbers that its packets carry, and goes the
//! long way where they do nothing. Both lead to the same.

use super::{Sender, context};
use crate::segment::Segment;
use sparelane_cc::{Ack, Cx, Phase};
use sparelane_core::{Seq, Time};

impl Sender {
    /// Whether the low bits of `number` tell it apart from all others that may be outstanding.
    pub(super) fn is_near(&self, number: Seq) -> bool {
        number.wrapping_sub(self.una) <= Seq::from(u32::MAX)
    }

    /// As `handle_ack`, of an [`AckSegment::plain`] with these low bits of its numbers, where that is all there is: in sequence,
    /// with nothing lost before or after. Otherwise does nothing and returns false.
    #[inline(always)]
    pub fn handle_plain_ack(&mut self, now: Time, cumulative: u32, trigger: u32) -> bool {
        let (outstanding, una) = (self.outstanding(), self.una as u32);
        let acked = cumulative.wrapping_sub(una);
        if !self.plain || acked.wrapping_sub(1) >= outstanding || trigger.wrapping_sub(una) >= outstanding {
            return false;
        }
        let rtt = now - self.sending_time(Seq::from(trigger));
        let rto = self.rtt.sample(rtt);
        let acked_bytes = u64::from(acked) * self.mss_bytes;
        self.una += Seq::from(acked);
        self.board.advance_clean(self.una);
        self.buffer.acknowledge(self.una);
        self.timers.rto_deadline = if self.nxt == self.una { Time::NEVER } else { now + rto };
        let news = Ack {
            acked_bytes,
            delivered_bytes: acked_bytes,
            rtt: Some(rtt),
            resent_rtt: None,
            in_flight_bytes: u64::from(self.outstanding()) * self.mss_bytes,
            cwnd_limited: self.cwnd_limited,
            phase: Phase::Open,
            ecn_echo: false,
            explicit_rate: None,
            delivery: None,
            one_way_delay: None,
            received: None,
            nic_backlog_bytes: 0,
        };
        // A window law never begins to pace.
        self.limits.cwnd_bytes = self.cc.window_after(&news, &mut context!(self, now));
        self.reopen();
        true
    }

    /// Whether [`poll_plainly`](Self::poll_plainly) may be asked in place of [`poll_transmit`](Self::poll_transmit), until the
    /// next input.
    #[inline(always)]
    pub fn sends_plainly(&self) -> bool {
        self.sends_plainly
    }

    /// As [`poll_transmit`](Self::poll_transmit), where only new segments are to be sent, in class 0, and only up to a point.
    #[inline(always)]
    pub fn poll_plainly(&mut self, now: Time) -> Option<Segment> {
        if self.nxt < self.open_until {
            let seq = self.nxt;
            self.remember(now, seq);
            self.nxt += 1;
            if self.timers.rto_deadline == Time::NEVER {
                self.timers.rto_deadline = now + self.rtt.rto();
            }
            return Some(self.segment(seq, 0));
        }
        self.cwnd_limited = self.outstanding() >= self.cwnd_segments;
        None
    }

    /// The window, the phase, or what is known to be lost changed.
    #[inline(always)]
    pub(super) fn reopen_any(&mut self) {
        let windowed = self.kind.is_window_law && !self.window_reduced;
        let undisturbed = windowed && self.phase == Phase::Open && self.repair.dup_acks == 0 && self.board.is_clean();
        self.plain = undisturbed && self.kind.measures_exactly;
        self.sends_plainly = undisturbed && self.kind.goes_one_by_one;
        self.reopen();
        if self.phase == Phase::Recovery && windowed && self.kind.goes_one_by_one && !self.resend_head {
            self.reopen_in_recovery();
        }
    }

    /// In recovery with nothing left to resend, new segments go as the pipe empties.
    fn reopen_in_recovery(&mut self) {
        if self.repair.reduction.is_some() || !self.kind.sack {
            return;
        }
        let room = self.cwnd_segments.saturating_sub(self.pipe());
        let until = self.nxt + Seq::from(room);
        let window_end = self.una + Seq::from(self.receive_window_segments);
        // At the end of the data, or of the receiver's window, there are further rules.
        if !self.board.waiting_to_be_resent() && until < window_end.min(self.buffer.end()) {
            self.open_until = until;
            self.sends_plainly = true;
        }
    }

    /// The window, or what may be sent, changed.
    #[inline(always)]
    pub(super) fn reopen(&mut self) {
        let mss_bytes = self.mss_bytes;
        let above = self.limits.cwnd_bytes.wrapping_sub(u64::from(self.cwnd_segments) * mss_bytes);
        if above >= mss_bytes {
            self.cwnd_segments = u32::try_from(self.limits.cwnd_bytes / mss_bytes).unwrap_or(u32::MAX);
        }
        let window = self.cwnd_segments.min(self.receive_window_segments);
        self.open_until = (self.una + Seq::from(window)).min(self.buffer.end());
    }
}
