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

mod advertised;
mod batch;
mod blocks;
mod congestion;
mod delivery;
mod late;
mod lifecycle;
mod rack;
mod recovery;
mod reduction;
mod reordering;
mod resends;
mod scheduler;
mod transmit;

use crate::acknowledgment::{AckError, Acknowledgment, Checked, Known};
use crate::config::{Ecn, TransportConfig};
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Scoreboard};
use crate::segment::{AckSegment, SackBlock};
use crate::send_buffer::SendBuffer;
use advertised::Advertised;
use batch::Batch;
use blocks::Blocks;
use delivery::Deliveries;
use late::Lateness;
pub use lifecycle::Ending;
use rack::Rack;
use reduction::Reduction;
use reordering::Reordering;
use resends::Resends;
use scheduler::Scheduler;
use sparelane_cc::{Ack, Congestion, CongestionControl, Cx, Limits, Needs, Phase, Received};
use sparelane_core::{Dur, Rate, Seq, Stream, Time};
use std::ops::Range;
use std::sync::Arc;

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The SYN waits to be sent, for the first time or again.
    SendSyn,
    /// The SYN is on its way.
    SynSent,
    /// Data flows.
    Established,
    /// Nothing more is sent.
    Ended(Ending),
}

/// Totals of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Class-0 segments sent again.
    pub retransmissions: u64,
    /// Timeouts of data and SYN.
    pub timeouts: u64,
}

/// The sender of one connection. Its fields are in the order in which they cool: what a plain acknowledgment touches comes
/// first, in five cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Sender {
    /// The first segment that is not acknowledged in sequence.
    una: Seq,
    /// The next segment that class 0 has not sent.
    nxt: Seq,
    /// While `sends_plainly`: class 0 may send below.
    open_until: Seq,
    /// `limits.cwnd_bytes` in whole segments.
    cwnd_segments: u32,
    receive_window_segments: u32,
    /// Nothing out of the ordinary: no loss, no report, a window law without a pace. An acknowledgment
    /// is then a few sums.
    plain: bool,
    /// Only new segments are to be sent, and only up to `open_until`: sending is a comparison.
    sends_plainly: bool,
    cwnd_limited: bool,
    phase: Phase,
    state: State,
    uses_tail: bool,
    owns_send_clock: bool,
    /// The connection is open, the controller is a window, and neither it nor loss detection wants anything that costs more.
    is_window_law: bool,
    /// Round trips are measured without a clock of ticks.
    measures_exactly: bool,
    /// Segments do not go in chunks.
    goes_one_by_one: bool,
    /// As in `config`, nearer.
    sack: bool,
    limited_transmit: bool,
    /// Needless retransmissions are undone.
    undoes: bool,
    /// A short segment may have to wait (Nagle's rule).
    waits_to_fill: bool,
    /// Losses are found by time: `rack` is there.
    detects_by_time: bool,
    /// That, or the controller hears of single segments, or loss detection follows reordering.
    notes_arrivals: bool,
    /// Acknowledgments of low classes go to the scoreboard, and nowhere else.
    books_low_acks: bool,
    /// The first outstanding segment goes at once, whatever the window says.
    resend_head: bool,
    /// A window was cut because of a mark; the next new segment says so.
    window_reduced: bool,
    /// The head may have to wait for its time.
    holds_back: bool,
    needs: Needs,
    limits: Limits,
    /// As in `config`.
    mss_bytes: u64,
    rto_deadline: Time,
    /// When a paced segment, or a controller that owns the send clock, wants to be asked again.
    pace_at: Time,
    /// When the controller wants its timer to fire, or loss detection by time its own.
    alarm_at: Time,
    cc: Box<dyn CongestionControl>,
    /// The pace allows the next segment from here on.
    paced_until: Time,
    rtt: RttEstimator,
    /// When each outstanding class-0 segment was first sent, by segment number.
    sent_at: Vec<Time>,
    buffer: SendBuffer,
    board: Scoreboard,
    batch: Batch,
    /// When the last paced segment was due.
    last_due: Time,
    /// An episode of recovery ends when everything below is acknowledged.
    recover: Seq,
    dup_acks: u32,
    /// So many arrivals behind a segment show that it is lost.
    dup_thresh: u32,
    /// NewReno's inflation of the window, segments (RFC 6582).
    inflation: i64,
    /// NewReno rearms the timer on the first partial acknowledgment only (RFC 6582 section 3.2).
    partial_acks: u32,
    /// This episode's rescue retransmission was sent (RFC 6675's RescueRxt).
    rescue_sent: bool,
    /// This episode cut the window; it does not where a mark or a full interface had done so.
    cut: bool,
    /// `una` when the retransmission timer last fired.
    una_at_timeout: Seq,
    /// `nxt` when congestion was last answered: it is answered again once more than that is acknowledged.
    answered_at: Option<Seq>,
    /// What the last acknowledgment of class 0 reported, and the last one of another class.
    last_blocks: Blocks,
    last_low_blocks: Option<Box<Blocks>>,
    opened_at: Time,
    deliveries: Option<Box<Deliveries>>,
    /// The books of loss detection by time, where it is set.
    rack: Option<Box<Rack>>,
    /// The reduction of the window that is under way, where it is to be in proportion to what arrives.
    reduction: Option<Reduction>,
    /// The reordering that the path has shown, where loss detection is to follow it.
    reordering: Option<Box<Reordering>>,
    /// When the controller wants its timer to fire.
    controller_at: Time,
    resends: Resends,
    /// What is to be known of late timers, where any are or are made up for.
    late: Option<Box<Lateness>>,
    /// What TCP has handed down and has yet to leave, where a scheduler is below it.
    scheduler: Option<Box<Scheduler>>,
    syn_timeouts: u32,
    /// The window that the receiver has advertised, once it has.
    advertised: Option<Advertised>,
    /// Something other than the retransmission timer and the pace has its time.
    has_alarms: bool,
    /// Since when nothing came back, while the retransmission timer fires.
    silent_since: Time,
    /// A reset is to be sent.
    says_reset: bool,
    counts: SenderCounts,
    /// Retransmissions before this episode.
    resent_before: u64,
    rng: Stream,
    config: Arc<TransportConfig>,
}

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
fn whole_ticks(now: Time, then: Time, tick: Dur) -> Dur {
    let ticks = now.as_ps() / tick.as_ps() - then.as_ps() / tick.as_ps();
    if ticks == 0 { LESS_THAN_A_TICK.min(tick) } else { tick * ticks }
}

