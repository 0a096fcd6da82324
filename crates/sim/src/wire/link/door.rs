//! What a packet meets as it comes to a link, before its queue: drops and losses that no queue decides, and RCP's meter.

use super::LinkSpec;
use crate::routing::network::Loss;
use crate::wire::loss::RandomLoss;
use crate::wire::packet::{Flags, Packet};
use crate::wire::rcp_meter::RcpMeter;

/// Chosen segments of one flow, to be dropped as they come.
#[derive(Clone, Debug)]
pub(crate) struct PlannedDrop {
    pub(crate) flow: u32,
    /// Segment and how many transmissions of it are still to be dropped.
    pub(crate) segments: Vec<(u32, u32)>,
}

impl PlannedDrop {
    /// Whether `packet` is to be dropped now.
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

/// What makes packets vanish besides a full queue.
#[derive(Clone, Debug)]
pub(crate) struct Hazards {
    random: Option<RandomLoss>,
    /// Whether all is lost on the wire that comes to the link.
    pub(super) is_down: bool,
    pub(crate) planned: Vec<PlannedDrop>,
}

impl Hazards {
    pub(crate) fn new(loss: Loss, seed: u64, link: u64) -> Hazards {
        Hazards { random: RandomLoss::new(loss, seed, link), is_down: false, planned: Vec::new() }
    }

    fn none() -> Hazards {
        Hazards { random: None, is_down: false, planned: Vec::new() }
    }

    /// Forgets what was planned for the flow in this slot.
    pub(crate) fn forget(&mut self, flow: u32) {
        self.planned.retain(|planned| planned.flow != flow);
    }

    /// From now on another loss, on link number `link`.
    pub(super) fn set_loss(&mut self, loss: Loss, seed: u64, link: u64) {
        match &mut self.random {
            Some(random) => random.change(loss),
            none => *none = RandomLoss::new(loss, seed, link),
        }
    }

    /// Decides the fate of a packet that comes to the link: dropped at once, lost on the wire, or neither.
    pub(crate) fn drops(&mut self, packet: &mut Packet) -> bool {
        if self.planned.iter_mut().any(|planned| planned.takes(packet)) {
            return true;
        }
        if self.random.as_mut().is_some_and(|random| random.takes(packet)) || self.is_down {
            packet.lose_on_wire();
        }
        false
    }
}

/// What a packet meets at the door of a link, before its queue. A link with an active queue has one in any case: every packet
/// then comes by the careful way.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) hazards: Hazards,
    pub(super) meter: Option<RcpMeter>,
}

impl Door {
    /// The door of a link, if it has anything.
    pub(super) fn new(spec: &LinkSpec, seed: u64, number: u64) -> Option<Door> {
        let hazards = Hazards::new(spec.loss, seed, number);
        let meter = spec.queue.rcp.map(|rcp| RcpMeter::new(rcp, spec.rate));
        let guards = spec.queue.discipline.active().is_some();
        (hazards.random.is_some() || meter.is_some() || guards).then_some(Door { hazards, meter })
    }

    pub(super) fn open() -> Door {
        Door { hazards: Hazards::none(), meter: None }
    }
}
