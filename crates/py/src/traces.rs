//! Traces of a run, into files.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use sparelane_scenario::{Scenario, ScenarioError};
use sparelane_sim::observe::Observer;
use sparelane_sim::observe::trace::{Capture, Outcome, Place, Qlog};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A trace that is asked for.
#[derive(FromPyObject)]
pub struct Asked {
    /// `flow`, `port` or `qlog`.
    #[pyo3(item)]
    kind: String,
    /// The number of a flow, or the name of a port.
    #[pyo3(item)]
    of: String,
    #[pyo3(item)]
    path: PathBuf,
    #[pyo3(item)]
    snap_bytes: u32,
    #[pyo3(item)]
    most: u64,
}

/// A file that a trace is written to, and what became of it.
pub struct Traced {
    path: PathBuf,
    outcome: Outcome,
}

type Observers = Vec<Box<dyn Observer>>;

/// The observers that write these traces, whose files are made now.
pub fn observers(asked: &[Asked], scenario: &Scenario) -> Result<(Observers, Vec<Traced>), ScenarioError> {
    let (mut observers, mut files) = (Observers::new(), Vec::new());
    for Asked { kind, of, path, snap_bytes, most } in asked {
        let refuse = |message: String| ScenarioError {
            file: "--trace".to_owned(),
            line: None,
            key: kind.clone(),
            value: Some(of.clone()),
            message,
        };
        let flow =
            || of.parse::<u32>().map_err(|_| refuse("no flow; allowed: a number in order of start, from 0".into()));
        let place = match kind.as_str() {
            "port" => Some(Place::Ports(scenario.ports(of).map_err(refuse)?)),
            "flow" => Some(Place::Flow(flow()?)),
            _ => None,
        };
        let outcome = Outcome::default();
        let out = create(path).map_err(|error| refuse(format!("cannot write \"{}\": {error}", path.display())))?;
        observers.push(match place {
            Some(place) => Box::new(Capture::new(place, *snap_bytes, *most, out, outcome.clone())),
            None => Box::new(Qlog::new(flow()?, *most, out, outcome.clone())),
        });
        files.push(Traced { path: path.clone(), outcome });
    }
    Ok((observers, files))
}

fn create(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    Ok(Box::new(BufWriter::with_capacity(1 << 16, File::create(path)?)))
}

/// The files, with how many packets or events each has, and what went wrong with it.
pub fn told(files: &[Traced]) -> Vec<(PathBuf, u64, Option<PyErr>)> {
    let told = |file: &Traced| {
        let error = file.outcome.take_error().map(|error| PyOSError::new_err(error.to_string()));
        (file.path.clone(), file.outcome.count(), error)
    };
    files.iter().map(told).collect()
}
