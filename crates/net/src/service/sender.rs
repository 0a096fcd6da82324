//! A sender of files to one host.

use super::FLUSH_TIMEOUT;
use super::config::WireConfig;
use super::error::WireError;
use super::stall_schedule::StallSchedule;
use crate::carrier::AssociationId;
use crate::disk::Disk;
use crate::flow::MAX_CLASSES;
use crate::host::{Host, HostError};
use crate::identity::Fingerprint;
use crate::node::NodeEvent;
use crate::node::path::Mark;
use crate::route::any_address;
use crate::transfer::black_hole::BlackHole;
use crate::transfer::message::Kind;
use crate::transfer::{CODE_DONE, CODE_RECONNECT, Outcome, SendTransfer, Source, TransferError};
use sparelane_core::Rate;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The UDP payload of the smallest IPv6 MTU, used after the path has started to drop larger packets.
const MIN_UDP_PAYLOAD_BYTES: u16 = 1232;

/// The progress of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// True once the peer has connected.
    pub connected: bool,
    /// Bytes that the receiver has.
    pub bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// The time since the association opened.
    pub elapsed: Duration,
    /// Segments sent, by class.
    pub sent: [u64; MAX_CLASSES],
    /// True if every item has a result.
    pub done: bool,
}

/// The progress of a sender in files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Files that have a result.
    pub done: u64,
    /// All files.
    pub total: u64,
    /// The name of a file that is being sent or compared.
    pub current: Option<String>,
    /// Bytes that the receiver had, and that were not sent.
    pub resumed_bytes: u64,
}

/// Sends files to one host.
#[derive(Debug)]
pub struct FileSender {
    host: Host,
    config: WireConfig,
    to: SocketAddr,
    /// Further addresses of the peer.
    others: VecDeque<SocketAddr>,
    association: AssociationId,
    peer: Option<Fingerprint>,
    sources: Vec<Source>,
    transfer: Option<SendTransfer>,
    disk: Disk,
    began: Instant,
    opened: Option<Instant>,
    ended: Option<Duration>,
    /// The segments sent when the association ended.
    last_sent: Option<[u64; MAX_CLASSES]>,
    /// The state of the path at that time.
    last_path: (Vec<Mark>, Option<Rate>),
    connect_timeout: Duration,
    stall: StallSchedule,
    black_hole: BlackHole,
    /// The number of files.
    files: u64,
    /// Bytes and segments of earlier associations.
    before: (u64, [u64; MAX_CLASSES]),
}

impl FileSender {
    /// Starts to send `sources` to the host at `to`.
    ///
    /// # Errors
    /// This host cannot be created, or has no route to the peer.
    pub fn begin(config: &WireConfig, to: SocketAddr, sources: Vec<Source>) -> Result<FileSender, WireError> {
        FileSender::begin_at_any(config, &[to], sources)
    }

