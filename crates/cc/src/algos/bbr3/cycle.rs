//! BBRv3's cycle of probing for bandwidth: DOWN, CRUISE, REFILL, UP (draft-ietf-ccwg-bbr-04 section 5.3.3).

use super::{AckPhase, Bbr3, PROBE_WAIT, PROBE_WAIT_SPREAD_S, RENO_ROUNDS, State};
use crate::contract::{Ack, Cx, Delivery};
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

    pub(super) fn raise_longterm_slope(&mut self) {
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

    pub(super) fn is_bound_by_longterm(&self, ack: &Ack) -> bool {
        ack.cwnd_limited && self.inflight_longterm.is_some_and(|longterm| self.cwnd_bytes >= longterm)
    }

    pub(super) fn update_cycle(&mut self, ack: &Ack, sample: &Delivery, rate: Rate, cx: &mut Cx<'_>) {
        if !self.full_bw_reached {
            return;
        }
        self.adapt_longterm(ack, sample);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(cx.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(ack.in_flight_bytes) => self.state = State::Cruise,
            State::Refill if self.rounds.starts => self.start_up(rate),
            // The bound, not the path, limits the flow: bandwidth may still grow once the bound is raised.
            State::Up if self.is_bound_by_longterm(ack) => self.reset_full_bw(rate),
            State::Up if self.full_bw_now => self.start_down(cx),
            _ => {}
        }
    }

    pub(super) fn adapt_longterm(&mut self, ack: &Ack, sample: &Delivery) {
        if self.rounds.starts && self.ack_phase == AckPhase::ProbeStarting {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.rounds.starts && self.ack_phase == AckPhase::ProbeStopping {
            // The last samples of the probe have arrived. Linux does this once; the draft leaves it open.
            self.bw_probe_samples = false;
            self.ack_phase = AckPhase::Other;
            if self.probes_bandwidth() && !self.probe_rtt.limits(sample) {
                self.cycle += 1;
            }
        }
        let Some(longterm) = self.inflight_longterm else { return };
        if self.is_inflight_too_high(sample.lost_bytes, sample.in_flight_bytes) {
            return;
        }
        self.inflight_longterm = Some(longterm.max(sample.in_flight_bytes));
        if self.state == State::Up {
            self.raise_longterm(ack);
        }
    }

    pub(super) fn raise_longterm(&mut self, ack: &Ack) {
        if !self.is_bound_by_longterm(ack) {
            return;
        }
        self.up_acked_bytes += ack.delivered_bytes;
        let more = self.up_acked_bytes / self.up_bytes_per_segment;
        self.up_acked_bytes -= more * self.up_bytes_per_segment;
        self.inflight_longterm = self.inflight_longterm.map(|longterm| longterm.saturating_add(self.segments(more)));
        if self.rounds.starts {
            self.raise_longterm_slope();
        }
    }
}
