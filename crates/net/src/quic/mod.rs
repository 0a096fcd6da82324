//! The carrier on QUIC: our frames in DATAGRAM frames (RFC 9221) of quinn-proto as it is, one connection a class, all on one
//! socket.
//!
//! Packets of a lower class can be late by thousands of others, while QUIC's replay window spans 129 packet numbers; and what one
//! class loses must not look like a loss of another. So each class is a connection, with packet numbers and keys of its own. The
//! client opens all of them at once; a class can be used as soon as its connection is there, and none is waited for. See
//! [`hello`] for what binds them together.

mod hello;
mod pins;
pub mod plain;
mod settings;

pub(crate) use settings::UDP_PAYLOAD_BYTES;
pub use settings::{DEFAULT_BATCH, QuicConfig};

use crate::carrier::{Arrival, AssociationId, Carrier, CarrierError, CarrierEvent, CloseReason, Datagram};
use crate::flow::MAX_CLASSES;
use crate::identity::{Fingerprint, Identity, Trusted};
use bytes::{Bytes, BytesMut};
use hello::{HELLO_BYTES, Hello, Secret};
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, Event, Incoming,
    StreamId, Transmit, VarInt,
};
use rustls::pki_types::CertificateDer;
use settings::Settings;
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// A connection that has not said within so long to which association it belongs is closed.
const HELLO_PATIENCE: Dur = Dur::from_secs(30);

/// The most connections at a time that have not said so.
const MAX_STRANGERS: usize = 256;

/// And the most of one address, by IPv6 of one network: whoever begins connections without end keeps nobody else out.
const MAX_STRANGERS_OF_ADDRESS: usize = 96;

/// The most bytes that are read at once from the control stream.
const CONTROL_CHUNK: usize = 64 << 10;

/// So many buffers of sent datagrams are kept for later ones.
const MOST_SPARE: usize = 64;

/// What a handshake waits for an answer before it sends again: three times the round trip that is assumed while none is known (RFC
/// 9002 section 6.2.2). Where an answer is lost, the acknowledgment comes with what the peer sends again, so much later, and the
/// sample is as large. Where none is smaller, the round trip is not known.
const FIRST_TIMEOUT: Duration = Duration::from_millis(999);

/// Other samples have such an excess, too, or a mean in which it is. None is too small, as packets have numbers of their own; so the
/// round trip is taken for so many times the least sample at most.
const MOST_OVER_LEAST: u32 = 4;

/// What a peer is told whose frames or control messages are wrong, and other reasons of this layer.
const CODE_PROTOCOL: u32 = 1;

/// What QUIC needs of a full packet: short header with a connection ID, number, tag, and the frame's type and length.
const QUIC_BYTES: usize = 1 + settings::CONNECTION_ID_BYTES + 4 + 16 + 9;

/// One QUIC connection.
struct Channel {
    quic: Connection,
    is_client: bool,
    connected: bool,
    peer: Option<Fingerprint>,
    /// The association and class that it belongs to.
    place: Option<(AssociationId, u8)>,
    stream: Option<StreamId>,
    /// The code point of the latest datagram, and the class whose that is.
    dscp: Option<u8>,
    came_in: u8,
    /// When it came.
    came: Time,
    /// The first bytes of its stream.
    greeting: Vec<u8>,
    hello: Option<Hello>,
    timer: Time,
    /// Why it ended.
    lost: Option<CloseReason>,
}

/// A host and a peer.
struct Association {
    channels: [Option<usize>; MAX_CLASSES],
    peer: Option<Fingerprint>,
    secret: Option<Secret>,
    is_open: bool,
    /// Where the peer has begun it, what is known of its silence.
    silence: Option<Silence>,
}

/// How long nothing has come from a peer. QUIC has no such limit here, as a connection's class is not known when it begins, and the
/// lower ones may be silent.
#[derive(Clone, Copy)]
struct Silence {
    /// Frames of class 0 that had come when it was looked at last, and when the latest did: only a peer's own packets have frames.
    frames: u64,
    heard: Time,
    /// When it is looked at next.
    next: Time,
}

