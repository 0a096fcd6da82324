//! Faults and RCP's meter, which a packet passes on arrival at a link, before its queue. The meter also writes its rate
//! into packets that leave the queue.
//!
//! They are boxed: a link without faults and meter pays nothing, because its packets never leave the fast path.

use super::LinkSpec;
use crate::routing::network::Loss;
use crate::wire::effects::{Gate, Passage};
use crate::wire::loss::RandomLoss;
use crate::wire::packet::{Flags, Packet};
use crate::wire::rcp_meter::RcpMeter;
use sparelane_core::Time;

/// Segments of one flow to be dropped on arrival.
#[derive(Clone, Debug)]
pub(crate) struct PlannedDrop {
    pub(crate) flow: u32,
    /// Segments, each with the number of transmissions that are still to be dropped.
    pub(crate) segments: Vec<(u32, u32)>,
}

impl PlannedDrop {
    /// Returns true if `packet` is to be dropped now, and counts it.
    pub(crate) fn takes(&mut self, packet: &Packet) -> bool {
        let hit = self.segments.iter_mut().find(|(segment, copies)| *segment == packet.seq() && *copies > 0);
        match hit {
            Some((_, copies)) if packet.flow() == self.flow && packet.flags().kind() == Flags::DATA => {
                *copies -= 1;
                true
            }
            _ => false,
        }
    }
}

/// Causes of loss other than a full queue.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    random: Option<RandomLoss>,
    gate: Option<Box<Gate>>,
    /// True while the link loses all arriving packets on the wire.
    pub(crate) is_down: bool,
    pub(crate) planned: Vec<PlannedDrop>,
}

impl Faults {
    pub(crate) fn new(spec: &LinkSpec, seed: u64, link: u64) -> Faults {
        let (random, gate) = (RandomLoss::new(spec.loss, seed, link), spec.gate(seed, link).map(Box::new));
        Faults { random, gate, is_down: false, planned: Vec::new() }
    }

    fn none() -> Faults {
        Faults { random: None, gate: None, is_down: false, planned: Vec::new() }
    }

    /// Discards the scripted drops of the flow in this slot.
    pub(crate) fn forget(&mut self, flow: u32) {
        self.planned.retain(|planned| planned.flow != flow);
    }

    /// Changes the random loss on link number `link`.
    pub(crate) fn set_loss(&mut self, loss: Loss, seed: u64, link: u64) {
        match &mut self.random {
            Some(random) => random.change(loss),
            none => *none = RandomLoss::new(loss, seed, link),
        }
    }

    /// Decides the fate of a packet that arrives at `now`. Returns true if it is dropped at once; a packet to be lost on
    /// the wire is marked as such.
    pub(crate) fn drops(&mut self, now: Time, packet: &mut Packet) -> bool {
        if self.planned.iter_mut().any(|planned| planned.takes(packet)) {
            return true;
        }
        let passage = self.gate.as_mut().map_or(Passage::Passes, |gate| gate.pass(now, packet));
        let is_lost = self.random.as_mut().is_some_and(|random| random.takes(packet));
        if is_lost || self.is_down || passage == Passage::Lost {
            packet.lose_on_wire();
        }
        passage == Passage::Dropped
    }
}

/// The stage in front of a link's queue. A link with an active queue always has one, so that all its packets take the slow
/// path.
#[derive(Clone, Debug)]
pub(super) struct Ingress {
    pub(super) faults: Faults,
    pub(super) meter: Option<RcpMeter>,
    /// Packets pass a stage at the far end.
    pub(super) has_stage: bool,
}

impl Ingress {
    /// The ingress of a link, if it needs one. `has_active_queue` is true if all packets must take the slow path.
    pub(super) fn new(spec: &LinkSpec, has_active_queue: bool, seed: u64, number: u64) -> Option<Ingress> {
        let faults = Faults::new(spec, seed, number);
        let meter = spec.queue.rcp.map(|rcp| RcpMeter::new(rcp, spec.rate));
        let has_stage = spec.has_stage();
        let is_faulty = faults.random.is_some() || faults.gate.is_some();
        let is_needed = is_faulty || meter.is_some() || has_stage || has_active_queue;
        is_needed.then_some(Ingress { faults, meter, has_stage })
    }

    /// An ingress without faults and meter.
    pub(super) fn open() -> Ingress {
        Ingress { faults: Faults::none(), meter: None, has_stage: false }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Link;
    use super::*;
    use crate::config::{Discipline, RcpSpec};
    use sparelane_core::{Dur, Rate, Time};

    /// A link with RCP's meter.
    fn metered(discipline: Discipline) -> LinkSpec {
        let example = LinkSpec::example(discipline, Dur::from_ms(3), Some(RcpSpec::default()));
        LinkSpec { is_controlled: true, ..example }
    }

    /// Thirty packets arrive at once. In the first interval of 10 ms, y is 24 Mb/s, so R = 400 kb/s falls by
    /// (0.05)(0.4)(16 / 8) = 4 % to 384 kb/s. The second interval is idle, so R rises by (0.05)(0.4) = 2 % to 391 kb/s.
    #[test]
    fn a_packet_gets_the_rate_of_the_time_at_which_it_departs() {
        for discipline in [Discipline::Fifo, Discipline::Priority] {
            let mut link = Link::new(&metered(discipline), 1, 0);
            for seq in 0..30 {
                let mut packet = Packet::example(0, seq, 1000, false);
                packet.request_rate(Rate::from_mbps(8), None);
                _ = link.send(Time::ZERO, &packet, &mut Vec::new());
            }
            let mut rates = Vec::new();
            while link.next_event() != Time::NEVER {
                let at = link.next_event();
                assert_eq!(at, Time::ZERO + Dur::from_ms(4 + rates.len() as u64));
                rates.push(link.deliver(at).trigger());
                link.next_after(at);
            }
            assert_eq!(rates, [[400; 10], [384; 10], [391; 10]].concat());
        }
    }
}
