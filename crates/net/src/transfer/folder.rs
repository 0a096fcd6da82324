//! The folder into which files are received.
//!
//! Every access starts at an open folder and follows no link. Nothing that is in the folder, or is put there in the
//! meantime, can therefore lead out of it.

use super::name::Name;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, RenameFlags, openat, renameat, renameat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{UnlinkatFlags, fsync, syncfs, unlinkat};
use std::collections::BTreeMap;
use std::fs::{File, FileTimes, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The maximum number of attempts to open a file that another process finishes or removes at the same time.
const MAX_ATTEMPTS: usize = 5;

const FOLDER: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// The permissions of received files and folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// The bits that are removed from the sender's permissions.
    umask: u32,
    /// The permissions of files, in place of the sender's.
    files: Option<u32>,
}

impl Modes {
    /// Keeps the sender's permissions except the bits of this process's umask, or gives all files the same.
    pub fn new(files: Option<u32>) -> Modes {
        // Reading the umask by the system call would change it for an instant.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let umask = umask.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
        Modes { umask: umask.unwrap_or(0o022), files }
    }

    /// The permissions of a file that the sender has with `mode`.
    pub fn file(&self, mode: u32) -> u32 {
        self.files.unwrap_or(mode & !self.umask) & 0o777
    }

    /// The permissions of a folder that the sender has with `mode`. Who may read the files may search the folder, and
    /// the owner can always write into it.
    pub fn folder(&self, mode: u32) -> u32 {
        let mode = self.files.map_or(mode & !self.umask, |files| files | (files & 0o444) >> 2);
        mode & 0o777 | 0o700
    }
}

/// The time at which received files are forced to the disk (fsync).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fsync {
    /// Each file by itself, before it gets its name.
    Each,
    /// All files that are complete at the same time together, before they get their names.
    #[default]
    Batch,
    /// Never; the system writes them later.
    Never,
}

/// The rules for received files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The permissions.
    pub modes: Modes,
    /// The space that stays free, bytes.
    pub min_free_bytes: u64,
    /// The time at which files are forced to the disk.
    pub fsync: Fsync,
}

/// An open folder for received files.
#[derive(Debug)]
pub struct Folder {
    root: OwnedFd,
    rules: Rules,
}

/// An incomplete file, next to its final place. A lock protects it from other receivers, in this process and others.
/// The lock ends with the process, however it ends.
#[derive(Debug)]
pub struct Partial {
    parent: OwnedFd,
    name: Name,
    file: Flock<File>,
    had_bytes: u64,
}

/// An existing entry with the name of a file.
#[derive(Debug, Default)]
pub struct ExistingFile {
    /// The open file, if it is one that can be read.
    file: Option<File>,
    size: u64,
    modified_ns: i64,
    mode: u32,
}

