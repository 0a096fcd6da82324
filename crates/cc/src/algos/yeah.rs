//! YeAH-TCP: grows as Scalable TCP while the path is free, and as NewReno with a standing queue, which it removes.
//!
//! Source: Baiocchi, Castellani, Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", PFLDnet 2007; in the form of Linux
//! 2.6.32 (tcp_yeah.c), which names the constants.
//!
//! Once per window of data with at least three samples, with RTT the minimum round-trip time of that window and BaseRTT
//! that of the connection, the flow has queue = cwnd (RTT - BaseRTT) / RTT packets in queues. Slow mode applies if
//! queue > alpha (80) or RTT - BaseRTT > BaseRTT / phy (8). In fast mode the window grows by a segment per `ai_count`
//! (100) acknowledged ones, or per cwnd if that is less; in slow mode it grows as NewReno's. If queue > alpha, the
//! queue is subtracted from the window at once (precautionary decongestion). This takes at most half of the window and
//! leaves at least `reno_count`, an estimate of the window that a competing NewReno flow would have. The estimate
//! starts at half the window, grows by one per window of data in slow mode, halves at a loss, and is reset after 50
//! (zeta) windows of data in fast mode.
//!
//! A loss takes the queue, at least an eighth of the window (delta 3) and at most half. After 16 (rho) windows of data
//! in slow mode, which indicate NewReno flows, it takes half.
//!
//! Differences: Linux 2.6.32 grows when more than 100 segments are counted, hence with every 101st, and drops the
//! remainder; this law keeps it. Linux evaluates after growth, this law before. Linux also evaluates during a timeout's
//! recovery, and resets BaseRTT when an idle connection resumes sending. Current Linux has the same law and grows with
//! every 100th segment. The hundredth is that of Scalable TCP's paper; Linux's Scalable TCP uses a fiftieth.
//!
//! ns-3 (TcpYeah) divides 1 by phy in whole numbers, which gives 0: any delay is slow mode. It cuts the volume in
//! flight.

use super::newreno::NewReno;
use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::increase::Increase;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::round::Round;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};
use sparelane_core::Dur;

const LINUX: &str = "Linux (tcp_yeah.c)";

const ALPHA: Param = Param {
    name: "alpha",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(80),
    meaning: "maximum number of packets in the queue in fast mode",
    source: LINUX,
};

const GAMMA: Param = Param {
    name: "gamma",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::One },
    default: DefaultValue::Whole(1),
    meaning: "divisor of the queue that is subtracted from the window in slow mode",
    source: LINUX,
};

const DELTA: Param = Param {
    name: "delta",
    kind: Kind::Whole { min: 1, max: 32, unit: Unit::One },
    default: DefaultValue::Whole(3),
    meaning: "a loss takes at least the window divided by 2 to the power of this",
    source: LINUX,
};

const EPSILON: Param = Param {
    name: "epsilon",
    kind: Kind::Whole { min: 1, max: 32, unit: Unit::One },
    default: DefaultValue::Whole(1),
    meaning: "slow mode takes at most the window divided by 2 to the power of this",
    source: LINUX,
};

const PHY: Param = Param {
    name: "phy",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::One },
    default: DefaultValue::Whole(8),
    meaning: "maximum delay in fast mode: the minimum round-trip time divided by this",
    source: LINUX,
};

const RHO: Param = Param {
    name: "rho",
    kind: Kind::Whole { min: 0, max: 1_000_000, unit: Unit::One },
    default: DefaultValue::Whole(16),
    meaning: "number of windows of data in slow mode after which a loss takes half",
    source: LINUX,
};

const ZETA: Param = Param {
    name: "zeta",
    kind: Kind::Whole { min: 0, max: 1_000_000, unit: Unit::One },
    default: DefaultValue::Whole(50),
    meaning: "number of windows of data in fast mode after which competing flows are forgotten",
    source: LINUX,
};

