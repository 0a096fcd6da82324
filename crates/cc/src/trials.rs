//! Control by trial (PCC).
//!
//! A law chooses a rate to try and learns from the outcome. [`TrialController`] is the controller that runs the trials:
//! it paces at the rate, assigns each segment to its trial, and reports the outcome to the law.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Sent};
use crate::monitor::{Monitor, Outcome};
use crate::pace::PacketSize;
use sparelane_core::{Dur, Rate, Time};
use std::fmt::Debug;

/// The minimum number of packets in a trial; the loss rate of fewer would be too coarse.
const LEAST_PACKETS: u64 = 10;

/// The initial rate in packets per round trip. Also the minimum rate, for round trips of at least [`UNKNOWN_RTT`].
const LEAST_PACKETS_IN_ROUND_TRIP: u64 = 2;

/// The assumed round-trip time before the first sample, and the shortest one that the minimum rate is computed from. On
/// a shorter path the minimum would be too high: two packets every 2 ms exceed 10 Mb/s.
const UNKNOWN_RTT: Dur = Dur::from_ms(100);

/// A window that never binds.
const WINDOW_SEGMENTS: u64 = 1 << 32;

/// A rate to try.
#[derive(Clone, Copy, Debug)]
pub struct Trial<P> {
    /// The law's reason for this trial.
    pub purpose: P,
    /// The rate, headers included.
    pub rate: Rate,
    /// The minimum length in round trips. A trial lasts for at least ten packets.
    pub round_trips: f64,
}

/// A law that learns from trials.
pub trait TrialLaw: Debug + Send {
    /// The law's label for a trial.
    type Purpose: Copy + Debug + Send;

