//! Compound TCP: NewReno's window plus a second window that grows fast while delays show no queue.
//!
//! Source: Tan, Song, Zhang and Sridharan, "A Compound TCP Approach for High-Speed and Long Distance Networks", IEEE
//! INFOCOM 2006.
//!
//! The window is win = cwnd + dwnd. An acknowledgment adds 1 / win to cwnd. Once per window of data the flow has diff =
//! win (1 - baseRTT / RTT) packets in queues, with RTT the minimum of that window of data and baseRTT the minimum of
//! the connection. Below gamma packets dwnd grows by alpha win^k - 1, so that both windows together grow by alpha
//! win^k; from gamma on it shrinks by zeta diff. dwnd is never negative. A loss halves cwnd and takes win to (1 - beta)
//! win, but not below the new cwnd. dwnd is zero in slow start, which is NewReno's, and after a timeout, which halves
//! the threshold as NewReno's does. A window of data with at most two samples is ignored.
//!
//! The port to Linux (tcp_compound.c, 2006 to 2008, never merged, but part of ns-2) differs from the paper and from
//! this law. It keeps dwnd through a loss, at which win is halved, and cwnd is the rest. dwnd also changes in slow
//! start. win is the volume sent in the previous window of data, and dwnd is in whole packets, so that alpha win^k is
//! rounded down before 1 is subtracted. Its last version also adapts gamma to the queue at losses, between 5 and 30
//! packets, which the paper does not. Its constants are those of the paper.
//!
//! The choice of the minimum RTT of a window of data and the minimum number of samples come from the port. Rounds in
//! which a loss is repaired are not evaluated.

use super::newreno::NewReno;
use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::round::Round;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};
use sparelane_core::Dur;

const ALPHA: Param = Param {
    name: "alpha",
    kind: Kind::Number { min: 0.0, max: 100.0, unit: Unit::One },
    default: DefaultValue::Number(0.125),
    meaning: "factor of the growth per round trip, alpha win^k",
    source: "Tan et al.; 2^-3 in the port to Linux",
};

const BETA: Param = Param {
    name: "beta",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "share of the window lost at a loss, at most a half of cwnd",
    source: "Tan et al.",
};

const K: Param = Param {
    name: "k",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.75),
    meaning: "exponent of the growth per round trip, alpha win^k",
    source: "Tan et al.",
};

const GAMMA: Param = Param {
    name: "gamma",
    kind: Kind::Number { min: 0.0, max: 1_000_000.0, unit: Unit::Segments },
    default: DefaultValue::Number(30.0),
    meaning: "number of packets in the queue from which on dwnd shrinks",
    source: "Tan et al.",
};

const ZETA: Param = Param {
    name: "zeta",
    kind: Kind::Number { min: 0.0, max: 1000.0, unit: Unit::One },
    default: DefaultValue::Number(1.0),
    meaning: "reduction of dwnd per packet in the queue",
    source: "the port to Linux (ETA)",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "compound",
    summary: "NewReno plus a second window that grows fast while there is no queue",
    source: "Tan et al., INFOCOM 2006",
    params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, ALPHA, BETA, K, GAMMA, ZETA],
    wire: None,
    make: &|values, plan| {
        let [alpha, beta, k, gamma, zeta] = [&ALPHA, &BETA, &K, &GAMMA, &ZETA].map(|param| values.number(param));
        let law = Compound::new(CompoundConfig { alpha, beta, k, gamma, zeta });
        Ok(windowed(law, values, plan))
    },
};

/// The constants of the law by the paper's names.
#[derive(Clone, Copy, Debug)]
pub struct CompoundConfig {
    /// Factor of the growth.
    pub alpha: f64,
    /// Share of the window lost at a loss.
    pub beta: f64,
    /// Exponent of the growth.
    pub k: f64,
    /// Number of packets in the queue from which on dwnd shrinks.
    pub gamma: f64,
    /// Reduction of dwnd per packet in the queue.
    pub zeta: f64,
}

/// The Compound window law. `Window::cwnd` is the sum of both windows; the paper's cwnd is the part that is not dwnd.
#[derive(Clone, Debug)]
pub struct Compound {
    config: CompoundConfig,
    dwnd_bytes: u64,
    dwnd_before_cut: u64,
    /// Growth of dwnd in bytes, if this acknowledgment may grow the window.
    growth_bytes: u64,
    base_rtt: Dur,
    round: Round,
    /// The minimum round-trip time of this window of data. `samples` counts its samples.
    least_rtt: Dur,
    samples: u32,
    newreno: NewReno,
}

