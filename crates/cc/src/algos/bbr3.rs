//! BBR, version 3: a model of the path sets the pace and the window, as in version 1, with bounds learned from losses.
//!
//! Source: Cardwell, Swett, Beshay, draft-ietf-ccwg-bbr-06. Section numbers and names of variables are those of the
//! draft.
//!
//! BBRv3 needs rate samples and loss events. STARTUP doubles the rate every round trip until the bandwidth stops growing
//! or a round trip in recovery loses more than 2 % in six ranges. DRAIN removes the queue, in at most three round trips.
//! Between probes the flow goes DOWN to drain its queue and then CRUISEs. After 2 to 3 s, or 63 round trips, or as many
//! round trips as it has segments in flight, it REFILLs the pipe and goes UP. PROBE_RTT halves the bandwidth-delay
//! product every 5 s.
//!
//! Losses above 2 % in a probe lower the long-term bound of the volume in flight (`inflight_longterm`), to no less than
//! 0.7 of the target. The next probe is then precautionary: it ends as soon as the volume in flight reaches the bound.
//! Losses outside probes lower the short-term bounds of the volume and the bandwidth (`inflight_shortterm`,
//! `bw_shortterm`) until the next probe. The window allows for aggregated acknowledgments (`extra_acked`). If an episode
//! of recovery proves spurious, the bounds and the state before it return.
//!
//! On a path whose round trip is longer than `probe_rtt_interval`, every second round trip is a PROBE_RTT by the draft's
//! own rule, as in version 1. Raise `probe_rtt_interval` above the round trip there.
//!
//! The draft has several readings in these points:
//!
//! - The long-term bound does not apply in DRAIN, as in the pseudocode. The draft's table of states applies it there.
//! - A filter of n round trips or cycles covers the present one and the n - 1 before it.
//! - DOWN ends at one bandwidth-delay product of `max_bw`, as in the pseudocode. The text has the product of `bw`.
//! - A loss that ends STARTUP sets `full_bw_now` too, as in the draft's appendix of tests.
//!
//! Differences from the draft:
//!
//! - The send quantum is one segment, which the draft permits, because a simulated host sends single segments. The
//!   allowance for offload is then three segments, below the minimum window of four. With `quantum`, for hosts that send
//!   chunks, the send quantum follows the draft's rule.
//! - The state for an undo is saved once per episode of recovery, before the losses that begin it. This is what the text
//!   says. The pseudocode saves it again at the first loss of each round trip. A probe that losses end forgets that it
//!   has seen a loss, so the next loss of the same episode would erase the state to which the undo returns.
//! - The count of acknowledged bytes for the aggregation restarts after an idle period, as in Linux. The pseudocode
//!   restarts only the time, so that earlier deliveries would count as aggregation.
//! - The controller learns of a segment after its transmission, so the pace after an idle period applies from the second
//!   segment on.
//! - The window counts as used up while the last segment that filled it is in flight. The transport's own flag does not
//!   show this for a sender that paces.
//! - A retransmission timeout never raises the window, even if more than the window is in flight.
//! - A loss round begins with the bytes delivered before the acknowledgment that reveals the first loss.
//! - Volumes of the model are rounded up to whole segments, because the transport counts in segments.
//! - The bandwidth is a payload rate; the pace includes headers.
//! - Marks of ECN have no effect. Section 3.7 of the draft specifies no response to marks of classic ECN, ABE or L4S, but
//!   demands that a sender of ECN-capable packets treats marks as congestion. Section 3.8 leaves the response to future
//!   work. Google's code for Linux has one of its own, which is not in the draft. Use `bbr3` without ECN.

mod aggregation;
mod config;
mod control;
mod cycle;
mod min_rtt;
mod signals;
mod startup;
#[cfg(test)]
mod tests;
mod undo;

pub use config::{Bbr3Config, CONTROLLER};

use crate::bbr_family::{Growth, Pacer, ProbeRtt, Rounds};
use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Phase, Sent};
use crate::filter::WindowedExtreme;
use crate::pace::PacketSize;
use aggregation::Aggregation;
use signals::RateSample;
use sparelane_core::{Dur, Rate, Seq, Time};
use undo::Undo;

const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;
const DEFAULT_CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
const PACING_MARGIN: f64 = 0.01;

/// DRAIN ends when more than this number of round trips have begun.
const DRAIN_ROUNDS: u64 = 3;

/// The bandwidth is the largest sample of this probing cycle and of this number of earlier ones.
const BANDWIDTH_CYCLES_BEFORE: u64 = 1;

/// The time for which the smallest round-trip time counts.
const MIN_RTT_WINDOW: Dur = Dur::from_secs(10);

/// The time from the end of a probe to the next, plus a random part of the spread.
const PROBE_WAIT: Dur = Dur::from_secs(2);
const PROBE_WAIT_SPREAD_S: f64 = 1.0;
/// Maximum number of round trips between probes, which leaves Reno its share (T_reno_bound).
const RENO_ROUNDS: u64 = 63;

