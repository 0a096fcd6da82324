//! Loading a controller, and holding it.

use crate::cgroup;
use crate::changes::{Changes, Turn};
use crate::doctor;
use crate::error::BpfError;
use crate::libbpf::{self, Held};
use crate::link::Link;
use crate::loaded::{Loaded, all, check_name, registered_names};
use crate::pins::{check_pins, pin, pin_of, pin_of_chooser, remove_pins};
use crate::programs;
use crate::route::Route;
use crate::settings;
use sparelane_core::Rate;

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
    /// As the controller's note has it.
    process: Option<u32>,
    remarks: Vec<String>,
    registered: Option<Held>,
    /// What chooses it for cgroups.
    choosers: Vec<Held>,
}

/// Loads a controller.
///
/// The request is validated first; then the build, the privileges and the kernel. A mistake in the request is therefore
/// reported on any machine.
///
/// # Errors
/// The request is wrong, or this build, this process or the kernel lacks something. Nothing is left behind then.
pub fn load(request: &Request) -> Result<Holding, BpfError> {
    let program = programs::find(&request.program)?;
    check_name(&request.name)?;
    let mut links = Vec::new();
    for name in &request.interfaces {
        links.push(Link::named(name)?);
    }
    for path in &request.cgroups {
        cgroup::folder(path)?;
    }
    for destination in &request.routes {
        if let Some(index) = Route::find(destination)?.interface() {
            links.push(Link::numbered(index)?);
        }
    }
    let (given, set_rate) = without_line_rate(&request.settings)?;
    settings::Settings::parse(program.name, &(program.params)(), &given)?;
    let line_rate = set_rate.map_or_else(|| line_rate(&links, program.needs_line_rate), Ok)?;
    let prepared = program.prepared(&given, line_rate)?;
    if !doctor::CAN_LOAD {
        return Err(BpfError::NotBuilt);
    }
    if !doctor::may_load() {
        return Err(BpfError::NotPermitted { what: format!("loading {}", request.name) });
    }
    libbpf::Kernel::running()?.operations()?;
    if registered_names().contains(&request.name) {
        let found = all().unwrap_or_default().into_iter().find(|loaded| loaded.name == request.name);
        let by = match found {
            Some(Loaded { program: Some(program), .. }) => format!(" (the program {program})"),
            _ => " by someone else".to_owned(),
        };
        return Err(BpfError::NameTaken { name: request.name.clone(), by });
    }
    if request.is_pinned {
        check_pins()?;
    }
    // A process that was killed may have left a note: first everything as it was.
    let remarks = Changes::put_back(&request.name)?;
    let registered = libbpf::register(&prepared, &request.name)?;
    let process = (!request.is_pinned).then(std::process::id);
    let mut holding = Holding {
        name: request.name.clone(),
        is_pinned: false,
        process,
        remarks,
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

/// A key and its value, both as text.
type Setting = (String, String);

/// The settings without `line_rate`, and that rate if it is set.
fn without_line_rate(settings: &[Setting]) -> Result<(Vec<Setting>, Option<Rate>), BpfError> {
    let (rates, given): (Vec<_>, Vec<_>) = settings.iter().cloned().partition(|(key, _)| key == "line_rate");
    let Some((_, text)) = rates.first() else { return Ok((given, None)) };
    let refused = || BpfError::Setting(format!("line_rate = \"{text}\": allowed is a rate such as 10Gbps"));
    let rate = settings::rate(text).filter(|rate| rate.as_bps() >= 100_000).ok_or_else(refused)?;
    Ok((given, Some(rate)))
}

/// The rate of the first interface that knows its own. A program that does not need it gets 1 Gb/s if none does.
fn line_rate(links: &[Link], is_needed: bool) -> Result<Rate, BpfError> {
    let told = links.iter().find_map(Link::rate_bps).map(Rate::from_bps);
    let unknown = || {
        BpfError::Setting(
            "the rate of the line is unknown: name the interface (--interface), or set it (--set line_rate=1Gbps)"
                .to_owned(),
        )
    };
    match told {
        Some(rate) => Ok(rate),
        None if is_needed => Err(unknown()),
        None => Ok(Rate::from_gbps(1)),
    }
}

impl Holding {
    fn settle(&mut self, request: &Request, needs_route: bool, links: &[Link]) -> Result<(), BpfError> {
        let _turn = Turn::wait()?;
        let mut changes = Changes::none(self.process);
        changes.write(&self.name)?;
        if let (true, Some(registered)) = (request.is_pinned, &mut self.registered) {
            self.is_pinned = true;
            pin(registered, &pin_of(&self.name))?;
        }
        for (at, path) in request.cgroups.iter().enumerate() {
            let mut chooser = cgroup::choose(path, &self.name)?;
            if request.is_pinned {
                pin(&mut chooser, &pin_of_chooser(&self.name, at))?;
            }
            self.choosers.push(chooser);
        }
        if needs_route {
            for link in links {
                changes.set_single_packets(&self.name, link)?;
            }
        }
        for destination in &request.routes {
            changes.set_route(&self.name, destination, needs_route)?;
        }
        if request.is_default {
            changes.set_default(&self.name)?;
        }
        Ok(())
    }

    /// The controller's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is worth a word about what an earlier one of that name had left.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Whether it is loaded still: another process may have unloaded it.
    pub fn is_registered(&self) -> bool {
        self.registered.as_ref().is_some_and(Held::is_registered)
    }

    /// Leaves a pinned controller to itself.
    pub fn leave(mut self) {
        self.registered = None;
        self.choosers.clear();
        self.is_pinned = false;
        self.name.clear();
    }

    /// Removes the controller, and puts back what was changed for it. Returns what is worth a word.
    ///
    /// # Errors
    /// What the kernel refuses; the controller is gone all the same.
    pub fn unload(mut self) -> Result<Vec<String>, BpfError> {
        self.remove()
    }

    fn remove(&mut self) -> Result<Vec<String>, BpfError> {
        if self.name.is_empty() {
            return Ok(Vec::new());
        }
        // Where another process has unloaded it, the name and its note may be somebody else's by now.
        let is_ours = Changes::noted(&self.name).is_some_and(|noted| noted.process == self.process);
        // First what chooses the controller, then the controller.
        let put_back = if is_ours { Changes::put_back(&self.name) } else { Ok(Vec::new()) };
        self.choosers.drain(..).for_each(|chooser| chooser.detach());
        let unpinned = if self.is_pinned { remove_pins(&self.name) } else { Ok(()) };
        if let Some(registered) = self.registered.take() {
            registered.detach();
        }
        self.name.clear();
        put_back.and_then(|remarks| unpinned.map(|()| remarks))
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        // Nobody is left to hear of it; `unload` tells.
        let _ = self.remove();
    }
}
