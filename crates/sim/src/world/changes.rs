//! Scripted changes of links: their times, and what they imply for the laws that a run is checked against.
//!
//! A change happens after the arrivals of its instant and before everything that hosts do by a timer then.

use super::World;
use crate::config::{Change, ScriptedChange};
use crate::engine::fabric::{Alarm, Fabric};
use crate::routing::network::Network;
use crate::routing::routes::link_of;
use crate::wire::link::LinkSpec;
use crate::wire::trace::BYTE;
use sparelane_core::rate::ByteTime;
use sparelane_core::{Dur, Rate, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Changes that are still to come, and the links that change.
#[derive(Clone)]
pub(crate) struct Changes {
    upcoming: VecDeque<ScriptedChange>,
    /// Links that change, by number.
    links: BTreeMap<u32, Varying>,
    /// The highest rate and the shortest delay that each link has at any time of the run.
    best: Arc<[(ByteTime, Dur)]>,
}

/// A link that changes.
#[derive(Clone, Copy, Debug)]
struct Varying {
    /// The rate before the first change.
    configured: Rate,
    /// The rate changes, and not only the delay or the loss.
    has_rates: bool,
    /// The capacity until the last change of the rate, in bits per second times picoseconds.
    capacity: u128,
    /// The time of that change.
    since: Time,
}

impl Changes {
    /// The changes until `stop`, in order of time.
    pub(super) fn new(changes: Vec<ScriptedChange>, network: &Network, links: &[LinkSpec], stop: Time) -> Changes {
        let upcoming: VecDeque<_> = changes.into_iter().filter(|change| change.at <= stop).collect();
        let mut varying = BTreeMap::new();
        let peak = |spec: &LinkSpec| match &spec.trace {
            Some(trace) => trace.peak().unwrap_or(Rate::from_bps(u64::MAX)),
            None => spec.rate,
        };
        let mut best: Vec<_> = links.iter().map(|spec| (peak(spec).byte_time(), spec.delay)).collect();
        for change in &upcoming {
            let link = link_of(network, change.cable, change.from);
            let (spec, best) = (&links[link as usize], &mut best[link as usize]);
            let entry = varying.entry(link).or_insert(Varying {
                configured: spec.rate,
                has_rates: false,
                capacity: 0,
                since: Time::ZERO,
            });
            match change.change {
                Change::Rate(rate) => (best.0, entry.has_rates) = (best.0.min(rate.byte_time()), true),
                Change::Delay { delay, .. } => best.1 = best.1.min(spec.shortest(delay)),
                Change::Loss(_) | Change::Down(_) => {}
            }
        }
        Changes { upcoming, links: varying, best: best.into() }
    }

    /// The time of a byte at the highest rate, and the shortest delay, that a link has at any time of the run.
    pub(super) fn best(&self, link: u32) -> (ByteTime, Dur) {
        self.best[link as usize]
    }

    /// The rate of a link before any change.
    pub(super) fn configured(&self, link: u32, spec: &LinkSpec) -> Rate {
        self.links.get(&link).map_or(spec.rate, |varying| varying.configured)
    }

    /// The bits that a link can have sent by `now`, times 10^12. `spec` has its present rate.
    pub(super) fn capacity(&self, link: u32, spec: &LinkSpec, now: Time) -> u128 {
        if let Some(trace) = &spec.trace {
            return trace.capacity(now);
        }
        let (before, since) = self.links.get(&link).map_or((0, Time::ZERO), |link| (link.capacity, link.since));
        before + u128::from(spec.rate.as_bps()) * u128::from((now - since).as_ps())
    }

    /// The bytes that a link can have sent by `now`, if its rate varies.
    pub(crate) fn offered_bytes(&self, link: u32, spec: &LinkSpec, now: Time) -> Option<u64> {
        let varies = spec.trace.is_some() || self.links.get(&link).is_some_and(|link| link.has_rates);
        varies.then(|| u64::try_from(self.capacity(link, spec, now) / BYTE).unwrap_or(u64::MAX))
    }

    /// The mean rate of a link until `now`.
    pub(super) fn mean_rate(&self, link: u32, spec: &LinkSpec, now: Time) -> Rate {
        let elapsed = u128::from((now - Time::ZERO).as_ps());
        match (self.links.contains_key(&link) || spec.trace.is_some()) && elapsed > 0 {
            true => Rate::from_bps((self.capacity(link, spec, now) / elapsed) as u64),
            false => spec.rate,
        }
    }
}

impl<F: Fabric> World<F> {
    /// Sets the alarm for the next change.
    pub(super) fn await_next_change(&mut self) {
        let next = self.changes.upcoming.front().map_or(Time::NEVER, |change| change.at);
        self.fabric.arm(Alarm::Change, next);
    }

    /// Applies the changes that are due.
    pub(super) fn change_links(&mut self) {
        let now = self.now;
        while let Some(&next) = self.changes.upcoming.front().filter(|change| change.at <= now) {
            self.changes.upcoming.pop_front();
            let link = link_of(&self.layout.network, next.cable, next.from);
            let spec = &mut Arc::make_mut(&mut self.layout.links)[link as usize];
            let capacity = self.changes.capacity(link, spec, now);
            if let Some(varying) = self.changes.links.get_mut(&link) {
                (varying.capacity, varying.since) = (capacity, now);
            }
            spec.apply(next.change);
            self.fabric.change(now, link, next.change, spec, self.settings.seed);
        }
        self.await_next_change();
    }
}
