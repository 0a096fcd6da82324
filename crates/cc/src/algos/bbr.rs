//! BBR, version 1: a model of the path, its bottleneck bandwidth and its propagation delay, sets the pace and the
//! window.
//!
//! Sources: Cardwell, Cheng, Hassas Yeganeh, Jacobson, draft-cardwell-iccrg-bbr-congestion-control-00 (2017); Linux,
//! net/ipv4/tcp_bbr.c, for recovery and restart from idle, which the draft leaves open.
//!
//! BBR needs rate samples (`Ack::delivery`). The bandwidth is the largest delivery rate in ten round trips, the delay
//! the smallest round-trip time in ten seconds. STARTUP doubles the rate every round trip until the bandwidth stops
//! growing. DRAIN removes the queue that STARTUP made. PROBE_BW cycles the pace around the bandwidth. PROBE_RTT lowers
//! the window to four segments for 200 ms if the minimum delay was not seen again for ten seconds. Losses do not lower
//! the rate.
//!
//! Paths whose round trip is longer than `min_rtt_window` are slow under BBR, by the draft's own rule (section 4.3.5,
//! BBRCheckProbeRTT). The minimum delay then expires between any two acknowledgments, so every second round trip is a
//! PROBE_RTT, with four segments in flight. On a round trip of 80 s, a transfer of 1 MB at 1 Mb/s takes 39 round trips;
//! with a `min_rtt_window` of an hour it takes 8, as with NewReno.
//!
//! Differences from the draft and from Linux:
//!
//! - Linux's long-term sampling, which detects token-bucket policers, is left out. Its allowance for aggregated
//!   acknowledgments (2019) is an option (`ack_aggregation`). Neither is in the draft.
//! - The bandwidth is a payload rate, and the pace includes headers, because the transport spaces whole packets.
//! - A simulated host sends single segments, so the window's allowance for offload is three segments. With `quantum`,
//!   for hosts that send chunks, it is three chunks, as in the draft.
//! - The bandwidth filter is exact; Linux keeps three samples.
//! - After a retransmission timeout the window is one segment, as in the draft; Linux keeps the volume in flight plus
//!   one segment.
//!
//! `like = "linux"` gives the window the kernel's headroom: three chunks of up to 64 kB whether or not the host sends
//! chunks, the allowance for aggregated acknowledgments, and an even number of segments. On a short path this amounts
//! to many bandwidth-delay products. PROBE_BW and DRAIN then consider the volume that will be in the network when the
//! next segment departs. Probing for more bandwidth ends two segments or a chunk earlier, and with it the queue that it
//! builds.

mod aggregation;
mod config;
#[cfg(test)]
mod tests;

pub use config::{BbrConfig, CONTROLLER, Quantum};

use crate::bbr_family::{Growth, Pacer, ProbeRtt, Rounds};
use crate::contract::{Ack, Congestion, CongestionControl, Cx, Delivery, Limits, Lost, Needs, Phase, Sent};
use crate::filter::WindowedExtreme;
use crate::pace::{MAX_WINDOW_SEGMENTS, PacketSize};
use aggregation::Aggregation;
use sparelane_core::{Dur, Rate, Time};

/// Pacing gains of PROBE_BW. A phase lasts for a round-trip time.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// The minimum window except after a timeout, and the window of PROBE_RTT, segments.
const MIN_WINDOW_SEGMENTS: u64 = 4;

/// Allowance for segments held back by delayed acknowledgments and offload, in chunks.
const QUANTA: u64 = 3;

/// A chunk is the volume paced in this time, within its bounds (section 4.2.2).
const QUANTUM_TIME: Dur = Dur::from_ms(1);

