//! Interrupt coalescing: what a host receives waits at its interface until an interrupt tells of it.
//!
//! The interrupt comes when so many packets wait, or when the first of them has waited for so long.

use super::Interrupts;
use crate::network::NodeId;
use crate::packet::Packet;
use sparelane_core::Time;
use std::collections::BTreeMap;

/// One interface.
#[derive(Clone, Debug)]
struct Interface {
    waiting: Vec<Packet>,
    /// When the first that waits has waited long enough.
    due: Time,
    /// The earliest entry in the timers.
    entry: Time,
}

/// What follows from an arrival, or from a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The interrupt comes now.
    Interrupt,
    /// A timer is wanted then.
    Timer(Time),
    /// Nothing but to wait.
    Wait,
}

/// The interfaces of all hosts that coalesce interrupts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interfaces {
    hosts: BTreeMap<NodeId, Interface>,
    /// Room for the next interface's packets, so that none is made anew.
    spare: Vec<Packet>,
}

impl Interfaces {
    /// `packet` comes to `host`.
    pub(crate) fn arrive(&mut self, now: Time, host: NodeId, interrupts: Interrupts, packet: Packet) -> Next {
        let fresh = || Interface { waiting: Vec::new(), due: Time::NEVER, entry: Time::NEVER };
        let interface = self.hosts.entry(host).or_insert_with(fresh);
        interface.waiting.push(packet);
        if interface.waiting.len() as u64 >= u64::from(interrupts.packets) {
            return Next::Interrupt;
        }
        if interface.waiting.len() == 1 {
            interface.due = now + interrupts.after;
            if interface.due < interface.entry {
                interface.entry = interface.due;
                return Next::Timer(interface.due);
            }
        }
        Next::Wait
    }

    /// A timer fires at `host`.
    pub(crate) fn time_out(&mut self, now: Time, host: NodeId) -> Next {
        let Some(interface) = self.hosts.get_mut(&host) else { return Next::Wait };
        interface.entry = Time::NEVER;
        if interface.due <= now {
            return Next::Interrupt;
        }
        // It was set for packets that have left since.
        interface.entry = interface.due;
        if interface.due == Time::NEVER { Next::Wait } else { Next::Timer(interface.due) }
    }

    /// What waits at `host` goes, in order. [`Interfaces::give_back`] follows.
    pub(crate) fn take(&mut self, host: NodeId) -> Vec<Packet> {
        let Some(interface) = self.hosts.get_mut(&host) else { return Vec::new() };
        interface.due = Time::NEVER;
        std::mem::replace(&mut interface.waiting, std::mem::take(&mut self.spare))
    }

    /// The emptied room of what went.
    pub(crate) fn give_back(&mut self, mut packets: Vec<Packet>) {
        packets.clear();
        self.spare = packets;
    }

    /// Packets that wait at any interface.
    pub(crate) fn held_packets(&self) -> u64 {
        self.hosts.values().map(|interface| interface.waiting.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::Dur;

    const HOST: NodeId = NodeId(4);

    fn at(us: u64) -> Time {
        Time::from_ns(1000 * us)
    }

    #[test]
    fn an_interrupt_comes_by_the_count_or_when_the_first_has_waited() {
        let interrupts = Interrupts { packets: 3, after: Dur::from_us(50) };
        let mut interfaces = Interfaces::default();
        let arrive = |interfaces: &mut Interfaces, us| {
            let next = interfaces.arrive(at(us), HOST, interrupts, Packet::default());
            if next == Next::Interrupt {
                let packets = interfaces.take(HOST);
                assert_eq!(packets.len(), 3);
                interfaces.give_back(packets);
            }
            next
        };
        assert_eq!(arrive(&mut interfaces, 0), Next::Timer(at(50)));
        assert_eq!([arrive(&mut interfaces, 10), arrive(&mut interfaces, 20)], [Next::Wait, Next::Interrupt]);
        // The first of the next ones has until 80 us; the timer of the first batch is still there, and serves again.
        assert_eq!(arrive(&mut interfaces, 30), Next::Wait);
        assert_eq!(interfaces.time_out(at(50), HOST), Next::Timer(at(80)));
        assert_eq!(arrive(&mut interfaces, 79), Next::Wait);
        assert_eq!(interfaces.held_packets(), 2);
        assert_eq!(interfaces.time_out(at(80), HOST), Next::Interrupt);
        assert_eq!(interfaces.take(HOST).len(), 2);
        assert_eq!(interfaces.held_packets(), 0);
        assert_eq!(arrive(&mut interfaces, 81), Next::Timer(at(131)));
    }
}
