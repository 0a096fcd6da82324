//! The interface between a node and the protocol that carries its frames: encrypted datagrams by class, and a reliable
//! control stream.
//!
//! A carrier has neither socket nor clock. Received datagrams are passed to `handle_datagram`; datagrams to send come
//! from `poll_transmit` and events from `poll_event`. Between this host and a peer there is an *association* with one
//! channel per priority class. Each channel has its own keys, packet numbers and replay window, since datagrams of
//! different classes overtake each other.

use crate::identity::Fingerprint;
use crate::peer_text::PeerText;
use bytes::Bytes;
use sparelane_core::{Dur, Time};
use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// The default code points (DSCP) of the classes. Class 0 is best effort. The others are in the lowest band of Linux's
/// default queue, pfifo_fast; 4, which seems the natural choice, would be in its highest band.
pub const DEFAULT_DSCP: [u8; 4] = [0, 3, 11, 19];

/// The largest batch that a socket accepts, bytes.
pub(crate) const MAX_BATCH_BYTES: usize = 65_507;

/// The identifier of an association, unique within a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId(pub u64);

/// A UDP datagram to send, or a batch of several with equal size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The destination.
    pub to: SocketAddr,
    /// The priority class.
    pub class: u8,
    /// The ECN codepoint, two bits.
    pub ecn: u8,
    /// In a batch, the bytes of each datagram; the last may be shorter (generic segmentation offload).
    pub segment_bytes: Option<usize>,
    /// The bytes of all datagrams.
    pub bytes: Vec<u8>,
}

impl Datagram {
    /// The individual datagrams.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(self.segment_bytes.unwrap_or(self.bytes.len()).max(1))
    }
}

/// Metadata of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The source address, which is not authenticated.
    pub from: SocketAddr,
    /// The DSCP, six bits.
    pub dscp: u8,
    /// The ECN codepoint, two bits.
    pub ecn: u8,
    /// The receive time, nanoseconds of this host's receive clock.
    pub received_ns: u64,
}

/// The reason for which packets do not reach a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// No program receives at the port.
    PortClosed,
    /// There is no such host, or it does not answer on its link.
    Host,
    /// A router has no route to the network.
    Network,
    /// A firewall on the way forbids it.
    Forbidden,
    /// This host has no route.
    NoRoute,
    /// This host's firewall forbids it.
    ForbiddenHere,
}

/// A report that packets to a host do not arrive, from the network (ICMP) or from the kernel. A
/// report from the network is not authenticated: everybody who knows or guesses addresses and ports
/// can forge it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{}", self.text())]
pub struct Unreachable {
    /// The destination of the packets.
    pub to: SocketAddr,
    /// The reason.
    pub obstacle: Obstacle,
    /// The host that claims it, if it is known: a router or the destination.
    pub reporter: Option<IpAddr>,
}

impl Unreachable {
    fn text(&self) -> String {
        let to = self.to;
        let reporter = match self.reporter.filter(|&reporter| reporter != to.ip().to_canonical()) {
            Some(reporter) => format!("{reporter} reports"),
            None => "the network reports".to_owned(),
        };
        match self.obstacle {
            Obstacle::PortClosed => format!("{to} refused the connection: no program receives at this port"),
            Obstacle::Host => format!("{to} is unreachable: {reporter} that the host does not answer"),
            Obstacle::Network => format!("{to} is unreachable: {reporter} that there is no route to its network"),
            Obstacle::Forbidden => format!("{to} is unreachable: {reporter} that a firewall forbids it"),
            Obstacle::NoRoute => format!("{to}: this host has no route to it"),
            Obstacle::ForbiddenHere => format!("{to}: this host's firewall forbids it"),
        }
    }
}

/// An event of a carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarrierEvent {
    /// An association is open: both sides are authenticated, and class 0 is usable.
    Opened {
        /// The association.
        association: AssociationId,
        /// The peer's key.
        peer: Fingerprint,
        /// The peer's address.
        address: SocketAddr,
    },
    /// A class has become usable or unusable.
    Class {
        /// The association.
        association: AssociationId,
        /// The class.
        class: u8,
        /// True if it is usable.
        open: bool,
    },
    /// A frame has arrived.
    Frame {
        /// The association.
        association: AssociationId,
        /// The class of the channel on which it arrived.
        class: u8,
        /// True if the network marked the datagram (ECN).
        marked: bool,
        /// The receive time, nanoseconds.
        received_ns: u64,
        /// The frame.
        bytes: Bytes,
    },
    /// The control stream may have more to read.
    Control {
        /// The association.
        association: AssociationId,
    },
    /// The association has ended.
    Closed {
        /// The association.
        association: AssociationId,
        /// The reason.
        reason: CloseReason,
    },
}

