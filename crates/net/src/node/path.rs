//! Properties of the path to a peer: the marks that it keeps, its rate at low priority, and its packet size.
//!
//! - **Marks.** A network may clear or change the code points of packets; priority classes then have no effect. A peer
//!   answers the handshake of each class with the code point with which it arrived. If the answer has the expected one,
//!   the path keeps it in both directions. Otherwise an echo frame asks which code point arrived.
//! - **The tail's rate.** Before the first flow, a train of full packets is sent in the lowest class. The time between
//!   its first and last arrival gives the rate of the narrowest link, or what other traffic leaves of it.
//! - **Packet size.** Echoes of class 0 have the full size and some smaller ones (RFC 8899). The largest that is
//!   answered is used.

use crate::flow::MAX_CLASSES;
use crate::frame::{Frame, PROBE_BYTES, TrainReport};
use sparelane_core::{Dur, Rate, Time};
use std::collections::{BTreeMap, VecDeque};

/// Number of frames of the train that measures the tail's rate.
pub const TRAIN_FRAMES: u32 = 16;

/// The minimum number of frames that have to arrive for a measurement.
const MIN_TRAIN_FRAMES: u32 = 8;

/// The minimum number of gaps in a train to identify an exceptional one. Hosts receive several packets at a time, so a
/// train may have few gaps.
const MIN_GAPS: u32 = 6;

/// The initial rate of the tail as a share of the measured rate. Lost tail segments have to be sent again by the head.
const SHARE: f64 = 0.97;

/// The maximum number of attempts for an echo without an answer.
const MAX_TRIES: u32 = 6;

/// The minimum time until an echo is repeated; otherwise two round-trip times.
const MIN_RETRY_TIME: Dur = Dur::from_ms(100);

/// The maximum number of unsent answers, of pending echoes, and of unread answers.
const MAX_PENDING: usize = 1024;

/// The maximum number of a peer's trains that are remembered.
const MAX_TRAINS: usize = 16;

/// The interval between reports on an incoming train, nanoseconds.
const REPORT_TIME_NS: u64 = 1_000_000;

/// UDP payloads that are tried in case a full packet is too large: one that fits into common tunnels, that of the
/// smallest IPv6 MTU, and the minimum of QUIC.
const SMALLER_PAYLOADS: [usize; 3] = [1400, 1232, 1200];

/// The state of a class's code point on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Not known yet.
    #[default]
    Unknown,
    /// The code point arrives unchanged.
    Kept,
    /// This code point arrives instead.
    Changed(u8),
}

/// How the tail is sent if the path does not keep the marks of its classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unmarked {
    /// No tail is sent, since it would take capacity from other traffic.
    #[default]
    NoTail,
    /// The tail is sent, and yields if a queue builds up.
    Scavenger,
    /// The tail is sent as if the marks were kept.
    Ignore,
}

/// The answer to an echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The number of the echo.
    pub number: u32,
    /// The class in which the echo was sent; answers come in class 0.
    pub class: u8,
    /// Frame bytes of the echo.
    pub bytes: usize,
    /// The time from the echo to the answer.
    pub round_trip: Dur,
    /// The code point with which the echo arrived.
    pub dscp: u8,
}

/// A train from the peer.
#[derive(Clone, Copy, Debug)]
struct IncomingTrain {
    number: u32,
    seen: TrainReport,
    first_ns: u64,
    latest_ns: u64,
    /// The number of frames that arrived later than their predecessor, and the longest such gap.
    gaps: u32,
    longest_gap_ns: u64,
    reported_ns: u64,
    is_due: bool,
}

impl IncomingTrain {
    fn new(number: u32, class: u8, now_ns: u64) -> IncomingTrain {
        IncomingTrain {
            number,
            seen: TrainReport { class, ..TrainReport::default() },
            first_ns: now_ns,
            latest_ns: now_ns,
            gaps: 0,
            longest_gap_ns: 0,
            reported_ns: now_ns,
            is_due: false,
        }
    }

