//! The wire for Python: keys, file transfers between real hosts, and tunnels.

use crate::errors::WireError;
use crate::results::to_dict;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sparelane_cc::Registry;
use sparelane_net::host::Host;
use sparelane_net::identity::{self, Fingerprint, Identity, Trusted};
use sparelane_net::metrics::exposition;
use sparelane_net::node::ControllerChoice;
use sparelane_net::service::{self, FileReceiver, FileSender, ReceiverEvent, WireConfig};
use sparelane_net::transfer::folder::Folder;
use sparelane_net::transfer::message::Kind;
use sparelane_net::transfer::selection::Selection;
use sparelane_net::transfer::{Collected, Input, Outcome, Source, collect_selected, partials};
use sparelane_net::tunnel::Target;
use sparelane_net::tunnel::host::{Tunnel, TunnelConfig, TunnelEvent};
use sparelane_scenario::columns::Column;
use sparelane_scenario::results::bounded;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) fn failed(error: impl Display) -> PyErr {
    WireError::new_err(error.to_string())
}

/// Creates a key pair in a folder and returns its fingerprint. Raises `WireError`.
#[pyfunction]
pub fn new_key(folder: PathBuf) -> PyResult<String> {
    let identity = Identity::generate().map_err(failed)?;
    identity.save(&folder).map_err(failed)?;
    Ok(identity.fingerprint().to_string())
}

/// Returns the fingerprint of a folder's key, and the fingerprints of trusted peers with their
/// remarks. Raises `WireError`.
#[pyfunction]
pub fn show_keys(folder: PathBuf) -> PyResult<(String, Vec<(String, String)>)> {
    let identity = Identity::load(&folder).map_err(failed)?;
    let trusted = Trusted::with_remarks(&folder).map_err(failed)?;
    let trusted = trusted.into_iter().map(|(peer, remark)| (peer.to_string(), remark)).collect();
    Ok((identity.fingerprint().to_string(), trusted))
}

/// Adds a peer to the trusted peers of a folder. Returns false if it was trusted already. Raises
/// `WireError`.
#[pyfunction]
pub fn trust(folder: PathBuf, fingerprint: &str, remark: &str) -> PyResult<bool> {
    Identity::load(&folder).map_err(failed)?;
    Trusted::append(&folder, fingerprint.parse().map_err(failed)?, remark).map_err(failed)
}

/// Removes a peer from the trusted peers of a folder. Returns whether it was trusted. Raises `WireError`.
#[pyfunction]
pub fn untrust(folder: PathBuf, fingerprint: &str) -> PyResult<bool> {
    Trusted::remove(&folder, fingerprint.parse().map_err(failed)?).map_err(failed)
}

/// Reads a file of this user's configuration to which nobody else can write. Returns `None` if it
/// does not exist. Raises `WireError`.
#[pyfunction]
pub fn read_config(path: PathBuf) -> PyResult<Option<String>> {
    identity::read_config(&path).map_err(failed)
}

/// An incomplete file: the name that it will have, bytes, seconds since its last change, and whether a
/// receiver is writing it.
type LeftFile = (String, u64, f64, bool);

fn left_files(files: Vec<partials::LeftFile>) -> Vec<LeftFile> {
    files.into_iter().map(|one| (one.name.to_string(), one.bytes, one.age.as_secs_f64(), one.is_in_use)).collect()
}