/// The carrier.
pub struct Quic {
    endpoint: Endpoint,
    settings: Settings,
    config: QuicConfig,
    /// What is [`Time::ZERO`].
    epoch: Instant,
    channels: BTreeMap<usize, Channel>,
    associations: BTreeMap<AssociationId, Association>,
    next_association: u64,
    /// Connections by when they want time.
    timers: BTreeSet<(Time, usize)>,
    /// Connections of nobody yet, with the time at which patience ends.
    strangers: BTreeMap<usize, Time>,
    /// Associations by when their silence is looked at.
    silent: BTreeSet<(Time, AssociationId)>,
    /// Connections that may have something to say.
    dirty: BTreeSet<usize>,
    events: VecDeque<CarrierEvent>,
    out: VecDeque<Datagram>,
    /// Memory of datagrams that were sent.
    spare: Vec<Vec<u8>>,
}

impl fmt::Debug for Quic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (associations, connections) = (self.associations.len(), self.channels.len());
        write!(f, "Quic {{ associations: {associations}, connections: {connections} }}")
    }
}

impl Quic {
    /// A carrier whose times are counted from `epoch`.
    ///
    /// # Errors
    /// A setting is out of its range, or the keys cannot be used.
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
            strangers: BTreeMap::new(),
            silent: BTreeSet::new(),
            dirty: BTreeSet::new(),
            events: VecDeque::new(),
            out: VecDeque::new(),
            spare: Vec::new(),
        })
    }

    /// From now on these peers are trusted; associations that are open stay.
    pub fn set_trusted(&mut self, trusted: Trusted) {
        self.settings.pins.set_trusted(trusted);
    }

    /// From now on this host has another key; associations that are open stay.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn set_identity(&mut self, identity: Identity) -> Result<(), CarrierError> {
        let config = QuicConfig { identity, trusted: self.settings.pins.trusted(), ..self.config.clone() };
        let settings = Settings::of(&config)?;
        self.endpoint.set_server_config(settings.server.clone());
        (self.settings, self.config) = (settings, config);
        Ok(())
    }

    /// UDP payload of a full packet.
    pub fn udp_payload_bytes(&self) -> u16 {
        self.config.udp_payload_bytes
    }

    /// From now on full packets have so many bytes of UDP payload, and peers are told to send no larger ones. Associations that
    /// there are end without a word; those that come later have numbers of their own.
    ///
    /// # Errors
    /// So many bytes are not allowed.
    pub fn set_udp_payload_bytes(&mut self, now: Time, udp_payload_bytes: u16) -> Result<(), CarrierError> {
        let config = QuicConfig { udp_payload_bytes, trusted: self.settings.pins.trusted(), ..self.config.clone() };
        let fresh = Quic::new(config, self.epoch)?;
        for association in self.associations.keys().copied().collect::<Vec<_>>() {
            self.end(now, association, CloseReason::Here);
        }
        let old = std::mem::replace(self, fresh);
        (self.next_association, self.events) = (old.next_association, old.events);
        Ok(())
    }

    /// The key of a stranger who was refused, once.
    pub fn take_stranger(&self) -> Option<Fingerprint> {
        self.settings.pins.take_stranger()
    }

    /// Associations that there are, open or not.
    pub fn association_count(&self) -> usize {
        self.associations.len()
    }

    fn instant(&self, now: Time) -> Instant {
        self.epoch + Duration::from_nanos(now.as_ps() / 1000)
    }

    fn time(&self, at: Instant) -> Time {
        time_since(self.epoch, at)
    }

    fn add(&mut self, handle: ConnectionHandle, quic: Connection, place: Option<(AssociationId, u8)>) {
        let channel = Channel {
            quic,
            is_client: place.is_some(),
            connected: false,
            peer: None,
            place,
            stream: None,
            dscp: None,
            came_in: 0,
            came: Time::ZERO,
            greeting: Vec::new(),
            hello: None,
            timer: Time::NEVER,
            lost: None,
        };
        self.channels.insert(handle.0, channel);
        self.dirty.insert(handle.0);
    }

    /// Somebody begins a connection.
    fn meet(&mut self, now: Time, incoming: Incoming, class: u8) {
        let mut answer = Vec::new();
        if self.config.retry && !incoming.remote_address_validated() && incoming.may_retry() {
            if let Ok(transmit) = self.endpoint.retry(incoming, &mut answer) {
                self.put(transmit, class, answer);
            }
            return;
        }
        let most = self.config.max_associations * usize::from(self.config.classes) + MAX_STRANGERS;
        let from = network(incoming.remote_address().ip());
        let of_address = |at: &&usize| {
            self.channels.get(at).is_some_and(|channel| network(channel.quic.remote_address().ip()) == from)
        };
        let is_flood = self.strangers.keys().filter(of_address).count() >= MAX_STRANGERS_OF_ADDRESS;
        if is_flood || self.strangers.len() >= MAX_STRANGERS || self.channels.len() >= most {
            let transmit = self.endpoint.refuse(incoming, &mut answer);
            self.put(transmit, class, answer);
            return;
        }
        match self.endpoint.accept(incoming, self.instant(now), &mut answer, None) {
            Ok((handle, quic)) => {
                self.add(handle, quic, None);
                if let Some(channel) = self.channels.get_mut(&handle.0) {
                    (channel.came_in, channel.came) = (class, now);
                }
                self.strangers.insert(handle.0, now + HELLO_PATIENCE);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.put(transmit, class, answer);
                }
            }
        }
    }

    /// Everything that a connection has to tell, and its timer.
    fn tend(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        let mut is_drained = false;
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
            self.greet(now, at);
        }
        // What came before the handshake's end is heard at its end: only then is it known who speaks.
        if has_control || connected {
            self.hear(now, at);
        }
        self.lose(now, at);
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
            if is_drained {
                self.timers.remove(&(channel.timer, at));
                self.channels.remove(&at);
                self.strangers.remove(&at);
                self.dirty.remove(&at);
            }
        }
    }

    /// A connection is there: a client says what it is for.
    fn greet(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        channel.peer = peer_of(&channel.quic);
        let Some((id, class)) = channel.place.filter(|_| channel.is_client) else { return };
        let Some(association) = self.associations.get_mut(&id) else { return };
        if class > 0 {
            if association.secret.is_some() {
                self.say_hello(id, class);
            }
            return;
        }
        if !channel.peer.is_some_and(|peer| self.settings.pins.admit(peer)) {
            return self.expel(now, at, "not trusted: another was met first");
        }
        association.secret = Secret::of(&channel.quic);
        association.peer = channel.peer;
        self.say_hello(id, 0);
        self.open(now, id);
        // Classes that were there first can be used from now on.
        for class in 1..self.config.classes {
            self.say_hello(id, class);
        }
    }

    fn say_hello(&mut self, id: AssociationId, class: u8) {
        let Some(association) = self.associations.get(&id) else { return };
        let Some(at) = association.channels[usize::from(class)] else { return };
        let Some(channel) = self.channels.get_mut(&at).filter(|channel| channel.connected) else { return };
        let secret = association.secret.filter(|_| channel.peer == association.peer);
        let Some(secret) = secret else { return };
        let proof = if class == 0 { Some([0; 32]) } else { secret.proof(&channel.quic, class) };
        let (Some(proof), Some(stream)) = (proof, channel.quic.streams().open(Dir::Bi)) else { return };
        // The first bytes of a stream always fit its window.
        let _ = channel.quic.send_stream(stream).write(&Hello { class, proof }.encode());
        channel.stream = Some(stream);
        self.dirty.insert(at);
        if class > 0 {
            self.events.push_back(CarrierEvent::Class { association: id, class, open: true });
        }
    }

    /// Class 0 is there.
    fn open(&mut self, _: Time, id: AssociationId) {
        let Some(association) = self.associations.get_mut(&id) else { return };
        let channel = association.channels[0].and_then(|at| self.channels.get(&at));
        let (Some(peer), Some(channel)) = (association.peer, channel) else { return };
        association.is_open = true;
        let address = channel.quic.remote_address();
        self.events.push_back(CarrierEvent::Opened { association: id, peer, address });
        self.events.push_back(CarrierEvent::Class { association: id, class: 0, open: true });
    }

    /// Something came on the stream of a connection.
    fn hear(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        if let Some((id, 0)) = channel.place {
            self.events.push_back(CarrierEvent::Control { association: id });
            return;
        }
        if channel.is_client || !channel.connected || channel.place.is_some() || channel.hello.is_some() {
            return;
        }
        if channel.stream.is_none() {
            channel.stream = channel.quic.streams().accept(Dir::Bi);
        }
        let Some(stream) = channel.stream else { return };
        let missing = HELLO_BYTES - channel.greeting.len();
        if let Some(bytes) = read_some(&mut channel.quic, stream, missing) {
            channel.greeting.extend_from_slice(&bytes);
            self.dirty.insert(at);
        }
        let Ok(greeting) = <&[u8; HELLO_BYTES]>::try_from(&channel.greeting[..]) else { return };
        match Hello::decode(greeting).filter(|hello| hello.class < self.config.classes) {
            Some(hello) => {
                channel.hello = Some(hello);
                self.bind(now, at);
            }
            None => self.expel(now, at, "no hello of this version, or of a class that is not here"),
        }
    }

    /// A connection has said what it is for.
    fn bind(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        let (Some(hello), Some(peer)) = (channel.hello, channel.peer) else { return };
        if hello.class == 0 {
            if !self.settings.pins.admit(peer) {
                return self.expel(now, at, "not trusted: another was met first");
            }
            if self.associations.len() >= self.config.max_associations {
                self.expel(now, at, "too many associations");
                return;
            }
            let id = AssociationId(self.next_association);
            self.next_association += 1;
            let mut channels = [None; MAX_CLASSES];
            channels[0] = Some(at);
            let secret = Secret::of(&channel.quic);
            let silence = Silence { frames: 0, heard: now, next: Time::NEVER };
            let (peer, silence) = (Some(peer), Some(silence));
            self.associations.insert(id, Association { channels, peer, secret, is_open: false, silence });
            channel.place = Some((id, 0));
            self.strangers.remove(&at);
            self.look_at_silence(now, id);
            self.open(now, id);
            self.events.push_back(CarrierEvent::Control { association: id });
            // Lower classes may have come first.
            let waiting: Vec<usize> = self.strangers.keys().copied().collect();
            waiting.into_iter().for_each(|other| self.bind(now, other));
            return;
        }
        let class = usize::from(hello.class);
        let of_peer = self.associations.iter_mut().filter(|(_, association)| association.peer == Some(peer));
        for (&id, association) in of_peer {
            let proof = association.secret.and_then(|secret| secret.proof(&channel.quic, hello.class));
            if association.channels[class].is_none() && proof.is_some_and(|proof| hello.proves(&proof)) {
                association.channels[class] = Some(at);
                channel.place = Some((id, hello.class));
                self.strangers.remove(&at);
                self.events.push_back(CarrierEvent::Class { association: id, class: hello.class, open: true });
                // What came before the hello waits in the connection.
                let (marked, received_ns) = (false, now.as_ps() / 1000);
                self.take_frames(at, marked, received_ns);
                return;
            }
        }
    }

    /// Hands on the frames that a connection has.
    fn take_frames(&mut self, at: usize, marked: bool, received_ns: u64) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        let Some((association, class)) = channel.place else { return };
        while let Some(bytes) = channel.quic.datagrams().recv() {
            self.events.push_back(CarrierEvent::Frame { association, class, marked, received_ns, bytes });
        }
    }

    fn expel(&mut self, now: Time, at: usize, reason: &'static str) {
        let now = self.instant(now);
        if let Some(channel) = self.channels.get_mut(&at) {
            channel.quic.close(now, VarInt::from_u32(CODE_PROTOCOL), Bytes::from_static(reason.as_bytes()));
            self.strangers.remove(&at);
            self.dirty.insert(at);
        }
    }

    /// A connection may have ended: a lower class takes only itself along, class 0 all.
    fn lose(&mut self, now: Time, at: usize) {
        let Some(channel) = self.channels.get_mut(&at) else { return };
        let Some(reason) = channel.lost.take() else { return };
        self.strangers.remove(&at);
        match channel.place.take() {
            Some((id, 0)) => self.end(now, id, reason),
            Some((id, class)) => {
                if let Some(association) = self.associations.get_mut(&id) {
                    association.channels[usize::from(class)] = None;
                    self.events.push_back(CarrierEvent::Class { association: id, class, open: false });
                }
            }
            None => {}
        }
    }

    /// Ends an association of which nothing has come for too long; before, asks whether the peer is there.
    fn look_at_silence(&mut self, now: Time, id: AssociationId) {
        let idle = Dur::from_ns(self.config.idle_timeout.as_nanos().min(u128::from(u64::MAX / 4000)) as u64);
        let Some(association) = self.associations.get_mut(&id) else { return };
        let Some(silence) = &mut association.silence else { return };
        let channel = association.channels[0].and_then(|at| Some((at, self.channels.get_mut(&at)?)));
        let Some((at, channel)) = channel else { return };
        let frames = frames_of(&channel.quic);
        if frames != silence.frames {
            (silence.frames, silence.heard) = (frames, channel.came);
        }
        let since = now.saturating_since(silence.heard);
        self.silent.remove(&(silence.next, id));
        if since >= idle {
            let reason = Bytes::from_static(b"nothing came for too long");
            channel.quic.close(
                self.epoch + Duration::from_nanos(now.as_ps() / 1000),
                VarInt::from_u32(CODE_PROTOCOL),
                reason,
            );
            return self.end(now, id, CloseReason::Silence);
        }
        // A peer that is there says so by itself before, unless it may be silent for longer than this host waits.
        let quarters = (since.as_ps() / (idle.as_ps() / 4).max(1)).max(1);
        if quarters >= 2 {
            channel.quic.ping();
            self.dirty.insert(at);
        }
        silence.next = (silence.heard + idle.scaled((quarters + 1) as f64 / 4.0)).max(now + Dur::from_ms(1));
        self.silent.insert((silence.next, id));
    }

    fn end(&mut self, now: Time, id: AssociationId, reason: CloseReason) {
        let Some(association) = self.associations.remove(&id) else { return };
        if let Some(silence) = association.silence {
            self.silent.remove(&(silence.next, id));
        }
        let now = self.instant(now);
        for at in association.channels.into_iter().flatten() {
            if let Some(channel) = self.channels.get_mut(&at) {
                channel.place = None;
                if !channel.quic.is_closed() {
                    channel.quic.close(now, VarInt::from_u32(0), Bytes::new());
                }
                self.dirty.insert(at);
            }
        }
        self.events.push_back(CarrierEvent::Closed { association: id, reason });
    }

    fn channel_of(&self, id: AssociationId, class: u8) -> Option<usize> {
        self.associations.get(&id)?.channels.get(usize::from(class)).copied().flatten()
    }

    fn put(&mut self, transmit: Transmit, class: u8, bytes: Vec<u8>) {
        put(&mut self.out, transmit, class, bytes);
    }

    /// Takes what a connection has to send.
    fn drain(&mut self, now: Time, at: usize) {
        let (now, most) = (self.instant(now), self.config.datagrams_at_once());
        if let Some(channel) = self.channels.get_mut(&at) {
            drain(&mut self.out, &mut self.spare, channel, now, most, self.config.udp_payload_bytes);
        }
    }
}

