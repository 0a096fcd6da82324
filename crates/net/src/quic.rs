//! The carrier over QUIC: frames in DATAGRAM frames (RFC 9221) of an unmodified quinn-proto, with one connection per
//! class on one socket.
//!
//! Packets of a lower class can be overtaken by thousands of others, but QUIC's replay window spans only 129 packet
//! numbers. A loss in one class must not look like a loss in another, either. Each class is therefore a connection with
//! its own packet numbers and keys. The client opens all of them at once; a class becomes usable as soon as its
//! connection is established, and none waits for another. [`hello`] describes how the connections are bound to one
//! association.

mod admission;
mod hello;
mod hybrid;
pub mod plain;
mod scope;
mod settings;
mod verifier;

pub(crate) use settings::UDP_PAYLOAD_BYTES;
pub use settings::{DEFAULT_BATCH, QuicConfig};

use crate::carrier::{Arrival, AssociationId, Carrier, CarrierError, CarrierEvent, CloseReason, Datagram, Unreachable};
use crate::flow::MAX_CLASSES;
use crate::identity::{Fingerprint, Identity, Trusted};
use crate::peer_text::PeerText;
use admission::{Admission, HalfOpen, Rates};
use bytes::{Bytes, BytesMut};
use hello::{HELLO_BYTES, Hello, Secret};
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointEvent, Event,
    Incoming, StreamId, Transmit, VarInt,
};
use rustls::pki_types::CertificateDer;
use settings::{CONTROL_WINDOW_BYTES, Settings};
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The time in which an authenticated connection has to send its hello.
const HELLO_TIMEOUT: Dur = Dur::from_secs(30);

/// The maximum number of authenticated connections of one peer without a hello.
const MAX_UNBOUND_PER_PEER: usize = 64;

/// The maximum number of closed connections of strangers that still answer late packets.
const MAX_CLOSING: usize = 256;

/// The maximum memory of frames that arrive before the hello of their connection, and of all such frames, bytes.
const EARLY_BYTES: usize = 256 << 10;
const ALL_EARLY_BYTES: usize = 16 << 20;

/// The memory of a frame beside its bytes.
const FRAME_BYTES: usize = 128;

/// The maximum number of bytes read at once from the control stream.
const CONTROL_CHUNK: usize = 64 << 10;

/// The maximum number of buffers kept for reuse.
const MAX_SPARE: usize = 64;

/// The initial retransmission timeout of a handshake: three times the assumed round-trip time (RFC 9002 section 6.2.2).
/// If an answer is lost, the acknowledgment follows the peer's retransmission, and the sample is at least this large.
/// The round-trip time counts as unknown until there is a smaller one.
const FIRST_TIMEOUT: Duration = Duration::from_millis(999);

/// Other samples, and so the mean, can have the same excess. No sample is too small, because packet numbers are unique.
/// The round-trip time is therefore limited to this multiple of the minimum.
const MAX_OVER_MIN: u32 = 4;

/// The reason that a peer gets whose key was removed from the trusted ones.
const REVOKED: &str = "this key is not trusted any more";

/// The close code for violations of this layer's protocol.
const CODE_PROTOCOL: u32 = 1;

/// The close code for a peer that was silent for too long.
pub const CODE_SILENT: u32 = 9;

/// The close code for a peer whose key was removed from the trusted ones.
pub const CODE_REVOKED: u32 = 7;

/// QUIC's bytes in a full packet: short header with connection ID, packet number, tag, and the frame's type and length.
const QUIC_BYTES: usize = 1 + settings::CONNECTION_ID_BYTES + 4 + 16 + 9;

/// A QUIC connection.
struct Channel {
    quic: Connection,
    /// Distinguishes connections that have the same handle one after another.
    serial: u64,
    is_client: bool,
    connected: bool,
    peer: Option<Fingerprint>,
    /// The association and class to which it is bound.
    bound_to: Option<(AssociationId, u8)>,
    stream: Option<StreamId>,
    /// The DSCP of the latest datagram.
    dscp: Option<u8>,
    /// The class of that code point.
    arrival_class: u8,
    /// The time of the latest datagram.
    received_at: Time,
    /// The first bytes of its stream, until the hello is complete.
    hello_bytes: Vec<u8>,
    hello: Option<Hello>,
    /// Frames that arrived before the hello, with their memory in bytes.
    early: Vec<Bytes>,
    early_bytes: usize,
    timer: Time,
    /// The reason for which it ended.
    lost: Option<CloseReason>,
}

/// An association between this host and a peer.
struct Association {
    channels: [Option<usize>; MAX_CLASSES],
    peer: Option<Fingerprint>,
    secret: Option<Secret>,
    is_open: bool,
    /// True if the peer initiated the association.
    is_incoming: bool,
    idle_check: IdleCheck,
}

/// Detects that a peer has gone. QUIC's own idle timeout cannot be used for two reasons. The class of
/// an incoming connection is unknown when it is accepted, and lower classes may be idle for long.
/// Besides, that timeout sends no message (RFC 9000 section 10.1), so that a peer would not learn
/// that only its own packets are lost.
#[derive(Clone, Copy)]
struct IdleCheck {
    /// Frames of class 0 received at the last check, and the time of the latest one. Only authentic packets have
    /// frames.
    frames: u64,
    latest: Time,
    /// The time of the next check.
    next: Time,
}

impl IdleCheck {
    fn begun(now: Time) -> IdleCheck {
        IdleCheck { frames: 0, latest: now, next: Time::NEVER }
    }
}

