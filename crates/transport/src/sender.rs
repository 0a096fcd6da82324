//! The sending end of a connection: handshake, window, loss recovery and timers.
//!
//! The sender is a state machine. The caller passes in events through the `handle_*` methods, calls
//! [`Sender::poll_transmit`] until it returns `None`, and calls [`Sender::handle_timer`] at [`Sender::next_timer`].
//!
//! Sources: RFC 5681 (fast retransmit), RFC 6675 (recovery with SACK), RFC 6582 (recovery without SACK), RFC 3042
//! (limited transmit), RFC 6298 (retransmission timer), RFC 3168 (ECN), RFC 3522 and 4015 (undo of spurious
//! retransmissions).
//!
//! Segments from the tail follow RC3 (NSDI 2014). They are sent once, and their acknowledgments only update the
//! scoreboard. Segments that the receiver holds are not sent again. If a cumulative acknowledgment exceeds the next new
//! segment, the head continues from there (RC3's "ACK bump").

mod acknowledge;
mod batch;
mod congestion;
mod delivery_rate;
mod fast_path;
mod features;
mod idle;
mod lifecycle;
mod pacing;
mod prr;
mod rack;
mod receive_window;
mod recovery;
mod reordering;
mod retransmission_times;
mod sack_report;
mod scheduler;
mod transmit;

use crate::accurate_ecn::{self, EcnFlags, MarkFeedback};
use crate::config::{Ecn, TransportConfig};
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::segment_ring::SegmentRing;
use crate::send_buffer::SendBuffer;
use batch::Batch;
use delivery_rate::DeliveryTracker;
use features::Features;
pub use lifecycle::Ending;
use lifecycle::Lifecycle;
use pacing::Pacing;
use rack::Rack;
use receive_window::AdvertisedWindow;
use recovery::RecoveryState;
use reordering::Reordering;
use sack_report::SackReports;
use scheduler::Scheduler;
use sparelane_cc::{Congestion, CongestionControl, Cx, Limits, Needs, Phase};
use sparelane_core::{Dur, Rate, Seq, Stream, Time, prefetch, prefetch_start};
use std::ops::Range;
use std::sync::Arc;

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The SYN is to be sent, for the first time or again.
    SendSyn,
    /// The SYN was sent and is not answered yet.
    SynSent,
    /// The connection is open.
    Established,
    /// The connection has ended. At most a reset is still to be sent.
    Ended(Ending),
}

/// Counters of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// The number of retransmitted class-0 segments.
    pub retransmissions: u64,
    /// The number of timeouts of data and of the SYN.
    pub timeouts: u64,
}

/// The sender of one connection.
// The fields are ordered by frequency of use. The fast paths use only the first five cache lines. State that a
// connection without losses and without the feature does not need is in boxes, because there can be a million senders.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Sender {
    /// The oldest segment that is not cumulatively acknowledged (SND.UNA).
    una: Seq,
    /// The next new segment of class 0 (SND.NXT).
    nxt: Seq,
    /// One past the last segment that the send fast path may send. Valid only while `send_fast_path` is set.
    send_limit: Seq,
    /// `limits.cwnd_bytes` in whole segments.
    cwnd_segments: u32,
    receive_window_segments: u32,
    /// Enables the fast path for acknowledgments: no loss, no SACK information, and a window-based controller without
    /// pacing.
    ack_fast_path: bool,
    /// Enables the fast path for acknowledgments that report one more segment in recovery.
    sack_fast_path: bool,
    /// Enables the fast path for sending: only new segments are due, up to `send_limit`.
    send_fast_path: bool,
    cwnd_limited: bool,
    phase: Phase,
    state: State,
    /// Retransmit the oldest outstanding segment immediately, even if the window is full.
    retransmit_head: bool,
    /// Set CWR on the next new segment, because the window was reduced after a mark.
    window_reduced: bool,
    /// Data was written while none was in flight: the window may have to restart before the next segment.
    may_restart: bool,
    features: Features,
    limits: Limits,
    /// The full segment size, copied from `config`.
    mss_bytes: u64,
    timers: Timers,
    cc: Box<dyn CongestionControl>,
    pacing: Pacing,
    rtt: RttEstimator,
    /// The time of the first transmission of each outstanding class-0 segment.
    sent_at: SegmentRing<Time>,
    buffer: SendBuffer,
    board: Scoreboard,
    recovery: RecoveryState,
    /// The progress in chunks, if segments are sent in chunks.
    batch: Option<Box<Batch>>,
    /// The SACK blocks of the last acknowledgments; `None` before the first block.
    last_reports: Option<Box<SackReports>>,
    /// Delivery rate samples, if the controller needs per-segment state.
    delivery_tracker: Option<Box<DeliveryTracker>>,
    /// The state of RACK-TLP, if enabled.
    rack: Option<Box<Rack>>,
    /// The reordering observed on the path, if loss detection adapts to it.
    reordering: Option<Box<Reordering>>,
    /// Segments that TCP has passed to a scheduler below it and that have not departed, if the controller has one.
    scheduler: Option<Box<Scheduler>>,
    /// The receive window advertised by the peer; `None` until the first advertisement.
    advertised_window: Option<Box<AdvertisedWindow>>,
    lifecycle: Lifecycle,
    /// The time of the last transmission off the fast path, or the time at which the connection opened.
    last_sent: Time,
    rng: Stream,
    config: Arc<TransportConfig>,
}

