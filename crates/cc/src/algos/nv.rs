//! TCP-NV (New Vegas): the window that the measured rate fills, plus a few packets in the queue.
//!
//! Source: Brakmo, "TCP-NV: Congestion Avoidance for Data Centers", Linux Plumbers Conference 2010. The law is that of
//! Linux 6.12 (tcp_nv.c), and parameters have its names. It needs rate samples of single segments.
//!
//! **Samples.** Each acknowledgment that delivers new data yields a sample: its round-trip time, averaged with the
//! previous ones (half and half), and a rate, the bytes delivered since its segment was sent over that average. The
//! largest rate times the minimum average is the window that carries this rate without a queue. The bound is `nv_pad`
//! (10) packets more.
//!
//! **Decisions.** Once per round trip the window is compared with the bound. Above it, the window loses 38/128 of the
//! excess, at least two segments; an excess of at most two segments is removed entirely. Slow start then ends at the
//! bound, and growth stops. At `nv_pad_buffer` (2) or more below the bound, growth is allowed: a segment per round
//! trip, or slow start. In between nothing changes. A decision needs samples: 20 for growth, 30 to end slow start, 60
//! to shrink a later window. The number of samples and the largest rate accumulate from decision to decision, over at
//! least two round trips. Ten round trips without a decision stop growth.
//!
//! **Losses.** After a loss, a timeout or a mark nothing grows until a decision allows it. Once the episode is over,
//! measurement restarts, including the minimum round-trip time. A loss leaves 819/1024 of the window. Each timeout
//! halves the speed of growth, down to a segment in 256 round trips; more than 8 decisions that allow growth double it
//! again.
//!
//! **Minimum round-trip time.** It is replaced every 5 s, randomized by a quarter, by the minimum of that time; first
//! after 2 s. If a round trip yields a single sample, as behind receive offload, growth is allowed until the window is
//! larger (up to 81 segments).
//!
//! The author recommends NV within a data centre where all flows use it: flows that fill queues take its share.
//!
//! Differences from Linux: the reset interval of the minimum round-trip time is exact, not in ticks. Rates are
//! unbounded; those of Linux overflow above 429 Gb/s. After a mark the window falls at once. In Linux a BPF program may
//! supply the round-trip time that indicates congestion; here it is a parameter (`base_rtt`).

use crate::contract::{Ack, Congestion, Cx, Delivery, Needs, Phase};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};
use sparelane_core::{Dur, Time};

/// A whole-number parameter with the name of Linux's parameter or constant.
const fn whole(name: &'static str, default: u64, max: u64, unit: Unit, meaning: &'static str) -> Param {
    Param {
        name,
        kind: Kind::Whole { min: 0, max, unit },
        default: DefaultValue::Whole(default),
        meaning,
        source: "Linux tcp_nv.c",
    }
}

const ROUND_TRIPS: Unit = Unit::Named("round trips");
const SAMPLES: Unit = Unit::Named("samples");
const DECISIONS: Unit = Unit::Named("decisions");

const PAD: Param = whole("nv_pad", 10, 1_000_000, Unit::Segments, "packets that may wait in queues");

const PAD_BUFFER: Param = whole(
    "nv_pad_buffer",
    2,
    1_000_000,
    Unit::Segments,
    "the window grows only if it is at least this far below its bound; at most nv_pad",
);

const RESET_PERIOD: Param = Param {
    name: "nv_reset_period",
    kind: Kind::Span { min: Dur::from_ms(1), max: Dur::from_secs(1_000_000) },
    default: DefaultValue::Span(Dur::from_secs(5)),
    meaning: "mean interval after which the minimum round-trip time is replaced; first after 2 s",
    source: "Linux tcp_nv.c",
};

const MIN_CWND: Param = Param {
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    ..whole("nv_min_cwnd", 2, 1_000_000, Unit::Segments, "minimum window without losses")
};

const CONG_DEC_MULT: Param = whole(
    "nv_cong_dec_mult",
    38,
    128,
    Unit::Named("128ths"),
    "share of the excess that the window loses; 0 leaves an excess of two segments",
);

const SSTHRESH_FACTOR: Param = whole(
    "nv_ssthresh_factor",
    8,
    1_000_000,
    Unit::Named("eighths"),
    "slow-start threshold after congestion, relative to the window's bound",
);

const RTT_FACTOR: Param = whole(
    "nv_rtt_factor",
    128,
    256,
    Unit::Named("256ths"),
    "weight of a new round-trip time in the average; 0 disables averaging",
);

const LOSS_DEC_FACTOR: Param =
    whole("nv_loss_dec_factor", 819, 1024, Unit::Named("1024ths"), "share of the window kept after a loss");

