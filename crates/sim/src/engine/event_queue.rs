//! The contract of event queues: which of a fixed set of sources has the next event.

use sparelane_core::Time;

/// An event queue over numbered sources, each with at most one pending event. Events are ordered by time, and then by
/// source. The last few sources are alarms, which change often.
pub(crate) trait EventQueue: std::fmt::Debug {
    /// True if [`ahead`](EventQueue::ahead) names coming events.
    const LOOKS_AHEAD: bool;
    /// The largest number of sources, alarms included.
    const SOURCES: usize;

    /// Returns a queue in which no source has an event. Sources from `first_alarm` on are alarms.
    fn new(first_alarm: usize, alarms: usize) -> Self;
    /// Sets the next event of `source` to `at`; [`Time::NEVER`] clears it.
    fn set(&mut self, source: usize, at: Time);
    /// Sets the next event of `source` to `at`, given that it had no event or a later one.
    fn lower(&mut self, source: usize, at: Time);
    /// Returns the source and time of the earliest event. The caller sets the next event of that source, or clears it,
    /// before the next call. `time_of` gives the next event of any source.
    fn next(&mut self, time_of: impl Fn(usize) -> Time) -> Option<(usize, Time)>;
    /// The source of the event that is expected after `places` others, a hint for prefetching.
    fn ahead(&self, places: usize) -> Option<usize>;
    /// A lower bound for the time of the earliest event.
    fn earliest(&self) -> Time;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};
    use std::collections::BTreeSet;

    /// Sets random events of sources up to `sources`, most of them at most `spread` picoseconds ahead, and checks that
    /// each of `steps` events is the earliest, and the one of the lowest source among those.
    pub(crate) fn agrees_with_a_sorted_set<Q: EventQueue>(queue: &mut Q, sources: usize, spread: u64, steps: u32) {
        let mut rng = Stream::new(5, Domain::Test, sources as u64);
        let mut times = vec![Time::NEVER; sources];
        let mut sorted = BTreeSet::new();
        let mut now = queue.earliest();
        if now == Time::NEVER {
            now = Time::ZERO;
        }
        for _ in 0..steps {
            // About as many sources get an event as lose one.
            for _ in 0..rng.below(3) {
                let source = rng.below(sources as u64) as usize;
                let ahead = if rng.below(50) == 0 { rng.below(1 << 57) } else { rng.below(spread) };
                let at = Time::from_ps(now.as_ps().saturating_add(ahead));
                let is_lower = at < times[source];
                if is_lower && rng.below(2) == 0 {
                    queue.lower(source, at);
                } else if is_lower || rng.below(4) == 0 {
                    queue.set(source, at);
                } else {
                    continue;
                }
                sorted.remove(&(times[source], source));
                sorted.insert((at, source));
                times[source] = at;
            }
            let found = queue.next(|source| times[source]);
            assert_eq!(found, sorted.pop_first().map(|(at, source)| (source, at)));
            if let Some((source, at)) = found {
                now = at;
                times[source] = Time::NEVER;
                queue.set(source, Time::NEVER);
            }
        }
    }
}
