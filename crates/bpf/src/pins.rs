//! Pins: files in the BPF file system that keep objects in the kernel when no process holds them.

use crate::error::BpfError;
use crate::libbpf::OwnedLink;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The mount point of the BPF file system.
pub const PINS: &str = "/sys/fs/bpf";

/// Returns the path of a controller's pin.
pub fn pin_of(name: &str) -> PathBuf {
    Path::new(PINS).join("sparelane").join(name)
}

/// Returns the path of the pin of the program that selects the controller `name` in cgroup number `at`.
///
/// Names of controllers contain no hyphen, so this path is never the pin of another controller.
pub fn pin_of_chooser(name: &str, at: usize) -> PathBuf {
    Path::new(PINS).join("sparelane").join(format!("{name}-cgroup{at}"))
}

/// Checks that objects can be pinned.
///
/// # Errors
/// [`BpfError::NoBpfFileSystem`] if no BPF file system is mounted.
pub fn check_pins() -> Result<(), BpfError> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_it = |line: &str| line.split(' ').nth(1) == Some(PINS) && line.split(' ').nth(2) == Some("bpf");
    if mounts.lines().any(is_it) { Ok(()) } else { Err(BpfError::NoBpfFileSystem { path: PINS.into() }) }
}

/// Pins a link to a file.
///
/// # Errors
/// The folder cannot be created, or the kernel refuses.
pub(crate) fn pin(link: &mut OwnedLink, pin: &Path) -> Result<(), BpfError> {
    let failed = |error| BpfError::system(format!("pinning {}", pin.display()), error);
    std::fs::create_dir_all(pin.parent().unwrap_or(Path::new(PINS))).map_err(failed)?;
    link.pin(pin).map_err(failed)
}

/// Removes the pins of a controller and of the programs that choose it for cgroups.
///
/// # Errors
/// A pin exists and cannot be removed.
pub fn remove_pins(name: &str) -> Result<(), BpfError> {
    let choosers = (0..).map(|at| pin_of_chooser(name, at)).take_while(|pin| pin.exists());
    for pin in choosers.chain([pin_of(name)]) {
        match std::fs::remove_file(pin) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(BpfError::system("removing a pin", error)),
            _ => {}
        }
    }
    // Removes the folder if it is empty. If other pins remain, this call fails and changes nothing.
    let _ = std::fs::remove_dir(Path::new(PINS).join("sparelane"));
    Ok(())
}