/// Lists the incomplete files of a folder. Raises `WireError`.
#[pyfunction]
pub fn list_partial(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<LeftFile>> {
    let listed = py.detach(|| Folder::open(&folder).and_then(|folder| partials::list(&folder)));
    listed.map(left_files).map_err(|error| failed(format!("{}: {error}", folder.display())))
}

/// Removes the incomplete files of a folder that have not changed for `min_age_s` and that no receiver
/// is writing. Returns them. Raises `WireError`.
#[pyfunction]
pub fn clean_partial(py: Python<'_>, folder: PathBuf, min_age_s: f64) -> PyResult<Vec<LeftFile>> {
    let min_age = span(min_age_s)?;
    let removed = py.detach(|| Folder::open(&folder).and_then(|folder| partials::clean(&folder, min_age)));
    removed.map(left_files).map_err(|error| failed(format!("{}: {error}", folder.display())))
}

/// Settings of both sides of a transfer.
#[derive(FromPyObject)]
pub struct Settings {
    #[pyo3(item)]
    keys: PathBuf,
    #[pyo3(item)]
    trust: Vec<String>,
    /// The only peer that is trusted apart from those in `trust`.
    #[pyo3(item)]
    peer: Option<String>,
    #[pyo3(item)]
    controller: String,
    #[pyo3(item)]
    set: Vec<(String, String)>,
    /// Pairs of name and text of the declared settings.
    #[pyo3(item)]
    declared: Vec<(String, String)>,
    #[pyo3(item)]
    has_series: bool,
    #[pyo3(item)]
    qlog: Option<PathBuf>,
}

impl Settings {
    /// Loads the key and the trusted peers.
    fn load(&self) -> PyResult<(Identity, Trusted)> {
        let identity = Identity::load(&self.keys).map_err(failed)?;
        let mut trusted = match self.peer {
            Some(_) => Trusted::default(),
            None => Trusted::load(&self.keys).map_err(failed)?,
        };
        for peer in self.trust.iter().chain(&self.peer) {
            trusted.add(peer.parse::<Fingerprint>().map_err(failed)?);
        }
        Ok((identity, trusted))
    }

    pub(crate) fn config(&self) -> PyResult<WireConfig> {
        let (identity, trusted) = self.load()?;
        let has_peers = !trusted.is_empty();
        let config = self.applied_to(WireConfig::new(identity, trusted))?;
        if !has_peers && !config.settings.first_contact {
            return Err(failed("no peer is trusted: name at least one fingerprint"));
        }
        Ok(config)
    }

    /// Returns the configuration with all settings except the keys.
    fn applied_to(&self, mut config: WireConfig) -> PyResult<WireConfig> {
        let controller = ControllerChoice::parse(&self.controller, &self.set, &Registry::built_in());
        config.node.controller = controller.map_err(failed)?;
        config.apply(&self.declared).map_err(failed)?;
        if let Some(fault) = config.udp.fault() {
            return Err(failed(fault));
        }
        (config.has_series, config.qlog) = (self.has_series, self.qlog.clone());
        Ok(config)
    }
}

/// Validates settings, and the keys if `has_keys`. Opens no socket and resolves no name. Raises `WireError`.
#[pyfunction]
pub fn check_wire(settings: Settings, has_keys: bool) -> PyResult<()> {
    if has_keys {
        return settings.config().map(|_| ());
    }
    let identity = Identity::generate().map_err(failed)?;
    settings.applied_to(WireConfig::new(identity, Trusted::default())).map(|_| ())
}

/// The outcome of one item: name, bytes, bytes that the receiver already had, whether the receiver had
/// an equal file, whether it is a folder, and the error if it failed.
type Item = (String, u64, u64, bool, bool, Option<String>);

/// Collects what the patterns select below `paths`. Entries of folders that cannot be sent are left out.
fn select(paths: &[PathBuf], include: &[String], exclude: &[String]) -> PyResult<Collected> {
    let patterns = |texts: &[String]| texts.iter().map(|text| text.parse().map_err(failed)).collect::<PyResult<_>>();
    let selection = Selection { include: patterns(include)?, exclude: patterns(exclude)? };
    collect_selected(paths, &selection).map_err(failed)
}

/// Pairs of the path and the reason of entries that cannot be sent.
fn left_out(collected: &Collected) -> Vec<(String, String)> {
    collected.left_out.iter().map(|error| (error.path(), error.reason())).collect()
}

/// Returns the files and folders that would be sent, with their bytes (`None` for folders), and pairs of
/// path and reason of those that cannot be sent. Raises `WireError`.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "the tuples are objects of Python")]
pub fn list_sources(
    paths: Vec<PathBuf>,
    include: Vec<String>,
    exclude: Vec<String>,
) -> PyResult<(Vec<(String, Option<u64>)>, Vec<(String, String)>)> {
    let collected = select(&paths, &include, &exclude)?;
    let items = collected.sources.iter().filter(|source| source.kind != Kind::FolderTime);
    let items = items.map(|source| (source.name.to_string(), source.kind.is_file().then_some(source.size)));
    Ok((items.collect(), left_out(&collected)))
}

/// Converts seconds to a duration. Raises `WireError` if they are negative or too many.
pub(crate) fn span(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(failed)
}

pub(crate) fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| failed(format!("\"{text}\" is not an address and port")))
}