/// The carrier.
pub struct Quic {
    endpoint: Endpoint,
    settings: Settings,
    config: QuicConfig,
    /// The instant of [`Time::ZERO`].
    epoch: Instant,
    channels: BTreeMap<usize, Channel>,
    associations: BTreeMap<AssociationId, Association>,
    next_association: u64,
    /// Connections by the time of their next timer.
    timers: BTreeSet<(Time, usize)>,
    /// Connections of peers that have not proved a trusted key.
    half_open: HalfOpen,
    /// The rate at which each key begins associations.
    rates: Rates,
    /// Closed connections of strangers, oldest first, with their serial numbers.
    closing: VecDeque<(usize, u64)>,
    /// The serial number of the next connection.
    next_serial: u64,
    /// Authenticated connections not yet bound to an association, with their deadline.
    unbound: BTreeMap<usize, Time>,
    /// The memory of the frames that wait in these connections, bytes.
    early_bytes: usize,
    /// Associations by the time of their next idle check.
    idle_checks: BTreeSet<(Time, AssociationId)>,
    /// Connections that may have something to send.
    dirty: BTreeSet<usize>,
    events: VecDeque<CarrierEvent>,
    /// The unread control data of associations that have ended, until their end is reported. The
    /// window of the stream limits each.
    unread: BTreeMap<AssociationId, VecDeque<Bytes>>,
    out: VecDeque<Datagram>,
    /// Buffers of sent datagrams, for reuse.
    spare: Vec<Vec<u8>>,
}

impl fmt::Debug for Quic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (associations, connections) = (self.associations.len(), self.channels.len());
        write!(f, "Quic {{ associations: {associations}, connections: {connections} }}")
    }
}

impl Quic {
    /// Creates a carrier whose times are counted from `epoch`.
    ///
    /// # Errors
    /// A setting is out of range, or the keys cannot be used.
    pub fn new(config: QuicConfig, epoch: Instant) -> Result<Quic, CarrierError> {
        let settings = Settings::of(&config)?;
        let (endpoint, server) = (settings.endpoint.clone(), settings.server.clone());
        Ok(Quic {
            endpoint: Endpoint::new(endpoint, server, false, settings.seed),
            settings,
            config,
            epoch,
            channels: BTreeMap::new(),
            associations: BTreeMap::new(),
            next_association: 1,
            timers: BTreeSet::new(),
            half_open: HalfOpen::default(),
            rates: Rates::default(),
            closing: VecDeque::new(),
            next_serial: 0,
            unbound: BTreeMap::new(),
            early_bytes: 0,
            idle_checks: BTreeSet::new(),
            dirty: BTreeSet::new(),
            events: VecDeque::new(),
            unread: BTreeMap::new(),
            out: VecDeque::new(),
            spare: Vec::new(),
        })
    }

    /// Returns a carrier with the same configuration and without any connection.
    pub(crate) fn restarted(&self, seed: u64) -> Result<Quic, CarrierError> {
        let trusted = self.settings.verifier.trusted();
        Quic::new(QuicConfig { trusted, seed: Some(seed), ..self.config.clone() }, self.epoch)
    }

    /// Returns a carrier with the same keys at another address.
    #[cfg(test)]
    pub(crate) fn moved(&self, local: SocketAddr) -> Result<Quic, CarrierError> {
        Quic::new(QuicConfig { local: Some(local), ..self.config.clone() }, self.epoch)
    }

    /// Replaces the trusted peers. Returns the associations of peers that are not trusted any more, which stay open.
    /// Their connections without an association end.
    pub fn set_trusted(&mut self, now: Time, trusted: Trusted) -> Vec<AssociationId> {
        let is_revoked = |peer: Option<Fingerprint>| peer.is_some_and(|peer| !trusted.contains(peer));
        let unbound = self.unbound.keys().copied();
        let unbound: Vec<usize> =
            unbound.filter(|at| self.channels.get(at).is_some_and(|channel| is_revoked(channel.peer))).collect();
        let revoked = self.associations.iter().filter(|(_, association)| is_revoked(association.peer));
        let revoked = revoked.map(|(&id, _)| id).collect();
        self.settings.verifier.set_trusted(trusted);
        unbound.into_iter().for_each(|at| self.reject(now, at, REVOKED));
        revoked
    }

    /// Ends an association whose peer is not trusted any more.
    pub fn revoke(&mut self, now: Time, id: AssociationId) {
        let Some(association) = self.associations.get(&id) else { return };
        let Some(peer) = association.peer else { return };
        if let Some(channel) = association.channels[0].and_then(|at| self.channels.get_mut(&at)) {
            let reason = Bytes::from_static(REVOKED.as_bytes());
            let instant = self.epoch + Duration::from_nanos(now.as_ps() / 1000);
            channel.quic.close(instant, VarInt::from_u32(CODE_REVOKED), reason);
        }
        self.end(now, id, CloseReason::Revoked(peer));
    }

