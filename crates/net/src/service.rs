//! What a user runs: one that sends files to a host, and one that receives them. Both go on in steps, so that whoever runs them
//! can show how far they are, and stop.

use crate::carrier::{AssociationId, CloseReason};
use crate::control::Service;
use crate::disk::Disk;
use crate::flow::MAX_CLASSES;
use crate::host::{Host, HostError, Waiting, fitting_payload};
use crate::identity::{Fingerprint, Identity, Trusted};
use crate::node::path::Mark;
use crate::node::{NodeConfig, NodeError, NodeEvent};
use crate::quic::{DEFAULT_BATCH, QuicConfig};
use crate::telemetry::TelemetryConfig;
use crate::transfer::black_hole::BlackHole;
use crate::transfer::folder::Folder;
use crate::transfer::patience::STALL_TIMEOUT;
use crate::transfer::{
    Busy, CODE_AGAIN, CODE_DONE, CODE_STOPPED, Outcome, ReceiveTransfer, Received, SendTransfer, Source, TransferError,
};
use crate::udp::{Gso, UdpConfig, goes_by_ipv4};
use nix::sys::socket::{getsockopt, sockopt};
use sparelane_core::{Dur, Rate};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// What is said last is given so long to leave.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(200);

/// UDP payload that every IPv6 path carries, which a sender falls back to where a path has begun to drop larger packets.
const LEAST_UDP_PAYLOAD_BYTES: u16 = 1232;

/// What a sender is told whose place another has taken.
const REPLACED: &str = "another connection of the same key sends the same file now";

/// What can be set about either side.
#[derive(Clone, Debug)]
pub struct WireConfig {
    /// This host's key.
    pub identity: Identity,
    /// The peers that it talks to.
    pub trusted: Trusted,
    /// Whether the first peer that comes is trusted from then on, as long as nobody is.
    pub first_contact: bool,
    /// Of the node.
    pub node: NodeConfig,
    /// Of the socket.
    pub udp: UdpConfig,
    /// UDP payload bytes of a full packet.
    pub udp_payload_bytes: u16,
    /// The rate of this host's line; what its interface says, without.
    pub line_rate: Option<Rate>,
    /// How it waits for what is due.
    pub waits: Waiting,
    /// A sender gives up when no connection is made in so long.
    pub connect_timeout: Duration,
    /// An association is over when nothing has come for so long.
    pub idle_timeout: Duration,
    /// A transfer of which nothing moves for so long is ended, although the peer is there.
    pub stall_timeout: Duration,
    /// Time series are kept, with so much time between samples.
    pub sample_interval: Option<Dur>,
    /// A qlog of all flows is written to this file, of so many events at most.
    pub qlog: Option<(PathBuf, u64)>,
}

