//! TCP-NV (New Vegas): the window that the measured rate fills, and a few packets in the queue.
//!
//! Source: Brakmo, "TCP-NV: Congestion Avoidance for Data Centers", Linux Plumbers Conference 2010; the law as Linux 6.12 has it
//! (tcp_nv.c), whose names the parameters have.
//!
//! Each acknowledgment that newly delivers data gives a sample: its round-trip time, averaged with those before (half and half), and
//! a rate, which is what has been delivered since its segment was sent, over that average. The largest rate times the least average
//! is the window that would carry this rate without a queue. With `nv_pad` (10) packets more it is the bound, and once in a round
//! trip the window is compared with it. Above, it loses 38/128 of the excess (two segments at least), or where that is two segments
//! at most, all of it; slow start then ends at the bound, and growth stops. At `nv_pad_buffer` (2) or more below, growth
//! is allowed: a segment a round trip, or slow start. Between the two all stays as it is. Few samples decide nothing: less is
//! allowed growth from 20 on, slow start ends from 30 on, and later windows fall from 60 on; samples are counted, and the largest rate
//! is kept, from decision to decision, over as many round trips as that takes, two at least. Ten without a decision stop growth.
//!
//! Nothing grows from a loss, a timeout or a mark on until a decision allows it, and the measurement begins anew when that
//! is over, the least round-trip time with it. A loss leaves 819/1024 of the window. Each timeout halves how fast the window
//! grows, down to a segment in 256 round trips, and more than 8 decisions that allow growth double it again. The least round-trip
//! time is forgotten every 5 s, more or less by a quarter at random, for the least of that time; first after 2 s. Where a round trip gives
//! one sample alone, as behind receive offload, growth is allowed until a window is larger (up to 81 segments).
//!
//! Its author recommends it within a data centre where all flows are of it: others, who fill queues, take its share. It needs
//! to hear of single segments, for the rates.
//!
//! Where we differ: the time since the least round-trip time was last forgotten is exact, and not of whole ticks, and rates know no
//! bound (Linux's overflow above 429 Gb/s). After a mark the window falls at once. In Linux a program of BPF may say what the
//! round-trip time is that shows congestion (`base_rtt`).

use crate::contract::{Ack, Congestion, Cx, Delivery, Needs, Phase};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};
use sparelane_core::{Dur, Time};

/// A whole number that Linux has as a parameter or a constant of this name.
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
    "the window grows only where it is so much below its bound; no more than nv_pad counts",
);

const RESET_PERIOD: Param = Param {
    name: "nv_reset_period",
    kind: Kind::Span { min: Dur::from_ms(1), max: Dur::from_secs(1_000_000) },
    default: DefaultValue::Span(Dur::from_secs(5)),
    meaning: "how often the least round-trip time is forgotten, on average; first after 2 s",
    source: "Linux tcp_nv.c",
};

const MIN_CWND: Param = Param {
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    ..whole("nv_min_cwnd", 2, 1_000_000, Unit::Segments, "no window is smaller without losses")
};

const CONG_DEC_MULT: Param = whole(
    "nv_cong_dec_mult",
    38,
    128,
    Unit::Named("128ths"),
    "share of the excess by which the window falls; with 0 an excess of two segments stays",
);

const SSTHRESH_FACTOR: Param = whole(
    "nv_ssthresh_factor",
    8,
    1_000_000,
    Unit::Named("eighths"),
    "where slow start ends once there is congestion, of the window's bound",
);

const RTT_FACTOR: Param = whole(
    "nv_rtt_factor",
    128,
    256,
    Unit::Named("256ths"),
    "weight of a new round-trip time in the average; 0 averages nothing",
);

const LOSS_DEC_FACTOR: Param =
    whole("nv_loss_dec_factor", 819, 1024, Unit::Named("1024ths"), "what a loss leaves of the window");

const GROWTH_RATE_NEG: Param = whole(
    "nv_cwnd_growth_rate_neg",
    8,
    1_000_000,
    DECISIONS,
    "where timeouts have slowed down growth, more than so many for it double it; 0 never slows down",
);

const GROWTH_RATE_POS: Param = whole(
    "nv_cwnd_growth_rate_pos",
    0,
    1_000_000,
    DECISIONS,
    "more than so many for growth double it beyond a segment a round trip; 0 never does",
);

