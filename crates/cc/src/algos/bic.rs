//! BIC: searches by bisection for the window at which the last loss occurred, and accelerates beyond it.
//!
//! Source: Xu, Harfoush and Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks", INFOCOM
//! 2004. Constants and steps are those of Linux 2.6.32 (tcp_bic.c), including its integer arithmetic, which affects
//! results:
//!
//! - Per round trip the window covers a quarter of the distance to the window of the last loss, at most 16 segments.
//!   Near it (up to 7 segments below, 3 above) it grows by a fifth of a segment. Beyond, it grows by a third of the
//!   distance, again at most 16 segments.
//! - A window of up to 14 segments follows NewReno.
//! - A loss leaves 819/1024 of the window. A loss below the previous target suggests that another flow needs room; the
//!   new target is 0.9 of the window (fast convergence).
//! - A timeout resets the target. Until the next loss, growth per round trip is a third of the window, from 48 segments
//!   on 16 segments, and at least 5 %.
//! - An undo restores the window, not the target.
//!
//! The law needs acknowledgments only.
//!
//! Differences from Linux: it counts acknowledgments and divides by an estimate of the segments that each covers. This
//! law counts the segments themselves. `growth_limit` therefore bounds the segments that one acknowledgment adds (1 in
//! Linux), not those counted. The counter of 2.6.32 needs one acknowledgment more per segment. Later versions count
//! segments and still divide.
//!
//! Other implementations: the paper bisects (half of the distance) in steps of up to 32 segments and cuts by an eighth.
//! ns-3 (TcpBic) has a smooth part of 5 where Linux has 20, which is 0.8 of a segment near the target. Its fast
//! convergence is to 0.8 of the window, it follows NewReno below 14 segments instead of up to 14, and its counter needs
//! one segment more and starts at zero.

use crate::contract::{Ack, Congestion, Cx};
use crate::increase::{Increase, counted_bytes};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};

const MAX_INCREMENT: Param = Param {
    name: "max_increment",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(16),
    meaning: "maximum growth per round trip after slow start",
    source: "Linux, ns-3; 32 in the paper",
};

const LOW_WINDOW: Param = Param {
    name: "low_window",
    kind: Kind::Whole { min: 0, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(14),
    meaning: "the law is NewReno's up to this window",
    source: "Linux, ns-3, the paper",
};

const SMOOTH_PART: Param = Param {
    name: "smooth_part",
    kind: Kind::Whole { min: 1, max: 10_000, unit: Unit::One },
    default: DefaultValue::Whole(20),
    meaning: "round trips for 4 segments near the window of the last loss",
    source: "Linux; 5 in ns-3",
};

const BETA: Param = Param {
    name: "beta",
    kind: Kind::Number { min: 0.1, max: 0.999, unit: Unit::One },
    default: DefaultValue::Number(819.0 / 1024.0),
    meaning: "share of the window kept after a loss",
    source: "Linux, 819 / 1024; 0.8 in ns-3, 0.875 in the paper",
};

const FAST_CONVERGENCE: Param = Param {
    name: "fast_convergence",
    kind: Kind::Flag,
    default: DefaultValue::Flag(true),
    meaning: "lower the target when a loss comes before the window of the last loss is reached",
    source: "Xu, Harfoush and Rhee, INFOCOM 2004; Linux",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "bic",
    summary: "a search by bisection for the window of the last loss",
    source: "Xu, Harfoush and Rhee, INFOCOM 2004; Linux 2.6.32",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        SLOW_START,
        WINDOW_VALIDATION,
        MAX_INCREMENT,
        LOW_WINDOW,
        SMOOTH_PART,
        BETA,
        FAST_CONVERGENCE,
    ],
    wire: None,
    make: &|values, plan| {
        let config = BicConfig {
            max_increment: values.whole(&MAX_INCREMENT),
            low_window: values.whole(&LOW_WINDOW),
            smooth_part: values.whole(&SMOOTH_PART),
            beta: values.number(&BETA),
            fast_convergence: values.flag(&FAST_CONVERGENCE),
        };
        Ok(windowed(Bic::new(config), values, plan))
    },
};

/// A round trip covers one part in this number of the distance to the target, and beyond the target one part in one
/// fewer.
const SHARE: u64 = 4;

/// Without a target, at most this number of acknowledged segments adds one: 5 % per round trip.
const MOST_WITHOUT_TARGET: u64 = 20;

