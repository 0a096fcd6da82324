//! A token bucket: lets bursts of its depth pass at once, and what is beyond at its rate, in order.
//!
//! Packets wait for as long as it takes; none is dropped. Since nothing that happens to a packet changes when the next ones
//! are sent, none has to be kept: the process inside is asked for its next packets when those before have left, and says
//! when they came.
//!
//! The law is kept in time rather than in tokens, without rounding from packet to packet: `full_at` is when the bucket will
//! be full again (the virtual scheduling algorithm of ITU-T I.371, annex A).

use super::{Burst, Process};
use sparelane_core::{Dur, Rate, Time};

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// The rate at which it fills, on the wire: the source's mean rate or more.
    pub rate: Rate,
    /// What it holds, bytes on the wire: a packet or more.
    pub depth_bytes: u64,
}

/// A process behind a bucket that is full at the start.
#[derive(Debug)]
pub(super) struct Shaped {
    inner: Box<dyn Process>,
    /// The burst that is leaving.
    burst: Burst,
    /// How long a packet's tokens take to come.
    packet: Dur,
    /// How long before the bucket is full there are tokens for a packet.
    slack: Dur,
    full_at: Time,
}

impl Shaped {
    pub(super) fn new(inner: Box<dyn Process>, bucket: TokenBucket, packet_bytes: u16) -> Shaped {
        let packet_bytes = u64::from(packet_bytes);
        assert!(
            bucket.depth_bytes >= packet_bytes,
            "a bucket of {} bytes never lets a packet pass",
            bucket.depth_bytes
        );
        Shaped {
            inner,
            burst: Burst { at: Time::ZERO, packets: 0 },
            packet: bucket.rate.time_for(packet_bytes),
            slack: bucket.rate.time_for(bucket.depth_bytes - packet_bytes),
            full_at: Time::ZERO,
        }
    }
}

impl Process for Shaped {
    fn next(&mut self) -> Burst {
        if self.burst.packets == 0 {
            self.burst = self.inner.next();
        }
        if self.burst.packets == 0 || self.burst.at == Time::NEVER {
            return self.burst;
        }
        self.burst.packets -= 1;
        let allowed_from = Time::from_ps(self.full_at.as_ps().saturating_sub(self.slack.as_ps()));
        let at = self.burst.at.max(allowed_from);
        self.full_at = self.full_at.max(at).saturating_add(self.packet);
        Burst { at, packets: 1 }
    }
}
