//! Window validation: what a window is worth that the application does not fill (RFC 7661).
//!
//! `pipeACK` is the most that was acknowledged in a round trip, of the last three round trips or the last second. While that is half
//! of the window or more, the window is validated and grows as its law says, whether or not it was what last stopped the sender. Below
//! that it neither grows nor shrinks, so that an application may pause and go on as before; but what congestion then finds is not the
//! window that was kept but what is in use, and after five minutes in which nothing has shown that the path bears it, half of it goes.
//!
//! Where we differ: the volume of a round trip is counted over the last 1 to 9/8 smoothed round trips, at every acknowledgment, and not
//! once a round trip (section 4.2 leaves the method open); and in slow start a quarter of the window is enough, since the window
//! doubles in the very round trip that is counted.

use super::law::{Window, WindowLaw, Windowed};
use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Phase, Sent};
use sparelane_core::{Dur, Rate, Time};
use std::collections::VecDeque;

/// The non-validated period (section 4.4.3).
const NON_VALIDATED_PERIOD: Dur = Dur::from_secs(300);

/// The least time that a sample of `pipeACK` counts (section 4.2).
const LEAST_SAMPLING_PERIOD: Dur = Dur::from_secs(1);

/// And the round trips that it counts.
const SAMPLING_ROUND_TRIPS: u64 = 3;

/// Marks a round trip.
const MARKS: u64 = 8;

/// A `pipeACK` that validates this window, bytes.
fn enough_bytes(window: &Window) -> u64 {
    window.cwnd / if window.cwnd < window.ssthresh { 4 } else { 2 }
}

/// What was seen of one connection.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    delivered_bytes: u64,
    /// What had been delivered at some instants of the last round trip, the oldest first.
    marks: VecDeque<(Time, u64)>,
    /// What was delivered in a round trip, and until when that counts: later ones are smaller.
    samples: VecDeque<(Time, u64)>,
    /// From when on `pipeACK` is defined: two round trips after the first acknowledgment, or the first since the last recovery.
    defined_from: Option<Time>,
    /// When a half of the window goes, if nothing validates it.
    expires: Option<Time>,
    /// What was in use when an episode of recovery began in a window that was not validated.
    in_use_before_recovery: Option<u64>,
}

