//! What is between the wire and TCP in a host: receive offload, and the time that its processor takes.
//!
//! Only flows that use either come here, and those whose receiver may have two acknowledgments to send at once (delayed
//! ones with DCTCP's echo of marks); for all others a host takes no time, and a packet is with TCP when it arrives.

use crate::network::NodeId;
use sparelane_core::{Dur, Time};
use sparelane_transport::{Chunk, Ecn, Segment, TransportConfig};
use std::collections::{BTreeMap, VecDeque};

/// Hosts, all alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// How long the processor of a host is busy with one received chunk of data, or segment where there are no
    /// chunks. It takes them one after another. Zero takes no time.
    pub receive_cost: Dur,
}

/// Receive offload (LRO) for one flow: consecutive segments of one class become one chunk.
///
/// A chunk is handed over when it is full, with a segment that is not full, when a segment comes that does not
/// continue it, or when its time is up. Where every mark counts (RFC 8257), all or none of its segments are marked, as in
/// Linux.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offload {
    most: u32,
    timeout: Dur,
    full_bytes: u32,
    splits_at_marks: bool,
    chunk: Option<Chunk>,
    /// When the chunk's time is up.
    deadline: Time,
}

/// What a segment hands over: the chunk that it does not continue, and the one that it completes.
pub(crate) type Complete = [Option<Chunk>; 2];

impl Offload {
    /// The offload of a flow with these settings at hosts like `spec`; `None` where it needs none.
    pub(crate) fn of(spec: HostSpec, config: &TransportConfig) -> Option<Box<Offload>> {
        let exact_marks = config.ecn == Ecn::Dctcp;
        let acknowledges_twice = exact_marks && config.delayed_ack.is_some();
        let needed = config.receive_batch > 1 || spec.receive_cost > Dur::ZERO || acknowledges_twice;
        needed.then(|| {
            Box::new(Offload {
                most: config.receive_batch,
                timeout: config.receive_batch_timeout,
                full_bytes: config.mss_bytes as u32,
                splits_at_marks: exact_marks,
                chunk: None,
                deadline: Time::NEVER,
            })
        })
    }

    /// A segment arrived.
    pub(crate) fn take(&mut self, now: Time, segment: Segment, marked: bool) -> Complete {
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
            old.first + old.segments == fresh.first
                && old.class == fresh.class
                && !(splits_at_marks && old.marked != marked)
        };
        let (before, chunk) = match self.chunk.take() {
            Some(old) if continues(&old) => {
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
        if chunk.segments >= self.most || segment.payload_bytes < self.full_bytes {
            return [before, Some(chunk)];
        }
        self.chunk = Some(chunk);
        [before, None]
    }

    /// When the waiting chunk's time is up.
    pub(crate) fn deadline(&self) -> Time {
        if self.chunk.is_some() { self.deadline } else { Time::NEVER }
    }

    /// The waiting chunk, if its time is up.
    pub(crate) fn time_out(&mut self, now: Time) -> Option<Chunk> {
        if self.deadline() <= now { self.chunk.take() } else { None }
    }
}

/// A chunk for a flow; the number tells a later flow in the same slot apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) slot: u32,
    pub(crate) flow: u32,
    pub(crate) chunk: Chunk,
}

/// The processors of all hosts, each with what waits for it. The first in line is being processed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processors {
    spec: HostSpec,
    lines: BTreeMap<NodeId, VecDeque<Work>>,
}

impl Processors {
    pub(crate) fn new(spec: HostSpec) -> Processors {
        Processors { spec, lines: BTreeMap::new() }
    }

    pub(crate) fn spec(&self) -> HostSpec {
        self.spec
    }

    /// Puts `work` in line at `host`. Returns how long its processor takes if it begins at once; the work behind it
    /// begins when this is done.
    pub(crate) fn put(&mut self, host: NodeId, work: Work) -> Option<Dur> {
        let line = self.lines.entry(host).or_default();
        line.push_back(work);
        (line.len() == 1).then_some(self.spec.receive_cost)
    }