/// Linux (bbr_tso_segs_goal) shifts the pace by ten bits, limits the chunk to 64 kB minus headers,
const KERNEL_QUANTUM_SHIFT: u32 = 10;
const KERNEL_QUANTUM_BYTES: u64 = 65_215;
/// and sends at least two segments, except at paces below this one.
const KERNEL_LOW_PACE: Rate = Rate::from_bps(1_200_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The BBRv1 controller.
#[derive(Clone, Debug)]
pub struct Bbr {
    config: BbrConfig,
    mss_bytes: u64,
    state: State,
    cwnd_bytes: u64,
    pacer: Pacer,

    // The model of the path.
    bandwidth: WindowedExtreme<Rate>,
    min_rtt: Option<Dur>,
    min_rtt_at: Time,

    rounds: Rounds,
    round: u64,

    // STARTUP.
    growth: Growth,
    pipe_is_full: bool,

    // PROBE_BW.
    cycle_at: usize,
    phase_began: Time,

    probe_rtt: ProbeRtt,
    idle_restart: bool,

    /// The time at which the pace releases the next segment: the kernel's earliest departure time.
    departs_at: Time,

    // Loss recovery.
    phase: Phase,
    prior_cwnd_bytes: u64,
    packet_conservation: bool,
    lost_since_ack_bytes: u64,

    aggregation: Option<Box<Aggregation>>,
}

impl Bbr {
    /// Creates a controller for a connection with these packet sizes.
    pub fn new(config: BbrConfig, packets: PacketSize) -> Bbr {
        let mss_bytes = packets.mss_bytes;
        let cwnd_bytes = config.initial_window_segments * mss_bytes;
        Bbr {
            config,
            mss_bytes,
            state: State::Startup,
            cwnd_bytes,
            pacer: Pacer::new(config.pacing_margin, packets, cwnd_bytes, config.startup_gain),
            bandwidth: WindowedExtreme::max(config.bandwidth_window_rounds),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            rounds: Rounds::default(),
            round: 0,
            growth: Growth::default(),
            pipe_is_full: false,
            cycle_at: 0,
            phase_began: Time::ZERO,
            probe_rtt: ProbeRtt::default(),
            idle_restart: false,
            departs_at: Time::ZERO,
            phase: Phase::Open,
            prior_cwnd_bytes: 0,
            packet_conservation: false,
            lost_since_ack_bytes: 0,
            aggregation: config.ack_aggregation.then(Box::default),
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.startup_gain,
            State::Drain => 1.0 / self.config.startup_gain,
            State::ProbeBw => CYCLE[self.cycle_at],
            State::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => self.config.startup_gain,
            State::ProbeBw => self.config.cwnd_gain,
            State::ProbeRtt => 1.0,
        }
    }

    fn bandwidth(&self) -> Rate {
        self.bandwidth.best().unwrap_or_default()
    }

    /// Returns `gain` bandwidth-delay products plus the allowance for chunks (section 4.2.3.2).
    fn inflight_bytes(&self, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return self.config.initial_window_segments * self.mss_bytes };
        let segments =
            self.bandwidth().scaled(gain).bytes_in(min_rtt).div_ceil(self.mss_bytes) + QUANTA * self.quantum_segments();
        let segments = segments.min(MAX_WINDOW_SEGMENTS);
        let segments = if self.config.quantum == Quantum::Kernel { segments.next_multiple_of(2) } else { segments };
        // Linux: without two more segments, probing a path of few segments would not exceed its product.
        let is_probing_up = self.state == State::ProbeBw && self.cycle_at == 0;
        (segments + if is_probing_up { 2 } else { 0 }) * self.mss_bytes
    }

    fn quantum_segments(&self) -> u64 {
        let pace = self.pacer.pace;
        match self.config.quantum {
            Quantum::Segments(1) => 1,
            Quantum::Segments(largest) => (pace.bytes_in(QUANTUM_TIME) / self.mss_bytes).clamp(1, largest),
            Quantum::Kernel => {
                let bytes = ((pace.as_bps() / 8) >> KERNEL_QUANTUM_SHIFT).min(KERNEL_QUANTUM_BYTES);
                (bytes / self.mss_bytes).max(if pace < KERNEL_LOW_PACE { 1 } else { 2 })
            }
        }
    }

    /// Section 4.1.1: updates round trips and the bandwidth.
    fn take_sample(&mut self, sample: &Delivery, cx: &Cx<'_>) {
        let Some(rate) = sample.rate(cx.min_rtt) else { return };
        if self.rounds.advance(sample) {
            self.round += 1;
            self.packet_conservation = false;
        }
        // A sample limited by the application still counts if it exceeds the estimate.
        if !self.probe_rtt.limits(sample) || rate >= self.bandwidth() {
            self.bandwidth.update(self.round, rate);
        }
    }

    fn note_aggregation(&mut self, delivered_bytes: u64, now: Time) {
        let (bandwidth, cwnd_bytes, mss_bytes) = (self.bandwidth(), self.cwnd_bytes, self.mss_bytes);
        let is_round = self.rounds.starts;
        if let Some(aggregation) = &mut self.aggregation {
            if is_round {
                aggregation.begin_round();
            }
            aggregation.note(delivered_bytes, bandwidth, cwnd_bytes, mss_bytes, now);
        }
    }

    /// Section 4.3.2.2: the pipe is full if three round trips brought at most 25 % growth.
    fn check_full_pipe(&mut self, sample: Option<&Delivery>) {
        let is_limited = sample.is_none_or(|sample| self.probe_rtt.limits(sample));
        if !self.pipe_is_full && self.rounds.starts && !is_limited {
            self.pipe_is_full = self.growth.has_ended(self.bandwidth());
        }
    }

    fn enter_probe_bw(&mut self, cx: &mut Cx<'_>) {
        self.state = State::ProbeBw;
        // Section 4.3.4.2: a random phase, but not the one with gain 0.75.
        self.cycle_at = [0, 2, 3, 4, 5, 6, 7][cx.rng.below(7) as usize];
        self.phase_began = cx.now;
    }

    /// Returns the volume that will be in the network when the pace releases the next segment, as the kernel computes
    /// it (`bbr_packets_in_net_at_edt`): the volume in flight minus the deliveries until then, plus the departing chunk
    /// if the volume in flight is to rise. With other quanta, returns the volume in flight now.
    fn in_network_bytes(&self, in_flight_bytes: u64, now: Time) -> u64 {
        if self.config.quantum != Quantum::Kernel {
            return in_flight_bytes;
        }
        let chunk_bytes = if self.pacing_gain() > 1.0 { self.quantum_segments() * self.mss_bytes } else { 0 };
        let delivered_bytes = self.bandwidth().bytes_in(self.departs_at.saturating_since(now));
        (in_flight_bytes + chunk_bytes).saturating_sub(delivered_bytes / self.mss_bytes * self.mss_bytes)
    }

    /// Section 4.3.4.3: moves to the next phase of the cycle if this one is complete.
    fn advance_cycle(&mut self, prior_in_flight_bytes: u64, now: Time) {
        let lasted_round_trip = self.min_rtt.is_none_or(|min_rtt| now - self.phase_began > min_rtt);
        let gain = self.pacing_gain();
        let in_network_bytes = self.in_network_bytes(prior_in_flight_bytes, now);
        // Probing up lasts until the extra volume is in flight or lost; draining may end early.
        let is_over = if gain > 1.0 {
            let has_filled = in_network_bytes >= self.inflight_bytes(gain);
            lasted_round_trip && (self.lost_since_ack_bytes > 0 || has_filled)
        } else {
            lasted_round_trip || (gain < 1.0 && in_network_bytes <= self.inflight_bytes(1.0))
        };
        if is_over {
            self.cycle_at = (self.cycle_at + 1) % CYCLE.len();
            self.phase_began = now;
        }
    }

    fn check_drain(&mut self, in_flight_bytes: u64, cx: &mut Cx<'_>) {
        if self.state == State::Startup && self.pipe_is_full {
            self.state = State::Drain;
        }
        if self.state == State::Drain && self.in_network_bytes(in_flight_bytes, cx.now) <= self.inflight_bytes(1.0) {
            self.enter_probe_bw(cx);
        }
    }

    /// Sections 4.1.2 and 4.3.5: updates the propagation delay and enters PROBE_RTT if the estimate is old.
    fn update_min_rtt(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        let is_old = cx.now - self.min_rtt_at > self.config.min_rtt_window;
        if let Some(rtt) = ack.rtt.map(|rtt| rtt.max(self.config.rtt_floor))
            && (is_old || self.min_rtt.is_none_or(|min_rtt| rtt < min_rtt))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = cx.now;
        }
        // A flow that was idle has drained its queue already: no PROBE_RTT.
        if is_old && !self.idle_restart && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt.begin(&self.rounds);
        }
        if self.state == State::ProbeRtt {
            let (window_bytes, time) = (MIN_WINDOW_SEGMENTS * self.mss_bytes, self.config.probe_rtt_time);
            if self.probe_rtt.advance(ack, &mut self.rounds, window_bytes, time, cx.now) {
                self.end_probe_rtt(cx);
            }
        }
        if ack.delivered_bytes > 0 {
            self.idle_restart = false;
        }
    }

    fn end_probe_rtt(&mut self, cx: &mut Cx<'_>) {
        self.min_rtt_at = cx.now;
        self.cwnd_bytes = self.cwnd_bytes.max(self.prior_cwnd_bytes);
        if self.pipe_is_full {
            self.enter_probe_bw(cx);
        } else {
            self.state = State::Startup;
        }
    }

    /// Saves the window before an episode of loss or PROBE_RTT, to restore it afterwards.
    fn save_cwnd(&mut self) {
        let keep = self.phase != Phase::Open || self.state == State::ProbeRtt;
        self.prior_cwnd_bytes = if keep { self.prior_cwnd_bytes.max(self.cwnd_bytes) } else { self.cwnd_bytes };
    }

    fn set_pace(&mut self, cx: &Cx<'_>) {
        self.pacer.learn_rtt(self.cwnd_bytes, self.config.startup_gain, cx);
        self.pacer.follow(self.bandwidth(), self.pacing_gain(), self.pipe_is_full);
    }

    /// Section 4.2.3: sets the window.
    fn set_cwnd(&mut self, ack: &Ack) {
        if ack.delivered_bytes > 0 && !self.follow_recovery(ack) {
            let allowance = self.aggregation.as_ref().filter(|_| self.pipe_is_full);
            let allowance = allowance.map_or(0, |aggregation| aggregation.allowance_bytes(self.bandwidth()));
            let target = self.inflight_bytes(self.cwnd_gain()) + allowance;
            let grown = self.cwnd_bytes + ack.delivered_bytes;
            // Before the pipe is full the window only grows.
            if self.pipe_is_full {
                self.cwnd_bytes = grown.min(target);
            } else if self.cwnd_bytes < target
                || self.rounds.delivered_bytes < self.config.initial_window_segments * self.mss_bytes
            {
                self.cwnd_bytes = grown;
            }
            self.cwnd_bytes = self.cwnd_bytes.max(MIN_WINDOW_SEGMENTS * self.mss_bytes);
        }
        if self.state == State::ProbeRtt {
            self.cwnd_bytes = self.cwnd_bytes.min(MIN_WINDOW_SEGMENTS * self.mss_bytes);
        }
    }

    /// Section 4.2.3.4: conserves packets in the first round trip of recovery and restores the window afterwards.
    /// Returns true while this sets the window.
    fn follow_recovery(&mut self, ack: &Ack) -> bool {
        let before = std::mem::replace(&mut self.phase, ack.phase);
        self.cwnd_bytes = self.cwnd_bytes.saturating_sub(self.lost_since_ack_bytes).max(self.mss_bytes);
        let conserved = ack.in_flight_bytes + ack.delivered_bytes;
        if ack.phase == Phase::Recovery && before != Phase::Recovery {
            self.packet_conservation = true;
            self.rounds.begin();
            self.cwnd_bytes = conserved;
        } else if ack.phase == Phase::Open && before != Phase::Open {
            self.packet_conservation = false;
            self.cwnd_bytes = self.cwnd_bytes.max(self.prior_cwnd_bytes);
        }
        if self.packet_conservation {
            self.cwnd_bytes = self.cwnd_bytes.max(conserved);
        }
        self.packet_conservation
    }
}