/// The constants of the law.
#[derive(Clone, Copy, Debug)]
pub struct BicConfig {
    /// Maximum growth per round trip, segments.
    pub max_increment: u64,
    /// The law is NewReno's up to this window, segments.
    pub low_window: u64,
    /// Number of round trips for 4 segments near the target.
    pub smooth_part: u64,
    /// The share of the window kept after a loss.
    pub beta: f64,
    /// True if a loss below the target lowers the target.
    pub fast_convergence: bool,
}

/// The BIC window law.
#[derive(Clone, Copy, Debug)]
pub struct Bic {
    config: BicConfig,
    /// The target window, segments; 0 if unknown.
    target: u64,
    increase: Increase,
    /// Bytes that the current acknowledgment counts for, before any limit on growth.
    counted_bytes: u64,
}

impl Bic {
    /// Creates a law with these constants.
    pub fn new(config: BicConfig) -> Bic {
        Bic { config, target: 0, increase: Increase::default(), counted_bytes: 0 }
    }

    /// Returns the number of acknowledged segments that add one to a window of `cwnd` segments.
    #[inline]
    fn segments_per_increase(&self, cwnd: u64) -> u64 {
        let BicConfig { max_increment, low_window, smooth_part, .. } = self.config;
        if cwnd <= low_window {
            return cwnd;
        }
        let linear = cwnd / max_increment;
        let smooth = cwnd * smooth_part / SHARE;
        let count = if cwnd < self.target {
            match (self.target - cwnd) / SHARE {
                step if step > max_increment => linear,
                // Close to the target the bisection would stall; a fixed small step continues.
                0 | 1 => smooth,
                step => cwnd / step,
            }
        } else {
            match cwnd - self.target {
                beyond if beyond < SHARE => smooth,
                beyond if beyond < max_increment * (SHARE - 1) => cwnd * (SHARE - 1) / beyond,
                _ => linear,
            }
        };
        let count = if self.target == 0 { count.min(MOST_WITHOUT_TARGET) } else { count };
        count.max(1)
    }
}

impl WindowLaw for Bic {
    #[inline]
    fn observe(&mut self, _window: &mut Window, ack: &Ack, _cx: &mut Cx<'_>) {
        self.counted_bytes = counted_bytes(ack);
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let mss = cx.mss_bytes;
        let price = self.segments_per_increase(window.cwnd / mss) * mss;
        self.increase.grow(window, self.counted_bytes, price, ack.acked_bytes.div_ceil(mss), mss);
    }

