//! Receivers whose application reads slowly: the windows that they advertise, and updates of them.

use super::World;
use crate::engine::fabric::Fabric;
use crate::engine::timers::{Entry, TimerOwner};
use crate::hosts::reader::Reader;
use sparelane_core::Time;
use sparelane_transport::{Receiver, TransportConfig};

/// Creates the receiving end of a flow, and its application, if that reads slowly.
pub(super) fn reading(tcp: &TransportConfig) -> (Receiver, Option<Box<Reader>>) {
    let mut receiver = Receiver::new(tcp);
    let reader = tcp.read_rate.map(|rate| {
        let segments = tcp.receive_window_segments();
        receiver.set_window(segments as u32);
        Box::new(Reader::new(rate.time_for(tcp.mss_bytes), segments))
    });
    (receiver, reader)
}

impl<F: Fabric> World<F> {
    /// Lets the application read after an arrival, and sets the window of the next acknowledgment.
    #[cold]
    #[inline(never)]
    pub(super) fn read_more(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let Some(reader) = &mut flow.reader else { return };
        flow.receiver.set_window(reader.read_until(self.now, flow.receiver.next_expected()));
        // The acknowledgment of this arrival may be delayed, and the window may have to be advertised before.
        self.await_reader(slot);
    }

    /// Sets the timer for the next update of the window, if one will be due.
    pub(super) fn await_reader(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let Some(reader) = &mut flow.reader else { return };
        if let Some(at) = reader.updates_at()
            && at < reader.timer
        {
            reader.timer = at;
            let entry = Entry { at, flow: flow.id, owner: TimerOwner::Reader, slot };
            self.enter_timer(entry);
        }
    }

    /// Handles the timer of the application: sends an update of the window, if one is due.
    pub(super) fn time_out_reader(&mut self, slot: u32) {
        let now = self.now;
        let flow = &mut self.flows[slot as usize];
        let Some(reader) = &mut flow.reader else { return };
        // A later entry is the live one.
        if reader.timer > now {
            return;
        }
        reader.timer = Time::NEVER;
        flow.receiver.set_window(reader.read_until(now, flow.receiver.next_expected()));
        if reader.owes_update() {
            let ack = flow.receiver.handle_probe();
            self.send_ack(slot, ack);
        } else {
            self.await_reader(slot);
        }
    }
}
