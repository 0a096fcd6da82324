//! A world that is one of several domains: flows that it shares with others, and packets that come and go.
//!
//! A flow between two domains has an entry in each of them. The one lives by its sender, the other by its receiver, and
//! the other end of each is never used. A flow inside a domain is as in a run without domains. Flows are planned from
//! outside, with their number, their slots and their routes; see `domains.rs`.

use super::flow::{Border, Flow};
use super::start::Place;
use super::{Parts, Step, World};
use crate::domains::fabric::DomainFabric;
use crate::engine::event_queue::EventQueue;
use crate::engine::exits::Parcel;
use crate::engine::fabric::{Ahead, Alarm, Fabric};
use crate::flow::{FlowSpec, NoFlows};
use crate::observe::{FlowView, Observers};
use crate::physics::PhysicsViolation;
use crate::records::Outcome;
use crate::wire::packet::{Flags, Packet};
use sparelane_cc::CongestionControl;
use sparelane_core::{Time, prefetch_start};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

/// Added to a flow's number in the flow field of packets that pass through a domain in which the flow has no end. The
/// result is beyond all slots of flows.
pub(crate) const PASSING: u32 = 1 << 30;

/// A flow that is going to start, as one domain sees it.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) id: u32,
    pub(crate) spec: FlowSpec,
    pub(crate) slot: u32,
    /// The positions of its routes there and back, if they begin here.
    pub(crate) positions: [u32; 2],
    /// Its links, there and back.
    pub(crate) paths: Arc<[Vec<u32>; 2]>,
    /// The ends of the flow that are in this domain.
    pub(crate) ends: Ends,
    /// True if its packets pass through other domains.
    pub(crate) crosses: bool,
}

/// The ends of a flow that are in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Both,
    Sender,
    Receiver,
}

/// The time of an event, and whether it followed the start of flows at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant {
    pub(crate) at: Time,
    pub(crate) after_starts: bool,
}

/// A flow that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) at: Instant,
}

/// A packet that was lost in a domain in which its flow has no end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostPassing {
    pub(crate) flow: u32,
    pub(crate) is_data: bool,
    pub(crate) at: Instant,
}

/// Flows planned by other domains, and reports for them.
#[derive(Debug, Default)]
pub(crate) struct AtBorders {
    /// Flows that are going to start, in order.
    planned: VecDeque<Planned>,
    /// The number of slots that were ever given to flows.
    slots: u32,
    /// The time of the last start of flows.
    last_start: Option<Time>,
    /// Flows that are over.
    pub(crate) ended: Vec<Ended>,
    /// The slots of flows between domains whose sender is here and done.
    pub(crate) done: Vec<u32>,
    pub(crate) lost: Vec<LostPassing>,
}

impl AtBorders {
    /// The instant of an event at `now`.
    pub(super) fn instant(&self, now: Time) -> Instant {
        Instant { at: now, after_starts: self.last_start == Some(now) }
    }
}

impl Parts {
    /// The parts of a domain.
    pub(crate) fn of_domain(&self) -> Parts {
        Parts {
            hosts: self.hosts.clone(),
            full_interface: self.full_interface,
            observers: Observers::default(),
            layout: self.layout.clone(),
            changes: self.changes.clone(),
            // Flows of a domain are planned from outside.
            flows: Box::new(NoFlows),
            cross_traffic: Vec::new(),
            settings: self.settings.clone(),
        }
    }
}

impl<F: Fabric> World<F> {
    /// Starts the planned flows that are due.
    pub(super) fn start_planned(&mut self) {
        self.borders.last_start = Some(self.now);
        while self.borders.planned.front().is_some_and(|next| next.spec.start <= self.now) {
            let Some(planned) = self.borders.planned.pop_front() else { break };
            let Planned { id, spec, slot, positions, paths, ends, crosses } = planned;
            let cc = self.controller(&spec, [&paths[0], &paths[1]]);
            let border = crosses.then_some(ends != Ends::Receiver);
            let demands = self.demands(id, &*cc);
            self.open_at(&Place { id, slot, positions, border }, &spec, &paths, cc, demands);
            if ends != Ends::Receiver {
                self.send_allowed(slot);
            }
        }
        self.await_planned();
    }

