//! Cross traffic in the network: packets that belong to no flow.
//!
//! Datagrams cross the same links and queues as all other packets. They never wait for room in the queue of their
//! interface (`RunConfig::nic_full`): what does not fit is dropped.

use super::World;
use crate::cross::{CrossTraffic, Source};
use crate::engine::fabric::Fabric;
use crate::engine::timers::{Entry, TimerOwner};
use crate::physics::PhysicsViolation;
use crate::wire::packet::{DATAGRAMS, Packet};
use sparelane_core::Time;

impl<F: Fabric> World<F> {
    /// Allocates the routes of the sources, and schedules their first packets.
    pub(super) fn start_cross_traffic(&mut self, traffic: Vec<CrossTraffic>) {
        for (spec, index) in traffic.into_iter().zip(0..) {
            // Flow numbers have 32 bits. With bit 32 set, the hash for ECMP differs from that of every flow.
            let path = self.layout.routes.links(&self.layout.network, spec.from, spec.to, u64::from(index) | 1 << 32);
            let Some(path) = path else { unreachable!("paths were checked before the run") };
            let position = self.layout.positions.take(path.len() + 1);
            self.fabric.set_route(self.now, position, &path, self.route_end(spec.to));
            self.cross_traffic.push(Source::new(spec, index, position, self.settings.seed));
            self.await_datagrams(index);
        }
    }

    fn await_datagrams(&mut self, index: u32) {
        let at = self.cross_traffic[index as usize].next_time();
        if at != Time::NEVER {
            self.enter_timer(Entry { at, flow: DATAGRAMS | index, owner: TimerOwner::Datagrams, slot: index });
        }
    }

    /// Sends the packets of a source that are due.
    pub(super) fn send_datagrams(&mut self, index: u32) {
        while self.cross_traffic[index as usize].next_time() <= self.now {
            let (packets, packet) = self.cross_traffic[index as usize].send();
            (0..packets).for_each(|_| self.inject(packet));
        }
        self.await_datagrams(index);
    }

    /// Counts a datagram that arrived at its host.
    #[cold]
    #[inline(never)]
    pub(super) fn deliver_datagram(&mut self, packet: Packet) -> Result<(), PhysicsViolation> {
        self.cross_traffic[(packet.flow() - DATAGRAMS) as usize].delivered += 1;
        Ok(())
    }

    /// Counts a datagram that was dropped or lost.
    #[cold]
    #[inline(never)]
    pub(super) fn lose_datagram(&mut self, packet: Packet) {
        self.cross_traffic[(packet.flow() - DATAGRAMS) as usize].dropped += 1;
    }

    /// Writes the rows of the sources. Returns the number of their packets in the network.
    pub(super) fn finish_cross_traffic(&mut self) -> u64 {
        self.cross_traffic.iter().for_each(|source| source.record(&mut self.records.cross_traffic));
        self.cross_traffic.iter().map(Source::in_network).sum()
    }
}
