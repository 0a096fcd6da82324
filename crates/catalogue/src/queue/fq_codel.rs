//! FQ-CoDel: flows share the link by deficit round robin, new flows are served first, and each queue is under CoDel.
//!
//! Source: RFC 8290, section 4. Needs what CoDel needs, plus a hash of the flow.
//!
//! Differences: the hash covers the flow and its direction, with a perturbation drawn for the link from the run's seed.
//! A queue is skipped when its credits are used up, including zero. The RFC's text says "negative", but "dequeued at
//! least a quantum" in the same sentence and Linux include zero. The queue's own bytes decide whether CoDel may drop,
//! as in RFC 8289; in Linux it is the bytes of all queues. If the limit is in bytes, heads are dropped until it is met.

use super::QueueForm;
use super::codel::{CoDelAt, CoDelLaw, CoDelSpec, codel_keys, read_law};
use crate::schema::{Fallback, Field, Form, Key, Kind};
use sparelane_core::{Domain, Stream, Time};
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{Discipline, Limit};
use std::any::Any;
use std::collections::VecDeque;

const CODEL: [Key; 4] = codel_keys("true");

/// The words for the packets that `ce_threshold` marks.
const ANY: &str = "any";
const ECT_1: &str = "ect-1";

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "fq-codel",
    summary: "flows take turns, new flows first, and each is under codel",
    source: "RFC 8290",
    keys: &[
        CODEL[0],
        CODEL[1],
        CODEL[2].from("RFC 8290"),
        CODEL[3],
        Key::new(
            "ce_threshold_selector",
            Kind::Choice(&[ANY, ECT_1]),
            Fallback::Value(ANY),
            "the packets that ce_threshold marks: all ECN-capable ones, or those with ECT(1) (L4S)",
        )
        .from("Linux"),
        Key::new(
            "flows",
            Kind::Whole { min: 1, max: 65_536 },
            Fallback::Value("1024"),
            "number of queues that share the link",
        )
        .from("RFC 8290"),
        Key::new(
            "quantum",
            Kind::Size { min: 1, max: 1 << 30 },
            Fallback::Nothing("the largest packet of the run"),
            "bytes that a queue sends per turn",
        )
        .from("RFC 8290"),
    ],
    read: |section, _| {
        let mut codel = read_law(section)?;
        if let Some(threshold) = &mut codel.ce_threshold {
            threshold.only_ect_1 = section.need("ce_threshold_selector")?.choice()? == ECT_1;
        }
        Ok(Discipline::of(FqCoDelSpec {
            codel,
            flows: section.need("flows")?.whole()? as u32,
            quantum: section.maybe("quantum", Field::size)?,
        }))
    },
};

/// The settings of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCoDelSpec {
    /// The law of each queue.
    pub codel: CoDelSpec,
    /// Number of queues.
    pub flows: u32,
    /// Bytes that a queue may send per round; `None` means the largest packet of the run.
    pub quantum: Option<u64>,
}

impl Default for FqCoDelSpec {
    fn default() -> FqCoDelSpec {
        FqCoDelSpec { codel: CoDelSpec { ecn: true, ..CoDelSpec::default() }, flows: 1024, quantum: None }
    }
}

impl ActiveSpec for FqCoDelSpec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(FqCoDel::new(*self, place.limit, place.largest_bytes, place.seed, place.link))
    }

    fn separates_classes(&self) -> bool {
        false
    }

    fn marks(&self) -> bool {
        self.codel.marks()
    }

    fn tells_flows_apart(&self) -> bool {
        true
    }

    fn equals(&self, other: &dyn ActiveSpec) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// Maximum number of packets dropped at once from the longest queue (section 4.1).
const DROP_BATCH: u64 = 64;

/// The state of a queue in the round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Inactive,
    Active,
}

/// The queue of one hash value.
#[derive(Clone, Debug, Default)]
struct FlowQueue {
    buffer: Buffer,
    law: CoDelLaw,
    /// Bytes that it may still send in this round.
    credits: i64,
    standing: Standing,
}

/// The queues, and the lists of active ones.
#[derive(Clone, Debug)]
struct FqCoDel {
    at: CoDelAt,
    quantum: i64,
    limit: Limit,
    /// The queues, created when their first packet arrives.
    queues: Vec<Option<Box<FlowQueue>>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    bytes: u64,
    packets: u64,
    perturbation: u64,
}

