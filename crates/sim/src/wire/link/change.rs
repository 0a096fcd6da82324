//! A link that changes while packets are on it: another rate, another delay, another loss.
//!
//! What is left of the packet in transmission goes at the new rate, and so does what waits. A longer delay is that of packets
//! whose transmission has not ended; what is on the wire keeps its arrival. With a shorter one, what is on the wire arrives no
//! later than a packet that leaves the transmitter now: packets never overtake each other on a wire.

use super::door::Door;
use super::{Link, LinkSpec, Waiting, doubtful_from};
use crate::routing::network::Loss;
use crate::wire::packet::Packet;
use sparelane_core::{Dur, Time};

impl Link {
    /// From `now` on, the rate and the delay are those of `spec`, which differs in nothing else from the link's.
    pub(crate) fn retune(&mut self, now: Time, spec: &LinkSpec) {
        self.commit(now);
        if let Waiting::InOrder(_) = self.queue {
            let peak = self.rate.bytes_in(self.closer_look.peak_wait);
            self.counts.peak_backlog_bytes = self.counts.peak_backlog_bytes.max(peak);
            self.closer_look.peak_wait = Dur::ZERO;
        }
        let (old_delay, in_transmission) = (self.delay, self.busy > now);
        let (mut sent, mut unsent) = (Vec::new(), Vec::new());
        while let Some(packet) = self.wire.pop_newest() {
            let has_ended = packet.at <= now + old_delay;
            if has_ended { sent.push(packet) } else { unsent.push(packet) }
        }
        for mut packet in sent.into_iter().rev() {
            packet.at = packet.at.min(now + spec.delay);
            self.wire.push(packet);
        }
        let current = unsent.last().map(|packet| self.time_of(packet.wire_bytes()));
        let left = current.map(|whole| (self.end_of_transmission(unsent.last(), now) - now, whole));
        (self.rate, self.byte_time, self.delay) = (spec.rate, spec.rate.byte_time(), spec.delay);
        let mut end = self.busy;
        for (place, mut packet) in unsent.into_iter().rev().enumerate() {
            let whole = self.time_of(packet.wire_bytes());
            end = match left {
                Some((left, before)) if place == 0 => now + share_of(whole, left, before),
                _ => end + whole,
            };
            packet.at = end + self.delay;
            self.wire.push(packet);
        }
        if in_transmission {
            self.busy = end;
        }
        self.closer_look.doubtful_from = doubtful_from(spec);
        if let Waiting::Active(active) = &mut self.queue {
            active.handle_rate(spec.rate);
        }
        self.set_closer_look();
    }

    /// When the transmission of a packet on the wire ends that has not ended by `now`.
    fn end_of_transmission(&self, packet: Option<&Packet>, now: Time) -> Time {
        packet.map_or(now, |packet| Time::ZERO + (packet.at - (Time::ZERO + self.delay)))
    }

    /// From now on, packets that come to this link, number `number` of its network, are lost like this.
    pub(crate) fn set_loss(&mut self, loss: Loss, seed: u64, number: u64) {
        self.opened_door().hazards.set_loss(loss, seed, number);
    }

    /// From now on, packets that come to this link are all lost on the wire, or only as `set_loss` says.
    pub(crate) fn set_down(&mut self, is_down: bool) {
        self.opened_door().hazards.is_down = is_down;
    }

    /// The door, through which every packet comes from now on.
    pub(super) fn opened_door(&mut self) -> &mut Door {
        let door = self.door.take().unwrap_or_else(|| Box::new(Door::open()));
        self.closer_look.doubtful_packets = 0;
        self.closer_look_when_empty = Dur::ZERO;
        self.closer_look_from = Dur::ZERO;
        self.door.insert(door)
    }
}

