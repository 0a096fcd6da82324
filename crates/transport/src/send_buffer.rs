//! The send buffer: writes divided into segments, which are sent from the head and, in RC3, also from the tail.

use sparelane_core::Seq;
use std::collections::VecDeque;

/// One write of the application.
#[derive(Clone, Copy, Debug)]
struct Write {
    first: Seq,
    end: Seq,
    /// Payload bytes of the last segment.
    last_bytes: u32,
    /// The first segment that was sent from the tail; `end` if no segment was.
    tail: Seq,
    /// The stream offset of the write in bytes.
    offset: u64,
}

/// The send buffer of one connection.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct SendBuffer {
    /// Bytes that do not fit into the buffer yet, or [`ENDLESS_BYTES`].
    unwritten_bytes: u64,
    mss_bytes: u32,
    /// A write fills up a short last segment of the previous write.
    coalesces: bool,
    /// The stream is closed, and later writes are ignored.
    is_closed: bool,
    /// The segment that ends the stream (FIN) is in the buffer.
    has_fin: bool,
    end: Seq,
    /// The end of the oldest write, and the end of its full segments.
    oldest_end: Seq,
    full_until: Seq,
    /// The oldest write, or [`NOTHING`].
    oldest: Write,
    /// The other writes; `None` before the first one.
    later: Option<Box<LaterWrites>>,
    limit_segments: Seq,
    /// The number of bytes in segments so far.
    segmented_bytes: u64,
}

/// The writes after the oldest one.
#[derive(Clone, Debug, Default)]
struct LaterWrites {
    writes: VecDeque<Write>,
    /// Writes before the one that contains this segment have no tail left.
    tails_sent_below: Seq,
}

impl LaterWrites {
    /// Returns the place of the write that contains `seq`, if there is one.
    fn place_of(&self, seq: Seq) -> usize {
        self.writes.partition_point(|write| write.end <= seq)
    }
}

/// The oldest write of an empty buffer.
const NOTHING: Write = Write { first: 0, end: 0, last_bytes: 0, tail: 0, offset: 0 };

/// The end of an endless stream in an unlimited buffer.
const ENDLESS: Seq = Seq::MAX;

/// The unwritten bytes of an endless stream in a limited buffer.
const ENDLESS_BYTES: u64 = u64::MAX;

impl SendBuffer {
    /// Creates an empty buffer of `limit_bytes` (unlimited if `None`) for segments of `mss_bytes`. If it `coalesces`, a
    /// write first fills up the last segment of the previous write, provided that this segment is short and was not
    /// sent.
    pub fn new(mss_bytes: u64, limit_bytes: Option<u64>, coalesces: bool) -> SendBuffer {
        SendBuffer {
            later: None,
            mss_bytes: mss_bytes as u32,
            end: 0,
            unwritten_bytes: 0,
            limit_segments: limit_bytes.map_or(Seq::MAX, |bytes| (bytes / mss_bytes).max(1)),
            oldest_end: 0,
            full_until: 0,
            oldest: NOTHING,
            segmented_bytes: 0,
            coalesces,
            is_closed: false,
            has_fin: false,
        }
    }

    /// Sets the initial sequence number. Call it before the first write.
    pub fn set_initial_seq(&mut self, first: Seq) {
        (self.end, self.oldest_end, self.full_until) = (first, first, first);
    }

    /// Appends a write of `bytes`. Segments below `una` are acknowledged, and those below `nxt` were sent from the
    /// head. Ignored after the end of the stream or an endless write.
    pub fn write(&mut self, bytes: u64, una: Seq, nxt: Seq) {
        if self.is_endless() || self.is_closed {
            return;
        }
        let bytes = if self.coalesces { bytes - self.fill_up(bytes, nxt) } else { bytes };
        self.unwritten_bytes = self.unwritten_bytes.saturating_add(bytes);
        self.refill(una);
    }

