//! What a node learns of the path to a peer: which classes keep their marks, what it delivers at low priority, and how large its
//! packets may be.
//!
//! - **Marks.** A network may clear or change the code points of packets, and then lower classes are none. A peer answers the
//!   handshake of each class with the code point that it came with, so that what comes back as it went says at once that the path
//!   keeps it, both ways. What does not is asked in a frame (echo), whose answer says what arrived.
//! - **The tail's rate.** Where nothing is sent yet, a train of full packets goes in the lowest class; how much longer it takes to
//!   arrive than to be sent is the rate of the narrowest link, or what others leave free of it.
//! - **Packet size.** Echoes of class 0 have the largest size and some smaller ones (RFC 8899): the largest that comes back counts.

use crate::flow::MAX_CLASSES;
use crate::frame::{Frame, PROBE_BYTES, TrainSeen};
use sparelane_core::{Dur, Rate, Time};
use std::collections::{BTreeMap, VecDeque};

/// Frames of the train that measures the tail's rate.
pub const TRAIN_FRAMES: u32 = 16;

/// So much of a train has to arrive to say anything.
const LEAST_TRAIN_FRAMES: u32 = 8;

/// Fewer gaps in a train do not tell which of them is out of the ordinary: hosts receive several packets at a time.
const LEAST_GAPS: u32 = 6;

/// The share of the measured rate at which the tail begins: what it loses, the head has to send again.
const SHARE: f64 = 0.97;

/// A question that nobody answers is asked so often.
const MOST_TRIES: u32 = 6;

/// And at first again after so long, or two round trips.
const LEAST_PATIENCE: Dur = Dur::from_ms(100);

/// The most answers that wait to be sent, questions that wait for an answer, and answers that nobody has fetched.
const MOST_WAITING: usize = 1024;

/// The most trains of a peer that are remembered.
const MOST_TRAINS: usize = 16;

/// A train is reported on after so long at most, while it comes.
const REPORT_TIME_NS: u64 = 1_000_000;

/// Payloads of UDP that are tried where a full packet may be too large: what tunnels leave, and what every IPv6 path carries.
const SMALLER_PAYLOADS: [usize; 3] = [1400, 1232, 1200];

/// What has become of the code point of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// It arrives as it was sent.
    Kept,
    /// Another one arrives.
    Changed(u8),
}

/// What is done with the tail where the path does not keep the marks of its classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unmarked {
    /// There is none: it would take room from others.
    #[default]
    NoTail,
    /// It goes all the same, and yields where a queue grows.
    Scavenger,
    /// It goes as if the marks were kept.
    Ignore,
}

/// An answer to an echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Its number.
    pub number: u32,
    /// The class in which the question went; answers come in class 0.
    pub class: u8,
    /// Bytes of the question.
    pub bytes: usize,
    /// From the question to the answer.
    pub round_trip: Dur,
    /// The code point with which the question arrived.
    pub dscp: u8,
}

/// A train that comes from the peer.
#[derive(Clone, Copy, Debug)]
struct Coming {
    number: u32,
    seen: TrainSeen,
    first_ns: u64,
    latest_ns: u64,
    /// How many frames came later than the one before them, and by how much at most.
    gaps: u32,
    longest_gap_ns: u64,
    reported_ns: u64,
    is_due: bool,
}

impl Coming {
    fn new(number: u32, class: u8, now_ns: u64) -> Coming {
        Coming {
            number,
            seen: TrainSeen { class, ..TrainSeen::default() },
            first_ns: now_ns,
            latest_ns: now_ns,
            gaps: 0,
            longest_gap_ns: 0,
            reported_ns: now_ns,
            is_due: false,
        }
    }

    /// What is told of it. One pause that is longer than everything else together is not of the link, which is what a train
    /// measures, but of a host that was late, or of others' packets: it counts as an average gap.
    fn told(&self) -> TrainSeen {
        let others_ns = self.seen.span_ns.saturating_sub(self.longest_gap_ns);
        if self.gaps < LEAST_GAPS || self.longest_gap_ns <= others_ns {
            return self.seen;
        }
        let others = u64::from(self.seen.frames.saturating_sub(2).max(1));
        TrainSeen { span_ns: others_ns + others_ns / others, ..self.seen }
    }
}

