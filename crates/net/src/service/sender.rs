//! A sender of files to one host.

use super::FLUSH_TIMEOUT;
use super::config::{WireConfig, dur};
use super::error::WireError;
use super::stall_schedule::StallSchedule;
use crate::carrier::Unreachable;
use crate::disk::Disk;
use crate::flow::MAX_CLASSES;
use crate::host::{Host, HostError};
use crate::identity::Fingerprint;
use crate::node::path::Mark;
use crate::route::any_address;
use crate::transfer::session::{STUCK_MARGIN, Session};
use crate::transfer::{CODE_DONE, CODE_RECONNECT, Outcome, Source, TransferError};
use crate::udp::obstacle_of;
use sparelane_core::{Dur, Rate};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The UDP payload of the smallest IPv6 MTU, used after the path has started to drop larger packets.
const MIN_UDP_PAYLOAD_BYTES: u16 = 1232;

/// The progress of a sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// True once the peer has connected.
    pub connected: bool,
    /// Bytes that the receiver has.
    pub bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// The time since the first association opened.
    pub elapsed: Duration,
    /// Segments sent, by class.
    pub sent: [u64; MAX_CLASSES],
    /// The time for which the peer has not answered, although it should have.
    pub silence: Option<Duration>,
    /// The number of connections that were lost.
    pub losses: u32,
    /// The reason of the latest loss.
    pub last_loss: Option<String>,
    /// True while a lost connection is not restored.
    pub is_lost: bool,
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
    /// The instant from which the times of all hosts are counted.
    epoch: Instant,
    /// The address for whose route the host was created.
    host_for: SocketAddr,
    session: Session,
    disk: Disk,
    ended: Option<Duration>,
    /// The latest known state of the path.
    last_path: (Vec<Mark>, Option<Rate>),
    stall: StallSchedule,
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
        let first = *addresses.first().ok_or(WireError::NoAddress)?;
        let mut config = config.clone();
        config.node.give_up_after = dur(config.settings.idle_timeout) + STUCK_MARGIN;
        let epoch = Instant::now();
        // Without a route, the first attempt fails.
        let routed = config.on_route(first).unwrap_or_else(|_| config.clone());
        let host = routed.bind_since(epoch, any_address(first), false)?;
        let (limits, stall_timeout) = (config.limits(), config.stall_timeout());
        let mut session = Session::new(sources, addresses.to_vec(), limits, stall_timeout, host.now());
        session.set_compare(config.settings.compare);
        let mut sender = FileSender {
            host,
            stall: StallSchedule::of(&config),
            config,
            epoch,
            host_for: first,
            session,
            disk: Disk::start().map_err(WireError::Disk)?,
            ended: None,
            last_path: Default::default(),
        };
        sender.connect_if_due()?;
        Ok(sender)
    }

    /// Begins an association if it is time for one.
    fn connect_if_due(&mut self) -> Result<(), WireError> {
        while let Some(to) = self.session.poll(self.host.now(), self.host.node_mut())? {
            let now = self.host.now();
            let routed = match self.config.on_route(to) {
                Ok(routed) => routed,
                Err(error) => {
                    self.session.handle_refused(now, no_route(to, &error));
                    continue;
                }
            };
            // A socket has one IP version, and packets that fit one route. After the first
            // connection, the address stays.
            if to != self.host_for {
                self.host = routed.bind_since(self.epoch, any_address(to), false)?;
                self.host_for = to;
            }
            self.session.begin(now, self.host.node_mut(), to).map_err(HostError::from)?;
        }
        Ok(())
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
            let attempt = self.session.next_timer().saturating_since(self.host.now());
            let at_most = left.min(self.stall.interval).min(Duration::from_nanos(attempt.as_ps().div_ceil(1000)));
            let event = self.host.next_event_or_readable(at_most, Some(self.disk.ready_fd()))?;
            let now = self.host.now();
            if let Some(event) = event {
                let handled = self.session.handle_event(now, self.host.node_mut(), &event, Some(&self.disk));
                self.close_on_error(handled)?;
            }
            if self.disk.take_ready() {
                let advanced = self.session.advance(now, self.host.node_mut());
                self.close_on_error(advanced)?;
            }
            if self.stall.is_due() {
                let checked = self.session.check_stall(now, self.host.node());
                self.close_on_error(checked)?;
                self.note_path();
            }
            outcomes.extend(std::iter::from_fn(|| self.session.poll_outcome()));
            if self.session.is_done() {
                self.close(CODE_DONE, "the transfer is complete")?;
                break;
            }
            self.connect_if_due()?;
            self.apply_path_mtu()?;
            self.check_black_hole()?;
            if left.is_zero() {
                break;
            }
        }
        Ok(outcomes)
    }

    /// If a router reports that full packets are too large, continues in another association with smaller ones.
    fn apply_path_mtu(&mut self) -> Result<(), WireError> {
        match self.host.poll_fitting_payload(self.host_for) {
            Some(bytes) => self.restart_with_payload(bytes, "a router reports that packets of this size are too large"),
            None => Ok(()),
        }
    }

    /// If the path starts to drop full packets, continues in another association with small ones.
    fn check_black_hole(&mut self) -> Result<(), WireError> {
        let now = self.host.now();
        let is_large = self.host.node().carrier().udp_payload_bytes() > MIN_UDP_PAYLOAD_BYTES;
        let drops = self.session.drops_full_packets(now, self.host.node_mut());
        if is_large && drops.map_err(HostError::from)? {
            self.restart_with_payload(MIN_UDP_PAYLOAD_BYTES, "the path drops full packets")?;
        }
        Ok(())
    }

    fn restart_with_payload(&mut self, udp_payload_bytes: u16, reason: &str) -> Result<(), WireError> {
        self.note_path();
        let now = self.host.now();
        let left = self.session.leave(now, self.host.node_mut(), CODE_RECONNECT, reason);
        self.close_on_error(left)?;
        self.host.flush(FLUSH_TIMEOUT)?;
        self.host.set_udp_payload_bytes(udp_payload_bytes)?;
        self.connect_if_due()
    }

    /// The current UDP payload of full packets, which may be smaller than configured.
    pub fn udp_payload_bytes(&self) -> u16 {
        self.host.node().carrier().udp_payload_bytes()
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
        let elapsed = self.progress().elapsed;
        self.ended.get_or_insert(elapsed);
        self.note_path();
        let now = self.host.now();
        // Send earlier messages first.
        self.host.flush(FLUSH_TIMEOUT)?;
        if let Some(association) = self.session.association() {
            self.host.node_mut().close(now, association, code, reason);
        }
        Ok(self.host.flush(FLUSH_TIMEOUT)?)
    }

    /// The progress so far.
    pub fn progress(&self) -> Progress {
        let (now, node) = (self.host.now(), self.host.node());
        let (bytes, total_bytes) = self.session.progress(node);
        let running = || self.session.opened().map_or(Duration::ZERO, |opened| span(now.saturating_since(opened)));
        let ((losses, last_loss), is_running) = (self.session.losses(), self.ended.is_none());
        Progress {
            connected: self.session.opened().is_some(),
            bytes,
            total_bytes,
            elapsed: self.ended.unwrap_or_else(running),
            sent: node.totals().sent,
            silence: self.session.silence(now, node).filter(|_| is_running).map(span),
            losses,
            last_loss: last_loss.map(ToString::to_string),
            is_lost: self.session.is_lost() && is_running,
            done: self.ended.is_some(),
        }
    }

    /// The progress in files.
    pub fn files(&self) -> Files {
        let (done, total) = self.session.files();
        let current = self.session.current().map(ToString::to_string);
        Files { done, total, current, resumed_bytes: self.session.resumed_bytes() }
    }

    /// Keeps the state of the path, which is gone when the association ends.
    fn note_path(&mut self) {
        self.last_path = self.path();
    }

    /// The state of each class's code point, and the initial rate of the tail.
    pub fn path(&self) -> (Vec<Mark>, Option<Rate>) {
        let node = self.host.node();
        let path = self.session.association().and_then(|association| node.path(association));
        let Some(path) = path else { return self.last_path.clone() };
        ((0..node.config().classes).map(|class| path.mark(class)).collect(), path.tail_rate())
    }

    /// The peer's key, once it has connected.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.session.peer()
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

/// Converts the error of a missing route to a report, or to a text.
pub(crate) fn no_route(to: SocketAddr, error: &io::Error) -> Result<Unreachable, String> {
    let obstacle = error.raw_os_error().and_then(|errno| obstacle_of(errno as u32, true));
    obstacle.map(|obstacle| Unreachable { to, obstacle, reporter: None }).ok_or_else(|| error.to_string())
}

fn span(span: Dur) -> Duration {
    Duration::from_nanos(span.as_ps() / 1000)
}
