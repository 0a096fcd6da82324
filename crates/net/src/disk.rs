//! One thread for disks, so that a slow one holds up no socket.
//!
//! A transfer has a [`Desk`]: it hands jobs in, and takes answers when the thread has [told](Disk::take_news) that there are some. The
//! jobs of all desks are done one after another, in their order. Nobody waits for a place: what finds none in the channel waits at
//! its desk, and a desk says when it has [room](Desk::has_room) for more bytes, so that what is held is bounded. A desk without a
//! thread does its jobs at once: tests in virtual time are the same run each time.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// So many jobs of all desks wait in the channel.
const MOST_JOBS: usize = 256;

/// So many bytes of one desk wait to be written, or one job more.
const MOST_BYTES: u64 = 8 << 20;

/// What a desk has open on the disk, and what it does there.
pub trait Work: Send + 'static {
    /// What is to be done.
    type Job: Send + 'static;
    /// What has become of it.
    type Answer: Send + 'static;

    /// Does a job, and tells what has become of it, once or more often.
    fn work(&mut self, job: Self::Job, tell: &mut dyn FnMut(Self::Answer));
}

enum Task {
    Job(Box<dyn FnOnce() + Send>),
    End,
}

/// The thread.
#[derive(Debug)]
pub struct Disk {
    tasks: SyncSender<Task>,
    bell: Arc<Bell>,
    news: PipeReader,
    thread: Option<JoinHandle<()>>,
}

/// Wakes whoever waits for news: there is one byte in the pipe where it has rung.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    pipe: PipeWriter,
}

impl Bell {
    fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // The other end is there as long as anybody waits.
            let _ = (&self.pipe).write_all(&[1]);
        }
    }
}

impl Disk {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has none left, or no pipe.
    pub fn start() -> io::Result<Disk> {
        let (news, pipe) = pipe()?;
        let (tasks, to_do) = sync_channel(MOST_JOBS);
        let thread = thread::Builder::new().name("disk".to_owned()).spawn(move || {
            while let Ok(Task::Job(job)) = to_do.recv() {
                job();
            }
        })?;
        let bell = Arc::new(Bell { rung: AtomicBool::new(false), pipe });
        Ok(Disk { tasks, bell, news, thread: Some(thread) })
    }

    /// A desk at this thread.
    pub fn desk<W: Work>(&self, work: W) -> Desk<W> {
        Desk { thread: Some((self.tasks.clone(), Arc::clone(&self.bell))), ..Desk::without_thread(work) }
    }

