//! The exchange of packets between domains, and the barrier at which their threads meet.

use crate::engine::exits::Parcel;
#[cfg(loom)]
use loom::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
    thread::yield_now,
};
use sparelane_core::Time;
use std::hint::spin_loop;
use std::sync::PoisonError;
#[cfg(not(loom))]
use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
    thread::yield_now,
};

/// The state that a domain publishes at the end of a window.
#[derive(Debug, Default)]
struct Notice {
    next_ps: AtomicU64,
    events: AtomicU64,
    failed: AtomicBool,
}

/// The state of a domain, or of all, after a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// A lower bound for the time of the next event, packets to other domains included.
    pub(super) next: Time,
    /// Events at hosts since the run began.
    pub(super) events: u64,
    /// A domain has failed.
    pub(super) failed: bool,
}

impl Summary {
    /// The state of no domain.
    const NONE: Summary = Summary { next: Time::NEVER, events: 0, failed: false };

    fn and(self, other: Summary) -> Summary {
        Summary {
            next: self.next.min(other.next),
            events: self.events + other.events,
            failed: self.failed || other.failed,
        }
    }
}

/// Parcels and notices of one window, which the next one reads.
#[derive(Debug, Default)]
struct Side {
    /// Parcels by receiving domain, then by sending domain.
    parcels: Vec<Mutex<Parcel>>,
    notices: Vec<Notice>,
}

impl Side {
    fn new(domains: usize) -> Side {
        Side {
            parcels: (0..domains * domains).map(|_| Mutex::default()).collect(),
            notices: (0..domains).map(|_| Notice::default()).collect(),
        }
    }
}

/// Everything that domains exchange at the end of a window. Windows alternate between two sides: what one writes is read
/// in the next, while that one writes the other side.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    domains: usize,
    sides: [Side; 2],
}

impl Exchange {
    pub(super) fn new(domains: usize) -> Exchange {
        Exchange { domains, sides: [Side::new(domains), Side::new(domains)] }
    }

    /// Hands over a parcel that is written in `window`, and returns an empty one in its place.
    pub(super) fn put(&self, window: u64, from: usize, to: usize, parcel: &mut Parcel) {
        if !parcel.is_empty() {
            std::mem::swap(&mut *self.parcel(window, from, to), parcel);
            debug_assert!(parcel.is_empty(), "a parcel was not taken");
        }
    }

    /// Passes the parcels for a domain that were written in the window before `window` to `take`, in the order of their
    /// senders. It empties them.
    pub(super) fn take(&self, window: u64, to: usize, mut take: impl FnMut(&mut Parcel)) {
        for from in (0..self.domains).filter(|&from| from != to) {
            let mut parcel = self.parcel(window + 1, from, to);
            if !parcel.is_empty() {
                take(&mut parcel);
            }
        }
    }

    fn parcel(&self, window: u64, from: usize, to: usize) -> MutexGuard<'_, Parcel> {
        let parcel = self.sides[side_of(window)].parcels[to * self.domains + from].lock();
        parcel.unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the state of a domain after `window`.
    pub(super) fn publish(&self, window: u64, domain: usize, summary: Summary) {
        let Notice { next_ps, events, failed } = &self.sides[side_of(window)].notices[domain];
        // The barrier orders these writes before the reads.
        next_ps.store(summary.next.as_ps(), Ordering::Relaxed);
        events.store(summary.events, Ordering::Relaxed);
        failed.store(summary.failed, Ordering::Relaxed);
    }

    /// The state of all domains after `window`, once all have published theirs.
    pub(super) fn summary(&self, window: u64) -> Summary {
        let notices = self.sides[side_of(window)].notices.iter().map(|notice| Summary {
            next: Time::from_ps(notice.next_ps.load(Ordering::Relaxed)),
            events: notice.events.load(Ordering::Relaxed),
            failed: notice.failed.load(Ordering::Relaxed),
        });
        notices.fold(Summary::NONE, Summary::and)
    }
}