fn is_window_law(cc: &dyn CongestionControl) -> bool {
    let needs = cc.needs();
    let wants_more = needs.segments || needs.one_way_delay || needs.receive_time || needs.timer;
    let sends_by_its_own = cc.owns_send_clock() || cc.schedules_departures();
    !(wants_more || cc.uses_tail() || sends_by_its_own || cc.desired_rate().is_some() || cc.limits().pacing.is_some())
}

/// What a call into the controller carries; a macro, so that the borrow is of single fields.
macro_rules! context {
    ($sender:expr, $now:expr) => {
        Cx {
            now: $now,
            mss_bytes: $sender.mss_bytes,
            srtt: $sender.rtt.srtt(),
            min_rtt: $sender.rtt.min_rtt(),
            rng: &mut $sender.rng,
        }
    };
}
use context;

impl Sender {
    /// A sender that will open its connection at the first poll. Connections with the same settings can share them.
    pub fn new(config: impl Into<Arc<TransportConfig>>, cc: Box<dyn CongestionControl>, rng: Stream) -> Sender {
        let config = config.into();
        let detects_by_time = config.rack_tlp && config.sack;
        let follows_reordering = config.adaptive_reordering && config.sack;
        let uses_tail = cc.uses_tail();
        Sender {
            una: 0,
            nxt: 0,
            open_until: 0,
            plain: false,
            sends_plainly: false,
            cwnd_limited: true,
            phase: Phase::Open,
            state: State::SendSyn,
            uses_tail,
            owns_send_clock: cc.owns_send_clock(),
            needs: cc.needs(),
            is_window_law: false,
            has_alarms: detects_by_time || cc.needs().timer,
            measures_exactly: config.rtt_granularity.is_none(),
            goes_one_by_one: config.send_batch <= 1 && !config.nagle,
            sack: config.sack,
            limited_transmit: config.limited_transmit,
            undoes: config.undo_spurious,
            waits_to_fill: config.nagle,
            detects_by_time,
            notes_arrivals: detects_by_time || cc.needs().segments || follows_reordering,
            books_low_acks: config.sack && !cc.needs().tail,
            deliveries: cc.needs().segments.then(|| Box::new(Deliveries::new())),
            rack: detects_by_time.then(|| Box::new(Rack::new())),
            reduction: None,
            reordering: follows_reordering.then(Box::default),
            resends: Resends::default(),
            late: Lateness::of(config.pacing_catch_up),
            scheduler: cc.schedules_departures().then(Box::default),
            resend_head: false,
            window_reduced: false,
            rto_deadline: Time::NEVER,
            pace_at: Time::NEVER,
            paced_until: Time::ZERO,
            last_due: Time::ZERO,
            controller_at: Time::NEVER,
            alarm_at: Time::NEVER,
            limits: cc.limits(),
            holds_back: false,
            cwnd_segments: 0,
            receive_window_segments: config.receive_window_segments() as u32,
            mss_bytes: config.mss_bytes,
            sent_at: vec![Time::ZERO; 16],
            rtt: RttEstimator::new(config.rto),
            cc,
            buffer: SendBuffer::new(config.mss_bytes, config.send_buffer_bytes, config.coalesce),
            board: Scoreboard::new(),
            batch: Batch::of(config.send_batch),
            config,
            recover: 0,
            dup_acks: 0,
            dup_thresh: DUP_THRESH,
            inflation: 0,
            partial_acks: 0,
            rescue_sent: false,
            cut: false,
            una_at_timeout: 0,
            answered_at: None,
            last_blocks: Blocks::default(),
            last_low_blocks: uses_tail.then(Box::default),
            opened_at: Time::ZERO,
            syn_timeouts: 0,
            advertised: None,
            silent_since: Time::ZERO,
            says_reset: false,
            counts: SenderCounts::default(),
            resent_before: 0,
            rng,
        }
    }

