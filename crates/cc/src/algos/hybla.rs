//! Hybla: grows as NewReno would on a path with a short reference round-trip time. For satellite links.
//!
//! Source: Caini and Firrincieli, "TCP Hybla: A TCP Enhancement for Heterogeneous Networks", Int. J. of Satellite
//! Communications and Networking 22, 2004. Implemented as in Linux (tcp_hybla.c, 2.6.32 and current). rho is the
//! minimum smoothed round-trip time over a reference of 25 ms, at least 1. In slow start an acknowledged segment adds
//! 2^rho - 1 to the window, afterwards rho^2 / cwnd. A loss takes half. The window is at most 65,535 segments. After a
//! timeout, until it is repaired, the law is NewReno's. The law needs round-trip times.
//!
//! Linux rounds, and at large windows this changes the law. rho is rounded down to eighths; 2^rho and the increment per
//! acknowledgment after slow start are rounded down to 128ths of a segment. From a window of 128 rho^2 segments on the
//! increment is zero, and growth is NewReno's. `rounding = "none"` gives the law of the paper.
//!
//! `like = "linux"` also adopts the initial window and the counting of Linux 6.12. The first window has rho segments,
//! rounded down, which is one segment on a short path, whatever `initial_window` is. Without losses an acknowledgment
//! counts as one segment, whatever it covers.
//!
//! Differences from Linux: by default the first window is `initial_window`, and segments count. In slow start the whole
//! part of rho is at most 16, as in versions later than 2.6.32. Linux keeps rho at 1 if there is no round-trip time
//! when the connection begins; this law computes it at the first sample.
//!
//! Other implementations: the paper also spaces segments and estimates the bandwidth at the start. ns-3 (TcpHybla) has
//! a reference of 50 ms, takes the minimum round-trip time in whole milliseconds, rounds nothing else, and halves the
//! volume in flight. It updates rho only when the smoothed time equals the minimum, which almost never happens: rho
//! stays 1 (3.44).

use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::increase::Increase;
use crate::param::{DefaultValue, Kind, Param, Values};
use crate::registry::Controller;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};
use sparelane_core::Dur;

const REFERENCE_RTT: Param = Param {
    name: "reference_rtt",
    kind: Kind::Span { min: Dur::from_us(1), max: Dur::from_secs(10) },
    default: DefaultValue::Span(Dur::from_ms(25)),
    meaning: "grow as NewReno would with this round-trip time",
    source: "Caini and Firrincieli, 2004; Linux (rtt0); 50 ms in ns-3",
};

const ROUNDING: Param = Param {
    name: "rounding",
    kind: Kind::Choice(&["linux", "none"]),
    default: DefaultValue::Word("linux"),
    meaning: "whether growth is rounded down as in Linux, which makes it NewReno's at large windows",
    source: "Linux; none in the paper",
};

const LIKE: Param = Param {
    name: "like",
    kind: Kind::Choice(&["segments", "linux"]),
    default: DefaultValue::Word("segments"),
    meaning: "segments counts segments and uses initial_window; linux counts acknowledgments and starts with rho \
               segments",
    source: "Linux tcp_hybla.c",
};

const PARAMS: &[Param] =
    &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, REFERENCE_RTT, ROUNDING, LIKE];

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "hybla",
    summary: "NewReno's growth on a path with a shorter round trip",
    source: "Caini and Firrincieli, 2004; Linux 2.6.32",
    params: PARAMS,
    wire: None,
    make: &|values, plan| {
        let counts_acks = values.word(&LIKE) == "linux";
        let law = Hybla::new(values.span(&REFERENCE_RTT), values.word(&ROUNDING) == "linux", counts_acks);
        if counts_acks {
            // The first window is rho segments, whatever `initial_window` is.
            let mut others = Values::default();
            for param in PARAMS.iter().filter(|param| param.name != INITIAL_WINDOW.name) {
                if let Some(value) = values.given(param.name) {
                    others.set(param.name, value.clone());
                }
            }
            return Ok(windowed(law, &others, plan));
        }
        Ok(windowed(law, values, plan))
    },
};

/// The maximum of rho; no terrestrial path comes near it.
const RHO_MAX: u64 = 1000;

/// The maximum whole part of rho in slow start.
const EXPONENT_MAX: u64 = 16;

