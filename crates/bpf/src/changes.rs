//! Undo records: the routes, interfaces and defaults that loading a controller changes on a host.
//!
//! Each change is recorded before it is made. The record of a controller is a file, in a folder that does not survive a
//! restart, as the changes do not either. If a process is killed, its records remain, and unloading the controller
//! restores the previous state from them.
//!
//! Several controllers can be set on one route, or as the default, one after another, and they can be unloaded in any
//! order. The administrator can change the same objects in the meantime. A value is therefore restored only if it is
//! still the one that the controller has set. If another controller of this crate was set later, its record takes over
//! the value from before both.

use crate::error::BpfError;
use crate::interface::Interface;
use crate::loaded::registered_names;
use crate::namespace::Namespace;
use crate::route::Route;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The folder of the records.
pub const FOLDER: &str = "/run/sparelane/linux";

const DEFAULT_CONTROLLER: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Controllers that every kernel has, in the kernel's own order of preference. One of them becomes the default if the
/// previous default is no longer registered.
const BUILT_IN: [&str; 2] = ["cubic", "reno"];

/// The value of `gso_max_segs` with which an interface sends each packet on its own, so that gaps between packets are
/// kept.
const SINGLE_PACKETS: u32 = 1;

/// One changed object, with its state before the change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// A route as it was; `measured` if exact arrival times were enabled on it.
    Route { was: Route, measured: bool },
    /// An interface and its limit of packets per GSO packet.
    Interface { name: String, gso_max_segs: u32 },
    /// The default controller, for connections that request none.
    Default(String),
}

impl Change {
    /// Returns the controller that the change replaced, if any.
    fn replaced(&self) -> Option<String> {
        match self {
            Change::Route { was, .. } => was.controller(),
            Change::Interface { .. } => None,
            Change::Default(controller) => Some(controller.clone()),
        }
    }

    /// Returns whether both changed the same object.
    fn has_target_of(&self, other: &Change) -> bool {
        match (self, other) {
            (Change::Route { was, .. }, Change::Route { was: other, .. }) => was.has_key_of(other),
            (Change::Interface { name, .. }, Change::Interface { name: other, .. }) => name == other,
            (Change::Default(_), Change::Default(_)) => true,
            _ => false,
        }
    }

    /// Merges this change with an earlier one of the same object, as if both had been made at once.
    fn merged_with(&self, earlier: &Change) -> Change {
        match (self, earlier) {
            (Change::Route { measured, .. }, Change::Route { was, measured: before }) => {
                Change::Route { was: was.clone(), measured: *measured || *before }
            }
            _ => earlier.clone(),
        }
    }

    /// Merges the change with earlier ones of controllers that are gone without having restored anything.
    ///
    /// `others` are the records of other controllers, by name.
    fn skipping_dead_owners(&self, others: &[(String, Changes)]) -> Change {
        let mut change = self.clone();
        // Each step follows another record, so the number of records bounds the loop even if they form a cycle.
        for _ in others {
            let Some(owner) = change.replaced().filter(|owner| !is_registered(owner)) else { break };
            let record = others.iter().find(|(other, _)| *other == owner);
            let earlier =
                record.and_then(|(_, record)| record.changes.iter().find(|earlier| earlier.has_target_of(&change)));
            let Some(earlier) = earlier else { break };
            change = change.merged_with(earlier);
        }
        change
    }

    /// Describes the changed object in an English phrase.
    fn describe(&self) -> String {
        match self {
            Change::Route { was, .. } => format!("the route to {}", was.destination()),
            Change::Interface { name, .. } => format!("interface {name}"),
            Change::Default(controller) => format!("the default controller (it was {controller})"),
        }
    }
}

/// The undo record of a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The process that holds the controller; `None` if the controller is pinned.
    pub process: Option<u32>,
    /// The network namespace of the changes.
    pub namespace: Namespace,
    changes: Vec<Change>,
}

/// A lock that excludes other processes from the records and from the objects that they describe; dropping it unlocks.
#[derive(Debug)]
pub struct RecordsLock {
    _folder: Flock<File>,
}

impl RecordsLock {
    /// Waits until no other process holds the lock, and takes it.
    ///
    /// # Errors
    /// The folder of the records cannot be created or opened.
    pub fn acquire() -> Result<RecordsLock, BpfError> {
        let failed = |error| BpfError::system(format!("opening {FOLDER}"), error);
        std::fs::create_dir_all(FOLDER).map_err(failed)?;
        let mut folder = File::open(FOLDER).map_err(failed)?;
        loop {
            match Flock::lock(folder, FlockArg::LockExclusive) {
                Ok(folder) => return Ok(RecordsLock { _folder: folder }),
                // A signal has interrupted the wait.
                Err((again, Errno::EINTR)) => folder = again,
                Err((_, error)) => return Err(failed(error.into())),
            }
        }
    }
}

