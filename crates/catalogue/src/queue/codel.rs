//! CoDel, Controlled Delay: once the queueing delay has exceeded a target for a whole interval, packets are dropped on
//! departure, increasingly often until the delay is below the target.
//!
//! Source: RFC 8289, section 5 (the pseudo-code). Marks follow RFC 8290 section 4.2 and Linux: a marked packet departs,
//! while a dropped one makes room for the next. `ce_threshold` follows Linux (`net/sched/sch_codel.c`): a second
//! threshold, for data centres and L4S, which marks each departing packet that waited longer.
//!
//! Needs the arrival time of each packet, and a request for a packet whenever the transmitter is free.
//!
//! Difference: MAXPACKET, the backlog at which a queue counts as empty, is the largest packet of the run.

use super::{MARKS, QueueForm};
use crate::schema::{Fallback, Field, Form, Key, Kind, ScenarioError, Section};
use sparelane_core::{Dur, Time};
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{Discipline, Limit};
use std::any::Any;

const TARGET: &str = "delay that a queue may keep";
const INTERVAL: &str = "time for which the delay may exceed the target";

/// The keys of the law, for a single queue and for FQ-CoDel.
pub(super) const fn codel_keys(ecn: &'static str) -> [Key; 4] {
    [
        Key::new("target", Kind::SPAN, Fallback::Value("5ms"), TARGET).from("RFC 8289"),
        Key::new("interval", Kind::SPAN, Fallback::Value("100ms"), INTERVAL).from("RFC 8289"),
        Key::new("ecn", Kind::Flag, Fallback::Value(ecn), MARKS),
        Key::new(
            "ce_threshold",
            Kind::SPAN,
            Fallback::Nothing("none"),
            "mark each ECN-capable packet that waited longer, with ecn or without",
        )
        .from("Linux"),
    ]
}

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "codel",
    summary: "controlled delay: drops or marks at the head once the delay stays above a target",
    source: "RFC 8289",
    keys: &codel_keys("false"),
    read: |section, _| Ok(Discipline::of(read_law(section)?)),
};

/// Reads the keys of the law.
pub(super) fn read_law(section: &Section<'_>) -> Result<CoDelSpec, ScenarioError> {
    let (target, interval) = (section.need("target")?.time()?, section.need("interval")?.time()?);
    if interval < target {
        let field = section.own("interval").or(section.own("target"));
        let message =
            format!("interval is {interval}, and target {target}; allowed: an interval of the target or more");
        return Err(field.unwrap_or_else(|| section.whole_table().clone()).error(message));
    }
    let ce_threshold = section.maybe("ce_threshold", Field::time)?;
    let ce_marks = ce_threshold.map(|above| CeThreshold { above, only_ect_1: false });
    Ok(CoDelSpec { target, interval, ecn: section.need("ecn")?.flag()?, ce_threshold: ce_marks })
}

/// A delay above which departing packets are marked, whatever the law decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CeThreshold {
    /// The delay.
    pub above: Dur,
    /// True to mark only packets whose ECN field is ECT(1), false to mark all ECN-capable ones.
    pub only_ect_1: bool,
}

impl CeThreshold {
    /// Marks `packet`, which leaves at `now`, if it waited for longer and does not carry a mark yet.
    fn apply(self, now: Time, packet: &mut Packet, fates: &mut Fates) {
        if now - packet.came_at() > self.above && !packet.is_marked() && (packet.is_l4s() || !self.only_ect_1) {
            fates.mark(packet);
        }
    }
}

/// The settings of CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoDelSpec {
    /// The delay that a queue may keep.
    pub target: Dur,
    /// The time for which the delay may exceed the target.
    pub interval: Dur,
    /// True to mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// The threshold above which packets are marked in addition, if there is one.
    pub ce_threshold: Option<CeThreshold>,
}