const GROWTH_RATE_NEG: Param = whole(
    "nv_cwnd_growth_rate_neg",
    8,
    1_000_000,
    DECISIONS,
    "after timeouts have slowed growth, more than this many decisions for growth double it; 0 never slows it",
);

const GROWTH_RATE_POS: Param = whole(
    "nv_cwnd_growth_rate_pos",
    0,
    1_000_000,
    DECISIONS,
    "more than this many decisions for growth double it beyond a segment per round trip; 0 never does",
);

const DEC_EVAL_MIN_CALLS: Param =
    whole("nv_dec_eval_min_calls", 60, 255, SAMPLES, "minimum number to shrink a window beyond slow start");

const INC_EVAL_MIN_CALLS: Param = whole("nv_inc_eval_min_calls", 20, 255, SAMPLES, "minimum number to allow growth");

const SSTHRESH_EVAL_MIN_CALLS: Param =
    whole("nv_ssthresh_eval_min_calls", 30, 255, SAMPLES, "minimum number to end the first slow start");

const STOP_RTT_CNT: Param = whole(
    "nv_stop_rtt_cnt",
    10,
    255,
    ROUND_TRIPS,
    "more than this without a decision stop growth if the window is above its bound and samples are few",
);

const RTT_MIN_CNT: Param =
    whole("nv_rtt_min_cnt", 2, 255, ROUND_TRIPS, "minimum since the last decision to shrink the window");

const BASE_RTT: Param = Param {
    name: "base_rtt",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(4000) },
    default: DefaultValue::Span(Dur::ZERO),
    meaning: "round-trip time that indicates congestion, if known: the minimum round-trip time counts as at most \
               this and at least 205/256 of it; 0 means unknown",
    source: "Linux BPF_SOCK_OPS_BASE_RTT",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "nv",
    summary: "the window that the measured rate fills, plus a few packets in the queue",
    source: "Brakmo, Linux Plumbers Conference 2010; Linux 6.12",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        PAD,
        PAD_BUFFER,
        RESET_PERIOD,
        MIN_CWND,
        CONG_DEC_MULT,
        SSTHRESH_FACTOR,
        RTT_FACTOR,
        LOSS_DEC_FACTOR,
        GROWTH_RATE_NEG,
        GROWTH_RATE_POS,
        DEC_EVAL_MIN_CALLS,
        INC_EVAL_MIN_CALLS,
        SSTHRESH_EVAL_MIN_CALLS,
        STOP_RTT_CNT,
        RTT_MIN_CNT,
        BASE_RTT,
    ],
    wire: None,
    make: &|values, plan| {
        let config = NvConfig {
            pad: values.whole(&PAD),
            pad_buffer: values.whole(&PAD_BUFFER),
            reset_period: values.span(&RESET_PERIOD),
            min_cwnd: values.whole(&MIN_CWND),
            cong_dec_mult: values.whole(&CONG_DEC_MULT),
            ssthresh_factor: values.whole(&SSTHRESH_FACTOR),
            rtt_factor: values.whole(&RTT_FACTOR),
            loss_dec_factor: values.whole(&LOSS_DEC_FACTOR),
            growth_rate_neg: values.whole(&GROWTH_RATE_NEG),
            growth_rate_pos: values.whole(&GROWTH_RATE_POS),
            dec_eval_min_calls: values.whole(&DEC_EVAL_MIN_CALLS),
            inc_eval_min_calls: values.whole(&INC_EVAL_MIN_CALLS),
            ssthresh_eval_min_calls: values.whole(&SSTHRESH_EVAL_MIN_CALLS),
            stop_rtt_cnt: values.whole(&STOP_RTT_CNT),
            rtt_min_cnt: values.whole(&RTT_MIN_CNT),
            base_rtt: values.span(&BASE_RTT),
        };
        Ok(windowed(Nv::new(config), values, plan))
    },
};

/// The constants of the law. Each has the meaning of the parameter of its name, prefixed with `nv_`.
#[derive(Clone, Copy, Debug)]
pub struct NvConfig {
    /// Packets that may wait in queues.
    pub pad: u64,
    /// Minimum distance from the bound for growth, segments.
    pub pad_buffer: u64,
    /// Mean interval after which the minimum round-trip time is replaced.
    pub reset_period: Dur,
    /// Minimum window without losses, segments.
    pub min_cwnd: u64,
    /// Share of the excess that the window loses, 128ths.
    pub cong_dec_mult: u64,
    /// Slow-start threshold after congestion, eighths of the bound.
    pub ssthresh_factor: u64,
    /// Weight of a new round-trip time, 256ths.
    pub rtt_factor: u64,
    /// Share of the window kept after a loss, 1024ths.
    pub loss_dec_factor: u64,
    /// More decisions for growth than this double a growth that timeouts have slowed.
    pub growth_rate_neg: u64,
    /// More decisions for growth than this double any other growth.
    pub growth_rate_pos: u64,
    /// Minimum number of samples to shrink the window.
    pub dec_eval_min_calls: u64,
    /// Minimum number of samples to allow growth.
    pub inc_eval_min_calls: u64,
    /// Minimum number of samples to end the first slow start.
    pub ssthresh_eval_min_calls: u64,
    /// More round trips than this without a decision stop growth.
    pub stop_rtt_cnt: u64,
    /// Minimum number of round trips to shrink the window.
    pub rtt_min_cnt: u64,
    /// The round-trip time that indicates congestion, or zero.
    pub base_rtt: Dur,
}

