//! LEDBAT++: LEDBAT that is fair among its own flows and does not mistake its own queue for the path.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus (section numbers of revision 01), on top of RFC 6817.
//!
//! Delays are round-trip times, so that receivers need no support. GAIN is 1 / min(16, ceil(2 TARGET / base)) (section
//! 4.2). A round trip adds GAIN segments, and beyond the target max(GAIN - C W (queuing / TARGET - 1), -W / 2) (section
//! 4.3): the decrease is multiplicative. Slow start grows by GAIN acked bytes, and the first one ends at three quarters
//! of the target (section 4.1). TARGET is 60 ms (section 4.5).
//!
//! Two round trips after slow start the connection slows down (section 4.4). It saves its window and holds two segments
//! for two round trips, so that queues drain and the empty path can be measured. Then it returns to the saved window by
//! slow start. The next slowdown follows after nine times the duration of this one, which costs at most a tenth of the
//! link.
//!
//! Differences: the draft does not say whether GAIN applies in the slow start of a slowdown; here it does. Slowdowns
//! begin and end with acknowledgments, and wait for the repair of losses to end. A round trip is the smoothed
//! round-trip time.

use super::ledbat::SMALL_INITIAL_WINDOW;
use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::delay::{BASE_HISTORY, CURRENT_FILTER, Delays};
use crate::param::{DefaultValue, Kind, Param, UNBOUNDED, Unit};
use crate::registry::Controller;
use crate::window::{INITIAL_SSTHRESH, Window, WindowConfig, WindowLaw, Windowed};
use sparelane_core::{Dur, Time};

const TARGET: Param = Param {
    name: "target",
    kind: Kind::Span { min: Dur::from_us(1), max: Dur::from_ms(100) },
    default: DefaultValue::Span(Dur::from_ms(60)),
    meaning: "target delay in the queue",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01 section 4.5",
};

const DECREASE: Param = Param {
    name: "decrease",
    kind: Kind::Number { min: 0.01, max: 100.0, unit: Unit::One },
    default: DefaultValue::Number(1.0),
    meaning: "share of the window given up per round trip at twice the target delay, at most half",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01 section 4.3 (Constant)",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "ledbat-plus-plus",
    summary: "LEDBAT by round-trip times, with multiplicative decrease and periodic slowdowns",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01",
    params: &[SMALL_INITIAL_WINDOW, INITIAL_SSTHRESH, TARGET, DECREASE, BASE_HISTORY, CURRENT_FILTER],
    wire: None,
    make: &|values, plan| {
        let law = LedbatPlusPlus {
            target: values.span(&TARGET),
            decrease: values.number(&DECREASE),
            delays: Delays::of(values),
            stage: Stage::Start,
            gain: 1.0 / LEAST_GAIN,
            change: 0.0,
            fraction: 0.0,
        };
        let config = WindowConfig {
            initial_window: values.whole(&SMALL_INITIAL_WINDOW),
            initial_ssthresh: values.whole(&INITIAL_SSTHRESH),
            slow_start_limit: 1,
            growth_limit: UNBOUNDED,
            ..WindowConfig::default()
        };
        Ok(Box::new(Windowed::new(law, config, plan.mss_bytes)))
    },
};

/// The minimum of the gain is one over this.
const LEAST_GAIN: f64 = 16.0;

/// Minimum window, and the window of a slowdown, in segments.
const LEAST_WINDOW: u64 = 2;

/// Time between slowdowns as a multiple of the duration of a slowdown.
const BETWEEN_SLOWDOWNS: u64 = 9;

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first slow start.
    Start,
    /// Congestion avoidance until the next slowdown.
    Avoid { until: Time },
    /// A slowdown.
    Slow { since: Time, until: Time },
    /// Slow start back to the window before the slowdown.
    Return { since: Time },
}

/// The LEDBAT++ window law.
#[derive(Clone, Debug)]
pub struct LedbatPlusPlus {
    target: Dur,
    decrease: f64,
    delays: Delays,
    stage: Stage,
    gain: f64,
    /// The change of the window per round trip, segments.
    change: f64,
    /// The remainder of earlier changes, less than a byte.
    fraction: f64,
}