impl Default for CoDelSpec {
    fn default() -> CoDelSpec {
        CoDelSpec { target: Dur::from_ms(5), interval: Dur::from_ms(100), ecn: false, ce_threshold: None }
    }
}

impl ActiveSpec for CoDelSpec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(CoDel::new(*self, place.limit, place.largest_bytes))
    }

    fn separates_classes(&self) -> bool {
        false
    }

    fn marks(&self) -> bool {
        self.ecn || self.ce_threshold.is_some()
    }

    fn equals(&self, other: &dyn ActiveSpec) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// The state of one queue's law: the variables of section 5.3.
#[derive(Clone, Debug, Default)]
pub(super) struct CoDelLaw {
    /// The time at which the delay will have exceeded the target for an interval, if it exceeds it now.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// The time for which `count` is remembered, in intervals (section 5.6 of the RFC; 8 in older code).
const MEMORY_INTERVALS: u64 = 16;

impl CoDelLaw {
    /// Returns the packet that leaves `buffer` at `now`.
    pub(super) fn dequeue(
        &mut self,
        now: Time,
        at: &CoDelAt,
        buffer: &mut Buffer,
        fates: &mut Fates,
    ) -> Option<Packet> {
        let mut packet = self.decide(now, at, buffer, fates)?;
        if let Some(threshold) = at.spec.ce_threshold {
            threshold.apply(now, &mut packet, fates);
        }
        Some(packet)
    }

    /// The law itself: returns the packet that leaves, which may be marked instead of dropped.
    fn decide(&mut self, now: Time, at: &CoDelAt, buffer: &mut Buffer, fates: &mut Fates) -> Option<Packet> {
        let (mut packet, mut ok_to_drop) = self.take(now, at, buffer);
        if self.dropping {
            self.dropping = ok_to_drop;
            // Several drops may be due since the last departure.
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let kept = self.signal(packet, at, fates);
                if kept.is_some() {
                    self.drop_next = at.control_law(self.drop_next, self.count);
                    return kept;
                }
                (packet, ok_to_drop) = self.take(now, at, buffer);
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = at.control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            packet = match self.signal(packet, at, fates) {
                None => self.take(now, at, buffer).0,
                kept => kept,
            };
            self.dropping = true;
            // A new dropping state soon after the last one continues at its rate (section 5.5).
            let since = self.count.saturating_sub(self.last_count);
            let is_recent = now.saturating_since(self.drop_next) < at.spec.interval.saturating_mul(MEMORY_INTERVALS);
            self.count = if since > 1 && is_recent { since } else { 1 };
            self.drop_next = at.control_law(now, self.count);
            self.last_count = self.count;
        }
        packet
    }

    /// The pseudo-code's dodequeue: returns the oldest packet and whether it may be dropped.
    fn take(&mut self, now: Time, at: &CoDelAt, buffer: &mut Buffer) -> (Option<Packet>, bool) {
        let packet = buffer.pop();
        let is_above =
            packet.is_some_and(|packet| now - packet.came_at() >= at.spec.target && buffer.bytes() > at.max_packet);
        let mut ok_to_drop = false;
        match self.first_above {
            _ if !is_above => self.first_above = None,
            None => self.first_above = Some(now + at.spec.interval),
            Some(first_above) => ok_to_drop = now >= first_above,
        }
        (packet, ok_to_drop)
    }

    /// Drops a packet, or marks and returns it.
    fn signal(&self, packet: Option<Packet>, at: &CoDelAt, fates: &mut Fates) -> Option<Packet> {
        let mut packet = packet?;
        if at.spec.ecn && fates.mark(&mut packet) {
            return Some(packet);
        }
        fates.drop(packet);
        None
    }
}

/// The settings of the law on one link.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoDelAt {
    pub(super) spec: CoDelSpec,
    /// MAXPACKET in bytes.
    pub(super) max_packet: u64,
}

