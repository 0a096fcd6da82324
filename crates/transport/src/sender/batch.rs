//! Segmentation offload (TSO): new data is sent in chunks of several segments.
//!
//! A chunk has `send_batch` segments, or the rest of its write if that is less, but at most a third of the window, as
//! in Linux (`tcp_tso_win_divisor`). A larger chunk would leave a small window unused. A chunk starts when the window
//! has room for all of it. If nothing is in flight, it starts with the segments that fit.
//!
//! With pacing, the segments of a chunk are sent together, and the next chunk waits for the transmission time of all of
//! them. A paced chunk has at most the segments that the pacing rate sends in 1 ms, but at least two, as in Linux
//! (`tcp_tso_autosize`). Retransmissions are sent as single segments.
//!
//! A chunk from the tail counts as one packet of RC3 (NSDI 2014 section 4.2.3). It is sent in the lowest class among
//! its segments, in order of sequence numbers.

use super::Sender;
use crate::segment::Segment;
use sparelane_core::{Dur, Seq};

/// The largest duration of a paced chunk at its pacing rate.
const PACED_CHUNK: Dur = Dur::from_ms(1);

/// The minimum size of a paced chunk in segments; it takes precedence over [`PACED_CHUNK`].
const MIN_PACED_CHUNK: u64 = 2;

/// The sender's progress in its chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// The number of segments in a full chunk, at least 2.
    size: u32,
    /// The end of the chunk in progress. New segments below it belong to that chunk.
    until: Seq,
    /// The end of the next chunk, which takes effect when its first segment is sent.
    next_until: Seq,
    /// The remaining segments of a chunk from the tail, from `low` to before `low_end`, and their class.
    low: Seq,
    low_end: Seq,
    low_class: u8,
}

/// A chunk from the tail, from `first` to before `end`.
///
/// `sent_in_write` is the number of segments of its write that precede `first` in the order of the tail, including the
/// other segments of the chunk. It determines the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) first: Seq,
    pub(super) end: Seq,
    pub(super) sent_in_write: u32,
}

impl Batch {
    /// Creates the state for chunks of `size` segments, or returns `None` if that is 1 or less.
    pub(super) fn of(size: u32) -> Option<Box<Batch>> {
        (size > 1).then(|| Box::new(Batch { size, until: 0, next_until: 0, low: 0, low_end: 0, low_class: 0 }))
    }

    /// Returns whether the new segment `seq` belongs to the chunk in progress.
    fn has_begun(&self, seq: Seq) -> bool {
        seq < self.until
    }

    /// Records that the new segment `seq` was sent. The first segment of a chunk starts the chunk.
    pub(super) fn sent(&mut self, seq: Seq) {
        if seq >= self.until {
            self.until = self.next_until;
        }
    }

    /// Returns the class of the chunk from the tail in progress, if there is one.
    fn low_class(&self) -> Option<u8> {
        (self.low < self.low_end).then_some(self.low_class)
    }

    /// Starts a chunk from the tail, whose first segment is sent by the caller in `class`.
    pub(super) fn begin_low(&mut self, tail: Tail, class: u8) {
        (self.low, self.low_end, self.low_class) = (tail.first + 1, tail.end, class);
    }
}

impl Sender {
    /// Returns whether the new segment `seq` belongs to a chunk in progress.
    #[inline(always)]
    pub(super) fn is_in_begun_chunk(&self, seq: Seq) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.has_begun(seq))
    }

    /// Returns the class of the chunk from the tail in progress, if there is one.
    #[inline(always)]
    pub(super) fn class_of_low_chunk(&self) -> Option<u8> {
        self.batch.as_ref()?.low_class()
    }

    /// Returns whether the head may send `seq`. Retransmissions and segments of a chunk in progress always may; the
    /// first segment of a chunk needs room for the chunk. Without chunks, every segment has room.
    #[inline(always)]
    pub(super) fn has_room_for_chunk(&mut self, seq: Seq) -> bool {
        match &self.batch {
            Some(batch) => seq < self.nxt || batch.has_begun(seq) || self.has_room_for_new_chunk(batch.size, seq),
            None => true,
        }
    }

    /// Returns whether there is room for a chunk of at most `size` segments that starts with `seq`.
    fn has_room_for_new_chunk(&mut self, size: u32, seq: Seq) -> bool {
        let in_flight = self.counted_segments();
        let window = u64::from(self.cwnd_segments) + self.allowance_segments();
        let receive_room = u64::from(self.receive_window_segments) - (seq - self.una);
        let room = window.saturating_sub(in_flight).min(receive_room);
        let most = size.min(self.cwnd_segments / 3).min(self.max_paced_chunk()).max(1);
        let chunk = self.buffer.end_of_write(seq).min(seq + Seq::from(most)) - seq;
        // With nothing in flight, no acknowledgment would make more room.
        let chunk = if room >= chunk {
            chunk
        } else if in_flight == 0 {
            room.max(1)
        } else {
            return false;
        };
        if let Some(batch) = &mut self.batch {
            batch.next_until = seq + chunk;
        }
        true
    }

    /// Returns the largest size of a chunk in segments at the current pacing rate.
    fn max_paced_chunk(&self) -> u32 {
        self.limits.pacing.map_or(u32::MAX, |pace| {
            let segments = pace.bytes_in(PACED_CHUNK) / (self.mss_bytes + self.config.header_bytes);
            u32::try_from(segments.max(MIN_PACED_CHUNK)).unwrap_or(u32::MAX)
        })
    }

    /// Returns whether a chunk from the tail is in progress.
    pub fn is_inside_chunk(&self) -> bool {
        self.class_of_low_chunk().is_some()
    }

    /// Returns the next segment of the chunk from the tail in progress, if there is one.
    pub(super) fn next_of_low_chunk(&mut self) -> Option<Segment> {
        let batch = self.batch.as_mut()?;
        let class = batch.low_class()?;
        let seq = batch.low;
        batch.low += 1;
        self.board.mark_sent_from_tail(seq);
        Some(self.segment(seq, class))
    }

    /// Returns the chunk of at most `size` segments that ends with `last`, the next segment from the tail of its write.
    fn tail_chunk(&self, size: u32, last: Seq, sent_in_write: u32) -> Tail {
        let first = (last + 1).saturating_sub(Seq::from(size));
        let first = first.max(self.nxt).max(self.buffer.start_of_write(last));
        Tail { first, end: last + 1, sent_in_write: sent_in_write + (last - first) as u32 }
    }

    /// Returns the segment `last`, the next one from the tail of its write, or the chunk that ends with it.
    #[inline(always)]
    pub(super) fn tail_ending_with(&self, last: Seq, sent_in_write: u32) -> Tail {
        match &self.batch {
            Some(batch) => self.tail_chunk(batch.size, last, sent_in_write),
            None => Tail { first: last, end: last + 1, sent_in_write },
        }
    }
}
