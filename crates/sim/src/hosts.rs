//! What is between the wire and TCP in a host: what it takes its time for, and what its clocks and timers miss.
//!
//! What a host receives waits for an interrupt (`interface`), becomes chunks (`offload`), is processed (`processor`), and is
//! then with TCP. Its acknowledgments may leave later (`departures`). Every part is off by default: flows that use none pass
//! all this by, and a packet is with TCP when it arrives. Two parts are elsewhere: timers that are late in
//! `transport::sender`, and what sending costs in `wire::link`, as the least time that a packet takes at the host's uplink.

pub(crate) mod application;
mod departures;
mod interface;
mod offload;
mod processor;
pub(crate) mod pull;

pub(crate) use departures::Departures;
pub(crate) use interface::{Interfaces, Next};
pub(crate) use offload::{Offload, Received};
pub(crate) use processor::{Processors, Work};

use crate::routing::network::NodeId;
use sparelane_core::{Dur, Time};
use std::collections::BTreeMap;

/// A host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// How long the processor of a host is busy with one received chunk of data, or segment where there are no
    /// chunks; and with every other packet that comes with an interrupt. It takes them one after another. Zero takes no
    /// time.
    pub receive_cost: Dur,
    /// What it receives waits at its interface for an interrupt, if so.
    pub interrupts: Option<Interrupts>,
    /// Which instant it stamps data with.
    pub timestamp_at: TimestampAt,
    /// The tick of the clock that it stamps by, which rounds down; `None` is exact to the nanosecond.
    pub timestamp_clock: Option<Dur>,
    /// The mean time that its processor takes for an acknowledgment before that leaves: exponential, one after another.
    pub ack_cost: Dur,
    /// The mean by which the timers of paced segments are late: exponential, zero for exact ones.
    pub timer_error: Dur,
    /// How long its processor is busy with each packet that it sends: it sends at most one in this time.
    pub send_cost: Dur,
}

/// When an interface interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupts {
    /// The most packets that wait for one; at least one, and `u32::MAX` for any number.
    pub packets: u32,
    /// The longest that the first of them waits.
    pub after: Dur,
    /// The most packets that wait at all; what comes beyond is lost. At least `packets`, and `u32::MAX` for any number.
    pub ring: u32,
    /// When the host answers no interrupt, if ever.
    pub stalls: Option<Stalls>,
}

/// Stalls of a host: times in which it does not take what its interface has, as when other work keeps its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// From the end of one to the beginning of the next: the mean, exponential.
    pub every: Dur,
    /// How long one lasts: the mean, exponential.
    pub length: Dur,
}

/// Which instant a receiver stamps data with. Acknowledgments echo it to controllers that ask for receive times or for
/// one-way delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampAt {
    /// When it has come from the interface and the processor has taken it.
    #[default]
    Arrival,
    /// When the acknowledgment that it causes leaves.
    Acknowledgment,
}

/// A host that differs from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAt {
    /// The host.
    pub host: NodeId,
    /// What it is.
    pub spec: HostSpec,
}

/// All hosts.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    usual: HostSpec,
    differing: BTreeMap<NodeId, HostSpec>,
}

impl Hosts {
    /// Hosts like `usual`, but for some; the last that names a host decides.
    pub(crate) fn new(usual: HostSpec, differing: &[HostAt]) -> Hosts {
        Hosts { usual, differing: differing.iter().map(|at| (at.host, at.spec)).collect() }
    }

    pub(crate) fn spec(&self, host: NodeId) -> &HostSpec {
        self.differing.get(&host).unwrap_or(&self.usual)
    }
}

/// What the acknowledgments of one flow say of the times at which its data came: by which clocks, and the times of the last
/// segment that TCP took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    sender_tick: Option<Dur>,
    receiver_tick: Option<Dur>,
    at: TimestampAt,
    pub(crate) sent: Time,
    pub(crate) taken: Time,
}

impl Stamps {
    fn of(from: &HostSpec, to: &HostSpec) -> Stamps {
        Stamps {
            sender_tick: from.timestamp_clock,
            receiver_tick: to.timestamp_clock,
            at: to.timestamp_at,
            sent: Time::ZERO,
            taken: Time::ZERO,
        }
    }

    fn are_exact(&self) -> bool {
        self.sender_tick.is_none() && self.receiver_tick.is_none() && self.at == TimestampAt::Arrival
    }

    /// When the data came, as an acknowledgment says that leaves at `leaves`.
    pub(crate) fn receive_time(&self, leaves: Time) -> Time {
        let at = match self.at {
            TimestampAt::Arrival => self.taken,
            TimestampAt::Acknowledgment => leaves,
        };
        whole_ticks(at, self.receiver_tick)
    }

    /// How long it was under way, as that acknowledgment says; zero where the clocks' roundings say less.
    pub(crate) fn delay(&self, leaves: Time) -> Dur {
        self.receive_time(leaves).saturating_since(whole_ticks(self.sent, self.sender_tick))
    }
}

/// What a clock of this tick shows.
fn whole_ticks(at: Time, tick: Option<Dur>) -> Time {
    match tick {
        None => at,
        Some(tick) => Time::from_ps(at.as_ps() - at.as_ps() % tick.as_ps().max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_in_whole_ticks_of_either_instant() {
        let us = |us| Some(Dur::from_us(us));
        let mut spec = HostSpec { timestamp_clock: us(1), ..HostSpec::default() };
        let (sent, taken, leaves) = (Time::from_ns(1_700), Time::from_ns(5_999), Time::from_ns(7_123));
        let stamps = |from: &HostSpec, to: &HostSpec| Stamps { sent, taken, ..Stamps::of(from, to) };
        assert_eq!(stamps(&spec, &spec).receive_time(leaves), Time::from_ns(5_000));
        assert_eq!(stamps(&spec, &spec).delay(leaves), Dur::from_us(4));
        assert_eq!(stamps(&HostSpec::default(), &spec).delay(leaves), Dur::from_ns(3_300));
        spec.timestamp_at = TimestampAt::Acknowledgment;
        assert_eq!(stamps(&spec, &spec).receive_time(leaves), Time::from_ns(7_000));
        spec.timestamp_clock = us(1000);
        assert_eq!(stamps(&HostSpec::default(), &spec).delay(leaves), Dur::ZERO);
    }

    #[test]
    fn the_last_that_names_a_host_decides() {
        let spec = |us| HostSpec { send_cost: Dur::from_us(us), ..HostSpec::default() };
        let at = |host, us| HostAt { host: NodeId(host), spec: spec(us) };
        let hosts = Hosts::new(spec(1), &[at(4, 2), at(5, 3), at(4, 4)]);
        assert_eq!([3, 4, 5].map(|host| *hosts.spec(NodeId(host))), [1, 4, 3].map(spec));
    }
}