    /// Replaces this host's key; open associations stay. After a restart with the new key, the peers of
    /// later associations learn at once that they are gone; those of earlier ones, after the idle
    /// timeout.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn set_identity(&mut self, identity: Identity) -> Result<(), CarrierError> {
        let config = QuicConfig { identity, trusted: self.settings.verifier.trusted(), ..self.config.clone() };
        let settings = self.settings.renewed(&config)?;
        self.endpoint.set_server_config(settings.server.clone());
        (self.settings, self.config) = (settings, config);
        Ok(())
    }

    /// The UDP payload of a full packet, bytes.
    pub fn udp_payload_bytes(&self) -> u16 {
        self.config.udp_payload_bytes
    }

    /// Sets the UDP payload of full packets; the limit is announced to peers. Existing associations are dropped
    /// without a message to the peer, and their numbers are not reused.
    ///
    /// # Errors
    /// The size is out of range.
    pub fn set_udp_payload_bytes(&mut self, now: Time, udp_payload_bytes: u16) -> Result<(), CarrierError> {
        let config = QuicConfig { udp_payload_bytes, trusted: self.settings.verifier.trusted(), ..self.config.clone() };
        let fresh = Quic::new(config, self.epoch)?;
        for association in self.associations.keys().copied().collect::<Vec<_>>() {
            self.end(now, association, CloseReason::Here);
        }
        let old = std::mem::replace(self, fresh);
        (self.next_association, self.events, self.unread) = (old.next_association, old.events, old.unread);
        Ok(())
    }

    /// Returns, once, the key of a peer that was refused because it is not trusted.
    pub fn take_refused_peer(&self) -> Option<Fingerprint> {
        self.settings.verifier.take_refused_peer()
    }

    /// The number of associations, open or not.
    pub fn association_count(&self) -> usize {
        self.associations.len()
    }

    fn instant(&self, now: Time) -> Instant {
        self.epoch + Duration::from_nanos(now.as_ps() / 1000)
    }

    fn time(&self, at: Instant) -> Time {
        time_since(self.epoch, at)
    }

    fn add(&mut self, handle: ConnectionHandle, quic: Connection, bound_to: Option<(AssociationId, u8)>) {
        let serial = self.next_serial;
        self.next_serial += 1;
        let channel = Channel {
            quic,
            serial,
            is_client: bound_to.is_some(),
            connected: false,
            peer: None,
            bound_to,
            stream: None,
            dscp: None,
            arrival_class: 0,
            received_at: Time::ZERO,
            hello_bytes: Vec::new(),
            hello: None,
            early: Vec::new(),
            early_bytes: 0,
            timer: Time::NEVER,
            lost: None,
        };
        self.channels.insert(handle.0, channel);
        self.dirty.insert(handle.0);
    }

    /// Accepts or refuses an incoming connection.
    fn handle_incoming(&mut self, now: Time, incoming: Incoming, class: u8) {
        let mut answer = Vec::new();
        if self.config.retry && !incoming.remote_address_validated() && incoming.may_retry() {
            if let Ok(transmit) = self.endpoint.retry(incoming, &mut answer) {
                self.put(transmit, class, answer);
            }
            return;
        }
        let address = incoming.remote_address().ip();
        match self.half_open.admit(now, address) {
            Admission::Accept => {}
            Admission::Replace(oldest) => self.reject(now, oldest, "too many handshakes"),
            Admission::Ignore => return self.endpoint.ignore(incoming),
        }
        match self.endpoint.accept(incoming, self.instant(now), &mut answer, None) {
            Ok((handle, quic)) => {
                self.add(handle, quic, None);
                if let Some(channel) = self.channels.get_mut(&handle.0) {
                    (channel.arrival_class, channel.received_at) = (class, now);
                }
                self.half_open.insert(now, handle.0, address);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.put(transmit, class, answer);
                }
            }
        }
    }

    /// Processes all events of a connection and updates its timer.
    fn process(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        let mut is_drained = false;
        // Endpoint and connection exchange events until both have none.
        while let Some(event) = channel.quic.poll_endpoint_events() {
            is_drained |= event.is_drained();
            if let Some(back) = self.endpoint.handle_event(ConnectionHandle(at), event) {
                channel.quic.handle_event(back);
            }
        }
        let (mut connected, mut has_control) = (false, false);
        while let Some(event) = channel.quic.poll() {
            match event {
                Event::Connected => (channel.connected, connected) = (true, true),
                Event::ConnectionLost { reason } => {
                    channel.lost = Some(close_reason(reason, &self.settings, &self.config));
                }
                Event::Stream(_) => has_control = true,
                _ => {}
            }
        }
        if connected {
            self.handle_connected(now, at);
        }
        // Data received before the end of the handshake is read only now, when the peer is authenticated.
        if has_control || connected {
            self.handle_stream(now, at);
        }
        self.handle_lost(now, at);
        // The timer may have changed with any of the events.
        let next = self.channels.get_mut(&at).and_then(|channel| channel.quic.poll_timeout());
        let next = next.map_or(Time::NEVER, |next| self.time(next));
        if let Some(channel) = self.channels.get_mut(&at) {
            if next != channel.timer {
                self.timers.remove(&(channel.timer, at));
                channel.timer = next;
                if next != Time::NEVER {
                    self.timers.insert((next, at));
                }
            }
            // A drained connection has answered late packets for long enough (RFC 9000 section 10.2).
            if is_drained {
                self.forget(at);
            }
        }
    }

    /// Removes a connection whose endpoint has forgotten it.
    fn forget(&mut self, at: usize) {
        let Some(channel) = self.channels.remove(&at) else { return };
        self.early_bytes -= channel.early_bytes;
        self.timers.remove(&(channel.timer, at));
        self.half_open.remove(at);
        self.unbound.remove(&at);
        self.dirty.remove(&at);
    }

    /// Limits the closed connections of strangers: this one was closed now, and the oldest ones are dropped.
    fn add_closing(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get(&at) else { return };
        self.closing.push_back((at, channel.serial));
        while self.closing.len() > MAX_CLOSING {
            let Some((oldest, serial)) = self.closing.pop_front() else { return };
            if self.channels.get(&oldest).is_some_and(|channel| channel.serial == serial) {
                // The peer may still get the reason.
                self.drain(now, oldest);
                self.endpoint.handle_event(ConnectionHandle(oldest), EndpointEvent::drained());
                self.forget(oldest);
            }
        }
    }

    /// Handles an established connection; a client sends its hello.
    fn handle_connected(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        channel.peer = peer_of(&channel.quic);
        let peer = channel.peer;
        if self.half_open.remove(at) {
            // The peer has proved a trusted key; it still has to say which association it wants.
            let of_peer = |at: &&usize| self.channels.get(at).is_some_and(|channel| channel.peer == peer);
            if self.unbound.keys().filter(of_peer).count() >= MAX_UNBOUND_PER_PEER {
                return self.reject(now, at, "too many connections without a hello");
            }
            self.unbound.insert(at, now + HELLO_TIMEOUT);
        }
        let Some(channel) = self.channels.get_mut(&at) else { return };
        let Some((id, class)) = channel.bound_to.filter(|_| channel.is_client) else { return };
        let Some(association) = self.associations.get_mut(&id) else { return };
        if class > 0 {
            if association.secret.is_some() {
                self.send_hello(id, class);
            }
            return;
        }
        // On first contact, another peer may have been trusted in the meantime.
        if !channel.peer.is_some_and(|peer| self.settings.verifier.admit(peer)) {
            return self.reject(now, at, "not trusted: another was met first");
        }
        association.secret = Secret::of(&channel.quic);
        association.peer = channel.peer;
        self.send_hello(id, 0);
        self.open(now, id);
        // Lower classes that were established earlier were waiting for the secret.
        for class in 1..self.config.classes {
            self.send_hello(id, class);
        }
    }

    fn send_hello(&mut self, id: AssociationId, class: u8) {
        let Some(association) = self.associations.get(&id) else { return };
        let Some(at) = association.channels[usize::from(class)] else { return };
        let Some(channel) = self.channels.get_mut(&at).filter(|channel| channel.connected) else { return };
        let secret = association.secret.filter(|_| channel.peer == association.peer);
        let Some(secret) = secret else { return };
        let proof = if class == 0 { Some([0; 32]) } else { secret.proof(&channel.quic, class) };
        let (Some(proof), Some(stream)) = (proof, channel.quic.streams().open(Dir::Bi)) else { return };
        // The first bytes of a stream always fit into its window.
        let _ = channel.quic.send_stream(stream).write(&Hello { class, proof }.encode());
        channel.stream = Some(stream);
        self.dirty.insert(at);
        if class > 0 {
            self.events.push_back(CarrierEvent::Class { association: id, class, open: true });
        }
    }

    /// Reports an association as open: class 0 is bound.
    fn open(&mut self, _: Time, id: AssociationId) {
        let Some(association) = self.associations.get_mut(&id) else { return };
        let channel = association.channels[0].and_then(|at| self.channels.get(&at));
        let (Some(peer), Some(channel)) = (association.peer, channel) else { return };
        association.is_open = true;
        let address = scope::restored(channel.quic.remote_address());
        self.events.push_back(CarrierEvent::Opened { association: id, peer, address });
        self.events.push_back(CarrierEvent::Class { association: id, class: 0, open: true });
    }

    /// Handles data on a connection's stream: the hello, or control data of class 0.
    fn handle_stream(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        if let Some((id, 0)) = channel.bound_to {
            self.events.push_back(CarrierEvent::Control { association: id });
            return;
        }
        if channel.is_client || !channel.connected || channel.bound_to.is_some() || channel.hello.is_some() {
            return;
        }
        if channel.stream.is_none() {
            channel.stream = channel.quic.streams().accept(Dir::Bi);
        }
        let Some(stream) = channel.stream else { return };
        let missing = HELLO_BYTES - channel.hello_bytes.len();
        if let Some(bytes) = read_some(&mut channel.quic, stream, missing) {
            channel.hello_bytes.extend_from_slice(&bytes);
            self.dirty.insert(at);
        }
        let Ok(hello_bytes) = <&[u8; HELLO_BYTES]>::try_from(&channel.hello_bytes[..]) else { return };
        match Hello::decode(hello_bytes).filter(|hello| hello.class < self.config.classes) {
            Some(hello) => {
                channel.hello = Some(hello);
                self.bind(now, at);
            }
            None => self.reject(now, at, "no hello of this version, or of a class that is not here"),
        }
    }

    /// Binds a connection to an association according to its hello.
    fn bind(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        let (Some(hello), Some(peer)) = (channel.hello, channel.peer) else { return };
        if hello.class == 0 {
            if !self.settings.verifier.admit(peer) {
                return self.reject(now, at, "not trusted: another was met first");
            }
            if let Err(reason) = self.make_room(now, peer) {
                return self.reject(now, at, reason);
            }
            let Some(channel) = self.channels.get_mut(&at) else { return };
            let id = AssociationId(self.next_association);
            self.next_association += 1;
            let mut channels = [None; MAX_CLASSES];
            channels[0] = Some(at);
            let secret = Secret::of(&channel.quic);
            let (peer, idle_check) = (Some(peer), IdleCheck::begun(now));
            let association = Association { channels, peer, secret, is_open: false, is_incoming: true, idle_check };
            self.associations.insert(id, association);
            channel.bound_to = Some((id, 0));
            // Only class 0 has control data.
            channel.quic.set_receive_window(VarInt::from_u32(CONTROL_WINDOW_BYTES));
            self.dirty.insert(at);
            self.unbound.remove(&at);
            self.check_idle(now, id);
            self.open(now, id);
            self.take_early(now, at);
            self.events.push_back(CarrierEvent::Control { association: id });
            // Hellos of lower classes may have arrived earlier.
            let waiting: Vec<usize> = self.unbound.keys().copied().collect();
            waiting.into_iter().for_each(|other| self.bind(now, other));
            return;
        }
        let class = usize::from(hello.class);
        // The proof shows which of the peer's associations the class belongs to.
        let of_peer = self.associations.iter_mut().filter(|(_, association)| association.peer == Some(peer));
        for (&id, association) in of_peer {
            let proof = association.secret.and_then(|secret| secret.proof(&channel.quic, hello.class));
            if association.channels[class].is_none() && proof.is_some_and(|proof| hello.proves(&proof)) {
                association.channels[class] = Some(at);
                channel.bound_to = Some((id, hello.class));
                self.unbound.remove(&at);
                self.events.push_back(CarrierEvent::Class { association: id, class: hello.class, open: true });
                return self.take_early(now, at);
            }
        }
    }

    /// Makes room for a new association of `peer`, or returns the reason why this is impossible.
    fn make_room(&mut self, now: Time, peer: Fingerprint) -> Result<(), &'static str> {
        let of_peer = self.associations.values().filter(|association| association.peer == Some(peer)).count();
        if of_peer >= self.config.max_associations_per_peer {
            return Err("too many associations of this key");
        }
        if !self.rates.take(now, peer, self.config.max_new_per_second) {
            return Err("too many new associations of this key in a short time");
        }
        if self.associations.len() >= self.config.max_associations {
            // Associations that this host has initiated are its own.
            let of_peers = self.associations.iter().filter(|(_, association)| association.is_incoming);
            let of_peers = of_peers.filter_map(|(&id, association)| Some((id, association.peer?)));
            let given_up = admission::crowded(of_peers, peer).ok_or("too many associations")?;
            self.give_up(now, given_up);
        }
        Ok(())
    }

    /// Ends an association of the key with the most, for one of another key.
    fn give_up(&mut self, now: Time, id: AssociationId) {
        const REASON: &str = "this key has the most associations, and others need the room";
        if let Some(at) = self.channel_of(id, 0)
            && let Some(channel) = self.channels.get_mut(&at)
        {
            let instant = self.epoch + Duration::from_nanos(now.as_ps() / 1000);
            channel.quic.close(instant, VarInt::from_u32(CODE_PROTOCOL), Bytes::from_static(REASON.as_bytes()));
        }
        self.end(now, id, CloseReason::Failed("the peer's key has the most associations".into()));
    }

    /// Reports the frames that have arrived on a connection in a datagram of `datagram_bytes`.
    fn take_frames(&mut self, at: usize, datagram_bytes: usize, marked: bool, received_ns: u64) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        while let Some(bytes) = channel.quic.datagrams().recv() {
            // A frame shares the memory of its datagram. A small one gets its own, since it may stay for long.
            let bytes = if bytes.len() < datagram_bytes / 4 * 3 { Bytes::copy_from_slice(&bytes) } else { bytes };
            if let Some((association, class)) = channel.bound_to {
                self.events.push_back(CarrierEvent::Frame { association, class, marked, received_ns, bytes });
                continue;
            }
            // Before the hello, a frame waits in its connection; beyond the limits, it counts as lost.
            let memory = bytes.len() + FRAME_BYTES;
            if channel.early_bytes + memory <= EARLY_BYTES && self.early_bytes + memory <= ALL_EARLY_BYTES {
                channel.early.push(bytes);
                channel.early_bytes += memory;
                self.early_bytes += memory;
            }
        }
    }

    /// Reports the frames that arrived before the hello of their connection.
    fn take_early(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        let Some((association, class)) = channel.bound_to else { return };
        self.early_bytes -= std::mem::take(&mut channel.early_bytes);
        let (marked, received_ns) = (false, now.as_ps() / 1000);
        for bytes in std::mem::take(&mut channel.early) {
            self.events.push_back(CarrierEvent::Frame { association, class, marked, received_ns, bytes });
        }
    }

    fn reject(&mut self, now: Time, at: usize, reason: &'static str) {
        self.reject_with(now, at, CODE_PROTOCOL, reason);
    }

    fn reject_with(&mut self, now: Time, at: usize, code: u32, reason: &'static str) {
        let instant = self.instant(now);
        if let Some(channel) = self.channels.get_mut(&at) {
            channel.quic.close(instant, VarInt::from_u32(code), Bytes::from_static(reason.as_bytes()));
            self.unbound.remove(&at);
            self.dirty.insert(at);
            if self.half_open.remove(at) {
                self.add_closing(now, at);
            }
        }
    }

    /// Handles the end of a connection. The end of class 0 ends the whole association.
    fn handle_lost(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        let Some(reason) = channel.lost.take() else { return };
        self.unbound.remove(&at);
        if self.half_open.remove(at) {
            self.add_closing(now, at);
        }
        let Some(channel) = self.channels.get_mut(&at) else { return };
        match channel.bound_to.take() {
            Some((id, 0)) => self.end(now, id, reason),
            Some((id, class)) => {
                if reason == CloseReason::Restarted {
                    // The peer has lost class 0, too. It answers the ping with a stateless reset.
                    self.ping(id);
                }
                if let Some(association) = self.associations.get_mut(&id) {
                    association.channels[usize::from(class)] = None;
                    self.events.push_back(CarrierEvent::Class { association: id, class, open: false });
                }
            }
            None => {}
        }
    }

    /// Ends an association whose peer has been silent for the idle timeout, and pings the peer before.
    fn check_idle(&mut self, now: Time, id: AssociationId) {
        let idle = Dur::from_ns(self.config.idle_timeout.as_nanos().min(u128::from(u64::MAX / 4000)) as u64);
        let Some(association) = self.associations.get_mut(&id) else { return };
        let idle_check = &mut association.idle_check;
        let channel = association.channels[0].and_then(|at| Some((at, self.channels.get_mut(&at)?)));
        let Some((at, channel)) = channel else { return };
        let frames = frames_of(&channel.quic);
        if frames != idle_check.frames {
            (idle_check.frames, idle_check.latest) = (frames, channel.received_at);
        }
        let since = now.saturating_since(idle_check.latest);
        self.idle_checks.remove(&(idle_check.next, id));
        if since >= idle {
            let reason = Bytes::from_static(b"silent for too long");
            channel.quic.close(
                self.epoch + Duration::from_nanos(now.as_ps() / 1000),
                VarInt::from_u32(CODE_SILENT),
                reason,
            );
            return self.end(now, id, CloseReason::IdleTimeout);
        }
        // Peers send keep-alives, but their interval may be longer than this host's idle timeout, so ask.
        let quarters = (since.as_ps() / (idle.as_ps() / 4).max(1)).max(1);
        if quarters >= 2 {
            channel.quic.ping();
            self.dirty.insert(at);
        }
        idle_check.next = (idle_check.latest + idle.scaled((quarters + 1) as f64 / 4.0)).max(now + Dur::from_ms(1));
        self.idle_checks.insert((idle_check.next, id));
    }

    fn end(&mut self, now: Time, id: AssociationId, reason: CloseReason) {
        // The last messages of a peer may arrive together with its close.
        let unread: VecDeque<Bytes> = std::iter::from_fn(|| self.read_open(id)).collect();
        if !unread.is_empty() {
            self.unread.insert(id, unread);
        }
        let Some(association) = self.associations.remove(&id) else { return };
        self.idle_checks.remove(&(association.idle_check.next, id));
        let now = self.instant(now);
        for at in association.channels.into_iter().flatten() {
            if let Some(channel) = self.channels.get_mut(&at) {
                channel.bound_to = None;
                if !channel.quic.is_closed() {
                    channel.quic.close(now, VarInt::from_u32(0), Bytes::new());
                }
                self.dirty.insert(at);
            }
        }
        self.events.push_back(CarrierEvent::Closed { association: id, reason });
    }

    /// Returns the next bytes of the control stream of an association that has not ended.
    fn read_open(&mut self, id: AssociationId) -> Option<Bytes> {
        let at = self.channel_of(id, 0)?;
        let channel = self.channels.get_mut(&at)?;
        let bytes = read_some(&mut channel.quic, channel.stream?, CONTROL_CHUNK)?;
        self.dirty.insert(at);
        Some(bytes)
    }

    fn channel_of(&self, id: AssociationId, class: u8) -> Option<usize> {
        self.associations.get(&id)?.channels.get(usize::from(class)).copied().flatten()
    }

    fn put(&mut self, transmit: Transmit, class: u8, bytes: Vec<u8>) {
        put(&mut self.out, transmit, class, bytes);
    }

    /// Collects the datagrams that a connection has to send.
    fn drain(&mut self, now: Time, at: usize) {
        let (now, most) = (self.instant(now), self.config.datagrams_at_once());
        if let Some(channel) = self.channels.get_mut(&at) {
            drain(&mut self.out, &mut self.spare, channel, now, most, self.config.udp_payload_bytes);
        }
    }
}