    /// Returns whole segments, rounded down.
    fn cut(&mut self, window: &Window, _flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.increase.forget();
        let BicConfig { low_window, beta, fast_convergence, .. } = self.config;
        let cwnd = window.cwnd / cx.mss_bytes;
        self.target = match event {
            Congestion::Timeout { .. } => 0,
            _ if cwnd < self.target && fast_convergence => (cwnd as f64 * (1.0 + beta) / 2.0) as u64,
            _ => cwnd,
        };
        let left = if cwnd <= low_window { cwnd / 2 } else { (cwnd as f64 * beta) as u64 };
        left * cx.mss_bytes
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("target_segments", self.target as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1460;
    const LINUX: BicConfig =
        BicConfig { max_increment: 16, low_window: 14, smooth_part: 20, beta: 819.0 / 1024.0, fast_convergence: true };

    fn seeking(target: u64) -> Bic {
        Bic { target, ..Bic::new(LINUX) }
    }

    /// Cuts a window of `cwnd` segments; returns the new window and the new target.
    fn cut(law: &mut Bic, cwnd: u64, event: Congestion) -> (u64, u64) {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let window = Window { cwnd: cwnd * MSS, ssthresh: 0 };
        (law.cut(&window, 0, event, &mut cx) / MSS, law.target)
    }

    /// Returns the windows after each of `rounds` round trips in acknowledgments of single segments.
    fn rounds(law: &mut Bic, start: u64, rounds: usize) -> Vec<u64> {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let mut window = Window { cwnd: start * MSS, ssthresh: 0 };
        let mut round = || {
            for _ in 0..window.cwnd / MSS {
                law.observe(&mut window, &Ack::in_sequence(MSS), &mut cx);
                law.grow(&mut window, &Ack::in_sequence(MSS), &mut cx);
            }
            window.cwnd / MSS
        };
        (0..rounds).map(|_| round()).collect()
    }

    #[test]
    fn the_step_shrinks_towards_the_window_of_the_last_loss_and_grows_beyond_it() {
        let law = seeking(1000);
        let count = |cwnd| law.segments_per_increase(cwnd);
        // 68 below: steps of 17, more than 16. 67 below: 16. 40 below: 10. 8 below: 2. 7 below: a fifth.
        assert_eq!([500, 932].map(count), [500 / 16, 932 / 16]);
        assert_eq!([933, 960, 992, 993, 999].map(count), [933 / 16, 96, 496, 4965, 4995]);
        // 3 beyond: a fifth. 4 beyond: 4 / 3. 47 beyond: 47 / 3. 48 beyond: 16.
        assert_eq!([1000, 1003, 1004, 1030, 1047, 1048].map(count), [5000, 5015, 753, 103, 66, 65]);
        assert_eq!([1, 10, 14].map(count), [1, 10, 14], "as NewReno");
    }

    #[test]
    fn a_round_trip_adds_sixteen_segments_far_from_the_window_of_the_last_loss() {
        // 24,000 / 16 = 1500 acknowledgments for the first, 1501 for the seventeenth.
        assert_eq!(rounds(&mut seeking(30_000), 24_000, 3), [24_016, 24_032, 24_048]);
        // 80 / 16 = 5, up to 95; from 96 it is 6.
        assert_eq!(rounds(&mut seeking(1000), 80, 2), [96, 112]);
    }

    #[test]
    fn near_the_window_of_the_last_loss_a_segment_takes_five_round_trips() {
        let windows = rounds(&mut seeking(10_000), 9_993, 20);
        // 9993 * 20 / 4 = 49,965 acknowledgments for the first segment.
        assert_eq!(windows[3..6], [9_993, 9_994, 9_994]);
        assert_eq!(windows[19], 9_997);
    }

    #[test]
    fn a_loss_leaves_four_fifths_and_one_below_the_last_lowers_the_target() {
        let loss = Congestion::Loss { flight_bytes: 0 };
        let mut law = Bic::new(LINUX);
        // 1000 * 819 / 1024 = 799.8; 900 * 819 / 1024 = 719.8, 900 * 1843 / 2048 = 809.9.
        assert_eq!(cut(&mut law, 1000, loss), (799, 1000));
        assert_eq!(cut(&mut law, 900, loss), (719, 809));
        assert_eq!(cut(&mut law, 900, loss), (719, 900));
        assert_eq!(cut(&mut law, 14, loss).0, 7, "half of a low window");
        let mut law = Bic { config: BicConfig { fast_convergence: false, ..LINUX }, ..seeking(1000) };
        assert_eq!(cut(&mut law, 900, loss), (719, 900));
    }

    /// A segment costs 5000 acknowledged segments at 1000; 4000 are saved and lost. At 799 it costs 799 / 16 = 49.
    #[test]
    fn a_loss_discards_the_credit_for_the_next_segment() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let mut law = seeking(1000);
        let mut window = Window { cwnd: 1000 * MSS, ssthresh: 0 };
        let mut acknowledge = |law: &mut Bic, window: &mut Window, segments| {
            for _ in 0..segments {
                law.observe(window, &Ack::in_sequence(MSS), &mut cx);
                law.grow(window, &Ack::in_sequence(MSS), &mut cx);
            }
            window.cwnd / MSS
        };
        assert_eq!(acknowledge(&mut law, &mut window, 4000), 1000);
        window.cwnd = cut(&mut law, 1000, Congestion::Loss { flight_bytes: 0 }).0 * MSS;
        assert_eq!([48, 1].map(|segments| acknowledge(&mut law, &mut window, segments)), [799, 800]);
    }

    #[test]
    fn after_a_timeout_the_window_grows_by_a_twentieth_until_the_next_loss() {
        let mut law = seeking(1000);
        assert_eq!(cut(&mut law, 900, Congestion::Timeout { flight_bytes: 0, first: true }), (719, 0));
        let count = |cwnd| law.segments_per_increase(cwnd);
        assert_eq!([15, 40, 160, 400, 30_000].map(count), [3, 3, 10, 20, 20]);
    }

    #[test]
    fn a_large_acknowledgment_counts_in_full_and_adds_up_to_the_limit() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let mut added = |limit: u64| {
            let mut law = Bic::new(LINUX);
            let mut window = Window { cwnd: 1000 * MSS, ssthresh: 0 };
            law.observe(&mut window, &Ack::in_sequence(60 * MSS), &mut cx);
            law.grow(&mut window, &Ack::in_sequence(limit * MSS), &mut cx);
            window.cwnd / MSS - 1000
        };
        assert_eq!((added(60), added(1)), (3, 1));
    }
}
