//! Changes of a link while packets are on it: rate, delay, loss, up and down.
//!
//! The unsent rest of the packet in transmission and all waiting packets are sent at the new rate. A longer delay
//! applies to packets whose transmission has not ended; packets on the wire keep their arrival time. With a shorter
//! delay, packets on the wire arrive no later than one that leaves the transmitter now, so packets do not overtake each
//! other. If the change reorders packets, those that would arrive later leave the link instead, with their arrival time,
//! for the stage at its far end.

use super::ingress::Ingress;
use super::{Link, LinkSpec, Waiting, exact_check_wait};
use crate::config::Change;
use crate::routing::network::Loss;
use crate::wire::packet::Packet;
use sparelane_core::{Dur, Time};

impl Link {
    /// Applies `change` at `now`. `spec` has the new rate and delay. `number` is the link's number in its network.
    /// Returns the packets that later ones may overtake, in the order in which they were sent. They are no longer on the
    /// link, and count as delivered by it.
    pub(crate) fn apply(&mut self, now: Time, change: Change, spec: &LinkSpec, seed: u64, number: u64) -> Vec<Packet> {
        let overtaken = match change {
            Change::Delay { reorders: true, .. } if spec.reorders => self.take_overtaken(now, spec.delay),
            _ => Vec::new(),
        };
        match change {
            Change::Rate(_) | Change::Delay { .. } => self.retune(now, spec),
            Change::Loss(loss) => self.set_loss(loss, seed, number),
            Change::Down(is_down) => {
                // A PAUSE frame that has begun by now is sent.
                self.commit(now);
                self.set_down(is_down);
            }
        }
        overtaken
    }

    /// Takes the sent packets that would arrive after one that leaves the transmitter at `now`, with the new `delay`.
    /// PAUSE frames stay, and arrive no later than that one.
    fn take_overtaken(&mut self, now: Time, delay: Dur) -> Vec<Packet> {
        // Brings the count of waiting packets to the first one that is not sent, so that the order before it is free.
        self.waiting(now);
        let (mut overtaken, mut others) = (Vec::new(), Vec::new());
        while let Some(packet) = self.wire.pop_newest() {
            let is_sent = packet.at <= now + self.delay;
            let stays = !is_sent || packet.at <= now + delay || packet.pause_quanta().is_some();
            if stays { others.push(packet) } else { overtaken.push(packet) }
        }
        overtaken.reverse();
        for &packet in &overtaken {
            // The wire counts packets that leave it as delivered.
            self.wire.push(packet);
            self.wire.pop();
        }
        others.into_iter().rev().for_each(|packet| self.wire.push(packet));
        overtaken
    }

    /// Sets the rate and the delay of `spec` from `now` on. `spec` must equal the link's in everything else.
    fn retune(&mut self, now: Time, spec: &LinkSpec) {
        self.commit(now);
        // With a least transmission time, the peak is counted in bytes: see `note_backlog`.
        if matches!(self.queue, Waiting::InOrder(_)) && self.min_time.is_zero() {
            let peak = self.rate.bytes_in(self.exact_check.peak_wait);
            self.counts.peak_backlog_bytes = self.counts.peak_backlog_bytes.max(peak);
            self.exact_check.peak_wait = Dur::ZERO;
        }
        let (old_delay, in_transmission) = (self.delay, self.busy_until > now);
        // Packets whose transmission has ended are on the wire; the others are still to be sent at the new rate.
        let (mut sent, mut unsent) = (Vec::new(), Vec::new());
        while let Some(packet) = self.wire.pop_newest() {
            let has_ended = packet.at <= now + old_delay;
            if has_ended { sent.push(packet) } else { unsent.push(packet) }
        }
        for mut packet in sent.into_iter().rev() {
            packet.at = packet.at.min(now + spec.delay);
            self.wire.push(packet);
        }
        // Only the first unsent packet can be in transmission; the same share of it stays unsent.
        let current = unsent.last().map(|packet| self.time_of(packet.wire_bytes()));
        let left = unsent.last().zip(current).map(|(packet, whole)| (self.end_of_transmission(packet) - now, whole));
        // At the same rate, and along a trace, transmissions end when they would have ended.
        let has_same_rate = spec.rate == self.rate;
        let mut end = self.busy_until;
        (self.rate, self.byte_time) = (spec.rate, spec.rate.byte_time());
        for (place, mut packet) in unsent.into_iter().rev().enumerate() {
            let whole = self.time_of(packet.wire_bytes());
            end = match left {
                _ if has_same_rate => self.end_of_transmission(&packet),
                Some((left, before)) if place == 0 => now + share_of(whole, left, before),
                _ => end + whole,
            };
            packet.at = end + spec.delay;
            self.wire.push(packet);
        }
        self.delay = spec.delay;
        if in_transmission {
            self.busy_until = end;
        }
        self.exact_check.from_wait = exact_check_wait(spec);
        if let Waiting::Active(active) = &mut self.queue {
            active.handle_rate(spec.rate);
        }
        if let Some(meter) = self.ingress.as_mut().and_then(|ingress| ingress.meter.as_mut()) {
            meter.handle_rate(now, spec.rate);
        }
        // The requested time was computed with the old rate. A wake-up that is too early is harmless.
        if self.wake != Time::NEVER {
            self.wake = self.wake.min(now);
        }
        self.update_slow_path();
        self.rearm_after_change(now);
    }

