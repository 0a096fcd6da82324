//! BBRv3's cycle of probing for bandwidth: DOWN, CRUISE, REFILL, UP (draft-ietf-ccwg-bbr-06 section 5.3.3).

use super::signals::RateSample;
use super::{AckPhase, Bbr3, PROBE_WAIT, PROBE_WAIT_SPREAD_S, RENO_ROUNDS, State};
use crate::contract::{Ack, Cx};
use sparelane_core::{Dur, Rate, Time};

impl Bbr3 {
    pub(super) fn start_down(&mut self, cx: &mut Cx<'_>) {
        self.reset_congestion_signals();
        // The bound does not rise until the next probe sets a slope.
        self.up_bytes_per_segment = u64::MAX;
        // A random wait keeps flows from probing in step.
        self.rounds_since_probe = cx.rng.below(2);
        self.probe_wait = PROBE_WAIT + Dur::from_secs_f64(PROBE_WAIT_SPREAD_S * cx.rng.unit());
        self.probe_ended = cx.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.rounds.begin();
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.reset_shortterm();
        (self.up_rounds, self.up_acked_bytes) = (0, 0);
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.rounds.begin();
        self.state = State::Refill;
    }

    pub(super) fn start_up(&mut self, rate: Rate) {
        self.bw_probe_samples = true;
        self.ack_phase = AckPhase::ProbeStarting;
        self.rounds.begin();
        self.reset_full_bw(rate);
        self.state = State::Up;
        self.raise_longterm_slope();
    }

    fn raise_longterm_slope(&mut self) {
        self.up_bytes_per_segment = (self.cwnd_bytes >> self.up_rounds).max(self.mss_bytes);
        self.up_rounds = (self.up_rounds + 1).min(30);
    }

    pub(super) fn is_time_to_probe(&self, now: Time) -> bool {
        let reno_rounds = (self.target_inflight() / self.mss_bytes).min(RENO_ROUNDS);
        now > self.probe_ended + self.probe_wait || self.rounds_since_probe >= reno_rounds
    }

    pub(super) fn is_time_to_cruise(&self, in_flight_bytes: u64) -> bool {
        self.inflight_with_headroom().is_none_or(|bound| in_flight_bytes <= bound)
            && in_flight_bytes <= self.inflight(self.max_bw(), 1.0)
    }

    /// Returns true if a segment filled the window in the last round trip (C.is_cwnd_limited).
    fn is_cwnd_limited(&self) -> bool {
        self.rounds.delivered_bytes <= self.window_full_until_bytes
    }

    fn is_bound_by_longterm(&self) -> bool {
        self.is_cwnd_limited() && self.inflight_longterm.is_some_and(|longterm| self.cwnd_bytes >= longterm)
    }

    pub(super) fn update_cycle(&mut self, ack: &Ack, sample: &RateSample, cx: &mut Cx<'_>) {
        if !self.full_bw_reached || self.adapt_longterm(ack, sample) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(cx.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(ack.in_flight_bytes) => self.state = State::Cruise,
            State::Refill if self.rounds.starts => self.start_up(sample.rate),
            State::Up => self.check_up_done(ack.in_flight_bytes, sample.rate, cx),
            _ => {}
        }
    }

    fn check_up_done(&mut self, in_flight_bytes: u64, rate: Rate, cx: &mut Cx<'_>) {
        if self.is_time_to_go_down(in_flight_bytes, rate) {
            // The probe ends without too much loss so far.
            self.prev_probe_too_high = false;
            self.start_down(cx);
        }
    }

    fn is_time_to_go_down(&mut self, in_flight_bytes: u64, rate: Rate) -> bool {
        // The last probe lost too much at this volume: do not hold it for a round trip.
        if self.prev_probe_too_high && self.inflight_longterm.is_some_and(|longterm| in_flight_bytes >= longterm) {
            self.prev_probe_precautionary = true;
            return true;
        }
        // The bound, not the path, limits the flow: bandwidth may still grow once the bound is raised.
        if self.is_bound_by_longterm() {
            self.reset_full_bw(rate);
            return false;
        }
        self.full_bw_now
    }

    /// AdaptLongTermModel: returns true if it has changed the state.
    fn adapt_longterm(&mut self, ack: &Ack, sample: &RateSample) -> bool {
        if self.rounds.starts && self.ack_phase == AckPhase::ProbeStarting {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.rounds.starts && self.ack_phase == AckPhase::ProbeStopping {
            // The last samples of the probe have arrived.
            self.bw_probe_samples = false;
            self.ack_phase = AckPhase::Other;
            if self.probes_bandwidth() {
                if !sample.app_limited {
                    self.cycle += 1;
                }
                // The bound of the last probe has proved safe: probe again at once, beyond it.
                if self.prev_probe_precautionary && !self.prev_probe_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        let Some(longterm) = self.inflight_longterm else { return false };
        if !self.is_inflight_too_high(sample.lost_bytes, sample.in_flight_bytes) {
            self.inflight_longterm = Some(longterm.max(sample.in_flight_bytes));
            if self.state == State::Up {
                self.raise_longterm(ack.delivered_bytes);
            }
        }
        false
    }

    pub(super) fn raise_longterm(&mut self, acked_bytes: u64) {
        if !self.is_bound_by_longterm() {
            return;
        }
        self.up_acked_bytes += acked_bytes;
        let more = self.up_acked_bytes / self.up_bytes_per_segment;
        self.up_acked_bytes -= more * self.up_bytes_per_segment;
        self.inflight_longterm = self.inflight_longterm.map(|longterm| longterm.saturating_add(self.segments(more)));
        if self.rounds.starts {
            self.raise_longterm_slope();
        }
    }
}