    /// What can be read where there are news.
    pub fn news(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// Whether a desk has answers since this was asked last.
    pub fn take_news(&mut self) -> bool {
        if !self.bell.rung.load(Ordering::Acquire) {
            return false;
        }
        // It rings anew for what comes from here on, also where that is taken with what has come.
        let _ = self.news.read_exact(&mut [0]);
        self.bell.rung.store(false, Ordering::Release);
        true
    }
}

impl Drop for Disk {
    /// All that was begun is done first.
    fn drop(&mut self) {
        let _ = self.tasks.send(Task::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Where one transfer hands in jobs, and takes answers.
pub struct Desk<W: Work> {
    thread: Option<(SyncSender<Task>, Arc<Bell>)>,
    work: Arc<Mutex<W>>,
    tell: Sender<W::Answer>,
    answers: Receiver<W::Answer>,
    /// What found no place in the channel.
    waiting: VecDeque<Task>,
    queued_bytes: Arc<AtomicU64>,
}

impl<W: Work> fmt::Debug for Desk<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Desk {{ queued_bytes: {} }}", self.queued_bytes.load(Ordering::Relaxed))
    }
}

impl<W: Work> Desk<W> {
    /// A desk that does its jobs as they come.
    pub fn without_thread(work: W) -> Desk<W> {
        let (tell, answers) = mpsc::channel();
        Desk {
            thread: None,
            work: Arc::new(Mutex::new(work)),
            tell,
            answers,
            waiting: VecDeque::new(),
            queued_bytes: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Whether less is to be written than may wait.
    pub fn has_room(&self) -> bool {
        self.queued_bytes.load(Ordering::Acquire) < MOST_BYTES
    }

    /// Whether bytes wait to be written.
    pub fn is_busy(&self) -> bool {
        self.queued_bytes.load(Ordering::Acquire) > 0
    }

    /// Hands in a job, which holds so many bytes.
    pub fn submit(&mut self, job: W::Job, bytes: u64) {
        self.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
        let (work, tell, queued) = (Arc::clone(&self.work), self.tell.clone(), Arc::clone(&self.queued_bytes));
        let bell = self.thread.as_ref().map(|(_, bell)| Arc::clone(bell));
        let task = move || {
            // A job that has panicked leaves what it has left: the others have files of their own.
            let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
            let ring = || bell.iter().for_each(|bell| bell.ring());
            work.work(job, &mut |answer| {
                // Nobody hears it where the transfer is over.
                let _ = tell.send(answer);
                ring();
            });
            queued.fetch_sub(bytes, Ordering::AcqRel);
            // For whoever waits for room, and was told before there was any.
            if bytes > 0 {
                ring();
            }
        };
        self.waiting.push_back(Task::Job(Box::new(task)));
        self.hand_on();
    }

    /// Hands on what has waited for a place in the channel, as far as there is one.
    fn hand_on(&mut self) {
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

    /// The next answer, if it is here.
    pub fn poll(&mut self) -> Option<W::Answer> {
        self.hand_on();
        self.answers.try_recv().ok()
    }

    /// Waits until all jobs are done: their answers are here then.
    pub fn settle(&mut self) {
        let Some((tasks, _)) = &self.thread else { return };
        let (tell, done) = mpsc::channel();
        self.waiting.push_back(Task::Job(Box::new(move || {
            let _ = tell.send(());
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

    /// Answers each number with the sum so far, after a while.
    struct Sum(u64, Duration);

    impl Work for Sum {
        type Job = u64;
        type Answer = u64;

        fn work(&mut self, job: u64, tell: &mut dyn FnMut(u64)) {
            thread::sleep(self.1);
            self.0 += job;
            tell(self.0);
        }
    }

    /// Whether there are news within a second.
    fn hears(disk: &mut Disk) -> bool {
        let timeout = PollTimeout::from(1000_u16);
        poll(&mut [PollFd::new(disk.news(), PollFlags::POLLIN)], timeout).expect("a pipe") == 1 && disk.take_news()
    }

    #[test]
    fn jobs_are_done_in_their_order_and_whoever_waits_is_woken() {
        let mut disk = Disk::start().expect("a thread");
        let mut desks = [3, 5].map(|_| disk.desk(Sum(0, Duration::ZERO)));
        // More than the channel holds.
        for number in 0..2 * MOST_JOBS as u64 {
            desks.iter_mut().for_each(|desk| desk.submit(number, 0));
        }
        let mut got = [vec![], vec![]];
        while got.iter().any(|got| got.len() < 2 * MOST_JOBS) {
            assert!(hears(&mut disk), "{} and {} answers", got[0].len(), got[1].len());
            for (got, desk) in got.iter_mut().zip(&mut desks) {
                got.extend(std::iter::from_fn(|| desk.poll()));
            }
        }
        let sums: Vec<u64> = (0..2 * MOST_JOBS as u64).map(|number| number * (number + 1) / 2).collect();
        assert!(got.iter().all(|got| *got == sums), "{got:?}");
    }

    #[test]
    fn a_desk_has_room_for_so_many_bytes_and_says_when_there_is_room_again() {
        let mut disk = Disk::start().expect("a thread");
        let mut desk = disk.desk(Sum(0, Duration::from_millis(20)));
        assert!(desk.has_room());
        desk.submit(1, MOST_BYTES);
        assert!(!desk.has_room(), "it is asleep");
        while !desk.has_room() {
            assert!(hears(&mut disk));
        }
        assert_eq!(desk.poll(), Some(1));
    }

    #[test]
    fn what_was_handed_in_is_done_before_the_thread_ends_and_by_whoever_waits_for_it() {
        let disk = Disk::start().expect("a thread");
        let mut desk = disk.desk(Sum(0, Duration::from_millis(1)));
        (1..=10).for_each(|number| desk.submit(number, 1));
        desk.settle();
        assert_eq!(std::iter::from_fn(|| desk.poll()).last(), Some(55));
        (1..=10).for_each(|number| desk.submit(number, 1));
        drop(disk);
        assert_eq!(std::iter::from_fn(|| desk.poll()).last(), Some(110));
        // Without its thread, a desk does its jobs by itself.
        desk.submit(1, 1);
        assert_eq!(desk.poll(), Some(111));
    }
}