impl Folder {
    /// Opens the folder, which may itself be a link. Files keep the sender's permissions except those of the umask.
    ///
    /// # Errors
    /// It is not a folder or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Folder::open_with(path, Rules { modes: Modes::new(None), min_free_bytes: 0, fsync: Fsync::default() })
    }

    /// Opens the folder, for files under these rules.
    ///
    /// # Errors
    /// It is not a folder or cannot be opened.
    pub fn open_with(path: &Path, rules: Rules) -> io::Result<Folder> {
        let root = File::open(path)?;
        if !root.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Folder { root: root.into(), rules })
    }

    /// Opens the folder itself once more, to read its entries.
    pub(super) fn root(&self) -> io::Result<OwnedFd> {
        // A duplicate would share the position in the list of entries.
        Ok(openat(&self.root, ".", FOLDER, Mode::empty())?)
    }

    /// The permissions of files and folders.
    pub fn modes(&self) -> Modes {
        self.rules.modes
    }

    /// The time at which files are forced to the disk.
    pub fn fsync(&self) -> Fsync {
        self.rules.fsync
    }

    /// Checks that `bytes` fit into the folder and leave the configured space free.
    ///
    /// # Errors
    /// They do not fit.
    pub fn check_room(&self, bytes: u64) -> io::Result<()> {
        // If the system does not know the free space, writing fails later.
        let Ok(system) = fstatvfs(&self.root) else { return Ok(()) };
        let free = system.blocks_available().saturating_mul(system.fragment_size());
        if bytes <= free.saturating_sub(self.rules.min_free_bytes) {
            return Ok(());
        }
        let kept = self.rules.min_free_bytes;
        let reason =
            format!("No space left on device: {bytes} more bytes are to come, {free} are free, and {kept} stay free");
        Err(io::Error::new(io::ErrorKind::StorageFull, reason))
    }

    /// Opens the folder with these parts, and creates missing ones.
    fn enter(&self, parts: &[String]) -> io::Result<OwnedFd> {
        let mut at = self.root.try_clone()?;
        for part in parts {
            match mkdirat(&at, part.as_str(), Mode::from_bits_truncate(0o777)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(error) => return Err(error.into()),
            }
            at = openat(&at, part.as_str(), FOLDER, Mode::empty())?;
        }
        Ok(at)
    }

    /// Creates a folder with these permissions, unless it exists.
    ///
    /// # Errors
    /// It cannot be created, or its name is in use.
    pub fn make(&self, name: &Name, mode: u32) -> io::Result<()> {
        let folder = File::from(self.enter(name.parts())?);
        folder.set_permissions(Permissions::from_mode(self.rules.modes.folder(mode)))
    }

    /// Sets the modification time of a folder.
    ///
    /// # Errors
    /// The folder does not exist, or the system refuses.
    pub fn set_time(&self, name: &Name, modified_ns: i64) -> io::Result<()> {
        let mut at = self.root.try_clone()?;
        for part in name.parts() {
            at = openat(&at, part.as_str(), FOLDER, Mode::empty())?;
        }
        set_time(&File::from(at), modified_ns)
    }

    /// Finds an existing entry with this name.
    ///
    /// # Errors
    /// A folder of the name is not a folder, or the entry cannot be read.
    pub fn find(&self, name: &Name) -> io::Result<Option<ExistingFile>> {
        let (folders, last) = name.split();
        let parent = self.enter(folders)?;
        let is_file = match fstatat(&parent, last, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(there) => SFlag::from_bits_truncate(there.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG,
            Err(Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !is_file {
            return Ok(Some(ExistingFile::default()));
        }
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        match openat(&parent, last, flags, Mode::empty()) {
            Ok(file) => {
                let file = File::from(file);
                let metadata = file.metadata()?;
                Ok(Some(ExistingFile {
                    size: metadata.len(),
                    modified_ns: metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec()),
                    mode: metadata.mode() & 0o777,
                    file: metadata.is_file().then_some(file),
                }))
            }
            // An unreadable entry still exists.
            Err(Errno::EACCES) => Ok(Some(ExistingFile::default())),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the incomplete file of this name that an earlier attempt has left, if any.
    ///
    /// # Errors
    /// It cannot be opened, is not a file, or another receiver is writing it.
    pub fn resume(&self, name: &Name) -> io::Result<Option<Partial>> {
        match self.lock(name, OFlag::empty()) {
            Ok(partial) => Ok(Some(partial)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the incomplete file of this name, with the content from an earlier attempt, if any.
    ///
    /// # Errors
    /// It cannot be opened, is not a file, or another receiver is writing it.
    pub fn begin(&self, name: &Name) -> io::Result<Partial> {
        self.lock(name, OFlag::O_CREAT)
    }

    fn lock(&self, name: &Name, more: OFlag) -> io::Result<Partial> {
        let (folders, _) = name.split();
        let flags = more | OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        for _ in 0..MAX_ATTEMPTS {
            let parent = self.enter(folders)?;
            let file = openat(&parent, name.partial().as_str(), flags, Mode::from_bits_truncate(0o600))?;
            let file = File::from(file);
            if !file.metadata()?.is_file() {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
                Errno::EWOULDBLOCK => in_use(),
                other => other.into(),
            })?;
            let had_bytes = file.metadata()?.len();
            let partial = Partial { parent, name: name.clone(), file, had_bytes };
            // The previous holder may have given the file its name between the two steps above; then this is not an
            // incomplete file.
            if partial.is_at_its_place()? {
                return Ok(partial);
            }
        }
        Err(in_use())
    }
}

/// Identifies the content of a file, to find out whether it has changed while it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &File) -> io::Result<Stamp> {
        let found = file.metadata()?;
        // The system sets the time of the change, whatever the file's own time is set to.
        let (file, changed) = ((found.dev(), found.ino()), (found.ctime(), found.ctime_nsec()));
        Ok(Stamp { file, size: found.len(), changed })
    }
}

impl ExistingFile {
    /// The stamp of the file.
    ///
    /// # Errors
    /// It is not a readable file.
    pub fn stamp(&mut self) -> io::Result<Stamp> {
        Stamp::of(self.reader()?)
    }

    /// The size in bytes, if it is a file that can be read.
    pub fn size(&self) -> Option<u64> {
        self.file.as_ref().map(|_| self.size)
    }

    /// Returns true if it is a file of this size and modification time.
    pub fn is_dated(&self, size: u64, modified_ns: i64) -> bool {
        self.size() == Some(size) && self.modified_ns == modified_ns
    }

    /// Sets the permissions, if they differ.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        match &self.file {
            Some(file) if self.mode != mode => file.set_permissions(Permissions::from_mode(mode & 0o777)),
            _ => Ok(()),
        }
    }

    /// The file, for reading.
    ///
    /// # Errors
    /// It is not a readable file.
    pub fn reader(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
    }

    /// Sets permissions and modification time.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_attributes(&self, mode: u32, modified_ns: i64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.set_permissions(Permissions::from_mode(mode & 0o777))?;
        set_time(file, modified_ns)
    }
}

