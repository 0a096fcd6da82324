//! Measurement of a path: its marks, delays, losses, rate and packet size, and its treatment of lower classes.
//!
//! The peer only answers. First, small packets in every class measure delays and losses of the idle path. Trains of
//! full packets measure the rate. Then a load slightly above that rate is sent in class 1, together with small packets
//! in every class. If the path honours priorities, the load does not affect class 0, and delays all lower classes. If
//! not, all classes are delayed alike.

#[cfg(target_os = "linux")]
pub mod host;

use crate::carrier::{AssociationId, Carrier};
use crate::flow::MAX_CLASSES;
use crate::node::path::{Mark, rate_of};
use crate::node::{Node, NodeError, NodeEvent};
use crate::quic::Quic;
use sparelane_core::{Dur, Rate, Time};
use thiserror::Error;

/// The number of small packets of each class on the idle path, and the time between two of them without and with load.
const IDLE_PROBES: usize = 40;
const IDLE_SPACING: Dur = Dur::from_ms(10);
const LOADED_SPACING: Dur = Dur::from_ms(4);

/// Bytes of a small frame.
const PROBE_FRAME_BYTES: usize = 12;

/// The number of trains that measure the rate, and the frames of each.
const TRAINS: usize = 5;
const TRAIN_FRAMES: u32 = 32;

/// The ratio of the load to the measured rate, so that a queue builds up.
const OVERLOAD: f64 = 1.15;

/// The share of the load below which arrivals mean that the path was full.
const FULL_SHARE: f64 = 0.97;

/// The time from the start of the load to the first small packet.
const WARM_UP: Dur = Dur::from_ms(300);

/// The minimum time to wait for answers.
const ANSWER_TIMEOUT: Dur = Dur::from_ms(1500);

/// The interval at which the load and the small packets are sent.
const TICK: Dur = Dur::from_ms(1);

/// A difference of delays below this is not significant.
const MIN_DIFFERENCE: Dur = Dur::from_ms(2);

/// A difference of loss rates below this is not significant.
const MIN_LOSS: f64 = 0.1;

/// A ratio of loss rates below this is not significant.
const LOSS_RATIO: f64 = 4.0;

/// The driver of a node: a host with sockets, or a network in virtual time.
pub trait Driver {
    /// The driver's error.
    type Error: From<NodeError> + From<ProbeError>;

    /// The current time.
    fn now(&self) -> Time;

    /// The node.
    fn node_mut(&mut self) -> &mut Node<Quic>;

    /// Returns the next event of the node until `until`.
    ///
    /// # Errors
    /// The driver failed.
    fn next_event_until(&mut self, until: Time) -> Result<Option<NodeEvent>, Self::Error>;

    /// The network's header bytes of each datagram: IP and UDP.
    fn header_bytes(&self) -> u64;
}

/// An error of a measurement.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProbeError {
    /// The association ended.
    #[error("the connection ended while the path was measured: {0}")]
    Closed(String),
    /// The peer answers no echo.
    #[error("the peer answers no probe; it may run another version of this program")]
    NoAnswers,
    /// The caller stopped the measurement.
    #[error("stopped")]
    Stopped,
}

/// Options of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbePlan {
    /// The duration of the load. Without a load, the treatment of classes stays unknown.
    pub load: Dur,
    /// The maximum rate of the load.
    pub most_rate: Rate,
}

impl Default for ProbePlan {
    fn default() -> ProbePlan {
        ProbePlan { load: Dur::from_ms(1000), most_rate: Rate::from_gbps(1) }
    }
}

/// Round-trip times of small packets of one class. Answers are sent in class 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// The number of packets sent.
    pub sent: usize,
    /// The round-trip times of the answered packets, in ascending order.
    pub round_trips: Vec<Dur>,
}

impl Delays {
    /// The share of unanswered packets.
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { 1.0 - self.round_trips.len() as f64 / self.sent as f64 }
    }

    /// Returns a percentile of the round-trip times, given as a share; `None` without answers.
    pub fn percentile(&self, share: f64) -> Option<Dur> {
        let last = self.round_trips.len().checked_sub(1)?;
        self.round_trips.get((last as f64 * share).round() as usize).copied()
    }
}

/// The treatment of a class compared with class 0, under a load in class 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Served {
    /// Not known.
    #[default]
    Unknown,
    /// The load has no effect on it.
    First,
    /// It is delayed or lost with the load, and class 0 is not.
    Worse,
    /// It is treated like class 0.
    Alike,
}

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct PathReport {
    /// The state of each class's code point.
    pub marks: Vec<Mark>,
    /// Delays of the idle path, by class.
    pub idle: Vec<Delays>,
    /// Delays under load, by class.
    pub loaded: Vec<Delays>,
    /// The treatment of each class.
    pub served: Vec<Served>,
    /// The rate of the narrowest link according to trains and load, counting IP packets.
    pub rate: Option<Rate>,
    /// The load's rate, and its rate of arrival.
    pub load: Option<(Rate, Rate)>,
    /// The largest IP packet that is known to arrive, bytes.
    pub mtu_bytes: u64,
    /// The initial rate of a tail on this path.
    pub tail_rate: Option<Rate>,
}

