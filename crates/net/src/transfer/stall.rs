//! The time for which one side of a transfer waits for the other to make progress.

use sparelane_core::{Dur, Time};

/// The time in which a peer has to offer its first file.
pub const OFFER_TIMEOUT: Dur = Dur::from_secs(120);

/// The default time without progress after which a transfer ends.
pub const STALL_TIMEOUT: Dur = Dur::from_secs(300);

/// Detects a peer that is connected but makes no progress.
#[derive(Debug)]
pub struct StallTimer {
    timeout: Dur,
    progress: u64,
    since: Option<Time>,
}

impl StallTimer {
    /// Creates a timer that expires after `timeout` without progress.
    pub fn new(timeout: Dur) -> StallTimer {
        StallTimer { timeout, progress: 0, since: None }
    }

    /// Updates the timer. `progress` is any number that changes with the peer's progress. The timer restarts if it has
    /// changed, or if this side `is_working` itself. Returns true if the timer has expired.
    pub fn is_expired(&mut self, now: Time, progress: u64, is_working: bool) -> bool {
        if progress != self.progress || is_working {
            (self.progress, self.since) = (progress, None);
        }
        let since = *self.since.get_or_insert(now);
        now.saturating_since(since) >= self.timeout
    }

    /// The time without progress after which the timer expires.
    pub fn timeout(&self) -> Dur {
        self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_expires_without_progress_of_the_peer_or_own_work() {
        let mut timer = StallTimer::new(Dur::from_secs(10));
        let at = |seconds| Time::ZERO + Dur::from_secs(seconds);
        assert!(!timer.is_expired(at(100), 0, false) && !timer.is_expired(at(109), 0, false));
        assert!(!timer.is_expired(at(110), 1, false), "there is progress");
        assert!(!timer.is_expired(at(119), 1, true) && !timer.is_expired(at(128), 1, false), "this side is working");
        assert!(timer.is_expired(at(129), 1, false));
    }
}
