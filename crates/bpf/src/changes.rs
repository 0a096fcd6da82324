//! What loading changes on a host besides the kernel's list of controllers, written down before it is changed.
//!
//! The note is a file of its own for each controller, in a folder that does not survive a restart, as the changes do not either:
//! a process that is killed leaves it behind, and whoever unloads puts back what it says.

use crate::error::BpfError;
use crate::netlink::{Link, Route};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where notes are.
pub const FOLDER: &str = "/run/sparelane/linux";

const DEFAULT_CONTROLLER: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// One thing that was changed, and how it was.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// A route.
    Route(Route),
    /// The most packets that an interface cuts.
    Link { name: String, gso_max_segs: u32 },
    /// The controller of connections that ask for none.
    Default(String),
}

impl Change {
    fn put_back(&self) -> Result<(), BpfError> {
        match self {
            Change::Route(route) => match route.put() {
                Err(BpfError::System { source, .. })
                    if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NetworkUnreachable)
                        || source.raw_os_error() == Some(nix::libc::ENODEV)
                        || source.raw_os_error() == Some(nix::libc::ENETDOWN) =>
                {
                    Ok(())
                }
                other => other,
            },
            Change::Link { name, gso_max_segs } => match Link::named(name) {
                Ok(link) => link.set_gso_max_segs(*gso_max_segs),
                Err(BpfError::NoInterface { .. }) => Ok(()),
                Err(error) => Err(error),
            },
            Change::Default(controller) => std::fs::write(DEFAULT_CONTROLLER, controller)
                .map_err(|error| BpfError::system("setting net.ipv4.tcp_congestion_control", error)),
        }
    }
}

/// What a controller's note says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The process that holds the controller; none for one that is pinned.
    pub process: Option<u32>,
    /// The network namespace in which things were changed.
    pub namespace: u64,
    changes: Vec<Change>,
}

fn note(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn this_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/net").map(|file| file.ino()).unwrap_or_default()
}

impl Changes {
    /// Nothing changed yet, by a process of that number or by one that does not stay.
    pub fn none(process: Option<u32>) -> Changes {
        Changes { process, namespace: this_namespace(), changes: Vec::new() }
    }

    /// The note of a controller, if there is one.
    pub fn noted(name: &str) -> Option<Changes> {
        let text = std::fs::read_to_string(note(name)).ok()?;
        let mut found = Changes::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["process", number] => found.process = number.parse().ok(),
                ["namespace", number] => found.namespace = number.parse().unwrap_or_default(),
                ["route", digits] => found.changes.extend(Route::from_hex(digits).map(Change::Route)),
                ["link", name, segments] => {
                    let gso_max_segs = segments.parse().unwrap_or_default();
                    found.changes.push(Change::Link { name: name.to_owned(), gso_max_segs });
                }
                ["default", controller] => found.changes.push(Change::Default(controller.to_owned())),
                _ => {}
            }
        }
        Some(found)
    }

    /// All controllers that have a note.
    pub fn names() -> Vec<String> {
        let files = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let mut names: Vec<String> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Writes the note of a controller.
    ///
    /// # Errors
    /// The disk says no.
    pub fn write(&self, name: &str) -> Result<(), BpfError> {
        let mut text = format!("namespace {}\n", self.namespace);
        text += &self.process.map(|number| format!("process {number}\n")).unwrap_or_default();
        for change in &self.changes {
            text += &match change {
                Change::Route(route) => format!("route {}\n", route.to_hex()),
                Change::Link { name, gso_max_segs } => format!("link {name} {gso_max_segs}\n"),
                Change::Default(controller) => format!("default {controller}\n"),
            };
        }
        let failed = |error| BpfError::system(format!("writing {}", note(name).display()), error);
        std::fs::create_dir_all(FOLDER).map_err(failed)?;
        std::fs::write(note(name), text).map_err(failed)
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
        let route = Route::find(destination)?;
        self.change(name, Change::Route(route.clone()), || route.with(name, measures).put())
    }

    /// Has an interface send packets as they are handed down.
    ///
    /// # Errors
    /// There is no such interface, or the kernel refuses.
    pub fn set_single_packets(&mut self, name: &str, link: &Link) -> Result<(), BpfError> {
        if link.gso_max_segs == 1 {
            return Ok(());
        }
        let was = Change::Link { name: link.name.clone(), gso_max_segs: link.gso_max_segs };
        self.change(name, was, || link.set_gso_max_segs(1))
    }

    /// Makes the controller that of all connections of this network namespace which ask for none.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_default(&mut self, name: &str) -> Result<(), BpfError> {
        let failed = |error| BpfError::system("setting net.ipv4.tcp_congestion_control", error);
        let was = std::fs::read_to_string(DEFAULT_CONTROLLER).map_err(failed)?;
        let was = Change::Default(was.trim().to_owned());
        self.change(name, was, || std::fs::write(DEFAULT_CONTROLLER, name).map_err(failed))
    }

    /// Puts everything back, last change first, and forgets the note. What is gone meanwhile, as an interface, needs nothing.
    ///
    /// # Errors
    /// The first that the kernel refuses, after all others were put back, or that it is another network namespace; the note stays
    /// then.
    pub fn put_back(&self, name: &str) -> Result<(), BpfError> {
        if !self.changes.is_empty() && self.namespace != this_namespace() {
            return Err(BpfError::Setting(format!(
                "{name} changed routes or interfaces in another network namespace ({}): unload it there",
                self.namespace
            )));
        }
        let outcomes = self.changes.iter().rev().map(Change::put_back);
        outcomes.fold(Ok(()), Result::and)?;
        match std::fs::remove_file(note(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(BpfError::system(format!("removing {}", note(name).display()), error))
            }
            _ => Ok(()),
        }
    }

    /// What was changed, in words.
    pub fn in_words(&self) -> Vec<String> {
        let words = |change: &Change| match change {
            Change::Route(_) => "a route".to_owned(),
            Change::Link { name, .. } => format!("interface {name}"),
            Change::Default(controller) => format!("the default controller (it was {controller})"),
        };
        self.changes.iter().map(words).collect()
    }
}
