//! The sending side of a flow: the transport's sender with the bytes that it speaks of.

use super::{Classes, Log, MAX_CLASSES, TailConfig, TailPace, WIRE_HEADER_BYTES, Watch, watch};
use crate::frame::{Data, Entry, Frame, encode_data};
use crate::node::Gap;
use bytes::Bytes;
use sparelane_cc::CongestionControl;
use sparelane_core::{Domain, Dur, Rate, Seq, Stream, Time, widen};
use sparelane_transport::qlog::Extent;
use sparelane_transport::{
    AckError, AckSegment, Acknowledgment, Ending, Extras, MAX_SACK_BLOCKS, SackBlock, Segment, Sender, SenderCounts,
    Transmit, TransportConfig,
};
use std::collections::{BTreeMap, VecDeque};

/// For so much lateness of the host's timers a sender makes up at most.
pub(crate) const MOST_LATENESS: Dur = Dur::from_ms(2);

/// The most segments that one call sends.
const MOST_AT_ONCE: usize = 256;

/// Added to one-way delays, whose clocks are not those of one host, so that none is negative.
const CLOCK_OFFSET: Dur = Dur::from_secs(1);

/// Receive times beyond this many nanoseconds, half a year, are not believed.
const MOST_RECEIVED_NS: u64 = 180 * 24 * 3600 * 1_000_000_000;

/// Totals of one sending flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendFlowCounts {
    /// Segments sent, by class.
    pub sent: [u64; MAX_CLASSES],
    /// Acknowledgments that could not be true.
    pub refused_acks: u64,
}

/// One flow that this node sends.
#[derive(Debug)]
pub struct SendFlow {
    id: u32,
    sender: Sender,
    mss_bytes: u64,
    /// No write is larger, so that its end is always inside the receive window.
    write_bytes: u64,
    /// What is not acknowledged, each with its place in the stream.
    pieces: VecDeque<(u64, Bytes)>,
    written_bytes: u64,
    /// Segments written, and one past the last that was sent by either end.
    written: Seq,
    sent_end: Seq,
    last: Option<Seq>,
    tail: TailPace,
    /// The least smoothed round-trip time.
    least_rtt: Dur,
    /// A paced flow sends this often at most: what is due by then leaves together.
    chunk_time: Dur,
    /// When a paced flow may send next.
    next_chunk: Time,
    /// Something may have to be sent then.
    waits_for_chunk: bool,
    /// The latest time that the sender has seen.
    clock: Time,
    asks_for_times: bool,
    /// When segments were sent, where the controller wants to know how long they were under way.
    sent_at: Option<BTreeMap<Seq, Time>>,
    /// The difference of the two clocks by the first arrival: what was received before what was sent counts negative.
    clock_difference: Option<i128>,
    counts: SendFlowCounts,
    /// The controller gives each segment a gap of its own.
    sets_gaps: bool,
    /// The segments that have left for the carrier since this was taken: when each was due, and its payload.
    departures: Vec<(Time, u32)>,
    /// The segment that has left the host last: when it was due, and when it did.
    last_left: Option<(Time, Time)>,
    /// The gap before it.
    last_gap: Option<Gap>,
    /// For whoever watches.
    watch: Option<Box<Watch>>,
}

impl SendFlow {
    /// A flow under `cc`, on a path that is open, whose handshake took `round_trip`.
    pub fn new(
        id: u32,
        config: TransportConfig,
        cc: Box<dyn CongestionControl>,
        tail: TailConfig,
        now: Time,
        round_trip: Option<Dur>,
        seed: u64,
    ) -> SendFlow {
        let mss_bytes = config.mss_bytes;
        let write_bytes = config.receive_window_segments() * mss_bytes;
        let mut sender = Sender::new(config, cc, Stream::new(seed, Domain::Controller, u64::from(id)));
        sender.open_established(now, round_trip);
        let needs = sender.needs();
        let sets_gaps = sender.controller().schedules_departures();
        SendFlow {
            id,
            sender,
            mss_bytes,
            write_bytes,
            pieces: VecDeque::new(),
            written_bytes: 0,
            written: 0,
            sent_end: 0,
            last: None,
            tail: TailPace::new(tail),
            least_rtt: round_trip.unwrap_or(Dur::MAX),
            chunk_time: Dur::ZERO,
            next_chunk: Time::ZERO,
            waits_for_chunk: false,
            clock: now,
            asks_for_times: needs.receive_time || needs.one_way_delay,
            sent_at: needs.one_way_delay.then(BTreeMap::new),
            clock_difference: None,
            counts: SendFlowCounts::default(),
            sets_gaps,
            departures: vec![],
            last_left: None,
            last_gap: None,
            watch: None,
        }
    }

