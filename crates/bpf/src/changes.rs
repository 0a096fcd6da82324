//! What loading changes on a host besides the kernel's list of controllers, written down before it is changed.
//!
//! The note is a file of its own for each controller, in a folder that does not survive a restart, as the changes do not either:
//! a process that is killed leaves it behind, and whoever unloads puts back what it says.
//!
//! Several controllers may be set on one route or be the default one after the other, and go in any order, and the administrator
//! may change the same things meanwhile. So only that is put back which is still as it was set. Where another of ours has been
//! set since, its note gets to know what was there before both.

use crate::error::BpfError;
use crate::link::Link;
use crate::loaded::registered_names;
use crate::namespace::Namespace;
use crate::route::Route;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where notes are.
pub const FOLDER: &str = "/run/sparelane/linux";

const DEFAULT_CONTROLLER: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// What every kernel has, in the order in which kernels choose a default: for when the earlier one is gone.
const BUILT_IN: [&str; 2] = ["cubic", "reno"];

/// Packets that an interface hands over one by one, for gaps between them.
const SINGLE: u32 = 1;

/// One thing that was changed, and how it was.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// A route, and whether it was told to measure.
    Route { was: Route, measured: bool },
    /// The most packets that an interface cuts.
    Link { name: String, gso_max_segs: u32 },
    /// The controller of connections that ask for none.
    Default(String),
}

impl Change {
    /// The controller that was there before, where this is about controllers.
    fn earlier(&self) -> Option<String> {
        match self {
            Change::Route { was, .. } => was.controller(),
            Change::Link { .. } => None,
            Change::Default(controller) => Some(controller.clone()),
        }
    }

    /// Whether both have changed the same thing.
    fn is_of_the_same(&self, other: &Change) -> bool {
        match (self, other) {
            (Change::Route { was, .. }, Change::Route { was: other, .. }) => was.is_in_the_place_of(other),
            (Change::Link { name, .. }, Change::Link { name: other, .. }) => name == other,
            (Change::Default(_), Change::Default(_)) => true,
            _ => false,
        }
    }

    /// Both changes as one, of which `lower` was the first.
    fn onto(&self, lower: &Change) -> Change {
        match (self, lower) {
            (Change::Route { measured, .. }, Change::Route { was, measured: before }) => {
                Change::Route { was: was.clone(), measured: *measured || *before }
            }
            _ => lower.clone(),
        }
    }

    /// The change as it would be without those before it whose controllers are gone and have put nothing back.
    fn before_those_gone(&self, others: &[(String, Changes)]) -> Change {
        let mut change = self.clone();
        // No note is asked twice.
        for _ in others {
            let Some(owner) = change.earlier().filter(|owner| !is_registered(owner)) else { break };
            let noted = others.iter().find(|(other, _)| *other == owner);
            let lower = noted.and_then(|(_, noted)| noted.changes.iter().find(|lower| lower.is_of_the_same(&change)));
            let Some(lower) = lower else { break };
            change = change.onto(lower);
        }
        change
    }

    fn in_words(&self) -> String {
        match self {
            Change::Route { was, .. } => format!("the route to {}", was.destination()),
            Change::Link { name, .. } => format!("interface {name}"),
            Change::Default(controller) => format!("the default controller (it was {controller})"),
        }
    }
}

/// What a controller's note says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The process that holds the controller; none for one that is pinned.
    pub process: Option<u32>,
    /// The network namespace in which things were changed.
    pub namespace: Namespace,
    changes: Vec<Change>,
}

/// The turn of one process to change notes, and what they are about; the next one's comes when this is dropped.
#[derive(Debug)]
pub struct Turn {
    _folder: Flock<File>,
}

impl Turn {
    /// Waits for it.
    ///
    /// # Errors
    /// The folder of the notes cannot be made.
    pub fn wait() -> Result<Turn, BpfError> {
        let failed = |error| BpfError::system(format!("opening {FOLDER}"), error);
        std::fs::create_dir_all(FOLDER).map_err(failed)?;
        let mut folder = File::open(FOLDER).map_err(failed)?;
        loop {
            match Flock::lock(folder, FlockArg::LockExclusive) {
                Ok(folder) => return Ok(Turn { _folder: folder }),
                Err((again, Errno::EINTR)) => folder = again,
                Err((_, error)) => return Err(failed(error.into())),
            }
        }
    }
}

