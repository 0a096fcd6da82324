//! Loading a controller and keeping it registered.

use crate::cgroup;
use crate::changes::{Changes, RecordsLock};
use crate::doctor;
use crate::error::BpfError;
use crate::interface::Interface;
use crate::libbpf::{self, OwnedLink};
use crate::loaded::{Loaded, all, check_name, registered_names};
use crate::pins::{check_pins, pin, pin_of, pin_of_chooser, remove_pins};
use crate::programs;
use crate::route::Route;
use crate::settings;
use sparelane_core::Rate;

/// A controller to load, and the connections that are to use it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The name of the program.
    pub program: String,
    /// The name under which the controller is registered.
    pub name: String,
    /// Settings as keys and values; `line_rate` overrides the rate of the interface.
    pub settings: Vec<(String, String)>,
    /// Destinations of routes whose connections use the controller.
    pub routes: Vec<String>,
    /// Interfaces that send packets one by one if the program needs that; the first known rate is the line rate.
    pub interfaces: Vec<String>,
    /// Cgroups whose connections use the controller.
    pub cgroups: Vec<String>,
    /// True if the controller becomes the default of connections that request none.
    pub is_default: bool,
    /// True if the controller stays loaded after this process ends.
    pub is_pinned: bool,
}

/// A controller that this process has loaded. Dropping it unloads the controller.
#[derive(Debug)]
pub struct Registration {
    /// Empty once the controller is unloaded or left to its pins.
    name: String,
    is_pinned: bool,
    /// The process in the controller's undo record.
    process: Option<u32>,
    warnings: Vec<String>,
    registered: Option<OwnedLink>,
    /// The programs that choose the controller for cgroups.
    choosers: Vec<OwnedLink>,
}

/// Loads a controller.
///
/// The request is validated before the build, the privileges and the kernel are checked. A mistake in the request is
/// therefore reported on any machine.
///
/// # Errors
/// The request is invalid, or this build, this process or the kernel lacks a requirement. After an error, nothing is
/// left changed.
pub fn load(request: &Request) -> Result<Registration, BpfError> {
    let program = programs::find(&request.program)?;
    check_name(&request.name)?;
    // All names are resolved before anything is changed.
    let mut interfaces = Vec::new();
    for name in &request.interfaces {
        interfaces.push(Interface::named(name)?);
    }
    for path in &request.cgroups {
        cgroup::folder(path)?;
    }
    for destination in &request.routes {
        if let Some(index) = Route::find(destination)?.interface() {
            interfaces.push(Interface::with_index(index)?);
        }
    }
    let (given, set_rate) = without_line_rate(&request.settings)?;
    // Settings are parsed before the line rate is looked up, so that a wrong key is reported first.
    settings::Settings::parse(program.name, &(program.params)(), &given)?;
    let line_rate = set_rate.map_or_else(|| line_rate(&interfaces, program.needs_line_rate, request), Ok)?;
    let prepared = program.prepared(&given, line_rate)?;
    // The request is valid. From here on, errors are about this machine.
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
            // Loaded by another tool, or built into the kernel.
            _ => " by someone else".to_owned(),
        };
        return Err(BpfError::NameTaken { name: request.name.clone(), by });
    }
    if request.is_pinned {
        check_pins()?;
    }
    // A process that was killed may have left changes behind. They are undone first.
    let warnings = Changes::undo_all(&request.name)?;
    let registered = libbpf::register(&prepared, &request.name)?;
    let process = (!request.is_pinned).then(std::process::id);
    let mut registration = Registration {
        name: request.name.clone(),
        is_pinned: false,
        process,
        warnings,
        registered: Some(registered),
        choosers: Vec::new(),
    };
    // If a later step fails, the earlier ones are undone.
    match registration.apply(request, program.needs_route, &interfaces) {
        Ok(()) => Ok(registration),
        Err(error) => {
            registration.unload()?;
            Err(error)
        }
    }
}

/// A key and its value, both as text.
type Setting = (String, String);

/// Splits `line_rate` from the settings. Returns the other settings, and the rate if it is set.
fn without_line_rate(settings: &[Setting]) -> Result<(Vec<Setting>, Option<Rate>), BpfError> {
    let (rates, given): (Vec<_>, Vec<_>) = settings.iter().cloned().partition(|(key, _)| key == "line_rate");
    let Some((_, text)) = rates.first() else { return Ok((given, None)) };
    let refused = || BpfError::Setting(format!("line_rate = \"{text}\"; allowed: a rate such as 10Gbps"));
    let rate = settings::rate(text).filter(|rate| rate.as_bps() >= 100_000).ok_or_else(refused)?;
    Ok((given, Some(rate)))
}