impl WireConfig {
    /// The defaults.
    pub fn new(identity: Identity, trusted: Trusted) -> WireConfig {
        WireConfig {
            identity,
            trusted,
            first_contact: false,
            node: NodeConfig::default(),
            udp: UdpConfig::default(),
            udp_payload_bytes: 1452,
            line_rate: None,
            waits: Waiting::default(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_nanos(STALL_TIMEOUT.as_ps() / 1000),
            sample_interval: None,
            qlog: None,
        }
    }

    fn stall_timeout(&self) -> Dur {
        Dur::from_ns(self.stall_timeout.as_nanos().min(u128::from(u64::MAX / 1001)) as u64)
    }

    /// How often a transfer is asked whether anything moves.
    fn stall_pause(&self) -> Duration {
        (self.stall_timeout / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    pub(crate) fn bind(&self, at: SocketAddr, listens: bool) -> Result<Host, WireError> {
        let classes = self.udp.dscp.len().min(MAX_CLASSES) as u8;
        let node = self.node_at(at);
        let needs = node.controller.needs(&node.registry, node.line_rate).map_err(NodeError::from);
        // A batch has one departure and one arrival: where each segment's own matter, there are none.
        let one_by_one = needs.map_err(HostError::from)?.receive_time;
        if self.udp.gso == Gso::Require && (one_by_one || !self.udp.offload) {
            let lacks = "the controller, or --no-offload, wants each datagram by itself";
            return Err(HostError::Gso { address: at, lacks }.into());
        }
        let offload = self.udp.offload && !one_by_one;
        let batches = UdpConfig { offload, ..self.udp.clone() }.sends_batches();
        let quic = QuicConfig {
            listens,
            first_contact: self.first_contact,
            classes: classes.max(1),
            udp_payload_bytes: self.udp_payload_bytes,
            batch: if batches { DEFAULT_BATCH } else { 1 },
            idle_timeout: self.idle_timeout,
            ..QuicConfig::new(self.identity.clone(), self.trusted.clone())
        };
        let node = NodeConfig { classes: classes.max(1), ..node };
        let mut host = Host::bind(at, UdpConfig { offload, ..self.udp.clone() }, quic, node)?;
        host.set_waiting(self.waits);
        if self.sample_interval.is_some() || self.qlog.is_some() {
            let log = self.qlog.as_ref().map(|(path, most)| {
                let file = File::create(path).map_err(|error| WireError::Log { path: path.clone(), error })?;
                let out: Box<dyn Write + Send> = Box::new(BufWriter::with_capacity(1 << 16, file));
                Ok::<_, WireError>((out, *most))
            });
            host.watch(TelemetryConfig { interval: self.sample_interval, log: log.transpose()? });
        }
        Ok(host)
    }
}

/// Any port of any interface that can send to this address.
pub(crate) fn any_address(to: SocketAddr) -> SocketAddr {
    if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() }
}

/// A host that begins an association with the first of these addresses to which there is a route; it and those before it are taken
/// from them.
fn reach_any(
    config: &WireConfig,
    addresses: &mut VecDeque<SocketAddr>,
) -> Result<(Host, SocketAddr, AssociationId), WireError> {
    let mut failed = WireError::NoAddress;
    while let Some(to) = addresses.pop_front() {
        match reach(config, to) {
            Ok((host, association)) => return Ok((host, to, association)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn reach(config: &WireConfig, to: SocketAddr) -> Result<(Host, AssociationId), WireError> {
    let udp_payload_bytes = config.udp_payload_bytes.min(fitting_route(to)?);
    let mut host = WireConfig { udp_payload_bytes, ..config.clone() }.bind(any_address(to), false)?;
    let now = host.now();
    let association = host.node_mut().connect(now, to).map_err(HostError::from)?;
    Ok((host, association))
}

/// The UDP payload that fits the route which this host has to an address now, as far as the kernel knows it: what the interface
/// carries, or less, where a router has said so within the last minutes.
pub(crate) fn fitting_route(to: SocketAddr) -> Result<u16, HostError> {
    let connected = UdpSocket::bind(any_address(to)).and_then(|socket| socket.connect(to).map(|()| socket));
    let socket = connected.map_err(|error| HostError::Socket { address: to, error })?;
    // By IPv6 the socket does not tell.
    let mtu_bytes = getsockopt(&socket, sockopt::IpMtu).ok().filter(|_| goes_by_ipv4(to));
    Ok(mtu_bytes.map_or(u16::MAX, |bytes| fitting_payload(to, bytes.max(0) as u32)))
}

/// Why sending or receiving stops.
#[derive(Debug, Error)]
pub enum WireError {
    /// The host cannot begin, or its socket broke.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The transfer ended early.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The path cannot be measured.
    #[error(transparent)]
    Probe(#[from] crate::probe::ProbeError),
    /// Nobody answered.
    #[error("{to} does not answer; nothing came for {} s", .after.as_secs())]
    NoAnswer {
        /// The peer's address.
        to: SocketAddr,
        /// How long this host waited.
        after: Duration,
    },
    /// There is nobody to send to.
    #[error("the peer has no address")]
    NoAddress,
    /// The system has no thread left for the disk.
    #[error("a thread for the disk: {0}")]
    Disk(io::Error),
    /// The file of the qlog cannot be made.
    #[error("{}: {error}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The folder cannot be used.
    #[error("{}: {error}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// How far a sender is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Whether the peer is there.
    pub connected: bool,
    /// Bytes that the receiver has.
    pub bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// Since the association is open.
    pub elapsed: Duration,
    /// Segments sent, by class.
    pub sent: [u64; MAX_CLASSES],
    /// Whether every item is settled.
    pub done: bool,
}

/// When transfers are asked whether anything moves.
#[derive(Debug)]
struct Stall {
    timeout: Dur,
    pause: Duration,
    next: Instant,
}

impl Stall {
    fn of(config: &WireConfig) -> Stall {
        Stall { timeout: config.stall_timeout(), pause: config.stall_pause(), next: Instant::now() }
    }

    /// Whether it is time, which comes again after the pause.
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.pause;
        }
        is_due
    }
}

/// Sends files to one host.
#[derive(Debug)]
pub struct FileSender {
    host: Host,
    config: WireConfig,
    to: SocketAddr,
    /// Where the peer may be, too.
    others: VecDeque<SocketAddr>,
    association: AssociationId,
    peer: Option<Fingerprint>,
    sources: Vec<Source>,
    transfer: Option<SendTransfer>,
    disk: Disk,
    began: Instant,
    opened: Option<Instant>,
    ended: Option<Duration>,
    /// What was sent until the association ended.
    last_sent: Option<[u64; MAX_CLASSES]>,
    /// What was known of the path by then.
    last_path: (Vec<Mark>, Option<Rate>),
    connect_timeout: Duration,
    stall: Stall,
    black_hole: BlackHole,
    /// Bytes and segments of earlier associations.
    before: (u64, [u64; MAX_CLASSES]),
}

impl FileSender {
    /// Begins to send `sources` to the host at `to`.
    ///
    /// # Errors
    /// This host cannot begin, or has no route to the other.
    pub fn begin(config: &WireConfig, to: SocketAddr, sources: Vec<Source>) -> Result<FileSender, WireError> {
        FileSender::begin_at_any(config, &[to], sources)
    }

    /// Begins to send `sources` to a host that has all of these addresses. They are tried one after another, and take as long
    /// together as one would alone.
    ///
    /// # Errors
    /// This host cannot begin, or has no route to any of them.
    pub fn begin_at_any(
        config: &WireConfig,
        addresses: &[SocketAddr],
        sources: Vec<Source>,
    ) -> Result<FileSender, WireError> {
        let connect_timeout = config.connect_timeout / addresses.len().max(1) as u32;
        let mut others: VecDeque<SocketAddr> = addresses.iter().copied().collect();
        let (host, to, association) = reach_any(config, &mut others)?;
        let (now, began) = (host.now(), Instant::now());
        Ok(FileSender {
            host,
            config: config.clone(),
            to,
            others,
            association,
            peer: None,
            sources,
            transfer: None,
            disk: Disk::start().map_err(WireError::Disk)?,
            began,
            opened: None,
            ended: None,
            last_sent: None,
            last_path: Default::default(),
            connect_timeout,
            stall: Stall::of(config),
            black_hole: BlackHole::new(now),
            before: (0, [0; MAX_CLASSES]),
        })
    }

    /// Goes on for so long at most, or until something has become of an item. Returns what has.
    ///
    /// # Errors
    /// The transfer ends early; what the receiver has stays for the next attempt.
    pub fn step(&mut self, at_most: Duration) -> Result<Vec<Outcome>, WireError> {
        let until = Instant::now() + at_most;
        let mut outcomes = vec![];
        while outcomes.is_empty() && self.ended.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            let at_most = left.min(self.stall.pause);
            if let Some(event) = self.host.next_event_beside(at_most, Some(self.disk.news()))? {
                self.handle(&event)?;
            }
            if self.disk.take_news() {
                self.advance()?;
            }
            if self.stall.is_due()
                && let Some(transfer) = &mut self.transfer
            {
                let checked = transfer.check_patience(self.host.now(), self.host.node());
                self.end_at(checked)?;
            }
            if self.transfer.is_none() && self.began.elapsed() > self.connect_timeout {
                self.try_next()?;
            }
            if let Some(transfer) = &mut self.transfer {
                outcomes.extend(std::iter::from_fn(|| transfer.poll_outcome()));
                if transfer.is_done() {
                    self.close(CODE_DONE, "all is sent")?;
                }
            }
            self.heed_routers()?;
            self.look_for_a_black_hole()?;
            if left.is_zero() {
                break;
            }
        }
        Ok(outcomes)
    }

    /// The peer does not answer here: perhaps at another of its addresses.
    fn try_next(&mut self) -> Result<(), WireError> {
        let (to, after) = (self.to, self.connect_timeout);
        if self.others.is_empty() || self.opened.is_some() {
            return Err(WireError::NoAnswer { to, after });
        }
        (self.host, self.to, self.association) = reach_any(&self.config, &mut self.others)?;
        (self.began, self.black_hole) = (Instant::now(), BlackHole::new(self.host.now()));
        Ok(())
    }

    /// Where a router says that full packets are too large, the transfer goes on in another association with such as fit.
    fn heed_routers(&mut self) -> Result<(), WireError> {
        match self.host.poll_fitting_payload(self.to).filter(|_| self.ended.is_none()) {
            Some(bytes) => self.begin_smaller(bytes, "a router takes no packets of this size"),
            None => Ok(()),
        }
    }

    /// Where the path has begun to drop full packets, the transfer goes on in another association with small ones.
    fn look_for_a_black_hole(&mut self) -> Result<(), WireError> {
        let Some(transfer) = &self.transfer else { return Ok(()) };
        let now = self.host.now();
        let (bytes, is_waiting) = (transfer.progress(self.host.node()).0, transfer.is_waiting());
        let polled = self.black_hole.poll(now, self.host.node_mut(), self.association, bytes, is_waiting);
        let is_large = self.host.node().carrier().udp_payload_bytes() > LEAST_UDP_PAYLOAD_BYTES;
        if is_large && polled.map_err(HostError::from)? {
            self.begin_smaller(LEAST_UDP_PAYLOAD_BYTES, "the path drops full packets")?;
        }
        Ok(())
    }

    fn begin_smaller(&mut self, udp_payload_bytes: u16, reason: &str) -> Result<(), WireError> {
        let now = self.host.now();
        let total: u64 = self.sources_bytes();
        let sent = self.host.node().sent_segments(self.association);
        self.before.1.iter_mut().zip(sent).for_each(|(sum, sent)| *sum += sent);
        self.host.node_mut().close(now, self.association, CODE_AGAIN, reason);
        self.host.flush(LAST_WORDS)?;
        if let Some(transfer) = self.transfer.take() {
            self.sources = transfer.into_unsettled();
        }
        self.before.0 += total - self.sources_bytes();
        self.host.set_udp_payload_bytes(udp_payload_bytes)?;
        self.association = self.host.node_mut().connect(now, self.to).map_err(HostError::from)?;
        self.began = Instant::now();
        self.black_hole = BlackHole::new(now);
        Ok(())
    }

    /// Bytes of all items of this association.
    fn sources_bytes(&self) -> u64 {
        match &self.transfer {
            Some(transfer) => transfer.progress(self.host.node()).1,
            None => self.sources.iter().map(|source| source.size).sum(),
        }
    }

    /// The UDP payload of full packets now: less than was asked for where the path carries less.
    pub fn udp_payload_bytes(&self) -> u16 {
        self.host.node().carrier().udp_payload_bytes()
    }

    fn handle(&mut self, event: &NodeEvent) -> Result<(), WireError> {
        let now = self.host.now();
        match event {
            NodeEvent::Opened { association, peer, .. } if *association == self.association => {
                self.peer = Some(*peer);
                self.opened.get_or_insert(Instant::now());
                let sources = std::mem::take(&mut self.sources);
                let mut transfer = SendTransfer::new(self.association, sources, self.host.node(), Some(&self.disk));
                transfer.set_stall_timeout(self.stall.timeout);
                self.transfer = Some(transfer);
            }
            NodeEvent::Closed { association, reason }
                if self.transfer.is_none() && *association == self.association =>
            {
                return Err(TransferError::Closed(reason.clone()).into());
            }
            _ => {}
        }
        let Some(transfer) = &mut self.transfer else { return Ok(()) };
        let handled = transfer.handle_event(now, self.host.node_mut(), event);
        self.end_at(handled)
    }

    /// The disk has given what was asked for.
    fn advance(&mut self) -> Result<(), WireError> {
        let now = self.host.now();
        let Some(transfer) = &mut self.transfer else { return Ok(()) };
        let advanced = transfer.advance(now, self.host.node_mut());
        self.end_at(advanced)
    }

    /// Tells the peer of an error.
    fn end_at(&mut self, result: Result<(), TransferError>) -> Result<(), WireError> {
        if let Err(error) = result {
            if !matches!(error, TransferError::Closed(_)) {
                self.close(error.code(), &error.to_string())?;
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// Ends the transfer; what the receiver has of it stays there.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn close(&mut self, code: u32, reason: &str) -> Result<(), WireError> {
        let now = self.host.now();
        self.ended.get_or_insert(self.opened.map_or(Duration::ZERO, |opened| opened.elapsed()));
        self.last_sent.get_or_insert(self.host.node().sent_segments(self.association));
        self.last_path = self.path();
        // What was said before leaves first.
        self.host.flush(LAST_WORDS)?;
        self.host.node_mut().close(now, self.association, code, reason);
        Ok(self.host.flush(LAST_WORDS)?)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let (bytes, total_bytes) = match &self.transfer {
            Some(transfer) => transfer.progress(self.host.node()),
            None => (0, self.sources.iter().map(|source| source.size).sum()),
        };
        let mut sent = self.last_sent.unwrap_or_else(|| self.host.node().sent_segments(self.association));
        sent.iter_mut().zip(self.before.1).for_each(|(sum, before)| *sum += before);
        let (bytes, total_bytes) = (bytes + self.before.0, total_bytes + self.before.0);
        let running = || self.opened.map_or(Duration::ZERO, |opened| opened.elapsed());
        Progress {
            connected: self.opened.is_some(),
            bytes,
            total_bytes,
            elapsed: self.ended.unwrap_or_else(running),
            sent,
            done: self.ended.is_some(),
        }
    }

    /// What is known of the path: what became of the code point of each class, and the rate at which a tail begins.
    pub fn path(&self) -> (Vec<Mark>, Option<Rate>) {
        let node = self.host.node();
        let Some(path) = node.path(self.association) else { return self.last_path.clone() };
        ((0..node.config().classes).map(|class| path.mark(class)).collect(), path.tail_rate())
    }

    /// The peer's key, once it is there.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.peer
    }

    /// Its host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its host, to be set and asked.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }
}

/// What has happened at a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// A peer is there.
    Connected {
        /// Its key.
        peer: Fingerprint,
        /// Its address.
        address: SocketAddr,
    },
    /// Something has become of a file or folder.
    Item {
        /// The peer's key.
        peer: Fingerprint,
        /// What.
        received: Received,
    },
    /// A peer is gone.
    Disconnected {
        /// Its key.
        peer: Fingerprint,
        /// Why, if it had not said that all is sent.
        error: Option<String>,
        /// Files and folders that it had offered: none where it had come for the path alone.
        offered: u64,
        /// Whether another connection has taken the place of this one.
        replaced: bool,
    },
}

/// Receives files from any number of hosts into one folder.
#[derive(Debug)]
pub struct FileReceiver {
    host: Host,
    folder: Arc<Folder>,
    replaces: bool,
    transfers: BTreeMap<AssociationId, (Fingerprint, ReceiveTransfer)>,
    disk: Disk,
    busy: Busy,
    stall: Stall,
    stops: bool,
}

impl FileReceiver {
    /// Listens at this address. The folder is made where there is none, in one that is there. Where it `replaces`, files that are
    /// there already are replaced.
    ///
    /// # Errors
    /// The address cannot be had, or the folder cannot be used.
    pub fn bind(config: &WireConfig, at: SocketAddr, folder: &Path, replaces: bool) -> Result<FileReceiver, WireError> {
        let failed = |error| WireError::Folder { path: folder.to_owned(), error };
        let host = config.bind(at, true)?;
        match std::fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let folder = Arc::new(Folder::open(folder).map_err(failed)?);
        let disk = Disk::start().map_err(WireError::Disk)?;
        let (transfers, busy, stall) = (BTreeMap::new(), Busy::default(), Stall::of(config));
        Ok(FileReceiver { host, folder, replaces, transfers, disk, busy, stall, stops: false })
    }

    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.host.socket().local_address()
    }

    /// Bytes that have come in transfers that are under way.
    pub fn received_bytes(&self) -> u64 {
        self.transfers.values().map(|(_, transfer)| transfer.received_bytes()).sum()
    }

    /// Its host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its host, to be set and asked.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// Takes no more transfers; those that run go on.
    pub fn stop(&mut self) {
        self.stops = true;
    }

    /// How many peers are connected that have offered something.
    pub fn running(&self) -> usize {
        self.transfers.values().filter(|(_, transfer)| transfer.offered() > 0).count()
    }

    /// Goes on for so long at most, or until something has happened. Returns what has.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn step(&mut self, at_most: Duration) -> Result<Vec<ReceiverEvent>, WireError> {
        let until = Instant::now() + at_most;
        let mut events = vec![];
        while events.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let at_most = left.min(self.stall.pause);
            if let Some(event) = self.host.next_event_beside(at_most, Some(self.disk.news()))? {
                self.handle(&event, &mut events);
            }
            if self.disk.take_news() {
                self.handle_answers(&mut events);
            }
            if self.stall.is_due() {
                self.look_for_stalls(&mut events);
            }
            if left.is_zero() {
                break;
            }
        }
        Ok(events)
    }

    fn handle(&mut self, event: &NodeEvent, events: &mut Vec<ReceiverEvent>) {
        let now = self.host.now();
        let association = match event {
            NodeEvent::Opened { association, .. } if self.stops => {
                return self.host.node_mut().close(now, *association, CODE_STOPPED, "the receiver is stopping");
            }
            NodeEvent::Opened { association, peer, address } => {
                let mut transfer = ReceiveTransfer::new(*association, &self.folder, self.replaces, Some(&self.disk));
                transfer.set_stall_timeout(self.stall.timeout);
                // What cannot be said is not needed: the association is over then.
                let _ = self.host.node_mut().write_control(*association, Service::Files.greeting());
                self.transfers.insert(*association, (*peer, transfer));
                events.push(ReceiverEvent::Connected { peer: *peer, address: *address });
                return;
            }
            NodeEvent::Control(association) | NodeEvent::Closed { association, .. } => *association,
            NodeEvent::Incoming(flow) | NodeEvent::Readable(flow) | NodeEvent::ReceiveFailed(flow) => flow.association,
            NodeEvent::Acknowledged(_) | NodeEvent::Sent(_) | NodeEvent::SendFailed(_) | NodeEvent::Path(_) => return,
        };
        let Some((_, transfer)) = self.transfers.get_mut(&association) else { return };
        let result = transfer.handle_event(self.host.node_mut(), &mut self.busy, event);
        // What is replaced writes nothing more: its successor has the files then.
        let mut has_replaced = false;
        while let Some(replaced) = self.busy.poll_replaced() {
            self.host.node_mut().close(now, replaced, CODE_STOPPED, REPLACED);
            self.end(replaced, Some(REPLACED.to_owned()), true, events);
            has_replaced = true;
        }
        if let Some((_, transfer)) = self.transfers.get_mut(&association).filter(|_| has_replaced) {
            transfer.go_on();
        }
        self.conclude(association, result, events);
    }

    /// The disk has answers for some of the transfers.
    fn handle_answers(&mut self, events: &mut Vec<ReceiverEvent>) {
        for association in self.transfers.keys().copied().collect::<Vec<_>>() {
            let Some((_, transfer)) = self.transfers.get_mut(&association) else { continue };
            let result = transfer.handle_answers(self.host.node_mut(), &mut self.busy);
            self.conclude(association, result, events);
        }
    }

    /// Ends the transfers of which nothing moves.
    fn look_for_stalls(&mut self, events: &mut Vec<ReceiverEvent>) {
        let now = self.host.now();
        let check = |(&id, (_, transfer)): (&AssociationId, &mut (Fingerprint, ReceiveTransfer))| {
            transfer.check_patience(now).err().map(|error| (id, error))
        };
        for (association, error) in self.transfers.iter_mut().filter_map(check).collect::<Vec<_>>() {
            self.conclude(association, Err(error), events);
        }
    }

    /// Tells what has become of a transfer, and ends it where it is over.
    fn conclude(
        &mut self,
        association: AssociationId,
        result: Result<(), TransferError>,
        events: &mut Vec<ReceiverEvent>,
    ) {
        let now = self.host.now();
        match result {
            Ok(()) => self.tell(association, events),
            Err(TransferError::Closed(CloseReason::Peer { code, .. })) if code == u64::from(CODE_AGAIN) => {
                // The peer comes again at once: it is not gone, and nothing has become of its items.
                if let Some((_, mut transfer)) = self.transfers.remove(&association) {
                    transfer.release(&mut self.busy);
                }
            }
            Err(TransferError::Closed(CloseReason::Peer { code, .. })) if code == u64::from(CODE_DONE) => {
                self.end(association, None, false, events);
            }
            Err(error) => {
                self.host.node_mut().close(now, association, error.code(), &error.to_string());
                self.end(association, Some(error.to_string()), false, events);
            }
        }
    }

    /// Tells what has become of a transfer's items.
    fn tell(&mut self, association: AssociationId, events: &mut Vec<ReceiverEvent>) {
        if let Some((peer, transfer)) = self.transfers.get_mut(&association) {
            let items = std::iter::from_fn(|| transfer.poll_received());
            events.extend(items.map(|received| ReceiverEvent::Item { peer: *peer, received }));
        }
    }

    fn end(
        &mut self,
        association: AssociationId,
        error: Option<String>,
        replaced: bool,
        events: &mut Vec<ReceiverEvent>,
    ) {
        if let Some((_, transfer)) = self.transfers.get_mut(&association) {
            transfer.release(&mut self.busy);
        }
        self.tell(association, events);
        if let Some((peer, transfer)) = self.transfers.remove(&association) {
            let offered = transfer.offered();
            events.push(ReceiverEvent::Disconnected { peer, error, offered, replaced });
        }
    }

    /// Ends all transfers, with a reason for the peers; what is here of them stays.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn close(&mut self, reason: &str) -> Result<(), WireError> {
        let now = self.host.now();
        for association in std::mem::take(&mut self.transfers).into_keys() {
            self.host.node_mut().close(now, association, CODE_STOPPED, reason);
        }
        Ok(self.host.flush(LAST_WORDS)?)
    }
}

#[cfg(test)]
mod tests;
