//! The books of what was sent as probes and what has arrived: p-streams in flight, and the samples of each.

use super::bass::Pair;
use super::estimator::Sample;
use crate::contract::Received;
use sparelane_core::{Dur, Rate, Seq, Time};
use std::collections::VecDeque;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct Probe {
    due: Time,
    rate: Rate,
}

/// A p-stream that is not judged yet.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Its segments: the first, and one past the last so far.
    first: Seq,
    end: Seq,
    /// When its first packet was due.
    due: Time,
    /// How long its gaps are in all.
    duration: Dur,
    /// A packet of it was lost, or something came between its packets.
    is_broken: bool,
    /// How many of its packets are missing.
    missing: u64,
    /// Its last packet was sent.
    is_whole: bool,
}

/// What became of a p-stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// All its packets have arrived.
    Whole {
        /// How long it lasted when it was sent (l).
        duration: Dur,
    },
    /// Its gaps say nothing about the path.
    Broken,
    /// Its gaps say nothing about the path, since packets of it are missing.
    Lossy(Lossy),
}

/// A p-stream of which packets are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lossy {
    /// One past its last segment.
    pub end: Seq,
    /// Its packets, and how many of them are missing.
    pub packets: u64,
    pub missing: u64,
    /// When the first of them was due.
    pub due: Time,
    /// How long it lasted when it was sent (l).
    pub duration: Dur,
}

/// The books.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// Segments in flight, in order, from number `base` on.
    probes: VecDeque<Probe>,
    base: Seq,
    streams: VecDeque<Stream>,
    /// The last packet that is known to have arrived.
    last: Option<(Seq, Probe, Time)>,
    /// Samples of p-streams that are not judged yet, with the segments that they are of.
    samples: VecDeque<(Seq, Sample)>,
}

impl Probes {
    /// A p-stream begins with the segment that is sent next.
    pub fn begin(&mut self) {
        let first = self.next();
        self.streams.push_back(Stream {
            first,
            end: first,
            due: Time::ZERO,
            duration: Dur::ZERO,
            is_broken: false,
            missing: 0,
            is_whole: false,
        });
    }

    /// `segment` was sent as due at `due`, with `gap` before it, as a probe of `rate`; `is_last` of its p-stream.
    pub fn sent(&mut self, segment: Seq, due: Time, gap: Dur, rate: Rate, is_last: bool) {
        if segment != self.next() {
            // Segments that something else sent come between.
            self.restart(segment);
        }
        self.probes.push_back(Probe { due, rate });
        let end = self.next();
        if let Some(stream) = self.streams.back_mut() {
            if stream.first == segment {
                stream.due = due;
            }
            (stream.end, stream.is_whole) = (end, is_last);
            stream.duration += gap;
        }
    }

    /// The p-stream that is being sent is of no use.
    pub fn break_current(&mut self) {
        if let Some(stream) = self.streams.back_mut() {
            stream.is_broken = true;
        }
    }