fn record_path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn is_registered(name: &str) -> bool {
    registered_names().iter().any(|other| other == name)
}

impl Changes {
    /// Returns a record without changes, for the current network namespace.
    pub fn none(process: Option<u32>) -> Changes {
        Changes { process, namespace: Namespace::current(), changes: Vec::new() }
    }

    /// Reads the record of a controller, if there is one.
    pub fn read(name: &str) -> Option<Changes> {
        std::fs::read_to_string(record_path(name)).ok().map(|text| Changes::from_text(&text))
    }

    fn from_text(text: &str) -> Changes {
        let mut found = Changes::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            match fields[..] {
                ["process", number] => found.process = number.parse().ok(),
                ["namespace", inode, cookie] => {
                    let number = |field: &str| field.parse().unwrap_or_default();
                    found.namespace = Namespace { inode: number(inode), cookie: number(cookie) };
                }
                ["route", digits, mode] => {
                    let was = Route::from_hex(digits);
                    found.changes.extend(was.map(|was| Change::Route { was, measured: mode == "measured" }));
                }
                ["link", name, segments] => {
                    let gso_max_segs = segments.parse().unwrap_or_default();
                    found.changes.push(Change::Interface { name: name.to_owned(), gso_max_segs });
                }
                ["default", controller] => found.changes.push(Change::Default(controller.to_owned())),
                _ => {}
            }
        }
        found
    }

    fn to_text(&self) -> String {
        let mut text = format!("namespace {} {}\n", self.namespace.inode, self.namespace.cookie);
        text += &self.process.map(|number| format!("process {number}\n")).unwrap_or_default();
        for change in &self.changes {
            text += &match change {
                Change::Route { was, measured } => {
                    format!("route {} {}\n", was.to_hex(), if *measured { "measured" } else { "unmeasured" })
                }
                Change::Interface { name, gso_max_segs } => format!("link {name} {gso_max_segs}\n"),
                Change::Default(controller) => format!("default {controller}\n"),
            };
        }
        text
    }

    /// Returns the names of all controllers that have a record, sorted.
    pub fn names() -> Vec<String> {
        let files = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let mut names: Vec<String> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Returns the records of all controllers but `name` that belong to the same network namespace.
    fn others(&self, name: &str) -> Vec<(String, Changes)> {
        let others = Changes::names().into_iter().filter(|other| other != name);
        let records = others.filter_map(|other| Changes::read(&other).map(|record| (other, record)));
        records.filter(|(_, record)| record.namespace == self.namespace).collect()
    }

    /// Writes the record of the controller `name`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, name: &str) -> Result<(), BpfError> {
        let failed = |error| BpfError::system(format!("writing {}", record_path(name).display()), error);
        std::fs::create_dir_all(FOLDER).map_err(failed)?;
        std::fs::write(record_path(name), self.to_text()).map_err(failed)
    }

    /// Records a change and makes it. If it fails, the record drops it again.
    fn record_and_apply(
        &mut self,
        name: &str,
        was: Change,
        apply: impl FnOnce() -> Result<(), BpfError>,
    ) -> Result<(), BpfError> {
        self.changes.push(was);
        self.write(name)?;
        apply().inspect_err(|_| {
            self.changes.pop();
            // If this fails too, the record contains a change that was not made. Undoing it later has no effect.
            let _ = self.write(name);
        })
    }

    /// Makes connections over a route use the controller `name`. With `measures`, receivers also report exact arrival
    /// times.
    ///
    /// # Errors
    /// There is no such route, or the kernel refuses.
    pub fn set_route(&mut self, name: &str, destination: &str, measures: bool) -> Result<(), BpfError> {
        let was = Route::find(destination)?;
        // A request may name the same route twice.
        if was.controller().as_deref() == Some(name) {
            return Ok(());
        }
        let change = Change::Route { was: was.clone(), measured: measures };
        self.record_and_apply(name, change, || was.with(name, measures).put())
    }

    /// Makes an interface send packets one by one instead of in GSO batches.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_single_packets(&mut self, name: &str, interface: &Interface) -> Result<(), BpfError> {
        let was = Change::Interface { name: interface.name.clone(), gso_max_segs: interface.gso_max_segs };
        if interface.gso_max_segs != SINGLE_PACKETS {
            return self.record_and_apply(name, was, || interface.set_gso_max_segs(SINGLE_PACKETS));
        }
        // If another controller has set it, this record takes over the original value: the last one to be unloaded
        // restores it.
        let others = self.others(name);
        let by_another = others.iter().flat_map(|(_, other)| &other.changes).find(|change| change.has_target_of(&was));
        by_another.map_or(Ok(()), |change| self.record_and_apply(name, change.clone(), || Ok(())))
    }

    /// Makes the controller `name` the default of this network namespace, for connections that request none.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_default(&mut self, name: &str) -> Result<(), BpfError> {
        let was = Change::Default(default_controller()?);
        self.record_and_apply(name, was, || set_default_controller(name))
    }

    /// Checks that the changes of the controller `name` can be undone from the current network namespace.
    ///
    /// # Errors
    /// [`BpfError::OtherNamespace`] if they belong to another namespace that still exists.
    pub fn check_namespace(&self, name: &str) -> Result<(), BpfError> {
        let is_here = self.changes.is_empty() || self.namespace == Namespace::current();
        if is_here || !self.namespace.exists() {
            return Ok(());
        }
        Err(BpfError::OtherNamespace { name: name.to_owned(), namespace: self.namespace.inode })
    }

    /// Undoes the changes of the controller `name`, last change first, and removes its record.
    ///
    /// Objects that were changed again since are left alone. Returns warnings about state that could not be restored
    /// because it no longer exists.
    ///
    /// # Errors
    /// The changes belong to another network namespace, or the kernel refuses one of them; all others are undone. The
    /// record is kept.
    pub fn undo_all(name: &str) -> Result<Vec<String>, BpfError> {
        let _lock = RecordsLock::acquire()?;
        let Some(record) = Changes::read(name) else { return Ok(Vec::new()) };
        record.check_namespace(name)?;
        let mut warnings = Vec::new();
        if record.changes.is_empty() || record.namespace == Namespace::current() {
            let mut outcome = Ok(());
            for change in record.changes.iter().rev() {
                outcome = outcome.and(record.undo(name, change, &mut warnings));
            }
            outcome?;
        } else {
            let (changed, number) = (record.descriptions().join(", "), record.namespace.inode);
            warnings.push(format!("the network namespace ({number}) in which {name} had changed {changed} is gone"));
        }
        match std::fs::remove_file(record_path(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(BpfError::system(format!("removing {}", record_path(name).display()), error))
            }
            _ => Ok(warnings),
        }
    }

    fn undo(&self, name: &str, change: &Change, warnings: &mut Vec<String>) -> Result<(), BpfError> {
        let mut others = self.others(name);
        for (other, record) in &mut others {
            if record.inherit(name, change) {
                record.write(other)?;
            }
        }
        match change.skipping_dead_owners(&others) {
            Change::Route { was, measured } => undo_route(name, &was, measured, warnings),
            Change::Interface { name, gso_max_segs } => {
                let mut set_by_others = others.iter().flat_map(|(_, record)| &record.changes);
                let is_needed = set_by_others.any(|other| other.has_target_of(change));
                if is_needed { Ok(()) } else { undo_interface(&name, gso_max_segs) }
            }
            Change::Default(was) => undo_default(name, &was, warnings),
        }
    }

    /// Merges `change` of the controller `name` into the changes of this record that replaced it. Returns whether there
    /// were any.
    fn inherit(&mut self, name: &str, change: &Change) -> bool {
        let has_replaced = |own: &&mut Change| own.has_target_of(change) && own.replaced().as_deref() == Some(name);
        let mut is_changed = false;
        for own in self.changes.iter_mut().filter(has_replaced) {
            *own = own.merged_with(change);
            is_changed = true;
        }
        is_changed
    }

    /// Describes each changed object in an English phrase.
    pub fn descriptions(&self) -> Vec<String> {
        self.changes.iter().map(Change::describe).collect()
    }
}