    /// Appends an endless write. A limited buffer accepts it in pieces, like a long write. Segments below `una` are
    /// acknowledged.
    pub fn write_without_end(&mut self, una: Seq) {
        if self.limit_segments < Seq::MAX {
            self.unwritten_bytes = ENDLESS_BYTES;
            return self.refill(una);
        }
        let (first, offset) = (self.end, self.segmented_bytes);
        self.append(Write { first, end: ENDLESS, last_bytes: self.mss_bytes, tail: ENDLESS, offset });
    }

    /// Returns whether the last write is endless.
    fn is_endless(&self) -> bool {
        self.end == ENDLESS || self.unwritten_bytes == ENDLESS_BYTES
    }

    /// Fills up the last segment, if it is short and was not sent. Returns the number of bytes added.
    fn fill_up(&mut self, bytes: u64, nxt: Seq) -> u64 {
        let mss_bytes = self.mss_bytes;
        let later = self.later.as_mut().and_then(|later| later.writes.back_mut());
        let last = later.unwrap_or(&mut self.oldest);
        if last.end <= nxt || self.unwritten_bytes > 0 || last.tail < last.end {
            return 0;
        }
        let fill = bytes.min(u64::from(mss_bytes - last.last_bytes));
        last.last_bytes += fill as u32;
        self.segmented_bytes += fill;
        self.update_oldest();
        fill
    }

    /// Ends the stream after the data written so far. A segment without payload (FIN) comes last.
    pub fn close(&mut self, una: Seq) {
        if !self.is_endless() {
            self.is_closed = true;
            self.refill(una);
        }
    }

    /// Returns whether the stream was closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the payload bytes of a full segment.
    pub fn full_segment_bytes(&self) -> u32 {
        self.mss_bytes
    }

    /// Returns the stream offset in bytes of segment `seq`, which must be unacknowledged or the next one to be written.
    pub fn offset_of(&self, seq: Seq) -> u64 {
        self.write_of(seq).map_or(self.segmented_bytes, |write| {
            write.offset + seq.saturating_sub(write.first) * u64::from(self.mss_bytes)
        })
    }

    /// Appends a write, which ends the buffer.
    fn append(&mut self, write: Write) {
        if self.is_empty() {
            self.oldest = write;
        } else {
            self.later.get_or_insert_default().writes.push_back(write);
        }
        self.end = write.end;
        self.update_oldest();
    }

    /// Returns whether there is no write.
    fn is_empty(&self) -> bool {
        self.oldest.end == 0
    }

    /// Updates the ends of the oldest write.
    fn update_oldest(&mut self) {
        self.oldest_end = if self.is_empty() { self.end } else { self.oldest.end };
        let is_short = !self.is_empty() && self.oldest.last_bytes < self.mss_bytes;
        self.full_until = self.oldest_end - Seq::from(is_short);
    }

    /// Drops the writes that end at or below `una`, which are acknowledged, and refills the free space.
    #[inline(always)]
    pub fn acknowledge(&mut self, una: Seq) {
        if una >= self.oldest_end || self.unwritten_bytes > 0 {
            self.drop_acknowledged(una);
        }
    }

    #[inline(never)]
    fn drop_acknowledged(&mut self, una: Seq) {
        while !self.is_empty() && self.oldest.end <= una {
            let next = self.later.as_mut().and_then(|later| later.writes.pop_front());
            self.oldest = next.unwrap_or(NOTHING);
        }
        self.refill(una);
        self.update_oldest();
    }