/// The maximum window, segments.
const WINDOW_MAX: u64 = 65_535;

/// The unit of rho: 1/256.
const RHO_ONE: u64 = 256;

/// The unit of a segment's increment and of rho^2.
const ONE: u64 = RHO_ONE * RHO_ONE;

/// Linux rounds rho down to eighths
const RHO_STEP: u64 = RHO_ONE / 8;

/// and the increment per acknowledgment to 128ths of a segment.
const STEP: u64 = ONE / 128;

/// The Hybla window law.
#[derive(Clone, Copy, Debug)]
pub struct Hybla {
    reference_rtt: Dur,
    rounds: bool,
    /// True if acknowledgments count instead of segments, and the first window has rho segments, as in Linux.
    counts_acks: bool,
    least_srtt: Dur,
    rho: u64,
    /// The increment per acknowledged segment in slow start: 2^rho - 1.
    slow_start_step: u64,
    /// Credit that is spent at the price of a segment.
    by_segments: Increase,
    /// Credit that is spent at the price of a window.
    by_windows: Increase,
}

impl Hybla {
    /// Creates a law with this reference. `rounds` and `counts_acks` select the rounding and the counting of Linux.
    pub fn new(reference_rtt: Dur, rounds: bool, counts_acks: bool) -> Hybla {
        Hybla {
            reference_rtt,
            rounds,
            counts_acks,
            least_srtt: Dur::MAX,
            rho: RHO_ONE,
            slow_start_step: ONE,
            by_segments: Increase::default(),
            by_windows: Increase::default(),
        }
    }

    #[cold]
    fn renew_rho(&mut self, srtt: Dur) {
        self.least_srtt = srtt;
        let step = if self.rounds { RHO_STEP } else { 1 };
        let steps = srtt.as_secs_f64() / self.reference_rtt.as_secs_f64() * (RHO_ONE / step) as f64;
        // Floating-point error must not push a whole number of steps down to the next lower one.
        let rho = (steps + 1e-9) as u64;
        self.rho = rho.saturating_mul(step).clamp(RHO_ONE, RHO_MAX * RHO_ONE);
        let whole = 1 << (self.rho / RHO_ONE).min(EXPONENT_MAX);
        let power = libm::exp2((self.rho % RHO_ONE) as f64 / RHO_ONE as f64);
        let fraction = if self.rounds { (power * 128.0) as u64 * STEP } else { (power * ONE as f64) as u64 };
        self.slow_start_step = whole * fraction - ONE;
    }

    /// Grows by rho^2 segments, in parts of [`ONE`], per window of acknowledged bytes.
    fn by_window(&mut self, window: &mut Window, acked_bytes: u64, rho_squared: u64, mss_bytes: u64) {
        let (earned, price) = (acked_bytes.saturating_mul(rho_squared), window.cwnd * ONE);
        self.by_windows.grow(window, earned, price, u64::MAX, mss_bytes);
    }

    /// Grows by `step`, in parts of [`ONE`], per acknowledged segment.
    fn by_segment(&mut self, window: &mut Window, acked_bytes: u64, step: u64, mss_bytes: u64) {
        let earned = acked_bytes.saturating_mul(step);
        self.by_segments.grow(window, earned, ONE * mss_bytes, u64::MAX, mss_bytes);
    }
}

impl WindowLaw for Hybla {
    fn start(&mut self, window: &mut Window, cx: &mut Cx<'_>) {
        if self.counts_acks {
            if let Some(srtt) = cx.srtt {
                self.renew_rho(srtt);
            }
            window.cwnd = self.rho / RHO_ONE * cx.mss_bytes;
        }
    }

