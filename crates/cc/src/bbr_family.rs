//! Components shared by the versions of BBR: round trips counted in delivered bytes, a pace that follows the bandwidth,
//! the full-pipe test, and the course of PROBE_RTT.
//!
//! Sources: draft-cardwell-iccrg-bbr-congestion-control-00 sections 4.1.1.3, 4.2.1, 4.3.2.2 and 4.3.5.
//! draft-ietf-ccwg-bbr-06 keeps these rules in sections 5.5.1, 5.6.2, 5.3.1.2 and 5.3.4.

use crate::contract::{Ack, Cx, Delivery};
use crate::pace::PacketSize;
use sparelane_core::{Dur, Rate, Time};

/// The assumed round-trip time before the first sample.
const UNKNOWN_RTT: Dur = Dur::from_ms(1);

/// The pipe is full if the bandwidth grows by less than this factor
const FULL_BANDWIDTH_GROWTH: f64 = 1.25;
/// in this number of round trips.
const FULL_BANDWIDTH_ROUNDS: u32 = 3;

/// Round trips in delivered bytes: one ends with the acknowledgment of a segment sent after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    pub(crate) delivered_bytes: u64,
    ends_at_bytes: u64,
    /// True if the acknowledgment being processed begins a round trip.
    pub(crate) starts: bool,
}

impl Rounds {
    /// Counts newly delivered bytes.
    pub(crate) fn deliver(&mut self, bytes: u64) {
        self.delivered_bytes += bytes;
        self.starts = false;
    }

    /// Begins a round trip now and abandons the one in progress.
    pub(crate) fn begin(&mut self) {
        self.ends_at_bytes = self.delivered_bytes;
    }

    /// Returns true if `sample` begins the next round trip.
    pub(crate) fn advance(&mut self, sample: &Delivery) -> bool {
        if sample.prior_delivered_bytes < self.ends_at_bytes {
            return false;
        }
        self.begin();
        self.starts = true;
        true
    }
}

/// The pacing rate: the window per round-trip time until there is a bandwidth estimate, then a multiple of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    pub(crate) pace: Rate,
    packets: PacketSize,
    /// The fraction by which the pace stays below gain times bandwidth.
    margin: f64,
    /// True if the initial pace was computed from a measured round-trip time rather than [`UNKNOWN_RTT`].
    is_by_rtt: bool,
}

impl Pacer {
    /// Creates a pacer for a window of `cwnd_bytes` before there is a round-trip time.
    pub(crate) fn new(margin: f64, packets: PacketSize, cwnd_bytes: u64, startup_gain: f64) -> Pacer {
        let mut pacer = Pacer { pace: Rate::from_bps(1), packets, margin, is_by_rtt: false };
        pacer.pace_by_window(cwnd_bytes, UNKNOWN_RTT, startup_gain);
        pacer
    }

    fn pace_by_window(&mut self, cwnd_bytes: u64, rtt: Dur, gain: f64) {
        self.set(Rate::of(cwnd_bytes, rtt), gain);
    }

    /// Returns the time that a full packet takes at the pace.
    pub(crate) fn interval(&self) -> Dur {
        self.pace.time_for(self.packets.wire_bytes())
    }

    /// Sets the pace so that the payload rate is `gain` times `bandwidth`, less the margin.
    pub(crate) fn set(&mut self, bandwidth: Rate, gain: f64) {
        self.pace = self.of(bandwidth, gain);
    }

    fn of(&self, bandwidth: Rate, gain: f64) -> Rate {
        self.packets.on_the_wire(bandwidth).scaled(gain * (1.0 - self.margin)).max(Rate::from_bps(1))
    }

    /// Recomputes the initial pace from the window at the first round-trip time sample.
    pub(crate) fn learn_rtt(&mut self, cwnd_bytes: u64, startup_gain: f64, cx: &Cx<'_>) {
        if let (false, Some(srtt)) = (self.is_by_rtt, cx.srtt) {
            self.is_by_rtt = true;
            self.pace_by_window(cwnd_bytes, srtt, startup_gain);
        }
    }

    /// Follows the bandwidth, once there is a sample of it: losses can fill the pipe before. Until the pipe is full, the
    /// pace only rises.
    pub(crate) fn follow(&mut self, bandwidth: Rate, gain: f64, pipe_is_full: bool) {
        if bandwidth == Rate::default() {
            return;
        }
        let pace = self.of(bandwidth, gain);
        if pipe_is_full || pace > self.pace {
            self.pace = pace;
        }
    }
}

/// Detects the end of bandwidth growth: at most 25 % in three round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    /// The bandwidth at the last growth. `rounds` counts the round trips since.
    best: Rate,
    rounds: u32,
}

impl Growth {
    /// Records a round trip that ended with `bandwidth`. Returns true if growth has ended.
    pub(crate) fn has_ended(&mut self, bandwidth: Rate) -> bool {
        if bandwidth >= self.best.scaled(FULL_BANDWIDTH_GROWTH) {
            self.begin(bandwidth);
            return false;
        }
        self.rounds += 1;
        self.rounds >= FULL_BANDWIDTH_ROUNDS
    }

    /// Restarts the test from `bandwidth`.
    pub(crate) fn begin(&mut self, bandwidth: Rate) {
        *self = Growth { best: bandwidth, rounds: 0 };
    }

    /// Makes any bandwidth count as growth. The round trips without growth stay counted until then.
    pub(crate) fn forget_best(&mut self) {
        self.best = Rate::default();
    }
}

/// The end of PROBE_RTT, set once the volume in flight is low enough.
#[derive(Clone, Copy, Debug)]
struct ProbeRttEnd {
    at: Time,
    round_done: bool,
}

/// The course of PROBE_RTT.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeRtt {
    end: Option<ProbeRttEnd>,
    /// The range of delivered counts at which PROBE_RTT limited the sender. Rate samples of segments sent in this range
    /// understate the path.
    held_back: Option<(u64, u64)>,
}

impl ProbeRtt {
    pub(crate) fn begin(&mut self, rounds: &Rounds) {
        self.end = None;
        self.held_back = Some((rounds.delivered_bytes, rounds.delivered_bytes));
    }

    /// Processes an acknowledgment during PROBE_RTT, which lasts for `time` and at least a round trip from the moment
    /// when at most `window_bytes` are in flight. Returns true at its end.
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

    /// Returns true if the minimum time of PROBE_RTT has passed.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.end.is_some_and(|end| now > end.at)
    }

    /// Returns true if the application or PROBE_RTT, rather than the path, limited the sample.
    pub(crate) fn limits(&self, sample: &Delivery) -> bool {
        let held_back = |(from, to)| (from..=to).contains(&sample.prior_delivered_bytes);
        sample.app_limited || self.held_back.is_some_and(held_back)
    }
}
