//! Prague: DCTCP for the Internet, with low latency in coupled dual queues (L4S).
//!
//! Source: De Schepper, Tilmans, Briscoe and Goel, draft-briscoe-iccrg-prague-congestion-control-04, with the values of
//! TCP Prague in Linux where the draft leaves them open. RFC 9331 section 4 has the requirements. Section numbers below
//! are those of the draft's version 00; 2.4.4 has the same number in version 04.
//!
//! Prague needs queues that mark ECT(1) packets, and receivers that report every mark (`ecn = "accurate"` or `"l4s"`).
//! alpha is the moving average of the marked share, with weight 1/16, updated once per round trip (section 2.3.2). A
//! mark cuts the window to cwnd (1 - alpha/2), at most once per round trip (2.4.2). Each unmarked acknowledged segment
//! adds a segment per window, also in the round trip after a cut (2.4.3). A flow sends at cwnd / srtt, and at twice
//! that in slow start (2.5.1).
//!
//! Below a virtual round-trip time of 25 ms, rates are to depend less on the round-trip time (2.4.4). After
//! `transition` round trips beyond slow start, a shorter round trip therefore counts as one of 25 ms. The growth per
//! segment is multiplied by (srtt / 25 ms)^2, and the average and the cuts follow at most every 25 ms.
//!
//! A loss halves the window, as in Reno (2.4.1; RFC 9331 section 4.3). Prague becomes Reno if the receiver has only
//! classic ECN feedback. With `classic_detection` (future work in section 3.3), it also estimates by the variation of
//! the round-trip time whether the queue marks as a classic one. Each round trip adds lg(mdev / 750 us) / 2 + max(0,
//! lg(depth / 2 ms)) / 2 to a score from 0 to 17, where mdev is the mean deviation of the round-trip time and depth its
//! distance from the minimum. From 8 to 9, alpha is raised to up to 0.625.
//!
//! Differences from the draft and from Linux (`docs/prague.md` compares with each requirement of RFC 9331):
//!
//! - A loss halves the window also after a cut by a mark in the same round trip. Implementations of version 04 deduct
//!   that cut. They also average alpha over virtual round trips from the start, and count `transition` from the start of
//!   the connection.
//! - The window has fractions of a byte in place of the 20 bits of a segment in Linux.
//! - The transport reports a mark before the acknowledgment that carries it counts, so that a cut uses alpha as it was
//!   before.
//! - In Linux, a mark that comes too early for a virtual round trip still begins a round trip without cuts. With a
//!   round trip of 20 ms, cuts are then 40 ms apart. Here, as in UDP Prague of the same authors, they are 25 ms apart.
//! - Linux sends chunks of at most 250 us at the pace. Here the transport decides on chunks (`send_batch`).
//! - Classic feedback is recognized by an echo without counts of marks. The first such echo halves the window, because
//!   alpha begins at one.
//! - The score of the classic detection uses moving averages with the weight 1 / (2 ssthresh^1.5) in floating point, in
//!   place of shifts.
//! - After a timeout, the window is one segment, as RFC 5681 requires, and not half of the window.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Needs, Phase};
use crate::pace::PacketSize;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::round::Round;
use crate::window::INITIAL_WINDOW;
use sparelane_core::{Dur, Rate, Time};

const DRAFT: &str = "draft-briscoe-iccrg-prague-congestion-control-04";
const REDUCED_DEPENDENCE: &str = "draft-briscoe-iccrg-prague-congestion-control-04 section 2.4.4; TCP Prague in Linux";

const G: Param = Param {
    name: "g",
    kind: Kind::Number { min: 0.0001, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(1.0 / 16.0),
    meaning: "weight of the newest round trip in the average of the marked share",
    source: DRAFT,
};

const VIRTUAL_RTT: Param = Param {
    name: "virtual_rtt",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(10) },
    default: DefaultValue::Span(Dur::from_ms(25)),
    meaning: "round-trip time that shorter ones count as; 0s makes the rate depend on the round-trip time",
    source: REDUCED_DEPENDENCE,
};

const TRANSITION: Param = Param {
    name: "transition",
    kind: Kind::Whole { min: 0, max: 1_000_000, unit: Unit::One },
    default: DefaultValue::Whole(500),
    meaning: "round trips beyond slow start until virtual_rtt applies",
    source: REDUCED_DEPENDENCE,
};