/// Measures the path of an open association. The measurement stops when `keep_going` returns false.
///
/// # Errors
/// The association ends, the peer answers no echo, or the caller stops the measurement.
pub fn measure<D: Driver>(
    net: &mut D,
    association: AssociationId,
    classes: u8,
    plan: ProbePlan,
    keep_going: &mut dyn FnMut() -> bool,
) -> Result<PathReport, D::Error> {
    let mut probe = Probe { net, association, classes: usize::from(classes).min(MAX_CLASSES), keep_going };
    probe.wait_for_marks()?;
    let idle = probe.small_packets(IDLE_PROBES, IDLE_SPACING, None)?.0;
    if idle.iter().all(|delays| delays.round_trips.is_empty()) {
        return Err(ProbeError::NoAnswers.into());
    }
    let rate = probe.rate(&idle[0])?;
    let (mut loaded, mut served, mut load) = (vec![], vec![Served::Unknown; probe.classes], None);
    if let Some(rate) = rate.filter(|_| !plan.load.is_zero()) {
        let rate = rate.scaled(OVERLOAD).min(plan.most_rate);
        let count = (plan.load.as_ps() / LOADED_SPACING.as_ps()).max(1) as usize;
        let (delays, arrived) = probe.small_packets(count, LOADED_SPACING, Some(rate))?;
        served = compare(&idle, &delays);
        (loaded, load) = (delays, arrived.map(|arrived| (rate, arrived)));
    }
    // If the load did not fit, its arrivals give the rate. Trains can be faster through a token bucket.
    let rate = match load {
        Some((sent, arrived)) if arrived < sent.scaled(FULL_SHARE) => rate.map(|rate| rate.min(arrived)),
        _ => rate,
    };
    let quic_bytes = probe.overhead_bytes();
    let known = probe.net.node_mut().path(association).ok_or(NodeError::NotOpen)?;
    let marks = (0..classes).map(|class| known.mark(class)).collect();
    Ok(PathReport {
        marks,
        idle,
        loaded,
        served,
        rate,
        load,
        mtu_bytes: known.frame_bytes() as u64 + quic_bytes,
        tail_rate: known.tail_rate(),
    })
}

/// Compares the classes under a load in class 1; nothing is known with a single class.
fn compare(idle: &[Delays], loaded: &[Delays]) -> Vec<Served> {
    let rise = |class: usize| {
        let (before, beside) = (idle[class].percentile(0.5)?, loaded[class].percentile(0.5)?);
        Some(Dur::from_ps(beside.as_ps().saturating_sub(before.as_ps())))
    };
    let Some(first) = rise(0).filter(|_| loaded.len() > 1) else { return vec![Served::Unknown; loaded.len()] };
    let is_worse = |class: usize| {
        let later = rise(class).is_none_or(|rise| rise > first.scaled(2.0) && rise > first + MIN_DIFFERENCE);
        // Losses of a full shared queue differ between classes by chance, in one case by a factor of two.
        let (lost, first_lost) = (loaded[class].loss(), loaded[0].loss());
        later || lost > LOSS_RATIO * first_lost && lost > first_lost + MIN_LOSS
    };
    let mut served: Vec<_> = (1..loaded.len())
        .map(|class| match (loaded[class].sent, is_worse(class)) {
            (0, _) => Served::Unknown,
            (_, true) => Served::Worse,
            (_, false) => Served::Alike,
        })
        .collect();
    let is_first = served.contains(&Served::Worse) && loaded[0].loss() < idle[0].loss() + MIN_LOSS;
    served.insert(0, if is_first { Served::First } else { Served::Alike });
    served
}

struct Probe<'a, D> {
    net: &'a mut D,
    association: AssociationId,
    classes: usize,
    keep_going: &'a mut dyn FnMut() -> bool,
}

