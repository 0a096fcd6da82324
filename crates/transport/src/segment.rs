//! The segments and acknowledgments that the two ends of a connection exchange.
//!
//! Sequence numbers count segments, not bytes. A write is divided into full segments and a last segment that may be
//! short; segments are never divided again. The window is counted in segments as well, as in Linux.

use sparelane_core::Seq;

/// A range of segments, `start` inclusive and `end` exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First segment.
    pub start: Seq,
    /// One past the last segment.
    pub end: Seq,
}

/// The largest number of SACK blocks in an acknowledgment (RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// A packet that a sender transmits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// The SYN.
    Syn,
    /// A data segment. The first one also completes the handshake.
    Data(Segment),
    /// A zero-window probe (RFC 9293 section 3.8.6.1), which the receiver [answers](crate::Receiver::handle_probe).
    Probe,
    /// A reset: the connection is aborted, and unacknowledged data may be lost.
    Reset,
}

/// One data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The sequence number, counted in segments.
    pub seq: Seq,
    /// Payload bytes. The segment that ends the stream (FIN) has none.
    pub payload_bytes: u32,
    /// The priority class; 0 is the highest.
    pub class: u8,
    /// True if the segment was sent before in class 0.
    pub retransmission: bool,
    /// The CWR flag: the sender has reduced its window (RFC 3168 section 6.1.2).
    pub window_reduced: bool,
}

/// Consecutive segments of one class that a host passes to the receiver as one (large receive offload, LRO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The first segment.
    pub first: Seq,
    /// The number of segments, at least one.
    pub segments: u32,
    /// Payload bytes of each segment except for the last.
    pub payload_bytes: u32,
    /// Payload bytes of the last segment.
    pub last_payload_bytes: u32,
    /// The priority class of the segments.
    pub class: u8,
    /// True if any segment is a retransmission.
    pub retransmission: bool,
    /// True if any segment carries the CWR flag (RFC 3168).
    pub window_reduced: bool,
    /// True if any segment carries a congestion mark (CE).
    pub marked: bool,
}

/// The sequence numbers and flags of an acknowledgment. Its SACK blocks are passed separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckSegment {
    /// The next segment that the receiver expects (RCV.NXT).
    pub cumulative: Seq,
    /// The segment whose arrival triggered this acknowledgment.
    pub trigger: Seq,
    /// True if that segment was a retransmission.
    pub trigger_retransmitted: bool,
    /// The priority class, which is that of the triggering segment.
    pub class: u8,
    /// The ECE flag, the echo of a congestion mark (RFC 3168).
    pub ecn_echo: bool,
}

impl AckSegment {
    /// Returns an acknowledgment in class 0 without flags, triggered by a first transmission.
    pub const fn plain(cumulative: Seq, trigger: Seq) -> AckSegment {
        AckSegment { cumulative, trigger, trigger_retransmitted: false, class: 0, ecn_echo: false }
    }
}