fn note(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn is_registered(name: &str) -> bool {
    registered_names().iter().any(|other| other == name)
}

impl Changes {
    /// Nothing changed yet, by a process of that number or by one that does not stay.
    pub fn none(process: Option<u32>) -> Changes {
        Changes { process, namespace: Namespace::this(), changes: Vec::new() }
    }

    /// The note of a controller, if there is one.
    pub fn noted(name: &str) -> Option<Changes> {
        std::fs::read_to_string(note(name)).ok().map(|text| Changes::from_text(&text))
    }

    fn from_text(text: &str) -> Changes {
        let mut found = Changes::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["process", number] => found.process = number.parse().ok(),
                ["namespace", inode, cookie] => {
                    let number = |word: &str| word.parse().unwrap_or_default();
                    found.namespace = Namespace { inode: number(inode), cookie: number(cookie) };
                }
                ["route", digits, how] => {
                    let was = Route::from_hex(digits);
                    found.changes.extend(was.map(|was| Change::Route { was, measured: how == "measured" }));
                }
                ["link", name, segments] => {
                    let gso_max_segs = segments.parse().unwrap_or_default();
                    found.changes.push(Change::Link { name: name.to_owned(), gso_max_segs });
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
                Change::Link { name, gso_max_segs } => format!("link {name} {gso_max_segs}\n"),
                Change::Default(controller) => format!("default {controller}\n"),
            };
        }
        text
    }

    /// All controllers that have a note.
    pub fn names() -> Vec<String> {
        let files = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let mut names: Vec<String> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The notes of all others that have changed anything in this network namespace.
    fn of_others(&self, name: &str) -> Vec<(String, Changes)> {
        let others = Changes::names().into_iter().filter(|other| other != name);
        let noted = others.filter_map(|other| Changes::noted(&other).map(|noted| (other, noted)));
        noted.filter(|(_, noted)| noted.namespace == self.namespace).collect()
    }

    /// Writes the note of a controller.
    ///
    /// # Errors
    /// The disk says no.
    pub fn write(&self, name: &str) -> Result<(), BpfError> {
        let failed = |error| BpfError::system(format!("writing {}", note(name).display()), error);
        std::fs::create_dir_all(FOLDER).map_err(failed)?;
        std::fs::write(note(name), self.to_text()).map_err(failed)
    }

    /// Notes how something was, and changes it. What could not be changed is not noted, as it need not be put back.
    fn change(
        &mut self,
        name: &str,
        was: Change,
        change: impl FnOnce() -> Result<(), BpfError>,
    ) -> Result<(), BpfError> {
        self.changes.push(was);
        self.write(name)?;
        change().inspect_err(|_| {
            self.changes.pop();
            // The note says more than was changed where this fails, too; to put that back changes nothing.
            let _ = self.write(name);
        })
    }

    /// Has connections over a route use the controller, and where `measures`, tell arrivals exactly.
    ///
    /// # Errors
    /// There is no such route, or the kernel refuses.
    pub fn set_route(&mut self, name: &str, destination: &str, measures: bool) -> Result<(), BpfError> {
        let was = Route::find(destination)?;
        // The same route may be asked for twice.
        if was.controller().as_deref() == Some(name) {
            return Ok(());
        }
        let change = Change::Route { was: was.clone(), measured: measures };
        self.change(name, change, || was.with(name, measures).put())
    }

    /// Has an interface send packets as they are handed down.
    ///
    /// # Errors
    /// There is no such interface, or the kernel refuses.
    pub fn set_single_packets(&mut self, name: &str, link: &Link) -> Result<(), BpfError> {
        let was = Change::Link { name: link.name.clone(), gso_max_segs: link.gso_max_segs };
        if link.gso_max_segs != SINGLE {
            return self.change(name, was, || link.set_gso_max_segs(SINGLE));
        }
        // Where another of ours has set it, whoever goes last puts it back.
        let others = self.of_others(name);
        let by_another = others.iter().flat_map(|(_, noted)| &noted.changes).find(|change| change.is_of_the_same(&was));
        by_another.map_or(Ok(()), |change| self.change(name, change.clone(), || Ok(())))
    }

    /// Makes the controller that of all connections of this network namespace which ask for none.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_default(&mut self, name: &str) -> Result<(), BpfError> {
        let was = Change::Default(default_controller()?);
        self.change(name, was, || set_default_controller(name))
    }

    /// Whether what was changed can be put back from here.
    ///
    /// # Errors
    /// [`BpfError::OtherNamespace`] where it is in another network namespace, to which one can get.
    pub fn check_place(&self, name: &str) -> Result<(), BpfError> {
        let is_here = self.changes.is_empty() || self.namespace == Namespace::this();
        if is_here || !self.namespace.exists() {
            return Ok(());
        }
        Err(BpfError::OtherNamespace { name: name.to_owned(), namespace: self.namespace.inode })
    }

    /// Puts back what is still as the controller has set it, last change first, and forgets the note. Returns what is worth a
    /// word.
    ///
    /// # Errors
    /// The first that the kernel refuses, after all others were put back, or that it is another network namespace; the note stays
    /// then.
    pub fn put_back(name: &str) -> Result<Vec<String>, BpfError> {
        let _turn = Turn::wait()?;
        let Some(noted) = Changes::noted(name) else { return Ok(Vec::new()) };
        noted.check_place(name)?;
        let mut remarks = Vec::new();
        if noted.changes.is_empty() || noted.namespace == Namespace::this() {
            let mut outcome = Ok(());
            for change in noted.changes.iter().rev() {
                outcome = outcome.and(noted.undo(name, change, &mut remarks));
            }
            outcome?;
        } else {
            let (changed, number) = (noted.in_words().join(", "), noted.namespace.inode);
            remarks.push(format!("the network namespace ({number}) in which {name} had changed {changed} is gone"));
        }
        match std::fs::remove_file(note(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(BpfError::system(format!("removing {}", note(name).display()), error))
            }
            _ => Ok(remarks),
        }
    }

    fn undo(&self, name: &str, change: &Change, remarks: &mut Vec<String>) -> Result<(), BpfError> {
        let mut others = self.of_others(name);
        for (other, noted) in &mut others {
            if noted.come_down_to(name, change) {
                noted.write(other)?;
            }
        }
        match change.before_those_gone(&others) {
            Change::Route { was, measured } => undo_route(name, &was, measured, remarks),
            Change::Link { name, gso_max_segs } => {
                let mut set_by_others = others.iter().flat_map(|(_, noted)| &noted.changes);
                let is_needed = set_by_others.any(|other| other.is_of_the_same(change));
                if is_needed { Ok(()) } else { undo_link(&name, gso_max_segs) }
            }
            Change::Default(was) => undo_default(name, &was, remarks),
        }
    }

    /// What was set after `change` of the controller `name` takes over what was there before that. Tells whether anything was.
    fn come_down_to(&mut self, name: &str, change: &Change) -> bool {
        let is_above = |own: &&mut Change| own.is_of_the_same(change) && own.earlier().as_deref() == Some(name);
        let mut is_changed = false;
        for own in self.changes.iter_mut().filter(is_above) {
            *own = own.onto(change);
            is_changed = true;
        }
        is_changed
    }

    /// What was changed, in words.
    pub fn in_words(&self) -> Vec<String> {
        self.changes.iter().map(Change::in_words).collect()
    }
}

