//! An output of which nothing can be taken back, such as a pipe: the files of one transfer after another.
//!
//! The receiver accepts a file only after the one before it is written completely, so that nothing is stored elsewhere.
//! The digest of a file is known at its end; a wrong one is an error, but the bytes are written. If the connection is
//! lost within a file, the same file may continue where it has stopped. A stream cannot.

use super::chunks::{Chunks, Digest};
use super::name::Name;
use super::writer::{Answer, Job, Opening, write_all};
use crate::disk::Work;
use bytes::Bytes;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of pieces written by one system call.
const MAX_SLICES: usize = 256;

/// The reason for the refusal of a file while another transfer uses the output.
const IN_USE: &str = "another transfer is being written to the output";

/// An output for the files of one transfer at a time.
#[derive(Debug)]
pub struct Output {
    /// The number of writers so far; each has the next number, from one on.
    writers: AtomicU64,
    /// The number of the writer that uses it, or zero.
    owner: AtomicU64,
    /// Locked while the output waits for its reader.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// The file whose connection was lost, as far as it is written.
    left: Option<(Content, Chunks)>,
}

impl Output {
    /// Creates an output to an open file.
    pub fn new(file: File) -> Output {
        let state = Mutex::new(State { file, left: None });
        Output { writers: AtomicU64::new(0), owner: AtomicU64::new(0), state }
    }