/// The minimum window except after a timeout, segments (MinPipeCwnd).
const MIN_WINDOW_SEGMENTS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// The part of the probing cycle to which arriving acknowledgments belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Other,
    /// Acknowledgments of segments sent before the probe, while the pipe is refilled.
    Refilling,
    /// Acknowledgments of segments sent before the probe, after it has begun.
    ProbeStarting,
    /// Acknowledgments of the probe.
    ProbeFeedback,
    /// Acknowledgments of the probe after its end.
    ProbeStopping,
}

/// The BBRv3 controller. Bounds that are infinite in the draft are `None`.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    config: Bbr3Config,
    mss_bytes: u64,
    /// True if the transport can detect several losses per round trip (C.has_selective_acks).
    sack: bool,
    state: State,
    cwnd_bytes: u64,
    pacer: Pacer,

    // Bandwidth and delay.
    max_bw: WindowedExtreme<Rate>,
    cycle: u64,
    bw_shortterm: Option<Rate>,
    /// The bandwidth of the model at the end of the last acknowledgment: the smaller of `max_bw` and `bw_shortterm`.
    bw: Rate,
    min_rtt: Option<Dur>,
    min_rtt_at: Time,
    probe_rtt_min: Option<Dur>,
    probe_rtt_min_at: Time,

    // What may be in flight.
    inflight_longterm: Option<u64>,
    inflight_shortterm: Option<u64>,
    aggregation: Aggregation,

    rounds: Rounds,
    round: u64,
    /// The window was full when the segments in flight until this delivered count were sent.
    window_full_until_bytes: u64,
    in_flight_bytes: u64,

    // Losses, by round trips of their own.
    loss_in_round: bool,
    loss_round_start: bool,
    loss_round_ends_at_bytes: u64,
    /// Ranges of consecutive segments lost in this loss round, and the last segment of the last one.
    loss_ranges: u64,
    last_lost: Option<Seq>,
    bw_latest: Rate,
    inflight_latest: u64,
    /// Bytes lost at this acknowledgment. The rate sample was taken before.
    newly_lost_bytes: u64,
    newly_lost_at: Time,

    // Whether the pipe is full.
    growth: Growth,
    full_bw_now: bool,
    full_bw_reached: bool,
    drain_start_round: u64,

    // The cycle of probing.
    ack_phase: AckPhase,
    probe_ended: Time,
    probe_wait: Dur,
    rounds_since_probe: u64,
    /// True until this probe has reacted to losses.
    bw_probe_samples: bool,
    up_rounds: u32,
    up_acked_bytes: u64,
    /// Acknowledged bytes per additional segment in flight.
    up_bytes_per_segment: u64,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,

    probe_rtt: ProbeRtt,
    probe_rtt_began: Time,
    probe_rtt_expired: bool,
    idle_restart: bool,
    phase: Phase,
    prior_cwnd_bytes: u64,
    undo: Undo,
    /// The state before the losses at `newly_lost_at`.
    before_losses: Undo,
}

impl Bbr3 {
    /// Creates a controller for a connection with these packet sizes. `sack` is false if the transport detects only one
    /// loss per round trip.
    pub fn new(config: Bbr3Config, packets: PacketSize, sack: bool) -> Bbr3 {
        let mss_bytes = packets.mss_bytes;
        let cwnd_bytes = config.initial_window_segments * mss_bytes;
        Bbr3 {
            config,
            mss_bytes,
            sack,
            state: State::Startup,
            cwnd_bytes,
            pacer: Pacer::new(PACING_MARGIN, packets, cwnd_bytes, STARTUP_PACING_GAIN),
            max_bw: WindowedExtreme::max(BANDWIDTH_CYCLES_BEFORE),
            cycle: 0,
            bw_shortterm: None,
            bw: Rate::default(),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            probe_rtt_min: None,
            probe_rtt_min_at: Time::ZERO,
            inflight_longterm: None,
            inflight_shortterm: None,
            aggregation: Aggregation::default(),
            rounds: Rounds::default(),
            round: 0,
            window_full_until_bytes: 0,
            in_flight_bytes: 0,
            loss_in_round: false,
            loss_round_start: false,
            loss_round_ends_at_bytes: 0,
            loss_ranges: 0,
            last_lost: None,
            bw_latest: Rate::default(),
            inflight_latest: 0,
            newly_lost_bytes: 0,
            newly_lost_at: Time::ZERO,
            growth: Growth::default(),
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            ack_phase: AckPhase::Other,
            probe_ended: Time::ZERO,
            probe_wait: PROBE_WAIT,
            rounds_since_probe: 0,
            bw_probe_samples: false,
            up_rounds: 0,
            up_acked_bytes: 0,
            up_bytes_per_segment: u64::MAX,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            probe_rtt: ProbeRtt::default(),
            probe_rtt_began: Time::ZERO,
            probe_rtt_expired: false,
            idle_restart: false,
            phase: Phase::Open,
            prior_cwnd_bytes: 0,
            undo: Undo::default(),
            before_losses: Undo::default(),
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain => DRAIN_PACING_GAIN,
            State::Down => DOWN_PACING_GAIN,
            State::Up => UP_PACING_GAIN,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => UP_CWND_GAIN,
            State::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => DEFAULT_CWND_GAIN,
        }
    }

