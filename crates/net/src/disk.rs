//! A thread for disk access, so that a slow disk does not delay the sockets.
//!
//! Each transfer has a [`JobQueue`]: it submits jobs, and reads answers once the thread has
//! [signalled](Disk::take_ready) them. The thread runs the jobs of all queues in order of submission. Submitting never
//! blocks: jobs that do not fit into the channel wait in their queue, and [`JobQueue::has_room`] bounds the bytes in
//! memory. A queue without a thread runs its jobs at once, so that tests in virtual time are reproducible.
//!
//! Jobs that may wait without limit, such as those on a pipe, run in a second thread.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

/// The capacity of the channel to the thread, jobs of all queues.
const MAX_JOBS: usize = 256;

/// The bytes waiting to be written above which a queue has no room; one job may exceed it.
const MAX_BYTES: u64 = 8 << 20;

/// The state on the disk behind a queue, and the jobs on it.
pub trait Work: Send + 'static {
    /// A job.
    type Job: Send + 'static;
    /// The result of a job.
    type Answer: Send + 'static;

    /// Runs a job and passes one or more answers to `reply`.
    fn work(&mut self, job: Self::Job, reply: &mut dyn FnMut(Self::Answer));
}

enum Task {
    Job(Box<dyn FnOnce() + Send>),
    End,
}

/// The thread.
#[derive(Debug)]
pub struct Disk {
    tasks: SyncSender<Task>,
    signal: Arc<ReadySignal>,
    ready: PipeReader,
    thread: Option<JoinHandle<()>>,
    /// The thread for jobs that may wait without limit, once it is needed.
    side: OnceLock<Option<SyncSender<Task>>>,
}

/// Wakes the socket loop when answers are ready: the pipe holds one byte while the signal is set.
#[derive(Debug)]
struct ReadySignal {
    is_set: AtomicBool,
    pipe: PipeWriter,
}

impl ReadySignal {
    fn set(&self) {
        if !self.is_set.swap(true, Ordering::AcqRel) {
            // The reading end exists as long as the loop waits.
            let _ = (&self.pipe).write_all(&[1]);
        }
    }
}

impl Disk {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread or pipe is available.
    pub fn start() -> io::Result<Disk> {
        let (ready, pipe) = pipe()?;
        let (tasks, thread) = start("disk")?;
        let signal = Arc::new(ReadySignal { is_set: AtomicBool::new(false), pipe });
        Ok(Disk { tasks, signal, ready, thread: Some(thread), side: OnceLock::new() })
    }

    /// Creates a queue for this thread.
    pub fn queue<W: Work>(&self, work: W) -> JobQueue<W> {
        JobQueue { thread: Some((self.tasks.clone(), Arc::clone(&self.signal))), ..JobQueue::without_thread(work) }
    }

    /// Creates a queue for jobs that may wait without limit. Its thread starts with the first such queue, and
    /// is not joined at the end.
    pub fn side_queue<W: Work>(&self, work: W) -> JobQueue<W> {
        let side = self.side.get_or_init(|| start("side").ok().map(|(tasks, _)| tasks));
        let thread = side.clone().map(|tasks| (tasks, Arc::clone(&self.signal)));
        // Without a thread, the caller waits itself.
        JobQueue { thread, ..JobQueue::without_thread(work) }
    }

    /// A descriptor that is readable when answers are ready.
    pub fn ready_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }

    /// Returns true if answers have become ready since the last call.
    pub fn take_ready(&mut self) -> bool {
        if !self.signal.is_set.load(Ordering::Acquire) {
            return false;
        }
        // The pipe is emptied first: an answer that becomes ready in between sets the signal again.
        let _ = self.ready.read_exact(&mut [0]);
        self.signal.is_set.store(false, Ordering::Release);
        true
    }
}

/// Starts a thread that runs tasks until it is told to end, or until all senders are dropped.
fn start(name: &str) -> io::Result<(SyncSender<Task>, JoinHandle<()>)> {
    let (tasks, received) = sync_channel(MAX_JOBS);
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        while let Ok(Task::Job(job)) = received.recv() {
            job();
        }
    })?;
    Ok((tasks, thread))
}

