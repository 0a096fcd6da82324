//! Bookkeeping of probes: p-streams in flight, the arrival of their packets, and the samples of each.

use super::bass::Pair;
use super::estimator::Sample;
use crate::contract::Received;
use sparelane_core::{Dur, Rate, Seq, Time};
use std::collections::VecDeque;

/// A probe packet in flight.
#[derive(Clone, Copy, Debug)]
struct Probe {
    due: Time,
    rate: Rate,
}

/// A p-stream that is still to be judged.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Its segments: the first, and one past the last so far.
    first: Seq,
    end: Seq,
    /// The due time of its first packet.
    due: Time,
    /// The sum of its gaps.
    duration: Dur,
    /// Set if the p-stream cannot be judged, for example after a timeout or a late packet.
    is_broken: bool,
    /// The number of its packets that are missing.
    missing: u64,
    /// Set once its last packet was sent.
    is_whole: bool,
}

/// The outcome of a p-stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// All its packets have arrived.
    Whole {
        /// The duration of the p-stream as it was sent (l).
        duration: Dur,
    },
    /// Its gaps carry no information about the path.
    Broken,
    /// Packets are missing, so its gaps carry no information about the path.
    Lossy(Lossy),
}

/// A p-stream with missing packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lossy {
    /// One past its last segment.
    pub end: Seq,
    /// The number of its packets, and of those missing.
    pub packets: u64,
    pub missing: u64,
    /// The due time of its first packet.
    pub due: Time,
    /// The duration of the p-stream as it was sent (l).
    pub duration: Dur,
}

/// The p-streams and probes of one connection.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// Segments in flight in order, starting at number `base`.
    probes: VecDeque<Probe>,
    base: Seq,
    streams: VecDeque<Stream>,
    /// The latest packet known to have arrived: its number, its probe and its arrival time.
    last: Option<(Seq, Probe, Time)>,
    /// Samples of p-streams that are still to be judged, with their segment numbers.
    samples: VecDeque<(Seq, Sample)>,
}

impl Probes {
    /// Starts a p-stream with the next segment to be sent.
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

    /// Records that `segment` left with due time `due` after `gap`, as a probe of `rate`. `is_last` marks the end of
    /// its p-stream.
    pub fn sent(&mut self, segment: Seq, due: Time, gap: Dur, rate: Rate, is_last: bool) {
        if segment != self.next() {
            // A jump in numbers means that segments were sent outside the scheduler.
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

    /// Marks the p-stream that is being sent as broken.
    pub fn break_current(&mut self) {
        if let Some(stream) = self.streams.back_mut() {
            stream.is_broken = true;
        }
    }

    /// Marks all p-streams sent so far as broken.
    pub fn break_all(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.is_broken = true);
    }

    /// Records a retransmission: it takes its place in the p-stream, with `gap` before it. It probes nothing, because
    /// the acknowledgment does not tell which copy arrived.
    pub fn retransmitted(&mut self, gap: Dur, is_last: bool) {
        if let Some(stream) = self.streams.back_mut() {
            stream.is_whole = is_last;
            stream.duration += gap;
        }
    }

    /// Records that segments before `segment` are missing, because it arrived out of order. P-streams that contain any
    /// are lossy.
    pub fn missing_before(&mut self, segment: Seq) {
        let from = self.base;
        let of_missing = |stream: &&mut Stream| stream.first < segment && stream.end > from;
        if from < segment {
            for stream in self.streams.iter_mut().filter(of_missing) {
                stream.missing += stream.end.min(segment) - stream.first.max(from);
            }
        }
    }

    /// Records an arrival: the gaps to the previous arrival make a sample.
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

    /// Returns the outcome of the next p-stream that can be judged, if any, and puts its samples into `samples`.
    pub fn judge(&mut self, samples: &mut Vec<Sample>) -> Option<Judged> {
        let (last, ..) = self.last?;
        let &Stream { first, end, due, duration, is_broken, missing, is_whole } = self.streams.front()?;
        // A p-stream that was cut short is over once the next has begun.
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

    /// Returns the number of the next segment.
    fn next(&self) -> Seq {
        self.base + self.probes.len() as Seq
    }

    /// Discards all state and continues at `segment`.
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

    /// Judges all possible p-streams after these segments arrive 12 us apart; returns the sample counts and whether
    /// each is whole.
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
        assert_eq!(judged(&mut probes, &[3]), [(3, true)], "the first packet has no gap before it");
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
    fn a_stream_of_retransmissions_only_ends_at_once_without_samples() {
        let mut probes = sent();
        probes.retransmitted(Dur::from_us(10), false);
        probes.retransmitted(Dur::from_us(10), true);
        probes.begin();
        probes.retransmitted(Dur::from_us(10), true);
        probes.begin();
        assert_eq!(judged(&mut probes, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), [(3, true), (4, true), (2, true), (0, true)]);
    }

    #[test]
    fn streams_sent_before_a_break_are_discarded_and_later_ones_are_judged() {
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
