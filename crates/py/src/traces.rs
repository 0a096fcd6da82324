//! Traces of a run: packet captures and qlog files.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use sparelane_scenario::{Scenario, ScenarioError};
use sparelane_sim::observe::Observer;
use sparelane_sim::observe::trace::{Capture, Outcome, Place, Qlog};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A requested trace.
#[derive(FromPyObject)]
pub struct TraceRequest {
    /// `flow`, `port` or `qlog`.
    #[pyo3(item)]
    kind: String,
    /// The number of a flow, or the name of a port.
    #[pyo3(item)]
    of: String,
    #[pyo3(item)]
    path: PathBuf,
    /// The number of bytes to keep of each packet.
    #[pyo3(item)]
    snap_bytes: u32,
    /// The largest number of packets or events.
    #[pyo3(item)]
    most: u64,
}

/// The file of a trace, and its outcome.
pub struct TraceFile {
    path: PathBuf,
    outcome: Outcome,
}

type Observers = Vec<Box<dyn Observer>>;

/// Creates the files of these traces, and the observers that write them.
///
/// # Errors
/// A flow or port does not exist, or a file cannot be created.
pub fn observers(requests: &[TraceRequest], scenario: &Scenario) -> Result<(Observers, Vec<TraceFile>), ScenarioError> {
    let (mut observers, mut files) = (Observers::new(), Vec::new());
    for TraceRequest { kind, of, path, snap_bytes, most } in requests {
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
        // The file is created now, so that an unwritable path fails before the run.
        let outcome = Outcome::default();
        let out = create(path).map_err(|error| refuse(format!("cannot write \"{}\": {error}", path.display())))?;
        observers.push(match place {
            Some(place) => Box::new(Capture::new(place, *snap_bytes, *most, out, outcome.clone())),
            None => Box::new(Qlog::new(flow()?, *most, out, outcome.clone())),
        });
        files.push(TraceFile { path: path.clone(), outcome });
    }
    Ok((observers, files))
}

fn create(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    Ok(Box::new(BufWriter::with_capacity(1 << 16, File::create(path)?)))
}

/// Returns the path of each file, its number of packets or events, and the error that ended it, if any.
pub fn outcomes(files: &[TraceFile]) -> Vec<(PathBuf, u64, Option<PyErr>)> {
    let outcome = |file: &TraceFile| {
        let error = file.outcome.take_error().map(|error| PyOSError::new_err(error.to_string()));
        (file.path.clone(), file.outcome.count(), error)
    };
    files.iter().map(outcome).collect()
}