const DEC_EVAL_MIN_CALLS: Param =
    whole("nv_dec_eval_min_calls", 60, 255, SAMPLES, "fewer do not make a window smaller that is beyond slow start");

const INC_EVAL_MIN_CALLS: Param = whole("nv_inc_eval_min_calls", 20, 255, SAMPLES, "fewer do not allow growth");

const SSTHRESH_EVAL_MIN_CALLS: Param =
    whole("nv_ssthresh_eval_min_calls", 30, 255, SAMPLES, "fewer do not end the first slow start");

const STOP_RTT_CNT: Param = whole(
    "nv_stop_rtt_cnt",
    10,
    255,
    ROUND_TRIPS,
    "more without a decision stop growth, where the window is above its bound and samples are few",
);

const RTT_MIN_CNT: Param =
    whole("nv_rtt_min_cnt", 2, 255, ROUND_TRIPS, "fewer since the last decision do not make a window smaller");

const BASE_RTT: Param = Param {
    name: "base_rtt",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(4000) },
    default: DefaultValue::Span(Dur::ZERO),
    meaning: "the round-trip time that shows congestion, where it is known: the least one counts as this at most, and as 205/256 of it \
              at least; 0 knows none",
    source: "Linux BPF_SOCK_OPS_BASE_RTT",
};

/// What the catalogue says of it.
pub const CONTROLLER: Controller = Controller {
    name: "nv",
    summary: "the window that the measured rate fills, and a few packets in the queue",
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

/// Constants of the law: each as the parameter of its name with `nv_` before it says.
#[derive(Clone, Copy, Debug)]
pub struct NvConfig {
    /// Packets that may wait in queues.
    pub pad: u64,
    /// The window grows only where it is so many segments below its bound.
    pub pad_buffer: u64,
    /// How often the least round-trip time is forgotten, on average.
    pub reset_period: Dur,
    /// No window has fewer segments without losses.
    pub min_cwnd: u64,
    /// Share of the excess by which the window falls, 128ths.
    pub cong_dec_mult: u64,
    /// Where slow start ends, eighths of the bound.
    pub ssthresh_factor: u64,
    /// Weight of a new round-trip time, 256ths.
    pub rtt_factor: u64,
    /// What a loss leaves of the window, 1024ths.
    pub loss_dec_factor: u64,
    /// More decisions for growth than these double a growth that timeouts have slowed down.
    pub growth_rate_neg: u64,
    /// More decisions for growth than these double any other.
    pub growth_rate_pos: u64,
    /// Fewer samples do not make a window smaller.
    pub dec_eval_min_calls: u64,
    /// Fewer samples do not allow growth.
    pub inc_eval_min_calls: u64,
    /// Fewer samples do not end the first slow start.
    pub ssthresh_eval_min_calls: u64,
    /// More round trips without a decision stop growth.
    pub stop_rtt_cnt: u64,
    /// Fewer round trips do not make a window smaller.
    pub rtt_min_cnt: u64,
    /// The round-trip time that shows congestion, or zero.
    pub base_rtt: Dur,
}

/// When the least round-trip time is first forgotten.
const FIRST_RESET: Dur = Dur::from_secs(2);
/// Counts of samples and of round trips end here.
const MOST_COUNTED: u64 = 255;
/// What one sample in a round trip may cover without being taken for a small window's, segments: at first, by how much that
/// grows, and the most.
const LEAST_LONE_WINDOW: u64 = 4;
const LONE_WINDOW_STEP: u64 = 2;
const MOST_LONE_WINDOW: u64 = 81;
/// From how many segments on a threshold of slow start is none.
const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;
/// A rate is in units of 100 bits a second: bytes in a microsecond times this.
const RATE_UNITS: u64 = 80_000;
/// Growth is slowed down, or doubled, as many times at most.
const SLOWEST: i32 = -8;
const FASTEST: i32 = 31;

/// A loss, a timeout or a mark is being answered, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    None,
    /// A mark was answered; what is in flight at the next acknowledgment is its round trip.
    Marked,
    /// A mark's round trip ends when more than so many bytes are acknowledged in sequence.
    Until(u64),
    /// Until nothing is repaired any more.
    Repair,
}