const AI_COUNT: Param = Param {
    name: "ai_count",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(100),
    meaning: "acknowledged segments that add one to the window in fast mode",
    source: LINUX,
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "yeah",
    summary: "Scalable TCP while the path is free, otherwise NewReno that removes the queue",
    source: "Baiocchi, Castellani, Vacirca, PFLDnet 2007; Linux 2.6.32",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        ALPHA,
        GAMMA,
        DELTA,
        EPSILON,
        PHY,
        RHO,
        ZETA,
        AI_COUNT,
    ],
    wire: None,
    make: &|values, plan| {
        let [alpha, gamma, delta, epsilon, phy, rho, zeta, ai_count] =
            [&ALPHA, &GAMMA, &DELTA, &EPSILON, &PHY, &RHO, &ZETA, &AI_COUNT].map(|param| values.whole(param));
        let config = YeahConfig { alpha, gamma, delta, epsilon, phy, rho, zeta, ai_count };
        Ok(windowed(Yeah::new(config), values, plan))
    },
};

/// The constants of the law by Linux's names, described by the parameters of the same names.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "described by the parameters of the same names")]
pub struct YeahConfig {
    pub alpha: u64,
    pub gamma: u64,
    pub delta: u64,
    pub epsilon: u64,
    pub phy: u64,
    pub rho: u64,
    pub zeta: u64,
    pub ai_count: u64,
}

/// The number of samples that must be exceeded to evaluate a window of data.
const TOO_FEW_SAMPLES: u32 = 2;

/// The minimum of `reno_count`, and its value without an estimate, segments.
const LEAST_RENO_COUNT: u64 = 2;

/// The YeAH window law.
#[derive(Clone, Debug)]
pub struct Yeah {
    config: YeahConfig,
    base_rtt: Dur,
    round: Round,
    /// True if the window of data is complete and not yet evaluated.
    is_due: bool,
    /// The minimum round-trip time of this window of data. `samples` counts its samples.
    least_rtt: Dur,
    samples: u32,
    /// Packets in queues, from the last window of data.
    queue: u64,
    /// Windows of data in slow mode since the last one in fast mode.
    slow_windows: u64,
    /// Windows of data in fast mode since the last loss or since `reno_count` was reset.
    fast_windows: u64,
    /// The estimated window of a competing NewReno flow, segments.
    reno_count: u64,
    /// Growth in fast mode.
    increase: Increase,
    newreno: NewReno,
}

impl Yeah {
    /// Creates a law with these constants.
    pub fn new(config: YeahConfig) -> Yeah {
        Yeah {
            config,
            base_rtt: Dur::MAX,
            round: Round::default(),
            is_due: false,
            least_rtt: Dur::MAX,
            samples: 0,
            queue: 0,
            slow_windows: 0,
            fast_windows: 0,
            reno_count: LEAST_RENO_COUNT,
            increase: Increase::default(),
            newreno: NewReno::default(),
        }
    }

    fn is_fast(&self) -> bool {
        self.slow_windows == 0
    }

    /// Evaluates a complete window of data.
    fn judge(&mut self, window: &mut Window, mss_bytes: u64) {
        let delay = self.least_rtt.saturating_sub(self.base_rtt);
        let segments = window.cwnd / mss_bytes;
        let rtt = u128::from(self.least_rtt.as_ps().max(1));
        self.queue = (u128::from(segments) * u128::from(delay.as_ps()) / rtt) as u64;
        if self.queue > self.config.alpha {
            self.decongest(window, mss_bytes);
        // Fast mode: neither a queue nor a delay that indicates one.
        } else if delay <= self.base_rtt / self.config.phy {
            self.fast_windows += 1;
            if self.fast_windows > self.config.zeta {
                (self.reno_count, self.fast_windows) = (LEAST_RENO_COUNT, 0);
            }
            self.slow_windows = 0;
            return;
        }
        self.slow_windows += 1;
        self.reno_count = if self.reno_count <= LEAST_RENO_COUNT {
            (window.cwnd / mss_bytes / 2).max(LEAST_RENO_COUNT)
        } else {
            self.reno_count + 1
        };
    }

    /// Subtracts the queue from the window, which ends slow start.
    fn decongest(&self, window: &mut Window, mss_bytes: u64) {
        let segments = window.cwnd / mss_bytes;
        if segments <= self.reno_count {
            return;
        }
        let reduction = (self.queue / self.config.gamma).min(segments >> self.config.epsilon);
        window.cwnd -= reduction.min(segments - self.reno_count) * mss_bytes;
        window.ssthresh = window.cwnd;
    }

    fn forget_samples(&mut self) {
        (self.least_rtt, self.samples) = (Dur::MAX, 0);
    }
}

