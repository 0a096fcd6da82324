//! COBALT, CoDel and BLUE Alternate: CoDel signals a standing queue, and BLUE drops at random while flows do not respond
//! and the buffer overflows.
//!
//! Source: "Piece of CAKE" (Hoiland-Jorgensen et al., LANMAN 2018), section III.C, and Linux (`net/sched/sch_cake.c`),
//! whose CAKE has it in each of its queues. Here it governs a single queue.
//!
//! CoDel differs from RFC 8289 in three ways. The queue counts as standing as soon as one packet exceeds the target, so
//! the first signal is due one interval later. While the delay is below the target, the count of signals falls at the
//! rate at which it would rise. A signal marks an ECN-capable packet, and BLUE's drops do not.
//!
//! Needs the arrival time of each packet, and a request for a packet whenever the transmitter is free.
//!
//! Differences: probabilities and square roots are floating-point numbers. A packet has the size of the largest one of
//! the run where CAKE uses the MTU. The rest of CAKE is absent: its shaper, tins, hosts and filter of acknowledgments.

use super::QueueForm;
use crate::schema::{Fallback, Form, Key, Kind};
use sparelane_core::{Domain, Dur, Rate, Stream, Time};
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{Discipline, Limit};
use std::any::Any;

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "cobalt",
    summary: "codel with ECN, and random drops (BLUE) while the buffer overflows",
    source: "LANMAN 2018; Linux",
    keys: &[
        Key::new("target", Kind::SPAN, Fallback::Value("5ms"), "delay that a queue may keep").from("Linux"),
        Key::new("interval", Kind::SPAN, Fallback::Value("100ms"), "time until the first signal").from("Linux"),
    ],
    read: |section, _| {
        let (target, interval) = (section.need("target")?.time()?, section.need("interval")?.time()?);
        Ok(Discipline::of(CobaltSpec { target, interval }))
    },
};

/// The settings of COBALT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CobaltSpec {
    /// The delay that a queue may keep.
    pub target: Dur,
    /// The time from the start of a standing queue to the first signal.
    pub interval: Dur,
}

impl Default for CobaltSpec {
    fn default() -> CobaltSpec {
        CobaltSpec { target: Dur::from_ms(5), interval: Dur::from_ms(100) }
    }
}

impl ActiveSpec for CobaltSpec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(Cobalt::new(*self, place))
    }

    fn separates_classes(&self) -> bool {
        false
    }

    fn equals(&self, other: &dyn ActiveSpec) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// The delay that is always allowed, in times of a full packet: a signal needs a queue of more than these.
const LEAST_PACKETS: u64 = 4;
/// The step by which BLUE's probability grows when the buffer overflows, and the one by which it falls when it is empty.
const BLUE_UP: f64 = 1.0 / 256.0;
const BLUE_DOWN: f64 = 1.0 / 4096.0;

/// A queue under COBALT.
#[derive(Clone, Debug)]
struct Cobalt {
    spec: CobaltSpec,
    /// The delay above which the queue is standing.
    target: Dur,
    limit: Limit,
    largest_bytes: u64,
    buffer: Buffer,
    /// Signals of late.
    count: u32,
    /// The delay is above the target.
    dropping: bool,
    /// The time of the next signal. While the delay is below the target, the time at which `count` falls.
    drop_next: Time,
    /// The probability of BLUE, and the time of its last change.
    blue: f64,
    blue_changed: Option<Time>,
    rng: Stream,
}

/// The delay above which a queue is standing: the target, but at least that of a few packets.
fn target_at(rate: Rate, spec: CobaltSpec, largest_bytes: u64) -> Dur {
    spec.target.max(rate.time_for(largest_bytes * LEAST_PACKETS))
}

impl Cobalt {
    fn new(spec: CobaltSpec, place: &Place) -> Cobalt {
        Cobalt {
            spec,
            target: target_at(place.rate, spec, place.largest_bytes),
            limit: place.limit,
            largest_bytes: place.largest_bytes,
            buffer: Buffer::default(),
            count: 0,
            dropping: false,
            drop_next: Time::ZERO,
            blue: 0.0,
            blue_changed: None,
            rng: Stream::new(place.seed, Domain::ActiveQueue, place.link),
        }
    }

