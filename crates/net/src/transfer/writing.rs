//! What the receiving side of a transfer does on the disk: files that are not whole yet, from their opening to their name.

use super::chunks::{Chunks, Digest};
use super::folder::{Folder, Partial, Present};
use super::name::Name;
use crate::disk::Work;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

/// So many pieces are written by one system call.
const MOST_SLICES: usize = 256;

/// Why a file is refused whose name is that of another.
const THERE: &str = "it is there already";

/// One opening of an item: a number that none before it had.
pub type Opening = u64;

/// Rights and time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits.
    pub mode: u32,
    /// When it was modified, nanoseconds since 1970.
    pub modified_ns: i64,
}

/// What is to be done.
#[derive(Debug)]
pub enum Job {
    /// A folder is to be there, with these rights.
    Make { opening: Opening, name: Name, mode: u32 },
    /// A folder in which nothing changes any more was modified then.
    Date { opening: Opening, name: Name, modified_ns: i64 },
    /// A file is wanted that will have so many bytes.
    Open { opening: Opening, name: Name, size: u64 },
    /// The file that is there already is to have this digest.
    Compare { opening: Opening, digest: Digest, attributes: Attributes },
    /// What comes goes behind its first `from` bytes, and then, behind its end, into these chunks.
    Begin { opening: Opening, from: u64, again: Vec<u16> },
    /// These come next.
    Write { opening: Opening, pieces: Vec<Bytes> },
    /// All of it has come.
    Finish { opening: Opening, digest: Digest, size: u64, attributes: Attributes },
    /// Nothing more comes.
    Close { opening: Opening },
}

/// What has become of it.
#[derive(Debug)]
pub enum Answer {
    /// The folder is there, or why it is not.
    Made { opening: Opening, result: Result<(), String> },
    /// A file of this name and size is there already.
    There { opening: Opening },
    /// So many bytes of what is there were hashed.
    Checked { opening: Opening, bytes: u64 },
    /// Bytes of the file that an earlier attempt has left, with the digests of their chunks, or why it cannot be had.
    Opened { opening: Opening, result: Result<(u64, Vec<Digest>), String> },
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
    chunks: Chunks,
    /// Where what comes goes, in its order.
    ranges: VecDeque<Range<u64>>,
    /// Bytes that were there before: zeros that come are left out only behind them.
    kept_bytes: u64,
}

/// A file that has its name already, whose digest is taken while the sender takes that of its own.
#[derive(Debug)]
struct There {
    name: Name,
    size: u64,
    file: Present,
    digest: Digest,
}

/// The files of one transfer.
#[derive(Debug)]
pub struct Writing {
    folder: Arc<Folder>,
    replaces: bool,
    open: BTreeMap<Opening, Open>,
    there: BTreeMap<Opening, There>,
}

impl Writing {
    /// None yet, in this folder. Where it `replaces`, files that are there already are replaced.
    pub fn new(folder: Arc<Folder>, replaces: bool) -> Writing {
        Writing { folder, replaces, open: BTreeMap::new(), there: BTreeMap::new() }
    }

    /// Opens a file, or finds one that has its name.
    fn open(&mut self, opening: Opening, name: &Name, size: u64, tell: &mut dyn FnMut(Answer)) -> io::Result<()> {
        match self.folder.present(name)? {
            Some(mut file) if file.size() == Some(size) => {
                tell(Answer::There { opening });
                let mut chunks = Chunks::new(size);
                chunks.read(file.reader()?, size, &mut |bytes| tell(Answer::Checked { opening, bytes }))?;
                let digest = chunks.whole();
                self.there.insert(opening, There { name: name.clone(), size, file, digest });
                Ok(())
            }
            Some(_) if !self.replaces => Err(io::Error::other(THERE)),
            _ => self.begin(opening, name, size, tell),
        }
    }

    /// Opens what an earlier attempt has left of a file, or a fresh one.
    fn begin(&mut self, opening: Opening, name: &Name, size: u64, tell: &mut dyn FnMut(Answer)) -> io::Result<()> {
        let mut partial = self.folder.begin(name)?;
        let mut chunks = Chunks::new(size);
        let have = if partial.had_bytes() <= size { partial.had_bytes() } else { 0 };
        chunks.read(partial.file().take(have), have, &mut |bytes| tell(Answer::Checked { opening, bytes }))?;
        let digests = chunks.digests();
        self.open.insert(opening, Open { partial, chunks, ranges: VecDeque::new(), kept_bytes: have });
        tell(Answer::Opened { opening, result: Ok((have, digests)) });
        Ok(())
    }

    /// The file that is there is the one that is offered, or is replaced by it, or stays.
    fn compare(
        &mut self,
        opening: Opening,
        digest: Digest,
        attributes: Attributes,
        tell: &mut dyn FnMut(Answer),
    ) -> io::Result<()> {
        let Some(there) = self.there.remove(&opening) else { return Ok(()) };
        if there.digest != digest {
            if self.replaces {
                return self.begin(opening, &there.name, there.size, tell);
            }
            return Err(io::Error::other(format!("{THERE}, with other contents")));
        }
        if self.replaces {
            there.file.set_attributes(attributes.mode, attributes.modified_ns)?;
        }
        tell(Answer::Stored { opening, result: Ok(()) });
        Ok(())
    }

