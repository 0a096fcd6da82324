//! TCP Vegas: keeps a few packets in the queue, estimated from the round-trip time.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC 13(8),
//! 1995. Constants and details that the paper leaves open are those of Linux (tcp_vegas.c): alpha 2, beta 4, gamma 1.
//!
//! Once per window of data, with RTT the minimum round-trip time of that window and BaseRTT the minimum of the
//! connection, the flow has diff = cwnd (RTT - BaseRTT) / RTT packets in queues. Below alpha the window grows by a
//! segment, above beta it shrinks by one. Slow start ends when diff exceeds gamma, with the window that fills the path
//! without a queue. A window of data with at most two samples follows NewReno. Losses follow NewReno, too. BaseRTT is
//! measured on data segments and kept for the whole connection.
//!
//! Differences: Linux divides by BaseRTT instead of RTT, which assumes the rate of an empty path; with a short queue
//! the result is the same. Slow start doubles the window in every round trip, as in Linux, not in every second one. The
//! paper's own timeouts and its retransmissions after one duplicate belong to the transport and are left out.
//!
//! `like = "linux"` counts as Linux 6.12: round-trip times in whole microseconds plus one, and packets in queues as
//! cwnd (RTT - BaseRTT) / BaseRTT, rounded down. Slow start then ends with two packets, not with more than one.
//!
//! ns-3 (TcpVegas) uses the smoothed round-trip time (3.44). At a loss it sets the window to the slow-start threshold,
//! which it keeps at three quarters of the window.

use super::newreno::NewReno;
use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::param::{DefaultValue, Kind, Param, ParamError, Unit};
use crate::registry::{BuildError, Controller};
use crate::round::Round;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};
use sparelane_core::Dur;

const THRESHOLD: Kind = Kind::Number { min: 0.0, max: 1_000_000.0, unit: Unit::Segments };

const ALPHA: Param = Param {
    name: "alpha",
    kind: THRESHOLD,
    default: DefaultValue::Number(2.0),
    meaning: "grow if fewer packets than this are in the queue",
    source: "Linux; 1 in ns-2",
};

const BETA: Param = Param {
    name: "beta",
    kind: THRESHOLD,
    default: DefaultValue::Number(4.0),
    meaning: "shrink if more packets than this are in the queue; at least alpha",
    source: "Linux; 3 in ns-2",
};

const GAMMA: Param = Param {
    name: "gamma",
    kind: THRESHOLD,
    default: DefaultValue::Number(1.0),
    meaning: "end slow start if more packets than this are in the queue",
    source: "Linux, ns-2",
};

const LIKE: Param = Param {
    name: "like",
    kind: Kind::Choice(&["exact", "linux"]),
    default: DefaultValue::Word("exact"),
    meaning: "exact counts packets in queues exactly, at the current rate; linux counts as Linux 6.12 does",
    source: "Linux tcp_vegas.c",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "vegas",
    summary: "keeps a few packets in the queue, estimated from the round-trip time",
    source: "Brakmo and Peterson, IEEE JSAC 1995",
    params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, ALPHA, BETA, GAMMA, LIKE],
    wire: None,
    make: &|values, plan| {
        let [alpha, beta, gamma] = [&ALPHA, &BETA, &GAMMA].map(|param| values.number(param));
        if beta < alpha {
            let allowed = format!("{alpha} or more, which is alpha");
            return Err(BuildError::Param(ParamError { name: BETA.name, given: beta.to_string(), allowed }));
        }
        let like_linux = values.word(&LIKE) == "linux";
        Ok(windowed(Vegas { like_linux, ..Vegas::new(alpha, beta, gamma) }, values, plan))
    },
};

/// The effect of one acknowledgment on a window beyond slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Hold,
    OneSegment,
    AsNewReno,
}

/// The Vegas window law.
#[derive(Clone, Debug)]
pub struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    like_linux: bool,
    base_rtt: Dur,
    round: Round,
    /// The minimum round-trip time of this window of data. `samples` counts its samples.
    least_rtt: Dur,
    samples: u32,
    /// Packets in queues, from the last window of data.
    diff: f64,
    step: Step,
    newreno: NewReno,
}

impl Vegas {
    /// Creates a law with these thresholds in packets.
    pub fn new(alpha: f64, beta: f64, gamma: f64) -> Vegas {
        Vegas {
            alpha,
            beta,
            gamma,
            like_linux: false,
            base_rtt: Dur::MAX,
            round: Round::default(),
            least_rtt: Dur::MAX,
            samples: 0,
            diff: 0.0,
            step: Step::Hold,
            newreno: NewReno::default(),
        }
    }

    /// Estimates the packets that this window has in queues. Returns the window that fills the path without a queue, in
    /// whole segments.
    fn compare(&mut self, cwnd_bytes: u64, mss_bytes: u64) -> u64 {
        if self.like_linux {
            let (cwnd, base, least) = (cwnd_bytes / mss_bytes, ticks(self.base_rtt), ticks(self.least_rtt));
            self.diff = (cwnd * (least - base) / base) as f64;
            return cwnd * base / least;
        }
        let cwnd = cwnd_bytes as f64 / mss_bytes as f64;
        let path = cwnd * (self.base_rtt.as_secs_f64() / self.least_rtt.as_secs_f64());
        self.diff = cwnd - path;
        path as u64
    }

    /// Evaluates a complete window of data.
    fn judge(&mut self, window: &mut Window, mss_bytes: u64) {
        if self.samples <= 2 {
            self.step = Step::AsNewReno;
            return;
        }
        let path = self.compare(window.cwnd, mss_bytes);
        if window.cwnd < window.ssthresh {
            if self.diff > self.gamma {
                shrink(window, (path + 1) * mss_bytes, mss_bytes);
            }
        } else if self.diff > self.beta {
            shrink(window, window.cwnd.saturating_sub(mss_bytes), mss_bytes);
        } else if self.diff < self.alpha {
            self.step = Step::OneSegment;
        }
    }
}

