//! Queues of flows that share a link by deficit round robin, new flows first: the scheduler of FQ-CoDel and FQ-PIE.
//!
//! Source: RFC 8290, section 4. Each flow is hashed to one of a number of queues. A queue that becomes active is new, and
//! new queues are served before old ones. Each queue sends a quantum of bytes per turn, and has a law of its own that
//! may drop or mark its packets.
//!
//! Differences: the hash covers the flow and its direction, with a perturbation drawn for the link from the run's seed.
//! A queue is skipped when its credits are used up, including zero. The RFC's text says "negative", but "dequeued at
//! least a quantum" in the same sentence and Linux include zero.

use crate::schema::{Fallback, Field, Key, Kind, ScenarioError, Section};
use sparelane_core::{Domain, Stream, Time};
use sparelane_sim::Limit;
use sparelane_sim::qdisc::{Buffer, Fates, Packet, Place};
use std::collections::VecDeque;

/// The key for the number of queues.
pub(super) const FLOWS: Key = Key::new(
    "flows",
    Kind::Whole { min: 1, max: 65_536 },
    Fallback::Value("1024"),
    "number of queues that share the link",
);

/// The key for the quantum.
pub(super) const QUANTUM: Key = Key::new(
    "quantum",
    Kind::Size { min: 1, max: 1 << 30 },
    Fallback::Nothing("the largest packet of the run"),
    "bytes that a queue sends per turn",
);

/// The settings of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FairSpec {
    /// Number of queues.
    pub flows: u32,
    /// Bytes that a queue may send per round; `None` means the largest packet of the run.
    pub quantum: Option<u64>,
}

impl Default for FairSpec {
    fn default() -> FairSpec {
        FairSpec { flows: 1024, quantum: None }
    }
}

impl FairSpec {
    /// Reads the keys [`FLOWS`] and [`QUANTUM`].
    pub(super) fn read(section: &Section<'_>) -> Result<FairSpec, ScenarioError> {
        let flows = section.need("flows")?.whole()? as u32;
        Ok(FairSpec { flows, quantum: section.maybe("quantum", Field::size)? })
    }
}

/// The state of a queue in the round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Inactive,
    Active,
}

/// The queue of one hash value, with its law `L`.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowQueue<L> {
    pub(super) buffer: Buffer,
    pub(super) law: L,
    /// Bytes that it may still send in this round.
    credits: i64,
    standing: Standing,
}

/// The queues, and the lists of active ones.
#[derive(Clone, Debug)]
pub(super) struct FairQueues<L> {
    quantum: i64,
    limit: Limit,
    /// The queues, created when their first packet arrives.
    queues: Vec<Option<Box<FlowQueue<L>>>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    bytes: u64,
    packets: u64,
    perturbation: u64,
}

impl<L: Clone + Default> FairQueues<L> {
    pub(super) fn new(spec: FairSpec, place: &Place) -> FairQueues<L> {
        FairQueues {
            quantum: spec.quantum.unwrap_or(place.largest_bytes) as i64,
            limit: place.limit,
            queues: vec![None; spec.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
            perturbation: Stream::new(place.seed, Domain::ActiveQueue, place.link).next_u64(),
        }
    }

    /// Returns the number of the queue of a packet's flow.
    pub(super) fn classify(&self, packet: &Packet) -> usize {
        let key = u64::from(packet.flow()) << 1 | u64::from(packet.goes_back());
        Stream::new(self.perturbation, Domain::ActiveQueue, key).below(self.queues.len() as u64) as usize
    }

    /// The queue with this number.
    pub(super) fn queue(&mut self, number: usize) -> &mut FlowQueue<L> {
        self.queues[number].get_or_insert_default()
    }

    /// Returns true if `packet` fits within the limit of all queues.
    pub(super) fn has_room_for(&self, packet: &Packet) -> bool {
        self.limit.has_room(self.bytes, self.packets, packet.wire_bytes())
    }

    /// Section 4.1: appends a packet to the queue with this number, which becomes active.
    pub(super) fn push(&mut self, now: Time, number: usize, packet: Packet) {
        self.bytes += packet.wire_bytes();
        self.packets += 1;
        let queue = self.queues[number].get_or_insert_default();
        queue.buffer.push(now, packet);
        if queue.standing == Standing::Inactive {
            queue.standing = Standing::Active;
            queue.credits = self.quantum;
            self.new.push_back(number);
        }
    }

    /// Drops packets until the limit is met: each time half of the packets of the queue with the most bytes, from its head,
    /// but at most `batch`.
    pub(super) fn enforce_limit(&mut self, batch: u64, fates: &mut Fates) {
        while self.limit.is_exceeded(self.bytes, self.packets) {
            let queues = self.queues.iter_mut().flatten();
            let longest =
                queues.reduce(|most, queue| if queue.buffer.bytes() > most.buffer.bytes() { queue } else { most });
            let Some(longest) = longest else { return };
            let count = longest.buffer.packets().div_ceil(2).min(batch);
            for packet in (0..count).map_while(|_| longest.buffer.pop()) {
                self.bytes -= packet.wire_bytes();
                self.packets -= 1;
                fates.drop(packet);
            }
        }
    }

    /// Section 4.2: returns the next packet to send. The law of a queue takes it by `take`, which may also drop packets.
    pub(super) fn dequeue(&mut self, mut take: impl FnMut(&mut L, &mut Buffer) -> Option<Packet>) -> Option<Packet> {
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
            let packet = take(&mut queue.law, &mut queue.buffer);
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

    /// Waiting bytes and packets.
    pub(super) fn backlog(&self) -> (u64, u64) {
        (self.bytes, self.packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::data;
    use sparelane_core::Rate;

    /// Queues without a law.
    fn queues(link: u64) -> FairQueues<()> {
        let spec = FairSpec { flows: 1024, quantum: Some(1000) };
        let limit = Limit::Packets(9);
        FairQueues::new(spec, &Place { limit, rate: Rate::from_mbps(1), largest_bytes: 1000, seed: 1, link })
    }

    #[test]
    fn both_directions_of_a_flow_have_their_own_queues_and_links_hash_differently() {
        let (one, other) = (queues(0), queues(7));
        let there = |flow| one.classify(&data(flow, 0, false));
        let differ =
            |a: &dyn Fn(u32) -> usize, b: &dyn Fn(u32) -> usize| (0..100).filter(|&flow| a(flow) != b(flow)).count();
        assert!(differ(&there, &|flow| one.classify(&data(flow, 0, false).going_back())) > 90);
        assert!(differ(&there, &|flow| other.classify(&data(flow, 0, false))) > 90);
        assert_eq!(differ(&there, &|flow| one.classify(&data(flow, 9, true))), 0);
    }
}