impl LedbatPlusPlus {
    /// Moves from stage to stage.
    fn advance(&mut self, window: &mut Window, queuing: Dur, cx: &Cx<'_>) {
        let now = cx.now;
        let two_round_trips = cx.srtt.unwrap_or_default() * 2;
        match self.stage {
            Stage::Start if queuing.as_secs_f64() > 0.75 * self.target.as_secs_f64() => {
                window.ssthresh = window.ssthresh.min(window.cwnd);
                self.stage = Stage::Avoid { until: now + two_round_trips };
            }
            Stage::Start if window.cwnd >= window.ssthresh => {
                self.stage = Stage::Avoid { until: now + two_round_trips };
            }
            Stage::Avoid { until } if now >= until => {
                // The threshold saves the window to which slow start returns.
                window.ssthresh = window.cwnd.max(LEAST_WINDOW * cx.mss_bytes);
                window.cwnd = window.cwnd.min(LEAST_WINDOW * cx.mss_bytes);
                self.stage = Stage::Slow { since: now, until: now + two_round_trips };
            }
            Stage::Slow { since, until } if now >= until => self.stage = Stage::Return { since },
            Stage::Return { since } if window.cwnd >= window.ssthresh => {
                self.stage = Stage::Avoid { until: now + (now - since) * BETWEEN_SLOWDOWNS };
            }
            _ => {}
        }
    }

    /// Sections 4.2 and 4.3: computes the change per round trip of a window of `segments`.
    fn judge(&mut self, segments: f64, queuing: Dur) {
        let target = self.target.as_secs_f64();
        let base = self.delays.base().unwrap_or(Dur::ZERO).as_secs_f64();
        self.gain = 1.0 / libm::ceil(2.0 * target / base).clamp(1.0, LEAST_GAIN);
        let excess = queuing.as_secs_f64() / target - 1.0;
        self.change = match self.stage {
            Stage::Avoid { .. } if excess <= 0.0 => self.gain,
            Stage::Avoid { .. } => (self.gain - self.decrease * segments * excess).max(-segments / 2.0),
            _ => 0.0,
        };
    }

    /// Changes the window by this acknowledgment's share of the round trip.
    fn change(&mut self, window: &mut Window, ack: &Ack, mss_bytes: u64) {
        let share = (ack.acked_bytes as f64 / window.cwnd as f64).min(1.0);
        self.add(window, self.change * share * mss_bytes as f64, mss_bytes);
    }

    fn add(&mut self, window: &mut Window, bytes: f64, mss_bytes: u64) {
        let changed = window.cwnd as f64 + bytes + self.fraction;
        window.cwnd = (changed.max(0.0) as u64).max(LEAST_WINDOW * mss_bytes);
        self.fraction = changed.max(0.0).fract();
    }
}

