//! BBRv3's congestion signals: round trips, the bandwidth, and the bounds learned from losses (draft-ietf-ccwg-bbr-06
//! sections 5.5.1 to 5.5.6 and 5.5.10).

use super::{Bbr3, State};
use crate::contract::{Ack, Cx, Lost};
use sparelane_core::{Rate, Time};

/// The rate sample of one acknowledgment (RS). All zero if the acknowledgment gives none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateSample {
    /// Zero if the interval is too short for a reliable sample.
    pub(super) rate: Rate,
    pub(super) delivered_bytes: u64,
    /// Bytes in flight when the segment was sent.
    pub(super) in_flight_bytes: u64,
    /// Bytes lost since the segment was sent.
    pub(super) lost_bytes: u64,
    /// True if the application or PROBE_RTT limited the sample.
    pub(super) app_limited: bool,
}

impl Bbr3 {
    /// Reads the rate sample of `ack` and updates the rounds.
    pub(super) fn take_sample(&mut self, ack: &Ack, cx: &Cx<'_>) -> RateSample {
        let newly_lost = std::mem::take(&mut self.newly_lost_bytes);
        self.loss_round_start = false;
        let Some(delivery) = &ack.delivery else { return RateSample::default() };
        if delivery.prior_delivered_bytes >= self.loss_round_ends_at_bytes {
            self.loss_round_ends_at_bytes = self.rounds.delivered_bytes;
            self.loss_round_start = true;
        }
        if self.rounds.advance(delivery) {
            self.round += 1;
            self.rounds_since_probe += 1;
        }
        RateSample {
            rate: delivery.rate(cx.min_rtt).unwrap_or_default(),
            delivered_bytes: delivery.delivered_bytes(),
            in_flight_bytes: delivery.in_flight_bytes,
            lost_bytes: delivery.lost_bytes + if self.newly_lost_at == cx.now { newly_lost } else { 0 },
            app_limited: self.probe_rtt.limits(delivery),
        }
    }

    /// Updates the latest signals, the bandwidth and, at the end of a loss round, the short-term bounds.
    pub(super) fn update_congestion_signals(&mut self, sample: &RateSample) {
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered_bytes);
        if sample.rate > Rate::default() && (!sample.app_limited || sample.rate >= self.max_bw()) {
            self.max_bw.update(self.cycle, sample.rate);
        }
        if self.loss_round_start {
            self.adapt_shortterm();
            self.loss_in_round = false;
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
    }

    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (None, None);
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (Rate::default(), 0);
    }

    pub(super) fn is_inflight_too_high(&self, lost_bytes: u64, in_flight_bytes: u64) -> bool {
        lost_bytes as f64 > in_flight_bytes as f64 * self.config.loss_threshold || (!self.sack && lost_bytes > 0)
    }

    /// Counts a lost segment.
    pub(super) fn note_loss(&mut self, lost: &Lost, now: Time) {
        if self.newly_lost_at != now {
            (self.newly_lost_at, self.newly_lost_bytes) = (now, 0);
            self.before_losses = self.undo_now();
        }
        self.newly_lost_bytes += lost.bytes;
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(lost.bytes);
        if self.last_lost.is_none_or(|last| lost.segment != last + 1) {
            self.loss_ranges += 1;
        }
        self.last_lost = Some(lost.segment);
        if !std::mem::replace(&mut self.loss_in_round, true) {
            // The first loss starts the loss round: it ends when data sent after this is acknowledged.
            self.loss_round_ends_at_bytes = self.rounds.delivered_bytes;
        }
    }

    /// HandleLostPacket: only the samples of a probe may lower the long-term bound.
    pub(super) fn handle_lost_segment(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        if self.bw_probe_samples && self.is_inflight_too_high(lost.lost_bytes, lost.in_flight_bytes) {
            let held_back = self.state == State::ProbeRtt && lost.sent_at >= self.probe_rtt_began;
            self.handle_inflight_too_high(self.inflight_at_loss(lost), lost.app_limited || held_back, cx);
        }
    }

    /// Returns the volume in flight at which losses crossed the threshold.
    fn inflight_at_loss(&self, lost: &Lost) -> u64 {
        let threshold = self.config.loss_threshold;
        // Solve (lost_before + x) / (before + x) = threshold for the volume x up to the crossing.
        let before = lost.in_flight_bytes.saturating_sub(lost.bytes) as f64;
        let lost_before = lost.lost_bytes.saturating_sub(lost.bytes) as f64;
        let prefix = (threshold * before - lost_before) / (1.0 - threshold);
        (before + prefix).max(0.0) as u64
    }

    fn handle_inflight_too_high(&mut self, in_flight_bytes: u64, app_limited: bool, cx: &mut Cx<'_>) {
        self.prev_probe_too_high = true;
        self.bw_probe_samples = false;
        if !app_limited {
            let least = (self.target_inflight() as f64 * self.config.beta) as u64;
            self.inflight_longterm = Some(in_flight_bytes.max(least));
        }
        if self.state == State::Up {
            self.leave_by_losses(State::Up);
            self.start_down(cx);
        }
    }
}
