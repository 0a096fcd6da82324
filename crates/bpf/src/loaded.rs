//! Controllers that are loaded: found in the kernel itself, so that whoever loaded them does not matter.

use crate::cgroup;
use crate::changes::Changes;
use crate::error::BpfError;
use crate::kernel::Kernel;
use crate::object::WATCH_PREFIX;
use crate::pins::{pin_of, remove_pins};
use crate::programs;
use crate::sys::{self, Attributes, Command};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const LINK_CGROUP: u32 = 3;
const LINK_STRUCT_OPS: u32 = 9;
/// Where the description of a link of operations names their map.
const MAP_OF_LINK: usize = 16;

/// A controller in the kernel.
#[derive(Debug)]
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// Which program it is; none for one of somebody else.
    pub program: Option<&'static str>,
    /// Whether it is pinned.
    pub is_pinned: bool,
    /// The process that holds it, where that is known.
    pub process: Option<u32>,
    /// What was changed for it, in words.
    pub changed: Vec<String>,
    /// Whether it is registered still: a note of one that is gone may be left.
    pub is_registered: bool,
    /// The time that the programs took and how often they ran, where the kernel counts that.
    pub cost: Vec<Cost>,
    link: Option<OwnedFd>,
    /// Its maps.
    pub maps: Vec<(String, OwnedFd)>,
}

/// What one operation has cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The operation.
    pub operation: String,
    /// Time in all.
    pub run_time_ns: u64,
    /// Calls.
    pub calls: u64,
}

/// All names that connections can ask for, whoever registered them.
pub(crate) fn registered_names() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Detaches a link, whoever holds it (Linux 6.11); closing the last descriptor does the same.
pub(crate) fn detach(link: BorrowedFd<'_>) {
    let _ = Attributes::new().fd(0, link).run(Command::LinkDetach);
}

/// Whether a link of operations still holds them: nobody has detached it.
pub(crate) fn is_attached(link: BorrowedFd<'_>) -> bool {
    sys::info(link).is_ok_and(|info| word(&info, MAP_OF_LINK) != 0)
}

/// Removes a controller that this process or another has loaded, and puts back what was changed for it. Returns what is worth a
/// word.
///
/// # Errors
/// There is none of that name, or it is somebody else's, or its changes are in another network namespace. Where something cannot
/// be put back it is removed all the same.
pub fn unload(name: &str) -> Result<Vec<String>, BpfError> {
    let kernel = Kernel::running()?;
    let mut everything = all(&kernel)?;
    let Some(at) = everything.iter().position(|loaded| loaded.name == name && loaded.program.is_some()) else {
        let ours = everything.iter().filter(|loaded| loaded.program.is_some());
        let names: Vec<&str> = ours.map(|loaded| loaded.name.as_str()).collect();
        let loaded = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        if registered_names().iter().any(|other| other == name) {
            return Err(BpfError::Setting(format!(
                "{name} is not ours: whoever loaded it can remove it; ours: {loaded}"
            )));
        }
        return Err(BpfError::NotLoaded { name: name.to_owned(), loaded });
    };
    let loaded = everything.swap_remove(at);
    if let Some(noted) = Changes::noted(name) {
        noted.check_place(name)?;
    }
    let put_back = Changes::put_back(name);
    choosers_of(name)?.iter().for_each(|link| detach(link.as_fd()));
    let unpinned = remove_pins(name);
    if let Some(link) = &loaded.link {
        detach(link.as_fd());
    }
    drop(loaded);
    if registered_names().iter().any(|other| other == name) {
        let kept = "another process holds it, and kernels before 6.11 leave it there until that ends";
        return Err(BpfError::Setting(format!("{name} is registered still: {kept}")));
    }
    put_back.and_then(|remarks| unpinned.map(|()| remarks))
}

/// All links of a kind, with what the kernel says of each. Whatever disappears meanwhile is gone.
fn links(kind: u32) -> Result<Vec<(OwnedFd, Vec<u8>)>, BpfError> {
    let (mut found, mut id) = (Vec::new(), 0);
    loop {
        id = match Attributes::new().u32(0, id).run_for_identity(Command::NextLink) {
            Ok(next) => next,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(BpfError::system("listing what is loaded", error)),
        };
        let link = Attributes::new().u32(0, id).run_for_fd(Command::LinkById);
        if let Ok(link) = link
            && let Ok(info) = sys::info(link.as_fd())
            && word(&info, 0) == kind
        {
            found.push((link, info));
        }
    }
}

