//! The event queue of large networks: a calendar of buckets, each sorted when its time comes.
//!
//! On a network with thousands of links, a packet-hop touches several cache lines that are in no cache, and most of
//! them are found through another. A winner tree knows only the next event, so these misses are paid one after the
//! other. A calendar has some dozens of events in order before they are due. The engine prefetches for the events some
//! places ahead, and their misses overlap.
//!
//! Data layout: `ring` is a ring of [`BUCKETS`] lists, each for a span of `1 << width_bits` picoseconds. Events beyond
//! the ring are in `far`, and move into the ring when it has advanced to the first of them. `sorted` holds the events of
//! the buckets whose time has come. Events that are added to that span later are in the heap `late`. The width of a
//! bucket follows the load. Alarms are in a small array.
//!
//! An event that was replaced stays in the calendar. It is recognized when its time comes, because its source then has
//! another next event. The order of events depends on neither width nor load.

use super::event_queue::EventQueue;
use sparelane_core::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of buckets in the ring.
const BUCKETS: usize = 64 * 64;

/// The width of a bucket doubles if buckets have fewer events than this on average, and is halved if they have more
/// than [`MOST`]. A bucket should outlast the distance of prefetches. The fewer events it has, the fewer comparisons its
/// sorting takes, but the more memory the lists of all buckets take: aims of 32 and of 320 are slower.
const FEWEST: u64 = 24;
const MOST: u64 = 256;
const AIM: u64 = 80;

/// The number of events after which the average is looked at.
const SAMPLE: u64 = 1 << 15;

/// The next bucket is sorted while this many events remain, so that the engine can look ahead.
const AHEAD: usize = 32;

/// The widths of buckets, as powers of two in picoseconds: from 16 ps to 1.1 s.
const NARROWEST: u32 = 4;
const WIDEST: u32 = 40;

/// The bits of a source's number in a key.
const SOURCE_BITS: u32 = 22;

/// A calendar.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// The events of the current span, in order, from `place` on. A key packs the time since `base` above the source.
    sorted: Vec<u64>,
    place: usize,
    base: Time,
    /// Events of the current span that were added after its bucket was sorted.
    late: BinaryHeap<Reverse<(Time, u32)>>,
    /// The first bucket that is not sorted yet. Bucket `n` begins at `n << width_bits`.
    next_bucket: u64,
    width_bits: u32,
    /// The lists of buckets, each event as the time since the start of its bucket, above the source.
    ring: Box<[Vec<u64>]>,
    occupied: Occupied,
    /// Events of later buckets, and the earliest time among them.
    far: Vec<(Time, u32)>,
    far_from: Time,
    load: Load,
    /// The time of the last event returned.
    now: Time,
    first_alarm: usize,
    alarms: Box<[Time]>,
    /// The time of the earliest alarm, and its source.
    alarm: (Time, usize),
}

/// The load since the last change of the width.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Buckets that were sorted, and their events.
    buckets: u64,
    events: u64,
    /// Events that were added late.
    late: u64,
}

/// The buckets with events: one bit each, and one bit for each word of these bits.
#[derive(Debug)]
struct Occupied {
    words: Box<[u64; 64]>,
    summary: u64,
}

impl Occupied {
    #[inline(always)]
    fn insert(&mut self, slot: usize) {
        self.words[slot / 64 % 64] |= 1 << (slot % 64);
        self.summary |= 1 << (slot / 64 % 64);
    }

    fn remove(&mut self, slot: usize) {
        let word = &mut self.words[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.summary &= !(1 << (slot / 64));
        }
    }

    /// The number of steps from `slot` to the first occupied slot at or after it, around the ring.
    fn steps_from(&self, slot: usize) -> Option<u64> {
        let (word, bit) = (slot / 64, slot as u32 % 64);
        let here = self.words[word] >> bit;
        if here != 0 {
            return Some(u64::from(here.trailing_zeros()));
        }
        // The words after this one in order; this one is the last, for the slots before `slot`.
        let after = self.summary.rotate_right(word as u32 + 1);
        if after == 0 {
            return None;
        }
        let words = after.trailing_zeros() as usize + 1;
        let bits = self.words[(word + words) % 64].trailing_zeros();
        Some(words as u64 * 64 + u64::from(bits) - u64::from(bit))
    }
}