    /// Moves waiting bytes into the buffer once a third of it is free, as Linux wakes its writers.
    fn refill(&mut self, una: Seq) {
        let free = self.limit_segments.saturating_sub(self.end - una);
        if self.unwritten_bytes == 0 {
            self.append_fin();
            return;
        }
        // Waiting for a third of the buffer avoids many short writes, each with its own tail.
        if free < self.limit_segments.div_ceil(3) {
            return;
        }
        let mss = u64::from(self.mss_bytes);
        let bytes = self.unwritten_bytes.min(free.saturating_mul(mss));
        let segments = bytes.div_ceil(mss);
        let (first, end) = (self.end, self.end + segments);
        let last_bytes = (bytes - (segments - 1) * mss) as u32;
        self.append(Write { first, end, last_bytes, tail: end, offset: self.segmented_bytes });
        if self.unwritten_bytes != ENDLESS_BYTES {
            self.unwritten_bytes -= bytes;
        }
        self.segmented_bytes += bytes;
        if self.unwritten_bytes == 0 {
            self.append_fin();
        }
    }

    /// Appends the FIN of a closed stream after all of its data.
    fn append_fin(&mut self) {
        if self.is_closed && !self.has_fin {
            let (first, end) = (self.end, self.end + 1);
            self.append(Write { first, end, last_bytes: 0, tail: end, offset: self.segmented_bytes });
            self.has_fin = true;
        }
    }

    /// Returns the heap memory in bytes.
    pub fn list_bytes(&self) -> usize {
        let listed = |later: &LaterWrites| size_of::<LaterWrites>() + later.writes.capacity() * size_of::<Write>();
        self.later.as_deref().map_or(0, listed)
    }

    /// Returns one past the last segment in the buffer.
    #[inline(always)]
    pub fn end(&self) -> Seq {
        self.end
    }

    /// Returns whether all data written is below `una`.
    #[inline(always)]
    pub fn is_acknowledged(&self, una: Seq) -> bool {
        una == self.end && self.unwritten_bytes == 0
    }

    /// Returns whether written bytes wait for space in the buffer.
    pub fn is_blocked(&self) -> bool {
        self.unwritten_bytes > 0
    }

    /// Returns the payload bytes of segment `seq`.
    #[inline(always)]
    pub fn payload_bytes(&self, seq: Seq) -> u32 {
        if seq < self.full_until { self.mss_bytes } else { self.payload_bytes_of(seq) }
    }

    #[inline(never)]
    fn payload_bytes_of(&self, seq: Seq) -> u32 {
        match self.write_of(seq) {
            Some(write) if seq + 1 == write.end => write.last_bytes,
            _ => self.mss_bytes,
        }
    }

    /// Returns one past the last segment of the write that contains `seq`.
    pub fn end_of_write(&self, seq: Seq) -> Seq {
        self.write_of(seq).map_or(self.end, |write| write.end)
    }

    /// Returns the first segment of the write that contains `seq`.
    pub fn start_of_write(&self, seq: Seq) -> Seq {
        self.write_of(seq).map_or(0, |write| write.first)
    }

    fn write_of(&self, seq: Seq) -> Option<&Write> {
        if seq < self.oldest.end {
            return Some(&self.oldest);
        }
        let later = self.later.as_ref()?;
        later.writes.get(later.place_of(seq))
    }

    /// Returns the next segment from the tail, of the oldest write that has one, and the number of segments of its
    /// write already sent from the tail. The head has sent all segments below `nxt`.
    #[inline(always)]
    pub fn next_tail(&self, nxt: Seq) -> Option<(Seq, u32)> {
        let oldest = self.oldest;
        if oldest.tail > oldest.first.max(nxt) && oldest.end != ENDLESS {
            return Some((oldest.tail - 1, (oldest.end - oldest.tail) as u32));
        }
        self.next_later_tail(nxt)
    }

    #[inline(always)]
    fn next_later_tail(&self, nxt: Seq) -> Option<(Seq, u32)> {
        let later = self.later.as_deref().filter(|later| !later.writes.is_empty())?;
        Self::next_tail_of_any(later, nxt)
    }

    #[inline(never)]
    fn next_tail_of_any(later: &LaterWrites, nxt: Seq) -> Option<(Seq, u32)> {
        // Skip writes that the head has passed, and those before the write whose tail was sent last.
        let passed = later.place_of(nxt.max(later.tails_sent_below));
        let write =
            later.writes.iter().skip(passed).find(|write| write.end != ENDLESS && write.tail > write.first.max(nxt))?;
        Some((write.tail - 1, (write.end - write.tail) as u32))
    }

