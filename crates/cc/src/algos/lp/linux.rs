//! The delays that TCP-LP in Linux 6.12 computes (tcp_lp.c), which hardly resemble those of the path.
//!
//! Timestamps are 32-bit milliseconds. The receiver's start at a random offset that each connection draws, and the
//! sender's at the time since it was booted. From two acknowledgments with different timestamps Linux estimates the
//! ticks per second of the receiver's clock: 1000 times the advance of one clock over that of the other, in whole
//! ticks. It keeps 63/64 of the old estimate, rounded down, and multiplies the receiver's timestamps by 1000 / estimate
//! in whole numbers: by 1 for estimates of 501 to 1000, by 2 below, and by 0 above. The delay is that minus the
//! sender's timestamp, modulo 2^32. Eight times its average is kept in 32 bits as well and overflows for delays of 2^29
//! or more: the average is then below the threshold, and the flow never backs off.

use sparelane_core::{Dur, Stream, Time};

/// The tick of the timestamps.
pub(super) const TICK: Dur = Dur::from_ms(1);

/// Ticks per second.
const RESOLUTION: u32 = 1000;

/// Returns the reading of a clock that started at 0.
pub(super) fn ticks(at: Time) -> u32 {
    (at.as_ps() / TICK.as_ps()) as u32
}

/// The sender's knowledge of both clocks and of delays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    /// The readings of the sender's and the receiver's clock at time 0.
    begin: (u32, u32),
    /// The timestamps of the previous acknowledgment, the sender's and the receiver's; 0 means unknown.
    reference: (u32, u32),
    /// The estimated ticks per second of the receiver's clock; 0 if unknown.
    receiver_hz: u32,
    smoothed_by_8: u32,
    least: u32,
    most: u32,
    /// The largest delay, until another one exceeds it.
    reserved: u32,
}

impl Clocks {
    /// Creates the clocks of two hosts that were started at random times.
    pub(super) fn drawn(rng: &mut Stream) -> Clocks {
        let mut begin = || rng.below(1 << 32) as u32;
        Clocks::that_begin(begin(), begin())
    }

    fn that_begin(sender: u32, receiver: u32) -> Clocks {
        Clocks {
            begin: (sender, receiver),
            reference: (0, 0),
            receiver_hz: 0,
            smoothed_by_8: 0,
            least: u32::MAX,
            most: 0,
            reserved: 0,
        }
    }

    /// Processes the send and arrival times of a segment.
    pub(super) fn observe(&mut self, sent: Time, arrived: Time) {
        let echoed = self.begin.0.wrapping_add(ticks(sent));
        let received = self.begin.1.wrapping_add(ticks(arrived));
        self.guess(echoed, received);
        if let Some(milliseconds) = RESOLUTION.checked_div(self.receiver_hz) {
            let delay = received.wrapping_mul(milliseconds).wrapping_sub(echoed);
            if delay > 0 {
                self.sample(delay);
            }
        }
    }

    fn guess(&mut self, echoed: u32, received: u32) {
        let (echoed_before, received_before) = std::mem::replace(&mut self.reference, (echoed, received));
        if echoed_before == 0 || received_before == 0 || received == received_before || echoed == echoed_before {
            return;
        }
        let advance = |now: u32, before: u32| now.wrapping_sub(before);
        let found = RESOLUTION.wrapping_mul(advance(received, received_before)) / advance(echoed, echoed_before);
        let old = i64::from(self.receiver_hz) << 6;
        let new = if old > 0 { old + i64::from(found) - (old >> 6) } else { i64::from(found) << 6 };
        self.receiver_hz = (new >> 6) as u32;
    }

    fn sample(&mut self, delay: u32) {
        self.least = self.least.min(delay);
        if delay > self.most {
            if delay > self.reserved {
                self.most = if self.reserved == 0 { delay } else { self.reserved };
                self.reserved = delay;
            } else {
                self.most = delay;
            }
        }
        self.smoothed_by_8 = if self.smoothed_by_8 == 0 {
            delay << 3
        } else {
            self.smoothed_by_8.wrapping_add(delay).wrapping_sub(self.smoothed_by_8 >> 3)
        };
    }

    /// Returns true if the smoothed delay shows early congestion, which begins at this share of the range above the
    /// minimum. The range then restarts.
    pub(super) fn indicate_congestion(&mut self, threshold_percent: u32) -> bool {
        let range = self.most.wrapping_sub(self.least);
        let threshold = self.least.wrapping_add(threshold_percent.wrapping_mul(range) / 100);
        if self.smoothed_by_8 >> 3 < threshold {
            return false;
        }
        self.least = self.smoothed_by_8 >> 3;
        self.most = self.smoothed_by_8 >> 2;
        self.reserved = self.most;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    /// Returns which of the segments sent at these milliseconds, each 10 ms on the way, show early congestion.
    fn shown(clocks: &mut Clocks, sent_ms: impl IntoIterator<Item = u64>) -> Vec<bool> {
        let observe = |ms| {
            clocks.observe(at_ms(ms), at_ms(ms + 10));
            clocks.indicate_congestion(15)
        };
        sent_ms.into_iter().map(observe).collect()
    }

    #[test]
    fn the_first_delay_that_can_be_calculated_shows_congestion_and_sets_a_range_to_twice_itself() {
        let mut clocks = Clocks::that_begin(5000, 105_000);
        // The first acknowledgment is the reference for the second, which gives 1000 ticks per second.
        assert_eq!(shown(&mut clocks, [0, 1, 2, 3]), [false, true, false, false]);
        assert_eq!((clocks.receiver_hz, clocks.least, clocks.most), (1000, 100_010, 200_020));
    }

    /// Delays from 2^29 ms on, eight times which exceeds 32 bits.
    #[test]
    fn most_offsets_are_too_large_for_a_flow_to_ever_back_off() {
        let mut clocks = Clocks::that_begin(5000, 1 << 30);
        assert!(shown(&mut clocks, 0..2000).iter().all(|&shown| !shown));
    }

    /// Segments that leave together and arrive 5 ms apart: the clock seems to tick 5000 times per second, and its
    /// timestamps count as zero. What remains is 2^32 minus the sender's timestamp.
    #[test]
    fn a_burst_that_a_queue_spreads_looks_like_another_clock() {
        let mut clocks = Clocks::that_begin(5000, 105_000);
        clocks.observe(at_ms(0), at_ms(10));
        clocks.observe(at_ms(1), at_ms(15));
        assert_eq!((clocks.receiver_hz, clocks.least), (5000, 0u32.wrapping_sub(5001)));
        // After an estimate of 5000, 63/64 of it remain at 1000: 4937 after rounding down.
        clocks.observe(at_ms(2), at_ms(16));
        assert_eq!(clocks.receiver_hz, 4937);
    }
}