/// The number of frames received in authentic packets.
fn frames_of(quic: &Connection) -> u64 {
    let received = quic.stats().frame_rx;
    received.acks
        + received.datagram
        + received.ping
        + received.stream
        + received.crypto
        + received.path_challenge
        + received.path_response
}

fn time_since(epoch: Instant, at: Instant) -> Time {
    let ns = at.saturating_duration_since(epoch).as_nanos();
    Time::from_ns(ns.min(u128::from(u64::MAX / 1001)) as u64)
}

fn put(out: &mut VecDeque<Datagram>, transmit: Transmit, class: u8, mut bytes: Vec<u8>) {
    bytes.truncate(transmit.size);
    let (to, ecn) = (scope::restored(transmit.destination), transmit.ecn.map_or(0, |ecn| ecn as u8));
    out.push_back(Datagram { to, class, ecn, segment_bytes: transmit.segment_size, bytes });
}

fn drain(
    out: &mut VecDeque<Datagram>,
    spare: &mut Vec<Vec<u8>>,
    channel: &mut Channel,
    now: Instant,
    most: usize,
    payload_bytes: u16,
) {
    // Until a connection is bound, answers use the class in which its packets arrived. The peer thus learns if the path
    // keeps its marks.
    let class = channel.bound_to.map_or(channel.arrival_class, |(_, class)| class);
    loop {
        let mut bytes = spare.pop().unwrap_or_else(|| Vec::with_capacity(usize::from(payload_bytes) * most));
        match channel.quic.poll_transmit(now, most, &mut bytes) {
            Some(transmit) => put(out, transmit, class, bytes),
            None => return spare.push(bytes),
        }
    }
}