/// What of an address is one user's, most likely: by IPv6 a host has a network of addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// Frames of packets that were authentic.
fn frames_of(quic: &Connection) -> u64 {
    let came = quic.stats().frame_rx;
    came.acks + came.datagram + came.ping + came.stream + came.crypto + came.path_challenge + came.path_response
}

fn time_since(epoch: Instant, at: Instant) -> Time {
    let ns = at.saturating_duration_since(epoch).as_nanos();
    Time::from_ns(ns.min(u128::from(u64::MAX / 1001)) as u64)
}

fn put(out: &mut VecDeque<Datagram>, transmit: Transmit, class: u8, mut bytes: Vec<u8>) {
    bytes.truncate(transmit.size);
    let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
    out.push_back(Datagram { to: transmit.destination, class, ecn, segment_bytes: transmit.segment_size, bytes });
}

fn drain(
    out: &mut VecDeque<Datagram>,
    spare: &mut Vec<Vec<u8>>,
    channel: &mut Channel,
    now: Instant,
    most: usize,
    payload_bytes: u16,
) {
    // A peer who has not said for what a connection is hears in the class in which it came: so it learns whether the path keeps marks.
    let class = channel.place.map_or(channel.came_in, |(_, class)| class);
    loop {
        let mut bytes = spare.pop().unwrap_or_else(|| Vec::with_capacity(usize::from(payload_bytes) * most));
        match channel.quic.poll_transmit(now, most, &mut bytes) {
            Some(transmit) => put(out, transmit, class, bytes),
            None => return spare.push(bytes),
        }
    }
}