const _: () = assert!(size_of::<Sender>() <= 9 * 64, "a sender outgrew nine cache lines");

/// The deadlines of the sender's timers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Timers {
    rto_deadline: Time,
    /// The next departure time set by pacing, or by a controller that owns the send clock.
    pace_at: Time,
    /// The earliest of the controller's, RACK-TLP's and the persist timer.
    auxiliary_at: Time,
    /// The controller's timer, which is included in `auxiliary_at`.
    controller_at: Time,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            rto_deadline: Time::NEVER,
            pace_at: Time::NEVER,
            auxiliary_at: Time::NEVER,
            controller_at: Time::NEVER,
        }
    }
}

/// Builds the context of a call into the controller. It is a macro so that it borrows single fields of the sender.
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
    /// Creates a sender that sends its SYN at the first poll. Connections with equal settings can share one `config`.
    pub fn new(config: impl Into<Arc<TransportConfig>>, cc: Box<dyn CongestionControl>, rng: Stream) -> Sender {
        let config = config.into();
        let features = Features::of(&*cc, &config);
        Sender {
            una: 0,
            nxt: 0,
            send_limit: 0,
            cwnd_segments: 0,
            receive_window_segments: config.receive_window_segments() as u32,
            ack_fast_path: false,
            sack_fast_path: false,
            send_fast_path: false,
            cwnd_limited: true,
            phase: Phase::Open,
            state: State::SendSyn,
            retransmit_head: false,
            window_reduced: false,
            may_restart: false,
            features,
            limits: cc.limits(),
            mss_bytes: config.mss_bytes,
            timers: Timers::default(),
            pacing: Pacing::of(config.pacing_catch_up),
            rtt: RttEstimator::new(config.rto),
            sent_at: SegmentRing::new(),
            buffer: SendBuffer::new(config.mss_bytes, config.send_buffer_bytes, config.coalesce),
            board: Scoreboard::new(),
            batch: Batch::of(config.send_batch),
            recovery: RecoveryState::default(),
            last_reports: None,
            delivery_tracker: features.needs_segments.then(|| Box::new(DeliveryTracker::new())),
            rack: features.rack_tlp.then(|| Box::new(Rack::new())),
            reordering: features.adaptive_reordering.then(Box::default),
            scheduler: cc.schedules_departures().then(Box::default),
            advertised_window: None,
            lifecycle: Lifecycle::default(),
            last_sent: Time::ZERO,
            rng,
            cc,
            config,
        }
    }

    /// Sets the initial sequence number. Call it before the first write, and call
    /// [`Receiver::set_initial_seq`](crate::Receiver::set_initial_seq) with the same number.
    pub fn set_initial_seq(&mut self, first: Seq) {
        (self.una, self.nxt) = (first, first);
        self.board.advance(first);
        self.buffer.set_initial_seq(first);
        self.refresh();
    }

    /// Appends a write of `bytes` to the stream.
    ///
    /// The last segment of a write may be short, and RC3 counts its priorities per write.
    pub fn write(&mut self, bytes: u64) {
        self.note_write();
        self.buffer.write(bytes, self.una, self.nxt);
        self.refresh();
    }

    /// Appends an endless write to the stream.
    pub fn write_without_end(&mut self) {
        self.note_write();
        self.buffer.write_without_end(self.una);
        self.refresh();
    }

    /// Returns whether the receiver has acknowledged all data written, cumulatively or by SACK.
    #[inline(always)]
    pub fn is_done(&self) -> bool {
        self.buffer.is_acknowledged(self.una)
            || (self.features.uses_tail
                && Seq::from(self.board.sacked()) == self.buffer.end() - self.una
                && !self.buffer.is_blocked())
    }

    /// Returns true if the receiver has everything by the reports of a tail, though not by cumulative acknowledgments:
    /// no timer then sends a segment again.
    fn has_all_reported(&self) -> bool {
        self.features.uses_tail && self.state == State::Established && self.is_done()
    }

    /// Returns the oldest segment that is not cumulatively acknowledged (SND.UNA).
    #[inline(always)]
    pub fn acknowledged(&self) -> Seq {
        self.una
    }

    /// Prefetches the fields that the fast paths use.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch_start(self, 5);
    }

    /// Prefetches what [`handle_ack_fast`](Self::handle_ack_fast) finds through these fields: the controller, and the
    /// send time of segment `trigger`.
    #[inline(always)]
    pub fn prefetch_behind(&self, trigger: u32) {
        prefetch(std::ptr::from_ref(&*self.cc).cast::<u8>());
        prefetch(self.sent_at.slot_of(Seq::from(trigger)));
    }

    /// Returns the counters.
    pub fn counts(&self) -> SenderCounts {
        self.recovery.repairs().map_or(SenderCounts::default(), |repairs| repairs.counts)
    }

    /// Returns the congestion controller.
    pub fn controller(&self) -> &dyn CongestionControl {
        &*self.cc
    }

    /// Lets `steer` modify the controller, then updates the window and the pacing rate from it. Call
    /// [`Sender::poll_transmit`] afterwards, because a larger window may allow more segments.
    pub fn steer(&mut self, steer: &mut dyn FnMut(&mut dyn CongestionControl)) {
        steer(&mut *self.cc);
        self.refresh();
    }

    /// Returns the smallest round-trip time sample, or `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Dur> {
        self.rtt.min_rtt()
    }

    /// Returns the smoothed round-trip time (RFC 6298), or `None` before the first sample.
    pub fn srtt(&self) -> Option<Dur> {
        self.rtt.srtt()
    }

    /// Returns true if the retransmission timer expired since the last progress.
    pub(crate) fn is_backed_off(&self) -> bool {
        self.rtt.is_backed_off()
    }

    /// Returns the state of loss recovery.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the payload of a full segment in bytes.
    pub(crate) fn mss_bytes(&self) -> u64 {
        self.mss_bytes
    }

    /// Returns the class-0 data in flight in bytes (RFC 6675's pipe), counted in full segments.
    pub fn in_flight_bytes(&self) -> u64 {
        u64::from(self.pipe()) * self.mss_bytes
    }

    /// Returns the earliest timer deadline, at which [`handle_timer`](Self::handle_timer) must be called.
    #[inline(always)]
    pub fn next_timer(&self) -> Time {
        self.timers.rto_deadline.min(self.timers.pace_at).min(self.timers.auxiliary_at)
    }

    /// Returns the number of segments between the cumulative acknowledgment and the next new segment.
    #[inline(always)]
    fn outstanding(&self) -> u32 {
        (self.nxt - self.una) as u32
    }

    /// Returns RFC 6675's pipe: the number of class-0 segments in flight.
    #[inline(always)]
    fn pipe(&self) -> u32 {
        self.board.pipe(self.outstanding())
    }

    /// Returns the number of segments that were sent in class 0 and are not cumulatively acknowledged.
    #[inline(always)]
    fn flight(&self) -> u32 {
        self.outstanding() - self.board.skipped()
    }

    /// Returns the number of class-0 segments sent whose arrival is not known.
    #[inline(always)]
    fn missing(&self) -> u32 {
        self.outstanding() - self.board.gone()
    }

    /// Returns the memory of this sender in bytes, without heap memory of the controller.
    pub fn memory_bytes(&self) -> usize {
        let tracker = self.delivery_tracker.as_ref().map_or(0, |tracker| tracker.memory_bytes());
        let rack = self.rack.as_ref().map_or(0, |rack| rack.memory_bytes());
        let scheduler = self.scheduler.as_ref().map_or(0, |scheduler| scheduler.memory_bytes());
        size_of::<Sender>()
            + size_of_val(&*self.cc)
            + self.sent_at.list_bytes()
            + self.buffer.list_bytes()
            + self.board.list_bytes()
            + self.recovery.heap_bytes()
            + self.batch.as_ref().map_or(0, |_| size_of::<Batch>())
            + self.last_reports.as_ref().map_or(0, |_| size_of::<SackReports>())
            + self.advertised_window.as_ref().map_or(0, |_| size_of::<AdvertisedWindow>())
            + tracker
            + rack
            + scheduler
    }

    /// Returns the rate to request from the routers in each packet, if the controller uses explicit rates.
    pub fn desired_rate(&self) -> Option<Rate> {
        self.cc.desired_rate()
    }

    /// Returns the number of bytes of the stream that are cumulatively acknowledged. They are never retransmitted.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.buffer.offset_of(self.una)
    }

    /// Returns the stream offset of segment `seq` in bytes. For an acknowledged segment, all earlier segments are
    /// assumed to be full.
    pub fn offset_of(&self, seq: Seq) -> u64 {
        if seq < self.una { seq * u64::from(self.buffer.full_segment_bytes()) } else { self.buffer.offset_of(seq) }
    }

    /// Returns the byte range of segment `seq` in the stream, or `None` if the segment is acknowledged or was not
    /// written.
    pub fn bytes_of(&self, seq: Seq) -> Option<Range<u64>> {
        if seq < self.una || seq >= self.buffer.end() {
            return None;
        }
        let start = self.buffer.offset_of(seq);
        Some(start..start + u64::from(self.buffer.payload_bytes(seq)))
    }

    /// Returns whether the unacknowledged segment `seq` is the last of its write.
    pub fn ends_write(&self, seq: Seq) -> bool {
        self.buffer.end_of_write(seq) == seq + 1
    }

    /// Returns the optional input that the controller needs.
    pub fn needs(&self) -> Needs {
        self.cc.needs()
    }

    /// Returns the scheduled departure time of the last segment sent, or `None` if departures are not scheduled.
    pub fn last_due(&self) -> Option<Time> {
        if self.features.owns_send_clock || self.scheduler.is_some() {
            self.cc.last_due()
        } else {
            self.limits.pacing.map(|_| self.pacing.last_due)
        }
    }

    /// Handles the SYN-ACK. `explicit_rate` is the rate granted by the routers, if one was requested.
    pub fn handle_syn_ack(&mut self, now: Time, explicit_rate: Option<Rate>) {
        if self.state != State::SynSent && self.state != State::SendSyn {
            return;
        }
        self.rtt.opened(self.lifecycle.syn_timeouts);
        if self.config.rto.handshake_sample && self.lifecycle.syn_timeouts == 0 {
            self.rtt.sample(now - self.lifecycle.opened_at);
        }
        self.open(now, explicit_rate);
        if self.lifecycle.syn_timeouts > 0 && self.config.syn_loss_resets_window {
            self.report_congestion(now, Congestion::LostSyn);
        }
    }

    /// Returns the flags AE, CWR and ECE of the SYN.
    pub fn syn_flags(&self) -> EcnFlags {
        match self.config.ecn {
            Ecn::Off => 0,
            Ecn::Classic | Ecn::Dctcp | Ecn::L4s => accurate_ecn::SYN_CLASSIC,
            Ecn::Accurate => accurate_ecn::SYN_ACCURATE,
        }
    }

    /// Handles the flags AE, CWR and ECE of the SYN-ACK, before [`handle_syn_ack`](Self::handle_syn_ack). They decide
    /// about ECN only if the SYN requested accurate ECN.
    pub fn handle_syn_ack_flags(&mut self, flags: EcnFlags) {
        if self.config.ecn == Ecn::Accurate && self.state != State::Established {
            self.features.ecn = accurate_ecn::agreed(flags);
            if self.features.ecn == Ecn::Accurate {
                self.recovery.repairs_mut().marks = Some(Box::new(MarkFeedback::new()));
            }
        }
    }

    /// Returns the ECN in use, which differs from the settings if the receiver does not support accurate ECN.
    pub fn ecn(&self) -> Ecn {
        self.features.ecn
    }

    /// Passes a congestion event to the controller.
    fn report_congestion(&mut self, now: Time, event: Congestion) {
        self.cc.on_congestion(event, &mut context!(self, now));
        self.refresh();
    }

    /// Updates the limits, the timers and the fast paths after a change of the controller's or the connection's state.
    fn refresh(&mut self) {
        self.limits = self.cc.limits();
        self.pacing.may_delay_head = self.limits.pacing.is_some() || self.pacing.late.is_some();
        if self.features.repaces {
            self.repace();
        }
        if self.features.has_auxiliary_timers {
            self.set_auxiliary_timer();
        }
        self.update_fast_paths();
    }

    /// Sets `auxiliary_at` to the earliest of the controller's, RACK-TLP's and the persist timer.
    #[inline(never)]
    fn set_auxiliary_timer(&mut self) {
        if self.features.needs_timer {
            self.timers.controller_at = self.cc.next_timer();
        }
        let of_losses = self.rack.as_ref().map_or(Time::NEVER, |rack| rack.next_timer());
        let of_window =
            self.advertised_window.as_ref().map_or(Time::NEVER, |advertised_window| advertised_window.next_timer());
        self.timers.auxiliary_at = if matches!(self.state, State::Ended(_)) {
            Time::NEVER
        } else {
            self.timers.controller_at.min(of_losses).min(of_window)
        };
    }
}
