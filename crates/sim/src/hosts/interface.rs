//! Interrupt coalescing: received packets wait at the interface of their host until it raises an interrupt.
//!
//! The interrupt is due when enough packets wait, or when the first of them has waited long enough. A stalled host
//! answers it when the stall is over. Packets that do not fit into the interface's ring until then are lost.

use super::{Interrupts, Stalls};
use crate::routing::network::NodeId;
use crate::wire::packet::Packet;
use sparelane_core::{Domain, Dur, Stream, Time};
use std::collections::BTreeMap;

/// The state of one interface.
#[derive(Clone, Debug)]
struct Interface {
    waiting: Vec<Packet>,
    /// The deadline of the first waiting packet.
    due: Time,
    /// The earliest entry in the timer heap.
    entry: Time,
    stalls: Option<Box<Stalling>>,
}

/// The stalls of one host, of which only the current or next one is stored.
#[derive(Clone, Debug)]
struct Stalling {
    means: Stalls,
    rng: Stream,
    from: Time,
    until: Time,
}

impl Stalling {
    /// The end of the current stall, if there is one at `now`.
    fn ends(&mut self, now: Time) -> Option<Time> {
        while self.until <= now {
            self.from = self.until + self.draw(self.means.every);
            self.until = self.from + self.draw(self.means.length);
        }
        (self.from <= now).then_some(self.until)
    }

    fn draw(&mut self, mean: Dur) -> Dur {
        // At least a nanosecond, so that the loop over stalls advances.
        mean.scaled(-libm::log(self.rng.unit_above_zero())).max(Dur::from_ns(1))
    }
}

impl Interface {
    /// Lets the packets wait until `due`.
    fn wait_until(&mut self, due: Time) -> Next {
        self.due = due;
        if due < self.entry {
            self.entry = due;
            return Next::Timer(due);
        }
        Next::Wait
    }

    /// Raises an interrupt that is due: now, or when the stall is over.
    fn interrupt(&mut self, now: Time) -> Next {
        match self.stalls.as_mut().and_then(|stalls| stalls.ends(now)) {
            Some(end) => self.wait_until(end),
            None => Next::Interrupt,
        }
    }
}

/// The action that follows an arrival or a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Deliver the waiting packets now.
    Interrupt,
    /// Set a timer for this time.
    Timer(Time),
    /// Keep waiting: a timer is set already.
    Wait,
    /// Count the arrived packet as lost: the ring is full.
    Loss,
}

/// The interfaces of all hosts that coalesce interrupts.
#[derive(Clone, Debug)]
pub(crate) struct Interfaces {
    seed: u64,
    hosts: BTreeMap<NodeId, Interface>,
    /// An empty vector with capacity, reused to avoid allocations.
    spare: Vec<Packet>,
}

impl Interfaces {
    pub(crate) fn new(seed: u64) -> Interfaces {
        Interfaces { seed, hosts: BTreeMap::new(), spare: Vec::new() }
    }

    /// Handles the arrival of `packet` at `host`.
    pub(crate) fn arrive(&mut self, now: Time, host: NodeId, interrupts: Interrupts, packet: Packet) -> Next {
        let seed = self.seed;
        let interface = self.hosts.entry(host).or_insert_with(|| {
            let rng = Stream::new(seed, Domain::Stalls, u64::from(host.0));
            let stalling = |means| Box::new(Stalling { means, rng, from: Time::ZERO, until: Time::ZERO });
            let stalls = interrupts.stalls.map(stalling);
            Interface { waiting: Vec::new(), due: Time::NEVER, entry: Time::NEVER, stalls }
        });
        if interface.waiting.len() as u64 >= u64::from(interrupts.ring) {
            return Next::Loss;
        }
        interface.waiting.push(packet);
        if interface.waiting.len() as u64 >= u64::from(interrupts.packets) {
            return interface.interrupt(now);
        }
        if interface.waiting.len() == 1 {
            return interface.wait_until(now + interrupts.after);
        }
        Next::Wait
    }

    /// Handles a timer at `host`.
    pub(crate) fn time_out(&mut self, now: Time, host: NodeId) -> Next {
        let Some(interface) = self.hosts.get_mut(&host) else { return Next::Wait };
        interface.entry = Time::NEVER;
        if interface.due <= now {
            return interface.interrupt(now);
        }
        // The timer was set for packets that have left since.
        interface.entry = interface.due;
        if interface.due == Time::NEVER { Next::Wait } else { Next::Timer(interface.due) }
    }

    /// Takes the waiting packets of `host`, in order. Call [`Interfaces::give_back`] afterwards.
    pub(crate) fn take(&mut self, host: NodeId) -> Vec<Packet> {
        let Some(interface) = self.hosts.get_mut(&host) else { return Vec::new() };
        interface.due = Time::NEVER;
        std::mem::replace(&mut interface.waiting, std::mem::take(&mut self.spare))
    }

    /// Returns the vector of [`Interfaces::take`] for reuse.
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

    const HOST: NodeId = NodeId(4);

    /// A packet every 10 us for 20 s; the ring holds 100.
    #[test]
    fn a_stall_delays_interrupts_and_a_full_ring_loses_packets() {
        let means = Stalls { every: Dur::from_ms(50), length: Dur::from_ms(2) };
        let interrupts = Interrupts { packets: 4, after: Dur::from_us(50), ring: 100, stalls: Some(means) };
        let mut interfaces = Interfaces::new(1);
        let (mut due, mut lost, mut taken, mut in_stalls) = (Time::NEVER, 0, 0, 0);
        for step in 0..2_000_000 {
            let now = Time::ZERO + Dur::from_us(10) * step;
            let mut nexts = Vec::new();
            if due <= now {
                nexts.push(interfaces.time_out(due, HOST));
                due = Time::NEVER;
            }
            nexts.push(interfaces.arrive(now, HOST, interrupts, Packet::default()));
            for next in nexts {
                match next {
                    Next::Timer(at) => due = due.min(at),
                    Next::Loss => lost += 1,
                    Next::Wait => {}
                    Next::Interrupt => {
                        let packets = interfaces.take(HOST);
                        assert!(packets.len() <= 100);
                        taken += packets.len() as u64;
                        in_stalls += u64::from(packets.len() > 5);
                        interfaces.give_back(packets);
                    }
                }
            }
        }
        assert_eq!(taken + lost + interfaces.held_packets(), 2_000_000);
        // 20 s / 52 ms are 385 stalls. An exponential stall with mean 2 ms exceeds 1 ms by 2 ms exp(-1/2) on average,
        // or 121 packets.
        assert!((300..460).contains(&in_stalls), "{in_stalls} stalls");
        assert!((35_000..60_000).contains(&lost), "{lost} lost");
    }

    fn at(us: u64) -> Time {
        Time::from_ns(1000 * us)
    }

    #[test]
    fn an_interrupt_comes_by_the_count_or_when_the_first_has_waited() {
        let interrupts = Interrupts { packets: 3, after: Dur::from_us(50), ring: u32::MAX, stalls: None };
        let mut interfaces = Interfaces::new(1);
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
        // The next packets have until 80 us. The timer of the first batch is still pending, and is used again.
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
