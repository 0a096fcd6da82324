//! A constant rate: bursts of packets, handed to the interface at once, at regular intervals.
//!
//! The first burst comes at random within the first interval, so that several sources are out of step. With jitter, each
//! interval is drawn anew, uniformly around its mean: then the sources drift, as senders do that have clocks and schedulers
//! of their own.

use super::{Burst, CrossTraffic, Process};
use sparelane_core::{Dur, Stream, Time};

/// A constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConstantSpec {
    /// Packets that are sent at once, at least one.
    pub burst: u32,
    /// How far each interval may be from the mean, as a share of it, 0 to 1.
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
