//! The sources of a transfer: files and folders of this host, as they are when the transfer starts.

use super::message::Kind;
use super::name::{Name, NameError};
use super::selection::Selection;
use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// The maximum number of items of one transfer.
pub const MAX_ITEMS: usize = 1_000_000;

/// The maximum number of bytes of a stream that are read at once.
const STREAM_PIECE_BYTES: usize = 256 << 10;

/// The content of a stream, such as a pipe, which can be read once.
#[derive(Clone, Debug)]
pub struct Input(Arc<InputState>);

#[derive(Debug)]
struct InputState {
    /// Held while a thread waits for content.
    reading: Mutex<Reading>,
    /// True once the receiver has some of it; then it cannot be sent from its beginning again.
    is_received: AtomicBool,
}

#[derive(Debug)]
struct Reading {
    file: File,
    has_ended: bool,
    /// All pieces so far, until the receiver has some of them.
    kept: Vec<Bytes>,
}

impl PartialEq for Input {
    fn eq(&self, other: &Input) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Input {}

impl Input {
    /// Creates an input from an open file.
    pub fn new(file: File) -> Input {
        let reading = Mutex::new(Reading { file, has_ended: false, kept: vec![] });
        Input(Arc::new(InputState { reading, is_received: AtomicBool::new(false) }))
    }

    /// Notes that the receiver has some of it.
    pub(super) fn note_received(&self) {
        self.0.is_received.store(true, Ordering::Relaxed);
    }

    /// Returns true if the receiver has some of it.
    pub(super) fn is_received(&self) -> bool {
        self.0.is_received.load(Ordering::Relaxed)
    }

    /// Returns the piece with this number, or `None` at the end; to be called with rising numbers. Waits until there
    /// is content.
    pub(super) fn piece(&self, number: usize) -> io::Result<Option<Bytes>> {
        let mut reading = self.0.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_received() {
            reading.kept = vec![];
        } else if let Some(piece) = reading.kept.get(number) {
            return Ok(Some(piece.clone()));
        }
        if reading.has_ended {
            return Ok(None);
        }
        let piece = read_piece(&mut reading.file)?;
        reading.has_ended = piece.is_empty();
        if !self.is_received() {
            reading.kept.push(piece.clone());
        }
        Ok(Some(piece).filter(|piece| !piece.is_empty()))
    }
}

/// Reads what a file has now, after waiting for the first byte; nothing at its end.
fn read_piece(file: &mut File) -> io::Result<Bytes> {
    let (mut piece, mut filled) = (vec![0; STREAM_PIECE_BYTES], 0);
    loop {
        match file.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Another process has made the pipe non-blocking.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                is_readable(file, PollTimeout::NONE)?;
                continue;
            }
            Err(error) => return Err(error),
        }
        if filled == piece.len() || !is_readable(file, PollTimeout::ZERO)? {
            break;
        }
    }
    piece.truncate(filled);
    Ok(Bytes::from(piece))
}

fn is_readable(file: &File, timeout: PollTimeout) -> io::Result<bool> {
    match poll(&mut [PollFd::new(file.as_fd(), PollFlags::POLLIN)], timeout) {
        // The next read waits or fails.
        Err(Errno::EINTR) => Ok(true),
        ready => Ok(ready? > 0),
    }
}

/// A file or folder to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its path.
    pub path: PathBuf,
    /// Its name at the receiver.
    pub name: Name,
    /// Its kind.
    pub kind: Kind,
    /// The size of a file in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// The modification time, nanoseconds since 1970.
    pub modified_ns: i64,
    /// The content of a stream.
    pub input: Option<Input>,
}

/// The reason for which something cannot be sent.
#[derive(Debug, Error)]
pub enum SourceError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// It is neither a file nor a folder.
    #[error("{}: neither a file nor a folder; links, devices and sockets are not sent", .0.display())]
    Kind(PathBuf),
    /// The receiver would refuse its name.
    #[error("{}: {error}", path.display())]
    Name {
        /// The path.
        path: PathBuf,
        /// The reason.
        error: NameError,
    },
    /// Its name is not valid UTF-8.
    #[error("{}: its name is not in UTF-8", .0.display())]
    NoText(PathBuf),
    /// Two items would have the same name.
    #[error("{}: another item also has the name {name}", path.display())]
    Twice {
        /// The path of the second.
        path: PathBuf,
        /// The name.
        name: Name,
    },
    /// No file is left to send.
    #[error("no file is left to send: --include and --exclude leave all of them out")]
    Nothing,
    /// Several paths cannot be sent.
    #[error("{}", .0.iter().map(SourceError::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<SourceError>),
    /// There are too many items.
    #[error("more than {MAX_ITEMS} files and folders")]
    TooMany,
}

