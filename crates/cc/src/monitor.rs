//! Monitor intervals: spans of sending at one rate, with their loss and delay. For controllers that learn from trials
//! (PCC).
//!
//! A segment belongs to the interval of its last transmission. The outcome of an interval is final when the fate of a
//! segment sent a few segments after its end is known, because its own losses have been detected by then.

use crate::contract::{Ack, Lost, Sent};
use crate::pace::PacketSize;
use sparelane_core::{Dur, Rate, Time};
use std::collections::VecDeque;

/// Number of segments sent after an interval whose fate shows that all its losses are known: TCP's duplicate threshold
/// plus one.
const FOLLOWERS: u32 = 4;

/// Minimum share of the volume allowed by the rate. An interval below it was limited by something other than the rate.
const LEAST_SHARE: f64 = 0.8;

/// Least-squares fit of round-trip times against send times, both relative to the first sample.
#[derive(Clone, Copy, Debug, Default)]
struct Slope {
    first_rtt_s: f64,
    n: f64,
    t: f64,
    rtt: f64,
    t_t: f64,
    t_rtt: f64,
}

impl Slope {
    fn add(&mut self, t_s: f64, rtt_s: f64) {
        if self.n == 0.0 {
            self.first_rtt_s = rtt_s;
        }
        let rtt_s = rtt_s - self.first_rtt_s;
        self.n += 1.0;
        self.t += t_s;
        self.rtt += rtt_s;
        self.t_t += t_s * t_s;
        self.t_rtt += t_s * rtt_s;
    }

    /// Returns the slope in seconds per second; zero if there are too few samples.
    fn value(&self) -> f64 {
        let spread = self.n * self.t_t - self.t * self.t;
        if self.n < 2.0 || spread <= 0.0 { 0.0 } else { (self.n * self.t_rtt - self.t * self.rtt) / spread }
    }
}

/// An interval in progress or waiting for the fate of its segments.
#[derive(Clone, Copy, Debug)]
struct Interval<P> {
    purpose: P,
    rate: Rate,
    start: Time,
    end: Time,
    segments: u64,
    wire_bytes: u64,
    lost_segments: u64,
    slope: Slope,
    followers: u32,
    /// The send time of the segment whose acknowledgment or loss makes the outcome final.
    closes_at: Time,
}

/// The outcome of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome<P> {
    /// The caller's label of the interval.
    pub purpose: P,
    /// The rate tried.
    pub rate: Rate,
    /// The share of the segments that were lost.
    pub loss: f64,
    /// The slope of the round-trip time over the interval, in seconds per second.
    pub rtt_gradient: f64,
    /// True if the rate, rather than a lack of data, limited the sender.
    pub is_valid: bool,
}

/// The intervals of one connection.
#[derive(Clone, Debug)]
pub struct Monitor<P> {
    packets: PacketSize,
    /// The intervals in order of time; the last one is in progress.
    intervals: VecDeque<Interval<P>>,
}

impl<P: Copy> Monitor<P> {
    /// Creates a monitor without intervals.
    pub fn new(packets: PacketSize) -> Monitor<P> {
        Monitor { packets, intervals: VecDeque::new() }
    }

    /// Starts an interval of `length` at `rate`. The interval in progress ends.
    pub fn begin(&mut self, now: Time, purpose: P, rate: Rate, length: Dur) {
        if let Some(current) = self.intervals.back_mut() {
            current.end = current.end.min(now);
        }
        self.intervals.push_back(Interval {
            purpose,
            rate,
            start: now,
            end: now.saturating_add(length.max(Dur::from_ps(1))),
            segments: 0,
            wire_bytes: 0,
            lost_segments: 0,
            slope: Slope::default(),
            followers: 0,
            closes_at: Time::NEVER,
        });
    }

    /// Returns the end of the interval in progress, or [`Time::NEVER`] without one.
    pub fn ends_at(&self) -> Time {
        self.intervals.back().map_or(Time::NEVER, |interval| interval.end)
    }

    /// Returns the label of the interval in progress.
    pub fn under_way(&self) -> Option<P> {
        self.intervals.back().map(|interval| interval.purpose)
    }

    /// Returns true if nothing has been sent in the interval in progress.
    pub fn is_idle(&self) -> bool {
        self.intervals.back().is_none_or(|interval| interval.segments == 0)
    }

    /// Drops all intervals. Later acknowledgments and losses of segments sent so far are ignored.
    pub fn clear(&mut self) {
        self.intervals.clear();
    }

    /// Counts a sent segment for the interval in progress.
    pub fn on_sent(&mut self, now: Time, sent: &Sent) {
        let Some((current, earlier)) = self.intervals.make_contiguous().split_last_mut() else { return };
        current.segments += 1;
        current.wire_bytes += sent.bytes + self.packets.header_bytes;
        for interval in earlier.iter_mut().filter(|interval| interval.followers < FOLLOWERS) {
            interval.followers += 1;
            if interval.followers == FOLLOWERS {
                interval.closes_at = now;
            }
        }
    }

    fn of(&mut self, sent_at: Time) -> Option<&mut Interval<P>> {
        self.intervals.iter_mut().rev().find(|interval| interval.start <= sent_at)
    }