fn set_time(file: &File, modified_ns: i64) -> io::Result<()> {
    let (distance, epoch) = (Duration::from_nanos(modified_ns.unsigned_abs()), SystemTime::UNIX_EPOCH);
    let modified = if modified_ns < 0 { epoch.checked_sub(distance) } else { epoch.checked_add(distance) };
    modified.map_or(Ok(()), |modified| file.set_times(FileTimes::new().set_modified(modified)))
}

/// Returns true if both describe the same file.
pub(super) fn is_same(one: &FileStat, other: &FileStat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// The error of a file that another receiver is writing.
fn in_use() -> io::Error {
    io::Error::other("another receiver is writing it")
}

impl Partial {
    /// The stamp of the file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn stamp(&self) -> io::Result<Stamp> {
        Stamp::of(&self.file)
    }

    /// The bytes left from an earlier attempt.
    pub fn had_bytes(&self) -> u64 {
        self.had_bytes
    }

    /// The open file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Returns true if the path still leads to this file, and not to another one.
    fn is_at_its_place(&self) -> io::Result<bool> {
        let own = fstat(&*self.file)?;
        match fstatat(&self.parent, self.name.partial().as_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(there) => Ok(is_same(&there, &own)),
            Err(Errno::ENOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the size, permissions and time of a file that is complete. A missing end becomes a hole.
    ///
    /// # Errors
    /// The system refuses.
    pub fn complete(&self, size: u64, mode: u32, modified_ns: i64) -> io::Result<()> {
        self.file.set_len(size)?;
        self.file.set_permissions(Permissions::from_mode(mode & 0o777))?;
        set_time(&self.file, modified_ns)
    }

    /// Gives the file its name. Without `replaces`, an existing entry of the name is kept.
    fn rename(&self, replaces: bool) -> io::Result<()> {
        if !self.is_at_its_place()? {
            return Err(io::Error::other("it was removed or replaced before it was complete"));
        }
        let (partial, last) = (self.name.partial(), self.name.split().1);
        if replaces {
            renameat(&self.parent, partial.as_str(), &self.parent, last)?;
        } else {
            renameat2(&self.parent, partial.as_str(), &self.parent, last, RenameFlags::RENAME_NOREPLACE)?;
        }
        Ok(())
    }

    /// Removes the file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn discard(self) -> io::Result<()> {
        if !self.is_at_its_place()? {
            return Ok(());
        }
        Ok(unlinkat(&self.parent, self.name.partial().as_str(), UnlinkatFlags::NoRemoveDir)?)
    }
}

/// Gives complete files their names; `sync` forces them to the disk before, and the names after that.
/// Returns the result of each file. Without `replaces`, existing entries of the names are kept.
pub fn store(files: &[Partial], replaces: bool, sync: bool) -> Vec<io::Result<()>> {
    let mut synced = sync_files(if sync { files } else { &[] }).into_iter();
    let renamed: Vec<_> = files
        .iter()
        .map(|file| {
            synced.next().unwrap_or(Ok(()))?;
            file.rename(replaces)
        })
        .collect();
    if !sync {
        return renamed;
    }
    // The names of a folder are synced together.
    let mut folders = BTreeMap::new();
    let mut sync_folder = |file: &Partial| {
        let found = fstat(&file.parent)?;
        *folders.entry((found.st_dev, found.st_ino)).or_insert_with(|| fsync(file.parent.as_fd()))
    };
    files.iter().zip(renamed).map(|(file, renamed)| renamed.and_then(|()| Ok(sync_folder(file)?))).collect()
}

/// Forces the contents of files to the disk; several together, with one call for each file system
/// (which reports errors since Linux 5.8).
fn sync_files(files: &[Partial]) -> Vec<nix::Result<()>> {
    if let [file] = files {
        return vec![fsync(file.file.as_fd())];
    }
    let mut systems = BTreeMap::new();
    let mut sync = |file: &Partial| {
        let system = fstat(file.file.as_fd())?.st_dev;
        *systems.entry(system).or_insert_with(|| syncfs(file.file.as_fd()))
    };
    files.iter().map(&mut sync).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    impl Partial {
        /// Completes the file, and gives it its name.
        pub(crate) fn finish(self, size: u64, mode: u32, modified_ns: i64, replaces: bool) -> io::Result<()> {
            self.complete(size, mode, modified_ns)?;
            store(&[self], replaces, true).remove(0)
        }
    }

    fn name(text: &str) -> Name {
        Name::new(text.split('/').map(str::to_owned).collect()).expect("a name")
    }

    #[test]
    fn complete_files_get_their_names_together_and_a_taken_name_fails_alone() {
        let scratch = crate::scratch::Scratch::new("folder-store");
        let folder = Folder::open(scratch.path()).expect("a folder");
        let complete = |text: &str| {
            let mut partial = folder.begin(&name(text)).expect("a file");
            partial.file().write_all(text.as_bytes()).expect("room");
            partial.complete(text.len() as u64, 0o640, 0).expect("a file");
            partial
        };
        for (sync, names) in [(true, ["a", "sub/b", "sub/c"]), (false, ["d", "sub/e", "sub/f"])] {
            let files = names.map(complete);
            std::fs::write(scratch.path().join(names[1]), "taken").expect("a file");
            let results = store(&files, false, sync);
            let kinds = results.into_iter().map(|result| result.map_err(|error| error.kind())).collect::<Vec<_>>();
            assert_eq!(kinds, [Ok(()), Err(io::ErrorKind::AlreadyExists), Ok(())]);
            for (at, stored) in [names[0], "taken", names[2]].into_iter().enumerate() {
                assert_eq!(std::fs::read_to_string(scratch.path().join(names[at])).expect("a file"), stored);
            }
        }
    }

    #[test]
    fn permissions_are_those_of_the_sender_without_the_umask_or_the_configured_ones() {
        let kept = Modes { umask: 0o027, files: None };
        assert_eq!((kept.file(0o777), kept.file(0o640), kept.file(0o4755)), (0o750, 0o640, 0o750));
        assert_eq!((kept.folder(0o777), kept.folder(0)), (0o750, 0o700));
        let fixed = Modes { umask: 0o077, files: Some(0o640) };
        assert_eq!((fixed.file(0o777), fixed.folder(0o777)), (0o640, 0o750));
        assert_eq!(Modes::new(Some(0o600)).file(0o777), 0o600);
    }

    #[test]
    fn a_file_gets_its_name_only_when_finished() {
        let scratch = crate::scratch::Scratch::new("folder-names");
        let folder = Folder::open(scratch.path()).expect("a folder");
        let mut partial = folder.begin(&name("a/b/file")).expect("a file");
        partial.file().write_all(b"half").expect("room");
        drop(partial);
        let mut partial = folder.begin(&name("a/b/file")).expect("a file");
        assert_eq!(partial.had_bytes(), 4, "the content stays for the next attempt");
        assert!(folder.find(&name("a/b/file")).expect("folders").is_none());
        partial.file().set_len(0).expect("room");
        partial.file().write_all(b"whole").expect("room");
        partial.finish(5, 0o640, 1_500_000_000_000_000_001, false).expect("a free name");
        let path = scratch.path().join("a/b/file");
        let metadata = std::fs::metadata(&path).expect("a file");
        assert_eq!((metadata.mode() & 0o777, metadata.mtime(), metadata.mtime_nsec()), (0o640, 1_500_000_000, 1));
        assert_eq!(std::fs::read(&path).expect("a file"), b"whole");
        let again = folder.begin(&name("a/b/file")).expect("a file");
        assert_eq!(again.finish(0, 0o600, 0, false).expect_err("taken").kind(), io::ErrorKind::AlreadyExists);
        folder.begin(&name("a/b/file")).expect("a file").finish(0, 0o600, 0, true).expect("replaced");
        folder.begin(&name("a/b/other")).expect("a file").discard().expect("a file");
        let left: Vec<_> = std::fs::read_dir(scratch.path().join("a/b")).expect("a folder").flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_file_has_one_receiver_at_a_time() {
        let scratch = crate::scratch::Scratch::new("folder-locks");
        let [one, two] = [0, 1].map(|_| Folder::open(scratch.path()).expect("a folder"));
        let mut first = one.begin(&name("file")).expect("a file");
        first.file().write_all(b"first").expect("room");
        for folder in [&one, &two] {
            assert_eq!(folder.begin(&name("file")).expect_err("locked").to_string(), "another receiver is writing it");
        }
        two.begin(&name("other")).expect("a file of its own");
        first.finish(5, 0o600, 0, false).expect("a free name");
        // The name is free for a new incomplete file.
        let mut second = two.begin(&name("file")).expect("no receiver writes it");
        assert_eq!(second.had_bytes(), 0);
        second.file().write_all(b"second").expect("room");
        assert_eq!(std::fs::read(scratch.path().join("file")).expect("a file"), b"first");
        second.finish(6, 0o600, 0, true).expect("the name is replaced");
        assert_eq!(std::fs::read(scratch.path().join("file")).expect("a file"), b"second");
    }

    #[test]
    fn a_replaced_incomplete_file_does_not_get_its_name() {
        let scratch = crate::scratch::Scratch::new("folder-replaced");
        let folder = Folder::open(scratch.path()).expect("a folder");
        let partial = scratch.path().join(".file.sparelane-part");
        let open = folder.begin(&name("file")).expect("a file");
        std::fs::remove_file(&partial).expect("a file");
        std::fs::write(&partial, "of another program").expect("a file");
        assert!(open.finish(0, 0o600, 0, true).expect_err("replaced").to_string().contains("removed or replaced"));
        assert!(partial.exists() && !scratch.path().join("file").exists());
        let open = folder.begin(&name("file")).expect("a file");
        std::fs::remove_file(&partial).expect("a file");
        std::fs::write(&partial, "of another program").expect("a file");
        open.discard().expect("nothing to do");
        assert!(partial.exists());
    }

    #[test]
    fn links_in_the_folder_are_not_followed() {
        let scratch = crate::scratch::Scratch::new("folder-links");
        let (inside, outside) = (scratch.path().join("inside"), scratch.path().join("outside"));
        std::fs::create_dir(&inside).expect("a folder");
        std::fs::create_dir(&outside).expect("a folder");
        std::fs::write(outside.join("victim"), "unharmed").expect("a file");
        symlink(&outside, inside.join("link")).expect("a link");
        symlink(outside.join("victim"), inside.join(".target.sparelane-part")).expect("a link");
        symlink(outside.join("victim"), inside.join("name")).expect("a link");
        let folder = Folder::open(&inside).expect("a folder");
        assert!(folder.begin(&name("link/file")).is_err() && folder.make(&name("link/sub"), 0o755).is_err());
        assert!(folder.begin(&name("target")).is_err(), "the incomplete file would be a link");
        let partial = folder.begin(&name("name")).expect("a file");
        assert!(
            folder.find(&name("name")).expect("a link counts as an entry").is_some_and(|there| there.size().is_none())
        );
        partial.finish(0, 0o600, 0, true).expect("the link is replaced, and not followed");
        assert_eq!(std::fs::read_to_string(outside.join("victim")).expect("a file"), "unharmed");
        assert_eq!(std::fs::read_dir(&outside).expect("a folder").count(), 1);
    }

    #[test]
    fn only_files_are_written_to() {
        let scratch = crate::scratch::Scratch::new("folder-kinds");
        std::fs::create_dir(scratch.path().join(".dir.sparelane-part")).expect("a folder");
        std::fs::write(scratch.path().join("plain"), "").expect("a file");
        let folder = Folder::open(scratch.path()).expect("a folder");
        assert!(folder.begin(&name("dir")).is_err());
        assert!(folder.begin(&name("plain/file")).is_err() && folder.make(&name("plain"), 0o755).is_err());
        assert!(Folder::open(&scratch.path().join("plain")).is_err());
    }
}