impl CoDelAt {
    /// Returns the time of the next drop: t + interval / sqrt(count).
    fn control_law(&self, t: Time, count: u32) -> Time {
        t + Dur::from_ps((self.spec.interval.as_ps() as f64 / libm::sqrt(f64::from(count))) as u64)
    }
}

/// A queue under CoDel.
#[derive(Clone, Debug)]
struct CoDel {
    law: CoDelLaw,
    at: CoDelAt,
    limit: Limit,
    buffer: Buffer,
}

impl CoDel {
    fn new(spec: CoDelSpec, limit: Limit, max_packet: u64) -> CoDel {
        CoDel { law: CoDelLaw::default(), at: CoDelAt { spec, max_packet }, limit, buffer: Buffer::default() }
    }

    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        if self.buffer.has_room_for(&packet, self.limit) {
            self.buffer.push(now, packet);
        } else {
            fates.drop(packet);
        }
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        self.law.dequeue(now, &self.at, &mut self.buffer, fates)
    }

    fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }
}

impl ActiveLaw for CoDel {
    fn enqueue(&mut self, now: Time, packet: Packet, _idle_since: Option<Time>, fates: &mut Fates) {
        CoDel::enqueue(self, now, packet, fates);
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        CoDel::dequeue(self, now, fates)
    }