    /// Counts a lost segment for the interval of its last transmission.
    pub fn on_lost(&mut self, lost: &Lost) {
        if let Some(interval) = self.of(lost.sent_at) {
            interval.lost_segments += 1;
        }
    }

    /// Adds the round-trip time of an acknowledged segment to its interval.
    pub fn on_ack(&mut self, ack: &Ack) {
        let (Some(delivery), Some(rtt)) = (&ack.delivery, ack.rtt) else { return };
        if let Some(interval) = self.of(delivery.sent_at) {
            let into_s = delivery.sent_at.saturating_since(interval.start).as_secs_f64();
            interval.slope.add(into_s, rtt.as_secs_f64());
        }
    }

    /// Removes the oldest interval and returns its outcome, if the fate of a segment sent at `news_sent_at` makes it
    /// final.
    pub fn pop(&mut self, news_sent_at: Time) -> Option<Outcome<P>> {
        let oldest = self.intervals.front()?;
        if news_sent_at < oldest.closes_at {
            return None;
        }
        let Interval { purpose, rate, start, end, segments, wire_bytes, lost_segments, slope, .. } = *oldest;
        self.intervals.pop_front();
        let allowed_bytes = rate.bytes_in(end.saturating_since(start)) as f64;
        // Up to one packet more or less is a matter of phase.
        let packet_bytes = self.packets.wire_bytes() as f64;
        let is_valid = segments > 0 && wire_bytes as f64 + packet_bytes >= LEAST_SHARE * allowed_bytes;
        let loss = (lost_segments as f64 / segments.max(1) as f64).min(1.0);
        Some(Outcome { purpose, rate, loss, rtt_gradient: slope.value(), is_valid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Delivery;

    const MSS: u64 = 960;

    fn at_us(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    fn send(monitor: &mut Monitor<char>, us: u64) {
        let sent = Sent { segment: 0, bytes: MSS, in_flight_bytes: MSS, is_retransmission: false, app_limited: false };
        monitor.on_sent(at_us(us), &sent);
    }

    fn lose(monitor: &mut Monitor<char>, us: u64) {
        let sent_at = at_us(us);
        monitor.on_lost(&Lost {
            segment: 0,
            bytes: MSS,
            sent_at,
            in_flight_bytes: MSS,
            lost_bytes: MSS,
            app_limited: false,
        });
    }

    fn acknowledge(monitor: &mut Monitor<char>, us: u64, rtt: Dur) {
        let delivery = Delivery {
            sent_at: at_us(us),
            prior_delivered_bytes: 0,
            total_delivered_bytes: MSS,
            lost_bytes: 0,
            in_flight_bytes: MSS,
            interval: rtt,
            app_limited: false,
        };
        monitor.on_ack(&Ack { rtt: Some(rtt), delivery: Some(delivery), ..Ack::in_sequence(MSS) });
    }

    /// Two intervals of ten packets at 8 Mb/s, which is 1000 bytes per millisecond.
    fn two_intervals() -> Monitor<char> {
        let mut monitor = Monitor::new(PacketSize::of(MSS));
        for (purpose, start_ms) in [('a', 0), ('b', 10)] {
            monitor.begin(at_us(start_ms * 1000), purpose, Rate::from_mbps(8), Dur::from_ms(10));
            (start_ms..start_ms + 10).for_each(|ms| send(&mut monitor, ms * 1000));
        }
        monitor
    }

    #[test]
    fn an_outcome_waits_for_news_of_the_fourth_segment_after_its_interval() {
        let mut monitor = two_intervals();
        lose(&mut monitor, 9000);
        lose(&mut monitor, 10_000);
        assert_eq!(monitor.pop(at_us(12_999)), None);
        let expected = Outcome { purpose: 'a', rate: Rate::from_mbps(8), loss: 0.1, rtt_gradient: 0.0, is_valid: true };
        assert_eq!(monitor.pop(at_us(13_000)), Some(expected));
        assert_eq!(monitor.pop(at_us(19_000)), None, "the interval has not ended");
    }

    #[test]
    fn the_gradient_is_that_of_the_round_trip_time_over_the_time_of_sending() {
        let mut monitor = two_intervals();
        for ms in 0..10 {
            acknowledge(&mut monitor, ms * 1000, Dur::from_us(50_000 + 200 * ms));
            acknowledge(&mut monitor, 10_000 + ms * 1000, Dur::from_us(90_000));
        }
        let found = monitor.pop(at_us(19_000)).expect("an outcome").rtt_gradient;
        assert!((found - 0.2).abs() < 1e-9, "{found}");
    }

    #[test]
    fn an_interval_that_lacked_data_is_invalid() {
        let mut monitor = Monitor::new(PacketSize::of(MSS));
        monitor.begin(at_us(0), 'a', Rate::from_mbps(8), Dur::from_ms(20));
        (0..10).for_each(|ms| send(&mut monitor, ms * 1000));
        monitor.begin(at_us(20_000), 'b', Rate::from_mbps(8), Dur::from_ms(20));
        (20..30).for_each(|ms| send(&mut monitor, ms * 1000));
        assert_eq!(monitor.pop(at_us(25_000)).map(|outcome| outcome.is_valid), Some(false));
    }
}
