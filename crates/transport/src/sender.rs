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

mod acknowledge;
mod advertised;
mod batch;
mod blocks;
mod congestion;
mod delivery;
mod kind;
mod late;
mod lifecycle;
mod rack;
mod recovery;
mod reduction;
mod reordering;
mod resends;
mod scheduler;
mod short;
mod transmit;

use crate::config::TransportConfig;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::segment_ring::SegmentRing;
use crate::send_buffer::SendBuffer;
use advertised::Advertised;
use batch::Batch;
use blocks::Blocks;
use delivery::Deliveries;
use kind::Kind;
use late::Pace;
pub use lifecycle::Ending;
use lifecycle::Life;
use rack::Rack;
use recovery::Repair;
use reordering::Reordering;
use scheduler::Scheduler;
use sparelane_cc::{Congestion, CongestionControl, Cx, Limits, Needs, Phase};
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
    /// The first outstanding segment goes at once, whatever the window says.
    resend_head: bool,
    /// A window was cut because of a mark; the next new segment says so.
    window_reduced: bool,
    kind: Kind,
    limits: Limits,
    /// As in `config`.
    mss_bytes: u64,
    timers: Timers,
    cc: Box<dyn CongestionControl>,
    pace: Pace,
    rtt: RttEstimator,
    /// When each outstanding class-0 segment was first sent, by segment number.
    sent_at: SegmentRing<Time>,
    buffer: SendBuffer,
    board: Scoreboard,
    batch: Batch,
    repair: Repair,
    /// What the last acknowledgment of class 0 reported, and the last one of another class.
    last_blocks: Blocks,
    last_low_blocks: Option<Box<Blocks>>,
    /// The books of controllers that hear of single segments.
    deliveries: Option<Box<Deliveries>>,
    /// The books of loss detection by time, where it is set.
    rack: Option<Box<Rack>>,
    /// The reordering that the path has shown, where loss detection is to follow it.
    reordering: Option<Box<Reordering>>,
    /// What TCP has handed down and has yet to leave, where a scheduler is below it.
    scheduler: Option<Box<Scheduler>>,
    /// The window that the receiver has advertised, once it has.
    advertised: Option<Advertised>,
    life: Life,
    counts: SenderCounts,
    rng: Stream,
    config: Arc<TransportConfig>,
}

/// When the sender wants to be woken, and for what.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Timers {
    rto_deadline: Time,
    /// When a paced segment, or a controller that owns the send clock, wants to be asked again.
    pace_at: Time,
    /// When the controller wants its timer to fire, or loss detection by time or a shut window its own.
    alarm_at: Time,
    /// Of these the controller's.
    controller_at: Time,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers { rto_deadline: Time::NEVER, pace_at: Time::NEVER, alarm_at: Time::NEVER, controller_at: Time::NEVER }
    }
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
        let kind = Kind::of(&*cc, &config);
        Sender {
            una: 0,
            nxt: 0,
            open_until: 0,
            cwnd_segments: 0,
            receive_window_segments: config.receive_window_segments() as u32,
            plain: false,
            sends_plainly: false,
            cwnd_limited: true,
            phase: Phase::Open,
            state: State::SendSyn,
            resend_head: false,
            window_reduced: false,
            kind,
            limits: cc.limits(),
            mss_bytes: config.mss_bytes,
            timers: Timers::default(),
            pace: Pace::of(config.pacing_catch_up),
            rtt: RttEstimator::new(config.rto),
            sent_at: SegmentRing::new(),
            buffer: SendBuffer::new(config.mss_bytes, config.send_buffer_bytes, config.coalesce),
            board: Scoreboard::new(),
            batch: Batch::of(config.send_batch),
            repair: Repair::default(),
            last_blocks: Blocks::default(),
            last_low_blocks: kind.uses_tail.then(Box::default),
            deliveries: kind.needs.segments.then(|| Box::new(Deliveries::new())),
            rack: kind.detects_by_time.then(|| Box::new(Rack::new())),
            reordering: kind.follows_reordering.then(Box::default),
            scheduler: cc.schedules_departures().then(Box::default),
            advertised: None,
            life: Life::default(),
            counts: SenderCounts::default(),
            rng,
            cc,
            config,
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
            || (self.kind.uses_tail
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
        self.timers.rto_deadline.min(self.timers.pace_at).min(self.timers.alarm_at)
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
            + self.sent_at.list_bytes()
            + self.buffer.list_bytes()
            + self.board.list_bytes()
            + self.repair.resends.list_bytes()
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
        self.kind.needs
    }

    /// When the segment that was sent last was due, where a pace or the controller's own clock says so.
    pub fn last_due(&self) -> Option<Time> {
        if self.kind.owns_send_clock || self.scheduler.is_some() {
            self.cc.last_due()
        } else {
            self.limits.pacing.map(|_| self.pace.last_due)
        }
    }

    /// The handshake's answer arrived, and echoes what the routers allow, where it was asked for.
    pub fn handle_syn_ack(&mut self, now: Time, explicit_rate: Option<Rate>) {
        if self.state != State::SynSent && self.state != State::SendSyn {
            return;
        }
        self.rtt.opened(self.life.syn_timeouts);
        if self.config.rto.handshake_sample && self.life.syn_timeouts == 0 {
            self.rtt.sample(now - self.life.opened_at);
        }
        self.open(now, explicit_rate);
        if self.life.syn_timeouts > 0 && self.config.syn_loss_resets_window {
            self.report(now, Congestion::LostSyn);
        }
    }

    fn report(&mut self, now: Time, event: Congestion) {
        self.cc.on_congestion(event, &mut context!(self, now));
        self.refresh();
    }

    /// Something changed that sending depends on.
    fn refresh(&mut self) {
        self.limits = self.cc.limits();
        self.pace.holds_back = self.limits.pacing.is_some() || self.pace.late.is_some();
        if self.kind.has_alarms {
            self.set_alarm();
        }
        self.reopen_any();
    }

    #[inline(never)]
    fn set_alarm(&mut self) {
        if self.kind.needs.timer {
            self.timers.controller_at = self.cc.next_timer();
        }
        let of_losses = self.rack.as_ref().map_or(Time::NEVER, |rack| rack.next_timer());
        let of_window = self.advertised.as_ref().map_or(Time::NEVER, |advertised| advertised.next_timer());
        self.timers.alarm_at = if matches!(self.state, State::Ended(_)) {
            Time::NEVER
        } else {
            self.timers.controller_at.min(of_losses).min(of_window)
        };
    }
}
