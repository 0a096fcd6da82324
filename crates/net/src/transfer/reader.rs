//! The sending side's disk access: reads each file once from the offset at which the transfer starts.

use super::chunks::{Chunks, Digest};
use super::message::Kind;
use super::pool::Pool;
use super::source::{Input, Source, changed};
use crate::disk::Work;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// A job of the sending side.
#[derive(Debug)]
pub enum Job {
    /// Open a file and check its first `have` bytes against the receiver's digests of their chunks.
    Open { item: u32, source: Box<Source>, have: u64, chunks: Vec<Digest> },
    /// Compute the digest of a whole file.
    Digest { item: u32, source: Box<Source> },
    /// Read at most `most` bytes.
    Read { item: u32, most: u64 },
    /// Close a file.
    Close { item: u32 },
}

/// The result of a job.
#[derive(Debug)]
pub struct Answer {
    /// The item.
    pub item: u32,
    /// The result, or the error that prevents it.
    pub result: io::Result<Step>,
}

/// Progress of a file.
#[derive(Debug)]
pub enum Step {
    /// This many bytes of existing data are hashed.
    Checked(u64),
    /// The digest of the whole file.
    Digest(Digest),
    /// The file is open, and `left` bytes of it will be read, starting at offset `from`. Chunks in `again`, which are
    /// wrong at the receiver, follow after the end. `whole` is the digest of the file if nothing needs to be read.
    Opened { from: u64, again: Vec<u16>, left: u64, whole: Option<Digest> },
    /// The next bytes; with the last ones comes the digest of the whole file.
    Piece { bytes: Bytes, whole: Option<Digest> },
    /// A stream has ended: its size and its digest.
    Ended { size: u64, digest: Digest },
}

#[derive(Debug)]
struct Open {
    source: Source,
    file: File,
    /// The unread ranges, in order of reading.
    ranges: VecDeque<Range<u64>>,
    chunks: Chunks,
}

/// A stream that is being read.
#[derive(Debug)]
struct OpenStream {
    input: Input,
    pieces: usize,
    chunks: Chunks,
}

/// The open files of a transfer.
#[derive(Debug, Default)]
pub struct FileReader {
    open: BTreeMap<u32, Open>,
    streams: BTreeMap<u32, OpenStream>,
    pool: Pool,
}

impl Work for FileReader {
    type Job = Job;
    type Answer = Answer;

    fn work(&mut self, job: Job, reply: &mut dyn FnMut(Answer)) {
        match job {
            Job::Open { item, source, .. } if source.kind == Kind::Stream => {
                if let Some(input) = source.input {
                    self.streams.insert(item, OpenStream { input, pieces: 0, chunks: Chunks::of_stream() });
                    reply(Answer {
                        item,
                        result: Ok(Step::Opened { from: 0, again: vec![], left: u64::MAX, whole: None }),
                    });
                }
            }
            Job::Read { item, .. } if self.streams.contains_key(&item) => self.read_stream(item, reply),
            Job::Open { item, source, have, chunks } => {
                let mut checked = |bytes| reply(Answer { item, result: Ok(Step::Checked(bytes)) });
                let opened = Open::after(*source, have, &chunks, &mut checked);
                let result = opened.and_then(|(open, from, again)| {
                    let (left, whole) = (open.left(), open.whole()?);
                    self.open.insert(item, open);
                    Ok(Step::Opened { from, again, left, whole })
                });
                reply(Answer { item, result });
            }
            Job::Digest { item, source } => {
                let mut checked = |bytes| reply(Answer { item, result: Ok(Step::Checked(bytes)) });
                let result = digest(&source, &mut checked).map(Step::Digest);
                reply(Answer { item, result });
            }
            Job::Read { item, most } => {
                let Some(open) = self.open.get_mut(&item) else { return };
                let (at, bytes) = match open.read(most, &self.pool) {
                    Ok(read) => read,
                    Err(error) => return reply(Answer { item, result: Err(error) }),
                };
                if open.left() > 0 {
                    // The piece can be sent while it is hashed.
                    reply(Answer { item, result: Ok(Step::Piece { bytes: bytes.clone(), whole: None }) });
                    open.take_digest(at, &bytes);
                } else {
                    open.take_digest(at, &bytes);
                    let result = open.whole().map(|whole| Step::Piece { bytes, whole });
                    self.open.remove(&item);
                    reply(Answer { item, result });
                }
            }
            Job::Close { item } => {
                self.open.remove(&item);
                self.streams.remove(&item);
            }
        }
    }
}

