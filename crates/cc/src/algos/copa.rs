//! Copa: a window that keeps a few packets in the queue, and competes with flows that fill it.
//!
//! Source: Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018.
//!
//! Copa needs round-trip times precise enough to show the queue. The queueing delay is d_q = RTTstanding - RTTmin.
//! RTTstanding is the least round-trip time of the last srtt/2, and RTTmin that of the last 10 s (section 2.1). The
//! target rate is 1 / (delta d_q) packets per second (equation 1). Each acknowledgment moves the window towards it by v
//! / (delta cwnd) packets. Once per window, the velocity v is updated: it doubles if the window has moved in the same
//! direction for three round trips or more, and otherwise returns to 1. A flow starts by doubling its window every
//! round trip until its rate exceeds the target. Segments are paced at 2 cwnd / RTTstanding (all in section 2.1).
//!
//! In the default mode, delta is 0.5. Copa flows alone empty the queue once in five round trips (section 3). If the
//! queue has not been nearly empty for that time, another flow fills it, and the competitive mode follows (section
//! 2.2). There, 1 / delta grows by one per round trip and halves after a loss, as the window of NewReno does. The paper
//! lets one imitate another controller, too, such as CUBIC. The queue is nearly empty if d_q is below a tenth of RTTmax
//! - RTTmin, where RTTmax is the largest round-trip time of the last four.
//!
//! Copa flows alone may compete by mistake, as Jiang et al. ("Copa+", INFOCOM 2022) report: if whole packets or the
//! rest of an overshoot keep the queue from emptying for five round trips, each flow takes the others for flows that
//! fill it. They then fill the queue until a loss. `mode_switching = false` avoids this among Copa flows.
//!
//! Differences from the paper:
//!
//! - The paper does not bound v. Here v is at most delta times the window, as in the authors' program, so that a round
//!   trip at most doubles the window.
//! - The paper updates v once per window only. A window that crosses its target with a large v then leaves it by as
//!   much on the other side: with chunks of two segments, such a flow used 37 % of a link of 100 Mb/s and 20 ms. Here,
//!   as in mvfst, the first step against the direction returns v to 1.
//! - The paper does not say how small a window may be. It has at least `min_window` segments, two by default, as in the
//!   authors' program.
//! - A loss changes the window only through delta, and hence only in the competitive mode. The paper leaves timeouts
//!   open. Here the window returns to its minimum, and slow start follows.
//! - The window does not grow while a lack of data, rather than the window, limits the flow. It may shrink.
//! - "Nearly empty" includes d_q = 0, also while RTTmax equals RTTmin.
//! - In the competitive mode, 1 / delta is never below its value in the default mode.
//! - The first window is paced at the line rate if there is no round-trip time yet.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits};
use crate::filter::WindowedExtreme;
use crate::pace::PacketSize;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::round::Round;
use crate::window::INITIAL_WINDOW;
use sparelane_core::{Dur, Rate, Time};

const PAPER: &str = "Arun and Balakrishnan, NSDI 2018";