    /// Returns the report to the peer. A gap longer than all others together comes from a late host or from other
    /// traffic, not from the link that the train measures. It counts as an average gap.
    fn report(&self) -> TrainReport {
        let others_ns = self.seen.span_ns.saturating_sub(self.longest_gap_ns);
        if self.gaps < MIN_GAPS || self.longest_gap_ns <= others_ns {
            return self.seen;
        }
        let others = u64::from(self.seen.frames.saturating_sub(2).max(1));
        TrainReport { span_ns: others_ns + others_ns / others, ..self.seen }
    }
}

/// The known properties of a path.
#[derive(Debug)]
pub struct PathState {
    dscp: [u8; MAX_CLASSES],
    marks: [Mark; MAX_CLASSES],
    /// The handshake of the class was answered with the expected code point.
    returned: [bool; MAX_CLASSES],
    /// The class has opened and was not probed yet.
    is_new: [bool; MAX_CLASSES],
    open: [bool; MAX_CLASSES],
    full_bytes: usize,
    /// The largest frame of class 0 that was answered.
    arrived_bytes: Option<usize>,
    next_number: u32,
    /// Pending echoes by number: time, class and frame bytes.
    pending: BTreeMap<u32, (Time, u8, usize)>,
    answers: VecDeque<Echo>,
    tries: u32,
    probe_at: Time,
    to_send: Vec<(u8, Vec<u8>)>,
    incoming: VecDeque<IncomingTrain>,
    reports: BTreeMap<u32, TrainReport>,
    /// The train that measures the tail's rate.
    tail_train: Option<u32>,
    tail_rate: Option<Rate>,
}

impl PathState {
    /// Creates the state of a path whose classes have the code points `dscp` and whose full frames have `full_bytes`.
    pub(super) fn new(dscp: &[u8], full_bytes: usize) -> PathState {
        let mut own = [0; MAX_CLASSES];
        for (class, own) in own.iter_mut().enumerate() {
            *own = dscp.get(class).or(dscp.last()).copied().unwrap_or(0);
        }
        PathState {
            dscp: own,
            marks: Default::default(),
            returned: [false; MAX_CLASSES],
            is_new: [false; MAX_CLASSES],
            open: [false; MAX_CLASSES],
            full_bytes,
            arrived_bytes: None,
            next_number: 0,
            pending: BTreeMap::new(),
            answers: VecDeque::new(),
            tries: 0,
            probe_at: Time::NEVER,
            to_send: Vec::new(),
            incoming: VecDeque::new(),
            reports: BTreeMap::new(),
            tail_train: None,
            tail_rate: None,
        }
    }

    /// Returns the state of a class's code point.
    pub fn mark(&self, class: u8) -> Mark {
        self.marks.get(usize::from(class)).copied().unwrap_or_default()
    }

    /// Returns true if the code point of an open class is not known yet.
    pub fn has_unknown_marks(&self) -> bool {
        (0..MAX_CLASSES).any(|class| self.open[class] && self.marks[class] == Mark::Unknown)
    }

    /// The initial rate of the tail, if it was measured.
    pub fn tail_rate(&self) -> Option<Rate> {
        self.tail_rate
    }

    /// The largest frame that is known to arrive, bytes; a full frame if none was answered yet.
    pub fn frame_bytes(&self) -> usize {
        self.arrived_bytes.unwrap_or(self.full_bytes)
    }

    /// Returns the next answer to an echo, in order of arrival.
    pub fn poll_answer(&mut self) -> Option<Echo> {
        self.answers.pop_front()
    }

    /// Returns the peer's latest report on a train.
    pub fn train(&self, number: u32) -> Option<TrainReport> {
        self.reports.get(&number).copied()
    }