fn undo_route(name: &str, was: &Route, measured: bool, warnings: &mut Vec<String>) -> Result<(), BpfError> {
    let (current, as_set) = (was.current()?, was.with(name, measured));
    let is_ours = |route: &&Route| match route.controller() {
        Some(controller) => controller == name,
        // The kernel hides a controller that is gone. The rest of the route shows whether it is the one that was set.
        None => !is_registered(name) && route.equals_except_controller(&as_set),
    };
    let Some(route) = current.iter().find(is_ours) else { return Ok(()) };
    let replaced = was.controller();
    let outcome = route.without(was, measured, replaced.as_deref()).put();
    match replaced {
        // A route cannot name a controller that is gone: restore the rest of it.
        Some(gone) if outcome.is_err() && !is_registered(&gone) => {
            route.without(was, measured, None).put()?;
            let destination = was.destination();
            warnings.push(format!(
                "the route to {destination} names no controller: {gone}, which it named before, is gone"
            ));
            Ok(())
        }
        _ => outcome,
    }
}

fn undo_interface(name: &str, gso_max_segs: u32) -> Result<(), BpfError> {
    match Interface::named(name) {
        Ok(interface) if interface.gso_max_segs == SINGLE_PACKETS => interface.set_gso_max_segs(gso_max_segs),
        Ok(_) | Err(BpfError::NoInterface { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn default_controller() -> Result<String, BpfError> {
    let read = std::fs::read_to_string(DEFAULT_CONTROLLER);
    let read = read.map_err(|error| BpfError::system("reading net.ipv4.tcp_congestion_control", error))?;
    Ok(read.trim().to_owned())
}

fn set_default_controller(name: &str) -> Result<(), BpfError> {
    std::fs::write(DEFAULT_CONTROLLER, name)
        .map_err(|error| BpfError::system("setting net.ipv4.tcp_congestion_control", error))
}

fn undo_default(name: &str, was: &str, warnings: &mut Vec<String>) -> Result<(), BpfError> {
    // The administrator, or another controller, has changed it since.
    if default_controller()? != name {
        return Ok(());
    }
    let outcome = set_default_controller(was);
    if outcome.is_ok() || is_registered(was) {
        return outcome;
    }
    match BUILT_IN.into_iter().find(|built_in| set_default_controller(built_in).is_ok()) {
        Some(built_in) => {
            warnings.push(format!("the default controller is {built_in}: {was}, which it was before, is gone"));
            Ok(())
        }
        None => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a route to 10.99.0.0/24 without metrics.
    fn route() -> Route {
        let digits = "021800 00fe02fd01 00000000 08000100 0a630000 08000400 07000000".replace(' ', "");
        Route::from_hex(&digits).expect("a route")
    }

    fn of_route(was: Route, measured: bool) -> Change {
        Change::Route { was, measured }
    }

    #[test]
    fn a_record_survives_writing_and_reading() {
        let mut changes = Changes::none(Some(7));
        changes.changes = vec![
            of_route(route().with("cubic", false), true),
            of_route(route(), false),
            Change::Interface { name: "eth0".to_owned(), gso_max_segs: 65_535 },
            Change::Default("cubic".to_owned()),
        ];
        assert_eq!(Changes::from_text(&changes.to_text()), changes);
        let descriptions = changes.descriptions();
        assert_eq!(
            (descriptions[0].as_str(), descriptions[2].as_str()),
            ("the route to 10.99.0.0/24", "interface eth0")
        );
    }

    #[test]
    fn a_later_controller_inherits_the_original_state_when_the_earlier_one_is_unloaded() {
        let mine = of_route(route(), true);
        let mut later = Changes::none(None);
        later.changes = vec![of_route(route().with("mine", true), false), Change::Default("mine".to_owned())];
        assert!(later.inherit("mine", &mine));
        assert_eq!(later.changes[0], mine, "undoes the changes of the earlier controller, too");
        assert!(!later.inherit("other", &Change::Default("reno".to_owned())), "it has replaced another controller");
        assert!(later.inherit("mine", &Change::Default("reno".to_owned())));
        assert_eq!(later.changes[1], Change::Default("reno".to_owned()));
    }

    #[test]
    fn changes_of_controllers_that_were_killed_are_skipped() {
        let record = |change: Change| Changes { changes: vec![change], ..Changes::none(None) };
        let others = [
            ("no_such_1".to_owned(), record(Change::Default("reno".to_owned()))),
            ("no_such_2".to_owned(), record(Change::Default("no_such_1".to_owned()))),
        ];
        let change = Change::Default("no_such_2".to_owned());
        assert_eq!(change.skipping_dead_owners(&others), Change::Default("reno".to_owned()));
        let unknown = Change::Default("no_such_3".to_owned());
        assert_eq!(unknown.skipping_dead_owners(&others), unknown);
        // Records that form a cycle do not loop forever.
        let cycle = [("no_such_1".to_owned(), record(Change::Default("no_such_1".to_owned())))];
        assert!(Change::Default("no_such_1".to_owned()).skipping_dead_owners(&cycle).replaced().is_some());
    }
}
