//! Cgroups of version 2: their folders and identities, and a program that chooses the controller of their connections.

use crate::error::BpfError;
use crate::object::Object;
use std::fs::{File, Metadata};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const OBJECT: &[u8] = include_bytes!("../objects/choose.bpf.o");

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

/// The title of the program that chooses a controller; the kernel keeps 15 bytes of it.
pub fn title(name: &str) -> String {
    let mut title = format!("c_{name}");
    title.truncate(15);
    title
}

/// Has the connections of a cgroup use a controller, as long as the link is open.
///
/// # Errors
/// There is no such cgroup, or the kernel refuses.
pub fn choose(path: &str, name: &str) -> Result<OwnedFd, BpfError> {
    let folder = folder(path)?;
    let opened =
        File::open(&folder).map_err(|error| BpfError::system(format!("opening {}", folder.display()), error))?;
    let mut object = Object::parse("choose", OBJECT)?;
    for (at, &byte) in name.as_bytes().iter().take(15).enumerate() {
        object.set(&format!("name[{at}]"), u64::from(byte))?;
    }
    object.attach_to_cgroup(&title(name), opened.as_fd())
}