fn addresses(texts: &[String]) -> PyResult<Vec<SocketAddr>> {
    texts.iter().map(|text| address(text)).collect()
}

/// Sends files to one host.
#[pyclass(name = "FileSender", unsendable)]
pub struct PySender {
    sender: FileSender,
    /// Entries of folders that cannot be sent, as pairs of path and reason.
    left_out: Vec<(String, String)>,
}

#[pymethods]
impl PySender {
    #[new]
    #[pyo3(signature = (settings, paths, to, include=vec![], exclude=vec![], discards=false, stdin=None))]
    fn new(
        settings: Settings,
        paths: Vec<PathBuf>,
        to: Vec<String>,
        include: Vec<String>,
        exclude: Vec<String>,
        discards: bool,
        stdin: Option<&str>,
    ) -> PyResult<PySender> {
        let (config, to) = (settings.config()?, addresses(&to)?);
        let mut collected = match paths[..] {
            [] if stdin.is_some() => Collected::default(),
            _ => select(&paths, &include, &exclude)?,
        };
        if discards {
            collected.sources = collected.sources.into_iter().map(Source::discarded).collect();
        }
        if let Some(name) = stdin {
            let input = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
            collected.add_stream(Input::new(File::from(input)), name).map_err(failed)?;
        }
        let left_out = left_out(&collected);
        Ok(PySender { sender: FileSender::begin_at_any(&config, &to, collected.sources).map_err(failed)?, left_out })
    }

    /// Entries of folders that cannot be sent, as pairs of path and reason.
    #[getter]
    fn left_out(&self) -> Vec<(String, String)> {
        self.left_out.clone()
    }

    /// Continues until an item is finished or has failed, for at most `seconds`. Returns such items.
    ///
    /// Each is a tuple of name, bytes, bytes that the receiver already had, whether it had an equal file,
    /// whether it is a folder, and the error or `None`. Raises `WireError`.
    fn step(&mut self, py: Python<'_>, seconds: f64) -> PyResult<Vec<Item>> {
        let limit = span(seconds)?;
        let sender = &mut self.sender;
        let outcomes = py.detach(|| sender.step(limit)).map_err(failed)?;
        let item = |one: Outcome| (one.name, one.size, one.resumed, one.unchanged, one.is_folder, one.error);
        Ok(outcomes.into_iter().map(item).collect())
    }

    /// Returns the progress of the transfer.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = self.sender.progress();
        let out = PyDict::new(py);
        out.set_item("connected", progress.connected)?;
        out.set_item("bytes", progress.bytes)?;
        out.set_item("total_bytes", progress.total_bytes)?;
        out.set_item("elapsed_s", progress.elapsed.as_secs_f64())?;
        let files = self.sender.files();
        out.set_item("files", files.done)?;
        out.set_item("total_files", files.total)?;
        out.set_item("current", files.current)?;
        out.set_item("resumed_bytes", files.resumed_bytes)?;
        out.set_item("sent", progress.sent.to_vec())?;
        let (marks, tail_rate) = self.sender.path();
        out.set_item("marks", marks.into_iter().map(crate::wire_path::mark_name).collect::<Vec<_>>())?;
        out.set_item("tail_bps", tail_rate.map(|rate| rate.as_bps()))?;
        out.set_item("udp_payload_bytes", self.sender.udp_payload_bytes())?;
        crate::wire_controller::add_state(&out, self.sender.host().node())?;
        out.set_item("silence_s", progress.silence.map(|silence| silence.as_secs_f64()))?;
        out.set_item("losses", progress.losses)?;
        out.set_item("last_loss", progress.last_loss)?;
        out.set_item("is_lost", progress.is_lost)?;
        out.set_item("done", progress.done)?;
        Ok(out)
    }

    /// Returns the samples since the last call: columns of time series, the number of rows that were dropped because
    /// the buffer was full, and the error that ended the qlog, once.
    fn take_samples<'py>(&mut self, py: Python<'py>) -> PyResult<Samples<'py>> {
        take_samples(py, self.sender.host_mut())
    }

    /// Returns the metrics in Prometheus' text format.
    fn exposition(&self) -> String {
        exposition(self.sender.host())
    }

    /// The fingerprint of the peer's key once connected, else `None`.
    #[getter]
    fn peer(&self) -> Option<String> {
        self.sender.peer().map(|peer| peer.to_string())
    }

    /// Ends the transfer. The receiver keeps what it has received.
    fn close(&mut self, reason: &str) -> PyResult<()> {
        self.sender.close(sparelane_net::transfer::CODE_STOPPED, reason).map_err(failed)
    }
}

