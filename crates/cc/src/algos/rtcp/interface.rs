//! Estimates how long segments waited in the queue of the sender's own interface.
//!
//! RTCP counts that queue as Q, and the same wait would count again in D, the rise of the round-trip time. A
//! window-based sender sends when an acknowledgment arrives, and the acknowledgment event carries the interface's
//! backlog at that time. So a segment waited for that backlog, and for the segments sent before it at the same time,
//! at the line rate. Acknowledgments arrive in sending order, which tells the number of those segments. After a loss
//! the wait is underestimated.

use sparelane_core::{Dur, Rate, Time};
use std::collections::VecDeque;

/// The maximum number of recorded times, normally those of one round trip. More accumulate only without round-trip
/// samples, as in a long recovery without timestamps.
const MAX_RECORDS: usize = 1 << 16;

/// The times at which segments may have been sent, with the backlog at each.
#[derive(Clone, Debug)]
pub struct OwnQueue {
    line_rate: Rate,
    records: VecDeque<Departures>,
}

#[derive(Clone, Copy, Debug)]
struct Departures {
    at: Time,
    /// The bytes ahead of this time's next segment to be acknowledged.
    ahead_bytes: u64,
}

impl OwnQueue {
    /// Creates a queue without records.
    pub fn new(line_rate: Rate) -> OwnQueue {
        OwnQueue { line_rate, records: VecDeque::new() }
    }

    /// Records the backlog at `now`, before the segments sent at this time join it.
    pub fn record(&mut self, now: Time, backlog_bytes: u64) {
        if self.records.len() == MAX_RECORDS {
            self.records.pop_front();
        }
        self.records.push_back(Departures { at: now, ahead_bytes: backlog_bytes });
    }

    /// Returns how long a segment of `bytes` waited, given that its round trip of `rtt` ends now. Discards the records
    /// before its sending time.
    pub fn wait_of(&mut self, now: Time, rtt: Dur, bytes: u64) -> Dur {
        // A coarse clock may report more time than has passed.
        let sent_at = Time::from_ps(now.as_ps().saturating_sub(rtt.as_ps()));
        while self.records.get(1).is_some_and(|next| next.at <= sent_at) {
            self.records.pop_front();
        }
        let Some(moment) = self.records.front_mut().filter(|moment| moment.at <= sent_at) else {
            return Dur::ZERO;
        };
        let wait = self.line_rate.time_for(moment.ahead_bytes).saturating_sub(sent_at - moment.at);
        moment.ahead_bytes += bytes;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    /// Returns the wait of a segment of 1250 bytes (10 us at 1 Gb/s) in microseconds.
    fn wait(queue: &mut OwnQueue, now_us: u64, rtt_us: u64) -> u64 {
        queue.wait_of(us(now_us), Dur::from_us(rtt_us), 1250).as_ps() / 1_000_000
    }

    #[test]
    fn a_segment_waits_for_the_backlog_and_for_segments_sent_before_it_at_the_same_time() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        queue.record(us(100), 5000);
        assert_eq!([0, 10, 20].map(|later| wait(&mut queue, 300 + later, 200 + later)), [40, 50, 60]);
    }

    #[test]
    fn the_backlog_has_drained_for_a_segment_sent_later() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        queue.record(us(100), 5000);
        assert_eq!(wait(&mut queue, 330, 200), 10);
        assert_eq!(wait(&mut queue, 1000, 200), 0);
    }

    #[test]
    fn each_segment_belongs_to_the_last_moment_before_it() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        queue.record(us(100), 5000);
        queue.record(us(120), 2500);
        queue.record(us(400), 0);
        assert_eq!(wait(&mut queue, 300, 200), 40);
        assert_eq!(wait(&mut queue, 320, 200), 20);
        assert_eq!((wait(&mut queue, 600, 200), queue.records.len()), (0, 1));
    }

    #[test]
    fn acknowledgments_without_samples_of_the_round_trip_do_not_pile_up() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        (0..3 * MAX_RECORDS as u64).for_each(|at| queue.record(us(at), 0));
        assert_eq!(queue.records.len(), MAX_RECORDS);
    }

    #[test]
    fn the_wait_is_zero_before_the_first_record() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        assert_eq!(wait(&mut queue, 300, 200), 0);
        queue.record(us(200), 5000);
        assert_eq!(wait(&mut queue, 300, 200), 0);
    }
}