/// Time until the minimum round-trip time is first replaced.
const FIRST_RESET: Dur = Dur::from_secs(2);
/// Counts of samples and round trips saturate here.
const MOST_COUNTED: u64 = 255;
/// Number of segments that a single sample per round trip may cover before it counts as that of a small window: initial
/// value, step and maximum.
const LEAST_LONE_WINDOW: u64 = 4;
const LONE_WINDOW_STEP: u64 = 2;
const MOST_LONE_WINDOW: u64 = 81;
/// A slow-start threshold of at least this many segments counts as infinite.
const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;
/// Rates are in units of 100 bits per second: bytes per microsecond times this.
const RATE_UNITS: u64 = 80_000;
/// Limits of the growth exponent: how often growth may be halved or doubled.
const SLOWEST: i32 = -8;
const FASTEST: i32 = 31;

/// The reaction to a loss, a timeout or a mark in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    None,
    /// A mark was handled. The volume in flight at the next acknowledgment defines its round trip.
    Marked,
    /// The round trip of a mark lasts until more than this many bytes are acknowledged in sequence.
    Until(u64),
    /// A loss was handled. The reaction lasts until every loss is repaired.
    Repair,
}

/// The NV window law. Names in brackets are those of Linux.
#[derive(Clone, Debug)]
pub struct Nv {
    config: NvConfig,
    reaction: Reaction,
    allows_growth: bool,
    /// Growth is two to the power of this in segments per round trip (cwnd_growth_factor).
    growth_factor: i32,
    /// Credit towards the next segment (snd_cwnd_cnt).
    saved_segments: u64,
    /// Samples since the last decision (nv_eval_call_cnt). `round_trips` counts round trips (nv_rtt_cnt).
    samples: u64,
    round_trips: u64,
    /// Decisions for growth since the last one against it (nv_no_cong_cnt).
    growths: u64,
    /// A single sample of fewer segments belongs to a small window (nv_min_cwnd of the connection).
    lone_window: u64,
    /// The average round-trip time in microseconds, zero if unknown. `least_us` is its minimum since the last reset,
    /// and `next_least_us` the minimum for the time after the next reset.
    average_us: u64,
    least_us: u64,
    next_least_us: u64,
    forget_at: Time,
    /// The largest rate since the last decision, in 100 bits per second.
    rate: u64,
    /// Bytes acknowledged in sequence (snd_una). `delivered_bytes` also counts those delivered out of order.
    acked_bytes: u64,
    delivered_bytes: u64,
    /// Bytes acknowledged at the last sample. The round trip ends when `round_end_bytes` is exceeded.
    acked_before_bytes: u64,
    round_end_bytes: u64,
}

impl Nv {
    /// Creates a law with these constants.
    pub fn new(config: NvConfig) -> Nv {
        Nv {
            config,
            reaction: Reaction::None,
            allows_growth: true,
            growth_factor: 0,
            saved_segments: 0,
            samples: 0,
            round_trips: 0,
            growths: 0,
            lone_window: LEAST_LONE_WINDOW,
            average_us: 0,
            least_us: u64::MAX,
            next_least_us: u64::MAX,
            forget_at: Time::ZERO + FIRST_RESET,
            rate: 0,
            acked_bytes: 0,
            delivered_bytes: 0,
            acked_before_bytes: 0,
            round_end_bytes: 0,
        }
    }

    /// Restarts the measurement.
    fn reset(&mut self) {
        self.reaction = Reaction::None;
        (self.growths, self.round_trips, self.samples) = (0, 0, 0);
        (self.average_us, self.rate) = (0, 0);
        (self.round_end_bytes, self.acked_before_bytes) = (self.acked_bytes, self.acked_bytes);
    }

