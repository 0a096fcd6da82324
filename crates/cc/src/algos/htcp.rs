//! H-TCP: growth accelerates with the time since the last loss, and a loss takes the share that the queue held.
//!
//! Source: Leith and Shorten, "H-TCP: TCP for High-Speed and Long-Distance Networks", PFLDnet 2004, and
//! draft-leith-tcp-htcp. Implemented as in Linux (tcp_htcp.c, unchanged since 2.6.32), including its integer
//! arithmetic, which affects results. The law needs round-trip times.
//!
//! **Growth.** Per round trip the window grows by alpha = 2 (1 - beta) f. Up to Delta = 1 s after the last loss f = 1;
//! later f = 1 + 10 (Delta - 1) + ((Delta - 1) / 2)^2, rounded down to a whole number. f is scaled by the minimum
//! round-trip time over 100 ms, clamped to 1/10 to 2, and rounded down to a whole number, at least 1. alpha is
//! recomputed with every segment gained. Delta counts from the end of recovery.
//!
//! **Cut.** A loss leaves beta = 1/2 of the window, or RTTmin / RTTmax, clamped to 1/2 to 0.8, if three conditions
//! hold: the highest throughput since the last loss is within 20 % of that before (a smoothed measure that restarts in
//! the first three round trips); this also held at the last loss; and the minimum round-trip time exceeds 10 ms. RTTmax
//! rises by at most 20 ms at a time, and with each loss its distance from RTTmin shrinks by 5 %.
//!
//! Differences from Linux: times are exact, while Linux rounds them to its clock of 1 to 10 ms. Packets are counted as
//! in Linux, whatever an acknowledgment covers; `growth_limit` bounds the growth per acknowledgment (a segment in
//! Linux). Linux drops the remainder beyond a segment and one acknowledgment per segment gained; this law keeps them.
//! The first segment after a loss is gained with the alpha of Delta = 0, while Linux still uses the alpha before the
//! loss.
//!
//! Other implementations: of the switches, the draft has only that of the 20 %, and it does not scale by default. ns-3
//! (TcpHtcp) has no RTT scaling and no switch except the 20 %, which it applies to rises only and in whole numbers, so
//! that any rise to less than the double passes. Its beta is unbounded, RTTmin and RTTmax restart at every loss, beta
//! applies to the volume in flight, and an acknowledgment adds alpha bytes to NewReno's growth.

use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::increase::{Increase, counted_bytes};
use crate::param::{DefaultValue, Kind, Param};
use crate::registry::Controller;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};
use sparelane_core::{Dur, Rate, Time};

const RTT_SCALING: Param = Param {
    name: "rtt_scaling",
    kind: Kind::Flag,
    default: DefaultValue::Flag(true),
    meaning: "scale growth by the minimum round-trip time over 100 ms, so that it depends less on the path",
    source: "Linux (use_rtt_scaling)",
};

const BANDWIDTH_SWITCH: Param = Param {
    name: "bandwidth_switch",
    kind: Kind::Flag,
    default: DefaultValue::Flag(true),
    meaning: "halve the window if throughput has changed by more than 20 %",
    source: "Linux (use_bandwidth_switch)",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "h-tcp",
    summary: "growth by the time since the last loss; a cut by the share of the queue",
    source: "Leith and Shorten, PFLDnet 2004; Linux 2.6.32",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        SLOW_START,
        WINDOW_VALIDATION,
        RTT_SCALING,
        BANDWIDTH_SWITCH,
    ],
    wire: None,
    make: &|values, plan| {
        let law = HTcp::new(values.flag(&RTT_SCALING), values.flag(&BANDWIDTH_SWITCH));
        Ok(windowed(law, values, plan))
    },
};

/// The unit of alpha and beta: 1/128.
const ONE: u64 = 128;

/// The minimum of beta, 1/2.
const BETA_MIN: u64 = 64;

/// The maximum of beta, 0.8.
const BETA_MAX: u64 = 102;

/// Delta_L: the time after a loss during which growth is NewReno's.
const NEWRENO_FOR: Dur = Dur::from_secs(1);

/// The round-trip time at which growth is not scaled.
const REFERENCE_RTT: Dur = Dur::from_ms(100);

/// beta is 1/2 unless the minimum round-trip time exceeds this.
const ADAPT_ABOVE: Dur = Dur::from_ms(10);

