//! FQ-CoDel: flows share the link by deficit round robin, new flows are served first, and each queue is under CoDel.
//!
//! Source: RFC 8290, section 4. Needs what CoDel needs, plus a hash of the flow; `fair.rs` has the scheduler.
//!
//! Differences: those of the scheduler. The queue's own bytes decide whether CoDel may drop, as in RFC 8289; in Linux it
//! is the bytes of all queues. If the limit is in bytes, heads are dropped until it is met.

use super::QueueForm;
use super::codel::{CoDelAt, CoDelLaw, CoDelSpec, codel_keys, read_law};
use super::fair::{FLOWS, FairQueues, FairSpec, QUANTUM};
use crate::schema::{Fallback, Form, Key, Kind};
use sparelane_core::Time;
use sparelane_sim::Discipline;
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Fates, Packet, Place};
use std::any::Any;

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
        FLOWS.from("RFC 8290"),
        QUANTUM.from("RFC 8290"),
    ],
    read: |section, _| {
        let mut codel = read_law(section)?;
        if let Some(threshold) = &mut codel.ce_threshold {
            threshold.only_ect_1 = section.need("ce_threshold_selector")?.choice()? == ECT_1;
        }
        Ok(Discipline::of(FqCoDelSpec { codel, fair: FairSpec::read(section)? }))
    },
};

/// The settings of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCoDelSpec {
    /// The law of each queue.
    pub codel: CoDelSpec,
    /// The scheduler.
    pub fair: FairSpec,
}

impl Default for FqCoDelSpec {
    fn default() -> FqCoDelSpec {
        FqCoDelSpec { codel: CoDelSpec { ecn: true, ..CoDelSpec::default() }, fair: FairSpec::default() }
    }
}

impl ActiveSpec for FqCoDelSpec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(FqCoDel::new(*self, place))
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

/// Queues under CoDel.
#[derive(Clone, Debug)]
struct FqCoDel {
    at: CoDelAt,
    queues: FairQueues<CoDelLaw>,
}

impl FqCoDel {
    fn new(spec: FqCoDelSpec, place: &Place) -> FqCoDel {
        let at = CoDelAt { spec: spec.codel, max_packet: place.largest_bytes };
        FqCoDel { at, queues: FairQueues::new(spec.fair, place) }
    }

    /// Section 4.1: adds a packet and enforces the limit.
    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        self.queues.push(now, self.queues.classify(&packet), packet);
        self.queues.enforce_limit(DROP_BATCH, fates);
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        let at = &self.at;
        self.queues.dequeue(|law, buffer| law.dequeue(now, at, buffer, fates))
    }

    fn backlog(&self) -> (u64, u64) {
        self.queues.backlog()
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
    use sparelane_core::{Dur, Rate};
    use sparelane_sim::Limit;

    fn queue(limit: Limit, quantum: u64) -> FqCoDel {
        let codel = CoDelSpec { target: Dur::from_ms(5), interval: Dur::from_ms(100), ..CoDelSpec::default() };
        let fair = FairSpec { flows: 1024, quantum: Some(quantum) };
        let place = Place { limit, rate: Rate::from_mbps(1), largest_bytes: 1000, seed: 1, link: 0 };
        FqCoDel::new(FqCoDelSpec { codel, fair }, &place)
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
}
