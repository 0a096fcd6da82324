//! The schedule of the stall timer checks.

use super::config::WireConfig;
use sparelane_core::Dur;
use std::time::{Duration, Instant};

/// The times at which transfers check their stall timers.
#[derive(Debug)]
pub(super) struct StallSchedule {
    /// The time without progress after which a transfer ends.
    pub(super) timeout: Dur,
    /// The interval between two checks.
    pub(super) interval: Duration,
    next: Instant,
}

impl StallSchedule {
    /// Creates the schedule for the timeout of `config`; the first check is due at once.
    pub(super) fn of(config: &WireConfig) -> StallSchedule {
        StallSchedule { timeout: config.stall_timeout(), interval: config.stall_interval(), next: Instant::now() }
    }

    /// Returns true if a check is due; the next one is due an interval later.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.interval;
        }
        is_due
    }
}
