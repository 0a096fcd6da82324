//! The receiving side's disk access: incomplete files, from their opening until they get their name.
//!
//! The incomplete file of a stream is removed if the stream does not arrive completely, since its sender cannot send
//! the rest later.

use super::chunks::{Chunks, Digest};
use super::folder::{Folder, Fsync, Partial, Stamp, store};
use super::name::Name;
use crate::disk::Work;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

/// The maximum number of pieces written by one system call.
const MAX_SLICES: usize = 256;

/// The reason for which a file is refused whose name is in use.
const EXISTS: &str = "it is there already";

/// The unique number of one opening of an item.
pub type Opening = u64;

/// Permissions and modification time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits.
    pub mode: u32,
    /// The modification time, nanoseconds since 1970.
    pub modified_ns: i64,
}

/// A job of the receiving side.
#[derive(Debug)]
pub enum Job {
    /// Create a folder with these permissions.
    Make { opening: Opening, name: Name, mode: u32 },
    /// Set the modification time of a complete folder.
    Date { opening: Opening, name: Name, modified_ns: i64 },
    /// Open a file that will have `size` bytes. If a file of this size and the time in `known` exists, it is the same.
    Open { opening: Opening, name: Name, size: u64, known: Option<Attributes> },
    /// Open a stream, whose size is unknown until its end.
    OpenStream { opening: Opening, name: Name },
    /// Compare an existing file with this digest.
    Compare { opening: Opening, digest: Digest, attributes: Attributes },
    /// Write the next bytes from offset `from` on, and after the end of the file into the chunks of `again`.
    Begin { opening: Opening, from: u64, again: Vec<u16> },
    /// Write the next bytes.
    Write { opening: Opening, pieces: Vec<Bytes> },
    /// Check the complete file, and give it its name, now or with [`Job::Sync`].
    Finish { opening: Opening, digest: Digest, size: u64, attributes: Attributes },
    /// Force complete files to the disk together, and give them their names.
    Sync,
    /// Close a file.
    Close { opening: Opening },
}

/// The result of a job.
#[derive(Debug)]
pub enum Answer {
    /// The folder exists, or could not be created.
    Made { opening: Opening, result: Result<(), String> },
    /// A file of this name and size exists.
    Exists { opening: Opening },
    /// A file of this name, size and modification time exists.
    Unchanged { opening: Opening },
    /// This many bytes of existing data are hashed.
    Checked { opening: Opening, bytes: u64 },
    /// The bytes of an incomplete file with the digests of their chunks, or the error that prevents its opening.
    Opened { opening: Opening, result: Result<(u64, Vec<Digest>), String> },
    /// Some bytes were written.
    Written,
    /// Writing has failed; further bytes are discarded.
    Failed { opening: Opening, reason: String },
    /// The file is complete, and gets its name with the next [`Job::Sync`].
    Complete,
    /// The file has its name, or could not get it.
    Stored { opening: Opening, result: Result<(), String> },
    /// The files that were complete have their names.
    Synced,
}

#[derive(Debug)]
struct Open {
    name: Name,
    /// The incomplete file, which is open from the beginning of its sender on, since offers alone must not use
    /// descriptors.
    partial: Option<Partial>,
    /// The state in which an earlier attempt has left the file, if there was one.
    left: Option<Stamp>,
    has_begun: bool,
    chunks: Chunks,
    /// The ranges to write, in order.
    ranges: VecDeque<Range<u64>>,
    /// The bytes that existed before. Only beyond them may zeros be skipped to leave a hole.
    kept_bytes: u64,
    is_stream: bool,
}

/// A complete file of the same name. Its digest is computed here while the sender computes that of its own file.
#[derive(Debug)]
struct Existing {
    name: Name,
    size: u64,
    stamp: Stamp,
    digest: Digest,
}

/// The open files of a transfer.
#[derive(Debug)]
pub struct FileWriter {
    folder: Arc<Folder>,
    replaces: bool,
    open: BTreeMap<Opening, Open>,
    existing: BTreeMap<Opening, Existing>,
    /// Complete files that have no name yet.
    complete: Vec<(Opening, Partial)>,
}

impl FileWriter {
    /// Creates the state for a folder. With `replaces`, existing files are replaced.
    pub fn new(folder: Arc<Folder>, replaces: bool) -> FileWriter {
        FileWriter { folder, replaces, open: BTreeMap::new(), existing: BTreeMap::new(), complete: vec![] }
    }