    /// Returns true if the law is reacting to congestion at `ack`, so that nothing is measured.
    fn reacts(&mut self, ack: &Ack, sent_bytes: u64) -> bool {
        if self.reaction == Reaction::Marked {
            self.reaction = Reaction::Until(sent_bytes);
        }
        if ack.phase != Phase::Open {
            self.reaction = Reaction::Repair;
            self.allows_growth = false;
            return true;
        }
        match self.reaction {
            Reaction::None => false,
            Reaction::Until(end) if self.acked_bytes <= end => true,
            _ => {
                self.reset();
                true
            }
        }
    }

    /// Adds a round-trip time to the average. Returns the average in microseconds.
    fn average(&mut self, rtt_us: u64) -> u64 {
        let weight = self.config.rtt_factor;
        let mut average_us = rtt_us;
        if weight > 0 {
            if self.average_us > 0 {
                average_us = (rtt_us * weight + self.average_us * (256 - weight)) >> 8;
            } else {
                // The first average doubles as an upper limit of the minimum.
                self.least_us = 2 * average_us;
            }
            self.average_us = average_us;
        }
        average_us
    }

    /// Updates the minimum average within the bounds of `base_rtt`, and replaces it when its time is up.
    fn note_least(&mut self, average_us: u64, cx: &mut Cx<'_>) {
        let base_us = micros(self.config.base_rtt);
        let bounded_us = if base_us > 0 { average_us.clamp((base_us * 205) >> 8, base_us) } else { average_us };
        self.least_us = self.least_us.min(bounded_us);
        self.next_least_us = self.next_least_us.min(bounded_us);
        if cx.now >= self.forget_at {
            self.least_us = std::mem::replace(&mut self.next_least_us, u64::MAX);
            self.forget_at = cx.now + self.config.reset_period * (384 + cx.rng.below(256)) / 512;
            self.lone_window = (self.lone_window / 2).max(LEAST_LONE_WINDOW);
        }
    }

    /// Takes a sample.
    fn sample(&mut self, rtt: Dur, delivery: &Delivery, cx: &mut Cx<'_>) {
        let average_us = self.average(micros(rtt));
        self.rate = self.rate.max(delivery.delivered_bytes() * RATE_UNITS / average_us.max(1));
        self.samples = (self.samples + 1).min(MOST_COUNTED);
        self.note_least(average_us, cx);
    }

    /// Ends a round trip whose last sample acknowledged `newly_bytes` and decides about the window.
    fn end_round(&mut self, window: &mut Window, sent_bytes: u64, newly_bytes: u64, mss_bytes: u64) {
        self.round_end_bytes = sent_bytes;
        self.round_trips = (self.round_trips + 1).min(MOST_COUNTED);
        // Receive offload merges acknowledgments: growth is allowed until a round trip yields more samples.
        let is_lone = self.samples == 1 && newly_bytes >= (self.lone_window - 1) * mss_bytes;
        if is_lone && self.lone_window < MOST_LONE_WINDOW {
            self.lone_window = (self.lone_window + LONE_WINDOW_STEP).min(MOST_LONE_WINDOW);
            self.round_end_bytes = sent_bytes + self.lone_window * mss_bytes;
            self.samples = 0;
            self.allows_growth = true;
            return;
        }
        // The largest rate times the minimum round-trip time: the window without a queue.
        let without_queue = u128::from(self.rate) * u128::from(self.least_us) / u128::from(RATE_UNITS * mss_bytes);
        let most = (without_queue as u64).saturating_add(self.config.pad);
        let segments = window.cwnd / mss_bytes;
        let decides = if segments > most {
            self.shrink(window, segments, most, mss_bytes)
        } else {
            segments <= most.saturating_sub(self.config.pad_buffer) && self.allow_growth()
        };
        if decides {
            // A decision restarts the count of samples and the search for the largest rate.
            (self.samples, self.round_trips, self.rate) = (0, 0, 0);
            window.cwnd = window.cwnd.max(self.config.min_cwnd * mss_bytes);
        }
    }

    /// Shrinks a window of `segments` that exceeds `most`. Returns false if there are too few samples to decide.
    fn shrink(&mut self, window: &mut Window, segments: u64, most: u64, mss_bytes: u64) -> bool {
        let config = &self.config;
        if self.round_trips < config.rtt_min_cnt {
            return false;
        }
        // The first slow start ends on fewer samples than a later decision needs.
        if window.ssthresh / mss_bytes >= INFINITE_SSTHRESH {
            if self.samples < config.ssthresh_eval_min_calls {
                return false;
            }
        } else if self.samples < config.dec_eval_min_calls {
            if self.round_trips > config.stop_rtt_cnt {
                self.allows_growth = false;
            }
            return false;
        }
        let excess = segments - most;
        window.ssthresh = config.ssthresh_factor * most / 8 * mss_bytes;
        if excess > 2 {
            window.cwnd -= (excess * config.cong_dec_mult / 128).max(2) * mss_bytes;
        } else if config.cong_dec_mult > 0 {
            window.cwnd = most * mss_bytes;
        }
        self.allows_growth = false;
        self.growth_factor = self.growth_factor.min(0);
        self.growths = 0;
        true
    }

