//! BBR, version 3: a model of the path sets the pace and the window, as in version 1, with bounds learned from losses.
//!
//! Source: Cardwell, Swett, Beshay, draft-ietf-ccwg-bbr-04; Google's Linux branch v3 where the draft leaves a choice
//! (the end of a probe's samples, the definition of a loss event in STARTUP).
//!
//! BBRv3 needs rate samples and loss events. STARTUP, DRAIN and PROBE_RTT are those of version 1 with other gains.
//! STARTUP also ends if a round trip loses more than 2 % in six events. Between probes the flow goes DOWN to drain its
//! queue and then CRUISEs. After 2 to 3 s, or 63 round trips, or as many round trips as it has segments in flight, it
//! REFILLs the pipe and goes UP.
//!
//! Losses above 2 % in a probe lower the long-term bound of the volume in flight (`inflight_longterm`), to no less than
//! 0.7 of the target. Other losses lower the short-term bounds of the volume and the bandwidth (`inflight_shortterm`,
//! `bw_shortterm`) until the next probe. PROBE_RTT halves the bandwidth-delay product every 5 s.
//!
//! On a path whose round trip is longer than `probe_rtt_interval`, every second round trip is a PROBE_RTT by the draft's
//! own rule (section 5.3.4.3), as in version 1. Raise `probe_rtt_interval` above the round trip there.
//!
//! Differences: ECN, which the draft leaves open, and the allowance for aggregated acknowledgments are left out. The
//! allowance for offload is three segments, because the transport sends single segments. A loss event of STARTUP is an
//! acknowledgment that reveals losses, as in Linux; the draft counts gaps in the sequence. An undo restores the window
//! and drops the short-term bounds; Linux restores the bounds. The bandwidth is a payload rate; the pace includes
//! headers.

mod config;
mod control;
mod cycle;
mod min_rtt;
mod signals;
#[cfg(test)]
mod tests;

pub use config::{Bbr3Config, CONTROLLER};

use crate::bbr_family::{Growth, Pacer, ProbeRtt, Rounds};
use crate::contract::{Ack, Congestion, CongestionControl, Cx, Delivery, Limits, Lost, Needs, Phase, Sent};
use crate::filter::WindowedExtreme;
use crate::pace::{MAX_WINDOW_SEGMENTS, PacketSize};
use sparelane_core::{Dur, Rate, Time};

const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.35;
const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;
const DEFAULT_CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
const PACING_MARGIN: f64 = 0.01;

/// The bandwidth is the largest sample of this probing cycle and of this number of earlier ones.
const BANDWIDTH_CYCLES_BEFORE: u64 = 1;

/// The time for which the smallest round-trip time counts.
const MIN_RTT_WINDOW: Dur = Dur::from_secs(10);

/// The time from the end of a probe to the next, plus a random part of the spread.
const PROBE_WAIT: Dur = Dur::from_secs(2);
const PROBE_WAIT_SPREAD_S: f64 = 1.0;
/// Maximum number of round trips between probes, which leaves Reno its share (section 5.3.3.5.2).
const RENO_ROUNDS: u64 = 63;

/// The minimum window except after a timeout, segments. It exceeds the allowance for offload of three.
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
    state: State,
    cwnd_bytes: u64,
    pacer: Pacer,

    // Bandwidth and delay.
    max_bw: WindowedExtreme<Rate>,
    cycle: u64,
    bw_shortterm: Option<Rate>,
    min_rtt: Option<Dur>,
    min_rtt_at: Time,
    probe_rtt_min: Option<Dur>,
    probe_rtt_min_at: Time,

    // What may be in flight.
    inflight_longterm: Option<u64>,
    inflight_shortterm: Option<u64>,

    rounds: Rounds,

    // Losses, by round trips of their own.
    loss_in_round: bool,
    loss_round_start: bool,
    loss_round_ends_at_bytes: u64,
    loss_events_in_round: u64,
    bw_latest: Rate,
    inflight_latest: u64,
    lost_since_ack: bool,

    // Whether the pipe is full.
    growth: Growth,
    full_bw_now: bool,
    full_bw_reached: bool,

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

    probe_rtt: ProbeRtt,
    idle_restart: bool,
    phase: Phase,
    prior_cwnd_bytes: u64,
}