    /// Opens a file, unless a file of its name and size exists, which is hashed instead.
    fn open(
        &mut self,
        opening: Opening,
        name: &Name,
        size: u64,
        known: Option<Attributes>,
        reply: &mut dyn FnMut(Answer),
    ) -> io::Result<()> {
        match (self.folder.find(name)?, known) {
            (Some(file), Some(known)) if file.is_dated(size, known.modified_ns) => {
                if self.replaces {
                    file.set_mode(self.folder.modes().file(known.mode))?;
                }
                reply(Answer::Unchanged { opening });
                Ok(())
            }
            (Some(mut file), _) if file.size() == Some(size) => {
                reply(Answer::Exists { opening });
                let mut chunks = Chunks::new(size);
                chunks.read(file.reader()?, size, &mut |bytes| reply(Answer::Checked { opening, bytes }))?;
                let (digest, stamp) = (chunks.whole(), file.stamp()?);
                self.existing.insert(opening, Existing { name: name.clone(), size, stamp, digest });
                Ok(())
            }
            (Some(_), _) if !self.replaces => Err(io::Error::other(EXISTS)),
            _ => self.begin(opening, name, size, reply),
        }
    }

    /// Prepares an incomplete file. One that is left from an earlier attempt is opened and hashed.
    fn begin(&mut self, opening: Opening, name: &Name, size: u64, reply: &mut dyn FnMut(Answer)) -> io::Result<()> {
        let mut partial = self.folder.resume(name)?;
        let mut chunks = Chunks::new(size);
        let had_bytes = partial.as_ref().map_or(0, Partial::had_bytes);
        let have = if had_bytes <= size { had_bytes } else { 0 };
        // Only the digests are kept, and the file is closed.
        if let Some(partial) = &mut partial {
            chunks.read(partial.file().take(have), have, &mut |bytes| reply(Answer::Checked { opening, bytes }))?;
        }
        let to_come: u64 = self.open.values().map(Open::bytes_to_come).sum();
        self.folder.check_room(to_come.saturating_add(size - have))?;
        let (name, digests) = (name.clone(), chunks.digests());
        let left = partial.map(|partial| partial.stamp()).transpose()?;
        let (partial, has_begun, ranges) = (None, false, VecDeque::new());
        let open = Open { name, partial, left, has_begun, chunks, ranges, kept_bytes: have, is_stream: false };
        self.open.insert(opening, open);
        reply(Answer::Opened { opening, result: Ok((have, digests)) });
        Ok(())
    }

    /// Prepares the file of a stream.
    fn open_stream(&mut self, opening: Opening, name: Name) -> io::Result<()> {
        if !self.replaces && self.folder.find(&name)?.is_some() {
            return Err(io::Error::other(EXISTS));
        }
        let (partial, left, has_begun, chunks, ranges) = (None, None, false, Chunks::of_stream(), VecDeque::new());
        let open = Open { name, partial, left, has_begun, chunks, ranges, kept_bytes: 0, is_stream: true };
        self.open.insert(opening, open);
        Ok(())
    }

    /// Compares an existing file with the sender's: an equal one is kept, and another one is replaced or refused.
    fn compare(
        &mut self,
        opening: Opening,
        digest: Digest,
        attributes: Attributes,
        reply: &mut dyn FnMut(Answer),
    ) -> io::Result<()> {
        let Some(existing) = self.existing.remove(&opening) else { return Ok(()) };
        if existing.digest != digest {
            if self.replaces {
                return self.begin(opening, &existing.name, existing.size, reply);
            }
            return Err(io::Error::other(format!("{EXISTS}, with other contents")));
        }
        if self.replaces {
            let mut found = self.folder.find(&existing.name)?.ok_or_else(has_changed)?;
            if found.stamp()? != existing.stamp {
                return Err(has_changed());
            }
            found.set_attributes(self.folder.modes().file(attributes.mode), attributes.modified_ns)?;
        }
        reply(Answer::Stored { opening, result: Ok(()) });
        Ok(())
    }