    /// Allows growth of a window well below its bound. Returns false if there are too few samples to decide.
    fn allow_growth(&mut self) -> bool {
        if self.samples < self.config.inc_eval_min_calls {
            return false;
        }
        self.allows_growth = true;
        self.growths += 1;
        let enough = if self.growth_factor < 0 { self.config.growth_rate_neg } else { self.config.growth_rate_pos };
        if enough > 0 && self.growths > enough {
            self.growth_factor = (self.growth_factor + 1).min(FASTEST);
            self.growths = 0;
        }
        true
    }

    /// Grows the window beyond slow start by the credit of `segments`.
    fn grow_by(&mut self, window: &mut Window, segments: u64, mss_bytes: u64) {
        let cwnd = window.cwnd / mss_bytes;
        let price =
            if self.growth_factor < 0 { cwnd << -self.growth_factor } else { (cwnd >> self.growth_factor).max(4) };
        // The price has fallen below the credit saved so far.
        if self.saved_segments >= price {
            self.saved_segments = 0;
            window.cwnd += mss_bytes;
        }
        self.saved_segments += segments;
        window.cwnd += self.saved_segments / price * mss_bytes;
        self.saved_segments %= price;
    }

    /// Slows growth after a timeout.
    fn slow_down(&mut self) {
        self.growth_factor = self.growth_factor.min(0);
        if self.config.growth_rate_neg > 0 {
            self.growth_factor = (self.growth_factor - 1).max(SLOWEST);
        }
    }
}

/// Returns whole microseconds.
const fn micros(span: Dur) -> u64 {
    span.as_ps() / 1_000_000
}

impl WindowLaw for Nv {
    fn needs(&self) -> Needs {
        Needs { segments: true, ..Needs::default() }
    }

