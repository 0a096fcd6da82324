//! Controllers that are loaded: found in the kernel itself, so that whoever loaded them does not matter.

use crate::cgroup;
use crate::changes::Changes;
use crate::error::BpfError;
use crate::kernel::Kernel;
use crate::netlink::Link;
use crate::object::{Registered, WATCH_PREFIX};
use crate::programs;
use crate::settings;
use crate::sys::{self, Attributes, Command};
use sparelane_core::Rate;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where what outlives a command is kept.
pub const PINS: &str = "/sys/fs/bpf";

const LINK_CGROUP: u32 = 3;
const LINK_STRUCT_OPS: u32 = 9;

/// What to load, and for whom.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The program.
    pub program: String,
    /// The name under which it is registered.
    pub name: String,
    /// Settings, by their keys; `line_rate` is that of the interface.
    pub settings: Vec<(String, String)>,
    /// Connections over these routes use it.
    pub routes: Vec<String>,
    /// These interfaces send packets as they are handed down, and the first tells the rate of the line.
    pub interfaces: Vec<String>,
    /// Connections of these cgroups use it.
    pub cgroups: Vec<String>,
    /// Connections that ask for no controller use it.
    pub is_default: bool,
    /// It stays when this process ends.
    pub is_pinned: bool,
}

/// A controller that this process has loaded.
#[derive(Debug)]
pub struct Holding {
    name: String,
    is_pinned: bool,
    changes: Changes,
    registered: Option<Registered>,
    /// What chooses it for cgroups.
    choosers: Vec<OwnedFd>,
}

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

fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=15).contains(&name.len()) && name.bytes().all(is_fit)
}

fn pin_of(name: &str) -> PathBuf {
    Path::new(PINS).join("sparelane").join(name)
}

/// Names of controllers have no hyphen: nothing else has this pin.
fn pin_of_chooser(name: &str, at: usize) -> PathBuf {
    Path::new(PINS).join("sparelane").join(format!("{name}-cgroup{at}"))
}

/// All names that connections can ask for, whoever registered them.
fn registered_names() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Loads a controller.
///
/// # Errors
/// Whatever is wrong with the request, or with the kernel. Nothing is left of it then.
pub fn load(request: &Request) -> Result<Holding, BpfError> {
    let program = programs::find(&request.program)?;
    if !is_name(&request.name) {
        return Err(BpfError::BadName { name: request.name.clone() });
    }
    let mut links = Vec::new();
    for name in &request.interfaces {
        links.push(Link::named(name)?);
    }
    for path in &request.cgroups {
        cgroup::folder(path)?;
    }
    for destination in &request.routes {
        if let Some(index) = crate::netlink::Route::find(destination)?.interface() {
            links.push(Link::numbered(index)?);
        }
    }
    let (given, line_rate) = line_rate(request, &links, program.needs_line_rate)?;
    let object = program.prepared(&given, line_rate)?;
    let kernel = Kernel::running()?;
    if registered_names().contains(&request.name) {
        let found = all(&kernel).unwrap_or_default().into_iter().find(|loaded| loaded.name == request.name);
        let by = match found {
            Some(Loaded { program: Some(program), .. }) => format!(" (the program {program})"),
            _ => " by someone else".to_owned(),
        };
        return Err(BpfError::NameTaken { name: request.name.clone(), by });
    }
    if request.is_pinned {
        check_pins()?;
    }
    // A note of a process that was killed: first everything as it was.
    if let Some(left) = Changes::noted(&request.name) {
        left.put_back(&request.name)?;
    }
    let registered = object.register(&request.name, &kernel)?;
    let process = (!request.is_pinned).then(std::process::id);
    let mut holding = Holding {
        name: request.name.clone(),
        is_pinned: false,
        changes: Changes::none(process),
        registered: Some(registered),
        choosers: Vec::new(),
    };
    match holding.settle(request, program.needs_route, &links) {
        Ok(()) => Ok(holding),
        Err(error) => {
            holding.unload()?;
            Err(error)
        }
    }
}