    /// The time of the signal after one at `time`: interval / sqrt(count) later.
    fn control_law(&self, time: Time) -> Time {
        let root = libm::sqrt(f64::from(self.count.max(1)));
        time + Dur::from_ps((self.spec.interval.as_ps() as f64 / root) as u64)
    }

    /// Changes BLUE's probability, unless it has changed within the least time between changes.
    fn change_blue(&mut self, now: Time, step: f64) {
        if self.blue_changed.is_none_or(|last| now - last > self.spec.target) {
            self.blue = (self.blue + step).clamp(0.0, 1.0);
            self.blue_changed = Some(now);
        }
    }

    /// The buffer has overflowed: signals are due at once, and BLUE grows.
    fn handle_overflow(&mut self, now: Time) {
        self.change_blue(now, BLUE_UP);
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue is empty: BLUE shrinks, and the count of signals falls.
    fn handle_empty(&mut self, now: Time) {
        if self.blue > 0.0 {
            self.change_blue(now, -BLUE_DOWN);
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next = self.control_law(self.drop_next);
        }
    }

    /// Returns true if `packet`, which would leave at `now`, is to be dropped. It may be marked instead.
    fn drops(&mut self, now: Time, packet: &mut Packet, fates: &mut Fates) -> bool {
        let is_due = self.count > 0 && now >= self.drop_next;
        if now - packet.came_at() > self.target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control_law(now);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut drops = false;
        if is_due && self.dropping {
            drops = !fates.mark(packet);
            self.count = self.count.saturating_add(1);
            self.drop_next = self.control_law(self.drop_next);
        } else if is_due {
            while self.count > 0 && now >= self.drop_next {
                self.count -= 1;
                self.drop_next = self.control_law(self.drop_next);
            }
        }
        // Marks do not slow flows that overflow the buffer, so BLUE only drops.
        if self.blue > 0.0 && self.rng.unit() < self.blue {
            drops = true;
        }
        if self.count == 0 {
            self.drop_next = now + self.spec.interval;
        } else if now > self.drop_next && !drops {
            // Signals that are overdue do not accumulate.
            self.drop_next = now;
        }
        drops
    }
}

impl ActiveLaw for Cobalt {
    fn enqueue(&mut self, now: Time, packet: Packet, _idle_since: Option<Time>, fates: &mut Fates) {
        let fits = self.buffer.has_room_for(&packet, self.limit);
        self.buffer.push(now, packet);
        if fits {
            return;
        }
        self.handle_overflow(now);
        while self.limit.is_exceeded(self.buffer.bytes(), self.buffer.packets()) {
            let Some(oldest) = self.buffer.pop() else { return };
            fates.drop(oldest);
        }
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        loop {
            let Some(mut packet) = self.buffer.pop() else {
                self.handle_empty(now);
                return None;
            };
            // The last packet may be marked, but is not dropped.
            if !self.drops(now, &mut packet, fates) || self.buffer.packets() == 0 {
                return Some(packet);
            }
            fates.drop(packet);
        }
    }

    fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }

