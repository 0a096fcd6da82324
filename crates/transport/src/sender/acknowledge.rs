//! What an acknowledgment does: samples of the round trip, the scoreboard, the books, loss detection, and the controller's news, in
//! this order.

use super::{Sender, State, context};
use crate::acknowledgment::{AckError, Acknowledgment, Checked, SentState};
use crate::config::Ecn;
use crate::segment::{AckSegment, SackBlock};
use sparelane_cc::{Ack, Cx, Phase, Received};
use sparelane_core::{Dur, Seq, Time};

/// What a round trip of less than a tick counts as.
const LESS_THAN_A_TICK: Dur = Dur::from_us(1);

/// The time from `then` until `now`, by a clock of whole ticks where there is one.
#[inline(always)]
fn round_trip(now: Time, then: Time, tick: Option<Dur>) -> Dur {
    match tick {
        None => now - then,
        Some(tick) => whole_ticks(now, then, tick),
    }
}

/// The time between two readings of a clock that counts whole ticks.
#[inline(never)]
pub(super) fn whole_ticks(now: Time, then: Time, tick: Dur) -> Dur {
    let ticks = now.as_ps() / tick.as_ps() - then.as_ps() / tick.as_ps();
    if ticks == 0 { LESS_THAN_A_TICK.min(tick) } else { tick * ticks }
}

impl Sender {
    /// An acknowledgment arrived.
    ///
    /// # Errors
    /// Where it cannot be true ([`AckError`]); nothing of it counts then.
    pub fn handle_ack(&mut self, now: Time, ack: &Acknowledgment<'_>) -> Result<(), AckError> {
        let AckSegment { cumulative, trigger, .. } = ack.segment;
        let is_plain = *ack == Acknowledgment::of(AckSegment::plain(cumulative, trigger), &[]);
        if is_plain && self.is_near(cumulative) && self.handle_plain_ack(now, cumulative as u32, trigger as u32) {
            return Ok(());
        }
        self.handle_any_ack(now, ack)
    }

    /// When segment `seq`, which is outstanding, was sent.
    #[inline(always)]
    pub(super) fn sending_time(&self, seq: Seq) -> Time {
        self.sent_at.get(seq)
    }

    /// As [`handle_ack`](Self::handle_ack), where [`handle_plain_ack`](Self::handle_plain_ack) was not asked, or in vain.
    ///
    /// # Errors
    /// As [`handle_ack`](Self::handle_ack).
    pub fn handle_any_ack(&mut self, now: Time, ack: &Acknowledgment<'_>) -> Result<(), AckError> {
        let checked = Checked::of(ack, self.sent_state())?;
        self.take_ack(now, checked);
        Ok(())
    }

    /// As [`handle_any_ack`](Self::handle_any_ack), for the acknowledgment of a receiver that cannot lie: that of a simulation,
    /// in the same process. It is checked where debug assertions are on, and nowhere else.
    pub fn handle_trusted_ack(&mut self, now: Time, ack: &Acknowledgment<'_>) {
        debug_assert_eq!(
            Checked::of(ack, self.sent_state()).err(),
            None,
            "a trusted receiver says what cannot be: {ack:?}"
        );
        self.take_ack(now, Checked::unchecked(ack));
    }

