//! The receiving side of a flow: the transport's receiver, with payload that is out of order or unread.
//!
//! Its memory is bounded by the window that it advertises. Each segment has a slot counted from the first unread one;
//! segments beyond the last slot are refused. The slots and a fixed part of each segment count as memory, too: a peer
//! chooses how small its segments are and how far apart.

use super::{Log, MAX_CLASSES, WIRE_HEADER_BYTES};
use crate::frame::{Data, Entry, encode_acks};
use bytes::Bytes;
use sparelane_core::{Seq, Time, widen};
use sparelane_transport::qlog::Extent;
use sparelane_transport::{AckSegment, Receiver, SackBlock, Segment, TransportConfig};
use std::collections::VecDeque;
use thiserror::Error;

/// The largest receive window of a flow, bytes.
pub const MAX_WINDOW_BYTES: u64 = 1 << 30;

/// The memory of a segment beside its payload and its slot: the rest of its datagram and the allocator's part, bytes.
const SEGMENT_BYTES: u64 = 128;

/// The memory of a slot, bytes.
const SLOT_BYTES: u64 = size_of::<Option<Bytes>>() as u64;

/// The number of slots that are kept while they are not in use.
const SPARE_SLOTS: usize = 1024;

/// A segment that no honest sender sends.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// The segment comes after the last one of the flow.
    #[error("segment {segment} comes after the last of its flow, {last}")]
    BehindTheLast {
        /// The segment's number.
        segment: Seq,
        /// The number of the last segment.
        last: Seq,
    },
    /// The segment is marked as the last, but another one is, or a later segment has arrived.
    #[error("segment {segment} is marked as the last of its flow, but {last} is, or has arrived already")]
    AnotherLast {
        /// The segment's number.
        segment: Seq,
        /// The number of the contradicting segment.
        last: Seq,
    },
}

/// One flow that this node receives.
#[derive(Debug)]
pub struct ReceiveFlow {
    id: u32,
    mss_bytes: u64,
    receiver: Receiver,
    /// Payload from the first unread segment on; `None` for a segment that has not arrived.
    held: VecDeque<Option<Bytes>>,
    /// The memory of the segments in `held`, without the slots.
    segments_bytes: u64,
    first: Seq,
    places: Seq,
    last: Option<Seq>,
    /// One past the last segment received so far.
    furthest: Seq,
    read_bytes: u64,
    /// The end of the window as last advertised to the sender.
    told_edge: Seq,
    pending: [Vec<Entry>; MAX_CLASSES],
    received: [u64; MAX_CLASSES],
    /// The qlog, if one is written.
    log: Option<Box<Log>>,
}

impl ReceiveFlow {
    /// Creates a flow that expects its first segment, with the receive window of `config`.
    pub fn new(id: u32, config: &TransportConfig) -> ReceiveFlow {
        let places = config.receive_window_segments().min(MAX_WINDOW_BYTES / config.mss_bytes);
        let mut receiver = Receiver::new(config);
        receiver.set_window(places as u32);
        ReceiveFlow {
            id,
            mss_bytes: config.mss_bytes,
            receiver,
            held: VecDeque::new(),
            segments_bytes: 0,
            first: 0,
            places,
            last: None,
            furthest: 0,
            read_bytes: 0,
            told_edge: places,
            pending: Default::default(),
            received: [0; MAX_CLASSES],
            log: None,
        }
    }

    /// Starts a qlog.
    pub(crate) fn log(&mut self, log: Log) {
        self.log = Some(Box::new(log));
    }

    /// Appends the qlog records since the last call to `into`.
    pub(crate) fn take_log(&mut self, into: &mut String) {
        if let Some(log) = &mut self.log {
            log.take(into);
        }
    }

    /// Handles a segment that arrived in `class` at `received_ns` by this host's clock. `marked` is true if the network
    /// has marked it (ECN).
    ///
    /// # Errors
    /// No honest sender sends this segment.
    pub fn handle_data(
        &mut self,
        now: Time,
        class: u8,
        data: Data,
        marked: bool,
        received_ns: u64,
    ) -> Result<(), Refused> {
        let seq = widen(data.segment, self.receiver.next_expected());
        if seq > Seq::MAX / 2 {
            // A number below zero after extension: an old duplicate.
            return Ok(());
        }
        if let Some(last) = self.last.filter(|&last| seq > last) {
            return Err(Refused::BehindTheLast { segment: seq, last });
        }
        if data.last {
            let contradicts = self.last.filter(|&last| last != seq);
            let contradicts = contradicts.or((seq + 1 < self.furthest).then(|| self.furthest - 1));
            if let Some(last) = contradicts {
                return Err(Refused::AnotherLast { segment: seq, last });
            }
        }
        // The slot of the segment, counted from the first unread one.
        let place = seq.wrapping_sub(self.first);
        let is_new = seq >= self.first && !self.held.get(place as usize).is_some_and(Option::is_some);
        let segment = Segment {
            seq,
            // The transport takes an empty segment for the end of the stream; here a flag marks the end.
            payload_bytes: data.payload.len().max(1) as u32,
            class,
            retransmission: data.resent,
            window_reduced: data.window_reduced,
        };
        // The transport counts segments outside the window; such a segment is dropped here, too.
        let refused = self.receiver.refused();
        let ack = self.receiver.handle_data(now, segment, marked);
        if self.receiver.refused() > refused {
            return Ok(());
        }
        self.received[usize::from(class)] += 1;
        if let Some(log) = &mut self.log {
            let payload_bytes = data.payload.len() as u32;
            // The exact offset is known only once all earlier segments are here; until then they count as full ones.
            let offset_bytes = seq * self.mss_bytes;
            let wire_bytes = payload_bytes + WIRE_HEADER_BYTES as u32;
            log.on_received(now, Extent { offset_bytes, payload_bytes, wire_bytes });
        }
        if data.last {
            self.last = Some(seq);
        }
        if is_new {
            self.furthest = self.furthest.max(seq + 1);
            if self.held.len() <= place as usize {
                self.held.resize(place as usize + 1, None);
            }
            self.segments_bytes += data.payload.len() as u64 + SEGMENT_BYTES;
            self.held[place as usize] = Some(data.payload);
        }
        if let Some(ack) = ack {
            self.note(ack, data.timed.then_some(received_ns));
        }
        Ok(())
    }

