//! Cgroups of version 2: their folders and identities, and a program that chooses the controller of their connections.

use crate::error::BpfError;
use crate::libbpf::{self, Held};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// As long as the name of a controller can be, with the zero at its end.
const NAME_BYTES: usize = 16;

/// The folder of a cgroup, named from the root of cgroups or of all files.
///
/// # Errors
/// [`BpfError::Setting`] where there is none.
pub fn folder(path: &str) -> Result<PathBuf, BpfError> {
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let root = mounts.iter().map(Path::new).find(|root| root.join("cgroup.controllers").exists());
    let as_given = Some(PathBuf::from(path)).filter(|folder| folder.join("cgroup.procs").exists());
    let below = root.map(|root| root.join(path.trim_start_matches('/')));
    let found = as_given.or(below).filter(|folder| folder.join("cgroup.procs").exists());
    found.ok_or_else(|| BpfError::Setting(format!("there is no cgroup \"{path}\" (of version 2)")))
}

/// What the kernel knows a cgroup by.
///
/// # Errors
/// [`BpfError::Setting`] where there is none.
pub fn identity(path: &str) -> Result<u64, BpfError> {
    let folder = folder(path)?;
    let found = std::fs::metadata(&folder).ok().filter(Metadata::is_dir).map(|folder| folder.ino());
    found.ok_or_else(|| BpfError::Setting(format!("there is no cgroup \"{path}\" (of version 2)")))
}

/// The constants of the program that has connections use the controller of this name.
fn settings(name: &str) -> [u8; NAME_BYTES] {
    let mut settings = [0; NAME_BYTES];
    settings.iter_mut().zip(name.bytes().take(NAME_BYTES - 1)).for_each(|(place, byte)| *place = byte);
    settings
}

/// Has the connections of a cgroup use a controller, as long as what is returned is held.
///
/// # Errors
/// There is no such cgroup, or the kernel refuses.
pub fn choose(path: &str, name: &str) -> Result<Held, BpfError> {
    let folder = folder(path)?;
    let opened =
        File::open(&folder).map_err(|error| BpfError::system(format!("opening {}", folder.display()), error))?;
    libbpf::choose(&settings(name), &opened)
}

/// Ends all choices of a controller, whoever made them.
///
/// # Errors
/// What the kernel refuses.
pub fn choose_no_more(name: &str) -> Result<(), BpfError> {
    libbpf::choosers(&settings(name))?.into_iter().for_each(libbpf::detach);
    Ok(())
}
