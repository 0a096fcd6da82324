//! A bursty aggregate: transfers arrive at random, and each sends its packets one by one at its peak rate.
//!
//! Arrivals are Poisson, and sizes follow a bounded Pareto distribution. The superposition of such transfers is the
//! usual model of aggregated web traffic, bursty at all time scales up to that of the longest transfer (Willinger,
//! Taqqu, Sherman and Wilson, SIGCOMM 1995). Transfers do not share a rate: packets of concurrent transfers at a host
//! meet in the queue of its interface.
//!
//! Sizes are rounded to whole packets, up or down at random, so that the mean is preserved. At the start, the traffic
//! is in the state that it would have after running for as long as the longest transfer takes, at most [`MAX_PAST`].

use super::{Burst, CrossTraffic, Process};
use sparelane_core::{Dur, Rate, Stream, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// The longest history that is simulated before the start.
const MAX_PAST: Dur = Dur::from_secs(100);

/// Shapes this close to one use the formula for one.
const NEAR_ONE: f64 = 1e-6;

/// A bursty aggregate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AggregateSpec {
    /// The rate of each transfer on the wire.
    pub peak: Rate,
    /// The smallest transfer, bytes on the wire: a packet or more.
    pub min_bytes: u64,
    /// The largest transfer, bytes on the wire.
    pub max_bytes: u64,
    /// The exponent of the tail of the sizes, above 0. A smaller exponent means a heavier tail.
    pub shape: f64,
}

impl AggregateSpec {
    /// The mean of the sizes, bytes.
    pub fn mean_bytes(&self) -> f64 {
        let (low, high, shape) = (self.min_bytes as f64, self.max_bytes as f64, self.shape);
        if low >= high {
            return low;
        }
        if (shape - 1.0).abs() < NEAR_ONE {
            return low * high / (high - low) * libm::log(high / low);
        }
        let ratio = low / high;
        low * shape / (shape - 1.0) * (1.0 - libm::pow(ratio, shape - 1.0)) / (1.0 - libm::pow(ratio, shape))
    }

    /// Draws a size in bytes, by inversion of the distribution.
    fn draw(&self, stream: &mut Stream) -> f64 {
        let ratio = self.min_bytes as f64 / self.max_bytes as f64;
        let above = 1.0 - stream.unit() * (1.0 - libm::pow(ratio, self.shape));
        self.min_bytes as f64 * libm::pow(above, -1.0 / self.shape)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Aggregate {
    spec: AggregateSpec,
    packet_bytes: f64,
    /// The time between the packets of a transfer.
    gap: Dur,
    mean_between_arrivals_ps: f64,
    start: Time,
    /// The start of the next transfer, counted from the start of the history.
    arrival: Dur,
    past: Dur,
    /// Transfers in progress: the time of the next packet, and the number of packets left.
    under_way: BinaryHeap<Reverse<(Time, u64)>>,
    stream: Stream,
}

impl Aggregate {
    pub(super) fn new(traffic: &CrossTraffic, spec: AggregateSpec, stream: Stream) -> Aggregate {
        let mut aggregate = Aggregate {
            spec,
            packet_bytes: f64::from(traffic.packet_bytes),
            gap: spec.peak.time_for(u64::from(traffic.packet_bytes)),
            mean_between_arrivals_ps: spec.mean_bytes() * 8e12 / traffic.rate.as_bps() as f64,
            start: traffic.start,
            arrival: Dur::ZERO,
            past: spec.peak.time_for(spec.max_bytes).min(MAX_PAST),
            under_way: BinaryHeap::new(),
            stream,
        };
        aggregate.draw_arrival();
        while aggregate.arrival < aggregate.past {
            aggregate.begin_transfer();
        }
        aggregate
    }

    fn draw_arrival(&mut self) {
        let between_ps = -libm::log(self.stream.unit_above_zero()) * self.mean_between_arrivals_ps;
        self.arrival = Dur::from_ps(self.arrival.as_ps().saturating_add((between_ps + 0.5) as u64));
    }

    /// The start of the next transfer, unless it is in the history.
    fn arrival_time(&self) -> Time {
        self.start.saturating_add(self.arrival.saturating_sub(self.past))
    }

    /// The time of the next packet of a transfer in progress.
    fn next_packet(&self) -> Time {
        self.under_way.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
    }

    /// Starts the next transfer. Of one that began in the history, only the rest counts.
    fn begin_transfer(&mut self) {
        let packets = self.spec.draw(&mut self.stream) / self.packet_bytes;
        let packets = (packets + self.stream.unit()) as u64;
        let gap_ps = self.gap.as_ps().max(1);
        let sent = self.past.saturating_sub(self.arrival).as_ps().div_ceil(gap_ps);
        if sent < packets {
            let first = self.arrival + Dur::from_ps(sent * gap_ps);
            let first = self.start.saturating_add(first.saturating_sub(self.past));
            self.under_way.push(Reverse((first, packets - sent)));
        }
        self.draw_arrival();
    }
}

impl Process for Aggregate {
    fn next(&mut self) -> Burst {
        while self.arrival_time() < self.next_packet() {
            self.begin_transfer();
        }
        let Some(mut next) = self.under_way.peek_mut() else { return Burst { at: Time::NEVER, packets: 0 } };
        let (at, left) = next.0;
        if left > 1 {
            next.0 = (at.saturating_add(self.gap), left - 1);
        } else {
            PeekMut::pop(next);
        }
        Burst { at, packets: 1 }
    }
}
