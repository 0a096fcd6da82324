//! What a path does: its marks, delays, losses, rate and packet size, and whether it serves the lower classes worse.
//!
//! All is measured with a peer that only answers. First small packets go in every class while nothing else does: delays and losses.
//! Trains of full packets show the rate. Then a load a little above that rate goes in class 1 for a while, with small packets of
//! every class beside it. Where the path serves classes as meant, those of class 0 feel nothing, and those below class 1 wait; where
//! it does not, all wait alike.

#[cfg(target_os = "linux")]
pub mod host;

use crate::carrier::{AssociationId, Carrier};
use crate::flow::MAX_CLASSES;
use crate::node::path::{Mark, rate_of};
use crate::node::{Node, NodeError, NodeEvent};
use crate::quic::Quic;
use sparelane_core::{Dur, Rate, Time};
use thiserror::Error;

/// Small packets of each class while nothing else is sent, and beside the load, and the time between them.
const IDLE_PROBES: usize = 40;
const IDLE_SPACING: Dur = Dur::from_ms(10);
const LOADED_SPACING: Dur = Dur::from_ms(4);

/// Bytes of a small frame.
const PROBE_FRAME_BYTES: usize = 12;

/// Trains that measure the rate, and frames of each.
const TRAINS: usize = 5;
const TRAIN_FRAMES: u32 = 32;

/// The load exceeds the rate of the trains by this factor, so that a queue grows.
const OVERLOAD: f64 = 1.15;

/// A load of which less than this share arrives has filled the path.
const FULL: f64 = 0.97;

/// The load begins so long before what is measured beside it.
const WARM_UP: Dur = Dur::from_ms(300);

/// Answers are waited for so long at least.
const PATIENCE: Dur = Dur::from_ms(1500);

/// What is waited for is looked at so often.
const TICK: Dur = Dur::from_ms(1);

/// A difference of delays below this says nothing.
const LEAST_DIFFERENCE: Dur = Dur::from_ms(2);

/// Nor does one of losses below this share.
const LEAST_LOSS: f64 = 0.1;

/// Nor does one of losses by less than this factor.
const SPARED: f64 = 4.0;

/// Whoever drives a node: a host with its sockets, or a network in virtual time.
pub trait Drive {
    /// Why it cannot go on.
    type Error: From<NodeError> + From<ProbeError>;

    /// The time.
    fn now(&self) -> Time;

    /// The node.
    fn node_mut(&mut self) -> &mut Node<Quic>;

    /// The next event of the node until this time.
    ///
    /// # Errors
    /// The node cannot be driven any more.
    fn next_event_until(&mut self, until: Time) -> Result<Option<NodeEvent>, Self::Error>;

    /// Bytes of the network's headers for each datagram: IP and UDP.
    fn header_bytes(&self) -> u64;
}

/// Why nothing can be said of a path.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProbeError {
    /// The association ended.
    #[error("the connection ended while the path was measured: {0}")]
    Closed(String),
    /// Nothing is answered.
    #[error("the peer is there, but answers no probe: another version of this program?")]
    NoAnswers,
    /// Whoever had asked does not want to know any more.
    #[error("stopped")]
    Stopped,
}

/// What can be set about a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbePlan {
    /// How long the load lasts; zero for none, and then nothing is known of how classes are served.
    pub load: Dur,
    /// The load has no more than this rate.
    pub most_rate: Rate,
}

impl Default for ProbePlan {
    fn default() -> ProbePlan {
        ProbePlan { load: Dur::from_ms(1000), most_rate: Rate::from_gbps(1) }
    }
}

/// Round trips of small packets of one class; the answers come in class 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// So many were sent.
    pub sent: usize,
    /// The round trips of those that were answered, in order of length.
    pub round_trips: Vec<Dur>,
}

impl Delays {
    /// The share without an answer.
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { 1.0 - self.round_trips.len() as f64 / self.sent as f64 }
    }

    /// The round trip that this share is no longer than; `None` where nothing was answered.
    pub fn percentile(&self, share: f64) -> Option<Dur> {
        let last = self.round_trips.len().checked_sub(1)?;
        self.round_trips.get((last as f64 * share).round() as usize).copied()
    }
}

/// How a class is served beside a load in class 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Served {
    /// Nothing is known.
    #[default]
    Unknown,
    /// The load is not felt.
    First,
    /// It waits, or is lost, with the load or behind it, where class 0 is not.
    Worse,
    /// It fares no better or worse than class 0.
    Alike,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq)]
pub struct PathReport {
    /// What became of the code point of each class.
    pub marks: Vec<Mark>,
    /// While nothing else was sent, by class.
    pub idle: Vec<Delays>,
    /// Beside the load, by class.
    pub loaded: Vec<Delays>,
    /// How each class is served.
    pub served: Vec<Served>,
    /// The rate of the narrowest link by trains and by the load, IP packets counted.
    pub rate: Option<Rate>,
    /// The load that was sent, and the rate at which it arrived.
    pub load: Option<(Rate, Rate)>,
    /// The largest IP packet that is known to arrive, bytes.
    pub mtu_bytes: u64,
    /// The rate at which a tail would begin.
    pub tail_rate: Option<Rate>,
}