    #[inline]
    fn observe(&mut self, _window: &mut Window, _ack: &Ack, cx: &mut Cx<'_>) {
        if let Some(srtt) = cx.srtt
            && srtt < self.least_srtt
        {
            self.renew_rho(srtt);
        }
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Ack, counted_bytes: u64, cx: &mut Cx<'_>) {
        let before = window.cwnd;
        if ack.phase == Phase::Open {
            let counted_bytes = if self.counts_acks { cx.mss_bytes } else { counted_bytes };
            self.by_segment(window, counted_bytes, self.slow_start_step, cx.mss_bytes);
        } else {
            window.cwnd += counted_bytes;
        }
        window.cwnd = window.cwnd.min(window.ssthresh).min(WINDOW_MAX * cx.mss_bytes).max(before);
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let mss = cx.mss_bytes;
        let before = window.cwnd;
        let rho_squared = self.rho * self.rho;
        let worth = rho_squared / STEP / (window.cwnd / mss);
        let counted_bytes = if self.counts_acks { mss } else { ack.acked_bytes };
        // NewReno's growth applies until a timeout is repaired, and when Linux's rounding leaves nothing.
        if ack.phase != Phase::Open {
            self.by_window(window, ack.acked_bytes, ONE, mss);
        } else if !self.rounds {
            self.by_window(window, counted_bytes, rho_squared, mss);
        } else if worth > 0 {
            self.by_segment(window, counted_bytes, worth * STEP, mss);
        } else {
            self.by_window(window, counted_bytes, ONE, mss);
        }
        window.cwnd = window.cwnd.min(WINDOW_MAX * mss).max(before);
    }

    /// Returns half of the window in whole segments.
    fn cut(&mut self, window: &Window, _flight_bytes: u64, _event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.by_windows.forget();
        window.cwnd / cx.mss_bytes / 2 * cx.mss_bytes
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("rho", self.rho as f64 / RHO_ONE as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::UNBOUNDED;
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1460;

    /// Returns a law with a reference of 25 ms that has seen this round-trip time.
    fn on_path(srtt_ms: u64, rounds: bool) -> Hybla {
        let mut law = Hybla::new(Dur::from_ms(25), rounds, false);
        law.renew_rho(Dur::from_ms(srtt_ms));
        law
    }

    /// Returns the window in segments after `acks` acknowledgments of one segment.
    fn after(law: &mut Hybla, cwnd: u64, ssthresh: u64, acks: u64, phase: Phase) -> u64 {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let mut window = Window { cwnd: cwnd * MSS, ssthresh: ssthresh.saturating_mul(MSS) };
        let ack = Ack { phase, ..Ack::in_sequence(MSS) };
        for _ in 0..acks {
            if window.cwnd < window.ssthresh {
                law.slow_start(&mut window, &ack, MSS, &mut cx);
            } else {
                law.grow(&mut window, &ack, &mut cx);
            }
        }
        window.cwnd / MSS
    }

    #[test]
    fn rho_is_the_ratio_of_round_trips_in_eighths_and_one_at_least() {
        let rho = |srtt_ms, rounds| on_path(srtt_ms, rounds).rho as f64 / 256.0;
        assert_eq!([5, 25, 30, 100, 600].map(|ms| rho(ms, true)), [1.0, 1.0, 1.125, 4.0, 24.0]);
        assert_eq!([5, 30, 100].map(|ms| rho(ms, false)), [1.0, 307.0 / 256.0, 4.0]);
    }

    #[test]
    fn rho_follows_the_least_smoothed_round_trip_time() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut law = Hybla::new(Dur::from_ms(25), true, false);
        let mut window = Window { cwnd: 10 * MSS, ssthresh: 0 };
        let rhos = [100, 50, 75].map(|srtt_ms| {
            let srtt = Some(Dur::from_ms(srtt_ms));
            let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt, min_rtt: srtt, rng: &mut rng };
            law.observe(&mut window, &Ack::in_sequence(MSS), &mut cx);
            law.rho / 256
        });
        assert_eq!(rhos, [4, 2, 2]);
    }

    /// 2^4 - 1 = 15. 30 ms: 2^1.125 - 1 is 2 * 139 / 128 - 1 = 150 / 128 in Linux; without rounding it is
    /// 2^(307 / 256) - 1 = 1.2961.
    #[test]
    fn in_slow_start_an_acknowledgment_adds_two_to_the_rho_less_one() {
        let grown = |srtt_ms, rounds, acks| after(&mut on_path(srtt_ms, rounds), 10, UNBOUNDED, acks, Phase::Open) - 10;
        assert_eq!([grown(25, true, 100), grown(100, true, 1), grown(100, false, 1)], [100, 15, 15]);
        assert_eq!([grown(30, true, 128), grown(30, false, 10_000)], [150, 12_961]);
        assert_eq!(after(&mut on_path(100, true), 10, 50, 3, Phase::Open), 50, "slow start ends at ssthresh");
        assert_eq!(
            after(&mut on_path(100, true), 10, 50, 3, Phase::Timeout),
            13,
            "growth after a timeout as in NewReno"
        );
    }

