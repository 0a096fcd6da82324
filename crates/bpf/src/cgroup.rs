//! Cgroups of version 2: their folders and IDs, and the program that chooses the controller of their connections.

use crate::error::BpfError;
use crate::libbpf::{self, OwnedLink};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The size of a controller's name in the kernel, with the terminating zero (`TCP_CA_NAME_MAX`).
const NAME_BYTES: usize = 16;

/// Returns the folder of a cgroup.
///
/// `path` is relative to the root of the cgroup hierarchy, or a path in the file system.
///
/// # Errors
/// [`BpfError::Setting`] if there is no such cgroup.
pub fn folder(path: &str) -> Result<PathBuf, BpfError> {
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let root = mounts.iter().map(Path::new).find(|root| root.join("cgroup.controllers").exists());
    let as_given = Some(PathBuf::from(path)).filter(|folder| folder.join("cgroup.procs").exists());
    let below = root.map(|root| root.join(path.trim_start_matches('/')));
    let found = as_given.or(below).filter(|folder| folder.join("cgroup.procs").exists());
    found.ok_or_else(|| BpfError::Setting(format!("there is no cgroup \"{path}\" (of version 2)")))
}

/// Returns the kernel's ID of a cgroup, which is the inode number of its folder.
///
/// # Errors
/// [`BpfError::Setting`] if there is no such cgroup.
pub fn id(path: &str) -> Result<u64, BpfError> {
    let folder = folder(path)?;
    let found = std::fs::metadata(&folder).ok().filter(Metadata::is_dir).map(|folder| folder.ino());
    found.ok_or_else(|| BpfError::Setting(format!("there is no cgroup \"{path}\" (of version 2)")))
}

/// Returns the constants of the `choose` program for the controller of this name.
fn settings(name: &str) -> [u8; NAME_BYTES] {
    // The last byte stays zero: the kernel expects a terminated string.
    let mut settings = [0; NAME_BYTES];
    settings.iter_mut().zip(name.bytes().take(NAME_BYTES - 1)).for_each(|(place, byte)| *place = byte);
    settings
}

/// Makes the connections of a cgroup use a controller until the returned link is dropped.
///
/// # Errors
/// There is no such cgroup, or the kernel refuses.
pub fn choose(path: &str, name: &str) -> Result<OwnedLink, BpfError> {
    let folder = folder(path)?;
    let opened =
        File::open(&folder).map_err(|error| BpfError::system(format!("opening {}", folder.display()), error))?;
    libbpf::choose(&settings(name), &opened)
}

/// Detaches every `choose` program that assigns this controller to a cgroup, including those of other processes.
///
/// # Errors
/// The kernel refuses to list its links.
pub fn remove_choosers(name: &str) -> Result<(), BpfError> {
    libbpf::choosers(&settings(name))?.into_iter().for_each(libbpf::detach);
    Ok(())
}
