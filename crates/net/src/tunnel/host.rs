//! A tunnel with its sockets: the one that dials listens at ports of its own, the one that serves connects to its targets. Both go
//! on in steps, so that whoever runs them can show what happens, and stop.

use super::socket::{Accepting, Local, connect};
use super::{Link, LinkConfig, LinkEvent, Target, TunnelError};
use crate::carrier::{AssociationId, CloseReason};
use crate::control::Service;
use crate::host::{Host, HostError};
use crate::identity::Fingerprint;
use crate::node::{NodeConfig, NodeEvent};
use crate::service::{LAST_WORDS, WireConfig, WireError, any_address};
use crate::transfer::{CODE_DONE, CODE_RULES, CODE_STOPPED};
use nix::poll::{PollFd, PollFlags};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The first pause before an association is tried again; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// What can be set about a tunnel.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// Keys, sockets and controller.
    pub wire: WireConfig,
    /// The most connections of one association.
    pub max_connections: usize,
    /// Whether those who connect while there is no association wait until there is one; otherwise they are reset.
    pub waits: bool,
    /// The longest pause before the association is tried again.
    pub longest_pause: Duration,
}

/// The receive window of a connection, in each direction, unless set.
pub const WINDOW_BYTES: u64 = 1 << 20;

impl TunnelConfig {
    /// The defaults: 256 connections with windows of 1 MiB.
    pub fn new(wire: WireConfig) -> TunnelConfig {
        let node = NodeConfig { window_bytes: WINDOW_BYTES, ..wire.node.clone() };
        let wire = WireConfig { node, ..wire };
        TunnelConfig { wire, max_connections: 256, waits: true, longest_pause: Duration::from_secs(10) }
    }

    /// The wire's settings with room for all connections: a stalled one takes nothing of the others.
    fn wire(&self) -> WireConfig {
        let node = &self.wire.node;
        let held_bytes = node.window_bytes.saturating_mul(self.max_connections as u64);
        let node = NodeConfig { held_bytes, max_flows: 2 * self.max_connections, ..node.clone() };
        WireConfig { node, ..self.wire.clone() }
    }

    fn link(&self) -> LinkConfig {
        LinkConfig { max_connections: self.max_connections, buffer_bytes: self.wire.node.window_bytes }
    }
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelEvent {
    /// The other site is there.
    Connected {
        /// Its key.
        peer: Fingerprint,
        /// Its address.
        address: SocketAddr,
    },
    /// The other site is gone, or was not reached.
    Disconnected {
        /// Its key, if it was there.
        peer: Option<Fingerprint>,
        /// Why.
        error: String,
    },
    /// A connection is open from end to end.
    Opened {
        /// Its target.
        target: Target,
    },
    /// Both directions of a connection have come to their end.
    Closed {
        /// Its target.
        target: Target,
        /// Bytes that the local socket brought, and that it was given.
        sent: u64,
        /// Bytes that it was given.
        received: u64,
    },
    /// A connection could not be made, or broke.
    Failed {
        /// Its target.
        target: Target,
        /// Why.
        error: String,
    },
}

/// The association that a dialing site keeps up.
#[derive(Debug)]
struct Dial {
    to: SocketAddr,
    /// Where the site may be, too, in the order in which that is tried.
    others: VecDeque<SocketAddr>,
    /// Addresses at which nobody was, one after another.
    missed: usize,
    association: Option<AssociationId>,
    began: Instant,
    next: Instant,
    pause: Duration,
    is_open: bool,
    /// Whether an association has ended otherwise than by a key that is not trusted.
    was_good: bool,
}

#[derive(Debug)]
struct Site {
    peer: Fingerprint,
    link: Link,
}

/// What a poll says of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Listener(usize),
    Socket(AssociationId, u32),
}

/// One site of a tunnel, or of several.
#[derive(Debug)]
pub struct Tunnel {
    host: Host,
    config: TunnelConfig,
    sites: BTreeMap<AssociationId, Site>,
    sockets: BTreeMap<(AssociationId, u32), Local>,
    allowed: BTreeMap<Target, SocketAddr>,
    listeners: Vec<Accepting>,
    dial: Option<Dial>,
    stops: bool,
    scratch: Vec<u8>,
}