/// The law. Names in brackets are those of Linux.
#[derive(Clone, Debug)]
pub struct Nv {
    config: NvConfig,
    answer: Answer,
    allows_growth: bool,
    /// Growth is 2^this segments a round trip (cwnd_growth_factor).
    growth_factor: i32,
    /// What acknowledgments have earned towards the next segment (snd_cwnd_cnt).
    saved_segments: u64,
    /// Samples since the last decision (nv_eval_call_cnt), and round trips (nv_rtt_cnt).
    samples: u64,
    round_trips: u64,
    /// Decisions for growth without one against it (nv_no_cong_cnt).
    growths: u64,
    /// A lone sample of fewer segments is of a small window (nv_min_cwnd of the connection).
    lone_window: u64,
    /// Round-trip times in microseconds: the average, zero where there is none; its least since it was last forgotten, and the
    /// least for the time after that.
    average_us: u64,
    least_us: u64,
    next_least_us: u64,
    forget_at: Time,
    /// The largest rate since the last decision, 100 bits a second.
    rate: u64,
    /// Bytes of the connection that are acknowledged in sequence (snd_una), and delivered at all.
    acked_bytes: u64,
    delivered_bytes: u64,
    /// As many were acknowledged at the last sample, and as many must be exceeded at the end of this round trip.
    acked_before_bytes: u64,
    round_end_bytes: u64,
}

