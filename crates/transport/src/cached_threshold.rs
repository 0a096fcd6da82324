//! The slow-start threshold that a host keeps of its connections to another host.
//!
//! Linux writes the state of a connection that ends to the metrics of its route, unless `tcp_no_metrics_save` is set.
//! Later connections to the same destination start with that threshold: their slow start ends there, however much the
//! path could take. Since Linux 5.6, `tcp_no_ssthresh_metrics_save` disables this part by default.
//!
//! The rules are those of Linux 2.6.32 (`tcp_update_metrics` and `tcp_init_metrics`):
//!
//! - A connection without a round-trip sample, or with a backed-off timer, changes nothing.
//! - A connection in its first slow start raises the threshold to half of its window, but sets none.
//! - A connection in congestion avoidance without losses to repair sets the larger of its threshold and half of its
//!   window. This is the only rule that sets a first threshold or lowers one.
//! - Any other connection raises the threshold to its own, but sets none.
//!
//! Thresholds are in segments, whatever their size. Not modelled: metrics also hold round-trip times, and Linux forgets
//! all of them when it removes a route that was not used for minutes.

use crate::sender::Sender;
use sparelane_cc::Phase;

/// The threshold that connections between two hosts left; empty at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedThreshold {
    segments: Option<u64>,
}

/// The window of a connection that ends, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastWindow {
    cwnd: u64,
    /// The slow-start threshold; `None` in the first slow start.
    ssthresh: Option<u64>,
    /// No loss is being repaired.
    is_open: bool,
}

impl CachedThreshold {
    /// Returns the threshold of a new connection in bytes, or `None` if it is to keep its own.
    pub fn bytes(self, mss_bytes: u64) -> Option<u64> {
        self.segments.map(|segments| segments.saturating_mul(mss_bytes))
    }

    /// Updates the threshold at the end of a connection.
    pub fn add(&mut self, LastWindow { cwnd, ssthresh, is_open }: LastWindow) {
        self.segments = match (ssthresh, self.segments) {
            (None, kept) => kept.map(|kept| kept.max(cwnd / 2)),
            (Some(ssthresh), _) if is_open && cwnd > ssthresh => Some(ssthresh.max(cwnd / 2)),
            (Some(ssthresh), kept) => kept.map(|kept| kept.max(ssthresh)),
        };
    }
}

impl LastWindow {
    /// Returns the window of a connection; `None` if it changes no threshold, as with a controller that has none.
    pub fn of(sender: &Sender) -> Option<LastWindow> {
        let ssthresh_bytes = sender.controller().slow_start_threshold()?;
        if sender.srtt().is_none() || sender.is_backed_off() {
            return None;
        }
        let (cwnd_bytes, mss_bytes) = (sender.controller().limits().cwnd_bytes, sender.mss_bytes());
        Some(LastWindow {
            cwnd: cwnd_bytes / mss_bytes,
            ssthresh: (ssthresh_bytes != u64::MAX).then_some(ssthresh_bytes / mss_bytes),
            is_open: sender.phase() == Phase::Open,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the threshold after connections that end with these windows, thresholds and states.
    fn after(ends: &[(u64, Option<u64>, bool)]) -> Option<u64> {
        let mut cached = CachedThreshold::default();
        ends.iter().for_each(|&(cwnd, ssthresh, is_open)| cached.add(LastWindow { cwnd, ssthresh, is_open }));
        cached.segments
    }

    #[test]
    fn congestion_avoidance_sets_the_larger_of_threshold_and_half_the_window() {
        assert_eq!(after(&[(1000, Some(64), true)]), Some(500));
        assert_eq!(after(&[(100, Some(64), true)]), Some(64));
        // The next connection may lower it again.
        assert_eq!(after(&[(1000, Some(64), true), (12, Some(7), true)]), Some(7));
    }

    #[test]
    fn a_first_slow_start_only_raises_a_threshold() {
        assert_eq!(after(&[(1000, None, true)]), None);
        assert_eq!(after(&[(100, Some(64), true), (100, None, true)]), Some(64));
        assert_eq!(after(&[(100, Some(64), true), (1000, None, true)]), Some(500));
    }

    #[test]
    fn a_connection_below_its_threshold_or_in_recovery_only_raises_one() {
        for (cwnd, is_open) in [(32, true), (64, true), (1000, false)] {
            assert_eq!(after(&[(cwnd, Some(64), is_open)]), None);
            assert_eq!(after(&[(20, Some(10), true), (cwnd, Some(64), is_open)]), Some(64));
            assert_eq!(after(&[(200, Some(100), true), (cwnd, Some(64), is_open)]), Some(100));
        }
    }
}
