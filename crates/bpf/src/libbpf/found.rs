//! Controllers, links and maps that are already in the kernel, including those of other processes.

use super::kernel::Kernel;
use super::{ONLY_KEY, TABLE_PREFIX, io_error, take_log};
use crate::error::BpfError;
use crate::loaded::{Cost, Found};
use libbpf_rs::query::{LinkInfo, LinkInfoIter, LinkTypeInfo, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, MapHandle, libbpf_sys};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// The names of a program's maps of samples and of the end of the lease (`programs/watch.h`).
const SAMPLES: &str = "samples";
const WATCHED: &str = ".data.watch";

/// The largest number of consecutive objects to skip that libbpf-rs cannot describe.
const MAX_SKIPPED: usize = 16;

/// Returns all items of an iterator of libbpf-rs.
///
/// Such an iterator returns `None` at an object that it cannot describe, and continues behind it on the next call.
fn all_of<T>(mut list: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    std::iter::from_fn(move || (0..MAX_SKIPPED).find_map(|_| list.next()))
}

/// Returns all BPF links. Links that disappear during the call are left out.
///
/// # Errors
/// The process lacks privileges. libbpf-rs would return an empty list, so the lookup of a map tests them first: the
/// kernel checks privileges before it looks for the map.
fn links() -> Result<impl Iterator<Item = LinkInfo>, BpfError> {
    take_log();
    match MapHandle::from_map_id(0) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(BpfError::system("listing what is loaded", io_error(&error)))
        }
        _ => Ok(all_of(LinkInfoIter::default())),
    }
}

/// Returns all BPF programs, with the IDs of their maps.
fn programs() -> Vec<ProgramInfo> {
    all_of(ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true))).collect()
}

/// Opens a map with a single value. Returns it with that value.
fn open_with_value(map: u32) -> Option<(MapHandle, Vec<u8>)> {
    let map = MapHandle::from_map_id(map).ok()?;
    let value = map.lookup(&ONLY_KEY, MapFlags::ANY).ok()??;
    Some((map, value))
}

/// Returns all controllers that BPF programs have registered through links.
///
/// # Errors
/// The kernel refuses, or it is too old.
pub fn controllers() -> Result<Vec<Found>, BpfError> {
    let operations = Kernel::running()?.operations()?;
    let links = links()?;
    let (mut found, programs) = (Vec::new(), programs());
    for link in links {
        let LinkTypeInfo::StructOps(of) = link.info else { continue };
        let Some((table, value)) = open_with_value(of.map_id) else { continue };
        // Tables of other operations, such as those of a scheduler, have another type.
        if table.info().map_or(true, |map| map.info.btf_vmlinux_value_type_id != operations.value_type) {
            continue;
        }
        let name = value.get(operations.name_offset..).and_then(|from| from.split(|&byte| byte == 0).next());
        let (mut cost, mut maps) = (Vec::new(), Vec::new());
        for (operation, at) in &operations.functions {
            // For a function, the kernel's value contains the ID of the program that implements it.
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

/// Returns the IDs of the links to cgroups whose `choose` program has these settings.
///
/// # Errors
/// The kernel refuses.
pub fn choosers(settings: &[u8]) -> Result<Vec<u32>, BpfError> {
    let has_settings = |map: &u32| open_with_value(*map).is_some_and(|(_, value)| value == settings);
    let is_chooser = |program: &ProgramInfo| program.name == "choose" && program.map_ids.iter().any(has_settings);
    let programs: Vec<u32> =
        programs().iter().filter(|program| is_chooser(program)).map(|program| program.id).collect();
    let of_cgroups = links()?.filter(|link| matches!(link.info, LinkTypeInfo::Cgroup(_)));
    Ok(of_cgroups.filter(|link| programs.contains(&link.prog_id)).map(|link| link.id).collect())
}

/// Detaches a link, even if another process holds it (for controllers since Linux 6.11).
#[allow(unsafe_code, reason = "libbpf-rs can describe all links, but open only own and pinned ones")]
pub fn detach(link: u32) {
    // SAFETY: both calls take plain integers, and the new descriptor belongs to nothing else.
    unsafe {
        let descriptor = libbpf_sys::bpf_link_get_fd_by_id(link);
        if descriptor >= 0 {
            let link = OwnedFd::from_raw_fd(descriptor);
            libbpf_sys::bpf_link_detach(link.as_raw_fd());
        }
    }
}

/// The two telemetry maps of a program: the queue of samples, and the end of the lease.
#[derive(Debug)]
pub struct Samples {
    queue: MapHandle,
    lease_end: MapHandle,
}

impl Samples {
    /// Finds both maps among those with these IDs.
    pub fn find_in(maps: &[u32]) -> Option<Samples> {
        let named = |name| {
            let mut opened = maps.iter().filter_map(|map| MapHandle::from_map_id(*map).ok());
            opened.find(|map| map.name() == name)
        };
        Some(Samples { queue: named(SAMPLES)?, lease_end: named(WATCHED)? })
    }

    /// Removes and returns the oldest sample.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&self) -> Result<Option<Vec<u8>>, BpfError> {
        let failed = |error| BpfError::system("reading samples", io_error(&error));
        self.queue.lookup_and_delete(&[]).map_err(failed)
    }

    /// Makes the program record samples until this time, in nanoseconds of the monotonic clock.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn record_until(&self, ns: u64) -> Result<(), BpfError> {
        let failed = |error| BpfError::system("writing a map", io_error(&error));
        self.lease_end.update(&ONLY_KEY, &ns.to_ne_bytes(), MapFlags::ANY).map_err(failed)
    }
}