    /// The end of the transmission of a packet on the wire.
    pub(super) fn end_of_transmission(&self, packet: &Packet) -> Time {
        Time::ZERO + (packet.at - (Time::ZERO + self.delay))
    }

    /// Changes the random loss of arriving packets. `number` is the link's number in its network.
    fn set_loss(&mut self, loss: Loss, seed: u64, number: u64) {
        self.ingress_mut().faults.set_loss(loss, seed, number);
    }

    /// Takes the link down or up. While down, it loses all arriving packets on the wire.
    fn set_down(&mut self, is_down: bool) {
        self.ingress_mut().faults.is_down = is_down;
    }

    /// Returns the ingress, and adds it if necessary. Every packet passes it from now on.
    pub(super) fn ingress_mut(&mut self) -> &mut Ingress {
        let ingress = self.ingress.take().unwrap_or_else(|| Box::new(Ingress::open()));
        self.exact_check.from_packets = 0;
        self.slow_path_when_empty = Dur::ZERO;
        self.slow_path_from = Dur::ZERO;
        self.ingress.insert(ingress)
    }
}

/// Scales the remaining time of a transmission: `left` is to `before` as the result is to `whole`. Rounds up, so that no
/// packet is ever sent faster than at the highest of its rates.
fn share_of(whole: Dur, left: Dur, before: Dur) -> Dur {
    let ps = u128::from(whole.as_ps()) * u128::from(left.as_ps());
    Dur::from_ps(ps.div_ceil(u128::from(before.as_ps().max(1))) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Discipline;
    use crate::routing::network::Limit;
    use sparelane_core::Rate;

    fn spec(discipline: Discipline) -> LinkSpec {
        LinkSpec { is_watched: true, changes: true, ..LinkSpec::example(discipline, Dur::from_ms(10), None) }
    }

    fn packet(seq: u32) -> Packet {
        Packet::example(0, seq, 1000, false)
    }

    fn ms(tenths: u64) -> Time {
        Time::from_ns(tenths * 100_000)
    }

    /// Arrival times of the packets on the link, in tenths of a millisecond.
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
    fn unsent_packets_leave_at_the_new_rate() {
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
    fn a_shorter_delay_advances_packets_on_the_wire_without_reordering() {
        for discipline in disciplines() {
            let spec = spec(discipline);
            let mut link = Link::new(&spec, 1, 0);
            (0..3).for_each(|seq| _ = link.send(Time::ZERO, &packet(seq), &mut Vec::new()));
            // By 2.5 ms two packets are on the wire; with the shorter delay they may arrive no later than the third.
            link.retune(ms(25), &LinkSpec { delay: Dur::from_ms(1), ..spec.clone() });
            _ = link.send(ms(25), &packet(3), &mut Vec::new());
            assert_eq!(arrivals(&mut link), [35, 35, 40, 50]);
        }
    }

    #[test]
    fn a_change_that_reorders_takes_packets_that_later_ones_may_overtake_off_the_link() {
        for discipline in disciplines() {
            let spec = LinkSpec { reorders: true, ..spec(discipline) };
            let mut link = Link::new(&spec, 1, 0);
            (0..4).for_each(|seq| _ = link.send(Time::ZERO, &packet(seq), &mut Vec::new()));
            // By 2.5 ms two packets are on the wire; the third is in transmission.
            let (change, delay) = (Change::Delay { delay: Dur::from_ms(1), reorders: true }, Dur::from_ms(1));
            let taken = link.apply(ms(25), change, &LinkSpec { delay, ..spec.clone() }, 1, 0);
            assert_eq!(
                taken.iter().map(|packet| (packet.seq(), packet.at)).collect::<Vec<_>>(),
                [(0, ms(110)), (1, ms(120))]
            );
            assert_eq!(
                (link.waiting(ms(25)), link.held_packets(), link.counts(ms(25)).delivered_packets),
                ((1000, 1), 2, 2)
            );
            assert_eq!(arrivals(&mut link), [40, 50]);
            // With a longer delay, no packet can be overtaken.
            _ = link.send(ms(60), &packet(4), &mut Vec::new());
            let longer = Change::Delay { delay: Dur::from_ms(5), reorders: true };
            assert!(link.apply(ms(75), longer, &LinkSpec { delay: Dur::from_ms(5), ..spec }, 1, 0).is_empty());
            assert_eq!(arrivals(&mut link), [80]);
        }
    }

    #[test]
    fn a_longer_delay_applies_to_unsent_packets() {
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
