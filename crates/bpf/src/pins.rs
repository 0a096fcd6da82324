//! Pins: what the kernel holds for nobody but a file.

use crate::error::BpfError;
use crate::libbpf::Held;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where what outlives a command is kept.
pub const PINS: &str = "/sys/fs/bpf";

/// Of a controller.
pub fn pin_of(name: &str) -> PathBuf {
    Path::new(PINS).join("sparelane").join(name)
}

/// Of what chooses a controller for a cgroup. Names of controllers have no hyphen: nothing else has this pin.
pub fn pin_of_chooser(name: &str, at: usize) -> PathBuf {
    Path::new(PINS).join("sparelane").join(format!("{name}-cgroup{at}"))
}

/// Whether pins can be kept.
///
/// # Errors
/// [`BpfError::NoPins`] where not.
pub fn check_pins() -> Result<(), BpfError> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_it = |line: &str| line.split(' ').nth(1) == Some(PINS) && line.split(' ').nth(2) == Some("bpf");
    if mounts.lines().any(is_it) { Ok(()) } else { Err(BpfError::NoPins { path: PINS.into() }) }
}

/// Keeps an object by a file.
///
/// # Errors
/// The kernel says no.
pub(crate) fn pin(held: &mut Held, pin: &Path) -> Result<(), BpfError> {
    let failed = |error| BpfError::system(format!("pinning {}", pin.display()), error);
    std::fs::create_dir_all(pin.parent().unwrap_or(Path::new(PINS))).map_err(failed)?;
    held.pin(pin).map_err(failed)
}

/// Removes the pins of a controller and of what chooses it.
///
/// # Errors
/// A pin is there and cannot be removed.
pub fn remove_pins(name: &str) -> Result<(), BpfError> {
    let choosers = (0..).map(|at| pin_of_chooser(name, at)).take_while(|pin| pin.exists());
    for pin in choosers.chain([pin_of(name)]) {
        match std::fs::remove_file(pin) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(BpfError::system("removing a pin", error)),
            _ => {}
        }
    }
    // The folder of the last one goes, too.
    let _ = std::fs::remove_dir(Path::new(PINS).join("sparelane"));
    Ok(())
}