impl FileReader {
    fn read_stream(&mut self, item: u32, reply: &mut dyn FnMut(Answer)) {
        let Some(stream) = self.streams.get_mut(&item) else { return };
        match stream.input.piece(stream.pieces) {
            Ok(Some(bytes)) => {
                stream.pieces += 1;
                // The piece can be sent while it is hashed.
                reply(Answer { item, result: Ok(Step::Piece { bytes: bytes.clone(), whole: None }) });
                stream.chunks.update(&bytes);
            }
            Ok(None) => {
                stream.chunks.end_stream();
                let (size, digest) = (stream.chunks.size(), stream.chunks.whole());
                self.streams.remove(&item);
                reply(Answer { item, result: Ok(Step::Ended { size, digest }) });
            }
            Err(error) => {
                self.streams.remove(&item);
                reply(Answer { item, result: Err(error) });
            }
        }
    }
}

/// Computes the digest of a whole file.
fn digest(source: &Source, checked: &mut dyn FnMut(u64)) -> io::Result<Digest> {
    let (file, mut chunks) = (source.open()?, Chunks::new(source.size));
    hash(&mut chunks, source, &file, source.size, checked)?;
    source.check_end(&file)?;
    Ok(chunks.whole())
}

/// Hashes the first `bytes` of a file.
fn hash(chunks: &mut Chunks, source: &Source, file: &File, bytes: u64, checked: &mut dyn FnMut(u64)) -> io::Result<()> {
    chunks.read(file, bytes, checked).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => source.ended_early(file),
        _ => error,
    })
}

impl Open {
    /// Opens the file. Returns it with the offset at which reading starts, and with the wrong chunks before that
    /// offset.
    fn after(
        source: Source,
        have: u64,
        theirs: &[Digest],
        checked: &mut dyn FnMut(u64),
    ) -> io::Result<(Open, u64, Vec<u16>)> {
        let (file, mut chunks) = (source.open()?, Chunks::new(source.size));
        hash(&mut chunks, &source, &file, have, checked)?;
        let (ours, chunk_bytes) = (chunks.digests(), chunks.chunk_bytes());
        let is_right: Vec<bool> = ours.iter().zip(theirs).map(|(ours, theirs)| ours == theirs).collect();
        // Wrong chunks at the end of the existing data are sent in their normal place.
        let kept = is_right.iter().rposition(|&right| right).map_or(0, |last| last + 1);
        let from = if kept == ours.len() { have } else { kept as u64 * chunk_bytes };
        if from < have {
            chunks.go_back(kept);
        }
        let again: Vec<usize> = (0..kept).filter(|&chunk| !is_right[chunk]).collect();
        let chunk = |&chunk: &usize| chunk as u64 * chunk_bytes..(chunk as u64 + 1) * chunk_bytes;
        let rest = (from < source.size).then_some(from..source.size);
        let ranges = rest.into_iter().chain(again.iter().map(chunk)).collect();
        let again = again.into_iter().map(|chunk| chunk as u16).collect();
        Ok((Open { source, file, ranges, chunks }, from, again))
    }

    /// The number of unread bytes.
    fn left(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// Reads the next bytes; returns them with their offset.
    fn read(&mut self, most: u64, pool: &Pool) -> io::Result<(u64, Bytes)> {
        let Some(range) = self.ranges.front_mut() else { return Err(changed()) };
        let (at, most) = (range.start, most.min(range.end - range.start));
        let mut piece = pool.buffer(most as usize);
        self.file.seek(SeekFrom::Start(at))?;
        (&self.file).take(most).read_to_end(&mut piece)?;
        if piece.is_empty() {
            return Err(self.source.ended_early(&self.file));
        }
        range.start += piece.len() as u64;
        if range.start == range.end {
            self.ranges.pop_front();
        }
        Ok((at, pool.piece(piece)))
    }

    /// Hashes bytes in sequence. Repeated chunks were hashed when the file was opened.
    fn take_digest(&mut self, at: u64, bytes: &[u8]) {
        if at == self.chunks.position() {
            self.chunks.update(bytes);
        }
    }

    /// The digest of the whole file once all of it is read, provided that it has not changed since.
    fn whole(&self) -> io::Result<Option<Digest>> {
        if !self.ranges.is_empty() {
            return Ok(None);
        }
        self.source.check_end(&self.file)?;
        Ok(Some(self.chunks.whole()))
    }
}
