//! The receiving side of a flow: the transport's receiver with the payload that is out of order or not yet read.
//!
//! Its memory is bounded by the window that it advertises: a segment has its place from the first one that is not read, and what
//! lies beyond the last place is not taken.

use super::{Log, MAX_CLASSES, WIRE_HEADER_BYTES};
use crate::frame::{Data, Entry, encode_acks};
use bytes::Bytes;
use sparelane_core::{Seq, Time, widen};
use sparelane_transport::qlog::Extent;
use sparelane_transport::{AckSegment, Receiver, SackBlock, Segment, TransportConfig};
use std::collections::VecDeque;
use thiserror::Error;

/// The largest window of one flow, bytes.
pub const MAX_WINDOW_BYTES: u64 = 1 << 30;

/// Why a segment is refused that no honest sender sends.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// It lies behind the last one.
    #[error("segment {segment} lies behind the last of its flow, {last}")]
    BehindTheLast {
        /// Its number.
        segment: Seq,
        /// That of the last.
        last: Seq,
    },
    /// It says that it is the last, and another one is, or more was received.
    #[error("segment {segment} says that it is the last of its flow; {last} is, or came already")]
    AnotherLast {
        /// Its number.
        segment: Seq,
        /// What contradicts.
        last: Seq,
    },
}

/// One flow that this node receives.
#[derive(Debug)]
pub struct ReceiveFlow {
    id: u32,
    mss_bytes: u64,
    receiver: Receiver,
    /// What is held from the first segment on that is not read.
    held: VecDeque<Option<Bytes>>,
    held_bytes: u64,
    first: Seq,
    places: Seq,
    last: Option<Seq>,
    /// One past the furthest segment that was taken.
    furthest: Seq,
    read_bytes: u64,
    /// Where the window ended when the sender was last told.
    told_edge: Seq,
    pending: [Vec<Entry>; MAX_CLASSES],
    received: [u64; MAX_CLASSES],
    /// For whoever wants a qlog.
    log: Option<Box<Log>>,
}

impl ReceiveFlow {
    /// A flow that expects its first segment, with the receive window of `config`.
    pub fn new(id: u32, config: &TransportConfig) -> ReceiveFlow {
        let places = config.receive_window_segments().min(MAX_WINDOW_BYTES / config.mss_bytes);
        let mut receiver = Receiver::new(config);
        receiver.set_window(places as u32);
        ReceiveFlow {
            id,
            mss_bytes: config.mss_bytes,
            receiver,
            held: VecDeque::new(),
            held_bytes: 0,
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

    /// From now on there is a qlog.
    pub(crate) fn log(&mut self, log: Log) {
        self.log = Some(Box::new(log));
    }

    /// The qlog since it was taken last.
    pub(crate) fn take_log(&mut self, into: &mut String) {
        if let Some(log) = &mut self.log {
            log.take(into);
        }
    }

    /// A segment came in `class`, `marked` by the network or not, at `received_ns` by this host's clock.
    ///
    /// # Errors
    /// No honest sender sends it.
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
            // Below the first: an old copy of nothing.
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
        let place = seq.wrapping_sub(self.first);
        let is_new = seq >= self.first && !self.held.get(place as usize).is_some_and(Option::is_some);
        let segment = Segment {
            seq,
            // The transport takes a segment without payload for the end; here a flag says that.
            payload_bytes: data.payload.len().max(1) as u32,
            class,
            retransmission: data.resent,
            window_reduced: data.window_reduced,
        };
        let refused = self.receiver.refused();
        let ack = self.receiver.handle_data(now, segment, marked);
        if self.receiver.refused() > refused {
            return Ok(());
        }
        self.received[usize::from(class)] += 1;
        if let Some(log) = &mut self.log {
            let payload_bytes = data.payload.len() as u32;
            // Where it lies is known for certain once all before it is here; until then those are taken for full ones.
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
            self.held_bytes += data.payload.len() as u64;
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
        for (told, SackBlock { start, end }) in entry.blocks.iter_mut().zip(blocks) {
            *told = (*start as u32, *end as u32);
        }
        let pending = &mut self.pending[usize::from(ack.class)];
        if !pending.last_mut().is_some_and(|last| last.extend(&entry)) {
            pending.push(entry);
        }
    }

    /// The sender asks for the window.
    pub fn handle_probe(&mut self) {
        let ack = self.receiver.handle_probe();
        self.note(ack, None);
    }

    /// The next bytes of the stream, if they are here.
    pub fn read(&mut self) -> Option<Bytes> {
        while self.first < self.receiver.next_expected() {
            let bytes = self.held.pop_front().flatten()?;
            self.first += 1;
            let unread = self.receiver.next_expected() - self.first;
            self.receiver.set_window((self.places - unread) as u32);
            self.read_bytes += bytes.len() as u64;
            self.held_bytes -= bytes.len() as u64;
            // The window is told again where half of it is new, to a sender who may wait for it.
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

    /// What is to be acknowledged, in as few frames as it takes. No acknowledgment is left out: they only share packets.
    pub fn flush(&mut self, most_bytes: usize, emit: &mut dyn FnMut(u8, Vec<u8>)) {
        let edge = self.edge();
        for class in 0..MAX_CLASSES {
            let entries = &mut self.pending[class];
            if entries.is_empty() {
                continue;
            }
            self.told_edge = edge;
            encode_acks(self.id, edge as u32, entries, most_bytes, |frame| emit(class as u8, frame));
            entries.clear();
        }
    }

    /// Whether the whole flow is here.
    pub fn has_all(&self) -> bool {
        self.last.is_some_and(|last| self.receiver.next_expected() > last)
    }

    /// Whether there is something to read.
    pub fn has_unread(&self) -> bool {
        self.first < self.receiver.next_expected()
    }

    /// Whether the whole flow has been read.
    pub fn is_read(&self) -> bool {
        self.last.is_some_and(|last| self.first > last)
    }

    /// Payload bytes that are held, out of order or not read.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Whether `data` is the next that the flow waits for.
    pub fn expects(&self, data: &Data) -> bool {
        data.segment == self.receiver.next_expected() as u32
    }

    /// Bytes read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Segments taken, by class.
    pub fn received(&self) -> [u64; MAX_CLASSES] {
        self.received
    }

    /// Memory of this end, bytes, with what is held.
    pub fn memory_bytes(&self) -> usize {
        let places = self.held.capacity() * size_of::<Option<Bytes>>();
        let pending: usize = self.pending.iter().map(|entries| entries.capacity() * size_of::<Entry>()).sum();
        size_of::<ReceiveFlow>() + self.receiver.memory_bytes() + self.held_bytes as usize + places + pending
    }
}