impl Drop for Disk {
    /// Runs all submitted jobs first.
    fn drop(&mut self) {
        let _ = self.tasks.send(Task::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A queue of jobs, with the channel for their answers.
pub struct JobQueue<W: Work> {
    thread: Option<(SyncSender<Task>, Arc<ReadySignal>)>,
    work: Arc<Mutex<W>>,
    reply: Sender<W::Answer>,
    answers: Receiver<W::Answer>,
    /// Jobs that did not fit into the channel.
    waiting: VecDeque<Task>,
    queued_bytes: Arc<AtomicU64>,
}

impl<W: Work> fmt::Debug for JobQueue<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobQueue {{ queued_bytes: {} }}", self.queued_bytes.load(Ordering::Relaxed))
    }
}

impl<W: Work> JobQueue<W> {
    /// Creates a queue that runs each job as it is submitted.
    pub fn without_thread(work: W) -> JobQueue<W> {
        let (reply, answers) = mpsc::channel();
        JobQueue {
            thread: None,
            work: Arc::new(Mutex::new(work)),
            reply,
            answers,
            waiting: VecDeque::new(),
            queued_bytes: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Returns true if the bytes waiting to be written are below the limit.
    pub fn has_room(&self) -> bool {
        self.queued_bytes.load(Ordering::Acquire) < MAX_BYTES
    }

    /// Returns true if bytes wait to be written.
    pub fn is_busy(&self) -> bool {
        self.queued_bytes.load(Ordering::Acquire) > 0
    }

    /// Submits a job that holds `bytes` in memory.
    pub fn submit(&mut self, job: W::Job, bytes: u64) {
        self.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
        let (work, reply, queued) = (Arc::clone(&self.work), self.reply.clone(), Arc::clone(&self.queued_bytes));
        let signal = self.thread.as_ref().map(|(_, signal)| Arc::clone(signal));
        let task = move || {
            // After a panic in a job the remaining jobs still run, since they use other files.
            let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
            let notify = || signal.iter().for_each(|signal| signal.set());
            work.work(job, &mut |answer| {
                // The receiver is gone if the transfer has ended.
                let _ = reply.send(answer);
                notify();
            });
            queued.fetch_sub(bytes, Ordering::AcqRel);
            // Wakes a transfer that found no room when its last answer came.
            if bytes > 0 {
                notify();
            }
        };
        self.waiting.push_back(Task::Job(Box::new(task)));
        self.dispatch();
    }

    /// Moves waiting jobs into the channel as far as it has room.
    fn dispatch(&mut self) {
        while let Some(task) = self.waiting.pop_front() {
            let refused = match &self.thread {
                Some((tasks, _)) => tasks.try_send(task),
                None => Err(TrySendError::Disconnected(task)),
            };
            match refused {
                Ok(()) => {}
                Err(TrySendError::Full(task)) => return self.waiting.push_front(task),
                Err(TrySendError::Disconnected(Task::Job(job))) => job(),
                Err(TrySendError::Disconnected(Task::End)) => {}
            }
        }
    }

    /// Returns the next answer, if there is one.
    pub fn poll(&mut self) -> Option<W::Answer> {
        self.dispatch();
        self.answers.try_recv().ok()
    }

    /// Waits until all jobs are done; their answers are ready afterwards.
    pub fn settle(&mut self) {
        let Some((tasks, _)) = &self.thread else { return };
        let (reply, done) = mpsc::channel();
        self.waiting.push_back(Task::Job(Box::new(move || {
            let _ = reply.send(());
        })));
        for task in self.waiting.drain(..) {
            if let Err(mpsc::SendError(Task::Job(job))) = tasks.send(task) {
                job();
            }
        }
        let _ = done.recv();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::time::Duration;

    /// Answers each number with the sum so far, after a delay.
    struct Sum(u64, Duration);

    impl Work for Sum {
        type Job = u64;
        type Answer = u64;

        fn work(&mut self, job: u64, reply: &mut dyn FnMut(u64)) {
            thread::sleep(self.1);
            self.0 += job;
            reply(self.0);
        }
    }

    /// Returns true if answers become ready within a second.
    fn becomes_ready(disk: &mut Disk) -> bool {
        let timeout = PollTimeout::from(1000_u16);
        poll(&mut [PollFd::new(disk.ready_fd(), PollFlags::POLLIN)], timeout).expect("a pipe") == 1 && disk.take_ready()
    }

    #[test]
    fn jobs_run_in_order_and_wake_the_waiting_loop() {
        let mut disk = Disk::start().expect("a thread");
        let mut queues = [3, 5].map(|_| disk.queue(Sum(0, Duration::ZERO)));
        // More jobs than the channel holds.
        for number in 0..2 * MAX_JOBS as u64 {
            queues.iter_mut().for_each(|queue| queue.submit(number, 0));
        }
        let mut got = [vec![], vec![]];
        while got.iter().any(|got| got.len() < 2 * MAX_JOBS) {
            assert!(becomes_ready(&mut disk), "{} and {} answers", got[0].len(), got[1].len());
            for (got, queue) in got.iter_mut().zip(&mut queues) {
                got.extend(std::iter::from_fn(|| queue.poll()));
            }
        }
        let sums: Vec<u64> = (0..2 * MAX_JOBS as u64).map(|number| number * (number + 1) / 2).collect();
        assert!(got.iter().all(|got| *got == sums), "{got:?}");
    }

    #[test]
    fn a_full_queue_signals_when_it_has_room_again() {
        let mut disk = Disk::start().expect("a thread");
        let mut queue = disk.queue(Sum(0, Duration::from_millis(20)));
        assert!(queue.has_room());
        queue.submit(1, MAX_BYTES);
        assert!(!queue.has_room(), "the job is still running");
        while !queue.has_room() {
            assert!(becomes_ready(&mut disk));
        }
        assert_eq!(queue.poll(), Some(1));
    }

    #[test]
    fn a_job_that_waits_delays_neither_other_queues_nor_the_end() {
        let mut disk = Disk::start().expect("a thread");
        let mut waiting = disk.side_queue(Sum(0, Duration::from_secs(3600)));
        let mut queue = disk.queue(Sum(0, Duration::ZERO));
        waiting.submit(1, 1);
        queue.submit(2, 1);
        assert!(becomes_ready(&mut disk));
        assert_eq!((queue.poll(), waiting.poll()), (Some(2), None));
        drop(disk);
        assert!(waiting.is_busy(), "nobody waits for it");
    }

    #[test]
    fn submitted_jobs_run_before_the_thread_ends() {
        let disk = Disk::start().expect("a thread");
        let mut queue = disk.queue(Sum(0, Duration::from_millis(1)));
        (1..=10).for_each(|number| queue.submit(number, 1));
        queue.settle();
        assert_eq!(std::iter::from_fn(|| queue.poll()).last(), Some(55));
        (1..=10).for_each(|number| queue.submit(number, 1));
        drop(disk);
        assert_eq!(std::iter::from_fn(|| queue.poll()).last(), Some(110));
        // Without its thread, the queue runs jobs itself.
        queue.submit(1, 1);
        assert_eq!(queue.poll(), Some(111));
    }
}
