//! Window validation (RFC 7661): limits the use of a window that the application does not fill.
//!
//! `pipeACK` is the largest volume acknowledged in a round trip, over the last three round trips or the last second.
//! While it is at least half of the window, the window is validated and grows by its law, whether or not it last
//! stopped the sender. Otherwise the window neither grows nor shrinks, so that an application may pause and resume.
//! Congestion then cuts the volume in use instead of the preserved window. After five minutes without validation the
//! window is halved.
//!
//! The period of five minutes takes the place of a restart after idle: RFC 7661 updates RFC 5681 section 4.1.
//!
//! Differences from the RFC: the volume of a round trip is measured over the last 1 to 9/8 smoothed round trips at
//! every acknowledgment, not once per round trip (section 4.2 leaves the method open). In slow start a quarter of the
//! window suffices, because the window doubles within the round trip that is measured.

use super::law::{Window, WindowLaw, Windowed};
use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Phase, Sent};
use sparelane_core::{Dur, Rate, Time};
use std::collections::VecDeque;

/// The non-validated period (section 4.4.3).
const NON_VALIDATED_PERIOD: Dur = Dur::from_secs(300);

/// The minimum time for which a sample of `pipeACK` counts (section 4.2).
const LEAST_SAMPLING_PERIOD: Dur = Dur::from_secs(1);

/// The number of round trips for which a sample counts, if that is longer.
const SAMPLING_ROUND_TRIPS: u64 = 3;

/// Number of measuring points per round trip.
const MARKS: u64 = 8;

/// Returns the `pipeACK` in bytes that validates this window.
fn enough_bytes(window: &Window) -> u64 {
    window.cwnd / if window.cwnd < window.ssthresh { 4 } else { 2 }
}

/// The validation state of one connection.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    delivered_bytes: u64,
    /// Delivered bytes at several times of the last round trip, the oldest first.
    marks: VecDeque<(Time, u64)>,
    /// Bytes delivered in a round trip, with the time until which the sample counts. Later samples are smaller.
    samples: VecDeque<(Time, u64)>,
    /// The time from which `pipeACK` is defined: two round trips after the first acknowledgment of the connection or
    /// since the last recovery.
    defined_from: Option<Time>,
    /// The time at which the window is halved if nothing validates it before.
    expires: Option<Time>,
    /// The volume in use when recovery began, if the window was not validated.
    in_use_before_recovery: Option<u64>,
}

impl Validation {
    /// Counts an acknowledgment and takes a sample of `pipeACK`.
    pub fn observe(&mut self, now: Time, ack: &Ack, srtt: Option<Dur>) {
        self.delivered_bytes += ack.delivered_bytes;
        let Some(srtt) = srtt else { return };
        self.defined_from.get_or_insert(now + srtt * 2);
        match self.marks.back_mut() {
            // Simultaneous acknowledgments share one measuring point.
            Some((at, delivered_bytes)) if *at == now => *delivered_bytes = self.delivered_bytes,
            Some((at, _)) if *at + srtt / MARKS > now => {}
            _ => self.marks.push_back((now, self.delivered_bytes)),
        }
        while self.marks.get(1).is_some_and(|&(at, _)| at + srtt <= now) {
            self.marks.pop_front();
        }
        // The oldest point lies a round trip or slightly more in the past.
        let Some(&(at, before)) = self.marks.front().filter(|&&(at, _)| at + srtt <= now) else { return };
        debug_assert!(at <= now, "a mark lies in the future");
        let sample = self.delivered_bytes - before;
        // A larger sample outlives the smaller ones before it (a monotonic queue).
        while self.samples.back().is_some_and(|&(_, smaller)| smaller <= sample) {
            self.samples.pop_back();
        }
        let period = (srtt * SAMPLING_ROUND_TRIPS).max(LEAST_SAMPLING_PERIOD);
        self.samples.push_back((now + period, sample));
        self.forget(now);
    }

    fn forget(&mut self, now: Time) {
        while self.samples.front().is_some_and(|&(until, _)| until < now) {
            self.samples.pop_front();
        }
    }

    /// Returns `pipeACK` (section 4.2) in bytes, or `None` while it is undefined.
    fn pipe_ack(&mut self, now: Time) -> Option<u64> {
        self.forget(now);
        let is_defined = self.defined_from.is_some_and(|from| now >= from);
        is_defined.then(|| self.samples.front().map_or(0, |&(_, sample)| sample))
    }