    /// Returns the reason for which a file is refused if another writer than that with `number` uses the output. Never
    /// waits.
    pub(super) fn check_owner(&self, number: u64) -> Result<(), String> {
        let owner = self.owner.load(Ordering::Acquire);
        if owner == 0 || owner == number { Ok(()) } else { Err(IN_USE.to_owned()) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The identity of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Content {
    name: Name,
    /// The size in bytes; `None` for a stream.
    size: Option<u64>,
}

/// The file that is being written.
#[derive(Debug)]
struct Current {
    opening: Opening,
    content: Content,
    chunks: Chunks,
}

/// The writer of a transfer.
#[derive(Debug)]
pub struct OutputWriter {
    output: Arc<Output>,
    number: u64,
    current: Option<Current>,
    /// The files that wait for the current one.
    waiting: VecDeque<(Opening, Content)>,
}

impl OutputWriter {
    /// Creates the writer of a transfer.
    pub fn new(output: Arc<Output>) -> OutputWriter {
        let number = output.writers.fetch_add(1, Ordering::Relaxed) + 1;
        OutputWriter { output, number, current: None, waiting: VecDeque::new() }
    }

    /// Its number, unique for the output.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Accepts a file as the next one.
    fn open(&mut self, opening: Opening, content: Content, reply: &mut dyn FnMut(Answer)) {
        let checked = self.output.check_owner(self.number).and_then(|()| match &self.output.lock().left {
            Some((left, _)) if *left != content || content.size.is_none() => {
                Err(format!("the output ends with a part of {}", left.name))
            }
            _ => Ok(()),
        });
        if let Err(reason) = checked {
            return reply(Answer::Opened { opening, result: Err(reason) });
        }
        self.output.owner.store(self.number, Ordering::Release);
        self.waiting.push_back((opening, content));
        self.go_on(reply);
    }

    /// Begins the next file if there is no current one.
    fn go_on(&mut self, reply: &mut dyn FnMut(Answer)) {
        if self.current.is_some() {
            return;
        }
        let Some((opening, content)) = self.waiting.pop_front() else {
            let owner = &self.output.owner;
            // It may belong to another writer.
            let _ = owner.compare_exchange(self.number, 0, Ordering::AcqRel, Ordering::Acquire);
            return;
        };
        let chunks = match self.output.lock().left.take() {
            Some((_, chunks)) => chunks,
            None => content.size.map_or_else(Chunks::of_stream, Chunks::new),
        };
        let have = (chunks.position(), chunks.digests());
        self.current = Some(Current { opening, content, chunks });
        reply(Answer::Opened { opening, result: Ok(have) });
    }

    /// The current file, if it has this opening.
    fn current(&mut self, opening: Opening) -> io::Result<&mut Current> {
        self.current
            .as_mut()
            .filter(|current| current.opening == opening)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn begin(&mut self, opening: Opening, from: u64, again: &[u16]) -> io::Result<()> {
        match self.current(opening)?.chunks.position() == from && again.is_empty() {
            true => Ok(()),
            false => Err(io::Error::other("its first part is written, and has changed since")),
        }
    }

    fn write(&mut self, opening: Opening, pieces: &[Bytes]) -> io::Result<()> {
        // The lock is held while the output waits, but other transfers have nothing to write.
        let output = Arc::clone(&self.output);
        let current = self.current(opening)?;
        let mut state = output.lock();
        for some in pieces.chunks(MAX_SLICES) {
            let mut slices: Vec<IoSlice<'_>> = some.iter().map(|piece| IoSlice::new(piece)).collect();
            write_all(&mut Patient(&mut state.file), &mut slices)?;
        }
        pieces.iter().for_each(|piece| current.chunks.update(piece));
        Ok(())
    }

    fn finish(&mut self, opening: Opening, digest: Digest) -> io::Result<()> {
        let current = self.current(opening)?;
        if current.content.size.is_none() {
            current.chunks.end_stream();
        }
        match current.chunks.whole() == digest {
            true => Ok(()),
            false => Err(io::Error::other("the received content differs from the sent one, and is written")),
        }
    }

    /// Ends the current file, and goes on with the next one.
    fn end(&mut self, opening: Opening, reply: &mut dyn FnMut(Answer)) {
        if self.current(opening).is_ok() {
            self.current = None;
            self.go_on(reply);
        }
    }

    /// Ends a file that is not complete.
    fn close(&mut self, opening: Opening, reply: &mut dyn FnMut(Answer)) {
        self.waiting.retain(|(waiting, _)| *waiting != opening);
        if self.current(opening).is_ok()
            && let Some(current) = self.current.take()
        {
            if current.chunks.position() > 0 {
                self.output.lock().left = Some((current.content, current.chunks));
            }
            // The files that wait would continue in the middle of this one.
            for (opening, _) in std::mem::take(&mut self.waiting) {
                let reason = "the file before it is not complete".to_owned();
                reply(Answer::Opened { opening, result: Err(reason) });
            }
        }
        self.go_on(reply);
    }
}

impl Work for OutputWriter {
    type Job = Job;
    type Answer = Answer;

    fn work(&mut self, job: Job, reply: &mut dyn FnMut(Answer)) {
        match job {
            // Folders mean nothing here.
            Job::Make { opening, .. } | Job::Date { opening, .. } => {
                reply(Answer::Made { opening, result: Ok(()) });
            }
            Job::Open { opening, name, size, .. } => self.open(opening, Content { name, size: Some(size) }, reply),
            Job::OpenStream { opening, name } => self.open(opening, Content { name, size: None }, reply),
            Job::Begin { opening, from, again } => {
                if let Err(error) = self.begin(opening, from, &again) {
                    reply(Answer::Failed { opening, reason: error.to_string() });
                    self.close(opening, reply);
                }
            }
            Job::Write { opening, pieces } => match self.write(opening, &pieces) {
                Ok(()) => reply(Answer::Written),
                Err(error) => {
                    reply(Answer::Failed { opening, reason: format!("standard output: {error}") });
                    self.close(opening, reply);
                }
            },
            Job::Finish { opening, digest, .. } => {
                let result = self.finish(opening, digest).map_err(|error| error.to_string());
                reply(Answer::Stored { opening, result });
                self.end(opening, reply);
            }
            Job::Close { opening } => self.close(opening, reply),
            Job::Sync => reply(Answer::Synced),
            // No file is reported as existing.
            Job::Compare { .. } => {}
        }
    }
}

/// Waits for a file that another process has made non-blocking.
struct Patient<'a>(&'a mut File);

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            match self.0.write_vectored(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
                }
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
