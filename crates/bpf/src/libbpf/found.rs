//! What is in the kernel already, whoever put it there.

use super::kernel::Kernel;
use super::{ONLY_KEY, TABLE_PREFIX, answer, said};
use crate::error::BpfError;
use crate::loaded::{Cost, Found};
use libbpf_rs::query::{LinkInfo, LinkInfoIter, LinkTypeInfo, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, MapHandle, libbpf_sys};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// The maps of what a program tells, and of until when it does (`programs/watch.h`).
const SAMPLES: &str = "samples";
const WATCHED: &str = ".data.watch";

/// How many things in a row may be passed over that libbpf-rs cannot describe.
const MOST_PASSED_OVER: usize = 16;

/// All of a list of libbpf-rs. That ends at what cannot be described, and goes on behind it when it is asked again.
fn all_of<T>(mut list: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    std::iter::from_fn(move || (0..MOST_PASSED_OVER).find_map(|_| list.next()))
}

/// All links. Whatever disappears meanwhile is gone.
///
/// # Errors
/// Who may not look is told so, where libbpf-rs would show nothing: the kernel says so before it looks for a map.
fn links() -> Result<impl Iterator<Item = LinkInfo>, BpfError> {
    said();
    match MapHandle::from_map_id(0) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(BpfError::system("listing what is loaded", answer(&error)))
        }
        _ => Ok(all_of(LinkInfoIter::default())),
    }
}

/// All programs, with the numbers of their maps.
fn programs() -> Vec<ProgramInfo> {
    all_of(ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true))).collect()
}

/// The map of that number, and its only value.
fn value_of(map: u32) -> Option<(MapHandle, Vec<u8>)> {
    let map = MapHandle::from_map_id(map).ok()?;
    let value = map.lookup(&ONLY_KEY, MapFlags::ANY).ok()??;
    Some((map, value))
}

/// All controllers that BPF programs have registered by links.
///
/// # Errors
/// What the kernel refuses, or lacks.
pub fn controllers() -> Result<Vec<Found>, BpfError> {
    let operations = Kernel::running()?.operations()?;
    let links = links()?;
    let (mut found, programs) = (Vec::new(), programs());
    for link in links {
        let LinkTypeInfo::StructOps(of) = link.info else { continue };
        let Some((table, value)) = value_of(of.map_id) else { continue };
        // Operations of another kind, as of a scheduler, have another type.
        if table.info().map_or(true, |map| map.info.btf_vmlinux_value_type_id != operations.value_kind) {
            continue;
        }
        let name = value.get(operations.name_at..).and_then(|from| from.split(|&byte| byte == 0).next());
        let (mut cost, mut maps) = (Vec::new(), Vec::new());
        for (operation, at) in &operations.functions {
            // The kernel shows the number of a program where it has a function.
            let number = value.get(*at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes);
            let Some(program) = programs.iter().find(|program| Some(program.id) == number) else { continue };
            let (run_time_ns, calls) = (program.run_time_ns, program.run_cnt);
            cost.push(Cost { operation: operation.clone(), run_time_ns, calls });
            maps.extend(&program.map_ids);
        }
        maps.sort_unstable();
        maps.dedup();
        found.push(Found {
            name: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
            program: table.name().to_str().and_then(|title| title.strip_prefix(TABLE_PREFIX)).map(str::to_owned),
            cost,
            maps,
            link: link.id,
        });
    }
    Ok(found)
}

/// The numbers of the links that choose a controller for cgroups, with these settings.
///
/// # Errors
/// What the kernel refuses.
pub fn choosers(settings: &[u8]) -> Result<Vec<u32>, BpfError> {
    let has_them = |map: &u32| value_of(*map).is_some_and(|(_, value)| value == settings);
    let is_it = |program: &ProgramInfo| program.name == "choose" && program.map_ids.iter().any(has_them);
    let programs: Vec<u32> = programs().iter().filter(|program| is_it(program)).map(|program| program.id).collect();
    let of_cgroups = links()?.filter(|link| matches!(link.info, LinkTypeInfo::Cgroup(_)));
    Ok(of_cgroups.filter(|link| programs.contains(&link.prog_id)).map(|link| link.id).collect())
}

/// Ends what a link holds, whoever has it (controllers since Linux 6.11).
#[allow(unsafe_code, reason = "libbpf-rs describes all links, and hands out only those that are made here or pinned")]
pub fn detach(link: u32) {
    // SAFETY: these calls take a number each, and the kernel has made the descriptor for us alone.
    unsafe {
        let descriptor = libbpf_sys::bpf_link_get_fd_by_id(link);
        if descriptor >= 0 {
            let link = OwnedFd::from_raw_fd(descriptor);
            libbpf_sys::bpf_link_detach(link.as_raw_fd());
        }
    }
}

/// Two maps of a program: what it tells, and until when.
#[derive(Debug)]
pub struct Samples {
    told: MapHandle,
    until: MapHandle,
}

impl Samples {
    /// Those among the maps of these numbers.
    pub fn among(maps: &[u32]) -> Option<Samples> {
        let named = |name| {
            let mut opened = maps.iter().filter_map(|map| MapHandle::from_map_id(*map).ok());
            opened.find(|map| map.name() == name)
        };
        Some(Samples { told: named(SAMPLES)?, until: named(WATCHED)? })
    }

    /// Takes the oldest sample.
    ///
    /// # Errors
    /// The kernel says no.
    pub fn take(&self) -> Result<Option<Vec<u8>>, BpfError> {
        let failed = |error| BpfError::system("reading samples", answer(&error));
        self.told.lookup_and_delete(&[]).map_err(failed)
    }

    /// Has samples told until this time.
    ///
    /// # Errors
    /// The kernel says no.
    pub fn tell_until(&self, ns: u64) -> Result<(), BpfError> {
        let failed = |error| BpfError::system("writing a map", answer(&error));
        self.until.update(&ONLY_KEY, &ns.to_ne_bytes(), MapFlags::ANY).map_err(failed)
    }
}
