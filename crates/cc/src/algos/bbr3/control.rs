//! The pace and the window of BBRv3 (draft-ietf-ccwg-bbr-04 section 5.6).

use super::{Bbr3, MIN_WINDOW_SEGMENTS, STARTUP_PACING_GAIN, State};
use crate::contract::{Ack, Cx, Phase};

impl Bbr3 {
    pub(super) fn set_pace(&mut self, gain: f64, cx: &Cx<'_>) {
        self.pacer.learn_rtt(self.cwnd_bytes, STARTUP_PACING_GAIN, cx);
        self.pacer.follow(self.bw(), gain, self.full_bw_reached);
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
        let most = self.inflight(self.bw(), self.cwnd_gain());
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
        // Cruising leaves headroom to other flows; STARTUP and DRAIN have no long-term bound yet.
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
