//! LEDBAT++: LEDBAT that is fair to its own kind and forgets its own queue.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus (section numbers of revision 01), on top of RFC 6817.
//!
//! Delays are of round trips, so that receivers need not help. With GAIN = 1 / min(16, ceil(2 TARGET / base)) (section 4.2),
//! a round trip adds GAIN segments, and beyond the target max(GAIN - C W (queuing / TARGET - 1), -W / 2), in segments
//! (section 4.3): decrease is multiplicative. Slow start grows by GAIN acked bytes, and the first one ends at three
//! quarters of the target (section 4.1). Two round trips later the connection slows down (section 4.4): it remembers its
//! window, holds two segments for two round trips, so that queues drain and the path is measured empty, and grows back to
//! the remembered window by slow start. The next slowdown comes nine times as long after this as it took, which costs at most
//! a tenth of the link. TARGET is 60 ms (section 4.5).
//!
//! Where we differ: the draft does not say whether GAIN holds in the slow start of a slowdown; here it does. Slowdowns begin
//! and end with acknowledgments, and wait for a repair of losses to end. A round trip is the smoothed one.

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
    meaning: "delay in the queue to aim at",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01 section 4.5",
};

const DECREASE: Param = Param {
    name: "decrease",
    kind: Kind::Number { min: 0.01, max: 100.0, unit: Unit::One },
    default: DefaultValue::Number(1.0),
    meaning: "share of the window to give up in a round trip with twice the target in the queue, up to half",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01 section 4.3 (Constant)",
};

/// What the catalogue says of it.
pub const CONTROLLER: Controller = Controller {
    name: "ledbat-plus-plus",
    summary: "LEDBAT by round-trip times, with multiplicative decrease and periodic slowdowns",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01",
    params: &[SMALL_INITIAL_WINDOW, INITIAL_SSTHRESH, TARGET, DECREASE, BASE_HISTORY, CURRENT_FILTER],
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

/// The gain is one over this at least.
const LEAST_GAIN: f64 = 16.0;

/// Segments that a connection keeps in flight while it has slowed down, and at least at all times.
const LEAST_WINDOW: u64 = 2;

/// How many times as long as a slowdown the time to the next one is.
const BETWEEN_SLOWDOWNS: u64 = 9;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first slow start.
    Start,
    /// Congestion avoidance until the next slowdown.
    Avoid { until: Time },
    /// Slowed down.
    Slow { since: Time, until: Time },
    /// Back to the window before the slowdown.
    Return { since: Time },
}

/// The law.
#[derive(Clone, Debug)]
pub struct LedbatPlusPlus {
    target: Dur,
    decrease: f64,
    delays: Delays,
    stage: Stage,
    gain: f64,
    /// By how many segments a round trip changes the window now.
    change: f64,
    /// What is left of earlier changes, less than a byte.
    fraction: f64,
}

impl LedbatPlusPlus {
    /// Moves on from stage to stage.
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

    /// Sections 4.2 and 4.3: by how many segments a round trip changes a window of `segments`.
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

    /// Changes the window by the share of a round trip that `ack` is, in segments per round trip.
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

    struct Life {
        controller: Box<dyn CongestionControl>,
        now: Time,
        rng: Stream,
    }

    impl Life {
        fn new(initial_window: u64) -> Life {
            let mut values = Values::default();
            values.set("initial_window", Value::Whole(initial_window));
            values.set("current_filter", Value::Whole(1));
            let none = Values::default();
            let controller = build("ledbat-plus-plus", &values, &Blueprint::of_any(MSS, &none)).expect("a controller");
            Life { controller, now: Time::ZERO, rng: Stream::new(1, Domain::Test, 0) }
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

        /// One window comes back, evenly over this round-trip time.
        fn round(&mut self, rtt_ms: u64) -> u64 {
            self.acknowledge(rtt_ms, self.cwnd() / MSS)
        }

        /// Only the first so many of its segments.
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

    /// Section 4.2, and 4.1 for what it does to slow start.
    #[test]
    fn the_gain_falls_from_one_to_a_sixteenth_with_the_round_trip_time() {
        for (rtt_ms, gain) in [(200, 1.0), (120, 1.0), (119, 0.5), (30, 0.25), (1, 0.0625)] {
            let mut life = Life::new(64);
            let grown = life.round(rtt_ms);
            assert_eq!(life.traced("gain"), gain, "{rtt_ms} ms");
            assert_eq!(grown, 64 * MSS + (gain * 64.0 * MSS as f64) as u64, "{rtt_ms} ms");
        }
    }

    /// A connection beyond its first slow start, on a path of 120 ms, with a little less than a hundred segments.
    fn avoiding() -> Life {
        let mut life = Life::new(48);
        assert_eq!(life.round(120), 96 * MSS);
        // 46 ms in the queue end slow start at once.
        life.acknowledge(166, 1);
        assert!((96 * MSS..97 * MSS).contains(&life.cwnd()), "{}", life.cwnd());
        life
    }

    /// Section 4.3: from the target on, by the window's share; less than a round trip before the first slowdown.
    #[test]
    fn the_window_shrinks_by_its_share_of_what_exceeds_the_target_and_by_half_at_most() {
        let shrunk = |rtt_ms| {
            let mut life = avoiding();
            let before = life.cwnd() as f64;
            life.round(rtt_ms) as f64 / before
        };
        assert!((1.0..1.02).contains(&shrunk(180)), "one segment more at the target: {}", shrunk(180));
        // A tenth, of a window that shrinks meanwhile, less one segment.
        assert!((0.90..0.93).contains(&shrunk(186)), "{}", shrunk(186));
        assert!((0.5..0.63).contains(&shrunk(300)), "{}", shrunk(300));
    }

    /// Section 4.4.
    #[test]
    fn slowdowns_take_a_tenth_of_the_time() {
        let mut life = avoiding();
        let mut changes = Vec::new();
        let (mut slow, mut largest) = (false, 0);
        while changes.len() < 8 && life.now < Time::ZERO + Dur::from_secs(100) {
            life.round(121);
            let is_slow = life.traced("is_slowed_down") == 1.0;
            if is_slow {
                assert!(life.cwnd() <= 2 * MSS);
            }
            if is_slow != slow {
                changes.push((life.now - Time::ZERO).as_secs_f64());
                slow = is_slow;
            }
            largest = largest.max(life.cwnd());
        }
        // It begins two round trips after slow start ended, within 300 ms, lasts for two, and takes some six to double
        // from 2 to 98 segments.
        assert!(changes[0] < 0.8, "{changes:?}");
        for pair in changes.chunks(2) {
            assert!((0.2..0.5).contains(&(pair[1] - pair[0])), "{changes:?}");
        }
        let (first, second) = (changes[2] - changes[0], changes[4] - changes[2]);
        assert!((8.0..11.5).contains(&first) && (8.0..11.5).contains(&second), "{changes:?}");
        assert!(largest > 98 * MSS, "it grows on in between: {largest}");
    }

    #[test]
    fn a_loss_halves_the_window() {
        let mut life = avoiding();
        let before = life.cwnd();
        let mut cx = Cx { now: life.now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut life.rng };
        life.controller.on_congestion(Congestion::Loss { flight_bytes: 0 }, &mut cx);
        assert_eq!(life.cwnd(), before / 2);
    }
}
