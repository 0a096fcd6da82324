//! The format of the frames that two nodes exchange in datagrams.
//!
//! The first byte of a frame has the version in its high half and the kind in its low half. The flow's number follows.
//! A frame does not carry its class: the connection on which it arrives determines the class, so that a frame cannot
//! claim a false one. Segment numbers are the low 32 bits ([`sparelane_core::widen`] restores the rest). All integers
//! are in network byte order.
//!
//! | kind | after version, kind and flow (5 bytes) |
//! |---|---|
//! | 1, data | flags (1: resent, 2: window reduced, 4: last, 8: asks for receive times), segment (4), payload |
//! | 2, acknowledgments | end of the receive window (4), then entries |
//! | 3, done | nothing; the sender has been acknowledged in full |
//! | 4, probe | nothing; asks for the receive window |
//! | 5, reset | code (2); the flow ends early |
//! | 6, train | flags (1: the last of its train), padding |
//! | 7, train report | class (1), frames (4), bytes (8), nanoseconds from the first to the latest (8) |
//! | 8, echo | padding |
//! | 9, echoed | code point of the echo on arrival (1), its bytes (2) |
//!
//! Frames of kinds 6 to 9 measure the path. In place of a flow, they have a number that their sender chooses.
//!
//! An entry of an acknowledgment has these fields:
//!
//! - flags (1); bits 0 to 2: number of blocks, 3: caused by a retransmission, 4: congestion echo, 5: has a receive time,
//!   6: is a run
//! - the cumulative acknowledgment (4)
//! - the segment that caused it (4)
//! - in a run, the number of further acknowledgments (2); each is plain, and of the next segment
//! - the receive time, if flagged, in nanoseconds by the receiver's clock (8)
//! - the blocks, each with start (4) and end (4)
//!
//! The decoder checks the format only. [`Sender::handle_ack`](sparelane_transport::Sender::handle_ack) and
//! [`Receiver::handle_data`](sparelane_transport::Receiver::handle_data) validate the numbers.

use bytes::{BufMut, Bytes};
use sparelane_transport::MAX_SACK_BLOCKS;
use thiserror::Error;

/// The version of this format.
pub const VERSION: u8 = 1;

/// Bytes of a data frame before its payload.
pub const DATA_HEADER_BYTES: usize = 10;

/// Bytes of a frame of acknowledgments before its first entry.
pub const ACKS_HEADER_BYTES: usize = 9;

/// Bytes of the longest entry.
pub const MAX_ENTRY_BYTES: usize = 1 + 4 + 4 + 2 + 8 + 8 * MAX_SACK_BLOCKS;

const DATA: u8 = 1;
const ACKS: u8 = 2;
const DONE: u8 = 3;
const PROBE: u8 = 4;
const RESET: u8 = 5;
const TRAIN: u8 = 6;
const TRAIN_REPORT: u8 = 7;
const ECHO: u8 = 8;
const ECHOED: u8 = 9;

/// The minimum size of a train or echo frame.
pub const PROBE_BYTES: usize = 6;

const LAST_OF_TRAIN: u8 = 1;

const RESENT: u8 = 1;
const REDUCED: u8 = 2;
const LAST: u8 = 4;
const TIMED: u8 = 8;

const COUNT: u8 = 0b111;
const ENTRY_RESENT: u8 = 1 << 3;
const ENTRY_ECHO: u8 = 1 << 4;
const ENTRY_TIMED: u8 = 1 << 5;
const ENTRY_RUN: u8 = 1 << 6;
const ENTRY_UNKNOWN: u8 = 1 << 7;

/// Bytes that are not a valid frame.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// The frame is truncated.
    #[error("the frame ends early, after {bytes} bytes")]
    Short {
        /// The bytes present.
        bytes: usize,
    },
    /// The version is not supported.
    #[error("a frame of version {version}; this end speaks version {VERSION}")]
    Version {
        /// The version of the frame.
        version: u8,
    },
    /// The kind is not known.
    #[error("there is no frame of kind {kind}")]
    Kind {
        /// The kind of the frame.
        kind: u8,
    },
    /// A flag is not known.
    #[error("unknown flags {flags:#04x}")]
    Flags {
        /// All flags of the frame.
        flags: u8,
    },
    /// An acknowledgment has too many blocks.
    #[error("{count} blocks in an acknowledgment; at most {MAX_SACK_BLOCKS} are allowed")]
    Blocks {
        /// The number of blocks.
        count: u8,
    },
    /// Bytes are left over.
    #[error("{bytes} bytes too many")]
    Long {
        /// The number of excess bytes.
        bytes: usize,
    },
}

