//! What the sending side of a transfer does on the disk: files, read once from where they begin to their end.

use super::message::Digest;
use super::source::{Source, changed};
use crate::disk::Work;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

/// What is to be done.
#[derive(Debug)]
pub enum Job {
    /// A file is to be read, behind its first `have` bytes if these have this digest, or else from its beginning.
    Open { item: u32, source: Box<Source>, have: u64, digest: Digest },
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
    /// It is open, and is read from here on. Where it ends here, that has been all of it.
    Opened { from: u64, whole: Option<Digest> },
    /// These come next, and are the last where there is the digest of all of it.
    Piece { bytes: Bytes, whole: Option<Digest> },
}

#[derive(Debug)]
struct Open {
    source: Source,
    file: File,
    /// Bytes of it that are not read.
    left: u64,
    hasher: blake3::Hasher,
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
            Job::Open { item, source, have, digest } => {
                let result = Open::behind(*source, have, digest).and_then(|open| {
                    let from = open.source.size - open.left;
                    let whole = open.whole()?;
                    self.open.insert(item, open);
                    Ok(Step::Opened { from, whole })
                });
                tell(Answer { item, result });
            }
            Job::Read { item, most } => {
                let Some(open) = self.open.get_mut(&item) else { return };
                let bytes = match open.read(most) {
                    Ok(bytes) => bytes,
                    Err(error) => return tell(Answer { item, result: Err(error) }),
                };
                if open.left > 0 {
                    // The piece can leave while its digest is taken.
                    tell(Answer { item, result: Ok(Step::Piece { bytes: bytes.clone(), whole: None }) });
                    open.hasher.update(&bytes);
                } else {
                    open.hasher.update(&bytes);
                    let result = open.whole().map(|whole| Step::Piece { bytes, whole });
                    self.open.remove(&item);
                    tell(Answer { item, result });
                }
            }
            Job::Close { item } => drop(self.open.remove(&item)),
        }
    }
}

impl Open {
    /// The file, behind its first `have` bytes if these have this digest, or else at its beginning.
    fn behind(source: Source, have: u64, digest: Digest) -> io::Result<Open> {
        let file = source.open()?;
        let (left, mut hasher) = (source.size, blake3::Hasher::new());
        if have > 0 {
            hasher.update_reader(&mut (&file).take(have))?;
            if *hasher.finalize().as_bytes() == digest {
                return Ok(Open { source, file, left: left - have, hasher });
            }
        }
        let file = source.open()?;
        Ok(Open { source, file, left, hasher: blake3::Hasher::new() })
    }

    fn read(&mut self, most: u64) -> io::Result<Bytes> {
        let most = self.left.min(most);
        let mut piece = Vec::with_capacity(most as usize);
        (&self.file).take(most).read_to_end(&mut piece)?;
        if piece.is_empty() {
            return Err(changed());
        }
        self.left -= piece.len() as u64;
        Ok(Bytes::from(piece))
    }

    /// The digest of all of it, where all has been read and the file is as it was.
    fn whole(&self) -> io::Result<Option<Digest>> {
        if self.left > 0 {
            return Ok(None);
        }
        if !self.source.is_unchanged(&self.file)? {
            return Err(changed());
        }
        Ok(Some(*self.hasher.finalize().as_bytes()))
    }
}