/// What is known of a path.
#[derive(Debug)]
pub struct PathState {
    dscp: [u8; MAX_CLASSES],
    marks: [Mark; MAX_CLASSES],
    /// The handshake of a class came back with its own code point.
    came_back: [bool; MAX_CLASSES],
    /// A class has opened, and was not asked about yet.
    is_new: [bool; MAX_CLASSES],
    open: [bool; MAX_CLASSES],
    full_bytes: usize,
    /// The largest frame of class 0 that has arrived.
    arrived_bytes: Option<usize>,
    next_number: u32,
    /// Questions by number: when, in which class, and of how many bytes.
    asked: BTreeMap<u32, (Time, u8, usize)>,
    answers: VecDeque<Echo>,
    tries: u32,
    ask_at: Time,
    to_send: Vec<(u8, Vec<u8>)>,
    coming: VecDeque<Coming>,
    reports: BTreeMap<u32, TrainSeen>,
    /// The train of the tail's rate.
    tail_train: Option<u32>,
    tail_rate: Option<Rate>,
}

impl PathState {
    /// Of a path on which classes have these code points and a full frame so many bytes.
    pub(super) fn new(dscp: &[u8], full_bytes: usize) -> PathState {
        let mut own = [0; MAX_CLASSES];
        for (class, own) in own.iter_mut().enumerate() {
            *own = dscp.get(class).or(dscp.last()).copied().unwrap_or(0);
        }
        PathState {
            dscp: own,
            marks: Default::default(),
            came_back: [false; MAX_CLASSES],
            is_new: [false; MAX_CLASSES],
            open: [false; MAX_CLASSES],
            full_bytes,
            arrived_bytes: None,
            next_number: 0,
            asked: BTreeMap::new(),
            answers: VecDeque::new(),
            tries: 0,
            ask_at: Time::NEVER,
            to_send: Vec::new(),
            coming: VecDeque::new(),
            reports: BTreeMap::new(),
            tail_train: None,
            tail_rate: None,
        }
    }

    /// What has become of the code point of a class.
    pub fn mark(&self, class: u8) -> Mark {
        self.marks.get(usize::from(class)).copied().unwrap_or_default()
    }

    /// Whether nothing is known yet of a class that is open.
    pub fn is_asking(&self) -> bool {
        (0..MAX_CLASSES).any(|class| self.open[class] && self.marks[class] == Mark::Unknown)
    }

    /// The rate at which the tail begins, if it was measured.
    pub fn tail_rate(&self) -> Option<Rate> {
        self.tail_rate
    }

    /// The largest frame that is known to arrive, bytes; the largest there is where nothing is known.
    pub fn frame_bytes(&self) -> usize {
        self.arrived_bytes.unwrap_or(self.full_bytes)
    }

    /// The next answer to an echo, in the order in which they came.
    pub fn poll_answer(&mut self) -> Option<Echo> {
        self.answers.pop_front()
    }

    /// How the peer says that a train has arrived so far.
    pub fn train(&self, number: u32) -> Option<TrainSeen> {
        self.reports.get(&number).copied()
    }

    /// Whether the tail may use this class, as far as its mark is known.
    pub(super) fn allows(&self, class: u8, unmarked: Unmarked) -> bool {
        let at = usize::from(class);
        class == 0
            || unmarked != Unmarked::NoTail
            || match self.marks[at] {
                Mark::Kept => true,
                Mark::Unknown => self.came_back[at],
                Mark::Changed(_) => false,
            }
    }

    /// Whether a tail that goes all the same has to yield: the mark of a class that it would use is not kept.
    pub(super) fn is_unmarked(&self) -> bool {
        (1..MAX_CLASSES).any(|class| self.open[class] && matches!(self.marks[class], Mark::Changed(_)))
    }

    /// A class can be used, or no longer; its handshake came back with this code point.
    pub(super) fn set_open(&mut self, now: Time, class: u8, open: bool, came_back: Option<u8>) {
        let at = usize::from(class);
        self.open[at] = open;
        self.came_back[at] = came_back == Some(self.dscp[at]);
        if open {
            (self.tries, self.ask_at) = (0, now);
        }
        self.is_new[at] = open;
    }

