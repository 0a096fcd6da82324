//! The receiving end of a connection: reassembly, acknowledgments and SACK blocks.
//!
//! The receiver is a state machine without a clock. The caller passes in segments and sends the acknowledgments that it
//! returns. It stores no payload, only the ranges of segments that have arrived.
//!
//! Sources: RFC 5681 section 4.2 (delayed acknowledgments), RFC 2018 (SACK), RFC 3168 and RFC 8257 section 3.2 (ECN
//! echo), RFC 9768 (accurate ECN). A low-priority segment is acknowledged immediately in its own class (RC3, NSDI 2014
//! section 4.1.2). With go-back-N, the receiver keeps no segment out of order, and acknowledges each dropped one with the
//! number that it expects.

use crate::accurate_ecn::{self, AccurateEcho, EcnField, EcnFlags, MarkCounts};
use crate::config::{DelayedAck, Ecn, MAX_WINDOW_SEGMENTS, TransportConfig};
use crate::segment::{AckSegment, Chunk, MAX_SACK_BLOCKS, SackBlock, Segment};
use sparelane_core::{Dur, Seq, Time, prefetch_start};
use std::collections::VecDeque;

/// The receiver of one connection.
// A cache line. State that a connection without reordering and delayed acknowledgments does not need is in boxes.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Receiver {
    next: Seq,
    held_bytes: u64,
    /// Enables the fast path: no delayed acknowledgments, no out-of-order segments and no ECN echo.
    fast_path: bool,
    sack: bool,
    ecn: Ecn,
    /// The ECE flag of acknowledgments.
    echo_ce: bool,
    /// The CE state of the last segment (DCTCP.CE of RFC 8257). With classic ECN it stays `false`.
    ce_state: bool,
    /// The application has set the window.
    has_set_window: bool,
    /// The segment that ends the stream (FIN) has arrived. It is the last one before `edge`.
    has_fin: bool,
    /// The number of out-of-order ranges, and the largest one.
    range_count: u32,
    max_ranges: u32,
    /// The window in segments, counted from the next expected segment.
    window_segments: Seq,
    /// The right edge of a window set by the application, or the end of the stream. Segments at or beyond it are
    /// dropped.
    edge: Seq,
    /// Segments that arrived out of order or were refused; `None` before the first one.
    disorder: Option<Box<Disorder>>,
    /// Delayed acknowledgments, if enabled, and the counters of accurate ECN.
    delayed: Option<Box<Delayed>>,
}

const _: () = assert!(size_of::<Receiver>() == 64, "a receiver outgrew its cache line");

/// The segments of a connection that arrived out of order or were refused.
#[derive(Clone, Debug, Default)]
struct Disorder {
    /// The out-of-order segments as disjoint ranges in ascending order.
    ranges: VecDeque<SackBlock>,
    /// The index of the range that grew last.
    recent_range: usize,
    block_count: usize,
    /// The SACK blocks of the next acknowledgment, most recent first (RFC 2018 section 4).
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    /// The number of dropped segments.
    refused: u64,
}

/// Delayed acknowledgments of a connection, and its counters of accurate ECN.
#[derive(Clone, Copy, Debug)]
struct Delayed {
    settings: DelayedAck,
    pending: Option<PendingAck>,
    /// The counters, on connections that have agreed to accurate ECN.
    marks: Option<MarkCounts>,
    /// The kind of ECN that the receiver supports, if the sender may request accurate ECN.
    supports: Ecn,
    /// Acknowledgments may carry the AccECN option.
    sends_option: bool,
}

/// The settings of a receiver that acknowledges every segment immediately.
const AT_ONCE: DelayedAck = DelayedAck { every_segments: 1, timeout: Dur::ZERO };

/// A pending delayed acknowledgment.
#[derive(Clone, Copy, Debug)]
struct PendingAck {
    segments: u32,
    trigger: Seq,
    trigger_retransmitted: bool,
    deadline: Time,
}

impl Receiver {
    /// Creates a receiver that expects segment 0.
    pub fn new(config: &TransportConfig) -> Receiver {
        // The counters of accurate ECN share the box, so that the receiver stays within its cache line.
        let counts_marks = config.ecn == Ecn::Accurate;
        let delayed = (config.delayed_ack.is_some() || counts_marks).then(|| {
            Box::new(Delayed {
                settings: config.delayed_ack.unwrap_or(AT_ONCE),
                pending: None,
                marks: None,
                supports: config.peer_ecn,
                sends_option: config.ecn_option,
            })
        });
        Receiver {
            next: 0,
            fast_path: delayed.is_none(),
            held_bytes: 0,
            sack: config.uses_sack(),
            range_count: 0,
            max_ranges: if config.goes_back() { 0 } else { u32::try_from(config.held_ranges).unwrap_or(u32::MAX) },
            window_segments: config.receive_window_segments(),
            edge: Seq::MAX,
            has_set_window: false,
            has_fin: false,
            disorder: None,
            delayed,
            echo_ce: false,
            ecn: config.ecn,
            ce_state: false,
        }
    }