    /// Returns the first trial of the connection or after a pause. `first` is the rate of two packets per round trip.
    fn begin(&mut self, first: Rate, cx: &mut Cx<'_>) -> Trial<Self::Purpose>;

    /// Returns the next trial when the time of the `last` one is up. The outcome of `last` is not known yet.
    fn after(&mut self, last: Self::Purpose, cx: &mut Cx<'_>) -> Trial<Self::Purpose>;

    /// Reports the outcome of a trial. A returned trial replaces the one in progress.
    fn learn(&mut self, outcome: &Outcome<Self::Purpose>, cx: &mut Cx<'_>) -> Option<Trial<Self::Purpose>>;
}

/// A controller that runs the trials of a law.
#[derive(Debug)]
pub struct TrialController<L: TrialLaw> {
    law: L,
    monitor: Monitor<L::Purpose>,
    packets: PacketSize,
    line_rate: Rate,
    rate: Rate,
}

impl<L: TrialLaw> TrialController<L> {
    /// Creates a controller for a connection with these packet sizes. No rate exceeds `line_rate`, the rate of its
    /// interface.
    pub fn new(law: L, packets: PacketSize, line_rate: Rate) -> TrialController<L> {
        let line_rate = line_rate.max(Rate::from_bps(1));
        let rate = Rate::of(LEAST_PACKETS_IN_ROUND_TRIP * packets.wire_bytes(), UNKNOWN_RTT).min(line_rate);
        TrialController { law, monitor: Monitor::new(packets), packets, line_rate, rate }
    }

    /// Returns the rate of two packets per `round_trip`.
    fn slow(&self, round_trip: Dur) -> Rate {
        let slow = Rate::of(LEAST_PACKETS_IN_ROUND_TRIP * self.packets.wire_bytes(), round_trip);
        slow.clamp(Rate::from_bps(1), self.line_rate)
    }

    fn start(&mut self, trial: Trial<L::Purpose>, cx: &Cx<'_>) {
        let least = self.slow(cx.srtt.unwrap_or_default().max(UNKNOWN_RTT));
        self.rate = trial.rate.clamp(least, self.line_rate);
        let least = self.rate.time_for(LEAST_PACKETS * self.packets.wire_bytes());
        let length = cx.srtt.unwrap_or(UNKNOWN_RTT).scaled(trial.round_trips).max(least);
        self.monitor.begin(cx.now, trial.purpose, self.rate, length);
    }

    /// Starts the next trial if the time of the last one is up.
    fn roll(&mut self, cx: &mut Cx<'_>) {
        let Some(last) = self.monitor.under_way() else { return };
        if cx.now < self.monitor.ends_at() {
            return;
        }
        if self.monitor.is_idle() {
            // The application has no data. The next segment sent starts a new trial.
            self.monitor.clear();
            return;
        }
        let trial = self.law.after(last, cx);
        self.start(trial, cx);
    }

    fn take_outcomes(&mut self, news_sent_at: Time, cx: &mut Cx<'_>) {
        while let Some(outcome) = self.monitor.pop(news_sent_at) {
            if let Some(trial) = self.law.learn(&outcome, cx) {
                self.start(trial, cx);
            }
        }
    }
}

impl<L: TrialLaw + 'static> CongestionControl for TrialController<L> {
    fn needs(&self) -> Needs {
        Needs { segments: true, timer: true, ..Needs::default() }
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.rate = self.slow(cx.srtt.unwrap_or(UNKNOWN_RTT));
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.roll(cx);
        self.monitor.on_ack(ack);
        if let Some(delivery) = &ack.delivery {
            self.take_outcomes(delivery.sent_at, cx);
        }
    }

    fn on_congestion(&mut self, _event: Congestion, _cx: &mut Cx<'_>) {}

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        self.roll(cx);
        if self.monitor.under_way().is_none() {
            let first = self.slow(cx.srtt.unwrap_or(UNKNOWN_RTT));
            let trial = self.law.begin(first, cx);
            self.start(trial, cx);
        }
        self.monitor.on_sent(cx.now, sent);
    }

    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        self.monitor.on_lost(lost);
        self.take_outcomes(lost.sent_at, cx);
    }

    fn next_timer(&self) -> Time {
        self.monitor.ends_at()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        self.roll(cx);
    }

    fn reacts_to_marks(&self) -> bool {
        false
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: WINDOW_SEGMENTS * self.packets.mss_bytes, pacing: Some(self.rate) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rate_bps", self.rate.as_bps() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    /// Requests the same rate for every trial.
    #[derive(Debug)]
    struct FixedRate(Rate);

    impl TrialLaw for FixedRate {
        type Purpose = ();
        fn begin(&mut self, _first: Rate, cx: &mut Cx<'_>) -> Trial<()> {
            self.after((), cx)
        }
        fn after(&mut self, _last: (), _cx: &mut Cx<'_>) -> Trial<()> {
            Trial { purpose: (), rate: self.0, round_trips: 1.0 }
        }
        fn learn(&mut self, _outcome: &Outcome<()>, _cx: &mut Cx<'_>) -> Option<Trial<()>> {
            None
        }
    }

    /// Two packets of 1000 bytes in 100 ms; in 200 ms if that is the round-trip time.
    #[test]
    fn the_least_rate_is_two_packets_a_round_trip_but_no_more_on_short_paths() {
        let slowest = |srtt_ms| {
            let mut controller =
                TrialController::new(FixedRate(Rate::from_bps(1)), PacketSize::of(960), Rate::from_gbps(1));
            let mut rng = Stream::new(1, Domain::Test, 0);
            let srtt = Some(Dur::from_ms(srtt_ms));
            let mut cx = Cx { now: Time::ZERO, mss_bytes: 960, srtt, min_rtt: srtt, rng: &mut rng };
            let sent =
                Sent { segment: 0, bytes: 960, in_flight_bytes: 960, is_retransmission: false, app_limited: false };
            controller.on_sent(&sent, &mut cx);
            controller.limits().pacing
        };
        assert_eq!([2, 100, 200].map(slowest), [160, 160, 80].map(|kbps| Some(Rate::from_bps(kbps * 1000))));
    }
}