    /// Asks whether a frame of so many bytes arrives in a class.
    pub(super) fn echo(&mut self, now: Time, class: u8, bytes: usize) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        if self.asked.len() >= MOST_WAITING {
            self.asked.pop_first();
        }
        self.asked.insert(number, (now, class, bytes));
        self.to_send.push((class, Frame::Echo { number, bytes }.encode()));
        number
    }

    /// Sends so many frames of a new train, or of one that is under way.
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

    /// Measures the rate at which the tail of the first flow begins.
    pub(super) fn measure_tail(&mut self, class: u8) {
        let number = self.send_train(None, class, TRAIN_FRAMES, self.full_bytes, true);
        self.tail_train = Some(number);
    }

    /// A flow began before the answer: what is measured beside it says nothing of the path.
    pub(super) fn forget_train(&mut self) {
        if self.tail_rate.is_none() {
            self.tail_train = None;
        }
    }

    /// A frame of a train came in.
    pub(super) fn handle_train(&mut self, number: u32, class: u8, last: bool, bytes: usize, received_ns: u64) {
        let at = self.coming.iter().position(|coming| coming.number == number && coming.seen.class == class);
        let at = at.unwrap_or_else(|| {
            if self.coming.len() >= MOST_TRAINS {
                self.coming.pop_front();
            }
            self.coming.push_back(Coming::new(number, class, received_ns));
            self.coming.len() - 1
        });
        let coming = &mut self.coming[at];
        coming.seen.frames = coming.seen.frames.saturating_add(1);
        coming.seen.bytes += bytes as u64;
        coming.seen.span_ns = coming.seen.span_ns.max(received_ns.saturating_sub(coming.first_ns));
        let gap_ns = received_ns.saturating_sub(coming.latest_ns);
        coming.gaps = coming.gaps.saturating_add(u32::from(gap_ns > 0));
        coming.longest_gap_ns = coming.longest_gap_ns.max(gap_ns);
        coming.latest_ns = coming.latest_ns.max(received_ns);
        coming.is_due |= last || received_ns.saturating_sub(coming.reported_ns) >= REPORT_TIME_NS;
    }

    /// The peer says how a train has arrived so far. Returns whether that gives the tail's rate.
    pub(super) fn handle_train_seen(&mut self, number: u32, seen: TrainSeen, overhead_bytes: u64) -> bool {
        let known = self.reports.get(&number).map_or(0, |known| known.frames);
        if number.wrapping_sub(self.next_number) < u32::MAX / 2 || seen.frames <= known {
            return false;
        }
        if self.reports.len() >= MOST_TRAINS && !self.reports.contains_key(&number) {
            self.reports.pop_first();
        }
        self.reports.insert(number, seen);
        let is_tail = self.tail_train == Some(number);
        if !is_tail || seen.frames < LEAST_TRAIN_FRAMES {
            return false;
        }
        self.tail_rate = rate_of(seen, overhead_bytes).map(|rate| rate.scaled(SHARE));
        self.tail_rate.is_some()
    }

    /// The peer asks whether a frame arrived, which it did.
    pub(super) fn handle_echo(&mut self, number: u32, bytes: usize, dscp: u8) {
        if self.to_send.len() < MOST_WAITING {
            let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
            self.to_send.push((0, Frame::Echoed { number, dscp, bytes }.encode()));
        }
    }

    /// The peer answers. Returns whether this node had asked.
    pub(super) fn handle_echoed(&mut self, now: Time, number: u32, dscp: u8) -> bool {
        let Some((at, class, bytes)) = self.asked.remove(&number) else { return false };
        if self.answers.len() >= MOST_WAITING {
            self.answers.pop_front();
        }
        self.answers.push_back(Echo { number, class, bytes, round_trip: now - at, dscp });
        let mark = if dscp == self.dscp[usize::from(class)] { Mark::Kept } else { Mark::Changed(dscp) };
        self.marks[usize::from(class)] = mark;
        if class == 0 && bytes > 2 * PROBE_BYTES {
            self.arrived_bytes = self.arrived_bytes.max(Some(bytes));
        }
        true
    }

    /// When [`poll`](Self::poll) wants to be called.
    pub(super) fn next_timer(&self) -> Time {
        self.ask_at
    }

    /// Everything that is to be sent now, with its class.
    pub(super) fn poll(
        &mut self,
        now: Time,
        round_trip: Option<Dur>,
        quic_bytes: usize,
        is_quiet: bool,
    ) -> Vec<(u8, Vec<u8>)> {
        if now >= self.ask_at {
            self.ask(now, quic_bytes, is_quiet);
            let patience = round_trip.map_or(LEAST_PATIENCE, |round_trip| (round_trip * 2).max(LEAST_PATIENCE));
            self.tries += 1;
            let is_over = self.tries >= MOST_TRIES || !self.is_asking();
            // Once more after the first time, when all is known by then.
            self.ask_at = if is_over { Time::NEVER } else { now + patience * (1 << self.tries) };
        }
        for coming in self.coming.iter_mut().filter(|coming| coming.is_due) {
            coming.is_due = false;
            coming.reported_ns = coming.first_ns + coming.seen.span_ns;
            self.to_send.push((0, Frame::TrainSeen { number: coming.number, seen: coming.told() }.encode()));
        }
        let mut frames = std::mem::take(&mut self.to_send);
        // Upper classes first: what overtook a train on the way would make it longer, and the path seem slower.
        frames.sort_by_key(|(class, _)| *class);
        frames
    }

    /// Packet sizes are asked for where nothing else is sent: full packets ahead of a flow's first would cost it more than they take.
    fn ask(&mut self, now: Time, quic_bytes: usize, is_quiet: bool) {
        // What was asked a moment ago is not asked again because of a class that opens later: the train that goes in the lowest class
        // then would wait for it, and measure a slower path.
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

/// The rate at which a train arrived, with so many bytes on the wire beside each frame; `None` where it says nothing.
pub fn rate_of(seen: TrainSeen, overhead_bytes: u64) -> Option<Rate> {
    let frames = u64::from(seen.frames);
    if frames < 2 {
        return None;
    }
    // The first is the start of the clock, and does not count.
    let bytes = (seen.bytes + frames * overhead_bytes) / frames * (frames - 1);
    Some(if seen.span_ns == 0 { Rate::from_gbps(1000) } else { Rate::of(bytes, Dur::from_ns(seen.span_ns)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classes of the full frames that leave now.
    fn full(path: &mut PathState, now: Time) -> Vec<u8> {
        let frames = path.poll(now, Some(Dur::from_ms(40)), 40, true);
        frames.into_iter().filter(|(_, frame)| frame.len() > 1000).map(|(class, _)| class).collect()
    }

    #[test]
    fn one_pause_in_a_train_is_not_taken_for_the_link_and_batches_are() {
        // 16 frames at one in 120 us, of 1460 bytes with what is beside them; the clock shows each after so many ns more.
        let told = |late_ns: &dyn Fn(u64) -> u64| {
            let mut path = PathState::new(&[0, 3, 11, 19], 1400);
            for frame in 0..16 {
                path.handle_train(1, 3, frame == 15, 1400, 1_000_000 + frame * 120_000 + late_ns(frame));
            }
            rate_of(path.coming[0].told(), 60).expect("a rate").as_bps() as f64 / (1460.0 * 8.0 / 120e-6)
        };
        assert!((told(&|_| 0) - 1.0).abs() < 0.001);
        // A host that is late by 49 ms in the middle.
        assert!((told(&|frame| if frame < 7 { 0 } else { 49_000_000 }) - 1.0).abs() < 0.01);
        // Four frames at a time, each with the time of the last of them: three gaps.
        assert!((told(&|frame| (3 - frame % 4) * 120_000) - 1.25).abs() < 0.01);
        // One hole of a few packets is the path's.
        assert!(told(&|frame| if frame < 7 { 0 } else { 1_000_000 }) < 0.7);
    }

    #[test]
    fn nothing_of_this_host_overtakes_the_train_that_measures_the_tail() {
        let now = Time::ZERO + Dur::from_secs(1);
        let mut path = PathState::new(&[0, 3, 11, 19], 1400);
        (0..4).for_each(|class| path.set_open(now, class, true, Some(0)));
        path.measure_tail(3);
        let asked = full(&mut path, now);
        let train = TRAIN_FRAMES as usize;
        assert!(asked.len() > train && asked.is_sorted(), "{asked:?}");
        assert_eq!(asked[asked.len() - train..], vec![3; train]);
        // A class that opens later asks for itself alone.
        let mut path = PathState::new(&[0, 3, 11, 19], 1400);
        path.set_open(now, 0, true, Some(0));
        assert!(!full(&mut path, now).is_empty());
        path.set_open(now, 3, true, Some(0));
        path.measure_tail(3);
        assert_eq!(full(&mut path, now), vec![3; train]);
        assert!(full(&mut path, now + Dur::from_ms(1)).is_empty());
    }
}