impl Nv {
    /// A law with these constants.
    pub fn new(config: NvConfig) -> Nv {
        Nv {
            config,
            answer: Answer::None,
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

    /// Measurement begins anew.
    fn reset(&mut self) {
        self.answer = Answer::None;
        (self.growths, self.round_trips, self.samples) = (0, 0, 0);
        (self.average_us, self.rate) = (0, 0);
        (self.round_end_bytes, self.acked_before_bytes) = (self.acked_bytes, self.acked_bytes);
    }

    /// Whether congestion is being answered at `ack`, and nothing is measured.
    fn answers(&mut self, ack: &Ack, sent_bytes: u64) -> bool {
        if self.answer == Answer::Marked {
            self.answer = Answer::Until(sent_bytes);
        }
        if ack.phase != Phase::Open {
            self.answer = Answer::Repair;
            self.allows_growth = false;
            return true;
        }
        match self.answer {
            Answer::None => false,
            Answer::Until(end) if self.acked_bytes <= end => true,
            _ => {
                self.reset();
                true
            }
        }
    }

    /// A round-trip time joins the average, and that the least ones. The average then, microseconds.
    fn average(&mut self, rtt_us: u64) -> u64 {
        let weight = self.config.rtt_factor;
        let mut average_us = rtt_us;
        if weight > 0 {
            if self.average_us > 0 {
                average_us = (rtt_us * weight + self.average_us * (256 - weight)) >> 8;
            } else {
                self.least_us = 2 * average_us;
            }
            self.average_us = average_us;
        }
        average_us
    }

    /// Notes an average among the least ones, within the bounds of the base round-trip time, and forgets the least of long ago.
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

    /// A round trip is over, in which so many bytes came with its last sample: what becomes of the window.
    fn end_round(&mut self, window: &mut Window, sent_bytes: u64, newly_bytes: u64, mss_bytes: u64) {
        self.round_end_bytes = sent_bytes;
        self.round_trips = (self.round_trips + 1).min(MOST_COUNTED);
        let is_lone = self.samples == 1 && newly_bytes >= (self.lone_window - 1) * mss_bytes;
        if is_lone && self.lone_window < MOST_LONE_WINDOW {
            self.lone_window = (self.lone_window + LONE_WINDOW_STEP).min(MOST_LONE_WINDOW);
            self.round_end_bytes = sent_bytes + self.lone_window * mss_bytes;
            self.samples = 0;
            self.allows_growth = true;
            return;
        }
        let without_queue = u128::from(self.rate) * u128::from(self.least_us) / u128::from(RATE_UNITS * mss_bytes);
        let most = (without_queue as u64).saturating_add(self.config.pad);
        let segments = window.cwnd / mss_bytes;
        let decides = if segments > most {
            self.shrink(window, segments, most, mss_bytes)
        } else {
            segments <= most.saturating_sub(self.config.pad_buffer) && self.allow_growth()
        };
        if decides {
            (self.samples, self.round_trips, self.rate) = (0, 0, 0);
            window.cwnd = window.cwnd.max(self.config.min_cwnd * mss_bytes);
        }
    }

    /// The window of so many segments is above the most that it may have. Whether enough is known to make it smaller.
    fn shrink(&mut self, window: &mut Window, segments: u64, most: u64, mss_bytes: u64) -> bool {
        let config = &self.config;
        if self.round_trips < config.rtt_min_cnt {
            return false;
        }
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

    /// The window is well below its bound. Whether enough is known to let it grow.
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

    /// Beyond slow start: grows by what `segments` earn.
    fn grow_by(&mut self, window: &mut Window, segments: u64, mss_bytes: u64) {
        let cwnd = window.cwnd / mss_bytes;
        let price =
            if self.growth_factor < 0 { cwnd << -self.growth_factor } else { (cwnd >> self.growth_factor).max(4) };
        // The price has fallen below what was saved.
        if self.saved_segments >= price {
            self.saved_segments = 0;
            window.cwnd += mss_bytes;
        }
        self.saved_segments += segments;
        window.cwnd += self.saved_segments / price * mss_bytes;
        self.saved_segments %= price;
    }

    /// A timeout: growth is slowed down.
    fn slow_down(&mut self) {
        self.growth_factor = self.growth_factor.min(0);
        if self.config.growth_rate_neg > 0 {
            self.growth_factor = (self.growth_factor - 1).max(SLOWEST);
        }
    }
}

/// Whole microseconds.
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
        // Where nothing is lost, what was sent is there or under way (snd_nxt).
        let sent_bytes = self.delivered_bytes + ack.in_flight_bytes;
        if self.answers(ack, sent_bytes) {
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
        self.answer = if matches!(event, Congestion::Marked { .. }) { Answer::Marked } else { Answer::Repair };
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

    /// A connection over which an acknowledgment of one segment comes each 10 us, all with one round-trip time and one rate.
    struct Flow {
        controller: Windowed<Nv>,
        rng: Stream,
        now: Time,
        rtt_us: u64,
        /// Delivered since the segment of an acknowledgment was sent, segments.
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

        /// The window after so many acknowledgments of so many segments each.
        fn hears(&mut self, acks: u64, segments: u64) -> u64 {
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

        fn suffers(&mut self, event: Congestion) -> u64 {
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

        fn told(&self, name: &'static str) -> f64 {
            traced(&self.controller, name)
        }
    }

    /// 50 segments in 10 ms are a window of 50 and a bound of 60: 40 too many, of which 38/128 are 11. Rounds of ten end with
    /// acknowledgments 1, 11, 21, ...: at the 31st there are 30 samples.
    #[test]
    fn the_first_excess_ends_slow_start_and_takes_thirty_eight_128ths_of_itself() {
        let mut flow = Flow::new(LINUX, 100, UNBOUNDED);
        assert_eq!((flow.hears(30, 1), flow.hears(1, 1)), (100, 89));
        assert_eq!((flow.told("ssthresh_bytes"), flow.told("allows_growth")), (60_000.0, 0.0));
        // From now on 60 are needed: of 29 too many, 8 go.
        assert_eq!((flow.hears(59, 1), flow.hears(1, 1)), (89, 81));
    }

    /// With a bound of 60 segments, 57 may grow and 58 too, 59 and 60 stay, 61 and 62 go there, and 63 lose two at least.
    #[test]
    fn near_the_bound_nothing_changes_and_a_little_above_it_is_the_bound() {
        for (initial, window, growth) in
            [(57, 57, 1.0), (58, 58, 1.0), (59, 59, 0.0), (60, 60, 0.0), (61, 60, 0.0), (62, 60, 0.0), (63, 61, 0.0)]
        {
            let mut flow = Flow::new(LINUX, initial, 2);
            // A loss forbids growth until a decision allows it.
            flow.suffers(LOSS);
            flow.controller.window.cwnd = initial * MSS;
            assert_eq!((flow.hears(62, 1), flow.told("allows_growth")), (window, growth), "from {initial} segments");
        }
    }

    #[test]
    fn a_loss_leaves_819_of_1024_and_measurement_begins_anew_when_it_is_repaired() {
        let mut flow = Flow::new(LINUX, 100, UNBOUNDED);
        flow.hears(25, 1);
        assert_eq!(flow.suffers(LOSS), 79);
        (flow.phase, flow.rtt_us) = (Phase::Recovery, 1);
        flow.hears(100, 1);
        assert_eq!(flow.told("least_rtt_s"), 0.01);
        // The acknowledgment that ends recovery is not measured, and the next one's round-trip time is the least.
        (flow.phase, flow.rtt_us) = (Phase::Open, 20_000);
        flow.hears(1, 1);
        assert_eq!(flow.told("least_rtt_s"), 0.01);
        flow.hears(1, 1);
        assert_eq!(flow.told("least_rtt_s"), 0.02);
        assert_eq!((flow.hears(59, 1), flow.hears(1, 1)), (79, 79 - 5), "of 19 too many, with the 61st sample");
    }

    /// In flight are 9 segments after the acknowledgment that comes next: more than ten must be acknowledged.
    #[test]
    fn a_mark_is_answered_for_a_round_trip() {
        let mut flow = Flow::new(LINUX, 100, 2);
        assert_eq!(flow.suffers(Congestion::Marked { flight_bytes: 0 }), 79);
        flow.rtt_us = 1;
        flow.hears(11, 1);
        assert_eq!(flow.told("least_rtt_s"), 0.0);
        flow.rtt_us = 20_000;
        flow.hears(1, 1);
        assert_eq!(flow.told("least_rtt_s"), 0.02);
    }

    /// In slow start by all that is acknowledged, beyond by a segment for each window of it; where growth is not allowed, not at all.
    #[test]
    fn growth_waits_for_twenty_samples_without_congestion() {
        let mut flow = Flow::new(LINUX, 10, UNBOUNDED);
        flow.cwnd_limited = true;
        assert_eq!(flow.hears(5, 2), 20);
        assert_eq!(flow.suffers(LOSS), 15);
        assert_eq!(flow.hears(19, 1), 15);
        // The first ends the repair. The 22nd ends the first round of ten with 20 samples or more; a window of 15 takes 15
        // acknowledgments, the 22nd the first of them.
        assert_eq!((flow.hears(16, 1), flow.hears(1, 1)), (15, 16));
    }

    #[test]
    fn each_timeout_halves_growth_until_it_is_allowed_more_than_eight_times() {
        let mut flow = Flow::new(LINUX, 20, 2);
        assert_eq!(flow.suffers(TIMEOUT), 1);
        assert_eq!(flow.suffers(Congestion::Timeout { flight_bytes: 0, first: false }), 1);
        assert_eq!(flow.told("growth_factor"), -2.0);
        (0..20).for_each(|_| _ = flow.suffers(Congestion::Timeout { flight_bytes: 0, first: false }));
        assert_eq!(flow.told("growth_factor"), -8.0);
        // A decision each twenty acknowledgments, after one that ends the repair, and the one that begins the first round.
        flow.hears(2, 1);
        let after = |flow: &mut Flow, decisions: u64| {
            flow.hears(20 * decisions, 1);
            flow.told("growth_factor")
        };
        assert_eq!([after(&mut flow, 8), after(&mut flow, 1), after(&mut flow, 9)], [-8.0, -7.0, -6.0]);
        let mut never = Flow::new(NvConfig { growth_rate_neg: 0, ..LINUX }, 20, 2);
        never.suffers(TIMEOUT);
        assert_eq!(never.told("growth_factor"), 0.0);
    }

    /// With one at 2 a window of 10 grows by a segment for each 5 that are acknowledged; slowed down once, for each 20.
    #[test]
    fn growth_is_by_the_power_of_two_that_decisions_have_made_of_it() {
        let mut law = Nv::new(LINUX);
        let mut grown = |factor, segments| {
            let mut window = Window { cwnd: 10 * MSS, ssthresh: 0 };
            (law.growth_factor, law.saved_segments) = (factor, 0);
            law.grow_by(&mut window, segments, MSS);
            window.cwnd / MSS
        };
        assert_eq!([grown(1, 4), grown(1, 5), grown(1, 10)], [10, 11, 12]);
        assert_eq!([grown(-1, 19), grown(-1, 20)], [10, 11]);
        assert_eq!([grown(31, 3), grown(31, 4)], [10, 11], "four at least");
        // What was saved for a larger window pays for a segment, and is gone.
        let mut window = Window { cwnd: 10 * MSS, ssthresh: 0 };
        (law.growth_factor, law.saved_segments) = (0, 15);
        law.grow_by(&mut window, 3, MSS);
        assert_eq!((window.cwnd / MSS, law.saved_segments), (11, 3));
        let mut fast = Flow::new(NvConfig { growth_rate_pos: 2, ..LINUX }, 20, 2);
        fast.hears(61, 1);
        assert_eq!(fast.told("growth_factor"), 1.0, "the third decision");
    }

    /// 10 ms and 20 ms are 15 ms on average, then 17.5; the rate is over the average, and the largest one counts: 50 segments in 10 ms.
    #[test]
    fn round_trip_times_are_averaged_and_the_largest_rate_counts() {
        let mut law = Nv::new(LINUX);
        assert_eq!([law.average(10_000), law.average(20_000), law.average(20_000)], [10_000, 15_000, 17_500]);
        let mut exact = Nv::new(NvConfig { rtt_factor: 0, ..LINUX });
        assert_eq!([exact.average(10_000), exact.average(20_000)], [10_000, 20_000]);
        let mut flow = Flow::new(LINUX, 100, UNBOUNDED);
        flow.hears(1, 1);
        flow.rtt_us = 20_000;
        assert_eq!(flow.hears(30, 1), 89, "as if all were at 10 ms");
    }

    /// 2 s after the beginning the least one becomes the least since then, which is the same here; 3.75 to 6.25 s later the least of
    /// that time. Averages of whole microseconds come to 19,999 from below.
    #[test]
    fn the_least_round_trip_time_is_forgotten() {
        let mut flow = Flow::new(LINUX, 40, 2);
        let at = |flow: &mut Flow, ms: u64, rtt_us| {
            (flow.now, flow.rtt_us) = (Time::ZERO + Dur::from_ms(ms), rtt_us);
            flow.hears(20, 1);
            flow.told("least_rtt_s")
        };
        assert_eq!([at(&mut flow, 0, 10_000), at(&mut flow, 1, 20_000), at(&mut flow, 2000, 20_000)], [0.01; 3]);
        assert_eq!([at(&mut flow, 5700, 20_000), at(&mut flow, 8260, 20_000)], [0.01, 0.019999]);
    }

    /// One acknowledgment a round trip, of all that is in flight: where it is of three segments, growth is allowed without a decision.
    #[test]
    fn one_sample_in_a_round_trip_is_of_a_small_window() {
        for (segments, allows_growth) in [(2, 0.0), (3, 1.0)] {
            let mut flow = Flow::new(LINUX, 100, UNBOUNDED);
            flow.suffers(LOSS);
            flow.in_flight = 0;
            flow.hears(1, 3);
            flow.hears(1, segments);
            assert_eq!(flow.told("allows_growth"), allows_growth);
        }
    }

    /// Windows of 100 with a bound of 60, and four samples in each of ten round trips: too few to cut, and in the eleventh growth ends.
    #[test]
    fn too_many_round_trips_without_a_decision_stop_growth() {
        let mut flow = Flow::new(LINUX, 100, 2);
        flow.in_flight = 3;
        flow.hears(40, 1);
        assert_eq!(flow.told("allows_growth"), 1.0);
        assert_eq!(flow.hears(1, 1), 100);
        assert_eq!(flow.told("allows_growth"), 0.0);
    }

    /// With 10 ms as the threshold of congestion, the least is 8007 us at least, 205/256 of it, and 10 ms at most.
    #[test]
    fn a_base_round_trip_time_bounds_the_least() {
        for (rtt_us, least_s) in [(1000, 0.002), (5000, 0.008007), (9000, 0.009), (30_000, 0.01)] {
            let mut flow = Flow::new(NvConfig { base_rtt: Dur::from_ms(10), ..LINUX }, 100, 2);
            flow.rtt_us = rtt_us;
            flow.hears(1, 1);
            assert_eq!(flow.told("least_rtt_s"), least_s, "{rtt_us} us: twice the first sample at most");
        }
    }

    /// At a rate of nothing the bound is ten segments, and with no pad none: a window of three falls to two, and no further.
    #[test]
    fn the_window_falls_no_further_than_its_least() {
        let mut flow = Flow::new(NvConfig { pad: 0, pad_buffer: 0, ..LINUX }, 3, 2);
        flow.rate = 0;
        assert_eq!(flow.hears(200, 1), 2);
    }
}