impl Validation {
    /// An acknowledgment delivers this much.
    pub fn observe(&mut self, now: Time, ack: &Ack, srtt: Option<Dur>) {
        self.delivered_bytes += ack.delivered_bytes;
        let Some(srtt) = srtt else { return };
        self.defined_from.get_or_insert(now + srtt * 2);
        match self.marks.back_mut() {
            // Of what comes at one instant, all counts as delivered then.
            Some((at, delivered_bytes)) if *at == now => *delivered_bytes = self.delivered_bytes,
            Some((at, _)) if *at + srtt / MARKS > now => {}
            _ => self.marks.push_back((now, self.delivered_bytes)),
        }
        while self.marks.get(1).is_some_and(|&(at, _)| at + srtt <= now) {
            self.marks.pop_front();
        }
        let Some(&(at, before)) = self.marks.front().filter(|&&(at, _)| at + srtt <= now) else { return };
        debug_assert!(at <= now, "a mark of the future");
        let sample = self.delivered_bytes - before;
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

    /// The variable of section 4.2, bytes; `None` while it is undefined.
    fn pipe_ack(&mut self, now: Time) -> Option<u64> {
        self.forget(now);
        let is_defined = self.defined_from.is_some_and(|from| now >= from);
        is_defined.then(|| self.samples.front().map_or(0, |&(_, sample)| sample))
    }

    /// Whether the window may grow (section 4.3). From the first time on that it may not, five minutes run.
    pub fn validates(&mut self, now: Time, window: &Window) -> bool {
        let is_validated = self.pipe_ack(now).is_none_or(|bytes| bytes >= enough_bytes(window));
        if is_validated {
            self.expires = None;
        } else if self.expires.is_none() {
            self.expires = Some(now + NON_VALIDATED_PERIOD);
        }
        is_validated
    }

    /// When time alone may change something.
    pub fn next_timer(&self) -> Time {
        let of_samples = || self.samples.front().map_or(Time::NEVER, |&(until, _)| until + Dur::from_ps(1));
        self.expires.unwrap_or_else(of_samples)
    }

    /// Time has passed. After five minutes the window is halved, though to no less than `initial_bytes`, and what slow start may find
    /// again is three quarters of it (section 4.4.3).
    pub fn handle_timer(&mut self, now: Time, window: &mut Window, initial_bytes: u64) {
        if self.expires.is_some_and(|at| now >= at) {
            window.ssthresh = window.ssthresh.max(window.cwnd / 4 * 3);
            window.cwnd = (window.cwnd / 2).max(initial_bytes.min(window.cwnd));
            self.expires = None;
        }
        self.validates(now, window);
    }

    /// Congestion, with so much in flight: what the law is to cut, in place of a window that is not validated (section 4.4.1).
    pub fn in_use(&mut self, now: Time, window: &Window, flight_bytes: u64) -> Option<u64> {
        let pipe_ack = self.pipe_ack(now).filter(|&bytes| bytes < enough_bytes(window))?;
        Some(pipe_ack.max(flight_bytes))
    }

    /// Losses are to be repaired, in a window of which so much was in use if it was not validated.
    pub fn begin_recovery(&mut self, in_use: Option<u64>) {
        self.in_use_before_recovery = in_use;
    }

    /// They are repaired, and took so much to be sent again: the window then, where it was not validated before (section 4.4.1).
    /// `pipeACK` is undefined once more.
    pub fn end_recovery(&mut self, resent_bytes: u64) -> Option<u64> {
        self.defined_from = None;
        self.marks.clear();
        self.samples.clear();
        self.expires = None;
        self.in_use_before_recovery.take().map(|bytes| bytes.saturating_sub(resent_bytes) / 2)
    }
}

/// A controller made of a law, with a window that is validated.
#[derive(Debug)]
pub struct Validated<L> {
    windowed: Windowed<L>,
    validation: Validation,
    initial_bytes: u64,
}

impl<L: WindowLaw + 'static> Validated<L> {
    /// `windowed`, which is new.
    pub fn of(windowed: Windowed<L>) -> Validated<L> {
        let initial_bytes = windowed.limits().cwnd_bytes;
        Validated { windowed, validation: Validation::default(), initial_bytes }
    }
}