#[inline(always)]
fn source_of(key: u64) -> usize {
    (key & ((1 << SOURCE_BITS) - 1)) as usize
}

impl Calendar {
    #[inline(always)]
    fn bucket_of(&self, at: Time) -> u64 {
        at.as_ps() >> self.width_bits
    }

    fn start_of(&self, bucket: u64) -> Time {
        Time::from_ps(bucket << self.width_bits)
    }

    #[inline(always)]
    fn push(&mut self, source: usize, at: Time) {
        let bucket = self.bucket_of(at);
        if bucket.wrapping_sub(self.next_bucket) < BUCKETS as u64 {
            let offset = at.as_ps() & ((1 << self.width_bits) - 1);
            let slot = bucket as usize % BUCKETS;
            self.ring[slot].push(offset << SOURCE_BITS | source as u64);
            self.occupied.insert(slot);
        } else {
            self.push_elsewhere(source, at, bucket);
        }
    }

    #[inline(never)]
    fn push_elsewhere(&mut self, source: usize, at: Time, bucket: u64) {
        if bucket < self.next_bucket {
            self.late.push(Reverse((at, source as u32)));
            self.load.late += 1;
            // A span that is much too wide would turn the calendar into this heap.
            if self.load.late == SAMPLE {
                self.adapt();
            }
        } else {
            self.far.push((at, source as u32));
            self.far_from = self.far_from.min(at);
        }
    }

    /// The first bucket of the ring with events.
    fn first_bucket(&self) -> Option<u64> {
        let steps = self.occupied.steps_from(self.next_bucket as usize % BUCKETS)?;
        Some(self.next_bucket + steps)
    }

    /// Sorts the next bucket that has events, unless it begins after the earliest alarm.
    #[inline(never)]
    fn sort_next(&mut self) {
        if self.load.events >= SAMPLE {
            self.adapt();
        }
        let first = loop {
            let first = self.first_bucket().unwrap_or(u64::MAX);
            let far = if self.far.is_empty() { u64::MAX } else { self.bucket_of(self.far_from) };
            let earliest = first.min(far);
            if earliest == u64::MAX || self.start_of(earliest) > self.alarm.0 {
                return;
            }
            if first < far {
                break first;
            }
            self.next_bucket = far;
            self.distribute_far();
        };
        let start = self.start_of(first);
        let remaining = self.sorted.len() - self.place;
        if remaining == 0 {
            self.sorted.clear();
            self.base = start;
        } else {
            let earliest = self.sorted[self.place] >> SOURCE_BITS;
            let base = Time::from_ps(self.base.as_ps() + earliest);
            if start - base >= sparelane_core::Dur::from_ps(1 << WIDEST) {
                return;
            }
            self.sorted.drain(..self.place);
            self.sorted.iter_mut().for_each(|key| *key -= earliest << SOURCE_BITS);
            self.base = base;
        }
        self.place = 0;
        let slot = first as usize % BUCKETS;
        let bucket = &mut self.ring[slot];
        bucket.sort_unstable();
        let shift = (start - self.base).as_ps() << SOURCE_BITS;
        self.sorted.extend(bucket.iter().map(|key| key + shift));
        self.load.buckets += 1;
        self.load.events += bucket.len() as u64;
        bucket.clear();
        self.occupied.remove(slot);
        self.next_bucket = first + 1;
    }

    /// Moves the events of `far` that fit into the ring there.
    fn distribute_far(&mut self) {
        self.far_from = Time::NEVER;
        for (at, source) in std::mem::take(&mut self.far) {
            self.push(source as usize, at);
        }
    }

