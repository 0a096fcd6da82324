//! Receive offload: merges segments into chunks on their way to TCP.

use super::{HostSpec, Stamps};
use sparelane_core::{Dur, Seq, Time};
use sparelane_transport::{Chunk, Segment, TransportConfig};

/// Receive offload (LRO) of one flow, which merges consecutive segments of one class into a chunk.
///
/// A chunk is passed on when it is full, after a segment that is not full, before a segment that does not continue it,
/// or at its deadline. If every mark counts (RFC 8257), a chunk contains only marked or only unmarked segments, as in
/// Linux.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offload {
    /// Processor time per chunk.
    pub(crate) cost: Dur,
    /// The times that acknowledgments echo.
    pub(crate) stamps: Stamps,
    most: u32,
    timeout: Dur,
    full_bytes: u32,
    splits_at_marks: bool,
    waiting: Option<Received>,
    /// The deadline of the waiting chunk.
    deadline: Time,
}

/// A chunk of received segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) chunk: Chunk,
    /// The send time that its last segment carried, if data carries one.
    pub(crate) sent_ns: u32,
}

/// The chunks that a segment completes: the one that it does not continue, and the one that it fills.
pub(crate) type Complete = [Option<Received>; 2];

impl Offload {
    /// The offload of a flow with these settings between a sending and a receiving host; `None` if it needs none.
    /// `echoes` is true if its acknowledgments echo times.
    pub(crate) fn of(from: &HostSpec, to: &HostSpec, config: &TransportConfig, echoes: bool) -> Option<Box<Offload>> {
        let exact_marks = config.ecn.is_exact();
        let acknowledges_twice = exact_marks && config.delayed_ack.is_some();
        let stamps = Stamps::of(from, to);
        let stamps_differ = echoes && !stamps.are_exact();
        let needed = config.receive_batch > 1 || to.receive_cost > Dur::ZERO || acknowledges_twice || stamps_differ;
        needed.then(|| {
            Box::new(Offload {
                cost: to.receive_cost,
                stamps,
                most: config.receive_batch,
                timeout: config.receive_batch_timeout,
                full_bytes: config.mss_bytes as u32,
                splits_at_marks: config.ecn.reports_every_mark(),
                waiting: None,
                deadline: Time::NEVER,
            })
        })
    }

    /// Handles an arrived segment that was sent at `sent_ns`.
    pub(crate) fn take(&mut self, now: Time, segment: Segment, marked: bool, sent_ns: u32) -> Complete {
        let fresh = Chunk {
            first: segment.seq,
            segments: 1,
            payload_bytes: segment.payload_bytes,
            last_payload_bytes: segment.payload_bytes,
            class: segment.class,
            retransmission: segment.retransmission,
            window_reduced: segment.window_reduced,
            marked,
        };
        let splits_at_marks = self.splits_at_marks;
        let continues = |old: &Chunk| {
            old.first + Seq::from(old.segments) == fresh.first
                && old.class == fresh.class
                && !(splits_at_marks && old.marked != marked)
        };
        // A segment that does not continue the waiting chunk completes that chunk, and starts the next one.
        let (before, chunk) = match self.waiting.take() {
            Some(Received { chunk: old, .. }) if continues(&old) => {
                let joined = Chunk {
                    segments: old.segments + 1,
                    last_payload_bytes: fresh.last_payload_bytes,
                    retransmission: old.retransmission | fresh.retransmission,
                    window_reduced: old.window_reduced | fresh.window_reduced,
                    marked: old.marked | marked,
                    ..old
                };
                (None, joined)
            }
            old => {
                self.deadline = now + self.timeout;
                (old, fresh)
            }
        };
        // Nothing can follow the largest chunk, and a segment that is not full ends the sender's data for now.
        if chunk.segments >= self.most || segment.payload_bytes < self.full_bytes {
            return [before, Some(Received { chunk, sent_ns })];
        }
        self.waiting = Some(Received { chunk, sent_ns });
        [before, None]
    }