    fn probes_bandwidth(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    fn is_accelerating(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    fn max_bw(&self) -> Rate {
        self.max_bw.best().unwrap_or_default()
    }

    fn segments(&self, count: u64) -> u64 {
        count * self.mss_bytes
    }

    /// UpdateModelAndState: the steps of the model and of the states, in the draft's order.
    fn update_model(&mut self, ack: &Ack, sample: &RateSample, cx: &mut Cx<'_>) {
        self.update_congestion_signals(sample);
        if ack.delivered_bytes > 0 {
            self.update_aggregation(ack.delivered_bytes, cx.now);
        }
        self.check_full_bw(sample);
        self.check_startup_done(sample, ack.phase);
        self.check_drain_done(ack.in_flight_bytes, cx);
        if ack.delivered_bytes > 0 {
            self.update_cycle(ack, sample, cx);
        }
        self.update_min_rtt(ack, cx);
        self.check_probe_rtt(ack, cx);
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (sample.rate, sample.delivered_bytes);
        }
        self.bw = self.bw_shortterm.map_or(self.max_bw(), |bw| bw.min(self.max_bw()));
    }
}

impl CongestionControl for Bbr3 {
    fn needs(&self) -> Needs {
        Needs { segments: true, ..Needs::default() }
    }

    fn reacts_to_marks(&self) -> bool {
        false
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        (self.min_rtt, self.probe_rtt_min) = (cx.srtt, cx.srtt);
        (self.min_rtt_at, self.probe_rtt_min_at) = (cx.now, cx.now);
        self.aggregation.restart(cx.now);
        self.set_pace(self.pacing_gain(), cx);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.rounds.deliver(ack.delivered_bytes);
        self.in_flight_bytes = ack.in_flight_bytes;
        let sample = self.take_sample(ack, cx);
        self.update_model(ack, &sample, cx);
        self.set_pace(self.pacing_gain(), cx);
        self.set_cwnd(ack);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        match event {
            Congestion::Loss { .. } => {
                self.save_cwnd();
                self.save_undo(cx.now);
            }
            Congestion::Timeout { .. } => {
                self.save_cwnd();
                self.save_undo(cx.now);
                self.phase = Phase::Timeout;
                // Room for one segment beyond those that the transport does not yet presume lost.
                self.cwnd_bytes = (self.in_flight_bytes + cx.mss_bytes).min(self.cwnd_bytes);
            }
            Congestion::Spurious => self.undo_losses(),
            Congestion::LostSyn => self.cwnd_bytes = cx.mss_bytes,
            Congestion::Marked { .. } => {}
        }
    }

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        self.in_flight_bytes = sent.in_flight_bytes;
        if sent.in_flight_bytes + self.send_quantum_bytes() > self.cwnd_bytes {
            self.window_full_until_bytes = self.rounds.delivered_bytes + sent.in_flight_bytes;
        }
        // Section 5.4.1: after idle, pace at the bandwidth.
        if sent.in_flight_bytes > sent.bytes.max(cx.mss_bytes) || !sent.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(cx.now);
        if self.probes_bandwidth() {
            self.set_pace(1.0, cx);
        } else if self.state == State::ProbeRtt && self.probe_rtt.is_over(cx.now) {
            self.end_probe_rtt(cx);
        }
    }

    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        self.note_loss(lost, cx.now);
        self.handle_lost_segment(lost, cx);
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.cwnd_bytes, pacing: Some(self.pacer.pace) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.cwnd_bytes as f64);
        put("pace_bps", self.pacer.pace.as_bps() as f64);
        put("bandwidth_bps", self.bw.as_bps() as f64);
        put("max_bandwidth_bps", self.max_bw().as_bps() as f64);
        put("pacing_gain", self.pacing_gain());
        put("cwnd_gain", self.cwnd_gain());
        put("extra_acked_bytes", self.aggregation.excess_bytes() as f64);
        if let Some(bw) = self.bw_shortterm {
            put("bw_shortterm_bps", bw.as_bps() as f64);
        }
        if let Some(bytes) = self.inflight_shortterm {
            put("inflight_shortterm_bytes", bytes as f64);
        }
        if let Some(bytes) = self.inflight_longterm {
            put("inflight_longterm_bytes", bytes as f64);
        }
        if let Some(min_rtt) = self.min_rtt {
            put("min_rtt_s", min_rtt.as_secs_f64());
        }
    }
}