    fn start(&mut self, _window: &mut Window, cx: &mut Cx<'_>) {
        self.forget_at = cx.now + FIRST_RESET;
    }

    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        self.acked_bytes += ack.acked_bytes;
        self.delivered_bytes += ack.delivered_bytes;
        // Without losses, the bytes sent are those delivered and those in flight (snd_nxt).
        let sent_bytes = self.delivered_bytes + ack.in_flight_bytes;
        if self.reacts(ack, sent_bytes) {
            return;
        }
        let Some(rtt) = ack.rtt.or(ack.resent_rtt) else { return };
        let newly_bytes = self.acked_bytes - self.acked_before_bytes;
        self.acked_before_bytes = self.acked_bytes;
        let Some(delivery) = &ack.delivery else { return };
        self.sample(rtt, delivery, cx);
        if self.acked_bytes > self.round_end_bytes {
            self.end_round(window, sent_bytes, newly_bytes, cx.mss_bytes);
        }
    }

    fn slow_start(&mut self, window: &mut Window, _ack: &Ack, counted_bytes: u64, cx: &mut Cx<'_>) {
        if !self.allows_growth {
            return;
        }
        let slow = counted_bytes.min(window.ssthresh.saturating_sub(window.cwnd));
        window.cwnd += slow;
        if counted_bytes > slow {
            self.grow_by(window, (counted_bytes - slow) / cx.mss_bytes, cx.mss_bytes);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if self.allows_growth {
            self.grow_by(window, ack.acked_bytes / cx.mss_bytes, cx.mss_bytes);
        }
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.allows_growth = false;
        self.saved_segments = 0;
        self.reaction = if matches!(event, Congestion::Marked { .. }) { Reaction::Marked } else { Reaction::Repair };
        if matches!(event, Congestion::Timeout { .. }) {
            self.slow_down();
        }
        ((window.cwnd / cx.mss_bytes * self.config.loss_dec_factor) >> 10) * cx.mss_bytes
    }

    fn timed_out_again(&mut self) {
        self.slow_down();
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let least_us = if self.least_us == u64::MAX { 0 } else { self.least_us };
        put("least_rtt_s", least_us as f64 / 1e6);
        put("allows_growth", f64::from(u8::from(self.allows_growth)));
        put("growth_factor", f64::from(self.growth_factor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{CongestionControl, traced};
    use crate::param::UNBOUNDED;
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;
    const LINUX: NvConfig = NvConfig {
        pad: 10,
        pad_buffer: 2,
        reset_period: Dur::from_secs(5),
        min_cwnd: 2,
        cong_dec_mult: 38,
        ssthresh_factor: 8,
        rtt_factor: 128,
        loss_dec_factor: 819,
        growth_rate_neg: 8,
        growth_rate_pos: 0,
        dec_eval_min_calls: 60,
        inc_eval_min_calls: 20,
        ssthresh_eval_min_calls: 30,
        stop_rtt_cnt: 10,
        rtt_min_cnt: 2,
        base_rtt: Dur::ZERO,
    };
    const LOSS: Congestion = Congestion::Loss { flight_bytes: 0 };
    const TIMEOUT: Congestion = Congestion::Timeout { flight_bytes: 0, first: true };

    /// A connection with one acknowledgment of one segment every 10 us, all with the same round-trip time and rate.
    struct Flow {
        controller: Windowed<Nv>,
        rng: Stream,
        now: Time,
        rtt_us: u64,
        /// Segments delivered since the segment of an acknowledgment was sent.
        rate: u64,
        in_flight: u64,
        phase: Phase,
        cwnd_limited: bool,
    }

    impl Flow {
        fn new(config: NvConfig, initial_window: u64, initial_ssthresh: u64) -> Flow {
            let window = WindowConfig {
                initial_window,
                initial_ssthresh,
                slow_start_limit: 8,
                growth_limit: UNBOUNDED,
                ..WindowConfig::default()
            };
            Flow {
                controller: Windowed::new(Nv::new(config), window, MSS),
                rng: Stream::new(1, Domain::Test, 0),
                now: Time::ZERO,
                rtt_us: 10_000,
                rate: 50,
                in_flight: 9,
                phase: Phase::Open,
                cwnd_limited: false,
            }
        }

        /// Returns the window after `acks` acknowledgments of `segments` segments each.
        fn acknowledge(&mut self, acks: u64, segments: u64) -> u64 {
            for _ in 0..acks {
                self.now += Dur::from_us(10);
                let delivery = Delivery {
                    sent_at: Time::ZERO,
                    prior_delivered_bytes: 0,
                    total_delivered_bytes: self.rate * MSS,
                    lost_bytes: 0,
                    in_flight_bytes: 0,
                    interval: Dur::from_ms(1),
                    app_limited: false,
                };
                let ack = Ack {
                    rtt: Some(Dur::from_us(self.rtt_us)),
                    delivery: Some(delivery),
                    in_flight_bytes: self.in_flight * MSS,
                    phase: self.phase,
                    cwnd_limited: self.cwnd_limited,
                    ..Ack::in_sequence(segments * MSS)
                };
                let (controller, mut cx) = self.cx();
                controller.on_ack(&ack, &mut cx);
            }
            self.window()
        }

        fn congest(&mut self, event: Congestion) -> u64 {
            let (controller, mut cx) = self.cx();
            controller.on_congestion(event, &mut cx);
            self.window()
        }

        fn cx(&mut self) -> (&mut Windowed<Nv>, Cx<'_>) {
            let cx = Cx { now: self.now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
            (&mut self.controller, cx)
        }

        fn window(&self) -> u64 {
            self.controller.limits().cwnd_bytes / MSS
        }

        fn traced_value(&self, name: &'static str) -> f64 {
            traced(&self.controller, name)
        }
    }

    /// 50 segments in 10 ms are a window of 50 and a bound of 60: 38/128 of the excess of 40 is 11. Rounds of ten end
    /// with acknowledgments 1, 11, 21, and so on; at the 31st there are 30 samples.
    #[test]
    fn the_first_excess_ends_slow_start_and_takes_thirty_eight_128ths_of_itself() {
        let mut flow = Flow::new(LINUX, 100, UNBOUNDED);
        assert_eq!((flow.acknowledge(30, 1), flow.acknowledge(1, 1)), (100, 89));
        assert_eq!((flow.traced_value("ssthresh_bytes"), flow.traced_value("allows_growth")), (60_000.0, 0.0));
        // From here on 60 samples are needed: of an excess of 29, 8 segments go.
        assert_eq!((flow.acknowledge(59, 1), flow.acknowledge(1, 1)), (89, 81));
    }

    /// With a bound of 60 segments, windows of 57 and 58 may grow, 59 and 60 stay, 61 and 62 fall to the bound, and 63
    /// loses two.
    #[test]
    fn near_the_bound_nothing_changes_and_slightly_above_it_the_window_falls_to_it() {
        for (initial, window, growth) in
            [(57, 57, 1.0), (58, 58, 1.0), (59, 59, 0.0), (60, 60, 0.0), (61, 60, 0.0), (62, 60, 0.0), (63, 61, 0.0)]
        {
            let mut flow = Flow::new(LINUX, initial, 2);
            // A loss forbids growth until a decision allows it.
            flow.congest(LOSS);
            flow.controller.window.cwnd = initial * MSS;
            assert_eq!(
                (flow.acknowledge(62, 1), flow.traced_value("allows_growth")),
                (window, growth),
                "from {initial} segments"
            );
        }
    }

    #[test]
    fn a_loss_leaves_819_of_1024_and_measurement_restarts_after_the_repair() {
        let mut flow = Flow::new(LINUX, 100, UNBOUNDED);
        flow.acknowledge(25, 1);
        assert_eq!(flow.congest(LOSS), 79);
        (flow.phase, flow.rtt_us) = (Phase::Recovery, 1);
        flow.acknowledge(100, 1);
        assert_eq!(flow.traced_value("least_rtt_s"), 0.01);
        // The acknowledgment that ends recovery is not measured. The next round-trip time is the new minimum.
        (flow.phase, flow.rtt_us) = (Phase::Open, 20_000);
        flow.acknowledge(1, 1);
        assert_eq!(flow.traced_value("least_rtt_s"), 0.01);
        flow.acknowledge(1, 1);
        assert_eq!(flow.traced_value("least_rtt_s"), 0.02);
        assert_eq!(
            (flow.acknowledge(59, 1), flow.acknowledge(1, 1)),
            (79, 79 - 5),
            "a quarter of the excess of 19 segments, at the 61st sample"
        );
    }

    /// 9 segments are in flight after the next acknowledgment: more than ten must be acknowledged.
    #[test]
    fn a_mark_stops_growth_for_a_round_trip() {
        let mut flow = Flow::new(LINUX, 100, 2);
        assert_eq!(flow.congest(Congestion::Marked { flight_bytes: 0, by_ecn: true }), 79);
        flow.rtt_us = 1;
        flow.acknowledge(11, 1);
        assert_eq!(flow.traced_value("least_rtt_s"), 0.0);
        flow.rtt_us = 20_000;
        flow.acknowledge(1, 1);
        assert_eq!(flow.traced_value("least_rtt_s"), 0.02);
    }

    /// Slow start grows by all acknowledged bytes, later growth is a segment per window. Without permission nothing
    /// grows.
    #[test]
    fn growth_waits_for_twenty_samples_without_congestion() {
        let mut flow = Flow::new(LINUX, 10, UNBOUNDED);
        flow.cwnd_limited = true;
        assert_eq!(flow.acknowledge(5, 2), 20);
        assert_eq!(flow.congest(LOSS), 15);
        assert_eq!(flow.acknowledge(19, 1), 15);
        // The first acknowledgment ends the repair. The 22nd ends the first round of ten with at least 20 samples. A
        // window of 15 needs 15 acknowledgments, of which the 22nd is the first.
        assert_eq!((flow.acknowledge(16, 1), flow.acknowledge(1, 1)), (15, 16));
    }

    #[test]
    fn each_timeout_halves_growth_until_it_is_allowed_more_than_eight_times() {
        let mut flow = Flow::new(LINUX, 20, 2);
        assert_eq!(flow.congest(TIMEOUT), 1);
        assert_eq!(flow.congest(Congestion::Timeout { flight_bytes: 0, first: false }), 1);
        assert_eq!(flow.traced_value("growth_factor"), -2.0);
        (0..20).for_each(|_| _ = flow.congest(Congestion::Timeout { flight_bytes: 0, first: false }));
        assert_eq!(flow.traced_value("growth_factor"), -8.0);
        // A decision comes every twenty acknowledgments, after one that ends the repair and one that begins the first
        // round.
        flow.acknowledge(2, 1);
        let after = |flow: &mut Flow, decisions: u64| {
            flow.acknowledge(20 * decisions, 1);
            flow.traced_value("growth_factor")
        };
        assert_eq!([after(&mut flow, 8), after(&mut flow, 1), after(&mut flow, 9)], [-8.0, -7.0, -6.0]);
        let mut never = Flow::new(NvConfig { growth_rate_neg: 0, ..LINUX }, 20, 2);
        never.congest(TIMEOUT);
        assert_eq!(never.traced_value("growth_factor"), 0.0);
    }

    /// A window of 10 grows by a segment per 5 acknowledged ones at factor 1, and per 20 at factor -1.
    #[test]
    fn decisions_change_growth_by_powers_of_two() {
        let mut law = Nv::new(LINUX);
        let mut grown = |factor, segments| {
            let mut window = Window { cwnd: 10 * MSS, ssthresh: 0 };
            (law.growth_factor, law.saved_segments) = (factor, 0);
            law.grow_by(&mut window, segments, MSS);
            window.cwnd / MSS
        };
        assert_eq!([grown(1, 4), grown(1, 5), grown(1, 10)], [10, 11, 12]);
        assert_eq!([grown(-1, 19), grown(-1, 20)], [10, 11]);
        assert_eq!([grown(31, 3), grown(31, 4)], [10, 11], "at least four segments are necessary");
        // Credit saved for a larger window pays for one segment and is dropped.
        let mut window = Window { cwnd: 10 * MSS, ssthresh: 0 };
        (law.growth_factor, law.saved_segments) = (0, 15);
        law.grow_by(&mut window, 3, MSS);
        assert_eq!((window.cwnd / MSS, law.saved_segments), (11, 3));
        let mut fast = Flow::new(NvConfig { growth_rate_pos: 2, ..LINUX }, 20, 2);
        fast.acknowledge(61, 1);
        assert_eq!(fast.traced_value("growth_factor"), 1.0, "the third decision raises the factor");
    }

    /// 10 ms and 20 ms average to 15 ms, then to 17.5. The rate is over the average, and the largest counts: 50
    /// segments in 10 ms.
    #[test]
    fn round_trip_times_are_averaged_and_the_largest_rate_counts() {
        let mut law = Nv::new(LINUX);
        assert_eq!([law.average(10_000), law.average(20_000), law.average(20_000)], [10_000, 15_000, 17_500]);
        let mut exact = Nv::new(NvConfig { rtt_factor: 0, ..LINUX });
        assert_eq!([exact.average(10_000), exact.average(20_000)], [10_000, 20_000]);
        let mut flow = Flow::new(LINUX, 100, UNBOUNDED);
        flow.acknowledge(1, 1);
        flow.rtt_us = 20_000;
        assert_eq!(flow.acknowledge(30, 1), 89, "the same window as with 10 ms throughout");
    }

    /// 2 s after the start the minimum becomes the one since then, which is the same here; 3.75 to 6.25 s later the
    /// minimum of that time. Averages of whole microseconds approach 19,999 from below.
    #[test]
    fn the_minimum_round_trip_time_is_replaced() {
        let mut flow = Flow::new(LINUX, 40, 2);
        let at = |flow: &mut Flow, ms: u64, rtt_us| {
            (flow.now, flow.rtt_us) = (Time::ZERO + Dur::from_ms(ms), rtt_us);
            flow.acknowledge(20, 1);
            flow.traced_value("least_rtt_s")
        };
        assert_eq!([at(&mut flow, 0, 10_000), at(&mut flow, 1, 20_000), at(&mut flow, 2000, 20_000)], [0.01; 3]);
        assert_eq!([at(&mut flow, 5700, 20_000), at(&mut flow, 8260, 20_000)], [0.01, 0.019999]);
    }

    /// One acknowledgment per round trip covers all segments in flight. If it covers three, growth is allowed without a
    /// decision.
    #[test]
    fn a_single_sample_per_round_trip_allows_growth() {
        for (segments, allows_growth) in [(2, 0.0), (3, 1.0)] {
            let mut flow = Flow::new(LINUX, 100, UNBOUNDED);
            flow.congest(LOSS);
            flow.in_flight = 0;
            flow.acknowledge(1, 3);
            flow.acknowledge(1, segments);
            assert_eq!(flow.traced_value("allows_growth"), allows_growth);
        }
    }

    /// Windows of 100 with a bound of 60, and four samples in each of ten round trips: too few to shrink. In the
    /// eleventh growth stops.
    #[test]
    fn too_many_round_trips_without_a_decision_stop_growth() {
        let mut flow = Flow::new(LINUX, 100, 2);
        flow.in_flight = 3;
        flow.acknowledge(40, 1);
        assert_eq!(flow.traced_value("allows_growth"), 1.0);
        assert_eq!(flow.acknowledge(1, 1), 100);
        assert_eq!(flow.traced_value("allows_growth"), 0.0);
    }

    /// If the base round-trip time is 10 ms, the minimum is between 8007 us (205/256 of it) and 10 ms.
    #[test]
    fn a_base_round_trip_time_bounds_the_minimum() {
        for (rtt_us, least_s) in [(1000, 0.002), (5000, 0.008007), (9000, 0.009), (30_000, 0.01)] {
            let mut flow = Flow::new(NvConfig { base_rtt: Dur::from_ms(10), ..LINUX }, 100, 2);
            flow.rtt_us = rtt_us;
            flow.acknowledge(1, 1);
            assert_eq!(
                flow.traced_value("least_rtt_s"),
                least_s,
                "{rtt_us} us; the minimum is at most twice the first sample"
            );
        }
    }

    /// The bound is zero at a rate of zero and without a pad; a window of three falls to the minimum of two.
    #[test]
    fn the_window_falls_to_its_minimum() {
        let mut flow = Flow::new(NvConfig { pad: 0, pad_buffer: 0, ..LINUX }, 3, 2);
        flow.rate = 0;
        assert_eq!(flow.acknowledge(200, 1), 2);
    }
}
