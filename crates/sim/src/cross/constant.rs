//! A constant rate: bursts of packets, passed to the interface at once, at regular intervals.
//!
//! The first burst is at a random time within the first interval, so that several sources are out of phase. With
//! jitter, each interval is drawn uniformly around its mean: sources then drift, like senders with separate clocks and
//! schedulers.

use super::{Burst, CrossTraffic, Process};
use sparelane_core::{Dur, Stream, Time};

/// A constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConstantSpec {
    /// Packets per burst, at least one.
    pub burst: u32,
    /// The largest deviation of an interval from the mean, as a share of it, 0 to 1.
    pub jitter: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Constant {
    spec: ConstantSpec,
    interval: Dur,
    next: Time,
    stream: Stream,
}

impl Constant {
    pub(super) fn new(traffic: &CrossTraffic, spec: ConstantSpec, mut stream: Stream) -> Constant {
        let interval = traffic.rate.time_for(u64::from(traffic.packet_bytes) * u64::from(spec.burst));
        let next = traffic.start.saturating_add(interval.scaled(stream.unit()));
        Constant { spec, interval, next, stream }
    }
}

impl Process for Constant {
    fn next(&mut self) -> Burst {
        let burst = Burst { at: self.next, packets: self.spec.burst };
        let interval = match self.spec.jitter {
            jitter if jitter > 0.0 => self.interval.scaled(1.0 + jitter * (2.0 * self.stream.unit() - 1.0)),
            _ => self.interval,
        };
        self.next = self.next.saturating_add(interval);
        burst
    }
}