    fn note(&mut self, ack: AckSegment, received_ns: Option<u64>) {
        let mut entry = Entry {
            cumulative: ack.cumulative as u32,
            trigger: ack.trigger as u32,
            resent: ack.trigger_retransmitted,
            ecn_echo: ack.ecn_echo,
            received_ns,
            ..Entry::default()
        };
        let blocks = self.receiver.sack_blocks();
        entry.block_count = blocks.len() as u8;
        for (encoded, SackBlock { start, end }) in entry.blocks.iter_mut().zip(blocks) {
            *encoded = (*start as u32, *end as u32);
        }
        let pending = &mut self.pending[usize::from(ack.class)];
        // Acknowledgments in sequence share one entry.
        if !pending.last_mut().is_some_and(|last| last.extend(&entry)) {
            pending.push(entry);
        }
    }

    /// Handles a window probe: the answer repeats the last acknowledgment with the current window.
    pub fn handle_probe(&mut self) {
        let ack = self.receiver.handle_probe();
        self.note(ack, None);
    }

    /// Returns the next bytes of the stream if they are here.
    pub fn read(&mut self) -> Option<Bytes> {
        while self.first < self.receiver.next_expected() {
            let bytes = self.held.pop_front().flatten()?;
            self.first += 1;
            let unread = self.receiver.next_expected() - self.first;
            self.receiver.set_window((self.places - unread) as u32);
            self.read_bytes += bytes.len() as u64;
            self.segments_bytes -= bytes.len() as u64 + SEGMENT_BYTES;
            if self.is_read() {
                self.held = VecDeque::new();
            } else if self.held.capacity() > SPARE_SLOTS && self.held.len() < self.held.capacity() / 4 {
                self.held.shrink_to(self.held.capacity() / 2);
            }
            // Advertise the window again once half of it is new, in case the sender is waiting for it.
            if !self.has_all() && self.edge() - self.told_edge >= self.places / 2 {
                self.handle_probe();
            }
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
        None
    }

    fn edge(&self) -> Seq {
        self.first + self.places
    }

    /// Emits the pending acknowledgments in as few frames of at most `max_bytes` as possible. Acknowledgments share
    /// frames; none is left out.
    pub fn flush(&mut self, max_bytes: usize, emit: &mut dyn FnMut(u8, Vec<u8>)) {
        let edge = self.edge();
        for class in 0..MAX_CLASSES {
            let entries = &mut self.pending[class];
            if entries.is_empty() {
                continue;
            }
            self.told_edge = edge;
            encode_acks(self.id, edge as u32, entries, max_bytes, |frame| emit(class as u8, frame));
            entries.clear();
        }
    }

    /// Returns true if the whole flow has arrived.
    pub fn has_all(&self) -> bool {
        self.last.is_some_and(|last| self.receiver.next_expected() > last)
    }

    /// Returns true if there is something to read.
    pub fn has_unread(&self) -> bool {
        self.first < self.receiver.next_expected()
    }

    /// Returns true if the whole flow has been read.
    pub fn is_read(&self) -> bool {
        self.last.is_some_and(|last| self.first > last)
    }

    /// The memory of data that is out of order or unread, bytes.
    pub fn held_bytes(&self) -> u64 {
        self.segments_bytes + self.held.capacity() as u64 * SLOT_BYTES
    }

    /// The most memory that `data` adds if it is handled, bytes.
    pub fn cost_bytes(&self, data: &Data) -> u64 {
        let place = widen(data.segment, self.receiver.next_expected()).wrapping_sub(self.first);
        let (capacity, needed) = (self.held.capacity() as u64, place.saturating_add(1));
        // Beyond the window, the segment is dropped. The slots grow at least by doubling.
        let slots =
            if place >= self.places || needed <= capacity { 0 } else { needed.max(2 * capacity).max(4) - capacity };
        data.payload.len() as u64 + SEGMENT_BYTES + slots * SLOT_BYTES
    }

    /// Returns true if `data` is the next segment in sequence.
    pub fn expects(&self, data: &Data) -> bool {
        data.segment == self.receiver.next_expected() as u32
    }

    /// Bytes read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Segments accepted, by class.
    pub fn received(&self) -> [u64; MAX_CLASSES] {
        self.received
    }

    /// Memory of this end in bytes, including payload.
    pub fn memory_bytes(&self) -> usize {
        let pending: usize = self.pending.iter().map(|entries| entries.capacity() * size_of::<Entry>()).sum();
        size_of::<ReceiveFlow>() + self.receiver.memory_bytes() + self.held_bytes() as usize + pending
    }
}
