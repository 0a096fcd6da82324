//! Timers: of the two ends of flows, of their applications, and of hosts.

use super::World;
use crate::engine::fabric::{Alarm, Fabric};
use crate::engine::timers::{Entry, Side};
use crate::physics::PhysicsViolation;
use crate::routing::network::NodeId;
use sparelane_core::Time;

impl<F: Fabric> World<F> {
    /// Enters the sender's timer if it is earlier than its entry.
    #[inline(always)]
    pub(super) fn watch_sender(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let at = flow.sender.next_timer();
        if at < flow.entries.sender {
            flow.entries.sender = at;
            let entry = Entry { at, flow: flow.id, side: Side::Sender, slot };
            self.enter_timer(entry);
        }
    }

    pub(super) fn watch_receiver(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let at = flow.receiver.next_timer();
        if at < flow.entries.receiver {
            flow.entries.receiver = at;
            let entry = Entry { at, flow: flow.id, side: Side::Receiver, slot };
            self.enter_timer(entry);
        }
    }

    pub(super) fn enter_timer(&mut self, entry: Entry) {
        if self.timers.push(entry) {
            self.fabric.arm(Alarm::Timer, entry.at);
        }
    }

    pub(super) fn fire_timers(&mut self) -> Result<(), PhysicsViolation> {
        while let Some(entry) = self.timers.pop_due(self.now) {
            if entry.side >= Side::Processor {
                self.fire_other_timer(entry)?;
                continue;
            }
            let flow = &mut self.flows[entry.slot as usize];
            if !flow.open || flow.id != entry.flow {
                continue;
            }
            match entry.side {
                Side::Sender if flow.entries.sender == entry.at => {
                    flow.entries.sender = Time::NEVER;
                    if flow.sender.next_timer() <= self.now {
                        flow.sender.handle_timer(self.now);
                        self.send_allowed(entry.slot);
                    } else {
                        self.watch_sender(entry.slot);
                    }
                }
                Side::Receiver if flow.entries.receiver == entry.at => {
                    flow.entries.receiver = Time::NEVER;
                    match flow.receiver.handle_timer(self.now) {
                        Some(ack) => self.send_ack(entry.slot, ack),
                        None => self.watch_receiver(entry.slot),
                    }
                }
                Side::Application => self.write_more(entry.slot),
                Side::Offload => self.time_out_chunk(entry.slot)?,
                _ => {}
            }
        }
        self.fabric.arm(Alarm::Timer, self.timers.earliest());
        Ok(())
    }

    /// A timer that is no flow's.
    fn fire_other_timer(&mut self, entry: Entry) -> Result<(), PhysicsViolation> {
        let host = NodeId(entry.slot);
        match entry.side {
            Side::Processor => self.finish_work(host)?,
            Side::Interface => self.time_out_interface(host)?,
            Side::Departure => self.let_acks_leave(host),
            _ => self.send_datagrams(entry.slot),
        }
        Ok(())
    }

    /// The application writes again.
    fn write_more(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let Some(application) = &mut flow.application else { return };
        if let Some(after) = application.write(&mut flow.sender) {
            let entry = Entry { at: self.now + after, flow: flow.id, side: Side::Application, slot };
            self.enter_timer(entry);
        }
        self.send_allowed(slot);
    }
}
