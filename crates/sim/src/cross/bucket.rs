//! A token bucket: passes bursts up to its depth at once, and further packets at its rate, in order.
//!
//! Packets wait as long as necessary; none is dropped. The fate of a packet does not change when later ones are sent,
//! so none is stored: the process inside is asked for its next packets once the previous ones have left, and returns
//! their arrival time.
//!
//! The state is a time instead of a number of tokens, which avoids rounding per packet: `full_at` is the time at which
//! the bucket will be full again (the virtual scheduling algorithm of ITU-T I.371, annex A).

use super::{Burst, Process};
use sparelane_core::{Dur, Rate, Time};

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// The fill rate on the wire: the source's mean rate or more.
    pub rate: Rate,
    /// The depth in bytes on the wire: a packet or more.
    pub depth_bytes: u64,
}

/// A process behind a bucket, which is full at the start.
#[derive(Debug)]
pub(super) struct Shaped {
    inner: Box<dyn Process>,
    /// The burst that is leaving.
    burst: Burst,
    /// The time in which the tokens of one packet accumulate.
    packet: Dur,
    /// The time from having tokens for one packet to being full.
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