    /// Returns the next expected segment (RCV.NXT). All segments below have arrived.
    #[inline(always)]
    pub fn next_expected(&self) -> Seq {
        self.next
    }

    /// Returns the number of payload bytes received, without duplicates.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the memory of this receiver in bytes.
    pub fn memory_bytes(&self) -> usize {
        let listed = |disorder: &Disorder| disorder.ranges.capacity() * size_of::<SackBlock>();
        size_of::<Receiver>()
            + self.disorder.as_ref().map_or(0, |disorder| size_of::<Disorder>() + listed(disorder))
            + self.delayed.as_ref().map_or(0, |_| size_of::<Delayed>())
    }

    /// Returns the number of segments dropped because they were outside of the window or would have exceeded
    /// [`held_ranges`](TransportConfig::held_ranges).
    pub fn refused(&self) -> u64 {
        self.disorder.as_ref().map_or(0, |disorder| disorder.refused)
    }

    /// Counts segments that are dropped.
    #[cold]
    fn refuse(&mut self, segments: u64) {
        self.disorder.get_or_insert_with(Disorder::create).refused += segments;
    }

    /// Sets the receive window in segments, counted from the next expected segment. The right edge never moves back.
    pub fn set_window(&mut self, segments: u32) {
        if self.has_fin {
            return;
        }
        let edge = self.next + Seq::from(segments).min(MAX_WINDOW_SEGMENTS);
        self.edge = if self.has_set_window { self.edge.max(edge) } else { edge };
        (self.has_set_window, self.window_segments) = (true, MAX_WINDOW_SEGMENTS);
    }

    /// Returns the receive window in segments, which is advertised in acknowledgments.
    #[inline(always)]
    pub fn window_segments(&self) -> Seq {
        self.window_segments.min(self.edge.saturating_sub(self.next))
    }

    /// Returns the acknowledgment that answers a window probe. It acknowledges no new data.
    pub fn handle_probe(&self) -> AckSegment {
        self.acknowledge(self.next.saturating_sub(1), false, 0)
    }

    /// Returns whether the stream was closed and all of it has arrived.
    pub fn is_finished(&self) -> bool {
        self.has_fin && self.next >= self.edge
    }

    /// Records that the stream ends with segment `seq`. Later segments are dropped.
    #[cold]
    fn note_fin(&mut self, seq: Seq) {
        if !self.has_fin && seq >= self.next {
            (self.has_fin, self.edge) = (true, seq + 1);
        }
    }

    /// Handles a SYN with these flags from a sender with [`Ecn::Accurate`]. Returns the flags of the SYN-ACK. The kind
    /// of ECN that results holds from then on.
    pub fn handle_syn(&mut self, flags: EcnFlags) -> EcnFlags {
        let Some(delayed) = &mut self.delayed else { return 0 };
        let (answer, agreed) = accurate_ecn::answer(delayed.supports, flags);
        self.ecn = agreed;
        delayed.marks = (agreed == Ecn::Accurate).then(MarkCounts::new);
        answer
    }

    /// Accepts a data segment that arrived with this IP-ECN field, as [`handle_data`](Self::handle_data) does, and
    /// counts it on a connection with accurate ECN.
    pub fn handle_counted_data(&mut self, now: Time, segment: Segment, field: EcnField) -> Option<AckSegment> {
        let is_urgent = self.count_marks(field, 1, segment.payload_bytes);
        let marked = field == EcnField::Ce && self.ecn != Ecn::Accurate;
        let ack = self.handle_data(now, segment, marked);
        if is_urgent { ack.or_else(|| self.take_pending()) } else { ack }
    }

    /// Accepts a chunk of segments that arrived with this IP-ECN field, as [`handle_chunk`](Self::handle_chunk) does,
    /// and counts them on a connection with accurate ECN.
    pub fn handle_counted_chunk(&mut self, now: Time, chunk: Chunk, field: EcnField) -> Option<AckSegment> {
        let Chunk { segments, payload_bytes, last_payload_bytes, .. } = chunk;
        let bytes = payload_bytes.wrapping_mul(segments.saturating_sub(1)).wrapping_add(last_payload_bytes);
        let is_urgent = self.count_marks(field, u64::from(segments), bytes);
        let marked = field == EcnField::Ce && self.ecn != Ecn::Accurate;
        let ack = self.handle_chunk(now, Chunk { marked, ..chunk });
        if is_urgent { ack.or_else(|| self.take_pending()) } else { ack }
    }

    /// Counts packets on a connection with accurate ECN. Returns true if their acknowledgment must not be delayed.
    fn count_marks(&mut self, field: EcnField, packets: u64, payload_bytes: u32) -> bool {
        let marks = self.delayed.as_mut().and_then(|delayed| delayed.marks.as_mut());
        marks.is_some_and(|marks| marks.count(field, packets, payload_bytes))
    }