    fn await_planned(&mut self) {
        let next = self.borders.planned.front().map_or(Time::NEVER, |next| next.spec.start);
        self.fabric.arm(Alarm::FlowStart, next);
    }

    /// Reports the end of a flow that is in this domain alone.
    pub(super) fn report_end(&mut self, slot: u32) {
        let ended = Ended { outcome: self.flows[slot as usize].outcome(), at: self.borders.instant(self.now) };
        self.borders.ended.push(ended);
    }

    /// Notes the delivery of a packet of a flow between domains, if it may have ended the flow: no flow ends before all of
    /// it has arrived, and so the ends of most flows are left alone. Their state at the border is in no cache.
    #[inline(always)]
    pub(super) fn note_at_border(&mut self, slot: u32, kind: Flags) {
        let flow = &self.flows[slot as usize];
        let may_be_over =
            if [Flags::DATA, Flags::SYN].contains(&kind) { flow.receiver.is_finished() } else { flow.sender.is_done() };
        if may_be_over {
            self.note_possible_end(slot);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_possible_end(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let Some(border) = &mut flow.border else { return };
        border.last = self.borders.instant(self.now);
        // The end of the sender is reported once.
        if border.sends && !border.is_reported && flow.sender.is_done() {
            border.is_reported = true;
            self.borders.done.push(slot);
        }
    }

    /// Handles the loss of a packet whose flow has no end here.
    #[cold]
    #[inline(never)]
    pub(super) fn lose_passing(&mut self, packet: Packet) {
        let kind = packet.flags().kind();
        if kind == Flags::ACK {
            self.blocks.release(packet.blocks());
        }
        let lost = LostPassing {
            flow: packet.flow() - PASSING,
            is_data: kind == Flags::DATA,
            at: self.borders.instant(self.now),
        };
        self.borders.lost.push(lost);
    }
}

impl<Q: EventQueue> World<DomainFabric<Q>> {
    /// Allocates a slot for a flow that is going to be planned.
    pub(crate) fn take_slot(&mut self) -> u32 {
        self.free_slots.pop().map_or_else(
            || {
                self.borders.slots += 1;
                self.borders.slots - 1
            },
            |Reverse(slot)| slot,
        )
    }

    /// Plans a flow, which starts no earlier than those planned before.
    pub(crate) fn plan(&mut self, planned: Planned) {
        let is_first = self.borders.planned.is_empty();
        self.borders.planned.push_back(planned);
        if is_first {
            self.await_planned();
        }
    }

    /// The entry that ends a route to a host.
    pub(crate) fn end_at(&self, host: crate::routing::network::NodeId) -> u32 {
        self.route_end(host)
    }

    /// The reports on flows, for a reader who takes them out.
    pub(crate) fn reports(&mut self) -> &mut AtBorders {
        &mut self.borders
    }

    /// The end of a flow between domains that is in `slot`.
    pub(crate) fn end_in(&self, slot: u32) -> FlowEnd<'_> {
        FlowEnd(&self.flows[slot as usize])
    }

    /// Frees the slot of a flow between domains that is over.
    pub(crate) fn free_slot(&mut self, slot: u32) {
        self.flows[slot as usize].open = false;
        self.free_slots.push(Reverse(slot));
    }

    /// Handles all events before `end`. Returns the number of events at hosts.
    pub(crate) fn run_until(&mut self, end: Time) -> Result<u64, PhysicsViolation> {
        self.fabric.arm(Alarm::Pause, before(end));
        let mut events = 0;
        while self.step()? == Step::Event {
            events += 1;
        }
        Ok(events)
    }

    /// Completes the parcels for other domains with the packets that leave before `end`, and with the SACK blocks that travel
    /// with acknowledgments. All events before `end` must have been handled. Returns the time of the first arrival.
    pub(crate) fn complete_parcels(&mut self, end: Time) -> Time {
        let earliest = self.fabric.let_leave(before(end));
        for Parcel { packets, with_blocks, blocks } in self.fabric.parcels() {
            blocks.extend(with_blocks.iter().map(|&place| self.blocks.take(packets[place as usize].1.blocks())));
        }
        earliest
    }

    /// Takes in packets from another domain.
    pub(crate) fn take_in_parcel(&mut self, parcel: &mut Parcel) {
        for (&place, &entry) in parcel.with_blocks.iter().zip(&parcel.blocks) {
            parcel.packets[place as usize].1.set_blocks(self.blocks.put(entry));
        }
        for (place, &(link, packet)) in parcel.packets.iter().enumerate() {
            // Each packet is for another link, so without prefetching each would wait for the memory of its link.
            for (ahead, places) in [(Ahead::Far, 12), (Ahead::Near, 6)] {
                if let Some(&(link, _)) = parcel.packets.get(place + places) {
                    self.fabric.expect_on(link, ahead);
                }
            }
            self.fabric.accept(link, packet);
        }
        parcel.clear();
    }

    /// Adds the results of the open flows that are in this domain alone to `outcomes`. Returns their packets in the network.
    pub(crate) fn finish_inner_flows(&self, outcomes: &mut Vec<Outcome>) -> u64 {
        let inner = || self.flows.iter().filter(|flow| flow.open && flow.border.is_none());
        outcomes.extend(inner().map(Flow::outcome));
        inner().map(|flow| u64::from(flow.wire.in_network)).sum()
    }

    /// Passes the open flows that are in this domain alone to `see`.
    pub(crate) fn for_each_inner_flow(&self, see: &mut dyn FnMut(FlowView<'_>)) {
        self.flows.iter().filter(|flow| flow.open && flow.border.is_none()).for_each(|flow| see(flow.view()));
    }

    /// The open flow with this number, if it is in this domain alone.
    pub(crate) fn inner_flow(&self, id: u32) -> Option<FlowView<'_>> {
        self.flows.iter().find(|flow| flow.open && flow.border.is_none() && flow.id == id).map(Flow::view)
    }

    /// Like `steer`, if the sending end of the flow is here.
    pub(crate) fn steer_sender(&mut self, id: u32, steer: &mut dyn FnMut(&mut dyn CongestionControl)) -> bool {
        let is_here = |flow: &Flow| flow.id == id && flow.border.as_ref().is_none_or(|border| border.sends);
        self.flows.iter().any(|flow| flow.open && is_here(flow)) && self.steer(id, steer)
    }

    /// A lower bound for the time of the next event.
    pub(crate) fn next_time(&self) -> Time {
        self.fabric.next_time()
    }
}

/// The time right before `end`, which is not zero.
fn before(end: Time) -> Time {
    Time::from_ps(end.as_ps() - 1)
}

/// One end of a flow between domains, or both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowEnd<'a>(&'a Flow);

impl<'a> FlowEnd<'a> {
    /// Prefetches the whole flow.
    pub(crate) fn prefetch(self) {
        prefetch_start(self.0, size_of::<Flow>().div_ceil(64));
    }

    /// Packets sent by this end, minus those that it got or that were lost in its domain. Modulo 2^32, the sum over both
    /// ends is the number of packets in the network.
    pub(crate) fn in_network(self) -> u32 {
        self.0.wire.in_network.wrapping_sub(Border::NONE_IN_NETWORK)
    }

    /// The last event that may have ended the flow.
    pub(crate) fn last(self) -> Option<Instant> {
        self.0.border.as_ref().map(|border| border.last)
    }

    /// The results at this end.
    pub(crate) fn outcome(self) -> Outcome {
        self.0.outcome()
    }

    /// The flow, whose receiver is the one of `other`.
    pub(crate) fn view(self, other: FlowEnd<'a>) -> FlowView<'a> {
        let receiving = other.0.view();
        FlowView {
            finish: receiving.finish,
            held_bytes: receiving.held_bytes,
            receiver: receiving.receiver,
            ..self.0.view()
        }
    }
}