/// A segment with its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// The flow.
    pub flow: u32,
    /// The low 32 bits of the segment's number.
    pub segment: u32,
    /// True for a retransmission of class 0.
    pub resent: bool,
    /// True if the window was reduced because of a congestion mark (CWR of RFC 3168).
    pub window_reduced: bool,
    /// True for the last segment of the flow.
    pub last: bool,
    /// Asks for receive times in acknowledgments.
    pub timed: bool,
    /// The payload; empty in a segment that only ends the stream.
    pub payload: Bytes,
}

/// An acknowledgment, or a run of plain ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The low 32 bits of the next segment expected.
    pub cumulative: u32,
    /// The low 32 bits of the segment whose arrival caused it.
    pub trigger: u32,
    /// True if that segment was a retransmission.
    pub resent: bool,
    /// Echoes a congestion mark (ECE of RFC 3168).
    pub ecn_echo: bool,
    /// The receive time of that segment, nanoseconds by the receiver's clock.
    pub received_ns: Option<u64>,
    /// The number of further plain acknowledgments, each of the next segment.
    pub run: u16,
    /// The number of valid elements in `blocks`.
    pub block_count: u8,
    /// The low 32 bits of the start and end of each block.
    pub blocks: [(u32, u32); MAX_SACK_BLOCKS],
}

impl Entry {
    /// Appends `next` to the run if both are plain and `next` continues it. Returns true if it did.
    pub fn extend(&mut self, next: &Entry) -> bool {
        // A plain entry carries nothing but the next segment in sequence.
        let ahead = u32::from(self.run) + 1;
        let plain = |entry: &Entry| {
            let bare =
                Entry { cumulative: entry.cumulative, trigger: entry.trigger, run: entry.run, ..Entry::default() };
            *entry == bare && entry.cumulative == entry.trigger.wrapping_add(1)
        };
        let joins = next.run == 0
            && self.run < u16::MAX
            && next.trigger == self.trigger.wrapping_add(ahead)
            && plain(self)
            && plain(next);
        self.run += u16::from(joins);
        joins
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let with = |on: bool, flag: u8| if on { flag } else { 0 };
        let timed = with(self.received_ns.is_some(), ENTRY_TIMED);
        let run = with(self.run > 0, ENTRY_RUN);
        let count = self.block_count.min(MAX_SACK_BLOCKS as u8);
        out.put_u8(count | with(self.resent, ENTRY_RESENT) | with(self.ecn_echo, ENTRY_ECHO) | timed | run);
        out.put_u32(self.cumulative);
        out.put_u32(self.trigger);
        if self.run > 0 {
            out.put_u16(self.run);
        }
        if let Some(ns) = self.received_ns {
            out.put_u64(ns);
        }
        for (start, end) in &self.blocks[..usize::from(count)] {
            out.put_u32(*start);
            out.put_u32(*end);
        }
    }

