//! The number of threads that a run has at present.
//!
//! Threads that meet many thousand times a second are slow if other programs keep their cores busy: each waits for one that
//! does not run. So a run measures its own speed, with one thread and with all, and keeps to the faster. Results do not
//! depend on it.

use std::time::Duration;

/// Of the first slices, the second is for one thread and the others are for all. The first is slow, because memory is
/// allocated in it.
const FIRST: u64 = 4;

/// A speed counts for less with every slice, so that one that was measured long ago does not decide.
const FADING: f64 = 0.95;

/// The number of slices from one trial to the next. A trial runs the number of threads that was slower before.
const TRIALS: u64 = 32;

/// The speeds of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    most: usize,
    /// The highest speeds of late on one thread and on all, events per second.
    speeds: [f64; 2],
    slices: u64,
}

impl Pace {
    /// A run on up to `most` threads.
    pub(super) fn new(most: usize) -> Pace {
        Pace { most, speeds: [0.0; 2], slices: 0 }
    }

    /// The number of threads for the next slice.
    pub(super) fn threads(&self) -> usize {
        let [alone, together] = self.speeds;
        let is_on_all = if self.slices < FIRST {
            self.slices != 1
        } else {
            let is_trial = self.slices.is_multiple_of(TRIALS);
            (together >= alone) != is_trial
        };
        if is_on_all { self.most } else { 1 }
    }

    /// Notes the speed of a slice.
    pub(super) fn note(&mut self, threads: usize, events: u64, took: Duration) {
        self.slices += 1;
        let speed = events as f64 / took.as_secs_f64().max(1e-9);
        // Other programs can slow a slice down, but none makes it faster than it is.
        let highest = &mut self.speeds[usize::from(threads > 1)];
        *highest = (*highest * FADING).max(speed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs slices at these speeds on one thread and on four. Returns how many took place on four.
    fn slices_on_four(alone: f64, together: f64) -> u32 {
        let mut pace = Pace::new(4);
        let slice = |pace: &mut Pace| {
            let threads = pace.threads();
            let speed = if threads == 1 { alone } else { together };
            pace.note(threads, 1_000, Duration::from_secs_f64(1_000.0 / speed));
            u32::from(threads == 4)
        };
        (0..640).map(|_| slice(&mut pace)).sum()
    }

    #[test]
    fn the_faster_number_of_threads_gets_nearly_all_slices() {
        assert!((610..=640).contains(&slices_on_four(1e6, 1.8e6)), "{}", slices_on_four(1e6, 1.8e6));
        assert!((1..=30).contains(&slices_on_four(1e6, 0.1e6)), "{}", slices_on_four(1e6, 0.1e6));
    }

    #[test]
    fn a_run_on_one_thread_stays_there() {
        let mut pace = Pace::new(1);
        for _ in 0..200 {
            assert_eq!(pace.threads(), 1);
            pace.note(1, 10, Duration::from_millis(1));
        }
    }
}