    /// Returns the accurate ECN feedback of the acknowledgment that was returned last, if the connection has agreed to
    /// it.
    pub fn accurate_echo(&mut self) -> Option<AccurateEcho> {
        // Four SACK blocks leave four bytes for other options.
        let has_room = self.sack_blocks().len() < MAX_SACK_BLOCKS;
        let Delayed { marks, sends_option, .. } = self.delayed.as_deref_mut()?;
        marks.as_mut().map(|marks| marks.report(*sends_option && has_room))
    }

    /// Sets the initial sequence number, as [`Sender::set_initial_seq`](crate::Sender::set_initial_seq) does. Call it
    /// before any segment arrives.
    pub fn set_initial_seq(&mut self, first: Seq) {
        self.next = first;
    }

    /// Returns the SACK blocks of the acknowledgment that was returned last.
    #[inline(always)]
    pub fn sack_blocks(&self) -> &[SackBlock] {
        match &self.disorder {
            Some(disorder) if self.sack => &disorder.blocks[..disorder.block_count],
            _ => &[],
        }
    }

    /// Prefetches the fields that the fast path uses.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch_start(self, 1);
    }

    /// Accepts the next expected segment on the fast path, given the low 32 bits of its sequence number. The segment
    /// must be of class 0, a first transmission, unmarked and not the end of the stream.
    ///
    /// Its acknowledgment is [`AckSegment::plain`]. Returns `false` and changes nothing if the general path is needed.
    #[inline(always)]
    pub fn handle_data_fast(&mut self, seq: u32, payload_bytes: u32) -> bool {
        let is_next = self.fast_path && seq == self.next as u32;
        if is_next {
            self.held_bytes += u64::from(payload_bytes);
            self.next += 1;
        }
        is_next
    }

    /// Enables or disables the fast path.
    fn refresh(&mut self) {
        let echoes = self.echo_ce || self.ce_state;
        self.fast_path = self.delayed.is_none() && self.range_count == 0 && !echoes;
    }

    /// Accepts a data segment; `marked` is set if it carries a congestion mark (CE). Returns the acknowledgment to send
    /// now, if one is due. With delayed acknowledgments and [`Ecn::Dctcp`], a second one may be due immediately by the
    /// timer.
    #[inline]
    pub fn handle_data(&mut self, now: Time, segment: Segment, marked: bool) -> Option<AckSegment> {
        let Segment { seq, class, retransmission, .. } = segment;
        if !self.has_room_for(seq, seq) {
            self.refuse(1);
            return self.negative(seq, retransmission, class);
        }
        if segment.payload_bytes == 0 {
            self.note_fin(seq);
        }
        // One test covers both kinds of ECN: with classic ECN, `ce_state` stays false.
        if segment.window_reduced | (marked != self.ce_state) {
            if self.ecn.is_exact() && class == 0 && marked != self.ce_state {
                return self.change_ce_state(now, marked, |receiver| receiver.handle_data(now, segment, marked));
            }
            self.update_classic_echo(segment.window_reduced, marked && class == 0);
        }
        // Only in-order segments of class 0 may be acknowledged late (RFC 5681 section 4.2).
        let in_order = seq == self.next;
        if in_order && self.range_count == 0 {
            self.held_bytes += u64::from(segment.payload_bytes);
            self.next += 1;
            if let Some(delayed) = &mut self.delayed
                && class == 0
                && !delayed.is_ack_due(now, seq, retransmission)
            {
                return None;
            }
        } else if seq >= self.next {
            self.take_out_of_order(seq, segment.payload_bytes);
        }
        // The acknowledgment is cumulative, so it replaces a pending one.
        if class == 0
            && let Some(delayed) = &mut self.delayed
        {
            delayed.pending = None;
        }
        Some(self.acknowledge(seq, retransmission, class))
    }

    /// Returns whether the segments from `first` to `last` are inside the window and do not exceed the number of
    /// out-of-order ranges.
    #[inline(always)]
    fn has_room_for(&self, first: Seq, last: Seq) -> bool {
        // A segment below the next expected one is a duplicate, which is acknowledged again.
        let ahead = last.wrapping_sub(self.next);
        let is_inside = (ahead < self.window_segments && last < self.edge) || last < self.next;
        is_inside && (self.range_count < self.max_ranges || self.extends_a_range(first, last))
    }

    /// Returns whether the segments from `first` to `last` need no new range.
    #[cold]
    #[inline(never)]
    fn extends_a_range(&self, first: Seq, last: Seq) -> bool {
        let is_next_to = |disorder: &Disorder| {
            let next = disorder.ranges.partition_point(|range| range.end < first);
            disorder.ranges.get(next).is_some_and(|range| range.start <= last + 1)
        };
        first <= self.next || self.disorder.as_deref().is_some_and(is_next_to)
    }

    /// Updates the echo of classic ECN, which lasts until CWR arrives (RFC 3168 section 6.1.3). Marks in low classes
    /// are not echoed.
    #[cold]
    fn update_classic_echo(&mut self, window_reduced: bool, marked: bool) {
        if self.ecn.is_exact() {
            return;
        }
        self.echo_ce &= !window_reduced;
        self.echo_ce |= marked;
        self.refresh();
    }

    /// Handles a change of the CE state with the segments that `take` accepts (RFC 8257 section 3.2). They are
    /// acknowledged immediately. A pending delayed acknowledgment is sent separately, with the previous CE state; then
    /// the timer sends the second acknowledgment, due now.
    #[cold]
    fn change_ce_state(
        &mut self,
        now: Time,
        marked: bool,
        take: impl FnOnce(&mut Receiver) -> Option<AckSegment>,
    ) -> Option<AckSegment> {
        // The pending acknowledgment is built first, while the old state is still in the echo.
        let before = self.take_pending();
        self.ce_state = marked;
        self.echo_ce = marked;
        self.refresh();
        // `take` may delay its acknowledgment, which must be sent immediately here.
        let own = take(self).or_else(|| self.take_pending());
        if let (Some(_), Some(AckSegment { trigger, trigger_retransmitted, .. })) = (before, own)
            && let Some(delayed) = &mut self.delayed
        {
            delayed.pending = Some(PendingAck { segments: 1, trigger, trigger_retransmitted, deadline: now });
        }
        before.or(own)
    }

    /// Returns the delayed acknowledgment, if one is pending, which is then no longer pending.
    fn take_pending(&mut self) -> Option<AckSegment> {
        let pending = self.delayed.as_mut()?.pending.take()?;
        Some(self.acknowledge(pending.trigger, pending.trigger_retransmitted, 0))
    }

    /// Accepts a chunk of segments that the host merged, and returns its acknowledgment, if one is due. Its trigger is
    /// the last segment. Delayed acknowledgments count chunks, not segments.
    pub fn handle_chunk(&mut self, now: Time, chunk: Chunk) -> Option<AckSegment> {
        let Chunk { first, segments, class, retransmission, marked, .. } = chunk;
        // A hostile peer can send any numbers, so the sum must not overflow.
        let last = first.saturating_add(Seq::from(segments.max(1) - 1));
        if !self.has_room_for(first, last) {
            self.refuse(u64::from(segments));
            return self.negative(last, retransmission, class);
        }
        if chunk.window_reduced | (marked != self.ce_state) {
            if self.ecn.is_exact() && class == 0 && marked != self.ce_state {
                return self.change_ce_state(now, marked, |receiver| receiver.handle_chunk(now, chunk));
            }
            self.update_classic_echo(chunk.window_reduced, marked && class == 0);
        }
        // The loop is bounded, because a chunk with room ends inside the window.
        let in_order = first == self.next && self.range_count == 0;
        for seq in first..=last {
            let payload_bytes = if seq < last { chunk.payload_bytes } else { chunk.last_payload_bytes };
            if seq == self.next && self.range_count == 0 {
                self.held_bytes += u64::from(payload_bytes);
                self.next += 1;
            } else if seq >= self.next {
                self.take_out_of_order(seq, payload_bytes);
            }
        }
        if in_order
            && class == 0
            && let Some(delayed) = &mut self.delayed
            && !delayed.is_ack_due(now, last, retransmission)
        {
            return None;
        }
        if class == 0
            && let Some(delayed) = &mut self.delayed
        {
            delayed.pending = None;
        }
        Some(self.acknowledge(last, retransmission, class))
    }

    /// Returns the acknowledgment of a dropped segment that is inside the window: with go-back-N, it names the expected
    /// one.
    #[cold]
    #[inline(never)]
    fn negative(&mut self, seq: Seq, retransmission: bool, class: u8) -> Option<AckSegment> {
        let is_inside = seq.wrapping_sub(self.next) < self.window_segments && seq < self.edge;
        if self.max_ranges > 0 || !is_inside {
            return None;
        }
        if let Some(delayed) = &mut self.delayed {
            delayed.pending = None;
        }
        Some(self.acknowledge(seq, retransmission, class))
    }

    /// Builds an acknowledgment.
    #[inline(always)]
    fn acknowledge(&self, trigger: Seq, trigger_retransmitted: bool, class: u8) -> AckSegment {
        let ecn_echo = self.echo_ce;
        AckSegment { cumulative: self.next, trigger, trigger_retransmitted, class, ecn_echo }
    }

    /// Returns the deadline of the delayed acknowledgment, or [`Time::NEVER`].
    #[inline]
    pub fn next_timer(&self) -> Time {
        self.delayed.as_ref().and_then(|delayed| delayed.pending).map_or(Time::NEVER, |pending| pending.deadline)
    }

    /// Returns the delayed acknowledgment if it is due at `now`.
    pub fn handle_timer(&mut self, now: Time) -> Option<AckSegment> {
        let pending = self.delayed.as_mut()?.pending.take_if(|pending| pending.deadline <= now)?;
        Some(self.acknowledge(pending.trigger, pending.trigger_retransmitted, 0))
    }

    /// Accepts `seq`, at or above the next expected segment, if it is out of order or if there are out-of-order ranges.
    fn take_out_of_order(&mut self, seq: Seq, payload_bytes: u32) {
        let disorder = self.disorder.get_or_insert_with(Disorder::create);
        if seq == self.next && disorder.ranges[0].start > seq + 1 {
            // In order below a hole, as with RC3 when segments from the tail are held.
            self.held_bytes += u64::from(payload_bytes);
            self.next += 1;
            return;
        }
        self.fast_path = false;
        if disorder.grow_first_block(seq) {
            self.held_bytes += u64::from(payload_bytes);
            return;
        }
        let Some(touched) = disorder.insert(seq) else { return };
        self.held_bytes += u64::from(payload_bytes);
        if touched.start == self.next {
            // The hole at the front is filled.
            self.next = touched.end;
            disorder.ranges.pop_front();
            disorder.recent_range = 0;
            disorder.retain_blocks(|block| block.end > touched.end);
            self.range_count = disorder.ranges.len() as u32;
            self.refresh();
        } else {
            disorder.put_block_first(touched);
            self.range_count = disorder.ranges.len() as u32;
        }
    }
}

