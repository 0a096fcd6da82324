//! The end of BBRv3's STARTUP, and DRAIN (draft-ietf-ccwg-bbr-06 sections 5.3.1 and 5.3.2).

use super::signals::RateSample;
use super::{Bbr3, DRAIN_ROUNDS, State};
use crate::contract::{Cx, Phase};
use sparelane_core::Rate;

impl Bbr3 {
    /// Restarts the full-pipe test from `full_bw`.
    pub(super) fn reset_full_bw(&mut self, full_bw: Rate) {
        self.growth.begin(full_bw);
        self.full_bw_now = false;
    }

    /// Section 5.3.1.2: detects a plateau of the bandwidth.
    pub(super) fn check_full_bw(&mut self, sample: &RateSample) {
        if self.full_bw_now || !self.rounds.starts || sample.app_limited {
            return;
        }
        self.full_bw_now = self.growth.has_ended(sample.rate);
        self.full_bw_reached |= self.full_bw_now;
    }

    pub(super) fn check_startup_done(&mut self, sample: &RateSample, phase: Phase) {
        self.check_startup_losses(sample, phase);
        if self.loss_round_start {
            (self.loss_ranges, self.last_lost) = (0, None);
        }
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round;
        }
    }

    /// Section 5.3.1.3: ends STARTUP at persistent losses.
    fn check_startup_losses(&mut self, sample: &RateSample, phase: Phase) {
        if self.state != State::Startup || self.full_bw_reached || phase != Phase::Recovery {
            return;
        }
        // The loss round began with recovery, so its end is a full round trip later.
        let is_lossy = if self.sack {
            self.loss_round_start
                && self.loss_ranges >= self.config.full_loss_count
                && self.is_inflight_too_high(sample.lost_bytes, sample.in_flight_bytes)
        } else {
            self.loss_ranges > 0
        };
        if is_lossy {
            self.leave_by_losses(State::Startup);
            (self.full_bw_now, self.full_bw_reached) = (true, true);
            self.inflight_longterm = Some(self.bdp_multiple(self.bw, 1.0).max(self.inflight_latest));
        }
    }

    /// Section 5.3.2: DRAIN ends when the queue is estimated to be empty, or after three round trips.
    pub(super) fn check_drain_done(&mut self, in_flight_bytes: u64, cx: &mut Cx<'_>) {
        if self.state == State::Drain
            && (in_flight_bytes <= self.inflight(self.bw, 1.0) || self.round > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_down(cx);
        }
    }
}