    /// Changes the width of buckets, if the load asks for it.
    #[cold]
    #[inline(never)]
    fn adapt(&mut self) {
        let Load { buckets, events, late } = std::mem::take(&mut self.load);
        let average = events / buckets.max(1);
        let width_bits = if late > events / 4 && average > FEWEST {
            self.width_bits - 1
        } else if average > MOST {
            self.width_bits.saturating_sub((average / AIM).ilog2())
        } else if average < FEWEST && late < events / 4 {
            self.width_bits + (AIM / average.max(1)).ilog2()
        } else {
            return;
        };
        let width_bits = width_bits.clamp(NARROWEST, WIDEST);
        if width_bits == self.width_bits {
            return;
        }
        // All events are distributed again, from the time of the last one on.
        let mut events = std::mem::take(&mut self.far);
        let at = |start: Time, key: u64| (Time::from_ps(start.as_ps() + (key >> SOURCE_BITS)), source_of(key) as u32);
        events.extend(self.sorted.drain(..).skip(self.place).map(|key| at(self.base, key)));
        events.extend(self.late.drain().map(|Reverse(event)| event));
        while let Some(bucket) = self.first_bucket() {
            let (start, slot) = (self.start_of(bucket), bucket as usize % BUCKETS);
            events.extend(self.ring[slot].drain(..).map(|key| at(start, key)));
            self.occupied.remove(slot);
        }
        self.place = 0;
        self.width_bits = width_bits;
        self.next_bucket = self.bucket_of(self.now);
        self.far = events;
        self.distribute_far();
    }

    /// The time and the source of the earliest event in `sorted` and `late`, and true if it is in `late`. Without events,
    /// the time is [`Time::NEVER`].
    ///
    /// The parts are compared one by one: as a tuple they would pass through memory, for a dozen nanoseconds an event.
    #[inline(always)]
    fn first_of_span(&self) -> (Time, usize, bool) {
        let (mut at, mut source, mut is_late) = (Time::NEVER, usize::MAX, false);
        if let Some(&key) = self.sorted.get(self.place) {
            (at, source) = (Time::from_ps(self.base.as_ps() + (key >> SOURCE_BITS)), source_of(key));
        }
        if let Some(&Reverse((late_at, late_source))) = self.late.peek()
            && (late_at < at || (late_at == at && (late_source as usize) < source))
        {
            (at, source, is_late) = (late_at, late_source as usize, true);
        }
        (at, source, is_late)
    }
}

impl EventQueue for Calendar {
    const LOOKS_AHEAD: bool = true;
    const SOURCES: usize = 1 << SOURCE_BITS;

    fn new(first_alarm: usize, alarms: usize) -> Calendar {
        assert!(first_alarm + alarms <= Self::SOURCES, "{first_alarm} sources; at most {}", Self::SOURCES - alarms);
        Calendar {
            sorted: Vec::new(),
            place: 0,
            base: Time::ZERO,
            late: BinaryHeap::new(),
            next_bucket: 0,
            width_bits: 20,
            ring: vec![Vec::new(); BUCKETS].into_boxed_slice(),
            occupied: Occupied { words: Box::new([0; 64]), summary: 0 },
            far: Vec::new(),
            far_from: Time::NEVER,
            load: Load::default(),
            now: Time::ZERO,
            first_alarm,
            alarms: vec![Time::NEVER; alarms].into_boxed_slice(),
            alarm: (Time::NEVER, first_alarm),
        }
    }

    #[inline(always)]
    fn set(&mut self, source: usize, at: Time) {
        if source >= self.first_alarm {
            self.alarms[source - self.first_alarm] = at;
            let earliest = self.alarms.iter().copied().zip(self.first_alarm..).min();
            self.alarm = earliest.unwrap_or((Time::NEVER, self.first_alarm));
        } else if at != Time::NEVER {
            self.push(source, at);
        }
    }

    #[inline(always)]
    fn lower(&mut self, source: usize, at: Time) {
        self.set(source, at);
    }

    #[inline(always)]
    fn next(&mut self, time_of: impl Fn(usize) -> Time) -> Option<(usize, Time)> {
        loop {
            if self.sorted.len() - self.place < AHEAD {
                self.sort_next();
            }
            let (at, source, is_late) = self.first_of_span();
            if at > self.alarm.0 || at == Time::NEVER {
                self.now = self.alarm.0;
                return (self.alarm.0 != Time::NEVER).then_some((self.alarm.1, self.alarm.0));
            }
            if is_late {
                self.late.pop();
            } else {
                self.place += 1;
            }
            if time_of(source) == at {
                self.now = at;
                return Some((source, at));
            }
        }
    }