    fn handle_rate(&mut self, rate: Rate) {
        self.target = target_at(rate, self.spec, self.largest_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};

    fn cobalt(limit: Limit) -> Cobalt {
        let place = Place { limit, rate: Rate::from_mbps(10), largest_bytes: 1000, seed: 1, link: 0 };
        Cobalt::new(CobaltSpec::default(), &place)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    /// Returns a queue of 200 packets that all arrived at time 0.
    fn filled(ecn: bool) -> (Cobalt, Fates) {
        let (mut queue, mut fates) = (cobalt(Limit::Packets(1000)), Fates::default());
        (0..200).for_each(|seq| queue.enqueue(at(0), data(0, seq, ecn), None, &mut fates));
        (queue, fates)
    }

    /// One packet leaves every 10 ms. The first is above the target at 10 ms, so the first signal is due at 110 ms. Further
    /// ones are due 100/sqrt(2), 100/sqrt(3), 100/2 and 100/sqrt(5) ms later: at 180.7, 238.4, 288.4 and 333.2 ms.
    #[test]
    fn signals_follow_the_square_root_of_their_count() {
        let (mut queue, mut fates) = filled(false);
        let mut drop_times = Vec::new();
        for ms in (10..=340).step_by(10) {
            let before = fates.dropped().len();
            assert!(queue.dequeue(at(ms), &mut fates).is_some());
            drop_times.extend((before..fates.dropped().len()).map(|_| ms));
        }
        assert_eq!(drop_times, [110, 190, 240, 290, 340]);
    }

    #[test]
    fn a_signal_marks_packets_that_are_ecn_capable() {
        let (mut queue, mut fates) = filled(true);
        (10..=340).step_by(10).for_each(|ms| assert!(queue.dequeue(at(ms), &mut fates).is_some()));
        assert_eq!((fates.marked(), fates.dropped().len()), (5, 0));
    }

    /// After five signals (count 6) the delay is below the target. The count falls to 5 at the time of the next signal,
    /// 374.0 ms, and then after 100/sqrt(5), 100/2, 100/sqrt(3), 100/sqrt(2) and 100 ms, until it is zero.
    #[test]
    fn the_count_of_signals_falls_as_it_rises_while_the_delay_is_short() {
        let (mut queue, mut fates) = filled(false);
        (10..=340).step_by(10).for_each(|ms| assert!(queue.dequeue(at(ms), &mut fates).is_some()));
        queue.buffer = Buffer::default();
        let mut counts = Vec::new();
        for ms in (341..800).step_by(3) {
            queue.enqueue(at(ms), data(0, 0, false), None, &mut fates);
            queue.enqueue(at(ms), data(0, 1, false), None, &mut fates);
            assert!(queue.dequeue(at(ms), &mut fates).is_some());
            counts.push(queue.count);
            assert!(queue.dequeue(at(ms), &mut fates).is_some());
        }
        let falls: Vec<_> = counts.windows(2).zip((344..).step_by(3)).filter(|(pair, _)| pair[0] != pair[1]).collect();
        assert_eq!((counts.first(), counts.last()), (Some(&6), Some(&0)));
        let times: Vec<u64> = falls.iter().map(|&(_, ms)| ms).collect();
        assert_eq!(times, [374, 419, 470, 527, 599, 698]);
    }

    /// A source that does not respond fills the buffer. Each overflow that comes more than 5 ms after the last change adds
    /// 1/256; when it stops, each empty queue takes away 1/4096.
    #[test]
    fn random_drops_grow_while_the_buffer_overflows_and_shrink_while_it_is_empty() {
        let (mut queue, mut fates) = (cobalt(Limit::Packets(10)), Fates::default());
        (0..12).for_each(|seq| queue.enqueue(at(0), data(0, seq, true), None, &mut fates));
        assert_eq!((numbers(fates.dropped()), queue.backlog()), (vec![0, 1], (10_000, 10)));
        assert_eq!(queue.blue, BLUE_UP);
        for ms in 1..=60 {
            (0..2).for_each(|seq| queue.enqueue(at(ms), data(0, seq, true), None, &mut fates));
        }
        // Changes at 0, 6, 12, ..., 60 ms.
        assert_eq!(queue.blue, 11.0 * BLUE_UP);
        while queue.dequeue(at(60), &mut fates).is_some() {}
        assert_eq!(queue.blue, 11.0 * BLUE_UP);
        assert!(queue.dequeue(at(66), &mut fates).is_none());
        assert_eq!(queue.blue, 11.0 * BLUE_UP - BLUE_DOWN);
    }

    #[test]
    fn a_lone_packet_is_never_dropped() {
        let mut queue = Cobalt { blue: 1.0, ..cobalt(Limit::Packets(10)) };
        let mut fates = Fates::default();
        for ms in 0..100 {
            queue.enqueue(at(10 * ms), data(0, 0, false), None, &mut fates);
            assert!(queue.dequeue(at(10 * ms + 9), &mut fates).is_some());
        }
        queue.enqueue(at(2_000), data(0, 0, false), None, &mut fates);
        queue.enqueue(at(2_000), data(0, 1, true), None, &mut fates);
        assert_eq!(queue.dequeue(at(2_000), &mut fates).map(|packet| packet.seq()), Some(1));
        assert_eq!(numbers(fates.dropped()), [0]);
    }
}