    /// Starts to send `sources` to a host with several addresses, which are tried in turn. All attempts together take
    /// as long as one address alone.
    ///
    /// # Errors
    /// This host cannot be created, or has no route to any address.
    pub fn begin_at_any(
        config: &WireConfig,
        addresses: &[SocketAddr],
        sources: Vec<Source>,
    ) -> Result<FileSender, WireError> {
        let connect_timeout = config.settings.connect_timeout / addresses.len().max(1) as u32;
        let mut others: VecDeque<SocketAddr> = addresses.iter().copied().collect();
        let (host, to, association) = connect_any(config, &mut others)?;
        let (now, began) = (host.now(), Instant::now());
        let files = files_of(&sources);
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
            stall: StallSchedule::of(config),
            black_hole: BlackHole::new(now),
            files,
            before: (0, [0; MAX_CLASSES]),
        })
    }

    /// Advances until an item has a result, but no longer than `at_most`. Returns the results.
    ///
    /// # Errors
    /// The transfer ends early; the received part stays for the next attempt.
    pub fn step(&mut self, at_most: Duration) -> Result<Vec<Outcome>, WireError> {
        let until = Instant::now() + at_most;
        let mut outcomes = vec![];
        while outcomes.is_empty() && self.ended.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            let at_most = left.min(self.stall.interval);
            if let Some(event) = self.host.next_event_or_readable(at_most, Some(self.disk.ready_fd()))? {
                self.handle(&event)?;
            }
            if self.disk.take_ready() {
                self.advance()?;
            }
            if self.stall.is_due()
                && let Some(transfer) = &mut self.transfer
            {
                let checked = transfer.check_stall(self.host.now(), self.host.node());
                self.close_on_error(checked)?;
            }
            if self.transfer.is_none() && self.began.elapsed() > self.connect_timeout {
                self.try_next()?;
            }
            if let Some(transfer) = &mut self.transfer {
                outcomes.extend(std::iter::from_fn(|| transfer.poll_outcome()));
                if transfer.is_done() {
                    self.close(CODE_DONE, "the transfer is complete")?;
                }
            }
            self.apply_path_mtu()?;
            self.check_black_hole()?;
            if left.is_zero() {
                break;
            }
        }
        Ok(outcomes)
    }

    /// Tries the peer's next address.
    fn try_next(&mut self) -> Result<(), WireError> {
        let (to, after) = (self.to, self.connect_timeout);
        if self.others.is_empty() || self.opened.is_some() {
            return Err(WireError::NoAnswer { to, after });
        }
        (self.host, self.to, self.association) = connect_any(&self.config, &mut self.others)?;
        (self.began, self.black_hole) = (Instant::now(), BlackHole::new(self.host.now()));
        Ok(())
    }

    /// If a router reports that full packets are too large, continues in another association with smaller ones.
    fn apply_path_mtu(&mut self) -> Result<(), WireError> {
        match self.host.poll_fitting_payload(self.to).filter(|_| self.ended.is_none()) {
            Some(bytes) => self.restart_with_payload(bytes, "a router reports that packets of this size are too large"),
            None => Ok(()),
        }
    }

    /// If the path starts to drop full packets, continues in another association with small ones.
    fn check_black_hole(&mut self) -> Result<(), WireError> {
        let Some(transfer) = &self.transfer else { return Ok(()) };
        let now = self.host.now();
        let (bytes, is_waiting) = (transfer.progress(self.host.node()).0, transfer.is_waiting());
        let polled = self.black_hole.poll(now, self.host.node_mut(), self.association, bytes, is_waiting);
        let is_large = self.host.node().carrier().udp_payload_bytes() > MIN_UDP_PAYLOAD_BYTES;
        if is_large && polled.map_err(HostError::from)? {
            self.restart_with_payload(MIN_UDP_PAYLOAD_BYTES, "the path drops full packets")?;
        }
        Ok(())
    }

    fn restart_with_payload(&mut self, udp_payload_bytes: u16, reason: &str) -> Result<(), WireError> {
        let now = self.host.now();
        let total: u64 = self.sources_bytes();
        let sent = self.host.node().sent_segments(self.association);
        self.before.1.iter_mut().zip(sent).for_each(|(sum, sent)| *sum += sent);
        self.host.node_mut().close(now, self.association, CODE_RECONNECT, reason);
        self.host.flush(FLUSH_TIMEOUT)?;
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

    /// The size of all items of this association, bytes.
    fn sources_bytes(&self) -> u64 {
        match &self.transfer {
            Some(transfer) => transfer.progress(self.host.node()).1,
            None => self.sources.iter().map(|source| source.size).sum(),
        }
    }

    /// The current UDP payload of full packets, which may be smaller than configured.
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
                transfer.set_compare(self.config.settings.compare);
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
        self.close_on_error(handled)
    }

    /// Handles answers of the disk.
    fn advance(&mut self) -> Result<(), WireError> {
        let now = self.host.now();
        let Some(transfer) = &mut self.transfer else { return Ok(()) };
        let advanced = transfer.advance(now, self.host.node_mut());
        self.close_on_error(advanced)
    }

    /// Closes the association on an error, with a reason for the peer.
    fn close_on_error(&mut self, result: Result<(), TransferError>) -> Result<(), WireError> {
        if let Err(error) = result {
            if !matches!(error, TransferError::Closed(_)) {
                self.close(error.code(), &error.to_string())?;
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// Ends the transfer; the received part stays.
    ///
    /// # Errors
    /// The socket failed.
    pub fn close(&mut self, code: u32, reason: &str) -> Result<(), WireError> {
        let now = self.host.now();
        self.ended.get_or_insert(self.opened.map_or(Duration::ZERO, |opened| opened.elapsed()));
        self.last_sent.get_or_insert(self.host.node().sent_segments(self.association));
        self.last_path = self.path();
        // Send earlier messages first.
        self.host.flush(FLUSH_TIMEOUT)?;
        self.host.node_mut().close(now, self.association, code, reason);
        Ok(self.host.flush(FLUSH_TIMEOUT)?)
    }

    /// The progress so far.
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

    /// The progress in files.
    pub fn files(&self) -> Files {
        let transfer = self.transfer.as_ref();
        let left = transfer.map_or_else(|| files_of(&self.sources), SendTransfer::files_left);
        Files {
            done: self.files - left,
            total: self.files,
            current: transfer.and_then(SendTransfer::current).map(ToString::to_string),
            resumed_bytes: transfer.map_or(0, SendTransfer::resumed_bytes),
        }
    }

    /// The state of each class's code point, and the initial rate of the tail.
    pub fn path(&self) -> (Vec<Mark>, Option<Rate>) {
        let node = self.host.node();
        let Some(path) = node.path(self.association) else { return self.last_path.clone() };
        ((0..node.config().classes).map(|class| path.mark(class)).collect(), path.tail_rate())
    }

    /// The peer's key, once it has connected.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.peer
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The host, for changes.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }
}

fn files_of(sources: &[Source]) -> u64 {
    sources.iter().filter(|source| source.kind == Kind::File).count() as u64
}

/// Creates a host and starts an association with the first address that has a route. Removes this address and those
/// before it.
fn connect_any(
    config: &WireConfig,
    addresses: &mut VecDeque<SocketAddr>,
) -> Result<(Host, SocketAddr, AssociationId), WireError> {
    let mut failed = WireError::NoAddress;
    while let Some(to) = addresses.pop_front() {
        match connect(config, to) {
            Ok((host, association)) => return Ok((host, to, association)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn connect(config: &WireConfig, to: SocketAddr) -> Result<(Host, AssociationId), WireError> {
    let mut host = config.on_route(to)?.bind(any_address(to), false)?;
    let now = host.now();
    let association = host.node_mut().connect(now, to).map_err(HostError::from)?;
    Ok((host, association))
}