    /// What `host` has just processed, and how long the next takes, if there is one.
    pub(crate) fn finish(&mut self, host: NodeId) -> Option<(Work, Option<Dur>)> {
        let line = self.lines.get_mut(&host)?;
        let work = line.pop_front()?;
        Some((work, (!line.is_empty()).then_some(self.spec.receive_cost)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offload() -> Box<Offload> {
        let config = TransportConfig { mss_bytes: 1000, receive_batch: 3, ..TransportConfig::default() };
        Offload::of(HostSpec::default(), &config).expect("chunks of three")
    }

    fn segment(seq: u32, class: u8) -> Segment {
        Segment { seq, payload_bytes: 1000, class, retransmission: false, window_reduced: false }
    }

    /// First segment and length of what each of these hands over.
    fn handed_over(segments: &[(u32, u8)]) -> Vec<(u32, u32)> {
        let mut offload = offload();
        let taken = segments.iter().flat_map(|&(seq, class)| offload.take(Time::ZERO, segment(seq, class), false));
        taken.flatten().map(|chunk| (chunk.first, chunk.segments)).collect()
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
        offload.take(Time::ZERO, segment(0, 0), false);
        let [before, full] = offload.take(Time::ZERO, Segment { payload_bytes: 1, ..segment(1, 0) }, true);
        let chunk = full.expect("complete");
        assert_eq!((before, chunk.segments, chunk.payload_bytes, chunk.last_payload_bytes), (None, 2, 1000, 1));
        assert!(chunk.marked && offload.deadline() == Time::NEVER);
    }

    /// Linux compares the whole TOS byte, marks included.
    #[test]
    fn where_every_mark_counts_a_chunk_is_marked_as_a_whole_or_not_at_all() {
        let chunks = |ecn| {
            let config = TransportConfig { mss_bytes: 1000, receive_batch: 9, ecn, ..TransportConfig::default() };
            let mut offload = Offload::of(HostSpec::default(), &config).expect("chunks");
            let marked = [false, false, true, true, true, false];
            let taken = (0..).zip(marked).flat_map(|(seq, marked)| offload.take(Time::ZERO, segment(seq, 0), marked));
            let taken: Vec<_> = taken.flatten().collect();
            taken.iter().map(|chunk| (chunk.segments, chunk.marked)).collect::<Vec<_>>()
        };
        assert_eq!(chunks(Ecn::Dctcp), [(2, false), (3, true)]);
        assert_eq!(chunks(Ecn::Classic), []);
    }

    #[test]
    fn a_chunk_waits_for_its_timeout_from_its_first_segment_on() {
        let mut offload = offload();
        offload.take(Time::ZERO, segment(0, 0), false);
        offload.take(Time::from_ns(50_000), segment(1, 0), false);
        let due = offload.deadline();
        assert_eq!(due, Time::ZERO + Dur::from_us(100));
        assert_eq!(offload.time_out(Time::from_ns(99_999)), None);
        assert_eq!(offload.time_out(due).map(|chunk| chunk.segments), Some(2));
        assert_eq!(offload.deadline(), Time::NEVER);
    }

    #[test]
    fn a_processor_takes_one_chunk_after_another() {
        let cost = Dur::from_us(1);
        let mut processors = Processors::new(HostSpec { receive_cost: cost });
        let [_, chunk] = Offload { most: 1, ..*offload() }.take(Time::ZERO, segment(0, 0), false);
        let work = |slot| Work { slot, flow: slot, chunk: chunk.expect("a chunk of one") };
        let (here, there) = (NodeId(1), NodeId(2));
        assert_eq!([processors.put(here, work(0)), processors.put(here, work(1))], [Some(cost), None]);
        assert_eq!(processors.put(there, work(2)), Some(cost));
        let done = |finished: Option<(Work, Option<Dur>)>| finished.map(|(work, next)| (work.slot, next));
        assert_eq!(done(processors.finish(here)), Some((0, Some(cost))));
        assert_eq!(done(processors.finish(here)), Some((1, None)));
        assert_eq!(done(processors.finish(here)), None);
    }
}
