//! What carries frames between two hosts, whatever it is: encrypted datagrams by class, and a reliable stream for control.
//!
//! A carrier has no socket and no clock. What comes from a socket goes in by `handle_datagram`; what is to go comes out of
//! `poll_transmit`, and what has happened out of `poll_event`. Between this host and a peer it makes an *association*, which has
//! one channel a class: each with keys, packet numbers and a replay window of its own, as classes overtake each other.

use crate::identity::Fingerprint;
use bytes::Bytes;
use sparelane_core::{Dur, Time};
use std::net::SocketAddr;
use thiserror::Error;

/// The code points of the classes by default: class 0 is best effort, and the others lie in the lowest band of Linux's own queue
/// (4, which looks like the next lower one, would lie in the highest).
pub const DEFAULT_DSCP: [u8; 4] = [0, 3, 11, 19];

/// The largest batch that a socket takes, bytes.
pub(crate) const MAX_BATCH_BYTES: usize = 65_507;

/// The number of an association of one carrier; none is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId(pub u64);

/// One UDP datagram to send, or several of equal size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where it goes.
    pub to: SocketAddr,
    /// The class in which it goes.
    pub class: u8,
    /// The codepoint of explicit congestion notification, two bits.
    pub ecn: u8,
    /// Where there are several, the bytes of each but the last, which may be shorter (generic segmentation offload).
    pub segment_bytes: Option<usize>,
    /// All bytes.
    pub bytes: Vec<u8>,
}

impl Datagram {
    /// Each datagram by itself.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(self.segment_bytes.unwrap_or(self.bytes.len()).max(1))
    }
}

/// What came from the network with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who sent it, or so it says.
    pub from: SocketAddr,
    /// Its code point of differentiated services, six bits.
    pub dscp: u8,
    /// The codepoint of explicit congestion notification, two bits.
    pub ecn: u8,
    /// When it arrived, nanoseconds by this host's clock of receive times.
    pub received_ns: u64,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarrierEvent {
    /// Peer and host know each other's keys, and class 0 is open.
    Opened {
        /// The association.
        association: AssociationId,
        /// The peer's key.
        peer: Fingerprint,
        /// Its address.
        address: SocketAddr,
    },
    /// A class can be used, or no longer.
    Class {
        /// The association.
        association: AssociationId,
        /// The class.
        class: u8,
        /// Whether it can.
        open: bool,
    },
    /// A frame came in.
    Frame {
        /// The association.
        association: AssociationId,
        /// The class of the channel that brought it.
        class: u8,
        /// The network marked the datagram.
        marked: bool,
        /// When it arrived, nanoseconds.
        received_ns: u64,
        /// The frame.
        bytes: Bytes,
    },
    /// There may be more to read from the control stream.
    Control {
        /// The association.
        association: AssociationId,
    },
    /// The association is over.
    Closed {
        /// The association.
        association: AssociationId,
        /// Why.
        reason: CloseReason,
    },
}

/// Why an association is over.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CloseReason {
    /// This host closed it.
    #[error("closed by this host")]
    Here,
    /// The peer closed it.
    #[error("closed by the peer: {reason} (code {code})")]
    Peer {
        /// In numbers.
        code: u64,
        /// In words.
        reason: String,
    },
    /// The peer has another key than those that are trusted.
    #[error("the peer's key is {0}, which is not trusted")]
    Untrusted(Fingerprint),
    /// The peer does not trust this host's key.
    #[error("the peer does not trust this host's key, {0}")]
    NotTrusted(Fingerprint),
    /// Nothing came for too long.
    #[error("nothing came from the peer for too long")]
    Silence,
    /// Anything else.
    #[error("the connection failed: {0}")]
    Failed(String),
}

/// Why a carrier cannot begin.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CarrierError {
    /// The limit of associations is reached.
    #[error("there are {0} associations already, which is the limit")]
    TooMany(usize),
    /// A setting is out of its range.
    #[error("{what} is {value}; allowed: {allowed}")]
    Setting {
        /// What is set.
        what: &'static str,
        /// To what.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The address cannot be sent to.
    #[error("{address} cannot be connected to: {reason}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why.
        reason: String,
    },
    /// Keys or algorithms do not fit.
    #[error("the keys cannot be used: {0}")]
    Keys(String),
}

/// Carries frames and control between this host and its peers.
pub trait Carrier {
    /// Begins an association with the peer at this address.
    ///
    /// # Errors
    /// It cannot begin.
    fn connect(&mut self, now: Time, to: SocketAddr) -> Result<AssociationId, CarrierError>;

    /// A UDP datagram came in.
    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]);

    /// Time has passed.
    fn handle_timer(&mut self, now: Time);

    /// When [`handle_timer`](Self::handle_timer) wants to be called.
    fn next_timer(&self) -> Time;

    /// What has happened since, oldest first.
    fn poll_event(&mut self) -> Option<CarrierEvent>;

    /// The largest frame that an association carries, bytes; `None` while it is not open.
    fn max_frame_bytes(&self, association: AssociationId) -> Option<usize>;

    /// The round-trip time of class 0, as far as the carrier knows it.
    fn round_trip(&self, association: AssociationId) -> Option<Dur>;

    /// The code point with which the latest datagram of a class came.
    fn latest_dscp(&self, association: AssociationId, class: u8) -> Option<u8>;

    /// Bytes of a full datagram that are not of its frame.
    fn overhead_bytes(&self) -> usize;

    /// Hands over frames of one class, which leave at once; none is kept for later, and none is sent again.
    fn send(&mut self, now: Time, association: AssociationId, class: u8, frames: &mut dyn Iterator<Item = Vec<u8>>);

    /// Writes to the control stream; returns how many bytes it took.
    fn write_control(&mut self, association: AssociationId, bytes: &[u8]) -> usize;

    /// The next bytes of the control stream, if they are here.
    fn read_control(&mut self, association: AssociationId) -> Option<Bytes>;

    /// Ends an association, with a reason for the peer.
    fn close(&mut self, now: Time, association: AssociationId, code: u32, reason: &str);

    /// The next datagrams to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram>;

    /// Takes back the memory of a datagram that has been sent, for one that comes later.
    fn reuse(&mut self, _: Datagram) {}
}
