//! Acknowledgments that leave a host some time after the data that they acknowledge was taken, in order.

use crate::network::NodeId;
use crate::packet::Packet;
use sparelane_core::{Domain, Dur, Stream, Time};
use std::collections::{BTreeMap, VecDeque};

/// What waits at one host.
#[derive(Clone, Debug)]
struct Line {
    rng: Stream,
    /// When the last one leaves.
    last: Time,
    waiting: VecDeque<(Time, Packet)>,
}

/// The acknowledgments of all hosts that delay them.
#[derive(Clone, Debug)]
pub(crate) struct Departures {
    seed: u64,
    hosts: BTreeMap<NodeId, Line>,
}

impl Departures {
    pub(crate) fn new(seed: u64) -> Departures {
        Departures { seed, hosts: BTreeMap::new() }
    }

    /// When an acknowledgment leaves `host` that is due now: up to `most` later, and not before an earlier one.
    pub(crate) fn draw(&mut self, now: Time, host: NodeId, most: Dur) -> Time {
        let seed = self.seed;
        let line = self.hosts.entry(host).or_insert_with(|| {
            let rng = Stream::new(seed, Domain::AckDelay, u64::from(host.0));
            Line { rng, last: Time::ZERO, waiting: VecDeque::new() }
        });
        let delay = Dur::from_ps(line.rng.below(most.as_ps() + 1));
        line.last = line.last.max(now + delay);
        line.last
    }

    /// Puts an acknowledgment in line that leaves `at`. Returns whether it is the only one.
    pub(crate) fn put(&mut self, host: NodeId, at: Time, packet: Packet) -> bool {
        let Some(line) = self.hosts.get_mut(&host) else { unreachable!("its time was drawn before") };
        line.waiting.push_back((at, packet));
        line.waiting.len() == 1
    }

    /// The next one, if it leaves by `now`.
    pub(crate) fn take(&mut self, now: Time, host: NodeId) -> Option<Packet> {
        let line = self.hosts.get_mut(&host)?;
        if line.waiting.front().is_none_or(|&(at, _)| at > now) {
            return None;
        }
        line.waiting.pop_front().map(|(_, packet)| packet)
    }

    /// When the next one leaves.
    pub(crate) fn next(&self, host: NodeId) -> Option<Time> {
        self.hosts.get(&host)?.waiting.front().map(|&(at, _)| at)
    }

    /// Acknowledgments that wait at any host.
    pub(crate) fn held_packets(&self) -> u64 {
        self.hosts.values().map(|line| line.waiting.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100,000 acknowledgments, one every 100 us, so that none waits for another.
    #[test]
    fn delays_are_uniform_up_to_the_bound() {
        let (mut departures, host, most) = (Departures::new(1), NodeId(0), Dur::from_us(60));
        let mut bins = [0_u32; 6];
        for number in 0..100_000 {
            let now = Time::from_ns(100_000 * number);
            let delay = departures.draw(now, host, most) - now;
            assert!(delay <= most, "{delay}");
            bins[(delay.as_ps() / 10_000_000).min(5) as usize] += 1;
        }
        assert!(bins.iter().all(|count| (16_000..17_300).contains(count)), "{bins:?}");
    }

    #[test]
    fn none_overtakes_another_of_its_host() {
        let mut departures = Departures::new(2);
        let mut draw = |us: u64, host| departures.draw(Time::from_ns(1000 * us), NodeId(host), Dur::from_us(60));
        let here: Vec<_> = (0..1000).map(|us| draw(us, 0)).collect();
        assert!(here.is_sorted());
        // Another host has a line of its own.
        assert!(draw(0, 1) <= Time::from_ns(60_000));
    }
}