const CLASSIC_DETECTION: Param = Param {
    name: "classic_detection",
    kind: Kind::Flag,
    default: DefaultValue::Flag(false),
    meaning: "estimate whether the queue marks as a classic one, and cut by more if it does",
    source: "TCP Prague in Linux (off by default)",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "prague",
    summary: "L4S: cuts by the share of marks, depends less on the round-trip time; needs ecn = \"accurate\"",
    source: DRAFT,
    params: &[INITIAL_WINDOW, G, VIRTUAL_RTT, TRANSITION, CLASSIC_DETECTION],
    wire: None,
    make: &|values, plan| {
        let config = PragueConfig {
            initial_window: values.whole(&INITIAL_WINDOW),
            g: values.number(&G),
            virtual_rtt: values.span(&VIRTUAL_RTT),
            transition: values.whole(&TRANSITION),
            classic_detection: values.flag(&CLASSIC_DETECTION),
        };
        Ok(Box::new(Prague::new(config, plan.packets(), plan.line_rate)))
    },
};

/// The minimum window in segments, except after a timeout.
const MIN_WINDOW: f64 = 2.0;

/// The factor of a loss (RFC 5681).
const LOSS_FACTOR: f64 = 0.5;

/// The scores of the classic detection at which alpha begins to rise and at which it has risen, and the largest score.
const SCORE_RISES: f64 = 8.0;
const SCORE_RISEN: f64 = 9.0;
const SCORE_MAX: f64 = 17.0;

/// The largest alpha of the classic detection.
const CLASSIC_ALPHA: f64 = 0.625;

/// The deviation and the depth of a queue at which the score does not change.
const REFERENCE_DEVIATION_S: f64 = 750e-6;
const REFERENCE_DEPTH_S: f64 = 2e-3;

/// The weights of the deviation and of the depth in the score.
const DEVIATION_WEIGHT: f64 = 0.5;
const DEPTH_WEIGHT: f64 = 0.5;

/// The settings of the law, as declared.
#[derive(Clone, Copy, Debug)]
pub struct PragueConfig {
    /// Initial window in segments.
    pub initial_window: u64,
    /// Weight of the newest round trip in the average of the marked share.
    pub g: f64,
    /// The round-trip time that shorter ones count as.
    pub virtual_rtt: Dur,
    /// Round trips beyond slow start until the virtual round-trip time applies.
    pub transition: u64,
    /// True if classic queues are detected.
    pub classic_detection: bool,
}

/// The estimate of whether the queue marks as a classic one.
#[derive(Clone, Copy, Debug, Default)]
struct ClassicDetection {
    score: f64,
    /// Slow moving averages of the round-trip time and of its deviation, in seconds.
    srtt_s: f64,
    deviation_s: f64,
}

impl ClassicDetection {
    /// Adds a round-trip time with a weight that suits a window of `ssthresh` segments.
    fn measure(&mut self, rtt_s: f64, ssthresh: f64) {
        if self.srtt_s == 0.0 {
            (self.srtt_s, self.deviation_s) = (rtt_s, 0.0);
            return;
        }
        let weight = 0.5 / (ssthresh * libm::sqrt(ssthresh)).max(1.0);
        let error = rtt_s - self.srtt_s;
        self.srtt_s += weight * error;
        self.deviation_s += weight / 2.0 * (error.abs() - self.deviation_s);
    }

    /// Updates the score at the end of a round trip.
    fn end_round(&mut self, min_rtt_s: f64) {
        // The deviation is at least a microsecond, as in Linux, whose unit that is.
        let deviation = libm::log2(self.deviation_s.max(1e-6) / REFERENCE_DEVIATION_S);
        let depth = libm::log2((self.srtt_s - min_rtt_s).max(REFERENCE_DEPTH_S) / REFERENCE_DEPTH_S);
        let changed = self.score + DEVIATION_WEIGHT * deviation + DEPTH_WEIGHT * depth;
        self.score = changed.clamp(0.0, SCORE_MAX);
    }

    /// The least alpha at this score.
    fn least_alpha(&self) -> f64 {
        (self.score.min(SCORE_RISEN) - SCORE_RISES).max(0.0) * CLASSIC_ALPHA
    }
}

