//! Incomplete files that earlier attempts have left in a folder: their list, and their removal.
//!
//! An incomplete file is kept so that the next attempt continues with it. If there is no next attempt,
//! it would occupy the disk without end. Files that a receiver is writing are locked, and stay.

use super::folder::{Folder, is_same};
use super::name::{MAX_PARTS, Name};
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime};

/// An incomplete file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftFile {
    /// The name that it will have when it is complete.
    pub name: Name,
    /// The bytes that it occupies on the disk.
    pub bytes: u64,
    /// The time since its last change.
    pub age: Duration,
    /// True if a receiver is writing it.
    pub is_in_use: bool,
}

/// Lists the incomplete files of a folder, in order of name. Subfolders that cannot be read are skipped.
///
/// # Errors
/// The folder cannot be read.
pub fn list(folder: &Folder) -> io::Result<Vec<LeftFile>> {
    let mut found = vec![];
    visit(folder.root()?, &mut vec![], &mut |place| {
        // A receiver cannot take the file while the lock of this check is held, which is not for long.
        let is_in_use = place.lock().is_none();
        found.push(place.describe(is_in_use));
    })?;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Removes the incomplete files of a folder that have not changed for `min_age` and that no receiver is
/// writing. Returns them.
///
/// # Errors
/// The folder cannot be read.
pub fn clean(folder: &Folder, min_age: Duration) -> io::Result<Vec<LeftFile>> {
    let mut removed = vec![];
    visit(folder.root()?, &mut vec![], &mut |place| {
        if place.age < min_age {
            return;
        }
        // With the lock, the state is final: the file may have changed or got its name since it was found.
        let Some(file) = place.lock() else { return };
        let is_same = fstat(&*file).is_ok_and(|now| age_of(&now) >= min_age && place.is_at_its_place(&now));
        if is_same && unlinkat(place.parent.as_fd(), place.partial.as_str(), UnlinkatFlags::NoRemoveDir).is_ok() {
            removed.push(place.describe(false));
        }
    })?;
    Ok(removed)
}

/// An incomplete file that the walk through the folder has found.
struct Place {
    parent: OwnedFd,
    /// The name of the incomplete file in `parent`.
    partial: String,
    name: Name,
    bytes: u64,
    age: Duration,
}

impl Place {
    /// Locks the file; `None` if a receiver is writing it, or if it cannot be opened.
    fn lock(&self) -> Option<Flock<File>> {
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = File::from(openat(&self.parent, self.partial.as_str(), flags, Mode::empty()).ok()?);
        Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
    }

    /// Returns true if the name still leads to the file with this status.
    fn is_at_its_place(&self, own: &FileStat) -> bool {
        let there = fstatat(&self.parent, self.partial.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        there.is_ok_and(|there| is_same(&there, own))
    }

    fn describe(&self, is_in_use: bool) -> LeftFile {
        LeftFile { name: self.name.clone(), bytes: self.bytes, age: self.age, is_in_use }
    }
}

/// Calls `act` for each incomplete file in an open folder and below. Follows no link.
fn visit(folder: OwnedFd, parts: &mut Vec<String>, act: &mut dyn FnMut(&Place)) -> io::Result<()> {
    let parent = folder.try_clone()?;
    for entry in Dir::from_fd(folder)?.iter() {
        let entry = entry?;
        let Ok(last) = entry.file_name().to_str() else { continue };
        if last == "." || last == ".." {
            continue;
        }
        let Ok(status) = fstatat(&parent, last, AtFlags::AT_SYMLINK_NOFOLLOW) else { continue };
        let format = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
        if format == SFlag::S_IFDIR && entry.file_type().is_none_or(|kind| kind == Type::Directory) {
            let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            match openat(&parent, last, flags, Mode::empty()) {
                Ok(below) if parts.len() < MAX_PARTS => {
                    parts.push(last.to_owned());
                    // A folder that disappears or cannot be read hides only its own files.
                    let _ = visit(below, parts, act);
                    parts.pop();
                }
                Ok(_) | Err(Errno::ENOENT | Errno::EACCES | Errno::ENOTDIR | Errno::ELOOP) => {}
                Err(error) => return Err(error.into()),
            }
        } else if format == SFlag::S_IFREG
            && let Some(name) = Name::of_partial(parts, last)
        {
            // 512-byte blocks; a file with holes occupies less than its size.
            let bytes = (status.st_blocks as u64).saturating_mul(512);
            let (partial, age) = (last.to_owned(), age_of(&status));
            act(&Place { parent: parent.try_clone()?, partial, name, bytes, age });
        }
    }
    Ok(())
}

/// The time since the last change of a file; zero if that is in the future.
fn age_of(status: &FileStat) -> Duration {
    let (seconds, ns) = (u64::try_from(status.st_mtime).unwrap_or(0), status.st_mtime_nsec as u32);
    let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, ns));
    changed.and_then(|changed| SystemTime::now().duration_since(changed).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs::{self, FileTimes};
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    const HOUR: Duration = Duration::from_secs(3600);

    fn name(text: &str) -> Name {
        Name::new(text.split('/').map(str::to_owned).collect()).expect("a name")
    }

    /// Leaves an incomplete file that was changed two hours ago.
    fn leave(folder: &Folder, root: &Path, text: &str) {
        folder.begin(&name(text)).expect("a file").file().write_all(&[1; 5000]).expect("room");
        let (folders, last) = text.rsplit_once('/').unwrap_or((".", text));
        age(&root.join(folders).join(format!(".{last}.sparelane-part")));
    }

    fn age(path: &Path) {
        let times = FileTimes::new().set_modified(SystemTime::now() - 2 * HOUR);
        File::options().write(true).open(path).expect("a file").set_times(times).expect("a time");
    }

    fn names(found: &[LeftFile]) -> Vec<String> {
        found.iter().map(|one| one.name.to_string()).collect()
    }

    #[test]
    fn old_incomplete_files_are_listed_and_removed_and_all_others_stay() {
        let scratch = Scratch::new("partials");
        let root = scratch.path();
        let folder = Folder::open(root).expect("a folder");
        for text in ["old", "deep/er/old", "in-use"] {
            leave(&folder, root, text);
        }
        let held = folder.begin(&name("in-use")).expect("a file");
        folder.begin(&name("new")).expect("a file");
        // Files that a peer or the user has named so are not incomplete files of a transfer.
        for other in ["complete", ".hidden", ".sparelane-part", "x.sparelane-part", ". .sparelane-part"] {
            fs::write(root.join(other), "x").expect("a file");
            age(&root.join(other));
        }
        let found = list(&folder).expect("a folder");
        assert_eq!(names(&found), ["deep/er/old", "in-use", "new", "old"]);
        assert_eq!(found.iter().map(|one| one.is_in_use).collect::<Vec<_>>(), [false, true, false, false]);
        assert!(found[0].bytes >= 5000 && found[0].age >= 2 * HOUR && found[2].age < HOUR, "{found:?}");
        let mut removed = names(&clean(&folder, HOUR).expect("a folder"));
        removed.sort();
        assert_eq!(removed, ["deep/er/old", "old"]);
        assert_eq!(names(&list(&folder).expect("a folder")), ["in-use", "new"]);
        // The holder finishes as if nothing had happened.
        held.finish(5000, 0o600, 0, false).expect("the file is still there");
        assert_eq!(clean(&folder, HOUR).expect("a folder"), []);
        assert_eq!(fs::read_dir(root).expect("a folder").count(), 8, "all others stay");
    }

    #[test]
    fn links_are_not_followed() {
        let (scratch, outside) = (Scratch::new("partials-links"), Scratch::new("partials-outside"));
        let inner = Folder::open(outside.path()).expect("a folder");
        leave(&inner, outside.path(), "old");
        symlink(outside.path(), scratch.path().join("link")).expect("a link");
        symlink(outside.path().join(".old.sparelane-part"), scratch.path().join(".to.sparelane-part")).expect("a link");
        let folder = Folder::open(scratch.path()).expect("a folder");
        assert_eq!(list(&folder).expect("a folder"), []);
        assert_eq!(clean(&folder, Duration::ZERO).expect("a folder"), []);
        assert_eq!(names(&list(&inner).expect("a folder")), ["old"]);
    }
}