    fn sent_state(&self) -> SentState<'_> {
        // What waits in a scheduler below TCP has not been sent.
        let departed = self.scheduler.as_ref().map(|scheduler| scheduler.departed_end());
        SentState {
            is_open: self.state == State::Established,
            sent: departed.unwrap_or_else(|| self.sent_end()),
            sends_in_low_classes: self.kind.uses_tail,
            next: departed.unwrap_or(self.nxt),
            board: &self.board,
        }
    }

    #[inline(never)]
    fn take_ack(&mut self, now: Time, checked: Checked<'_>) {
        let given = checked.get();
        let (ack, blocks) = (given.segment, given.blocks);
        if ack.class > 0 {
            if self.kind.books_low_acks {
                self.handle_low_priority_ack(ack, blocks);
            } else {
                self.tell_low_priority_ack(now, ack, blocks);
            }
            return;
        }
        let extras = given.extras.copied().unwrap_or_default();
        let received_at = extras.received_at.filter(|_| !ack.trigger_retransmitted);
        let spurious = self.kind.undoes && self.is_needless_resend(&ack);
        let flight_before = self.flight();
        let missing_before = self.missing();
        let (rtt, resent_rtt) = if ack.trigger_retransmitted {
            (None, self.sample_retransmission(now, &ack))
        } else {
            (self.take_rtt_sample(now, &ack, self.config.rtt_granularity), None)
        };
        if self.kind.notes_arrivals {
            self.note_arrival(now, &ack, rtt);
        }
        if ack.cumulative > self.una {
            self.advance(now, ack.cumulative);
        }
        if self.kind.sack {
            self.take_report(ack, blocks);
        }
        if let Some(segments) = extras.window_segments {
            self.take_window(now, ack.cumulative, segments);
        }
        if self.advertised.is_some() {
            self.keep_to_edge(now);
            self.note_answer_to_probe(now);
        }
        // Class-0 segments that this acknowledgment covers in sequence, and those that are news.
        let acked = flight_before - self.flight();
        let delivered = missing_before - self.missing();
        let delivered_bytes = u64::from(delivered) * self.mss_bytes;
        let delivery = if self.kind.needs.segments { self.note_delivered(now, delivered_bytes) } else { None };
        if spurious {
            self.undo_losses(now);
        } else {
            self.detect_losses(now, &ack, acked, delivered);
        }
        if ack.ecn_echo && self.config.ecn != Ecn::Off && self.heeds_congestion() {
            self.note_answer();
            self.report_mark(now);
        }
        let news = Ack {
            acked_bytes: u64::from(acked) * self.mss_bytes,
            delivered_bytes,
            rtt,
            resent_rtt,
            in_flight_bytes: self.in_flight_bytes(),
            cwnd_limited: self.cwnd_limited,
            phase: self.phase,
            ecn_echo: ack.ecn_echo,
            explicit_rate: extras.explicit_rate,
            delivery,
            one_way_delay: extras.one_way_delay,
            received: received_at.map(|at| Received { segment: ack.trigger, at }),
            nic_backlog_bytes: extras.nic_backlog_bytes,
        };
        if self.kind.is_window_law {
            self.limits.cwnd_bytes = self.cc.window_after(&news, &mut context!(self, now));
            self.reopen_any();
        } else {
            self.cc.on_ack(&news, &mut context!(self, now));
            if self.kind.detects_by_time {
                self.end_probe(now, &ack);
                self.schedule_probe(now);
            }
            self.refresh();
        }
        if self.phase == Phase::Recovery && self.repair.reduction.is_some() {
            self.continue_reduction(delivered, acked > 0);
        }
    }

    /// The round-trip time of the first copy of a segment, which caused `ack`; in whole ticks, where there are.
    #[inline(always)]
    fn take_rtt_sample(&mut self, now: Time, ack: &AckSegment, tick: Option<Dur>) -> Option<Dur> {
        let outstanding = ack.trigger.wrapping_sub(self.una) < self.nxt - self.una;
        if !outstanding {
            return None;
        }
        let rtt = round_trip(now, self.sending_time(ack.trigger), tick);
        self.rtt.sample(rtt);
        Some(rtt)
    }

    /// A retransmission caused `ack`: where timestamps tell of which copy it is, that is a sample for the timer; and progress shows
    /// that the timer need not wait longer and longer. The sample for the controller, where it is to have one.
    #[cold]
    #[inline(never)]
    fn sample_retransmission(&mut self, now: Time, ack: &AckSegment) -> Option<Dur> {
        if !self.config.timestamps {
            return None;
        }
        let is_progress = ack.cumulative > self.una;
        let sent_at = self.resending_time(now, ack.trigger);
        let told = match self.config.resent_rtt_tick {
            None => {
                if let Some(at) = sent_at {
                    self.rtt.sample(round_trip(now, at, self.config.rtt_granularity));
                }
                None
            }
            Some(tick) => {
                let told = sent_at.filter(|_| is_progress).map(|at| whole_ticks(now, at, tick).max(tick));
                if let Some(rtt) = told {
                    self.rtt.sample(rtt);
                }
                told
            }
        };
        if is_progress {
            self.rtt.end_backoff();
        }
        told
    }

    /// When segment `seq` was sent again, if it is outstanding and was. An answer within less than the least round trip is that of
    /// an earlier copy, as in RFC 8985 section 6.2.
    pub(super) fn resending_time(&self, now: Time, seq: Seq) -> Option<Time> {
        let outstanding = seq.wrapping_sub(self.una) < self.nxt - self.una;
        let at = self.repair.resends.last_of(seq).filter(|_| outstanding)?;
        self.rtt.min_rtt().is_none_or(|min_rtt| now.saturating_since(at) >= min_rtt).then_some(at)
    }

    /// A segment arrived and caused `ack`, which is handled next: for the books of controllers and of loss detection by time.
    fn note_arrival(&mut self, now: Time, ack: &AckSegment, rtt: Option<Dur>) {
        if self.kind.detects_by_time {
            self.note_rack_arrival(now, ack, rtt);
        }
        self.note_reordering(ack);
        if self.kind.needs.segments {
            self.note_trigger(ack.trigger, ack.trigger_retransmitted);
        }
    }

    /// One past the last segment that either end has sent.
    pub(super) fn sent_end(&self) -> Seq {
        if self.kind.uses_tail { self.buffer.end() } else { self.nxt }
    }

    /// RC3: the acknowledgment of a low-priority segment moves no window and causes no transmission.
    fn handle_low_priority_ack(&mut self, ack: AckSegment, blocks: &[SackBlock]) {
        if ack.cumulative > self.una {
            self.board.sack(SackBlock { start: self.una, end: ack.cumulative }, self.nxt, false);
        }
        self.take_blocks(blocks, false);
    }

    /// As [`handle_low_priority_ack`](Self::handle_low_priority_ack), where there is no SACK or the controller hears what arrived.
    #[inline(never)]
    fn tell_low_priority_ack(&mut self, now: Time, ack: AckSegment, blocks: &[SackBlock]) {
        let before = self.board.sacked();
        if self.kind.sack {
            self.handle_low_priority_ack(ack, blocks);
        }
        if self.kind.needs.tail {
            let segments = (self.board.sacked() - before).max(1);
            self.cc.on_tail_delivered(segments, &mut context!(self, now));
        }
    }

    /// The cumulative acknowledgment moves on.
    fn advance(&mut self, now: Time, to: Seq) {
        self.board.advance(to);
        self.una = to;
        self.repair.dup_acks = 0;
        if to > self.nxt {
            self.nxt = to; // RC3's ACK bump: the receiver has what the head has yet to send.
        }
        self.resend_head = false;
        self.buffer.acknowledge(to);
        if self.flight() == 0 {
            self.timers.rto_deadline = Time::NEVER;
        } else if self.repair.partial_acks == 0 || to >= self.repair.recover {
            self.timers.rto_deadline = now + self.rtt.rto();
        }
    }

    /// RC3: everything below `to` is known to have arrived, and nothing of class 0 is left in the network to say so.
    pub(super) fn pass(&mut self, to: Seq) {
        self.board.advance(to);
        self.una = to;
        self.buffer.acknowledge(to);
    }

    /// What the receiver reports beyond the cumulative acknowledgment, told in class 0.
    fn take_report(&mut self, ack: AckSegment, blocks: &[SackBlock]) {
        self.take_blocks(blocks, true);
        if self.kind.uses_tail && ack.trigger >= self.una && ack.trigger < self.nxt {
            self.board.arrived(ack.trigger);
        }
    }

    /// Enters `blocks` on the scoreboard, less what the last acknowledgment of this kind already said: what one class has
    /// reported, another may still prove.
    fn take_blocks(&mut self, blocks: &[SackBlock], in_class0: bool) {
        let (board, nxt) = (&mut self.board, self.nxt);
        let last = match &mut self.last_low_blocks {
            Some(low) if !in_class0 => low,
            _ => &mut self.last_blocks,
        };
        if let Some(news) = last.take_growth(blocks) {
            board.sack(news, nxt, in_class0);
            return;
        }
        for (at, &block) in blocks.iter().enumerate() {
            if let Some(news) = last.news_of(at, block) {
                board.sack(news, nxt, in_class0);
            }
        }
        last.replace(blocks);
    }
}