/// Continues a receiver or a tunnel without holding the interpreter, for at most `seconds`. Returns its events.
fn step<'py, S: Send, E: Send>(
    py: Python<'py>,
    site: &mut S,
    seconds: f64,
    advance: impl FnOnce(&mut S, Duration) -> Result<Vec<E>, service::WireError> + Send,
    to_dict: impl Fn(Python<'py>, E) -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let limit = span(seconds)?;
    let events = py.detach(|| advance(site, limit)).map_err(failed)?;
    events.into_iter().map(|event| to_dict(py, event)).collect()
}

/// Loads the key and the trusted peers again, and gives the key to a host. Returns the peers, and the
/// key's fingerprint with the number of peers.
fn reload(host: &mut Host, settings: &Settings) -> PyResult<(Trusted, (String, usize))> {
    let (identity, trusted) = settings.load()?;
    let loaded = (identity.fingerprint().to_string(), trusted.iter().count());
    host.set_identity(identity).map_err(failed)?;
    Ok((trusted, loaded))
}

/// Columns of time series, the number of rows that were dropped, and the error that ended the qlog. There
/// are no columns if there are no rows, since the first column imports NumPy, which takes longer than a
/// short transfer.
type Samples<'py> = (Bound<'py, PyDict>, u64, Option<String>);

fn take_samples<'py>(py: Python<'py>, host: &mut Host) -> PyResult<Samples<'py>> {
    let (rows, error) = host.take_samples();
    let columns = if rows.time_ps.is_empty() {
        PyDict::new(py)
    } else {
        let columns = vec![
            ("time_s".to_owned(), Column::seconds(&rows.time_ps)),
            ("probe".to_owned(), Column::text(rows.probe, rows.names)),
            ("quantity".to_owned(), Column::words(&rows.quantity)),
            ("value".to_owned(), Column::optional_f64(rows.value.iter().map(|&value| bounded(value)))),
        ];
        to_dict(py, columns)?
    };
    Ok((columns, rows.missed, error.map(|error| error.to_string())))
}

/// Receives files from any number of hosts.
#[pyclass(name = "FileReceiver", unsendable)]
pub struct PyReceiver(FileReceiver);

#[pymethods]
impl PyReceiver {
    /// Without a folder, the files of one transfer at a time go to standard output.
    #[new]
    #[pyo3(signature = (settings, at, folder, replaces, file_mode=None))]
    fn new(
        settings: Settings,
        at: &str,
        folder: Option<PathBuf>,
        replaces: bool,
        file_mode: Option<u32>,
    ) -> PyResult<PyReceiver> {
        let (config, at) = (WireConfig { file_mode, ..settings.config()? }, address(at)?);
        let receiver = match folder {
            Some(folder) => FileReceiver::bind(&config, at, &folder, replaces),
            None => {
                let output = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
                FileReceiver::bind_to_output(&config, at, File::from(output))
            }
        };
        Ok(PyReceiver(receiver.map_err(failed)?))
    }

    /// The address and port on which it listens.
    #[getter]
    fn address(&self) -> String {
        self.0.local_address().to_string()
    }

    /// Bytes received so far in unfinished transfers.
    #[getter]
    fn received_bytes(&self) -> u64 {
        self.0.received_bytes()
    }

