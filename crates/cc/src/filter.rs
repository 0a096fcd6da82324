//! WindowedExtreme extremes: the largest or smallest sample within a sliding window.
//!
//! Time is any increasing count, such as round trips or picoseconds. The filter is exact. It keeps only the samples
//! that may still become the extreme, each better than all later ones (a monotonic queue).

use std::collections::VecDeque;

/// The kind of extreme that is tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extreme {
    Max,
    Min,
}

/// The extreme of the samples in a sliding window.
#[derive(Clone, Debug)]
pub struct WindowedExtreme<T> {
    extreme: Extreme,
    window: u64,
    /// Time and value of each sample, the current extreme first.
    samples: VecDeque<(u64, T)>,
}

impl<T: Copy + PartialOrd> WindowedExtreme<T> {
    /// Tracks the largest sample of the last `window` units of time. A sample taken at `t` counts until `t + window`,
    /// inclusive.
    pub fn max(window: u64) -> WindowedExtreme<T> {
        WindowedExtreme { extreme: Extreme::Max, window, samples: VecDeque::new() }
    }

    /// Tracks the smallest sample of the last `window` units of time.
    pub fn min(window: u64) -> WindowedExtreme<T> {
        WindowedExtreme { extreme: Extreme::Min, ..WindowedExtreme::max(window) }
    }

    /// Changes the length of the window from the next update on. Samples that a shorter window has dropped stay
    /// dropped.
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// Adds a sample taken at `now`, no earlier than the last one, and drops samples that are too old.
    pub fn update(&mut self, now: u64, value: T) {
        let extreme = self.extreme;
        let is_beaten = |old: &T| match extreme {
            Extreme::Max => *old <= value,
            Extreme::Min => *old >= value,
        };
        // A newer sample that is at least as good outlives every older one that it beats.
        while self.samples.back().is_some_and(|(_, old)| is_beaten(old)) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, value));
        self.advance(now);
    }

    /// Drops samples that are too old, possibly all of them.
    pub fn advance(&mut self, now: u64) {
        while self.samples.front().is_some_and(|(at, _)| now.saturating_sub(*at) > self.window) {
            self.samples.pop_front();
        }
    }

    /// Returns the extreme, if the window holds a sample.
    pub fn best(&self) -> Option<T> {
        self.samples.front().map(|&(_, value)| value)
    }

    /// Drops all samples.
    pub fn clear(&mut self) {
        self.samples.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    #[test]
    fn the_extreme_is_that_of_the_samples_in_the_window() {
        let mut stream = Stream::new(5, Domain::Test, 0);
        let (mut max, mut min) = (WindowedExtreme::max(10), WindowedExtreme::min(10));
        let (mut all, mut now) = (Vec::new(), 0);
        for _ in 0..5_000 {
            now += stream.below(4);
            let value = stream.below(100);
            all.push((now, value));
            max.update(now, value);
            min.update(now, value);
            let recent = || all.iter().filter(|(at, _)| now - at <= 10).map(|&(_, value)| value);
            assert_eq!((max.best(), min.best()), (recent().max(), recent().min()));
        }
    }

    #[test]
    fn a_shorter_window_drops_older_samples_at_the_next_update() {
        let mut min = WindowedExtreme::min(100);
        min.update(0, 1);
        min.update(50, 2);
        min.set_window(20);
        min.update(60, 3);
        assert_eq!(min.best(), Some(2));
        min.set_window(100);
        min.update(140, 4);
        assert_eq!(min.best(), Some(2), "the sample taken at 50 is 90 old");
    }

    #[test]
    fn time_alone_empties_a_window() {
        let mut max = WindowedExtreme::max(10);
        max.update(5, 1.5);
        max.advance(15);
        assert_eq!(max.best(), Some(1.5));
        max.advance(16);
        assert_eq!(max.best(), None);
    }
}
