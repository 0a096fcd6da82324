//! The sites of a tunnel with their sockets: the dialing site listens at local ports, the serving site connects to its
//! targets.
//!
//! Both advance in steps of bounded duration, so that the caller can show events between steps and stop them.

use super::socket::{Listener, LocalSocket, connect};
use super::{Link, LinkConfig, LinkEvent, Target, TunnelError, Unanswered};
use crate::carrier::{AssociationId, CloseReason};
use crate::control::Service;
use crate::host::{Host, HostError};
use crate::identity::{Fingerprint, Trusted};
use crate::node::{NodeConfig, NodeEvent};
use crate::route::any_address;
use crate::service::{FLUSH_TIMEOUT, Revocation, WireConfig, WireError};
use crate::transfer::{CODE_DONE, CODE_RULES, CODE_STOPPED};
use nix::poll::{PollFd, PollFlags};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The pause before the first retry of an association; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Configuration of a tunnel.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// Keys, sockets and controller.
    pub wire: WireConfig,
    /// The maximum number of connections of an association.
    pub max_connections: usize,
    /// Makes new connections wait while there is no association; otherwise they are reset.
    pub waits: bool,
    /// The maximum pause before a retry of the association.
    pub longest_pause: Duration,
}

/// The default receive window of a connection in each direction, bytes.
const WINDOW_BYTES: u64 = 1 << 20;

impl TunnelConfig {
    /// Creates the default configuration: 256 connections, with windows of 1 MiB unless `wire` sets another size.
    pub fn new(wire: WireConfig) -> TunnelConfig {
        let window_bytes = wire.window_bytes.unwrap_or(WINDOW_BYTES);
        let node = NodeConfig { window_bytes, ..wire.node.clone() };
        let wire = WireConfig { node, ..wire };
        TunnelConfig { wire, max_connections: 256, waits: true, longest_pause: Duration::from_secs(10) }
    }

    /// The wire's configuration with memory for all connections, so that a stalled one does not affect the others.
    fn wire(&self) -> WireConfig {
        let node = &self.wire.node;
        let held_bytes = node.window_bytes.saturating_mul(self.max_connections as u64);
        let max_flows = 2 * self.max_connections;
        let node =
            NodeConfig { held_bytes, max_flows, max_flows_per_key: 2 * self.max_connections_per_key(), ..node.clone() };
        WireConfig { node, ..self.wire.clone() }
    }

    /// The maximum number of connections of all associations of a key.
    fn max_connections_per_key(&self) -> usize {
        4 * self.max_connections
    }

    fn link(&self) -> LinkConfig {
        LinkConfig { max_connections: self.max_connections, buffer_bytes: self.wire.node.window_bytes }
    }
}

/// An event of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelEvent {
    /// The other site has connected.
    Connected {
        /// Its key.
        peer: Fingerprint,
        /// Its address.
        address: SocketAddr,
    },
    /// The other site has disconnected, or could not be reached.
    Disconnected {
        /// Its key, if it had connected.
        peer: Option<Fingerprint>,
        /// The reason.
        error: String,
    },
    /// A connection is established from end to end.
    Opened {
        /// Its target.
        target: Target,
    },
    /// Both directions of a connection have ended.
    Closed {
        /// Its target.
        target: Target,
        /// Bytes read from the local socket.
        sent: u64,
        /// Bytes written to the local socket.
        received: u64,
    },
    /// A connection could not be established, or broke.
    Failed {
        /// Its target.
        target: Target,
        /// The reason.
        error: String,
    },
}

/// The association that a dialing site maintains.
#[derive(Debug)]
struct Dialer {
    to: SocketAddr,
    /// Further addresses of the other site, in the order of attempts.
    others: VecDeque<SocketAddr>,
    /// The number of consecutive failed attempts.
    failures: usize,
    association: Option<AssociationId>,
    began: Instant,
    next: Instant,
    pause: Duration,
    is_open: bool,
    /// True if an association has opened and did not end because of an untrusted key.
    was_authenticated: bool,
}

#[derive(Debug)]
struct Site {
    peer: Fingerprint,
    link: Link,
}

/// A pollable object other than the association's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pollable {
    Listener(usize),
    Socket(AssociationId, u32),
}