/// Returns an address in the form in which it is compared: an IPv4-mapped address is an IPv4 one.
fn same_host(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn read_some(quic: &mut Connection, stream: StreamId, most: usize) -> Option<Bytes> {
    if most == 0 {
        return None;
    }
    let mut stream = quic.recv_stream(stream);
    let mut chunks = stream.read(true).ok()?;
    let chunk = chunks.next(most);
    // Reading sets the flag that the connection may have flow control frames to send.
    let _ = chunks.finalize().should_transmit();
    chunk.ok().flatten().map(|chunk| chunk.bytes)
}

fn peer_of(quic: &Connection) -> Option<Fingerprint> {
    let identity = quic.crypto_session().peer_identity()?;
    let keys = identity.downcast_ref::<Vec<CertificateDer<'static>>>()?;
    keys.first().map(|key| Fingerprint::of(key))
}

fn close_reason(error: ConnectionError, settings: &Settings, config: &QuicConfig) -> CloseReason {
    /// The TLS alerts that refuse a certificate (RFC 8446 section 6.2), as QUIC error codes.
    const REFUSED_KEY: std::ops::RangeInclusive<u64> = 0x100 + 42..=0x100 + 49;
    /// The error code of an application that closes a connection during its handshake (RFC 9000 section 10.2.3).
    const APPLICATION_ERROR: u64 = 0xc;
    /// The TLS alert of a peer without a common protocol version.
    const NO_COMMON_PROTOCOL: u64 = 0x100 + 120;
    let own = config.identity.fingerprint();
    match error {
        ConnectionError::LocallyClosed => CloseReason::Here,
        ConnectionError::TimedOut => CloseReason::IdleTimeout,
        ConnectionError::Reset => CloseReason::Restarted,
        ConnectionError::ApplicationClosed(close) => {
            CloseReason::Peer { code: close.error_code.into_inner(), reason: PeerText::of_bytes(&close.reason) }
        }
        ConnectionError::ConnectionClosed(close) if REFUSED_KEY.contains(&u64::from(close.error_code)) => {
            CloseReason::NotTrusted(own)
        }
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == NO_COMMON_PROTOCOL => {
            CloseReason::Failed("the peer speaks another version of this protocol".into())
        }
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == APPLICATION_ERROR => {
            CloseReason::HandshakeGivenUp
        }
        ConnectionError::TransportError(error) if u64::from(error.code) == NO_COMMON_PROTOCOL => {
            CloseReason::Failed("the peer speaks another version of this protocol".into())
        }
        ConnectionError::TransportError(error) => match settings.verifier.last_refused() {
            Some(peer) if REFUSED_KEY.contains(&u64::from(error.code)) => CloseReason::Untrusted(peer),
            _ => CloseReason::Failed(error.to_string().into()),
        },
        other => CloseReason::Failed(other.to_string().into()),
    }
}

impl Carrier for Quic {
    fn connect(&mut self, now: Time, to: SocketAddr) -> Result<AssociationId, CarrierError> {
        if self.associations.len() >= self.config.max_associations {
            return Err(CarrierError::TooMany(self.config.max_associations));
        }
        let id = AssociationId(self.next_association);
        self.next_association += 1;
        let mut channels = [None; MAX_CLASSES];
        for class in 0..self.config.classes {
            let client = self.settings.client[usize::from(class > 0)].clone();
            let begun = self.endpoint.connect(self.instant(now), client, scope::embedded(to), "sparelane");
            let (handle, quic) =
                begun.map_err(|error| CarrierError::Address { address: to, reason: error.to_string() })?;
            self.add(handle, quic, Some((id, class)));
            channels[usize::from(class)] = Some(handle.0);
        }
        let (peer, secret, idle_check) = (None, None, IdleCheck::begun(now));
        let association = Association { channels, peer, secret, is_open: false, is_incoming: false, idle_check };
        self.associations.insert(id, association);
        self.check_idle(now, id);
        Ok(id)
    }

    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        let mut answer = Vec::new();
        let (from, ecn) = (scope::embedded(arrival.from), EcnCodepoint::from_bits(arrival.ecn));
        let class = self.config.dscp.iter().position(|&dscp| dscp == arrival.dscp).unwrap_or(0) as u8;
        let event = self.endpoint.handle(self.instant(now), from, None, ecn, BytesMut::from(bytes), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let Some(channel) = self.channels.get_mut(&handle.0) else { return };
                channel.quic.handle_event(event);
                (channel.dscp, channel.arrival_class, channel.received_at) = (Some(arrival.dscp), class, now);
                let is_settled = channel.connected && channel.bound_to.is_some();
                self.take_frames(handle.0, bytes.len(), arrival.ecn == 3, arrival.received_ns);
                self.dirty.insert(handle.0);
                // For a bound connection, other events can wait until the next transmission.
                if !is_settled {
                    self.process(now, handle.0);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.handle_incoming(now, incoming, class),
            Some(DatagramEvent::Response(transmit)) => self.put(transmit, class, answer),
            None => {}
        }
    }

    fn handle_timer(&mut self, now: Time) {
        let instant = self.instant(now);
        while let Some(&(at, index)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, index));
            if let Some(channel) = self.channels.get_mut(&index) {
                channel.timer = Time::NEVER;
                channel.quic.handle_timeout(instant.max(self.epoch));
                self.dirty.insert(index);
                self.process(now, index);
            }
        }
        while let Some(at) = self.half_open.expired(now) {
            self.reject_with(now, at, CODE_SILENT, "no proof of a key in time");
        }
        let late: Vec<usize> = self.unbound.iter().filter(|(_, until)| **until <= now).map(|(at, _)| *at).collect();
        late.into_iter().for_each(|at| self.reject_with(now, at, CODE_SILENT, "no hello in time"));
        while let Some(&(at, id)) = self.idle_checks.first().filter(|(at, _)| *at <= now) {
            self.idle_checks.remove(&(at, id));
            self.check_idle(now, id);
        }
    }

    fn next_timer(&self) -> Time {
        let unbound = self.unbound.values().min().copied().unwrap_or(Time::NEVER);
        let idle_check = self.idle_checks.first().map_or(Time::NEVER, |(at, _)| *at);
        let timer = self.timers.first().map_or(Time::NEVER, |(at, _)| *at);
        timer.min(unbound).min(self.half_open.next_deadline()).min(idle_check)
    }

    fn poll_event(&mut self) -> Option<CarrierEvent> {
        self.events.pop_front()
    }

    fn max_frame_bytes(&self, association: AssociationId) -> Option<usize> {
        let at = self.channel_of(association, 0)?;
        self.channels.get(&at).filter(|channel| channel.connected)?;
        Some(usize::from(self.config.udp_payload_bytes) - QUIC_BYTES)
    }

    fn round_trip(&self, association: AssociationId) -> Option<Dur> {
        let channel = self.channels.get(&self.channel_of(association, 0)?)?;
        let (smoothed, least) = (channel.quic.rtt(), channel.quic.min_rtt());
        let bounded = smoothed.min(least * MAX_OVER_MIN);
        (least < FIRST_TIMEOUT).then(|| Dur::from_ns(bounded.as_nanos() as u64))
    }

    fn handle_unreachable(&mut self, now: Time, report: Unreachable) {
        let to = same_host(scope::embedded(report.to));
        let waiting = self.associations.iter().filter(|(_, association)| {
            let channel = association.channels[0].and_then(|at| self.channels.get(&at));
            // The report may be forged. It is believed only while the peer has not answered.
            !association.is_open
                && channel.is_some_and(|channel| {
                    channel.is_client && channel.dscp.is_none() && same_host(channel.quic.remote_address()) == to
                })
        });
        for id in waiting.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.end(now, id, CloseReason::Unreachable(report));
        }
    }

    fn latest_arrival(&self, association: AssociationId) -> Option<Time> {
        let channels = self.associations.get(&association)?.channels.iter().flatten();
        let heard = channels.filter_map(|at| self.channels.get(at)).filter(|channel| channel.dscp.is_some());
        heard.map(|channel| channel.received_at).max()
    }

    fn ping(&mut self, association: AssociationId) {
        if let Some(at) = self.channel_of(association, 0)
            && let Some(channel) = self.channels.get_mut(&at)
        {
            channel.quic.ping();
            self.dirty.insert(at);
        }
    }

    fn latest_dscp(&self, association: AssociationId, class: u8) -> Option<u8> {
        self.channels.get(&self.channel_of(association, class)?)?.dscp
    }

    fn overhead_bytes(&self) -> usize {
        QUIC_BYTES
    }

    fn send(&mut self, now: Time, association: AssociationId, class: u8, frames: &mut dyn Iterator<Item = Vec<u8>>) {
        let Some(at) = self.channel_of(association, class) else { return };
        let (instant, most, payload_bytes) =
            (self.instant(now), self.config.datagrams_at_once(), self.config.udp_payload_bytes);
        let Some(channel) = self.channels.get_mut(&at).filter(|channel| channel.connected) else { return };
        let mut waiting = 0;
        for frame in frames {
            // A frame that does not fit counts as lost.
            waiting += usize::from(channel.quic.datagrams().send(Bytes::from(frame), false).is_ok());
            if waiting == most {
                drain(&mut self.out, &mut self.spare, channel, instant, most, payload_bytes);
                waiting = 0;
            }
        }
        if waiting > 0 {
            drain(&mut self.out, &mut self.spare, channel, instant, most, payload_bytes);
        }
        self.dirty.insert(at);
    }

    fn write_control(&mut self, association: AssociationId, bytes: &[u8]) -> usize {
        let Some(at) = self.channel_of(association, 0) else { return 0 };
        let Some(channel) = self.channels.get_mut(&at) else { return 0 };
        let Some(stream) = channel.stream else { return 0 };
        self.dirty.insert(at);
        channel.quic.send_stream(stream).write(bytes).unwrap_or(0)
    }

    fn read_control(&mut self, association: AssociationId) -> Option<Bytes> {
        match self.unread.get_mut(&association) {
            Some(unread) => unread.pop_front(),
            None => self.read_open(association),
        }
    }

    fn forget_control(&mut self, association: AssociationId) {
        self.unread.remove(&association);
    }

    fn close(&mut self, now: Time, association: AssociationId, code: u32, reason: &str) {
        if let Some(at) = self.channel_of(association, 0)
            && let Some(channel) = self.channels.get_mut(&at)
        {
            let reason = Bytes::copy_from_slice(reason.as_bytes());
            let instant = self.epoch + Duration::from_nanos(now.as_ps() / 1000);
            channel.quic.close(instant, VarInt::from_u32(code), reason);
        }
        self.end(now, association, CloseReason::Here);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        while self.out.is_empty() {
            let at = self.dirty.pop_first()?;
            self.drain(now, at);
            self.process(now, at);
        }
        self.out.pop_front()
    }

    fn reuse(&mut self, datagram: Datagram) {
        let mut bytes = datagram.bytes;
        if self.spare.len() < MAX_SPARE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