impl CongestionControl for Bbr {
    fn needs(&self) -> Needs {
        Needs { segments: true, ..Needs::default() }
    }

    fn reacts_to_marks(&self) -> bool {
        false
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.min_rtt = cx.srtt.map(|rtt| rtt.max(self.config.rtt_floor));
        self.min_rtt_at = cx.now;
        self.set_pace(cx);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        // The volume in flight before this acknowledgment and its losses, as in the kernel's rate sample.
        let prior_in_flight_bytes = ack.in_flight_bytes + ack.delivered_bytes + self.lost_since_ack_bytes;
        self.rounds.deliver(ack.delivered_bytes);
        if let Some(sample) = &ack.delivery {
            self.take_sample(sample, cx);
            if self.aggregation.is_some() {
                self.note_aggregation(ack.delivered_bytes, cx.now);
            }
        }
        if self.state == State::ProbeBw {
            self.advance_cycle(prior_in_flight_bytes, cx.now);
        }
        self.check_full_pipe(ack.delivery.as_ref());
        self.check_drain(ack.in_flight_bytes, cx);
        self.update_min_rtt(ack, cx);
        self.set_pace(cx);
        self.set_cwnd(ack);
        self.lost_since_ack_bytes = 0;
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        match event {
            Congestion::Loss { .. } => self.save_cwnd(),
            Congestion::Timeout { .. } => {
                self.save_cwnd();
                self.phase = Phase::Timeout;
                self.packet_conservation = false;
                self.growth.forget_best();
                self.lost_since_ack_bytes = 0;
                self.cwnd_bytes = cx.mss_bytes;
            }
            Congestion::Spurious => {
                self.growth.begin(Rate::default());
                self.cwnd_bytes = self.cwnd_bytes.max(self.prior_cwnd_bytes);
            }
            Congestion::LostSyn => self.cwnd_bytes = cx.mss_bytes,
            Congestion::Marked { .. } => {}
        }
    }

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        self.departs_at = self.departs_at.max(cx.now) + self.pacer.interval();
        // Section 4.3.4.4: after idle, pace at the bandwidth. There is no old queue to drain.
        if sent.in_flight_bytes > sent.bytes.max(cx.mss_bytes) || !sent.app_limited {
            return;
        }
        self.idle_restart = true;
        match self.state {
            State::ProbeBw => self.pacer.set(self.bandwidth(), 1.0),
            State::ProbeRtt if self.probe_rtt.is_over(cx.now) => self.end_probe_rtt(cx),
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    fn on_lost(&mut self, lost: &Lost, _cx: &mut Cx<'_>) {
        self.lost_since_ack_bytes += lost.bytes;
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.cwnd_bytes, pacing: Some(self.pacer.pace) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.cwnd_bytes as f64);
        put("pace_bps", self.pacer.pace.as_bps() as f64);
        put("bandwidth_bps", self.bandwidth().as_bps() as f64);
        if let Some(min_rtt) = self.min_rtt {
            put("min_rtt_s", min_rtt.as_secs_f64());
        }
    }
}