impl<L: WindowLaw + 'static> CongestionControl for Validated<L> {
    fn needs(&self) -> Needs {
        Needs { timer: true, ..self.windowed.needs() }
    }

    fn on_established(&mut self, explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.windowed.on_established(explicit_rate, cx);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        if ack.phase == Phase::Open {
            self.validation.observe(cx.now, ack, cx.srtt);
        }
        let cwnd_limited = self.validation.validates(cx.now, &self.windowed.window);
        self.windowed.on_ack(&Ack { cwnd_limited, ..*ack }, cx);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        let (Congestion::Loss { flight_bytes }
        | Congestion::Marked { flight_bytes }
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
        self.windowed.window.cwnd = in_use.min(before.cwnd);
        let judged = match event {
            Congestion::Loss { .. } => Congestion::Loss { flight_bytes: in_use },
            Congestion::Marked { .. } => Congestion::Marked { flight_bytes: in_use },
            _ => Congestion::Timeout { flight_bytes: in_use, first: true },
        };
        self.windowed.on_congestion(judged, cx);
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

    /// A connection whose round trip is 100 ms.
    struct Life {
        controller: Validated<NewReno>,
        now: Time,
        rng: Stream,
    }

    impl Life {
        fn new() -> Life {
            let windowed = Windowed::new(NewReno::default(), WindowConfig::of(&Values::default()), MSS);
            Life { controller: Validated::of(windowed), now: Time::ZERO, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn with<R>(&mut self, call: impl FnOnce(&mut Validated<NewReno>, &mut Cx<'_>) -> R) -> R {
            let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt: Some(RTT), min_rtt: Some(RTT), rng: &mut self.rng };
            call(&mut self.controller, &mut cx)
        }

        /// For so many round trips the application sends so many segments in each, at even distances.
        fn sends(&mut self, round_trips: u64, segments: u64) {
            for _ in 0..round_trips * segments {
                self.now += RTT / segments;
                self.fire();
                // Whether the window was full is no question where it is validated.
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
        let mut life = Life::new();
        let windows: Vec<_> = (0..5)
            .map(|_| {
                life.sends(1, life.cwnd());
                life.cwnd()
            })
            .collect();
        assert_eq!(windows, [20, 40, 80, 160, 320]);
    }

    /// Section 4.3: half of the window is enough, less is not.
    #[test]
    fn the_window_grows_while_half_of_it_is_in_use_and_is_kept_while_less_is() {
        let mut life = Life::new();
        life.grows_to(160);
        life.controller.windowed.window.ssthresh = 160 * MSS;
        life.sends(100, 100);
        let grown = life.cwnd();
        assert!((200..=226).contains(&grown), "{grown}: up to twice what is in use, and to an eighth above");
        life.sends(20, 20);
        let kept = life.cwnd();
        assert!((grown..=grown + 3).contains(&kept), "{kept}: what was in use counts for a second");
        life.sends(2000, 20);
        assert_eq!(life.cwnd(), kept, "kept for 200 s");
    }

    /// Section 4.2: the most of a second counts, so that a short pause is none.
    #[test]
    fn a_pause_of_less_than_a_second_changes_nothing() {
        let mut life = Life::new();
        life.grows_to(160);
        life.waits(Dur::from_ms(900));
        let before = life.cwnd();
        life.sends(1, before);
        assert!(life.cwnd() > before);
    }

    /// Section 4.4.3.
    #[test]
    fn after_five_minutes_half_of_the_window_goes_and_slow_start_may_find_three_quarters_again() {
        let mut life = Life::new();
        life.grows_to(160);
        life.waits(Dur::from_secs(299));
        assert_eq!(life.cwnd(), 160);
        life.waits(Dur::from_secs(4));
        assert_eq!((life.cwnd(), life.controller.windowed.window.ssthresh >= 120 * MSS), (80, true));
        life.waits(Dur::from_secs(3600));
        assert_eq!(life.cwnd(), 10, "never below the initial window");
    }

    /// Section 4.4.1: the window is what was in use, less what had to be sent again, halved.
    #[test]
    fn congestion_finds_what_is_in_use() {
        let mut life = Life::new();
        life.grows_to(160);
        life.controller.windowed.window.ssthresh = 160 * MSS;
        life.sends(30, 20);
        let kept = life.cwnd();
        assert!((160..=165).contains(&kept), "{kept}");
        life.with(|controller, cx| controller.on_congestion(Congestion::Loss { flight_bytes: 15 * MSS }, cx));
        assert!((10..=12).contains(&life.cwnd()), "{}: half of pipeACK, 20 to 22.5", life.cwnd());
        life.with(|controller, cx| controller.on_repaired(4 * MSS, cx));
        assert!((8..=9).contains(&life.cwnd()), "{}: half of 16 to 18.5", life.cwnd());
        // pipeACK is undefined until there is a sample, and what is sent counts.
        life.sends(1, life.cwnd());
        assert!(life.cwnd() >= 9);
    }

    #[test]
    fn congestion_in_a_window_that_is_full_is_what_it_always_was() {
        let mut life = Life::new();
        life.grows_to(160);
        life.with(|controller, cx| controller.on_congestion(Congestion::Loss { flight_bytes: 160 * MSS }, cx));
        life.with(|controller, cx| controller.on_repaired(50 * MSS, cx));
        assert_eq!(life.cwnd(), 80);
    }

    #[test]
    fn a_mistaken_cut_gives_the_whole_window_back() {
        let mut life = Life::new();
        life.grows_to(160);
        life.sends(30, 20);
        let before = life.cwnd();
        life.with(|controller, cx| controller.on_congestion(Congestion::Loss { flight_bytes: 15 * MSS }, cx));
        assert!(life.cwnd() < before / 10);
        life.with(|controller, cx| controller.on_congestion(Congestion::Spurious, cx));
        assert_eq!(life.cwnd(), before);
    }
}