    /// Does something with an open file; where that fails, the file is closed.
    fn with(&mut self, opening: Opening, act: impl FnOnce(&mut Open) -> io::Result<()>) -> Option<Answer> {
        let reason = act(self.open.get_mut(&opening)?).err()?.to_string();
        self.open.remove(&opening);
        Some(Answer::Failed { opening, reason })
    }

    fn finish(&self, open: Open, digest: Digest, size: u64, attributes: Attributes) -> Result<(), String> {
        if open.chunks.whole() == digest {
            let Attributes { mode, modified_ns } = attributes;
            open.partial.finish(size, mode, modified_ns, self.replaces).map_err(|error| error.to_string())
        } else {
            // It stays: the next attempt finds out which chunks are wrong, and brings these alone.
            Err("what came is not what was sent: the digests differ; the next attempt mends what is wrong".to_owned())
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
            Job::Date { opening, name, modified_ns } => {
                let result = self.folder.set_time(&name, modified_ns).map_err(|error| error.to_string());
                tell(Answer::Made { opening, result });
            }
            Job::Open { opening, name, size } => {
                if let Err(error) = self.open(opening, &name, size, tell) {
                    tell(Answer::Opened { opening, result: Err(error.to_string()) });
                }
            }
            Job::Compare { opening, digest, attributes } => {
                if let Err(error) = self.compare(opening, digest, attributes, tell) {
                    tell(Answer::Opened { opening, result: Err(error.to_string()) });
                }
            }
            Job::Begin { opening, from, again } => {
                if let Some(answer) = self.with(opening, |open| open.begin(from, &again)) {
                    tell(answer);
                }
            }
            Job::Write { opening, pieces } => {
                tell(self.with(opening, |open| open.write(&pieces)).unwrap_or(Answer::Written));
            }
            Job::Finish { opening, digest, size, attributes } => {
                // What has failed has been told.
                if let Some(open) = self.open.remove(&opening) {
                    let result = self.finish(open, digest, size, attributes);
                    tell(Answer::Stored { opening, result });
                }
            }
            Job::Close { opening } => {
                self.open.remove(&opening);
                self.there.remove(&opening);
            }
        }
    }
}

impl Open {
    fn begin(&mut self, from: u64, again: &[u16]) -> io::Result<()> {
        let chunk_bytes = self.chunks.chunk_bytes();
        if from < self.kept_bytes {
            self.chunks.go_back((from / chunk_bytes) as usize);
        }
        self.kept_bytes = from;
        let file = self.partial.file();
        // What is behind would be taken for new bytes by a later attempt.
        file.set_len(from)?;
        file.seek(SeekFrom::Start(from))?;
        let chunks = again.iter().map(|&chunk| u64::from(chunk) * chunk_bytes);
        let chunks = chunks.map(|start| start..start + chunk_bytes);
        self.ranges = std::iter::once(from..self.chunks.size()).chain(chunks).collect();
        self.enter_range()
    }

    /// Goes on with the next range, where the one before is full.
    fn enter_range(&mut self) -> io::Result<()> {
        while self.ranges.front().is_some_and(Range::is_empty) {
            self.ranges.pop_front();
            if let Some(next) = self.ranges.front().filter(|next| !next.is_empty()) {
                self.chunks.begin((next.start / self.chunks.chunk_bytes()) as usize);
                self.partial.file().seek(SeekFrom::Start(next.start))?;
            }
        }
        Ok(())
    }

    fn write(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        match self.ranges.front() {
            Some(range) if bytes <= range.end - range.start => self.write_here(pieces),
            _ => pieces.iter().try_for_each(|piece| self.write_across(piece.clone())),
        }
    }

    /// Writes a piece of which some may belong elsewhere.
    fn write_across(&mut self, mut piece: Bytes) -> io::Result<()> {
        while !piece.is_empty() {
            let Some(range) = self.ranges.front() else { return Err(io::Error::from(io::ErrorKind::FileTooLarge)) };
            let most = (range.end - range.start).min(piece.len() as u64) as usize;
            self.write_here(&[piece.split_to(most)])?;
        }
        Ok(())
    }

    /// Writes pieces that belong together, where they belong.
    fn write_here(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        let Some(range) = self.ranges.front_mut() else { return Ok(()) };
        let may_skip = range.start >= self.kept_bytes;
        let file = self.partial.file();
        // Zeros are left out, so that holes stay holes; what is behind has its place all the same.
        for pieces in pieces.chunk_by(|one, next| is_zero(one) == is_zero(next)) {
            if may_skip && pieces.first().is_some_and(is_zero) {
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
            range.start += piece.len() as u64;
            self.chunks.update(piece);
        }
        self.enter_range()
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