    /// Continues until an event happens, for at most `seconds`. Returns the events as dictionaries. Raises `WireError`.
    fn step<'py>(&mut self, py: Python<'py>, seconds: f64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        step(py, &mut self.0, seconds, FileReceiver::step, receiver_event)
    }

    /// Reloads the key and the trusted peers. Returns the key's fingerprint and the number of trusted
    /// peers.
    fn reload(&mut self, settings: Settings) -> PyResult<(String, usize)> {
        let (trusted, loaded) = reload(self.0.host_mut(), &settings)?;
        self.0.set_trusted(trusted);
        Ok(loaded)
    }

    /// Accepts no new transfers. Running ones continue.
    fn stop(&mut self) {
        self.0.stop();
    }

    /// Returns the fingerprint of an untrusted peer that was refused since the last call, or `None`.
    fn take_stranger(&self) -> Option<String> {
        self.0.host().take_refused_peer().map(|peer| peer.to_string())
    }

    /// Returns the samples since the last call: columns of time series, the number of rows that were dropped because
    /// the buffer was full, and the error that ended the qlog, once.
    fn take_samples<'py>(&mut self, py: Python<'py>) -> PyResult<Samples<'py>> {
        take_samples(py, self.0.host_mut())
    }

    /// Returns the metrics in Prometheus' text format.
    fn exposition(&self) -> String {
        exposition(self.0.host())
    }

    /// The number of connected peers that have offered files.
    #[getter]
    fn running(&self) -> usize {
        self.0.running()
    }

    /// Ends all transfers. Received parts of files are kept.
    fn close(&mut self, reason: &str) -> PyResult<()> {
        self.0.close(reason).map_err(failed)
    }
}

/// Converts an event of a receiver to a dictionary, with the kind under `event`.
fn receiver_event(py: Python<'_>, event: ReceiverEvent) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    match event {
        ReceiverEvent::Connected { peer, address } => {
            out.set_item("event", "connected")?;
            out.set_item("peer", peer.to_string())?;
            out.set_item("address", address.to_string())?;
        }
        ReceiverEvent::Item { peer, received } => {
            out.set_item("event", "item")?;
            out.set_item("peer", peer.to_string())?;
            out.set_item("name", received.name)?;
            out.set_item("bytes", received.size)?;
            out.set_item("resumed_bytes", received.resumed)?;
            out.set_item("error", received.error)?;
        }
        ReceiverEvent::Cleaned { names, bytes } => {
            out.set_item("event", "cleaned")?;
            out.set_item("names", names)?;
            out.set_item("bytes", bytes)?;
        }
        ReceiverEvent::Disconnected { peer, error, offered, replaced } => {
            out.set_item("event", "disconnected")?;
            out.set_item("peer", peer.to_string())?;
            out.set_item("error", error)?;
            out.set_item("offered", offered)?;
            out.set_item("replaced", replaced)?;
        }
    }
    Ok(out)
}

/// Settings of a tunnel.
#[derive(FromPyObject)]
pub struct TunnelSettings {
    #[pyo3(item)]
    max_connections: usize,
    #[pyo3(item)]
    waits: bool,
    #[pyo3(item)]
    longest_pause_s: f64,
}

impl TunnelSettings {
    fn config(&self, settings: &Settings) -> PyResult<TunnelConfig> {
        let mut config = TunnelConfig::new(settings.config()?);
        (config.max_connections, config.waits) = (self.max_connections, self.waits);
        config.longest_pause = span(self.longest_pause_s)?;
        Ok(config)
    }
}

fn target(text: &str) -> PyResult<Target> {
    text.parse().map_err(failed)
}

/// Parses pairs of target and numeric address.
fn targets(allowed: Vec<(String, String)>) -> PyResult<BTreeMap<Target, SocketAddr>> {
    allowed.iter().map(|(text, at)| Ok((target(text)?, address(at)?))).collect()
}

/// One site of a tunnel.
#[pyclass(name = "Tunnel", unsendable)]
pub struct PyTunnel(Tunnel);

#[pymethods]
impl PyTunnel {
    /// Starts the site that serves targets. `allowed` are pairs of target and numeric address. Raises `WireError`.
    #[staticmethod]
    fn serve(
        settings: Settings,
        tunnel: TunnelSettings,
        at: &str,
        allowed: Vec<(String, String)>,
    ) -> PyResult<PyTunnel> {
        let config = tunnel.config(&settings)?;
        Ok(PyTunnel(Tunnel::serve(config, address(at)?, targets(allowed)?).map_err(failed)?))
    }