/// The Prague controller.
#[derive(Clone, Debug)]
pub struct Prague {
    config: PragueConfig,
    packets: PacketSize,
    pace: Rate,
    /// The window and the slow-start threshold in segments.
    cwnd: f64,
    ssthresh: f64,
    /// The window and the threshold before the last loss.
    before_loss: (f64, f64),

    // The average of the marked share.
    alpha: f64,
    has_seen_mark: bool,
    delivered_bytes: u64,
    marked_bytes: u64,
    averaged_at: Time,
    /// True if a round trip has ended since the last update of the average.
    is_average_due: bool,
    round: Round,
    /// Round trips since the last slow start.
    rounds: u64,

    /// The time of the last cut by a mark.
    cut_at: Option<Time>,
    /// True if the receiver has only classic ECN feedback.
    has_classic_feedback: bool,
    detection: ClassicDetection,
}

impl Prague {
    /// Creates a controller for a connection with these packet sizes and this rate of the sender's interface.
    pub fn new(config: PragueConfig, packets: PacketSize, line_rate: Rate) -> Prague {
        let cwnd = config.initial_window as f64;
        Prague {
            config,
            packets,
            pace: line_rate.max(Rate::from_bps(1)),
            cwnd,
            ssthresh: f64::INFINITY,
            before_loss: (cwnd, f64::INFINITY),
            alpha: 1.0,
            has_seen_mark: false,
            delivered_bytes: 0,
            marked_bytes: 0,
            averaged_at: Time::ZERO,
            is_average_due: false,
            round: Round::default(),
            rounds: 0,
            cut_at: None,
            has_classic_feedback: false,
            detection: ClassicDetection::default(),
        }
    }

    fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Returns true if a round-trip time below the virtual one counts as that.
    fn is_independent(&self, rtt: Dur) -> bool {
        let is_old = !self.is_in_slow_start() && self.rounds >= self.config.transition;
        is_old && rtt < self.config.virtual_rtt && !self.has_classic_feedback
    }

    /// Returns true if the time that counts as a round trip has passed since `earlier`.
    fn has_round_passed(&self, earlier: Time, cx: &Cx<'_>) -> bool {
        let is_independent = cx.srtt.is_some_and(|rtt| self.is_independent(rtt));
        !is_independent || cx.now.saturating_since(earlier) >= self.config.virtual_rtt
    }

    /// Updates alpha at the end of a round trip.
    fn average(&mut self, cx: &Cx<'_>) {
        // Without a mark so far, there is no proof of a queue that marks.
        if self.has_seen_mark && self.delivered_bytes > 0 {
            let share = (self.marked_bytes as f64 / self.delivered_bytes as f64).min(1.0);
            self.alpha += self.config.g * (share - self.alpha);
            if self.config.classic_detection
                && let Some(min_rtt) = cx.min_rtt
            {
                self.detection.end_round(min_rtt.as_secs_f64());
            }
        }
        (self.delivered_bytes, self.marked_bytes) = (0, 0);
        self.averaged_at = cx.now;
    }

    /// Cuts the window by a mark, unless the last cut is less than a virtual round trip ago.
    fn cut_by_mark(&mut self, cx: &Cx<'_>) {
        if self.cut_at.is_none_or(|at| self.has_round_passed(at, cx)) {
            let least = if self.config.classic_detection { self.detection.least_alpha() } else { 0.0 };
            self.cut_to(1.0 - self.alpha.max(least) / 2.0);
            self.cut_at = Some(cx.now);
        }
    }