impl Compound {
    /// Creates a law with these constants.
    pub fn new(config: CompoundConfig) -> Compound {
        Compound {
            config,
            dwnd_bytes: 0,
            dwnd_before_cut: 0,
            growth_bytes: 0,
            base_rtt: Dur::MAX,
            round: Round::default(),
            least_rtt: Dur::MAX,
            samples: 0,
            newreno: NewReno::default(),
        }
    }

    /// Reduces dwnd to what a window allows that was reduced by a timeout or after an idle time: one of a single segment has
    /// no dwnd.
    fn fit_into(&mut self, window: &Window, mss_bytes: u64) {
        self.dwnd_bytes = self.dwnd_bytes.min(window.cwnd.saturating_sub(mss_bytes));
    }

    /// Evaluates a complete window of data.
    fn judge(&mut self, window: &mut Window, mss_bytes: u64) {
        if self.samples <= 2 {
            return;
        }
        let CompoundConfig { alpha, k, gamma, zeta, .. } = self.config;
        let win = window.cwnd as f64 / mss_bytes as f64;
        let diff = win * (1.0 - self.base_rtt.as_secs_f64() / self.least_rtt.as_secs_f64());
        if diff < gamma {
            let growth = (alpha * libm::pow(win, k) - 1.0).max(0.0);
            self.growth_bytes = (growth * mss_bytes as f64) as u64;
        } else {
            let less_bytes = ((zeta * diff * mss_bytes as f64) as u64).min(self.dwnd_bytes);
            self.dwnd_bytes -= less_bytes;
            window.cwnd -= less_bytes;
        }
    }
}

