//! Segmentation offload (TSO): new data goes in chunks of several segments, each at once.
//!
//! A chunk has `send_batch` segments, or what is left of its write, but no more than a third of the window, as in
//! Linux (`tcp_tso_win_divisor`), where a larger one would leave a small window empty. It begins when the window has
//! room for all of it, or with what there is room for when nothing is in flight. A pace lets a chunk go as a whole and
//! makes the next one wait for all of it; such a chunk has no more than the pace sends in a millisecond, though two
//! segments at least, as in Linux (`tcp_tso_autosize`), where a larger one would be a burst and not a pace. What is sent
//! again goes segment by segment.
//!
//! RC3 (NSDI 2014 section 4.2.3): a chunk from the tail counts as one packet. It goes in the lowest class that any
//! of its segments would have, and they leave in the order of their numbers.

use super::Sender;
use crate::segment::Segment;
use sparelane_core::{Dur, Seq};

/// A paced chunk has no more than its pace sends in this time,
const PACED_CHUNK: Dur = Dur::from_ms(1);

/// but so many segments at least.
const LEAST_PACED_CHUNK: u64 = 2;

/// Where a sender stands in its chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// Segments of a full chunk; 1 sends segment by segment.
    pub(super) size: u32,
    /// New segments below are of a chunk that has begun.
    until: Seq,
    /// The end of the chunk that may begin next.
    next_until: Seq,
    /// What is still to go of a chunk from the tail, and its class.
    low: Seq,
    low_end: Seq,
    low_class: u8,
}

/// A chunk from the tail: from its first segment to before `end`, behind `sent_in_write` others, all of its own but
/// one included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) first: Seq,
    pub(super) end: Seq,
    pub(super) sent_in_write: u32,
}

impl Batch {
    pub(super) fn of(size: u32) -> Batch {
        Batch { size: size.max(1), until: 0, next_until: 0, low: 0, low_end: 0, low_class: 0 }
    }

    /// Whether new segment `seq` belongs to a chunk that has begun.
    pub(super) fn has_begun(&self, seq: Seq) -> bool {
        seq < self.until
    }

    /// New segment `seq` is sent.
    pub(super) fn sent(&mut self, seq: Seq) {
        if seq >= self.until {
            self.until = self.next_until;
        }
    }

    /// The class of a chunk from the tail that has begun.
    pub(super) fn low_class(&self) -> Option<u8> {
        (self.low < self.low_end).then_some(self.low_class)
    }

    /// The first segment of `tail` is sent in `class`; the others follow.
    pub(super) fn begin_low(&mut self, tail: Tail, class: u8) {
        (self.low, self.low_end, self.low_class) = (tail.first + 1, tail.end, class);
    }
}

impl Sender {
    /// Whether the head may send `seq`: again, in a chunk that has begun, or as the first of one that has room.
    pub(super) fn has_room_for_chunk(&mut self, seq: Seq) -> bool {
        if seq < self.nxt || self.batch.has_begun(seq) {
            return true;
        }
        let in_flight = self.counted_segments();
        let window = u64::from(self.cwnd_segments) + self.allowance_segments();
        let receive_room = u64::from(self.receive_window_segments) - (seq - self.una);
        let room = window.saturating_sub(in_flight).min(receive_room);
        let most = self.batch.size.min(self.cwnd_segments / 3).min(self.most_paced()).max(1);
        let chunk = self.buffer.end_of_write(seq).min(seq + Seq::from(most)) - seq;
        let chunk = if room >= chunk {
            chunk
        } else if in_flight == 0 {
            room.max(1)
        } else {
            return false;
        };
        self.batch.next_until = seq + chunk;
        true
    }

    /// The most segments of a chunk that the pace allows.
    fn most_paced(&self) -> u32 {
        self.limits.pacing.map_or(u32::MAX, |pace| {
            let segments = pace.bytes_in(PACED_CHUNK) / (self.mss_bytes + self.config.header_bytes);
            u32::try_from(segments.max(LEAST_PACED_CHUNK)).unwrap_or(u32::MAX)
        })
    }

    /// Whether the segments that go next belong to a chunk from the tail that has begun.
    pub fn is_inside_chunk(&self) -> bool {
        self.batch.low_class().is_some()
    }

    /// The next segment of the chunk from the tail that has begun.
    pub(super) fn next_of_low_chunk(&mut self) -> Option<Segment> {
        let class = self.batch.low_class()?;
        let seq = self.batch.low;
        self.batch.low += 1;
        self.board.send_low(seq);
        Some(self.segment(seq, class))
    }

    /// The chunk that ends with `last`, the next segment from the tail of its write.
    pub(super) fn tail_chunk(&self, last: Seq, sent_in_write: u32) -> Tail {
        let first = (last + 1).saturating_sub(Seq::from(self.batch.size));
        let first = first.max(self.nxt).max(self.buffer.start_of_write(last));
        Tail { first, end: last + 1, sent_in_write: sent_in_write + (last - first) as u32 }
    }
}
