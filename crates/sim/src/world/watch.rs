//! Connects the world to its observers: reports packets and flows, and answers queries.

use super::flow::{Flow, Span};
use super::{World, latest_instant};
use crate::engine::fabric::{Alarm, Crossing, Fabric};
use crate::observe::{AccurateFields, FlowView, Inside, Kind, Observers, PacketEvent, SackRanges, Step, View};
use crate::routing::network::NodeId;
use crate::wire::link::LinkCounts;
use crate::wire::packet::{DATAGRAMS, Flags, Packet};
use crate::wire::sack_slab::BlockSlab;
use sparelane_cc::CongestionControl;
use sparelane_core::{Dur, Rate, Time, widen};
use sparelane_transport::accurate_ecn::{NO_MARKS, handshake_flags};
use sparelane_transport::{Ecn, EcnField, EcnFlags};

impl<F: Fabric> World<F> {
    /// Reports that `packet` of a flow reached `step` at `now`.
    fn report(&mut self, now: Time, packet: &Packet, step: Step) {
        self.report_crossings();
        self.report_one(now, packet, step);
    }

    /// Reports packets that left watched ports. This precedes any other report, while their SACK blocks still exist.
    pub(super) fn report_crossings(&mut self) {
        if self.observers.ports.is_empty() {
            return;
        }
        for Crossing { at, link, packet } in self.fabric.take_crossings() {
            let (cable, is_back) = (link as usize / 2, link % 2 == 1);
            let cable = &self.layout.network.cables[cable];
            let (from, to) = if is_back { (cable.b, cable.a) } else { (cable.a, cable.b) };
            let delay = self.layout.links[link as usize].shortest(cable.delay);
            let left = Time::ZERO + (at - Time::ZERO).saturating_sub(delay);
            if packet.flow() >= DATAGRAMS {
                continue;
            }
            if self.destination(&packet) != to {
                self.report_one(left, &packet, Step::Crossed { from, to });
            }
        }
    }

    fn report_one(&mut self, now: Time, packet: &Packet, step: Step) {
        let flow = &self.flows[packet.flow() as usize];
        let flags = packet.flags();
        let offset_of = |low: u32| flow.sender.offset_of(widen(low, flow.sender.acknowledged()));
        let kind = match flags.kind() {
            Flags::DATA => Kind::Data {
                segment: packet.seq(),
                is_retransmission: flags.has(Flags::RETRANSMISSION),
                offset_bytes: offset_of(packet.seq()),
            },
            Flags::ACK => {
                let blocks = self.blocks.at(packet.blocks()).iter();
                let near = flow.sender.acknowledged();
                let byte = |seq| flow.sender.offset_of(widen(seq as u32, near));
                Kind::Acknowledgment {
                    cumulative: packet.seq(),
                    trigger: packet.trigger(),
                    acknowledged_bytes: offset_of(packet.seq()),
                    sack: SackRanges::new(blocks.map(|block| (byte(block.start), byte(block.end)))),
                }
            }
            kind => Kind::Handshake { is_answer: kind == Flags::SYN_ACK },
        };
        self.observers.notify(&PacketEvent {
            now,
            flow: flow.row(),
            connection: flow.id,
            kind,
            wire_bytes: packet.wire_bytes() as u32,
            class: packet.class(),
            is_marked: flags.is_marked(),
            is_ecn_capable: flags.is_ecn_capable(),
            is_l4s: flags.is_l4s(),
            has_ecn_answer: flags.has(Flags::ECN_ANSWER),
            accurate_ecn: flow
                .traits
                .requests_accurate_ecn
                .then(|| flow.accurate_fields(packet, &self.blocks))
                .flatten(),
            step,
        });
    }

    /// Reports that the sender of a followed flow has processed an acknowledgment.
    #[cold]
    #[inline(never)]
    pub(super) fn report_acknowledged(&mut self, slot: u32) {
        self.observers.acknowledged(&self.flows[slot as usize].view());
    }

    /// Sends a packet of a followed flow.
    #[cold]
    #[inline(never)]
    pub(super) fn send_followed(&mut self, packet: Packet) {
        let flow = &self.flows[packet.flow() as usize];
        let is_data = packet.flags().kind() == Flags::DATA;
        let due = if is_data { flow.sender.last_due() } else { None };
        let uplink = self.fabric.first_link(packet.route());
        let before = self.fabric.free_at(uplink);
        self.inject(packet);
        // If the packet was dropped, the time at which the link is free has not changed.
        let departs = self.fabric.free_at(uplink).filter(|&at| Some(at) != before);
        self.report(self.now, &packet, Step::Sent { due, departs, stamp: None });
    }

    /// Reports the arrival of a packet at the interface of its host.
    pub(super) fn report_arrival(&mut self, packet: &Packet) {
        let is_data = packet.flags().kind() == Flags::DATA && packet.flow() < DATAGRAMS;
        if is_data && self.flows[packet.flow() as usize].traits.is_followed {
            let sent = latest_instant(self.now, packet.blocks());
            self.report(self.now, packet, Step::Arrived { sent });
        }
    }

