//! The sending end of a connection: handshake, window, loss recovery, timers.
//!
//! Sources: RFC 5681 (fast retransmit), RFC 6675 (recovery with SACK), RFC 6582 (without), RFC 3042
//! (limited transmit), RFC 6298 (timeout), RFC 3168 (ECN), RFC 3522 and 4015 (undo), and RC3 (NSDI
//! 2014) for segments from the tail: they are sent once, their acknowledgments touch the scoreboard
//! only, what the receiver has is not sent again, and a cumulative acknowledgment beyond the next new
//! segment moves it there (the "ACK bump").
//!
//! Input through `handle_*`, output through `poll_transmit` until it returns `None`; whoever drives
//! it wakes it at `next_timer`.

use crate::config::TransportConfig;
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::segment::{AckSegment, MAX_SACK_BLOCKS, SackBlock, Segment, Transmit};
use crate::send_buffer::SendBuffer;
use sparelane_cc::{Ack, Congestion, CongestionControl, Cx, Offer, Permit, Phase, TailOffer, WhichEnd};
use sparelane_core::{Dur, Stream, Time};

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The SYN waits to be sent, for the first time or again.
    SendSyn,
    /// The SYN is on its way.
    SynSent,
    /// Data flows.
    Established,
}

/// Totals of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Class-0 segments sent again.
    pub retransmissions: u64,
    /// Timeouts of data and SYN.
    pub timeouts: u64,
}

/// The sender of one connection.
#[derive(Debug)]
pub struct Sender {
    una: u32,
    nxt: u32,
    phase: Phase,
    state: State,
    uses_tail: bool,
    cwnd_limited: bool,
    /// The first outstanding segment goes at once, whatever the window says.
    resend_head: bool,
    /// Set once a window was cut because of a mark, until the news is on its way.
    window_reduced: bool,
    rto_deadline: Time,
    pace_at: Time,
    /// When each outstanding class-0 segment was first sent, by segment number.
    sent_at: Vec<Time>,
    cc: Box<dyn CongestionControl>,
    rtt: RttEstimator,
    board: Scoreboard,
    buffer: SendBuffer,
    config: TransportConfig,
    receive_window_segments: u32,
    /// An episode of recovery ends when everything below is acknowledged.
    recover: u32,
    dup_acks: u32,
    /// NewReno's inflation of the window, segments (RFC 6582).
    inflation: i64,
    /// NewReno rearms the timer on the first partial acknowledgment only (RFC 6582 section 3.2).
    partial_acks: u32,
    /// This episode's rescue retransmission was sent (RFC 6675's RescueRxt).
    rescue_sent: bool,
    /// Congestion marks are heeded again once this is acknowledged.
    marks_heeded_from: u32,
    last_blocks: [SackBlock; MAX_SACK_BLOCKS],
    opened_at: Time,
    syn_timeouts: u32,
    counts: SenderCounts,
    rng: Stream,
}

impl Sender {
    /// A sender that will open its connection at the first poll.
    pub fn new(config: TransportConfig, cc: Box<dyn CongestionControl>, rng: Stream) -> Sender {
        let window = config.receive_window_bytes.map_or(u64::from(u32::MAX), |bytes| (bytes / config.mss_bytes).max(1));
        Sender {
            una: 0,
            nxt: 0,
            phase: Phase::Open,
            state: State::SendSyn,
            uses_tail: cc.uses_tail(),
            cwnd_limited: true,
            resend_head: false,
            window_reduced: false,
            rto_deadline: Time::NEVER,
            pace_at: Time::NEVER,
            sent_at: vec![Time::ZERO; 16],
            cc,
            rtt: RttEstimator::new(config.rto),
            board: Scoreboard::new(),
            buffer: SendBuffer::new(config.mss_bytes, config.send_buffer_bytes),
            config,
            receive_window_segments: u32::try_from(window).unwrap_or(u32::MAX),
            recover: 0,
            dup_acks: 0,
            inflation: 0,
            partial_acks: 0,
            rescue_sent: false,
            marks_heeded_from: 0,
            last_blocks: [SackBlock::default(); MAX_SACK_BLOCKS],
            opened_at: Time::ZERO,
            syn_timeouts: 0,
            counts: SenderCounts::default(),
            rng,
        }
    }