    /// Numbers the segments from `first` on, as TCP's initial sequence number would; for a connection that has written nothing
    /// yet. The receiver [begins there](crate::Receiver::begin_at), too.
    pub fn begin_at(&mut self, first: Seq) {
        (self.una, self.nxt) = (first, first);
        self.board.advance(first);
        self.buffer.begin_at(first);
        self.refresh();
    }

    /// The application sends `bytes`. Each call is a write of its own: it ends with a segment that may
    /// be short, and RC3 counts its priorities anew.
    pub fn write(&mut self, bytes: u64) {
        self.buffer.write(bytes, self.una, self.nxt);
        self.refresh();
    }

    /// The application sends without end.
    pub fn write_without_end(&mut self) {
        self.buffer.write_without_end();
        self.refresh();
    }

    /// Whether the receiver is known to hold everything written.
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        self.buffer.is_acknowledged(self.una)
            || (self.uses_tail
                && Seq::from(self.board.sacked()) == self.buffer.end() - self.una
                && !self.buffer.is_blocked())
    }

    /// The first segment that is not acknowledged in sequence.
    #[inline(always)]
    pub fn acknowledged(&self) -> Seq {
        self.una
    }

    /// Totals so far.
    pub fn counts(&self) -> SenderCounts {
        self.counts
    }

    /// The controller.
    pub fn controller(&self) -> &dyn CongestionControl {
        &*self.cc
    }

    /// Hands the controller to `steer`, and then takes window and pace from it. What the sender may send after that is for
    /// [`Sender::poll_transmit`] to say.
    pub fn steer(&mut self, steer: &mut dyn FnMut(&mut dyn CongestionControl)) {
        steer(&mut *self.cc);
        self.refresh();
    }

    /// The least sample of the round-trip time, once there is one.
    pub fn min_rtt(&self) -> Option<Dur> {
        self.rtt.min_rtt()
    }

    /// The smoothed round-trip time (RFC 6298), once there is a sample.
    pub fn srtt(&self) -> Option<Dur> {
        self.rtt.srtt()
    }

    /// Class-0 bytes in flight, counted in full segments.
    pub fn in_flight_bytes(&self) -> u64 {
        u64::from(self.pipe()) * self.mss_bytes
    }

    /// The earliest time at which [`handle_timer`](Self::handle_timer) wants to be called.
    #[inline(always)]
    pub fn next_timer(&self) -> Time {
        self.rto_deadline.min(self.pace_at).min(self.alarm_at)
    }

    /// Segments between the cumulative acknowledgment and the next new one.
    #[inline(always)]
    fn outstanding(&self) -> u32 {
        (self.nxt - self.una) as u32
    }

    /// RFC 6675's pipe: segments of class 0 in flight.
    #[inline(always)]
    fn pipe(&self) -> u32 {
        self.board.pipe(self.outstanding())
    }

    /// Segments sent in class 0 and not cumulatively acknowledged.
    #[inline(always)]
    fn flight(&self) -> u32 {
        self.outstanding() - self.board.skipped()
    }

    /// Segments sent in class 0 that are not known to have left the network by arriving.
    #[inline(always)]
    fn missing(&self) -> u32 {
        self.outstanding() - self.board.gone()
    }

    /// Memory that this connection takes, bytes; its controller's own lists are not counted.
    pub fn memory_bytes(&self) -> usize {
        let books = self.deliveries.as_ref().map_or(0, |books| books.memory_bytes());
        let rack = self.rack.as_ref().map_or(0, |rack| rack.memory_bytes());
        let scheduler = self.scheduler.as_ref().map_or(0, |scheduler| scheduler.memory_bytes());
        size_of::<Sender>()
            + size_of_val(&*self.cc)
            + self.sent_at.capacity() * size_of::<Time>()
            + self.buffer.list_bytes()
            + self.board.list_bytes()
            + self.resends.list_bytes()
            + books
            + rack
            + scheduler
    }

    /// The rate to ask the routers for in every packet, where the controller works with explicit rates.
    pub fn desired_rate(&self) -> Option<Rate> {
        self.cc.desired_rate()
    }

    /// Bytes of the stream that are acknowledged in sequence: nobody will ask for them again.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.buffer.offset_of(self.una)
    }

    /// How many bytes of the stream come before segment `seq`; for one that is acknowledged, as if all segments had been full.
    pub fn offset_of(&self, seq: Seq) -> u64 {
        if seq < self.una { seq * u64::from(self.buffer.full_segment_bytes()) } else { self.buffer.offset_of(seq) }
    }

    /// Where in the stream the payload of segment `seq` lies; `None` for one that is acknowledged, or was not written.
    pub fn bytes_of(&self, seq: Seq) -> Option<Range<u64>> {
        if seq < self.una || seq >= self.buffer.end() {
            return None;
        }
        let start = self.buffer.offset_of(seq);
        Some(start..start + u64::from(self.buffer.payload_bytes(seq)))
    }

    /// Whether a write ends with segment `seq`, which is not acknowledged.
    pub fn ends_write(&self, seq: Seq) -> bool {
        self.buffer.end_of_write(seq) == seq + 1
    }

    /// What the controller wants to be told.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// When the segment that was sent last was due, where a pace or the controller's own clock says so.
    pub fn last_due(&self) -> Option<Time> {
        if self.owns_send_clock || self.scheduler.is_some() {
            self.cc.last_due()
        } else {
            self.limits.pacing.map(|_| self.last_due)
        }
    }

    /// The handshake's answer arrived, and echoes what the routers allow, where it was asked for.
    pub fn handle_syn_ack(&mut self, now: Time, explicit_rate: Option<Rate>) {
        if self.state != State::SynSent && self.state != State::SendSyn {
            return;
        }
        self.rtt.opened(self.syn_timeouts);
        if self.config.rto.handshake_sample && self.syn_timeouts == 0 {
            self.rtt.sample(now - self.opened_at);
        }
        self.open(now, explicit_rate);
        if self.syn_timeouts > 0 && self.config.syn_loss_resets_window {
            self.report(now, Congestion::LostSyn);
        }
    }

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

    /// Whether the low bits of `number` tell it apart from all others that may be outstanding.
    fn is_near(&self, number: Seq) -> bool {
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
        self.rto_deadline = if self.nxt == self.una { Time::NEVER } else { now + rto };
        let news = Ack {
            acked_bytes,
            delivered_bytes: acked_bytes,
            rtt: Some(rtt),
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

    /// When segment `seq`, which is outstanding, was sent.
    #[inline(always)]
    fn sending_time(&self, seq: Seq) -> Time {
        self.sent_at[seq as usize & (self.sent_at.len() - 1)]
    }

    /// As [`handle_ack`](Self::handle_ack), where [`handle_plain_ack`](Self::handle_plain_ack) was not asked, or in vain.
    ///
    /// # Errors
    /// As [`handle_ack`](Self::handle_ack).
    pub fn handle_any_ack(&mut self, now: Time, ack: &Acknowledgment<'_>) -> Result<(), AckError> {
        let checked = Checked::of(ack, self.known())?;
        self.take_ack(now, checked);
        Ok(())
    }

    /// As [`handle_any_ack`](Self::handle_any_ack), for the acknowledgment of a receiver that cannot lie: that of a simulation,
    /// in the same process. It is checked where debug assertions are on, and nowhere else.
    pub fn handle_trusted_ack(&mut self, now: Time, ack: &Acknowledgment<'_>) {
        debug_assert_eq!(Checked::of(ack, self.known()).err(), None, "a trusted receiver says what cannot be: {ack:?}");
        self.take_ack(now, Checked::unchecked(ack));
    }

    fn known(&self) -> Known<'_> {
        // What waits in a scheduler below TCP has not been sent.
        let departed = self.scheduler.as_ref().map(|scheduler| scheduler.departed_end());
        Known {
            is_open: self.state == State::Established,
            sent: departed.unwrap_or_else(|| self.sent_end()),
            sends_in_low_classes: self.uses_tail,
            next: departed.unwrap_or(self.nxt),
            board: &self.board,
        }
    }

    #[inline(never)]
    fn take_ack(&mut self, now: Time, checked: Checked<'_>) {
        let given = checked.get();
        let (ack, blocks) = (given.segment, given.blocks);
        if ack.class > 0 {
            if self.books_low_acks {
                self.handle_low_priority_ack(ack, blocks);
            } else {
                self.tell_low_priority_ack(now, ack, blocks);
            }
            return;
        }
        let extras = given.extras.copied().unwrap_or_default();
        let received_at = extras.received_at.filter(|_| !ack.trigger_retransmitted);
        let spurious = self.undoes && self.is_needless_resend(&ack);
        let flight_before = self.flight();
        let missing_before = self.missing();
        let rtt = if ack.trigger_retransmitted {
            self.sample_retransmission(now, &ack);
            None
        } else {
            self.take_rtt_sample(now, &ack, self.config.rtt_granularity)
        };
        if self.notes_arrivals {
            self.note_arrival(now, &ack, rtt);
        }
        if ack.cumulative > self.una {
            self.advance(now, ack.cumulative);
        }
        if self.sack {
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
        let delivery = if self.needs.segments { self.note_delivered(now, delivered_bytes) } else { None };
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
        if self.is_window_law {
            self.limits.cwnd_bytes = self.cc.window_after(&news, &mut context!(self, now));
            self.reopen_any();
        } else {
            self.cc.on_ack(&news, &mut context!(self, now));
            if self.detects_by_time {
                self.end_probe(now, &ack);
                self.schedule_probe(now);
            }
            self.refresh();
        }
        if self.phase == Phase::Recovery && self.reduction.is_some() {
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

    /// A retransmission caused `ack`: where timestamps tell of which copy it is, that is a sample for the timer, though none for
    /// the controller; and progress shows that the timer need not wait longer and longer.
    #[cold]
    #[inline(never)]
    fn sample_retransmission(&mut self, now: Time, ack: &AckSegment) {
        if !self.config.timestamps {
            return;
        }
        if let Some(at) = self.resending_time(now, ack.trigger) {
            self.rtt.sample(round_trip(now, at, self.config.rtt_granularity));
        }
        if ack.cumulative > self.una {
            self.rtt.end_backoff();
        }
    }

    /// When segment `seq` was sent again, if it is outstanding and was. An answer within less than the least round trip is that of
    /// an earlier copy, as in RFC 8985 section 6.2.
    fn resending_time(&self, now: Time, seq: Seq) -> Option<Time> {
        let outstanding = seq.wrapping_sub(self.una) < self.nxt - self.una;
        let at = self.resends.last_of(seq).filter(|_| outstanding)?;
        self.rtt.min_rtt().is_none_or(|min_rtt| now.saturating_since(at) >= min_rtt).then_some(at)
    }

    /// A segment arrived and caused `ack`, which is handled next: for the books of controllers and of loss detection by time.
    fn note_arrival(&mut self, now: Time, ack: &AckSegment, rtt: Option<Dur>) {
        if self.detects_by_time {
            self.note_rack_arrival(now, ack, rtt);
        }
        self.note_reordering(ack);
        if self.needs.segments {
            self.note_trigger(ack.trigger, ack.trigger_retransmitted);
        }
    }

    /// One past the last segment that either end has sent.
    fn sent_end(&self) -> Seq {
        if self.uses_tail { self.buffer.end() } else { self.nxt }
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
        if self.sack {
            self.handle_low_priority_ack(ack, blocks);
        }
        if self.needs.tail {
            let segments = (self.board.sacked() - before).max(1);
            self.cc.on_tail_delivered(segments, &mut context!(self, now));
        }
    }

    /// The cumulative acknowledgment moves on.
    fn advance(&mut self, now: Time, to: Seq) {
        self.board.advance(to);
        self.una = to;
        self.dup_acks = 0;
        if to > self.nxt {
            self.nxt = to; // RC3's ACK bump: the receiver has what the head has yet to send.
        }
        self.resend_head = false;
        self.buffer.acknowledge(to);
        if self.flight() == 0 {
            self.rto_deadline = Time::NEVER;
        } else if self.partial_acks == 0 || to >= self.recover {
            self.rto_deadline = now + self.rtt.rto();
        }
    }

    /// RC3: everything below `to` is known to have arrived, and nothing of class 0 is left in the network to say so.
    fn pass(&mut self, to: Seq) {
        self.board.advance(to);
        self.una = to;
        self.buffer.acknowledge(to);
    }

    /// What the receiver reports beyond the cumulative acknowledgment, told in class 0.
    fn take_report(&mut self, ack: AckSegment, blocks: &[SackBlock]) {
        self.take_blocks(blocks, true);
        if self.uses_tail && ack.trigger >= self.una && ack.trigger < self.nxt {
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
        for (at, &block) in blocks.iter().enumerate() {
            if let Some(news) = last.news_of(at, block) {
                board.sack(news, nxt, in_class0);
            }
        }
        last.replace(blocks);
    }

    fn report(&mut self, now: Time, event: Congestion) {
        self.cc.on_congestion(event, &mut context!(self, now));
        self.refresh();
    }

    /// Something changed that sending depends on.
    fn refresh(&mut self) {
        self.limits = self.cc.limits();
        self.holds_back = self.limits.pacing.is_some() || self.late.is_some();
        if self.has_alarms {
            self.set_alarm();
        }
        self.reopen_any();
    }

    /// The window, the phase, or what is known to be lost changed.
    #[inline(always)]
    fn reopen_any(&mut self) {
        let windowed = self.is_window_law && !self.window_reduced;
        let undisturbed = windowed && self.phase == Phase::Open && self.dup_acks == 0 && self.board.is_clean();
        self.plain = undisturbed && self.measures_exactly;
        self.sends_plainly = undisturbed && self.goes_one_by_one;
        self.reopen();
        if self.phase == Phase::Recovery && windowed && self.goes_one_by_one && !self.resend_head {
            self.reopen_in_recovery();
        }
    }

    #[inline(never)]
    fn set_alarm(&mut self) {
        if self.needs.timer {
            self.controller_at = self.cc.next_timer();
        }
        let of_losses = self.rack.as_ref().map_or(Time::NEVER, |rack| rack.next_timer());
        let of_window = self.advertised.as_ref().map_or(Time::NEVER, |advertised| advertised.next_timer());
        self.alarm_at = if matches!(self.state, State::Ended(_)) {
            Time::NEVER
        } else {
            self.controller_at.min(of_losses).min(of_window)
        };
    }

    /// In recovery with nothing left to resend, new segments go as the pipe empties.
    fn reopen_in_recovery(&mut self) {
        if self.reduction.is_some() || !self.sack {
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
    fn reopen(&mut self) {
        let mss_bytes = self.mss_bytes;
        let above = self.limits.cwnd_bytes.wrapping_sub(u64::from(self.cwnd_segments) * mss_bytes);
        if above >= mss_bytes {
            self.cwnd_segments = u32::try_from(self.limits.cwnd_bytes / mss_bytes).unwrap_or(u32::MAX);
        }
        let window = self.cwnd_segments.min(self.receive_window_segments);
        self.open_until = (self.una + Seq::from(window)).min(self.buffer.end());
    }
}
