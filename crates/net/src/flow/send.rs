//! The sending side of a flow: the transport's sender, with the payload bytes of its segments.

use super::{Classes, Log, MAX_CLASSES, Monitor, TailConfig, TailPace, WIRE_HEADER_BYTES, monitor};
use crate::frame::{Data, Entry, Frame, encode_data};
use bytes::Bytes;
use sparelane_cc::CongestionControl;
use sparelane_core::{Domain, Dur, Rate, Seq, Stream, Time, widen};
use sparelane_transport::qlog::Extent;
use sparelane_transport::{
    AckError, AckSegment, Acknowledgment, Ending, Extras, MAX_SACK_BLOCKS, SackBlock, Segment, Sender, SenderCounts,
    Transmit, TransportConfig,
};
use std::collections::{BTreeMap, VecDeque};

/// The maximum lateness of the host's timers that a sender makes up for.
pub(crate) const MAX_LATENESS: Dur = Dur::from_ms(2);

/// The maximum number of segments that one call of [`SendFlow::advance`] sends.
const MAX_AT_ONCE: usize = 256;

/// An offset added to one-way delays, so that none is negative although the two hosts' clocks differ.
const CLOCK_OFFSET: Dur = Dur::from_secs(1);

/// The largest receive time that is accepted, half a year; later ones are ignored.
const MAX_RECEIVED_NS: u64 = 180 * 24 * 3600 * 1_000_000_000;

/// The time between two segments of a flow as they left the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The gap that the controller set.
    pub set: Dur,
    /// The gap that was measured.
    pub measured: Dur,
}

impl Gap {
    /// Returns the excess of the measured gap over the one set, picoseconds; negative if it was shorter.
    pub fn error_ps(self) -> i64 {
        self.measured.as_ps() as i64 - self.set.as_ps() as i64
    }
}

/// Totals of one sending flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendFlowCounts {
    /// Segments sent, by class.
    pub sent: [u64; MAX_CLASSES],
    /// Acknowledgments that were refused because they cannot be true.
    pub refused_acks: u64,
}

/// One flow that this node sends.
#[derive(Debug)]
pub struct SendFlow {
    id: u32,
    sender: Sender,
    mss_bytes: u64,
    /// The maximum size of one write to the sender, so that its end is always inside the receive window.
    write_bytes: u64,
    /// Unacknowledged payload: each piece with its offset in the stream.
    pieces: VecDeque<(u64, Bytes)>,
    written_bytes: u64,
    /// Segments written, and one past the last segment that was sent.
    written: Seq,
    sent_end: Seq,
    last: Option<Seq>,
    tail: TailPace,
    /// The minimum of the smoothed round-trip time.
    min_rtt: Dur,
    /// The interval between two bursts of a paced flow. Everything that is due by then is sent together.
    chunk_time: Dur,
    /// The time from which a paced flow may send again.
    next_chunk: Time,
    /// True if the sender may have something to send at `next_chunk`.
    waits_for_chunk: bool,
    /// The latest time passed to the sender.
    clock: Time,
    asks_for_times: bool,
    /// The send time of each unacknowledged segment, if the controller wants one-way delays.
    sent_at: Option<BTreeMap<Seq, Time>>,
    /// The clock difference of the two hosts plus the first segment's delay, picoseconds; later delays are relative to
    /// it.
    clock_difference: Option<i128>,
    counts: SendFlowCounts,
    /// True if the controller schedules the departure of each segment.
    sets_gaps: bool,
    /// Segments passed to the carrier since the last [`take_departures`](Self::take_departures): due time and payload
    /// bytes.
    departures: Vec<(Time, u32)>,
    /// The last segment that left the host: the time at which it was due, and the time at which it left.
    last_left: Option<(Time, Time)>,
    /// The gap before that segment.
    last_gap: Option<Gap>,
    /// The monitor, if telemetry is enabled.
    monitor: Option<Box<Monitor>>,
}