/// Measures the path of an open association.
///
/// # Errors
/// The association ends, or `goes_on` says that nobody wants to know any more.
pub fn measure<D: Drive>(
    net: &mut D,
    association: AssociationId,
    classes: u8,
    plan: ProbePlan,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<PathReport, D::Error> {
    let mut probe = Probe { net, association, classes: usize::from(classes).min(MAX_CLASSES), goes_on };
    probe.settle()?;
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
        served = serve(&idle, &delays);
        (loaded, load) = (delays, arrived.map(|arrived| (rate, arrived)));
    }
    // Where the load did not pass, what did is the rate: a bucket of tokens lets trains pass faster.
    let rate = match load {
        Some((sent, arrived)) if arrived < sent.scaled(FULL) => rate.map(|rate| rate.min(arrived)),
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

/// How classes fare beside a load in class 1, or in class 0 where there is no other.
fn serve(idle: &[Delays], loaded: &[Delays]) -> Vec<Served> {
    let rise = |class: usize| {
        let (before, beside) = (idle[class].percentile(0.5)?, loaded[class].percentile(0.5)?);
        Some(Dur::from_ps(beside.as_ps().saturating_sub(before.as_ps())))
    };
    let Some(first) = rise(0).filter(|_| loaded.len() > 1) else { return vec![Served::Unknown; loaded.len()] };
    let is_worse = |class: usize| {
        let later = rise(class).is_none_or(|rise| rise > first.scaled(2.0) && rise > first + LEAST_DIFFERENCE);
        // In one queue that overflows, which packets find room is chance: losses of one class were twice those of another.
        let (lost, first_lost) = (loaded[class].loss(), loaded[0].loss());
        later || lost > SPARED * first_lost && lost > first_lost + LEAST_LOSS
    };
    let mut served: Vec<_> = (1..loaded.len())
        .map(|class| match (loaded[class].sent, is_worse(class)) {
            (0, _) => Served::Unknown,
            (_, true) => Served::Worse,
            (_, false) => Served::Alike,
        })
        .collect();
    let is_first = served.contains(&Served::Worse) && loaded[0].loss() < idle[0].loss() + LEAST_LOSS;
    served.insert(0, if is_first { Served::First } else { Served::Alike });
    served
}

struct Probe<'a, D> {
    net: &'a mut D,
    association: AssociationId,
    classes: usize,
    goes_on: &'a mut dyn FnMut() -> bool,
}

impl<D: Drive> Probe<'_, D> {
    fn overhead_bytes(&mut self) -> u64 {
        self.net.node_mut().carrier().overhead_bytes() as u64 + self.net.header_bytes()
    }

    /// Lets time pass; what comes meanwhile is kept by the node.
    fn wait(&mut self, until: Time) -> Result<(), D::Error> {
        loop {
            if !(self.goes_on)() {
                return Err(ProbeError::Stopped.into());
            }
            // Short, so that whoever wants to stop is heard.
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

    /// Until something is known of all marks, or the node has given up asking.
    fn settle(&mut self) -> Result<(), D::Error> {
        let began = self.net.now();
        while self.net.now() < began + Dur::from_secs(5) {
            let next = self.net.now() + Dur::from_ms(20);
            self.wait(next)?;
            let is_asking = self.net.node_mut().path(self.association).ok_or(NodeError::NotOpen)?.is_asking();
            if self.net.now() >= began + Dur::from_ms(300) && !is_asking {
                break;
            }
        }
        Ok(())
    }

    /// Small packets in every class, so many at this distance, beside a load of this rate if there is to be one. Returns the round
    /// trips by class, and the rate at which the load arrived.
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
        let (began, mut train, mut loaded_bytes) = (self.net.now(), None, 0);
        let warm_up = if load.is_some() { WARM_UP } else { Dur::ZERO };
        let mut mine = std::collections::BTreeSet::new();
        while self.net.node_mut().path_mut(association).is_some_and(|path| path.poll_answer().is_some()) {}
        let ends = began + warm_up + spacing * count as u64;
        let (mut sent, gap) = (0, Dur::from_ps(spacing.as_ps() / self.classes as u64));
        while self.net.now() < ends {
            let now = self.net.now();
            if let Some(rate) = load {
                let due = rate.bytes_in(now - began).saturating_sub(loaded_bytes);
                let frames = (due / (full_bytes + overhead)) as u32;
                if frames > 0 {
                    let node = self.net.node_mut();
                    train = Some(node.send_train(association, train, load_class, frames, false)?);
                    loaded_bytes += u64::from(frames) * (full_bytes + overhead);
                }
                // Between what is due of the load, so that no class is always the first to find room in a queue.
                self.wait(now + TICK / 2)?;
            }
            let now = self.net.now();
            while sent < count * self.classes && began + warm_up + gap * sent as u64 <= now {
                let class = (sent + sent / self.classes) % self.classes;
                mine.insert(self.net.node_mut().echo(now, association, class as u8, PROBE_FRAME_BYTES)?);
                delays[class].sent += 1;
                sent += 1;
            }
            self.wait(now + TICK / 2)?;
            self.take_answers(&mut mine, &mut delays);
        }
        let until = self.net.now() + PATIENCE;
        while self.net.now() < until && !mine.is_empty() {
            let next = self.net.now() + Dur::from_ms(50);
            self.wait(next)?;
            self.take_answers(&mut mine, &mut delays);
        }
        delays.iter_mut().for_each(|delays| delays.round_trips.sort());
        let seen = train.and_then(|train| self.net.node_mut().path(association)?.train(train));
        Ok((delays, seen.and_then(|seen| rate_of(seen, overhead))))
    }

    fn take_answers(&mut self, mine: &mut std::collections::BTreeSet<u32>, delays: &mut [Delays]) {
        let Some(path) = self.net.node_mut().path_mut(self.association) else { return };
        while let Some(answer) = path.poll_answer() {
            if mine.remove(&answer.number) {
                delays[usize::from(answer.class)].round_trips.push(answer.round_trip);
            }
        }
    }

    /// The median of what some trains show.
    fn rate(&mut self, idle: &Delays) -> Result<Option<Rate>, D::Error> {
        let overhead = self.overhead_bytes();
        let pause = idle.percentile(1.0).unwrap_or(PATIENCE).max(Dur::from_ms(20)) * 2;
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