    #[test]
    fn a_round_adds_the_square_of_rho_without_rounding() {
        // rho = 4: 16 segments, minus the effect of the growth within the round.
        let round = |srtt_ms, rounds, cwnd| after(&mut on_path(srtt_ms, rounds), cwnd, 0, cwnd, Phase::Open) - cwnd;
        assert_eq!([round(100, false, 1_000), round(100, false, 30_000)], [15, 15]);
        let rounds = after(&mut on_path(100, false), 30_000, 0, 300_000, Phase::Open);
        // w^2 grows by 2 rho^2 with every acknowledgment: sqrt(30,000^2 + 2 * 16 * 300,000) = 30,159.6.
        assert_eq!(rounds, 30_159);
        // A satellite: rho = 24, sqrt(30,000^2 + 2 * 576 * 30,000) = 30,570.6.
        assert_eq!(after(&mut on_path(600, false), 30_000, 0, 30_000, Phase::Open), 30_570);
        // rho^2 = (307 / 256)^2 = 1.4381: sqrt(30,000^2 + 2 * 1.4381 * 300,000) = 30,014.4.
        assert_eq!(after(&mut on_path(30, false), 30_000, 0, 300_000, Phase::Open), 30_014);
    }

    /// rho = 4: 128 * 16 / 1000 = 2 for 2.048; / 1500 = 1 for 1.365; / 1900 = 1 for 1.078; / 2049 = 0.
    #[test]
    fn linux_rounds_to_128ths_of_a_segment_and_then_to_newrenos_growth() {
        let acks = |cwnd| after(&mut on_path(100, true), cwnd, 0, cwnd, Phase::Open) - cwnd;
        assert_eq!([acks(1_000), acks(1_500), acks(1_900)], [1_000 * 2 / 128, 1_500 / 128, 1_900 / 128]);
        assert_eq!([acks(2_049), acks(30_000)], [1, 1]);
        // rho = 1.125: 162 / 162 = 1, 162 / 163 = 0.
        let acks = |cwnd| after(&mut on_path(30, true), cwnd, 0, 128, Phase::Open) - cwnd;
        assert_eq!([acks(81), acks(162), acks(163)], [1, 1, 0]);
    }

    #[test]
    fn the_window_ends_at_65535_segments_and_a_loss_takes_half() {
        let mut law = on_path(600, true);
        assert_eq!(after(&mut law, 65_000, UNBOUNDED, 2, Phase::Open), 65_535);
        assert_eq!(after(&mut on_path(600, false), 65_535, 0, 65_535, Phase::Open), 65_535);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let window = Window { cwnd: 101 * MSS, ssthresh: 0 };
        assert_eq!(law.cut(&window, 0, Congestion::Loss { flight_bytes: 0 }, &mut cx), 50 * MSS);
    }
    /// 100 ms is four times the reference: the first window has four segments, and each of four acknowledgments of two
    /// segments adds 2^4 - 1 = 15. From a window of 64 segments on, an acknowledgment adds 16 / 64 of a segment.
    #[test]
    fn linux_begins_with_rho_segments_and_counts_acknowledgments() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let srtt = Some(Dur::from_ms(100));
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt, min_rtt: srtt, rng: &mut rng };
        let mut law = Hybla::new(Dur::from_ms(25), true, true);
        let mut window = Window { cwnd: 10 * MSS, ssthresh: 64 * MSS };
        law.start(&mut window, &mut cx);
        assert_eq!(window.cwnd, 4 * MSS);
        let ack = Ack::in_sequence(2 * MSS);
        (0..4).for_each(|_| law.slow_start(&mut window, &ack, 2 * MSS, &mut cx));
        assert_eq!(window.cwnd, 64 * MSS);
        (0..4).for_each(|_| law.grow(&mut window, &ack, &mut cx));
        assert_eq!(window.cwnd, 65 * MSS);
        let short = Some(Dur::from_ms(20));
        law = Hybla::new(Dur::from_ms(25), true, true);
        law.start(&mut window, &mut Cx { srtt: short, ..cx });
        assert_eq!(window.cwnd, MSS);
    }
}