    /// Grows the window by the unmarked segments of an acknowledgment.
    fn grow(&mut self, unmarked: f64, cx: &Cx<'_>) {
        let mut left = unmarked;
        if self.is_in_slow_start() {
            let room = self.ssthresh - self.cwnd;
            self.cwnd += left.min(room);
            left -= left.min(room);
            if left == 0.0 {
                return;
            }
        }
        let factor = match cx.srtt {
            Some(rtt) if self.is_independent(rtt) => {
                let ratio = rtt.as_secs_f64() / self.config.virtual_rtt.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        };
        self.cwnd += factor * left / self.cwnd;
    }

    fn set_pace(&mut self, in_flight_bytes: u64, cx: &Cx<'_>) {
        let Some(rtt) = cx.srtt.filter(|rtt| !rtt.is_zero()) else { return };
        let in_flight = in_flight_bytes as f64 / self.packets.mss_bytes as f64;
        let gain = if self.cwnd < self.ssthresh / 2.0 { 2.0 } else { 1.0 };
        let bits = self.cwnd.max(in_flight) * self.packets.wire_bytes() as f64 * 8.0;
        self.pace = Rate::from_bps(((gain * bits / rtt.as_secs_f64()) as u64).max(1));
    }

    /// Cuts the window to this share of it.
    fn cut_to(&mut self, share: f64) {
        self.cwnd = (self.cwnd * share).max(MIN_WINDOW.min(self.cwnd));
        self.ssthresh = self.cwnd.max(MIN_WINDOW);
    }
}

impl CongestionControl for Prague {
    fn needs(&self) -> Needs {
        Needs { scalable: true, ..Needs::default() }
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        // The conversion saturates, so that no threshold is the largest number.
        Some((self.ssthresh * self.packets.mss_bytes as f64) as u64)
    }