impl Tunnel {
    /// The site that serves: it listens for other sites at this address, and connects them to the targets that are allowed, each
    /// at the address beside it.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn serve(
        config: TunnelConfig,
        at: SocketAddr,
        allowed: BTreeMap<Target, SocketAddr>,
    ) -> Result<Tunnel, WireError> {
        Tunnel::new(config, at, allowed, vec![], None)
    }

    /// The site that dials: it listens for TCP connections at each of these addresses, and carries them to the target beside it,
    /// over the site that has the addresses of `to`, which are tried in turn.
    ///
    /// # Errors
    /// A port cannot be had.
    pub fn dial(
        config: TunnelConfig,
        to: &[SocketAddr],
        forwards: Vec<(SocketAddr, Target)>,
    ) -> Result<Tunnel, WireError> {
        let listeners = forwards.into_iter().map(|(at, target)| {
            Accepting::bind(at, target).map_err(|error| HostError::Socket { address: at, error }.into())
        });
        let listeners = listeners.collect::<Result<Vec<_>, WireError>>()?;
        let mut others: VecDeque<SocketAddr> = to.iter().copied().collect();
        let to = others.pop_front().ok_or(WireError::NoAddress)?;
        let (began, pause, missed) = (Instant::now(), FIRST_PAUSE, 0);
        let (association, is_open, was_good) = (None, false, false);
        let dial = Dial { to, others, missed, association, began, next: began, pause, is_open, was_good };
        Tunnel::new(config, any_address(to), BTreeMap::new(), listeners, Some(dial))
    }

    fn new(
        config: TunnelConfig,
        at: SocketAddr,
        allowed: BTreeMap<Target, SocketAddr>,
        listeners: Vec<Accepting>,
        dial: Option<Dial>,
    ) -> Result<Tunnel, WireError> {
        let host = config.wire().bind(at, dial.is_none())?;
        let (sites, sockets, scratch) = (BTreeMap::new(), BTreeMap::new(), vec![0; super::socket::PIECE_BYTES]);
        Ok(Tunnel { host, config, sites, sockets, allowed, listeners, dial, stops: false, scratch })
    }

    /// Where the association's socket is.
    pub fn local_address(&self) -> SocketAddr {
        self.host.socket().local_address()
    }

    /// Where TCP connections are taken, in the order in which they were asked for.
    pub fn forwarded(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|listener| listener.address).collect()
    }

    /// Its host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its host, to be set and asked.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// Connections that there are.
    pub fn connections(&self) -> usize {
        self.sockets.len()
    }

    /// From now on these targets are served; connections that are open stay.
    pub fn set_allowed(&mut self, allowed: BTreeMap<Target, SocketAddr>) {
        self.allowed = allowed;
    }

    /// Takes no more connections; those that are open go on.
    pub fn stop(&mut self) {
        self.stops = true;
        self.listeners.clear();
    }

    /// Goes on for so long at most, or until something has happened. Returns what has.
    ///
    /// # Errors
    /// The socket is broken, or the site that is dialed first has another key than those that are trusted, or does not trust this
    /// one.
    pub fn step(&mut self, at_most: Duration) -> Result<Vec<TunnelEvent>, WireError> {
        let until = Instant::now() + at_most;
        let mut events = vec![];
        loop {
            self.redial(&mut events)?;
            let is_quiet = self.host.advance()?;
            while let Some(event) = self.host.node_mut().poll_event() {
                self.handle(&event, &mut events)?;
            }
            self.tend(&mut events);
            let left = until.saturating_duration_since(Instant::now());
            let ready = self.wait(if is_quiet && events.is_empty() { left } else { Duration::ZERO })?;
            for (place, flags) in ready {
                match place {
                    Place::Listener(at) => self.accept(at, &mut events),
                    Place::Socket(association, connection) => {
                        self.handle_ready(association, connection, flags, &mut events);
                    }
                }
            }
            self.tend(&mut events);
            if !events.is_empty() || left.is_zero() {
                return Ok(events);
            }
        }
    }

    /// Ends all associations, with a reason for the peers.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn close(&mut self, reason: &str) -> Result<(), WireError> {
        self.stop();
        // What was taken from sockets leaves first.
        self.host.flush(LAST_WORDS)?;
        let now = self.host.now();
        let code = if self.sockets.is_empty() { CODE_DONE } else { CODE_STOPPED };
        std::mem::take(&mut self.sockets).into_values().for_each(Local::reset);
        for association in std::mem::take(&mut self.sites).into_keys() {
            self.host.node_mut().close(now, association, code, reason);
        }
        Ok(self.host.flush(LAST_WORDS)?)
    }

    /// Begins an association where there is none and it is time, and gives up one that nobody answers.
    fn redial(&mut self, events: &mut Vec<TunnelEvent>) -> Result<(), WireError> {
        let (now, instant) = (self.host.now(), Instant::now());
        let Some(dial) = &mut self.dial else { return Ok(()) };
        match dial.association {
            None if instant >= dial.next && !self.stops => {
                if dial.to.is_ipv4() != self.host.socket().local_address().is_ipv4() {
                    // Without an association, nothing is lost with the socket of the other family.
                    self.host = self.config.wire().bind(any_address(dial.to), false)?;
                }
                // Packets of connections that there are stay as large, in fragments.
                if let Some(bytes) = self.host.poll_fitting_payload(dial.to) {
                    self.host.set_udp_payload_bytes(bytes)?;
                }
                dial.association = Some(self.host.node_mut().connect(now, dial.to).map_err(HostError::from)?);
                dial.began = instant;
            }
            Some(association) if !dial.is_open && dial.began.elapsed() > dial.patience(&self.config.wire) => {
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
            self.act(association, events);
            if let Err(error) = result {
                self.lose(association, &error, events);
            }
        }
        let NodeEvent::Closed { reason, .. } = event else { return Ok(()) };
        let Some(dial) = self.dial.as_mut().filter(|dial| dial.association == Some(association)) else { return Ok(()) };
        let is_open = dial.is_open;
        let is_refused = matches!(reason, CloseReason::Untrusted(_) | CloseReason::NotTrusted(_));
        dial.was_good |= is_open && !is_refused;
        let was_good = dial.was_good;
        dial.pause(self.config.longest_pause);
        match reason {
            // Whoever never was there under these keys will not be later.
            reason if is_refused && !was_good => Err(closed(reason.clone())),
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
                // What cannot be said is not needed: the association is over then.
                let _ = self.host.node_mut().write_control(id, Service::Tunnel.greeting());
                Link::serving(id, self.config.link())
            }
        };
        self.sites.insert(id, Site { peer, link });
        events.push(TunnelEvent::Connected { peer, address });
    }

    /// An association is over, or its peer is cut off.
    fn lose(&mut self, association: AssociationId, error: &TunnelError, events: &mut Vec<TunnelEvent>) {
        let Some(site) = self.sites.remove(&association) else { return };
        let now = self.host.now();
        let reason = error.to_string();
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

    /// Does at the sockets what every link asks for.
    fn tend(&mut self, events: &mut Vec<TunnelEvent>) {
        for association in self.sites.keys().copied().collect::<Vec<_>>() {
            self.act(association, events);
        }
    }

    /// Does at the sockets what a link asks for.
    fn act(&mut self, association: AssociationId, events: &mut Vec<TunnelEvent>) {
        while let Some(event) = self.sites.get_mut(&association).and_then(|site| site.link.poll_event()) {
            match event {
                LinkEvent::Connect { connection, target } => self.connect(association, connection, target, events),
                LinkEvent::Opened(connection) => {
                    if let Some(local) = self.sockets.get(&(association, connection)) {
                        events.push(TunnelEvent::Opened { target: local.target.clone() });
                    }
                }
                LinkEvent::Readable(connection) => self.give(association, connection, events),
                LinkEvent::Done(connection) => {
                    if let Some(local) = self.sockets.remove(&(association, connection)) {
                        let Local { target, sent, received, .. } = local;
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
        let begun = match self.allowed.get(&target) {
            None => Err(format!("{target} is not allowed")),
            Some(&address) => connect(address).map_err(|error| format!("{target}: {error}")),
        };
        match begun {
            Ok(stream) => {
                self.sockets.insert((id, connection), Local::connecting(stream, target));
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
            self.lose(id, &error, events);
        }
    }

    /// Somebody has connected to a port here.
    fn accept(&mut self, at: usize, events: &mut Vec<TunnelEvent>) {
        while let Some((stream, target)) = self.listeners.get(at).and_then(Accepting::accept) {
            let now = self.host.now();
            let association = self.dial.as_ref().filter(|dial| dial.is_open).and_then(|dial| dial.association);
            let site = association.and_then(|id| Some((id, self.sites.get_mut(&id)?)));
            let local = Local::accepted(stream, target.clone());
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

    /// Writes to a socket what there is for it.
    fn give(&mut self, association: AssociationId, connection: u32, events: &mut Vec<TunnelEvent>) {
        let key = (association, connection);
        let (Some(local), Some(site)) = (self.sockets.get_mut(&key), self.sites.get_mut(&association)) else { return };
        if let Err(error) = local.give(|| site.link.take(self.host.node_mut(), connection)) {
            self.break_off(key, &error.to_string(), events);
        }
    }

    fn break_off(&mut self, key: (AssociationId, u32), reason: &str, events: &mut Vec<TunnelEvent>) {
        let (association, connection) = key;
        let Some(site) = self.sites.get_mut(&association) else { return };
        let result = site.link.handle_broken(self.host.node_mut(), connection, reason);
        self.fail(key, reason, events);
        if let Err(error) = result {
            self.lose(association, &error, events);
        }
    }

    /// Something has happened at a socket.
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
        if local.connects {
            let target = local.target.clone();
            match local.finish_connecting() {
                Ok(()) => {
                    let result = site.link.handle_connected(now, self.host.node_mut(), connection);
                    events.push(TunnelEvent::Opened { target });
                    if let Err(error) = result {
                        self.lose(association, &error, events);
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
            self.give(association, connection, events);
        }
        let (Some(local), Some(site)) = (self.sockets.get_mut(&key), self.sites.get_mut(&association)) else { return };
        if !flags.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) || local.has_ended {
            return;
        }
        let room = site.link.room(self.host.node(), connection);
        match local.take(room, &mut self.scratch, |bytes| {
            site.link.handle_bytes(self.host.node_mut(), connection, bytes);
        }) {
            Ok(false) => {}
            Ok(true) => site.link.handle_end(self.host.node_mut(), connection),
            Err(error) => self.break_off(key, &error.to_string(), events),
        }
    }

    /// Waits until something happens somewhere, for so long at most. Returns the sockets at which something has.
    fn wait(&mut self, at_most: Duration) -> Result<Vec<(Place, PollFlags)>, WireError> {
        let (mut places, mut polls) = (vec![], vec![]);
        let takes = !self.stops && (!self.config.waits || self.dial.as_ref().is_some_and(|dial| dial.is_open));
        for (at, listener) in self.listeners.iter().enumerate().filter(|_| takes) {
            places.push(Place::Listener(at));
            polls.push(PollFd::new(listener.fd(), PollFlags::POLLIN));
        }
        for (&(association, connection), local) in &self.sockets {
            let room = |site: &Site| site.link.room(self.host.node(), connection);
            let wants = local.wants(self.sites.get(&association).map_or(0, room));
            if !wants.is_empty() {
                places.push(Place::Socket(association, connection));
                polls.push(PollFd::new(local.fd(), wants));
            }
        }
        let redial = self.dial.as_ref().map_or(at_most, |dial| match dial.association {
            None => dial.next.saturating_duration_since(Instant::now()),
            Some(_) if !dial.is_open => dial.patience(&self.config.wire).saturating_sub(dial.began.elapsed()),
            Some(_) => at_most,
        });
        self.host.wait_beside(at_most.min(redial.max(Duration::from_millis(1))), &mut polls)?;
        let flags = polls.iter().map(|poll| poll.revents().unwrap_or(PollFlags::empty()));
        Ok(places.into_iter().zip(flags).filter(|(_, flags)| !flags.is_empty()).collect())
    }
}

impl Dial {
    /// How long an answer from the address is waited for: all of them together take as long as one would alone.
    fn patience(&self, wire: &WireConfig) -> Duration {
        wire.connect_timeout / (self.others.len() + 1) as u32
    }

    /// The association is over; the next attempt comes later, or at once where there is another address.
    fn pause(&mut self, longest: Duration) {
        self.missed = if self.is_open { 0 } else { self.missed + 1 };
        if !self.is_open && !self.others.is_empty() {
            self.others.push_back(self.to);
            self.to = self.others.pop_front().unwrap_or(self.to);
        }
        if !self.missed.is_multiple_of(self.others.len() + 1) {
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