impl Delayed {
    /// Adds an in-order segment to the delayed acknowledgment, and returns whether that is due.
    fn is_ack_due(&mut self, now: Time, seq: Seq, retransmission: bool) -> bool {
        let pending = self.pending.get_or_insert(PendingAck {
            segments: 0,
            trigger: seq,
            trigger_retransmitted: retransmission,
            deadline: now + self.settings.timeout,
        });
        pending.segments += 1;
        pending.trigger = seq;
        pending.trigger_retransmitted |= retransmission;
        pending.segments >= self.settings.every_segments
    }
}

impl Disorder {
    #[cold]
    #[inline(never)]
    fn create() -> Box<Disorder> {
        Box::default()
    }

    /// Extends the range of the first SACK block by `seq`, the common case after a loss. Returns `false` and changes
    /// nothing if `seq` does not follow it or closes a hole.
    #[inline(always)]
    fn grow_first_block(&mut self, seq: Seq) -> bool {
        let next_start = self.ranges.get(self.recent_range + 1).map_or(Seq::MAX, |next| next.start);
        let Some(range) = self.ranges.get_mut(self.recent_range) else { return false };
        let is_next = seq == range.end && seq + 1 < next_start;
        if !is_next || self.block_count == 0 || self.blocks[0] != *range {
            return false;
        }
        range.end += 1;
        self.blocks[0] = *range;
        true
    }

