//! How long segments waited in the queue of the sender's own interface, from what the controller heard of that queue.
//!
//! RTCP counts that queue as Q; in D, the rise of the round trip, the same wait would count once more. A window sends when an
//! acknowledgment comes, and that tells how much waits at the interface then: what a segment waited is what was there, and the
//! segments of the same moment that went before it, at the rate of the line. How many went before shows in the acknowledgments:
//! they come in the order of sending, but for losses, after which the wait is taken for less than it was.

use sparelane_core::{Dur, Rate, Time};
use std::collections::VecDeque;

/// So many moments are kept at most: those of one round trip. More come together only where there are no samples of the round
/// trip, as in a long recovery without time stamps.
const MOST_MOMENTS: usize = 1 << 16;

/// Moments at which segments may have been sent, and what waited then.
#[derive(Clone, Debug)]
pub struct OwnQueue {
    line_rate: Rate,
    moments: VecDeque<Moment>,
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Time,
    /// What was in front of the next segment of this moment to be acknowledged, bytes.
    ahead_bytes: u64,
}

impl OwnQueue {
    /// Nothing heard yet.
    pub fn new(line_rate: Rate) -> OwnQueue {
        OwnQueue { line_rate, moments: VecDeque::new() }
    }

    /// At `now` so much waits, before the segments of this moment join it.
    pub fn hear(&mut self, now: Time, backlog_bytes: u64) {
        if self.moments.len() == MOST_MOMENTS {
            self.moments.pop_front();
        }
        self.moments.push_back(Moment { at: now, ahead_bytes: backlog_bytes });
    }

    /// How long a segment of so many bytes waited whose round trip of `rtt` ends now. Moments before the one at which it was sent
    /// are forgotten.
    pub fn wait_of(&mut self, now: Time, rtt: Dur, bytes: u64) -> Dur {
        // A coarse clock may show more than has passed.
        let sent_at = Time::from_ps(now.as_ps().saturating_sub(rtt.as_ps()));
        while self.moments.get(1).is_some_and(|next| next.at <= sent_at) {
            self.moments.pop_front();
        }
        let Some(moment) = self.moments.front_mut().filter(|moment| moment.at <= sent_at) else {
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

    /// What a segment of 1250 bytes, 10 us at 1 Gb/s, waited, microseconds.
    fn wait(queue: &mut OwnQueue, now_us: u64, rtt_us: u64) -> u64 {
        queue.wait_of(us(now_us), Dur::from_us(rtt_us), 1250).as_ps() / 1_000_000
    }

    #[test]
    fn a_segment_waits_for_what_was_there_and_for_those_of_its_moment_before_it() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        queue.hear(us(100), 5000);
        assert_eq!([0, 10, 20].map(|later| wait(&mut queue, 300 + later, 200 + later)), [40, 50, 60]);
    }

    #[test]
    fn what_was_there_has_drained_for_a_segment_that_goes_later() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        queue.hear(us(100), 5000);
        assert_eq!(wait(&mut queue, 330, 200), 10);
        assert_eq!(wait(&mut queue, 1000, 200), 0);
    }

    #[test]
    fn each_segment_belongs_to_the_last_moment_before_it() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        queue.hear(us(100), 5000);
        queue.hear(us(120), 2500);
        queue.hear(us(400), 0);
        assert_eq!(wait(&mut queue, 300, 200), 40);
        assert_eq!(wait(&mut queue, 320, 200), 20);
        assert_eq!((wait(&mut queue, 600, 200), queue.moments.len()), (0, 1));
    }

    #[test]
    fn acknowledgments_without_samples_of_the_round_trip_do_not_pile_up() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        (0..3 * MOST_MOMENTS as u64).for_each(|at| queue.hear(us(at), 0));
        assert_eq!(queue.moments.len(), MOST_MOMENTS);
    }

    #[test]
    fn of_a_time_before_anything_was_heard_no_wait_is_known() {
        let mut queue = OwnQueue::new(Rate::from_gbps(1));
        assert_eq!(wait(&mut queue, 300, 200), 0);
        queue.hear(us(200), 5000);
        assert_eq!(wait(&mut queue, 300, 200), 0);
    }
}