    /// Returns true if the tail may use this class, as far as its mark is known.
    pub(super) fn allows(&self, class: u8, unmarked: Unmarked) -> bool {
        let at = usize::from(class);
        class == 0
            || unmarked != Unmarked::NoTail
            || match self.marks[at] {
                Mark::Kept => true,
                Mark::Unknown => self.returned[at],
                Mark::Changed(_) => false,
            }
    }

    /// Returns true if a tail that is sent regardless has to yield: the path changes the mark of an open class.
    pub(super) fn is_unmarked(&self) -> bool {
        (1..MAX_CLASSES).any(|class| self.open[class] && matches!(self.marks[class], Mark::Changed(_)))
    }

    /// Records that a class has opened or closed. `returned` is the code point of the answer to its handshake.
    pub(super) fn set_open(&mut self, now: Time, class: u8, open: bool, returned: Option<u8>) {
        let at = usize::from(class);
        self.open[at] = open;
        self.returned[at] = returned == Some(self.dscp[at]);
        if open {
            (self.tries, self.probe_at) = (0, now);
        }
        self.is_new[at] = open;
    }

    /// Sends an echo of `bytes` in a class; returns its number.
    pub(super) fn echo(&mut self, now: Time, class: u8, bytes: usize) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        if self.pending.len() >= MAX_PENDING {
            self.pending.pop_first();
        }
        self.pending.insert(number, (now, class, bytes));
        self.to_send.push((class, Frame::Echo { number, bytes }.encode()));
        number
    }

    /// Sends `frames` frames of a new train, or of the train `number`; returns the train's number.
    pub(super) fn send_train(&mut self, number: Option<u32>, class: u8, frames: u32, bytes: usize, ends: bool) -> u32 {
        let number = number.unwrap_or_else(|| {
            self.next_number = self.next_number.wrapping_add(1);
            self.next_number.wrapping_sub(1)
        });
        for at in 0..frames {
            let last = ends && at + 1 == frames;
            self.to_send.push((class, Frame::Train { number, last, bytes }.encode()));
        }
        number
    }

    /// Sends the train that measures the initial rate of the tail.
    pub(super) fn measure_tail(&mut self, class: u8) {
        let number = self.send_train(None, class, TRAIN_FRAMES, self.full_bytes, true);
        self.tail_train = Some(number);
    }

    /// Discards the measurement if a flow starts before the report: the flow's packets distort it.
    pub(super) fn forget_train(&mut self) {
        if self.tail_rate.is_none() {
            self.tail_train = None;
        }
    }

    /// Handles a frame of a train.
    pub(super) fn handle_train(&mut self, number: u32, class: u8, last: bool, bytes: usize, received_ns: u64) {
        let at = self.incoming.iter().position(|incoming| incoming.number == number && incoming.seen.class == class);
        let at = at.unwrap_or_else(|| {
            if self.incoming.len() >= MAX_TRAINS {
                self.incoming.pop_front();
            }
            self.incoming.push_back(IncomingTrain::new(number, class, received_ns));
            self.incoming.len() - 1
        });
        let incoming = &mut self.incoming[at];
        incoming.seen.frames = incoming.seen.frames.saturating_add(1);
        incoming.seen.bytes += bytes as u64;
        incoming.seen.span_ns = incoming.seen.span_ns.max(received_ns.saturating_sub(incoming.first_ns));
        let gap_ns = received_ns.saturating_sub(incoming.latest_ns);
        incoming.gaps = incoming.gaps.saturating_add(u32::from(gap_ns > 0));
        incoming.longest_gap_ns = incoming.longest_gap_ns.max(gap_ns);
        incoming.latest_ns = incoming.latest_ns.max(received_ns);
        incoming.is_due |= last || received_ns.saturating_sub(incoming.reported_ns) >= REPORT_TIME_NS;
    }

    /// Handles the peer's report on a train. Returns true if it gives the tail's rate.
    pub(super) fn handle_train_report(&mut self, number: u32, seen: TrainReport, overhead_bytes: u64) -> bool {
        // Reports may arrive out of order; one with fewer frames is old.
        let known = self.reports.get(&number).map_or(0, |known| known.frames);
        if number.wrapping_sub(self.next_number) < u32::MAX / 2 || seen.frames <= known {
            return false;
        }
        if self.reports.len() >= MAX_TRAINS && !self.reports.contains_key(&number) {
            self.reports.pop_first();
        }
        self.reports.insert(number, seen);
        let is_tail = self.tail_train == Some(number);
        if !is_tail || seen.frames < MIN_TRAIN_FRAMES {
            return false;
        }
        self.tail_rate = rate_of(seen, overhead_bytes).map(|rate| rate.scaled(SHARE));
        self.tail_rate.is_some()
    }

    /// Handles the peer's echo: the answer reports its code point.
    pub(super) fn handle_echo(&mut self, number: u32, bytes: usize, dscp: u8) {
        if self.to_send.len() < MAX_PENDING {
            let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
            self.to_send.push((0, Frame::Echoed { number, dscp, bytes }.encode()));
        }
    }

    /// Handles the answer to an echo. Returns true if this node had sent the echo.
    pub(super) fn handle_echoed(&mut self, now: Time, number: u32, dscp: u8) -> bool {
        let Some((at, class, bytes)) = self.pending.remove(&number) else { return false };
        if self.answers.len() >= MAX_PENDING {
            self.answers.pop_front();
        }
        self.answers.push_back(Echo { number, class, bytes, round_trip: now - at, dscp });
        let mark = if dscp == self.dscp[usize::from(class)] { Mark::Kept } else { Mark::Changed(dscp) };
        self.marks[usize::from(class)] = mark;
        // Only echoes of class 0 probe packet sizes; small ones prove nothing.
        if class == 0 && bytes > 2 * PROBE_BYTES {
            self.arrived_bytes = self.arrived_bytes.max(Some(bytes));
        }
        true
    }

    /// Returns the time at which [`poll`](Self::poll) should be called next.
    pub(super) fn next_timer(&self) -> Time {
        self.probe_at
    }

    /// Returns all frames to send now, each with its class. `is_quiet` is true if no flow sends.
    pub(super) fn poll(
        &mut self,
        now: Time,
        round_trip: Option<Dur>,
        quic_bytes: usize,
        is_quiet: bool,
    ) -> Vec<(u8, Vec<u8>)> {
        if now >= self.probe_at {
            self.probe(now, quic_bytes, is_quiet);
            let retry_after = round_trip.map_or(MIN_RETRY_TIME, |round_trip| (round_trip * 2).max(MIN_RETRY_TIME));
            self.tries += 1;
            let is_over = self.tries >= MAX_TRIES || !self.has_unknown_marks();
            // Even if everything is known by then, one more attempt follows the first.
            self.probe_at = if is_over { Time::NEVER } else { now + retry_after * (1 << self.tries) };
        }
        for incoming in self.incoming.iter_mut().filter(|incoming| incoming.is_due) {
            incoming.is_due = false;
            incoming.reported_ns = incoming.first_ns + incoming.seen.span_ns;
            self.to_send.push((0, Frame::TrainReport { number: incoming.number, seen: incoming.report() }.encode()));
        }
        let mut frames = std::mem::take(&mut self.to_send);
        // Higher classes first: frames that overtake a train on the way would lengthen it and make the path seem
        // slower.
        frames.sort_by_key(|(class, _)| *class);
        frames
    }

    /// Sends an echo in each class whose mark is unknown. Packet sizes are probed only if no flow sends: full packets
    /// would delay the flow's first segments.
    fn probe(&mut self, now: Time, quic_bytes: usize, is_quiet: bool) {
        // A class that opens later does not cause new echoes in the others. The train in the lowest class would wait
        // for them and measure a slower path.
        let is_new = std::mem::take(&mut self.is_new);
        let has_new = is_new.contains(&true);
        for class in 0..MAX_CLASSES as u8 {
            let at = usize::from(class);
            if !self.open[at] || self.marks[at] != Mark::Unknown || has_new && !is_new[at] {
                continue;
            }
            if class > 0 || !is_quiet {
                self.echo(now, class, 2 * PROBE_BYTES);
                continue;
            }
            self.echo(now, 0, self.full_bytes);
            for bytes in SMALLER_PAYLOADS.map(|payload| payload - quic_bytes) {
                if bytes < self.full_bytes {
                    self.echo(now, 0, bytes);
                }
            }
        }
    }
}