    /// No p-stream that was sent until now is of use.
    pub fn break_all(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.is_broken = true);
    }

    /// A packet that was sent before takes its place in the p-stream, with `gap` before it; it probes nothing, since nobody could tell
    /// which copy arrives.
    pub fn sent_again(&mut self, gap: Dur, is_last: bool) {
        if let Some(stream) = self.streams.back_mut() {
            stream.is_whole = is_last;
            stream.duration += gap;
        }
    }

    /// `segment` has arrived out of order, and what is between the last arrival and it has not: p-streams with any of that are lossy.
    pub fn missing_before(&mut self, segment: Seq) {
        let from = self.base;
        let of_missing = |stream: &&mut Stream| stream.first < segment && stream.end > from;
        if from < segment {
            for stream in self.streams.iter_mut().filter(of_missing) {
                stream.missing += stream.end.min(segment) - stream.first.max(from);
            }
        }
    }

    /// A segment has arrived.
    pub fn arrived(&mut self, received: Received) {
        let Received { segment, at } = received;
        let index = segment.wrapping_sub(self.base) as usize;
        let Some(&probe) = self.probes.get(index) else { return };
        self.probes.drain(..=index);
        self.base = segment + 1;
        if let Some((_, before, before_at)) = self.last {
            let gap = Pair { send: probe.due.saturating_since(before.due), receive: at.saturating_since(before_at) };
            self.samples.push_back((segment, Sample { gap, rate: probe.rate }));
        }
        self.last = Some((segment, probe, at));
    }

    /// The next p-stream that can be judged, if there is one, with its samples in `samples`.
    pub fn judge(&mut self, samples: &mut Vec<Sample>) -> Option<Judged> {
        let (last, ..) = self.last?;
        let &Stream { first, end, due, duration, is_broken, missing, is_whole } = self.streams.front()?;
        // A p-stream that was cut short is over when the next has begun.
        let is_over = is_whole || self.streams.len() > 1;
        if !is_over || last + 1 < end {
            return None;
        }
        self.streams.pop_front();
        let count = self.samples.partition_point(|&(segment, _)| segment < end);
        samples.clear();
        samples.extend(self.samples.drain(..count).map(|(_, sample)| sample));
        Some(match (is_broken, missing) {
            (true, _) => Judged::Broken,
            (false, 0) => Judged::Whole { duration },
            (false, _) => Judged::Lossy(Lossy { end, packets: end - first, missing, due, duration }),
        })
    }

    /// The number of the next segment.
    fn next(&self) -> Seq {
        self.base + self.probes.len() as Seq
    }

    fn restart(&mut self, segment: Seq) {
        self.probes.clear();
        self.base = segment;
        self.last = None;
        self.samples.clear();
        self.streams.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_gbps(1);

    fn us(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    /// Two p-streams of four segments, 10 us apart, and the first two of a third.
    fn sent() -> Probes {
        let mut probes = Probes::default();
        for segment in 0..10 {
            if segment % 4 == 0 {
                probes.begin();
            }
            probes.sent(segment, us(segment * 10), Dur::from_us(10), RATE, segment % 4 == 3);
        }
        probes
    }

    /// Everything that can be judged once these segments have arrived, 12 us apart: the samples' counts, and whether whole.
    fn judged(probes: &mut Probes, segments: &[Seq]) -> Vec<(usize, bool)> {
        let mut samples = Vec::new();
        let mut judged = Vec::new();
        for &segment in segments {
            probes.arrived(Received { segment, at: us(1000 + segment * 12) });
            while let Some(answer) = probes.judge(&mut samples) {
                judged.push((samples.len(), matches!(answer, Judged::Whole { .. })));
            }
        }
        judged
    }

    #[test]
    fn a_stream_is_judged_when_its_last_packet_has_arrived_or_a_later_one() {
        let mut probes = sent();
        assert_eq!(judged(&mut probes, &[0, 1, 2]), []);
        assert_eq!(judged(&mut probes, &[3]), [(3, true)], "the very first has no gap before it");
        assert_eq!(judged(&mut probes, &[4, 5, 6, 8]), [(3, true)], "the last had no acknowledgment of its own");
    }

    #[test]
    fn a_delayed_acknowledgment_gives_one_sample_for_two_packets() {
        let mut probes = sent();
        assert_eq!(judged(&mut probes, &[1, 3, 5]), [(1, true)]);
        let gap = probes.samples[0].1.gap;
        assert_eq!(gap, Pair { send: Dur::from_us(20), receive: Dur::from_us(24) });
    }

    #[test]
    fn a_stream_that_lost_a_packet_is_broken_and_the_next_is_not() {
        for (lost, before, broken) in [(2, 1, [true, false]), (4, 3, [false, true]), (3, 2, [true, false])] {
            let mut probes = sent();
            let arrivals: Vec<Seq> = (0..10).filter(|&segment| segment != lost).collect();
            let (early, late): (Vec<Seq>, Vec<Seq>) = arrivals.iter().partition(|&&segment| segment <= before);
            let mut found = judged(&mut probes, &early);
            probes.missing_before(late[0]);
            found.extend(judged(&mut probes, &late));
            let whole: Vec<bool> = found.into_iter().map(|(_, is_whole)| is_whole).collect();
            assert_eq!(whole, broken.map(|is_broken| !is_broken), "without segment {lost}");
        }
    }

    #[test]
    fn a_stream_of_retransmissions_alone_is_over_at_once_and_says_nothing() {
        let mut probes = sent();
        probes.sent_again(Dur::from_us(10), false);
        probes.sent_again(Dur::from_us(10), true);
        probes.begin();
        probes.sent_again(Dur::from_us(10), true);
        probes.begin();
        assert_eq!(judged(&mut probes, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), [(3, true), (4, true), (2, true), (0, true)]);
    }

    #[test]
    fn what_was_sent_until_a_cut_is_of_no_use_and_what_follows_is() {
        let mut probes = sent();
        probes.break_all();
        for segment in 10..20 {
            if segment % 4 == 0 {
                probes.begin();
            }
            probes.sent(segment, us(segment * 10), Dur::from_us(10), RATE, segment % 4 == 3);
        }
        let all: Vec<Seq> = (0..20).collect();
        let judged: Vec<bool> = judged(&mut probes, &all).into_iter().map(|(_, is_whole)| is_whole).collect();
        assert_eq!(judged, [false, false, false, true, true]);
    }

    #[test]
    fn arrivals_of_unknown_segments_change_nothing() {
        let mut probes = sent();
        assert_eq!(judged(&mut probes, &[0, 1, 2, 99, 1, 3, 4, 5, 6]), [(3, true)]);
    }
}
