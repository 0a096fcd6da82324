//! Packets inside a receiving host: interrupt coalescing, receive offload, and the processor's time.

use super::flow::Echo;
use super::{World, latest_instant, nanoseconds};
use crate::engine::fabric::Fabric;
use crate::engine::timers::{Entry, TimerOwner};
use crate::hosts::{Next, Received, Work};
use crate::physics::PhysicsViolation;
use crate::routing::network::NodeId;
use crate::wire::packet::{DATAGRAMS, Flags, Packet};
use sparelane_core::Time;
use sparelane_transport::Segment;

impl<F: Fabric> World<F> {
    /// Handles a packet at the interface of its host.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_interrupt(&mut self, packet: Packet) -> Result<(), PhysicsViolation> {
        self.report_arrival(&packet);
        let host = self.destination(&packet);
        let Some(interrupts) = self.hosts.specs.spec(host).interrupts else { return self.deliver_late(packet) };
        let next = self.hosts.interfaces.arrive(self.now, host, interrupts, packet);
        if next == Next::Loss {
            self.handle_loss(packet);
        }
        self.follow_interface(host, next)
    }

    pub(super) fn destination(&self, packet: &Packet) -> NodeId {
        let Some(flow) = self.flows.get(packet.flow() as usize) else {
            return self.cross_traffic[(packet.flow() - DATAGRAMS) as usize].destination();
        };
        flow.hosts[usize::from(!packet.goes_back())]
    }

    /// Handles the timer of packets that wait at the interface of `host`.
    pub(super) fn time_out_interface(&mut self, host: NodeId) -> Result<(), PhysicsViolation> {
        let next = self.hosts.interfaces.time_out(self.now, host);
        self.follow_interface(host, next)
    }

    fn follow_interface(&mut self, host: NodeId, next: Next) -> Result<(), PhysicsViolation> {
        match next {
            Next::Wait | Next::Loss => {}
            Next::Timer(at) => self.set_host_timer(host, TimerOwner::Interface, at),
            Next::Interrupt => {
                let packets = self.hosts.interfaces.take(host);
                packets.iter().try_for_each(|&packet| self.take_from_interface(host, packet))?;
                self.hosts.interfaces.give_back(packets);
            }
        }
        Ok(())
    }

    /// Passes on a packet that an interrupt delivered. Data of flows reaches the processor as chunks; other packets go
    /// there one by one.
    fn take_from_interface(&mut self, host: NodeId, packet: Packet) -> Result<(), PhysicsViolation> {
        let is_data = packet.flags().kind() == Flags::DATA && packet.flow() < DATAGRAMS;
        if is_data || self.hosts.specs.spec(host).receive_cost.is_zero() {
            self.deliver_late(packet)
        } else {
            self.give_work(host, Work::Packet(packet));
            Ok(())
        }
    }

    /// Merges a segment that arrived at its host into a chunk, or passes it to a receiver whose application reads
    /// slowly.
    #[cold]
    #[inline(never)]
    pub(super) fn take_in(&mut self, packet: Packet, segment: Segment, marked: bool) -> Result<(), PhysicsViolation> {
        let slot = packet.flow();
        let flow = &mut self.flows[slot as usize];
        let Some(offload) = &mut flow.offload else {
            let ack = if flow.traits.requests_accurate_ecn {
                flow.receiver.handle_counted_data(self.now, segment, packet.flags().ecn_field())
            } else {
                flow.receiver.handle_data(self.now, segment, marked)
            };
            self.read_more(slot);
            return self.answer(slot, ack);
        };
        let before = offload.deadline();
        // Delays count from the sending of a segment, or from its arrival at the interface.
        let from_ns = match flow.echoes.kind {
            Echo::HostDelay => nanoseconds(packet.at),
            _ => packet.blocks(),
        };
        let complete = offload.take(self.now, segment, marked, from_ns);
        let at = offload.deadline();
        if at != before && at != Time::NEVER {
            let entry = Entry { at, flow: flow.id, owner: TimerOwner::Offload, slot };
            self.enter_timer(entry);
        }
        complete.into_iter().flatten().try_for_each(|received| self.hand_over(slot, received))
    }

    /// Handles the timer of a chunk, which may have waited long enough.
    pub(super) fn time_out_chunk(&mut self, slot: u32) -> Result<(), PhysicsViolation> {
        let now = self.now;
        let received = self.flows[slot as usize].offload.as_mut().and_then(|offload| offload.time_out(now));
        received.map_or(Ok(()), |received| self.hand_over(slot, received))
    }

    /// Passes a chunk to the host's processor.
    fn hand_over(&mut self, slot: u32, received: Received) -> Result<(), PhysicsViolation> {
        let open = &self.flows[slot as usize];
        if open.offload.as_ref().is_none_or(|offload| offload.cost.is_zero()) {
            return self.process(slot, received);
        }
        let (flow, receiver) = (open.id, open.hosts[1]);
        self.give_work(receiver, Work::Data { slot, flow, received });
        Ok(())
    }

    fn give_work(&mut self, host: NodeId, work: Work) {
        if self.hosts.processors.put(host, work) {
            self.await_processor(host);
        }
    }

    /// Delivers the chunk or packet that the processor of `host` has finished, and starts the next.
    pub(super) fn finish_work(&mut self, host: NodeId) -> Result<(), PhysicsViolation> {
        let Some((work, more)) = self.hosts.processors.finish(host) else { return Ok(()) };
        if more {
            self.await_processor(host);
        }
        match work {
            Work::Packet(packet) => self.deliver_late(packet),
            Work::Data { slot, flow, received } => {
                // The flow may be over, and its slot in use by another.
                let open = &self.flows[slot as usize];
                if open.open && open.id == flow { self.process(slot, received) } else { Ok(()) }
            }
        }
    }

    fn await_processor(&mut self, host: NodeId) {
        let at = self.now + self.hosts.specs.spec(host).receive_cost;
        self.set_host_timer(host, TimerOwner::Processor, at);
    }

    pub(super) fn set_host_timer(&mut self, host: NodeId, owner: TimerOwner, at: Time) {
        self.enter_timer(Entry { at, flow: host.0, owner, slot: host.0 });
    }

    /// Passes a chunk to the receiver.
    fn process(&mut self, slot: u32, received: Received) -> Result<(), PhysicsViolation> {
        let now = self.now;
        let flow = &mut self.flows[slot as usize];
        if flow.echoes.kind != Echo::Nothing
            && let Some(offload) = &mut flow.offload
        {
            (offload.stamps.sent, offload.stamps.taken) = (latest_instant(now, received.sent_ns), now);
        }
        let ack = if flow.traits.requests_accurate_ecn {
            let field = flow.field_of(&received.chunk);
            flow.receiver.handle_counted_chunk(now, received.chunk, field)
        } else {
            flow.receiver.handle_chunk(now, received.chunk)
        };
        if flow.traits.reads_slowly {
            self.read_more(slot);
        }
        self.answer(slot, ack)?;
        // A chunk may make a second acknowledgment due at once.
        self.watch_receiver(slot);
        Ok(())
    }

    /// Packets inside hosts: not received yet, or not sent yet.
    pub(crate) fn held_by_hosts(&self) -> u64 {
        self.hosts.interfaces.held_packets()
            + self.hosts.processors.held_packets()
            + self.hosts.departures.held_packets()
    }
}