    /// Where the flow is paced, it sends so often at most, all that is due by then together: for hosts that send batches. The pace
    /// keeps its rate.
    pub fn set_chunk_time(&mut self, chunk_time: Dur) {
        self.chunk_time = chunk_time;
    }

    /// From now on somebody watches, and asks for the qlog where there is one.
    pub(crate) fn watch(&mut self, log: Option<Log>) {
        self.watch = Some(Box::new(Watch::new(log)));
    }

    /// What the simulator traces of a sender, by the same names.
    pub fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        watch::trace(&self.sender, put);
    }

    /// Of a lower class of a flow that is watched: bytes on the wire that are under way, and segments that are known to be lost.
    pub fn watched_class(&self, class: usize) -> (u64, u64) {
        self.watch.as_ref().map_or((0, 0), |watch| watch.class(class))
    }

    /// Forgets of a flow that is watched what the receiver has in sequence.
    pub(crate) fn settle_watch(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.settle(self.sender.acknowledged());
        }
    }

    /// The qlog since it was taken last.
    pub(crate) fn take_log(&mut self, into: &mut String) {
        if let Some(watch) = &mut self.watch {
            watch.take_log(into);
        }
    }

    fn is_paced(&self) -> bool {
        !self.chunk_time.is_zero() && self.sender.controller().limits().pacing.is_some()
    }

    /// Sends `bytes`, in writes of a window at most. Nothing is taken once the flow is finished.
    pub fn write(&mut self, bytes: Bytes) {
        if self.is_finished() || bytes.is_empty() {
            return;
        }
        let mut left = bytes.len() as u64;
        self.pieces.push_back((self.written_bytes, bytes));
        self.written_bytes += left;
        while left > 0 {
            let write = left.min(self.write_bytes);
            self.sender.write(write);
            self.written += write.div_ceil(self.mss_bytes);
            left -= write;
        }
    }

    /// The flow ends with what is written. Where its last segment is still to be sent, that says so; otherwise one without
    /// payload follows.
    pub fn finish(&mut self) {
        if self.is_finished() {
            return;
        }
        if self.written > self.sent_end {
            self.last = Some(self.written - 1);
        } else {
            self.last = Some(self.written);
            self.sender.close();
        }
    }

    /// Ends the flow without what is not acknowledged.
    pub fn reset(&mut self) {
        self.sender.reset();
        self.pieces.clear();
    }

    /// Whether nothing more can be written.
    pub fn is_finished(&self) -> bool {
        self.last.is_some() || self.sender.ending().is_some()
    }

    /// Whether the flow is finished and the receiver is known to have all of it.
    pub fn is_done(&self) -> bool {
        self.last.is_some() && self.sender.is_done()
    }

    /// How the flow ended other than whole, if it did.
    pub fn failure(&self) -> Option<Ending> {
        self.sender.ending().filter(|ending| *ending != Ending::Complete)
    }

    /// Bytes that were written and are not acknowledged in sequence.
    pub fn buffered_bytes(&self) -> u64 {
        self.written_bytes - self.sender.acknowledged_bytes()
    }

    /// Bytes that the receiver has in sequence.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.sender.acknowledged_bytes()
    }

    /// Totals so far.
    pub fn counts(&self) -> (SendFlowCounts, SenderCounts) {
        (self.counts, self.sender.counts())
    }

    /// The transport's sender.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The pace of the tail.
    pub fn tail(&self) -> &TailPace {
        &self.tail
    }

    /// The segments that have left for the carrier since this was asked last, where the controller sets gaps between them: when each
    /// was due, and its payload.
    pub(crate) fn take_departures(&mut self) -> impl Iterator<Item = (Time, u32)> {
        self.departures.drain(..)
    }

    /// A segment that was due then has left the host now. Returns the gap before it, if there was one.
    pub(crate) fn note_left(&mut self, now: Time, due: Time) -> Option<Gap> {
        let before = self.last_left.replace((due, now));
        let gap = before.map(|(before_due, before)| Gap {
            set: due.saturating_since(before_due),
            was: now.saturating_since(before),
        });
        self.last_gap = gap.or(self.last_gap);
        gap
    }

    /// The last gap that was measured.
    pub(crate) fn last_gap(&self) -> Option<Gap> {
        self.last_gap
    }

    /// What was measured for the tail.
    pub(crate) fn set_tail_rate(&mut self, rate: Rate) {
        self.tail.set_rate(rate);
    }

    /// Memory of this end, bytes, with what is not acknowledged.
    pub fn memory_bytes(&self) -> usize {
        size_of::<SendFlow>() + self.sender.memory_bytes() + self.buffered_bytes() as usize
    }

    /// When [`advance`](Self::advance) wants to be called, where these classes can be used.
    pub fn next_timer(&self, classes: &Classes) -> Time {
        let tail = self.usable_tail(classes).then(|| self.tail.open_at());
        let next = self.sender.next_timer().min(tail.unwrap_or(Time::NEVER));
        match self.is_paced() {
            true if self.waits_for_chunk => self.next_chunk,
            true => next.max(self.next_chunk),
            false => next,
        }
    }

    fn usable_tail(&self, classes: &Classes) -> bool {
        self.sender.tail_class().and_then(|class| classes.place(class)).is_some_and(|class| classes.is_open(class))
    }

    /// Lets timers fire, and sends what may go. Timers that are due are replayed at the times that they were set to, so that a
    /// pace keeps its rate however late the host's own timers are. Returns whether there may be more to send at once.
    pub fn advance(&mut self, now: Time, classes: &Classes, emit: &mut dyn FnMut(u8, Vec<u8>)) -> bool {
        let now = now.max(self.clock);
        if self.is_paced() {
            self.waits_for_chunk = now < self.next_chunk;
            if self.waits_for_chunk {
                return false;
            }
            self.next_chunk = now + self.chunk_time;
        }
        let oldest = Time::from_ps(now.as_ps().saturating_sub(MOST_LATENESS.as_ps()));
        let mut budget = MOST_AT_ONCE;
        let round_trip = self.sender.srtt();
        self.least_rtt = round_trip.unwrap_or(self.least_rtt).min(self.least_rtt);
        let queueing = round_trip.map_or(0, |now| now.as_ps() - self.least_rtt.as_ps());
        self.tail.handle_time(now, round_trip, Dur::from_ps(queueing));
        while budget > 0 && self.sender.next_timer() <= now {
            let due = self.sender.next_timer().max(oldest).max(self.clock);
            self.clock = due;
            self.sender.handle_timer(due);
            // A timer that stays due would keep this loop for ever.
            budget -= 1;
            budget -= self.poll(due, classes, budget, emit).min(budget);
        }
        self.clock = now;
        budget == 0 || self.poll(now, classes, budget, emit) == budget
    }

    fn poll(&mut self, now: Time, classes: &Classes, most: usize, emit: &mut dyn FnMut(u8, Vec<u8>)) -> usize {
        let mut count = 0;
        while count < most {
            let tail_may = now >= self.tail.open_at() && self.usable_tail(classes);
            match self.sender.poll_transmit(now, tail_may) {
                Some(Transmit::Data(segment)) => {
                    let class = classes.place(segment.class).unwrap_or(0);
                    emit(class, self.data(now, segment, class));
                }
                Some(Transmit::Probe) => emit(0, Frame::Probe { flow: self.id }.encode()),
                Some(Transmit::Reset) => emit(0, Frame::Reset { flow: self.id, code: 0 }.encode()),
                Some(Transmit::Syn) => continue,
                None => break,
            }
            count += 1;
        }
        count
    }

    fn data(&mut self, now: Time, segment: Segment, class: u8) -> Vec<u8> {
        let Segment { seq, payload_bytes, retransmission, window_reduced, .. } = segment;
        self.sent_end = self.sent_end.max(seq + 1);
        self.counts.sent[usize::from(class)] += 1;
        if class > 0 {
            self.tail.note_sent(now, u64::from(payload_bytes) + WIRE_HEADER_BYTES);
        }
        if let Some(due) = self.sender.last_due().filter(|_| self.sets_gaps && class == 0) {
            self.departures.push((due, payload_bytes));
        }
        if let Some(watch) = &mut self.watch {
            let offset_bytes = self.sender.bytes_of(seq).map_or(0, |bytes| bytes.start);
            let extent = Extent { offset_bytes, payload_bytes, wire_bytes: payload_bytes + WIRE_HEADER_BYTES as u32 };
            watch.on_sent(now, class, seq, retransmission, extent);
        }
        if let Some(sent_at) = self.sent_at.as_mut().filter(|_| class == 0) {
            sent_at.insert(seq, now);
        }
        let data = Data {
            flow: self.id,
            segment: seq as u32,
            resent: retransmission,
            window_reduced,
            last: self.last == Some(seq),
            timed: self.asks_for_times,
            payload: Bytes::new(),
        };
        let Some(range) = self.sender.bytes_of(seq) else { return encode_data(&data, &[]) };
        let from = self.pieces.partition_point(|(start, piece)| start + piece.len() as u64 <= range.start);
        // A segment lies in one piece, unless small ones were filled up.
        match self.pieces.get(from) {
            Some((start, piece)) if range.end <= start + piece.len() as u64 => {
                encode_data(&data, &piece[(range.start - start) as usize..(range.end - start) as usize])
            }
            _ => {
                let pieces = self.pieces.range(from..).take_while(|(start, _)| *start < range.end);
                let payload: Vec<u8> = pieces
                    .flat_map(|(start, piece)| {
                        let first = range.start.saturating_sub(*start) as usize;
                        let end = (range.end - start).min(piece.len() as u64) as usize;
                        piece[first..end].iter().copied()
                    })
                    .collect();
                encode_data(&data, &payload)
            }
        }
    }

    /// Acknowledgments came in, in a frame of `class`. Returns the first error, behind which nothing is looked at.
    ///
    /// # Errors
    /// One says what cannot be true.
    pub fn handle_acks(&mut self, now: Time, class: u8, edge: u32, entries: &[Entry]) -> Result<(), AckError> {
        self.clock = self.clock.max(now);
        let result = entries.iter().try_for_each(|entry| self.handle_entry(class, edge, entry));
        self.counts.refused_acks += u64::from(result.is_err());
        if let Some(watch) = &mut self.watch {
            watch.on_metrics(self.clock, &self.sender);
        }
        let acknowledged = self.sender.acknowledged_bytes();
        while self.pieces.front().is_some_and(|(start, piece)| start + piece.len() as u64 <= acknowledged) {
            self.pieces.pop_front();
        }
        result
    }

    fn handle_entry(&mut self, class: u8, edge: u32, entry: &Entry) -> Result<(), AckError> {
        let near = self.sender.acknowledged();
        let mut blocks = [SackBlock::default(); MAX_SACK_BLOCKS];
        let count = usize::from(entry.block_count).min(MAX_SACK_BLOCKS);
        for (block, (start, end)) in blocks.iter_mut().zip(entry.blocks) {
            *block = SackBlock { start: widen(start, near), end: widen(end, near) };
        }
        let mut segment = AckSegment {
            cumulative: widen(entry.cumulative, near),
            trigger: widen(entry.trigger, near),
            trigger_retransmitted: entry.resent,
            class,
            ecn_echo: entry.ecn_echo,
        };
        let (received_at, one_way_delay) = self.times(entry, segment.trigger);
        let mut blocks = &blocks[..count];
        for _ in 0..=entry.run {
            let window = widen(edge, segment.cumulative).saturating_sub(segment.cumulative);
            let window_segments = Some(window.min(Seq::from(u32::MAX >> 1)) as u32);
            let extras = Extras { window_segments, received_at, one_way_delay, ..Extras::default() };
            self.sender.handle_ack(self.clock, &Acknowledgment { segment, blocks, extras: Some(&extras) })?;
            if let Some(watch) = &mut self.watch {
                let AckSegment { cumulative, trigger, .. } = segment;
                watch.on_acknowledged(self.clock, class, cumulative, trigger, WIRE_HEADER_BYTES as u32);
            }
            if class > 0 {
                self.tail.note_arrived(self.mss_bytes + WIRE_HEADER_BYTES);
            }
            segment.cumulative += 1;
            segment.trigger += 1;
            blocks = &[];
        }
        Ok(())
    }

    /// When the segment arrived, and how long it was under way, where the controller wants to know.
    fn times(&mut self, entry: &Entry, trigger: Seq) -> (Option<Time>, Option<Dur>) {
        let Some(ns) = entry.received_ns.filter(|&ns| ns <= MOST_RECEIVED_NS) else { return (None, None) };
        let received = Time::from_ns(ns);
        let Some(all) = &mut self.sent_at else { return (Some(received), None) };
        let sent = all.get(&trigger).copied();
        while all.first_key_value().is_some_and(|(&seq, _)| seq < self.sender.acknowledged()) {
            all.pop_first();
        }
        let Some(sent) = sent.filter(|_| !entry.resent) else { return (None, None) };
        let raw = i128::from(received.as_ps()) - i128::from(sent.as_ps());
        let first = *self.clock_difference.get_or_insert(raw);
        let delay = (raw - first + i128::from(CLOCK_OFFSET.as_ps())).clamp(0, i128::from(Dur::from_secs(60).as_ps()));
        (None, Some(Dur::from_ps(delay as u64)))
    }

    /// The receiver has ended the flow.
    pub fn handle_reset(&mut self) {
        self.sender.handle_reset();
        self.pieces.clear();
    }
}
