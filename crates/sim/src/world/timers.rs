//! Timers of senders, receivers, applications and hosts.
//!
//! All timers share one heap and one alarm. A flow remembers the earliest live entry of each of its ends, so that an
//! entry is pushed only if a timer moves to an earlier time (see `engine/timers.rs`).

use super::World;
use crate::engine::fabric::{Alarm, Fabric};
use crate::engine::timers::{Entry, TimerOwner};
use crate::physics::PhysicsViolation;
use crate::routing::network::NodeId;
use sparelane_core::Time;

impl<F: Fabric> World<F> {
    /// Pushes an entry for the sender's timer if it is earlier than the live one.
    pub(super) fn watch_sender(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let at = flow.sender.next_timer();
        if at < flow.entries.sender {
            flow.entries.sender = at;
            let entry = Entry { at, flow: flow.id, owner: TimerOwner::Sender, slot };
            self.enter_timer(entry);
        }
    }

    pub(super) fn watch_receiver(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let at = flow.receiver.next_timer();
        if at < flow.entries.receiver {
            flow.entries.receiver = at;
            let entry = Entry { at, flow: flow.id, owner: TimerOwner::Receiver, slot };
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
            if entry.owner >= TimerOwner::Processor {
                self.fire_other_timer(entry)?;
                continue;
            }
            let flow = &mut self.flows[entry.slot as usize];
            // The entry belongs to an earlier flow in this slot.
            if !flow.open || flow.id != entry.flow {
                continue;
            }
            match entry.owner {
                TimerOwner::Sender if flow.entries.sender == entry.at => {
                    flow.entries.sender = Time::NEVER;
                    // The timer may have moved to a later time since the entry was pushed.
                    if flow.sender.next_timer() <= self.now {
                        flow.sender.handle_timer(self.now);
                        self.send_allowed(entry.slot);
                    } else {
                        self.watch_sender(entry.slot);
                    }
                }
                TimerOwner::Receiver if flow.entries.receiver == entry.at => {
                    flow.entries.receiver = Time::NEVER;
                    match flow.receiver.handle_timer(self.now) {
                        Some(ack) => self.send_ack(entry.slot, ack),
                        None => {
                            self.watch_receiver(entry.slot);
                            self.close_if_over(entry.slot);
                        }
                    }
                }
                TimerOwner::Application => self.write_more(entry.slot),
                TimerOwner::Offload => self.time_out_chunk(entry.slot)?,
                TimerOwner::Reader => self.time_out_reader(entry.slot),
                _ => {}
            }
        }
        self.fabric.arm(Alarm::Timer, self.timers.earliest());
        Ok(())
    }

    /// Handles a timer that belongs to no flow.
    fn fire_other_timer(&mut self, entry: Entry) -> Result<(), PhysicsViolation> {
        let host = NodeId(entry.slot);
        match entry.owner {
            TimerOwner::Processor => self.finish_work(host)?,
            TimerOwner::Interface => self.time_out_interface(host)?,
            TimerOwner::Departure => self.send_due_acks(host),
            _ => self.send_datagrams(entry.slot),
        }
        Ok(())
    }

    /// Lets the application write its next part.
    fn write_more(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let Some(application) = &mut flow.application else { return };
        if let Some(after) = application.write(&mut flow.sender) {
            let entry = Entry { at: self.now + after, flow: flow.id, owner: TimerOwner::Application, slot };
            self.enter_timer(entry);
        }
        self.send_allowed(slot);
    }
}