impl FqCoDel {
    fn new(spec: FqCoDelSpec, limit: Limit, max_packet: u64, seed: u64, link: u64) -> FqCoDel {
        FqCoDel {
            at: CoDelAt { spec: spec.codel, max_packet },
            quantum: spec.quantum.unwrap_or(max_packet) as i64,
            limit,
            queues: vec![None; spec.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
            perturbation: Stream::new(seed, Domain::ActiveQueue, link).next_u64(),
        }
    }

    /// Returns the number of the queue of a packet's flow.
    fn classify(&self, packet: &Packet) -> usize {
        let key = u64::from(packet.flow()) << 1 | u64::from(packet.goes_back());
        Stream::new(self.perturbation, Domain::ActiveQueue, key).below(self.queues.len() as u64) as usize
    }

    /// Section 4.1: adds a packet and enforces the limit.
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        let number = self.classify(&packet);
        self.bytes += packet.wire_bytes();
        self.packets += 1;
        let queue = self.queues[number].get_or_insert_default();
        queue.buffer.push(now, packet);
        if queue.standing == Standing::Inactive {
            queue.standing = Standing::Active;
            queue.credits = self.quantum;
            self.new.push_back(number);
        }
        while self.is_over_limit() {
            self.drop_from_longest(fates);
        }
    }

    fn is_over_limit(&self) -> bool {
        match self.limit {
            Limit::Bytes(limit) => self.bytes > limit,
            Limit::Packets(limit) => self.packets > limit,
        }
    }

    /// Drops half of the packets of the queue with the most bytes, from its head, at most a batch.
    fn drop_from_longest(&mut self, fates: &mut Fates) {
        let queues = self.queues.iter_mut().flatten();
        let Some(longest) =
            queues.reduce(|most, queue| if queue.buffer.bytes() > most.buffer.bytes() { queue } else { most })
        else {
            return;
        };
        let count = longest.buffer.packets().div_ceil(2).min(DROP_BATCH);
        for packet in (0..count).map_while(|_| longest.buffer.pop()) {
            self.bytes -= packet.wire_bytes();
            self.packets -= 1;
            fates.drop(packet);
        }
    }

    /// Section 4.2: returns the next packet to send.
    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let Some(queue) = &mut self.queues[number] else { return None };
            // Out of credits: the queue gets a quantum and goes to the end of the old queues.
            if queue.credits <= 0 {
                queue.credits += self.quantum;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let (bytes, packets) = (queue.buffer.bytes(), queue.buffer.packets());
            let packet = queue.law.dequeue(now, &self.at, &mut queue.buffer, fates);
            self.bytes -= bytes - queue.buffer.bytes();
            self.packets -= packets - queue.buffer.packets();
            if let Some(packet) = packet {
                queue.credits -= packet.wire_bytes() as i64;
                return Some(packet);
            }
            // An empty new queue becomes old first, so that a flow cannot stay new by sending single packets.
            list.pop_front();
            if from_new {
                self.old.push_back(number);
            } else {
                queue.standing = Standing::Inactive;
            }
        }
    }

    fn backlog(&self) -> (u64, u64) {
        (self.bytes, self.packets)
    }
}

impl ActiveLaw for FqCoDel {
    fn enqueue(&mut self, now: Time, packet: Packet, _idle_since: Option<Time>, fates: &mut Fates) {
        FqCoDel::enqueue(self, now, packet, fates);
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        FqCoDel::dequeue(self, now, fates)
    }

