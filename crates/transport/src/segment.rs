//! What the two ends of a connection say to each other.
//!
//! Sequence numbers count segments, not bytes: a write is cut into full segments and a last one that
//! may be short, and segments are never cut again. Window accounting is per segment too, as in Linux.

use sparelane_core::Seq;

/// A run of segments, `start` inclusive and `end` exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First segment.
    pub start: Seq,
    /// One past the last segment.
    pub end: Seq,
}

/// The most SACK blocks that an acknowledgment carries (RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// What a sender puts on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// The first packet of the handshake.
    Syn,
    /// Data; the first of them also completes the handshake.
    Data(Segment),
    /// A question for the receive window, which is shut: the receiver [answers](crate::Receiver::handle_probe).
    Probe,
    /// The connection has ended, without what is not acknowledged.
    Reset,
}

/// One data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its number, from 0.
    pub seq: Seq,
    /// Payload bytes; none in the segment that ends the stream.
    pub payload_bytes: u32,
    /// Priority class, 0 the highest.
    pub class: u8,
    /// Sent before in class 0.
    pub retransmission: bool,
    /// The window was reduced because of a congestion mark (RFC 3168).
    pub window_reduced: bool,
}

/// Consecutive segments of one class that a host hands to the receiver as one (receive offload, LRO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The first segment.
    pub first: Seq,
    /// How many there are, at least one.
    pub segments: u32,
    /// Payload bytes of each but the last.
    pub payload_bytes: u32,
    /// Payload bytes of the last.
    pub last_payload_bytes: u32,
    /// Priority class of all.
    pub class: u8,
    /// Whether any was a retransmission.
    pub retransmission: bool,
    /// Whether any said that the window was reduced (RFC 3168).
    pub window_reduced: bool,
    /// Whether the network marked any.
    pub marked: bool,
}

/// One acknowledgment. Its SACK blocks travel beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSegment {
    /// The next segment that the receiver expects.
    pub cumulative: Seq,
    /// The segment whose arrival caused this acknowledgment.
    pub trigger: Seq,
    /// Whether that arrival was a retransmission.
    pub trigger_retransmitted: bool,
    /// The class that it travels in: that of the segment that caused it.
    pub class: u8,
    /// Echo of a congestion mark (RFC 3168).
    pub ecn_echo: bool,
}

impl AckSegment {
    /// In class 0, caused by a segment that came for the first time, with nothing else to say.
    pub const fn plain(cumulative: Seq, trigger: Seq) -> AckSegment {
        AckSegment { cumulative, trigger, trigger_retransmitted: false, class: 0, ecn_echo: false }
    }
}