    fn decode(rest: &mut Reader<'_>) -> Result<Entry, FrameError> {
        let flags = rest.u8()?;
        if flags & ENTRY_UNKNOWN != 0 {
            return Err(FrameError::Flags { flags });
        }
        let block_count = flags & COUNT;
        if usize::from(block_count) > MAX_SACK_BLOCKS {
            return Err(FrameError::Blocks { count: block_count });
        }
        let (cumulative, trigger) = (rest.u32()?, rest.u32()?);
        let run = if flags & ENTRY_RUN != 0 { rest.u16()? } else { 0 };
        let received_ns = if flags & ENTRY_TIMED != 0 { Some(rest.u64()?) } else { None };
        let mut blocks = [(0, 0); MAX_SACK_BLOCKS];
        for block in &mut blocks[..usize::from(block_count)] {
            *block = (rest.u32()?, rest.u32()?);
        }
        let (resent, ecn_echo) = (flags & ENTRY_RESENT != 0, flags & ENTRY_ECHO != 0);
        Ok(Entry { cumulative, trigger, resent, ecn_echo, received_ns, run, block_count, blocks })
    }
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A segment.
    Data(Data),
    /// Acknowledgments of one class.
    Acks {
        /// The flow.
        flow: u32,
        /// The low 32 bits of the first segment beyond the receive window.
        edge: u32,
        /// The acknowledgments, oldest first.
        entries: Vec<Entry>,
    },
    /// The sender confirms that the receiver has acknowledged everything.
    Done {
        /// The flow.
        flow: u32,
    },
    /// Asks for the receive window.
    Probe {
        /// The flow.
        flow: u32,
    },
    /// Ends the flow early.
    Reset {
        /// The flow.
        flow: u32,
        /// The reason, as defined by the applications.
        code: u16,
    },
    /// A frame of a packet train, whose arrival times the peer measures.
    Train {
        /// The train's number.
        number: u32,
        /// True for the last frame of the train.
        last: bool,
        /// Bytes of the frame, at least [`PROBE_BYTES`].
        bytes: usize,
    },
    /// A report on the arrivals of a train.
    TrainReport {
        /// The train's number.
        number: u32,
        /// The arrivals so far.
        seen: TrainReport,
    },
    /// Asks the peer whether a frame of this size and class arrives.
    Echo {
        /// The echo's number.
        number: u32,
        /// Bytes of the frame, at least [`PROBE_BYTES`].
        bytes: usize,
    },
    /// Answers an echo.
    Echoed {
        /// The echo's number.
        number: u32,
        /// The code point with which the echo arrived.
        dscp: u8,
        /// Bytes of the echo.
        bytes: u16,
    },
}

/// The arrivals of a train so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrainReport {
    /// The class in which the train arrives.
    pub class: u8,
    /// Number of frames.
    pub frames: u32,
    /// Bytes of all frames.
    pub bytes: u64,
    /// Nanoseconds from the first arrival to the latest.
    pub span_ns: u64,
}

impl Frame {
    /// The flow that the frame belongs to; in frames of kinds 6 to 9 their number.
    pub fn flow(&self) -> u32 {
        match self {
            Frame::Data(data) => data.flow,
            Frame::Acks { flow, .. } | Frame::Done { flow } | Frame::Probe { flow } | Frame::Reset { flow, .. } => {
                *flow
            }
            Frame::Train { number, .. }
            | Frame::TrainReport { number, .. }
            | Frame::Echo { number, .. }
            | Frame::Echoed { number, .. } => *number,
        }
    }