    /// The deadline of the waiting chunk; `Time::NEVER` if none waits.
    pub(crate) fn deadline(&self) -> Time {
        if self.waiting.is_some() { self.deadline } else { Time::NEVER }
    }

    /// Takes the waiting chunk if its deadline has passed.
    pub(crate) fn time_out(&mut self, now: Time) -> Option<Received> {
        if self.deadline() <= now { self.waiting.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_transport::Ecn;

    fn of(config: &TransportConfig) -> Option<Box<Offload>> {
        Offload::of(&HostSpec::default(), &HostSpec::default(), config, true)
    }

    fn offload() -> Box<Offload> {
        let config = TransportConfig { mss_bytes: 1000, receive_batch: 3, ..TransportConfig::default() };
        of(&config).expect("chunks of three")
    }

    fn segment(seq: u64, class: u8) -> Segment {
        Segment { seq, payload_bytes: 1000, class, retransmission: false, window_reduced: false }
    }

    /// The first segment and the length of each chunk that these segments complete.
    fn handed_over(segments: &[(u32, u8)]) -> Vec<(u64, u32)> {
        let mut offload = offload();
        let taken =
            segments.iter().flat_map(|&(seq, class)| offload.take(Time::ZERO, segment(seq.into(), class), false, seq));
        taken.flatten().map(|Received { chunk, .. }| (chunk.first, chunk.segments)).collect()
    }

    #[test]
    fn segments_in_a_row_are_handed_over_when_the_chunk_is_full() {
        assert_eq!(handed_over(&[(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)]), [(0, 3)]);
    }

    #[test]
    fn what_is_out_of_order_or_of_another_class_ends_a_chunk() {
        assert_eq!(handed_over(&[(0, 0), (1, 0), (3, 0), (4, 1)]), [(0, 2), (3, 1)]);
    }

    #[test]
    fn a_segment_that_is_not_full_ends_its_chunk_at_once() {
        let mut offload = offload();
        offload.take(Time::ZERO, segment(0, 0), false, 8);
        let [before, full] = offload.take(Time::ZERO, Segment { payload_bytes: 1, ..segment(1, 0) }, true, 9);
        let Received { chunk, sent_ns } = full.expect("complete");
        assert_eq!(sent_ns, 9);
        assert_eq!((before, chunk.segments, chunk.payload_bytes, chunk.last_payload_bytes), (None, 2, 1000, 1));
        assert!(chunk.marked && offload.deadline() == Time::NEVER);
    }

    /// Linux compares the whole TOS byte, which includes marks.
    #[test]
    fn where_every_mark_counts_a_chunk_is_marked_as_a_whole_or_not_at_all() {
        let chunks = |ecn| {
            let config = TransportConfig { mss_bytes: 1000, receive_batch: 9, ecn, ..TransportConfig::default() };
            let mut offload = of(&config).expect("chunks");
            let marked = [false, false, true, true, true, false];
            let taken =
                (0..).zip(marked).flat_map(|(seq, marked)| offload.take(Time::ZERO, segment(seq, 0), marked, 0));
            let taken: Vec<_> = taken.flatten().collect();
            taken.iter().map(|Received { chunk, .. }| (chunk.segments, chunk.marked)).collect::<Vec<_>>()
        };
        assert_eq!(chunks(Ecn::Dctcp), [(2, false), (3, true)]);
        assert_eq!(chunks(Ecn::Classic), []);
    }

    #[test]
    fn a_chunk_waits_for_its_timeout_from_its_first_segment_on() {
        let mut offload = offload();
        offload.take(Time::ZERO, segment(0, 0), false, 0);
        offload.take(Time::from_ns(50_000), segment(1, 0), false, 0);
        let due = offload.deadline();
        assert_eq!(due, Time::ZERO + Dur::from_us(100));
        assert_eq!(offload.time_out(Time::from_ns(99_999)), None);
        assert_eq!(offload.time_out(due).map(|received| received.chunk.segments), Some(2));
        assert_eq!(offload.deadline(), Time::NEVER);
    }
}