    #[inline(always)]
    fn ahead(&self, places: usize) -> Option<usize> {
        self.sorted.get(self.place + places).map(|&key| source_of(key))
    }

    fn earliest(&self) -> Time {
        let in_ring = self.first_bucket().map_or(Time::NEVER, |bucket| self.start_of(bucket));
        let (in_span, ..) = self.first_of_span();
        self.alarm.0.min(in_span).min(in_ring).min(self.far_from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event_queue::tests::agrees_with_a_sorted_set;
    use sparelane_core::{Domain, Stream};

    #[test]
    fn the_earliest_event_wins_and_ties_go_to_the_lower_source() {
        // Events in one bucket, over the ring, and mostly beyond it.
        for (sources, spread) in [(1, 300), (70, 300), (500, 1 << 30), (500, 1 << 36)] {
            agrees_with_a_sorted_set(&mut Calendar::new(sources - sources / 10, sources / 10), sources, spread, 20_000);
        }
    }

    /// Lets each of many sources have an event about every `period`, and returns the width of buckets after a while.
    fn width_under(calendar: &mut Calendar, period: u64, events: u64) -> u32 {
        const SOURCES: u64 = 4096;
        let mut rng = Stream::new(7, Domain::Test, period);
        let mut times: Vec<_> =
            (0..SOURCES).map(|_| Time::from_ps(calendar.now.as_ps() + 1 + rng.below(period))).collect();
        (0..).zip(&times).for_each(|(source, &at)| calendar.set(source, at));
        for _ in 0..events {
            let found = calendar.next(|source| times[source]);
            // A search for each event would take minutes.
            if rng.below(100) == 0 {
                let earliest = times.iter().copied().zip(0..).min().map(|(at, source)| (source, at));
                assert_eq!(found, earliest);
            }
            let (source, at) = found.expect("each source has an event");
            times[source] = Time::from_ps(at.as_ps() + period / 2 + rng.below(period));
            calendar.set(source, times[source]);
        }
        calendar.width_bits
    }

    #[test]
    fn the_width_follows_the_load_and_the_order_stays() {
        let mut calendar = Calendar::new(4096, 0);
        // 4096 events in 2^30 ps, then in 2^24, then in 2^36: about 80 in a bucket.
        for (period_bits, expected) in [(30, 24), (24, 18), (36, 30)] {
            let width = width_under(&mut calendar, 1 << period_bits, 6 * SAMPLE);
            assert!(width.abs_diff(expected) <= 2, "2^{period_bits}: buckets of 2^{width} ps");
        }
    }

    #[test]
    fn a_crowd_of_events_at_one_time_leaves_the_narrowest_buckets_narrow() {
        const CROWD: usize = 1 << 20;
        let mut calendar = Calendar::new(CROWD, 0);
        calendar.width_bits = NARROWEST;
        let at = Time::from_ps(5);
        (0..CROWD).for_each(|source| calendar.set(source, at));
        for source in 0..CROWD {
            assert_eq!(calendar.next(|_| at), Some((source, at)));
        }
        assert_eq!(calendar.next(|_| Time::NEVER), None);
        calendar.set(0, Time::from_ps(1 << 30));
        assert_eq!(calendar.next(|_| Time::from_ps(1 << 30)), Some((0, Time::from_ps(1 << 30))));
        assert_eq!(calendar.width_bits, NARROWEST);
    }

    #[test]
    fn the_first_occupied_slot_is_found_around_the_ring() {
        let mut occupied = Occupied { words: Box::new([0; 64]), summary: 0 };
        assert_eq!(occupied.steps_from(77), None);
        for slot in [3, 64, 65, 4000] {
            occupied.insert(slot);
        }
        for (from, steps) in [(0, 3), (3, 0), (4, 60), (64, 0), (65, 0), (66, 3934), (4001, 98), (4095, 4)] {
            assert_eq!(occupied.steps_from(from), Some(steps), "from {from}");
        }
        [64, 65, 4000].into_iter().for_each(|slot| occupied.remove(slot));
        assert_eq!(occupied.steps_from(4), Some(4095));
        occupied.remove(3);
        assert_eq!(occupied.steps_from(3), None);
    }
}