/// Returns the rate of the first interface that reports one. Without interfaces, that of the default
/// route counts.
///
/// If none reports a rate, a program that does not need it gets 1 Gb/s.
fn line_rate(interfaces: &[Interface], is_needed: bool, request: &Request) -> Result<Rate, BpfError> {
    if !is_needed {
        return Ok(rate_of(interfaces).unwrap_or(Rate::from_gbps(1)));
    }
    let mut asked = interfaces.to_vec();
    if asked.is_empty() {
        asked.extend(["default", "::/0"].into_iter().filter_map(default_interface));
        // Both families often share an interface.
        asked.dedup();
    }
    rate_of(&asked).ok_or_else(|| {
        let names: Vec<&str> = asked.iter().map(|interface| interface.name.as_str()).collect();
        let why = match &names[..] {
            [] => "there is no default route".to_owned(),
            [name] => format!("the interface {name} reports none"),
            names => format!("the interfaces {} report none", names.join(", ")),
        };
        let command = request.command_with("--set line_rate=1Gbps");
        BpfError::Setting(format!("the line rate is unknown: {why}; set it to the line's rate, as in `{command}`"))
    })
}

fn rate_of(interfaces: &[Interface]) -> Option<Rate> {
    interfaces.iter().find_map(Interface::rate_bps).map(Rate::from_bps)
}

/// Returns the interface of a default route, if there is one.
fn default_interface(destination: &str) -> Option<Interface> {
    Route::find(destination).ok()?.interface().and_then(|index| Interface::with_index(index).ok())
}

impl Request {
    /// The command that makes this request, with one more option.
    fn command_with(&self, option: &str) -> String {
        let mut words = vec![format!("sparelane kernel load {}", self.program)];
        let lists = [("--route", &self.routes), ("--interface", &self.interfaces), ("--cgroup", &self.cgroups)];
        words.extend((self.name != self.program).then(|| format!("--name {}", self.name)));
        words.extend(self.settings.iter().map(|(key, text)| format!("--set {key}={text}")));
        words.extend(lists.iter().flat_map(|(option, list)| list.iter().map(move |text| format!("{option} {text}"))));
        words.extend(self.is_default.then(|| "--default".to_owned()));
        words.push(option.to_owned());
        words.join(" ")
    }
}

impl Registration {
    /// Pins the controller and assigns it to the requested cgroups, routes and default.
    fn apply(&mut self, request: &Request, needs_route: bool, interfaces: &[Interface]) -> Result<(), BpfError> {
        let _lock = RecordsLock::acquire()?;
        // An empty record comes first: it marks the controller as loaded by this process.
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
        // Interfaces come before routes: a connection over a new route must not send GSO packets.
        if needs_route {
            for interface in interfaces {
                changes.set_single_packets(&self.name, interface)?;
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

    /// Returns the controller's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns warnings about changes of an earlier controller of this name that could not be undone.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns whether the controller is still loaded; another process may have unloaded it.
    pub fn is_registered(&self) -> bool {
        self.registered.as_ref().is_some_and(OwnedLink::is_registered)
    }

    /// Keeps a pinned controller loaded when this value is dropped.
    pub fn keep(mut self) {
        self.registered = None;
        self.choosers.clear();
        self.is_pinned = false;
        self.name.clear();
    }

    /// Unloads the controller and undoes its changes. Returns warnings about state that could not be restored.
    ///
    /// # Errors
    /// The kernel refuses to undo a change. The controller is unloaded nevertheless.
    pub fn unload(mut self) -> Result<Vec<String>, BpfError> {
        self.remove()
    }

    fn remove(&mut self) -> Result<Vec<String>, BpfError> {
        if self.name.is_empty() {
            return Ok(Vec::new());
        }
        // If another process has unloaded the controller, the name and its record may belong to a new one by now.
        let is_ours = Changes::read(&self.name).is_some_and(|record| record.process == self.process);
        // Routes, defaults and cgroups that use the controller come first, and then the controller itself.
        let undone = if is_ours { Changes::undo_all(&self.name) } else { Ok(Vec::new()) };
        self.choosers.drain(..).for_each(|chooser| chooser.detach());
        let unpinned = if self.is_pinned { remove_pins(&self.name) } else { Ok(()) };
        if let Some(registered) = self.registered.take() {
            registered.detach();
        }
        self.name.clear();
        undone.and_then(|warnings| unpinned.map(|()| warnings))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Errors cannot be reported from here; `unload` returns them.
        let _ = self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_line_rate_is_reported_with_the_whole_command() {
        let lo = Interface { index: 1, name: "lo".to_owned(), gso_max_segs: 0 };
        let request = Request {
            program: "rtcp".to_owned(),
            name: "mine".to_owned(),
            settings: vec![("x_max".to_owned(), "0.5".to_owned())],
            interfaces: vec!["lo".to_owned()],
            is_default: true,
            ..Request::default()
        };
        // The loopback interface reports no rate.
        let error = line_rate(std::slice::from_ref(&lo), true, &request).expect_err("no rate").to_string();
        let command = "sparelane kernel load rtcp --name mine --set x_max=0.5 --interface lo --default";
        assert!(error.ends_with(&format!("as in `{command} --set line_rate=1Gbps`")), "{error}");
        assert!(error.contains("the interface lo reports none"), "{error}");
        assert_eq!(line_rate(&[lo], false, &request).expect("a rate"), Rate::from_gbps(1));
    }
}
