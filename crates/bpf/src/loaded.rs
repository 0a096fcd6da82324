//! Controllers that are loaded: found in the kernel itself, so that whoever loaded them does not matter.

use crate::cgroup;
use crate::changes::Changes;
use crate::error::BpfError;
use crate::libbpf;
use crate::pins::{pin_of, remove_pins};
use crate::programs;

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
    /// The numbers of its link and of its maps in the kernel.
    link: Option<u32>,
    pub(crate) maps: Vec<u32>,
}

/// A controller as the kernel shows it.
#[derive(Debug)]
pub(crate) struct Found {
    pub name: String,
    /// What its table says of the program; none for one of somebody else.
    pub program: Option<String>,
    pub cost: Vec<Cost>,
    /// As in [`Loaded`].
    pub maps: Vec<u32>,
    pub link: u32,
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

/// Checks that the kernel can hold a controller of this name.
///
/// # Errors
/// [`BpfError::BadName`] if it cannot.
pub(crate) fn check_name(name: &str) -> Result<(), BpfError> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if (1..=15).contains(&name.len()) && name.bytes().all(is_fit) {
        return Ok(());
    }
    Err(BpfError::BadName { name: name.to_owned() })
}

/// Checks that a controller of this name is loaded, or was and left a note of its changes. Needs no privileges.
///
/// # Errors
/// [`BpfError::BadName`] or [`BpfError::NotLoaded`].
pub(crate) fn check_is_known(name: &str) -> Result<(), BpfError> {
    check_name(name)?;
    if registered_names().iter().any(|other| other == name) || Changes::noted(name).is_some() {
        return Ok(());
    }
    let noted = Changes::names();
    let loaded = if noted.is_empty() { "none".to_owned() } else { noted.join(", ") };
    Err(BpfError::NotLoaded { name: name.to_owned(), loaded })
}

/// Removes a controller that this process or another has loaded, and puts back what was changed for it. Returns what is worth a
/// word.
///
/// # Errors
/// There is none of that name, or it is somebody else's, or its changes are in another network namespace. Where something cannot
/// be put back it is removed all the same.
pub fn unload(name: &str) -> Result<Vec<String>, BpfError> {
    check_is_known(name)?;
    let mut everything = all()?;
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
    cgroup::choose_no_more(name)?;
    let unpinned = remove_pins(name);
    if let Some(link) = loaded.link {
        libbpf::detach(link);
    }
    if registered_names().iter().any(|other| other == name) {
        let kept = "another process holds it, and kernels before 6.11 leave it there until that ends";
        return Err(BpfError::Setting(format!("{name} is registered still: {kept}")));
    }
    put_back.and_then(|remarks| unpinned.map(|()| remarks))
}

/// All controllers that BPF programs have registered by links, and notes of those that are gone.
///
/// # Errors
/// What the kernel refuses.
pub fn all() -> Result<Vec<Loaded>, BpfError> {
    let mut found = Vec::new();
    for Found { name, program, cost, maps, link } in libbpf::controllers()? {
        let program = program.and_then(|name| programs::find(&name).ok()).map(|program| program.name);
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
