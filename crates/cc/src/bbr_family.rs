//! What the versions of BBR have in common: round trips counted in bytes delivered, a pace that follows a bandwidth, the
//! test whether the pipe is full, and the course of PROBE_RTT.
//!
//! Sources: draft-cardwell-iccrg-bbr-congestion-control-00 sections 4.1.1.3, 4.2.1, 4.3.2.2 and 4.3.5, whose rules
//! draft-ietf-ccwg-bbr-04 keeps in sections 5.5.1, 5.6.2, 5.3.1.2 and 5.3.4.

use crate::contract::{Ack, Cx, Delivery};
use crate::pace::PacketSize;
use sparelane_core::{Dur, Rate, Time};

/// Stands for the round-trip time before there is a sample.
const UNKNOWN_RTT: Dur = Dur::from_ms(1);

/// The pipe is full where the bandwidth grew by less than this factor...
const FULL_BANDWIDTH_GROWTH: f64 = 1.25;
/// ...in so many round trips.
const FULL_BANDWIDTH_ROUNDS: u32 = 3;

/// Round trips, in bytes delivered: one is over when a segment is acknowledged that was sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    pub(crate) delivered_bytes: u64,
    ends_at_bytes: u64,
    /// Whether the acknowledgment that is handled now begins one.
    pub(crate) starts: bool,
}

impl Rounds {
    /// An acknowledgment tells of so many bytes more.
    pub(crate) fn deliver(&mut self, bytes: u64) {
        self.delivered_bytes += bytes;
        self.starts = false;
    }

    /// A round trip begins now, whatever was under way.
    pub(crate) fn begin(&mut self) {
        self.ends_at_bytes = self.delivered_bytes;
    }

    /// Whether `sample` begins the next round trip.
    pub(crate) fn advance(&mut self, sample: &Delivery) -> bool {
        if sample.prior_delivered_bytes < self.ends_at_bytes {
            return false;
        }
        self.begin();
        self.starts = true;
        true
    }
}

/// The pace: of the window in a round-trip time until there is a bandwidth, then of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    pub(crate) pace: Rate,
    packets: PacketSize,
    /// By how much it stays below gain times bandwidth.
    margin: f64,
    /// It was set with a round-trip time at the start, and not in ignorance.
    is_by_rtt: bool,
}

impl Pacer {
    /// The pace before there is a round-trip time, of a window of `cwnd_bytes`.
    pub(crate) fn new(margin: f64, packets: PacketSize, cwnd_bytes: u64, startup_gain: f64) -> Pacer {
        let mut pacer = Pacer { pace: Rate::from_bps(1), packets, margin, is_by_rtt: false };
        pacer.pace_by_window(cwnd_bytes, UNKNOWN_RTT, startup_gain);
        pacer
    }

    fn pace_by_window(&mut self, cwnd_bytes: u64, rtt: Dur, gain: f64) {
        self.set(Rate::of(cwnd_bytes, rtt), gain);
    }

    /// How long a full packet takes at the pace.
    pub(crate) fn interval(&self) -> Dur {
        self.pace.time_for(self.packets.wire_bytes())
    }

    /// Paces packets so that their payload has `gain` times this bandwidth, but for the margin.
    pub(crate) fn set(&mut self, bandwidth: Rate, gain: f64) {
        self.pace = self.of(bandwidth, gain);
    }

    fn of(&self, bandwidth: Rate, gain: f64) -> Rate {
        self.packets.on_the_wire(bandwidth).scaled(gain * (1.0 - self.margin)).max(Rate::from_bps(1))
    }

    /// The first sample of the round-trip time sets the pace by the window.
    pub(crate) fn learn_rtt(&mut self, cwnd_bytes: u64, startup_gain: f64, cx: &Cx<'_>) {
        if let (false, Some(srtt)) = (self.is_by_rtt, cx.srtt) {
            self.is_by_rtt = true;
            self.pace_by_window(cwnd_bytes, srtt, startup_gain);
        }
    }

    /// Follows the bandwidth: upwards only, until the pipe is full.
    pub(crate) fn follow(&mut self, bandwidth: Rate, gain: f64, pipe_is_full: bool) {
        let pace = self.of(bandwidth, gain);
        if pipe_is_full || pace > self.pace {
            self.pace = pace;
        }
    }
}

/// Whether the bandwidth has stopped to grow: three round trips brought no more than 25 %.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    /// The bandwidth when it last grew, and the round trips since.
    best: Rate,
    rounds: u32,
}

impl Growth {
    /// A round trip ended with this bandwidth: whether it is one too many without growth.
    pub(crate) fn has_ended(&mut self, bandwidth: Rate) -> bool {
        if bandwidth >= self.best.scaled(FULL_BANDWIDTH_GROWTH) {
            self.begin(bandwidth);
            return false;
        }
        self.rounds += 1;
        self.rounds >= FULL_BANDWIDTH_ROUNDS
    }

    /// Begins anew from this bandwidth.
    pub(crate) fn begin(&mut self, bandwidth: Rate) {
        *self = Growth { best: bandwidth, rounds: 0 };
    }

    /// Any bandwidth counts as growth; the round trips without stay counted until then.
    pub(crate) fn forget_best(&mut self) {
        self.best = Rate::default();
    }
}

/// The end of PROBE_RTT, once little enough is in flight.
#[derive(Clone, Copy, Debug)]
struct ProbeRttEnd {
    at: Time,
    round_done: bool,
}

/// The course of PROBE_RTT.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeRtt {
    end: Option<ProbeRttEnd>,
    /// Segments sent when so much had been delivered show less than the path can carry: PROBE_RTT held them back.
    held_back: Option<(u64, u64)>,
}

impl ProbeRtt {
    pub(crate) fn begin(&mut self, rounds: &Rounds) {
        self.end = None;
        self.held_back = Some((rounds.delivered_bytes, rounds.delivered_bytes));
    }

    /// An acknowledgment came in it. It lasts for `time` and a round trip from when `window_bytes` are in flight at most.
    /// Returns whether it is over.
    pub(crate) fn advance(&mut self, ack: &Ack, rounds: &mut Rounds, window_bytes: u64, time: Dur, now: Time) -> bool {
        if let Some((_, until)) = &mut self.held_back {
            *until = rounds.delivered_bytes + ack.in_flight_bytes;
        }
        match &mut self.end {
            None if ack.in_flight_bytes <= window_bytes => {
                self.end = Some(ProbeRttEnd { at: now + time, round_done: false });
                rounds.begin();
                false
            }
            None => false,
            Some(end) => {
                end.round_done |= rounds.starts;
                end.round_done && self.is_over(now)
            }
        }
    }

    /// Whether its time is over.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.end.is_some_and(|end| now > end.at)
    }

    /// Whether something other than the path limited the sample: the application, or PROBE_RTT.
    pub(crate) fn limits(&self, sample: &Delivery) -> bool {
        let held_back = |(from, to)| (from..=to).contains(&sample.prior_delivered_bytes);
        sample.app_limited || self.held_back.is_some_and(held_back)
    }
}