    /// Starts the site that connects to a serving site at one of the addresses in `to`.
    ///
    /// `forwards` are pairs of a local address and a target at the serving site. Raises `WireError`.
    #[staticmethod]
    fn dial(
        settings: Settings,
        tunnel: TunnelSettings,
        to: Vec<String>,
        forwards: Vec<(String, String)>,
    ) -> PyResult<PyTunnel> {
        let config = tunnel.config(&settings)?;
        let forwards = forwards.iter().map(|(at, text)| Ok((address(at)?, target(text)?))).collect::<PyResult<_>>()?;
        Ok(PyTunnel(Tunnel::dial(config, &addresses(&to)?, forwards).map_err(failed)?))
    }

    /// The address and port of its UDP socket.
    #[getter]
    fn address(&self) -> String {
        self.0.local_address().to_string()
    }

    /// The addresses on which it accepts TCP connections.
    #[getter]
    fn forwarded(&self) -> Vec<String> {
        self.0.forwarded().iter().map(SocketAddr::to_string).collect()
    }

    /// Returns the fingerprint of an untrusted peer that was refused since the last call, or `None`.
    fn take_stranger(&self) -> Option<String> {
        self.0.host().take_refused_peer().map(|peer| peer.to_string())
    }

    /// Returns the samples since the last call: columns of time series, the number of rows that were dropped because
    /// the buffer was full, and the error that ended the qlog, once.
    fn take_samples<'py>(&mut self, py: Python<'py>) -> PyResult<Samples<'py>> {
        take_samples(py, self.0.host_mut())
    }

    /// Returns the metrics in Prometheus' text format.
    fn exposition(&self) -> String {
        exposition(self.0.host())
    }

    /// The number of open connections.
    #[getter]
    fn running(&self) -> usize {
        self.0.connections()
    }

    /// Continues until an event happens, for at most `seconds`. Returns the events as dictionaries. Raises `WireError`.
    fn step<'py>(&mut self, py: Python<'py>, seconds: f64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        step(py, &mut self.0, seconds, Tunnel::step, tunnel_event)
    }

    /// Reloads the key and the trusted peers. Returns the key's fingerprint and the number of trusted
    /// peers.
    fn reload(&mut self, settings: Settings) -> PyResult<(String, usize)> {
        let (trusted, loaded) = reload(self.0.host_mut(), &settings)?;
        self.0.set_trusted(trusted);
        Ok(loaded)
    }

    /// Replaces the targets that are served.
    fn set_allowed(&mut self, allowed: Vec<(String, String)>) -> PyResult<()> {
        self.0.set_allowed(targets(allowed)?);
        Ok(())
    }

    /// Accepts no new connections. Open ones continue.
    fn stop(&mut self) {
        self.0.stop();
    }

    /// Ends all connections.
    fn close(&mut self, reason: &str) -> PyResult<()> {
        self.0.close(reason).map_err(failed)
    }
}

/// Converts an event of a tunnel to a dictionary, with the kind under `event`.
fn tunnel_event(py: Python<'_>, event: TunnelEvent) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    let (kind, target) = match event {
        TunnelEvent::Connected { peer, address } => {
            out.set_item("peer", peer.to_string())?;
            out.set_item("address", address.to_string())?;
            ("connected", None)
        }
        TunnelEvent::Disconnected { peer, error } => {
            out.set_item("peer", peer.map(|peer| peer.to_string()))?;
            out.set_item("error", error)?;
            ("disconnected", None)
        }
        TunnelEvent::Opened { target } => ("opened", Some(target)),
        TunnelEvent::Closed { target, sent, received } => {
            out.set_item("sent_bytes", sent)?;
            out.set_item("received_bytes", received)?;
            ("closed", Some(target))
        }
        TunnelEvent::Failed { target, error } => {
            out.set_item("error", error)?;
            ("failed", Some(target))
        }
    };
    out.set_item("event", kind)?;
    if let Some(target) = target {
        out.set_item("target", target.to_string())?;
    }
    Ok(out)
}