/// A site of one or several tunnels.
#[derive(Debug)]
pub struct Tunnel {
    host: Host,
    config: TunnelConfig,
    sites: BTreeMap<AssociationId, Site>,
    sockets: BTreeMap<(AssociationId, u32), LocalSocket>,
    /// Connections that wait for the next association, because the latest one ended before the answer.
    waiting: Vec<(LocalSocket, Unanswered)>,
    allowed: BTreeMap<Target, SocketAddr>,
    listeners: Vec<Listener>,
    dial: Option<Dialer>,
    stops: bool,
    buffer: Vec<u8>,
}

impl Tunnel {
    /// Creates the serving site. It accepts associations at `at`, and connects them to the targets in `allowed`, each
    /// at its address.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn serve(
        config: TunnelConfig,
        at: SocketAddr,
        allowed: BTreeMap<Target, SocketAddr>,
    ) -> Result<Tunnel, WireError> {
        Tunnel::new(config, at, allowed, vec![], None)
    }

    /// Creates the dialing site. It accepts TCP connections at each address in `forwards` and carries them to its target.
    /// The addresses `to` of the other site are tried in turn.
    ///
    /// # Errors
    /// A port cannot be used.
    pub fn dial(
        config: TunnelConfig,
        to: &[SocketAddr],
        forwards: Vec<(SocketAddr, Target)>,
    ) -> Result<Tunnel, WireError> {
        let listeners = forwards.into_iter().map(|(at, target)| {
            Listener::bind(at, target).map_err(|error| HostError::Socket { address: at, error }.into())
        });
        let listeners = listeners.collect::<Result<Vec<_>, WireError>>()?;
        let mut others: VecDeque<SocketAddr> = to.iter().copied().collect();
        let to = others.pop_front().ok_or(WireError::NoAddress)?;
        let (began, pause, failures) = (Instant::now(), FIRST_PAUSE, 0);
        let (association, is_open, was_authenticated) = (None, false, false);
        let dial = Dialer { to, others, failures, association, began, next: began, pause, is_open, was_authenticated };
        Tunnel::new(config, any_address(to), BTreeMap::new(), listeners, Some(dial))
    }

    fn new(
        config: TunnelConfig,
        at: SocketAddr,
        allowed: BTreeMap<Target, SocketAddr>,
        listeners: Vec<Listener>,
        dial: Option<Dialer>,
    ) -> Result<Tunnel, WireError> {
        // A dialing site's socket has a wildcard address, which says nothing about the interface.
        let host = match &dial {
            Some(dial) => config.wire().on_line(dial.to).bind(at, false)?,
            None => config.wire().bind(at, true)?,
        };
        let (sites, sockets, buffer) = (BTreeMap::new(), BTreeMap::new(), vec![0; super::socket::PIECE_BYTES]);
        let waiting = vec![];
        Ok(Tunnel { host, config, sites, sockets, waiting, allowed, listeners, dial, stops: false, buffer })
    }

    /// The address of the association's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.host.socket().local_address()
    }

    /// The addresses of the listening TCP ports, in the order of `forwards`.
    pub fn forwarded(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|listener| listener.address).collect()
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The host, for changes.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// The number of connections.
    pub fn connections(&self) -> usize {
        self.sockets.len() + self.waiting.len()
    }

    /// Replaces the trusted peers. The connections of others end, now or by themselves, as configured.
    pub fn set_trusted(&mut self, trusted: Trusted) {
        for association in self.host.set_trusted(trusted) {
            match self.sites.get_mut(&association) {
                Some(site) if self.config.wire.settings.revocation == Revocation::Finish => site.link.refuse_new(),
                _ => self.host.revoke(association),
            }
        }
    }

    /// Replaces the allowed targets; open connections stay.
    pub fn set_allowed(&mut self, allowed: BTreeMap<Target, SocketAddr>) {
        self.allowed = allowed;
    }

    /// Refuses new connections; open ones continue.
    pub fn stop(&mut self) {
        self.stops = true;
        self.listeners.clear();
    }

    /// Advances until something has happened, but no longer than `at_most`. Returns the events.
    ///
    /// # Errors
    /// The socket failed. On the first attempt to dial, also: one of the two sites does not trust the other's key.
    pub fn step(&mut self, at_most: Duration) -> Result<Vec<TunnelEvent>, WireError> {
        let until = Instant::now() + at_most;
        let mut events = vec![];
        loop {
            self.redial(&mut events)?;
            let is_quiet = self.host.advance()?;
            while let Some(event) = self.host.node_mut().poll_event() {
                self.handle(&event, &mut events)?;
            }
            self.process_links(&mut events);
            let left = until.saturating_duration_since(Instant::now());
            let ready = self.wait(if is_quiet && events.is_empty() { left } else { Duration::ZERO })?;
            for (pollable, flags) in ready {
                match pollable {
                    Pollable::Listener(at) => self.accept(at, &mut events),
                    Pollable::Socket(association, connection) => {
                        self.handle_ready(association, connection, flags, &mut events);
                    }
                }
            }
            self.process_links(&mut events);
            if !events.is_empty() || left.is_zero() {
                return Ok(events);
            }
        }
    }

    /// Ends all associations, with a reason for the peers.
    ///
    /// # Errors
    /// The socket failed.
    pub fn close(&mut self, reason: &str) -> Result<(), WireError> {
        self.stop();
        // Send the bytes that were read from sockets first.
        self.host.flush(FLUSH_TIMEOUT)?;
        let now = self.host.now();
        let code = if self.connections() == 0 { CODE_DONE } else { CODE_STOPPED };
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|(local, _)| local);
        std::mem::take(&mut self.sockets).into_values().chain(waiting).for_each(LocalSocket::reset);
        for association in std::mem::take(&mut self.sites).into_keys() {
            self.host.node_mut().close(now, association, code, reason);
        }
        Ok(self.host.flush(FLUSH_TIMEOUT)?)
    }

    /// Starts an association if one is due, and gives up an unanswered one.
    fn redial(&mut self, events: &mut Vec<TunnelEvent>) -> Result<(), WireError> {
        let (now, instant) = (self.host.now(), Instant::now());
        let Some(dial) = &mut self.dial else { return Ok(()) };
        match dial.association {
            None if instant >= dial.next && !self.stops => {
                if dial.to.is_ipv4() != self.host.socket().local_address().is_ipv4() {
                    // Nothing is lost with the old socket, because there is no association.
                    self.host = self.config.wire().on_line(dial.to).bind(any_address(dial.to), false)?;
                }
                // Packets of open associations keep their size and are fragmented.
                if let Some(bytes) = self.host.poll_fitting_payload(dial.to) {
                    self.host.set_udp_payload_bytes(bytes)?;
                }
                dial.association = Some(self.host.node_mut().connect(now, dial.to).map_err(HostError::from)?);
                dial.began = instant;
            }
            Some(association) if !dial.is_open && dial.began.elapsed() > dial.answer_timeout(&self.config.wire) => {
                self.host.node_mut().close(now, association, CODE_STOPPED, "no answer");
                let error = format!("{} does not answer", dial.to);
                dial.pause(self.config.longest_pause);
                events.push(TunnelEvent::Disconnected { peer: None, error });
            }
            _ => {}
        }
        Ok(())
    }

    fn handle(&mut self, event: &NodeEvent, events: &mut Vec<TunnelEvent>) -> Result<(), WireError> {
        let now = self.host.now();
        let association = match event {
            NodeEvent::Opened { association, peer, address } => {
                self.open(*association, *peer, *address, events);
                return Ok(());
            }
            NodeEvent::Control(association) | NodeEvent::Closed { association, .. } => *association,
            NodeEvent::Incoming(flow) | NodeEvent::Readable(flow) | NodeEvent::ReceiveFailed(flow) => flow.association,
            NodeEvent::Sent(flow) | NodeEvent::SendFailed(flow) => flow.association,
            _ => return Ok(()),
        };
        if let Some(site) = self.sites.get_mut(&association) {
            let result = site.link.handle_event(now, self.host.node_mut(), event);
            self.process_link(association, events);
            if let Err(error) = result {
                self.end_association(association, &error, events);
            }
        }
        let NodeEvent::Closed { reason, .. } = event else { return Ok(()) };
        let Some(dial) = self.dial.as_mut().filter(|dial| dial.association == Some(association)) else { return Ok(()) };
        let is_open = dial.is_open;
        let is_refused = matches!(reason, CloseReason::Untrusted(_) | CloseReason::NotTrusted(_));
        dial.was_authenticated |= is_open && !is_refused;
        let was_authenticated = dial.was_authenticated;
        dial.pause(self.config.longest_pause);
        match reason {
            // If the keys did not match at first, they will not match later.
            reason if is_refused && !was_authenticated => Err(closed(reason.clone())),
            _ if is_open => Ok(()),
            reason => {
                events.push(TunnelEvent::Disconnected { peer: None, error: reason.to_string() });
                Ok(())
            }
        }
    }

    fn open(&mut self, id: AssociationId, peer: Fingerprint, address: SocketAddr, events: &mut Vec<TunnelEvent>) {
        let now = self.host.now();
        if self.stops {
            return self.host.node_mut().close(now, id, CODE_STOPPED, "this site is stopping");
        }
        let link = match &mut self.dial {
            Some(dial) => {
                dial.is_open = true;
                Link::dialing(id, self.config.link())
            }
            None => {
                // If the greeting cannot be sent, the association has ended.
                let _ = self.host.node_mut().write_control(id, Service::Tunnel.greeting());
                Link::serving(id, self.config.link())
            }
        };
        self.sites.insert(id, Site { peer, link });
        events.push(TunnelEvent::Connected { peer, address });
        for (local, unanswered) in std::mem::take(&mut self.waiting) {
            let Some(site) = self.sites.get_mut(&id) else { return };
            match site.link.reopen(now, self.host.node_mut(), unanswered) {
                Ok(connection) => drop(self.sockets.insert((id, connection), local)),
                Err(error) => {
                    events.push(TunnelEvent::Failed { target: local.target.clone(), error: error.to_string() });
                    local.reset();
                }
            }
        }
    }

    /// Handles the end of an association, or ends it after a violation.
    fn end_association(&mut self, association: AssociationId, error: &TunnelError, events: &mut Vec<TunnelEvent>) {
        let Some(mut site) = self.sites.remove(&association) else { return };
        let now = self.host.now();
        let reason = error.to_string();
        // The other site has most likely not seen these requests.
        for unanswered in site.link.take_unanswered() {
            if self.config.waits
                && !self.stops
                && let Some(local) = self.sockets.remove(&(association, unanswered.connection))
            {
                self.waiting.push((local, unanswered));
            }
        }
        if !matches!(error, TunnelError::Closed(_)) {
            self.host.node_mut().close(now, association, CODE_RULES, &reason);
        }
        let open = self.sockets.range((association, 0)..=(association, u32::MAX)).map(|(&key, _)| key);
        for key in open.collect::<Vec<_>>() {
            self.fail(key, &reason, events);
        }
        events.push(TunnelEvent::Disconnected { peer: Some(site.peer), error: reason });
    }

    fn fail(&mut self, key: (AssociationId, u32), reason: &str, events: &mut Vec<TunnelEvent>) {
        if let Some(local) = self.sockets.remove(&key) {
            events.push(TunnelEvent::Failed { target: local.target.clone(), error: reason.to_owned() });
            local.reset();
        }
    }

    /// Carries out the actions of all links.
    fn process_links(&mut self, events: &mut Vec<TunnelEvent>) {
        let now = self.host.now();
        for association in self.sites.keys().copied().collect::<Vec<_>>() {
            self.process_link(association, events);
            // Only the serving site has an address at which it can be asked after a restart.
            if let Some(site) = self.sites.get_mut(&association).filter(|_| self.dial.is_some()) {
                site.link.check_silence(now, self.host.node_mut());
            }
            if self.sites.get(&association).is_some_and(|site| site.link.has_finished_last()) {
                self.host.revoke(association);
            }
        }
    }

    /// Carries out the actions of a link.
    fn process_link(&mut self, association: AssociationId, events: &mut Vec<TunnelEvent>) {
        while let Some(event) = self.sites.get_mut(&association).and_then(|site| site.link.poll_event()) {
            match event {
                LinkEvent::Connect { connection, target } => self.connect(association, connection, target, events),
                LinkEvent::Opened(connection) => {
                    if let Some(local) = self.sockets.get(&(association, connection)) {
                        events.push(TunnelEvent::Opened { target: local.target.clone() });
                    }
                }
                LinkEvent::Readable(connection) => self.write_to_socket(association, connection, events),
                LinkEvent::Done(connection) => {
                    if let Some(local) = self.sockets.remove(&(association, connection)) {
                        let LocalSocket { target, sent, received, .. } = local;
                        events.push(TunnelEvent::Closed { target, sent, received });
                    }
                }
                LinkEvent::Refused { connection, reason } | LinkEvent::Reset { connection, reason } => {
                    self.fail((association, connection), &reason, events);
                }
            }
        }
    }

    fn connect(&mut self, id: AssociationId, connection: u32, target: Target, events: &mut Vec<TunnelEvent>) {
        // Each connection has a socket, so those of all associations of a key count together.
        let most = self.config.max_connections_per_key();
        let peer = self.sites.get(&id).map(|site| site.peer);
        let of_key: usize =
            self.sites.values().filter(|site| Some(site.peer) == peer).map(|site| site.link.len()).sum();
        let begun = match self.allowed.get(&target) {
            _ if of_key > most => Err(format!("there are {most} connections of this key already, the limit")),
            None => Err(format!("{target} is not allowed")),
            Some(&address) => connect(address).map_err(|error| format!("{target}: {error}")),
        };
        match begun {
            Ok(stream) => {
                self.sockets.insert((id, connection), LocalSocket::connecting(stream, target));
            }
            Err(reason) => self.refuse(id, connection, target, reason, events),
        }
    }

    fn refuse(
        &mut self,
        id: AssociationId,
        connection: u32,
        target: Target,
        error: String,
        events: &mut Vec<TunnelEvent>,
    ) {
        let now = self.host.now();
        let Some(site) = self.sites.get_mut(&id) else { return };
        let result = site.link.refuse(now, self.host.node_mut(), connection, &error);
        self.sockets.remove(&(id, connection));
        events.push(TunnelEvent::Failed { target, error });
        if let Err(error) = result {
            self.end_association(id, &error, events);
        }
    }

    /// Accepts the waiting connections of a listener.
    fn accept(&mut self, at: usize, events: &mut Vec<TunnelEvent>) {
        while let Some((stream, target)) = self.listeners.get(at).and_then(Listener::accept) {
            let now = self.host.now();
            let association = self.dial.as_ref().filter(|dial| dial.is_open).and_then(|dial| dial.association);
            let site = association.and_then(|id| Some((id, self.sites.get_mut(&id)?)));
            let local = LocalSocket::accepted(stream, target.clone());
            let opened = match site {
                None => Err("there is no connection to the other site".to_owned()),
                Some((id, site)) => match site.link.open(now, self.host.node_mut(), target.clone()) {
                    Ok(connection) => Ok((id, connection)),
                    Err(error) => Err(error.to_string()),
                },
            };
            match opened {
                Ok(key) => {
                    self.sockets.insert(key, local);
                }
                Err(error) => {
                    local.reset();
                    events.push(TunnelEvent::Failed { target, error });
                }
            }
        }
    }

    /// Writes pending data to a socket.
    fn write_to_socket(&mut self, association: AssociationId, connection: u32, events: &mut Vec<TunnelEvent>) {
        let key = (association, connection);
        let (Some(local), Some(site)) = (self.sockets.get_mut(&key), self.sites.get_mut(&association)) else { return };
        if let Err(error) = local.write(|| site.link.read(self.host.node_mut(), connection)) {
            self.abort(key, &error.to_string(), events);
        }
    }

    fn abort(&mut self, key: (AssociationId, u32), reason: &str, events: &mut Vec<TunnelEvent>) {
        let (association, connection) = key;
        let Some(site) = self.sites.get_mut(&association) else { return };
        let result = site.link.handle_broken(self.host.node_mut(), connection, reason);
        self.fail(key, reason, events);
        if let Err(error) = result {
            self.end_association(association, &error, events);
        }
    }

    /// Handles an event of a socket.
    fn handle_ready(
        &mut self,
        association: AssociationId,
        connection: u32,
        flags: PollFlags,
        events: &mut Vec<TunnelEvent>,
    ) {
        let key = (association, connection);
        let now = self.host.now();
        let (Some(local), Some(site)) = (self.sockets.get_mut(&key), self.sites.get_mut(&association)) else { return };
        if local.is_connecting {
            let target = local.target.clone();
            match local.finish_connecting() {
                Ok(()) => {
                    let result = site.link.handle_connected(now, self.host.node_mut(), connection);
                    events.push(TunnelEvent::Opened { target });
                    if let Err(error) = result {
                        self.end_association(association, &error, events);
                    }
                }
                Err(error) => {
                    let reason = format!("{target}: {error}");
                    self.refuse(association, connection, target, reason, events);
                }
            }
            return;
        }
        if flags.contains(PollFlags::POLLOUT) {
            self.write_to_socket(association, connection, events);
        }
        let (Some(local), Some(site)) = (self.sockets.get_mut(&key), self.sites.get_mut(&association)) else { return };
        if !flags.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) || local.has_ended {
            return;
        }
        let room = site.link.room(self.host.node(), connection);
        match local.read(room, &mut self.buffer, |bytes| {
            site.link.handle_bytes(self.host.node_mut(), connection, bytes);
        }) {
            Ok(false) => {}
            Ok(true) => site.link.handle_end(self.host.node_mut(), connection),
            Err(error) => self.abort(key, &error.to_string(), events),
        }
    }

    /// Waits for an event, but no longer than `at_most`. Returns the listeners and sockets with events.
    fn wait(&mut self, at_most: Duration) -> Result<Vec<(Pollable, PollFlags)>, WireError> {
        let (mut pollables, mut polls) = (vec![], vec![]);
        let accepts = !self.stops && (!self.config.waits || self.dial.as_ref().is_some_and(|dial| dial.is_open));
        for (at, listener) in self.listeners.iter().enumerate().filter(|_| accepts) {
            pollables.push(Pollable::Listener(at));
            polls.push(PollFd::new(listener.fd(), PollFlags::POLLIN));
        }
        for (&(association, connection), local) in &self.sockets {
            let room = |site: &Site| site.link.room(self.host.node(), connection);
            let interest = local.interest(self.sites.get(&association).map_or(0, room));
            if !interest.is_empty() {
                pollables.push(Pollable::Socket(association, connection));
                polls.push(PollFd::new(local.fd(), interest));
            }
        }
        let redial = self.dial.as_ref().map_or(at_most, |dial| match dial.association {
            None => dial.next.saturating_duration_since(Instant::now()),
            Some(_) if !dial.is_open => dial.answer_timeout(&self.config.wire).saturating_sub(dial.began.elapsed()),
            Some(_) => at_most,
        });
        self.host.wait_with(at_most.min(redial.max(Duration::from_millis(1))), &mut polls)?;
        let flags = polls.iter().map(|poll| poll.revents().unwrap_or(PollFlags::empty()));
        Ok(pollables.into_iter().zip(flags).filter(|(_, flags)| !flags.is_empty()).collect())
    }
}

impl Dialer {
    /// The time to wait for an answer from one address; all of them together take as long as one alone.
    fn answer_timeout(&self, wire: &WireConfig) -> Duration {
        wire.settings.connect_timeout / (self.others.len() + 1) as u32
    }

    /// Schedules the next attempt, which follows at once if there is another address to try.
    fn pause(&mut self, longest: Duration) {
        self.failures = if self.is_open { 0 } else { self.failures + 1 };
        if !self.is_open && !self.others.is_empty() {
            self.others.push_back(self.to);
            self.to = self.others.pop_front().unwrap_or(self.to);
        }
        if !self.failures.is_multiple_of(self.others.len() + 1) {
            (self.association, self.next) = (None, Instant::now());
            return;
        }
        if self.is_open && self.began.elapsed() > longest {
            self.pause = FIRST_PAUSE;
        }
        (self.association, self.is_open) = (None, false);
        self.next = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(longest);
    }
}

fn closed(reason: CloseReason) -> WireError {
    crate::transfer::TransferError::Closed(reason).into()
}