/// The largest rise of RTTmax by one sample.
const RISE_MAX: Dur = Dur::from_ms(20);

/// Throughput measured since the last loss.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    /// Bytes acknowledged since `begun`.
    bytes: u64,
    begun: Time,
    smoothed: u64,
    /// The highest `smoothed` since the last loss, bits per second.
    most: u64,
    /// The highest `smoothed` before the last loss.
    most_before: u64,
}

impl Throughput {
    /// Counts `acked_bytes` and takes a measurement about once per round trip, when `enough_bytes` have been counted.
    /// With `afresh` the measurement replaces the earlier ones.
    fn count(&mut self, acked_bytes: u64, enough_bytes: u64, min_rtt: Dur, now: Time, afresh: bool) {
        self.bytes += acked_bytes;
        let span = now.saturating_since(self.begun);
        if self.bytes < enough_bytes || span < min_rtt || span.is_zero() {
            return;
        }
        let measured = Rate::of(self.bytes, span).as_bps();
        if afresh {
            (self.smoothed, self.most) = (measured, measured);
        } else {
            self.smoothed = (3 * self.smoothed + measured) / 4;
            self.most = self.most.max(self.smoothed);
        }
        self.restart(now);
    }

    fn restart(&mut self, now: Time) {
        (self.bytes, self.begun) = (0, now);
    }

    /// Evaluates a loss: returns true if the highest throughput is within 20 % of the previous one.
    fn is_steady(&mut self) -> bool {
        // 5 most / before lies within 4 to 6: a change of at most a fifth, in whole numbers.
        let before = std::mem::replace(&mut self.most_before, self.most);
        (4 * before..=6 * before).contains(&(5 * self.most))
    }
}

/// The state that an undo restores.
#[derive(Clone, Copy, Debug)]
struct BeforeCut {
    last_loss: Option<Time>,
    max_rtt: Dur,
    most_before: u64,
}

/// The H-TCP window law.
#[derive(Clone, Debug)]
pub struct HTcp {
    rtt_scaling: bool,
    bandwidth_switch: bool,
    /// Growth per round trip, in 1/128 of a segment.
    alpha: u64,
    /// The share of the window that a loss leaves, in 1/128.
    beta: u64,
    /// True if throughput was steady at the last loss.
    may_adapt: bool,
    /// The time of the last loss, of the end of its recovery, or of the first acknowledgment.
    last_loss: Option<Time>,
    in_recovery: bool,
    min_rtt: Dur,
    max_rtt: Dur,
    throughput: Throughput,
    increase: Increase,
    /// Bytes that the current acknowledgment counts for, before any limit on growth.
    counted_bytes: u64,
    before_cut: Option<BeforeCut>,
}

impl HTcp {
    /// Creates a law with or without RTT scaling and the bandwidth switch.
    pub fn new(rtt_scaling: bool, bandwidth_switch: bool) -> HTcp {
        HTcp {
            rtt_scaling,
            bandwidth_switch,
            alpha: ONE,
            beta: BETA_MIN,
            may_adapt: false,
            last_loss: None,
            in_recovery: false,
            min_rtt: Dur::MAX,
            max_rtt: Dur::ZERO,
            throughput: Throughput::default(),
            increase: Increase::default(),
            counted_bytes: 0,
            before_cut: None,
        }
    }

    fn since_loss(&self, now: Time) -> Dur {
        now.saturating_since(self.last_loss.unwrap_or(now))
    }

    /// Returns the growth per round trip at `delta` after a loss, in 1/128 of a segment.
    fn alpha_after(&self, delta: Dur) -> u64 {
        // Milliseconds stand for Linux's ticks; each step rounds down as there.
        let beyond_ms = delta.saturating_sub(NEWRENO_FOR).as_ps() / Dur::from_ms(1).as_ps();
        let half = beyond_ms / 2;
        let mut factor = 1 + (10 * beyond_ms + half.saturating_mul(half) / 1000) / 1000;
        // Scale by REFERENCE_RTT / RTTmin in eighths, clamped to 1/2 to 10.
        if self.rtt_scaling && self.min_rtt < Dur::MAX {
            let eighths = (8 * REFERENCE_RTT.as_ps() / self.min_rtt.as_ps().max(1)).clamp(4, 80);
            factor = (8 * factor / eighths).max(1);
        }
        2 * factor * (ONE - self.beta)
    }