    fn start_at_threshold(&mut self, bytes: u64) {
        self.ssthresh = (bytes as f64 / self.packets.mss_bytes as f64).max(MIN_WINDOW);
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.averaged_at = cx.now;
        self.set_pace(0, cx);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        if ack.marked_segments > 0 {
            self.has_seen_mark = true;
        } else if ack.ecn_echo && ack.delivered_bytes > 0 {
            self.has_classic_feedback = true;
        }
        // The transport reports one mark per round trip. If that was too early for a virtual round trip, the first mark
        // beyond it cuts, and not the one of the next round trip.
        if ack.marked_segments > 0 && ack.phase == Phase::Open && cx.srtt.is_some_and(|rtt| self.is_independent(rtt)) {
            self.cut_by_mark(cx);
        }
        if let (true, Some(rtt)) = (self.config.classic_detection, ack.rtt) {
            self.detection.measure(rtt.as_secs_f64(), self.ssthresh.min(self.cwnd));
        }
        self.delivered_bytes += ack.delivered_bytes;
        self.marked_bytes += ack.marked_bytes;
        if ack.phase == Phase::Open && ack.cwnd_limited && !(self.has_classic_feedback && ack.ecn_echo) {
            let unmarked_bytes = ack.delivered_bytes.saturating_sub(ack.marked_bytes);
            self.grow(unmarked_bytes as f64 / self.packets.mss_bytes as f64, cx);
        }
        if self.round.is_over(ack) {
            self.rounds = if self.is_in_slow_start() { 0 } else { self.rounds + 1 };
            self.is_average_due = true;
        }
        if self.is_average_due && self.has_round_passed(self.averaged_at, cx) {
            self.is_average_due = false;
            self.average(cx);
        }
        self.set_pace(ack.in_flight_bytes, cx);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        match event {
            Congestion::Marked { by_ecn: true, .. } => {
                if self.has_classic_feedback {
                    self.cut_to(LOSS_FACTOR);
                } else {
                    self.cut_by_mark(cx);
                }
            }
            Congestion::Loss { .. } | Congestion::Marked { .. } => {
                self.before_loss = (self.cwnd, self.ssthresh);
                self.cut_to(LOSS_FACTOR);
            }
            Congestion::Timeout { first, .. } => {
                if first {
                    self.before_loss = (self.cwnd, self.ssthresh);
                    self.cut_to(LOSS_FACTOR);
                }
                self.cwnd = self.cwnd.min(1.0);
            }
            Congestion::LostSyn => self.cwnd = self.cwnd.min(1.0),
            Congestion::Spurious => {
                let (cwnd, ssthresh) = self.before_loss;
                (self.cwnd, self.ssthresh) = (self.cwnd.max(cwnd), self.ssthresh.max(ssthresh));
            }
        }
        self.set_pace(0, cx);
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: (self.cwnd * self.packets.mss_bytes as f64) as u64, pacing: Some(self.pace) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.limits().cwnd_bytes as f64);
        put("rate_bps", self.pace.as_bps() as f64);
        put("alpha", self.alpha);
        if self.config.classic_detection {
            put("classic_score", self.detection.score);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::traced;
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;

    /// A connection that acknowledges single segments.
    struct Connection {
        prague: Prague,
        now: Time,
        rtt: Dur,
        rng: Stream,
    }

    impl Connection {
        /// Creates a connection beyond slow start with a window of `segments`.
        fn new(segments: u64, rtt: Dur, change: impl FnOnce(&mut PragueConfig)) -> Connection {
            let mut config = PragueConfig {
                initial_window: segments,
                g: 1.0 / 16.0,
                virtual_rtt: Dur::from_ms(25),
                transition: 0,
                classic_detection: false,
            };
            change(&mut config);
            let mut prague = Prague::new(config, PacketSize::of(MSS), Rate::from_gbps(1));
            prague.ssthresh = segments as f64;
            Connection { prague, now: Time::ZERO, rtt, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn cx<T>(&mut self, call: impl FnOnce(&mut Prague, &mut Cx<'_>) -> T) -> T {
            let srtt = Some(self.rtt);
            let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt, min_rtt: srtt, rng: &mut self.rng };
            call(&mut self.prague, &mut cx)
        }

        /// Acknowledges a window of `segments` within a round trip, the first `marked` of which are marked. Returns the
        /// new window.
        fn round(&mut self, segments: u64, marked: u64) -> f64 {
            for segment in 0..segments {
                self.now += self.rtt / segments;
                let marked_segments = u64::from(segment < marked);
                let ack = Ack {
                    rtt: Some(self.rtt),
                    in_flight_bytes: (segments - 1) * MSS,
                    ecn_echo: marked_segments > 0,
                    marked_segments,
                    marked_bytes: marked_segments * MSS,
                    ..Ack::in_sequence(MSS)
                };
                self.cx(|prague, cx| prague.on_ack(&ack, cx));
            }
            self.prague.cwnd
        }

        fn mark(&mut self) -> f64 {
            let event = Congestion::Marked { flight_bytes: 0, by_ecn: true };
            self.cx(|prague, cx| prague.on_congestion(event, cx));
            self.prague.cwnd
        }
    }

    #[test]
    fn unmarked_segments_grow_the_window_by_a_segment_per_round_trip_even_beside_marks() {
        let mut connection = Connection::new(50, Dur::from_ms(50), |_| {});
        let grown = connection.round(50, 0) - 50.0;
        assert!((0.98..=1.0).contains(&grown), "{grown}");
        let before = connection.prague.cwnd;
        let grown = connection.round(50, 25) - before;
        assert!((0.48..=0.5).contains(&grown), "{grown}");
    }

    /// A round trip of 5 ms is a fifth of the virtual one: growth by a segment per 25 ms, at a fifth of the window of a
    /// flow with that round-trip time.
    #[test]
    fn a_short_round_trip_counts_as_the_virtual_one() {
        let mut connection = Connection::new(50, Dur::from_ms(5), |_| {});
        let grown = connection.round(50, 0) - 50.0;
        assert!((grown - 0.04).abs() < 0.001, "{grown}");
        let mut connection = Connection::new(50, Dur::from_ms(5), |config| config.virtual_rtt = Dur::ZERO);
        let grown = connection.round(50, 0) - 50.0;
        assert!((0.98..=1.0).contains(&grown), "{grown}");
    }

    #[test]
    fn the_virtual_round_trip_time_applies_after_the_transition() {
        let mut connection = Connection::new(50, Dur::from_ms(5), |config| config.transition = 3);
        let grown: Vec<f64> = (0..5)
            .map(|_| {
                let before = connection.prague.cwnd;
                connection.round(50, 0) - before
            })
            .collect();
        assert!(grown[..2].iter().all(|&grown| grown > 0.9) && grown[4] < 0.05, "{grown:?}");
    }

    #[test]
    fn alpha_follows_the_marked_share_once_there_was_a_mark() {
        let mut connection = Connection::new(50, Dur::from_ms(50), |_| {});
        for _ in 0..10 {
            connection.round(50, 0);
        }
        assert_eq!(connection.prague.alpha, 1.0);
        for _ in 0..200 {
            connection.round(50, 10);
        }
        assert!((connection.prague.alpha - 0.2).abs() < 0.01, "{}", connection.prague.alpha);
    }

    #[test]
    fn a_mark_cuts_by_half_of_alpha_and_at_most_once_per_virtual_round_trip() {
        let mut connection = Connection::new(100, Dur::from_ms(5), |_| {});
        connection.prague.alpha = 0.2;
        assert_eq!(connection.mark(), 90.0);
        connection.now += Dur::from_ms(24);
        assert_eq!(connection.mark(), 90.0);
        connection.now += Dur::from_ms(1);
        assert!((connection.mark() - 81.0).abs() < 1e-9);
        // Above the virtual round-trip time, the transport reports a mark per round trip, and each cuts.
        let mut connection = Connection::new(100, Dur::from_ms(40), |_| {});
        connection.prague.alpha = 0.2;
        assert_eq!([connection.mark(), connection.mark()], [90.0, 81.0]);
    }

    /// Reports of the transport are 20 ms apart, which is too early or 15 ms too late for a virtual round trip.
    #[test]
    fn beside_steady_marks_cuts_and_averages_are_a_virtual_round_trip_apart() {
        let mut connection = Connection::new(100, Dur::from_ms(20), |config| config.g = 0.0001);
        let (mut cuts, mut averages) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            connection.mark();
            connection.round(20, 20);
            cuts.extend(connection.prague.cut_at);
            averages.push(connection.prague.averaged_at);
            (connection.prague.cwnd, connection.prague.ssthresh) = (100.0, 100.0);
        }
        cuts.dedup();
        averages.dedup();
        // One second has 40 virtual round trips.
        assert!((38..=41).contains(&cuts.len()), "{}", cuts.len());
        assert!((38..=42).contains(&averages.len()), "{}", averages.len());
    }

    #[test]
    fn a_loss_halves_the_window_and_an_undo_restores_it() {
        let mut connection = Connection::new(100, Dur::from_ms(40), |_| {});
        connection.prague.alpha = 0.0;
        connection.cx(|prague, cx| prague.on_congestion(Congestion::Loss { flight_bytes: 0 }, cx));
        assert_eq!(connection.prague.cwnd, 50.0);
        connection.cx(|prague, cx| prague.on_congestion(Congestion::Spurious, cx));
        assert_eq!(connection.prague.cwnd, 100.0);
    }

    #[test]
    fn with_classic_feedback_prague_is_reno() {
        let mut connection = Connection::new(100, Dur::from_ms(5), |_| {});
        let echo = Ack { ecn_echo: true, ..Ack::in_sequence(MSS) };
        assert_eq!(connection.mark(), 50.0);
        connection.cx(|prague, cx| prague.on_ack(&echo, cx));
        assert_eq!(connection.prague.cwnd, 50.0, "an echo does not grow the window");
        assert_eq!(connection.mark(), 25.0);
        let grown = connection.round(25, 0) - 25.0;
        assert!((0.95..=1.0).contains(&grown), "{grown}: a segment per round trip of any length");
    }

    #[test]
    fn the_pace_is_the_window_per_round_trip_and_twice_that_in_slow_start() {
        let mut connection = Connection::new(100, Dur::from_ms(50), |_| {});
        connection.round(100, 0);
        let expected = connection.prague.cwnd * 1040.0 * 8.0 / 0.05;
        assert!((connection.prague.pace.as_bps() as f64 / expected - 1.0).abs() < 1e-6);
        connection.prague.ssthresh = f64::INFINITY;
        connection.round(100, 0);
        let expected = 2.0 * connection.prague.cwnd * 1040.0 * 8.0 / 0.05;
        assert!((connection.prague.pace.as_bps() as f64 / expected - 1.0).abs() < 1e-6);
    }

    /// A classic queue makes round-trip times vary by milliseconds; an L4S queue does not.
    #[test]
    fn a_queue_with_large_variation_of_delay_counts_as_classic() {
        let score = |swing_us: u64| {
            let mut connection = Connection::new(20, Dur::from_ms(20), |config| config.classic_detection = true);
            let mut lowest = Dur::from_ms(20);
            for round in 0..400 {
                lowest = lowest.min(connection.rtt);
                connection.rtt = Dur::from_ms(20) + Dur::from_us(round % 20 * swing_us / 20);
                connection.round(20, 1);
            }
            (traced(&connection.prague, "classic_score"), connection.prague.detection.least_alpha())
        };
        let (classic, scalable) = (score(20_000), score(500));
        assert_eq!(scalable, (0.0, 0.0));
        assert!(classic.0 > SCORE_RISEN && classic.1 == CLASSIC_ALPHA, "{classic:?}");
    }
}