    /// The application sends `bytes`. Each call is a write of its own: it ends with a segment that may
    /// be short, and RC3 counts its priorities anew.
    pub fn write(&mut self, bytes: u64) {
        self.buffer.write(bytes);
    }

    /// The application sends without end.
    pub fn write_without_end(&mut self) {
        self.buffer.write_without_end();
    }

    /// Whether the receiver is known to hold everything written.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.buffer.is_acknowledged(self.una)
            || (self.uses_tail && self.board.sacked() == self.buffer.end() - self.una && !self.buffer.is_blocked())
    }

    /// Totals so far.
    pub fn counts(&self) -> SenderCounts {
        self.counts
    }

    /// The controller.
    pub fn controller(&self) -> &dyn CongestionControl {
        &*self.cc
    }

    /// The smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Dur> {
        self.rtt.srtt()
    }

    /// Class-0 bytes in flight, counted in full segments.
    pub fn in_flight_bytes(&self) -> u64 {
        u64::from(self.board.pipe(self.nxt - self.una)) * self.config.mss_bytes
    }

    /// The earliest time at which [`handle_timer`](Self::handle_timer) wants to be called.
    #[inline(always)]
    pub fn next_timer(&self) -> Time {
        self.rto_deadline.min(self.pace_at)
    }

    /// Segments sent in class 0 and not cumulatively acknowledged.
    #[inline(always)]
    fn flight(&self) -> u32 {
        self.nxt - self.una - self.board.skipped()
    }

    fn flight_bytes(&self) -> u64 {
        u64::from(self.flight()) * self.config.mss_bytes
    }

    /// The handshake's answer arrived.
    pub fn handle_syn_ack(&mut self, now: Time) {
        if self.state == State::Established {
            return;
        }
        self.state = State::Established;
        self.rto_deadline = Time::NEVER;
        self.rtt.progressed();
        if self.config.rto.handshake_sample && self.syn_timeouts == 0 {
            self.rtt.sample(now - self.opened_at);
        }
    }

    /// An acknowledgment arrived, with its SACK blocks.
    #[inline]
    pub fn handle_ack(&mut self, now: Time, ack: AckSegment, blocks: &[SackBlock]) {
        if ack.class > 0 {
            self.handle_low_priority_ack(ack, blocks);
            return;
        }
        let (old_una, old_nxt) = (self.una, self.nxt);
        let flight_before = self.flight();
        let advanced = ack.cumulative > old_una;

        let timed = !ack.trigger_retransmitted && ack.trigger >= old_una && ack.trigger < old_nxt;
        let rtt = timed.then(|| now - self.sent_at[ack.trigger as usize & (self.sent_at.len() - 1)]);
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        let spurious = advanced && self.config.undo_spurious && self.is_needless_resend(&ack);
        let arrived_before = self.board.arrived_out_of_order();
        if advanced {
            self.advance(now, ack.cumulative);
        }
        if self.config.sack && (!blocks.is_empty() || self.uses_tail) {
            self.take_report(ack, blocks);
        }
        // Class-0 segments that this acknowledgment covers in sequence, and those it shows to have arrived.
        let acked = flight_before - self.flight();
        let arrived = self.board.arrived_out_of_order().saturating_sub(arrived_before);

        if spurious {
            self.undo_losses(now);
        } else {
            self.detect_losses(now, &ack, acked);
        }
        if ack.ecn_echo && self.una > self.marks_heeded_from && self.phase == Phase::Open {
            self.marks_heeded_from = self.nxt;
            self.window_reduced = true;
            self.report(now, Congestion::Marked { flight_bytes: self.flight_bytes() });
        }
        let mss_bytes = self.config.mss_bytes;
        let news = Ack {
            acked_bytes: u64::from(acked) * mss_bytes,
            delivered_bytes: u64::from(acked + arrived) * mss_bytes,
            rtt,
            in_flight_bytes: self.in_flight_bytes(),
            cwnd_limited: self.cwnd_limited,
            phase: self.phase,
            ecn_echo: ack.ecn_echo,
        };
        let mut cx = Cx {
            now,
            mss_bytes,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rng: &mut self.rng,
        };
        self.cc.on_ack(&news, &mut cx);
    }

    /// RC3: the acknowledgment of a low-priority segment moves no window and causes no transmission.
    fn handle_low_priority_ack(&mut self, ack: AckSegment, blocks: &[SackBlock]) {
        if !self.config.sack {
            return;
        }
        self.board.sack(SackBlock { start: self.una, end: ack.cumulative }, None);
        self.take_blocks(blocks, None);
    }

    /// The cumulative acknowledgment moves on.
    #[inline]
    fn advance(&mut self, now: Time, to: u32) {
        self.board.advance(to);
        self.una = to;
        self.dup_acks = 0;
        if to > self.nxt {
            self.nxt = to; // RC3's ACK bump: the receiver has what the head has yet to send.
        }
        self.buffer.acknowledge(to);
        self.rtt.progressed();
        if self.flight() == 0 {
            self.rto_deadline = Time::NEVER;
        } else if self.partial_acks == 0 || to >= self.recover {
            self.rto_deadline = now + self.rtt.rto();
        }
    }

    /// What the receiver reports beyond the cumulative acknowledgment, told in class 0.
    fn take_report(&mut self, ack: AckSegment, blocks: &[SackBlock]) {
        self.take_blocks(blocks, Some(self.nxt));
        if self.uses_tail && ack.trigger >= self.una && ack.trigger < self.nxt {
            self.board.arrived(ack.trigger);
        }
    }

    /// Enters `blocks` on the scoreboard, less what the last acknowledgment already said.
    fn take_blocks(&mut self, blocks: &[SackBlock], class0: Option<u32>) {
        for &block in blocks {
            let mut news = block;
            for &old in &self.last_blocks {
                if old.start <= news.start && news.start < old.end {
                    news.start = old.end.min(news.end);
                }
                if old.start < news.end && news.end <= old.end {
                    news.end = old.start.max(news.start);
                }
            }
            self.board.sack(news, class0);
        }
        self.last_blocks[..blocks.len()].copy_from_slice(blocks);
    }

    /// Whether `ack` shows that the first outstanding segment was resent in vain: its original arrived.
    fn is_needless_resend(&self, ack: &AckSegment) -> bool {
        self.phase != Phase::Open
            && ack.trigger == self.una
            && !ack.trigger_retransmitted
            && self.board.is_resent(self.una)
    }

    fn undo_losses(&mut self, now: Time) {
        self.board.undo_losses();
        self.phase = Phase::Open;
        self.inflation = 0;
        self.report(now, Congestion::Spurious);
    }

    fn report(&mut self, now: Time, event: Congestion) {
        let mut cx = Cx {
            now,
            mss_bytes: self.config.mss_bytes,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rng: &mut self.rng,
        };
        self.cc.on_congestion(event, &mut cx);
    }

    /// Loss detection, and the ends of recovery.
    #[inline]
    fn detect_losses(&mut self, now: Time, ack: &AckSegment, acked: u32) {
        if self.phase != Phase::Open && self.una >= self.recover {
            self.phase = Phase::Open;
            self.inflation = 0;
            self.partial_acks = 0;
            self.rescue_sent = false;
        }
        if self.config.sack {
            if self.board.arrived_out_of_order() == 0 {
                return;
            }
            self.board.detect_losses();
            if self.phase == Phase::Open && self.board.head_is_lost() {
                self.enter_recovery(now);
            }
        } else {
            self.detect_losses_without_sack(now, ack, acked);
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
            }
            return;
        }
        // RC3: what lies below was overtaken by the bump and says nothing of the head.
        if self.flight() == 0 || (self.uses_tail && ack.trigger < self.una) {
            return;
        }
        self.dup_acks += 1;
        if self.phase == Phase::Recovery {
            self.inflation += 1;
        } else if self.phase == Phase::Open && self.dup_acks as usize >= DUP_THRESH {
            self.enter_recovery(now);
            self.inflation = DUP_THRESH as i64;
        }
    }

    fn enter_recovery(&mut self, now: Time) {
        self.phase = Phase::Recovery;
        self.recover = self.nxt;
        self.rescue_sent = false;
        self.report(now, Congestion::Loss { flight_bytes: self.flight_bytes() });
        self.resend_first();
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
        if now < self.rto_deadline {
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
        let first = self.phase != Phase::Timeout || self.una >= self.recover;
        let flight_bytes = self.flight_bytes();
        let forget = !self.config.sack_survives_timeout;
        if forget {
            self.last_blocks = [SackBlock::default(); MAX_SACK_BLOCKS];
        }
        self.board.time_out(self.nxt, forget);
        self.phase = Phase::Timeout;
        self.recover = self.nxt;
        self.dup_acks = 0;
        self.inflation = 0;
        self.partial_acks = 0;
        self.rescue_sent = false;
        self.resend_head = self.board.waiting_to_be_resent();
        self.report(now, Congestion::Timeout { flight_bytes, first });
        self.rto_deadline = now + self.rtt.rto();
    }

    /// The next packet to send now, if any. `nic_idle` tells that the host's interface has nothing to send.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, nic_idle: bool) -> Option<Transmit> {
        if self.state != State::Established {
            return self.poll_handshake(now);
        }
        let head = match self.phase {
            Phase::Open => self.next_new(),
            Phase::Recovery | Phase::Timeout => self.next_in_recovery(),
        };
        let tail = if self.uses_tail { self.buffer.next_tail(self.nxt) } else { None };
        if head.is_none() && tail.is_none() {
            self.cwnd_limited = false;
            return None;
        }
        let offer = Offer {
            head_bytes: head.map(|_| self.config.mss_bytes),
            tail: tail.map(|(_, sent_in_write)| TailOffer { sent_in_write }),
            in_flight_bytes: self.counted_segments() * self.config.mss_bytes,
            allowance_bytes: self.allowance_segments() * self.config.mss_bytes,
            nic_idle,
        };
        let mut cx = Cx {
            now,
            mss_bytes: self.config.mss_bytes,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rng: &mut self.rng,
        };
        match (self.cc.poll_send(&offer, &mut cx), head, tail) {
            (Permit::Send(plan), Some(seq), _) if plan.end == WhichEnd::Head => {
                Some(Transmit::Data(self.send_head(now, seq, plan.class)))
            }
            (Permit::Send(plan), _, Some((seq, _))) if plan.end == WhichEnd::Tail => {
                self.cwnd_limited = head.is_some();
                self.buffer.sent_from_tail(seq);
                self.board.send_low(seq);
                Some(Transmit::Data(self.segment(seq, plan.class)))
            }
            (Permit::NotBefore(at), ..) => {
                self.pace_at = at;
                None
            }
            _ => {
                self.cwnd_limited = head.is_some();
                None
            }
        }
    }

    /// The class in which a segment from the tail would go on an idle interface, if there is one.
    pub fn tail_class(&self) -> Option<u8> {
        if !self.uses_tail || self.state != State::Established {
            return None;
        }
        let (_, sent_in_write) = self.buffer.next_tail(self.nxt)?;
        self.cc.tail_class(&TailOffer { sent_in_write })
    }

    fn poll_handshake(&mut self, now: Time) -> Option<Transmit> {
        if self.state != State::SendSyn {
            return None;
        }
        self.state = State::SynSent;
        self.opened_at = now;
        self.rto_deadline = now + self.rtt.syn_timeout();
        Some(Transmit::Syn)
    }

    /// What counts against the window, segments.
    #[inline(always)]
    fn counted_segments(&self) -> u64 {
        let counts_pipe = match self.phase {
            Phase::Open => false,
            Phase::Recovery => self.config.sack,
            Phase::Timeout => true,
        };
        let counted = u64::from(if counts_pipe { self.board.pipe(self.nxt - self.una) } else { self.flight() });
        counted + self.inflation.min(0).unsigned_abs()
    }

    /// By how many segments recovery lets the head exceed the window.
    #[inline(always)]
    fn allowance_segments(&self) -> u64 {
        if self.resend_head {
            return u64::from(u32::MAX);
        }
        if self.phase != Phase::Open {
            return self.inflation.max(0).unsigned_abs();
        }
        if !self.config.limited_transmit {
            return 0;
        }
        u64::from(self.dup_acks.max(self.board.arrived_out_of_order()).min(DUP_THRESH as u32 - 1))
    }

    /// The next new segment, past those that the receiver has.
    #[inline(always)]
    fn next_new(&mut self) -> Option<u32> {
        if self.uses_tail && self.board.sacked() > 0 {
            while self.nxt < self.buffer.end() && self.board.is_sacked(self.nxt) {
                self.board.skip(self.nxt);
                self.nxt += 1;
            }
        }
        (self.nxt < self.buffer.end() && self.nxt - self.una < self.receive_window_segments).then_some(self.nxt)
    }

    /// RFC 6675's NextSeg: what is lost, then what is new, then what is doubtful.
    fn next_in_recovery(&mut self) -> Option<u32> {
        if let Some(seq) = self.board.next_lost() {
            return Some(seq);
        }
        if let Some(seq) = self.next_new() {
            return Some(seq);
        }
        if self.phase != Phase::Recovery || !self.config.sack {
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

    #[inline(always)]
    fn segment(&self, seq: u32, class: u8) -> Segment {
        let payload_bytes = self.buffer.payload_bytes(seq);
        Segment { seq, payload_bytes, class, retransmission: false, window_reduced: false }
    }

    /// Sends `seq` in class 0, for the first time or again.
    #[inline(always)]
    fn send_head(&mut self, now: Time, seq: u32, class: u8) -> Segment {
        let mut segment = self.segment(seq, class);
        self.resend_head = false;
        if seq == self.nxt {
            self.remember(now, seq);
            self.nxt += 1;
        } else {
            segment.retransmission = true;
            self.resend(seq);
        }
        if self.window_reduced {
            segment.window_reduced = true;
            self.window_reduced = false;
        }
        if self.rto_deadline == Time::NEVER {
            self.rto_deadline = now + self.rtt.rto();
        }
        segment
    }

    #[inline(never)]
    fn resend(&mut self, seq: u32) {
        self.rescue_sent |= !self.board.waiting_to_be_resent() && self.board.next_doubtful() != Some(seq);
        self.board.resend(seq);
        self.counts.retransmissions += 1;
    }

    #[inline(always)]
    fn remember(&mut self, now: Time, seq: u32) {
        if (seq - self.una) as usize >= self.sent_at.len() {
            self.grow_sent_at();
        }
        let mask = self.sent_at.len() - 1;
        self.sent_at[seq as usize & mask] = now;
    }

    #[cold]
    #[inline(never)]
    fn grow_sent_at(&mut self) {
        let mut grown = vec![Time::ZERO; (self.sent_at.len() * 2).max(((self.nxt - self.una + 1) as usize).next_power_of_two())];
        for seq in self.una..self.nxt {
            let to = seq as usize & (grown.len() - 1);
            grown[to] = self.sent_at[seq as usize & (self.sent_at.len() - 1)];
        }
        self.sent_at = grown;
    }
}