    fn watch_rtt(&mut self, rtt: Dur, phase: Phase) {
        self.min_rtt = self.min_rtt.min(rtt);
        if phase == Phase::Open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if rtt <= self.max_rtt + RISE_MAX {
                self.max_rtt = self.max_rtt.max(rtt);
            }
        }
    }

    fn watch_throughput(&mut self, window: &Window, ack: &Ack, cx: &Cx<'_>) {
        if ack.phase != Phase::Open {
            self.throughput.restart(cx.now);
            return;
        }
        let enough = window.cwnd.saturating_sub((self.alpha / ONE).max(1) * cx.mss_bytes);
        // A measurement replaces the earlier ones through the third full round trip after a loss.
        let afresh = self.since_loss(cx.now) < self.min_rtt.saturating_mul(4);
        self.throughput.count(self.counted_bytes, enough, self.min_rtt, cx.now, afresh);
    }

    fn renew_beta(&mut self) {
        // A change in throughput also disables the adaptive beta for the next loss.
        let adapts = if self.bandwidth_switch && !self.throughput.is_steady() {
            self.may_adapt = false;
            false
        } else {
            std::mem::replace(&mut self.may_adapt, true) && self.min_rtt > ADAPT_ABOVE && !self.max_rtt.is_zero()
        };
        self.beta = if adapts {
            let ratio = self.min_rtt.as_secs_f64() / self.max_rtt.as_secs_f64();
            ((ratio * ONE as f64) as u64).clamp(BETA_MIN, BETA_MAX)
        } else {
            BETA_MIN
        };
    }
}