    /// Adds `seq` to the ranges. Returns the range that contains it, or `None` if the segment is a duplicate.
    fn insert(&mut self, seq: Seq) -> Option<SackBlock> {
        // Consecutive arrivals extend one range: upwards from the head, downwards from the tail.
        if let Some(&range) = self.ranges.get(self.recent_range) {
            let next_start = self.ranges.get(self.recent_range + 1).map_or(Seq::MAX, |next| next.start);
            if seq == range.end && seq + 1 < next_start {
                self.ranges[self.recent_range].end += 1;
                return Some(self.ranges[self.recent_range]);
            }
            let before_end = self.recent_range.checked_sub(1).map_or(0, |before| self.ranges[before].end);
            if seq + 1 == range.start && (seq > before_end || self.recent_range == 0) {
                self.ranges[self.recent_range].start = seq;
                return Some(self.ranges[self.recent_range]);
            }
        }
        let at = self.ranges.partition_point(|range| range.end < seq);
        let Some(range) = self.ranges.get(at).copied().filter(|range| range.start <= seq + 1) else {
            self.ranges.insert(at, SackBlock { start: seq, end: seq + 1 });
            self.recent_range = at;
            return Some(self.ranges[at]);
        };
        if range.start <= seq && seq < range.end {
            return None;
        }
        let grown = SackBlock { start: range.start.min(seq), end: range.end.max(seq + 1) };
        self.ranges[at] = grown;
        // The range may now touch the next one.
        if let Some(next) = self.ranges.get(at + 1).copied().filter(|next| next.start == grown.end) {
            self.ranges[at].end = next.end;
            self.ranges.remove(at + 1);
        }
        self.recent_range = at;
        Some(self.ranges[at])
    }