fn read_some(quic: &mut Connection, stream: StreamId, most: usize) -> Option<Bytes> {
    if most == 0 {
        return None;
    }
    let mut stream = quic.recv_stream(stream);
    let mut chunks = stream.read(true).ok()?;
    let chunk = chunks.next(most);
    // Whoever reads marks the connection as one that may have something to send.
    let _ = chunks.finalize().should_transmit();
    chunk.ok().flatten().map(|chunk| chunk.bytes)
}

fn peer_of(quic: &Connection) -> Option<Fingerprint> {
    let identity = quic.crypto_session().peer_identity()?;
    let keys = identity.downcast_ref::<Vec<CertificateDer<'static>>>()?;
    keys.first().map(|key| Fingerprint::of(key))
}

fn close_reason(error: ConnectionError, settings: &Settings, config: &QuicConfig) -> CloseReason {
    /// TLS alerts that refuse a certificate (RFC 8446 section 6.2), as QUIC carries them.
    const REFUSED_KEY: std::ops::RangeInclusive<u64> = 0x100 + 42..=0x100 + 49;
    /// The alert of a peer that speaks no protocol of this name and version.
    const NO_COMMON_PROTOCOL: u64 = 0x100 + 120;
    let own = config.identity.fingerprint();
    match error {
        ConnectionError::LocallyClosed => CloseReason::Here,
        ConnectionError::TimedOut => CloseReason::Silence,
        ConnectionError::ApplicationClosed(close) => {
            let reason = String::from_utf8_lossy(&close.reason).chars().filter(|c| !c.is_control()).take(200).collect();
            CloseReason::Peer { code: close.error_code.into_inner(), reason }
        }
        ConnectionError::ConnectionClosed(close) if REFUSED_KEY.contains(&u64::from(close.error_code)) => {
            CloseReason::NotTrusted(own)
        }
        ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == NO_COMMON_PROTOCOL => {
            CloseReason::Failed("the peer speaks another version of this protocol".to_owned())
        }
        ConnectionError::TransportError(error) if u64::from(error.code) == NO_COMMON_PROTOCOL => {
            CloseReason::Failed("the peer speaks another version of this protocol".to_owned())
        }
        ConnectionError::TransportError(error) => match settings.pins.last_refused() {
            Some(peer) => CloseReason::Untrusted(peer),
            None => CloseReason::Failed(error.to_string()),
        },
        other => CloseReason::Failed(other.to_string()),
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
            let begun = self.endpoint.connect(self.instant(now), client, to, "sparelane");
            let (handle, quic) =
                begun.map_err(|error| CarrierError::Address { address: to, reason: error.to_string() })?;
            self.add(handle, quic, Some((id, class)));
            channels[usize::from(class)] = Some(handle.0);
        }
        let (peer, secret, silence) = (None, None, None);
        self.associations.insert(id, Association { channels, peer, secret, is_open: false, silence });
        Ok(id)
    }

    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        let mut answer = Vec::new();
        let (from, ecn) = (arrival.from, EcnCodepoint::from_bits(arrival.ecn));
        let class = self.config.dscp.iter().position(|&dscp| dscp == arrival.dscp).unwrap_or(0) as u8;
        let event = self.endpoint.handle(self.instant(now), from, None, ecn, BytesMut::from(bytes), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let Some(channel) = self.channels.get_mut(&handle.0) else { return };
                channel.quic.handle_event(event);
                (channel.dscp, channel.came_in, channel.came) = (Some(arrival.dscp), class, now);
                let is_settled = channel.connected && channel.place.is_some();
                self.take_frames(handle.0, arrival.ecn == 3, arrival.received_ns);
                self.dirty.insert(handle.0);
                // What else happens at a channel that has its place can wait until something is sent.
                if !is_settled {
                    self.tend(now, handle.0);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.meet(now, incoming, class),
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
                self.tend(now, index);
            }
        }
        let late: Vec<usize> = self.strangers.iter().filter(|(_, until)| **until <= now).map(|(at, _)| *at).collect();
        late.into_iter().for_each(|at| self.expel(now, at, "no hello in time"));
        while let Some(&(at, id)) = self.silent.first().filter(|(at, _)| *at <= now) {
            self.silent.remove(&(at, id));
            self.look_at_silence(now, id);
        }
    }

    fn next_timer(&self) -> Time {
        let strangers = self.strangers.values().min().copied().unwrap_or(Time::NEVER);
        let silent = self.silent.first().map_or(Time::NEVER, |(at, _)| *at);
        self.timers.first().map_or(Time::NEVER, |(at, _)| *at).min(strangers).min(silent)
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
        let bounded = smoothed.min(least * MOST_OVER_LEAST);
        (least < FIRST_TIMEOUT).then(|| Dur::from_ns(bounded.as_nanos() as u64))
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
            // What does not fit counts as lost on the way.
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
        let at = self.channel_of(association, 0)?;
        let channel = self.channels.get_mut(&at)?;
        let bytes = read_some(&mut channel.quic, channel.stream?, CONTROL_CHUNK)?;
        self.dirty.insert(at);
        Some(bytes)
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
            self.tend(now, at);
        }
        self.out.pop_front()
    }

    fn reuse(&mut self, datagram: Datagram) {
        let mut bytes = datagram.bytes;
        if self.spare.len() < MOST_SPARE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