impl SourceError {
    /// The path of the item that cannot be sent.
    pub fn path(&self) -> String {
        match self {
            SourceError::File { path, .. } | SourceError::Name { path, .. } | SourceError::Twice { path, .. } => {
                path.display().to_string()
            }
            SourceError::Kind(path) | SourceError::NoText(path) => path.display().to_string(),
            SourceError::Nothing | SourceError::TooMany | SourceError::Several(_) => String::new(),
        }
    }

    /// The reason without the path.
    pub fn reason(&self) -> String {
        let text = self.to_string();
        text.strip_prefix(&format!("{}: ", self.path())).map_or(text.clone(), str::to_owned)
    }
}

impl Source {
    fn of(path: &Path, parts: &[String], metadata: &Metadata) -> Result<Source, SourceError> {
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(SourceError::Kind(path.to_owned()));
        }
        let name = Name::new(parts.to_vec()).map_err(|error| SourceError::Name { path: path.to_owned(), error })?;
        let seconds = metadata.mtime().saturating_mul(1_000_000_000);
        Ok(Source {
            path: path.to_owned(),
            name,
            kind: if metadata.is_dir() { Kind::Folder } else { Kind::File },
            size: if metadata.is_dir() { 0 } else { metadata.len() },
            mode: metadata.mode() & 0o777,
            modified_ns: seconds.saturating_add(metadata.mtime_nsec()),
            input: None,
        })
    }

    /// Creates the source of a stream, under this name.
    ///
    /// # Errors
    /// The receiver would refuse the name.
    pub fn stream(input: Input, name: &str) -> Result<Source, SourceError> {
        let path = PathBuf::from("-");
        let name = Name::new(vec![name.to_owned()]).map_err(|error| SourceError::Name { path: path.clone(), error })?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        Ok(Source { path, name, kind: Kind::Stream, size: 0, mode: 0o666, modified_ns, input: Some(input) })
    }

    /// Returns true if it is a stream of which the receiver has some, so that it cannot be sent again.
    pub(super) fn is_spent(&self) -> bool {
        self.input.as_ref().is_some_and(Input::is_received)
    }

    /// Returns true if it has content, which the receiver stores or discards.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File | Kind::Discard | Kind::Stream)
    }

    /// Returns true if it counts as a file for users.
    pub(super) fn counts(&self) -> bool {
        matches!(self.kind, Kind::File | Kind::Stream)
    }

    /// Makes the receiver discard the content of a file.
    pub fn discarded(self) -> Source {
        let kind = if self.kind == Kind::File { Kind::Discard } else { self.kind };
        Source { kind, ..self }
    }

    /// Opens the file.
    pub(super) fn open(&self) -> io::Result<File> {
        let no_follow = nix::fcntl::OFlag::O_NOFOLLOW.bits();
        let file = File::options().read(true).custom_flags(no_follow).open(&self.path)?;
        if self.is_unchanged(&file)? { Ok(file) } else { Err(changed()) }
    }

    /// Returns true if an open file has not changed since the transfer started.
    pub(super) fn is_unchanged(&self, file: &File) -> io::Result<bool> {
        let now = Source::of(&self.path, self.name.parts(), &file.metadata()?);
        Ok(now.is_ok_and(|now| Source { kind: self.kind, ..now } == *self))
    }

    /// Checks a file of which everything was read: it has not changed, and has no more content than its size says.
    /// Files of `/proc` have content and no size.
    pub(super) fn check_end(&self, file: &File) -> io::Result<()> {
        if !self.is_unchanged(file)? {
            return Err(changed());
        }
        match file.read_at(&mut [0], self.size)? {
            0 => Ok(()),
            _ => Err(io::Error::other(
                "it has more content than its size says; standard input takes it: send --name NAME - < FILE",
            )),
        }
    }

    /// Returns the error of a file that has ended before its size.
    pub(super) fn ended_early(&self, file: &File) -> io::Error {
        match self.is_unchanged(file) {
            Ok(true) => io::Error::other("it has less content than its size says"),
            Ok(false) => changed(),
            Err(error) => error,
        }
    }
}

/// The error of a file that has changed.
pub(super) fn changed() -> io::Error {
    io::Error::other("it has changed since the transfer began")
}

/// The items to send.
#[derive(Debug, Default)]
pub struct Collected {
    /// Files and folders in order of name, each folder before its content; then the time of each folder, innermost
    /// first.
    pub sources: Vec<Source>,
    /// Items in a folder that cannot be sent themselves.
    pub left_out: Vec<SourceError>,
}