fn side_of(window: u64) -> usize {
    (window % 2) as usize
}

/// A barrier for threads that meet many thousand times a second. They wait actively at first, and then let others run.
#[derive(Debug)]
pub(super) struct Barrier {
    threads: u32,
    arrived: AtomicU32,
    /// The number of times that all threads have met.
    meetings: AtomicU32,
    /// A thread will never arrive.
    is_broken: AtomicBool,
    /// The number of turns of active waiting.
    patience: u32,
}

/// A thread will never arrive at the barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl Barrier {
    /// A barrier for `threads` threads on a machine with `cores` cores; zero if their number is not known.
    pub(super) fn new(threads: usize, cores: usize) -> Barrier {
        // With fewer cores than threads, active waiting takes the time of those that are waited for.
        let patience = if threads <= cores || cores == 0 { 20_000 } else { 0 };
        Barrier {
            threads: threads as u32,
            arrived: AtomicU32::new(0),
            meetings: AtomicU32::new(0),
            is_broken: AtomicBool::new(false),
            patience,
        }
    }

    /// Waits for all other threads.
    pub(super) fn meet(&self) -> Result<(), Broken> {
        let meeting = self.meetings.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.meetings.store(meeting.wrapping_add(1), Ordering::Release);
            return Ok(());
        }
        let mut turns = 0;
        while self.meetings.load(Ordering::Acquire) == meeting {
            if self.is_broken.load(Ordering::Relaxed) {
                return Err(Broken);
            }
            if turns < self.patience {
                turns += 1;
                spin_loop();
            } else {
                yield_now();
            }
        }
        Ok(())
    }

    /// Releases all threads that wait, or will wait, because one has failed.
    pub(super) fn break_up(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }
}

/// Every order of the threads' steps, by the model checker `loom`: `make races`.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::wire::packet::Packet;
    use loom::sync::Arc;
    use loom::thread;

    /// Runs windows of one domain. In each it finds what the other sent in the window before, and then both publish.
    fn run_windows(exchange: &Exchange, barrier: &Barrier, domain: usize, windows: u64) {
        for window in 0..windows {
            let mut found = Vec::new();
            exchange.take(window, domain, |parcel| {
                found.extend(parcel.packets.drain(..).map(|(link, _)| u64::from(link)));
            });
            assert_eq!(found, if window == 0 { vec![] } else { vec![10 * window] }, "window {window}");
            let mut parcel = Parcel::default();
            parcel.packets.push((10 * (window as u32 + 1), Packet::default()));
            exchange.put(window, domain, 1 - domain, &mut parcel);
            let (next, events) = (Time::from_ps(100 * (window + 1) + domain as u64), window + 1);
            exchange.publish(window, domain, Summary { next, events, failed: false });
            assert_eq!(barrier.meet(), Ok(()));
            let all = exchange.summary(window);
            assert_eq!((all.next, all.events), (Time::from_ps(100 * (window + 1)), 2 * events), "window {window}");
        }
    }

    #[test]
    fn both_domains_read_what_was_written_in_the_window_before() {
        loom::model(|| {
            let shared = Arc::new((Exchange::new(2), Barrier::new(2, 1)));
            let other = Arc::clone(&shared);
            let thread = thread::spawn(move || run_windows(&other.0, &other.1, 1, 3));
            run_windows(&shared.0, &shared.1, 0, 3);
            thread.join().expect("the other domain succeeds");
        });
    }

    #[test]
    fn a_thread_that_waits_is_released_when_another_fails() {
        loom::model(|| {
            let barrier = Arc::new(Barrier::new(2, 1));
            let other = Arc::clone(&barrier);
            let thread = thread::spawn(move || other.break_up());
            assert_eq!(barrier.meet(), Err(Broken));
            thread.join().expect("the other thread ends");
        });
    }
}