    /// Applies `act` to an open file; an error closes it.
    fn with(&mut self, opening: Opening, act: impl FnOnce(&mut Open) -> io::Result<()>) -> Option<Answer> {
        let reason = act(self.open.get_mut(&opening)?).err()?.to_string();
        self.open.remove(&opening).into_iter().for_each(Open::abandon);
        Some(Answer::Failed { opening, reason })
    }

    /// Checks a file of which everything has arrived, and stores it unless it waits for others.
    fn finish(
        &mut self,
        opening: Opening,
        mut open: Open,
        digest: Digest,
        size: u64,
        attributes: Attributes,
    ) -> Answer {
        if open.is_stream {
            open.chunks.end_stream();
        }
        if open.chunks.whole() != digest {
            // The file stays, so that the next attempt sends only the wrong chunks.
            let reason = match open.is_stream {
                true => "the received stream differs from the sent one",
                false => "the received file differs from the sent one; the next attempt repairs the wrong chunks",
            };
            open.abandon();
            return Answer::Stored { opening, result: Err(reason.to_owned()) };
        }
        let mode = self.folder.modes().file(attributes.mode);
        let completed = open.partial.ok_or_else(not_begun).and_then(|partial| {
            partial.complete(size, mode, attributes.modified_ns)?;
            Ok(partial)
        });
        let result = match (completed, self.folder.fsync()) {
            (Ok(partial), Fsync::Batch) => {
                self.complete.push((opening, partial));
                return Answer::Complete;
            }
            (Ok(partial), fsync) => store(&[partial], self.replaces, fsync == Fsync::Each).remove(0),
            (Err(error), _) => Err(error),
        };
        Answer::Stored { opening, result: result.map_err(|error| error.to_string()) }
    }

    /// Stores the complete files.
    fn sync(&mut self, reply: &mut dyn FnMut(Answer)) {
        let (openings, files): (Vec<_>, Vec<_>) = std::mem::take(&mut self.complete).into_iter().unzip();
        for (opening, result) in openings.into_iter().zip(store(&files, self.replaces, true)) {
            reply(Answer::Stored { opening, result: result.map_err(|error| error.to_string()) });
        }
        reply(Answer::Synced);
    }
}

impl Drop for FileWriter {
    /// Stores the files that are complete, although the transfer has ended.
    fn drop(&mut self) {
        self.sync(&mut |_| {});
    }
}

impl Work for FileWriter {
    type Job = Job;
    type Answer = Answer;

    fn work(&mut self, job: Job, reply: &mut dyn FnMut(Answer)) {
        match job {
            Job::Make { opening, name, mode } => {
                let result = self.folder.make(&name, mode).map_err(|error| error.to_string());
                reply(Answer::Made { opening, result });
            }
            Job::Date { opening, name, modified_ns } => {
                let result = self.folder.set_time(&name, modified_ns).map_err(|error| error.to_string());
                reply(Answer::Made { opening, result });
            }
            Job::Open { opening, name, size, known } => {
                if let Err(error) = self.open(opening, &name, size, known, reply) {
                    reply(Answer::Opened { opening, result: Err(error.to_string()) });
                }
            }
            Job::OpenStream { opening, name } => {
                let result = self.open_stream(opening, name);
                let result = result.map(|()| (0, vec![])).map_err(|error| error.to_string());
                reply(Answer::Opened { opening, result });
            }
            Job::Compare { opening, digest, attributes } => {
                if let Err(error) = self.compare(opening, digest, attributes, reply) {
                    reply(Answer::Opened { opening, result: Err(error.to_string()) });
                }
            }
            Job::Begin { opening, from, again } => {
                let folder = Arc::clone(&self.folder);
                if let Some(answer) = self.with(opening, |open| open.begin(&folder, from, &again)) {
                    reply(answer);
                }
            }
            Job::Write { opening, pieces } => {
                let folder = Arc::clone(&self.folder);
                let written = self.with(opening, |open| {
                    if open.is_stream {
                        folder.check_room(bytes_of(&pieces))?;
                    }
                    open.write(&pieces)
                });
                reply(written.unwrap_or(Answer::Written));
            }
            Job::Finish { opening, digest, size, attributes } => {
                // The error of a failed file has been reported before.
                if let Some(open) = self.open.remove(&opening) {
                    reply(self.finish(opening, open, digest, size, attributes));
                }
            }
            Job::Sync => self.sync(reply),
            Job::Close { opening } => {
                self.open.remove(&opening).into_iter().for_each(Open::abandon);
                self.existing.remove(&opening);
            }
        }
    }
}

