//! Processing in a host, between the wire and TCP: delays of its processor, its clocks and its timers.
//!
//! A received packet waits for an interrupt (`interface`), is merged into a chunk (`offload`), is processed
//! (`processor`), and then reaches TCP. The acknowledgments of a host may leave late (`departures`). Every part is off
//! by default, and a flow that uses none bypasses this module: its packets reach TCP on arrival. Two parts are
//! elsewhere: late timers in `transport::sender`, and the cost of sending in `wire::link`, as the least time that a
//! packet occupies the host's uplink.

pub(crate) mod application;
mod departures;
mod interface;
mod offload;
mod processor;
pub(crate) mod pull;
pub(crate) mod reader;
mod thresholds;

pub(crate) use departures::Departures;
pub(crate) use interface::{Interfaces, Next};
pub(crate) use offload::{Offload, Received};
pub(crate) use processor::{Processors, Work};
pub(crate) use thresholds::Thresholds;

use crate::routing::network::NodeId;
use sparelane_core::{Dur, Time};
use std::collections::BTreeMap;

/// The properties of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// Processor time per received chunk of data, or per segment without chunks, and per other packet that an interrupt
    /// delivers. They are processed one after another. Zero takes no time.
    pub receive_cost: Dur,
    /// Interrupt coalescing; `None` delivers packets as they arrive.
    pub interrupts: Option<Interrupts>,
    /// The time at which received data gets its receive timestamp.
    pub timestamp_at: TimestampAt,
    /// The tick of the clock for these timestamps, which rounds down; `None` is exact to the nanosecond.
    pub timestamp_clock: Option<Dur>,
    /// Mean processor time per acknowledgment before it leaves: exponential, one after another.
    pub ack_cost: Dur,
    /// Mean lateness of the timers of paced segments: exponential; zero for exact timers.
    pub timer_error: Dur,
    /// Processor time per sent packet: at most one packet is sent in this time.
    pub send_cost: Dur,
}

/// The conditions for an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupts {
    /// The number of waiting packets that raises an interrupt: at least one, and `u32::MAX` for no limit.
    pub packets: u32,
    /// The longest wait of the first packet.
    pub after: Dur,
    /// The size of the ring: packets beyond it are lost. At least `packets`, and `u32::MAX` for no limit.
    pub ring: u32,
    /// Times in which the host answers no interrupt, if there are any.
    pub stalls: Option<Stalls>,
}

/// Stalls of a host: times in which it takes no packets from its interface, for example because other work occupies its
/// processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// Mean time from the end of a stall to the start of the next, exponential.
    pub every: Dur,
    /// Mean length of a stall, exponential.
    pub length: Dur,
}

/// The time at which a receiver stamps data. Acknowledgments echo it to controllers that need receive times or one-way
/// delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampAt {
    /// The time at which the processor has taken it.
    #[default]
    Arrival,
    /// The time at which the acknowledgment that it causes leaves.
    Acknowledgment,
}

/// A host that overrides the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAt {
    /// The host.
    pub host: NodeId,
    /// Its properties.
    pub spec: HostSpec,
}

/// The properties of all hosts.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    usual: HostSpec,
    differing: BTreeMap<NodeId, HostSpec>,
}

impl Hosts {
    /// Hosts with the properties `usual`, except those in `differing`. The last entry for a host wins.
    pub(crate) fn new(usual: HostSpec, differing: &[HostAt]) -> Hosts {
        Hosts { usual, differing: differing.iter().map(|at| (at.host, at.spec)).collect() }
    }

    pub(crate) fn spec(&self, host: NodeId) -> &HostSpec {
        self.differing.get(&host).unwrap_or(&self.usual)
    }
}

/// The timestamps of one flow's data: the clocks of both ends, and the send and receive times of the last segment that
/// TCP took.
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

    /// The receive time that an acknowledgment reports if it leaves at `leaves`.
    pub(crate) fn receive_time(&self, leaves: Time) -> Time {
        let at = match self.at {
            TimestampAt::Arrival => self.taken,
            TimestampAt::Acknowledgment => leaves,
        };
        whole_ticks(at, self.receiver_tick)
    }

    /// The one-way delay that this acknowledgment reports; zero if rounding makes it negative.
    pub(crate) fn delay(&self, leaves: Time) -> Dur {
        self.receive_time(leaves).saturating_since(whole_ticks(self.sent, self.sender_tick))
    }
}

/// Rounds a time down to whole ticks of a clock.
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
