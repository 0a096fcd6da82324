//! The allowance in flight for aggregated acknowledgments.
//!
//! Source: Linux, net/ipv4/tcp_bbr.c (bbr_update_ack_aggregation, 2019; not in the draft). When a receiver, an
//! interface or a busy host holds acknowledgments back, the volume waiting to be acknowledged can exceed two
//! bandwidth-delay products of a short path. The window, not the path, then sets the rate. The window is therefore
//! enlarged by the largest excess of acknowledged bytes over the bandwidth's prediction in one epoch, over the last
//! five to ten round trips. An epoch ends when no excess is left.

use sparelane_core::{Dur, Rate, Time};

/// Duration in round trips of each of the two halves of the filter of the largest excess.
const ROUNDS: u32 = 5;

/// An epoch ends at this number of segments, because its start may no longer be relevant.
const MOST_SEGMENTS: u64 = 1 << 20;

/// Upper bound of the allowance: the volume that the bandwidth delivers in this time.
const LONGEST: Dur = Dur::from_ms(100);

/// The excess of acknowledged bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    epoch_began: Time,
    epoch_bytes: u64,
    /// The largest excess in the current five round trips and in the five before.
    excess_bytes: [u64; 2],
    rounds: u32,
}

impl Aggregation {
    /// Begins a round trip.
    pub(super) fn begin_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= ROUNDS {
            self.rounds = 0;
            self.excess_bytes = [0, self.excess_bytes[0]];
        }
    }

    /// Counts newly acknowledged bytes.
    pub(super) fn note(&mut self, delivered_bytes: u64, bandwidth: Rate, cwnd_bytes: u64, mss_bytes: u64, now: Time) {
        let mut expected = bandwidth.bytes_in(now - self.epoch_began);
        if self.epoch_bytes <= expected || self.epoch_bytes + delivered_bytes >= MOST_SEGMENTS * mss_bytes {
            (self.epoch_bytes, self.epoch_began, expected) = (0, now, 0);
        }
        self.epoch_bytes += delivered_bytes;
        let excess = self.epoch_bytes.saturating_sub(expected).min(cwnd_bytes);
        self.excess_bytes[0] = self.excess_bytes[0].max(excess);
    }

    /// Returns the bytes by which the window is enlarged.
    pub(super) fn allowance_bytes(&self, bandwidth: Rate) -> u64 {
        self.excess_bytes[0].max(self.excess_bytes[1]).min(bandwidth.bytes_in(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_mbps(80);

    #[test]
    fn the_allowance_is_one_acknowledgment_at_the_rate_of_the_path_and_a_bundle_otherwise() {
        let mut smooth = Aggregation::default();
        let mut bundled = Aggregation::default();
        for at in 1..=100 {
            // 1000 bytes in 100 us is 80 Mb/s.
            let now = Time::ZERO + Dur::from_us(100) * at;
            smooth.note(1000, RATE, 1 << 20, 1000, now);
            if at % 20 == 0 {
                (0..20).for_each(|_| bundled.note(1000, RATE, 1 << 20, 1000, now));
            }
        }
        assert!(smooth.allowance_bytes(RATE) <= 2000, "{smooth:?}");
        assert!((20_000..=21_000).contains(&bundled.allowance_bytes(RATE)), "{bundled:?}");
    }

    #[test]
    fn the_allowance_is_forgotten_after_ten_round_trips_and_never_exceeds_the_window() {
        let mut aggregation = Aggregation::default();
        aggregation.note(50_000, RATE, 30_000, 1000, Time::ZERO + Dur::from_secs(1));
        assert_eq!(aggregation.allowance_bytes(RATE), 30_000);
        (0..5).for_each(|_| aggregation.begin_round());
        assert_eq!(aggregation.allowance_bytes(RATE), 30_000);
        (0..5).for_each(|_| aggregation.begin_round());
        assert_eq!(aggregation.allowance_bytes(RATE), 0);
    }
}