impl SendFlow {
    /// Creates a flow under the controller `cc` on an established path, whose handshake took `round_trip`.
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
            min_rtt: round_trip.unwrap_or(Dur::MAX),
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
            monitor: None,
        }
    }

    /// Makes a paced flow send at most once per `chunk_time`, with everything that is due by then together. Hosts that
    /// send batches use this. The average rate stays the same.
    pub fn set_chunk_time(&mut self, chunk_time: Dur) {
        self.chunk_time = chunk_time;
    }

    /// Attaches a monitor, which writes a qlog if `log` is given.
    pub(crate) fn attach_monitor(&mut self, log: Option<Log>) {
        self.monitor = Some(Box::new(Monitor::new(log)));
    }

    /// Reports the sender's variables, with the simulator's names for them.
    pub fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        monitor::trace(&self.sender, put);
    }

    /// Returns the wire bytes in flight and the number of lost segments of a lower class. Both are zero without a
    /// monitor.
    pub fn monitored_class(&self, class: usize) -> (u64, u64) {
        self.monitor.as_ref().map_or((0, 0), |monitor| monitor.class(class))
    }

    /// Makes the monitor forget segments that are acknowledged in sequence.
    pub(crate) fn settle_monitor(&mut self) {
        if let Some(monitor) = &mut self.monitor {
            monitor.forget_acknowledged(self.sender.acknowledged());
        }
    }

    /// Appends the qlog records since the last call to `into`.
    pub(crate) fn take_log(&mut self, into: &mut String) {
        if let Some(monitor) = &mut self.monitor {
            monitor.take_log(into);
        }
    }

    fn is_paced(&self) -> bool {
        !self.chunk_time.is_zero() && self.sender.controller().limits().pacing.is_some()
    }

    /// Appends `bytes` to the stream. They are ignored if the flow is finished.
    pub fn write(&mut self, bytes: Bytes) {
        if self.is_finished() || bytes.is_empty() {
            return;
        }
        let mut left = bytes.len() as u64;
        self.pieces.push_back((self.written_bytes, bytes));
        self.written_bytes += left;
        // A write beyond the receive window could not be sent as a whole, so it is split.
        while left > 0 {
            let write = left.min(self.write_bytes);
            self.sender.write(write);
            self.written += write.div_ceil(self.mss_bytes);
            left -= write;
        }
    }

    /// Ends the flow after the bytes written so far. The last segment carries a flag if it is still unsent; otherwise
    /// an empty segment with the flag follows.
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

    /// Ends the flow at once and discards unacknowledged bytes.
    pub fn reset(&mut self) {
        self.sender.reset();
        self.pieces.clear();
    }

    /// Returns true if nothing more can be written.
    pub fn is_finished(&self) -> bool {
        self.last.is_some() || self.sender.ending().is_some()
    }

    /// Returns true if the flow is finished and the receiver has acknowledged all of it.
    pub fn is_done(&self) -> bool {
        self.last.is_some() && self.sender.is_done()
    }

    /// Returns how the flow ended, if it ended early.
    pub fn failure(&self) -> Option<Ending> {
        self.sender.ending().filter(|ending| *ending != Ending::Complete)
    }

    /// Bytes that were written and are not yet acknowledged in sequence.
    pub fn buffered_bytes(&self) -> u64 {
        self.written_bytes - self.sender.acknowledged_bytes()
    }

    /// Bytes that the receiver has acknowledged in sequence.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.sender.acknowledged_bytes()
    }

    /// Returns the totals of the flow and of the transport's sender.
    pub fn counts(&self) -> (SendFlowCounts, SenderCounts) {
        (self.counts, self.sender.counts())
    }

    /// The transport's sender.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The pace of the flow's tail.
    pub fn tail(&self) -> &TailPace {
        &self.tail
    }

    /// Returns the segments passed to the carrier since the last call: due time and payload bytes. Empty unless the
    /// controller schedules departures.
    pub(crate) fn take_departures(&mut self) -> impl Iterator<Item = (Time, u32)> {
        self.departures.drain(..)
    }

    /// Records that the segment due at `due` left the host at `now`. Returns the gap before it, unless it was the
    /// first.
    pub(crate) fn note_left(&mut self, now: Time, due: Time) -> Option<Gap> {
        let before = self.last_left.replace((due, now));
        let gap = before.map(|(before_due, before)| Gap {
            set: due.saturating_since(before_due),
            measured: now.saturating_since(before),
        });
        self.last_gap = gap.or(self.last_gap);
        gap
    }

    /// The last gap that was measured.
    pub(crate) fn last_gap(&self) -> Option<Gap> {
        self.last_gap
    }

    /// Sets the tail's rate to a measured one.
    pub(crate) fn set_tail_rate(&mut self, rate: Rate) {
        self.tail.set_rate(rate);
    }

    /// Memory of this end in bytes, including unacknowledged payload.
    pub fn memory_bytes(&self) -> usize {
        size_of::<SendFlow>() + self.sender.memory_bytes() + self.buffered_bytes() as usize
    }

    /// Returns the time at which [`advance`](Self::advance) should be called next.
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

    /// Fires timers and sends the segments that are due. Overdue timers are replayed at the times for which they were
    /// set, so that a pace keeps its rate even if the host's own timers are late. Returns true if there may be more to
    /// send at once.
    pub fn advance(&mut self, now: Time, classes: &Classes, emit: &mut dyn FnMut(u8, Vec<u8>)) -> bool {
        let now = now.max(self.clock);
        if self.is_paced() {
            self.waits_for_chunk = now < self.next_chunk;
            if self.waits_for_chunk {
                return false;
            }
            self.next_chunk = now + self.chunk_time;
        }
        // Timers that are later than this are not made up for: the burst would be too large.
        let oldest = Time::from_ps(now.as_ps().saturating_sub(MAX_LATENESS.as_ps()));
        let mut budget = MAX_AT_ONCE;
        let round_trip = self.sender.srtt();
        self.min_rtt = round_trip.unwrap_or(self.min_rtt).min(self.min_rtt);
        let queueing = round_trip.map_or(0, |now| now.as_ps() - self.min_rtt.as_ps());
        self.tail.handle_time(now, round_trip, Dur::from_ps(queueing));
        while budget > 0 && self.sender.next_timer() <= now {
            // Replay the timer at its own time, and send what it allowed at that time.
            let due = self.sender.next_timer().max(oldest).max(self.clock);
            self.clock = due;
            self.sender.handle_timer(due);
            // A timer that stays due would make this an infinite loop.
            budget -= 1;
            budget -= self.poll(due, classes, budget, emit).min(budget);
        }
        self.clock = now;
        budget == 0 || self.poll(now, classes, budget, emit) == budget
    }

    fn poll(&mut self, now: Time, classes: &Classes, most: usize, emit: &mut dyn FnMut(u8, Vec<u8>)) -> usize {
        let mut count = 0;
        while count < most {
            // The tail has a pace of its own and needs a lower class.
            let tail_may = now >= self.tail.open_at() && self.usable_tail(classes);
            match self.sender.poll_transmit(now, tail_may) {
                Some(Transmit::Data(segment)) => {
                    let class = classes.place(segment.class).unwrap_or(0);
                    emit(class, self.data(now, segment, class));
                }
                Some(Transmit::Probe) => emit(0, Frame::Probe { flow: self.id }.encode()),
                Some(Transmit::Reset) => emit(0, Frame::Reset { flow: self.id, code: 0 }.encode()),
                // The carrier's handshake has replaced TCP's.
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
        // The node compares the due times with the times of departure.
        if let Some(due) = self.sender.last_due().filter(|_| self.sets_gaps && class == 0) {
            self.departures.push((due, payload_bytes));
        }
        if let Some(monitor) = &mut self.monitor {
            // qlog identifies data by its place in the stream.
            let offset_bytes = self.sender.bytes_of(seq).map_or(0, |bytes| bytes.start);
            let extent = Extent { offset_bytes, payload_bytes, wire_bytes: payload_bytes + WIRE_HEADER_BYTES as u32 };
            monitor.on_sent(now, class, seq, retransmission, extent);
        }
        // Delays of the tail would show the queues of lower classes.
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
        // The first piece that reaches beyond the segment's start.
        let from = self.pieces.partition_point(|(start, piece)| start + piece.len() as u64 <= range.start);
        // Most segments lie within one piece; those of small writes may span several.
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

    /// Handles a frame of acknowledgments that arrived in `class`. Entries after the first refused one are ignored.
    ///
    /// # Errors
    /// An entry cannot be true.
    pub fn handle_acks(&mut self, now: Time, class: u8, edge: u32, entries: &[Entry]) -> Result<(), AckError> {
        self.clock = self.clock.max(now);
        let result = entries.iter().try_for_each(|entry| self.handle_entry(class, edge, entry));
        self.counts.refused_acks += u64::from(result.is_err());
        if let Some(monitor) = &mut self.monitor {
            monitor.on_metrics(self.clock, &self.sender);
        }
        let acknowledged = self.sender.acknowledged_bytes();
        while self.pieces.front().is_some_and(|(start, piece)| start + piece.len() as u64 <= acknowledged) {
            self.pieces.pop_front();
        }
        result
    }

    fn handle_entry(&mut self, class: u8, edge: u32, entry: &Entry) -> Result<(), AckError> {
        // Numbers on the wire have 32 bits; extend them to the 64-bit numbers nearest to this one.
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
        // An entry stands for a run of acknowledgments in sequence, each one segment further.
        for _ in 0..=entry.run {
            let window = widen(edge, segment.cumulative).saturating_sub(segment.cumulative);
            let window_segments = Some(window.min(Seq::from(u32::MAX >> 1)) as u32);
            let extras = Extras { window_segments, received_at, one_way_delay, ..Extras::default() };
            self.sender.handle_ack(self.clock, &Acknowledgment { segment, blocks, extras: Some(&extras) })?;
            if let Some(monitor) = &mut self.monitor {
                let AckSegment { cumulative, trigger, .. } = segment;
                monitor.on_acknowledged(self.clock, class, cumulative, trigger, WIRE_HEADER_BYTES as u32);
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

    /// Returns the arrival time of the acknowledged segment and its one-way delay, as far as the controller wants them.
    fn times(&mut self, entry: &Entry, trigger: Seq) -> (Option<Time>, Option<Dur>) {
        let Some(ns) = entry.received_ns.filter(|&ns| ns <= MAX_RECEIVED_NS) else { return (None, None) };
        let received = Time::from_ns(ns);
        let Some(all) = &mut self.sent_at else { return (Some(received), None) };
        let sent = all.get(&trigger).copied();
        while all.first_key_value().is_some_and(|(&seq, _)| seq < self.sender.acknowledged()) {
            all.pop_first();
        }
        // The send time of a resent segment is ambiguous (Karn's algorithm).
        let Some(sent) = sent.filter(|_| !entry.resent) else { return (None, None) };
        let raw = i128::from(received.as_ps()) - i128::from(sent.as_ps());
        let first = *self.clock_difference.get_or_insert(raw);
        let delay = (raw - first + i128::from(CLOCK_OFFSET.as_ps())).clamp(0, i128::from(Dur::from_secs(60).as_ps()));
        (None, Some(Dur::from_ps(delay as u64)))
    }

    /// Ends the flow because the receiver has reset it.
    pub fn handle_reset(&mut self) {
        self.sender.handle_reset();
        self.pieces.clear();
    }
}