impl Open {
    /// Closes the file before it is complete. That of a stream is removed.
    fn abandon(self) {
        if let Some(partial) = self.partial.filter(|_| self.is_stream) {
            // If it cannot be removed, it stays like the incomplete file of a receiver that was killed.
            let _ = partial.discard();
        }
    }

    /// The bytes that are still to be written, as far as they are known.
    fn bytes_to_come(&self) -> u64 {
        if self.is_stream {
            return 0;
        }
        if !self.has_begun {
            return self.chunks.size() - self.kept_bytes;
        }
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    /// The file, which is open after its beginning.
    fn file(&mut self) -> io::Result<&mut File> {
        self.partial.as_mut().map(Partial::file).ok_or_else(not_begun)
    }

    fn begin(&mut self, folder: &Folder, from: u64, again: &[u16]) -> io::Result<()> {
        let partial = folder.begin(&self.name)?;
        // The digests of its chunks were computed before.
        if self.left.is_some_and(|left| partial.stamp().ok() != Some(left)) {
            return Err(has_changed());
        }
        self.partial = Some(partial);
        self.has_begun = true;
        let chunk_bytes = self.chunks.chunk_bytes();
        if from < self.kept_bytes {
            self.chunks.go_back((from / chunk_bytes) as usize);
        }
        self.kept_bytes = from;
        let file = self.file()?;
        // A later attempt would take the bytes after the new end for valid ones.
        file.set_len(from)?;
        file.seek(SeekFrom::Start(from))?;
        let chunks = again.iter().map(|&chunk| u64::from(chunk) * chunk_bytes);
        let chunks = chunks.map(|start| start..start + chunk_bytes);
        self.ranges = std::iter::once(from..self.chunks.size()).chain(chunks).collect();
        self.enter_range()
    }

    /// Moves on to the next range if the current one is complete.
    fn enter_range(&mut self) -> io::Result<()> {
        while self.ranges.front().is_some_and(Range::is_empty) {
            self.ranges.pop_front();
            if let Some(next) = self.ranges.front().filter(|next| !next.is_empty()) {
                self.chunks.begin((next.start / self.chunks.chunk_bytes()) as usize);
                let start = next.start;
                self.file()?.seek(SeekFrom::Start(start))?;
            }
        }
        Ok(())
    }

    fn write(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        let bytes = bytes_of(pieces);
        match self.ranges.front() {
            Some(range) if bytes <= range.end - range.start => self.write_here(pieces),
            _ => pieces.iter().try_for_each(|piece| self.write_across(piece.clone())),
        }
    }

    /// Writes a piece that may extend across ranges.
    fn write_across(&mut self, mut piece: Bytes) -> io::Result<()> {
        while !piece.is_empty() {
            let Some(range) = self.ranges.front() else { return Err(io::Error::from(io::ErrorKind::FileTooLarge)) };
            let most = (range.end - range.start).min(piece.len() as u64) as usize;
            self.write_here(&[piece.split_to(most)])?;
        }
        Ok(())
    }

    /// Writes pieces that lie within the current range.
    fn write_here(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        let Some(range) = self.ranges.front_mut() else { return Ok(()) };
        let may_skip = range.start >= self.kept_bytes;
        let file = self.partial.as_mut().map(Partial::file).ok_or_else(not_begun)?;
        // Zeros are skipped, so that holes stay holes.
        for pieces in pieces.chunk_by(|one, next| is_zero(one) == is_zero(next)) {
            if may_skip && pieces.first().is_some_and(is_zero) {
                let bytes: usize = pieces.iter().map(Bytes::len).sum();
                file.seek(SeekFrom::Current(bytes as i64))?;
                continue;
            }
            for some in pieces.chunks(MAX_SLICES) {
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

/// The error of a file that another program has changed between its offer and its beginning.
fn has_changed() -> io::Error {
    io::Error::other("another program has changed it in the meantime")
}

/// The error of data for a file whose sender has not begun; the transfer refuses such data before.
fn not_begun() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

fn bytes_of(pieces: &[Bytes]) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}

fn is_zero(piece: &Bytes) -> bool {
    piece.iter().all(|&byte| byte == 0)
}

pub(super) fn write_all(out: &mut impl Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
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