    /// Puts `range` first among the SACK blocks, followed by the previous blocks that are not inside it.
    fn put_block_first(&mut self, range: SackBlock) {
        let is_same = |block: &SackBlock| block.start == range.start || block.end == range.end;
        if self.block_count > 0 && is_same(&self.blocks[0]) && self.block_count == 1 {
            self.blocks[0] = range;
            return;
        }
        self.retain_blocks(|block| block.start < range.start || block.end > range.end);
        let kept = self.block_count.min(MAX_SACK_BLOCKS - 1);
        self.blocks.copy_within(..kept, 1);
        self.blocks[0] = range;
        self.block_count = kept + 1;
    }

    /// Removes the SACK blocks for which `keep` returns `false`.
    fn retain_blocks(&mut self, keep: impl Fn(&SackBlock) -> bool) {
        let mut kept = 0;
        for at in 0..self.block_count {
            if keep(&self.blocks[at]) {
                self.blocks[kept] = self.blocks[at];
                kept += 1;
            }
        }
        self.block_count = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Dur, Stream};

    fn data(seq: u64) -> Segment {
        Segment { seq, payload_bytes: 1000, class: 0, retransmission: false, window_reduced: false }
    }

    fn receiver(delayed_ack: Option<DelayedAck>) -> Receiver {
        Receiver::new(&TransportConfig { delayed_ack, ..TransportConfig::default() })
    }

    fn blocks(receiver: &Receiver) -> Vec<(u64, u64)> {
        receiver.sack_blocks().iter().map(|block| (block.start, block.end)).collect()
    }

    #[test]
    fn the_first_block_holds_the_segment_that_just_arrived() {
        let mut receiver = receiver(None);
        for seq in [0, 2, 5, 3, 9, 7] {
            receiver.handle_data(Time::ZERO, data(seq), false);
        }
        assert_eq!(receiver.next_expected(), 1);
        assert_eq!(blocks(&receiver), [(7, 8), (9, 10), (2, 4), (5, 6)]);
        receiver.handle_data(Time::ZERO, data(8), false);
        assert_eq!(blocks(&receiver), [(7, 10), (2, 4), (5, 6)]);
        receiver.handle_data(Time::ZERO, data(1), false);
        assert_eq!((receiver.next_expected(), blocks(&receiver)), (4, vec![(7, 10), (5, 6)]));
    }

    #[test]
    fn segments_from_the_tail_grow_one_block_downwards() {
        let mut receiver = receiver(None);
        for seq in (1..10).rev() {
            let ack = receiver.handle_data(Time::ZERO, Segment { class: 2, ..data(seq) }, false).expect("at once");
            assert_eq!((ack.class, ack.cumulative), (2, 0));
            assert_eq!(blocks(&receiver), [(seq, 10)]);
        }
        receiver.handle_data(Time::ZERO, data(0), false);
        assert_eq!((receiver.next_expected(), receiver.held_bytes()), (10, 10_000));
        assert!(receiver.sack_blocks().is_empty());
    }

