//! BBRv3's estimate of aggregated acknowledgments, `extra_acked` (draft-ietf-ccwg-bbr-06 section 5.5.9).
//!
//! A link or a host may hold acknowledgments back and release them in a bundle. The window must then cover the data
//! that waits for its acknowledgment, in addition to the bandwidth-delay product. The estimate is the largest excess of
//! acknowledged bytes over those that the bandwidth predicts, in the last ten round trips or, in STARTUP, in the present
//! one.

use super::Bbr3;
use crate::filter::WindowedExtreme;
use sparelane_core::{Rate, Time};

/// The filter covers the present round trip and this number of earlier ones.
const ROUNDS_BEFORE: u64 = 9;

/// The excess of acknowledged bytes.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    /// The start of the interval, and the bytes delivered since.
    began: Time,
    delivered_bytes: u64,
    largest: WindowedExtreme<u64>,
    /// The largest excess of the present round trip.
    in_round_bytes: u64,
}

impl Default for Aggregation {
    fn default() -> Aggregation {
        let largest = WindowedExtreme::max(ROUNDS_BEFORE);
        Aggregation { began: Time::ZERO, delivered_bytes: 0, largest, in_round_bytes: 0 }
    }
}

impl Aggregation {
    /// Starts a new interval, at the beginning and after an idle period.
    pub(super) fn restart(&mut self, now: Time) {
        (self.began, self.delivered_bytes) = (now, 0);
    }

    /// Begins round trip `round`. Earlier ones are forgotten if `remembers` is false.
    pub(super) fn begin_round(&mut self, round: u64, remembers: bool) {
        if !remembers {
            self.largest.clear();
        }
        self.in_round_bytes = 0;
        self.largest.advance(round);
    }

    /// Counts newly acknowledged bytes, of which at most a window can be in excess.
    pub(super) fn note(&mut self, acked_bytes: u64, bw: Rate, cwnd_bytes: u64, round: u64, now: Time) {
        let mut expected_bytes = bw.bytes_in(now - self.began);
        // Acknowledgments arrive no faster than expected: a bundle, if any, is over.
        if self.delivered_bytes <= expected_bytes {
            self.restart(now);
            expected_bytes = 0;
        }
        self.delivered_bytes += acked_bytes;
        let excess_bytes = self.delivered_bytes.saturating_sub(expected_bytes).min(cwnd_bytes);
        if excess_bytes > self.in_round_bytes {
            self.in_round_bytes = excess_bytes;
            self.largest.update(round, excess_bytes);
        }
    }

    /// Returns `extra_acked`.
    pub(super) fn excess_bytes(&self) -> u64 {
        self.largest.best().unwrap_or(0)
    }
}

impl Bbr3 {
    pub(super) fn update_aggregation(&mut self, acked_bytes: u64, now: Time) {
        if self.rounds.starts {
            self.aggregation.begin_round(self.round, self.full_bw_reached);
        }
        self.aggregation.note(acked_bytes, self.bw, self.cwnd_bytes, self.round, now);
    }
}