/// Returns the rate at which a train arrived, given `overhead_bytes` on the wire for each frame; `None` if it had fewer
/// than two frames.
pub fn rate_of(seen: TrainReport, overhead_bytes: u64) -> Option<Rate> {
    let frames = u64::from(seen.frames);
    if frames < 2 {
        return None;
    }
    // The arrival of the first frame starts the clock, so its bytes do not count.
    let bytes = (seen.bytes + frames * overhead_bytes) / frames * (frames - 1);
    Some(if seen.span_ns == 0 { Rate::from_gbps(1000) } else { Rate::of(bytes, Dur::from_ns(seen.span_ns)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the classes of the full frames that are sent now.
    fn full(path: &mut PathState, now: Time) -> Vec<u8> {
        let frames = path.poll(now, Some(Dur::from_ms(40)), 40, true);
        frames.into_iter().filter(|(_, frame)| frame.len() > 1000).map(|(class, _)| class).collect()
    }

    #[test]
    fn one_pause_in_a_train_is_not_mistaken_for_the_rate_of_the_link() {
        // 16 frames of 1460 bytes on the wire, one per 120 us; `late_ns` is the lateness of each arrival.
        let report = |late_ns: &dyn Fn(u64) -> u64| {
            let mut path = PathState::new(&[0, 3, 11, 19], 1400);
            for frame in 0..16 {
                path.handle_train(1, 3, frame == 15, 1400, 1_000_000 + frame * 120_000 + late_ns(frame));
            }
            rate_of(path.incoming[0].report(), 60).expect("a rate").as_bps() as f64 / (1460.0 * 8.0 / 120e-6)
        };
        assert!((report(&|_| 0) - 1.0).abs() < 0.001);
        // One host pause of 49 ms in the middle.
        assert!((report(&|frame| if frame < 7 { 0 } else { 49_000_000 }) - 1.0).abs() < 0.01);
        // Batches of four frames, each with the receive time of its last frame: three gaps.
        assert!((report(&|frame| (3 - frame % 4) * 120_000) - 1.25).abs() < 0.01);
        // A hole as long as a few packets belongs to the path.
        assert!(report(&|frame| if frame < 7 { 0 } else { 1_000_000 }) < 0.7);
    }

    #[test]
    fn no_echo_of_this_host_overtakes_the_train_that_measures_the_tail() {
        let now = Time::ZERO + Dur::from_secs(1);
        let mut path = PathState::new(&[0, 3, 11, 19], 1400);
        (0..4).for_each(|class| path.set_open(now, class, true, Some(0)));
        path.measure_tail(3);
        let asked = full(&mut path, now);
        let train = TRAIN_FRAMES as usize;
        assert!(asked.len() > train && asked.is_sorted(), "{asked:?}");
        assert_eq!(asked[asked.len() - train..], vec![3; train]);
        // A class that opens later probes only itself.
        let mut path = PathState::new(&[0, 3, 11, 19], 1400);
        path.set_open(now, 0, true, Some(0));
        assert!(!full(&mut path, now).is_empty());
        path.set_open(now, 3, true, Some(0));
        path.measure_tail(3);
        assert_eq!(full(&mut path, now), vec![3; train]);
        assert!(full(&mut path, now + Dur::from_ms(1)).is_empty());
    }
}
