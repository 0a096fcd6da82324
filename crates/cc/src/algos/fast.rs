//! FAST TCP: keeps alpha packets of the flow in queues, and moves half of the way there per step.
//!
//! Source: Jin, Wei, Low, "FAST TCP: Motivation, Architecture, Algorithms, Performance", INFOCOM 2004 (and IEEE/ACM ToN
//! 14(6), 2006).
//!
//! In every other round trip, with BaseRTT the minimum round-trip time and RTT its mean, w <- min(2 w, (1 - gamma) w +
//! gamma (BaseRTT / RTT w + alpha)), gamma = 0.5. The window moves during one round trip and holds during the next, so
//! that RTT reflects the window from which the next step starts. Growth is spread over its round trip. In equilibrium
//! alpha packets wait in queues, at any rate. The mean gives a packet's round-trip time the weight min(3 / w, 1/4), w
//! in segments, so that a window's worth of packets replaces it. A loss takes half the window.
//!
//! Alpha is the flow's share of the queue. No paper fixes it: 100 to 200 packets were used from 100 Mb/s to 1 Gb/s, and
//! 250 in ports to other simulators. The queue must hold alpha packets of every flow; otherwise losses decide.
//!
//! Details that the paper leaves open: a connection begins with NewReno's slow start, which ends when more than alpha
//! packets wait in queues (or at ssthresh). The law then holds for a round trip, as it does after recovery. A smaller
//! window takes effect at once. Difference from the paper: an acknowledgment of n segments has the weight of n
//! round-trip times in the mean, at most 1/4, so that delayed or merged acknowledgments do not slow the mean. Neither
//! Linux nor ns-3 includes FAST.

use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::round::Round;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};
use sparelane_core::Dur;

const ALPHA: Param = Param {
    name: "alpha",
    kind: Kind::Number { min: 1.0, max: 1_000_000.0, unit: Unit::Segments },
    default: DefaultValue::Number(200.0),
    meaning: "packets of the flow in queues in equilibrium",
    source: "the authors' value at 1 Gb/s; 100 at 100 Mb/s",
};

const GAMMA: Param = Param {
    name: "gamma",
    kind: Kind::Number { min: 0.01, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "share of the distance covered per step",
    source: "INFOCOM 2004",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "fast",
    summary: "keeps alpha packets of the flow in queues",
    source: "Jin, Wei, Low, INFOCOM 2004",
    params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, ALPHA, GAMMA],
    wire: None,
    make: &|values, plan| {
        let law = Fast::new(values.number(&ALPHA), values.number(&GAMMA));
        Ok(windowed(law, values, plan))
    },
};

/// The state of the window in this round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Hold,
    /// Grows the window by this many bytes per acknowledged byte.
    Move {
        growth: f64,
    },
}

/// The FAST window law.
#[derive(Clone, Debug)]
pub struct Fast {
    /// Target queue in packets.
    alpha: f64,
    gamma: f64,
    base_rtt: Dur,
    /// The mean round-trip time in seconds; zero before the first sample.
    mean_rtt_s: f64,
    round: Round,
    stage: Stage,
    /// Growth of less than a byte, carried over to the next acknowledgment.
    fraction: f64,
}

impl Fast {
    /// Creates a law that keeps `alpha` packets in queues and covers the share `gamma` of the distance per step.
    pub fn new(alpha: f64, gamma: f64) -> Fast {
        let (base_rtt, mean_rtt_s) = (Dur::MAX, 0.0);
        Fast { alpha, gamma, base_rtt, mean_rtt_s, round: Round::default(), stage: Stage::Hold, fraction: 0.0 }
    }

    /// Adds the round-trip time of an acknowledgment of `segments` segments to the mean.
    fn sample(&mut self, rtt: Dur, segments: f64, window_segments: f64) {
        self.base_rtt = self.base_rtt.min(rtt);
        let rtt_s = rtt.as_secs_f64();
        if self.mean_rtt_s == 0.0 {
            self.mean_rtt_s = rtt_s;
        }
        let weight = (3.0 * segments / window_segments).min(0.25);
        self.mean_rtt_s += weight * (rtt_s - self.mean_rtt_s);
    }

    /// Returns BaseRTT / RTT, if there is a sample.
    fn empty_share(&self) -> Option<f64> {
        (self.mean_rtt_s > 0.0).then(|| (self.base_rtt.as_secs_f64() / self.mean_rtt_s).min(1.0))
    }