impl WindowLaw for LedbatPlusPlus {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if let Some(rtt) = ack.rtt {
            self.delays.update(cx.now, rtt);
        }
        let (Some(queuing), true) = (self.delays.queuing(), ack.phase != Phase::Recovery) else { return };
        if ack.phase == Phase::Open {
            self.advance(window, queuing, cx);
        }
        self.judge(window.cwnd as f64 / cx.mss_bytes as f64, queuing);
        if self.change < 0.0 {
            self.change(window, ack, cx.mss_bytes);
            window.ssthresh = window.ssthresh.min(window.cwnd).max(LEAST_WINDOW * cx.mss_bytes);
        }
    }

    fn slow_start(&mut self, window: &mut Window, _ack: &Ack, counted_bytes: u64, cx: &mut Cx<'_>) {
        if !matches!(self.stage, Stage::Slow { .. }) {
            self.add(window, self.gain * counted_bytes as f64, cx.mss_bytes);
            window.cwnd = window.cwnd.min(window.ssthresh);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if self.change > 0.0 {
            self.change(window, ack, cx.mss_bytes);
        }
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, _event: Congestion, _cx: &mut Cx<'_>) -> u64 {
        window.cwnd / 2
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("gain", self.gain);
        put("is_slowed_down", f64::from(u8::from(matches!(self.stage, Stage::Slow { .. }))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::{Value, Values};
    use crate::registry::{Blueprint, build};
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;

    struct Connection {
        controller: Box<dyn CongestionControl>,
        now: Time,
        rng: Stream,
    }

    impl Connection {
        fn new(initial_window: u64) -> Connection {
            let mut values = Values::default();
            values.set("initial_window", Value::Whole(initial_window));
            values.set("current_filter", Value::Whole(1));
            let none = Values::default();
            let controller = build("ledbat-plus-plus", &values, &Blueprint::of_any(MSS, &none)).expect("a controller");
            Connection { controller, now: Time::ZERO, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn cwnd(&self) -> u64 {
            self.controller.limits().cwnd_bytes
        }

        fn traced(&self, name: &str) -> f64 {
            let mut found = f64::NAN;
            self.controller.trace(&mut |other, value| {
                if other == name {
                    found = value;
                }
            });
            found
        }

        /// Acknowledges one window, evenly over this round-trip time.
        fn round(&mut self, rtt_ms: u64) -> u64 {
            self.acknowledge(rtt_ms, self.cwnd() / MSS)
        }

        /// Acknowledges only the first `count` of its segments.
        fn acknowledge(&mut self, rtt_ms: u64, count: u64) -> u64 {
            let (rtt, segments) = (Dur::from_ms(rtt_ms), self.cwnd() / MSS);
            for _ in 0..count {
                self.now += rtt / segments;
                let mut cx =
                    Cx { now: self.now, mss_bytes: MSS, srtt: Some(rtt), min_rtt: Some(rtt), rng: &mut self.rng };
                self.controller.on_ack(&Ack { rtt: Some(rtt), ..Ack::in_sequence(MSS) }, &mut cx);
            }
            self.cwnd()
        }
    }

    /// Section 4.2, and section 4.1 for its effect on slow start.
    #[test]
    fn the_gain_falls_from_one_to_a_sixteenth_with_the_round_trip_time() {
        for (rtt_ms, gain) in [(200, 1.0), (120, 1.0), (119, 0.5), (30, 0.25), (1, 0.0625)] {
            let mut connection = Connection::new(64);
            let grown = connection.round(rtt_ms);
            assert_eq!(connection.traced("gain"), gain, "{rtt_ms} ms");
            assert_eq!(grown, 64 * MSS + (gain * 64.0 * MSS as f64) as u64, "{rtt_ms} ms");
        }
    }

    /// Returns a connection beyond its first slow start, on a path of 120 ms, with slightly less than a hundred
    /// segments.
    fn avoiding() -> Connection {
        let mut connection = Connection::new(48);
        assert_eq!(connection.round(120), 96 * MSS);
        // 46 ms in the queue end slow start at once.
        connection.acknowledge(166, 1);
        assert!((96 * MSS..97 * MSS).contains(&connection.cwnd()), "{}", connection.cwnd());
        connection
    }

    /// Section 4.3: beyond the target the decrease is proportional to the window. Less than a round trip before the
    /// first slowdown.
    #[test]
    fn the_window_shrinks_in_proportion_to_the_excess_over_the_target_by_half_at_most() {
        let shrunk = |rtt_ms| {
            let mut connection = avoiding();
            let before = connection.cwnd() as f64;
            connection.round(rtt_ms) as f64 / before
        };
        assert!((1.0..1.02).contains(&shrunk(180)), "at the target, one segment more: {}", shrunk(180));
        // A tenth of a window that shrinks meanwhile, less one segment.
        assert!((0.90..0.93).contains(&shrunk(186)), "{}", shrunk(186));
        assert!((0.5..0.63).contains(&shrunk(300)), "{}", shrunk(300));
    }

    /// Section 4.4.
    #[test]
    fn slowdowns_take_a_tenth_of_the_time() {
        let mut connection = avoiding();
        let mut changes = Vec::new();
        let (mut slow, mut largest) = (false, 0);
        while changes.len() < 8 && connection.now < Time::ZERO + Dur::from_secs(100) {
            connection.round(121);
            let is_slow = connection.traced("is_slowed_down") == 1.0;
            if is_slow {
                assert!(connection.cwnd() <= 2 * MSS);
            }
            if is_slow != slow {
                changes.push((connection.now - Time::ZERO).as_secs_f64());
                slow = is_slow;
            }
            largest = largest.max(connection.cwnd());
        }
        // It begins two round trips after the end of slow start, within 300 ms, lasts for two round trips, and takes
        // about six to double from 2 to 98 segments.
        assert!(changes[0] < 0.8, "{changes:?}");
        for pair in changes.chunks(2) {
            assert!((0.2..0.5).contains(&(pair[1] - pair[0])), "{changes:?}");
        }
        let (first, second) = (changes[2] - changes[0], changes[4] - changes[2]);
        assert!((8.0..11.5).contains(&first) && (8.0..11.5).contains(&second), "{changes:?}");
        assert!(largest > 98 * MSS, "the window grows between slowdowns: {largest}");
    }

    #[test]
    fn a_loss_halves_the_window() {
        let mut connection = avoiding();
        let before = connection.cwnd();
        let mut cx = Cx { now: connection.now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut connection.rng };
        connection.controller.on_congestion(Congestion::Loss { flight_bytes: 0 }, &mut cx);
        assert_eq!(connection.cwnd(), before / 2);
    }
}
