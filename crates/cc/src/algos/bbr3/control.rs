//! The pace and the window of BBRv3 (draft-ietf-ccwg-bbr-06 section 5.6).

use super::{Bbr3, MIN_WINDOW_SEGMENTS, STARTUP_PACING_GAIN, State};
use crate::contract::{Ack, Cx, Phase};
use crate::pace::MAX_WINDOW_SEGMENTS;
use sparelane_core::{Dur, Rate};

/// The send quantum is the volume paced in this time, between two segments and this number of bytes (section 5.6.3).
const QUANTUM_TIME: Dur = Dur::from_ms(1);
const MAX_QUANTUM_BYTES: u64 = 64 * 1024;
const MIN_QUANTUM_SEGMENTS: u64 = 2;

/// The allowance for offload, in send quanta (section 5.5.8.1).
const OFFLOAD_QUANTA: u64 = 3;

impl Bbr3 {
    pub(super) fn set_pace(&mut self, gain: f64, cx: &Cx<'_>) {
        self.pacer.learn_rtt(self.cwnd_bytes, STARTUP_PACING_GAIN, cx);
        self.pacer.follow(self.bw, gain, self.full_bw_reached);
    }

    /// Returns C.send_quantum.
    pub(super) fn send_quantum_bytes(&self) -> u64 {
        let most = self.config.quantum_segments;
        if most == 1 {
            return self.mss_bytes;
        }
        let paced = self.pacer.pace.bytes_in(QUANTUM_TIME).min(MAX_QUANTUM_BYTES).min(self.segments(most));
        paced.max(self.segments(MIN_QUANTUM_SEGMENTS))
    }

    /// BDPMultiple: returns `gain` bandwidth-delay products.
    pub(super) fn bdp_multiple(&self, bw: Rate, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return self.segments(self.config.initial_window_segments) };
        let segments = bw.scaled(gain).bytes_in(min_rtt).div_ceil(self.mss_bytes);
        self.segments(segments.min(MAX_WINDOW_SEGMENTS))
    }

    /// QuantizationBudget: returns `inflight_bytes`, raised to the volume that keeps hosts and receivers busy.
    pub(super) fn quantized(&self, inflight_bytes: u64) -> u64 {
        let offload_bytes = OFFLOAD_QUANTA * self.send_quantum_bytes();
        let least = inflight_bytes.max(offload_bytes).max(self.segments(MIN_WINDOW_SEGMENTS));
        least + if self.state == State::Up { self.segments(2) } else { 0 }
    }

    /// Inflight: returns the volume that `gain` bandwidth-delay products require.
    pub(super) fn inflight(&self, bw: Rate, gain: f64) -> u64 {
        self.quantized(self.bdp_multiple(bw, gain))
    }

    /// Section 5.6.4.2: returns the volume that fills the path, with aggregated acknowledgments.
    pub(super) fn max_inflight(&self) -> u64 {
        self.quantized(self.bdp_multiple(self.bw, self.cwnd_gain()) + self.aggregation.excess_bytes())
    }

    /// Returns the intended volume in flight: a bandwidth-delay product, or less if congestion cut the window.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp_multiple(self.bw, 1.0).min(self.cwnd_bytes)
    }

    pub(super) fn inflight_with_headroom(&self) -> Option<u64> {
        self.inflight_longterm.map(|longterm| {
            let headroom = ((self.config.headroom * longterm as f64) as u64).max(self.mss_bytes);
            longterm.saturating_sub(headroom).max(self.segments(MIN_WINDOW_SEGMENTS))
        })
    }

    pub(super) fn save_cwnd(&mut self) {
        let keep = self.phase != Phase::Open || self.state == State::ProbeRtt;
        self.prior_cwnd_bytes = if keep { self.prior_cwnd_bytes.max(self.cwnd_bytes) } else { self.cwnd_bytes };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd_bytes = self.cwnd_bytes.max(self.prior_cwnd_bytes);
    }

    pub(super) fn set_cwnd(&mut self, ack: &Ack) {
        // Recovery is over: its cut does not outlive it.
        let before = std::mem::replace(&mut self.phase, ack.phase);
        if ack.phase == Phase::Open && before != Phase::Open {
            self.restore_cwnd();
        }
        let most = self.max_inflight();
        let grown = self.cwnd_bytes + ack.delivered_bytes;
        let initial = self.segments(self.config.initial_window_segments);
        // Before the pipe is full the window only grows.
        if self.full_bw_reached {
            self.cwnd_bytes = grown.min(most);
        } else if self.cwnd_bytes < most || self.rounds.delivered_bytes < initial {
            self.cwnd_bytes = grown;
        }
        let least = self.segments(MIN_WINDOW_SEGMENTS);
        self.cwnd_bytes = self.cwnd_bytes.max(least);
        if self.state == State::ProbeRtt {
            self.cwnd_bytes = self.cwnd_bytes.min(self.probe_rtt_cwnd());
        }
        // Cruising leaves headroom to other flows.
        let longterm = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => None,
        };
        for bound in [longterm, self.inflight_shortterm].into_iter().flatten() {
            self.cwnd_bytes = self.cwnd_bytes.min(bound.max(least));
        }
    }
}
