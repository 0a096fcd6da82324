//! What the sending side of a transfer does on the disk: files, read once from where they begin to their end.

use super::chunks::{Chunks, Digest};
use super::source::{Source, changed};
use crate::disk::Work;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// What is to be done.
#[derive(Debug)]
pub enum Job {
    /// A file is to be read, behind its first `have` bytes as far as their chunks have these digests.
    Open { item: u32, source: Box<Source>, have: u64, chunks: Vec<Digest> },
    /// The digest of all of a file is wanted.
    Digest { item: u32, source: Box<Source> },
    /// So many bytes at most are wanted next.
    Read { item: u32, most: u64 },
    /// Nothing more is.
    Close { item: u32 },
}

/// What has become of it.
#[derive(Debug)]
pub struct Answer {
    /// The item.
    pub item: u32,
    /// What, or why it cannot be.
    pub result: io::Result<Step>,
}

/// How far a file is.
#[derive(Debug)]
pub enum Step {
    /// So many bytes of what is there already were hashed.
    Checked(u64),
    /// The digest of all of it.
    Digest(Digest),
    /// It is open, and is read from here on, so many bytes. Behind its end come chunks which are not right at the receiver. Where
    /// nothing is to be read, that has been all of it.
    Opened { from: u64, again: Vec<u16>, left: u64, whole: Option<Digest> },
    /// These come next, and are the last where there is the digest of all of it.
    Piece { bytes: Bytes, whole: Option<Digest> },
}

#[derive(Debug)]
struct Open {
    source: Source,
    file: File,
    /// What of it is not read yet, in the order in which it is.
    ranges: VecDeque<Range<u64>>,
    chunks: Chunks,
}

/// The files of one transfer.
#[derive(Debug, Default)]
pub struct Reading {
    open: BTreeMap<u32, Open>,
}

impl Work for Reading {
    type Job = Job;
    type Answer = Answer;

    fn work(&mut self, job: Job, tell: &mut dyn FnMut(Answer)) {
        match job {
            Job::Open { item, source, have, chunks } => {
                let mut checked = |bytes| tell(Answer { item, result: Ok(Step::Checked(bytes)) });
                let opened = Open::behind(*source, have, &chunks, &mut checked);
                let result = opened.and_then(|(open, from, again)| {
                    let (left, whole) = (open.left(), open.whole()?);
                    self.open.insert(item, open);
                    Ok(Step::Opened { from, again, left, whole })
                });
                tell(Answer { item, result });
            }
            Job::Digest { item, source } => {
                let mut checked = |bytes| tell(Answer { item, result: Ok(Step::Checked(bytes)) });
                let result = digest(&source, &mut checked).map(Step::Digest);
                tell(Answer { item, result });
            }
            Job::Read { item, most } => {
                let Some(open) = self.open.get_mut(&item) else { return };
                let (at, bytes) = match open.read(most) {
                    Ok(read) => read,
                    Err(error) => return tell(Answer { item, result: Err(error) }),
                };
                if open.left() > 0 {
                    // The piece can leave while its digest is taken.
                    tell(Answer { item, result: Ok(Step::Piece { bytes: bytes.clone(), whole: None }) });
                    open.take_digest(at, &bytes);
                } else {
                    open.take_digest(at, &bytes);
                    let result = open.whole().map(|whole| Step::Piece { bytes, whole });
                    self.open.remove(&item);
                    tell(Answer { item, result });
                }
            }
            Job::Close { item } => drop(self.open.remove(&item)),
        }
    }
}

/// The digest of all of a file.
fn digest(source: &Source, checked: &mut dyn FnMut(u64)) -> io::Result<Digest> {
    let (file, mut chunks) = (source.open()?, Chunks::new(source.size));
    chunks.read(&file, source.size, checked)?;
    if source.is_unchanged(&file)? { Ok(chunks.whole()) } else { Err(changed()) }
}

impl Open {
    /// The file, what of its first `have` bytes has these digests, and the chunks among them that have not.
    fn behind(
        source: Source,
        have: u64,
        theirs: &[Digest],
        checked: &mut dyn FnMut(u64),
    ) -> io::Result<(Open, u64, Vec<u16>)> {
        let (file, mut chunks) = (source.open()?, Chunks::new(source.size));
        chunks.read(&file, have, checked)?;
        let (ours, chunk_bytes) = (chunks.digests(), chunks.chunk_bytes());
        let is_right: Vec<bool> = ours.iter().zip(theirs).map(|(ours, theirs)| ours == theirs).collect();
        // What is wrong at the end of it comes in its place.
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

    /// Bytes that are not read.
    fn left(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// The next bytes, and where in the file they are.
    fn read(&mut self, most: u64) -> io::Result<(u64, Bytes)> {
        let Some(range) = self.ranges.front_mut() else { return Err(changed()) };
        let (at, most) = (range.start, most.min(range.end - range.start));
        let mut piece = Vec::with_capacity(most as usize);
        self.file.seek(SeekFrom::Start(at))?;
        (&self.file).take(most).read_to_end(&mut piece)?;
        if piece.is_empty() {
            return Err(changed());
        }
        range.start += piece.len() as u64;
        if range.start == range.end {
            self.ranges.pop_front();
        }
        Ok((at, Bytes::from(piece)))
    }

    /// What comes again was hashed when the file was opened.
    fn take_digest(&mut self, at: u64, bytes: &[u8]) {
        if at == self.chunks.position() {
            self.chunks.update(bytes);
        }
    }

    /// The digest of all of it, where all has been read and the file is as it was.
    fn whole(&self) -> io::Result<Option<Digest>> {
        if !self.ranges.is_empty() {
            return Ok(None);
        }
        if !self.source.is_unchanged(&self.file)? {
            return Err(changed());
        }
        Ok(Some(self.chunks.whole()))
    }
}