    fn backlog(&self) -> (u64, u64) {
        CoDel::backlog(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};

    fn codel(ecn: bool) -> CoDel {
        let spec = CoDelSpec { target: Dur::from_ms(5), interval: Dur::from_ms(100), ecn, ce_threshold: None };
        CoDel::new(spec, Limit::Packets(1000), 1000)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    /// Returns a queue of 200 packets that all arrived at time 0.
    fn filled(ecn: bool) -> (CoDel, Fates) {
        let (mut queue, mut fates) = (codel(ecn), Fates::default());
        (0..200).for_each(|seq| queue.enqueue(Time::ZERO, data(0, seq, ecn), &mut fates));
        (queue, fates)
    }

    /// One packet leaves every 10 ms. The first is above the target at 10 ms, and for an interval at 110 ms, when the
    /// first is dropped. Further drops are due 100 ms, 100/sqrt(2), 100/sqrt(3) and 100/2 ms later, at 210, 280.7,
    /// 338.4 and 388.4 ms, and happen with the packets that leave at 210, 290, 340 and 390 ms.
    #[test]
    fn drops_follow_the_square_root_of_their_count() {
        let (mut queue, mut fates) = filled(false);
        let mut drop_times = Vec::new();
        for ms in (10..=400).step_by(10) {
            let before = fates.dropped().len();
            assert!(queue.dequeue(at(ms), &mut fates).is_some());
            drop_times.extend((before..fates.dropped().len()).map(|_| ms));
        }
        assert_eq!(drop_times, [110, 210, 290, 340, 390]);
        assert_eq!(numbers(fates.dropped()), [10, 21, 30, 36, 42]);
    }

    #[test]
    fn a_marked_packet_departs_instead_of_being_dropped() {
        let (mut queue, mut fates) = filled(true);
        let mut mark_times = Vec::new();
        for ms in (10..=400).step_by(10) {
            let before = fates.marked();
            let left = queue.dequeue(at(ms), &mut fates).map(|packet| packet.seq());
            assert_eq!(left, Some(ms as u32 / 10 - 1));
            mark_times.extend((before..fates.marked()).map(|_| ms));
        }
        assert_eq!((mark_times, fates.dropped().len()), (vec![110, 210, 290, 340, 390], 0));
    }

    #[test]
    fn a_queue_of_one_packet_or_below_the_target_restarts_the_interval() {
        let (mut queue, mut fates) = (codel(false), Fates::default());
        for (seq, ms) in (0..).zip((0..1000).step_by(10)) {
            queue.enqueue(at(ms), data(0, seq, false), &mut fates);
            queue.enqueue(at(ms), data(0, seq, false), &mut fates);
            // The second leaves after 9 ms with no packet behind it.
            assert!(queue.dequeue(at(ms + 4), &mut fates).is_some() && queue.dequeue(at(ms + 9), &mut fates).is_some());
        }
        assert!(fates.dropped().is_empty() && queue.law.first_above.is_none());
    }

    /// After three drops (count is 3 at the last) the delay falls. Congestion within 16 intervals continues with count
    /// 3 - 1 = 2: the second drop is due after 100/sqrt(2) ms, not 100 ms.
    #[test]
    fn the_rate_of_drops_is_remembered_through_a_short_pause() {
        for (pause, count) in [(1_000, 2), (2_000, 1)] {
            let (mut queue, mut fates) = filled(false);
            (10..=300).step_by(10).for_each(|ms| assert!(queue.dequeue(at(ms), &mut fates).is_some()));
            assert_eq!((fates.dropped().len(), queue.law.count, queue.law.last_count), (3, 3, 1));
            while queue.dequeue(at(301), &mut fates).is_some() {}
            assert!(!queue.law.dropping);
            let start = 301 + pause;
            (0..100).for_each(|seq| queue.enqueue(at(start), data(0, seq, false), &mut fates));
            let before = fates.dropped().len();
            (10..=110).step_by(10).for_each(|ms| assert!(queue.dequeue(at(start + ms), &mut fates).is_some()));
            assert_eq!((fates.dropped().len() - before, queue.law.count), (1, count), "after {pause} ms");
        }
    }

    /// Packets leave every millisecond from 1 ms on. Those that leave at 3 ms or later waited for longer than 2 ms. The law
    /// itself is below its target, or has no ECN.
    #[test]
    fn packets_above_the_marking_threshold_are_marked_with_ecn_or_without() {
        for (ecn, only_ect_1) in [(false, false), (true, false), (false, true)] {
            let ce_threshold = Some(CeThreshold { above: Dur::from_ms(2), only_ect_1 });
            let spec = CoDelSpec { ecn, ce_threshold, ..CoDelSpec::default() };
            assert!(spec.marks());
            let (mut queue, mut fates) = (CoDel::new(spec, Limit::Packets(1000), 1000), Fates::default());
            for seq in 0..2 {
                queue.enqueue(Time::ZERO, data(0, 3 * seq, true), &mut fates);
                queue.enqueue(Time::ZERO, data(0, 3 * seq + 1, true).as_l4s(), &mut fates);
                queue.enqueue(Time::ZERO, data(0, 3 * seq + 2, false), &mut fates);
            }
            let left: Vec<_> = (1..=6).filter_map(|ms| queue.dequeue(at(ms), &mut fates)).collect();
            let marked = left.iter().filter(|packet| packet.is_marked());
            // The packet that leaves at 3 ms is not ECN-capable.
            assert_eq!(numbers(marked), if only_ect_1 { vec![4] } else { vec![3, 4] });
            assert_eq!((fates.marked(), fates.dropped().len()), (if only_ect_1 { 1 } else { 2 }, 0));
        }
    }

    /// A packet that the law marks is not counted again.
    #[test]
    fn a_packet_is_marked_once() {
        let (mut queue, mut fates) = filled(true);
        queue.at.spec.ce_threshold = Some(CeThreshold { above: Dur::from_ms(5), only_ect_1: false });
        (10..=400).step_by(10).for_each(|ms| assert!(queue.dequeue(at(ms), &mut fates).is_some()));
        assert_eq!((fates.marked(), fates.dropped().len()), (40, 0));
    }

    #[test]
    fn packets_that_do_not_fit_are_dropped_on_arrival() {
        let (mut queue, mut fates) = (CoDel { limit: Limit::Bytes(2_500), ..codel(true) }, Fates::default());
        (0..3).for_each(|seq| queue.enqueue(Time::ZERO, data(0, seq, true), &mut fates));
        assert_eq!((numbers(fates.dropped()), queue.backlog()), (vec![2], (2000, 2)));
    }
}