impl WindowLaw for Compound {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        self.growth_bytes = 0;
        self.fit_into(window, cx.mss_bytes);
        if let Some(rtt) = ack.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.least_rtt = self.least_rtt.min(rtt);
            self.samples += 1;
        }
        if ack.phase != Phase::Open {
            self.round.restart(ack);
        } else if !self.round.is_over(ack) {
            return;
        } else if window.cwnd >= window.ssthresh {
            self.judge(window, cx.mss_bytes);
        }
        (self.least_rtt, self.samples) = (Dur::MAX, 0);
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        self.newreno.grow(window, ack, cx);
        self.dwnd_bytes += self.growth_bytes;
        window.cwnd += self.growth_bytes;
    }

    fn cut(&mut self, window: &Window, flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.fit_into(window, cx.mss_bytes);
        self.dwnd_before_cut = self.dwnd_bytes;
        if let Congestion::Timeout { .. } = event {
            self.dwnd_bytes = 0;
            return self.newreno.cut(window, flight_bytes, event, cx);
        }
        let cwnd = (window.cwnd - self.dwnd_bytes) / 2;
        let win = ((1.0 - self.config.beta) * window.cwnd as f64) as u64;
        self.dwnd_bytes = win.saturating_sub(cwnd);
        cwnd + self.dwnd_bytes
    }

    fn undo(&mut self) {
        self.dwnd_bytes = self.dwnd_before_cut;
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("dwnd_bytes", self.dwnd_bytes as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::{Value, Values};
    use crate::registry::{Blueprint, build};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1000;

    /// A flow beyond slow start with a minimum round-trip time of 100 ms.
    struct Flow(Box<dyn CongestionControl>, Stream);

    impl Flow {
        fn new(segments: u64, initial_ssthresh: u64) -> Flow {
            let mut values = Values::default();
            values.set("initial_window", Value::Whole(segments));
            values.set("initial_ssthresh", Value::Whole(initial_ssthresh));
            let controller = build("compound", &values, &Blueprint::of_any(MSS, &Values::default())).expect("Compound");
            let mut flow = Flow(controller, Stream::new(1, Domain::Test, 0));
            flow.acknowledge(Dur::from_ms(100));
            flow
        }

        /// Processes an acknowledgment of zero bytes, so that only dwnd changes. Rounds have ten of them.
        fn acknowledge(&mut self, rtt: Dur) {
            let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.1 };
            let ack = Ack { rtt: Some(rtt), in_flight_bytes: 9, ..Ack::in_sequence(1) };
            self.0.on_ack(&ack, &mut cx);
        }

        /// Returns the window in bytes and dwnd after a round with this round-trip time.
        fn after_round(&mut self, rtt_ms: u64) -> (u64, u64) {
            (0..10).for_each(|_| self.acknowledge(Dur::from_ms(rtt_ms)));
            self.state()
        }

        fn congest(&mut self, event: Congestion) -> (u64, u64) {
            let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.1 };
            self.0.on_congestion(event, &mut cx);
            self.state()
        }

        fn state(&self) -> (u64, u64) {
            let mut dwnd = None;
            self.0.trace(&mut |name, value| dwnd = (name == "dwnd_bytes").then_some(value as u64).or(dwnd));
            (self.0.limits().cwnd_bytes, dwnd.expect("dwnd"))
        }
    }

    const LOSS: Congestion = Congestion::Loss { flight_bytes: 0 };

    /// The window was reduced from 60 segments to 10 after an idle time, and no acknowledgment came since.
    #[test]
    fn a_loss_right_after_an_idle_time_halves_the_window_that_is_left() {
        let mut law = Compound::new(CompoundConfig { alpha: 0.125, beta: 0.5, k: 0.75, gamma: 30.0, zeta: 1.0 });
        law.dwnd_bytes = 50 * MSS;
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let window = Window { cwnd: 10 * MSS, ssthresh: 45 * MSS };
        assert_eq!(law.cut(&window, 0, LOSS, &mut cx), 5 * MSS);
        assert_eq!((law.dwnd_bytes, law.dwnd_before_cut), (4_500, 9 * MSS));
    }

    /// 10,000^0.75 = 1000, and 30,000^0.75 = 2279.5: growth is an eighth of it minus one segment. Up to 16 segments,
    /// where the power is 8, growth is zero.
    #[test]
    fn without_a_queue_both_windows_grow_by_an_eighth_of_the_windows_power() {
        let dwnd_of = |segments| Flow::new(segments, 2).after_round(100).1;
        assert_eq!((dwnd_of(10_000), dwnd_of(15)), (124_000, 0));
        assert_eq!(dwnd_of(30_000) / MSS, 283);
        let (win, _) = Flow::new(10_000, 2).after_round(100);
        assert_eq!(win / MSS, 10_124);
    }

    /// The window has 10,124 segments: 100.2 of them are queued if the delay rises from 100 to 101 ms, and 920.4 at
    /// 110 ms.
    #[test]
    fn with_thirty_packets_in_the_queue_the_second_window_shrinks_by_them_down_to_zero() {
        let mut flow = Flow::new(10_000, 2);
        flow.after_round(100);
        let (win, dwnd) = flow.after_round(101);
        assert_eq!((win / MSS, dwnd / 10), (10_023, 2_376), "124 - 100.24 segments");
        let (win, dwnd) = flow.after_round(110);
        assert_eq!((win / MSS, dwnd), (10_000, 0));
    }

    /// 3000 segments have 29.7 queued at 101 ms, and 3100 30.7: 3000^0.75 / 8 - 1 = 49.7.
    #[test]
    fn growth_ends_and_shrinking_begins_at_thirty_packets() {
        let dwnd = |segments| Flow::new(segments, 2).after_round(101).1 / MSS;
        assert_eq!((dwnd(3000), dwnd(3100)), (49, 0));
    }

    /// The windows are 10,000 and 124 segments before the loss, and 5000 and 62 after it.
    #[test]
    fn a_loss_halves_both_windows_and_an_undo_restores_both() {
        let mut flow = Flow::new(10_000, 2);
        let before = flow.after_round(100);
        assert_eq!(flow.congest(LOSS), (5_062_000, 62_000));
        assert_eq!(flow.congest(Congestion::Spurious), before);
    }

    #[test]
    fn a_timeout_leaves_one_window_of_one_segment() {
        let mut flow = Flow::new(10_000, 2);
        flow.after_round(100);
        assert_eq!(flow.congest(Congestion::Timeout { flight_bytes: 0, first: true }), (MSS, 0));
    }

    #[test]
    fn slow_start_is_newrenos() {
        assert_eq!(Flow::new(10_000, 1_000_000).after_round(100), (10_000 * MSS + 11, 0));
    }

    #[test]
    fn a_window_with_two_samples_is_ignored() {
        let mut flow = Flow::new(10_000, 2);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut dwnd_after_rounds = |rounds| {
            for _ in 0..rounds {
                for rtt in [Some(Dur::from_ms(100)), Some(Dur::from_ms(100)), None] {
                    let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
                    flow.0.on_ack(&Ack { rtt, in_flight_bytes: 2, ..Ack::in_sequence(1) }, &mut cx);
                }
            }
            flow.state().1
        };
        // The first round has ten acknowledgments.
        let first = dwnd_after_rounds(5);
        assert!(first > 0);
        assert_eq!(dwnd_after_rounds(20), first);
    }
}