/// Returns a round-trip time as Linux counts it, never zero.
fn ticks(rtt: Dur) -> u64 {
    rtt.as_ps() / Dur::from_us(1).as_ps() + 1
}

/// Shrinks `window` to `cwnd`, at least two segments, and ends slow start.
fn shrink(window: &mut Window, cwnd: u64, mss_bytes: u64) {
    window.cwnd = window.cwnd.min(cwnd.max(2 * mss_bytes));
    window.ssthresh = window.ssthresh.min((window.cwnd - mss_bytes).max(2 * mss_bytes)).min(window.cwnd);
}

impl WindowLaw for Vegas {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.least_rtt = self.least_rtt.min(rtt);
            self.samples += 1;
        }
        if ack.phase != Phase::Open {
            // As in Linux, Vegas restarts when recovery is over.
            self.step = Step::AsNewReno;
            self.round.restart(ack);
        } else {
            self.step = Step::Hold;
            if !self.round.is_over(ack) {
                return;
            }
            self.judge(window, cx.mss_bytes);
        }
        (self.least_rtt, self.samples) = (Dur::MAX, 0);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        match self.step {
            Step::Hold => {}
            Step::OneSegment => window.cwnd += cx.mss_bytes,
            Step::AsNewReno => self.newreno.grow(window, ack, cx),
        }
    }

    fn cut(&mut self, window: &Window, flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.newreno.cut(window, flight_bytes, event, cx)
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("diff_packets", self.diff);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::{UNBOUNDED, Value, Values};
    use crate::registry::{Blueprint, build};
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1000;

    /// Acknowledges windows of 20 segments, each with one of these round-trip times in milliseconds. Returns the window
    /// after each, in segments. The last acknowledgment of each window begins the next.
    fn windows(initial_ssthresh: u64, rtts_ms: &[u64]) -> Vec<u64> {
        windows_of(Vegas::new(2.0, 4.0, 1.0), initial_ssthresh, rtts_ms)
    }

    fn windows_of(law: Vegas, initial_ssthresh: u64, rtts_ms: &[u64]) -> Vec<u64> {
        let config = WindowConfig {
            initial_window: 20,
            initial_ssthresh,
            slow_start_limit: 1,
            growth_limit: UNBOUNDED,
            ..WindowConfig::default()
        };
        let mut controller = Windowed::new(law, config, MSS);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut acknowledge = |rtt_ms: u64| {
            let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
            let rtt = Some(Dur::from_ms(rtt_ms));
            let ack = Ack { rtt, in_flight_bytes: 19 * MSS, ..Ack::in_sequence(MSS) };
            controller.on_ack(&ack, &mut cx);
            controller.limits().cwnd_bytes / MSS
        };
        // This acknowledgment ends the empty round at the start.
        acknowledge(100);
        rtts_ms.iter().map(|&rtt_ms| (0..20).map(|_| acknowledge(rtt_ms)).last().unwrap_or(0)).collect()
    }

    /// 20 segments with a minimum of 100 ms: 1 is queued at 105 ms, 3 at 118 ms, 5 at 134 ms.
    #[test]
    fn the_window_moves_by_a_segment_a_round_trip_towards_two_to_four_packets_in_the_queue() {
        assert_eq!(windows(2, &[105, 105]), [21, 22]);
        assert_eq!(windows(2, &[118, 118]), [20, 20]);
        assert_eq!(windows(2, &[134, 134]), [19, 18]);
    }

    #[test]
    fn slow_start_ends_with_the_window_that_fills_the_path() {
        // Of 60 segments less than one is queued at 101 ms; of 80 segments, 8 are at 111 ms.
        let grown = windows(UNBOUNDED, &[100, 101, 111, 111]);
        assert_eq!(grown[..2], [41, 61]);
        assert_eq!(grown[2..], [73, 72], "80 * 100 / 111 + 1, and then one segment at a time");
    }

    /// At 102 ms, 1.2 of 60 segments are queued (one in Linux); at 103 ms, 2.4 of 80 segments (two in Linux).
    #[test]
    fn linux_counts_whole_packets_so_that_slow_start_continues_with_more_than_one() {
        let rounds = [100, 102, 103];
        assert_eq!(windows(UNBOUNDED, &rounds)[..2], [41, 59], "60 * 100 / 102 + 1");
        assert_eq!(windows_of(like_linux(), UNBOUNDED, &rounds), [41, 61, 78], "80 * 100 / 103 + 1");
    }

    /// At 111 ms, 1.98 of 20 segments are queued at the current rate, and 2.2 at the rate of an empty path.
    #[test]
    fn linux_divides_by_the_round_trip_of_an_empty_path() {
        assert_eq!(windows(2, &[111]), [21]);
        assert_eq!(windows_of(like_linux(), 2, &[111]), [20]);
    }

    fn like_linux() -> Vegas {
        Vegas { like_linux: true, ..Vegas::new(2.0, 4.0, 1.0) }
    }

    #[test]
    fn thresholds_in_the_wrong_order_are_refused() {
        let mut values = Values::default();
        values.set("beta", Value::Number(1.5));
        let error = build("vegas", &values, &Blueprint::of_any(MSS, &Values::default())).expect_err("beta below alpha");
        assert_eq!(error.to_string(), "`beta` is 1.5; allowed: 2 or more, which is alpha");
    }
}