    fn backlog(&self) -> (u64, u64) {
        FqCoDel::backlog(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};
    use sparelane_core::Dur;

    fn queue(limit: Limit, quantum: u64) -> FqCoDel {
        let codel = CoDelSpec { target: Dur::from_ms(5), interval: Dur::from_ms(100), ..CoDelSpec::default() };
        FqCoDel::new(FqCoDelSpec { codel, flows: 1024, quantum: Some(quantum) }, limit, 1000, 1, 0)
    }

    /// Returns the flows of the packets in order of departure.
    fn drain(queue: &mut FqCoDel, fates: &mut Fates) -> Vec<u32> {
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, fates)).map(|packet| packet.flow()).collect()
    }

    fn fill(queue: &mut FqCoDel, flow: u32, packets: u32, fates: &mut Fates) {
        (0..packets).for_each(|seq| queue.enqueue(Time::ZERO, data(flow, seq, false), fates));
    }

    /// With a quantum of two packets, flows of four packets take turns by two. A later flow is new and goes first.
    #[test]
    fn flows_take_turns_by_their_quantum_and_new_ones_are_first() {
        let (mut queue, mut fates) = (queue(Limit::Packets(100), 2000), Fates::default());
        fill(&mut queue, 1, 4, &mut fates);
        fill(&mut queue, 2, 4, &mut fates);
        let first: Vec<_> = (0..3).filter_map(|_| queue.dequeue(Time::ZERO, &mut fates)).map(|p| p.flow()).collect();
        assert_eq!(first, [1, 1, 2]);
        fill(&mut queue, 3, 1, &mut fates);
        // Flow 2 is still new and precedes flow 3; flow 1 is old.
        assert_eq!(drain(&mut queue, &mut fates), [2, 3, 1, 1, 2, 2]);
        assert!(fates.dropped().is_empty() && queue.backlog() == (0, 0));
    }

    /// An empty new queue becomes old before it is removed: a flow cannot stay new by sending one packet at a time.
    #[test]
    fn a_flow_that_sends_one_packet_at_a_time_does_not_stay_new() {
        let (mut queue, mut fates) = (queue(Limit::Packets(100), 1000), Fates::default());
        fill(&mut queue, 1, 3, &mut fates);
        fill(&mut queue, 2, 1, &mut fates);
        let mut order = Vec::new();
        for _ in 0..4 {
            order.extend(queue.dequeue(Time::ZERO, &mut fates).map(|packet| packet.flow()));
            if order.last() == Some(&2) {
                fill(&mut queue, 2, 1, &mut fates);
            }
        }
        assert_eq!(order, [1, 2, 1, 2]);
    }

    #[test]
    fn an_overflow_drops_from_the_head_of_the_longest_queue() {
        let (mut queue, mut fates) = (queue(Limit::Packets(10), 1000), Fates::default());
        fill(&mut queue, 1, 3, &mut fates);
        fill(&mut queue, 2, 7, &mut fates);
        fill(&mut queue, 1, 1, &mut fates);
        // Of seven packets of flow 2, four are dropped.
        assert_eq!((numbers(fates.dropped()), queue.backlog()), (vec![0, 1, 2, 3], (7000, 7)));
        assert!(fates.dropped().iter().all(|packet| packet.flow() == 2));
    }

    /// Each queue has its own law: only the standing one is cut.
    #[test]
    fn only_the_standing_queue_has_drops() {
        let (mut queue, mut fates) = (queue(Limit::Packets(1000), 1000), Fates::default());
        fill(&mut queue, 1, 200, &mut fates);
        for ms in (10..400).step_by(10) {
            let now = Time::ZERO + Dur::from_ms(ms);
            queue.enqueue(now, data(2, 0, false), &mut fates);
            (0..2).for_each(|_| assert!(queue.dequeue(now, &mut fates).is_some()));
        }
        assert!(fates.dropped().len() > 2 && fates.dropped().iter().all(|packet| packet.flow() == 1));
    }

    #[test]
    fn both_directions_of_a_flow_have_their_own_queues_and_links_hash_differently() {
        let (one, other) =
            (queue(Limit::Packets(9), 1000), FqCoDel { perturbation: 7, ..queue(Limit::Packets(9), 1000) });
        let back = |flow| {
            let mut packet = data(flow, 0, false);
            packet = packet.going_back();
            packet
        };
        let differ =
            |a: &dyn Fn(u32) -> usize, b: &dyn Fn(u32) -> usize| (0..100).filter(|&flow| a(flow) != b(flow)).count();
        let there = |flow| one.classify(&data(flow, 0, false));
        assert!(differ(&there, &|flow| one.classify(&back(flow))) > 90);
        assert!(differ(&there, &|flow| other.classify(&data(flow, 0, false))) > 90);
        assert_eq!(differ(&there, &|flow| one.classify(&data(flow, 9, true))), 0);
    }
}