    /// Encodes the frame.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Frame::Data(data) => encode_data(data, &data.payload),
            Frame::Acks { flow, edge, entries } => {
                let mut out = begin(ACKS, *flow, ACKS_HEADER_BYTES + entries.len() * MAX_ENTRY_BYTES);
                out.put_u32(*edge);
                entries.iter().for_each(|entry| entry.encode(&mut out));
                out
            }
            Frame::Done { flow } => begin(DONE, *flow, 5),
            Frame::Probe { flow } => begin(PROBE, *flow, 5),
            Frame::Reset { flow, code } => {
                let mut out = begin(RESET, *flow, 7);
                out.put_u16(*code);
                out
            }
            // Frames that measure a path are padded to the size under test.
            Frame::Train { number, last, bytes } => {
                let mut out = begin(TRAIN, *number, *bytes);
                out.put_u8(u8::from(*last) * LAST_OF_TRAIN);
                out.resize((*bytes).max(PROBE_BYTES), 0);
                out
            }
            Frame::TrainReport { number, seen } => {
                let mut out = begin(TRAIN_REPORT, *number, 26);
                out.put_u8(seen.class);
                out.put_u32(seen.frames);
                out.put_u64(seen.bytes);
                out.put_u64(seen.span_ns);
                out
            }
            Frame::Echo { number, bytes } => {
                let mut out = begin(ECHO, *number, *bytes);
                out.resize((*bytes).max(PROBE_BYTES), 0);
                out
            }
            Frame::Echoed { number, dscp, bytes } => {
                let mut out = begin(ECHOED, *number, 8);
                out.put_u8(*dscp);
                out.put_u16(*bytes);
                out
            }
        }
    }

    /// Decodes a frame. A payload is a slice of `bytes`, not a copy.
    ///
    /// # Errors
    /// The bytes are not a valid frame of this version.
    pub fn decode(bytes: &Bytes) -> Result<Frame, FrameError> {
        let mut rest = Reader { bytes, at: 0 };
        let first = rest.u8()?;
        if first >> 4 != VERSION {
            return Err(FrameError::Version { version: first >> 4 });
        }
        // Trains and echoes have their number in place of the flow.
        let (kind, flow) = (first & 15, rest.u32()?);
        let frame = match kind {
            DATA => {
                let flags = rest.u8()?;
                if flags & !(RESENT | REDUCED | LAST | TIMED) != 0 {
                    return Err(FrameError::Flags { flags });
                }
                let segment = rest.u32()?;
                // The payload is everything that follows; it is shared, not copied.
                let payload = bytes.slice(rest.at..);
                rest.at = bytes.len();
                let [resent, window_reduced, last, timed] =
                    [RESENT, REDUCED, LAST, TIMED].map(|flag| flags & flag != 0);
                Frame::Data(Data { flow, segment, resent, window_reduced, last, timed, payload })
            }
            ACKS => {
                let edge = rest.u32()?;
                // The shortest entry has 9 bytes.
                let mut entries = Vec::with_capacity((bytes.len() - rest.at) / 9);
                while rest.at < bytes.len() {
                    entries.push(Entry::decode(&mut rest)?);
                }
                Frame::Acks { flow, edge, entries }
            }
            DONE => Frame::Done { flow },
            PROBE => Frame::Probe { flow },
            RESET => Frame::Reset { flow, code: rest.u16()? },
            TRAIN => {
                let flags = rest.u8()?;
                if flags & !LAST_OF_TRAIN != 0 {
                    return Err(FrameError::Flags { flags });
                }
                rest.at = bytes.len();
                Frame::Train { number: flow, last: flags & LAST_OF_TRAIN != 0, bytes: bytes.len() }
            }
            TRAIN_REPORT => {
                let (class, frames, bytes, span_ns) = (rest.u8()?, rest.u32()?, rest.u64()?, rest.u64()?);
                Frame::TrainReport { number: flow, seen: TrainReport { class, frames, bytes, span_ns } }
            }
            ECHO => {
                rest.u8()?;
                rest.at = bytes.len();
                Frame::Echo { number: flow, bytes: bytes.len() }
            }
            ECHOED => Frame::Echoed { number: flow, dscp: rest.u8()?, bytes: rest.u16()? },
            _ => return Err(FrameError::Kind { kind }),
        };
        match bytes.len() - rest.at {
            0 => Ok(frame),
            bytes => Err(FrameError::Long { bytes }),
        }
    }
}

/// Encodes a data frame with `payload`; the payload in `data` is ignored, which saves a copy.
pub fn encode_data(data: &Data, payload: &[u8]) -> Vec<u8> {
    let mut out = begin(DATA, data.flow, DATA_HEADER_BYTES + payload.len());
    let with = |on: bool, flag: u8| if on { flag } else { 0 };
    let marks = with(data.resent, RESENT) | with(data.window_reduced, REDUCED);
    out.put_u8(marks | with(data.last, LAST) | with(data.timed, TIMED));
    out.put_u32(data.segment);
    out.put_slice(payload);
    out
}

/// Encodes acknowledgments of a flow in as few frames of at most `max_bytes` as possible.
///
/// # Panics
/// `max_bytes` is too small for one entry.
pub fn encode_acks(flow: u32, edge: u32, entries: &[Entry], max_bytes: usize, mut emit: impl FnMut(Vec<u8>)) {
    assert!(max_bytes >= ACKS_HEADER_BYTES + MAX_ENTRY_BYTES, "a frame of {max_bytes} bytes has no room for an entry");
    let mut out = Vec::new();
    for entry in entries {
        if out.len() + MAX_ENTRY_BYTES > max_bytes {
            emit(std::mem::take(&mut out));
        }
        if out.is_empty() {
            out = begin(ACKS, flow, max_bytes.min(ACKS_HEADER_BYTES + entries.len() * MAX_ENTRY_BYTES));
            out.put_u32(edge);
        }
        entry.encode(&mut out);
    }
    if !out.is_empty() {
        emit(out);
    }
}