impl<D: Driver> Probe<'_, D> {
    fn overhead_bytes(&mut self) -> u64 {
        self.net.node_mut().carrier().overhead_bytes() as u64 + self.net.header_bytes()
    }

    /// Lets time pass; answers that arrive are kept by the node.
    fn wait(&mut self, until: Time) -> Result<(), D::Error> {
        loop {
            if !(self.keep_going)() {
                return Err(ProbeError::Stopped.into());
            }
            // Wake up often enough to stop without delay.
            let next = until.min(self.net.now() + Dur::from_ms(50));
            match self.net.next_event_until(next)? {
                Some(NodeEvent::Closed { association, reason }) if association == self.association => {
                    return Err(ProbeError::Closed(reason.to_string()).into());
                }
                Some(_) => {}
                None if self.net.now() >= until => return Ok(()),
                None => {}
            }
        }
    }

    /// Waits until all marks are known, or the node gives up.
    fn wait_for_marks(&mut self) -> Result<(), D::Error> {
        let began = self.net.now();
        while self.net.now() < began + Dur::from_secs(5) {
            let next = self.net.now() + Dur::from_ms(20);
            self.wait(next)?;
            let is_unknown = self.net.node_mut().path(self.association).ok_or(NodeError::NotOpen)?.has_unknown_marks();
            if self.net.now() >= began + Dur::from_ms(300) && !is_unknown {
                break;
            }
        }
        Ok(())
    }

    /// Sends `count` small packets in every class at an interval of `spacing`, under a load of rate `load`. Returns the
    /// round-trip times by class, and the load's rate of arrival.
    fn small_packets(
        &mut self,
        count: usize,
        spacing: Dur,
        load: Option<Rate>,
    ) -> Result<(Vec<Delays>, Option<Rate>), D::Error> {
        let association = self.association;
        let mut delays = vec![Delays::default(); self.classes];
        let overhead = self.overhead_bytes();
        let load_class = u8::from(self.classes > 1);
        let full_bytes = self.net.node_mut().path(association).ok_or(NodeError::NotOpen)?.frame_bytes() as u64;
        // The load is one long train, so that its arrivals give a rate.
        let (began, mut train, mut loaded_bytes) = (self.net.now(), None, 0);
        let warm_up = if load.is_some() { WARM_UP } else { Dur::ZERO };
        let mut pending = std::collections::BTreeSet::new();
        // Answers to earlier echoes do not belong to this measurement.
        while self.net.node_mut().path_mut(association).is_some_and(|path| path.poll_answer().is_some()) {}
        let ends = began + warm_up + spacing * count as u64;
        let (mut sent, gap) = (0, Dur::from_ps(spacing.as_ps() / self.classes as u64));
        while self.net.now() < ends {
            let now = self.net.now();
            if let Some(rate) = load {
                // Send what the rate allows since the start, in full frames.
                let due = rate.bytes_in(now - began).saturating_sub(loaded_bytes);
                let frames = (due / (full_bytes + overhead)) as u32;
                if frames > 0 {
                    let node = self.net.node_mut();
                    train = Some(node.send_train(association, train, load_class, frames, false)?);
                    loaded_bytes += u64::from(frames) * (full_bytes + overhead);
                }
                // Send the small packets between two bursts of the load, so that no class is favoured in a full queue.
                self.wait(now + TICK / 2)?;
            }
            let now = self.net.now();
            while sent < count * self.classes && began + warm_up + gap * sent as u64 <= now {
                // Rotate the order of classes, so that none is always first.
                let class = (sent + sent / self.classes) % self.classes;
                pending.insert(self.net.node_mut().echo(now, association, class as u8, PROBE_FRAME_BYTES)?);
                delays[class].sent += 1;
                sent += 1;
            }
            self.wait(now + TICK / 2)?;
            self.take_answers(&mut pending, &mut delays);
        }
        let until = self.net.now() + ANSWER_TIMEOUT;
        while self.net.now() < until && !pending.is_empty() {
            let next = self.net.now() + Dur::from_ms(50);
            self.wait(next)?;
            self.take_answers(&mut pending, &mut delays);
        }
        delays.iter_mut().for_each(|delays| delays.round_trips.sort());
        let seen = train.and_then(|train| self.net.node_mut().path(association)?.train(train));
        Ok((delays, seen.and_then(|seen| rate_of(seen, overhead))))
    }

    fn take_answers(&mut self, pending: &mut std::collections::BTreeSet<u32>, delays: &mut [Delays]) {
        let Some(path) = self.net.node_mut().path_mut(self.association) else { return };
        while let Some(answer) = path.poll_answer() {
            if pending.remove(&answer.number) {
                delays[usize::from(answer.class)].round_trips.push(answer.round_trip);
            }
        }
    }

    /// Returns the median of the rates measured by several trains.
    fn rate(&mut self, idle: &Delays) -> Result<Option<Rate>, D::Error> {
        let overhead = self.overhead_bytes();
        let pause = idle.percentile(1.0).unwrap_or(ANSWER_TIMEOUT).max(Dur::from_ms(20)) * 2;
        let mut rates = vec![];
        for _ in 0..TRAINS {
            let train = self.net.node_mut().send_train(self.association, None, 0, TRAIN_FRAMES, true)?;
            let until = self.net.now() + pause;
            self.wait(until)?;
            let seen = self.net.node_mut().path(self.association).and_then(|path| path.train(train));
            rates.extend(seen.filter(|seen| seen.frames >= TRAIN_FRAMES / 2).and_then(|seen| rate_of(seen, overhead)));
        }
        rates.sort();
        Ok(rates.get(rates.len() / 2).copied())
    }
}

#[cfg(test)]
mod tests;
