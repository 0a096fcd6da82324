//! From an object file to a controller that the kernel knows.

use super::{answer, said};
use crate::error::BpfError;
use crate::programs::Prepared;
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{ErrorKind, Link, MapCore as _, MapType, Object, ObjectBuilder};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// How often a program is loaded at most whose verification signals interrupt; libbpf tries five times each time.
const MOST_ATTEMPTS: usize = 20;

/// How many lines of what the verifier says are passed on.
const LINES_TOLD: usize = 12;

/// The program that chooses a controller for a cgroup.
const CHOOSE: &[u8] = include_bytes!("../../objects/choose.bpf.o");

/// What the kernel holds for this process: it is gone when this is dropped, unless it is pinned.
#[derive(Debug)]
pub struct Held(Link);

impl Held {
    /// Ends it, whoever else holds it (controllers since Linux 6.11).
    pub fn detach(&self) {
        let _ = self.0.detach();
    }

    /// Whether it is a controller that is registered still: nobody has detached it.
    pub fn is_registered(&self) -> bool {
        self.0.info().is_ok_and(|link| matches!(link.info, LinkTypeInfo::StructOps(of) if of.map_id != 0))
    }

    /// Keeps it by a file, too.
    ///
    /// # Errors
    /// The kernel says no.
    pub fn pin(&mut self, path: &Path) -> io::Result<()> {
        said();
        self.0.pin(path).map_err(|error| answer(&error))
    }
}

/// Loads a program and registers it as `name`.
///
/// # Errors
/// What the kernel refuses; nothing is left behind then.
pub fn register(prepared: &Prepared, name: &str) -> Result<Held, BpfError> {
    let program = prepared.program;
    let mut loaded = load(program.name, program.object, name, &prepared.settings())?;
    let table = loaded.maps_mut().find(|map| map.map_type() == MapType::StructOps);
    let mut table = table.ok_or_else(|| damaged(program.name, "no operations"))?;
    let link = table.attach_struct_ops().map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => BpfError::NameTaken { name: name.to_owned(), by: String::new() },
        _ => BpfError::system(format!("registering {name}"), answer(&error)),
    })?;
    Ok(Held(link))
}

/// Has the connections of a cgroup use the controller that these settings name.
///
/// # Errors
/// What the kernel refuses; nothing is left behind then.
pub fn choose(settings: &[u8], cgroup: &File) -> Result<Held, BpfError> {
    let loaded = load("choose", CHOOSE, "choose", settings)?;
    let program = loaded.progs_mut().next().ok_or_else(|| damaged("choose", "no program"))?;
    let link = program
        .attach_cgroup(cgroup.as_raw_fd())
        .map_err(|error| BpfError::system("attaching to a cgroup (which needs CONFIG_CGROUP_BPF)", answer(&error)))?;
    Ok(Held(link))
}

fn damaged(program: &str, what: impl Into<String>) -> BpfError {
    BpfError::Object { program: program.to_owned(), what: what.into() }
}

/// Loads all of an object: its maps, with these settings as the constants, its programs, and the table of a controller
/// of that name. A signal that comes while the kernel verifies a program, which takes a while, ends that; its handler
/// has run by then.
fn load(program: &str, file: &[u8], name: &str, settings: &[u8]) -> Result<Object, BpfError> {
    for _ in 0..MOST_ATTEMPTS {
        said();
        let mut builder = ObjectBuilder::default();
        let opened = builder.name(program).and_then(|builder| builder.open_memory(file));
        let mut object = opened.map_err(|error| damaged(program, first_words(&said(), &answer(&error))))?;
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
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(refusal(name, &said(), answer(&error))),
        }
    }
    Err(BpfError::Interrupted { program: name.to_owned() })
}

/// Why something was not loaded: the end of what the verifier says, or else the first thing that libbpf does.
fn refusal(name: &str, said: &str, answer: io::Error) -> BpfError {
    // libbpf puts the verifier's words between two lines of its own.
    let by_verifier = said.split_once("-- BEGIN PROG LOAD LOG --").map(|(_, rest)| rest);
    let by_verifier = by_verifier.and_then(|rest| rest.split("-- END PROG LOAD LOG --").next()).unwrap_or_default();
    let lines: Vec<&str> =
        by_verifier.lines().filter(|line| !line.is_empty() && !line.starts_with("processed ")).collect();
    if !lines.is_empty() {
        let last = lines[lines.len().saturating_sub(LINES_TOLD)..].join("\n");
        return BpfError::Refused { program: name.to_owned(), last };
    }
    BpfError::system(format!("loading {name}"), io::Error::new(answer.kind(), first_words(said, &answer)))
}

/// The first thing that libbpf has said, which is nearest to the cause, or else what the system answered.
fn first_words(said: &str, answer: &io::Error) -> String {
    said.lines().find_map(|line| line.strip_prefix("libbpf: ")).map_or_else(|| answer.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_verifier_says_is_passed_on_without_what_libbpf_puts_around_it() {
        let log: String = (0..20).map(|line| format!("{line}: a line\n")).collect();
        let said = format!(
            "libbpf: prog 'x': BPF program load failed: -EACCES\nlibbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n{log}\
             processed 7 insns\n-- END PROG LOAD LOG --\nlibbpf: failed to load object 'x'\n"
        );
        let error = refusal("mine", &said, io::ErrorKind::PermissionDenied.into()).to_string();
        assert!(error.starts_with("the kernel refuses the program mine: 8: a line\n"), "{error}");
        assert!(error.ends_with("\n19: a line"), "{error}");
    }

    #[test]
    fn what_the_verifier_has_not_seen_is_refused_in_the_words_of_libbpf() {
        let said = "libbpf: map 'states': failed to create: -ENOMEM\nlibbpf: failed to load object 'x'\n";
        let error = refusal("mine", said, io::ErrorKind::OutOfMemory.into()).to_string();
        assert_eq!(error, "loading mine: map 'states': failed to create: -ENOMEM");
        let error = refusal("mine", said, io::ErrorKind::PermissionDenied.into());
        assert!(matches!(error, BpfError::NotPermitted { .. }));
    }
}