fn begin(kind: u8, flow: u32, capacity: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity);
    out.put_u8(VERSION << 4 | kind);
    out.put_u32(flow);
    out
}

/// A cursor over bytes that never reads past the end.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let short = FrameError::Short { bytes: self.bytes.len() };
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()).ok_or(short)?;
        self.at += N;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, FrameError> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, FrameError> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, FrameError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, FrameError> {
        self.take().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    fn data(payload: &'static [u8]) -> Data {
        let payload = Bytes::from_static(payload);
        Data { flow: 7, segment: 0x0102_0304, resent: true, window_reduced: false, last: true, timed: false, payload }
    }

    fn plain(trigger: u32) -> Entry {
        Entry { cumulative: trigger.wrapping_add(1), trigger, ..Entry::default() }
    }

    #[test]
    fn each_kind_is_encoded_as_documented() {
        let full = Entry {
            cumulative: 3,
            trigger: 9,
            resent: true,
            ecn_echo: true,
            received_ns: Some(0x1122),
            run: 0,
            block_count: 1,
            blocks: [(8, 10), (0, 0), (0, 0), (0, 0)],
        };
        let run = Entry { run: 515, ..plain(1) };
        let seen = TrainReport { class: 2, frames: 16, bytes: 0x5a00, span_ns: 0x1d_4c00 };
        let vectors: [(Frame, &str); 10] = [
            (Frame::Data(data(b"ab")), "11 00000007 05 01020304 6162"),
            (
                Frame::Acks { flow: 1, edge: 0x100, entries: vec![run, full] },
                "12 00000001 00000100 40 00000002 00000001 0203 39 00000003 00000009 0000000000001122 00000008 0000000a",
            ),
            (Frame::Done { flow: 2 }, "13 00000002"),
            (Frame::Probe { flow: 0xffff_ffff }, "14 ffffffff"),
            (Frame::Reset { flow: 3, code: 0x0405 }, "15 00000003 0405"),
            (Frame::Train { number: 9, last: true, bytes: 8 }, "16 00000009 01 0000"),
            (Frame::Train { number: 9, last: false, bytes: 6 }, "16 00000009 00"),
            (Frame::TrainReport { number: 9, seen }, "17 00000009 02 00000010 0000000000005a00 00000000001d4c00"),
            (Frame::Echo { number: 4, bytes: 7 }, "18 00000004 0000"),
            (Frame::Echoed { number: 4, dscp: 11, bytes: 7 }, "19 00000004 0b 0007"),
        ];
        for (frame, hex) in vectors {
            let bytes: String = frame.encode().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(bytes, hex.replace(' ', ""), "{frame:?}");
            assert_eq!(Frame::decode(&frame.encode().into()), Ok(frame));
        }
    }

    #[test]
    fn invalid_frames_are_refused_with_a_reason() {
        let cases: [(&[u8], &str); 9] = [
            (b"", "the frame ends early, after 0 bytes"),
            (b"\x21\0\0\0\x01", "a frame of version 2; this end speaks version 1"),
            (b"\x1f\0\0\0\x01", "there is no frame of kind 15"),
            (b"\x11\0\0\0\x01\x80\0\0\0\0", "unknown flags 0x80"),
            (b"\x11\0\0\0\x01\x00\0\0", "the frame ends early, after 8 bytes"),
            (b"\x13\0\0\0\x01\x00", "1 bytes too many"),
            (b"\x12\0\0\0\x01\0\0\0\0\x05\0\0\0\0\0\0\0\0", "5 blocks in an acknowledgment; at most 4 are allowed"),
            (b"\x12\0\0\0\x01\0\0\0\0\x80\0\0\0\0\0\0\0\0", "unknown flags 0x80"),
            (b"\x12\0\0\0\x01\0\0\0\0\x01\0\0\0\0\0\0\0\0", "the frame ends early, after 18 bytes"),
        ];
        for (bytes, message) in cases {
            let refused = Frame::decode(&Bytes::from_static(bytes)).err().map(|error| error.to_string());
            assert_eq!(refused.as_deref(), Some(message));
        }
    }

    fn random_frame(rng: &mut Stream) -> Frame {
        let flow = rng.next_u64() as u32;
        match rng.below(5) {
            0 => {
                let mut flag = || rng.below(2) == 1;
                let [resent, window_reduced, last, timed] = [flag(), flag(), flag(), flag()];
                let payload = vec![5; rng.below(1500) as usize].into();
                let segment = rng.next_u64() as u32;
                Frame::Data(Data { flow, segment, resent, window_reduced, last, timed, payload })
            }
            1 => {
                let entries = (0..1 + rng.below(20)).map(|_| random_entry(rng)).collect();
                Frame::Acks { flow, edge: rng.next_u64() as u32, entries }
            }
            2 => Frame::Done { flow },
            3 => Frame::Probe { flow },
            _ => Frame::Reset { flow, code: rng.next_u64() as u16 },
        }
    }

    fn random_entry(rng: &mut Stream) -> Entry {
        let block_count = rng.below(5) as u8;
        let mut blocks = [(0, 0); MAX_SACK_BLOCKS];
        blocks[..usize::from(block_count)].fill_with(|| (rng.next_u64() as u32, rng.next_u64() as u32));
        Entry {
            cumulative: rng.next_u64() as u32,
            trigger: rng.next_u64() as u32,
            resent: rng.below(2) == 1,
            ecn_echo: rng.below(2) == 1,
            received_ns: (rng.below(2) == 1).then(|| rng.next_u64()),
            run: rng.below(3) as u16,
            block_count,
            blocks,
        }
    }

    #[test]
    fn random_frames_survive_encoding_and_decoding() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        for _ in 0..5_000 {
            let frame = random_frame(&mut rng);
            assert_eq!(Frame::decode(&frame.encode().into()), Ok(frame));
        }
    }

    /// Mutates valid frames by changing, removing and adding bytes.
    #[test]
    fn mutated_frames_never_panic_and_decoded_ones_survive_encoding() {
        let mut rng = Stream::new(2, Domain::Test, 0);
        let mut taken = 0;
        for _ in 0..20_000 {
            let mut bytes = random_frame(&mut rng).encode();
            for _ in 0..rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(3) {
                    0 => bytes[at] = rng.next_u64() as u8,
                    1 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, rng.next_u64() as u8),
                }
            }
            if let Ok(frame) = Frame::decode(&bytes.clone().into()) {
                taken += 1;
                assert_eq!(Frame::decode(&frame.encode().into()), Ok(frame));
            }
        }
        assert!(taken > 5_000, "only {taken} mutated frames are valid");
    }

    #[test]
    fn acknowledgments_in_sequence_share_an_entry_and_others_do_not() {
        let mut entry = plain(u32::MAX);
        assert!(entry.extend(&plain(0)) && entry.extend(&plain(1)), "numbers wrap");
        assert_eq!(entry.run, 2);
        let resent = Entry { resent: true, ..plain(2) };
        let late = Entry { cumulative: 2, ..plain(2) };
        for other in [plain(1), plain(3), resent, late, Entry { run: 1, ..plain(2) }] {
            assert!(!entry.extend(&other), "{other:?}");
        }
        let mut full = Entry { run: u16::MAX, ..plain(0) };
        assert!(!full.extend(&plain(65_536)));
    }

    #[test]
    fn acknowledgment_frames_keep_their_limit_and_lose_no_entry() {
        let mut rng = Stream::new(3, Domain::Test, 0);
        let entries: Vec<_> = (0..500).map(|_| random_entry(&mut rng)).collect();
        let mut decoded = Vec::new();
        encode_acks(4, 77, &entries, 300, |bytes| {
            assert!(bytes.len() <= 300, "{}", bytes.len());
            let Ok(Frame::Acks { flow: 4, edge: 77, entries }) = Frame::decode(&bytes.into()) else {
                panic!("not a frame of acknowledgments")
            };
            decoded.extend(entries);
        });
        assert_eq!(decoded, entries);
    }
}
