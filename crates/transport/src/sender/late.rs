//! Software timers: a segment that waits for its time, by pace or by the controller's own clock, leaves late by a random time.
//!
//! The lateness is exponential; what is due by then leaves back to back, and a pace goes on from where it would be had the
//! timer been exact, so that its rate holds. A retransmission timer is never late.

use super::Sender;
use sparelane_core::{Dur, Stream, Time};

/// The timer of one sender.
#[derive(Debug)]
pub(super) struct LateTimer {
    mean: Dur,
    rng: Stream,
    /// What it was last set to, and when it fires.
    due: Time,
    fires: Time,
}

impl LateTimer {
    /// When it fires, if set to `at`. Setting it to the same instant again changes nothing.
    pub(super) fn set(&mut self, at: Time) -> Time {
        if at != self.due {
            let lateness = self.mean.scaled(-libm::log(self.rng.unit_above_zero()));
            (self.due, self.fires) = (at, at + lateness);
        }
        self.fires
    }

    /// When it fires, if it is late now.
    fn late_until(&self, now: Time) -> Option<Time> {
        (self.due <= now && now < self.fires).then_some(self.fires)
    }
}

impl Sender {
    /// Makes timers of paced segments late by a random time of this mean.
    pub fn set_timer_error(&mut self, mean: Dur, rng: Stream) {
        self.late = Some(Box::new(LateTimer { mean, rng, due: Time::ZERO, fires: Time::ZERO }));
    }

    /// Until when a head that may go now has to wait for a late timer.
    pub(super) fn late_until(&self, now: Time) -> Option<Time> {
        self.late.as_ref()?.late_until(now)
    }

    /// Whether a late timer fires now: what it kept does not count from now.
    pub(super) fn is_catching_up(&self, now: Time) -> bool {
        self.late.as_ref().is_some_and(|timer| timer.fires == now)
    }
}
