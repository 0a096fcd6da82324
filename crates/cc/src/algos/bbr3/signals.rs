//! BBRv3's congestion signals: round trips, the bandwidth, the bounds learned from losses, and the full-pipe test
//! (draft-ietf-ccwg-bbr-04 sections 5.3.1, 5.5.1 to 5.5.6 and 5.5.10).

use super::{Bbr3, State};
use crate::contract::{Cx, Delivery, Lost, Phase};
use sparelane_core::Rate;

impl Bbr3 {
    pub(super) fn take_sample(&mut self, sample: &Delivery, rate: Rate) {
        self.bw_latest = self.bw_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered_bytes());
        if sample.prior_delivered_bytes >= self.loss_round_ends_at_bytes {
            self.loss_round_ends_at_bytes = self.rounds.delivered_bytes;
            self.loss_round_start = true;
        }
        if self.rounds.advance(sample) {
            self.rounds_since_probe += 1;
        }
        if !self.probe_rtt.limits(sample) || rate >= self.max_bw() {
            self.max_bw.update(self.cycle, rate);
        }
    }

    /// Lowers the short-term bounds once per round trip with losses, outside probes.
    pub(super) fn adapt_shortterm(&mut self) {
        if self.loss_in_round && !self.is_accelerating() {
            let beta = self.config.beta;
            let bw = self.bw_shortterm.unwrap_or(self.max_bw());
            let inflight = self.inflight_shortterm.unwrap_or(self.cwnd_bytes);
            self.bw_shortterm = Some(self.bw_latest.max(bw.scaled(beta)));
            self.inflight_shortterm = Some(self.inflight_latest.max((inflight as f64 * beta) as u64));
        }
        self.loss_in_round = false;
    }

    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (None, None);
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (Rate::default(), 0);
    }

    pub(super) fn is_inflight_too_high(&self, lost_bytes: u64, in_flight_bytes: u64) -> bool {
        lost_bytes as f64 > in_flight_bytes as f64 * self.config.loss_threshold
    }

    /// Returns the volume in flight at which losses crossed the threshold.
    pub(super) fn inflight_at_loss(&self, lost: &Lost) -> u64 {
        let threshold = self.config.loss_threshold;
        // Solve (lost_before + x) / (before + x) = threshold for the volume x up to the crossing.
        let before = lost.in_flight_bytes.saturating_sub(lost.bytes) as f64;
        let lost_before = lost.lost_bytes.saturating_sub(lost.bytes) as f64;
        let prefix = (threshold * before - lost_before) / (1.0 - threshold);
        (before + prefix.max(0.0)) as u64
    }

    pub(super) fn handle_inflight_too_high(&mut self, in_flight_bytes: u64, app_limited: bool, cx: &mut Cx<'_>) {
        self.bw_probe_samples = false;
        if !app_limited {
            let least = (self.target_inflight() as f64 * self.config.beta) as u64;
            self.inflight_longterm = Some(in_flight_bytes.max(least));
        }
        if self.state == State::Up {
            self.start_down(cx);
        }
    }

    /// Section 5.3.1.3: ends STARTUP at persistent losses.
    pub(super) fn check_startup_losses(&mut self, sample: &Delivery, phase: Phase) {
        if self.full_bw_reached {
            return;
        }
        let is_lossy = self.is_inflight_too_high(sample.lost_bytes, sample.in_flight_bytes);
        if self.loss_round_start
            && phase == Phase::Recovery
            && is_lossy
            && self.loss_events_in_round >= self.config.full_loss_count
        {
            self.full_bw_reached = true;
            self.inflight_longterm = Some(self.bdp_multiple(self.bw(), 1.0).max(self.inflight_latest));
        }
    }

    pub(super) fn reset_full_bw(&mut self, full_bw: Rate) {
        self.growth.begin(full_bw);
        self.full_bw_now = false;
    }

    pub(super) fn check_full_bw(&mut self, sample: &Delivery, rate: Rate) {
        if self.full_bw_now || !self.rounds.starts || self.probe_rtt.limits(sample) {
            return;
        }
        self.full_bw_now = self.growth.has_ended(rate);
        self.full_bw_reached |= self.full_bw_now;
    }
}