    #[test]
    fn every_second_segment_is_acknowledged_and_a_lone_one_by_the_timer() {
        let mut receiver = receiver(Some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) }));
        assert!(receiver.handle_data(Time::ZERO, data(0), false).is_none());
        let ack = receiver.handle_data(Time::ZERO, data(1), false).expect("second segment");
        assert_eq!((ack.cumulative, ack.trigger), (2, 1));
        assert!(receiver.handle_data(Time::from_ns(5), data(2), false).is_none());
        let due = receiver.next_timer();
        assert_eq!(due, Time::from_ns(5) + Dur::from_ms(40));
        assert!(receiver.handle_timer(Time::from_ns(6)).is_none());
        assert_eq!(receiver.handle_timer(due).map(|ack| ack.cumulative), Some(3));
        // Out of order: at once.
        assert!(receiver.handle_data(due, data(9), false).is_some());
    }

    #[test]
    fn a_duplicate_is_acknowledged_and_not_counted() {
        let mut receiver = receiver(None);
        receiver.handle_data(Time::ZERO, data(0), false);
        receiver.handle_data(Time::ZERO, data(3), false);
        for seq in [0, 3] {
            assert!(receiver.handle_data(Time::ZERO, data(seq), false).is_some());
        }
        assert_eq!((receiver.next_expected(), receiver.held_bytes()), (1, 2_000));
    }

    #[test]
    fn a_mark_is_echoed_until_the_sender_has_reduced_its_window() {
        let mut receiver = receiver(None);
        let echo = |receiver: &mut Receiver, segment, marked| {
            receiver.handle_data(Time::ZERO, segment, marked).expect("acknowledged").ecn_echo
        };
        assert!(!echo(&mut receiver, data(0), false));
        assert!(echo(&mut receiver, data(1), true));
        assert!(echo(&mut receiver, data(2), false));
        assert!(!echo(&mut receiver, Segment { window_reduced: true, ..data(3) }, false));
    }

    #[test]
    fn a_mark_on_a_segment_with_cwr_is_echoed() {
        let mut receiver = receiver(None);
        receiver.handle_data(Time::ZERO, data(0), true);
        let ack = receiver.handle_data(Time::ZERO, Segment { window_reduced: true, ..data(1) }, true);
        assert!(ack.expect("acknowledged").ecn_echo);
        let ack = receiver.handle_chunk(Time::ZERO, Chunk { window_reduced: true, marked: true, ..chunk(2, 3) });
        assert!(ack.expect("acknowledged").ecn_echo);
        let ack = receiver.handle_chunk(Time::ZERO, Chunk { window_reduced: true, ..chunk(5, 3) });
        assert!(!ack.expect("acknowledged").ecn_echo);
    }

    #[test]
    fn marks_in_low_classes_are_not_echoed_in_class_0() {
        let mut receiver = receiver(None);
        receiver.handle_data(Time::ZERO, Segment { class: 1, ..data(9) }, true);
        receiver.handle_chunk(Time::ZERO, Chunk { class: 1, marked: true, ..chunk(5, 3) });
        assert!(!receiver.handle_data(Time::ZERO, data(0), false).expect("acknowledged").ecn_echo);
        let marked = receiver.handle_chunk(Time::ZERO, Chunk { marked: true, ..chunk(1, 2) });
        assert!(marked.expect("acknowledged").ecn_echo);
    }

    #[test]
    fn the_end_of_a_stream_is_accepted_early_and_later_segments_are_dropped() {
        let mut receiver = receiver(None);
        let end = Segment { payload_bytes: 0, ..data(5) };
        for _ in 0..2 {
            assert!(receiver.handle_data(Time::ZERO, end, false).is_some(), "a duplicate is acknowledged too");
        }
        assert!(receiver.handle_data(Time::ZERO, data(6), false).is_none());
        assert_eq!((receiver.refused(), receiver.is_finished()), (1, false));
        for seq in 0..5 {
            receiver.handle_data(Time::ZERO, data(seq), false);
        }
        assert!(receiver.is_finished());
    }

    #[test]
    fn at_its_limit_of_ranges_a_receiver_drops_segments_that_need_a_new_one() {
        let mut receiver = Receiver::new(&TransportConfig { held_ranges: 2, ..TransportConfig::default() });
        let mut takes = |seq| receiver.handle_data(Time::ZERO, data(seq), false).is_some();
        assert!(takes(10) && takes(20));
        assert!(!takes(30) && !takes(8) && !takes(12));
        assert!(takes(9) && takes(11) && takes(19) && takes(21), "segments next to a range need no new one");
        assert!(takes(0));
        assert_eq!((receiver.refused(), receiver.held_bytes()), (3, 7000));
    }

    #[test]
    fn segments_beyond_the_window_are_dropped_and_ranges_count_as_memory() {
        let receive_window_bytes = Some(4 * TransportConfig::default().mss_bytes);
        let mut receiver = Receiver::new(&TransportConfig { receive_window_bytes, ..TransportConfig::default() });
        let empty = receiver.memory_bytes();
        assert!(empty >= size_of::<Receiver>());
        let mut takes = |seq| receiver.handle_data(Time::ZERO, data(seq), false).is_some();
        assert!(!takes(4) && takes(3));
        assert!(takes(0) && takes(4) && !takes(5), "the window moves with the next expected segment");
        assert_eq!(receiver.refused(), 2);
        assert!(receiver.memory_bytes() >= empty + size_of::<SackBlock>());
    }

    /// Returns the acknowledgments of an arrival: the immediate one, and the one that the timer sends at the same time.
    fn at_once(receiver: &mut Receiver, ack: Option<AckSegment>) -> Vec<(u64, bool)> {
        let second = receiver.handle_timer(Time::ZERO);
        ack.into_iter().chain(second).map(|ack| (ack.cumulative, ack.ecn_echo)).collect()
    }

    fn dctcp_receiver(every_segments: u32) -> Receiver {
        let delayed_ack = Some(DelayedAck { every_segments, timeout: Dur::from_ms(40) });
        Receiver::new(&TransportConfig { ecn: Ecn::Dctcp, delayed_ack, ..TransportConfig::default() })
    }

    /// RFC 8257 section 3.2: pending segments are acknowledged with the old CE state, and the segment that changes the
    /// state immediately.
    #[test]
    fn a_change_of_the_ce_state_is_acknowledged_immediately_and_separately() {
        let mut receiver = dctcp_receiver(2);
        let marked = [false, false, false, true, true, true, false, true, true];
        let mut acks = Vec::new();
        for (seq, marked) in (0..).zip(marked) {
            let ack = receiver.handle_data(Time::ZERO, data(seq), marked);
            acks.push(at_once(&mut receiver, ack));
        }
        let none: Vec<(u64, bool)> = vec![];
        let expected = [
            none.clone(),
            vec![(2, false)],
            none.clone(),
            vec![(3, false), (4, true)],
            none,
            vec![(6, true)],
            vec![(7, false)],
            vec![(8, true)],
            vec![],
        ];
        assert_eq!(acks, expected);
    }

    #[test]
    fn every_mark_is_echoed_once_without_delayed_acknowledgments() {
        let config = TransportConfig { ecn: Ecn::Dctcp, ..TransportConfig::default() };
        let mut receiver = Receiver::new(&config);
        let marked = [false, true, true, false, true, false];
        for (seq, marked) in (0..).zip(marked) {
            let ack = receiver.handle_data(Time::ZERO, data(seq), marked).expect("acknowledged");
            assert_eq!((ack.cumulative, ack.ecn_echo), (seq + 1, marked));
            assert_eq!(receiver.next_timer(), Time::NEVER);
        }
    }

    #[test]
    fn a_marked_segment_beyond_a_hole_flushes_the_unmarked_delayed_acknowledgment() {
        let mut receiver = dctcp_receiver(2);
        assert!(receiver.handle_data(Time::ZERO, data(0), false).is_none());
        let ack = receiver.handle_data(Time::ZERO, data(5), true);
        assert_eq!(at_once(&mut receiver, ack), [(1, false), (1, true)]);
        assert_eq!(blocks(&receiver), [(5, 6)]);
        // Segments in low classes and classic ECN's CWR flag do not change the CE state.
        receiver.handle_data(Time::ZERO, Segment { class: 1, ..data(9) }, false);
        let ack = receiver.handle_data(Time::ZERO, Segment { window_reduced: true, ..data(6) }, true);
        assert_eq!(at_once(&mut receiver, ack), [(1, true)]);
    }

    #[test]
    fn chunks_change_the_ce_state_as_segments_do() {
        let mut receiver = dctcp_receiver(2);
        let mut acks = Vec::new();
        for (first, marked) in [(0, false), (5, true), (10, true), (15, true), (20, false)] {
            let ack = receiver.handle_chunk(Time::ZERO, Chunk { marked, ..chunk(first, 5) });
            acks.push(at_once(&mut receiver, ack));
        }
        let expected = [vec![], vec![(5, false), (10, true)], vec![], vec![(20, true)], vec![(25, false)]];
        assert_eq!(acks, expected);
    }

    fn chunk(first: u64, segments: u32) -> Chunk {
        Chunk {
            first,
            segments,
            payload_bytes: 1000,
            last_payload_bytes: 500,
            class: 0,
            retransmission: false,
            window_reduced: false,
            marked: false,
        }
    }

    #[test]
    fn a_chunk_is_acknowledged_once_and_counts_once_for_delayed_acknowledgments() {
        let mut at_once = receiver(None);
        let ack = at_once.handle_chunk(Time::ZERO, chunk(0, 5)).expect("acknowledged");
        assert_eq!((ack.cumulative, ack.trigger, at_once.held_bytes()), (5, 4, 4_500));
        let mut delayed = receiver(Some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) }));
        assert!(delayed.handle_chunk(Time::ZERO, chunk(0, 5)).is_none());
        let ack = delayed.handle_chunk(Time::ZERO, chunk(5, 7)).expect("second chunk");
        assert_eq!((ack.cumulative, ack.trigger), (12, 11));
    }

    #[test]
    fn a_chunk_beyond_a_hole_is_one_block_and_duplicates_count_once() {
        let mut receiver = receiver(Some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) }));
        assert!(receiver.handle_chunk(Time::ZERO, chunk(4, 3)).is_some(), "out of order: immediately");
        assert_eq!(blocks(&receiver), [(4, 7)]);
        let ack = receiver.handle_chunk(Time::ZERO, chunk(0, 6)).expect("fills the hole");
        assert_eq!((ack.cumulative, receiver.held_bytes()), (7, 2_500 + 4_000));
        assert!(receiver.sack_blocks().is_empty());
    }

    /// All segments are reassembled, and the SACK blocks are correct after each arrival.
    #[test]
    fn any_order_of_arrival_is_reassembled() {
        let mut rng = Stream::new(9, Domain::Test, 0);
        for _ in 0..300 {
            let n = 1 + rng.below(80);
            let mut order: Vec<u64> = (0..n).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, rng.below(i as u64 + 1) as usize);
            }
            let mut receiver = receiver(None);
            let mut held = vec![false; n as usize];
            for &seq in &order {
                receiver.handle_data(Time::ZERO, data(seq), false);
                held[seq as usize] = true;
                let first_missing = held.iter().position(|held| !held).unwrap_or(held.len());
                assert_eq!(receiver.next_expected() as usize, first_missing);
                for block in receiver.sack_blocks() {
                    assert!(block.start > receiver.next_expected() && block.start < block.end);
                    assert!((block.start..block.end).all(|seq| held[seq as usize]));
                }
                if seq >= receiver.next_expected() {
                    let first = receiver.sack_blocks()[0];
                    assert!((first.start..first.end).contains(&seq));
                }
            }
            assert_eq!(receiver.held_bytes(), n * 1000);
        }
    }
}