    /// Reports a data packet that the receiver got after `delay_ns` in the network.
    #[inline(never)]
    pub(super) fn report_receipt(&mut self, packet: &Packet, delay_ns: u32) {
        let delay = Dur::from_ns(u64::from(delay_ns));
        self.report(self.now, packet, Step::Received { delay });
    }

    /// Reports an acknowledgment that leaves at `leaves` and gives `stamp` as the arrival time of its trigger.
    #[cold]
    #[inline(never)]
    pub(super) fn report_acknowledgment(&mut self, ack: Packet, leaves: Time, stamp: Option<Time>) {
        self.report(leaves, &ack, Step::Sent { due: None, departs: None, stamp });
    }

    /// Reports a packet of a followed flow that was dropped or lost.
    #[cold]
    #[inline(never)]
    pub(super) fn report_loss(&mut self, packet: Packet) {
        self.report(self.now, &packet, Step::Dropped);
    }

    /// Reports an acknowledgment, or a packet of the handshake, that reached the transport of its host.
    #[cold]
    #[inline(never)]
    pub(super) fn report_answer(&mut self, packet: Packet) {
        self.report(self.now, &packet, Step::Received { delay: Dur::ZERO });
    }

    /// Reports that the row of the flow in `slot` is about to be written.
    pub(super) fn report_close(&mut self, slot: u32) {
        self.report_crossings();
        self.observers.close(&self.flows[slot as usize].view());
    }

    /// Takes the samples that are due.
    pub(super) fn sample(&mut self) {
        let mut observers = std::mem::take(&mut self.observers);
        observers.sample(&mut View(self));
        self.observers = observers;
        self.await_sample();
    }

    pub(super) fn await_sample(&mut self) {
        let next = self.observers.next_sample();
        if next <= self.settings.stop {
            self.fabric.arm(Alarm::Sample, next);
        }
    }

    /// Passes the controller of the open flow `id` to `steer`, then lets its sender send. Returns false if no such flow
    /// is open.
    pub(crate) fn steer(&mut self, id: u32, steer: &mut dyn FnMut(&mut dyn CongestionControl)) -> bool {
        let Some(slot) = self.flows.iter().position(|flow| flow.open && flow.is(id)) else { return false };
        self.flows[slot].sender.steer(steer);
        self.send_allowed(slot as u32);
        true
    }
}

impl Flow {
    /// Returns the TCP fields for accurate ECN of a packet; `None` if the connection has agreed to classic ECN or to
    /// none.
    #[cold]
    fn accurate_fields(&self, packet: &Packet, blocks: &BlockSlab) -> Option<AccurateFields> {
        match packet.flags().kind() {
            // The first data packet also acknowledges the SYN-ACK, and reports its ECN field. Later ones report that no
            // data was marked on the way back.
            Flags::DATA => {
                let (is_first, agreed) = (packet.seq() == 0, self.sender.ecn() == Ecn::Accurate);
                let flags = if is_first { handshake_flags(EcnField::NotEct) } else { NO_MARKS };
                agreed.then_some(AccurateFields { flags, option: None })
            }
            Flags::ACK => {
                let echo = blocks.accurate_at(packet.blocks())?;
                Some(AccurateFields { flags: echo.ace, option: echo.option })
            }
            _ => Some(AccurateFields { flags: packet.seq() as EcnFlags, option: None }),
        }
    }

    /// Returns true if `number` is that of the connection or of the flow that it carries.
    fn is(&self, number: u32) -> bool {
        self.id == number || self.row() == number
    }

    pub(super) fn view(&self) -> FlowView<'_> {
        let Span { start, finish, .. } = self.span;
        FlowView {
            id: self.row(),
            connection: self.id,
            start,
            finish,
            held_bytes: self.held_bytes(),
            sender: &self.sender,
            receiver: &self.receiver,
        }
    }
}

impl<F: Fabric> Inside for World<F> {
    fn now(&self) -> Time {
        self.now
    }

    fn open_flow(&self, id: u32) -> Option<FlowView<'_>> {
        self.flows.iter().find(|flow| flow.open && flow.is(id)).map(Flow::view)
    }

    fn for_each_open_flow(&self, see: &mut dyn FnMut(FlowView<'_>)) {
        self.flows.iter().filter(|flow| flow.open).for_each(|flow| see(flow.view()));
    }

    fn link(&self, from: NodeId, to: NodeId) -> Option<u32> {
        self.layout.link_between(from, to)
    }

    fn is_in_view(&self, from: NodeId, to: NodeId) -> bool {
        self.layout.queues_in_view.contains(&(from, to))
    }

    fn backlog_bytes(&mut self, link: u32) -> u64 {
        self.fabric.backlog_bytes(self.now, link)
    }

    fn explicit_rate(&self, link: u32) -> Option<Rate> {
        self.fabric.explicit_rate(self.now, link)
    }

    fn counts(&mut self, link: u32) -> LinkCounts {
        self.fabric.counts(self.now, link)
    }

    fn offered_bytes(&self, link: u32) -> Option<u64> {
        self.changes.offered_bytes(link, &self.layout.links[link as usize], self.now)
    }
}

/// The configuration that observers imply.
impl Observers {
    /// The queues that observers read.
    pub(super) fn take_queues(&mut self) -> std::collections::BTreeSet<(NodeId, NodeId)> {
        std::mem::take(&mut self.queues)
    }
}