fn undo_route(name: &str, was: &Route, measured: bool, remarks: &mut Vec<String>) -> Result<(), BpfError> {
    let (now, as_set) = (was.in_its_place()?, was.with(name, measured));
    let is_ours = |route: &&Route| match route.controller() {
        Some(controller) => controller == name,
        // The kernel shows no controller that is gone: the rest of the route tells whether it is that which was set.
        None => !is_registered(name) && route.is_but_for_the_controller(&as_set),
    };
    let Some(route) = now.iter().find(is_ours) else { return Ok(()) };
    let earlier = was.controller();
    let outcome = route.without(was, measured, earlier.as_deref()).put();
    match earlier {
        Some(gone) if outcome.is_err() && !is_registered(&gone) => {
            route.without(was, measured, None).put()?;
            let destination = was.destination();
            remarks.push(format!(
                "the route to {destination} names no controller: {gone}, which it named before, is gone"
            ));
            Ok(())
        }
        _ => outcome,
    }
}

fn undo_link(name: &str, gso_max_segs: u32) -> Result<(), BpfError> {
    match Link::named(name) {
        Ok(link) if link.gso_max_segs == SINGLE => link.set_gso_max_segs(gso_max_segs),
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

fn undo_default(name: &str, was: &str, remarks: &mut Vec<String>) -> Result<(), BpfError> {
    if default_controller()? != name {
        return Ok(());
    }
    let outcome = set_default_controller(was);
    if outcome.is_ok() || is_registered(was) {
        return outcome;
    }
    match BUILT_IN.into_iter().find(|built_in| set_default_controller(built_in).is_ok()) {
        Some(built_in) => {
            remarks.push(format!("the default controller is {built_in}: {was}, which it was before, is gone"));
            Ok(())
        }
        None => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The route to 10.99.0.0/24, without metrics.
    fn route() -> Route {
        let digits = "021800 00fe02fd01 00000000 08000100 0a630000 08000400 07000000".replace(' ', "");
        Route::from_hex(&digits).expect("a route")
    }

    fn of_route(was: Route, measured: bool) -> Change {
        Change::Route { was, measured }
    }

    #[test]
    fn a_note_says_what_it_was_told() {
        let mut changes = Changes::none(Some(7));
        changes.changes = vec![
            of_route(route().with("cubic", false), true),
            of_route(route(), false),
            Change::Link { name: "eth0".to_owned(), gso_max_segs: 65_535 },
            Change::Default("cubic".to_owned()),
        ];
        assert_eq!(Changes::from_text(&changes.to_text()), changes);
        let words = changes.in_words();
        assert_eq!((words[0].as_str(), words[2].as_str()), ("the route to 10.99.0.0/24", "interface eth0"));
    }

    #[test]
    fn who_was_set_above_a_controller_that_goes_takes_over_what_was_before_both() {
        let mine = of_route(route(), true);
        let mut above = Changes::none(None);
        above.changes = vec![of_route(route().with("mine", true), false), Change::Default("mine".to_owned())];
        assert!(above.come_down_to("mine", &mine));
        assert_eq!(above.changes[0], mine, "and undoes what the one below has left to it");
        assert!(!above.come_down_to("other", &Change::Default("reno".to_owned())), "it stood above somebody else");
        assert!(above.come_down_to("mine", &Change::Default("reno".to_owned())));
        assert_eq!(above.changes[1], Change::Default("reno".to_owned()));
    }

    #[test]
    fn what_names_a_controller_that_was_killed_is_as_it_was_before_that() {
        let noted = |change: Change| Changes { changes: vec![change], ..Changes::none(None) };
        let others = [
            ("no_such_1".to_owned(), noted(Change::Default("reno".to_owned()))),
            ("no_such_2".to_owned(), noted(Change::Default("no_such_1".to_owned()))),
        ];
        let change = Change::Default("no_such_2".to_owned());
        assert_eq!(change.before_those_gone(&others), Change::Default("reno".to_owned()));
        let unknown = Change::Default("no_such_3".to_owned());
        assert_eq!(unknown.before_those_gone(&others), unknown);
        // Two that name each other come to an end.
        let circle = [("no_such_1".to_owned(), noted(Change::Default("no_such_1".to_owned())))];
        assert!(Change::Default("no_such_1".to_owned()).before_those_gone(&circle).earlier().is_some());
    }
}