impl WindowLaw for Yeah {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.least_rtt = self.least_rtt.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if ack.phase != Phase::Open {
            self.round.restart(ack);
            self.is_due = false;
            self.forget_samples();
            return;
        }
        self.is_due |= self.round.is_over(ack);
        if self.is_due && ack.cwnd_limited {
            self.is_due = false;
            if self.samples > TOO_FEW_SAMPLES {
                self.judge(window, cx.mss_bytes);
            }
            self.forget_samples();
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if !self.is_fast() {
            self.newreno.grow(window, ack, cx);
            return;
        }
        let price = window.cwnd.min(self.config.ai_count * cx.mss_bytes);
        self.increase.grow(window, ack.acked_bytes, price, u64::MAX, cx.mss_bytes);
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, _event: Congestion, cx: &mut Cx<'_>) -> u64 {
        let segments = window.cwnd / cx.mss_bytes;
        let half = (segments / 2).max(2);
        let reduction = if self.slow_windows < self.config.rho {
            self.queue.min(half).max(segments >> self.config.delta)
        } else {
            half
        };
        self.fast_windows = 0;
        self.reno_count = (self.reno_count / 2).max(LEAST_RENO_COUNT);
        window.cwnd.saturating_sub(reduction * cx.mss_bytes)
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("queue_packets", self.queue as f64);
        put("reno_count_segments", self.reno_count as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::{UNBOUNDED, Values};
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 8948;
    const LOSS: Congestion = Congestion::Loss { flight_bytes: 0 };

    fn with_context<T>(run: impl FnOnce(&mut Cx<'_>) -> T) -> T {
        let mut rng = Stream::new(1, Domain::Test, 0);
        run(&mut Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng })
    }

    /// Returns a law on a path of 100 ms.
    fn law() -> Yeah {
        let default = |param: &Param| Values::default().whole(param);
        let [alpha, gamma, delta, epsilon, phy, rho, zeta, ai_count] =
            [&ALPHA, &GAMMA, &DELTA, &EPSILON, &PHY, &RHO, &ZETA, &AI_COUNT].map(default);
        let config = YeahConfig { alpha, gamma, delta, epsilon, phy, rho, zeta, ai_count };
        Yeah { base_rtt: Dur::from_ms(100), ..Yeah::new(config) }
    }

    /// Evaluates a window of `segments` segments at this round-trip time. Returns the remaining window.
    fn judge(law: &mut Yeah, segments: u64, rtt_us: u64) -> u64 {
        let mut window = Window { cwnd: segments * MSS, ssthresh: 0 };
        law.least_rtt = Dur::from_us(rtt_us);
        law.judge(&mut window, MSS);
        let ends_slow_start = if window.cwnd < segments * MSS { window.cwnd } else { 0 };
        assert_eq!(window.ssthresh, ends_slow_start);
        window.cwnd / MSS
    }

    fn cut(law: &mut Yeah, segments: u64) -> u64 {
        with_context(|cx| law.cut(&Window { cwnd: segments * MSS, ssthresh: 0 }, 0, LOSS, cx)) / MSS
    }

    /// Returns the bytes that a round of acknowledgments adds.
    fn round(law: &mut Yeah, segments: u64) -> u64 {
        let mut window = Window { cwnd: segments * MSS, ssthresh: 0 };
        for _ in 0..segments {
            with_context(|cx| law.grow(&mut window, &Ack::in_sequence(MSS), cx));
        }
        window.cwnd - segments * MSS
    }

    #[test]
    fn fast_mode_adds_a_hundredth_and_slow_mode_a_segment_a_round() {
        let mut law = law();
        assert_eq!(round(&mut law, 30_000), 300 * MSS);
        assert_eq!(
            [150, 150].map(|segments| round(&mut law, segments)),
            [MSS, 2 * MSS],
            "three segments for 300 acknowledged ones"
        );
        assert_eq!(round(&mut law, 50), MSS, "a window below 100 segments grows by one per window");
        judge(&mut law, 100, 200_000);
        let slow = round(&mut law, 30_000);
        assert!(slow.abs_diff(MSS) <= 1, "{slow} bytes");
    }

    /// 8,100 segments at 101 ms have 80.2 in queues, not more than 80. At 101.02 ms they have 81.8.
    #[test]
    fn more_than_eighty_packets_in_the_queue_are_taken_off_the_window() {
        let mut law = law();
        assert_eq!(judge(&mut law, 8_100, 101_000), 8_100);
        assert!(law.is_fast() && law.queue == 80);
        assert_eq!(judge(&mut law, 8_100, 101_020), 8_100 - 81);
        assert!(!law.is_fast() && law.queue == 81);
        assert_eq!(law.reno_count, 8_019 / 2);
    }

    #[test]
    fn more_than_an_eighth_of_the_round_trip_is_slow_mode_that_takes_nothing() {
        let mut law = law();
        assert_eq!(judge(&mut law, 100, 112_500), 100);
        assert!(law.is_fast());
        assert_eq!(judge(&mut law, 100, 112_501), 100);
        assert!(!law.is_fast() && law.reno_count == 50);
        judge(&mut law, 100, 112_501);
        assert_eq!((law.slow_windows, law.reno_count), (2, 51));
        judge(&mut law, 100, 100_000);
        assert!(law.is_fast() && law.reno_count == 51, "the count is kept");
    }

    /// At 300 ms, 666 of 1,000 segments are in queues. Decongestion takes half of the window, but not the share of a
    /// NewReno flow.
    #[test]
    fn decongestion_takes_at_most_half_and_leaves_the_share_of_newreno() {
        let mut law = law();
        assert_eq!(judge(&mut law, 1_000, 300_000), 500);
        assert_eq!(law.reno_count, 250);
        law.reno_count = 900;
        assert_eq!(judge(&mut law, 1_000, 300_000), 900);
        assert_eq!(law.reno_count, 901);
        assert_eq!(judge(&mut law, 901, 300_000), 901);
    }

    #[test]
    fn fifty_one_windows_without_a_queue_reset_the_estimate_of_other_flows() {
        let mut law = law();
        judge(&mut law, 1_000, 300_000);
        (0..50).for_each(|_| assert_eq!(judge(&mut law, 1_000, 100_000), 1_000));
        assert_eq!(law.reno_count, 250);
        judge(&mut law, 1_000, 100_000);
        assert_eq!((law.reno_count, law.fast_windows), (2, 0));
    }

    #[test]
    fn a_loss_takes_the_queue_between_an_eighth_and_a_half() {
        for (queue, left) in [(0, 700), (100, 700), (101, 699), (300, 500), (400, 400), (5_000, 400)] {
            let mut law = Yeah { queue, reno_count: 9, fast_windows: 3, ..law() };
            assert_eq!(cut(&mut law, 800), left, "{queue} segments are queued");
            assert_eq!((law.reno_count, law.fast_windows), (4, 0));
        }
    }

    #[test]
    fn after_sixteen_slow_windows_a_loss_takes_half() {
        let mut law = law();
        (0..15).for_each(|_| assert_eq!(judge(&mut law, 100, 120_000), 100));
        assert_eq!(cut(&mut law, 100), 100 - 16, "16.7 segments are queued");
        judge(&mut law, 100, 120_000);
        assert_eq!(cut(&mut law, 100), 50);
    }

    /// A window of 200 segments at 100 ms and at 250 ms; at 250 ms, 120 segments are queued.
    #[test]
    fn every_window_of_data_is_judged_by_its_minimum_round_trip_time() {
        let config = WindowConfig {
            initial_window: 200,
            initial_ssthresh: UNBOUNDED,
            slow_start_limit: 1,
            growth_limit: 1,
            ..WindowConfig::default()
        };
        let mut controller = Windowed::new(law(), config, MSS);
        let mut round = |rtts_ms: [u64; 2], phase: Phase| {
            let acks = (0..4).map(|at| {
                let rtt = Some(Dur::from_ms(rtts_ms[usize::from(at == 1)]));
                let (acked_bytes, in_flight_bytes) = (0, 200 * MSS);
                Ack { rtt, phase, acked_bytes, delivered_bytes: 50 * MSS, in_flight_bytes, ..Ack::in_sequence(0) }
            });
            acks.for_each(|ack| with_context(|cx| controller.on_ack(&ack, cx)));
            controller.limits().cwnd_bytes / MSS
        };
        assert_eq!(round([250, 100], Phase::Open), 200);
        assert_eq!(round([250, 100], Phase::Open), 200, "the minimum round-trip time shows no queue");
        assert_eq!(round([250, 250], Phase::Recovery), 200);
        assert_eq!(round([250, 250], Phase::Open), 200, "a new window of data begins after recovery");
        assert_eq!(round([250, 250], Phase::Open), 100, "120 segments are queued; the window halves");
    }
}