impl WindowLaw for HTcp {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        self.counted_bytes = counted_bytes(ack);
        if self.last_loss.is_none() {
            // The clock of growth starts with the connection.
            self.last_loss = Some(cx.now);
            self.throughput.restart(cx.now);
        } else if self.in_recovery && ack.phase == Phase::Open {
            // Recovery is over: Delta counts from here, and an undo is no longer possible.
            self.in_recovery = false;
            self.last_loss = Some(cx.now);
            self.before_cut = None;
        }
        if let Some(rtt) = ack.rtt {
            self.watch_rtt(rtt, ack.phase);
        }
        if self.bandwidth_switch {
            self.watch_throughput(window, ack, cx);
        }
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let earned = self.counted_bytes.saturating_mul(self.alpha);
        let price = window.cwnd * ONE;
        let most = ack.acked_bytes.div_ceil(cx.mss_bytes);
        if self.increase.grow(window, earned, price, most, cx.mss_bytes) {
            self.alpha = self.alpha_after(self.since_loss(cx.now));
        }
    }

    /// Returns whole segments, rounded down.
    fn cut(&mut self, window: &Window, _flight_bytes: u64, _event: Congestion, cx: &mut Cx<'_>) -> u64 {
        let most_before = self.throughput.most_before;
        self.before_cut = Some(BeforeCut { last_loss: self.last_loss, max_rtt: self.max_rtt, most_before });
        self.renew_beta();
        // RTTmax decays so that a changed path is noticed.
        if self.max_rtt > self.min_rtt {
            let above = self.max_rtt.saturating_sub(self.min_rtt);
            self.max_rtt = self.min_rtt + Dur::from_ps(above.as_ps() / 100 * 95);
        }
        self.increase.forget();
        self.last_loss = Some(cx.now);
        self.in_recovery = true;
        self.alpha = self.alpha_after(Dur::ZERO);
        window.cwnd / cx.mss_bytes * self.beta / ONE * cx.mss_bytes
    }

    fn undo(&mut self) {
        if let Some(before) = self.before_cut.take() {
            self.last_loss = before.last_loss;
            self.max_rtt = before.max_rtt;
            self.throughput.most_before = before.most_before;
            self.in_recovery = false;
        }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("alpha", self.alpha as f64 / ONE as f64);
        put("beta", self.beta as f64 / ONE as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1460;
    const LOSS: Congestion = Congestion::Loss { flight_bytes: 0 };

    fn cx(now_ms: u64, rng: &mut Stream) -> Cx<'_> {
        Cx { now: Time::ZERO + Dur::from_ms(now_ms), mss_bytes: MSS, srtt: None, min_rtt: None, rng }
    }

    fn seen_rtt(law: &mut HTcp, rtt_ms: u64) {
        law.watch_rtt(Dur::from_ms(rtt_ms), Phase::Open);
    }

    /// Returns the growth per round trip `delta_ms` after a loss in segments, for this minimum round-trip time.
    fn alpha(rtt_scaling: bool, rtt_ms: u64, delta_ms: u64) -> f64 {
        let mut law = HTcp::new(rtt_scaling, true);
        seen_rtt(&mut law, rtt_ms);
        law.alpha_after(Dur::from_ms(delta_ms)) as f64 / ONE as f64
    }

    /// f(2 s) = 1 + 10 + 0.25, f(5 s) = 1 + 40 + 4, f(11 s) = 1 + 100 + 25.
    #[test]
    fn growth_is_newrenos_for_a_second_and_quadratic_in_the_time_after_it() {
        let grown = [0, 1000, 1099, 1100, 2000, 5000, 11_000].map(|delta_ms| alpha(false, 30, delta_ms));
        assert_eq!(grown, [1.0, 1.0, 1.0, 2.0, 11.0, 45.0, 126.0]);
    }

    /// The scale in eighths is 100 ms / RTT: 26/8 for 30 ms, 80/8 for 5 ms, 8/8 for 100 ms, 4/8 for 300 ms.
    #[test]
    fn growth_is_scaled_by_the_least_round_trip_time_in_whole_numbers() {
        let at_2_s = [5, 30, 100, 300].map(|rtt_ms| alpha(true, rtt_ms, 2000));
        assert_eq!(at_2_s, [1.0, 3.0, 11.0, 22.0]);
        let at_11_s = [5, 30, 100, 300].map(|rtt_ms| alpha(true, rtt_ms, 11_000));
        assert_eq!(at_11_s, [12.0, 38.0, 126.0, 252.0]);
        assert_eq!([5, 300].map(|rtt_ms| alpha(true, rtt_ms, 0)), [1.0, 2.0]);
    }

    /// One round of 100 ms at 30,000 segments, 11 s after a loss, with alpha = 126.
    #[test]
    fn a_round_adds_alpha_segments_to_a_large_window() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut law = HTcp::new(true, true);
        let mut window = Window { cwnd: 30_000 * MSS, ssthresh: 0 };
        let rtt = Some(Dur::from_ms(100));
        for _ in 0..2 {
            law.observe(&mut window, &Ack { rtt, ..Ack::in_sequence(0) }, &mut cx(0, &mut rng));
        }
        law.alpha = law.alpha_after(Dur::from_ms(11_000));
        for _ in 0..30_000 {
            let ack = Ack { rtt, ..Ack::in_sequence(MSS) };
            law.observe(&mut window, &ack, &mut cx(11_000, &mut rng));
            law.grow(&mut window, &ack, &mut cx(11_000, &mut rng));
        }
        // For the later acknowledgments the window is larger, by 0.2 % on average.
        assert_eq!(window.cwnd, (30_000 + 125) * MSS);
    }

    /// Returns the remainder of 1000 segments after each of several losses. Each loss is preceded by the highest
    /// throughput in `most`, with round trips between two bounds in milliseconds.
    fn cuts(bandwidth_switch: bool, rtts_ms: [u64; 2], most: &[u64]) -> Vec<u64> {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut law = HTcp::new(true, bandwidth_switch);
        let window = Window { cwnd: 1000 * MSS, ssthresh: 0 };
        let mut cut = |most| {
            seen_rtt(&mut law, rtts_ms[0]);
            for rtt_ms in rtts_ms[0]..=rtts_ms[1] {
                seen_rtt(&mut law, rtt_ms);
            }
            law.throughput.most = most;
            law.cut(&window, 0, LOSS, &mut cx(0, &mut rng)) / MSS
        };
        most.iter().map(|&most| cut(most)).collect()
    }

    #[test]
    fn a_loss_takes_the_share_of_the_queue_once_throughput_was_steady_twice() {
        // 30 / 40 = 96 / 128; and 30 / 33 is above the bound of 102 / 128, 30 / 70 below 64 / 128.
        assert_eq!(cuts(true, [30, 40], &[100, 100, 100, 119, 120]), [500, 500, 750, 750, 750]);
        assert_eq!(cuts(true, [30, 33], &[100, 100, 100]), [500, 500, 796]);
        assert_eq!(cuts(true, [30, 70], &[100, 100, 100]), [500, 500, 500]);
    }

    #[test]
    fn a_change_of_more_than_a_fifth_halves_the_window_and_restarts_the_test() {
        assert_eq!(cuts(true, [30, 40], &[100, 100, 120, 145, 145, 145]), [500, 500, 750, 500, 500, 750]);
        assert_eq!(cuts(true, [30, 40], &[100, 100, 80, 63, 63, 63]), [500, 500, 750, 500, 500, 750]);
        assert_eq!(cuts(false, [30, 40], &[100, 200, 300]), [500, 750, 750], "without the switch");
    }

    #[test]
    fn on_short_paths_a_loss_takes_half() {
        assert_eq!(cuts(true, [10, 12], &[100, 100, 100]), [500, 500, 500]);
        assert_eq!(cuts(true, [11, 14], &[100, 100, 100]), [500, 500, 1000 * (128 * 11 / 14) / 128]);
    }

    #[test]
    fn the_largest_round_trip_time_rises_by_20_ms_at_a_time_and_fades_with_each_loss() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut law = HTcp::new(true, true);
        let mut after = |rtt_ms, phase| {
            law.watch_rtt(Dur::from_ms(rtt_ms), phase);
            law.max_rtt
        };
        let ms = Dur::from_ms;
        assert_eq!([after(30, Phase::Open), after(51, Phase::Open)], [ms(30), ms(30)]);
        assert_eq!([after(50, Phase::Recovery), after(50, Phase::Open)], [ms(30), ms(50)]);
        law.cut(&Window { cwnd: 1000 * MSS, ssthresh: 0 }, 0, LOSS, &mut cx(0, &mut rng));
        assert_eq!(law.max_rtt, ms(30 + 19));
        law.undo();
        assert_eq!(law.max_rtt, ms(50));
    }

    /// 100 segments every 100 ms; from 400 ms on the measurement is smoothed.
    #[test]
    fn throughput_is_measured_once_per_round_trip_and_smoothed_after_three() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut law = HTcp::new(true, true);
        let mut window = Window { cwnd: 100 * MSS, ssthresh: 0 };
        let mut acknowledge = |now_ms, segments, phase| {
            let ack = Ack { rtt: Some(Dur::from_ms(100)), phase, ..Ack::in_sequence(segments * MSS) };
            law.observe(&mut window, &ack, &mut cx(now_ms, &mut rng));
            law.throughput.most / (8 * MSS)
        };
        let open = Phase::Open;
        assert_eq!([acknowledge(0, 1, open), acknowledge(100, 97, open)], [0, 0]);
        // 98 segments are less than a window minus one; with two more it is 100 in 125 ms. 99 ms is less than a round
        // trip.
        assert_eq!(acknowledge(125, 2, open), 100_000 / 125);
        assert_eq!([acknowledge(224, 99, open), acknowledge(225, 1, open)], [800, 1000]);
        assert_eq!([acknowledge(399, 100, open), acknowledge(499, 200, open)], [574, 931]);
    }

    #[test]
    fn the_time_since_a_loss_counts_from_the_end_of_recovery() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut law = HTcp::new(true, true);
        let mut window = Window { cwnd: 100 * MSS, ssthresh: 0 };
        law.observe(&mut window, &Ack::in_sequence(MSS), &mut cx(0, &mut rng));
        law.cut(&window, 0, LOSS, &mut cx(1000, &mut rng));
        let since = |law: &HTcp| law.since_loss(Time::ZERO + Dur::from_ms(2000));
        assert_eq!(since(&law), Dur::from_ms(1000));
        let repairing = Ack { phase: Phase::Recovery, ..Ack::in_sequence(MSS) };
        law.observe(&mut window, &repairing, &mut cx(1200, &mut rng));
        assert_eq!(since(&law), Dur::from_ms(1000));
        law.observe(&mut window, &Ack::in_sequence(MSS), &mut cx(1300, &mut rng));
        assert_eq!(since(&law), Dur::from_ms(700));
    }
}
