//! The delays that TCP-LP in Linux 6.12 calculates (tcp_lp.c), which are hardly those of the path.
//!
//! Timestamps are 32 bits of milliseconds: the receiver's begin anywhere, since each connection draws an offset for those that
//! it sends, and so do the sender's, which are the time since it was started. From two acknowledgments with other timestamps
//! Linux guesses the ticks that the receiver's clock has in a second, in whole ones: 1000 times the advance of the one by that
//! of the other. It keeps 63/64 of the old guess, rounded down, and multiplies the receiver's timestamps by 1000 / guess, in
//! whole numbers: by 1 where the guess is 501 to 1000, by 2 below that, and by 0 above. What remains when the sender's is taken
//! off is a delay, modulo 2^32. Eight times its average is kept in 32 bits as well, and overflows where the delay is 2^29 or
//! more: then the average is below the threshold, and the flow never gives way.

use sparelane_core::{Dur, Stream, Time};

/// The clock of timestamps.
pub(super) const TICK: Dur = Dur::from_ms(1);

/// Ticks in a second.
const RESOLUTION: u32 = 1000;

/// What a clock that began with 0 shows.
pub(super) fn ticks(at: Time) -> u32 {
    (at.as_ps() / TICK.as_ps()) as u32
}

/// What a sender knows of both clocks and of delays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    /// What the sender's and the receiver's clock show at time 0.
    begin: (u32, u32),
    /// Timestamps of the acknowledgment before, the sender's and the receiver's; 0 is none.
    reference: (u32, u32),
    /// The receiver's ticks in a second, as guessed; 0 is unknown.
    receiver_hz: u32,
    smoothed_by_8: u32,
    least: u32,
    most: u32,
    /// The largest, before another exceeds it.
    reserved: u32,
}

impl Clocks {
    /// Of two hosts that were started at some time.
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

    /// A segment was sent and arrived at these times.
    pub(super) fn hear(&mut self, sent: Time, arrived: Time) {
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

    /// Whether the smoothed delay shows early congestion, that is this share of the range above the least; if so, the range
    /// begins anew.
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

    /// Segments that are sent at these milliseconds and under way for ten each: which show early congestion.
    fn shown(clocks: &mut Clocks, sent_ms: impl IntoIterator<Item = u64>) -> Vec<bool> {
        let hear = |ms| {
            clocks.hear(at_ms(ms), at_ms(ms + 10));
            clocks.indicate_congestion(15)
        };
        sent_ms.into_iter().map(hear).collect()
    }

    #[test]
    fn the_first_delay_that_can_be_calculated_shows_congestion_and_sets_a_range_to_twice_itself() {
        let mut clocks = Clocks::that_begin(5000, 105_000);
        // The first acknowledgment is a reference for the second, which gives 1000 ticks a second.
        assert_eq!(shown(&mut clocks, [0, 1, 2, 3]), [false, true, false, false]);
        assert_eq!((clocks.receiver_hz, clocks.least, clocks.most), (1000, 100_010, 200_020));
    }

    /// 2^29 ms and more, of which eight times is beyond 32 bits.
    #[test]
    fn most_offsets_are_too_large_for_a_flow_to_ever_give_way() {
        let mut clocks = Clocks::that_begin(5000, 1 << 30);
        assert!(shown(&mut clocks, 0..2000).iter().all(|&shown| !shown));
    }

    /// Segments that leave together and arrive 5 ms apart: the clock seems to tick 5000 times a second, and its timestamps
    /// count for nothing; what is left is 2^32 less the sender's.
    #[test]
    fn a_burst_that_a_queue_spreads_looks_like_another_clock() {
        let mut clocks = Clocks::that_begin(5000, 105_000);
        clocks.hear(at_ms(0), at_ms(10));
        clocks.hear(at_ms(1), at_ms(15));
        assert_eq!((clocks.receiver_hz, clocks.least), (5000, 0u32.wrapping_sub(5001)));
        // A guess of 1000 keeps 63/64 of 5000: 4937 after rounding down.
        clocks.hear(at_ms(2), at_ms(16));
        assert_eq!(clocks.receiver_hz, 4937);
    }
}