impl Collected {
    /// Adds a stream, under this name.
    ///
    /// # Errors
    /// The receiver would refuse the name, or another item has it.
    pub fn add_stream(&mut self, input: Input, name: &str) -> Result<(), SourceError> {
        let stream = Source::stream(input, name)?;
        if self.sources.iter().any(|source| source.name == stream.name) {
            return Err(SourceError::Twice { path: stream.path, name: stream.name });
        }
        // The times of folders stay last.
        let times = self.sources.iter().position(|source| source.kind == Kind::FolderTime);
        self.sources.insert(times.unwrap_or(self.sources.len()), stream);
        Ok(())
    }
}

/// Collects everything below `paths`; each path is sent under its last component.
///
/// # Errors
/// Some of the paths cannot be sent; then none is, and the error names all of them.
pub fn collect(paths: &[PathBuf]) -> Result<Collected, SourceError> {
    collect_selected(paths, &Selection::default())
}

/// Collects what `selection` selects below `paths`, like [`collect`]. If patterns say which files are
/// sent, folders without such a file are left out.
///
/// # Errors
/// One of the paths cannot be sent, or nothing is selected.
pub fn collect_selected(paths: &[PathBuf], selection: &Selection) -> Result<Collected, SourceError> {
    let mut collected = Collected::default();
    let refused = paths.iter().filter_map(|path| collect_path(path, selection, &mut collected).err());
    match <[SourceError; 1]>::try_from(refused.collect::<Vec<_>>()) {
        Ok([error]) => return Err(error),
        Err(refused) if refused.is_empty() => {}
        Err(refused) => return Err(SourceError::Several(refused)),
    }
    if collected.sources.is_empty() && collected.left_out.is_empty() {
        return Err(SourceError::Nothing);
    }
    let sources = &mut collected.sources;
    let mut names: Vec<_> = sources.iter().map(|source| (&source.name, &source.path)).collect();
    names.sort();
    if let Some(pair) = names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(SourceError::Twice { path: pair[1].1.clone(), name: pair[1].0.clone() });
    }
    let folders = sources.iter().rev().filter(|source| source.kind == Kind::Folder);
    let times: Vec<Source> = folders.map(|folder| Source { kind: Kind::FolderTime, ..folder.clone() }).collect();
    sources.extend(times);
    Ok(collected)
}

/// Collects a path that the user has named.
fn collect_path(path: &Path, selection: &Selection, collected: &mut Collected) -> Result<(), SourceError> {
    let failed = |error| SourceError::File { path: path.to_owned(), error };
    // A link that the user names is followed.
    let real = path.canonicalize().map_err(failed)?;
    let shown = if path.file_name().is_some() { path } else { real.as_path() };
    let last = shown.file_name().ok_or_else(|| SourceError::Kind(path.to_owned()))?;
    let last = last.to_str().ok_or_else(|| SourceError::NoText(path.to_owned()))?.to_owned();
    walk(&real, &mut vec![last], selection, collected)
}

/// Collects a file, or a folder and its content as far as it can be sent. An error concerns `path` itself or is fatal.
fn walk(
    path: &Path,
    parts: &mut Vec<String>,
    selection: &Selection,
    collected: &mut Collected,
) -> Result<(), SourceError> {
    let failed = |error| SourceError::File { path: path.to_owned(), error };
    if selection.excludes(parts) {
        return Ok(());
    }
    let metadata = path.symlink_metadata().map_err(failed)?;
    let (is_folder, is_included) = (metadata.is_dir(), selection.includes(parts));
    if !is_folder && !is_included {
        return Ok(());
    }
    let source = Source::of(path, parts, &metadata)?;
    let entries = if metadata.is_dir() {
        let entries = path.read_dir().and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mut entries: Vec<PathBuf> = entries.map_err(failed)?;
        entries.sort();
        entries
    } else {
        vec![]
    };
    collected.sources.push(source);
    let count = collected.sources.len();
    for entry in entries {
        if collected.sources.len() + collected.left_out.len() >= MAX_ITEMS {
            return Err(SourceError::TooMany);
        }
        let Some(last) = entry.file_name().and_then(|last| last.to_str()) else {
            collected.left_out.push(SourceError::NoText(entry));
            continue;
        };
        parts.push(last.to_owned());
        match walk(&entry, parts, selection, collected) {
            Ok(()) => {}
            Err(SourceError::TooMany) => return Err(SourceError::TooMany),
            Err(error) => collected.left_out.push(error),
        }
        parts.pop();
    }
    if is_folder && !is_included && collected.sources.len() == count {
        collected.sources.pop();
    }
    Ok(())
}
