//! Loaded controllers. They are found in the kernel itself, so it does not matter which process loaded them.

use crate::cgroup;
use crate::changes::Changes;
use crate::error::BpfError;
use crate::libbpf;
use crate::pins::{pin_of, remove_pins};
use crate::programs;

/// A controller in the kernel.
#[derive(Debug)]
pub struct Loaded {
    /// The name.
    pub name: String,
    /// The name of its program; `None` if the controller is not of this crate, and `gone` if only its record is left.
    pub program: Option<&'static str>,
    /// True if the controller is pinned.
    pub is_pinned: bool,
    /// The ID of the process that holds it, if known.
    pub process: Option<u32>,
    /// Descriptions of the routes, interfaces and defaults that were changed for it.
    pub changed: Vec<String>,
    /// True if the controller is registered; false if only the undo record of a killed process is left.
    pub is_registered: bool,
    /// The run time and number of calls of each operation. They are zero unless the kernel counts them.
    pub cost: Vec<Cost>,
    /// The kernel's ID of its BPF link.
    link: Option<u32>,
    /// The kernel's IDs of its maps.
    pub(crate) maps: Vec<u32>,
}

/// A controller as the kernel describes it.
#[derive(Debug)]
pub(crate) struct Found {
    pub name: String,
    /// The name of its program, from the name of its table of operations; `None` if the controller is not of this
    /// crate.
    pub program: Option<String>,
    pub cost: Vec<Cost>,
    /// The kernel's IDs of its maps.
    pub maps: Vec<u32>,
    /// The kernel's ID of its BPF link.
    pub link: u32,
}

/// The cost of one operation since the controller was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The name of the operation, a member of `tcp_congestion_ops`.
    pub operation: String,
    /// The total run time in nanoseconds.
    pub run_time_ns: u64,
    /// The number of calls.
    pub calls: u64,
}

/// Returns all names that connections can request, including controllers that are built into the kernel.
pub(crate) fn registered_names() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Checks that the kernel can store this name of a controller.
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

/// Checks that a controller of this name is registered, or that its undo record exists. Needs no privileges.
///
/// # Errors
/// [`BpfError::BadName`] or [`BpfError::NotLoaded`].
pub(crate) fn check_is_known(name: &str) -> Result<(), BpfError> {
    check_name(name)?;
    if registered_names().iter().any(|other| other == name) || Changes::read(name).is_some() {
        return Ok(());
    }
    let recorded = Changes::names();
    let loaded = if recorded.is_empty() { "none".to_owned() } else { recorded.join(", ") };
    Err(BpfError::NotLoaded { name: name.to_owned(), loaded })
}

/// Unloads a controller that this process or another one has loaded, and undoes its changes.
///
/// Returns warnings about state that could not be restored.
///
/// # Errors
/// There is no controller of this name, it is not of this crate, or its changes belong to another network namespace. If
/// a change cannot be undone, the controller is unloaded nevertheless.
pub fn unload(name: &str) -> Result<Vec<String>, BpfError> {
    check_is_known(name)?;
    let mut everything = all()?;
    let Some(at) = everything.iter().position(|loaded| loaded.name == name && loaded.program.is_some()) else {
        let ours = everything.iter().filter(|loaded| loaded.program.is_some());
        let names: Vec<&str> = ours.map(|loaded| loaded.name.as_str()).collect();
        let loaded = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        if registered_names().iter().any(|other| other == name) {
            return Err(BpfError::Setting(format!(
                "{name} was not loaded by sparelane and cannot be removed; loaded: {loaded}"
            )));
        }
        return Err(BpfError::NotLoaded { name: name.to_owned(), loaded });
    };
    let loaded = everything.swap_remove(at);
    if let Some(record) = Changes::read(name) {
        record.check_namespace(name)?;
    }
    // Routes, defaults and cgroups that use the controller come first, and then the controller itself.
    let undone = Changes::undo_all(name);
    cgroup::remove_choosers(name)?;
    let unpinned = remove_pins(name);
    if let Some(link) = loaded.link {
        libbpf::detach(link);
    }
    // Detaching a controller's link works only since Linux 6.11.
    if registered_names().iter().any(|other| other == name) {
        let reason = "another process holds it, and kernels before 6.11 keep it until that process ends";
        return Err(BpfError::Setting(format!("{name} is still registered: {reason}")));
    }
    undone.and_then(|warnings| unpinned.map(|()| warnings))
}

/// Returns all controllers that BPF programs have registered through links, and those of which only a record is left.
///
/// # Errors
/// The kernel refuses, or it is too old to list controllers.
pub fn all() -> Result<Vec<Loaded>, BpfError> {
    let mut found = Vec::new();
    // The kernel does not know the holder and the changes: they come from the undo record.
    for Found { name, program, cost, maps, link } in libbpf::controllers()? {
        let program = program.and_then(|name| programs::find(&name).ok()).map(|program| program.name);
        let record = Changes::read(&name);
        found.push(Loaded {
            is_pinned: pin_of(&name).exists(),
            process: record.as_ref().and_then(|changes| changes.process),
            changed: record.map(|changes| changes.descriptions()).unwrap_or_default(),
            is_registered: true,
            link: Some(link),
            name,
            program,
            cost,
            maps,
        });
    }
    // A process that was killed has left changes that `unload` can undo.
    for name in Changes::names() {
        if !found.iter().any(|loaded| loaded.name == name) {
            let record = Changes::read(&name).unwrap_or_default();
            found.push(Loaded {
                name,
                program: Some("gone"),
                is_pinned: false,
                process: record.process,
                changed: record.descriptions(),
                is_registered: false,
                cost: Vec::new(),
                link: None,
                maps: Vec::new(),
            });
        }
    }
    Ok(found)
}
