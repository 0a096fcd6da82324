//! Data on its way through a receiving host, where that takes time or makes chunks.

use super::World;
use crate::fabric::Fabric;
use crate::host::Work;
use crate::network::NodeId;
use crate::physics::PhysicsViolation;
use crate::timers::{Entry, Side};
use sparelane_core::{Dur, Time};
use sparelane_transport::{Chunk, Segment};

impl<F: Fabric> World<F> {
    /// A segment arrived at its host.
    #[cold]
    #[inline(never)]
    pub(super) fn take_in(&mut self, slot: u32, segment: Segment, marked: bool) -> Result<(), PhysicsViolation> {
        let flow = &mut self.flows[slot as usize];
        let Some(offload) = &mut flow.offload else { return Ok(()) };
        let before = offload.deadline();
        let complete = offload.take(self.now, segment, marked);
        let at = offload.deadline();
        if at != before && at != Time::NEVER {
            let entry = Entry { at, flow: flow.id, side: Side::Offload, slot };
            self.enter_timer(entry);
        }
        complete.into_iter().flatten().try_for_each(|chunk| self.hand_over(slot, chunk))
    }

    /// A chunk may have waited long enough.
    pub(super) fn time_out_chunk(&mut self, slot: u32) -> Result<(), PhysicsViolation> {
        let now = self.now;
        let chunk = self.flows[slot as usize].offload.as_mut().and_then(|offload| offload.time_out(now));
        chunk.map_or(Ok(()), |chunk| self.hand_over(slot, chunk))
    }

    /// A chunk goes to the host's processor.
    fn hand_over(&mut self, slot: u32, chunk: Chunk) -> Result<(), PhysicsViolation> {
        if self.processors.spec().receive_cost == Dur::ZERO {
            return self.process(slot, chunk);
        }
        let flow = self.flows[slot as usize].id;
        let host = NodeId(self.records.flows.dst[flow as usize]);
        let takes = self.processors.put(host, Work { slot, flow, chunk });
        self.await_processor(host, takes);
        Ok(())
    }

    /// The processor of `host` is done with a chunk and takes the next.
    pub(super) fn finish_work(&mut self, host: NodeId) -> Result<(), PhysicsViolation> {
        let Some((Work { slot, flow, chunk }, next)) = self.processors.finish(host) else { return Ok(()) };
        self.await_processor(host, next);
        // What is left of a flow that is over is of no use to anyone.
        let open = &self.flows[slot as usize];
        if open.open && open.id == flow { self.process(slot, chunk) } else { Ok(()) }
    }

    fn await_processor(&mut self, host: NodeId, takes: Option<Dur>) {
        if let Some(takes) = takes {
            self.enter_timer(Entry { at: self.now + takes, flow: host.0, side: Side::Processor, slot: host.0 });
        }
    }

    /// The chunk is with the receiver.
    fn process(&mut self, slot: u32, chunk: Chunk) -> Result<(), PhysicsViolation> {
        let ack = self.flows[slot as usize].receiver.handle_chunk(self.now, chunk);
        self.answer(slot, ack)?;
        // Another acknowledgment may be due at once.
        self.watch_receiver(slot);
        Ok(())
    }
}