/// `left` of `before` is the same share of `whole`.
fn share_of(whole: Dur, left: Dur, before: Dur) -> Dur {
    let ps = u128::from(whole.as_ps()) * u128::from(left.as_ps()) / u128::from(before.as_ps().max(1));
    Dur::from_ps(ps.min(u128::from(whole.as_ps())) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Discipline, QueueSpec, RoomNeeded};
    use crate::routing::network::Limit;
    use sparelane_core::Rate;
    use std::sync::Arc;

    /// 8 Mb/s, where 1000 bytes take a millisecond, and 10 ms.
    fn spec(discipline: Discipline) -> LinkSpec {
        let limit = Limit::Packets(100);
        let queue = QueueSpec {
            discipline,
            limit,
            mark_at: None,
            bars_low_priority: false,
            push_out: true,
            room: RoomNeeded::Packet,
            rcp: None,
        };
        LinkSpec {
            rate: Rate::from_mbps(8),
            delay: Dur::from_ms(10),
            queue: Arc::new(queue),
            limit,
            loss: Loss::NONE,
            least: Dur::ZERO,
            memory: None,
            is_watched: true,
            largest_bytes: 1000,
        }
    }

    fn packet(seq: u32) -> Packet {
        Packet::example(0, seq, 1000, false)
    }

    fn ms(tenths: u64) -> Time {
        Time::from_ns(tenths * 100_000)
    }

    /// When what is on the link arrives, in tenths of a millisecond.
    fn arrivals(link: &mut Link) -> Vec<u64> {
        let mut all = Vec::new();
        while link.next_event() != Time::NEVER {
            let at = link.next_event();
            link.deliver(at);
            link.next_after(at);
            all.push(at.as_ps() / 100_000_000);
        }
        all
    }

    fn disciplines() -> [Discipline; 2] {
        [Discipline::Fifo, Discipline::Priority]
    }

    #[test]
    fn what_is_unsent_goes_at_the_new_rate() {
        for discipline in disciplines() {
            let spec = spec(discipline);
            let mut link = Link::new(&spec, 1, 0);
            (0..3).for_each(|seq| _ = link.send(Time::ZERO, &packet(seq), &mut Vec::new()));
            // Half of the second packet is sent; the rest takes twice as long.
            link.retune(ms(15), &LinkSpec { rate: Rate::from_mbps(4), ..spec.clone() });
            assert_eq!(link.waiting(ms(15)), (1000, 1));
            assert_eq!(link.waiting(ms(24)), (1000, 1));
            assert_eq!(link.waiting(ms(25)), (0, 0));
            _ = link.send(ms(30), &packet(3), &mut Vec::new());
            assert_eq!(arrivals(&mut link), [110, 125, 145, 165]);
        }
    }

    #[test]
    fn a_shorter_delay_hurries_what_is_on_the_wire_and_nothing_overtakes() {
        for discipline in disciplines() {
            let spec = spec(discipline);
            let mut link = Link::new(&spec, 1, 0);
            (0..3).for_each(|seq| _ = link.send(Time::ZERO, &packet(seq), &mut Vec::new()));
            // By then two are on the wire, which arrive with the third.
            link.retune(ms(25), &LinkSpec { delay: Dur::from_ms(1), ..spec.clone() });
            _ = link.send(ms(25), &packet(3), &mut Vec::new());
            assert_eq!(arrivals(&mut link), [35, 35, 40, 50]);
        }
    }

    #[test]
    fn a_longer_delay_is_of_what_is_unsent() {
        for discipline in disciplines() {
            let spec = spec(discipline);
            let mut link = Link::new(&spec, 1, 0);
            (0..3).for_each(|seq| _ = link.send(Time::ZERO, &packet(seq), &mut Vec::new()));
            link.retune(ms(15), &LinkSpec { delay: Dur::from_ms(20), ..spec.clone() });
            assert_eq!(arrivals(&mut link), [110, 220, 230]);
        }
    }

    #[test]
    fn a_slower_link_holds_as_many_packets_as_its_limit() {
        for discipline in disciplines() {
            let spec = LinkSpec { limit: Limit::Packets(4), ..spec(discipline) };
            let mut link = Link::new(&spec, 1, 0);
            let mut dropped = Vec::new();
            (0..2).for_each(|seq| _ = link.send(Time::ZERO, &packet(seq), &mut dropped));
            link.retune(ms(5), &LinkSpec { rate: Rate::from_bps(80_000), ..spec.clone() });
            (2..8).for_each(|seq| _ = link.send(ms(6), &packet(seq), &mut dropped));
            assert_eq!(dropped.iter().map(Packet::seq).collect::<Vec<_>>(), [5, 6, 7]);
            assert_eq!(arrivals(&mut link).len(), 5);
        }
    }

    #[test]
    fn what_comes_to_a_link_that_is_down_is_lost_and_no_more_when_it_is_up() {
        let spec = spec(Discipline::Fifo);
        let mut link = Link::new(&spec, 1, 0);
        let lost = |link: &mut Link, seq, at: Time| {
            _ = link.send(at, &packet(seq), &mut Vec::new());
            let due = link.next_event();
            link.deliver(due).is_lost_on_wire()
        };
        assert!(!lost(&mut link, 0, Time::ZERO));
        link.set_down(true);
        assert!(lost(&mut link, 1, ms(200)));
        link.set_down(false);
        assert!(!lost(&mut link, 2, ms(400)));
        link.set_loss(Loss::of_any(1.0), 1, 0);
        assert!(lost(&mut link, 3, ms(600)));
        link.set_loss(Loss::NONE, 1, 0);
        assert!(!lost(&mut link, 4, ms(800)));
    }
}