    /// Returns true if the window may grow (section 4.3). Otherwise the five minutes of the non-validated period start,
    /// if they are not running.
    pub fn validates(&mut self, now: Time, window: &Window) -> bool {
        let is_validated = self.pipe_ack(now).is_none_or(|bytes| bytes >= enough_bytes(window));
        if is_validated {
            self.expires = None;
        } else if self.expires.is_none() {
            self.expires = Some(now + NON_VALIDATED_PERIOD);
        }
        is_validated
    }

    /// Returns the next time at which the passage of time may change the state.
    pub fn next_timer(&self) -> Time {
        let of_samples = || self.samples.front().map_or(Time::NEVER, |&(until, _)| until + Dur::from_ps(1));
        self.expires.unwrap_or_else(of_samples)
    }

    /// Advances the state to `now`. After five minutes the window is halved, down to `initial_bytes` at the lowest, and
    /// slow start may regain three quarters of it (section 4.4.3).
    pub fn handle_timer(&mut self, now: Time, window: &mut Window, initial_bytes: u64) {
        if self.expires.is_some_and(|at| now >= at) {
            window.ssthresh = window.ssthresh.max(window.cwnd / 4 * 3);
            window.cwnd = (window.cwnd / 2).max(initial_bytes.min(window.cwnd));
            self.expires = None;
        }
        self.validates(now, window);
    }

    /// Returns the volume to cut at congestion instead of a window that is not validated (section 4.4.1), or `None` if
    /// the window is validated.
    pub fn in_use(&mut self, now: Time, window: &Window, flight_bytes: u64) -> Option<u64> {
        let pipe_ack = self.pipe_ack(now).filter(|&bytes| bytes < enough_bytes(window))?;
        Some(pipe_ack.max(flight_bytes))
    }

    /// Records the start of recovery. `in_use` is the volume in use if the window was not validated.
    pub fn begin_recovery(&mut self, in_use: Option<u64>) {
        self.in_use_before_recovery = in_use;
    }

    /// Records the end of recovery, in which `resent_bytes` were retransmitted. Returns the new window if it was not
    /// validated before (section 4.4.1). `pipeACK` becomes undefined.
    pub fn end_recovery(&mut self, resent_bytes: u64) -> Option<u64> {
        self.defined_from = None;
        self.marks.clear();
        self.samples.clear();
        self.expires = None;
        self.in_use_before_recovery.take().map(|bytes| bytes.saturating_sub(resent_bytes) / 2)
    }
}

/// A window controller whose window is validated.
#[derive(Debug)]
pub struct Validated<L> {
    windowed: Windowed<L>,
    validation: Validation,
    initial_bytes: u64,
}

impl<L: WindowLaw + 'static> Validated<L> {
    /// Wraps `windowed`, which must be new.
    pub fn of(windowed: Windowed<L>) -> Validated<L> {
        let initial_bytes = windowed.limits().cwnd_bytes;
        Validated { windowed, validation: Validation::default(), initial_bytes }
    }
}

