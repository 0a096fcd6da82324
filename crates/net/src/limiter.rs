//! An upper limit on the rate at which a host sends.
//!
//! The limit applies below the controllers, like a slow interface: the host asks for the next datagram
//! only when the limit allows one. The controllers then share the limited rate by their own laws.

use sparelane_core::{Dur, Rate, Time};

/// Unused time counts up to this much, so that a host that wakes late keeps the rate.
const MAX_CREDIT: Dur = Dur::from_ms(5);

/// The longest time that a batch of datagrams may take at the limit.
const BATCH_TIME: Dur = Dur::from_ms(2);

/// Decides when the next datagram may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limiter {
    rate: Rate,
    next: Time,
}

impl Limiter {
    /// Creates a limiter that allows a datagram at once.
    pub(crate) fn new(rate: Rate) -> Limiter {
        Limiter { rate, next: Time::ZERO }
    }

    /// The time from which a datagram may leave.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// Counts a datagram that has left.
    pub(crate) fn note(&mut self, now: Time, bytes: usize) {
        let earliest = Time::ZERO + now.saturating_since(Time::ZERO).saturating_sub(MAX_CREDIT);
        self.next = self.next.max(earliest) + self.rate.time_for(bytes as u64);
    }

    /// The number of datagrams of `bytes` in a batch, at most `most`, so that the rate holds over short times too.
    pub(crate) fn batch(rate: Rate, bytes: u16, most: usize) -> usize {
        let each_ps = rate.time_for(bytes.into()).as_ps().max(1);
        ((BATCH_TIME.as_ps() / each_ps) as usize).clamp(1, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_holds_over_any_time_and_late_wake_ups_are_made_up_for() {
        let rate = Rate::from_mbps(8);
        let mut limiter = Limiter::new(rate);
        let mut now = Time::ZERO + Dur::from_secs(1);
        let (begin, mut sent_bytes) = (now, 0_u64);
        // The host wakes 0.3 ms late each time.
        while now < begin + Dur::from_secs(2) {
            if limiter.next() <= now {
                limiter.note(now, 1000);
                sent_bytes += 1000;
            } else {
                now = limiter.next() + Dur::from_us(300);
            }
        }
        // 8 Mb/s are 1 MB a second; the first 5 ms may be credit.
        assert!((2_000_000..=2_007_000).contains(&sent_bytes), "{sent_bytes}");
        // An idle second does not count.
        now += Dur::from_secs(1);
        limiter.note(now, 1000);
        assert!(limiter.next() + Dur::from_ms(4) >= now && limiter.next() <= now);
    }

    #[test]
    fn batches_are_small_at_low_rates() {
        let batch = |mbps| Limiter::batch(Rate::from_mbps(mbps), 1452, 40);
        assert_eq!((batch(1), batch(10), batch(100), batch(10_000)), (1, 1, 17, 40));
    }
}
