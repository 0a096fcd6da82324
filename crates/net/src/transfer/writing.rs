//! What the receiving side of a transfer does on the disk: files that are not whole yet, from their opening to their name.

use super::folder::{Folder, Partial};
use super::message::Digest;
use super::name::Name;
use crate::disk::Work;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// So many pieces are written by one system call.
const MOST_SLICES: usize = 256;

/// One opening of an item: a number that none before it had.
pub type Opening = u64;

/// What is to be done.
#[derive(Debug)]
pub enum Job {
    /// A folder is to be there, with these rights.
    Make { opening: Opening, name: Name, mode: u32 },
    /// A file is wanted that will have so many bytes.
    Open { opening: Opening, name: Name, size: u64 },
    /// It goes on behind its first `from` bytes, which are all that it has, or none.
    Begin { opening: Opening, from: u64 },
    /// These come next.
    Write { opening: Opening, pieces: Vec<Bytes> },
    /// All of it has come.
    Finish { opening: Opening, digest: Digest, size: u64, mode: u32, modified_ns: i64 },
    /// Nothing more comes.
    Close { opening: Opening },
}

/// What has become of it.
#[derive(Debug)]
pub enum Answer {
    /// The folder is there, or why it is not.
    Made { opening: Opening, result: Result<(), String> },
    /// Bytes of the file that an earlier attempt has left, with their digest, or why it cannot be had.
    Opened { opening: Opening, result: Result<(u64, Digest), String> },
    /// Some has been written.
    Written,
    /// It cannot be written to; what still comes is thrown away.
    Failed { opening: Opening, reason: String },
    /// The file has its name, or why it has not.
    Stored { opening: Opening, result: Result<(), String> },
}

#[derive(Debug)]
struct Open {
    partial: Partial,
    hasher: blake3::Hasher,
}

/// The files of one transfer.
#[derive(Debug)]
pub struct Writing {
    folder: Arc<Folder>,
    replaces: bool,
    open: BTreeMap<Opening, Open>,
}

impl Writing {
    /// None yet, in this folder. Where it `replaces`, files that are there already are replaced.
    pub fn new(folder: Arc<Folder>, replaces: bool) -> Writing {
        Writing { folder, replaces, open: BTreeMap::new() }
    }

    fn open(&self, name: &Name, size: u64) -> Result<(Open, u64, Digest), String> {
        let told = |error: io::Error| error.to_string();
        if !self.replaces && self.folder.has(name).map_err(told)? {
            return Err("it is there already".to_owned());
        }
        let mut partial = self.folder.begin(name).map_err(told)?;
        let mut hasher = blake3::Hasher::new();
        let have = if partial.had_bytes() <= size { partial.had_bytes() } else { 0 };
        hasher.update_reader(partial.file().take(have)).map_err(told)?;
        let digest = *hasher.finalize().as_bytes();
        Ok((Open { partial, hasher }, have, digest))
    }

    /// Does something with an open file; where that fails, the file is closed.
    fn with(&mut self, opening: Opening, act: impl FnOnce(&mut Open) -> io::Result<()>) -> Option<Answer> {
        let reason = act(self.open.get_mut(&opening)?).err()?.to_string();
        self.open.remove(&opening);
        Some(Answer::Failed { opening, reason })
    }

    fn finish(&self, open: Open, digest: Digest, size: u64, mode: u32, modified_ns: i64) -> Result<(), String> {
        if *open.hasher.finalize().as_bytes() == digest {
            open.partial.finish(size, mode, modified_ns, self.replaces).map_err(|error| error.to_string())
        } else {
            let _ = open.partial.discard();
            Err("what came is not what was sent: the digests differ".to_owned())
        }
    }
}

impl Work for Writing {
    type Job = Job;
    type Answer = Answer;

    fn work(&mut self, job: Job, tell: &mut dyn FnMut(Answer)) {
        match job {
            Job::Make { opening, name, mode } => {
                let result = self.folder.make(&name, mode).map_err(|error| error.to_string());
                tell(Answer::Made { opening, result });
            }
            Job::Open { opening, name, size } => {
                let result = self.open(&name, size).map(|(open, have, digest)| {
                    self.open.insert(opening, open);
                    (have, digest)
                });
                tell(Answer::Opened { opening, result });
            }
            Job::Begin { opening, from } => {
                if let Some(answer) = self.with(opening, |open| open.begin(from)) {
                    tell(answer);
                }
            }
            Job::Write { opening, pieces } => {
                tell(self.with(opening, |open| open.write(&pieces)).unwrap_or(Answer::Written));
            }
            Job::Finish { opening, digest, size, mode, modified_ns } => {
                // What has failed has been told.
                if let Some(open) = self.open.remove(&opening) {
                    let result = self.finish(open, digest, size, mode, modified_ns);
                    tell(Answer::Stored { opening, result });
                }
            }
            Job::Close { opening } => drop(self.open.remove(&opening)),
        }
    }
}

impl Open {
    fn begin(&mut self, from: u64) -> io::Result<()> {
        if from == 0 {
            self.hasher.reset();
        }
        let file = self.partial.file();
        // What is behind would be taken for new bytes by a later attempt.
        file.set_len(from)?;
        file.seek(SeekFrom::Start(from)).map(drop)
    }

    fn write(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        let file = self.partial.file();
        // Zeros are left out, so that holes stay holes; what is behind has its place all the same.
        for pieces in pieces.chunk_by(|one, next| is_zero(one) == is_zero(next)) {
            if pieces.first().is_some_and(is_zero) {
                let bytes: usize = pieces.iter().map(Bytes::len).sum();
                file.seek(SeekFrom::Current(bytes as i64))?;
                continue;
            }
            for some in pieces.chunks(MOST_SLICES) {
                let mut slices: Vec<IoSlice<'_>> = some.iter().map(|piece| IoSlice::new(piece)).collect();
                write_all(file, &mut slices)?;
            }
        }
        for piece in pieces {
            self.hasher.update(piece);
        }
        Ok(())
    }
}

fn is_zero(piece: &Bytes) -> bool {
    piece.iter().all(|&byte| byte == 0)
}

fn write_all(out: &mut impl Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match out.write_vectored(slices) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