impl<L: WindowLaw + 'static> CongestionControl for Validated<L> {
    fn needs(&self) -> Needs {
        Needs { timer: true, ..self.windowed.needs() }
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        self.windowed.slow_start_threshold()
    }

    fn start_at_threshold(&mut self, bytes: u64) {
        self.windowed.start_at_threshold(bytes);
    }

    fn on_established(&mut self, explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.windowed.on_established(explicit_rate, cx);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        if ack.phase == Phase::Open {
            self.validation.observe(cx.now, ack, cx.srtt);
        }
        // Validation replaces the usual test whether the window was full.
        let cwnd_limited = self.validation.validates(cx.now, &self.windowed.window);
        self.windowed.on_ack(&Ack { cwnd_limited, ..*ack }, cx);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        let (Congestion::Loss { flight_bytes }
        | Congestion::Marked { flight_bytes, .. }
        | Congestion::Timeout { flight_bytes, first: true }) = event
        else {
            self.windowed.on_congestion(event, cx);
            return;
        };
        let in_use = self.validation.in_use(cx.now, &self.windowed.window, flight_bytes);
        self.validation.begin_recovery(in_use.filter(|_| matches!(event, Congestion::Loss { .. })));
        let Some(in_use) = in_use else {
            self.windowed.on_congestion(event, cx);
            return;
        };
        let before = self.windowed.window;
        // The law cuts the volume in use, at least a segment: nothing is in use if the sender's own interface is full
        // after a pause, and a window of zero would never open again.
        self.windowed.window.cwnd = in_use.max(cx.mss_bytes).min(before.cwnd);
        let judged = match event {
            Congestion::Loss { .. } => Congestion::Loss { flight_bytes: in_use },
            Congestion::Marked { by_ecn, .. } => Congestion::Marked { flight_bytes: in_use, by_ecn },
            _ => Congestion::Timeout { flight_bytes: in_use, first: true },
        };
        self.windowed.on_congestion(judged, cx);
        // A spurious event restores the whole window.
        self.windowed.before_cut = before;
    }

    fn on_repaired(&mut self, resent_bytes: u64, cx: &mut Cx<'_>) {
        let window = &mut self.windowed.window;
        if let Some(bytes) = self.validation.end_recovery(resent_bytes) {
            window.cwnd = bytes.clamp(2 * cx.mss_bytes, window.cwnd.max(2 * cx.mss_bytes));
            window.ssthresh = window.cwnd;
        }
    }

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        self.windowed.on_sent(sent, cx);
    }

    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        self.windowed.on_lost(lost, cx);
    }

    fn paces(&self) -> bool {
        self.windowed.paces()
    }

    fn next_timer(&self) -> Time {
        self.validation.next_timer()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        self.validation.handle_timer(cx.now, &mut self.windowed.window, self.initial_bytes);
    }

    fn limits(&self) -> Limits {
        self.windowed.limits()
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.windowed.trace(put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algos::newreno::NewReno;
    use crate::param::Values;
    use crate::window::WindowConfig;
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;
    const RTT: Dur = Dur::from_ms(100);

    /// A connection with a round-trip time of 100 ms.
    struct Connection {
        controller: Validated<NewReno>,
        now: Time,
        rng: Stream,
    }

    impl Connection {
        fn new() -> Connection {
            let windowed = Windowed::new(NewReno::default(), WindowConfig::of(&Values::default()), MSS);
            Connection { controller: Validated::of(windowed), now: Time::ZERO, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn with<R>(&mut self, call: impl FnOnce(&mut Validated<NewReno>, &mut Cx<'_>) -> R) -> R {
            let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: Some(RTT), min_rtt: Some(RTT), rng: &mut self.rng };
            call(&mut self.controller, &mut cx)
        }

        /// Simulates an application that sends `segments` evenly spaced segments in each of `round_trips` round trips.
        fn sends(&mut self, round_trips: u64, segments: u64) {
            for _ in 0..round_trips * segments {
                self.now += RTT / segments;
                self.fire();
                // A validated window grows whether or not it was full.
                let ack = Ack { cwnd_limited: false, ..Ack::in_sequence(MSS) };
                self.with(|controller, cx| controller.on_ack(&ack, cx));
            }
        }

        /// Fires the timers that are due.
        fn fire(&mut self) {
            while self.controller.next_timer() <= self.now {
                self.with(Validated::on_timer);
            }
        }

        fn waits(&mut self, span: Dur) {
            let until = self.now + span;
            while self.controller.next_timer() <= until {
                self.now = self.controller.next_timer();
                self.with(Validated::on_timer);
            }
            self.now = until;
        }

        fn cwnd(&self) -> u64 {
            self.controller.limits().cwnd_bytes / MSS
        }

        fn grows_to(&mut self, segments: u64) {
            while self.cwnd() < segments {
                self.sends(1, self.cwnd());
            }
        }
    }

    /// An application that fills the window doubles it in every round trip, as without validation.
    #[test]
    fn slow_start_validates_itself() {
        let mut connection = Connection::new();
        let windows: Vec<_> = (0..5)
            .map(|_| {
                connection.sends(1, connection.cwnd());
                connection.cwnd()
            })
            .collect();
        assert_eq!(windows, [20, 40, 80, 160, 320]);
    }

    /// Section 4.3: half of the window suffices.
    #[test]
    fn the_window_grows_while_half_of_it_is_in_use_and_is_kept_while_less_is() {
        let mut connection = Connection::new();
        connection.grows_to(160);
        connection.controller.windowed.window.ssthresh = 160 * MSS;
        connection.sends(100, 100);
        let grown = connection.cwnd();
        assert!((200..=226).contains(&grown), "{grown}: expected twice the volume in use, or up to an eighth more");
        connection.sends(20, 20);
        let kept = connection.cwnd();
        assert!((grown..=grown + 3).contains(&kept), "{kept}: samples count for a second");
        connection.sends(2000, 20);
        assert_eq!(connection.cwnd(), kept, "the window is kept for 200 s");
    }

    /// Section 4.2: samples count for at least a second, so that a short pause has no effect.
    #[test]
    fn a_pause_of_less_than_a_second_changes_nothing() {
        let mut connection = Connection::new();
        connection.grows_to(160);
        connection.waits(Dur::from_ms(900));
        let before = connection.cwnd();
        connection.sends(1, before);
        assert!(connection.cwnd() > before);
    }

    /// Section 4.4.3.
    #[test]
    fn after_five_minutes_the_window_halves_and_slow_start_may_regain_three_quarters() {
        let mut connection = Connection::new();
        connection.grows_to(160);
        connection.waits(Dur::from_secs(299));
        assert_eq!(connection.cwnd(), 160);
        connection.waits(Dur::from_secs(4));
        assert_eq!((connection.cwnd(), connection.controller.windowed.window.ssthresh >= 120 * MSS), (80, true));
        connection.waits(Dur::from_secs(3600));
        assert_eq!(connection.cwnd(), 10, "the initial window is the minimum");
    }

    /// Section 4.4.1: the new window is half of the volume in use minus the retransmitted bytes.
    #[test]
    fn congestion_cuts_the_volume_in_use() {
        let mut connection = Connection::new();
        connection.grows_to(160);
        connection.controller.windowed.window.ssthresh = 160 * MSS;
        connection.sends(30, 20);
        let kept = connection.cwnd();
        assert!((160..=165).contains(&kept), "{kept}");
        connection.with(|controller, cx| controller.on_congestion(Congestion::Loss { flight_bytes: 15 * MSS }, cx));
        assert!(
            (10..=12).contains(&connection.cwnd()),
            "{}: expected half of pipeACK, which is 20 to 22.5",
            connection.cwnd()
        );
        connection.with(|controller, cx| controller.on_repaired(4 * MSS, cx));
        assert!((8..=9).contains(&connection.cwnd()), "{}: expected half of 16 to 18.5", connection.cwnd());
        // `pipeACK` is undefined until there is a new sample, so that the window may grow.
        connection.sends(1, connection.cwnd());
        assert!(connection.cwnd() >= 9);
    }

    #[test]
    fn congestion_cuts_a_full_window_as_without_validation() {
        let mut connection = Connection::new();
        connection.grows_to(160);
        connection.with(|controller, cx| controller.on_congestion(Congestion::Loss { flight_bytes: 160 * MSS }, cx));
        connection.with(|controller, cx| controller.on_repaired(50 * MSS, cx));
        assert_eq!(connection.cwnd(), 80);
    }

    /// The interface of the sender can be full while the sender has nothing in flight.
    #[test]
    fn congestion_after_silence_leaves_a_segment() {
        for by_ecn in [false, true] {
            let mut connection = Connection::new();
            connection.grows_to(20);
            connection.waits(Dur::from_secs(20));
            let event = Congestion::Marked { flight_bytes: 0, by_ecn };
            connection.with(|controller, cx| controller.on_congestion(event, cx));
            assert_eq!((connection.cwnd(), connection.controller.windowed.window.ssthresh), (1, 2 * MSS));
        }
    }

    #[test]
    fn a_spurious_cut_restores_the_whole_window() {
        let mut connection = Connection::new();
        connection.grows_to(160);
        connection.sends(30, 20);
        let before = connection.cwnd();
        connection.with(|controller, cx| controller.on_congestion(Congestion::Loss { flight_bytes: 15 * MSS }, cx));
        assert!(connection.cwnd() < before / 10);
        connection.with(|controller, cx| controller.on_congestion(Congestion::Spurious, cx));
        assert_eq!(connection.cwnd(), before);
    }
}
