//! Loading object files and attaching their programs.

use super::{io_error, take_log};
use crate::error::BpfError;
use crate::programs::Prepared;
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{ErrorKind, Link, MapCore as _, MapType, Object, ObjectBuilder};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// The number of attempts to load a program while signals interrupt its verification. libbpf itself tries five times
/// per attempt.
const MAX_ATTEMPTS: usize = 20;

/// The number of lines of the verifier's log that an error message contains.
const LOG_LINES: usize = 12;

/// The program that chooses a controller for a cgroup.
const CHOOSE: &[u8] = include_bytes!("../../objects/choose.bpf.o");

/// A BPF link that this process owns. Dropping it detaches the program, unless the link is pinned.
#[derive(Debug)]
pub struct OwnedLink(Link);

impl OwnedLink {
    /// Detaches the program, even if the link is pinned or another process holds it (for controllers since Linux 6.11).
    pub fn detach(&self) {
        let _ = self.0.detach();
    }

    /// Returns whether this is the link of a controller that no process has detached.
    pub fn is_registered(&self) -> bool {
        self.0.info().is_ok_and(|link| matches!(link.info, LinkTypeInfo::StructOps(of) if of.map_id != 0))
    }

    /// Pins the link to a file in the BPF file system.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn pin(&mut self, path: &Path) -> io::Result<()> {
        take_log();
        self.0.pin(path).map_err(|error| io_error(&error))
    }
}

/// Loads a program and registers its controller as `name`.
///
/// # Errors
/// The kernel refuses, and nothing stays loaded.
pub fn register(prepared: &Prepared, name: &str) -> Result<OwnedLink, BpfError> {
    let program = prepared.program;
    let mut loaded = load(program.name, program.object, name, &prepared.settings())?;
    let table = loaded.maps_mut().find(|map| map.map_type() == MapType::StructOps);
    let mut table = table.ok_or_else(|| damaged(program.name, "no operations"))?;
    let link = table.attach_struct_ops().map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => BpfError::NameTaken { name: name.to_owned(), by: String::new() },
        _ => BpfError::system(format!("registering {name}"), io_error(&error)),
    })?;
    Ok(OwnedLink(link))
}

/// Makes the connections of a cgroup use the controller that these settings of the `choose` program name.
///
/// # Errors
/// The kernel refuses, and nothing stays loaded.
pub fn choose(settings: &[u8], cgroup: &File) -> Result<OwnedLink, BpfError> {
    let loaded = load("choose", CHOOSE, "choose", settings)?;
    let program = loaded.progs_mut().next().ok_or_else(|| damaged("choose", "no program"))?;
    let link = program
        .attach_cgroup(cgroup.as_raw_fd())
        .map_err(|error| BpfError::system("attaching to a cgroup (which needs CONFIG_CGROUP_BPF)", io_error(&error)))?;
    Ok(OwnedLink(link))
}

fn damaged(program: &str, what: impl Into<String>) -> BpfError {
    BpfError::DamagedObject { program: program.to_owned(), what: what.into() }
}

/// Loads the maps and programs of an object file.
///
/// `settings` become its constants, and `name` the name in its table of operations. Verification takes a while, and a
/// signal aborts it, so it is repeated after the signal's handler has run.
fn load(program: &str, file: &[u8], name: &str, settings: &[u8]) -> Result<Object, BpfError> {
    for _ in 0..MAX_ATTEMPTS {
        take_log();
        let mut builder = ObjectBuilder::default();
        let opened = builder.name(program).and_then(|builder| builder.open_memory(file));
        let mut object = opened.map_err(|error| damaged(program, first_message(&take_log(), &io_error(&error))))?;
        for mut map in object.maps_mut() {
            let is_table = map.map_type() == MapType::StructOps;
            let is_constants = map.name().to_string_lossy().ends_with(".rodata");
            let value = map.initial_value_mut().unwrap_or_default();
            if is_constants && value.len() == settings.len() {
                value.copy_from_slice(settings);
            } else if is_constants {
                return Err(damaged(program, format!("{} bytes of constants", value.len())));
            } else if is_table {
                value[..name.len()].copy_from_slice(name.as_bytes());
            }
        }
        match object.load() {
            Ok(loaded) => return Ok(loaded),
            // libbpf returns EAGAIN after its own attempts.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(rejection(name, &take_log(), io_error(&error))),
        }
    }
    Err(BpfError::Interrupted { program: name.to_owned() })
}

/// Returns the error for an object that was not loaded.
///
/// It contains the end of the verifier's log, or the first message of libbpf if the verifier did not run.
fn rejection(name: &str, log: &str, error: io::Error) -> BpfError {
    // libbpf prints the verifier's log between two lines of its own.
    let by_verifier = log.split_once("-- BEGIN PROG LOAD LOG --").map(|(_, rest)| rest);
    let by_verifier = by_verifier.and_then(|rest| rest.split("-- END PROG LOAD LOG --").next()).unwrap_or_default();
    let lines: Vec<&str> =
        by_verifier.lines().filter(|line| !line.is_empty() && !line.starts_with("processed ")).collect();
    if !lines.is_empty() {
        let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        return BpfError::Rejected { program: name.to_owned(), last };
    }
    BpfError::system(format!("loading {name}"), io::Error::new(error.kind(), first_message(log, &error)))
}

/// Returns the first message of libbpf, which is nearest to the cause, or the system's error if libbpf logged nothing.
fn first_message(log: &str, error: &io::Error) -> String {
    log.lines().find_map(|line| line.strip_prefix("libbpf: ")).map_or_else(|| error.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_contains_the_end_of_the_verifiers_log() {
        let verdict: String = (0..20).map(|line| format!("{line}: a line\n")).collect();
        let log = format!(
            "libbpf: prog 'x': BPF program load failed: -EACCES\nlibbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n{verdict}\
             processed 7 insns\n-- END PROG LOAD LOG --\nlibbpf: failed to load object 'x'\n"
        );
        let error = rejection("mine", &log, io::ErrorKind::PermissionDenied.into()).to_string();
        assert!(error.starts_with("the kernel rejected the program mine: 8: a line\n"), "{error}");
        assert!(error.ends_with("\n19: a line"), "{error}");
    }

    #[test]
    fn without_a_verifiers_log_an_error_contains_the_first_message_of_libbpf() {
        let log = "libbpf: map 'states': failed to create: -ENOMEM\nlibbpf: failed to load object 'x'\n";
        let error = rejection("mine", log, io::ErrorKind::OutOfMemory.into()).to_string();
        assert_eq!(error, "loading mine: map 'states': failed to create: -ENOMEM");
        let error = rejection("mine", log, io::ErrorKind::PermissionDenied.into());
        assert!(matches!(error, BpfError::NotPermitted { .. }));
    }
}
