//! The stages at the far ends of links with jitter, reordering, duplicates, or changes of the delay that reorder packets.
//!
//! A packet that has crossed such a link waits in its stage until it is due, and continues on its route then. The stage
//! sorts packets by the time at which they are due, so that they can overtake each other. It has a leaf of its own in
//! the event tree. Links without a stage pay nothing: a packet that is to pass a stage is recognized as a lost one is,
//! because its position lies beyond the table of routes.
//!
//! A packet that is held back follows the packet that arrived `distance` packets after it, or continues on its own after
//! a given time.
//!
//! If a change of the delay reorders packets, those on the wire wait in the stage until they arrive, in front of all
//! other effects. Packets that were sent later overtake them on the wire.

use crate::wire::effects::{Draws, Reordering};
use crate::wire::link::LinkSpec;
use crate::wire::packet::Packet;
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, VecDeque};

/// The order in which packets leave a stage: by time, then by the order in which that time was set.
type Key = (Time, u64);

/// A packet with its number in the order of sending. A copy has the number of its original.
type Numbered = (u64, Packet);

/// A stage.
#[derive(Debug)]
pub(crate) struct Stage {
    /// The link that the packets come from.
    pub(crate) link: u32,
    draws: Draws,
    due: BTreeMap<Key, Numbered>,
    /// Packets that have not arrived, since they were sent before the delay fell, by their time of arrival.
    late: BTreeMap<Key, Numbered>,
    /// Packets that are held back, each with the number of the arrival that it follows.
    held: VecDeque<(u64, Key)>,
    /// The number of arrivals, and of keys.
    arrivals: u64,
    keys: u64,
    /// The latest time at which a packet that is not held back is due.
    latest: Time,
    /// The last number that was given, that of the packet that was added last, and the highest of those that left.
    last_number: u64,
    added: u64,
    highest_gone: u64,
    /// Copies, and packets that left after one that was sent later.
    duplicated: u64,
    reordered: u64,
}

impl Stage {
    /// The stage of link number `link`, if it has one.
    pub(crate) fn of(spec: &LinkSpec, seed: u64, link: u32) -> Option<Stage> {
        let draws = spec.draws(seed, link)?;
        Some(Stage::with(draws, link))
    }

    fn with(draws: Draws, link: u32) -> Stage {
        let (due, late, held) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Stage {
            link,
            draws,
            due,
            late,
            held,
            arrivals: 0,
            keys: 0,
            latest: Time::ZERO,
            last_number: 0,
            added: 0,
            highest_gone: 0,
            duplicated: 0,
            reordered: 0,
        }
    }

    /// The time at which the next packet is due or arrives.
    pub(crate) fn next_event(&self) -> Time {
        let first =
            |packets: &BTreeMap<Key, Numbered>| packets.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        first(&self.due).min(first(&self.late))
    }

    /// The number of packets.
    pub(crate) fn packets(&self) -> u64 {
        (self.due.len() + self.late.len()) as u64
    }

    /// Changes the mean delay of the link.
    pub(crate) fn set_delay(&mut self, delay: Dur) {
        self.draws.set_delay(delay);
    }

    /// Lets packets that have not arrived do so at `at` at the latest, in the order in which they were sent.
    pub(crate) fn hasten(&mut self, at: Time) {
        let later = self.late.split_off(&(at, u64::MAX));
        let mut later: Vec<_> = later.into_iter().map(|((_, key), packet)| (key, packet)).collect();
        later.sort_unstable_by_key(|(key, _)| *key);
        self.late.extend(later.into_iter().map(|(key, packet)| ((at, key), packet)));
    }

    /// Adds a packet that was sent before the delay fell, and arrives at `packet.at`.
    pub(crate) fn add_late(&mut self, packet: Packet) {
        let (key, number) = (self.key(packet.at), self.next_number());
        self.late.insert(key, (number, packet));
    }

    /// Takes the packet that arrives at `now`, if it was sent before the delay fell, with its number.
    pub(crate) fn take_late(&mut self, now: Time) -> Option<Numbered> {
        let first = self.late.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Draws whether the packet that arrives next is doubled.
    pub(crate) fn is_doubled(&mut self) -> bool {
        self.draws.is_doubled()
    }

    /// The number of the packet that was sent after all others so far.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Adds a copy of the packet that was added last.
    pub(crate) fn add_copy(&mut self, now: Time, packet: Packet) {
        self.duplicated += 1;
        self.add(now, self.added, packet);
    }

    /// Packets that were doubled, and packets that left after one that was sent later.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.duplicated, self.reordered)
    }