/// The reason for which an association ended.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CloseReason {
    /// This host closed it.
    #[error("closed by this host")]
    Here,
    /// The peer closed it.
    #[error("closed by the peer: {reason} (code {code})")]
    Peer {
        /// The peer's code.
        code: u64,
        /// The peer's message.
        reason: PeerText,
    },
    /// This host does not trust the peer's key.
    #[error("the peer's key is {0}, which is not trusted")]
    Untrusted(Fingerprint),
    /// The peer does not trust this host's key.
    #[error("the peer does not trust this host's key, {0}")]
    NotTrusted(Fingerprint),
    /// The peer's key was removed from the trusted ones.
    #[error("the peer's key, {0}, is not trusted any more")]
    Revoked(Fingerprint),
    /// The idle timeout expired.
    #[error("the peer was silent for too long")]
    IdleTimeout,
    /// The peer has lost the state of the association (RFC 9000 section 10.3).
    #[error("the peer has restarted, and does not know this connection any more")]
    Restarted,
    /// No data gets through, although the peer answers.
    #[error("no data gets through, although the peer answers: does the path carry full UDP payloads?")]
    Stuck,
    /// The peer has ended the handshake before its end. Its reason cannot be told before that.
    #[error("the peer gave up the handshake: it got no answer in time, or too many others connect")]
    HandshakeGivenUp,
    /// Packets of a handshake do not reach the peer.
    #[error(transparent)]
    Unreachable(Unreachable),
    /// Any other failure. The text may contain a message of the peer.
    #[error("the connection failed: {0}")]
    Failed(PeerText),
}

/// An error of a carrier.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CarrierError {
    /// The limit of associations is reached.
    #[error("there are {0} associations already, which is the limit")]
    TooMany(usize),
    /// A setting is out of range.
    #[error("{what} is {value}; allowed: {allowed}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The allowed values.
        allowed: &'static str,
    },
    /// The address cannot be connected to.
    #[error("{address} cannot be connected to: {reason}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// The keys or algorithms do not match.
    #[error("the keys cannot be used: {0}")]
    Keys(String),
}

/// Carries frames and a control stream between this host and its peers.
pub trait Carrier {
    /// Starts an association with the peer at `to`.
    ///
    /// # Errors
    /// The limit of associations is reached, or the address is not valid.
    fn connect(&mut self, now: Time, to: SocketAddr) -> Result<AssociationId, CarrierError>;

    /// Handles a received UDP datagram.
    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]);

    /// Handles a report that packets do not arrive. It ends an association of this host that has
    /// had no answer yet, and no other: the report may be forged.
    fn handle_unreachable(&mut self, _: Time, _: Unreachable) {}

    /// Handles expired timers.
    fn handle_timer(&mut self, now: Time);

    /// Returns the time at which [`handle_timer`](Self::handle_timer) should be called next.
    fn next_timer(&self) -> Time;

    /// Returns the next event, oldest first.
    fn poll_event(&mut self) -> Option<CarrierEvent>;

    /// The largest frame that an association carries, bytes; `None` until it is open.
    fn max_frame_bytes(&self, association: AssociationId) -> Option<usize>;

    /// The round-trip time of class 0, if it is known.
    fn round_trip(&self, association: AssociationId) -> Option<Dur>;

    /// The time of the latest datagram from the peer, if there was one.
    fn latest_arrival(&self, _: AssociationId) -> Option<Time> {
        None
    }

    /// Makes the peer send an answer, to learn whether it still knows the association.
    fn ping(&mut self, _: AssociationId) {}

    /// The DSCP of the latest datagram received in a class.
    fn latest_dscp(&self, association: AssociationId, class: u8) -> Option<u8>;

    /// Bytes of a full datagram besides its frame.
    fn overhead_bytes(&self) -> usize;

    /// Sends frames of one class at once. They are neither queued nor retransmitted.
    fn send(&mut self, now: Time, association: AssociationId, class: u8, frames: &mut dyn Iterator<Item = Vec<u8>>);

    /// Writes to the control stream; returns the number of bytes accepted.
    fn write_control(&mut self, association: AssociationId, bytes: &[u8]) -> usize;

    /// Returns the next bytes of the control stream, if any have arrived. Bytes that arrived before the end of the
    /// association can still be read after it, until [`forget_control`](Self::forget_control).
    fn read_control(&mut self, association: AssociationId) -> Option<Bytes>;

    /// Drops the bytes of the control stream of an association that has ended.
    fn forget_control(&mut self, _: AssociationId) {}

    /// Closes an association, with a code and a message for the peer.
    fn close(&mut self, now: Time, association: AssociationId, code: u32, reason: &str);

    /// Returns the next datagrams to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram>;

    /// Takes back the buffer of a sent datagram for later use.
    fn reuse(&mut self, _: Datagram) {}
}
