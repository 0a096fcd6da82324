//! The processor time of acknowledgments: they leave their host one after another, each after a random time.

use crate::routing::network::NodeId;
use crate::wire::packet::Packet;
use sparelane_core::{Domain, Dur, Stream, Time};
use std::collections::{BTreeMap, VecDeque};

/// The acknowledgments that wait at one host.
#[derive(Clone, Debug)]
struct Line {
    rng: Stream,
    /// The time at which the last one leaves.
    last: Time,
    waiting: VecDeque<(Time, Packet)>,
}

/// The waiting acknowledgments of all hosts that delay them.
#[derive(Clone, Debug)]
pub(crate) struct Departures {
    seed: u64,
    hosts: BTreeMap<NodeId, Line>,
}

impl Departures {
    pub(crate) fn new(seed: u64) -> Departures {
        Departures { seed, hosts: BTreeMap::new() }
    }

    /// Draws the time at which an acknowledgment leaves `host` that is due now: an exponential time with this mean
    /// after those before it have left.
    pub(crate) fn draw(&mut self, now: Time, host: NodeId, mean: Dur) -> Time {
        let seed = self.seed;
        let line = self.hosts.entry(host).or_insert_with(|| {
            let rng = Stream::new(seed, Domain::AckDelay, u64::from(host.0));
            Line { rng, last: Time::ZERO, waiting: VecDeque::new() }
        });
        let cost = mean.scaled(-libm::log(line.rng.unit_above_zero()));
        line.last = line.last.max(now) + cost;
        line.last
    }

    /// Appends an acknowledgment that leaves at `at`. Returns true if it is the only one.
    pub(crate) fn put(&mut self, host: NodeId, at: Time, packet: Packet) -> bool {
        let Some(line) = self.hosts.get_mut(&host) else { unreachable!("its time was drawn before") };
        line.waiting.push_back((at, packet));
        line.waiting.len() == 1
    }

    /// Takes the next one if it leaves by `now`.
    pub(crate) fn take(&mut self, now: Time, host: NodeId) -> Option<Packet> {
        let line = self.hosts.get_mut(&host)?;
        if line.waiting.front().is_none_or(|&(at, _)| at > now) {
            return None;
        }
        line.waiting.pop_front().map(|(_, packet)| packet)
    }

    /// The time at which the next one leaves.
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

    /// 100,000 acknowledgments, far enough apart that none waits for another.
    #[test]
    fn costs_are_exponential_with_their_mean() {
        let (mut departures, host, mean) = (Departures::new(1), NodeId(0), Dur::from_us(10));
        let costs = (0..100_000).map(|number| {
            let now = Time::from_ns(1_000_000 * number);
            departures.draw(now, host, mean) - now
        });
        let costs: Vec<u64> = costs.map(Dur::as_ps).collect();
        let average = costs.iter().sum::<u64>() / costs.len() as u64;
        assert!((9_900_000..10_100_000).contains(&average), "{average} ps");
        // A share of exp(-3), or 5 %, take more than three times the mean.
        let long = costs.iter().filter(|&&cost| cost > 30_000_000).count();
        assert!((4_800..5_160).contains(&long), "{long}");
    }

    /// A hundred acknowledgments that are due together leave at the rate of the processor.
    #[test]
    fn they_are_processed_one_after_another_at_each_host() {
        let mut departures = Departures::new(2);
        let mut draw = |host| departures.draw(Time::ZERO, NodeId(host), Dur::from_us(10));
        let here: Vec<_> = (0..100).map(|_| draw(0)).collect();
        assert!(here.is_sorted());
        let last_us = here[99].as_ps() / 1_000_000;
        assert!((700..1_300).contains(&last_us), "{last_us} us for a hundred of 10 us");
        assert!(draw(1) < Time::from_ns(200_000), "another host has a line of its own");
    }
}