/// The links of what chooses a controller for cgroups.
fn choosers_of(name: &str) -> Result<Vec<OwnedFd>, BpfError> {
    let is_chooser = |info: &[u8]| {
        let program = Attributes::new().u32(0, word(info, 8)).run_for_fd(Command::ProgramById).ok();
        let info = program.and_then(|program| sys::info(program.as_fd()).ok());
        info.is_some_and(|info| crate::elf::text_at(&info, 64) == Some(&cgroup::title(name)))
    };
    Ok(links(LINK_CGROUP)?.into_iter().filter(|(_, info)| is_chooser(info)).map(|(link, _)| link).collect())
}

/// All controllers that BPF programs have registered by links, and notes of those that are gone.
///
/// # Errors
/// What the kernel refuses.
pub fn all(kernel: &Kernel) -> Result<Vec<Loaded>, BpfError> {
    let operations = kernel.operations()?;
    let mut found = Vec::new();
    for (link, info) in links(LINK_STRUCT_OPS)? {
        let Ok(map) = Attributes::new().u32(0, word(&info, MAP_OF_LINK)).run_for_fd(Command::MapById) else { continue };
        let Ok(of_map) = sys::info(map.as_fd()) else { continue };
        // Operations of another kind, as of a scheduler, have another size or type.
        if word(&of_map, 12) != operations.value_bytes || word(&of_map, 44) != operations.value_kind {
            continue;
        }
        let Ok(value) = crate::object::read(map.as_fd(), operations.value_bytes as usize) else { continue };
        let Some(name_at) = operations.member("name").map(|member| (operations.data_offset + member.offset) as usize)
        else {
            continue;
        };
        let name = crate::elf::text_at(&value, name_at).unwrap_or_default().to_owned();
        let functions = operations.functions();
        let places = functions.iter().map(|member| (&member.name, (operations.data_offset + member.offset) as usize));
        let ids = places.map(|(operation, at)| (operation, word(&value, at))).filter(|(_, id)| *id != 0);
        let (mut cost, mut maps) = (Vec::new(), Vec::new());
        for (operation, id) in ids {
            let Ok(program) = Attributes::new().u32(0, id).run_for_fd(Command::ProgramById) else { continue };
            let Ok(info) = sys::info(program.as_fd()) else { continue };
            let (run_time_ns, calls) = (long(&info, 192), long(&info, 200));
            cost.push(Cost { operation: operation.clone(), run_time_ns, calls });
            maps.extend(maps_of(program.as_fd()));
        }
        let program = maps.iter().find_map(|(map, _): &(String, OwnedFd)| map.strip_prefix(WATCH_PREFIX));
        let program = program.and_then(|name| programs::find(name).ok()).map(|program| program.name);
        let noted = Changes::noted(&name);
        found.push(Loaded {
            is_pinned: pin_of(&name).exists(),
            process: noted.as_ref().and_then(|changes| changes.process),
            changed: noted.map(|changes| changes.in_words()).unwrap_or_default(),
            is_registered: true,
            link: Some(link),
            name,
            program,
            cost,
            maps,
        });
    }
    for name in Changes::names() {
        if !found.iter().any(|loaded| loaded.name == name) {
            let noted = Changes::noted(&name).unwrap_or_default();
            found.push(Loaded {
                name,
                program: Some("gone"),
                is_pinned: false,
                process: noted.process,
                changed: noted.in_words(),
                is_registered: false,
                cost: Vec::new(),
                link: None,
                maps: Vec::new(),
            });
        }
    }
    Ok(found)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    crate::elf::u32_at(bytes, at).unwrap_or_default()
}

fn long(bytes: &[u8], at: usize) -> u64 {
    crate::elf::u64_at(bytes, at).unwrap_or_default()
}

/// The maps of a program, by name.
fn maps_of(program: BorrowedFd<'_>) -> Vec<(String, OwnedFd)> {
    let mut maps = Vec::new();
    for id in sys::maps_of(program).unwrap_or_default() {
        let Ok(map) = Attributes::new().u32(0, id).run_for_fd(Command::MapById) else { continue };
        if let Ok(info) = sys::info(map.as_fd()) {
            maps.push((crate::elf::text_at(&info, 24).unwrap_or_default().to_owned(), map));
        }
    }
    maps
}