const DELTA: Param = Param {
    name: "delta",
    kind: Kind::Number { min: 0.001, max: 10.0, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "weight of delay against throughput; the flow keeps about 1 / delta packets in the queue",
    source: "Arun and Balakrishnan, NSDI 2018, section 2.2",
};

const MODE_SWITCHING: Param = Param {
    name: "mode_switching",
    kind: Kind::Flag,
    default: DefaultValue::Flag(true),
    meaning: "compete with flows that fill the queue; otherwise delta is constant",
    source: "Arun and Balakrishnan, NSDI 2018, section 2.2",
};

const MIN_WINDOW: Param = Param {
    name: "min_window",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(2),
    meaning: "minimum window",
    source: "the authors' program (genericCC)",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "copa",
    summary: "keeps about 1 / delta packets in the queue; competes with flows that fill it",
    source: PAPER,
    params: &[INITIAL_WINDOW, DELTA, MODE_SWITCHING, MIN_WINDOW],
    wire: None,
    make: &|values, plan| {
        let config = CopaConfig {
            initial_window: values.whole(&INITIAL_WINDOW),
            delta: values.number(&DELTA),
            mode_switching: values.flag(&MODE_SWITCHING),
            min_window: values.whole(&MIN_WINDOW),
        };
        Ok(Box::new(Copa::new(config, plan.packets(), plan.line_rate)))
    },
};

/// The time for which the smallest round-trip time counts (RTTmin).
const MIN_RTT_WINDOW: Dur = Dur::from_secs(10);

/// The number of round trips over which the largest round-trip time counts (RTTmax).
const MAX_RTT_ROUNDS: u64 = 4;

/// The number of round trips in which Copa flows alone empty the queue.
const EMPTY_ROUNDS: u64 = 5;

/// The share of RTTmax - RTTmin below which the queue is nearly empty.
const NEARLY_EMPTY: f64 = 0.1;

/// The number of round trips for which the direction must have stayed the same before the velocity doubles.
const STEADY_ROUNDS: u32 = 3;

/// The pace relative to cwnd / RTTstanding.
const PACING_GAIN: f64 = 2.0;

/// The settings of the law, as declared.
#[derive(Clone, Copy, Debug)]
pub struct CopaConfig {
    /// Initial window in segments.
    pub initial_window: u64,
    /// The delta of the default mode.
    pub delta: f64,
    /// True if the competitive mode is used.
    pub mode_switching: bool,
    /// Minimum window in segments.
    pub min_window: u64,
}

/// The direction of the window over a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// The Copa controller.
#[derive(Clone, Debug)]
pub struct Copa {
    config: CopaConfig,
    packets: PacketSize,
    pace: Rate,
    /// The window in packets.
    cwnd: f64,
    is_starting: bool,
    /// The least round-trip time of the last 10 s (RTTmin), of the last srtt/2 (RTTstanding), and the largest of the
    /// last four round trips (RTTmax). Times are in picoseconds.
    min_rtt: WindowedExtreme<Dur>,
    standing_rtt: WindowedExtreme<Dur>,
    max_rtt: WindowedExtreme<Dur>,

    // The velocity.
    velocity: f64,
    round: Round,
    /// The window when the round began.
    cwnd_before: f64,
    direction: Direction,
    /// The number of rounds in a row with this direction.
    rounds_in_direction: u32,

    // The mode.
    /// 1 / delta.
    packets_in_queue: f64,
    is_competing: bool,
    /// The last time at which the queue was nearly empty.
    emptied_at: Time,
    /// True if a loss has halved `packets_in_queue` in this round.
    lost_in_round: bool,
}

impl Copa {
    /// Creates a controller for a connection with these packet sizes and this rate of the sender's interface.
    pub fn new(config: CopaConfig, packets: PacketSize, line_rate: Rate) -> Copa {
        let cwnd = config.initial_window.max(config.min_window) as f64;
        Copa {
            config,
            packets,
            pace: line_rate.max(Rate::from_bps(1)),
            cwnd,
            is_starting: true,
            min_rtt: WindowedExtreme::min(MIN_RTT_WINDOW.as_ps()),
            standing_rtt: WindowedExtreme::min(0),
            max_rtt: WindowedExtreme::max(0),
            velocity: 1.0,
            round: Round::default(),
            cwnd_before: cwnd,
            direction: Direction::Up,
            rounds_in_direction: 0,
            packets_in_queue: 1.0 / config.delta,
            is_competing: false,
            emptied_at: Time::ZERO,
            lost_in_round: false,
        }
    }

    /// Adds a round-trip time to the filters.
    fn measure(&mut self, rtt: Dur, srtt: Dur, now: Time) {
        self.standing_rtt.set_window(srtt.as_ps() / 2);
        self.max_rtt.set_window(srtt.as_ps() * MAX_RTT_ROUNDS);
        for filter in [&mut self.min_rtt, &mut self.standing_rtt, &mut self.max_rtt] {
            filter.update(now.as_ps(), rtt);
        }
    }

    /// Returns RTTstanding and the queueing delay in seconds, if there is a round-trip time.
    fn delays(&self) -> Option<(f64, f64)> {
        let (standing, least) = (self.standing_rtt.best()?, self.min_rtt.best()?);
        Some((standing.as_secs_f64(), standing.saturating_sub(least).as_secs_f64()))
    }

    /// Section 2.2: chooses the mode.
    fn choose_mode(&mut self, queuing_s: f64, srtt: Dur, now: Time) {
        let (Some(most), Some(least)) = (self.max_rtt.best(), self.min_rtt.best()) else { return };
        if queuing_s <= NEARLY_EMPTY * most.saturating_sub(least).as_secs_f64() {
            self.emptied_at = now;
        }
        let is_competing = now.saturating_since(self.emptied_at) > srtt * EMPTY_ROUNDS;
        if self.is_competing && !is_competing {
            self.packets_in_queue = 1.0 / self.config.delta;
        }
        self.is_competing = is_competing;
    }

    /// Updates the velocity at the end of a round, and 1 / delta in the competitive mode.
    fn end_round(&mut self) {
        let direction = if self.cwnd > self.cwnd_before { Direction::Up } else { Direction::Down };
        if direction == self.direction {
            self.rounds_in_direction += 1;
        } else {
            (self.direction, self.rounds_in_direction) = (direction, 1);
        }
        self.velocity = if self.rounds_in_direction < STEADY_ROUNDS { 1.0 } else { self.velocity * 2.0 };
        self.cwnd_before = self.cwnd;
        if self.is_competing && !self.lost_in_round {
            self.packets_in_queue += 1.0;
        }
        self.lost_in_round = false;
    }

    /// Section 2.1: moves the window towards the target rate.
    fn move_window(&mut self, ack: &Ack, standing_s: f64, queuing_s: f64) {
        let acked = ack.delivered_bytes as f64 / self.packets.mss_bytes as f64;
        // cwnd / RTTstanding <= 1 / (delta d_q), without the division by a delay of zero.
        let is_below_target = self.cwnd * queuing_s <= self.packets_in_queue * standing_s;
        if self.is_starting {
            if is_below_target {
                self.cwnd += if ack.cwnd_limited { acked } else { 0.0 };
                return;
            }
            self.is_starting = false;
            self.cwnd_before = self.cwnd;
        }
        let towards = if is_below_target { Direction::Up } else { Direction::Down };
        if self.velocity > 1.0 && towards != self.direction {
            (self.velocity, self.direction, self.rounds_in_direction) = (1.0, towards, 0);
            self.cwnd_before = self.cwnd;
        }
        self.velocity = self.velocity.min((self.cwnd / self.packets_in_queue).max(1.0));
        let step = acked * self.velocity * self.packets_in_queue / self.cwnd;
        if !is_below_target {
            self.cwnd -= step;
        } else if ack.cwnd_limited {
            self.cwnd += step;
        }
        self.cwnd = self.cwnd.max(self.config.min_window as f64);
    }

    fn set_pace(&mut self, standing_s: f64) {
        if standing_s > 0.0 {
            let bits = self.cwnd * self.packets.wire_bytes() as f64 * 8.0;
            // The conversion saturates, so that a tiny round-trip time gives the largest rate.
            self.pace = Rate::from_bps(((PACING_GAIN * bits / standing_s) as u64).max(1));
        }
    }
}

impl CongestionControl for Copa {
    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.emptied_at = cx.now;
        if let Some(rtt) = cx.srtt {
            self.set_pace(rtt.as_secs_f64());
        }
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        let Some(srtt) = cx.srtt.or(ack.rtt) else { return };
        if let Some(rtt) = ack.rtt {
            self.measure(rtt, srtt, cx.now);
        }
        let Some((standing_s, queuing_s)) = self.delays() else { return };
        if self.config.mode_switching {
            self.choose_mode(queuing_s, srtt, cx.now);
        }
        if self.round.is_over(ack) && !self.is_starting {
            self.end_round();
        }
        self.move_window(ack, standing_s, queuing_s);
        self.set_pace(standing_s);
    }

    fn on_congestion(&mut self, event: Congestion, _cx: &mut Cx<'_>) {
        match event {
            Congestion::Loss { .. } | Congestion::Marked { by_ecn: true, .. } => {
                if self.is_competing && !self.lost_in_round {
                    self.lost_in_round = true;
                    self.packets_in_queue = (self.packets_in_queue / 2.0).max(1.0 / self.config.delta);
                }
            }
            Congestion::Timeout { .. } | Congestion::LostSyn => {
                self.cwnd = self.cwnd.min(self.config.min_window as f64);
                (self.is_starting, self.velocity, self.rounds_in_direction) = (true, 1.0, 0);
            }
            Congestion::Marked { .. } | Congestion::Spurious => {}
        }
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: (self.cwnd * self.packets.mss_bytes as f64) as u64, pacing: Some(self.pace) }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.limits().cwnd_bytes as f64);
        put("rate_bps", self.pace.as_bps() as f64);
        put("delta", 1.0 / self.packets_in_queue);
        put("velocity", self.velocity);
        put("is_competing", f64::from(u8::from(self.is_competing)));
        put("queuing_s", self.delays().map_or(0.0, |(_, queuing_s)| queuing_s));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::traced;
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;
    const BASE: Dur = Dur::from_ms(40);

    /// A connection with acknowledgments of single segments, each window of them evenly over a round trip.
    struct Connection {
        copa: Copa,
        now: Time,
        rng: Stream,
    }

    impl Connection {
        fn new(change: impl FnOnce(&mut CopaConfig)) -> Connection {
            let mut config = CopaConfig { initial_window: 10, delta: 0.5, mode_switching: true, min_window: 2 };
            change(&mut config);
            let copa = Copa::new(config, PacketSize::of(MSS), Rate::from_gbps(1));
            Connection { copa, now: Time::ZERO, rng: Stream::new(1, Domain::Test, 0) }
        }

        /// Leaves slow start with a window of `segments` and an RTTmin of 40 ms.
        fn beyond_slow_start(segments: f64) -> Connection {
            let mut connection = Connection::new(|_| {});
            connection.round_trip(Dur::ZERO);
            connection.copa.is_starting = false;
            connection.copa.cwnd = segments;
            connection.copa.cwnd_before = segments;
            connection
        }

        fn cx<T>(&mut self, call: impl FnOnce(&mut Copa, &mut Cx<'_>) -> T) -> T {
            let srtt = Some(BASE);
            let mut cx = Cx { now: self.now, mss_bytes: MSS, srtt, min_rtt: Some(BASE), rng: &mut self.rng };
            call(&mut self.copa, &mut cx)
        }

        /// Acknowledges one window, with `queuing` in the queue. Returns the change of the window in packets.
        fn round_trip(&mut self, queuing: Dur) -> f64 {
            let before = self.copa.cwnd;
            let segments = before as u64;
            for _ in 0..segments {
                self.now += BASE / segments;
                let in_flight_bytes = (segments - 1) * MSS;
                let ack = Ack { rtt: Some(BASE + queuing), in_flight_bytes, ..Ack::in_sequence(MSS) };
                self.cx(|copa, cx| copa.on_ack(&ack, cx));
            }
            self.copa.cwnd - before
        }

        fn congestion(&mut self, event: Congestion) {
            self.cx(|copa, cx| copa.on_congestion(event, cx));
        }
    }

    #[test]
    fn slow_start_doubles_the_window_until_the_rate_exceeds_the_target() {
        let mut connection = Connection::new(|_| {});
        assert_eq!([(); 3].map(|()| connection.round_trip(Dur::ZERO)), [10.0, 20.0, 40.0]);
        // With 80 packets and 1 ms in the queue, 41 / 0.5 = 82 packets are the target: still below it.
        assert!(connection.round_trip(Dur::from_ms(1)) > 0.0);
        assert!(connection.round_trip(Dur::from_ms(4)) < 0.0);
        assert!(!connection.copa.is_starting);
    }

    /// A window of 100 packets is the target at d_q = 2 RTTstanding / 100.
    #[test]
    fn the_window_moves_towards_the_target_by_one_over_delta_per_round_trip() {
        let after = |queuing_us| {
            let mut connection = Connection::beyond_slow_start(100.0);
            // RTTstanding covers half a round trip, so the first half still shows the old delay.
            connection.round_trip(Dur::from_us(queuing_us));
            connection.copa.cwnd = 100.0;
            connection.copa.velocity = 1.0;
            connection.round_trip(Dur::from_us(queuing_us))
        };
        let (below, above) = (after(700), after(900));
        assert!((1.9..=2.1).contains(&below), "{below}");
        assert!((-2.1..=-1.9).contains(&above), "{above}");
    }

    #[test]
    fn the_velocity_doubles_once_the_direction_has_stayed_for_three_round_trips() {
        let mut connection = Connection::beyond_slow_start(200.0);
        let mut velocities = Vec::new();
        for _ in 0..6 {
            connection.round_trip(Dur::ZERO);
            velocities.push(connection.copa.velocity);
        }
        // The first acknowledgment ends a round without growth, so the direction is up from the second round on.
        assert_eq!(velocities, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0]);
        for _ in 0..2 {
            connection.round_trip(Dur::from_ms(20));
        }
        assert_eq!(connection.copa.velocity, 1.0, "the direction has changed");
    }

    #[test]
    fn a_step_against_the_direction_ends_a_large_velocity() {
        let mut connection = Connection::beyond_slow_start(200.0);
        for _ in 0..6 {
            connection.round_trip(Dur::ZERO);
        }
        assert_eq!(connection.copa.velocity, 8.0);
        // The first half of the round trip still has the old RTTstanding, and grows.
        connection.round_trip(Dur::from_ms(20));
        assert_eq!((connection.copa.velocity, connection.copa.direction), (1.0, Direction::Down));
    }

    #[test]
    fn a_round_trip_at_most_doubles_the_window() {
        let mut connection = Connection::beyond_slow_start(10.0);
        for _ in 0..12 {
            let before = connection.copa.cwnd;
            let grown = connection.round_trip(Dur::ZERO);
            assert!(grown <= before * 1.01, "{grown} from {before}");
        }
    }

    #[test]
    fn a_queue_that_is_not_empty_for_five_round_trips_starts_the_competitive_mode() {
        let mut connection = Connection::beyond_slow_start(50.0);
        let modes: Vec<bool> = (0..7)
            .map(|_| {
                connection.round_trip(Dur::from_ms(30));
                connection.copa.is_competing
            })
            .collect();
        // The first half round trip still has the old delay as RTTstanding.
        assert_eq!(modes, [false, false, false, false, false, true, true]);
        connection.round_trip(Dur::ZERO);
        assert!(!connection.copa.is_competing);
        assert_eq!(traced(&connection.copa, "delta"), 0.5);
    }

    #[test]
    fn without_mode_switching_delta_stays() {
        let mut connection = Connection::new(|config| config.mode_switching = false);
        connection.round_trip(Dur::ZERO);
        for _ in 0..20 {
            connection.round_trip(Dur::from_ms(30));
        }
        assert_eq!((connection.copa.is_competing, traced(&connection.copa, "delta")), (false, 0.5));
    }

    #[test]
    fn in_the_competitive_mode_delta_follows_losses_as_the_window_of_newreno() {
        let mut connection = Connection::beyond_slow_start(50.0);
        for _ in 0..12 {
            connection.round_trip(Dur::from_ms(30));
        }
        let grown = connection.copa.packets_in_queue;
        assert!((7.0..=9.0).contains(&grown), "{grown}: one more per round trip");
        connection.congestion(Congestion::Loss { flight_bytes: 0 });
        connection.congestion(Congestion::Loss { flight_bytes: 0 });
        assert_eq!(connection.copa.packets_in_queue, grown / 2.0, "once per round trip");
        connection.round_trip(Dur::from_ms(30));
        connection.congestion(Congestion::Loss { flight_bytes: 0 });
        assert_eq!(connection.copa.packets_in_queue, 2.0, "not below the default mode");
    }

    #[test]
    fn in_the_default_mode_a_loss_changes_nothing_and_a_timeout_restarts() {
        let mut connection = Connection::beyond_slow_start(50.0);
        let before = connection.copa.limits();
        connection.congestion(Congestion::Loss { flight_bytes: 0 });
        assert_eq!(connection.copa.limits(), before);
        connection.congestion(Congestion::Timeout { flight_bytes: 0, first: true });
        assert_eq!(connection.copa.limits().cwnd_bytes, 2 * MSS);
        assert_eq!(connection.round_trip(Dur::ZERO), 2.0, "slow start again");
    }

    #[test]
    fn the_pace_is_twice_the_window_per_standing_round_trip() {
        let mut connection = Connection::beyond_slow_start(100.0);
        connection.round_trip(Dur::ZERO);
        let expected = 2.0 * connection.copa.cwnd * 1040.0 * 8.0 / 0.04;
        assert!((connection.copa.pace.as_bps() as f64 / expected - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_flow_short_of_data_does_not_grow_but_shrinks() {
        let mut connection = Connection::beyond_slow_start(100.0);
        let change = |connection: &mut Connection, queuing| {
            let before = connection.copa.cwnd;
            for _ in 0..50 {
                connection.now += Dur::from_ms(1);
                let ack = Ack { rtt: Some(BASE + queuing), cwnd_limited: false, ..Ack::in_sequence(MSS) };
                connection.cx(|copa, cx| copa.on_ack(&ack, cx));
            }
            connection.copa.cwnd - before
        };
        assert_eq!(change(&mut connection, Dur::ZERO), 0.0);
        assert!(change(&mut connection, Dur::from_ms(30)) < 0.0);
    }
}