    /// Returns the target of the next step from `w` bytes.
    fn step(&self, w: f64, mss_bytes: f64) -> f64 {
        let Some(share) = self.empty_share() else { return w };
        let target = (1.0 - self.gamma) * w + self.gamma * (share * w + self.alpha * mss_bytes);
        target.min(2.0 * w)
    }

    /// Starts a step after a round trip without change.
    fn begin_move(&mut self, window: &mut Window, mss_bytes: u64) {
        let w = window.cwnd as f64;
        let target = self.step(w, mss_bytes as f64);
        // A smaller window takes effect at once; growth is spread over the round trip.
        if target < w {
            window.cwnd = (target as u64).max(2 * mss_bytes).min(window.cwnd);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
        self.stage = Stage::Move { growth: ((target - w) / w).max(0.0) };
        self.fraction = 0.0;
    }
}

impl WindowLaw for Fast {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let mss = cx.mss_bytes as f64;
        let segments = window.cwnd as f64 / mss;
        if let Some(rtt) = ack.rtt {
            self.sample(rtt, (ack.delivered_bytes as f64 / mss).max(1.0), segments);
        }
        let is_starting = window.cwnd < window.ssthresh;
        // The estimated queue exceeds alpha: slow start has filled the path.
        if is_starting && self.empty_share().is_some_and(|share| segments * (1.0 - share) > self.alpha) {
            window.ssthresh = window.cwnd;
        }
        if is_starting || ack.phase != Phase::Open {
            self.stage = Stage::Hold;
            self.round.restart(ack);
        } else if self.round.is_over(ack) {
            match self.stage {
                Stage::Hold => self.begin_move(window, cx.mss_bytes),
                Stage::Move { .. } => self.stage = Stage::Hold,
            }
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, _cx: &mut Cx<'_>) {
        let Stage::Move { growth } = self.stage else { return };
        let bytes = growth * ack.acked_bytes as f64 + self.fraction;
        window.cwnd += bytes as u64;
        self.fraction = bytes.fract();
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, _event: Congestion, _cx: &mut Cx<'_>) -> u64 {
        self.stage = Stage::Hold;
        window.cwnd / 2
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("mean_rtt_s", self.mean_rtt_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::UNBOUNDED;
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 8948;

    /// A connection on a path of 100 ms that holds 1000 packets.
    struct Connection {
        controller: Windowed<Fast>,
        rng: Stream,
    }

    impl Connection {
        fn new(initial_window: u64, initial_ssthresh: u64, alpha: f64) -> Connection {
            let config = WindowConfig {
                initial_window,
                initial_ssthresh,
                slow_start_limit: 1,
                growth_limit: UNBOUNDED,
                ..WindowConfig::default()
            };
            let controller = Windowed::new(Fast::new(alpha, 0.5), config, MSS);
            Connection { controller, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn acknowledge(&mut self, rtt: Dur, in_flight: u64, phase: Phase) {
            let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
            let ack = Ack { rtt: Some(rtt), phase, in_flight_bytes: in_flight * MSS, ..Ack::in_sequence(MSS) };
            self.controller.on_ack(&ack, &mut cx);
        }

        /// Returns the window after one round trip with a window's worth of acknowledgments, in segments to a
        /// thousandth.
        fn round(&mut self, phase: Phase) -> f64 {
            let window = self.window().floor() as u64;
            // Packets beyond 1000 wait, 100 us each.
            let rtt = Dur::from_ms(100) + Dur::from_us(100 * window.saturating_sub(1000));
            (0..window).for_each(|_| self.acknowledge(rtt, window - 1, phase));
            self.window()
        }

        fn window(&self) -> f64 {
            (self.controller.limits().cwnd_bytes * 1000 / MSS) as f64 / 1000.0
        }
    }

    fn is_near(given: f64, expected: f64) {
        assert!((given - expected).abs() < 0.002, "{given} and not {expected}");
    }

    #[test]
    fn on_a_free_path_the_window_grows_by_half_of_alpha_every_other_round_trip_and_doubles_at_most() {
        let mut connection = Connection::new(400, 2, 200.0);
        // The first acknowledgment ends an empty round trip, and the last of a window belongs to the next.
        is_near(connection.round(Phase::Open), 500.0);
        is_near(connection.round(Phase::Open), 500.0);
        is_near(connection.round(Phase::Open), 600.0);
        is_near(connection.round(Phase::Open), 600.0);
        let mut small = Connection::new(10, 2, 200.0);
        is_near(small.round(Phase::Open), 20.0);
        is_near(small.round(Phase::Open), 20.0);
        is_near(small.round(Phase::Open), 40.0);
    }

    /// A window of 30,000 segments grows by half a segment at alpha = 1, which is 0.15 bytes per acknowledgment.
    #[test]
    fn a_step_is_exact_at_a_large_window() {
        let mut law = Fast::new(1.0, 0.5);
        law.sample(Dur::from_ms(100), 1.0, 30_000.0);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let mut window = Window { cwnd: 30_000 * MSS, ssthresh: 0 };
        law.begin_move(&mut window, MSS);
        (0..30_000).for_each(|_| law.grow(&mut window, &Ack::in_sequence(MSS), &mut cx));
        let grown = window.cwnd - 30_000 * MSS;
        assert!(grown.abs_diff(MSS / 2) <= 1, "{grown} bytes");
    }

    /// With 2000 packets at 200 ms a step leads to 0.5 * 2000 + 0.5 * (1000 + 200) = 1600. The equilibrium is 1200.
    #[test]
    fn a_step_covers_half_of_the_distance_to_alpha_packets_in_the_queue() {
        let law = Fast { base_rtt: Dur::from_ms(100), mean_rtt_s: 0.2, ..Fast::new(200.0, 0.5) };
        let mut window = Window { cwnd: 2000 * MSS, ssthresh: 2000 * MSS };
        law.clone().begin_move(&mut window, MSS);
        assert_eq!(window, Window { cwnd: 1600 * MSS, ssthresh: 1600 * MSS });
        let at_rest = Fast { mean_rtt_s: 0.12, ..law };
        is_near(at_rest.step(1200.0, 1.0), 1200.0);
        is_near(at_rest.step(600.0, 1.0), 650.0);
        is_near(at_rest.step(50.0, 1.0), 100.0);
    }

    #[test]
    fn the_equilibrium_has_alpha_packets_in_the_queue() {
        let mut connection = Connection::new(10, UNBOUNDED, 200.0);
        (0..80).for_each(|_| {
            connection.round(Phase::Open);
        });
        let window = connection.window();
        assert!((1195.0..1205.0).contains(&window), "{window} segments");
    }

    /// The eighth round trip begins with 1280 packets, of which 280 wait: its packets take 128 ms. After n of them the
    /// mean is 128 - 28 (1280 / (1280 + n))^3 ms, at which more than 200 of 1280 + n wait from n = 338 on.
    #[test]
    fn slow_start_ends_when_more_than_alpha_packets_wait() {
        let mut connection = Connection::new(10, UNBOUNDED, 200.0);
        let windows: Vec<_> = (0..9).map(|_| connection.round(Phase::Open)).collect();
        assert_eq!(windows[..7], [20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0]);
        assert!((1616.0..1620.0).contains(&windows[7]) && windows[8] < windows[7], "{windows:?}");
    }

    /// The weights are 3/100 of the difference for one packet and a quarter for ten.
    #[test]
    fn a_windows_worth_of_packets_replaces_the_mean() {
        let mut law = Fast::new(200.0, 0.5);
        law.sample(Dur::from_ms(100), 1.0, 100.0);
        law.sample(Dur::from_ms(200), 1.0, 100.0);
        is_near(law.mean_rtt_s * 1000.0, 103.0);
        law.sample(Dur::from_ms(203), 10.0, 100.0);
        is_near(law.mean_rtt_s * 1000.0, 128.0);
        assert_eq!(law.base_rtt, Dur::from_ms(100));
    }

    #[test]
    fn a_loss_takes_half_and_the_window_holds_for_a_round_trip_after_recovery() {
        let mut connection = Connection::new(400, 2, 200.0);
        connection.round(Phase::Open);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut connection.rng };
        connection.controller.on_congestion(Congestion::Loss { flight_bytes: 0 }, &mut cx);
        is_near(connection.window(), 250.0);
        is_near(connection.round(Phase::Recovery), 250.0);
        is_near(connection.round(Phase::Open), 250.0 + 100.0 / 250.0);
        is_near(connection.round(Phase::Open), 350.0);
    }
}
