//! Threads that take part in one slice of a run after another, and rest in between.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// The threads of a run, without the one that it was started from.
#[derive(Debug)]
pub(super) struct Crew<T> {
    members: Vec<Member<T>>,
}

#[derive(Debug)]
struct Member<T> {
    tasks: Sender<Task<T>>,
    done: Receiver<()>,
    thread: JoinHandle<()>,
}

/// The task of a thread in a slice: a function of the shared state and of the number of the thread, from one.
type Task<T> = (Arc<T>, fn(&T, usize));

impl<T: Send + Sync + 'static> Crew<T> {
    /// A crew without threads: they are started as they are needed.
    pub(super) fn new() -> Crew<T> {
        Crew { members: Vec::new() }
    }

    /// Calls `work` with `shared` on `threads` threads of the crew, and `lead` on this one. Returns when all are done.
    ///
    /// # Panics
    /// If one of them does.
    pub(super) fn work<R>(
        &mut self,
        threads: usize,
        shared: &Arc<T>,
        work: fn(&T, usize),
        lead: impl FnOnce(&T) -> R,
    ) -> R {
        for number in self.members.len()..threads {
            self.members.push(Member::new(number + 1));
        }
        for member in &self.members[..threads] {
            // A thread that has failed is found below.
            _ = member.tasks.send((Arc::clone(shared), work));
        }
        let result = lead(shared);
        let failed = (0..threads).rev().find(|&place| self.members[place].done.recv().is_err());
        if let Some(place) = failed
            && let Err(panic) = self.members.swap_remove(place).thread.join()
        {
            resume_unwind(panic);
        }
        result
    }
}

impl<T> Drop for Crew<T> {
    fn drop(&mut self) {
        for Member { tasks, thread, .. } in self.members.drain(..) {
            drop(tasks);
            // A panic has been passed on already.
            _ = thread.join();
        }
    }
}

impl<T: Send + Sync + 'static> Member<T> {
    fn new(number: usize) -> Member<T> {
        let (tasks, received) = channel::<Task<T>>();
        let (finished, done) = channel();
        let thread = thread::spawn(move || {
            for (shared, work) in received {
                work(&shared, number);
                // The caller takes what is shared apart once all threads have let go of it.
                drop(shared);
                if finished.send(()).is_err() {
                    break;
                }
            }
        });
        Member { tasks, done, thread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_threads_work_and_let_go() {
        let mut crew = Crew::new();
        for threads in [2, 3, 0, 1] {
            let sum = Arc::new(AtomicUsize::new(0));
            let add = |sum: &AtomicUsize, number: usize| _ = sum.fetch_add(number, Ordering::Relaxed);
            crew.work(threads, &sum, add, |sum| sum.fetch_add(100, Ordering::Relaxed));
            let sum = Arc::into_inner(sum).expect("no thread holds it").into_inner();
            assert_eq!(sum, 100 + threads * (threads + 1) / 2);
        }
    }

    #[test]
    fn a_panic_is_passed_on() {
        let mut crew = Crew::new();
        let fail = |_: &(), number: usize| assert!(number != 2, "the second thread fails");
        let result = catch_unwind(AssertUnwindSafe(|| crew.work(3, &Arc::new(()), fail, |()| ())));
        let panic = result.expect_err("a panic");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the second thread fails"));
    }
}