impl Bbr3 {
    /// Creates a controller for a connection with these packet sizes.
    pub fn new(config: Bbr3Config, packets: PacketSize) -> Bbr3 {
        let mss_bytes = packets.mss_bytes;
        let cwnd_bytes = config.initial_window_segments * mss_bytes;
        Bbr3 {
            config,
            mss_bytes,
            state: State::Startup,
            cwnd_bytes,
            pacer: Pacer::new(PACING_MARGIN, packets, cwnd_bytes, STARTUP_PACING_GAIN),
            max_bw: WindowedExtreme::max(BANDWIDTH_CYCLES_BEFORE),
            cycle: 0,
            bw_shortterm: None,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            probe_rtt_min: None,
            probe_rtt_min_at: Time::ZERO,
            inflight_longterm: None,
            inflight_shortterm: None,
            rounds: Rounds::default(),
            loss_in_round: false,
            loss_round_start: false,
            loss_round_ends_at_bytes: 0,
            loss_events_in_round: 0,
            bw_latest: Rate::default(),
            inflight_latest: 0,
            lost_since_ack: false,
            growth: Growth::default(),
            full_bw_now: false,
            full_bw_reached: false,
            ack_phase: AckPhase::Other,
            probe_ended: Time::ZERO,
            probe_wait: PROBE_WAIT,
            rounds_since_probe: 0,
            bw_probe_samples: false,
            up_rounds: 0,
            up_acked_bytes: 0,
            up_bytes_per_segment: u64::MAX,
            probe_rtt: ProbeRtt::default(),
            idle_restart: false,
            phase: Phase::Open,
            prior_cwnd_bytes: 0,
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

    fn bw(&self) -> Rate {
        self.bw_shortterm.map_or(self.max_bw(), |bw| bw.min(self.max_bw()))
    }

    fn segments(&self, count: u64) -> u64 {
        count * self.mss_bytes
    }

    /// Section 5.6.4.2: returns `gain` bandwidth-delay products.
    fn bdp_multiple(&self, bw: Rate, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return self.segments(self.config.initial_window_segments) };
        let segments = bw.scaled(gain).bytes_in(min_rtt).div_ceil(self.mss_bytes);
        self.segments(segments.min(MAX_WINDOW_SEGMENTS))
    }

    fn quantized(&self, inflight_bytes: u64) -> u64 {
        let least = inflight_bytes.max(self.segments(MIN_WINDOW_SEGMENTS));
        least + if self.state == State::Up { self.segments(2) } else { 0 }
    }

    fn inflight(&self, bw: Rate, gain: f64) -> u64 {
        self.quantized(self.bdp_multiple(bw, gain))
    }

    /// Returns the intended volume in flight: a bandwidth-delay product, or less if congestion cut the window.
    fn target_inflight(&self) -> u64 {
        self.bdp_multiple(self.bw(), 1.0).min(self.cwnd_bytes)
    }

    fn inflight_with_headroom(&self) -> Option<u64> {
        self.inflight_longterm.map(|longterm| {
            let headroom = ((self.config.headroom * longterm as f64) as u64).max(self.mss_bytes);
            longterm.saturating_sub(headroom).max(self.segments(MIN_WINDOW_SEGMENTS))
        })
    }

    /// Section 5.2.3: updates the parts of the model that need a rate sample.
    fn update_model(&mut self, ack: &Ack, sample: &Delivery, rate: Rate, cx: &mut Cx<'_>) {
        self.take_sample(sample, rate);
        if self.loss_round_start {
            self.adapt_shortterm();
        }
        self.check_full_bw(sample, rate);
        self.check_startup_losses(sample, ack.phase);
        if self.loss_round_start {
            self.loss_events_in_round = 0;
        }
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
        }
        if self.state == State::Drain && ack.in_flight_bytes <= self.inflight(self.bw(), 1.0) {
            self.start_down(cx);
        }
        self.update_cycle(ack, sample, rate, cx);
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (rate, sample.delivered_bytes());
        }
    }
}

impl CongestionControl for Bbr3 {
    fn needs(&self) -> Needs {
        Needs { segments: true, ..Needs::default() }
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        (self.min_rtt, self.probe_rtt_min) = (cx.srtt, cx.srtt);
        (self.min_rtt_at, self.probe_rtt_min_at) = (cx.now, cx.now);
        self.set_pace(self.pacing_gain(), cx);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.rounds.deliver(ack.delivered_bytes);
        self.loss_round_start = false;
        self.loss_events_in_round += u64::from(std::mem::take(&mut self.lost_since_ack));
        let rated = ack.delivery.as_ref().and_then(|sample| Some((sample, sample.rate(cx.min_rtt)?)));
        if let Some((sample, rate)) = rated {
            self.update_model(ack, sample, rate, cx);
        }
        self.update_min_rtt(ack, cx);
        self.set_pace(self.pacing_gain(), cx);
        self.set_cwnd(ack);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        match event {
            Congestion::Loss { .. } => self.save_cwnd(),
            Congestion::Timeout { .. } => {
                self.save_cwnd();
                self.phase = Phase::Timeout;
                self.cwnd_bytes = cx.mss_bytes;
            }
            Congestion::Spurious => {
                self.restore_cwnd();
                self.reset_shortterm();
                self.reset_full_bw(Rate::default());
            }
            Congestion::LostSyn => self.cwnd_bytes = cx.mss_bytes,
            Congestion::Marked { .. } => {}
        }
    }

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        // Section 5.4.1: after idle, pace at the bandwidth.
        if sent.in_flight_bytes > sent.bytes.max(cx.mss_bytes) || !sent.app_limited {
            return;
        }
        self.idle_restart = true;
        if self.probes_bandwidth() {
            self.set_pace(1.0, cx);
        } else if self.state == State::ProbeRtt && self.probe_rtt.is_over(cx.now) {
            self.end_probe_rtt(cx);
        }
    }

    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        self.lost_since_ack = true;
        if !std::mem::replace(&mut self.loss_in_round, true) {
            // The first loss starts the loss round: it ends when data sent after this is acknowledged.
            self.loss_round_ends_at_bytes = self.rounds.delivered_bytes;
        }
        // Only the samples of a probe may lower the long-term bound.
        if self.bw_probe_samples && self.is_inflight_too_high(lost.lost_bytes, lost.in_flight_bytes) {
            self.handle_inflight_too_high(self.inflight_at_loss(lost), lost.app_limited, cx);
        }
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.cwnd_bytes, pacing: Some(self.pacer.pace) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.cwnd_bytes as f64);
        put("pace_bps", self.pacer.pace.as_bps() as f64);
        put("bandwidth_bps", self.bw().as_bps() as f64);
        if let Some(bytes) = self.inflight_longterm {
            put("inflight_longterm_bytes", bytes as f64);
        }
        if let Some(min_rtt) = self.min_rtt {
            put("min_rtt_s", min_rtt.as_secs_f64());
        }
    }
}