    /// Adds the packet with this number, which arrives at `now`.
    pub(crate) fn add(&mut self, now: Time, number: u64, packet: Packet) {
        self.added = number;
        let mut at = now + self.draws.extra();
        if !self.draws.effects.jitter.is_some_and(|jitter| jitter.reorders) {
            at = at.max(self.latest);
        }
        match self.draws.is_held() {
            Some(Reordering { distance, within, .. }) => {
                let key = self.key(at + within);
                self.due.insert(key, (number, packet));
                self.held.push_back((self.arrivals + distance, key));
            }
            None => {
                let key = self.key(at);
                self.due.insert(key, (number, packet));
                self.latest = self.latest.max(at);
            }
        }
        while let Some(&(follows, held)) = self.held.front().filter(|(follows, _)| *follows <= self.arrivals) {
            debug_assert!(follows == self.arrivals, "a packet that is held back follows exactly one other");
            self.held.pop_front();
            // It may have left on its own.
            if held.0 > at
                && let Some(packet) = self.due.remove(&held)
            {
                let key = self.key(at);
                self.due.insert(key, packet);
            }
        }
        self.arrivals += 1;
    }

    /// Takes the packet that is due.
    pub(crate) fn take(&mut self) -> Option<Packet> {
        let (_, (number, packet)) = self.due.pop_first()?;
        self.reordered += u64::from(number < self.highest_gone);
        self.highest_gone = self.highest_gone.max(number);
        Some(packet)
    }

    fn key(&mut self, at: Time) -> Key {
        self.keys += 1;
        (at, self.keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::effects::{Distribution, Effects, Jitter};
    use std::sync::Arc;

    fn stage(effects: Effects) -> Stage {
        Stage::with(Draws::new(&Arc::new(effects), Dur::from_ms(10), 1, 3), 3)
    }

    /// Adds a packet every millisecond, and returns the order in which they leave, with the time of each.
    fn order(stage: &mut Stage, packets: u32) -> Vec<(u32, Time)> {
        let mut order = Vec::new();
        let mut drain = |stage: &mut Stage, until: Time| {
            while stage.next_event() <= until {
                let at = stage.next_event();
                order.extend(stage.take().map(|packet| (packet.seq(), at)));
            }
        };
        for seq in 0..packets {
            let now = Time::ZERO + Dur::from_ms(1) * u64::from(seq);
            let number = stage.next_number();
            stage.add(now, number, Packet::example(0, seq, 1500, false));
            drain(stage, now);
        }
        drain(stage, Time::from_ps(Time::NEVER.as_ps() - 1));
        order
    }

    #[test]
    fn a_packet_that_is_held_back_follows_as_many_later_ones_as_asked() {
        let reordering = Reordering { probability: 0.05, distance: 3, within: Dur::from_secs(1) };
        let order = order(&mut stage(Effects { reordering: Some(reordering), ..Effects::default() }), 2_000);
        let mut overtaken = 0;
        for (place, &(seq, at)) in order.iter().enumerate() {
            let earlier = order[..place].iter().filter(|(other, _)| *other > seq).count();
            // Some of the packets that overtake it may be held back themselves.
            assert!(earlier <= 3, "{earlier} packets overtook {seq}");
            overtaken += usize::from(earlier > 0);
            assert!(at <= Time::ZERO + Dur::from_ms(1) * (u64::from(seq) + 3) || seq + 3 >= 2_000);
        }
        assert!((70..130).contains(&overtaken), "{overtaken} packets were overtaken");
    }

    #[test]
    fn late_packets_arrive_in_time_or_by_a_change_that_hastens_them() {
        let mut stage = stage(Effects::default());
        let at = |ms| Time::ZERO + Dur::from_ms(ms);
        for (seq, ms) in [(0, 9), (1, 20), (2, 15), (3, 20)] {
            let mut packet = Packet::example(0, seq, 1500, false);
            packet.at = at(ms);
            stage.add_late(packet);
        }
        assert_eq!((stage.packets(), stage.next_event(), stage.take_late(at(8)).is_none()), (4, at(9), true));
        stage.hasten(at(12));
        let mut arrivals = Vec::new();
        while stage.next_event() != Time::NEVER {
            let now = stage.next_event();
            arrivals.extend(stage.take_late(now).map(|(_, packet)| (packet.seq(), now)));
        }
        assert_eq!(arrivals, [(0, at(9)), (1, at(12)), (2, at(12)), (3, at(12))]);
    }

    #[test]
    fn a_packet_without_followers_leaves_in_time() {
        let reordering = Reordering { probability: 1.0, distance: 3, within: Dur::from_ms(7) };
        let order = order(&mut stage(Effects { reordering: Some(reordering), ..Effects::default() }), 1);
        assert_eq!(order, [(0, Time::ZERO + Dur::from_ms(7))]);
    }

    #[test]
    fn jitter_reorders_only_if_asked() {
        let jitter = |reorders| {
            let (spread, distribution) = (Dur::from_ms(5), Distribution::Uniform);
            Effects { jitter: Some(Jitter { spread, distribution, correlation: 0.0, reorders }), ..Effects::default() }
        };
        let kept: Vec<_> = order(&mut stage(jitter(false)), 500).into_iter().map(|(seq, _)| seq).collect();
        assert!(kept.is_sorted());
        let mixed: Vec<_> = order(&mut stage(jitter(true)), 500).into_iter().map(|(seq, _)| seq).collect();
        assert!(!mixed.is_sorted() && mixed.len() == 500);
    }
}