/// The settings without `line_rate`, and that rate: as set, or as the first interface says.
fn line_rate(request: &Request, links: &[Link], is_needed: bool) -> Result<(Vec<(String, String)>, Rate), BpfError> {
    let is_rate = |(key, _): &&(String, String)| key == "line_rate";
    let given: Vec<_> = request.settings.iter().filter(|pair| !is_rate(pair)).cloned().collect();
    if let Some((_, text)) = request.settings.iter().find(is_rate) {
        let refused = || BpfError::Setting(format!("line_rate = \"{text}\": allowed is a rate such as 10Gbps"));
        return Ok((given, settings::rate(text).filter(|rate| rate.as_bps() >= 100_000).ok_or_else(refused)?));
    }
    let told = links.iter().find_map(Link::rate_bps).map(Rate::from_bps);
    let unknown = || {
        BpfError::Setting(
            "the rate of the line is unknown: name the interface (--interface), or set it (--set line_rate=1Gbps)"
                .to_owned(),
        )
    };
    match told {
        Some(rate) => Ok((given, rate)),
        None if is_needed => Err(unknown()),
        None => Ok((given, Rate::from_gbps(1))),
    }
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

impl Holding {
    fn settle(&mut self, request: &Request, needs_route: bool, links: &[Link]) -> Result<(), BpfError> {
        self.changes.write(&self.name)?;
        if let (true, Some(registered)) = (request.is_pinned, &self.registered) {
            self.is_pinned = true;
            pin(registered.link.as_fd(), &pin_of(&self.name))?;
        }
        for (at, path) in request.cgroups.iter().enumerate() {
            let chooser = cgroup::choose(path, &self.name)?;
            if request.is_pinned {
                pin(chooser.as_fd(), &pin_of_chooser(&self.name, at))?;
            }
            self.choosers.push(chooser);
        }
        if needs_route {
            for link in links {
                self.changes.set_single_packets(&self.name, link)?;
            }
        }
        for destination in &request.routes {
            self.changes.set_route(&self.name, destination, needs_route)?;
        }
        if request.is_default {
            self.changes.set_default(&self.name)?;
        }
        Ok(())
    }

    /// The controller's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Leaves a pinned controller to itself.
    pub fn leave(mut self) {
        self.registered = None;
        self.choosers.clear();
        self.is_pinned = false;
        self.changes = Changes::default();
        self.name.clear();
    }

    /// Removes the controller, and puts back what was changed for it.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn unload(mut self) -> Result<(), BpfError> {
        self.remove()
    }

    fn remove(&mut self) -> Result<(), BpfError> {
        if self.name.is_empty() {
            return Ok(());
        }
        // First what chooses the controller, then the controller.
        let put_back = self.changes.put_back(&self.name);
        self.choosers.drain(..).for_each(|chooser| detach(chooser.as_fd()));
        if self.is_pinned {
            remove_pin(&self.name)?;
        }
        if let Some(registered) = self.registered.take() {
            detach(registered.link.as_fd());
        }
        self.name.clear();
        put_back
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        // Nobody is left to hear of it; `unload` tells.
        let _ = self.remove();
    }
}

fn pin(fd: BorrowedFd<'_>, pin: &Path) -> Result<(), BpfError> {
    let failed = |error| BpfError::system(format!("pinning {}", pin.display()), error);
    std::fs::create_dir_all(pin.parent().unwrap_or(Path::new(PINS))).map_err(failed)?;
    let path = [pin.as_os_str().as_bytes(), &[0]].concat();
    Attributes::new().input(0, &path).fd(8, fd).run(Command::Pin).map_err(failed)
}

/// Removes the pins of a controller and of what chooses it.
fn remove_pin(name: &str) -> Result<(), BpfError> {
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

/// Detaches a link, whoever holds it (Linux 6.11); closing the last descriptor does the same.
fn detach(link: BorrowedFd<'_>) {
    let _ = Attributes::new().fd(0, link).run(Command::LinkDetach);
}

/// Removes a controller that this process or another has loaded.
///
/// # Errors
/// There is none of that name, or it is somebody else's.
pub fn unload(name: &str) -> Result<(), BpfError> {
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
    if let Some(changes) = Changes::noted(name) {
        changes.put_back(name)?;
    }
    choosers_of(name)?.iter().for_each(|link| detach(link.as_fd()));
    remove_pin(name)?;
    if let Some(link) = &loaded.link {
        detach(link.as_fd());
    }
    drop(loaded);
    if registered_names().iter().any(|other| other == name) {
        let kept = "another process holds it, and kernels before 6.11 leave it there until that ends";
        return Err(BpfError::Setting(format!("{name} is registered still: {kept}")));
    }
    Ok(())
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
        let Ok(map) = Attributes::new().u32(0, word(&info, 16)).run_for_fd(Command::MapById) else { continue };
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