    /// Records that `seq` was sent from the tail of its write.
    #[inline(always)]
    pub fn sent_from_tail(&mut self, seq: Seq) {
        if seq < self.oldest.end {
            self.oldest.tail = seq;
        } else {
            self.sent_from_later_tail(seq);
        }
    }

    #[inline(never)]
    fn sent_from_later_tail(&mut self, seq: Seq) {
        let Some(later) = &mut self.later else { return };
        let place = later.place_of(seq);
        if let Some(write) = later.writes.get_mut(place) {
            write.tail = seq;
            later.tails_sent_below = write.first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_consists_of_full_segments_and_a_last_segment() {
        let mut buffer = SendBuffer::new(1000, None, false);
        buffer.write(2_500, 0, 0);
        assert_eq!(buffer.end(), 3);
        assert_eq!([0, 1, 2].map(|seq| buffer.payload_bytes(seq)), [1000, 1000, 500]);
        buffer.write(1_000, 0, 0);
        assert_eq!((buffer.end(), buffer.payload_bytes(2), buffer.payload_bytes(3)), (4, 500, 1000));
    }

    #[test]
    fn the_tail_runs_down_to_the_head_and_stops() {
        let mut buffer = SendBuffer::new(1000, None, false);
        buffer.write(5_000, 0, 0);
        let mut sent = Vec::new();
        while let Some((seq, before)) = buffer.next_tail(2) {
            buffer.sent_from_tail(seq);
            sent.push((seq, before));
        }
        assert_eq!(sent, [(4, 0), (3, 1), (2, 2)]);
    }

    #[test]
    fn a_later_write_counts_its_tail_from_zero() {
        let mut buffer = SendBuffer::new(1000, None, false);
        buffer.write(2_000, 0, 0);
        buffer.sent_from_tail(1);
        buffer.sent_from_tail(0);
        buffer.write(3_000, 0, 0);
        assert_eq!(buffer.next_tail(0), Some((4, 0)));
    }

    #[test]
    fn a_small_buffer_accepts_a_transfer_in_pieces() {
        let mut buffer = SendBuffer::new(1000, Some(6_000), false);
        buffer.write(10_500, 0, 0);
        assert_eq!((buffer.end(), buffer.is_blocked()), (6, true));
        buffer.acknowledge(1);
        assert_eq!(buffer.end(), 6);
        buffer.acknowledge(2);
        assert_eq!(buffer.end(), 8);
        buffer.acknowledge(6);
        assert_eq!((buffer.end(), buffer.is_blocked(), buffer.payload_bytes(10)), (11, false, 500));
        assert!(buffer.is_acknowledged(11));
    }

    #[test]
    fn a_write_may_have_more_segments_than_32_bits_count() {
        let mut buffer = SendBuffer::new(1000, None, false);
        buffer.write(5_000_000_000_500, 0, 0);
        assert_eq!((buffer.end(), buffer.is_blocked()), (5_000_000_001, false));
        assert_eq!([4_999_999_999, 5_000_000_000].map(|seq| buffer.payload_bytes(seq)), [1000, 500]);
    }

    #[test]
    fn tails_of_later_writes_are_found_in_order_at_any_position_of_the_head() {
        let mut buffer = SendBuffer::new(1000, None, false);
        (0..4).for_each(|_| buffer.write(3_000, 0, 0));
        let mut take = |nxt| {
            let (seq, before) = buffer.next_tail(nxt)?;
            buffer.sent_from_tail(seq);
            Some((seq, before))
        };
        let (first, head_passes_two) = ([take(0), take(0), take(0), take(0)], [take(7), take(7), take(7)]);
        assert_eq!(first, [Some((2, 0)), Some((1, 1)), Some((0, 2)), Some((5, 0))]);
        assert_eq!(head_passes_two, [Some((8, 0)), Some((7, 1)), Some((11, 0))]);
    }

    #[test]
    fn an_endless_stream_has_no_tail() {
        let mut buffer = SendBuffer::new(1000, None, false);
        buffer.write_without_end(0);
        buffer.write(500, 0, 0);
        assert_eq!((buffer.next_tail(0), buffer.payload_bytes(1 << 40), buffer.is_blocked()), (None, 1000, false));
    }

    #[test]
    fn a_limited_buffer_accepts_an_endless_stream_in_pieces() {
        let mut buffer = SendBuffer::new(1000, Some(6_000), false);
        buffer.write(8_500, 0, 0);
        buffer.write_without_end(0);
        buffer.write(500, 0, 0);
        buffer.close(0);
        assert_eq!((buffer.end(), buffer.next_tail(2)), (6, Some((5, 0))));
        for una in 2..1_000 {
            buffer.acknowledge(una);
            assert!((una + 4..=una + 6).contains(&buffer.end()), "{} at {una}", buffer.end());
        }
        assert_eq!(
            (buffer.is_blocked(), buffer.is_acknowledged(buffer.end()), buffer.is_closed()),
            (true, false, false)
        );
        assert_eq!(buffer.payload_bytes(buffer.end() - 1), 1000);
        let later = buffer.later.expect("several writes").writes.len();
        assert!(later <= 2, "{later}");
    }

    #[test]
    fn a_short_segment_is_filled_up_until_the_head_or_the_tail_has_sent_it() {
        let sizes_after = |head_has_sent, tail_has_sent: &[Seq]| {
            let mut buffer = SendBuffer::new(1000, None, true);
            buffer.write(2_500, 0, 0);
            tail_has_sent.iter().for_each(|&seq| buffer.sent_from_tail(seq));
            buffer.write(700, 0, head_has_sent);
            (0..buffer.end()).map(|seq| buffer.payload_bytes(seq)).collect::<Vec<_>>()
        };
        assert_eq!(sizes_after(0, &[]), [1000, 1000, 1000, 200]);
        assert_eq!(sizes_after(2, &[]), [1000, 1000, 1000, 200], "the head is next to send the short segment");
        assert_eq!(sizes_after(3, &[]), [1000, 1000, 500, 700]);
        assert_eq!(sizes_after(0, &[2]), [1000, 1000, 500, 700]);
        assert_eq!(sizes_after(0, &[2, 1]), [1000, 1000, 500, 700]);
    }

    #[test]
    fn a_later_write_is_filled_up_unless_its_own_tail_was_sent() {
        for (tail_is_sent, sizes) in [(false, [500, 900]), (true, [500, 600])] {
            let mut buffer = SendBuffer::new(1000, None, true);
            buffer.write(500, 0, 0);
            // The head has sent the first write, so the second one starts a new segment.
            buffer.write(600, 0, 1);
            if tail_is_sent {
                buffer.sent_from_tail(1);
            }
            buffer.write(300, 0, 1);
            assert_eq!([0, 1].map(|seq| buffer.payload_bytes(seq)), sizes);
            assert_eq!(buffer.end(), if tail_is_sent { 3 } else { 2 });
            assert_eq!(buffer.offset_of(buffer.end()), 1_400, "no byte is lost or duplicated");
        }
    }

    #[test]
    fn the_memory_of_a_buffer_is_that_of_its_list_of_writes() {
        let mut buffer = SendBuffer::new(1000, None, false);
        assert_eq!(buffer.list_bytes(), 0);
        buffer.write(3_000, 0, 0);
        assert_eq!(buffer.list_bytes(), 0, "a single write is in the buffer itself");
        (0..100).for_each(|_| buffer.write(3_000, 0, 0));
        assert!((100 * size_of::<Write>()..=200 * size_of::<Write>()).contains(&buffer.list_bytes()));
        assert_eq!(buffer.full_segment_bytes(), 1000);
    }
}
